"""The figure: efficiencies beside the peers', and what statements, halos and new layouts cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.distributed._cases import CASES
from benchmarks.paper_julia._drawing import FAINT, GRID, INK

COLOURS = {
    "DArray": "#a3216f",
    "DArray, compiled": "#c8559b",
    "side by side": "#b4b4c0",
    "mpi4py": "#6b4fa0",
    "HostArray": "#d58bb8",
    "NumPy": "#3d6fb4",
    "Dask, threads": "#8fb8a0",
    "Dask, cluster": "#3f8f6b",
    "Heat": "#d9822b",
}


def draw(folder: Path) -> list[Path]:
    """Draw what is stored in a folder; nothing if the scaling is not there."""
    scaling = _stored(folder, "scaling")
    if scaling is None:
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(14, 14), facecolor="white", layout="constrained")
    made.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
    FigureCanvasAgg(made)
    grid = made.add_gridspec(4, 2)
    machine = f"{scaling['machine']['cpu']}, {scaling['cores']['physical']} cores"
    for row, way in enumerate(("strong", "weak")):
        ax = made.add_subplot(grid[row, :])
        _efficiencies(ax, way, scaling["efficiency"][way], machine)
    _times(made.add_subplot(grid[2, :]), scaling["efficiency"]["time over DArray's on 2 processes"])
    halo, redistribution = _stored(folder, "halo"), _stored(folder, "redistribution")
    if halo is not None:
        _halo(made.add_subplot(grid[3, 0]), halo)
    if redistribution is not None:
        _redistribution(made.add_subplot(grid[3, 1]), redistribution)
    path = folder / "distributed.png"
    made.savefig(path, dpi=110)
    return [path]


def _stored(folder: Path, part: str) -> Any:
    path = folder / f"distributed_{part}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _efficiencies(ax: Any, way: str, found: Mapping[str, Mapping[str, float]], machine: str) -> None:
    _bars(ax, found)
    said = {
        "strong": "the work of one rank on two: T(1) / (2 T(2)); of HostArray and NumPy, on two threads",
        "weak": "twice the work on two ranks: T(1) / T(2)",
    }[way]
    _frame(ax, f"{way.capitalize()} scaling", f"{machine}: {said}")
    ax.set_ylabel("efficiency", color=INK, size=11)
    ax.set_ylim(0, 1.6)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, ncols=min(len(found), 5), loc="upper right")


def _times(ax: Any, found: Mapping[str, Mapping[str, float]]) -> None:
    _bars(ax, found, base=1.0)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * 4)  # room for the legend
    _frame(ax, "Time over DArray's", "the work of one rank on two processes, or on two threads of one")
    ax.set_ylabel("ratio", color=INK, size=11)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, ncols=min(len(found), 5), loc="upper right")


def _bars(ax: Any, found: Mapping[str, Mapping[str, float]], base: float = 0.0) -> None:
    """Bars of each contender by kernel, which stand on (or hang from) a base."""
    labels = [c.label for c in CASES]
    width = 0.82 / max(len(found), 1)
    for i, (name, each) in enumerate(found.items()):
        xs = [x + (i - (len(found) - 1) / 2) * width for x, k in enumerate(labels) if k in each]
        heights = [each[k] - base for k in labels if k in each]
        ax.bar(xs, heights, width * 0.92, bottom=base, color=COLOURS[name], label=name)
    ax.axhline(1.0, color=FAINT, lw=1)
    ax.set_xticks(range(len(labels)), labels)


def _halo(ax: Any, content: Mapping[str, Any]) -> None:
    cases = content["cases"]
    ns = [c["n"] for c in cases]
    lines = {
        "messages first": ("in_turn", "--", "#3d6fb4"),
        "overlapped": ("overlapped", "-", COLOURS["DArray"]),
    }
    for label, (key, dashes, colour) in lines.items():
        ratios = [c[key]["best_s"] / c["local"]["best_s"] for c in cases]
        ax.plot(ns, ratios, dashes, marker="o", ms=4, lw=2, color=colour, label=label)
    ax.axhline(1.0, color=FAINT, lw=1)
    ax.set_xscale("log", base=2)
    ax.set_xlabel("n of an n x n grid", color=INK, size=11)
    ax.set_ylabel("time over that without messages", color=INK, size=11)
    _frame(ax, "A five-point statement on 2 ranks", "beside each rank's rows by themselves")
    ax.legend(frameon=False, labelcolor=INK, fontsize=9)


def _redistribution(ax: Any, content: Mapping[str, Any]) -> None:
    cases = content["cases"]
    lines = {
        "redistribute": ("redistribute", COLOURS["DArray"]),
        "packed, Alltoallv, unpacked": ("by_hand", "#3d6fb4"),
        "Alltoallv alone": ("alltoallv", FAINT),
    }
    for label, (key, colour) in lines.items():
        rates = [c["bytes_moved"] / c[key]["best_s"] / 1e9 for c in cases]
        ax.plot(
            [c["bytes_moved"] / 2**20 for c in cases], rates, marker="o", ms=4, lw=2, color=colour, label=label
        )
    ax.set_xscale("log", base=2)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("MiB that change their rank", color=INK, size=11)
    ax.set_ylabel("GB/s", color=INK, size=11)
    _frame(ax, "From rows to columns on 2 ranks", "a matrix of doubles, beside mpi4py")
    ax.legend(frameon=False, labelcolor=INK, fontsize=9)


def _frame(ax: Any, title: str, subtitle: str) -> None:
    ax.set_title(title, color=INK, size=13, weight="bold", loc="left", pad=22)
    ax.text(0, 1.02, subtitle, color=FAINT, size=9.5, transform=ax.transAxes)
    ax.grid(color=GRID, lw=0.8, axis="y")
    ax.set_axisbelow(True)
    ax.tick_params(colors=FAINT, labelsize=9.5, which="both", length=0)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
