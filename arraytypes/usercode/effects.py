"""Which parameters of a function may be written to: found in its source, without running it.

An array that is only read needs no care; one that may be written needs memory that nobody else
still reads. So the answer errs on one side: whatever the analysis does not know counts as a
write, which costs at most a copy.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mirabelle.arraytypes.lending import MAYBE, READ, WRITTEN
from mirabelle.dispatch import syntax

_NO_MEMORY = {"shape", "size", "ndim", "dtype", "itemsize", "nbytes", "strides"}
_FRESH_METHODS = {
    "copy", "astype", "flatten", "sum", "prod", "mean", "std", "var", "min", "max", "argmin", "argmax",
    "any", "all", "item", "cumsum", "cumprod", "dot", "tolist", "argsort", "take", "nonzero", "repeat",
    "conj", "conjugate", "ptp", "searchsorted",
}  # fmt: skip
_WRITING_METHODS = {"fill", "sort", "partition", "put", "itemset", "resize"}
# NumPy functions that write to their first argument.
_WRITERS = {"copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis", "shuffle"}
# NumPy functions whose result may be a view of an argument.
_VIEWS = {
    "asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to",
    "diag", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "imag", "moveaxis", "nditer", "ndenumerate",
    "permute_dims", "ravel", "real", "reshape", "rot90", "split", "array_split", "hsplit", "vsplit", "dsplit",
    "squeeze", "swapaxes", "transpose", "as_strided", "sliding_window_view", "require", "nan_to_num", "unstack",
}  # fmt: skip
_ITERATORS = {"enumerate", "zip", "reversed", "iter", "next", "sorted", "list", "tuple", "map", "filter"}
# What a name means that has no value yet.
NO_VALUE = object()


def function_tree(function: Any) -> ast.FunctionDef | ast.Lambda | None:
    """The syntax tree of a function, with its line numbers in its file; None if there is no source."""
    made = getattr(function, "__mirabelle_tree__", None)
    if made is not None:
        return made  # type: ignore[no-any-return]
    try:
        lines, first = inspect.getsourcelines(function)
        tree = syntax.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    ast.increment_lineno(tree, max(first, 1) - 1)
    name = getattr(function, "__name__", "")
    wanted = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    found = [n for n in ast.walk(tree) if isinstance(n, wanted) and getattr(n, "name", name) == name]
    return found[0] if len(found) == 1 or (found and wanted is ast.FunctionDef) else None


def effects_of(function: Any) -> dict[str, int]:
    """For each parameter READ, MAYBE or WRITTEN.

    >>> import numpy as np
    >>> def swap(x, y, n):
    ...     for i in range(n):
    ...         x[i], y[i] = y[i], x[i]
    >>> effects_of(swap) # typed at a prompt its source may be unknown: doctest: +SKIP
    {'x': 2, 'y': 2, 'n': 0}
    """
    return _effects(function, ())


def _effects(function: Any, inside: tuple[Any, ...]) -> dict[str, int]:
    names = list(inspect.signature(function).parameters)
    if any(function is f for f in inside):  # it calls itself: what is found on the way decides
        return dict.fromkeys(names, MAYBE)
    tree = function_tree(function)
    if tree is None:
        return dict.fromkeys(names, MAYBE)
    return _Analysis(function, names, (*inside, function)).run(tree)


def scope_of(function: Any) -> Callable[[str], Any]:
    """What a free name means inside a function: its cell, global or builtin."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def look_up(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                return NO_VALUE
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name, NO_VALUE)

    return look_up


class _Analysis:
    """One function's variables, and which parameters' memory each may show (in any order of lines)."""

    def __init__(self, function: Any, names: list[str], inside: tuple[Any, ...]) -> None:
        self.inside = inside
        self.look_up = scope_of(function)
        self.shows: dict[str, set[str]] = {n: {n} for n in names}
        self.effects = dict.fromkeys(names, READ)
        self.local = set(names)
        self.changed = False

    def run(self, tree: ast.FunctionDef | ast.Lambda) -> dict[str, int]:
        body: list[Any] = tree.body if isinstance(tree, ast.FunctionDef) else [ast.Expr(tree.body)]
        nodes = [n for statement in body for n in ast.walk(statement)]
        self.local |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.local |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        if any(isinstance(n, (ast.Match, ast.Global, ast.Nonlocal)) for n in nodes):
            return dict.fromkeys(self.effects, MAYBE)
        self.changed = True
        while self.changed:
            self.changed = False
            for node in nodes:
                self.visit(node)
        return self.effects

    def mark(self, origins: Iterable[str], how: int) -> None:
        for name in origins:
            if self.effects[name] < how:
                self.effects[name] = how
                self.changed = True

    def bind(self, target: ast.expr, origins: set[str]) -> None:
        """`target = something that shows origins`."""
        if isinstance(target, ast.Name):
            known = self.shows.setdefault(target.id, set())
            if not origins <= known:
                known |= origins
                self.changed = True
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.bind(part, origins)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, origins)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.mark(self.origins(target.value), WRITTEN)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """`target = value`; of `x, y = a, b` each target shows its own value alone."""
        sequences = (ast.Tuple, ast.List)
        if (
            isinstance(target, sequences)
            and isinstance(value, sequences)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        ):
            for part, item in zip(target.elts, value.elts, strict=True):
                self.assign(part, item)
        else:
            self.bind(target, self.origins(value))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            self.bind(node.target, self.origins(node.value) if node.value is not None else set())
        elif isinstance(node, ast.NamedExpr):
            self.bind(node.target, self.origins(node.value))
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):  # in place for an array, not for a number
                self.mark(self.shows.get(node.target.id, ()), MAYBE)
            else:
                self.bind(node.target, set())
        elif isinstance(node, (ast.For, ast.comprehension)):
            self.bind(node.target, self.origins(node.iter))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.bind(node.optional_vars, self.origins(node.context_expr))
        elif isinstance(node, ast.Call):
            self.call(node)

    def origins(self, node: ast.expr | None) -> set[str]:
        """The parameters whose memory the value of an expression may share."""
        if isinstance(node, ast.Name):
            return self.shows.get(node.id, set())
        if node is None or isinstance(
            node, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr, ast.Slice)
        ):
            return set()
        if isinstance(node, ast.Subscript):
            return self.origins(node.value)
        if isinstance(node, ast.Attribute):
            return set() if node.attr in _NO_MEMORY else self.origins(node.value)
        if isinstance(node, ast.Call):
            return self.result(node)
        if isinstance(node, ast.IfExp):  # what is asked is not what comes out
            return self.origins(node.body) | self.origins(node.orelse)
        found: set[str] = set()
        for child in ast.walk(node):
            if isinstance(child, ast.Name):
                found |= self.shows.get(child.id, set())
        return found

    def passed(self, node: ast.Call) -> set[str]:
        parts = [*node.args, *(k.value for k in node.keywords)]
        return set().union(*(self.origins(p) for p in parts)) if parts else set()

    def meaning(self, node: ast.expr) -> Any:
        """What the expression in front of a call's parentheses names, if that is known."""
        if isinstance(node, ast.Name):
            return NO_VALUE if node.id in self.local else self.look_up(node.id)
        if isinstance(node, ast.Attribute):
            base = self.meaning(node.value)
            if base is not NO_VALUE and (inspect.ismodule(base) or isinstance(base, type)):
                return getattr(base, node.attr, NO_VALUE)
        return NO_VALUE

    def result(self, node: ast.Call) -> set[str]:
        """What the result of a call may share memory with."""
        f = self.meaning(node.func)
        if f is not NO_VALUE:
            name = getattr(f, "__name__", "")
            if isinstance(f, (np.ufunc, type)):
                return self.passed(node) if name in _ITERATORS or f is np.nditer else set()
            if _of(f, "builtins"):
                return self.passed(node) if name in _ITERATORS else set()
            if _of(f, "numpy", "math", "cmath", "operator", "mirabelle.dispatch"):
                return self.passed(node) if name in _VIEWS else set()
            return self.passed(node)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _FRESH_METHODS:
                return set()
            return self.origins(node.func.value) | self.passed(node)
        return self.passed(node)

    def call(self, node: ast.Call) -> None:
        """Mark what a call may write to."""
        for keyword in node.keywords:
            if keyword.arg in ("out", None):
                self.mark(self.origins(keyword.value), WRITTEN if keyword.arg else MAYBE)
        f = self.meaning(node.func)
        if f is NO_VALUE:
            if isinstance(node.func, ast.Attribute):
                owner = self.origins(node.func.value)
                method = node.func.attr
                if method in _WRITING_METHODS:
                    self.mark(owner, WRITTEN)
                elif method.startswith("atomic_") and node.args:  # of a kernel's context
                    self.mark(self.origins(node.args[0]), WRITTEN)
                elif owner and method not in _FRESH_METHODS and not hasattr(np.ndarray, method):
                    self.mark(owner | self.passed(node), MAYBE)
                elif not owner:
                    self.mark(self.passed(node), MAYBE)
            else:
                self.mark(self.passed(node), MAYBE)
            return
        name = getattr(f, "__name__", "")
        if (isinstance(f, np.ufunc) or _of(f, "numpy")) and any(isinstance(a, ast.Starred) for a in node.args):
            self.mark(self.passed(node), MAYBE)  # (`out` may be among them)
        elif isinstance(f, np.ufunc):
            for extra in node.args[f.nin :]:
                self.mark(self.origins(extra), WRITTEN)
        elif _of(f, "numpy"):
            if name in _WRITERS and node.args:
                self.mark(self.origins(node.args[0]), WRITTEN)
            for written in node.args[_place_of_out(f) :][:1]:
                self.mark(self.origins(written), WRITTEN)
        elif not (isinstance(f, type) or _of(f, "builtins", "math", "cmath", "operator", "mirabelle.dispatch")):
            self.user_call(f, node)

    def user_call(self, f: Any, node: ast.Call) -> None:
        inner = getattr(f, "python", None) or getattr(f, "py_func", None)
        if inner is None or not inspect.isfunction(inner):
            self.mark(self.passed(node), MAYBE)
            return
        effects = _effects(inner, self.inside)
        parameters = list(inspect.signature(inner).parameters.values())
        for i, argument in enumerate(node.args):
            p = parameters[min(i, len(parameters) - 1)] if parameters else None
            star = isinstance(argument, ast.Starred) or p is None
            how = max(effects.values(), default=MAYBE) if star or p is None else effects[p.name]
            self.mark(self.origins(argument), how)
        for keyword in node.keywords:
            how = effects.get(keyword.arg, MAYBE) if keyword.arg else MAYBE
            self.mark(self.origins(keyword.value), how)


@functools.cache
def _place_of_out(f: Any) -> int:
    """How many arguments of a NumPy function stand before `out`."""
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        names = []
    return names.index("out") if "out" in names else len(names) + 99


def _of(f: Any, *modules: str) -> bool:
    """Was `f` defined in one of these packages?"""
    if isinstance(f, np.random.Generator):
        return False
    home = getattr(f, "__module__", None) or ""
    if not home and (f is getattr(math, getattr(f, "__name__", ""), None)):
        home = "math"
    return any(home == m or home.startswith(m + ".") for m in modules)
