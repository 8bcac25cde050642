"""A plan over processes made plans of each: what a process does of some steps, with the messages between.

All processes know how all arrays are divided, so each finds out by itself what it computes, sends and
receives. The result is a plan over local memory, which the local type runs as any other; messages are steps
of it. What a statement needs of others is fetched once, as long as nobody writes to it, and what several
statements need travels together: from the moment the last of it is written, to the first statement that cannot
go on without it. That one computes its inner part first. Terms of reductions travel together in the same way.

What cannot be divided beforehand (see `Unfit`) is run step by step, as statements outside of programs are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.distributed.combining import reduced_partition
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.execution import chosen, operand_plan, target_of
from mirabelle.arraytypes.distributed.kernelranges import Region
from mirabelle.arraytypes.distributed.kernels import linear
from mirabelle.arraytypes.distributed.layouts import Partition, Split, partition, runs
from mirabelle.arraytypes.distributed.overlapping import around
from mirabelle.arraytypes.distributed.transfers import Box, volume
from mirabelle.arraytypes.distributed.views import DBuffer, DView, Map
from mirabelle.arraytypes.programs.dividedlaunches import LaunchItem
from mirabelle.arraytypes.programs.exchanging import CombineStep, Exchange, FinishStep, StartStep
from mirabelle.arraytypes.programs.graph import c_strides
from mirabelle.arraytypes.programs.memory import place_temporaries
from mirabelle.arraytypes.programs.steps import (
    CopyStep,
    FoldStep,
    KernelStep,
    LaunchStep,
    Plan,
    Ref,
    Step,
    Storage,
    whole,
)
from mirabelle.arraytypes.proxies import proxy_of
from mirabelle.dispatch.schedule import Request
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf

_new = object.__new__
_BYTE = np.dtype(np.uint8)
# Where the pieces of a message begin.
_ALIGNMENT = 16
# Among more processes than this nobody works out what all of them send.
MOST = 256
# The numbers of storages that are made here begin with this one.
FURTHER = 1 << 20


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


class Epoch:
    """What others need of an array from one write to it to the next: boxes by (owner, who needs it)."""

    __slots__ = ("first", "landed", "number", "pieces", "ready")

    def __init__(self, number: int, ready: int) -> None:
        self.number = number
        # The last item that writes to it, and the first that needs it.
        self.ready = ready
        self.first = 1 << 60
        self.pieces: dict[tuple[int, int], list[Box]] = {}
        # Where what this process receives will be.
        self.landed: list[Memory] = []

    def settle(self) -> None:
        """One box from one process to another, where that is not much more than is needed."""
        for pair, boxes in self.pieces.items():
            boxes = [b for b in boxes if not any(_covers(a, b) for a in boxes if a is not b and a != b)]
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
        return _box(self.target.held(rank)[self.lead :]) if 0 not in self.target.local_shape(rank) else None

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


def divided(
    family: Any,
    comm: Communicator,
    steps: Sequence[Step],
    given: Mapping[int, Partition],
    wanted: Sequence[Storage],
) -> Divided:
    """The plan of this process for some steps, given how the storages that are there are divided.

    `wanted` are those that somebody needs afterwards. Raises `Unfit`.
    """
    work = _Dividing(family, comm, given)
    for step in steps:
        if not step.does_nothing:
            work.take(step)
    work.settle()
    return _Lowering(work, wanted).lowered()


def _box(held: Any) -> Box:
    if any(len(h) != 1 for h in held):
        raise Unfit
    return tuple(h[0] for h in held)


def _covers(a: Box, b: Box) -> bool:
    return all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(a, b, strict=True))


def _meet(a: Box, b: Box) -> Box | None:
    found = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
    return found if all(low < high for low, high in found) else None


def _in_base(shown: Map, region: Box) -> Box:
    """The box of the buffer in which a box of a view lies."""
    found = [(s, s + 1) for s in shown.starts]
    for axis, step, (a, b) in zip(shown.axes, shown.steps, region, strict=True):
        if axis >= 0:
            ends = shown.starts[axis] + step * a, shown.starts[axis] + step * (b - 1)
            found[axis] = min(ends), max(ends) + 1
    return tuple(found)


class _Dividing:
    """Which process computes what of each step, and what it needs for it."""

    def __init__(self, family: Any, comm: Communicator, given: Mapping[int, Partition]) -> None:
        self.family = family
        self.comm = comm
        if comm.size > MOST:
            raise Unfit
        self.given = frozenset(given)
        self.parts: dict[int, Partition] = {}
        self.dtypes: dict[int, np.dtype] = {}
        self.buffers: dict[int, DBuffer] = {}
        self.items: list[Item | LaunchItem] = []
        self.epochs: dict[tuple[int, int], Epoch] = {}
        # Of each storage: how often it was written to, and by which item last.
        self.writes: dict[int, int] = {}
        self.last: dict[int, int] = {}
        # Results that wait to be combined: the item that leaves terms of them, and the first that needs them.
        self.combined: dict[int, tuple[int, int]] = {}
        for number, part in given.items():
            self.divide(number, part)

    def divide(self, number: int, part: Partition) -> None:
        self.parts[number] = _in_runs(part)

    def view(self, ref: Ref) -> DView:
        """A view of memory that is not there, whose map can be asked for."""
        s = ref.storage
        buffer = self.buffers.get(s.number)
        if buffer is None:
            self.dtypes[s.number] = s.dtype
            buffer = _new(DBuffer)
            buffer.comm, buffer.inner, buffer.dtype = self.comm, self.family.inner, s.dtype
            buffer.partition, buffer.local, buffer._leaf = self.parts[s.number], None, None
            buffer.name = s.number
            self.buffers[s.number] = buffer
        shown = buffer.whole()
        if ref.offset == 0 and ref.shape == s.shape and ref.dtype == s.dtype and ref.is_contiguous:
            return shown  # type: ignore[no-any-return]
        return DView(buffer, proxy_of(ref.shape, ref.dtype, ref.strides, ref.offset), False)  # type: ignore[no-any-return]

    def map(self, ref: Ref) -> Map:
        found = self.view(ref).map
        if found is None or any(len(p) > 1 for held in found.pieces if held is not None for p in held):
            raise Unfit
        return found

    def take(self, step: Step) -> None:
        if isinstance(step, KernelStep):
            self.kernel(step, step.request, step.dests)
        elif isinstance(step, FoldStep):
            self.fold(step)
        elif isinstance(step, CopyStep) and step.source.shape == step.dest.shape:
            self.kernel(step, _copying(step.source), [step.dest])
        elif isinstance(step, LaunchStep):
            self.launch(step)
        else:
            raise Unfit

    def leaves(self, request: Request) -> list[Leaf]:
        refs: list[Any] = request.leaves
        return [Leaf(self.view(r), table=r.table) for r in refs]

    def kernel(self, step: Any, request: Request, dests: list[Ref]) -> None:
        _checked(request)
        target: Any = None
        for d in dests:
            number = d.storage.number
            if number not in self.parts:
                if d.is_whole:
                    continue
                self.divide(number, self.family._divided(d.storage.shape, self.comm))
            found = target_of(self.map(d))
            if target is not None and found != target:
                raise Unfit
            target = found
        if target is None:
            target = self.between(tuple(request.shape), self.leaves(request)), 0
        part, lead = target
        if part.shape[lead:] != tuple(request.shape) or any(d.shape != tuple(request.shape) for d in dests):
            raise Unfit
        for d in dests:
            if d.storage.number not in self.parts:
                if lead:
                    raise Unfit
                self.divide(d.storage.number, part)
        item = Item(step, _in_runs(part), lead)
        self.read(item, request)
        for d in dests:
            self.wrote(item, d)
        self.items.append(item)

    def between(self, shape: tuple[int, ...], leaves: list[Leaf]) -> Partition:
        """How a new value is divided: as its operands are, and half-way between those that are shifted.

        (Shifted operands are divided at shifted places, and what is computed of them is mostly written where
        none of them was.)
        """
        _, part = chosen(self.family, shape, leaves)
        maps: list[Map] = []
        for leaf in leaves:
            shown = None if leaf.table else leaf.view.map
            if shown is not None:
                maps.append(shown)
            elif not leaf.table:
                return part
        if any(m.partition is part and m.base is part for m in maps):
            return part
        splits = list(part.splits)
        for d, split in enumerate(splits):
            if split is None:
                continue
            found = []
            for m in maps:
                i = d - len(shape) + len(m.shape)
                if i < 0 or m.shape[i] != shape[d] or m.base.mesh != part.mesh:
                    continue
                pieces, of = m.pieces[i], m.base.splits[m.axes[i]]
                if pieces is not None and of is not None and of.mesh_axis == split.mesh_axis:
                    edges = Split(split.mesh_axis, pieces).edges
                    if edges is not None:
                        found.append(edges)
            if len(found) > 1:
                middle = [(min(e) + max(e)) // 2 for e in zip(*found, strict=True)]
                if all(a < b for a, b in itertools.pairwise(middle)):
                    splits[d] = Split(split.mesh_axis, runs(middle))
        return partition(part.shape, part.mesh, tuple(splits))

    def fold(self, step: FoldStep) -> None:
        request = step.request
        shape = tuple(request.shape)
        if 0 in shape:
            raise Unfit
        _checked(request)
        _, target = chosen(self.family, shape, self.leaves(request))
        item = Item(step, _in_runs(target), 0)
        self.read(item, request)
        copies = []
        for node, dest in zip(step.nodes, step.dests, strict=True):
            fold: Any = node
            result, group, local, regular = reduced_partition(target, fold, self.comm.rank)
            if not regular or fold.reduction.scalar is not None or fold.reduction.neutral(fold.dtype) is None:
                raise Unfit
            item.folds.append((result, group, local))
            known = self.parts.get(dest.storage.number)
            again = dest.storage.number in self.combined
            other = known is not None and known is not result
            if again or other or not dest.is_whole or fold.shape != dest.shape:
                # By way of memory of its own.
                s = Storage(FURTHER + len(self.parts), "temporary", fold)
                copies.append((whole(s), dest))
                dest = copies[-1][0]
            self.divide(dest.storage.number, result)
            item.dests.append(self.wrote(item, dest, note=False))
            if group and len(group) > 1:
                self.combined[dest.storage.number] = len(self.items), 1 << 60
        self.items.append(item)
        for source, dest in copies:
            self.kernel(CopyStep([], dest, source), _copying(source), [dest])

    def launch(self, step: LaunchStep) -> None:
        """A kernel of the user's."""
        item, at, size = LaunchItem(step), len(self.items), self.comm.size
        if not item.fits:
            raise Unfit
        for name, ref in (*item.refs.items(), *item.numbers.items()):
            number = ref.storage.number
            if number not in self.parts:  # (memory that nothing has been written to)
                self.divide(number, self.family._divided(ref.storage.shape, self.comm))
            self.used(number, at)
            if self.parts[number].size != size or (name in item.numbers and not self.parts[number].replicated):
                raise Unfit
            if name in item.refs:
                item.maps[name] = self.map(ref)
        if not item.divide(size):
            raise Unfit
        for name, ref in item.refs.items():
            shown, lacking = item.maps[name], [q for q in range(size) if name in item.lacks(q)]
            if not lacking or shown.base.replicated:
                continue
            if any(item.wraps(name, q) for q in lacking) and not self.view(ref).whole:
                raise Unfit
            needs = {q: [_in_base(shown, box) for box in item.needs(name, q)] for q in lacking}
            item.epochs[name] = self.demand(ref.storage.number, shown.base, needs, at)
        for slot in step.dests:
            self.wrote_to(step.operands[slot], at)
        self.items.append(item)

    def read(self, item: Item, request: Request) -> None:
        """Note what an item needs."""
        at = len(self.items)
        refs: list[Any] = request.leaves
        for ref in refs:
            number = ref.storage.number
            self.used(number, at)
            if ref.table:
                if not self.parts[number].replicated:
                    raise Unfit
                item.operands.append(ref)
                continue
            item.operands.append(self.operand(item, ref, at))

    def operand(self, item: Item, ref: Ref, at: int) -> Operand:
        number = ref.storage.number
        shown = self.map(ref)
        base = shown.base
        plan = operand_plan(shown, item.target, self.comm.rank)
        needs: list[Box | None] = []
        for need in plan.needs:
            needs.append(None if need is None or () in need else _in_base(shown, _box(need)))
        size = base.size
        if base.replicated:
            return Operand(ref, shown, needs, None)
        own = [None if 0 in base.local_shape(q) else _box(base.held(q)) for q in range(size)]
        lacking = [
            q
            for q, need in enumerate(needs)
            if need is not None and (own[q] is None or not _covers(own[q], need))  # type: ignore[arg-type]
        ]
        if not lacking:
            return Operand(ref, shown, needs, None)
        if item.target.size != size:
            raise Unfit
        epoch = self.demand(number, base, {q: [needs[q]] for q in lacking}, at)  # type: ignore[list-item]
        return Operand(ref, shown, needs, epoch)

    def demand(self, number: int, base: Partition, needs: Mapping[int, Sequence[Box]], at: int) -> Epoch:
        """Note which boxes of an array processes need that do not hold all of them."""
        if self.combined.get(number, (-1, 0))[0] >= 0:
            raise Unfit
        size = base.size
        own = [None if 0 in base.local_shape(q) else _box(base.held(q)) for q in range(size)]
        key = number, self.writes.get(number, 0)
        epoch = self.epochs.get(key)
        if epoch is None:
            epoch = self.epochs[key] = Epoch(number, self.last.get(number, -1))
        epoch.first = min(epoch.first, at)
        free = [m for m in range(len(base.mesh)) if m not in base.owners()]
        places = [base.coordinates(r) for r in range(size)]
        for q, wanted in needs.items():
            for p in range(size):
                have = own[p]
                if p == q or have is None or any(places[p][m] != places[q][m] for m in free):
                    continue
                for box in wanted:
                    part = _meet(have, box)
                    if part is not None:
                        epoch.pieces.setdefault((p, q), []).append(part)
        return epoch

    def wrote(self, item: Item, ref: Ref, note: bool = True) -> Operand:
        shown = self.map(ref)
        self.wrote_to(ref, len(self.items))
        dest = Operand(ref, shown, (), None)
        if note:
            item.dests.append(dest)
        return dest

    def wrote_to(self, ref: Ref, at: int) -> None:
        number = ref.storage.number
        self.used(number, at)
        self.writes[number] = self.writes.get(number, 0) + 1
        self.last[number] = at

    def settle(self) -> None:
        """All is known: what is sent at once must not be more than the settings allow."""
        received: dict[tuple[int, int], int] = {}
        for e in self.epochs.values():
            e.settle()
            for (_, q), boxes in e.pieces.items():
                key = q, e.first
                n = sum(map(volume, boxes)) * self.dtypes[e.number].itemsize
                received[key] = received.get(key, 0) + n
        if max(received.values(), default=0) > settings.exchange_bytes:
            raise Unfit

    def used(self, number: int, at: int) -> None:
        found = self.combined.get(number)
        if found is not None and found[0] < at < found[1]:
            self.combined[number] = found[0], at


def _in_runs(part: Partition) -> Partition:
    """A partition of which each process holds one box at most."""
    if part.partial or any(len(h) > 1 for q in range(part.size) for h in part.held(q)):
        raise Unfit
    return part


def _checked(request: Request) -> None:
    """Where a user's function fails on one process, the others must not be left with messages under way."""
    if not all(step[0].op.pure for step in request.key[0]):
        raise Unfit


def _copying(source: Ref) -> Request:
    return Request(((), (-1,)), [source], [], source.shape, [])  # type: ignore[list-item]


class _Lowering:
    """The steps of this process."""

    def __init__(self, work: _Dividing, wanted: Sequence[Storage]) -> None:
        self.work = work
        self.comm = work.comm
        self.rank = work.comm.rank
        self.steps: list[Step] = []
        self.storages: list[Storage] = []
        self.locals: dict[int, Storage] = {}
        self.assembled: dict[Any, Memory] = {}
        self.messages: list[tuple[dict[int, int], dict[int, int]]] = []
        # The terms of each result that waits to be combined: where they are, and how they are.
        self.terms: dict[int, tuple[Ref, Any]] = {}
        self.wanted = [s.number for s in wanted if s.number in work.writes and s.number not in work.given]
        self.dtypes = work.dtypes

    def lowered(self) -> Divided:
        work = self.work
        starting: dict[int, list[Any]] = {}
        ending: dict[int, list[Any]] = {}
        for start, end, epochs in _points(
            [(e.ready, e.first, e) for e in sorted(work.epochs.values(), key=lambda e: (e.number, e.ready))]
        ):
            point = [epochs, None]
            starting.setdefault(start, []).append(point)
            ending.setdefault(end, []).append(point)
        count = len(work.items)
        combining: dict[int, list[int]] = {}
        for _, end, numbers in _points([(at, min(use, count), n) for n, (at, use) in work.combined.items()]):
            combining.setdefault(end, []).extend(numbers)
        for at, item in enumerate(work.items):
            self.combine(combining.get(at, ()))
            for point in starting.get(at, ()):
                point[1] = self.start(point[0])
            arriving = [exchange for _, exchange in ending.get(at, ())]
            if isinstance(item, LaunchItem):
                self.launch(item, arriving)
            else:
                self.compute(item, arriving)
        self.combine(combining.get(count, ()))
        outputs = [self.storage(n) for n in self.wanted]
        inputs = [n for n in self.locals if n in work.given]
        for i, n in enumerate(inputs):
            self.locals[n].index = i
        for i, s in enumerate(outputs):
            s.index = i
        for number, step in enumerate(self.steps):
            step.number = number
        plan = Plan([], self.steps, self.storages, outputs)
        place_temporaries(plan)
        written = [n for n in inputs if n in work.writes]
        return Divided(plan, inputs, self.wanted, written, work.parts, self.messages)

    # Memory

    def storage(self, number: int) -> Storage:
        """What this process holds of a storage."""
        found = self.locals.get(number)
        if found is None:
            work = self.work
            kind = "input" if number in work.given else "output" if number in self.wanted else "temporary"
            shape = work.parts[number].local_shape(self.rank)
            found = self.locals[number] = self.new(kind, shape, self.dtypes[number])
        return found

    def new(self, kind: str, shape: tuple[int, ...], dtype: np.dtype) -> Storage:
        made = Storage(len(self.storages), kind, Value(shape, dtype))  # type: ignore[arg-type]
        self.storages.append(made)
        return made

    def own(self, number: int) -> Memory | None:
        part = self.work.parts[number]
        if 0 in part.local_shape(self.rank):
            return None
        return Memory(self.storage(number), 0, _box(part.held(self.rank)))

    def memory(self, operand: Operand, box: Box) -> Memory:
        """Where a box of a storage lies: as it is here, as it came, or put together of both."""
        number = operand.ref.storage.number
        own = self.own(number)
        if own is not None and _covers(own.box, box):
            return own
        epoch = operand.epoch
        assert epoch is not None
        for came in epoch.landed:
            if _covers(came.box, box):
                return came
        key = number, epoch.ready, box
        found = self.assembled.get(key)
        if found is None:
            dtype = self.dtypes[number]
            made = self.new("temporary", tuple(b - a for a, b in box), dtype)
            found = self.assembled[key] = Memory(made, 0, box)
            for source in (*(() if own is None else (own,)), *epoch.landed):
                part = _meet(source.box, box)
                if part is not None:
                    self.copy(_shown(source, part, dtype), _shown(found, part, dtype))
        return found

    def copy(self, source: Ref, dest: Ref) -> None:
        self.steps.append(KernelStep([], _copying(source), [dest]))

    def ref(self, operand: Operand, item: Item, box: Box) -> Ref:
        """What the computation of a box reads or writes of an operand, as a view of local memory."""
        shown, ref, full = operand.shown, operand.ref, item.shape
        off = len(full) - len(ref.shape)
        region, shape = [], []
        for i, n in enumerate(shown.shape):
            d = off + i
            region.append(box[d] if d >= 0 and n == full[d] else (0, n))
            a, b = box[d] if ref.shape[i] != n else region[i]
            shape.append(b - a)
        memory = self.memory(operand, _in_base(shown, tuple(region)))
        return self.seen(operand, tuple(region), tuple(shape), memory)

    def seen(self, operand: Operand, region: Region, shape: tuple[int, ...], memory: Memory) -> Ref:
        """A region of an operand, in memory that has it, as a view of a shape."""
        shown, ref = operand.shown, operand.ref
        steps = memory.strides(self.dtypes[ref.storage.number].itemsize)
        first = list(shown.starts)
        strides = [0] * len(shape)
        for i, axis in enumerate(shown.axes):
            if axis >= 0:
                first[axis] += shown.steps[i] * region[i][0]
                strides[i] = shown.steps[i] * steps[axis]
        begin = memory.begin + sum(
            (a - low) * s for a, (low, _), s in zip(first, memory.box, steps, strict=True)
        )
        if shown.kind == "imag":
            begin += ref.dtype.itemsize
        return Ref(memory.storage, begin, shape, tuple(strides), ref.dtype)

    # Steps

    def launch(self, item: LaunchItem, arriving: list[Exchange]) -> None:
        """A kernel of the user's: what needs nothing of others, and the rest when it has come."""
        first, later = item.boxes(self.rank)
        if first is not None:
            self.launched(item, first)
        self.finish(arriving)
        for box in later:
            self.launched(item, box)

    def launched(self, item: LaunchItem, box: Box) -> None:
        regions = item.regions(self.rank, box)
        refs: dict[str, Ref] = {}
        for name, ref in item.refs.items():
            region, shown = regions[name], item.maps[name]
            if region is None:  # (nothing of it is touched)
                refs[name] = whole(self.new("temporary", (1,) * len(shown.shape), ref.dtype))
                continue
            operand = Operand(ref, shown, (), item.epochs.get(name))
            if any(b > n for (_, b), n in zip(region, shown.shape, strict=True)):
                refs[name] = self.circled(operand, region)
            else:
                memory = self.memory(operand, _in_base(shown, region))
                refs[name] = self.seen(operand, region, tuple(b - a for a, b in region), memory)
        for name, ref in item.numbers.items():
            refs[name] = Ref(self.storage(ref.storage.number), ref.offset, ref.shape, ref.strides, ref.dtype)
        self.steps.append(item.local(box, regions, refs))

    def circled(self, operand: Operand, region: Region) -> Ref:
        """Memory of its own with a region that goes around the end of an array."""
        number, shape = operand.ref.storage.number, operand.shown.shape
        dtype = self.dtypes[number]
        made = whole(self.new("temporary", tuple(b - a for a, b in region), dtype))
        own, epoch = self.own(number), operand.epoch
        assert epoch is not None
        for box in itertools.product(*[linear(r, n) for r, n in zip(region, shape, strict=True)]):
            for source in (*(() if own is None else (own,)), *epoch.landed):
                part = _meet(source.box, box)
                if part is None:
                    continue
                at = [
                    (a - s if a >= s else a - s + n) * stride
                    for (a, _), (s, _), n, stride in zip(part, region, shape, made.strides, strict=True)
                ]
                lengths = tuple(b - a for a, b in part)
                self.copy(_shown(source, part, dtype), Ref(made.storage, sum(at), lengths, made.strides, dtype))
        return made

    def compute(self, item: Item, arriving: list[Exchange]) -> None:
        """A statement, with the end of the exchanges that it cannot go on without."""
        box = item.box(self.rank)
        if box is None:
            self.finish(arriving)
        elif item.folds:
            self.finish(arriving)
            self.fold(item, box)
        elif not self.lacks(item):
            self.kernel(item, box)
            self.finish(arriving)
        else:
            inner = self.inner(item, box)
            if inner is None or 2 * volume(inner) < volume(box):
                self.finish(arriving)
                self.kernel(item, box)
                return
            self.kernel(item, inner)
            self.finish(arriving)
            for edge in around(box, inner):
                self.kernel(item, edge)

    def lacks(self, item: Item) -> list[Operand]:
        """The operands of which something is not here."""
        found = []
        for o in item.operands:
            if isinstance(o, Operand) and o.epoch is not None:
                need, own = o.needs[self.rank], self.own(o.ref.storage.number)
                if need is not None and (own is None or not _covers(own.box, need)):
                    found.append(o)
        return found

    def inner(self, item: Item, box: Box) -> Box | None:
        """What can be computed of a box with what is here."""
        found = list(box)
        for o in self.lacks(item):
            held = o.shown.held(self.rank)
            if held is None or () in held:
                return None
            off = len(item.shape) - len(held)
            for i, (n, (run,)) in enumerate(zip(o.shown.shape, held, strict=True)):
                d = off + i
                if d < 0 or n != item.shape[d]:
                    if run != (0, n):
                        return None
                    continue
                found[d] = max(found[d][0], run[0]), min(found[d][1], run[1])
        return tuple(found) if all(a < b for a, b in found) else None

    def request(self, item: Item, box: Box) -> Request:
        old: Request = item.step.request if not isinstance(item.step, CopyStep) else _copying(item.step.source)
        leaves: list[Any] = []
        for o in item.operands:
            if isinstance(o, Ref):  # (a table, of which all is here)
                leaves.append(Ref(self.storage(o.storage.number), o.offset, o.shape, o.strides, o.dtype, True))
            else:
                leaves.append(self.ref(o, item, box))
        return Request(old.key, leaves, old.scalars, tuple(b - a for a, b in box), [])

    def kernel(self, item: Item, box: Box) -> None:
        request = self.request(item, box)
        dests = [self.ref(d, item, box) for d in item.dests]
        source: Any = request.leaves[0] if request.leaves else None
        if isinstance(item.step, CopyStep) and source.is_whole and dests[0].is_whole:
            self.steps.append(CopyStep(item.step.nodes, dests[0], source))
        else:
            self.steps.append(KernelStep(item.step.nodes, request, dests))

    def fold(self, item: Item, box: Box) -> None:
        step = item.step
        folds: list[Any] = []
        dests = []
        for node, dest, (part, group, shape) in zip(step.nodes, item.dests, item.folds, strict=True):
            number = dest.ref.storage.number
            folds.append(
                LocalFold(node.reduction, node.axes, node.keepdims, shape, node.dtype, node.label, node.line)
            )
            if number in self.work.combined:
                term = whole(self.new("temporary", shape, node.dtype))
                self.terms[number] = term, (part, group, node.reduction)
                dests.append(term)
            else:
                dests.append(whole(self.storage(number)))
        self.steps.append(FoldStep(folds, self.request(item, box), step.axes, dests))

    def combine(self, numbers: Sequence[int]) -> None:
        if numbers:
            terms, how = zip(*[self.terms[n] for n in numbers], strict=True)
            results = [whole(self.storage(n)) for n in numbers]
            self.steps.append(CombineStep(self.work.family, self.comm, list(terms), results, list(how)))

    def start(self, epochs: list[Epoch]) -> Exchange:
        """Send what others need of some arrays, one message to each."""
        exchange = Exchange(self.comm)
        sizes: list[dict[int, int]] = []
        for sending in (True, False):
            found: dict[int, list[tuple[Epoch, Box]]] = {}
            for e in epochs:
                for (p, q), boxes in sorted(e.pieces.items()):
                    if self.rank == (p if sending else q):
                        found.setdefault(q if sending else p, []).extend((e, box) for box in boxes)
            places = {q: self.laid_out(pieces) for q, pieces in found.items()}
            sizes.append({q: size for q, (_, size) in places.items()})
            for q, (offsets, size) in places.items():
                if sending:
                    exchange.sends[q] = self.packed(found[q], offsets, size)
                    continue
                landed = self.new("temporary", (size,), _BYTE)
                exchange.receives[q] = whole(landed)
                for (e, box), offset in zip(found[q], offsets, strict=True):
                    e.landed.append(Memory(landed, offset, box))
        self.messages.append((sizes[0], sizes[1]))
        if exchange.sends or exchange.receives:
            self.steps.append(StartStep(exchange))
        return exchange

    def laid_out(self, pieces: list[tuple[Epoch, Box]]) -> tuple[list[int], int]:
        """Where the pieces of a message begin, and how long it is."""
        offsets, size = [], 0
        for e, box in pieces:
            size = -(-size // _ALIGNMENT) * _ALIGNMENT
            offsets.append(size)
            size += volume(box) * self.dtypes[e.number].itemsize
        return offsets, size

    def packed(self, pieces: list[tuple[Epoch, Box]], offsets: list[int], size: int) -> Ref:
        """What goes to one process: as it lies here, or one piece after the other."""
        sources = []
        for e, box in pieces:
            own = self.own(e.number)
            assert own is not None
            sources.append(_shown(own, box, self.dtypes[e.number]))
        if len(sources) == 1 and sources[0].is_contiguous:
            return Ref(sources[0].storage, sources[0].offset, (size,), (1,), _BYTE)
        packed = self.new("temporary", (size,), _BYTE)
        for source, offset in zip(sources, offsets, strict=True):
            strides = c_strides(source.shape, source.dtype)
            self.copy(source, Ref(packed, offset, source.shape, strides, source.dtype))
        return whole(packed)

    def finish(self, arriving: list[Exchange]) -> None:
        for exchange in arriving:
            if exchange.sends or exchange.receives:
                self.steps.append(FinishStep(exchange))


def _shown(memory: Memory, box: Box, dtype: np.dtype) -> Ref:
    """A box as a view of the memory it lies in."""
    strides = memory.strides(dtype.itemsize)
    offset = sum((a - low) * s for (a, _), (low, _), s in zip(box, memory.box, strides, strict=True))
    return Ref(memory.storage, memory.begin + offset, tuple(b - a for a, b in box), tuple(strides), dtype)


def _points(spans: list[tuple[int, int, Any]]) -> list[tuple[int, int, list[Any]]]:
    """As few points as can be for what is ready after one item and needed by another: (first item, last, what).

    Each begins when the last of its members is ready, before the first item named, and must have ended when
    the first is needed.
    """
    found: list[tuple[int, int, list[Any]]] = []
    for ready, needed, what in sorted(spans, key=lambda span: span[1]):
        if found and ready < found[-1][1]:
            start, end, members = found[-1]
            members.append(what)
            found[-1] = max(start, ready + 1), end, members
        else:
            found.append((ready + 1, needed, [what]))
    return found
