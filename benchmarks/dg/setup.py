"""How long it takes to begin: a wave on 25 000 tetrahedra from nothing to its first rates, and the faces of a
large mesh.

Cold is the first process with an empty cache of compiled kernels, warm a later one that finds what others
left.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.dg._cases import nearest_box
from benchmarks.dg._processes import answered

TETRAHEDRA, ORDER = 25_000, 3
LARGE = 2_500_000
TARGETS_S = {"cold": 5.0, "warm": 2.0, "connectivity": 30.0}
STAGES = ("mesh", "operators", "state", "first right-hand side")
LIMIT_S = 180.0
WARM_TIMES = 3
METHOD = (
    "Each measurement is a process of its own. seconds are those of mesh, operators, initial state and "
    "first right-hand side together, without the import of the library, which stands beside it. warm is the "
    "best of 3."
)


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    found: dict[str, Any] = {}
    cells = (4, 4, 4) if quick else nearest_box(TETRAHEDRA)
    for what in ("eager", "compiled"):
        with tempfile.TemporaryDirectory(prefix="mirabelle-dg-") as cache:
            environment = {"MIRABELLE_CACHE_DIR": cache}
            options = {"what": what, "cells": cells, "order": ORDER, "counted": STAGES}
            runs = [
                answered("benchmarks.dg._setup", options, LIMIT_S, environment) for _ in range(1 + WARM_TIMES)
            ]
        warm = [r for r in runs[1:] if "seconds" in r]
        found[f"{what}, cold"] = runs[0]
        found[f"{what}, warm"] = min(warm, key=lambda r: r["seconds"]) if warm else runs[1]
    large = (6, 6, 6) if quick else nearest_box(LARGE)
    found["connectivity"] = answered(
        "benchmarks.dg._setup",
        {"what": "connectivity", "cells": large, "order": 1, "counted": ["mesh and faces", "points of faces"]},
        LIMIT_S,
        dict(os.environ),
    )
    met = {name: f["seconds"] <= TARGETS_S[name.split(", ")[-1]] for name, f in found.items() if "seconds" in f}
    show(
        f"Setting up: s (targets: cold {TARGETS_S['cold']:g}, warm {TARGETS_S['warm']:g}, connectivity "
        f"{TARGETS_S['connectivity']:g})",
        ["", "tetrahedra", "seconds", "import", *STAGES, "second"],
        [row(name, f) for name, f in found.items()],
        [f"{name}: {f['failed']}" for name, f in found.items() if "failed" in f],
    )
    if folder is not None:
        store(
            "dg_setup",
            {"method": METHOD, "order": ORDER, "targets_s": TARGETS_S, "met": met, "measured": found},
            folder,
        )


def row(name: str, f: dict[str, Any]) -> list[str]:
    stages = f.get("stages", {})
    shown = ("import", *STAGES, "second right-hand side")
    return [
        name,
        str(f.get("elements", "-")),
        f"{f['seconds']:.2f}" if "seconds" in f else "-",
        *[f"{stages[s]:.3f}" if s in stages else "-" for s in shown],
    ]
