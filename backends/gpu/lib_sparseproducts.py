"""Sparse matrices on a card: reductions of rows and columns, transposes, and products by cuSPARSE.

They come as `data, indices, indptr`, as in `lib_sparse`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.backends.csr import index_dtype
from mirabelle.backends.gpu.lib_joining import spread
from mirabelle.backends.gpu.lib_segments import reduce_segments
from mirabelle.backends.gpu.lib_sorting import argsort
from mirabelle.backends.gpu.lib_sparse import indptr_of, of_triples, routine, rows_of
from mirabelle.backends.gpu.library import scipy_module

_LINES = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or",
    "all": "logical_and",
}  # fmt: skip


@routine("lines")
def _(xp: Any, data: Any, indices: Any, indptr: Any, *, name: str, axis: int, shape: Any, dtype: Any) -> Any:
    """One result of a reduction for each row (axis 1) or column (axis 0)."""
    length = shape[axis]
    if axis == 0:
        data, _, indptr = by_columns(xp, data, indices, indptr, shape)
    combine = getattr(xp, _LINES[name])
    kind = np.dtype(_reduced_dtype(name, data.dtype, dtype))
    counts = indptr[1:] - indptr[:-1]
    out = xp.full(counts.size, name == "all" and not length, kind)
    if not data.size:
        return out
    held = xp.nonzero(counts > 0)[0]
    values = data.astype(kind, copy=False) if name not in ("any", "all") else data.astype(bool)
    lengths = counts[held].astype(np.int64)
    out[held] = reduce_segments(xp, combine, values, indptr[:-1][held].astype(np.int64), lengths)
    if name in ("prod", "min", "max", "all"):  # (to a sum and to "any", zeros add nothing)
        partly = (counts > 0) & (counts < length)
        out = xp.where(partly, combine(out, kind.type(0)), out)
    return out


def _reduced_dtype(name: str, dtype: np.dtype, wanted: Any) -> Any:
    if name in ("any", "all"):
        return bool
    ufunc = getattr(np, _LINES[name])
    options = {} if wanted is None else {"dtype": wanted}
    return ufunc.reduce(np.zeros(1, dtype), **options).dtype


# Transposing and multiplying


@routine("transposed")
def _(xp: Any, data: Any, indices: Any, indptr: Any, *, shape: Any) -> Any:
    return by_columns(xp, data, indices, indptr, shape)


def by_columns(xp: Any, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """The entries in the order of columns, their rows, and where each column begins."""
    kind = index_dtype(shape, data.size)
    order = argsort(xp, indices)
    rows = rows_of(xp, indptr)
    return data[order], rows[order].astype(kind), indptr_of(xp, indices[order], shape[1], kind)


def matrix(xp: Any, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """The library's own sparse matrix over the same memory."""
    made = scipy_module(xp, "sparse").csr_matrix((data, indices, indptr), shape=tuple(shape))
    made.has_canonical_format = True
    return made


@routine("of_the_library")
def _(xp: Any, data: Any, indices: Any, indptr: Any, *, shape: Any) -> Any:
    return matrix(xp, data, indices, indptr, shape)


def _worked_in(dtype: np.dtype) -> np.dtype:
    """What cuSPARSE multiplies in."""
    return np.dtype(np.float32) if dtype.char == "e" else dtype


@routine("product")
def _(xp: Any, data: Any, indices: Any, indptr: Any, b: Any, *, shape: Any, left: bool) -> Any:
    """S @ b, or b @ S."""
    dtype = np.result_type(data.dtype, b.dtype)
    if not left:
        data, indices, indptr = by_columns(xp, data, indices, indptr, shape)
        rows, n = shape[1], shape[0]
        b = b if b.ndim == 1 else b.swapaxes(-1, -2)
    else:
        rows, n = shape
    columns = b[:, None] if b.ndim == 1 else xp.moveaxis(b, -2, 0)
    columns = columns.reshape(n, math.prod(columns.shape[1:]))
    found = _times(xp, (data, indices, indptr), columns, (rows, n), dtype)
    if b.ndim == 1:
        return found[:, 0].copy()
    out = xp.moveaxis(found.reshape(rows, *b.shape[:-2], b.shape[-1]), 0, -2)
    return out if left else out.swapaxes(-1, -2)


def _times(xp: Any, parts: Any, columns: Any, shape: tuple[int, int], dtype: np.dtype) -> Any:
    data, indices, indptr = parts
    if not data.size or not columns.size:
        return xp.zeros((shape[0], columns.shape[1]), dtype)
    if dtype.char in "efdFD":
        worked = _worked_in(dtype)
        s = matrix(xp, data.astype(worked, copy=False), indices, indptr, shape)
        return xp.asarray(s @ columns.astype(worked)).astype(dtype, copy=False)
    # Integers: the products, added up row by row.
    products = data.astype(dtype, copy=False)[:, None] * columns.astype(dtype, copy=False)[indices]
    return _row_sums(xp, products, indptr, shape[0])


def _row_sums(xp: Any, products: Any, indptr: Any, rows: int) -> Any:
    counts = indptr[1:] - indptr[:-1]
    out = xp.zeros((rows, products.shape[1]), products.dtype)
    held = xp.nonzero(counts > 0)[0]
    add = xp.logical_or if products.dtype.kind == "b" else xp.add
    first, lengths = indptr[:-1][held].astype(np.int64), counts[held].astype(np.int64)
    out[held] = reduce_segments(xp, add, products, first, lengths)
    return out


@routine("times_csr")
def _(xp: Any, *parts: Any, shapes: Any) -> Any:
    """Every entry with the row of the other matrix that its column names, added up by place."""
    a, indices1, indptr1, b, indices2, indptr2 = parts
    dtype, shape = np.result_type(a.dtype, b.dtype), (shapes[0][0], shapes[1][1])
    kind = index_dtype(shape, 0)
    if not a.size or not b.size:
        return xp.zeros(0, dtype), xp.zeros(0, kind), xp.zeros(shape[0] + 1, kind)
    if dtype.char in "efdFD" and a.size < 2**31 and b.size < 2**31:
        worked = _worked_in(dtype)
        first = matrix(xp, a.astype(worked, copy=False), indices1, indptr1, shapes[0])
        made = first @ matrix(xp, b.astype(worked, copy=False), indices2, indptr2, shapes[1])
        made = made.tocsr()
        made.sum_duplicates()
        kind = index_dtype(shape, made.nnz)
        return made.data.astype(dtype, copy=False), made.indices.astype(kind), made.indptr.astype(kind)
    starts = indptr2[:-1][indices1].astype(np.int64)
    counts = indptr2[1:][indices1].astype(np.int64) - starts
    entry = spread(xp, counts)
    before = xp.cumsum(counts) - counts
    other = starts[entry] - before[entry] + xp.arange(entry.size, dtype=np.int64)
    products = a.astype(dtype, copy=False)[entry] * b.astype(dtype, copy=False)[other]
    return of_triples(xp, products, rows_of(xp, indptr1)[entry], indices2[other], shape)
