"""Regions: parts of components that are stored one after the other across the whole tree.

The entries of a tree are walked through in natural order, once for each combination of regions (those of the
outermost divided axis vary slowest), and each gets its place in the turn of its own. So what is owned is a
contiguous beginning, whatever fields and axes there are, and a tree of one region lies as one of none. What is
not divided comes with the first region.

>>> from mirabelle import meshdata as md
>>> X = md.Axis("X", 3, regions={"owned": 2, "ghost": 1})
>>> tree = md.tree(md.Axis("f", {"a": 1, "b": 1}), {"a": X, "b": X})
>>> [tree.layout({"f": key}) for key in "ab"], tree.region("owned")
([[0, 1, 4][X], [2, 3, 5][X]], slice(0, 4, None))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.domains import Domain
from mirabelle.arraytypes.meshdata.expressions import Const, Expression, evaluate, plus
from mirabelle.arraytypes.meshdata.layouts import LaidAxis

Path = tuple[tuple[Any, Any], ...]


class Unit:
    """What lies in one piece, for each entry of a domain: a sub-tree that no region divides."""

    def __init__(self, path: Path, domain: Domain, size: Expression, natural: Expression, divided: Any) -> None:
        self.path, self.domain, self.size, self.natural, self.divided = path, domain, size, natural, divided
        self.below: list[tuple[Path, Expression]] = []  # leaves, and where they lie within the piece


def divided(node: LaidAxis) -> bool:
    """Are there regions at or below an axis?"""
    return any(c.regions or (c.sub is not None and divided(c.sub)) for c in node.components)


def natural_leaves(node: LaidAxis, path: Path, start: Expression) -> list[tuple[Path, Expression]]:
    """The leaves below an axis and where they lie in natural order."""
    found = []
    for c in node.components:
        at = plus(start, c.start, c.term)
        here = (*path, (c.label, c.key))
        found += [(here, at)] if c.sub is None else natural_leaves(c.sub, here, at)
    return found


def units(node: LaidAxis, path: Path, domain: Domain, natural: Expression, above: Any) -> list[Unit]:
    """The pieces at and below an axis, in tree order."""
    found = []
    for c in node.components:
        here, entries = (*path, (c.label, c.key)), domain.within(c.label, c.extent)
        regions = (*above, (c.label, c.regions)) if c.regions else above
        at = plus(natural, c.start, c.term)
        if c.sub is not None and divided(c.sub):
            found += units(c.sub, here, entries, at, regions)
            continue
        if c.regions or node.axis.numbering is not None:
            unit, inside = Unit(here, entries, c.step, at, regions), Const(0)
        else:
            unit = Unit(here, domain, c.total, plus(natural, c.start), regions)
            inside = c.term  # type: ignore[assignment]
        unit.below = [(here, inside)] if c.sub is None else natural_leaves(c.sub, here, inside)
        found.append(unit)
    return found


def region_layouts(root: LaidAxis) -> tuple[list[tuple[Path, Expression]], dict[tuple[Any, ...], slice]]:
    """The leaves of a tree with regions and where they lie, and what of storage each region is."""
    pieces = units(root, (), Domain(), Const(0), ())
    names = _names(pieces)
    keys, natural, sizes = [], [], []
    for unit in pieces:
        n, at = unit.domain.size, unit.domain.indices
        keys.append(_ranks(unit, names))
        natural.append(np.broadcast_to(np.asarray(evaluate(unit.natural, at), np.int64), (n,)))
        sizes.append(np.broadcast_to(np.asarray(evaluate(unit.size, at), np.int64), (n,)))
    key, size = np.concatenate(keys), np.concatenate(sizes)
    order = np.lexsort((np.concatenate(natural), key))
    ends = np.cumsum(size[order])
    places = np.empty_like(ends)
    places[order] = ends - size[order]
    leaves, first = [], 0
    for unit in pieces:
        table = unit.domain.table(places[first : first + unit.domain.size])
        first += unit.domain.size
        leaves += [(path, plus(table, inside)) for path, inside in unit.below]
    return leaves, _spans(names, key[order], ends)


def _names(pieces: list[Unit]) -> list[list[Any]]:
    """The names of regions at each depth, in the order they are first met."""
    names: list[list[Any]] = []
    for unit in pieces:
        for depth, (_, regions) in enumerate(unit.divided):
            if depth == len(names):
                names.append([])
            names[depth] += [name for name, _ in regions if name not in names[depth]]
    return names


def _ranks(unit: Unit, names: list[list[Any]]) -> np.ndarray:
    """In which turn each entry of a domain gets its place."""
    at, rank = unit.domain.indices, np.zeros(unit.domain.size, np.int64)
    for depth, known in enumerate(names):
        rank *= len(known)
        if depth < len(unit.divided):
            label, regions = unit.divided[depth]
            end: Any = 0
            turn = np.zeros_like(rank)
            for name, n in regions:
                start, end = end, end + evaluate(n, at)
                turn[(at[label] >= start) & (at[label] < end)] = known.index(name)
            rank += turn
    return rank


def _spans(names: list[list[Any]], key: np.ndarray, ends: np.ndarray) -> dict[tuple[Any, ...], slice]:
    """The part of storage of each region: of the outermost axis, and of combinations with inner ones."""
    found, width = {}, 1
    for known in names:
        width *= len(known)
    groups: list[tuple[Any, ...]] = [()]
    bounds = np.concatenate([[0], ends])
    for known in names:
        groups = [(*g, name) for g in groups for name in known]
        width //= len(known)
        for i, group in enumerate(groups):
            low, high = np.searchsorted(key, [i * width, (i + 1) * width])
            found[group] = slice(int(bounds[low]), int(bounds[high]))
    return found
