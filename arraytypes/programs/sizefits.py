"""Numbers of a plan as polynomials of sizes.

A program that is captured for several combinations of sizes gives each number in its plan (a length, a stride,
an offset, a divisor) as many values. `Basis` finds the polynomial of the sizes that all of them lie on. It has
whole coefficients and is linear in each size (or, of one size alone, of degree three at most); what lies
on none is not explained.

>>> basis = Basis([(7, 11), (100, 11), (7, 103), (100, 103), (16, 64)])
>>> fit = basis.fitted([7 * 11 * 8, 100 * 11 * 8, 7 * 103 * 8, 100 * 103 * 8, 16 * 64 * 8])
>>> basis.at((3, 5), [fit])
[120]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

# The degree in a size that is the only one.
CUBIC = 3
Fit = tuple[int, ...]


class Basis:
    """The polynomials of some sizes, as `points` show them: first the corners of a box, then others in it.

    Of one size it is Newton's basis on the first four points. Of several the corners come in the order of
    binary numbers, of which the lowest bit says whether the first size is the larger one.
    """

    def __init__(self, points: Sequence[tuple[int, ...]]) -> None:
        self.points = points
        self.sizes = len(points[0])
        self.nodes = CUBIC + 1 if self.sizes == 1 else 1 << self.sizes
        self.values = [self._monomials(p) for p in points]

    def _monomials(self, point: tuple[int, ...]) -> list[int]:
        found = [1]
        if self.sizes == 1:
            for (node,) in self.points[:CUBIC]:
                found.append(found[-1] * (point[0] - node))
            return found
        for n, low in zip(point, self.points[0], strict=True):
            found += [m * (n - low) for m in found]
        return found

    def fitted(self, values: Sequence[int]) -> Fit | None:
        """The coefficients of the polynomial through values at the points; None if there is none."""
        if values.count(values[0]) == len(values):
            return (values[0],)
        rest, found = list(values), []
        for k in range(self.nodes):
            # (In Newton's order each node fixes the one coefficient that does not vanish there first.)
            coefficient, remainder = divmod(rest[k], self.values[k][k])
            if remainder:
                return None
            found.append(coefficient)
            rest = [r - coefficient * m[k] for r, m in zip(rest, self.values, strict=True)]
        if any(rest):
            return None
        while len(found) > 1 and not found[-1]:
            found.pop()
        return tuple(found)

    def at(self, point: tuple[int, ...], fits: Sequence[Fit]) -> list[int]:
        """The values of several polynomials at a point."""
        monomials = self._monomials(point)
        return [f[0] if len(f) == 1 else sum([c * m for c, m in zip(f, monomials, strict=False)]) for f in fits]


def corners(low: Sequence[int], high: Sequence[int]) -> list[tuple[int, ...]]:
    """The corners of a box, in the order that `Basis` wants.

    >>> corners((1, 2), (3, 4))
    [(1, 2), (3, 2), (1, 4), (3, 4)]
    """
    found = itertools.product(*zip(reversed(low), reversed(high), strict=True))
    return [tuple(reversed(c)) for c in found]


__all__ = ["Basis", "Fit", "corners"]
