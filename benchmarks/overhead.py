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


# Single elements of a vector and of matrices in both orders; at most so many times NumPy's time.
ELEMENTS = (
    *("x[3]", "x[3] = 1.5", "float(x[3])", "c[2, 1]", "c[2, 1] = 1.5"),
    *("f[2, 1]", "f[2, 1] = 1.5", "float(f[2, 1])"),
)
ELEMENT_LIMIT = 4.0


def elements() -> tuple[list[list[Any]], list[dict[str, Any]], float]:
    """Rows, records and the worst ratio of reading and writing one element."""
    vector, matrix = np.arange(10.0), np.arange(12.0).reshape(3, 4)
    theirs = {"x": vector, "c": matrix, "f": np.asfortranarray(matrix)}
    ours = {name: mb.HostArray(a) for name, a in theirs.items()}
    rows, record, worst = [], [], 0.0
    for text in ELEMENTS:
        t = take_turns_small({"numpy": (text, theirs), "mirabelle": (text, ours)})
        ratio = t["mirabelle"].best / t["numpy"].best
        worst = max(worst, ratio)
        record.append({"statement": text, **{k: v.as_json() for k, v in t.items()}, "ratio_best": ratio})
        times = [f"{t[k].best * 1e6:.3f} ({t[k].median * 1e6:.3f})" for k in ("numpy", "mirabelle")]
        rows.append([text, 1, *times, f"{ratio:.2f}"])
    return rows, record, worst


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
    more, single, worst = elements()
    within = f"at most {ELEMENT_LIMIT:g}: {'met' if worst <= ELEMENT_LIMIT else 'MISSED'}"
    show(
        "Overhead: µs a call, best (median)",
        ["expression", "elements", "NumPy", "mirabelle", "ratio"],
        rows + more,
        [note, f"One element: {worst:.2f} times NumPy's time in the worst case ({within})."],
    )
    store("overhead", {"target_us": TARGET_US, "met": met, "cases": record, "elements": single})
