"""Differences, integrals, interpolation and filters along axes.

Differences of shifted views are one kernel for the inside and one for each edge; the trapezoid rule
is one reduction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.elementary import inexact
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs

_FLOAT64 = np.dtype(np.float64)


def _at(ndim: int, axis: int, part: Any) -> tuple[Any, ...]:
    """An index of one axis. Integers stay axes of length 1, so that shapes keep."""
    part = slice(part, part + 1 or None) if isinstance(part, int) else part
    return tuple(part if d == axis else slice(None) for d in range(ndim))


@array_function
def gradient(
    f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1
) -> AbstractArray | tuple[AbstractArray, ...]:
    """The derivative along each axis (or the given ones): central differences, one-sided at the edges.

    `varargs` are the spacing: one number, or for each axis a number or the coordinates.

    Parameters
    ----------
    f : array
        Values on a grid.
    *varargs : numbers or arrays
        The distance of neighbours, or coordinates: one for all axes or one for each.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    edge_order : int, default 1
        The order of the one-sided differences: 1 or 2.

    Returns
    -------
    array or tuple of array
        Of the shape of `f`, integers as float64: one array for one axis, a tuple of one for each axis for
        several.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.gradient(mb.HostArray([0.0, 1.0, 4.0, 9.0])))
    [1. 2. 4. 5.]
    """
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(range(f.ndim)) if axis is None else tuple(normal_axes(a, f.ndim)[0] for a in given)
    spacing = _spacing(f, axes, varargs)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    f = inexact(f)
    out = []
    for d, h in zip(axes, spacing, strict=True):
        if f.shape[d] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
                f"elements are required: axis {d} has {f.shape[d]}."
            )
        out.append(_derivative(f, d, h, edge_order))
    return out[0] if len(out) == 1 else tuple(out)


def _spacing(f: Any, axes: tuple[int, ...], varargs: tuple[Any, ...]) -> list[Any]:
    """For each axis the distance between neighbours: a number, or an array of all distances."""
    if not varargs:
        return [1.0] * len(axes)
    values = [_number_or_array(v, f) for v in varargs]
    if len(values) == 1 and not getattr(values[0], "ndim", 0):
        return values * len(axes)
    if len(values) != len(axes):
        raise TypeError("invalid number of arguments: give one spacing, or one for each axis.")
    for i, h in enumerate(values):
        if not isinstance(h, AbstractArray) or (h.carries_derivatives and not h.ndim):
            continue
        if h.ndim != 1:
            raise ValueError("distances must be either scalars or 1d")
        if h.shape[0] != f.shape[axes[i]]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        h = inexact(h) if h.dtype.kind in "iu" else h
        steps = verbs.subtract(verbs.getitem(h, slice(1, None)), verbs.getitem(h, slice(None, -1)))
        first = verbs.getitem(steps, slice(0, 1))
        uniform = steps.size and bool(verbs.all(verbs.equal(steps, first)))
        values[i] = verbs.reshape(first, ()) if uniform else computed(steps)
    return values


def _number_or_array(v: Any, like: Any) -> Any:
    v = as_array(v, like) if not isinstance(v, (int, float, complex, np.generic)) else v
    if not isinstance(v, AbstractArray) or v.ndim or v.carries_derivatives:
        return v
    return verbs.to_numpy(v)[()]


def _derivative(f: Any, axis: int, h: Any, edge_order: int) -> Any:
    def shown(part: Any) -> Any:
        return verbs.getitem(f, _at(f.ndim, axis, part))

    def along(values: Any) -> Any:
        return verbs.reshape(values, tuple(-1 if d == axis else 1 for d in range(f.ndim)))

    def step(i: int) -> Any:
        return along(verbs.getitem(h, slice(i, i + 1 or None))) if uneven else h

    uneven = isinstance(h, AbstractArray) and h.ndim > 0
    before, inside, after = shown(slice(None, -2)), shown(slice(1, -1)), shown(slice(2, None))
    if uneven:
        h1, h2 = verbs.getitem(h, slice(None, -1)), verbs.getitem(h, slice(1, None))
        both = verbs.add(h1, h2)
        a = along(verbs.divide(verbs.negative(h2), verbs.multiply(h1, both)))
        b = along(verbs.divide(verbs.subtract(h2, h1), verbs.multiply(h1, h2)))
        c = along(verbs.divide(h1, verbs.multiply(h2, both)))
        middle = a * before + b * inside + c * after
    else:
        middle = (after - before) / (2.0 * h)
    out = verbs.similar(middle, dtype=f.dtype, shape=f.shape)
    verbs.setitem(out, _at(f.ndim, axis, slice(1, -1)), middle)
    if edge_order == 1:
        verbs.setitem(out, _at(f.ndim, axis, 0), (shown(1) - shown(0)) / step(0))
        verbs.setitem(out, _at(f.ndim, axis, -1), (shown(-1) - shown(-2)) / step(-1))
        return out
    if uneven:
        h1, h2 = step(0), step(1)
        first = -(2.0 * h1 + h2) / (h1 * (h1 + h2)), (h1 + h2) / (h1 * h2), -h1 / (h2 * (h1 + h2))
        h1, h2 = step(-2), step(-1)
        last = h2 / (h1 * (h1 + h2)), -(h2 + h1) / (h1 * h2), (2.0 * h2 + h1) / (h2 * (h1 + h2))
    else:
        first = -1.5 / h, 2.0 / h, -0.5 / h
        last = 0.5 / h, -2.0 / h, 1.5 / h
    for edge, (a, b, c), (i, j, k) in ((0, first, (0, 1, 2)), (-1, last, (-3, -2, -1))):
        verbs.setitem(out, _at(f.ndim, axis, edge), a * shown(i) + b * shown(j) + c * shown(k))
    return out


@array_function
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoid rule, over the points `x` or steps of `dx`.

    Parameters
    ----------
    y : array
        The values.
    x : array or None
        The points.
    dx : number, default 1.0
        Their distance, where `x` is None.
    axis : int, default -1
        Along which axis; negative ones count from the last.

    Returns
    -------
    array
        Of the shape of `y` without the axis, of no dimensions for a vector; integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.trapezoid(mb.HostArray([1.0, 2.0, 3.0])))
    4.0
    """
    if not y.ndim:
        raise np.exceptions.AxisError(axis, y.ndim)
    given, (axis,) = axis, normal_axes(axis, y.ndim)
    if x is not None:
        x = as_array(x, y)
        if x.ndim == 1:
            dx = _differences(x, 0)
            dx = verbs.reshape(dx, tuple(-1 if d == axis else 1 for d in range(y.ndim)))
        else:
            dx = _differences(x, given % x.ndim)  # (an axis of `x`, which may have others)
    upper = verbs.getitem(y, _at(y.ndim, axis, slice(1, None)))
    lower = verbs.getitem(y, _at(y.ndim, axis, slice(None, -1)))
    return verbs.sum(verbs.divide(verbs.multiply(dx, verbs.add(upper, lower)), 2.0), axis=given)


def _differences(x: Any, axis: int) -> Any:
    """The differences of neighbours along an axis, as np.diff has them."""
    later = verbs.getitem(x, _at(x.ndim, axis, slice(1, None)))
    earlier = verbs.getitem(x, _at(x.ndim, axis, slice(None, -1)))
    return verbs.not_equal(later, earlier) if x.dtype.kind == "b" else verbs.subtract(later, earlier)


@array_function
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours of all elements in a row, between `to_begin` and `to_end`.

    Parameters
    ----------
    ary : array
        An array; a list, a number or a NumPy array becomes one.
    to_end : array, number or None
        What comes behind.
    to_begin : array, number or None
        What comes before.

    Returns
    -------
    array
        Of one dimension, and of the dtype of `ary`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ediff1d(mb.HostArray([1, 2, 4]), to_end=99))
    [ 1  2 99]
    """
    flat = verbs.reshape(ary, (-1,))
    steps = verbs.subtract(verbs.getitem(flat, slice(1, None)), verbs.getitem(flat, slice(None, -1)))
    if to_end is None and to_begin is None:
        return steps
    parts = []
    for name, extra in (("to_begin", to_begin), ("", steps), ("to_end", to_end)):
        if extra is None:
            continue
        extra = as_array(extra, ary)
        if name and not np.can_cast(extra.dtype, ary.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule: "
                f"{extra.dtype.name} does not fit {ary.dtype.name}."
            )
        parts.append(cast_to(verbs.reshape(extra, (-1,)), ary.dtype))
    return concatenate(parts)


@array_function
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through the points (xp, fp), at `x`.

    Parameters
    ----------
    x : array
        Where.
    xp : array
        The positions of the points, ascending.
    fp : array
        The values there.
    left : number or None
        The value before the first point; None is its value.
    right : number or None
        The value behind the last point; None is its value.
    period : number or None
        The period of the positions.

    Returns
    -------
    array
        Of the shape of `x`, and of dtype float64, or complex128 if `fp` is complex.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.interp(mb.HostArray([0.5, 2.0]), [0.0, 1.0], [10.0, 20.0]))
    [15. 20.]
    """
    return library.call("interp", x, as_array(xp, x), as_array(fp, x), left=left, right=right, period=period)


@array_function(arity=2)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The discrete convolution of two vectors.

    Parameters
    ----------
    a : array
        The first vector.
    v : array
        The second vector.
    mode : str, default 'full'
        What is kept of the result: "full", "same" or "valid".

    Returns
    -------
    array
        Of one dimension and of the dtype that both have together: M + N - 1 elements for "full", max(M, N)
        for "same", |M - N| + 1 for "valid".

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.convolve(mb.HostArray([1, 2, 3]), mb.HostArray([0, 1])))
    [0 1 2 3]
    """
    v = as_array(v, a)
    _check_vectors("convolve", a, v)
    return library.call("convolve", a, v, mode=mode)


@array_function(arity=2)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors.

    Parameters
    ----------
    a : array
        The first vector.
    v : array
        The second vector.
    mode : str, default 'valid'
        What is kept of the result: "full", "same" or "valid".

    Returns
    -------
    array
        Of one dimension and of the dtype that both have together: M + N - 1 elements for "full", max(M, N)
        for "same", |M - N| + 1 for "valid".

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.correlate(mb.HostArray([1, 2, 3]), mb.HostArray([0, 1]), "same"))
    [1 2 3]
    """
    v = as_array(v, a)
    _check_vectors("correlate", a, v)
    return library.call("correlate", a, v, mode=mode)


def _check_vectors(function: str, a: Any, v: Any) -> None:
    """Are they vectors (or numbers) that have elements?"""
    for name, x in (("a", a), ("v", v)):
        shape = getattr(x, "shape", ())
        if len(shape) > 1:
            raise ValueError(
                f"{function} takes two vectors, and {name} has shape {shape}. Flatten it with "
                f"`mb.ravel({name})`, or take its rows one by one."
            )
        if shape == (0,):
            raise ValueError(
                f"{function}: {name} cannot be empty. Give it an element, such as `mb.zeros(1)`, or leave the "
                "call out."
            )
