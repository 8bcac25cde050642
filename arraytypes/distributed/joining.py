"""Routines that place elements anew: shifts, repeats, borders, triangles, and sliding sums."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.darray import DArray, place_of
from mirabelle.arraytypes.distributed.layouts import divided
from mirabelle.arraytypes.distributed.lines import (
    by_lines,
    distributed_routine,
    fall_back,
    flattened,
    handle,
    of_parts,
    part_of,
    partition_of,
    regular,
    view_of,
)
from mirabelle.arraytypes.distributed.moving import rolled, window
from mirabelle.arraytypes.distributed.routines import together
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.functions import manipulation
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.tree import Leaf


def _handle(view: DView) -> Any:
    return wrap(view.family, Leaf(view))


# Shifts and repeats


@manipulation.roll.method
def _(x: DArray, shift: Any, axis: Any = None) -> Any:
    """Only what crosses from one process to another is sent."""
    view = view_of(x)
    if not x.size:
        return verbs.copy(x)
    if axis is None:
        line = flattened(regular(view))
        shifts = manipulation._shifts(shift, 0, _handle(line))
        return verbs.reshape(_handle(rolled(line, [shifts.get(0, 0)])), x.shape)
    shifts = manipulation._shifts(shift, axis, x)
    return _handle(rolled(view, [shifts.get(d, 0) for d in range(x.ndim)]))


@distributed_routine("repeat")
def repeat(view: DView, counts: Any, axis: int = 0) -> Any:
    """A number of repeats for each element along the axis: each process finds which elements its part shows."""
    view = regular(view)
    comm, inner = view.buffer.comm, view.family.inner
    counts = together(counts) if isinstance(counts, DView) else counts
    counts = np.asarray(counts if isinstance(counts, (int, np.integer)) else inner._download(counts))
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if counts.ndim > 1 or (counts.ndim and counts.shape[0] not in (1, view.shape[axis])):
        raise ValueError(
            f"operands could not be broadcast together with shape ({view.shape[axis]},) {counts.shape}"
        )
    edges = np.cumsum(np.broadcast_to(counts.astype(np.int64), (view.shape[axis],)))
    part = divided((int(edges[-1]),), comm.size)
    places = [np.arange(a, b) for a, b in part.held(comm.rank)[0]] or [np.empty(0, np.int64)]
    source = np.searchsorted(edges, np.concatenate(places), side="right")
    index = _handle(of_parts(view, part, inner._upload(source.astype(np.int64))))
    return view_of(verbs.copy(verbs.getitem(_handle(view), (*[slice(None)] * axis, index))))


# Borders


# Triangles


def _triangle(name: str) -> None:
    @distributed_routine(name)
    def run(view: DView, k: int = 0) -> Any:
        """Of each box of a process' part the triangle whose diagonal passes where that of the whole does."""
        view = regular(view)
        part, inner = partition_of(view), view.family.inner
        local, rank = part_of(view, part), view.buffer.comm.rank
        routine = library.routine_of(inner, name)
        out = inner._empty(part.local_shape(rank), view.dtype)
        rows, columns = part.held(rank)[-2:]
        for row, column in itertools.product(rows, columns):
            index = (Ellipsis, slice(*place_of(rows, *row)), slice(*place_of(columns, *column)))
            inner._copy_into(out[index], routine(local[index], k=k + row[0] - column[0]))
        return of_parts(view, part, out)


for _name in ("tril", "triu"):
    _triangle(_name)

# Inner products and sliding sums


@distributed_routine("vecdot")
def vecdot(a: DView, b: DView) -> Any:
    """A sum over the last dimension, of whatever each process has of it."""
    x, y = _handle(a), _handle(b)
    dtype = promotion.result_type(x.dtype, y.dtype)
    x = verbs.conj(x) if x.dtype.kind == "c" else x
    return view_of(verbs.sum(verbs.multiply(x, y), axis=-1, dtype=dtype))


def _sliding(name: str) -> None:
    @distributed_routine(name)
    def run(a: Any, v: Any, mode: str = "full") -> Any:
        """Each process' part of the sums, of its part of the longer operand and a window around it."""
        if a.ndim != 1 or v.ndim != 1 or mode not in ("full", "same", "valid") or not v.size or not a.size:
            return fall_back(a.family, name)(a, v, mode=mode)
        n, m = a.shape[0], v.shape[0]
        if name == "correlate":  # a convolution with the other, turned around and conjugated
            turned = verbs.getitem(_handle(v), slice(None, None, -1))
            v = view_of(verbs.conj(turned) if v.dtype.kind == "c" else turned)
        swapped = n < m
        if swapped:
            a, v, n, m = v, a, m, n
        start, stop = {"full": (0, n + m - 1), "valid": (m - 1, n)}.get(mode, ((m - 1) // 2, (m - 1) // 2 + n))
        if name == "correlate" and mode == "same" and swapped:  # (NumPy turns the result around)
            start, stop = m // 2, m // 2 + n
        a = regular(a)
        comm, inner = a.buffer.comm, a.family.inner
        part = divided((stop - start,), comm.size)

        def reach(q: int) -> tuple[int, int] | None:
            held = part.held(q)[0]
            if not held:
                return None
            low, high = held[0][0] + start, held[0][1] + start
            return max(low - m + 1, 0), min(high, n)

        def wanted(q: int) -> list[tuple[int, int]] | None:
            found = reach(q)
            return None if found is None or found[0] >= found[1] else [found]

        table = together(v)
        local = window(a, wanted)
        dtype = np.result_type(a.dtype, v.dtype)
        mine = reach(comm.rank)
        if mine is None:
            return of_parts(a, part, inner._empty((0,), dtype))
        low = part.held(comm.rank)[0][0][0] + start
        sums = library.routine_of(inner, "convolve")(local, table, mode="full")
        count = part.local_shape(comm.rank)[0]
        made = sums[low - mine[0] : low - mine[0] + count]
        return of_parts(a, part, view_of(verbs.copy(handle(a, made))))


for _name in ("convolve", "correlate"):
    _sliding(_name)

# Bits


def _bits(name: str) -> None:
    @distributed_routine(name)
    def run(view: DView, axis: Any = None, **options: Any) -> Any:
        routine = library.routine_of(view.family.inner, name)
        found = None
        if axis is not None:
            found = by_lines(
                view, (axis % view.ndim,), lambda x: routine(x, axis=axis, **options), range(view.ndim)
            )
        return fall_back(view.family, name)(view, axis=axis, **options) if found is None else found


for _name in ("packbits", "unpackbits"):
    _bits(_name)


__all__ = ["repeat", "vecdot"]
