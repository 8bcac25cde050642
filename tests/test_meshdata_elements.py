"""Elements and quadrature: against basix, against their definitions, and at their edges."""

from itertools import permutations

import numpy as np
import pytest

from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.quadrature import gauss_product
from mirabelle.arraytypes.meshdata.referencecells import reference_cell

SHAPES = ["interval", "triangle", "quadrilateral", "tetrahedron", "hexahedron", "prism"]
LAGRANGE = [(s, k) for s in SHAPES for k in (1, 2, 3, 4) if k < 4 or s != "hexahedron"]


def points_in(shape, n=7, seed=0):
    return np.random.default_rng(seed).random((n, reference_cell(shape).dim)) / 3


@pytest.mark.parametrize("family", ["P", "DP"])
@pytest.mark.parametrize("shape, degree", LAGRANGE)
def test_lagrange_is_one_at_its_node_and_adds_up_to_one(family, shape, degree):
    if family == "P" and shape == "prism" and degree > 1:
        pytest.skip("refused: faces are of two shapes")
    e, x = md.element(family, shape, degree), points_in(shape)
    assert np.abs(e.tabulate(e.points) - np.eye(e.size)).max() < 1e-12
    assert np.abs(e.tabulate(x).sum(-1) - 1).max() < 1e-13
    h = 1e-6
    for axis in range(e.dim):
        step = h * np.eye(e.dim)[axis]
        slope = (e.tabulate(x + step) - e.tabulate(x - step)) / (2 * h)
        assert np.abs(e.tabulate(x, derivatives=1)[..., axis] - slope).max() < 1e-7
    # x times the degree is in the space of all of them, and points may have any axes.
    assert np.allclose(e.tabulate(x[None, :, None])[0, :, 0] @ e.points**degree, x**degree, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_lie_on_the_entities_that_own_them(shape):
    for degree in (1, 2, 3, 4) if shape != "prism" else (1,):
        e, at = md.element("P", shape, degree), 0
        for kind in [k for k in ("cell", "face", "edge", "vertex") if k in e.cell.entities]:
            n = e.entity_dofs.get(kind, 0)
            for vertices in e.cell.entities[kind]:
                corners = e.cell.vertices[list(vertices)]
                low, high = corners.min(0), corners.max(0)
                nodes = e.points[at : at + n]
                assert ((nodes >= low - 1e-14) & (nodes <= high + 1e-14)).all()
                at += n
        assert at == e.size == len(np.unique(e.points.round(12), axis=0))


@pytest.mark.parametrize("vertices", [2, 3, 4])
def test_the_order_of_an_entity_follows_its_nodes(vertices):
    """What the order says is where a node of the cell's entity lies among those of the mesh's."""
    from mirabelle.arraytypes.meshdata.elements import inner_nodes

    shape, kind, name = {
        2: ("triangle", "edge", "interval"),
        3: ("tetrahedron", "face", "triangle"),
        4: ("hexahedron", "face", "quadrilateral"),
    }[vertices]
    corners = np.random.default_rng(3).random((vertices, 3))
    if vertices == 4:
        corners[3] = corners[0] + corners[2] - corners[1]  # a parallelogram
    seen = list(permutations(range(vertices)))
    if vertices == 4:
        seen = [s for s in seen if abs(s[0] - s[2]) == 2]
    for degree in (2, 3, 4, 5):
        e = md.element("P", shape, degree)
        for s in seen if e.entity_dofs.get(kind, 0) else []:
            mine, theirs = inner_nodes(corners, name, degree), inner_nodes(corners[list(s)], name, degree)
            assert np.allclose(theirs[e.order(kind, s)], mine)


@pytest.mark.parametrize("shape", ["triangle", "tetrahedron"])
def test_whitneys_forms_have_one_flux_or_circulation(shape):
    cell = reference_cell(shape)
    s, w = gauss_product("interval", 3)
    N = md.element("N", shape, 1)
    for j, (a, b) in enumerate(cell.vertices[list(e)] for e in cell.entities["edge"]):
        along = np.einsum("q,qkd,d->k", w, N.tabulate(a + s * (b - a)), b - a)
        assert np.allclose(along, np.arange(N.size) == j)
    RT = md.element("RT", shape, 1)
    for j, facet in enumerate(
        cell.vertices[list(f)] for f in cell.entities["edge" if cell.dim == 2 else "face"]
    ):
        a, *others = facet
        t = np.array(others) - a
        normal = np.array([t[0, 1], -t[0, 0]]) if cell.dim == 2 else np.cross(*t)
        p, w = gauss_product("interval" if cell.dim == 2 else "triangle", 3)
        assert np.allclose(np.einsum("q,qkd,d->k", w, RT.tabulate(a + p @ t), normal), np.arange(RT.size) == j)
    for e in (RT, N):
        x, h = points_in(shape), np.eye(cell.dim)
        slopes = np.stack([e.tabulate(x + d) - e.tabulate(x) for d in h], axis=-1)  # they are affine
        assert np.allclose(e.tabulate(x, derivatives=1), slopes)
    assert np.allclose(np.trace(N.tabulate(x, 1), axis1=-2, axis2=-1), 0)


def test_tables_are_those_of_basix():
    basix = pytest.importorskip("basix")
    variant = basix.LagrangeVariant.equispaced
    for shape, degree in LAGRANGE:
        e, x = md.element("P" if shape != "prism" else "DP", shape, degree), points_in(shape)
        E = basix.create_element(basix.ElementFamily.P, basix.CellType[shape], degree, variant)
        same = np.abs(E.points[:, None] - e.points).max(-1).argmin(0)
        table = E.tabulate(1, x)[..., same, 0]
        assert np.abs(table[0] - e.tabulate(x)).max() < 1e-13
        assert np.abs(np.moveaxis(table[1:], 0, -1) - e.tabulate(x, 1)).max() < 1e-12
    for family, theirs in (("RT", basix.ElementFamily.RT), ("N", basix.ElementFamily.N1E)):
        for shape in ("triangle", "tetrahedron"):
            e, x = md.element(family, shape, 1), points_in(shape)
            table = basix.create_element(theirs, basix.CellType[shape], 1).tabulate(0, x)[0]
            sign = -1 if (family, shape) == ("RT", "triangle") else 1  # their normals turn left
            assert np.abs(sign * table - e.tabulate(x)).max() < 1e-13


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", [md.quadrature, gauss_product])
def test_rules_are_exact(shape, rule):
    """Against integrals in closed form: i! j! / (i + j + 2)! on a triangle, and products of such."""
    from math import factorial

    cell = reference_cell(shape)
    for degree in range(8):
        x, w = rule(shape, degree)
        assert x.shape == (len(w), cell.dim) and (rule is md.quadrature or (w > 0).all())
        assert (x >= 0).all() and (cell.barycentric()[0] @ x.T + cell.barycentric()[1][:, None] > -1e-14).all()
        for powers in np.ndindex(*(degree + 1,) * cell.dim):
            if any(sum(powers[i] for i in axes) > degree for axes in cell.factors):
                continue
            if shape == "prism" and sum(powers) > degree:
                continue
            exact = 1.0
            for axes in cell.factors:
                ks = [powers[i] for i in axes]
                exact *= np.prod([float(factorial(k)) for k in ks]) / factorial(sum(ks) + len(ks))
            assert abs(w @ np.prod(x**powers, axis=1) - exact) < 1e-13


def test_a_rule_is_its_callers():
    x, w = md.quadrature("triangle", 2)
    x[:], w[:] = 0, 0
    assert md.quadrature("triangle", 2)[1].sum() == pytest.approx(0.5)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: md.element("BDM", "triangle", 1), "no family 'BDM'"),
        (lambda: md.element("P", "triangle", 7), "from 1 to 6, not 7"),
        (lambda: md.element("P", "triangle", 0), "from 1 to 6, not 0"),
        (lambda: md.element("DP", "triangle", -1), "from 0 to 6, not -1"),
        (lambda: md.element("P", "triangle", 1.5), "not 1.5"),
        (lambda: md.element("P", "triangle", True), "not True"),
        (lambda: md.element("P", "icosahedron", 1), "no reference cell 'icosahedron'"),
        (lambda: md.element("Q", "triangle", 1), 'md.element\\("P", "triangle", 1\\)'),
        (lambda: md.element("P", "prism", 2), "of two shapes"),
        (lambda: md.element("RT", "tetrahedron", 2), "degree 2 on a tetrahedron are not here"),
        (lambda: md.element("RT", "triangle", 5), "degree 5 on a triangle are not here"),
        (lambda: md.element("N", "quadrilateral", 1), "on a quadrilateral are not here"),
        (lambda: md.element("P", "triangle", 1).tabulate([0.5]), "have 2 coordinates"),
        (lambda: md.element("P", "triangle", 1).tabulate(0.5), "have 2 coordinates"),
        (lambda: md.element("P", "triangle", 1).tabulate([[0.5, 0]], derivatives=2), "not 2"),
        (lambda: md.quadrature("triangle", -1), "-1 is none"),
        (lambda: md.quadrature("triangle", 2.0), "2.0 is none"),
        (lambda: md.quadrature("round", 2), "no reference cell 'round'"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", ["Element", "element", "quadrature"])
def test_examples_run(name):
    import doctest

    for test in doctest.DocTestFinder().find(getattr(md, name), name, globs={}):
        assert not doctest.DocTestRunner().run(test).failed
