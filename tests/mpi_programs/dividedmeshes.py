"""Whole programs on divided meshes, compared with one process. `CHECKS` are also run on threads.

The programs are the same for one process and for many: what differs is the mesh, and the type of arrays.
"""

from __future__ import annotations

import functools
import os
import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

SQUARE = md.unit_square(5)
# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
DIVIDED = mb.DArray[LOCAL]
PLACES = np.random.default_rng(0).random((12, 2))


def jacobian(x):
    return np.stack([x[1] - x[0], x[2] - x[0]], axis=1)


def given_matrix(given, K):
    """(Matrices that NumPy made: kernels of large elements take long to compile.)"""
    K += given.reshape(K.shape)


def matrices(mesh, degree):
    """Of each triangle its stiffness matrix, (cells, K * K)."""
    element = md.element("P", "triangle", degree)
    at, w = md.quadrature("triangle", 2 * degree)
    slopes = element.tabulate(at, derivatives=1)
    x = mesh.coordinates[mesh.closure("cell", "vertex").target().table]
    J = np.stack([x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]], axis=2)
    g = np.einsum("qia,nab->nqib", slopes, np.linalg.inv(J))
    found = np.einsum("n,q,nqib,nqjb->nij", abs(np.linalg.det(J)), w, g, g)
    return found.reshape(len(found), found.shape[1] ** 2)


def given_load(size, f):
    f += size


@functools.cache
def poisson_kernels(degree):
    element = md.element("P", "triangle", degree)
    at, w = md.quadrature("triangle", 2 * degree)
    phi, slopes = element.tabulate(at), element.tabulate(at, derivatives=1)
    S, means = np.einsum("q,qia,qjb->abij", w, slopes, slopes), w @ phi

    def metric(x):
        inverse = np.linalg.inv(jacobian(x))
        return abs(np.linalg.det(jacobian(x))) * inverse @ inverse.T

    def assemble(x, K, f):
        G = metric(x)
        K += G[0, 0] * S[0, 0] + G[0, 1] * (S[0, 1] + S[1, 0]) + G[1, 1] * S[1, 1]
        f += abs(np.linalg.det(jacobian(x))) * means

    def multiply(x, u, y):
        G = metric(x)
        y += G[0, 0] * (S[0, 0] @ u) + G[0, 1] * ((S[0, 1] + S[1, 0]) @ u) + G[1, 1] * (S[1, 1] @ u)

    return assemble, multiply


def poisson(mesh, degree, array, symmetric=True):
    """-div grad u = 1 with u = x on the boundary, assembled."""
    V, cells, corners = md.space(mesh, "P", degree), mesh.points("cell"), mesh.closure("cell", "vertex")
    A, b = md.pattern(V.dofs).matrix(array=array), V.zeros(array)
    x, assemble = md.READ(mesh.coordinates_in(array), corners), poisson_kernels(degree)[0]
    if degree == 1:
        md.loop(cells, assemble, x, md.INC(A.data, A.dofs), md.INC(b, V.dofs))
    else:
        own = getattr(array, "inner", array)
        md.loop(cells, given_matrix, md.READ(own(matrices(mesh, degree))), md.INC(A.data, A.dofs))
        md.loop(cells, given_load, md.READ(own(mesh.volumes())), md.INC(b, V.dofs))
    edge = V.boundary_dofs()
    md.dirichlet(A, b, edge, V.points[edge, 0], symmetric=symmetric)
    return V, A, b


def without_matrix(mesh, degree, array):
    """The same with u = 0 on the boundary: the operator and the right-hand side."""
    V, cells, corners = md.space(mesh, "P", degree), mesh.points("cell"), mesh.closure("cell", "vertex")
    free = np.ones(V.tree.size)
    free[V.boundary_dofs()] = 0
    inside, b, f = V.function(free, array), V.zeros(array), V.interpolate(1.0, array=array)
    x = md.READ(mesh.coordinates_in(array), corners)
    multiply = poisson_kernels(degree)[1]
    md.loop(
        cells, multiply, x, md.READ(V.interpolate(lambda x: x[..., 0] ** 2, array), V.dofs), md.INC(b, V.dofs)
    )

    def A(u):
        y, held = mb.zeros_like(u), mb.materialize(inside * u)
        md.loop(cells, multiply, x, md.READ(held, V.dofs), md.INC(y, V.dofs))
        return inside * y + (u - held)

    return V, A, mb.materialize(inside * (b + f))


def same(comm, program, overlap=0, mesh=SQUARE, family=DIVIDED, tolerance=1e-12):
    """A program's function of places, on this mesh as a whole and divided."""
    wanted = alone(program, mesh)
    found = program(md.part(mesh, overlap=overlap, comm=comm).mesh, family)
    np.testing.assert_allclose(mb.to_numpy(found), wanted, rtol=0, atol=tolerance)


@functools.cache
def alone(program, mesh):
    with mb.distributed.use_communicator(mb.arraytypes.distributed.communicators.Alone()):
        return mb.to_numpy(program(mesh, LOCAL))


def solved(solver, degree, symmetric=True):
    @functools.wraps(solver)
    def program(mesh, array):
        V, A, b = poisson(mesh, degree, array, symmetric)
        u, info = solver(A, b, rtol=1e-14)
        assert info.converged
        return V.evaluate(u, PLACES)

    return program


LINEAR, QUADRATIC, CUBIC = (solved(mb.linalg.cg, k) for k in (1, 2, 3))
ROWS_ALONE = solved(mb.linalg.gmres, 1, symmetric=False)


def linear(comm):
    same(comm, LINEAR)
    same(comm, LINEAR, overlap=1)


def on_fake_cards(comm):
    same(comm, LINEAR, family=mb.DArray[mb.RefArray])


def quadratic(comm):
    same(comm, QUADRATIC, overlap=1)


def cubic(comm):
    same(comm, CUBIC)


def rows_alone(comm):
    same(comm, ROWS_ALONE)


def matrix_free(mesh, array):
    V, A, b = without_matrix(mesh, 2, array)
    u, info = mb.linalg.cg(A, b, rtol=1e-13)
    assert info.converged
    return V.evaluate(u, PLACES)


def quadratic_without_matrix(comm):
    same(comm, matrix_free)
    same(comm, matrix_free, overlap=2)


# What travels


def turns(A, b):
    """Of each turn of cg the messages, bytes and collectives."""
    counts = []
    with mb.count() as c:
        mb.linalg.cg(
            A, b, rtol=1e-13, callback=lambda *_: counts.append((c.messages, c.bytes_sent, c.collectives))
        )
    return np.diff(counts, axis=0)[:6].T


def a_product_sends_ghosts_once(comm):
    """A turn with a matrix is two reductions, and each entry that rows of others reach is sent once."""
    _, A, b = poisson(md.part(SQUARE, overlap=0, comm=comm).mesh, 2, DIVIDED)
    messages, sent, collectives = turns(A, b)
    assert (collectives == (2 if comm.size > 1 else 0)).all(), collectives
    assert (messages <= len(A.pattern.columns.neighbours)).all(), messages
    both = comm.allgather_object((sent.tolist(), len(A.pattern.columns.leaves)))
    assert np.sum([s for s, _ in both], axis=0).tolist() == [8 * sum(n for _, n in both)] * 6, both


def an_action_sends_ghosts_twice(comm):
    """A turn without one brings the ghosts, and takes back what was added to them."""
    mesh = md.part(SQUARE, overlap=0, comm=comm).mesh
    V, A, b = without_matrix(mesh, 2, DIVIDED)
    forest = mesh.topology.division.entries(V.tree).forest
    messages, sent, _ = turns(A, b)
    assert (messages <= 2 * len(forest.neighbours)).all()
    both = comm.allgather_object((sent.tolist(), len(forest.leaves)))
    assert np.sum([s for s, _ in both], axis=0).tolist() == [2 * 8 * sum(n for _, n in both)] * 6, both


def assembly_sends_entries_once(comm):
    """Several loops add to one matrix: what they added to rows of others travels once, before a product."""
    mesh = md.part(SQUARE, overlap=0, comm=comm).mesh
    V, cells = md.space(mesh, "P", 1), mesh.points("cell")
    A, v = md.pattern(V.dofs).matrix(array=DIVIDED), V.interpolate(1.0, DIVIDED)
    md.loop(cells, ones, md.INC(A.data, A.dofs))
    A @ v
    A.zero()
    with mb.count() as c:
        for _ in range(3):
            md.loop(cells, ones, md.INC(A.data, A.dofs))
    assert not c.messages
    with mb.count() as c:
        y = A @ v
        A @ v
    ghosts = len(A.pattern.forest.leaves), len(A.pattern.columns.leaves)
    both = np.sum(comm.allgather_object((c.bytes_sent, *ghosts)), axis=0)
    assert both[0] == 8 * (both[1] + 2 * both[2])
    assert float(mb.sum(y)) == 3 * 9 * 50


def ones(K):
    K += 1


# Elasticity and Stokes


@functools.cache
def elastic_kernel():
    element = md.element("P", "triangle", 1)
    at, w = md.quadrature("triangle", 1)
    phi, slopes = element.tabulate(at), element.tabulate(at, derivatives=1)

    def forces(x, u, y):
        J = jacobian(x)
        size, inverse = abs(np.linalg.det(J)), np.linalg.inv(J)
        for q in range(len(w)):
            g = slopes[q] @ inverse
            H = u.T @ g
            y += (
                w[q]
                * size
                * (g @ (1.5 * (H[0, 0] + H[1, 1]) * np.eye(2) + H + H.T) + np.outer(phi[q], phi[q]) @ u)
            )

    return forces


def elastic(mesh, array):
    V, corners = md.space(mesh, "P", 1, components=2), mesh.closure("cell", "vertex")
    x = md.READ(mesh.coordinates_in(array), corners)

    def A(u):
        y = mb.zeros_like(u)
        md.loop(mesh.points("cell"), elastic_kernel(), x, md.READ(u, V.dofs), md.INC(y, V.dofs))
        return y

    b = A(V.interpolate(lambda x: np.sin(3 * x), array))
    u, info = mb.linalg.cg(A, b, rtol=1e-14)
    assert info.converged
    return V.evaluate(u, PLACES)


def elasticity(comm):
    same(comm, elastic, mesh=SMALL)


SMALL = md.unit_square(3)


def stokes_matrices(mesh):
    """Of each triangle, linear elements: both components at three nodes, then pressures, held by a little of
    their own Laplacian."""
    x = mesh.coordinates[mesh.closure("cell", "vertex").target().table]
    J = np.stack([x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]], axis=2)
    size = 0.5 * abs(np.linalg.det(J))
    g = np.einsum("ia,nab->nib", [[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], np.linalg.inv(J))
    L = np.einsum("n,nib,njb->nij", size, g, g)
    K = np.zeros((len(x), 9, 9))
    for c in range(2):
        B = (size[:, None] * g[:, :, c] / 3)[:, :, None] * np.ones(3)
        K[:, c:6:2, c:6:2] = L
        K[:, c:6:2, 6:] = -B
        K[:, 6:, c:6:2] = -B.transpose(0, 2, 1)
    K[:, 6:, 6:] = -0.1 * size[:, None, None] * L
    return K.reshape(len(K), 81)


def stokes(mesh, array, interleaved=False):
    V, Q = md.space(mesh, "P", 1, components=2), md.space(mesh, "P", 1)
    W = md.mixed(V, Q, names=("u", "p"), interleaved=interleaved)
    A, b = md.pattern(W.dofs).matrix(array=array), W.zeros(array)
    given = md.READ(getattr(array, "inner", array)(stokes_matrices(mesh)))
    md.loop(mesh.points("cell"), given_matrix, given, md.INC(A.data, A.dofs))
    known = mb.to_numpy(W.interpolate(lambda x: np.cos(3 * x[..., ::-1]), 0.0).parent)
    rows = W.boundary_dofs("u")
    md.dirichlet(A, b, rows, known[rows])
    md.dirichlet(A, b, W.boundary_dofs("p", lambda x: x.sum(axis=-1) == 0), 0.0)
    w, info = mb.linalg.minres(A, b, rtol=1e-13)
    assert info.converged
    parts = W.evaluate(w, "u", PLACES), W.evaluate(w, "p", PLACES)[:, None]
    return mb.concatenate(parts, axis=1)


def flows(comm):
    same(comm, stokes, mesh=SMALL, tolerance=1e-9)
    same(comm, functools.partial(stokes, interleaved=True), mesh=SMALL, tolerance=1e-9)


# Finite volumes: advection, upwind, with steps as long as they may be


def fluxes(x, c, u, r):
    n = np.array([x[1, 1] - x[0, 1], x[0, 0] - x[1, 0]])
    n = n * np.where(n @ (c[1] - c[0]) > 0, 1.0, -1.0)
    speed = n[0] + 0.5 * n[1]
    for k in range(2):
        f = speed * np.where(speed > 0, u[0, k], u[1, k])
        r[0, k] -= f
        r[1, k] += f


def longest(volume, dt):
    dt[0] = np.minimum(dt[0], 0.1 * np.sqrt(volume))


def volumes(mesh, array, part=None):
    """What cells have after some steps, and the sum of the steps' lengths."""

    def given(component, x):
        return array(x) if part is None else part.divided(component, array.inner(x))

    cells, edges = mesh.points("cell"), mesh.points("edge")
    both, sizes = mesh.support("edge").padded(2), given("cell", mesh.volumes())
    inner = edges.subset(mesh.support("edge").target().sizes == 2)
    x, c = (
        md.READ(mesh.coordinates_in(array), mesh.closure("edge", "vertex")),
        given("cell", mesh.midpoints()),
    )
    u, t = given("cell", np.sin(3 * mesh.midpoints())), 0.0
    for _ in range(4):
        r, dt = mb.zeros_like(u), mb.zeros(1, device=array)
        md.loop(cells, longest, md.READ(sizes), md.MIN_WRITE(dt, whole=True))
        md.loop(inner, fluxes, x, md.READ(c, both), md.READ(u, both), md.INC(r, both))
        u, t = mb.materialize(u + dt[0] * r / sizes[:, None]), t + float(mb.min(dt))
    return u, t


def finite_volumes(comm):
    moved = SQUARE.with_coordinates(SQUARE.coordinates**1.2)
    u, t = volumes(moved, LOCAL)
    part = md.part(moved, comm=comm)
    v, s = volumes(part.mesh, DIVIDED, part)
    assert t == s
    here = mb.to_numpy(part.local("cell", v))
    np.testing.assert_allclose(here, mb.to_numpy(u)[part.numbers("cell")], rtol=0, atol=1e-14)


# Where meshes come from


def from_one_process(comm):
    mesh = SQUARE.marked(left=lambda x: x[:, 0] == 0) if comm.rank == comm.size - 1 else None
    part = md.part(mesh, root=comm.size - 1, overlap=1, comm=comm)
    total = comm.allgather_object(part.owned("cell"))
    assert sum(total) == 50 and min(total) > 0 and "left" in part.mesh.markers
    V, A, b = poisson(part.mesh, 1, DIVIDED)
    u, _ = mb.linalg.cg(A, b, rtol=1e-14)
    np.testing.assert_allclose(mb.to_numpy(V.evaluate(u, PLACES)), alone(LINEAR, SQUARE), rtol=0, atol=1e-12)
    assert V.sample(u).shape == (len(part.numbers("cell")), 3)


def from_cells_of_each(comm):
    """Nobody has the mesh: each process has some cells, and the vertices of these by wild numbers."""
    rng = np.random.default_rng(5)
    names = rng.permutation(1000)[: len(SQUARE.coordinates)] * 7
    owner = rng.integers(0, comm.size, 50)
    cells = SQUARE.cells["triangle"][owner == comm.rank]
    some = rng.permutation(np.unique(cells))
    part = md.part_of_cells(SQUARE.coordinates[some], names[cells], names[some], comm=comm)
    assert sorted(part.numbers("vertex").tolist()) == sorted(names[some].tolist())
    for component in SQUARE.shapes:
        total = comm.allgather_object(part.owned(component))
        assert sum(total) == SQUARE.points(component).size
    for degree, program in ((1, LINEAR), (3, CUBIC)):
        V, A, b = poisson(part.mesh, degree, DIVIDED)
        u, _ = mb.linalg.cg(A, b, rtol=1e-14)
        np.testing.assert_allclose(
            mb.to_numpy(V.evaluate(u, PLACES)), alone(program, SQUARE), rtol=0, atol=1e-12
        )


CHECKS = {
    f.__name__: f
    for f in (
        linear, quadratic, cubic, rows_alone, quadratic_without_matrix, a_product_sends_ghosts_once,
        an_action_sends_ghosts_twice, assembly_sends_entries_once, elasticity, flows, finite_volumes,
        from_one_process, from_cells_of_each,
    )
}  # fmt: skip

# On processes, each of which compiles its kernels.
SOME = (linear, on_fake_cards, assembly_sends_entries_once, finite_volumes, from_one_process)

if __name__ == "__main__":
    world = mb.distributed.communicator()
    for check in SOME:
        check(world)
    sys.stdout.write(f"fine: {len(SOME)} checks on rank {world.rank} of {world.size}\n")
