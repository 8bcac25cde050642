"""Reductions: each process reduces its part, and the terms are combined.

All processes combine the same terms in the same order, so that they get the same bits: programs branch on what
a reduction gives. Within `with mb.distributed.batch():` the terms of all reductions that wait travel together.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import force, settle, wrap
from mirabelle.arraytypes.distributed import execution, gathering, overlapping
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.histories import history, of_reduction, told
from mirabelle.arraytypes.distributed.layouts import Partition, Split, everywhere, partition
from mirabelle.arraytypes.distributed.marks import Unsaid, marked, mixed
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.distributed.views import DBuffer, in_order, whole_leaf
from mirabelle.arraytypes.reductions import REDUCTIONS, reduction_made
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.schedule import worth_storing
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, destination

# The reductions that wait in a batch, in the order in which they were written.
_batch: contextvars.ContextVar[list[Reduced] | None] = contextvars.ContextVar("mirabelle_batch", default=None)


@contextlib.contextmanager
def batch() -> Iterator[None]:
    """Within the block, reductions of distributed arrays wait for each other: their terms travel together.

    A value that is needed inside brings all that wait by then; the rest is sent when the block ends.

    Returns
    -------
    context manager
        It yields nothing (None).

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])
    >>> with mb.distributed.batch():
    ...     a, b = mb.sum(x), mb.max(x)
    >>> float(a), float(b)
    (6.0, 3.0)
    """
    waiting: list[Reduced] = []
    token = _batch.set(waiting)
    try:
        yield
        first = next((r for r in waiting if r.value is None), None)
        if first is not None:
            reduce(_family(first, None), first)
    finally:
        _batch.reset(token)


@reduction_made.method
def _(family: type[DArray], node: Reduced) -> None:
    """In a batch, it waits there."""
    waiting = _batch.get()
    if waiting is not None:
        waiting.append(node)


class Term:
    """A reduction's term on this process, and between whom the terms are to be combined."""

    __slots__ = ("came", "comm", "family", "group", "local", "mark", "node", "partition", "reduction")

    def __init__(
        self,
        node: Any,
        family: Any,
        comm: Communicator,
        local: Any,
        result: Partition,
        group: tuple[int, ...],
        reduction: Any,
        mark: int = 0,
        came: Any = None,
    ) -> None:
        self.node = node
        self.family = family
        self.comm = comm
        self.local = local
        self.partition = result
        self.group = group
        self.reduction = reduction
        # What all have to do alike (see marks.py). Compiled programs were compared before.
        self.mark = told(mark or marked("reduction", reduction.name), came)
        # What is reduced came from this, where ranks compare it.
        self.came = came


def reduce(family: Any, node: Reduced) -> Leaf:
    """The value of a reduction, and of those that wait to be computed with it."""
    waiting = _batch.get()
    if waiting is None and node.term is None:
        t = _alone(family, node)
        if t is not None:
            if t.group:
                if counters.active:
                    counters.add(collectives=1)
                t.local = combined(grouped(t.comm, t.group), family.inner, t.local, t.reduction, t.mark)
            return settle(node, whole_leaf(family, t.comm, t.partition, t.local, of_reduction(node, t.came)))
    together = [node]
    if waiting is not None:
        together += [r for r in waiting if r.value is None and r is not node]
        waiting.clear()
    # What is sent depends on what the program says alone, and never on which objects happen to live on a
    # process: of reductions that one pass computes, only those asked for are combined now.
    terms: list[Term] = []
    for r in together:
        term = r.term
        if term is None:
            for made in _terms(_family(r, family), _siblings(r)):
                made.node.term = made
            term = r.term
        terms.append(term)
    combine(terms)
    for t in terms:
        view = t.family._of_local(t.comm, t.partition, t.local)
        view.buffer.history = None if t.came is None else of_reduction(t.node, t.came)
        settle(t.node, Leaf(view))
        t.node.term = None
    assert node.value is not None
    return node.value


def read(family: Any, version: Any) -> np.ndarray | None:
    """The number that a reduction of cards' arrays comes to, where nobody has asked for it before; else None.

    It is wanted on the hosts, so they combine what each fetches of its card, and give it back: by way of the
    cards it would be there after more launches.
    """
    inner = family.inner
    if type(version) is not Reduced or version.shape or inner.home.rank != 2 or version.value is not None:
        return None
    if _batch.get() is not None:
        return None
    term = version.term or _alone(family, version)
    if term is None:
        for made in _terms(family, _siblings(version)):
            made.node.term = made
        term = version.term
    version.term = term
    if not term.group or not _is_known(term.reduction, term.local):
        return None
    comm = grouped(term.comm, term.group)
    carrier = comm.carrier(inner)
    if carrier is not None:
        carrier.reach()
    number = np.array(inner._download(term.local))
    if not comm.allreduce(number, term.reduction.name, term.mark):
        return None
    if counters.active:
        counters.add(collectives=1)
    term.local, term.group = inner._upload(number), ()
    reduce(family, version)
    return number.reshape(())


def _is_known(reduction: Any, local: Any) -> bool:
    """Do engines combine terms of this reduction?"""
    return _is_plain(reduction) and reduction.neutral(local.dtype) is not None


def _is_plain(reduction: Any) -> bool:
    return reduction.scalar is None and REDUCTIONS.get(reduction.name) is reduction


def _alone(family: Any, node: Reduced) -> Term | None:
    """The term of a reduction of whole arrays of one partition, which nothing else waits with; else None."""
    operand: Any = node.operand
    if len(operand.reducers) > 1 or settings.check_collectives:
        return None
    if type(operand) is Broadcasted and operand.value is None:
        simple = None if operand.holders > 1 else execution.quick(operand)
        if simple is None:
            return None
        local, buffer = simple
        part = buffer.partition
    else:
        leaf: Any = operand if type(operand) is Leaf else operand.value
        view = leaf.view
        buffer = view.buffer
        part = buffer.partition
        if not view.whole or part.partial:
            return None
        local = buffer.leaf
    comm = buffer.comm
    key = "reduced", node.axes, node.keepdims, comm.rank, node.reduction.name, node.dtype
    plan = part.cache.get(key)
    if plan is None:
        plan = part.cache[key] = *reduced_partition(part, node, comm.rank), _marked(part, node)
    result, group, shape, regular, mark = plan
    if not regular:
        return None
    came = history(operand)
    made = Reduced(node.reduction, local, node.axes, node.keepdims, shape, node.dtype)
    value = force(family.inner, made).view
    return Term(node, family, comm, value, result, group, node.reduction, mark, came)


def reduced_partition(
    part: Partition, node: Reduced, rank: int
) -> tuple[Partition, tuple[int, ...], tuple[int, ...], bool]:
    """How a reduction's result is divided, between whom terms are combined, and a term's shape.

    Last: does each process have something to reduce?
    """
    splits: list[Split | None] = []
    divided: set[int] = set()
    for d, split in enumerate(part.splits):
        if d in node.axes:
            if split is not None:
                divided.add(split.mesh_axis)
            if node.keepdims:
                splits.append(None)
        else:
            splits.append(split)
    mine = part.local_shape(rank)
    shape = (
        tuple(1 if d in node.axes else n for d, n in enumerate(mine))
        if node.keepdims
        else tuple(n for d, n in enumerate(mine) if d not in node.axes)
    )
    made = partition(node.shape, part.mesh, tuple(splits))
    return made, _group(part, rank, divided), shape, not _has_empty(part)


def _marked(part: Partition, node: Reduced) -> int:
    """The mark of a reduction of something that is divided so."""
    along = f"along {node.axes}" if len(node.axes) < len(part.shape) else "of all"
    return marked(
        "reduction", node.reduction.name, "to", node.dtype, along, "of an array of shape", part.shape,
        Unsaid(repr((part.mesh, part.splits, node.keepdims))),
    )  # fmt: skip


def _family(node: Reduced, family: Any) -> Any:
    from mirabelle.arraytypes.dense import family_of_version

    found = family_of_version(node)
    return found if hasattr(found, "inner") else family


def _siblings(node: Reduced) -> list[Reduced]:
    """The reductions of one tree along the same dimensions: the local type computes them in one pass."""
    operand = node.operand
    refs = operand.reducers if operand is not None else None
    alive = (ref() for ref in refs or ())
    found = [r for r in alive if r is not None and r.value is None and r.term is None and r.axes == node.axes]
    return found if any(r is node for r in found) else [node]


def _terms(family: Any, nodes: list[Reduced]) -> list[Term]:
    """Reductions of one tree along the same dimensions, of this process's part."""
    first = nodes[0]
    axes = first.axes
    operand: Any = first.operand
    if type(operand) is Broadcasted and operand.value is None:
        waiting = [
            r for r in (ref() for ref in operand.reducers or ()) if r is not None and r.operand is operand
        ]
        if operand.holders > len(waiting):  # somebody may ask for its values, too
            if worth_storing(operand):
                force(family, operand)
            else:
                operand.evaluations += 1
    if type(operand) is Broadcasted and operand.value is not None:
        operand = operand.value
    leaves = execution.leaves_of(operand, family)
    came = history(operand)
    comm, target = execution.chosen(family, operand.shape, leaves)
    if _has_empty(target) and any(
        n.reduction.scalar is None and n.reduction.neutral(n.dtype) is None for n in nodes
    ):
        target = everywhere(target.shape, target.mesh)  # (nothing stands for the term of an empty part)
    frame = execution.Frame(family, comm, target)
    if execution.has_tables(leaves):
        operand = gathering.without_gathers(frame, operand)
    tree: Any = operand
    overlapping.bring(frame, tree)
    local: Any = frame.node(tree) if type(operand) is Broadcasted else frame.leaf(tree)
    if local.shape != frame.local_shape:  # (a stretched leaf)
        sig = promotion.intern(TABLE["copy"], (local.dtype,), (local.dtype,))
        local = Broadcasted(sig, (local,), frame.local_shape)
    frame.built()
    plans = [reduced_partition(target, n, comm.rank) for n in nodes]
    empty = target.elements > 0 and any(frame.local_shape[d] == 0 for d in axes)
    if empty:
        values = [
            _neutral(family.inner, n.reduction, plan[2], n.dtype) for n, plan in zip(nodes, plans, strict=True)
        ]
    else:
        # All of them before the first is computed: the local type then computes them in one pass.
        made = [
            Reduced(n.reduction, local, axes, n.keepdims, plan[2], n.dtype)
            for n, plan in zip(nodes, plans, strict=True)
        ]
        values = [force(family.inner, r).view for r in made]
    frame.settle()
    return [
        Term(n, family, comm, value, result, group, n.reduction, _marked(target, n), came)
        for n, value, (result, group, _, _) in zip(nodes, values, plans, strict=True)
    ]


def _has_empty(target: Partition) -> bool:
    return any(0 in target.local_shape(q) for q in range(target.size))


def _neutral(inner: Any, reduction: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """What stands for the term of a process that has nothing to reduce; it is left out if there is no
    neutral."""
    value = reduction.init if reduction.scalar is not None else reduction.neutral(dtype)
    return inner._upload(np.full(shape, 0 if value is None else value, dtype))


def _group(target: Partition, rank: int, divided: set[int]) -> tuple[int, ...]:
    """The processes whose terms are combined: those along the divided dimensions of the mesh with a part."""
    if not divided:
        return ()
    at = target.coordinates(rank)
    found = []
    for q in range(target.size):
        other = target.coordinates(q)
        if all(other[m] == at[m] for m in range(len(at)) if m not in divided):
            found.append(q)
    return tuple(found)


def combine(terms: list[Term]) -> None:
    """Replace the terms by what they combine to, those of one group with as few messages as there can be."""
    bundles: dict[Any, list[Term]] = {}
    for t in terms:
        if t.group:
            bundles.setdefault((id(t.comm), t.group), []).append(t)
    for bundle in bundles.values():
        first = bundle[0]
        comm = grouped(first.comm, first.group)
        if counters.active:
            counters.add(collectives=1)
        if len(bundle) == 1 or first.family.inner.home.kind == "traced":
            for t in bundle:
                t.local = combined(comm, t.family.inner, t.local, t.reduction, t.mark)
        else:
            _together(comm, bundle)


def grouped(comm: Communicator, group: tuple[int, ...]) -> Communicator:
    """The communicator of some processes."""
    if len(group) == comm.size:
        return comm
    known = comm.__dict__.setdefault("_parts_by_ranks", {})
    found = known.get(group)
    if found is None:
        found = known[group] = comm.part(group)
        found._whole = comm, group
    return found  # type: ignore[no-any-return]


def combined(comm: Communicator, inner: Any, local: Any, reduction: Any, mark: int) -> Any:
    """What the terms of all processes combine to, on each of them."""
    if comm.size == 1:
        return local
    if _is_plain(reduction) and inner.home.kind == "traced":
        from mirabelle.arraytypes.distributed.localmessages import together

        return verbs.leaf_of(together(wrap(inner, Leaf(local)), comm, reduction.name)).view
    carrier = comm.carrier(inner) if _is_known(reduction, local) else None
    if not local.flags.c_contiguous:
        local = in_order(inner, local)
    if carrier is not None and carrier.allreduce(local, reduction.name, mark):
        return local
    return _gathered(comm, inner, local, reduction, mark)


def _gathered(comm: Communicator, inner: Any, local: Any, reduction: Any, mark: int) -> Any:
    """The same by way of all terms on all processes, reduced by the local type in the order of ranks."""
    n = comm.size
    terms = inner._empty((n, *local.shape), local.dtype)
    inner._copy_into(terms[comm.rank, ...], local)
    messages = Messages(comm, inner, mark)
    others = [q for q in range(n) if q != comm.rank]
    if local.size:
        messages.begin(dict.fromkeys(others, terms[comm.rank, ...]), {q: terms[q, ...] for q in others})
        messages.finish()
    node = Reduced(reduction, destination(terms), (0,), False, local.shape, local.dtype)
    return force(inner, node).view


def _together(comm: Communicator, bundle: list[Term]) -> None:
    """Several terms in one message to each process."""
    inner = bundle[0].family.inner
    if comm.size == 1:
        return
    mine = [np.array(inner._download(t.local), order="C") for t in bundle]
    sizes = [m.nbytes for m in mine]
    parts = [np.empty(sum(sizes), np.uint8) for _ in range(comm.size)]
    parts[comm.rank] = np.concatenate([m.reshape(-1).view(np.uint8) for m in mine])
    first, *others = [t.mark for t in bundle]
    comm.allgather(parts[comm.rank], parts, mixed(first, *others))
    at = 0
    for t, m in zip(bundle, mine, strict=True):
        rows = np.stack([p[at : at + m.nbytes].view(m.dtype).reshape(m.shape) for p in parts])
        at += m.nbytes
        node = Reduced(t.reduction, destination(inner._upload(rows)), (0,), False, m.shape, m.dtype)
        t.local = force(inner, node).view


def resolve(buffer: DBuffer) -> None:
    """Combine the terms a buffer holds, which waited until somebody reads it."""
    if buffer.joined():
        return
    part = buffer.partition
    local = buffer.local
    came = buffer.history
    for m, op in part.partial:
        at = part.coordinates(buffer.comm.rank)
        group = tuple(
            q for q in range(part.size) if all(c == at[i] for i, c in enumerate(part.coordinates(q)) if i != m)
        )
        if counters.active:
            counters.add(collectives=1)
        mark = marked("reduction", op, "of terms of shape", part.shape, Unsaid(repr((part.mesh, part.splits))))
        local = combined(grouped(buffer.comm, group), buffer.inner, local, REDUCTIONS[op], told(mark, came))
    buffer.local = local
    buffer._leaf = None
    buffer.partition = partition(part.shape, part.mesh, part.splits)
