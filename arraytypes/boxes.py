"""What flows from box to box, as a picture: of trees, of steps of a program, of the nodes of a graph.

Boxes stand in layers, from above as things go on; those of a layer are ordered so that lines cross
little, and stand where their neighbours are. Everything is SVG without styles, in half-transparent colours and
the colour of the text around (see `pictures.py`), for light pages and dark ones.

>>> data, sum_ = Box("x", ["float64 3"], "#4f8edc", source=True), Box("sum", [], "#a06cd5")
>>> sum_.reading(data)
>>> drawing([data, sum_])[:4]
'<svg'
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from mirabelle.arraytypes import pictures

_GAP, _BETWEEN, _LETTER, _NOTE = 18.0, 26.0, 6.4, 5.0


def typed(x: Any) -> str:
    """The dtype and the shape of a value, in short."""
    return f"{x.dtype.name} {'×'.join(map(str, x.shape))}".rstrip()


class Box:
    """A box of a picture: what it says, what it reads (and whether it goes on in that memory), its place."""

    __slots__ = (
        "colour", "high", "is_source", "layer", "notes", "reads", "said", "times", "title", "wide", "x", "y",
    )  # fmt: skip

    def __init__(
        self, said: str, notes: Iterable[str], colour: str, title: str = "", source: bool = False
    ) -> None:
        self.said = said
        self.notes = [n for n in notes if n]
        self.colour = colour
        self.title = title
        self.is_source = source
        # How often it is done, where that is more than once.
        self.times = 1
        # Boxes it reads by their ids, each with whether it goes on in the same memory.
        self.reads: dict[int, tuple[Box, bool]] = {}
        self.layer = 0
        self.x = self.y = 0.0
        self.wide = max([len(said) * _LETTER, *[len(n) * _NOTE for n in self.notes]]) + 18
        self.high = 21.0 + 11.0 * len(self.notes)

    def reading(self, other: Box | None, same_memory: bool = False) -> None:
        """Note that it reads another box."""
        if other is not None and other is not self:
            known = self.reads.get(id(other))
            self.reads[id(other)] = (other, same_memory and (known is None or known[1]))


class _Bend:
    """Where a line goes through a layer between those of its ends."""

    __slots__ = ("layer", "wide", "x")

    def __init__(self, layer: int) -> None:
        self.layer = layer
        self.wide = 6.0
        self.x = 0.0


# Setting out


def drawing(boxes: Sequence[Box]) -> str:
    """The picture of boxes, which stand in the order of the program."""
    if not boxes:
        return ""
    boxes = _layered(boxes)
    rows, chains = _rows(boxes)
    _order(rows, chains)
    _spread(rows, chains)
    y = 2.0
    tops: list[float] = []
    heights: list[float] = []
    for row in rows:
        high = max([b.high for b in row if isinstance(b, Box)], default=0.0)
        tops.append(y)
        heights.append(high)
        for b in row:
            if isinstance(b, Box):
                b.y = y + (high - b.high) / 2
        y += high + _BETWEEN
    left = min(b.x - b.wide / 2 for row in rows for b in row) - 3
    parts: list[str] = []
    for chain, dashed in chains:
        parts.append(_line(chain, dashed, left, tops, heights))
    for box in boxes:
        parts += _drawn(box, left)
    wide = max(b.x + b.wide / 2 for row in rows for b in row) - left + 3
    return pictures.svg(wide, y - _BETWEEN + 4, parts)


def _layered(boxes: Sequence[Box]) -> list[Box]:
    """Give each box its layer. What is only read stands above its readers, again if they are far apart."""
    for box in boxes:
        if not box.is_source:
            above = [b.layer for b, _ in box.reads.values() if not b.is_source]
            box.layer = 1 + max(above, default=0)
    # What reads no more than reads it stands as near to its readers as can be.
    lowest: dict[int, int] = {}
    readers: dict[int, int] = {}
    for box in reversed(boxes):
        if box.is_source:
            continue
        read = [b for b, _ in box.reads.values() if not b.is_source]
        if len(read) <= readers.get(id(box), 0) and id(box) in lowest:
            box.layer = lowest[id(box)] - 1
        for b in read:
            lowest[id(b)] = min(lowest.get(id(b), box.layer), box.layer)
            readers[id(b)] = readers.get(id(b), 0) + 1
    found: list[Box] = []
    copies: dict[int, Box] = {}
    for box in sorted((b for b in boxes if not b.is_source), key=lambda b: b.layer):
        for key, (source, same) in list(box.reads.items()):
            if not source.is_source:
                continue
            near = copies.get(key)
            if near is None or box.layer - near.layer > 3:
                near = Box(source.said, source.notes, source.colour, source.title, True)
                near.layer = box.layer - 1
                copies[key] = near
                found.append(near)
            del box.reads[key]
            box.reads[id(near)] = (near, same)
        found.append(box)
    top = min(b.layer for b in found) if found else 0
    for b in found:
        b.layer -= top
    # (Sources that nobody reads stand at the top.)
    return [*[b for b in boxes if b.is_source and id(b) not in copies], *found]


_Chain = tuple[list[Any], bool]


def _rows(boxes: list[Box]) -> tuple[list[list[Any]], list[_Chain]]:
    """The boxes by layers, with bends where lines pass, and each line as what it goes through."""
    rows: list[list[Any]] = [[] for _ in range(1 + max(b.layer for b in boxes))]
    for box in boxes:
        rows[box.layer].append(box)
    chains: list[_Chain] = []
    # Lines that leave one box for several layers run together as far as they can.
    bends: dict[tuple[int, int], _Bend] = {}
    for box in boxes:
        for other, same in box.reads.values():
            chain: list[Any] = [other]
            for layer in range(other.layer + 1, box.layer):
                bend = bends.get((id(other), layer))
                if bend is None:
                    bend = bends[id(other), layer] = _Bend(layer)
                    rows[layer].append(bend)
                chain.append(bend)
            chains.append(([*chain, box], same))
    return rows, chains


def _neighbours(chains: list[_Chain]) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
    above: dict[int, list[Any]] = {}
    below: dict[int, list[Any]] = {}
    for chain, _ in chains:
        for a, b in itertools.pairwise(chain):
            above.setdefault(id(b), []).append(a)
            below.setdefault(id(a), []).append(b)
    return above, below


def _order(rows: list[list[Any]], chains: list[_Chain]) -> None:
    """Order each layer by where the neighbours stand, from above and from below in turn."""
    above, below = _neighbours(chains)
    place = {id(b): float(i) for row in rows for i, b in enumerate(row)}
    for turn in range(8):
        known = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else reversed(rows):
            where = {}
            for b in row:
                near = known.get(id(b))
                where[id(b)] = sum(place[id(a)] for a in near) / len(near) if near else place[id(b)]
            row.sort(key=lambda b: where[id(b)])
            for i, b in enumerate(row):
                # (In parts of the layer's width: layers are of different lengths.)
                place[id(b)] = (i + 0.5) / len(row) * 100


def _spread(rows: list[list[Any]], chains: list[_Chain]) -> None:
    """Set each box as near as can be to the middle of its neighbours, without changing the order."""
    above, below = _neighbours(chains)
    for row in rows:
        _apart(row, [0.0] * len(row))
    for turn in range(10):
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = []
            for b in row:
                near = (above if turn % 2 == 0 else below).get(id(b)) or []
                if turn > 5:
                    near = [*above.get(id(b), ()), *below.get(id(b), ())]
                wanted.append(sum(n.x for n in near) / len(near) if near else b.x)
            _apart(row, wanted)


def _apart(row: list[Any], wanted: list[float]) -> None:
    """The places nearest to those wanted at which the boxes of a layer stand side by side."""
    shift, offsets = 0.0, []
    for i, b in enumerate(row):
        if i:
            shift += (row[i - 1].wide + b.wide) / 2 + _GAP
        offsets.append(shift)
    # Where two would overlap they move together to the middle of what both want (isotonic regression).
    groups: list[list[float]] = []  # (sum, weight)
    counts: list[int] = []
    for b, w, offset in zip(row, wanted, offsets, strict=True):
        weight = 3.0 if isinstance(b, _Bend) else 1.0
        groups.append([(w - offset) * weight, weight])
        counts.append(1)
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, weight = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += weight
            joined = counts.pop()
            counts[-1] += joined
    i = 0
    for (total, weight), count in zip(groups, counts, strict=True):
        for _ in range(count):
            row[i].x = total / weight + offsets[i]
            i += 1


def _line(chain: list[Any], dashed: bool, left: float, tops: list[float], heights: list[float]) -> str:
    first, last = chain[0], chain[-1]
    x, y = first.x - left, first.y + first.high
    path = f"M{x:.1f},{y:.1f}"
    for b in chain[1:]:
        x2 = b.x - left
        y2 = b.y if b is last else tops[b.layer]
        middle = (y + y2) / 2
        path += f"C{x:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
        x, y = x2, y2
        if b is not last:
            y = tops[b.layer] + heights[b.layer]
            path += f"V{y:.1f}"
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    ink = 'fill="none" stroke="currentColor" stroke-opacity="0.38" stroke-width="1.2"'
    return f'<path d="{path}" {ink}{dash}/>'


def _drawn(box: Box, left: float) -> list[str]:
    x, y = box.x - box.wide / 2 - left, box.y
    corner = 3 if box.is_source else 8
    parts = ["<g>"]
    if box.title:
        parts.append(f"<title>{html.escape(box.title)}</title>")
    if box.times > 1:  # a sheet behind it
        parts.append(
            f'<rect x="{x + 4:.1f}" y="{y - 3:.1f}" width="{box.wide:.1f}" height="{box.high:.1f}" '
            f'rx="{corner}" fill="{box.colour}" fill-opacity="0.08" '
            f'stroke="{box.colour}" stroke-opacity="0.5"/>'
        )
    parts.append(
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.wide:.1f}" height="{box.high:.1f}" rx="{corner}" '
        f'fill="{box.colour}" fill-opacity="0.22" stroke="{box.colour}"/>'
    )
    middle = box.x - left
    parts.append(pictures.text(middle, y + 14.5, box.said, 11))
    for i, note in enumerate(box.notes):
        parts.append(pictures.text(middle, y + 25 + 11 * i, note, 8.5))
    parts.append("</g>")
    return parts
