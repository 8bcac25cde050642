"""Solving with matrices on a card: systems, inverses, determinants, least squares, ranks, conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_linalg import adjoint, eigvalsh, real_dtype, refusing, svd
from mirabelle.backends.gpu.library import routine

_SINGULAR = "Singular matrix"


def stacked(xp: Any, *operands: Any) -> tuple[Any, ...]:
    """Stacks of matrices, of one shape of stack."""
    shape = np.broadcast_shapes(*[x.shape[:-2] for x in operands])
    return tuple(x if x.shape[:-2] == shape else xp.broadcast_to(x, (*shape, *x.shape[-2:])) for x in operands)


def columns(b: Any) -> tuple[Any, bool]:
    """Right-hand sides as columns, and whether they came as one vector."""
    return (b[:, None], True) if b.ndim == 1 else (b, False)


@routine("linalg.solve")
def solve(xp: Any, a: Any, b: Any) -> Any:
    b, vector = columns(b)
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    a, b = stacked(xp, a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    if not b.size:
        x = xp.empty(b.shape, dtype)
    else:
        with refusing(xp, _SINGULAR):
            x = xp.linalg.solve(xp.ascontiguousarray(a), xp.ascontiguousarray(b))
    return x[..., 0].copy() if vector else x


@routine("linalg.inv")
def inv(xp: Any, x: Any) -> Any:
    if not x.size:
        return x.copy()
    with refusing(xp, _SINGULAR):
        return xp.linalg.inv(x)


@routine("linalg.pinv")
def pinv(xp: Any, x: Any, *, rtol: Any = None, hermitian: bool = False) -> Any:
    if not x.size:
        return xp.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = svd(xp, x, full_matrices=False, hermitian=hermitian)
    counts = s > _cutoff(xp, s, x.shape, rtol)
    inverse = xp.where(counts, 1 / xp.where(counts, s, 1), 0)
    return xp.matmul(adjoint(vh) * inverse[..., None, :], adjoint(u))


def _cutoff(xp: Any, s: Any, shape: tuple[int, ...], rtol: Any) -> Any:
    """Below this, singular values count as zero."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(s.dtype).eps)
    if isinstance(rtol, xp.ndarray):
        rtol = rtol[..., None]
    return s.max(axis=-1, keepdims=True) * rtol


@routine("linalg.det")
def det(xp: Any, x: Any) -> Any:
    if not x.size:
        return xp.ones(x.shape[:-2], x.dtype)
    return xp.linalg.det(x).astype(x.dtype, copy=False)


@routine("linalg.slogdet")
def slogdet(xp: Any, x: Any) -> Any:
    if not x.size:
        return xp.ones(x.shape[:-2], x.dtype), xp.zeros(x.shape[:-2], real_dtype(x.dtype))
    sign, logarithm = xp.linalg.slogdet(x)
    return sign.astype(x.dtype, copy=False), logarithm


@routine("linalg.lstsq")
def lstsq(xp: Any, a: Any, b: Any, *, rcond: Any = None) -> Any:
    """By singular values, for stacks too; the residuals of a stack are NaN where one matrix's are empty."""
    b, vector = columns(b)
    single = a.ndim == b.ndim == 2
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = stacked(xp, a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    m, n = a.shape[-2:]
    u, s, vh = svd(xp, a, full_matrices=False)
    eps = float(np.finfo(s.dtype).eps)
    if rcond is None:
        rcond = eps * max(m, n)
    elif not isinstance(rcond, xp.ndarray) and rcond < 0:
        rcond = eps
    if s.shape[-1]:
        counts = s > s.max(axis=-1, keepdims=True) * rcond
    else:
        counts = xp.zeros(s.shape, bool)
    inverse = xp.where(counts, 1 / xp.where(counts, s, 1), 0)
    x = xp.matmul(adjoint(vh), xp.matmul(adjoint(u), b) * inverse[..., None])
    rank = counts.sum(axis=-1)
    distance = b - xp.matmul(a, x)
    residuals = (distance * distance.conj()).real.sum(axis=-2)
    if single:
        if m <= n or int(rank) < n:
            residuals = xp.empty(0, s.dtype)
        return x[..., 0].copy() if vector else x, residuals, rank, s
    residuals = xp.where((rank == n)[..., None] & (m > n), residuals, np.nan)
    return (x[..., 0].copy(), residuals[..., 0].copy(), rank, s) if vector else (x, residuals, rank, s)


@routine("linalg.matrix_rank")
def _(xp: Any, x: Any, *, tol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if hermitian:
        s = xp.abs(eigvalsh(xp, x))
    else:
        s = svd(xp, x, compute_uv=False)
    if not s.shape[-1]:
        return xp.zeros(s.shape[:-1], np.int64)
    if tol is None:
        bound = _cutoff(xp, s, x.shape, rtol)
    else:
        bound = tol[..., None] if isinstance(tol, xp.ndarray) else tol
    return (s > bound).sum(axis=-1)


@routine("linalg.cond")
def _(xp: Any, x: Any, *, p: Any = None) -> Any:
    if 0 in x.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if not x.size:
        return xp.empty(x.shape[:-2], real_dtype(x.dtype))
    if p in (None, 2, -2):
        s = svd(xp, x, compute_uv=False)
        large, small = s[..., 0], s[..., -1]
        r = small / large if p == -2 else large / small
    else:
        r = _norm(xp, x, p) * _norm(xp, _inverse_or_nan(xp, x), p)
    # What is NaN for a matrix without NaN is an infinite condition number.
    return xp.where(xp.isnan(r) & ~xp.isnan(x).any(axis=(-2, -1)), r.dtype.type(np.inf), r)


def _inverse_or_nan(xp: Any, x: Any) -> Any:
    sign, _ = slogdet(xp, x)
    regular = (sign != 0)[..., None, None]
    n = x.shape[-1]
    found = inv(xp, xp.where(regular, x, xp.eye(n, dtype=x.dtype)))
    return xp.where(regular, found, x.dtype.type(np.nan))


def _norm(xp: Any, x: Any, p: Any) -> Any:
    if p == "fro":
        return xp.sqrt((x * x.conj()).real.sum(axis=(-2, -1)))
    if p == "nuc":
        if bool(xp.isnan(x).any()):
            missing = xp.isnan(x).any(axis=(-2, -1))
            found = svd(xp, xp.where(missing[..., None, None], 0, x).astype(x.dtype), compute_uv=False)
            return xp.where(missing, real_dtype(x.dtype).type(np.nan), found.sum(axis=-1))
        return svd(xp, x, compute_uv=False).sum(axis=-1)
    if p not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    sums = xp.abs(x).sum(axis=-2 if p in (1, -1) else -1)
    return sums.max(axis=-1) if p > 0 else sums.min(axis=-1)
