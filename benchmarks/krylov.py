"""Krylov's methods beside SciPy's, on a Laplacian of two dimensions: CPU seconds of as many turns."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import mirabelle as mb
from benchmarks._measure import store, warm_up
from benchmarks._table import show

SIZES = {10**4: 200, 10**6: 20}  # unknowns: turns
RESTART = 20
THREADS = os.environ.get("BENCHMARKS_THREADS", "2")


def laplacian(n: int) -> sp.csr_array:
    """Of a square grid of so many points."""
    side = round(n**0.5)
    line = sp.diags_array([2.0 * np.ones(side), -np.ones(side - 1), -np.ones(side - 1)], offsets=[0, 1, -1])
    return sp.csr_array(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))


def cases(n: int, turns: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    A, b = laplacian(n), np.random.default_rng(0).random(n)
    ours, x = mb.CSR(A), mb.HostArray(b)
    many: dict[str, Any] = {"rtol": 1e-30, "maxiter": turns}
    rounds: dict[str, Any] = {"rtol": 1e-30, "restart": RESTART, "maxiter": max(1, turns // RESTART)}
    return {
        "A @ x": (lambda: A @ b, lambda: ours @ x),
        "cg": (lambda: sl.cg(A, b, **many), lambda: mb.linalg.cg(ours, x, **many)),
        "minres": (lambda: sl.minres(A, b, **many), lambda: mb.linalg.minres(ours, x, **many)),
        "gmres": (
            lambda: sl.gmres(A, b, **rounds),
            lambda: mb.linalg.gmres(ours, x, restart=RESTART, **many),
        ),
    }


def alternately(f: Callable[[], Any], g: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The best CPU seconds of both."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for k, call in enumerate((f, g)):
            t = time.process_time()
            result = call()
            best[k] = min(best[k], time.process_time() - t)
            del result
    return best[0], best[1]


def run(only: str = "", rounds: int = 0) -> None:
    record, table = [], []
    for n, turns in SIZES.items():
        for name, (f, g) in cases(n, turns).items():
            if only not in name:
                continue
            each = 1 if name == "A @ x" else turns
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mb.linalg.ConvergenceWarning)
                warm_up(g, times=3)
                scipys, mirabelles = (t / each for t in alternately(f, g, rounds or 5))
            ratio = scipys / mirabelles
            record.append(
                {
                    "case": name,
                    "unknowns": n,
                    "scipy_cpu_s_a_turn": scipys,
                    "mirabelle_cpu_s_a_turn": mirabelles,
                    "times_scipy": ratio,
                }
            )
            table.append([name, f"{n:,}", f"{scipys * 1e6:.0f}", f"{mirabelles * 1e6:.0f}", f"{ratio:.2f}"])
    show(
        "Krylov's methods on a 2-D Laplacian: CPU microseconds a turn, best",
        ["method", "unknowns", "SciPy", f"mirabelle, {THREADS} threads", "times SciPy"],
        table,
        [
            "SciPy's inner products are BLAS's, whose threads spin where others use the processors: see also",
            "BENCHMARKS_THREADS=1.",
        ],
    )
    if not only and THREADS == "2":
        store("krylov", {"threads": 2, "cases": record})
