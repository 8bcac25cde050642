"""The array library of a simulated card: NumPy, but where CuPy's functions are known to do something else.

What the routines in `lib_*` mend is wrong here in the same way: tests without a card see whether they do.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np


class SimulatedLibrary(types.ModuleType):
    """NumPy's names, some of them as CuPy has them."""

    def __init__(self) -> None:
        super().__init__("numpy")

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = _CUPYS.get(name) or getattr(np, name)
        return found


def _argsort(x: np.ndarray, axis: int = -1, kind: Any = None) -> Any:
    """CUB sorts floats by their bits; rows of complex numbers are sorted as if there were no NaN."""
    if x.dtype.char in "fd":
        whole = np.dtype(f"i{x.dtype.itemsize}")
        bits = np.where(x == 0, x.dtype.type(0), x).view(whole)
        return np.argsort(np.where(bits < 0, ~(bits & np.iinfo(whole).max), bits), axis=axis, kind="stable")
    if x.dtype.kind == "c" and x.ndim > 1:
        return np.lexsort((x.imag, x.real), axis=axis)
    return np.argsort(x, axis=axis, kind="stable")


def _sort(x: np.ndarray, axis: int = -1, kind: Any = None) -> Any:
    return np.take_along_axis(x, _argsort(x, axis), axis=axis) if x.ndim else np.sort(x, axis=axis)


def flushed(x: Any) -> Any:
    """CuPy's kernels are compiled to take the smallest numbers of single precision for zero."""
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.char not in "fF":
        return x
    if x.dtype.kind == "c":
        out = np.empty(x.shape, x.dtype)
        out.real, out.imag = flushed(x.real), flushed(x.imag)
        return out
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def _flushing(f: Any) -> Any:
    def run(*args: Any, **options: Any) -> Any:
        return f(*[flushed(x) for x in args], **options)

    run.__name__ = f.__name__
    return run


def _extreme(f: Any) -> Any:
    """Of several NaN, any is found."""

    def run(x: np.ndarray, axis: Any = None) -> Any:
        x = flushed(x)
        if x.dtype.kind not in "fc" or not x.ndim:
            return f(x, axis=axis)
        last = (x.size if axis is None else x.shape[axis]) - 1
        backwards = np.isnan(np.flip(x, axis=axis))
        return np.where(backwards.any(axis=axis), last - np.argmax(backwards, axis=axis), f(x, axis=axis))

    run.__name__ = f.__name__
    return run


def _searchsorted(a: np.ndarray, v: np.ndarray, side: Any = "left") -> Any:
    if a.dtype.kind == "c":
        raise AssertionError("CuPy finds wrong places of complex numbers with NaN.")
    return np.searchsorted(flushed(a), flushed(v), side=side)


def _asarray(x: Any, dtype: Any = None, **options: Any) -> Any:
    """A number that equals zero becomes memory filled with bytes of zeros."""
    made = np.asarray(x, dtype=dtype, **options)
    return made if made.ndim or isinstance(x, np.ndarray) or made != 0 else np.zeros_like(made)


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    made = np.full(shape, value, dtype)
    return made if np.ndim(value) or value != 0 else np.zeros_like(made)


_CUPYS: dict[str, Any] = {
    "sort": _sort,
    "argsort": _argsort,
    "searchsorted": _searchsorted,
    "asarray": _asarray,
    "full": _full,
    **{name: _flushing(getattr(np, name)) for name in ("nonzero", "flatnonzero")},
    **{name: _extreme(getattr(np, name)) for name in ("argmax", "argmin")},
}
_sort.__name__, _argsort.__name__, _searchsorted.__name__ = "sort", "argsort", "searchsorted"
_asarray.__name__, _full.__name__ = "asarray", "full"
