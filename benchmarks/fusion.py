"""Large expressions beside NumPy, numexpr and JAX's CPU compiler, each on two threads."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._cases import CASES, Case
from benchmarks._measure import (
    check,
    geometric_mean,
    peak_extra,
    store,
    take_turns,
    warm_up,
)
from benchmarks._table import show

PEERS = ("numpy", "numexpr", "jax")
TARGET_RATIO, TARGET_PEAK = 1.05, 2 << 20
MEMORY_NOTE = (
    "Peak extra memory is measured in a process of its own: after the kernel is compiled, the pool of "
    "freed buffers is emptied (arraytypes/pool.py), the kernel's high-water mark of resident memory "
    "(VmHWM) is reset, the expression is evaluated once, and the mark is read. It counts every page the "
    "process gained, the result included; peak_over_result_bytes is that less the result's bytes. In "
    "ordinary running the pool keeps up to settings.pool_bytes of freed results for reuse, which is why "
    "later evaluations do not fault pages in; an in-place update has no result of its own."
)


def mirabelle_contender(case: Case, arrays: list[np.ndarray]) -> Callable[[], Any]:
    import mirabelle as mb

    hosts = [mb.HostArray(a) for a in arrays]
    compute = case.compute

    def ours() -> Any:
        result = compute(mb, *hosts)
        if isinstance(result, tuple):
            return tuple([mb.materialize(r) for r in result])
        return mb.materialize(result)

    def ours_in_place() -> Any:
        u = hosts[0]
        u[...] = compute(mb, *hosts)
        return mb.materialize(u)

    return ours_in_place if case.in_place else ours


def without_pool(ours: Callable[[], Any]) -> Callable[[], Any]:
    """The same with results in fresh memory from the system, as NumPy's and numexpr's are."""
    from mirabelle.dispatch.settings import settings

    def fresh() -> Any:
        with settings.changed(pool_bytes=0):
            return ours()

    return fresh


def numpy_contender(case: Case, arrays: list[np.ndarray]) -> Callable[[], Any]:
    compute = case.compute
    if not case.in_place:
        return lambda: compute(np, *arrays)
    u = arrays[0].copy()

    def update() -> np.ndarray:
        u[...] = compute(np, u, *arrays[1:])
        return u

    return update


def numexpr_contender(case: Case, arrays: list[np.ndarray]) -> Callable[[], Any] | None:
    import numexpr

    numexpr.set_num_threads(2)
    if case.numexpr is None or case.views is None:
        return None
    texts = case.numexpr
    if case.in_place:
        arrays = [arrays[0].copy(), *arrays[1:]]
    views = case.views(*arrays)
    if case.in_place:
        u = arrays[0]
        return lambda: numexpr.evaluate(texts[0], local_dict=views, global_dict={}, out=u)
    if len(texts) == 1:
        return lambda: numexpr.evaluate(texts[0], local_dict=views, global_dict={})
    return lambda: tuple([numexpr.evaluate(t, local_dict=views, global_dict={}) for t in texts])


def jax_contender(case: Case, arrays: list[np.ndarray]) -> Callable[[], Any] | None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    compute = case.compute
    inputs = [jnp.array(a) for a in arrays]
    if not case.in_place:
        jitted = jax.jit(lambda *xs: compute(jnp, *xs))
        return lambda: jax.block_until_ready(jitted(*inputs))
    donated = jax.jit(lambda *xs: compute(jnp, *xs), donate_argnums=0)

    def update() -> Any:
        inputs[0] = jax.block_until_ready(donated(*inputs))
        return inputs[0]

    return update


def _as_numpy(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple([np.asarray(r) for r in result])
    # An in-place contender goes on writing to what it returned.
    return np.array(result)


def _size(result: Any) -> int:
    return sum(r.nbytes for r in (result if isinstance(result, tuple) else (result,)))


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Check and time all contenders of one case."""
    arrays = case.make(np.random.default_rng(0))
    contenders: dict[str, Callable[[], Any]] = {}
    for name, make in (
        ("numpy", numpy_contender),
        ("numexpr", numexpr_contender),
        ("jax", jax_contender),
        ("mirabelle", mirabelle_contender),
    ):
        made = make(case, arrays)
        if made is not None:
            contenders[name] = made
    expected = _as_numpy(contenders["numpy"]())
    for name, f in contenders.items():
        if name != "numpy":
            check(f"{case.name}, {name}", _as_numpy(f()), expected)
    warm_up(contenders["mirabelle"])
    for f in contenders.values():
        f()
    if not case.in_place:
        # The compiled kernel must be right too, not only the interpreter that served first.
        check(f"{case.name}, mirabelle compiled", _as_numpy(contenders["mirabelle"]()), expected)
    # Not a contender: it shows how much of the time is page faults, which the pool saves.
    contenders["mirabelle, no pool"] = without_pool(contenders["mirabelle"])
    t = take_turns(contenders, rounds)
    peers = {k: t[k] for k in PEERS if k in t}
    best = min(peers, key=lambda k: peers[k].best)
    return {
        "name": case.name,
        "expression": case.text,
        "shapes": [list(a.shape) for a in arrays],
        "dtypes": [str(a.dtype) for a in arrays],
        "result_bytes": 0 if case.in_place else _size(expected),
        "times": {k: v.as_json() for k, v in t.items()},
        "best_peer": best,
        "ratio_best": t["mirabelle"].best / peers[best].best,
        "ratio_median": t["mirabelle"].median / min(p.median for p in peers.values()),
        "ratio_best_no_pool": t["mirabelle, no pool"].best / peers[best].best,
        "ratio_numpy": t["mirabelle"].best / t["numpy"].best,
    }


def peak(name: str) -> int:
    """Peak extra memory of one case, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fusion", name], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(json.loads(done.stdout)["peak_extra_bytes"])


def peak_here(name: str) -> int:
    from mirabelle.arraytypes import pool

    case = next(c for c in CASES if c.name == name)
    ours = mirabelle_contender(case, case.make(np.random.default_rng(0)))
    warm_up(ours)
    pool.clear()
    return peak_extra(ours)


def run(only: str = "", rounds: int = 0) -> None:
    chosen = [c for c in CASES if only in c.name]
    record, rows = [], []
    for case in chosen:
        found = measure(case, rounds or 15)
        found["peak_extra_bytes"] = peak(case.name)
        found["peak_over_result_bytes"] = found["peak_extra_bytes"] - found["result_bytes"]
        record.append(found)
        times = found["times"]
        cells = [
            f"{times[k]['best_s'] * 1e3:.1f}" if k in times else "-"
            for k in (*PEERS, "mirabelle", "mirabelle, no pool")
        ]
        slow, fat = found["ratio_best"] > TARGET_RATIO, found["peak_over_result_bytes"] > TARGET_PEAK
        rows.append(
            [
                f"{case.name}: {case.text}",
                *cells,
                found["best_peer"],
                f"{found['ratio_best']:.2f}",
                f"{found['ratio_median']:.2f}",
                f"{found['ratio_numpy']:.2f}",
                f"{found['peak_over_result_bytes'] / (1 << 20):+.1f}",
                " ".join(["slow"] * slow + ["memory"] * fat),
            ]
        )
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    mean = geometric_mean([r["ratio_best"] for r in record])
    mean_no_pool = geometric_mean([r["ratio_best_no_pool"] for r in record])
    missed = [r["name"] for r in record if r["ratio_best"] > TARGET_RATIO]
    heavy = [r["name"] for r in record if r["peak_over_result_bytes"] > TARGET_PEAK]
    show(
        "Fusion: ms, best of the rounds; ratio = mirabelle / best peer (below 1: mirabelle is ahead)",
        ["case", "NumPy", "numexpr", "JAX", "mirabelle", "no pool", "best peer", "ratio", "ratio (median)",
         "ratio to NumPy", "MiB over result", "misses"],
        rows,
        [
            f"Geometric mean of the ratios to the best peer: {mean:.3f}; "
            f"without the pool of buffers {mean_no_pool:.3f}.",
            f"Slower than the best peer beyond 5 %: {', '.join(missed) or 'none'}.",
            f"More than the result and 2 MiB: {', '.join(heavy) or 'none'}.",
        ],
    )  # fmt: skip
    if only:
        return
    store(
        "fusion",
        {
            "threads": 2,
            "target_ratio": TARGET_RATIO,
            "target_peak_over_result_bytes": TARGET_PEAK,
            "memory": MEMORY_NOTE,
            "geometric_mean_ratio": mean,
            "geometric_mean_ratio_no_pool": mean_no_pool,
            "missed_time": missed,
            "missed_memory": heavy,
            "worst_ratio": max((r["ratio_best"] for r in record), default=math.nan),
            "cases": record,
        },
    )


if __name__ == "__main__":
    print(json.dumps({"peak_extra_bytes": peak_here(sys.argv[1])}))
