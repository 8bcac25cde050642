"""What people do with `mirabelle.dg` at first, and the mistakes they make: sentences, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg import command

WAVE = dg.Advection((1.0, 0.5))


def wave(x: Any, t: Any) -> Any:
    return (mb.sin(2 * mb.pi * (x[0] + x[1] - 1.5 * t)),)


def problem(cells: Any = (3, 2), periodic: bool = True, **options: Any) -> dg.Semidiscretization:
    mesh = dg.box(cells, periodic=periodic)
    return dg.Semidiscretization(mesh, WAVE, options.pop("solver", dg.Solver(2)), **options)


@pytest.fixture(scope="module")
def semi() -> dg.Semidiscretization:
    return problem()


@pytest.fixture(scope="module")
def solution(semi: dg.Semidiscretization) -> dg.Solution:
    return dg.solve(semi, 0.02, wave, dt=0.01)


def sides(condition: Any) -> dict[str, Any]:
    return dict.fromkeys(("x_neg", "x_pos", "y_neg", "y_pos"), condition)


SETUPS: list[tuple[Any, str]] = [
    (lambda: problem(periodic=False), r"but conditions were given for none\. Add them, e\.g\. boundary_cond"),
    (
        lambda: problem(periodic=False, boundary_conditions=sides(dg.SlipWall)),
        "Give an object such as",
    ),
    (lambda: problem(periodic=False, boundary_conditions=sides(wave)), r"or `dg.FarField\(lambda x, t"),
    (lambda: problem(array="CuArray"), "Say `array=mb.CuArray"),
    (lambda: problem(dtype=mb.int64), "make no floats"),
    (lambda: problem(solver=dg.Solver(2.5)), "is a whole number, and not 2.5"),  # type: ignore[arg-type]
    (lambda: problem(solver=dg.Solver("3")), "is a whole number, and not '3'"),  # type: ignore[arg-type]
    (lambda: problem(solver=dg.Solver(11)), "Elements have orders from 1 to 10"),
    (lambda: dg.box((2, 2, 2), cell="prism"), "cannot be made of cells 'prism'"),
    (lambda: dg.Solver(3, surface_flux="hll"), r"Give one such as `surface_flux=dg\.hllc`"),  # type: ignore[arg-type]
    (lambda: dg.Solver(3, volume=dg.WeakForm), "volume=<class .*WeakForm'> is of another kind"),  # type: ignore
    (lambda: dg.Solver(3, limiters=dg.PositivityLimiter()), r"`limiters=\(dg\.Pos"),  # type: ignore[arg-type]
    (lambda: dg.box((2, 2), mapping=lambda x: (-x[0], x[1])), "is inverted or flat"),
    (lambda: dg.Checkpoint("run"), r'Snapshots are files \.h5, .* "run\.h5"'),
]


@pytest.mark.parametrize(("make", "sentence"), SETUPS, ids=range(len(SETUPS)))
def test_setups_that_cannot_be(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


STARTS: list[tuple[Any, dict[str, Any], str]] = [
    (
        lambda x, t: mb.sin(x[0]),
        {},
        r"fields of Advection, .* one array of the shape \(9, 6\)\. .* \(u\)\. .*`lambda x, t: \(0\.0,\)`",
    ),
    (lambda x, t: 1.0, {}, r"returned the number 1\.0\. It has to return 1 field \(u\)"),
    (lambda x, t: (x[0] / (x[0] * 0),), {}, r"u is \w+ at x = \(0, 0\), node 0 of cell 0"),
    ("run.h5", {}, r"is a path\. Read it: solve\(semi, t1, dg\.load\('run\.h5', semi\)\)"),
    (wave, {"method": dg.RK4}, r"no method, such as method=dg\.RK4\(\)"),
    (wave, {"callbacks": [dg.Alive]}, "or it is a class"),
    (
        wave,
        {"callbacks": [dg.Probe([[5.0], [0.5]], interval=1)]},
        r"\[5\.0, 0\.5\] lies outside",
    ),
]


@pytest.mark.parametrize(("initial", "options", "sentence"), STARTS, ids=range(len(STARTS)))
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_starts_that_cannot_be(semi: Any, initial: Any, options: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        dg.solve(semi, 0.02, initial, dt=0.01, **options)


GASES = (dg.CompressibleEuler(1), dg.CompressibleNavierStokes(1), dg.Tracers(dg.CompressibleEuler(1)))


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray], ids=["host", "ref"])
@pytest.mark.parametrize("gas", GASES, ids=lambda gas: type(gas).__name__)
def test_gases_start_from_gases(gas: Any, array: Any) -> None:
    """What is not positive is said before the first step, wherever it is, and what makes a state of it."""
    semi = dg.Semidiscretization(dg.box(4, periodic=True), gas, dg.Solver(2), array=array)
    rest = (0.0,) * (len(gas) - 3)

    def fast(x: Any, t: Any) -> Any:  # primitive fields, forgotten to be made conservative ones
        return (1.0, mb.where(x[0] > 0.8, 2.0, 0.0), 1.0, *rest)

    says = (
        r"no state of \w+, in which rho and pressure are positive: pressure is -0\.4 at x = \(0\.875\), "
        r"node 1 of cell 3 \(of 2 such values\)\. .*semi\.equations\.conservative\(\(rho, v1, p"
    )
    with pytest.raises(ValueError, match=says):
        dg.solve(semi, 0.1, fast, cfl=0.5)
    assert dg.solve(semi, 0.001, lambda x, t: gas.conservative(fast(x, t)), cfl=0.5, compiled=False).steps
    for rho in (-1.0, 0.0):
        with pytest.raises(ValueError, match=rf"rho is {rho:g} at x = \(0\), .*; where polynomials overshoot"):
            dg.solve(semi, 0.1, lambda x, t, rho=rho: (rho, 0.0, 1.0, *rest), dt=0.1)  # type: ignore[misc]


@pytest.mark.parametrize("array, dtype", [(mb.HostArray, mb.float64), (mb.RefArray, mb.float32)])
@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_each_cell_has_its_own_side_of_a_jump_along_faces(order: int, array: Any, dtype: Any) -> None:
    mesh = dg.box((6, 3), lower=(-0.3, 7.0), upper=(0.9, 7.9), periodic=True)  # (no vertex is exactly at 0.1)
    semi = dg.Semidiscretization(mesh, WAVE, dg.Solver(order), array=array, dtype=dtype)
    u = mb.to_numpy(semi.state(lambda x, t: (mb.where((x[0] < 0.1) & (x[1] > 7.3), 1.0, 0.0),)))[0]
    assert sorted(u.mean(0)) == [0.0] * 14 + [1.0] * 4
    smooth = mb.to_numpy(semi.state(wave))[0] - mb.to_numpy(wave(semi.x, 0.0)[0])
    assert np.abs(smooth).max() < (1e-12 if dtype == mb.float64 else 1e-4)


def test_errors_against_too_few_fields(solution: dg.Solution) -> None:
    with pytest.raises(ValueError, match=r"returned a tuple of the length 2\. It has to return 1 field \(u\)"):
        solution.errors(lambda x, t: (1.0, 2.0))


def test_another_mesh_with_as_many_cells_is_refused(solution: dg.Solution, semi: Any, tmp_path: Path) -> None:
    turned, gauss = problem((2, 3)), problem(solver=dg.Solver(2, nodes="gauss"))
    for other in (turned, gauss):
        with pytest.raises(ValueError, match="is of another mesh, or of another kind of nodes"):
            dg.solve(other, 0.03, solution, dt=0.01)
    assert dg.solve(problem(), 0.03, solution, dt=0.01).steps == 3  # an equal one is as good
    kept = solution.save(tmp_path / "a.h5")
    before = kept.read_bytes()
    with pytest.raises(ValueError, match=r"of another simulation, with another mesh: .* dg\.load\("):
        dg.load(kept, turned)
    assert kept.read_bytes() == before


def test_a_callback_need_not_be_in_a_list(semi: Any) -> None:
    probe = dg.Probe([[0.5], [0.5]], interval=1)
    dg.solve(semi, np.float32(0.02), wave, dt=0.01, callbacks=probe)
    assert len(probe.times) == 3


def test_single_precision_to_the_end() -> None:
    single = problem(dtype=mb.float32)
    start = mb.to_numpy(problem().state(wave))
    for initial in (wave, start):
        u = dg.solve(single, 0.02, initial, cfl=0.5).u
        assert u.dtype == np.float32
    assert dg.Solution(single, u, 0.02).errors(wave)["u"].l2 < 0.2


def test_checkpoints_may_wait_for_signals(semi: Any, tmp_path: Path) -> None:
    checkpoint = dg.Checkpoint(tmp_path / "run.h5")
    dg.solve(semi, 0.03, wave, dt=0.01, callbacks=[checkpoint])
    assert [f.name for f in tmp_path.iterdir()] == ["run.h5"]


def test_movies_leave_checkpoints_out(solution: dg.Solution, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    image = pytest.importorskip("PIL.Image")
    for name in ("checkpoint", "solution_00000001", "solution_00000002"):
        solution.t = 1.0 + solution.t
        solution.save(tmp_path / f"{name}.h5")
    solution.t = 0.02
    with image.open(dg.movie(tmp_path, "u", tmp_path / "u.gif")) as picture:
        assert picture.n_frames == 2


# The command


def said(words: list[str], capsys: Any) -> tuple[int, str]:
    status = command.main(["run", "advection", "cells=[2, 2]", "order=1", *words])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["order"], "'order' changes nothing: write name=value, such as order=4."),
        (["order=x"], "The order of an element is a whole number, and not 'x'"),
        (["end_time=soon"], "end_time = 'soon' is no number. Write one: end_time = 0.5."),
        (["output=3"], "output = 3 is no table: in a file, write [output] above the lines"),
        (["output.plot=rho", "output.folder=new"], "Advection has no field 'rho'. Known are u."),
        (["restart=nothing.h5"], "There is no file 'nothing.h5'."),
        (["cells=few"], "A box of ['few'] cells cannot be made of cells"),
    ],
)
def test_mistakes_of_the_command(
    words: list[str], sentence: str, capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    status, text = said(words, capsys)
    assert status == 2
    assert sentence in text
    assert not list(tmp_path.iterdir())


def test_the_command_takes_lists_without_brackets(capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    status, text = said(["cells=2,3", "end_time=0.1", "output.formats=[]"], capsys)
    assert status == 0 and "on 6 quadrilateral cells" in text


def test_the_command_keeps_the_last_good_state_and_goes_on(
    capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    status, text = said(["cfl=1e200", "end_time=1e300"], capsys)
    assert status == 2
    assert "The solution blew up in step" in text
    assert "is out/last_good.h5." in text
    assert dg.load("out/last_good.h5").steps == 0
    status, text = said(["restart=out/last_good.h5", "end_time=0.1", "cfl=0.5"], capsys)
    assert status == 0
    assert "Solution at t = 0.1 after" in text


def test_the_help_says_how_files_are_written(capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        command.main(["run", "--help"])
    text = capsys.readouterr().out
    lines = [line.strip() for line in text[text.index("    case = ") :].splitlines()]
    lines = [line.replace("1.0", "0.01") for line in lines if not line.startswith("restart")]
    Path("mine.toml").write_text("\n".join(lines).replace("order = 3", "order = 1\ncells = [4, 4]"))
    assert command.main(["run", "mine.toml"]) == 0
    assert {"rho.png", "checkpoint.h5", "solution.pvd"} <= {f.name for f in Path("out").iterdir()}
    assert command.main(["list", "isentropic_vortex"]) == 0
    assert "variant = 'shu'" in capsys.readouterr().out
