"""Padding: an array with a border, in all of NumPy's modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.functions.outputs import library_is_quicker
from mirabelle.dispatch import verbs

# Modes whose border repeats elements of the array, and the options each mode knows.
_REPEATING = {"edge", "wrap", "reflect", "symmetric"}
_OPTIONS: dict[str, set[str]] = {
    "constant": {"constant_values"},
    "empty": set(),
    "edge": set(),
    "wrap": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
}


@array_function
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """With a border of `pad_width` elements: so many on every side, or pairs (before, after) for the axes.

    `mode` says what stands there: "constant" (`constant_values`), "edge", "reflect" and "symmetric"
    (`reflect_type`), "wrap", "linear_ramp" (`end_values`), "maximum", "mean", "median", "minimum"
    (`stat_length`), "empty", or a function as np.pad takes it. The array itself is computed straight into
    the middle of the result.

    Parameters
    ----------
    array : array
        An array; a list, a number or a NumPy array becomes one.
    pad_width : int, pair or pairs
        How much, before and after, for each axis.
    mode : str or callable, default 'constant'
        What stands there: see above.
    **kwargs : keyword arguments
        What the mode takes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.pad(mb.HostArray([1, 2, 3]), (2, 1), mode="edge"))
    [1 1 1 2 3 3]
    """
    widths = _widths(pad_width, array)
    if callable(mode):
        return library.call("pad", array, widths, mode=mode, **kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"mode {mode!r} is not supported. There are: {', '.join(sorted(_OPTIONS))}.")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if not array.ndim:
        return verbs.copy(array)
    shape = tuple(before + n + after for n, (before, after) in zip(array.shape, widths, strict=True))
    small = library_is_quicker(leaf_family(type(array)), math.prod(shape), array)
    if small or mode not in {"constant", "empty", *_REPEATING} or kwargs.get("reflect_type") == "odd":
        return library.call("pad", array, widths, mode=mode, **kwargs)
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(array.shape, widths, strict=True))
    if mode in ("constant", "empty"):
        made = verbs.similar(array, shape=shape)
        _write(made, inner, array)
        if mode == "constant":
            values = _pairs(kwargs.get("constant_values", 0), array.ndim)
            for axis, (before, after) in enumerate(widths):
                _write(made, _side(shape, axis, slice(0, before)), values[axis][0])
                _write(made, _side(shape, axis, slice(shape[axis] - after, None)), values[axis][1])
        return made
    for axis, (n, width) in enumerate(zip(array.shape, widths, strict=True)):
        if not n and any(width):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    made = verbs.similar(array, shape=shape)
    _write(made, inner, array)
    for axis, (n, (before, after)) in enumerate(zip(array.shape, widths, strict=True)):
        if not n:
            continue
        # Where each element of the border comes from, by NumPy's own rules.
        source = np.pad(np.arange(n), (before, after), mode=mode) + before
        region = [*(slice(None),) * (axis + 1), *inner[axis + 1 :]]
        for side, origin in (
            (slice(0, before), source[:before]),
            (slice(before + n, None), source[before + n :]),
        ):
            if origin.size:
                region[axis] = _as_slice(origin)
                copied = computed(verbs.copy(verbs.getitem(made, tuple(region))))
                region[axis] = side
                _write(made, tuple(region), copied)
    return made


def _write(made: Any, index: tuple[Any, ...], value: Any) -> None:
    verbs.setitem(made, index, value)


def _side(shape: tuple[int, ...], axis: int, part: slice) -> tuple[Any, ...]:
    return tuple(part if d == axis else slice(None) for d in range(len(shape)))


def _as_slice(index: np.ndarray[Any, Any]) -> Any:
    """Indices as a slice where they follow in steps, so that they are a view."""
    first, n = int(index[0]), index.size
    if n == 1:
        return slice(first, first + 1)
    step = int(index[1]) - first
    if step and (np.diff(index) == step).all():
        stop = first + n * step
        return slice(first, stop if stop >= 0 else None, step)
    return index.tolist()


def _widths(pad_width: Any, array: Any) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        given = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            given[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        pad_width = given
    width = np.asarray(pad_width)
    if width.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if (width < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in _pairs(width, array.ndim)]


def _pairs(value: Any, ndim: int) -> Any:
    """(before, after) for each axis, of a number, a pair, or pairs."""
    return np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()
