"""What an expression over small arrays costs beside NumPy, in microseconds."""

from __future__ import annotations

from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, store, take_turns_small, warm_up
from benchmarks._table import show

SIZES = (1, 16, 256, 4096)
TARGET_US, TARGET_SIZE = 4.0, 16


def short(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def long_numpy(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return a + b * c - d / (e + 2) + 0.5 * np.sin(a)


def long_mirabelle(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return a + b * c - d / (e + 2) + 0.5 * mb.sin(a)


CASES = {
    "x*y + z": (3, short, short),
    "a + b*c - d/(e+2) + 0.5*sin(a)": (5, long_numpy, long_mirabelle),
}


def run() -> None:
    rows, record = [], []
    for text, (count, plain, ours) in CASES.items():
        for n in SIZES:
            rng = np.random.default_rng(0)
            arrays = [rng.random(n) for _ in range(count)]
            hosts = [mb.HostArray(a) for a in arrays]
            result = mb.to_numpy(mb.materialize(ours(*hosts)))
            check("mirabelle", result, plain(*arrays))
            for _ in range(80):  # past the use count from which small kernels are compiled
                mb.materialize(ours(*hosts))
            warm_up(lambda f=ours, h=hosts: mb.materialize(f(*h)))
            names = ", ".join(f"x{i}" for i in range(count))
            t = take_turns_small(
                {
                    "numpy": (f"f({names})", {"f": plain, **{f"x{i}": a for i, a in enumerate(arrays)}}),
                    "mirabelle": (
                        f"force(f({names}))",
                        {"f": ours, "force": mb.materialize, **{f"x{i}": h for i, h in enumerate(hosts)}},
                    ),
                }
            )
            ratio = t["mirabelle"].best / t["numpy"].best
            record.append(
                {
                    "expression": text,
                    "elements": n,
                    **{k: v.as_json() for k, v in t.items()},
                    "ratio_best": ratio,
                }
            )
            rows.append(
                [text, n]
                + [f"{t[k].best * 1e6:.2f} ({t[k].median * 1e6:.2f})" for k in ("numpy", "mirabelle")]
                + [f"{ratio:.2f}"]
            )
    judged = next(r for r in record if r["expression"] == "x*y + z" and r["elements"] == TARGET_SIZE)
    took = judged["mirabelle"]["best_s"] * 1e6
    met = took <= TARGET_US
    note = (
        f"Target: x*y + z of {TARGET_SIZE} elements, forced, in at most {TARGET_US:g} µs: "
        f"{took:.2f} µs beside NumPy's {judged['numpy']['best_s'] * 1e6:.2f} µs: "
        f"{'met' if met else 'MISSED'}."
    )
    show(
        "Overhead: µs a call, best (median)",
        ["expression", "elements", "NumPy", "mirabelle", "ratio"],
        rows,
        [note],
    )
    store("overhead", {"target_us": TARGET_US, "met": met, "cases": record})
