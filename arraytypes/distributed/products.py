"""Matrix products of distributed arrays.

The result is divided as the rows of the first operand and the columns of the second are. A process needs those
rows and those columns. What of them it does not hold comes panel by panel along the inner dimension, the next
on its way while the last is being multiplied, each process beginning at another: on a row of processes that is
the ring, on a mesh SUMMA. Where the inner dimension is divided in both, each process has a term of the whole
result, and terms are summed where they belong, if that is less to send.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.combining import combined, grouped
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.execution import Frame, operand
from mirabelle.arraytypes.distributed.layouts import (
    Partition,
    Pieces,
    Split,
    divided,
    everywhere,
    partition,
    runs,
)
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.distributed.moving import in_partition
from mirabelle.arraytypes.distributed.routines import gathering_routine
from mirabelle.arraytypes.distributed.transfers import Messages, Transfer, boxes, volume
from mirabelle.arraytypes.distributed.views import DView, in_order
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf


@library.matrix_product.method
def _(family: type[DArray], x1: Any, x2: Any) -> Any:
    """x1 @ x2, each process its part."""
    v1, v2 = _settled(verbs.leaf_of(x1).view), _settled(verbs.leaf_of(x2).view)
    comm = v1.buffer.comm
    if comm.size == 1:
        local = product(family.inner, _whole(v1), _whole(v2))
        return wrap(family, Leaf(family._of_local(comm, everywhere(local.shape, (1,)), local)))
    found = _stack(family, v1, v2) if v1.ndim > 2 or v2.ndim > 2 else _matrices(family, v1, v2)
    return wrap(family, Leaf(found))


@library.routine(DArray, "gemm")
def gemm(x1: DView, x2: DView, target: DView, *, alpha: Any = 1, beta: Any = 0) -> None:
    """alpha * x1 @ x2 + beta * target, written to `target`."""
    family = target.family
    if target.buffer.comm.size == 1:
        gathering_routine(family, "gemm")(x1, x2, target, alpha=alpha, beta=beta)
        return
    made = library.matrix_product(family, wrap(family, Leaf(x1)), wrap(family, Leaf(x2)))
    made = made if alpha == 1 else verbs.multiply(made, alpha)
    if beta:
        made = verbs.add(made, verbs.multiply(wrap(family, Leaf(target)), beta))
    family._copy_into(target, verbs.leaf_of(verbs.astype(made, target.dtype, copy=False)).view)


def product(inner: Any, a: Any, b: Any) -> Any:
    """The product of two local views, by the local type."""
    return verbs.leaf_of(verbs.matmul(wrap(inner, Leaf(a)), wrap(inner, Leaf(b)))).view


def _settled(view: DView) -> DView:
    """A view that all processes show something of by strides, and that waits for no terms."""
    buffer = view.buffer
    if buffer.partition.partial:
        from mirabelle.arraytypes.distributed.combining import resolve

        resolve(buffer)
        view._map = None
    shown = view.map
    if shown is None or shown.pinned or shown.shape != view.shape:
        return in_partition(view, divided(view.shape, buffer.comm.size))
    return view


def _whole(view: DView) -> Any:
    frame = Frame(view.family, view.buffer.comm, everywhere(view.shape, (1,)))
    return operand(frame, view).view


def local_in(view: DView, part: Partition) -> Any:
    """A local view of this process's part of a view, if it were divided so."""
    return operand(Frame(view.family, view.buffer.comm, part), view).view


def _splits(view: DView) -> tuple[tuple[int, ...], tuple[Split | None, ...]]:
    part = view.partition
    assert part is not None
    return part.mesh, part.splits


# Two matrices, or a matrix and a vector


def _matrices(family: Any, v1: DView, v2: DView) -> DView:
    (mesh1, s1), (mesh2, s2) = _splits(v1), _splits(v2)
    if any(s1) and any(s2) and mesh1 != mesh2:
        # Of two meshes, the one of the larger operand is kept.
        if v1.nbytes >= v2.nbytes:
            v2 = in_partition(v2, everywhere(v2.shape, mesh1))
        else:
            v1 = in_partition(v1, everywhere(v1.shape, mesh2))
        (mesh1, s1), (mesh2, s2) = _splits(v1), _splits(v2)
    mesh = mesh1 if any(s1) or not any(s2) else mesh2
    rows, inner1 = s1 if len(s1) == 2 else (None, s1[0])
    inner2, columns = s2 if len(s2) == 2 else (s2[0], None)
    m = v1.shape[0] if v1.ndim == 2 else 1
    n = v2.shape[1] if v2.ndim == 2 else 1
    if rows is not None and columns is not None and rows.mesh_axis == columns.mesh_axis:
        # One of the two has to be brought to all: the smaller.
        if v1.nbytes >= v2.nbytes:
            columns = None
        else:
            rows = None
    out_bytes = m * n * np.result_type(v1.dtype, v2.dtype).itemsize
    inside = inner1 or inner2
    if inside is not None and all(s is None or s.mesh_axis != inside.mesh_axis for s in (rows, columns)):
        brought = (v1.nbytes if inner1 else 0) + (v2.nbytes if inner2 else 0)
        alone = inner1 is None or inner2 is None
        alike = alone or inner1 == inner2 or min(v1.nbytes, v2.nbytes) < brought / 2
        if alike and (alone or out_bytes <= brought):
            return _terms(family, v1, v2, mesh, rows, columns, inside)
    return _panels(family, v1, v2, mesh, rows, columns)


def _result(
    v1: DView, v2: DView, mesh: tuple[int, ...], rows: Split | None, columns: Split | None, partial: Any = ()
) -> Partition:
    shape: list[int] = []
    splits: list[Split | None] = []
    if v1.ndim == 2:
        shape.append(v1.shape[0])
        splits.append(rows)
    if v2.ndim == 2:
        shape.append(v2.shape[1])
        splits.append(columns)
    return partition(tuple(shape), mesh, tuple(splits), partial)


def _operands(
    v1: DView, v2: DView, mesh: tuple[int, ...], rows: Split | None, inside: Split | None, columns: Split | None
) -> tuple[Partition, Partition]:
    """How the operands are needed: these rows, this part of the inner dimension, these columns."""
    first = partition(v1.shape, mesh, (rows, inside) if v1.ndim == 2 else (inside,))
    second = partition(v2.shape, mesh, (inside, columns) if v2.ndim == 2 else (inside,))
    return first, second


def _terms(
    family: Any, v1: DView, v2: DView, mesh: Any, rows: Split | None, columns: Split | None, inside: Split
) -> DView:
    """Each process multiplies what it has of the inner dimension; the terms are summed."""
    inner, comm = family.inner, v1.buffer.comm
    first, second = _operands(v1, v2, mesh, rows, inside, columns)
    term = product(inner, local_in(v1, first), local_in(v2, second))
    whole = _result(v1, v2, mesh, rows, columns)
    at = first.coordinates(comm.rank)
    axis = inside.mesh_axis
    group = tuple(
        q
        for q in range(comm.size)
        if all(a == b for i, (a, b) in enumerate(zip(first.coordinates(q), at, strict=True)) if i != axis)
    )
    free = next((d for d, s in enumerate(whole.splits) if s is None and whole.shape[d] >= mesh[axis]), None)
    if counters.active:
        counters.add(collectives=1)
    if free is None or term.nbytes <= SMALL_RESULT:
        mark = marked("sum of the terms of a product, of shape", term.shape)
        local = combined(grouped(comm, group), inner, term, REDUCTIONS["sum"], mark)
        return family._of_local(comm, whole, local)  # type: ignore[no-any-return]
    pieces = runs([whole.shape[free] * i // mesh[axis] for i in range(mesh[axis] + 1)])
    splits = list(whole.splits)
    splits[free] = Split(axis, pieces)
    local = _summed_to_parts(inner, grouped(comm, group), term, free, pieces)
    return family._of_local(comm, partition(whole.shape, mesh, tuple(splits)), local)  # type: ignore[no-any-return]


# A result of fewer bytes than this is given to all: a number or a short vector is wanted everywhere.
SMALL_RESULT = 1 << 12


def _summed_to_parts(inner: Any, comm: Any, term: Any, d: int, pieces: Any) -> Any:
    """The sum of all terms, each process its piece along a dimension, added in the order of ranks."""

    def piece(q: int) -> Any:
        low, high = pieces[q][0] if pieces[q] else (0, 0)
        part = term[(*[slice(None)] * d, slice(low, high), Ellipsis)]
        if part.flags.c_contiguous:
            return part
        return in_order(inner, part)

    mine = piece(comm.rank)
    others = [q for q in range(comm.size) if q != comm.rank]
    landed = {q: inner._empty(mine.shape, mine.dtype) for q in others if mine.size}
    messages = Messages(comm, inner)
    messages.begin({q: piece(q) for q in others if pieces[q]}, landed)
    messages.finish()
    total: Any = None
    for q in range(comm.size):
        x = wrap(inner, Leaf(mine if q == comm.rank else landed[q])) if mine.size else None
        if x is not None:
            total = x if total is None else verbs.add(total, x)
    return mine if total is None else verbs.leaf_of(total).view


def _panels(family: Any, v1: DView, v2: DView, mesh: Any, rows: Split | None, columns: Split | None) -> DView:
    """Each process multiplies its rows by its columns, and gets what it lacks panel by panel."""
    inner, comm = family.inner, v1.buffer.comm
    first, second = _operands(v1, v2, mesh, rows, None, columns)
    k = v1.shape[-1]
    whole = _result(v1, v2, mesh, rows, columns)
    lacking = _lacking(v1, first) + _lacking(v2, second)
    if lacking <= settings.exchange_bytes // 4 or k < 2 * comm.size:
        local = product(inner, local_in(v1, first), local_in(v2, second))
        return family._of_local(comm, whole, local)  # type: ignore[no-any-return]
    count = max(comm.size, math.ceil(lacking / (settings.exchange_bytes // 4)))
    edges = [k * i // count for i in range(count + 1)]

    def panel(step: int, q: int) -> tuple[int, int]:
        i = (step + q * count // comm.size) % count
        return edges[i], edges[i + 1]

    def begin(step: int) -> Any:
        found = []
        for view, part, at in ((v1, first, -1), (v2, second, 0)):
            needs: list[tuple[Pieces, ...] | None] = []
            for q in range(comm.size):
                held = list(part.held(q))
                held[at] = (panel(step, q),)
                needs.append(tuple(held))
            shown = view.map
            assert shown is not None
            transfer = Transfer(shown, needs, comm.rank)
            assert transfer.shape is not None
            out = inner._empty(transfer.shape, view.dtype)
            found.append((out, transfer.start(view, out, view.dtype)))
        return found

    total: Any = None
    waiting = begin(0)
    for step in range(count):
        ready, waiting = waiting, begin(step + 1) if step + 1 < count else []
        for _, messages in ready:
            messages.finish()
        x = verbs.matmul(wrap(inner, Leaf(ready[0][0])), wrap(inner, Leaf(ready[1][0])))
        if total is None:
            total = x
        else:
            verbs.assign(total, verbs.add(total, x))
            verbs.materialize(total)
    return family._of_local(comm, whole, verbs.leaf_of(total).view)  # type: ignore[no-any-return]


def _lacking(view: DView, part: Partition) -> int:
    """The bytes of an operand that a process needs and does not hold, at most."""
    shown = view.map
    assert shown is not None
    key = "lacking", shown
    found = part.cache.get(key)
    if found is None:
        found = 0
        for q in range(part.size):
            have = sum(map(volume, boxes(shown.held(q), part.held(q))))
            found = max(found, math.prod(part.local_shape(q)) - have)
        part.cache[key] = found
    return found * view.dtype.itemsize  # type: ignore[no-any-return]


# Stacks of matrices


def _stack(family: Any, v1: DView, v2: DView) -> DView:
    """Products of stacks: divided along the first dimension of the stack that is, or as the matrices are."""
    comm = v1.buffer.comm
    (mesh1, s1), (mesh2, s2) = _splits(v1), _splits(v2)
    batch = np.broadcast_shapes(v1.shape[:-2], v2.shape[:-2])
    tail: tuple[int, ...] = ()
    if v1.ndim > 1:
        tail += (v1.shape[-2],)
    if v2.ndim > 1:
        tail += (v2.shape[-1],)
    mesh = mesh1 if any(s1) else mesh2
    splits: list[Split | None] = [None] * len(batch)
    taken: set[int] = set()
    for view, own_mesh, own in ((v1, mesh1, s1), (v2, mesh2, s2)):
        if own_mesh != mesh:
            continue
        n = max(view.ndim - 2, 0)
        for i in range(n):
            d, s = len(batch) - n + i, own[i]
            if s is not None and splits[d] is None and view.shape[i] == batch[d] and s.mesh_axis not in taken:
                splits[d] = s
                taken.add(s.mesh_axis)
    rows = s1[-2] if v1.ndim > 1 and mesh1 == mesh else None
    columns = s2[-1] if v2.ndim > 1 and mesh2 == mesh else None
    rows = None if rows is not None and rows.mesh_axis in taken else rows
    if rows is not None:
        taken.add(rows.mesh_axis)
    columns = None if columns is not None and columns.mesh_axis in taken else columns

    def needed(view: DView, last: tuple[Split | None, ...]) -> Partition:
        n = max(view.ndim - 2, 0)
        lead = [
            splits[len(batch) - n + i] if view.shape[i] == batch[len(batch) - n + i] else None for i in range(n)
        ]
        return partition(view.shape, mesh, (*lead, *last))

    first = needed(v1, (rows, None) if v1.ndim > 1 else (None,))
    second = needed(v2, (None, columns) if v2.ndim > 1 else (None,))
    local = product(family.inner, local_in(v1, first), local_in(v2, second))
    ends: list[Split | None] = []
    if v1.ndim > 1:
        ends.append(rows)
    if v2.ndim > 1:
        ends.append(columns)
    return family._of_local(comm, partition((*batch, *tail), mesh, (*splits, *ends)), local)  # type: ignore[no-any-return]
