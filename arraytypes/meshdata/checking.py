"""What can be wrong with a mesh: cells that are flat, inverted, given twice or do not meet at whole facets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.shapes import Shape, corner_volumes, named, shape_of

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh

CHUNK = 2**13  # cells at once: their edges as vectors are larger than the table
FLAT = 1e-14  # of a cell's longest edge to the power of the dimension, rounding included


class GivenTwiceError(ValueError):
    """A cell is there twice."""


def checked_cells(shape: Any, given: Any, x: Table) -> tuple[str, Table]:
    """The shape and the checked table of some cells."""
    what = "cells" if shape is None else f"{shape}s"
    table = np.asarray(given)
    if table.ndim != 2 or (table.size and table.dtype.kind not in "iu"):
        raise ValueError(
            f"The {what} of a mesh are a table of integers, a row of vertices for each, and these have the "
            f"shape {table.shape} and the dtype {table.dtype}. Cells of several shapes are a dictionary: "
            '`{"triangle": table, "quadrilateral": table}`.'
        )
    known = shape_of(x.shape[1], table.shape[1]) if shape is None else named(shape)
    if table.shape[1] != known.vertices or known.dim > x.shape[1]:
        raise ValueError(
            f"A {known.name} has {known.vertices} vertices in {known.dim} or more dimensions, and these cells "
            f"have {table.shape[1]}, of {x.shape[1]} coordinates each."
        )
    if table.size and (table.min() < 0 or table.max() >= len(x)):
        row, column = np.argwhere((table < 0) | (table >= len(x)))[0]
        raise IndexError(
            f"Cell {row} of the shape {known.name} has a vertex {table[row, column]}, and there are {len(x)} "
            "vertices, numbered from 0. (Some files number them from 1.)"
        )
    same = np.zeros(len(table), dtype=bool)
    for a, b in combinations(table.T, 2):
        same |= a == b
    twice = np.flatnonzero(same)
    if twice.size:
        raise ValueError(
            f"{twice.size} cells of the shape {known.name} have a vertex twice and so no volume; the first is "
            f"number {twice[0]}, of the vertices {table[twice[0]].tolist()}. Leave them out: "
            "`cells[np.all(np.diff(np.sort(cells)), axis=1)]`."
        )
    return known.name, np.array(table, dtype=index_type(len(x)), order="C")


def inverted_cells(
    shape: Shape, x: Table, cells: Table, flip: bool, known: tuple[int, Table] | None = None
) -> Table:
    """The cells, with those turned that are inverted; a sentence where they are not to be, or are flat.

    Where they are some of more, `known` are the number of the first, and what vertices are called.
    """
    wrong, flat = [], []
    for start in range(0, len(cells), CHUNK):
        part = cells[start : start + CHUNK]
        points = [x[column] for column in part.T]
        size = np.zeros(len(part))
        for other in points[1:]:
            size = np.maximum(size, np.abs(other - points[0]).max(axis=1))
        at = _corners(shape, points)
        negative, zero = (
            at < -FLAT * (size**shape.dim)[:, None],
            np.abs(at) <= FLAT * (size**shape.dim)[:, None],
        )
        flat.append(start + np.flatnonzero(zero.any(axis=1) | (negative.any(axis=1) & ~negative.all(axis=1))))
        wrong.append(start + np.flatnonzero(negative.all(axis=1)))
    first, names = (0, np.arange(len(x))) if known is None else known
    turn, none = (np.concatenate([np.zeros(0, dtype=int), *found]) for found in (wrong, flat))
    if none.size:
        raise ValueError(
            f"{none.size} of {len(cells)} cells of the shape {shape.name} are flat or folded at a corner; the "
            f"first is number {first + none[0]}, of the vertices {names[cells[none[0]]].tolist()} at "
            f"{x[cells[none[0]]].tolist()}. Vertices are listed as in gmsh and VTK: around a quadrilateral."
        )
    if turn.size and not flip:
        raise ValueError(
            f"{turn.size} of {len(cells)} cells of the shape {shape.name} are inverted; the first is number "
            f"{first + turn[0]},"
            f" of the vertices {names[cells[turn[0]]].tolist()}. Turn them, "
            '`md.Mesh(coordinates, cells, inverted="flip")`, or keep them as they are, `inverted="keep"`.'
        )
    if turn.size:
        cells = cells.copy()
        cells[turn] = cells[turn][:, list(shape.mirrored)]
    return cells


def _corners(shape: Shape, points: Sequence[Table]) -> Table:
    """The volumes spanned at the corners; on a surface or curve in space, where no side is the right one, their
    sizes."""
    if shape.dim == points[0].shape[1]:
        return corner_volumes(shape, points)
    out = np.empty((len(points[0]), len(shape.corners)))
    for k, (at, *ends) in enumerate(shape.corners):
        edges = np.stack([points[e] - points[at] for e in ends], axis=1)
        out[:, k] = np.sqrt(np.maximum(np.linalg.det(edges @ edges.swapaxes(1, 2)), 0.0))
    return out


def check_twice(mesh: Mesh) -> None:
    """No cell is given twice."""
    for name, table in mesh.cells.items():
        twice = mesh.topology.duplicates(name)
        if twice.size:
            raise GivenTwiceError(
                f"{twice.size} cells of the shape {name} have the same vertices as another; the first is "
                f"number {twice[0]}, of the vertices {table[twice[0]].tolist()}. Keep one of each: "
                "`cells[np.unique(np.sort(cells), axis=0, return_index=True)[1]]`."
            )


def check_facets(mesh: Mesh) -> None:
    """No facet has more than two cells."""
    for name, count in mesh.topology.facet_cells.items():
        many = np.flatnonzero(count > 2)
        if many.size and mesh.dim == mesh.coordinates.shape[1]:
            vertices = mesh.closure(name, "vertex").target().row(int(many[0])).tolist()
            raise ValueError(
                f"{many.size} facets have more than two cells, so that cells overlap; the first is {name} "
                f"{many[0]}, of the vertices {vertices}, with {count[many[0]]}. "
                f"`mesh.support({name!r})({many[0]})` names them."
            )


def check_halves(mesh: Mesh) -> None:
    """No face of four vertices has cells with triangles at its other side."""
    names = {s: c for c, s in mesh.shapes.items() if c in mesh.facets}
    if mesh.dim < 3 or len(names) < 2:
        return
    topology = mesh.topology
    squares = np.flatnonzero(topology.exterior(names["quadrilateral"]))
    table = topology.entity_vertices(2, "quadrilateral")[squares]
    for three in ([0, 1, 2], [0, 2, 3], [0, 1, 3], [1, 2, 3]):
        found = topology.find(names["triangle"], table[:, three])
        met = np.flatnonzero(found >= 0)
        bad = met[topology.exterior(names["triangle"])[found[met]]]
        if bad.size:
            raise ValueError(
                f"{bad.size} faces have four vertices for the cell at one side and three for those at the "
                f"other; the first has the vertices {table[bad[0]].tolist()}. Between hexahedra and tetrahedra "
                "there are pyramids."
            )


def check_hanging(mesh: Mesh) -> None:
    """No vertex lies inside an edge of the boundary.

    There an edge and a part of it start from one vertex in one direction, and both seem to be on the boundary.
    (The two sides of a crack do that too, and there have the same length.)
    """
    if mesh.dim < 2 or mesh.coordinates.shape[1] != mesh.dim:
        return
    edges = mesh.topology.entity_vertices(1, "interval")[
        mesh.topology.exterior("edge" if mesh.dim > 1 else "cell")
    ]
    start = np.concatenate([edges[:, 0], edges[:, 1]])
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.concatenate([edges[:, 1], edges[:, 0]])[order]
    along = mesh.coordinates[end] - mesh.coordinates[start]
    length = np.sqrt((along * along).sum(axis=1))
    along /= length[:, None]
    for step in range(1, len(start)):
        same = np.flatnonzero(start[step:] == start[:-step])
        if not same.size:
            return
        a, b = same, same + step
        apart = np.abs(length[a] - length[b]) > 1e-9 * np.maximum(length[a], length[b])
        hit = apart & (np.abs(along[a] - along[b]).max(axis=1) < 1e-9)
        if hit.any():
            i, j = int(a[hit][0]), int(b[hit][0])
            i, j = (i, j) if length[i] < length[j] else (j, i)
            raise ValueError(
                f"The mesh has hanging vertices: vertex {end[i]} lies inside the edge between the vertices "
                f"{start[j]} and {end[j]}. Cells have to meet at whole facets; divide the larger cell."
            )


def volumes(shape: Shape, x: Table, cells: Table) -> Table:
    """The volumes of cells with bilinear faces; of a quadrilateral in space, half its diagonals' product."""
    if shape.name in ("interval", "triangle", "tetrahedron"):
        return np.asarray(_corners(shape, [x[column] for column in cells.T])[:, 0] / (1, 1, 2, 6)[shape.dim])
    if shape.dim == 2:
        a, b = x[cells[:, 2]] - x[cells[:, 0]], x[cells[:, 3]] - x[cells[:, 1]]
        if x.shape[1] == 2:
            return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
        return np.asarray(np.linalg.norm(np.cross(a, b), axis=1) / 2)
    out = np.empty(len(cells))
    for start in range(0, len(cells), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = _volumes_within(shape, x[cells[part]] - x[cells[part, :1]])
    return out


def _volumes_within(shape: Shape, corners: Table) -> Table:
    """By the divergence theorem; a bilinear face has the mean of both ways to cut it into two triangles."""
    out = np.zeros(len(corners))
    for face, outward in zip(shape.faces, shape.outward, strict=True):
        pieces = [(0, 1, 2)] if len(face) == 3 else [(0, 1, 2), (0, 2, 3), (0, 1, 3), (1, 2, 3)]
        for piece in pieces:
            a, b, c = (corners[:, face[v]] for v in piece)
            out += outward * (1.0 if len(face) == 3 else 0.5) * np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    return out
