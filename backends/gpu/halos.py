"""Statements of distributed arrays that come back, where parts are on cards.

A statement that overlaps its messages with the inner part of its result
(arraytypes/distributed/overlapping.py) makes local trees for each box of it, and has them computed. For one
that comes back with operands divided, shown and laid out alike, and with the same numbers, the launches of its
boxes are written down: which kernel, and how far each address is from where an operand's part begins, or what
came of it. The messages are the same as before, so it does not matter to another process whether this one
knows its statement again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.distributed import overlapping
from mirabelle.arraytypes.distributed.overlapping import BoxPlan, HaloPlan, begin, landing
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.gpu.direct import usable
from mirabelle.backends.gpu.run import launcher_of
from mirabelle.backends.host.shortcuts import Unfit, refused
from mirabelle.dispatch import counters
from mirabelle.dispatch.schedule import schedule
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# So many statements are known, which were met so often; of one sig and size so many (their numbers may change
# each time), and trees of so many operations.
MOST, OFTEN, TURNS, LARGEST = 1 << 10, 3, 16, 48

known: dict[Any, _Statement] = {}
_met: dict[Any, int] = {}
_turns: dict[Any, int] = {}


@overlapping.known_halo.method
def _(inner: type[GPUArray], frame: Any, tree: Broadcasted, dest: Any) -> Any:
    if (tree.sig, tree.size) not in _turns or recording.active or recording.watchers or not usable():
        return None
    key, leaves = _spelled(frame, tree, dest)
    statement = known.get(key)
    if statement is None:
        return None
    if dest is None:
        dest = inner._empty(frame.local_shape, tree.dtype)
    statement.run(frame, tree, leaves, dest)
    return dest


@overlapping.note_halo.method
def _(inner: type[GPUArray], plan: HaloPlan, frame: Any, tree: Broadcasted, dest: Any) -> None:
    kind = tree.sig, tree.size
    if _turns.get(kind, 0) >= TURNS or 0 in frame.local_shape or not usable():
        return
    key, leaves = _spelled(frame, tree, dest)
    if key is None:
        return
    if len(known) > MOST or len(_met) > MOST:
        known.clear()
        _met.clear()
        _turns.clear()
    _met[key] = _met.get(key, 0) + 1
    if _met[key] < OFTEN:
        return
    del _met[key]
    try:
        known[key] = _Statement(plan, frame, tree, leaves, dest)
        _turns[kind] = _turns.get(kind, 0) + 1
    except Unfit:
        _turns[kind] = TURNS


def _spelled(frame: Any, tree: Broadcasted, dest: Any) -> tuple[Any, list[Leaf]]:
    """What a statement has to have in common with one that was met, and its operands; (None, ...) if it is of
    what is not written down."""
    # (Who has an id in a key keeps what has it.)
    key: list[Any] = [frame.inner, frame.rank, id(frame.partition), None if dest is None else dest.layout]
    leaves: list[Leaf] = []
    first: dict[int, int] = {}
    stack: list[Any] = [tree]
    operations = 0
    while stack:
        a = stack.pop()
        kind = type(a)
        if kind is Broadcasted or kind is Reduced:
            if a.value is not None:
                a, kind = a.value, Leaf
            elif kind is Reduced or operations == LARGEST:
                return None, leaves
            else:
                operations += 1
                key.append(a.sig)
                key.append(a.shape)
                stack += a.args[::-1]
                continue
        if kind is Leaf:
            view = a.view
            if a.table or not isinstance(view, DView):
                return None, leaves
            buffer = view.buffer
            shown = buffer.partition if view.whole else view.map
            if buffer.comm is not frame.comm or buffer.partition.partial or shown is None:
                return None, leaves
            local = buffer.local
            key += (first.setdefault(local.ptr, len(first)), id(shown), local.layout)
            leaves.append(a)
        elif kind is float:
            key += (float, a, math.copysign(1.0, a))
        elif kind is int or kind is bool:
            key += (kind, a)
        elif isinstance(a, np.generic):
            key += (kind, a.tobytes())
        else:
            return None, leaves
    return tuple(key), leaves


class _Statement:
    """The launches of a statement: those of the inner part, and those that read what came."""

    __slots__ = ("edges", "inner", "keep", "plan")

    def __init__(self, plan: HaloPlan, frame: Any, tree: Broadcasted, leaves: list[Leaf], dest: Any) -> None:
        self.plan = plan
        self.keep = frame.partition, [x.view.buffer.partition if x.view.whole else x.view.map for x in leaves]
        arrived: dict[Any, list[Any]] = {}
        for moving in plan.moved(tree):
            landing(moving, frame.inner._empty, arrived)  # (memory laid out as what will come)
        self.inner = [_Box(plan.inner_box, frame, tree, leaves, dest, arrived)]
        self.edges = [_Box(box, frame, tree, leaves, dest, arrived) for box in plan.edges]

    def run(self, frame: Any, tree: Broadcasted, leaves: list[Leaf], dest: Any) -> None:
        arrived: dict[Any, list[Any]] = {}
        under_way = [begin(moving, arrived) for moving in self.plan.moved(tree)]
        for box in self.inner:
            box.run(leaves, dest, arrived)
        for messages in under_way:
            messages.finish()
        for box in self.edges:
            box.run(leaves, dest, arrived)


class _Box:
    """One launch: where it writes, and for each operand of the kernel which leaf, which box that came (-1: it
    lies here), and how far from where that begins."""

    __slots__ = ("launch", "offset", "read", "scalars", "sources", "written")

    def __init__(
        self,
        box: BoxPlan,
        frame: Any,
        tree: Broadcasted,
        leaves: list[Leaf],
        dest: Any,
        arrived: dict[Any, Any],
    ) -> None:
        made: dict[int, Any] = {}
        found: dict[Any, tuple[int, int, int]] = {}
        for i, leaf in enumerate(leaves):
            view = leaf.view
            here = view.whole and view.buffer.partition is box.plan.target
            recipe = None if here else box.recipes.get(id(view.map))
            if not here and (recipe is None or (recipe.how is None and recipe.came is None)):
                raise Unfit  # put together of several
            local = made[id(leaf)] = made.get(id(leaf)) or Leaf(box.view(view, frame, arrived))
            which, begins = -1, view.buffer.local.ptr
            if recipe is not None and recipe.how is None:
                which = recipe.came[0]
                begins = arrived[view.buffer.name, id(view.map)][which].ptr
            source = i, which, local.view.ptr - begins
            if found.setdefault(local.key(), source)[1:] != source[1:]:
                raise Unfit
        local_tree = box.node(tree, frame, arrived, made)
        target = dest[box.index]
        if local_tree.shape != target.shape or not target.size:
            raise Unfit
        request = schedule(local_tree, refused, evaluates=False)
        program = program_for(request, (target.dtype,))
        if request.stored:
            raise Unfit
        views = [leaf.view for leaf in request.leaves]
        self.sources = [found[leaf.key()] for leaf in request.leaves]
        self.offset = target.ptr - dest.ptr
        self.scalars = tuple(scalar_values(program, request.scalars)) if request.scalars else ()
        self.launch = launcher_of(frame.inner, program, views, [target])
        self.read, self.written = program.bytes_read(views), target.nbytes

    def run(self, leaves: list[Leaf], dest: Any, arrived: dict[Any, list[Any]]) -> None:
        addresses = [dest.ptr + self.offset]
        for i, which, offset in self.sources:
            view = leaves[i].view
            begins = view.buffer.local if which < 0 else arrived[view.buffer.name, id(view.map)][which]
            addresses.append(begins.ptr + offset)
        if counters.active:
            counters.launched(self.read, self.written)
        self.launch(*addresses, *self.scalars)
