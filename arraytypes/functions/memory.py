"""How arrays lie in memory, what they share, and what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.makers import creates
from mirabelle.arraytypes.proxies import lying
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.tree import Leaf

promote_types = np.promote_types


@creates
@explained
def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str = "K", ndmin: int = 0,
    device: Any = None,
) -> AbstractArray:  # fmt: skip
    """A new array of data: a copy, unless `copy` is None (as needed) or False (never).

    Parameters
    ----------
    object : array, list or number
        The data.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    copy : bool or None, default True
        True copies always, False never (an error where it is needed), None where it is needed.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    ndmin : int, default 0
        At least so many dimensions; new ones come first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        At the place of `object` if it is an array, else of the default array type, unless `device` is
        given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.array([1, 2], dtype=float, ndmin=2))
    [[1. 2.]]
    """
    x = asarray(object, dtype=dtype, device=device, copy=copy)
    if order not in ("K", "A"):
        x = in_memory_order(x, order)
    if x.ndim < ndmin:
        x = verbs.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return x


@array_function
def in_memory_order(x: Any, order: str) -> Any:
    """`x` itself if it lies in rows ("C") or columns ("F") in memory, else a copy that does."""
    if order not in ("C", "F"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r}).")
    flags = lying(verbs.leaf_of(x).view).flags
    if flags.c_contiguous if order == "C" else flags.f_contiguous:
        return x
    family = leaf_family(type(x))
    return verbs.assign(wrap(family, Leaf(family._alike(verbs.leaf_of(x).view, order=order))), x)


def _with_dtype(a: Any, dtype: Any) -> Any:
    x = as_array(a)
    x = x if dtype is None else verbs.astype(x, dtype, copy=False)
    return x if x.ndim else verbs.reshape(x, (1,))


@array_function
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`a` itself if its rows lie one after another in memory, else a copy where they do.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.

    Returns
    -------
    array
        Of at least one dimension, and of the dtype of `a` unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.ascontiguousarray(mb.zeros((2, 3)).T).flags.c_contiguous
    True
    """
    return in_memory_order(_with_dtype(a, dtype), "C")


@array_function
def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """`a` itself if its columns lie one after another in memory, else a copy where they do.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.

    Returns
    -------
    array
        Of at least one dimension, and of the dtype of `a` unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.asfortranarray(mb.zeros((2, 3))).flags.f_contiguous
    True
    """
    return in_memory_order(_with_dtype(a, dtype), "F")


@array_function
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    """`a`, as an array of a dtype and with the memory that `requirements` name (C, F, A, W, O, E).

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    requirements : str or sequence of str
        Letters of NumPy's: "C", "F", "A", "W", "O", "E".

    Returns
    -------
    array
        `a` itself, if it is an array of ours that is so already; else a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.require(mb.zeros((2, 3)), requirements=["F"]).flags.f_contiguous
    True
    """
    known = {"C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F_CONTIGUOUS": "F", "FORTRAN": "F", "ALIGNED": "A",
             "WRITEABLE": "W", "OWNDATA": "O", "ENSUREARRAY": "E"}  # fmt: skip
    wanted = {known.get(str(r).upper(), str(r).upper()) for r in requirements or ()}
    if unknown := wanted - set(known.values()):
        raise ValueError(f"{sorted(unknown)} are no requirements. There are: {', '.join(known)}.")
    if {"C", "F"} <= wanted:
        raise ValueError("Cannot specify both 'C' and 'F' order")
    x = as_array(a)
    x = x if dtype is None else verbs.astype(x, dtype, copy=False)
    for order in wanted & {"C", "F"}:
        x = in_memory_order(x, order)
    flags = x.flags
    missing = ("O" in wanted and not flags.owndata) or ("W" in wanted and not flags.writeable)
    return verbs.copy(x) if missing else x


@explained
def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """Might the memory of two arrays overlap, by its bounds?

    Writes part arrays that share: this tells where their contents lie now.

    Parameters
    ----------
    a : array
        The first.
    b : array
        The second.
    max_work : int or None, default 0
        Taken for NumPy's sake.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros(4)
    >>> mb.may_share_memory(x, x[1:]), mb.may_share_memory(x, mb.copy(x))
    (True, False)
    """
    return _shares("may_share_memory", a, b, max_work)


@explained
def shares_memory(a: Any, b: Any, /, max_work: int = -1) -> bool:
    """Do two arrays have an element of memory in common?

    Parameters
    ----------
    a : array
        The first.
    b : array
        The second.
    max_work : int or None, default -1
        Taken for NumPy's sake.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros(4)
    >>> mb.shares_memory(x[::2], x[1::2])
    False
    """
    return _shares("shares_memory", a, b, max_work)


def _shares(name: str, a: Any, b: Any, max_work: int) -> bool:
    a, b = as_array(a), as_array(b)
    if a.place != b.place:
        return False
    return bool(library.call(name, a, b, max_work=max_work))


@explained
def min_scalar_type(a: Any, /) -> np.dtype:
    """The smallest dtype that holds the number `a`; of an array, its dtype.

    Parameters
    ----------
    a : number or array
        What is asked about.

    Returns
    -------
    dtype
        A dtype of NumPy's: of an integer the smallest that is unsigned, if the number is not negative.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.min_scalar_type(300)
    dtype('uint16')
    """
    if isinstance(a, AbstractArray):
        return a.dtype if a.ndim else np.min_scalar_type(verbs.to_numpy(a))
    return np.min_scalar_type(a)


@explained
def common_type(*arrays: Any) -> type[np.inexact[Any]]:
    """The floating-point or complex type that holds the elements of all arrays.

    Parameters
    ----------
    *arrays : arrays
        What is asked about.

    Returns
    -------
    type
        A scalar type of NumPy's, `numpy.float64` if there are integers, a complex one if there are complex
        numbers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.common_type(mb.HostArray([1.0], dtype=mb.float32), mb.HostArray([1]))
    <class 'numpy.float64'>
    """
    return np.common_type(*[np.empty(0, as_array(x).dtype) for x in arrays])


@explained
def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array, or of what one would be made of.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    tuple of int
        The empty tuple for a number.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.shape(mb.zeros((2, 3)))
    (2, 3)
    """
    return a.shape if isinstance(a, AbstractArray) else np.shape(a)


@explained
def ndim(a: Any) -> int:
    """The number of dimensions of an array, or of what one would be made of.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    int
        An int of Python's; 0 for a number.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.ndim(mb.zeros((2, 3)))
    2
    """
    return a.ndim if isinstance(a, AbstractArray) else np.ndim(a)


@explained
def size(a: Any, axis: Any = None) -> int:
    """The number of elements of an array, or along axes.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.

    Returns
    -------
    int
        An int of Python's; 1 for a number.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.size(mb.zeros((2, 3)), axis=1)
    3
    """
    if axis is None:
        return a.size if isinstance(a, AbstractArray) else int(np.size(a))
    lengths = shape(a)
    n = 1
    for d in axis if isinstance(axis, tuple) else (axis,):
        n *= lengths[d]
    return n
