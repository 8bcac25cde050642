"""The first call of a function in a fresh process, beside NumPy's: imports, look-ups and compilation are in it.

Of the functions that `functions` times every third has processes of its own, which import one of the two
libraries, make the arrays, and call it once; the result is computed. Ours is called with no kernel on disk, and
with those that a program which called it again and again has left there. Of several processes the best counts,
by the wall clock and in CPU seconds. A call of ours may take 1.5 times NumPy's and 20 ms more, by the better of
both.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
# A program that leaves kernels behind calls so many times.
TURNS = 40
Times = dict[str, float]


def called(library: str, text: str) -> Callable[[], object]:
    """The call, whose result is computed, with its arrays made."""
    from benchmarks.functions import Inputs, runner

    case = next(c for c in CASES if c.text == text)
    inputs = Inputs(ELEMENTS)
    values: dict[str, Any] = {name: inputs[name] for name in case.inputs}
    if library == "numpy":
        import numpy

        return runner(case, numpy, values)
    import mirabelle as mb

    call = runner(case, mb, {name: mb.HostArray(x) for name, x in values.items()})

    def computed() -> None:
        result = call()
        for x in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(x, mb.AbstractArray):
                mb.materialize(x)

    return computed


def child(library: str, text: str) -> Times:
    """The seconds of the first call: runs in a process of its own."""
    call = called(library, text)
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def use(text: str) -> Times:
    """Leave the kernels of a call on disk."""
    from mirabelle.backends.host import kernels

    call = called("mirabelle", text)
    for _ in range(2):
        for _ in range(TURNS):
            call()
        kernels.settle()
    return {}


def started(cache: str, *words: str) -> Times | None:
    """What a process of its own says; None if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_calls", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "MIRABELLE_CACHE_DIR": cache},
    )
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def measured(library: str, text: str, before: Times | None = None, kept: str | None = None) -> Times | None:
    """The best of an earlier measurement and a new one, with kernels in a folder; None if the call fails."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-first-calls-") as cache:
        if kept is not None:
            shutil.copytree(kept, cache, dirs_exist_ok=True)
        found = started(cache, library, text)
    return found and {k: min(t, (before or {}).get(k, math.inf)) for k, t in found.items()}


def is_met(numpy: Times, ours: Times) -> bool:
    return any(ours[k] <= FACTOR * numpy[k] + MORE_S for k in ("wall", "cpu"))


def run(only: str = "") -> None:
    texts = [case.text for case in CASES][::EACH]
    if only:
        texts = [case.text for case in CASES if only in case.name]
    cases, failed = [], []
    for text in texts:
        with tempfile.TemporaryDirectory(prefix="mirabelle-first-calls-") as kept:
            started(kept, "use", text)
            numpy = empty = used = None
            for turn in range(ROUNDS + AGAIN):
                numpy = measured("numpy", text, numpy)
                empty, used = measured("mirabelle", text, empty), measured("mirabelle", text, used, kept)
                if numpy is None or empty is None or used is None:
                    break
                met = is_met(numpy, empty) and is_met(numpy, used)
                if turn + 1 >= ROUNDS and met:
                    break
        if numpy is None or empty is None or used is None:
            failed.append(text)
        else:
            cases.append({"call": text, "numpy_s": numpy, "best_s": empty, "used_s": used, "met": met})
    cases.sort(key=lambda c: c["numpy_s"]["wall"] - max(c[w]["wall"] for w in ("best_s", "used_s")))
    rows = [
        [
            c["call"],
            *(f"{c[who][k] * 1e3:.2f}" for k in ("wall", "cpu") for who in ("numpy_s", "best_s", "used_s")),
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
            *("NumPy", "no kernels", "used kernels"),
            *("NumPy, CPU", "no kernels, CPU", "used kernels, CPU"),
            f"{FACTOR} times, {MORE_S * 1e3:.0f} ms",
        ],
        rows,
        [
            f"{len(cases)} functions, {len(missed)} above the limit; {more * 1e3:.0f} ms more at most without "
            f"kernels; geometric mean of ratios {mean:.1f}.",
            *([f"Failed: {', '.join(failed)}"] if failed else []),
        ],
    )
    if not only:
        store("first_calls", {"elements": ELEMENTS, "missed": missed, "failed": failed, "cases": cases})


if __name__ == "__main__":
    what, text = sys.argv[1:]
    print(json.dumps(use(text) if what == "use" else child(what, text)))
