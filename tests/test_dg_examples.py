"""The standard problems of `mirabelle.dg`, at small sizes: stored errors, and what each of them must keep.

`python -m tests.test_dg_examples [example ...]` prints the errors as they are now.
"""

import functools
import importlib
import inspect
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.command import problems


@dataclass(frozen=True, eq=False)
class Case:
    """An example with parameters of `setup`, solved for some steps.

    `conserves`: the integrals of all fields stay. `anywhere`: parameters with which it is so small that
    right-hand sides can be compared on HostArray and RefArray. `alike`: the relative difference that rounding
    makes (MFEM's vortices jump a little halfway to their images, where nodes are).
    """

    example: str
    parameters: dict[str, Any]
    steps: int
    conserves: bool = False
    anywhere: dict[str, Any] | None = None
    alike: float = 1e-9

    def __str__(self) -> str:
        given = [getattr(v, "__name__", str(v)) for v in self.parameters.values()]
        return "-".join([self.example, *given]).replace(" ", "")


CASES = [
    # Hyperbolic problems
    Case("advection", {"order": 3, "cells": 8, "cell": "line"}, 5, conserves=True, anywhere={"cells": 3}),
    Case("advection", {"order": 3, "cells": (3, 3), "nodes": "gauss"}, 5, conserves=True),
    Case("advection", {"order": 2, "cells": 2, "cell": "tetrahedron"}, 5, conserves=True),
    Case("acoustic_pulse", {"order": 3, "cells": (3, 3)}, 5),
    Case("standing_wave", {"cells": (4, 4), "cell": "triangle"}, 5),
    Case("standing_wave", {"order": 4, "cells": 8, "cell": "line", "flux": dg.central}, 5),
    Case("maxwell_cavity", {"cells": (4, 4)}, 5, anywhere={"cells": (1, 1), "order": 2}),
    Case("maxwell_cavity", {"order": 2, "cells": 2, "cell": "hexahedron"}, 5),
    Case("isentropic_vortex", {"cells": 8}, 5, conserves=True),
    Case(
        "isentropic_vortex",
        {"cells": 4, "cell": "triangle", "variant": "mfem-fast"},
        5,
        conserves=True,
        alike=1e-4,
    ),
    Case("isentropic_vortex", {"cells": 4, "variant": "mfem-slow"}, 5, conserves=True, alike=1e-4),
    Case("euler_source", {"cells": 4}, 5, anywhere={"cells": (2, 1), "order": 1}),
    Case("sod", {"cells": 20}, 5, anywhere={"cells": 3, "order": 2}),
    Case("shu_osher", {"cells": 40}, 5),
    Case("double_mach", {"cells": (16, 4)}, 5),
    Case("forward_facing_step", {"cells": (15, 5)}, 5),
    Case("kelvin_helmholtz", {"cells": 4}, 5, conserves=True),
    Case("entropy_conservation", {"cells": 4}, 5, conserves=True, anywhere={"cells": (2, 1), "order": 2}),
    Case("free_stream", {"cells": (2, 2, 2), "cell": "tetrahedron", "order": 2}, 3, conserves=True),
    # Problems with second derivatives
    Case("diffusion", {"cells": 4, "cell": "line"}, 5, anywhere={"cells": 2}),
    Case("diffusion", {"order": 2, "cells": (1, 1, 2), "cell": "tetrahedron"}, 3),
    Case("couette", {"order": 2, "cells": (1, 2)}, 3, anywhere={"cells": (1, 1)}),
    Case("poiseuille", {"order": 3, "cells": (1, 2)}, 3),
    Case("becker_shock", {"order": 2, "cells": 20}, 3, anywhere={"cells": 3}),
    Case("navier_stokes_manufactured", {"order": 2, "cells": (2, 2)}, 3),
    Case("taylor_green", {"order": 2, "cells": (2, 2, 2)}, 3, conserves=True),
    Case("taylor_green", {"order": 3, "cells": (2, 2, 2), "reynolds": math.inf}, 3),
    Case("viscous_shock_tube", {"order": 2, "cells": (8, 4)}, 3),
]

# L2 and Linf by case and field, as `python -m tests.test_dg_examples` prints them.
ERRORS = """
advection-3-8-line
  u        1.0756094750e-04 4.3732245577e-04
advection-3-(3,3)-gauss
  u        2.7871446933e-03 8.1035410892e-03
advection-2-2-tetrahedron
  u        3.2331888769e-01 5.8352169632e-01
acoustic_pulse-3-(3,3)
  p        8.8107582466e-02 8.5129594372e-01
  v1       3.1324338010e-02 1.0347670256e-01
  v2       3.1324338010e-02 1.0347670256e-01
standing_wave-(4,4)-triangle
  p        2.3543528331e-04 1.3357043531e-03
  v1       2.1744581742e-04 1.1892844951e-03
  v2       2.1744581858e-04 1.0775560548e-03
standing_wave-4-8-line-central
  p        1.0558301443e-07 3.2996615720e-07
  v1       7.3720857709e-08 1.4845419496e-07
maxwell_cavity-(4,4)
  E3       2.1406087751e-04 1.3321381641e-03
  H1       2.0781338389e-04 9.5929651532e-04
  H2       2.0781338275e-04 1.1645844104e-03
maxwell_cavity-2-2-hexahedron
  E1       3.0278809697e-02 1.0657397868e-01
  E2       3.0278809697e-02 1.0657397868e-01
  E3       3.9156938081e-02 1.5435911583e-01
  H1       2.4653264551e-02 1.0437728630e-01
  H2       2.4653264551e-02 1.0437728630e-01
  H3       5.3360619580e-03 1.3951365920e-02
isentropic_vortex-8
  rho      5.8993483658e-04 1.0016163461e-02
  rho_v1   6.4959553824e-03 8.9802675710e-02
  rho_v2   6.4893126653e-03 9.9700144947e-02
  rho_e    5.2330833427e-02 9.0040895895e-01
isentropic_vortex-4-triangle-mfem-fast
  rho      4.1475292838e-04 2.9543561411e-03
  rho_v1   2.2114194457e-03 1.3674792492e-02
  rho_v2   2.2649676623e-03 1.9243719319e-02
  rho_e    4.9541209226e-03 3.7575351672e-02
isentropic_vortex-4-mfem-slow
  rho      4.1361673001e-06 1.8060617656e-05
  rho_v1   1.6303758308e-04 8.4998564890e-04
  rho_v2   1.6632095640e-04 8.3114963877e-04
  rho_e    4.1399975773e-03 1.7569519442e-02
euler_source-4
  rho      2.8682265080e-04 1.1297550029e-03
  rho_v1   4.1083597728e-04 1.7831768306e-03
  rho_v2   4.1083597728e-04 1.7831768306e-03
  rho_e    1.3020010612e-03 6.7436412328e-03
sod-20
  rho      2.5138850977e-02 1.9318875494e-01
  rho_v1   2.1825872256e-02 1.4877274135e-01
  rho_e    7.3686672524e-02 5.3943252065e-01
shu_osher-40
  rho      2.5213227364e-01 2.9986588038e+00
  rho_v1   9.1407724149e-01 1.0392068381e+01
  rho_e    3.2892933318e+00 3.6676757787e+01
double_mach-(16,4)
  rho      4.2692142817e-01 5.7229940780e+00
  rho_v1   3.5738834600e+00 4.8421105449e+01
  rho_v2   2.0549145394e+00 2.1701053647e+01
  rho_e    3.5036296824e+01 5.0697478380e+02
forward_facing_step-(15,5)
  rho      9.2610682392e-02 2.1687453895e+00
  rho_v1   9.3161142633e-02 2.2932603165e+00
  rho_v2   2.5752164697e-02 1.2184399867e+00
  rho_e    7.1382954702e-01 1.7318587476e+01
kelvin_helmholtz-4
  rho      7.7177260384e-02 2.1341807958e-01
  rho_v1   5.9676276724e-02 1.5869755773e-01
  rho_v2   5.1719487656e-02 1.4061094550e-01
  rho_e    7.8052211277e-02 3.4068117522e-01
entropy_conservation-4
  rho      6.2771269833e-02 2.7935424333e-01
  rho_v1   4.2637788667e-02 2.2400209671e-01
  rho_v2   4.2637788667e-02 2.2400209672e-01
  rho_e    2.2796346324e-01 1.0082621640e+00
free_stream-(2,2,2)-tetrahedron-2
  rho      0.0000000000e+00 0.0000000000e+00
  rho_v1   0.0000000000e+00 0.0000000000e+00
  rho_v2   0.0000000000e+00 0.0000000000e+00
  rho_v3   0.0000000000e+00 0.0000000000e+00
  rho_e    0.0000000000e+00 0.0000000000e+00
diffusion-4-line
  u        5.4769875076e-06 8.0835736437e-06
diffusion-2-(1,1,2)-tetrahedron
  u        3.0662071708e-02 1.0258779089e-01
couette-2-(1,2)
  rho      6.0802777855e-05 1.0696227716e-04
  rho_v1   1.0293843084e-04 1.7910622320e-04
  rho_v2   3.5654726310e-17 8.1523752462e-17
  rho_e    6.9799887361e-05 1.2691685752e-04
poiseuille-3-(1,2)
  rho      1.4702578260e-04 1.6473559190e-04
  rho_v1   2.1569519442e-04 2.9375963574e-04
  rho_v2   1.8439093753e-05 4.3497172621e-05
  rho_e    1.1739477321e-03 1.4865736547e-03
becker_shock-2-20
  rho      2.7690364315e-02 1.9288629601e-01
  rho_v1   6.4022601758e-03 3.4914686831e-02
  rho_e    1.5911456140e-02 1.0905491253e-01
navier_stokes_manufactured-2-(2,2)
  rho      5.9312222391e-02 1.5716438654e-01
  rho_v1   9.8040275078e-02 1.8536087677e-01
  rho_v2   1.0159928190e-01 2.1157662471e-01
  rho_e    2.4931267401e-01 4.4251478007e-01
taylor_green-2-(2,2,2)
  rho      7.3881200360e-04 2.4724026713e-03
  rho_v1   1.2165401812e-01 2.7069072098e-01
  rho_v2   1.2165401812e-01 2.7069072098e-01
  rho_v3   1.9602468934e-03 8.2014911276e-03
  rho_e    3.4627261020e-01 7.1511720882e-01
taylor_green-3-(2,2,2)-inf
  rho      2.1937288636e-03 6.8291184377e-03
  rho_v1   1.8110118383e-02 4.8129321353e-02
  rho_v2   1.8110118383e-02 4.8129321353e-02
  rho_v3   1.8059217145e-02 5.2645672470e-02
  rho_e    5.4553348394e-01 1.5744271601e+00
viscous_shock_tube-2-(8,4)
  rho      9.9544967813e+00 4.5875914063e+01
  rho_v1   6.2941748640e+00 2.8024742673e+01
  rho_v2   2.7578948359e-02 5.1099184148e-01
  rho_e    1.8644512868e+01 8.5253203427e+01
"""


@functools.cache
def problem(case: Case, array: Any = mb.HostArray) -> Any:
    return importlib.import_module(f"mirabelle.dg.examples.{case.example}").setup(
        **case.parameters, array=array
    )


@functools.cache
def solved(case: Case, array: Any = mb.HostArray, steps: int | None = None) -> dg.Solution:
    semi, initial, tspan, options = problem(case, array)
    compiled = not semi.second_order  # it takes longer to make a program of viscous steps than to take a few
    return dg.solve(semi, tspan, initial, max_steps=steps or case.steps, compiled=compiled, **options)


def shown(case: Case) -> str:
    """The case and its errors: differences to `exact`, or to the initial state where that is not known."""
    exact = getattr(importlib.import_module(f"mirabelle.dg.examples.{case.example}"), "exact", problem(case)[1])
    known = {k: v for k, v in case.parameters.items() if k in inspect.signature(exact).parameters}
    errors = solved(case).errors(functools.partial(exact, **known))
    return "\n".join([str(case), *[f"  {n:8} {e.l2:.10e} {e.linf:.10e}" for n, e in errors.items()]])


def parsed(text: str) -> dict[str, dict[str, list[float]]]:
    out: dict[str, dict[str, list[float]]] = {}
    for line in text.strip().splitlines():
        name, *values = line.split()
        if values:
            out[list(out)[-1]][name] = [float(v) for v in values]
        else:
            out[name] = {}
    return out


def integrals(semi: dg.Semidiscretization, u: Any) -> np.ndarray:
    return mb.to_numpy(semi.integrate(u))


def of(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=str)


@of(CASES)
def test_errors_are_what_they_were(case: Case) -> None:
    now, before = parsed(shown(case))[str(case)], parsed(ERRORS)[str(case)]
    assert list(now) == list(before) == list(solved(case).semi.equations.names)
    for name, errors in now.items():
        assert errors == pytest.approx(before[name], rel=case.alike, abs=1e-12), name


@of([c for c in CASES if c.conserves])
def test_integrals_stay(case: Case) -> None:
    semi, initial, (begin, _), _ = problem(case)
    magnitude, start = (integrals(semi, of(semi.state(initial, begin))) for of in (mb.abs, lambda u: u))
    assert np.all(np.abs(integrals(semi, solved(case).u) - start) <= 2e-14 * (magnitude + 1))


def rates(example: Any, **parameters: Any) -> tuple[dg.Semidiscretization, Any, Any]:
    """A semidiscretization, the initial state and its rates."""
    semi, initial, (begin, _), _ = example.setup(**parameters)
    u = semi.state(initial, begin)
    return semi, u, mb.materialize(semi.rhs(u, semi.scalar(begin)))


@of([c for c in CASES if c.anywhere])
def test_arrays_agree(case: Case) -> None:
    example = importlib.import_module(f"mirabelle.dg.examples.{case.example}")
    parameters = case.parameters | case.anywhere
    host, there = (mb.to_numpy(rates(example, array=a, **parameters)[2]) for a in (mb.HostArray, mb.RefArray))
    assert np.abs(host).max() > 0 and np.abs(host - there).max() <= 1e-12 * np.abs(host).max()


@pytest.mark.parametrize("example", sorted(problems()))
def test_examples_have_one_form(example: str) -> None:
    module = importlib.import_module(f"mirabelle.dg.examples.{example}")
    known = inspect.signature(module.setup).parameters
    assert {"order", "cells", "array", "end"} <= set(known)
    assert all(p.default is not p.empty for p in known.values())
    assert any(case.example == example for case in CASES)
    assert callable(module.run)


def test_an_example_runs() -> None:
    from mirabelle.dg.examples import advection

    solution = advection.run(order=3, cells=8, cell="line", end=0.25)
    assert isinstance(solution, dg.Solution) and solution.t == 0.25
    assert solution.errors(advection.exact)["u"].l2 < 1e-3


# Hyperbolic problems


@pytest.mark.parametrize("cell", [None, "triangle"])
def test_energy_of_a_standing_wave(cell: str | None) -> None:
    from mirabelle.dg.examples import standing_wave

    def energy_rate(flux: Any) -> float:
        semi, initial, _, _ = standing_wave.setup(cells=(3, 3), cell=cell, flux=flux)
        u = semi.state(initial, 0.1) + 0.3 * semi.state(lambda x, t: (x[0] - x[1] * x[1], x[1], 1 - x[0]))
        variables = semi.equations.entropy_variables(semi.fields(u))
        exchanged = mb.stack(variables) * semi.rhs(u)
        return float(mb.sum(semi.integrate(exchanged)) / mb.sum(semi.integrate(mb.abs(exchanged))))

    if cell is None:  # the integral at nodes is that with which the method conserves
        assert abs(energy_rate(dg.central)) < 1e-14
    assert energy_rate(dg.upwind) < 0


@pytest.mark.parametrize("flux", [dg.ranocha, dg.chandrashekar], ids=lambda f: f.__name__)
def test_entropy_is_conserved(flux: Any) -> None:
    from mirabelle.dg.examples import entropy_conservation as example

    semi, u, found = rates(example, cells=6, flux=flux)
    variables = mb.stack(semi.equations.entropy_variables(semi.fields(u)))
    magnitude = float(mb.sum(semi.integrate(mb.abs(variables * found))))
    assert magnitude > 1 and abs(example.entropy_rate(semi, u)) < 1e-13 * magnitude


@pytest.mark.parametrize(
    ("cell", "cells", "volume"),
    [
        ("line", 3, None),
        ("triangle", (2, 2), None),
        ("quadrilateral", (2, 2), None),
        ("quadrilateral", (2, 2), dg.FluxDifferencing(dg.ranocha)),
        ("quadrilateral", (2, 2), dg.SubcellBlending(dg.ranocha)),
        ("tetrahedron", (2, 2, 2), None),
        ("hexahedron", (2, 2, 2), None),
        ("hexahedron", (2, 2, 2), dg.FluxDifferencing(dg.chandrashekar)),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, dg.VolumeForm) else str(v),
)
def test_a_free_stream_stays(cell: str, cells: Any, volume: Any) -> None:
    from mirabelle.dg.examples import free_stream

    _, _, found = rates(free_stream, order=3, cells=cells, cell=cell, volume=volume)
    assert float(mb.max(mb.abs(found))) < 1e-11


def test_a_shock_tube_has_its_states_and_speeds() -> None:
    from mirabelle.dg.examples import sod

    solution = sod.run(cells=20)
    rho, momentum, energy = solution.semi.sample(solution.u, np.array([[0.1, 0.58, 0.77, 0.95]]))
    velocity = momentum / rho
    pressure = 0.4 * (energy - 0.5 * momentum * velocity)
    assert rho == pytest.approx([1.0, 0.4263194, 0.2655737, 0.125], rel=0.02)
    assert velocity[1:3] == pytest.approx(0.9274526, rel=0.02)
    assert pressure[1:3] == pytest.approx(0.3031302, rel=0.02)
    x = np.linspace(0.0, 1.0, 501)
    rho = solution.semi.sample(solution.u, x[None])[0]
    assert x[np.argmax(rho < 0.195)] == pytest.approx(0.5 + 0.2 * 1.7521557, abs=0.01)
    assert x[np.argmax(rho < 0.346)] == pytest.approx(0.5 + 0.2 * 0.9274526, abs=0.01)


def test_shock_tubes_along_all_axes_are_one() -> None:
    from mirabelle.dg.examples import sod

    def profile(cells: Any, axis: int) -> np.ndarray:
        """Two short steps: density, momentum and energy by node and cell along the axis, and all else."""
        semi, u, found = rates(sod, order=2, cells=cells, axis=axis)
        u = mb.materialize(u + 1e-3 * found)
        u, d = mb.to_numpy(u + 1e-3 * semi.rhs(u, semi.scalar(1e-3))), semi.dims
        assert all(np.abs(u[1 + a]).max() < 1e-14 for a in range(d) if a != axis)
        by_axis = u[[0, 1 + axis, d + 1]].reshape(3, *[3] * d, *np.atleast_1d(cells))
        return np.moveaxis(by_axis, (1 + axis, 1 + d + axis), (1, 2)).reshape(3, 3, 10, -1)

    line = profile(10, 0)
    assert np.ptp(line[1]) > 0.05
    for cells, axis in (((10, 2), 0), ((2, 10), 1), ((10, 1, 1), 0), ((1, 10, 1), 1), ((1, 1, 10), 2)):
        assert np.abs(profile(cells, axis) - line).max() < 1e-12


def test_a_restarted_run_is_the_uninterrupted_one(tmp_path: Any) -> None:
    from mirabelle.dg.examples import sod

    semi, initial, (begin, _), options = sod.setup(cells=12, order=2)
    whole = dg.solve(semi, (begin, 0.04), initial, **options)
    half = dg.solve(semi, (begin, 0.04), initial, max_steps=2, **options)
    again = dg.solve(semi, 0.04, dg.load(half.save(tmp_path / "half.h5"), semi), **options)
    assert 2 < whole.steps == again.steps and whole.t == again.t
    assert np.array_equal(mb.to_numpy(whole.u), mb.to_numpy(again.u))


if __name__ == "__main__":
    for each in CASES:
        if not sys.argv[1:] or each.example in sys.argv[1:]:
            print(shown(each))
