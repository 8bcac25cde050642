"""Decisions of a schedule beside what planning does by itself: the same program, with and without.

Both take turns; the ratio is of the best CPU seconds, above 1 where the decision makes a program faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import store, warm_up
from benchmarks._table import show

Schedule = mb.compiling.Schedule


def marginals(x: Any) -> Any:
    """A costly value that two reductions along different axes read."""
    y = mb.exp(mb.sin(x)) * 2
    return mb.sum(y, axis=0), mb.sum(y, axis=1)


def stencil(a: Any, b: Any, c: Any, d: Any) -> Any:
    """A cheap value of four arrays, of which five parts are read."""
    y = a * b + c * d
    return y[1:-1, 2:] + y[1:-1, :-2] + y[2:, 1:-1] + y[:-2, 1:-1] - 4.0 * y[1:-1, 1:-1]


def relaxation(x: Any) -> Any:
    """Eight values in memory, each of the one before, row by row."""
    for _ in range(8):
        x = mb.materialize(mb.sqrt(x * x + 0.5))
    return x


def far_apart(x: Any, y: Any) -> Any:
    """Two results of the same large array, with others between them."""
    first = x * 2.0
    others = [y[k] * 0.5 for k in range(12)]
    last = x + 1.0
    return first, last, others


def softmax(x: Any) -> Any:
    """Statements that go through the same rows."""
    e = mb.exp(x - mb.max(x, axis=1, keepdims=True))
    return e / mb.sum(e, axis=1, keepdims=True)


def relaxed(u: Any, f: Any) -> Any:
    """A loop of few trips on a small array."""
    return mb.fori_loop(0, 20, lambda i, s: 0.5 * s + f * s, u)


def rotated(x: Any, r: Any) -> Any:
    """Many vectors times a small matrix."""
    return x @ r + 1.0


def two_phases(x: Any, y: Any) -> Any:
    """Two large temporaries, both of which are computed before one is done with."""
    a = mb.sin(x) * 2
    b = mb.cos(y) * 2
    first = mb.sum(a, axis=0) * mb.sum(a, axis=1)
    return first + mb.sum(b, axis=0) * mb.sum(b, axis=1)


def cases(rng: np.random.Generator) -> dict[str, tuple[Callable[..., Any], list[Any], Schedule]]:
    def arrays(*shapes: Any) -> list[Any]:
        return [mb.HostArray(rng.random(shape)) for shape in shapes]

    s = Schedule()
    large, small = (2000, 2000), (60, 60)
    return {
        "recompute": (marginals, arrays(large), s.recompute("y = mb.exp")),
        "once": (marginals_of_cheap, arrays(large), s.once("y = x * x")),
        "store": (stencil, arrays(large, large, large, large), s.store("y = a * b")),
        "precision": (marginals, arrays(large), s.precision("y = mb.exp", dtype="float32")),
        "tile: one by one": (relaxation, arrays(large), s.tile("mb.sqrt", rows=2000)),
        "tile: 4 rows": (relaxation, arrays(large), s.tile("mb.sqrt", rows=4)),
        "fuse": (far_apart, [*arrays(large), *arrays((12, 9))], s.fuse("first = x", "last = x")),
        "separate": (sums_and_products, arrays(large, large), s.separate("add", "multiply")),
        "order": (two_phases, arrays(large, large), s.order("first = mb.sum", before="b = mb.cos")),
        "own_memory": (relaxation, arrays(large), s.own_memory()),
        "unroll": (relaxed, arrays(small, small), s.unroll("for loop")),
        "library: sums": (rotated, arrays((200_000, 8), (8, 8)), s.library("product", by="sums")),
        "threads": (softmax, arrays((400, 100)), s.threads("e = mb.exp", most=1)),
    }


def marginals_of_cheap(x: Any) -> Any:
    """A cheap value that two reductions along different axes read."""
    y = x * x + 1.0
    return mb.sum(y, axis=0), mb.sum(y, axis=1)


def sums_and_products(x: Any, y: Any) -> Any:
    """Two results of the same operands."""
    return x + y, x * y


def alternately(calls: list[Callable[[], Any]], rounds: int) -> list[tuple[float, float]]:
    """The best CPU and wall seconds of each."""
    best = [(float("inf"), float("inf"))] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            cpu, wall = time.process_time(), time.perf_counter()
            result = call()
            taken = time.process_time() - cpu, time.perf_counter() - wall
            best[k] = min(best[k][0], taken[0]), min(best[k][1], taken[1])
            del result
    return best


def repeated(f: Any, args: list[Any], times: int) -> Callable[[], Any]:
    def call() -> Any:
        for _ in range(times):
            f(*args)

    return call


def run(only: str = "", rounds: int = 0) -> None:
    record: list[dict[str, Any]] = []
    table = []
    for name, (f, args, schedule) in cases(np.random.default_rng(0)).items():
        if only not in name:
            continue
        plain, decided = mb.compile(f), mb.compile(f, schedule=schedule)
        for g in (plain, decided):
            warm_up(lambda g=g: g(*args), times=3)
        times = max(1, 1_000_000 // max(x.shape[0] * x.shape[-1] for x in args))
        calls = [repeated(g, args, times) for g in (plain, decided)]
        (without, _), (with_it, _) = alternately(calls, rounds or 9)
        memory = [g.program(*args).plan.arena_bytes for g in (plain, decided)]
        ratio = without / with_it
        record.append({"case": name, "program": f.__name__, "schedule": repr(schedule), "times_faster": ratio})
        record[-1] |= {"without_cpu_s": without / times, "with_cpu_s": with_it / times}
        record[-1] |= {"bytes_of_temporaries": memory}
        shown = [f"{t / times * 1e6:,.0f}" for t in (without, with_it)]
        table.append([name, f.__name__, *shown, f"{ratio:.2f}", *[f"{m / 1e6:,.1f}" for m in memory]])
    show(
        "A program without and with a decision: CPU microseconds a call, MB of temporaries",
        ["decision", "program", "without", "with", "times faster", "MB", "MB with"],
        table,
    )
    if not only:
        store("transformations", {"cases": record})
