"""Toeplitz matrices on the host: direct products (others: `backends/toeplitz.py`), and solves."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.structured import scipy_if_there
from mirabelle.backends.host.transforms import scipys
from mirabelle.backends.toeplitz import Place, routines

# Below this many entries of the matrix a direct product is as quick, and exact to the last bits.
_SMALL_FOR_VECTORS, _SMALL_FOR_MATRICES = 1 << 17, 1 << 15


def toeplitz(diagonals: np.ndarray, columns: int) -> np.ndarray:
    """The matrix as a view of its diagonals."""
    windows: np.ndarray = np.lib.stride_tricks.sliding_window_view(diagonals, columns)
    return windows[:, ::-1]


def _is_direct(dtype: np.dtype, b: np.ndarray, entries: int) -> bool:
    small = _SMALL_FOR_VECTORS if b.ndim == 1 else _SMALL_FOR_MATRICES
    return entries <= small or dtype.kind not in "fc"


def _direct(xp: Any, diagonals: np.ndarray, b: np.ndarray, rows: int, columns: int) -> np.ndarray:
    dtype = np.result_type(diagonals, b)
    if b.ndim == 1 and dtype.kind != "b":
        return np.convolve(diagonals, b, "valid").astype(dtype, copy=False)
    return np.matmul(toeplitz(diagonals, columns), b)


_products = routines(Place(_is_direct, _direct, lambda xp: scipys() or np.fft, (2, 3, 5)))
for _name, _routine in _products.items():
    library.routine(HostArray, _name)(functools.partial(_routine, np))


@library.routine(HostArray, "toeplitz_solve")
def toeplitz_solve(diagonals: np.ndarray, b: np.ndarray) -> Any:
    """The x of T @ x = b by Levinson's recursion, n² steps; by LAPACK where that is not exact enough.

    The recursion needs all leading blocks of the matrix to be well conditioned, which a general
    matrix does not promise: so what it says is checked.
    """
    n = (diagonals.size + 1) // 2
    column, row = diagonals[n - 1 :], diagonals[n - 1 :: -1]
    linalg = scipy_if_there()
    if n > 32 and linalg is not None:
        try:
            x = linalg.solve_toeplitz((column, row), b, check_finite=False)
        except np.linalg.LinAlgError:
            pass
        else:
            x = x.astype(b.dtype, copy=False)
            if _solves(diagonals, x, b, n):
                return x
    return np.linalg.solve(toeplitz(diagonals, n), b)


def _solves(diagonals: np.ndarray, x: np.ndarray, b: np.ndarray, n: int) -> bool:
    """Is T @ x = b up to what rounding explains?"""
    residual = np.abs(_products["toeplitz_product"](np, diagonals, x, shape=(n, n), left=True) - b)
    scale = np.abs(diagonals).sum() * np.abs(x).max(axis=0) + np.abs(b).max(axis=0)
    eps = float(np.finfo(x.dtype).eps)
    return bool((residual.max(axis=0) <= 4 * np.sqrt(n) * eps * scale).all())
