"""Continuous distributions. Those with a formula are drawn as uniform, exponential or normal numbers,
and the formula is a lazy tree over them, which fuses with what the caller computes of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.random.checks import (
    all_of,
    any_of,
    finite,
    float_dtype,
    not_negative,
    positive,
)
from mirabelle.arraytypes.random.core import Core, Request
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike, Out, ShapeLike


def _is(x: Any, value: float) -> bool:
    return not isinstance(x, AbstractArray) and x == value


def _placed(x: Any, loc: Any, scale: Any) -> Any:
    """loc + scale * x, without the parts that change nothing."""
    if not _is(scale, 1.0):
        x = verbs.multiply(x, scale)
    return x if _is(loc, 0.0) else verbs.add(x, loc)


def _power(x: Any, exponent: Any) -> Any:
    """x to a power, the same on all places. (For these exponents NumPy takes another way on arrays.)"""
    if not isinstance(exponent, AbstractArray):
        for plain, function in ((0.5, verbs.sqrt), (2.0, verbs.square), (1.0, verbs.positive)):
            if exponent == plain:
                return function(x)
    return verbs.pow(x, exponent)


class Continuous(Core):
    """The methods of a generator that return real numbers.

    All take `size`, `dtype` (float64 or float32) and `out`; parameters may be arrays, which broadcast.
    """

    __slots__ = ()

    # The four that everything else is made of

    def random(self, size: ShapeLike | None = None, dtype: DTypeLike = None, out: Out = None) -> AbstractArray:
        """Uniform numbers from [0, 1), in steps of 2**-53 (of 2**-24 in single precision).

        >>> import mirabelle as mb
        >>> rng = mb.random.default_rng(7)
        >>> print(rng.random(3))
        [0.1247594  0.18754245 0.60818828]
        """
        r = self._request(size, out)
        return self._deliver(r, self._draw(r, "uniform", float_dtype(dtype, r.out, "random")))

    def standard_normal(
        self, size: ShapeLike | None = None, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Normal numbers of mean 0 and variance 1.

        >>> import mirabelle as mb
        >>> mb.random.default_rng(7).standard_normal((2, 3)).shape
        (2, 3)
        """
        r = self._request(size, out)
        return self._deliver(r, self._draw(r, "normal", float_dtype(dtype, r.out, "standard_normal")))

    def standard_exponential(
        self, size: ShapeLike | None = None, dtype: DTypeLike = None, method: str = "inv", out: Out = None
    ) -> AbstractArray:
        """Exponential numbers of mean 1. (`method` is accepted for NumPy's sake; there is one way here.)

        >>> import mirabelle as mb
        >>> bool(mb.all(mb.random.default_rng(7).standard_exponential(100) > 0))
        True
        """
        if method not in ("inv", "zig"):
            raise ValueError(f'method is "inv" or "zig", not {method!r}.')
        r = self._request(size, out)
        return self._deliver(r, self._draw(r, "exponential", float_dtype(dtype, r.out, "standard_exponential")))

    def standard_gamma(
        self, shape: ArrayLike, size: ShapeLike | None = None, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Gamma numbers of a shape, and scale 1.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).standard_gamma([0.5, 50.0], (1000, 2))
        >>> print(mb.round(mb.mean(x, axis=0)))
        [ 0. 50.]
        """
        r = self._request(size, out, shape=shape)
        d = float_dtype(dtype, r.out, "standard_gamma")
        finite("shape", *r.parameters)
        return self._deliver(r, self._draw(r, "gamma", d, *r.parameters))

    # Uniform

    def uniform(
        self,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Uniform numbers from [low, high).

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).uniform(-1, 1, 1000)
        >>> bool(mb.all((x >= -1) & (x < 1)))
        True
        """
        r = self._request(size, out, low=low, high=high)
        d = float_dtype(dtype, r.out, "uniform")
        begin, end = r.parameters
        width = end - begin
        if not all_of(verbs.isfinite(width) if isinstance(width, AbstractArray) else math.isfinite(width)):
            raise OverflowError("high - low range exceeds valid bounds: it is no finite number.")
        not_negative("high - low", width)
        return self._deliver(r, _placed(self._draw(r, "uniform", d), begin, width), d)

    def triangular(
        self,
        left: ArrayLike,
        mode: ArrayLike,
        right: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Numbers from [left, right] with a density that rises to `mode` and falls from there."""
        r = self._request(size, out, left=left, mode=mode, right=right)
        d = float_dtype(dtype, r.out, "triangular")
        begin, top, end = r.parameters
        for wrong, text in (
            (begin > top, "left > mode"),
            (top > end, "mode > right"),
            (begin == end, "left == right"),
        ):
            if any_of(wrong):
                raise ValueError(f"{text}: the corners of a triangular distribution go from left to right.")
        u = self._draw(r, "uniform", d)
        width = end - begin
        rising = begin + verbs.sqrt(u * (width * (top - begin)))
        falling = end - verbs.sqrt((1.0 - u) * (width * (end - top)))
        return self._deliver(r, verbs.where(u * width <= top - begin, rising, falling), d)

    # From normal numbers

    def normal(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Normal numbers of a mean and a standard deviation.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).normal([0.0, 100.0], 0.1)
        >>> print(mb.round(x))
        [  0. 100.]
        """
        r, d = self._scaled(size, out, dtype, "normal", loc, scale)
        return self._deliver(r, _placed(self._draw(r, "normal", d), *r.parameters), d)

    def lognormal(
        self,
        mean: ArrayLike = 0.0,
        sigma: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Numbers whose logarithm is normal."""
        r = self._request(size, out, mean=mean, sigma=sigma)
        d = float_dtype(dtype, r.out, "lognormal")
        not_negative("sigma", r.parameters[1])
        return self._deliver(r, verbs.exp(_placed(self._draw(r, "normal", d), *r.parameters)), d)

    def wald(
        self,
        mean: ArrayLike,
        scale: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """When a drifting Brownian motion first arrives (inverse Gaussian numbers)."""
        r = self._request(size, out, mean=mean, scale=scale)
        d = float_dtype(dtype, r.out, "wald")
        center, shape = r.parameters
        positive("mean", center)
        positive("scale", shape)
        # Michael, Schucany and Haas 1976; the smaller root of the quadratic without cancellation.
        y = verbs.square(self._draw(r, "normal", d)) * (center / (2.0 * shape))
        root = 1.0 / (1.0 + y + verbs.sqrt(y * (y + 2.0)))
        u = self._draw(r, "uniform", d)
        return self._deliver(r, verbs.where(u * (1.0 + root) <= 1.0, root, 1.0 / root) * center, d)

    # From exponential numbers

    def exponential(
        self, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Exponential numbers of mean `scale`.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).exponential(100.0, 10000)
        >>> bool(abs(mb.mean(x) - 100) < 5)
        True
        """
        r = self._request(size, out, scale=scale)
        d = float_dtype(dtype, r.out, "exponential")
        not_negative("scale", *r.parameters)
        return self._deliver(r, _placed(self._draw(r, "exponential", d), 0.0, *r.parameters), d)

    def rayleigh(
        self, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """The length of a vector of two normal components of deviation `scale`."""
        r = self._request(size, out, scale=scale)
        d = float_dtype(dtype, r.out, "rayleigh")
        not_negative("scale", *r.parameters)
        x = verbs.sqrt(self._draw(r, "exponential", d) * 2.0)
        return self._deliver(r, _placed(x, 0.0, *r.parameters), d)

    def weibull(
        self, a: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Weibull numbers of a shape `a`, and scale 1."""
        r = self._request(size, out, a=a)
        d = float_dtype(dtype, r.out, "weibull")
        not_negative("a", *r.parameters)
        x = self._draw(r, "exponential", d)
        (shape,) = r.parameters
        if not isinstance(shape, AbstractArray):
            return self._deliver(r, x * 0.0 if shape == 0 else _power(x, 1.0 / shape), d)
        return self._deliver(r, verbs.where(shape == 0, 0.0, verbs.pow(x, 1.0 / shape)), d)

    def pareto(
        self, a: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Pareto numbers of the second kind (Lomax): they begin at 0. Add 1 for the first kind."""
        r = self._request(size, out, a=a)
        d = float_dtype(dtype, r.out, "pareto")
        positive("a", *r.parameters)
        return self._deliver(r, verbs.expm1(self._draw(r, "exponential", d) / r.parameters[0]), d)

    def power(
        self, a: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Numbers from [0, 1] with the density a x**(a - 1)."""
        r = self._request(size, out, a=a)
        d = float_dtype(dtype, r.out, "power")
        positive("a", *r.parameters)
        x = verbs.negative(verbs.expm1(verbs.negative(self._draw(r, "exponential", d))))
        return self._deliver(r, _power(x, 1.0 / r.parameters[0]), d)

    def gumbel(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """The largest of many (extreme value numbers of the first kind)."""
        r, d = self._scaled(size, out, dtype, "gumbel", loc, scale)
        x = verbs.negative(verbs.log(self._draw(r, "exponential", d)))
        return self._deliver(r, _placed(x, *r.parameters), d)

    def laplace(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """The difference of two exponential numbers."""
        r, d = self._scaled(size, out, dtype, "laplace", loc, scale)
        x = self._draw(r, "exponential", d) - self._draw(r, "exponential", d)
        return self._deliver(r, _placed(x, *r.parameters), d)

    def logistic(
        self,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Numbers whose distribution function is 1 / (1 + exp(-x))."""
        r, d = self._scaled(size, out, dtype, "logistic", loc, scale)
        # log of the odds of a uniform number, with full precision on both sides.
        x = verbs.log(verbs.expm1(self._draw(r, "exponential", d)))
        return self._deliver(r, _placed(x, *r.parameters), d)

    def standard_cauchy(
        self, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """The quotient of two normal numbers."""
        r = self._request(size, out)
        d = float_dtype(dtype, r.out, "standard_cauchy")
        return self._deliver(r, self._draw(r, "normal", d) / self._draw(r, "normal", d))

    # From gamma numbers

    def gamma(
        self,
        shape: ArrayLike,
        scale: ArrayLike = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Gamma numbers of a shape and a scale.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).gamma(9.0, 2.0, 10000)
        >>> bool(abs(mb.mean(x) - 18) < 0.5)
        True
        """
        r = self._request(size, out, shape=shape, scale=scale)
        d = float_dtype(dtype, r.out, "gamma")
        shape, scale = r.parameters
        finite("shape", shape)
        not_negative("scale", scale)
        return self._deliver(r, _placed(self._draw(r, "gamma", d, shape), 0.0, scale), d)

    def beta(
        self,
        a: ArrayLike,
        b: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Beta numbers: what part of two gamma numbers of shapes `a` and `b` the first is."""
        r = self._request(size, out, a=a, b=b)
        d = float_dtype(dtype, r.out, "beta")
        a, b = r.parameters
        positive("a", a)
        positive("b", b)
        finite("a", a)
        finite("b", b)
        # By logarithms: gamma numbers of small shapes are too small for a number.
        x, y = self._draw(r, "log_gamma", None, a), self._draw(r, "log_gamma", None, b)
        return self._deliver(r, 1.0 / (1.0 + verbs.exp(y - x)), d)

    def chisquare(
        self, df: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """The sum of the squares of `df` normal numbers."""
        r = self._request(size, out, df=df)
        d = float_dtype(dtype, r.out, "chisquare")
        positive("df", *r.parameters)
        return self._deliver(r, self._chisquare(r, r.parameters[0]), d)

    def _chisquare(self, r: Request, df: Any) -> Any:
        finite("df", df)
        return self._draw(r, "gamma", None, df / 2.0) * 2.0

    def noncentral_chisquare(
        self,
        df: ArrayLike,
        nonc: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """The sum of the squares of `df` normal numbers whose means are not 0: `nonc` is the sum of theirs."""
        r = self._request(size, out, df=df, nonc=nonc)
        d = float_dtype(dtype, r.out, "noncentral_chisquare")
        df, nonc = r.parameters
        positive("df", df)
        not_negative("nonc", nonc)
        return self._deliver(r, self._noncentral(r, df, nonc), d)

    def _noncentral(self, r: Request, df: Any, nonc: Any) -> Any:
        """A Poisson number of further pairs of degrees of freedom, whatever df is."""
        finite("nonc", nonc, most=1e18)
        half = nonc / 2.0
        pairs = self._draw(r, "poisson", None, half)
        return self._chisquare(r, 2.0 * pairs + df)

    def f(
        self,
        dfnum: ArrayLike,
        dfden: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """The quotient of two chi-square numbers, each divided by its degrees of freedom."""
        r = self._request(size, out, dfnum=dfnum, dfden=dfden)
        d = float_dtype(dtype, r.out, "f")
        dfnum, dfden = r.parameters
        positive("dfnum", dfnum)
        positive("dfden", dfden)
        return self._deliver(r, self._chisquare(r, dfnum) * dfden / (self._chisquare(r, dfden) * dfnum), d)

    def noncentral_f(
        self,
        dfnum: ArrayLike,
        dfden: ArrayLike,
        nonc: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """As `f`, with a noncentral numerator."""
        r = self._request(size, out, dfnum=dfnum, dfden=dfden, nonc=nonc)
        d = float_dtype(dtype, r.out, "noncentral_f")
        dfnum, dfden, nonc = r.parameters
        positive("dfnum", dfnum)
        positive("dfden", dfden)
        not_negative("nonc", nonc)
        x = self._noncentral(r, dfnum, nonc) * dfden
        return self._deliver(r, x / (self._chisquare(r, dfden) * dfnum), d)

    def standard_t(
        self, df: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Student's t of `df` degrees of freedom.

        >>> import mirabelle as mb
        >>> mb.random.default_rng(7).standard_t(3.0, size=5).shape
        (5,)
        """
        r = self._request(size, out, df=df)
        d = float_dtype(dtype, r.out, "standard_t")
        (freedom,) = r.parameters
        positive("df", freedom)
        finite("df", freedom)
        x = self._draw(r, "normal")
        half = freedom / 2.0
        return self._deliver(r, x * verbs.sqrt(half / self._draw(r, "gamma", None, half)), d)

    # Of the circle

    def vonmises(
        self,
        mu: ArrayLike,
        kappa: ArrayLike,
        size: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Angles from [-π, π] around `mu`: the normal distribution of the circle."""
        r = self._request(size, out, mu=mu, kappa=kappa)
        d = float_dtype(dtype, r.out, "vonmises")
        mu, kappa = r.parameters
        finite("kappa", kappa)
        h = self._draw(r, "haversine", None, kappa)
        angle = verbs.copysign(verbs.asin(verbs.sqrt(verbs.abs(h) / 2.0)) * 2.0, h)
        if not _is(mu, 0.0):
            angle = verbs.remainder(angle + mu + np.pi, 2.0 * np.pi) - np.pi
        return self._deliver(r, angle, d)

    def _scaled(
        self, size: Any, out: Any, dtype: Any, method: str, loc: Any, scale: Any
    ) -> tuple[Request, Any]:
        """The request of a distribution of a location and a scale."""
        r = self._request(size, out, loc=loc, scale=scale)
        d = float_dtype(dtype, r.out, method)
        not_negative("scale", r.parameters[1])
        return r, d
