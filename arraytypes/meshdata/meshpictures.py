"""How notebooks show a mesh: its components as a table, and a picture where it is flat and small."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh

SHOWN = 3000  # edges: more are a grey square, and a large page


def html(mesh: Mesh) -> str:
    """What `Mesh._repr_html_` gives.

    >>> from mirabelle import meshdata as md
    >>> html(md.unit_square(1)).count("<line"), html(md.unit_cube(1)).count("<line")
    (5, 0)
    """
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(shape) if shape != name else ''}</td><td "
        f"style='text-align:right'>{_count(mesh, name)}</td></tr>"
        for name, shape in mesh.shapes.items()
    )
    more = "".join(
        f"<tr><td>{escape(name)}</td><td>marked</td><td style='text-align:right'>{len(subset):,} "
        f"{escape(subset.points.name)}</td></tr>"
        for name, subset in mesh.markers.items()
    )
    table = f"<table><tr><th>points</th><th>shape</th><th>number</th></tr>{rows}{more}</table>"
    return f"<div>Mesh in {mesh.coordinates.shape[1]}D{table}{picture(mesh)}</div>"


def _count(mesh: Mesh, name: str) -> str:
    return f"{mesh.points(name).size:,}" if mesh.topology.known(name) else "not counted yet"


def picture(mesh: Mesh) -> str:
    """The edges of a small mesh in the plane, as SVG; nothing of others."""
    if mesh.coordinates.shape[1] != 2 or mesh.dim != 2 or not mesh.topology.known("edge"):
        return ""
    if not 0 < mesh.points("edge").size <= SHOWN:
        return ""
    x = mesh.coordinates - mesh.coordinates.min(axis=0)
    size = max(float(x.max()), 1e-300)
    x = np.round(x / size * 236 + 2, 1)
    x[:, 1] = x[:, 1].max() + 2 - x[:, 1]
    ends = mesh.topology.entity_vertices(1, "interval")
    outside = mesh.topology.exterior("edge")
    lines = "".join(
        f"<line x1='{x[a, 0]:g}' y1='{x[a, 1]:g}' x2='{x[b, 0]:g}' y2='{x[b, 1]:g}' "
        f"stroke='{'#1f77b4' if out else '#999'}' stroke-width='{2 if out else 0.7}'/>"
        for (a, b), out in zip(ends.tolist(), outside.tolist(), strict=True)
    )
    width, height = x.max(axis=0) + 2
    return f"<svg width='{width:g}' height='{height:g}'>{lines}</svg>"
