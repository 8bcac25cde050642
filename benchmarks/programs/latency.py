"""What it takes to make a program: capture, transformation and lowering of graphs of 300 to 20000 nodes.

Each program is generated, runs in a fresh process with an empty cache (cold) and again in another with what
that one left on the disk (warm). Beside them stand the right-hand sides of a sound wave and of the Euler
equations on tetrahedra (order 3, discontinuous Galerkin), whose mesh and operators are there before the clock
starts.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.programs._compiler import NotThereError, compiler, phases, settle

SIZES = (300, 1000, 5000, 20000)
REPEATS = 2
POINTS = 1000
# Right-hand sides of mirabelle.dg, and how long the first call may take with an empty cache.
SOLVERS = {"wave": 1.0, "euler": 3.0}
WARM_LIMIT_S = 0.2
COLD_LIMIT_S = {300: 1.0, 1000: 3.0}
# Operations on arrays that a step of each program says (views not counted).
A_STEP = {"chain": 3, "stencil": 5, "graph": 6}
LINEAR = 1.25


def chain(steps: int) -> Callable[..., Any]:
    """One value after the other, each kept by a name that other statements read."""

    def chain(x: Any, y: Any) -> Any:
        for _ in range(steps):
            x, y = 0.5 * x + y, x
        return x, y

    return chain


def stencil(steps: int) -> Callable[..., Any]:
    """Each step writes the inner points of one array from those of the other."""

    def stencil(x: Any, y: Any) -> Any:
        for k in range(steps):
            source, target = (x, y) if k % 2 == 0 else (y, x)
            target[1:-1] = 0.25 * (source[:-2] + 2.0 * source[1:-1] + source[2:])
        return x, y

    return stencil


def graph(steps: int) -> Callable[..., Any]:
    """Values that read several earlier ones, by numbers that differ, so that no two steps are the same."""

    def graph(x: Any, y: Any) -> Any:
        known = [x, y, x - y]
        for k in range(steps):
            a, b, c = known[-1], known[-2], known[-1 - (7 * k) % min(len(known), 5)]
            known.append((a + b * (0.25 + 1e-6 * k)) / (1.5 + c * c))
        return known[-1], known[-2]

    return graph


PROGRAMS: dict[str, Callable[[int], Callable[..., Any]]] = {"chain": chain, "stencil": stencil, "graph": graph}


def solver_child(physics: str) -> dict[str, Any]:
    """What one process sees of a right-hand side."""
    import mirabelle as mb
    from benchmarks.dg._cases import Case, problem

    semi, u = problem(Case(physics, 3, (4, 4, 4)), mb.HostArray)
    t = semi.scalar(0.0)
    mb.materialize(u)
    program = compiler()(lambda u, t: semi.rhs(u, t))
    times = []
    for _ in range(6):
        start = time.perf_counter()
        found = mb.materialize(program(u, t))
        times.append(time.perf_counter() - start)
        settle()
    eager = mb.to_numpy(semi.rhs(u, t))
    assert np.allclose(mb.to_numpy(found), eager, rtol=1e-9, atol=1e-9), f"{physics}: another result"
    (made,) = program.programs.values()
    nodes = made.record[0][1]  # before any pass
    return {"first_s": times[0], "phases": dict(phases(program)), "again_s": min(times[1:]), "nodes": nodes}


def child(shape: str, nodes: int) -> dict[str, Any]:
    """What one process sees."""
    if shape in SOLVERS:
        return solver_child(shape)
    import mirabelle as mb

    rng = np.random.default_rng(0)
    arrays = [0.5 + rng.random(POINTS) for _ in range(2)]
    function = PROGRAMS[shape](max(1, nodes // A_STEP[shape]))
    expected = function(*[np.array(a) for a in arrays])
    program = compiler()(function)
    times = []
    # The result of the first call is checked, the later ones are for the time of a call.
    for k in range(6):
        hosts = [mb.HostArray(a) for a in arrays]
        start = time.perf_counter()
        results = [mb.materialize(r) for r in program(*hosts)]
        times.append(time.perf_counter() - start)
        if k in (0, 5):
            for got, wanted in zip(results, expected, strict=True):
                assert np.allclose(np.asarray(got), wanted, rtol=1e-9), f"{shape}: values differ from NumPy's"
        settle()
    return {"first_s": times[0], "phases": dict(phases(program)), "again_s": min(times[1:])}


def spawned(shape: str, nodes: int, cache: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.programs.latency", shape, str(nodes)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MIRABELLE_CACHE_DIR": cache},
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1][:500] if lines else f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(points: list[tuple[int, float]]) -> float:
    """The power of the number of nodes with which time grows, by least squares of the logarithms."""
    if len(points) < 2:
        return math.nan
    xs, ys = [math.log(n) for n, _ in points], [math.log(t) for _, t in points]
    mx, my = statistics.fmean(xs), statistics.fmean(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum((x - mx) ** 2 for x in xs)


def run(tiny: bool = False, folder: Path | None = None) -> None:
    try:
        compiler()
    except NotThereError as why:
        print(f"latency: {why}")
        return
    sizes, repeats = ((30, 100), 1) if tiny else (SIZES, REPEATS)
    rows, record = [], []
    for shape in (*PROGRAMS, *SOLVERS):
        for wanted in sizes if shape in PROGRAMS else (0,):
            for state, runs in both(shape, wanted, repeats).items():
                failed = next((r["failed"] for r in runs if "failed" in r), None)
                nodes = wanted or runs[0].get("nodes", 0)
                case: dict[str, Any] = {"program": shape, "nodes": nodes, "cache": state}
                if failed is not None:
                    record.append(case | {"failed": failed})
                    rows.append([f"{shape}, {state}", nodes, "-", "-", "-", failed[:60]])
                    continue
                first = statistics.median(r["first_s"] for r in runs)
                stages = {
                    name: statistics.median(r["phases"].get(name, math.nan) for r in runs)
                    for name in runs[0]["phases"]
                }
                again = statistics.median(r["again_s"] for r in runs)
                record.append(case | {"first_s": first, "phases": stages, "again_s": again, "runs": runs})
                rows.append(
                    [
                        f"{shape}, {state}",
                        nodes,
                        f"{first * 1e3:.0f}",
                        f"{first / max(nodes, 1) * 1e6:.1f}",
                        f"{again * 1e3:.2f}",
                        ", ".join(f"{k} {v * 1e3:.0f}" for k, v in stages.items()) or "-",
                    ]
                )
    powers = growth(record, tiny)
    show(
        "Making programs: ms of the first call (median of fresh processes), µs a node",
        ["program, cache", "nodes", "first call", "µs a node", "a later call", "stages"],
        rows,
        [f"{k}: time grows as the number of nodes to the {v:.2f}." for k, v in powers.items()],
    )
    if folder is not None:
        store("programs_latency", {"method": __doc__, **verdicts(record, powers), "cases": record}, folder)


def both(shape: str, nodes: int, repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Runs with an empty cache, and each again with what that one left."""
    found: dict[str, list[dict[str, Any]]] = {"cold": [], "warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="mirabelle-programs-") as cache:
            for runs in found.values():
                runs.append(spawned(shape, nodes, cache))
    return found


def growth(record: list[dict[str, Any]], tiny: bool) -> dict[str, float]:
    """The exponents, from 1000 nodes on: below, what does not depend on the size counts."""
    powers = {}
    for shape in PROGRAMS:
        for state in ("cold", "warm"):
            points = [
                (r["nodes"], r["first_s"])
                for r in record
                if (r["program"], r["cache"]) == (shape, state) and "first_s" in r
                and (tiny or r["nodes"] >= 1000)
            ]  # fmt: skip
            if len(points) > 1:
                powers[f"{shape}, {state}"] = exponent(points)
    return powers


def limit(case: dict[str, Any]) -> float:
    """How long the first call of a program may take with an empty cache."""
    return SOLVERS.get(case["program"]) or COLD_LIMIT_S.get(case["nodes"], math.inf)


def verdicts(record: list[dict[str, Any]], powers: dict[str, float]) -> dict[str, Any]:
    ran = [r for r in record if "first_s" in r]
    return {
        "exponents": powers,
        "linear": bool(powers) and len(ran) == len(record) and max(powers.values()) <= LINEAR,
        "cold_limits_s": COLD_LIMIT_S,
        "cold_limits_of_solvers_s": SOLVERS,
        "cold_met": all(r["first_s"] <= limit(r) for r in ran if r["cache"] == "cold"),
        "warm_limit_s": WARM_LIMIT_S,
        "warm_met": all(
            r["first_s"] <= WARM_LIMIT_S for r in ran if r["cache"] == "warm" and limit(r) < math.inf
        ),
    }


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
