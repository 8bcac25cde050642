"""Pictures of solutions by matplotlib: lines, coloured planes, slices, movies."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.dg.output.files import replacing
from mirabelle.dg.output.pieces import AXES, Pieces, pieces
from mirabelle.dg.output.snapshots import load
from mirabelle.dg.spelled import Axes
from mirabelle.dg.time.solution import Solution

Field = str | Callable[..., Any] | None
At = tuple[str, float] | dict[str, float] | None
Steps = Iterable[Solution] | str | Path

# About so many small simplices are drawn; cells are cut less finely where there are many.
DETAIL = 150_000


def plot(
    solution: Solution,
    field: Field = None,
    ax: Axes | None = None,
    at: At = None,
    mesh: bool = False,
    levels: int | Sequence[float] | None = None,
    colorbar: bool = True,
    **style: Any,
) -> Axes:
    """Draw a field: its name, conservative or primitive, or a function of the fields; returns the axes.

    What has one dimension is drawn as a line, what has two in colours, or between contours if `levels` says how
    many, or which. Planes `at=("z", 0.5)`, `at={"y": 0.0, "z": 0.5}` take dimensions away; three are cut in the
    middle if nothing is said. `mesh=True` draws the cells, too. `style` goes to matplotlib.

    Parameters
    ----------
    solution : Solution
        Whose field is drawn.
    field : str, callable or None
        A name, or a function of the fields; None is the first field.
    ax : matplotlib axes or None
        Where it is drawn; None is a new figure.
    at : tuple, dict or None
        Planes that take dimensions away.
    mesh : bool, default False
        Draw the cells, too.
    levels : int, sequence or None
        How many contours there are, or which; None is colours without contours.
    colorbar : bool, default True
        Draw the scale.
    **style : options
        For matplotlib.

    Returns
    -------
    matplotlib.axes.Axes
        `ax` itself where it is given, else that of a new figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box((2, 2), periodic=True), dg.Advection((1.0, 0.0)), dg.Solver(3))
    >>> solution = dg.Solution(semi, semi.state(lambda x, t: (x[0] * x[1],)))
    >>> dg.plot(solution, "u", at=("y", 0.25)).get_ylabel()
    'u'
    """
    field = solution.semi.equations.names[0] if field is None else field
    name = getattr(field, "__name__", field)
    left, planes, fineness = _cuts(solution, at)
    drawn = pieces(solution, field, planes, fineness)
    when = ", ".join(f"{axis} = {value:g}" for axis, value in {"t": solution.t, **planes}.items())
    on = _pyplot().subplots()[1] if ax is None else ax
    edges = pieces(solution, field, planes, fineness, edges=True) if mesh else None
    if len(left) == 1:
        on.plot(*_line(drawn), **style)
        on.set(xlabel=left[0], ylabel=name, title=when)
        if edges:
            on.vlines(edges.points[0], 0, 1, transform=on.get_xaxis_transform(), color="0.8", lw=0.5, zorder=0)
        return on
    from matplotlib.collections import LineCollection
    from matplotlib.tri import Triangulation

    draw: Any = on.tripcolor if levels is None else on.tricontourf
    how: dict[str, Any] = {"shading": "gouraud"} if levels is None else {"levels": levels}
    x, y = drawn.points
    shown = draw(Triangulation(x, y, drawn.corners), drawn.known[0], **{**how, **style})
    on.set(xlabel=left[0], ylabel=left[1], title=f"{name}, {when}", aspect="equal")
    on.margins(0)
    if colorbar:
        on.figure.colorbar(shown, ax=on)
    if edges:
        on.add_collection(LineCollection([*edges.points.T[edges.corners]], colors="0.2", linewidths=0.3))
    return on


def _cuts(solution: Solution, at: Any) -> tuple[list[str], dict[str, float], int]:
    """The axes that are left, the planes, and into how many parts cells' edges are cut."""
    mesh = solution.semi.mesh
    planes = dict([at] if isinstance(at, tuple) else at or {})
    if mesh.dims == 3 and not planes:
        planes = {"z": float(mesh.coordinates[2].min() + mesh.coordinates[2].max()) / 2}
    left = [name for name in AXES[: mesh.dims] if name not in planes]
    if not left:
        raise ValueError(
            f"Cuts along {', '.join(planes)} leave only a point to draw. Leave out one of them; for values at "
            "points, call `semi.sample(solution.u, points)`."
        )
    drawn = len(mesh) ** (len(left) / mesh.dims)  # about so many cells
    finest = 10 if len(left) == 1 else min(10, 3 * solution.semi.element.order)
    return left, planes, max(1, min(finest, int((DETAIL / drawn) ** (1 / len(left)))))


def _line(drawn: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """Segments as a line from left to right, broken (by NaN) where the function jumps."""
    x, y = drawn.points[0][drawn.corners], drawn.known[0][drawn.corners]
    x, y = (np.take_along_axis(a, np.argsort(x, axis=1), axis=1) for a in (x, y))
    order = np.argsort(x.mean(1))
    x, y = x[order], y[order]
    close = [np.abs(a[1:, 0] - a[:-1, 1]) <= 1e-9 * np.ptp(a) for a in (x, y)]
    gaps = 2 * (np.flatnonzero(~(close[0] & close[1])) + 1)
    return np.insert(x.ravel(), gaps, np.nan), np.insert(y.ravel(), gaps, np.nan)


def movie(solutions: Steps, field: Field, path: str | Path, fps: int = 12, at: At = None, **style: Any) -> Path:
    """Solutions, or the snapshots (.h5) in a folder, as a movie of one scale: a .gif, or by ffmpeg.

    Parameters
    ----------
    solutions : iterable of Solution, str or path
        Solutions, or the folder with the snapshots.
    field : str or callable
        What is drawn: a name, or a function of the fields.
    path : str or path
        The movie: a .gif, or what ffmpeg writes.
    fps : int, default 12
        Pictures a second.
    at : tuple, dict or None
        Planes that take dimensions away, as in `dg.plot`.
    **style : options
        For `dg.plot`.

    Returns
    -------
    pathlib.Path
        `path`.

    Examples
    --------
    >>> import tempfile, matplotlib
    >>> matplotlib.use("agg")
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(2))
    >>> frames = [dg.Solution(semi, semi.state(lambda x, t: (t * x[0],), t), t) for t in (0.0, 1.0)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.movie(frames, "u", f"{folder}/line.gif").name
    'line.gif'
    """
    plt, path = _pyplot(), Path(path)
    from matplotlib import animation

    if path.suffix != ".gif" and not shutil.which("ffmpeg"):
        raise ValueError(
            f"A movie {path.suffix or 'without a suffix'} needs the program ffmpeg, which is not installed. "
            f'A .gif is made without: movie(solutions, field, "{path.with_suffix(".gif").name}").'
        )
    writer: Any = (animation.PillowWriter if path.suffix == ".gif" else animation.FFMpegWriter)(fps)
    folder = Path(solutions) if isinstance(solutions, str | Path) else None
    # (Beside the series there may be checkpoints.)
    kept = [] if folder is None else sorted(folder.glob("solution_*.h5")) or sorted(folder.glob("*.h5"))
    frames: list[Any] = kept if isinstance(solutions, str | Path) else list(solutions)
    if not frames:
        raise ValueError(
            "There is nothing to make a movie of: no solution, no snapshot (.h5) in the folder. Write some: "
            '`dg.solve(..., callbacks=[dg.SaveSolution("out", dt=0.1, format="h5")])`.'
        )
    low, high, left = np.inf, -np.inf, [""]
    for frame in map(_solution, frames):
        left, planes, _ = _cuts(frame, at)
        shown = pieces(frame, field, planes, frame.semi.element.order).known
        low, high = min(low, shown.min()), max(high, shown.max())
    if len(left) == 2 and isinstance(style.get("levels"), int):
        style["levels"] = np.linspace(low, high, style["levels"])
    elif len(left) == 2 and "levels" not in style:
        style = {"vmin": low, "vmax": high, **style}
    figure, margin = plt.figure(), 0.05 * (high - low) + 1e-12
    try:
        with replacing(path) as fresh, writer.saving(figure, fresh, dpi=100):
            for frame in map(_solution, frames):
                figure.clear()
                ax = plot(frame, field, figure.add_subplot(), at, **style)
                if len(left) == 1:
                    ax.set_ylim(low - margin, high + margin)
                writer.grab_frame()
    finally:
        plt.close(figure)
    return path


def _solution(frame: Any) -> Solution:
    return load(frame) if isinstance(frame, str | Path) else frame


def thumbnail(solution: Solution, field: Field = None) -> bytes:
    """A small picture (PNG), which notebooks show beside a solution.

    Parameters
    ----------
    solution : Solution
        Whose field is drawn.
    field : str, callable or None
        A name, or a function of the fields; None is the first field.

    Returns
    -------
    bytes
        The contents of a PNG file.

    Examples
    --------
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(2))
    >>> dg.thumbnail(dg.Solution(semi, semi.state(lambda x, t: (x[0],))))[1:4]
    b'PNG'
    """
    _pyplot()
    from matplotlib.figure import Figure

    figure, file = Figure(figsize=(3.2, 2.4), layout="tight"), io.BytesIO()
    plot(solution, field, figure.add_subplot())
    figure.savefig(file, format="png", dpi=80)
    return file.getvalue()


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError:
        raise ImportError("Pictures need matplotlib, which is missing: `pip install matplotlib`.") from None
    return matplotlib.pyplot
