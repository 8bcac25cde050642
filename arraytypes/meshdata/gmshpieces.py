"""The cells of a gmsh file that each process gets, of which each reads a part of the file's bytes.

Rows of nodes and of elements are read in equal runs. Nodes are found by their tags (`rendezvous`), and numbered
as a reader of the whole file would: those of cells, in the order of the file. Cells go to the processes that
pieces of Hilbert's curve are for, the same that `partition` finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.meshdata.gmshfiles import ELEMENTS, GmshFile
from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.numbering import hilbert_keys
from mirabelle.arraytypes.meshdata.rendezvous import (
    ROWS,
    Came,
    asked,
    one_by_one,
    sent,
    sent_runs,
)
from mirabelle.arraytypes.meshdata.shapes import SHAPES


@dataclass
class Cells:
    """Some cells of a kind: their numbers among all of the kind, the groups of the file, their nodes."""

    numbers: Table
    groups: Table
    nodes: Table


@dataclass
class Pieces:
    """What one process has of a file. Nodes have the numbers that they have in the whole mesh."""

    comm: Communicator
    file: GmshFile
    dim: int
    axes: int  # how many coordinates are kept: planes of space have no last one
    cells: dict[Any, Cells]  # by shape, or by gmsh's kind; all kinds of the file, in its order
    lower: dict[Any, Cells]  # of lower dimensions, in groups
    totals: dict[Any, int]  # how many cells of a kind there are
    starts: Table  # from which number on ranks keep places
    _places: Table = field(repr=False)

    def places(self, numbers: Table) -> Table:
        """Where nodes are. All processes ask together."""
        ranks = np.searchsorted(self.starts, numbers, side="right") - 1
        first = self.starts[self.comm.rank]
        found = asked(
            self.comm,
            ranks,
            numbers[:, None].astype(np.int64),
            one_by_one(lambda rows: self._places[rows[:, 0] - first].view(np.int64)),
            self._places.shape[1],
        )
        return found.view(float)[:, : self.axes]

    def distribute(self, corners: Callable[[Any], int]) -> None:
        """Give cells to the processes that they belong to."""
        keys = self._keys(corners)
        order = np.argsort(keys, kind="stable")  # (of equal ones the first is that of the lower number)
        order = order.astype(index_type(len(order)))
        keys = keys[order]
        total = sum(self.totals.values())
        before = np.cumsum([0, *self.totals.values()]).tolist()
        numbers = [c.numbers + b for c, b in zip(self.cells.values(), before, strict=False)]
        edges = _edges(self.comm, total, keys, np.concatenate(numbers, dtype=index_type(total))[order])
        del keys, numbers
        first = 0
        for cells in self.cells.values():
            count = len(cells.numbers)
            mine = (order >= first) & (order < first + count)
            runs = np.concatenate([[0], np.cumsum(mine)])[edges]
            here = order[mine] - first
            del mine
            for start, stop in itertools.pairwise(runs):
                here[start:stop].sort()  # (ranks have read rising numbers: so they are sorted where they come)
            rows = np.empty((count, 2 + cells.nodes.shape[1]), index_type(max(int(self.starts[-1]), total)))
            columns = [cells.numbers, cells.groups, *cells.nodes.T]
            cells.numbers = cells.groups = cells.nodes = here[:0].copy()
            for j in range(len(columns)):
                rows[:, j] = columns.pop(0)[here]
            first += count
            del here
            rows = sent_runs(self.comm, runs, rows)
            cells.numbers, cells.groups, cells.nodes = rows[:, 0], rows[:, 1], rows[:, 2:]

    def _keys(self, corners: Callable[[Any], int]) -> Table:
        """How far along the curve the midpoints of cells are."""
        given = []
        for kind, cells in self.cells.items():
            table = cells.nodes[:, : corners(kind)]
            wanted = np.unique(table)
            given.append((self.places(wanted), wanted, table))
        here = [(x.min(0), x.max(0)) for x in _middles(given)]
        ends = [e for some in self.comm.allgather_object(_box(here)) for e in some]
        [(low, high)] = _box(ends)
        found = [hilbert_keys(np.ascontiguousarray(x.T), low, high) for x in _middles(given)]
        return np.concatenate([np.zeros(0, np.int64), *found])


def _box(ends: list[tuple[Table, Table]]) -> list[tuple[Table, Table]]:
    """The box around some boxes; of none, none."""
    return [(np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0))] if ends else []


def _middles(given: list[tuple[Table, Table, Table]]) -> Iterator[Table]:
    """The midpoints of cells, some at a time, of places, the numbers that these have, and tables of numbers."""
    for x, wanted, table in given:
        for start in range(0, len(table), ROWS):
            at = np.searchsorted(wanted, table[start : start + ROWS])
            out = x[at[:, 0]]
            for column in at.T[1:]:
                out = out + x[column]
            yield out / table.shape[1]


def read_pieces(file: GmshFile, comm: Communicator, whole: bool) -> Pieces:
    """What each process reads: cells by their corners, or (`whole`) of gmsh's kinds with all nodes."""
    nodes, elements = (sum(b.count for b in blocks) for blocks in (file.nodes, file.elements))
    bounds = np.array([nodes * r // comm.size for r in range(comm.size + 1)])
    first, last = bounds[comm.rank], bounds[comm.rank + 1]
    tags, places = on_all(comm, lambda: file.read_nodes(int(first), int(last)))
    start, stop = (elements * r // comm.size for r in (comm.rank, comm.rank + 1))
    found = on_all(comm, lambda: _elements(file, start, stop, whole))
    ends = comm.allgather_object([(places.min(0), places.max(0))] if len(places) else [])
    [(low, high)] = _box([e for some in ends for e in some])
    known = list(dict.fromkeys(kind for kinds in comm.allgather_object(list(found)) for kind in kinds))
    dims = {kind: _dim(kind) for kind in known}
    dim = max(dims.values(), default=0)
    if not dim:
        shapes = sorted({_shape(kind) for kind in known})
        raise ValueError(f"There are no cells in {file.path.name!r} but {shapes}.")
    none = Cells(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros((0, 0), np.int32))
    cells, lower, totals = {}, {}, {}
    for kind in known:
        width = _width(kind, whole)
        got = found.get(kind, Cells(none.numbers, none.groups, np.zeros((0, width), np.int64)))
        if dims[kind] < dim:
            lower[kind] = got
            continue
        counts = np.cumsum([0, *comm.allgather_object(len(got.nodes))])
        totals[kind] = int(counts[-1])
        got.numbers = np.arange(counts[comm.rank], counts[comm.rank + 1]).astype(index_type(totals[kind]))
        cells[kind] = got
    axes = 3
    while axes > dim and low[axes - 1] == high[axes - 1]:  # files of plane meshes have a z as well
        axes -= 1
    directory = _Directory(comm, file, tags, bounds)
    used, starts = directory.number([c.nodes for c in cells.values()])
    for some in (cells, lower):
        for c in some.values():
            c.nodes = directory.numbers_of(c.nodes)
    return Pieces(comm, file, dim, axes, cells, lower, totals, starts, places[used])


def _elements(file: GmshFile, start: int, stop: int, whole: bool) -> dict[Any, Cells]:
    """Some elements of a file by shape or kind; of lower dimensions those that may be in a group."""
    groups: dict[Any, list[Table]] = {}
    nodes: dict[Any, list[Table]] = {}
    for kind, group, table in file.read_elements(start, stop):
        shape, _ = file.known(kind)
        key = kind if whole else shape
        table = table[:, : _width(key, whole)].astype(np.int64)
        groups.setdefault(key, []).append(group.astype(np.int32))
        nodes.setdefault(key, []).append(table.astype(index_type(int(table.max(initial=0)))))
    none = np.zeros(0, np.int32)
    return {k: Cells(none, np.concatenate(groups.pop(k)), np.concatenate(nodes.pop(k))) for k in list(nodes)}


def _shape(kind: Any) -> str:
    return ELEMENTS[kind][0] if isinstance(kind, int) else kind


def _dim(kind: Any) -> int:
    shape = _shape(kind)
    return SHAPES[shape].dim if shape in SHAPES else 0


def _width(kind: Any, whole: bool) -> int:
    if whole:
        return ELEMENTS[kind][1]
    return SHAPES[kind].vertices if kind in SHAPES else 1


class _Directory:
    """Nodes by their tags: for each range of tags one process knows the nodes' numbers."""

    def __init__(self, comm: Communicator, file: GmshFile, tags: Table, bounds: Table) -> None:
        self.comm, self.file, self.bounds = comm, file, bounds
        ends = [e for e in comm.allgather_object((tags.min(), tags.max()) if len(tags) else None) if e]
        self.low, self.high = min(int(a) for a, _ in ends), max(int(b) for _, b in ends)
        rows = np.stack([tags, bounds[comm.rank] + np.arange(len(tags))], axis=1)
        came = sent(comm, self._home(tags), rows)
        self.tags, self.rows = came[np.argsort(came[:, 0], kind="stable")].T
        on_all(comm, self._check_once)
        self.new = np.full(len(self.tags), -1, np.int64)

    def _home(self, tags: Table) -> Table:
        return np.asarray((tags - self.low) * self.comm.size // (self.high - self.low + 1))

    def _check_once(self) -> None:
        twice = np.flatnonzero(np.diff(self.tags) == 0)
        if len(twice):
            raise self.file.damaged(f"the node {self.tags[twice[0]]} stands there twice")

    def _at(self, tags: Table) -> Table:
        """Where tags stand among those that are known here; -1 is nowhere."""
        at = np.minimum(np.searchsorted(self.tags, tags), max(len(self.tags) - 1, 0))
        return np.where(self.tags[at] == tags, at, -1) if len(self.tags) else np.full(len(tags), -1)

    def _known(self, rows: Table) -> Table:
        """The numbers of nodes with these tags: -1 of those without cells, -2 where there are none."""
        at = self._at(rows[:, 0])
        return np.where(at < 0, -2, self.new[at] if len(self.new) else -2)[:, None]

    def _check(self, missing: Table) -> None:
        if len(missing):
            raise self.file.damaged(f"an element has the node {missing[0]}, and there is none of that number")

    def number(self, tables: list[Table]) -> tuple[Table, Table]:
        """Number the nodes of these tables: which of those read here have numbers, and where ranks begin."""
        comm = self.comm
        wanted = np.unique(np.concatenate([np.unique(t) for t in tables]).astype(np.int64))
        on_all(comm, lambda: self._check_range(wanted))
        came = sent(comm, self._home(wanted), wanted[:, None])[:, 0]
        at = self._at(came)
        on_all(comm, lambda: self._check(came[at < 0]))
        at = np.unique(at)
        readers = np.searchsorted(self.bounds, self.rows[at], side="right") - 1
        first = self.bounds[comm.rank]
        used = np.zeros(self.bounds[comm.rank + 1] - first, bool)
        starts: list[Table] = []

        def numbered(came: Came) -> Came:
            for rows in came.values():
                used[rows[:, 0] - first] = True
            starts.append(np.cumsum([0, *comm.allgather_object(int(used.sum()))]))
            new = starts[0][comm.rank] + np.cumsum(used) - 1
            return {r: new[rows - first] for r, rows in came.items()}

        self.new[at] = asked(comm, readers, self.rows[at][:, None], numbered, 1)[:, 0]
        return used, starts[0]

    def _check_range(self, tags: Table) -> None:
        self._check(tags[(tags < self.low) | (tags > self.high)])

    def numbers_of(self, table: Table) -> Table:
        """The numbers of nodes, -1 of those without one."""
        wanted = np.unique(table).astype(np.int64)
        on_all(self.comm, lambda: self._check_range(wanted))
        new = asked(self.comm, self._home(wanted), wanted[:, None], one_by_one(self._known), 1)[:, 0]
        on_all(self.comm, lambda: self._check(wanted[new == -2]))
        new = new.astype(index_type(int(self.bounds[-1])))
        out = np.empty(table.shape, new.dtype)
        for start in range(0, len(table), ROWS):  # (some rows at a time: for its memory)
            out[start : start + ROWS] = new[np.searchsorted(wanted, table[start : start + ROWS])]
        return out


def _edges(comm: Communicator, total: int, keys: Table, numbers: Table) -> Table:
    """Where the cells of each rank begin: pieces of the curve, of equally many. Here they are in order."""
    firsts = [_first(total, comm.size, rank) for rank in range(1, comm.size)]
    out = [0]
    for key, number in _selected(comm, keys, numbers, firsts):
        start, stop = np.searchsorted(keys, key), np.searchsorted(keys, key, side="right")
        out.append(int(start + np.searchsorted(numbers[start:stop], number)))
    return np.array([*out, len(keys)])


def _first(total: int, ranks: int, rank: int) -> int:
    """How many cells come before those of a rank, where each is where the middle of it lies."""
    at = max(int(rank * total / ranks) - 2, 0)
    while at < total and min(int((at + 0.5) / max(float(total), 1e-300) * ranks), ranks - 1) < rank:
        at += 1
    return at


def _selected(comm: Communicator, keys: Table, numbers: Table, places: list[int]) -> list[tuple[int, int]]:
    """The keys and numbers at places of the list of all of them in order; of this process they are in order."""
    low, high = np.zeros(len(places), np.int64), np.full(len(places), 2**62, np.int64)
    wanted = np.array(places, np.int64)

    def narrow(count: Callable[[Table], Table]) -> None:
        while (low < high).any():
            middle = (low + high) // 2
            below = np.sum(comm.allgather_object(count(middle)), axis=0)  # (as many are at most so large)
            np.copyto(high, middle, where=below > wanted)
            np.copyto(low, middle + 1, where=below <= wanted)

    narrow(lambda at: np.searchsorted(keys, at, side="right"))
    found = low.copy()
    starts, ends = np.searchsorted(keys, found), np.searchsorted(keys, found, side="right")
    wanted -= np.sum(comm.allgather_object(starts), axis=0)
    low[...], high[...] = 0, 2**62
    narrow(
        lambda at: np.array(
            [np.searchsorted(numbers[a:b], n, side="right") for a, b, n in zip(starts, ends, at, strict=True)],
            np.int64,
        )
    )
    return list(zip(found.tolist(), low.tolist(), strict=True))
