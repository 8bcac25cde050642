"""Elementwise functions and ranges that are routines: special functions, rounding, interpolation."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_sorting import argsort, searchsorted
from mirabelle.backends.gpu.library import number, routine


@routine("i0")
def _(xp: Any, x: Any) -> Any:
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    return xp.i0(x)


@routine("around")
def _(xp: Any, x: Any, decimals: int = 0) -> Any:
    """The parts of complex numbers, rounded as NumPy does: scaled, rounded, scaled back."""
    if x.dtype.kind == "c":
        out = xp.empty(x.shape, x.dtype)
        out.real = _rounded(xp, x.real, decimals)
        out.imag = _rounded(xp, x.imag, decimals)
        return out
    return _rounded(xp, x, decimals)


def _rounded(xp: Any, x: Any, decimals: int) -> Any:
    if not decimals:
        return xp.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale


@routine("linspace")
def _(
    xp: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """NumPy's formula, for ends that may be arrays."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = (x if isinstance(x, xp.ndarray) else xp.asarray(x) for x in (start, stop))
    wide = np.result_type(start.dtype, stop.dtype, 1.0)
    start, stop = start.astype(wide), stop.astype(wide)
    wanted = wide if dtype is None else np.dtype(dtype)
    steps = num - 1 if endpoint else num
    extent = stop - start
    count = xp.arange(num, dtype=wide if wide.kind == "f" else np.float64)
    count = count.reshape((num,) + (1,) * extent.ndim)
    if steps > 0:
        step = extent / steps
        # Steps that vanish are formed after multiplying, so that subnormal ends are met.
        out = xp.where(step == 0, count / steps * extent, count * step) + start
    else:
        step = xp.full(extent.shape, np.nan, wide)
        out = count * extent + start
    if endpoint and num > 1:
        out[-1, ...] = stop
    out = xp.moveaxis(out, 0, axis) if axis else out
    if wanted.kind in "iu":
        out = xp.floor(out)
    out = out.astype(wanted, copy=False)
    return (out, step) if retstep else out


@routine("interp")
def _(
    xp: Any, x: Any, places: Any, values: Any, *, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """NumPy's rule, also at NaN and infinity: from the left point, else from the right one."""
    kind = np.dtype(np.complex128 if values.dtype.kind == "c" else np.float64)
    for given in (x, places):
        if given.dtype.kind == "c":
            raise TypeError(
                f"Cannot cast array data from {given.dtype!r} to {np.dtype(float)!r}: interp interpolates "
                "between real places. Take mb.real(x)."
            )
    x, places, values = x.astype(np.float64), places.astype(np.float64), values.astype(kind)
    if places.ndim != 1 or values.ndim != 1 or places.size != values.size:
        raise ValueError("fp and xp are not of the same length.")
    if not places.size:
        raise ValueError("array of sample points is empty")
    if period is not None:
        x, places, values = _around_the_period(xp, x, places, values, abs(float(period)), period)
        left = right = None
    n = places.size
    below = values[0] if left is None else number(xp, left, kind)
    above = values[-1] if right is None else number(xp, right, kind)
    j = searchsorted(xp, places, x, "right") - 1
    at = xp.clip(j, 0, max(n - 2, 0))
    x0, y0 = places[at], values[at]
    x1, y1 = places[xp.minimum(at + 1, n - 1)], values[xp.minimum(at + 1, n - 1)]
    if kind.kind == "c":
        out = xp.empty(x.shape, kind)
        out.real = _line(xp, x, x0, x1, y0.real, y1.real)
        out.imag = _line(xp, x, x0, x1, y0.imag, y1.imag)
    else:
        out = _line(xp, x, x0, x1, y0, y1)
    out = xp.where(x == x0, y0, out)
    out = xp.where(j == n - 1, values[-1], out)
    out = xp.where(x < places[0], below, out)
    out = xp.where(x > places[-1], above, out)
    if n == 1:  # NaN is neither below nor above it
        return out
    return xp.where(xp.isnan(x), kind.type(np.nan) if kind.kind == "f" else complex(np.nan, 0), out)


def _line(xp: Any, x: Any, x0: Any, x1: Any, y0: Any, y1: Any) -> Any:
    slope = (y1 - y0) / (x1 - x0)
    found = slope * (x - x0) + y0
    again = xp.where(xp.isnan(found), slope * (x - x1) + y1, found)
    return xp.where(xp.isnan(again) & (y0 == y1), y0, again)


def _around_the_period(xp: Any, x: Any, places: Any, values: Any, length: float, given: Any) -> Any:
    if not given:
        raise ValueError("period must be a non-zero value")
    x, places = x % length, places % length
    order = argsort(xp, places)
    places, values = places[order], values[order]
    places = xp.concatenate([places[-1:] - length, places, places[:1] + length])
    return x, places, xp.concatenate([values[-1:], values, values[:1]])


def _nan_extreme(name: str) -> None:
    @routine(f"nan{name}")
    def _(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        """Of complex numbers: by the real part, then the imaginary one; NaN where there is no other."""
        missing = xp.isnan(x)
        worst = x.dtype.type(np.inf if name == "min" else -np.inf)
        if x.dtype.kind == "c":
            worst = x.dtype.type(complex(worst.real, worst.real))
        found = getattr(xp.where(missing, worst, x), name)(axis=axis, keepdims=keepdims)
        return xp.where(missing.all(axis=axis, keepdims=keepdims), x.dtype.type(np.nan), found)


_nan_extreme("min")
_nan_extreme("max")
