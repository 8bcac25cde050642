"""Entities by what they reach: nothing that other processes have copies of, such entries, or ghosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.meshdata.forests import StarForest
from mirabelle.arraytypes.meshdata.ghoststates import TOUCHED

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike
    from mirabelle.arraytypes.meshdata.annotations import Tables


@dataclasses.dataclass(frozen=True)
class EntityClasses:
    """The numbers of entities that are computed at once (`core`), after `roots()`, and after `end()`.

    `touched` is how far the loop reaches on any of the processes: "core", "owned" or "ghosts".

    >>> from mirabelle import meshdata as md
    >>> found = md.classify([[0, 1], [1, 2]], 2, [])
    >>> found, found.core.tolist(), found.touched
    (<1 core, 0 root and 1 leaf entities>, [0], 'ghosts')
    """

    core: np.ndarray
    root: np.ndarray
    leaf: np.ndarray
    touched: str

    def __repr__(self) -> str:
        return f"<{len(self.core)} core, {len(self.root)} root and {len(self.leaf)} leaf entities>"


EntityClasses.__module__ = "mirabelle.meshdata"


def classify(
    tables: Tables | Sequence[Tables],
    owned: int | StarForest | Sequence[int | StarForest],
    roots: ArrayLike | None = None,
    *,
    comm: Communicator | None = None,
) -> EntityClasses:
    """Divide entities by the entries that they reach through tables. All processes call it together.

    A table has a row of entries for each entity (-1: nothing), or is ragged, `(rowptr, values)`; a list of
    tables is one for each argument. `owned` is the forest of the entries; or how many entries are owned, those
    after them being ghosts, and `roots` are those of which others have copies. Of several tables they may be
    lists.

    Parameters
    ----------
    tables : int array, pair, or list of these
        The entries that each entity reaches: a row for each, or `(rowptr, values)`.
    owned : int, StarForest, or list of these
        How many entries this process owns, or their forest.
    roots : int array or None
        The owned entries of which other processes have copies; a forest knows them.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    mb.meshdata.EntityClasses
        `core`, `root` and `leaf` are int arrays of NumPy's, the numbers of entities; each is in one of
        them. `touched` is how far the loop reaches on any process.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> cells = [[0, 1], [1, 2], [2, 3], [3, 4]]     # entries 0 to 3 are owned, others have copies of 3
    >>> found = md.classify(cells, 4, [3])
    >>> found.core.tolist(), found.root.tolist(), found.leaf.tolist(), found.touched
    ([0, 1], [2], [3], 'ghosts')
    """
    several = isinstance(tables, list) and not _is_row(tables[:1])
    given: list[Any] = list(tables) if several else [tables]  # type: ignore[arg-type]
    forests = owned if isinstance(owned, (list, tuple)) else [owned] * len(given)
    if comm is None:
        first = next((f for f in forests if isinstance(f, StarForest)), None)
        comm = communicator() if first is None else first.comm
    classes = on_all(comm, lambda: _classes(given, forests, _each(roots, len(given))))
    most = max(comm.allgather_object(int(classes.max(initial=0))))
    core, root, leaf = (np.flatnonzero(classes == c) for c in range(3))
    return EntityClasses(core, root, leaf, TOUCHED[most])


def _each(roots: Any, count: int) -> list[Any]:
    """The roots for each of so many tables."""
    if isinstance(roots, (list, tuple)) and any(not np.isscalar(r) for r in roots):
        return list(roots)
    return [roots] * count


def _is_row(rows: Any) -> bool:
    """Is it (the beginning of) a table given by nested lists, and no list of tables?"""
    try:
        return np.asarray(rows).ndim <= 2 and not (rows and isinstance(rows[0], (np.ndarray, tuple)))
    except ValueError:
        return False


def _classes(tables: list[Any], owned: Any, roots: list[Any]) -> np.ndarray:
    """Of each entity the greatest class of what it reaches: 0, 1 or 2."""
    if not tables or not len(tables) == len(owned) == len(roots):
        raise ValueError(
            f"For {len(tables)} tables there are {len(owned)} numbers of owned entries (or forests) and "
            f"{len(roots)} lists of roots: give one for all, or one for each."
        )
    found: np.ndarray | None = None
    for table, has, shared in zip(tables, owned, roots, strict=True):
        rows = _of_rows(table, has, shared)
        if found is not None and len(rows) != len(found):
            raise ValueError(
                f"Tables are of {len(found)} entities and of {len(rows)}: one loop is over the same."
            )
        found = rows if found is None else np.maximum(found, rows)
    assert found is not None
    return found


def _of_rows(table: Any, owned: Any, roots: Any) -> np.ndarray:
    rowptr: np.ndarray | None = None
    if isinstance(table, tuple):
        rowptr, values = (np.asarray(x) for x in table)
    else:
        values = np.asarray(table)
        if values.ndim != 2:
            raise ValueError(f"A table has a row for each entity, and this one has shape {values.shape}.")
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"Tables are of integers, and this one is of {values.dtype}.")
    highest = int(values.max(initial=-1))
    if int(values.min(initial=0)) < -1:
        raise IndexError(
            f"The table leads to entry {values.min()}: entries are numbered from 0, and -1 is nothing."
        )
    labels = _labels(owned, roots, highest)
    if rowptr is None:
        return labels[values].max(axis=1, initial=0)  # type: ignore[no-any-return]
    found = np.zeros(len(rowptr) - 1, np.int8)
    filled = np.flatnonzero(np.diff(rowptr) > 0)
    if len(filled):
        found[filled] = np.maximum.reduceat(labels[values], rowptr[filled])
    return found


def _labels(owned: Any, roots: Any, highest: int) -> np.ndarray:
    """Of each entry its class, and at last, where -1 leads, the least."""
    if isinstance(owned, StarForest):
        if highest >= owned.size:
            raise IndexError(f"The table leads to entry {highest}, and the forest is of {owned.size}.")
        return np.append(owned.labels, np.int8(0))
    shared = np.asarray([] if roots is None else roots).astype(np.intp)
    if len(shared) and (shared.min() < 0 or shared.max() >= owned):
        raise IndexError(f"Roots are owned entries, below {owned}, and one of them is {shared.max()}.")
    labels = np.zeros(max(highest + 1, int(owned)) + 1, np.int8)
    labels[shared] = 1
    labels[int(owned) : -1] = 2
    return labels
