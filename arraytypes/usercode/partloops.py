"""Rows and columns in loops, element by element: `A[i, :n] -= s * B[:n, j]` is one, and so is `A[i, :] @ x[:]`.

What a kernel is made of names single elements. Parts are taken apart where each has one slice of known bounds,
all of a statement have as many elements, and no element is written that the statement reads elsewhere.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any

from mirabelle.arraytypes.usercode.loopkinds import ELEMENTWISE, kind_of, kinds_of
from mirabelle.arraytypes.usercode.parallelloops import affine, nest_of
from mirabelle.arraytypes.usercode.rewriting import OURS

_ZEROS = {"b": 0, "i": 0, "f": 0.0, "c": 0j}
Bounds = Mapping[int, tuple[float, float]]


class _Whole(Exception):
    """A statement that cannot be taken apart."""


def has_parts(loop: ast.stmt) -> bool:
    return any(isinstance(n, ast.Slice) for n in ast.walk(loop))


def apart(loop: ast.stmt, values: Mapping[str, Any], ranks: Mapping[str, int], lie: Bounds) -> ast.stmt:
    """A loop whose statements on parts are loops over elements, as far as they can be: it is changed.

    `lie` says where the bounds of slices lie, by the ids of their expressions; sizes are those of `values`.

    >>> import numpy as np
    >>> loop = ast.parse("for i in range(4): A[i, 1:] -= x[0] * B[i, :-1]").body[0]
    >>> given = {"A": np.ones((4, 5)), "B": np.ones((4, 5)), "x": np.ones(3)}
    >>> print(ast.unparse(apart(loop, given, {"A": 2, "B": 2, "x": 1}, {})).replace(OURS, ""))
    for i in range(4):
        for t1 in range(5 - 1):
            A[i, 1 + t1] -= x[0] * B[i, 0 + t1]
    """
    made = _Apart(loop, values, ranks, lie)
    for n in list(ast.walk(loop)):
        for field in ("body", "orelse"):
            body = getattr(n, field, None)
            if isinstance(body, list):
                setattr(n, field, [x for s in body for x in made.statement(s)])
    return loop


class _Apart:
    def __init__(
        self, loop: ast.stmt, values: Mapping[str, Any], ranks: Mapping[str, int], lie: Bounds
    ) -> None:
        self.kinds = kinds_of(loop, values)
        self.values = values
        self.ranks = ranks
        self.lie = lie
        self.count = 0
        # Arrays of which an index counts from the beginning or from the end.
        self.either: set[str] = set()

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        if not isinstance(s, (ast.Assign, ast.AugAssign)) or not has_parts(s):
            return [s]
        if isinstance(s, ast.Assign) and len(s.targets) > 1:
            return [s]
        count = self.count
        changed = copy.copy(s)
        try:
            before: list[ast.stmt] = []
            changed.value = self.products(s.value, before)
            target = changed.targets[0] if isinstance(changed, ast.Assign) else changed.target
            if has_parts(target):  # type: ignore[arg-type]
                made = [*before, *self.elements(changed, target)]
            elif has_parts(changed.value):  # type: ignore[arg-type]
                raise _Whole
            else:
                made = [*before, changed]
        except _Whole:
            self.count = count
            return [s]
        for m in made:
            for n in ast.walk(m):
                if isinstance(n, (ast.expr, ast.stmt)) and not hasattr(n, "lineno"):
                    ast.copy_location(n, s)
            ast.fix_missing_locations(m)
        return made

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{OURS}{stem}{self.count}"

    # Products of vectors

    def products(self, e: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """An expression whose products of vectors are numbers that statements before it make."""
        pair = _product(e)
        if pair is not None:
            return self.product(*pair, before)
        made = copy.copy(e)
        for field, value in ast.iter_fields(e):
            if isinstance(value, ast.expr) and not isinstance(e, ast.Subscript):
                setattr(made, field, self.products(value, before))
            elif isinstance(value, list) and all(isinstance(x, ast.expr) for x in value):
                setattr(made, field, [self.products(x, before) for x in value])
        return made

    def product(self, a: ast.expr, b: ast.expr, before: list[ast.stmt]) -> ast.expr:
        at, total = self.fresh("t"), self.fresh("dot")
        count: list[ast.expr] = []
        pair = [self.element(x, at, count) for x in (a, b)]
        kind = kind_of(ast.BinOp(pair[0], ast.Mult(), pair[1]), self.kinds)
        if kind not in _ZEROS or len(count) != 2:
            raise _Whole
        self.kinds[total] = kind
        turn = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), ast.BinOp(pair[0], ast.Mult(), pair[1]))
        before.append(ast.Assign([ast.Name(total, ast.Store())], ast.Constant(_ZEROS[kind])))
        before.append(_loop(at, count[0], turn))
        return ast.Name(total, ast.Load())

    # Elements of parts

    def elements(self, s: Any, target: ast.expr) -> list[ast.stmt]:
        """A statement that writes to a part, as a loop."""
        before: list[ast.stmt] = []
        at, count = self.fresh("t"), list[ast.expr]()
        self.either.clear()
        element = self.element(target, at, count)
        if not isinstance(element, ast.Subscript) or not isinstance(element.value, ast.Name):
            raise _Whole
        element.ctx = ast.Store()
        changed = element.value.id
        value = self.element(s.value, at, count)
        if changed in self.either and any(_is_called(n, changed) for n in ast.walk(s.value)):
            raise _Whole  # (It may be an element that is read.)
        value = _Before(changed, at, before, self).visit(value)
        if isinstance(s, ast.AugAssign):
            kinds = [kind_of(x, self.kinds) for x in (element, ast.BinOp(element, s.op, value))]
            if not all(k in _ZEROS for k in kinds) or kinds[0] != max(kinds, key="bifc".index):
                raise _Whole  # (What NumPy refuses to write in place.)
        if isinstance(s, ast.Assign):
            turn: ast.stmt = ast.Assign([element], value)
        else:
            turn = ast.AugAssign(element, s.op, value)
        loop = _loop(at, count[0], turn)
        ast.fix_missing_locations(ast.copy_location(loop, s))
        if not nest_of(loop, self.ranks).parallel:
            raise _Whole
        return [*before, loop]

    def element(self, e: ast.expr, at: str, counts: list[ast.expr]) -> ast.expr:
        """Element `at` of an expression of parts; `counts` gets how many each has, which must be the same."""
        if isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name) and e.value.id in self.ranks:
            items = list(e.slice.elts) if isinstance(e.slice, ast.Tuple) else [e.slice]
            slices = [d for d, i in enumerate(items) if isinstance(i, ast.Slice)]
            if len(slices) > 1 or len(items) != self.ranks[e.value.id]:
                raise _Whole
            if not slices:
                return copy.deepcopy(e)
            size = self.values[e.value.id].shape[slices[0]]
            low, count = self.bounds(items[slices[0]], size)
            if counts and not _same(count, counts[0]):
                raise _Whole
            counts.append(count)
            made = [
                i if isinstance(i, ast.Slice) else self.counted(i, e.value.id, d) for d, i in enumerate(items)
            ]
            made[slices[0]] = ast.BinOp(low, ast.Add(), ast.Name(at, ast.Load()))
            index = ast.Tuple(made, ast.Load()) if len(made) > 1 else made[0]
            return ast.Subscript(ast.Name(e.value.id, ast.Load()), index, ast.Load())
        if isinstance(e, ast.Name):
            if e.id in self.ranks or self.kinds.get(e.id, "") not in _ZEROS:
                raise _Whole
            return ast.Name(e.id, ast.Load())
        if isinstance(e, (ast.Constant, ast.Subscript, ast.Attribute)):
            if has_parts(e):  # type: ignore[arg-type]
                raise _Whole
            return copy.deepcopy(e)
        if isinstance(e, ast.BinOp) and not isinstance(e.op, ast.MatMult):
            return ast.BinOp(self.element(e.left, at, counts), e.op, self.element(e.right, at, counts))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, (ast.USub, ast.UAdd)):
            return ast.UnaryOp(e.op, self.element(e.operand, at, counts))
        f = e.func if isinstance(e, ast.Call) and not e.keywords else None
        if isinstance(f, ast.Attribute) and f.attr in ELEMENTWISE and isinstance(f.value, ast.Name):
            return ast.Call(copy.deepcopy(f), [self.element(a, at, counts) for a in e.args], [])  # type: ignore[attr-defined]
        raise _Whole

    def counted(self, e: ast.expr, array: str, d: int) -> ast.expr:
        """An index that counts from the beginning, as far as it is known from where it counts."""
        known, size = affine(e), self.values[array].shape[d]
        if known is not None and set(known) <= {""}:
            at = known.get("", 0)
            return ast.Constant(at + size if -size <= at < 0 else at)
        low, high = self.lie.get(id(e), (-1.0, 0.0))
        if high < 0:
            return ast.BinOp(copy.deepcopy(e), ast.Add(), ast.Constant(size))
        if low < 0:
            self.either.add(array)
        return copy.deepcopy(e)

    def bounds(self, s: Any, size: int) -> tuple[ast.expr, ast.expr]:
        """Where a slice begins, and how many elements it has."""
        if s.step is not None:
            raise _Whole
        low = self.bound(s.lower, 0, size)
        high = self.bound(s.upper, size, size)
        return low, ast.BinOp(copy.deepcopy(high), ast.Sub(), copy.deepcopy(low))

    def bound(self, e: ast.expr | None, otherwise: int, size: int) -> ast.expr:
        if e is None:
            return ast.Constant(otherwise)
        known = affine(e)
        if known is not None and set(known) <= {""}:
            at = known.get("", 0)
            return ast.Constant(min(max(at + size if at < 0 else at, 0), size))
        low, high = self.lie.get(id(e), (-1.0, 0.0))
        if low < 0 or high > size:
            raise _Whole
        return copy.deepcopy(e)


class _Before(ast.NodeTransformer):
    """Single elements of an array that a loop writes to, read before it (NumPy reads them once)."""

    def __init__(self, array: str, at: str, before: list[ast.stmt], of: _Apart) -> None:
        self.array, self.at, self.before, self.of = array, at, before, of

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        moves = any(isinstance(n, ast.Name) and n.id == self.at for n in ast.walk(node.slice))
        if moves or not isinstance(node.value, ast.Name) or node.value.id != self.array:
            return node
        name = self.of.fresh("before")
        self.of.kinds[name] = kind_of(node, self.of.kinds)
        self.before.append(ast.Assign([ast.Name(name, ast.Store())], node))
        return ast.Name(name, ast.Load())


def _product(e: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The two vectors of `a @ b` or `np.dot(a, b)`, where both are parts."""
    found: Any = None
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.MatMult):
        found = e.left, e.right
    elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "dot":
        found = (
            tuple(e.args)
            if len(e.args) == 2 and isinstance(e.func.value, ast.Name) and not e.keywords
            else None
        )
    return found


def _is_called(e: ast.AST, name: str) -> bool:
    return isinstance(e, ast.Name) and e.id == name


def _same(a: ast.expr, b: ast.expr) -> bool:
    """Are two numbers of elements surely the same?"""
    x, y = affine(a), affine(b)
    return x == y if x is not None and y is not None else ast.dump(a) == ast.dump(b)


def _loop(at: str, count: ast.expr, turn: ast.stmt) -> ast.For:
    call = ast.Call(ast.Name("range", ast.Load()), [copy.deepcopy(count)], [])
    return ast.For(ast.Name(at, ast.Store()), call, [turn], [])
