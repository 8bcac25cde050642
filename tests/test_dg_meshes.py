"""Meshes of `mirabelle.dg`: who touches whom, where points are, files, quality, bad input."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from mirabelle import dg
from mirabelle.dg.meshes import connectivity
from mirabelle.dg.meshes.connectivity import face_vertices, symmetries

CELLS = {"line": 1, "triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}
SIZES = (2.0, 3.0, 1.0)


def face_points(cell, order):
    """Nodes of a face's reference cell, and those of all faces in the cell's, in the order of face points."""
    reference = dg.element(cell, order)
    if reference.face_cell == "point":
        points = np.zeros((1, 0))
    else:
        points = dg.element(reference.face_cell, order).nodes
    return points, np.concatenate([reference.face_map(f, points) for f in range(len(reference.faces))])


def shifts(mesh, order):
    """How far each face point is from the neighbour's that it meets, (d, Nf, nq, K)."""
    points, everywhere = face_points(mesh.cell, order)
    meets = mesh.face_permutation(points)
    assert meets.dtype == np.int32
    assert np.array_equal(meets.ravel()[meets], np.arange(meets.size).reshape(meets.shape))
    x = mesh.positions(everywhere)
    away = x.reshape(mesh.dims, -1)[:, meets] - x
    return away.reshape(mesh.dims, -1, len(points), len(mesh))


def turned(mesh, seed=0):
    """The same cells, each seen from a random side: its vertices in another order that keeps it positive."""
    rng = np.random.default_rng(seed)
    vertices = dg.element(mesh.cell, 1).vertices
    allowed = []
    for p in permutations(range(len(vertices))) if len(vertices) < 8 else cube_rotations():
        map, *_ = np.linalg.lstsq(np.c_[vertices, np.ones(len(vertices))], vertices[list(p)], rcond=None)
        if (
            np.allclose(np.c_[vertices, np.ones(len(vertices))] @ map, vertices[list(p)])
            and np.linalg.det(map[:-1]) > 0
        ):
            allowed.append(p)
    choice = np.array(allowed)[rng.integers(len(allowed), size=len(mesh))].T
    return dg.Mesh.from_cells(
        mesh.cell,
        np.take_along_axis(mesh.cells, choice, 0),
        np.take_along_axis(mesh.coordinates, choice[None], 1),
    )


def cube_rotations():
    for axes in permutations(range(3)):
        for flips in product((1, -1), repeat=3):
            yield (
                np.arange(8)
                .reshape(2, 2, 2)[tuple(slice(None, None, s) for s in flips)]
                .transpose(axes)
                .ravel()
                .tolist()
            )


def wavy(x):
    """A map that keeps the sides of the unit box where they are, or shifts them alike."""
    bump = 0.05 * np.prod([np.sin(2 * np.pi * a) for a in x], axis=0)
    return tuple(a + bump for a in x)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("counts", [(3, 4, 2), (1, 2, 1), (2, 1, 1), (1, 1, 1)])
@pytest.mark.parametrize("periodic", [False, True, (True, False, True)])
def test_points_meet(cell, counts, periodic):
    d = CELLS[cell]
    wrap = np.broadcast_to(periodic, (3,))[:d]
    mesh = dg.box(counts[:d], upper=SIZES[:d], cell=cell, periodic=tuple(wrap))
    assert np.isclose(mesh.volumes.sum(), np.prod(SIZES[:d]))
    assert np.array_equal(
        np.sort(mesh.boundary_names), [f"{a}_{s}" for a, w in zip("xyz", wrap) if not w for s in ("neg", "pos")]
    )
    assert mesh.cells.max() < np.prod([n + (not w) for n, w in zip(counts, wrap)]) or wrap.any()
    assert len(np.unique(mesh.cells)) == np.prod([n + (not w) for n, w in zip(counts, wrap)])
    for order in (1, 3):
        away = shifts(mesh, order)
        assert np.allclose(away, away[:, :, :1])
        away = np.abs(away[:, :, 0])  # (d, Nf, K): zero, or one period along one axis
        size = np.array(SIZES[:d])[:, None, None]
        assert (np.isclose(away, 0) | (np.isclose(away, size) & wrap[:, None, None])).all()
        assert np.array_equal(~np.isclose(away, 0).all(0), mesh.periodic_faces)
        # Each periodic side of the box is met, from both sides.
        for a in range(d):
            area = np.prod(counts[:d]) / counts[a] * {"triangle": 1, "tetrahedron": 2}.get(cell, 1)
            assert (away[a] > 0.5 * SIZES[a]).sum() == (2 * area if wrap[a] else 0)
    assert mesh.open_faces.sum() == sum(len(f) for f, _ in mesh.boundaries.values())
    mesh.check_boundaries(mesh.boundary_names)


@pytest.mark.parametrize("cell", [c for c in CELLS if c != "line"])
def test_all_orientations(cell):
    d = CELLS[cell]
    mesh = turned(dg.box((4,) * d, cell=cell))
    inside = ~mesh.open_faces
    found = np.unique(mesh.orientations[inside])
    assert len(found) == len(symmetries(dg.element(cell, 1).face_cell))
    for order in (1, 2, 3, 4):
        assert np.allclose(shifts(mesh, order), 0)
    curved = mesh.map(wavy, 4)
    assert np.allclose(shifts(curved, 4), 0, atol=1e-13)
    assert np.isclose(curved.volumes.sum(), 1)
    assert (curved.volumes > 0).all() and np.ptp(curved.volumes) > 1e-4


@pytest.mark.parametrize("cell", CELLS)
def test_curved_and_periodic(cell):
    d = CELLS[cell]
    for order in (1, 2, 3, 4):
        mesh = dg.box((3,) * d, cell=cell, periodic=True, mapping=wavy, order=order)
        assert mesh.order == order and not mesh.boundaries and not mesh.open_faces.any()
        away = shifts(mesh, 3)
        assert np.allclose(away, np.rint(away), atol=1e-13)
    assert np.isclose(mesh.volumes.sum(), 1)
    assert mesh.volumes.sum() == pytest.approx(mesh.reordered().volumes.sum())


def test_names_and_cut_out_parts():
    mesh = dg.box(
        (15, 5),
        upper=(3.0, 1.0),
        cell="triangle",
        without=lambda x: (x[0] > 0.6) & (x[1] < 0.2),
        names={"x_neg": "inflow", "y_neg": "wall", "y_pos": "wall"},
    )
    assert len(mesh) == 2 * 63 and np.isclose(mesh.volumes.sum(), 3 - 0.2 * 2.4)
    assert {n: len(f) for n, (f, _) in mesh.boundaries.items()} == {
        "inflow": 5,
        "x_pos": 4,
        "wall": 18,
        "step": 13,
    }
    x, y = mesh.face_centres(*mesh.boundaries["step"])
    assert ((np.isclose(x, 0.6) & (y < 0.2)) | (np.isclose(y, 0.2) & (x > 0.6))).all()
    named = mesh.named(outflow=lambda x: x[0] > 3 - 1e-9)
    assert named.boundary_names == ("inflow", "outflow", "step", "wall")
    with pytest.raises(ValueError, match=r"no sides \['left'\]"):
        dg.box(4, names={"left": "wall"})


def test_cells_in_another_order():
    mesh = dg.box((4, 5, 3), cell="tetrahedron", periodic=(True, False, False), mapping=wavy, order=2)
    mixed = mesh.renumbered(np.random.default_rng(0).permutation(len(mesh)))
    near = mixed.reordered()
    for other in (mixed, near):
        away = shifts(other, 2)
        assert np.allclose(away, np.rint(away), atol=1e-13)
        assert sorted(other.boundaries) == sorted(mesh.boundaries)
        for name in mesh.boundaries:
            assert np.allclose(
                np.sort(other.face_centres(*other.boundaries[name])),
                np.sort(mesh.face_centres(*mesh.boundaries[name])),
            )
    distance = lambda m: np.abs(m.neighbour_cells - np.arange(len(m))).mean()
    assert distance(near) < 0.5 * distance(mixed)
    assert len({m.fingerprint for m in (mesh, mixed, near)}) == 3
    assert dg.box(4).fingerprint != dg.box(4, names={"x_neg": "left"}).fingerprint


def test_large():
    mesh = dg.box((20, 20, 20), cell="tetrahedron")
    assert len(mesh) == 48000 and mesh.open_faces.sum() == 6 * 800
    assert np.isclose(mesh.volumes.sum(), 1)
    assert np.array_equal(mesh.volumes.min(), mesh.volumes.max()) or np.isclose(np.ptp(mesh.volumes), 0)


def test_quality():
    report = dg.box((2, 2), upper=(4.0, 1.0)).quality()
    assert (
        np.allclose(report.aspect, 4)
        and np.allclose(report.skewness, 0)
        and np.allclose(report.jacobian_ratio, 1)
    )
    text = np.array([[0, 1, 2]]).T
    regular = dg.Mesh.from_cells("triangle", text, np.array([[[0.0], [1], [0.5]], [[0.0], [0], [0.75**0.5]]]))
    assert np.isclose(regular.quality().aspect[0], 1) and np.isclose(regular.quality().skewness[0], 0)
    curved = dg.box((4, 4), cell="triangle", mapping=wavy, order=3).quality()
    assert 0 < curved.jacobian_ratio.min() < 0.99
    assert "worst cell" in repr(curved) and "<table>" in curved._repr_html_()
    for cell, d in CELLS.items():
        report = dg.box((2,) * d, cell=cell).quality()
        assert (report.aspect >= 1 - 1e-12).all() and (
            (report.skewness >= -1e-12) & (report.skewness < 1)
        ).all()


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for cell, d in CELLS.items():
        mesh = dg.box((2,) * d, cell=cell, periodic=(True, False, False)[:d], mapping=wavy, order=2)
        axes = mesh.plot()
        assert axes.get_xlabel() == "x"
        axes.figure.canvas.draw()
        plt.close(axes.figure)


# Bad input


def test_inverted():
    with pytest.raises(ValueError, match="inverted or flat"):
        dg.box((2, 2), mapping=lambda x: (x[1], x[0]))
    with pytest.raises(ValueError, match="inverted or flat"):
        dg.box((2, 2), cell="triangle", mapping=lambda x: (x[0] + 3 * x[0] * x[1] * (x[0] - 1), x[1]), order=3)
    with pytest.raises(ValueError, match="tuple of length 1, in a space of the dimension 2"):
        dg.box((2, 2)).map(lambda x: (x[0],))


def corners(points, cells):
    return np.array(points, dtype=float).T[:, np.array(cells).T]


def test_not_conforming():
    # One square beside two half as high.
    points = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 0.5), (2, 0), (2, 0.5), (2, 1)]
    cells = [(0, 1, 2, 3), (2, 4, 5, 6), (4, 3, 6, 7)]
    with pytest.raises(ValueError, match=r"hanging nodes, such as at \(1.0, 0.5\)"):
        dg.Mesh.from_cells("quadrilateral", np.array(cells).T, corners(points, cells))
    points = [(0, 0), (1, 0), (0, 1), (1, 0), (1, 1), (0, 1)]
    cells = [(0, 1, 2), (3, 4, 5)]
    with pytest.raises(ValueError, match="points given twice"):
        dg.Mesh.from_cells("triangle", np.array(cells).T, corners(points, cells))
    cells = [(0, 1, 2), (0, 1, 2), (0, 1, 2)]
    with pytest.raises(ValueError, match="more than two cells share"):
        dg.Mesh.from_cells("triangle", np.array(cells).T, corners(points, cells))
    points = [(x, y, z) for x in (0, 1, 2) for y in (0, 1) for z in (0, 1)]
    cells = [(0, 1, 2, 3, 4, 5, 6, 7), (4, 5, 7, 6, 8, 9, 10, 11)]
    with pytest.raises(ValueError, match="disagree about the order"):
        dg.Mesh.from_cells("hexahedron", np.array(cells).T, corners(points, cells))
    with pytest.raises(ValueError, match="do not match"):
        link = np.full(9, -1)
        link[[6, 7, 8]] = [0, 1, 5]
        mesh = dg.box((2, 2))
        dg.Mesh.from_cells("quadrilateral", mesh.cells, mesh.coordinates, None, [link])


def test_missing_names():
    mesh = dg.box((2, 2))
    mesh = dg.Mesh.from_cells("quadrilateral", mesh.cells, mesh.coordinates)
    mesh.check_boundaries(["unnamed"])
    with pytest.raises(
        ValueError,
        match=r"mesh are unnamed, but conditions were given for none. Add .* Faces without .* at \(0.0",
    ):
        mesh.check_boundaries([])
    mesh = mesh.named(all=lambda x: x[0] > -1)
    mesh.check_boundaries(["all"])
    with pytest.raises(ValueError, match="mesh are all, but conditions were given for all, wall"):
        mesh.check_boundaries(["all", "wall"])


def test_wrong_boxes():
    for bad in ({"cells": (2, 2), "cell": "tetrahedron"}, {"cells": 0}, {"cells": (2, 2), "cell": "pyramid"}):
        with pytest.raises(ValueError, match="cannot be made of cells"):
            dg.box(**bad)
    with pytest.raises(ValueError, match="not below"):
        dg.box(4, lower=1.0)
    with pytest.raises(ValueError, match="one value for each"):
        dg.box((2, 2), upper=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="No cells are left"):
        dg.box(4, without=lambda x: x[0] > -1)
    with pytest.raises(ValueError, match="not symmetric"):
        dg.box((2, 2)).face_permutation(np.array([[-1.0], [0.5]]))


# Files


def square(kind, **more):
    """The unit square, of two triangles or a square, as meshio writes it."""
    import meshio

    points = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    cells = {"triangle": [[0, 1, 2], [0, 2, 3]], "quad": [[0, 1, 2, 3]]}[kind]
    blocks = [
        (kind, np.array(cells)),
        ("line", np.array([[0, 1], [2, 3]])),
        ("line", np.array([[1, 2], [3, 0]])),
    ]
    tags = [np.ones(len(cells), int), np.array([7, 8]), np.array([9, 9])]
    data = {"gmsh:physical": tags, "gmsh:geometrical": tags}
    names = {"floor": np.array([7, 1]), "top": np.array([8, 1])}
    return meshio.Mesh(points, blocks, cell_data=data, field_data=names, **more)


@pytest.mark.parametrize("kind, cell", [("triangle", "triangle"), ("quad", "quadrilateral")])
def test_file(tmp_path, kind, cell):
    pytest.importorskip("meshio")
    square(kind).write(tmp_path / "a.msh", file_format="gmsh22", binary=False)
    mesh = dg.read_mesh(tmp_path / "a.msh")
    assert (mesh.cell, mesh.order) == (cell, 1) and np.isclose(mesh.volumes.sum(), 1)
    mesh.check_boundaries(["floor", "top", "9"])
    assert np.allclose(mesh.face_centres(*mesh.boundaries["floor"]), [[0.5], [0.0]])
    mesh = dg.read_mesh(tmp_path / "a.msh", periodic=[("floor", "top")])
    assert (
        mesh.boundary_names == ("9",) and mesh.periodic_faces.sum() == 2 and np.allclose(shifts(mesh, 2)[0], 0)
    )
    with pytest.raises(ValueError, match=r"no boundaries \['left'\]"):
        dg.read_mesh(tmp_path / "a.msh", periodic=[("left", "top")])
    with pytest.raises(ValueError, match="opposite each other"):
        dg.read_mesh(tmp_path / "a.msh", periodic=[("floor", "9")])


def test_numbered_the_other_way_round(tmp_path):
    pytest.importorskip("meshio")
    file = square("triangle")
    file.points[:, 0] *= -1
    file.write(tmp_path / "a.msh", file_format="gmsh22", binary=False)
    mesh = dg.read_mesh(tmp_path / "a.msh")
    assert np.isclose(mesh.volumes.sum(), 1) and np.allclose(shifts(mesh, 3), 0)


def test_bad_files(tmp_path):
    meshio = pytest.importorskip("meshio")
    path = tmp_path / "a.vtu"

    def refuse(match, points, cells):
        meshio.Mesh(np.array(points, dtype=float), cells).write(path)
        with pytest.raises(ValueError, match=match):
            dg.read_mesh(path)

    points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (2, 0, 0), (0.5, 0, 1)]
    refuse("cells of one type", points, [("quad", [[0, 1, 2, 3]]), ("triangle", [[1, 4, 2]])])
    refuse("pyramid", points, [("pyramid", [[0, 1, 2, 3, 5]])])
    refuse("that extend along 'z', too", points, [("triangle", [[0, 1, 5]])])
    refuse("inverted", points, [("triangle", [[0, 1, 2], [0, 3, 2]])])
    eight = [*points[:4], (0.5, 0, 0), (1, 0.5, 0), (0.5, 1, 0), (0, 0.5, 0)]
    refuse("no quadrilaterals with 8 nodes", eight, [("quad8", [[0, 1, 2, 3, 4, 5, 6, 7]])])
    path.write_text("no mesh")
    with pytest.raises(ValueError, match="cannot read"):
        dg.read_mesh(path)


def geometry(shape, order, more=""):
    return f'SetFactory("OpenCASCADE"); {shape}\nMesh.ElementOrder = {order}; Mesh.MeshSizeMax = 0.7;\n{more}\n'


def test_curved_files(tmp_path):
    gmsh = pytest.importorskip("gmsh", exc_type=Exception)
    pytest.importorskip("meshio")
    assert gmsh
    path = tmp_path / "a.geo"
    round_in = {2: 'Physical Curve("rim") = {1}; Physical Surface("all") = {1};'}
    round_in[3] = 'Physical Surface("rim") = {Boundary{Volume{1};}}; Physical Volume("all") = {1};'
    for shape, d, volume, quads, tolerance in (
        ("Disk(1) = {0, 0, 0, 1};", 2, np.pi, "", (0.2, 1e-3, 2e-4, 1e-5)),
        ("Disk(1) = {0, 0, 0, 1};", 2, np.pi, "Mesh.SubdivisionAlgorithm = 1;", (0.1, 1e-4, 2e-5, 1e-6)),
        ("Sphere(1) = {0, 0, 0, 1};", 3, np.pi * 4 / 3, "", (0.6, 1e-2, 1e-2, 1e-3)),
        (
            "Cylinder(1) = {0, 0, 0, 0, 0, 1, 1};",
            3,
            np.pi,
            "Mesh.SubdivisionAlgorithm = 2;",
            (0.1, 1e-4, 1e-4, 1e-6),
        ),
    ):
        for order in (1, 2, 3, 4) if d == 2 else (2, 3):
            path.write_text(geometry(shape, order, quads + round_in[d]))
            mesh = dg.read_mesh(path)
            assert mesh.order == order and mesh.boundary_names == ("rim",)
            assert abs(mesh.volumes.sum() - volume) < tolerance[order - 1]
            assert np.allclose(shifts(mesh, order), 0, atol=1e-12)


def test_periodic_files(tmp_path):
    pytest.importorskip("gmsh", exc_type=Exception)
    pytest.importorskip("meshio")
    path = tmp_path / "a.geo"
    periodic = "Periodic Surface {2} = {1} Translate {1, 0, 0}; Periodic Surface {4} = {3} Translate {0, 1, 0};"
    names = 'Physical Surface("ends") = {5, 6}; Physical Volume("all") = {1};'
    path.write_text(geometry("Box(1) = {0, 0, 0, 1, 1, 1};", 2, periodic + names))
    mesh = dg.read_mesh(path)
    mesh.check_boundaries(["ends"])
    away = shifts(mesh, 2)
    assert np.allclose(away, np.rint(away), atol=1e-12) and np.isclose(mesh.volumes.sum(), 1)
    assert mesh.periodic_faces.any() and (np.abs(away[2]) < 1e-12).all()


def test_faces_of_tables():
    for cell in CELLS:
        outside = dg.element(cell, 1).face_cell
        assert len(symmetries(outside)) == {"point": 1, "line": 2, "triangle": 6, "quadrilateral": 8}[outside]
        assert face_vertices(cell).shape[1] == len(symmetries(outside)[0])


@pytest.mark.parametrize("cell", CELLS)
def test_faces_are_the_facets_of_mesh_data(cell):
    mesh = turned(dg.box((3,) * CELLS[cell], cell=cell), seed=3)
    known = connectivity.topology(cell, mesh.cells)
    numbers = connectivity.facet_numbers(cell, known)
    facets = known.entity_vertices(known.dim - 1, known.shapes[known.components(known.dim - 1)[0]].name) if (
        known.dim > 1
    ) else np.arange(known.vertices)[:, None]  # fmt: skip
    seen = mesh.cells[face_vertices(cell)]  # (Nf, vertices of a face, K)
    assert np.array_equal(np.sort(facets[numbers], axis=2), np.sort(seen.transpose(0, 2, 1), axis=2))
    assert np.array_equal(numbers[mesh.neighbour_faces, mesh.neighbour_cells], numbers)
    assert np.array_equal(np.bincount(numbers.ravel())[numbers] == 1, mesh.open_faces)


@pytest.mark.parametrize("cell", CELLS)
def test_names_by_the_vertices_of_faces(cell):
    box = dg.box((2,) * CELLS[cell], cell=cell)
    faces, cells = box.boundaries["x_neg"]
    walk = connectivity.corner_order(dg.element(cell, 1).face_cell)
    left = box.cells[face_vertices(cell)[faces].T, cells][walk]
    given = {"left": np.roll(left, 1, axis=0), "beyond": np.full_like(left, 10**6)}
    made = dg.Mesh.from_cells(cell, box.cells, box.coordinates, given)
    assert np.array_equal(np.sort(made.boundaries["left"][1]), np.sort(cells))
    assert "beyond" not in made.boundaries


def test_periodic_sides_whose_partners_are_not_there():
    x = np.array([[[0.0, 1.0], [1.0, 2.0]]])
    for partner in (1, 7):  # inside, and no vertex of a cell
        with pytest.raises(ValueError, match="do not match"):
            dg.Mesh.from_cells("line", [[0, 1], [1, 2]], x, links=[np.array([-1, -1, partner])])
