"""Reductions as NumPy spells them: with `where=`, `initial=`, `dtype=` and `out=`.

The array API's forms (`mb.sum(x, axis=0)`) are verbs. These are what `np.sum(x, ...)` and
`x.sum(...)` come to: the same reductions of a tree that has the mask in it, one pass each.

>>> import mirabelle as mb, numpy as np
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> print(np.sum(x, where=x > 1, initial=10.0), x.max(where=x < 3, initial=0.0))
15.0 2.0
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import full
from mirabelle.arraytypes.define import array_function, as_array, as_selection
from mirabelle.arraytypes.elementwise import cast_to, leaf_family
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import REDUCTIONS, Reduction, _summed, normal_axes
from mirabelle.arraytypes.specialvalues import from_parts
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.tree import broadcast_shapes

_FLOAT64 = np.dtype(np.float64)
_COUNTED = np.dtype(np.int64)


def _given(value: Any) -> bool:
    """Was an option given? (NumPy marks those that were not with an object of its own.)"""
    return value is not None and value is not np._NoValue


def _is_all(where: Any) -> bool:
    return where is True or not _given(where)


def _flag(keepdims: Any) -> bool:
    return bool(keepdims) if _given(keepdims) else False


def mask_like(x: Any, where: Any) -> Any:
    """A `where=` as a mask of the shape of `x`."""
    mask = as_selection(where, x)
    if mask.dtype != np.bool_:
        raise TypeError(
            f"where= is a mask, of dtype bool, and this one is {mask.dtype.name}. Compare: `where=(x != 0)`."
        )
    if broadcast_shapes([mask.shape, x.shape], "where=") != x.shape:
        raise ValueError(f"where= of shape {mask.shape} does not fit an array of shape {x.shape}.")
    return mask


@functools.partial(generic, arity=1)
def of_all(x: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """What a reduction with `initial` is of, with its axes and mask: of what a mask picks all there is."""


@of_all.method
def _(x: AbstractArray, axis: Any, keepdims: bool, where: Any) -> Any:
    return x, axis, where


def _reduced(name: str, x: Any, axis: Any, keepdims: Any, initial: Any, where: Any, dtype: Any = None) -> Any:
    """One of the named reductions, of what the mask leaves, combined with `initial`."""
    x = as_array(x)
    reduction: Reduction = REDUCTIONS[name]
    dtype = x.dtype if dtype is None else dtype
    ordering = name in ("min", "max")
    if ordering and _given(initial):
        x, axis, where = of_all(x, axis, _flag(keepdims), where)
    if not _is_all(where):
        if ordering and not _given(initial):
            raise ValueError(
                f"reduction operation '{name}imum' does not have an identity, so to use a where mask one "
                f"has to specify 'initial': np.{name}(x, where=mask, initial=...)."
            )
        # (-0.0 added to anything changes nothing, not even the sign of -0.0.)
        neutral = initial if ordering else reduction.neutral(dtype)
        if _begins_below(name, dtype, initial):
            neutral = -neutral
        x = verbs.where(mask_like(x, where), cast_to(x, dtype), dtype.type(neutral))
    axes = normal_axes(axis, x.ndim)
    if ordering and _given(initial) and 0 in [x.shape[a] for a in axes]:
        shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape) if _flag(keepdims) or d not in axes)
        return full(shape, initial, dtype=dtype, device=leaf_family(type(x)))
    reduced = functools.partial(verbs.reduce_, axis=axis, keepdims=_flag(keepdims))
    out = reduced(x, reduction, dtype=dtype)
    if _begins_below(name, dtype, initial):
        return _from_minus_zero(cast_to(x, dtype), out, dtype.type(initial), reduced)
    if _given(initial):
        combine = {"sum": verbs.add, "prod": verbs.multiply, "min": verbs.minimum, "max": verbs.maximum}
        out = combine[name](out, dtype.type(initial))
    return out


def _begins_below(name: str, dtype: np.dtype, initial: Any) -> bool:
    """Whether a sum begins with -0.0, as a number or as a part of one: such a sum may be -0.0 itself."""
    if name != "sum" or dtype.kind not in "fc" or not _given(initial):
        return False
    first = dtype.type(initial)
    return _is_minus_zero(first.real) or _is_minus_zero(first.imag)


def _is_minus_zero(number: Any) -> bool:
    return bool(number == 0 and np.signbit(number))


def _from_minus_zero(x: Any, total: Any, initial: Any, reduced: Any) -> Any:
    """A sum that begins with -0.0 and not, as sums do, with 0.0: -0.0 where nothing else is added."""
    if x.dtype.kind == "c":
        real = _from_minus_zero(verbs.real(x), verbs.real(total), initial.real, reduced)
        return from_parts(real, _from_minus_zero(verbs.imag(x), verbs.imag(total), initial.imag, reduced))
    added = verbs.add(total, initial)
    if not _is_minus_zero(initial) or hasattr(x, "_stored"):  # (what a structured array does not store is 0.0)
        return added
    nothing = reduced(verbs.logical_and(verbs.signbit(x), verbs.equal(x, 0)), REDUCTIONS["all"])
    # (By way of a sum, and no number, so that there is a derivative.)
    return verbs.where(nothing, verbs.negative(reduced(verbs.negative(x), REDUCTIONS["sum"])), added)


def _folded(
    verb: Any, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any, out: Any, dtype: Any = None
) -> Any:
    """A sum, a product, the least or the largest."""
    if isinstance(a, AbstractArray):
        if initial is out is dtype is None and where is True and (keepdims is False or keepdims is True):
            return verb(a, axis=axis, keepdims=keepdims)
        if _is_all(where) and not (_given(initial) or _given(out) or _given(dtype)):
            return verb(a, axis=axis, keepdims=_flag(keepdims))
    if verb is verbs.sum or verb is verbs.prod:
        dtype = checked_dtype(dtype) if _given(dtype) else _summed(as_array(a).dtype)
    return into(out, _reduced(verb.__name__, a, axis, keepdims, initial, where, dtype))


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """As np.sum."""
    return _folded(verbs.sum, a, axis, keepdims, initial, where, out, dtype)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """As np.prod."""
    return _folded(verbs.prod, a, axis, keepdims, initial, where, out, dtype)


def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """As np.min."""
    return _folded(verbs.min, a, axis, keepdims, initial, where, out)


def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """As np.max."""
    return _folded(verbs.max, a, axis, keepdims, initial, where, out)


amin, amax = min, max


def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """As np.any."""
    return into(out, _reduced("any", a, axis, keepdims, None, where, np.dtype(bool)), "unsafe")


def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """As np.all."""
    return into(out, _reduced("all", a, axis, keepdims, None, where, np.dtype(bool)), "unsafe")


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """As np.mean."""
    x = as_array(a)
    if _given(dtype):
        x = cast_to(x, dtype := checked_dtype(dtype))
        if dtype.kind in "biu":  # as NumPy: the sum in that dtype, and the quotient cut to it
            total = _reduced("sum", x, axis, keepdims, None, where, dtype if dtype.kind != "b" else _COUNTED)
            n = _held(mask_like(x, True if _is_all(where) else where), x, axis, keepdims, _FLOAT64)
            return into(out, cast_to(verbs.divide(total, n), dtype))
    if _is_all(where):
        return into(out, verbs.mean(x, axis=axis, keepdims=_flag(keepdims)))
    mask = mask_like(x, where)
    total, kind = _inexact(x), _result_kind(x)
    total = verbs.sum(verbs.where(mask, total, total.dtype.type(0)), axis=axis, keepdims=_flag(keepdims))
    return into(out, cast_to(verbs.divide(total, _held(mask, x, axis, keepdims, total.dtype)), kind))


def _inexact(x: Any) -> Any:
    """`x` in the dtype its sums are computed in: half precision would overflow."""
    if x.dtype.kind in "biu":
        return cast_to(x, _FLOAT64)
    return cast_to(x, np.dtype(np.float32)) if x.dtype == np.float16 else x


def _result_kind(x: Any) -> np.dtype:
    return _FLOAT64 if x.dtype.kind in "biu" else x.dtype


def _held(mask: Any, x: Any, axis: Any, keepdims: Any, total: np.dtype) -> Any:
    """How many elements the mask holds along the axes, as numbers to divide sums of dtype `total` by."""
    mask = verbs.broadcast_to(mask, x.shape)
    n = verbs.sum(mask, axis=axis, keepdims=_flag(keepdims))
    part = total.itemsize // (2 if total.kind == "c" else 1)
    return cast_to(n, np.dtype(f"f{part}"))


def not_whole(name: str, dtype: Any) -> np.dtype:
    """A dtype to compute in that is none of integers."""
    dtype = checked_dtype(dtype)
    if dtype.kind in "biu":
        raise TypeError(
            f"{name}: computed in {dtype.name}, each step would be cut to whole numbers. Leave dtype= away, "
            f"and convert the result: `mb.{name}(x).astype(mb.{dtype.name})`."
        )
    return dtype


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """As np.var."""
    x = as_array(a)
    if _given(correction):
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if _given(dtype):
        x = cast_to(x, not_whole("var", dtype))
    if _is_all(where) and not _given(mean):
        return into(out, verbs.var(x, axis=axis, correction=ddof, keepdims=_flag(keepdims)))
    wide, kind = _inexact(x), _result_kind(x)
    mask = verbs.broadcast_to(mask_like(x, True if _is_all(where) else where), x.shape)
    if _given(mean):
        centre = as_array(mean, x)
    else:
        total = verbs.sum(verbs.where(mask, wide, wide.dtype.type(0)), axis=axis, keepdims=True)
        centre = verbs.divide(total, _held(mask, x, axis, True, total.dtype))
    squares = squared_size(verbs.subtract(wide, centre))
    squares = verbs.where(mask, squares, squares.dtype.type(0))
    total = verbs.sum(squares, axis=axis, keepdims=_flag(keepdims))
    n = verbs.subtract(_held(mask, x, axis, keepdims, total.dtype), total.dtype.type(ddof))
    result = verbs.divide(total, verbs.maximum(n, n.dtype.type(0)))
    return into(out, cast_to(result, np.empty(0, kind).real.dtype))


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """As np.std."""
    spread = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return into(out, verbs.sqrt(spread))


def squared_size(x: Any) -> Any:
    """|x|² of each element, in the real dtype."""
    if x.dtype.kind == "c":
        return verbs.add(verbs.square(verbs.real(x)), verbs.square(verbs.imag(x)))
    return verbs.square(x)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """As np.count_nonzero."""
    return verbs.count_nonzero(as_array(a), axis=axis, keepdims=_flag(keepdims))


@array_function
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The largest element minus the smallest: both found in one pass.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ptp(mb.HostArray([[1, 5], [7, 3]]), axis=1))
    [4 4]
    """
    keep = _flag(keepdims)
    largest, smallest = verbs.max(a, axis=axis, keepdims=keep), verbs.min(a, axis=axis, keepdims=keep)
    return into(out, verbs.subtract(largest, smallest))


@array_function
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> AbstractArray | tuple[AbstractArray, AbstractArray]:
    """The weighted mean; with `returned`, also the sum of the weights.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    weights : array or None
        How much each element counts; None is one for all.
    returned : bool, default False
        Whether the sum of the weights is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array or tuple of array
        Of the axes that are left, of no dimensions if none is; floating-point or complex. With `returned`,
        a tuple: the means, and the sums of the weights in the same shape.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.average(mb.HostArray([1.0, 2.0, 4.0]), weights=[1, 1, 2]))
    2.75
    """
    x, keep = a, _flag(keepdims)
    if weights is None:
        centre = verbs.mean(x, axis=axis, keepdims=keep)
        if not returned:
            return centre
        each = x.size / centre.size if centre.size else math.nan
        return centre, verbs.assign(verbs.similar(centre), each)
    w = _aligned_weights(x, as_array(weights, x), axis)
    kinds = (x.dtype, w.dtype, _FLOAT64) if x.dtype.kind in "biu" else (x.dtype, w.dtype)
    dtype = np.result_type(*kinds)
    scale = verbs.sum(w, axis=axis, dtype=dtype, keepdims=keep)
    if bool(verbs.any(verbs.equal(scale, 0.0))):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    weighted = verbs.multiply(cast_to(x, dtype), cast_to(w, dtype))
    centre = verbs.divide(verbs.sum(weighted, axis=axis, keepdims=keep), scale)
    if not returned:
        return centre
    return centre, verbs.copy(verbs.broadcast_to(scale, centre.shape))


def _aligned_weights(x: Any, w: Any, axis: Any) -> Any:
    """Weights of the shape of `x`, or of its axes, stretched along the others."""
    if w.shape == x.shape:
        return w
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normal_axes(one, x.ndim)[0] for one in given]
    if w.shape != tuple(x.shape[one] for one in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis: they have "
            f"{w.shape} and {tuple(x.shape[one] for one in axes)}."
        )
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    w = verbs.permute_dims(w, tuple(order))
    shape = tuple(n if d in axes else 1 for d, n in enumerate(x.shape))
    return verbs.broadcast_to(verbs.reshape(w, shape), x.shape)
