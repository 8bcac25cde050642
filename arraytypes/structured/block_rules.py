"""Linear algebra of block diagonal matrices: block by block.

>>> import mirabelle as mb
>>> A = mb.block_diagonal(mb.HostArray([[2.0, 0.0], [0.0, 4.0]]), [[5.0]])
>>> print(mb.linalg.inv(A))
[[0.5  0.    .  ]
 [0.   0.25  .  ]
 [ .    .   0.2 ]]
>>> print(mb.linalg.svdvals(A), mb.linalg.norm(A, ord=1))
[5. 4. 2.] 5.0
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, matrixfunctions, norms, solving, sorting
from mirabelle.arraytypes.functions.decompositions import EighResult, EigResult, QRResult
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, inexact, singular, working_dtype
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult, check_system
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.base import Structured, zeros
from mirabelle.arraytypes.structured.blocks import BlockDiagonal, joined
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import filled
from mirabelle.arraytypes.structured.kronecker_reductions import norm_of_matrix
from mirabelle.arraytypes.structured.kronecker_rules import padded, rank_of_values
from mirabelle.arraytypes.structured.reordered import reordered
from mirabelle.dispatch import verbs


def _flat(values: Any) -> Any:
    return verbs.reshape(values, (-1,))


def _each(name: str, x: BlockDiagonal, f: Any) -> Any:
    """A function of square matrices that is that of each block."""
    check_square(name, x)
    return x._made(*[f(p) for p in x.parts]) if x.all_square else f(made_dense(x))


def _number(x: Any, dtype: Any, value: float) -> Any:
    return filled(x.family, (), np.dtype(dtype).type(value)).scalar


# Solving


@solving.solve.method
def _(x1: BlockDiagonal, x2: AbstractArray) -> Any:
    check_square("solve", x1)
    check_system("solve", x1, x2)
    join_families("solve", (x1, x2))
    if not x1.all_square:
        raise LinAlgError(singular("solve"))
    if isinstance(x2, BlockDiagonal) and x1._meets(x2):
        pairs = zip(x1.parts, x2.parts, strict=True)
        return x1._made(*[solving.solve(p, q) for p, q in pairs])
    a, b = inexact("solve", x1, verbs.dense(x2) if isinstance(x2, Structured) else x2)
    return a.by_parts(solving.solve, b, max(0, b.ndim - 2))


@solving.inv.method
def _(x: BlockDiagonal) -> Any:
    check_square("inv", x)
    if not x.all_square:
        raise LinAlgError(singular("inv"))
    return _each("inv", x, solving.inv)


@solving.pinv.method
def _(x: BlockDiagonal, *, rtol: Any = None, hermitian: bool = False) -> Any:
    if rtol is None:
        rtol = max(x.shape) * float(np.finfo(working_dtype("pinv", x)).eps)
    # What counts as zero is measured by the largest singular value of all blocks.
    parts = [decompositions.svdvals(p) for p in x.parts]
    largest = functools.reduce(verbs.maximum, [verbs.max(s) for s in parts if s.size])
    made = []
    for p, s in zip(x.parts, parts, strict=True):
        own = verbs.max(s, axis=-1) if s.shape[-1] else verbs.sum(s, axis=-1)
        share = verbs.divide(verbs.multiply(largest, rtol), verbs.where(verbs.equal(own, 0), 1, own))
        made.append(solving.pinv(p, rtol=computed(share)))
    return x._made(*made)


@solving.lstsq.method
def _(a: BlockDiagonal, b: AbstractArray, rcond: Any = None) -> Any:
    check_system("lstsq", a, b)
    x = verbs.matmul(solving.pinv(a, rtol=rcond), b)
    rank = solving.matrix_rank(a, rtol=rcond)
    if a.shape[0] > a.shape[1] and int(rank) == a.shape[1]:
        apart = verbs.subtract(verbs.matmul(a, x), b)
        residuals = verbs.sum(verbs.square(verbs.abs(apart)), axis=0, keepdims=b.ndim == 1)
    else:
        residuals = zeros(a.family, (0,), np.finfo(x.dtype).dtype)
    return LstsqResult(x, residuals, rank, decompositions.svdvals(a))


@solving.det.method
def _(x: BlockDiagonal) -> Any:
    check_square("det", x)
    if not x.all_square:
        return _number(x, working_dtype("det", x), 0)
    return functools.reduce(verbs.multiply, [verbs.prod(solving.det(p)) for p in x.parts])


@solving.slogdet.method
def _(x: BlockDiagonal) -> Any:
    check_square("slogdet", x)
    if not x.all_square:
        dtype = working_dtype("slogdet", x)
        return SlogdetResult(_number(x, dtype, 0), _number(x, np.finfo(dtype).dtype, -math.inf))
    found = [solving.slogdet(p) for p in x.parts]
    sign = functools.reduce(verbs.multiply, [verbs.prod(f.sign) for f in found])
    return SlogdetResult(sign, functools.reduce(verbs.add, [verbs.sum(f.logabsdet) for f in found]))


# Values


def _all_svdvals(x: BlockDiagonal) -> Any:
    return joined([_flat(decompositions.svdvals(p)) for p in x.parts])


@decompositions.svdvals.method
def _(x: BlockDiagonal) -> Any:
    return padded(sorting.sort(_all_svdvals(x), descending=True), min(x.shape))


@solving.matrix_rank.method
def _(x: BlockDiagonal, *, rtol: Any = None, tol: Any = None, hermitian: bool = False) -> Any:
    return rank_of_values(_all_svdvals(x), x.shape, rtol, tol)


@solving.cond.method
def _(x: BlockDiagonal, p: Any = None) -> Any:
    if p in (None, 2, -2):
        s = decompositions.svdvals(x)
        return verbs.divide(s[0], s[-1]) if p != -2 else verbs.divide(s[-1], s[0])
    check_square("cond", x)
    if not x.all_square:
        return _number(x, np.finfo(working_dtype("cond", x)).dtype, math.inf)
    try:
        inverse = solving.inv(x)
    except LinAlgError:
        return _number(x, np.finfo(working_dtype("cond", x)).dtype, math.inf)
    return verbs.multiply(norms.matrix_norm(x, ord=p), norms.matrix_norm(inverse, ord=p))


@decompositions.eigvals.method
def _(x: BlockDiagonal) -> Any:
    check_square("eigvals", x)
    if not x.all_square:
        return decompositions.eigvals(made_dense(x))
    return joined([_flat(decompositions.eigvals(p)) for p in x.parts])


@decompositions.eigvalsh.method
def _(x: BlockDiagonal, *, UPLO: str = "L") -> Any:
    check_square("eigvalsh", x)
    if not x.all_square:
        return decompositions.eigvalsh(made_dense(x), UPLO=UPLO)
    return sorting.sort(joined([_flat(decompositions.eigvalsh(p, UPLO=UPLO)) for p in x.parts]))


@decompositions.eig.method
def _(x: BlockDiagonal) -> Any:
    check_square("eig", x)
    if not x.all_square:
        return decompositions.eig(made_dense(x))
    found = [decompositions.eig(p) for p in x.parts]
    values = joined([_flat(f.eigenvalues) for f in found])
    return EigResult(values, x._made(*[f.eigenvectors for f in found]))


@decompositions.eigh.method
def _(x: BlockDiagonal, *, UPLO: str = "L") -> Any:
    check_square("eigh", x)
    if not x.all_square:
        return decompositions.eigh(made_dense(x), UPLO=UPLO)
    found = [decompositions.eigh(p, UPLO=UPLO) for p in x.parts]
    values = joined([_flat(f.eigenvalues) for f in found])
    order = computed(sorting.argsort(values))
    return EighResult(values[order], reordered(x._made(*[f.eigenvectors for f in found]), order, 1))


# Norms


def _norm_of_norms(x: BlockDiagonal, p: Any) -> Any:
    found = [norms.vector_norm(part, ord=p) for part in x.parts]
    return norms.vector_norm(joined([verbs.reshape(f, (1,)) for f in found]), ord=p)


@verbs.norm.method
def _(x: BlockDiagonal, p: Any = 2) -> Any:
    return _norm_of_norms(x, p) if p > 0 and x.size else verbs.norm(made_dense(x), p)


@norms.vector_norm.method
def _(x: BlockDiagonal, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    axes = normal_axes(axis, 2)
    if not axes or not ord > 0 or not x.size:
        return norms.vector_norm(made_dense(x), axis=axis, keepdims=keepdims, ord=ord)
    if len(axes) == 2:
        out = _norm_of_norms(x, ord)
    else:
        found = [norms.vector_norm(p, axis=p.ndim - 2 + axes[0], ord=ord) for p in x.parts]
        out = joined([_flat(f) for f in found])
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else out


@norms.matrix_norm.method
def _(x: BlockDiagonal, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if ord == -2:
        out = verbs.min(decompositions.svdvals(x))
    elif ord in ("fro", 1, -1, 2, "nuc", math.inf, -math.inf) and all(p.size for p in x.parts):
        of_parts = [norms.matrix_norm(p, ord=ord) for p in x.parts]
        found = joined([verbs.reshape(f, (-1,)) for f in of_parts])
        if ord == "fro":
            out = norms.vector_norm(found)
        elif ord == "nuc":
            out = verbs.sum(found)
        else:
            out = verbs.max(found) if ord > 0 else verbs.min(found)
    else:
        return norms.matrix_norm(made_dense(x), keepdims=keepdims, ord=ord)
    return verbs.reshape(out, (1, 1)) if keepdims else out


@norms.norm.method
def _(x: BlockDiagonal, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm_of_matrix(x, ord, axis, keepdims)


# Factors and functions


@decompositions.cholesky.method
def _(x: BlockDiagonal, *, upper: bool = False) -> Any:
    return _each("cholesky", x, lambda p: decompositions.cholesky(p, upper=upper))


@decompositions.qr.method
def _(x: BlockDiagonal, *, mode: str = "reduced") -> Any:
    tall, wide = (all(op(m, n) for _, m, n in x.blocks) for op in (operator.ge, operator.le))
    if mode not in ("reduced", "complete", "r") or not (wide or (tall and mode != "complete")):
        return decompositions.qr(made_dense(x), mode=mode)
    if mode == "r":
        return x._made(*[decompositions.qr(p, mode="r") for p in x.parts])
    found = [decompositions.qr(p, mode=mode) for p in x.parts]
    return QRResult(x._made(*[f.Q for f in found]), x._made(*[f.R for f in found]))


for _function in (matrixfunctions.expm, matrixfunctions.logm, matrixfunctions.sqrtm):

    def _rule(A: Any, f: Any = _function) -> Any:
        return _each(f.__name__, A, f)

    _rule.__name__ = _function.__name__
    _function.method(_rule, signature=(BlockDiagonal,))


@chains.matrix_power.method
def _(x: BlockDiagonal, n: Any) -> Any:
    n = operator.index(n)
    return _each("matrix_power", x, lambda p: chains.matrix_power(p, n))
