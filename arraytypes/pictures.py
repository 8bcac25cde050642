"""Small pictures of arrays for notebooks: shape by proportion, structure by pattern, place by colour.

Drawn as SVG without styles, in half-transparent colours and the colour of the text around, so that
they look right on light and on dark pages, and in saved notebooks. A type that looks like something
of its own gives a method of `picture`, made of the pieces here.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import pictures
>>> pictures.picture(mb.zeros((3, 4)))[:4]
'<svg'
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.wrappers import BroadcastTo, View
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import generic

# The longest side of a picture, and the shortest side of a box in it.
SIDE, LEAST = 120.0, 14.0
# Middle tones, that stand out on white and on black.
COLOURS = {"host": "#4f8edc", "ref": "#e8963a", "cuda": "#5fb646", "rocm": "#e05555", "distributed": "#a06cd5"}
OTHER = "#8b95a5"


@generic
def picture(x: Any) -> Any:
    """A small SVG picture of an array: its shape, structure and place."""


@picture.method
def _(x: AbstractArray) -> str:
    return box(x.shape, colour_of(x))


def colour_of(x: Any) -> str:
    """The colour of the place of an array."""
    return COLOURS.get(x.place.kind, OTHER)


# Pieces


def svg(width: float, height: float, parts: Iterable[str]) -> str:
    """Elements as a picture of this size."""
    inside = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'style="overflow:visible;vertical-align:middle">{inside}</svg>'
    )


def area(points: Iterable[tuple[float, float]], colour: str, strength: float = 0.3, line: float = 1.0) -> str:
    """A filled polygon, outlined if `line` is not 0."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polygon points="{path}" fill="{colour}" fill-opacity="{strength}" stroke="{colour}" '
        f'stroke-width="{line}" stroke-linejoin="round"/>'
    )


def rectangle(
    x: float, y: float, w: float, h: float, colour: str, strength: float = 0.3, line: float = 1.0
) -> str:
    return area([(x, y), (x + w, y), (x + w, y + h), (x, y + h)], colour, strength, line)


def stroke(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-linecap="round"{dashes}/>'
    )


def text(x: float, y: float, said: Any, size: float = 11, anchor: str = "middle", turn: float = 0) -> str:
    turned = f' transform="rotate({turn},{x:.1f},{y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="currentColor" '
        f'fill-opacity="0.75" font-family="sans-serif"{turned}>{html.escape(str(said))}</text>'
    )


def lengths(shape: tuple[int, ...], side: float = SIDE) -> list[float]:
    """How long the sides of an array of this shape are drawn: in proportion, within reason."""
    longest = max(shape, default=1) or 1
    # The square root keeps a 1000 x 10 matrix readable and visibly slim.
    return [max(LEAST, side * (n / longest) ** 0.5) for n in shape]


# Boxes by the number of dimensions


def box(shape: tuple[int, ...], colour: str, inside: str | None = None) -> str:
    """An array as a point, a bar, a rectangle or a solid, with the lengths of its sides.

    `inside` replaces what fills a rectangle (of the size `lengths(shape)` says, at 0, 0).
    """
    if 0 in shape:
        return _nothing(shape, colour)
    if len(shape) == 0:
        return svg(
            44, 44, [f'<circle cx="22" cy="22" r="7" fill="{colour}" fill-opacity="0.6" stroke="{colour}"/>']
        )
    if len(shape) == 1:
        return _bar(shape[0], colour, inside)
    if len(shape) == 2:
        return _sheet(shape, colour, inside)
    return _solid(shape, colour)


def _nothing(shape: tuple[int, ...], colour: str) -> str:
    edge = f'fill="none" stroke="{colour}" stroke-dasharray="3 3"'
    said = " × ".join(map(str, shape))
    return svg(90, 62, [f'<rect x="13" y="4" width="64" height="34" {edge}/>', text(45, 56, said)])


def _bar(n: int, colour: str, inside: str | None) -> str:
    wide, high = SIDE + 20, 16.0
    if inside is None:
        inside = rectangle(0, 0, wide, high, colour) + _lines(n, 1, wide, high, colour)
    return svg(
        wide + 8, high + 26, [f'<g transform="translate(4,4)">{inside}</g>', text(4 + wide / 2, high + 20, n)]
    )


def _sheet(shape: tuple[int, ...], colour: str, inside: str | None) -> str:
    high, wide = lengths(shape)
    if inside is None:
        inside = rectangle(0, 0, wide, high, colour) + _lines(shape[1], shape[0], wide, high, colour)
    return svg(
        wide + 30, high + 26, [f'<g transform="translate(4,4)">{inside}</g>', *_sides(shape, wide, high)]
    )


def _sides(shape: tuple[int, ...], wide: float, high: float) -> list[str]:
    """The numbers below and beside a rectangle."""
    return [text(4 + wide / 2, high + 20, shape[1]), text(wide + 17, 4 + high / 2, shape[0], turn=-90)]


def _lines(columns: int, rows: int, wide: float, high: float, colour: str) -> str:
    """Faint lines between elements, where they are few enough to be counted."""
    faint = f'stroke="{colour}" stroke-opacity="0.45" stroke-width="0.6"'
    drawn = []
    if columns <= 16 and wide / columns >= 5:
        drawn += [f"M{wide * i / columns:.1f},0V{high:.1f}" for i in range(1, columns)]
    if rows <= 16 and high / rows >= 5:
        drawn += [f"M0,{high * i / rows:.1f}H{wide:.1f}" for i in range(1, rows)]
    return f'<path d="{"".join(drawn)}" fill="none" {faint}/>' if drawn else ""


def _solid(shape: tuple[int, ...], colour: str) -> str:
    """Three dimensions as a solid; those before them as a number of such."""
    *more, depth, rows, columns = shape
    back, high, wide = lengths((depth, rows, columns), SIDE * 0.8)
    dx, dy = back * 0.5, back * 0.38
    top = 6.0
    left = 6.0
    copies = min(2, len(more))  # sheets behind the solid stand for further dimensions
    parts = []
    for i in range(copies, 0, -1):
        shift = 7.0 * i
        outline = [
            (left + shift, top + dy - shift), (left + dx + shift, top - shift),
            (left + dx + wide + shift, top - shift), (left + dx + wide + shift, top + high - shift),
            (left + wide + shift, top + dy + high - shift), (left + shift, top + dy + high - shift),
        ]  # fmt: skip
        parts.append(area(outline, colour, 0.08, 0.6))
    a, b = (left, top + dy), (left + wide, top + dy)
    c, d = (left + wide, top + dy + high), (left, top + dy + high)
    parts += [
        area([a, b, c, d], colour, 0.3),
        area([a, (a[0] + dx, top), (b[0] + dx, top), b], colour, 0.45),
        area([b, (b[0] + dx, top), (c[0] + dx, top + high), c], colour, 0.2),
        text(left + wide / 2, top + dy + high + 16, columns),
        text(left + wide + dx + 9 + 7 * copies, top + high / 2 - 7 * copies + 3, rows, anchor="start"),
        text(left + dx / 2 - 5, top + dy / 2, depth, anchor="end"),
    ]
    head = 7.0 * copies + 6
    margin = 26.0
    if more:
        parts.append(text(left + wide / 2, top + dy + high + 32, " × ".join(map(str, more)) + " of these"))
    width = left + wide + dx + 42 + 7 * copies + margin
    height = top + dy + high + (40 if more else 24) + head
    return svg(width, height, [f'<g transform="translate({margin:.0f},{head:.0f})">', *parts, "</g>"])


# Patterns inside a rectangle


def banded(shape: tuple[int, ...], colour: str, lower: float, upper: float, mirrored: bool = False) -> str:
    """A matrix that is zero but for a band: `lower` diagonals below the main one, `upper` above.

    `mirrored`: what is below the main diagonal follows from what is above.
    """
    high, wide = lengths(shape)
    rows, columns = shape
    corners = [(0.0, 0.0), (float(columns), 0.0), (float(columns), float(rows)), (0.0, float(rows))]
    # A band is drawn at least 3 pixels thick.
    above = max(upper + 1.0, 3 * columns / wide)
    below = max(lower + 1.0, 3 * rows / high)
    band = _below(corners, lambda x, y: x - y - above)
    parts = [rectangle(0, 0, wide, high, colour, 0.06, 0.8)]

    def draw(points: list[tuple[float, float]], strength: float) -> None:
        if points:
            scaled = [(x * wide / columns, y * high / rows) for x, y in points]
            parts.append(area(scaled, colour, strength, 0.8))

    if mirrored:
        draw(_below(_below(band, lambda x, y: y - x - below), lambda x, y: x - y), 0.15)
        draw(_below(band, lambda x, y: y - x), 0.5)
    else:
        draw(_below(band, lambda x, y: y - x - below), 0.5)
    return box(shape, colour, "".join(parts))


def _below(
    points: list[tuple[float, float]], line: Callable[[float, float], float]
) -> list[tuple[float, float]]:
    """The part of a polygon where a linear function is not positive."""
    kept: list[tuple[float, float]] = []
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1], strict=True):
        a, b = line(x1, y1), line(x2, y2)
        if a <= 0:
            kept.append((x1, y1))
        if (a < 0 < b) or (b < 0 < a):
            t = a / (a - b)
            kept.append((x1 + t * (x2 - x1), y1 + t * (y2 - y1)))
    return kept


def blocks(shape: tuple[int, ...], colour: str, rows: int, columns: int, filled: Any = None) -> str:
    """A matrix of blocks, of which `filled(i, j)` says how strong each is (all alike if not given)."""
    high, wide = lengths(shape)
    m, n = min(rows, 8), min(columns, 8)
    parts = [rectangle(0, 0, wide, high, colour, 0.06, 0.8)]
    for i in range(m):
        for j in range(n):
            strength = 0.3 if filled is None else filled(i, j)
            if strength:
                parts.append(
                    rectangle(
                        j * wide / n + 1, i * high / m + 1, wide / n - 2, high / m - 2, colour, strength, 0.6
                    )
                )
    return box(shape, colour, "".join(parts))


def stripes(shape: tuple[int, ...], colour: str, wrapped: bool = False) -> str:
    """A matrix constant along its diagonals; `wrapped` if they come back on the other side."""
    high, wide = lengths(shape)
    parts = [rectangle(0, 0, wide, high, colour, 0.1, 1.0)]
    count = 7
    for d in range(-count + 1, count):
        strong = 0.9 if (d % count if wrapped else abs(d)) % 3 == 0 else 0.35
        a, b = max(0, d) / count, max(0, -d) / count
        reach = 1 - max(a, b)
        parts.append(
            f'<line x1="{a * wide:.1f}" y1="{b * high:.1f}" x2="{(a + reach) * wide:.1f}" '
            f'y2="{(b + reach) * high:.1f}" stroke="{colour}" stroke-opacity="{strong}" stroke-width="1.6"/>'
        )
    return box(shape, colour, "".join(parts))


def side_by_side(pictures: list[str], sign: str) -> str:
    """Several pictures with a sign between them: the factors of a product, the parts of a sum."""
    gap = f'<span style="font-size:1.3em;opacity:0.7;padding:0 0.3em">{html.escape(sign)}</span>'
    return f'<span style="white-space:nowrap">{gap.join(pictures)}</span>'


# Wrappers


@picture.method
def _(x: View) -> str:
    """Which part of its parent it shows, where the parent is a vector or a matrix."""
    parent = verbs.parent(x)
    spans = _spans(x, parent)
    if spans is None:
        return box(x.shape, colour_of(x))
    colour = colour_of(x)
    whole = (1, *parent.shape) if parent.ndim == 1 else parent.shape
    high, wide = (16.0, SIDE + 20) if parent.ndim == 1 else lengths(whole)
    (r0, r1, rstep), (c0, c1, cstep) = ((0, 1, 1), *spans) if parent.ndim == 1 else spans
    parts = [
        f'<rect width="{wide:.1f}" height="{high:.1f}" fill="none" stroke="{colour}" stroke-dasharray="3 3"/>'
    ]
    for top, bottom in _slabs(r0, r1, rstep, whole[0], high):
        for left, right in _slabs(c0, c1, cstep, whole[1], wide):
            parts.append(rectangle(left, top, right - left, bottom - top, colour, 0.45, 0.8))
    return box(parent.shape, colour, "".join(parts))


def _spans(x: View, parent: Any) -> list[tuple[int, int, int]] | None:
    """(first, past the last, step) of what is shown of each dimension of the parent."""
    if parent.ndim not in (1, 2) or 0 in parent.shape or 0 in x.shape:
        return None
    index = [i for i in x._how if i is not None]
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index[at : at + 1] = [slice(None)] * (parent.ndim - len(index) + 1)
    index += [slice(None)] * (parent.ndim - len(index))
    spans = []
    for i, n in zip(index, parent.shape, strict=False):
        if isinstance(i, slice):
            shown = range(n)[i]
            low, high = min(shown[0], shown[-1]), max(shown[0], shown[-1])
            spans.append((low, high + 1, abs(shown.step)))
        else:
            spans.append((int(i) % n, int(i) % n + 1, 1))
    return spans


def _slabs(first: int, stop: int, step: int, n: int, length: float) -> list[tuple[float, float]]:
    """Where a slice lies on a side of this length: one piece, or stripes for a step."""
    scale = length / n
    if step == 1 or (stop - first) / step * scale > 6 * 40:
        return [(first * scale, max(stop * scale, first * scale + 2))]
    count = len(range(first, stop, step))
    shown = min(count, 12)
    pitch = (stop - first) * scale / shown
    thick = max(1.5, min(pitch * 0.6, pitch / step))
    return [(first * scale + i * pitch, first * scale + i * pitch + thick) for i in range(shown)]


@picture.method
def _(x: BroadcastTo) -> str:
    """Drawn open: it repeats what its parent holds once."""
    if len(x.shape) not in (1, 2) or 0 in x.shape:
        return box(x.shape, colour_of(x))
    colour = colour_of(x)
    parent = verbs.parent(x).shape
    high, wide = (16.0, SIDE + 20) if len(x.shape) == 1 else lengths(x.shape)
    rows = high / x.shape[-2] if len(x.shape) == 2 and (len(parent) < 2 or parent[-2] == 1) else high
    columns = wide / x.shape[-1] if not parent or parent[-1] == 1 else wide
    held = rectangle(0, 0, max(columns, 4), max(rows, 4), colour, 0.55, 0.8)
    return box(x.shape, colour, rectangle(0, 0, wide, high, colour, 0.12, 0.8) + held)
