"""The matrices of a method and the metric terms of a mesh, as arrays of one place.

All of it is made once, in NumPy, and handed over. What differs between methods is data here: which points
fluxes are taken at, which matrices turn point values of fluxes into rates of change of the nodes' values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.geometry import Geometry, geometry
from mirabelle.dg.spelled import Array, Fields, Mesh, Part, ReferenceElement
from mirabelle.dg.traces import Cut, behind, cells_behind, cut_of


@dataclass(frozen=True)
class Rule:
    """Where fluxes are taken, and the matrices of one reference element for that.

    `volume_points` is None where fluxes are taken at the nodes, and `face_nodes` where faces' points are no
    nodes.
    """

    element: ReferenceElement
    volume_points: np.ndarray | None
    volume_weights: np.ndarray
    face_points: np.ndarray  # (Nf, nq, d)
    face_weights: np.ndarray
    face_nodes: np.ndarray | None

    @property
    def reference_face_points(self) -> np.ndarray:
        """The faces' points as points of the faces' own reference cell, (nq, d - 1)."""
        face = self.element.faces[0]
        corners = self.element.vertices[list(face.vertices)]
        origin, d = corners[0], self.element.dims
        if d == 1:
            return np.zeros((1, 0))
        # Affine coordinates of the face: from its first corner along its axes, whose reference length is 2.
        axes = _face_axes(self.element.face_cell, corners)
        return np.linalg.lstsq(axes.T, (self.face_points[0] - origin).T, rcond=None)[0].T - 1.0

    @cached_property
    def mass(self) -> np.ndarray:
        """Of the points' quadrature where fluxes are not taken at the nodes."""
        if self.volume_points is None:
            return self.element.mass
        V = self.element.interpolation(self.volume_points)
        return V.T @ (self.volume_weights[:, None] * V)

    @cached_property
    def to_points(self) -> np.ndarray | None:
        return None if self.volume_points is None else self.element.interpolation(self.volume_points)

    @cached_property
    def to_faces(self) -> np.ndarray:
        return self.element.interpolation(self.face_points.reshape(-1, self.element.dims))

    @cached_property
    def inverse_mass(self) -> np.ndarray:
        return np.linalg.inv(self.mass)

    @cached_property
    def lift(self) -> np.ndarray:
        """Fluxes at faces' points to rates at nodes, (Np, Nf nq)."""
        at = self.to_faces.reshape(*self.face_points.shape[:2], -1)
        return self.inverse_mass @ np.concatenate([E.T @ self.face_mass for E in at], 1)

    @property
    def face_mass(self) -> np.ndarray:
        """Of a face's points: polynomials on faces of simplices are integrated, their nodes are no good
        quadrature."""
        return np.diag(self.face_weights) if self.face_nodes is None else self.element.face_mass

    @cached_property
    def weak(self) -> np.ndarray:
        """Fluxes along reference directions at points to rates, integrated by parts, (d, Np, nP)."""
        e = self.element
        if self.volume_points is None:
            # By parts, as -D and what faces add: with the same matrices, so that constants cancel to rounding.
            normals = np.repeat([f.normal for f in e.faces], self.face_points.shape[1], axis=0).T
            outer = zip(e.differentiation, normals, strict=True)
            return np.stack([(self.lift * n) @ self.to_faces - D for D, n in outer])
        gradients = e.interpolation_gradient(self.volume_points)
        return np.stack([self.inverse_mass @ (G.T * self.volume_weights) for G in gradients])

    @cached_property
    def strong(self) -> np.ndarray:
        """Derivatives of what is given at the points, (d, Np, nP)."""
        e = self.element
        if self.volume_points is None:
            return e.differentiation
        project = self.inverse_mass @ (e.interpolation(self.volume_points).T * self.volume_weights)
        return np.stack([D @ project for D in e.differentiation])


def rule(element: ReferenceElement, over_integration: int | None = None) -> Rule:
    """The points of a method: the nodes, or quadratures exact up to a degree."""
    if over_integration is None:
        return Rule(
            element, None, element.weights, element.face_points, element.face_weights, element.face_nodes
        )
    points, weights = element.quadrature(over_integration)
    face_points, face_weights = element.face_quadrature(over_integration)
    return Rule(element, points, weights, face_points, face_weights, None)


def _face_axes(cell: str, corners: np.ndarray) -> np.ndarray:
    """Half the edges that leave a face's first corner along its reference axes, (d - 1, d)."""
    ends = {"line": (1,), "triangle": (1, 2), "quadrilateral": (2, 1)}[cell]
    return np.stack([(corners[i] - corners[0]) / 2 for i in ends])


@dataclass(frozen=True)
class Boundary:
    """The face points of one boundary, in one row: where they are, and what is known there."""

    points: Any  # int32: nodes, of all Np K, or face points, of all Nf nq K, where these are no nodes
    normal: Fields
    scale: Any
    steepness: Array
    x: Fields
    auxiliary: Fields = ()

    def with_auxiliary(self, values: Fields) -> Boundary:
        """The same with the equations' given fields."""
        return replace(self, auxiliary=values)


@dataclass(frozen=True)
class Matrices:
    """What fluxes at volume points (Np, d nP) and at face points (Np, Nf nq) are multiplied with to give
    rates."""

    volume: Any
    lift: Any


@dataclass(frozen=True)
class Lines:
    """The same for nodes in lines: `volume[r][j]` says what node j of a line along r adds to all nodes of that
    line, `lift[r]` what the faces at its ends add; of the shape (n, ..., n, 1) with 1 for all axes but r."""

    volume: tuple[tuple[Any, ...], ...]
    lift: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Operators:
    """A rule and a geometry on one place.

    Volume metric terms come divided by the Jacobian where cells are affine; then `correction` is None. Else
    what the reference element's inverse mass matrix makes is corrected: `correction` has the shape (Np, K)
    where the mass matrix is diagonal, (Np, Np, K) where it is not.
    """

    matrices: Matrices | Lines
    derivative: Any  # (d Np, Np)
    split: Any  # (n, n (n - 1) / 2), of the fluxes of pairs in flux differences; None without such nodes
    to_points: Any  # (nP, Np), or None
    to_faces: Any  # (nQ, Np), or None
    own: Any  # int32 (Nf, nq): nodes of face points, or None
    neighbour: Any  # int32 (Nf, nq, K), of all nodes or all face points; on the cut any
    cut: Cut | None  # what other processes have behind faces; None on one process
    metric: tuple[Fields, ...]  # [r][d], (nP or 1, K)
    node_metric: tuple[Fields, ...]  # the same at the nodes
    normal: Fields  # (Nf, nq or 1, K)
    scale: Any  # (Nf, nq or 1, K)
    steepness: Array  # (Nf, 1, K): surface over volume, the larger one of both cells
    correction: Any
    boundaries: dict[str, Boundary]
    is_outer: Any  # bool (Nf, nq, K): whether a face point is on a boundary, and
    outer: Any  # int32: which one of all boundaries' points it is then; None without boundaries
    faces: tuple[int, int]  # Nf, nq
    cells: slice | None = None  # of which cells the faces are; None: of all

    def at_faces_of(self, cells: slice) -> Operators:
        """What the faces of some cells need, of which the last ones alone have faces on the cut."""

        def some(x: Any) -> Any:
            return None if x is None else mb.copy(x[..., cells])

        assert self.cut is not None
        # (Deliveries are shared: what is sent is sent once.)
        last = replace(self.cut, behind=some(self.cut.behind), first=0) if cells.start else None
        normal, (scale, steepness) = tuple(map(some, self.normal)), map(some, (self.scale, self.steepness))
        neighbour, is_outer, outer = map(some, (self.neighbour, self.is_outer, self.outer))
        return replace(self, cells=cells, cut=last, normal=normal, scale=scale, steepness=steepness,
                       neighbour=neighbour, is_outer=is_outer, outer=outer)  # fmt: skip


def matrices(rule: Rule, strong: bool, put: Callable[[np.ndarray], Any]) -> Matrices | Lines:
    """What makes rates of fluxes: of derivatives of fluxes (`strong`), or of test functions."""
    e, n = rule.element, rule.element.order + 1
    if not e.is_tensor or rule.volume_points is not None:
        return Matrices(put(np.concatenate(-rule.strong if strong else rule.weak, 1)), put(-rule.lift))
    line = Rule(e.line, None, e.line.weights, e.line.face_points, e.line.face_weights, e.line.face_nodes)
    D = -line.strong[0] if strong else line.weak[0]

    def column(values: np.ndarray, axis: int) -> Any:
        shape = [1] * (e.dims + 1)
        shape[axis] = n
        return put(values.reshape(shape))

    return Lines(
        tuple([tuple([column(D[:, j], r) for j in range(n)]) for r in range(e.dims)]),
        tuple([tuple([column(-line.lift[:, side], r) for side in (0, 1)]) for r in range(e.dims)]),
    )


# fmt: off
def operators(mesh: Mesh, rule: Rule, strong: bool, put: Callable[[np.ndarray], Any],
              part: Part | None = None, comm: Any = None) -> tuple[Operators, Geometry]:
    # fmt: on
    """The operators of a rule on a mesh, or on the part of one; `put` makes arrays of NumPy's."""
    g, element = geometry(mesh, rule.element), rule.element
    K, d = len(mesh), element.dims
    n_faces, nq = rule.face_points.shape[:2]
    points = element.nodes if rule.volume_points is None else rule.volume_points
    metric, node_metric = g.at(g.contravariant, points), g.at(g.contravariant, element.nodes)
    normal, scale = g.normals(rule.face_points, np.stack([f.normal for f in element.faces]).astype(float))
    steep = surface_over_volume(rule, g, scale)
    other = steep[0][mesh.neighbour_cells]
    if part is not None:
        other = mb.to_numpy(behind(put(steep[None, :1]), *cells_behind(part, comm, mesh, put))[0])[:, 0]
    steepness = np.maximum(steep, other)[:, None]
    correction = None
    if g.affine:
        metric, node_metric, scale = metric / g.jacobian, node_metric / g.jacobian, scale / g.jacobian
    else:
        correction = put(_correction(rule, g))
    neighbour = mesh.face_permutation(rule.reference_face_points)
    places = np.arange(n_faces * nq).reshape(n_faces, nq)
    nodes = None
    if rule.face_nodes is not None:
        nodes = rule.face_nodes.reshape(-1)
        neighbour = nodes[neighbour // K] * K + neighbour % K
        places = rule.face_nodes
    neighbour = neighbour.reshape(n_faces, nq, K).astype(np.int32)
    cut = cut_of(part, comm, places, rule.reference_face_points, put)
    positions = g.at(g.positions, rule.face_points.reshape(-1, d)).reshape(d, n_faces, nq, K)
    boundaries, outer = {}, np.full(n_faces * nq * K, -1, np.int32)
    for name, (faces, cells) in mesh.boundaries.items():
        at = (faces[:, None], np.arange(nq)[None], cells[:, None])
        flat = ((at[0] * nq + at[1]) * K + at[2]).reshape(-1)
        outer[flat] = np.arange(len(flat)) + outer.max(initial=-1) + 1

        def there(values: np.ndarray, at: tuple[np.ndarray, ...] = at) -> Any:
            """What faces (Nf, nq or 1, K) have at this boundary's points."""
            return put(np.ascontiguousarray(np.broadcast_to(values, (n_faces, nq, K))[at].reshape(-1)))

        boundaries[name] = Boundary(
            points=put((flat if nodes is None else nodes[flat // K] * K + flat % K).astype(np.int32)),
            normal=tuple([there(c) for c in normal]),
            scale=there(scale),
            steepness=there(steepness),
            x=tuple([there(c) for c in positions]),
        )
    made = Operators(
        matrices=matrices(rule, strong, put),
        derivative=put(np.concatenate(element.differentiation, 0)),
        split=_split(element, put) if rule.volume_points is None else None,
        to_points=None if rule.to_points is None else put(rule.to_points),
        to_faces=None if nodes is not None else put(rule.to_faces),
        own=None if nodes is None else put(nodes.reshape(n_faces, nq).astype(np.int32)),
        neighbour=put(neighbour),
        cut=cut,
        metric=tuple([tuple([put(c) for c in row]) for row in metric]),
        node_metric=tuple([tuple([put(c) for c in row]) for row in node_metric]),
        normal=tuple([put(c) for c in normal]),
        scale=put(scale),
        steepness=put(steepness),
        correction=correction,
        boundaries=boundaries,
        is_outer=put((outer >= 0).reshape(n_faces, nq, K)) if boundaries else None,
        outer=put(np.maximum(outer, 0).reshape(n_faces, nq, K)) if boundaries else None,
        faces=(n_faces, nq),
    )
    return made, g


def _correction(rule: Rule, g: Geometry) -> np.ndarray:
    """What the inverse mass matrix of each cell is, beyond that of the reference element."""
    e = rule.element
    if e.is_tensor and rule.volume_points is None:
        return 1 / g.jacobian_at(e.nodes)
    points, weights = (
        e.quadrature(3 * e.order) if rule.volume_points is None else (rule.volume_points, rule.volume_weights)
    )
    V, J = e.interpolation(points), g.jacobian_at(points)
    out = np.empty((e.nodes.shape[0], e.nodes.shape[0], J.shape[-1]))
    for first in range(
        0, J.shape[-1], 4096
    ):  # in pieces: the matrices of all cells at once would be large twice
        some = slice(first, first + 4096)
        masses = np.einsum("qi,qk,qj->kij", V, weights[:, None] * J[:, some], V, optimize=True)
        out[:, :, some] = np.moveaxis(np.linalg.solve(masses, np.broadcast_to(rule.mass, masses.shape)), 0, 2)
    return out


def surface_over_volume(rule: Rule, g: Geometry, scale: np.ndarray) -> np.ndarray:
    """Of each cell and face, (Nf, K): one over a length, in which penalties are measured."""
    surface = np.einsum(
        "q,fqk->k", rule.face_weights, np.broadcast_to(scale, (*rule.face_points.shape[:2], scale.shape[-1]))
    )
    nodes = g.metric.nodes
    volume = g.metric.weights @ np.broadcast_to(g.jacobian_at(nodes), (len(nodes), len(surface)))
    return np.broadcast_to(surface / volume, (len(rule.element.faces), len(surface)))


def _split(element: ReferenceElement, put: Callable[[np.ndarray], Any]) -> Any:
    """What makes rates of the nodes of a line (n) of the fluxes of its pairs, neighbours first: by -2 D + W⁻¹B,
    where B is for the faces, which add the numerical flux, and leaves nothing of a node with itself."""
    if element.kind_of_nodes != "gauss-lobatto":
        return None
    D, n = -2 * element.line.differentiation[0], element.order + 1
    pairs = [(i, i + apart) for apart in range(1, n) for i in range(n - apart)]
    out = np.zeros((n, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        out[i, k], out[j, k] = D[i, j], D[j, i]
    return put(out)
