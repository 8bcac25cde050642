"""What people see of axis trees: a tree with the layout of each leaf, and storage as a coloured strip.

>>> from mirabelle import meshdata as md
>>> md.tree(md.Axis("mesh", {"cell": 2, "edge": 5}), {"edge": md.Axis("dof", 2)})
AxisTree of 12 entries
mesh: cell [2]  at mesh
mesh: edge [5]
  dof [2]       at 2*mesh + dof + 2
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mirabelle.arraytypes import cards, pictures
from mirabelle.arraytypes.cards import facts, sample_text
from mirabelle.arraytypes.meshdata.axes import Component, Ragged
from mirabelle.arraytypes.meshdata.expressions import Expression, shown
from mirabelle.arraytypes.meshdata.regions import Path
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.arraytypes.meshdata.trees import AxisTree
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import format_tree

# Middle tones, as those of places; leaves beyond take them again.
COLOURS = ("#4f8edc", "#e8963a", "#5fb646", "#a06cd5", "#e05555", "#2aa79b", "#c9a227", "#8b95a5")
# Of so many entries each has a box of its own, and so many stand in a row.
FEW, ROW = 128, 32
# Where each entry lies is looked up for a picture of at most so many.
MOST = 4_000_000
COLUMNS = 280
WIDE, HIGH = 560.0, 22.0


def text_of(tree: AxisTree) -> str:
    """The tree, axis by axis, with where the entries of each leaf lie."""
    if tree.axis is None:
        return "AxisTree of one entry, without axes"
    lines = list(_lines(tree, (), 0))
    if tree.open:
        head = f"AxisTree that stands under {', '.join(map(str, tree.open))}"
        return "\n".join([head, *[line for line, _ in lines]])
    wide = max(len(line) for line, path in lines if path is not None)
    said = [
        line if path is None else f"{line.ljust(wide)}  at {_brief(tree.layout(dict(path)))}"
        for line, path in lines
    ]
    return "\n".join([f"AxisTree of {tree.size} entries", *said])


def _brief(layout: Expression) -> str:
    said = str(layout)
    return said if len(said) <= 72 else said[:69] + "..."


def _lines(tree: AxisTree, path: Path, depth: int) -> Iterator[tuple[str, Path | None]]:
    """Each component on a line, and its path if it is a leaf."""
    assert tree.axis is not None
    for c in tree.axis.components:
        here = (*path, (tree.axis.label, c.key))
        child = tree.children.get(c.key)
        yield "  " * depth + _named(tree, c), here if child is None else None
        if child is not None:
            yield from _lines(child, here, depth + 1)


def _named(tree: AxisTree, c: Component) -> str:
    assert tree.axis is not None
    label = str(tree.axis.label)
    notes = [_extent(c.extent), *[f"{name} {_extent(n)}" for name, n in c.regions]]
    notes += ["numbered"] if tree.axis.numbering is not None else []
    return f"{label if c.key is None else f'{label}: {c.key}'} [{', '.join(notes)}]"


def _extent(extent: int | Ragged) -> str:
    if isinstance(extent, int):
        return str(extent)
    return shown(extent.values)[1:-1] + (f" over {', '.join(map(str, extent.axes))}" if extent.axes else "")


def name_of(path: Path) -> str:
    """A leaf in a legend: the components on the way, and the labels of axes that have none."""
    return " / ".join(f"{label}" if key is None else f"{key}" for label, key in path)


# Storage as a strip


def strip(tree: AxisTree) -> str:
    """Storage from its first entry to its last, in the colours of the leaves."""
    if not tree.size or tree.open or tree.size > MOST:
        return ""
    leaf = tree._located[0]
    return _boxes(tree, leaf) if tree.size <= FEW else _ribbon(tree, leaf)


def colour_of(leaf: int) -> str:
    return COLOURS[leaf % len(COLOURS)]


def _strengths(tree: AxisTree) -> list[tuple[slice, float, str]]:
    """The outermost regions: what of storage each is, how strongly it is drawn, and its name."""
    spans = [(span, str(names[0])) for names, span in tree.regions.items() if len(names) == 1]
    if not spans:
        return [(slice(0, tree.size), 0.5, "")]
    return [(span, max(0.6 - 0.35 * k, 0.15), name) for k, (span, name) in enumerate(spans)]


def _boxes(tree: AxisTree, leaf: np.ndarray) -> str:
    """Few entries: a box for each, with its indices."""
    side = WIDE / ROW if tree.size > ROW else min(WIDE / tree.size, 2.2 * HIGH)
    parts, entry = [], tree._located[1]
    domains = [tree.domain(dict(path)).indices for path in tree._leaves]
    for span, strength, name in _strengths(tree):
        for at in range(span.start, span.stop):
            x, y = side * (at % ROW), (HIGH + 20) * (at // ROW)
            said = ",".join(str(i[entry[at]]) for i in domains[leaf[at]].values())
            parts.append(pictures.rectangle(x, y, side, HIGH, colour_of(leaf[at]), strength, 0.8))
            parts.append(pictures.text(x + side / 2, y + HIGH / 2 + 3, said, 9 if len(said) * 5 < side else 6))
            if at == span.start or (at % 8 == 0 and at - span.start > len(name) // 2):
                said = f"{at} {name}" if at == span.start else str(at)
                parts.append(pictures.text(x + 1, y + HIGH + 11, said, 8, "start"))
    rows = -(-tree.size // ROW)
    return pictures.svg(side * min(tree.size, ROW) + 4, rows * (HIGH + 20), [_moved(2, 1, parts)])


def _ribbon(tree: AxisTree, leaf: np.ndarray) -> str:
    """Many entries: columns, each in the colours of the leaves that are in it."""
    columns = min(COLUMNS, tree.size)
    column = np.arange(tree.size) * columns // tree.size
    leaves = len(tree._leaves)
    counts = np.bincount(column * leaves + leaf, minlength=columns * leaves).reshape(columns, leaves)
    shares, wide, parts = counts / counts.sum(axis=1, keepdims=True), WIDE / columns, []
    spans = _strengths(tree)
    changes = (np.abs(np.diff(shares, axis=0)) > 1e-9).any(axis=1)
    for span, _, _ in spans[1:]:  # a region begins: a new piece
        changes[max(0, span.start * columns // tree.size - 1)] = True
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), columns]
    for low, high in pairwise(bounds):
        first = low * tree.size // columns
        strength = next((s for span, s, _ in reversed(spans) if first >= span.start), 0.5)
        top = 0.0
        for k in np.flatnonzero(shares[low]).tolist():
            tall = HIGH * 1.4 * shares[low, k]
            colour, along = colour_of(k), (high - low) * wide
            parts.append(pictures.rectangle(low * wide, top, along, tall, colour, strength, 0))
            top += tall
    for span, _, name in spans:
        x = span.start * WIDE / tree.size
        parts += [pictures.stroke(x, 0, x, HIGH * 1.4 + 4, "currentColor", 0.6)] if span.start else []
        late = WIDE - x < 110  # there the end of all stands
        said = f"{span.start} {name}"
        parts.append(
            pictures.text(x - 3 if late else x + 1, HIGH * 1.4 + 13, said, 9, "end" if late else "start")
        )
    parts.append(pictures.text(WIDE, HIGH * 1.4 + 13, tree.size, 9, "end"))
    return pictures.svg(WIDE + 4, HIGH * 1.4 + 20, [_moved(2, 1, parts)])


def _moved(x: float, y: float, parts: list[str]) -> str:
    return f'<g transform="translate({x:g},{y:g})">{"".join(parts)}</g>'


_CELL = "text-align:left;padding:0.05em 1.2em 0.05em 0;border:none;background:none"
_TABLE = "border-collapse:collapse;border:none;color:inherit;font-size:inherit"


def legend(tree: AxisTree, values: dict[Path, str] | None = None) -> str:
    """The leaves in their colours, with how many entries each has and where they lie (or what they hold)."""
    rows = []
    for k, (path, layout) in enumerate(tree._leaves.items()):
        said = values.get(path, "") if values is not None else f"at {_brief(layout)}"
        cells = (
            f'<span style="color:{colour_of(k)}">■</span> {html.escape(name_of(path))}',
            str(tree.domain(dict(path)).size),
            html.escape(said),
        )
        inside = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        rows.append(f'<tr style="background:none;border:none">{inside}</tr>')
    return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def html_of(tree: AxisTree) -> str:
    """What a notebook shows of a tree."""
    if tree.axis is None or tree.open:
        return cards.preformatted(text_of(tree))
    said = {"entries": str(tree.size), "leaves": str(len(tree._leaves))}
    for names, span in tree.regions.items():
        said[" / ".join(map(str, names))] = f"{span.start} to {span.stop}"
    lines = "\n".join(line for line, _ in _lines(tree, (), 0))
    return cards.card("AxisTree", said, cards.preformatted(lines), strip(tree), legend(tree))


# Arrays over trees


@pictures.picture.method
def _(x: TreeArray) -> str:
    return strip(x.tree) or pictures.box(x.shape, pictures.colour_of(x))


@facts.method
def _(x: TreeArray) -> dict[str, str]:
    return facts(x.parent) | {"leaves": str(len(x.tree.leaves))}


@sample_text.method
def _(x: TreeArray) -> str:
    """The first values of each leaf; of a large one that is pending the expression."""
    version = cards.waiting(x.parent) if x.size > cards.SMALL else None
    if version is not None:
        return format_tree(version)
    if cards.elsewhere(x) or x.carries_derivatives:
        return str(sample_text(x.parent))
    return "\n".join(f"{name}  {said}" for name, said in _samples(x))


def _samples(x: TreeArray, most: int = 6) -> list[tuple[str, str]]:
    tree, found = x.tree, []
    wide = max(len(name_of(path)) for path in tree._leaves)
    for path in list(tree._leaves)[:12]:
        offsets = tree.offsets(dict(path))
        few = verbs.fetch(verbs.getitem(x.parent, (offsets[:most].astype(np.int64),)))
        said = np.array2string(few, precision=4, separator=" ")
        found.append((name_of(path).ljust(wide), said[:-1] + " ...]" if offsets.size > most else said))
    return found
