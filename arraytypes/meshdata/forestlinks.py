"""What processes tell each other when a forest is made: rows of integers, by rank."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.meshdata.forestchecks import check_single

_LINKS = marked("links of a star forest")


def swapped(comm: Communicator, rows: Mapping[int, np.ndarray], columns: int) -> dict[int, np.ndarray]:
    """What each rank has for this one: rows of integers, of which the other end does not know how many."""
    counts = comm.allgather_object({r: len(x) for r, x in rows.items() if len(x)})
    came = {
        r: np.empty((said[comm.rank], columns), np.int64) for r, said in enumerate(counts) if comm.rank in said
    }
    sends = {r: np.ascontiguousarray(x, np.int64) for r, x in rows.items() if len(x)}
    own = sends.pop(comm.rank, None)
    receives = {r: x for r, x in came.items() if r != comm.rank}
    if sends or receives:
        comm.exchange(sends, receives, _LINKS)
    if own is not None:
        came[comm.rank] = own
    return came


def by_rank(ranks: np.ndarray, values: np.ndarray) -> dict[int, np.ndarray]:
    """Values by rank, where those of one rank stand together."""
    found, starts = np.unique(ranks, return_index=True)
    ends = [*starts[1:], len(ranks)][: len(found)]
    return {int(r): values[a:b] for r, a, b in zip(found, starts, ends, strict=True)}


def check_owners(comm: Communicator, owned: np.ndarray) -> None:
    """Has every global number one owner? Where ranks own ranges of numbers, their ends say it."""
    ends = comm.allgather_object((int(owned.min()), int(owned.max())) if len(owned) else None)
    ranges = sorted(e for e in ends if e is not None)
    if all(a[1] < b[0] for a, b in itertools.pairwise(ranges)):
        return
    # Else each number is shown to the rank that it belongs to by its remainder.
    by = owned % comm.size
    order = np.argsort(by, kind="stable")
    shown = swapped(comm, by_rank(by[order], owned[order][:, None]), 1)
    on_all(comm, lambda: check_single({r: rows[:, 0] for r, rows in shown.items()}))
