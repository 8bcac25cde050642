"""Statements that go through the same rows one after the other.

Where each statement reads of what those before it wrote only its own rows, threads need not meet between them:
each takes a slab of rows through all of them, which stays in its cache. Time loops without neighbours,
recurrences along an inner axis, the rows of a softmax and the images of a batch are such chains.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mirabelle.arraytypes.programs.steps import FoldStep, KernelStep, Ref, Step
from mirabelle.backends.host.layout import stretched_strides

# With fewer rows than this there is little to share among threads.
LEAST_ROWS = 4

Place = tuple[int, int]
# Distances from row to row, and the bytes of a row from where an operand begins.
Extent = tuple[tuple[int, ...] | None, int, int]


class Chain(NamedTuple):
    """`length` statements from the `first` on, over the same `rows`; how many bytes they touch, and the rows of
    a slab, if a user has chosen them."""

    first: int
    length: int
    rows: int
    nbytes: int
    slab: int = 0


class _Access(NamedTuple):
    """What a statement reads or writes: its first byte in a slot, its extent over the statement's index space,
    and the storage it is in, with the bytes of that."""

    begin: int
    form: tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, size of an element
    storage: int
    slot: int
    span: tuple[int, int]
    writes: bool
    scattered: bool


class _Group:
    """What statements touch of a storage, stepping through it alike from row to row: windows of bytes of the
    first row. Those of one window have rows that do not overlap, and the windows as wholes do not either."""

    __slots__ = ("ends", "lows", "reach", "strides", "writes")

    def __init__(self, strides: tuple[int, ...] | None, reach: tuple[int, int]) -> None:
        self.strides = strides
        # How far the last rows are before and after the first.
        self.reach = reach
        self.writes = False
        self.lows: list[int] = []
        self.ends: list[int] = []

    @property
    def hull(self) -> tuple[int, int]:
        return self.lows[0] + self.reach[0], self.ends[-1] + self.reach[1]


class _Rows:
    """What statements touch in each of their leading rows."""

    def __init__(self, lead: tuple[int, ...]) -> None:
        self.lead = lead
        self.groups: dict[int, list[_Group]] = {}  # by storage
        self.slots: dict[int, list[tuple[int, tuple[int, int]]]] = {}  # the storages of a slot
        self.beside: dict[int, list[list[_Group]]] = {}  # the groups in the same bytes, by storage
        self.extents: dict[Any, Extent] = {}

    def take(self, accesses: Sequence[_Access]) -> bool:
        """Note one more statement, if its rows depend on no others. (What is noted of one that is refused
        stays: nothing can follow it.)"""
        for x in accesses:
            groups = self.groups.get(x.storage)
            if groups is None:
                groups = self.enter(x)
            strides, low, high = self.extent(x)
            low, high = low + x.begin, high + x.begin
            for g in groups:
                if g.strides == strides:
                    break
            else:
                reach = [s * (n - 1) for n, s in zip(self.lead, strides or (), strict=False)]
                g = _Group(strides, (sum([min(0, r) for r in reach]), sum([max(0, r) for r in reach])))
                groups.append(g)
            i = bisect.bisect_right(g.lows, low) - 1
            if i >= 0 and high <= g.ends[i] and (g.writes or not x.writes):
                continue
            if not self.place(g, low, high, x.writes):
                return False
            for others in self.beside[x.storage]:
                for h in others:
                    if h is not g and (g.writes or h.writes) and not self.independent(g, h):
                        return False
        return True

    def place(self, g: _Group, low: int, high: int, writes: bool) -> bool:
        """Add a window to a group; those that overlap it as wholes become one with it."""
        before, after = g.reach
        first = bisect.bisect_right(g.ends, low + before - after)
        last = bisect.bisect_left(g.lows, high + after - before)
        if first < last:
            low, high = min(low, g.lows[first]), max(high, g.ends[last - 1])
        g.lows[first:last], g.ends[first:last] = [low], [high]
        if g.writes:
            return self.nested(g.strides, high - low)
        g.writes = writes
        return not writes or all(self.nested(g.strides, b - a) for a, b in zip(g.lows, g.ends, strict=True))

    def enter(self, x: _Access) -> list[_Group]:
        """A storage that was not touched before."""
        groups: list[_Group] = []
        self.groups[x.storage] = groups
        beside = self.beside[x.storage] = [groups]
        others = self.slots.setdefault(x.slot, [])
        for storage, span in others:
            if span[0] < x.span[1] and x.span[0] < span[1]:
                beside.append(self.groups[storage])
                self.beside[storage].append(groups)
        others.append((x.storage, x.span))
        return groups

    def extent(self, x: _Access) -> Extent:
        found = self.extents.get(x.form)
        if found is None:
            shape, strides, size = x.form
            count = len(self.lead)
            low, high = 0, size
            for n, s in zip(shape[count:], strides[count:], strict=True):
                low += min(0, s * (n - 1))
                high += max(0, s * (n - 1))
            rows = tuple([0 if n == 1 else s for n, s in zip(self.lead, strides, strict=False)])
            found = self.extents[x.form] = rows if shape[:count] == self.lead else None, low, high
        if x.scattered or found[0] is None:
            return None, x.span[0] - x.begin, x.span[1] - x.begin
        return found

    def nested(self, strides: tuple[int, ...] | None, width: int) -> bool:
        """Do rows of so many bytes that are so far apart not overlap?"""
        if strides is None:
            return False
        for n, s in zip(reversed(self.lead), reversed(strides), strict=True):
            if n > 1:
                if s < width:
                    return False
                width = s * n
        return True

    def independent(self, a: _Group, b: _Group) -> bool:
        """Do different rows of two groups not overlap?"""
        if a.strides == b.strides and self.nested(
            a.strides, max(a.ends[-1], b.ends[-1]) - min(a.lows[0], b.lows[0])
        ):
            return True
        (first, last), (begin, end) = a.hull, b.hull
        return first >= end or begin >= last

    @property
    def nbytes(self) -> int:
        """About as many bytes as are touched."""
        rows = math.prod(self.lead)
        found = 0
        for slot in self.slots.values():
            for storage, (begin, end) in slot:
                touched = sum(
                    [b - a for g in self.groups[storage] for a, b in zip(g.lows, g.ends, strict=True)]
                )
                found += min(end - begin, rows * touched)
        return found


def chains(
    steps: Sequence[tuple[int, Step, Callable[[int], bool]]],
    place: Callable[[Ref], Place],
    chosen: Mapping[int, int] | None = None,
) -> list[Chain]:
    """The chains among statements, given as their numbers, their steps, and what says whether so many rows of
    them can be run by themselves.

    `chosen` are rows of a slab by the numbers of steps: a single statement of these is a chain, too.
    """
    found: list[Chain] = []
    members: list[tuple[list[_Access], Callable[[int], bool]]] = []
    chosen = chosen or {}
    first, slab = 0, 0
    rows: _Rows | None = None
    for number, step, sliced in (*steps, (-1, None, None)):
        if isinstance(step, (KernelStep, FoldStep)) and sliced is not None:
            mine = _accesses(step, place), sliced
            if members and number == first + len(members):
                longer = _with_one_more(rows, members, mine, step)
                if longer is not None:
                    rows = longer
                    members.append(mine)
                    slab = min(filter(None, (slab, chosen.get(step.number, 0))), default=0)
                    continue
        if rows is not None and (len(members) > 1 or slab):
            count = math.prod(rows.lead)
            found.append(
                Chain(first, len(members), count, rows.nbytes, min(slab * count // rows.lead[0], count))
            )
        members, rows, slab = [], None, 0
        if isinstance(step, (KernelStep, FoldStep)) and sliced is not None:
            rows = _with_one_more(None, [], mine, step)
            if rows is not None:
                first, members, slab = number, [mine], chosen.get(step.number, 0)
    return found


def has_rows(step: KernelStep | FoldStep, place: Callable[[Ref], Place]) -> bool:
    """Can leading rows of a statement be computed by themselves, as far as its memory says?"""
    return _with_one_more(None, [], (_accesses(step, place), lambda rows: True), step) is not None


def _with_one_more(
    rows: _Rows | None,
    members: Sequence[tuple[list[_Access], Callable[[int], bool]]],
    one: tuple[list[_Access], Callable[[int], bool]],
    step: KernelStep | FoldStep,
) -> _Rows | None:
    """The rows of statements and of one more, perhaps told apart along fewer axes."""
    shape = tuple(step.request.shape)
    most = min(step.axes, default=len(shape)) if isinstance(step, FoldStep) else len(shape)
    if rows is not None:
        same = 0
        while same < min(most, len(rows.lead)) and shape[same] == rows.lead[same]:
            same += 1
        most = same
    for count in range(most, 0, -1):
        size = math.prod(shape[:count])
        if size < LEAST_ROWS:
            return None
        if rows is None or len(rows.lead) != count:
            rows = _Rows(shape[:count])
            if not all(may(size) and rows.take(accesses) for accesses, may in members):
                continue
        if one[1](size) and rows.take(one[0]):
            return rows
    return None


def _accesses(step: KernelStep | FoldStep, place: Callable[[Ref], Place]) -> list[_Access]:
    shape = tuple(step.request.shape)
    found = []
    ref: Any
    for ref in step.request.leaves:
        found.append(_access(ref, shape, place, False))
    for ref in step.dests:
        found.append(_access(ref, ref.shape, place, True))
    return found


def _access(ref: Ref, shape: tuple[int, ...], place: Callable[[Ref], Place], writes: bool) -> _Access:
    slot, begin = place(ref)
    strides = ref.strides if ref.shape == shape else tuple(stretched_strides(ref, shape))
    start, storage = begin - ref.offset, ref.storage
    span = start, start + storage.nbytes
    form = shape, strides, ref.dtype.itemsize
    return _Access(begin, form, storage.number, slot, span, writes, ref.table)
