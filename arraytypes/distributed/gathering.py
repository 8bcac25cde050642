"""Elements by their places: gathers from, and scatters to, whatever process holds them.

A place is the number of an element in the C order of a buffer's global shape. Whoever needs elements asks
their owners, who answer: two rounds of messages, of which the first says what is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import force, wrap
from mirabelle.arraytypes.distributed import histories
from mirabelle.arraytypes.distributed.communicators import MESSAGES, Communicator
from mirabelle.arraytypes.distributed.histories import told
from mirabelle.arraytypes.distributed.layouts import Partition, everywhere, partition
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.distributed.views import DBuffer, DView
from mirabelle.arraytypes.library import routine_of
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# Where each place lies


class Directory:
    """For a partition: which coordinate holds each place of a dimension, and where in its part."""

    __slots__ = ("coordinate", "edges", "local")

    def __init__(self, part: Partition, d: int) -> None:
        split = part.splits[d]
        assert split is not None
        self.edges = None if split.edges is None else np.asarray(split.edges)
        self.coordinate = self.local = None
        if self.edges is None:
            self.coordinate = np.empty(part.shape[d], np.int64)
            self.local = np.empty(part.shape[d], np.int64)
            for c, held in enumerate(split.pieces):
                at = 0
                for a, b in held:
                    self.coordinate[a:b] = c
                    self.local[a:b] = np.arange(at, at + b - a)
                    at += b - a

    def find(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.edges is None:
            assert self.coordinate is not None and self.local is not None
            return self.coordinate[places], self.local[places]
        c = np.searchsorted(self.edges, places, side="right") - 1
        return c, places - self.edges[c]


def directory(part: Partition, d: int) -> Directory:
    key = "directory", d
    found = part.cache.get(key)
    if found is None:
        found = part.cache[key] = Directory(part, d)
    return found  # type: ignore[no-any-return]


def owners_of(
    part: Partition, flat: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, np.ndarray]], tuple[Any, ...]]:
    """For places of a buffer: coordinates of the owners along the divided mesh dimensions, and local
    indices."""
    index = np.unravel_index(flat, part.shape) if part.shape else ()
    coordinates: list[tuple[int, np.ndarray]] = []
    local: list[Any] = []
    for d, places in enumerate(index):
        split = part.splits[d]
        if split is None:
            local.append(places)
            continue
        c, at = directory(part, d).find(places)
        coordinates.append((split.mesh_axis, c))
        local.append(at)
    return flat, coordinates, tuple(local)


# Reading


def fetch_flat(view: DView, flat: np.ndarray) -> Any:
    """A local view with these elements of a view's buffer, in this order (all processes ask)."""
    buffer = view.buffer
    part, inner, comm = buffer.partition, buffer.inner, buffer.comm
    if counters.active:
        counters.add(collectives=1)
    if part.replicated:
        return take(inner, buffer.local, tuple(np.unravel_index(flat, part.shape)) if part.shape else (), flat)
    _, coordinates, local = owners_of(part, flat)
    strides = np.cumprod([1, *part.mesh[:0:-1]])[::-1]
    at = part.coordinates(comm.rank)
    divided = {m for m, _ in coordinates}
    base = sum(int(at[m] * strides[m]) for m in range(len(at)) if m not in divided)
    rank = np.full(len(flat), base, np.int64)
    for m, c in coordinates:
        rank += c * strides[m]
    order = np.argsort(rank, kind="stable")
    counts = np.bincount(rank, minlength=comm.size)
    # Each owner needs places in its own part: their numbers in the C order of that part.
    position = np.zeros(len(flat), np.int64)
    shapes = np.asarray([part.local_shape(q) for q in range(comm.size)]).reshape(comm.size, -1)
    for d, places in enumerate(local):
        position = position * shapes[rank, d] + places
    wanted = position[order]
    asked = _all_counts(comm, counts)
    edges = np.concatenate([[0], np.cumsum(counts)])
    requests = {q: wanted[edges[q] : edges[q + 1]] for q in range(comm.size) if q != comm.rank and counts[q]}
    asking = {q: np.empty(n, np.int64) for q, n in enumerate(asked) if q != comm.rank and n}
    comm.exchange(requests, asking)
    mine = buffer.local
    answers = {q: take_flat(inner, mine, places) for q, places in asking.items()}
    found = inner._empty((len(flat),), buffer.dtype)
    coming = {q: found[int(edges[q]) : int(edges[q + 1])] for q in requests}
    messages = Messages(comm, inner, told(MESSAGES, view.history))
    messages.begin(answers, coming)
    own = wanted[edges[comm.rank] : edges[comm.rank + 1]]
    if len(own):
        at_own = found[int(edges[comm.rank]) : int(edges[comm.rank + 1])]
        inner._copy_into(at_own, take_flat(inner, mine, own))
    messages.finish()
    if np.array_equal(order, np.arange(len(order))):
        return found
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return take(inner, found, (back,), back)


def _all_counts(comm: Communicator, counts: np.ndarray) -> list[int]:
    """How many places each process asks this one for."""
    if comm.size == 1:
        return [int(counts[0])]
    rows = [np.empty(comm.size, np.int64) for _ in range(comm.size)]
    rows[comm.rank] = np.ascontiguousarray(counts.astype(np.int64))
    comm.allgather(rows[comm.rank], rows)
    return [int(row[comm.rank]) for row in rows]


def take_flat(inner: Any, local: Any, places: np.ndarray) -> Any:
    index = tuple(np.unravel_index(places, local.shape)) if local.shape else ()
    return take(inner, local, index, places)


def take(inner: Any, local: Any, index: tuple[Any, ...], places: np.ndarray) -> Any:
    """Elements of a local view at an index, as new contiguous memory of one dimension."""
    if isinstance(local, np.ndarray):
        if not index:
            return np.full(len(places), local)
        return np.ascontiguousarray(local[index])
    if not len(places):
        return inner._empty((0,), local.dtype)
    x = wrap(inner, Leaf(local))
    if not index:
        return verbs.leaf_of(verbs.copy(verbs.broadcast_to(x, (len(places),)))).view
    arrays = tuple(wrap(inner, Leaf(inner._upload(np.ascontiguousarray(i)))) for i in index)
    return verbs.leaf_of(verbs.getitem(x, arrays)).view


def by_address(frame: Any, view: DView, index: Sequence[np.ndarray]) -> Any:
    """The elements of a view at a product of places along its dimensions, as a local view."""
    buffer = view.buffer
    flat = np.asarray(first_place(view))
    for places, stride in zip(index, view.strides, strict=True):
        flat = flat[..., None] + places * (stride // buffer.dtype.itemsize)
    shape = flat.shape
    found = fetch_flat(view, np.ascontiguousarray(flat).reshape(-1))
    if view.dtype != buffer.dtype:
        half = buffer.dtype.kind == "c" and view.dtype.itemsize * 2 == buffer.dtype.itemsize
        within = view.offset % buffer.dtype.itemsize
        found = (found.imag if within else found.real) if half else found.view(view.dtype)
        if not found.flags.c_contiguous:
            packed = frame.inner._empty(found.shape, found.dtype)
            frame.inner._copy_into(packed, found)
            found = packed
    return found.reshape(shape)


def first_place(view: DView) -> int:
    """The place of a view's first element."""
    return view.offset // view.buffer.dtype.itemsize


# Gathers within trees


def in_runs(part: Partition) -> bool:
    """Does each process hold one run of places along each dimension? (All have to decide alike.)"""
    found = part.cache.get("in runs")
    if found is None:
        found = all(len(held) == 1 for q in range(part.size) for held in part.held(q))
        part.cache["in runs"] = found
    return bool(found)


def fuses(frame: Any, leaf: Leaf) -> bool:
    """Can a gather from this memory be part of the local kernel: does each process hold all of it?"""
    buffer = leaf.view.buffer
    return buffer.partition.replicated and leaf.view.dtype == buffer.dtype and in_runs(frame.partition)


def brought_here(frame: Any, base: Leaf, shape: tuple[int, ...]) -> Leaf | None:
    """The memory a gather reads, all of it on each process, if that is less to send than what is asked for."""
    view = base.view
    buffer = view.buffer
    part = buffer.partition
    asked = math.prod(shape) // part.size * (8 + buffer.dtype.itemsize)
    if buffer.nbytes > asked or not in_runs(frame.partition):
        return None
    from mirabelle.arraytypes.distributed.execution import brought_together

    if view.dtype != buffer.dtype:
        return None
    local = brought_together(buffer.whole())
    twin = DBuffer(buffer.comm, everywhere(part.shape, part.mesh), buffer.inner, local)
    twin.history = buffer.history
    return Leaf(DView(twin, view.proxy, False), table=True)


def local_table(frame: Any, leaf: Leaf) -> Leaf:
    """The memory that a gather reads, for this process's part of its places."""
    view = leaf.view
    target = frame.partition
    off = len(target.shape) - len(view.shape)
    held = target.held(frame.rank)
    index = tuple(
        slice(*held[off + i][0]) if off + i >= 0 and n == target.shape[off + i] else slice(None)
        for i, n in enumerate(view.shape)
    )
    part = view[index]
    return Leaf(restrided(view.buffer.local, part.offset, part.shape, part.strides), table=True)


def restrided(local: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of contiguous local memory with other strides."""
    if isinstance(local, np.ndarray):
        return np.ndarray(shape, local.dtype, local, offset, strides)
    return local.strided(offset, shape, strides, local.dtype)


def without_gathers(frame: Any, tree: Any) -> Any:
    """The tree with what its gathers read as leaves, which each process has as its part needs them."""
    return _walk(frame, tree, {})


def _walk(frame: Any, node: Any, made: dict[int, Any]) -> Any:
    # (No closure: it would hold itself, and with it the nodes it has seen.)
    if type(node) is Reduced:
        return node.value if node.value is not None else force(frame.family, node)
    if type(node) is not Broadcasted:
        return node
    if node.value is not None:
        return node.value
    found = made.get(id(node))
    if found is not None:
        return found
    args: Any = node.args or ()
    if node.sig.op is TABLE["gather"] and not fuses(frame, args[0]):
        base, offset = args
        here = brought_here(frame, base, node.shape)
        if here is None:
            found = gathered(frame, base, _walk(frame, offset, made), node.shape)
        else:
            found = Broadcasted(node.sig, (here, _walk(frame, offset, made)), node.shape)
    else:
        walked = tuple([_walk(frame, a, made) for a in args])
        same = all(a is b for a, b in zip(walked, args, strict=True))
        found = node if same else Broadcasted(node.sig, walked, node.shape)
    made[id(node)] = found
    return found


def gathered(frame: Any, base: Leaf, offset: Any, shape: tuple[int, ...]) -> Leaf:
    """What stands `offset` elements further on than each element of `base`, for this process's part."""
    from mirabelle.arraytypes.distributed.execution import Frame

    target = frame.partition
    off = len(target.shape) - len(shape)
    splits = tuple(target.splits[off + i] if n == target.shape[off + i] else None for i, n in enumerate(shape))
    part = target if shape == target.shape else partition(shape, target.mesh, splits)
    own = Frame(frame.family, frame.comm, part)
    came = histories.gathered(base, offset)
    if type(offset) is Broadcasted:
        local = own.node(offset)
        own.built()
        steps = frame.inner._download(force(frame.inner, local).view)
    else:
        steps = frame.inner._download(own.leaf(offset).view)
    view = base.view
    itemsize = view.buffer.dtype.itemsize
    flat = np.asarray(first_place(view))
    for held, stride in zip(part.held(frame.rank), view.strides, strict=True):
        places = np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)])
        flat = flat[..., None] + places * (stride // itemsize)
    # (Steps are of the view's elements, places of the buffer's: of a complex array's parts, two are one.)
    flat = flat + steps * view.dtype.itemsize // itemsize
    found = fetch_flat(view, np.ascontiguousarray(np.broadcast_to(flat, own.local_shape)).reshape(-1))
    if view.dtype != view.buffer.dtype:
        half = view.offset % itemsize
        found = found.imag if half else found.real
    shown = frame.family._of_local(frame.comm, part, found.reshape(own.local_shape))
    shown.buffer.history = came
    return Leaf(shown)


# Writing


def put_by_address(family: Any, view: DView, value: Any) -> None:
    """Write an array to a view whose strides go across what processes hold."""
    shape = view.shape
    flat = np.asarray(first_place(view))
    comm = view.buffer.comm
    part = family._divided(shape, comm)
    from mirabelle.arraytypes.distributed.execution import Frame

    frame = Frame(family, comm, part)
    local = frame.leaf(verbs.leaf_of(value)).view
    for held, stride in zip(part.held(comm.rank), view.strides, strict=True):
        places = np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)])
        flat = flat[..., None] + places * (stride // view.buffer.dtype.itemsize)
    first = sole(part, comm.rank)
    put_flat(
        view.buffer, np.ascontiguousarray(flat).reshape(-1) if first else np.empty(0, np.int64),
        local if first else None, "", _half(view),
    )  # fmt: skip


def _half(view: DView) -> str | None:
    if view.dtype == view.buffer.dtype:
        return None
    return "imag" if view.offset % view.buffer.dtype.itemsize else "real"


def sole(part: Partition, rank: int) -> bool:
    """Is this process the first of those that hold the same?"""
    at = part.coordinates(rank)
    used = part.owners()
    return not any(at[m] for m in range(len(at)) if m not in used)


def put_flat(buffer: DBuffer, flat: np.ndarray, values: Any, op: str, half: str | None = None) -> None:
    """Write elements to the places each process gives, in the order of processes; or combine with `op`.

    `values` is a local view of as many elements, or None where this process gives none; a number stands for
    all.
    """
    part, inner, comm = buffer.partition, buffer.inner, buffer.comm
    if counters.active:
        counters.add(collectives=1)
    number = values if values is None or isinstance(values, (int, float, complex, np.generic)) else None
    data = None
    if number is None and values is not None:
        data = values
    _, coordinates, local = owners_of(part, flat)
    sends: dict[int, np.ndarray] = {}
    picked: dict[int, Any] = {}
    for q in range(comm.size):
        at = part.coordinates(q)
        mask = np.ones(len(flat), bool)
        for m, c in coordinates:
            mask &= c == at[m]
        if not mask.any():
            continue
        shape = part.local_shape(q)
        position = np.zeros(int(mask.sum()), np.int64)
        for d, places in enumerate(local):
            position = position * shape[d] + places[mask]
        sends[q] = position
        if data is not None:
            picked[q] = take_flat(inner, data, np.flatnonzero(mask))
    counts = np.zeros(comm.size, np.int64)
    for q, position in sends.items():
        counts[q] = len(position)
    coming = _all_counts(comm, counts)
    asking = {q: np.empty(n, np.int64) for q, n in enumerate(coming) if q != comm.rank and n}
    comm.exchange({q: p for q, p in sends.items() if q != comm.rank}, asking)
    dtype = buffer.dtype if half is None else buffer.dtype.type(0).real.dtype
    arrived: dict[int, Any] = {}
    if not isinstance(number, (int, float, complex, np.generic)):
        arrived = {q: inner._empty((len(p),), dtype) for q, p in asking.items()}
        messages = Messages(comm, inner)
        messages.begin({q: v for q, v in picked.items() if q != comm.rank}, arrived)
        messages.finish()
    if comm.rank in sends:
        asking[comm.rank] = sends[comm.rank]
        if data is not None:
            arrived[comm.rank] = picked[comm.rank]
    target = buffer.local if half is None else getattr(buffer.local, half)
    for q in sorted(asking):
        places = asking[q]
        index = np.unravel_index(places, buffer.local.shape) if buffer.local.shape else ()
        if not index:
            index = (np.zeros(len(places), np.int64),)
            target_1 = target[None, ...]
        else:
            target_1 = target
        uploaded = [inner._upload(np.ascontiguousarray(i)) for i in index]
        routine_of(inner, "scatter")(target_1, arrived.get(q, number), *uploaded, op=op)
    buffer.written()


def scatter(target: DView, value: Any, *indices: Any, op: str = "", distinct: bool = False) -> None:
    """The routine behind x[index] = value: the dimensions of the index arrays come first in `target`."""
    from mirabelle.arraytypes.distributed.execution import Frame

    family, buffer = target.family, target.buffer
    comm = buffer.comm
    if buffer.partition.partial:
        from mirabelle.arraytypes.distributed.combining import resolve

        resolve(buffer)
    gathered_dims = len(indices)
    rest = target.shape[gathered_dims:]
    shape = (*(indices[0].shape if indices else ()), *rest)
    part = family._divided(shape, comm)
    frame = Frame(family, comm, part)
    open_ = (Ellipsis, *[None] * len(rest))
    itemsize = buffer.dtype.itemsize
    held = part.held(comm.rank)
    flat = np.asarray(first_place(target))
    lead = len(shape) - len(rest)
    for d in range(len(shape)):
        stride = target.strides[gathered_dims + d - lead] if d >= lead else 0
        places = np.concatenate([np.arange(a, b) for a, b in held[d]] or [np.empty(0, np.int64)])
        flat = flat[..., None] + places * (stride // itemsize)
    for view, stride in zip(indices, target.strides, strict=False):
        steps = frame.inner._download(frame.leaf(Leaf(view[open_])).view)
        flat = flat + steps.astype(np.int64) * (stride // itemsize)
    flat = np.ascontiguousarray(np.broadcast_to(flat, frame.local_shape)).reshape(-1)
    if not _is_number(value):
        stretched = value if value.shape == shape else value.broadcast_to(shape)
        value = frame.leaf(Leaf(stretched)).view  # (by all, also by those that write nothing of it)
        if value.shape != frame.local_shape:
            packed = frame.inner._empty(frame.local_shape, value.dtype)
            frame.inner._copy_into(packed, _stretched(value, frame.local_shape))
            value = packed
    if not sole(part, comm.rank):
        flat, value = np.empty(0, np.int64), value if _is_number(value) else None
    put_flat(buffer, flat, value, op, _half(target))


def _stretched(local: Any, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(local, shape) if isinstance(local, np.ndarray) else local.broadcast_to(shape)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.generic))


__all__ = [
    "by_address",
    "fetch_flat",
    "gathered",
    "math",
    "promotion",
    "put_by_address",
    "scatter",
    "without_gathers",
]
