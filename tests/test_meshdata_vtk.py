"""Files of VTK: read back by meshio where it is installed, and by hand elsewhere."""

import base64
import re
from xml.etree import ElementTree as xml

import numpy as np
import pytest

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
