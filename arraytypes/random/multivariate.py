"""Distributions of vectors: the last dimension of a result holds the components."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import as_shape
from mirabelle.arraytypes.random.checks import (
    all_of,
    any_of,
    finite,
    fits,
    float_dtype,
    integer,
    not_negative,
    parameter,
)
from mirabelle.arraytypes.random.core import Core, Request
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import broadcast_shapes

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike, Out, ShapeLike

_INT64 = np.dtype(np.int64)


def _joined(size: Any, *more: int) -> tuple[int, ...]:
    return (*(() if size is None else as_shape(size)), *more)


class Multivariate(Core):
    """The methods of a generator that return vectors."""

    __slots__ = ()

    def dirichlet(
        self, alpha: ArrayLike, size: ShapeLike | None = None, *, dtype: DTypeLike = None, out: Out = None
    ) -> AbstractArray:
        """Probabilities that sum to 1: the shares of gamma numbers of shapes `alpha`.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).dirichlet([1.0, 2.0, 3.0], 4)
        >>> x.shape, bool(mb.all(mb.abs(mb.sum(x, axis=1) - 1) < 1e-12))
        ((4, 3), True)
        """
        r = self._request(None, out)
        weights = self._vector(r, "alpha", alpha)
        finite("alpha", weights)
        d = float_dtype(dtype, r.out, "dirichlet")
        self._shaped(r, size, weights.shape[0])
        # By logarithms: gamma numbers of small shapes are too small for a number.
        logs = self._draw(r, "log_gamma", None, weights)
        shares = verbs.exp(logs - verbs.max(logs, axis=-1, keepdims=True))
        return self._deliver(r, shares / verbs.sum(shares, axis=-1, keepdims=True), d)

    def multivariate_normal(
        self,
        mean: ArrayLike,
        cov: ArrayLike,
        size: ShapeLike | None = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """Normal vectors of a mean and a covariance matrix.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).multivariate_normal([0.0, 10.0], [[1.0, 0.5], [0.5, 1.0]], 1000)
        >>> print(mb.abs(mb.round(mb.mean(x, axis=0))))
        [ 0. 10.]
        """
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError(f'method is "svd", "eigh" or "cholesky", not {method!r}.')
        if check_valid not in ("warn", "raise", "ignore"):
            raise ValueError(f'check_valid is "warn", "raise" or "ignore", not {check_valid!r}.')
        r = self._request(None, out)
        center = self._vector(r, "mean", mean)
        d = float_dtype(dtype, r.out, "multivariate_normal")
        n = center.shape[0]
        covariance = parameter(r.family, "cov", cov)
        if getattr(covariance, "shape", ()) != (n, n):
            shape = getattr(covariance, "shape", ())
            raise ValueError(
                f"mean and cov must have same length: mean has {n} components, cov is of shape {shape}."
            )
        self._shaped(r, size, n)
        factor = _factor(covariance, method, check_valid, tol)
        return self._deliver(r, verbs.matmul(self._draw(r, "normal", None), factor) + center, d)

    def multinomial(
        self, n: ArrayLike, pvals: ArrayLike, size: ShapeLike | None = None, *, out: Out = None
    ) -> AbstractArray:
        """How often each of several outcomes happens in `n` experiments; `pvals` are their probabilities.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).multinomial(100, [0.2, 0.3, 0.5], 4)
        >>> x.shape, print(mb.sum(x, axis=1))
        [100 100 100 100]
        ((4, 3), None)
        """
        r = self._request(None, out, ("n",), n=n, pvals=pvals)
        trials, p = r.parameters
        trials = integer("n", trials)
        not_negative("n", trials)
        if not isinstance(p, AbstractArray) or not p.ndim or not p.shape[-1]:
            raise ValueError("pvals holds the probabilities of at least one outcome: give a list or an array.")
        if not all_of((p >= 0.0) & (p <= 1.0)):
            raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs.")
        if any_of(verbs.sum(p[..., :-1], axis=-1) > 1.0 + 1e-12):
            raise ValueError("sum(pvals[:-1]) > 1.0: the probabilities of all outcomes sum to 1.")
        # One outcome after the other: a binomial part of what is left.
        shape = self._batch(r, size, p.shape[:-1], trials)
        rest = 1.0 - (verbs.accumulate(p, "add", axis=-1) - p)  # of the probability, before each outcome
        share = verbs.where(p < rest, p / verbs.where(rest > 0.0, rest, 1.0), 1.0)
        left = trials
        counts = []
        for k in range(p.shape[-1] - 1):
            counts.append(self._draw(r, "binomial", None, left, share[..., k], shape=shape))
            left = left - counts[-1]
        return self._stacked(r, shape, [*counts, left])

    def multivariate_hypergeometric(
        self,
        colors: ArrayLike,
        nsample: ArrayLike,
        size: ShapeLike | None = None,
        method: str = "marginals",
        *,
        out: Out = None,
    ) -> AbstractArray:
        """How many of each color are among `nsample` drawn, without putting back, from `colors` of each.

        (`method` is accepted for NumPy's sake; there is one way here.)

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).multivariate_hypergeometric([10, 20, 30], 12, 4)
        >>> x.shape, print(mb.sum(x, axis=1))
        [12 12 12 12]
        ((4, 3), None)
        """
        if method not in ("marginals", "count"):
            raise ValueError(f'method is "marginals" or "count", not {method!r}.')
        r = self._request(None, out, ("colors",), colors=colors)
        (given,) = r.parameters
        if not isinstance(given, AbstractArray) or given.ndim != 1 or not given.shape[0]:
            raise ValueError("colors is a list of how many there are of each color.")
        numbers = [int(c) for c in verbs.fetch(integer("colors", given)).tolist()]
        sample = integer("nsample", parameter(r.family, "nsample", nsample, whole=True))
        if isinstance(sample, AbstractArray):
            raise TypeError("nsample is one number.")
        total = sum(numbers)
        if min(numbers) < 0 or sample < 0:
            raise ValueError("colors and nsample are not negative.")
        if total >= 10**9:
            raise ValueError("sum(colors) must be less than 1000000000.")
        if sample > total:
            raise ValueError("nsample > sum(colors): more are drawn than there are.")
        shape = self._batch(r, size, (), sample)
        left: Any = sample
        counts = []
        for c in numbers[:-1]:
            total -= c
            counts.append(self._draw(r, "hypergeometric", None, c, total, left, shape=shape))
            left = left - counts[-1]
        return self._stacked(r, shape, [*counts, left])

    # Shapes

    def _vector(self, r: Request, name: str, x: Any) -> Any:
        x = parameter(r.family, name, x)
        if not isinstance(x, AbstractArray) or x.ndim != 1 or not x.shape[0]:
            raise ValueError(f"{name} is a vector of at least one component: give a list or a 1-d array.")
        return x

    def _shaped(self, r: Request, size: Any, n: int) -> None:
        """Give the request the shape of its vectors."""
        wanted = _joined(size, n)
        if r.out is not None:
            if r.out.shape[-1:] != (n,) or (size is not None and r.out.shape != wanted):
                raise ValueError(f"out has the shape {r.out.shape}; it must hold vectors of {n} components.")
            wanted = r.out.shape
        r.shape = wanted

    def _batch(self, r: Request, size: Any, given: tuple[int, ...], n: Any) -> tuple[int, ...]:
        """The shape of a result without its last dimension."""
        shape = broadcast_shapes([given, n.shape if isinstance(n, AbstractArray) else ()], "the parameters")
        wanted = r.out.shape[:-1] if r.out is not None else shape if size is None else as_shape(size)
        if not fits(shape, wanted):
            raise ValueError(
                f"Output size {wanted} is not compatible with broadcast dimensions of inputs {shape}."
            )
        return wanted

    def _stacked(self, r: Request, shape: tuple[int, ...], counts: list[Any]) -> Any:
        """The counts of each component, side by side."""
        result = r.out
        if result is None:
            result = verbs.similar(_any_array(r, counts), dtype=_INT64, shape=(*shape, len(counts)))
        elif result.shape != (*shape, len(counts)):
            raise ValueError(f"out has the shape {result.shape}, not {(*shape, len(counts))}.")
        for k, x in enumerate(counts):
            result[..., k] = x
        return self._deliver(r, result)


def _any_array(r: Request, counts: list[Any]) -> Any:
    found = next((c for c in counts if isinstance(c, AbstractArray)), None)
    return found if found is not None else r.family(np.zeros((), np.int64))


def _factor(cov: Any, method: str, check_valid: str, tol: float) -> Any:
    """A matrix whose product with its transpose, on the right, is the covariance."""
    if method == "cholesky":
        return library.call("linalg.cholesky", cov).T
    if method == "eigh":
        values, vectors = library.call("linalg.eigh", cov)
        bad = any_of(values < -tol)
        factor = verbs.sqrt(verbs.maximum(values, 0.0))[:, None] * vectors.T
    else:
        _, values, vectors = library.call("linalg.svd", cov)
        bad = check_valid != "ignore" and any_of(
            verbs.abs(verbs.matmul(vectors.T * values, vectors) - cov) > tol + tol * verbs.abs(cov)
        )
        factor = verbs.sqrt(values)[:, None] * vectors
    if bad and check_valid != "ignore":
        text = "covariance is not symmetric positive-semidefinite."
        if check_valid == "raise":
            raise ValueError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    return factor
