"""What structured arrays ask of the host's BLAS and LAPACK: products and solves by their structure.

SciPy gives the routines; without it NumPy's general ones do, on dense copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray


def scipy_if_there() -> Any:
    """scipy.linalg, or None where SciPy is not installed."""
    try:
        import scipy.linalg

        return scipy.linalg
    except ImportError:
        return None


def _blas(name: str, *arrays: np.ndarray) -> tuple[Any, np.dtype]:
    """(a BLAS routine, its dtype) for the result of these operands; (None, ...) where BLAS has none."""
    dtype = np.result_type(*arrays)
    linalg = scipy_if_there()
    if linalg is None or dtype.char not in "fdFD" or not all(a.size for a in arrays):
        return None, dtype
    return linalg.get_blas_funcs(name, dtype=dtype), dtype


@library.routine(HostArray, "triangular_product")
def triangular_product(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool, left: bool) -> Any:
    """triangle(a) @ b, or b @ triangle(a)."""
    trmm, dtype = _blas("trmm", a, b)
    if trmm is None:
        t = triangle(a, upper, unit)
        return np.matmul(t, b) if left else np.matmul(b, t)
    a, flip = _by_columns(a, dtype)
    if b.ndim == 1:
        trmv, _ = _blas("trmv", a, b)
        return trmv(
            a, b.astype(dtype, copy=False), lower=int(upper == flip), trans=int(flip == left), diag=int(unit)
        )  # fmt: skip
    found = trmm(
        1.0, a, _as_matrix(b, dtype, left), side=int(not left), lower=int(upper == flip), trans_a=int(flip),
        diag=int(unit),
    )  # fmt: skip
    return found.reshape(b.shape)


def _by_columns(a: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, bool]:
    """A matrix as BLAS reads it without a copy, and whether that is its transpose."""
    flip = a.flags.c_contiguous and not a.flags.f_contiguous
    return (a.T if flip else a).astype(dtype, copy=False), flip


def _as_matrix(b: np.ndarray, dtype: np.dtype, column: bool) -> np.ndarray:
    """The other factor: a vector is one column, or one row."""
    b = b.astype(dtype, copy=False)
    return b if b.ndim == 2 else b[:, None] if column else b[None]


def triangle(a: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    t = np.triu(a) if upper else np.tril(a)
    if unit:
        np.fill_diagonal(t, 1)
    return t


@library.routine(HostArray, "mirrored_product")
def mirrored_product(a: np.ndarray, b: np.ndarray, *, upper: bool, hermitian: bool, left: bool) -> Any:
    """mirror(a) @ b, or b @ mirror(a)."""
    dtype = np.result_type(a, b)
    hermitian = hermitian and dtype.kind == "c"
    multiply, _ = _blas("hemm" if hermitian else "symm", a, b)
    if multiply is None:
        m = mirrored(a, upper, hermitian)
        return np.matmul(m, b) if left else np.matmul(b, m)
    a, flip = _by_columns(a, dtype)
    turned = hermitian and flip  # what is read is the transpose, so the conjugate
    if b.ndim == 1 and (hermitian or dtype.kind != "c"):
        by_vector, _ = _blas("hemv" if hermitian else "symv", a, b)
        turned ^= hermitian and not left  # b H is the conjugate of H conj(b)
        found = by_vector(
            1.0, a, (b.conj() if turned else b).astype(dtype, copy=False), lower=int(upper == flip)
        )
        return found.conj() if turned else found
    b2 = _as_matrix(b, dtype, left)
    found = multiply(1.0, a, b2.conj() if turned else b2, side=int(not left), lower=int(upper == flip))
    return (found.conj() if turned else found).reshape(b.shape)


def mirrored(a: np.ndarray, upper: bool, hermitian: bool) -> np.ndarray:
    """The whole matrix of which one half is given."""
    half = np.triu(a, 1) if upper else np.tril(a, -1)
    middle = np.diagonal(a).real if hermitian else np.diagonal(a)
    whole: np.ndarray = half + (half.conj().T if hermitian else half.T)
    np.fill_diagonal(whole, middle)
    return whole


@library.routine(HostArray, "adjoint_product")
def adjoint_product(a: np.ndarray, b: np.ndarray, *, how: tuple[str, str]) -> Any:
    """The product of two matrices, each as it is (N), conjugated (J) or its adjoint (C)."""
    gemm, dtype = _blas("gemm", a, b)
    if gemm is None or a.ndim != 2 or b.ndim != 2 or "J" in how:
        return np.matmul(_shown(a, how[0]), _shown(b, how[1]))
    return gemm(
        1.0, a.astype(dtype, copy=False), b.astype(dtype, copy=False),
        trans_a=2 * (how[0] == "C"), trans_b=2 * (how[1] == "C"),
    )  # fmt: skip


def _shown(a: np.ndarray, how: str) -> np.ndarray:
    return a if how == "N" else a.conj() if how == "J" else a.conj().T


@library.routine(HostArray, "triangular_solve")
def triangular_solve(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool) -> Any:
    """The x of triangle(a) @ x = b."""
    linalg = scipy_if_there()
    dtype = np.result_type(a, b, np.float32)
    if not unit and (np.diagonal(a) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    if linalg is None or dtype.char not in "fdFD" or not b.size:
        return np.linalg.solve(triangle(a, upper, unit), b)
    return linalg.solve_triangular(
        a.astype(dtype, copy=False), b.astype(dtype, copy=False), lower=not upper, unit_diagonal=unit,
        check_finite=False,
    )  # fmt: skip


@library.routine(HostArray, "tridiagonal_solve")
def tridiagonal_solve(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> Any:
    """The x of the tridiagonal system, by LAPACK's gtsv (elimination with pivoting)."""
    dtype = np.result_type(main, b, np.float32)
    linalg = scipy_if_there()
    if linalg is None or dtype.char not in "fdFD":
        return _eliminated(lower, main, upper, b)
    (gtsv,) = linalg.get_lapack_funcs(("gtsv",), dtype=dtype)
    if main.size == 1:
        return _eliminated(lower, main, upper, b)
    *_, x, info = gtsv(*(v.astype(dtype) for v in (lower, main, upper)), b.astype(dtype))
    if info > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return x


def _eliminated(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Gaussian elimination of a tridiagonal system, with exchange of neighbouring rows."""
    n = len(main)
    dtype = np.result_type(main, b, np.float32)
    # Row i of the matrix as its entries in the columns i, i + 1, i + 2.
    rows = np.zeros((n, 3), dtype)
    rows[:, 0], rows[: n - 1, 1] = main, upper
    x = np.array(b, dtype)
    for i in range(n - 1):
        below = np.array([lower[i], rows[i + 1, 0], rows[i + 1, 1]])
        if abs(below[0]) > abs(rows[i, 0]):
            rows[i], below = below, rows[i].copy()
            x[[i, i + 1]] = x[[i + 1, i]]
        if rows[i, 0] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        factor = below[0] / rows[i, 0]
        rows[i + 1, :2] = (below - factor * rows[i])[1:]
        x[i + 1] = x[i + 1] - factor * x[i]
    if n and rows[n - 1, 0] == 0:
        raise np.linalg.LinAlgError("Singular matrix")
    for i in range(n - 1, -1, -1):
        for k in (1, 2):
            if i + k < n:
                x[i] = x[i] - rows[i, k] * x[i + k]
        x[i] = x[i] / rows[i, 0]
    return x


@library.routine(HostArray, "mirrored_solve")
def mirrored_solve(a: np.ndarray, b: np.ndarray, *, upper: bool, hermitian: bool) -> Any:
    """The x of mirror(a) @ x = b: by Cholesky's factors if it is positive definite, else by LU.

    (LAPACK's way for indefinite symmetric matrices needs half as many operations as LU, and twice its time.)
    """
    dtype = np.result_type(a, b, np.float32)
    posv = _for_positive("posv", a, dtype, hermitian) if b.size else None
    if posv is not None:
        half, flip = _by_columns(a, dtype)
        turned = hermitian and flip  # what is read is the transpose, so the conjugate
        columns = b.astype(dtype, copy=False).reshape(len(b), -1)
        *_, x, info = posv(half, columns.conj() if turned else columns, lower=int(upper == flip))
        if not info:
            return (x.conj() if turned else x).reshape(b.shape)
    return np.linalg.solve(mirrored(a, upper, hermitian), b)


def _for_positive(name: str, a: np.ndarray, dtype: np.dtype, hermitian: bool) -> Any:
    """LAPACK's routine of that name for positive definite matrices, if this one may be; else None."""
    linalg = scipy_if_there()
    if linalg is None or dtype.char not in "fdFD" or (dtype.kind == "c" and not hermitian):
        return None
    if not (np.diagonal(a).real > 0).all():
        return None
    (routine,) = linalg.get_lapack_funcs((name,), dtype=dtype)
    return routine


@library.routine(HostArray, "mirrored_slogdet")
def mirrored_slogdet(a: np.ndarray, *, upper: bool, hermitian: bool) -> Any:
    """Sign and logarithm of the determinant of mirror(a), likewise."""
    potrf = _for_positive("potrf", a, a.dtype, hermitian) if a.size else None
    if potrf is not None:
        half, flip = _by_columns(a, a.dtype)
        factor, info = potrf(half, lower=int(upper == flip), clean=0)
        if not info:
            return a.dtype.type(1), 2 * np.log(np.diagonal(factor).real).sum()
    return tuple(np.linalg.slogdet(mirrored(a, upper, hermitian)))


@library.routine(HostArray, "tridiagonal_slogdet")
def tridiagonal_slogdet(lower: np.ndarray, main: np.ndarray, upper: np.ndarray) -> Any:
    """Sign and logarithm of the determinant, by elimination with pivoting."""
    linalg = scipy_if_there()
    sign: Any = main.dtype.type(1)
    if linalg is None or main.size < 3:
        whole = np.diag(main) + (np.diag(lower, -1) + np.diag(upper, 1) if main.size > 1 else 0)
        return tuple(np.linalg.slogdet(whole))
    (gttrf,) = linalg.get_lapack_funcs(("gttrf",), dtype=main.dtype)
    _, d, _, _, pivots, _ = gttrf(lower, main, upper)
    swaps = np.count_nonzero(pivots != np.arange(1, len(main) + 1))
    with np.errstate(all="ignore"):
        sign = np.prod(np.sign(d)) * (-1) ** int(swaps)
        return d.dtype.type(sign), np.log(np.abs(d)).sum()


@library.routine(HostArray, "tridiagonal_eigh")
def tridiagonal_eigh(main: np.ndarray, beside: np.ndarray, *, vectors: bool) -> Any:
    """Eigenvalues, and eigenvectors if wanted, of the symmetric tridiagonal matrix."""
    linalg = scipy_if_there()
    if linalg is None or main.size < 2:
        whole = np.diag(main) + (np.diag(beside, -1) if main.size > 1 else 0)
        return tuple(np.linalg.eigh(whole)) if vectors else np.linalg.eigvalsh(whole)
    return linalg.eigh_tridiagonal(main, beside, eigvals_only=not vectors)


@library.routine(HostArray, "tridiagonal_cholesky")
def tridiagonal_cholesky(main: np.ndarray, beside: np.ndarray) -> Any:
    """The two diagonals of the factor of the positive definite tridiagonal matrix."""
    linalg = scipy_if_there()
    if linalg is None or main.size < 2:
        factor = np.linalg.cholesky(np.diag(main) + (np.diag(beside, -1) if main.size > 1 else 0))
        return np.diagonal(factor).real.copy(), np.diagonal(factor, -1).copy()
    (pttrf,) = linalg.get_lapack_funcs(("pttrf",), (main, beside))
    d, e, info = pttrf(main, beside)
    if info:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    root = np.sqrt(d)
    return root, e * root[:-1]


@library.routine(HostArray, "bidiagonal_svdvals")
def bidiagonal_svdvals(main: np.ndarray, beside: np.ndarray) -> Any:
    """The singular values, from the absolute values of the diagonals.

    They are the positive eigenvalues of the tridiagonal matrix that has zeros on its diagonal, and
    the elements of both in turn beside it.
    """
    n, linalg = main.size, scipy_if_there()
    if linalg is None or n < 2:
        return np.linalg.svd(np.diag(main) + (np.diag(beside, 1) if n > 1 else 0), compute_uv=False)
    around = np.zeros(2 * n - 1, main.dtype)
    around[::2], around[1::2] = main, beside
    values = linalg.eigh_tridiagonal(np.zeros(2 * n, main.dtype), around, eigvals_only=True)
    return np.maximum(values[: n - 1 : -1], 0)
