"""Finite elements: basis functions on reference cells, and which entity each degree of freedom belongs to.

All bases are written in barycentric coordinates, so one formula serves simplices and their products. Degrees of
freedom are numbered as `mesh.closure` counts: of the cell, then its faces, its edges and its vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.meshdata.referencecells import ReferenceCell, reference_cell, shape_of

KINDS = ("cell", "face", "edge", "vertex")  # the order of a closure
DIMS = {"face": 2, "edge": 1, "vertex": 0}
HIGHEST = 6  # With equispaced nodes the condition grows fast beyond.
FAMILIES = {
    "P": "Lagrange elements of degree 1 to 6, continuous",
    "Q": "the same on quadrilaterals and hexahedra: of that degree in each coordinate",
    "DP": "discontinuous Lagrange elements of degree 0 to 6",
    "RT": "Raviart-Thomas elements, of degree 1 to 4 on triangles and 1 on tetrahedra: fluxes through facets",
    "N": "Nédélec's elements of the first kind, of the same degrees: circulations along edges",
}


@dataclass(frozen=True, eq=False)
class Element:
    """Basis functions on a reference cell: `tabulate` gives their values and gradients.

    `entity_dofs` says how many degrees of freedom one entity of each kind has, `points` (K, dim) where those of
    Lagrange elements are, `mapping` how functions go to cells: "identity", or by Piola's transformations,
    "contravariant" (RT, which keeps fluxes) or "covariant" (N, which keeps circulations).

    >>> from mirabelle import meshdata as md
    >>> element = md.element("P", "triangle", 3)
    >>> element, element.size, element.entity_dofs
    (<P3 on a triangle>, 10, {'cell': 1, 'edge': 2, 'vertex': 1})
    >>> element.tabulate([[0.25, 0.25]]).sum().round(14)
    np.float64(1.0)
    """

    family: str
    shape: str
    degree: int
    entity_dofs: dict[str, int]
    points: np.ndarray | None
    mapping: str

    @property
    def cell(self) -> ReferenceCell:
        return reference_cell(self.shape)

    @property
    def dim(self) -> int:
        return self.cell.dim

    @property
    def size(self) -> int:
        """How many basis functions there are."""
        return sum(n * len(self.cell.entities[kind]) for kind, n in self.entity_dofs.items())

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of a value: () of a scalar function, (dim,) of a vector field."""
        return () if self.mapping == "identity" else (self.dim,)

    def tabulate(self, points: npt.ArrayLike, derivatives: int = 0) -> np.ndarray:
        """Values (..., K) at points (..., dim) of the cell; with `derivatives=1` gradients (..., K, dim).

        Vector fields have (..., K, dim) and (..., K, dim, dim): first the component, then the direction.

        >>> from mirabelle import meshdata as md
        >>> md.element("P", "interval", 1).tabulate([[0.25]])
        array([[0.75, 0.25]])
        >>> md.element("P", "interval", 1).tabulate([[0.25]], derivatives=1)[0, :, 0]
        array([-1.,  1.])
        """
        x = np.asarray(points, dtype=float)
        if x.ndim < 1 or x.shape[-1] != self.dim:
            raise ValueError(
                f"Points of a {self.shape} have {self.dim} coordinates in their last axis, and these have the "
                f'shape {x.shape}. The points of a rule are `md.quadrature("{self.shape}", degree)[0]`.'
            )
        if derivatives not in (0, 1):
            raise ValueError(
                f"Elements tabulate values (`derivatives=0`) and gradients (`derivatives=1`), "
                f"not {derivatives!r}."
            )
        return self._table(x, derivatives)

    def _table(self, x: np.ndarray, derivatives: int) -> np.ndarray:
        if self.points is None:
            return whitney(self.cell, "face" if self._on_faces else "edge", x, derivatives, self.family == "RT")
        return lagrange(self.cell, self._exponents, x, self.degree, derivatives)

    @property
    def _on_faces(self) -> bool:
        return "face" in self.entity_dofs

    @property
    def _exponents(self) -> np.ndarray:
        """The nodes by whole numbers: the degree times their barycentric coordinates."""
        A, b = self.cell.barycentric()
        return np.rint(self.degree * (self.points @ A.T + b)).astype(int)

    def order(self, kind: str, seen: tuple[int, ...]) -> np.ndarray:
        """Where an entity's degrees of freedom stand on the mesh, whose vertex i is the entity's `seen[i]`.

        >>> from mirabelle import meshdata as md
        >>> md.element("P", "triangle", 4).order("edge", (1, 0))  # the mesh has the edge the other way round
        array([2, 1, 0])
        """
        n = self.entity_dofs[kind]
        if n < 2 or kind == "cell":
            return np.arange(n)
        shape = shape_of(DIMS[kind], len(seen))
        corners = reference_cell(shape).vertices
        here, there = (
            inner_nodes(corners, shape, self.degree),
            inner_nodes(corners[list(seen)], shape, self.degree),
        )
        return np.abs(here[:, None] - there).max(axis=2).argmin(axis=1)

    def sign(self, kind: str, seen: tuple[int, ...]) -> int | np.ndarray:
        """The sign (or signs) of an entity's functions that the mesh sees so: -1 where `seen` is odd."""
        if self.mapping == "identity" or len(seen) < 2:
            return 1
        return (-1) ** sum(a > b for i, a in enumerate(seen) for b in seen[i + 1 :])

    def __reduce__(self) -> Any:
        return element, (self.family, self.shape, self.degree)

    def __repr__(self) -> str:
        return f"<{self.family}{self.degree} on {'an' if self.shape == 'interval' else 'a'} {self.shape}>"


Element.__module__ = "mirabelle.meshdata"


@lru_cache(maxsize=None, typed=True)  # degree 1.0 is refused where 1 is not
def element(family: str, shape: str, degree: int) -> Element:
    """An element of a family: "P", "Q", "DP" (Lagrange), "RT" (Raviart-Thomas) or "N" (Nédélec, first kind).

    Nodes of Lagrange elements are equispaced. RT and N of degree 1 are Whitney's forms; those of higher degree,
    on triangles, are tabulated by basix (`pip install fenics-basix`).

    Parameters
    ----------
    family : {"P", "Q", "DP", "RT", "N"}
        The family.
    shape : str
        The cell: "interval", "triangle", "quadrilateral", "tetrahedron", "hexahedron", "prism" or "pyramid".
    degree : int
        The degree of the polynomials.

    Returns
    -------
    mb.meshdata.Element
        The same object each time for the same arguments.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.element("RT", "tetrahedron", 1).entity_dofs
    {'face': 1}
    """
    if family not in FAMILIES:
        raise ValueError(
            f"There is no family {family!r} of elements. There are "
            + "; ".join(f"{name}: {text}" for name, text in FAMILIES.items())
            + '. The usual ones are `md.element("P", "triangle", 2)`.'
        )
    cell, whole = reference_cell(shape), isinstance(degree, int) and not isinstance(degree, bool)
    if family in ("RT", "N"):
        return _vector_element(family, cell, degree)
    if family == "Q" and any(len(axes) > 1 for axes in cell.factors):
        raise ValueError(
            f'Q elements are those of boxes: on a {shape} take `md.element("P", "{shape}", {degree!r})`.'
        )
    if not whole or not (family != "DP") <= degree <= HIGHEST:
        raise ValueError(
            f"{family} elements have a degree from {int(family != 'DP')} to {HIGHEST}, not {degree!r}: "
            f'`md.element("{family}", "{shape}", 2)`.'
        )
    if shape == "prism" and family == "P" and degree > 1:
        raise ValueError(
            "Faces of prisms are of two shapes with different numbers of nodes: continuous elements there "
            'have degree 1, `md.element("P", "prism", 1)`, and discontinuous ones any: '
            '`md.element("DP", "prism", 2)`.'
        )
    points, counts = [], {}
    for kind in (k for k in KINDS if k in cell.entities):
        for vertices in cell.entities[kind]:
            at = shape if kind == "cell" else shape_of(DIMS[kind], len(vertices))
            points.append(inner_nodes(cell.vertices[list(vertices)], at, degree))
        counts[kind] = len(points[-1])
    nodes = np.concatenate(points)
    if family == "DP":
        counts = {"cell": len(nodes) or 1}
        nodes = nodes if degree else cell.vertices.mean(axis=0)[None]
    nodes.setflags(write=False)
    return Element(family, shape, degree, {k: n for k, n in counts.items() if n}, nodes, "identity")


def _vector_element(family: str, cell: ReferenceCell, degree: Any) -> Element:
    whole = isinstance(degree, int) and not isinstance(degree, bool)
    if (
        cell.shape not in ("triangle", "tetrahedron")
        or not whole
        or degree < 1
        or degree > (4 if cell.dim == 2 else 1)
    ):
        raise ValueError(
            f"{family} elements of degree {degree!r} on a {cell.shape} are not here. There are those of degree "
            f'1 to 4 on triangles and 1 on tetrahedra: `md.element("{family}", "triangle", 1)`.'
        )
    if degree > 1:
        from mirabelle.arraytypes.meshdata.basixelements import of_higher_degree

        return of_higher_degree(family, cell.shape, degree)
    kind = "face" if family == "RT" and cell.dim == 3 else "edge"
    mapping = "contravariant" if family == "RT" else "covariant"
    return Element(family, cell.shape, 1, {kind: 1}, None, mapping)


def inner_nodes(vertices: np.ndarray, shape: str, degree: int) -> np.ndarray:
    """The equispaced nodes inside an entity with these vertices: its first coordinate runs fastest.

    >>> inner_nodes(np.array([[0.0], [1.0]]), "interval", 4).ravel()
    array([0.25, 0.5 , 0.75])
    """
    cell = reference_cell(shape)
    A, b = cell.barycentric()
    steps = np.indices((degree + 1,) * cell.dim).reshape(cell.dim, (degree + 1) ** cell.dim)[::-1].T
    if not degree:
        return np.empty((0, vertices.shape[1]))
    inside = ((steps @ A.T + degree * b) > 0).all(axis=1)
    local = steps[inside] / degree
    return local @ _frame(vertices, cell) + vertices[0]


def _frame(vertices: np.ndarray, cell: ReferenceCell) -> np.ndarray:
    """The edges from the first vertex along the coordinates of an entity's reference cell, (its dim, dim)."""
    at = [int(np.flatnonzero((cell.vertices == unit).all(axis=1))[0]) for unit in np.eye(cell.dim)]
    return vertices[at] - vertices[0]


def lagrange(
    cell: ReferenceCell, exponents: np.ndarray, x: np.ndarray, degree: int, derivatives: int
) -> np.ndarray:
    """Lagrange's basis: the product over barycentric coordinates c of (k c)(k c - 1)...(k c - a + 1) / a!.

    This is 1 at the node where k c = a for each of them, and 0 at the others (P. Silvester, 1969).
    """
    A, b = cell.barycentric()
    c = x @ A.T + b
    values, slopes = [np.ones_like(c)], [np.zeros_like(c)]
    for a in range(degree):
        step = (degree * c - a) / (a + 1)
        slopes.append(slopes[-1] * step + values[-1] * (degree / (a + 1)))
        values.append(values[-1] * step)
    each = np.arange(len(b))
    factors = np.stack(values, axis=-2)[..., exponents, each]  # (..., K, coordinates)
    if not derivatives:
        return factors.prod(axis=-1)
    tangents = np.stack(slopes, axis=-2)[..., exponents, each]
    others = [np.delete(factors, i, axis=-1).prod(axis=-1) for i in each]
    return np.einsum("...ki,ij->...kj", tangents * np.stack(others, axis=-1), A)


def whitney(cell: ReferenceCell, kind: str, x: np.ndarray, derivatives: int, flux: bool) -> np.ndarray:
    """Whitney: for each edge a field of circulation 1 along it, or for each facet one of flux 1 through it.

    Edges run from their first to their second vertex. Facets look to the right of (a, b) in the plane,
    and along (b - a) x (c - a) in space.
    """
    A, b = cell.barycentric()  # of a simplex: gradients and constants of the coordinates of its vertices
    fields, slopes = [], []
    for entity in cell.entities[kind]:
        if len(entity) == 2:
            i, j = entity
            weights = [(i, A[j]), (j, -A[i])]
        else:
            i, j, k = entity
            weights = [(v, 2 * np.cross(A[p], A[q])) for v, p, q in ((i, j, k), (j, k, i), (k, i, j))]
        if flux and cell.dim == 2:  # turned by a right angle
            weights = [(v, np.array([w[1], -w[0]])) for v, w in weights]
        # The coordinate of each vertex times a constant vector.
        at, vectors = [v for v, _ in weights], np.array([w for _, w in weights])
        fields.append((x @ A[at].T + b[at]) @ vectors)
        slopes.append(np.broadcast_to(vectors.T @ A[at], (*x.shape[:-1], cell.dim, cell.dim)))
    return np.stack(slopes if derivatives else fields, axis=-2 - bool(derivatives))
