"""Pictures of profiles: what each line of a compiled function takes, as bars, and its steps below a roof."""

from __future__ import annotations

import os
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs.explaining import shown_count, shown_seconds
from mirabelle.arraytypes.programs.profiling import Profile
from mirabelle.arraytypes.programs.reports import drawn
from mirabelle.arraytypes.programs.rooflines import Roofline


def _axes(wide: float, high: float) -> tuple[Any, Any]:
    """A figure that no screen needs, and its axes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "A picture of a profile is drawn by matplotlib, which is not installed: "
            "`pip install 'mirabelle[plot]'`. `profile.save('trace.json')` needs nothing."
        ) from error
    figure = Figure(figsize=(wide, high), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


@drawn.method
def _(profile: Profile, path: Any, lines: int) -> str:
    drawn = profile.lines[:lines]
    figure, ax = _axes(11, 1.5 + 0.42 * max(len(drawn), 1))
    shares = [100 * x.share for x in drawn]
    ax.barh(range(len(drawn)), shares, color="#2fa39a", height=0.62)
    most = max(shares, default=0.0) or 1.0
    for i, (x, share) in enumerate(zip(drawn, shares, strict=True)):
        rate = f"  {shown_bytes(x.bandwidth)}/s" if x.bytes else ""
        said = f"{share:.0f} %  {shown_seconds(x.seconds)}{rate}"
        ax.text(share + most * 0.01, i, said, va="center", size=8.5, color="#444444")
    # (A dollar sign would begin a formula.)
    labels = [f"{x.text[:64]}   {x.place}".replace("$", r"\$") for x in drawn]
    ax.set_yticks(range(len(drawn)), labels, size=8.5, family="monospace")
    ax.invert_yaxis()
    ax.set_xlim(0, most * 1.3)
    ax.set_xticks([])
    ax.tick_params(length=0)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    title = f"{profile.name} on {profile.place}: {profile.sentence()}"
    figure.suptitle(title, x=0.01, ha="left", size=10.5, color="#222222")
    figure.savefig(os.fspath(path), dpi=110)
    return os.fspath(path)


@drawn.method
def _(roofline: Roofline, path: Any, lines: int) -> str:
    figure, ax = _axes(10, 6.2)
    points = [p for p in roofline.points[:lines] if p.rate and p.intensity]
    low = min([p.intensity for p in points], default=0.1) / 3
    high = max([p.intensity for p in points], default=1.0) * 3
    if roofline.bandwidth and roofline.peak:
        ridge = roofline.peak / roofline.bandwidth
        low, high = min(low, ridge / 10), max(high, ridge * 10)
        roof = [low, ridge, high]
        ax.plot(roof, [min(x * roofline.bandwidth, roofline.peak) for x in roof], color="#444444", lw=1.6)
        slope = f"a copy: {shown_bytes(roofline.bandwidth)}/s"
        ax.annotate(slope, (low, low * roofline.bandwidth), (4, 12), textcoords="offset points", fontsize=8.5)
        flat = f"a product of matrices: {shown_count(roofline.peak)}flop/s"
        ax.annotate(flat, (high, roofline.peak), (-4, 5), textcoords="offset points", ha="right", fontsize=8.5)
    for i, p in enumerate(points):
        size = 40 + 500 * p.share
        ax.scatter([p.intensity], [p.rate], s=size, color=f"C{i % 10}", alpha=0.75, zorder=3,
                   label=f"{100 * p.share:.0f} %  {p.name}: {p.label}".replace("$", r"\$"))  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(low, high)
    ax.set_xlabel("operations a byte")
    ax.set_ylabel("operations a second")
    ax.grid(True, which="both", color="#eeeeee", zorder=0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if points:
        legend = ax.legend(loc="lower right", fontsize=8, framealpha=0.9, title="part of the time, step")
        for handle in legend.legend_handles:
            handle.set_sizes([40])
    title = f"{roofline.name} on {roofline.place}: the {len(points)} longest steps"
    figure.suptitle(title, x=0.01, ha="left", size=10.5, color="#222222")
    figure.savefig(path, dpi=110)
    return os.fspath(path)
