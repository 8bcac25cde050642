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


def _under(tree: Any, points: Points, table: Any) -> tuple[Any, int]:
    """Of each point in a table all entries of the tree: a table, and the extent of a last axis all share."""
    paths = [path for path in tree.leaves if path.get(points.axis, _NOTHING) == points.component]
    found, inner = [], []
    for path in paths:
        shape = _extents(tree, path, points)
        rest = [label for label in path if label != points.axis]
        at: dict[Any, Any] = {points.axis: np.maximum(table, 0)[(..., *[None] * len(rest))]}
        for d, label in enumerate(rest):
            at[label] = np.arange(shape[d]).reshape(-1, *[1] * (len(rest) - 1 - d))
        where = np.asarray(tree.offset(path, at, check=False))
        where = np.where((table < 0)[(..., *[None] * len(rest))], -1, where)
        found.append(where.reshape(*table.shape, -1))
        inner.append(shape[-1] if rest and list(path)[-1] != points.axis else 1)
    if not found:
        return np.empty((len(table), 0), np.int32), 0
    joined = np.concatenate(found, axis=-1)
    return joined.reshape(len(table), -1), math.gcd(*inner) if len(set(inner)) > 1 else inner[0]


_NOTHING = object()


def _extents(tree: Any, path: Any, points: Points) -> list[int]:
    labels = [label for label, _ in tree.path(path)]
    shape = tree.shape(path)
    at = labels.index(points.axis)
    if shape[at] != points.size:
        raise ValueError(
            f"The map leads to {points.size} points {points.name!r}, and the tree has {shape[at]}: they are of "
            "different meshes."
        )
    return [n for i, n in enumerate(shape) if i != at]


def _blocked(source: Points, tree: Any, columns: list[tuple[Any, int]]) -> Dofs:
    """A table of entries; of blocks of them, where the last axis is one that all share and that lies together."""
    tables = [t for t, _ in columns if t.shape[1]]
    table = np.concatenate(tables, axis=1) if tables else np.empty((len(source), 0), np.int32)
    block = math.gcd(*[b for t, b in columns if t.shape[1]]) if tables else 1
    if block > 1 and tree.size % block == 0 and table.shape[1] % block == 0:
        first = table.reshape(len(source), -1, block)
        steps = first - first[..., :1]
        together = (steps == np.arange(block)) | (first[..., :1] < 0)
        if bool(together.all()) and not bool((first[..., 0][first[..., 0] > 0] % block).any()):
            heads = first[..., 0]
            rows = np.where(heads < 0, -1, heads // block)
            return Dofs(source, rows, tree.size // block, block=(block,), tree=tree)
    return Dofs(source, table, tree.size, tree=tree)
