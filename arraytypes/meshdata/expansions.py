"""From points to degrees of freedom: each link of points becomes the links of the entries under them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.forests import StarForest


def expanded(forest: StarForest, offsets: Any, sizes: Any, block: Any, size: Any) -> StarForest:
    """See `StarForest.expanded`."""
    from mirabelle.arraytypes.meshdata.forests import StarForest

    comm = forest.comm
    starts, lengths, total = on_all(comm, lambda: _runs(forest, offsets, sizes, block, size))
    here = np.concatenate([starts, lengths], axis=1)
    there = np.zeros((forest.size, here.shape[1]), np.int64)
    forest.bcast(here, there)
    leaves = forest.leaves
    columns = starts.shape[1]
    on_all(comm, lambda: _check_sizes(forest, there[leaves, columns:], lengths[leaves]))
    counts = lengths[leaves].reshape(-1)
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    own = np.repeat(starts[leaves].reshape(-1), counts) + inside
    roots = np.repeat(there[leaves, :columns].reshape(-1), counts) + inside
    owners = np.repeat(np.repeat(forest.owners, columns), counts)
    each = np.arange(block)
    own, roots = ((x[:, None] * block + each).reshape(-1) for x in (own, roots))
    return StarForest(total * block, np.repeat(owners, block), roots, own, comm=comm)


def _runs(forest: StarForest, offsets: Any, sizes: Any, block: Any, size: Any) -> tuple[Any, Any, int]:
    """Where the entries of each point begin and how many they are, in columns, and how many there are here."""
    n, rank = forest.size, forest.comm.rank
    if not forest.same_space:
        raise ValueError("Only a forest whose roots and leaves are points of one kind is expanded.")
    if isinstance(block, bool) or not isinstance(block, (int, np.integer)) or block < 1:
        raise ValueError(f"A block is of so many numbers, from 1 on, and not of {block!r}.")
    if offsets is None:
        if sizes is not None:
            counted = np.broadcast_to(np.asarray(sizes), (n,))
            offsets = np.cumsum(counted) - counted
        else:
            offsets = np.arange(n)
    starts = np.asarray(offsets)
    starts = starts[:, None] if starts.ndim == 1 else starts
    if starts.ndim != 2 or len(starts) != n or (starts.size and starts.dtype.kind not in "iu"):
        raise ValueError(
            f"Each of the {n} points of rank {rank} has an offset (or a row of offsets), and these are of "
            f"shape "
            f"{np.shape(offsets)} and dtype {starts.dtype}."
        )
    lengths = np.asarray(1 if sizes is None else sizes)
    lengths = lengths[:, None] if lengths.ndim == 1 else lengths
    if lengths.size and lengths.dtype.kind not in "iu":
        raise TypeError(f"The sizes of points are integers, and these are of dtype {lengths.dtype}.")
    lengths = np.where(starts < 0, 0, np.broadcast_to(lengths, starts.shape)).astype(np.int64)
    starts = np.maximum(starts, 0).astype(np.int64)
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"A point of rank {rank} has {lengths.min()} entries.")
    ends = int((starts + lengths)[lengths > 0].max(initial=0))
    total = ends if size is None else int(size)
    if ends > total:
        raise IndexError(f"Points of rank {rank} have entries up to {ends - 1}, and there are {total}.")
    return starts, lengths, total


def _check_sizes(forest: StarForest, there: np.ndarray, here: np.ndarray) -> None:
    """Has every leaf as many entries as its root?"""
    wrong = np.argwhere(there != here)
    if len(wrong):
        k, column = wrong[0]
        raise ValueError(
            f"Ranks disagree: point {forest.leaves[k]} of rank {forest.comm.rank} has {here[k, column]} "
            f"entries "
            f"and is a copy of point {forest.roots[k]} of rank {forest.owners[k]}, which has "
            f"{there[k, column]}."
        )
