"""`mirabelle.dg` with its cells divided over processes: real ones, and what needs only one."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import dg, launch
from mirabelle.backends.mpi import environment
from mirabelle.dg.command import main
from mirabelle.dg.meshes.parts import parts, ranks_of_cells
from mirabelle.dispatch.errors import CommunicationError

ROOT = pathlib.Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "mpi_programs" / "dgparts.py"


def started(ranks, *words, fails=False, **settings):
    """What some processes printed that ran a program together; it ends well, or has to fail soon."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    try:
        launcher = launch.find_launcher()
    except CommunicationError as e:
        pytest.skip(str(e))
    if environment.size() is not None:
        pytest.skip("these tests start processes themselves")
    variables = launch.surroundings(launcher, ranks, 1)
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    variables |= {f"MIRABELLE_{k.upper()}": str(v) for k, v in settings.items()}
    line = launcher.line(ranks, [sys.executable, *map(str, words)])
    ran = subprocess.run(
        line, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=ROOT
    )
    assert (ran.returncode != 0) == fails, ran.stdout[-4000:]
    return ran.stdout


@pytest.mark.parametrize("ranks", [2, 3])
def test_divided(ranks):
    """Examples, messages, files and mistakes: the same as on one process, to rounding."""
    said = started(ranks, PROGRAM)
    assert all(f"fine {r}" in said for r in range(ranks))


@pytest.mark.parametrize(
    "words, nccl", [(["files", "examples", "diffusion"], 0), (["messages", "examples", "advection"], 1)]
)
def test_divided_on_cards(words, nccl):
    """The same over (simulated) cards, by way of the host, and from card to card within the graph of a step."""
    said = started(
        2, PROGRAM, *words, test_array="CuArray", cuda="simulated", **({"test_nccl": 1} if nccl else {})
    )
    assert "fine 0" in said and "fine 1" in said


def test_command(tmp_path):
    """`python -m mirabelle run -n 2 -m mirabelle dg run` divides the cells, writes pieces, and goes on."""
    folder = f"output.folder={tmp_path}"
    words = "-m", "mirabelle", "dg", "run", "isentropic_vortex", "cells=6", "end_time=0.2", folder
    said = started(2, *words, "output.checkpoint=100", "output.formats=vtu", "output.plot=rho")
    assert said.count("right-hand sides") == 1 and "on 2 processes" in said
    assert (tmp_path / "rho.png").exists()
    assert len(list(tmp_path.glob("solution_*.pvtu"))) == len(list(tmp_path.glob("solution_*_0001.vtu"))) > 1
    assert (tmp_path / "solution.pvd").read_text().count(".pvtu") > 1
    again = f"restart={tmp_path}/checkpoint.h5"
    said = started(3, *words[:-2], "end_time=0.25", again, f"output.folder={tmp_path}/more")
    assert "at t = 0.25" in said


def test_a_process_that_ends_ends_the_run(tmp_path):
    """A process that dies or raises ends all soon, and the last checkpoint goes on, also on another number."""
    program = PROGRAM.with_name("dgdying.py")
    for how in ("dies", "raises"):
        began = time.perf_counter()
        said = started(2, program, how, tmp_path, fails=True)
        assert time.perf_counter() - began < 60  # (some seconds, most of them for starting, on a busy machine)
        assert how == "dies" or said.count("RuntimeError: a callback of one process fails") >= 2
        assert started(3, program, "goes on", tmp_path).count("from 4 to 6") == 3


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("cell", ["line", "triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_parts_fit(cell, n):
    """What each part says of the cut is what the part behind it says: of faces, cells and orientations."""
    d = {"line": 1, "triangle": 2, "quadrilateral": 2}.get(cell, 3)
    mesh = dg.box((4, 3, 2)[:d], cell=cell, periodic=(True, False, True)[:d])
    ranks = (
        np.random.default_rng(n).integers(0, min(n, len(mesh)), len(mesh)) if n > 2 else ranks_of_cells(mesh, n)
    )
    ranks[: ranks.max() + 1] = np.arange(ranks.max() + 1)
    made = parts(mesh, ranks)
    assert sum(len(p.mesh) for p in made) == len(mesh)
    seen = set()
    for p in made:
        assert (p.mesh.volumes > 0).all()
        for face, cell_here, rank, there, side in zip(
            p.faces, p.cells[p.local_cells], p.ranks, p.behind_cells, p.behind_faces, strict=True
        ):
            assert rank != p.rank and ranks[there] == rank
            assert mesh.neighbour_cells[face, cell_here] == there
            seen.add(((int(cell_here), int(face)), (int(there), int(side))))
    assert all((b, a) in seen for a, b in seen)
    boundaries = {
        name: sum(len(p.mesh.boundaries.get(name, ((),))[0]) for p in made) for name in mesh.boundaries
    }
    assert boundaries == {name: len(f) for name, (f, _) in mesh.boundaries.items()}


def test_partition_command(tmp_path, capsys):
    """A mesh file is divided beforehand; what is no such folder is refused."""
    meshio = pytest.importorskip("meshio")
    points = np.array([[x, y] for y in range(4) for x in range(4)], float)
    quads = [[i + 4 * j, i + 1 + 4 * j, i + 5 + 4 * j, i + 4 + 4 * j] for j in range(3) for i in range(3)]
    meshio.Mesh(points, [("quad", np.array(quads))]).write(tmp_path / "a.vtk")
    assert main(["partition", str(tmp_path / "a.vtk"), "-n", "3"]) == 0
    assert "9 quadrilaterals" in capsys.readouterr().out
    assert len(list((tmp_path / "a.parts").glob("part_*.npz"))) == 3
    with pytest.raises(ValueError, match="divided for 3 processes, and there are 1"):
        dg.read_parts(tmp_path / "a.parts")
    with pytest.raises(ValueError, match="is no folder of a divided mesh"):
        dg.read_parts(tmp_path)
    with pytest.raises(ValueError, match="10 processes cannot divide 9 cells"):
        dg.write_parts(dg.read_mesh(tmp_path / "a.vtk"), tmp_path / "b", 10)


def lacking(path):
    arrays = dict(np.load(path))
    del arrays["behind_cells"]
    np.savez(path, **arrays)


def another_number(path):
    text = (path.parent / "parts.json").read_text()
    (path.parent / "parts.json").write_text(text.replace("[24, 24]", "[25, 23]"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:700]),
        lambda path: path.write_bytes(b""),
        lambda path: shutil.copy(path.parents[1] / "other" / path.name, path),
        lambda path: shutil.copy(path.with_name("part_00000.npz"), path),
        lambda path: (path.parent / "parts.json").write_text('{"format": "mirabelle.dg parts 2"}'),
        lacking,
        another_number,
    ],
)
def test_a_part_that_is_none_is_said_on_all(damage, tmp_path):
    dg.write_parts(dg.box((8, 6)), tmp_path / "box", 2)
    dg.write_parts(dg.box((8, 7)), tmp_path / "other", 2)
    damage(tmp_path / "box" / "part_00001.npz")
    for error in fails_on_ranks(2, lambda comm: dg.read_parts(tmp_path / "box", comm)):
        assert "is missing, damaged or another mesh's" in str(error), error


def gmsh_bytes(mesh):
    """The size of a gmsh file (2.2, text) of a mesh's cells and vertices."""
    vertices = np.zeros((mesh.cells.max() + 1, 3))
    vertices[mesh.cells.T.ravel(), : mesh.dims] = mesh.coordinates.transpose(2, 1, 0).reshape(-1, mesh.dims)
    nodes = sum(len(f"{i} {x!r} {y!r} {z:g}\n") for i, (x, y, z) in enumerate(vertices.tolist(), 1))
    cells = sum(len(f"{i} 2 2 5 5 {a} {b} {c}\n") for i, (a, b, c) in enumerate(mesh.cells.T.tolist(), 1))
    return nodes + cells


def test_processes_hold_less_than_half_of_a_mesh_file(tmp_path):
    """Of a file of triangles that is divided for four beforehand."""
    mesh = dg.box((240, 240), cell="triangle")
    dg.write_parts(mesh, tmp_path / "box.parts", 4)
    tracemalloc.start()
    found = on_ranks(4, lambda comm: dg.read_parts(tmp_path / "box.parts", comm))
    _, peak = tracemalloc.get_traced_memory()  # (of all four)
    tracemalloc.stop()
    assert peak < 4 * gmsh_bytes(mesh) / 2
    assert sum([len(made.part.mesh) for made in found]) == len(mesh)
    for made in found:
        arrays = [*vars(made.part.mesh).values(), *vars(made.part).values(), made.numbers]
        held = sum([x.nbytes for x in arrays if isinstance(x, np.ndarray)])
        assert 0 < held < gmsh_bytes(mesh) / 2


def test_one_process():
    """On one process a divided problem is the problem."""
    mesh, gas = dg.box((4, 4), periodic=True), dg.CompressibleEuler(2)

    def initial(x, t):
        return gas.conservative((1 + 0.1 * mb.sin(6.283185307179586 * x[0]), 0.1, 0.2, 1.0))

    one = dg.Semidiscretization(mesh, gas, dg.Solver(2))
    semi = dg.Semidiscretization(mesh, gas, dg.Solver(2), array=mb.DArray[mb.HostArray])
    assert type(semi) is dg.Divided and repr(semi).endswith("on 1 processes")
    u, v = one.state(initial), semi.state(initial)
    assert np.array_equal(mb.to_numpy(semi.rhs(v, 0.0)), mb.to_numpy(one.rhs(u, 0.0)))
    assert float(semi.max_dt(v)) == float(one.max_dt(u))
    assert np.array_equal(mb.to_numpy(semi.integrate(v)), mb.to_numpy(one.integrate(u)))
    assert np.allclose(mb.to_numpy(mb.sum(semi.weights * v)), mb.to_numpy(mb.sum(one.weights * u)))
    assert "the largest part has 1.000" in semi.report()
