"""Norms of vectors and matrices: fused reductions, safe from overflow.

Squares and powers may overflow or vanish where the norm itself does not. Single and half
precision are added up in double, which holds all of them. In double precision the plain sum is
looked at afterwards: only if it left the range, it is computed again from scaled elements.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.lapack import check_matrices
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs

_DOUBLE = np.dtype(np.float64)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of absolute values, in which integers count as double precision."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return dtype if dtype.kind == "f" else _DOUBLE


@array_function
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of the vectors along the given axes, of all elements if `axis` is None.

    `ord` is any number, or inf or -inf for the largest and the smallest absolute value; 0 counts
    the elements that are not zero.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    ord : number or str, default 2
        Which norm, as in `np.linalg.norm`.

    Returns
    -------
    array
        Real, of the precision of `x`, float64 of integers. Of the shape of `x` without the axes in `axis`
        (of length 1 with `keepdims`), so without axes if that is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([3.0, 4.0])
    >>> print(mb.linalg.vector_norm(x), mb.linalg.vector_norm(x * 1e200) < mb.inf)
    5.0 True
    """
    return _vector_norm(x, normal_axes(axis, x.ndim), bool(keepdims), _order(ord))


def _order(ord: Any) -> float:
    if isinstance(ord, bool) or not isinstance(ord, (int, float, np.integer, np.floating)):
        raise ValueError(
            f"The order of a vector norm is a number, inf or -inf; not {ord!r}. Norms of matrices such as "
            '"fro" are mb.linalg.matrix_norm(x, ord="fro").'
        )
    return ord  # type: ignore[return-value]


def _vector_norm(x: Any, axes: tuple[int, ...], keepdims: bool, p: float) -> Any:
    out = _real_dtype(x.dtype)
    if x.dtype.kind in "biu":
        x = cast_to(x, _DOUBLE)
    options: Any = {"axis": axes, "keepdims": keepdims}
    if p == math.inf:
        if not x.size:  # the largest of no entries is 0, as their sum is
            return cast_to(verbs.sum(verbs.abs(x), **options), out)
        return verbs.max(verbs.abs(x), **options)
    if p == -math.inf:
        return verbs.min(verbs.abs(x), **options)
    if p == 0:
        return cast_to(verbs.count_nonzero(x, **options), out)
    if p == 1 and out == _DOUBLE:
        return verbs.sum(verbs.abs(x), **options)
    if out.itemsize < _DOUBLE.itemsize:
        wide = cast_to(x, np.dtype(np.complex128) if x.dtype.kind == "c" else _DOUBLE)
        return cast_to(_power_sum(wide, options, p), out)
    result = computed(_power_sum(x, options, p))
    if x.size and x.place.kind == "traced":
        return _recorded(x, axes, options, p, result)
    return _rescaled(x, axes, options, p, result) if x.size and _left_the_range(result, p) else result


# Up to this size norms in compiled programs are computed by the careful way without a look at the plain one.
_SMALL_NORM = 1 << 14


def _recorded(x: Any, axes: tuple[int, ...], options: Any, p: float, plain: Any) -> Any:
    """The norm in a program, which finds out when it runs whether the plain way has left the range."""
    if x.size <= _SMALL_NORM:
        return _rescaled(x, axes, options, p, plain)
    from mirabelle.arraytypes.programs.controlflow import cond  # which stands on this module

    edge = _edge(plain.dtype, p)
    low, high = (plain < edge, plain == math.inf) if p > 0 else (plain > edge, plain == 0)
    left = verbs.any(verbs.logical_or(low, high))
    return cond(left, lambda x, n: _rescaled(x, axes, options, p, n), lambda x, n: n, x, plain)


def _power_sum(x: Any, options: Any, p: float) -> Any:
    """The p-th root of the sum of p-th powers, as it is written."""
    if p == 2:
        if x.dtype.kind == "f" and len(options["axis"]) == x.ndim and not options["keepdims"]:
            return verbs.norm(x)
        return verbs.sqrt(verbs.sum(_squares(x), **options))
    if p == 1:
        return verbs.sum(verbs.abs(x), **options)
    return verbs.pow(verbs.sum(verbs.pow(verbs.abs(x), float(p)), **options), 1.0 / float(p))


def _squares(x: Any) -> Any:
    """The squares of absolute values, without a root on the way."""
    if x.dtype.kind == "c":
        return verbs.add(verbs.square(verbs.real(x)), verbs.square(verbs.imag(x)))
    return verbs.square(x)


def _left_the_range(norm: Any, p: float) -> bool:
    """Has the sum of powers behind a norm become infinite, or so small that digits are lost?"""
    edge = _edge(norm.dtype, p)
    if not norm.ndim and not norm.carries_derivatives:
        value = float(norm)
        return value < edge or value == math.inf if p > 0 else value > edge or value == 0
    if p > 0:
        return bool(verbs.any(verbs.logical_or(norm < edge, norm == math.inf)))
    return bool(verbs.any(verbs.logical_or(norm > edge, norm == 0)))


@functools.lru_cache(maxsize=64)
def _edge(dtype: np.dtype, p: float) -> float:
    """The norm whose p-th power is the smallest that has all its digits."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        return float(np.power(info.tiny / info.eps, 1 / p, dtype=np.float64))


def _rescaled(x: Any, axes: tuple[int, ...], options: Any, p: float, plain: Any) -> Any:
    """The norm of elements divided by the size of the largest (of negative orders, the smallest)."""
    size = verbs.abs(x)
    pick = verbs.max if p > 0 else verbs.min
    scale = pick(size, axis=axes, keepdims=True)
    usable = verbs.logical_and(scale > 0, verbs.isfinite(scale))
    _, exponent = verbs.frexp(scale)  # powers of two: dividing by them rounds nothing
    safe = verbs.where(usable, verbs.ldexp(1.0, verbs.subtract(exponent, 1)), 1.0)
    # (Not a division: this keeps the zeros of structured matrices.)
    shifted = verbs.ldexp(size, verbs.where(usable, verbs.subtract(1, exponent), 0))
    scaled = _power_sum(shifted, options, p)
    if not options["keepdims"]:
        shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
        safe, usable = verbs.reshape(safe, shape), verbs.reshape(usable, shape)
    return computed(verbs.where(usable, verbs.multiply(scaled, safe), plain))


@array_function
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two dimensions.

    `ord` is "fro" (of all entries), "nuc" (the sum of singular values), 2 and -2 (the largest and the
    smallest), 1 and -1 (of the sums of absolute values down columns), inf and -inf (along rows).

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    ord : number or str, default 'fro'
        Which norm, as in `np.linalg.norm`.

    Returns
    -------
    array
        Real, of the precision of `x`, float64 of integers. Of the shape of `x` without its last two axes
        (of length 1 with `keepdims`).

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.matrix_norm(mb.HostArray([[1.0, -2.0], [3.0, 4.0]]), ord=1))
    6.0
    """
    check_matrices("matrix_norm", x)
    return _matrix_norm(x, (x.ndim - 2, x.ndim - 1), bool(keepdims), ord)


def _matrix_norm(x: Any, axes: tuple[int, int], keepdims: bool, ord: Any) -> Any:
    rows, columns = axes
    if ord == "fro":
        return _vector_norm(x, tuple(sorted(axes)), keepdims, 2)
    if ord in ("nuc", 2, -2):
        from mirabelle.arraytypes.functions.decompositions import svdvals

        rest = tuple(d for d in range(x.ndim) if d not in axes)
        s = svdvals(verbs.permute_dims(x, (*rest, rows, columns)))
        if not s.shape[-1] and ord != -2:
            result = verbs.sum(s, axis=-1)
        else:
            result = {"nuc": verbs.sum, 2: verbs.max, -2: verbs.min}[ord](s, axis=-1)
        return standing_alone(verbs.reshape(result, _kept(x.shape, axes))) if keepdims else result
    if ord in (1, -1, math.inf, -math.inf):
        size = verbs.abs(x if x.dtype.kind in "fc" else cast_to(x, _DOUBLE))
        summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = verbs.sum(size, axis=summed, keepdims=keepdims)
        left = other if keepdims or summed > other else other - 1
        # The largest of no entries is 0, as their sum is.
        pick = verbs.sum if not x.shape[other] and ord > 0 else verbs.max if ord > 0 else verbs.min
        return pick(sums, axis=left, keepdims=keepdims)
    raise ValueError(
        f'matrix_norm: ord is "fro", "nuc", 1, -1, 2, -2, inf or -inf; not {ord!r}. For the norm of all '
        "entries with another order: mb.linalg.vector_norm(x, ord=p)."
    )


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


@array_function
def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a matrix, a vector, or of those along one or two axes.

    Without `ord`, the root of the sum of squares of all elements.

    Parameters
    ----------
    x : array
        A matrix or a vector.
    ord : number or str
        Which norm, as in `np.linalg.norm`.
    axis : int, pair of int or None
        Along one axis the norm of vectors, along two that of matrices; None is the whole array.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Real, of the precision of `x`, float64 of integers. Of the shape of `x` without the axes in `axis`
        (of length 1 with `keepdims`), so without axes if that is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[3.0, 4.0], [0.0, 12.0]])
    >>> print(mb.linalg.norm(x), mb.linalg.norm(x, axis=1), mb.linalg.norm(x, ord=1))
    13.0 [ 5. 12.] 16.0
    """
    if axis is None:
        if ord is None:
            return _vector_norm(x, tuple(range(x.ndim)), bool(keepdims), 2)
        if x.ndim not in (1, 2):
            raise ValueError(
                f"norm: with an order, say along which axes of this {x.ndim}-dimensional array the vectors or "
                "matrices lie: axis=-1, or axis=(-2, -1)."
            )
        axis = tuple(range(x.ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(given) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: {ord!r} is a norm of matrices; a vector has numbers, inf and -inf.")
        return _vector_norm(x, normal_axes(given, x.ndim), bool(keepdims), 2 if ord is None else _order(ord))
    if len(given) != 2:
        raise ValueError(f"norm: one axis gives norms of vectors, two of matrices; these are {len(given)}.")
    axes = (normal_axes(given[0], x.ndim)[0], normal_axes(given[1], x.ndim)[0])
    if axes[0] == axes[1]:
        raise ValueError("norm: the two axes must be different.")
    return _matrix_norm(x, axes, bool(keepdims), "fro" if ord is None else ord)
