"""Pictures, VTK files, snapshots and the command of `mirabelle.dg`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import types
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg import command
from mirabelle.dg.output import pieces as cuts
from mirabelle.dg.output.files import replacing
from mirabelle.dg.output.vtk import read_pvd

CELLS = {"line": 1, "triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}


def made(cell: str, order: int, f: Any = None, curved: bool = False, **options: Any) -> dg.Solution:
    """Advection on a few cells of the unit cube; the field is a polynomial unless said otherwise."""
    d = CELLS[cell]
    shape: dict[str, Any] = {"mapping": bent, "order": 2} if curved else {}
    mesh = dg.box((2,) * d, upper=(1.0,) * d, cell=cell, periodic=not curved, **shape)
    conditions = dict.fromkeys(mesh.boundary_names, dg.SupersonicOutflow())
    semi = dg.Semidiscretization(mesh, dg.Advection((1.0,) * d), dg.Solver(order), conditions, **options)
    return dg.Solution(semi, semi.state(f or (lambda x, t: (polynomial(x),))), t=0.5, steps=7)


def bent(x: Any) -> Any:
    return (x[0] + (0.1 * x[1] ** 2 if len(x) > 1 else 0), *x[1:])


def polynomial(x: Any) -> Any:
    return 1 + x[0] + sum((a + 2) * c for a, c in enumerate(x[1:]))


# Pieces and pictures


@pytest.mark.parametrize("cell", CELLS)
def test_small_simplices_fill_the_cell(cell: str) -> None:
    points, corners = cuts._small(cell, 3)
    edges = points[corners[:, 1:]] - points[corners[:, :1]]
    d = CELLS[cell]
    volumes = np.abs(np.linalg.det(edges)) / [1, 2, 6][d - 1]
    assert volumes.min() > 0
    assert np.isclose(volumes.sum(), dg.element(cell, 1).weights.sum())


@pytest.mark.parametrize("cell", [cell for cell, d in CELLS.items() if d > 1])
@pytest.mark.parametrize("curved", [False, True])
def test_cuts_have_the_polynomial_and_the_size(cell: str, curved: bool) -> None:
    solution = made(cell, 2, curved=curved)
    planes = {"y": 0.3} if CELLS[cell] == 2 else {"z": 0.3}
    cut = cuts.pieces(solution, "u", planes, 8)
    x = np.insert(cut.points, 1 if "y" in planes else 2, 0.3, axis=0)
    assert np.allclose(cut.known[0], polynomial(x), atol=1e-12 if not curved else 2e-3)
    edges = np.moveaxis(cut.points[:, cut.corners], 0, 2)
    edges = edges[:, 1:] - edges[:, :1]
    sizes = np.abs(np.linalg.det(edges)) / (1 if CELLS[cell] == 2 else 2)
    assert np.isclose(sizes.sum(), 1.0)


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_planes_on_faces_are_covered_once(at: float) -> None:
    for cell in ("tetrahedron", "hexahedron"):
        cut = cuts.pieces(made(cell, 1), "u", {"z": at}, 2)
        edges = np.moveaxis(cut.points[:, cut.corners], 0, 2)
        sizes = np.abs(np.linalg.det(edges[:, 1:] - edges[:, :1])) / 2
        assert np.isclose(sizes.sum(), 1.0)


def test_two_planes_leave_a_line() -> None:
    cut = cuts.pieces(made("tetrahedron", 1), "u", {"x": 0.3, "z": 0.6}, 2)
    assert cut.points.shape[0] == 1
    assert np.isclose(np.ptp(cut.points[:, cut.corners], axis=2).sum(), 1.0)
    assert np.allclose(cut.known[0], 1 + 0.3 + 2 * cut.points[0] + 3 * 0.6)


@pytest.fixture
def plt() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize("cell", CELLS)
def test_plots(cell: str, plt: Any) -> None:
    solution = made(cell, 3, curved=True)
    ax = solution.plot("u", mesh=True)
    if CELLS[cell] == 1:
        x, y = ax.lines[0].get_data()
        assert np.allclose(y, 1 + x)
        assert ax.get_title() == "t = 0.5"
    else:
        assert ax.get_title().startswith("u, t = 0.5")
        levels = solution.plot(lambda u: u[0] ** 2, levels=5, colorbar=False, ax=plt.figure().add_subplot())
        assert len(levels.figure.axes) == 1


def test_lines_break_at_jumps_only(plt: Any) -> None:
    solution = made("line", 2, lambda x, t: (x[0] * 0 + 1.0,))
    assert not np.isnan(solution.plot().lines[0].get_ydata()).any()
    u = mb.to_numpy(solution.u).copy()
    u[:, :, 1] = 2.0
    solution.u = mb.HostArray(u)
    assert np.isnan(dg.plot(solution).lines[0].get_ydata()).sum() == 1


def test_pictures_of_systems_know_primitive_fields(plt: Any) -> None:
    gas = dg.CompressibleEuler(1)
    semi = dg.Semidiscretization(dg.box(3, periodic=True), gas, dg.Solver(2))
    solution = dg.Solution(semi, semi.state(lambda x, t: gas.conservative((1 + x[0], 0.5, 2.0))))
    assert np.allclose(solution.plot("p").lines[0].get_ydata(), 2.0)
    assert np.allclose(solution.plot("v1").lines[0].get_ydata(), 0.5)
    assert solution.plot(gas.mach).get_ylabel() == "mach"
    with pytest.raises(ValueError, match=r"no field 'q'\. Its fields are rho, rho_v1, rho_e, v1, p;"):
        solution.plot("q")
    assert dg.thumbnail(solution).startswith(b"\x89PNG")


def test_planes_that_cut_nothing(plt: Any) -> None:
    solution = made("triangle", 1)
    for at in (("y", 2.0), ("z", 0.5)):
        with pytest.raises(
            ValueError, match=f"nothing at {at[0]} = {at[1]}: the mesh has x from 0 to 1, y from 0"
        ):
            solution.plot("u", at=at)
    with pytest.raises(ValueError, match="Cuts along x, y leave only a point"):
        solution.plot("u", at={"x": 0.5, "y": 0.5})


def test_movies(plt: Any, tmp_path: Any, monkeypatch: Any) -> None:
    from PIL import Image

    solution = made("triangle", 2)
    for steps in (1, 2, 3):
        solution.steps, solution.t = steps, 0.1 * steps
        dg.save(solution, tmp_path / f"{steps}.h5")
    with Image.open(dg.movie(tmp_path, "u", tmp_path / "u.gif", levels=4)) as picture:
        assert picture.n_frames == 3
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ValueError, match="ffmpeg, which is not installed"):
        dg.movie([solution], "u", tmp_path / "u.mp4")
    with pytest.raises(ValueError, match="nothing to make a movie of"):
        dg.movie([], "u", tmp_path / "u.gif")


# VTK


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("order", [1, 3])
def test_vtk_files(cell: str, order: int, tmp_path: Any) -> None:
    meshio = pytest.importorskip("meshio")
    solution = made(cell, order, curved=order > 1)
    found = meshio.read(dg.write_vtu(solution, tmp_path / "a.vtu"))
    d = CELLS[cell]
    assert np.allclose(
        found.point_data["u"], polynomial(found.points.T[:d]), atol=1e-12 if order == 1 else 2e-2
    )
    (block,) = found.cells
    n = len(dg.element(cell, order).nodes)
    assert block.data.shape == (len(solution.semi.mesh), n)
    assert found.field_data["TimeValue"] == [0.5]
    # The first points are the vertices, whatever the order.
    vertices = solution.semi.mesh.vertices
    corners = found.points[block.data[:, : vertices.shape[1]]][..., :d]
    for ours, theirs in zip(vertices.T, corners, strict=True):
        assert {tuple(x) for x in ours.round(9)} == {tuple(x) for x in theirs.round(9)}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("order", [2, 3, 5])
def test_vtk_interpolates_as_we_do(cell: str, order: int, tmp_path: Any) -> None:
    pyvista = pytest.importorskip("pyvista")
    import vtk

    grid = pyvista.read(dg.write_vtu(made(cell, order), tmp_path / "a.vtu"))
    random = np.random.default_rng(0)
    for i in range(grid.n_cells):
        points = grid.GetCell(i)
        ids = [points.GetPointId(k) for k in range(points.GetNumberOfPoints())]
        inside = random.dirichlet(np.ones(4))[:3]
        inside[CELLS[cell] :] = 0
        x, weights = [0.0] * 3, [0.0] * len(ids)
        points.EvaluateLocation(vtk.reference(0), inside, x, weights)
        assert np.isclose(np.dot(weights, grid.point_data["u"][ids]), polynomial(x[: CELLS[cell]]))


def test_numbers_of_half_the_bytes(tmp_path: Any) -> None:
    meshio = pytest.importorskip("meshio")
    solution = made("triangle", 2, dtype=mb.float32, array=mb.RefArray)
    assert np.isclose(meshio.read(dg.write_vtu(solution, tmp_path / "a.vtu")).point_data["u"].max(), 4)


# Snapshots


def steps(semi: Any, initial: Any, count: int, **options: Any) -> dg.Solution:
    return dg.solve(semi, 1.0, initial, max_steps=count, **options)


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("control", [{"cfl": 0.4}, {"tolerance": 1e-6}, {"dt": 0.003}])
def test_restart_is_bit_for_bit(array: Any, control: dict[str, float], tmp_path: Any) -> None:
    semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Burgers(1), dg.Solver(2), array=array)
    whole = steps(semi, lambda x, t: (1 + 0.3 * mb.sin(2 * mb.pi * x[0]),), 9, **control)
    first = steps(semi, lambda x, t: (1 + 0.3 * mb.sin(2 * mb.pi * x[0]),), 4, **control)
    read = dg.load(dg.save(first, tmp_path / "a.h5"), semi)
    assert (mb.to_numpy(read.u) == mb.to_numpy(first.u)).all()
    assert (read.t, read.steps, read.dt, read.history) == (first.t, first.steps, first.dt, first.history)
    assert isinstance(read.u, array)
    second = steps(semi, read, 5, **control)
    assert (second.t, second.steps) == (whole.t, whole.steps)
    assert (mb.to_numpy(second.u) == mb.to_numpy(whole.u)).all()


def test_other_simulations_are_refused(tmp_path: Any) -> None:
    path = dg.save(made("triangle", 2), tmp_path / "a.h5")
    for other, what in (
        (made("triangle", 3), "another element"),
        (made("quadrilateral", 2), "another element"),
        (made("triangle", 2, dtype=mb.float32), "another type of numbers"),
        (made("triangle", 2, curved=True), "another mesh"),
    ):
        with pytest.raises(ValueError, match=f"of another simulation, with {what}: .* there, and .* here"):
            dg.load(path, other.semi)
    same = made("triangle", 2).semi
    semi = dg.Semidiscretization(same.mesh, dg.Advection((1.0, 2.0)), dg.Solver(2))
    with pytest.raises(ValueError, match="with other equations: Advection"):
        dg.load(path, semi)
    assert dg.load(path, same).steps == 7


def test_snapshots_alone_can_be_looked_at(tmp_path: Any, plt: Any) -> None:
    solution = made("triangle", 2, curved=True)
    read = dg.load(dg.save(solution, tmp_path / "a.h5"))
    assert read.semi.mesh.fingerprint == solution.semi.mesh.fingerprint
    assert read.semi.equations == solution.semi.equations
    assert read.semi.mesh.boundary_names == solution.semi.mesh.boundary_names
    assert read.plot("u").get_title() == "u, t = 0.5"
    a, b = dg.write_vtu(read, tmp_path / "a.vtu"), dg.write_vtu(solution, tmp_path / "b.vtu")
    assert a.read_bytes() == b.read_bytes()


def test_files_that_are_no_snapshots(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError):
        dg.load(tmp_path / "missing.h5")
    mb.save(tmp_path / "other.h5", mb.ones(3))
    (tmp_path / "text.h5").write_text("text")
    for name in ("other.h5", "text.h5"):
        with pytest.raises(ValueError, match=r"is no snapshot\. Write one"):
            dg.load(tmp_path / name)


def test_a_file_survives_failures(tmp_path: Any) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as fresh:
        fresh.write_text("half")
        raise KeyError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
    snapshot = dg.save(made("line", 1), tmp_path / "a.h5")
    whole = snapshot.read_bytes()
    broken = made("line", 1)
    broken.u = types.SimpleNamespace()
    with pytest.raises(TypeError):
        dg.save(broken, snapshot)
    assert snapshot.read_bytes() == whole


# Callbacks


def flow(**options: Any) -> Any:
    semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(1))
    return semi, lambda x, t: (mb.sin(2 * mb.pi * x[0]),)


def test_series_of_files(tmp_path: Any) -> None:
    semi, wave = flow()
    saved = dg.SaveSolution(tmp_path, format=("vtu", "h5"), dt=0.1)
    dg.solve(semi, 0.25, wave, dt=0.05, callbacks=[saved])
    series = read_pvd(tmp_path / "solution.pvd")
    assert np.allclose([t for t, _ in series], [0, 0.1, 0.2, 0.25])
    assert {file for _, file in series} == {p.name for p in tmp_path.glob("*.vtu")}
    # A run that goes on from the third file adds to those before it.
    read = dg.load(sorted(tmp_path.glob("*.h5"))[2], semi)
    dg.solve(semi, 0.4, read, dt=0.05, callbacks=[dg.SaveSolution(tmp_path, dt=0.1)])
    assert np.allclose([t for t, _ in read_pvd(tmp_path / "solution.pvd")], [0, 0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match="no format 'png'"):
        dg.SaveSolution(tmp_path, format="png", dt=0.1)
    with pytest.raises(ValueError, match="say how often"):
        dg.SaveSolution(tmp_path)


def test_checkpoints(tmp_path: Any) -> None:
    semi, wave = flow()
    path = tmp_path / "deep" / "run.h5"
    keep = dg.Checkpoint(path, interval=4)
    dg.solve(semi, 0.25, wave, dt=0.025, callbacks=[keep])
    assert dg.load(path, semi).steps == 10 and dg.load(keep.previous, semi).steps == 8
    assert len(os.listdir(path.parent)) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "steps"), [("SIGUSR1", [6, 10]), ("SIGTERM", [6])])
def test_checkpoints_on_signals(number: str, steps: list[int], tmp_path: Any) -> None:
    semi, wave = flow()
    seen: list[int] = []

    class Noted(dg.Checkpoint):
        def step(self, solution: dg.Solution) -> None:
            super().step(solution)
            seen.append(solution.steps)

    def send(solution: dg.Solution) -> None:
        if solution.steps == 5:
            os.kill(os.getpid(), getattr(signal, number))

    before = signal.getsignal(signal.SIGUSR1)
    keep = Noted(tmp_path / "run.h5", interval=100)
    with pytest.raises(SystemExit) if number == "SIGTERM" else contextlib.nullcontext():
        dg.solve(semi, 0.25, wave, dt=0.025, callbacks=[send, keep])
    assert signal.getsignal(signal.SIGUSR1) is before
    assert seen[-1] <= steps[-1] and dg.load(keep.path, semi).steps == seen[-1]
    assert len(seen) == len(steps)


# The command


@pytest.fixture
def problem(monkeypatch: Any) -> None:
    """A problem beside the standard ones."""
    module = types.ModuleType("mirabelle.dg.examples.tiny")

    def setup(order: int = 1, cells: int = 4, array: Any = mb.HostArray, speed: float = 1.0) -> Any:
        mesh = dg.box(cells, periodic=True)
        semi = dg.Semidiscretization(mesh, dg.Advection((speed,)), dg.Solver(order), array=array)
        return semi, lambda x, t: exact(x, t), (0.0, 0.1), {"cfl": 0.5}

    def exact(x: Any, t: Any) -> Any:
        return (mb.sin(2 * mb.pi * (x[0] - t)),)

    module.setup, module.exact = setup, exact  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = command.problems() | {"tiny": "A wave on a line, for tests."}
    monkeypatch.setattr(command, "problems", lambda: found)


def test_the_command(problem: None, tmp_path: Any, capsys: Any, plt: Any) -> None:
    from mirabelle.__main__ import main

    file, out = tmp_path / "tiny.toml", tmp_path / "out"
    file.write_text(
        f'case = "tiny"\nend_time = 0.05\n[parameters]\norder = 3\n[output]\nfolder = "{out.as_posix()}"\n'
        'formats = ["vtu", "h5"]\ncheckpoint = 2\nplot = ["u"]\n'
    )
    assert main(["dg", "run", str(file), "cells=6", "array=RefArray", "output.interval=2"]) == 0
    shown = capsys.readouterr().out
    assert "error of u" in shown and "6 line cells, order 3" in shown
    assert {"checkpoint.h5", "solution.pvd", "u.png", "solution_00000002.vtu"} <= set(os.listdir(out))
    assert main(["dg", "info", str(out / "checkpoint.h5")]) == 0
    assert "Advection" in capsys.readouterr().out
    assert main(["dg", "plot", str(out / "checkpoint.h5"), "u", str(out / "again.png"), "--mesh"]) == 0
    assert (out / "again.png").read_bytes().startswith(b"\x89PNG")
    assert main(["dg", "list"]) == 0
    assert "tiny" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "tny"], "There is no problem 'tny'. Did you mean 'tiny'?"),
        (["run", "tiny", "ordr=3"], "tiny has no parameter 'ordr'. Did you mean 'order'?"),
        (["run", "tiny", "array=NumPy"], "There is no type of arrays 'NumPy'. Known are HostArray"),
        (["run", "tiny", "output.folders=a"], "tiny: there is no setting of [output] 'folders'. Did you"),
        (["run", "missing.toml"], "There is no file"),
        (["info", "missing.h5"], "There is no file"),
        (["plot", "missing.h5", "u", "a.png"], "There is no file"),
    ],
)
def test_mistakes_are_sentences(problem: None, words: list[str], said: str, capsys: Any) -> None:
    assert command.main(words) == 2
    assert said in capsys.readouterr().out


def test_files_of_parameters(problem: None, tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "a.toml"
    for text, said in (
        ("case = tiny", "is no TOML"),
        ("cases = 'tiny'", "no setting 'cases'. Did you mean 'case'?"),
    ):
        file.write_text(text)
        assert command.main(["run", str(file)]) == 2
        assert said in capsys.readouterr().out
