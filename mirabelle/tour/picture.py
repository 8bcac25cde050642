"""The picture of the tour: the pattern, and what was measured on the way."""

from __future__ import annotations

import os
from typing import Any

PAPER, INK, FAINT, RULE = "#14101a", "#f3e9dc", "#8d8494", "#2c2534"
COLOURS = ["#f2b134", "#e8615a", "#c65fa4", "#9a8cf5", "#6fb3b8"]
MARKERS = ["o", "s", "^", "D", "v"]
WIDTH, HEIGHT = 16.0, 9.4

Curve = list[tuple[int, float]]


def picture(
    folder: str,
    shots: list[tuple[int, Any]],
    bars: list[tuple[str, float, str]],
    errors: dict[str, Curve],
    norms: dict[str, Curve],
    losses: dict[str, list[float]],
) -> str:
    """Draw the results of the tour; returns the file's path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.text(0.03, 0.935, "One program, any array", color=INK, size=24, weight="bold")
    figure.text(
        0.03, 0.893, "mirabelle: the user swaps the array constructor, and dispatch does the rest",
        color=FAINT, size=12.5,
    )  # fmt: skip
    draw_pattern(figure, shots)
    draw_bars(panel(figure, 0, "One step on a 512×512 grid", left=0.03), bars)
    draw_errors(panel(figure, 1, "Power iteration: error of the eigenvalue"), errors)
    draw_norms(panel(figure, 2, "‖A ⊗ B‖ of a type of one's own"), norms)
    draw_losses(panel(figure, 3, "Proximal gradient descent: the loss"), losses)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "tour.png")
    figure.savefig(path, dpi=120, facecolor=PAPER)
    return path


def panel(figure: Any, number: int, title: str, left: float = 0.0) -> Any:
    """One of four small axes on the right, by rows."""
    row, column = divmod(number, 2)
    ax = figure.add_axes((0.545 + 0.24 * column + left, 0.355 - 0.27 * row, 0.19 - left, 0.17))
    ax.set_facecolor(PAPER)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color("#40384a")
    ax.tick_params(colors=FAINT, labelsize=8.5, length=0)
    figure.text(0.52 + 0.24 * column, 0.542 - 0.27 * row, title, color=INK, size=11.5)
    return ax


def ruled(ax: Any, x: str, y: str = "") -> None:
    """Lines to read values at, and what the axes are."""
    ax.grid(axis="y", color=RULE, lw=0.8)
    ax.set_axisbelow(True)
    ax.minorticks_off()
    ax.set_xlabel(x, color=FAINT, size=9, labelpad=2)
    if y:
        ax.set_ylabel(y, color=FAINT, size=9, labelpad=2)


def legend(ax: Any, where: str) -> None:
    ax.legend(
        frameon=False, labelcolor=INK, fontsize=8, loc=where, handletextpad=0.4, labelspacing=0.3, borderpad=0.1
    )


def draw_pattern(figure: Any, shots: list[tuple[int, Any]]) -> None:
    """The last state, large, and three on the way."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list(
        "mirabelle", ["#14101a", "#3b1f4a", "#8f2d63", "#e2604a", "#f6b73c", "#fff3c4"]
    )
    # The outermost cells are the fixed edge, where v piles up: the picture leaves them out.
    shots = [(k, v[8:-8, 8:-8]) for k, v in shots]
    top = max(float(v.max()) for _, v in shots)
    last, final = shots[-1]
    boxes = [(0.52 + i * 0.1585, 0.612, 0.138, 0.138 * WIDTH / HEIGHT) for i in range(3)]
    boxes = [*boxes[: len(shots) - 1], (0.03, 0.085, 0.448, 0.448 * WIDTH / HEIGHT)]
    for (k, v), box in zip(shots, boxes, strict=True):
        ax = figure.add_axes(box)
        ax.imshow(v, cmap=colours, vmin=0, vmax=top, interpolation="bicubic")
        ax.set_axis_off()
        if k != last:
            ax.set_title(f"step {k}", color=FAINT, size=10, loc="left", pad=4)
    n = final.shape[0] + 16
    figure.text(
        0.03, 0.045,
        f"Gray–Scott reaction and diffusion: v after {last} steps on a {n}×{n} HostArray. "
        "The feed rate rises from left to right.",
        color=FAINT, size=10,
    )  # fmt: skip


def draw_bars(ax: Any, bars: list[tuple[str, float, str]]) -> None:
    """Times of one step, beside NumPy's."""
    names, times = [b[0] for b in bars], [b[1] * 1e3 for b in bars]
    colours = [FAINT, *COLOURS]
    ax.barh(names, times, color=colours[: len(bars)], height=0.66)
    for i, t in enumerate(times):
        ax.text(t + max(times) * 0.02, i, f"{t:.2f} ms", color=INK, size=8.5, va="center")
    ax.invert_yaxis()
    ax.set_xlim(0, max(times) * 1.3)
    ax.set_xticks([])
    ax.tick_params(axis="y", labelsize=9, colors=INK)
    ax.spines["bottom"].set_visible(False)
    if all(b[2] == "the same bits" for b in bars[1:]):
        ax.set_xlabel("all with the same bits", color=FAINT, size=9, labelpad=2)


def draw_errors(ax: Any, errors: dict[str, Curve]) -> None:
    """All types lie on one line: each marks its own iterations."""
    for i, (name, curve) in enumerate(errors.items()):
        x, y = zip(*curve, strict=True)
        ax.semilogy(
            x, [max(e, 1e-17) for e in y], MARKERS[i], color=COLOURS[i], label=name, ms=4.5, mec=PAPER, mew=0.5
        )
    ax.set_ylim(1e-17, 5)
    ax.set_yticks([1e-16, 1e-8, 1])
    ruled(ax, "iterations")
    legend(ax, "lower left")


def draw_norms(ax: Any, norms: dict[str, Curve]) -> None:
    """Times by the order of the factors, before and after the method, and NumPy's."""
    for i, (name, curve) in enumerate(norms.items()):
        x, y = zip(*curve, strict=True)
        colour = FAINT if name.startswith("NumPy") else COLOURS[i]
        ax.loglog(x, [1e3 * t for t in y], MARKERS[i] + "-", color=colour, label=name, ms=4, lw=1.4)
    ax.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1024"])
    ax.set_yticks([0.01, 1, 100], ["10 µs", "1 ms", "100 ms"])
    ax.set_ylim(0.004, 2000)
    ruled(ax, "order of A and B")
    legend(ax, "upper right")


def draw_losses(ax: Any, losses: dict[str, list[float]]) -> None:
    """The loss at each step."""
    for i, (name, seen) in enumerate(losses.items()):
        steps = range(1, len(seen) + 1)
        ax.semilogy(steps, seen, MARKERS[i] + "-", color=COLOURS[i], label=name, ms=3, lw=1.2)
    ruled(ax, "steps")
    legend(ax, "lower left")
