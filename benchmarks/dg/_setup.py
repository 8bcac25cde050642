"""One measurement of `setup` in a fresh process: `python -m benchmarks.dg._setup ANSWER OPTIONS` (JSON)."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.dg._cases import Case


class Clock:
    """Seconds of each stage since the one before."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.last = time.perf_counter()

    def passed(self, stage: str) -> None:
        now = time.perf_counter()
        self.stages[stage] = now - self.last
        self.last = now


def first_right_hand_side(cells: tuple[int, ...], order: int, compiled: bool) -> dict[str, float]:
    """From nothing to the rates of a wave on tetrahedra, stage by stage."""
    clock = Clock()
    import mirabelle as mb
    from mirabelle import dg

    clock.passed("import")
    from benchmarks.dg._cases import physics

    equations, initial, _ = physics("wave")
    mesh = dg.box(cells, cell="tetrahedron", periodic=True)
    clock.passed("mesh")
    semi = dg.Semidiscretization(mesh, equations, dg.Solver(order))
    clock.passed("operators")
    u = semi.state(initial)
    clock.passed("state")
    f = mb.compile(lambda u, t: semi.rhs(u, t)) if compiled else semi.rhs
    mb.materialize(f(u, semi.scalar(0.0)))
    clock.passed("first right-hand side")
    mb.materialize(f(u, semi.scalar(0.0)))
    clock.passed("second right-hand side")
    return clock.stages


def connectivity(cells: tuple[int, ...]) -> dict[str, float]:
    """A mesh with its faces, and which points of neighbours touch."""
    import numpy as np

    from mirabelle import dg

    clock = Clock()
    mesh = dg.box(cells, cell="tetrahedron", periodic=True)
    clock.passed("mesh and faces")
    points = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    mesh.face_permutation(points)
    clock.passed("points of faces")
    return clock.stages


def main() -> None:
    answer, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    case = Case("wave", options["order"], tuple(options["cells"]))
    found: dict[str, Any] = {"elements": case.count}
    if options["what"] == "connectivity":
        found["stages"] = connectivity(case.cells)
    else:
        found["stages"] = first_right_hand_side(case.cells, case.order, options["what"] == "compiled")
    found["seconds"] = sum(found["stages"][s] for s in options["counted"])
    answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
