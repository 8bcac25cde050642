"""Where an index of a kernel may lie, as a function of the index that the kernel runs for.

A value is `(a·i + b·j + ... + r) // divisor` for the thread's index `(i, j, ...)` and some number `r` between
`low` and `high`, cut at `least` and `most`, and perhaps taken modulo `period`. Over a box of the index space
it says an interval; and the other way round, for which indices it stays within one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Half-open ranges along each dimension.
Box = tuple[tuple[int, int], ...]


class IndexValue(NamedTuple):
    """See above. `coefs` are the factors of the thread's index, one for each dimension of the index space."""

    coefs: tuple[int, ...]
    low: int
    high: int
    divisor: int = 1
    least: int | None = None
    most: int | None = None
    period: int | None = None

    @property
    def is_linear(self) -> bool:
        """Is it neither rounded nor cut?"""
        return self.divisor == 1 and self.least is None and self.most is None and self.period is None

    @property
    def is_number(self) -> bool:
        return self.is_linear and not any(self.coefs) and self.low == self.high

    def _sum(self, box: Box) -> tuple[int, int]:
        low, high = self.low, self.high
        for c, (a, b) in zip(self.coefs, box, strict=True):
            ends = c * a, c * (b - 1)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def raw(self, box: Box) -> tuple[int, int]:
        """The least and the greatest it may be over a box, before it is taken modulo its period."""
        low, high = (x // self.divisor for x in self._sum(box))
        if self.least is not None:
            low, high = max(low, self.least), max(high, self.least)
        if self.most is not None:
            low, high = min(low, self.most), min(high, self.most)
        return low, high

    def over(self, box: Box) -> tuple[int, int]:
        """The least and the greatest it may be over a box."""
        low, high = self.raw(box)
        if self.period is None:
            return low, high
        if low // self.period == high // self.period:
            return low % self.period, high % self.period
        return 0, self.period - 1

    def inside(self, d: int, held: tuple[int, int], box: Box) -> tuple[int, int] | None:
        """For which indices along dimension `d`, the others anywhere in the box, does it stay in a range?

        None where that cannot be said: it does not depend on that dimension, or wraps around.
        """
        c = self.coefs[d]
        if not c or self.period is not None:
            return None
        start, stop = box[d]
        if (self.least is not None and self.least >= held[1]) or (
            self.most is not None and self.most < held[0]
        ):
            return start, start
        others = self._replace(coefs=(*self.coefs[:d], 0, *self.coefs[d + 1 :]))
        low, high = others._sum(box)
        # c·i + low >= at least, and c·i + high < at most
        a: float = -math.inf if self.least is not None and self.least >= held[0] else held[0] * self.divisor
        b: float = math.inf if self.most is not None and self.most < held[1] else held[1] * self.divisor
        begin: float
        end: float
        if c > 0:
            begin = -math.inf if math.isinf(a) else -((low - int(a)) // c)
            end = math.inf if math.isinf(b) else -((high - int(b)) // c)
        else:
            begin = -math.inf if math.isinf(b) else (high - int(b)) // -c + 1
            end = math.inf if math.isinf(a) else (low - int(a)) // -c + 1
        found = max(begin, start), min(end, stop)
        return (int(found[0]), int(found[1])) if found[0] < found[1] else (start, start)

    def shifted(self, n: int) -> IndexValue:
        """The value plus a number."""
        k = n * self.divisor
        return self._replace(
            low=self.low + k,
            high=self.high + k,
            least=None if self.least is None else self.least + n,
            most=None if self.most is None else self.most + n,
        )


def interval(ndim: int, low: int, high: int) -> IndexValue:
    """A value somewhere between two numbers, wherever the thread is."""
    return IndexValue((0,) * ndim, low, high)


def number(ndim: int, n: int) -> IndexValue:
    """A value that is the same for all threads."""
    return IndexValue((0,) * ndim, n, n)


def collapsed(v: IndexValue, box: Box) -> IndexValue:
    """The same as an interval, wherever in a box the thread is."""
    return interval(len(v.coefs), *v.over(box))


def added(a: IndexValue, b: IndexValue, box: Box) -> IndexValue:
    if a.period is None and b.is_number:
        return a.shifted(b.low)
    if b.period is None and a.is_number:
        return b.shifted(a.low)
    if not (a.is_linear and b.is_linear):
        a, b = (v if v.is_linear else collapsed(v, box) for v in (a, b))
    coefs = tuple(x + y for x, y in zip(a.coefs, b.coefs, strict=True))
    return IndexValue(coefs, a.low + b.low, a.high + b.high)


def negated(a: IndexValue, box: Box) -> IndexValue:
    a = a if a.is_linear else collapsed(a, box)
    return IndexValue(tuple(-c for c in a.coefs), -a.high, -a.low)


def multiplied(a: IndexValue, b: IndexValue, box: Box) -> IndexValue:
    if a.is_number:
        a, b = b, a
    if not a.is_linear:
        a = collapsed(a, box)
    if b.is_number:
        ends = a.low * b.low, a.high * b.low
        return IndexValue(tuple(c * b.low for c in a.coefs), min(ends), max(ends))
    found = [x * y for x in a.over(box) for y in b.over(box)]
    return interval(len(a.coefs), min(found), max(found))


def divided(a: IndexValue, b: IndexValue, box: Box) -> IndexValue | None:
    """`a // b`, of positive b."""
    low, high = b.over(box)
    if low <= 0:
        return None
    if b.is_number and a.period is None and a.least is None and a.most is None:
        return a._replace(divisor=a.divisor * low)
    found = [x // y for x in a.over(box) for y in (low, high)]
    return interval(len(a.coefs), min(found), max(found))


def remainder(a: IndexValue, b: IndexValue, box: Box) -> IndexValue | None:
    """`a % b`, of positive b."""
    low, high = b.over(box)
    if low <= 0:
        return None
    if not b.is_number:
        return interval(len(a.coefs), 0, high - 1)
    first, last = a.over(box)
    if first // low == last // low:
        return added(a, number(len(a.coefs), -(first // low) * low), box)
    if a.is_linear:
        return a._replace(period=low)
    return interval(len(a.coefs), 0, low - 1)


def least_of(a: IndexValue, b: IndexValue, box: Box) -> IndexValue:
    """`min(a, b)`."""
    if a.is_number:
        a, b = b, a
    if b.is_number and a.period is None:
        most = b.low if a.most is None else min(a.most, b.low)
        return a._replace(most=most, least=None if a.least is None else min(a.least, b.low))
    (a0, a1), (b0, b1) = a.over(box), b.over(box)
    return interval(len(a.coefs), min(a0, b0), min(a1, b1))


def greatest_of(a: IndexValue, b: IndexValue, box: Box) -> IndexValue:
    """`max(a, b)`."""
    if a.is_number:
        a, b = b, a
    if b.is_number and a.period is None:
        least = b.low if a.least is None else max(a.least, b.low)
        return a._replace(least=least, most=None if a.most is None else max(a.most, b.low))
    (a0, a1), (b0, b1) = a.over(box), b.over(box)
    return interval(len(a.coefs), max(a0, b0), max(a1, b1))


def between(first: IndexValue, last: IndexValue, box: Box) -> IndexValue:
    """Any value from the one to the other."""
    alike = (first.coefs, first.divisor, None) == (last.coefs, last.divisor, first.period)
    if alike and first.most is last.period is last.least is None:
        low, high = min(first.low, last.low), max(first.high, last.high)
        return IndexValue(first.coefs, low, high, first.divisor, first.least, last.most)
    low, high = first.over(box)[0], last.over(box)[1]
    return interval(len(first.coefs), min(low, high), max(low, high))


def either(a: IndexValue, a_box: Box, b: IndexValue, b_box: Box) -> IndexValue:
    """One value or the other, of threads in the one box or in the other."""
    if a == b:
        return a
    if a.coefs == b.coefs and a.is_linear and b.is_linear:
        return IndexValue(a.coefs, min(a.low, b.low), max(a.high, b.high))
    (a0, a1), (b0, b1) = a.over(a_box), b.over(b_box)
    return interval(len(a.coefs), min(a0, b0), max(a1, b1))
