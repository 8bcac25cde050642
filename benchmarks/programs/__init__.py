"""Compiled programs (`mb.compile`) beside eager arrays, NumPy, JAX, Numba and DaCe.

`python -m benchmarks programs [part ...] [--only names] [--seconds S] [--out DIR] [--tiny]`. DaCe needs NumPy
below 2 and a C++ compiler, so it has an environment of its own; DACE_PYTHON names its Python::

    python -m venv dace && dace/bin/pip install dace==1.0.2 networkx==3.4.2 "numpy<2" cmake
    DACE_PYTHON=dace/bin/python python -m benchmarks programs
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path

PARTS = {
    "kernels": "statement-loop kernels: seconds a call and of the first call, beside the best of others",
    "latency": "seconds of capture, transformation and lowering of graphs of 300 to 20000 nodes",
    "overhead": "microseconds of a call of a compiled program of one tiny kernel",
    "sizes": "first calls with fifty sizes: programs for each size beside one for any",
}

__all__ = ["PARTS", "run"]


def run(
    parts: Sequence[str] = (), only: str = "", seconds: float = 0.0, tiny: bool = False, out: str = ""
) -> int:
    """Run parts (all by default); what a tiny or partial run measures is stored only where `out` says where."""
    from benchmarks._measure import RESULTS

    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        raise SystemExit(f"programs has no part {unknown[0]!r}; it has {', '.join(PARTS)}")
    folder = Path(out) if out else None if tiny or only else RESULTS
    for part in parts or PARTS:
        start = time.perf_counter()
        module = importlib.import_module(f"benchmarks.programs.{part}")
        if part == "kernels":
            module.run(only=only, seconds=seconds, tiny=tiny, folder=folder)
        else:
            module.run(tiny=tiny, folder=folder)
        print(f"{part}: {time.perf_counter() - start:.0f} s\n", flush=True)
    return 0
