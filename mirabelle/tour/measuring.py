"""Times, and agreement, as the tour shows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb


def evaluated(*arrays: Any) -> None:
    """Have their values now."""
    for x in arrays:
        if isinstance(x, mb.AbstractArray):
            mb.materialize(x)


def warmed(f: Callable[[], Any], times: int = 3) -> None:
    """Run it until its kernels are compiled."""
    from mirabelle.backends.host import kernels

    for _ in range(times):
        evaluated(f())
        kernels.settle()


def median_time(f: Callable[[], Any], seconds: float) -> float:
    """The median time of a call, of as many as fit."""
    return float(np.median(_times(f, seconds)))


def best_time(f: Callable[[], Any], seconds: float) -> float:
    """The least time of a call, of as many as fit: what it takes when nothing else is in the way."""
    return min(_times(f, seconds))


def _times(f: Callable[[], Any], seconds: float) -> list[float]:
    times: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(times) < 5:
        before = time.perf_counter()
        evaluated(f())
        times.append(time.perf_counter() - before)
    return times


def agreement(x: Any, expected: Any) -> str:
    """How well a result agrees with NumPy's."""
    got = x if isinstance(x, np.ndarray) else mb.to_numpy(x)
    if np.array_equal(got, expected):
        return "the same bits"
    return f"{np.max(np.abs(got - expected)):.1e} apart"


def in_words(seconds: float) -> str:
    """A time, in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.{2 if seconds < 0.01 else 1 if seconds < 0.1 else 0}f} ms"
