"""Errors of the standard problems of `mirabelle.dg` under refinement, at full size.

`python -m benchmarks verification [case ...] [--out DIR] [--only NAMES] [--quick]`: cases are listed by
`_studies.STUDIES`; tables go to verification.txt, all figures to verification.json. An example is anything
with `setup(order=, cells=, array=, ...)`, which returns a semidiscretisation, the exact solution as a function
of (x, t), a time span and options of `dg.solve`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.verification._convergence import Table, convergence
from benchmarks.verification._studies import STUDIES, Bound, Study

__all__ = ["STUDIES", "Bound", "Study", "Table", "convergence", "run"]


def run(cases: Sequence[str] = (), only: str = "", quick: bool = False, out: str = "") -> int:
    """Run studies (all by default); 1 if a rate is not what it should be, or something failed."""
    from benchmarks._measure import RESULTS, store

    if unknown := [c for c in cases if c not in STUDIES]:
        raise SystemExit(f"verification has no case {unknown[0]!r}; it has {', '.join(STUDIES)}")
    wanted = [n.strip() for n in only.split(",") if n.strip()]
    names = [n for n in cases or STUDIES if not wanted or any(w in n for w in wanted)]
    partial = quick or len(names) < len(STUDIES)
    folder = Path(out) if out else None if partial else RESULTS
    tables: list[dict[str, Any]] = []
    texts: list[str] = []
    for name in names:
        start = time.perf_counter()
        study = STUDIES[name].small() if quick else STUDIES[name]
        for table in study.tables():
            tables.append({"case": name, **table.as_json()})
            texts.append(f"{name}, {table}")
            print(texts[-1], flush=True)
            if folder is not None:
                store("verification", {"summary": summary(tables), "tables": tables}, folder)
                (folder / "verification.txt").write_text("\n".join(texts))
        print(f"{name}: {time.perf_counter() - start:.0f} s\n", flush=True)
    found = summary(tables)
    print(f"{found['met']} of {found['tables']} tables are as they should be. {' '.join(found['not_met'])}")
    return int(found["met"] < found["tables"])


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
