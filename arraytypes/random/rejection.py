"""Continuous samplers that propose and reject.

Each is a function of an element's place, of the number of the attempt, of the stream and of the
element's parameters; it returns whether the proposal is accepted, and the proposal. The words of
an attempt belong to this element and this attempt alone, so it does not matter who else rejects.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.random.blocks import direction, fraction, log_fraction, normal_pair
from mirabelle.arraytypes.random.elementary import exp, expm1, log, log1p, log1p_rest
from mirabelle.arraytypes.random.lanes import bits, choose, floor, number, sqrt, u8
from mirabelle.arraytypes.random.philox import long_words

# Kernel source: what follows is also compiled by the backends (see `lanes`).


# Gamma (Marsaglia and Tsang 2000). A shape below 1 is raised by 1, and the result multiplied by
# u**(1/shape), which is kept as a logarithm: it underflows for small shapes.


def gamma_parts(index: Any, attempt: Any, stream: Any, shape: Any) -> Any:
    """(accepted, x, log of what x is to be multiplied by)."""
    u, v = long_words(index, attempt + attempt, stream)
    s, t = long_words(index, attempt + attempt + u8(1), stream)
    x, _ = normal_pair(u, v)
    raised = shape < 1.0
    d = choose(raised, shape + 1.0, shape) - 0.3333333333333333
    c = 1.0 / sqrt(9.0 * d)
    q = choose(c * x > -1.0, c * x, -0.5)
    # log(u) < x²/2 + d (1 - v + log v) for v = (1 + q)³, arranged so that nothing cancels.
    bound = 0.5 * x * x + d * (3.0 * log1p_rest(q) - q * q * (3.0 + q))
    accepted = (c * x > -1.0) & (log_fraction(s) < bound)
    y = 1.0 + q
    boost = log_fraction(t) / choose(raised, shape, 1.0)
    return accepted, d * (y * y * y), choose(raised, boost, 0.0)


def gamma(index: Any, attempt: Any, stream: Any, shape: Any) -> Any:
    accepted, x, boost = gamma_parts(index, attempt, stream, shape)
    return accepted, choose(shape > 0.0, x * exp(boost), 0.0)


def log_gamma(index: Any, attempt: Any, stream: Any, shape: Any) -> Any:
    """The logarithm of a gamma variate: those of small shapes are too small for a number."""
    accepted, x, boost = gamma_parts(index, attempt, stream, shape)
    return accepted, log(x) + boost


# Von Mises (Best and Fisher 1979)


def haversine(index: Any, attempt: Any, stream: Any, kappa: Any) -> Any:
    """±(1 - cos t) of an angle t around 0, with the angle's sign.

    The angle itself takes an inverse function, which the caller applies to all elements at once.
    """
    u, v = long_words(index, attempt, stream)
    z, side = direction(u)
    kappa = choose(kappa > 1e-8, kappa, 1e-8)  # the circle, to nine digits
    kappa = choose(kappa < 1e100, kappa, 1e100)
    spread = kappa < 1e-5
    k = choose(spread, 1.0, kappa)
    r = 1.0 + sqrt(1.0 + 4.0 * k * k)
    rest = (2.0 * k - r + sqrt(2.0 * r)) / (2.0 * k)  # 1 - rho
    more = choose(spread, 1.0 / kappa + kappa - 1.0, rest * rest / (2.0 - 2.0 * rest))  # s - 1
    below = more * (1.0 - z) / (1.0 + more + z)  # 1 - w
    y = kappa * (more + below)
    w = fraction(v)
    quick = y * (2.0 - y) > w
    slow = log(y / choose(w > 0.0, w, 1e-300)) + 1.0 - y >= 0.0
    return quick | slow, number(bits(below) | (bits(side) & u8(0x8000000000000000)))


# Zipf (Devroye 1986, chapter X.6)


def zipf(index: Any, attempt: Any, stream: Any, a: Any) -> Any:
    u, v = long_words(index, attempt, stream)
    less = a - 1.0
    x = floor(exp(choose(less < 1024.0, 0.0 - log_fraction(u) / less, 0.0)))
    fits = (x >= 1.0) & (x < 9.2e18)
    x = choose(fits, x, 1.0)
    # T - 1 and b - 1, each exact where it is small.
    t = expm1(less * log1p(1.0 / x))
    b = expm1(choose(less < 1000.0, less, 1000.0) * 0.6931471805599453)
    accepted = fraction(v) * x * t * (b + 1.0) <= (t + 1.0) * b
    return (fits & accepted) | (less >= 1000.0), x
