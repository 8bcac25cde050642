"""Patterns of matrices over processes: rows belong to the processes that own them.

The cells of a process add to entries in rows of others as well. Those have a place of their own here, behind
the own rows, and are copies of the entries at the owner: a star forest of entries. The owner's rows have all
columns that any process' cells add to; those that are others' follow its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.meshdata.divisions import Entries, division_of, entries_by
from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.forestlinks import by_rank, swapped
from mirabelle.arraytypes.meshdata.forests import StarForest
from mirabelle.arraytypes.meshdata.patterns import found
from mirabelle.arraytypes.meshdata.sharedmeshes import SharedEntries, owners, pattern_entries


class DividedPattern:
    """The pattern of a matrix over processes. `md.pattern(dofs)` of a divided mesh makes it for `DArray`s.

    `indptr` and `indices` are of the rows that this process owns. Columns are numbered as the entries of
    `columns`: own ones first, then those of others, of which `wide` has the numbers in the whole matrix.
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = (
        "__weakref__",
        "_placed",
        "column_entries",
        "columns",
        "dofs",
        "entries",
        "forest",
        "ghosts",
        "indices",
        "indptr",
        "nnz",
        "row_entries",
        "shape",
        "size",
        "wide",
    )  # fmt: skip

    def __init__(self, rows: tuple[Any, ...], columns: tuple[Any, ...]) -> None:
        down = entries_of(rows)
        across = down if columns is rows else entries_of(columns)
        pairs = on_all(
            down.forest.comm, lambda: [_numbered(r, c, down, across) for r, c in _pairs(rows, columns)]
        )
        self.row_entries, self.column_entries = down, across
        sent, owners = _in_rows_of_others(pairs, down, across)
        asked = swapped(down.forest.comm, by_rank(owners, sent), 2)
        came = np.concatenate([np.zeros((0, 2), np.int64), *[asked[r] for r in sorted(asked)]])
        own, others, wide = _columns(came[:, 1], across)
        tables = [*pairs, ((came[:, :1] - down.start), own[:, None])]
        width = across.reach + others
        indptr, indices, slots = found(tables, down.reach, width)
        self.size, self.nnz = len(indices), int(indptr[down.count])
        self.forest = self._entry_forest(asked, slots[-1][:, 0, 0], owners)
        self.entries = entries_by(self.forest)
        self.dofs = tuple(_dofs(r, slot, self.forest) for r, slot in zip(rows, slots, strict=False))
        if isinstance(down, SharedEntries):
            for table in self.dofs:  # (loops run at own points only)
                table.shared = {}
        self.indptr, self.indices, self.wide = _of_own_rows(indptr, indices, down, across, wide)
        starts = np.cumsum([0, *across.counts])
        owns = np.searchsorted(starts, self.wide, side="right") - 1
        size = across.count + len(self.wide)
        self.columns = StarForest(size, owns, self.wide - starts[owns], comm=across.forest.comm)
        self.shape = down.size, across.size
        self._placed: dict[Any, Any] = {}

    def _entry_forest(self, asked: dict[int, Any], places: np.ndarray, owners: np.ndarray) -> StarForest:
        """Entries in rows of others are copies of those that the owners say."""
        comm, at, answers = self.row_entries.forest.comm, 0, {}
        for r in sorted(asked):
            answers[r] = places[at : at + len(asked[r])].astype(np.int64)[:, None]
            at += len(asked[r])
        came = swapped(comm, answers, 1)
        roots = np.concatenate([np.zeros(0, np.int64), *[came[r][:, 0] for r in sorted(came)]])
        return StarForest(self.size, owners, roots, comm=comm)

    def on(self, family: Any) -> tuple[Any, Any]:
        """The columns, and where rows begin, in the memory of an array type's place: sent once."""
        if family not in self._placed:
            self._placed[family] = tuple(asarray(x, device=family) for x in (self.indices, self.indptr))
        return self._placed[family]  # type: ignore[no-any-return]

    def matrix(self, dtype: Any, array: Any) -> Any:
        """A matrix of zeros, in distributed arrays of a type."""
        from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix

        return DividedMatrix(self, self.entries.made(array, 0, dtype))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"DividedPattern({rows} x {columns}, {self.nnz} entries in {self.row_entries.count} rows here)"


def entries_of(tables: Any) -> Entries:
    """Which process owns what tables lead to."""
    dofs = tables[0]
    if isinstance(dofs, Dofs) and dofs.forest is not None:
        return entries_by(dofs.forest)
    division, tree = division_of(dofs.source), getattr(dofs, "tree", None)
    to = getattr(dofs, "component", None)
    shared = pattern_entries(tables)
    if shared is not None:
        return shared
    if division is None or (tree is None and to is None):
        raise ValueError(
            "A matrix over processes is made of the degrees of freedom of a mesh, "
            '`md.space(mesh, "P", 1).dofs`, or of a table with a forest, '
            f"`md.Dofs(..., forest=forest)`; {dofs!r} is neither. A matrix of this process alone is made with "
            "its own arrays, `matrix(array=mb.HostArray)`."
        )
    return division.entries(to if tree is None else tree)  # type: ignore[no-any-return]


def _pairs(rows: tuple[Any, ...], columns: tuple[Any, ...]) -> Any:
    return zip(rows, columns, strict=True)


def _numbered(r: Any, c: Any, down: Entries, across: Entries) -> tuple[np.ndarray, np.ndarray]:
    """Tables of single entries, own ones first; of points of others, whose cells these add to, nothing."""
    made = []
    for dofs, entries in ((r, down), (c, across)):
        size = int(np.prod(dofs.block, dtype=np.int64))
        if dofs.size * size != entries.forest.size:
            raise ValueError(
                f"The table leads into {dofs.size * size} entries, and the forest is of {entries.forest.size}: "
                "one says which of the others' are copies."
            )
        table = np.asarray(dofs.table)
        flat = (table[:, :, None].astype(np.int64) * size + np.arange(size)).reshape(
            len(table), table.shape[1] * size
        )
        there = np.repeat(table >= 0, size, axis=1)
        division = division_of(dofs.source)
        if division is not None:
            there[~division.mine(dofs.source)] = False
        elif isinstance(entries, SharedEntries):
            comm = entries.forest.comm
            there &= (owners(dofs.source, comm.size) == comm.rank)[:, None]
        made.append(np.where(there, entries.numbers[flat], -1))
    return made[0], made[1]


def _in_rows_of_others(pairs: Any, down: Entries, across: Entries) -> tuple[np.ndarray, np.ndarray]:
    """The entries in rows of others, as numbers of the whole matrix, row by row; and who owns them."""
    forest = down.forest
    border = []
    for r, c in pairs:
        ghosts = np.where(r >= down.count, r - down.count, -1)
        some = (ghosts >= 0).any(axis=1)
        border.append((ghosts[some], c[some]))
    indptr, indices, _ = found(border, len(forest.leaves), across.reach)
    row = np.repeat(np.arange(len(forest.leaves)), np.diff(indptr))
    wide, here = np.empty(across.reach, np.int64), across.numbers >= 0
    wide[across.numbers[here]] = across.wide[here]
    return np.stack([down.wide[forest.leaves][row], wide[indices]], axis=1), forest.owners[row]


def _columns(asked: np.ndarray, across: Entries) -> tuple[np.ndarray, int, np.ndarray]:
    """Columns that others add to, by the numbers here; how many are new; and all that are not own, widely."""
    known = across.wide[across.forest.leaves]
    own = (asked >= across.start) & (asked < across.start + across.count)
    new = np.setdiff1d(asked[~own], known)
    wide = np.concatenate([known, new])
    order = np.argsort(wide)
    number = asked - across.start
    number[~own] = across.count + order[np.searchsorted(wide, asked[~own], sorter=order)]
    return number, len(new), wide


def _of_own_rows(
    indptr: np.ndarray, indices: np.ndarray, down: Entries, across: Entries, wide: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own rows alone, with those columns of others that they have."""
    indptr = indptr[: down.count + 1]
    indices = indices[: int(indptr[-1])]
    away = indices >= across.count
    used = np.unique(indices[away])
    order = np.argsort(wide[used - across.count])
    place = np.empty(len(used), indices.dtype)
    place[order] = np.arange(len(used), dtype=indices.dtype)
    made = indices.copy()
    made[away] = across.count + place[np.searchsorted(used, indices[away])]
    return indptr.copy(), made, wide[used - across.count][order]


def _dofs(r: Any, slot: np.ndarray, forest: StarForest) -> Dofs:
    table = slot.reshape(len(slot), math.prod(slot.shape[1:]))
    return Dofs(r.source, table, forest.size, local=slot.shape[1:], forest=forest)
