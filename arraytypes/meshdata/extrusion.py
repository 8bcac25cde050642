"""Meshes between layers over a mesh of a plane or a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.meshes import Mesh
from mirabelle.arraytypes.meshdata.points import Subset

EXTRUDED = {
    "vertex": "interval",
    "interval": "quadrilateral",
    "triangle": "prism",
    "quadrilateral": "hexahedron",
}


def extruded(base: Mesh, heights: Sequence[float] | npt.NDArray[Any]) -> Mesh:
    """The mesh over a plane one (or over intervals) between layers at these heights: prisms and hexahedra.

    Vertices, and the cells of each shape, are numbered layer by layer, so that those above each other have a
    constant distance. Markers of the base's cells and facets become those of what stands on them, and two are
    new: "bottom" and "top".

    Parameters
    ----------
    base : Mesh
        A plane mesh, or one of intervals.
    heights : sequence of float
        Of the layers' bottoms and tops, so one more than there are layers.

    Returns
    -------
    mb.meshdata.Mesh
        A mesh of one dimension more, with as many cells on each of the base as there are layers. `base`
        stays as it is.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.extruded(md.unit_square(1), [0.0, 0.5, 1.0])
    Mesh(4 prisms, 6 triangle faces, 10 quadrilateral faces, 23 edges, 12 vertices in 3 dimensions)
    >>> md.extruded(md.interval(2), [0.0, 1.0]).markers["top"]
    <2 of the 7 points 'edge'>
    """
    z = np.asarray(heights, dtype=float)
    if z.ndim != 1 or len(z) < 2 or not (np.diff(z) > 0).all():
        raise ValueError(f"Layers lie between two or more rising heights, and not {heights!r}.")
    x = base.coordinates
    if base.dim > 2 or base.dim != x.shape[1]:
        raise ValueError(
            f"What is extruded lies on a line or in a plane; these are cells of {base.dim} dimensions in "
            f"{x.shape[1]}."
        )
    layers, size = len(z) - 1, len(x)
    x = np.column_stack([np.tile(x, (len(z), 1)), np.repeat(z, size)])
    cells = {EXTRUDED[s]: _standing(t, s, layers, size) for s, t in base.cells.items()}
    made = Mesh(x, cells)
    for name, subset in base.markers.items():
        shape = base.shapes[subset.points.component]
        if subset.points.component in (*base.components(base.dim), *base.facets):
            on = base.closure(subset.points.component, "vertex").target().values.reshape(subset.points.size, -1)
            made._markers[name] = _found(
                made, EXTRUDED[shape], _standing(on[subset.indices], shape, layers, size)
            )
    for name, first in (("bottom", 0), ("top", layers * size)):
        for shape, table in base.cells.items():
            full = name if len(base.cells) == 1 else f"{name} {shape}"
            made._markers[full] = _found(made, shape, table + first)
    return made


def _standing(table: Table, shape: str, layers: int, size: int) -> Table:
    """The vertices of what stands on cells or facets, layer by layer."""
    above = table[:, ::-1] if shape == "interval" else table
    kind = index_type(size * (layers + 1))
    once = np.concatenate([table, above + size], axis=1).astype(kind)
    up = np.arange(layers, dtype=kind) * kind(size)
    return np.asarray((up[:, None, None] + once).reshape(-1, once.shape[1]))


def _found(mesh: Mesh, shape: str, vertices: Table) -> Subset:
    """The points of a shape with these vertices."""
    component = next(c for c, s in mesh.shapes.items() if s == shape)
    return mesh.points(component).subset(np.sort(mesh.topology.find(component, vertices)))
