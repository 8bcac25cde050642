"""Products of Toeplitz and circulant matrices in all places: by Fourier transforms, or directly if small.

A Toeplitz matrix comes as the entries of its diagonals, from the upper right corner to the lower
left one: T[i, j] = diagonals[i - j + columns - 1]. A circulant one comes as its first column. All is
written for an array module `xp`, NumPy or CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Place(NamedTuple):
    """What a place does in its own way."""

    # Is a direct product as quick (and exact to the last bits)? Of (dtype, b, entries of the matrix).
    is_direct: Callable[..., bool]
    # The product itself, of (xp, diagonals, b, rows, columns).
    direct: Callable[..., Any]
    # The Fourier transforms of `xp`, and the prime factors of lengths that they are quick for.
    transforms: Callable[..., Any]
    primes: tuple[int, ...]


def routines(place: Place) -> dict[str, Callable[..., Any]]:
    """The routines by their names: functions of the array module and of arrays."""

    def toeplitz_product(xp: Any, diagonals: Any, b: Any, *, shape: tuple[int, int], left: bool) -> Any:
        """T @ b, or b @ T."""
        rows, columns = shape
        if not left:  # as the product of the transposes
            diagonals, columns, rows = diagonals[::-1], rows, columns
        b = _standing(b, left)
        dtype = np.result_type(diagonals.dtype, b.dtype)
        if not (diagonals.size and b.size):
            out = xp.zeros((*b.shape[:-2], rows, *b.shape[-1:]) if b.ndim > 1 else (rows,), dtype)
        elif place.is_direct(dtype, b, rows * columns):
            out = place.direct(xp, diagonals, b, rows, columns)
        else:
            size = fast_length(diagonals.size, place.primes)
            found = _convolved(place.transforms(xp), diagonals, b, size, dtype)
            out = _of_shape(xp, found[..., columns - 1 : columns - 1 + rows, :], b)
            if not bool(xp.isfinite(out).all()):  # one such entry spreads over all of a transform
                out = place.direct(xp, diagonals, b, rows, columns)
        return _standing(out, left)

    def circulant_product(xp: Any, column: Any, b: Any, *, left: bool) -> Any:
        """C @ b, or b @ C."""
        n = column.size
        if not left:
            column = xp.roll(column[::-1], 1)
        b = _standing(b, left)
        dtype = np.result_type(column.dtype, b.dtype)
        out: Any = None
        if not (n and b.size):
            out = xp.zeros(b.shape, dtype)
        elif not place.is_direct(dtype, b, n * n):
            out = _of_shape(xp, _convolved(place.transforms(xp), column, b, n, dtype), b)
        if out is None or not bool(xp.isfinite(out).all()):
            out = place.direct(xp, xp.concatenate([column[1:], column]), b, n, n)
        return _standing(out, left)

    return {"toeplitz_product": toeplitz_product, "circulant_product": circulant_product}


def fast_length(n: int, primes: tuple[int, ...]) -> int:
    """The next length that has only such prime factors.

    >>> fast_length(97, (2, 3, 5)), fast_length(97, (2, 3, 5, 7))
    (100, 98)
    """
    while True:
        m = n
        for p in primes:
            while m % p == 0:
                m //= p
        if m == 1:
            return n
        n += 1


def _standing(b: Any, left: bool) -> Any:
    return b if left or b.ndim == 1 else b.swapaxes(-1, -2)


def _convolved(fft: Any, a: Any, b: Any, size: int, dtype: np.dtype) -> Any:
    """The circular convolution of a vector with columns."""
    if dtype.char == "e":
        a, b = a.astype(np.float32), b.astype(np.float32)
    columns = b[:, None] if b.ndim == 1 else b
    forward, backward = (fft.fft, fft.ifft) if dtype.kind == "c" else (fft.rfft, fft.irfft)
    product = forward(a, size)[:, None] * forward(columns, size, axis=-2)
    return backward(product, size, axis=-2).astype(dtype, copy=False)


def _of_shape(xp: Any, out: Any, b: Any) -> Any:
    return xp.ascontiguousarray(out[:, 0] if b.ndim == 1 else out)
