"""Degrees of freedom on the boundary of a mesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.elements import Element
from mirabelle.arraytypes.meshdata.points import Subset
from mirabelle.arraytypes.meshdata.spacetables import targets


def boundary_numbers(mesh: Any, of: Element, numbers: Mapping[str, np.ndarray], where: Any) -> np.ndarray:
    """The numbers of what stands on chosen facets, with their edges and vertices, ascending."""
    chosen = _facets(mesh, None if callable(where) else where)
    facet = chosen.points.component
    found = [np.empty(0, np.int64)]
    for kind in of.entity_dofs:
        if kind in mesh.shapes and kind in [p.component for p in mesh.closure(facet).targets]:
            found.append(numbers[kind][np.unique(targets(mesh, facet, kind)[chosen.indices])].reshape(-1))
    return np.unique(np.concatenate(found))


def _facets(mesh: Any, where: Any) -> Subset:
    if where is None:
        return mesh.exterior()
    if isinstance(where, str):
        if where not in mesh.markers:
            raise ValueError(
                f"The mesh has no boundary named {where!r}; it has {list(mesh.markers)}. Name one by "
                f'`md.Mesh(coordinates, cells, markers={{"{where}": subset}})`, or choose by a function, '
                "`lambda x: x[..., 0] < 1e-12`."
            )
        where = mesh.markers[where]
    if not isinstance(where, Subset) or where.points.component not in mesh.facets:
        raise TypeError(
            f"A part of the boundary is a function of points, the name of a marker or a subset of the facets, "
            f'not {where!r}: `mesh.points("{mesh.facets[0]}").subset([0, 1])`.'
        )
    return where


def chosen_by(where: Any, points: np.ndarray) -> np.ndarray:
    """What a function of points says of each, checked."""
    mask = np.asarray(where(points))
    if mask.shape != points.shape[:1] or mask.dtype != bool:
        raise ValueError(
            f"`where` was asked about {len(points)} points and gave an array of shape {mask.shape} and dtype "
            f"{mask.dtype}, not a truth value for each. Write it as `lambda x: x[..., 0] < 1e-12`."
        )
    return mask


def known_to_all(entries: Any, blocks: np.ndarray, block: tuple[int, ...]) -> np.ndarray:
    """What any process has found of the blocks that several have, ascending."""
    size = int(np.prod(block, dtype=np.int64))
    marked = np.zeros(entries.forest.size, bool)
    marked[blocks * size] = True
    entries.forest.reduce(marked, "any")
    entries.forest.bcast(marked)
    return np.flatnonzero(marked) // size
