"""Discontinuous Galerkin operators as compiled array programs, beside MFEM, JAX and our own eager arrays.

`python -m benchmarks dg [part ...] [--out DIR] [--only NAMES] [--quick]`; `gpu` is run alone, on a machine
with a card (with MIRABELLE_CUDA=simulated and --quick it can be tried without one). MFEM is what PyMFEM's
wheel brings; it has an environment of its own, and MFEM_PYTHON names its Python::

    python -m venv mfem && mfem/bin/pip install mfem MFEM_PYTHON=mfem/bin/python python -m benchmarks dg host

Each case has a process of its own, and results are stored after each.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path

PARTS = {
    "host": "right-hand sides and steps on this machine: 2-D Euler beside MFEM, 3-D wave and Euler beside JAX",
    "split": "entropy-conserving Euler by flux differences on one core, beside our weak form and JAX",
    "setup": "seconds to the first right-hand side of a wave on 25 000 tetrahedra; the faces of 2.5 million",
    "scaling": "a gas over processes of this machine, or over cards: weak and strong, beside no messages",
    "parts": "a gmsh file of 5 million triangles, divided beforehand: what each of four processes holds of it",
    "launches": "a right-hand side with boundaries: kernels of unlike sizes as one launch, and apart",
    "gpu": "wave, Euler and Navier-Stokes on a card, as one graph, beside eager arrays and JAX",
}

__all__ = ["PARTS", "run"]


def run(parts: Sequence[str] = (), only: str = "", quick: bool = False, out: str = "") -> int:
    """Run parts (those of the host by default); a quick or partial run is stored only where `out` says
    where."""
    from benchmarks._measure import RESULTS

    if unknown := [p for p in parts if p not in PARTS]:
        raise SystemExit(f"dg has no part {unknown[0]!r}; it has {', '.join(PARTS)}")
    folder = Path(out) if out else None if quick or only else RESULTS
    for part in parts or ("host", "split", "setup"):
        start = time.perf_counter()
        importlib.import_module(f"benchmarks.dg.{part}").run(only=only, quick=quick, folder=folder)
        print(f"{part}: {time.perf_counter() - start:.0f} s\n", flush=True)
    return 0
