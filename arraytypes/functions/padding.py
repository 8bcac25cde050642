"""Padding: an array with a border, in all of NumPy's modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function, as_selection
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import cast_to, leaf_family
from mirabelle.arraytypes.functions.outputs import library_is_quicker
from mirabelle.arraytypes.functions.quantiles import median
from mirabelle.dispatch import verbs

# The options each mode knows.
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

    Returns
    -------
    array
        In new memory, of the dtype of `array`, to which what stands in the border is converted.

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
    if (
        library_is_quicker(leaf_family(type(array)), math.prod(shape), array)
        or mode in _BORDERS
        or kwargs.get("reflect_type") == "odd"
    ):
        return library.numpys_or(_framed, "pad", array, widths, mode=mode, **kwargs)
    return _framed(array, widths, mode, **kwargs)


def _framed(array: Any, widths: list[tuple[int, int]], mode: str, **options: Any) -> Any:
    """The array in the middle of new memory, with a border: one axis after the other, as NumPy has it."""
    shape = tuple(before + n + after for n, (before, after) in zip(array.shape, widths, strict=True))
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(array.shape, widths, strict=True))
    if mode not in ("constant", "empty"):
        for axis, (n, width) in enumerate(zip(array.shape, widths, strict=True)):
            if not n and any(width):
                raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    made = verbs.similar(array, shape=shape)
    _write(made, inner, array)
    if mode == "constant":
        values = _pairs(options.get("constant_values", 0), array.ndim)
        for axis, (before, after) in enumerate(widths):
            _write(made, _side(shape, axis, slice(0, before)), values[axis][0])
            _write(made, _side(shape, axis, slice(shape[axis] - after, None)), values[axis][1])
    elif mode != "empty":
        odd = options.get("reflect_type") == "odd"
        fill = _reflect_oddly if odd else _BORDERS.get(mode, _repeat)
        for axis, (n, width) in enumerate(zip(array.shape, widths, strict=True)):
            if n and any(width):
                fill(_Lines(made, axis, n, width, inner), mode, options)
    return made


class _Lines:
    """What is filled along an axis: axes before are whole, of those after there is what the array has."""

    def __init__(self, made: Any, axis: int, n: int, width: tuple[int, int], inner: tuple[slice, ...]) -> None:
        self.made, self.axis, self.n = made, axis, n
        self.before, self.after = width
        self.around = (slice(None),) * axis, inner[axis + 1 :]

    def read(self, part: Any) -> Any:
        first, last = self.around
        return computed(verbs.copy(verbs.getitem(self.made, (*first, part, *last))))

    def write(self, part: slice, value: Any) -> None:
        first, last = self.around
        _write(self.made, (*first, part, *last), value)

    def sides(self) -> list[tuple[slice, bool]]:
        """The border before and the one after, if they have elements, and whether it is the one after."""
        end = self.before + self.n
        both = [(slice(0, self.before), False), (slice(end, end + self.after), True)]
        return [(side, at_end) for side, at_end in both if side.stop > side.start]

    def option(self, options: dict[str, Any], name: str, default: Any, at_end: bool) -> Any:
        return _pairs(options.get(name, default), self.made.ndim)[self.axis][at_end]


def _repeat(lines: _Lines, mode: str, options: dict[str, Any]) -> None:
    """Elements of the array again: where each comes from, by NumPy's own rules."""
    source = np.pad(np.arange(lines.n), (lines.before, lines.after), mode=mode) + lines.before  # type: ignore[call-overload]
    for side, _ in lines.sides():
        lines.write(side, lines.read(_as_slice(source[side])))


def _reflect_oddly(lines: _Lines, mode: str, options: dict[str, Any]) -> None:
    """Turned around the elements at the ends: as many at a time as there are whole periods."""
    start, stop = lines.before, lines.before + lines.n
    last = lines.made.shape[lines.axis]
    with_edge = int(mode == "symmetric")
    period = lines.n if with_edge else lines.n - 1
    if not period:
        return _repeat(lines, "edge", options)
    while start or stop < last:
        length = (stop - start) // period * period if with_edge else (stop - start - 1) // period * period
        if start:
            count = min(length, start)
            first = start + 1 - with_edge
            turned = verbs.getitem(lines.read(slice(first, first + count)), _turned(lines.axis))
            edge = lines.read(slice(start, start + 1))
            lines.write(slice(start - count, start), verbs.subtract(verbs.multiply(edge, 2), turned))
            start -= count
        if stop < last:
            count = min(length, last - stop)
            end = stop - 1 + with_edge
            turned = verbs.getitem(lines.read(slice(end - count, end)), _turned(lines.axis))
            edge = lines.read(slice(stop - 1, stop))
            lines.write(slice(stop, stop + count), verbs.subtract(verbs.multiply(edge, 2), turned))
            stop += count
    return None


def _turned(axis: int) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, slice(None, None, -1))


def _ramp(lines: _Lines, mode: str, options: dict[str, Any]) -> None:
    """From the end value on, in equal steps, up to but without the edge."""
    made, axis = lines.made, lines.axis
    for side, at_end in lines.sides():
        place = side.start - 1 if at_end else side.stop
        edge = lines.read(slice(place, place + 1))
        edge = edge if made.dtype.kind in "fc" else verbs.astype(edge, np.float64)
        width = side.stop - side.start
        count = np.arange(width, dtype=edge.dtype)[:: -1 if at_end else 1]
        along = as_selection(count.reshape((-1,) + (1,) * (made.ndim - axis - 1)), made)
        end = lines.option(options, "end_values", 0, at_end)
        step = verbs.divide(verbs.subtract(edge, end), width)
        ramp = verbs.add(verbs.multiply(step, along), end)
        lines.write(side, cast_to(verbs.floor(ramp) if made.dtype.kind in "iu" else ramp, made.dtype))


_STATISTICS = {"maximum": verbs.max, "minimum": verbs.min, "mean": verbs.mean, "median": median}


def _statistic(lines: _Lines, mode: str, options: dict[str, Any]) -> None:
    """One number of so many elements at each end."""
    for side, at_end in lines.sides():
        length = lines.option(options, "stat_length", None, at_end)
        count = lines.n if length is None else min(int(length), lines.n)
        if not count and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        first = side.start - count if at_end else side.stop
        found = _STATISTICS[mode](lines.read(slice(first, first + count)), axis=lines.axis, keepdims=True)
        found = verbs.round(found) if lines.made.dtype.kind in "iu" and found.dtype.kind == "f" else found
        lines.write(side, cast_to(found, lines.made.dtype))


# Borders that are worked out from the elements.
_BORDERS: dict[str, Any] = {"linear_ramp": _ramp, **dict.fromkeys(_STATISTICS, _statistic)}


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
