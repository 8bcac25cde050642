"""Reference cells: where their vertices are, and which vertices their edges and faces have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

Vertices = tuple[int, ...]

# Which coordinates belong together: a cell is a product of simplices, a prism of a triangle and an interval.
FACTORS: dict[str, tuple[Vertices, ...]] = {
    "vertex": (),
    "interval": ((0,),),
    "triangle": ((0, 1),),
    "quadrilateral": ((0,), (1,)),
    "tetrahedron": ((0, 1, 2),),
    "hexahedron": ((0,), (1,), (2,)),
    "prism": ((0, 1), (2,)),
}
# As gmsh, VTK and meshio have them: quadrilaterals are walked around.
CORNERS: dict[str, tuple[Vertices, ...]] = {
    "vertex": ((),),
    "interval": ((0,), (1,)),
    "triangle": ((0, 0), (1, 0), (0, 1)),
    "quadrilateral": ((0, 0), (1, 0), (1, 1), (0, 1)),
    "tetrahedron": ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "hexahedron": tuple((*xy, z) for z in (0, 1) for xy in ((0, 0), (1, 0), (1, 1), (0, 1))),
    "prism": tuple((*xy, z) for z in (0, 1) for xy in ((0, 0), (1, 0), (0, 1))),
}
EDGES: dict[str, tuple[Vertices, ...]] = {
    "triangle": ((1, 2), (0, 2), (0, 1)),
    "quadrilateral": ((0, 1), (1, 2), (3, 2), (0, 3)),
    "tetrahedron": ((2, 3), (1, 3), (1, 2), (0, 3), (0, 2), (0, 1)),
    "hexahedron": (
        *((0, 1), (1, 2), (3, 2), (0, 3)),
        *((4, 5), (5, 6), (7, 6), (4, 7)),
        *((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
    "prism": ((1, 2), (0, 2), (0, 1), (4, 5), (3, 5), (3, 4), (0, 3), (1, 4), (2, 5)),
}
FACES: dict[str, tuple[Vertices, ...]] = {
    "tetrahedron": ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)),
    "hexahedron": ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (3, 2, 6, 7), (0, 3, 7, 4)),
    "prism": ((0, 1, 2), (3, 4, 5), (1, 2, 5, 4), (0, 2, 5, 3), (0, 1, 4, 3)),
}


@dataclass(frozen=True, eq=False)
class ReferenceCell:
    """A reference cell: its vertices (n, dim), and the vertices of its entities by their kind.

    >>> from mirabelle.arraytypes.meshdata.referencecells import reference_cell
    >>> reference_cell("triangle").entities["edge"]  # each is opposite the vertex of its number
    ((1, 2), (0, 2), (0, 1))
    """

    shape: str
    factors: tuple[Vertices, ...]
    vertices: np.ndarray
    entities: dict[str, tuple[Vertices, ...]]

    @property
    def dim(self) -> int:
        return sum(map(len, self.factors))

    def barycentric(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrix A (m, dim) and vector b (m,) that make of a point x its barycentric coordinates A x + b.

        A simplex has one for each vertex; a product has those of its factors, one after the other.
        """
        rows, constant = [], []
        for axes in self.factors:
            rows += [-np.isin(np.arange(self.dim), axes).astype(float), *np.eye(self.dim)[list(axes)]]
            constant += [1.0] + [0.0] * len(axes)
        return np.array(rows).reshape(len(constant), self.dim), np.array(constant)


@cache
def reference_cell(shape: str) -> ReferenceCell:
    """The reference cell of a shape."""
    if shape not in FACTORS:
        raise ValueError(
            f"There is no reference cell {shape!r}. Cells are {', '.join(list(FACTORS)[1:-1])} or prism."
        )
    n, dim = len(CORNERS[shape]), sum(map(len, FACTORS[shape]))
    entities: dict[str, tuple[Vertices, ...]] = {"vertex": tuple((v,) for v in range(n))}
    for name, table in (("edge", EDGES), ("face", FACES)):
        if shape in table:
            entities[name] = table[shape]
    if dim:
        entities["cell"] = (tuple(range(n)),)
    vertices = np.array(CORNERS[shape], dtype=float).reshape(n, dim)
    vertices.setflags(write=False)
    return ReferenceCell(shape, FACTORS[shape], vertices, entities)


def shape_of(dim: int, vertices: int) -> str:
    """What an entity of a dimension is that has so many vertices."""
    return next(s for s, f in FACTORS.items() if sum(map(len, f)) == dim and len(CORNERS[s]) == vertices)
