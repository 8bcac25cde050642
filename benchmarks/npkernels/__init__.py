"""NumPy programs of the kind DaCe compiles, each written once: only the arrays' constructor is swapped.

`KERNELS` holds them by name. `python -m benchmarks npkernels` checks each against NumPy and times
it, as it is and under `mb.compile`, beside NumPy, Numba and JAX.
"""

from __future__ import annotations

from benchmarks.npkernels import (
    elementwise,
    flow,
    learning,
    linear,
    particles,
    paths,
    quantum,
    signals,
    solvers,
    statistics,
    stencils,
    triangles,
    weather,
)
from benchmarks.npkernels._kernel import KERNELS

FAMILIES = (
    linear,
    triangles,
    solvers,
    statistics,
    stencils,
    weather,
    flow,
    particles,
    learning,
    elementwise,
    signals,
    paths,
    quantum,
)

__all__ = ["FAMILIES", "KERNELS", "run"]


def run(
    only: str = "",
    rounds: int = 0,
    peers: str = "compiled,numba,jax",
    sources: str = "",
    out: str = "",
    tiny: bool = False,
) -> None:
    """Time the kernels of this name, or those whose names contain it; all of them by default.

    `sources` is a folder that is laid out as NPBench's checkout: its kernels are run as they are (`only`: a
    list of names), and the rows are stored in the folder `out`. With BENCHMARKS_ARRAY=CuArray they run on a
    card, beside CuPy's arrays (`tiny`: at their smallest sizes).
    """
    if sources:
        from benchmarks.npkernels._sources import run_sources

        run_sources(sources, only, rounds or 5, out, tiny)
        return
    from benchmarks.npkernels._contenders import PEERS
    from benchmarks.npkernels._report import report

    chosen = [KERNELS[only]] if only in KERNELS else [k for n, k in KERNELS.items() if only in n]
    if not chosen:
        raise SystemExit(f"there is no kernel {only!r}; there are {', '.join(KERNELS)}")
    asked = [p.strip() for p in peers.split(",")]
    unknown = [p for p in asked if p not in ("numpy", "compiled", *PEERS)]
    if unknown:
        raise SystemExit(f"there is no peer {unknown[0]!r}; there are numpy, compiled, {', '.join(PEERS)}")
    report(chosen, rounds or 7, asked, keep=not only and set(PEERS) <= set(asked))
