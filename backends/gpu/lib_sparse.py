"""Sparse matrices on a card: their form, patterns and entries, by sorting and searching.

A matrix comes as `data, indices, indptr`: the entries of row i are data[indptr[i]:indptr[i + 1]], in
the columns that `indices` says, ascending and without repetition. Entries are told apart by their
*keys*, row * columns + column, in one number of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.backends import csr
from mirabelle.backends.csr import index_dtype
from mirabelle.backends.gpu import library
from mirabelle.backends.gpu.lib_joining import spread
from mirabelle.backends.gpu.lib_segments import combined_by_key, reduce_segments
from mirabelle.backends.gpu.lib_sorting import lexicographic, nonzero, searchsorted, sort

_KEYS = 2**63 - 1


def routine(name: str) -> Callable[[Any], Any]:
    return library.routine(f"csr_{name}")


# Form


def rows_of(xp: Any, indptr: Any) -> Any:
    """The row of each entry."""
    return spread(xp, indptr[1:] - indptr[:-1]).astype(indptr.dtype)


def indptr_of(xp: Any, rows: Any, n: int, kind: np.dtype) -> Any:
    """Where rows begin, of ascending rows of entries."""
    if not rows.size:
        return xp.zeros(n + 1, kind)
    return searchsorted(xp, rows, xp.arange(n + 1, dtype=rows.dtype)).astype(kind)


def keys_of(xp: Any, indices: Any, indptr: Any, columns: int) -> Any:
    rows = indptr.size - 1
    if rows * max(columns, 1) > _KEYS:
        raise NotImplementedError(
            f"A sparse matrix of {rows} x {columns} is too wide for its entries to be numbered in 64 bits. "
            "Work with it on the host: `mb.adapt(mb.HostArray, S)`."
        )
    return rows_of(xp, indptr).astype(np.int64) * columns + indices


def of_keys(xp: Any, keys: Any, shape: tuple[int, int], count: int) -> tuple[Any, Any]:
    """`indices` and `indptr` of ascending keys."""
    kind, columns = index_dtype(shape, count), max(shape[1], 1)
    return (keys % columns).astype(kind), indptr_of(xp, keys // columns, shape[0], kind)


def of_triples(xp: Any, data: Any, i: Any, j: Any, shape: tuple[int, int]) -> Any:
    kind = index_dtype(shape, data.size)
    if not data.size:
        return data.copy(), xp.zeros(0, kind), xp.zeros(shape[0] + 1, kind)
    if shape[0] * shape[1] > _KEYS:
        return _from_pairs(xp, data, i, j, shape, kind)
    keys = i.astype(np.int64) * shape[1] + j
    add = xp.logical_or if data.dtype.kind == "b" else xp.add  # entries given more than once are added up
    keys, data = combined_by_key(xp, add, keys, data)
    return (data, *of_keys(xp, keys, shape, data.size))


def _from_pairs(xp: Any, data: Any, i: Any, j: Any, shape: tuple[int, int], kind: np.dtype) -> Any:
    """The same where row and column do not fit in one number."""
    order = lexicographic(xp, i, j)
    data, i, j = data[order], i[order], j[order]
    changes = xp.ones(data.size, bool)
    changes[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    first = xp.nonzero(changes)[0]
    lengths = xp.concatenate([first[1:], xp.full(1, data.size, np.int64)]) - first
    add = xp.logical_or if data.dtype.kind == "b" else xp.add
    data = reduce_segments(xp, add, data, first, lengths)
    return data, j[first].astype(kind), indptr_of(xp, i[first], shape[0], kind)


_composed = csr.routines(csr.Place(rows_of, indptr_of, of_triples, nonzero))
for _name, _routine in _composed.items():
    routine(_name)(_routine)
dense = _composed["dense"]


# Patterns


@routine("joined")
def _(xp: Any, *patterns: Any, columns: int, common: bool) -> Any:
    """The pattern of several: of all entries, or of the common ones; and where each finds its own.

    Returned are indices and indptr, and for each matrix the position of its entry, or the number of its
    entries where it has none.
    """
    rows = patterns[1].size - 1
    keys = [keys_of(xp, j, p, columns) for j, p in zip(patterns[::2], patterns[1::2], strict=True)]
    if common:
        joined = keys[0]
        for k in keys[1:]:
            joined = joined[_found(xp, k, joined) < k.size]
    else:
        joined = _distinct(xp, xp.concatenate(keys))
    indices, indptr = of_keys(xp, joined, (rows, columns), joined.size)
    return indices, indptr, *(_found(xp, k, joined) for k in keys)


def _distinct(xp: Any, keys: Any) -> Any:
    keys = sort(xp, keys)
    changes = xp.ones(keys.size, bool)
    changes[1:] = keys[1:] != keys[:-1]
    return keys[changes]


def _found(xp: Any, keys: Any, wanted: Any) -> Any:
    """Where in ascending keys others stand; the number of keys where they do not."""
    if not keys.size:
        return xp.zeros(wanted.shape, np.int64)
    at = searchsorted(xp, keys, wanted)
    held = keys[xp.minimum(at, keys.size - 1)] == wanted
    return xp.where(held, at, keys.size)


def _entry_or_zero(xp: Any, data: Any, at: Any) -> Any:
    """The entries at positions, of which the one behind the last is zero."""
    if not data.size:
        return xp.zeros(at.shape, data.dtype)
    return xp.where(at < data.size, data[xp.minimum(at, data.size - 1)], data.dtype.type(0))


@routine("combined")
def _(xp: Any, *parts: Any, name: str, shape: Any) -> Any:
    """The sum, the difference or the elementwise product of two sparse matrices."""
    a, indices1, indptr1, b, indices2, indptr2 = parts
    first, second = keys_of(xp, indices1, indptr1, shape[1]), keys_of(xp, indices2, indptr2, shape[1])
    if name == "multiply":
        at = _found(xp, second, first)
        held = xp.nonzero(at < second.size)[0] if at.size else xp.zeros(0, np.int64)
        data = a[held] * _entry_or_zero(xp, b, at[held])
        return (data, *of_keys(xp, first[held], shape, data.size))
    joined = _distinct(xp, xp.concatenate([first, second]))
    x, y = (_entry_or_zero(xp, d, _found(xp, k, joined)) for d, k in ((a, first), (b, second)))
    data = getattr(xp, name)(x, y)
    return (data, *of_keys(xp, joined, shape, data.size))


# Reading


@routine("lookup")
def _(xp: Any, data: Any, indices: Any, indptr: Any, i: Any, j: Any, *, columns: int) -> Any:
    """The entries at coordinates."""
    i, j = (x if isinstance(x, xp.ndarray) else xp.asarray(x) for x in (i, j))
    wanted = i.astype(np.int64) * columns + j.astype(np.int64)
    return _entry_or_zero(xp, data, _found(xp, keys_of(xp, indices, indptr, columns), wanted))


@routine("block")
def _(
    xp: Any, data: Any, indices: Any, indptr: Any, rows: Any, along: tuple[int, int, int], *, columns: int
) -> Any:
    """Some rows in the order given, and every step-th column from a first one on: (first, step, how many)."""
    first, step, width = along
    shape = (rows.size, width)
    starts = indptr[:-1][rows].astype(np.int64)
    counts = indptr[1:][rows].astype(np.int64) - starts
    i = spread(xp, counts)
    before = xp.cumsum(counts) - counts
    at = starts[i] - before[i] + xp.arange(i.size, dtype=np.int64)
    values, j = data[at], indices[at].astype(np.int64)
    kind = index_dtype(shape, values.size)
    if (first, step, width) != (0, 1, columns):
        shifted = (j - first) * (1 if step > 0 else -1)
        held = (shifted >= 0) & (shifted % abs(step) == 0) & (shifted // abs(step) < width)
        values, j, i = values[held], shifted[held] // abs(step), i[held]
        if step < 0:
            return of_triples(xp, values, i, j, shape)
    return values, j.astype(kind), indptr_of(xp, i, rows.size, kind)
