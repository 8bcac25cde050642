"""Linear algebra of Toeplitz and circulant matrices.

The eigenvectors of every circulant matrix are the waves of the discrete Fourier transform, so that
functions of the matrix are functions of its eigenvalues, and circulant too.

>>> import mirabelle as mb
>>> C = mb.Circulant([4.0, 1.0, 0.0, 1.0])
>>> print(mb.linalg.eigvals(C), mb.linalg.det(C))
[6.+0.j 4.+0.j 2.+0.j 4.+0.j] 192.0
>>> print(mb.linalg.inv(C) @ C @ mb.HostArray([1.0, 2.0, 3.0, 4.0]))
[1. 2. 3. 4.]
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import cast_to, join_families
from mirabelle.arraytypes.functions import (
    chains,
    decompositions,
    fourier,
    matrixfunctions,
    norms,
    solving,
    sorting,
)
from mirabelle.arraytypes.functions.chains import powered
from mirabelle.arraytypes.functions.decompositions import EigResult
from mirabelle.arraytypes.functions.factorizations import signs_and_logs
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    check_square,
    inexact,
    refusing,
    singular,
)
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.structured.base import Structured, indices
from mirabelle.arraytypes.structured.toeplitz import Circulant, Toeplitz, as_circulant, is_hermitian
from mirabelle.dispatch import verbs


def _system(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    check_square(name, a)
    check_system(name, a, b)
    join_families(name, (a, b))
    return inexact(name, a, verbs.dense(b) if isinstance(b, Structured) else b)  # type: ignore[return-value]


# Toeplitz


@solving.solve.method
def _(x1: Toeplitz, x2: AbstractArray) -> Any:
    a, b = _system("solve", x1, x2)
    if b.ndim > 2 or not b.size:
        return solving.solve(verbs.dense(a), b)
    return refusing("solve", "toeplitz_solve", a.diagonals, b)


@solving.inv.method
def _(x: Toeplitz) -> Any:
    return solving.inv(verbs.dense(x))  # which is as large as the result


# Circulant


def _spectrum(x: Any) -> Any:
    """The eigenvalues, in the order of their waves."""
    return fourier.fft(x.parts[0]) if x.order else verbs.astype(x.parts[0], np.complex128)


def _of_spectrum(x: Any, values: Any, real: bool | None = None) -> Any:
    """The circulant matrix of given eigenvalues; real if `x` is, unless told."""
    if not x.order:
        return x
    column = fourier.ifft(values)
    return as_circulant(verbs.real(column) if (x.dtype.kind != "c" if real is None else real) else column)


def _regular(name: str, x: Any) -> Any:
    """The eigenvalues, none of which may be zero."""
    values = _spectrum(x)
    if x.order:
        size = verbs.abs(values)
        if bool(verbs.min(size) <= verbs.max(size) * float(np.finfo(x.dtype).eps)):
            raise LinAlgError(singular(name))
    return values


def _wave_solve(name: str, x: Any, b: Any, over: Any) -> Any:
    """C⁻¹ b, or another function of the eigenvalues of C times b."""
    if not b.size:
        return verbs.copy(b)
    values = over(_regular(name, x))
    axis = 0 if b.ndim == 1 else b.ndim - 2
    spread = values if b.ndim == 1 else values[:, None]
    found = fourier.ifft(verbs.multiply(fourier.fft(b, axis=axis), spread), axis=axis)
    return found if b.dtype.kind == "c" or x.dtype.kind == "c" else verbs.real(found)


@solving.solve.method
def _(x1: Circulant, x2: AbstractArray) -> Any:
    if isinstance(x2, Circulant):
        return verbs.matmul(solving.inv(x1), x2)
    a, b = _system("solve", x1, x2)
    return computed(verbs.copy(_wave_solve("solve", a, b, verbs.reciprocal)))


@solving.inv.method
def _(x: Circulant) -> Any:
    (x,) = inexact("inv", x)
    return _of_spectrum(x, verbs.reciprocal(_regular("inv", x)))


@solving.pinv.method
def _(x: Circulant, *, rtol: Any = None, hermitian: bool = False) -> Any:
    (x,) = inexact("pinv", x)
    values = _spectrum(x)
    size = verbs.abs(values)
    if rtol is None:
        rtol = x.order * float(np.finfo(x.dtype).eps)
    kept = size > verbs.max(size) * rtol if x.order else size > 0
    return _of_spectrum(x, verbs.where(kept, verbs.reciprocal(verbs.where(kept, values, 1)), 0))


def _as_field(x: Any, value: Any) -> Any:
    """Real for a real matrix, whose eigenvalues come in conjugate pairs."""
    return value if x.dtype.kind == "c" else verbs.real(value)


@solving.det.method
def _(x: Circulant) -> Any:
    (x,) = inexact("det", x)
    return _as_field(x, verbs.prod(_spectrum(x)))


@solving.slogdet.method
def _(x: Circulant) -> Any:
    (x,) = inexact("slogdet", x)
    sign, logabsdet = signs_and_logs(_spectrum(x))
    return SlogdetResult(sign if x.dtype.kind == "c" else verbs.sign(verbs.real(sign)), logabsdet)


@decompositions.eigvals.method
def _(x: Circulant) -> Any:
    return _spectrum(inexact("eigvals", x)[0])


@decompositions.eig.method
def _(x: Circulant) -> Any:
    (x,) = inexact("eig", x)
    n, values = x.order, _spectrum(x)
    at = indices(x.family, n)
    # The angle of the product of place and wave is taken modulo n: so it is as exact as a small one.
    angle = verbs.multiply(verbs.remainder(verbs.multiply(at[:, None], at), max(n, 1)), 2 * math.pi / max(n, 1))
    waves = verbs.multiply(verbs.exp(verbs.multiply(angle, 1j)), 1 / math.sqrt(max(n, 1)))
    return EigResult(values, computed(cast_to(waves, values.dtype)))


@decompositions.eigvalsh.method
def _(x: Circulant, *, UPLO: str = "L") -> Any:
    (x,) = inexact("eigvalsh", x)
    if not is_hermitian(x):  # one triangle is read, whose mirror image makes no circulant matrix
        return decompositions.eigvalsh(verbs.dense(x), UPLO=UPLO)
    decompositions._triangle("eigvalsh", UPLO)
    return sorting.sort(verbs.real(_spectrum(x)))


@decompositions.svdvals.method
def _(x: Circulant) -> Any:
    (x,) = inexact("svdvals", x)
    return sorting.sort(verbs.abs(_spectrum(x)), descending=True)


@norms.matrix_norm.method
def _(x: Circulant, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if isinstance(ord, str) or ord not in (1, -1, math.inf, -math.inf) or not x.order:
        return norms._matrix_norm(x, (0, 1), bool(keepdims), ord)
    found = norms.vector_norm(x.parts[0], ord=1)  # all rows, and all columns, hold the same numbers
    return verbs.reshape(found, (1, 1)) if keepdims else found


@chains.matrix_power.method
def _(x: Circulant, n: Any) -> Any:
    n = operator.index(n)
    if n < 0:
        return powered(solving.inv(x), -n)
    if not n:
        return as_circulant(verbs.astype(verbs.equal(indices(x.family, x.order), 0), x.dtype))
    return powered(x, n)


def _function(name: str, f: Any, cut: bool) -> Any:
    """A function of a matrix, by its eigenvalues; `cut`: it is not real for negative numbers."""

    def rule(A: Any) -> Any:
        (A,) = inexact(name, A)
        values = _spectrum(A)
        real = A.dtype.kind != "c"
        if real and cut and A.order:
            lone = verbs.real(values[:: max(A.order // 2, 1)] if A.order % 2 == 0 else values[:1])
            real = not bool(verbs.any(lone < 0))
        return _of_spectrum(A, f(values), real)

    rule.__name__ = name
    return rule


for _name, _f in (("expm", verbs.exp), ("logm", verbs.log), ("sqrtm", verbs.sqrt)):
    _rule = _function(_name, _f, _name != "expm")
    getattr(matrixfunctions, _name).method(_rule, signature=(Circulant,))
