"""A tree as a picture: data on the left flows through operations to the result on the right.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import flow
>>> x = mb.HostArray([1.0, 2.0])
>>> flow.flow(mb.ext.tree(x * 2 + x))[:4]
'<svg'
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import pictures
from mirabelle.arraytypes.dense import VIEWS
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# More nodes than this are no picture any more, but a text.
LIMIT = 40
_ROW, _HIGH, _GAP, _LETTER = 34.0, 24.0, 30.0, 6.6


class _Node:
    """One box: what it says, what flows into it, and where it stands."""

    def __init__(self, said: str, note: str, colour: str, inputs: list[_Node]) -> None:
        self.said = said
        self.note = note
        self.colour = colour
        self.inputs = inputs
        self.column: int = 1 + max((n.column for n in inputs), default=-1)
        self.y = 0.0
        self.wide = max(len(said), 0.8 * len(note)) * _LETTER + 16


def flow(version: Any) -> str | None:
    """The picture of a tree; None if it is too large for one."""
    nodes: list[_Node] = []
    if _collect(version, {}, nodes, {"x": 0}) is None:
        return None
    # Data stands beside what reads it first.
    for node in nodes:
        if not node.inputs:
            node.column = min((n.column for n in nodes if node in n.inputs), default=1) - 1
    _set_heights(nodes)
    columns = 1 + max(n.column for n in nodes)
    widths = [max(n.wide for n in nodes if n.column == c) for c in range(columns)]
    starts = [2.0 + sum(widths[:c]) + c * _GAP for c in range(columns)]
    parts = []
    deepest = 0.0
    for node in nodes:
        for source in node.inputs:
            x1, y1 = starts[source.column] + source.wide, source.y + _HIGH / 2 + 2
            x2, y2 = starts[node.column], node.y + _HIGH / 2 + 2
            lane = _lane(source, node, nodes)
            if lane is None:
                path = f"M{x1:.1f},{y1:.1f}{_bend(x1, y1, x2, y2)}"
            else:  # below what stands between
                left, right = starts[source.column + 1], starts[node.column - 1] + widths[node.column - 1]
                path = f"M{x1:.1f},{y1:.1f}{_bend(x1, y1, left, lane)}H{right:.1f}{_bend(right, lane, x2, y2)}"
                deepest = max(deepest, lane)
            parts.append(
                f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width="1.2"/>'
            )
    for node in nodes:
        parts += _drawn(node, starts[node.column])
    wide = max(starts[n.column] + n.wide for n in nodes) + 4
    return pictures.svg(wide, max(deepest, *(n.y + _HIGH for n in nodes)) + 6, parts)


def _bend(x1: float, y1: float, x2: float, y2: float) -> str:
    """A curve from here to there that leaves and arrives level."""
    middle = (x1 + x2) / 2
    return f"C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"


def _lane(source: _Node, node: _Node, nodes: list[_Node]) -> float | None:
    """The height at which a line passes below what stands in its way; None if nothing does."""
    between = [n for n in nodes if source.column < n.column < node.column]
    low, high = min(source.y, node.y), max(source.y, node.y)
    if not any(low - _ROW < n.y < high + _ROW for n in between):
        return None
    return max(n.y for n in between) + _HIGH + 10


def _set_heights(nodes: list[_Node]) -> None:
    """An operation stands in the middle of the operations it reads, data right below those it goes with."""
    below: dict[int, float] = {}  # column → where the next node fits

    def stand(node: _Node, y: float) -> None:
        node.y = max(y, below.get(node.column, 0.0))
        below[node.column] = node.y + _ROW
        standing.add(node)

    standing: set[_Node] = set()
    for node in nodes:  # what flows into a node comes before it
        if node.inputs:
            known = [n.y for n in node.inputs if n in standing]
            for source in node.inputs:
                if source not in standing:
                    stand(source, max(known, default=-_ROW) + _ROW)
                    known.append(source.y)
            stand(node, sum(n.y for n in node.inputs) / len(node.inputs))
    for node in nodes:
        if node not in standing:
            stand(node, 0.0)


def _drawn(node: _Node, x: float) -> list[str]:
    round_ = _HIGH / 2 if node.inputs else 3
    y = node.y + 2
    edge = f'<rect x="{x:.1f}" y="{y:.1f}" width="{node.wide:.1f}" height="{_HIGH}" rx="{round_}" '
    parts = [f'{edge}fill="{node.colour}" fill-opacity="0.22" stroke="{node.colour}"/>']
    middle = x + node.wide / 2
    if node.note:
        parts.append(pictures.text(middle, y + 11, node.said, 11))
        parts.append(pictures.text(middle, y + 20.5, node.note, 8.5))
    else:
        parts.append(pictures.text(middle, y + 16, node.said, 11))
    return parts


def _collect(x: Any, seen: dict[int, _Node], nodes: list[_Node], count: dict[str, int]) -> _Node | None:
    """The node of a version after those that flow into it; None if there are too many."""
    if isinstance(x, (Broadcasted, Reduced)) and x.value is not None:
        x = x.value
    node = seen.get(id(x)) if isinstance(x, (Leaf, Broadcasted, Reduced)) else None
    if node is not None:
        return node
    if len(nodes) >= LIMIT:
        return None
    if isinstance(x, Leaf):
        count["x"] += 1
        family = VIEWS.get(type(x.view))
        kind = family.home.kind if family is not None else ""
        node = _Node(f"x{count['x']}", _shaped(x), pictures.COLOURS.get(kind, pictures.OTHER), [])
    elif isinstance(x, (Broadcasted, Reduced)):
        inputs = []
        for a in (x.args or ()) if isinstance(x, Broadcasted) else (x.operand,):
            below = _collect(a, seen, nodes, count)
            if below is None:
                return None
            inputs.append(below)
        if isinstance(x, Broadcasted):
            node = _Node(x.sig.op.name, _shaped(x), pictures.OTHER, inputs)
        else:
            node = _Node(f"{x.reduction.name} over {_axes(x)}", _shaped(x), "#a06cd5", inputs)
    else:
        node = _Node(f"{x!s}"[:16], "", pictures.OTHER, [])
    seen[id(x)] = node
    nodes.append(node)
    return node


def _axes(x: Reduced) -> str:
    operand: Any = x.operand
    if len(x.axes) == len(operand.shape):
        return "all"
    return ("axis " if len(x.axes) == 1 else "axes ") + ", ".join(map(str, x.axes))


def _shaped(x: Any) -> str:
    return f"{x.dtype.name} {'×'.join(map(str, x.shape))}".rstrip()
