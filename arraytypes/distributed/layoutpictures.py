"""Pictures of layouts, in text and for notebooks: the array to scale, with the rank in each part.

Of more than two dimensions, those that are divided are drawn, and else the last. Runs of which there are
too many to draw are drawn at the beginning and at the end.

>>> import mirabelle as mb
>>> print(mb.distributed.layout_of((10,), mb.distributed.Ragged(0, (6, 1, 3)), 3))
10, elements in runs of 6, 1, 3 over 3 processes
0                                   6      7                 10
┌───────────────────────────────────┬──────┬─────────────────┐
│                 0                 │  1   │        2        │
└───────────────────────────────────┴──────┴─────────────────┘
rank 0   [0:6]   6 elements  ████████████████
rank 1   [6:7]    1 element  ███
rank 2   [7:10]  3 elements  ████████
the largest part is 1.80 times the mean
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes import cards, pictures
from mirabelle.arraytypes.distributed.layouts import Split

if TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.layoutreport import Division, LayoutReport

# Runs of one dimension that are drawn, before some are left out.
RUNS = 12
COLOUR = pictures.COLOURS["distributed"]
# How strongly the parts of neighbouring ranks are filled.
SHADES = (0.5, 0.14, 0.34, 0.22, 0.44, 0.08)

# A run of a dimension: from, to, the coordinate that holds it. None in place of those left out.
Run = tuple[int, int, int | None]


def drawn_dimensions(division: Division) -> list[int]:
    """The dimensions that are drawn: two at most."""
    ndim = len(division.shape)
    split = [d for d in range(ndim) if division.splits[d] is not None]
    rest = [d for d in reversed(range(ndim)) if d not in split]
    return sorted((split + rest)[:2])


def runs_of(split: Split | None, n: int) -> list[Run | None]:
    """The runs of a dimension, in its order."""
    if split is None:
        return [(0, n, None)]
    found: list[Run | None] = [*sorted((a, b, c) for c, held in enumerate(split.pieces) for a, b in held)]
    return found if len(found) <= RUNS else [*found[: RUNS - 3], None, *found[-2:]]


def label_of(division: Division, coordinates: dict[int, int], limit: int) -> str:
    """Who holds a part, in so few letters."""
    ranks = division.owners(coordinates)
    if division.partial:
        op = division.partial[0][1]
        sign = {"sum": " + ", "prod": " · "}.get(op)
        whole = sign.join(map(str, ranks)) if sign else f"{op}({', '.join(map(str, ranks))})"
        short = f"{ranks[0]}{sign}…{sign}{ranks[-1]}" if sign else f"{op}({ranks[0]}…{ranks[-1]})"
    else:
        whole = " ".join(map(str, ranks))
        short = f"{ranks[0]}…{ranks[-1]}" if ranks else ""
    return whole if len(whole) <= limit else short


class Grid:
    """The parts of an array as rows and columns of boxes."""

    def __init__(self, division: Division) -> None:
        self.division = division
        self.dims = drawn_dimensions(division)
        shape = tuple(division.shape[d] for d in self.dims)
        self.shape = (1, *shape) if len(shape) == 1 else shape or (1, 1)
        splits: list[Any] = [division.splits[d] for d in self.dims]
        splits = [None] * (2 - len(splits)) + splits
        self.splits = splits
        self.rows, self.columns = (runs_of(s, n) for s, n in zip(splits, self.shape, strict=True))

    def coordinates(self, row: Run, column: Run) -> dict[int, int]:
        """Where in the mesh a box belongs."""
        found = {}
        for split, run in zip(self.splits, (row, column), strict=True):
            if split is not None and run[2] is not None:
                found[split.mesh_axis] = run[2]
        return found

    def label(self, row: Run | None, column: Run | None, limit: int) -> str:
        if row is None or column is None:
            return "⋮" if row is None else "…"
        return label_of(self.division, self.coordinates(row, column), limit)


# In text

TALL, WIDE = 14, 58


def text_picture(division: Division) -> str:
    """The parts as boxes of letters; nothing of an array without elements."""
    if 0 in division.shape:
        return ""
    grid = Grid(division)
    line = len(division.shape) < 2
    high, wide = (120.0, 120.0) if line else pictures.lengths(grid.shape)
    widest = max(len(grid.label(r, c, 12)) for r in grid.rows[:RUNS] for c in grid.columns)
    tall = len(grid.rows) if line else max(round(TALL * high / 120) // 2, len(grid.rows))
    xs = _edges(grid.columns, max(round(WIDE * wide / 120 * (1 if line else 0.65)), 9), widest + 2)
    ys = _edges(grid.rows, tall, 1)
    margin = 0 if line else max(len(str(n)) for n in _places(grid.rows)) + 1
    lines = [" " * margin + _ruler(_places(grid.columns), xs)] if division.shape else []
    places = _places(grid.rows)
    for i, row in enumerate(grid.rows):
        left = "┌" if i == 0 else "├"
        lines.append(_rule(xs, left, "┬" if i == 0 else "┼", "┐" if i == 0 else "┤", places[i], margin))
        for y in range(ys[i + 1] - ys[i]):
            middle = y == (ys[i + 1] - ys[i] - 1) // 2
            cells = (
                (grid.label(row, column, max(12, xs[j + 1] - xs[j] - 2)) if middle else "").center(
                    xs[j + 1] - xs[j]
                )
                for j, column in enumerate(grid.columns)
            )
            lines.append(" " * margin + "│" + "│".join(cells) + "│")
    lines.append(_rule(xs, "└", "┴", "┘", places[-1], margin))
    if len(division.shape) > 2:
        lines.append(f"(dimensions {grid.dims[0]} ↓ and {grid.dims[1]} → of {len(division.shape)})")
    return "\n".join(line.rstrip() for line in lines)


def _edges(runs: list[Run | None], length: int, least: int) -> list[int]:
    """Where boxes begin, in letters: to scale, and none smaller than what stands in it."""
    shown = [run for run in runs if run is not None]
    total = sum(b - a for a, b, _ in shown) or 1
    at = [0]
    for run in runs:
        wanted = least if run is None else max(least, round(length * (run[1] - run[0]) / total))
        at.append(at[-1] + wanted)
    return at


def _places(runs: list[Run | None]) -> list[str]:
    """What stands at the edges of boxes: the places where runs begin, and where the last ends."""
    found = ["" if run is None else str(run[0]) for run in runs]
    last = runs[-1]
    return [*found, "" if last is None else str(last[1])]


def _ruler(places: list[str], xs: list[int]) -> str:
    """The places written above their edges, where there is room."""
    line = ""
    for j, place in enumerate(places):
        x = xs[j] + j
        if len(line) + (len(line) > 0) <= x:
            line = line.ljust(x) + place
    return line


def _rule(xs: list[int], left: str, cross: str, right: str, place: str, margin: int) -> str:
    spans = ("─" * (b - a) for a, b in itertools.pairwise(xs))
    return (f"{place:>{margin - 1}} " if margin else "") + left + cross.join(spans) + right


# For notebooks


def svg_picture(division: Division, rank: int | None = None, side: float = pictures.SIDE) -> str:
    """The parts as boxes, that of `rank` outlined; with ranks where they can be read."""
    if 0 in division.shape or not division.shape:
        return pictures.box(division.shape, COLOUR)
    grid = Grid(division)
    line = len(division.shape) == 1
    high, wide = (22.0, side * 1.5) if line else pictures.lengths(grid.shape, side)
    ys, xs = _scaled(grid.rows, high), _scaled(grid.columns, wide)
    # Beside an edge stands where it is, if the edges are far enough from each other.
    left = 4.0 if line else 8 + 6.2 * max(len(p) for p in _places(grid.rows))
    top = 16.0
    boxes, mine, names = [], [], []
    for row, y1, y2 in zip(grid.rows, ys[:-1], ys[1:], strict=True):
        for column, x1, x2 in zip(grid.columns, xs[:-1], xs[1:], strict=True):
            x, y = left + x1, top + y1
            if row is not None and column is not None:
                owners = division.owners(grid.coordinates(row, column))
                shade = SHADES[sum(grid.coordinates(row, column).values()) % len(SHADES)]
                if len(grid.coordinates(row, column)) == 2 or len(owners) == 1:
                    shade = SHADES[owners[0] % len(SHADES)] if owners else 0.05
                boxes.append(pictures.rectangle(x, y, x2 - x1, y2 - y1, COLOUR, shade, 0.8))
                if rank is not None and rank in owners and len(owners) < division.size:
                    mine.append(pictures.rectangle(x, y, x2 - x1, y2 - y1, COLOUR, 0.0, 2.2))
            said = grid.label(row, column, int((x2 - x1) / 6))
            if y2 - y1 >= 11 and x2 - x1 >= 5.5 * len(said):
                names.append(pictures.text(x + (x2 - x1) / 2, y + (y2 - y1) / 2 + 4, said))
    marks = _marks(_places(grid.columns), xs, left, 10.0, across=True)
    if not line:
        marks += _marks(_places(grid.rows), ys, top, left - 4, across=False)
    if len(division.shape) > 2:
        said = f"dimensions {grid.dims[0]} and {grid.dims[1]} of {len(division.shape)}"
        marks.append(pictures.text(left + wide / 2, top + high + 15, said, 9.5))
    right = 6 + 3.1 * len(_places(grid.columns)[-1])
    return pictures.svg(
        max(left + wide + right, 150 if len(division.shape) > 2 else 0),
        top + high + 22,
        [*boxes, *mine, *names, *marks],
    )


def _scaled(runs: list[Run | None], length: float) -> list[float]:
    """Where boxes begin, to scale; what is left out takes a little room."""
    gap = length * 0.08
    total = sum(run[1] - run[0] for run in runs if run is not None) or 1
    room = length - gap * sum(run is None for run in runs)
    at = [0.0]
    for run in runs:
        at.append(at[-1] + (gap if run is None else room * (run[1] - run[0]) / total))
    return at


def _marks(places: list[str], edges: list[float], start: float, aside: float, across: bool) -> list[str]:
    """The places of edges, where they do not run into each other; the first and the last always."""
    found = []
    end = edges[-1]
    last = -1e9
    for i, (place, edge) in enumerate(zip(places, edges, strict=True)):
        need = 6.2 * len(place) if across else 10.0
        outer = i in (0, len(places) - 1)
        if not place or (not outer and (edge - last < need or end - edge < need)):
            continue
        last = edge + (3.1 * len(place) if across else 0)
        if across:
            found.append(pictures.text(start + edge, aside, place, 9.5))
        else:
            found.append(pictures.text(aside, start + edge + 3.5, place, 9.5, anchor="end"))
    return found


def report_html(report: LayoutReport) -> str:
    """The card of a layout: facts, the picture, and a line for each process."""
    facts = {"shape": cards.shown_shape(report.shape)}
    if report.dtype is not None:
        facts["dtype"] = report.dtype.name
    facts["layout"] = report.words
    facts["processes"] = str(report.processes) + (
        "" if report.rank is None else f", this is rank {report.rank}"
    )
    facts["largest / mean"] = f"{report.imbalance:.2f}"
    picture = svg_picture(report._division, report.rank, side=200.0)
    return cards.card("layout", facts, picture, table(report))


def table(report: LayoutReport) -> str:
    """What each process holds, as lines with bars."""
    from mirabelle.arraytypes.distributed.layoutreport import listed

    amounts, elements = report.amounts(), report.elements
    longest = max(max(elements), 1)
    ranks = listed(report.processes)
    pitch, start = 17.0, 58.0
    bar = 130.0
    parts = []
    places = [report.where(q) if q is not None else "" for q in ranks]
    after = start + bar + 10
    beyond = after + 20 + 6 * max(map(len, amounts))
    for i, (q, place) in enumerate(zip(ranks, places, strict=True)):
        y = 4 + i * pitch
        if q is None:
            parts.append(pictures.text(4, y + 9, "⋮", anchor="start"))
            continue
        parts.append(pictures.text(4, y + 9, f"rank {q}", anchor="start"))
        long = max(bar * elements[q] / longest, 1.0 if elements[q] else 0.0)
        shade = 0.55 if q == report.rank else 0.3
        if long:
            parts.append(pictures.rectangle(start, y, long, 10, COLOUR, shade, 0.8))
        parts.append(pictures.text(after, y + 9, amounts[q], anchor="start"))
        parts.append(pictures.text(beyond, y + 9, place, 10, anchor="start"))
    return pictures.svg(beyond + 10 + 6 * max(map(len, places)), 6 + pitch * len(ranks), parts)
