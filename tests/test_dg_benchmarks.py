"""What dg is timed beside computes the same, in plain arrays; and the frame of convergence tables."""

import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks.dg._cases import Case, nearest_box, problem
from benchmarks.dg._plain_programs import PHYSICS, Program, arrays_of
from benchmarks.verification import STUDIES, Bound, Study, Table, convergence, summary


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


def test_vortex_of_mfem() -> None:
    """The same problem in two places, one of which must not import mirabelle."""
    from benchmarks.dg import _mfem_programs

    semi, u = problem(Case("vortex", 3, (4, 4)), mb.HostArray)
    wanted = _mfem_programs.vortex(*[mb.to_numpy(c) for c in semi.x])
    np.testing.assert_allclose(mb.to_numpy(u), np.stack(wanted), rtol=1e-13)


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


def test_studies_have_examples() -> None:
    from importlib import import_module
    from inspect import signature

    for name, study in STUDIES.items():
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
