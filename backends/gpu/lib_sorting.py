"""Sorting and searching on a card."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_order import common_ordinals, in_order, nonzero_elements, ordinals, places
from mirabelle.backends.gpu.library import routine


def flattened(x: Any, axis: Any) -> tuple[Any, int]:
    """An array and an axis from 0 on; all elements in a row where the axis is None."""
    if axis is None:
        return x.reshape(-1), 0
    axis = operator.index(axis)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    return x, axis % x.ndim


@routine("sort")
def sort(xp: Any, x: Any, *, axis: Any = -1, kind: Any = None) -> Any:
    """Stable, whatever is asked for."""
    x, axis = flattened(x, axis)
    return in_order(xp, x, axis) if x.size else x.copy()


@routine("argsort")
def argsort(xp: Any, x: Any, *, axis: Any = -1, kind: Any = None) -> Any:
    x, axis = flattened(x, axis)
    return places(xp, x, axis) if x.size else xp.empty(x.shape, np.int64)


def _checked_kth(kth: Any, n: int) -> None:
    given = kth.tolist() if hasattr(kth, "tolist") else kth
    for k in given if isinstance(given, (list, tuple)) else [given]:
        k = operator.index(k)
        if not -n <= k < n:
            raise ValueError(f"kth(={k if k >= 0 else k + n}) out of bounds ({n})")


@routine("partition")
def _(xp: Any, x: Any, kth: Any, *, axis: Any = -1, kind: Any = None) -> Any:
    """A sorted array is partitioned everywhere; a card sorts as quickly as it would select."""
    x, axis = flattened(x, axis)
    _checked_kth(kth, x.shape[axis])
    return sort(xp, x, axis=axis)


@routine("argpartition")
def _(xp: Any, x: Any, kth: Any, *, axis: Any = -1, kind: Any = None) -> Any:
    x, axis = flattened(x, axis)
    _checked_kth(kth, x.shape[axis])
    return argsort(xp, x, axis=axis)


@routine("lexsort")
def _(xp: Any, keys: Any, *, axis: int = -1) -> Any:
    """By the last key first: stable sorts by one key after the other."""
    keys = list(keys)
    if len({k.shape for k in keys}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not keys[0].ndim:
        return xp.zeros((), np.int64)
    order = argsort(xp, keys[0], axis=axis)
    for key in keys[1:]:
        step = argsort(xp, xp.take_along_axis(key, order, axis=axis), axis=axis)
        order = xp.take_along_axis(order, step, axis=axis)
    return order


def lexicographic(xp: Any, *keys: Any) -> Any:
    """The order of vectors by several keys, the first one first."""
    order = argsort(xp, keys[-1])
    for key in keys[-2::-1]:
        order = order[argsort(xp, key[order])]
    return order


@routine("searchsorted")
def searchsorted(xp: Any, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Both in their common dtype."""
    if not isinstance(v, xp.ndarray):
        v = xp.asarray(v, dtype=np.result_type(a.dtype, v))
    dtype = np.result_type(a.dtype, v.dtype)
    if sorter is not None:
        a = a[sorter]
    if not a.size or not v.size:
        return xp.zeros(v.shape, np.int64)
    return xp.searchsorted(*common_ordinals(xp, *(x.astype(dtype, copy=False) for x in (a, v))), side=side)


@routine("nonzero")
def nonzero(xp: Any, x: Any) -> Any:
    if not x.size:
        return tuple(xp.empty(0, np.int64) for _ in range(x.ndim))
    return xp.nonzero(nonzero_elements(xp, x))


@routine("argmax")
def _(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _position(xp, x, axis, keepdims, False)


@routine("argmin")
def _(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _position(xp, x, axis, keepdims, True)


def _position(xp: Any, x: Any, axis: Any, keepdims: bool, least: bool) -> Any:
    """Where the largest is, or the least: the first of equal ones, and NaN before all."""
    if x.dtype.kind == "f":
        x, least = ordinals(xp, x, falling=least), False
    elif x.dtype.kind == "c":
        (key,) = common_ordinals(xp, x)
        x, least = xp.where(xp.isnan(x), np.iinfo(key.dtype).max, -key if least else key), False
    found = (xp.argmin if least else xp.argmax)(x, axis=axis)
    if not keepdims:
        return found
    return found.reshape((1,) * x.ndim) if axis is None else xp.expand_dims(found, axis)
