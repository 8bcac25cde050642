"""Stencils: what can be computed without the others is computed while their halos travel.

Where each process holds nearly all that it needs of each operand (shifted slices of one array), the part
of the result that needs nothing else is computed first, in place, and then the thin boxes along its
edges: from what came, without an operand of the whole size being put together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed import execution
from mirabelle.arraytypes.distributed.layouts import Partition
from mirabelle.arraytypes.distributed.transfers import Messages, Transfer, boxes, volume
from mirabelle.arraytypes.distributed.views import DView, Map
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, destination

Box = tuple[tuple[int, int], ...]

# While messages of more bytes are on their way, the inner part is computed in so many pieces, between which
# the engine may move them on.
EAGER_BYTES, PIECES = 1 << 15, 4


def overlapped(frame: Any, tree: Any, dest: Any) -> Any:
    """Compute a tree so, into `dest` or new memory, which is returned; None where another way is better."""
    target: Partition = frame.partition
    size = target.size
    if size == 1 or type(tree) is not Broadcasted or math.prod(target.shape) < settings.overlap_size * size:
        return None
    views: dict[int, DView] = {}
    for leaf in execution.leaves_of(tree):
        view = leaf.view
        if view.whole and view.buffer.partition is target:
            continue
        if view.buffer.comm is not frame.comm or view.buffer.partition.partial or view.map is None:
            return None
        views[id(view.map)] = view
    if not views:
        return None
    plan = _plan(tuple(v.map for v in views.values() if v.map is not None), target, frame.rank)
    if plan is None:
        return None
    return plan.run(frame, tree, dest)


def _plan(maps: tuple[Map, ...], target: Partition, rank: int) -> HaloPlan | None:
    key = "halo", maps, rank
    found = target.cache.get(key)
    if found is None:
        found = target.cache[key] = _made(maps, target, rank) or False
    return found or None  # type: ignore[no-any-return]


def _made(maps: tuple[Map, ...], target: Partition, rank: int) -> HaloPlan | None:
    plans = [execution.operand_plan(shown, target, rank) for shown in maps]
    if all(p.here for p in plans):
        return None
    inside = 0
    for q in range(target.size):
        box = _inner(maps, target, q)
        if box is None:
            return None
        inside += volume(box)
    if 2 * inside < math.prod(target.shape):
        return None
    return HaloPlan(maps, plans, target, rank)


def _run(held: Any) -> tuple[int, int] | None:
    return held[0] if len(held) == 1 else None


def _inner(maps: tuple[Map, ...], target: Partition, q: int) -> Box | None:
    """The box of a process's part for which it holds all operands."""
    found = []
    for held in target.held(q):
        run = _run(held)
        if run is None:
            return None
        found.append(run)
    for shown in maps:
        held_here = shown.held(q)
        if held_here is None:
            return None
        off = len(target.shape) - len(shown.shape)
        for i, held in enumerate(held_here):
            if off + i < 0 or shown.shape[i] != target.shape[off + i]:
                if _run(held) != (0, shown.shape[i]):
                    return None
                continue
            run = _run(held)
            if run is None:
                return None
            a, b = found[off + i]
            found[off + i] = max(a, run[0]), min(b, run[1])
    return tuple(found) if all(a < b for a, b in found) else None


class HaloPlan:
    """For the maps of a tree's operands and a partition: the inner box, those around it, what travels."""

    __slots__ = ("edges", "inner_box", "maps", "mine", "origin", "rank", "target", "transfers")

    def __init__(self, maps: tuple[Map, ...], plans: list[Any], target: Partition, rank: int) -> None:
        self.maps, self.target, self.rank = maps, target, rank
        self.mine: Box = tuple(held[0] for held in target.held(rank))
        self.origin = tuple(a for a, _ in self.mine)
        inner = _inner(maps, target, rank)
        assert inner is not None
        self.inner_box: Box = inner
        self.edges = around(self.mine, inner)
        self.transfers = {
            id(shown): Transfer(shown, p.needs, rank, missing=True)
            for shown, p in zip(maps, plans, strict=True)
            if not p.here
        }

    def run(self, frame: Any, tree: Broadcasted, dest: Any) -> Any:
        inner = frame.inner
        if dest is None:
            dest = inner._empty(frame.local_shape, tree.dtype)
        views = _views_of(tree)
        arrived: dict[int, list[tuple[Box, Any]]] = {}
        under_way: list[Messages] = []
        large = False
        for key, view in views.items():
            transfer = self.transfers.get(key[1])
            if transfer is None:
                continue
            messages, landed = _begin(transfer, view)
            large = large or any(v.nbytes > EAGER_BYTES for _, v in landed)
            arrived[key] = landed  # type: ignore[index]
            under_way.append(messages)
        # (messages between cards need nobody to move them on)
        parts = slabs(self.inner_box, PIECES if large and frame.comm.carrier(inner) is frame.comm else 1)
        for box in parts:
            self._compute(frame, tree, dest, box, {})
            if len(parts) > 1:
                frame.comm.hurry()
        for messages in under_way:
            messages.finish()
        for box in self.edges:
            self._compute(frame, tree, dest, box, arrived)
        return dest

    def _compute(self, frame: Any, tree: Broadcasted, dest: Any, box: Box, arrived: dict[Any, Any]) -> None:
        """The tree on one box of the result."""
        shape = tuple(b - a for a, b in box)
        local = _Boxed(self, frame, box, arrived).node(tree)
        index = tuple(slice(a - o, b - o) for (a, b), o in zip(box, self.origin, strict=True))
        target = destination(dest[(*index, Ellipsis)])
        if local.shape != shape:
            sig = promotion.intern(TABLE["copy"], (local.dtype,), (local.dtype,))
            local = Broadcasted(sig, (local,), shape)
        verbs.copyto(wrap(frame.inner, target), local)


class _Boxed:
    """The local tree of a tree, on one box of the result."""

    def __init__(self, plan: HaloPlan, frame: Any, box: Box, arrived: dict[Any, Any]) -> None:
        self.plan, self.frame, self.box, self.arrived = plan, frame, box, arrived
        self.made: dict[int, Any] = {}

    def node(self, node: Broadcasted) -> Any:
        found = self.made.get(id(node))
        if found is not None:
            return found
        args: list[Any] = []
        for a in node.args or ():
            kind = type(a)
            if kind is Broadcasted and a.value is None:
                a = self.node(a)
            elif kind is Broadcasted or kind is Reduced:
                a = self.leaf(a.value)
            elif kind is Leaf:
                a = self.leaf(a)
            args.append(a)
        found = self.made[id(node)] = Broadcasted(node.sig, tuple(args), self.shape_of(node.shape))
        return found

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        full = self.plan.target.shape
        off = len(full) - len(shape)
        return tuple(
            self.box[off + i][1] - self.box[off + i][0] if n == full[off + i] else n for i, n in enumerate(shape)
        )

    def leaf(self, leaf: Leaf) -> Leaf:
        found = self.made.get(id(leaf))
        if found is None:
            found = self.made[id(leaf)] = Leaf(self.view(leaf.view))
        return found  # type: ignore[no-any-return]

    def view(self, view: DView) -> Any:
        """What a box needs of an operand: as it lies here, as it came, or put together of both."""
        frame, plan = self.frame, self.plan
        buffer = view.buffer
        if view.whole and buffer.partition is plan.target:
            index = tuple(slice(a - o, b - o) for (a, b), o in zip(self.box, plan.origin, strict=True))
            return buffer.local[(*index, Ellipsis)]
        shown = view.map
        assert shown is not None
        off = len(plan.target.shape) - len(shown.shape)
        region: Box = tuple(
            self.box[off + i] if off + i >= 0 and n == plan.target.shape[off + i] else (0, n)
            for i, n in enumerate(shown.shape)
        )
        held = shown.held(frame.rank)
        own = boxes(held, tuple((r,) for r in region))
        if own == [region]:
            return shown.shows(buffer.local, frame.rank, region)
        pieces = [(box, None) for box in own]
        for box, landed in self.arrived.get((buffer.name, id(shown)), ()):
            pieces += [(part, (box, landed)) for part in boxes(tuple((r,) for r in box), tuple((r,) for r in region))]
        if len(pieces) == 1 and pieces[0][1] is not None:
            return _part_of(*pieces[0][1], region)
        if counters.active:
            counters.add(temporaries=1)
        out = frame.inner._empty(tuple(b - a for a, b in region), view.dtype)
        for part, came in pieces:
            where = tuple(slice(a - r, b - r) for (a, b), (r, _) in zip(part, region, strict=True))
            source = shown.shows(buffer.local, frame.rank, part) if came is None else _part_of(*came, part)
            frame.inner._copy_into(out[(*where, Ellipsis)], source)
        return out


def _part_of(box: Box, landed: Any, part: Box) -> Any:
    """A part of a box that came."""
    index = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(part, box, strict=True))
    return landed[(*index, Ellipsis)]


def _views_of(tree: Broadcasted) -> dict[tuple[int, int], DView]:
    """The operands of a tree, once each: by the buffer they show and how."""
    return {(leaf.view.buffer.name, id(leaf.view.map)): leaf.view for leaf in execution.leaves_of(tree)}


def _begin(transfer: Transfer, view: DView) -> tuple[Messages, list[tuple[Box, Any]]]:
    """Start the messages of a transfer; where the boxes will be that come."""
    buffer = view.buffer
    inner = buffer.inner
    messages = Messages(buffer.comm, inner)
    outgoing = {q: transfer._packed(buffer, inner, b, view.dtype) for q, b in transfer.sends.items()}
    incoming: dict[int, Any] = {}
    landed: list[tuple[Box, Any]] = []
    for q, found in transfer.receives.items():
        row = inner._empty((sum(map(volume, found)),), view.dtype)
        incoming[q] = row
        at = 0
        for box in found:
            landed.append((box, row[at : at + volume(box)].reshape(tuple(b - a for a, b in box))))
            at += volume(box)
    messages.begin(outgoing, incoming)
    return messages, landed


def around(whole: Box, inner: Box) -> list[Box]:
    """Boxes that cover all of a box but an inner one."""
    found = []
    rest = list(whole)
    for d, ((a, b), (low, high)) in enumerate(zip(whole, inner, strict=True)):
        for edge in ((a, low), (high, b)):
            if edge[0] < edge[1]:
                found.append((*rest[:d], edge, *rest[d + 1 :]))
        rest[d] = (low, high)
    return found


def slabs(box: Box, count: int) -> list[Box]:
    """A box in slabs along its first dimension."""
    a, b = box[0]
    edges = np.linspace(a, b, min(count, b - a) + 1).astype(int).tolist()
    return [((low, high), *box[1:]) for low, high in zip(edges[:-1], edges[1:], strict=True)]
