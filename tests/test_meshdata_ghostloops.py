"""Loops over parts of a mesh on 1, 2 and 3 ranks: what one process computes, and no message too many."""

import pickle

import numpy as np
import pytest
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

MESH = md.unit_square(5)


def reaction_diffusion(element):
    """K u + M u of a space on triangles, by quadrature: at each cell."""
    points, weights = md.quadrature("triangle", 2 * element.degree)
    values, gradients = element.tabulate(points), element.tabulate(points, 1)
    corners = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])

    def kernel(x, u, y):
        J = x.T @ corners
        inverse, scale = np.linalg.inv(J), abs(np.linalg.det(J))
        for q in range(len(weights)):
            g = gradients[q] @ inverse
            y += weights[q] * scale * (g @ (g.T @ u) + values[q] * (values[q] @ u))

    return kernel


def applied(mesh, cells, degree, forest_of=None, times=2):
    V = md.space(mesh, "P", degree)
    u = V.interpolate(lambda x: np.sin(3 * x[..., 0]) + x[..., 1] ** 2)
    y = V.zeros()
    if forest_of is not None:
        forest = md.part_forest(forest_of[0], V.tree, comm=forest_of[1])
        u, y = md.Ghosted(u.parent, forest, valid=False), md.Ghosted(y.parent, forest)
    kernel = reaction_diffusion(V.element)
    corners = mesh.closure("cell", "vertex")
    for _ in range(times):
        md.loop(cells, kernel, md.READ(mesh.coordinates, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
    return V, y


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(("degree", "overlap"), [(1, 0), (2, 1)])
def test_an_operator_is_the_same_on_parts(ranks, degree, overlap):
    whole, y = applied(MESH, MESH.points("cell"), degree)
    wanted = {tuple(np.round(p, 9)): v for p, v in zip(whole.points, mb.to_numpy(y.parent), strict=True)}
    owner = md.partition(MESH, ranks)

    def check(comm):
        rank = comm.rank
        part = MESH.part(owner, rank, overlap=overlap)
        V, y = applied(part.mesh, part.owned_points("cell"), degree, (part, comm))
        if ranks > 1:
            assert y.state.pending == "sum"
        found = mb.to_numpy(y.data_ro())
        for p, v in zip(V.points, found, strict=True):
            assert abs(wanted[tuple(np.round(p, 9))] - v) < 1e-12

    on_ranks(ranks, check)


def test_contributions_travel_once():
    """INC, INC, INC, READ: one message to the owners, one back."""

    def check(comm):
        rank = comm.rank
        # X20: rank 0 owns V0..V3 and C0..C2, rank 1 owns V4..V6 and C3..C5, with a copy of V3 at the end.
        size, links = (4, ([], [])) if rank == 0 else (4, ([0], [3]))
        forest = md.StarForest(size, *links, comm=comm)
        table = [[0, 1], [1, 2], [2, 3]] if rank == 0 else [[3, 0], [0, 1], [1, 2]]
        cells = md.Points("line", "cell", 3)
        ends = md.Dofs(cells, table, size=4)
        y, z = md.Ghosted(mb.zeros(4), forest), mb.zeros(3)

        def one(y):
            for i in range(2):
                y[i] += 1

        def total(y, z):
            z[0] = y[0] + y[1]

        md.loop(cells, one, md.INC(y, ends))  # (what each point reaches is looked up)
        with mb.count() as counted:
            md.loop(cells, one, md.INC(y, ends))
        assert y.array.tolist() == ([2, 4, 4, 2] if rank == 0 else [4, 4, 2, 2])
        assert not counted.messages
        with mb.count() as counted:
            md.loop(cells, total, md.READ(y, ends), md.WRITE(z))
            md.loop(cells, total, md.READ(y, ends), md.WRITE(z))
        assert counted.messages == 1
        assert y.array.tolist() == ([2, 4, 4, 4] if rank == 0 else [4, 4, 2, 4])
        assert z.tolist() == ([6, 8, 8] if rank == 0 else [8, 8, 6])

    on_ranks(2, check)


DIVIDED = mb.DArray[mb.HostArray]
PLACES = np.random.default_rng(0).random((10, 2))


def one(y):
    for i in range(3):
        y[i] += 1


def first_is(y):
    y[0] = -5.0


def with_some_written(array, overlap=None):
    """(What a loop leaves alone keeps what was to be added to it.)"""
    mesh = MESH if overlap is None else md.part(MESH, overlap=overlap).mesh
    V, cells = md.space(mesh, "P", 1), mesh.points("cell")
    y = V.zeros(array)
    md.loop(cells, one, md.INC(y, V.dofs))
    md.loop(cells, first_is, md.WRITE(y, md.Dofs(cells, V.dofs.table[:, :1], V.dofs.size, tree=V.tree)))
    pending = md.state_of(y).pending if array is DIVIDED else None
    return mb.to_numpy(V.evaluate(y, PLACES)).tolist(), pending


@pytest.mark.parametrize("overlap", [0, 1])
def test_writing_some_entries_forgets_nothing(overlap):
    wanted, _ = with_some_written(mb.HostArray)
    for found, pending in on_ranks(3, lambda _: with_some_written(DIVIDED, overlap)):
        assert found == wanted and pending == "replace"


def test_what_is_read_at_own_points_brings_nothing():
    """Cells have ghosts here, which a loop over own cells does not reach; a write through a map waits."""

    def doubled(c, d, v):
        d[0] = 2 * c
        v[0] = c

    def check(comm):
        part = md.part(MESH, overlap=1)
        V, cells = md.space(part.mesh, "P", 1), part.mesh.points("cell")
        c = part.divided("cell", part.numbers("cell") * 1.0)
        d, v = mb.zeros_like(c), V.zeros(DIVIDED)
        first = md.Dofs(cells, V.dofs.table[:, :1], V.dofs.size, tree=V.tree)

        def loop():
            md.loop(cells, doubled, md.READ(c), md.WRITE(d), md.WRITE(v, first))

        loop()
        c *= 1.0
        with mb.count() as counted:
            loop()
            loop()
        assert not counted.messages and md.state_of(v).pending == "replace" and md.state_of(d).pending is None
        v.local
        assert md.state_of(v) == md.State(None, False)

    on_ranks(3, check)


@pytest.mark.parametrize(("access", "start", "wanted"), [(md.INC, 2.0, 3677.0), (md.MAX_RW, 60.0, 60.0)])
def test_sums_over_all_points_are_joined_once(access, start, wanted):
    def of_all(c, total):
        total[0] = total[0] + c if access is md.INC else c

    def check(comm):
        c, layouts = DIVIDED(np.arange(50.0)), (mb.distributed.Block(0), mb.distributed.Replicated())
        totals = [DIVIDED(np.array([start]), layout=layout) for layout in layouts]
        with mb.count() as counted:
            for total in totals:
                for _ in range(3):
                    md.loop(MESH.points("cell"), of_all, md.READ(c), access(total, whole=True))
        assert not counted.messages and not counted.collectives
        for total in totals:
            with mb.count() as counted:
                assert mb.to_numpy(total).tolist() == [wanted]
            assert counted.collectives == 1

    on_ranks(3, check)


def test_pairs_on_a_divided_mesh():
    def add(x, y):
        y[0] += x[0]

    def program(array, part=None):
        mesh = MESH if part is None else part.mesh
        V = md.space(mesh, "P", 1)
        pairs, vertex, cell = md.pairs(mesh.star("vertex", "cell"))
        x = array(np.arange(50.0)) if part is None else part.divided("cell", part.numbers("cell") * 1.0)
        y = V.zeros(array)
        md.loop(pairs, add, md.READ(x, cell), md.INC(y, md.dofs(vertex, V.tree)))
        return mb.to_numpy(V.evaluate(y, PLACES))

    wanted = program(mb.HostArray)
    for overlap in (0, 1):
        for found in on_ranks(3, lambda _, n=overlap: program(DIVIDED, md.part(MESH, overlap=n))):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_entries_that_points_of_several_processes_read_and_write_are_refused():
    def check(comm):
        part = md.part(MESH, overlap=0)
        V, cells = md.space(part.mesh, "P", 1), part.mesh.points("cell")
        have = comm.allgather_object(set(part.numbers("vertex").tolist()))
        at_all = np.flatnonzero(part.numbers("vertex") == min(set.intersection(*have)))
        one = np.full((cells.size, 1), -1)
        one[0] = at_all  # (here only the first cell reaches it)
        md.loop(cells, first_is, md.RW(V.zeros(DIVIDED), md.Dofs(cells, one, V.dofs.size, tree=V.tree)))

    for error in fails_on_ranks(2, check):
        assert "on several processes, reach one entry of y" in str(error)


def test_a_matrix_over_processes_has_entries_as_any_other():
    V = md.space(MESH, "P", 1)
    assert type(V.interpolate(1.0) - md.pattern(V.dofs).matrix() @ V.zeros()) is type(V.zeros())

    def element(x, K):
        for i in range(3):
            for j in range(3):
                K[i, j] += x[i, 0] + j

    def program(array):
        mesh = md.Mesh(MESH.coordinates, MESH.cells)
        V, x = md.space(mesh, "P", 1), mesh.coordinates_in(array)
        A = md.pattern(V.dofs).matrix(array=array)
        for _ in range(2):
            corners = mesh.closure("cell", "vertex")
            md.loop(mesh.points("cell"), element, md.READ(x, corners), md.INC(A.data, A.dofs))
        A.data *= 2
        A.data[...] = A.data * 1.5 + 1
        moved = mb.adapt(mb.DArray[mb.RefArray] if array is DIVIDED else mb.RefArray, A.data)
        stored = pickle.loads(pickle.dumps(A.data))
        return A.to_scipy().toarray(), *(float(mb.sum(y)) for y in (A.data, moved, stored))

    matrix, *sums = program(mb.HostArray)
    for found, *others in on_ranks(3, lambda _: program(DIVIDED)):
        np.testing.assert_allclose(found, matrix, rtol=1e-14)
        np.testing.assert_allclose(others, sums, rtol=1e-14)
