"""Right-hand sides and steps on the host: the vortex beside MFEM on one core, tetrahedra beside JAX on two
threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._table import show
from benchmarks.dg import _mfem
from benchmarks.dg._bounds import PYTATO_HOST
from benchmarks.dg._cases import Case, nearest_box
from benchmarks.dg._processes import Results, bound, measured, moved, ms, rate, remarks, temporaries

# Refinements of MFEM's mesh of 3 x 3 squares by order: about 150 000 to 330 000 unknowns.
REFINEMENTS = {1: 5, 3: 4, 5: 4}
STEPS = 25
# The mesh, and RK4's steps in the vortex' period of 2, for errors at its end.
COARSE = {1: (3, 400), 3: (2, 1000), 5: (1, 1000)}
PERIOD = 2.0
# Errors of two methods with different quadrature, of the same mesh and order.
ALIKE = 0.02
TETRAHEDRA = {1: 13000, 2: 10000, 3: 8000, 4: 6000}
LIMIT_S = 240.0
METHOD = (
    "Each case is run in a process of its own. Medians of up to 15 turns; the contenders take turns. rhs is "
    "one right-hand side, step a whole step (RK4 for the vortex, five stages of a low-storage method else); "
    "a step's unknowns count once a stage. compiled is mb.compile of semi.rhs and of the whole step, eager "
    "the same functions of eager arrays, jax one jax.jit of the same operator. bytes_read and bytes_written "
    "are those of one call's kernels, temporary_bytes the memory planned for what is not returned. The "
    "vortex runs on one thread on one core, and MFEM on one core: ex18 of PyMFEM's wheel with element "
    "assembly (ea), without (mf), and PyMFEM's classes, best of 3 runs, time steps divided by their four "
    "stages. The wheel is compiled for any x86-64 processor. Others have two threads."
)


def vortex(order: int, quick: bool) -> dict[str, Any]:
    """The vortex of one order, ours and MFEM's, and both errors after one period on a coarse mesh."""
    refine = 2 if quick else REFINEMENTS[order]
    cells = (3 * 2**refine,) * 2
    peers: dict[str, Any] = {}

    def ask() -> None:
        # Its own time step is shorter than what it allows; only the number of steps matters.
        step = 0.2 / cells[0] / (2 * order + 1)
        for way in _mfem.WAYS if _mfem.there() else ():
            found = _mfem.run(
                order=order,
                refine=refine,
                step=step,
                final=(3 if quick else STEPS) * step,
                way=way,
                times=1 if quick else 3,
            )
            before = peers.get(way)
            if before is None or found.get("unknowns_per_s", 0) > before.get("unknowns_per_s", 0):
                peers[way] = found

    ask()
    found = measured(
        Case("vortex", order, cells),
        LIMIT_S,
        {"MIRABELLE_NUM_THREADS": "1"},
        where="HostArray",
        who=["compiled", "eager"],
        quick=quick,
        cores=1,
    )
    ask()  # before and after ours: other work on the machine slows one of them down, seldom both
    found["mfem"] = peers
    if not quick:
        found["after_one_period"] = errors(order)
    return found


def errors(order: int) -> dict[str, Any]:
    """L2 errors of all fields together at the end of a period."""
    refine, steps = COARSE[order]
    case = Case("vortex", order, (3 * 2**refine,) * 2)
    found = measured(case, LIMIT_S, final=PERIOD, steps=steps)
    made: dict[str, Any] = {
        "cells": case.cells,
        "steps": steps,
        "mirabelle": found.get("error", found.get("failed")),
    }
    if _mfem.there():
        theirs = _mfem.run(order=order, refine=refine, step=PERIOD / steps, final=PERIOD, way="mf")
        made["mfem"] = theirs.get("error", theirs.get("failed"))
        if isinstance(made["mfem"], float) and isinstance(made["mirabelle"], float):
            made["alike"] = abs(made["mirabelle"] - made["mfem"]) <= ALIKE * made["mfem"]
    return made


def tetrahedra(physics: str, order: int, quick: bool) -> dict[str, Any]:
    case = Case(physics, order, (3, 3, 3) if quick else nearest_box(TETRAHEDRA[order]))
    return measured(case, LIMIT_S, where="HostArray", who=["compiled", "eager", "jax"], quick=quick)


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    results = Results("dg_host", folder, threads=2, method=METHOD, pytato_unknowns_per_s=PYTATO_HOST)
    wanted = [n.strip() for n in only.split(",") if n.strip()]
    for physics, orders in (("vortex", (1, 3, 5)), ("wave", (1, 2, 3, 4)), ("euler", (1, 2, 3, 4))):
        for order in orders:
            if wanted and not any(n in f"{physics} p{order}" for n in wanted):
                continue
            found = vortex(order, quick) if physics == "vortex" else tetrahedra(physics, order, quick)
            found["ratios"] = ratios(found)
            results.add(found)
            print(said(found), flush=True)
    results.store(summary=summary(results.cases))
    report(results.cases)


def best_mfem(found: dict[str, Any]) -> float | None:
    rates = [w["unknowns_per_s"] for w in found.get("mfem", {}).values() if "unknowns_per_s" in w]
    return max(rates, default=None)


def ratios(found: dict[str, Any]) -> dict[str, float | None]:
    """How many times as many unknowns a second as the best of the others; for the vortex, of MFEM's ways."""
    return {what: _ratio(found, what) for what in ("rhs", "step")}


def _ratio(found: dict[str, Any], what: str) -> float | None:
    ours = rate(found, f"compiled {what}")
    theirs = best_mfem(found) if found["physics"] == "vortex" else rate(found, f"jax {what}")
    return ours / theirs if ours and theirs else None


def lowest(found: dict[str, Any]) -> float | None:
    """The ratio that counts: MFEM's time is that of whole steps, JAX has both."""
    given = found["ratios"]
    counting = [given["step"]] if found["physics"] == "vortex" else list(given.values())
    return min((r for r in counting if r), default=None)


def said(found: dict[str, Any]) -> str:
    ours, low = rate(found, "compiled rhs"), lowest(found)
    text = f"{found['name']}: " + (f"{ours / 1e6:.1f} M unknowns/s" if ours else found.get("failed", "nothing"))
    return text + (f", {low:.2f} times the best other" if low else "")


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    met: dict[str, dict[str, bool]] = {"at_least_mfem": {}, "at_least_jax": {}, "at_least_pytato": {}}
    for c in cases:
        low = lowest(c)
        if low:
            met["at_least_mfem" if c["physics"] == "vortex" else "at_least_jax"][c["name"]] = low >= 1
        if c["physics"] in PYTATO_HOST:
            best = PYTATO_HOST[c["physics"]][1]
            met["at_least_pytato"][c["name"]] = (rate(c, "compiled rhs") or 0.0) >= best
    return met


def millions(value: float | None) -> str:
    return f"{value / 1e6:.1f}" if value else "-"


TWO = "case, compiled rhs, compiled step, eager step, MFEM ea, MFEM mf, MFEM classes, ratio, error, MFEM's"
THREE = (
    "case, rhs: ms, eager, JAX, step: ms, eager, JAX, M unknowns/s, JAX, ratio, of steps, launches, B/unknown, "
    "arrays, 3 kernels, temporaries: MB"
)


def report(cases: list[dict[str, Any]]) -> None:
    two = [c for c in cases if c["physics"] == "vortex"]
    if two:
        note = "ratio: steps compiled beside the best of MFEM's. error: after a period on a coarse mesh."
        notes = [note, *remarks(two)] + ([] if _mfem.there() else [_mfem.MISSING])
        title = "2-D Euler, quadrilaterals, one core: M unknowns/s"
        show(title, TWO.split(", "), [row_of_two(c) for c in two], notes)
    three = [c for c in cases if c["physics"] != "vortex"]
    if three:
        note = (
            "B/unknown: read and written by one right-hand side; beside it what arrays and three kernels need."
        )
        rows = [row_of_three(c) for c in three]
        show("3-D tetrahedra, two threads", THREE.split(", "), rows, [note, *remarks(three)])


def two_digits(value: float | None) -> str:
    return f"{value:.2f}" if value else "-"


def shown(value: Any) -> str:
    return f"{value:.3e}" if isinstance(value, float) else "-"


def row_of_two(c: dict[str, Any]) -> list[str]:
    return [
        c["name"],
        *[millions(rate(c, w)) for w in ("compiled rhs", "compiled step", "eager step")],
        *[millions(c["mfem"].get(w, {}).get("unknowns_per_s")) for w in _mfem.WAYS],
        two_digits(c["ratios"]["step"]),
        *[shown(c.get("after_one_period", {}).get(w)) for w in ("mirabelle", "mfem")],
    ]


def row_of_three(c: dict[str, Any]) -> list[str]:
    launches, each, _ = moved(c)
    return [
        c["name"],
        *[ms(c, f"{w} rhs") for w in ("compiled", "eager", "jax")],
        *[ms(c, f"{w} step") for w in ("compiled", "eager", "jax")],
        *[millions(rate(c, f"{w} rhs")) for w in ("compiled", "jax")],
        *[two_digits(c["ratios"][what]) for what in ("rhs", "step")],
        launches,
        each,
        *[bound(c, k) for k in ("arrays", "three_kernels")],
        temporaries(c),
    ]
