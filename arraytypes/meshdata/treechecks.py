"""What axis trees are checked for: labels used twice, extents over missing axes, indices out of range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.axes import Ragged
from mirabelle.arraytypes.meshdata.expressions import evaluate
from mirabelle.arraytypes.meshdata.layouts import LaidComponent

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.trees import AxisTree


def check_labels(tree: AxisTree, above: tuple[Any, ...]) -> None:
    """A ValueError if an axis has the label of one above it."""
    assert tree.axis is not None
    label = tree.axis.label
    if label in above:
        raise ValueError(
            f"The axis label {label!r} is used twice on one path, {' / '.join(map(str, (*above, label)))}: an "
            "index along it would not say which is meant. Give one of them another label."
        )
    for child in tree.children.values():
        check_labels(child, (*above, label))


def free_labels(tree: AxisTree, above: tuple[Any, ...]) -> Iterator[Any]:
    """The axes over which extents vary and that are not above them."""
    if tree.axis is None:
        return
    for c in tree.axis.components:
        for extent in (c.extent, *[n for _, n in c.regions]):
            if isinstance(extent, Ragged):
                if extent.axes is None and len(extent.counts) > len(above):
                    yield f"axis {len(extent.counts) - len(above)} above"
                yield from [name for name in extent.axes or () if name not in above]
    for child in tree.children.values():
        yield from free_labels(child, (*above, tree.axis.label))


def check_range(c: LaidComponent, at: Mapping[Any, Any]) -> None:
    """An IndexError if an index along a component is out of range."""
    i = at[c.label]
    extent = evaluate(c.extent, at)
    if np.size(i) == 0 or np.size(extent) == 0:
        return
    simple = isinstance(extent, (int, np.integer))
    low = int(np.min(i))
    high, end = (int(np.max(i)), extent) if simple else (0, 1)
    if low < 0 or high >= end or not (simple or bool(np.all(i < extent))):
        wrong = low
        if low >= 0:
            both = np.broadcast_arrays(i, extent)
            outside = both[0] >= both[1]
            wrong, end = int(both[0][outside][0]), int(both[1][outside][0])
        elif not simple:
            end = "so many"
        name = c.label if c.key is None else c.key
        raise IndexError(
            f"index {wrong} is out of range along {name!r}, which has {end} entries there, from 0."
        )
