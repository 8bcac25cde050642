"""Mesh files: what meshio writes of every shape, groups, geometries that gmsh makes a mesh of, bad files."""

import numpy as np
import pytest
from test_meshdata_topology import MESHES

from mirabelle import meshdata as md

meshio = pytest.importorskip("meshio")
KINDS = {"interval": "line", "quadrilateral": "quad", "tetrahedron": "tetra", "prism": "wedge"}


def space(x):
    return np.hstack([x, np.zeros((len(x), 3 - x.shape[1]))])


@pytest.mark.parametrize("name", MESHES)
def test_what_meshio_writes_comes_back(name, tmp_path):
    mesh = MESHES[name]()
    unused = np.vstack([mesh.coordinates, mesh.coordinates[:1]])  # a node without cells
    blocks = [(KINDS.get(s, s), t) for s, t in mesh.cells.items()]
    meshio.Mesh(space(unused), blocks).write(tmp_path / "a.vtu")
    assert md.read_mesh(tmp_path / "a.vtu") == mesh


def test_groups_are_markers(tmp_path):
    x = space(md.unit_square(1).coordinates)
    blocks = [("triangle", np.array([[0, 2, 1], [1, 3, 2]])), ("line", np.array([[1, 0], [2, 3], [1, 3]]))]
    blocks.append(("vertex", np.array([[2]])))
    tags = [np.array([4, 5]), np.array([7, 7, 9]), np.array([2])]
    names = {"inside": np.array([4, 2]), "wall": np.array([7, 1]), "corner": np.array([2, 0])}
    data = {"gmsh:physical": tags, "gmsh:geometrical": tags}
    meshio.Mesh(x, blocks, cell_data=data, field_data=names).write(
        tmp_path / "a.msh", file_format="gmsh22", binary=False
    )
    mesh = md.read_mesh(tmp_path / "a.msh")
    assert mesh == md.unit_square(1)  # The first triangle was inverted.
    found = {k: (s.points.name, s.indices.tolist()) for k, s in mesh.markers.items()}
    assert found == {
        "inside": ("cell", [0]),
        "5": ("cell", [1]),
        "wall": ("edge", [0, 4]),
        "9": ("edge", [3]),
        "corner": ("vertex", [2]),
    }
    assert "wall" in mesh._repr_html_()
    with pytest.raises(ValueError, match="inverted"):
        md.read_mesh(tmp_path / "a.msh", inverted="error")


def test_groups_of_several_shapes(tmp_path):
    mesh = md.unit_cube(1, shape="prism")
    sides = {s: mesh.closure(s, "vertex").target().table for s in mesh.facets}
    blocks = [("wedge", mesh.cells["prism"]), ("triangle", sides["triangle"]), ("quad", sides["quadrilateral"])]
    data = {"gmsh:physical": [np.full(len(t), 3) for _, t in blocks]}
    data["gmsh:geometrical"] = data["gmsh:physical"]
    file = meshio.Mesh(mesh.coordinates, blocks, cell_data=data, field_data={"rim": np.array([3, 2])})
    file.write(tmp_path / "a.msh", file_format="gmsh22", binary=False)
    read = md.read_mesh(tmp_path / "a.msh")
    sizes = {k: len(s) for k, s in read.markers.items()}
    assert sizes == {"3": 2, "rim triangle": 4, "rim quadrilateral": 5}


def test_nodes_of_curved_cells_are_left_out(tmp_path):
    x = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.5, 0, 0), (0.5, 0.5, 0), (0, 0.5, 0)]
    meshio.Mesh(np.array(x, float), [("triangle6", np.array([[0, 1, 2, 3, 4, 5]]))]).write(tmp_path / "a.vtu")
    assert repr(md.read_mesh(tmp_path / "a.vtu")) == "Mesh(1 triangle, 3 edges, 3 vertices in 2 dimensions)"


def test_geometries(tmp_path):
    pytest.importorskip("gmsh", exc_type=Exception)
    path = tmp_path / "a.geo"
    names = 'Physical Surface("rim") = {Boundary{Volume{1};}}; Physical Volume("all") = {1};'
    path.write_text(
        'SetFactory("OpenCASCADE"); Sphere(1) = {0, 0, 0, 1};\nMesh.MeshSizeMax = 0.4;' + names + "\n"
    )
    mesh = md.read_mesh(path)
    assert abs(mesh.volumes().sum() - np.pi * 4 / 3) < 0.3
    assert np.array_equal(mesh.markers["rim"].indices, mesh.exterior().indices)
    assert len(mesh.markers["all"]) == mesh.points("cell").size
    path.write_text("Point(1) = {")
    with pytest.raises(ValueError, match="gmsh cannot make"):
        md.read_mesh(path)


def test_bad_files(tmp_path):
    path = tmp_path / "a.vtu"
    meshio.Mesh(np.zeros((1, 3)), [("vertex", np.array([[0]]))]).write(path)
    with pytest.raises(ValueError, match=r"no cells in 'a\.vtu' but"):
        md.read_mesh(path)
    path.write_text("no mesh")
    with pytest.raises(ValueError, match="cannot read"):
        md.read_mesh(path)
    x = [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [3, 0, 0], [3, 1, 0], [2, 1, 0], [3, 2, 0]]
    meshio.Mesh(x, [("quad", np.array([[0, 1, 2, 3], [1, 4, 5, 6], [6, 5, 7, 2]]))]).write(path)
    with pytest.raises(ValueError, match="hanging vertices"):
        md.read_mesh(path)
