"""Which entries of a sparse matrix cells add to: the pattern, found once from tables of rows and columns.

>>> import numpy as np
>>> from mirabelle.arraytypes.meshdata.patterns import found
>>> table = np.array([[0, 1, 2], [1, 3, 2]])
>>> indptr, indices, slots = found([(table, table)], 4, 4)
>>> np.diff(indptr), slots[0][1, 0]
(array([3, 4, 4, 3], dtype=int32), array([4, 6, 5], dtype=int32))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mirabelle.dispatch.native import in_c

Tables = Sequence[tuple[np.ndarray, np.ndarray]]
Found = tuple[np.ndarray, np.ndarray, list[np.ndarray]]


def found(tables: Tables, rows: int, columns: int) -> Found:
    """Where rows begin, their columns, and for each pair of tables where the pairs of row and column are."""
    for down, across in tables:
        for table, size in ((down, rows), (across, columns)):
            if table.size and (int(table.min()) < -1 or int(table.max()) >= size):
                raise IndexError(
                    f"A table of a pattern leads outside: it holds {int(table.min())} to {int(table.max())}, "
                    f"and there are {size} to reach, numbered from 0 (-1 stands for nothing)."
                )
    tables = [tuple(np.ascontiguousarray(t, _indices(t)) for t in pair) for pair in tables]  # type: ignore[misc]
    return _marked(tables, rows, columns)


def index_dtype(*sizes: int) -> np.dtype:
    """32 bits wherever they do."""
    return np.dtype(np.int32 if max(sizes, default=0) < 2**31 else np.int64)


def _indices(table: np.ndarray) -> np.dtype:
    return np.dtype(np.int64 if table.dtype == np.int64 else np.int32)


def _marked(tables: Tables, rows: int, columns: int) -> Found:
    """Each row's cells are looked through, and columns marked that were met. Twice, first to count."""
    counted = np.empty(rows + 1, np.int64)
    sets = [(down.reshape(-1), across.reshape(-1), down.shape[1], across.shape[1]) for down, across in tables]
    kept = [(k, *s) for k, s in enumerate(sets) if s[0].size and s[1].size]
    in_c.csr_pattern(columns, counted, None, *[(*s, None) for _, *s in kept])
    kind = index_dtype(columns, int(counted[-1]))
    indices = np.empty(int(counted[-1]), kind)
    slots = [np.full((*down.shape, across.shape[1]), -1, kind) for down, across in tables]
    indptr = counted.astype(kind, copy=False)
    if kept:
        flat = [(*s, slots[k].reshape(-1)) for k, *s in kept]
        in_c.csr_pattern(columns, indptr, indices, *flat)
    return indptr, indices, slots


def of_blocks(pattern: Found, rows: Sequence[np.ndarray], down: int, across: int) -> Found:
    """The pattern of numbers, of one whose entries are blocks of `down` rows and `across` columns.

    A slot stands for one row of a block: cells reach `down` slots for each block, one in each of its rows.
    """
    indptr, indices, slots = pattern
    counts = np.diff(indptr).astype(np.int64)
    kind = index_dtype(indices.size * down * across, (indptr.size - 1) * down)
    made_indptr = np.zeros((indptr.size - 1) * down + 1, kind)
    np.cumsum(np.repeat(counts * across, down), out=made_indptr[1:])
    made_indices = np.empty(int(made_indptr[-1]), kind)
    for first, last in _chunks(counts.size, indices.size):
        # The entries of a row of blocks, once for each of its rows.
        part = indices[indptr[first] : indptr[last]].astype(kind)
        starts = np.repeat(indptr[first:last] - indptr[first], down)
        lengths = np.repeat(counts[first:last], down)
        at = np.arange(int(lengths.sum())) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        columns = part[at][:, None] * kind.type(across) + np.arange(across, dtype=kind)
        made_indices[made_indptr[first * down] : made_indptr[last * down]] = columns.reshape(-1)
    made = []
    for table, slot in zip(rows, slots, strict=True):
        if down == 1:
            made.append(slot)
            continue
        finer = np.empty((*slot.shape[:2], down, slot.shape[2]), kind)
        for first, last in _chunks(len(slot), slot.size):
            # The k-th block of row t begins, in row a of that, at down * indptr[t] + a * counts[t] + k.
            row, old = np.maximum(table[first:last], 0), slot[first:last, :, None, :]
            if counts.size:
                finer[first:last] = old + ((down - 1) * indptr[row].astype(np.int64))[:, :, None, None]
                finer[first:last] += (
                    counts[row].astype(kind)[:, :, None, None] * np.arange(down, dtype=kind)[:, None]
                )
            finer[first:last][np.broadcast_to(old < 0, finer[first:last].shape)] = -1
        made.append(finer.reshape(len(slot), slot.shape[1] * down, slot.shape[2]))
    return made_indptr, made_indices, made


# How many entries are worked out at a time, where that takes memory of several times their size.
_CHUNK = 1 << 20


def _chunks(count: int, entries: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with not too many entries."""
    step = max(1, count * _CHUNK // max(entries, 1))
    return ((first, min(first + step, count)) for first in range(0, count, step))
