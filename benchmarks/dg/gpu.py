"""Wave, Euler and Navier-Stokes on a card, at the sizes of the thesis on CUDA graphs of array programs, beside
MIRGE's figures."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._table import show
from benchmarks.dg._bounds import MIRGE_H200
from benchmarks.dg._cases import Case, nearest_box
from benchmarks.dg._processes import Results, bound, measured, moved, ms, rate, remarks, temporaries

# Tetrahedra by order (table 2 of the thesis on CUDA graphs for Pytato).
TABLE = {
    "wave": {1: 125000, 2: 50000, 3: 25000, 4: 14000},
    "euler": {1: 32768, 2: 13284, 3: 6859, 4: 4913},
    "navier-stokes": {1: 82944, 2: 48000, 3: 24576, 4: 10368},
}
LIMIT_S = 60.0  # a case
ALL_S = 330.0
ENVIRONMENT = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "JAX_ENABLE_X64": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    # Else the host's part of this benchmark would say where JAX runs.
    "JAX_PLATFORMS": "",
}
METHOD = (
    "Each case is run in a process of its own. Seconds by events on the stream (JAX: by the clock, until "
    "its results are there); medians of up to 15 rounds in which the contenders take turns. compiled is "
    "mb.compile of semi.rhs and of a whole step of five stages, which replays one CUDA graph; eager the "
    "same functions of eager arrays; jax one jax.jit of the same operator. A step's unknowns count once a "
    "stage. All boxes are periodic; MIRGE's have boundaries. Its figures are those measured on an H200."
)


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    end = time.monotonic() + ALL_S
    results = Results(
        "dg_gpu", folder, card=card(quick), quick=quick, method=METHOD, mirge_h200_unknowns_per_s=mirge()
    )
    wanted = [n.strip() for n in only.split(",") if n.strip()]
    with tempfile.TemporaryDirectory(prefix="mirabelle-benchmarks-") as cache:
        for physics, sizes in TABLE.items():
            for order, size in sizes.items():
                if (wanted and not any(n in f"{physics} p{order}" for n in wanted)) or (quick and order > 2):
                    continue
                case = Case(physics, order, (2, 2, 2) if quick else nearest_box(size))
                left = end - time.monotonic()
                if left < 5:
                    results.add({**case.as_json(), "failed": "no time was left"})
                    continue
                who = ["compiled", "eager"] if quick else ["compiled", "eager", "jax"]
                found = measured(
                    case,
                    min(LIMIT_S, left),
                    {**ENVIRONMENT, "MIRABELLE_CACHE_DIR": cache},
                    where="CuArray",
                    who=who,
                    quick=quick,
                )
                ours, theirs = rate(found, "compiled rhs"), MIRGE_H200.get((physics, order))
                found["beside_mirge"] = ours / theirs if ours and theirs else None
                results.add(found)
                print(
                    f"{case.name}: "
                    f"{f'{ours / 1e9:.2f} G unknowns/s' if ours else found.get('failed', 'nothing')}",
                    flush=True,
                )
    met = {c["name"]: c["beside_mirge"] >= 1 for c in results.cases if c.get("beside_mirge")}
    results.store(summary={"at_least_mirge": met})
    report(results.cases)


def mirge() -> dict[str, float]:
    return {f"{physics} p{order}": value for (physics, order), value in MIRGE_H200.items()}


def card(quick: bool) -> dict[str, Any]:
    """What the figures depend on: asked in another process, so that none is held here."""
    import json
    import subprocess
    import sys

    code = f"import json; from benchmarks.gpu._card import Card; print(json.dumps(Card({quick}).facts()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit((done.stderr.strip().splitlines() or ["There is no card."])[-1]) from None
    return found


def billions(value: float | None) -> str:
    return f"{value / 1e9:.2f}" if value else "-"


HEAD = (
    "case, rhs: ms, eager, JAX, step: ms, eager, JAX, G unknowns/s, step, JAX, MIRGE, launches, B/unknown, "
    "3 kernels, one, TB/s, temporaries: MB"
)


def report(cases: list[dict[str, Any]]) -> None:
    note = (
        "B/unknown: read and written by one right-hand side; beside it what three kernels and one kernel need."
    )
    show("Tetrahedra on a card", HEAD.split(", "), [row(c) for c in cases], [note, *remarks(cases)])


def row(c: dict[str, Any]) -> list[str]:
    took = c.get("summary", {}).get("who", {}).get("compiled rhs", {}).get("ms")
    launches, each, used = moved(c)
    return [
        c["name"],
        *[ms(c, f"{w} rhs") for w in ("compiled", "eager", "jax")],
        *[ms(c, f"{w} step") for w in ("compiled", "eager", "jax")],
        *[billions(rate(c, w)) for w in ("compiled rhs", "compiled step", "jax rhs")],
        billions(MIRGE_H200.get((c["physics"], c["order"]))),
        launches,
        each,
        *[bound(c, k) for k in ("three_kernels", "one_kernel")],
        f"{used / took / 1e9:.2f}" if took and used else "-",
        temporaries(c),
    ]
