"""Compiled programs beside the best of NumPy, eager arrays, JAX, Numba and DaCe, kernel by kernel.

Each kernel has a process of its own with an empty cache of compiled kernels, and a second one for the first
call of eager arrays, which would otherwise find kernels that the compiled program has made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._measure import geometric_mean, store
from benchmarks._table import show
from benchmarks.programs._compiler import MISSING
from benchmarks.programs._kernels import NAMES

SECONDS = 1.5
TARGET = 1.3
ORDER = ("numpy", "mirabelle", "compiled", "jax", "numba", "dace")
RIVALS = ("numpy", "jax", "numba", "dace")
COMPILERS = RIVALS[1:]
NOTE = (
    "Seconds, medians, on two threads. Each kernel is run in a process of its own, whose cache of compiled "
    "kernels is empty. Before each call the arguments that the program writes to are made anew, outside the "
    "clock; it stops when all results are computed. The contenders take turns; in each turn a pause and 5 "
    "ms of calls that do not count precede the one that does. first_s is the first call in the process with "
    "the libraries imported: capture or parsing, compiling and running. compiled is mb.compile of the kernel's "
    "text in benchmarks.npkernels (where that cannot be captured, of the form that notes names); mirabelle is "
    "the same text on eager arrays; jax, with 64-bit numbers, is the same text or, where that changes arrays, "
    "a form with its own loops and scans; numba is njit of the same text; dace is auto-optimised, with its "
    "default compiler options (-O3 -march=native -ffast-math), its first_s parsing, transformation and the "
    "C++ compiler. ratio is the time of the best of NumPy, JAX, Numba and DaCe by that of the compiled "
    "program: above 1, the compiled program is the faster one. ratio_compilers is the same without NumPy; "
    "met says whether it is at least 1 everywhere, and the target in the geometric mean."
)


def spawned(name: str, who: Sequence[str], seconds: float, tiny: bool) -> dict[str, Any]:
    """`_one.measure` in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-programs-") as folder:
        answer = Path(folder) / "answer.json"
        options = json.dumps({"who": list(who), "seconds": seconds, "tiny": tiny})
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.programs._one", name, str(answer), options],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "MIRABELLE_CACHE_DIR": str(Path(folder) / "cache")},
        )
        if not answer.exists():
            lines = done.stderr.strip().splitlines()
            why = lines[-1][:500] if lines else f"exit status {done.returncode}"
            return {"name": name, "failures": {"all": why}, "first_s": {}}
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def measured(name: str, seconds: float, tiny: bool) -> dict[str, Any]:
    who = [w for w in ("compiled", *ORDER) if w != "dace" or os.environ.get("DACE_PYTHON")]
    found = spawned(name, list(dict.fromkeys(who)), seconds, tiny)
    eager = spawned(name, ["mirabelle"], 0.0, tiny)
    if "mirabelle" in found["first_s"]:
        found["first_s"]["mirabelle"] = eager["first_s"].get("mirabelle")
    times = found.get("times", {})
    rivals = [r for r in RIVALS if r in times]
    if rivals and "compiled" in times:
        best = min(rivals, key=lambda r: times[r]["median_s"])
        found["best_other"] = best
        found["ratio"] = times[best]["median_s"] / times["compiled"]["median_s"]
        others = [times[r]["median_s"] for r in COMPILERS if r in times]
        if others:
            found["ratio_compilers"] = min(others) / times["compiled"]["median_s"]
    return found


def row(found: Mapping[str, Any]) -> list[str]:
    times = found.get("times", {})
    firsts = found["first_s"]
    return [
        found["name"],
        *[f"{times[n]['median_s'] * 1e3:.2f}" if n in times else "-" for n in ORDER],
        found.get("best_other", "-"),
        f"{found['ratio']:.2f}" if "ratio" in found else "-",
        *[f"{firsts[n]:.2f}" if firsts.get(n) is not None else "-" for n in ORDER[1:]],
    ]


def summary(record: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ratios = [f["ratio"] for f in record if "ratio" in f]
    compilers = [f["ratio_compilers"] for f in record if "ratio_compilers" in f]
    mean = geometric_mean(compilers) if compilers else None
    return {
        "kernels": len(record),
        "compared": len(ratios),
        "geometric_mean_ratio": geometric_mean(ratios) if ratios else None,
        "at_least_as_fast": sum(r >= 1.0 for r in ratios),
        "geometric_mean_ratio_compilers": mean,
        "at_least_as_fast_compilers": sum(r >= 1.0 for r in compilers),
        "target": TARGET,
        "met": len(compilers) == len(record) and min(compilers) >= 1.0 and (mean or 0.0) >= TARGET,
    }


def remarks(record: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who failed where, each in a sentence."""
    said = []
    if any(MISSING in f["failures"].get("compiled", "") for f in record):
        said.append(f"{MISSING}: only the others were run.")
    for f in record:
        for who, why in f["failures"].items():
            if MISSING not in why:
                said.append(f"{f['name']}, {who}: {why.splitlines()[0] if why else 'no reason given'}")
        for why in f.get("refused_forms", ()):
            said.append(f"{f['name']} as it is cannot be captured: {why.splitlines()[0]}")
    if not os.environ.get("DACE_PYTHON"):
        said.append('DaCe was not there: set DACE_PYTHON (pip install dace==1.0.2 networkx==3.4.2 "numpy<2").')
    return said


def run(only: str = "", seconds: float = 0.0, tiny: bool = False, folder: Path | None = None) -> None:
    asked = [n.strip() for n in only.split(",") if n.strip()]
    names = [n for n in NAMES if not asked or any(a in n for a in asked)]
    if not names:
        raise SystemExit(f"there is no kernel {only!r}; there are {', '.join(NAMES)}")
    record = []
    for name in names:
        record.append(measured(name, seconds or (0.3 if tiny else SECONDS), tiny))
        print(" | ".join(row(record[-1])), file=sys.stderr, flush=True)
    s = summary(record)
    means = [s["geometric_mean_ratio"], s["geometric_mean_ratio_compilers"]]
    said = ["-" if m is None else f"{m:.2f}" for m in means]
    show(
        "Compiled programs: ms, median; ratio = best of the others (eager aside) / compiled; first calls in s",
        ["kernel", "NumPy", "eager", "compiled", "JAX", "Numba", "DaCe", "best other", "ratio", "first: eager",
         "compiled", "JAX", "Numba", "DaCe"],
        [row(f) for f in record],
        [
            f"Geometric mean of the ratios: {said[0]} over {s['compared']} of {s['kernels']} kernels; at least "
            f"as fast on {s['at_least_as_fast']}. Beside JAX, Numba and DaCe alone: {said[1]} (target "
            f"{TARGET}); at least as fast on {s['at_least_as_fast_compilers']}.",
            *remarks(record),
        ],
    )  # fmt: skip
    if folder is not None:
        store("programs_kernels", {"threads": 2, "method": NOTE, **s, "cases": record}, folder)
