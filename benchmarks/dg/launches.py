"""Launches of a right-hand side with boundaries: kernels of unlike sizes as one launch, and each by itself.

`python -m benchmarks dg launches [--quick]`; with BENCHMARKS_ARRAY=CuArray on a card. (On simulated cards the
launches are those of a card, and times say nothing.)
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import mirabelle as mb
from benchmarks._measure import store
from benchmarks._table import show
from mirabelle import dg
from mirabelle.arraytypes.programs import joining

CASES = [(2, 10), (2, 40), (2, 160), (3, 4), (3, 12)]
QUICK = [(2, 4)]
METHOD = (
    "A compiled right-hand side of an Euler gas, order 3 (2-D) and 2 (3-D), in a box with an inflow, an "
    "outflow and walls on all other sides. joined is as it comes; apart is with each kernel as a launch of its "
    "own (joining.LAUNCH_BYTES = 0). us is the median of turns, which both take in one process."
)


def problem(dims: int, cells: int, array: Any) -> tuple[Any, Any]:
    """A gas in a box, and a state of it."""
    gas = dg.CompressibleEuler(dims)
    velocity = (0.3, *[0.0] * (dims - 1))
    mesh = dg.box((cells,) * dims)
    conditions: dict[str, Any] = dict.fromkeys(mesh.boundary_names, dg.SlipWall())
    conditions["x_neg"] = dg.FarField(tuple(map(float, gas.conservative((1.0, *velocity, 1.0)))))
    conditions["x_pos"] = dg.SubsonicOutflow(1.0)
    semi = dg.Semidiscretization(mesh, gas, dg.Solver(5 - dims), conditions, array=array)

    def initial(x: Any, t: Any) -> Any:
        return gas.conservative((1 + 0.1 * mb.sin(x[0]), *velocity, 1.0))

    return semi, semi.state(initial)


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    """Run the cases, print a table, store what was found."""
    array = getattr(mb, os.environ.get("BENCHMARKS_ARRAY", "HostArray"))
    turns = 3 if quick else 31
    found, limit = [], joining.LAUNCH_BYTES
    for dims, cells in QUICK if quick else CASES:
        semi, u = problem(dims, cells, array)
        t = semi.scalar(0.0)
        compiled = {}
        for name, most in (("joined", limit), ("apart", 0)):
            joining.LAUNCH_BYTES = most
            with mb.settings.changed(compiler="inline"):
                compiled[name] = mb.compile(lambda u, t, semi=semi: semi.rhs(u, t))
                compiled[name](u, t)
                compiled[name](u, t)
        joining.LAUNCH_BYTES = limit
        row: dict[str, Any] = {"dims": dims, "cells": cells**dims, "unknowns": u.size}
        seconds: dict[str, list[float]] = {name: [] for name in compiled}
        for _ in range(turns):
            for name, rhs in compiled.items():
                began = time.perf_counter()
                rhs(u, t)
                mb.synchronize()
                seconds[name].append(time.perf_counter() - began)
        for name, rhs in compiled.items():
            with mb.count() as counts:
                rhs(u, t)
            row[name] = {"launches": counts.launches, "us": round(1e6 * statistics.median(seconds[name]), 1)}
        found.append(row)
    if folder is not None:
        store(f"dg_launches_{array.__name__.split('.')[-1]}", {"method": METHOD, "cases": found}, folder)
    rows = [
        [f"{r['dims']}-D, {r['unknowns']}", *[r[n][k] for k in ("launches", "us") for n in ("apart", "joined")]]
        for r in found
    ]
    head = ["unknowns", "launches apart", "joined", "us apart", "us joined"]
    show("A right-hand side with boundaries", head, rows, [METHOD])
