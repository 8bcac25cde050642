"""Timing the kernels, and the table of them."""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks._measure import Timing, geometric_mean, store
from benchmarks._table import show
from benchmarks.npkernels._contenders import PEERS, Contender, contenders
from benchmarks.npkernels._kernel import Kernel

# The tenth call and those after it count: by then everything is compiled.
CALLS_BEFORE = 9
LIMIT_S = 10.0
PAUSE_S = 0.04
SLOW = 0.9
NOTE = (
    "Times are in seconds, on two threads. Before each call the arguments that the program writes to are made "
    "anew, outside the clock; it stops when all results are computed. The contenders take turns, mirabelle "
    "from its tenth call on; in each turn a pause and a call that does not count precede the one that does. "
    "Speed-ups are quotients of medians. first_call_s is the first call in the "
    "process, compiling included, with the library imported."
)


def same(kernel: Kernel, who: str, results: Sequence[Any], expected: Sequence[Any]) -> None:
    """Refuse a contender whose results are not NumPy's."""
    assert len(results) == len(expected), f"{kernel.name}, {who}: {len(results)} results, not {len(expected)}"
    for i, (got, wanted) in enumerate(zip(results, expected, strict=True)):
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert got.shape == wanted.shape, f"{kernel.name}, {who}: shape {got.shape}, not {wanted.shape}"
        scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
        close = np.allclose(got, wanted, rtol=kernel.rtol, atol=kernel.rtol * scale, equal_nan=True)
        assert close, f"{kernel.name}, {who}: values of result {i} differ from NumPy's"


def timed(contender: Contender) -> tuple[float, tuple[Any, ...]]:
    arguments = contender.arguments()
    start = time.perf_counter()
    results = contender.run(arguments)
    return time.perf_counter() - start, results


def settle(contender: Contender) -> None:
    """Call until what compiles in the background is there."""
    from mirabelle.backends.host import kernels

    start = time.perf_counter()
    for _ in range(CALLS_BEFORE - 1):
        timed(contender)
        time.sleep(0.02)  # a loader thread may just be handing a source to the compiler
        kernels.settle()
        if time.perf_counter() - start > LIMIT_S:
            break


def take_turns(field: Mapping[str, Contender], rounds: int) -> dict[str, Timing]:
    times: dict[str, list[float]] = {name: [] for name in field}
    names = list(field)
    start = time.perf_counter()
    gc.collect()
    gc.disable()
    try:
        for r in range(rounds):
            shift = r % len(names)
            for name in names[shift:] + names[:shift]:
                # Libraries' idle threads spin for a while and slow whoever comes next, and caches are
                # another's: a pause and a call that does not count are before each that does.
                time.sleep(PAUSE_S)
                timed(field[name])
                times[name].append(timed(field[name])[0])
            if r >= 2 and time.perf_counter() - start > LIMIT_S:
                break
    finally:
        gc.enable()
    return {name: Timing.of(t) for name, t in times.items()}


def measure(kernel: Kernel, rounds: int, peers: Sequence[str]) -> dict[str, Any]:
    """Check and time all who can run a kernel."""
    inputs = kernel.inputs(kernel.size)
    field = contenders(kernel, inputs, peers)
    first, failures = {}, {}
    expected: tuple[Any, ...] = ()
    for name, contender in list(field.items()):
        try:
            first[name], results = timed(contender)
            # NumPy's own results are kept: later runs must not write to them.
            expected = expected or tuple(np.array(r) for r in results)
            same(kernel, name, results, expected)
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {str(error).strip()}"[:500]
            del field[name]
    if "mirabelle" in field:
        settle(field["mirabelle"])
        # What is compiled must be right too, not only what served first.
        same(kernel, "mirabelle compiled", timed(field["mirabelle"])[1], expected)
    t = take_turns(field, rounds)
    found: dict[str, Any] = {
        "name": kernel.name,
        "family": kernel.plain.__module__.rpartition(".")[2],
        "jit": kernel.jitted,
        "size": dict(kernel.size),
        "times": {n: v.as_json() | {"first_call_s": first[n]} for n, v in t.items()},
        "speed_up": {n: t["numpy"].median / v.median for n, v in t.items() if n != "numpy"},
        "failures": failures,
    }
    if "mirabelle" in t:
        rivals = {n: v for n, v in t.items() if n != "mirabelle"}
        best = min(rivals, key=lambda n: rivals[n].median)
        found["best_peer"] = best
        found["over_best_peer"] = rivals[best].median / t["mirabelle"].median
        if kernel.statements is not None:
            extra = t["mirabelle"].median - t["numpy"].median
            found["us_per_statement_over_numpy"] = extra / kernel.statements(**kernel.size) * 1e6
    return found


def row(found: Mapping[str, Any]) -> list[str]:
    times, gain = found["times"], found["speed_up"]

    def milliseconds(name: str) -> str:
        return f"{times[name]['median_s'] * 1e3:.1f}" if name in times else "-"

    def quotient(name: str) -> str:
        return f"{gain[name]:.2f}" if name in gain else "-"

    remarks = []
    if "mirabelle" in found["failures"]:
        remarks.append(found["failures"]["mirabelle"].splitlines()[0][:60])
    elif gain["mirabelle"] < SLOW:
        remarks.append("slow")
    if "us_per_statement_over_numpy" in found:
        remarks.append(f"{found['us_per_statement_over_numpy']:+.1f} µs a statement")
    return [
        found["name"] + (" (jit)" if found["jit"] else ""),
        *[milliseconds(n) for n in ("numpy", "mirabelle", *PEERS)],
        *[quotient(n) for n in ("mirabelle", *PEERS)],
        f"{times['mirabelle']['first_call_s']:.2f}" if "mirabelle" in times else "-",
        ", ".join(remarks),
    ]


def summary(record: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Geometric means over the kernels that ran, of those under `mb.jit`, of the others (lazy arrays).

    A peer that cannot run a kernel counts as NumPy there.
    """
    ours = [f for f in record if "mirabelle" in f["times"]]
    gains = [f["speed_up"]["mirabelle"] for f in ours]
    peers = {p: [f["speed_up"].get(p, 1.0) for f in ours] for p in PEERS}
    first = [f["times"]["mirabelle"]["first_call_s"] for f in ours]
    return {
        "kernels": len(record),
        "geometric_mean": geometric_mean(gains),
        "geometric_mean_jit": geometric_mean([f["speed_up"]["mirabelle"] for f in ours if f["jit"]]),
        "geometric_mean_lazy": geometric_mean([f["speed_up"]["mirabelle"] for f in ours if not f["jit"]]),
        "geometric_mean_peers": {p: geometric_mean(g) for p, g in peers.items()},
        "ran_peers": {p: sum(p in f["times"] for f in ours) for p in PEERS},
        "geometric_mean_over_best_peer": geometric_mean([f["over_best_peer"] for f in ours]),
        "median_first_call_s": statistics.median(first) if first else math.nan,
        "slower_than_numpy": [f["name"] for f in ours if f["speed_up"]["mirabelle"] < SLOW],
        "failed": [f["name"] for f in record if "mirabelle" not in f["times"]],
    }


def report(kernels: Sequence[Kernel], rounds: int, peers: Sequence[str], keep: bool) -> None:
    record = []
    for kernel in kernels:
        record.append(measure(kernel, rounds, peers))
        print(" | ".join(row(record[-1])), file=sys.stderr, flush=True)
    s = summary(record)
    means = [
        f"mirabelle {s['geometric_mean']:.2f}",
        *[f"{m} {s[f'geometric_mean_{m}']:.2f}" for m in ("jit", "lazy") if s[f"geometric_mean_{m}"] > 0],
        *[f"{p} {s['geometric_mean_peers'][p]:.2f} (ran {s['ran_peers'][p]})" for p in PEERS if p in peers],
    ]
    show(
        "NumPy programs: ms, median; speed-up = NumPy's time / the contender's (above 1: faster than NumPy)",
        ["kernel", "NumPy", "mirabelle", "Numba", "JAX", "mirabelle ×", "Numba ×", "JAX ×", "first call, s",
         "remarks"],
        [row(f) for f in record],
        [
            f"Geometric mean over NumPy: {', '.join(means)}.",
            f"Geometric mean over the best of NumPy and the peers: {s['geometric_mean_over_best_peer']:.2f}.",
            f"Median first call: {s['median_first_call_s']:.2f} s.",
            f"Slower than {SLOW} of NumPy: {', '.join(s['slower_than_numpy']) or 'none'}.",
            f"Failed: {', '.join(s['failed']) or 'none'}.",
        ],
    )  # fmt: skip
    if keep:
        store("npkernels", {"threads": 2, "method": NOTE, **s, "cases": record})
