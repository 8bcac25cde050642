"""Polynomials as vectors of coefficients, the highest power first, by NumPy's names.

Evaluating one is Horner's rule as a tree: one kernel, fused with what surrounds it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained


@array_function(arity=2)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial `p` at `x`.

    Parameters
    ----------
    p : array
        The coefficients.
    x : array
        Where.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyval([3, 0, 1], mb.HostArray([5.0, 2.0])))  # 3 * x**2 + 1
    [76. 13.]
    """
    p = as_array(p)
    x = as_array(x, p)
    if p.ndim != 1:
        raise ValueError(f"Coefficients are a vector, and these have shape {p.shape}.")
    dtype = np.result_type(p.dtype, x.dtype)
    if not p.shape[0]:
        return verbs.assign(verbs.similar(x), 0)
    # The few coefficients are read once: as numbers they join the kernel.
    numbers = p.place.rank < 2 and not p.carries_derivatives
    coefficients = verbs.to_numpy(p) if numbers else [p[i] for i in range(p.shape[0])]
    value: Any = verbs.multiply(x, dtype.type(0))
    for c in coefficients:
        value = verbs.add(verbs.multiply(value, x), c)
    return value


@explained
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The polynomial of degree `deg` that fits the points (x, y) best, by least squares.

    Parameters
    ----------
    x : array
        The positions.
    y : array
        The values, or several columns of them.
    deg : int
        The degree.
    rcond : float or None
        Smaller singular values, relative to the largest, count as zero.
    full : bool, default False
        Whether what `lstsq` says is returned, too.
    w : array or None
        Weights of the points.
    cov : bool or str, default False
        Whether the covariance of the coefficients is returned, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([0.0, 1.0, 2.0, 3.0])
    >>> print(mb.around(mb.polyfit(x, 2 * x + 1, 1), 6))
    [2. 1.]
    """
    first = next((v for v in (x, y) if isinstance(v, AbstractArray)), None)
    x, y = as_array(x, first), as_array(y, first)
    w = None if w is None else as_array(w, x)
    return library.call("polyfit", x, y, deg, rcond=rcond, full=full, w=w, cov=cov)


@array_function
def roots(p: Any) -> Any:
    """The roots of a polynomial.

    Parameters
    ----------
    p : array
        The coefficients.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sort(mb.roots([1.0, -3.0, 2.0])))
    [1. 2.]
    """
    return library.call("roots", p)


@array_function
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots; of a square matrix, its characteristic polynomial.

    Parameters
    ----------
    seq_of_zeros : array
        The roots, or a square matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.poly([1.0, 2.0]))
    [ 1. -3.  2.]
    """
    return library.call("poly", seq_of_zeros)


def _vectors(a: Any, b: Any) -> tuple[Any, Any]:
    first = next((v for v in (a, b) if isinstance(v, AbstractArray)), None)
    return tuple(verbs.reshape(x, (1,)) if not x.ndim else x for x in (as_array(a, first), as_array(b, first)))  # type: ignore[return-value]


@array_function(arity=2)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyadd([1, 2], [9, 5, 4]))
    [9 6 6]
    """
    return library.call("polyadd", *_vectors(a1, a2))


@array_function(arity=2)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polysub([2, 10, -2], [3, 10, -4]))
    [-1  0  2]
    """
    return library.call("polysub", *_vectors(a1, a2))


@array_function(arity=2)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials.

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polymul([1, 2, 3], [9, 5, 1]))
    [ 9 23 38 17  3]
    """
    return library.call("polymul", *_vectors(a1, a2))


@array_function(arity=2)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u : array
        The dividend.
    v : array
        The divisor.

    Examples
    --------
    >>> import mirabelle as mb
    >>> quotient, remainder = mb.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    >>> print(quotient, remainder)
    [1.5  1.75] [0.25]
    """
    return library.call("polydiv", *_vectors(u, v))  # type: ignore[no-any-return]


@array_function
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial.

    Parameters
    ----------
    p : array
        The coefficients.
    m : int, default 1
        How often.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyder([1, 1, 1, 1]))
    [3 2 1]
    """
    return library.call("polyder", p, operator.index(m))


@array_function
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The m-th integral of a polynomial, with constants of integration `k`.

    Parameters
    ----------
    p : array
        The coefficients.
    m : int, default 1
        How often.
    k : number or sequence
        The constants of integration.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyint([6.0, 6.0]))
    [3. 6. 0.]
    """
    return library.call("polyint", p, operator.index(m), k)
