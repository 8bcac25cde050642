"""Matrices of low rank: A = U V with few columns in U, which are all that is stored.

>>> import mirabelle as mb
>>> rng = mb.random.default_rng(0)
>>> A = mb.LowRank(rng.random((100_000, 3)), rng.random((3, 100_000)))   # 80 GB, if it were dense
>>> y = A @ mb.ones(100_000)
>>> int(mb.linalg.matrix_rank(A)), A.rank
(3, 3)
>>> type(A @ A).__name__ == type(A + A).__name__ == type(A * 2).__name__ == type(A).__name__
True
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, matrices, norms, solving
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    adjoint,
    check_square,
    inexact,
    singular,
    working_dtype,
)
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult, check_system
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.base import Structured, zeros
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import filled
from mirabelle.arraytypes.structured.kronecker_reductions import norm_of_matrix
from mirabelle.arraytypes.structured.kronecker_rules import padded, rank_of_values
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import Op

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class LowRank(Structured):
    """The product U V, or U diag(d) V, of a tall and a wide matrix, never multiplied out.

    Parameters
    ----------
    U : matrix
        The tall factor.
    V : matrix
        The wide factor.
    d : array or None
        A diagonal between them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.LowRank(mb.HostArray([[1.0], [2.0]]), mb.HostArray([[3.0, 4.0]]), d=[10.0])
    >>> print(A, mb.sum(A))
    [[30. 40.]
     [60. 80.]] 210.0
    """

    __module__ = "mirabelle"
    __slots__ = ()
    linear = 0

    def __new__(cls, U: ArrayLike, V: ArrayLike, d: ArrayLike | None = None) -> Self:
        left, right = cls._checked((U, V))
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise ValueError(
                f"LowRank takes matrices U of m x r and V of r x n, whose product it is; these have shapes "
                f"{left.shape} and {right.shape}. Of vectors: mb.LowRank(u[:, None], v[None])."
            )
        if d is not None:
            placed = any(isinstance(x, AbstractArray) for x in (U, V, d))
            scale = as_array(d, left) if placed else asarray(d, device=left.place)
            if scale.shape != left.shape[1:]:
                raise ValueError(
                    f"LowRank: the middle `d` has {left.shape[1]} elements; this one has shape {scale.shape}."
                )
            left = verbs.multiply(left, scale)
        return cls._made(left, right)

    @classmethod
    def _shape_of(cls, *parts: Any) -> tuple[int, ...]:
        return parts[0].shape[0], parts[1].shape[1]

    @property
    def rank(self) -> int:
        """How many columns U has; the rank is no larger."""
        return int(self._parts[0].shape[1])

    def _dense(self) -> Any:
        return verbs.matmul(*[verbs.dense(p) for p in self._parts])

    def _entries(self, i: Any, j: Any) -> Any:
        left, right = self._parts
        rows, columns = left[i], verbs.permute_dims(right, (1, 0))[j]
        return verbs.sum(verbs.multiply(rows, columns), axis=-1, dtype=self.dtype)

    def _index(self, index: tuple[Any, ...]) -> Any:
        if len(index) not in (1, 2) or not all(isinstance(i, slice) for i in index):
            return NotImplemented
        left, right = self._parts
        columns = right[:, index[1]] if len(index) == 2 else right
        return self._made(left[index[0], :], columns)

    def _transposed(self) -> Any:
        return self._made(self._parts[1].T, self._parts[0].T)

    def _diagonal(self, offset: int) -> Any:
        rows, columns = self._shape
        n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        i, j = max(-offset, 0), max(offset, 0)
        left, right = self._parts[0][i : i + n], self._parts[1].T[j : j + n]
        return verbs.sum(verbs.multiply(left, right), axis=1, dtype=self.dtype)

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        left, right = self._parts
        if isinstance(other, LowRank):
            core = verbs.matmul(right, other.parts[0])
            if self.rank <= other.rank:
                return self._made(left, verbs.matmul(core, other.parts[1]))
            return self._made(verbs.matmul(left, core), other.parts[1])
        if isinstance(other, Structured):
            return self._made(left, verbs.matmul(right, other)) if other.ndim == 2 else NotImplemented
        return verbs.matmul(left, verbs.matmul(right, other))

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        left, right = self._parts
        if isinstance(other, Structured):
            return self._made(verbs.matmul(other, left), right) if other.ndim == 2 else NotImplemented
        return verbs.matmul(verbs.matmul(other, left), right)

    def _mapped(self, op: Op, operands: tuple[Any, ...]) -> Any:
        if op.name not in ("add", "subtract"):
            return NotImplemented
        first, second = operands
        if isinstance(first, LowRank) and isinstance(second, LowRank):
            # Beside each other; where that is no saving any more, dense.
            if first.rank + second.rank > min(self._shape):
                return NotImplemented
            left = verbs.negative(second.parts[0]) if op.name == "subtract" else second.parts[0]
            return self._made(
                concatenate([first.parts[0], left], 1), concatenate([first.parts[1], second.parts[1]], 0)
            )
        other = second if first is self else first
        if isinstance(other, (Structured, bool, int, float, complex, np.generic)) or other.shape != self._shape:
            return NotImplemented
        return self._onto(other, op.name, self_first=first is self)

    def _onto(self, other: Any, name: str, self_first: bool) -> Any:
        """The sum with a dense matrix: a product that adds to a copy of it."""
        dtype = np.result_type(self.dtype, other.dtype)
        if dtype.kind not in "fc":
            return NotImplemented
        if self.carries_derivatives or other.carries_derivatives:
            whole = self._dense()
            return verbs.ELEMENTWISE[name](*((whole, other) if self_first else (other, whole)))
        left, right = (verbs.astype(p, dtype, copy=False) for p in self._parts)
        turned = name == "subtract" and self_first
        out = verbs.copy(verbs.astype(verbs.negative(other) if turned else other, dtype, copy=False))
        alpha = -1.0 if name == "subtract" and not self_first else 1.0
        return chains.gemm(verbs.dense(left), verbs.dense(right), alpha=alpha, beta=1.0, out=computed(out))

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}", f"rank {self.rank}"]


# Reductions and norms


@verbs.reduce_.method
def _(x: LowRank, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if reduction.name != "sum" or not axes or (dtype is not None and not np.can_cast(x.dtype, dtype)):
        return verbs.reduce_(made_dense(x), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    left, right = (verbs.astype(p, x.dtype if dtype is None else dtype, copy=False) for p in x.parts)
    if 0 in axes:
        left = verbs.reduce_(left, reduction, axis=0, dtype=left.dtype)
    if 1 in axes:
        right = verbs.reduce_(right, reduction, axis=1, dtype=right.dtype)
    out = verbs.matmul(left, right)
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else out


def core_of(x: LowRank) -> tuple[Any, Any, Any]:
    """Orthonormal Q1 and Q2 and a small matrix C with A = Q1 C Q2ᴴ."""
    (x,) = inexact("svd", x)
    q1, r1 = decompositions.qr(verbs.dense(x.parts[0]))
    q2, r2 = decompositions.qr(adjoint(verbs.dense(x.parts[1])))
    return q1, verbs.matmul(r1, adjoint(r2)), q2


def _some_svdvals(x: LowRank) -> Any:
    return decompositions.svdvals(core_of(x)[1])


@decompositions.svdvals.method
def _(x: LowRank) -> Any:
    return padded(_some_svdvals(x), min(x.shape))


@solving.matrix_rank.method
def _(x: LowRank, *, rtol: Any = None, tol: Any = None, hermitian: bool = False) -> Any:
    return rank_of_values(_some_svdvals(x), x.shape, rtol, tol)


@solving.cond.method
def _(x: LowRank, p: Any = None) -> Any:
    if p not in (None, 2, -2):
        check_square("cond", x)
        return solving.cond(made_dense(x), p)
    s = decompositions.svdvals(x)
    return verbs.divide(s[0], s[-1]) if p != -2 else verbs.divide(s[-1], s[0])


@verbs.norm.method
def _(x: LowRank, p: Any = 2) -> Any:
    return norms.vector_norm(core_of(x)[1]) if p == 2 and x.size else verbs.norm(made_dense(x), p)


@norms.vector_norm.method
def _(x: LowRank, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if len(normal_axes(axis, 2)) != 2 or ord != 2 or not x.size:
        return norms.vector_norm(made_dense(x), axis=axis, keepdims=keepdims, ord=ord)
    return norms.vector_norm(core_of(x)[1], keepdims=keepdims)


@norms.matrix_norm.method
def _(x: LowRank, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if not x.size or ord not in ("fro", "nuc", 2, -2):
        return norms.matrix_norm(made_dense(x), keepdims=keepdims, ord=ord)
    if ord == -2:
        out = verbs.min(decompositions.svdvals(x))
        return verbs.reshape(out, (1, 1)) if keepdims else out
    return norms.matrix_norm(core_of(x)[1], keepdims=keepdims, ord=ord)


@norms.norm.method
def _(x: LowRank, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm_of_matrix(x, ord, axis, keepdims)


@matrices.trace.method
def _(x: LowRank, *, offset: int = 0, dtype: Any = None) -> Any:
    return verbs.sum(x._diagonal(offset), dtype=dtype)


# Linear algebra


@solving.pinv.method
def _(x: LowRank, *, rtol: Any = None, hermitian: bool = False) -> Any:
    q1, core, q2 = core_of(x)
    if rtol is None:
        rtol = max(x.shape) * float(np.finfo(core.dtype).eps)
    return LowRank(verbs.matmul(q2, solving.pinv(core, rtol=rtol)), adjoint(q1))


@solving.lstsq.method
def _(a: LowRank, b: AbstractArray, rcond: Any = None) -> Any:
    check_system("lstsq", a, b)
    x = verbs.matmul(solving.pinv(a, rtol=rcond), b)
    rank = solving.matrix_rank(a, rtol=rcond)
    if a.shape[0] > a.shape[1] and int(rank) == a.shape[1]:
        apart = verbs.subtract(verbs.matmul(a, x), b)
        residuals = verbs.sum(verbs.square(verbs.abs(apart)), axis=0, keepdims=b.ndim == 1)
    else:
        residuals = zeros(a.family, (0,), np.finfo(x.dtype).dtype)
    return LstsqResult(x, residuals, rank, decompositions.svdvals(a))


def _is_singular(x: LowRank) -> bool:
    return x.rank < x.shape[0]


@solving.solve.method
def _(x1: LowRank, x2: AbstractArray) -> Any:
    check_square("solve", x1)
    check_system("solve", x1, x2)
    if _is_singular(x1):
        raise LinAlgError(singular("solve"))
    return solving.solve(verbs.dense(x1), verbs.dense(x2))


@solving.inv.method
def _(x: LowRank) -> Any:
    check_square("inv", x)
    if _is_singular(x):
        raise LinAlgError(singular("inv"))
    return solving.inv(verbs.dense(x))


@solving.det.method
def _(x: LowRank) -> Any:
    check_square("det", x)
    if _is_singular(x):
        return filled(x.family, (), working_dtype("det", x).type(0)).scalar
    return solving.det(verbs.dense(x))


@solving.slogdet.method
def _(x: LowRank) -> Any:
    check_square("slogdet", x)
    if not _is_singular(x):
        return solving.slogdet(verbs.dense(x))
    dtype = working_dtype("slogdet", x)
    logabsdet = filled(x.family, (), np.finfo(dtype).dtype.type(-math.inf)).scalar
    return SlogdetResult(filled(x.family, (), dtype.type(0)).scalar, logabsdet)


@decompositions.eigvals.method
def _(x: LowRank) -> Any:
    check_square("eigvals", x)
    if not _is_singular(x):
        return decompositions.eigvals(verbs.dense(x))
    # U V has the eigenvalues of V U, and zeros.
    left, right = (verbs.dense(p) for p in inexact("eigvals", *x.parts))
    return padded(decompositions.eigvals(verbs.matmul(right, left)), x.shape[0])
