"""Convolution of vectors on a card: fused sums of products, or by Fourier transforms where that is long."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.backends.gpu.library import on_card, routine
from mirabelle.backends.toeplitz import fast_length

# From this many products on, and with a filter of this length, transforms are quicker than sums.
_MANY, _LONG = 1 << 28, 1 << 9
# The most products that are formed at a time.
_BLOCK = 1 << 22
# The prime factors of lengths that cuFFT is quick for.
FACTORS = (2, 3, 5, 7)
# A thread adds up filters of this length; longer ones too, if there are this many places.
_SHORT, _THREADS = 1 << 10, 1 << 15


@routine("convolve")
def convolve(xp: Any, a: Any, v: Any, *, mode: Any = "full") -> Any:
    a, v = _vectors(xp, "convolve", a, v)
    if v.size > a.size:
        a, v = v, a
    return _slid(xp, a, v[::-1], mode)


@routine("correlate")
def _(xp: Any, a: Any, v: Any, *, mode: Any = "valid") -> Any:
    a, v = _vectors(xp, "correlate", a, v)
    v = v.conj() if v.dtype.kind == "c" else v
    return _slid(xp, a, v, mode) if v.size <= a.size else _slid(xp, v, a, mode)[::-1].copy()


def _vectors(xp: Any, name: str, a: Any, v: Any) -> tuple[Any, Any]:
    for x in (a, v):
        if x.ndim > 1:
            raise ValueError("object too deep for desired array")
    a, v = a.reshape(-1), v.reshape(-1)
    if not a.size or not v.size:
        raise ValueError(f"{name}: {'a' if not a.size else 'v'} cannot be empty")
    dtype = np.result_type(a.dtype, v.dtype)
    return a.astype(dtype, copy=False), v.astype(dtype, copy=False)


def _slid(xp: Any, a: Any, v: Any, mode: Any) -> Any:
    """The products of `v`, the shorter one, with what lies at each place of `a`, summed up."""
    modes = ("valid", "same", "full")
    mode = modes[mode] if isinstance(mode, int) and 0 <= mode < 3 else mode
    if mode not in modes:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    n, m = a.size, v.size
    left = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    length = {"valid": n - m + 1, "same": n, "full": n + m - 1}[mode]
    if a.dtype.kind in "fc" and a.dtype != np.float16 and length * m >= _MANY and m >= _LONG:
        out = _transformed(xp, a, v)[m - 1 - left : m - 1 - left + length]
        if bool(xp.isfinite(out).all()):  # one infinity would spread over all of a transform
            return out
    if on_card(xp) and (m <= _SHORT or length >= _THREADS):
        return _by_threads(xp, a, v, -left, length)
    out = xp.empty(length, a.dtype)
    count = max(1, _BLOCK // m)
    for start in range(0, length, count):
        out[start : start + count] = _sums(xp, a, v, start - left, min(count, length - start))
    return out


_LOOP = """
    long long place = start + i;
    long long stop = size_a - place < size_v ? size_a - place : size_v;
    T sum = T(0);
    for (long long j = place < 0 ? -place : 0; j < stop; ++j) {
        sum += a[place + j] * v[j];
    }
    out = sum;
"""


@functools.cache
def _kernel(xp: Any) -> Any:
    return xp.ElementwiseKernel(
        "raw T a, raw T v, int64 size_a, int64 size_v, int64 start", "T out", _LOOP, "mirabelle_slide"
    )


def _by_threads(xp: Any, a: Any, v: Any, start: int, length: int) -> Any:
    """One thread adds up for each place."""
    worked = {"b": np.dtype(np.int32)}.get(a.dtype.kind, a.dtype)
    worked = np.dtype(np.float32) if worked == np.float16 else worked
    out = xp.empty(length, worked)
    x, y = (xp.ascontiguousarray(z.astype(worked, copy=False)) for z in (a, v))
    _kernel(xp)(x, y, x.size, y.size, start, out)
    return out != 0 if a.dtype.kind == "b" else out.astype(a.dtype, copy=False)


def _sums(xp: Any, a: Any, v: Any, start: int, count: int) -> Any:
    """The sums for `count` places, the first of which lies at `start` (before `a`, if negative)."""
    at = xp.arange(start, start + count, dtype=np.int64)[:, None] + xp.arange(v.size, dtype=np.int64)
    inside = (at >= 0) & (at < a.size)
    products = xp.where(inside, a[xp.clip(at, 0, a.size - 1)] * v, a.dtype.type(0))
    if a.dtype.kind == "b":
        return products.any(axis=1)
    if a.dtype == np.float16:
        return products.sum(axis=1, dtype=np.float32).astype(a.dtype)
    return products.sum(axis=1, dtype=a.dtype)


def _transformed(xp: Any, a: Any, v: Any) -> Any:
    size = fast_length(a.size + v.size - 1, FACTORS)
    v = v[::-1]
    if a.dtype.kind == "c":
        found = xp.fft.ifft(xp.fft.fft(a, size) * xp.fft.fft(v, size), size)
    else:
        found = xp.fft.irfft(xp.fft.rfft(a, size) * xp.fft.rfft(v, size), size)
    return found[: a.size + v.size - 1].astype(a.dtype, copy=False)
