"""Elementwise functions of NumPy that are compositions: lazy, and fused with what surrounds them."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import ones_like, zeros_like
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.parts import imag_part, real_part
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained

_FLOAT64 = np.dtype(np.float64)


def inexact(x: Any) -> Any:
    """`x` as floating-point numbers."""
    return cast_to(x, _FLOAT64) if x.dtype.kind in "biu" else x


@array_function
def sinc(x: Any) -> Any:
    """sin(πx) / (πx), and 1 at 0.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of the shape and place of `x`. Floating-point and complex numbers keep their dtype, integers become
        float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sinc(mb.HostArray([0.0, 0.5])))
    [1.         0.63661977]
    """
    x = verbs.multiply(inexact(x), math.pi)
    tiny = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 1e-20
    y = verbs.where(verbs.not_equal(x, 0), x, x.dtype.type(tiny))
    return verbs.divide(verbs.sin(y), y)


@array_function
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind and order 0.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of the shape and place of `x`. Floating-point numbers keep their dtype, integers become float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.i0(mb.HostArray([0.0])))
    [1.]
    """
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values. Take mb.real(x) or mb.abs(x) first.")
    return library.call("i0", x)


@array_function
def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers, in radians or degrees.

    Parameters
    ----------
    z : array
        Complex numbers.
    deg : bool, default False
        Whether in degrees.

    Returns
    -------
    array
        Floating-point numbers of the shape of `z`: of complex numbers of the dtype of their parts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.angle(mb.HostArray([1j, -1 + 0j]), deg=True))
    [ 90. 180.]
    """
    a = verbs.atan2(verbs.imag(z), verbs.real(z)) if z.dtype.kind == "c" else verbs.atan2(0, z)
    return verbs.multiply(a, 180 / math.pi) if deg else a


@array_function
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Steps larger than half a period (or `discont`) replaced by their complement, along an axis.

    Parameters
    ----------
    p : array
        The angles.
    discont : number or None
        The least step that is replaced; None is half a period.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    period : number, default 6.283185307179586
        The period.

    Returns
    -------
    array
        Of the shape of `p`. Floating-point numbers keep their dtype; integers become float64, unless the
        period is an integer, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.unwrap(mb.HostArray([0, 1, 2, -1, 0]), period=4))
    [0 1 2 3 4]
    """
    from mirabelle.arraytypes.functions.running import running

    if not p.ndim:
        raise np.exceptions.AxisError(axis, p.ndim)
    axis = axis % p.ndim
    lead = (slice(None),) * axis
    later, earlier = verbs.getitem(p, (*lead, slice(1, None))), verbs.getitem(p, (*lead, slice(None, -1)))
    step = verbs.subtract(later, earlier)
    dtype = np.result_type(step.dtype, period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    within = verbs.add(verbs.remainder(verbs.add(step, high), period), -high)
    if ambiguous:
        upwards = verbs.logical_and(verbs.equal(within, -high), verbs.greater(step, 0))
        within = verbs.where(upwards, within.dtype.type(high), within)
    correction = verbs.subtract(within, step)
    jumps = verbs.greater_equal(verbs.abs(step), period / 2 if discont is None else discont)
    correction = verbs.where(jumps, correction, correction.dtype.type(0))
    up = verbs.copy(verbs.dense(cast_to(p, dtype)))
    if step.size:
        verbs.setitem(
            up, (*lead, slice(1, None)), verbs.add(later, running("add", correction, axis, None, None))
        )
    return up


@array_function
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """With numbers for NaN and infinities: `nan`, and the largest and smallest of the dtype unless given.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    copy : bool, default True
        Whether the result is a new array; else `x` is written to.
    nan : number, default 0.0
        What stands for NaN.
    posinf : number or None
        What stands for +infinity; None is the largest number.
    neginf : number or None
        What stands for -infinity; None is the smallest number.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory; `x` itself with `copy=False`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nan_to_num(mb.HostArray([mb.nan, 1.0, mb.inf]), posinf=9.0))
    [0. 1. 9.]
    """
    if x.dtype.kind not in "fc":
        return verbs.copy(x) if copy else x
    if x.dtype.kind == "c":
        out = verbs.copy(x) if copy else x
        for part in (real_part(out), imag_part(out)):
            verbs.assign(part, _finite(part, nan, posinf, neginf))
        return out
    cleaned = _finite(x, nan, posinf, neginf)
    return cleaned if copy else verbs.assign(x, cleaned)


def _finite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    info = np.finfo(x.dtype)
    high, low = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    number = x.dtype.type
    nan, high, low = (v if hasattr(v, "ndim") and v.ndim else number(v) for v in (nan, high, low))
    cleaned = verbs.where(verbs.isnan(x), nan, x)
    cleaned = verbs.where(verbs.equal(x, number(math.inf)), high, cleaned)
    return verbs.where(verbs.equal(x, number(-math.inf)), low, cleaned)


@array_function
def around(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Rounded to so many decimals, halves to even; negative `decimals` round before the point.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    decimals : int, default 0
        How many digits behind the point; negative ones before it.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape, dtype and place of `a`, in new memory: integers stay integers. Of truth values it is
        float16.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.around(mb.HostArray([1.25, 1.35, 11.5]), 1))
    [ 1.2  1.4 11.5]
    """
    decimals = operator.index(decimals)
    if a.dtype.kind == "b":
        a = cast_to(a, np.dtype(np.float16))
    if a.dtype.kind == "c":
        return into(out, library.call("around", a, decimals))
    if a.dtype.kind in "iu":
        if decimals >= 0:
            return into(out, verbs.positive(a))
        scaled = verbs.round(verbs.divide(a, 10.0**-decimals))
        return into(out, cast_to(verbs.multiply(scaled, 10.0**-decimals), a.dtype))
    if not decimals:
        return into(out, verbs.round(a))
    power = 10.0 ** abs(decimals)
    shift, back = (verbs.multiply, verbs.divide) if decimals > 0 else (verbs.divide, verbs.multiply)
    return into(out, back(verbs.round(shift(a, power)), power))


@array_function
def fix(x: Any, out: Any = None) -> Any:
    """The integer next to x towards 0: `mb.trunc` by another name.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory: integers stay integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fix(mb.HostArray([1.7, -1.7])))
    [ 1. -1.]
    """
    return into(out, verbs.trunc(x))


@array_function
def fabs(x: Any, out: Any = None) -> Any:
    """|x| of real numbers, as floating-point numbers.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape and place of `x`. Floating-point numbers keep their dtype; integers of 32 and 64 bits
        become float64, smaller ones what NumPy makes of them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fabs(mb.HostArray([-3, 2])))
    [3. 2.]
    """
    if x.dtype.kind == "c":
        raise TypeError("fabs() is not defined for complex numbers. Use mb.abs(x).")
    return into(out, verbs.abs(_floating(x)))


def _floating(x: Any) -> Any:
    """Integers and truth values as the floating-point numbers that NumPy's functions of such make of them."""
    if x.dtype.kind not in "biu":
        return x
    return cast_to(x, np.dtype({1: np.float16, 2: np.float32}.get(x.dtype.itemsize, np.float64)))


@array_function
def rint(x: Any, out: Any = None) -> Any:
    """The integer next to x, halves to even, as floating-point numbers (integers, too, which `mb.round` keeps).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape and place of `x`. Floating-point and complex numbers keep their dtype; integers of 32 and
        64 bits become float64, smaller ones what NumPy makes of them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.rint(mb.HostArray([0.5, 1.5, -1.7])))
    [ 0.  2. -2.]
    """
    return into(out, verbs.round(_floating(x)))


@array_function(arity=2)
def float_power(x1: Any, x2: Any) -> Any:
    """x1 ** x2 in double precision at least, so that integers may have negative powers.

    Parameters
    ----------
    x1 : array or number
        The first operand.
    x2 : array or number
        The second operand.

    Returns
    -------
    array
        Of the shape that the operands have together, and of dtype float64, or complex128 if one of them is
        complex.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.float_power(mb.HostArray([2, 4]), -1))
    [0.5  0.25]
    """
    kinds = [x.dtype if hasattr(x, "dtype") else np.result_type(x) for x in (x1, x2)]
    dtype = np.result_type(_FLOAT64, *kinds)
    wide = [cast_to(x, dtype) if isinstance(x, AbstractArray) else np.asarray(x, dtype)[()] for x in (x1, x2)]
    return verbs.pow(*wide)


@array_function
def isposinf(x: Any, out: Any = None) -> Any:
    """Is it +infinity?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of dtype bool, and of the shape and place of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.isposinf(mb.HostArray([mb.inf, -mb.inf])))
    [ True False]
    """
    _check_ordered(x, "isposinf")
    return into(out, verbs.equal(x, math.inf) if x.dtype.kind == "f" else verbs.isinf(x))


@array_function
def isneginf(x: Any, out: Any = None) -> Any:
    """Is it -infinity?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of dtype bool, and of the shape and place of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.isneginf(mb.HostArray([mb.inf, -mb.inf])))
    [False  True]
    """
    _check_ordered(x, "isneginf")
    return into(out, verbs.equal(x, -math.inf) if x.dtype.kind == "f" else verbs.isinf(x))


def _check_ordered(x: Any, name: str) -> None:
    if x.dtype.kind == "c":
        raise TypeError(
            f"{name}() is not defined for {x.dtype.name} values, because the sign of a complex is not."
        )


@array_function
def iscomplex(x: Any) -> Any:
    """Is the imaginary part not zero?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of dtype bool, and of the shape and place of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.iscomplex(mb.HostArray([1j, 1])))
    [ True False]
    """
    return verbs.not_equal(verbs.imag(x), 0) if _may_be_complex(x) else zeros_like(x, dtype=np.bool_)


@array_function
def isreal(x: Any) -> Any:
    """Is the imaginary part zero?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of dtype bool, and of the shape and place of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.isreal(mb.HostArray([1j, 1])))
    [False  True]
    """
    return verbs.equal(verbs.imag(x), 0) if _may_be_complex(x) else ones_like(x, dtype=np.bool_)


def _may_be_complex(x: Any) -> bool:
    return x.dtype.kind == "c" or x.carries_derivatives or hasattr(x, "_stored")


@explained
def iscomplexobj(x: Any) -> bool:
    """Are the elements complex numbers, by their dtype?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.iscomplexobj(mb.HostArray([1j]))
    True
    """
    return as_array(x).dtype.kind == "c"  # type: ignore[no-any-return]


@explained
def isrealobj(x: Any) -> bool:
    """Are the elements no complex numbers, by their dtype?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isrealobj(mb.HostArray([1j]))
    False
    """
    return not iscomplexobj(x)


@array_function
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real parts if all imaginary parts are close to zero (within `tol` machine epsilons), else `a`.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    tol : number, default 100
        In units of the dtype's machine epsilon, or absolute if it is below one.

    Returns
    -------
    array
        `a` itself, or its real parts: a view of its memory, of the dtype of the parts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.real_if_close(mb.HostArray([2.1 + 4e-14j]), tol=1000))
    [2.1]
    """
    if a.dtype.kind != "c":
        return a
    if tol > 1:
        tol = float(np.finfo(a.dtype).eps * tol)
    return real_part(a) if bool(verbs.all(verbs.less(verbs.abs(verbs.imag(a)), tol))) else a


# Are they the same?


@array_function(arity=2)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """|a - b| <= atol + rtol * |b|, element by element: one kernel.

    Parameters
    ----------
    a : array
        The first.
    b : array
        The second, to whose size `rtol` is relative.
    rtol : float, default 1e-05
        The relative tolerance.
    atol : float, default 1e-08
        The absolute tolerance.
    equal_nan : bool, default False
        Whether NaN equals NaN.

    Returns
    -------
    array
        Of dtype bool, and of the shape that `a` and `b` have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.isclose(mb.HostArray([1.0, 2.0]), [1.0 + 1e-9, 2.1]))
    [ True False]
    """
    if hasattr(b, "dtype"):
        target = np.result_type(b.dtype, 1.0)
        b = cast_to(b, target) if hasattr(b, "place") else target.type(b)
    elif isinstance(b, int):
        b = float(b)
    distance, size = verbs.abs(verbs.subtract(a, b)), verbs.abs(b) if hasattr(b, "place") else abs(b)
    margin = verbs.add(verbs.multiply(size, rtol), atol) if hasattr(size, "place") else size * rtol + atol
    finite = verbs.isfinite(b) if hasattr(b, "place") else np.isfinite(b)
    close = verbs.logical_or(verbs.logical_and(verbs.less_equal(distance, margin), finite), verbs.equal(a, b))
    if equal_nan:
        close = verbs.logical_or(close, verbs.logical_and(verbs.not_equal(a, a), verbs.not_equal(b, b)))
    return close


@explained
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Are all elements close, in the sense of `isclose`?

    Parameters
    ----------
    a : array
        The first.
    b : array
        The second, to whose size `rtol` is relative.
    rtol : float, default 1e-05
        The relative tolerance.
    atol : float, default 1e-08
        The absolute tolerance.
    equal_nan : bool, default False
        Whether NaN equals NaN.

    Returns
    -------
    bool
        A bool of Python's, so that the arrays are computed and read.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.allclose(mb.HostArray([1.0, 2.0]), [1.0, 2.0 + 1e-9])
    True
    """
    return bool(verbs.all(isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    first = a if hasattr(a, "place") else b if hasattr(b, "place") else None
    return as_array(a, first), as_array(b, first)


@explained
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Are the shapes and all elements equal?

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.
    equal_nan : bool, default False
        Whether NaN equals NaN.

    Returns
    -------
    bool
        A bool of Python's, so that the arrays are computed and read.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_equal(mb.HostArray([1, 2]), [1, 2]), mb.array_equal(mb.HostArray([1, 2]), [1, 2, 3])
    (True, False)
    """
    a, b = _pair(a1, a2)
    if a.shape != b.shape:
        return False
    same = verbs.equal(a, b)
    if equal_nan:
        same = verbs.logical_or(same, verbs.logical_and(verbs.not_equal(a, a), verbs.not_equal(b, b)))
    return bool(verbs.all(same))


@explained
def array_equiv(a1: Any, a2: Any) -> bool:
    """Can one be stretched to the other's shape, and are all elements equal then?

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Returns
    -------
    bool
        A bool of Python's, so that the arrays are computed and read.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_equiv(mb.HostArray([1, 2]), [[1, 2], [1, 2]])
    True
    """
    a, b = _pair(a1, a2)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return bool(verbs.all(verbs.equal(a, b)))
