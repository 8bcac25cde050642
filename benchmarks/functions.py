"""All public functions that NumPy has too, beside NumPy's: `python -m benchmarks functions [--only NAME]`.

Each is called on arrays of a thousand to ten million elements (fewer where it would take minutes), NumPy on its
one thread, we on two. What counts is the ratio of times, NumPy's over ours: of CPU seconds and of wall-clock
seconds, of the first call with an empty cache and of the best of several. A function is slow at a size if the
*better* of its best CPU and wall ratios is under 0.8, and the table gives a reason for each that is. Where that
is the start of a call, it takes no longer at larger sizes, of which the table tells as well.

A process runs the cases one after another, and is replaced if one takes too long.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._functioncases import CASES, REASONS, UNTIMED, Case
from benchmarks._measure import geometric_mean, store
from benchmarks._table import show

SIZES = (10**3, 10**5, 10**7)
SLOW = 0.8
# A call may take so many microseconds more than NumPy's, if that is all at larger sizes, too: its start.
START_US = 100.0
PATIENCE_S = 120.0
# What is slow without a reason is measured again, so many times in all: other work may have been in the way.
ATTEMPTS = 3


class Inputs(dict[str, Any]):
    """Arrays by the names that cases use, made when one asks for them."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.rng = np.random.default_rng(n)

    def __missing__(self, name: str) -> Any:
        n, rng, side = self.n, self.rng, math.isqrt(self.n)
        makers: dict[str, Callable[[], Any]] = {
            "x": lambda: rng.normal(size=n),
            "y": lambda: rng.normal(size=n),
            "p": lambda: rng.uniform(0.5, 2.0, n),
            "u": lambda: rng.uniform(-0.9, 0.9, n),
            "z": lambda: rng.normal(size=n) + 1j * rng.normal(size=n),
            "i": lambda: rng.integers(0, 1000, n),
            "j": lambda: rng.integers(1, 20, n),
            "k": lambda: rng.permutation(n),
            "m": lambda: rng.random(n) < 0.5,
            "s": lambda: np.sort(rng.normal(size=n)),
            "o": lambda: np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "w": lambda: rng.normal(size=9),
            "v": lambda: rng.normal(size=side),
            "b": lambda: rng.integers(0, 256, n, dtype=np.uint8),
            "A": lambda: rng.normal(size=(side, side)),
            "B": lambda: rng.normal(size=(side, side)),
            "S": lambda: rng.normal(size=(side, side)) + 2 * side * np.eye(side),
            "R": lambda: rng.normal(size=(n // 3, 3)),
            "I": lambda: rng.integers(0, side, (side, side)),
            "T": lambda: rng.normal(size=(side, 1)),
        }
        self[name] = made = makers[name]()
        return made


def runner(case: Case, namespace: Any, values: dict[str, Any]) -> Callable[[], Any]:
    """A function that does what a case says with one of the two namespaces."""
    scope = {"xp": namespace, **values}
    try:
        code = compile(case.text, case.name, "eval")
    except SyntaxError:
        code = compile(case.text, case.name, "exec")
    return lambda: eval(code, scope)  # (of a statement the value is None)


def timed(*contenders: Callable[[], Any], limit_s: float = 1.0, rounds: int = 7) -> list[tuple[float, float]]:
    """The best CPU and wall-clock seconds of a call of each; they take turns."""
    numbers, best = [1] * len(contenders), [(math.inf, math.inf)] * len(contenders)
    start = time.perf_counter()
    for _ in range(rounds):
        for i, f in enumerate(contenders):
            while True:
                wall, cpu = time.perf_counter(), time.process_time()
                for _ in range(numbers[i]):
                    f()
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                if wall > 2e-3 or numbers[i] > 4096:
                    break
                numbers[i] *= 4
            best[i] = min(best[i][0], cpu / numbers[i]), min(best[i][1], wall / numbers[i])
        if time.perf_counter() - start > limit_s:
            break
    return best


def agree(ours: Any, theirs: Any) -> bool:
    import mirabelle as mb

    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(agree(a, b) for a, b in zip(ours, theirs, strict=True))
    if not isinstance(theirs, (np.ndarray, np.generic)):
        return True
    a = mb.to_numpy(ours) if isinstance(ours, mb.AbstractArray) else np.asarray(ours)
    if a.shape != theirs.shape:
        return False
    return a.dtype.kind not in "fc" or np.allclose(a, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)


def measured(case: Case, n: int) -> dict[str, Any]:
    import mirabelle as mb
    from mirabelle.backends.host import kernels

    theirs = Inputs(n)
    for name in case.inputs:
        theirs[name]
    ours = {name: mb.HostArray(x) for name, x in theirs.items()}
    f, g = runner(case, np, theirs), runner(case, mb, ours)

    def run() -> Any:
        return finished(g())

    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    first = time.process_time() - cpu, time.perf_counter() - wall
    with np.errstate(all="ignore"):
        same = not case.compared or agree(found, f())
        del found
        for _ in range(3):
            run()
            time.sleep(0.01)
            kernels.settle()
        best, numpys = timed(run, f)
    return {
        "function": case.name, "call": case.text, "elements": n, "same": same,
        "numpy_s": {"cpu": numpys[0], "wall": numpys[1]}, "best_s": {"cpu": best[0], "wall": best[1]},
        "first_s": {"cpu": first[0], "wall": first[1]},
        "ratio": {"cpu": numpys[0] / max(best[0], 1e-9), "wall": numpys[1] / best[1]},
        "ratio_first": {"cpu": numpys[0] / max(first[0], 1e-9), "wall": numpys[1] / first[1]},
    }  # fmt: skip


def finished(x: Any) -> Any:
    """Whatever a function of ours returned, with nothing left to compute."""
    import mirabelle as mb

    if isinstance(x, mb.AbstractArray):
        return mb.materialize(x)
    return [finished(item) for item in x] if isinstance(x, (tuple, list)) else x


def work() -> None:
    """The other process: a line with a case and a size comes in, a line with what was measured goes out."""
    import warnings

    warnings.simplefilter("ignore")
    cases = {case.name: case for case in CASES}
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, n = json.loads(line)
        try:
            found = measured(cases[name], n)
        except Exception as e:  # a function that fails is a finding, too
            found = {"function": name, "elements": n, "error": f"{type(e).__name__}: {e}"[:200]}
        print(json.dumps(found), file=out, flush=True)


class Worker:
    """A process that measures cases."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from benchmarks.functions import work; work()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1],
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def ask(self, name: str, n: int) -> dict[str, Any] | None:
        """What was measured; None if it takes too long, or the process has ended."""
        assert self.process.stdin is not None
        print(json.dumps([name, n]), file=self.process.stdin, flush=True)
        try:
            line = self.lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            line = ""
        return json.loads(line) if line else None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def more_us(record: dict[str, Any]) -> float:
    """How many CPU microseconds a call takes beside NumPy's."""
    return (record["best_s"]["cpu"] - record["numpy_s"]["cpu"]) * 1e6  # type: ignore[no-any-return]


def explain(records: list[dict[str, Any]]) -> None:
    """Say which sizes of a function are slow, and why, as far as it is known."""
    records = [r for r in records if "error" not in r]
    for i, r in enumerate(records):
        r["slow"] = max(r["ratio"].values()) < SLOW
        r["reason"] = ""
        if not r["slow"]:
            continue
        more = more_us(r)
        larger = [more_us(x) for x in records[i + 1 :] if max(x["ratio"].values()) < SLOW]
        if r["function"] in REASONS:
            r["reason"] = REASONS[r["function"]]
        elif more < START_US and all(m < max(2 * more, 20) for m in larger):
            r["reason"] = f"{more:.0f} µs a call, whatever the size"


def sizes_of(case: Case) -> list[int]:
    return sorted({min(n, case.most) for n in SIZES})


def measure_all(only: str) -> Iterator[list[dict[str, Any]]]:
    """What was found of each function, at all sizes."""
    worker = Worker()
    try:
        for case in CASES:
            if only and only not in case.name:
                continue
            found: list[dict[str, Any]] = []
            for _ in range(ATTEMPTS):
                records = []
                for n in sizes_of(case):
                    answer = worker.ask(case.name, n)
                    if answer is None:
                        worker.end()
                        worker = Worker()
                        answer = {"function": case.name, "elements": n}
                        answer["error"] = f"no answer in {PATIENCE_S:.0f} s"
                    records.append(answer)
                found = [better(*pair) for pair in zip(found, records, strict=True)] if found else records
                explain(found)
                if not any(r.get("slow") and not r["reason"] for r in found):
                    break
            yield found
    finally:
        worker.end()


def better(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """That of two measurements of one size that other work on the machine has disturbed less."""
    for r, other in ((first, second), (second, first)):
        if "error" in r:
            return other
    return max(first, second, key=lambda r: max(r["ratio"].values()))  # type: ignore[no-any-return]


def row_of(r: dict[str, Any]) -> list[str]:
    name = f"{r['function']}, {r['elements']:,}"
    if "error" in r:
        return [name, "-", "-", "-", "-", r["error"]]
    note = (r["reason"] or "?") if r["slow"] else "" if r["same"] else "OTHER VALUES"
    return [name, *[f"{r[k][t]:.2f}" for k in ("ratio", "ratio_first") for t in ("cpu", "wall")], note]


def run(only: str = "") -> None:
    records = []
    for r in itertools.chain.from_iterable(measure_all(only)):
        records.append(r)
        print(" | ".join(row_of(r)), file=sys.stderr, flush=True)
    report(records, stored=not only)


def report(records: list[dict[str, Any]], stored: bool) -> None:
    """Print the table of what was measured, and keep it."""
    good = [r for r in records if "error" not in r]
    slow = [r for r in good if r["slow"]]
    unexplained = [f"{r['function']} ({r['elements']:,})" for r in slow if not r["reason"]]
    means = {
        n: geometric_mean([r["ratio"]["cpu"] for r in good if r["elements"] == n]) for n in SIZES
    }  # fmt: skip
    notes = [
        "Geometric means of the best in CPU seconds: " + ", ".join(f"{n:,}: {m:.2f}" for n, m in means.items()),
        f"Under {SLOW} in CPU and in wall-clock seconds: {len(slow)} of {len(good)}; "
        f"without a reason: {', '.join(unexplained) or 'none'}.",
        f"{len(UNTIMED)} functions compute nothing that could be timed (questions, files, texts).",
    ]
    show(
        "Functions beside NumPy's: NumPy's time over ours, best and first call",
        ["function, elements", "CPU", "wall", "first, CPU", "first, wall", "why under 0.8"],
        [row_of(r) for r in records],
        notes,
    )
    if stored:
        found = {"slow": slow, "without_reason": unexplained, "cases": records}
        store("functions", {"threads": 2, "note": __doc__, **found})
