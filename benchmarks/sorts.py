"""Sorts of the host beside NumPy's: one line or many, on one thread and on two."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import store, warm_up
from benchmarks._table import show

TARGETS = {1: 1.0, 2: 1.5}
SHAPES = ((10**5,), (10**6,), (10**7,), (10**3, 10**3))
DTYPES = ("f8", "f4", "i8")


def best_of_each(calls: list[tuple[int, Callable[[], object]]], rounds: int) -> list[float]:
    """The best seconds of each of some calls on so many threads, which take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, (threads, call) in enumerate(calls):
            with mb.settings.changed(num_threads=threads):
                call()  # (what others left behind in the caches is gone)
                began = time.perf_counter()
                result = call()
                best[k] = min(best[k], time.perf_counter() - began)
                del result
    return best


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(0)
    return rng.integers(-(2**60), 2**60, shape) if dtype == "i8" else rng.normal(size=shape).astype(dtype)


def run(only: str = "", rounds: int = 0) -> None:
    record, table = [], []
    cases = [("sort", None, shape, dtype) for shape in SHAPES for dtype in DTYPES]
    cases += [("argsort", None, shape, "f8") for shape in SHAPES]
    cases += [("argsort", "stable", shape, "f8") for shape in SHAPES if shape != (10**7,)]
    for name, kind, shape, dtype in cases:
        case = " ".join([name, *([kind] if kind else []), dtype, " x ".join(f"{n:,}" for n in shape)])
        if only not in case:
            continue
        x = numbers(shape, dtype)
        ours = mb.HostArray(x)
        call = functools.partial(getattr(mb, name), ours, kind=kind)
        calls = [(1, functools.partial(getattr(np, name), x, kind=kind)), *((n, call) for n in TARGETS)]
        warm_up(call, times=1)
        numpys, *times = best_of_each(calls, rounds or (3 if x.size > 10**6 else 25))
        ratios = [numpys / t for t in times]
        found = {
            f"threads_{n}": {"s": t, "times_numpy": r} for n, t, r in zip(TARGETS, times, ratios, strict=True)
        }
        record.append({"case": name, "kind": kind, "shape": shape, "dtype": dtype, "numpy_s": numpys} | found)
        table.append(
            [case, f"{numpys * 1e3:.2f}", *(f"{t * 1e3:.2f}" for t in times), *(f"{r:.2f}" for r in ratios)]
        )
    missed = [
        f"{row[0]} on {n}"
        for row in table
        for n, r in zip(TARGETS, row[-len(TARGETS) :], strict=True)
        if float(r) < TARGETS[n]
    ]
    show(
        "Sorts: milliseconds of wall-clock time, best of calls that take turns",
        ["call", "NumPy", "1 thread", "2 threads", "times NumPy, 1", "2"],
        table,
        [
            f"Below {TARGETS[1]} on one thread, {TARGETS[2]} on two: {', '.join(missed) or 'none'}.",
            "Our orders are always stable; NumPy's are only where `stable` says so.",
        ],
    )
    if not only:
        store("sorts", {"targets": TARGETS, "below_target": missed, "cases": record})
