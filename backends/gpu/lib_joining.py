"""Repeating and padding on a card, where numbers are not the same for all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_sorting import flattened, sort
from mirabelle.backends.gpu.library import routine


@routine("repeat")
def repeat(xp: Any, x: Any, repeats: Any, *, axis: Any = None) -> Any:
    """CuPy repeats each element equally often; here the counts may be an array."""
    x, axis = flattened(x, axis)
    n = x.shape[axis]
    if not isinstance(repeats, xp.ndarray):
        repeats = np.asarray(repeats)
        if not repeats.ndim:
            if repeats < 0:
                raise ValueError("repeats may not contain negative values.")
            return xp.repeat(x, int(repeats), axis=axis)
        repeats = xp.asarray(repeats)
    counts = repeats.reshape(-1).astype(np.int64, copy=False)
    if counts.size == 1:
        counts = xp.broadcast_to(counts, (n,))
    if counts.size != n:
        raise ValueError(f"operands could not be broadcast together with shape ({n},) ({counts.size},)")
    if not n:
        return x.copy()
    if int(counts.min()) < 0:
        raise ValueError("repeats may not contain negative values.")
    return xp.take(x, spread(xp, counts), axis=axis)


def spread(xp: Any, counts: Any) -> Any:
    """The number of each element, as often as its count says."""
    ends = xp.cumsum(counts)
    total = int(ends[-1]) if counts.size else 0
    return xp.searchsorted(ends, xp.arange(total, dtype=np.int64), side="right")


@routine("pad")
def _(xp: Any, x: Any, widths: Any, *, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("maximum", "minimum", "mean", "median"):
        return _padded_by_statistics(xp, x, widths, mode, options.get("stat_length"))
    if mode == "linear_ramp":
        return _padded_by_ramps(xp, x, widths, options.get("end_values", 0))
    return xp.pad(x, widths, mode=mode, **options)


def _framed(xp: Any, x: Any, widths: Any) -> tuple[Any, list[tuple[int, int]]]:
    widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(widths), (x.ndim, 2)).tolist()]
    for axis, (n, width) in enumerate(zip(x.shape, widths, strict=True)):
        if not n and any(width):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    padded = xp.empty(tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), x.dtype)
    padded[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
    return padded, widths


def _region(padded: Any, x: Any, widths: Any, axis: int, part: slice) -> Any:
    """A part along an axis, of what is filled already: axes before are whole, those after as in `x`."""
    inner = [slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True)]
    return padded[(*[slice(None)] * axis, part, *inner[axis + 1 :])]


def _padded_by_statistics(xp: Any, x: Any, widths: Any, mode: str, lengths: Any) -> Any:
    padded, widths = _framed(xp, x, widths)
    pairs = [(None, None)] * x.ndim if lengths is None else np.broadcast_to(lengths, (x.ndim, 2)).tolist()
    for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
        if not n:
            continue
        sides = (
            (slice(0, before), pairs[axis][0], False),
            (slice(before + n, before + n + after), pairs[axis][1], True),
        )
        for side, length, at_end in sides:
            count = n if length is None else min(int(length), n)
            if count == 0 and mode in ("maximum", "minimum"):
                raise ValueError("stat_length of 0 yields no value for padding")
            start = before + n - count if at_end else before
            edge = _region(padded, x, widths, axis, slice(start, start + count))
            _region(padded, x, widths, axis, side)[...] = _statistic(xp, edge, mode, axis, x.dtype)
    return padded


def _statistic(xp: Any, edge: Any, mode: str, axis: int, dtype: np.dtype) -> Any:
    if mode == "maximum":
        return edge.max(axis=axis, keepdims=True)
    if mode == "minimum":
        return edge.min(axis=axis, keepdims=True)
    if mode == "mean":
        found = edge.mean(axis=axis, keepdims=True)
    else:
        found = _median(xp, sort(xp, edge, axis=axis), axis, edge.shape[axis])
    return (xp.rint(found) if dtype.kind in "iu" else found).astype(dtype)


def _median(xp: Any, ordered: Any, axis: int, n: int) -> Any:
    """The mean of the middle two, or the middle one, as NumPy has it: with NaN wherever there is one."""
    low, high, last = (xp.take(ordered, [k], axis=axis) for k in ((n - 1) // 2, n // 2, n - 1))
    if ordered.dtype.kind not in "fc":
        return high.astype(np.float64) if n % 2 else (low.astype(np.float64) + high) / 2.0
    wide = np.dtype(np.float32) if ordered.dtype == np.float16 else ordered.dtype
    mean = high if n % 2 else ((low.astype(wide) + high.astype(wide)) / wide.type(2)).astype(ordered.dtype)
    return xp.where(xp.isnan(last), last, mean)


def _padded_by_ramps(xp: Any, x: Any, widths: Any, end_values: Any) -> Any:
    padded, widths = _framed(xp, x, widths)
    ends = np.broadcast_to(np.asarray(end_values), (x.ndim, 2)).tolist()
    for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
        for width, side, place, end, outward in (
            (before, slice(0, before), before, ends[axis][0], False),
            (after, slice(before + n, None), before + n - 1, ends[axis][1], True),
        ):
            if not width:
                continue
            edge = _region(padded, x, widths, axis, slice(place, place + 1))
            edge = edge if x.dtype.kind in "fc" else edge.astype(np.float64)
            # From the end value on, in equal steps, up to but without the edge.
            count = xp.arange(width, dtype=edge.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
            ramp = end + (edge - end) / edge.dtype.type(width) * count
            ramp = xp.flip(ramp, axis=axis) if outward else ramp
            if x.dtype.kind in "iu":
                ramp = xp.floor(ramp)
            _region(padded, x, widths, axis, side)[...] = ramp.astype(x.dtype)
    return padded
