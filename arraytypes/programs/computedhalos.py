"""What a process computes of its neighbours' parts by itself, where that takes less time than to wait for it.

    for _ in range(100):
        v[1:-1] = u[2:] + u[:-2]
        u[1:-1] = v[2:] + v[:-2]

Each statement needs one element from across each cut, and a message for it takes longer than to compute it.
So a message brings more elements at once, as many as are needed to compute what the following statements need:
each writes what this process holds, and the elements across its cuts that the next ones read.

It is decided backwards, from the last statement on, on all processes alike, and only widens messages that there
are anyway: an operand that would have to be fetched for this alone is not.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from mirabelle.arraytypes.distributed.overlapping import around
from mirabelle.arraytypes.distributed.transfers import Box, volume
from mirabelle.arraytypes.programs.dividedvalues import (
    Epoch,
    Item,
    Operand,
    covers,
    in_base,
    region_of,
)
from mirabelle.arraytypes.programs.steps import FoldStep, Ref

# What a process may do across its cuts for one statement, in bytes read and written: less than a message takes.
# An addition takes as long as so many bytes.
AFFORDABLE, ADDITION = 1 << 15, 4
# Boxes of one statement, and processes that something comes from at once.
MOST = 8


class Fill(NamedTuple):
    """A box of a result from across a cut: what of it a statement leaves as it was, and what brought that."""

    epoch: Epoch
    box: Box
    rest: list[Box]
    before: Epoch | None


class Across(NamedTuple):
    """A box of a statement that another process owns, and the results that are filled in, by their numbers.

    (None: the statement writes nothing there.)
    """

    item: Item
    box: Box | None
    fills: dict[int, Fill]


def computed_here(work: Any) -> dict[int, list[Across]]:
    """What this process computes as well, by the numbers of items. (Their epochs need no messages then.)"""
    by_item: dict[int, list[tuple[tuple[int, int], Epoch]]] = {}
    for key, e in work.epochs.items():
        by_item.setdefault(e.ready, []).append((key, e))
    found: dict[int, list[Across]] = {}
    for at in reversed(range(len(work.items))):
        item = work.items[at]
        wanted = [(key, e) for key, e in by_item.get(at, ()) if e.pieces]
        if not wanted or not isinstance(item, Item) or isinstance(item.step, FoldStep):
            continue
        for _, e in wanted:
            e.settle()
        try:
            trial = _Trial(work, item, at)
            for key, e in wanted:
                trial.fill(key, e)
            trial.judge()
        except _Unwanted:
            continue
        for epoch, base, q, box in trial.demands:
            work.ask(epoch, base, {q: [box]}, at)
        for _, e in wanted:
            e.computed = True
        found[at] = trial.mine
    return found


class _Unwanted(Exception):
    """It is better to wait for this."""


class _Trial:
    """What of one item is computed across cuts, on all processes."""

    def __init__(self, work: Any, item: Item, at: int) -> None:
        self.work, self.item, self.at = work, item, at
        self.demands: list[tuple[Epoch, Any, int, Box]] = []
        # What each process does for it, in bytes; how many boxes it computes.
        self.bytes: dict[int, int] = {}
        self.boxes: dict[int, set[Box | None]] = {}
        self.mine: list[Across] = []
        numbers = [d.ref.storage.number for d in item.dests]
        if len(set(numbers)) < len(numbers):
            raise _Unwanted
        self.operands = [self._known(o) for o in item.operands]
        refs = [o.ref for o in (*item.operands, *item.dests) if isinstance(o, Operand)]
        request = getattr(item.step, "request", None)
        cost = sum(step[0].op.cost for step in request.key[0]) if request is not None else 0
        self.each = sum(r.dtype.itemsize for r in refs) + ADDITION * cost
        # (As the item, but with what brings the operands there.)
        self.wider = Item(item.step, item.target, item.lead)
        self.wider.operands, self.wider.dests = self.operands, item.dests

    def _known(self, o: Operand | Ref) -> Operand | Ref:
        """An operand with the epoch in which it is read."""
        if isinstance(o, Ref) or o.shown.base.replicated:
            return o
        number = o.ref.storage.number
        if number in self.work.combined:
            raise _Unwanted
        return o._replace(epoch=self.work.epochs.get((number, self._version(number))))

    def _version(self, number: int) -> int:
        """How often a storage has been written to before the item."""
        return bisect.bisect_left(self.work.history.get(number, ()), self.at)

    def fill(self, key: tuple[int, int], epoch: Epoch) -> None:
        """Find out what it takes to have the boxes of an epoch without a message."""
        number, version = key
        places = [k for k, d in enumerate(self.item.dests) if d.ref.storage.number == number]
        if len(places) != 1 or version != self._version(number) + 1:
            raise _Unwanted
        (place,) = places
        dest = self.item.dests[place]
        before = self.work.epochs.get((number, version - 1))
        for (_, q), boxes in epoch.pieces.items():
            for box in boxes:
                inside = _written(dest, self.item.shape, box)
                rest = [box] if inside is None else around(box, in_base(dest.shown, inside))
                for r in rest:
                    if before is None:
                        raise _Unwanted
                    self.demands.append((before, dest.shown.base, q, r))
                if inside is not None:
                    self._read(q, inside)
                self.boxes.setdefault(q, set()).add(inside)
                self.bytes[q] = self.bytes.get(q, 0) + volume(box) * self.each
                if q == self.work.comm.rank:
                    self._note(inside, place, Fill(epoch, box, rest, before))

    def _read(self, q: int, box: Box) -> None:
        """What a process needs of the operands for a box."""
        for o in self.operands:
            if isinstance(o, Ref) or o.shown.base.replicated:
                continue
            base = o.shown.base
            need = in_base(o.shown, region_of(o, self.item.shape, box)[0])
            own = self.work.boxes(base).own[q]
            if own is not None and covers(own, need):
                continue
            if o.epoch is None:
                raise _Unwanted  # (nobody needs any of it now)
            self.demands.append((o.epoch, base, q, need))

    def _note(self, box: Box | None, place: int, fill: Fill) -> None:
        for known in self.mine:
            if known.box == box and place not in known.fills:
                known.fills[place] = fill
                return
        self.mine.append(Across(self.wider, box, {place: fill}))

    def judge(self) -> None:
        """Is it worth it, on all processes?"""
        most = max(self.bytes.values(), default=0), max(map(len, self.boxes.values()), default=0)
        if most[0] > AFFORDABLE or most[1] > MOST:
            raise _Unwanted
        partners: dict[tuple[int, int], set[int]] = {}
        given: dict[int, dict[int, set[int]]] = {}
        for epoch, *_ in self.demands:
            if id(epoch) not in given:
                from_whom = given[id(epoch)] = {}
                for p, q in epoch.pieces:
                    from_whom.setdefault(q, set()).add(p)
        for epoch, base, q, box in self.demands:
            known = partners.get((id(epoch), q))
            if known is None:
                known = partners[id(epoch), q] = set(given[id(epoch)].get(q, ()))
            known.update(self.work.boxes(base).holders(box, q))
            if len(known) > MOST:
                raise _Unwanted


def _written(dest: Operand, shape: Sequence[int], box: Box) -> Box | None:
    """The box of an item that writes to a box of a result's storage; None where it writes to none of it."""
    shown = dest.shown
    whole = dest.ref.dtype == dest.ref.storage.dtype and shown.kind is None
    if not whole or shown.pinned or any(s != 1 for s, a in zip(shown.steps, shown.axes, strict=True) if a >= 0):
        raise _Unwanted
    if tuple(shown.shape) != tuple(shape):
        raise _Unwanted
    found = [(0, n) for n in shape]
    for axis, (a, b) in enumerate(box):
        start = shown.starts[axis]
        if axis not in shown.axes:
            if not a <= start < b:
                return None
            continue
        d = shown.axes.index(axis)
        found[d] = max(a - start, 0), min(b - start, shape[d])
        if found[d][0] >= found[d][1]:
            return None
    return tuple(found)
