"""What evaluating a tree over distributed arrays would exchange, found without exchanging anything.

The same plans that evaluation makes are made here, from layouts alone. What would be computed first, a
reduction within the tree, is replaced by a *stand-in*: memory of no size with the layout it would have.

>>> import mirabelle as mb
>>> x = mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])
>>> step, = rehearse(mb.ext.tree(x[1:] - x[:-1]))
>>> [need.words for need in step.needs]
['is here', 'is here']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.dense import family_of_version
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.execution import (
    Frame,
    chosen,
    hint_of,
    operand,
    operand_plan,
    stretched,
)
from mirabelle.arraytypes.distributed.layoutreport import ranks
from mirabelle.arraytypes.distributed.layouts import Partition, Split, everywhere, partition
from mirabelle.arraytypes.distributed.overlapping import plan_of
from mirabelle.arraytypes.distributed.transfers import volume
from mirabelle.arraytypes.distributed.views import DBuffer, DView
from mirabelle.dispatch import promotion
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

_new = object.__new__
# Among more processes than this, the messages of all of them are not added up.
ADDED_UP = 64


Message = tuple[int, int, Any]


class Need:
    """How the processes come to what they need of one operand."""

    __slots__ = ("name", "receives", "sends", "sent", "words")

    def __init__(self, name: str, words: str) -> None:
        self.name = name
        self.words = words
        # What this process sends and receives, in bytes by rank; what all of them send: in which message (who
        # sends, who receives, what it is told apart by) how many bytes of what.
        self.sends: dict[int, int] = {}
        self.receives: dict[int, int] = {}
        self.sent: dict[tuple[Message, Any], int] | None = {}


class Step:
    """One kernel on each process: what it computes, how that is divided, and what is exchanged for it."""

    __slots__ = ("combines", "comm", "needs", "operand", "partition", "result", "together", "version")

    def __init__(self, version: Any, comm: Communicator, target: Partition) -> None:
        self.version = version
        self.comm = comm
        # How the work is divided, and how the result is.
        self.partition = target
        self.result = target
        self.needs: list[Need] = []
        # Does what has one dtype travel together?
        self.together = False
        # The processes whose terms are combined afterwards, and how many bytes a term has.
        self.combines: tuple[tuple[int, ...], int] | None = None
        # What is computed, with stand-ins for what comes first.
        self.operand: Any = None


def rehearse(
    version: Any, names: Callable[[Leaf], str] | None = None, target: Partition | None = None
) -> list[Step]:
    """The steps in which a tree would be evaluated, in their order; or written to a `target`."""
    steps: list[Step] = []
    rehearsal = _Rehearsal(family_of_version(version), names or (lambda leaf: "operand"), steps)
    if target is not None and (type(version) is not Broadcasted or version.value is not None):
        version = Broadcasted(promotion.signature(TABLE["copy"], (version.dtype,)), (version,), version.shape)
    rehearsal.step(version, target)
    return steps


class _Rehearsal:
    def __init__(self, family: Any, names: Callable[[Leaf], str], steps: list[Step]) -> None:
        self.family = family
        self.names = names
        self.steps = steps
        # What stands for reductions, and for leaves whose terms would be combined first.
        self.stands: dict[int, Leaf] = {}
        # (So that what `stands` knows by its number lives as long.)
        self.kept: list[Any] = []

    def step(self, version: Any, written: Partition | None = None) -> Step:
        """Plan what gives a version its value; the reductions in it come first."""
        operand: Any = version.operand if type(version) is Reduced else version
        if type(operand) in (Broadcasted, Reduced) and operand.value is not None:
            operand = operand.value
        operand = self.standing(operand)
        leaves = _leaves(operand)
        comm, target = chosen(self.family, operand.shape, leaves)
        if written is not None:
            target = written
        elif type(version) is Broadcasted:
            hint = hint_of(version)
            if hint is not None:
                target = self.family._divided(version.shape, comm, hint)
        elif (
            version.reduction.scalar is None
            and version.reduction.neutral(version.dtype) is None
            and any(0 in target.local_shape(q) for q in range(target.size))
        ):
            target = everywhere(target.shape, target.mesh)  # (nothing stands for the term of an empty part)
        made = Step(version, comm, target)
        made.together = plan_of(Frame(self.family, comm, target), operand) is not None
        for leaf in leaves:
            made.needs.append(self.need(leaf, made))
        if type(version) is Reduced:
            made.result = _reduced(version, target)
            divided = {target.splits[d].mesh_axis for d in version.axes if target.splits[d] is not None}  # type: ignore[union-attr]
            group = _combining(target, comm.rank, divided)
            if len(group) > 1:
                local = int(np.prod(made.result.local_shape(comm.rank)))
                made.combines = group, local * version.dtype.itemsize
        made.operand = operand
        self.steps.append(made)
        return made

    def standing(self, x: Any) -> Any:
        """The tree with stand-ins for what would be computed, or combined, before it."""
        made: dict[int, Any] = {}

        def walk(node: Any) -> Any:
            kind = type(node)
            if kind in (Broadcasted, Reduced) and node.value is not None:
                node, kind = node.value, Leaf
            if kind is Leaf:
                return self.leaf(node)
            if kind is Reduced:
                return self.reduction(node)
            if kind is not Broadcasted:
                return node  # a scalar
            found = made.get(id(node))
            if found is None:
                found = made[id(node)] = Broadcasted(node.sig, tuple(map(walk, node.args or ())), node.shape)
                found.layout = node.layout
            return found

        return walk(x)

    def leaf(self, leaf: Leaf, wait: bool = True) -> Leaf:
        view = leaf.view
        if not isinstance(view, DView) or not view.buffer.partition.partial:
            return leaf
        found = self.stands.get(id(leaf))
        if found is None:
            old = view.buffer
            part = partition(old.partition.shape, old.partition.mesh, old.partition.splits)
            twin = DBuffer(old.comm, part, old.inner, old.local)
            twin.name = old.name
            found = Leaf(DView(twin, view.proxy, view.whole), table=leaf.table)
            self.keep(leaf, found)
        return found

    def reduction(self, node: Reduced) -> Leaf:
        found = self.stands.get(id(node))
        if found is None:
            step = self.step(node)
            found = Leaf(DView(_stand_in(step.comm, step.result, self.family.inner, node.dtype)))
            self.keep(node, found)
        return found

    def keep(self, old: Any, found: Leaf) -> None:
        self.stands[id(old)] = found
        self.kept.append(old)

    def name_of(self, leaf: Leaf) -> str:
        for key, found in self.stands.items():
            if found is leaf:
                old = next(k for k in self.kept if id(k) == key)
                return self.names(old) if type(old) is Leaf else f"the {old.reduction.name}"
        return self.names(leaf)

    def need(self, leaf: Leaf, step: Step) -> Need:
        """How an operand comes to where it is needed."""
        name, view, comm = self.name_of(leaf), leaf.view, step.comm
        target = step.partition
        if leaf.table:
            return _unknown(name, "is read by index: what is not here is asked for when it runs")
        old = next((k for k in self.kept if self.stands[id(k)] is leaf), None)
        waits = type(old) is Leaf
        shown = view.map
        if shown is None:
            return _unknown(name, "is sent element by element: its strides go across the parts of processes")
        need = Need(name, "")
        plan = operand_plan(shown, target, comm.rank)
        if not plan.here:

            def sizes(found: Any) -> dict[int, int]:
                return {q: sum(map(volume, b)) * view.dtype.itemsize for q, b in sorted(found.items())}

            need.sends, need.receives = sizes(plan.transfer.sends), sizes(plan.transfer.receives)
            if target.size <= ADDED_UP:
                what = view.buffer.name, id(shown)
                need.sent = {
                    ((p, q, view.dtype if step.together else what), what): n
                    for p in range(target.size)
                    for q, n in sizes(operand_plan(shown, target, p).transfer.sends).items()
                }
            else:
                need.sent = None
        need.words = _words(need, plan.here, waits)
        return need


class _RehearsalFrame(Frame):
    """A frame whose operands are stand-ins where they would come from others."""

    def leaf(self, leaf: Leaf, wait: bool = True) -> Leaf:
        view = leaf.view
        shown = view.map
        if shown is None:
            return Leaf(self.inner._empty(self.shape_of(leaf.shape), leaf.dtype))
        plan = operand_plan(shown, self.partition, self.rank)
        if plan.here:
            return operand(self, view)
        return Leaf(stretched(self, self.inner._empty(plan.shape, leaf.dtype), view.shape))


def local_tree(step: Step) -> Any:
    """What this process computes of its part, over memory that is not read; None if it cannot be said."""
    version, operand = step.version, step.operand
    if any(leaf.table for leaf in _leaves(operand)):
        return None
    frame = _RehearsalFrame(family_of_version(version), step.comm, step.partition)
    if 0 in frame.local_shape:
        return None
    local = frame.node(operand) if type(operand) is Broadcasted else frame.leaf(operand)
    if type(version) is not Reduced:
        return local
    if local.shape != frame.local_shape:
        return None
    shape = tuple(
        1 if d in version.axes else n
        for d, n in enumerate(frame.local_shape)
        if version.keepdims or d not in version.axes
    )
    return Reduced(version.reduction, local, version.axes, version.keepdims, shape, version.dtype)


def _stand_in(comm: Communicator, part: Partition, inner: Any, dtype: np.dtype) -> DBuffer:
    """A buffer of a partition with memory that nobody has written."""
    return DBuffer(comm, part, inner, inner._empty(part.local_shape(comm.rank), dtype))


def _unknown(name: str, words: str) -> Need:
    need = Need(name, words)
    need.sent = None
    return need


def _words(need: Need, here: bool, waits: bool) -> str:
    first = "is combined from the terms of all, then " if waits else ""
    if here:
        return f"{first}is here"
    said = []
    if need.receives:
        said.append(f"{shown_bytes(sum(need.receives.values()))} come from {ranks(list(need.receives))}")
    if need.sends:
        said.append(f"{shown_bytes(sum(need.sends.values()))} go to {ranks(list(need.sends))}")
    return first + (", ".join(said) or "is here, and comes to others from others")


def _leaves(tree: Any) -> list[Leaf]:
    """The leaves of a tree of stand-ins, each once."""
    found: dict[int, Leaf] = {}
    seen: set[int] = set()
    stack = [tree]
    while stack:
        x = stack.pop()
        if type(x) is Leaf:
            found.setdefault(id(x), x)
        elif type(x) is Broadcasted and id(x) not in seen:
            seen.add(id(x))
            stack.extend(reversed(x.args or ()))
    return list(found.values())


def _combining(target: Partition, rank: int, divided: set[int]) -> tuple[int, ...]:
    """The processes whose terms are combined: those along these dimensions of the mesh."""
    at = target.coordinates(rank)
    others = ((q, target.coordinates(q)) for q in range(target.size if divided else 0))
    return tuple(q for q, to in others if all(to[m] == c for m, c in enumerate(at) if m not in divided))


def _reduced(node: Reduced, target: Partition) -> Partition:
    """How the result of a reduction is divided."""
    splits: list[Split | None] = []
    for d, split in enumerate(target.splits):
        if d not in node.axes:
            splits.append(split)
        elif node.keepdims:
            splits.append(None)
    return partition(node.shape, target.mesh, tuple(splits))


def partition_of(version: Any) -> tuple[Communicator, Partition]:
    """Over which processes the value of a tree would be divided, and how."""
    step = rehearse(version)[-1]
    return step.comm, step.result
