"""Positions in axis trees beside NumPy formulas written by hand, and arrays over trees beside plain ones.

`python -m benchmarks.axistrees [millions of points]`. CPU milliseconds, the least of several turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._table import show
from mirabelle import meshdata as md


def least(f: Callable[[], Any], turns: int = 7) -> float:
    """The CPU seconds of a call, at best."""
    found = []
    for _ in range(turns):
        begun = time.process_time()
        f()
        found.append(time.process_time() - begun)
    return min(found)


def main(millions: float = 1.0) -> None:
    n = int(millions * 1e6)
    rng = np.random.default_rng(0)
    edges, dof = rng.integers(0, n, (n, 3)).astype(np.int32)[:, :, None], np.arange(2, dtype=np.int32)
    order = rng.permutation(2 * n)
    counts = rng.integers(1, 4, n)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
    inner = md.Axis("dof", 2)
    sizes = {"edge": n, "vertex": n}
    plain = md.tree(md.Axis("mesh", sizes), {"edge": inner})
    numbered = md.tree(md.Axis("mesh", sizes, numbering=order), {"edge": inner})
    ragged = md.tree(md.Axis("edge", n), md.Axis("k", counts), inner)
    table = numbered.offset({"mesh": "edge"}, {"mesh": np.arange(n), "dof": 0})
    first = np.zeros((n, 1, 1), np.int32)
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "affine": (
            lambda: plain.offset({"mesh": "edge"}, {"mesh": edges, "dof": dof}),
            lambda: edges * 2 + dof,
        ),
        "numbered": (
            lambda: numbered.offset({"mesh": "edge"}, {"mesh": edges, "dof": dof}),
            lambda: table[edges] + dof,
        ),
        "ragged": (
            lambda: ragged.offset(None, {"edge": edges, "k": first, "dof": dof}),
            lambda: starts[edges] * 2 + 2 * first + dof,
        ),
    }
    rows = []
    for name, (ours, numpys) in cases.items():
        assert np.array_equal(ours(), numpys())
        a, b = least(ours), least(numpys)
        rows.append([f"{6 * n:,} positions, {name}", f"{a * 1e3:.1f}", f"{b * 1e3:.1f}", f"{a / b:.2f}"])
    x, flat = md.ones(plain), mb.ones(plain.size)
    for name, f in {
        "sin(x) * 2 + x": lambda u: mb.sin(u) * 2 + u,
        "sum(x * x)": lambda u: mb.sum(u * u),
    }.items():
        a, b = least(lambda f=f: mb.materialize(f(x))), least(lambda f=f: mb.materialize(f(flat)))
        rows.append([f"{plain.size:,} numbers, {name}", f"{a * 1e3:.1f}", f"{b * 1e3:.1f}", f"{a / b:.2f}"])
    show("Axis trees", ["", "tree", "by hand, or plain", "ratio"], rows, [])


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
