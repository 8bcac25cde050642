"""Loops as they are written first, names bound anew at each turn, beside NumPy: one thread, CPU seconds.

Each program runs as it stands on NumPy's arrays and on ours: none is written for either. With `--array CuArray`
on a card's, beside CuPy: seconds by the clock, until the card is done.

Rows are printed as they are measured. `--sizes 20000,2000000` takes those sizes, and `--seconds 10` about so
long for a row, with fewer turns (on a card 8 seconds, if nothing is said; compiling comes on top).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, geometric_mean, store, warm_up
from benchmarks._table import show
from benchmarks.gpu._card import Card

SIZES = (10, 500, 4_000, 20_000, 200_000, 2_000_000)
# At least so many times NumPy's speed, by size.
WANTED = dict(zip(SIZES, (0.7, 0.9, 1.0, 1.2, 1.5, 2.0), strict=True))
# Elements that a measurement goes through at most, and its turns at most.
WORK, TURNS = 4_000_000, 2_000
ROUNDS = 5
# Turns of the calls that compile, and at least; calls of either contender in a measurement, about.
LEAST, CALLS = 10, 8
# Seconds of a row on a card, where turns cost tens of microseconds whatever the size.
ON_CARD = 8.0


def two_names(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        c = a * b + 1.5
        a = c / (c + 1.0)
    return a


def relaxation(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        a = a + 0.01 * (b - a)
    return a


def relaxation_in_place(xp: Any, a: Any, b: Any, turns: int) -> Any:
    a = a + 0.0
    for _ in range(turns):
        a += 0.01 * (b - a)
    return a


def updates_in_place(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        a += b
        a *= 0.5
        a -= 0.25 * b
    return a


def oscillator(xp: Any, a: Any, v: Any, turns: int) -> Any:
    for _ in range(turns):
        f = -a
        v = v + 0.01 * f
        a = a + 0.01 * v
    return a


def runge_kutta(xp: Any, u: Any, b: Any, turns: int) -> Any:
    def f(u: Any) -> Any:
        return -u * b

    h = 0.01
    for _ in range(turns):
        k1 = f(u)
        k2 = f(u + 0.5 * h * k1)
        k3 = f(u + 0.5 * h * k2)
        k4 = f(u + h * k3)
        u = u + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return u


def until_converged(xp: Any, a: Any, b: Any, turns: int) -> Any:
    s = 0.0
    for _ in range(turns):
        new = 0.5 * (a + b / (a + 1.0))
        s += float(abs(new - a).max())
        a = new
    return a + s


def one_element(xp: Any, a: Any, b: Any, turns: int) -> Any:
    s = 0.0
    for _ in range(turns):
        c = a * b + 1.5
        s += float(c[3])
    return c + s


def adam(xp: Any, w: Any, g: Any, turns: int) -> Any:
    m = xp.zeros_like(w)
    v = xp.zeros_like(w)
    for t in range(1, turns + 1):
        d = w - g
        m = 0.9 * m + 0.1 * d
        v = 0.999 * v + 0.001 * d**2
        mh = m / (1 - 0.9**t)
        vh = v / (1 - 0.999**t)
        w = w - 0.01 * mh / (xp.sqrt(vh) + 1e-8)
    return w


def diffusion(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        a = a + 0.1 * (xp.roll(a, 1) - 2.0 * a + xp.roll(a, -1))
    return a


def list_of_results(xp: Any, a: Any, b: Any, turns: int) -> Any:
    found = []
    for k in range(turns):
        found.append(a * (k % 7) + b)
        if len(found) == 4:
            found = [found[-1]]
    return found[-1]


def moving_average(xp: Any, a: Any, b: Any, turns: int) -> Any:
    mean = b
    for _ in range(turns):
        mean = 0.9 * mean + 0.1 * a
    return mean


def gram_schmidt(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        q = a / xp.sqrt(xp.sum(a * a))
        a = b - xp.sum(q * b) * q
    return a


def predator_prey(xp: Any, x: Any, y: Any, turns: int) -> Any:
    for _ in range(turns):
        dx = x * (1.1 - 0.4 * y)
        dy = y * (0.1 * x - 0.4)
        x = x + 0.001 * dx
        y = y + 0.001 * dy
    return x + y


def two_means(xp: Any, a: Any, b: Any, turns: int) -> Any:
    low, high = 0.25, 0.75
    for _ in range(turns):
        near = abs(a - low) < abs(a - high)
        low = float(xp.sum(xp.where(near, a, 0.0)) / xp.sum(near))
        high = float(xp.sum(xp.where(near, 0.0, a)) / xp.sum(~near))
    return a * low + high


def power_iteration(xp: Any, a: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        new = b * a + a.mean()
        a = new / xp.sqrt((new * new).sum())
    return a


def bisection(xp: Any, a: Any, b: Any, turns: int) -> Any:
    low, high = a * 0.0, a + 2.0
    for _ in range(turns):
        middle = 0.5 * (low + high)
        under = middle * middle < b
        low = xp.where(under, middle, low)
        high = xp.where(under, high, middle)
    return low


def pendulum(xp: Any, theta: Any, omega: Any, turns: int) -> Any:
    for _ in range(turns):
        omega = omega - 0.01 * xp.sin(theta)
        theta = theta + 0.01 * omega
        theta = xp.where(theta > math.pi, theta - 2 * math.pi, theta)
    return theta


def places(a: Any, turns: int) -> list[int]:
    """Where parts begin that shrink from turn to turn, to one of two elements at least."""
    return [k * (len(a) - 2) // max(turns - 1, 1) for k in range(turns)]


def shrinking(xp: Any, a: Any, b: Any, turns: int) -> Any:
    a = a + 0.0
    for k in places(a, turns):
        a[k + 1 :] -= b[k + 1 :] * 0.5
    return a


def shrinking_choices(xp: Any, a: Any, b: Any, turns: int) -> Any:
    c = a * 0.0
    for k in places(a, turns):
        c[k:] = xp.where(a[k:] > 0.5, b[k:], a[k:] + 1.0)
    return c


def shrinking_sums(xp: Any, a: Any, b: Any, turns: int) -> Any:
    s = 0.0
    for k in places(a, turns):
        s += float(xp.sum(a[k:] * b[k:]))
    return a + s


def elimination(xp: Any, a: Any, b: Any, turns: int) -> Any:
    n = math.isqrt(len(a))
    m = xp.reshape(a[: n * n], (n, n)) + n * xp.diag(xp.ones_like(a[:n]))
    for k in places(m, turns):
        m[k + 1 :, k + 1 :] -= m[k + 1 :, k, None] * (m[k, k + 1 :] * 0.01)
    return m


def put_inside(xp: Any, a: Any, b: Any, turns: int) -> Any:
    n = math.isqrt(len(a))
    m, z = xp.reshape(a[: n * n], (n, n)), xp.zeros_like(a, shape=(n + 2, n + 2))
    for _ in range(turns):
        v = m.T * 0.5
        z[1:-1, 1:-1] = v
        m = v + z[:-2, 1:-1]
    return z


LOOPS: dict[str, Callable[..., Any]] = {
    "c = a*b + 1.5; a = c/(c + 1.0)": two_names,
    "a = a + 0.01*(b - a)": relaxation,
    "a += 0.01*(b - a)": relaxation_in_place,
    "a += b; a *= 0.5; a -= 0.25*b": updates_in_place,
    "f = -a; v = v + 0.01*f; a = a + 0.01*v": oscillator,
    "Runge-Kutta 4 of -u*b": runge_kutta,
    "new = 0.5*(a + b/(a + 1.0)); max; a = new": until_converged,
    "c = a*b + 1.5; s += float(c[3])": one_element,
    "Adam's update": adam,
    "diffusion with roll": diffusion,
    "a list of results": list_of_results,
    "exponential moving average": moving_average,
    "Gram-Schmidt": gram_schmidt,
    "a predator-prey step": predator_prey,
    "two means": two_means,
    "power iteration": power_iteration,
    "bisection on arrays": bisection,
    "a pendulum with where": pendulum,
    "a[k+1:] -= b[k+1:]*0.5": shrinking,
    "c[k:] = where(a[k:] > 0.5, b[k:], a[k:] + 1)": shrinking_choices,
    "s += float(sum(a[k:]*b[k:]))": shrinking_sums,
    "m[k+1:,k+1:] -= m[k+1:,k,None]*m[k,k+1:]": elimination,
    "v = m.T*0.5; z[1:-1,1:-1] = v; m = v + z[:-2,1:-1]": put_inside,
}


def seconds(f: Callable[[], object]) -> float:
    """The CPU time of a call: whatever other processes do."""
    begun = time.process_time()
    f()
    return time.process_time() - begun


def on_card(f: Callable[[], object]) -> float:
    """The time of a call by the clock, until the card has done its work."""
    import cupy

    cupy.cuda.Device().synchronize()
    begun = time.perf_counter()
    f()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - begun


def wanted(size: int) -> float:
    """How much faster than NumPy a turn is to be: what is wanted of the nearest of our sizes below."""
    return WANTED[max([n for n in SIZES if n <= size], default=SIZES[0])]


def affordable(turns: int, budget: float, call: Callable[[int], object]) -> int:
    """So many turns that all calls of a measurement take about `budget` seconds; without one, all of them."""
    if not budget:
        return turns
    call(LEAST)  # (which compiles)
    begun = time.perf_counter()
    call(LEAST)
    each = (time.perf_counter() - begun) / LEAST
    return max(LEAST, min(turns, int(budget / (CALLS * each))))


def measured(
    loop: Callable[..., Any], size: int, turns: int, family: Any, budget: float = 0.0
) -> tuple[float, float]:
    """The seconds of a turn: NumPy's (CuPy's) and ours, the best of some rounds taken in turns."""
    rng = np.random.default_rng(0)
    a, b = rng.random(size), rng.random(size)
    x, y = family(a), family(b)
    xp: Any = np
    taken = seconds
    if family is not mb.HostArray:
        import cupy as xp

        a, b = xp.asarray(a), xp.asarray(b)
        taken = on_card

    def both(n: int) -> None:
        taken(lambda: (loop(xp, a, b, n), mb.materialize(loop(mb, x, y, n))))

    def theirs() -> Any:
        return loop(xp, a, b, turns)

    def ours() -> Any:
        return mb.materialize(loop(mb, x, y, turns))

    turns = affordable(turns, budget, both)
    expected = theirs()
    check(loop.__name__, mb.to_numpy(ours()), expected if xp is np else xp.asnumpy(expected), rtol=1e-7)
    warm_up(ours)
    rounds = [(taken(theirs), taken(ours)) for _ in range(ROUNDS)]
    return min(r[0] for r in rounds) / turns, min(r[1] for r in rounds) / turns


def run(only: str = "", array: str = "", out: str = "", sizes: str = "", seconds: float = 0.0) -> None:
    family = getattr(mb, array or "HostArray")
    chosen = tuple(map(int, sizes.split(","))) if sizes else SIZES
    if family is not mb.HostArray:
        seconds = seconds or ON_CARD
        WANTED.update(dict.fromkeys(SIZES, 1.5) | {SIZES[-1]: 2.0})
    rows, record, ratios = [], [], {n: [] for n in chosen}  # type: ignore[var-annotated]
    # (One row reads single elements, which cards refuse unless it is said that this is meant.)
    with mb.settings.changed(num_threads=1), mb.allow_scalar():
        for text, loop in LOOPS.items():
            if only not in text:
                continue
            cells = []
            for size in chosen:
                turns = max(LEAST, min(TURNS, WORK // size))
                theirs, ours = measured(loop, size, turns, family, seconds / len(chosen))
                ratios[size].append(theirs / ours)
                cells.append(f"{theirs / ours:.2f} ({ours * 1e6:,.1f})")
                record.append({"loop": text, "elements": size, "numpy_s": theirs, "mirabelle_s": ours})
            rows.append([text, *cells])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    rows.append(["geometric mean", *[f"{geometric_mean(ratios[n]):.2f}" for n in chosen]])
    below = [sum(r < wanted(n) for r in ratios[n]) for n in chosen]
    rows.append(["rows below what is wanted", *map(str, below)])
    show(
        "Loops as they are written first: NumPy's CPU time over ours (our µs a turn), one thread"
        if family is mb.HostArray
        else f"Loops as they are written first: CuPy's time over that of {array} (our µs a turn)",
        ["loop", *[f"{n:,} (≥ {wanted(n)})" for n in chosen]],
        rows,
    )
    if not only and not sizes:
        card = {} if family is mb.HostArray else {"card": Card().facts()}
        store(out or ("loops" if family is mb.HostArray else "gpu_loops"), {**card, "cases": record})
