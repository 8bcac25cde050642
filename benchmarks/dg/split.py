"""Flux differences of a gas on one core: entropy-conserving right-hand sides on quadrilaterals and hexahedra,
beside our own weak form and JAX.

The process of a case is `python -m benchmarks.dg.split ANSWER OPTIONS` (JSON).
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._table import show
from benchmarks.dg import _one
from benchmarks.dg._cases import Case
from benchmarks.dg._processes import Results, answered, moved, rate, remarks
from benchmarks.dg._split_programs import FORMS, compiled_by_jax

ORDERS = {(64, 64): 3, (16,) * 3: 3, (8,) * 3: 5, (6,) * 3: 7}
QUICK = {(4, 4): 2, (2,) * 3: 2}
# Of the largest value. Waves are short, because means divide by logarithms of quotients: where neighbours are
# nearly equal, rates are small beside the rounding of these.
EQUAL = 1e-12
CELLS_A_WAVE = 2
LIMIT_S = 300.0
ONE_THREAD = ("MIRABELLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PJRT_NPROC", "NPROC")
JAX = tuple(f"jax {form}" for form in FORMS)
METHOD = (
    "Each case is run in a process of its own, on one core with one thread. Medians of up to 15 turns; the "
    "contenders take turns. compiled is mb.compile of semi.rhs with dg.FluxDifferencing(dg.ranocha), weak the "
    "same with dg.WeakForm(); surface fluxes are dg.ranocha for both. jax is one jax.jit of the operator of "
    "compiled, which agrees with it to 1e-12 of the largest value, in the forms that `jax_forms` tells; the "
    "quickest one counts. pid_s is seconds a node and right-hand side times cores. ratio is the time of the "
    "quickest of JAX over that of compiled. Cells are cubes, which neither takes advantage of: metric terms "
    "are given cell by cell."
)
ELSEWHERE = (
    "Trixi.jl's authors state about 1e-7 to 5e-7 s a node for entropy-conserving 3-D Euler on curved cells, "
    "p = 3 to 7, on one core: stated elsewhere, not measured here."
)


class Products(Case):
    """Squares or cubes which are cells themselves, for the tensor-product nodes of an order."""

    @property
    def name(self) -> str:
        cells = "quadrilaterals" if len(self.cells) == 2 else "hexahedra"
        return f"{cells} p{self.order}, {self.count}"

    @property
    def count(self) -> int:
        return math.prod(self.cells)

    @property
    def nodes(self) -> int:
        return self.count * (self.order + 1) ** len(self.cells)

    @property
    def unknowns(self) -> int:
        return self.nodes * (len(self.cells) + 2)


def case_of(cells: Sequence[int], order: int) -> Products:
    return Products("split", order, tuple(cells))


def problem(case: Products, form: Any = None) -> tuple[Any, Any]:
    """The semidiscretisation of a case, with flux differences or another volume form, and a smooth state."""
    import mirabelle as mb
    from mirabelle import dg

    d = len(case.cells)
    gas = dg.CompressibleEuler(d)
    upper = tuple(n / CELLS_A_WAVE for n in case.cells)
    cell = "quadrilateral" if d == 2 else "hexahedron"
    mesh = dg.box(case.cells, upper=upper, cell=cell, periodic=True)
    solver = dg.Solver(
        case.order,
        nodes="gauss-lobatto",
        surface_flux=dg.ranocha,
        volume=form or dg.FluxDifferencing(dg.ranocha),
    )
    semi = dg.Semidiscretization(mesh, gas, solver, array=mb.HostArray)

    def waves(x: Sequence[Any], t: Any) -> tuple[Any, ...]:
        """A flow whose density, velocity and pressure all vary, by half of what they are and more."""
        a = [2 * math.pi * c for c in x]
        velocity = [0.3 + 0.6 * mb.sin(a[(i + 1) % d]) for i in range(d)]
        return gas.conservative((1 + 0.5 * mb.sin(sum(a)), *velocity, 1 + 0.5 * mb.cos(a[0] - a[-1])))

    return semi, semi.state(waves)


# One case, in its process


def ours(field: _one.Field, name: str, what: str, semi: Any, u: Any) -> dict[str, Any]:
    """The right-hand side as one program; all that compute `what` must agree with the first that does."""
    import mirabelle as mb

    rhs, args = mb.compile(lambda u, t: semi.rhs(u, t)), (u, semi.scalar(0.0))
    begin = time.perf_counter()
    made = mb.to_numpy(rhs(*args))
    took = time.perf_counter() - begin
    field.calls[f"{name} rhs"] = lambda: rhs(*args)
    return {"rhs": {"first_s": took, **_one.counted(rhs, args), "difference": field.difference(what, made)}}


def peer(field: _one.Field, name: str, semi: Any, u: Any) -> dict[str, Any]:
    """The right-hand side in one of the forms."""
    import jax
    import numpy as np

    import mirabelle as mb

    rhs, v = compiled_by_jax(name.removeprefix("jax "), semi), jax.numpy.asarray(mb.to_numpy(u))
    begin = time.perf_counter()
    made = np.asarray(rhs(v))
    took = time.perf_counter() - begin
    off = field.difference("split", made)
    assert off <= EQUAL, f"It differs from the first by {off:.1e} of the largest value."
    field.waits[f"{name} rhs"] = jax.block_until_ready
    field.calls[f"{name} rhs"] = lambda: rhs(v)
    return {"version": jax.__version__, "rhs": {"first_s": took, "difference": off}}


def measure(case: Products, quick: bool, report: _one.Report) -> None:
    """Check and time all contenders."""
    from mirabelle import dg

    field = _one.Field("HostArray", quick)
    semi, u = problem(case)
    report("compiled", ours(field, "compiled", "split", semi, u))
    report("weak", ours(field, "weak", "weak", *problem(case, dg.WeakForm())))
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        for name in JAX:
            try:
                report(name, peer(field, name, semi, u))
            except Exception as error:
                report(name, {"failed": f"{type(error).__name__}: {error}"[:500]})
    else:
        report("jax", {"failed": "JAX is not installed."})
    times = field.times()
    report("times", times)
    report("summary", _one.summary(case, times))


def main() -> None:
    answer, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    if not options["quick"]:  # compiling on one core takes longer than all else that a quick form does
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    found: dict[str, Any] = {}

    def report(key: str, value: Any) -> None:
        found[key] = value
        answer.write_text(json.dumps(found, default=float))

    measure(case_of(options["cells"], options["order"]), options["quick"], report)


# All cases


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    results = Results(
        "dg_split", folder, threads=1, cores=1, method=METHOD, elsewhere=ELSEWHERE, jax_forms=FORMS
    )
    wanted = [n.strip() for n in only.split(",") if n.strip()]
    for case in [case_of(*of) for of in (QUICK if quick else ORDERS).items()]:
        if wanted and not any(n in case.name for n in wanted):
            continue
        options = {"cells": case.cells, "order": case.order, "quick": quick}
        found = answered("benchmarks.dg.split", options, LIMIT_S, dict.fromkeys(ONE_THREAD, "1"))
        results.add(concluded(case, found))
        print(said(results.cases[-1]), flush=True)
    report(results.cases)


def concluded(case: Products, found: dict[str, Any]) -> dict[str, Any]:
    """What was found of a case, with seconds a node, and how it compares with the quickest of JAX."""
    found = {**case.as_json(), "nodes": case.nodes, **found}
    seconds = {
        name.removesuffix(" rhs"): who["ms"] / 1e3
        for name, who in found.get("summary", {}).get("who", {}).items()
    }
    found["pid_s"] = {name: s / case.nodes for name, s in seconds.items()}
    best = min((name for name in JAX if name in seconds), key=seconds.__getitem__, default=None)
    found["best_jax"] = best
    found["ratio"] = seconds[best] / seconds["compiled"] if best and "compiled" in seconds else None
    return found


def said(found: dict[str, Any]) -> str:
    pid, ratio = found["pid_s"].get("compiled"), found["ratio"]
    text = f"{found['name']}: " + (f"{pid:.2e} s a node" if pid else found.get("failed", "nothing"))
    return text + (f", {ratio:.2f} times as quick as {found['best_jax']}" if ratio else "")


HEAD = (
    "case",
    "s/node: split",
    "weak",
    *[name.replace("jax", "JAX") for name in JAX],
    "M unknowns/s",
    "JAX",
    "ratio",
    "launches",
    "B/unknown",
    "weak: launches",
    "B/unknown",
)


def report(cases: list[dict[str, Any]]) -> None:
    notes = [
        "s/node: performance index, seconds x cores / nodes of one right-hand side.",
        "ratio: how many times as quick as the quickest of JAX.",
        *[f"JAX {form}: {meaning}." for form, meaning in FORMS.items()],
        ELSEWHERE,
        *remarks(cases),
    ]
    show("Entropy-conserving Euler, flux differences, one core", HEAD, [row(c) for c in cases], notes)


def shown(value: float | None, form: Callable[[float], str]) -> str:
    return form(value) if value else "-"


def row(c: dict[str, Any]) -> list[str]:
    split, weak = moved(c), moved({**c, "compiled": c.get("weak", {})})
    rates = [rate(c, f"{who} rhs") for who in ("compiled", c["best_jax"])]
    return [
        c["name"],
        *[shown(c["pid_s"].get(who), "{:.2e}".format) for who in ("compiled", "weak", *JAX)],
        *[shown(r, lambda r: f"{r / 1e6:.1f}") for r in rates],
        shown(c["ratio"], "{:.2f}".format),
        *split[:2],
        *weak[:2],
    ]


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of libraries neither hold it up nor fail at its end
