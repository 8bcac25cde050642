"""Linear algebra of matrices with one value everywhere, which have rank one or none.

>>> import mirabelle as mb
>>> x = mb.Fill((1000, 1000), 2.0)
>>> print(mb.linalg.det(x), mb.linalg.matrix_rank(x), mb.linalg.matrix_norm(x, ord=2))
0.0 1 2000.0
>>> mb.linalg.matrix_power(x, 2)
Fill[HostArray[float64, 2]](4000.0, shape=(1000, 1000))
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, solving
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_matrices, check_square, inexact, singular
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.structured.base import Structured, zeros
from mirabelle.arraytypes.structured.implicit import Fill, filled
from mirabelle.dispatch import verbs


def _matrix(name: str, x: Fill, square: bool = True) -> Any:
    (check_square if square else check_matrices)(name, x)
    return inexact(name, x)[0]


def _like(x: Fill, value: Any) -> Any:
    """A value as an array of no dimensions where `x` is."""
    return verbs.copy(filled(x.family, (), np.asarray(value, x.dtype)[()]).scalar)


@solving.det.method
def _(x: Fill) -> Any:
    if x.ndim != 2:
        return solving.det(verbs.dense(x))
    x, n = _matrix("det", x), x.shape[0]
    return verbs.copy(x.scalar) if n == 1 else _like(x, int(not n))


@solving.slogdet.method
def _(x: Fill) -> Any:
    if x.ndim != 2:
        return SlogdetResult(*solving.slogdet(verbs.dense(x)))
    d = solving.det(x)
    size = verbs.abs(d)
    return SlogdetResult(
        verbs.where(size > 0, verbs.divide(d, verbs.where(size > 0, size, 1)), d), verbs.log(size)
    )


@solving.solve.method
def _(x1: Fill, x2: AbstractArray) -> Any:
    if x1.ndim != 2 or x1.shape[0] < 2:
        return solving.solve(verbs.dense(x1), verbs.dense(x2) if isinstance(x2, Structured) else x2)
    check_square("solve", x1)
    check_system("solve", x1, x2)
    join_families("solve", (x1, x2))
    raise LinAlgError(singular("solve"))


@solving.inv.method
def _(x: Fill) -> Any:
    if x.ndim != 2 or x.shape[0] < 2:
        return solving.inv(verbs.dense(x))
    _matrix("inv", x)
    raise LinAlgError(singular("inv"))


@decompositions.svdvals.method
def _(x: Fill) -> Any:
    if x.ndim != 2:
        return decompositions.svdvals(verbs.dense(x))
    x = _matrix("svdvals", x, square=False)
    s = verbs.multiply(verbs.abs(x.scalar), math.sqrt(x.size))
    made = zeros(x.family, (min(x.shape),), s.dtype)
    if made.size:
        verbs.assign(made[:1], s)
    return made


@decompositions.eigvals.method
def _(x: Fill) -> Any:
    if x.ndim != 2:
        return decompositions.eigvals(verbs.dense(x))
    x = _matrix("eigvals", x)
    made = zeros(x.family, (x.shape[0],), np.result_type(x.dtype, np.complex64))
    if made.size:
        verbs.assign(made[:1], verbs.multiply(x.scalar, x.shape[0]))
    return made


@solving.matrix_rank.method
def _(x: Fill, *, rtol: Any = None, tol: Any = None, hermitian: bool = False) -> Any:
    if x.ndim != 2 or not x.size or tol is not None or rtol is not None:
        return solving.matrix_rank(verbs.dense(x), rtol=rtol, tol=tol, hermitian=hermitian)
    return verbs.astype(verbs.not_equal(_matrix("matrix_rank", x, square=False).scalar, 0), np.int64)


@solving.pinv.method
def _(x: Fill, *, rtol: Any = None, hermitian: bool = False) -> Any:
    if x.ndim != 2 or not x.size or rtol is not None:
        return solving.pinv(verbs.dense(x), rtol=rtol, hermitian=hermitian)
    x = _matrix("pinv", x, square=False)
    value = x.scalar
    there = verbs.not_equal(value, 0)
    inverse = verbs.divide(1.0, verbs.multiply(verbs.where(there, value, 1), float(x.size)))
    return filled(x.family, x.shape[::-1], verbs.where(there, inverse, 0))


@chains.matrix_power.method
def _(x: Fill, n: Any) -> Any:
    n = operator.index(n)
    if x.ndim != 2 or n < 1 or x.shape[0] != x.shape[1]:
        return chains.matrix_power(verbs.dense(x), n)
    count = x.shape[0]
    if x.known is not None:
        with np.errstate(all="ignore"):
            return filled(x.family, x.shape, (x.known**n * x.dtype.type(count) ** (n - 1)).astype(x.dtype))
    value = verbs.multiply(verbs.pow(x.scalar, n), verbs.pow(_like(x, count), n - 1))
    return filled(x.family, x.shape, value)
