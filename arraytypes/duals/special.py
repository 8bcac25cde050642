"""The digamma function and its relatives, which derivatives of the gamma function come to."""

from __future__ import annotations

import math
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.rules import SCALAR_RULES
from mirabelle.arraytypes.userbroadcast import broadcast
from mirabelle.dispatch import verbs


def digamma_of(x: float) -> float:
    """d/dx log gamma(x): upwards by the recurrence, to where the asymptotic series is exact."""
    if x != x or x == math.inf:
        return x
    if x <= 0.0 and x == math.floor(x):
        return math.nan
    shift = 0.0
    if x < 0.0:  # by reflection
        shift = -math.pi / math.tan(math.pi * x)
        x = 1.0 - x
    while x < 12.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (
        1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12)))))
    )
    return shift + math.log(x) - 0.5 / x - series


def trigamma_of(x: float) -> float:
    """d²/dx² log gamma(x)."""
    if x != x:
        return x
    if x <= 0.0 and x == math.floor(x):
        return math.inf
    if x < 0.0:
        s = math.pi / math.sin(math.pi * x)
        return s * s - _trigamma(1.0 - x)
    return _trigamma(x)


def _trigamma(x: float) -> float:
    total = 0.0
    while x < 14.0:
        total += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (
        1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730 - r * 7 / 6)))))
    )
    return total + 1.0 / x + 0.5 * r + series / x


def digamma(x: Any) -> Any:
    """The derivative of `lgamma`, element by element."""
    return _broadcast(digamma_of, x)


def trigamma(x: Any) -> Any:
    """The derivative of `digamma`, element by element."""
    return _broadcast(trigamma_of, x)


def _broadcast(f: Any, x: Any) -> Any:
    """`f` of each element, in the dtype of `x`."""
    return verbs.astype(broadcast(f, x), x.dtype, copy=False) if isinstance(x, AbstractArray) else f(float(x))


SCALAR_RULES[digamma_of] = trigamma


def bessel_i1_of(x: float) -> float:
    """d/dx i0(x), the modified Bessel function of order 1: its series, whose terms have one sign."""
    half = 0.5 * x
    term = half
    total = term
    k = 1.0
    while abs(term) > 1e-17 * abs(total):
        term *= half * half / (k * (k + 1.0))
        total += term
        k += 1.0
    return total


def bessel_i1(x: Any) -> Any:
    """The derivative of `i0`, element by element."""
    return _broadcast(bessel_i1_of, x)


def _slope_of_i1(x: Any) -> Any:
    from mirabelle.arraytypes.functions.elementary import i0

    zero = verbs.equal(x, 0.0)
    return verbs.where(zero, 0.5, i0(x) - bessel_i1(x) / verbs.where(zero, 1.0, x))


SCALAR_RULES[bessel_i1_of] = _slope_of_i1
