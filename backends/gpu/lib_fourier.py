"""Fourier transforms on a card: cuFFT's through CuPy, cosines and sines by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.library import routine


def _one_axis(name: str) -> None:
    @routine(f"fft.{name}")
    def _(xp: Any, x: Any, *, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return getattr(xp.fft, name)(x, n=n, axis=axis, norm=norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _one_axis(_name)


def _several_axes(name: str) -> None:
    @routine(f"fft.{name}")
    def _(xp: Any, x: Any, *, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        if axes is not None and not len(axes):
            if name in ("rfftn", "irfftn"):
                raise ValueError("at least 1 axis must be transformed")
            kind = np.result_type(x.dtype, np.complex64) if x.dtype.kind in "fc" else np.complex128
            return x.astype(kind)
        if axes is not None and len({axis % x.ndim for axis in axes}) < len(axes):
            return _one_after_the_other(xp, name, x, s, axes, norm)
        if axes is not None and all(-x.ndim <= axis < x.ndim for axis in axes):
            # In order: CuPy confuses lengths of axes that are not. (The last is special to real transforms.)
            last = 1 if name in ("rfftn", "irfftn") else 0
            axes = [axis % x.ndim for axis in axes]
            order = sorted(range(len(axes) - last), key=axes.__getitem__) + [len(axes) - 1] * last
            axes = tuple(axes[k] for k in order)
            s = None if s is None else tuple(s[k] for k in order)
        return getattr(xp.fft, name)(x, s=s, axes=axes, norm=norm)


def _one_after_the_other(xp: Any, name: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """A transform that has an axis more than once, in NumPy's order: the last first, of irfftn last."""
    if s is None:
        s = [x.shape[axis] for axis in axes]
        s[-1] = 2 * (s[-1] - 1) if name == "irfftn" else s[-1]
    order = list(range(len(axes)))
    order = order if name == "irfftn" else order[::-1]
    for k in order:
        one = name[:-1] if k == len(axes) - 1 else "ifft" if name.startswith("i") else "fft"
        x = getattr(xp.fft, one)(x, n=s[k], axis=axes[k], norm=norm)
    return x


for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _several_axes(_name)


# Cosines and sines


def _inverse_norm(norm: Any) -> Any:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@routine("fft.dct")
def dct(xp: Any, x: Any, *, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _real_transform(xp, x, type, n, axis, norm, sine=False)


@routine("fft.dst")
def dst(xp: Any, x: Any, *, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _real_transform(xp, x, type, n, axis, norm, sine=True)


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


@routine("fft.idct")
def _(xp: Any, x: Any, *, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return dct(xp, x, type=_INVERSE[type], n=n, axis=axis, norm=_inverse_norm(norm))


@routine("fft.idst")
def _(xp: Any, x: Any, *, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return dst(xp, x, type=_INVERSE[type], n=n, axis=axis, norm=_inverse_norm(norm))


def _real_transform(xp: Any, x: Any, kind: int, n: Any, axis: int, norm: Any, sine: bool) -> Any:
    if x.dtype.kind == "c":
        parts = [_real_transform(xp, p, kind, n, axis, norm, sine) for p in (x.real, x.imag)]
        return parts[0] + 1j * parts[1]
    x = x.astype(np.float64 if x.dtype.kind in "biu" else np.result_type(x.dtype, np.float32))
    x = _of_length(xp, xp.moveaxis(x, axis, -1), n)
    n = x.shape[-1]
    if kind == 1 and n < 2 and not sine:
        raise ValueError("a cosine transform of type 1 takes at least two points")
    if norm == "ortho":
        x = _evened(xp, x, kind, sine, before=True)
    made = (_SINES if sine else _COSINES)[kind](xp, x)
    periods = 2 * (n + (1 if sine else -1)) if kind == 1 else 2 * n
    if norm == "ortho":
        made = _evened(xp, made * (1 / math.sqrt(periods)), kind, sine, before=False)
    elif norm == "forward":
        made = made / periods
    return xp.moveaxis(made.astype(x.dtype, copy=False), -1, axis)


def _of_length(xp: Any, x: Any, n: Any) -> Any:
    if n is None or n == x.shape[-1]:
        return x
    out = xp.zeros((*x.shape[:-1], n), x.dtype)
    m = min(n, x.shape[-1])
    out[..., :m] = x[..., :m]
    return out


def _evened(xp: Any, x: Any, kind: int, sine: bool, before: bool) -> Any:
    """The ends, scaled so that the matrix of the transform is orthogonal."""
    root = math.sqrt(2.0)
    ends: tuple[int, ...]
    if kind == 1 and not sine:
        ends, factor = (0, -1), root if before else 1 / root
    elif kind == 2 and not before:
        ends, factor = (-1 if sine else 0,), 1 / root
    elif kind == 3 and before:
        ends, factor = (-1 if sine else 0,), root
    else:
        return x
    x = x.copy()
    for at in ends:
        x[..., at] = x[..., at] * x.dtype.type(factor)
    return x


def _waves(xp: Any, x: Any, share: float, count: int) -> Any:
    """exp(-i pi share k) for k from 0 on, as complex numbers of the precision of `x`."""
    angle = -math.pi * share * xp.arange(count, dtype=np.float64)
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    return (xp.cos(angle) + 1j * xp.sin(angle)).astype(kind)


def _cosine1(xp: Any, x: Any) -> Any:
    return xp.fft.rfft(xp.concatenate([x, x[..., -2:0:-1]], axis=-1), axis=-1).real


def _cosine2(xp: Any, x: Any) -> Any:
    """Even elements forwards and odd ones backwards make one transform of the same length."""
    n = x.shape[-1]
    folded = xp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    return 2 * (xp.fft.fft(folded, axis=-1) * _waves(xp, x, 0.5 / n, n)).real


def _cosine3(xp: Any, x: Any) -> Any:
    n = x.shape[-1]
    padded = xp.zeros((*x.shape[:-1], 2 * n), _waves(xp, x, 0, 1).dtype)
    padded[..., :n] = x * _waves(xp, x, 0.5 / n, n).conj()
    padded[..., 0] *= 0.5
    return 2 * (xp.fft.ifft(padded, axis=-1) * (2 * n))[..., :n].real


def _cosine4(xp: Any, x: Any) -> Any:
    n = x.shape[-1]
    padded = xp.zeros((*x.shape[:-1], 2 * n), _waves(xp, x, 0, 1).dtype)
    padded[..., :n] = x * _waves(xp, x, 0.5 / n, n)
    half = _waves(xp, x, 0.25 / n, 1 if not n else 2)[-1]
    turned = xp.fft.fft(padded, axis=-1)[..., :n] * _waves(xp, x, 0.5 / n, n) * half
    return 2 * turned.real


def _signs(xp: Any, x: Any) -> Any:
    return 1 - 2 * (xp.arange(x.shape[-1]) % 2).astype(x.dtype)


def _sine1(xp: Any, x: Any) -> Any:
    zero = xp.zeros((*x.shape[:-1], 1), x.dtype)
    odd = xp.concatenate([zero, x, zero, -x[..., ::-1]], axis=-1)
    return -xp.fft.rfft(odd, axis=-1).imag[..., 1 : x.shape[-1] + 1]


def _sine2(xp: Any, x: Any) -> Any:
    return _cosine2(xp, x * _signs(xp, x))[..., ::-1]


def _sine3(xp: Any, x: Any) -> Any:
    return _cosine3(xp, x[..., ::-1]) * _signs(xp, x)


def _sine4(xp: Any, x: Any) -> Any:
    return _cosine4(xp, x[..., ::-1]) * _signs(xp, x)


_COSINES = {1: _cosine1, 2: _cosine2, 3: _cosine3, 4: _cosine4}
_SINES = {1: _sine1, 2: _sine2, 3: _sine3, 4: _sine4}
