"""How a tree over distributed arrays is computed: each process computes its part of the result.

The result's partition comes first: that of the destination, or of the operand that is divided most. Then each
leaf is shown as this process needs it: where it holds what it needs, as a view; else what is missing comes
from others. What remains is a tree over local arrays, which the local type evaluates in one kernel.
"""

from __future__ import annotations

import itertools
import math
import weakref
from typing import Any

import numpy as np

from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import as_shape, compute, force, settle, wrap
from mirabelle.arraytypes.distributed import combining, gathering, histories, overlapping
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.distributed.darray import DArray, place_of
from mirabelle.arraytypes.distributed.layouts import Partition, Split, covers, everywhere, partition
from mirabelle.arraytypes.distributed.transfers import Transfer
from mirabelle.arraytypes.distributed.views import DBuffer, DView, Map, whole_leaf
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch._native import local_tree
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.schedule import worth_storing
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, destination, kept, new_node


class Frame:
    """What a tree is computed for: a partition, and this process's place in it."""

    __slots__ = (
        "comm",
        "family",
        "fetched",
        "inner",
        "kept",
        "local_shape",
        "made",
        "order",
        "partition",
        "rank",
        "under_way",
        "uses",
    )

    def __init__(self, family: Any, comm: Communicator, target: Partition) -> None:
        self.family = family
        self.inner = family.inner
        self.comm = comm
        self.partition = target
        self.rank = comm.rank
        self.local_shape = target.local_shape(comm.rank)
        # What comes from others: what has to be finished before it is read, and where it will be.
        self.under_way: list[Any] = []
        self.fetched: dict[tuple[int, int], Any] = {}
        # The local node of each node, those nodes in order, and how often each is used.
        self.made: dict[int, Any] = {}
        self.order: list[Broadcasted] = []
        self.uses: dict[int, int] = {}
        # Nodes that somebody outside the tree holds, what holds their local nodes, and whether they are stored.
        self.kept: list[tuple[Broadcasted, Any, bool]] = []

    def node(self, node: Broadcasted) -> Any:
        """The local tree of a tree."""
        key = id(node)
        found = self.made.get(key)
        if found is not None:
            self.uses[key] += 1
            return found
        args: list[Any] = []
        size = 1
        for a in node.args or ():
            kind = type(a)
            if kind is Broadcasted:
                a = self.node(a) if a.value is None else self.leaf(a.value, wait=False)
                size += a.size
            elif kind is Leaf:
                a = self.leaf(a, wait=False)
            elif kind is Reduced:
                a = self.leaf(a.value if a.value is not None else force(self.family, a), wait=False)
            args.append(a)
        found = self.made.get(key)
        if found is not None:  # (one of several results, made with the others)
            self.uses[key] += 1
            self.order.append(node)
            return found
        made = new_node(Broadcasted)
        made.sig = node.sig
        made.args = tuple(args)
        made.shape = self.shape_of(node.shape)
        made.size = size
        if node.evaluations:
            made.evaluations = node.evaluations
        self.made[key] = made
        self.uses[key] = 1
        self.order.append(node)
        if node.sig.op.nout > 1 and node.shape == self.partition.shape:
            self.several(node, made)
        return made

    def several(self, node: Broadcasted, made: Broadcasted) -> None:
        """An operation with several results: one kernel computes all that somebody still waits for."""
        made.reducers = []
        for waiting in node.reducers or ():
            sibling = waiting()
            if sibling is not None and sibling.value is None:
                local = Broadcasted(sibling.sig, (made,), made.shape)
                self.made[id(sibling)] = local
                self.uses[id(sibling)] = 0
                self.kept.append((sibling, kept(local), True))
                made.reducers.append(weakref.ref(local))

    def leaf(self, leaf: Leaf, wait: bool = True) -> Leaf:
        """The local leaf of a leaf. Without `wait`, what comes from others is there after `built`."""
        if leaf.table:
            return gathering.local_table(self, leaf)
        view = leaf.view
        buffer = view.buffer
        if view.whole and buffer.partition is self.partition:
            return buffer.leaf  # type: ignore[no-any-return]
        return operand(self, view, None if wait else self.under_way)

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The local shape of a part of the tree: this process's part of dimensions that are not stretched."""
        full = self.partition.shape
        if shape == full:
            return self.local_shape
        if not shape:
            return shape
        off = len(full) - len(shape)
        return tuple(
            mine if n == whole else n
            for n, whole, mine in zip(shape, full[off:], self.local_shape[off:], strict=True)
        )

    def built(self) -> None:
        """The local tree is there: keep those parts that somebody outside holds, and let go of the others.

        (The values of those may be worth storing. What is held looks to the local type as if it were. But the
        local type may decide otherwise where a part is small or empty, and all processes have to decide alike,
        or they would go on with different trees: so it is decided here, by the whole.)
        """
        order = self.order
        if len(order) > 1:
            order.pop()
            shape = self.partition.shape
            for node in order:
                if node.holders > self.uses[id(node)]:
                    # (Whatever is stored within it. Who holds a part is each process's own affair, too: if that
                    # is stored, so is all that reads it, and nobody goes on with a tree that holds its value.)
                    stores = node.shape == shape and len(node.sig.outs) == 1 and worth_storing(node)
                    self.kept.append((node, kept(self.made[id(node)]), stores))
        self.order = []
        self.made = {}
        self.fetched = {}
        for messages in self.under_way:
            messages.finish()
        self.under_way = []

    def settle(self) -> None:
        """Give nodes that are worth it their values: mostly, they were stored on the way."""
        for node, holder, stores in self.kept:
            if node.value is not None:
                continue
            if stores:
                view = self.family._of_local(self.comm, self.partition, force(self.inner, holder._node).view)
                view.buffer.history = histories.history(node)
                settle(node, Leaf(view))
            else:
                node.evaluations += 1


# Leaves as this process needs them


def operand(frame: Frame, view: DView, under_way: list[Any] | None = None) -> Leaf:
    """A leaf of the local type with what this process needs of a view, from others where it must.

    With `under_way`, it is there once what is added to that list has been finished.
    """
    buffer = view.buffer
    if buffer.comm is not frame.comm:
        _check_communicators(frame.comm, buffer.comm)
    if buffer.partition.partial:
        combining.resolve(buffer)
        view._map = None
    shown = view.map
    if shown is None:
        return scattered_operand(frame, view)
    plan = operand_plan(shown, frame.partition, frame.rank)
    if not plan.here:
        key = buffer.name, id(shown)
        local = frame.fetched.get(key)
        if local is None:
            local = frame.fetched[key] = frame.inner._empty(plan.shape, view.dtype)
            if counters.active:
                counters.add(temporaries=1)
            plan.transfer.run(view, local, under_way)
    elif plan.empty:
        local = frame.inner._empty(plan.shape, view.dtype)
    else:
        local = plan.how.show(buffer.local)
    return Leaf(local if shown.shape == view.shape else stretched(frame, local, view.shape))


def stretched(frame: Frame, local: Any, shape: tuple[int, ...]) -> Any:
    """A local view of an operand that repeats its places: as many of them as this process's part has."""
    mine = frame.shape_of(shape)
    if local.shape == mine:
        return local
    return np.broadcast_to(local, mine) if isinstance(local, np.ndarray) else local.broadcast_to(mine)


class OperandPlan:
    """How a process comes to what it needs of a view, for a tree of one partition."""

    __slots__ = ("empty", "here", "how", "needs", "shape", "transfer")

    def __init__(self, shown: Map, target: Partition, rank: int) -> None:
        wanted = aligned_partition(shown, target)
        self.needs = [None if 0 in target.local_shape(q) else wanted.held(q) for q in range(target.size)]
        self.here = here(shown, wanted, self.needs)
        self.shape = wanted.local_shape(rank)
        self.empty = self.needs[rank] is None or 0 in self.shape
        self.how: Any = None
        self.transfer: Any = None
        if self.here:
            if not self.empty:
                box = tuple(held[0] if len(held) == 1 else None for held in self.needs[rank] or ())
                self.how = shown.how(rank, box)
        else:
            self.transfer = Transfer(shown, self.needs, rank)


def operand_plan(shown: Map, target: Partition, rank: int) -> OperandPlan:
    key = "operand", shown, rank
    found = target.cache.get(key)
    if found is None:
        if len(target.cache) > 4096:
            target.cache.clear()
        found = target.cache[key] = OperandPlan(shown, target, rank)
    return found  # type: ignore[no-any-return]


def aligned_partition(shown: Map, target: Partition) -> Partition:
    """How a view would be divided to serve a tree of this partition (dimensions are aligned at the end)."""
    off = len(target.shape) - len(shown.shape)
    splits: list[Split | None] = []
    for i, n in enumerate(shown.shape):
        d = off + i
        splits.append(target.splits[d] if d >= 0 and n == target.shape[d] else None)
    return partition(shown.shape, target.mesh, tuple(splits))


def here(shown: Map, wanted: Partition, needs: list[Any]) -> bool:
    """Does each process hold all it needs, in a form that a view can show?"""
    if shown.base.replicated:
        return all(need is None or all(len(p) < 2 for p in need) for need in needs) or _all_runs(shown, wanted)
    for q, need in enumerate(needs):
        if need is None:
            continue
        held = shown.held(q)
        if held is None:
            return False
        for h, n in zip(held, need, strict=True):
            if len(n) > 1:
                return _all_runs(shown, wanted)
            if h != n and not covers(h, n):
                return False
            if len(h) > 1 and len(n) == 1 and not any(a <= n[0][0] and n[0][1] <= b for a, b in h):
                return False
    return True


def _all_runs(shown: Map, wanted: Partition) -> bool:
    """Where parts are dealt out: is all that each holds just what it needs, in the order it holds it?"""
    if shown.pinned or shown.base.mesh != wanted.mesh:
        return False
    for i, (axis, split) in enumerate(zip(shown.axes, wanted.splits, strict=True)):
        mine = shown.base.splits[axis] if axis >= 0 else None
        if split is None and mine is None:
            continue
        if split is None or mine is None or split.mesh_axis != mine.mesh_axis or split.pieces != mine.pieces:
            return False
        if shown.steps[i] != 1 or shown.starts[axis] != 0 or shown.shape[i] != shown.base.shape[axis]:
            return False
    return True


def scattered_operand(frame: Frame, view: DView) -> Leaf:
    """The same for a view whose strides go across what processes hold: element by element, but if it is all of
    the memory in another shape."""
    if view.shows_all:
        from mirabelle.arraytypes.distributed.moving import reshaped

        return operand(frame, reshaped(view.buffer.whole(), view.shape))
    dims = [slice(None) if s else slice(0, 1) for s in view.strides]
    shown = view[(*dims, Ellipsis)] if 0 in view.strides else view
    off = len(frame.partition.shape) - len(shown.shape)
    index: list[Any] = []
    for i, n in enumerate(shown.shape):
        d = off + i
        held = frame.partition.held(frame.rank)[d] if d >= 0 and n == frame.partition.shape[d] else ((0, n),)
        index.append(np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)]))
    return Leaf(stretched(frame, gathering.by_address(frame, shown, index), view.shape))


def _check_communicators(mine: Communicator, other: Communicator) -> None:
    if (mine.size, mine.rank) == (1, 0) == (other.size, other.rank) or mine is other:
        return
    raise CommunicationError(
        f"Operands are divided over different processes ({mine!r} and {other!r}). Bring one to the other: "
        "`mb.DArray(mb.to_numpy(x), comm=y.communicator)`."
    )


# The partition of a result


def leaves_of(tree: Any, family: Any = None) -> list[Leaf]:
    """The leaves of a tree, from the left; reductions in it are computed, of numbers alone by `family`."""
    found: list[Leaf] = []
    seen: set[int] = set()
    stack = [tree]
    while stack:
        x = stack.pop()
        kind = type(x)
        if kind is Leaf:
            found.append(x)
        elif kind is Broadcasted:
            if x.value is not None:
                found.append(x.value)
            elif id(x) not in seen:
                seen.add(id(x))
                stack.extend(reversed(x.args or ()))
        elif kind is Reduced:
            found.append(x.value if x.value is not None else force(_family_of(x, family), x))
    return found


def hint_of(tree: Broadcasted) -> Any:
    """The layout that was asked for a tree, or for the first of its operands of its shape."""
    node: Any = tree
    while type(node) is Broadcasted and node.value is None:
        if node.layout is not None:
            return node.layout
        node = next((a for a in node.args or () if type(a) is Broadcasted and a.shape == tree.shape), None)
    return None


def _family_of(version: Any, family: Any) -> Any:
    from mirabelle.arraytypes.dense import family_of_version

    found = family_of_version(version)
    return family if family is not None and not hasattr(found, "inner") else found


def chosen(family: Any, shape: tuple[int, ...], leaves: list[Leaf]) -> tuple[Communicator, Partition]:
    """Over which processes a result is computed, and how it is divided."""
    if not leaves:
        comm = communicator()
        return comm, family._divided(shape, comm)
    comm = leaves[0].view.buffer.comm
    key: list[Any] = [shape, comm.size]
    for leaf in leaves:
        view = leaf.view
        part = view.buffer.partition
        if part.partial:
            combining.resolve(view.buffer)
            view._map = None
            part = view.buffer.partition
        if leaf.table:
            continue
        if view.whole:
            if part.shape == shape and not part.replicated and len(part.mesh) == 1:
                return comm, part
            key.append(part)
        else:
            key.append(view.map or leaf.shape)
    if comm.size == 1:
        return comm, everywhere(shape, (1,))
    known = tuple(key)
    found: Any = _choices.get(known)
    if found is None:
        if len(_choices) > 4096:
            _choices.clear()
        found = _choices[known] = _choice(shape, [x.view for x in leaves if not x.table], comm.size) or False
    return comm, found or family._divided(shape, comm)


_choices: dict[Any, Any] = {}


def _shown_elements(view: DView) -> int:
    """How many elements a view shows, those that it repeats once."""
    return math.prod([n for n, stride in zip(view.shape, view.strides, strict=True) if stride])


def _choice(shape: tuple[int, ...], views: list[DView], size: int) -> Partition | None:
    """As the operands are divided, the largest first (the others move); None where none says."""
    splits: list[Split | None] = [None] * len(shape)
    mesh: Any = None
    left_out = False
    taken: set[int] = set()
    for view in sorted(views, key=_shown_elements, reverse=True):
        found = view.map
        if found is None or found.pinned:
            left_out = left_out or view.shape == shape
            continue
        if found.base.replicated:
            continue
        if mesh is None:
            mesh = found.base.mesh
        elif mesh != found.base.mesh:
            continue
        off = len(shape) - len(found.shape)
        for i, (axis, n) in enumerate(zip(found.axes, found.shape, strict=True)):
            split = found.base.splits[axis] if axis >= 0 else None
            if split is None or n != shape[off + i] or splits[off + i] is not None or split.mesh_axis in taken:
                continue
            pieces = found.pieces[i]
            assert pieces is not None
            splits[off + i] = Split(split.mesh_axis, pieces)
            taken.add(split.mesh_axis)
    if mesh is not None:
        return partition(shape, mesh, tuple(splits))
    return None if left_out else everywhere(shape, (size,))


# Evaluation: new results


def has_tables(leaves: list[Leaf]) -> bool:
    """Are there gathers in a tree?"""
    return any(leaf.table for leaf in leaves)


def evaluate(family: Any, version: Any) -> Leaf:
    """The value of a tree or a reduction, divided as its operands are."""
    if type(version) is Reduced:
        return combining.reduce(family, version)
    hint = hint_of(version)
    leaves = leaves_of(version, family)
    comm, target = chosen(family, version.shape, leaves)
    if hint is not None:
        target = family._divided(version.shape, comm, hint)
    frame = Frame(family, comm, target)
    tree = version
    came = histories.history(version)
    if has_tables(leaves):
        tree = gathering.without_gathers(frame, tree)
    view = family._of_local(comm, target, result(frame, tree))
    view.buffer.history = came
    return settle(version, Leaf(view))


def result(frame: Frame, tree: Any) -> Any:
    """A local view of new memory with this process's part of a tree."""
    found = overlapping.again(frame, tree, None)
    if found is None:
        found = overlapping.overlapped(frame, tree, None)
    if found is not None:
        return found
    root = frame.node(tree) if type(tree) is Broadcasted else _copy(frame.leaf(tree), frame.local_shape)
    frame.built()
    view = force(frame.inner, root).view
    frame.settle()
    return view


def _copy(leaf: Leaf, shape: tuple[int, ...]) -> Broadcasted:
    sig = promotion.intern(TABLE["copy"], (leaf.dtype,), (leaf.dtype,))
    return Broadcasted(sig, (leaf,), shape)


# Evaluation: into memory that is there


@verbs.copyto.method
def _(dest: DArray, src: Broadcasted) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    write_view(type(dest).family, dest._node.view, src)  # type: ignore[union-attr]
    return dest


@verbs.copyto.method
def _(dest: DArray, src: Reduced) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    family = type(dest).family
    write_view(family, dest._node.view, _copy(force(family, src), src.shape))  # type: ignore[union-attr]
    return dest


def write_view(family: Any, view: DView, tree: Any) -> None:
    """Write a tree to what a view shows."""
    came = histories.history(tree)
    _write_view(family, view, tree)
    histories.written_to(view, came)


def _write_view(family: Any, view: DView, tree: Any) -> None:
    buffer = view.buffer
    comm = buffer.comm
    if view.whole and tree.shape == view.shape and not buffer.partition.partial:
        simple = quick(tree, buffer)
        if simple is not None:
            verbs.copyto(wrap(family.inner, destination(buffer.local)), simple[0])
            buffer.written()
            return
    if buffer.partition.partial:
        if view.whole and all(leaf.view.buffer is not buffer for leaf in leaves_of(tree, family)):
            # (Nothing is sent: a process that writes to other memory, since it holds the old, sends nothing.)
            buffer.forget()
        else:
            combining.resolve(buffer)
        view._map = None
    shown = view.map
    if not view.size:
        return
    if shown is None:
        value = verbs.astype(wrap(family, force(family, _fitting(tree, view.shape))), view.dtype, copy=False)
        if view.shows_all:
            from mirabelle.arraytypes.distributed.moving import reshaped

            copy_view(buffer.whole(), reshaped(verbs.leaf_of(value).view, buffer.partition.shape))
        else:
            gathering.put_by_address(family, view, value)
        return
    plan = shown.writing.get(comm.rank)
    if plan is None:
        plan = shown.writing[comm.rank] = WritePlan(shown, comm.rank)
    frame = Frame(family, comm, plan.target)
    empty = 0 in frame.local_shape
    in_pieces = not view.whole and (not plan.at_once if empty else plan.how is None)
    dest: Any = None
    if not empty and not in_pieces:
        dest = buffer.local if view.whole or plan.how is None else plan.how.show(buffer.local)
        if plan.leading:
            dest = dest[(*[None] * plan.leading, Ellipsis)]
        if overlapping.again(frame, tree, dest) is not None:
            buffer.written()
            return
    leaves = leaves_of(tree, family)
    if has_tables(leaves):
        tree = gathering.without_gathers(frame, tree)
        if type(tree) is Leaf:  # (a gather and nothing else)
            tree = _copy(tree, tree.shape)
    if in_pieces:
        write_pieces(frame, buffer, shown, tree, plan.leading)
        return
    if overlapping.overlapped(frame, tree, dest) is None:
        root = frame.node(tree)
        frame.built()
        if dest is not None:
            target_leaf = destination(dest)
            if root.shape != target_leaf.shape:
                root = Broadcasted(
                    promotion.intern(TABLE["copy"], (root.dtype,), (root.dtype,)), (root,), target_leaf.shape
                )
            verbs.copyto(wrap(frame.inner, target_leaf), root)
        frame.settle()
    buffer.written()


def _fitting(tree: Any, shape: tuple[int, ...]) -> Any:
    if tree.shape == shape:
        return tree
    return Broadcasted(promotion.intern(TABLE["copy"], (tree.dtype,), (tree.dtype,)), (tree,), shape)


class WritePlan:
    """How a process writes through a view: its part of what is written, and where that lies."""

    __slots__ = ("at_once", "how", "leading", "target")

    def __init__(self, shown: Map, rank: int) -> None:
        self.target, self.leading = target_of(shown)
        self.at_once = _writable_at_once(shown, self.target, self.leading)
        self.how = None
        if self.at_once and 0 not in self.target.local_shape(rank):
            self.how = shown.how(rank, local_box(self.target, rank)[self.leading :])


def target_of(shown: Map) -> tuple[Partition, int]:
    """The partition of what is written through a view, with as many leading dimensions as it is pinned.

    (A row of a matrix may belong to one process alone: a dimension of length 1, which it alone holds, says
    so.)
    """
    if shown.partition is not None:
        return shown.partition, 0
    lead: list[Split | None] = []
    for m, c in sorted(shown.pinned.items()):
        pieces = tuple(((0, 1),) if i == c else () for i in range(shown.base.mesh[m]))
        lead.append(Split(m, pieces))
    splits = [
        None if pieces is None else Split(shown.base.splits[axis].mesh_axis, pieces)  # type: ignore[union-attr]
        for axis, pieces in zip(shown.axes, shown.pieces, strict=True)
    ]
    shape = (*(1,) * len(lead), *shown.shape)
    return partition(shape, shown.base.mesh, (*lead, *splits)), len(lead)


def local_box(target: Partition, rank: int) -> Any:
    """What a process holds, as one box; None along a dimension of which it holds several runs."""
    return tuple(held[0] if len(held) == 1 else None for held in target.held(rank))


def _writable_at_once(shown: Map, target: Partition, leading: int) -> bool:
    if all(len(held) < 2 for q in range(target.size) for held in target.held(q)):
        return True
    wanted = partition(target.shape[leading:], target.mesh, target.splits[leading:])
    return not leading and _all_runs(shown, wanted)


def write_pieces(frame: Frame, buffer: DBuffer, shown: Map, tree: Any, leading: int) -> None:
    """Where runs are dealt out: what belongs to this process is computed, then copied run by run."""
    local = result(frame, _fitting(tree, frame.partition.shape))
    held = frame.partition.held(frame.rank)[leading:]

    for _ in range(leading):
        local = local[0, ...]
    for box in itertools.product(*held):
        part = tuple(slice(*place_of(h, a, b)) for h, (a, b) in zip(held, box, strict=True))
        frame.inner._copy_into(shown.shows(buffer.local, frame.rank, box), local[(*part, Ellipsis)])
    buffer.written()


# Copies


def brought_together(view: DView) -> Any:
    """A local view of all that a view shows, the same on all processes."""
    buffer = view.buffer
    part = buffer.partition
    if part.partial:
        combining.resolve(buffer)
        view._map = None
        part = buffer.partition
    if view.whole and part.replicated:
        return buffer.local
    shape = tuple(n if s else 1 for n, s in zip(view.shape, view.strides, strict=True))
    frame = Frame(type(view).family, buffer.comm, everywhere(shape, (part.size,)))
    if counters.active:
        counters.add(collectives=1)
    return operand(frame, view if shape == view.shape else view[tuple(slice(0, n) for n in shape)]).view


def copied_view(view: DView) -> DView:
    """New memory with the contents of a view, divided as it is."""
    leaf = Leaf(view)
    made = force(type(view).family, _copy(leaf, view.shape)).view
    assert isinstance(made, DView)
    return made


def copy_view(dest: DView, source: DView) -> None:
    """Copy between two views of one shape."""
    write_view(type(dest).family, dest, _copy(Leaf(source), dest.shape))


# The short way: a tree over whole arrays of one partition, whose parts nobody else holds


def quick(version: Broadcasted, buffer: DBuffer | None = None) -> tuple[Any, DBuffer] | None:
    """The local tree of a simple tree (to be written to all of a buffer), and a buffer divided as it is."""
    return None if settings.check_collectives else local_tree(version, buffer)


@compute.method
def _(family: type[DArray], version: Any) -> Leaf:
    if type(version) is Reduced:
        return combining.reduce(family, version)
    simple = quick(version)
    if simple is None:
        return evaluate(family, version)
    came = histories.history(version)
    local, buffer = simple
    leaf = whole_leaf(family, buffer.comm, buffer.partition, force(family.inner, local).view, came)
    version.value = leaf
    version.args = None
    version.size = 0
    return leaf


# Memory like that of another array


@verbs.similar.method
def _(x: DArray, dtype: Any = None, shape: Any = None) -> Any:
    family = type(x).family
    d = x.dtype if dtype is None else checked_dtype(dtype)
    comm, part = chosen(family, x.shape, leaves_of(verbs.tree(x)))
    wanted = x.shape if shape is None else as_shape(shape)
    if wanted != x.shape:
        part = family._divided(wanted, comm)
    return wrap(family, Leaf(family._of_local(comm, part, family.inner._empty(part.local_shape(comm.rank), d))))
