"""Random numbers beside NumPy's Generator: nanoseconds a number, NumPy on its one thread, we on two."""

from __future__ import annotations

from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import geometric_mean, store, take_turns, warm_up
from benchmarks._table import show

SIZES = (10**6, 10**7)
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "random": ("random", (), {}),
    "random, float32": ("random", (), {"dtype": np.float32}),
    "standard_normal": ("standard_normal", (), {}),
    "standard_normal, float32": ("standard_normal", (), {"dtype": np.float32}),
    "standard_exponential": ("standard_exponential", (), {}),
    "integers(1000)": ("integers", (1000,), {}),
    "integers(2**40)": ("integers", (2**40,), {}),
}
# What rejects or walks: at the smaller size.
REJECTING = {
    "standard_gamma(2.5)": ("standard_gamma", (2.5,), {}),
    "poisson(7)": ("poisson", (7.0,), {}),
    "poisson(70)": ("poisson", (70.0,), {}),
    "binomial(100, 0.3)": ("binomial", (100, 0.3), {}),
    "vonmises(0, 3)": ("vonmises", (0.0, 3.0), {}),
}
SMALL = 16
TARGET = "random"


def run() -> None:
    theirs, ours = np.random.default_rng(1), mb.random.default_rng(1)
    rows, record = [], []
    cases = [(text, n, case) for n in SIZES for text, case in CASES.items()]
    cases += [(text, SIZES[0], case) for text, case in REJECTING.items()]
    cases += [(text, SMALL, CASES[text]) for text in ("random", "standard_normal")]
    for text, n, (method, arguments, options) in cases:
        f, g = getattr(theirs, method), getattr(ours, method)

        def numpy(f: Any = f, a: Any = arguments, n: int = n, o: Any = options) -> Any:
            return f(*a, size=n, **o)

        def mirabelle(g: Any = g, a: Any = arguments, n: int = n, o: Any = options) -> Any:
            return mb.materialize(g(*a, size=n, **o))

        warm_up(mirabelle)
        t = take_turns({"numpy": numpy, "mirabelle": mirabelle}, rounds=200 if n == SMALL else 9)
        ratio = t["numpy"].best / t["mirabelle"].best
        record.append(
            {"case": text, "elements": n, **{k: v.as_json() for k, v in t.items()}, "times_numpy": ratio}
        )
        each = [f"{t[k].best / n * 1e9:.2f} ({t[k].median / n * 1e9:.2f})" for k in ("numpy", "mirabelle")]
        rows.append([text, f"{n:,}", *each, f"{ratio:.2f}"])
    large = [r["times_numpy"] for r in record if r["elements"] != SMALL]
    judged = [r["times_numpy"] for r in record if r["case"] == TARGET and r["elements"] != SMALL]
    met = min(judged) >= 1.0
    notes = [
        f"Geometric mean of the large sizes: {geometric_mean(large):.2f} times NumPy.",
        f"Target: {TARGET}() at least as fast as NumPy's: {'met' if met else 'MISSED'}.",
    ]
    show(
        "Random numbers: ns a number, best (median)",
        ["case", "numbers", "NumPy, 1 thread", "mirabelle, 2 threads", "times NumPy"],
        rows,
        notes,
    )
    store("random", {"met": met, "cases": record})
