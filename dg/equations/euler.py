"""The compressible Euler equations of an ideal gas."""

from __future__ import annotations

from dataclasses import dataclass

import mirabelle as mb
from mirabelle.dg.equations.base import Equations, check, combined, dot, mirrored
from mirabelle.dg.spelled import Array, Fields, Number


@dataclass(frozen=True)
class CompressibleEuler(Equations):
    """Density, momenta and total energy of an ideal gas with the ratio `gamma` of specific heats.

    The entropy is `-rho log(p / rho^gamma) / (gamma - 1)` (Harten 1983, 10.1016/0021-9991(83)90118-3).

    Parameters
    ----------
    dims : int
        How many dimensions.
    gamma : float, default 1.4
        The ratio of specific heats.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> gas = dg.CompressibleEuler(2)
    >>> gas.names, gas.primitive_names
    (('rho', 'rho_v1', 'rho_v2', 'rho_e'), ('rho', 'v1', 'v2', 'p'))
    >>> u = gas.conservative(tuple(mb.HostArray([w]) for w in (1.0, 2.0, 0.0, 1.0)))
    >>> [f.tolist() for f in u], [f.tolist() for f in gas.flux(u, 0)]
    ([[1.0], [2.0], [0.0], [4.5]], [[2.0], [5.0], [0.0], [11.0]])
    """

    dims: int
    gamma: float = 1.4

    def __post_init__(self) -> None:
        check(self)
        if not self.gamma > 1:
            raise ValueError(
                f"{type(self).__name__}: gamma = {self.gamma!r}, but the specific heats' ratio is above 1. "
                f"Air's is `{type(self).__name__}({self.dims}, gamma=1.4)`."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return ("rho", *(f"rho_v{a + 1}" for a in range(self.dims)), "rho_e")

    @property
    def primitive_names(self) -> tuple[str, ...]:
        return ("rho", *(f"v{a + 1}" for a in range(self.dims)), "p")

    def primitive(self, u: Fields) -> Fields:
        rho, *momentum, energy = u[: self.dims + 2]
        volume = 1.0 / rho
        v = tuple(m * volume for m in momentum)
        return (rho, *v, (self.gamma - 1.0) * (energy - 0.5 * dot(momentum, v)))

    def conservative(self, w: Fields) -> Fields:
        rho, *v, p = w[: self.dims + 2]
        return (rho, *(rho * c for c in v), p * (1.0 / (self.gamma - 1.0)) + 0.5 * rho * dot(v, v))

    def positive(self, u: Fields) -> dict[str, Number]:
        return {"rho": u[0], "pressure": self.pressure(u)}

    def velocity(self, u: Fields) -> Fields:
        """The components of the velocity."""
        return self.primitive(u)[1:-1]

    def pressure(self, u: Fields) -> Array:
        """The pressure."""
        return self.primitive(u)[-1]

    def sound_speed(self, u: Fields) -> Array:
        """The speed of sound."""
        rho, *_, p = self.primitive(u)
        return mb.sqrt(self.gamma * p * (1.0 / rho))  # the kernel has this quotient already

    def mach(self, u: Fields) -> Array:
        """The speed over that of sound."""
        rho, *v, p = self.primitive(u)
        return mb.sqrt(rho * dot(v, v) / (self.gamma * p))

    def flux(self, u: Fields, axis: int) -> Fields:
        *_, p = w = self.primitive(u)
        carried = [w[1 + axis] * q for q in u[: len(w)]]
        carried[1 + axis] = carried[1 + axis] + p
        carried[-1] = carried[-1] + w[1 + axis] * p
        return tuple(carried)

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        rho, *momentum, energy = u[: self.dims + 2]
        _, *v, p = self.primitive(u)
        speed = dot(v, normal)
        return (rho * speed, *combined(speed, momentum, p, normal), (energy + p) * speed)

    def max_speed(self, u: Fields, normal: Fields) -> Array:
        return mb.abs(dot(self.velocity(u), normal)) + self.sound_speed(u)

    def speeds(self, u_left: Fields, u_right: Fields, normal: Fields) -> tuple[Number, Number]:
        """Einfeldt's bounds, with the averages of Roe (Einfeldt 1988, 10.1137/0725021)."""
        velocity, _, c = self.roe_averages(u_left, u_right)
        left, speed, right = (dot(v, normal) for v in (self.velocity(u_left), velocity, self.velocity(u_right)))
        lowest = mb.minimum(left - self.sound_speed(u_left), speed - c)
        return lowest, mb.maximum(right + self.sound_speed(u_right), speed + c)

    def roe_averages(self, u_left: Fields, u_right: Fields) -> tuple[Fields, Array, Array]:
        """Velocity, specific enthalpy, speed of sound between them (Roe 1981, 10.1016/0021-9991(81)90128-5)."""
        (rho, *v, p), (rho_, *v_, p_) = self.primitive(u_left), self.primitive(u_right)
        y, z = mb.sqrt(rho), mb.sqrt(rho_)
        share = 1.0 / (y + z)
        y, z = y * share, z * share
        velocity = combined(y, v, z, v_)
        e, e_ = u_left[self.dims + 1], u_right[self.dims + 1]
        enthalpy = y * ((e + p) * (1.0 / rho)) + z * ((e_ + p_) * (1.0 / rho_))
        squared = (self.gamma - 1.0) * (enthalpy - 0.5 * dot(velocity, velocity))
        return velocity, enthalpy, mb.sqrt(squared)

    def reflected(self, u: Fields, normal: Fields) -> Fields:
        d = self.dims
        return (u[0], *mirrored(u[1 : d + 1], normal), *u[d + 1 :])

    def entropy(self, u: Fields) -> Array:
        rho, *_, p = self.primitive(u)
        return rho * (self.gamma * mb.log(rho) - mb.log(p)) * (1.0 / (self.gamma - 1.0))

    def entropy_variables(self, u: Fields) -> Fields:
        rho, *v, p = self.primitive(u)
        gamma = self.gamma
        beta = rho / p
        s = mb.log(p) - gamma * mb.log(rho)
        first = (gamma - s) * (1.0 / (gamma - 1.0)) - 0.5 * beta * dot(v, v)
        return (first, *(beta * c for c in v), -beta)

    def entropy_potential(self, u: Fields, axis: int) -> Array:
        return u[1 + axis]

    def indicator(self, u: Fields) -> Array:
        """Density times pressure, as in Hennemann et al. (2021, 10.1016/j.jcp.2020.109935)."""
        return u[0] * self.pressure(u)
