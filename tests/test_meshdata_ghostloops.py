"""Loops over parts of a mesh on 1, 2 and 3 ranks: what one process computes, and no message too many."""

import numpy as np
import pytest
from threadranks import on_ranks

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
