"""Sparse matrices beside SciPy's: CPU seconds, a million rows and ten million entries anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import mirabelle as mb
from benchmarks._measure import store, warm_up
from benchmarks._table import show

ENTRIES = 10**7
TARGET = 1.0


def best_cpu(f: Callable[[], object], rounds: int) -> float:
    """The best CPU seconds of a call; on a machine that others use, wall-clock seconds say little."""
    times = []
    for _ in range(rounds):
        t = time.process_time()
        result = f()
        times.append(time.process_time() - t)
        del result
    return min(times)


def run(only: str = "", rounds: int = 0, entries: int = ENTRIES) -> None:
    rng, n = np.random.default_rng(0), entries // 10
    i, j = rng.integers(0, n, entries), rng.integers(0, n, entries)
    v, x = rng.normal(size=entries), rng.normal(size=n)
    picked = rng.permutation(n)[: n // 5]
    rows_, columns_, V, X, P = (mb.HostArray(a) for a in (i, j, v, x, picked))
    theirs = scipy.sparse.csr_array((v, (i, j)), shape=(n, n))
    theirs.sum_duplicates()
    ours = mb.CSR((V, (rows_, columns_)), shape=(n, n))
    rows = slice(n // 1000, n // 5)

    def built() -> Any:
        made = scipy.sparse.csr_array((v, (i, j)), shape=(n, n))
        made.sum_duplicates()
        return made

    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "CSR((v, (i, j)))": (built, lambda: mb.CSR((V, (rows_, columns_)), shape=(n, n))),
        "A @ x": (lambda: theirs @ x, lambda: ours @ X),
        "A.T @ x": (lambda: theirs.T @ x, lambda: ours.T @ X),
        "x @ A": (lambda: x @ theirs, lambda: X @ ours),
        "A[1000:200000]": (lambda: theirs[rows], lambda: ours[rows]),
        "A[picked]": (lambda: theirs[picked], lambda: ours[P]),
        "A[:, 1000:200000]": (lambda: theirs[:, rows], lambda: ours[:, rows]),
        "sum(A, axis=0)": (lambda: theirs.sum(axis=0), lambda: mb.materialize(mb.sum(ours, axis=0))),
        "sum(A, axis=1)": (lambda: theirs.sum(axis=1), lambda: mb.materialize(mb.sum(ours, axis=1))),
        "A * 2": (lambda: theirs * 2, lambda: mb.materialize(ours * 2)),
        "A + A.T": (lambda: theirs + theirs.T, lambda: ours + ours.T),
    }
    record, table = [], []
    for name, (f, g) in cases.items():
        if only not in name:
            continue
        warm_up(g, times=1)
        scipys, mirabelles = best_cpu(f, rounds or 5), best_cpu(g, rounds or 5)
        ratio = scipys / mirabelles
        record.append(
            {"case": name, "scipy_cpu_s": scipys, "mirabelle_cpu_s": mirabelles, "times_scipy": ratio}
        )
        table.append([name, f"{scipys * 1e3:.1f}", f"{mirabelles * 1e3:.1f}", f"{ratio:.2f}"])
    missed = [r["case"] for r in record if r["times_scipy"] < TARGET]
    show(
        f"Sparse matrices, {entries:,} entries in {n:,} rows: CPU milliseconds, best",
        ["statement", "SciPy", "mirabelle, 2 threads", "times SciPy"],
        table,
        [f"Below {TARGET}: {', '.join(missed) or 'none'}."],
    )
    if not only and entries == ENTRIES:
        store("sparse", {"threads": 2, "below_target": missed, "cases": record})
