"""The plan of one process, made of what is known of a plan over processes (see `dividing`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.kernelranges import Region
from mirabelle.arraytypes.distributed.kernels import linear
from mirabelle.arraytypes.distributed.overlapping import around
from mirabelle.arraytypes.distributed.transfers import Box, volume
from mirabelle.arraytypes.programs.computedhalos import Across
from mirabelle.arraytypes.programs.dividedlaunches import LaunchItem
from mirabelle.arraytypes.programs.dividedvalues import (
    Divided,
    Epoch,
    Item,
    LocalFold,
    Memory,
    Operand,
    Value,
    box_of,
    copying,
    covers,
    in_base,
    meet,
    region_of,
)
from mirabelle.arraytypes.programs.exchanging import CombineStep, Exchange, FinishStep, StartStep
from mirabelle.arraytypes.programs.graph import c_strides
from mirabelle.arraytypes.programs.memory import place_temporaries
from mirabelle.arraytypes.programs.steps import (
    CopyStep,
    FoldStep,
    KernelStep,
    Plan,
    Ref,
    Step,
    Storage,
    whole,
)
from mirabelle.dispatch.schedule import Request

_BYTE = np.dtype(np.uint8)
# Where the pieces of a message begin.
_ALIGNMENT = 16
# Among more processes than this nobody works out what all of them send.
MOST = 256
# The numbers of storages that are made here begin with this one.
FURTHER = 1 << 20
# Up to so many bytes are copied before they are sent, where they lie in memory that may be other memory in the
# next call: a message from and to a plan's own memory is prepared once, and preparing one takes as long.
PREPARED = 1 << 15


class Lowering:
    """The steps of this process."""

    def __init__(self, work: Any, wanted: Sequence[Storage]) -> None:
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
        for start, end, epochs in points(
            [
                (e.ready, e.first, e)
                for e in sorted(work.epochs.values(), key=lambda e: (e.number, e.ready))
                if not e.computed
            ]
        ):
            point = [epochs, None]
            starting.setdefault(start, []).append(point)
            ending.setdefault(end, []).append(point)
        count = len(work.items)
        combining: dict[int, list[int]] = {}
        for _, end, numbers in points([(at, min(use, count), n) for n, (at, use) in work.combined.items()]):
            combining.setdefault(end, []).extend(numbers)
        for at, item in enumerate(work.items):
            self.combine(combining.get(at, ()))
            for point in starting.get(at, ()):
                point[1] = self.start(point[0])
            arriving = [exchange for _, exchange in ending.get(at, ())]
            if isinstance(item, LaunchItem):
                self.add_launch(item, arriving)
            else:
                self.compute(item, arriving)
            for more in work.across.get(at, ()):
                self.compute_across(more)
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
        across = sum(map(len, work.across.values()))
        return Divided(plan, inputs, self.wanted, written, work.parts, self.messages, across)

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
        return Memory(self.storage(number), 0, box_of(part.held(self.rank)))

    def memory(self, operand: Operand, box: Box) -> Memory:
        """Where a box of a storage lies: as it is here, as it came, or put together of both."""
        number = operand.ref.storage.number
        own = self.own(number)
        if own is not None and covers(own.box, box):
            return own
        epoch = operand.epoch
        assert epoch is not None
        for came in epoch.landed:
            if covers(came.box, box):
                return came
        key = number, epoch.ready, box
        found = self.assembled.get(key)
        if found is None:
            dtype = self.dtypes[number]
            made = self.new("temporary", tuple(b - a for a, b in box), dtype)
            found = self.assembled[key] = Memory(made, 0, box)
            for source in (*(() if own is None else (own,)), *epoch.landed):
                part = meet(source.box, box)
                if part is not None:
                    self.copy(_shown(source, part, dtype), _shown(found, part, dtype))
        return found

    def copy(self, source: Ref, dest: Ref) -> None:
        self.steps.append(KernelStep([], copying(source), [dest]))

    def ref(self, operand: Operand, item: Item, box: Box) -> Ref:
        """What the computation of a box reads or writes of an operand, as a view of local memory."""
        region, shape = region_of(operand, item.shape, box)
        memory = self.memory(operand, in_base(operand.shown, region))
        return self.seen(operand, region, shape, memory)

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

    def add_launch(self, item: LaunchItem, arriving: list[Exchange]) -> None:
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
                memory = self.memory(operand, in_base(shown, region))
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
                part = meet(source.box, box)
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
                if need is not None and (own is None or not covers(own.box, need)):
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
        old: Request = item.step.request if not isinstance(item.step, CopyStep) else copying(item.step.source)
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

    def compute_across(self, more: Across) -> None:
        """What is beyond a cut, computed here as well."""
        item, box = more.item, more.box
        dests = []
        for k, dest in enumerate(item.dests):
            fill = more.fills.get(k)
            if fill is None and box is None:
                continue
            region, shape = ((), ()) if box is None else region_of(dest, item.shape, box)
            dtype = self.dtypes[dest.ref.storage.number]
            filled = in_base(dest.shown, region) if fill is None else fill.box
            made = Memory(self.new("temporary", tuple([b - a for a, b in filled]), dtype), 0, filled)
            if box is not None:
                dests.append(self.seen(dest, region, shape, made))
            if fill is None:
                continue
            for rest in fill.rest:
                assert fill.before is not None
                for came in fill.before.landed:
                    part = meet(came.box, rest)
                    if part is not None:
                        self.copy(_shown(came, part, dtype), _shown(made, part, dtype))
            fill.epoch.landed.append(made)
        if box is not None:
            self.steps.append(KernelStep(item.step.nodes, self.request(item, box), dests))

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
        if len(sources) == 1 and sources[0].is_contiguous and not self.elsewhere_next_time(sources[0]):
            return Ref(sources[0].storage, sources[0].offset, (size,), (1,), _BYTE)
        packed = self.new("temporary", (size,), _BYTE)
        for source, offset in zip(sources, offsets, strict=True):
            strides = c_strides(source.shape, source.dtype)
            self.copy(source, Ref(packed, offset, source.shape, strides, source.dtype))
        return whole(packed)

    def elsewhere_next_time(self, ref: Ref) -> bool:
        """Is what is sent small, and lies in memory that is not the plan's own? (See `PREPARED`.)"""
        own = ref.storage.kind == "temporary" or self.work.family.inner.home.rank >= 2
        return not own and ref.nbytes <= PREPARED

    def finish(self, arriving: list[Exchange]) -> None:
        for exchange in arriving:
            if exchange.sends or exchange.receives:
                self.steps.append(FinishStep(exchange))


def _shown(memory: Memory, box: Box, dtype: np.dtype) -> Ref:
    """A box as a view of the memory it lies in."""
    strides = memory.strides(dtype.itemsize)
    offset = sum((a - low) * s for (a, _), (low, _), s in zip(box, memory.box, strides, strict=True))
    return Ref(memory.storage, memory.begin + offset, tuple(b - a for a, b in box), tuple(strides), dtype)


def points(spans: list[tuple[int, int, Any]]) -> list[tuple[int, int, list[Any]]]:
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
