"""Polynomials as vectors of coefficients, the highest power first, by NumPy's names.

Evaluating one is Horner's rule as a tree: one kernel, fused with what surrounds it. Plain arrays of the host
ask NumPy for all else; what is composed here serves cards, processes and dual numbers.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import arange, asarray, ones, zeros
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.calculus import convolve
from mirabelle.arraytypes.functions.creating import eye
from mirabelle.arraytypes.functions.decompositions import eigvals
from mirabelle.arraytypes.functions.grids import vander
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.padding import pad
from mirabelle.arraytypes.functions.solving import inv, lstsq
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

    Returns
    -------
    array
        Of the shape of `x`, and of the dtype that both have together.

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
) -> AbstractArray | tuple[Any, ...]:
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

    Returns
    -------
    array or tuple of array
        Its coefficients, the highest power first, a column for each of `y`. With `full` also residuals,
        rank, singular values, rcond; with `cov` the covariance.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([0.0, 1.0, 2.0, 3.0])
    >>> print(mb.around(mb.polyfit(x, 2 * x + 1, 1), 6))
    [2. 1.]
    """
    if isinstance(deg, float):
        raise TypeError(f"polyfit: deg={deg!r} is no degree. Give a whole number: `{int(deg)}`.")
    first = next((v for v in (x, y) if isinstance(v, AbstractArray)), None)
    x, y = as_array(x, first), as_array(y, first)
    w = None if w is None else as_array(w, x)
    return library.numpys_or(_fitted, "polyfit", x, y, deg, rcond=rcond, full=full, w=w, cov=cov)


@array_function
def roots(p: Any) -> Any:
    """The roots of a polynomial.

    Parameters
    ----------
    p : array
        The coefficients.

    Returns
    -------
    array
        Of one dimension, in no particular order: complex, if one of them is. Zero roots are among them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sort(mb.roots([1.0, -3.0, 2.0])))
    [1. 2.]
    """
    return library.numpys_or(_roots, "roots", p)


@array_function
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots; of a square matrix, its characteristic polynomial.

    Parameters
    ----------
    seq_of_zeros : array
        The roots, or a square matrix.

    Returns
    -------
    array
        Its coefficients, the highest power first: one more than roots.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.poly([1.0, 2.0]))
    [ 1. -3.  2.]
    """
    return library.numpys_or(_of_roots, "poly", seq_of_zeros)


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

    Returns
    -------
    array
        Its coefficients, the highest power first: as many as the longer one has.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyadd([1, 2], [9, 5, 4]))
    [9 6 6]
    """
    return library.numpys_or(_added, "polyadd", *_vectors(a1, a2))


@array_function(arity=2)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Returns
    -------
    array
        Its coefficients, the highest power first: as many as the longer one has.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polysub([2, 10, -2], [3, 10, -4]))
    [-1  0  2]
    """
    return library.numpys_or(_subtracted, "polysub", *_vectors(a1, a2))


@array_function(arity=2)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials.

    Parameters
    ----------
    a1 : array
        The first.
    a2 : array
        The second.

    Returns
    -------
    array
        Its coefficients, the highest power first.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polymul([1, 2, 3], [9, 5, 1]))
    [ 9 23 38 17  3]
    """
    return library.numpys_or(_multiplied, "polymul", *_vectors(a1, a2))


@array_function(arity=2)
def polydiv(u: Any, v: Any) -> tuple[AbstractArray, AbstractArray]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u : array
        The dividend.
    v : array
        The divisor.

    Returns
    -------
    tuple of array
        The coefficients of the quotient and of the remainder, the highest power first.

    Examples
    --------
    >>> import mirabelle as mb
    >>> quotient, remainder = mb.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    >>> print(quotient, remainder)
    [1.5  1.75] [0.25]
    """
    return library.numpys_or(_divided, "polydiv", *_vectors(u, v))  # type: ignore[no-any-return]


@array_function
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial.

    Parameters
    ----------
    p : array
        The coefficients.
    m : int, default 1
        How often.

    Returns
    -------
    array
        Its coefficients, the highest power first: `m` fewer than those of `p`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyder([1, 1, 1, 1]))
    [3 2 1]
    """
    return library.numpys_or(_derived, "polyder", p, operator.index(m))


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

    Returns
    -------
    array
        Its coefficients, the highest power first: `m` more than those of `p`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.polyint([6.0, 6.0]))
    [3. 6. 0.]
    """
    return library.numpys_or(_integrated, "polyint", p, operator.index(m), k)


# Composed of other functions


def _known(x: Any) -> np.ndarray | None:
    """The numbers of a short vector; None in a program, where nobody knows them."""
    while x.carries_derivatives:
        x = x._value
    return None if x.place.kind == "traced" else verbs.fetch(x)


def _floating(x: Any) -> Any:
    return x if x.dtype.char in "fdFD" else cast_to(x, np.dtype(np.float64))


def _padded(x: Any, n: int) -> Any:
    """With zeros in front, so that there are `n`."""
    return pad(x, (n - x.shape[0], 0)) if x.shape[0] < n else x


def _added(a: Any, b: Any) -> Any:
    n = max(a.shape[0], b.shape[0])
    return verbs.add(_padded(a, n), _padded(b, n))


def _subtracted(a: Any, b: Any) -> Any:
    n = max(a.shape[0], b.shape[0])
    return verbs.subtract(_padded(a, n), _padded(b, n))


def _trimmed(p: Any) -> Any:
    """Without leading zeros; at least one coefficient."""
    known = _known(p)
    if known is None:
        return p
    found = np.flatnonzero(known)
    return p[found[0] :] if found.size else _padded(p[-1:], 1)


def _multiplied(a: Any, b: Any) -> Any:
    return convolve(_trimmed(a), _trimmed(b))


def _divided(u: Any, v: Any) -> tuple[Any, Any]:
    """By long division: one step for each coefficient of the quotient."""
    dtype = np.result_type(_floating(u).dtype, _floating(v).dtype)
    u, v = cast_to(u, dtype), cast_to(v, dtype)
    n, found = v.shape[0], []
    scale = verbs.divide(1.0, v[:1])
    for _ in range(u.shape[0] - n + 1):
        found.append(verbs.materialize(verbs.multiply(scale, u[:1])))
        u = concatenate([verbs.subtract(u[1:n], verbs.multiply(found[-1], v[1:])), u[n:]])
    u = _padded(u, 1)
    known = _known(u)
    first = 0 if known is None else int(np.argmin(np.append(np.isclose(known[:-1], 0, rtol=1e-14), False)))
    return concatenate(found) if found else verbs.multiply(_padded(u[:0], 1), v[:1]), verbs.copy(u[first:])


def _powers(p: Any) -> Any:
    """What each coefficient's power is, and one more."""
    return arange(p.shape[0], 0, -1, device=p.place)


def _derived(p: Any, m: int) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        p = verbs.multiply(p[:-1], _powers(p[:-1]))
    return verbs.copy(p)


def _integrated(p: Any, m: int, k: Any) -> Any:
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = np.full(m, 0.0) if k is None else k  # (np.zeros(m) keeps a reference to float64 each time)
    k = k if isinstance(k, AbstractArray) else asarray(k, device=p.place)
    k = verbs.reshape(k, (1,)) if not k.ndim else k
    if k.ndim != 1 or (k.shape[0] < m and k.shape[0] != 1):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        constant = k[i : i + 1] if k.shape[0] > 1 else k
        p = concatenate([verbs.divide(p, _powers(p)), _floating(constant)])
    return verbs.copy(p)


def _of_roots(x: Any) -> Any:
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        x = _real_if_so(eigvals(_floating(x)))
    if x.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    x = _floating(x)
    if not x.shape[0]:
        return 1.0
    made = ones(1, dtype=x.dtype, device=x.place)
    for i in range(x.shape[0]):
        made = verbs.subtract(pad(made, (0, 1)), verbs.multiply(x[i], pad(made, (1, 0))))
    known = _known(x) if x.dtype.kind == "c" else None
    if known is not None and (np.sort(known) == np.sort(known.conj())).all():
        return verbs.copy(verbs.real(made))  # the roots come in pairs of conjugates
    return made


def _real_if_so(x: Any) -> Any:
    known = _known(x)
    return x if known is None or known.imag.any() else verbs.copy(verbs.real(x))


def _roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix."""
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    known = _known(p)
    found = np.arange(p.shape[0]) if known is None else np.flatnonzero(known)
    if not found.size:
        return zeros(0, device=p.place)
    at_0 = p.shape[0] - 1 - int(found[-1])
    p = _floating(p[found[0] : found[-1] + 1])
    n = p.shape[0] - 1
    if not n:
        return zeros(at_0, device=p.place)
    first = verbs.negative(verbs.divide(p[1:], p[:1]))
    below = eye(n - 1, n, dtype=p.dtype, device=p.place)
    return pad(_real_if_so(eigvals(concatenate([first[None], below]))), (0, at_0))


def _fitted(
    x: Any, y: Any, deg: Any, *, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    order = int(deg) + 1
    x, y = _floating(x), _floating(y)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not x.shape[0]:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    rcond = x.shape[0] * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    columns = vander(x, order)
    if w is not None:
        w = _floating(w)
        if w.ndim != 1 or w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        columns, y = verbs.multiply(columns, w[:, None]), verbs.multiply(y, w[:, None] if y.ndim == 2 else w)
    scale = verbs.sqrt(verbs.sum(verbs.real(verbs.multiply(columns, verbs.conj(columns))), axis=0))
    columns = verbs.divide(columns, scale)
    found, residuals, rank, s = lstsq(columns, y, rcond=rcond)
    found = verbs.divide(found, scale[:, None] if y.ndim == 2 else scale)
    if full:
        return found, residuals, rank, s, rcond
    known = _known(rank)
    if known is not None and int(known) != order:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if not cov:
        return found
    base = inv(verbs.matmul(verbs.permute_dims(columns, (1, 0)), columns))
    base = verbs.divide(base, verbs.multiply(scale[:, None], scale[None, :]))
    factor: Any = 1
    if cov != "unscaled":
        if x.shape[0] <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = verbs.divide(residuals, x.shape[0] - order)
    return found, verbs.multiply(base if y.ndim == 1 else base[:, :, None], factor)
