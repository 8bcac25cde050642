"""Toeplitz and circulant matrices (see `backends/toeplitz.py`), and Kronecker sums, on a card."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_convolution import FACTORS
from mirabelle.backends.gpu.lib_linalg import eig
from mirabelle.backends.gpu.lib_products import matmul
from mirabelle.backends.gpu.lib_systems import solve
from mirabelle.backends.gpu.library import routine
from mirabelle.backends.toeplitz import Place, routines

# Below this many entries of the matrix a direct product is as quick, and exact to the last bits.
_SMALL = 1 << 20
# The most bytes that a Kronecker sum may have as one dense matrix.
_WHOLE = 1 << 30


def toeplitz(xp: Any, diagonals: Any, rows: int, columns: int) -> Any:
    """The whole matrix."""
    i, j = xp.arange(rows)[:, None], xp.arange(columns)[None, :]
    return diagonals[i - j + (columns - 1)]


def _direct(xp: Any, diagonals: Any, b: Any, rows: int, columns: int) -> Any:
    return matmul(xp, toeplitz(xp, diagonals, rows, columns), b)


def _is_direct(dtype: np.dtype, b: Any, entries: int) -> bool:
    return entries <= _SMALL or dtype.kind not in "fc"


for _name, _routine in routines(Place(_is_direct, _direct, lambda xp: xp.fft, FACTORS)).items():
    routine(_name)(_routine)


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
