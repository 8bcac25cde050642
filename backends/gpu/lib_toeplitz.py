"""Products and solves of Toeplitz and circulant matrices, and of Kronecker sums, on a card.

A Toeplitz matrix comes as the entries of its diagonals, from the upper right corner to the lower left
one: T[i, j] = diagonals[i - j + columns - 1]. A circulant one comes as its first column.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_convolution import fast_length
from mirabelle.backends.gpu.lib_linalg import eig
from mirabelle.backends.gpu.lib_products import matmul
from mirabelle.backends.gpu.lib_systems import solve
from mirabelle.backends.gpu.library import routine

# Below this many entries of the matrix a direct product is as quick, and exact to the last bits.
_SMALL = 1 << 20
# The most bytes that a Kronecker sum may have as one dense matrix.
_WHOLE = 1 << 30


def toeplitz(xp: Any, diagonals: Any, rows: int, columns: int) -> Any:
    """The whole matrix."""
    i, j = xp.arange(rows)[:, None], xp.arange(columns)[None, :]
    return diagonals[i - j + (columns - 1)]


@routine("toeplitz_product")
def toeplitz_product(xp: Any, diagonals: Any, b: Any, *, shape: tuple[int, int], left: bool) -> Any:
    """T @ b, or b @ T."""
    rows, columns = shape
    if not left:  # as the product of the transposes
        diagonals, columns, rows = diagonals[::-1], rows, columns
    b = _standing(b, left)
    dtype = np.result_type(diagonals.dtype, b.dtype)
    if not (diagonals.size and b.size):
        out = xp.zeros((*b.shape[:-2], rows, *b.shape[-1:]) if b.ndim > 1 else (rows,), dtype)
    elif rows * columns <= _SMALL or dtype.kind not in "fc":
        out = matmul(xp, toeplitz(xp, diagonals, rows, columns), b)
    else:
        found = _convolved(xp, diagonals, b, fast_length(diagonals.size))
        out = _of_shape(xp, found[..., columns - 1 : columns - 1 + rows, :], b)
        if not bool(xp.isfinite(out).all()):  # one such entry spreads over all of a transform
            out = matmul(xp, toeplitz(xp, diagonals, rows, columns), b)
    return _standing(out, left)


@routine("circulant_product")
def _(xp: Any, column: Any, b: Any, *, left: bool) -> Any:
    """C @ b, or b @ C."""
    n = column.size
    if not left:
        column = xp.roll(column[::-1], 1)
    b = _standing(b, left)
    dtype = np.result_type(column.dtype, b.dtype)
    if not (n and b.size):
        out = xp.zeros(b.shape, dtype)
    elif n * n <= _SMALL or dtype.kind not in "fc":
        out = matmul(xp, _circulant(xp, column), b)
    else:
        out = _of_shape(xp, _convolved(xp, column, b, n), b)
        if not bool(xp.isfinite(out).all()):
            out = matmul(xp, _circulant(xp, column), b)
    return _standing(out, left)


def _circulant(xp: Any, column: Any) -> Any:
    return toeplitz(xp, xp.concatenate([column[1:], column]), column.size, column.size)


def _standing(b: Any, left: bool) -> Any:
    return b if left or b.ndim == 1 else b.swapaxes(-1, -2)


def _convolved(xp: Any, a: Any, b: Any, size: int) -> Any:
    """The circular convolution of a vector with columns."""
    dtype = np.result_type(a.dtype, b.dtype)
    columns = b[:, None] if b.ndim == 1 else b
    forward, backward = (xp.fft.fft, xp.fft.ifft) if dtype.kind == "c" else (xp.fft.rfft, xp.fft.irfft)
    product = forward(a, size)[:, None] * forward(columns, size, axis=-2)
    return backward(product, size, axis=-2).astype(dtype, copy=False)


def _of_shape(xp: Any, out: Any, b: Any) -> Any:
    return xp.ascontiguousarray(out[:, 0] if b.ndim == 1 else out)


@routine("toeplitz_solve")
def _(xp: Any, diagonals: Any, b: Any) -> Any:
    """As a dense system: the recursions that know the structure go one step after the other."""
    n = (diagonals.size + 1) // 2
    return solve(xp, toeplitz(xp, diagonals, n, n), b)


# Kronecker sums


@routine("kronecker_sum_solve")
def _(xp: Any, parts: list[Any], b: Any) -> Any:
    """The x with (A ⊕ B ⊕ ...) x = b, where `b` has an axis for each matrix between two others.

    By the eigenvectors of the parts, and checked: a matrix may have too few, or nearly parallel ones.
    """
    x = _in_eigenvectors(xp, parts, b)
    if x is not None and _solves(xp, parts, x, b):
        return x
    n = math.prod(len(p) for p in parts)
    if n * n * b.itemsize > _WHOLE:
        raise NotImplementedError(
            "This Kronecker sum has a part without a good basis of eigenvectors; solving with it takes Schur's "
            "form, which no library for cards has. Move it to the host: `mb.adapt(mb.HostArray, A)`."
        )
    whole = functools.reduce(xp.add, [_widened(xp, parts, k) for k in range(len(parts))])
    return solve(xp, whole, b.reshape(b.shape[0], n, b.shape[-1])).reshape(b.shape)


def _widened(xp: Any, parts: list[Any], k: int) -> Any:
    return functools.reduce(
        xp.kron, [p if m == k else xp.eye(len(p), dtype=p.dtype) for m, p in enumerate(parts)]
    )


def _along(xp: Any, m: Any, x: Any, axis: int) -> Any:
    """A matrix times all lines of `x` along an axis."""
    return xp.moveaxis(xp.tensordot(m, x, (1, axis)), 0, axis)


def _in_eigenvectors(xp: Any, parts: list[Any], b: Any) -> Any:
    found = [eig(xp, p) for p in parts]
    x, total = b, 0
    for k, (values, vectors) in enumerate(found):
        try:
            x = _along(xp, solve(xp, vectors, xp.eye(len(vectors), dtype=vectors.dtype)), x, k + 1)
        except np.linalg.LinAlgError:
            return None
        total = total + values.reshape((1,) * (k + 1) + (-1,) + (1,) * (b.ndim - k - 2))
    size = xp.abs(total)
    if bool(size.min() <= size.max() * float(np.finfo(size.dtype).eps)):
        raise np.linalg.LinAlgError("Singular matrix")
    x = x / total
    for k, (_, vectors) in enumerate(found):
        x = _along(xp, vectors, x, k + 1)
    return x.astype(b.dtype) if b.dtype.kind == "c" else xp.ascontiguousarray(x.real).astype(b.dtype)


def _solves(xp: Any, parts: list[Any], x: Any, b: Any) -> bool:
    product = functools.reduce(xp.add, [_along(xp, p, x, k + 1) for k, p in enumerate(parts)])
    size = functools.reduce(xp.add, [xp.abs(p).sum(axis=1).max() for p in parts])
    eps = float(np.finfo(x.dtype).eps)
    scale = size * xp.abs(x).max() + xp.abs(b).max()
    return bool(xp.abs(product - b).max() <= 64 * eps * scale)
