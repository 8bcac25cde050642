"""Inverses that are never computed: products with them are solves, with factors made once.

>>> import mirabelle as mb
>>> A = mb.HostArray([[4.0, 2.0], [2.0, 5.0]])
>>> B = mb.inverse(A)
>>> print(B @ mb.HostArray([6.0, 7.0]), B.factors)
[1. 1.] Cholesky of 2 x 2, float64, at host
>>> mb.inverse(B) @ mb.HostArray([1.0, 1.0])
HostArray[float64, 1]([6., 7.])
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, factorizations, norms, solving
from mirabelle.arraytypes.functions.factorizations import LU, Factorization, factorize
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, identity_like, inexact, singular
from mirabelle.arraytypes.functions.manipulation import flip
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system, solve_triangular
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Diagonal, Identity
from mirabelle.arraytypes.structured.base import Implicit, Structured, zeros
from mirabelle.arraytypes.structured.blocks import BlockDiagonal
from mirabelle.arraytypes.structured.fallback import made_dense, normal_indices
from mirabelle.arraytypes.structured.kronecker import Kronecker, kronecker
from mirabelle.arraytypes.structured.kronecker_reductions import norm_of_matrix
from mirabelle.arraytypes.structured.lowrank import LowRank
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import Op

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

# How the inverse of the part is shown: transposed or not, conjugated or not, times a number.
_AS_IT_IS = (False, False, 1)


class Inverse(Structured):
    """The inverse of a square matrix, which is its part, as it was when the inverse was made.

    `factors` is the factorisation its products solve with; None where the matrix is of a type that
    solves without one (a triangular or tridiagonal one, say).

    Parameters
    ----------
    A : square matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> B = mb.types.Inverse(mb.HostArray([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(B, mb.linalg.det(B))
    [[0.  1. ]
     [0.5 0. ]] -0.5
    """

    __module__ = "mirabelle.types"
    __slots__ = ("_factors",)

    _factors: Factorization | None

    def __new__(cls, A: ArrayLike) -> AbstractArray:  # type: ignore[misc]
        (x,) = cls._checked((A,))
        check_square("Inverse", x)
        if x.ndim != 2:
            raise LinAlgError(
                f"Inverse takes one matrix; this is a stack of shape {x.shape}. The inverses of a stack are "
                "mb.linalg.inv(A); one matrix of it is A[i]."
            )
        (x,) = inexact("Inverse", x)
        made = cls._of((verbs.copy(x),), x.shape, _AS_IT_IS)  # later writes to A are not to change it
        factors = made.factors
        known = factors is not None and not x.carries_derivatives  # (a determinant's derivative is an inverse)
        if known and bool(verbs.equal(factors.slogdet().sign, 0)):  # type: ignore[union-attr]
            raise LinAlgError(singular("Inverse"))
        return made

    @property
    def factors(self) -> Factorization | None:
        """The factorisation of the matrix."""
        try:
            return self._factors
        except AttributeError:
            x = self._parts[0]
            if solves_by_rule(x):
                self._factors = None
            else:
                self._factors = factorize(verbs.dense(x) if isinstance(x, Structured) else x)
            return self._factors

    @property
    def matrix(self) -> AbstractArray:
        """The matrix that this is the inverse of."""
        turned, conjugated, scale = self._how
        x = self._parts[0].T if turned else self._parts[0]
        x = verbs.conj(x) if conjugated else x
        return x if scale == 1 else verbs.divide(x, scale)

    def _shown(self, turned: bool, conjugated: bool, scale: Any) -> Any:
        made = generic_class(type(self))._of(self._parts, self._shape, (turned, conjugated, scale))
        made._factors = self.factors
        return made

    def _solved(self, b: Any, turned: bool) -> Any:
        """The inverse (or its transpose) times a vector, or columns."""
        own, conjugated, scale = self._how
        if conjugated:
            b = verbs.conj(b)
        x = solved(self._parts[0], self.factors, b, turned != own)
        x = verbs.conj(x) if conjugated else x
        return x if scale == 1 else verbs.multiply(x, scale)

    def _dense(self) -> Any:
        return self._solved(identity_like(self, self._shape[0]), False)

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, (Implicit, Identity)):
            return NotImplemented
        return self._solved(verbs.dense(other) if isinstance(other, Structured) else other, False)

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, (Implicit, Identity)):
            return NotImplemented
        other = verbs.dense(other) if isinstance(other, Structured) else other
        if other.ndim == 1:
            return self._solved(other, True)
        return verbs.copy(self._solved(other.mT, True).mT)

    def _transposed(self) -> Any:
        turned, conjugated, scale = self._how
        return self._shown(not turned, conjugated, scale)

    def _conjugated(self) -> Any:
        if self.dtype.kind != "c":
            return self
        turned, conjugated, scale = self._how
        return self._shown(turned, not conjugated, scale)

    def _mapped(self, op: Op, operands: tuple[Any, ...]) -> Any:
        turned, conjugated, scale = self._how
        if op.name == "negative":
            return self._shown(turned, conjugated, -scale)
        number = next((x for x in operands if x is not self), None)
        if not isinstance(number, (int, float)) or isinstance(number, (bool, np.generic)):
            return NotImplemented
        if op.name == "multiply":
            return self._shown(turned, conjugated, scale * number)
        if op.name == "divide" and operands[0] is self and number:
            return self._shown(turned, conjugated, scale / number)
        return NotImplemented

    def _index(self, index: tuple[Any, ...]) -> Any:
        """Columns and rows, each by one solve."""
        whole = slice(None)
        if len(index) == 1:
            index = (*index, whole)
        if len(index) != 2:
            return NotImplemented
        for axis, (at, other) in enumerate((index, index[::-1])):
            if isinstance(at, (int, np.integer)) and not isinstance(at, (bool, np.bool_)) and other == whole:
                (at, _) = normal_indices(self, (at, 0))
                one = zeros(self.family, (self._shape[0],), self.dtype)
                verbs.assign(one[at : at + 1], 1)
                return self._solved(one, axis == 0)
        return NotImplemented

    def _cast(self, dtype: np.dtype) -> Any:
        if dtype.char not in "fdFD" or (self.dtype.kind == "c" and dtype.kind == "f"):
            return NotImplemented
        return self._with_parts((verbs.astype(self._parts[0], dtype, copy=False),))

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}"]


def solves_by_rule(x: Any) -> bool:
    """Is there a method of `solve` for matrices of this type that needs no dense factors?"""
    from mirabelle.arraytypes.structured.conjugated import Conj
    from mirabelle.arraytypes.structured.mirrored import Mirrored

    if not isinstance(x, Structured) or isinstance(x, (Conj, Mirrored)):
        return False
    method = solving.solve.core.resolve((type(x), AbstractArray))
    return method is not None and method.signature[0] is not AbstractArray


def solved(x: Any, factors: Factorization | None, b: Any, turned: bool) -> Any:
    """Solve with a matrix, or with its transpose, by the factors of the matrix if there are any."""
    if factors is None:
        return solving.solve(x.T if turned else x, b)
    if turned and x.carries_derivatives:
        return solving.solve(factors.matrix.T, b)  # type: ignore[attr-defined]
    if not turned:
        return factors.solve(b)
    check_system("solve", x, b)
    b, _ = inexact("solve", b, x)
    if isinstance(factors, LU):
        return solving.lu_solve((factors.factors, factors.pivots), b, trans=1)
    if isinstance(factors, factorizations.Triangular):
        return solve_triangular(factors.matrix, b, lower=factors.lower, trans=1)
    # Cholesky or LDL, of a matrix whose transpose is its conjugate
    if x.dtype.kind != "c":
        return factors.solve(b)
    return verbs.conj(factors.solve(verbs.conj(b)))


@array_function
def inverse(A: Any, /) -> AbstractArray:
    """The inverse as what it is most simply: an `Inverse` that solves, or one of A's own type.

    The inverse of an inverse is the matrix; that of a Kronecker product or of a block diagonal matrix
    is one of inverses.

    Parameters
    ----------
    A : square matrix
        The matrix.

    Returns
    -------
    matrix
        An `mb.types.Inverse`, which solves when it is multiplied; of a `mb.Diagonal` a `mb.Diagonal`, of an
        `Inverse` its matrix. Of a singular matrix it is an error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[4.0, 2.0], [2.0, 5.0]])
    >>> mb.inverse(mb.Diagonal([2.0, 4.0]))
    Diagonal[HostArray[float64, 1]](
    [[0.5 ,  .  ],
     [ .  , 0.25]])
    >>> type(mb.inverse(mb.kronecker(A, mb.Identity(2)))).__name__
    'Kronecker[Inverse[HostArray[float64, 2]], Identity[Ones[HostArray[float64, 1]]]]'
    """
    return Inverse(A)


@inverse.method
def _(A: Inverse) -> Any:
    return A.matrix


@inverse.method
def _(A: Diagonal) -> Any:
    return solving.inv(A)


@inverse.method
def _(A: Kronecker) -> Any:
    check_square("inverse", A)
    if not A.all_square:
        raise LinAlgError(singular("inverse"))
    return kronecker(*[inverse(p) for p in A.parts])


@inverse.method
def _(A: BlockDiagonal) -> Any:
    check_square("inverse", A)
    if not A.all_square:
        raise LinAlgError(singular("inverse"))
    return A._made(*[inverse(p) if p.ndim == 2 else solving.inv(p) for p in A.parts])


@inverse.method
def _(A: LowRank) -> Any:
    check_square("inverse", A)
    if A.rank < A.shape[0]:
        raise LinAlgError(singular("inverse"))
    return Inverse(verbs.dense(A))


# What the matrix says of its inverse


@verbs.reduce_.method
def _(x: Inverse, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if reduction.name != "sum" or not axes or (dtype is not None and not np.can_cast(x.dtype, dtype)):
        return verbs.reduce_(made_dense(x), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    # One solve: with ones on the right for sums of rows, on the left for those of columns.
    one = verbs.assign(verbs.similar(x, shape=(x.shape[0],)), 1)
    out = verbs.matmul(one, x) if 0 in axes else verbs.matmul(x, one)
    if dtype is not None:
        out = verbs.astype(out, dtype, copy=False)
    if len(axes) == 2:
        out = verbs.reduce_(out, reduction, dtype=dtype)
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else out


@solving.solve.method
def _(x1: Inverse, x2: AbstractArray) -> Any:
    check_system("solve", x1, x2)
    return verbs.matmul(x1.matrix, x2)


@solving.inv.method
def _(x: Inverse) -> Any:
    return verbs.copy(x.matrix)


@solving.slogdet.method
def _(x: Inverse) -> Any:
    if x.factors is None or x._how != _AS_IT_IS:
        found = solving.slogdet(x.matrix)
    else:
        found = x.factors.slogdet()
    sign = verbs.conj(found.sign) if x.dtype.kind == "c" else found.sign
    return SlogdetResult(sign, verbs.negative(found.logabsdet))


@solving.det.method
def _(x: Inverse) -> Any:
    whole = x.factors.det() if x.factors is not None and x._how == _AS_IT_IS else solving.det(x.matrix)
    return verbs.reciprocal(whole)


@decompositions.eigvals.method
def _(x: Inverse) -> Any:
    return verbs.reciprocal(decompositions.eigvals(x.matrix))


@decompositions.svdvals.method
def _(x: Inverse) -> Any:
    return computed(verbs.reciprocal(flip(decompositions.svdvals(x.matrix), axis=0)))


@solving.cond.method
def _(x: Inverse, p: Any = None) -> Any:
    return solving.cond(x.matrix, p)


@norms.matrix_norm.method
def _(x: Inverse, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if ord not in (2, -2, "nuc"):
        return norms.matrix_norm(made_dense(x), keepdims=keepdims, ord=ord)
    s = decompositions.svdvals(x)
    out = {2: verbs.max, -2: verbs.min, "nuc": verbs.sum}[ord](s)
    return verbs.reshape(out, (1, 1)) if keepdims else out


@norms.norm.method
def _(x: Inverse, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm_of_matrix(x, ord, axis, keepdims)


@chains.matrix_power.method
def _(x: Inverse, n: Any) -> Any:
    return chains.matrix_power(x.matrix, -operator.index(n))
