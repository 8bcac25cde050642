"""What structured arrays ask of a place's library: products and solves of BLAS and LAPACK.

Each is a function of NumPy views for the host; another backend registers its own by the same names.
SciPy gives the routines; without it NumPy's general ones do, on dense copies.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray


@functools.lru_cache(maxsize=1)
def scipy_linalg() -> Any:
    """scipy.linalg, or None where SciPy is not installed."""
    try:
        import scipy.linalg

        return scipy.linalg
    except ImportError:
        return None


def _blas(name: str, *arrays: np.ndarray) -> tuple[Any, np.dtype]:
    """(a BLAS routine, its dtype) for the result of these operands; (None, ...) where BLAS has none."""
    dtype = np.result_type(*arrays)
    linalg = scipy_linalg()
    if linalg is None or dtype.char not in "fdFD" or not all(a.size for a in arrays):
        return None, dtype
    return linalg.get_blas_funcs(name, dtype=dtype), dtype


@library.routine(HostArray, "triangular_product")
def triangular_product(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool, left: bool) -> Any:
    """triangle(a) @ b, or b @ triangle(a)."""
    trmm, dtype = _blas("trmm", a, b)
    if trmm is None or b.ndim != 2:
        t = triangle(a, upper, unit)
        return np.matmul(t, b) if left else np.matmul(b, t)
    # BLAS reads columns: a C-ordered matrix is the transpose of one it takes without a copy.
    flip = a.flags.c_contiguous and not a.flags.f_contiguous
    return trmm(
        1.0, (a.T if flip else a).astype(dtype, copy=False), b.astype(dtype, copy=False),
        side=int(not left), lower=int(upper == flip), trans_a=int(flip), diag=int(unit),
    )  # fmt: skip


def triangle(a: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    t = np.triu(a) if upper else np.tril(a)
    if unit:
        np.fill_diagonal(t, 1)
    return t


@library.routine(HostArray, "mirrored_product")
def mirrored_product(a: np.ndarray, b: np.ndarray, *, upper: bool, hermitian: bool, left: bool) -> Any:
    """mirror(a) @ b, or b @ mirror(a)."""
    dtype = np.result_type(a, b)
    name = "hemm" if hermitian and dtype.kind == "c" else "symm"
    multiply, _ = _blas(name, a, b)
    # (BLAS has no product of a Hermitian matrix given by its transpose.)
    flip = a.flags.c_contiguous and not a.flags.f_contiguous
    if multiply is None or b.ndim != 2 or (hermitian and flip):
        m = mirrored(a, upper, hermitian)
        return np.matmul(m, b) if left else np.matmul(b, m)
    return multiply(
        1.0, (a.T if flip else a).astype(dtype, copy=False), b.astype(dtype, copy=False),
        side=int(not left), lower=int(upper == flip),
    )  # fmt: skip


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
    linalg = scipy_linalg()
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
    linalg = scipy_linalg()
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
    """The x of mirror(a) @ x = b, by the factorisation for symmetric matrices."""
    linalg = scipy_linalg()
    dtype = np.result_type(a, b, np.float32)
    whole = mirrored(a, upper, hermitian)
    if linalg is None or dtype.char not in "fdFD" or not b.size:
        return np.linalg.solve(whole, b)
    (solve,) = linalg.get_lapack_funcs(("hesv" if hermitian else "sysv",), dtype=dtype)
    columns = b.astype(dtype, copy=False).reshape(len(b), -1)
    *_, x, info = solve(whole.astype(dtype, copy=False), columns)
    if info > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return x.reshape(b.shape)
