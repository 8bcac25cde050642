"""Fourier transforms of distributed arrays.

Along axes that are not divided, each process transforms its lines; an axis that is divided changes places
with another one first. A line by itself is transformed in four steps (Gentleman and Sande 1966): as a matrix
of n1 rows, transforms down its columns, a turn of each element, transforms along its rows, and the transpose.
A length with no such factors goes through a convolution of one that has them (Bluestein 1970).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.lines import (
    by_lines,
    distributed_routine,
    fall_back,
    handle,
    in_blocks,
    line_by_line,
    new,
    of_parts,
    partition_of,
    regular,
    view_of,
)
from mirabelle.arraytypes.distributed.moving import reshaped, rolled
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.library import routine_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

# One line


def _factors(n: int, size: int) -> tuple[int, int] | None:
    """n = n1 * n2 with both at least the number of processes, as near to each other as there are."""
    for n1 in range(math.isqrt(n), size - 1, -1):
        if n % n1 == 0:
            return n1, n // n1
    return None


def _complex(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex64) if dtype.char in "efF" else np.dtype(np.complex128)


def _handle(view: DView) -> Any:
    return wrap(view.family, Leaf(view))


def transformed(view: DView, sign: int) -> DView:
    """The sums of a complex line times exp(sign 2 pi i j k / n), without a factor."""
    n, size = view.shape[0], view.buffer.comm.size
    factors = _factors(n, size)
    if factors is None:
        return _by_convolution(view, sign)
    n1, n2 = factors
    name = "fft" if sign < 0 else "ifft"
    options = {"n": None, "norm": "backward" if sign < 0 else "forward"}
    routine = routine_of(view.family.inner, f"fft.{name}")
    matrix = regular(reshaped(view, (n1, n2)))
    down = by_lines(matrix, (0,), lambda x: routine(x, axis=0, **options), (0, 1))
    part = down.buffer.partition
    index: list[Any] = []
    for held in part.held(down.buffer.comm.rank):
        index.append(np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)]))
    # (Whole numbers first: an angle of many turns has no digits left.)
    turns = np.exp(sign * 2j * np.pi / n * (index[0][:, None] * index[1] % n)).astype(view.dtype)
    inner = view.family.inner
    turned = verbs.multiply(handle(down, down.buffer.local), handle(down, inner._upload(turns)))
    down = of_parts(down, part, view_of(turned))
    along = by_lines(down, (1,), lambda x: routine(x, axis=1, **options), (0, 1))
    return reshaped(in_blocks(along.transpose((1, 0))), (n,))


def _by_convolution(view: DView, sign: int) -> DView:
    """A transform of any length n, by ones of a power of two: j k = (j^2 + k^2 - (j - k)^2) / 2."""
    n, size = view.shape[0], view.buffer.comm.size
    m = max(1 << (2 * n - 2).bit_length(), 1 << 2 * (size - 1).bit_length())
    x = in_blocks(view)
    chirp = _chirp(x, n, n, sign)
    padded = new(x, (m,), np.complex128)
    verbs.assign(padded, 0)
    verbs.setitem(padded, slice(0, n), verbs.multiply(_handle(x), chirp))
    kernel = _chirp(view_of(padded), m, n, -sign)
    product = verbs.multiply(
        _handle(transformed(view_of(padded), -1)), _handle(transformed(view_of(kernel), -1))
    )
    back = _handle(transformed(view_of(product), 1))
    found = verbs.multiply(verbs.multiply(verbs.getitem(back, slice(0, n)), chirp), 1.0 / m)
    return view_of(verbs.astype(found, view.dtype))  # type: ignore[no-any-return]


def _chirp(like: DView, m: int, n: int, sign: int) -> Any:
    """exp(sign pi i k^2 / n) for |k| < n, at k modulo m and zero elsewhere, divided as `like` is."""
    part = partition_of(like)
    places = np.concatenate(
        [np.arange(a, b) for a, b in part.held(like.buffer.comm.rank)[0]] or [np.empty(0, np.int64)]
    )
    k = np.minimum(places, m - places) if m > n else places
    values = np.where(k < n, np.exp(sign * 1j * np.pi / n * (k * k % (2 * n))), 0)
    return _handle(of_parts(like, part, like.family.inner._upload(values.astype(np.complex128))))


def _fitted(x: Any, n: int) -> Any:
    """A line of n elements: cut, or with zeros after it."""
    if x.shape[0] >= n:
        return verbs.getitem(x, slice(0, n)) if x.shape[0] > n else x
    made = new(view_of(x), (n,), x.dtype)
    verbs.assign(made, 0)
    verbs.setitem(made, slice(0, x.shape[0]), x)
    return made


# The transforms of a line by name

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def line_transform(name: str, view: DView, n: int | None, norm: Any) -> DView:
    """One of NumPy's transforms of a line that is divided."""
    x = _handle(view)
    if name == "hfft":
        return line_transform("irfft", view_of(verbs.conj(x)), n, _OPPOSITE[norm])
    if name == "ihfft":
        return view_of(verbs.conj(_handle(line_transform("rfft", view, n, _OPPOSITE[norm]))))  # type: ignore[no-any-return]
    forward = name in ("fft", "rfft")
    dtype = _complex(view.dtype)
    if name == "irfft":
        n = 2 * (view.shape[0] - 1) if n is None else n
        x = _mirrored(_fitted(x, n // 2 + 1), n)
    else:
        n = view.shape[0] if n is None else n
        x = _fitted(x, n)
    x = verbs.astype(x, dtype, copy=False)
    found = _handle(transformed(regular(view_of(x)), -1 if forward else 1))
    if norm == "ortho":
        found = verbs.multiply(found, dtype.type(0).real.dtype.type(1 / math.sqrt(n)))
    elif (norm == "forward") is forward:
        found = verbs.divide(found, dtype.type(0).real.dtype.type(n))
    if name == "rfft":
        found = verbs.getitem(found, slice(0, n // 2 + 1))
    elif name == "irfft":
        found = verbs.real(found)
    return in_blocks(view_of(verbs.copy(found)))


def _mirrored(half: Any, n: int) -> Any:
    """All n coefficients of a real line, of the first n // 2 + 1 (of both ends the real part)."""
    half = verbs.astype(half, _complex(half.dtype), copy=False)
    made = new(view_of(half), (n,), half.dtype)
    verbs.setitem(made, slice(0, n // 2 + 1), half)
    for i in (0, n // 2) if n % 2 == 0 else (0,):
        verbs.setitem(made, slice(i, i + 1), verbs.real(verbs.getitem(half, slice(i, i + 1))))
    m = (n - 1) // 2
    if m:
        verbs.setitem(made, slice(n - m, None), verbs.conj(verbs.getitem(half, slice(m, 0, -1))))
    return made


# Along an axis


def along_axis(name: str, view: DView, n: int | None, axis: int, norm: Any) -> DView:
    axis %= view.ndim
    routine = routine_of(view.family.inner, f"fft.{name}")
    found = by_lines(view, (axis,), lambda x: routine(x, n=n, axis=axis, norm=norm), range(view.ndim))
    if found is None:
        if n is not None and n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
        found = line_by_line(regular(view), axis, lambda line: line_transform(name, line, n, norm))
    return found  # type: ignore[no-any-return]


def _one_axis(name: str) -> None:
    @distributed_routine(f"fft.{name}")
    def run(view: DView, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return along_axis(name, view, n, axis, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _one_axis(_name)


def _cosines(name: str) -> None:
    @distributed_routine(f"fft.{name}")
    def run(view: DView, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        options = {"type": type, "n": n, "axis": axis % view.ndim, "norm": norm}
        routine = routine_of(view.family.inner, f"fft.{name}")
        found = by_lines(view, (axis % view.ndim,), lambda x: routine(x, **options), range(view.ndim))
        return fall_back(view.family, f"fft.{name}")(view, **options) if found is None else found


for _name in ("dct", "idct", "dst", "idst"):
    _cosines(_name)

# Over several axes


def _in_good_order(view: DView, steps: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """First the axes that are not divided: the others are made whole once these are done."""
    part = partition_of(regular(view))
    return sorted(steps, key=lambda step: part.splits[step[0] % view.ndim] is not None)


def _several(name: str, first: str | None, each: str, last: str | None) -> None:
    """`first` or `last` is what happens along the last of the axes, before or after the others."""

    @distributed_routine(f"fft.{name}")
    def run(view: DView, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        if axes is None:
            axes = range(view.ndim) if s is None else range(-len(s), 0)
        steps = list(zip(axes, [None] * len(axes) if s is None else s, strict=True))
        if not steps:
            return view_of(verbs.copy(_handle(view)))
        end = steps.pop() if first or last else None
        if first and end is not None:
            view = along_axis(first, view, end[1], end[0], norm)
        distinct = len({axis % view.ndim for axis, _ in steps}) == len(steps)
        for axis, n in _in_good_order(view, steps) if distinct else steps[::-1]:
            view = along_axis(each, view, n, axis, norm)
        if last and end is not None:
            view = along_axis(last, view, end[1], end[0], norm)
        return view


_several("fftn", None, "fft", None)
_several("ifftn", None, "ifft", None)
_several("rfftn", "rfft", "fft", None)
_several("irfftn", None, "ifft", "irfft")


def _shifted(name: str, sign: int) -> None:
    @distributed_routine(f"fft.{name}")
    def run(view: DView, axes: Any = None) -> Any:
        shifts = [0] * view.ndim
        for axis in range(view.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes:
            n = view.shape[axis]
            shifts[axis % view.ndim] += n // 2 if sign > 0 else -(n // 2)
        return rolled(view, shifts)


_shifted("fftshift", 1)
_shifted("ifftshift", -1)

__all__ = ["along_axis", "line_transform", "transformed"]
