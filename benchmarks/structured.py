"""Structured arrays beside the dense matrices they stand for: the same call, dispatched by the type."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, geometric_mean, store, take_turns, warm_up
from benchmarks._table import show

ORDER = 2048
COLUMNS = 64
# The factors of the norm that is judged: the product would have a million rows.
NORM_ORDER = 1000
TARGET_RATIO = 1.5
NOTE = (
    "Speed-up: the time of a call on the dense HostArray over that on the structured one, best of the rounds, "
    "both computed to the end, and each timed after another call of its own (NumPy and SciPy have a BLAS "
    "each, whose threads go on for a while). Every matrix has about the same order. A dash: the type has no "
    "rule for the operation, which would make it dense with a warning."
)


def matrices(n: int) -> dict[str, Callable[[], Any]]:
    """Each structured type at an order of about `n`, positive definite where it is symmetric."""
    rng = np.random.default_rng(0)
    root = math.isqrt(n)
    blocks = max(1, n // 32)

    def dense(*shape: int) -> Any:
        return mb.HostArray(rng.normal(size=shape))

    def dominant(size: int) -> Any:
        return mb.HostArray(rng.normal(size=(size, size)) + 2 * math.sqrt(size) * np.eye(size))

    def sparse() -> Any:
        entries = np.zeros((n, n))
        places = rng.integers(0, n, size=(2, 5 * n))
        entries[places[0], places[1]] = rng.normal(size=5 * n)
        return mb.CSR(mb.HostArray(entries + 10 * np.eye(n)))

    stack = rng.normal(size=(blocks, 32, 32)) + 12 * np.eye(32)
    return {
        "Identity": lambda: mb.Identity(n),
        "Diagonal": lambda: mb.Diagonal(mb.HostArray(rng.uniform(0.9, 1.1, n))),
        "Tridiagonal": lambda: mb.Tridiagonal(
            dense(n - 1) / 4, mb.HostArray(rng.uniform(0.9, 1.1, n)), dense(n - 1) / 4
        ),
        "UpperTriangular": lambda: mb.UpperTriangular(dominant(n) / math.sqrt(n)),
        "Symmetric": lambda: mb.Symmetric(dominant(n)),
        "Kronecker": lambda: mb.kronecker(dominant(root), dominant(root)),
        "KroneckerSum": lambda: mb.kronecker_sum(dominant(root), dominant(root)),
        "BlockDiagonal": lambda: mb.BlockDiagonal(mb.HostArray(stack)),
        "LowRank": lambda: mb.LowRank(dense(n, 8), dense(8, n)),
        "Toeplitz": lambda: mb.Toeplitz(mb.HostArray(np.concatenate([[9.0], rng.normal(size=n - 1) / n]))),
        "Circulant": lambda: mb.Circulant(mb.HostArray(np.concatenate([[9.0], rng.normal(size=n - 1) / n]))),
        "CSR": sparse,
    }


# Each operation takes a matrix, a vector and a few columns.
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "A @ x": lambda a, x, b: a @ x,
    f"A @ B ({COLUMNS} columns)": lambda a, x, b: a @ b,
    "solve(A, x)": lambda a, x, b: mb.linalg.solve(a, x),
    "norm(A)": lambda a, x, b: mb.linalg.norm(a),
    "slogdet(A)": lambda a, x, b: mb.linalg.slogdet(a).logabsdet,
    "sum(A, axis=0)": lambda a, x, b: mb.sum(a, axis=0),
}
# Of singular matrices there is no solution.
SINGULAR = {"LowRank": ("solve(A, x)", "slogdet(A)")}


def has_rule(f: Callable[[], Any]) -> bool:
    """Does it run without making the structured operand dense?"""
    try:
        with mb.settings.changed(dense_fallback="error"):
            mb.materialize(f())
    except mb.DenseFallbackError:
        return False
    return True


def measure(name: str, structured: Any, rounds: int) -> list[dict[str, Any]]:
    """Check and time all operations on one matrix."""
    n = structured.shape[0]
    dense = mb.HostArray(structured)
    rng = np.random.default_rng(1)
    x, b = mb.HostArray(rng.normal(size=n)), mb.HostArray(rng.normal(size=(n, COLUMNS)))
    found = []
    for operation, run in OPERATIONS.items():
        if operation in SINGULAR.get(name, ()):
            continue

        def by_structure(run: Any = run) -> Any:
            return mb.materialize(run(structured, x, b))

        def as_dense(run: Any = run) -> Any:
            return mb.materialize(run(dense, x, b))

        record: dict[str, Any] = {"type": name, "operation": operation, "order": n, "speed_up": None}
        found.append(record)
        if not has_rule(by_structure):
            continue
        check(f"{name}, {operation}", by_structure(), mb.to_numpy(as_dense()), rtol=1e-7)
        for f in (by_structure, as_dense):
            warm_up(f, times=2)
        times = take_turns({"structured": by_structure, "dense": as_dense}, rounds, 5.0, in_a_row=2)
        record.update({k: v.as_json() for k, v in times.items()})
        record["speed_up"] = times["dense"].best / times["structured"].best
    return found


def norm_of_product(n: int, rounds: int) -> dict[str, Any]:
    """norm(Kronecker(A, B)) beside norm(A) and norm(B), and what it writes."""
    rng = np.random.default_rng(2)
    A, B = mb.HostArray(rng.normal(size=(n, n))), mb.HostArray(rng.normal(size=(n, n)))
    K = mb.kronecker(A, B)

    def product() -> Any:
        return mb.materialize(mb.norm(K))

    def factors() -> Any:
        return mb.materialize(mb.norm(A)), mb.materialize(mb.norm(B))

    expected = np.linalg.norm(mb.to_numpy(A)) * np.linalg.norm(mb.to_numpy(B))
    check("norm(Kronecker(A, B))", product(), expected)
    for f in (product, factors):
        warm_up(f)
    with mb.count() as c:
        product()
    t = take_turns({"kronecker": product, "two dense norms": factors}, 3 * rounds)
    ratio = t["kronecker"].best / t["two dense norms"].best
    return {
        "factors": n,
        "rows": n * n,
        "bytes_if_dense": 8 * n**4,
        "bytes_written": c.bytes_written,
        **{k: v.as_json() for k, v in t.items()},
        "ratio": ratio,
        "target_ratio": TARGET_RATIO,
        "met": ratio <= TARGET_RATIO,
    }


def run(only: str = "", rounds: int = 0, order: int = ORDER, norm_order: int = NORM_ORDER) -> None:
    record: list[dict[str, Any]] = []
    rows = []
    for name, make in matrices(order).items():
        if only not in name:
            continue
        found = {r["operation"]: r for r in measure(name, make(), rounds or 9)}
        record += found.values()
        cells = [found.get(operation, {}).get("speed_up") for operation in OPERATIONS]
        size = next(iter(found.values()))["order"]
        rows.append([f"{name} of order {size}", *("-" if c is None else f"{c:.1f}" for c in cells)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    norm = norm_of_product(norm_order, rounds or 9)
    mean = geometric_mean([r["speed_up"] for r in record if r["speed_up"]])
    slower = [f"{r['type']}: {r['operation']}" for r in record if r["speed_up"] and r["speed_up"] < 1]
    show(
        "Structured over dense: how many times faster, best of the rounds",
        ["matrix", *OPERATIONS],
        rows,
        [
            f"Geometric mean: {mean:.1f}. Slower than dense: {', '.join(slower) or 'none'}.",
            f"norm(Kronecker(A, B)) with factors of order {norm['factors']} ({norm['rows']:,} rows, "
            f"{norm['bytes_if_dense'] / 1e12:.3g} TB if it were dense): {norm['ratio']:.2f} of the time of "
            f"the two dense norms, {norm['bytes_written']} B written. "
            f"Target {TARGET_RATIO}: {'met' if norm['met'] else 'MISSED'}.",
        ],
    )
    if only or order != ORDER:
        return
    store(
        "structured",
        {
            "threads": 2,
            "note": NOTE,
            "columns": COLUMNS,
            "geometric_mean_speed_up": mean,
            "slower_than_dense": slower,
            "kronecker_norm": norm,
            "cases": record,
        },
    )
