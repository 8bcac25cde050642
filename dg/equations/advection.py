"""Advection of a scalar, by a constant velocity or by a given field of velocities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import mirabelle as mb
from mirabelle.dg.equations.base import Linear, check, dot
from mirabelle.dg.spelled import Fields, Number


class Transported(Linear):
    """What scalars that a velocity carries have in common: `velocity_of(u)` says which velocity.

    >>> Advection((2.0, 3.0)).normal_flux((5.0,), (1.0, 10.0))
    (160.0,)
    """

    names: ClassVar[tuple[str, ...]] = ("u",)

    def velocity_of(self, u: Fields) -> Fields:
        """The components of the velocity."""
        self._lacks("velocity", "velocity_of(self, u)")

    def flux(self, u: Fields, axis: int) -> Fields:
        return (self.velocity_of(u)[axis] * u[0],)

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        return (dot(self.velocity_of(u), normal) * u[0],)

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        return mb.abs(dot(self.velocity_of(u), normal)) + 0.0 * u[0]

    def upwind(self, u_left: Fields, u_right: Fields, normal: Fields) -> Fields:
        speed = dot(self.velocity_of(u_left), normal)
        return (mb.where(speed >= 0, u_left[0], u_right[0]) * speed,)


@dataclass(frozen=True)
class Advection(Transported):
    """`u_t + a . grad u = 0` with a constant velocity `a`, in as many dimensions as it has components.

    Parameters
    ----------
    velocity : tuple of float, default (1.0,)
        The velocity, one number for each dimension.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> [f.tolist() for f in dg.Advection((2.0, -1.0)).flux((mb.HostArray([1.0, 3.0]),), 0)]
    [[2.0, 6.0]]
    """

    velocity: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not isinstance(self.velocity, tuple):
            raise TypeError(
                f"Advection: the velocity {self.velocity!r} is not a tuple of numbers, one for each dimension. "
                "Write `Advection((1.0, 0.5))`, or for a field of velocities `VariableAdvection(dims, f)`."
            )
        check(self)

    @property
    def dims(self) -> int:
        return len(self.velocity)

    def velocity_of(self, u: Fields) -> Fields:
        return self.velocity


@dataclass(frozen=True)
class VariableAdvection(Transported):
    """`u_t + div(a(x) u) = 0`; `velocity(x)` gives the components of `a` at points, and is called once.

    Parameters
    ----------
    dims : int
        How many dimensions.
    velocity : callable
        The components of the velocity, a function of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> rotation = dg.VariableAdvection(2, lambda x: (-x[1], x[0]))
    >>> x = mb.HostArray([1.0, 0.0]), mb.HostArray([0.0, 2.0])
    >>> u = (mb.HostArray([5.0, 7.0]), *rotation.auxiliary(x))
    >>> rotation.flux(u, 0)[0].tolist(), rotation.flux(u, 1)[0].tolist()
    ([-0.0, -14.0], [5.0, 0.0])
    """

    dims: int
    velocity: Callable[[Fields], Fields]

    def __post_init__(self) -> None:
        check(self)

    def auxiliary(self, x: Fields) -> Fields:
        return tuple(self.velocity(x))

    def velocity_of(self, u: Fields) -> Fields:
        return u[1:]
