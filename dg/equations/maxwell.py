"""Maxwell's equations in a uniform medium without charges, in space and in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mirabelle.dg.equations.base import Linear, check, combined
from mirabelle.dg.spelled import Fields, Number


def cross(n: Sequence[Any], v: Sequence[Any]) -> Fields:
    """The vector product; in the plane of a vector along the third axis, or of one in the plane.

    >>> cross((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), cross((1.0, 0.0), (2.0,)), cross((1.0, 0.0), (0.0, 3.0))
    ((0.0, 0.0, 1.0), (0.0, -2.0), (3.0,))
    """
    if len(v) == 1:
        return n[1] * v[0], -n[0] * v[0]
    if len(v) == 2:
        return (n[0] * v[1] - n[1] * v[0],)
    return n[1] * v[2] - n[2] * v[1], n[2] * v[0] - n[0] * v[2], n[0] * v[1] - n[1] * v[0]


@dataclass(frozen=True)
class Maxwell(Linear):
    """`eps E_t = curl H`, `mu H_t = -curl E` in three dimensions; in two those of E3, H1, H2 (TM).

    The upwind flux is that of Hesthaven and Warburton 2002, 10.1006/jcph.2002.7118; the mirror image is a
    perfect conductor's.

    Parameters
    ----------
    dims : int, default 3
        How many dimensions, 2 or 3.
    permittivity : float, default 1.0
        The permittivity `eps`.
    permeability : float, default 1.0
        The permeability `mu`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Maxwell(2).names, dg.Maxwell(2, permittivity=2.0).flux((1.0, 3.0, 5.0), 0)
    (('E3', 'H1', 'H2'), (-2.5, 0.0, -1.0))
    """

    dims: int = 3
    permittivity: float = 1.0
    permeability: float = 1.0

    def __post_init__(self) -> None:
        check(self, least_dims=2, permittivity=self.permittivity, permeability=self.permeability)

    @property
    def names(self) -> tuple[str, ...]:
        return ("E3", "H1", "H2") if self.dims == 2 else ("E1", "E2", "E3", "H1", "H2", "H3")

    @property
    def speed(self) -> float:
        """The speed of light."""
        return (self.permittivity * self.permeability) ** -0.5

    def _parts(self, u: Fields) -> tuple[Fields, Fields]:
        return u[: len(self) - self.dims], u[len(self) - self.dims : len(self)]

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        electric, magnetic = self._parts(u)
        e, m = -1.0 / self.permittivity, 1.0 / self.permeability
        return (*(e * q for q in cross(normal, magnetic)), *(m * q for q in cross(normal, electric)))

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return 0.0 * u[0] + self.speed

    def upwind(self, u_left: Fields, u_right: Fields, normal: Fields) -> Fields:
        mean = self.normal_flux(combined(0.5, u_left, 0.5, u_right), normal)
        half = 0.5 * self.speed
        jump = self._twice_crossed(combined(half, u_left, -half, u_right), normal)
        return combined(1.0, mean, -1.0, jump)

    def _twice_crossed(self, u: Fields, normal: Fields) -> Fields:
        """`n x (n x E)` and `n x (n x H)`: minus the tangential parts."""
        return tuple(q for v in self._parts(u) for q in cross(normal, cross(normal, v)))

    def reflected(self, u: Fields, normal: Fields) -> Fields:
        electric, magnetic = self._parts(combined(1.0, u, 2.0, self._twice_crossed(u, normal)))
        return (*electric, *(-1.0 * q for q in magnetic))

    def entropy_variables(self, u: Fields) -> Fields:
        electric, magnetic = self._parts(u)
        return (*(self.permittivity * q for q in electric), *(self.permeability * q for q in magnetic))
