"""Second derivatives: gradients of discontinuous functions, and the fluxes of what diffuses.

Methods differ in two numerical fluxes (D. N. Arnold and others, SIAM J. Numer. Anal. 39, 2002,
doi:10.1137/S0036142901384162): the value that the gradient's equation takes at a face, and the flux there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mirabelle as mb
from mirabelle.dg.returned import looked_after
from mirabelle.dg.spelled import Fields


@dataclass(frozen=True)
class Viscous:
    """Two numerical fluxes for second derivatives.

    What lies between the value inside and the one at the face, times `penalty` and about (order + 1)² / length,
    is added to the slopes that the flux is made of. `broken`: whether faces see the gradient inside cells only,
    without what jumps contribute.

    >>> from mirabelle import dg
    >>> issubclass(dg.SIPG, dg.Viscous)
    True
    """

    penalty: float = 0.0
    broken = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        looked_after(cls, dict.fromkeys(("value", "flux"), lambda viscous, inside, *given: len(inside)))

    def value(self, inside: Sequence[Any], outside: Sequence[Any], normal: Fields) -> Fields:
        """The value at a face of what is differentiated."""
        return tuple([0.5 * (a + b) for a, b in zip(inside, outside, strict=True)])

    def flux(self, inside: Sequence[Any], outside: Sequence[Any], normal: Fields) -> Fields:
        """The normal viscous flux at a face, of those of both sides."""
        return tuple([0.5 * (a + b) for a, b in zip(inside, outside, strict=True)])


@dataclass(frozen=True)
class BR1(Viscous):
    """Means of both sides (F. Bassi, S. Rebay, J. Comput. Phys. 131, 1997, doi:10.1006/jcph.1996.5572).

    The method that allows the longest steps. There are jumps that its gradient does not see, and which nothing
    but upwind fluxes damps: steady viscous flows want `LDG()` or `SIPG()`.

    Parameters
    ----------
    penalty : float, default 0.0
        How strongly jumps between cells pull at slopes.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Solver(3, viscous=dg.BR1()).viscous.penalty
    0.0
    """


@dataclass(frozen=True)
class LDG(Viscous):
    """Values of one side, fluxes of the other (B. Cockburn, C.-W. Shu, doi:10.1137/S0036142997316712).

    Which side is the first is decided by the direction of the normal. Of order p + 1 also where BR1 is of
    order p.

    Parameters
    ----------
    penalty : float, default 0.1
        How strongly jumps between cells pull at slopes.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.LDG(penalty=0.5).penalty
    0.5
    """

    penalty: float = 0.1

    def value(self, inside: Sequence[Any], outside: Sequence[Any], normal: Fields) -> Fields:
        s = _side(normal)
        return tuple([(0.5 + s) * a + (0.5 - s) * b for a, b in zip(inside, outside, strict=True)])

    def flux(self, inside: Sequence[Any], outside: Sequence[Any], normal: Fields) -> Fields:
        s = _side(normal)
        return tuple([(0.5 - s) * a + (0.5 + s) * b for a, b in zip(inside, outside, strict=True)])


@dataclass(frozen=True)
class SIPG(Viscous):
    """Symmetric interior penalty (D. N. Arnold, doi:10.1137/0719052): gradients of cells, and a penalty on
    jumps.

    Parameters
    ----------
    penalty : float, default 1.0
        How strongly jumps between cells pull at slopes.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.SIPG().broken
    True
    """

    penalty: float = 1.0
    broken = True


def slope_of_jumps(viscous: Viscous, order: int, dims: int, steepness: Any) -> Any:
    """The slope that a jump of one is taken for, where a cell's surface over its volume is `steepness` (K.
    Shahbazi, J. Comput. Phys. 205, 2005, doi:10.1016/j.jcp.2004.11.017).

    >>> slope_of_jumps(SIPG(), 3, 1, 2.0)
    32.0
    """
    return viscous.penalty * (order + 1) * (order + dims) / dims * steepness


def _side(normal: Fields) -> Any:
    """+1/2 or -1/2, opposite for both sides of a face: which way the normal points."""
    along = sum(n * w for n, w in zip(normal, (1.0, 0.41421356, 0.31830989), strict=False))
    return 0.5 * mb.sign(along)  # of the normal's dtype
