"""Cosine and sine transforms, which SciPy has: routines of the array's place, and barriers."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.functions.fourier import check_length, check_norm, checked_length
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch.misuse import explained


def _cosines(name: str, x: Any, type: Any, n: Any, axis: Any, norm: Any) -> Any:
    x = as_array(x)
    check_norm(name, x, norm)
    if type not in (1, 2, 3, 4):
        raise ValueError(f"{name}: there are the types 1, 2, 3 and 4; not {type!r}.")
    (axis,) = normal_axes(axis, x.ndim)
    if n is None:
        check_length(name, x, axis)
    return library.call(
        f"fft.{name}", x, type=type, n=None if n is None else checked_length(name, n), axis=axis, norm=norm
    )


@explained
def dct(x: Any, /, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> AbstractArray:
    """The discrete cosine transform along an axis (in SciPy, with its conventions).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    type : int, default 2
        Which of the transforms, 1 to 4.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Of the shape of `x`, with length `n` along `axis`, in new memory. Real of real arrays and complex of
        complex ones, of their precision, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.dct(mb.HostArray([1.0, 1.0])))
    [4. 0.]
    """
    return _cosines("dct", x, type, n, axis, norm)


@explained
def idct(x: Any, /, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> AbstractArray:
    """The inverse of `dct`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    type : int, default 2
        Which of the transforms, 1 to 4.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Of the shape of `x`, with length `n` along `axis`, in new memory. Real of real arrays and complex of
        complex ones, of their precision, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> print(mb.round(mb.fft.idct(mb.fft.dct(x))))
    [1. 2. 3.]
    """
    return _cosines("idct", x, type, n, axis, norm)


@explained
def dst(x: Any, /, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> AbstractArray:
    """The discrete sine transform along an axis (in SciPy, with its conventions).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    type : int, default 2
        Which of the transforms, 1 to 4.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Of the shape of `x`, with length `n` along `axis`, in new memory. Real of real arrays and complex of
        complex ones, of their precision, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.fft.dst(mb.HostArray([1.0, 2.0, 3.0])).shape
    (3,)
    """
    return _cosines("dst", x, type, n, axis, norm)


@explained
def idst(x: Any, /, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> AbstractArray:
    """The inverse of `dst`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    type : int, default 2
        Which of the transforms, 1 to 4.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Of the shape of `x`, with length `n` along `axis`, in new memory. Real of real arrays and complex of
        complex ones, of their precision, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> print(mb.round(mb.fft.idst(mb.fft.dst(x))))
    [1. 2. 3.]
    """
    return _cosines("idst", x, type, n, axis, norm)
