"""The whole programs of `test_meshdata_programs.py` with another constructor, and what they send.

Nothing else is said: each process makes the whole mesh, and numbers are those of one process.
"""

from __future__ import annotations

import functools
import pathlib
import runpy
import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

DIVIDED = mb.DArray[mb.HostArray]
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
PROGRAMS = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "test_meshdata_programs.py"))


def entries(x):
    return mb.to_numpy(getattr(x, "parent", x))


@functools.cache
def alone(program):
    with mb.distributed.use_communicator(mb.arraytypes.distributed.communicators.Alone()):
        return program(mb.HostArray)


def same(program, tolerance=1e-12):
    np.testing.assert_allclose(program(DIVIDED), alone(program), rtol=0, atol=tolerance)


def poisson(degree, matrix_free, array):
    V, u = PROGRAMS["poisson"](3, degree, lambda x: x[..., 0] + 1, array, matrix_free)
    at = V.evaluate(u, [[0.5, 0.5], [0.2, 0.7]])
    return np.concatenate([entries(u), mb.to_numpy(at)])


POISSON = {(k, free): functools.partial(poisson, k, free) for k in (1, 2, 3) for free in (False, True)}


def poisson_quadratic(comm):
    same(POISSON[2, False])


def poisson_cubic(comm):
    same(POISSON[3, False])


def poisson_without_matrix(comm):
    same(POISSON[1, True])
    same(POISSON[2, True])


def stokes(interleaved, array):
    """(Entries in the order of the fields, so that both storages compare.)"""
    flow = lambda x: np.stack([x[..., 1] * (1 - x[..., 1]), 0 * x[..., 0]], axis=-1)
    W, A, b = PROGRAMS["stokes"](2, flow, interleaved, array)
    w, info = mb.linalg.minres(A, b, rtol=1e-12)
    assert info.converged
    # (An error may be 1e4 times as large as the residual, by the matrix' condition: the rest is solved for.)
    w = w + mb.linalg.minres(A, b - A @ w, rtol=1e-4)[0]
    assert entries(W.join(*W.split(w))).tolist() == entries(w).tolist()
    return np.concatenate([entries(part) for part in W.split(w)])


STOKES = [functools.partial(stokes, interleaved) for interleaved in (False, True)]


def taylor_hood(comm):
    for program in STOKES:
        same(program)
    np.testing.assert_allclose(alone(STOKES[0]), alone(STOKES[1]), rtol=0, atol=1e-12)


def elastic(array):
    B = np.array([[0.3, -0.1], [0.2, 0.5]])
    return entries(PROGRAMS["elastic"](3, lambda x: x @ B.T + 1, array=array)[1])


def elasticity(comm):
    same(elastic)


def gas(array):
    """Three steps in a shock tube, which ends with the same mass."""
    mesh, start = PROGRAMS["tube"](8, 2)
    gas, u = PROGRAMS["Gas"](mesh, array), array(start)
    before = gas.total(u)
    for _ in range(3):
        u, dt = gas.step(u)
    assert abs(gas.total(u) - before)[[0, 3]].max() < 1e-14
    return np.append(entries(u).ravel(), mb.to_numpy(dt))


def finite_volumes(comm):
    same(gas)


def what_is_sent(comm):
    """Ghosts, once there and, when somebody asks, once back, in one message to each neighbour, however often
    is read and added; of a matrix' product once."""
    mesh = md.unit_square(12)
    V = md.space(mesh, "P", 2)
    assemble, multiply, _ = PROGRAMS["poisson_kernels"](V)
    x, corners = mesh.coordinates_in(DIVIDED), mesh.closure("cell", "vertex")
    u, y = V.interpolate(lambda x: x[..., 0], DIVIDED), V.zeros(DIVIDED)

    def action():
        md.loop(mesh.points("cell"), multiply, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))

    def total(of):
        return np.sum(comm.allgather_object((of.messages, of.bytes_sent)), axis=0).tolist()

    action()
    u *= 2
    with mb.count() as there:
        action()
    # (Alone there are no ghosts that could hold.)
    assert md.state_of(u) == md.State(None, comm.size > 1) and md.state_of(y) == md.State("sum", False)
    with mb.count() as again:
        action()
        action()
    with mb.count() as back:
        y.parent.local
    assert md.state_of(y) == md.State(None, False)
    # Cells in runs of equal length: strips, that meet in a row of the square (and a step in it).
    owner = np.repeat(np.arange(comm.size), 288 // comm.size)
    table = V.dofs.table
    holder = np.full(V.tree.size, comm.size)
    np.minimum.at(holder, table.ravel(), np.repeat(owner, table.shape[1]))
    reached = [np.unique(table[owner == r]) for r in range(comm.size)]
    pairs = {(int(q), r) for r in range(comm.size) for q in holder[reached[r]] if q != r}
    ghosts = sum(int((holder[reached[r]] != r).sum()) for r in range(comm.size))
    assert total(there) == total(back) == [len(pairs), 8 * ghosts], (there, back, pairs, ghosts)
    assert total(again) == [0, 0]
    A = md.pattern(V.dofs).matrix(array=DIVIDED)
    with mb.count() as c:
        for _ in range(3):
            md.loop(
                mesh.points("cell"),
                assemble,
                md.READ(x, corners),
                md.INC(A.data, A.dofs),
            )
    assert not c.messages
    A @ u
    with mb.count() as c:
        A @ u
    both = comm.allgather_object((c.messages, c.bytes_sent, len(A.pattern.columns.leaves)))
    messages, sent, columns = np.sum(both, axis=0)
    assert sent == 8 * columns and messages <= 2 * len(pairs), both


def matrices_in_programs(comm):
    """What a compiled function makes, adds to and multiplies by is in its program, with the same messages."""
    mesh = md.unit_square(5, 4)
    V = md.space(mesh, "P", 1)
    cells, corners, pattern = mesh.points("cell"), mesh.closure("cell", "vertex"), md.pattern(V.dofs)
    x = mesh.coordinates_in(DIVIDED)
    k, u = (V.interpolate(f, DIVIDED) for f in (lambda x: 1 + x[..., 0], lambda x: x[..., 1] - 0.3))
    outside = pattern.matrix(array=DIVIDED)

    def element(x, k, A):
        J = np.stack([x[1] - x[0], x[2] - x[0]], axis=1)
        for i in range(3):
            for j in range(3):
                A[i, j] += abs(np.linalg.det(J)) * k[i] * (1 + (i == j)) / 24

    def chain(k, u):
        A = pattern.matrix(array=DIVIDED)
        for scale in (1, 2):  # (of one array ghosts would hold the second time, outside of programs)
            md.loop(cells, element, md.READ(x, corners), md.READ(k * scale, V.dofs), md.INC(A.data, A.dofs))
        y = A @ u
        z = A.T @ (u + y)
        A.data[...] = 0.0
        md.loop(cells, element, md.READ(x, corners), md.READ(k + u, V.dofs), md.INC(A.data, A.dofs))
        return 2 * (A @ z) + y

    def with_one_from_outside(k, u):
        outside.data[...] = 0.0
        md.loop(cells, element, md.READ(x, corners), md.READ(k, V.dofs), md.INC(outside.data, outside.dofs))
        return outside @ u * 2

    def solved(k, u):
        A = pattern.matrix(array=DIVIDED)
        md.loop(cells, element, md.READ(x, corners), md.READ(k, V.dofs), md.INC(A.data, A.dofs))
        b = A @ u
        md.dirichlet(A, b, V.boundary_dofs(), 0.0)
        return mb.linalg.cg(A, b, rtol=1e-12)[0]

    for f in (chain, with_one_from_outside, solved):
        compiled, wanted = mb.compile(f, whole=f is chain), entries(f(k, u))
        for _ in range(3):
            np.testing.assert_allclose(entries(compiled(k, u)), wanted, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(entries(compiled(k * 2, u)), entries(f(k * 2, u)), rtol=1e-9, atol=1e-13)
        if f is chain:
            fresh = k * 1, u * 1  # (of k and u it is known by now that their ghosts hold)
            with mb.count() as eager:
                f(*fresh)
            with mb.count() as counts:
                compiled(k, u)
            assert (counts.messages, counts.bytes_sent) == (eager.messages, eager.bytes_sent), (counts, eager)


CHECKS = {
    f.__name__: f
    for f in (
        poisson_quadratic, poisson_cubic, poisson_without_matrix, taylor_hood, elasticity, finite_volumes,
        what_is_sent,
    )
}  # fmt: skip

# On processes, each of which compiles its kernels. (A process captures one function at a time: ranks that are
# threads of one would wait for each other, as soon as one asks the others something while it captures.)
SOME = (*CHECKS.values(), matrices_in_programs)

if __name__ == "__main__":
    world = mb.distributed.communicator()
    for check in SOME:
        check(world)
    sys.stdout.write(f"fine: {len(SOME)} checks on rank {world.rank} of {world.size}\n")
