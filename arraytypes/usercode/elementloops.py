"""Loops over elements, found in the source of functions, and where their indices lie.

A loop such as

    for i in range(1, n):
        for j in range(i):
            A[i, j] -= A[i, k] * A[j, k]

touches one element at a time, or a row that moves with the loop: array operations cannot say it, and as
statements of Python each turn costs microseconds. `loops_of` finds those that a compiler of loops takes, and
`Bounds` says before a loop is run whether all its indices lie within the arrays, so that it may run unchecked.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.effects import NO_VALUE

# What no compiled loop has.
_REFUSED = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try, ast.With, ast.AsyncWith,
    ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Match,
    ast.Delete, ast.Return, ast.Raise, ast.Assert, ast.JoinedStr, ast.Dict, ast.Set, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Starred, ast.NamedExpr, ast.List,
)  # fmt: skip
_BUILTINS = {
    "range",
    "len",
    "min",
    "max",
    "abs",
    "int",
    "float",
    "bool",
    "round",
    "enumerate",
    "zip",
    "complex",
}
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Pass, ast.Break)
# Operations that narrow integers and truth values do in another width than compiled code does.
_WIDENING = (ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.LShift, ast.MatMult)

Loop = ast.For | ast.While


def is_element_loop(loop: Loop, meaning: Callable[[str], Any]) -> bool:
    """Is it a loop over single elements, or parts that move with it, that can be compiled as it stands?

    `meaning` says what a name means that is no variable of the function.
    """
    if any(isinstance(n, _REFUSED) for n in ast.walk(loop)):
        return False
    found = _Found(_moving(loop), meaning)
    found.statements([loop])
    return found.fits and found.elements


def _moving(loop: Loop) -> set[str]:
    """The variables that change within a loop: what it counts by, and what it assigns."""
    found: set[str] = set()
    for n in ast.walk(loop):
        if isinstance(n, ast.For):
            found |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.add(n.id)
    return found


class _Found:
    """What stands in a loop."""

    def __init__(self, moving: set[str], meaning: Callable[[str], Any]) -> None:
        self.moving = moving
        self.meaning = meaning
        # Can it be compiled? Does it touch single elements or moving parts?
        self.fits = True
        self.elements = False

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for s in body:
            if not isinstance(s, (*_SIMPLE, ast.Continue)):
                self.fits = False
                return
            if isinstance(s, ast.For):
                self.iterated(s.iter)
                self.statements([*s.body, *s.orelse])
            elif isinstance(s, (ast.While, ast.If)):
                self.expression(s.test)
                self.statements([*s.body, *s.orelse])
            else:
                moves = False
                for n in ast.walk(s):
                    if isinstance(n, ast.Subscript):
                        moves |= self.moves(n)
                whole = any(
                    isinstance(n, ast.Subscript) and self.is_part(n) and not self.moves(n) for n in ast.walk(s)
                )
                if whole and not moves:
                    # A statement of whole arrays, the same ones in each turn: array operations say it better.
                    self.fits = False
                    return
                for e in ast.iter_child_nodes(s):
                    if isinstance(e, ast.expr):
                        self.expression(e)

    def iterated(self, e: ast.expr) -> None:
        if isinstance(e, ast.Name):
            self.elements = True  # (over the elements of an array)
            return
        if (
            isinstance(e, ast.Call)
            and isinstance(e.func, ast.Name)
            and e.func.id in ("range", "enumerate", "zip")
            and self.meaning(e.func.id) is getattr(builtins, e.func.id)
        ):
            if e.func.id != "range":
                self.elements = True
            for a in e.args:
                self.expression(a)
            return
        self.fits = False

    def expression(self, e: ast.expr) -> None:
        for n in ast.walk(e):
            if isinstance(n, ast.Subscript):
                if self.moves(n):
                    self.elements = True
            elif isinstance(n, ast.Call):
                self.call(n)
            elif isinstance(n, ast.Constant) and not isinstance(
                n.value, (int, float, complex, bool, type(None))
            ):
                self.fits = False

    def call(self, n: ast.Call) -> None:
        f = n.func
        if isinstance(f, ast.Name):
            value = self.meaning(f.id)
            # (A name of Python's means Python's function, or the loop is not what it looks like.)
            known = value is getattr(builtins, f.id) if f.id in _BUILTINS else _is_function(value)
        elif isinstance(f, ast.Attribute):
            root = f.value
            while isinstance(root, ast.Attribute):
                root = root.value
            value = self.meaning(root.id) if isinstance(root, ast.Name) else NO_VALUE
            # (`np.sqrt(x)`; or a method of an array)
            known = getattr(value, "__name__", "").partition(".")[0] in ("numpy", "math", "cmath", "mirabelle")
            known = known or value is NO_VALUE
            known = known and f.attr not in ("append", "extend", "random", "outer", "at", "reduceat", "pop")
        else:
            known = False
        if not known:
            self.fits = False

    def moves(self, n: ast.Subscript) -> bool:
        """Does the place that is read or written depend on the turn?"""
        return any(isinstance(x, ast.Name) and x.id in self.moving for x in ast.walk(n.slice))

    def is_part(self, n: ast.Subscript) -> bool:
        items = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
        return any(
            isinstance(i, ast.Slice) or (isinstance(i, ast.Constant) and i.value is Ellipsis) for i in items
        )


def _is_function(value: Any) -> bool:
    return value is not NO_VALUE and callable(value) and getattr(value, "__module__", "") != "builtins"


# Arithmetic that differs


def same_arithmetic(loop: ast.stmt, narrow: set[str]) -> bool:
    """Is a compiled loop's arithmetic NumPy's, if these arrays and numbers are narrow?

    Compiled code computes in 64 bits where NumPy's integers of fewer wrap round, and where its truth values
    stay truth values. So what comes from such may be compared, looked up, shifted to the right and joined bit
    by bit, and nothing else.
    """
    if not narrow:
        return True
    tainted = set(narrow)
    while True:
        before = len(tainted)
        for n in ast.walk(loop):
            if isinstance(n, ast.Assign) and _taints(n.value, tainted):
                tainted |= {x for t in n.targets for x in _written_to(t)}
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and _taints(n.value, tainted):
                tainted.add(n.target.id)
            elif isinstance(n, ast.For) and _taints(n.iter, tainted):
                tainted |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        if len(tainted) == before:
            break
    for n in ast.walk(loop):
        if isinstance(n, ast.BinOp) and isinstance(n.op, _WIDENING):
            if _taints(n.left, tainted) or _taints(n.right, tainted):
                return False
        elif isinstance(n, ast.AugAssign) and isinstance(n.op, _WIDENING):
            if _taints(n.value, tainted) or _taints(n.target, tainted):
                return False
        elif isinstance(n, ast.UnaryOp) and isinstance(n.op, (ast.USub, ast.Invert)):
            if _taints(n.operand, tainted):
                return False
        elif isinstance(n, ast.Call) and not _is_name(n.func, _BUILTINS - {"round"}):
            given = [_taints(a, tainted) for a in n.args]
            if any(given):
                return False
    return True


def operations(loop: ast.stmt) -> int:
    """How many operations of arrays stand in a loop."""
    return sum(isinstance(n, (ast.BinOp, ast.Call, ast.Subscript, ast.stmt)) for n in ast.walk(loop)) - 1


def _written_to(target: ast.expr) -> set[str]:
    """The variables that an assignment gives another value, or other elements."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {x for t in target.elts for x in _written_to(t)}
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _is_newaxis(i: ast.expr) -> bool:
    return (isinstance(i, ast.Constant) and i.value is None) or (
        isinstance(i, ast.Attribute) and i.attr == "newaxis"
    )


def _is_name(f: ast.expr, names: set[str]) -> bool:
    return isinstance(f, ast.Name) and f.id in names


def _taints(e: ast.expr, tainted: set[str]) -> bool:
    """Is the value of an expression made of tainted ones? (What is compared or looked up is not.)"""
    if isinstance(e, ast.Name):
        return e.id in tainted
    if isinstance(e, ast.Compare):
        return False
    if isinstance(e, ast.Subscript):
        return _taints(e.value, tainted)
    if isinstance(e, ast.Attribute):
        return e.attr not in ("shape", "ndim", "size") and _taints(e.value, tainted)
    if isinstance(e, ast.Call) and _is_name(e.func, {"int", "float", "bool", "len", "range"}):
        return False
    return any(_taints(x, tainted) for x in ast.iter_child_nodes(e) if isinstance(x, ast.expr))


def may_overflow(loop: ast.stmt, values: Mapping[str, Any]) -> bool:
    """Does an integer of Python's grow from turn to turn by more than a sum? (Python's have no end.)"""
    for n in ast.walk(loop):
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            name, value, grows = n.target.id, n.value, isinstance(n.op, _GROWING)
        elif isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name):
            name, value = n.targets[0].id, n.value
            grows = any(
                isinstance(x, ast.BinOp)
                and isinstance(x.op, _GROWING)
                and any(isinstance(y, ast.Name) and y.id == name for y in ast.walk(x))
                for x in ast.walk(value)
            )
        else:
            continue
        if grows and not _is_bounded(value) and not _is_real(name, value, loop, values):
            return True
    return False


_PYTHONS = (int, float, complex)


def may_divide_by_zero(loop: ast.stmt, values: Mapping[str, Any], bounds: Bounds) -> bool:
    """Are two of Python's own numbers divided of which the second may be 0?

    (That is a ZeroDivisionError; of NumPy's, and in compiled loops, it is an infinity or NaN.)
    """
    pythons = {n for n, x in values.items() if type(x) in (*_PYTHONS, bool)}
    stored: dict[str, list[ast.expr | None]] = {}
    for n in ast.walk(loop):
        if isinstance(n, ast.For) and isinstance(n.target, ast.Name):
            counted = isinstance(n.iter, ast.Call) and _is_name(n.iter.func, {"range"})
            stored.setdefault(n.target.id, []).append(ast.Constant(0) if counted else None)
        elif isinstance(n, ast.Assign):
            for t in n.targets:
                for x in ast.walk(t):
                    if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
                        stored.setdefault(x.id, []).append(n.value if t is x else None)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            stored.setdefault(n.target.id, []).append(n.value)
    while True:
        more = {
            n for n, parts in stored.items() if any(p is not None and _is_pythons(p, pythons) for p in parts)
        }
        if more <= pythons:
            break
        pythons |= more
    for n in ast.walk(loop):
        if isinstance(n, ast.BinOp):
            left, right = n.left, n.right
        elif isinstance(n, ast.AugAssign):
            left, right = n.target, n.value
        else:
            continue
        if not isinstance(n.op, (ast.Div, ast.FloorDiv, ast.Mod)) or not _is_pythons(right, pythons):
            continue
        if _is_pythons(left, pythons) and not _is_never_zero(right, values, set(stored), bounds):
            return True
    return False


def _is_pythons(e: ast.expr, pythons: set[str]) -> bool:
    """May the value of an expression be a number of Python's own?"""
    if isinstance(e, ast.Constant):
        return isinstance(e.value, _PYTHONS)
    if isinstance(e, ast.Name):
        return e.id in pythons
    if isinstance(e, ast.BinOp):
        return _is_pythons(e.left, pythons) and _is_pythons(e.right, pythons)
    if isinstance(e, ast.UnaryOp):
        return _is_pythons(e.operand, pythons)
    if isinstance(e, ast.IfExp):
        return _is_pythons(e.body, pythons) or _is_pythons(e.orelse, pythons)
    if isinstance(e, ast.Call):
        if _is_name(e.func, {"min", "max", "abs"}):
            return any(_is_pythons(a, pythons) for a in e.args)
        return _is_name(e.func, {"int", "float", "len", "round", "complex", "bool"})
    return isinstance(e, ast.Compare)


def _is_never_zero(e: ast.expr, values: Mapping[str, Any], stored: set[str], bounds: Bounds) -> bool:
    low, high = bounds.value(e)
    if low > 0 or high < 0:
        return True
    names = {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}
    if isinstance(e, ast.Constant):
        return bool(e.value)
    if isinstance(e, ast.Name):
        return e.id not in stored and type(values.get(e.id)) in _PYTHONS and bool(values[e.id])
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Mult, ast.Pow)) and not names & stored:
        return all(_is_never_zero(x, values, stored, bounds) for x in (e.left, e.right))
    return False


def _is_bounded(value: ast.expr) -> bool:
    """Is a value cut down at the end, as in `(31 * h + x) % m`?"""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.Mod, ast.BitAnd))
    return isinstance(value, ast.Call) and _is_name(value.func, {"min"})


_GROWING = (ast.Mult, ast.LShift, ast.Pow)


def _is_real(name: str, value: ast.expr, loop: ast.stmt, values: Mapping[str, Any]) -> bool:
    """Is it surely no integer of Python's that a variable becomes?"""
    started = [
        n.value
        for n in ast.walk(loop)
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]
    parts: list[ast.expr] = [value, *(s for s in started if isinstance(s, ast.Constant))]
    while parts:
        n = parts.pop()
        if isinstance(n, ast.Call) and _is_name(n.func, {"int", "len", "round"}):
            continue  # (an integer, whatever it is made of)
        if isinstance(n, ast.Constant) and isinstance(n.value, (float, complex)):
            return True
        if isinstance(n, ast.Name) and n.id in values:
            kind = getattr(getattr(values[n.id], "dtype", None), "kind", "")
            if isinstance(values[n.id], (float, complex)) or kind in ("f", "c"):
                return True
        inner = [n.value] if isinstance(n, ast.Subscript) else ast.iter_child_nodes(n)
        parts += [x for x in inner if isinstance(x, ast.expr)]
    return isinstance(values.get(name), (float, complex, np.generic))


# Where indices lie

Interval = tuple[float, float]
# What slices are taken to have whose bounds are values of arrays.
_FEW = 256
_ANYWHERE: Interval = (-math.inf, math.inf)


class Bounds:
    """Before a loop is run: do all its indices lie within the arrays?

    Numbers are followed as intervals from lowest to highest through the bounds of loops into the indices. What
    is not known, such as an index that is read from an array, may lie anywhere.
    """

    def __init__(self, loop: ast.stmt, values: Mapping[str, Any]) -> None:
        self.values = values
        self.known: dict[str, Interval] = {}
        self.assigned = {
            n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.inside = True
        # At most so many times a statement is run, and so many elements it works on at once.
        self.turns = 1.0
        self.largest = 1
        # The dimensions that such a part has at most. (Compilers take long over many.)
        self.deepest = 0
        # Does it touch single elements, and not parts alone?
        self.elements = False
        # Where each index, and each bound of a slice, lies, by the id of its expression.
        self.indices: dict[int, Interval] = {}
        self._turns = 1.0
        self.statement(loop)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.For):
            self.loop(s)
            return
        self.turns = max(self.turns, self._turns)
        if isinstance(s, ast.While):
            self.turns = math.inf
        for e in ast.iter_child_nodes(s):
            if isinstance(e, ast.expr):
                self.expression(e)
        for field in ("body", "orelse"):
            for inner in getattr(s, field, ()):
                self.statement(inner)

    def loop(self, s: ast.For) -> None:
        if not isinstance(s.iter, ast.Name):
            self.expression(s.iter)
        target = s.target
        counted = isinstance(s.iter, ast.Call) and _is_name(s.iter.func, {"range"})
        if counted and isinstance(target, ast.Name):
            assert isinstance(s.iter, ast.Call)
            found = self.counted(s.iter.args)
            if found is None:
                return  # (it never turns)
            elsewhere = any(
                isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store)
                for inner in s.body
                for n in ast.walk(inner)
            )
            if not elsewhere:
                before, turns = self.known.get(target.id), self._turns
                self.known[target.id] = found
                self._turns *= found[1] - found[0] + 1
                for inner in s.body:
                    self.statement(inner)
                self._turns = turns
                if before is None:
                    del self.known[target.id]
                else:
                    self.known[target.id] = before
                for inner in s.orelse:
                    self.statement(inner)
                return
        turns = self._turns
        shape = self.shape(s.iter) if isinstance(s.iter, ast.Name) else None
        self._turns *= shape[0] if shape else math.inf
        self.elements = self.elements or shape is None or len(shape) == 1
        if shape is not None and len(shape) > 1:
            self.largest = max(self.largest, math.prod(shape[1:]))
        for inner in s.body:
            self.statement(inner)
        self._turns = turns
        for inner in s.orelse:
            self.statement(inner)

    def counted(self, args: list[ast.expr]) -> Interval | None:
        """Where the variable of `range(...)` lies; None if there is no turn."""
        parts = [self.value(a) for a in args]
        start, stop, step = (0.0, 0.0), (0.0, 0.0), (1.0, 1.0)
        if len(parts) == 1:
            stop = parts[0]
        elif len(parts) == 2:
            start, stop = parts
        else:
            start, stop, step = parts
        if step[0] > 0:
            low, high = start[0], stop[1] - 1
        elif step[1] < 0:
            low, high = stop[0] + 1, start[1]
        else:
            return _ANYWHERE
        return None if low > high else (low, high)

    def expression(self, e: ast.expr) -> None:
        for n in ast.walk(e):
            if isinstance(n, ast.Subscript):
                self.subscript(n)
        self.whole(e)

    def whole(self, e: ast.expr) -> None:
        """Look for whole arrays that are computed with."""
        if isinstance(e, ast.Name):
            self.largest = max(self.largest, math.prod(self.shape(e) or ()))
        elif isinstance(e, ast.Subscript):
            self.whole(e.slice)
        elif not isinstance(e, ast.Attribute):
            for x in ast.iter_child_nodes(e):
                if isinstance(x, ast.expr) and not _is_name(getattr(e, "func", e), {"len", "enumerate", "zip"}):
                    self.whole(x)

    def subscript(self, n: ast.Subscript) -> None:
        items = list(n.slice.elts) if isinstance(n.slice, ast.Tuple) else [n.slice]
        shape = self.shape(n.value)
        if shape is None or len([i for i in items if not _is_newaxis(i)]) > len(shape):
            if all(isinstance(i, ast.Slice) for i in items):
                return
            self.elements = True
            if not (isinstance(n.value, ast.Attribute) and n.value.attr == "shape"):
                self.inside = False
            return
        none = sum(map(_is_newaxis, items))
        slices = sum(isinstance(i, ast.Slice) for i in items)
        self.elements = self.elements or (not slices and len(items) - none == len(shape))
        self.deepest = max(self.deepest, none + slices + len(shape) - (len(items) - none))
        part = math.prod(shape[len(items) - none :])
        for i, size in zip([i for i in items if not _is_newaxis(i)], shape, strict=False):
            if isinstance(i, ast.Slice):
                part *= self.width(i, size)
                self.indices |= {id(e): self.value(e) for e in (i.lower, i.upper) if e is not None}
                continue
            low, high = self.indices[id(i)] = self.value(i)
            if not (-size <= low and high < size):
                self.inside = False
        self.largest = max(self.largest, part)

    def width(self, s: ast.Slice, size: int) -> int:
        """How many elements a slice has at most, as far as that is known (few, where values say)."""
        lower, upper = s.lower, s.upper
        if (
            lower is not None
            and isinstance(upper, ast.BinOp)
            and isinstance(upper.op, ast.Add)
            and ast.dump(upper.left) == ast.dump(lower)
        ):
            low, high = 0.0, self.value(upper.right)[1]
        else:
            low = 0.0 if lower is None else self.value(lower)[0]
            high = float(size) if upper is None else self.value(upper)[1]
        if math.isinf(low) or math.isinf(high):
            return min(size, _FEW)
        if low < 0 or high < 0:
            return size
        return max(0, int(min(high, size) - low))

    def shape(self, e: ast.expr) -> tuple[int, ...] | None:
        if isinstance(e, ast.Name) and e.id not in self.assigned:
            found = getattr(self.values.get(e.id), "shape", None)
            if isinstance(found, tuple):
                return found
            value = self.values.get(e.id)
            return (len(value),) if isinstance(value, tuple) else None
        return None

    def value(self, e: ast.expr) -> Interval:
        """Where the value of an expression lies."""
        if isinstance(e, ast.Constant) and isinstance(e.value, (int, float)):
            return float(e.value), float(e.value)
        if isinstance(e, ast.Name):
            if e.id in self.known:
                return self.known[e.id]
            if e.id in self.assigned:
                return _ANYWHERE
            found = self.values.get(e.id, None)
            if isinstance(found, (int, np.integer)):
                return float(found), float(found)
            return _ANYWHERE
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            low, high = self.value(e.operand)
            return -high, -low
        if isinstance(e, ast.BinOp):
            return self.combined(e.op, self.value(e.left), self.value(e.right))
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.args and not e.keywords:
            if e.func.id in ("min", "max"):
                parts = [self.value(a) for a in e.args]
                pick = min if e.func.id == "min" else max
                return pick(p[0] for p in parts), pick(p[1] for p in parts)
            if e.func.id == "len":
                shape = self.shape(e.args[0])
                return (float(shape[0]), float(shape[0])) if shape else _ANYWHERE
            if e.func.id == "int":
                return self.value(e.args[0])
            if e.func.id == "abs":
                low, high = self.value(e.args[0])
                return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        if isinstance(e, ast.Subscript) and isinstance(e.value, ast.Attribute) and e.value.attr == "shape":
            shape = self.shape(e.value.value)
            at = e.slice.value if isinstance(e.slice, ast.Constant) else None
            if shape is not None and isinstance(at, int) and -len(shape) <= at < len(shape):
                return float(shape[at]), float(shape[at])
        if isinstance(e, ast.Attribute) and e.attr == "size":
            shape = self.shape(e.value)
            return (float(math.prod(shape)),) * 2 if shape is not None else _ANYWHERE  # type: ignore[return-value]
        return _ANYWHERE

    def combined(self, op: ast.operator, a: Interval, b: Interval) -> Interval:
        if isinstance(op, ast.Add):
            return a[0] + b[0], a[1] + b[1]
        if isinstance(op, ast.Sub):
            return a[0] - b[1], a[1] - b[0]
        if any(math.isinf(x) for x in (*a, *b)):
            return _ANYWHERE
        if isinstance(op, ast.Mult):
            found = [x * y for x in a for y in b]
            return min(found), max(found)
        if isinstance(op, ast.FloorDiv) and (b[0] > 0 or b[1] < 0):
            found = [x // y for x in a for y in b]
            return min(found), max(found)
        if isinstance(op, ast.Mod) and b[0] > 0:
            return 0.0, b[1] - 1
        return _ANYWHERE
