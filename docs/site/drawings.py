"""Pictures of the pages on speed: on transparent paper, in colours that can be seen on light and on dark."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OURS = ("compiled", "mirabelle", "as it is", "compiled, of pairs", "buffers", "mirabelle, compiled")
COLOURS = {"host": "#4f86c6", "one card": "#c2478f", "two cards": "#e08a2e"}
INK = "#8a8494"
WIDTH, TEXT = 5.6, 12  # inches, points


def canvas(width: float, height: float, rows: int = 1) -> tuple[Any, list[Any]]:
    """A figure and its panels, one below the other. (A telephone shows it at two thirds of its size.)"""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    FigureCanvasSVG(figure)
    panels = figure.subplots(rows, 1, squeeze=False)[:, 0]
    for ax in panels:
        ax.set_facecolor("none")
        ax.tick_params(colors=INK, which="both", labelsize=TEXT)
        ax.grid(True, color=INK, alpha=0.25, linewidth=0.6)
        for side, spine in ax.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
    return figure, list(panels)


def save(figure: Any, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure.savefig(path, transparent=True, metadata={"Date": None})


def reference(measured: list[dict[str, float]]) -> str:
    """Whom the others are compared with."""
    for who in ("numpy", "NumPy", "cupy", "CuPy", "dense", "scipy", "hand"):
        if any(who in found and len(found) > 1 for found in measured):
            return who
    return ""


def beside_numpy(measured: list[dict[str, float]], path: Path) -> str:
    """Each contender's cases as dots over how many times as fast as NumPy (or CuPy, ...) they are.

    Returns who that is, or nothing where there is none to compare with.
    """
    base = reference(measured)
    if not base:
        return ""
    speeds: dict[str, list[float]] = {}
    for found in measured:
        for who, t in found.items():
            if base in found and who != base:
                speeds.setdefault(who, []).append(found[base] / t)
    speeds = dict(
        sorted(((w, s) for w, s in speeds.items() if len(s) > 2), key=lambda item: mean(item[1]))[-8:]
    )
    if not speeds:
        return ""
    figure, (ax,) = canvas(WIDTH, 1.1 + 0.42 * len(speeds))
    for row, (who, found) in enumerate(speeds.items()):
        colour = COLOURS["one card"] if who in OURS or who.startswith("mirabelle") else COLOURS["host"]
        ax.scatter(found, [row] * len(found), s=16, color=colour, alpha=0.45, linewidths=0)
        ax.scatter([mean(found)], [row], s=70, color=colour, marker="D", linewidths=0)
        ax.annotate(f"{mean(found):.2g}", (mean(found), row), (0, 8), textcoords="offset points", ha="center",
                    color=INK, fontsize=TEXT - 1)  # fmt: skip
    ax.axvline(1, color=INK, linewidth=1)
    ax.set_xscale("log")
    ax.set_yticks(range(len(speeds)), list(speeds))
    ax.set_ylim(-0.6, len(speeds) - 0.3)
    names = {"numpy": "NumPy", "cupy": "CuPy", "scipy": "SciPy", "hand": "what is written by hand"}
    said = f"times as fast as {names.get(base, base)}\n(diamonds: geometric means)"
    ax.set_xlabel(said, color=INK, fontsize=TEXT)
    save(figure, path)
    return names.get(base, base)


def mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs))


# One program in three places: what a panel is called, the figure and the series of its rows, how many entries
# of the matrix a turn goes through, how many turns a row has, and what its cases on two cards are called.
PROGRAMS = [
    ("Power iteration", "power", "mirabelle", lambda n: n * n, 1000, "power iteration "),
    (
        "Proximal gradient descent",
        "descent",
        "mirabelle, compiled",
        lambda n: 100 * n,
        25,
        "proximal gradient ",
    ),
    ("Norm of a Kronecker product", "kronecker", "mirabelle, entries", lambda n: n**4, 1, "Kronecker norm "),
]


def entries(text: str, figure: str) -> float:
    """The size of a case of the runs on two cards, "65536" or "8 x 10^8", as entries of its matrix."""
    if " x 10^" in text:
        factor, power = text.split(" x 10^")
        return float(factor) * 10.0 ** int(power)
    return float(text) ** (4 if figure == "kronecker" else 2)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def points(results: Path) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """For each program and each place: (entries, entries a second)."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {p[0]: {c: [] for c in COLOURS} for p in PROGRAMS}
    for title, figure, series, size, turns, _ in PROGRAMS:
        for file, place in (("paper_julia.csv", "host"), ("gpu_paper.csv", "one card")):
            for row in rows(results / file):
                if row["figure"] == figure and row["series"] == series:
                    n = size(int(row["N"]))
                    found[title][place].append((n, n * turns / float(row["median_s"])))
    for row in rows(results / "gpu_distributed_2.csv"):
        for title, figure, *_, name in PROGRAMS:
            text = row["case"].removeprefix(name)
            if text != row["case"] and "," not in text and row["one rank"]:
                n = entries(text, figure)
                found[title]["one card"].append((n, n / float(row["one rank"]) * 1e6))
                found[title]["two cards"].append((n, n / float(row["microseconds"]) * 1e6))
    return found


def one_program(results: Path, path: Path) -> None:
    """The speed of three programs in three places."""
    figure, panels = canvas(WIDTH, 8.4, len(PROGRAMS))
    for ax, (title, places) in zip(panels, points(results).items(), strict=True):
        for place, found in places.items():
            found.sort()
            ax.plot(
                *zip(*found, strict=True), marker="o", markersize=5, color=COLOURS[place], label=place, lw=2
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(title, color=INK, fontsize=TEXT + 1, loc="left")
        ax.set_ylabel("entries a second", color=INK, fontsize=TEXT)
    panels[-1].set_xlabel("entries of the matrix", color=INK, fontsize=TEXT)
    panels[0].legend(frameon=False, labelcolor=INK, fontsize=TEXT)
    save(figure, path)
