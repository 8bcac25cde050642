"""The first program of the tour: reaction and diffusion on a grid, with several array types."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import mirabelle as mb
from mirabelle.tour.examples import KILL, framed, laplacian, start, step, transposed
from mirabelle.tour.measuring import agreement, evaluated, in_words, median_time, warmed
from mirabelle.tour.screen import Plain


def program(out: Plain) -> None:
    """The program itself."""
    out.say(
        "Gray and Scott's reaction and diffusion of two substances on a grid, in plain array code.\n"
        "Nothing in it names an array type."
    )
    out.code(inspect.getsource(step))


def one_kernel(out: Plain) -> None:
    """What a line of it becomes."""
    u, v, _ = (mb.HostArray(x) for x in start(256))
    U, V = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = U * V * V
    shown = mb.explain(0.08 * laplacian(v) + reaction - (0.03 + KILL) * V)
    out.say("mb.explain(0.08 * laplacian(v) + reaction - (feed + kill) * V), before anything ran:")
    facts = ["launches", "bytes read", "bytes written", "one operation at a time", "runs as"]
    out.code("\n".join(f"{name:<24} {shown.facts[name]}" for name in facts if name in shown.facts))
    lines = shown.source.splitlines()
    body = next((i for i, line in enumerate(lines) if "for j in" in line), 0)
    out.say("The inner loop of its kernel:")
    out.code(inspect.cleandoc("\n" + "\n".join(lines[body:])))


def swap(out: Plain, n: int, small: int, seconds: float) -> list[tuple[str, float, str]]:
    """The program with each constructor: agreement with NumPy, launches, time."""
    import numpy as np

    constructors: list[tuple[str, int, Callable[[Any], Any]]] = [
        ("np.array", n, np.array),
        ("mb.HostArray", n, mb.HostArray),
        ("transposed", n, transposed),
        ("framed", n, framed),
        ("np.array", small, np.array),
        ("mb.RefArray", small, mb.RefArray),
    ]
    if mb.CuArray in device_types():
        simulated = mb.settings.cuda == "simulated"
        constructors.insert(6 if simulated else 4, ("mb.CuArray", small if simulated else n, mb.CuArray))
    rows: dict[int, list[list[str]]] = {n: [], small: []}
    bars: list[tuple[str, float, str]] = []
    expected: dict[int, Any] = {}
    for name, size, array in constructors:
        state = [*(array(x) for x in start(size)), KILL]
        for _ in range(4):
            step(*state)
        u = state[0]
        kind, same, launches = "numpy.ndarray", "", ""
        if isinstance(u, mb.AbstractArray):
            kind = type(u).__name__
            same = agreement(u, expected[size])
            with mb.count() as c:
                step(*state)
                evaluated(*state)
            launches = str(c.launches)
        else:
            expected[size] = u.copy()
        row = [name, kind, same, launches]
        if size == n:
            took = _time_of_a_step(state, seconds)
            bars.append((name, took, same))
            row += [in_words(took), f"{bars[0][1] / took:.1f}x"]
        rows[size].append(row)
    head = ["made by", "type of u", "beside NumPy", "launches"]
    out.say(
        f"A {n}x{n} grid; u beside NumPy's after 4 steps, kernels and time of a further step\n"
        f"(NumPy computes on one thread, the kernels on {mb.settings.num_threads}):"
    )
    out.table([*head, "a step", "speed"], rows[n])
    out.say(
        f"A device, on a grid of {small}x{small}, small because Python executes each thread of its kernels\n"
        "and checks each load and store:"
    )
    out.table(head, rows[small])
    return bars


def device_types() -> list[Any]:
    """The types of arrays on devices: those of a card only where there is one."""
    return [mb.RefArray, mb.CuArray] if mb.CuArray.cards() else [mb.RefArray]


def _time_of_a_step(state: list[Any], seconds: float) -> float:
    def one() -> None:
        step(*state)
        evaluated(*state)
        mb.synchronize()

    warmed(one)
    return median_time(one, seconds)


def evolve(out: Plain, n: int, steps: int) -> tuple[list[tuple[int, Any]], float]:
    """The pattern: snapshots of v on the way, and the time all steps took."""
    state: list[Any] = [*(mb.HostArray(x) for x in start(n)), KILL]
    wanted = {steps // 40, steps // 10, steps // 3}
    shots = []
    began = time.perf_counter()
    for k in out.progress(range(steps), f"a {n}x{n} HostArray"):
        step(*state)
        if k + 1 in wanted:
            shots.append((k + 1, mb.to_numpy(state[1])))
    took = time.perf_counter() - began
    shots.append((steps, mb.to_numpy(state[1])))
    return shots, took
