"""Pictures of meshes: cells in one and two dimensions, the outside in three."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mirabelle.dg.elements import element
from mirabelle.dg.optional import optional
from mirabelle.dg.spelled import Axes, Mesh

ROUND = {"point": [0, 0], "line": [0, 1], "triangle": [0, 1, 2, 0], "quadrilateral": [0, 1, 3, 2, 0]}


def outlines(mesh: Mesh, faces: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Points along some faces: a curve in two dimensions, a closed one in three, (n, points, d).

    >>> from mirabelle import dg
    >>> outlines(dg.box((2, 2)), np.array([0, 1]), np.array([0, 3])).shape
    (2, 2, 2)
    """
    reference = element(mesh.cell, mesh.order)
    corners = element(reference.face_cell, 1).vertices[ROUND[reference.face_cell]]
    steps = np.linspace(0, 1, 2 if mesh.order == 1 else 4 * mesh.order + 1)[:, None]
    along = np.concatenate([a + (b - a) * steps for a, b in pairwise(corners)])
    out = np.empty((len(faces), len(along), mesh.dims))
    for f in range(len(reference.faces)):
        at = np.flatnonzero(faces == f)
        here = reference.interpolation(reference.face_map(f, along))
        out[at] = np.einsum("qj,djn->nqd", here, mesh.coordinates[:, :, cells[at]])
    return out


def _axes(mesh: Mesh, given: Axes | None) -> Axes:
    plt = optional("matplotlib.pyplot", "Pictures are drawn by")
    return given or plt.figure().add_subplot(projection="3d" if mesh.dims == 3 else None)


def plot(mesh: Mesh, axes: Axes | None = None) -> Axes:
    """Draw the mesh with matplotlib; see `Mesh.plot`."""
    ax = _axes(mesh, axes)
    parts = {name: outlines(mesh, *pair) for name, pair in mesh.boundaries.items()}
    parts["periodic"] = outlines(mesh, *np.nonzero(mesh.periodic_faces))
    inside = mesh.neighbour_cells > np.arange(len(mesh))  # Each face once.
    inner = outlines(mesh, *np.nonzero(inside & ~mesh.periodic_faces)) if mesh.dims < 3 else ()
    if mesh.dims == 1:
        ax.plot(mesh.vertices[0], 0 * mesh.vertices[0], "|-", color="0.4", markersize=12)
        ax.set_yticks([])
    elif mesh.dims == 2:
        collection = optional("matplotlib.collections", "Pictures are drawn by").LineCollection
        ax.add_collection(collection(inner, colors="0.6", linewidths=0.6))
    else:
        collection = optional("mpl_toolkits.mplot3d.art3d", "Pictures are drawn by").Poly3DCollection
    for i, (name, lines) in enumerate((n, x) for n, x in parts.items() if len(x)):
        colour = f"C{i}"
        if mesh.dims == 1:
            ax.plot(lines[:, 0, 0], 0 * lines[:, 0, 0], "o", color=colour, label=name)
        elif mesh.dims == 2:
            ax.add_collection(collection(lines, colors=colour, linewidths=1.5, label=name))
        else:
            ax.add_collection3d(
                collection(lines, facecolors=(colour, 0.35), edgecolors="0.3", linewidths=0.3, label=name)
            )
    if any(map(len, parts.values())):
        ax.legend(loc="upper right", fontsize="small")
    low, high = mesh.coordinates.min((1, 2)), mesh.coordinates.max((1, 2))
    for letter, a, b in zip("xyz"[: mesh.dims], low, high, strict=True):
        ax.set(**{f"{letter}label": letter, f"{letter}lim": (a - 0.03 * (b - a), b + 0.03 * (b - a))})
    if mesh.dims > 1:
        ax.set_aspect("equal")
    return ax


def plot_parts(mesh: Mesh, sizes: Sequence[int], axes: Axes | None = None) -> Axes:
    """Draw which process has which cells: so many each, of which those of a process follow each other."""
    ax = _axes(mesh, axes)
    x, ends = mesh.vertices, np.cumsum(sizes)
    ring = {"triangle": [0, 1, 2], "quadrilateral": [0, 1, 3, 2]}.get(mesh.cell)
    for rank, (first, end) in enumerate(zip(ends - sizes, ends, strict=True)):
        style = {"color": f"C{rank % 10}", "label": f"rank {rank}: {end - first} cells"}
        mine = x[:, :, first:end]
        if ring is not None:
            collection = optional("matplotlib.collections", "Pictures are drawn by").PolyCollection
            ax.add_collection(
                collection(mine[:, ring].transpose(2, 1, 0), edgecolors="w", linewidths=0.3, **style)
            )
        elif mesh.dims == 1:
            ax.plot(mine[0], 0 * mine[0], "|-", **{k: v for k, v in style.items() if k == "color"})
        else:
            ax.scatter(*mine.mean(1), s=4, **style)
    if mesh.dims == 2:
        ax.autoscale_view()
        ax.set_aspect("equal")
    if mesh.dims > 1 and len(sizes) <= 10:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    return ax
