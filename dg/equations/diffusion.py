"""Diffusion of a scalar, with and without advection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mirabelle.dg.equations.advection import Advection
from mirabelle.dg.equations.base import Equations, Linear, check
from mirabelle.dg.spelled import Fields, Number


class Diffusive(Equations):
    """A scalar with the viscous flux `kappa grad u`.

    >>> Diffusion(1, kappa=2.0).viscous_flux((1.0,), [(3.0,)], 0)
    (6.0,)
    """

    second_order = True
    kappa: float

    def __post_init__(self) -> None:
        check(self, kappa=self.kappa)

    def viscous_flux(self, u: Fields, gradients: Sequence[Fields], axis: int) -> Fields:
        return (self.kappa * gradients[axis][0],)

    def diffusivity(self, u: Fields) -> Number:
        return 0.0 * u[0] + self.kappa


@dataclass(frozen=True)
class Diffusion(Diffusive, Linear):
    """`u_t = div(kappa grad u)`.

    Parameters
    ----------
    dims : int
        How many dimensions.
    kappa : float, default 1.0
        The diffusivity.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Diffusion(2).flux((1.0,), 0), dg.Diffusion(2).second_order
    ((0.0,), True)
    """

    dims: int
    kappa: float = 1.0
    names: ClassVar[tuple[str, ...]] = ("u",)

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        return (0.0 * u[0],)

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return 0.0 * u[0]


@dataclass(frozen=True)
class AdvectionDiffusion(Diffusive, Advection):
    """`u_t + a . grad u = div(kappa grad u)`.

    Parameters
    ----------
    velocity : tuple of float, default (1.0,)
        The velocity, one number for each dimension.
    kappa : float, default 1.0
        The diffusivity.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.AdvectionDiffusion((1.0, 2.0), kappa=0.1).flux((3.0,), 1)
    (6.0,)
    """

    kappa: float = 1.0
