"""Linear algebra of Kronecker sums.

The eigenvalues of A ⊕ B are all sums of one of A and one of B, its eigenvectors the products of theirs;
the exponential is the Kronecker product of the exponentials. Systems are solved in the eigenvectors of
symmetric factors, else in Schur's form of each factor (Sylvester's equation, for two).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import cast_to, join_families
from mirabelle.arraytypes.functions import (
    decompositions,
    matrices,
    matrixfunctions,
    norms,
    solving,
    sorting,
)
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.decompositions import EigResult
from mirabelle.arraytypes.functions.factorizations import signs_and_logs
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    adjoint,
    check_square,
    identity_like,
    inexact,
    singular,
)
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import band
from mirabelle.arraytypes.structured.base import Structured, open_grid
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.kronecker import combined, kronecker, multiplied
from mirabelle.arraytypes.structured.kronecker_reductions import norm_of_matrix
from mirabelle.arraytypes.structured.kronecker_rules import in_ascending_order, of_factor, rank_of_values
from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum
from mirabelle.dispatch import verbs

# Eigenvalues


@decompositions.eigvals.method
def _(x: KroneckerSum) -> Any:
    return combined(verbs.add, [decompositions.eigvals(p) for p in x.parts])


@decompositions.eig.method
def _(x: KroneckerSum) -> Any:
    found = [of_factor(decompositions.eig, p) for p in x.parts]
    values = combined(verbs.add, [f.eigenvalues for f in found])
    return EigResult(values, kronecker(*[f.eigenvectors for f in found]))


@decompositions.eigvalsh.method
def _(x: KroneckerSum, *, UPLO: str = "L") -> Any:
    return sorting.sort(combined(verbs.add, [decompositions.eigvalsh(p, UPLO=UPLO) for p in x.parts]))


@decompositions.eigh.method
def _(x: KroneckerSum, *, UPLO: str = "L") -> Any:
    return in_ascending_order(verbs.add, [of_factor(decompositions.eigh, p, UPLO=UPLO) for p in x.parts])


@matrixfunctions.expm.method
def _(A: KroneckerSum) -> Any:
    return kronecker(*[of_factor(matrixfunctions.expm, p) for p in A.parts])


def _real_again(x: Any, dtype: np.dtype) -> Any:
    return x if dtype.kind == "c" else verbs.real(x)


@solving.slogdet.method
def _(x: KroneckerSum) -> Any:
    (x,) = inexact("slogdet", x)
    found = signs_and_logs(decompositions.eigvals(x))
    return SlogdetResult(_real_again(found.sign, x.dtype), found.logabsdet)


@solving.det.method
def _(x: KroneckerSum) -> Any:
    (x,) = inexact("det", x)
    return _real_again(verbs.prod(decompositions.eigvals(x)), x.dtype)


@matrices.trace.method
def _(x: KroneckerSum, *, offset: int = 0, dtype: Any = None) -> Any:
    return verbs.sum(band(x, offset), dtype=dtype)


# Singular values, which are known where the matrices are Hermitian


def _singular_values(x: KroneckerSum) -> Any:
    """The absolute eigenvalues of a Hermitian sum, in no order; None for others."""
    (x,) = inexact("svdvals", x)
    if not all(is_hermitian(p) for p in x.parts):
        return None
    return verbs.abs(combined(verbs.add, [decompositions.eigvalsh(p) for p in x.parts]))


@decompositions.svdvals.method
def _(x: KroneckerSum) -> Any:
    values = _singular_values(x)
    if values is None:
        return decompositions.svdvals(made_dense(x))
    return sorting.sort(values, descending=True)


@solving.matrix_rank.method
def _(x: KroneckerSum, *, rtol: Any = None, tol: Any = None, hermitian: bool = False) -> Any:
    values = _singular_values(x)
    if values is None:
        return solving.matrix_rank(made_dense(x), rtol=rtol, tol=tol, hermitian=hermitian)
    return rank_of_values(values, x.shape, rtol, tol)


@solving.cond.method
def _(x: KroneckerSum, p: Any = None) -> Any:
    values = _singular_values(x) if p in (None, 2, -2) and x.size else None
    if values is None:
        return solving.cond(made_dense(x), p)
    large, small = verbs.max(values), verbs.min(values)
    return verbs.divide(small, large) if p == -2 else verbs.divide(large, small)


# Solving


@solving.solve.method
def _(x1: KroneckerSum, x2: AbstractArray) -> Any:
    check_square("solve", x1)
    check_system("solve", x1, x2)
    join_families("solve", (x1, x2))
    a, b = inexact("solve", x1, verbs.dense(x2) if isinstance(x2, Structured) else x2)
    if not b.size:
        return verbs.copy(b)
    if a.carries_derivatives:  # eigenvectors, which may be of equal values, are no way to derivatives
        from mirabelle.arraytypes.duals.solving import by_products

        return by_products(a, b)
    axis = max(0, b.ndim - 2)
    grid = verbs.reshape(b, (*b.shape[:axis], *a.rows, *b.shape[axis + 1 :]))
    if all(is_hermitian(p) for p in a.parts):
        made = _in_eigenvectors(a, grid, axis)
    else:
        flat = verbs.reshape(grid, (math.prod(b.shape[:axis]), *a.rows, math.prod(b.shape[axis + 1 :])))
        parts = [verbs.dense(p) for p in a.parts]
        try:
            made = library.call("kronecker_sum_solve", parts, flat)
        except np.linalg.LinAlgError:
            raise LinAlgError(singular("solve")) from None
    return standing_alone(verbs.reshape(made, b.shape))


def is_hermitian(p: Any) -> bool:
    """Is a matrix its own adjoint, entry by entry?"""
    if isinstance(p, Structured):
        known = p.structure
        if known.hermitian or (known.symmetric and p.dtype.kind != "c"):
            return True
        p = verbs.dense(p)
    return bool(verbs.all(verbs.equal(p, adjoint(p))))


def _in_eigenvectors(a: KroneckerSum, x: Any, axis: int) -> Any:
    found = [of_factor(decompositions.eigh, p) for p in a.parts]
    values = combined(verbs.add, [f.eigenvalues for f in found])
    size = verbs.abs(values)
    if bool(verbs.min(size) <= verbs.max(size) * float(np.finfo(values.dtype).eps)):
        raise LinAlgError(singular("solve"))
    for k, f in enumerate(found):
        x = multiplied(adjoint(f.eigenvectors), x, axis + k)
    shape = (*(1,) * axis, *a.rows, *(1,) * (x.ndim - axis - len(found)))
    x = verbs.divide(x, verbs.reshape(values, shape))
    for k, f in enumerate(found):
        x = multiplied(f.eigenvectors, x, axis + k)
    return x


@solving.inv.method
def _(x: KroneckerSum) -> Any:
    (x,) = inexact("inv", x)
    try:
        return solving.solve(x, identity_like(x, x.shape[0]))
    except LinAlgError:
        raise LinAlgError(singular("inv")) from None


# Norms. Off the diagonal every entry belongs to one factor, which shows it as often as the others
# have rows; the diagonal is the sum of the diagonals.


def _hollow(p: Any) -> Any:
    """The absolute values of a matrix, with zeros on the diagonal: pending, and fused."""
    size = verbs.abs(verbs.dense(p))
    i, j = open_grid(p)
    return verbs.where(verbs.equal(i, j), size.dtype.type(0), size)


def _repeats(x: KroneckerSum) -> list[int]:
    return [x.shape[0] // p.shape[0] for p in x.parts]


def entrywise_norm(x: KroneckerSum, p: float) -> Any:
    """The norm of all entries, for a positive order."""
    pieces = [norms.vector_norm(_hollow(part), ord=p) for part in x.parts]
    diagonal = norms.vector_norm(band(x), ord=p)
    if p == math.inf:
        return functools.reduce(verbs.maximum, [*pieces, diagonal])
    scaled = [verbs.multiply(f, float(n) ** (1 / p)) for f, n in zip(pieces, _repeats(x), strict=True)]
    # As a norm of norms, nothing overflows on the way.
    stacked = functools.reduce(lambda a, b: _pair_norm(a, b, p), [*scaled, diagonal])
    return cast_to(stacked, diagonal.dtype)


def _pair_norm(a: Any, b: Any, p: float) -> Any:
    if p == 2:
        return verbs.hypot(a, b)
    if p == 1:
        return verbs.add(a, b)
    large, small = verbs.maximum(a, b), verbs.minimum(a, b)
    share = verbs.divide(small, verbs.where(verbs.equal(large, 0), 1, large))
    return verbs.multiply(large, verbs.pow(verbs.add(verbs.pow(share, p), 1), 1 / p))


@verbs.norm.method
def _(x: KroneckerSum, p: Any = 2) -> Any:
    if p > 0 and x.size:
        return entrywise_norm(x, p)
    return verbs.norm(made_dense(x), p)


@norms.vector_norm.method
def _(x: KroneckerSum, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if len(normal_axes(axis, 2)) != 2 or not ord > 0 or not x.size:
        return norms.vector_norm(made_dense(x), axis=axis, keepdims=keepdims, ord=ord)
    out = entrywise_norm(x, ord)
    return verbs.reshape(out, (1, 1)) if keepdims else out


@norms.matrix_norm.method
def _(x: KroneckerSum, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    out: Any = None
    if x.size and ord == "fro":
        out = entrywise_norm(x, 2)
    elif x.size and ord in (2, -2, "nuc"):
        values = _singular_values(x)
        if values is not None:
            out = {2: verbs.max, -2: verbs.min, "nuc": verbs.sum}[ord](values)
    elif x.size and ord in (1, -1, math.inf, -math.inf):
        axis = 0 if abs(ord) == 1 else 1
        beside = combined(verbs.add, [verbs.sum(_hollow(p), axis=axis) for p in x.parts])
        sums = verbs.add(beside, verbs.abs(band(x)))
        out = verbs.max(sums) if ord > 0 else verbs.min(sums)
    if out is None:
        return norms.matrix_norm(made_dense(x), keepdims=keepdims, ord=ord)
    return verbs.reshape(out, (1, 1)) if keepdims else out


@norms.norm.method
def _(x: KroneckerSum, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm_of_matrix(x, ord, axis, keepdims)
