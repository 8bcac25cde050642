"""Distributed arrays: how programs scale over ranks, and what a statement, a halo, a new layout cost.

`python -m benchmarks distributed [part ...] [--out DIR] [--tiny]` starts its own ranks with mpiexec, each with
one thread and a core of its own. `python -m benchmarks.distributed [FOLDER]` draws again what is stored.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path

PARTS = {
    "overhead": "microseconds a statement on DArray beside the same on HostArray",
    "forests": "ghosts of a mesh, beside mpi4py's persistent messages",
    "halo": "a statement on a grid whose rows come from the neighbour",
    "transports": "a halo of 8 kB by MPI, by sockets, by Dask's comms",
    "redistribution": "from rows to columns, beside MPI's Alltoallv",
    "scaling": "the kernels that DaCe distributes on 1 and 2 ranks, beside NumPy, Dask and Heat",
}

__all__ = ["PARTS", "run"]


def run(parts: Sequence[str] = (), tiny: bool = False, out: str = "") -> int:
    """Run parts (all by default); what a tiny run measures is stored only where `out` says where."""
    from benchmarks._measure import RESULTS
    from benchmarks.distributed import _drawing, _ranks

    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        raise SystemExit(f"distributed has no part {unknown[0]!r}; it has {', '.join(PARTS)}")
    missing = _ranks.missing()
    if missing:
        raise SystemExit(missing)
    folder = Path(out) if out else None if tiny else RESULTS
    for part in parts or PARTS:
        start = time.perf_counter()
        importlib.import_module(f"benchmarks.distributed.{part}").run(tiny, folder)
        print(f"{part}: {time.perf_counter() - start:.0f} s\n", flush=True)
    if folder is not None:
        for path in _drawing.draw(folder):
            print(f"drawn {path.name}")
    return 0
