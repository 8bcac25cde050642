"""The picture of a profile: what each line of a compiled function takes, as bars."""

from __future__ import annotations

import os
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs.explaining import shown_seconds
from mirabelle.arraytypes.programs.profiling import Profile
from mirabelle.arraytypes.programs.reports import drawn


@drawn.method
def _(profile: Profile, path: Any, lines: int) -> str:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "A picture of a profile is drawn by matplotlib, which is not installed: "
            "`pip install 'mirabelle[plot]'`. `profile.save('trace.json')` needs nothing."
        ) from error
    drawn = profile.lines[:lines]
    figure = Figure(figsize=(11, 1.5 + 0.42 * max(len(drawn), 1)), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
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
