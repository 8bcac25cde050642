"""The programs of docs/newcomers beside NumPy and JAX: what runs are the functions that the pages show.

`python -m mirabelle run -n 2 -m benchmarks.newcomers` is what runs the waves on two processes.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, store, take_turns, warm_up
from benchmarks._table import show

PAGES = Path(__file__).parent.parent / "docs" / "newcomers"
BODIES, PIXELS, PATHS, POINTS, CELLS = 1000, 1024, 200_000, 200, 1000

Contenders = dict[str, Callable[[], Any]]


def names_of(page: str) -> dict[str, Any]:
    """What the examples of a page define, after they have been run."""
    found: dict[str, Any] = {"__name__": page}
    shown, sys.displayhook = sys.displayhook, lambda value: None
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115 - closed below
    try:
        for example in doctest.DocTestParser().get_examples((PAGES / f"{page}.md").read_text()):
            exec(compile(example.source, f"{page}.md", "single"), found)
    finally:
        sys.stdout.close()
        sys.stdout, sys.displayhook = out, shown
    return found


def stepping(step: Callable[..., Any], state: tuple[Any, ...]) -> Callable[[], Any]:
    """A step of a program that writes to its state; returns the first array of it, evaluated."""

    def run() -> Any:
        step(*state)
        return state[0] if isinstance(state[0], np.ndarray) else mb.materialize(state[0])

    return run


def nbody(page: dict[str, Any]) -> Contenders:
    step, bodies = page["step"], page["bodies"]
    return {
        "NumPy": stepping(step, bodies(BODIES)),
        "as it is": stepping(step, bodies(BODIES, mb.HostArray)),
        "compiled": stepping(mb.compile(step), bodies(BODIES, mb.HostArray)),
        "compiled, of pairs": stepping(mb.compile(page["step_of_pairs"]), bodies(BODIES, mb.HostArray)),
    }


def image_filter(page: dict[str, Any]) -> Contenders:
    image = page["picture"](PIXELS)
    ours, compiled = mb.HostArray(image), mb.compile(page["sharpen"])
    return {
        "NumPy": lambda: page["sharpen_numpy"](image),
        "as it is": lambda: mb.materialize(page["sharpen"](ours)),
        "compiled": lambda: mb.materialize(compiled(ours)),
    }


def pricing(page: dict[str, Any]) -> Contenders:
    price, compiled = page["price"], mb.compile(page["price"])
    return {
        "NumPy": lambda: float(price(page["draws_numpy"](PATHS))),
        "as it is": lambda: float(price(page["draws"](PATHS))),
        "compiled": lambda: float(compiled(page["draws"](PATHS))),
    }


def small_net(page: dict[str, Any]) -> Contenders:
    return {
        "NumPy": stepping(page["train_numpy"], page["data"](POINTS)),
        "as it is": stepping(page["train"], page["data"](POINTS, mb.HostArray)),
        "compiled": stepping(mb.compile(page["train"]), page["data"](POINTS, mb.HostArray)),
    }


def shallow_water(page: dict[str, Any]) -> Contenders:
    step, pond = page["step"], page["pond"]
    return {
        "NumPy": stepping(step, pond(CELLS)),
        "as it is": stepping(step, pond(CELLS, mb.HostArray)),
        "compiled": stepping(mb.compile(step), pond(CELLS, mb.HostArray)),
    }


# Each page's contenders, what a turn of it is, how far results may be from NumPy's (random numbers are others).
PROGRAMS: dict[str, tuple[Callable[[dict[str, Any]], Contenders], str, float]] = {
    "nbody": (nbody, f"a step of {BODIES} bodies", 1e-9),
    "image_filter": (image_filter, f"{PIXELS} × {PIXELS} numbers", 1e-9),
    "pricing": (pricing, f"{PATHS:,} paths of 12 months", 1e-2),
    "small_net": (small_net, f"a step with {POINTS} points", 1e-9),
    "shallow_water": (shallow_water, f"a step of {CELLS} × {CELLS} cells", 1e-9),
}


def with_jax(name: str, page: dict[str, Any], contenders: Contenders) -> Contenders:
    """JAX's program beside them, where JAX is installed."""
    try:
        from benchmarks import _newcomers_jax
    except ImportError:
        return contenders
    return contenders | {"JAX": getattr(_newcomers_jax, name)(page)}


def on_processes() -> float | None:
    """Seconds a step of the waves on two processes of one thread each; None where they cannot be started.

    (The best of three starts: which cores two processes get is luck on a machine that others use, too.)
    """
    command = [sys.executable, "-m", "mirabelle", "run", "-n", "2", "-m", "benchmarks.newcomers"]
    told = os.environ | {"MIRABELLE_NUM_THREADS": "1"}
    found = []
    for _ in range(3):
        done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 0 and done.stdout:
            found.append(float(done.stdout.split()[-1]))
    return min(found, default=None)


def on_this_process() -> None:
    """The best of several rounds of steps, told by the first process."""
    page = names_of("shallow_water")
    step, state = mb.compile(page["step"]), page["pond"](CELLS, mb.DArray[mb.HostArray])
    best = float("inf")
    for _ in range(100):
        began = time.perf_counter()
        for _ in range(5):
            step(*state)
        float(mb.max(state[0]))  # (all have done their part when it is known)
        best = min(best, (time.perf_counter() - began) / 5)
    if mb.distributed.communicator().rank == 0:
        print(best)


def run(only: str = "", rounds: int = 0) -> None:
    cases, rows = [], []
    for name, (made, what, tolerance) in PROGRAMS.items():
        if only not in name:
            continue
        page = names_of(name)
        contenders = with_jax(name, page, made(page))
        expected = contenders["NumPy"]()
        for who, f in contenders.items():
            if who != "NumPy":
                check(f"{name}, {who}", f(), expected, tolerance)
                warm_up(f)
        times = {who: t.best for who, t in take_turns(contenders, rounds or 25, limit_s=20.0).items()}
        if name == "shallow_water" and (seconds := on_processes()) is not None:
            times["compiled, two processes"] = seconds
        cases.append({"program": name, "what": what, "best_s": times})
        rows += [[f"{name}: {who}", f"{t * 1e3:.3f}", f"{times['NumPy'] / t:.2f}"] for who, t in times.items()]
    show("Programs of docs/newcomers: ms a turn", ["program", "ms", "times as fast as NumPy"], rows)
    if not only:
        store("newcomers", {"threads": int(os.environ.get("MIRABELLE_NUM_THREADS", "2")), "cases": cases})


if __name__ == "__main__":
    on_this_process()
