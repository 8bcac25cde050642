"""Spaces: their numbers on the mesh of two triangles, and what they promise on meshes seen from every side.

The cells of scrambled meshes have their vertices in a random order each, and vertices random numbers: every way
in which two cells can see the edge or face between them occurs.
"""

import doctest
import pickle
import re
import sys
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.referencecells import reference_cell

SPACES = [
    *(("interval", "P", k) for k in (1, 2, 3, 4)),
    *(("triangle", "P", k) for k in (1, 2, 3, 4, 5)),
    *(("tetrahedron", "P", k) for k in (1, 2, 3, 4, 5)),
    *(("quadrilateral", "Q", k) for k in (1, 2, 3, 4)),
    *(("hexahedron", "Q", k) for k in (1, 2, 3)),
    ("triangle", "DP", 0),
    ("triangle", "DP", 2),
    ("tetrahedron", "DP", 3),
]
ONE = {"interval": lambda n: md.interval(n), "tetrahedron": md.unit_cube, "hexahedron": md.unit_cube}


@cache
def symmetries(shape):
    """The orders in which the vertices of a cell can be listed."""
    x = reference_cell(shape).vertices
    n, dim = x.shape
    if n == dim + 1:
        return list(permutations(range(n)))
    found = []
    for axes, flips in product(permutations(range(dim)), product((False, True), repeat=dim)):
        moved = np.where(flips, 1 - x[:, axes], x[:, axes])
        found.append([int(np.flatnonzero((x == m).all(axis=1))[0]) for m in moved])
    return found


@cache
def scrambled(shape, n=2, seed=0):
    rng = np.random.default_rng(seed)
    mesh = ONE[shape](n, **({"shape": shape} if shape != "interval" else {})) if shape in ONE else None
    mesh = mesh or md.unit_square(n, n, shape=shape)
    x, cells = np.array(mesh.coordinates), np.array(mesh.cells[shape])
    dim = x.shape[1]
    if reference_cell(shape).vertices.shape[0] == dim + 1:  # others stay parallelepipeds
        inner = ((x > 0) & (x < 1)).all(axis=1)
        x[inner] += rng.uniform(-0.1, 0.1, (inner.sum(), dim)) / n
    x = x @ (np.eye(dim) + 0.3 * rng.uniform(-1, 1, (dim, dim))) + rng.random(dim)
    new = rng.permutation(len(x))
    moved = np.empty_like(x)
    moved[new] = x
    orders = np.array(symmetries(shape))[rng.integers(len(symmetries(shape)), size=len(cells))]
    return md.Mesh(moved, {shape: np.take_along_axis(new[cells], orders, axis=1)}, inverted="keep")


def polynomial(mesh, k, seed=0):
    """A polynomial in the coordinates, of total degree k."""
    rng = np.random.default_rng(seed)
    dim = mesh.coordinates.shape[1]
    powers = [p for p in product(range(k + 1), repeat=dim) if sum(p) <= k]
    weights = rng.uniform(-1, 1, len(powers))
    return lambda x: sum(w * np.prod(x ** np.array(p), axis=-1) for w, p in zip(weights, powers))


def positions(V, at):
    """Where the points (q, dim) of the reference cell are in each cell."""
    x = V.mesh.coordinates[V.mesh.closure("cell", "vertex").target().table]
    return np.einsum("qk,nkd->nqd", md.element("P", V.element.shape, 1).tabulate(at), x)


@pytest.mark.parametrize("shape, family, degree", SPACES)
def test_a_polynomial_is_reproduced_in_every_cell(shape, family, degree):
    for seed in range(2):
        mesh = scrambled(shape, seed=seed)
        V = md.space(mesh, family, degree)
        f = polynomial(mesh, V.element.degree)
        u = np.asarray(mb.to_numpy(V.interpolate(f).parent))
        at, _ = md.quadrature(shape, 4)
        inside = np.einsum("qk,nk->nq", V.element.tabulate(at), u[V.dofs.table])
        assert np.abs(inside - f(positions(V, at))).max() < 1e-10
        assert np.abs(V.sample(V.interpolate(f), at) - inside).max() < 1e-12


@pytest.mark.parametrize("shape, family, degree", SPACES)
def test_all_cells_see_a_degree_of_freedom_at_the_same_point(shape, family, degree):
    V = md.space(scrambled(shape, seed=3), family, degree)
    assert np.abs(V.points[V.dofs.table] - positions(V, V.element.points)).max() < 1e-13
    assert sorted(set(V.dofs.table.ravel().tolist())) == list(range(V.tree.size))
    if family != "DP":
        assert len(np.unique(V.points.round(9), axis=0)) == V.tree.size
    assert V.signs is None and V.dofs.table.dtype == np.int32


def two():
    return md.unit_square(1, 1)


def test_x1_p3_on_two_triangles():
    V = md.space(two(), "P", 3)
    assert V.tree.size == 16
    edges = V.tree.offset({"mesh": "edge", "dof": None}, {"mesh": np.arange(5)[:, None], "dof": np.arange(2)})
    assert np.asarray(edges).tolist() == [[2 + 2 * e, 3 + 2 * e] for e in range(5)]
    # As X15, but for the edge that the second cell sees the other way round.
    assert V.dofs.table.tolist() == [
        [0, 6, 7, 4, 5, 2, 3, 12, 13, 14],
        [1, 11, 10, 6, 7, 8, 9, 13, 15, 14],
    ]


def test_x2_vectors_and_matrices():
    V = md.space(two(), "P", 3, components=2)
    assert V.tree.size == 32 and V.dofs.block == (2,) and V.dofs.size == 16
    at = {"mesh": np.arange(4)[:, None], "dof": 0, "dim": np.arange(2)}
    found = V.tree.offset({"mesh": "vertex", "dof": None, "dim": None}, at)
    assert np.asarray(found).tolist() == [[24 + 2 * v, 25 + 2 * v] for v in range(4)]
    T = md.space(two(), "P", 1, components=(2, 2))
    u = T.interpolate(lambda x: np.arange(4.0).reshape(2, 2) + 4 * x[..., :1, None])
    assert T.tree.size == 16 and mb.to_numpy(u.parent)[4:8].tolist() == [4, 5, 6, 7]
    assert T.evaluate(u, [0.5, 0.25]).tolist() == [[2, 3], [4, 5]]


def test_x4_and_x5_mixed():
    V, Q = md.space(two(), "P", 2, components=2), None
    Q = md.space(V.mesh, "P", 1)
    apart, woven = (md.mixed(V, Q, names=("u", "p"), interleaved=i) for i in (False, True))
    assert apart.tree.size == woven.tree.size == 22
    assert apart.dofs_of("p").table.tolist() == [[18, 19, 20], [19, 21, 20]]
    assert woven.dofs_of("p").table.tolist() == [[12, 15, 18], [15, 21, 18]]
    edges = [4, 5, 2, 3, 0, 1]  # of cell 0, with both components
    assert apart.dofs.table[0].tolist() == [*edges, 10, 11, 12, 13, 14, 15, 18, 19, 20]
    assert woven.dofs.table[0].tolist() == [*edges, 10, 11, 13, 14, 16, 17, 12, 15, 18]


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
@pytest.mark.parametrize("interleaved", [False, True])
def test_fields_of_mixed_spaces_come_apart_and_together(interleaved, array):
    mesh = scrambled("tetrahedron")
    spaces = md.space(mesh, "P", 3, components=3), md.space(mesh, "DP", 0), md.space(mesh, "N", 1)
    W = md.mixed(*spaces, names=("u", "q", "E"), interleaved=interleaved)
    fs = (lambda x: x**2, lambda x: x[..., 0], lambda x: x[..., ::-1])
    w = W.interpolate(*fs, array=array)
    parts = W.split(w)
    for V, part, f in zip(spaces, parts, fs):
        assert isinstance(part.parent, array)
        assert np.array_equal(mb.to_numpy(part.parent), mb.to_numpy(V.interpolate(f).parent))
    assert np.array_equal(mb.to_numpy(W.join(*parts).parent), mb.to_numpy(w.parent))
    assert sorted(set(W.dofs.table.ravel().tolist())) == list(range(W.tree.size))
    # The same values in the same order, however stored.
    other = md.mixed(*spaces, names=("u", "q", "E"), interleaved=not interleaved)
    mine, theirs = (mb.to_numpy(M.interpolate(*fs).parent)[M.dofs.table] for M in (W, other))
    assert np.array_equal(mine, theirs) and np.array_equal(W.signs, other.signs)
    assert W.signs.shape == W.dofs.table.shape
    x = mesh.coordinates[:1]
    assert np.allclose(mb.to_numpy(W.evaluate(w, "u", x)), x**2)
    assert np.array_equal(
        np.sort(np.concatenate([W.boundary_dofs(n) for n in W.names])),
        np.sort(np.concatenate([W._from_fields[i][V.boundary_dofs()] for i, V in enumerate(spaces)])),
    )


@pytest.mark.parametrize("shape", ["triangle", "tetrahedron"])
@pytest.mark.parametrize("family", ["RT", "N"])
def test_fluxes_and_circulations_agree_from_both_sides(shape, family):
    mesh = scrambled(shape, seed=1)
    dim = mesh.coordinates.shape[1]
    V = md.space(mesh, family, 1)
    a, s = np.random.default_rng(2).uniform(-1, 1, (2, dim))
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]]) if dim == 2 else np.cross(np.eye(3), s)
    f = (lambda x: a + s[0] * x) if family == "RT" else (lambda x: a + x @ turned)
    at, _ = md.quadrature(shape, 2)
    u = V.interpolate(f)
    assert np.abs(V.sample(u, at) - f(positions(V, at))).max() < 1e-12  # these fields are in the space
    assert np.abs(mb.to_numpy(V.evaluate(u, positions(V, at)[0])) - f(positions(V, at))[0]).max() < 1e-12
    # Of any function of the space, what crosses (or runs along) a facet is the same from both cells.
    w = md.wrap(V.tree, mb.HostArray(np.random.default_rng(3).normal(size=V.tree.size)))
    kind = mesh.facets[0]
    corners = mesh.coordinates[mesh.closure(kind, "vertex").target().table]
    middles = corners.mean(axis=1)
    edges = corners[:, 1:] - corners[:, :1]
    values = {}
    for cell, facets in enumerate(mesh.closure("cell", kind).target().table):
        x0, J = V.cells.corners[cell, 0], V.cells.jacobians(np.array([cell]), np.zeros((1, dim)))[0]
        for facet in facets:
            seen = V.sample(w, np.linalg.solve(J, middles[facet] - x0)[None])[cell, 0]
            normal = edges[facet, 0, ::-1] * [1, -1] if dim == 2 else np.cross(*edges[facet])
            one = [normal @ seen] if family == "RT" else edges[facet] @ seen
            values.setdefault(facet, []).append(one)
    assert max(map(len, values.values())) == 2
    for both in values.values():
        assert np.allclose(both[0], both[-1])


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
def test_evaluation_at_points(array):
    rng = np.random.default_rng(0)
    for shape, family in [("triangle", "P"), ("tetrahedron", "P"), ("quadrilateral", "Q"), ("interval", "P")]:
        mesh = scrambled(shape)
        V = md.space(mesh, family, 2, components=2)
        f = polynomial(mesh, V.element.degree)
        g = lambda x: np.stack([f(x), x[..., 0]], axis=-1)
        inside = np.einsum("nqd->nqd", positions(V, rng.random((2, V.element.dim)) / 3))
        found = V.evaluate(V.interpolate(g, array=array), inside)
        assert isinstance(found, array) and np.abs(mb.to_numpy(found) - g(inside)).max() < 1e-12
        # On vertices, and far away.
        u = V.interpolate(g, array=array)
        assert np.abs(mb.to_numpy(V.evaluate(u, mesh.coordinates)) - g(mesh.coordinates)).max() < 1e-12
        outside = np.full(V.dim, 100.0)
        assert np.isnan(mb.to_numpy(V.evaluate(u, outside))).all() and V.evaluate(u, outside).shape == (2,)
        assert V.evaluate(u, np.empty((0, V.dim))).shape == (0, 2)
    quads = md.unit_square(4, 4, shape="quadrilateral")
    x = np.array(quads.coordinates)
    inner = ((x > 0) & (x < 1)).all(axis=1)
    x[inner] += rng.uniform(-0.07, 0.07, (inner.sum(), 2))
    bent = md.space(md.Mesh(x, quads.cells), "Q", 1)
    at = rng.random((200, 2))
    assert (
        np.abs(mb.to_numpy(bent.evaluate(bent.interpolate(lambda x: x[..., 1]), at)) - at[:, 1]).max() < 1e-12
    )
    D = md.space(two(), "DP", 0)
    assert np.isnan(D.evaluate(D.interpolate(2.0), [[2.0, 2.0]]).tolist()).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_dtypes(dtype):
    V = md.space(two(), "P", 2)
    u = V.interpolate(lambda x: x[..., 0], dtype=dtype)
    assert u.parent.dtype == dtype and V.zeros(dtype=dtype).parent.dtype == dtype
    assert V.evaluate(u, [[0.5, 0.25]]).dtype == dtype
    whole = V.interpolate(lambda x: (4 * x[..., 0]).astype(int), dtype=np.int32)
    assert V.evaluate(whole, [[0.25, 0.25]]).tolist() == [1.0]


def test_the_boundary():
    mesh = md.unit_square(3, 3)
    V = md.space(mesh, "P", 3, components=2)
    on = V.boundary_dofs()
    x = np.repeat(V.points, 2, axis=0)
    edge = (np.abs(x - 0.5).max(axis=1) > 0.5 - 1e-12).nonzero()[0]
    assert on.tolist() == edge.tolist()
    left = V.boundary_dofs(lambda x: x[..., 0] == 0)
    assert left.tolist() == np.flatnonzero(x[:, 0] == 0).tolist()
    facets = mesh.points("edge").subset(np.flatnonzero(mesh.midpoints("edge")[:, 0] == 0))
    assert V.boundary_dofs(facets).tolist() == left.tolist()
    marked = md.Mesh(mesh.coordinates, mesh.cells, markers={"left": facets})
    assert md.space(marked, "P", 3, components=2).boundary_dofs("left").tolist() == left.tolist()
    R = md.space(mesh, "RT", 1)
    assert R.boundary_dofs().tolist() == mesh.exterior().indices.tolist()
    assert md.space(mesh, "DP", 1).boundary_dofs().size == 0
    assert md.space(md.interval(3), "P", 2).boundary_dofs().tolist() == [3, 6]
    cube = md.space(md.unit_cube(2), "P", 4)
    assert (
        cube.boundary_dofs().tolist() == np.flatnonzero(np.abs(cube.points - 0.5).max(1) > 0.5 - 1e-12).tolist()
    )


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_poisson_on_the_unit_square(degree):
    """-Δu = 1 with u = 0 around: 0.0736714 in the middle."""
    sparse = pytest.importorskip("scipy.sparse")
    linalg = pytest.importorskip("scipy.sparse.linalg")
    V = md.space(md.unit_square(8, 8), "P", degree)
    at, w = V.quadrature(2 * degree)
    G = V.tabulate(at, derivatives=1)
    K = np.einsum("nq,nqki,nqli->nkl", w, G, G)
    t, N = V.dofs.table, V.tree.size
    rows, columns = np.broadcast_to(t[:, :, None], K.shape), np.broadcast_to(t[:, None, :], K.shape)
    A = sparse.csr_array((K.ravel(), (rows.ravel(), columns.ravel())), shape=(N, N))
    b = np.bincount(t.ravel(), np.einsum("nq,nqk->nk", w, V.tabulate(at)).ravel(), N)
    free = np.setdiff1d(np.arange(N), V.boundary_dofs())
    u = np.zeros(N)
    u[free] = linalg.spsolve(A[free][:, free].tocsc(), b[free])
    middle = V.evaluate(md.wrap(V.tree, mb.HostArray(u)), [0.5, 0.5])
    assert float(middle) == pytest.approx(0.0736713, abs=[2e-3, 2e-5, 2e-6, 2e-7][degree - 1])


@pytest.mark.parametrize(
    "shape, family, degree",
    [
        ("interval", "P", 2),
        ("triangle", "P", 4),
        ("quadrilateral", "Q", 3),
        ("tetrahedron", "P", 4),
        ("hexahedron", "Q", 3),
    ],
)
def test_traces_on_facets(shape, family, degree):
    V = md.space(scrambled(shape, seed=9), family, degree)
    e, dofs = V.trace()
    facet = V.mesh.facets[0]
    vertices = V.mesh.coordinates[V.mesh.closure(facet, "vertex").target().table]
    at = np.einsum("qk,nkd->nqd", md.element("P", e.shape, 1).tabulate(e.points), vertices)
    assert len(dofs.source) == len(at) and np.abs(V.points[dofs.table] - at).max() < 1e-13


def test_surfaces_in_space():
    x = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 3.0]])
    mesh = md.Mesh(x, {"triangle": [[0, 1, 2], [1, 3, 2]]})
    V = md.space(mesh, "P", 2)
    u, at = V.interpolate(lambda x: x[..., 2] ** 2), md.quadrature("triangle", 2)[0]
    assert np.allclose(V.sample(u, at), positions(V, at)[..., 2] ** 2)
    with pytest.raises(ValueError, match="of dimension 2 in 3 dimensions"):
        V.evaluate(u, x)
    with pytest.raises(ValueError, match="lies in 3 dimensions"):
        md.space(mesh, "RT", 1)


def laplacian(V):
    """The local action of -Δ, written for any element of triangles, and its matrices."""
    at, w = md.quadrature("triangle", 2 * V.element.degree - 2)
    slopes = V.element.tabulate(at, derivatives=1)

    def action(u, x, y):
        J = np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])
        inverse, size = np.linalg.inv(J), np.abs(np.linalg.det(J))
        for q in range(len(w)):
            g = slopes[q] @ inverse
            y += g @ (w[q] * size * (u @ g))

    G = V.tabulate(at, derivatives=1)
    return action, np.einsum("nq,nqki,nqli->nkl", V.quadrature(2 * V.element.degree - 2)[1], G, G)


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_loops_run_over_the_degrees_of_freedom(array):
    mesh = scrambled("triangle", n=3)
    V = md.space(mesh, "P", 2)
    action, K = laplacian(V)
    u, y = V.interpolate(lambda x: np.sin(3 * x[..., 0]) * x[..., 1], array=array), V.zeros(array)
    cells = mesh.points("cell")
    corners = md.Dofs(cells, mesh.closure("cell", "vertex").target().table, len(mesh.coordinates), block=(2,))
    md.loop(cells, action, md.READ(u, V.dofs), md.READ(array(mesh.coordinates), corners), md.INC(y, V.dofs))
    local = np.einsum("nkl,nl->nk", K, mb.to_numpy(u.parent)[V.dofs.table])
    wanted = np.bincount(V.dofs.table.ravel(), local.ravel(), V.tree.size)
    assert np.abs(mb.to_numpy(y.parent) - wanted).max() < 1e-12


def test_a_loop_sees_no_difference_between_interleaved_and_concatenated():
    """Divergence and gradient of Taylor-Hood elements: the same bits, whatever the storage."""
    mesh = scrambled("triangle", n=2, seed=5)
    V, Q = md.space(mesh, "P", 2, components=2), md.space(mesh, "P", 1)
    at, (w,) = md.quadrature("triangle", 1)
    slopes, phi = V.element.tabulate(at, derivatives=1)[0], Q.element.tabulate(at)[0]

    def action(u, x, y):
        J = np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])
        g, size = slopes @ np.linalg.inv(J), w * np.abs(np.linalg.det(J))
        p = size * (phi @ u[12:])
        for k in range(6):
            for d in range(2):
                y[2 * k + d] -= g[k, d] * p
                y[12] -= size * phi[0] * g[k, d] * u[2 * k + d]

    cells, found = mesh.points("cell"), []
    corners = md.Dofs(cells, mesh.closure("cell", "vertex").target().table, len(mesh.coordinates), block=(2,))
    for interleaved in (False, True):
        W = md.mixed(V, Q, interleaved=interleaved)
        v, y = W.interpolate(lambda x: np.cos(x), lambda x: x[..., 0] ** 2), W.zeros()
        md.loop(
            cells,
            action,
            md.READ(v, W.dofs),
            md.READ(mb.HostArray(mesh.coordinates), corners),
            md.INC(y, W.dofs),
        )
        found.append([mb.to_numpy(part.parent) for part in W.split(y)])
    for one, other in zip(*found):
        assert np.abs(one).max() > 0.01 and np.array_equal(one, other)


def test_the_resonances_of_a_cavity():
    """curl curl E = λ E in a square with perfectly conducting sides: λ / π² are 1, 1, 2, 4, 4, 5, 5, 8, ...

    Elements whose circulations did not agree, or of P1 for each component, would find others between them.
    """
    mesh, rng = md.unit_square(10, 10), np.random.default_rng(0)
    orders = np.array(symmetries("triangle"))[rng.integers(6, size=200)]
    cells = np.take_along_axis(mesh.cells["triangle"], orders, axis=1)
    V = md.space(md.Mesh(mesh.coordinates, cells, inverted="keep"), "N", 1)
    at, w = V.quadrature(2)
    phi, G, t = V.tabulate(at), V.tabulate(at, derivatives=1), V.dofs.table
    curl = G[..., 1, 0] - G[..., 0, 1]
    A, M = np.zeros((2, V.tree.size, V.tree.size))
    np.add.at(A, (t[:, :, None], t[:, None, :]), np.einsum("nq,nqk,nql->nkl", w, curl, curl))
    np.add.at(M, (t[:, :, None], t[:, None, :]), np.einsum("nq,nqkd,nqld->nkl", w, phi, phi))
    free = np.ix_(*[np.setdiff1d(np.arange(V.tree.size), V.boundary_dofs())] * 2)
    values = np.sort(np.linalg.eigvals(np.linalg.solve(M[free], A[free])).real) / np.pi**2
    assert np.allclose(values[values > 1e-8][:8], [1, 1, 2, 4, 4, 5, 5, 8], rtol=0.03)


def test_darcys_flow():
    """div s = -1, s = grad u in RT1 x DP0: what flows out of the square is what flows in."""
    mesh = scrambled("triangle", n=4, seed=11)
    R, D = md.space(mesh, "RT", 1), md.space(mesh, "DP", 0)
    W = md.mixed(R, D, names=("s", "u"), interleaved=True)
    at, w = R.quadrature(2)
    phi = R.tabulate(at)
    div = np.trace(R.tabulate(at, derivatives=1), axis1=-2, axis2=-1)
    local = np.zeros((len(w), 4, 4))
    local[:, :3, :3] = np.einsum("nq,nqkd,nqld->nkl", w, phi, phi)
    local[:, 3, :3] = local[:, :3, 3] = np.einsum("nq,nqk->nk", w, div)
    A, b, t = np.zeros((W.tree.size, W.tree.size)), np.zeros(W.tree.size), W.dofs.table
    np.add.at(A, (t[:, :, None], t[:, None, :]), local)
    np.add.at(b, W.dofs_of("u").table[:, 0], -w.sum(axis=1))
    s, u = W.split(md.wrap(W.tree, mb.HostArray(np.linalg.solve(A, b))))
    fluxes = np.einsum("nq,nqk,nk->n", w, div, mb.to_numpy(s.parent)[R.dofs.table])
    assert np.allclose(fluxes, -w.sum(axis=1)) and (mb.to_numpy(u.parent) > 0).all()
    outer = mb.to_numpy(s.parent)[R.boundary_dofs()]
    corners = mesh.coordinates[mesh.closure("edge", "vertex").target().table[mesh.exterior().indices]]
    out = np.einsum(
        "ed,ed->e",
        corners.mean(axis=1) - mesh.coordinates.mean(axis=0),
        (corners[:, 1] - corners[:, 0])[:, ::-1] * [1, -1],
    )
    assert np.isclose((np.sign(out) * outer).sum(), -w.sum())


def test_files(tmp_path):
    from test_meshdata_vtk import arrays

    mesh = scrambled("triangle")
    V, R = md.space(mesh, "P", 2, components=2), md.space(mesh, "RT", 1)
    u = V.interpolate(lambda x: x**2)
    v, c = np.arange(float(mesh.points("vertex").size)), np.arange(float(mesh.points("cell").size))
    fields = {"u": u, "flux": (R, R.interpolate(lambda x: 0 * x + 1)), "v": v, "c": mb.HostArray(c)}
    made = arrays(md.write_vtk(tmp_path / "a.vtu", mesh, fields))
    x = made["Points"][:, :2]
    assert np.abs(made["u"][:, :2] - x**2).max() < 1e-13 and np.abs(made["flux"][:, :2] - 1).max() < 1e-12
    assert made["c"].ravel().tolist() == np.repeat(c, 6).tolist()
    assert made["v"].reshape(-1, 6)[:, :3].tolist() == v[mesh.closure("cell", "vertex").target().table].tolist()
    for shape in ("interval", "tetrahedron", "hexahedron"):
        V = md.space(scrambled(shape), "P", 3)
        made = arrays(md.write_vtk(tmp_path / "b.vtu", V.mesh, {"u": V.interpolate(lambda x: x[..., 0])}))
        assert np.abs(made["u"][:, 0] - made["Points"][:, 0]).max() < 1e-12


def test_an_array_of_no_lagrange_element_is_not_written_without_its_space(tmp_path):
    R = md.space(two(), "RT", 1)
    with pytest.raises(ValueError, match=re.escape('`{"u": (V, u)}`')):
        md.write_vtk(tmp_path / "a.vtu", R.mesh, {"u": R.zeros()})
    with pytest.raises(ValueError, match="4 vertices and 2 cells: it is of neither"):
        md.write_vtk(tmp_path / "a.vtu", R.mesh, {"u": np.zeros(3)})
    with pytest.raises(ValueError, match="another mesh"):
        md.write_vtk(tmp_path / "a.vtu", md.unit_square(2, 1), {"u": (R, R.zeros())})
    assert not list(tmp_path.iterdir())


def test_spaces_are_values():
    V, Q = md.space(two(), "P", 2, components=2), md.space(two(), "RT", 1)
    W = md.mixed(V, Q, interleaved=True)
    for X in (V, Q, W, md.element("N", "tetrahedron", 1)):
        again = pickle.loads(pickle.dumps(X))
        assert again == X and hash(again) == hash(X) and repr(again) == repr(X)
    assert md.space(two(), "P", 2, components=2) == V and md.space(two(), "P", 2) != V and V != 3
    assert md.space(md.unit_square(2, 1), "P", 2, components=2) != V and md.mixed(V, Q) != W
    assert np.array_equal(pickle.loads(pickle.dumps(W)).dofs.table, W.dofs.table)


def test_what_is_evaluated_may_be_compiled_and_differentiated():
    V = md.space(md.unit_square(3, 3), "P", 2)
    u, at = V.interpolate(lambda x: x[..., 0], array=mb.RefArray), [[0.5, 0.5], [0.2, 0.3]]
    assert np.allclose(mb.to_numpy(mb.compile(lambda u: V.evaluate(2 * u, at))(u)), [1.0, 0.4])
    value, tangent = mb.autodiff.jvp(lambda u: V.evaluate(u * u, at), (u,), (u,))
    assert np.allclose(mb.to_numpy(value), [0.25, 0.04]) and np.allclose(mb.to_numpy(tangent), [0.5, 0.08])


BAD = [
    (lambda V: md.space(V.mesh, "BDM", 1), "no family 'BDM'"),
    (lambda V: md.space(V.mesh, "P", 9), "not 9"),
    (lambda V: md.space(V.mesh, "P"), "not None"),
    (lambda V: md.space(V.mesh, "P", 1, components=0), "not 0"),
    (lambda V: md.space(V.mesh, "P", 1, components=(2, 1.5)), re.escape("not (2, 1.5)")),
    (lambda V: md.space(V.mesh, "RT", 1, components=2), "vectors already"),
    (lambda V: md.space(V.mesh, md.element("P", "tetrahedron", 1)), "on a tetrahedron"),
    (lambda V: md.space("mesh", "P", 1), "not on a str"),
    (lambda V: V.interpolate(lambda x: x), re.escape("gave the shape (4, 2) instead of (4,)")),
    (lambda V: V.interpolate([1.0, 2.0]), re.escape("gave the shape (2,) instead of (4,)")),
    (lambda V: V.interpolate(lambda x: 1j * x[..., 0]), "complex128, which an array of float64"),
    (lambda V: V.interpolate("u"), "gave values of"),
    (lambda V: md.space(V.mesh, "DP", 1).trace(), "functions of DP"),
    (lambda V: V.evaluate(V.zeros(), [0.5]), "have 2 coordinates"),
    (
        lambda V: V.evaluate(V.zeros(), [[3.0, 0.5], [4.0, 0.5]], outside="raise"),
        re.escape("[3.0, 0.5] lies in no"),
    ),
    (lambda V: V.evaluate(V.zeros(), [0.5, 0.5], outside="zero"), "not 'zero'"),
    (lambda V: V.evaluate(np.zeros(4), [0.5, 0.5]), "this is a ndarray"),
    (lambda V: V.evaluate(md.space(md.unit_square(2, 2), "P", 1).zeros(), [0.5, 0.5]), "another tree, of 9"),
    (lambda V: V.boundary_dofs(lambda x: x[..., 0]), "not a truth value for each"),
    (lambda V: V.boundary_dofs("inflow"), "no boundary named 'inflow'"),
    (lambda V: V.boundary_dofs([1, 2]), re.escape("not [1, 2]")),
    (lambda V: V.boundary_dofs(V.mesh.points("cell").subset([0])), "a subset of the facets"),
    (lambda V: md.mixed(V), "two spaces or more"),
    (lambda V: md.mixed(V, md.space(md.unit_square(2, 1), "P", 1)), "on one mesh"),
    (lambda V: md.mixed(V, V, names=("u", "u")), "different names"),
    (lambda V: md.mixed(V, V).split(V.zeros()), "another tree, of 4"),
    (lambda V: md.mixed(V, V).dofs_of("p"), "no field 'p'"),
    (lambda V: md.mixed(V, V).interpolate(1.0), "1 are given"),
]


@pytest.mark.parametrize("call, words", BAD, ids=range(len(BAD)))
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call(md.space(two(), "P", 1))


@pytest.mark.parametrize(
    "name", ["MixedSpace", "Space", "mixed", "space", "vtk_nodes", "write_vtk", "write_vtk_cells"]
)
def test_examples_run(name):
    for test in doctest.DocTestFinder().find(getattr(md, name), name, globs={}):
        assert not doctest.DocTestRunner().run(test).failed


@pytest.mark.parametrize(
    "family, shape, degree, fields",
    [
        ("RT", "triangle", 2, 1),
        ("RT", "triangle", 3, 2),
        ("BDM", "triangle", 1, 1),
        ("BDM", "triangle", 2, 2),
        ("N1E", "triangle", 2, 1),
        ("N2E", "triangle", 2, 2),
        ("RT", "tetrahedron", 1, 0),
        ("N1E", "tetrahedron", 1, 0),
        ("P", "triangle", 4, 4),
        ("P", "tetrahedron", 3, 3),
        ("CR", "triangle", 1, 1),
        ("CR", "tetrahedron", 1, 1),
    ],
)
def test_elements_of_basix(family, shape, degree, fields):
    """Polynomials of the degree are in these spaces, and all cells say the same of a degree of freedom."""
    basix = pytest.importorskip("basix")
    variant = {"P": "gll_warped", "CR": "unset"}.get(family, "legendre")
    of = basix.create_element(
        basix.ElementFamily[family], basix.CellType[shape], degree, basix.LagrangeVariant[variant]
    )
    mesh = scrambled(shape, seed=4)
    V = md.space(mesh, of)
    dim = mesh.coordinates.shape[1]
    parts = [polynomial(mesh, fields, seed) for seed in range(dim)]
    f = (lambda x: np.stack([p(x) for p in parts], axis=-1)) if V.value_shape else parts[0]
    at, _ = md.quadrature(shape, 3)
    u = V.interpolate(f)
    assert np.abs(V.sample(u, at) - f(positions(V, at))).max() < 1e-11
    # The opposite: a function of the space is determined by what it is in each cell.
    w = np.random.default_rng(5).normal(size=V.tree.size)
    points, matrix = V.element.interpolation()
    inside = V.element.tabulate(points).reshape(len(points), V.element.size, -1)
    signs = 1.0 if V.signs is None else V.signs
    found = np.einsum("kcq,qlc,nl->nk", matrix, inside, w[V.dofs.table] * signs) * signs
    assert np.abs(found - w[V.dofs.table]).max() < 1e-10
    assert (V.element.tabulate(at, 1).shape) == (len(at), V.element.size, *V.value_shape, dim)


@pytest.mark.parametrize("family, degree", [("RT", 2), ("RT", 4), ("N", 3)])
def test_higher_degrees_come_from_basix(family, degree, monkeypatch):
    pytest.importorskip("basix")
    V = md.space(scrambled("triangle", seed=2), family, degree)
    parts = [polynomial(V.mesh, degree - 1, seed) for seed in range(2)]
    f = lambda x: np.stack([p(x) for p in parts], axis=-1)
    at, _ = V.quadrature(3)
    assert np.abs(V.sample(V.interpolate(f), at) - f(positions(V, at))).max() < 1e-11
    assert V == md.space(V.mesh, family, degree) == pickle.loads(pickle.dumps(V)) and family in repr(V)
    monkeypatch.setitem(sys.modules, "basix", None)
    with pytest.raises(ImportError, match="pip install fenics-basix"):
        md.element.__wrapped__(family, "triangle", degree)


def test_normals_of_an_element_of_basix_agree():
    """Of any function of RT2 the flux through a facet is the same from both sides, at any point."""
    basix = pytest.importorskip("basix")
    of = basix.create_element(
        basix.ElementFamily.RT, basix.CellType.triangle, 2, basix.LagrangeVariant.legendre
    )
    V = md.space(scrambled("triangle", seed=6), of)
    w = md.wrap(V.tree, mb.HostArray(np.random.default_rng(5).normal(size=V.tree.size)))
    corners = V.mesh.coordinates[V.mesh.closure("edge", "vertex").target().table]
    x = corners[:, 0] + 0.3 * (corners[:, 1] - corners[:, 0])
    normal = (corners[:, 1] - corners[:, 0])[:, ::-1] * [1, -1]
    seen = {}
    for cell, edges in enumerate(V.mesh.closure("cell", "edge").target().table):
        for e in edges:
            at = V.cells.pull_back(np.array([cell]), x[e : e + 1])
            seen.setdefault(e, []).append(normal[e] @ V.sample(w, at)[cell, 0])
    assert max(map(len, seen.values())) == 2
    assert all(np.isclose(both[0], both[-1]) for both in seen.values())


def test_other_elements_of_basix_are_refused():
    basix = pytest.importorskip("basix")
    P, RT = basix.ElementFamily.P, basix.ElementFamily.RT
    legendre = basix.LagrangeVariant.legendre
    with pytest.raises(ValueError, match="mixed by a matrix"):
        md.space(md.unit_cube(1), basix.create_element(RT, basix.CellType.tetrahedron, 2, legendre))
    with pytest.raises(ValueError, match="on a quadrilateral"):
        md.space(two(), basix.create_element(P, basix.CellType.quadrilateral, 1))
    with pytest.raises(ValueError, match="on a tetrahedron, and the cells"):
        md.space(two(), basix.create_element(P, basix.CellType.tetrahedron, 1))


@pytest.mark.parametrize(
    "shape, family, degree", [("triangle", "P", 4), ("tetrahedron", "P", 4), ("triangle", "RT", 1)]
)
def test_on_a_part_of_a_mesh_ghosts_come_last_and_orientations_are_those_of_the_whole(shape, family, degree):
    mesh = scrambled(shape, n=3, seed=7)
    whole = md.space(mesh, family, degree)
    components = None if family == "RT" else 2
    owner = md.partition(mesh, 3, method="hilbert")
    values = np.random.default_rng(8).normal(size=whole.dofs.size)
    at, _ = md.quadrature(shape, 2)
    inside = whole.sample(md.wrap(whole.tree, mb.HostArray(values)), at)
    for rank in range(3):
        part = mesh.part(owner, rank=rank)
        V = md.space(part.mesh, family, degree)
        local = np.empty(V.dofs.size)
        for kind, numbers in V._numbers.items():
            local[numbers] = values[whole._numbers[kind][part.numbers(kind)]]
        here = V.sample(md.wrap(V.tree, mb.HostArray(local)), at)
        assert np.abs(here - inside[part.numbers("cell")]).max() < 1e-13
        # The process's own entries are the first ones, of vectors and of mixed spaces as well.
        W = md.space(part.mesh, family, degree, components=components)
        Q = md.space(part.mesh, "P", 1)
        for X in (W, md.mixed(W, Q), md.mixed(W, Q, interleaved=True)):
            fields = X.spaces if isinstance(X, md.MixedSpace) else (X,)
            owned = sum(
                part.owned(kind) * n * int(np.prod(Y.components))
                for Y in fields
                for kind, n in Y.element.entity_dofs.items()
            )
            first = X._from_fields if isinstance(X, md.MixedSpace) else [np.arange(X.tree.size)]
            mine = [
                there[Y.components_at(numbers[: part.owned(kind)] * int(np.prod(Y.components)))].ravel()
                for Y, there in zip(fields, first)
                for kind, numbers in Y._numbers.items()
            ]
            assert sorted(np.concatenate(mine).tolist()) == list(range(owned))
            u = X.interpolate(*[0.0 if len(Y.value_shape) == 0 else np.zeros(Y.value_shape) for Y in fields])
            assert u.shape == (X.tree.size,)


def test_cells_without_volume_hold_no_points():
    x = [[0, 0], [1, 0], [0, 1], [0.5, 0.5], [1, 1]]
    V = md.space(md.Mesh(x, [[1, 2, 3], [0, 1, 2], [1, 4, 2]], inverted="keep"), "P", 1)
    u = V.interpolate(lambda x: x[..., 0])
    at = np.array([[0.5, 0.5], [0.25, 0.25], [0.75, 0.75], [1.0, 0.0]])
    assert np.allclose(mb.to_numpy(V.evaluate(u, at)), at[:, 0])
