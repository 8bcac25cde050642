"""Matrices over processes: products, Dirichlet rows and solutions are those of one, and no more is sent."""

import numpy as np
import pytest
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

MESH = md.unit_square(6)


def element(x, K, f):
    """Stiffness and mass, and a constant load."""
    J = np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])
    g = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]) @ np.linalg.inv(J)
    L = g @ g.T
    d = abs(np.linalg.det(J))
    for i in range(3):
        f[i] += d / 6
        for j in range(3):
            K[3 * i + j] += 0.5 * d * L[i, j] + d / 24


def assembled(part, family):
    corners = md.Dofs(
        part.mesh.points("cell"),
        part.mesh.closure("cell", "vertex").target("vertex").table,
        len(part.mesh.points("vertex")),
    )
    local = md.pattern(corners).matrix(array=family)
    f = mb.zeros(corners.size, device=family)
    x = family(part.mesh.coordinates)
    md.loop(
        part.owned_points(), element, md.READ(x, corners), md.INC(local.data, local.dofs), md.INC(f, corners)
    )
    return local, f


def border(x):
    return (np.abs(x - 0.5).max(axis=1) > 0.49).nonzero()[0]


def solved(ranks, family=mb.HostArray, symmetric=True):
    """On each rank: the numbers of its vertices, the solution there, and what turns of cg cost."""

    def program(comm):
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
        assert info.converged and A.shape == (49, 49)
        sent = {int(r) for r in A.forest.neighbours}, len(A.forest.leaves)
        here = mb.to_numpy(A.with_ghosts(x))
        return part.numbers("vertex"), here, np.diff(counts, axis=0), sent, part.owned("vertex")

    return on_ranks(ranks, program)


@pytest.fixture(scope="module")
def alone():
    """The same by one process' matrix, solved directly."""
    part = MESH.part(np.zeros(72, int), 0)
    local, f = assembled(part, mb.HostArray)
    a, b = mb.to_numpy(mb.dense(local.csr)), mb.to_numpy(f)
    edge, x = border(MESH.coordinates), MESH.coordinates[:, 0]
    known = np.zeros(49)
    known[edge] = x[edge]
    b -= a @ known
    a[edge], a[:, edge] = 0, 0
    a[edge, edge], b[edge] = 1, known[edge]
    return np.linalg.solve(a, b)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_solutions(ranks, alone):
    """To 1e-12 those of one process; a turn is two reductions, and what stands on borders, both ways."""
    found = solved(ranks)
    leaves = sum(sent[1] for *_, sent, _ in found)
    assert sum(owned for *_, owned in found) == 49
    total = 0
    for numbers, here, counts, (neighbours, _), _ in found:
        np.testing.assert_allclose(here, alone[numbers], rtol=0, atol=1e-12)
        messages, sent, collectives = counts[:10].T
        assert (collectives == (2 if ranks > 1 else 0)).all() and (messages <= 2 * len(neighbours)).all()
        total += sent[0]
    marks_and_all = 2 * 8 * leaves
    assert total == marks_and_all, "each copy comes once, and its contribution goes once"


def test_rows_alone_and_other_types(alone):
    for numbers, here, *_ in (*solved(2, symmetric=False), *solved(2, family=mb.RefArray)):
        np.testing.assert_allclose(here, alone[numbers], rtol=0, atol=1e-11)


def test_products_without_an_order_of_ghosts():
    """Ghosts anywhere among a process' entries."""

    def program(comm):
        if comm.rank == 0:  # entries 0, 1, 2 of the whole are its own; here they are at 0, 2 and 3
            forest = md.StarForest(4, owners=[1], roots=[1], leaves=[1])
            cells, own = [[0, 2], [2, 3], [3, 1]], [0, 2, 3]
        else:
            forest = md.StarForest(2, owners=[], roots=[])
            cells, own = [[1, 0]], [0, 1]
        local = md.pattern(md.Dofs(md.Points("mesh", "cell", len(cells)), cells, forest.size)).matrix()
        local.data[...] = np.arange(local.pattern.nnz) + 1.0
        A = md.DividedMatrix(local, forest)
        x = np.zeros(forest.size)
        x[own] = np.arange(len(own)) + 10 * comm.rank + 1.0
        dense = mb.to_numpy(mb.dense(local.csr))
        return mb.to_numpy(A @ A.vector(mb.HostArray(x))), dense, repr(A)

    (y, dense0, text), (z, dense1, _) = on_ranks(2, program)
    assert np.array_equal(y, z) and text.startswith("DividedMatrix(5 x 5 over 2 processes")
    whole = np.zeros((5, 5))
    places0, places1 = [0, 4, 1, 2], [3, 4]
    whole[np.ix_(places0, places0)] += dense0
    whole[np.ix_(places1, places1)] += dense1
    np.testing.assert_allclose(y, whole @ [1.0, 2.0, 3.0, 11.0, 12.0])


def test_mistakes():
    def wrong_sizes(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        md.DividedMatrix(local, md.StarForest(3 + comm.rank, [], []))

    def a_vector_of_another(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        A = md.DividedMatrix(local, md.StarForest(3, [], []))
        A @ mb.DArray[mb.HostArray](np.ones(5))

    def a_row_outside_on_one(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        A = md.DividedMatrix(local, md.StarForest(3, [], []))
        md.dirichlet(A, A.vector(mb.ones(3)), [3 * comm.rank])

    for program, text in (
        (wrong_sizes, "a row and a column for each entry"),
        (a_vector_of_another, "A.vector"),
        (a_row_outside_on_one, "none of the 3 rows"),
    ):
        assert any(text in str(e) for e in fails_on_ranks(2, program))
