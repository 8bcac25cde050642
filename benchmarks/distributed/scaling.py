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

import numpy as np

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
    "they do a few steps; the time is that of all. compiled: mb.compile of the same functions. side by side: "
    "those functions on arrays of each process's own, all at once and without a message: what cores take "
    "from each other by sharing memory. mpi4py: atax and jacobi_2d by hand, with BLAS and with Numba."
)
# So many processes a model speaks of, and the power of their number by which the bytes grow that each of them
# gets: rows are divided, so that products gather whole vectors or matrices, and grids send rows.
FURTHER = (8, 64, 512)
GROWS = {
    **dict.fromkeys(("atax", "bicg", "gemver", "gesummv", "mvt", "jacobi_2d"), 1 / 2),
    **dict.fromkeys(("gemm", "k2mm", "k3mm"), 2 / 3),
}
MODEL = (
    "A model, not a measurement: seconds beyond processes side by side are so many a message and so many a "
    "byte, fitted to what all kernels take on two processes; messages grow with log2 of the processes, bytes "
    "with the length of what is gathered or of a row. Networks between machines are not in it."
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
        options = {"scale": scale}
        found.append(Contender("DArray", processes, scale, "ranks", options, ranks=processes))
        compiled = options | {"compiled": True}
        found.append(Contender("DArray, compiled", processes, scale, "ranks", compiled, ranks=processes))
        found.append(Contender("mpi4py", processes, scale, "by_hand", options, ranks=processes))
    for processes in (1, 2):
        apart = {"scale": 1, "compiled": True, "apart": True}
        found.append(Contender("side by side", processes, processes, "ranks", apart, ranks=processes))
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
            scale = 1 if c.options.get("apart") else c.scale
            record.append({**entry, "size": case.size(scale, tiny), **outcome})
    if not any(c["contender"].startswith("Dask") for c in record):
        notes.append("Dask was not there: pip install 'dask[array]' distributed")
    if not heat_python:
        notes.append("Heat was not there: pip install heat (it needs torch), or set HEAT_PYTHON.")
    times = _times(record)
    summary = judged(times)
    model = modelled(record, times)
    _show_strong(times)
    _show_weak(times, notes)
    _show_judged(times, model)
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
            "model": model,
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


OURS = "DArray, compiled"
NAMES = (
    "DArray",
    OURS,
    "side by side",
    "mpi4py",
    "HostArray",
    "NumPy",
    "Dask, threads",
    "Dask, cluster",
    "Heat",
)


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


def modelled(record: list[dict[str, Any]], times: Times) -> dict[str, Any]:
    """What the calls on two processes say of more of them."""
    terms: list[list[float]] = []
    known: list[tuple[str, float, float]] = []
    for c in record:
        label = c["kernel"]
        beside, two = (times.get((name, 2, 2, label)) for name in ("side by side", OURS))
        if (c["contender"], c["processes"], c["scale"]) == (OURS, 2, 2) and "messages" in c and beside and two:
            terms.append([c["messages"], c["bytes_sent"]])
            known.append((label, beside, two - beside))
    if not known:
        return {"says": MODEL, "weak": {}}
    # Relative errors count: no kernel's time is more important than another's.
    weights = np.array([1 / beside for _, beside, _ in known])
    beyond = np.array([more for _, _, more in known])
    fitted = np.linalg.lstsq(np.array(terms) * weights[:, None], beyond * weights, rcond=None)[0]
    message, byte = np.maximum(fitted, 0.0)
    weak: dict[str, dict[str, float]] = {}
    for (label, beside, _), (messages, sent) in zip(known, terms, strict=True):
        for n in FURTHER:
            more = message * messages * np.log2(n) + byte * sent * (n / 2) ** GROWS.get(label, 0.0)
            weak.setdefault(str(n), {})[label] = float(beside / (beside + more))
    for of in weak.values():
        of["geometric mean"] = geometric_mean(list(of.values()))
    return {"says": MODEL, "s_a_message": float(message), "s_a_byte": float(byte), "weak": weak}


def _show_judged(times: Times, model: dict[str, Any]) -> None:
    """Weak scaling of the compiled programs, beside what the machine allows and beside mpi4py."""
    rows, kept = [], []
    for case in CASES:
        weak = efficiency(times, OURS, case.label, True)
        beside = times.get(("side by side", 2, 2, case.label))
        two, hand = times.get((OURS, 2, 2, case.label)), times.get(("mpi4py", 2, 2, case.label))
        kept.append(weak)
        rows.append(
            [
                case.label,
                _share(weak),
                _share(efficiency(times, "side by side", case.label, True)),
                _share(beside / two if beside and two else None),
                _share(hand / two if hand and two else None),
                *[_share(model["weak"].get(str(n), {}).get(case.label)) for n in FURTHER],
            ]
        )
    found = [w for w in kept if w is not None]
    mean = f"{geometric_mean(found):.2f}, the least {min(found):.2f}" if found else "-"
    show(
        "Weak scaling of the compiled programs on 2 processes",
        ["kernel", "weak", "side by side", "of side by side", "over mpi4py", *[f"model: {n}" for n in FURTHER]],
        rows,
        [f"Weak in the geometric mean {mean} (goal 0.9, and none under 0.7); over mpi4py: goal 0.95.", MODEL],
    )


# Tables


def _show_strong(times: Times) -> None:
    columns = [(n, p) for n in NAMES for p in (1, 2) if any(k[:3] == (n, p, 1) for k in times)]
    rows = []
    for case in CASES:
        row = [case.label]
        for name, processes in columns:
            row.append(_ms(times.get((name, processes, 1, case.label))))
        row += [_share(efficiency(times, name, case.label, False)) for name in ("DArray", OURS, "HostArray")]
        rows.append(row)
    head = [f"{n} {p}" for n, p in columns]
    show(
        "Strong scaling: ms a call on 1 and 2 processes (threads of HostArray and NumPy), best of the rounds",
        ["kernel", *head, "efficiency: DArray", "compiled", "HostArray"],
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
