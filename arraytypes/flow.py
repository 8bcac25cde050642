"""A tree as a picture: data above flows through operations to the result below.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import flow
>>> x = mb.HostArray([1.0, 2.0])
>>> flow.flow(mb.ext.tree(x * 2 + x))[:4]
'<svg'
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import pictures
from mirabelle.arraytypes.boxes import Box, drawing, typed
from mirabelle.arraytypes.dense import VIEWS
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# More nodes than this are no picture any more, but a text.
LIMIT = 40


def flow(version: Any) -> str | None:
    """The picture of a tree; None if it is too large for one."""
    boxes: list[Box] = []
    return None if _collect(version, {}, boxes) is None else drawing(boxes)


def _collect(x: Any, seen: dict[int, Box], boxes: list[Box]) -> Box | None:
    """The box of a version after those that flow into it; None if there are too many."""
    if isinstance(x, (Broadcasted, Reduced)) and x.value is not None:
        x = x.value
    is_version = isinstance(x, (Leaf, Broadcasted, Reduced))
    if is_version and id(x) in seen:
        return seen[id(x)]
    if len(boxes) >= LIMIT:
        return None
    if isinstance(x, Leaf):
        number = 1 + sum(box.is_source and box.said[0] == "x" for box in boxes)
        family = VIEWS.get(type(x.view))
        kind = family.home.kind if family is not None else ""
        box = Box(f"x{number}", [typed(x)], pictures.COLOURS.get(kind, pictures.OTHER), source=True)
    elif isinstance(x, Broadcasted):
        box = Box(x.sig.op.name, [typed(x)], pictures.OTHER)
    elif isinstance(x, Reduced):
        box = Box(f"{x.reduction.name} over {_axes(x)}", [typed(x)], "#a06cd5")
    else:
        box = Box(f"{x!s}"[:16], [], pictures.OTHER, source=True)
    operands: Any = ()
    if is_version and not isinstance(x, Leaf):
        operands = (x.operand,) if isinstance(x, Reduced) else x.args
    for a in operands:
        below = _collect(a, seen, boxes)
        if below is None:
            return None
        box.reading(below)
    if is_version:
        seen[id(x)] = box
    boxes.append(box)
    return box


def _axes(x: Reduced) -> str:
    operand: Any = x.operand
    if len(x.axes) == len(operand.shape):
        return "all"
    return ("axis " if len(x.axes) == 1 else "axes ") + ", ".join(map(str, x.axes))
