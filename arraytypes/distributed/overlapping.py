"""Stencils: what can be computed without the others is computed while their halos travel.

Where each process holds nearly all that it needs of each operand (shifted slices of one array), the part of
the result that needs nothing else is computed first, in place, and then the thin boxes along its edges: from
what came, without an operand of the whole size being put together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.distributed import execution
from mirabelle.arraytypes.distributed.histories import told
from mirabelle.arraytypes.distributed.layouts import Partition
from mirabelle.arraytypes.distributed.marks import mixed
from mirabelle.arraytypes.distributed.transfers import Messages, Transfer, boxes, volume
from mirabelle.arraytypes.distributed.views import DView, Map
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, destination

Box = tuple[tuple[int, int], ...]
# An operand of which something travels: what it is known by, as a view, and what travels.
Moving = tuple[Any, DView, Transfer]

# While messages of more bytes are on their way, the inner part is computed in so many pieces, between which
# the engine may move them on.
EAGER_BYTES, PIECES = 1 << 15, 4


@by_type
def known_halo(inner: Any, frame: Any, tree: Broadcasted, dest: Any) -> Any:
    """What `overlapped` gives, if the local type knows the tree again; else None, and nothing has happened."""


@known_halo.method
def unknown_halo(inner: type[DenseArray], frame: Any, tree: Broadcasted, dest: Any) -> None:
    return None


@by_type
def note_halo(inner: Any, plan: HaloPlan, frame: Any, tree: Broadcasted, dest: Any) -> None:
    """Told of what is about to be done the ordinary way, so that the local type may know it again."""


@note_halo.method
def _(inner: type[DenseArray], plan: HaloPlan, frame: Any, tree: Broadcasted, dest: Any) -> None: ...


def again(frame: Any, tree: Any, dest: Any) -> Any:
    """Do what `overlapped` did with the like of it before, if the local type knows it again; else None.

    The messages are the same, and nothing else is different: processes may differ in what they know.
    """
    if type(tree) is not Broadcasted or settings.check_collectives:
        return None
    target = frame.partition
    large = tree.shape == target.shape and _is_large(frame)
    return known_halo(frame.inner, frame, tree, dest) if large else None


# A statement on the host begins so many times sooner than one on a card.
_SOONER = 16


def _is_large(frame: Any) -> bool:
    return is_large(frame.inner, frame.partition.elements, frame.partition.size)


def is_large(inner: Any, elements: int, size: int) -> bool:
    """Is it worth while to compute in pieces? (All processes must say the same.)"""
    least = settings.overlap_size // (_SOONER if inner.home.kind == "host" else 1)
    return elements >= least * size


def overlapped(frame: Any, tree: Any, dest: Any) -> Any:
    """Compute a tree so, into `dest` or new memory, which is returned; None where another way is better."""
    plan = plan_of(frame, tree)
    return None if plan is None else plan.run(frame, tree, dest)


def bring(frame: Any, tree: Any) -> None:
    """Start the messages that `overlapped` would, for operands that are put together whole.

    (Whether a tree that is reduced gets its value first depends on who holds it, and that is each process's own
    affair: its messages are the same.)
    """
    plan = None if frame.inner.home.kind == "traced" else plan_of(frame, tree)
    for moving in () if plan is None else plan.moved(tree):
        arrived: dict[Any, list[Any]] = {}
        messages = begin(moving, arrived)
        for key, view, transfer in moving:
            local = frame.fetched[key] = frame.inner._empty(transfer.shape, view.dtype)
            if counters.active:
                counters.add(temporaries=1)
            transfer.fill(view.buffer, local)
            found = [box for some in transfer.receives.values() for box in some]
            messages.after += [
                (transfer.target(local, b), part) for b, part in zip(found, arrived[key], strict=True)
            ]
        frame.under_way.append(messages)


def plan_of(frame: Any, tree: Any) -> HaloPlan | None:
    """How what a tree needs of others travels, if each process holds nearly all of it: what has one dtype
    together."""
    target: Partition = frame.partition
    size = target.size
    if size == 1 or type(tree) is not Broadcasted or not _is_large(frame):
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
    return _plan(tuple(v.map for v in views.values() if v.map is not None), target, frame.rank)


def _plan(maps: tuple[Map, ...], target: Partition, rank: int) -> HaloPlan | None:
    key = "halo", maps, rank
    found: Any = target.cache.get(key)
    if found is None:
        found = _made(maps, target, rank) or False
        target.cache[key] = found
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

    __slots__ = ("edges", "inner_box", "maps", "origin", "rank", "slabs", "target", "transfers")

    def __init__(self, maps: tuple[Map, ...], plans: list[Any], target: Partition, rank: int) -> None:
        self.maps, self.target, self.rank = maps, target, rank
        mine: Box = tuple(held[0] for held in target.held(rank))
        self.origin = tuple(a for a, _ in mine)
        inner = _inner(maps, target, rank)
        assert inner is not None
        self.transfers = {id(shown): p.transfer for shown, p in zip(maps, plans, strict=True) if not p.here}
        self.inner_box = BoxPlan(self, inner)
        self.slabs = [BoxPlan(self, box) for box in slabs(inner, PIECES)]
        self.edges = [BoxPlan(self, box) for box in around(mine, inner)]

    def moved(self, tree: Broadcasted) -> list[list[Moving]]:
        """The operands of which something travels; those of one dtype travel together."""
        found = [(key, view, self.transfers.get(key[1])) for key, view in _views_of(tree).items()]
        return by_dtype([(key, view, t) for key, view, t in found if t is not None])

    def run(self, frame: Any, tree: Broadcasted, dest: Any) -> Any:
        inner = frame.inner
        if dest is None:
            dest = inner._empty(frame.local_shape, tree.dtype)
        note_halo(inner, self, frame, tree, dest)
        arrived: dict[tuple[int, int], list[Any]] = {}
        under_way: list[Messages] = []
        for moving in self.moved(tree):
            under_way.append(begin(moving, arrived))
        large = any(v.nbytes > EAGER_BYTES for landed in arrived.values() for v in landed)
        # (messages between cards need nobody to move them on)
        if large and frame.comm.carrier(inner) is frame.comm:
            for box in self.slabs:
                box.compute(frame, tree, dest, arrived)
                frame.comm.hurry()
        else:
            self.inner_box.compute(frame, tree, dest, arrived)
        for messages in under_way:
            messages.finish()
        for box in self.edges:
            box.compute(frame, tree, dest, arrived)
        return dest


class BoxPlan:
    """One box of the result: its place in this process's part, and how each operand is shown for it."""

    __slots__ = ("index", "plan", "ranges", "recipes", "shape", "shapes")

    def __init__(self, plan: HaloPlan, ranges: Box) -> None:
        self.plan, self.ranges = plan, ranges
        self.shape = tuple(b - a for a, b in ranges)
        self.index = (
            *[slice(a - o, b - o) for (a, b), o in zip(ranges, plan.origin, strict=True)],
            Ellipsis,
        )
        self.recipes = {id(shown): Recipe(plan, shown, ranges) for shown in plan.maps}
        # The shape on this box of a part of the tree of each shape.
        self.shapes: dict[tuple[int, ...], tuple[int, ...]] = {plan.target.shape: self.shape}

    def compute(self, frame: Any, tree: Broadcasted, dest: Any, arrived: dict[Any, Any]) -> None:
        local = self.node(tree, frame, arrived, {})
        if local.shape != self.shape:
            sig = promotion.intern(TABLE["copy"], (local.dtype,), (local.dtype,))
            local = Broadcasted(sig, (local,), self.shape)
        verbs.copyto(wrap(frame.inner, destination(dest[self.index])), local)

    def node(self, node: Broadcasted, frame: Any, arrived: dict[Any, Any], made: dict[int, Any]) -> Any:
        """The local tree of a tree."""
        found = made.get(id(node))
        if found is not None:
            return found
        args: list[Any] = []
        for a in node.args or ():
            kind = type(a)
            if kind is Broadcasted and a.value is None:
                args.append(self.node(a, frame, arrived, made))
                continue
            if kind is Broadcasted or kind is Reduced:
                a = a.value
                kind = Leaf
            if kind is Leaf:
                leaf = made.get(id(a))
                if leaf is None:
                    leaf = made[id(a)] = Leaf(self.view(a.view, frame, arrived))
                a = leaf
            args.append(a)
        shape = self.shapes.get(node.shape)
        if shape is None:
            shape = self.shapes[node.shape] = self._shape_of(node.shape)
        found = made[id(node)] = Broadcasted(node.sig, tuple(args), shape)
        return found

    def _shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        full = self.plan.target.shape
        off = len(full) - len(shape)
        return tuple(self.shape[off + i] if n == full[off + i] else n for i, n in enumerate(shape))

    def view(self, view: DView, frame: Any, arrived: dict[Any, Any]) -> Any:
        """What the box needs of an operand, as a local view."""
        buffer = view.buffer
        if view.whole and buffer.partition is self.plan.target:
            return buffer.local[self.index]
        recipe = self.recipes[id(view.map)]
        if recipe.how is not None:
            return recipe.how.show(buffer.local)
        landed = arrived[buffer.name, id(view.map)]
        if recipe.came is not None:
            which, index = recipe.came
            return landed[which][index]
        if counters.active:
            counters.add(temporaries=1)
        out = frame.inner._empty(recipe.shape, view.dtype)
        for where, how, came in recipe.parts:
            source = how.show(buffer.local) if how is not None else landed[came[0]][came[1]]
            frame.inner._copy_into(out[where], source)
        return out


class Recipe:
    """How a box's part of an operand is had: as it lies here (`how`), as it came (`came`), or put together."""

    __slots__ = ("came", "how", "parts", "shape")

    def __init__(self, plan: HaloPlan, shown: Map, ranges: Box) -> None:
        off = len(plan.target.shape) - len(shown.shape)
        region: Box = tuple(
            ranges[off + i] if off + i >= 0 and n == plan.target.shape[off + i] else (0, n)
            for i, n in enumerate(shown.shape)
        )
        wanted = tuple((r,) for r in region)
        self.shape = tuple(b - a for a, b in region)
        self.how: Any = None
        self.came: Any = None
        self.parts: list[tuple[Any, Any, Any]] = []
        own = boxes(shown.held(plan.rank), wanted)
        if own == [region]:
            self.how = shown.how(plan.rank, region)
            return
        for part in own:
            self.parts.append((_inside(region, part), shown.how(plan.rank, part), None))
        transfer = plan.transfers.get(id(shown))
        which = 0
        for found in transfer.receives.values() if transfer is not None else ():
            for box in found:
                for part in boxes(tuple((r,) for r in box), wanted):
                    self.parts.append((_inside(region, part), None, (which, _inside(box, part))))
                which += 1
        if len(self.parts) == 1 and self.parts[0][2] is not None:
            self.came = self.parts[0][2]


def _inside(box: Box, part: Box) -> tuple[Any, ...]:
    """The index of a part in a box."""
    return (*[slice(a - o, b - o) for (a, b), (o, _) in zip(part, box, strict=True)], Ellipsis)


def _views_of(tree: Broadcasted) -> dict[tuple[int, int], DView]:
    """The operands of a tree, once each: by the buffer they show and how."""
    return {(leaf.view.buffer.name, id(leaf.view.map)): leaf.view for leaf in execution.leaves_of(tree)}


def by_dtype(moving: list[Moving]) -> list[list[Moving]]:
    """Operands that travel together."""
    found: dict[np.dtype, list[Moving]] = {}
    for one in moving:
        found.setdefault(one[1].dtype, []).append(one)
    return list(found.values())


def begin(moving: list[Moving], arrived: dict[Any, list[Any]]) -> Messages:
    """Start the messages of operands of one dtype, one to each process; told where their boxes will be."""
    _, first, _ = moving[0]
    inner, dtype = first.buffer.inner, first.dtype
    # (Without checks, the messages of what was met before have the mark that they had.)
    checks = settings.check_collectives
    marks = [told(t.marked(dtype), v.history if checks else None) for _, v, t in moving]
    messages = Messages(first.buffer.comm, inner, together(marks))
    outgoing: dict[int, Any] = {}
    for q, parts in boxes_by_rank(moving, "sends").items():
        if len(parts) == 1:
            (_, view, transfer), found = parts[0]
            outgoing[q] = transfer._packed(view.buffer, inner, found, dtype)
            continue
        row = outgoing[q] = inner._empty((sum(volume(b) for _, found in parts for b in found),), dtype)
        at = 0
        for (_, view, transfer), found in parts:
            n = sum(map(volume, found))
            transfer.pack(view.buffer, inner, found, row[at : at + n])
            at += n
    messages.begin(outgoing, landing(moving, inner._empty, arrived))
    return messages


def together(marks: list[int]) -> int:
    """The mark of messages of several operands."""
    return marks[0] if len(marks) == 1 else mixed(*marks)


def boxes_by_rank(moving: list[Moving], side: str) -> dict[int, list[tuple[Moving, list[Box]]]]:
    """Of each operand the boxes that go to a process (`sends`), or come from one (`receives`)."""
    found: dict[int, list[tuple[Moving, list[Box]]]] = {}
    for one in moving:
        for q, some in getattr(one[2], side).items():
            found.setdefault(q, []).append((one, some))
    return found


def landing(
    moving: list[Moving], empty: Callable[[tuple[int], np.dtype], Any], arrived: dict[Any, list[Any]]
) -> dict[int, Any]:
    """Memory for what comes from each process, of `empty(shape, dtype)`; told where the boxes of each operand
    will be."""
    incoming: dict[int, Any] = {}
    landed: dict[tuple[Any, int], list[Any]] = {}
    for q, parts in boxes_by_rank(moving, "receives").items():
        row = incoming[q] = empty((sum(volume(b) for _, found in parts for b in found),), moving[0][1].dtype)
        at = 0
        for (key, _, _), found in parts:
            shown = landed[key, q] = []
            for box in found:
                n = volume(box)
                shown.append(row[at : at + n].reshape([b - a for a, b in box]))
                at += n
    for key, _, transfer in moving:
        arrived[key] = [part for q in transfer.receives for part in landed[key, q]]
    return incoming


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
    return [((low, high), *box[1:]) for low, high in itertools.pairwise(edges)]
