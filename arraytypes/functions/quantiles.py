"""Medians and quantiles, by NumPy's names and its methods.

Plain arrays of the host ask NumPy. On cards, over processes and for dual numbers what is sorted is read at the
places that NumPy reads, found by its formulas: results are its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray, full
from mirabelle.arraytypes.define import array_function, as_array, as_selection
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.manipulation import moveaxis
from mirabelle.arraytypes.functions.neighbours import cumulative_sum
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.functions.picking import take, take_along_axis
from mirabelle.arraytypes.functions.reducing import _given
from mirabelle.arraytypes.functions.sorting import argsort, sort
from mirabelle.arraytypes.indexing import lying_within
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs


def _quantile(
    name: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any = None
) -> Any:
    options = {"axis": axis, "method": method, "keepdims": bool(keepdims) if _given(keepdims) else False}
    if weights is not None:
        options["weights"] = weights
    q = as_selection(q, a) if isinstance(q, (list, tuple, np.ndarray)) else q

    def composed(a: Any, q: Any, **options: Any) -> Any:
        return _composed(name, a, q, **options)

    return into(out, library.numpys_or(composed, name, a, q, **options))


def _median(name: str, a: Any, axis: Any, keepdims: Any) -> Any:
    def composed(a: Any, *, axis: Any, keepdims: bool) -> Any:
        return _middle(a, axis, keepdims, name == "nanmedian")

    return library.numpys_or(composed, name, a, axis=axis, keepdims=bool(keepdims))


@array_function
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """What the share `q` of the elements does not exceed, along axes; by NumPy's methods.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    q : number or array
        Shares, from 0 to 1.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    method : str, default 'linear'
        How values between two elements are found, by NumPy's names: "linear", "lower", "nearest", ...
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    array
        The dimensions of `q` come first, and then the axes that are left: of no dimensions, if neither has
        any. Integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.quantile(mb.HostArray([1.0, 2.0, 3.0]), 0.5))
    2.0
    """
    return _quantile("quantile", a, q, axis, out, method, keepdims, weights)


@array_function
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """What `q` percent of the elements do not exceed, along axes; by NumPy's methods.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    q : number or array
        Percents, from 0 to 100.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    method : str, default 'linear'
        How values between two elements are found, by NumPy's names: "linear", "lower", "nearest", ...
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    array
        The dimensions of `q` come first, and then the axes that are left: of no dimensions, if neither has
        any. Integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.percentile(mb.HostArray([1.0, 2.0, 3.0]), [0, 50]))
    [1. 2.]
    """
    return _quantile("percentile", a, q, axis, out, method, keepdims, weights)


@array_function
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """As `quantile`, of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    q : number or array
        Shares, from 0 to 1.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    method : str, default 'linear'
        How values between two elements are found, by NumPy's names: "linear", "lower", "nearest", ...
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    array
        The dimensions of `q` come first, and then the axes that are left: of no dimensions, if neither has
        any. Integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanquantile(mb.HostArray([1.0, mb.nan, 3.0]), 0.5))
    2.0
    """
    return _quantile("nanquantile", a, q, axis, out, method, keepdims, weights)


@array_function
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """As `percentile`, of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    q : number or array
        Percents, from 0 to 100.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    method : str, default 'linear'
        How values between two elements are found, by NumPy's names: "linear", "lower", "nearest", ...
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    array
        The dimensions of `q` come first, and then the axes that are left: of no dimensions, if neither has
        any. Integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanpercentile(mb.HostArray([1.0, mb.nan, 3.0]), 50))
    2.0
    """
    return _quantile("nanpercentile", a, q, axis, out, method, keepdims, weights)


@array_function
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The middle one of the sorted elements, or the mean of the middle two, along axes.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a` if it is floating-point
        or complex, else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.median(mb.HostArray([3.0, 1.0, 2.0])))
    2.0
    """
    return into(out, _median("median", a, axis, keepdims))


@array_function
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """As `median`, of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    overwrite_input : bool, default False
        Taken for NumPy's sake; the input is never changed.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a` if it is floating-point
        or complex, else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanmedian(mb.HostArray([3.0, mb.nan, 2.0])))
    2.5
    """
    return into(out, _median("nanmedian", a, axis, _given(keepdims) and keepdims))


# Composed of sorts and of what stands where


def _lines(x: Any, axes: tuple[int, ...]) -> Any:
    """The elements that are reduced together as the last axis."""
    kept = [d for d in range(x.ndim) if d not in axes]
    moved = verbs.permute_dims(x, (*kept, *axes))
    return verbs.reshape(moved, (*[x.shape[d] for d in kept], math.prod(x.shape[d] for d in axes)))


def _shape(x: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return tuple(n for d, n in enumerate(x.shape) if d not in axes)


def _numbers(ordered: Any, skip: bool) -> Any:
    """How many elements of each line count: all, or those that are not NaN. (These are sorted to the end.)"""
    if not skip or ordered.dtype.kind not in "fc":
        return ordered.shape[-1]
    return verbs.count_nonzero(verbs.logical_not(verbs.isnan(ordered)), axis=-1, keepdims=True)


def _at(ordered: Any, place: Any) -> Any:
    """Elements of each line: by numbers for all of them, or by those of each; without any, what is there."""
    last = max(ordered.shape[-1] - 1, 0)
    if isinstance(place, AbstractArray) and place.ndim == ordered.ndim > 1:
        return take_along_axis(ordered, lying_within(verbs.clip(place, 0, last), last + 1), axis=-1)
    place = verbs.clip(place, 0, last) if isinstance(place, AbstractArray) else np.clip(place, 0, last)
    return take(ordered, place, axis=-1)


def _middle(x: Any, axis: Any, keepdims: bool, skip: bool) -> Any:
    axes = normal_axes(axis, x.ndim)
    lines, shape = _lines(x, axes), _shape(x, axes, keepdims)
    floating = x.dtype.kind in "fc"
    out = x.dtype if floating else np.dtype(np.float64)
    if not lines.shape[-1]:
        return full(shape, complex(np.nan, np.nan) if out.kind == "c" else np.nan, out, device=x.place)
    ordered = sort(lines, axis=-1)
    count = _numbers(ordered, skip)
    # Their mean, as NumPy forms it: a single one stays as it is.
    wide = np.dtype(np.float32) if x.dtype == np.float16 else out
    if isinstance(count, int):
        found = cast_to(_at(ordered, np.array([count // 2])), wide)
        if count % 2 == 0:
            found = _mean(cast_to(_at(ordered, np.array([count // 2 - 1])), wide), found)
    else:
        low, high = _at(ordered, verbs.floor_divide(count - 1, 2)), _at(ordered, verbs.floor_divide(count, 2))
        low, high = cast_to(low, wide), cast_to(high, wide)
        found = verbs.where(verbs.equal(verbs.remainder(count, 2), 1), low, _mean(low, high))
    found = cast_to(found, out)
    if floating and skip:
        found = verbs.where(verbs.equal(count, 0), out.type(np.nan), found)
    elif floating:
        last = ordered[..., -1:]  # (the NaN that there is, in one part of a complex number or in both)
        found = verbs.where(verbs.isnan(last), last, found)
    return _shaped(found, shape)


def _shaped(found: Any, shape: tuple[int, ...]) -> Any:
    """A result in its shape; without axes it is a number, as the results of operations are, and no view."""
    made = verbs.reshape(verbs.materialize(found), shape)
    return made if shape else verbs.materialize(verbs.where(True, made, made))


def _mean(a: Any, b: Any) -> Any:
    return verbs.divide(verbs.add(a, b), a.dtype.type(2))


# The places between which a quantile lies: n * q + (alpha + q * (1 - alpha - beta)) - 1.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_METHODS = {"linear", "midpoint", "averaged_inverted_cdf", *_DISCRETE, *_CONTINUOUS}


def _composed(name: str, x: Any, q: Any, *, axis: Any, method: str, keepdims: bool, weights: Any = None) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {sorted(_METHODS)}")
    for given in (q, weights):
        if isinstance(given, AbstractArray) and given.carries_derivatives:
            library.call(name, given)  # which says that there is no rule
    skip, percent = name.startswith("nan"), name.endswith("percentile")
    weak = type(q) in (int, float)
    q = _known_or_there(q, x)
    q = _hundredth(q) if percent else q
    if isinstance(q, np.ndarray) and not ((q >= 0) & (q <= 1)).all():
        raise ValueError(
            "Percentiles must be in the range [0, 100]" if percent else "Quantiles must be in the range [0, 1]"
        )
    axes = normal_axes(axis, x.ndim)
    lines, share = _lines(x, axes), q.reshape((q.size,))
    if skip and not lines.shape[-1]:  # (of nothing: not a number, as NumPy says)
        nothing = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        found = verbs.assign(verbs.similar(lines, dtype=nothing, shape=(*lines.shape[:-1], q.size)), np.nan)
    elif weights is not None:
        found = _weighted(lines, _of_lines(weights, x, axes, axis, method), share, skip)
    else:
        found = _read(sort(lines, axis=-1), share, method, weak, skip)
    found = verbs.materialize(found)
    found = moveaxis(found, -1, 0) if found.ndim > 1 and q.ndim else found
    shape = (*q.shape, *_shape(x, axes, keepdims))
    return verbs.copy(verbs.reshape(found, shape)) if shape else _shaped(found, shape)


def _known_or_there(q: Any, x: Any) -> Any:
    """Shares as numbers of the host; in a program, where nobody knows them, as an array of the place of `x`."""
    if not isinstance(q, AbstractArray):
        return np.asarray(q)
    return as_array(q, x) if q.place.kind == "traced" else np.asarray(verbs.fetch(q))


def _hundredth(q: Any) -> Any:
    return np.asarray(q / 100) if isinstance(q, np.ndarray) else verbs.divide(q, 100)


def _read(ordered: Any, q: Any, method: str, weak: bool, skip: bool) -> Any:
    """Quantiles of each sorted line, along the last axis."""
    count = _numbers(ordered, skip)
    if not isinstance(count, int) and isinstance(q, np.ndarray):
        q = asarray(q, device=ordered.place)
    xp: Any = np if isinstance(count, int) and isinstance(q, np.ndarray) else verbs
    place, last = _place(xp, count, q, method), count - 1
    if method in _DISCRETE or place.dtype.kind in "iu":
        found = _at(ordered, xp.minimum(place, last))
    elif ordered.dtype.kind == "b":
        raise TypeError("quantiles of truth values are not interpolated: convert them, x.astype(mb.int8).")
    else:
        before = xp.floor(place)
        # At the ends there is no other to go halfway to.
        beyond, ahead = place >= last, place < 0
        low = xp.where(beyond, last, xp.maximum(before, 0)).astype(np.int64)
        high = xp.where(beyond, last, xp.where(ahead, 0, before + 1)).astype(np.int64)
        share = _share(xp, place, xp.where(beyond, -1, xp.where(ahead, 0, before)), method)
        a, b = _at(ordered, low), _at(ordered, high)
        found = _between(a, b, *(_factor(x, ordered, weak) for x in (share, 1 - share)))
    if ordered.dtype.kind == "f":
        missing = verbs.equal(count, 0) if skip else verbs.isnan(ordered[..., -1:])
        found = verbs.where(missing, found.dtype.type(np.nan), found)
    return found


def _factor(share: Any, ordered: Any, weak: bool) -> Any:
    """(A Python number has no say in the dtype of the result.)"""
    share = share.astype(ordered.dtype) if weak and ordered.dtype.kind == "f" else share
    return asarray(share, device=ordered.place) if isinstance(share, np.ndarray) else share


def _between(a: Any, b: Any, share: Any, rest: Any) -> Any:
    """From the nearer one on, as NumPy has it."""
    step = verbs.subtract(b, a)
    from_b = verbs.subtract(b, verbs.multiply(step, rest))
    return verbs.where(verbs.greater_equal(share, 0.5), from_b, verbs.add(a, verbs.multiply(step, share)))


def _place(xp: Any, n: Any, q: Any, method: str) -> Any:
    """Where in the sorted elements a quantile is: an integer, or between two."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method == "averaged_inverted_cdf":
        return (n * q - 1) * 1.0
    if method in ("inverted_cdf", "closest_observation"):
        index = n * q - 1 - (0.5 if method == "closest_observation" else 0)
        before = xp.floor(index)
        on_it = index == before
        if method == "closest_observation":
            on_it = on_it & (before % 2 == 1)
        return xp.maximum(xp.where(on_it, before, before + 1), 0).astype(np.int64)
    place = (n - 1) * q
    if method in _DISCRETE:
        rounded = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}[method]
        return rounded(place).astype(np.int64)
    return 0.5 * (xp.floor(place) + xp.ceil(place)) if method == "midpoint" else place


def _share(xp: Any, place: Any, before: Any, method: str) -> Any:
    """How far from the element before to the next."""
    share = place - before
    if method == "averaged_inverted_cdf":
        return xp.where(share == 0, 0.5, 1.0).astype(place.dtype)
    if method == "midpoint":
        return xp.where(place % 1 == 0, 0.0, 0.5).astype(place.dtype)
    return share


def _of_lines(weights: Any, x: Any, axes: tuple[int, ...], axis: Any, method: str) -> Any:
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    weights = as_array(weights, x)
    if weights.shape != x.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if weights.shape != tuple(x.shape[d] for d in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        weights = verbs.broadcast_to(verbs.reshape(weights, (-1,)), _lines(x, axes).shape)
    else:
        weights = _lines(weights, axes)
    if x.place.kind != "traced" and bool(verbs.any(verbs.less(weights, 0))):
        raise ValueError("Weights must be non-negative.")
    return weights


def _weighted(lines: Any, weights: Any, share: Any, skip: bool) -> Any:
    """The first elements at which the weights so far come to the share."""
    order = argsort(lines, axis=-1)
    ordered = take_along_axis(lines, order, axis=-1)
    weights = cast_to(take_along_axis(weights, order, axis=-1), np.dtype(np.float64))
    missing = verbs.isnan(ordered) if ordered.dtype.kind == "f" else None
    if skip and missing is not None:
        weights = verbs.where(missing, 0.0, weights)
    reached = cumulative_sum(weights, axis=-1)
    total = reached[..., -1:]
    reached = verbs.divide(reached, total)
    if not skip and lines.place.kind != "traced" and not bool(verbs.all(verbs.isfinite(reached[..., -1]))):
        raise ValueError("Weights included NaN, inf or were all zero.")
    # Elements without weight at the beginning are passed over, also for the share 0.
    reached = verbs.where(verbs.equal(reached, 0), -1.0, reached)
    share = asarray(share, device=lines.place) if isinstance(share, np.ndarray) else share
    place = verbs.count_nonzero(verbs.less(reached[..., None, :], share[:, None]), axis=-1)
    picked = _at(ordered, place)
    if missing is not None:
        none = (verbs.all if skip else verbs.any)(missing, axis=-1, keepdims=True)
        picked = verbs.where(none, picked.dtype.type(np.nan), picked)
    return picked
