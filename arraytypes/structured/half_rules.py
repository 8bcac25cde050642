"""Reductions of matrices of which one half counts: without a look at the other, where the matrix is large.

>>> import mirabelle as mb
>>> x = mb.HostArray([[1.0, 2.0], [99.0, 4.0]])
>>> print(mb.sum(mb.Symmetric(x)), mb.linalg.norm(mb.Symmetric(x)), mb.sum(mb.UpperTriangular(x), axis=0))
9.0 5.0 [1. 6.]
"""

from __future__ import annotations

import math
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.functions import norms
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import band
from mirabelle.arraytypes.structured.base import open_grid
from mirabelle.arraytypes.structured.implicit import Ones
from mirabelle.arraytypes.structured.mirrored import Mirrored
from mirabelle.arraytypes.structured.triangular import Triangular
from mirabelle.dispatch import verbs

# From this order on reading the mirror image, across lines of memory, takes longer than another launch.
LARGE = 512


def _stored(x: Mirrored, diagonal: bool) -> Any:
    """Where the half that is stored is, with the diagonal or without it."""
    i, j = open_grid(x)
    if x.uplo == "L":
        i, j = j, i
    return verbs.less_equal(i, j) if diagonal else verbs.less(i, j)


@verbs.reduce_.method
def _(
    x: Mirrored | Triangular, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    axes, name, part = normal_axes(axis, 2), reduction.name, x.parts[0]
    large = x.shape[0] >= LARGE and not x.carries_derivatives and reduction.scalar is None
    sums = large and name == "sum" and axes and dtype in (None, x.dtype) and x.dtype.char in "fdFD"
    out = None
    if sums and x.place.kind == "host" and getattr(part, "evaluated", True):
        # A product with ones, for which there is BLAS.
        ones = verbs.dense(Ones(x.shape[0], dtype=x.dtype, device=x.family))
        out = verbs.matmul(ones, x) if axes[0] == 0 else verbs.matmul(x, ones)
        out = out if len(axes) == 1 else verbs.sum(out)
    elif large and isinstance(x, Mirrored) and len(axes) == 2 and sums:
        beside = verbs.sum(verbs.where(_stored(x, False), part, x.dtype.type(0)))
        beside = verbs.add(beside, verbs.conj(beside) if x.hermitian else beside)
        out = verbs.add(beside, verbs.sum(band(x)))
    elif large and isinstance(x, Mirrored) and len(axes) == 2 and name in ("min", "max") and not x.hermitian:
        out = verbs.reduce_(verbs.where(_stored(x, True), part, reduction.neutral(x.dtype)), reduction)
    if out is None:
        return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    return verbs.reshape(out, [1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims else out


_of_any = norms.norm.core.resolve((AbstractArray,)).implementation


@norms.norm.method
def _(x: Mirrored, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if ord not in (None, "fro") or axes != (0, 1) or x.shape[0] < LARGE or x.carries_derivatives:
        return _of_any(x, ord=ord, axis=axis, keepdims=keepdims)
    out = _in_halves(norms.norm, x)
    return verbs.reshape(out, (1, 1)) if keepdims else out


_of_all = verbs.norm.core.resolve((AbstractArray,)).implementation


@verbs.norm.method
def _(x: Mirrored, p: Any = 2) -> Any:
    if p != 2 or x.shape[0] < LARGE or x.carries_derivatives:
        return _of_all(x, p)
    return _in_halves(verbs.norm, x)


def _in_halves(norm: Any, x: Mirrored) -> Any:
    """The root of the sum of the squares, of which those beside the diagonal are there twice."""
    beside = norm(verbs.where(_stored(x, False), x.parts[0], x.dtype.type(0)))
    return verbs.hypot(norm(band(x)), verbs.multiply(beside, math.sqrt(2)))
