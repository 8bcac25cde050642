"""Polynomials on a card: vectors of coefficients, the highest power first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_convolution import convolve
from mirabelle.backends.gpu.lib_linalg import eigvals
from mirabelle.backends.gpu.lib_sorting import flatnonzero, sort
from mirabelle.backends.gpu.lib_systems import lstsq
from mirabelle.backends.gpu.library import raising, routine


def _sum(xp: Any, a: Any, b: Any, minus: bool) -> Any:
    n = max(a.size, b.size)
    dtype = np.result_type(a.dtype, b.dtype)
    out = xp.zeros(n, dtype)
    out[n - a.size :] = a
    tail = out[n - b.size :]
    tail[...] = xp.subtract(tail, b) if minus else tail + b
    return out


@routine("polyadd")
def _(xp: Any, a: Any, b: Any) -> Any:
    return _sum(xp, a, b, minus=False)


@routine("polysub")
def _(xp: Any, a: Any, b: Any) -> Any:
    return _sum(xp, a, b, minus=True)


def _trimmed(xp: Any, p: Any) -> Any:
    """Without leading zeros."""
    found = flatnonzero(xp, p)
    return p[int(found[0]) :] if found.size else p[:0]


@routine("polymul")
def _(xp: Any, a: Any, b: Any) -> Any:
    a, b = (_trimmed(xp, x) for x in (a, b))
    a, b = (x if x.size else xp.zeros(1, x.dtype) for x in (a, b))
    return convolve(xp, a, b)


@routine("polydiv")
def _(xp: Any, u: Any, v: Any) -> Any:
    """By long division: one step for each coefficient of the quotient."""
    dtype = np.result_type(u.dtype, v.dtype, np.float64)
    u, v = u.astype(dtype), v.astype(dtype)
    m, n = u.size - 1, v.size - 1
    q = xp.zeros(max(m - n + 1, 1), dtype)
    r = u.copy()
    scale = 1.0 / v[0]
    for k in range(m - n + 1):
        d = scale * r[k]
        q[k] = d
        r[k : k + n + 1] -= d * v
    counts = flatnonzero(xp, xp.abs(r) > 1e-8 if r.size else r)
    return q, r[min(int(counts[0]), r.size - 1) :] if counts.size else r[-1:]


@routine("polyder")
def _(xp: Any, p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        n = p.size - 1
        p = p[:-1] * xp.arange(n, 0, -1)
    return p.copy()


@routine("polyint")
def _(xp: Any, p: Any, m: int = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    if k is None:
        constants = [0.0] * m
    else:
        constants = k.tolist() if hasattr(k, "tolist") else k
        constants = list(constants) if isinstance(constants, (list, tuple)) else [constants]
        constants = constants * m if len(constants) == 1 and m > 1 else constants
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        made = p / xp.arange(p.size, 0, -1)
        p = xp.concatenate([made, xp.asarray([constants[i]], np.result_type(made.dtype, constants[i]))])
    return p.copy()


@routine("poly")
def _(xp: Any, x: Any) -> Any:
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.size:
        x = _real_if_so(xp, eigvals(xp, x.astype(np.result_type(x.dtype, np.float32))))
    elif x.ndim == 1:
        x = x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.float64))
    else:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not x.size:
        return 1.0
    one = xp.ones(1, x.dtype)
    made = one
    for i in range(x.size):
        made = convolve(xp, made, xp.concatenate([one, -x[i : i + 1]]))
    if made.dtype.kind == "c" and bool((_in_order(xp, x) == _in_order(xp, x.conj())).all()):
        return made.real.copy()  # the roots come in pairs of conjugates
    return made


def _in_order(xp: Any, x: Any) -> Any:
    return sort(xp, x)


def _real_if_so(xp: Any, x: Any) -> Any:
    return x.real.copy() if x.dtype.kind == "c" and not bool((x.imag != 0).any()) else x


@routine("roots")
def _(xp: Any, p: Any) -> Any:
    """The eigenvalues of the companion matrix."""
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    found = flatnonzero(xp, p)
    if not found.size:
        return xp.empty(0, np.float64)
    first, last = int(found[0]), int(found[-1])
    zeros_at_0 = p.size - last - 1
    p = p[first : last + 1]
    p = p if p.dtype.kind in "fc" else p.astype(np.float64)
    n = p.size
    if n < 2:
        return xp.zeros(zeros_at_0, np.float64)
    companion = xp.zeros((n - 1, n - 1), p.dtype)
    below = xp.arange(n - 2)
    companion[below + 1, below] = 1
    companion[0, :] = -p[1:] / p[0]
    values = _real_if_so(xp, eigvals(xp, companion))
    return xp.concatenate([values, xp.zeros(zeros_at_0, values.dtype)])


@routine("polyfit")
def _(
    xp: Any, x: Any, y: Any, deg: Any, *, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    order = int(deg) + 1
    x = x.astype(np.result_type(x.dtype, np.float64))
    y = y.astype(np.result_type(y.dtype, np.float64))
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not x.size:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    rcond = x.size * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    powers = xp.stack([x ** (order - 1 - k) for k in range(order)], axis=1)
    right = y
    if w is not None:
        w = w.astype(np.result_type(w.dtype, np.float64))
        if w.ndim != 1 or w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        powers = powers * w[:, None]
        right = right * (w[:, None] if y.ndim == 2 else w)
    scale = xp.sqrt((powers * powers.conj()).real.sum(axis=0))
    powers = powers / scale
    found, residuals, rank, s = lstsq(xp, powers, right, rcond=rcond)
    found = found / (scale[:, None] if y.ndim == 2 else scale)
    if full:
        return found, residuals, rank, s, rcond
    if int(rank) != order:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if not cov:
        return found
    with raising(xp):
        base = xp.linalg.inv(powers.T @ powers) / (scale[:, None] * scale[None, :])
    factor: Any = 1
    if cov != "unscaled":
        if x.size <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (x.size - order)
    return found, base * factor if y.ndim == 1 else base[:, :, None] * factor
