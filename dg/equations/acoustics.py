"""Linear acoustics: pressure and velocity of small waves, in uniform and in varying media."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mirabelle as mb
from mirabelle.dg.equations.base import Linear, check, dot, mirrored
from mirabelle.dg.spelled import Fields, Number


@dataclass(frozen=True)
class Acoustics(Linear):
    """`p_t + rho c^2 div v = 0`, `v_t + grad p / rho = 0` with constant speed of sound `c` and density `rho`.

    With density 1 and speed 1 this is the wave equation as a system of first order.

    Parameters
    ----------
    dims : int
        How many dimensions.
    speed : float, default 1.0
        The speed of sound.
    density : float, default 1.0
        The density at rest.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> p, v = mb.HostArray([1.0]), mb.HostArray([0.5])
    >>> [f.tolist() for f in dg.Acoustics(1, speed=2.0).flux((p, v), 0)]
    [[2.0], [1.0]]
    """

    dims: int
    speed: float = 1.0
    density: float = 1.0

    def __post_init__(self) -> None:
        check(self, speed=self.speed, density=self.density)

    @property
    def names(self) -> tuple[str, ...]:
        return ("p", *(f"v{a + 1}" for a in range(self.dims)))

    @property
    def bulk(self) -> float:
        """The bulk modulus."""
        return self.density * self.speed**2

    def flux(self, u: Fields, axis: int) -> Fields:
        zero, push = 0.0 * u[0], u[0] * (1.0 / self.density)
        return (self.bulk * u[1 + axis], *(push if a == axis else zero for a in range(self.dims)))

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        push = u[0] * (1.0 / self.density)
        return (self.bulk * dot(u[1:], normal), *(push * n for n in normal))

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return 0.0 * u[0] + self.speed

    def upwind(self, u_left: Fields, u_right: Fields, normal: Fields) -> Fields:
        left, right = dot(u_left[1:], normal), dot(u_right[1:], normal)
        along = (0.5 * self.bulk) * (left + right) + (0.5 * self.speed) * (u_left[0] - u_right[0])
        push = (0.5 / self.density) * (u_left[0] + u_right[0]) + (0.5 * self.speed) * (left - right)
        return (along, *(push * n for n in normal))

    def reflected(self, u: Fields, normal: Fields) -> Fields:
        return (u[0], *mirrored(u[1:], normal))

    def entropy_variables(self, u: Fields) -> Fields:
        return (u[0] * (1.0 / self.bulk), *(self.density * v for v in u[1:]))


@dataclass(frozen=True)
class HeterogeneousAcoustics(Linear):
    """Sound in a medium whose speed of sound and density, functions of `x`, vary smoothly or jump.

    Compression `e = p / (rho c^2)` and momentum `m = rho v` are conserved whatever the medium does:
    `e_t + div(m / rho) = 0`, `m_t + grad(rho c^2 e) = 0`. Auxiliary fields are the bulk modulus and 1/density,
    so that fluxes divide by nothing. Upwinding is exact where the medium jumps (LeVeque, Finite Volume Methods
    for Hyperbolic Problems, 2002, section 9.9, 10.1017/CBO9780511791253).

    Parameters
    ----------
    dims : int
        How many dimensions.
    speed : callable
        The speed of sound, a function of `x`.
    density : callable
        The density at rest, a function of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> medium = dg.HeterogeneousAcoustics(1, speed=lambda x: 1 + x[0], density=lambda x: 2 + 0 * x[0])
    >>> given = medium.auxiliary((mb.HostArray([0.0, 1.0]),))
    >>> u = medium.conservative((mb.HostArray([1.0, 1.0]), mb.HostArray([3.0, 3.0]), *given))
    >>> [f.tolist() for f in u], [f.tolist() for f in medium.flux((*u, *given), 0)]
    ([[0.5, 0.125], [6.0, 6.0]], [[3.0, 3.0], [1.0, 1.0]])
    """

    dims: int
    speed: Callable[[Fields], Any]
    density: Callable[[Fields], Any]

    def __post_init__(self) -> None:
        check(self)

    @property
    def names(self) -> tuple[str, ...]:
        return ("compression", *(f"momentum{a + 1}" for a in range(self.dims)))

    @property
    def primitive_names(self) -> tuple[str, ...]:
        return ("p", *(f"v{a + 1}" for a in range(self.dims)))

    def auxiliary(self, x: Fields) -> Fields:
        speed, density = self.speed(x), self.density(x)
        return density * speed * speed, 1.0 / density

    def primitive(self, u: Fields) -> Fields:
        *state, bulk, volume = u
        return (bulk * state[0], *(volume * m for m in state[1:]))

    def conservative(self, w: Fields) -> Fields:
        *state, bulk, volume = w
        return (state[0] / bulk, *(v / volume for v in state[1:]))

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        p, *v = self.primitive(u)
        return (dot(v, normal), *(p * n for n in normal))

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return mb.sqrt(u[-2] * u[-1])

    def upwind(self, u_left: Fields, u_right: Fields, normal: Fields) -> Fields:
        (p, *v), (p_, *v_) = self.primitive(u_left), self.primitive(u_right)
        left, right = dot(v, normal), dot(v_, normal)
        y, z = mb.sqrt(u_left[-2] / u_left[-1]), mb.sqrt(u_right[-2] / u_right[-1])  # impedances
        share = 1.0 / (y + z)
        push = share * (z * p + y * p_ + y * z * (left - right))
        return (share * (y * left + z * right + p - p_), *(push * n for n in normal))

    def reflected(self, u: Fields, normal: Fields) -> Fields:
        return (u[0], *mirrored(u[1:-2], normal), *u[-2:])

    def entropy_variables(self, u: Fields) -> Fields:
        return self.primitive(u)
