"""SciPy's Fourier transforms by their compiled module alone, with the functions and the bits of `scipy.fft`.

`import scipy.fft` takes 150 ms, nearly all of it for what has nothing to do with transforms (`scipy.special`,
`numpy.testing`); the module that computes takes one. It is private to SciPy: where it is missing, has other
functions, or `mb.settings.internals` leaves `transforms` out, `scipy.fft` itself is imported. Here are no
checks: `mb.fft` has made them.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from mirabelle.dispatch import internals

_NAME = "pypocketfft"
# What is divided: nothing, by the root of the length, by the length.
_NORMS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}
# Of each transform the function of the module, and whether it is a forward one.
_FOURIER = {
    "fft": ("c2c", True),
    "ifft": ("c2c", False),
    "rfft": ("r2c", True),
    "ihfft": ("r2c", False),
    "hfft": ("c2r", True),
    "irfft": ("c2r", False),
    "fftn": ("c2c", True),
    "ifftn": ("c2c", False),
    "rfftn": ("r2c", True),
    "irfftn": ("c2r", False),
}
_COSINES = {"dct": ("dct", True), "idct": ("dct", False), "dst": ("dst", True), "idst": ("dst", False)}


def transforms() -> Any:
    """What has the transforms, called as those of `scipy.fft`; None where SciPy is not installed."""
    if internals.used("transforms"):
        with contextlib.suppress(ImportError, AttributeError, TypeError, ValueError, OSError):
            if (path := _compiled()) is not None:
                return _of(path)
    try:
        import scipy.fft
    except ImportError:
        return None
    return scipy.fft


def _compiled() -> Path | None:
    """Where the module is that computes."""
    package = importlib.util.find_spec("scipy")  # (which imports nothing)
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "fft" / "_pocketfft"
    paths = (folder / (_NAME + suffix) for suffix in importlib.machinery.EXTENSION_SUFFIXES)
    return next((path for path in paths if path.exists()), None)


def _of(path: Path) -> Any:
    """The transforms of a module. One whose functions are called otherwise is an error here, not later."""
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name: _fourier(name, getattr(module, f), forward) for name, (f, forward) in _FOURIER.items()}
    found |= {name: _cosines(getattr(module, f), forward) for name, (f, forward) in _COSINES.items()}
    for transform in found.values():
        transform(np.ones(2), norm="ortho")
    return SimpleNamespace(**found)


def _fourier(name: str, compute: Callable[..., Any], forward: bool) -> Callable[..., Any]:
    several, halved = name.endswith("n"), name in ("irfft", "irfftn", "hfft")
    in_place = name in ("fft", "ifft", "fftn", "ifftn")

    def run(
        x: Any,
        n: Any = None,
        axis: int = -1,
        *,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        workers: int = 1,
    ) -> Any:
        if not several:
            axes, s = (axis,), None if n is None else (n,)
        elif axes is None:
            axes = range(x.ndim) if s is None else range(-len(s), 0)
        axes = [a % x.ndim for a in axes]
        if not axes:
            return x
        given, x = x, _computed(x, complex_too=halved)
        last: tuple[int, ...] = ()
        if halved:  # (of the last axis half of the points are given, and one more)
            last = (2 * (x.shape[axes[-1]] - 1) if s is None else int(s[-1]),)
            s = None if s is None else (*s[:-1], last[0] // 2 + 1)
        if s is not None:
            x = _with_lengths(x, axes, s)
        # (What was made here is not needed afterwards.)
        out = x if in_place and x.dtype.kind == "c" and x is not given and x.base is None else None
        return compute(x, axes, *last, forward, _norm(norm, forward), out, workers)

    return run


def _cosines(compute: Callable[..., Any], forward: bool) -> Callable[..., Any]:
    def run(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, workers: int = 1) -> Any:
        if not forward:
            type = {2: 3, 3: 2}.get(type, type)
        x = _computed(x)
        if n is not None:
            x = _with_lengths(x, [axis % x.ndim], (n,))
        settled = type, (axis,), _norm(norm, forward)
        if x.dtype.kind != "c":
            return compute(x, *settled, None, workers)
        out = np.empty_like(x)
        out.real, out.imag = (compute(part, *settled, None, workers) for part in (x.real, x.imag))
        return out

    return run


def _norm(norm: str | None, forward: bool) -> int:
    return _NORMS[norm] if forward else 2 - _NORMS[norm]


def _computed(x: Any, complex_too: bool = False) -> np.ndarray:
    """What is computed with: floating, in the machine's byte order, at addresses that fit."""
    dtype = np.dtype(np.float32) if x.dtype.char == "e" else x.dtype.newbyteorder("=")
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    if complex_too:
        dtype = np.result_type(dtype, np.complex64)
    return np.require(x, dtype, "A")


def _with_lengths(x: np.ndarray, axes: Sequence[int], lengths: Sequence[int]) -> np.ndarray:
    """An array whose axes are cut, or filled with zeros, to some lengths."""
    wanted = list(x.shape)
    for a, n in zip(axes, lengths, strict=True):
        wanted[a] = int(n)
    kept = x[tuple(slice(n) for n in wanted)]
    if kept.shape == tuple(wanted):
        return kept
    out = np.zeros(wanted, x.dtype)
    out[tuple(slice(n) for n in kept.shape)] = kept
    return out
