"""Patterns of matrices from what cells reach, beside SciPy's sum of as many triples: CPU seconds and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks._measure import peak_extra, store
from benchmarks._table import show
from mirabelle import meshdata as md

SIDE = 500  # 500 000 triangles


def best_cpu(f: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        t = time.process_time()
        result = f()
        times.append(time.process_time() - t)
        del result
    return min(times)


def triangles() -> dict[str, Any]:
    """What P1 and P2 reach; and P2 with its numbers at random, as an unordered mesh has them."""
    mesh = md.unit_square(SIDE)
    cells = mesh.points("cell")
    corners, edges = (mesh.closure("cell", name).target(name).table for name in ("vertex", "edge"))
    vertices, all_ = len(mesh.points("vertex")), len(mesh.points("vertex")) + len(mesh.points("edge"))
    quadratic = np.concatenate([corners, edges + vertices], axis=1)
    anyhow = np.random.default_rng(0).permutation(all_)[quadratic]
    return {
        "P1": md.Dofs(cells, corners, vertices),
        "P2": md.Dofs(cells, quadratic, all_),
        "P2, numbered at random": md.Dofs(cells, anyhow, all_),
        "P2, two components": md.Dofs(cells, quadratic, all_, block=(2,)),
    }


def by_triples(dofs: Any) -> Any:
    """What there is without slots: a matrix of triples, of ones."""
    table = dofs.table
    i = np.repeat(table, table.shape[1], axis=1).reshape(-1)
    j = np.tile(table, (1, table.shape[1])).reshape(-1)
    made = scipy.sparse.coo_array((np.ones(i.size), (i, j)), shape=(dofs.size, dofs.size)).tocsr()
    made.sum_duplicates()
    return made


def run(rounds: int = 0) -> None:
    record, table = [], []
    for name, dofs in triangles().items():
        made = md.pattern(dofs)
        ours, theirs = (best_cpu(lambda f=f, d=dofs: f(d), rounds or 3) for f in (md.pattern, by_triples))
        beyond = peak_extra(lambda d=dofs: md.pattern(d))
        slots = sum(s.nbytes for s in made.slots)
        record.append({
            "case": name, "cells": len(dofs.table), "entries": made.nnz, "cpu_s": ours,
            "scipy_triples_cpu_s": theirs, "bytes": made.nbytes, "bytes_of_slots": slots, "peak_bytes": beyond,
        })  # fmt: skip
        memory = f"{made.nbytes / 1e6:.0f}", f"{beyond / 1e6:.0f}"
        table.append([name, f"{made.nnz:,}", f"{ours:.2f}", f"{theirs:.2f}", *memory])
    show(
        f"Patterns of matrices from {2 * SIDE * SIDE:,} triangles: CPU seconds, best, and MB",
        ["cells", "entries", "pattern and slots", "SciPy's triples (one component)", "kept", "peak while made"],
        table,
    )
    store("patterns", {"cases": record})
