"""What is known of a plan over processes while it is divided: values, what of them has to be where, and when.

See `dividing`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.distributed.layouts import Partition
from mirabelle.arraytypes.distributed.transfers import Box, volume
from mirabelle.arraytypes.distributed.views import Map
from mirabelle.arraytypes.programs.steps import (
    Plan,
    Ref,
    Storage,
)
from mirabelle.dispatch.schedule import Request


class Unfit(Exception):
    """These steps cannot be divided beforehand: parts that are dealt out, gathers from divided arrays."""


class Value:
    """What a local storage holds, as far as a plan asks."""

    __slots__ = ("dtype", "nbytes", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize


class LocalFold(NamedTuple):
    """A reduction of a process's part."""

    reduction: Any
    axes: tuple[int, ...]
    keepdims: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    label: str
    line: Any


class Memory(NamedTuple):
    """A box of a divided array that lies in local memory, in C's order from some byte on."""

    storage: Storage
    begin: int
    box: Box

    def strides(self, itemsize: int) -> list[int]:
        found = [itemsize] * len(self.box)
        for d in range(len(self.box) - 2, -1, -1):
            found[d] = found[d + 1] * (self.box[d + 1][1] - self.box[d + 1][0])
        return found


class Boxes:
    """The box that each process holds of a partition, and who holds something of a box."""

    def __init__(self, base: Partition) -> None:
        self.base = base
        ranks = range(base.size)
        self.own = [None if 0 in base.local_shape(q) else box_of(base.held(q)) for q in ranks]
        self.places = [base.coordinates(q) for q in ranks]
        # By dimensions of the mesh: which dimension each divides, and its runs (first, end, coordinate).
        self.cuts: dict[int, tuple[int, list[tuple[int, int, int]]]] = {}
        for d, split in enumerate(base.splits):
            if split is not None:
                runs = [(a, b, c) for c, held in enumerate(split.pieces) for a, b in held if a < b]
                self.cuts[split.mesh_axis] = d, sorted(runs)

    def holders(self, box: Box, q: int) -> Iterator[int]:
        """The others who hold something of a box; of those that hold the same, who is in line with `q`."""
        choices: list[Sequence[int]] = []
        for m in range(len(self.base.mesh)):
            if m not in self.cuts:
                choices.append((self.places[q][m],))
                continue
            d, runs = self.cuts[m]
            first = bisect.bisect_right(runs, box[d][0], key=_ends)
            end = bisect.bisect_left(runs, box[d][1], key=_begins)
            choices.append([c for _, _, c in runs[first:end]])
        for place in itertools.product(*choices):
            p = self.base.rank_at(place)
            if p != q and self.own[p] is not None:
                yield p


def _begins(run: tuple[int, int, int]) -> int:
    return run[0]


def _ends(run: tuple[int, int, int]) -> int:
    return run[1]


class Epoch:
    """What others need of an array from one write to it to the next: boxes by (owner, who needs it)."""

    __slots__ = ("computed", "first", "landed", "number", "pieces", "ready")

    def __init__(self, number: int, ready: int) -> None:
        self.number = number
        # The last item that writes to it, and the first that needs it.
        self.ready = ready
        self.first = 1 << 60
        self.pieces: dict[tuple[int, int], list[Box]] = {}
        # Where what this process receives will be.
        self.landed: list[Memory] = []
        # Does each compute what it needs (see `computedhalos`), rather than receive it?
        self.computed = False

    def settle(self) -> None:
        """One box from one process to another, where that is not much more than is needed."""
        for pair, boxes in self.pieces.items():
            boxes = [b for b in boxes if not any(covers(a, b) for a in boxes if a is not b and a != b)]
            boxes = sorted(set(boxes))
            hull = tuple(
                (min(b[d][0] for b in boxes), max(b[d][1] for b in boxes)) for d in range(len(boxes[0]))
            )
            self.pieces[pair] = [hull] if volume(hull) <= 2 * sum(map(volume, boxes)) else boxes


class Operand(NamedTuple):
    """What an item reads or writes of a storage, and which box of that each process touches."""

    ref: Ref
    shown: Map
    needs: Sequence[Box | None]
    # What brings what is not here; None if all is, on all processes.
    epoch: Epoch | None


class Item:
    """A statement for a partition: each process computes the box of its part."""

    __slots__ = ("dests", "folds", "lead", "operands", "step", "target")

    def __init__(self, step: Any, target: Partition, lead: int) -> None:
        self.step = step
        self.target = target
        self.lead = lead
        self.operands: list[Operand | Ref] = []
        self.dests: list[Operand] = []
        # Of reductions: how each result is divided, between whom terms are combined, a term's shape.
        self.folds: list[Any] = []

    def box(self, rank: int) -> Box | None:
        """What a process computes; None for nothing."""
        return box_of(self.target.held(rank)[self.lead :]) if 0 not in self.target.local_shape(rank) else None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.target.shape[self.lead :]


class Divided(NamedTuple):
    """The plan of one process: over which storages it is told the memory of, and which it returns."""

    plan: Plan
    inputs: list[int]
    outputs: list[int]
    written: list[int]
    partitions: dict[int, Partition]
    # For each exchange in order, the bytes this process sends and receives by rank.
    messages: list[tuple[dict[int, int], dict[int, int]]]
    # How many boxes that others own this process computes as well (see `computedhalos`).
    computed: int


def box_of(held: Any) -> Box:
    if any(len(h) != 1 for h in held):
        raise Unfit
    return tuple(h[0] for h in held)


def covers(a: Box, b: Box) -> bool:
    return all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(a, b, strict=True))


def meet(a: Box, b: Box) -> Box | None:
    found = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
    return found if all(low < high for low, high in found) else None


def in_base(shown: Map, region: Box) -> Box:
    """The box of the buffer in which a box of a view lies."""
    found = [(s, s + 1) for s in shown.starts]
    for axis, step, (a, b) in zip(shown.axes, shown.steps, region, strict=True):
        if axis >= 0:
            ends = shown.starts[axis] + step * a, shown.starts[axis] + step * (b - 1)
            found[axis] = min(ends), max(ends) + 1
    return tuple(found)


def region_of(operand: Operand, full: Sequence[int], box: Box) -> tuple[Box, tuple[int, ...]]:
    """What a box of a statement reads or writes of an operand: in its places, and how long."""
    shown, ref = operand.shown, operand.ref
    off = len(full) - len(ref.shape)
    region, shape = [], []
    for i, n in enumerate(shown.shape):
        d = off + i
        region.append(box[d] if d >= 0 and n == full[d] else (0, n))
        a, b = box[d] if ref.shape[i] != n else region[i]
        shape.append(b - a)
    return tuple(region), tuple(shape)


def copying(source: Ref) -> Request:
    return Request(((), (-1,)), [source], [], source.shape, [])  # type: ignore[list-item]
