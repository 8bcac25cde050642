"""The first call of a function in a fresh process, beside NumPy's: imports, look-ups and compilation are in it.

Of the functions that `functions` times every third has processes of its own, which import one of the two
libraries, make the arrays, and call it once, with no kernel on disk; the result is computed. Of several
processes the best counts, by the wall clock and in CPU seconds. A call of ours may take 1.5 times NumPy's and
20 ms more, by the better of both.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks._functioncases import CASES
from benchmarks._measure import geometric_mean, store
from benchmarks._table import show

FACTOR, MORE_S = 1.5, 0.020
ELEMENTS = 10**5
EACH = 3
ROUNDS = 2
# What is above its limit is measured again, so many times: other work may have been in the way.
AGAIN = 3
PATIENCE_S = 60
Times = dict[str, float]


def child(library: str, text: str) -> Times:
    """The seconds of the first call: runs in a process of its own."""
    from benchmarks.functions import Inputs, runner

    case = next(c for c in CASES if c.text == text)
    inputs = Inputs(ELEMENTS)
    values: dict[str, Any] = {name: inputs[name] for name in case.inputs}
    if library == "mirabelle":
        import mirabelle

        namespace: Any = mirabelle
        values = {name: mirabelle.HostArray(x) for name, x in values.items()}
    else:
        import numpy

        namespace = numpy
    call = runner(case, namespace, values)
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    if library == "mirabelle":
        for x in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(x, namespace.AbstractArray):
                namespace.materialize(x)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def measured(library: str, text: str, before: Times | None = None) -> Times | None:
    """The best of an earlier measurement and a new one; None if the call fails."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-first-calls-") as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.first_calls", library, text],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env={**os.environ, "MIRABELLE_CACHE_DIR": cache},
        )
    if done.returncode:
        return None
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return {k: min(t, (before or {}).get(k, math.inf)) for k, t in found.items()}


def is_met(numpy: Times, ours: Times) -> bool:
    return any(ours[k] <= FACTOR * numpy[k] + MORE_S for k in ("wall", "cpu"))


def run(only: str = "") -> None:
    texts = [case.text for case in CASES][::EACH]
    if only:
        texts = [case.text for case in CASES if only in case.name]
    cases, failed = [], []
    for text in texts:
        numpy = ours = None
        for turn in range(ROUNDS + AGAIN):
            numpy, ours = measured("numpy", text, numpy), measured("mirabelle", text, ours)
            if numpy is None or ours is None or (turn + 1 >= ROUNDS and is_met(numpy, ours)):
                break
        if numpy is None or ours is None:
            failed.append(text)
        else:
            cases.append({"call": text, "numpy_s": numpy, "best_s": ours, "met": is_met(numpy, ours)})
    cases.sort(key=lambda c: c["numpy_s"]["wall"] - c["best_s"]["wall"])
    rows = [
        [
            c["call"],
            *(f"{c[who][k] * 1e3:.2f}" for k in ("wall", "cpu") for who in ("numpy_s", "best_s")),
            "" if c["met"] else "MISSED",
        ]
        for c in cases[:25]
    ]
    missed = [c["call"] for c in cases if not c["met"]]
    more = max(c["best_s"]["wall"] - c["numpy_s"]["wall"] for c in cases)
    mean = geometric_mean([c["best_s"]["wall"] / c["numpy_s"]["wall"] for c in cases])
    show(
        f"First calls in fresh processes, {ELEMENTS} elements: ms (the 25 that take most beside NumPy's)",
        [
            "call",
            "NumPy",
            "mirabelle",
            "NumPy, CPU",
            "mirabelle, CPU",
            f"{FACTOR} times, {MORE_S * 1e3:.0f} ms",
        ],
        rows,
        [
            f"{len(cases)} functions, {len(missed)} above the limit; {more * 1e3:.0f} ms more at most; "
            f"geometric mean of ratios {mean:.1f}.",
            *([f"Failed: {', '.join(failed)}"] if failed else []),
        ],
    )
    if not only:
        store("first_calls", {"elements": ELEMENTS, "missed": missed, "failed": failed, "cases": cases})


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], sys.argv[2])))
