"""Divided matrices on rank 0, to be written to a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix
from mirabelle.arraytypes.meshdata.sharedmeshes import SharedEntries
from mirabelle.dispatch import verbs

_ROWS = marked("rows of a divided matrix for a file")


def communicator_of(objects: Any) -> Communicator | None:
    """The communicator of those objects that are divided, None where none is."""
    for x in objects:
        if isinstance(x, DividedMatrix):
            return x.pattern.forest.comm  # type: ignore[no-any-return]
        flat = getattr(x, "parent", x) if hasattr(x, "tree") else x
        if isinstance(flat, DArray):
            return flat.communicator  # type: ignore[no-any-return]
    return None


def own_rows(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of this process' rows the lengths, the columns in the whole matrix in rising order, and the values."""
    values, columns, starts = (np.asarray(verbs.to_numpy(p)) for p in A.csr.parts)
    across = A.pattern.column_entries
    wide = np.concatenate([np.arange(across.count) + across.start, A.pattern.wide])[columns]
    lengths = np.diff(starts).astype(np.int64)
    order = np.lexsort([wide, np.repeat(np.arange(len(lengths)), lengths)])
    return lengths, wide[order], values[order]


def in_order(A: Any, lengths: Any, columns: Any, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of all ranks, one after the other, in the order of distributed vectors, and so their columns."""
    down, across = A.pattern.row_entries, A.pattern.column_entries
    if not isinstance(down, SharedEntries) or not len(lengths):
        return lengths, columns, values
    rows = np.repeat(down.order, lengths)
    columns = across.order[columns]
    order = np.lexsort([columns, rows])
    return np.bincount(rows, minlength=len(lengths)), columns[order], values[order]


def rows_on_root(A: DividedMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of all rows: on rank 0, elsewhere nothing."""
    lengths, columns, values = (_on_root(A.pattern.forest.comm, x) for x in own_rows(A))
    return in_order(A, lengths, columns, values)


def _on_root(comm: Communicator, x: np.ndarray) -> np.ndarray:
    """What the ranks have, one after the other."""
    sizes = comm.allgather_object(len(x))
    if comm.rank:
        comm.exchange({0: np.ascontiguousarray(x)} if len(x) else {}, {}, _ROWS)
        return x[:0]
    came = {r: np.empty(n, x.dtype) for r, n in enumerate(sizes) if r and n}
    comm.exchange({}, came, _ROWS)
    return np.concatenate([x, *(came[r] for r in sorted(came))])
