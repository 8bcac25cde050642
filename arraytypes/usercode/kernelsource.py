"""The source of an index-space kernel, read once and checked: what every backend starts from.

A backend changes the names that belong to the context (`k.index(0)`) into its own and compiles,
or executes, the rest as the user wrote it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.usercode.effects import effects_of, function_tree, scope_of
from mirabelle.arraytypes.usercode.userfunctions import refuse_captured_arrays
from mirabelle.dispatch import syntax
from mirabelle.dispatch.errors import UserFunctionError

# What a context answers about the thread, with a dimension in the parentheses or without.
COORDINATES = ("index", "local", "group", "size", "group_size", "groups")
ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_exchange", "atomic_cas")
# Kernels that ask for none of these run the same whatever the shape of a group.
_GROUPED = {"local", "group", "group_size", "groups", "shared", "barrier"}
_REFUSED: dict[type, str] = {
    ast.FunctionDef: "defines a function",
    ast.AsyncFunctionDef: "defines a function",
    ast.ClassDef: "defines a class",
    ast.Lambda: "has a lambda",
    ast.Try: "has a try",
    ast.With: "has a with",
    ast.Yield: "has a yield",
    ast.YieldFrom: "has a yield",
    ast.Global: "changes a global",
    ast.Nonlocal: "changes a variable of another function",
    ast.Import: "imports",
    ast.ImportFrom: "imports",
    ast.Match: "has a match",
    ast.Delete: "has a del",
}


@dataclass(frozen=True)
class LocalArray:
    """`tile = k.shared(shape, dtype)`, or `k.private`."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    shared: bool


@dataclass
class KernelSource:
    """A kernel's syntax tree, and what is known about it."""

    function: Any
    name: str
    context: str
    parameters: list[str]
    body: list[ast.stmt]
    effects: dict[str, int]
    uses: set[str] = field(default_factory=set)
    locals: dict[str, LocalArray] = field(default_factory=dict)
    # The parameters on whose values it depends which elements are touched, once somebody has asked.
    deciding: frozenset[str] | None = None

    @property
    def grouped(self) -> bool:
        """Does the shape of a group make a difference?"""
        return bool(self.uses & _GROUPED)

    @property
    def may_raise(self) -> bool:
        """Might a thread raise an error of the user's? (Functions that it calls are not looked into.)"""
        return any(
            isinstance(n, (ast.Raise, ast.Assert)) or (isinstance(n, ast.Call) and not self._never_raises(n))
            for s in self.body
            for n in ast.walk(s)
        )

    def _never_raises(self, node: ast.Call) -> bool:
        if is_call(node, self.context, *COORDINATES, *ATOMICS, "shared", "private", "barrier"):
            return True
        f: Any = node.func
        base = f
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name):
            return False
        found = scope_of(self.function)(base.id)
        if isinstance(f, ast.Attribute):
            return inspect.ismodule(found) and found.__name__.partition(".")[0] in (
                "numpy",
                "math",
                "mirabelle",
            )
        return getattr(found, "__module__", None) == "builtins"

    @property
    def has_barrier(self) -> bool:
        return "barrier" in self.uses


def read_kernel(function: Any) -> KernelSource:
    """The source of a kernel; an error that names the line where it cannot be one."""
    tree = function_tree(function)
    name = function.__name__
    if tree is None or isinstance(tree, ast.Lambda):
        raise UserFunctionError(
            f"{name}() has no source text that can be found, and kernels are made from it. Write the kernel in "
            "a file or a notebook cell, as a `def` (not at the plain Python prompt, in exec() or as a lambda)."
        )
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise UserFunctionError(
            f"{name}() needs the index context as its first parameter, and plain parameters after it: "
            f"`def {name}(k, y, x):`."
        )
    refuse_captured_arrays(function)
    body = tree.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # the docstring
    names = [p.name for p in parameters]
    source = KernelSource(function, name, names[0], names[1:], body, effects_of(function))
    _Reader(source).run()
    return source


def is_call(node: ast.AST, context: str, *methods: str) -> bool:
    """Is it `k.method(...)`?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == context
        and node.func.attr in methods
    )


def is_barrier(node: ast.AST, context: str) -> bool:
    return isinstance(node, ast.Expr) and is_call(node.value, context, "barrier")


def declared(node: ast.AST, context: str) -> str | None:
    """The name in `name = k.shared(...)`, if it is that."""
    if isinstance(node, ast.Assign) and is_call(node.value, context, "shared", "private"):
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def dimension_error(source: KernelSource, what: str, d: int, ndim: int) -> UserFunctionError:
    """The error for a dimension that the index space of a launch does not have."""
    return UserFunctionError(
        f"{source.name}() asks for {source.context}.{what}({d}), and is launched over an index space of {ndim} "
        f"dimension(s). Launch it over more, like `{source.name}[n, m](...)`."
    )


class _Reader:
    """Checks a kernel's statements and collects what it uses."""

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.k = source.context
        self.local_names = {
            n.id
            for s in source.body
            for n in ast.walk(s)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        } | set(source.parameters)

    def run(self) -> None:
        source, k = self.source, self.k
        declarations: list[ast.stmt] = []
        for statement in source.body:
            if declared(statement, k) is not None:
                self.declare(statement)
                declarations.append(statement)
        barriers = [n for s in source.body for n in ast.walk(s) if is_barrier(n, k)]
        allowed: set[int] = {id(n.value) for n in barriers if isinstance(n, ast.Expr)}
        allowed |= {id(s.value) for s in declarations if isinstance(s, ast.Assign)}
        for statement in source.body:
            for node in ast.walk(statement):
                self.check(node, allowed)
        self.check_context()
        if barriers:
            self.check_returns()

    def fail(self, node: ast.AST, what: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        text = linecache.getline(self.source.function.__code__.co_filename, line).strip()
        raise UserFunctionError(f"{self.source.name}() is no kernel yet: line {line}, `{text}`: {what}")

    def declare(self, statement: Any) -> None:
        call = statement.value
        name = declared(statement, self.k)
        assert name is not None
        method = call.func.attr
        form = f"`{name} = {self.k}.{method}((16, 16), mb.float32)`"
        arguments = {k.arg: k.value for k in call.keywords}
        arguments |= dict(zip(("shape", "dtype"), call.args, strict=False))
        if set(arguments) != {"shape", "dtype"} or len(statement.targets) != 1:
            self.fail(statement, f"it takes a shape and a dtype: {form}.")
        stores = [
            n
            for s in self.source.body
            for n in ast.walk(s)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        if len(stores) != 1 or name in self.source.parameters:
            self.fail(statement, f"the name {name} is given to something else as well. Choose another.")
        shape = self.constant(arguments["shape"], statement)
        shape = (shape,) if isinstance(shape, (int, np.integer)) else shape
        if (
            not isinstance(shape, tuple)
            or not shape
            or not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape)
        ):
            self.fail(statement, f"a shape is made of positive integers: {form}.")
        dtype = checked_dtype(self.constant(arguments["dtype"], statement))
        sizes = tuple(int(n) for n in shape)
        self.source.locals[name] = LocalArray(name, sizes, dtype, method == "shared")
        self.source.uses.add(method)

    def constant(self, node: ast.expr, at: ast.AST) -> Any:
        """The value of an expression of constants and globals."""
        look_up = scope_of(self.source.function)
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        if any(n in self.local_names or n == self.k for n in names):
            self.fail(
                at,
                "it must be known before the kernel runs, and uses a variable of the kernel. Write a number, "
                "or a constant from outside the function.",
            )
        try:
            scope = {n: look_up(n) for n in names}
            return eval(syntax.compiled(ast.Expression(node), "<constant>", "eval"), {}, scope)
        except Exception as e:
            self.fail(at, f"it must be a constant, and has no value here ({type(e).__name__}: {e}).")

    def check(self, node: ast.AST, allowed: set[int]) -> None:
        k, uses = self.k, self.source.uses
        for refused, what in _REFUSED.items():
            if isinstance(node, refused):
                self.fail(node, f"a kernel that {what} does not run on every place. Keep to numbers and loops.")
        if isinstance(node, ast.Return) and node.value is not None:
            self.fail(node, "a kernel returns nothing. Write the value to an array: `out[i] = value`.")
        if isinstance(node, ast.Subscript):
            self.check_index(node)
        if isinstance(node, ast.Name) and node.id == k and isinstance(node.ctx, ast.Store):
            self.fail(node, f"{k} is the index context; give the variable another name.")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == k:
            known = (*COORDINATES, *ATOMICS, "valid", "shared", "private", "barrier")
            if node.attr not in known:
                self.fail(node, f"{k}.{node.attr} does not exist. There are: {', '.join(known)}.")
            uses.add(node.attr)
        if isinstance(node, ast.Call):
            self.check_call(node, allowed)

    def check_context(self) -> None:
        """The context is asked questions, and is nothing else."""
        nodes = [n for s in self.source.body for n in ast.walk(s)]
        asked = {
            id(n.func.value) for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
        }
        asked |= {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr == "valid"}
        called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id == self.k and id(node) not in asked:
                self.fail(node, f"ask {self.k} in full: `{self.k}.index(0)`, `{self.k}.local(0)`.")
            if isinstance(node, ast.Attribute) and node.attr == "valid" and id(node) in called:
                self.fail(node, f"{self.k}.valid is no function: write it without parentheses.")

    def check_call(self, node: ast.Call, allowed: set[int]) -> None:
        k = self.k
        if is_call(node, k, "barrier", "shared", "private") and id(node) not in allowed:
            self.fail(
                node,
                f"{k}.barrier() is a statement of its own, and {k}.shared and {k}.private stand in the first "
                f"level of the kernel: `tile = {k}.shared((16, 16), mb.float32)`.",
            )
        if is_call(node, k, *COORDINATES):
            if len(node.args) > 1 or node.keywords:
                self.fail(node, "it takes one dimension, or none for the tuple of all.")
            if node.args:
                d = self.constant(node.args[0], node)
                if not isinstance(d, (int, np.integer)) or isinstance(d, bool):
                    self.fail(node, f"a dimension is an integer: `{k}.index(0)`.")
                node.args[0] = ast.copy_location(ast.Constant(int(d)), node.args[0])
        if is_call(node, k, *ATOMICS):
            wanted = 4 if is_call(node, k, "atomic_cas") else 3
            known = {*self.source.parameters, *self.source.locals}
            first = node.args[0] if node.args else None
            if len(node.args) != wanted or not isinstance(first, ast.Name) or first.id not in known:
                shown = "a, i, old, new" if wanted == 4 else "a, i, value"
                assert isinstance(node.func, ast.Attribute)
                self.fail(node, f"it is called {k}.{node.func.attr}({shown}), and a is an array by its name.")
        for argument in [*node.args, *(x.value for x in node.keywords)]:
            if isinstance(argument, ast.Name) and argument.id == k:
                self.fail(
                    node, f"{k} stays in the kernel. Pass what the function needs: `f({k}.index(0), ...)`."
                )

    def check_index(self, node: ast.Subscript) -> None:
        if not isinstance(node.value, ast.Name):
            return
        if node.value.id not in self.source.parameters and node.value.id not in self.source.locals:
            return
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in index:
            if isinstance(part, ast.Slice) or (
                isinstance(part, ast.Constant) and part.value in (None, Ellipsis)
            ):
                self.fail(
                    node,
                    "a kernel names single elements, with an index for each dimension. Loop over a part.",
                )

    def check_returns(self) -> None:
        """A thread that returns early would never come to a later barrier."""
        last = max(i for i, s in enumerate(self.source.body) if any(is_barrier(n, self.k) for n in ast.walk(s)))
        for statement in self.source.body[: last + 1]:
            for node in ast.walk(statement):
                if isinstance(node, ast.Return):
                    self.fail(
                        node,
                        "a thread that returns here does not come to the barrier below, for which the others "
                        "wait. Put what it is to skip under an `if`.",
                    )
