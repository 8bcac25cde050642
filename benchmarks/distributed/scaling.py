"""Strong and weak scaling from 1 to 2 ranks of the kernels that DaCe distributes, beside the peers.

Each contender runs in processes of its own, one after the other. A rank, a Dask worker and a rank of Heat
has one thread and a core of its own. Heat may live in another environment, with mirabelle importable there
too: HEAT_PYTHON names its Python.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._measure import geometric_mean, store
from benchmarks._table import show
from benchmarks.distributed import _published
from benchmarks.distributed._cases import CASES
from benchmarks.distributed._ranks import on_ranks

METHOD = (
    "Seconds of one call, data being there before the clock starts; with several processes all begin together"
    " and the slowest counts. Strong scaling: the size of one rank on two. Weak scaling: sizes grow with the "
    "ranks as in Table 2 of DaCe's paper. Efficiency: of the best times, T(1) / (2 T(2)) in strong, T(1) / "
    "T(2) in weak scaling. mirabelle's and NumPy's kernels are the functions of benchmarks/npkernels as they "
    "stand; Dask's and Heat's are written for them, without writing to arguments but for the grids, of which "
    "they do a few steps; the time is that of all."
)
# For all kernels of one contender.
TIMEOUT_S = 90.0


@dataclass(frozen=True)
class Contender:
    """Who runs, on how many processes, and which size (1: that of one rank; 2: that of two)."""

    name: str
    processes: int
    scale: int
    function: str
    options: Mapping[str, Any]
    ranks: int = 0
    threads: int = 1
    python: str = ""


def contenders(heat_python: str) -> list[Contender]:
    found = []
    for processes, scale in ((1, 1), (2, 1), (2, 2)):
        found.append(Contender("DArray", processes, scale, "ranks", {"scale": scale}, ranks=processes))
    for threads in (1, 2):
        for name, numpy in (("HostArray", False), ("NumPy", True)):
            found.append(Contender(name, threads, 1, "alone", {"numpy": numpy}, threads=threads))
    if importlib.util.find_spec("dask") is not None:
        for cluster in (False, True):
            if cluster and importlib.util.find_spec("distributed") is None:
                continue
            name = "Dask, cluster" if cluster else "Dask, threads"
            for workers, scale in ((1, 1), (2, 1), (2, 2)) if cluster else ((1, 1), (2, 1)):
                options = {"scale": scale, "workers": workers, "cluster": cluster}
                found.append(Contender(name, workers, scale, "dask", options))
    if heat_python:
        for processes, scale in ((1, 1), (2, 1), (2, 2)):
            options = {"scale": scale}
            found.append(
                Contender("Heat", processes, scale, "heat", options, ranks=processes, python=heat_python)
            )
    return found


def _heat_python() -> str:
    if os.environ.get("HEAT_PYTHON"):
        return os.environ["HEAT_PYTHON"]
    return sys.executable if importlib.util.find_spec("heat") is not None else ""


def run(tiny: bool, folder: Path | None) -> None:
    heat_python = _heat_python()
    notes = []
    record: list[dict[str, Any]] = []
    for c in contenders(heat_python):
        print(f"{c.name} on {c.processes}, the size of {c.scale} ...", file=sys.stderr, flush=True)
        options = dict(c.options, tiny=tiny, budget_s=0.02 if tiny else 0.4)
        try:
            found = on_ranks(c.ranks, f"_contenders:{c.function}", c.python, c.threads, TIMEOUT_S, **options)
        except RuntimeError as e:
            notes.append(f"{c.name} on {c.processes}: {str(e).strip().splitlines()[-1]}")
            print(str(e)[-500:], file=sys.stderr)
            continue
        for case in CASES:
            entry = {"contender": c.name, "processes": c.processes, "scale": c.scale, "kernel": case.label}
            outcome = found.get(case.label, {"failed": "not reached: it ended early, or took too long"})
            record.append({**entry, "size": case.size(c.scale, tiny), **outcome})
    if not any(c["contender"].startswith("Dask") for c in record):
        notes.append("Dask was not there: pip install 'dask[array]' distributed")
    if not heat_python:
        notes.append("Heat was not there: pip install heat (it needs torch), or set HEAT_PYTHON.")
    times = _times(record)
    summary = judged(times)
    _show_strong(times)
    _show_weak(times, notes)
    if folder is None:
        return
    versions = on_ranks(0, "_contenders:versions", names=["mpi4py", "mpich", "dask", "distributed"])
    if heat_python:
        versions |= on_ranks(0, "_contenders:versions", heat_python, names=["heat", "torch"])
    dace = {"source": _published.SOURCE, "best": _published.BEST, "kernels": _published.DACE}
    store(
        "distributed_scaling",
        {
            "method": METHOD,
            "versions": versions,
            "cores": _topology(),
            "efficiency": summary,
            "published": {"DaCe": dace, "peers": _published.PEERS},
            "notes": notes,
            "cases": record,
        },
        folder,
    )
    _write_table(folder / "distributed_scaling.csv", record)


# Efficiencies

Times = dict[tuple[str, int, int, str], float]


def _times(record: list[dict[str, Any]]) -> Times:
    """The best times by contender, processes, scale and kernel."""
    return {
        (c["contender"], c["processes"], c["scale"], c["kernel"]): c["seconds"]["best_s"]
        for c in record
        if "seconds" in c
    }


def efficiency(times: Times, name: str, kernel: str, weak: bool) -> float | None:
    one, two = times.get((name, 1, 1, kernel)), times.get((name, 2, 2 if weak else 1, kernel))
    if one is None or two is None:
        return None
    return one / two if weak else one / (2 * two)


NAMES = ("DArray", "HostArray", "NumPy", "Dask, threads", "Dask, cluster", "Heat")


def judged(times: Times) -> dict[str, Any]:
    """Efficiencies by scaling, contender and kernel, and how much longer peers take on two processes."""
    found: dict[str, Any] = {"strong": {}, "weak": {}}
    for way, weak in (("strong", False), ("weak", True)):
        for name in NAMES:
            each = {c.label: efficiency(times, name, c.label, weak) for c in CASES}
            known = {k: e for k, e in each.items() if e is not None}
            if known:
                found[way][name] = {**known, "geometric mean": geometric_mean(list(known.values()))}
    ratios: dict[str, dict[str, float]] = {}
    for name in NAMES[1:]:
        for c in CASES:
            mine, theirs = times.get(("DArray", 2, 1, c.label)), times.get((name, 2, 1, c.label))
            if mine and theirs:
                ratios.setdefault(name, {})[c.label] = theirs / mine
    found["time over DArray's on 2 processes"] = {
        name: {**r, "geometric mean": geometric_mean(list(r.values()))} for name, r in ratios.items()
    }
    return found


# Tables


def _show_strong(times: Times) -> None:
    columns = [(n, p) for n in NAMES for p in (1, 2) if any(k[:3] == (n, p, 1) for k in times)]
    rows = []
    for case in CASES:
        row = [case.label]
        for name, processes in columns:
            row.append(_ms(times.get((name, processes, 1, case.label))))
        row += [_share(efficiency(times, name, case.label, False)) for name in ("DArray", "HostArray")]
        rows.append(row)
    head = [f"{n} {p}" for n, p in columns]
    show(
        "Strong scaling: ms a call on 1 and 2 processes (threads of HostArray and NumPy), best of the rounds",
        ["kernel", *head, "efficiency: DArray", "HostArray"],
        rows,
        [f"{SHARED} Two threads on one array are what two ranks can be held against."],
    )


SHARED = "Two cores share their memory's bandwidth: products with vectors cannot be twice as fast."


def _show_weak(times: Times, notes: list[str]) -> None:
    names = [n for n in NAMES if any(k[:3] == (n, 2, 2) for k in times)]
    rows = []
    for case in CASES:
        row = [case.label]
        for name in names:
            row.append(_ms(times.get((name, 1, 1, case.label))))
            row.append(_ms(times.get((name, 2, 2, case.label))))
            row.append(_share(efficiency(times, name, case.label, True)))
        rows.append([*row, _published.DACE[case.kernel][0]])
    head = [column for n in names for column in (f"{n} 1", "2", "efficiency")]
    show(
        "Weak scaling: ms a call on 1 and 2 processes, best of the rounds",
        ["kernel", *head, "DaCe's paper says"],
        rows,
        [
            f"DaCe: {_published.BEST[0]} {_published.BEST[1]:.2%}. {_published.SOURCE}.",
            _published.PEERS,
            *notes,
        ],
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _write_table(path: Path, record: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "size", "contender", "processes", "scaling", "median_s", "best_s", "failed"])
        for c in record:
            size = " ".join(f"{k}={n}" for k, n in c["size"].items())
            way = "weak" if c["scale"] > 1 else "both" if c["processes"] == 1 else "strong"
            s = c.get("seconds", {})
            row = [c["kernel"], size, c["contender"], c["processes"], way]
            writer.writerow(
                [*row, *(f"{s[k]:.6g}" if s else "" for k in ("median_s", "best_s")), c.get("failed", "")]
            )


def _topology() -> dict[str, int]:
    """How many cores there are to run on, and how many of them are threads of another."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    siblings = set()
    for c in cores:
        path = Path(f"/sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list")
        siblings.add(path.read_text().strip() if path.exists() else str(c))
    return {"logical": len(cores), "physical": len(siblings)}
