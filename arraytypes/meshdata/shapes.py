"""The shapes of cells: which of their vertices are an edge, which a face, and which way round is right.

Vertices of cells are numbered as in gmsh, VTK and meshio: around a quadrilateral; around the bottom of a
hexahedron and then around its top; a prism is a triangle and the triangle above it; a pyramid is a
quadrilateral and its tip.
`referencecells` has the edges and faces of all but the pyramid: edge j of a triangle and face j of a
tetrahedron lie opposite vertex j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.referencecells import CORNERS as CORNER_POINTS
from mirabelle.arraytypes.meshdata.referencecells import EDGES, FACES

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Shape:
    """A cell's shape."""

    name: str
    dim: int
    vertices: int
    edges: Rows  # the vertices of each edge
    faces: Rows  # the vertices of each face of a solid, around it
    corners: (
        Rows  # a vertex and its neighbours along edges, in the sense that makes a right cell's volume positive
    )
    mirrored: tuple[int, ...]  # the order of the vertices that turns an inverted cell into a right one

    @property
    def facets(self) -> Rows:
        """The vertices of each part of the cell's boundary."""
        return self.entities(self.dim - 1)

    def entities(self, dim: int) -> Rows:
        """The vertices of each entity of a dimension."""
        if dim == self.dim:
            return (tuple(range(self.vertices)),)
        return (tuple((v,) for v in range(self.vertices)), self.edges, self.faces)[dim]

    @cached_property
    def outward(self) -> tuple[int, ...]:
        """1 for each face whose normal, by the order of its vertices, leads out of the cell, -1 for others."""
        x = np.array(REFERENCE_PYRAMID if self.name == "pyramid" else CORNER_POINTS[self.name], dtype=float)
        normals = [np.cross(x[b] - x[a], x[c] - x[a]) for a, b, c, *_ in self.faces]
        return tuple(int(np.sign(n @ (x[f[0]] - x.mean(0)))) for n, f in zip(normals, self.faces, strict=True))

    def numbers(self, dim: int, shape: str) -> tuple[int, ...]:
        """Which of the entities of a dimension have a shape: the faces of a prism that are triangles, say."""
        found = self.entities(dim)
        return tuple(j for j, v in enumerate(found) if SIZES[dim, len(v)] == shape)


def _rows(text: str) -> Rows:
    return tuple(tuple(int(v) for v in word) for word in text.split())


# A pyramid has no reference cell here, as its functions are no polynomials; its edges and faces are these.
EDGES_OF_PYRAMID = _rows("01 12 32 03 04 14 24 34")
FACES_OF_PYRAMID = _rows("0123 014 124 324 034")
REFERENCE_PYRAMID = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 1))
CORNERS: dict[str, str] = {
    "interval": "01",
    "triangle": "012",
    "quadrilateral": "013 120 231 302",
    "tetrahedron": "0123",
    "hexahedron": "0134 1205 2316 3027 4750 5461 6572 7643",
    "prism": "0123 1204 2015 3540 4351 5432",
    "pyramid": "0134 1204 2314 3024",
}
MIRRORED: dict[str, str] = {
    "interval": "10",
    "triangle": "021",
    "quadrilateral": "0321",
    "tetrahedron": "0213",
    "hexahedron": "03214765",
    "prism": "021354",
    "pyramid": "03214",
}
SIZES = {
    (0, 1): "vertex",
    (1, 2): "interval",
    (2, 3): "triangle",
    (2, 4): "quadrilateral",
    (3, 4): "tetrahedron",
    (3, 5): "pyramid",
    (3, 6): "prism",
    (3, 8): "hexahedron",
}


def _shape(dim: int, vertices: int, name: str) -> Shape:
    """The shape of a cell; edges and faces are those of the reference cells, which elements stand on."""
    of_pyramid = name == "pyramid"
    edges = EDGES_OF_PYRAMID if of_pyramid else EDGES.get(name, ())
    faces = FACES_OF_PYRAMID if of_pyramid else FACES.get(name, ())
    return Shape(name, dim, vertices, edges, faces, _rows(CORNERS[name]), _rows(MIRRORED[name])[0])


SHAPES: dict[str, Shape] = {name: _shape(*key, name) for key, name in SIZES.items() if key[0]}


def shape_of(dim: int, vertices: int) -> Shape:
    """The shape with so many vertices, or an error.

    >>> shape_of(3, 6).name
    'prism'
    """
    if (dim, vertices) not in SIZES:
        known = {n: s for (d, n), s in SIZES.items() if d == dim}
        raise ValueError(
            f"There are no cells of {vertices} vertices in {dim} dimensions: {known} is what there is. Give "
            "the shape where the vertices have more coordinates than cells have dimensions: "
            '`{"triangle": table}`.'
        )
    return SHAPES[SIZES[dim, vertices]]


def named(shape: Any) -> Shape:
    """The shape of a name, or an error.

    >>> named("triangle").facets
    ((1, 2), (0, 2), (0, 1))
    """
    if not isinstance(shape, str) or shape not in SHAPES:
        raise ValueError(f"There is no shape {shape!r} of cells; there are {list(SHAPES)}.")
    return SHAPES[shape]


def corner_volumes(shape: Shape, points: Sequence[np.ndarray]) -> np.ndarray:
    """The determinants of the edges at each corner, (cells, corners): positive where a cell is not inverted.

    Cells are given by where their vertices are: of each vertex an array (cells, dim).
    """
    out = np.empty((len(points[0]), len(shape.corners)))
    for k, (at, *ends) in enumerate(shape.corners):
        out[:, k] = _determinant([points[e] - points[at] for e in ends])
    return out


def _determinant(rows: list[np.ndarray]) -> np.ndarray:
    """Of matrices given by their rows (n, d); LAPACK's takes ten times as long for many small ones."""
    if len(rows) == 1:
        return rows[0][:, 0]
    if len(rows) == 2:
        (a, b), (c, d) = rows[0].T, rows[1].T
        return np.asarray(a * d - b * c)
    (a, b, c), (d, e, f), (g, h, i) = (r.T for r in rows)
    return np.asarray(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
