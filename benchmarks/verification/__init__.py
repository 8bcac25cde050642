"""The standard problems of `mirabelle.dg` at full size: rates of errors, and numbers that are known.

`python -m benchmarks verification [case ...] [--out DIR] [--only NAMES] [--quick] [--array CuArray]`: cases are
listed by `_studies.STUDIES`; tables go to verification.txt, all figures to verification.json. Without names
those that take long are left out; their names end in "-full". Cases that are named run on any array type. An
example is anything with `setup(order=, cells=, array=, ...)`, which returns a semidiscretisation, the exact
solution as a function of (x, t), a time span and options of `dg.solve`.
"""

from __future__ import annotations

import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.verification._convergence import Table, convergence
from benchmarks.verification._findings import Findings, Quantity, Simulations
from benchmarks.verification._studies import STUDIES, USUAL, Bound, Study

__all__ = ["STUDIES", "USUAL", "Bound", "Findings", "Quantity", "Simulations", "Study", "Table"]
__all__ += ["convergence", "run"]


def run(cases: Sequence[str] = (), only: str = "", quick: bool = False, out: str = "", array: str = "") -> int:
    """Run studies (by default all that do not take long); 1 if something is not what it should be."""
    from benchmarks._measure import RESULTS, store

    if unknown := [c for c in cases if c not in STUDIES]:
        raise SystemExit(f"verification has no case {unknown[0]!r}; it has {', '.join(STUDIES)}")
    wanted = [n.strip() for n in only.split(",") if n.strip()]
    names = [n for n in cases or USUAL if not wanted or any(w in n for w in wanted)]
    partial = quick or not set(USUAL) <= set(names)
    folder = Path(out) if out else None if partial else RESULTS
    tables: list[dict[str, Any]] = []
    texts: list[str] = []
    if array and not cases:
        raise SystemExit(
            "Say which cases run on arrays of this type: verification taylor-green --array CuArray."
        )
    together = array or len(names) < 2
    for of, said in one_by_one(names, quick, array) if together else each_alone(names, quick):
        tables += of
        texts += said
        if folder is not None:
            store("verification", {"array": array, "summary": summary(tables), "tables": tables}, folder)
            (folder / "verification.txt").write_text("\n".join(texts))
    found = summary(tables)
    print(f"{found['met']} of {found['tables']} tables are as they should be. {' '.join(found['not_met'])}")
    return int(found["met"] < found["tables"])


def one_by_one(
    names: Sequence[str], quick: bool, array: str = ""
) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """The tables of studies as they are found, with their texts."""
    import mirabelle as mb

    for name in names:
        start = time.perf_counter()
        study = STUDIES[name].small() if quick else STUDIES[name]
        if array:
            study = study.on(getattr(mb, array))
        if minutes := 0.0 if quick else getattr(study, "minutes", 0.0):
            print(f"{name} takes about {minutes:g} min on one core.", flush=True)
        for table in prompt(study):
            text = f"{name}, {table}"
            print(text, flush=True)
            yield [{"case": name, **table.as_json()}], [text]
        print(f"{name}: {time.perf_counter() - start:.0f} s\n", flush=True)


def each_alone(names: Sequence[str], quick: bool) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """The tables of each study, which a process with one thread finds: as many at a time as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def run_alone(name: str) -> tuple[str, list[dict[str, Any]], list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, "-m", "benchmarks", "verification", name, "--out", folder]
            ran = subprocess.run(
                [*line, "--quick"] if quick else line,
                env={**os.environ, "BENCHMARKS_THREADS": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            found = Path(folder) / "verification.json"
            if ran.returncode or not found.exists():
                said = ran.stdout[-2000:] + ran.stderr[-4000:]
                raise RuntimeError(f"{name} ended with status {ran.returncode}:\n{said}")
            tables = json.loads(found.read_text())["tables"]
            return ran.stdout, tables, [found.with_suffix(".txt").read_text()]

    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        for said, tables, texts in pool.map(run_alone, names):
            print(said.rpartition("\n")[0].rpartition("\n")[0], flush=True)
            yield tables, texts


def prompt(study: Study | Bound | Simulations) -> Iterator[Any]:
    """The tables of a study, whose kernels are compiled at once.

    Beside other work the helper process, which has a low priority, would leave a simulation without its kernels
    for long.
    """
    import mirabelle as mb

    tables = iter(study.tables())
    while True:
        with mb.settings.changed(compiler="inline"):
            try:
                table = next(tables)
            except StopIteration:
                return
        yield table


def summary(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    missed = [t for t in tables if not t["met"]]
    worst = min(
        (t["rate_minus_expected"] for t in tables if t["rate_minus_expected"] is not None), default=math.nan
    )
    return {
        "tables": len(tables),
        "met": len(tables) - len(missed),
        "lowest_rate_minus_expected": worst,
        "not_met": [f"{t['case']} {t['cell']} p{t['order']}" for t in missed],
    }
