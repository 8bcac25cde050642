"""Putting axis trees together: axes within axes, and different ones under the components of one.

>>> from mirabelle import meshdata as md
>>> md.tree(md.Axis("a", {"x": 2, "y": 3}), [md.Axis("b", 3), None]).size
9
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes.meshdata import (
    treepictures,  # noqa: F401 - how trees, and arrays over them, are shown
)
from mirabelle.arraytypes.meshdata.axes import Axis
from mirabelle.arraytypes.meshdata.trees import UNIT, AxisTree

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.annotations import Branch


def tree(*axes: Branch) -> AxisTree:
    """A tree of axes, each within all leaves of those before it.

    A mapping of components to trees, or a list with one for each component, puts different ones under the
    components of the axis before it. Where one is expected an axis, a tree, or a tuple of axes within each
    other will do.

    Parameters
    ----------
    *axes : Axis, AxisTree, tuple, list or mapping
        From the outermost to the innermost.

    Returns
    -------
    mb.meshdata.AxisTree
        It describes how entries lie, and holds none; `md.zeros(tree)` makes an array over it.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.tree(md.Axis("a", 4), md.Axis("b", 3), md.Axis("c", 2)).layout()
    6*a + 2*b + c
    >>> a = md.Axis("a", {"x": 2, "y": 3})
    >>> print(md.tree(a, {"x": md.Axis("b", 3), "y": md.Axis("c", 2)}))
    AxisTree of 12 entries
    a: x [2]
      b [3]  at 3*a + b
    a: y [3]
      c [2]  at 2*a + c + 6
    """
    if len(axes) == 1 and isinstance(axes[0], (list, tuple)):
        axes = tuple(axes[0])
    made = UNIT
    for given in reversed(axes):
        made = _above(given, made, axes)
    return made


def _above(given: Any, below: Any, axes: Any) -> Any:
    """An axis or tree with another under all its leaves; mappings wait for the axis before them."""
    if isinstance(given, (Mapping, list)):
        if given is axes[0]:
            raise TypeError("A tree begins with an axis; the components of an axis are given after it.")
        parts = given.items() if isinstance(given, Mapping) else enumerate(given)
        return _Parts(isinstance(given, list), {k: _under_leaves(_as_tree(v), below) for k, v in parts}, below)
    return _under_leaves(_as_tree(given), below)


class _Parts:
    """Trees for the components of an axis, and what is under the other components."""

    def __init__(self, listed: bool, trees: dict[Any, AxisTree], rest: AxisTree) -> None:
        self.listed, self.trees, self.rest = listed, trees, rest

    def of(self, axis: Axis) -> dict[Any, AxisTree]:
        trees = self.trees
        if self.listed:
            if len(trees) != len(axis.keys):
                raise ValueError(
                    f"{len(trees)} trees are listed under the axis {axis.label!r}, which has {len(axis.keys)} "
                    "components: list one for each, None for a leaf."
                )
            trees = dict(zip(axis.keys, trees.values(), strict=True))
        for key in trees:
            axis.component(key)
        return {k: trees.get(k, self.rest) for k in axis.keys}


def _as_tree(given: Any) -> AxisTree:
    if given is None:
        return UNIT
    if isinstance(given, AxisTree):
        return given
    if isinstance(given, Axis):
        return AxisTree(given)
    if isinstance(given, (tuple, list)):
        return tree(*given)
    raise TypeError(f"A tree is made of axes, md.Axis(label, extent), and {given!r} is none.")


def _under_leaves(top: AxisTree, below: Any) -> AxisTree:
    if top.axis is None:
        return below if isinstance(below, AxisTree) else below.rest
    if below is UNIT:
        return top
    if not isinstance(below, _Parts):
        inner = dict.fromkeys(top.axis.keys, below)
    elif not top.children:
        inner = below.of(top.axis)
    elif len(top.children) == len(top.axis.keys):
        inner = {}
    else:
        raise TypeError(
            f"A mapping of components follows one axis, and under {top.axis.label!r} some components have axes "
            "of their own: put the tree together at once, md.tree(axis, {component: tree})."
        )
    keys = top.axis.keys
    children = top.children
    return AxisTree(
        top.axis, {k: _under_leaves(children[k], below) if k in children else inner[k] for k in keys}
    )
