"""Tables of an axis tree's entries that maps lead to: the layout, looked up once for all points."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.points import Points

# What was made of a map, by its identity: maps compare by their tables, which takes long.
_kept: dict[int, tuple[Any, dict[Any, Dofs]]] = {}


def _tables_of(through: Any) -> dict[Any, Dofs]:
    found = _kept.get(id(through))
    if found is not None and found[0]() is through:
        return found[1]
    key = id(through)
    made: dict[Any, Dofs] = {}
    _kept[key] = (weakref.ref(through, lambda _: _kept.pop(key, None)), made)
    return made


def map_rows(through: Any) -> Dofs:
    """A map to one component, as a table of rows."""
    made = _tables_of(through)
    if None not in made:
        (points, target), *_ = through.targets.items()
        made[None] = Dofs(through.source, _fixed(through, points, target), points.size)
    return made[None]


def tree_dofs(through: Any, tree: Any) -> Dofs:
    """The entries of a tree that a map leads to."""
    made = _tables_of(through)
    if tree not in made:
        made[tree] = _looked_up(through, tree)
    return made[tree]


def own_dofs(points: Points, tree: Any) -> Dofs:
    """The entries of a tree that belong to each point itself."""
    made = _tables_of(tree)
    if points not in made:
        table = np.arange(points.size)[:, None]
        made[points] = _blocked(points, tree, [_under(tree, points, table)])
    return made[points]


def _looked_up(through: Any, tree: Any) -> Dofs:
    columns = [
        _under(tree, points, _fixed(through, points, target)) for points, target in through.targets.items()
    ]
    return _blocked(through.source, tree, columns)


def _fixed(through: Any, points: Points, target: Any) -> Any:
    if target.ragged:
        raise ValueError(
            f"The map from {through.source.name!r} leads to different numbers of {points.name!r}, and a "
            "kernel sees "
            "arrays of one shape. Loop over the pairs, md.pairs(map), or fill up with -1: `map.padded()`."
        )
    return target.table


def _under(tree: Any, points: Points, table: Any) -> tuple[Any, tuple[Any, ...]]:
    """Of each point in a table all entries of the tree, and what their inner axes are.

    Axes that are called "dof" count entries of a point, and come first; others are the inner ones.
    """
    found, inner = [], set()
    for path in tree.leaves:
        if path.get(points.axis, _NOTHING) != points.component:
            continue
        extents = _extents(tree, path, points)
        labels = sorted((label for label in path if label != points.axis), key=lambda label: label != COUNTED)
        at: dict[Any, Any] = {points.axis: np.maximum(table, 0)[(..., *[None] * len(labels))]}
        for d, label in enumerate(labels):
            at[label] = np.arange(extents[label]).reshape(-1, *[1] * (len(labels) - 1 - d))
        where = np.asarray(tree.offset(path, at, check=False))
        where = np.where((table < 0)[(..., *[None] * len(labels))], -1, where)
        found.append(where.reshape(*table.shape, math.prod(extents[label] for label in labels)))
        inner.add(tuple((label, extents[label]) for label in labels if label != COUNTED))
    if not found:
        return np.empty((len(table), 0), np.int32), ()
    joined = np.concatenate(found, axis=-1)
    joined = joined.reshape(len(table), math.prod(joined.shape[1:]))
    return joined, inner.pop() if len(inner) == 1 and len(found) == 1 else ()


# The axis that counts the entries of a point.
COUNTED = "dof"
_NOTHING = object()


def _extents(tree: Any, path: Any, points: Points) -> dict[Any, int]:
    labels = [label for label, _ in tree.path(path)]
    extents = dict(zip(labels, tree.shape(path), strict=True))
    if extents[points.axis] != points.size:
        raise ValueError(
            f"The map leads to {points.size} points {points.name!r}, and the tree has "
            f"{extents[points.axis]}: they are of different meshes."
        )
    return extents


def _blocked(source: Points, tree: Any, columns: list[tuple[Any, Any]]) -> Dofs:
    """A table of entries; of blocks of them, where inner axes that all share lie together."""
    columns = [(t, inner) for t, inner in columns if t.shape[1]]
    table = np.concatenate([t for t, _ in columns], axis=1) if columns else np.empty((len(source), 0), np.int32)
    shared = {inner for _, inner in columns}
    block = tuple(extent for _, extent in shared.pop()) if len(shared) == 1 else ()
    size = max(math.prod(block), 1)
    if size <= 1:
        return Dofs(source, table, tree.size, tree=tree, local=(table.shape[1] // size, *block))
    heads = table.reshape(len(source), table.shape[1] // size, size)
    rows = heads[..., 0]
    together = tree.size % size == 0 and bool(
        ((heads == rows[..., None] + np.arange(size)) | (rows[..., None] < 0)).all()
    )
    local = (table.shape[1] // size, *block)
    if together and not bool((rows[rows > 0] % size).any()):
        return Dofs(source, np.where(rows < 0, -1, rows // size), tree.size // size, block=block, tree=tree)
    return Dofs(source, table, tree.size, tree=tree, local=local)
