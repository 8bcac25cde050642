"""A tree as a picture: data on the left flows through operations to the result on the right.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import flow
>>> x = mb.HostArray([1.0, 2.0])
>>> flow.flow(mb.tree(x * 2 + x))[:4]
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
        self.column = 1 + max((n.column for n in inputs), default=-1)
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
    # A row for each end of the tree; what they flow into stands in their middle, and moves down
    # where another stands already.
    row = 0
    for node in nodes:
        if not node.inputs:
            node.y = row * _ROW
            row += 1
        else:
            node.y = sum(n.y for n in node.inputs) / len(node.inputs)
    columns = 1 + max(n.column for n in nodes)
    for c in range(columns):
        below = -_ROW
        for node in sorted((n for n in nodes if n.column == c), key=lambda n: n.y):
            node.y = max(node.y, below + _ROW)
            below = node.y
    widths = [max(n.wide for n in nodes if n.column == c) for c in range(columns)]
    starts = [2.0 + sum(widths[:c]) + c * _GAP for c in range(columns)]
    parts = []
    for node in nodes:
        for source in node.inputs:
            x1, y1 = starts[source.column] + source.wide, source.y + _HIGH / 2 + 2
            x2, y2 = starts[node.column], node.y + _HIGH / 2 + 2
            middle = (x1 + x2) / 2
            parts.append(
                f'<path d="M{x1:.1f},{y1:.1f}C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}" '
                'fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width="1.2"/>'
            )
    for node in nodes:
        parts += _drawn(node, starts[node.column])
    wide = max(starts[n.column] + n.wide for n in nodes) + 4
    return pictures.svg(wide, max(n.y for n in nodes) + _HIGH + 6, parts)


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
