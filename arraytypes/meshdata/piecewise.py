"""Parts of a mesh that no process has as a whole: each gives its own cells, and finds what it shares.

Points are known by the numbers of their vertices. For each such name one process, which the numbers choose, is
told who has it; it answers who owns it (the lowest rank) and in how many cells it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.meshdata.checking import GivenTwiceError
from mirabelle.arraytypes.meshdata.entities import distinct
from mirabelle.arraytypes.meshdata.layers import with_layers
from mirabelle.arraytypes.meshdata.maps import Map, Table
from mirabelle.arraytypes.meshdata.meshes import Mesh
from mirabelle.arraytypes.meshdata.parting import Part, known_to_others, local_mesh
from mirabelle.arraytypes.meshdata.rendezvous import Came, asked, one_by_one


def part_of_cells(
    coordinates: npt.ArrayLike,
    cells: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    vertices: npt.ArrayLike,
    *,
    overlap: int = 0,
    inverted: str = "error",
    comm: Communicator | None = None,
) -> Part:
    """This process' part of a mesh, of the cells that it gives: no process needs to have the mesh.

    `vertices` are the numbers that all processes know vertices by, of the rows of `coordinates`, and `cells`
    the vertices of cells by these numbers (or a dictionary of tables by shape, the same shapes on all
    processes). Each cell is given by one process; `overlap` layers of others' cells around its own are added.

    Parameters
    ----------
    coordinates : array (n, dim)
        Where the vertices of these cells are.
    cells : int array, or mapping of str to int arrays
        The vertices of each cell by the numbers that all processes know.
    vertices : int array (n,)
        These numbers, of the rows of `coordinates`.
    overlap : int, default 0
        How many layers of others' cells a part has.
    inverted : {"error", "flip", "keep"}, default "error"
        What is done about cells of negative volume.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    mb.meshdata.Part
        It has this process's `mesh` and its `rank`; `numbers(component)` are the numbers of its points in
        the whole mesh.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> part = md.part_of_cells([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[20, 10, 30]], [20, 10, 30])
    >>> part
    Part(rank 0: 1 of 1 cell, 3 of 3 edges, 3 of 3 vertices are its own)
    """
    comm = communicator() if comm is None else comm
    mesh, names = on_all(comm, lambda: _here(coordinates, cells, vertices, inverted))
    said = comm.allgather_object((mesh.shapes, mesh.coordinates.shape[1]))
    if any(s != said[0] for s in said):  # (all find the same)
        raise ValueError(
            f"Processes give cells of {', '.join(sorted({str(s) for s in said}))}: tables of the same shapes, "
            "of no rows where there are none, and coordinates of as many dimensions."
        )
    if isinstance(overlap, bool) or not isinstance(overlap, (int, np.integer)) or overlap < 0:
        raise ValueError(f"An overlap is a number of layers of cells, 0 or more, and not {overlap!r}.")
    own = {shape: len(table) for shape, table in mesh.cells.items()}
    if overlap and comm.size > 1:
        mesh, names = with_layers(comm, mesh, names, overlap)
    return known_to_others(_divided(comm, mesh, names, own), comm)


def _divided(comm: Communicator, mesh: Mesh, names: Table, own: dict[str, int]) -> Part:
    """The part of a process that has these cells, of which the first of each shape are its own."""
    topology = mesh.topology
    mine = _of_own_cells(mesh, own)
    alone = all(comm.allgather_object(all(m.all() for m in mine.values())))
    met = _shared(mesh) if alone else {c: np.arange(topology.size(c)) for c in topology.shapes}
    keys = {c: _keys(mesh, c, names, rows) for c, rows in met.items()}
    count = {c: m.astype(np.int64) for c, m in mine.items()} | _facet_cells(mesh, own)
    owners = {c: np.full(topology.size(c), comm.rank) for c in met}
    for c, rows in met.items():
        owners[c][rows], count[c][rows] = _met(comm, keys[c], count[c][rows], mine[c][rows])
    for c in topology.components(topology.dim):
        on_all(comm, partial(_check_once, c, keys[c][count[c] > 1]))
    for c in topology.components(topology.dim - 1) if mesh.dim == mesh.coordinates.shape[1] else ():
        on_all(comm, partial(_check_facets, c, _keys(mesh, c, names, np.flatnonzero(count[c] > 2))))
    # What lies on the boundary is what lies on a facet that is in one cell, of whichever process.
    topology.__dict__["facet_cells"] = {c: count[c] for c in topology.components(topology.dim - 1)}
    topology._exterior.clear()
    for c, rows in met.items():
        outside = topology.exterior(c)
        outside[rows] = _met(comm, keys[c], outside[rows].astype(np.int64), mine[c][rows])[1] > 0
        topology._exterior[c] = outside
    return _part(comm, mesh, names, met, keys, owners)


def _of_own_cells(mesh: Mesh, own: dict[str, int]) -> dict[str, Table]:
    """Which points of each component belong to own cells."""
    topology = mesh.topology
    if all(own[shape] == len(table) for shape, table in mesh.cells.items()):
        return {c: np.ones(topology.size(c), bool) for c in topology.shapes}
    out = {c: np.zeros(topology.size(c), bool) for c in topology.shapes}
    for cell in topology.components(topology.dim):
        count = own[mesh.shapes[cell]]
        for c, m in out.items():
            down = topology.incidence(cell, c)
            if down is not None:
                m[_table(down)[:count].ravel()] = True
    return out


def _table(down: Map) -> Table:
    table = down.target().table
    assert table is not None
    return table


def _facet_cells(mesh: Mesh, own: dict[str, int]) -> dict[str, Table]:
    """How many own cells each facet has."""
    topology = mesh.topology
    out = {c: np.zeros(topology.size(c), np.int64) for c in topology.components(topology.dim - 1)}
    for cell in topology.components(topology.dim):
        for c, count in out.items():
            down = topology.incidence(cell, c)
            if down is not None:
                here = _table(down)[: own[mesh.shapes[cell]]]
                count += np.bincount(here.ravel(), minlength=len(count))
    return out


def _shared(mesh: Mesh) -> dict[str, Table]:
    """Which points other processes may have, too: of cells all, as each is to be given once.

    In space filled by cells these are points on facets that have one cell here.
    """
    topology, filled = mesh.topology, mesh.dim == mesh.coordinates.shape[1]
    cells = topology.components(topology.dim)
    return {
        c: np.flatnonzero(topology.exterior(c)) if filled and c not in cells else np.arange(topology.size(c))
        for c in topology.shapes
    }


def _here(coordinates: Any, cells: Any, vertices: Any, inverted: str) -> tuple[Mesh, Table]:
    """The mesh of the cells given, its vertices by rising numbers, and these numbers."""
    given = cells if isinstance(cells, Mapping) else {None: cells}
    tables = {shape: np.asarray(table) for shape, table in given.items()}
    names, rows = np.unique(np.asarray(vertices), return_index=True)
    if len(names) != len(vertices) or len(vertices) != len(coordinates) or (names.size and names[0] < 0):
        raise ValueError(
            f"There are {len(coordinates)} rows of coordinates and {len(vertices)} numbers of vertices: one "
            "for each, none negative, and each once."
        )
    used = np.unique(np.concatenate([t.ravel() for t in tables.values()])).astype(np.int64)
    at = np.searchsorted(names, used)
    if used.size and (not names.size or (names[np.minimum(at, len(names) - 1)] != used).any()):
        raise ValueError(
            "A cell has a vertex that is none of those given: cells are given by the numbers in `vertices`."
        )
    x = np.asarray(coordinates)[rows[at]] if used.size else np.asarray(coordinates)[:0]
    own: Any = {shape: np.searchsorted(used, t).reshape(t.shape) for shape, t in tables.items()}
    return Mesh(x, own[None] if list(own) == [None] else own, inverted=inverted), used


def _keys(mesh: Mesh, component: str, names: Table, rows: Table) -> Table:
    """What points of a component are known by: the numbers of their vertices, rising."""
    shape = mesh.topology.shapes[component]
    if shape is None:
        return names[rows, None]
    return np.sort(names[mesh.topology.entity_vertices(shape.dim, shape.name)[rows]], axis=1)


def _met(comm: Communicator, keys: Table, marks: Table, mine: Table) -> tuple[Table, Table]:
    """Of each point the lowest rank that has it in a cell of its own, and the sum of the marks that it has."""
    rows = np.concatenate([keys, marks[:, None], np.where(mine, comm.rank, comm.size)[:, None]], axis=1)
    found = asked(comm, keys[:, 0] % comm.size, rows, lambda came: _joined(comm.size, came), 2)
    return found[:, 0], found[:, 1]


def _joined(size: int, came: Came) -> Came:
    """Of rows of a key, a mark and a rank, for each key the lowest rank and the sum of the marks."""
    if not came:
        return {}
    whole = np.concatenate([came[r] for r in sorted(came)])
    tuples, number = distinct(list(whole[:, :-2].T), int(whole[:, :-2].max(initial=0)) + 1)
    lowest, total = np.full(len(tuples), size), np.zeros(len(tuples), np.int64)
    np.minimum.at(lowest, number, whole[:, -1])
    np.add.at(total, number, whole[:, -2])
    both = np.split(np.stack([lowest, total], axis=1)[number], np.cumsum([len(came[r]) for r in sorted(came)]))
    return dict(zip(sorted(came), both, strict=False))


def _check_once(component: str, twice: Table) -> None:
    if len(twice):
        raise GivenTwiceError(
            f"A {component} is given twice: that of the vertices {twice[0].tolist()}. Each cell is given by "
            "one process; others have it as a neighbour where they need one."
        )


def _check_facets(component: str, many: Table) -> None:
    if len(many):
        raise ValueError(
            f"{len(many)} facets have more than two cells, so that cells overlap; the first is the {component} "
            f"of the vertices {many[0].tolist()}. Leave out the cells that are too many."
        )


def _part(
    comm: Communicator,
    mesh: Mesh,
    names: Table,
    met: dict[str, Table],
    keys: dict[str, Table],
    owners: dict[str, Table],
) -> Part:
    numbers, ghosts, order, local, owned = {}, {}, {}, {}, {}
    for c, owner in owners.items():
        own, others = np.flatnonzero(owner == comm.rank), np.flatnonzero(owner != comm.rank)
        others = others[np.argsort(owner[others], kind="stable")]
        order[c] = np.concatenate([own, others])
        owned[c] = len(own)
        local[c] = np.empty(len(owner), np.int64)
        local[c][order[c]] = np.arange(len(owner))
        mine = owner[met[c]] == comm.rank  # (what others ask for is among what they may have, too)
        place = np.empty(len(owner), np.int64)
        place[met[c]] = np.arange(len(met[c]))
        at = _positions(comm, keys[c][mine], local[c][met[c][mine]], owner[others], keys[c][place[others]])
        ghosts[c] = owner[others].astype(np.int32), at
        starts = np.cumsum([0, *comm.allgather_object(len(own))])
        numbers[c] = np.concatenate([starts[comm.rank] + np.arange(len(own)), starts[owner[others]] + at])
    numbers["vertex"] = names[order["vertex"]]
    return Part(local_mesh(mesh, order, local, owned), comm.rank, numbers, ghosts)


def _positions(comm: Communicator, own: Table, numbers: Table, owners: Table, keys: Table) -> Table:
    """The number of each point of others among those of its owner, who knows `numbers` of `own` keys."""

    def answer(wanted: Table) -> Table:
        both = np.concatenate([own, wanted])
        _, at = distinct(list(both.T), int(both.max(initial=0)) + 1)
        found = np.empty(len(both), np.int64)
        found[at[: len(own)]] = numbers
        return found[at[len(own) :]][:, None]

    return asked(comm, owners, keys, one_by_one(answer), 1)[:, 0]
