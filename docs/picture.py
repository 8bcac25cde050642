"""`python -m docs.picture`: draws `docs/program.svg`, one program over three arrays.

The program is run over all three (the card is simulated where there is none), and what is drawn is what came
out: the same numbers, or there is no picture.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from html import escape
from pathlib import Path

os.environ.setdefault("MIRABELLE_CUDA", "simulated")

import numpy as np

import mirabelle as mb

OUT = Path(__file__).parent / "program.svg"
ROWS, COLUMNS, STEPS = 16, 24, 60
CELL = 10
# From cold to hot: dark to light, so that it reads without colours, too.
STOPS = [(38, 20, 72), (112, 31, 107), (190, 55, 84), (244, 121, 46), (252, 204, 92), (252, 250, 214)]
LEVELS = 12
INK, QUIET, LINE, PAPER, CODE = "#1f2430", "#566070", "#8a94a6", "#ffffff", "#f3f5f9"
MONO = "'DejaVu Sans Mono', ui-monospace, Menlo, Consolas, monospace"
SANS = "'DejaVu Sans', system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def heat(u):
    u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4


def field() -> np.ndarray:
    """A plate with warm edges after some steps, which must be the same from all three arrays."""
    start = np.zeros((ROWS, COLUMNS))
    start[4:-2, 0] = 1.0
    start[0, 12:-2] = 0.7
    ends = []
    for array in (mb.HostArray, mb.CuArray, mb.DArray[mb.HostArray]):
        u = array(start)
        for _ in range(STEPS):
            heat(u)
        ends.append(mb.to_numpy(u))
    if not all(np.array_equal(ends[0], end) for end in ends):
        raise AssertionError("The arrays do not agree, so there is nothing to draw.")
    return ends[0]


def colour(level: int) -> str:
    at = level / (LEVELS - 1) * (len(STOPS) - 1)
    low = min(int(at), len(STOPS) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(STOPS[low], STOPS[low + 1], strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def cells(values: np.ndarray, left: float, top: float) -> Iterator[str]:
    """A part of the plate: one path for each colour, of runs of cells in a row."""
    levels = np.minimum((np.sqrt(values) * LEVELS).astype(int), LEVELS - 1)
    for level in np.unique(levels):
        path = ""
        for row, line in enumerate(levels == level):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
            for begin, end in edges.reshape(-1, 2):
                x, y = left + begin * CELL, top + row * CELL
                path += f"M{x:g} {y:g}h{(end - begin) * CELL}v{CELL}H{x:g}z"
        yield f'<path shape-rendering="crispEdges" fill="{colour(int(level))}" d="{path}"/>'


def text(
    x: float,
    y: float,
    words: str,
    size: float = 13,
    fill: str = INK,
    mono: bool = False,
    anchor: str = "middle",
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}" '
        f'xml:space="preserve" font-family="{MONO if mono else SANS}">{escape(words)}</text>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float, both: bool = False) -> str:
    start = ' marker-start="url(#head)"' if both else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{QUIET}" stroke-width="1.6" '
        f'marker-end="url(#head)"{start}/>'
    )


def pieces(u: np.ndarray, left: float, top: float, rows: int, columns: int, gap: float) -> Iterator[str]:
    """The plate cut into rows × columns pieces with gaps between them."""
    height, width = ROWS // rows, COLUMNS // columns
    for i in range(rows):
        for j in range(columns):
            part = u[i * height : (i + 1) * height, j * width : (j + 1) * width]
            yield from cells(part, left + j * (width * CELL + gap), top + i * (height * CELL + gap))


def panel(at: float, constructor: str, place: str, how: str, body: Iterator[str]) -> Iterator[str]:
    middle = at + COLUMNS * CELL / 2
    yield text(middle, 176, constructor, 14, mono=True)
    yield from body
    yield text(middle, 424, place, 14)
    yield text(middle, 444, how, 12, QUIET)


def processes(u: np.ndarray, left: float, top: float, gap: float) -> Iterator[str]:
    yield from pieces(u, left, top, 4, 1, gap)
    for k in range(1, 4):
        y = top + k * (ROWS // 4 * CELL) + (k - 0.5) * gap
        for x in (60, 120, 180):
            yield arrow(left + x, y - 5, left + x, y + 5, both=True)


def frame(width: int, height: int) -> Iterator[str]:
    """The beginning of the file: its title, the arrows' heads, the paper and the program."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title">'
    )
    yield '<title id="title">One program over three arrays: on the host, on a card, and on processes</title>'
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" '
        f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>'
    )
    size = f'width="{width - 1}" height="{height - 1}"'
    yield f'<rect x="0.5" y="0.5" {size} rx="10" fill="{PAPER}" stroke="{LINE}"/>'
    yield f'<rect x="60" y="28" width="{width - 120}" height="68" rx="6" fill="{CODE}"/>'
    for i, line in enumerate(inspect.getsource(heat).rstrip().split("\n")):
        yield text(88, 56 + 24 * i, line, 14, mono=True, anchor="start")


def drawing(u: np.ndarray) -> str:
    host, card, divided = 40.0, 320.0, 600.0
    width, height, middle = 880, 496, 294.0
    parts = list(frame(width, height))
    for left in (host, card, divided):
        parts.append(arrow(left + COLUMNS * CELL / 2, 104, left + COLUMNS * CELL / 2, 154))
    # (The plate is 160 high; with gaps between its pieces the others are drawn around the same middle.)
    whole = pieces(u, host, middle - 80, 1, 1, 0)
    blocks = pieces(u, card - 7, middle - 84.5, 4, 6, 3)
    rows = processes(u, divided, middle - 107, 18)
    parts += panel(host, "mb.HostArray(u)", "the host", "one loop, on all threads", whole)
    parts += panel(card, "mb.CuArray(u)", "a card", "one kernel, a thread an element", blocks)
    how = "each its rows; edges travel meanwhile"
    parts += panel(divided, "mb.DArray[mb.HostArray](u)", "many processes", how, rows)
    parts.append(text(width / 2, 477, f"the same {u.size} numbers, to the last bit", 13))
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    OUT.write_text(drawing(field()))
    print(OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT)


if __name__ == "__main__":
    main()
