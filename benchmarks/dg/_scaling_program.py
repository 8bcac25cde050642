"""Steps of a gas on one process and on all, in turns: run by `mirabelle run` with JSON, answers as JSON.

The members of a job are timed on the same machine in the same minute: alone, and with a share of the cells
alone (rank 0 computes while the others sleep), side by side (each its own problem, without messages) and
divided (one problem).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle import dg


def problem(cells: tuple[int, int], order: int, array: Any) -> tuple[Any, Any]:
    """A bump of density that moves through a periodic box of squares."""
    gas = dg.CompressibleEuler(2)
    mesh = dg.box(cells, upper=tuple(n / cells[1] for n in cells), periodic=True)

    def initial(x: Any, t: Any) -> Any:
        bump = 0.2 * mb.exp(-20 * ((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2))
        return gas.conservative((1 + bump, 0.5, 0.25, 1.0))

    return dg.Semidiscretization(mesh, gas, dg.Solver(order), array=array), initial


class Turns:
    """Some steps of a problem, again and again."""

    def __init__(self, semi: Any, initial: Any, steps: int) -> None:
        self.semi, self.steps = semi, steps
        self.solution = dg.solve(semi, (0.0, 1e9), initial, cfl=0.5, max_steps=3)

    def seconds(self) -> float:
        """Of a step."""
        began = time.perf_counter()  # (a number is read of each step, so it ends where it is done)
        self.solution = dg.solve(self.semi, 1e9, self.solution, cfl=0.5, max_steps=self.steps)
        return (time.perf_counter() - began) / self.steps


def asleep(comm: Any, work: Any) -> Any:
    """What rank 0 finds while the others sleep (waiting for messages would keep their cores busy)."""
    found, mark = None, Path(told["folder"], f"turn_{asleep.turn}")  # type: ignore[attr-defined]
    asleep.turn += 1  # type: ignore[attr-defined]
    if comm.rank == 0:
        found = work()
        mark.touch()
    else:
        while not mark.exists():
            time.sleep(0.01)
    comm.barrier()
    return found


asleep.turn = 0  # type: ignore[attr-defined]
told = json.loads(sys.argv[1])
STAGES = 5


def main() -> None:
    comm = mb.distributed.communicator()
    array = getattr(mb, told["array"])
    (nx, ny), order, steps = told["cells"], told["order"], told["steps"]
    alone = Turns(*problem((nx, ny), order, array), steps)
    share = Turns(*problem((nx // comm.size, ny), order, array), steps)
    half = Turns(*problem((nx, ny), order, mb.DArray[array]), steps)  # the same mesh on all: strong
    whole = Turns(*problem((nx * comm.size, ny), order, mb.DArray[array]), steps)
    rows: dict[str, list[float]] = {"alone": [], "share": [], "side by side": [], "divided": [], "strong": []}
    for _ in range(told["turns"]):
        for name, turns in (("alone", alone), ("share", share)):
            found = asleep(comm, turns.seconds)
            rows[name].append(comm.bcast_object(found))
        for name, turns in (("side by side", alone), ("divided", whole), ("strong", half)):
            comm.barrier()
            rows[name].append(max(comm.allgather_object(turns.seconds())))
    medians = {name: statistics.median(each) for name, each in rows.items()}
    part = whole.semi.local.part
    answer = {
        "processes": comm.size,
        "array": told["array"],
        "unknowns": alone.semi.unknowns,
        "order": order,
        "us": {name: round(1e6 * s, 1) for name, s in medians.items()},
        "weak": medians["alone"] / medians["divided"],
        "machine": medians["alone"] / medians["side by side"],
        "beside": medians["side by side"] / medians["divided"],
        "strong": medians["alone"] / medians["strong"] / comm.size,
        "us_a_stage": 1e6 * (medians["strong"] - medians["share"]) / STAGES,
        "cut_faces": len(part.faces),
        "neighbours": len(np.unique(part.ranks)),
        "bytes": whole.semi.local.operators.cut.nbytes(4) if len(part.faces) else 0,
        "engine": comm.engine,
        "place": str(mb.place(alone.solution.u)),
    }
    if comm.rank == 0:
        Path(told["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
