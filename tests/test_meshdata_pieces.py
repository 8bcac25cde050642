"""gmsh files read in pieces: parts are those that one process makes of the whole mesh; damaged files."""

import os
import pathlib
import runpy
import signal
import sys

import numpy as np
import pytest
from gmshwriting import FORMS, described, markers_of, write
from ranks.launch import missing, run
from test_meshdata_topology import MESHES, shuffled
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata import gmshfiles, gmshindex

PROGRAMS = pathlib.Path(__file__).parent / "mpi_programs"


def keys(mesh, component, names):
    """The vertices of points, by the numbers in the whole mesh."""
    if component == "vertex":
        return names[:, None]
    return np.sort(names[mesh.closure(component, "vertex").target().table], axis=1)


def marked(mesh, names, markers):
    return {k: {tuple(x) for x in keys(mesh, c, names)[at].tolist()} for k, (c, at) in markers.items()}


def same_parts(path, mesh, markers, ranks, overlap=0):
    """Is what processes read what one of them would have made of the mesh?"""
    owner = md.partition(mesh, ranks, method="hilbert")
    parts = on_ranks(ranks, lambda comm: md.read_part(path, overlap=overlap, comm=comm))
    everything = np.arange(len(mesh.coordinates))
    for rank, part in enumerate(parts):
        whole = mesh.part(owner, rank, overlap)
        names = part.numbers("vertex")
        assert np.array_equal(mesh.coordinates[names], part.mesh.coordinates)
        assert part.mesh.shapes == mesh.shapes
        for c in mesh.shapes:
            assert part.owned(c) == whole.owned(c)
            there = keys(mesh, c, everything)[whole.numbers(c)]
            here = keys(part.mesh, c, names)
            assert sorted(map(tuple, here.tolist())) == sorted(map(tuple, there.tolist()))
            outside = {tuple(k) for k in keys(mesh, c, everything)[mesh.topology.exterior(c)].tolist()}
            assert part.mesh.topology.exterior(c).tolist() == [tuple(k) in outside for k in here.tolist()]
        for c in mesh.components(mesh.dim):
            n = whole.owned(c)
            assert np.array_equal(part.numbers(c)[:n], whole.numbers(c)[:n])
            cells = names[part.mesh.closure(c, "vertex").target().table]
            assert np.array_equal(cells, mesh.closure(c, "vertex").target().table[part.numbers(c)])
        given = marked(mesh, everything, markers)
        found = {k: (s.points.component, s.indices) for k, s in part.mesh.markers.items()}
        assert {k: c for k, (c, _) in found.items()} == {k: c for k, (c, _) in markers.items()}
        for name, points in marked(part.mesh, names, found).items():
            here = {tuple(k) for k in keys(part.mesh, markers[name][0], names).tolist()}
            assert points == given[name] & here


@pytest.mark.parametrize("version, binary", FORMS)
@pytest.mark.parametrize("name", MESHES)
def test_parts_are_those_of_the_whole_mesh(name, version, binary, tmp_path, monkeypatch):
    monkeypatch.setattr(gmshfiles, "STRIPE", 97)
    monkeypatch.setattr(gmshindex, "STRIPE", 97)
    for seed, ranks in enumerate((1, 2, 3, 5)):
        rng = np.random.default_rng(seed)
        mesh = shuffled(MESHES[name](), seed % 2)
        used = np.unique(np.concatenate([t.ravel() for t in mesh.cells.values()]))
        new = np.full(len(mesh.coordinates), -1)
        new[used] = np.arange(len(used))
        mesh = md.Mesh(mesh.coordinates[used], {s: new[t] for s, t in mesh.cells.items()}, inverted="flip")
        file, found = described(rng, mesh)
        path = write(tmp_path / f"{seed}.msh", file, version, binary)
        for overlap in {0, seed % 3}:
            same_parts(path, mesh, markers_of(found, version), ranks, overlap)


def sentence(error):
    return "damaged" in str(error) or "no gmsh file" in str(error) or "gmsh" in str(error)


@pytest.mark.parametrize("version, binary", FORMS)
def test_damaged_files_are_refused_in_a_sentence(version, binary, tmp_path, monkeypatch):
    monkeypatch.setattr(gmshfiles, "STRIPE", 211)
    monkeypatch.setattr(gmshindex, "STRIPE", 211)
    rng = np.random.default_rng(3)
    file, _ = described(rng, md.unit_square(3))
    whole = write(tmp_path / "a.msh", file, version, binary).read_bytes()
    end = whole.index(b"$Comments")
    for cut in [0, 1, 12, *rng.integers(20, end - 14, 25).tolist(), end - 14]:
        (tmp_path / "a.msh").write_bytes(whole[:cut])
        errors = fails_on_ranks(2, lambda comm: md.read_part(tmp_path / "a.msh", comm=comm))
        assert all(isinstance(e, ValueError) and sentence(e) for e in errors), (cut, errors)
    if not binary:  # what is no number
        for at in rng.integers(whole.index(b"$Nodes"), end, 25).tolist():
            (tmp_path / "a.msh").write_bytes(whole[:at] + b"x" + whole[at + 1 :])
            errors = fails_on_ranks(2, lambda comm: md.read_part(tmp_path / "a.msh", comm=comm))
            assert all(isinstance(e, ValueError) for e in errors), (at, errors)


@pytest.mark.parametrize("version, binary", FORMS)
def test_bad_files(version, binary, tmp_path):
    mesh, path = md.unit_square(2), tmp_path / "a.msh"

    def refused(text, change, ranks=2):
        file, _ = described(np.random.default_rng(1), mesh)
        change(file)
        write(path, file, version, binary)
        errors = fails_on_ranks(ranks, lambda comm: md.read_part(path, comm=comm))
        assert all(text in str(e) for e in errors), errors

    def cells(file):
        return next(b[3] for b in file.blocks if b[0] == "triangle")

    def missing(file):
        cells(file)[0, 0] = 4 * file.tags.max()

    def between(file):
        cells(file)[0, 0] = min(set(range(1, 100)) - set(file.tags.tolist()) - {0})

    def facet(file):
        next(b[3] for b in file.blocks if b[0] == "interval")[0, 0] = 4 * file.tags.max() // 2 + 1

    def twice(file):
        file.tags[0] = file.tags[1]

    def cell_twice(file):
        file.blocks.append(next(b for b in file.blocks if b[0] == "triangle"))

    def flat(file):
        cells(file)[0, 0] = cells(file)[0, 1]

    def no_cells(file):
        file.blocks[:] = [("vertex", 0, (), file.tags[:2, None])]

    refused("and there is none of that number", missing)
    refused("and there is none of that number", between)
    refused("and there is none of that number", facet)
    refused("stands there twice", twice)
    refused("has cells twice", cell_twice)
    with pytest.raises(
        ValueError, match="MSH 2.2 lists a cell once for each" if version == "2.2" else "twice. Let"
    ):
        md.read_mesh(path)
    refused("", flat)
    refused("There are no cells in 'a.msh' but ['vertex']", no_cells)
    with pytest.raises(FileNotFoundError, match="There is no mesh file"):
        md.read_part(tmp_path / "b.msh")
    with pytest.raises(ValueError, match="and not 'turn'"):
        md.read_part(path, inverted="turn")


def test_other_files(tmp_path):
    path = tmp_path / "a.msh"
    path.write_bytes(b"$MeshFormat\n4.0 0 8\n$EndMeshFormat\n")
    with pytest.raises(ValueError, match=r"no gmsh file of MSH 2\.2 or 4\.1.*-format msh41"):
        md.read_part(path)
    path.write_bytes(b"$MeshFormat\n4.1 1 8\n\x00\x00\x00\x01\n$EndMeshFormat\n")
    with pytest.raises(ValueError, match="orders bytes differently"):
        md.read_part(path)
    path.write_bytes(b"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PartitionedEntities\n$EndPartitionedEntities\n")
    with pytest.raises(ValueError, match="was divided by gmsh"):
        md.read_part(path)
    path.write_bytes(b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$ParametricNodes\n0\n$EndParametricNodes\n")
    with pytest.raises(ValueError, match="nodes with parameters"):
        md.read_part(path)
    text = b"$MeshFormat\r\n2.2 0 8\r\n$EndMeshFormat\r\n$Nodes\r\n2\r\n1 0 0 0\r\n2 1 0 0\r\n$EndNodes\r\n"
    path.write_bytes(
        text + b"$Elements\r\n1\r\n1 1 0 1 2\r\n$EndElements\r\n"
    )  # without tags, as Windows ends lines
    assert repr(md.read_part(path).mesh) == "Mesh(1 interval, 2 vertices in 1 dimension)"


def test_inverted_cells_are_turned_or_named(tmp_path):
    mesh = md.Mesh([[0.0, 0], [1, 0], [0, 1], [1, 1]], [[0, 2, 1], [1, 3, 2]], inverted="keep")
    file, _ = described(np.random.default_rng(0), mesh)
    path = write(tmp_path / "a.msh", file, "4.1", True)
    for e in fails_on_ranks(2, lambda comm: md.read_part(path, inverted="error", comm=comm)):
        assert "the first is number 0, of the vertices [0, 2, 1]" in str(e)
    assert md.read_part(path).mesh.volumes().tolist() == [0.5, 0.5]
    kept = md.read_part(path, inverted="keep").mesh
    assert sorted(kept.volumes().tolist()) == [-0.5, 0.5]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_program_on_what_was_read(ranks, tmp_path):
    given = runpy.run_path(str(PROGRAMS / "dividedmeshes.py"))
    mesh = given["SQUARE"]
    file, _ = described(np.random.default_rng(0), mesh)
    path = write(tmp_path / "a.msh", file, "4.1", False)

    def program(comm):
        found = given["QUADRATIC"](md.read_part(path, comm=comm).mesh, given["DIVIDED"])
        return mb.to_numpy(found)

    wanted = given["alone"](given["QUADRATIC"], mesh)
    for found in on_ranks(ranks, program):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_finite_volumes_on_what_was_read(ranks, tmp_path):
    given = runpy.run_path(str(PROGRAMS / "dividedmeshes.py"))
    mesh = given["SQUARE"].with_coordinates(given["SQUARE"].coordinates ** 1.2)
    file, _ = described(np.random.default_rng(0), mesh)
    path = write(tmp_path / "a.msh", file, "2.2", True)

    def program(comm):
        part = md.read_part(path, overlap=1, comm=comm)
        v, s = given["volumes"](part.mesh, given["DIVIDED"], part)
        return mb.to_numpy(part.local("cell", v)), part.numbers("cell"), s

    u, t = given["volumes"](mesh, given["LOCAL"])
    for found, numbers, s in on_ranks(ranks, program):
        assert s == t
        np.testing.assert_allclose(found, mb.to_numpy(u)[numbers], rtol=0, atol=1e-14)


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
def test_on_processes_none_holds_more_than_half_of_the_file():
    ended = run(4, str(PROGRAMS / "meshpieces.py"))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("fine") == 4, ended.stdout


@pytest.mark.parametrize("version, binary", FORMS)
@pytest.mark.parametrize("name", MESHES)
def test_one_process_reads_the_same(name, version, binary, tmp_path):
    rng = np.random.default_rng(len(name))
    mesh = MESHES[name]()
    used = np.unique(np.concatenate([t.ravel() for t in mesh.cells.values()]))
    assert len(used) == len(mesh.coordinates)
    file, found = described(rng, mesh)
    path = write(tmp_path / "a.msh", file, version, binary)
    read, wanted = md.read_mesh(path), markers_of(found, version)
    assert read == mesh
    assert {k: (s.points.component, s.indices.tolist()) for k, s in read.markers.items()} == {
        k: (c, at.tolist()) for k, (c, at) in wanted.items()
    }
    with pytest.raises(ValueError, match="damaged or was not written to its end"):
        path.write_bytes(path.read_bytes()[:-60])
        md.read_mesh(path)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_nodes_of_curved_cells_are_where_meshio_has_them(cell, order, tmp_path):
    meshio = pytest.importorskip("meshio")
    from mirabelle import dg
    from mirabelle.arraytypes.meshdata.gmshfiles import ELEMENTS
    from mirabelle.dg.elements import element
    from mirabelle.dg.meshes.importing import _converted, listed_nodes

    at = listed_nodes(cell, order, True)
    points = np.zeros((len(at), 3))
    points[:, : at.shape[1]] = at + 0.02 * np.sin(3 * at[:, ::-1])
    count = len(element(cell, order).nodes)
    kind = next(k for k, (s, n) in ELEMENTS.items() if (s, n) == (cell, count))
    rows = [f"{i + 1} {x!r} {y!r} {z!r}" for i, (x, y, z) in enumerate(points.tolist())]
    rows = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(count), *rows, "$EndNodes", "$Elements"]
    rows += ["1", f"1 {kind} 2 1 1 " + " ".join(str(i + 1) for i in range(count)), "$EndElements"]
    path = tmp_path / "a.msh"
    path.write_text("\n".join(rows) + "\n")
    here, there = dg.read_mesh(path), _converted(meshio.read(path), "a.msh", ())
    assert here.order == order and np.allclose(here.coordinates, there.coordinates, atol=1e-14)
    assert np.array_equal(here.cells, there.cells)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there is no such signal")
def test_gmsh_changes_no_signals(tmp_path, monkeypatch):
    """gmsh has a broken pipe end the process; sockets of distributed arrays are such pipes."""

    class Gmsh:
        def __getattr__(self, name):
            return self

        def __call__(self, *args, **named):
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    monkeypatch.setitem(sys.modules, "gmsh", Gmsh())
    (tmp_path / "a.geo").write_text("")
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        with pytest.raises((ValueError, ImportError, FileNotFoundError)):
            md.read_mesh(tmp_path / "a.geo")
        assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGPIPE, before)
