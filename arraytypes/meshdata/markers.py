"""Names for parts of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Table
from mirabelle.arraytypes.meshdata.points import Subset

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh


def check_marker(mesh: Mesh, name: Any, subset: Any) -> None:
    """A marker is a subset of points of the mesh."""
    if not isinstance(subset, Subset):
        raise TypeError(
            f'What is named {name!r} is a subset of points, such as `mesh.points("edge").subset([0, 1])`, '
            f"and not {subset!r}."
        )
    points, known = subset.points, mesh.topology.shapes
    there = points.component in known
    if not there or (mesh.topology.known(points.component) and mesh.points(points.component) != points):
        raise ValueError(
            f"{name!r} is a subset of {points.size} points {points.name!r}, and those of the mesh are "
            f"{mesh.points(points.component).size if there else list(known)}."
        )


def exterior_where(mesh: Mesh, name: str, chosen: Callable[[Table], Any]) -> dict[str, Subset]:
    """The exterior facets at all of whose vertices a function is true, by name."""
    mask = np.asarray(chosen(mesh.coordinates))
    if mask.shape != (len(mesh.coordinates),) or mask.dtype != bool:
        raise ValueError(
            f"The function that says where {name!r} is was asked about {len(mesh.coordinates)} positions and "
            f"gave an array of the shape {mask.shape} and the dtype {mask.dtype}, not a truth value for each: "
            "`lambda x: x[:, 0] < 1e-12`."
        )
    out = {}
    for facet in mesh.facets:
        on = mesh.exterior(facet).indices
        table = mesh.closure(facet, "vertex").target().table
        assert table is not None
        out[facet] = mesh.points(facet).subset(on[mask[table[on]].all(axis=1)])
    if not any(map(len, out.values())):
        raise ValueError(
            f"No exterior facet is where {name!r} is to be. Positions are rarely met exactly: `lambda x: x[:, "
            "0] < 1e-12`."
        )
    found = {facet: subset for facet, subset in out.items() if len(subset)}
    return {name if len(found) == 1 else f"{name} {facet}": subset for facet, subset in found.items()}
