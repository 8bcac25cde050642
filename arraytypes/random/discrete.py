"""Discrete distributions: integers of a range, and counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.random.checks import any_of, finite, integer, not_negative, positive, probability
from mirabelle.arraytypes.random.core import Core
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike, Out, ShapeLike

_INT64 = np.dtype(np.int64)
_LARGEST = 9223372036854774784.0  # the largest double that is an int64
# The largest mean whose counts fit (NumPy's figure: ten deviations below the largest int64).
_LARGEST_MEAN = 2.0**63 - 1 - 10 * 2.0**31.5


class Discrete(Core):
    """The methods of a generator that return integers. All take `size` and `out`."""

    __slots__ = ()

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: ShapeLike | None = None,
        dtype: DTypeLike = None,
        endpoint: bool = False,
        *,
        out: Out = None,
    ) -> AbstractArray:
        """Integers from `low` up to, but without, `high` (with it, if `endpoint`), all equally likely.

        With one number they go from 0 up to it. `dtype` is any integer dtype or bool.

        >>> import mirabelle as mb
        >>> rng = mb.random.default_rng(7)
        >>> rng.integers(6, size=8, dtype=mb.uint8).dtype
        dtype('uint8')
        >>> bool(mb.all(rng.integers(1, 6, 100, endpoint=True) >= 1))
        True
        """
        if high is None:
            low, high = 0, low
        r = self._request(size, out, ("low", "high"), low=low, high=high)
        if dtype is None:
            dtype = _INT64 if r.out is None else r.out.dtype
        d = checked_dtype(dtype)
        if d.kind not in "biu":
            raise TypeError(f"Unsupported dtype {d!r} for integers. Take an integer dtype or bool.")
        low, high = r.parameters
        least, most = (0, 1) if d.kind == "b" else (int(np.iinfo(d).min), int(np.iinfo(d).max))
        if not isinstance(low, AbstractArray) and not isinstance(high, AbstractArray):
            return self._deliver(r, self._one_range(r, low, high, d, least, most, endpoint))
        return self._deliver(r, self._ranges(r, low, high, d, least, most, endpoint))

    def _one_range(
        self, r: Any, low: Any, high: Any, d: np.dtype, least: int, most: int, endpoint: bool
    ) -> Any:
        first, last = math.ceil(low), math.floor(high) if endpoint else math.ceil(high) - 1
        if first < least:
            raise ValueError(f"low is out of bounds for {d.name}: {low} is less than {least}.")
        if last > most:
            raise ValueError(
                f"high is out of bounds for {d.name}: {high} is more than {most + (not endpoint)}."
            )
        if first > last:
            raise ValueError(f"low {'>' if endpoint else '>='} high: there is no integer from {low} to {high}.")
        count, start = last - first + 1, first % (1 << 64)
        if count <= 1 << 32:
            return self._draw(r, "bounded_4", d, start, count, (1 << 32) % count)
        return self._draw(r, "bounded_8", d, start, count % (1 << 64), (1 << 64) % count)

    def _ranges(self, r: Any, low: Any, high: Any, d: np.dtype, least: int, most: int, endpoint: bool) -> Any:
        for name, x, beyond in (("low", low, 0), ("high", high, 0 if endpoint else 1)):
            if isinstance(x, AbstractArray) and x.dtype.kind not in "biu":
                raise TypeError(
                    f"{name} is {x.dtype.name}, and no integer. Convert it: {name}.astype(mb.int64)."
                )
            if any_of(x < least) or any_of(x > most + beyond):
                raise ValueError(f"{name} is out of bounds for {d.name}, which goes from {least} to {most}.")
        if any_of(low > high if endpoint else low >= high):
            raise ValueError(f"low {'>' if endpoint else '>='} high: some of the ranges have no integer.")
        # In 64 bits that wrap around, the count of a range is right for all dtypes.
        start, end = _wrapped(low), _wrapped(high)
        count = end - start + np.uint64(1) if endpoint else end - start
        return self._draw(r, "bounded_each", d, start, count)

    def poisson(self, lam: ArrayLike = 1.0, size: ShapeLike | None = None, *, out: Out = None) -> AbstractArray:
        """How many events of a mean number `lam` happen.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).poisson([1.0, 1000.0], (1000, 2))
        >>> print(mb.round(mb.mean(x, axis=0)))
        [   1. 1000.]
        """
        r = self._request(size, out, lam=lam)
        (lam,) = r.parameters
        self._check_mean(lam)
        return self._deliver(r, self._draw(r, "poisson", None, lam))

    def _check_mean(self, lam: Any) -> None:
        if any_of(lam > _LARGEST_MEAN):
            raise ValueError(f"lam value too large: it is at most {_LARGEST_MEAN:g}.")
        finite("lam", lam)

    def binomial(
        self, n: ArrayLike, p: ArrayLike, size: ShapeLike | None = None, *, out: Out = None
    ) -> AbstractArray:
        """How many of `n` trials succeed, each with probability `p`.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).binomial(10, 0.5, 100)
        >>> bool(mb.all((x >= 0) & (x <= 10)))
        True
        """
        r = self._request(size, out, ("n",), n=n, p=p)
        trials, chance = r.parameters
        trials = integer("n", trials)
        not_negative("n", trials)
        probability("p", chance)
        return self._deliver(r, self._draw(r, "binomial", None, trials, chance))

    def negative_binomial(
        self, n: ArrayLike, p: ArrayLike, size: ShapeLike | None = None, *, out: Out = None
    ) -> AbstractArray:
        """How many trials fail before `n` succeed, each with probability `p`."""
        r = self._request(size, out, n=n, p=p)
        successes, chance = r.parameters
        positive("n", successes)
        finite("n", successes)
        probability("p", chance, zero=False)
        mean = self._draw(r, "gamma", np.dtype(np.float64), successes, shape=r.shape) * (
            (1.0 - chance) / chance
        )
        self._check_mean(mean)
        return self._deliver(r, self._draw(r, "poisson", None, mean))

    def geometric(self, p: ArrayLike, size: ShapeLike | None = None, *, out: Out = None) -> AbstractArray:
        """How many trials it takes to succeed once, each with probability `p`.

        >>> import mirabelle as mb
        >>> print(mb.random.default_rng(7).geometric(1.0, 3))
        [1 1 1]
        """
        r = self._request(size, out, p=p)
        (chance,) = r.parameters
        probability("p", chance, zero=False)
        if isinstance(chance, AbstractArray):
            rate = verbs.negative(verbs.log1p(verbs.negative(chance)))
        else:
            rate = -math.log1p(-chance) if chance < 1 else math.inf
        return self._deliver(r, _counted(verbs.ceil(self._draw(r, "exponential") / rate), 1))

    def hypergeometric(
        self,
        ngood: ArrayLike,
        nbad: ArrayLike,
        nsample: ArrayLike,
        size: ShapeLike | None = None,
        *,
        out: Out = None,
    ) -> AbstractArray:
        """How many good ones are among `nsample` drawn, without putting back, from good and bad ones."""
        names = ("ngood", "nbad", "nsample")
        r = self._request(size, out, names, ngood=ngood, nbad=nbad, nsample=nsample)
        good, bad, sample = (integer(name, x) for name, x in zip(names, r.parameters, strict=True))
        for name, x in zip(names, (good, bad, sample), strict=True):
            not_negative(name, x)
        if any_of(good >= 10**9) or any_of(bad >= 10**9):
            raise ValueError("both ngood and nbad must be less than 1000000000.")
        if any_of(good + bad < sample):
            raise ValueError("ngood + nbad < nsample: more are drawn than there are.")
        return self._deliver(r, self._draw(r, "hypergeometric", None, good, bad, sample))

    def logseries(self, p: ArrayLike, size: ShapeLike | None = None, *, out: Out = None) -> AbstractArray:
        """Logarithmic series numbers: k with a probability in proportion to p**k / k."""
        r = self._request(size, out, p=p)
        (share,) = r.parameters
        probability("p", share, one=False)
        # Kemp 1981: geometric, with a chance that is random itself.
        rate = verbs.log1p(verbs.negative(share)) if isinstance(share, AbstractArray) else math.log1p(-share)
        u = 1.0 - self._draw(r, "uniform", shape=r.shape)
        minus_log = self._draw(r, "exponential", shape=r.shape)
        chance = verbs.negative(verbs.expm1(u * rate))
        k = 1.0 + verbs.floor(minus_log / verbs.negative(verbs.log(chance)))
        return self._deliver(r, _counted(k, 1))

    def zipf(self, a: ArrayLike, size: ShapeLike | None = None, *, out: Out = None) -> AbstractArray:
        """Zipf numbers: k with a probability in proportion to k**-a, for a > 1."""
        r = self._request(size, out, a=a)
        (exponent,) = r.parameters
        if any_of(exponent <= 1):
            raise ValueError("a <= 1: the exponent of a Zipf distribution is more than 1.")
        finite("a", exponent)
        return self._deliver(r, self._draw(r, "zipf", None, exponent))


def _wrapped(x: Any) -> Any:
    """An end of ranges in 64 bits without a sign."""
    if isinstance(x, AbstractArray):
        return cast_to(cast_to(x, _INT64) if x.dtype.kind == "i" else x, np.dtype(np.uint64))
    return np.uint64(math.ceil(x) % (1 << 64))


def _counted(x: Any, least: int) -> Any:
    """Whole doubles as integers, as large as they may be."""
    fits = x <= _LARGEST
    whole = cast_to(verbs.where(fits, verbs.maximum(x, least), float(least)), _INT64)
    return verbs.where(fits, whole, np.iinfo(_INT64).max)
