"""Mesh files: cells of any order from what `mirabelle.meshdata` reads.

Files list the nodes of a cell of high order by its corners, edges, faces and inside, at equal distances; the
inside of a face or a cell is in turn listed like a smaller one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle import meshdata
from mirabelle.dg.elements import element
from mirabelle.dg.meshes.connectivity import CORNERS, DIMS, order_of, place_labels
from mirabelle.dg.meshes.mesh import Mesh

CELLS: dict[str, str] = dict(
    zip(("vertex", "line", "triangle", "quad", "tetra", "hexahedron"), DIMS, strict=True)
)
EDGES = {
    "line": "01",
    "triangle": "01 12 20",
    "quadrilateral": "01 12 23 30",
    "tetrahedron": "01 12 20 30 32 31",
    "hexahedron": "01 03 04 12 15 23 26 37 45 47 56 67",
}
FACES = {"tetrahedron": "021 013 032 312", "hexahedron": "0321 0154 0473 1265 2376 4567"}
# meshio lists cells of order two as VTK does, and higher ones as gmsh does.
EDGES_2 = EDGES | {"tetrahedron": "01 12 20 03 13 23", "hexahedron": "01 12 23 30 45 56 67 74 04 15 26 37"}
FACES_2 = FACES | {"hexahedron": "0473 1265 0154 2376 0321 4567"}


def read_mesh(
    path: str | os.PathLike[str], order: int | None = None, periodic: Sequence[tuple[str, str]] = ()
) -> Mesh:
    """The mesh in a gmsh file, or another that meshio can read: any order, boundaries, periodic sides.

    Boundaries are the physical groups (in other formats: sets of cells) of one dimension less than the mesh
    has. Descriptions of geometries (.geo, .step, ...) are meshed by gmsh, with cells of the given `order`.
    Where files do not say which sides are periodic, give the names: `periodic=[("left", "right")]`.

    Parameters
    ----------
    path : str or path
        The file.
    order : int or None
        Of cells that gmsh makes of a geometry; None is 1.
    periodic : sequence of pairs of str, default ()
        Names of sides that are joined.

    Returns
    -------
    dg.Mesh
        A mesh of the dimension of its cells, of the order that they have in the file.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.read_mesh("wing.msh")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no mesh file 'wing.msh'. A path begins in the folder that Python was started \
in, as "meshes/wing.msh", or at the root.
    """
    return _converted(meshdata.read_mesh_file(path, order), Path(path).name, periodic)


def _converted(file: Any, name: str, periodic: Sequence[tuple[str, str]]) -> Mesh:
    """A mesh from meshio's."""
    blocks = []
    for block in file.cells:
        cell = CELLS.get(re.sub(r"\d+$", "", block.type)) or str(block.type)
        blocks.append((DIMS.get(cell, 3), cell, np.asarray(block.data, dtype=np.int64)))
    dims = max((d for d, _, _ in blocks), default=0)
    kinds = sorted({(cell, data.shape[1]) for d, cell, data in blocks if d == dims})
    if len(kinds) != 1 or kinds[0][0] not in list(DIMS)[1:]:
        raise ValueError(
            f"A mesh has cells of one type and order, out of {list(DIMS)[1:]}, but {name!r} has (type, nodes "
            f"of a cell): {kinds}. In gmsh, `Mesh.SubdivisionAlgorithm = 1;` (in 3-D: 2) leaves one type."
        )
    [(cell, count)] = kinds
    order = order_of(cell, count)
    nodes = np.concatenate([data for d, _, data in blocks if d == dims]).T  # (Ng, K)
    points = np.asarray(file.points, dtype=float).T
    x = points[:, nodes]
    if (np.ptp(x[dims:], axis=(1, 2)) > 1e-12 * np.ptp(x)).any():
        raise ValueError(
            f"The cells of {name!r} are {cell}s that extend along {'xyz'[dims:]!r}, too. Surfaces in space are "
            f'not supported; where the volume is meant, in gmsh: `Physical Volume("inside") = {{1}};`.'
        )
    own, listed = element(cell, order), listed_nodes(cell, order, getattr(file, "in_gmsh_order", False))

    def at_nodes(listed: np.ndarray) -> np.ndarray:
        return own.vandermonde(own.nodes) @ np.linalg.inv(own.vandermonde(listed)) @ x[:dims]

    slopes = np.einsum("rj,djk->kdr", own.interpolation_gradient(listed[:1])[:, 0], at_nodes(listed))
    if (np.linalg.det(slopes) < 0).all():  # All are numbered against our sense of rotation: seen in a mirror.
        listed = listed[:, ::-1] if dims > 1 else -listed
    corners = np.abs(listed[:, None] - element(cell, 1).vertices).max(2).argmin(0)
    groups = meshdata.physical_groups(file).items()
    faces = {group: [nodes.T for dim, nodes in found if dim == dims - 1] for group, found in groups}
    parts = {group: np.concatenate(found, axis=1) for group, found in faces.items() if found}
    if unknown := {side for pair in periodic for side in pair} - set(parts):
        raise ValueError(
            f"{name!r} has no boundaries {sorted(unknown)} that could be periodic; it has {sorted(parts)}. "
            'Give pairs of these: `dg.read_mesh(path, periodic=[("left", "right")])`.'
        )
    pairs = [(parts[a], parts[b]) for a, b in periodic]
    if not pairs:
        pairs = [(p[:, 0], p[:, 1]) for dim, _, _, p in file.gmsh_periodic or () if dim == dims - 1]

    return Mesh.from_cells(
        cell, nodes[corners], at_nodes(listed), parts, [_link(points, *pair) for pair in pairs]
    )


@cache
def listed_nodes(cell: str, order: int, of_gmsh: bool = False) -> np.ndarray:
    """Where the nodes of a file's cells are in the reference cell, in the order of meshio or gmsh, (Ng, d).

    >>> listed_nodes("triangle", 2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [0.0, -1.0], [0.0, 0.0], [-1.0, 0.0]]
    """
    edges, faces = (EDGES_2, FACES_2) if order == 2 and not of_gmsh else (EDGES, FACES)

    def chosen(text: str, corners: np.ndarray) -> list[np.ndarray]:
        return [corners[[int(c) for c in word]] for word in text.split()]

    def nodes(cell: str, order: int, corners: np.ndarray) -> np.ndarray:
        if order == 0:
            return corners[:1]
        steps = np.arange(1, order)[:, None] / order
        along = [a + (b - a) * steps for a, b in chosen(edges[cell], corners)]
        face = "triangle" if cell == "tetrahedron" else "quadrilateral"
        across = [inside(face, order, c) for c in chosen(faces.get(cell, ""), corners)]
        return np.concatenate([corners, *along, *across, inside(cell, order, corners)])

    def inside(cell: str, order: int, corners: np.ndarray) -> np.ndarray:
        less = order - (2 if element(cell, 1).is_tensor else DIMS[cell] + 1)
        if less < 0 or cell == "line":
            return corners[:0]
        middle = corners.mean(0)
        return nodes(cell, less, middle + (corners - middle) * less / order)

    return nodes(cell, order, np.array(CORNERS[cell], dtype=float))


def _link(points: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """What each point of one side meets at the other, which is shifted."""
    ours, theirs = np.unique(ours), np.unique(theirs)
    link = np.full(points.shape[1], -1, dtype=np.int64)
    if len(ours) == len(theirs) > 0:
        a, b = points[:, ours], points[:, theirs]
        labels = place_labels(np.concatenate([a + (b.mean(1) - a.mean(1))[:, None], b], axis=1))
        ranks = np.argsort(labels.reshape(2, -1), axis=1)
        if len(np.unique(labels)) == len(ours):
            link[ours[ranks[0]]] = theirs[ranks[1]]
            return link
    raise ValueError(
        f"The {len(ours)} and {len(theirs)} points of two periodic sides do not lie opposite each other. "
        f"Periodic sides are shifted copies, with the same mesh. Where files do not say which points meet, "
        f"name the sides: "
        f'`dg.read_mesh(path, periodic=[("left", "right")])`.'
    )
