"""What statements cost on NumPy's memory: copied, taken over, or shared with NumPy, beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, store, take_turns_small, warm_up
from benchmarks._table import show

SIZES = (100, 10_000, 1_000_000)
# What is made of NumPy's arrays, and whether somebody holds these then: so long does `mb.asarray(n)` share.
MAKERS: dict[str, tuple[Any, bool]] = {
    "numpy": (lambda n: n, True),
    "copied": (mb.HostArray, False),
    "taken over": (mb.asarray, False),
    "shared": (mb.asarray, True),
}


def update(x: Any, y: Any) -> None:
    x -= y


def update_part(x: Any, y: Any) -> None:
    x[1:-1] *= y[1:-1]


def assign(x: Any, y: Any) -> None:
    x[1:-1] = 0.5 * y[2:] + 0.5 * y[:-2]


CASES = {
    "x -= y": update,
    "x[1:-1] *= y[1:-1]": update_part,
    "x[1:-1] = 0.5*y[2:] + 0.5*y[:-2]": assign,
}


def run() -> None:
    rows, record = [], []
    for text, statement in CASES.items():
        for size in SIZES:
            statements: dict[str, tuple[str, dict[str, Any]]] = {}
            values, ones = np.random.default_rng(0).random(size), np.ones(size)
            expected = values.copy()
            statement(expected, ones)
            held = []
            for name, (make, holds) in MAKERS.items():
                a, b = values.copy(), ones.copy()
                x, y = make(a), make(b)
                if holds:
                    held += [a, b]
                del a, b
                statement(x, y)
                check(name, x, expected)
                for _ in range(600):  # past the uses after which statements are known
                    statement(x, y)
                warm_up(lambda f=statement, x=x, y=y: f(x, y))
                statements[name] = ("f(x, y)", {"f": statement, "x": x, "y": y})
            t = take_turns_small(statements, rounds=15)
            record.append(
                {"statement": text, "elements": size, **{name: timing.as_json() for name, timing in t.items()}}
            )
            rows.append([text, f"{size:,}", *[f"{t[name].median * 1e6:.1f}" for name in MAKERS]])
    show(
        "Statements on NumPy's memory: µs, medians",
        ["statement", "elements", *["NumPy" if name == "numpy" else name for name in MAKERS]],
        rows,
        [
            "copied: mb.HostArray(n). taken over: mb.asarray(n) whose n nobody holds. shared: the same, and n "
            "is held, so operations are evaluated at once."
        ],
    )
    store("sharing", {"cases": record})
