"""Singular values, ranks, condition numbers and factors of structured matrices, from what is stored.

>>> import mirabelle as mb
>>> B = mb.Bidiagonal([3.0, 2.0], [1.0])
>>> print(mb.around(mb.linalg.svdvals(B), 4), mb.linalg.matrix_rank(mb.Diagonal([1.0, 0.0])))
[3.2566 1.8424] 1
>>> T = mb.Tridiagonal([1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0])
>>> type(mb.linalg.cholesky(T)).__name__.split("[")[0], mb.linalg.cond(mb.Diagonal([2.0, 8.0])).item()
('Bidiagonal', 4.0)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, computed
from mirabelle.arraytypes.functions import chains, decompositions, norms, solving, sorting
from mirabelle.arraytypes.functions.decompositions import EigResult, QRResult, SVDResult
from mirabelle.arraytypes.functions.lapack import LinAlgError, adjoint, check_square, inexact, refusing
from mirabelle.arraytypes.functions.solving import check_system
from mirabelle.arraytypes.structured.banded import (
    Banded,
    Bidiagonal,
    Diagonal,
    Identity,
    Tridiagonal,
    band,
    from_bands,
)
from mirabelle.arraytypes.structured.base import Structured, zeros
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import Fill, Ones
from mirabelle.arraytypes.structured.mirrored import Mirrored, read_half
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.arraytypes.structured.toeplitz import Circulant
from mirabelle.arraytypes.structured.triangular import Triangular, UpperTriangular
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import verbs

# Singular values


@decompositions.svdvals.method
def _(x: Bidiagonal) -> Any:
    (x,) = inexact("svdvals", x)
    beside = x.parts[1]
    return refusing("svdvals", "bidiagonal_svdvals", verbs.abs(band(x)), verbs.abs(beside))


@decompositions.svdvals.method
def _(x: Mirrored) -> Any:
    (x,) = inexact("svdvals", x)
    if x.dtype.kind == "c" and not x.hermitian:
        return decompositions.svdvals(verbs.dense(x))
    return sorting.sort(verbs.abs(decompositions.eigvalsh(x)), descending=True)


@decompositions.svd.method
def _(x: Diagonal, *, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if not compute_uv:
        return decompositions.svdvals(x)
    (x,) = inexact("svd", x)
    d = computed(verbs.copy(verbs.dense(band(x))))
    size = verbs.abs(d)
    order = sorting.argsort(size, descending=True)
    phase = verbs.where(size > 0, verbs.divide(d, verbs.where(size > 0, size, 1)), 1)
    one = Identity(x.order, dtype=x.dtype, device=x.family)
    columns = computed(one[:, order])
    U = verbs.multiply(phase[:, None], columns)
    return SVDResult(computed(U), size[order], computed(verbs.copy(columns.T)))


@solving.matrix_rank.method
def _(
    x: Diagonal | Bidiagonal | Mirrored | Circulant,
    *,
    rtol: Any = None,
    tol: Any = None,
    hermitian: bool = False,
) -> Any:
    s = decompositions.svdvals(inexact("matrix_rank", x)[0])
    if tol is None:
        if rtol is None:
            rtol = max(x.shape) * float(np.finfo(s.dtype).eps)
        tol = verbs.multiply(verbs.max(s), rtol) if s.size else 0
    return verbs.count_nonzero(s > tol)


# Condition numbers


@solving.cond.method
def _(x: Banded | Triangular | Mirrored | Circulant | CSR | Fill, p: Any = None) -> Any:
    if p not in (None, 2, -2, 1, -1, "fro", "nuc", math.inf, -math.inf):
        raise ValueError(f'cond: p is 2, -2, 1, -1, inf, -inf, "fro" or "nuc"; not {p!r}.')
    if p not in (None, 2, -2):
        check_square("cond", x)
    (x,) = inexact("cond", x)
    if not x.size:
        raise LinAlgError("cond: an empty matrix has no condition number.")
    if p in (None, 2, -2):
        s = decompositions.svdvals(x)
        least, most = verbs.min(s), verbs.max(s)
        quotient = verbs.divide(most, least) if p != -2 else verbs.divide(least, most)
        undefined = verbs.logical_and(verbs.isnan(quotient), verbs.equal(most, 0))  # (of a matrix of zeros)
        return verbs.where(undefined, math.inf, quotient)
    try:
        inverse = solving.inv(x)
    except LinAlgError:
        return verbs.add(zeros(x.family, (), _real(x.dtype)), math.inf)
    return verbs.multiply(norms.matrix_norm(x, ord=p), norms.matrix_norm(inverse, ord=p))


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype


# Factors


@decompositions.cholesky.method
def _(x: Bidiagonal | Tridiagonal, *, upper: bool = False) -> Any:
    """Of one triangle, as always: with what is beside the diagonal there, the matrix is tridiagonal."""
    (x,) = inexact("cholesky", x)
    beside = verbs.dense(band(x, 1 if upper else -1))
    if not x.order:
        return x
    main, other = refusing("cholesky", "tridiagonal_cholesky", verbs.real(band(x)), beside)
    return Bidiagonal(main, other, "U" if upper else "L")


@decompositions.cholesky.method
def _(x: Mirrored, *, upper: bool = False) -> Any:
    if x.dtype.kind == "c" and not x.hermitian:
        return decompositions.cholesky(verbs.dense(x), upper=upper)
    stored = x.uplo == "U"
    found = decompositions.cholesky(read_half(x), upper=stored)
    return found if stored == bool(upper) else computed(verbs.copy(adjoint(found)))


@decompositions.eig.method
def _(x: Diagonal) -> Any:
    (x,) = inexact("eig", x)
    values = decompositions.eigvals(x)
    return EigResult(values, verbs.dense(Identity(x.order, dtype=values.dtype, device=x.family)))


def _is_upper(x: Any) -> bool:
    return bool(x.structure.lower <= 0)


def _one(x: Any) -> Any:
    return Identity(x.shape[0], dtype=x.dtype, device=x.family)


@decompositions.qr.method
def _(x: Diagonal | Bidiagonal | UpperTriangular, *, mode: str = "reduced") -> Any:
    if not _is_upper(x) or mode not in ("reduced", "complete", "r"):
        return decompositions.qr(made_dense(x), mode=mode)
    (x,) = inexact("qr", x)
    return x if mode == "r" else QRResult(_one(x), x)


@decompositions.schur.method
def _(a: Diagonal | Bidiagonal | UpperTriangular, *, output: str = "real") -> Any:
    if not _is_upper(a) or output not in ("real", "complex"):
        return decompositions.schur(made_dense(a), output=output)
    (a,) = inexact("schur", a)
    if output == "complex":
        a = verbs.astype(a, np.result_type(a.dtype, np.complex64), copy=False)
    return a, _one(a)


@decompositions.hessenberg.method
def _(a: Banded | UpperTriangular, *, calc_q: bool = False) -> Any:
    (a,) = inexact("hessenberg", a)
    return (a, _one(a)) if calc_q else a


@solving.solve_triangular.method
def _(a: Banded, b: AbstractArray, *, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    how = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if how not in (0, 1, 2):
        raise ValueError(f"solve_triangular: trans is 0, 1 or 2, not {trans!r}.")
    kept = {k: p for k, p in zip(a.offsets, a.parts, strict=True) if (k <= 0 if lower else k >= 0)}
    if unit_diagonal:
        kept[0] = Ones((a.order,), dtype=a.dtype, device=a.family)
    triangle = from_bands(kept)
    return solving.solve(triangle if not how else triangle.T if how == 1 else verbs.conj(triangle.T), b)


# Right-hand sides and products


def _solve_dense(x1: Any, x2: Structured) -> Any:
    """A structured right-hand side, which is as large as the result."""
    check_square("solve", x1)
    check_system("solve", x1, x2)
    return solving.solve(x1, verbs.dense(x2))


for _kind in (DenseArray, Wrapper):
    solving.solve.method(_solve_dense, signature=(_kind, Structured))


def _gemm(x1: Any, x2: Any, *, alpha: Any = 1, beta: Any = 0, out: Any = None) -> Any:
    """Scaled products by the rules for products; the sum is one kernel that writes to `out`."""
    alpha, beta = chains._number("alpha", alpha), chains._number("beta", beta)
    product = verbs.matmul(x1, x2)
    product = product if alpha == 1 else verbs.multiply(product, alpha)
    if out is None:
        if beta:
            raise ValueError("gemm: beta scales what is in `out`, and no `out` was given: out=C.")
        return verbs.dense(product)
    return verbs.assign(
        out, verbs.add(product, verbs.multiply(out, beta)) if beta else product, casting="same_kind"
    )


for _signature in ((Structured, AbstractArray), (AbstractArray, Structured), (Structured, Structured)):
    chains.gemm.method(_gemm, signature=_signature)
