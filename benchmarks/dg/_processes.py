"""Cases in processes of their own, and what they found on disk after each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._measure import store
from benchmarks.dg._bounds import bounds
from benchmarks.dg._cases import Case


def measured(
    case: Case, limit_s: float, environment: Mapping[str, str] | None = None, **options: Any
) -> dict[str, Any]:
    """What `_one` finds of a case; "failed" says why there is not more."""
    told = {"physics": case.physics, "order": case.order, "cells": case.cells, **options}
    return {**case.as_json(), **answered("benchmarks.dg._one", told, limit_s, environment or {})}


def answered(
    module: str, options: Mapping[str, Any], limit_s: float, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The answer of `python -m module ANSWER OPTIONS`, complete or not."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-dg-") as folder:
        answer = Path(folder) / "answer.json"
        why = ""
        try:
            done = subprocess.run(
                [sys.executable, "-m", module, str(answer), json.dumps(options)],
                env={**os.environ, **environment},
                stderr=subprocess.PIPE,
                text=True,
                timeout=limit_s,
                check=False,
            )
            if done.returncode:
                why = _last_lines(done.stderr) or f"exit status {done.returncode}"
        except subprocess.TimeoutExpired:
            why = f"It took longer than {limit_s:g} s."
        found: dict[str, Any] = json.loads(answer.read_text()) if answer.exists() else {}
        return {**found, "failed": why} if why else found


def _last_lines(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:600] if lines else ""


class Results:
    """The cases so far; each `add` stores all of them, if there is a folder for them."""

    def __init__(self, name: str, folder: Path | None, **facts: Any) -> None:
        self.name, self.folder, self.facts = name, folder, facts
        self.cases: list[dict[str, Any]] = []

    def add(self, found: dict[str, Any]) -> None:
        self.cases.append(found)
        self.store()

    def store(self, **more: Any) -> None:
        if self.folder is not None:
            store(self.name, {**self.facts, **more, "cases": self.cases}, self.folder)


def ms(found: Mapping[str, Any], who: str) -> str:
    """Milliseconds of one contender, for tables."""
    value = found.get("summary", {}).get("who", {}).get(who)
    return f"{value['ms']:.3f}" if value else "-"


def rate(found: Mapping[str, Any], who: str) -> float | None:
    """Unknowns a second of one contender."""
    value = found.get("summary", {}).get("who", {}).get(who)
    return value["unknowns_per_s"] if value else None


def moved(found: Mapping[str, Any]) -> tuple[str, str, int]:
    """Launches of one right-hand side, bytes an unknown it reads and writes, and bytes in all."""
    program = found.get("compiled", {}).get("rhs")
    if program is None:
        return "-", "-", 0
    used = program["bytes_read"] + program["bytes_written"]
    return str(program["launches"]), f"{used / found['unknowns']:.0f}", used


def bound(found: Mapping[str, Any], which: str) -> str:
    """Bytes an unknown that a way of computing needs."""
    moved = bounds(found["physics"], found["order"], 1)
    return f"{moved[which]:.0f}" if moved else "-"


def temporaries(found: Mapping[str, Any]) -> str:
    """Megabytes that one right-hand side needs besides what it returns."""
    program = found.get("compiled", {}).get("rhs")
    return f"{program['temporary_bytes'] / 1e6:.1f}" if program else "-"


def remarks(cases: list[dict[str, Any]]) -> list[str]:
    """What failed, each in a sentence."""
    said = [f"{c['name']}: {c['failed']}" for c in cases if "failed" in c]
    for c in cases:
        for who, found in c.items():
            if isinstance(found, dict) and "failed" in found:
                said.append(f"{c['name']}, {who}: {found['failed']}")
        for who, found in c.get("times", {}).items():
            if "failed" in found:
                said.append(f"{c['name']}, {who}: {found['failed']}")
    return said
