"""Questions to other processes, each about a number that says by itself whom to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.meshdata.forestlinks import by_rank, swapped
from mirabelle.arraytypes.meshdata.maps import index_type

Came = dict[int, np.ndarray]
ROWS = 2**14  # of tables that are looked at together
_ROWS = marked("rows for other processes")


def sent(comm: Communicator, ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows that other ranks have for this one, those of lower ranks first; `ranks` says where own ones go."""
    order = np.argsort(ranks, kind="stable")
    return sent_runs(comm, np.searchsorted(ranks[order], np.arange(comm.size + 1)), rows[order])


def sent_runs(comm: Communicator, edges: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The same of rows that are in order: those from `edges[r]` to `edges[r + 1]` go to rank r."""
    counts = np.array(comm.allgather_object(np.diff(edges)))[:, comm.rank]
    into = np.concatenate([[0], np.cumsum(counts)])
    out = np.empty((into[-1], rows.shape[1]), rows.dtype)
    out[into[comm.rank] : into[comm.rank + 1]] = rows[edges[comm.rank] : edges[comm.rank + 1]]
    others = [r for r in range(comm.size) if r != comm.rank]
    sends = {r: rows[edges[r] : edges[r + 1]] for r in others if edges[r] < edges[r + 1]}
    receives = {r: out[into[r] : into[r + 1]] for r in others if counts[r]}
    if sends or receives:
        comm.exchange(sends, receives, _ROWS)
    return out


def located(sorted_values: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Where the entries of a table stand in a sorted list of all of them."""
    out = np.empty(table.shape, index_type(len(sorted_values)))
    for start in range(0, len(table), ROWS):  # (some rows at a time: for its memory)
        out[start : start + ROWS] = np.searchsorted(sorted_values, table[start : start + ROWS])
    return out


def asked(
    comm: Communicator, ranks: np.ndarray, rows: np.ndarray, answer: Callable[[Came], Came], columns: int
) -> np.ndarray:
    """What others answer to rows of integers, in their order: `ranks` are those that are asked.

    `answer` gets the rows that came here, by rank, and gives rows of `columns` integers for them.
    """
    order = np.argsort(ranks, kind="stable")
    came = swapped(comm, by_rank(ranks[order], rows[order]), rows.shape[1])
    back = swapped(comm, answer(came), columns)
    found = np.empty((len(rows), columns), np.int64)
    found[order] = np.concatenate([np.zeros((0, columns), np.int64), *(back[r] for r in sorted(back))])
    return found


def one_by_one(answer: Callable[[np.ndarray], Any]) -> Callable[[Came], Came]:
    """An answer to rows of all ranks from one to rows."""
    return lambda came: {r: answer(rows) for r, rows in came.items()}
