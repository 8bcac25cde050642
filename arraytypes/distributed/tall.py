"""Factorisations of tall distributed matrices, and what follows from them.

Each process factors its rows, the small triangles are stacked and factored by all, and the orthogonal factor
is the product of the two (the QR of tall and skinny matrices, Demmel et al. 2012). Least squares, singular
values, ranks and pseudo-inverses follow from the small triangle. A wide matrix is a tall one, transposed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.layouts import partition
from mirabelle.arraytypes.distributed.lines import (
    fall_back,
    gathered_parts,
    handle,
    in_blocks,
    of_parts,
    packed,
    part_of,
    partition_of,
    regular,
    replicated,
    turned,
    view_of,
)
from mirabelle.arraytypes.distributed.searching import summed
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf


def _rows_of(view: DView) -> DView:
    """A matrix of which each process has whole rows."""
    view = regular(view)
    part = partition_of(view)
    if view.whole and part.splits[1] is None and part.splits[0] is not None and len(part.mesh) == 1:
        return view
    return in_blocks(view)


def tall_qr(view: DView, vectors: bool = True) -> tuple[DView, Any, Any]:
    """The rows as they are divided, this process' rows of Q, and R, which all have."""
    rows = _rows_of(view)
    comm, inner, n = rows.buffer.comm, rows.family.inner, rows.shape[1]
    part = rows.buffer.partition
    x = handle(rows, rows.buffer.local)
    heights = [min(part.local_shape(q)[0], n) for q in range(comm.size)]

    def factored() -> Any:
        if not x.shape[0]:
            return None, verbs.copy(x)
        return (
            library.call("linalg.qr", x, mode="reduced")
            if vectors
            else (None, library.call("linalg.qr", x, mode="r"))
        )

    q, r = on_all(comm, factored)
    if counters.active:
        counters.add(collectives=1)
    parts = gathered_parts(comm, inner, packed(r), [(h, n) for h in heights])
    stack = concatenate([wrap(inner, Leaf(p)) for p in parts if p.shape[0]], axis=0)
    if not vectors:
        return rows, None, library.call("linalg.qr", stack, mode="r")
    second, r = library.call("linalg.qr", stack, mode="reduced")
    start = sum(heights[: comm.rank])
    own = verbs.getitem(second, slice(start, start + heights[comm.rank]))
    q = verbs.matmul(q, own) if q is not None else verbs.copy(verbs.getitem(second, slice(0, 0)))
    return rows, q, r


def _of_rows(rows: DView, x: Any) -> DView:
    """An array divided along its rows as a matrix is."""
    part = rows.buffer.partition
    shape = (part.shape[0], *x.shape[1:])
    return of_parts(rows, partition(shape, part.mesh, (part.splits[0], *(None,) * (len(shape) - 1))), packed(x))


def qr(view: DView, mode: str = "reduced") -> Any:
    m, n = view.shape
    if mode == "complete" and m != n:
        return fall_back(view.family, "linalg.qr")(view, mode=mode)
    if m < n:
        # The first columns say what Q is.
        rows, q, r = tall_qr(view[:, :m])
        made = _of_rows(rows, q)
        whole, rest = wrap(view.family, Leaf(made)), wrap(view.family, Leaf(view[:, m:]))
        across = verbs.matmul(verbs.conj(whole.mT), rest)
        first = wrap(view.family, Leaf(replicated(view, view_of(r))))
        found = view_of(concatenate([first, across], axis=1))
        return found if mode == "r" else (made, found)
    rows, q, r = tall_qr(view, vectors=mode != "r")
    made = replicated(view, view_of(r))
    return made if mode == "r" else (_of_rows(rows, q), made)


def svd(view: DView, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    m, n = view.shape
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv, "hermitian": hermitian}
    if hermitian or (compute_uv and full_matrices and m != n):
        return fall_back(view.family, "linalg.svd")(view, **options)
    if m < n:
        found = svd(turned(view, 2), full_matrices, compute_uv)
        return (turned(found[2], 2), found[1], turned(found[0], 2)) if compute_uv else found
    rows, q, r = tall_qr(view, vectors=compute_uv)
    if not compute_uv:
        return replicated(view, view_of(library.call("linalg.svd", r, compute_uv=False)))
    u, s, vh = library.call("linalg.svd", r, full_matrices=False, compute_uv=True, hermitian=False)
    return _of_rows(rows, verbs.matmul(q, u)), replicated(view, view_of(s)), replicated(view, view_of(vh))


def lstsq(a: DView, b: DView, rcond: Any = None) -> Any:
    m, n = a.shape
    if m < n:
        return fall_back(a.family, "linalg.lstsq")(a, b, rcond=rcond)
    rows, q, r = tall_qr(a)
    part = rows.buffer.partition
    right = handle(b, part_of(b, partition(b.shape, part.mesh, (part.splits[0], *(None,) * (b.ndim - 1)))))
    short = wrap(a.family.inner, Leaf(summed(a, packed(verbs.matmul(verbs.conj(q.mT), right)))))
    rcond = float(np.finfo(a.dtype).eps) * max(m, n) if rcond is None else rcond
    x, _, rank, s = library.call("linalg.lstsq", r, short, rcond=rcond)
    residuals = np.empty(0, a.dtype.type(0).real.dtype)
    if int(verbs.fetch(rank)) == n and m > n:
        off = verbs.subtract(right, verbs.matmul(handle(rows, rows.buffer.local), x))
        off = off if off.ndim == 2 else off[:, None]
        squares = verbs.sum(verbs.square(verbs.abs(off)), axis=0)
        residuals = summed(a, packed(squares))
    return tuple(
        replicated(a, view_of(v) if hasattr(v, "carries_derivatives") else v) for v in (x, residuals, rank, s)
    )


def pinv(a: DView, rtol: Any = None, hermitian: bool = False) -> Any:
    m, n = a.shape
    if hermitian or not isinstance(rtol, (int, float, type(None))):
        return fall_back(a.family, "linalg.pinv")(a, rtol=rtol, hermitian=hermitian)
    if m < n:
        return turned(pinv(turned(a, 2), rtol), 2)
    rows, q, r = tall_qr(a)
    rtol = float(np.finfo(a.dtype).eps) * max(m, n) if rtol is None else rtol
    small = library.call("linalg.pinv", r, rtol=rtol, hermitian=False)
    return turned(_of_rows(rows, verbs.matmul(q, verbs.conj(small.mT))), 2)


def matrix_rank(a: DView, **options: Any) -> Any:
    """That of the small triangle, with the tolerance of the whole."""
    numbers = all(isinstance(options.get(key), (int, float, type(None))) for key in ("tol", "rtol"))
    if options.get("hermitian") or not numbers:
        return fall_back(a.family, "linalg.matrix_rank")(a, **options)
    m, n = a.shape
    if options.get("tol") is None and options.get("rtol") is None:
        options = {"rtol": float(np.finfo(a.dtype).eps) * max(m, n)}
    _, _, r = tall_qr(a if m >= n else turned(a, 2), vectors=False)
    found = library.call("linalg.matrix_rank", r, **{**options, "hermitian": False})
    return replicated(a, view_of(found) if hasattr(found, "carries_derivatives") else found)


def cond(a: DView, p: Any = None) -> Any:
    if p not in (None, 2, -2):
        return fall_back(a.family, "linalg.cond")(a, p=p)
    m, n = a.shape
    _, _, r = tall_qr(a if m >= n else turned(a, 2), vectors=False)
    found = library.call("linalg.cond", r, p=p)
    return replicated(a, view_of(found) if hasattr(found, "carries_derivatives") else found)
