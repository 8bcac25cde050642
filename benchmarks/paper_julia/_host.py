"""The figures on the host: HostArray beside NumPy and JAX, two threads each."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks import _measure
from benchmarks.paper_julia import _report, figures
from benchmarks.paper_julia.figures import FIGURES, Case

# A round of a contender takes at least this long: short calls are repeated.
ROUND_S = 0.01


def run(only: str, rounds: int, tiny: bool, out: Path | None) -> None:
    chosen = [f for f in FIGURES if only in f.name]
    if not chosen:
        raise SystemExit(f"there is no figure {only!r}; there are {', '.join(f.name for f in FIGURES)}")
    # Who else was at work before this began.
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    cases = [
        measured(Case(f, n, tiny=tiny), rounds or (2 if tiny else 9))
        for f in chosen
        for n in f.sizes(False, tiny)
    ]
    summary = _report.summary(cases, "NumPy")
    for figure in chosen:
        _report.show_figure(figure, cases, summary)
    if out is None:
        return
    record = {"threads": 2, "load_before": load, "method": _report.METHOD, "summary": summary, "cases": cases}
    _measure.store("paper_julia", record, out)
    _report.write_table(out / "paper_julia.csv", "host", cases)
    with contextlib.suppress(ImportError):
        from benchmarks.paper_julia import _drawing

        for picture in _drawing.draw(out):
            print(picture.name, file=sys.stderr)


def contenders(case: Case) -> figures.Contenders:
    """Everybody's call at one size, NumPy's first."""
    data = case.data()
    found = figures.by_hand(case, data, np, "NumPy") | figures.ours(case, data, mb.HostArray)
    if not case.tiny:
        with contextlib.suppress(ImportError):
            import jax

            shown = [jax.numpy.asarray(x) for x in data]
            found |= figures.by_jax(case, shown, jax, jax.block_until_ready)
    return found


def measured(case: Case, rounds: int) -> dict[str, Any]:
    """Check and time all contenders at one size."""
    calls = contenders(case)
    expected = np.asarray(next(iter(calls.values()))())
    repeated, counts = {}, {}
    for name, call in calls.items():
        result = call()
        result = mb.to_numpy(result) if isinstance(result, mb.AbstractArray) else result
        _measure.check(f"{case.figure.name}, N = {case.n}: {name}", result, expected, rtol=1e-8)
        del result
        if name.startswith("mirabelle"):
            _measure.warm_up(call, times=1 if case.tiny else 3)
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        counts[name] = 1 if case.tiny else max(1, int(ROUND_S / max(took, 1e-7)))
        repeated[name] = _times(call, counts[name])
    limit = 2.0 if case.tiny else 20.0 if case.dense else 10.0
    timings = _measure.take_turns(repeated, rounds, limit_s=limit)
    found = {
        **case.facts(),
        "seconds": {k: t.median / counts[k] * case.scale for k, t in timings.items()},
        "best": {k: t.best / counts[k] * case.scale for k, t in timings.items()},
        "rounds": {k: t.rounds for k, t in timings.items()},
    }
    print(f"{case.figure.name} {case.n}: {_report.said(found['seconds'])}", file=sys.stderr, flush=True)
    return found


def _times(call: Callable[[], Any], count: int) -> Callable[[], Any]:
    def several() -> Any:
        for _ in range(count):
            result = call()
        return result

    return several
