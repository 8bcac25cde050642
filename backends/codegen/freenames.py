"""What a function reads from around it, put into its text: so that the text is all there is to know.

Constants become literals, functions of modules that compilers know keep the module's name, and the
functions of users that are called are written before the one that calls them.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import copy
import functools
import inspect
import math
import operator
import re
import types
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.effects import NO_VALUE, function_tree, scope_of
from mirabelle.backends.codegen.variables import stored_names
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import code

_MODULES: dict[str, Any] = {"math": math, "cmath": cmath, "np": np, "operator": operator}
# Names of generated text that a variable of a user's cannot have.
RESERVED = {"math", "cmath", "np", "operator", "barrier", "cuda", "outside", "complex"} | {
    f"{kind}{size}" for kind in "biufc" for size in (1, 2, 4, 8, 16)
}


class FreeNames:
    """The surroundings of a kernel and of the functions it calls, as text.

    `helpers` are the functions that stand before the kernel; `values` what has no text (functions
    without source, for one), by the names that the text has for it; `tables` NumPy's arrays.
    """

    def __init__(self, kernel: Any) -> None:
        self.function = kernel
        self.kernel = kernel.__name__
        self.helpers: list[ast.stmt] = []
        self.values: dict[str, Any] = {}
        self.tables: dict[int, tuple[np.ndarray, str]] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []

    def settled(self, statements: list[ast.stmt], function: Any, given: set[str]) -> list[ast.stmt]:
        """Statements of a function without names from around it. `given` are names it has itself."""
        renaming = _Apart((given | stored_names(statements)) & RESERVED)
        statements = [renaming.visit(s) for s in statements]
        local = {apart(n) for n in given} | stored_names(statements)
        settling = _Settling(self, function, local)
        return [settling.visit(s) for s in statements]

    def fail(self, function: Any, node: ast.AST, why: str) -> UserFunctionError:
        return UserFunctionError(
            f"{self.kernel}() cannot be compiled for the card: {function.__name__}(), line "
            f"{getattr(node, 'lineno', 0)}: {why}"
        )

    def expression(self, value: Any, node: Any, function: Any) -> ast.expr:
        """What stands for a value in the text."""
        found = _constant(value) or _of_module(value)
        if found is None and isinstance(value, np.ndarray):
            found = self._table(value, node, function)
        if found is None:
            found = ast.Name(self._named(value, node, function), ast.Load())
        return ast.copy_location(found, node)

    def _named(self, value: Any, node: Any, function: Any) -> str:
        """The name of a function in the text."""
        name = self._names.get(id(value))
        if name is not None:
            return name
        inner = value
        for attribute in ("python", "py_func"):
            inner = getattr(inner, attribute, inner)
        if (getattr(inner, "__module__", None) or "").startswith("mirabelle."):
            raise self.fail(
                function,
                node,
                f"mb.{getattr(inner, '__name__', 'this')} is no function of numbers. Inside a kernel there are "
                "arithmetic, the functions of `math`, and those of `mb` and `np` that work element by element.",
            )
        called = re.sub(r"\W", "_", getattr(inner, "__name__", "value"))
        name = self._names[id(value)] = f"user{len(self._names)}_{called}"
        self._kept.append(value)
        if not isinstance(inner, types.FunctionType) or not self._written(inner, name):
            if not callable(value):
                kind = type(value).__name__
                raise self.fail(function, node, f"a {kind} is nothing that compiled code takes. Pass numbers.")
            self.values[name] = value
        return name

    def _table(self, value: np.ndarray, node: Any, function: Any) -> ast.expr:
        if function is not self.function or value.dtype.kind not in "biufc" or not value.ndim:
            raise self.fail(
                function,
                node,
                "it reads an array from around it. Pass the array to it, from the kernel's parameters.",
            )
        _, name = self.tables.setdefault(id(value), (value, f"_k_table{len(self.tables)}"))
        return ast.Name(name, ast.Load())

    def _written(self, f: Any, name: str) -> bool:
        """Write a function before the kernel, if its text can be found and is all of it."""
        tree = function_tree(f)
        if tree is None:
            return False
        body: list[Any] = tree.body if isinstance(tree, ast.FunctionDef) else [ast.Return(tree.body)]
        inside = [n for s in body for n in ast.walk(s)]
        nested = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.GeneratorExp, ast.SetComp)
        if any(isinstance(n, nested) for n in inside) or f.__kwdefaults__:
            return False
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
            body = body[1:]
        parameters = list(inspect.signature(f).parameters.values())
        if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
            return False
        given = [p.name for p in parameters]
        body = self.settled(copy.deepcopy(body), f, set(given))
        defaults = [self.expression(v, tree, f) for v in f.__defaults__ or ()]
        arguments = ast.arguments([], [ast.arg(apart(n)) for n in given], None, [], [], None, defaults)
        definition = ast.FunctionDef(name, arguments, body, [])
        definition.lineno = f.__code__.co_firstlineno
        for statement in ast.walk(definition):
            statement.filename = f.__code__.co_filename  # type: ignore[attr-defined]
        self.helpers.append(definition)
        return True


class _Settling(ast.NodeTransformer):
    """Replaces what is not a function's own, and not generated, by what it means."""

    def __init__(self, free: FreeNames, function: Any, local: set[str]) -> None:
        self.free = free
        self.function = function
        self.local = local
        self.look_up = scope_of(function)

    def is_free(self, name: str) -> bool:
        return name not in self.local and not name.startswith("_k_")

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or not self.is_free(node.id):
            return node
        return self.free.expression(self.value(node), node, self.function)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        root: Any = node
        path = []
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or not self.is_free(root.id):
            return self.generic_visit(node)
        value = self.value(root)
        for attr in reversed(path):
            try:
                value = getattr(value, attr)
            except AttributeError as e:
                raise self.free.fail(self.function, node, f"{e}.") from None
        return self.free.expression(value, node, self.function)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Raise(self, node: ast.Raise) -> Any:
        raise self.free.fail(
            self.function,
            node,
            "a card passes on errors of the kernel itself, and this function is called by it. Return a number "
            "that tells, and raise in the kernel.",
        )

    def visit_Assert(self, node: ast.Assert) -> Any:
        return self.visit_Raise(ast.copy_location(ast.Raise(), node))

    def value(self, node: ast.Name) -> Any:
        value = self.look_up(node.id)
        if value is NO_VALUE:
            raise self.free.fail(
                self.function,
                node,
                f"{node.id} is not defined. Give it a value first, or pass it as an argument.",
            )
        return value


def apart(name: str) -> str:
    """What a variable of the user's is called in the text."""
    return f"{name}_" if name in RESERVED else name


class _Apart(ast.NodeTransformer):
    """Gives variables of the user's other names than those of generated text."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            node.id = apart(node.id)
        return node


@functools.cache
def _operations() -> dict[Any, str]:
    """What kernels have operations for: NumPy's functions, and the names of ours."""
    found: dict[Any, str] = {}
    for name, op in TABLE.items():
        if name in verbs.ELEMENTWISE:
            found[name] = name
            if op.ufunc is not None:
                found[op.ufunc] = name
    return found


def _constant(value: Any) -> ast.expr | None:
    """The literal of a value; None if it has none."""
    if value is None or isinstance(value, (str, bytes)):
        return ast.Constant(value)
    if isinstance(value, np.generic):
        if type(value) in (np.bool_, np.float64, np.int64, np.complex128):  # Python's own kinds of numbers
            return _literal(value.item())
        return _call(code(value.dtype), _literal(value.item())) if value.dtype.kind in "biufc" else None
    if isinstance(value, (int, float, complex)):
        return _literal(value)
    if type(value) is tuple:
        parts = [p for p in map(_constant, value) if p is not None]
        return ast.Tuple(parts, ast.Load()) if len(parts) == len(value) else None
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        try:
            return ast.Name(code(np.dtype(value)), ast.Load())
        except (KeyError, TypeError):
            return None
    return None


def _of_module(value: Any) -> ast.expr | None:
    """What is known by the name of a module, or is an operation; None if it is neither."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    if getattr(builtins, name, None) is value:
        return ast.Name(name, ast.Load())
    if isinstance(value, np.ufunc) or hasattr(value, "core"):
        operation = _operations().get(value if isinstance(value, np.ufunc) else name)
        if operation is not None:
            return ast.Name(f"_k_op_{operation}", ast.Load())
    for module, known in _MODULES.items():
        if getattr(known, name, None) is value:
            return ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())
    return None


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _literal(value: Any) -> ast.expr:
    """A number as text that gives it back."""
    if isinstance(value, bool):
        return ast.Constant(value)
    if isinstance(value, complex):
        return _call("complex", _literal(value.real), _literal(value.imag))
    value = float(value) if isinstance(value, float) else int(value)
    if value < 0 or str(value)[0] == "-":  # minus zero, too
        return ast.UnaryOp(ast.USub(), _literal(-value))
    if not math.isfinite(value):
        return ast.Attribute(ast.Name("math", ast.Load()), "nan" if value != value else "inf", ast.Load())
    return ast.Constant(value)
