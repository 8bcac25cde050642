"""The reference element: a cell, its nodes, and the matrices of what is done with polynomials on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import index
from typing import Any

import numpy as np

from mirabelle.dg.elements import lattice
from mirabelle.dg.elements.nodes import warp_and_blend
from mirabelle.dg.elements.polynomials import modal_basis
from mirabelle.dg.elements.quadrature import combine, gauss, gauss_lobatto, rule
from mirabelle.dg.spelled import ArrayLike

# Cells by their number of coordinates, whether they are products of lines, and the cell of their faces.
CELLS = {
    "point": (0, True, ""),
    "line": (1, True, "point"),
    "triangle": (2, False, "line"),
    "quadrilateral": (2, True, "line"),
    "tetrahedron": (3, False, "triangle"),
    "hexahedron": (3, True, "quadrilateral"),
}
LARGEST_ORDER = 10


@dataclass(frozen=True, eq=False)
class Face:
    """A face of a reference cell: the ids of its vertices and its outward normal, of components -1, 0 and 1.

    The vertices ascend, and stand in the order of the vertices of the face's own reference cell.

    >>> element("triangle", 1).faces[2].vertices
    (1, 2)
    """

    vertices: tuple[int, ...]
    normal: np.ndarray


def fixed(values: np.ndarray) -> np.ndarray:
    """An array that cannot be written any more: elements are shared.

    >>> fixed(np.ones(2)).flags.writeable
    False
    """
    values.flags.writeable = False
    return values


class ReferenceElement:
    """Polynomials on a reference cell, by their values at nodes: `element` makes them.

    Lines, quadrilaterals and hexahedra are [-1, 1]^d; their nodes and vertices are counted with the first
    coordinate slowest. Triangles and tetrahedra have the vertices (-1, ..., -1) and, for each coordinate,
    the one where it alone is 1; their nodes are counted with the first coordinate fastest.
    Faces of [-1, 1]^d come in pairs x_k = -1 and x_k = 1; those of a simplex are x_1 = -1, ..., x_d = -1 and
    the slanted one.

    >>> import numpy as np
    >>> from mirabelle import dg
    >>> tri = dg.element("triangle", 3)
    >>> tri
    element('triangle', 3, 'warp-blend')
    >>> x, y = tri.nodes.T
    >>> np.allclose(tri.differentiation[0] @ (x**2 * y), 2 * x * y)
    True
    """

    def __init__(self, cell: str, order: int, kind_of_nodes: str) -> None:
        self.cell, self.order, self.kind_of_nodes = cell, order, kind_of_nodes
        self.dims, self.is_tensor, self.face_cell = CELLS[cell]
        modes = lattice.lattice(self.dims, order, self.is_tensor)
        # The degree of each mode: the total one on simplices, the largest in a direction otherwise.
        self.degrees = fixed(modes.max(1, initial=0) if self.is_tensor else modes.sum(1))
        self.vertices = fixed(2.0 * lattice.lattice(self.dims, 1, self.is_tensor) - 1)
        if self.is_tensor:
            along = (gauss if kind_of_nodes == "gauss" else gauss_lobatto)(order + 1)
            self.nodes, self.weights = map(fixed, combine([along] * self.dims))
        else:
            self.nodes = fixed(warp_and_blend(self.dims, order))
            self.weights = fixed(self.exact_mass.sum(1))

    def __repr__(self) -> str:
        return f"element({self.cell!r}, {self.order}, {self.kind_of_nodes!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return element, (self.cell, self.order, self.kind_of_nodes)

    @property
    def line(self) -> ReferenceElement:
        """The element on the line that a tensor element is a product of."""
        if not self.is_tensor:
            raise AttributeError(f"A {self.cell} is no product of lines: ask `is_tensor` before `line`.")
        return element("line", self.order, self.kind_of_nodes)

    @property
    def face_element(self) -> ReferenceElement:
        """The element whose nodes are the face points."""
        return element(self.face_cell, self.order, self.kind_of_nodes if self.is_tensor else None)

    def _points(self, points: ArrayLike) -> np.ndarray:
        points = np.asarray(points, float)
        if points.ndim != 2 or points.shape[1] != self.dims:
            raise ValueError(
                f"Points of a {self.cell} have the shape (n, {self.dims}), one point a row, and not "
                f"{points.shape}: bring them to it by points.reshape(-1, {self.dims}), or by points.T."
            )
        return points

    def vandermonde(self, points: ArrayLike) -> np.ndarray:
        """The orthonormal modal basis at points (n, d): (n, Np)."""
        return modal_basis(self._points(points), self.order, self.is_tensor)[0]

    def vandermonde_gradient(self, points: ArrayLike) -> np.ndarray:
        """The partial derivatives of the modal basis at points (n, d): (d, n, Np)."""
        return modal_basis(self._points(points), self.order, self.is_tensor, gradient=True)[1:]

    @cached_property
    def to_modes(self) -> np.ndarray:
        """The coefficients of the modal basis by the values at the nodes: (Np, Np)."""
        return fixed(np.linalg.inv(self.vandermonde(self.nodes)))

    def interpolation(self, points: ArrayLike) -> np.ndarray:
        """The values at points (n, d) by those at the nodes: (n, Np)."""
        return self.vandermonde(points) @ self.to_modes

    def interpolation_gradient(self, points: ArrayLike) -> np.ndarray:
        """The partial derivatives at points (n, d) by the values at the nodes: (d, n, Np)."""
        return self.vandermonde_gradient(points) @ self.to_modes

    @cached_property
    def exact_mass(self) -> np.ndarray:
        """The integrals of products of two functions that are 1 at one node each: (Np, Np)."""
        return fixed(self.to_modes.T @ self.to_modes)

    @cached_property
    def mass(self) -> np.ndarray:
        """The mass matrix: exact, but by quadrature at the nodes (so diagonal) for Gauss-Lobatto nodes."""
        return fixed(np.diag(self.weights)) if self.is_tensor else self.exact_mass

    @cached_property
    def inverse_mass(self) -> np.ndarray:
        """The inverse of the mass matrix."""
        modes = self.vandermonde(self.nodes)
        return fixed(np.diag(1 / self.weights) if self.is_tensor else modes @ modes.T)

    @cached_property
    def differentiation(self) -> np.ndarray:
        """The partial derivatives at the nodes by the values there: (d, Np, Np)."""
        if self.is_tensor and self.dims > 1:
            one, along = np.eye(self.order + 1), self.line.differentiation[0]
            axes = range(self.dims)
            return fixed(np.array([reduce(np.kron, [along if k == r else one for k in axes]) for r in axes]))
        made = self.interpolation_gradient(self.nodes)
        # Derivatives of constants vanish to the last bit that a sum can keep.
        at = np.arange(len(self.nodes))
        made[:, at, at] -= made.sum(2)
        return fixed(made)

    def modal_filter(self, strength: float = 36.0, power: float = 8.0, cutoff: int = 0) -> np.ndarray:
        """The exponential filter, (Np, Np): modes above the degree `cutoff` are damped, the highest the most.

        A mode of degree p is multiplied by exp(-strength ((p - cutoff) / (order - cutoff))^power); means stay
        (J. Hesthaven and T. Warburton, Nodal Discontinuous Galerkin Methods, DOI 10.1007/978-0-387-72067-8).
        """
        if not (0 <= cutoff < self.order and strength >= 0 and power > 0):
            raise ValueError(
                f"A filter has a cutoff from 0 to {self.order - 1}, a strength from 0 on and a positive power, "
                f"not {cutoff}, {strength} and {power}: modal_filter(strength=36, power=8, cutoff=0)."
            )
        above = np.maximum(self.degrees - cutoff, 0) / (self.order - cutoff)
        return (self.vandermonde(self.nodes) * np.exp(-strength * above**power)) @ self.to_modes

    def quadrature(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, d) and weights (n,) exact for a total degree (on boxes: that degree in each direction)."""
        return rule(self.dims, self.is_tensor, index(degree))

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        """The faces; sum_k normal[k] J grad x_k is the outward normal, by the area of the face's own cell."""
        normals = [side * axis for axis in np.eye(self.dims) for side in ((-1, 1) if self.is_tensor else (-1,))]
        normals += [] if self.is_tensor else [np.ones(self.dims)]
        heights = [self.vertices @ normal for normal in normals]
        ids = [tuple(np.flatnonzero(height == height.max()).tolist()) for height in heights]
        return tuple(Face(v, fixed(normal + 0.0)) for v, normal in zip(ids, normals, strict=True))

    def face_map(self, face: int, points: ArrayLike) -> np.ndarray:
        """Points (n, d) of the cell at points (n, d - 1) of the reference cell of a face."""
        points = element(self.face_cell, 1)._points(points)
        first, *others = self.vertices[list(self.faces[face].vertices)]
        d = self.dims - 1
        axes = [others[(2 ** (d - 1 - k) if self.is_tensor else k + 1) - 1] - first for k in range(d)]
        return first + (points + 1) / 2 @ np.reshape(axes, (d, self.dims))

    def _on_faces(self, points: np.ndarray) -> np.ndarray:
        return np.array([self.face_map(face, points) for face in range(len(self.faces))])

    @cached_property
    def face_points(self) -> np.ndarray:
        """Where surface fluxes are evaluated, (Nf, nq, d): the nodes of the face's element, on each face."""
        return fixed(self._on_faces(self.face_element.nodes))

    @property
    def face_weights(self) -> np.ndarray:
        """The face points as a quadrature rule on the face's reference cell: (nq,)."""
        return self.face_element.weights

    @property
    def face_mass(self) -> np.ndarray:
        """The mass matrix of a face, (nq, nq): exact on simplices, the diagonal of the weights otherwise."""
        return self.face_element.mass if self.is_tensor else self.face_element.exact_mass

    @cached_property
    def face_nodes(self) -> np.ndarray | None:
        """Which nodes the face points are, (Nf, nq), or None where they are none: for Gauss nodes."""
        distances = np.abs(self.face_points[:, :, None] - self.nodes).max(3, initial=0)
        return fixed(distances.argmin(2)) if distances.min(2).max() < 1e-12 else None

    def face_quadrature(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        """Points on each face (Nf, n, d) and weights (n,): images of one rule that is symmetric in vertices."""
        points, weights = self.face_element.quadrature(degree)
        if self.cell == "tetrahedron":
            # Where the vertices 0 and 1 of a triangle change places, its rule stays; rotations make the rest.
            shares = np.column_stack([-points.sum(1), 1 + points]) / 2
            points = 2 * np.concatenate([np.roll(shares, k, 1)[:, 1:] for k in range(3)]) - 1
            weights = np.tile(weights / 3, 3)
        return self._on_faces(points), weights

    def subcells(self) -> np.ndarray:
        """The linear cells between neighbouring nodes, (n, nv): for plots."""
        return lattice.subcells(self.dims, self.order, self.is_tensor)

    def equispaced(self) -> np.ndarray:
        """Equispaced points, (Np, d), in the order of the nodes."""
        return 2 * lattice.lattice(self.dims, self.order, self.is_tensor) / self.order - 1

    def vtk_order(self) -> np.ndarray:
        """Which of the equispaced points VTK's Lagrange cell has first, second, ...

        >>> element("triangle", 2).equispaced()[element("triangle", 2).vtk_order()].tolist()
        [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [0.0, -1.0], [0.0, 0.0], [-1.0, 0.0]]
        """
        return lattice.vtk_order(self.cell, self.order)


_made = cache(ReferenceElement)


def element(cell: str, order: int, nodes: str | None = None) -> ReferenceElement:
    """The reference element of a cell and an order, by name and number; the same object each time.

    `nodes` are "warp-blend" on triangles and tetrahedra; on lines, quadrilaterals and hexahedra they are
    "gauss-lobatto", if nothing is said, or "gauss".

    Parameters
    ----------
    cell : str
        "line", "quadrilateral", "triangle", "hexahedron" or "tetrahedron".
    order : int
        The polynomials' degree.
    nodes : str or None
        The kind of nodes; None is what is usual for the cell.

    Returns
    -------
    dg.ReferenceElement
        Its `nodes`, of shape (Np, d), and matrices are NumPy's.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.element("quadrilateral", 2, "gauss").nodes.shape
    (9, 2)
    >>> dg.element("line", 2) is dg.element("line", 2, "gauss-lobatto")
    True
    """
    if cell not in CELLS:
        raise ValueError(
            f"There is no reference element for {cell!r} cells, but for {', '.join(list(CELLS)[1:])}: for "
            f'example dg.element("hexahedron", {order}).'
        )
    if not hasattr(order, "__index__"):
        raise ValueError(
            f'The order of an element is a whole number, and not {order!r}: dg.element("{cell}", 3).'
        )
    if not 1 <= index(order) <= LARGEST_ORDER:
        raise ValueError(
            f"Elements have orders from 1 to {LARGEST_ORDER}, and not {order}. Refine the mesh for more "
            f'accuracy, and take for example dg.element("{cell}", {min(max(order, 1), LARGEST_ORDER)}).'
        )
    kinds = ("gauss-lobatto", "gauss") if CELLS[cell][1] else ("warp-blend",)
    if nodes not in (None, *kinds):
        raise ValueError(
            f"The nodes of a {cell} are {' or '.join(map(repr, kinds))}, and not {nodes!r}: "
            f'dg.element("{cell}", {order}) takes the first.'
        )
    return _made(cell, index(order), nodes or kinds[0])
