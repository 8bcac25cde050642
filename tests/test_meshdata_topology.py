"""Topology: the lessons' mesh, meshes of all shapes against dictionaries of sets, orientations, bad input."""

import pickle
from itertools import combinations

import numpy as np
import pytest

from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata import entities, shapes

SQUARE = [[0, 0], [1, 0], [0, 1], [1, 1]]
M = md.Mesh(SQUARE, [[0, 1, 2], [1, 3, 2]])


def mixed_square():
    """A quadrilateral between triangles."""
    x = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    return md.Mesh(x, {"quadrilateral": [[0, 1, 4, 3]], "triangle": [[1, 2, 4], [2, 5, 4]]})


def mixed_cubes():
    """A hexahedron, with a pyramid on it, a prism beside it, and a tetrahedron on the pyramid's side."""
    x = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
    x += [[0.5, 0.5, 2], [2, 0, 0], [2, 0, 1], [2, 0, 2]]
    cells = {
        "hexahedron": [[0, 1, 2, 3, 4, 5, 6, 7]],
        "pyramid": [[4, 5, 6, 7, 8]],
        "prism": [[1, 9, 2, 5, 10, 6]],
        "tetrahedron": [[5, 11, 6, 8]],
    }
    return md.Mesh(x, cells)


MESHES = {
    "interval": lambda: md.interval(7),
    "triangle": lambda: md.unit_square(3, 2),
    "quadrilateral": lambda: md.unit_square(3, 2, shape="quadrilateral"),
    "tetrahedron": lambda: md.unit_cube(2, 1, 2),
    "hexahedron": lambda: md.unit_cube(2, 1, 2, shape="hexahedron"),
    "prism": lambda: md.unit_cube(2, 1, 2, shape="prism"),
    "pyramid": lambda: md.unit_cube(2, 1, 1, shape="pyramid"),
    "mixed square": mixed_square,
    "mixed cubes": mixed_cubes,
}


def shuffled(mesh, seed):
    """The mesh with vertices renumbered and a random choice of its cells, in random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(mesh.coordinates))
    new = np.argsort(order)
    cells = {s: new[t][rng.permutation(len(t))[: max(1, len(t) - seed)]] for s, t in mesh.cells.items()}
    return md.Mesh(mesh.coordinates[order], cells, inverted="keep")


def sets(mesh, component):
    """The vertices of each point of a component."""
    m = mesh.closure(component)
    table = m.target("vertex").table
    return [frozenset(row) for row in table.tolist()]


def test_the_mesh_of_the_lessons():
    made = md.unit_square(1)
    assert made == M and np.array_equal(made.coordinates, SQUARE)
    assert M.cells["triangle"].tolist() == [[0, 1, 2], [1, 3, 2]]
    assert M.closure("edge", "vertex").target().table.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert M.closure("cell", "edge").target().table.tolist() == [[2, 1, 0], [4, 2, 3]]
    assert M.exterior().indices.tolist() == [0, 1, 3, 4]
    assert {n: M.points(n).size for n in M.shapes} == {"cell": 2, "edge": 5, "vertex": 4}


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("seed", range(3))
def test_entities_against_sets(name, seed):
    mesh = shuffled(MESHES[name](), seed)
    known = {"vertex": [frozenset([v]) for v in range(len(mesh.coordinates))]}
    found = {}  # vertices of an entity -> (dimension, number of vertices)
    for shape, table in mesh.cells.items():
        for row in table.tolist():
            for dim in range(mesh.dim + 1):
                for local in shapes.SHAPES[shape].entities(dim):
                    found.setdefault(frozenset(row[v] for v in local), (dim, len(local)))
    for component, shape in mesh.shapes.items():
        if component != "vertex":
            known[component] = sets(mesh, component)
            kind = shapes.SHAPES[shape]
            assert len(set(known[component])) == len(known[component])
            assert set(known[component]) == {s for s, key in found.items() if key == (kind.dim, kind.vertices)}
            assert mesh.points(component).size == len(known[component])
    dims = {c: 0 if s == "vertex" else shapes.SHAPES[s].dim for c, s in mesh.shapes.items()}
    for source in known:
        closure, star = mesh.closure(source), mesh.star(source)
        for target in known:
            if dims[target] < dims[source]:
                of = [[i for i, t in enumerate(known[target]) if t <= s] for s in known[source]]
                if any(of):
                    got = closure.target(target)
                    assert [sorted(got.row(i).tolist()) for i in range(len(of))] == of
            if dims[target] > dims[source]:
                of = [[i for i, t in enumerate(known[target]) if s <= t] for s in known[source]]
                for m in [star, *([mesh.support(source)] if dims[target] == dims[source] + 1 else [])]:
                    if any(of):
                        assert [m.target(target).row(i).tolist() for i in range(len(of))] == of
    facets = {c for c in known if dims[c] == mesh.dim - 1}
    cells = [s for c in known if dims[c] == mesh.dim for s in known[c]]
    alone = {f for c in facets for f in known[c] if sum(f <= s for s in cells) == 1}
    for c in known:
        if dims[c] < mesh.dim:
            on = {i for i, s in enumerate(known[c]) if any(s <= f for f in alone)}
            assert set(mesh.exterior(c).indices.tolist()) == on


@pytest.mark.parametrize("name", MESHES)
def test_local_entities_are_in_the_shape_s_order(name):
    mesh = shuffled(MESHES[name](), 1)
    for component, shape in mesh.shapes.items():
        if shape == "vertex":
            continue
        kind = shapes.SHAPES[shape]
        vertices = mesh.closure(component, "vertex").target().table
        for p in mesh.closure(component).targets:
            if p.name in (component, "vertex"):
                continue
            below = shapes.SHAPES[mesh.shapes[p.name]]
            local = [kind.entities(below.dim)[j] for j in kind.numbers(below.dim, below.name)]
            of = mesh.closure(component, p.name).target().table
            own = mesh.closure(p.name, "vertex").target().table
            for row, points in zip(vertices.tolist(), of.tolist(), strict=True):
                for k, point in enumerate(points):
                    assert {row[v] for v in local[k]} == set(own[point].tolist())


def seen_from_canonical(columns):
    """What the code of an orientation promises, by trying all."""
    row = [int(c) for c in columns]
    n = len(row)
    r = row.index(min(row))
    return 2 * r + int(row[(r + 1) % n] > row[(r - 1) % n])


@pytest.mark.parametrize("name", [n for n in MESHES if n != "interval"])
def test_orientations(name):
    mesh = shuffled(MESHES[name](), 2)
    for component, shape in mesh.shapes.items():
        for target in mesh.closure(component).targets:
            if target.name in (component, "vertex"):
                continue
            kind, below = shapes.SHAPES[shape], shapes.SHAPES[mesh.shapes[target.name]]
            local = [kind.entities(below.dim)[j] for j in kind.numbers(below.dim, below.name)]
            vertices = mesh.closure(component, "vertex").target().table
            of = mesh.closure(component, target.name).target().table
            own = mesh.closure(target.name, "vertex").target().table
            got = mesh.orientations(component, target.name)
            assert got.dtype == np.int8 and got.shape == of.shape
            for c, row in enumerate(vertices.tolist()):
                for k, code in enumerate(got[c].tolist()):
                    seen = [row[v] for v in local[k]]
                    there = own[of[c, k]].tolist()
                    assert there == [c.item() for c in entities.canonical([np.array([v])[0] for v in there])]
                    if len(seen) == 2:
                        assert code == (seen[0] > seen[1]) and there == sorted(there)
                        continue
                    assert code == seen_from_canonical(seen)
                    r, m = divmod(code, 2)
                    walk = [seen[(r + (-i if m else i)) % len(seen)] for i in range(len(seen))]
                    assert walk == there


def test_keys_that_do_not_fit_in_63_bits():
    rng = np.random.default_rng(0)
    for length, base in ((2, 2**31 - 1), (3, 2**21 + 7), (3, 2**30), (4, 2**16 + 1), (4, 2**31 - 1)):
        pool = rng.integers(0, base, (40, length))
        pool[:5, 0] = base - 1
        rows = pool[rng.integers(0, 40, 500)]
        table, number = entities.distinct(list(rows.T), base)
        expected, inverse = np.unique(rows, axis=0, return_inverse=True)
        assert np.array_equal(table, expected) and np.array_equal(number, inverse.ravel())


def test_many_vertices_take_the_same_way():
    """Faces whose keys do not fit: vertices far apart."""
    x = np.zeros((2**21 + 100, 3))
    far = 2**21 + np.arange(8)
    cube = md.unit_cube(1)
    x[far] = cube.coordinates
    mesh = md.Mesh(x, far[cube.cells["tetrahedron"]])
    assert np.array_equal(
        mesh.closure("face", "vertex").target().table - 2**21, cube.closure("face", "vertex").target().table
    )
    assert np.array_equal(
        mesh.closure("cell", "face").target().table, cube.closure("cell", "face").target().table
    )


@pytest.mark.parametrize("name", MESHES)
def test_euler_and_volumes(name):
    mesh = MESHES[name]()
    mesh.check()
    counts = [sum(mesh.points(c).size for c in mesh.components(d)) for d in range(mesh.dim + 1)]
    assert sum((-1) ** d * n for d, n in enumerate(counts)) == 1
    total = sum(mesh.volumes(c).sum() for c in mesh.components(mesh.dim))
    assert abs(total - {"mixed square": 2.0, "mixed cubes": 1 + 1 / 3 + 1 / 2 + 1 / 4}.get(name, 1.0)) < 1e-12
    again = pickle.loads(pickle.dumps(mesh))
    assert again == mesh and repr(again) == repr(mesh)
    assert "<" in mesh._repr_html_()


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_inverted_cells_are_found_and_turned(shape):
    mesh = MESHES[shape]()
    cells = mesh.cells[shape].copy()
    mirrored = list(shapes.SHAPES[shape].mirrored)
    cells[1] = cells[1][mirrored]
    with pytest.raises(ValueError, match=r"cells of the shape .* are inverted; the first is number 1"):
        md.Mesh(mesh.coordinates, {shape: cells})
    turned = md.Mesh(mesh.coordinates, {shape: cells}, inverted="flip")
    assert turned == mesh and turned.volumes().min() > 0
    assert md.Mesh(mesh.coordinates, {shape: cells}, inverted="keep").points("cell").size == len(cells)
    flat = mesh.coordinates.copy()
    flat[cells[1]] = flat[cells[1][0]]
    with pytest.raises(ValueError, match="flat or folded"):
        md.Mesh(flat, mesh.cells)


def test_shapes_go_around_as_the_reference_cells():
    from mirabelle.arraytypes.meshdata.referencecells import reference_cell

    for name, kind in shapes.SHAPES.items():
        x = np.array(shapes.REFERENCE_PYRAMID, float) if name == "pyramid" else reference_cell(name).vertices
        cells = np.arange(kind.vertices)[None]
        assert (shapes.corner_volumes(kind, [x[v] for v in cells.T]) > 0).all()
        assert (shapes.corner_volumes(kind, [x[v] for v in cells[:, kind.mirrored].T]) < 0).all()
        assert kind.dim < 3 or len(kind.entities(0)) - len(kind.edges) + len(kind.faces) == 2
        for face in kind.faces:  # Neighbours in a face share an edge.
            around = {frozenset(p) for p in zip(face, (*face[1:], face[0]), strict=True)}
            assert around <= {frozenset(e) for e in kind.edges}


def test_surfaces_and_curves_in_space():
    shell = md.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], {"triangle": list(combinations(range(4), 3))})
    assert shell.exterior().indices.size == 0 and abs(shell.volumes()[0] - 0.5) < 1e-15
    assert repr(shell) == "Mesh(4 triangles, 6 edges, 4 vertices in 3 dimensions)"
    curve = md.Mesh([[0, 0], [3, 4], [3, 5]], {"interval": [[0, 1], [1, 2]]})
    assert curve.volumes().tolist() == [5, 1] and curve.exterior("vertex").indices.tolist() == [0, 2]


def hanging_square():
    x = [[0, 0], [2, 0], [2, 2], [0, 2], [3, 0], [3, 1], [2, 1], [3, 2]]
    return md.Mesh(x, [[0, 1, 2, 3], [1, 4, 5, 6], [6, 5, 7, 2]])


def hanging_tetrahedra():
    x = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1], [0.5, 0, 0]]
    return md.Mesh(x, [[0, 1, 2, 3], [0, 5, 4, 2], [5, 1, 4, 2]], inverted="flip")


def halves():
    """Two tetrahedra on a hexahedron."""
    cube = md.unit_cube(1, shape="hexahedron")
    x = [*cube.coordinates.tolist(), [0.5, 0.5, 2]]
    return md.Mesh(x, {**cube.cells, "tetrahedron": [[4, 5, 7, 8], [4, 7, 6, 8]]})


SHIFTED = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: md.Mesh(SQUARE, [[0, 1, 4]]), IndexError, "Cell 0 of the shape triangle has a vertex 4"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2], [1, -1, 2]]), IndexError, "has a vertex -1"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 1]]), ValueError, "have a vertex twice"),
        (
            lambda: md.Mesh(SQUARE, [[0, 1, 2], [1, 2, 3]]),
            ValueError,
            r"inverted; the first is number 1.*\[1, 2, 3\]",
        ),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2, 3]]), ValueError, "flat or folded at a corner"),
        (lambda: md.Mesh([[0, 0], [1, 0], [2, 0]], [[0, 1, 2]]), ValueError, "flat or folded"),
        (
            lambda: md.Mesh([[0, 0], [1, np.nan], [2, 0]], [[0, 1, 2]]),
            ValueError,
            "Vertex 1 has the coordinates",
        ),
        (lambda: md.Mesh(SQUARE, [[0.0, 1.0, 2.0]]), ValueError, "table of integers"),
        (lambda: md.Mesh(SQUARE, [0, 1, 2]), ValueError, "a row of vertices for each"),
        (lambda: md.Mesh([[["a"]]], [[0, 1, 2]]), ValueError, "table of real numbers"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2, 3, 0]]), ValueError, "no cells of 5 vertices in 2 dimensions"),
        (lambda: md.Mesh(SQUARE, {"tetrahedron": [[0, 1, 2, 3]]}), ValueError, "3 or more dimensions"),
        (lambda: md.Mesh(SQUARE, {"triangel": [[0, 1, 2]]}), ValueError, "no shape 'triangel'"),
        (
            lambda: md.Mesh(SQUARE, {"triangle": [[0, 1, 2]], "interval": [[0, 1]]}),
            ValueError,
            "of one dimension",
        ),
        (lambda: md.Mesh(SQUARE, {}), ValueError, "of one dimension"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2]], inverted="yes"), ValueError, "not 'yes'"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2], [1, 2, 0]]).check(), ValueError, "same vertices as another"),
        (
            lambda: md.Mesh(SHIFTED, [[0, 1, 2], [0, 1, 3], [0, 1, 5]]).check(),
            ValueError,
            "more than two cells",
        ),
        (lambda: hanging_square().check(), ValueError, "vertex 6 lies inside the edge between"),
        (lambda: hanging_square().exterior(), ValueError, "hanging vertices"),
        (lambda: hanging_tetrahedra().check(), ValueError, "vertex 5 lies inside the edge between"),
        (lambda: halves().check(), ValueError, "four vertices for the cell at one side and three"),
        (lambda: M.points("face"), KeyError, "no component 'face'"),
        (
            lambda: mixed_square().points("cell"),
            KeyError,
            r"several shapes: they are \['quadrilateral', 'triangle'\]",
        ),
        (lambda: mixed_cubes().exterior(), ValueError, "name one"),
        (lambda: M.support("cell"), ValueError, "Cells bound nothing"),
        (lambda: M.orientations("cell", "vertex"), ValueError, "orientations of edges and faces"),
        (lambda: M.with_coordinates([[0, 0]]), ValueError, "1 new coordinates"),
        (lambda: M.with_coordinates(-M.coordinates[:, ::-1] * [[1, -1]]), None, ""),
        (lambda: M.marked(a=M.points("cell")), TypeError, "is a subset of points"),
        (lambda: M.marked(a=md.unit_square(2).exterior()), ValueError, "'a' is a subset of 16 points 'edge'"),
        (lambda: M.marked(a=md.unit_cube(1).exterior()), ValueError, "'a' is a subset of 18 points 'face'"),
        (lambda: M.marked(a=lambda x: x), ValueError, "a truth value for each"),
        (lambda: M.marked(a=lambda x: x[:, 0] > 1), ValueError, "No exterior facet"),
        (lambda: md.Mesh(SQUARE, [[0, 1, 2]], markers={"a": [0]}), TypeError, "is a subset of points"),
        (lambda: md.unit_square(0), ValueError, "one or more cells"),
        (lambda: md.unit_square(2, shape="prism"), ValueError, "none of those that fill"),
    ],
)
def test_bad_input(make, error, text):
    if error is None:
        make()
        return
    with pytest.raises(error, match=text):
        make()


def test_a_crack_is_no_hanging_vertex():
    x = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [1, 0]]
    md.Mesh(x, [[0, 1, 4, 3], [6, 2, 5, 4]]).check()


@pytest.mark.parametrize("name", MESHES)
def test_renumbered(name):
    mesh = MESHES[name]()
    for cells, vertices in (("hilbert", None), ("rcm", "rcm"), (None, "hilbert"), ("hilbert", "keep")):
        new = mesh.renumbered(cells, vertices)
        for c in mesh.components(mesh.dim):
            old = {
                tuple(map(tuple, mesh.coordinates[row].tolist()))
                for row in mesh.closure(c, "vertex").target().table
            }
            assert old == {
                tuple(map(tuple, new.coordinates[row].tolist()))
                for row in new.closure(c, "vertex").target().table
            }
        assert np.array_equal(np.sort(mesh.coordinates, axis=0), np.sort(new.coordinates, axis=0))


def test_numbering_bad_input():
    with pytest.raises(TypeError, match="in which order"):
        M.renumbered()
    with pytest.raises(ValueError, match="leaves some out"):
        M.renumbered(cells=[0, 0])
    with pytest.raises(ValueError, match='"rcm" or "hilbert"'):
        M.renumbered(cells="best")
    with pytest.raises(ValueError, match="dictionary of the shapes"):
        mixed_square().renumbered(cells=[0])


def test_meshes_without_cells():
    none = md.Mesh(SQUARE, {"triangle": np.zeros((0, 3), int), "quadrilateral": [[0, 1, 3, 2]]}).check()
    assert none.points("triangle").size == 0 and none.exterior().indices.tolist() == [0, 1, 2, 3]
    assert none.support("edge", "triangle").target().values.size == 0
    assert none.part({"triangle": [], "quadrilateral": [0]}, 0).owned("vertex") == 4
    empty = md.Mesh(np.zeros((0, 3)), np.zeros((0, 4), int)).check()
    assert repr(empty) == "Mesh(0 tetrahedra, 0 faces, 0 edges, 0 vertices in 3 dimensions)"
    assert empty.renumbered("hilbert") == empty and empty.volumes().size == 0


@pytest.mark.parametrize("name", ["interval", "triangle", "quadrilateral", "mixed square"])
def test_extruded(name):
    base = MESHES[name]()
    for c in (*base.components(base.dim), *base.facets):
        some = base.points(c).subset([1] if base.points(c).size > 1 else [0])
        base = base.marked(**{f"some {c}": some})
    z = [0.0, 0.5, 2.0]
    mesh = md.extruded(base, z).check()
    flat = sum(base.volumes(c).sum() for c in base.components(base.dim))
    assert abs(sum(mesh.volumes(c).sum() for c in mesh.components(mesh.dim)) - 2 * flat) < 1e-12
    n = len(base.coordinates)
    for table in mesh.cells.values():
        assert np.array_equal(table[: len(table) // 2] + n, table[len(table) // 2 :])
    for marker, height in (("bottom", 0), ("top", 2)):
        found = {k: v for k, v in mesh.markers.items() if k.startswith(marker)}
        assert sum(map(len, found.values())) == sum(map(len, base.cells.values()))
        assert all((mesh.midpoints(s.points.name)[s.indices, -1] == height).all() for s in found.values())
    for marker, subset in base.markers.items():
        middle, high = base.midpoints(subset.points.name)[subset.indices], mesh.markers[marker]
        at = mesh.midpoints(high.points.name)[high.indices]
        assert (
            len(at) == 2 * len(subset) and np.allclose(at[:, :-1], middle) and sorted(at[:, -1]) == [0.25, 1.25]
        )


def test_extruded_bad_input():
    with pytest.raises(ValueError, match="rising heights"):
        md.extruded(M, [1.0, 0.0])
    with pytest.raises(ValueError, match="on a line or in a plane"):
        md.extruded(md.unit_cube(1), [0.0, 1.0])


def test_to_show_a_large_mesh_nothing_is_sought():
    mesh = md.unit_square(300)
    assert repr(mesh) == "Mesh(180000 triangles, 90601 vertices in 2 dimensions)"
    assert "not counted yet" in mesh._repr_html_() and not mesh.topology._found
    assert mesh.axis_of("vertex", "cell").extents == {"cell": 180000, "vertex": 90601}
    assert not mesh.topology._found and mesh.points("edge").size == 270600 and "270600 edges" in repr(mesh)


@pytest.mark.parametrize("dim", [2, 3])
def test_random_triangulations(dim):
    spatial = pytest.importorskip("scipy.spatial")
    for seed in range(3):
        x = np.random.default_rng(seed).random((12 * dim, dim))
        cells = spatial.Delaunay(x).simplices
        mesh = md.Mesh(x, cells, inverted="flip").check()
        hull = spatial.ConvexHull(x)
        assert {frozenset(f) for f in hull.simplices.tolist()} == {
            s for i, s in enumerate(sets(mesh, mesh.facets[0])) if i in set(mesh.exterior().indices.tolist())
        }
        assert abs(mesh.volumes().sum() - hull.volume) < 1e-12
        counts = [mesh.points(mesh.components(d)[0]).size for d in range(dim + 1)]
        assert sum((-1) ** d * n for d, n in enumerate(counts)) == 1


def test_marked():
    cube = md.unit_cube(2, shape="prism").marked(low=lambda x: x[:, 2] == 0, all=lambda x: x[:, 0] > -1)
    assert {k: len(s) for k, s in cube.markers.items()} == {
        "low": 8,
        "all triangle": 16,
        "all quadrilateral": 16,
    }
    again = cube.marked(some=cube.points("cell").subset([3]))
    assert again == cube and hash(again) == hash(cube) and again.topology is cube.topology
    assert "some" in again.markers and "some" not in cube.markers
    with pytest.raises(TypeError):
        cube.markers["a"] = None
    assert pickle.loads(pickle.dumps(again)).markers["some"].indices.tolist() == [3]
