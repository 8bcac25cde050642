"""What an elementwise statement and a reduction cost on DArray, beside HostArray and beside the collective."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.distributed._ranks import on_ranks, own_core, settled, take_turns

# Microseconds more than on the local array; of a reduction, more than that and the collective.
TARGET_ELEMENTWISE_US, TARGET_REDUCTION_US = 5.0, 10.0
# Elements on each rank.
SIZES = (16, 1024)
STATEMENTS = {
    "x*y + z": "force(x*y + z)",
    "y[...] = x*2 + z": "y[...] = x*2 + z",
    "y += x": "iadd(y, x)",
}
REDUCTION = "force(sum(x*y))"
COLLECTIVE = "comm.allreduce(data, 'sum')"


def run(tiny: bool, folder: Path | None) -> None:
    record = []
    for ranks in (1, 2):
        record += on_ranks(ranks, "overhead:measure", sizes=SIZES[:1] if tiny else SIZES, tiny=tiny)
    rows = []
    for case in record:
        rows.append(
            [
                case["statement"],
                case["ranks"],
                case["elements"],
                *(f"{case[k]['best_s'] * 1e6:.2f}" if k in case else "-" for k in ("local", "distributed")),
                f"{case['collective']['best_s'] * 1e6:.2f}" if "collective" in case else "-",
                f"{case['extra_us']:+.2f}",
                "yes" if case["met"] else "NO",
            ]
        )
    show(
        "Overhead: µs a statement, best of the rounds",
        ["statement", "ranks", "elements a rank", "HostArray", "DArray", "collective", "more", "met"],
        rows,
        [
            f"Targets: an elementwise statement at most {TARGET_ELEMENTWISE_US:g} µs more, a reduction at most "
            f"{TARGET_REDUCTION_US:g} µs more than that of the local array and the collective by itself."
        ],
    )
    if folder is not None:
        targets = {"elementwise_us": TARGET_ELEMENTWISE_US, "reduction_us": TARGET_REDUCTION_US}
        store("distributed_overhead", {"targets": targets, "cases": record}, folder)


# On a rank


def measure(sizes: list[int], tiny: bool) -> list[dict[str, Any]] | None:
    import mirabelle as mb

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    rounds, round_s = (3, 0.002) if tiny else (15, 0.02)
    record: list[dict[str, Any]] = []

    def scope(make: Any, n: int) -> dict[str, Any]:
        rng = np.random.default_rng(0)
        arrays = {name: make(rng.random(n)) for name in "xyz"}
        return {**arrays, "force": mb.materialize, "sum": mb.sum, "iadd": operator.iadd}

    for n in sizes:
        local, spread = scope(mb.HostArray, n), scope(mb.DArray[mb.HostArray], n * comm.size)
        for text, statement in STATEMENTS.items():
            contenders = {"local": (statement, local), "distributed": (statement, spread)}
            record.append(_case(comm, text, n, contenders, rounds, round_s))
            more = record[-1]["distributed"]["best_s"] - record[-1]["local"]["best_s"]
            record[-1] |= {"extra_us": more * 1e6, "met": more * 1e6 <= TARGET_ELEMENTWISE_US}
        contenders = {"local": (REDUCTION, local), "distributed": (REDUCTION, spread)}
        if comm.size > 1:
            contenders["collective"] = (COLLECTIVE, {"comm": comm, "data": np.zeros(1)})
        record.append(_case(comm, "sum(x*y)", n, contenders, rounds, round_s))
        times = {name: record[-1][name]["best_s"] for name in contenders}
        more = times["distributed"] - times["local"] - times.get("collective", 0.0)
        record[-1] |= {"extra_us": more * 1e6, "met": more * 1e6 <= TARGET_REDUCTION_US}
    return record if comm.rank == 0 else None


def _case(comm: Any, text: str, n: int, contenders: Any, rounds: int, round_s: float) -> dict[str, Any]:
    # Past the number of uses from which small kernels are compiled, and until they are.
    for statement, names in contenders.values():
        code = compile(statement, text, "exec")
        for _ in range(200):
            exec(code, names)
        settled()
        exec(code, names)
    found = take_turns(comm, contenders, rounds, round_s)
    return {
        "statement": text,
        "ranks": comm.size,
        "elements": n,
        **{name: t.as_json() for name, t in found.items()},
    }
