"""What dg is timed beside computes the same, in plain arrays; and the frame of convergence tables."""

import functools
import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks.dg import _split_programs, split
from benchmarks.dg._cases import Case, nearest_box, problem
from benchmarks.dg._plain_programs import PHYSICS, Program, arrays_of
from benchmarks.verification import STUDIES, USUAL, Bound, Simulations, Study, Table, convergence, summary
from benchmarks.verification._findings import Quantity, near, positive
from benchmarks.verification._riemann import Riemann
from benchmarks.verification._tubes import TUBES, bump, solved


@pytest.mark.parametrize("order", (1, 3))
@pytest.mark.parametrize("physics", PHYSICS)
def test_plain_programs_have_the_same_rates(physics: str, order: int) -> None:
    """Formulas that were written twice, of flux, volume, faces and gradients."""
    semi, u = problem(Case(physics, order, (3, 2, 2)), mb.HostArray)
    wanted = Program(physics, np).rhs(arrays_of(semi), mb.to_numpy(u))
    rates = mb.to_numpy(mb.materialize(semi.rhs(u, semi.scalar(0.0))))
    assert np.abs(rates - wanted).max() <= 1e-12 * np.abs(wanted).max()


def test_plain_step() -> None:
    semi, u = problem(Case("wave", 2, (2, 2, 2)), mb.HostArray)
    wanted = Program("wave", np).step(arrays_of(semi), mb.to_numpy(u), 1e-3)
    made = dg.CarpenterKennedy54().step(semi.rhs, u, semi.scalar(0.0), semi.scalar(1e-3))
    np.testing.assert_allclose(mb.to_numpy(mb.materialize(made)), wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("cells, order", (((4, 2), 3), ((2, 2, 2), 2)))
@pytest.mark.parametrize("form", _split_programs.FORMS)
def test_plain_flux_differences(form: str, cells: tuple[int, ...], order: int) -> None:
    """All forms: fluxes of pairs, the split matrix, what faces add."""
    semi, u = split.problem(split.case_of(cells, order))
    wanted = _split_programs.Program(form, np).rhs(_split_programs.arrays_of(semi), mb.to_numpy(u))
    rates = mb.to_numpy(mb.materialize(semi.rhs(u, semi.scalar(0.0))))
    assert np.abs(rates - wanted).max() <= split.EQUAL * np.abs(wanted).max()


def test_plain_flux_differences_elsewhere() -> None:
    mesh = dg.box((2, 2), cell="quadrilateral", periodic=True)
    gauss = dg.Semidiscretization(mesh, dg.CompressibleEuler(2), dg.Solver(2, nodes="gauss"))
    with pytest.raises(ValueError, match="Gauss-Lobatto nodes on affine cells"):
        _split_programs.arrays_of(gauss)
    with pytest.raises(ValueError, match="there is no form 'quarter'; there are all, half"):
        _split_programs.Program("quarter", np)


def test_seconds_a_node() -> None:
    """What is made of times: the quickest of JAX counts, and a case that failed is still a row."""
    case = split.case_of((2, 2, 2), 3)
    assert (case.nodes, case.unknowns, case.name) == (512, 2560, "hexahedra p3, 8")
    times = {"compiled rhs": 1.024, "jax all rhs": 3.0, "jax half rhs": 2.048}
    who = {name: {"ms": ms, "unknowns_per_s": case.unknowns / ms * 1e3} for name, ms in times.items()}
    found = split.concluded(case, {"summary": {"who": who}})
    assert (found["best_jax"], found["ratio"]) == ("jax half", 2.0)
    assert found["pid_s"]["compiled"] == pytest.approx(2e-6)
    assert split.row(found)[:3] == ["hexahedra p3, 8", "2.00e-06", "-"]
    failed = split.concluded(case, {"failed": "It took longer."})
    assert failed["ratio"] is None and set(split.row(failed)[1:]) == {"-"}
    assert split.said(failed) == "hexahedra p3, 8: It took longer."


def test_vortex_of_mfem() -> None:
    """The same problem in two places, one of which must not import mirabelle."""
    from benchmarks.dg import _mfem_programs

    semi, u = problem(Case("vortex", 3, (4, 4)), mb.HostArray)
    wanted = _mfem_programs.vortex(*[mb.to_numpy(c) for c in semi.x])
    np.testing.assert_allclose(mb.to_numpy(u), np.stack(wanted), rtol=1e-10)


def test_sizes_of_the_thesis() -> None:
    for size in (125000, 50000, 25000, 14000, 32768, 13284, 6859, 4913, 82944, 48000, 24576, 10368):
        case = Case("wave", 1, nearest_box(size))
        assert abs(case.count - size) <= 0.02 * size, case


def exact(x, t):
    return (mb.sin(2 * mb.pi * (x[0] - t)),)


def setup(order, cells, array=mb.HostArray, slow=False):
    mesh = dg.box(cells, periodic=True)
    semi = dg.Semidiscretization(mesh, dg.Advection((0.9 if slow else 1.0,)), dg.Solver(order), array=array)
    return semi, exact, (0.0, 0.1), {"cfl": 0.5}


def test_convergence_tables() -> None:
    example = SimpleNamespace(setup=setup)
    study = Study(example, {1: (16, 32), 5: (4, 8)}, orders=(1, 5))
    tables = list(study.tables())
    assert [t.order for t in tables] == [1, 5]
    assert all(t.met for t in tables), "\n".join(map(str, tables))
    assert tables[1].unknowns == [24, 48]
    found = summary([{"case": "line", **t.as_json()} for t in tables])
    assert found["met"] == found["tables"] == 2
    assert "met" in str(tables[0]) and "unknowns" in str(tables[0])


def test_a_rate_that_is_missed() -> None:
    example = SimpleNamespace(setup=setup)
    [table] = convergence(
        example, [3], [4, 8], parameters={"slow": True}
    )  # an error that no mesh makes smaller
    assert not table.met and "NOT MET" in str(table)
    assert summary([{"case": "line", **table.as_json()}])["not_met"] == ["line line p3"]


def test_numbers_that_must_be_small() -> None:
    good, bad = Bound(lambda cell, order: 10.0**-order, 1e-2, ("line",), orders=(2, 1)).tables()
    assert good.met and not bad.met and "NOT MET" in str(bad)
    found = summary([{"case": "small", **v.as_json()} for v in (good, bad)])
    assert found["not_met"] == ["small line p1"]


def test_numbers_that_are_known() -> None:
    def measure(order, value):
        yield near("value", value, 2.0, absolute=0.5)
        yield Quantity("told", np.nan if value > 3 else 1.0, least=0.0)
        if value > 4:
            raise ValueError("too large")

    study = Simulations(measure, [{"value": 2.2}, {"value": 5.0, "order": 1}], [{"value": 2.0}], minutes=1)
    good, bad = study.tables()
    assert good.met and "value: 2.2, from 1.5 to 2.5: met" in str(good) and good.order == 3
    assert not bad.met and "NOT MET ValueError: too large" in str(bad) and bad.order == 1
    assert [q.met for q in bad.quantities] == [False, False]
    report = summary([{"case": "known", **f.as_json()} for f in (good, bad)])
    assert report["not_met"] == ["known value=5.0 p1"] and report["tables"] == 2
    assert [f.met for f in study.small().tables()] == [True]


def test_riemann_problems() -> None:
    """States of the table of standard problems, and what must hold through waves."""
    for left, right, gamma, wanted in (
        ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1), 1.4, (0.3031302, 0.9274526, 1.7521557)),
        ((0.445, 0.698, 3.528), (0.5, 0.0, 0.571), 1.4, (2.4660979, 1.5287230, 2.4793215)),
        ((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01), 1.4, (460.8938, 19.59745, 23.51754)),
        ((1.0, 0.0, 0.2 / 3), (1e-3, 0.0, 2e-10 / 3), 5 / 3, (5.155779e-4, 0.6218387, 0.8291184)),
    ):
        case = Riemann(left, right, gamma)
        assert (case.pressure, case.velocity, case.front(1)) == pytest.approx(wanted, rel=1e-6)
        rho, v, p = case.at(np.linspace(case.front(0) - 1, case.tail(0), 9))
        sound = np.sqrt(gamma * p / rho)
        np.testing.assert_allclose(v + 2 / (gamma - 1) * sound, (v + 2 / (gamma - 1) * sound)[0], rtol=1e-12)
        mirrored = Riemann((right[0], -right[1], right[2]), (left[0], -left[1], left[2]), gamma)
        speeds = np.linspace(-3.0, 3.0, 40)
        np.testing.assert_allclose(mirrored.at(-speeds) * [[1], [-1], [1]], case.at(speeds), atol=1e-12)


@pytest.mark.parametrize("tube", TUBES)
def test_strong_tubes_stay_positive(tube: str) -> None:
    solution = solved(TUBES[tube], order=2, cells=12, max_steps=8, compiled=False)
    assert solution.steps == 8 and all(q.met and q.value > 0 for q in positive(solution))


def test_limiters_leave_a_smooth_wave_alone() -> None:
    form, positive = dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc), dg.PositivityLimiter()
    solver = dg.Solver(3, surface_flux=dg.hllc, volume=form, limiters=(positive,))
    gas = dg.CompressibleEuler(1)
    semi = dg.Semidiscretization(dg.box(50, periodic=True), gas, solver)
    u = semi.state(functools.partial(bump, gas))
    assert float(mb.max(u[0])) > 1.99 and float(mb.max(form.blending(semi, u))) == 0
    assert np.array_equal(mb.to_numpy(semi.limit(u)), mb.to_numpy(u))


def test_studies_have_examples() -> None:
    from importlib import import_module
    from inspect import signature

    for name, study in STUDIES.items():
        if isinstance(study, Simulations):
            for given in (*study.quick, *study.runs):
                signature(study.measure).bind(**{"order": study.order, **given})
            assert study.small().runs == study.quick and (study.minutes > 0 or study.by_name), name
            assert (name in USUAL) != study.by_name and study.by_name == name.endswith("-full"), name
            continue
        assert len(study.small().orders) == 2, name
        if isinstance(study, Study):
            parameters = signature(import_module(f"mirabelle.dg.examples.{study.example}").setup).parameters
            assert {"order", "cells", "array", "cell", *study.parameters, *study.make()} <= set(parameters), (
                name
            )


def test_an_example_that_fails_is_a_table() -> None:
    def broken(order, cells, array):
        raise ValueError("no mesh")

    [table] = convergence(SimpleNamespace(setup=broken), [1], [4])
    assert table.failed == "ValueError: no mesh" and not table.met
    with pytest.raises(TypeError, match="has no parameter 'cell'"):
        list(convergence(SimpleNamespace(setup=broken), [1], [4], ["triangle"]))


def test_errors_of_rounding_have_no_rate() -> None:
    table = Table("line", 3, 4.0, cells=[4, 8], l2={"u": [1e-14, 2e-14]})
    assert table.rates() == {"u": [None]} and table.rate is None and table.met


def test_studies_run_on_other_arrays() -> None:
    assert STUDIES["taylor-green"].on(mb.RefArray).runs[0]["array"] is mb.RefArray
    study = STUDIES["standing-wave-1d"].on(mb.RefArray)
    assert isinstance(study, Study)
    few = Study(study.example, {1: (4, 8)}, study.cell_types, (1,), end_time=0.1, parameters=study.parameters)
    assert [t.order for t in few.tables()] == [1]
    for name in ("riemann", "free-stream"):
        with pytest.raises(SystemExit, match="HostArray only"):
            STUDIES[name].on(mb.RefArray)
