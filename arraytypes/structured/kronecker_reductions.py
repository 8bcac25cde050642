"""Reductions and norms of Kronecker products: those of the factors, multiplied.

The sum over all entries is the product of the sums, along an axis it is their Kronecker product; so it
is with entrywise norms of any order, with the norms of operators and with those of singular values.

>>> import mirabelle as mb
>>> K = mb.kronecker(mb.HostArray([[1.0, -2.0]]), mb.HostArray([[3.0, 4.0]]))
>>> print(mb.sum(K), mb.max(K), mb.linalg.norm(K, ord=1), mb.sum(K, axis=0))
-7.0 4.0 8.0 [ 3.  4. -6. -8.]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.functions import matrices, norms, turning
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import REDUCTIONS, correction_of, normal_axes
from mirabelle.arraytypes.structured.banded import band
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.kronecker import Kronecker, combined
from mirabelle.dispatch import verbs


def product(values: Any) -> Any:
    """The product of numbers that are arrays of no dimensions."""
    return functools.reduce(verbs.multiply, values)


def by_factors(
    x: Any, axes: tuple[int, ...], keepdims: bool, of: Callable[[Any], Any], op: Any = verbs.multiply
) -> Any:
    """What reduces a Kronecker product, given what reduces a factor along the same axes."""
    found = [of(p) for p in x.parts]
    out = functools.reduce(op, found) if len(axes) == 2 else combined(op, found)
    if not keepdims:
        return out
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))


@verbs.reduce_.method
def _(x: Kronecker, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    name = reduction.name
    rule = _RULES.get(name) if axes and x.size else None
    if dtype is not None and rule is not None:
        d = checked_dtype(dtype)
        if d == np.bool_ or np.can_cast(x.dtype, d, "same_kind"):
            x = x._made(*[verbs.astype(p, d, copy=False) for p in x.parts])
        else:
            rule = None
    if rule is None or (name in ("min", "max") and x.dtype.kind == "c"):
        return verbs.reduce_(made_dense(x), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    return rule(x, reduction, axes, keepdims)


def _multiplied(x: Any, reduction: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Sums; and whether all, or any, entries are true: if all, or any, of each factor are."""

    def of(p: Any) -> Any:
        return verbs.reduce_(p, reduction, axis=axes, dtype=p.dtype)

    return by_factors(x, axes, keepdims, of)


def _powers(x: Any, reduction: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Products: each entry of a factor comes as often as the others have entries."""
    count = math.prod(x.shape[a] for a in axes)

    def of(p: Any) -> Any:
        times = count // math.prod(p.shape[a] for a in axes)
        return verbs.pow(verbs.reduce_(p, reduction, axis=axes, dtype=p.dtype), times)

    return by_factors(x, axes, keepdims, of)


def _extremes(x: Any, reduction: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The largest or smallest: a product of the largest and smallest of the factors."""
    options: Any = {"axis": axes}
    low: Any = None
    high: Any = None
    for p in x.parts:
        least, most = (verbs.reduce_(p, REDUCTIONS[name], **options) for name in ("min", "max"))
        if low is None:
            low, high = least, most
            continue
        if len(axes) == 1:
            low, high = verbs.getitem(low, (slice(None), None)), verbs.getitem(high, (slice(None), None))
        ends = [verbs.multiply(a, b) for a in (low, high) for b in (least, most)]
        low, high = functools.reduce(verbs.minimum, ends), functools.reduce(verbs.maximum, ends)
        if len(axes) == 1:
            low, high = verbs.reshape(low, (-1,)), verbs.reshape(high, (-1,))
    out = low if reduction.name == "min" else high
    if not keepdims:
        return out
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))


_RULES: dict[str, Any] = {
    "sum": _multiplied, "any": _multiplied, "all": _multiplied, "prod": _powers, "min": _extremes,
    "max": _extremes,
}  # fmt: skip


@verbs.var.method
def _(
    x: Kronecker, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: Any = None
) -> Any:
    correction = correction_of(correction, ddof)
    axes = normal_axes(axis, 2)
    if not axes or not x.size or x.dtype == np.float16:
        return verbs.var(made_dense(x), axis=axis, correction=correction, keepdims=keepdims)
    # The mean of squares is that about the mean plus the square of the mean, also factor by factor:
    # var(a b) = var(a) (var(b) + mean(b)²) + mean(a)² var(b), in which nothing cancels.
    spread: Any = None
    squared: Any = None
    for p in x.parts:
        v, m = verbs.var(p, axis=axes), verbs.mean(p, axis=axes)
        m2 = verbs.square(verbs.abs(m))
        if spread is None:
            spread, squared = v, m2
        else:
            pair: Any = verbs.multiply if len(axes) == 2 else _outer
            spread = verbs.add(pair(spread, verbs.add(v, m2)), pair(squared, v))
            squared = pair(squared, m2)
    n = math.prod(x.shape[a] for a in axes)
    out = verbs.multiply(spread, n / (n - correction) if n > correction else math.nan)
    return (
        out if not keepdims else verbs.reshape(out, tuple(1 if d in axes else k for d, k in enumerate(x.shape)))
    )


def _outer(u: Any, v: Any) -> Any:
    return combined(verbs.multiply, [u, v])


# Norms


@verbs.norm.method
def _(x: Kronecker, p: Any = 2) -> Any:
    return product([verbs.norm(part, p) for part in x.parts])


@norms.vector_norm.method
def _(x: Kronecker, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    axes = normal_axes(axis, 2)
    if not axes:
        return norms.vector_norm(made_dense(x), axis=axis, keepdims=keepdims, ord=ord)
    return by_factors(x, axes, keepdims, lambda p: norms.vector_norm(p, axis=axes, ord=ord))


@norms.matrix_norm.method
def _(x: Kronecker, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if ord == -2 and not _is_full(x):
        out = verbs.multiply(product([norms.matrix_norm(p, ord=2) for p in x.parts]), 0)
    else:
        out = product([norms.matrix_norm(p, ord=ord) for p in x.parts])
    return verbs.reshape(out, (1, 1)) if keepdims else out


def _is_full(x: Any) -> bool:
    """Has it as many singular values as those of its factors make? Others are zero."""
    return min(x.shape) == math.prod(min(p.shape) for p in x.parts)


@norms.norm.method
def _(x: Kronecker, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm_of_matrix(x, ord, axis, keepdims)


def norm_of_matrix(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's `norm` for a matrix whose vector_norm and matrix_norm have rules."""
    given = (0, 1) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if axis is None and ord is None:
        return norms.vector_norm(x, keepdims=bool(keepdims))
    if len(given) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: {ord!r} is a norm of matrices; a vector has numbers, inf and -inf.")
        return norms.vector_norm(x, axis=given[0], keepdims=bool(keepdims), ord=2 if ord is None else ord)
    if len(given) != 2:
        raise ValueError(f"norm: one axis gives norms of vectors, two of matrices; these are {len(given)}.")
    first, second = (normal_axes(a, 2)[0] for a in given)
    if first == second:
        raise ValueError("norm: the two axes must be different.")
    turned = x if first == 0 else x.T
    return norms.matrix_norm(turned, keepdims=bool(keepdims), ord="fro" if ord is None else ord)


# Traces


@matrices.trace.method
def _(x: Kronecker, *, offset: int = 0, dtype: Any = None) -> Any:
    if offset or dtype is not None or not x.all_square:
        return verbs.sum(band(x, offset), dtype=dtype)
    return product([matrices.trace(p) for p in x.parts])


@turning.trace.method
def _(x: Kronecker, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    if {axis1 % 2, axis2 % 2} != {0, 1}:
        raise ValueError("axis1 and axis2 cannot be the same")
    return into(out, matrices.trace(x, offset=offset if axis1 % 2 == 0 else -offset, dtype=dtype))
