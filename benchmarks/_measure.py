"""Honest measuring: contenders take turns, the best and the median are kept.

Other work on the machine slows whoever runs at that moment. Taking turns (in another order each
round) spreads that over all contenders, and the best of many rounds is nearly free of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import gc
import json
import math
import os
import platform
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """The times of one contender, in seconds."""

    best: float
    median: float
    rounds: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Timing:
        return cls(min(times), statistics.median(times), len(times))

    def as_json(self) -> dict[str, float]:
        return {"best_s": self.best, "median_s": self.median, "rounds": self.rounds}


def take_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 12, limit_s: float = 30.0, in_a_row: int = 1
) -> dict[str, Timing]:
    """Time one call of each contender a round; at least 5 rounds, then until the limit.

    A result dies after the clock has stopped, before the next contender starts. The call that is timed is the
    last of so many `in_a_row` (where contenders use several libraries, whose threads go on for a while).
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    start = time.perf_counter()
    gc.collect()
    gc.disable()
    try:
        for r in range(rounds):
            shift = r % len(names)
            for name in names[shift:] + names[:shift]:
                f = contenders[name]
                for _ in range(in_a_row - 1):
                    f()
                t = time.perf_counter()
                result = f()
                times[name].append(time.perf_counter() - t)
                del result
            if r >= 4 and time.perf_counter() - start > limit_s:
                break
    finally:
        gc.enable()
    return {name: Timing.of(t) for name, t in times.items()}


def take_turns_small(
    statements: Mapping[str, tuple[str, dict[str, Any]]], rounds: int = 25, round_s: float = 0.02
) -> dict[str, Timing]:
    """Time short statements, each compiled into a loop, as `timeit` does; seconds a call."""
    timers = {n: timeit.Timer(s, globals=scope) for n, (s, scope) in statements.items()}
    numbers = {}
    for name, timer in timers.items():
        number = 64
        while (took := timer.timeit(number)) < round_s / 4:
            number *= 2
        numbers[name] = max(1, int(number * round_s / took))
    times: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    for r in range(rounds):
        shift = r % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(timers[name].timeit(numbers[name]) / numbers[name])
    return {name: Timing.of(t) for name, t in times.items()}


def warm_up(f: Callable[[], object], times: int = 3) -> None:
    """Call until what compiles in the background is there."""
    from mirabelle.backends.host import kernels

    for _ in range(times):
        f()
        # A loader thread may just be handing the source to the compiler.
        time.sleep(0.02)
        kernels.settle()
    f()


def check(name: str, result: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Refuse to time a contender whose result is not NumPy's."""
    results = result if isinstance(result, tuple) else (result,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    assert len(results) == len(wanted), f"{name}: {len(results)} results, not {len(wanted)}"
    for r, w in zip(results, wanted, strict=True):
        r, w = np.asarray(r), np.asarray(w)
        if w.dtype in (np.float32, np.complex64) or r.dtype == np.float32:
            rtol = max(rtol, 2e-5)
        assert r.shape == w.shape, f"{name}: shape {r.shape}, not {w.shape}"
        assert np.allclose(r, w, rtol=rtol, atol=rtol), f"{name}: values differ from NumPy's"


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def peak_extra(f: Callable[[], object]) -> int:
    """How far resident memory rises above its present level while `f` runs, in bytes (Linux).

    The kernel keeps the high-water mark; writing 5 to clear_refs sets it back. What counts is
    every page of the process: results, temporaries, thread stacks, whatever the library keeps.
    """
    gc.collect()
    # Free memory that the C library still holds would hide what is taken from it.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    result = f()
    peak = _status("VmHWM")
    del result
    return max(0, peak - before)


def machine() -> dict[str, Any]:
    """What figures depend on, and nothing that names the machine."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("numpy", "numba", "llvmlite", "numexpr", "jax", "jaxlib", "plum-dispatch"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    model = platform.machine()
    flags: set[str] = set()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
            if line.startswith("flags"):
                flags = set(line.split(":", 1)[1].split())
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model,
        "cores": cores,
        "vectors": "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "other",
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def store(name: str, content: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write NAME.json, in benchmarks/results unless another folder is given."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    record = {
        "benchmark": name,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        **content,
    }
    path.write_text(json.dumps(record, indent=1, default=float) + "\n")
    print(f"stored {os.path.relpath(path)}", file=sys.stderr)
    return path
