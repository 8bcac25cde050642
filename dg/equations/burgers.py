"""Burgers' equation, the simplest law whose waves steepen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import mirabelle as mb
from mirabelle.dg.equations.base import Equations, check
from mirabelle.dg.spelled import Fields, Number


@dataclass(frozen=True)
class Burgers(Equations):
    """`u_t + sum_a (u^2 / 2)_a = 0`, along the diagonal in several dimensions.

    Parameters
    ----------
    dims : int, default 1
        How many dimensions.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> dg.Burgers().flux((mb.HostArray([1.0, -2.0]),), 0)[0].tolist()
    [0.5, 2.0]
    """

    dims: int = 1
    names: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        check(self)

    def flux(self, u: Fields, axis: int) -> Fields:
        return (0.5 * u[0] * u[0],)

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        return (sum(normal[1:], normal[0]) * (0.5 * u[0] * u[0]),)

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return mb.abs(u[0] * sum(normal[1:], normal[0]))

    def speeds(self, u_left: Fields, u_right: Fields, normal: Fields) -> tuple[Number, Number]:
        along = sum(normal[1:], normal[0])
        left, right = u_left[0] * along, u_right[0] * along
        return mb.minimum(left, right), mb.maximum(left, right)

    def entropy_potential(self, u: Fields, axis: int) -> Number:
        return u[0] * u[0] * u[0] / 6.0
