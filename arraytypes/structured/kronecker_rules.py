"""Linear algebra of Kronecker products, by their factors.

Inverse, pseudo-inverse, triangular and orthogonal factors, powers and polar factors of A ⊗ B are
Kronecker products of those of A and B; eigenvalues and singular values are all products of theirs.
Their vectors stay a product too, whose columns are shown in the order of the values.

>>> import mirabelle as mb
>>> K = mb.kronecker(mb.HostArray([[2.0, 0.0], [0.0, 1.0]]), mb.HostArray([[3.0, 0.0], [0.0, 5.0]]))
>>> print(mb.linalg.eigvalsh(K), mb.linalg.cond(K))
[ 3.  5.  6. 10.] 3.3333333333333335
>>> w, V = mb.linalg.eigh(K)
>>> type(V).__name__
'Reordered[Kronecker[HostArray[float64, 2], HostArray[float64, 2]], HostArray[int64, 1]]'
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, solving, sorting
from mirabelle.arraytypes.functions.decompositions import EighResult, EigResult, QRResult, SVDResult
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, inexact, singular, working_dtype
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult, check_system
from mirabelle.arraytypes.structured.banded import Identity
from mirabelle.arraytypes.structured.base import Structured, zeros, zeros_for
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import filled
from mirabelle.arraytypes.structured.kronecker import Kronecker, combined, kronecker
from mirabelle.arraytypes.structured.kronecker_reductions import _is_full, product
from mirabelle.arraytypes.structured.reordered import reordered
from mirabelle.arraytypes.structured.triangular import LowerTriangular, UpperTriangular
from mirabelle.dispatch import verbs


def of_factor(f: Any, p: Any, **options: Any) -> Any:
    """A function whose result is as large as a matrix: of a factor without a rule, of its dense form."""
    if isinstance(p, Structured):
        method = f.core.resolve((type(p),))
        if method is None or method.signature[0] is AbstractArray:
            p = verbs.dense(p)
    return f(p, **options)


# Solving


@solving.solve.method
def _(x1: Kronecker, x2: AbstractArray) -> Any:
    check_square("solve", x1)
    check_system("solve", x1, x2)
    join_families("solve", (x1, x2))
    if not x1.all_square:  # its rank is less than its size
        raise LinAlgError(singular("solve"))
    if isinstance(x2, Kronecker) and x2.rows == x1.columns:
        return kronecker(*[solving.solve(p, q) for p, q in zip(x1.parts, x2.parts, strict=True)])
    a, b = inexact("solve", x1, verbs.dense(x2) if isinstance(x2, Structured) else x2)
    return a._along(solved, b, max(0, b.ndim - 2), a.parts, a.rows)


def solved(p: Any, x: Any, axis: int) -> Any:
    """The solutions with the matrix `p` for all lines of `x` along an axis."""
    if isinstance(p, Identity):
        return x
    before, n, after = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if before == 1 and after == 1:
        return verbs.reshape(solving.solve(p, verbs.reshape(x, (n,))), x.shape)
    lines = verbs.permute_dims(verbs.reshape(x, (before, n, after)), (1, 0, 2))
    made = solving.solve(p, verbs.reshape(lines, (n, before * after)))
    made = verbs.permute_dims(verbs.reshape(made, (n, before, after)), (1, 0, 2))
    return verbs.reshape(made, x.shape)


@solving.inv.method
def _(x: Kronecker) -> Any:
    check_square("inv", x)
    if not x.all_square:
        raise LinAlgError(singular("inv"))
    return kronecker(*[solving.inv(p) for p in x.parts])


@solving.pinv.method
def _(x: Kronecker, *, rtol: Any = None, hermitian: bool = False) -> Any:
    if rtol is not None:  # which products of singular values count is not up to each factor
        return solving.pinv(made_dense(x), rtol=rtol, hermitian=hermitian)
    return kronecker(*[of_factor(solving.pinv, p) for p in x.parts])


@solving.lstsq.method
def _(a: Kronecker, b: AbstractArray, rcond: Any = None) -> Any:
    check_system("lstsq", a, b)
    if rcond is not None:
        return solving.lstsq(made_dense(a), b, rcond=rcond)
    x = verbs.matmul(solving.pinv(a), b)
    rank = solving.matrix_rank(a)
    if a.shape[0] > a.shape[1] and int(rank) == a.shape[1]:
        apart = verbs.subtract(verbs.matmul(a, x), b)
        residuals = verbs.sum(verbs.square(verbs.abs(apart)), axis=0, keepdims=b.ndim == 1)
    else:
        residuals = zeros(a.family, (0,), np.finfo(x.dtype).dtype)
    return LstsqResult(x, residuals, rank, decompositions.svdvals(a))


# Determinants


@solving.det.method
def _(x: Kronecker) -> Any:
    check_square("det", x)
    if not x.all_square:
        return _number(x, working_dtype("det", x), 0)
    n = x.shape[0]
    return product([verbs.pow(solving.det(p), n // p.shape[0] if n else 0) for p in x.parts])


def _number(x: Any, dtype: Any, value: float) -> Any:
    """A number as an array of no dimensions where `x` is."""
    return filled(x.family, (), np.dtype(dtype).type(value)).scalar


@solving.slogdet.method
def _(x: Kronecker) -> Any:
    check_square("slogdet", x)
    if not x.all_square:
        dtype = working_dtype("slogdet", x)
        return SlogdetResult(_number(x, dtype, 0), _number(x, np.finfo(dtype).dtype, -math.inf))
    n = x.shape[0]
    found = [(solving.slogdet(p), n // p.shape[0] if n else 0) for p in x.parts]
    signs = [verbs.pow(f.sign, times) for f, times in found]
    logs = [verbs.multiply(f.logabsdet, times) for f, times in found]
    total = logs[0]
    for log in logs[1:]:
        total = verbs.add(total, log)
    return SlogdetResult(product(signs), total)


# Singular values


def _all_svdvals(x: Kronecker) -> Any:
    """The products of the singular values of the factors, in no order; there may be zeros beside."""
    return combined(verbs.multiply, [decompositions.svdvals(p) for p in x.parts])


@decompositions.svdvals.method
def _(x: Kronecker) -> Any:
    values = sorting.sort(_all_svdvals(x), descending=True)
    return padded(values, min(x.shape))


def padded(values: Any, n: int) -> Any:
    """A vector with zeros behind it, up to a length."""
    if values.shape[0] == n:
        return values
    out = zeros_for((values,), (n,), values.dtype)
    verbs.assign(out[: values.shape[0]], values)
    return out


@decompositions.svd.method
def _(x: Kronecker, *, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if not compute_uv:
        return decompositions.svdvals(x)
    whole = bool(full_matrices) or not _is_full(x)
    found = [of_factor(decompositions.svd, p, full_matrices=whole) for p in x.parts]
    values = combined(verbs.multiply, [f.S for f in found])
    by_size = sorting.argsort(values, descending=True)
    k = min(x.shape)
    # The values stand in the order of their factors' places; so do the columns that belong to them.
    counts = [f.S.shape[0] for f in found]

    def side(factors: list[Any], n: int) -> Any:
        widths = [q.shape[1] for q in factors]
        order = _columns_in_order(x.family, by_size, counts, widths, n if full_matrices else k)
        return reordered(kronecker(*factors), order, 1)

    left, right = side([f.U for f in found], x.shape[0]), side([f.Vh.T for f in found], x.shape[1])
    return SVDResult(left, padded(values[by_size], k), right.T)


def _columns_in_order(family: Any, by_size: Any, counts: list[int], widths: list[int], wanted: int) -> Any:
    """Which columns of a product go with its singular values in order, and after them the others."""
    number = np.arange(math.prod(widths)).reshape(widths)
    with_values = number[tuple(slice(0, c) for c in counts)].reshape(-1)
    order = asarray(with_values, device=family)[by_size]
    if wanted > order.shape[0]:
        others = np.setdiff1d(number, with_values)[: wanted - order.shape[0]]
        order = concatenate([order, asarray(others, device=family)])
    return computed(order)


# Ranks and condition numbers


@solving.matrix_rank.method
def _(x: Kronecker, *, rtol: Any = None, tol: Any = None, hermitian: bool = False) -> Any:
    return rank_of_values(_all_svdvals(x), x.shape, rtol, tol)


def rank_of_values(s: Any, shape: tuple[int, ...], rtol: Any, tol: Any) -> Any:
    """How many singular values count."""
    if not s.shape[0]:
        return verbs.count_nonzero(s)
    if tol is None:
        rtol = max(shape) * float(np.finfo(s.dtype).eps) if rtol is None else rtol
        tol = verbs.multiply(verbs.max(s), rtol)
    return verbs.count_nonzero(verbs.greater(s, tol))


@solving.cond.method
def _(x: Kronecker, p: Any = None) -> Any:
    if p not in (None, 2, -2):
        check_square("cond", x)
    if x.all_square or (p in (None, 2, -2) and _is_full(x)):
        return product([solving.cond(part, p) for part in x.parts])
    return _number(x, np.finfo(working_dtype("cond", x)).dtype, 0.0 if p == -2 else math.inf)


# Eigenvalues


def _square_factors(name: str, x: Kronecker) -> bool:
    check_square(name, x)
    return x.all_square


def is_hermitian(p: Any) -> bool:
    """Is a factor Hermitian, but for rounding? (Two that are not may have a product that is.)"""
    p = verbs.dense(p) if isinstance(p, Structured) else p
    off = verbs.max(verbs.abs(verbs.subtract(p, verbs.conj(verbs.permute_dims(p, (1, 0))))))
    return bool(
        off <= 1e3 * float(np.finfo(p.dtype if p.dtype.kind in "fc" else float).eps) * verbs.max(verbs.abs(p))
    )


@decompositions.eigvals.method
def _(x: Kronecker) -> Any:
    if not _square_factors("eigvals", x):
        return decompositions.eigvals(made_dense(x))
    return combined(verbs.multiply, [decompositions.eigvals(p) for p in x.parts])


@decompositions.eig.method
def _(x: Kronecker) -> Any:
    if not _square_factors("eig", x):
        return decompositions.eig(made_dense(x))
    found = [of_factor(decompositions.eig, p) for p in x.parts]
    values = combined(verbs.multiply, [f.eigenvalues for f in found])
    return EigResult(values, kronecker(*[f.eigenvectors for f in found]))


@decompositions.eigvalsh.method
def _(x: Kronecker, *, UPLO: str = "L") -> Any:
    if not (_square_factors("eigvalsh", x) and all(is_hermitian(p) for p in x.parts)):
        return decompositions.eigvalsh(made_dense(x), UPLO=UPLO)
    return sorting.sort(combined(verbs.multiply, [decompositions.eigvalsh(p, UPLO=UPLO) for p in x.parts]))


@decompositions.eigh.method
def _(x: Kronecker, *, UPLO: str = "L") -> Any:
    if not (_square_factors("eigh", x) and all(is_hermitian(p) for p in x.parts)):
        return decompositions.eigh(made_dense(x), UPLO=UPLO)
    return in_ascending_order(verbs.multiply, [of_factor(decompositions.eigh, p, UPLO=UPLO) for p in x.parts])


def in_ascending_order(op: Any, found: list[Any]) -> EighResult:
    """The eigenvalues that those of factors come to, and the vectors, which are products of theirs."""
    values = combined(op, [f.eigenvalues for f in found])
    order = computed(sorting.argsort(values))
    vectors = reordered(kronecker(*[f.eigenvectors for f in found]), order, 1)
    return EighResult(computed(values[order]), vectors)


# Factors, powers


@decompositions.cholesky.method
def _(x: Kronecker, *, upper: bool = False) -> Any:
    check_square("cholesky", x)
    if not x.all_square:
        return decompositions.cholesky(made_dense(x), upper=upper)
    side: Any = UpperTriangular if upper else LowerTriangular
    parts = list(x.parts)
    negative = [bool(verbs.real(verbs.getitem(p, (slice(0, 1), slice(0, 1)))).sum() < 0) for p in parts]
    if sum(negative) % 2 == 0:  # an even number of negative definite factors is positive definite
        parts = [verbs.negative(p) if n else p for p, n in zip(parts, negative, strict=True)]
    return kronecker(*[side(of_factor(decompositions.cholesky, p, upper=upper)) for p in parts])


@decompositions.qr.method
def _(x: Kronecker, *, mode: str = "reduced") -> Any:
    # The product of triangular factors is triangular where they are as wide as they are high, or wider.
    if (
        mode not in ("reduced", "complete", "r")
        or not _is_full(x)
        or (mode == "complete" and any(p.shape[0] > p.shape[1] for p in x.parts))
    ):
        return decompositions.qr(made_dense(x), mode=mode)
    if mode == "r":
        return kronecker(*[of_factor(decompositions.qr, p, mode="r") for p in x.parts])
    found = [of_factor(decompositions.qr, p, mode=mode) for p in x.parts]
    return QRResult(kronecker(*[f.Q for f in found]), kronecker(*[f.R for f in found]))


@decompositions.lu.method
def _(a: Kronecker, *, permute_l: bool = False, p_indices: bool = False) -> Any:
    # The product of lower triangular factors is one where they are square.
    if not a.all_square or p_indices:
        return decompositions.lu(made_dense(a), permute_l=permute_l, p_indices=p_indices)
    found = [of_factor(decompositions.lu, p, permute_l=permute_l) for p in a.parts]
    return tuple(kronecker(*factors) for factors in zip(*found, strict=True))


@decompositions.polar.method
def _(a: Kronecker, *, side: str = "right") -> Any:
    found = [of_factor(decompositions.polar, p, side=side) for p in a.parts]
    return kronecker(*[u for u, _ in found]), kronecker(*[p for _, p in found])


@chains.matrix_power.method
def _(x: Kronecker, n: Any) -> Any:
    check_square("matrix_power", x)
    n = operator.index(n)
    if not x.all_square:
        return chains.matrix_power(made_dense(x), n)
    return kronecker(*[chains.matrix_power(p, n) for p in x.parts])
