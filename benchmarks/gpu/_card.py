"""The card: data on it, when its work is done, how long that takes, and what the figures depend on."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.gpu._libraries import to_numpy

PACKAGES = (
    "mirabelle",
    "numpy",
    "numba",
    "numba-cuda",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "cuda-core",
    "jax",
    "jaxlib",
    "torch",
    "triton",
)


@dataclass(frozen=True)
class Contender:
    """`call` starts the work and returns what it writes to; `wait` ends when that is there.

    Without `wait`, the work is on CuPy's current stream, and events on it tell the time.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds a call: by events on the stream, and by the clock on the wall."""

    events: tuple[float, ...]
    wall: tuple[float, ...]
    calls: int

    @property
    def seconds(self) -> float:
        """The median. Events that saw less than half of the work were on another stream than it."""
        by_events, by_wall = statistics.median(self.events), statistics.median(self.wall)
        return by_events if by_events > 0.5 * by_wall else by_wall

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "best_events_s": min(self.events),
            "median_events_s": statistics.median(self.events),
            "median_wall_s": statistics.median(self.wall),
            "rounds": len(self.events),
            "calls_a_round": self.calls,
        }


class Card:
    """One GPU through CuPy. Without one, arrays are NumPy's, so that the benchmark can be tried."""

    def __init__(self, tiny: bool = False) -> None:
        self.tiny = tiny
        self.why = ""
        self.cupy: Any = None
        try:
            import cupy

            cupy.cuda.runtime.getDeviceCount()
            cupy.zeros(1)
            self.cupy = cupy
        except Exception as error:
            self.why = f"{type(error).__name__}: {error}"
            if not tiny:
                raise SystemExit(
                    f"There is no card that CuPy can use ({self.why}). With --tiny, the benchmark can be tried "
                    "without one."
                ) from None
        self.library = self.cupy or np
        self._random = self.library.random.default_rng(42)

    def __bool__(self) -> bool:
        return self.cupy is not None

    def need(self) -> Any:
        """CuPy, or the reason why it cannot be had."""
        if self.cupy is None:
            raise RuntimeError(f"There is no card that CuPy can use: {self.why}")
        return self.cupy

    # Data

    def random(self, shape: Any, dtype: Any = np.float64) -> Any:
        """Numbers in [0, 1): never zeros, which some units compute faster."""
        return self._random.random(shape, dtype=np.dtype(dtype).type)

    def poison(self, shape: Any, dtype: Any) -> Any:
        """Contents that a result which was not written betrays."""
        dtype = np.dtype(dtype)
        value = math.nan if dtype.kind in "fc" else 77
        return self.library.full(shape, value, dtype=dtype)

    def ours(self, x: Any) -> Any:
        """A copy of an array as mirabelle's."""
        import mirabelle as mb

        family = mb.CuArray
        try:
            made = family(x)
        except Exception:  # a card's array that the type cannot take: by way of the host
            made = family(to_numpy(x))
        return mb.materialize(made)

    def theirs(self, x: Any) -> Any:
        """An array of mirabelle's as CuPy shows it, without a copy."""
        import mirabelle as mb

        if not isinstance(x, mb.AbstractArray):
            return x
        return self.cupy.asarray(x) if self else mb.to_numpy(x)

    # Time

    def synchronize(self) -> None:
        if self:
            self.cupy.cuda.runtime.deviceSynchronize()

    def alive(self) -> bool:
        """Whether the context still works: after an illegal access, nothing in this process does."""
        try:
            self.synchronize()
        except Exception:
            return False
        return True

    def batch(self, contender: Contender, calls: int) -> tuple[float, float]:
        """Seconds a call of `calls` calls in a row: by events, by the wall."""
        result = None
        call = contender.call
        self.synchronize()
        if self:
            first, last = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start = time.perf_counter()
        if self:
            first.record()
        for _ in range(calls):
            result = call()
        if contender.wait is not None:
            contender.wait(result)
        if self:
            last.record()
        self.synchronize()
        wall = (time.perf_counter() - start) / calls
        if not self or contender.wait is not None:
            return wall, wall
        return self.cupy.cuda.get_elapsed_time(first, last) / 1e3 / calls, wall

    def take_turns(
        self,
        contenders: Mapping[str, Contender],
        failed: Callable[[str, Exception], None],
        rounds: int = 9,
        round_s: float = 0.01,
        limit_s: float = 4.0,
    ) -> dict[str, Timing]:
        """Time all, one after the other in each round, the order shifted; who fails drops out."""
        calls: dict[str, int] = {}
        for name, contender in contenders.items():
            try:
                self.batch(contender, 2)
                took = self.batch(contender, 2)[1]
                calls[name] = max(1, min(200, math.ceil(round_s / max(took, 1e-9))))
            except Exception as error:
                failed(name, error)
        if self.tiny and not self:
            rounds, calls = 2, dict.fromkeys(calls, 1)
        events: dict[str, list[float]] = {name: [] for name in calls}
        walls: dict[str, list[float]] = {name: [] for name in calls}
        start = time.perf_counter()
        gc.collect()
        gc.disable()
        try:
            for r in range(rounds):
                names = list(calls)
                shift = r % max(1, len(names))
                for name in names[shift:] + names[:shift]:
                    try:
                        by_events, by_wall = self.batch(contenders[name], calls[name])
                    except Exception as error:
                        failed(name, error)
                        del calls[name]
                        continue
                    events[name].append(by_events)
                    walls[name].append(by_wall)
                if r >= 2 and time.perf_counter() - start > limit_s:
                    break
        finally:
            gc.enable()
        return {n: Timing(tuple(events[n]), tuple(walls[n]), c) for n, c in calls.items()}

    def copy_of(self, nbytes: int) -> Contender:
        """The ceiling: a copy that reads half of `nbytes` and writes the other half."""
        cupy = self.need()
        source = self.random((max(16, nbytes // 8),), np.float32)
        target = cupy.empty_like(source)
        half = source.nbytes
        stream = cupy.cuda.get_current_stream()

        def copy() -> Any:
            target.data.copy_from_device_async(source.data, half, stream)
            return target

        return Contender(copy)

    def release(self) -> None:
        """Give back what libraries keep of the card's memory."""
        gc.collect()
        with contextlib.suppress(Exception):
            self.synchronize()
            self.cupy.get_default_memory_pool().free_all_blocks()
        import sys

        if "torch" in sys.modules:
            with contextlib.suppress(Exception):
                sys.modules["torch"].cuda.empty_cache()

    # Facts

    def facts(self) -> dict[str, Any]:
        """What figures depend on, and nothing that names the machine."""
        found: dict[str, Any] = {
            "gpu": None,
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "versions": {name: _version(name) for name in PACKAGES},
        }
        if self:
            runtime = self.cupy.cuda.runtime
            with contextlib.suppress(Exception):
                told = runtime.getDeviceProperties(0)
                found["gpu"] = told["name"].decode() if isinstance(told["name"], bytes) else told["name"]
                found["multiprocessors"] = told["multiProcessorCount"]
                found["memory_bytes"] = told["totalGlobalMem"]
                found["l2_bytes"] = told["l2CacheSize"]
            with contextlib.suppress(Exception):
                found["cuda_driver_api"] = runtime.driverGetVersion()
                found["cuda_runtime"] = runtime.runtimeGetVersion()
            found["driver"] = _driver()
        else:
            found["without_card"] = self.why
        return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        if name == "mirabelle":  # a checkout that is not installed
            with contextlib.suppress(Exception):
                import mirabelle

                return str(mirabelle.__version__)
        return None


def _driver() -> str | None:
    with contextlib.suppress(Exception):
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip().splitlines()[0]
    return None
