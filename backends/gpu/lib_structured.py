"""What structured arrays ask of a card: products and solves by their structure.

Half a matrix is completed or masked in one pass and multiplied by cuBLAS, which on a card is no slower
than routines that read one half.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_factors import refuse_zeros, solve_with_triangle
from mirabelle.backends.gpu.lib_linalg import adjoint, cholesky, diagonal, eigh, eigvalsh, svd
from mirabelle.backends.gpu.lib_products import matmul
from mirabelle.backends.gpu.lib_systems import columns, slogdet, solve
from mirabelle.backends.gpu.library import routine

# Tridiagonal systems up to this size may be solved as dense ones.
_DENSE = 1 << 14


def triangle(xp: Any, a: Any, upper: bool, unit: bool) -> Any:
    t = xp.triu(a) if upper else xp.tril(a)
    if unit:
        at = xp.arange(min(a.shape))
        t[at, at] = 1
    return t


@routine("triangular_product")
def _(xp: Any, a: Any, b: Any, *, upper: bool, unit: bool, left: bool) -> Any:
    t = triangle(xp, a, upper, unit)
    return matmul(xp, t, b) if left else matmul(xp, b, t)


def mirrored(xp: Any, a: Any, upper: bool, hermitian: bool) -> Any:
    """The whole matrix of which one half is given."""
    half = xp.triu(a, 1) if upper else xp.tril(a, -1)
    whole = half + (adjoint(half) if hermitian else half.T)
    at = xp.arange(a.shape[0])
    whole[at, at] = diagonal(a).real if hermitian else diagonal(a)
    return whole


@routine("mirrored_product")
def _(xp: Any, a: Any, b: Any, *, upper: bool, hermitian: bool, left: bool) -> Any:
    m = mirrored(xp, a, upper, hermitian and a.dtype.kind == "c")
    return matmul(xp, m, b) if left else matmul(xp, b, m)


@routine("adjoint_product")
def _(xp: Any, a: Any, b: Any, *, how: tuple[str, str]) -> Any:
    """The product of two matrices, each as it is (N), conjugated (J) or its adjoint (C)."""
    return matmul(xp, _shown(a, how[0]), _shown(b, how[1]))


def _shown(a: Any, how: str) -> Any:
    return a if how == "N" else a.conj() if how == "J" else a.conj().T


@routine("triangular_solve")
def _(xp: Any, a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    if not unit:
        refuse_zeros(a)
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    b, vector = columns(b)
    x = solve_with_triangle(xp, a.astype(dtype), b.astype(dtype), lower=not upper, unit_diagonal=unit)
    return x[..., 0].copy() if vector else x


@routine("mirrored_solve")
def _(xp: Any, a: Any, b: Any, *, upper: bool, hermitian: bool) -> Any:
    return solve(xp, mirrored(xp, a, upper, hermitian), b)


@routine("mirrored_slogdet")
def _(xp: Any, a: Any, *, upper: bool, hermitian: bool) -> Any:
    return slogdet(xp, mirrored(xp, a, upper, hermitian))


# Tridiagonal matrices


def tridiagonal(xp: Any, lower: Any, main: Any, upper: Any) -> Any:
    """The dense matrix of three diagonals."""
    n = main.size
    out = xp.zeros((n, n), np.result_type(lower.dtype, main.dtype, upper.dtype))
    at = xp.arange(n)
    out[at, at] = main
    if n > 1:
        out[at[1:], at[:-1]] = lower
        out[at[:-1], at[1:]] = upper
    return out


@routine("tridiagonal_solve")
def _(xp: Any, lower: Any, main: Any, upper: Any, b: Any) -> Any:
    """By cyclic reduction, which is parallel and exchanges no rows: so what it finds is checked."""
    n = main.size
    dtype = np.result_type(main.dtype, b.dtype, np.float32)
    lower, main, upper, b = (v.astype(dtype, copy=False) for v in (lower, main, upper, b))
    b, vector = columns(b)
    x = _reduced(xp, lower, main, upper, b)
    if not _solves(xp, lower, main, upper, x, b):
        if n > _DENSE:
            raise NotImplementedError(
                f"This tridiagonal system of {n} equations needs its rows exchanged to be solved, which runs "
                "on the host: `mb.linalg.solve(mb.adapt(mb.HostArray, A), mb.adapt(mb.HostArray, b))`."
            )
        x = solve(xp, tridiagonal(xp, lower, main, upper), b)
    return x[..., 0].copy() if vector else x


def _reduced(xp: Any, lower: Any, main: Any, upper: Any, b: Any) -> Any:
    """Each equation takes out its neighbours at distance 1, 2, 4, ...: then it stands alone."""
    n = main.size
    zero = xp.zeros(1, main.dtype)
    before, after = xp.concatenate([zero, lower]), xp.concatenate([upper, zero])
    step = 1
    while step < n:
        left, right = -before[step:] / main[:-step], -after[:-step] / main[step:]
        new_main, new_b = main.copy(), b.copy()
        new_before, new_after = xp.zeros(n, main.dtype), xp.zeros(n, main.dtype)
        new_main[step:] += left * after[:-step]
        new_b[step:] += left[:, None] * b[:-step]
        new_before[step:] = left * before[:-step]
        new_main[:-step] += right * before[step:]
        new_b[:-step] += right[:, None] * b[step:]
        new_after[:-step] = right * after[step:]
        before, main, after, b = new_before, new_main, new_after, new_b
        step *= 2
    return b / main[:, None]


def _solves(xp: Any, lower: Any, main: Any, upper: Any, x: Any, b: Any) -> bool:
    """Is the system solved up to what rounding explains?"""
    product = main[:, None] * x
    size = xp.abs(main)
    if main.size > 1:
        product[1:] += lower[:, None] * x[:-1]
        product[:-1] += upper[:, None] * x[1:]
        size[1:] += xp.abs(lower)
        size[:-1] += xp.abs(upper)
    eps = float(np.finfo(x.dtype).eps)
    scale = size.max() * xp.abs(x).max(axis=0) + xp.abs(b).max(axis=0)
    return bool((xp.abs(product - b).max(axis=0) <= 16 * eps * scale).all())


@routine("tridiagonal_slogdet")
def _(xp: Any, lower: Any, main: Any, upper: Any) -> Any:
    """By the recurrence of the leading blocks' determinants, as a product of 2 x 2 matrices in pairs.

    Each partial product is scaled by a power of two, whose exponent is kept apart.
    """
    dtype = main.dtype
    n = main.size
    if n < 2:
        return slogdet(xp, main.reshape(n, n))
    factors = xp.zeros((n, 2, 2), dtype)
    factors[:, 0, 0] = main
    factors[1:, 0, 1] = -lower * upper
    factors[:, 1, 0] = 1
    exponents = xp.zeros(n, np.float64)
    while factors.shape[0] > 1:
        if factors.shape[0] % 2:
            factors = xp.concatenate([factors, xp.eye(2, dtype=dtype)[None]])
            exponents = xp.concatenate([exponents, xp.zeros(1, np.float64)])
        factors = xp.matmul(factors[1::2], factors[::2])
        exponents = exponents[1::2] + exponents[::2]
        size = xp.abs(factors).max(axis=(1, 2))
        power = xp.where(size > 0, xp.floor(xp.log2(xp.where(size > 0, size, 1))), 0)
        factors = factors * (2.0**-power).astype(size.dtype)[:, None, None]
        exponents = exponents + power
    last = factors[0, 0, 0]
    size = xp.abs(last)
    sign = xp.where(size > 0, last / xp.where(size > 0, size, 1), 0).astype(dtype)
    logarithm = xp.log(size) + exponents[0] * float(np.log(2.0))
    return sign, logarithm.astype(size.dtype)


@routine("tridiagonal_eigh")
def _(xp: Any, main: Any, beside: Any, *, vectors: bool) -> Any:
    """As dense matrices: cuSOLVER knows no others."""
    whole = tridiagonal(xp, beside, main, xp.zeros(beside.shape, beside.dtype))
    return eigh(xp, whole) if vectors else eigvalsh(xp, whole)


@routine("tridiagonal_cholesky")
def _(xp: Any, main: Any, beside: Any) -> Any:
    whole = tridiagonal(xp, beside, main, xp.zeros(beside.shape, beside.dtype))
    factor = cholesky(xp, whole)
    return diagonal(factor).real.copy(), factor.diagonal(-1).copy()


@routine("bidiagonal_svdvals")
def _(xp: Any, main: Any, beside: Any) -> Any:
    whole = tridiagonal(xp, xp.zeros(beside.shape, beside.dtype), main, beside)
    return svd(xp, whole, compute_uv=False)
