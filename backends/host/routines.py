"""The host's library: NumPy's routines by their names, and SciPy's where NumPy has none."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray, itself
from mirabelle.arraytypes.library import arrays_in
from mirabelle.backends.host import threads
from mirabelle.backends.host.interpreter import quietly
from mirabelle.dispatch import counters


@library.routine_of.method
def _(family: type[HostArray], name: str) -> Callable[..., Any]:
    """One registered by that name, else NumPy's, else SciPy's."""
    made = _made.get((family, name))
    if made is None or made[0] != library.additions:
        found = library.registered(family, name) or _found(name)
        made = _made[family, name] = library.additions, _counted(found)
    return made[1]


# By type and name, what was found, after how many additions.
_made: dict[Any, tuple[int, Callable[..., Any]]] = {}


def _found(name: str) -> Any:
    for package in ("numpy", "scipy"):
        path, _, last = name.rpartition(".")
        try:
            holder: Any = importlib.import_module(f"{package}.{path}" if path else package)
        except ImportError:
            holder = getattr(np, path, None)  # a ufunc, whose methods are routines, too
        found = getattr(holder, last, None)
        if callable(found):
            return found
    missing_scipy = importlib.util.find_spec("scipy") is None
    raise NotImplementedError(
        f"The host's library has no routine {name!r}."
        + (" SciPy may have it, and is not installed: `pip install scipy`." if missing_scipy else "")
    )


def _counted(run: Any) -> Callable[..., Any]:
    @functools.wraps(run)
    def routine(*views: Any, **options: Any) -> Any:
        if counters.active:
            operands = arrays_in((views, options), np.ndarray)
            counters.add(library_calls=1, bytes_read=sum(v.nbytes for v in operands))
        threads.dismiss()  # (libraries have threads of their own)
        result = quietly(run, *views, **options)
        if not isinstance(result, _MAY_SHARE):
            return result
        if type(result) is np.ndarray and result.base is None:
            for given in (*views, *options.values()):
                if given is result or type(given) in _NESTS:
                    break
            else:
                return result
        return owned(result, arrays_in((views, options), np.ndarray))

    return routine


_NESTS = (list, tuple, dict)
_MAY_SHARE = (np.ndarray, list, tuple)


def owned(result: Any, views: list[np.ndarray]) -> Any:
    """Results in memory of their own: NumPy returns views where it can."""
    if isinstance(result, (tuple, list)):
        return tuple(owned(r, views) for r in result)
    if isinstance(result, np.ndarray) and result.flags.owndata and not any(result is v for v in views):
        return result
    if isinstance(result, np.ndarray) and (
        not result.flags.writeable or any(np.may_share_memory(result, v) for v in views)
    ):
        return result.copy()
    return itself(result)


@library.routine(HostArray, "bounds")
def _(index: np.ndarray) -> tuple[int, int]:
    return int(index.min()), int(index.max())


@library.routine(HostArray, "roll")
def _(x: np.ndarray, shift: Any, axis: Any) -> np.ndarray:
    """NumPy's, of which all but the copies is left out where one axis is shifted."""
    if axis is None and x.ndim == 1:
        axis = 0
    if type(shift) is not int or type(axis) is not int or not -x.ndim <= axis < x.ndim or not x.size:
        return np.roll(x, shift, axis)
    axis %= x.ndim
    n = x.shape[axis]
    shift %= n
    out = HostArray._empty(x.shape, x.dtype) if x.flags.c_contiguous else np.empty_like(x)
    if axis == 0:
        out[shift:] = x[: n - shift]
        if shift:
            out[:shift] = x[n - shift :]
        return out
    before = (slice(None),) * axis
    out[*before, shift:] = x[*before, : n - shift]
    if shift:
        out[*before, :shift] = x[*before, n - shift :]
    return out


@library.routine(HostArray, "scatter")
def _(into: np.ndarray, value: Any, *indices: np.ndarray, op: str = "", distinct: bool = False) -> None:
    if op:
        getattr(np, op).at(into, indices, value)
    else:
        into[indices] = value
