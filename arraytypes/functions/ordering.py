"""Orders and sets, by NumPy's names: the library of the place sorts."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.manipulation import stack
from mirabelle.arraytypes.indexing import bounds, within
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained


@array_function
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
    """With the `kth` smallest element at its place, smaller ones before it and larger ones after.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    kth : int or sequence of int
        Which elements stand at their places.
    axis : int or None, default -1
        Along which axis; None takes all elements in a row.
    kind : str, default 'introselect'
        Taken for NumPy's sake.

    Returns
    -------
    array
        Of the shape, dtype and place of `a`, or in one row if `axis` is None; in new memory. The order on
        both sides of `kth` is not said.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.partition(mb.HostArray([3, 1, 2]), 1)[1])
    2
    """
    _check_kth("partition", a, kth, axis)
    return library.call("partition", a, kth, axis=axis, kind=kind)


def _check_kth(function: str, a: Any, kth: Any, axis: Any) -> None:
    """Do the places named lie within the axis? (What is no integer or axis at all the routine refuses.)"""
    if not a.size or (axis is not None and not (type(axis) is int and -a.ndim <= axis < a.ndim)):
        return
    n = a.size if axis is None else a.shape[axis]
    for k in kth if isinstance(kth, (list, tuple, np.ndarray)) and np.ndim(kth) else (kth,):
        if isinstance(k, (int, np.integer)) and not -n <= k < n:
            raise ValueError(
                f"{function}: kth is {k}, out of bounds for {n} elements. It counts from 0 to {n - 1}, or back "
                f"from -1: `mb.{function}(x, {n - 1})`."
            )


@array_function
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
    """The indices that would partition the array.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    kth : int or sequence of int
        Which elements stand at their places.
    axis : int or None, default -1
        Along which axis; None takes all elements in a row.
    kind : str, default 'introselect'
        Taken for NumPy's sake.

    Returns
    -------
    array
        Of dtype int64, and of the shape of `a`, or in one row if `axis` is None: what `mb.take_along_axis`
        takes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.argpartition(mb.HostArray([30, 10, 20]), 1)[1])
    2
    """
    _check_kth("argpartition", a, kth, axis)
    return library.call("argpartition", a, kth, axis=axis, kind=kind)


@explained
def lexsort(keys: Any, axis: int = -1) -> AbstractArray:
    """The indices that sort by several keys: by the last one first.

    Parameters
    ----------
    keys : sequence of arrays
        The keys; the last is the first to decide.
    axis : int, default -1
        Along which axis; negative ones count from the last.

    Returns
    -------
    array
        Of dtype int64, and of the shape of one key.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.lexsort([mb.HostArray([9, 4, 0]), mb.HostArray([1, 2, 1])]))
    [2 0 1]
    """
    if isinstance(keys, AbstractArray):
        return library.call("lexsort", keys, axis=axis)
    keys = list(keys)
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    like = next((k for k in keys if isinstance(k, AbstractArray)), None)
    return library.call("lexsort", [as_array(k, like) for k in keys], axis=axis)


@array_function
def sort_complex(a: Any) -> Any:
    """Sorted by the real part, then the imaginary one, as complex numbers.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of the shape of `a`, in new memory. Complex numbers keep their dtype; integers of 8 and 16 bits
        become complex64, all else complex128.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sort_complex(mb.HostArray([2.0, 1.0])))
    [1.+0.j 2.+0.j]
    """
    return library.numpys_or(_sorted_as_complex, "sort_complex", a)


def _sorted_as_complex(a: Any) -> Any:
    if a.dtype.kind != "c":
        a = cast_to(a, np.dtype(np.complex64 if a.dtype.char in "bhBH" else np.complex128))
    return library.call("sort", a, axis=-1)


@array_function
def argwhere(a: Any) -> Any:
    """The indices of the elements that are not zero, a row for each.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of dtype int64, with a column for each dimension of `a`; of shape (0, `a.ndim`) where there are
        none.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.argwhere(mb.HostArray([[0, 1], [2, 0]])))
    [[0 1]
     [1 0]]
    """
    return library.numpys_or(_rows_of_places, "argwhere", a)


def _rows_of_places(a: Any) -> Any:
    places = library.call("nonzero", a if a.ndim else verbs.reshape(a, (1,)))
    return stack(places, axis=1)[:, : a.ndim]


@array_function
def flatnonzero(a: Any) -> Any:
    """The indices of the elements that are not zero, of all elements in a row.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        Of one dimension and of dtype int64, ascending.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.flatnonzero(mb.HostArray([0, 1, 2])))
    [1 2]
    """
    return library.numpys_or(_places_in_a_row, "flatnonzero", a)


def _places_in_a_row(a: Any) -> Any:
    return library.call("nonzero", verbs.reshape(a, (-1,)))[0]


# Indices as one number, bits as bytes


@explained
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> AbstractArray:
    """Indices along each dimension as one index of all elements in a row.

    Parameters
    ----------
    multi_index : tuple of arrays of int
        The indices along each dimension.
    dims : tuple of int
        The shape.
    mode : str, default 'raise'
        What indices that are outside do: "raise", "wrap" or "clip".
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.

    Returns
    -------
    array
        Of dtype int64, and of the shape that the indices have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ravel_multi_index((mb.HostArray([0, 1]), mb.HostArray([2, 0])), (2, 3)))
    [2 3]
    """
    if not isinstance(multi_index, AbstractArray):
        like = next((i for i in multi_index if isinstance(i, AbstractArray)), None)
        multi_index = tuple(i if isinstance(i, (int, np.integer)) else as_array(i, like) for i in multi_index)
    return library.numpys_or(_raveled, "ravel_multi_index", multi_index, dims, mode=mode, order=order)


def _raveled(multi_index: Any, dims: Any, mode: Any, order: str) -> Any:
    dims = (dims,) if np.ndim(dims) == 0 else tuple(dims)
    if len(multi_index) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}.")
    modes = [mode] * len(dims) if isinstance(mode, str) else list(mode)
    flat: Any = 0
    for i, n, how, step in zip(multi_index, dims, modes, _steps(dims, order), strict=True):
        if how == "raise":
            i = _inside("ravel_multi_index", i, n, "invalid entry in coordinates array: {}.")
        elif how == "wrap":
            i = verbs.remainder(_integers("ravel_multi_index", i), n)
        elif how == "clip":
            i = verbs.clip(_integers("ravel_multi_index", i), 0, n - 1)
        else:
            raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {how!r}).")
        flat = verbs.add(flat, verbs.multiply(i, step))
    if 0 in dims:
        raise ValueError(f"cannot unravel if shape has zero entries (is empty): {dims}.")
    return flat


def _steps(dims: tuple[int, ...], order: str) -> list[int]:
    """How far apart neighbours along each dimension are, of all elements in a row."""
    if order not in ("C", "F"):
        raise ValueError(f"only 'C' or 'F' order is permitted (got {order!r}).")
    ordered = dims if order == "F" else dims[::-1]
    steps = [math.prod(ordered[:k]) for k in range(len(ordered))]
    return steps if order == "F" else steps[::-1]


def _integers(name: str, i: Any) -> Any:
    if isinstance(i, (int, np.integer)):
        return int(i)
    if i.carries_derivatives:
        library.call(name, i)  # which says that there is no rule
    if i.dtype.kind not in "biu":
        raise TypeError("only int indices permitted.")
    return cast_to(i, np.dtype(np.int64))


def _inside(name: str, i: Any, n: int, otherwise: str) -> Any:
    """An index that is checked: in a program, when it runs."""
    i = _integers(name, i)
    if isinstance(i, AbstractArray) and i.place.kind == "traced":
        return within(i, 0, n)
    low, high = (i, i) if isinstance(i, int) else bounds(i) if i.size else (0, 0)
    if low < 0 or (high >= n and (isinstance(i, int) or i.size)):
        raise ValueError(otherwise.format(low if low < 0 else high))
    return i


@array_function
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[AbstractArray, ...]:
    """Indices of all elements in a row as indices along each dimension.

    Parameters
    ----------
    indices : array of int
        The indices.
    shape : tuple of int
        The shape.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.

    Returns
    -------
    tuple of array
        For each dimension of `shape` an array of dtype int64 in the shape of `indices`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rows, columns = mb.unravel_index(mb.HostArray([2, 3]), (2, 3))
    >>> print(rows, columns)
    [0 1] [2 0]
    """
    return library.numpys_or(_unraveled, "unravel_index", indices, shape, order=order)  # type: ignore[no-any-return]


def _unraveled(indices: Any, shape: Any, order: str) -> tuple[Any, ...]:
    dims = (operator.index(shape),) if np.ndim(shape) == 0 else tuple(operator.index(n) for n in shape)
    size = math.prod(dims)
    outside = f"index {{}} is out of bounds for array with size {size}."
    i = _inside("unravel_index", indices, size, outside)
    pairs = zip(dims, _steps(dims, order), strict=True)
    return tuple(verbs.remainder(verbs.floor_divide(i, step), n) for n, step in pairs)


@array_function
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """Truth values as the bits of bytes.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    bitorder : str, default 'big'
        Which bit is the first: "big" or "little".

    Returns
    -------
    array
        Of dtype uint8: a byte for eight elements along the axis, the last one filled with zeros. Of one
        dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.packbits(mb.HostArray([True, False, True])))
    [160]
    """
    return library.call("packbits", a, axis=axis, bitorder=bitorder)


@array_function
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    """The bits of bytes as zeros and ones.

    Parameters
    ----------
    a : array of uint8
        The bytes.
    axis : int or None
        Along which axis; None takes all elements in a row.
    count : int or None
        How many bits; None is all.
    bitorder : str, default 'big'
        Which bit is the first: "big" or "little".

    Returns
    -------
    array
        Of dtype uint8: eight elements for a byte along the axis, or `count`. Of one dimension if `axis` is
        None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.unpackbits(mb.HostArray([160], dtype=mb.uint8), count=3))
    [1 0 1]
    """
    return library.call("unpackbits", a, axis=axis, count=count, bitorder=bitorder)
