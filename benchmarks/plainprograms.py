"""Programs as scientists write them, beside NumPy: with our arrays as they are, and under `mb.compile`.

Six here, beside Python with NumPy and Numba: a random walk, a tridiagonal system, shortest paths, the warping
of time series, particles in a field, a parser of bytes; loops over elements, branches on values, helpers.
Forty of `_arrayprograms.py` with their import swapped, beside NumPy: a page of statements on arrays each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _arrayprograms
from benchmarks._measure import geometric_mean, store


def log_density(x, y):
    return -0.5 * (x * x + y * y + x * x * y * y)


def metropolis(proposals, chances, start):
    """A walk that takes a proposed step with a chance that depends on the densities there and here."""
    walk = np.empty((len(proposals), 2))
    x, y = start
    here = log_density(x, y)
    accepted = 0
    for k in range(len(proposals)):
        a, b = x + proposals[k, 0], y + proposals[k, 1]
        there = log_density(a, b)
        if chances[k] < np.exp(there - here):
            x, y, here = a, b, there
            accepted += 1
        walk[k, 0] = x
        walk[k, 1] = y
    return walk, accepted / len(proposals)


def tridiagonal(below, main, above, right):
    """Thomas' algorithm."""
    n = len(main)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = above[0] / main[0], right[0] / main[0]
    for i in range(1, n):
        pivot = main[i] - below[i] * c[i - 1]
        c[i] = above[i] / pivot
        d[i] = (right[i] - below[i] * d[i - 1]) / pivot
    x = np.empty(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def shortest_paths(distance):
    """Floyd and Warshall's algorithm."""
    n = len(distance)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = distance[i, k] + distance[k, j]
                if through < distance[i, j]:
                    distance[i, j] = through
    return distance


def warped(a, b):
    """The distance of two series, of which one may run faster here and slower there."""
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d = abs(a[i - 1] - b[j - 1])
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[len(a), len(b)]


def push(position, velocity, steps, dt):
    """Particles in a magnetic field and a trap, by Boris' scheme, until all stand or the steps are done."""
    for _ in range(steps):
        field = 1.0 + 0.1 * np.sin(position[:, 0])
        velocity -= 0.5 * dt * position
        turn = 0.5 * dt * field
        s = 2 * turn / (1 + turn * turn)
        vx = velocity[:, 0] + velocity[:, 1] * turn
        vy = velocity[:, 1] - velocity[:, 0] * turn
        velocity[:, 0] += vy * s
        velocity[:, 1] -= vx * s
        velocity -= 0.5 * dt * position
        position += dt * velocity
        if np.abs(velocity).max() < 1e-6:
            break
    return 0.5 * np.sum(velocity**2)


def numbers_of(text):
    """The numbers in lines of bytes such as b'12 -7 305', and how many lines there are."""
    found = np.zeros(len(text), np.int64)
    count, lines = 0, 0
    value, sign, inside = 0, 1, False
    for byte in text:
        if 48 <= byte <= 57:
            value = min(value * 10 + (int(byte) - 48), 10**15)
            inside = True
        else:
            if inside:
                found[count] = sign * value
                count += 1
            value, inside = 0, False
            sign = -1 if byte == 45 else 1
            if byte == 10:
                lines += 1
    return found[:count], lines


def arguments(name: str, scale: float = 1.0) -> tuple[Any, ...]:
    """What a program is run with."""
    rng = np.random.default_rng(7)
    n = int(100_000 * scale)
    if name == "metropolis":
        return rng.standard_normal((n, 2)), rng.random(n), (0.5, 0.0)
    if name == "tridiagonal":
        return rng.random(n), 4 + rng.random(n), rng.random(n), rng.random(n)
    if name == "shortest_paths":
        return (rng.random((int(100 * scale**0.33), int(100 * scale**0.33))),)
    if name == "warped":
        m = int(400 * scale**0.5)
        return np.cumsum(rng.standard_normal(m)), np.cumsum(rng.standard_normal(m + 10))
    if name == "push":
        return rng.standard_normal((n // 10, 2)), rng.standard_normal((n // 10, 2)), 100, 0.05
    lines = [" ".join(map(str, rng.integers(-999, 9999, 5))) for _ in range(n // 20)]
    return (np.frombuffer("\n".join(lines).encode() + b"\n", np.uint8).copy(),)


PROGRAMS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (metropolis, tridiagonal, shortest_paths, warped, push, numbers_of)
}


def run(only: str = "", rounds: int = 0) -> None:
    """Time them, and keep the results of a whole run."""
    print(f"{'program':16} {'NumPy ms':>9} {'ours ms':>9} {'first s':>8} {'over NumPy':>11} {'over Numba':>11}")
    rows = {name: _row_beside_numba(name, rounds or 5) for name in PROGRAMS if only in name}
    print(f"\n{'array program':22} {'NumPy ms':>9} {'first s':>8} {'eager':>8} {'compiled':>9}   over NumPy")
    arrays = {name: _row_of_arrays(name, rounds or 7) for name in _arrayprograms.PROGRAMS if only in name}
    means = {
        way: geometric_mean([row["numpy_s"] / row[f"{way}_s"] for row in arrays.values()])
        for way in ("eager", "compiled")
        if arrays
    }
    for way, mean in means.items():
        slow = [n for n, row in arrays.items() if row["numpy_s"] / row[f"{way}_s"] < SLOW]
        print(f"{way}: geometric mean {mean:.2f}; below {SLOW}: {', '.join(slow) or 'none'}")
    if not only:
        store("plainprograms", {"programs": rows, "arrays": arrays, "means": means})


# Programs of such a speed-up are told of.
SLOW = 0.7


def _row_of_arrays(name: str, rounds: int) -> dict[str, Any]:
    """A program of `_arrayprograms` as it is, with NumPy's arrays and with ours, and under `mb.compile`."""
    import mirabelle as mb
    from mirabelle.backends.host import kernels

    f, given = _arrayprograms.PROGRAMS[name][0], _arrayprograms.arguments(name)
    ways: dict[str, tuple[Any, Any, Any]] = {
        "numpy": (f, np, np.array),
        "eager": (f, mb, mb.HostArray),
        "compiled": (mb.compile(f), mb, mb.HostArray),
    }
    wanted = np.asarray(f(np, *[x.copy() for x in given]))
    times: dict[str, list[float]] = {way: [] for way in ways}
    row: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (what asks for elements of arrays: it is the program as it is)
        for turn in range(rounds + CALLS_BEFORE):
            for way, (g, xp, make) in ways.items():
                mine = [make(x) for x in given]
                began = time.perf_counter()
                found = g(xp, *mine)
                mb.materialize(found) if isinstance(found, mb.AbstractArray) else None
                took = time.perf_counter() - began
                if turn == 0:
                    row[f"{way}_first_s"] = took
                    close = np.allclose(np.asarray(found), wanted, rtol=1e-7, atol=1e-9)
                    assert close, f"{name}, {way}: values differ from NumPy's"
                if turn >= CALLS_BEFORE:
                    times[way].append(took)
            if turn < CALLS_BEFORE:
                kernels.settle()
    row |= {f"{way}_s": min(t) for way, t in times.items()}
    ratios = [row["numpy_s"] / row[f"{way}_s"] for way in ("eager", "compiled")]
    first, ms = row["compiled_first_s"], row["numpy_s"] * 1e3
    print(f"{name:22} {ms:9.2f} {first:8.2f} {ratios[0]:8.2f} {ratios[1]:9.2f}", flush=True)
    return row


# By then all is compiled, and statements that come back are known.
CALLS_BEFORE = 5


def _row_beside_numba(name: str, rounds: int) -> dict[str, float]:
    """A program of this module under `mb.compile`, beside Python with NumPy, and Numba."""
    import mirabelle as mb
    from mirabelle.backends.host import kernels

    f, given = PROGRAMS[name], arguments(name)
    ways: dict[str, tuple[Any, Any]] = {"numpy": (f, np.array), "ours": (mb.compile(f), mb.HostArray)}
    numba_f = _numba(f, given)
    if numba_f is not None:
        ways["numba"] = numba_f, np.array
    times: dict[str, list[float]] = {way: [] for way in ways}
    first = 0.0
    for turn in range(rounds + 2):
        for way, (g, make) in ways.items():
            if way == "numpy" and turn > 3:
                continue
            mine = [make(x) if isinstance(x, np.ndarray) else x for x in given]
            began = time.perf_counter()
            found = g(*mine)
            for x in (found if isinstance(found, tuple) else (found,), *mine):
                mb.materialize(x) if isinstance(x, mb.AbstractArray) else None
            took = time.perf_counter() - began
            if way == "ours" and turn < 2:
                # (What it waits for is compiled beside, and loaded by the second call.)
                first = first or took
                kernels.settle()
                continue
            times[way].append(took)
    best = {way: min(t) for way, t in times.items()}
    numba_text = f"{best['numba'] / best['ours']:11.2f}" if "numba" in best else f"{'refused':>11}"
    ours, numpy_s = best["ours"], best["numpy"]
    print(f"{name:16} {numpy_s * 1e3:9.2f} {ours * 1e3:9.3f} {first:8.2f} {numpy_s / ours:11.1f} {numba_text}")
    return {"first_s": first, **{f"{way}_s": t for way, t in best.items()}}


def _numba(f: Any, given: tuple[Any, ...]) -> Any:
    """The program under numba.njit, with what it calls; None where Numba refuses it."""
    import types

    import numba

    scope = dict(f.__globals__)
    scope["log_density"] = numba.njit(log_density)
    made = numba.njit(types.FunctionType(f.__code__, scope, f.__name__))
    try:
        made(*[np.array(x) if isinstance(x, np.ndarray) else x for x in given])
    except numba.NumbaError:
        return None
    return made
