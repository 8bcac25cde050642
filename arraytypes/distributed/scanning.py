"""Running sums, and random numbers: each process its part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed import histories
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_whole, place_of
from mirabelle.arraytypes.distributed.layouts import divided
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.distributed.moving import in_partition
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.random import filling
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf


@library.scan.method
def _(family: type[DArray], x: Any, op: Any, axis: int) -> Any:
    """A scan: of each part by itself, then with what came before it."""
    view = verbs.leaf_of(x).view
    if view.map is None or view.map.pinned or view.map.shape != view.shape:
        view = in_partition(view, divided(view.shape, view.buffer.comm.size))
    view = evaluated_whole(view)
    buffer = view.buffer
    comm, part, inner = buffer.comm, buffer.partition, buffer.inner
    split = part.splits[axis]
    if split is not None and split.edges is None:  # runs that are dealt out: not in this dimension
        view = in_partition(view, divided(view.shape, comm.size))
        buffer, part = view.buffer, view.buffer.partition
        split = part.splits[axis]
    scanned = library.scan(inner, wrap(inner, Leaf(buffer.local)), op, axis)
    if split is not None:
        scanned = _with_before(comm, inner, part, scanned, op, axis)
    return wrap(family, Leaf(family._of_local(comm, part, verbs.leaf_of(scanned).view)))


def _with_before(comm: Any, inner: Any, part: Any, scanned: Any, op: Any, axis: int) -> Any:
    """A part's scan combined with the last values of all parts before it."""
    split = part.splits[axis]
    at = part.coordinates(comm.rank)
    line = [
        part.rank_at([c if m == split.mesh_axis else a for m, a in enumerate(at)])
        for c in range(part.mesh[split.mesh_axis])
    ]
    line = [q for q in line if 0 not in part.local_shape(q)]
    if comm.rank not in line:
        return scanned
    if counters.active:
        counters.add(collectives=1)
    index = (*[slice(None)] * axis, slice(-1, None), Ellipsis)
    last = verbs.leaf_of(verbs.copy(verbs.getitem(scanned, index))).view
    mine = line.index(comm.rank)
    parts = [inner._empty(last.shape, last.dtype) for _ in range(mine)]
    mark = marked("scan", _name(op), "along axis", axis, "of", scanned.dtype, "of shape", part.shape)
    messages = Messages(comm, inner, mark)
    messages.begin(dict.fromkeys(line[mine + 1 :], last), dict(zip(line, parts, strict=False)))
    messages.finish()
    if not parts:
        return scanned
    handles = [wrap(inner, Leaf(p)) for p in parts]
    before = handles[0]
    if len(handles) > 1:
        from mirabelle.arraytypes.functions.joining import concatenate

        row = concatenate(handles, axis=axis)
        before = verbs.getitem(library.scan(inner, row, op, axis), index)
    return _combine(op, before, scanned)


def _name(op: Any) -> str:
    op = "sum" if op is None else op
    return str(op if isinstance(op, str) else getattr(op, "name", None) or getattr(op, "__name__", ""))


def _combine(op: Any, before: Any, scanned: Any) -> Any:
    """Each value of a scan with what came before."""
    op, name = "sum" if op is None else op, _name(op)
    verb = verbs.ELEMENTWISE.get(_VERBS.get(name, name))
    if verb is not None and (isinstance(op, (str, np.ufunc)) or not getattr(op, "scalar", None)):
        found = verb(before, scanned)
    else:
        from mirabelle.arraytypes.userbroadcast import broadcast

        f: Any = getattr(op, "scalar", None) or op
        found = broadcast(f, before, scanned)
    return verbs.astype(found, scanned.dtype, copy=False)


_VERBS = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or",
    "all": "logical_and",
}  # fmt: skip


@filling.fill.method
def _(
    family: type[DArray], view: DView, sampler: Any, stream: Any, parameters: tuple[Any, ...], piece: Any
) -> None:
    """Fill a view with random numbers: an element's number depends on its place in the whole alone."""
    from mirabelle.arraytypes.distributed.execution import Frame

    buffer = view.buffer
    comm, inner = buffer.comm, buffer.inner
    if not view.whole:
        fresh = family._empty(view.shape, view.dtype)
        filling.fill(family, fresh, sampler, stream, parameters, piece)
        family._copy_into(view, fresh)
        return
    part = buffer.partition
    total = view.shape if piece is None else (*piece.total, *view.shape[len(piece.total) :])
    offset = (0,) * len(total) if piece is None else (*piece.offset, *(0,) * (len(total) - len(piece.offset)))
    frame = Frame(family, comm, part)
    local = [
        wrap(inner, frame.leaf(verbs.leaf_of(p))) if hasattr(p, "ndim") and p.ndim else p for p in parameters
    ]
    held = part.held(comm.rank)
    for box in itertools.product(*held):
        where = tuple(slice(*place_of(h, a, b)) for h, (a, b) in zip(held, box, strict=True))
        shape = tuple(b - a for a, b in box)
        here = filling.Piece(tuple(o + a for o, (a, _) in zip(offset, box, strict=True)), total)
        mine = tuple(_part(p, where, len(shape)) for p in local)
        out = buffer.local[(*where, Ellipsis)]
        if out.flags.c_contiguous:
            filling.fill(inner, out, sampler, stream, mine, here)
        else:
            packed = inner._empty(shape, view.dtype)
            filling.fill(inner, packed, sampler, stream, mine, here)
            inner._copy_into(out, packed)
    buffer.written()
    histories.written(buffer, view.size, histories.of_random_numbers(sampler, stream, parameters))


def _part(p: Any, where: tuple[slice, ...], ndim: int) -> Any:
    if not hasattr(p, "ndim") or not p.ndim:
        return p
    index = tuple(slice(None) if n == 1 else w for n, w in zip(p.shape, where[ndim - p.ndim :], strict=True))
    return verbs.getitem(p, index)
