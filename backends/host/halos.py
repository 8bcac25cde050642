"""Statements of distributed arrays that come back, where parts are arrays of the host.

A statement that overlaps its messages with the inner part of its result
(arraytypes/distributed/overlapping.py) makes local trees for each box of it, and has them computed. For one
that comes back with operands divided and shown alike all this is written down: what stands in the tree, what
is sent of each operand, and the argument blocks of the kernels. dispatch/csrc/halos.c compares trees with it,
and does it again. The messages are the same as before, so it does not matter to another process whether this
one knows its statement again. (Where C was not built nothing is known again.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.arraytypes.distributed import overlapping
from mirabelle.arraytypes.distributed.overlapping import (
    EAGER_BYTES,
    BoxPlan,
    HaloPlan,
    boxes_by_rank,
    landing,
    together,
)
from mirabelle.arraytypes.distributed.transfers import volume
from mirabelle.arraytypes.distributed.views import DBuffer, DView
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.host import layout, run, shortcuts
from mirabelle.backends.host.run import LaunchPlan
from mirabelle.backends.host.shortcuts import Unfit, known, note, refused
from mirabelle.backends.host.unchanged import usable
from mirabelle.dispatch import native
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.schedule import schedule
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf

# As statements are counted (shortcuts.py); the kind of an item that is divided (dispatch/csrc/statements.h).
_WAY, _DIVIDED = 5, 5

native.tell(
    divided=DView,
    divided_buffer=DView.__dict__["buffer"],
    divided_whole=DView.__dict__["whole"],
    divided_map=DView.__dict__["_map"],
    buffer_comm=DBuffer.__dict__["comm"],
    buffer_partition=DBuffer.__dict__["partition"],
    buffer_local=DBuffer.__dict__["local"],
    buffer_leaf=DBuffer.__dict__["_leaf"],
    buffer_came=DBuffer.__dict__["came"],
)


@overlapping.known_halo.method
def _(inner: type[HostArray], frame: Any, tree: Broadcasted, dest: Any) -> Any:
    if (tree.sig, tree.size, _WAY) not in known:
        return None
    if dest is None:
        dest = pool.empty(frame.local_shape, tree.dtype)
    return dest if in_c.halo_again(known, tree, frame.comm, frame.partition, dest) else None


@overlapping.note_halo.method
def _(inner: type[HostArray], plan: HaloPlan, frame: Any, tree: Broadcasted, dest: Any) -> None:
    if type(dest) is np.ndarray and frame.comm.carrier(HostArray) is frame.comm:
        note(tree, _WAY, lambda: _made(plan, frame, tree, dest))


def _made(plan: HaloPlan, frame: Any, tree: Broadcasted, dest: np.ndarray) -> Any:
    try:
        return _Halo(plan, frame, tree, dest).made()
    except ValueError as e:  # (more than C has room for)
        raise Unfit from e


class _Halo(shortcuts.Statement):
    """What stands in the tree, and what is done then."""

    def __init__(self, plan: HaloPlan, frame: Any, tree: Broadcasted, dest: np.ndarray) -> None:
        if tree.shape != plan.target.shape or not usable():
            raise Unfit
        self.plan, self.frame = plan, frame
        # The first item of each part of an operand: by the buffer, and how it is shown.
        self.first: dict[Any, int] = {}
        self._looked_at(tree, tree, None, dest)

    def _leaf(self, a: Leaf, own: bool) -> None:
        view = a.view
        if a.table or a.foreign or not isinstance(view, DView) or view.buffer.comm is not self.frame.comm:
            raise Unfit
        buffer = view.buffer
        if buffer.partition.partial or type(buffer.local) is not np.ndarray or view.map is None:
            raise Unfit
        item = shortcuts.Item(_DIVIDED, buffer.partition if view.whole else view.map, a)
        item.local = buffer.local
        item.dtype = buffer.comm
        item.same = self.first.setdefault((buffer.name, id(view.map)), len(self.items))
        if item.same == len(self.items):
            item.same = -1
        self.items.append(item)

    def made(self) -> Any:
        """The statement in C."""
        plan, comm, target = self.plan, self.frame.comm, self.target
        # What comes from others, in the order in which `overlapped` has it sent.
        arrived: dict[Any, list[np.ndarray]] = {}
        exchanges: list[Any] = []
        marks: list[int] = []
        sent: list[Any] = []
        for moving in plan.moved(self.tree):
            dtype = moving[0][1].dtype
            sends: dict[int, np.ndarray] = {}
            for q, parts in boxes_by_rank(moving, "sends").items():
                out = sends[q] = np.empty(sum(volume(b) for _, boxes in parts for b in boxes), dtype)
                to = address_of(out)
                for (key, view, transfer), boxes in parts:
                    for box in boxes:
                        part = transfer.map.shows(view.buffer.local, plan.rank, box)
                        offset = address_of(part) - address_of(view.buffer.local)
                        sent.append((self.first[key], offset, part.shape, part.strides, part.itemsize, to))
                        to += part.nbytes
            receives = landing(moving, np.empty, arrived)
            if sends or receives:
                exchanges.append((sends, receives))
                marks.append(together([transfer.marked(dtype) for _, _, transfer in moving]))
        large = any(v.nbytes > EAGER_BYTES for parts in arrived.values() for v in parts)
        inner = plan.slabs if large else [plan.inner_box]
        boxes = [self._box(box, arrived) for box in [*inner, *plan.edges]]
        messages = comm.repeated(exchanges, marks)
        pattern = in_c.Statement(
            0, 1, [0], 0, target.dtype, [item.said() for item in self.items], None, None,
            (0, 0, target.shape, target.strides, 0, 0),
        )  # fmt: skip
        outgoing = [v for given, _ in exchanges for v in given.values()]
        return in_c.Halo(
            pattern, comm, plan.target, boxes, len(inner), sent, messages.start, comm.hurry if large else None,
            messages.wait, (exchanges, arrived, plan), len(outgoing), sum(v.nbytes for v in outgoing),
        )  # fmt: skip

    def _box(self, box: BoxPlan, arrived: dict[Any, list[np.ndarray]]) -> Any:
        """One kernel: its statement, where its result lies, and where its operands and numbers come from."""
        # What the box reads of each operand: its view, the item, how far in it begins (-1: it came).
        parts: list[tuple[Any, int, int]] = []
        made: dict[int, Any] = {}
        for number, item in enumerate(self.items):
            if item.leaf is None:
                continue
            view = item.leaf.view
            recipe = box.recipes.get(id(view.map))
            whole = view.whole and view.buffer.partition is self.plan.target
            if not whole and (recipe is None or (recipe.how is None and recipe.came is None)):
                raise Unfit  # put together of several
            local = made[id(item.leaf)] = made.get(id(item.leaf)) or Leaf(box.view(view, self.frame, arrived))
            here = whole or recipe.how is not None  # type: ignore[union-attr]
            offset = address_of(local.view) - address_of(item.local) if here else -1
            parts.append((local, number, offset))
        tree = box.node(self.tree, self.frame, arrived, made)
        target: np.ndarray = self.target[box.index]  # type: ignore[index]
        if tree.shape != target.shape:
            raise Unfit
        request = schedule(tree, refused, evaluates=False)
        program = program_for(request, (target.dtype,))
        if request.stored or program.user_functions or not run.has_kernel(program):
            raise Unfit
        views = [leaf.view for leaf in request.leaves]
        arrangement = layout.arrange(target.shape, [target, *views])
        entry = run.compiled(program, arrangement, views, [target])
        if entry is None:
            raise Unfit
        plan = LaunchPlan(program, entry, arrangement)
        words = list(plan.words)
        if len(words) > shortcuts.WORDS:
            raise Unfit
        sources = []
        for i, leaf in enumerate(request.leaves):
            word = plan.addresses[1 + i]
            # (What is one operand of the kernel must be one the next time.)
            found = [p for p in parts if p[0].key() == leaf.key()]
            if not found or any((p[2] < 0) != (found[0][2] < 0) for p in found):
                raise Unfit
            _, number, offset = found[0]
            for _, other, _ in found[1:]:
                item = self.items[other]
                if item.same < 0 and item.local is not self.items[number].local:
                    raise Unfit
                if item.same < 0:
                    item.same = number
            if offset < 0:
                words[word] = address_of(leaf.view)
            else:
                sources.append((word, number, offset))
        numbers = []
        for number, word in self.number_words(request, plan, program).items():
            numbers.append((word, number))
        statement = in_c.Statement(
            plan.kernel.address, settings.thread_size * plan.least, words, plan.addresses[0], target.dtype, [],
            plan.launch, plan.kernel,
            (plan.rows, plan.inner, target.shape, target.strides, program.bytes_read(views), target.nbytes),
        )  # fmt: skip
        return statement, address_of(target) - address_of(self.target), sources, numbers


def count_known() -> int:
    """How many of them are known."""
    return sum(len(v) for key, v in known.items() if key[2] == _WAY)
