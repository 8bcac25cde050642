"""Sparse matrices in compressed rows, as each place has them: their form, and entries by where they stand.

A matrix comes as `data, indices, indptr`: the entries of row i are data[indptr[i]:indptr[i + 1]], in
the columns that `indices` says, ascending and without repetition. All is written for an array module `xp`,
NumPy or CuPy; what a place does in a way of its own is a `Place`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Place(NamedTuple):
    """What a place does in its own way."""

    # The row of each entry, of (xp, indptr).
    rows: Callable[..., Any]
    # Where rows begin, of (xp, the ascending rows of entries, how many rows, dtype).
    indptr: Callable[..., Any]
    # The matrix of entries in any order, those of one place added up as they come: of (xp, data, i, j, shape).
    of_triples: Callable[..., Any]
    # Where an array is not zero, of (xp, array).
    nonzero: Callable[..., Any]


def index_dtype(shape: tuple[int, ...], count: int) -> np.dtype:
    """32 bits wherever they do."""
    return np.dtype(np.int32 if max(*shape, count) <= np.iinfo(np.int32).max else np.int64)


def routines(place: Place) -> dict[str, Callable[..., Any]]:
    """The routines by their names (without "csr_"): functions of the array module and of arrays."""

    def checked(xp: Any, data: Any, indices: Any, indptr: Any, *, shape: tuple[int, int] | None) -> Any:
        """(shape, None) of what makes a matrix as it is; (shape, its three vectors) of others."""
        shape = _checked_shape(data, indices, indptr, shape)
        rows = place.rows(xp, indptr)
        ascending = (indices[1:] > indices[:-1]) | (rows[1:] > rows[:-1])
        if bool(ascending.all()) and indices.dtype == indptr.dtype == index_dtype(shape, data.size):
            return shape, None
        return shape, place.of_triples(xp, data, rows, indices, shape)

    def from_triples(xp: Any, data: Any, i: Any, j: Any, *, shape: tuple[int, int] | None) -> Any:
        if not data.ndim == i.ndim == j.ndim == 1 or not data.size == i.size == j.size:
            raise ValueError(
                "CSR of triples (data, (i, j)) takes three vectors of one length; these have shapes "
                f"{data.shape}, {i.shape} and {j.shape}."
            )
        if data.size and (i.dtype.kind not in "iu" or j.dtype.kind not in "iu"):
            raise ValueError(f"CSR: rows and columns are integers, not {i.dtype.name} and {j.dtype.name}.")
        i, j = (x if x.dtype.char in "ilq" else x.astype(np.int64) for x in (i, j))
        if shape is None:
            shape = (int(i.max()) + 1, int(j.max()) + 1) if data.size else (0, 0)
        _check_within("i", i, shape[0])
        _check_within("j", j, shape[1])
        return shape, place.of_triples(xp, data, i, j, shape)

    def from_dense(xp: Any, a: Any) -> Any:
        i, j = place.nonzero(xp, a)
        kind = index_dtype(a.shape, i.size)
        return a[i, j], j.astype(kind), place.indptr(xp, i, a.shape[0], kind)

    def dense(xp: Any, data: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]) -> Any:
        out = xp.zeros(shape, data.dtype)
        if data.size:
            out[place.rows(xp, indptr), indices] = data
        return out

    def diagonal(xp: Any, data: Any, indices: Any, indptr: Any, *, offset: int, length: int) -> Any:
        out = xp.zeros(length, data.dtype)
        rows = place.rows(xp, indptr)
        on = place.nonzero(xp, indices - rows == offset)[0]
        out[xp.minimum(rows, indices)[on]] = data[on]
        return out

    def added(xp: Any, data: Any, indices: Any, indptr: Any, b: Any, *, dtype: Any, signs: Any) -> Any:
        """A dense matrix plus a sparse one, each with its sign."""
        out = b.astype(dtype)
        if signs[1] < 0:
            out = xp.negative(out)
        if data.size:
            at = place.rows(xp, indptr), indices
            out[at] = out[at] + data if signs[0] > 0 else out[at] - data
        return out

    return {
        "checked": checked, "from_triples": from_triples, "from_dense": from_dense, "dense": dense,
        "rows": lambda xp, indptr: place.rows(xp, indptr), "diagonal": diagonal, "sum": added, "row": row,
        "position": position, "entry": entry,
    }  # fmt: skip


def position(xp: Any, data: Any, indices: Any, indptr: Any, *, i: int, j: int) -> int:
    """Where the entry (i, j) stands, -1 if it is not stored."""
    start, stop = (int(n) for n in indptr[i : i + 2].tolist())
    if start == stop:
        return -1
    at = start + int(xp.searchsorted(indices[start:stop], xp.asarray(j, dtype=indices.dtype)))
    return at if at < stop and int(indices[at]) == j else -1


def entry(xp: Any, data: Any, indices: Any, indptr: Any, *, i: int, j: int) -> Any:
    at = position(xp, data, indices, indptr, i=i, j=j)
    return data[at].copy() if at >= 0 else xp.zeros((), data.dtype)


def row(xp: Any, data: Any, indices: Any, indptr: Any, *, i: int, columns: int) -> Any:
    out = xp.zeros(columns, data.dtype)
    start, stop = (int(n) for n in indptr[i : i + 2].tolist())
    out[indices[start:stop]] = data[start:stop]
    return out


def _checked_shape(data: Any, indices: Any, indptr: Any, shape: tuple[int, int] | None) -> tuple[int, int]:
    """The shape of the matrix that three vectors make; an error if they make none."""
    for name, x in (("data", data), ("indices", indices), ("indptr", indptr)):
        if x.ndim != 1:
            raise ValueError(f"CSR is made of three vectors, and `{name}` has shape {x.shape}.")
        if name != "data" and x.dtype.kind not in "iu":
            raise ValueError(
                f"CSR: `{name}` holds integers, not {x.dtype.name}. Convert it: x.astype(mb.int32)."
            )
    if not indptr.size or int(indptr[0]) != 0 or bool((indptr[1:] < indptr[:-1]).any()):
        raise ValueError("CSR: `indptr` starts with 0 and never falls: row i is data[indptr[i]:indptr[i + 1]].")
    last = int(indptr[-1])
    if data.size != indices.size or last != data.size:
        raise ValueError(
            "CSR: `data` and `indices` are as long as the last element of `indptr` says; they have "
            f"{data.size} and {indices.size} elements, and it is {last}."
        )
    if shape is None:
        shape = (indptr.size - 1, int(indices.max()) + 1 if indices.size else 0)
    if indptr.size != shape[0] + 1:
        raise ValueError(
            f"CSR: `indptr` has one element more than there are rows; {indptr.size} for {shape[0]}."
        )
    _check_within("indices", indices, shape[1])
    return shape


def _check_within(name: str, x: Any, n: int) -> None:
    if not x.size:
        return
    low, high = int(x.min()), int(x.max())
    if low < 0 or high >= n:
        bad = low if low < 0 else high
        raise ValueError(f"CSR: `{name}` holds {bad}, and there are only 0 to {n - 1}. Give a larger shape=.")
