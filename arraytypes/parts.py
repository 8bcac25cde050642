"""Views of a part of each element, or of some elements: real and imaginary parts, a diagonal, other dtypes.

They are wrappers like any other: what is written to them is written to the array they show.

>>> import mirabelle as mb
>>> z = mb.HostArray([1 + 2j, 3 + 4j])
>>> z.real = 0.0
>>> z.imag[1] = 9.0
>>> print(z)
[0.+2.j 0.+9.j]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import copied
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.wrappers import BroadcastTo, Wrapper, part_of_several, root_of, shown_leaf
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.tree import Broadcasted, Leaf


class RealPart(Wrapper):
    """The real parts of a complex array, in its memory.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0 + 2j])
    >>> x.real[...] = 5
    >>> print(type(x.real).__name__, x)
    RealPart[HostArray[complex128, 1]] [5.+2.j]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    affine = False
    _name = "real"

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        if "dtype" in attributes:
            attributes["dtype"] = np.dtype(f"f{attributes['dtype'].itemsize // 2}")
        return attributes

    def _show(self, view: Any) -> Any:
        return view.real


class ImagPart(RealPart):
    """The imaginary parts of a complex array, in its memory.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0 + 2j])
    >>> x.imag[...] = 5
    >>> print(type(x.imag).__name__, x)
    ImagPart[HostArray[complex128, 1]] [1.+5.j]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _name = "imag"

    def _show(self, view: Any) -> Any:
        return view.imag


class DiagonalView(Wrapper):
    """A diagonal of two dimensions of the parent, as the last dimension.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> print(type(mb.diagonal(x)).__name__, mb.diagonal(x))
    DiagonalView[HostArray[float64, 2], 1] [1. 4.]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _changes_ndim = True

    def _show(self, view: Any) -> Any:
        shown = view.diagonal(*self._how)
        if isinstance(shown, np.ndarray):  # NumPy's diagonals are read-only for reasons of history
            shown.flags.writeable = view.flags.writeable
        return shown


class Reinterpreted(Wrapper):
    """The bytes of the parent as elements of another dtype. Parameters: the parent's type and the dtype.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0])
    >>> print(type(x.view(mb.int64)).__name__)
    Reinterpreted[HostArray[float64, 1], int64]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    affine = False

    @classmethod
    def _normalise(cls, parameters: Any) -> tuple[Any, ...]:
        if len(parameters) > 2:
            raise TypeError(f"{cls.__name__} takes the type of its parent and a dtype.")
        return (*super()._normalise(parameters[:1]), *map(checked_dtype, parameters[1:]))

    @classmethod
    def _widened(cls, parameters: Any) -> Iterator[tuple[Any, ...]]:
        if len(parameters) > 1:
            yield parameters[:1]
        else:
            yield from super()._widened(parameters)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters[:1])
        attributes.pop("dtype", None)
        return attributes | ({"dtype": parameters[1]} if len(parameters) > 1 else {})

    @classmethod
    def _of(cls, parent: Any, how: Any, shape: tuple[int, ...]) -> Any:
        if hasattr(parent, "_stored"):
            parent = parent._stored()
        if hasattr(parent, "_of_several"):
            return part_of_several(parent, cls, how, shape)
        x = object.__new__(cls[type(parent), how])  # type: ignore[misc, index]
        x._parent, x._how, x._shape = parent, how, shape
        return x

    def _show(self, view: Any) -> Any:
        return view.view(self._how)


class SlidingWindows(Wrapper):
    """All windows of a size into the parent, as further dimensions. Elements repeat: not writable.

    >>> import mirabelle as mb
    >>> print(mb.sliding_window_view(mb.arange(4), 3))
    [[0 1 2]
     [1 2 3]]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _changes_ndim = True
    writable = False

    def _show(self, view: Any) -> Any:
        if isinstance(view, np.ndarray):
            return np.lib.stride_tricks.sliding_window_view(view, *self._how)
        return view.sliding_windows(*self._how)


@verbs.capture.method
def _(x: RealPart) -> Any:
    # The part of a pending tree is one more operation of it; the part of memory is strided memory.
    version = verbs.capture(x._parent)
    if type(version) is Leaf:
        return shown_leaf(x, verbs.leaf_of(root_of(x)))
    return Broadcasted(promotion.signature(TABLE[x._name], (x._parent.dtype,)), (version,), x.shape)


def real_part(x: AbstractArray) -> Any:
    """x.real as NumPy has it: `x` itself, or a view of the real parts to be written to; a number's a number."""
    if x.dtype.kind != "c":
        return x
    shown = RealPart._of(x, None, x.shape)
    return copied(shown) if not x.ndim and x._is_number() else shown


def imag_part(x: AbstractArray) -> Any:
    """x.imag as NumPy has it: a view of the imaginary parts, a number's a number; of real numbers, zeros that
    nobody writes to."""
    if x.dtype.kind != "c":
        return BroadcastTo._of(as_array(x.dtype.type(0), x), None, x.shape)
    shown = ImagPart._of(x, None, x.shape)
    return copied(shown) if not x.ndim and x._is_number() else shown


def set_part(x: AbstractArray, name: str, value: Any) -> None:
    """x.real = value, x.imag = value."""
    if name == "imag" and x.dtype.kind != "c":
        raise TypeError(
            f"array does not have imaginary part to set: its dtype is {x.dtype.name}. Make it complex first: "
            "`x = x.astype(mb.complex128)`."
        )
    value = as_array(value, x) if isinstance(value, (list, tuple)) else value
    if x.dtype.kind != "c":
        verbs.assign(x, value)
    else:
        verbs.assign((RealPart if name == "real" else ImagPart)._of(x, None, x.shape), value)


def diagonal_view(x: AbstractArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of two dimensions, as a view that can be written to; other dimensions come first."""
    if x.ndim < 2:
        raise ValueError(f"diag requires an array of at least two dimensions; this one has {x.ndim}.")
    (first,), (second,) = normal_axes(axis1, x.ndim), normal_axes(axis2, x.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = x.shape[first], x.shape[second]
    n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    rule = getattr(x, "_shown_diagonal", None)
    if rule is not None and x.ndim == 2:  # a structured matrix, which may store it
        return rule(offset if first < second else -offset)
    rest = tuple(d for i, d in enumerate(x.shape) if i not in (first, second))
    return DiagonalView._of(x, (offset, first, second), (*rest, n))


def reinterpreted(x: AbstractArray, dtype: Any) -> Any:
    """x.view(dtype): the same bytes read as another dtype.

    As raw bytes (void), which zarr compares, they are shown in a NumPy array: ours hold numbers.
    """
    if np.dtype(dtype).kind == "V":
        return verbs.numpy_view(x).view(dtype)
    dtype = checked_dtype(dtype)
    if dtype == x.dtype:
        return x
    shape, old, new = x.shape, x.dtype.itemsize, dtype.itemsize
    if old != new:
        if not shape:
            raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
        if shape[-1] != 1 and x.strides[-1] != old:
            raise ValueError(
                "To change to a dtype of a different size, the last axis must be contiguous. "
                "Copy first: `mb.copy(x).view(dtype)`."
            )
        last, rest = divmod(shape[-1] * old, new)
        if rest:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the "
                f"last axis of the array: {shape[-1] * old} bytes hold no whole number of {dtype.name}."
            )
        shape = (*shape[:-1], last)
    return Reinterpreted._of(x, dtype, shape)


@explained
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> AbstractArray:
    """All windows of a size into `x`, as further dimensions at the end: a read-only view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    window_shape : int or tuple of int
        The size of a window.
    axis : int, tuple of int or None
        Along which axes; None is all of them.

    Returns
    -------
    array
        The positions of the window along each axis come first, the elements in a window last. What is
        written to `x` is seen in it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1, 2, 3, 4, 5])
    >>> print(mb.sum(mb.sliding_window_view(x, 3), axis=-1))
    [ 6  9 12]
    """
    x = as_array(x)
    window = (window_shape,) if isinstance(window_shape, (int, np.integer)) else tuple(window_shape)
    if axis is None:
        axes = tuple(range(x.ndim))
        if len(window) != x.ndim:
            raise ValueError(
                "Since axis is None, must provide window_shape for all dimensions of `x`; got "
                f"{len(window)} window_shape elements and `x.ndim` is {x.ndim}."
            )
    else:
        axes = tuple(normal_axes(a, x.ndim)[0] for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        if len(window) != len(axes):
            raise ValueError(
                f"Must provide matching length window_shape and axis; got {len(window)} window_shape elements "
                f"and {len(axes)} axes elements."
            )
    if any(n < 0 for n in window):
        raise ValueError("`window_shape` cannot contain negative values")
    shape: Any = list(x.shape)
    for a, n in zip(axes, window, strict=True):
        if shape[a] < n:
            raise ValueError(
                f"window shape cannot be larger than input array shape: {n} along axis {a} of {x.shape}"
            )
        shape[a] -= n - 1
    full: Any = (*shape, *window)
    return SlidingWindows._of(x, (window, axes), full)
