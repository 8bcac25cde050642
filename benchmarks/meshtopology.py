"""All entities of a mesh from the vertices of its cells: seconds, and memory beside that of the tables.

`python -m benchmarks.meshtopology [millions of tetrahedra]`. Peaks of memory are those of a process, so that
each case runs in one of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks._table import show

CASES = {"in order": "cells and vertices as `md.unit_cube` has them", "shuffled": "both in random order"}
LIMIT = 4.0  # times the memory of the tables


def measured(case: str, cells: int) -> dict[str, Any]:
    """One case, in this process."""
    from mirabelle import meshdata as md

    cube = md.unit_cube(round((cells / 6) ** (1 / 3)))
    x, table = cube.coordinates, cube.cells["tetrahedron"]
    if case == "shuffled":
        rng = np.random.default_rng(0)
        order = rng.permutation(len(x)).astype(np.int32)
        x, table = x[np.argsort(order)], order[table[rng.permutation(len(table))]]
    del cube
    before = _peak()
    start, cpu = time.perf_counter(), time.process_time()
    mesh = md.Mesh(x, table)
    seconds = {"checked": time.process_time() - cpu}
    maps: dict[str, Any] = {}
    for name, make in {
        "closures of cells": lambda: [mesh.closure("cell")],
        "support of faces": lambda: [mesh.support("face")],
        "closures of faces and edges": lambda: [mesh.closure("face"), mesh.closure("edge")],
        "exterior": list,
        "orientations": lambda: [mesh.orientations("cell", "edge"), mesh.orientations("cell", "face")],
    }.items():
        at = time.process_time()
        maps[name] = make()
        if name == "exterior":
            mesh.exterior()
        seconds[name] = time.process_time() - at
    known = {id(a): a.nbytes for made in maps.values() for m in made for a in _arrays(m)}
    return {
        "cells": len(table),
        "cpu_s": seconds,
        "wall_s": time.perf_counter() - start,
        "tables_bytes": sum(known.values()) + x.nbytes,
        "peak_bytes": _peak(),
        "peak_before_bytes": before,
    }


def _arrays(made: Any) -> list[Any]:
    if isinstance(made, np.ndarray):
        return [made]
    out = []
    for target in made.targets.values():
        out += [target.table] if target.table is not None else [target.rowptr, target.values]
    return out


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(cells: int = 10**7) -> None:
    rows = []
    for case in CASES:
        code = f"print(json.dumps(measured({case!r}, {cells})))"
        code = f"import json; from benchmarks.meshtopology import measured; {code}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        for name, seconds in found["cpu_s"].items():
            rows.append([f"{case}: {name}", f"{seconds:.1f}", "", ""])
        ratio = f"{found['peak_bytes'] / found['tables_bytes']:.1f}"
        total, wall = f"{sum(found['cpu_s'].values()):.1f}", f"{found['wall_s']:.1f}"
        rows.append([f"{case}: all of {found['cells']:,} tetrahedra", total, wall, ratio])
    notes = [
        f"Memory: the peak of the process divided by the tables that are kept; at most {LIMIT:g} is wanted.",
        *(f"{case}: {what}." for case, what in CASES.items()),
    ]
    show("Topology", ["case", "CPU s", "wall s", "memory"], rows, notes)


if __name__ == "__main__":
    run(int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 10**7)
