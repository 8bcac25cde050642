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
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.combining import reduced_partition
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.execution import chosen, operand_plan, target_of
from mirabelle.arraytypes.distributed.layouts import Partition, Split, partition, runs
from mirabelle.arraytypes.distributed.transfers import Box, volume
from mirabelle.arraytypes.distributed.views import DBuffer, DView, Map
from mirabelle.arraytypes.programs.computedhalos import Across, computed_here
from mirabelle.arraytypes.programs.dividedlaunches import LaunchItem
from mirabelle.arraytypes.programs.dividedplans import Lowering
from mirabelle.arraytypes.programs.dividedvalues import (
    Boxes,
    Divided,
    Epoch,
    Item,
    Operand,
    Unfit,
    box_of,
    copying,
    covers,
    in_base,
    meet,
)
from mirabelle.arraytypes.programs.steps import (
    CopyStep,
    FoldStep,
    KernelStep,
    LaunchStep,
    Ref,
    Step,
    Storage,
    whole,
)
from mirabelle.arraytypes.proxies import proxy_of
from mirabelle.dispatch.schedule import Request
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf

_BYTE = np.dtype(np.uint8)
# Where the pieces of a message begin.
_ALIGNMENT = 16
# Among more processes than this nobody works out what all of them send.
MOST = 256
# The numbers of storages that are made here begin with this one.
FURTHER = 1 << 20


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
    return Lowering(work, wanted).lowered()


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
        self.across: dict[int, list[Across]] = {}
        # By the ids of partitions (which are kept by what is found).
        self.held: dict[int, Boxes] = {}
        # Of each storage: how often it was written to, by which items, and by which last.
        self.writes: dict[int, int] = {}
        self.history: dict[int, list[int]] = {}
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
            buffer = object.__new__(DBuffer)
            buffer.comm, buffer.inner, buffer.dtype = self.comm, self.family.inner, s.dtype
            buffer.partition, buffer.local, buffer._leaf = self.parts[s.number], None, None
            buffer.name, buffer.came = s.number, [None]
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
            self.kernel(step, copying(step.source), [step.dest])
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
            self.kernel(CopyStep([], dest, source), copying(source), [dest])

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
            needs = {q: [in_base(shown, box) for box in item.needs(name, q)] for q in lacking}
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
            needs.append(None if need is None or () in need else in_base(shown, box_of(need)))
        size = base.size
        if base.replicated:
            return Operand(ref, shown, needs, None)
        own = self.boxes(base).own
        lacking = [
            q
            for q, need in enumerate(needs)
            if need is not None and (own[q] is None or not covers(own[q], need))  # type: ignore[arg-type]
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
        key = number, self.writes.get(number, 0)
        epoch = self.epochs.get(key)
        if epoch is None:
            epoch = self.epochs[key] = Epoch(number, self.last.get(number, -1))
        self.ask(epoch, base, needs, at)
        return epoch

    def ask(self, epoch: Epoch, base: Partition, needs: Mapping[int, Sequence[Box]], at: int) -> None:
        """Have an epoch bring what processes lack of some boxes, for an item."""
        epoch.first = min(epoch.first, at)
        parts = self.boxes(base)
        for q, wanted in needs.items():
            for box in wanted:
                for p in parts.holders(box, q):
                    part = meet(parts.own[p], box)  # type: ignore[arg-type]
                    if part is not None:
                        epoch.pieces.setdefault((p, q), []).append(part)

    def boxes(self, base: Partition) -> Boxes:
        """What each process holds of a partition."""
        found = self.held.get(id(base))
        if found is None:
            found = self.held[id(base)] = Boxes(base)
        return found

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
        self.history.setdefault(number, []).append(at)
        self.last[number] = at

    def settle(self) -> None:
        """All is known: what is sent at once must not be more than the settings allow."""
        self.across = computed_here(self)
        received: dict[tuple[int, int], int] = {}
        for e in self.epochs.values():
            e.settle()
            if e.computed:
                continue
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
