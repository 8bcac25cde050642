"""Numerical fluxes: plain functions of two states, a normal from the left to the right, and the equations.

Those for surfaces (`upwind`, `lax_friedrichs`, `hll`, `hllc`, `roe`) want a unit normal. Two-point fluxes for
volumes (`central`, `ranocha`, `chandrashekar`, `shima`, `kennedy_gruber`, `entropy_conservative`) are symmetric
in the states and linear in the normal, which may have any length. A flux that only some equations have is a
generic function: `@dg.hllc.method` gives it to others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import mirabelle as mb
from mirabelle.dg.equations.base import Equations, Linear, combined, dot
from mirabelle.dg.equations.burgers import Burgers
from mirabelle.dg.equations.euler import CompressibleEuler
from mirabelle.dg.equations.tracers import Tracers
from mirabelle.dg.returned import common_shape, one_each
from mirabelle.dg.spelled import Fields, Flux


def central(u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
    """The mean of the two physical fluxes: conserves the energy of linear systems, dissipates nothing.

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.equations import Advection
    >>> dg.central((1.0,), (3.0,), (1.0,), Advection((2.0,)))
    (4.0,)
    """
    left, right = equations.normal_flux(u_left, normal), equations.normal_flux(u_right, normal)
    return combined(0.5, left, 0.5, right)


def upwind(u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
    """The flux of the exact solution of the Riemann problem of a linear system, by its characteristics.

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal, of length 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, and of the shape of the
        fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> from mirabelle.dg.equations import Advection
    >>> dg.upwind((mb.HostArray([1.0]),), (mb.HostArray([3.0]),), (1.0,), Advection((2.0,)))[0].tolist()
    [2.0]
    """
    return equations.upwind(u_left, u_right, normal)


@dataclass(frozen=True)
class plus_dissipation:
    """A two-point flux and half the jump of the state times the largest speed.

    Entropy stable if the two-point flux conserves the entropy.

    Parameters
    ----------
    two_point : callable
        The flux.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> flux = dg.plus_dissipation(dg.entropy_conservative)
    >>> flux((mb.HostArray([2.0]),), (mb.HostArray([0.0]),), (1.0,), dg.Burgers())[0].tolist()
    [2.6666666666666665]
    """

    two_point: Flux

    def __call__(self, u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
        half = 0.5 * mb.maximum(equations.max_speed(u_left, normal), equations.max_speed(u_right, normal))
        flux = self.two_point(u_left, u_right, normal, equations)
        shape = common_shape(u_left, u_right, normal)
        flux = one_each(flux, self.two_point, equations.names, shape, "The two-point flux")
        return tuple(f + half * (a - b) for f, a, b in zip(flux, u_left, u_right, strict=False))

    @property
    def __name__(self) -> str:
        return f"plus_dissipation({self.two_point.__name__})"


def lax_friedrichs(u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
    """The local Lax-Friedrichs flux, for which a bound of the speed is enough (Rusanov 1961).

    10.1016/0041-5553(62)90062-9

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal, of length 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, and of the shape of the
        fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> dg.lax_friedrichs((mb.HostArray([2.0]),), (mb.HostArray([0.0]),), (1.0,), dg.Burgers())[0].tolist()
    [3.0]
    """
    return plus_dissipation(central)(u_left, u_right, normal, equations)


rusanov = lax_friedrichs


def hll(u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
    """Two waves of the speeds that `equations.speeds` gives (Harten, Lax, van Leer 1983, 10.1137/1025002).

    Written as the central flux and a correction, so that it is consistent also where both speeds vanish.

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal, of length 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, and of the shape of the
        fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> dg.hll((mb.HostArray([2.0, 0.0]),), (mb.HostArray([1.0, 0.0]),), (1.0,), dg.Burgers())[0].tolist()
    [2.0, 0.0]
    """
    lowest, highest = equations.speeds(u_left, u_right, normal)
    low, high = mb.minimum(lowest, 0.0), mb.maximum(highest, 0.0)
    width = high - low
    share = 1.0 / mb.where(width > 0, width, 1.0)
    skew, jump = 0.5 * (high + low) * share, high * low * share
    left, right = equations.normal_flux(u_left, normal), equations.normal_flux(u_right, normal)
    mean = combined(0.5 + skew, left, 0.5 - skew, right)
    return tuple(f + jump * (b - a) for f, a, b in zip(mean, u_left, u_right, strict=False))


def _of_gases(instead: str, upwinded: bool = False) -> Callable[[Flux], Any]:
    """Make a flux of gases a generic function, with a method for tracers and a refusal of other equations."""

    def make(flux: Flux) -> Any:
        generic = mb.generic(flux)

        @generic.method
        def _(u_left: tuple, u_right: tuple, normal: tuple, equations: CompressibleEuler) -> Fields:
            return flux(u_left, u_right, normal, equations)

        @generic.method
        def _(u_left: tuple, u_right: tuple, normal: tuple, equations: Tracers) -> Fields:
            m = len(equations.carrier)
            of_gas = generic(u_left[:m], u_right[:m], normal, equations.carrier)
            sides = zip(equations.fractions(u_left), equations.fractions(u_right), strict=True)
            if upwinded:  # the fractions of where the mass comes from
                return equations.carried(of_gas, tuple(mb.where(of_gas[0] >= 0, a, b) for a, b in sides))
            return equations.carried(of_gas, tuple(0.5 * (a + b) for a, b in sides))

        @generic.method
        def _(u_left: tuple, u_right: tuple, normal: tuple, equations: Equations) -> NoReturn:
            raise TypeError(
                f"The flux `{flux.__name__}` is not written for {type(equations).__name__}. "
                f"Use one that is, say `dg.{instead}`, or add it with `@dg.{flux.__name__}.method`."
            )

        return generic

    return make


@_of_gases("hll", upwinded=True)
def hllc(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Three waves, so that contacts stay sharp (Toro, Spruce, Speares 1994, 10.1007/BF01414629).

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal, of length 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, and of the shape of the
        fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> gas = dg.CompressibleEuler(1)
    >>> left, right = (tuple(mb.HostArray([q]) for q in u) for u in ((1.0, 0.0, 2.5), (0.5, 0.0, 2.5)))
    >>> [round(abs(float(f[0])), 14) for f in dg.hllc(left, right, (1.0,), gas)]  # a contact at rest
    [0.0, 1.0, 0.0]
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    left, right = dot(v, normal), dot(v_, normal)
    lowest, highest = equations.speeds(u_left, u_right, normal)
    into, into_ = rho * (lowest - left), rho_ * (highest - right)  # masses that the outer waves sweep
    contact = (p_ - p + left * into - right * into_) / (into - into_)
    from_left = contact >= 0

    # From here on, of the side that the face lies in: behind the outer wave, or before it in supersonic flow.
    density, energy = (mb.where(from_left, u_left[i], u_right[i]) for i in (0, equations.dims + 1))
    pressure, speed = mb.where(from_left, p, p_), mb.where(from_left, left, right)
    wave, swept = mb.where(from_left, lowest, highest), mb.where(from_left, into, into_)
    behind = mb.where(from_left, lowest < 0, highest > 0)
    share = 1.0 / (wave - contact)
    slip = mb.where(behind, contact - speed, 0.0)
    velocity = [mb.where(from_left, a, b) + slip * n for a, b, n in zip(v, v_, normal, strict=True)]
    specific = energy / density + slip * contact
    density = mb.where(behind, swept * share, density)
    energy = density * specific + slip * pressure * share
    pressure = pressure + swept * slip
    speed = mb.where(behind, contact, speed)
    mass = density * speed
    return (mass, *combined(mass, velocity, pressure, normal), (energy + pressure) * speed)


@_of_gases("hll", upwinded=True)
def roe(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Waves of the linearisation at Roe's averages, sound waves with the entropy fix of Harten and Hyman.

    Roe 1981, 10.1016/0021-9991(81)90128-5; Harten, Hyman 1983, 10.1016/0021-9991(83)90066-9.

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal, of length 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, and of the shape of the
        fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> gas = dg.CompressibleEuler(1)
    >>> left, right = (tuple(mb.HostArray([q]) for q in u) for u in ((1.0, 0.0, 2.5), (0.5, 0.0, 2.5)))
    >>> [round(abs(float(f[0])), 14) for f in dg.roe(left, right, (1.0,), gas)]
    [0.0, 1.0, 0.0]
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    velocity, enthalpy, c = equations.roe_averages(u_left, u_right)
    speed, left, right = dot(velocity, normal), dot(v, normal), dot(v_, normal)
    y, y_ = equations.sound_speed(u_left), equations.sound_speed(u_right)

    def fixed(wave: Any, before: Any, after: Any) -> Any:
        width = mb.maximum(mb.maximum(wave - before, after - wave), 0.0)
        smooth = 0.5 * (wave * wave / mb.where(width > 0, width, 1.0) + width)
        return mb.where(mb.abs(wave) < width, smooth, mb.abs(wave))

    share = 1.0 / (c * c)
    density = mb.sqrt(rho * rho_)
    push, thrust = 0.5 * share * (p_ - p), 0.5 * density * (right - left) / c
    slow = fixed(speed - c, left - y, right - y_) * (push - thrust)
    fast = fixed(speed + c, left + y, right + y_) * (push + thrust)
    still = mb.abs(speed)
    contact = still * (rho_ - rho - share * (p_ - p))
    shear = [still * density * (b - a - (right - left) * n) for a, b, n in zip(v, v_, normal, strict=True)]

    sound, difference = slow + fast, (fast - slow) * c
    pushed = combined(sound + contact, velocity, difference, normal)
    kinetic = 0.5 * contact * dot(velocity, velocity) + dot(velocity, shear)
    energy = sound * enthalpy + difference * speed + kinetic
    lost = (sound + contact, *combined(1.0, pushed, 1.0, shear), energy)
    return combined(1.0, central(u_left, u_right, normal, equations), -0.5, lost)


def logarithmic_mean(a: Any, b: Any) -> Any:
    """`(a - b) / (log a - log b)` of positive numbers, also where they are nearly equal.

    Near equality by a series, of which the next term is below round-off (Ismail, Roe 2009,
    10.1016/j.jcp.2009.04.021).

    >>> logarithmic_mean(mb.HostArray([1.0, 2.0]), mb.HostArray([1.0, 1.0])).tolist()
    [1.0, 1.4426950408889634]
    """
    total, difference = a + b, b - a
    relative = difference / total
    squared = relative * relative
    far = squared > 1e-4
    series = 2.0 + squared * (2 / 3 + squared * (2 / 5 + squared * (2 / 7 + squared * (2 / 9))))
    logarithm = mb.log(mb.where(far, b / a, 2.0))  # of 2 where it is not used: no division by zero
    return mb.where(far, difference, total) / mb.where(far, logarithm, series)


@_of_gases("entropy_conservative")
def ranocha(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Conserves entropy, keeps kinetic energy and pressure equilibria (Ranocha 2020).

    10.1007/978-3-030-39647-3_42

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.ranocha((1.0,), (1.0,), (1.0,), dg.Burgers())
    Traceback (most recent call last):
        ...
    TypeError: The flux `ranocha` is not written for Burgers. Use one that is, say `dg.entropy_conservative`, \
or add it with `@dg.ranocha.method`.
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    left, right = dot(v, normal), dot(v_, normal)
    mass = logarithmic_mean(rho, rho_) * (0.5 * (left + right))
    inner = p * p_ / logarithmic_mean(rho * p_, rho_ * p) * (1.0 / (equations.gamma - 1.0))
    energy = mass * (0.5 * dot(v, v_) + inner) + 0.5 * (p * right + p_ * left)
    return (mass, *combined(mass, combined(0.5, v, 0.5, v_), 0.5 * (p + p_), normal), energy)


@_of_gases("entropy_conservative")
def chandrashekar(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Conserves entropy and keeps kinetic energy (Chandrashekar 2013, 10.4208/cicp.170712.010313a).

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> u = tuple(mb.HostArray([q]) for q in (1.0, 1.0, 3.0))
    >>> [round(float(f[0]), 14) for f in dg.chandrashekar(u, u, (1.0,), dg.CompressibleEuler(1))]
    [1.0, 2.0, 4.0]
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    beta, beta_ = 0.5 * rho / p, 0.5 * rho_ / p_
    mean = combined(0.5, v, 0.5, v_)
    mass = logarithmic_mean(rho, rho_) * dot(mean, normal)
    momentum = combined(mass, mean, 0.5 * (rho + rho_) / (beta + beta_), normal)
    inner = 0.5 / ((equations.gamma - 1.0) * logarithmic_mean(beta, beta_))
    energy = mass * (inner - 0.25 * (dot(v, v) + dot(v_, v_))) + dot(mean, momentum)
    return (mass, *momentum, energy)


@_of_gases("entropy_conservative")
def shima(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Keeps kinetic energy and pressure equilibria without a logarithm (Shima et al. 2021).

    10.1016/j.jcp.2020.110060

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.shima((1.0, 1.0, 1.5), (1.0, 1.0, 1.5), (1.0,), dg.CompressibleEuler(1, gamma=2.0))
    (1.0, 2.0, 2.5)
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    left, right, pressure = dot(v, normal), dot(v_, normal), 0.5 * (p + p_)
    speed = 0.5 * (left + right)
    mass = 0.5 * (rho + rho_) * speed
    inner = pressure * speed * (1.0 / (equations.gamma - 1.0))
    energy = 0.5 * mass * dot(v, v_) + inner + 0.5 * (p * right + p_ * left)
    return (mass, *combined(mass, combined(0.5, v, 0.5, v_), pressure, normal), energy)


@_of_gases("entropy_conservative")
def kennedy_gruber(u_left: Fields, u_right: Fields, normal: Fields, equations: CompressibleEuler) -> Fields:
    """Keeps kinetic energy, by products of means (Kennedy, Gruber 2008, 10.1016/j.jcp.2007.09.020).

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.kennedy_gruber((1.0, 1.0, 1.5), (1.0, 1.0, 1.5), (1.0,), dg.CompressibleEuler(1, gamma=2.0))
    (1.0, 2.0, 2.5)
    """
    (rho, *v, p), (rho_, *v_, p_) = equations.primitive(u_left), equations.primitive(u_right)
    mean, at, pressure = combined(0.5, v, 0.5, v_), equations.dims + 1, 0.5 * (p + p_)
    speed = dot(mean, normal)
    mass = 0.5 * (rho + rho_) * speed
    energy = 0.5 * mass * (u_left[at] / rho + u_right[at] / rho_) + pressure * speed
    return (mass, *combined(mass, mean, pressure, normal), energy)


@_of_gases("central")
def entropy_conservative(u_left: Fields, u_right: Fields, normal: Fields, equations: Equations) -> Fields:
    """The two-point flux that conserves the entropy (Tadmor 1987, 10.1090/S0025-5718-1987-0890255-3).

    Parameters
    ----------
    u_left : tuple of arrays
        The fields on one side.
    u_right : tuple of arrays
        The fields on the other side, where the normal leads.
    normal : tuple of arrays
        The components of the normal; its length need not be 1.
    equations : Equations
        Whose flux it is.

    Returns
    -------
    tuple of array
        One flux for each field of the equations, in their order: along `normal`, times its length, and of
        the shape of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.entropy_conservative((2.0,), (0.0,), (3.0,), dg.Burgers())
    (2.0,)
    """
    return ranocha(u_left, u_right, normal, equations)


@entropy_conservative.method
def _(u_left: tuple, u_right: tuple, normal: tuple, equations: Linear) -> Fields:
    return central(u_left, u_right, normal, equations)


@entropy_conservative.method
def _(u_left: tuple, u_right: tuple, normal: tuple, equations: Burgers) -> Fields:
    a, b = u_left[0], u_right[0]
    return (sum(normal[1:], normal[0]) * ((a * a + a * b + b * b) * (1 / 6)),)


# These take away no more of a wave than the wave's own speed does.
SHARP = (central, upwind, hllc, roe, ranocha, chandrashekar, shima, kennedy_gruber, entropy_conservative)
