"""Reference elements: every matrix does to polynomials what its name says."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

from mirabelle.dg.elements import element
from mirabelle.dg.elements.lattice import lattice

SIMPLICES, BOXES = ("triangle", "tetrahedron"), ("line", "quadrilateral", "hexahedron")
KINDS = [(c, "warp-blend") for c in SIMPLICES] + [(c, k) for c in BOXES for k in ("gauss-lobatto", "gauss")]
ORDERS = {"hexahedron": (1, 2, 3, 4, 6), "tetrahedron": (1, 2, 3, 4, 6, 10)}
ELEMENTS = [(c, p, k) for c, k in KINDS for p in ORDERS.get(c, range(1, 11))]
VOLUMES = {"line": 2, "triangle": 2, "quadrilateral": 4, "tetrahedron": 4 / 3, "hexahedron": 8}

every = pytest.mark.parametrize("made", ELEMENTS, ids=lambda x: "-".join(map(str, x)))
every_cell = pytest.mark.parametrize("cell", VOLUMES)


def monomials(e, points, order):
    """Of (1 + x) / 2: values (n, Np) and powers (Np, d)."""
    powers = lattice(e.dims, order, e.is_tensor)
    return (((1 + points) / 2)[:, None] ** powers).prod(2), powers


def integrals(e, powers):
    """Of these monomials over the reference cell, exactly."""
    if e.is_tensor:
        return (2 / (powers + 1)).prod(1)
    products = [math.prod(map(math.factorial, p)) / math.factorial(sum(p) + e.dims) for p in powers.tolist()]
    return 2**e.dims * np.array(products)


def on_reference_face(e, points):
    """Points of the face x_1 = -1, where the other coordinates are the face's own."""
    assert (points[:, 0] == -1).all()
    return points[:, 1:]


@every
def test_matrices_do_to_polynomials_what_their_names_say(made):
    e = element(*made)
    n = len(e.nodes)
    values, powers = monomials(e, e.nodes, e.order)
    for r in range(e.dims):
        factor = powers[:, r] / 2
        powers[:, r] = np.maximum(powers[:, r] - 1, 0)
        exact = factor * (((1 + e.nodes) / 2)[:, None] ** powers).prod(2)
        np.testing.assert_allclose(e.differentiation[r] @ values, exact, atol=5e-12)
        values, powers = monomials(e, e.nodes, e.order)
    np.testing.assert_allclose(e.differentiation.sum(2), 0, atol=5e-14)
    points, weights = e.quadrature(2 * e.order)
    there, V = e.interpolation(points), e.vandermonde(points)
    np.testing.assert_allclose(there @ values, monomials(e, points, e.order)[0], atol=1e-12)
    np.testing.assert_allclose(V.T @ (weights[:, None] * V), np.eye(n), atol=1e-13)
    exact_mass = there.T @ (weights[:, None] * there)
    np.testing.assert_allclose(e.exact_mass, exact_mass, atol=1e-13)
    np.testing.assert_allclose(e.mass @ np.ones(n), e.weights, atol=1e-13)
    np.testing.assert_allclose(e.mass @ e.inverse_mass, np.eye(n), atol=2e-11)
    if e.kind_of_nodes != "gauss-lobatto":
        np.testing.assert_allclose(e.mass, exact_mass, atol=1e-13)
    assert e.weights.sum() == pytest.approx(VOLUMES[e.cell], rel=1e-13)
    np.testing.assert_allclose(e.weights @ values, integrals(e, powers), atol=1e-11)
    np.testing.assert_allclose(e.interpolation_gradient(e.nodes), e.differentiation, atol=1e-11)


@every
def test_volume_and_faces_agree_by_gauss_theorem(made):
    e = element(*made)
    trace = e.interpolation(e.face_points.reshape(-1, e.dims)).reshape(len(e.faces), -1, len(e.nodes))
    for r in range(e.dims):
        volume = e.mass @ e.differentiation[r]
        surface = sum(f.normal[r] * T.T @ e.face_mass @ T for f, T in zip(e.faces, trace, strict=True))
        np.testing.assert_allclose(volume + volume.T, surface, atol=1e-13)


@every
def test_face_points_are_nodes_of_the_faces_element(made):
    e = element(*made)
    assert (e.face_nodes is None) == (e.kind_of_nodes == "gauss")
    of_face = element(e.face_cell, e.order, None if e.cell in SIMPLICES else e.kind_of_nodes)
    for f, face in enumerate(e.faces):
        assert set(face.normal) <= {-1, 0, 1}
        mapped = e.face_map(f, of_face.nodes)
        np.testing.assert_array_equal(e.face_points[f], mapped)
        corners = e.vertices[list(face.vertices)]
        np.testing.assert_allclose(e.face_map(f, of_face.vertices), corners, atol=1e-15)
        levels = e.vertices @ face.normal
        assert set(np.flatnonzero(levels == levels.max())) == set(face.vertices)  # the normal points outwards
        if e.face_nodes is not None:
            np.testing.assert_allclose(e.nodes[e.face_nodes[f]], mapped, atol=1e-14)
    values, _ = monomials(e, e.nodes, e.order)
    there = monomials(e, e.face_points.reshape(-1, e.dims), e.order)[0]
    np.testing.assert_allclose(e.interpolation(e.face_points.reshape(-1, e.dims)) @ values, there, atol=1e-12)
    np.testing.assert_allclose(e.face_weights, e.face_mass.sum(1), atol=1e-13)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 8, 13])
@every_cell
def test_quadratures_are_exact(cell, degree):
    e = element(cell, 1)
    points, weights = e.quadrature(degree)
    values, powers = monomials(e, points, degree)
    few = np.random.default_rng(0).permutation(len(powers))[:60]
    np.testing.assert_allclose(weights @ values[:, few], integrals(e, powers[few]), atol=1e-13)
    assert weights.min() > 0 and np.abs(points).max() < 1


@pytest.mark.parametrize("degree", [0, 1, 4, 7, 12, 21])
@every_cell
def test_face_quadratures_match_from_both_sides(cell, degree):
    e = element(cell, 1)
    face = element(e.face_cell, 1)
    points, weights = e.face_quadrature(degree)
    assert points.shape == (len(e.faces), len(weights), e.dims)
    assert weights.min() > 0
    reference = on_reference_face(e, points[0])
    values, powers = monomials(face, reference, degree)
    np.testing.assert_allclose(weights @ values, integrals(face, powers) if face.dims else 1.0, atol=1e-13)
    # Symmetries of the face: any renumbering of a simplex, turns and reflections of a square.
    for order in itertools.permutations(range(len(face.vertices))):
        turned = face.vertices[list(order)]
        mapped = face.interpolation(reference) @ turned
        if face.cell == "quadrilateral" and (turned[0] + turned[3]).any():
            continue
        near = np.abs(mapped[:, None] - reference).max(2, initial=0)
        assert near.min(1).max() < 1e-14
        np.testing.assert_allclose(weights[near.argmin(1)], weights, rtol=1e-13)


def test_nodes_are_good_for_interpolation():
    """Lebesgue constants of order 10; Warburton's own nodes have 6.67 and 24.3."""
    rng = np.random.default_rng(3)
    for cell, limit in (("line", 2.2), ("triangle", 6.7), ("tetrahedron", 25)):
        e = element(cell, 10)
        points = 2 * rng.dirichlet(np.ones(e.dims + 1), 4000)[:, 1:] - 1
        assert 2 < np.abs(e.interpolation(points)).sum(1).max() < limit


def test_gradients_of_modes_are_bounded_at_collapsed_vertices():
    for cell in SIMPLICES:
        e = element(cell, 10)
        at, step = e.vertices, 1e-6
        gradients = e.vandermonde_gradient(at)
        inside = at + step * (e.vertices.mean(0) - at)
        near = e.vandermonde_gradient(inside)
        assert np.abs(gradients - near).max() < 1e-2 * np.abs(gradients).max()


@pytest.mark.parametrize("cell", SIMPLICES)
def test_nodes_against_modepy(cell):
    modepy = pytest.importorskip("modepy")
    for order in range(1, 11 if cell == "triangle" else 4):
        e = element(cell, order)
        theirs = modepy.warp_and_blend_nodes(e.dims, order).T
        distances = np.abs(e.nodes[:, None] - theirs).max(2)
        assert distances.min(1).max() < 1e-13
        space = modepy.PN(e.dims, order)
        basis = modepy.orthonormal_basis_for_space(space, modepy.Simplex(e.dims))
        match = distances.argmin(1)
        for r, D in enumerate(np.atleast_3d(modepy.diff_matrices(basis, theirs.T))):
            np.testing.assert_allclose(np.asarray(D)[np.ix_(match, match)], e.differentiation[r], atol=1e-10)


@every_cell
def test_filters_damp_the_highest_modes_and_keep_means(cell):
    for nodes in (None, *(["gauss"] if cell in BOXES else [])):
        e = element(cell, 4, nodes)
        F = e.modal_filter(strength=36, power=4, cutoff=1)
        np.testing.assert_allclose(e.weights @ F, e.weights, atol=1e-14)
        modes = e.to_modes @ F @ e.vandermonde(e.nodes)
        factors = np.exp(-36 * (np.maximum(e.degrees - 1, 0) / 3) ** 4.0)
        np.testing.assert_allclose(modes, np.diag(factors), atol=1e-13)
        np.testing.assert_allclose(F @ monomials(e, e.nodes, 1)[0], monomials(e, e.nodes, 1)[0], atol=1e-13)


@every_cell
def test_subcells_fill_the_cell(cell):
    for order in (1, 2, 3, 5):
        e = element(cell, order)
        cells = e.subcells()
        assert cells.shape == (order**e.dims, len(e.vertices))
        linear = element(cell, 1)
        shapes = linear.interpolation_gradient(linear.nodes.mean(0, keepdims=True))
        J = np.einsum("rqv,nvd->nrd", shapes, e.equispaced()[cells])
        np.testing.assert_allclose(np.linalg.det(J), order ** -float(e.dims), rtol=1e-12)
        assert set(cells.ravel()) == set(range(len(e.nodes)))


@every_cell
def test_the_first_order_has_the_vertices(cell):
    e = element(cell, 1)
    np.testing.assert_array_equal(e.nodes, e.vertices)
    np.testing.assert_array_equal(e.equispaced(), e.vertices)
    if cell in BOXES:
        assert e.nodes.tolist() == [list(v) for v in itertools.product((-1.0, 1.0), repeat=e.dims)]
        n = element(cell, 3).nodes.reshape(*(4,) * e.dims, e.dims)
        assert all((np.diff(n[..., r], axis=r) > 0).all() for r in range(e.dims))


def test_vtk_counts_vertices_edges_faces_and_the_inside():
    def points(cell, order):
        e = element(cell, order)
        assert sorted(e.vtk_order()) == list(range(len(e.nodes)))
        return ((e.equispaced()[e.vtk_order()] + 1) / 2 * order).round().astype(int).tolist()

    assert points("line", 3) == [[0], [3], [1], [2]]
    loop = [[0, 0], [4, 0], [0, 4], [1, 0], [2, 0], [3, 0], [3, 1], [2, 2], [1, 3], [0, 3], [0, 2], [0, 1]]
    assert points("triangle", 4) == [*loop, [1, 1], [2, 1], [1, 2]]
    square = [[0, 0], [2, 0], [2, 2], [0, 2], [1, 0], [2, 1], [1, 2], [0, 1], [1, 1]]
    assert points("quadrilateral", 2) == square
    hexahedron = points("hexahedron", 2)
    corners, edges = [[*p] for p in square[:4]], [[*p] for p in square[4:8]]
    assert hexahedron[:8] == [[*p, z] for z in (0, 2) for p in corners]
    assert hexahedron[8:20] == [[*p, z] for z in (0, 2) for p in edges] + [[*p, 1] for p in corners]
    assert hexahedron[20:] == [[0, 1, 1], [2, 1, 1], [1, 0, 1], [1, 2, 1], [1, 1, 0], [1, 1, 2], [1, 1, 1]]
    ends = {0: [0, 0, 0], 1: [4, 0, 0], 2: [0, 4, 0], 3: [0, 0, 4]}
    tetrahedron = points("tetrahedron", 4)
    assert tetrahedron[:4] == list(ends.values())
    steps = [
        [ends[a][k] + (ends[b][k] - ends[a][k]) * i // 4 for k in range(3)]
        for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
        for i in (1, 2, 3)
    ]
    assert tetrahedron[4:22] == steps
    # Faces 0 1 3, 2 3 1, 0 3 2 and 0 2 1, then the middle.
    assert tetrahedron[22:25] == [[1, 0, 1], [2, 0, 1], [1, 0, 2]]
    assert tetrahedron[25:28] == [[1, 2, 1], [1, 1, 2], [2, 1, 1]]
    assert tetrahedron[28:31] == [[0, 1, 1], [0, 1, 2], [0, 2, 1]]
    assert tetrahedron[31:] == [[1, 1, 0], [1, 2, 0], [2, 1, 0], [1, 1, 1]]


def test_elements_are_shared():
    e = element("triangle", np.int64(3))
    assert e is element("triangle", 3, "warp-blend") is copy.deepcopy(e) is pickle.loads(pickle.dumps(e))
    assert element("quadrilateral", 2, "gauss").line is element("line", 2, "gauss")
    assert eval(repr(e)) is e
    with pytest.raises(ValueError, match="read-only"):
        e.nodes[0, 0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        e.differentiation[0] *= 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: element("prism", 2),
            r"no reference element for 'prism' cells.*element\(\"hexahedron\", 2\)",
        ),
        (lambda: element("triangle", 0), r"orders from 1 to 10, and not 0.*dg\.element\(\"triangle\", 1\)"),
        (lambda: element("line", 11), r"and not 11\. Refine the mesh"),
        (lambda: element("triangle", 2, "gauss"), r"nodes of a triangle are 'warp-blend', and not 'gauss'"),
        (lambda: element("line", 2, "chebyshev"), r"'gauss-lobatto' or 'gauss', and not 'chebyshev'"),
        (
            lambda: element("triangle", 2).interpolation(np.zeros((2, 7))),
            r"shape \(n, 2\).*and not \(2, 7\)",
        ),
        (lambda: element("line", 2).vandermonde([0.5]), r"points\.reshape\(-1, 1\)"),
        (lambda: element("line", 3).modal_filter(cutoff=3), r"cutoff from 0 to 2.*not 3, "),
        (lambda: element("line", 3).modal_filter(strength=-1), r"not 0, -1 and 8"),
        (lambda: element("line", 3).quadrature(-1), r"degrees from 0 on, and not -1"),
    ],
)
def test_bad_input_is_explained(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_only_products_of_lines_have_a_line():
    with pytest.raises(AttributeError, match="no product of lines: ask `is_tensor`"):
        element("triangle", 2).line
    with pytest.raises(ValueError, match=r"is a whole number, and not 2\.0"):
        element("triangle", 2.0)
