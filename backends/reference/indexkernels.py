"""Index-space kernels on the reference device: the user's function, executed by Python.

A kernel with barriers becomes a generator that yields at each, so that threads which part are
seen. `machine` runs the threads and checks what they do.
"""

from __future__ import annotations

import ast
import copy
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.kernels import Kernel, launcher
from mirabelle.arraytypes.reference import RefArray
from mirabelle.backends.codegen import kernelsource
from mirabelle.backends.codegen.kernelsource import KernelSource
from mirabelle.backends.reference.machine import Index, Machine, shuffled, typed
from mirabelle.dispatch.ops import TABLE


@launcher(RefArray)
def launch(kernel: Kernel, shape: Index, group: Index, arguments: list[Any]) -> None:
    """Run a kernel over an index space, group by group."""
    run = kernel.compiled.get("reference")
    if run is None:
        run = kernel.compiled["reference"] = executable(kernel.source)
    machine = Machine(kernel, shape, group)
    written = {n for n, how in kernel.source.effects.items() if how}
    given = [
        machine.lent(x, name, name in written)
        for x, name in zip(arguments, kernel.source.parameters, strict=True)
    ]
    groups = list(itertools.product(*(range(-(-n // g)) for n, g in zip(shape, group, strict=True))))
    with np.errstate(all="ignore"):
        for where in shuffled(groups):
            machine.run_group(run, where, given)


# The kernel as Python that yields at barriers


def executable(source: KernelSource) -> Callable[..., Any]:
    """The kernel as a function, a generator where it has barriers, of a context and arguments."""
    f = source.function
    rewriter = _Executable(source)
    body = [rewriter.visit(copy.deepcopy(s)) for s in source.body]
    arguments = ast.arguments(
        [], [ast.arg(source.context), *map(ast.arg, source.parameters)], None, [], [], None, []
    )
    definition = ast.FunctionDef(source.name, arguments, body or [ast.Pass()], [])
    definition.lineno = definition.end_lineno = f.__code__.co_firstlineno
    definition.col_offset = definition.end_col_offset = 0
    tree = ast.fix_missing_locations(ast.Module([definition], []))
    scope = {"range": _typed_range, **_uncompiled_scope(f, {}), **rewriter.constants}
    exec(compile(tree, f.__code__.co_filename, "exec"), scope)
    made: Callable[..., Any] = scope[source.name]
    return made


def _typed_range(*bounds: Any) -> Iterator[Any]:
    return map(np.int64, range(*bounds))


class _Executable(ast.NodeTransformer):
    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.constants: dict[str, Any] = {}

    def visit_Constant(self, node: ast.Constant) -> Any:
        number = typed(node.value)
        if number is node.value:
            return node
        name = f"_k_constant{len(self.constants)}"
        self.constants[name] = number
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if kernelsource.is_barrier(node, self.source.context):
            node.value = ast.copy_location(ast.Yield(ast.copy_location(ast.Constant(node.lineno), node)), node)
            return node
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        name = kernelsource.declared(node, self.source.context)
        if name is None:
            return self.generic_visit(node)
        context = ast.copy_location(ast.Name(self.source.context, ast.Load()), node)
        method = ast.copy_location(ast.Attribute(context, "_array", ast.Load()), node)
        node.value = ast.copy_location(
            ast.Call(method, [ast.copy_location(ast.Constant(name), node)], []), node
        )
        return node


def _uncompiled_scope(f: Any, made: dict[int, Any]) -> dict[str, Any]:
    """What a function sees around it, with compiled functions as plain ones, and ours for numbers."""
    scope = dict(f.__globals__)
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        scope[name] = cell.cell_contents
    return {name: _uncompiled(value, made) for name, value in scope.items()}


def _uncompiled(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, types.ModuleType) and value.__name__ == "mirabelle":
        return _Namespace(value)
    number = _of_numbers(value)
    if number is not None:
        return number
    inner = getattr(value, "python", None) or getattr(value, "py_func", None)
    if not isinstance(inner, types.FunctionType):
        return value
    if id(inner) not in made:
        scope: dict[str, Any] = {}
        cells = (
            tuple(types.CellType(_uncompiled(c.cell_contents, made)) for c in inner.__closure__ or ()) or None
        )
        made[id(inner)] = types.FunctionType(inner.__code__, scope, inner.__name__, inner.__defaults__, cells)
        scope |= {n: _uncompiled(v, made) for n, v in inner.__globals__.items() if n in _names_of(inner)}
        scope["__builtins__"] = __builtins__
    return made[id(inner)]


def _names_of(f: Any) -> Iterator[str]:
    stack = [f.__code__]
    while stack:
        code = stack.pop()
        yield from code.co_names
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _of_numbers(value: Any) -> Any:
    """A function of ours, as one of numbers: `mb.sqrt` inside a kernel."""
    op = TABLE.get(getattr(value, "__name__", "")) if hasattr(value, "core") else None
    if op is None:
        return None
    return op.ufunc if op.ufunc is not None else op.scalar


class _Namespace:
    """`mb` inside a kernel: the same names, functions for numbers."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        number = _of_numbers(value)
        return value if number is None else number
