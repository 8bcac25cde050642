"""Parts of axis trees: components, slices, subsets, single entries and regions along labelled axes.

A selection says for each leaf that is left where its indices lead in the tree it is a part of, as index
expressions. So a part of a part is one selection, whose expressions are put into each other: a slice of a slice
is affine, a subset of a subset is one table.

>>> from mirabelle import meshdata as md
>>> tree = md.tree(md.Axis("a", 10), md.Axis("b", 3))
>>> s = tree.select({"a": slice(None, None, 2), "b": slice(1, None)})
>>> s
a = 2*a, b = b + 1: 10 of 30 entries
>>> s.select({"a": slice(1, None)}).select({"a": slice(None, None, 2), "b": 1})
a = 4*a + 2, b = 2: 2 of 30 entries
>>> md.tree(md.Axis("p", 5)).select({"p": [1, 3, 4, 0]}).select({"p": [2, 0, 3]})
p = [4, 1, 0][p]: 3 of 5 entries
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.axes import Axis
from mirabelle.arraytypes.meshdata.dofs import placed
from mirabelle.arraytypes.meshdata.domains import Domain
from mirabelle.arraytypes.meshdata.expressions import (
    Const,
    Expression,
    Index,
    evaluate,
    labels_in,
    substitute,
    tables_in,
)
from mirabelle.arraytypes.meshdata.layouts import Above, LaidAxis
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.meshdata.regions import Path
from mirabelle.arraytypes.meshdata.trees import UNIT, AxisTree
from mirabelle.arraytypes.meshdata.treetaking import Region, as_extent, taken

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray

Sources = dict[Path, tuple[Path, dict[Any, Expression]]]


class Selection:
    """A part of a tree: the axes that are left, and where their indices lead. `tree.select(index)` makes one.

    `x[selection]` is that part of an array over the tree, and `x[selection] = value` writes it.

    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("cell", 2), md.Axis("dof", 3))
    >>> part = tree.select({"cell": 0})
    >>> isinstance(part, md.Selection)
    True
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, tree: AxisTree, axes: AxisTree, sources: Sources) -> None:
        self.tree, self.axes, self._sources = tree, axes, sources
        self._placed: dict[Any, Any] = {}

    def select(self, index: Mapping[Any, Any]) -> Selection:
        """A part of this part."""
        inner = select(self.axes, index)
        sources: Sources = {}
        for path, (middle, by) in inner._sources.items():
            outer, expressions = self._sources[middle]
            extents = {c.label: c.extent for c in inner.axes.on_path(path)}
            sources[path] = outer, {k: _once(substitute(e, by), extents) for k, e in expressions.items()}
        return Selection(self.tree, inner.axes, sources)

    @property
    def size(self) -> int:
        """How many entries are selected."""
        return self.axes.size

    def expressions(self, path: Mapping[Any, Any] | None = None) -> dict[Any, Expression]:
        """The index along each axis of the tree, of a leaf that is left, by the indices of the selection."""
        return dict(self._sources[self.axes.path(path)][1])

    def layout(self, path: Mapping[Any, Any] | None = None) -> Expression:
        """Where an entry of a leaf that is left lies in the storage of the whole tree."""
        source, by = self._sources[self.axes.path(path)]
        return substitute(self.tree.layout(dict(source)), by)

    @cached_property
    def positions(self) -> np.ndarray:
        """Where each selected entry lies in the storage of the tree, in the order of `axes`."""
        found = np.zeros(self.axes.size, self.tree.index_dtype)
        for leaf in self.axes.leaves:
            domain = self.axes.domain(leaf)
            if self.tree.size and domain.size:
                found[self.axes.offsets(leaf)] = evaluate(self.layout(leaf), domain.indices)
        found.setflags(write=False)
        return found

    @cached_property
    def span(self) -> slice | None:
        """The slice of storage that is selected, if it is one."""
        n = self.positions.size
        if n < 2:
            start = int(self.positions[0]) if n else 0
            return slice(start, start + n)
        step = int(self.positions[1]) - int(self.positions[0])
        if step == 0 or (n > 2 and (np.diff(self.positions) != step).any()):
            return None
        start, stop = int(self.positions[0]), int(self.positions[-1]) + (1 if step > 0 else -1)
        return slice(start, stop if stop >= 0 else None, step)

    def index_for(self, family: type[AbstractArray]) -> slice | AbstractArray:
        """What selects the entries of a flat array of a type: a slice, or a table at its place."""
        if self.span is not None:
            return self.span
        if family not in self._placed:
            self._placed[family] = placed(family, self.positions)
        return self._placed[family]

    def __repr__(self) -> str:
        lines = []
        for source, by in self._sources.values():
            keys = [f"{label}: {key}" for label, key in source if key is not None]
            said = ", ".join(f"{label} = {e}" for label, e in by.items())
            lines.append((f"({', '.join(keys)}) " if keys else "") + said)
        return f"{'; '.join(lines) or 'nothing'}: {self.size} of {self.tree.size} entries"


def _once(e: Expression, extents: dict[Any, Expression]) -> Expression:
    """A table at an expression as one at an index, or what is cheaper, if it reads no more than one index."""
    labels = labels_in(e)
    if not tables_in(e) or len(labels) != 1:
        return e
    (label,) = labels
    domain = Domain().within(label, extents[label])
    return domain.table(evaluate(e, domain.indices)) if isinstance(extents[label], Const) else e


def select(tree: AxisTree, index: Mapping[Any, Any]) -> Selection:
    """A part of a tree. For labels of axes the index has

    - the key of a component: of this axis only that;
    - an integer: the axis is gone;
    - a slice, a list or array of integers or truth values, `points.subset(...)` or `md.Region(name)`;
    - a tuple of a key and one of these.

    Axes it does not name are left as they are. The order is the natural one, whatever numberings and regions
    the tree has.
    """
    if tree.axis is None:
        found: Sources = {(): ((), {})}
        axes, met = UNIT, set()
    else:
        selector = _Selector(index)
        axes = selector.under(tree, tree._laid, (), (), {}, ())
        found, met = selector.sources, selector.met
    for label in index:
        if label not in met:
            known = ", ".join(dict.fromkeys(repr(name) for path in tree.leaves for name in path))
            raise KeyError(f"There is no axis {label!r} to index in this tree. It has {known or 'none'}.")
    return Selection(tree, axes, found)


class _Selector:
    """The walk that applies an index to a tree."""

    def __init__(self, index: Mapping[Any, Any]) -> None:
        self.index = index
        self.met: set[Any] = set()
        self.sources: Sources = {}

    def under(
        self, tree: AxisTree, node: LaidAxis, old: Path, new: Path, by: dict[Any, Expression], above: Above
    ) -> AxisTree:
        """What is left of an axis and all below it; `by` says where the indices above lead."""
        axis = node.axis
        key, item = self._of(tree)
        chosen = [c for c in node.components if key is None or c.key == key[0]]
        if isinstance(item, (int, np.integer)) and len(chosen) > 1:
            raise KeyError(
                f"The axis {axis.label!r} has the components {list(axis.keys)}, so say of which the entry "
                f"{item} is: {{{axis.label!r}: ({axis.keys[0]!r}, {item})}}."
            )
        extents, children = {}, {}
        for c in chosen:
            extent, source = taken(c, item, substitute(c.extent, by), by, above)
            inside, left, here = {**by, c.label: source}, above, new
            if extent is not None:
                left, here = (*above, (c.label, extent)), (*new, (c.label, c.key))
            below = UNIT
            child = tree.children.get(c.key)
            if child is not None and c.sub is not None:
                below = self.under(child, c.sub, (*old, (c.label, c.key)), here, inside, left)
            else:
                self.sources[here] = (*old, (c.label, c.key)), inside
            if extent is None:
                return below
            extents[c.key], children[c.key] = as_extent(extent, above), below
        return AxisTree(Axis(axis.label, extents), children)

    def _of(self, tree: AxisTree) -> tuple[Any, Any]:
        """The component an index asks for, in a tuple (None: all), and what it selects of it."""
        axis = tree.axis
        assert axis is not None
        if axis.label not in self.index:
            return None, slice(None)
        self.met.add(axis.label)
        item = self.index[axis.label]
        if isinstance(item, tuple) and len(item) == 2 and item[0] in axis.keys:
            return (item[0],), item[1]
        if isinstance(item, Points):
            return (axis.component(item.component).key,), slice(None)
        if isinstance(item, Subset):
            return (axis.component(item.points.component).key,), item
        if item is None or (isinstance(item, str) or (item.__hash__ and not _is_item(item))):
            return (tree.component(axis, item),), slice(None)
        return None, item


def _is_item(item: Any) -> bool:
    return isinstance(item, (int, np.integer, slice, list, np.ndarray, Region, Subset))


def arrangement(tree: AxisTree, order: AxisTree) -> Selection:
    """All entries of a tree in the order of another tree that has the same leaves.

    Leaves are the same if their axes and components are, in whatever order; axes of one entry do not count.
    """
    known = {_essence(tree, path): path for path in tree._leaves}
    sources: Sources = {}
    for path in order._leaves:
        source = known.pop(_essence(order, path), None)
        if source is None or tree.domain(dict(source)).size != order.domain(dict(path)).size:
            raise ValueError(
                f"The leaf {dict(path)} of one tree is not among those of the other, or has not as many "
                "entries there: arrays are put in the order of a tree that has the same leaves."
            )
        labels = [label for label, _ in path]
        by = {label: Index(label) if label in labels else Const(0) for label, _ in source}
        sources[path] = source, by  # type: ignore[assignment]
        indices = order.domain(dict(path)).indices
        tree.offset(dict(source), {label: indices.get(label, 0) for label, _ in source})  # are they in range?
    if known:
        raise ValueError(
            f"The leaf {dict(next(iter(known.values())))} is missing in the other tree: arrays are put in the "
            "order of a tree that has the same leaves."
        )
    return Selection(tree, order, sources)


def _essence(tree: AxisTree, path: Path) -> frozenset[Any]:
    single = {c.label for c in tree.on_path(path) if c.key is None and c.extent == Const(1)}
    return frozenset((label, key) for label, key in path if label not in single)
