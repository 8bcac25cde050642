"""Linear algebra of structured matrices: what their structure makes cheap.

>>> import mirabelle as mb
>>> D = mb.Diagonal([2.0, 4.0])
>>> mb.linalg.inv(D)
Diagonal[HostArray[float64, 1]](
[[0.5 ,  .  ],
 [ .  , 0.25]])
>>> print(mb.linalg.det(D), mb.linalg.solve(D, mb.HostArray([2.0, 2.0])))
8.0 [1.  0.5]
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import chains, decompositions, matrixfunctions, solving, sorting
from mirabelle.arraytypes.functions.decompositions import EighResult
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    call,
    check_square,
    identity_like,
    inexact,
    refusing,
    singular,
)
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured.banded import Bidiagonal, Diagonal, Identity, Tridiagonal, band
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.conjugated import Adjoint, Conj, adjoint
from mirabelle.arraytypes.structured.mirrored import Mirrored, read_half
from mirabelle.arraytypes.structured.triangular import Triangular
from mirabelle.dispatch import verbs

_COMPLEX = np.complex64


def _checked(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """A system of a structured matrix, in the dtype LAPACK works in."""
    check_square(name, a)
    check_system(name, a, b)
    join_families(name, (a, b))
    return inexact(name, a, verbs.dense(b) if isinstance(b, Structured) else b)


def _nonzero_diagonal(name: str, x: Any) -> Any:
    """The main diagonal, which must have no zero."""
    (x,) = inexact(name, x)
    d = band(x)
    if d.size and not bool(verbs.all(verbs.not_equal(d, 0))):
        raise LinAlgError(singular(name))
    return d


# Determinants of what has its eigenvalues on the diagonal


def _det(x: Any) -> Any:
    return verbs.prod(band(inexact("det", x)[0]))


def _slogdet(x: Any) -> Any:
    d = band(inexact("slogdet", x)[0])
    return SlogdetResult(verbs.prod(verbs.sign(d)), verbs.sum(verbs.log(verbs.abs(d))))


def _eigvals(x: Any) -> Any:
    (x,) = inexact("eigvals", x)
    return verbs.astype(band(x), np.result_type(x.dtype, _COMPLEX))


for _type in (Diagonal, Bidiagonal, Triangular):
    solving.det.method(_det, signature=(_type,))
    solving.slogdet.method(_slogdet, signature=(_type,))
    decompositions.eigvals.method(_eigvals, signature=(_type,))


# Diagonal: everything is elementwise


@solving.solve.method
def _(x1: Diagonal, x2: AbstractArray) -> Any:
    a, b = _checked("solve", x1, x2)
    d = _nonzero_diagonal("solve", a)
    return verbs.divide(b, d if b.ndim == 1 else d[:, None])


@solving.solve.method
def _(x1: Identity, x2: AbstractArray) -> Any:
    check_system("solve", x1, x2)
    return verbs.matmul(x1, x2)


@solving.inv.method
def _(x: Diagonal) -> Any:
    return Diagonal(verbs.reciprocal(_nonzero_diagonal("inv", x)))


@solving.inv.method
def _(x: Identity) -> Any:
    return inexact("inv", x)[0]


@solving.pinv.method
def _(x: Diagonal, *, rtol: Any = None, hermitian: bool = False) -> Any:
    (x,) = inexact("pinv", x)
    d = band(x)
    size = verbs.abs(d)
    if rtol is None:
        rtol = x.order * float(np.finfo(size.dtype).eps)
    kept = size > verbs.max(size) * rtol if d.size else size > 0
    return Diagonal(verbs.where(kept, verbs.reciprocal(verbs.where(kept, d, 1)), 0))


@decompositions.svdvals.method
def _(x: Diagonal) -> Any:
    return sorting.sort(verbs.abs(band(inexact("svdvals", x)[0])), descending=True)


@decompositions.eigvalsh.method
def _(x: Diagonal, *, UPLO: str = "L") -> Any:
    return sorting.sort(verbs.real(band(inexact("eigvalsh", x)[0])))


@decompositions.eigh.method
def _(x: Diagonal, *, UPLO: str = "L") -> Any:
    (x,) = inexact("eigh", x)
    d = computed(verbs.copy(verbs.dense(verbs.real(band(x)))))
    order = sorting.argsort(d)
    one = Identity(x.order, dtype=x.dtype, device=x.family)
    return EighResult(d[order], computed(one[:, order]))


@decompositions.cholesky.method
def _(x: Diagonal, *, upper: bool = False) -> Any:
    (x,) = inexact("cholesky", x)
    d = verbs.real(band(x))
    if d.size and not bool(verbs.all(d > 0)):
        raise LinAlgError(
            "cholesky: the matrix is not positive definite: its diagonal has an element that is not "
            "positive. See which: `mb.nonzero(~(D.parts[0] > 0))`."
        )
    return Diagonal(verbs.astype(verbs.sqrt(d), x.dtype, copy=False))


def _function_of_diagonal(name: str, f: Any, complex_below_zero: bool) -> Any:
    def rule(A: Any) -> Any:
        (A,) = inexact(name, A)
        d = band(A)
        if complex_below_zero and d.dtype.kind != "c" and d.size and bool(verbs.any(d < 0)):
            d = verbs.astype(d, np.result_type(d.dtype, _COMPLEX))
        return Diagonal(f(d))

    rule.__name__ = name
    return rule


for _name, _f in (("expm", verbs.exp), ("logm", verbs.log), ("sqrtm", verbs.sqrt)):
    _rule = _function_of_diagonal(_name, _f, _name != "expm")
    getattr(matrixfunctions, _name).method(_rule, signature=(Diagonal,))


@chains.matrix_power.method
def _(x: Diagonal, n: Any) -> Any:
    n = operator.index(n)
    if n >= 0:
        return Diagonal(verbs.pow(band(x), n))
    return Diagonal(verbs.pow(band(solving.inv(x)), -n))


# Bidiagonal and tridiagonal: elimination along the diagonals


@solving.solve.method
def _(x1: Bidiagonal | Tridiagonal, x2: AbstractArray) -> Any:
    a, b = _checked("solve", x1, x2)
    if b.ndim > 2:
        return solving.solve(verbs.dense(a), b)
    if not a.order:
        return verbs.copy(b)
    return refusing("solve", "tridiagonal_solve", band(a, -1), band(a), band(a, 1), b)


@solving.inv.method
def _(x: Bidiagonal | Tridiagonal) -> Any:
    (x,) = inexact("inv", x)
    return solving.solve(x, identity_like(x, x.order))


@solving.slogdet.method
def _(x: Tridiagonal) -> Any:
    (x,) = inexact("slogdet", x)
    return SlogdetResult(*library.call("tridiagonal_slogdet", *x.parts))


@solving.det.method
def _(x: Tridiagonal) -> Any:
    sign, logabsdet = solving.slogdet(x)
    return verbs.multiply(sign, verbs.exp(logabsdet))


@decompositions.eigvalsh.method
def _(x: Bidiagonal | Tridiagonal, *, UPLO: str = "L") -> Any:
    (x,) = inexact("eigvalsh", x)
    beside = _beside("eigvalsh", x, UPLO)
    return refusing("eigvalsh", "tridiagonal_eigh", verbs.real(band(x)), beside, vectors=False)


@decompositions.eigh.method
def _(x: Bidiagonal | Tridiagonal, *, UPLO: str = "L") -> Any:
    (x,) = inexact("eigh", x)
    if x.dtype.kind == "c":
        return decompositions.eigh(verbs.dense(x), UPLO=UPLO)
    return EighResult(*refusing("eigh", "tridiagonal_eigh", band(x), _beside("eigh", x, UPLO), vectors=True))


def _beside(name: str, x: Any, UPLO: str) -> Any:
    """The absolute values of the diagonal beside the main one that is read: they decide the eigenvalues."""
    beside = band(x, -1 if decompositions._triangle(name, UPLO) == "L" else 1)
    return beside if x.dtype.kind != "c" else verbs.abs(beside)


# Triangular


@solving.solve.method
def _(x1: Triangular, x2: AbstractArray) -> Any:
    a, b = _checked("solve", x1, x2)
    if b.ndim > 2:
        return solving.solve(verbs.dense(a), b)
    return refusing("solve", "triangular_solve", a.parts[0], b, upper=a.upper, unit=a.unit)


@solving.inv.method
def _(x: Triangular) -> Any:
    (x,) = inexact("inv", x)
    one = identity_like(x, x.shape[0])
    found = refusing("inv", "triangular_solve", x.parts[0], one, upper=x.upper, unit=x.unit)
    return generic_class(type(x))(found)


# Symmetric and Hermitian


@solving.solve.method
def _(x1: Mirrored, x2: AbstractArray) -> Any:
    a, b = _checked("solve", x1, x2)
    if b.ndim > 2:
        return solving.solve(verbs.dense(a), b)
    return refusing("solve", "mirrored_solve", a.parts[0], b, upper=a.uplo == "U", hermitian=a.hermitian)


@solving.slogdet.method
def _(x: Mirrored) -> Any:
    if x.carries_derivatives or not library.has(x.family, "mirrored_slogdet"):
        return solving.slogdet(verbs.dense(x))
    return SlogdetResult(
        *call("slogdet", "mirrored_slogdet", read_half(x), upper=x.uplo == "U", hermitian=x.hermitian)
    )


@solving.inv.method
def _(x: Mirrored) -> Any:
    return generic_class(type(x))(call("inv", "linalg.inv", verbs.dense(x)))


@decompositions.eigvalsh.method
def _(x: Mirrored, *, UPLO: str = "L") -> Any:
    if x.dtype.kind == "c" and not x.hermitian:
        return decompositions.eigvalsh(verbs.dense(x), UPLO=UPLO)
    return decompositions.eigvalsh(read_half(x), UPLO=x.uplo)


@decompositions.eigh.method
def _(x: Mirrored, *, UPLO: str = "L") -> Any:
    if x.dtype.kind == "c" and not x.hermitian:
        return decompositions.eigh(verbs.dense(x), UPLO=UPLO)
    return decompositions.eigh(read_half(x), UPLO=x.uplo)


@decompositions.eigvals.method
def _(x: Mirrored) -> Any:
    if x.dtype.kind == "c" and not x.hermitian:
        return decompositions.eigvals(verbs.dense(x))
    values = decompositions.eigvalsh(x)
    return verbs.astype(values, np.result_type(values.dtype, _COMPLEX))


# Conjugates and adjoints: those of the part's results


@solving.solve.method
def _(x1: Conj, x2: AbstractArray) -> Any:
    a, b = _checked("solve", x1, x2)
    return call("solve", "linalg.solve", verbs.dense(a), b)


@solving.det.method
def _(x: Conj) -> Any:
    return verbs.conj(solving.det(x.parts[0]))


@solving.inv.method
def _(x: Adjoint) -> Any:
    return adjoint(solving.inv(x.parts[0]))
