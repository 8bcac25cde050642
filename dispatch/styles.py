"""The three styles of an operation's operands and how they join, without order.

Where the data is (*place*), which entries are known (*structure*), and when the result is
computed (*laziness*) are independent, and each is a join-semilattice: the join over a set of
operands is commutative, associative and idempotent by construction.

>>> from mirabelle.dispatch.styles import HOST, SCALAR, join_places
>>> join_places([SCALAR, HOST])
host
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from mirabelle.dispatch.errors import PlaceError


@dataclass(frozen=True, order=False)
class Place:
    """Where data is: a rank in the lattice, a kind, and which one of its kind.

    Ranks: 0 a host scalar, 1 the host, 2 a device, 3 distributed over an inner place, 4 traced: recorded for a
    program that will run at an inner place.
    """

    rank: int
    kind: str
    index: int = 0
    inner: Place | None = None

    def __repr__(self) -> str:
        if self.inner is not None:
            return f"{self.kind}({self.inner})"
        return f"{self.kind}:{self.index}" if self.rank >= 2 else self.kind


SCALAR = Place(0, "scalar")
HOST = Place(1, "host")


def device(kind: str, index: int = 0) -> Place:
    """The place of one device of a kind, say `device("ref")`."""
    return Place(2, kind, index)


def distributed(inner: Place) -> Place:
    """The place of an array whose pieces live at `inner` on several processes."""
    return Place(3, "distributed", 0, inner)


def join_two(a: Place, b: Place) -> Place | None:
    """The place both can be read from; None where data would have to move unasked."""
    if a == b or b.rank == 0:
        return a
    if a.rank == 0:
        return b
    outer = a if a.rank >= b.rank else b
    if outer.inner is not None:
        # Distributed data joins by what its pieces join to; a bare place joins as a replica. So does what is
        # traced.
        x = a.inner if a.rank == outer.rank and a.inner else a
        y = b.inner if b.rank == outer.rank and b.inner else b
        inner = join_two(x, y)
        return None if inner is None else Place(outer.rank, outer.kind, outer.index, inner)
    return None


def join_places(places: Iterable[Place]) -> Place:
    """The join over a set of places, or a PlaceError that names two that conflict."""
    joined = SCALAR
    for place in sorted(set(places), key=lambda p: (p.rank, p.kind, p.index)):
        met = join_two(joined, place)
        if met is None:
            raise PlaceError(
                f"Operands live at {joined} and at {place}, and nothing says where to compute. "
                "Move one of them: `mb.adapt(mb.HostArray, x)` or `mb.adapt(mb.RefArray, x)`."
            )
        joined = met
    return joined


@dataclass(frozen=True)
class Structure:
    """Which entries of a matrix may differ from zero, and whether one half follows from the other.

    Entries that may differ from zero are on the main diagonal, on `lower` diagonals below it and on
    `upper` above it. The join keeps what all operands leave open, and the mirror all have.
    """

    lower: float
    upper: float
    symmetric: bool = False
    hermitian: bool = False

    def __or__(self, other: Structure) -> Structure:
        return Structure(
            max(self.lower, other.lower),
            max(self.upper, other.upper),
            self.symmetric and other.symmetric,
            self.hermitian and other.hermitian,
        )

    @property
    def transposed(self) -> Structure:
        return Structure(self.upper, self.lower, self.symmetric, self.hermitian)


# A number is like a matrix of no entries: it leaves the structure to the others.
NUMBER = Structure(-math.inf, -math.inf, True, True)
DIAGONAL = Structure(0, 0, symmetric=True)
UPPER_BIDIAGONAL, LOWER_BIDIAGONAL, TRIDIAGONAL = Structure(0, 1), Structure(1, 0), Structure(1, 1)
UPPER, LOWER = Structure(0, math.inf), Structure(math.inf, 0)
SYMMETRIC = Structure(math.inf, math.inf, symmetric=True)
HERMITIAN = Structure(math.inf, math.inf, hermitian=True)
DENSE = Structure(math.inf, math.inf)


class Laziness(IntEnum):
    """When a result is computed: kept as a tree until needed (the default), or at once.

    Eagerness absorbs: memory that NumPy can write to must be read at once.
    """

    TREE = 0
    EAGER = 1


def join_structure(styles: Iterable[Structure]) -> Structure:
    """The least structure that has room for all of them.

    >>> join_structure([DIAGONAL, LOWER_BIDIAGONAL, UPPER_BIDIAGONAL]) == TRIDIAGONAL
    True
    """
    return functools.reduce(operator.or_, styles, NUMBER)


def join_laziness(styles: Iterable[Laziness]) -> Laziness:
    return max(styles, default=Laziness.TREE)
