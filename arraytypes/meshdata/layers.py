"""Layers of others' cells around those of a process, where no process has the whole mesh."""

from __future__ import annotations

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.meshdata.maps import Table
from mirabelle.arraytypes.meshdata.meshes import Mesh
from mirabelle.arraytypes.meshdata.rendezvous import sent


def with_layers(comm: Communicator, mesh: Mesh, names: Table, layers: int) -> tuple[Mesh, Table]:
    """The mesh with cells that have a vertex in common with those here, once for each layer; and its names.

    Own cells stay the first of each shape. Vertices have the order of their names.
    """
    own = {shape: names[table].astype(np.int64) for shape, table in mesh.cells.items()}
    # Of each vertex one process, which its name chooses, knows in whose cells it is.
    here = np.stack([names, np.full(len(names), comm.rank)], axis=1)
    known = sent(comm, names % comm.size, here)
    known = known[np.argsort(known[:, 0], kind="stable")]
    given = {shape: np.zeros((comm.size, len(table)), bool) for shape, table in own.items()}
    cells = {shape: [table] for shape, table in own.items()}
    places = [(names, mesh.coordinates)]
    reached, new = names, names
    for _ in range(layers):
        asked = _asked(comm, known, new)
        came = [names[:0]]
        for shape, table in own.items():
            wanted = np.zeros_like(given[shape])
            for rank, vertices in asked.items():
                wanted[rank] = np.isin(table, vertices).any(axis=1)
            wanted &= ~given[shape]
            given[shape] |= wanted
            others, x = _cells(comm, mesh, names, shape, wanted)
            cells[shape].append(others)
            places.append((others.ravel(), x.reshape(-1, mesh.coordinates.shape[1])))
            came.append(others.ravel())
        new = np.setdiff1d(np.concatenate(came), reached)
        reached = np.union1d(reached, new)
    found, first = np.unique(np.concatenate([n for n, _ in places]), return_index=True)
    x = np.concatenate([x for _, x in places])[first]
    tables = {shape: np.searchsorted(found, np.concatenate(some)) for shape, some in cells.items()}
    return Mesh(x, tables, inverted="keep"), found


def _asked(comm: Communicator, known: Table, new: Table) -> dict[int, Table]:
    """The vertices at which each other process wants cells of this one."""
    rows = np.stack([new, np.full(len(new), comm.rank)], axis=1)
    wanted = sent(comm, new % comm.size, rows)
    first, last = (np.searchsorted(known[:, 0], wanted[:, 0], side=s) for s in ("left", "right"))
    count = last - first
    again = np.repeat(np.arange(len(wanted)), count)
    within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    holder = known[np.repeat(first, count) + within, 1]
    others = holder != wanted[again, 1]
    came = sent(comm, holder[others], wanted[again[others]])
    return {int(r): came[came[:, 1] == r, 0] for r in np.unique(came[:, 1])}


def _cells(comm: Communicator, mesh: Mesh, names: Table, shape: str, given: Table) -> tuple[Table, Table]:
    """The cells of a shape that others give, by names of vertices, and where these are."""
    ranks, at = np.nonzero(given)
    table = mesh.cells[shape][at]
    width, dim = table.shape[1], mesh.coordinates.shape[1]
    x = np.ascontiguousarray(mesh.coordinates[table].astype(float)).reshape(len(at), width * dim)
    came = sent(comm, ranks, np.concatenate([names[table].astype(np.int64), x.view(np.int64)], axis=1))
    return came[:, :width], np.ascontiguousarray(came[:, width:]).view(float).reshape(len(came), width, dim)
