"""Mistakes in the functions that users write for `mirabelle.dg`: each is one sentence that names the function.

A generator of them: every role that a function of a user's can have, and everything it might return by mistake.
A wrong number of fields was once stretched to all of them without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg

# What comes instead of a tuple `right` of one array a field.
RETURNS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "none": lambda right: None,
    "a number": lambda right: 0.0,
    "a text": lambda right: "rho",
    "one array": lambda right: 0.0 * right[0],
    "a generator": lambda right: (f for f in right),
    "a dictionary": lambda right: dict(enumerate(right)),
    "an empty tuple": lambda right: (),
    "the first alone": lambda right: right[:1] if len(right) > 1 else right * 2,
    "one too few": lambda right: right[:-1],
    "one too many": lambda right: (*right, right[0]),
    "a tuple in a tuple": lambda right: (right,) * len(right),
    "with none": lambda right: (*right[:-1], None),
    "with a text": lambda right: (*right[:-1], "0.0"),
    "complex": lambda right: (*right[:-1], right[-1] + 1j),
    "of another shape": lambda right: (*right[:-1], np.zeros((2, 3, 5, 7, 11))),
}
ONE = {
    "none": lambda right: None,
    "a text": lambda right: "1.0",
    "a tuple": lambda right: (right,),
    "a tuple of two": lambda right: (right, right),
    "complex": lambda right: right + 1j,
    "of another shape": lambda right: np.zeros((2, 3, 5, 7, 11)),
}


@dataclass(frozen=True)
class Gas(dg.CompressibleNavierStokes):
    """A gas in which one method returns something else."""

    broken: str = ""
    wrong: Callable[[Any], Any] = lambda right: right

    def _returned(self, name: str, right: Any) -> Any:
        return self.wrong(right) if name == self.broken else right

    def flux(self, u: Any, axis: int) -> Any:
        return self._returned("flux", super().flux(u, axis))

    def normal_flux(self, u: Any, normal: Any) -> Any:
        return self._returned("normal_flux", dg.Equations.normal_flux(self, u, normal))

    def viscous_flux(self, u: Any, gradients: Any, axis: int) -> Any:
        return self._returned("viscous_flux", super().viscous_flux(u, gradients, axis))

    def primitive(self, u: Any) -> Any:
        return self._returned("primitive", super().primitive(u))

    def reflected(self, u: Any, normal: Any) -> Any:
        return self._returned("reflected", super().reflected(u, normal))

    def max_speed(self, u: Any, normal: Any) -> Any:
        return self._returned("max_speed", super().max_speed(u, normal))

    def diffusivity(self, u: Any) -> Any:
        return self._returned("diffusivity", super().diffusivity(u))

    def indicator(self, u: Any) -> Any:
        return self._returned("indicator", super().indicator(u))

    def speeds(self, u_left: Any, u_right: Any, normal: Any) -> Any:
        return self._returned("speeds", super().speeds(u_left, u_right, normal))


class Wall(dg.SlipWall):
    """A wall of which one method returns something else."""

    def __init__(self, broken: str, wrong: Callable[[Any], Any]) -> None:
        self.broken, self.wrong = broken, wrong

    def _returned(self, name: str, right: Any) -> Any:
        return self.wrong(right) if name == self.broken else right

    def state(self, *given: Any) -> Any:
        return self._returned("state", super().state(*given))

    def flux(self, *given: Any) -> Any:
        return self._returned("flux", super().flux(*given))

    def value(self, *given: Any) -> Any:
        return self._returned("value", super().value(*given))

    def viscous(self, *given: Any) -> Any:
        return self._returned("viscous", super().viscous(*given))


class Penalty(dg.SIPG):
    """A treatment of second derivatives of which one method returns something else."""

    def __init__(self, broken: str, wrong: Callable[[Any], Any]) -> None:
        super().__init__()
        object.__setattr__(self, "broken", broken)
        object.__setattr__(self, "wrong", wrong)

    def value(self, *given: Any) -> Any:
        right = super().value(*given)
        return self.wrong(right) if self.broken == "value" else right  # type: ignore[attr-defined]

    def flux(self, *given: Any) -> Any:
        right = super().flux(*given)
        return self.wrong(right) if self.broken == "flux" else right  # type: ignore[attr-defined]


MESH = dg.box((2, 2))


def problem(
    gas: Any = None, wall: Any = None, source: Any = None, viscous: Any = None, **solver: Any
) -> dg.Semidiscretization:
    sides = dict.fromkeys(("x_neg", "x_pos", "y_neg", "y_pos"), wall or dg.SlipWall())
    solver = dg.Solver(1, viscous=viscous or dg.BR1(), **solver)  # type: ignore[assignment]
    return dg.Semidiscretization(MESH, gas or Gas(2), solver, sides, source)  # type: ignore[arg-type]


def at_rest(x: Any, t: Any) -> Any:
    return (1.0 + 0.1 * x[0], 0.0 * x[0], 0.0 * x[0], 2.5 + 0.0 * x[1])


def start(semi: dg.Semidiscretization) -> None:
    """The first evaluations of everything."""
    u = semi.state(at_rest)
    semi.limit(semi.rhs(u, 0.0) * 0.0 + u)
    float(semi.max_dt(u))


def flux_that(wrong: Any) -> Any:
    def mine(u_left: Any, u_right: Any, normal: Any, equations: Any) -> Any:
        return wrong(dg.central(u_left, u_right, normal, equations))

    return mine


def source_that(wrong: Any) -> Any:
    def mine(u: Any, x: Any, t: Any, equations: Any) -> Any:
        return wrong(tuple(0.0 * q for q in u[:4]))

    return mine


def start_that(wrong: Any) -> Any:
    def mine(x: Any, t: Any) -> Any:
        return wrong(at_rest(x, t))

    return mine


def one_that(wrong: Any) -> Any:
    def mine(u: Any) -> Any:
        return wrong(u[0])

    return mine


def limiter_that(wrong: Any) -> Any:
    def mine(semi: Any, u: Any, t: Any) -> Any:
        return wrong(u)

    return mine


SPLIT = dg.FluxDifferencing(dg.ranocha)
# Roles, with what may come of them: the function that says which calls go wrong, and the name in the sentence.
FIELDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "source": (lambda wrong: start(problem(source=source_that(wrong))), "`mine`"),
    "surface_flux": (lambda wrong: start(problem(surface_flux=flux_that(wrong))), "`mine`"),
    "two_point": (
        lambda wrong: start(problem(surface_flux=dg.plus_dissipation(flux_that(wrong)))),
        "`mine`",
    ),
    "volume_flux": (lambda wrong: start(problem(volume=dg.FluxDifferencing(flux_that(wrong)))), "`mine`"),
    "subcells": (
        lambda wrong: start(problem(volume=dg.SubcellBlending(dg.ranocha, flux_that(wrong)))),
        "`mine`",
    ),
    "initial": (lambda wrong: dg.solve(problem(), 0.1, start_that(wrong), dt=0.01), "`mine`"),
    "exact": (lambda wrong: problem().norms(problem().state(at_rest), start_that(wrong), 0.0), "`mine`"),
    "prescribed": (lambda wrong: start(problem(wall=dg.FarField(start_that(wrong)))), "(`mine`|Prescribed)"),
    **{
        f"Gas.{name}": (
            lambda wrong, name=name: start(problem(Gas(2, broken=name, wrong=wrong))),
            f"`Gas.{name}`",
        )  # type: ignore[misc]
        for name in ("flux", "normal_flux", "viscous_flux", "primitive", "reflected")
    },
    "Gas.speeds": (
        lambda wrong: start(problem(Gas(2, broken="speeds", wrong=wrong), surface_flux=dg.hll)),
        "`Gas.speeds`",
    ),
    **{
        f"Wall.{name}": (lambda wrong, name=name: start(problem(wall=Wall(name, wrong))), f"`Wall.{name}`")  # type: ignore[misc]
        for name in ("state", "flux", "value", "viscous")
    },
    **{
        f"Penalty.{name}": (
            lambda wrong, name=name: start(problem(viscous=Penalty(name, wrong))),  # type: ignore[misc]
            f"`Penalty.{name}`",
        )
        for name in ("value", "flux")
    },
}
ARRAYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **{
        f"Gas.{name}": (
            lambda wrong, name=name: start(problem(Gas(2, broken=name, wrong=wrong))),
            f"`Gas.{name}`",
        )  # type: ignore[misc]
        for name in ("max_speed", "diffusivity")
    },
    "Gas.indicator": (
        lambda wrong: start(
            problem(Gas(2, broken="indicator", wrong=wrong), volume=dg.SubcellBlending(dg.ranocha))
        ),
        "`Gas.indicator`",
    ),
    "indicator": (
        lambda wrong: start(problem(artificial_viscosity=dg.ArtificialViscosity(indicator=one_that(wrong)))),
        "`mine`",
    ),
    "variables": (
        lambda wrong: start(problem(limiters=(dg.PositivityLimiter(variables=(one_that(wrong),)),))),
        "`mine`",
    ),
    "limiter": (lambda wrong: start(problem(limiters=(limiter_that(wrong),))), "`mine`"),
}
MISTAKES = [
    pytest.param(make, wrong, name, id=f"{role}: {what}")
    for table, returned in ((FIELDS, RETURNS), (ARRAYS, ONE))
    for i, (role, (make, name)) in enumerate(table.items())
    for j, (what, wrong) in enumerate(returned.items())
    # (All of them for the first two; then each third, another one for each role: what looks is one function.)
    if (i < 2 or (i + j) % 3 == 0) and (role, what) != ("limiter", "complex")
]


@pytest.mark.parametrize(("make", "wrong", "name"), MISTAKES)
def test_what_a_users_function_returns_wrongly_is_a_sentence_that_names_it(
    make: Any, wrong: Any, name: str
) -> None:
    with pytest.raises(ValueError) as caught:
        make(wrong)
    text = str(caught.value)
    assert re.search(name, text), text
    assert "returned" in text or "of the length" in text, text
    if "`" in name and "`mine`|" not in name:
        assert "test_dg_mistakes.py:" in text, text


def test_without_a_mistake_all_of_them_run() -> None:
    for make, _ in (*FIELDS.values(), *ARRAYS.values()):
        make(lambda right: right)


def test_programs_say_it_as_eager_functions_do() -> None:
    for options in ({"source": lambda u, x, t, e: (0 * u[0],)}, {"surface_flux": lambda a, b, n, e: (a[0],)}):
        with pytest.raises(
            ValueError, match=r"`<lambda>` \(.*test_dg_mistakes\.py:\d+\) returned a tuple of the"
        ):
            dg.solve(problem(**options), 0.1, at_rest, dt=0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_speed", "diffusivity"])
def test_a_negative_speed_is_refused_before_the_first_step(name: str) -> None:
    semi = problem(Gas(2, broken=name, wrong=lambda right: -right - 0.1))
    with pytest.raises(ValueError, match=rf"Gas\.{name}.* is -.* at x = .*Return absolute values"):
        dg.solve(semi, 0.1, at_rest, cfl=0.5)


def test_a_method_of_a_term_that_returns_one_field_is_refused() -> None:
    semi = problem()
    u = semi.state(at_rest)
    with (
        mb.override(dg.volume_term, (dg.WeakForm, object, mb.HostArray, object), lambda f, s, u, g: u[:1]),
        pytest.raises(ValueError, match=r"`dg\.volume_term` returned one array of the shape \(1, 4, 4\)"),
    ):
        semi.rhs(u, 0.0)


def test_numbers_and_stacked_arrays_serve_for_fields() -> None:
    semi = problem(source=lambda u, x, t, e: mb.stack([0.0 * q for q in u[:4]]))
    u = semi.state(lambda x, t: (1.0, 0.0, 0.0, 2.5))
    assert float(mb.max(mb.abs(semi.rhs(u, 0.0)))) < 1e-12
    assert (mb.to_numpy(semi.state(lambda x, t: np.array([1.0, 0.0, 0.0, 2.5]))) == mb.to_numpy(u)).all()


def test_arrays_over_processes_divide_cells():
    for array in (mb.DArray[mb.HostArray], mb.DArray[mb.RefArray], lambda x: mb.DArray[mb.HostArray](x)):
        semi = dg.Semidiscretization(
            dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(order=2), array=array
        )
        assert isinstance(semi, dg.Divided)
        with pytest.raises(TypeError, match=r"over all processes, and this is a HostArray.*semi.put"):
            semi.rhs(mb.zeros((1, 3, 4)), 0.0)


LINE = dg.box((4,), periodic=True)


def waves(equations: Any = None, **options: Any) -> Any:
    flux = options.pop("surface_flux", dg.lax_friedrichs)
    return dg.Semidiscretization(LINE, equations or dg.Burgers(), dg.Solver(2, surface_flux=flux), **options)


def sine(x: Any, t: Any) -> Any:
    return (mb.sin(x[0]),)


class Plain(dg.Burgers):
    """Of another flux and speed than its base class, and of nothing else."""

    def flux(self, u: Any, axis: int) -> Any:
        return (3.0 * u[0],)

    def max_speed(self, u: Any, normal: Any) -> Any:
        return 3.0


class Backwards(dg.Burgers):
    def max_speed(self, u: Any, normal: Any) -> Any:
        return -1.0


@pytest.mark.parametrize("flux", [dg.lax_friedrichs, dg.hll])
def test_what_a_class_says_of_its_flux_and_speed_is_used_everywhere(flux: Any) -> None:
    mine, known = waves(Plain(), surface_flux=flux), waves(dg.Advection((3.0,)), surface_flux=flux)
    u = mine.state(sine)
    np.testing.assert_allclose(mb.to_numpy(mine.rhs(u)), mb.to_numpy(known.rhs(u)), atol=1e-12)
    for options in ({"dt": 0.005}, {"cfl": 0.5}):
        found, expected = (dg.solve(s, 0.02, sine, **options) for s in (mine, known))
        np.testing.assert_allclose(mb.to_numpy(found.u), mb.to_numpy(expected.u), atol=1e-12)


@pytest.mark.parametrize(
    ("program", "cure"),
    [
        (lambda: dg.solve(waves(Backwards()), 0.1, sine, dt=0.01), r"mb\.abs"),
        (lambda: waves(surface_flux=lambda a, b, n: a), "lambda u_left, u_right, normal, equations"),
        (lambda: dg.solve(waves(), "a", sine, dt=0.1), r"solve\(semi, 1\.0, f\)"),
        (lambda: dg.solve(waves(), (0.0, 1.0, 2.0), sine, dt=0.1), "has to be t1, or"),
        (lambda: dg.solve(waves(), 0.1, sine, cfl="x"), r"cfl=0\.8"),
        (lambda: dg.solve(waves(), 0.1, sine, cfl=0.5, callbacks=3), r"callbacks=\[dg\.Alive\(\)\]"),
        (lambda: waves(boundary_conditions=[1]), r"\{\"x_neg\": dg\.SlipWall\(\)\}"),
        (lambda: waves().state(3), r"lambda x, t"),
        (lambda: waves(array=np.array), r"array=mb\.HostArray"),
    ],
)
def test_calls_that_do_not_fit_are_answered_by_the_cure(program: Any, cure: str) -> None:
    with pytest.raises((ValueError, TypeError), match=cure):
        program()
