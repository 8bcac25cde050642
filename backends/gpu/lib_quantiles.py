"""Medians and quantiles on a card: what is sorted is read at NumPy's places.

(CuPy's own know fewer methods, no weights and no NaN.)
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.backends.gpu.lib_sorting import argsort, sort
from mirabelle.backends.gpu.library import routine

# The places between which a quantile lies: n * q + (alpha + q * (1 - alpha - beta)) - 1.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_METHODS = {
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", *_CONTINUOUS,
}  # fmt: skip


_DISCRETE = ("linear", "lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _lines(xp: Any, x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The elements that are reduced together as the last axis of two, and the reduced axes."""
    axes = normal_axes(axis, x.ndim)
    kept = [d for d in range(x.ndim) if d not in axes]
    moved = x.transpose((*kept, *axes))
    n = math.prod(x.shape[d] for d in axes)
    return moved.reshape(math.prod(x.shape[d] for d in kept), n), axes


def _shape(x: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return tuple(n for d, n in enumerate(x.shape) if d not in axes)


def _numbers(xp: Any, lines: Any, skip: bool) -> Any:
    """How many elements of each line count: all, or those that are not NaN. (These are sorted to the end.)"""
    if skip and lines.dtype.kind in "fc":
        return (~xp.isnan(lines)).sum(axis=1)
    return xp.full(lines.shape[0], lines.shape[1], np.int64)


def _at(xp: Any, ordered: Any, place: Any) -> Any:
    """One element of each line; of lines without any, NaN or what is there."""
    last = max(ordered.shape[1] - 1, 0)
    return xp.take_along_axis(ordered, xp.clip(place, 0, last)[:, None], axis=1)[:, 0]


# Medians


@routine("median")
def median(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, skip: bool = False) -> Any:
    lines, axes = _lines(xp, x, axis)
    shape = _shape(x, axes, keepdims)
    if not lines.shape[1]:
        kind = np.result_type(lines.dtype, np.float64) if lines.dtype.kind in "biu" else lines.dtype
        return xp.full(shape, np.nan, kind)
    ordered = sort(xp, lines, axis=1)
    count = _numbers(xp, ordered, skip)
    low, high = _at(xp, ordered, (count - 1) // 2), _at(xp, ordered, count // 2)
    wide = _wide(x.dtype)
    # Their mean, as NumPy forms it: a single one stays as it is.
    mean = xp.where(count % 2 == 1, low.astype(wide), (low.astype(wide) + high.astype(wide)) / wide.type(2))
    out = mean.astype(x.dtype if x.dtype.kind in "fc" else np.float64)
    if x.dtype.kind in "fc":
        last = ordered[:, -1]  # (the NaN that there is, in one part of a complex number or in both)
        out = xp.where(count == 0, out.dtype.type(np.nan), out) if skip else xp.where(xp.isnan(last), last, out)
    return out.reshape(shape)


def _wide(dtype: np.dtype) -> np.dtype:
    """What means are computed in."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype if dtype.kind in "fc" else np.dtype(float)


@routine("nanmedian")
def _(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return median(xp, x, axis=axis, keepdims=keepdims, skip=True)


# Quantiles


@routine("quantile")
def quantile(
    xp: Any, x: Any, q: Any, *, axis: Any = None, method: str = "linear", keepdims: bool = False,
    weights: Any = None, skip: bool = False, percent: bool = False,
) -> Any:  # fmt: skip
    if x.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {sorted(_METHODS)}")
    weak = type(q) in (int, float)
    if not isinstance(q, xp.ndarray):
        q = xp.asarray(q)
    q = q / 100 if percent else q
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise ValueError(
            "Percentiles must be in the range [0, 100]" if percent else "Quantiles must be in the range [0, 1]"
        )
    lines, axes = _lines(xp, x, axis)
    if weights is not None:
        weights = _lines_of_weights(xp, weights, x, axes, axis, method, lines)
    if lines.dtype.kind == "b" and method not in _DISCRETE[1:]:
        raise TypeError("quantiles of truth values are not interpolated: convert them, x.astype(mb.int8).")
    shape = (*q.shape, *_shape(x, axes, keepdims))
    share = q.reshape(-1)
    if weights is not None:
        found = _weighted(xp, lines, weights, share, skip)
    else:
        ordered = sort(xp, lines, axis=1)
        pick = functools.partial(_quantile, xp, ordered, _numbers(xp, ordered, skip), method, weak, skip)
        found = xp.stack([pick(share[i]) for i in range(share.size)]) if share.size else _none(xp, lines)
    return found.reshape(shape)


def _none(xp: Any, lines: Any) -> Any:
    return xp.empty((0, lines.shape[0]), np.result_type(lines.dtype, np.float64))


def _quantile(xp: Any, ordered: Any, count: Any, method: str, weak: bool, skip: bool, q: Any) -> Any:
    """One quantile of each sorted line."""
    place = _place(xp, count, q, method)
    if place.dtype.kind in "iu" and method not in _DISCRETE:
        place = place.astype(np.float64)
    if place.dtype.kind in "iu" and method in _DISCRETE:
        found = _at(xp, ordered, xp.minimum(place, count - 1))
    else:
        before = xp.floor(place)
        # At the ends there is no other to go halfway to.
        low = xp.where(place >= count - 1, count - 1, xp.maximum(before, 0)).astype(np.int64)
        high = xp.where(place >= count - 1, count - 1, xp.where(place < 0, 0, before + 1)).astype(np.int64)
        share = _share(xp, place, xp.where(place >= count - 1, -1, xp.where(place < 0, 0, before)), method)
        a, b = _at(xp, ordered, low), _at(xp, ordered, high)
        share = share.astype(ordered.dtype) if weak and ordered.dtype.kind == "f" else share
        step = b - a
        found = xp.where(share >= 0.5, b - step * (1 - share), a + step * share)
    if ordered.dtype.kind == "f":
        missing = count == 0 if skip else xp.isnan(ordered[:, -1:]).any(axis=1)
        found = xp.where(missing, found.dtype.type(np.nan), found)
    return found


def _place(xp: Any, n: Any, q: Any, method: str) -> Any:
    """Where in the sorted elements a quantile is: an integer, or between two."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method == "averaged_inverted_cdf":
        return n * q - 1
    if method in ("inverted_cdf", "closest_observation"):
        index = n * q - 1 - (0.5 if method == "closest_observation" else 0)
        before = xp.floor(index)
        on_it = index == before
        if method == "closest_observation":
            on_it = on_it & (before % 2 == 1)
        return xp.maximum(xp.where(on_it, before, before + 1), 0).astype(np.int64)
    place = (n - 1) * q
    if method == "lower":
        return xp.floor(place).astype(np.int64)
    if method == "higher":
        return xp.ceil(place).astype(np.int64)
    if method == "nearest":
        return xp.rint(place).astype(np.int64)
    return 0.5 * (xp.floor(place) + xp.ceil(place)) if method == "midpoint" else place


def _share(xp: Any, place: Any, before: Any, method: str) -> Any:
    """How far from the element before to the next."""
    share = place - before
    if method == "averaged_inverted_cdf":
        return xp.where(share == 0, 0.5, 1.0).astype(place.dtype)
    if method == "midpoint":
        return xp.where(place % 1 == 0, 0.0, 0.5).astype(place.dtype)
    return share


def _lines_of_weights(
    xp: Any, weights: Any, x: Any, axes: tuple[int, ...], axis: Any, method: str, lines: Any
) -> Any:
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    weights = weights if isinstance(weights, xp.ndarray) else xp.asarray(weights)
    if weights.shape != x.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if weights.shape != tuple(x.shape[d] for d in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        weights = xp.broadcast_to(weights.reshape(1, -1), lines.shape)
    else:
        weights, _ = _lines(xp, weights, axis)
    if bool((weights < 0).any()):
        raise ValueError("Weights must be non-negative.")
    return weights


def _weighted(xp: Any, lines: Any, weights: Any, share: Any, skip: bool) -> Any:
    """The first elements at which the weights so far come to the share."""
    order = argsort(xp, lines, axis=1)
    ordered = xp.take_along_axis(lines, order, axis=1)
    weights = xp.take_along_axis(weights, order, axis=1).astype(np.float64)
    missing = xp.isnan(ordered) if ordered.dtype.kind == "f" else None
    if skip and missing is not None:
        weights = xp.where(missing, 0.0, weights)
    reached = xp.cumsum(weights, axis=1)
    reached = reached / reached[:, -1:]
    if not skip and not bool(xp.isfinite(reached[:, -1]).all()):
        raise ValueError("Weights included NaN, inf or were all zero.")
    # Elements without weight at the beginning are passed over, also for the share 0.
    reached = xp.where(reached == 0, -1.0, reached)
    found = []
    for i in range(share.size):
        place = (reached < share[i]).sum(axis=1)
        picked = _at(xp, ordered, xp.minimum(place, lines.shape[1] - 1))
        if missing is not None:
            none = missing.all(axis=1) if skip else missing.any(axis=1)
            picked = xp.where(none, picked.dtype.type(np.nan), picked)
        found.append(picked)
    return xp.stack(found) if found else xp.empty((0, lines.shape[0]), lines.dtype)


@routine("percentile")
def _(xp: Any, x: Any, q: Any, **options: Any) -> Any:
    return quantile(xp, x, q, percent=True, **options)


@routine("nanquantile")
def _(xp: Any, x: Any, q: Any, **options: Any) -> Any:
    return quantile(xp, x, q, skip=True, **options)


@routine("nanpercentile")
def _(xp: Any, x: Any, q: Any, **options: Any) -> Any:
    return quantile(xp, x, q, skip=True, percent=True, **options)
