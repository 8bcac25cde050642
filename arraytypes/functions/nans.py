"""Functions that pass over NaN: what is left of the elements, reduced in the same kernel.

A slice of nothing but NaN gives NaN, without a warning: values wait to be computed here, and there
is no line to warn at. (`nanargmin` and `nanargmax` have no such answer, and raise.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions import reducing
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.functions.reducing import _given, mask_like, squared_size
from mirabelle.arraytypes.functions.running import running
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


def _without_nan(x: Any, value: Any) -> Any:
    """`x` with `value` where it is NaN."""
    return verbs.where(verbs.isnan(x), x.dtype.type(value), x) if x.dtype.kind in "fc" else x


def _numbers(x: Any, where: Any) -> Any:
    """Where `x` is a number that counts."""
    held = verbs.logical_not(verbs.isnan(x))
    return held if where is True or not _given(where) else verbs.logical_and(held, mask_like(x, where))


@array_function
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """The sum of the elements that are not NaN, in one pass.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; truth values and integers add up as int64 or
        uint64, other dtypes stay. The sum of nothing is 0.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nansum(mb.HostArray([1.0, mb.nan, 3.0])))
    4.0
    """
    return reducing.sum(_without_nan(a, 0), axis, dtype, out, keepdims, initial, where)


@array_function
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """The product of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; truth values and integers multiply as int64
        or uint64, other dtypes stay. The product of nothing is 1.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanprod(mb.HostArray([2.0, mb.nan, 3.0])))
    6.0
    """
    return reducing.prod(_without_nan(a, 1), axis, dtype, out, keepdims, initial, where)


def _extreme(name: str, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    find = reducing.min if name == "min" else reducing.max
    if a.dtype.kind not in "fc":
        return find(a, axis, out, keepdims, initial, where)
    if a.dtype.kind == "c":
        if _given(initial) or not (where is True or not _given(where)):
            raise TypeError(f"nan{name} of complex numbers takes neither initial= nor where=.")
        return into(out, library.call(f"nan{name}", a, axis=axis, keepdims=bool(keepdims)))
    plain = not _given(initial) and (where is True or not _given(where))
    if plain and isinstance(a, HostArray) and type(a._node) is Leaf and a.size:
        # In memory, and read by nothing else: NumPy's loop passes over NaN as it goes.
        return into(out, library.call(f"f{name}.reduce", a, axis=axis, keepdims=bool(keepdims)))
    worst = a.dtype.type(np.inf if name == "min" else -np.inf)
    found = find(_without_nan(a, worst), axis, None, keepdims, initial, where)
    numbers = reducing.any(_numbers(a, where), axis, None, keepdims)
    if _given(initial):
        return into(out, found)
    return into(out, verbs.where(numbers, found, a.dtype.type(np.nan)))


@array_function
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """The smallest element that is not NaN; NaN where there is none.

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
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a`. Where there are no
        elements at all, it is an error, unless `initial` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanmin(mb.HostArray([2.0, mb.nan, 3.0])))
    2.0
    """
    return _extreme("min", a, axis, out, keepdims, initial, where)


@array_function
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """The largest element that is not NaN; NaN where there is none.

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
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a`. Where there are no
        elements at all, it is an error, unless `initial` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanmax(mb.HostArray([2.0, mb.nan, 3.0])))
    3.0
    """
    return _extreme("max", a, axis, out, keepdims, initial, where)


@array_function
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """The mean of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a` if it is floating-point
        or complex, else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanmean(mb.HostArray([[1.0, mb.nan], [3.0, mb.nan]]), axis=0))
    [ 2. nan]
    """
    if a.dtype.kind not in "fc":
        return reducing.mean(a, axis, dtype, out, keepdims, where=where)
    if _given(dtype):
        dtype = reducing.not_whole("nanmean", dtype)
    return reducing.mean(a, axis, dtype, out, keepdims, where=_numbers(a, where))


@array_function
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The variance of the elements that are not NaN; NaN where there are not more than `ddof`.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    ddof : int or None, default 0
        What is subtracted from the number of elements; NumPy's name for `correction`.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    where : array of bool, default True
        Which elements count; all, if it is True.
    mean : array or None
        The mean, if it is known already.
    correction : float
        What is subtracted from the number of elements before it divides: 1 for a sample.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a` if it is floating-point
        (of its parts, if complex), else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanvar(mb.HostArray([1.0, mb.nan, 3.0])))
    1.0
    """
    if a.dtype.kind not in "fc":
        return reducing.var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    ddof = correction if _given(correction) else ddof
    wide = cast_to(a, reducing.not_whole("nanvar", dtype)) if _given(dtype) else a
    wide = cast_to(wide, np.dtype(np.float32)) if wide.dtype == np.float16 else wide
    held = _numbers(wide, where)
    zero, n = wide.dtype.type(0), reducing._held(held, wide, axis, True, wide.dtype)
    if _given(mean):
        centre = mean
    else:
        total = verbs.sum(verbs.where(held, wide, zero), axis=axis, keepdims=True)
        centre = verbs.divide(total, n)
    squares = squared_size(verbs.where(held, verbs.subtract(wide, centre), zero))
    total = verbs.sum(squares, axis=axis, keepdims=bool(keepdims) if _given(keepdims) else False)
    n = verbs.subtract(verbs.reshape(n, total.shape), n.dtype.type(ddof))
    n = verbs.where(verbs.greater(n, 0), n, n.dtype.type(np.nan))
    result = verbs.divide(total, n)
    return into(out, cast_to(result, a.dtype) if a.dtype == np.float16 and not _given(dtype) else result)


@array_function
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    ddof : int or None, default 0
        What is subtracted from the number of elements; NumPy's name for `correction`.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    where : array of bool, default True
        Which elements count; all, if it is True.
    mean : array or None
        The mean, if it is known already.
    correction : float
        What is subtracted from the number of elements before it divides: 1 for a sample.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `a` if it is floating-point
        (of its parts, if complex), else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanstd(mb.HostArray([1.0, mb.nan, 3.0])))
    1.0
    """
    spread = nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return into(out, verbs.sqrt(spread))


def _position(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    keepdims = bool(keepdims) if _given(keepdims) else False
    if a.dtype.kind in "fc":
        if a.size and bool(verbs.any(verbs.all(verbs.isnan(a), axis=axis))):
            which, worst = ("largest", "-mb.inf") if name == "argmax" else ("smallest", "mb.inf")
            along = "" if axis is None else f", axis={axis}"
            raise ValueError(
                f"All-NaN slice encountered: nan{name} finds no {which} number in it. Leave such slices out, "
                f"or let NaN count as a number: `mb.{name}(mb.where(mb.isnan(x), {worst}, x){along})`."
            )
        a = _without_nan(a, np.inf if name == "argmin" else -np.inf)
    return into(out, library.call(name, a, axis=axis, keepdims=keepdims))


@array_function
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the smallest element is that is not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of dtype int64, without the axis; of no dimensions if `axis` is None. Where all are NaN, it is an
        error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanargmin(mb.HostArray([mb.nan, 3.0, 2.0])))
    2
    """
    return _position("argmin", a, axis, out, keepdims)


@array_function
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the largest element is that is not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    out : array or None
        Where the result is written; it is returned, too.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of dtype int64, without the axis; of no dimensions if `axis` is None. Where all are NaN, it is an
        error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nanargmax(mb.HostArray([mb.nan, 3.0, 2.0])))
    1
    """
    return _position("argmax", a, axis, out, keepdims)


@array_function
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running sum of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape of `a`, or in one row if `axis` is None. Truth values and integers become int64 or
        uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nancumsum(mb.HostArray([1.0, mb.nan, 3.0])))
    [1. 1. 4.]
    """
    return running("add", _without_nan(a, 0), axis, dtype, out)


@array_function
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running product of the elements that are not NaN.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape of `a`, or in one row if `axis` is None. Truth values and integers become int64 or
        uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nancumprod(mb.HostArray([2.0, mb.nan, 3.0])))
    [2. 2. 6.]
    """
    return running("multiply", _without_nan(a, 1), axis, dtype, out)
