"""The compressible Navier-Stokes equations of an ideal gas, and laws of its viscosity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mirabelle as mb
from mirabelle.dg.equations.base import check, dot
from mirabelle.dg.equations.euler import CompressibleEuler
from mirabelle.dg.spelled import Array, Fields, Number


@dataclass(frozen=True)
class Constant:
    """A viscosity that is the same everywhere.

    Parameters
    ----------
    value : float
        The viscosity.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Constant(0.01)(3.0)
    0.01
    """

    value: float

    def __call__(self, temperature: Array) -> Array:
        return self.value + 0.0 * temperature


@dataclass(frozen=True)
class Sutherland:
    """The viscosity of a gas, of air by default, in SI (Sutherland 1893, 10.1080/14786449308620508).

    Parameters
    ----------
    reference_viscosity : float, default 1.716e-05
        The viscosity at the reference temperature.
    reference_temperature : float, default 273.15
        The reference temperature.
    constant : float, default 110.4
        Sutherland's constant, a temperature.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> dg.Sutherland()(mb.HostArray([273.15])).tolist()
    [1.716e-05]
    """

    reference_viscosity: float = 1.716e-5
    reference_temperature: float = 273.15
    constant: float = 110.4

    def __call__(self, temperature: Array) -> Array:
        theta = temperature * (1.0 / self.reference_temperature)
        s = self.constant / self.reference_temperature
        return (self.reference_viscosity * (1.0 + s)) * theta * mb.sqrt(theta) / (theta + s)


@dataclass(frozen=True)
class CompressibleNavierStokes(CompressibleEuler):
    """The Euler equations with viscous stress and conduction of heat, without bulk viscosity.

    `viscosity` is a number, `Constant`, `Sutherland`, or another hashable function of the temperature
    `p / (rho gas_constant)`. Gradient variables are the velocities and the temperature.

    Parameters
    ----------
    dims : int
        How many dimensions.
    gamma : float, default 1.4
        The ratio of specific heats.
    prandtl : float, default 0.72
        The Prandtl number.
    viscosity : float or callable, default 0.001
        The dynamic viscosity, or a function of the temperature that gives it.
    gas_constant : float, default 1.0
        The specific gas constant.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> gas = dg.CompressibleNavierStokes(2, viscosity=0.5)
    >>> u = tuple(mb.HostArray([q]) for q in (1.0, 0.0, 0.0, 2.5))
    >>> shear = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)                          # v1 grows along the second axis
    >>> [f.tolist() for f in gas.viscous_flux(u, shear, 1)]
    [[0.0], [0.5], [0.0], [0.0]]
    """

    prandtl: float = 0.72
    viscosity: Any = 1e-3  # a number or a function of the temperature; a function where it is read
    gas_constant: float = 1.0
    second_order = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, prandtl=self.prandtl, gas_constant=self.gas_constant)
        if not callable(self.viscosity):
            check(self, viscosity=self.viscosity)
            object.__setattr__(self, "viscosity", Constant(self.viscosity))

    def temperature(self, u: Fields) -> Array:
        """The temperature `p / (rho gas_constant)`."""
        rho, *_, p = self.primitive(u)
        return p * (1.0 / rho) * (1.0 / self.gas_constant)

    def gradient_variables(self, u: Fields) -> Fields:
        return (*self.velocity(u), self.temperature(u))

    def viscous_flux(self, u: Fields, gradients: Sequence[Fields], axis: int) -> Fields:
        d = self.dims
        mu = self.viscosity(self.temperature(u))
        pressed = (-2.0 / 3.0) * sum((gradients[a][a] for a in range(1, d)), gradients[0][0])
        stress = [mu * (gradients[axis][a] + gradients[a][axis]) for a in range(d)]
        stress[axis] = mu * (2.0 * gradients[axis][axis] + pressed)
        conductivity = self.gamma * self.gas_constant / ((self.gamma - 1.0) * self.prandtl)
        heat = conductivity * mu * gradients[axis][d]
        return (0.0 * u[0], *stress, dot(stress, self.velocity(u)) + heat)

    def diffusivity(self, u: Fields) -> Number:
        return max(4.0 / 3.0, self.gamma / self.prandtl) * self.viscosity(self.temperature(u)) / u[0]
