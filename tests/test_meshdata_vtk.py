"""Files of VTK: read back by meshio where it is installed, and by hand elsewhere."""

import base64
import re
from xml.etree import ElementTree as xml

import numpy as np
import pytest
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

SHAPES = ["interval", "triangle", "quadrilateral", "tetrahedron", "hexahedron"]


def arrays(path):
    found = {}
    for a in xml.parse(path).iter("DataArray"):
        data = base64.b64decode(a.text)
        assert int.from_bytes(data[:8], "little") == len(data) - 8
        values = np.frombuffer(data[8:], a.get("type").lower())
        found[a.get("Name")] = values.reshape(-1, int(a.get("NumberOfComponents") or 1))
    return found


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_of_a_cell_are_a_lattice_with_the_vertices_first(shape, order):
    from mirabelle.arraytypes.meshdata.referencecells import reference_cell

    nodes, e = md.vtk_nodes(shape, order), md.element("P", shape, order)
    assert sorted(map(tuple, nodes)) == sorted(map(tuple, np.rint(order * e.points).astype(int)))
    vertices = reference_cell(shape).vertices
    assert np.array_equal(nodes[: len(vertices)], order * vertices)


def test_what_is_written_is_what_was_given(tmp_path):
    rng = np.random.default_rng(0)
    x, n = rng.random((3, 6, 2)), 6
    fields = {
        "u": rng.random((3, n)),
        "v": rng.random((3, n, 2)).astype(np.float32),
        "w": rng.random((3, n, 4)),
        "a<b": np.arange(18, dtype=np.int32).reshape(3, n),
    }
    made = arrays(md.write_vtk_cells(tmp_path / "a.vtu", "triangle", 2, x, fields, time=0.5))
    assert made["TimeValue"].item() == 0.5 and (made["types"] == 69).all()
    assert np.array_equal(made["Points"], np.pad(x.reshape(-1, 2), ((0, 0), (0, 1))))
    assert np.array_equal(made["u"][:, 0], fields["u"].ravel())
    assert np.array_equal(made["v"], np.pad(fields["v"].reshape(-1, 2), ((0, 0), (0, 1))))
    assert made["v"].dtype == np.float32 and made["a<b"].dtype == np.int64
    assert np.array_equal(made["w"], fields["w"].reshape(-1, 4))
    assert made["offsets"].ravel().tolist() == [6, 12, 18] and made["connectivity"].size == 18


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.vtu"
    x = np.zeros((1, 3, 2))
    md.write_vtk_cells(path, "triangle", 1, x, {"u": [[1.0, 2.0, 3.0]]})
    before = path.read_text()
    with pytest.raises(ValueError, match=re.escape("'u' has values of shape (1, 4)")):
        md.write_vtk_cells(path, "triangle", 1, x, {"u": [[1.0, 2.0, 3.0, 4.0]]})
    with pytest.raises(TypeError, match="real numbers"):
        md.write_vtk_cells(path, "triangle", 1, x, {"u": [[1.0, 2.0, 3.0j]]})
    with pytest.raises(ValueError, match="not of 'prism'"):
        md.vtk_nodes("prism", 2)
    assert path.read_text() == before and [p.name for p in tmp_path.iterdir()] == ["a.vtu"]


@pytest.mark.parametrize("owner", [[0] * 8 + [1] * 8 + [2] * 2, [2] * 18])
def test_processes_write_their_own_cells(tmp_path, owner):
    """All pieces together have what one file has; a process may have no cells."""
    mesh = md.unit_square(3)
    V = md.space(mesh, "P", 2, components=2)

    def f(x):
        return x**2

    whole = arrays(md.write_vtk(tmp_path / "all.vtu", mesh, {"u": (V, V.interpolate(f)), "n": np.arange(18.0)}))

    def program(comm):
        part = md.part(mesh, owner, overlap=1)
        W = md.space(part.mesh, "P", 2, components=2)
        cells = part.divided("cell", part.numbers("cell").astype(float))
        return md.write_vtk(tmp_path / "u.vtu", part.mesh, {"u": (W, W.interpolate(f, mb.DArray)), "n": cells})

    (path, *_) = on_ranks(3, program)
    root = xml.parse(path)
    pieces = [arrays(tmp_path / p.get("Source")) for p in root.iter("Piece")]
    assert path.suffix == ".pvtu" and len(pieces) == 3
    kinds = {a.get("Name"): a.get("NumberOfComponents") for a in root.iter("PDataArray")}
    assert kinds == {"Points": "3", "u": "3", "n": None}
    for name in ("Points", "u", "n"):
        found = np.concatenate([p[name] for p in pieces])
        order, wanted = (np.lexsort(x.T[::-1]) for x in (found, whole[name]))
        np.testing.assert_allclose(found[order], whole[name][wanted], atol=1e-14)


def test_a_folder_that_is_not_there_is_told_to_all(tmp_path):
    def program(comm):
        part = md.part(md.unit_square(2))
        folder = tmp_path / "nowhere" if comm.rank else tmp_path
        md.write_vtk(folder / "u.vtu", part.mesh, {"n": part.mesh.volumes()})

    assert all(isinstance(e, FileNotFoundError) for e in fails_on_ranks(2, program))
