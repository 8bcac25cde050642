"""Boundary conditions: what lies outside a face, and for second-order terms, on it.

An object answers three questions: `state` (the fields outside, for the numerical flux), `value` (the gradient
variables on the boundary) and `viscous` (the viscous flux through it). Another condition is a subclass that
overrides one of them, or `flux` altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from mirabelle.dg.equations.base import Equations, combined, dot, mirrored
from mirabelle.dg.returned import looked_after, one_each
from mirabelle.dg.spelled import Fields, Flux, Time

Given = float | Sequence[float] | Callable[[Fields, Any], Any]


# What methods return: as many fields as one of their arguments has, or as the equations have.
RETURNS: dict[str, Any] = {
    "state": lambda condition, u, *given: len(u),
    "flux": lambda condition, u, normal, x, t, equations, *given: equations.names,
    "value": lambda condition, w, *given: len(w),
    "viscous": lambda condition, f, *given: len(f),
}


class BoundaryCondition:
    """What boundary conditions have in common: the flux from the inner state to an outer one.

    `u` holds the fields inside and then the auxiliary ones, `normal` points outwards and has length one, `x`
    and `t` say where and when.

    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Burgers
    >>> from mirabelle.dg.fluxes import lax_friedrichs
    >>> class Twice(dg.BoundaryCondition):
    ...     def state(self, u, normal, x, t, equations):
    ...         return (2 * u[0],)
    >>> Twice().flux((mb.HostArray([1.0]),), (1.0,), (0.0,), 0.0, Burgers(), lax_friedrichs)[0].tolist()
    [0.25]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        looked_after(cls, RETURNS)

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        """The fields outside, auxiliary ones included."""
        return u

    def flux(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations, flux: Flux) -> Fields:
        """The flux out of the domain."""
        return flux(u, self.state(u, normal, x, t, equations), normal, equations)

    def value(self, w: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        """The gradient variables on the boundary, of which `w` are those inside: those of the outer state."""
        return equations.gradient_variables(self.state(u, normal, x, t, equations))

    def viscous(self, f: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        """The viscous flux through the boundary, of which `f` is the one inside."""
        return f


def evaluated(given: Given, like: Any, x: Fields, t: Time, names: Sequence[str], who: object) -> Fields:
    """Numbers, or a function's results, as fields like a given one; a tuple is for several.

    >>> import mirabelle as mb
    >>> [q.tolist() for q in evaluated((1.0, 2.0), mb.HostArray([0.0, 0.0]), (), 0.0, ("v1", "v2"), "a wall")]
    [[1.0, 1.0], [2.0, 2.0]]
    """
    values = given(x, t) if callable(given) else given
    values = tuple(values) if isinstance(values, tuple | list) else (values,)
    if len(values) != len(names):
        kind, dots = type(who).__name__, ", ".join(["..."] * len(names))
        raise ValueError(
            f"{kind}: a value at a boundary is a tuple of {', '.join(names)}, and one of the length "
            f"{len(values)} was given. Give one number each: `{kind}(({dots},))` or "
            f"`{kind}(lambda x, t: ({dots},))`."
        )
    values = one_each(values, given if callable(given) else type(who), names, like.shape)
    return tuple(0.0 * like + v if isinstance(v, Real) else v for v in values)


@dataclass(frozen=True)
class Prescribed(BoundaryCondition):
    """The conservative fields outside, as numbers or as a function of `(x, t)`.

    As `FarField`: the numerical flux lets out what leaves and in what enters. (In slow flow it pushes back
    where the velocity given is not quite the right one, with density times sound speed times the difference:
    over a boundary layer prescribe the flow that the layer displaces.) As `Dirichlet`: what diffuses has these
    values on the boundary.

    Parameters
    ----------
    given : tuple of float or callable
        The conservative fields outside: numbers, or a function of `(x, t)`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Advection
    >>> waves = dg.Prescribed(lambda x, t: (mb.sin(x[0] - t),))
    >>> u = (mb.HostArray([0.0, 0.0]),)
    >>> waves.state(u, (1.0,), (mb.HostArray([1.0, 2.0]),), 1.0, Advection((1.0,)))[0].tolist()
    [0.0, 0.8414709848078965]
    >>> dg.FarField((1.0, 0.5)).state(u, (1.0,), (0.0,), 0.0, Advection((1.0,)))
    Traceback (most recent call last):
        ...
    ValueError: Prescribed: a value at a boundary is a tuple of u, and one of the length 2 was given. Give one \
number each: `Prescribed((...,))` or `Prescribed(lambda x, t: (...,))`.
    """

    given: Given

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        return evaluated(self.given, u[0], x, t, equations.names, self) + tuple(u[len(equations) :])


FarField = Dirichlet = Prescribed


class SupersonicInflow(Prescribed):
    """A state that enters faster than sound: its physical flux, whatever is inside.

    Parameters
    ----------
    given : tuple of float or callable
        The conservative fields that enter: numbers, or a function of `(x, t)`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Burgers
    >>> u, normal = (mb.HostArray([9.0]),), (-1.0,)
    >>> dg.SupersonicInflow((2.0,)).flux(u, normal, (0.0,), 0.0, Burgers(), None)[0].tolist()
    [-2.0]
    """

    def flux(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations, flux: Flux) -> Fields:
        return equations.normal_flux(self.state(u, normal, x, t, equations), normal)


class SupersonicOutflow(BoundaryCondition):
    """What is inside leaves as it is.

    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Burgers
    >>> dg.SupersonicOutflow().flux((mb.HostArray([2.0]),), (1.0,), (0.0,), 0.0, Burgers(), None)[0].tolist()
    [2.0]
    """

    def flux(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations, flux: Flux) -> Fields:
        return equations.normal_flux(u, normal)


@dataclass(frozen=True)
class SubsonicOutflow(BoundaryCondition):
    """A pressure outside; density and velocity are those inside.

    Parameters
    ----------
    pressure : float
        The pressure outside.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import CompressibleEuler
    >>> gas = CompressibleEuler(1, gamma=2.0)
    >>> u = tuple(mb.HostArray([q]) for q in (1.0, 2.0, 5.0))
    >>> [q.tolist() for q in dg.SubsonicOutflow(1.0).state(u, (1.0,), (0.0,), 0.0, gas)]
    [[1.0], [2.0], [3.0]]
    """

    pressure: float

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        w = list(equations.primitive(u))
        at = equations.primitive_names.index("p")
        w[at] = 0.0 * w[at] + self.pressure
        return (*equations.conservative(tuple(w)), *u[len(equations) :])


class SlipWall(BoundaryCondition):
    """A wall without friction, or a plane of symmetry: the mirror image is outside.

    The wall of a gas, the hard wall of sound, Maxwell's perfect conductor: `equations.reflected` says what a
    mirror does. Nothing viscous passes but the normal stress.

    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Acoustics
    >>> u = mb.HostArray([1.0]), mb.HostArray([2.0]), mb.HostArray([3.0])
    >>> [q.tolist() for q in dg.SlipWall().state(u, (0.0, 1.0), (0.0, 0.0), 0.0, Acoustics(2))]
    [[1.0], [2.0], [-3.0]]
    """

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        return equations.reflected(u, normal)

    def value(self, w: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        return (*mirrored(w[: equations.dims], normal, 1.0), *w[equations.dims :])

    def viscous(self, f: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        d = equations.dims
        stress = dot(f[1 : d + 1], normal)
        return (f[0], *(stress * n for n in normal), *(0.0 * q for q in f[d + 1 :]))


Symmetry = SlipWall


@dataclass(frozen=True)
class NoSlipWall(BoundaryCondition):
    """A wall that a viscous gas sticks to: adiabatic unless it has a temperature, at rest unless it moves.

    Both are numbers or functions of `(x, t)`; the velocity is a tuple, along the wall. Outside, velocity and
    temperature are such that their means are the wall's. Convection sees the image of an adiabatic wall, so
    that no mass passes.

    Parameters
    ----------
    temperature : float, callable or None
        The wall's; None is an adiabatic wall.
    velocity : tuple, callable or None
        The wall's, along itself; None is a wall at rest.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import CompressibleNavierStokes
    >>> gas = CompressibleNavierStokes(1)
    >>> u = tuple(mb.HostArray([q]) for q in (1.0, 3.0, 7.0))
    >>> [q.tolist() for q in dg.NoSlipWall().state(u, (1.0,), (0.0,), 0.0, gas)]
    [[1.0], [-3.0], [7.0]]
    >>> hot = dg.NoSlipWall(temperature=5.0)
    >>> [q.tolist() for q in hot.value(gas.gradient_variables(u), u, (1.0,), (0.0,), 0.0, gas)]
    [[0.0], [5.0]]
    """

    temperature: Given | None = None
    velocity: Given | None = None

    def _warm(self, u: Fields, x: Fields, t: Time) -> Fields:
        return evaluated(self.temperature or (), u[0], x, t, ("temperature",), self)

    def _moving(self, u: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        d = equations.dims
        return evaluated(self.velocity or (0.0,) * d, u[0], x, t, [f"v{a + 1}" for a in range(d)], self)

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        rho, *w = equations.primitive(u)
        d, wall = equations.dims, self._moving(u, x, t, equations)
        p = w[d]
        if self.temperature is not None:
            inside = equations.gradient_variables(u)[d]
            p = p * (2.0 * self._warm(u, x, t)[0] / inside - 1.0)
        return equations.conservative((rho, *combined(2.0, wall, -1.0, w[:d]), p, *w[d + 1 :]))

    def flux(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations, flux: Flux) -> Fields:
        image = NoSlipWall(velocity=self.velocity).state(u, normal, x, t, equations)
        return flux(u, image, normal, equations)

    def value(self, w: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        d, heat = equations.dims, w[equations.dims : equations.dims + 1]
        if self.temperature is not None:
            heat = self._warm(u, x, t)
        return (*self._moving(u, x, t, equations), *heat, *w[d + 1 :])

    def viscous(self, f: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        d = equations.dims
        energy = f[d + 1]
        if self.temperature is None:  # no heat passes: only the work of the moving wall
            energy = dot(f[1 : d + 1], self._moving(u, x, t, equations))
        return (*f[: d + 1], energy, *(0.0 * q for q in f[d + 2 :]))


@dataclass(frozen=True)
class Neumann(BoundaryCondition):
    """A given viscous flux along the outward normal, `kappa` times the normal derivative: zero insulates.

    Parameters
    ----------
    given : number, tuple or callable
        The viscous flux, or a function of `(x, t)` that gives it.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import mirabelle as mb
    >>> from mirabelle.dg.equations import Diffusion
    >>> u = (mb.HostArray([1.0]),)
    >>> dg.Neumann(2.0).viscous(u, u, (1.0,), (0.0,), 0.0, Diffusion(1))[0].tolist()
    [2.0]
    """

    given: Given

    def viscous(self, f: Fields, u: Fields, normal: Fields, x: Fields, t: Time, equations: Equations) -> Fields:
        return evaluated(self.given, u[0], x, t, equations.names, self)
