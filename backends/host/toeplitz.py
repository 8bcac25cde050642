"""Products and solves of Toeplitz and circulant matrices: Fourier transforms, or directly if small.

A Toeplitz matrix comes as the entries of its diagonals, from the upper right corner to the lower
left one: T[i, j] = diagonals[i - j + columns - 1]. A circulant one comes as its first column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.structured import scipy_if_there
from mirabelle.backends.host.transforms import scipys

# Below this many entries of the matrix a direct product is as quick, and exact to the last bits.
_SMALL_FOR_VECTORS, _SMALL_FOR_MATRICES = 1 << 17, 1 << 15


@library.routine(HostArray, "toeplitz_product")
def toeplitz_product(diagonals: np.ndarray, b: np.ndarray, *, shape: tuple[int, int], left: bool) -> Any:
    """T @ b, or b @ T."""
    rows, columns = shape
    if not left:  # as the product of the transposes
        diagonals, columns, rows = diagonals[::-1], rows, columns
    b = _standing(b, left)
    if not (diagonals.size and b.size):
        out = np.zeros(
            (*b.shape[:-2], rows, *b.shape[-1:]) if b.ndim > 1 else rows, np.result_type(diagonals, b)
        )
    elif _is_direct(diagonals, b, rows * columns):
        out = _direct(diagonals, b, columns)
    else:
        size = _fast_length(diagonals.size)
        out = _convolved(diagonals, b, size)[..., columns - 1 : columns - 1 + rows, :]
        out = _of_shape(out, b)
        if not np.isfinite(out).all():  # one such entry spreads over all of a transform
            out = _direct(diagonals, b, columns)
    return _lying(out, left)


@library.routine(HostArray, "circulant_product")
def circulant_product(column: np.ndarray, b: np.ndarray, *, left: bool) -> Any:
    """C @ b, or b @ C."""
    n = column.size
    if not left:
        column = np.roll(column[::-1], 1)
    b = _standing(b, left)
    if not (n and b.size):
        out = np.zeros(b.shape, np.result_type(column, b))
    elif _is_direct(column, b, n * n):
        out = _direct(around(column), b, n)
    else:
        out = _of_shape(_convolved(column, b, n), b)
        if not np.isfinite(out).all():
            out = _direct(around(column), b, n)
    return _lying(out, left)


def around(column: np.ndarray) -> np.ndarray:
    """The diagonals of a circulant matrix."""
    return np.concatenate([column[1:], column])


def toeplitz(diagonals: np.ndarray, columns: int) -> np.ndarray:
    """The matrix as a view of its diagonals."""
    windows: np.ndarray = np.lib.stride_tricks.sliding_window_view(diagonals, columns)
    return windows[:, ::-1]


def _standing(b: np.ndarray, left: bool) -> np.ndarray:
    return b if left or b.ndim == 1 else np.swapaxes(b, -1, -2)


_lying = _standing


def _is_direct(a: np.ndarray, b: np.ndarray, entries: int) -> bool:
    small = _SMALL_FOR_VECTORS if b.ndim == 1 else _SMALL_FOR_MATRICES
    return entries <= small or np.result_type(a, b).kind not in "fc"


def _direct(diagonals: np.ndarray, b: np.ndarray, columns: int) -> np.ndarray:
    dtype = np.result_type(diagonals, b)
    if b.ndim == 1 and dtype.kind != "b":
        return np.convolve(diagonals, b, "valid").astype(dtype, copy=False)
    return np.matmul(toeplitz(diagonals, columns), b)


def _convolved(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """The circular convolution of a vector with columns."""
    dtype = np.result_type(a, b)
    fft: Any = scipys() or np.fft
    if dtype.char == "e":
        a, b = a.astype(np.float32), b.astype(np.float32)
    columns = b[:, None] if b.ndim == 1 else b
    forward, backward = (fft.fft, fft.ifft) if dtype.kind == "c" else (fft.rfft, fft.irfft)
    product = forward(a, size)[:, None] * forward(columns, size, axis=-2)
    out: np.ndarray = backward(product, size, axis=-2)
    return out.astype(dtype, copy=False)


def _of_shape(out: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(out[:, 0] if b.ndim == 1 else out)


def _fast_length(n: int) -> int:
    """The next length that has only small prime factors."""
    while True:
        m = n
        for p in (2, 3, 5):
            while m % p == 0:
                m //= p
        if m == 1:
            return n
        n += 1


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
    residual = np.abs(toeplitz_product(diagonals, x, shape=(n, n), left=True) - b)
    scale = np.abs(diagonals).sum() * np.abs(x).max(axis=0) + np.abs(b).max(axis=0)
    eps = float(np.finfo(x.dtype).eps)
    return bool((residual.max(axis=0) <= 4 * np.sqrt(n) * eps * scale).all())
