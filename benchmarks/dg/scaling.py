"""A gas over processes of this machine: each with as many cells as one has alone (weak), or with its share of
those (strong).

`python -m benchmarks dg scaling [--quick] [--only COUNTS]`; with BENCHMARKS_ARRAY=CuArray on cards, one a
process. Each job has a process for each part, one thread each; those take turns: one alone, all side by side
with a problem of their own each, and all together.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.gpu._card import Card

# Cells of one process, order: 65 536 unknowns, and sizes at which a step takes a fraction and a multiple.
HOST = [((32, 32), 3), ((16, 16), 3), ((128, 64), 3)]
CARDS = [((560, 560), 3), ((176, 178), 3), ((44, 44), 3)]
QUICK = [((8, 8), 2)]
METHOD = (
    "us is microseconds a step (five stages of Carpenter and Kennedy, cfl 0.5 of which the next step is read, "
    "compiled), the median of the turns and the slowest process of each. weak is the time of one process alone "
    "over that of all together with as many cells each; machine is the time of one alone over that of all "
    "side by side, each with a problem of its own and no messages: what cores take from each other, which no "
    "program exceeds. beside is weak over machine: what messages and waiting cost. strong is the time of one "
    "over that of all with a share of the same cells each, over their number; stage is by how many "
    "microseconds a stage of those takes longer than one process alone with such a share."
)


STAGES, FURTHER = 5, (8, 64, 512)
MODEL = (
    "A model, not a measurement: microseconds a step beyond problems side by side are a constant and so many a "
    "byte sent, fitted to the jobs of two processes; with n processes the constant is taken log2(n) times, and "
    "parts are squares with neighbours on all sides. Networks between machines are not in it."
)


def counts(only: str) -> list[int]:
    """How many processes."""
    if only:
        return [int(n) for n in only.split(",")]
    cores = os.cpu_count() or 1
    return [n for n in (2, 4, 8, 16) if n <= cores]


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    """Run the jobs, print a table, store what was found after each."""
    array = os.environ.get("BENCHMARKS_ARRAY", "HostArray")
    cases = QUICK if quick else HOST if array == "HostArray" else CARDS
    turns, steps = (3, 4) if quick else (15, 40)
    found: list[dict[str, Any]] = []
    for n in counts(only):
        for cells, order in cases:
            found.append(job(n, array, cells, order, turns, steps))
            made = modelled(found)
            if folder is not None:
                name = "dg_scaling" if array == "HostArray" else f"dg_scaling_{array}"
                card = {} if array == "HostArray" else {"card": Card(tiny=quick).facts()}
                store(name, {"method": METHOD, **card, "cases": found, "model": made}, folder)
    rows = [
        [
            f"{c['processes']} x {c['unknowns']}",
            *[c["us"][name] for name in ("alone", "side by side", "divided", "strong")],
            *[f"{c[name]:.3f}" for name in ("weak", "machine", "beside", "strong")],
            f"{c['us_a_stage']:.1f}",
            c["bytes"],
        ]
        for c in found
    ]
    head = ["processes x unknowns", "alone", "side by side", "divided", "shared", "weak", "machine", "beside",
            "strong", "stage", "bytes"]  # fmt: skip
    show(f"A gas over processes, {array}", head, rows, [METHOD])
    told = [[f"{m['unknowns']}", *[f"{m['weak'][str(n)]:.3f}" for n in FURTHER]] for m in made["sizes"]]
    show("What a model says of more: weak", ["unknowns each", *map(str, FURTHER)], told, [MODEL])


def modelled(found: list[dict[str, Any]]) -> dict[str, Any]:
    """What the jobs of two processes say of more: fitted to what messages cost beyond problems side by side."""
    two = [c for c in found if c["processes"] == 2]
    if not two:
        return {"says": MODEL, "sizes": []}
    beyond = np.array([c["us"]["divided"] - c["us"]["side by side"] for c in two])
    terms = np.array([[1.0, STAGES * c["bytes"]] for c in two])
    latency, per_byte = np.maximum(np.linalg.lstsq(terms, beyond, rcond=None)[0], 0.0)
    sizes = []
    for c in two:
        nodes = (c["order"] + 1) ** 2
        sides = 4 * math.sqrt(c["unknowns"] / 4 / nodes)  # of a square part, in cells
        sent = sides * (c["order"] + 1) * 4 * 8
        weak = {}
        for n in FURTHER:
            more = latency * math.log2(n) + per_byte * STAGES * sent
            weak[str(n)] = c["us"]["side by side"] / (c["us"]["side by side"] + more)
        sizes.append({"unknowns": c["unknowns"], "weak": weak})
    return {"says": MODEL, "us_a_step": float(latency), "us_a_byte": float(per_byte), "sizes": sizes}


def job(n: int, array: str, cells: tuple[int, int], order: int, turns: int, steps: int) -> dict[str, Any]:
    """What the processes of one job find."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-scaling-") as folder:
        answer = Path(folder, "answer.json")
        told = {"array": array, "cells": cells, "order": order, "turns": turns, "steps": steps,
                "folder": folder, "answer": str(answer)}  # fmt: skip
        threads = dict.fromkeys(("MIRABELLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        line = [sys.executable, "-m", "mirabelle", "run", "-n", str(n), "-m", "benchmarks.dg._scaling_program"]
        subprocess.run([*line, json.dumps(told)], env={**os.environ, **threads}, check=True, timeout=900)
        made: dict[str, Any] = json.loads(answer.read_text())
        return made
