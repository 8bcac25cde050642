"""Tables of the figures' times: on the terminal, as CSV, and what is judged."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _table
from benchmarks.paper_julia.figures import DESCENT, FIGURES, GRADIENT, KRONECKER, POWER, Figure

METHOD = (
    "Seconds of one call, the median of the rounds in which the contenders took turns. Of the power method on "
    "large matrices fewer than 1000 iterations were run (`iterations`), and the time is that of 1000. "
    "Derivatives: mirabelle's are mb.autodiff's of the model and the loss as they are; NumPy's and CuPy's are "
    "written by hand for this model and this loss; JAX's are jax.jacfwd's and jax.grad's. JAX compiles each "
    "program as a whole, its loops included. All values are checked against the first contender's."
)
# Ours over NumPy: microseconds an array operation at the smallest N, and the ratio at the largest.
TARGET_EXTRA_US, TARGET_RATIO, TARGET_JACFWD = 3.0, 1.05, 1.2


def said(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_duration(s)}" for name, s in seconds.items())


def _duration(seconds: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def series(cases: Sequence[Mapping[str, Any]], figure: Figure) -> dict[str, list[tuple[int, float]]]:
    """The lines of a figure: (N, seconds) by contender."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for case in cases:
        if case.get("figure") == figure.name:
            for name, seconds in case["seconds"].items():
                lines.setdefault(name, []).append((case["n"], seconds))
    return lines


def summary(cases: Sequence[Mapping[str, Any]], peer: str, best: str = "best") -> dict[str, Any]:
    """What is judged: ours beside `peer` ("NumPy" or "CuPy"), and beside jax.jacfwd where we differentiate.

    On the host by the best of the rounds, which other work on the machine disturbs least.
    """
    found: dict[str, Any] = {}
    for figure in FIGURES:
        rows = [c for c in cases if c["figure"] == figure.name and c.get(best)]
        if not rows:
            continue
        differentiates = figure in (DESCENT, GRADIENT)
        theirs = f"{peer}, by hand" if differentiates else peer
        entry: dict[str, Any] = {"judged_by": "best of the rounds" if best == "best" else "medians"}
        both = [c for c in rows if {"mirabelle", theirs} <= set(c[best])]
        if both:
            first, last = both[0], both[-1]
            entry |= {
                "peer": theirs,
                "smallest_n": first["n"],
                "largest_n": last["n"],
                "extra_us_per_operation": (first[best]["mirabelle"] - first[best][theirs])
                / first["operations"]
                * 1e6,
                "ratio_at_smallest_n": first[best]["mirabelle"] / first[best][theirs],
                "ratio_at_largest_n": last[best]["mirabelle"] / last[best][theirs],
                "worst_ratio": max(c[best]["mirabelle"] / c[best][theirs] for c in both),
            }
        for mode in ("jacfwd", "grad"):
            ratios = {
                c["n"]: c[best]["mirabelle"] / c[best][f"JAX {mode}"]
                for c in rows
                if {"mirabelle", f"JAX {mode}"} <= set(c[best])
            }
            if ratios:
                entry[f"over_jax_{mode}"] = ratios
        for other in (theirs, "JAX jacfwd"):
            ratios = [
                c[best]["mirabelle, recorded"] / c[best][other]
                for c in rows
                if {"mirabelle, recorded", other} <= set(c[best])
            ]
            if ratios:
                entry.setdefault("recorded_over", {})[other] = [min(ratios), max(ratios)]
        if figure is GRADIENT:
            ratios = entry.get("over_jax_jacfwd", {})
            entry["target"] = f"at most {TARGET_JACFWD} of jax.jacfwd's time at every N"
            entry["met"] = bool(ratios) and max(ratios.values()) <= TARGET_JACFWD
        elif both and peer == "CuPy":
            entry["target"] = f"at most {TARGET_RATIO} of CuPy's time at every N"
            entry["met"] = entry["worst_ratio"] <= TARGET_RATIO
        elif both:
            entry["target"] = (
                f"at most {TARGET_EXTRA_US:g} µs an array operation over {peer} at the smallest N, and "
                f"{TARGET_RATIO} of its time at the largest"
            )
            entry["met"] = (
                entry["extra_us_per_operation"] <= TARGET_EXTRA_US
                and entry["ratio_at_largest_n"] <= TARGET_RATIO
            )
        found[figure.name] = entry
    return found


def show_figure(figure: Figure, cases: Sequence[Mapping[str, Any]], judged: Mapping[str, Any]) -> None:
    """The times of a figure as a table, and what is judged below it."""
    lines = series(cases, figure)
    sizes = sorted({n for line in lines.values() for n, _ in line})
    if not sizes:
        return
    times = {name: dict(line) for name, line in lines.items()}
    rows = [
        [str(n), *(_duration(times[name][n]) if n in times[name] else "-" for name in times)] for n in sizes
    ]
    number = {POWER: "Figure 1: ", KRONECKER: "Figure 2: ", DESCENT: "Figure 3: "}.get(figure, "")
    _table.show(
        f"{number}{figure.title} ({figure.subtitle})", ["N", *times], rows, _notes(judged.get(figure.name, {}))
    )


def _notes(entry: Mapping[str, Any]) -> list[str]:
    notes = []
    if "peer" in entry:
        notes.append(
            f"Beside {entry['peer']} ({entry['judged_by']}): at N = {entry['smallest_n']} "
            f"{entry['extra_us_per_operation']:+.2f} µs an array operation, at N = {entry['largest_n']} "
            f"{entry['ratio_at_largest_n']:.3f} of its time."
        )
    for mode in ("jacfwd", "grad"):
        ratios = entry.get(f"over_jax_{mode}")
        if ratios:
            notes.append(
                f"Over JAX's {mode}: from {min(ratios.values()):.2f} to {max(ratios.values()):.2f} of its time."
            )
    for other, (least, most) in entry.get("recorded_over", {}).items():
        notes.append(f"Recorded beside {other}: from {least:.2f} to {most:.2f} of its time.")
    if "met" in entry:
        notes.append(f"Target: {entry['target']}: {'met' if entry['met'] else 'MISSED'}.")
    return notes


def write_table(path: Path, place: str, cases: Sequence[Mapping[str, Any]]) -> None:
    """All times as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", "place", "series", "N", "median_s", "best_s", "iterations_run"])
        for case in cases:
            for name, seconds in case.get("seconds", {}).items():
                best = case.get("best", {}).get(name, seconds)
                row = [case["figure"], place, name, case["n"], f"{seconds:.6g}", f"{best:.6g}"]
                writer.writerow([*row, case.get("iterations") or ""])
