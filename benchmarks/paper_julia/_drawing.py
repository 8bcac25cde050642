"""The figures as pictures: time over N, both axes logarithmic, as in the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper_julia._report import series
from benchmarks.paper_julia.figures import DESCENT, KRONECKER, POWER, Figure

PANELS = (POWER, KRONECKER, DESCENT)
# Results of a host and of a card, and what the panels' row is called.
SOURCES = (("paper_julia.json", "Host"), ("gpu_paper.json", "Card"))
INK, FAINT, GRID = "#2b2533", "#7b7384", "#e7e3ea"
COLOURS = {"mirabelle": "#a3216f", "NumPy": "#3d6fb4", "CuPy": "#3d6fb4", "JAX": "#d9822b"}
# What stands after the comma in a contender's name, or after "JAX".
STYLES = {
    "": ("-", "o"),
    "dense": ("--", "s"),
    "entries": (":", "D"),
    "buffers": (":", "D"),
    "recorded": ("-.", "v"),
    "compiled": ("--", "P"),
    "in place": (":", "D"),
    "by hand": ("-", "o"),
    "jacfwd": ("-", "o"),
    "grad": (":", "^"),
}
OURS = {"Host": "HostArray", "Card": "CuArray"}


def draw(folder: Path) -> list[Path]:
    """Draw what is stored in a folder: all panels in one picture, and each in one of its own."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    stored = [(json.loads((folder / f).read_text()), place) for f, place in SOURCES if (folder / f).exists()]
    stored = [(content, place) for content, place in stored if content.get("cases")]
    if not stored:
        return []

    def picture(panels: Sequence[Figure], name: str) -> Path:
        rows = len(stored)
        size = (6.2 * len(panels), 5.2 * rows)
        made = Picture(figsize=size, facecolor="white", layout="constrained")
        made.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
        FigureCanvasAgg(made)
        axes = made.subplots(rows, len(panels), squeeze=False)
        for row, (content, place) in zip(axes, stored, strict=True):
            for ax, panel in zip(row, panels, strict=True):
                _panel(ax, panel, content, place)
        path = folder / name
        made.savefig(path, dpi=110)
        return path

    known = [p for p in PANELS if any(series(content["cases"], p) for content, _ in stored)]
    single = [picture([p], f"paper_julia_figure{PANELS.index(p) + 1}.png") for p in known]
    return [picture(known, "paper_julia.png"), *single]


def _panel(ax: Any, panel: Figure, content: Mapping[str, Any], place: str) -> None:
    lines = series(content["cases"], panel)
    for name, points in lines.items():
        who, _, way = name.replace("JAX ", "JAX, ").partition(", ")
        dashes, marker = STYLES[way]
        ours = who == "mirabelle"
        ax.plot(
            [n for n, _ in points],
            [s for _, s in points],
            dashes,
            marker=marker,
            color=COLOURS[who],
            lw=2.2 if ours else 1.6,
            ms=5 if ours else 4,
            zorder=3 if ours else 2,
            label=name.replace("mirabelle", OURS[place]),
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    _ticks(ax, sorted({n for points in lines.values() for n, _ in points}))
    ax.set_title(panel.title, color=INK, size=13, weight="bold", loc="left", pad=22)
    ax.text(
        0, 1.02, f"{_machine(content, place)}: {panel.subtitle}", color=FAINT, size=9.5, transform=ax.transAxes
    )
    ax.set_xlabel("N", color=INK, size=11)
    ax.set_ylabel("time (s)", color=INK, size=11)
    ax.grid(color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=FAINT, labelsize=9.5, which="both", length=0)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    if not lines:
        ax.set_axis_off()
        return
    ax.legend(frameon=True, framealpha=0.9, edgecolor="none", labelcolor=INK, fontsize=9, loc="upper left")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * (high / low) ** (0.075 * len(lines)))  # room for the legend above the curves


def _ticks(ax: Any, sizes: Sequence[int]) -> None:
    """Every power of two that was measured, every other one where they are many."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    shown = list(sizes) if len(sizes) < 10 else list(sizes[::2])
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"$2^{{{round(n).bit_length() - 1}}}$"))
    ax.yaxis.set_minor_locator(NullLocator())


def _machine(content: Mapping[str, Any], place: str) -> str:
    machine = content["machine"]
    if place == "Host":
        return f"{machine['cpu']}, {content['threads']} threads"
    return str(machine.get("gpu") or "simulated card")
