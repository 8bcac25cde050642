"""Decompositions of matrices, and stacks of them, on a card: cuSOLVER's through CuPy.

CuPy leaves out what NumPy promises in errors (a matrix that is not definite goes unnoticed), in
options (`upper`, `hermitian`), and sometimes in stacks; that is added here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.backends.gpu.library import raising, routine


@contextlib.contextmanager
def refusing(xp: Any, text: str) -> Iterator[None]:
    """What the card's solvers report, as NumPy says it."""
    try:
        with raising(xp):
            yield
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(text) from None


def adjoint(x: Any) -> Any:
    """The matrices transposed, and conjugated if they are complex."""
    turned = x.swapaxes(-1, -2)
    return turned.conj() if x.dtype.kind == "c" else turned


def diagonal(x: Any) -> Any:
    return x.diagonal(0, -2, -1)


def stacked_eye(xp: Any, stack: tuple[int, ...], n: int, dtype: Any) -> Any:
    out = xp.zeros((*stack, n, n), dtype)
    at = xp.arange(n)
    out[..., at, at] = 1
    return out


def real_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


@routine("linalg.cholesky")
def cholesky(xp: Any, x: Any, *, upper: bool = False) -> Any:
    if not x.size:
        return x.copy()
    with refusing(xp, "Matrix is not positive definite"):
        return adjoint(xp.linalg.cholesky(adjoint(x))) if upper else xp.linalg.cholesky(x)


@routine("linalg.qr")
def qr(xp: Any, x: Any, *, mode: str = "reduced") -> Any:
    m, n = x.shape[-2:]
    if not x.size:
        k = m if mode == "complete" else min(m, n)
        r = xp.zeros((*x.shape[:-2], k, n), x.dtype)
        if mode == "r":
            return r
        full = stacked_eye(xp, x.shape[:-2], m, x.dtype)
        return full[..., :k].copy(), r
    with refusing(xp, "QR did not converge"):
        found = xp.linalg.qr(x, mode=mode)
    return found if mode == "r" else tuple(found)


@routine("linalg.svd")
def svd(
    xp: Any, x: Any, *, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if hermitian:
        return _hermitian_svd(xp, x, compute_uv)
    m, n = x.shape[-2:]
    k = min(m, n)
    if not x.size:
        stack = x.shape[:-2]
        s = xp.empty((*stack, k), real_dtype(x.dtype))
        if not compute_uv:
            return s
        u, vh = (stacked_eye(xp, stack, size, x.dtype) for size in (m, n))
        return (u, s, vh) if full_matrices else (u[..., :k].copy(), s, vh[..., :k, :].copy())
    with refusing(xp, "SVD did not converge"):
        found = xp.linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(found) if compute_uv else found


def _hermitian_svd(xp: Any, x: Any, compute_uv: bool) -> Any:
    """By eigenvalues, whose signs go to the right."""
    if not compute_uv:
        return xp.sort(xp.abs(eigvalsh(xp, x)), axis=-1)[..., ::-1].copy()
    values, vectors = eigh(xp, x)
    order = xp.argsort(xp.abs(values), axis=-1)[..., ::-1]
    values = xp.take_along_axis(values, order, axis=-1)
    vectors = xp.take_along_axis(vectors, order[..., None, :], axis=-1)
    signed = vectors * xp.where(values < 0, -1, 1).astype(values.dtype)[..., None, :]
    return vectors, xp.abs(values), adjoint(signed)


@routine("linalg.eigh")
def eigh(xp: Any, x: Any, *, UPLO: str = "L") -> Any:
    if not x.size:
        return xp.empty(x.shape[:-1], real_dtype(x.dtype)), x.copy()
    with refusing(xp, "Eigenvalues did not converge"):
        return tuple(xp.linalg.eigh(x, UPLO=UPLO))


@routine("linalg.eigvalsh")
def eigvalsh(xp: Any, x: Any, *, UPLO: str = "L") -> Any:
    if not x.size:
        return xp.empty(x.shape[:-1], real_dtype(x.dtype))
    with refusing(xp, "Eigenvalues did not converge"):
        return xp.linalg.eigvalsh(x, UPLO=UPLO)


def _checked_finite(xp: Any, x: Any) -> None:
    if not bool(xp.isfinite(x).all()):
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")


@routine("linalg.eig")
def eig(xp: Any, x: Any) -> Any:
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return xp.empty(x.shape[:-1], kind), xp.empty(x.shape, kind)
    _checked_finite(xp, x)
    with refusing(xp, "Eigenvalues did not converge"):
        values, vectors = xp.linalg.eig(x)
    return values.astype(kind, copy=False), vectors.astype(kind, copy=False)


@routine("linalg.eigvals")
def eigvals(xp: Any, x: Any) -> Any:
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return xp.empty(x.shape[:-1], kind)
    _checked_finite(xp, x)
    with refusing(xp, "Eigenvalues did not converge"):
        return xp.linalg.eigvals(x).astype(kind, copy=False)
