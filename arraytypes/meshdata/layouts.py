"""Layouts: where in flat storage each entry of an axis tree lies, as expressions of its indices.

The rule is that of row-major order: components one after the other, and the sub-trees of their entries within.
Each axis on the way to a leaf adds a term. Where the sub-trees of all entries of an axis are equally large the
term is the index times that size; where they are not, it is a table of sums over the axes they depend on and no
others; under a numbering it is a table, unless the numbering turns out to be affine.

>>> from mirabelle import meshdata as md
>>> tree = md.tree(md.Axis("A", 4), md.Axis("B", [2, 0, 3, 1]), md.Axis("C", 2))
>>> tree.layout(tree.leaves[0])
2*[0, 2, 2, 5][A] + 2*B + C
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.axes import Axis, Ragged
from mirabelle.arraytypes.meshdata.domains import Domain
from mirabelle.arraytypes.meshdata.expressions import (
    Const,
    Expression,
    Index,
    evaluate,
    labels_in,
    plus,
    primitive,
    times,
)

# The axes above one, outermost first: their labels and extents.
Above = tuple[tuple[Any, Expression], ...]


class LaidComponent:
    """A component in its place: how many entries it has, how large each sub-tree is, and what they add."""

    __slots__ = ("extent", "key", "label", "regions", "start", "step", "sub", "term", "total")

    def __init__(self, label: Any, key: Any, extent: Expression, regions: Any, sub: LaidAxis | None) -> None:
        self.label, self.key, self.extent, self.regions, self.sub = label, key, extent, regions, sub
        self.step: Expression = Const(1) if sub is None else sub.size
        self.start: Expression = Const(0)
        self.term: Expression = Index(label)
        self.total: Expression = Const(0)  # what all entries take, where they lie in one piece


class LaidAxis:
    """An axis in its place: its components, and how large all of it is."""

    __slots__ = ("above", "axis", "components", "size")

    def __init__(self, axis: Axis, above: Above, components: list[LaidComponent]) -> None:
        self.axis, self.above, self.components = axis, above, components
        self.size: Expression = Const(0)


def laid(axis: Axis, children: dict[Any, Any], above: Above = ()) -> LaidAxis:
    """The axis and all below it in natural order: without regard to regions.

    `children` are trees, with an `axis` and `children` of their own.
    """
    components = []
    for c in axis.components:
        extent = extent_of(axis.label, c.extent, above)
        regions = tuple((r, extent_of(axis.label, n, above)) for r, n in c.regions)
        _check_varied_regions(axis.label, extent, regions, above)
        child = children.get(c.key)
        inside = (*above, (axis.label, extent))
        sub = None if child is None else laid(child.axis, child.children, inside)
        components.append(LaidComponent(axis.label, c.key, extent, regions, sub))
    node = LaidAxis(axis, above, components)
    if axis.numbering is not None:
        _number(node, axis.numbering)
    else:
        _follow(node)
    return node


def extent_of(label: Any, extent: int | Ragged, above: Above) -> Expression:
    """An extent as an expression of the indices above; a ValueError if it does not fit the axes there."""
    if isinstance(extent, int):
        return Const(extent)
    labels = [name for name, _ in above]
    depth = len(extent.counts)
    if extent.axes is None and depth > len(labels):
        raise ValueError(
            f"The extent of the axis {label!r} is nested {depth} deep, and there are {len(labels)} axes above "
            "it for it to vary over. Put it under them: md.tree(A, B)."
        )
    over = tuple(labels[len(labels) - depth :]) if extent.axes is None else extent.axes
    missing = [name for name in over if name not in labels]
    if missing:
        raise ValueError(
            f"The extent of the axis {label!r} varies over {missing[0]!r}, which is no axis above it: those "
            f"are {labels}."
        )
    if tuple(name for name in labels if name in over) != over:
        raise ValueError(f"The extent of the axis {label!r} names axes above out of order: they are {labels}.")
    domain = domain_over(over, above)
    if tuple(name for name, _ in domain.axes) != over:
        needed = [name for name, _ in domain.axes]
        raise ValueError(
            f"The extent of the axis {label!r} varies over {list(over)}, of which some vary themselves; name "
            f"all they vary over, md.Ragged({needed}, ...), with lists nested {len(needed)} deep."
        )
    _check_nesting(label, extent, domain)
    return domain.table(extent.values)


def _check_nesting(label: Any, extent: Ragged, domain: Domain) -> None:
    levels: list[Domain] = []
    while domain.outer is not None:
        levels.insert(0, domain)
        domain = domain.outer
    fits = extent.values.size == levels[-1].size
    if fits and len(extent.counts) == len(levels) > 1:
        fits = all(np.array_equal(got, level.counts) for got, level in zip(extent.counts, levels, strict=True))
    if not fits:
        names = " x ".join(str(level.label) for level in levels)
        raise ValueError(
            f"The extent of the axis {label!r} is given by {extent.values.size} numbers, and over {names} "
            f"there are {levels[-1].size} entries, each of which has one (lists nest as axes do)."
        )


def _check_varied_regions(label: Any, extent: Expression, regions: Any, above: Above) -> None:
    total = plus(*[n for _, n in regions]) if regions else extent
    if total == extent:
        return
    domain = domain_over(labels_in(total) | labels_in(extent), above)
    said, there = evaluate(total, domain.indices), evaluate(extent, domain.indices)
    if not np.broadcast_to(np.equal(said, there), (domain.size,)).all():
        raise ValueError(
            f"The regions of the axis {label!r} do not have as many entries together as there are to be "
            "divided: each entry is in one region."
        )


def domain_over(labels: Any, above: Above) -> Domain:
    """All entries of some of the axes above, and of those their extents vary over."""
    wanted = set(labels)
    for name, extent in reversed(above):
        if name in wanted:
            wanted |= labels_in(extent)
    domain = Domain()
    for name, extent in above:
        if name in wanted:
            domain = domain.within(name, extent)
    return domain


# Without a numbering: components one after the other


def _follow(node: LaidAxis) -> None:
    start: Expression = Const(0)
    for c in node.components:
        c.start = start
        c.term, c.total = summed(c, node.above)
        start = plus(start, c.total)
    node.size = start


def summed(c: LaidComponent, above: Above) -> tuple[Expression, Expression]:
    """What lies before each entry of a component, and what all of them take."""
    if c.label not in labels_in(c.step):
        return times(Index(c.label), c.step), times(c.extent, c.step)
    factor, step = primitive(c.step)
    outer = domain_over((labels_in(step) - {c.label}) | labels_in(c.extent), above)
    inner = outer.within(c.label, c.extent)
    sizes = np.broadcast_to(np.asarray(evaluate(step, inner.indices), np.int64), (inner.size,))
    sums = np.concatenate([[0], np.cumsum(sizes)])
    first = np.arange(outer.size + 1) * c.extent.value if isinstance(c.extent, Const) else inner.starts
    at = sums[first]
    before = sums[:-1] - np.repeat(at[:-1], np.diff(first))
    return times(factor, inner.table(before)), times(factor, outer.table(np.diff(at)))


# With one: places are handed out in its order


def _number(node: LaidAxis, numbering: np.ndarray) -> None:
    label, components = node.axis.label, node.components
    counts = [c.extent.value for c in components if isinstance(c.extent, Const)]
    steps = [c.step for c in components]
    if all(isinstance(s, Const) for s in steps) and len({s.value for s in steps if isinstance(s, Const)}) == 1:
        step = steps[0]
        places, outer = np.argsort(numbering)[None], Domain()
        node.size = times(sum(counts), step)
    else:
        step = Const(1)
        outer = domain_over(frozenset().union(*map(labels_in, steps)) - {label}, node.above)
        places, totals = _places(numbering, counts, steps, outer, label)
        node.size = outer.table(totals)
    ends = np.cumsum(counts)
    for c, n, end in zip(components, counts, ends, strict=True):
        entries = outer.within(label, Const(n))
        c.term = times(step, entries.table(places[:, end - n : end].ravel()))


def _places(
    numbering: np.ndarray, counts: list[int], steps: list[Expression], outer: Domain, label: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Where each entry of a numbered axis begins, for each entry outside (rows), and how much they take."""
    columns = []
    for n, step in zip(counts, steps, strict=True):
        entries = outer.within(label, Const(n))
        sizes = np.asarray(evaluate(step, entries.indices), np.int64)
        columns.append(np.broadcast_to(sizes, (entries.size,)).reshape(outer.size, n))
    sizes = np.concatenate(columns, axis=1)[:, numbering]
    ends = np.cumsum(sizes, axis=1)
    places = np.empty_like(ends)
    places[:, numbering] = ends - sizes
    return places, sizes.sum(axis=1)
