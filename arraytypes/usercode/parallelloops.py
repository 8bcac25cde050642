"""Which turns of a loop do not depend on each other: found in its source, so that threads may run them at once.

    for i in range(1, n - 1):
        for j in range(1, m - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])

Both loops are parallel: no turn reads or writes an element that another one writes. `Nest` says that of loops
that stand directly within each other. Indices are followed as sums of variables (`2 * i + n - 1`); two accesses
to an array stay apart if in one of its dimensions they are at the same sum of a loop's variable, or never meet.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirabelle.arraytypes.usercode.gathering import reduction_of
from mirabelle.arraytypes.usercode.rewriting import Liveness, names_loaded, names_stored

# A sum of variables: how often each is in it, "" for what is constant.
Sum = dict[Any, int]
# How many loops a grid may stand for.
MOST_DIMENSIONS = 3


def affine(e: ast.expr) -> Sum | None:
    """An integer expression as a sum of variables; None if it is none.

    >>> affine(ast.parse("2 * i + n - 1", mode="eval").body)
    {'i': 2, 'n': 1, '': -1}
    """
    if isinstance(e, ast.Constant):
        return {"": e.value} if type(e.value) is int else None
    if isinstance(e, ast.Name):
        return {e.id: 1}
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        inner = affine(e.operand)
        return None if inner is None else _scaled(inner, -1)
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
        left, right = affine(e.left), affine(e.right)
        if left is None or right is None:
            return None
        return _plus(left, right, -1 if isinstance(e.op, ast.Sub) else 1)
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult):
        left, right = affine(e.left), affine(e.right)
        for a, b in ((left, right), (right, left)):
            if a is not None and b is not None and set(a) <= {""}:
                return _scaled(b, a.get("", 0))
        return None
    if is_size(e):
        return {f"#{ast.dump(e)}": 1}  # (a number that no turn changes)
    return None


def is_size(e: ast.AST) -> bool:
    """Is it `x.shape[0]`, `x.size` or `len(x)`?"""
    if isinstance(e, ast.Subscript):
        return (
            isinstance(e.value, ast.Attribute)
            and e.value.attr == "shape"
            and isinstance(e.value.value, ast.Name)
            and isinstance(e.slice, ast.Constant)
        )
    if isinstance(e, ast.Attribute):
        return e.attr in ("size", "ndim") and isinstance(e.value, ast.Name)
    return (
        isinstance(e, ast.Call)
        and isinstance(e.func, ast.Name)
        and e.func.id == "len"
        and len(e.args) == 1
        and isinstance(e.args[0], ast.Name)
    )


def _scaled(a: Sum, by: int) -> Sum:
    return {n: c * by for n, c in a.items() if c * by}


def _plus(a: Sum, b: Sum, by: int = 1) -> Sum:
    found = dict(a)
    for n, c in b.items():
        found[n] = found.get(n, 0) + by * c
    return {n: c for n, c in found.items() if c}


def is_counted(s: ast.stmt) -> bool:
    """Is it `for i in range(...)`, with nothing that stands after its last turn?"""
    return isinstance(s, ast.For) and isinstance(s.target, ast.Name) and not s.orelse and _is_range(s.iter)


def _is_range(e: ast.expr) -> bool:
    called = isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and not e.keywords
    return called and e.func.id == "range"  # type: ignore[attr-defined]


def range_of(loop: ast.For) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Start, stop and step of a counted loop."""
    assert isinstance(loop.iter, ast.Call)
    args = loop.iter.args
    zero, one = ast.Constant(0), ast.Constant(1)
    if len(args) == 1:
        return zero, args[0], one
    return args[0], args[1], args[2] if len(args) == 3 else one


def _step(loop: ast.For) -> int | None:
    found = affine(range_of(loop)[2])
    return found[""] if found is not None and set(found) == {""} else None


@dataclass
class Access:
    """An element that is read or written: the sums of its indices, None where one is no sum."""

    sums: list[Sum | None]
    writes: bool


@dataclass
class Nest:
    """Loops directly within each other, of which some are parallel; `why` says why none is.

    `reductions` are what variables gather over all turns: a sum, a product, the smallest or largest number.
    """

    loops: list[ast.For]
    parallel: list[ast.For] = field(default_factory=list)
    reductions: dict[str, str] = field(default_factory=dict)
    why: str = ""


def nest_of(loop: ast.For, ranks: Mapping[str, int], left: Iterable[str] = ()) -> Nest:
    """What is parallel of a counted loop and those that stand directly within it.

    `ranks` are the dimensions of arrays by name, all of them memories of their own; `left` the variables that
    are read after the loop.
    """
    loops = [loop]
    while len(loops[-1].body) == 1 and is_counted(loops[-1].body[0]):
        inner = loops[-1].body[0]
        assert isinstance(inner, ast.For)
        loops.append(inner)
    nest = Nest(loops)
    body = loops[-1].body
    stored = names_stored([loop])
    carried = (Liveness(body).block(body, set()) & names_stored(body)) - set(ranks)
    for name in sorted(carried):
        how = reduction_of(name, loop)
        if not how:
            nest.why = f"each turn needs `{name}` of the one before"
            return nest
        nest.reductions[name] = how
    unknown = (set(left) & stored) - {n.target.id for n in loops if isinstance(n.target, ast.Name)}
    unknown -= set(nest.reductions)
    if unknown:
        nest.why = f"`{min(unknown)}` is read after the loop"
        return nest
    accesses = accesses_of(loop, ranks)
    if isinstance(accesses, str):
        nest.why = accesses
        return nest
    together = _Together(loop, stored, accesses)
    for each in loops:
        why = together.unfit(each)
        if not why:
            nest.parallel.append(each)
        nest.why = nest.why or why
    if nest.parallel:
        nest.why = ""
        nest.parallel.sort(key=together.axis)
        del nest.parallel[:-MOST_DIMENSIONS]
    return nest


def accesses_of(loop: ast.stmt, ranks: Mapping[str, int]) -> dict[str, list[Access]] | str:
    """The elements of arrays that a loop reads and writes; why they are not known, if that is so."""
    whole = taken_whole(loop, ranks)
    if whole:
        return f"`{min(whole)}` is taken as a whole"
    if any(isinstance(n, ast.For) and not _is_range(n.iter) for n in ast.walk(loop)):
        return "it goes through arrays together"
    found: dict[str, list[Access]] = {}
    updated = {id(n.target) for n in ast.walk(loop) if isinstance(n, ast.AugAssign)}
    for n in ast.walk(loop):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in ranks:
            items = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
            if len(items) != ranks[n.value.id] or any(isinstance(i, ast.Slice) for i in items):
                return f"`{n.value.id}` is taken in parts"
            writes = not isinstance(n.ctx, ast.Load) or id(n) in updated
            found.setdefault(n.value.id, []).append(Access([affine(i) for i in items], writes))
    return found


def taken_whole(loop: ast.stmt, ranks: Mapping[str, int]) -> set[str]:
    """The arrays that a loop computes with, or hands to functions, as a whole.

    >>> taken_whole(ast.parse("for i in range(len(x)): y[i] = f(A, x[i])").body[0], {"x": 1, "y": 1, "A": 2})
    {'A'}
    """
    found: set[str] = set()
    todo: list[ast.AST] = [loop]
    while todo:
        n = todo.pop()
        if is_size(n):
            continue
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
            todo.append(n.slice)
        elif isinstance(n, ast.For) and not _is_range(n.iter):
            todo += [*n.body, *n.orelse]  # (what it goes through is taken element by element)
        elif isinstance(n, ast.Name):
            found |= {n.id} & set(ranks)
        else:
            todo += ast.iter_child_nodes(n)
    return found


class _Together:
    """Do turns of a loop touch what others write?"""

    def __init__(self, whole: ast.For, stored: set[str], accesses: dict[str, list[Access]]) -> None:
        self.stored = stored
        self.pairs = [
            (a, b)
            for found in accesses.values()
            for k, a in enumerate(found)
            for b in found[k:]
            if a.writes or b.writes
        ]
        self.ranges: dict[str, tuple[Sum, Sum] | None] = {}
        self.assigned = {
            n for s in ast.walk(whole) if isinstance(s, (ast.Assign, ast.AugAssign)) for n in names_stored([s])
        }
        for n in ast.walk(whole):
            if isinstance(n, ast.For) and isinstance(n.target, ast.Name):
                known = n.target.id not in self.ranges and n.target.id not in self.assigned and is_counted(n)
                self.ranges[n.target.id] = _interval(n) if known else None

    def unfit(self, loop: ast.For) -> str:
        """Why the turns of a loop are not to be run at once; empty if they may be."""
        assert isinstance(loop.target, ast.Name)
        name = loop.target.id
        if self.ranges.get(name) is None:
            return f"`{name}` is changed within the loop"
        if names_loaded([loop.iter]) & self.stored:
            return f"how many turns `{name}` counts depends on another loop"
        if _breaks(loop):
            return "it is left by `break`"
        step = _step(loop)
        if not step:
            return f"the step of `{name}` is no constant"
        for a, b in self.pairs:
            if not any(self.apart(x, y, name, step) for x, y in zip(a.sums, b.sums, strict=True)):
                return f"turns of `{name}` touch elements that others write"
        return ""

    def apart(self, x: Sum | None, y: Sum | None, name: str, step: int) -> bool:
        """Are two indices different whenever they are of different turns?"""
        if x is None or y is None:
            return False
        difference = _plus(x, y, -1)
        by = x.get(name, 0)
        if by and set(difference) <= {""} and not (set(x) & self.stored) - {name}:
            distance = difference.get("", 0)
            return not distance or distance % (by * step) != 0
        # (Each turn has variables of its own.)
        between = _plus(self.tagged(x, 1), self.tagged(y, 2), -1)
        return self.positive(between) or self.positive(_scaled(between, -1))

    def tagged(self, a: Sum, of: int) -> Sum:
        return {(n, of) if n in self.stored else n: c for n, c in a.items()}

    def positive(self, a: Sum) -> bool:
        """Is a sum at least 1, wherever its loops are?"""
        for _ in range(2 * len(self.ranges) + 1):
            moving = [n for n in a if isinstance(n, tuple)]
            if not moving:
                return set(a) <= {""} and a.get("", 0) > 0
            n = moving[0]
            known = self.ranges.get(n[0])
            if known is None:
                return False
            end = known[0] if a[n] > 0 else known[1]
            a = _plus(_plus(a, {n: -a[n]}), self.tagged(end, n[1]), a[n])
        return False

    def axis(self, loop: ast.For) -> int:
        """Along which dimension of what is written a loop goes (neighbouring threads write neighbours)."""
        assert isinstance(loop.target, ast.Name)
        for a, b in self.pairs:
            for d, x in enumerate((a if a.writes else b).sums):
                if x is not None and loop.target.id in x:
                    return d
        return 0


def _interval(loop: ast.For) -> tuple[Sum, Sum] | None:
    """The first and last number that a loop's variable may be, as sums."""
    step = _step(loop)
    ends = [affine(e) for e in range_of(loop)[:2]]
    if ends[0] is None or ends[1] is None or not step:
        return None
    if step > 0:
        return ends[0], _plus(ends[1], {"": -1})
    return _plus(ends[1], {"": 1}), ends[0]


def _breaks(loop: ast.For) -> bool:
    """Is a loop left before its end?"""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Break):
            return True
        if not isinstance(n, (ast.For, ast.While)):
            todo += ast.iter_child_nodes(n)
    return False


def one_turn(loop: ast.For, index: ast.expr) -> None:
    """Make a counted loop turn once, for the turn of this index."""
    start, _, step = range_of(loop)

    def here() -> ast.expr:
        at = ast.BinOp(copy.deepcopy(index), ast.Mult(), copy.deepcopy(step))
        return ast.BinOp(copy.deepcopy(start), ast.Add(), at)

    assert isinstance(loop.iter, ast.Call)
    loop.iter.args = [here(), ast.BinOp(here(), ast.Add(), ast.Constant(1))]
    ast.fix_missing_locations(loop)
