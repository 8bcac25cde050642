"""Programs that are slow for a known reason, each beside itself with the doctor's cure followed.

`python -m benchmarks doctor` measures what a cure gains beside what `mb.doctor` says; the reasons, lines and
cures that it names are looked at in tests/test_doctor_cures.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mirabelle as mb


@dataclass
class Slow:
    """A program before and after; what the doctor says of it, of which line, and words of the cure."""

    before: Callable[[], Any]
    after: Callable[[], Any]
    kind: str
    text: str
    cure: str


rng = mb.random.default_rng(0)
N = 4000
BINS, VALUES = rng.integers(0, 50, N), rng.normal(size=N)
GRID, FEW = rng.normal(size=(60, 60)), mb.ones(8)
MATRIX, RIGHT = rng.normal(size=(300, 300)) + 30 * mb.eye(300), mb.ones(300)
MANY = mb.ones(40_000)
TOEPLITZ, DIAGONAL = mb.Toeplitz(200.0 - mb.arange(200)), mb.Diagonal(mb.ones(700))
for made in (BINS, VALUES, GRID, MATRIX):
    mb.materialize(made)


def counted() -> Any:
    hist = mb.zeros(50)
    for i in range(N): hist[BINS[i]] += 1  # fmt: skip # noqa: E701
    return hist


def counted_at_once() -> Any:
    hist = mb.zeros(50)
    mb.add_at(hist, BINS, 1)
    return hist


def picked() -> Any:
    y = mb.zeros(N)
    for i in range(N):
        y[i] = VALUES[BINS[i]]
    return y


def picked_at_once() -> Any:
    return mb.materialize(VALUES[BINS])


def elements() -> Any:
    total = 0.0
    for i in range(60):
        for j in range(60):
            total += float(GRID[i, j])
    return total


def elements_at_once() -> Any:
    return float(mb.sum(GRID))


def rows() -> Any:
    s = mb.zeros(60)
    for i in range(60):
        for _ in range(5):
            s[i] = mb.sum(GRID[i] * GRID[i])
    return s


def rows_at_once() -> Any:
    for _ in range(5):
        s = mb.materialize(mb.sum(GRID * GRID, axis=1))
    return s


def grows() -> Any:
    x = mb.zeros(0)
    for i in range(3000):
        x = mb.append(x, 0.5 * i)
    return mb.materialize(x)


def grows_as_a_list() -> Any:
    numbers = []
    for i in range(3000):
        numbers.append(0.5 * i)
    return mb.asarray(numbers)


def history() -> Any:
    x = mb.zeros(0)
    for i in range(500):
        x = mb.append(x, mb.sum(mb.sin(MANY[:10_000]) * i))
    return mb.materialize(x)


def history_as_a_list() -> Any:
    numbers = []
    for i in range(500):
        numbers.append(float(mb.sum(mb.sin(MANY[:10_000]) * i)))
    return mb.asarray(numbers)


def dense_routine() -> Any:
    for _ in range(6):
        r = mb.materialize(mb.linalg.qr(TOEPLITZ).R)
    return r


def dense_routine_on_dense() -> Any:
    dense = mb.dense(TOEPLITZ)
    for _ in range(6):
        r = mb.materialize(mb.linalg.qr(dense).R)
    return r


def dense_again() -> Any:
    for _ in range(30):
        y = mb.materialize(mb.cos(DIAGONAL))
    return y


def dense_once() -> Any:
    dense = mb.dense(DIAGONAL)
    for _ in range(30):
        y = mb.materialize(mb.cos(dense))
    return y


def smooth(u: Any, dt: Any) -> Any:
    u[1:-1] = u[1:-1] + dt * (u[2:] + u[:-2])
    return u


def sizes() -> Any:
    f = mb.compile(smooth)
    for n in range(100, 130):
        y = f(mb.ones(n), 1.0)
    return y


def any_size() -> Any:
    f = mb.compile(smooth, sizes="any")
    for n in range(100, 130):
        y = f(mb.ones(n), 1.0)
    return y


def numbers() -> Any:
    f = mb.compile(smooth)
    for n in range(30):
        y = f(mb.ones(100), 0.5 * n + 0.25)
    return y


def numbers_as_arrays() -> Any:
    f = mb.compile(smooth)
    for n in range(30):
        y = f(mb.ones(100), mb.asarray(0.5 * n + 0.25))
    return y


def asked() -> Any:
    x, total = MANY, 0.0
    for _ in range(300):
        x = x * 0.5 + 1.0
        total = float(mb.sum(x))
    return total


def asked_less_often() -> Any:
    x, total = MANY, 0.0
    for i in range(300):
        x = x * 0.5 + 1.0
        if i % 10 == 9:
            total = float(mb.sum(x))
    return total


def small() -> Any:
    made = []
    for p in range(50):
        u = FEW * p
        for _ in range(40):
            u = u * 0.5 + FEW - 0.25 * u
        made.append(u)
    return mb.stack(made)


def small_together() -> Any:
    u = FEW * mb.arange(50.0)[:, None]
    for _ in range(40):
        u = u * 0.5 + FEW - 0.25 * u
    return mb.materialize(u)


def inverse() -> Any:
    return mb.materialize(mb.linalg.inv(MATRIX) @ RIGHT)


def solved() -> Any:
    return mb.materialize(mb.linalg.solve(MATRIX, RIGHT))


def handed_over() -> Any:
    for _ in range(40):
        y = MANY.tolist()[0]
    return y


def one_element() -> Any:
    for _ in range(40):
        y = float(MANY[0])
    return y


ELEMENTS = "loop over elements"
PROGRAMS = {
    "counts": Slow(counted, counted_at_once, ELEMENTS, "for i in range(N): hist[BINS[i]] += 1",
                   "`mb.add_at(hist, BINS, 1)`, or count with `mb.bincount(BINS)`"),
    "picks": Slow(picked, picked_at_once, ELEMENTS, "y[i] = VALUES[BINS[i]]", "`VALUES[BINS]`"),
    "elements": Slow(elements, elements_at_once, ELEMENTS, "total += float(GRID[i, j])", "for the whole array"),
    "rows": Slow(rows, rows_at_once, ELEMENTS, "s[i] = mb.sum(GRID[i] * GRID[i])", "axis=1"),
    "grows": Slow(grows, grows_as_a_list, "an array that grows", "x = mb.append(x, 0.5 * i)",
                  "mb.asarray(numbers)"),
    "history": Slow(history, history_as_a_list, "an array that grows",
                    "x = mb.append(x, mb.sum(mb.sin(MANY[:10_000]) * i))", "mb.asarray(numbers)"),
    "dense routine": Slow(dense_routine, dense_routine_on_dense, "fell back to dense",
                          "r = mb.materialize(mb.linalg.qr(TOEPLITZ).R)", "another routine"),
    "dense again": Slow(dense_again, dense_once, "fell back to dense", "y = mb.materialize(mb.cos(DIAGONAL))",
                        "dense once, before the loop"),
    "sizes": Slow(sizes, any_size, "compiled again", "y = f(mb.ones(n), 1.0)", 'sizes="any"'),
    "numbers": Slow(numbers, numbers_as_arrays, "compiled again", "y = f(mb.ones(100), 0.5 * n + 0.25)",
                    "mb.asarray(dt)"),
    "asked": Slow(asked, asked_less_often, "values asked for", "total = float(mb.sum(x))", "ask less often"),
    "small": Slow(small, small_together, "small statements", "u = u * 0.5 + FEW - 0.25 * u", "an axis more"),
    "inverse": Slow(inverse, solved, "an inverse", "return mb.materialize(mb.linalg.inv(MATRIX) @ RIGHT)",
                    "mb.linalg.solve(A, b)"),
    "handed over": Slow(handed_over, one_element, "handed over", "y = MANY.tolist()[0]", "`float(x[0])`"),
}  # fmt: skip
