"""Limiters: functions of a state that are applied after each stage, and keep the means of cells.

>>> import mirabelle as mb
>>> from mirabelle import dg
>>> gas = dg.CompressibleEuler(1)
>>> solver = dg.Solver(3, limiters=(dg.ModalFilter(), dg.PositivityLimiter()))
>>> semi = dg.Semidiscretization(dg.box(4, periodic=True), gas, solver)
>>> u = semi.state(lambda x, t: gas.conservative((x[0] - 0.01, 0.0, 1.0)))      # a negative density in a corner
>>> limited = semi.limit(u, 0.0)
>>> float(mb.min(u[0])) < 0, float(mb.min(limited[0])) > 0
(True, True)
>>> bool(mb.max(mb.abs(semi.means(limited) - semi.means(u))) < 1e-14)
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.returned import one
from mirabelle.dg.spelled import Array, Semidiscretization, Time
from mirabelle.dg.terms import split

Quantity = str | Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True)
class PositivityLimiter:
    """Draws a cell's values towards its mean until no quantity is below `floor` where fluxes are taken.

    (X. Zhang, C.-W. Shu, J. Comput. Phys. 229, 2010, doi:10.1016/j.jcp.2010.08.016.) `variables` are names of
    conservative fields, names of the equations' methods, or functions of the conservative fields, one after the
    other: each must be concave where those before it are positive, as pressure is where density is. Then a
    cell is drawn to its mean by the same factor as the quantity is at most. A mean that is itself below the
    floor leaves the mean.

    Parameters
    ----------
    floor : float, default 1e-08
        No quantity stays below it.
    variables : tuple, default ("rho", "pressure")
        Quantities: names of fields, names of the equations' methods, or functions of the fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.PositivityLimiter(1e-6, ("rho",)).variables
    ('rho',)
    """

    floor: float = 1e-8
    variables: tuple[Quantity, ...] = ("rho", "pressure")

    def __call__(self, semi: Semidiscretization, u: Array, t: Time) -> Array:
        o = semi.operators
        for variable in self.variables:
            quantity = _quantity(semi, variable)
            u, means = mb.materialize(u), mb.materialize(semi.means(u))
            mean = one(quantity(split(means)), quantity, means.shape[1:], "The quantity")
            places = [u] + [mb.materialize(at @ u) for at in (o.to_points, o.to_faces) if at is not None]
            lowest = [mb.min(quantity(split(values)), axis=0, keepdims=True) for values in places]
            least = mb.materialize(mb.min(mb.concat(lowest), axis=0, keepdims=True))
            below = least < self.floor
            share = mb.maximum(mean - self.floor, 0.0) / mb.where(below & (mean > least), mean - least, 1.0)
            # Written such that cells which are well remain what they are to the last bit.
            u = u + mb.where(below, 1.0 - mb.minimum(share, 1.0), 0.0) * (means - u)
        return u


def _quantity(semi: Semidiscretization, variable: Quantity) -> Callable[[tuple[Any, ...]], Any]:
    if not isinstance(variable, str):
        return variable
    names = semi.equations.names
    if variable in names:
        at = names.index(variable)
        return lambda u: u[at]
    found = getattr(semi.equations, variable, None)
    if found is None:
        raise ValueError(
            f"{type(semi.equations).__name__} has neither a field nor a method called {variable!r}; its fields "
            f"are {', '.join(names)}. Name others, e.g. `dg.PositivityLimiter(variables=({names[0]!r},))`."
        )
    return found


@dataclass(frozen=True)
class ModalFilter:
    """Damps the polynomials of degree k above `cutoff` by exp(-strength ((k - cutoff) / (n - cutoff))^power).

    (D. Gottlieb, J. S. Hesthaven, J. Comput. Appl. Math. 128, 2001, doi:10.1016/S0377-0427(00)00510-0.)

    Parameters
    ----------
    strength : float, default 36.0
        The highest degree is damped by exp(-strength).
    power : float, default 16.0
        How suddenly damping sets in.
    cutoff : int, default 0
        The highest degree that is left alone.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(2, periodic=True), dg.Burgers(), dg.Solver(3))
    >>> x = dg.ModalFilter(cutoff=1).matrix(semi) @ semi.x[0]      # keeps degrees up to the cutoff
    >>> bool(mb.max(mb.abs(x - semi.x[0])) < 1e-14)
    True
    """

    strength: float = 36.0
    power: float = 16.0
    cutoff: int = 0

    def matrix(self, semi: Semidiscretization) -> Array:
        """What the values at nodes are multiplied with, (Np, Np)."""
        e = semi.element
        above = np.maximum(e.degrees - self.cutoff, 0) / max(e.order - self.cutoff, 1)
        damping = np.exp(-self.strength * above**self.power)
        return semi.put(e.vandermonde(e.nodes) @ (damping[:, None] * e.to_modes))

    def __call__(self, semi: Semidiscretization, u: Array, t: Time) -> Array:
        filtered = semi.kept(self.matrix) @ u
        if semi.geometry.affine:
            return filtered
        filtered = mb.materialize(
            filtered
        )  # where volume varies in a cell, other modes than the first have a mean
        return filtered + semi.means(u - filtered)
