"""Poisson's equation assembled over ranks, compared with one process. `CHECKS` are also run on threads."""

from __future__ import annotations

import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

MESH = md.unit_square(5)


def element(x):
    """Stiffness and mass of a triangle."""
    J = (x[1:] - x[0]).T
    g = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]) @ np.linalg.inv(J)
    d = abs(np.linalg.det(J))
    return 0.5 * d * g @ g.T + d / 24


def added(given, K, f):
    """(A short kernel: each process compiles it.)"""
    for i in range(3):
        for j in range(3):
            K[i, j] += given[0, 3 * i + j]
        f[i] += given[0, 3 * i]


def assembled(part, family):
    corners = md.Dofs(
        part.mesh.points("cell"),
        part.mesh.closure("cell", "vertex").target("vertex").table,
        len(part.mesh.points("vertex")),
    )
    local = md.pattern(corners).matrix(array=family)
    f = mb.zeros(corners.size, device=family)
    given = family(np.stack([element(x).ravel() for x in part.mesh.coordinates[corners.table]]))
    own = md.Dofs(corners.source, np.arange(len(given))[:, None], len(given))
    md.loop(part.owned_points(), added, md.READ(given, own), md.INC(local.data, local.dofs), md.INC(f, corners))
    return local, f


def border(x):
    return (np.abs(x - 0.5).max(axis=1) > 0.49).nonzero()[0]


def alone():
    """By one dense matrix, solved directly."""
    a, b = np.zeros((36, 36)), np.zeros(36)
    for cell in MESH.closure("cell", "vertex").target("vertex").table:
        K = element(MESH.coordinates[cell])
        a[np.ix_(cell, cell)] += K
        b[cell] += K[:, 0]
    edge, x = border(MESH.coordinates), MESH.coordinates[:, 0]
    known = np.zeros(36)
    known[edge] = x[edge]
    b -= a @ known
    a[edge], a[:, edge] = 0, 0
    a[edge, edge], b[edge] = 1, known[edge]
    return np.linalg.solve(a, b)


def solved(comm, family=mb.HostArray, symmetric=True):
    """To 1e-12 what one process finds; each turn is counted."""
    part = MESH.part(md.partition(MESH, comm.size), comm.rank)
    local, f = assembled(part, family)
    A = md.DividedMatrix(local, md.part_forest(part, "vertex"))
    b = A.vector(f, "sum")
    edge = border(part.mesh.coordinates)
    md.dirichlet(A, b, edge, part.mesh.coordinates[edge, 0], symmetric=symmetric)
    counts = []
    with mb.count() as c:
        x, info = (mb.linalg.cg if symmetric else mb.linalg.gmres)(
            A, b, rtol=1e-13, callback=lambda *_: counts.append((c.messages, c.bytes_sent, c.collectives))
        )
    assert info.converged and A.shape == (36, 36)
    here = mb.to_numpy(A.with_ghosts(x))
    np.testing.assert_allclose(here, alone()[part.numbers("vertex")], rtol=0, atol=1e-12)
    return A, np.diff(counts, axis=0)


def messages_are_those_of_the_borders(comm):
    """A turn is two reductions, and each copy comes once and its contribution goes once."""
    A, counts = solved(comm)
    messages, sent, collectives = counts[:10].T
    assert (collectives == (2 if comm.size > 1 else 0)).all(), collectives
    assert (messages <= 2 * len(A.forest.neighbours)).all(), messages
    assert len(set(sent.tolist())) == 1
    both = comm.allgather_object((int(sent[0]), len(A.forest.leaves)))
    assert sum(s for s, _ in both) == 2 * 8 * sum(n for _, n in both), both


def rows_alone(comm):
    solved(comm, symmetric=False)


CHECKS = {f.__name__: f for f in (messages_are_those_of_the_borders, rows_alone)}

if __name__ == "__main__":
    world = mb.communicator()
    for check in CHECKS.values():
        check(world)
    sys.stdout.write(f"fine: {len(CHECKS)} checks on rank {world.rank} of {world.size}\n")
