"""Names of NumPy's: small functions that programs lean on. (Of those that are not here: advice.py.)

Names that have nothing to do with arrays (`mb.dtype`, `mb.issubdtype`, `mb.s_`) are NumPy's own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray, ones
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.functions import conventions
from mirabelle.arraytypes.functions.picking import nonzero
from mirabelle.arraytypes.makers import creates
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained

dtype = np.dtype
printoptions, set_printoptions, get_printoptions = np.printoptions, np.set_printoptions, np.get_printoptions
index_exp, s_ = np.index_exp, np.s_
issubdtype, iterable = np.issubdtype, np.iterable


def errstate(**options: Any) -> np.errstate:
    """np.errstate, for programs that silence NumPy's floating point warnings.

    Kernels give none: NaN and infinity are values. So nothing can be raised, called or printed for them either,
    and what asks for it is refused.

    Parameters
    ----------
    **options : keyword arguments
        NumPy's options.

    Returns
    -------
    context manager
        NumPy's own, for a `with` block, which gets no value; what held before holds again after it. It
        decorates functions, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.errstate(divide="ignore"):
    ...     print(mb.HostArray([1.0]) / 0)
    [inf]
    """
    known = ("all", "divide", "over", "under", "invalid", "call")
    for name, what in options.items():
        if name not in known:
            raise TypeError(f"errstate: {name}= is no kind of error. NumPy's are {', '.join(known)}.")
        if name != "call" and what not in ("ignore", "warn", "raise", "call", "print", "log", None):
            raise ValueError(f"errstate: {name}={what!r} is nothing that can be done. Say {name}='ignore'.")
        if name != "call" and what not in ("ignore", "warn", None):
            raise ValueError(
                f"errstate({name}={what!r}): mirabelle's kernels do not look at the processor's flags, so "
                "nothing can be done where one is set. Look at the result: `mb.all(mb.isfinite(x))`."
            )
    return np.errstate(**options)


def isscalar(element: object) -> bool:
    """Is it a number of Python or NumPy? An array of no dimensions is an array.

    Parameters
    ----------
    element : object
        What is asked about.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isscalar(3.0), mb.isscalar(mb.sum(mb.ones(3)))
    (True, False)
    """
    return bool(np.isscalar(element))


@array_function
def isfortran(a: Any) -> bool:
    """Do the columns lie one after another in memory, and not the rows, too?

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isfortran(mb.zeros((2, 3)).T), mb.isfortran(mb.zeros(3))
    (True, False)
    """
    return bool(a.flags.fnc)


@explained
def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], AbstractArray]]:
    """Each place of an array with its element.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    iterator
        Tuples of an index, which is a tuple of int, and the element, an array of no dimensions; rows first.

    Examples
    --------
    >>> import mirabelle as mb
    >>> [(i, float(x)) for i, x in mb.ndenumerate(mb.HostArray([[1.0, 2.0]]))]
    [((0, 0), 1.0), ((0, 1), 2.0)]
    """
    x = as_array(arr)
    return zip(np.ndindex(x.shape), x.flat, strict=True)


@creates
@explained
def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, *, device: Any = None
) -> tuple[AbstractArray, ...]:
    """Where a function such as `mb.triu` leaves an n by n matrix as it is.

    Parameters
    ----------
    n : int
        The size of the matrix.
    mask_func : callable
        A function such as `mb.triu`.
    k : int, default 0
        Its second argument.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    tuple of array
        Rows and columns, both of dtype int64 and of one length: what a matrix can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rows, columns = mb.mask_indices(3, mb.triu, 1)
    >>> print(rows, columns)
    [0 0 1] [1 2 2]
    """
    found: tuple[Any, ...] = nonzero(verbs.not_equal(mask_func(ones((n, n), int, device=device), k=k), 0))
    return found


@creates
@explained
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> AbstractArray:
    """As `mb.asarray`, with a ValueError if there are NaN or infinities.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    order : str
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        `a` itself, if it is an array of ours that has the dtype and the place already.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.asarray_chkfinite([1.0, 2.0]))
    [1. 2.]
    """
    x = asarray(a, dtype, order or "K", device=device)
    if x.dtype.kind in "fc" and not bool(verbs.all(verbs.isfinite(x))):
        raise ValueError("array must not contain infs or NaNs: mb.nan_to_num(x) puts numbers in their place.")
    return x


@explained
def array2string(a: Any, *args: Any, **options: Any) -> str:
    """The text of an array's elements, with np.array2string's options.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Returns
    -------
    str
        As NumPy writes them, without the name of the type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array2string(mb.HostArray([1.0, 2.5]), precision=1, separator=", ")
    '[1. , 2.5]'
    """
    return str(conventions.array2string(as_array(a), *args, **options))


@explained
def array_repr(arr: Any, *args: Any, **options: Any) -> str:
    """The text of NumPy's repr of an array's elements.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Returns
    -------
    str
        As NumPy writes its own arrays, `array([...])`, whatever the type of `arr`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_repr(mb.HostArray([1.0, 2.5]))
    'array([1. , 2.5])'
    """
    return str(conventions.array_repr(as_array(arr), *args, **options))


@explained
def array_str(a: Any, *args: Any, **options: Any) -> str:
    """The text of NumPy's str of an array's elements.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Returns
    -------
    str
        As NumPy writes them, without the name of the type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_str(mb.HostArray([1.0, 2.5]))
    '[1.  2.5]'
    """
    return str(conventions.array_str(as_array(a), *args, **options))
