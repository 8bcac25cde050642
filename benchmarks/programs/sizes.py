"""A program that is called with fifty sizes: what a first call takes, of programs for each size and for any.

Seconds are of the processor. A first call of `sizes="each"` captures, plans and runs; of `"any"` the plan
is made of the template, and what is left is finding out which kernels are one launch, laying out their
arguments, and running. The very first call, which captures for some combinations of sizes, is in the second
ratio.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show

CALLS = 50


def heat(u: Any, v: Any) -> Any:
    v[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    u += v
    return abs(u).max()


def standardised(a: Any, b: Any) -> Any:
    c = a + b[::-1]
    return (c - c.mean(axis=0)) / c.std(axis=0) / c.shape[0]


def pressure(u: Any, v: Any) -> Any:
    p = u * 0
    for _ in range(3):
        b = (u[1:-1, 2:] - u[1:-1, :-2]) * 0.5 + (v[2:, 1:-1] - v[:-2, 1:-1]) * 0.5
        p[1:-1, 1:-1] = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) - b
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        u[1:-1, 1:-1] -= 0.1 * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] -= 0.1 * (p[2:, 1:-1] - p[:-2, 1:-1])
    return p


def run(tiny: bool = False, folder: Path | None = None) -> None:
    import mirabelle as mb

    rng = np.random.default_rng(0)
    sizes = list(dict.fromkeys(map(tuple, rng.integers(24, 200, (4 * CALLS, 2)).tolist())))
    sizes = [s for s in sizes if s[0] != s[1]][: 5 if tiny else CALLS]
    rows, cases = [], []
    for f in (heat, standardised, pressure):
        took: dict[str, list[float]] = {"each": [], "any": []}
        contenders = {kind: mb.compile(f, sizes=kind) for kind in took}
        # (Kernels are compiled where they are first met, by one as by the other.)
        with mb.settings.changed(num_threads=1, compiler="inline"):
            for shape in ((20, 21), (30, 190)):
                mb.compile(f)(*[mb.ones(shape) for _ in range(2)])
            for n, m in sizes:
                given = [rng.random((n, m)) for _ in range(2)]
                results = []
                for kind, c in contenders.items():
                    arrays = [mb.HostArray(x) for x in given]
                    start = time.process_time()
                    result = mb.materialize(c(*arrays))
                    took[kind].append(time.process_time() - start)
                    results.append([np.asarray(x) for x in (result, *arrays)])
                assert all(map(np.array_equal, *results)), f.__name__
        assert not contenders["any"].per_size, contenders["any"].per_size
        each, later = (float(np.median(took[kind][1:])) for kind in took)
        row = {
            "program": f.__name__,
            "sizes": len(sizes),
            "each_s": each,
            "any_s": later,
            "first_s": took["any"][0],
            "ratio": each / later,
            "ratio_of_all": sum(took["each"]) / sum(took["any"]),
        }
        cases.append(row)
        rows.append(
            [
                f.__name__,
                f"{each * 1e3:.2f}",
                f"{later * 1e3:.2f}",
                f"{took['any'][0] * 1e3:.0f}",
                f"{row['ratio']:.1f}",
                f"{row['ratio_of_all']:.1f}",
            ]
        )
    show(
        f"First calls with {len(sizes)} sizes: milliseconds of the processor",
        ["program", "each size", "any size", "the very first", "ratio", "ratio of all calls"],
        rows,
        ["A ratio above 1: programs for any size are quicker. All results are the same, to the last bit."],
    )
    if folder is not None:
        store("programs_sizes", {"calls": len(sizes), "cases": cases}, folder)
