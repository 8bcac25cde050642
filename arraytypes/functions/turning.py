"""Views of the same elements in another arrangement, by NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import fitting
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.functions import reducing
from mirabelle.arraytypes.functions.outputs import library_is_quicker
from mirabelle.arraytypes.indexing import valued_leaf
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.wrappers import Wrapper, root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained

_BACKWARDS = slice(None, None, -1)


def _axis(axis: Any, ndim: int) -> int:
    (found,) = normal_axes(axis, ndim)
    return found


def _reversed(x: Any, axis: int) -> Any:
    return verbs.getitem(x, (*[slice(None)] * axis, _BACKWARDS))


@array_function
def flipud(m: Any) -> Any:
    """The rows in reverse order: a view.

    Parameters
    ----------
    m : array
        An array.

    Returns
    -------
    array
        Of the dtype and place of `m`. What is written to it is written to `m`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.flipud(mb.HostArray([[1, 2], [3, 4]])))
    [[3 4]
     [1 2]]
    """
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return _reversed(m, 0)


@array_function
def fliplr(m: Any) -> Any:
    """The columns in reverse order: a view.

    Parameters
    ----------
    m : array
        An array of at least two dimensions.

    Returns
    -------
    array
        Of the dtype and place of `m`. What is written to it is written to `m`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fliplr(mb.HostArray([[1, 2], [3, 4]])))
    [[2 1]
     [4 3]]
    """
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return _reversed(m, 1)


@array_function
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turned by 90 degrees, `k` times, from the first axis towards the second: a view.

    Parameters
    ----------
    m : array
        An array of at least two dimensions.
    k : int, default 1
        How often.
    axes : pair of int
        The plane.

    Returns
    -------
    array
        Of the dtype and place of `m`. What is written to it is written to `m`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.rot90(mb.HostArray([[1, 2], [3, 4]])))
    [[2 4]
     [1 3]]
    """
    if len(tuple(axes)) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = axes
    if not all(-m.ndim <= a < m.ndim for a in (first, second)):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={m.ndim}.")
    first, second = first % m.ndim, second % m.ndim
    if first == second:
        raise ValueError("Axes must be different.")
    k = int(k) % 4
    if k == 2:
        return _reversed(_reversed(m, first), second)
    if k == 1:
        return swapaxes(_reversed(m, second), first, second)
    return _reversed(swapaxes(m, first, second), second) if k else verbs.getitem(m, ...)


@array_function
def transpose(a: Any, axes: Any = None) -> Any:
    """The axes in reverse, or in the given order: a view.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axes : tuple of int or None
        The axes in their new order; None reverses them.

    Returns
    -------
    array
        Of the dtype and place of `a`. What is written to it is written to `a`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.transpose(mb.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return a.T if axes is None else verbs.permute_dims(a, tuple(axes))


@array_function
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged: a view.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis1 : int
        The first of two axes.
    axis2 : int
        The second of two axes.

    Returns
    -------
    array
        Of the dtype and place of `a`. What is written to it is written to `a`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.swapaxes(mb.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    order = list(range(a.ndim))
    first, second = _index(axis1, a.ndim), _index(axis2, a.ndim)
    order[first], order[second] = second, first
    return verbs.permute_dims(a, tuple(order))


def _index(axis: int, ndim: int) -> int:
    """An axis of at least one dimension, from 0 on."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


@array_function
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved backwards until it stands before `start`: a view.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int
        Which axis.
    start : int, default 0
        Before which it comes to stand.

    Returns
    -------
    array
        Of the dtype and place of `a`. What is written to it is written to `a`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.rollaxis(mb.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    n, axis = a.ndim, _index(axis, a.ndim)
    if not -n <= start <= n:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in"
        )
    start = start + n if start < 0 else start
    order = [d for d in range(n) if d != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return verbs.permute_dims(a, tuple(order))


@array_function
def ravel(a: Any, order: str = "C") -> Any:
    """All elements in one row: a view where they lie so in memory, a copy where not.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    order : str, default 'C'
        In which order they are read: "C" rows first, "F" columns first, "A" and "K" as they lie.

    Returns
    -------
    array
        Of one dimension, and of the dtype and place of `a`; `a` itself, if it is that already. What is
        written to a view is written to `a`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ravel(mb.HostArray([[1, 2], [3, 4]]), order="F"))
    [1 3 2 4]
    """
    return in_order(a, order, _row)


def _row(x: Any) -> Any:
    """All elements in C's order: a view only where they lie one after another, as NumPy has it."""
    made = verbs.reshape(x, (-1,))
    if isinstance(x, Wrapper):
        leaf = verbs.leaf_of(made)
    else:
        leaf = valued_leaf(x._node) if isinstance(x, DenseArray) else None
    return made if leaf is None or leaf.view.flags.c_contiguous else verbs.copy(made)


def in_order(x: Any, order: Any, do: Any) -> Any:
    """`do(x)` on the elements in row order ("C") or column order ("F"); "A" and "K" go by the memory."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r}).")
    if order == "K" and x.ndim > 1 and isinstance(x, (DenseArray, Wrapper)):
        strides = [abs(n) for n in x.strides]
        axes = sorted(range(x.ndim), key=lambda d: -strides[d])
        if all(strides) and axes != [*range(x.ndim)]:
            return do(verbs.permute_dims(x, tuple(axes)))
    if order in ("A", "K"):
        flags = x.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    return do(transpose(x)) if order == "F" else do(x)


@explained
def atleast_1d(*arys: Any) -> AbstractArray | tuple[AbstractArray, ...]:
    """Each array with at least one dimension: views.

    Parameters
    ----------
    *arys : arrays
        One or several; of several a tuple is returned.

    Returns
    -------
    array or tuple of array
        One array for one, a tuple for several. What is written to it is written to the array it is of,
        which is returned itself if it has the dimensions.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.atleast_1d(mb.asarray(3.0)).shape
    (1,)
    """
    return _each(arys, lambda x: x if x.ndim else verbs.reshape(x, (1,)))


@explained
def atleast_2d(*arys: Any) -> AbstractArray | tuple[AbstractArray, ...]:
    """Each array with at least two dimensions, new ones first: views.

    Parameters
    ----------
    *arys : arrays
        One or several; of several a tuple is returned.

    Returns
    -------
    array or tuple of array
        One array for one, a tuple for several. What is written to it is written to the array it is of,
        which is returned itself if it has the dimensions.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.atleast_2d(mb.zeros(3)).shape
    (1, 3)
    """
    return _each(arys, lambda x: x if x.ndim > 1 else verbs.reshape(x, (1, x.size)))


@explained
def atleast_3d(*arys: Any) -> AbstractArray | tuple[AbstractArray, ...]:
    """Each array with at least three dimensions: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1).

    Parameters
    ----------
    *arys : arrays
        One or several; of several a tuple is returned.

    Returns
    -------
    array or tuple of array
        One array for one, a tuple for several. What is written to it is written to the array it is of,
        which is returned itself if it has the dimensions.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.atleast_3d(mb.zeros(3)).shape
    (1, 3, 1)
    """

    def deepened(x: Any) -> Any:
        if x.ndim > 2:
            return x
        return verbs.reshape(x, (1, x.size, 1)) if x.ndim < 2 else verbs.getitem(x, (..., None))

    return _each(arys, deepened)


def _each(arrays: Any, f: Any) -> Any:
    made = tuple(f(as_array(x)) for x in arrays)
    return made[0] if len(made) == 1 else made


@array_function
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of two dimensions, as the last dimension: a view, which can be written to.

    Parameters
    ----------
    a : array
        An array of at least two dimensions.
    offset : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    axis1 : int, default 0
        The first of two axes.
    axis2 : int, default 1
        The second of two axes.

    Returns
    -------
    array
        Of the dtype and place of `a`. What is written to it is written to `a`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1, 2], [3, 4]])
    >>> mb.diagonal(x)[...] = 0
    >>> print(x)
    [[0 2]
     [3 0]]
    """
    return diagonal_view(a, int(offset), axis1, axis2)


@array_function
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    offset : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    axis1 : int, default 0
        The first of two axes.
    axis2 : int, default 1
        The second of two axes.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the axes other than the two, of no dimensions for a matrix; truth values and integers add up as
        int64 or uint64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.trace(mb.HostArray([[1, 2], [3, 4]])))
    5
    """
    return reducing.sum(diagonal_view(a, int(offset), axis1, axis2), -1, dtype, out)


@array_function
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with `v` as its k-th diagonal; of a matrix, its k-th diagonal (a view).

    Parameters
    ----------
    v : array
        The diagonal, or the matrix whose diagonal is taken.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Of a vector a new matrix, as large as it takes; of a matrix a view: what is written to it is written
        to `v`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.diag(mb.HostArray([1, 2])))
    [[1 0]
     [0 2]]
    """
    if v.ndim == 2:
        return diagonal_view(v, int(k))
    if v.ndim != 1:
        raise ValueError(f"Input must be 1- or 2-d; this array has {v.ndim} dimensions.")
    n = v.shape[0] + abs(int(k))
    if library_is_quicker(leaf_family(type(v)), n * n, v):
        return library.call("diag", v, int(k))
    matrix = verbs.assign(verbs.similar(v, shape=(n, n)), 0)
    if v.shape[0]:
        verbs.assign(diagonal_view(matrix, int(k)), v)
    return matrix


@array_function
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all elements of `v` in a row as its k-th diagonal.

    Parameters
    ----------
    v : array
        The elements of the diagonal.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Square, as large as it takes, of the dtype of `v`, and in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.diagflat(mb.HostArray([[1, 2]]), 1))
    [[0 1 0]
     [0 0 2]
     [0 0 0]]
    """
    return diag(verbs.reshape(v, (-1,)), k)


@array_function
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write `val`, repeated as often as it takes, to the main diagonal of all dimensions.

    `wrap` lets it go on in a tall matrix, below a free row.

    Parameters
    ----------
    a : array
        What is written to.
    val : number or array
        What is written.
    wrap : bool, default False
        Whether a tall matrix gets a diagonal again below its end.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros((2, 2))
    >>> mb.fill_diagonal(x, [1.0, 2.0])
    >>> print(x)
    [[1. 0.]
     [0. 2.]]
    """
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    values = fitting(a, val)
    rows, columns = a.shape[:2]
    done = 0
    for start in range(0, rows, columns + 1) if wrap and a.ndim == 2 and columns else (0,):
        shown = verbs.getitem(a, (slice(start, None),)) if start else a
        while shown.ndim > 1:
            shown = diagonal_view(shown)
        parts = getattr(a, "parts", None)
        if parts is not None and not any(root_of(shown) is root_of(part) for part in parts):
            # A structured matrix that computes its diagonal: whether and how it is written to it says itself.
            places = list(range(shown.shape[0]))
            verbs.setitem(a, (places, places), values)
            return
        verbs.assign(shown, _cycled(values, done, shown.shape[0]))
        done += shown.shape[0]


def _cycled(values: Any, start: int, n: int) -> Any:
    """`n` of the values in turn, from the `start`-th on."""
    if values.size == 1:
        return verbs.reshape(values, ())
    flat = verbs.reshape(values, (-1,))
    if start + n <= flat.size:
        return verbs.getitem(flat, slice(start, start + n))
    if not flat.size:
        raise ValueError("There are no values to write: the array of values is empty.")
    return verbs.getitem(flat, (np.arange(start, start + n) % flat.size).tolist())


@array_function
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without the zeros at the front ("f"), at the back ("b") or at both: a view.

    Parameters
    ----------
    filt : array
        The array.
    trim : str, default 'fb'
        Where: "f", "b" or "fb".
    axis : int, tuple of int or None
        Along which axes; None is all of them.

    Returns
    -------
    array
        Of the dtype and place of `filt`. What is written to it is written to `filt`, and the other way
        round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.trim_zeros(mb.HostArray([0, 0, 1, 2, 0])))
    [1 2]
    """
    trim = trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    index = [slice(None)] * filt.ndim
    for d in normal_axes(axis, filt.ndim):
        others = tuple(i for i in range(filt.ndim) if i != d)
        filled = verbs.not_equal(filt, 0)
        held = verbs.fetch(verbs.any(filled, axis=others) if others else filled)
        some = held.any()
        first, last = (int(held.argmax()), held.size - int(held[::-1].argmax())) if some else (0, 0)
        index[d] = slice(first if "f" in trim or not some else None, last if "b" in trim or not some else None)
    return verbs.getitem(filt, tuple(index))
