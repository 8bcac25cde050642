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
# Programs of such speed-ups are measured for three times as many rounds: the machine's noise is as large.
UNCLEAR = 0.75, 1.05
# Our contenders: the program on eager arrays, and compiled.
OURS = ("mirabelle", "compiled")
NOTE = (
    "Times are in seconds, on two threads. Before each call the arguments that the program writes to are made "
    "anew, outside the clock; it stops when all results are computed. The contenders take turns, mirabelle "
    "from its tenth call on; in each turn a pause and a call that does not count precede the one that does. "
    "Speed-ups are quotients of medians, of three times as many rounds where the first say less than 1.05 (and "
    "more than 0.75). first_call_s is the first call in the "
    "process, compiling included, with the library imported. compiled is mb.compile of the same text, where it "
    "is not under mb.jit: its arrays are arguments (also those that it makes of zeros), its numbers constants; "
    "forms tells of others. Where it cannot be captured it counts as the eager program does."
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


def captured(kernel: Kernel, inputs: Sequence[Any]) -> tuple[Contender, float, tuple[Any, ...], str]:
    """`mb.compile` of a kernel in the first of its forms that compiles, its first call, and what form it is."""
    from benchmarks.programs._runners import Compiled

    runner = Compiled(kernel, inputs)
    seconds, results = runner.first()
    return runner.contender, seconds, results, runner.why


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
    """The times of all, and of more rounds where it is not clear yet which side of the limit we are on."""
    times = turns(field, rounds)
    if "mirabelle" in field:
        gain = statistics.median(times["numpy"]) / statistics.median(times["mirabelle"])
        if UNCLEAR[0] < gain < UNCLEAR[1]:
            for name, more in turns(field, 2 * rounds).items():
                times[name] += more
    return {name: Timing.of(t) for name, t in times.items()}


def turns(field: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
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
    return times


def measure(kernel: Kernel, rounds: int, peers: Sequence[str]) -> dict[str, Any]:
    """Check and time all who can run a kernel."""
    inputs = kernel.inputs(kernel.size)
    field = contenders(kernel, inputs, peers)
    first, failures, form = {}, {}, ""
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
    if "compiled" in peers and not kernel.jitted:
        try:
            field["compiled"], first["compiled"], results, form = captured(kernel, inputs)
            same(kernel, "compiled", results, expected)
        except Exception as error:
            failures["compiled"] = f"{type(error).__name__}: {str(error).strip()}"[:500]
            field.pop("compiled", None)
    for name in OURS:
        if name in field:
            settle(field[name])
            # What is compiled must be right too, not only what served first.
            same(kernel, f"{name}, when all kernels are there", timed(field[name])[1], expected)
    t = take_turns(field, rounds)
    found: dict[str, Any] = {
        "name": kernel.name,
        "family": kernel.plain.__module__.rpartition(".")[2],
        "jit": kernel.jitted,
        "size": dict(kernel.size),
        "times": {n: v.as_json() | {"first_call_s": first[n]} for n, v in t.items()},
        "speed_up": {n: t["numpy"].median / v.median for n, v in t.items() if n != "numpy"},
        "failures": failures,
        **({"form": form} if form else {}),
    }
    if "mirabelle" in t:
        rivals = {n: v for n, v in t.items() if n not in OURS}
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
        *[milliseconds(n) for n in ("numpy", *OURS, *PEERS)],
        *[quotient(n) for n in (*OURS, *PEERS)],
        *[f"{times[n]['first_call_s']:.2f}" if n in times else "-" for n in OURS],
        ", ".join(remarks),
    ]


def summary(record: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Geometric means over the kernels that ran, of those under `mb.jit`, of the others (lazy arrays).

    A peer that cannot run a kernel counts as NumPy there; where nothing is compiled the eager program counts.
    """
    ours = [f for f in record if "mirabelle" in f["times"]]
    gains = [f["speed_up"]["mirabelle"] for f in ours]
    peers = {p: [f["speed_up"].get(p, 1.0) for f in ours] for p in PEERS}
    first = [f["times"]["mirabelle"]["first_call_s"] for f in ours]
    compiled = [f for f in ours if "compiled" in f["times"]]
    best = {f["name"]: f["speed_up"].get("compiled", f["speed_up"]["mirabelle"]) for f in ours}
    return {
        "kernels": len(record),
        "geometric_mean": geometric_mean(gains),
        "geometric_mean_jit": geometric_mean([f["speed_up"]["mirabelle"] for f in ours if f["jit"]]),
        "geometric_mean_lazy": geometric_mean([f["speed_up"]["mirabelle"] for f in ours if not f["jit"]]),
        "geometric_mean_peers": {p: geometric_mean(g) for p, g in peers.items()},
        "ran_peers": {p: sum(p in f["times"] for f in ours) for p in PEERS},
        "geometric_mean_over_best_peer": geometric_mean([f["over_best_peer"] for f in ours]),
        "geometric_mean_compiled": geometric_mean(list(best.values())),
        "compiled": len(compiled),
        "compiled_slower_than_numpy": [n for n, gain in best.items() if gain < SLOW],
        "compiled_median_first_call_s": statistics.median(
            [f["times"]["compiled"]["first_call_s"] for f in compiled] or [math.nan]
        ),
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
        ["kernel", "NumPy", "mirabelle", "compiled", "Numba", "JAX", "mirabelle ×", "compiled ×", "Numba ×",
         "JAX ×", "first call, s", "compiled, s", "remarks"],
        [row(f) for f in record],
        [
            f"Geometric mean over NumPy: {', '.join(means)}.",
            f"With mb.compile, where it is not mb.jit's ({s['compiled']} programs): "
            f"{s['geometric_mean_compiled']:.2f}; median first call {s['compiled_median_first_call_s']:.2f} s; "
            f"slower than {SLOW} of NumPy: {', '.join(s['compiled_slower_than_numpy']) or 'none'}.",
            f"Geometric mean over the best of NumPy and the peers: {s['geometric_mean_over_best_peer']:.2f}.",
            f"Median first call: {s['median_first_call_s']:.2f} s.",
            f"Slower than {SLOW} of NumPy: {', '.join(s['slower_than_numpy']) or 'none'}.",
            f"Failed: {', '.join(s['failed']) or 'none'}.",
        ],
    )  # fmt: skip
    if keep:
        store("npkernels", {"threads": 2, "method": NOTE, **s, "cases": record})
