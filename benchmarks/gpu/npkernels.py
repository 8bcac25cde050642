"""The NumPy programs of `benchmarks/npkernels` on the card, as they are and compiled, beside CuPy's arrays."""

from __future__ import annotations

import dataclasses
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks._measure import geometric_mean
from benchmarks._table import show
from benchmarks.gpu._card import Card
from benchmarks.gpu._libraries import to_numpy
from benchmarks.gpu._record import Record, Recorder
from benchmarks.npkernels import KERNELS
from benchmarks.npkernels._kernel import Kernel
from benchmarks.npkernels._report import same
from benchmarks.programs._kernels import forms

SOFT_LIMIT_S, HARD_LIMIT_S = 200.0, 280.0
ROUNDS, ROUNDS_S, CALL_LIMIT_S, CAPTURE_LIMIT_S = 7, 0.8, 15.0, 25.0
TARGET = 3.0
METHOD = (
    "The programs as they are, in float64 where they are on the host; those that loop over elements under "
    "mb.jit are for the host and left out. Sizes fit a card where the program allows (the others are "
    "npkernels' own). Before each run the arguments that the program writes to are made anew, outside the "
    "clock; it stops when the card is done with all results. Two runs come before those that count; medians. "
    "At a small size, results are compared with NumPy's, at the full size with CuPy's. compiled is mb.compile "
    "of the same text (form tells of others): arrays are arguments, also those that it makes of zeros, numbers "
    "are constants; what cannot be captured counts as the eager program."
)

# Larger than on the host: a card needs more to do. Steps are fewer where there are many.
SIZES: dict[str, dict[str, int]] = {
    "compute": {"n": 6000},
    "arc_distance": {"n": 30_000_000},
    "mandelbrot1": {"width": 1000, "height": 1000, "limit": 100},
    "mandelbrot2": {"width": 2000, "height": 2000, "limit": 100},
    "cavity_flow": {"n": 61, "steps": 10, "sweeps": 50},
    "softmax": {"batch": 32, "heads": 8, "length": 512},
    "conv2d": {"batch": 32, "side": 64, "k": 3, "inputs": 3, "outputs": 16},
    "gemver": {"n": 8000},
    "cholesky2": {"n": 3000},
    "nbody": {"bodies": 1000, "steps": 20},
    "floyd_warshall": {"n": 1000},
    "stockham_fft": {"radix": 4, "stages": 11},
    "azimint_naive": {"pixels": 4_000_000, "rings": 100},
    "azimint_hist": {"pixels": 20_000_000, "rings": 1000},
    "covariance2": {"n": 4000, "m": 3000},
    "jacobi_1d": {"steps": 1000, "n": 100_000},
    "jacobi_2d": {"steps": 100, "n": 2000},
    "heat_3d": {"steps": 20, "n": 200},
    "fdtd_2d": {"steps": 60, "nx": 2000, "ny": 2200},
    "hdiff": {"ni": 400, "nj": 400, "nk": 80},
    "vadv": {"ni": 256, "nj": 256, "nk": 160},
}

Results = tuple[Any, ...]


class Runner:
    """A program on one library's arrays: what it takes is made outside the clock."""

    def __init__(
        self,
        kernel: Kernel,
        card: Card,
        inputs: Sequence[Any],
        make: Callable[[Any], Any],
        copy: Callable[[Any], Any],
        run: Callable[[Sequence[Any]], Results],
        changed: Sequence[bool] = (),
    ) -> None:
        self.card = card
        self.kept = [make(x) if isinstance(x, np.ndarray) else x for x in inputs]
        changed = changed or [n in kernel.writes for n in kernel.parameters]
        self.changed = [c and isinstance(x, np.ndarray) for x, c in zip(inputs, changed, strict=True)]
        self.copy = copy
        self.run = run

    def timed(self) -> tuple[float, Results]:
        arguments = [self.copy(x) if c else x for x, c in zip(self.kept, self.changed, strict=True)]
        self.card.synchronize()
        start = time.perf_counter()
        results = self.run(arguments)
        self.card.synchronize()
        return time.perf_counter() - start, results


def on_mirabelle(kernel: Kernel, card: Card, inputs: Sequence[Any]) -> Runner:
    import mirabelle as mb

    xp = mb.namespace(mb.CuArray)

    def run(arguments: Sequence[Any]) -> Results:
        results = kernel.run(kernel.program, xp, arguments)
        return tuple([mb.materialize(r) if isinstance(r, mb.AbstractArray) else r for r in results])

    return Runner(kernel, card, inputs, card.ours, lambda x: mb.materialize(mb.copy(x)), run)


class Compiled:
    """Runners of `mb.compile` of a kernel, all of the first form that can be captured."""

    def __init__(self, kernel: Kernel) -> None:
        self.forms = forms(kernel.name)

    def __call__(self, kernel: Kernel, card: Card, inputs: Sequence[Any]) -> Runner:
        import mirabelle as mb
        from mirabelle.compiling import TraceError

        xp = mb.namespace(mb.CuArray)
        while True:
            form = self.forms[0]
            start = form.start(inputs)
            call = form.calling(mb.compile, xp, inputs)
            arrays = [n for n, x in zip(kernel.parameters, inputs, strict=True) if isinstance(x, np.ndarray)]
            changed = [n in kernel.writes for n in arrays] if len(arrays) == len(start) else [True] * len(start)

            def run(arguments: Sequence[Any], call: Callable[..., Any] = call) -> Results:
                return tuple(
                    [mb.materialize(r) if isinstance(r, mb.AbstractArray) else r for r in call(arguments)]
                )

            runner = Runner(kernel, card, start, card.ours, lambda x: mb.materialize(mb.copy(x)), run, changed)
            if len(self.forms) == 1:
                return runner
            try:
                runner.timed()
            except TraceError:
                del self.forms[0]
            else:
                del self.forms[1:]


def on_cupy(kernel: Kernel, card: Card, inputs: Sequence[Any]) -> Runner:
    cupy = card.need()
    return Runner(kernel, card, inputs, cupy.array, cupy.array, lambda a: kernel.run(kernel.plain, cupy, a))


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    record.content["left_out"] = [k.name for k in KERNELS.values() if k.jitted]
    for kernel in KERNELS.values():
        if kernel.jitted:
            continue
        if record.late:
            record.content.setdefault("no_time_for", []).append(kernel.name)
            continue
        record.case(kernel.name, lambda k=kernel: measured(k, record), limit_s=60)  # type: ignore[misc]


def measured(kernel: Kernel, record: Recorder) -> dict[str, Any]:
    card = record.card
    size: Mapping[str, int] = kernel.tiny if card.tiny else SIZES.get(kernel.name, kernel.size)
    small = kernel.inputs(kernel.tiny)
    with np.errstate(all="ignore"):
        expected = kernel.run(
            kernel.plain, np, [np.array(x) if isinstance(x, np.ndarray) else x for x in small]
        )
    inputs = kernel.inputs(size)
    runners: dict[str, Runner] = {}
    first: dict[str, float] = {}
    results: dict[str, Results] = {}
    for name, maker in (("cupy", on_cupy), ("mirabelle", on_mirabelle), ("compiled", Compiled(kernel))):

        def made(name: str = name, maker: Callable[..., Runner] = maker) -> Runner:
            _, little = maker(kernel, card, small).timed()
            same(kernel, name, [to_numpy(r) for r in little], expected)
            runner = maker(kernel, card, inputs)
            first[name], results[name] = runner.timed()
            return runner

        runner = record.attempt(name, made, CAPTURE_LIMIT_S if name == "compiled" else CALL_LIMIT_S)
        if runner is not None:
            runners[name] = runner
    equal = None
    if "cupy" in runners:
        mine = [results[n] for n in ("mirabelle", "compiled") if n in runners]
        equal = record.attempt("equal", lambda: all(_equal(kernel, card, r, results["cupy"]) for r in mine))
    results.clear()
    counters = record.attempt("counters", lambda: counted(runners["mirabelle"]), CALL_LIMIT_S)
    times = _take_turns(runners, record)
    found: dict[str, Any] = {
        "family": kernel.plain.__module__.rpartition(".")[2],
        "size": dict(size),
        "times": {
            n: {
                "best_s": min(t),
                "median_s": statistics.median(t),
                "rounds": len(t),
                "first_call_s": first[n],
            }
            for n, t in times.items()
        },
        "equal_at_full_size": equal,
        "counters": counters,
    }
    if "cupy" in times and "mirabelle" in times:
        medians = {n: statistics.median(t) for n, t in times.items()}
        theirs = medians["cupy"]
        found["over_cupy"] = theirs / medians["mirabelle"]
        found["compiled_over_cupy"] = theirs / medians.get("compiled", medians["mirabelle"])
        found["said"] = "; ".join(f"{n} {t * 1e3:.2f} ms, {theirs / t:.2f}" for n, t in medians.items())
    return found


def _take_turns(runners: Mapping[str, Runner], record: Recorder) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for name, runner in runners.items():
        if record.attempt(name, lambda r=runner: r.timed()[0], CALL_LIMIT_S) is not None:
            times[name] = []
    start = time.perf_counter()
    gc.collect()
    for r in range(2 if record.card.tiny else ROUNDS):
        for name in list(times):
            took = record.attempt(name, lambda r=runners[name]: r.timed()[0], CALL_LIMIT_S)
            if took is None:
                del times[name]
            else:
                times[name].append(took)
        if r >= 2 and time.perf_counter() - start > ROUNDS_S:
            break
    return times


def _equal(kernel: Kernel, card: Card, ours: Results, theirs: Results) -> bool:
    """Whether results of the full size are CuPy's, compared on the card."""
    cupy = card.need()
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = cupy.asarray(card.theirs(a)), cupy.asarray(b)
        assert a.shape == b.shape, f"result {i}: shape {a.shape}, not {b.shape}"
        if not b.size:
            continue
        scale = float(cupy.nan_to_num(abs(b), nan=0.0, posinf=0.0).max())
        close = cupy.allclose(a, b, rtol=10 * kernel.rtol, atol=10 * kernel.rtol * scale, equal_nan=True)
        assert bool(close), f"values of result {i} differ from CuPy's"
    return True


def counted(runner: Runner) -> dict[str, int]:
    """mirabelle's counters for one run."""
    import mirabelle as mb

    with mb.count() as counters:
        runner.timed()
    return {f.name: getattr(counters, f.name) for f in dataclasses.fields(counters)}


def report(record: Record) -> None:
    cases = record.cases
    over = {c["name"]: c["over_cupy"] for c in cases if "over_cupy" in c}
    mean = geometric_mean(list(over.values()))
    compiled = {c["name"]: c["compiled_over_cupy"] for c in cases if "compiled_over_cupy" in c}
    failed = [c["name"] for c in cases if "mirabelle" not in c.get("times", {})]
    transfers = {
        c["name"]: {k: c["counters"][k] for k in ("transfers", "scalar_reads")}
        for c in cases
        if c.get("counters") and (c["counters"]["transfers"] or c["counters"]["scalar_reads"])
    }
    record.content["summary"] = {
        "kernels": len(cases),
        "compared": len(over),
        "geometric_mean_over_cupy": mean,
        "geometric_mean_compiled_over_cupy": geometric_mean(list(compiled.values())),
        "not_compiled": [c["name"] for c in cases if "compiled" not in c.get("times", {})],
        "compiled_slower_than_cupy": [n for n, v in compiled.items() if v < 0.95],
        "slower_than_cupy": [n for n, v in over.items() if v < 0.95],
        "failed": failed,
        "cupy_cannot": [c["name"] for c in cases if "cupy" not in c.get("times", {})],
        "transfers_and_scalar_reads": transfers,
        "met": bool(over) and mean >= TARGET,
    }

    def milliseconds(case: dict[str, Any], name: str) -> str:
        times = case.get("times", {})
        return f"{times[name]['median_s'] * 1e3:.2f}" if name in times else "-"

    show(
        "NumPy programs on the card: ms, median",
        [
            "kernel",
            "CuPy",
            "mirabelle",
            "compiled",
            "CuPy / mirabelle",
            "CuPy / compiled",
            "launches",
            "temporaries",
            "first call, s",
            "compiled, s",
        ],
        [
            [
                c["name"],
                milliseconds(c, "cupy"),
                milliseconds(c, "mirabelle"),
                milliseconds(c, "compiled"),
                *[f"{c[k]:.2f}" if k in c else "-" for k in ("over_cupy", "compiled_over_cupy")],
                *[str(c["counters"][k]) if c.get("counters") else "-" for k in ("launches", "temporaries")],
                *[
                    f"{c['times'][n]['first_call_s']:.2f}" if n in c.get("times", {}) else "-"
                    for n in ("mirabelle", "compiled")
                ],
            ]
            for c in cases
        ],
        [
            f"Geometric mean over CuPy eager, {len(over)} kernels: {mean:.2f} (target {TARGET:g}).",
            f"Compiled, where that can be captured: {geometric_mean(list(compiled.values())):.2f}.",
            f"mirabelle failed: {', '.join(failed) or 'none'}.",
            f"Transfers or scalar reads: {', '.join(transfers) or 'none'}.",
        ],
    )
