"""Metric terms: what maps derivatives on the reference element to derivatives in space.

With J the Jacobian's determinant and Ja^r the contravariant directions, div f = (1/J) sum_r d/dξ_r (Ja^r · f).
Directions are taken from the positions' own polynomials, in three dimensions as a curl (D. A. Kopriva, J. Sci.
Comput. 26, 2006, doi:10.1007/s10915-005-9070-8), so that a constant flow stays constant on curved cells, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirabelle.dg.elements import element as reference_element
from mirabelle.dg.meshes.quality import determinant
from mirabelle.dg.spelled import Mesh, ReferenceElement

Array = np.ndarray

# Cells whose metric terms differ by less than this, relatively, are taken as affine.
STRAIGHT = 1e-12


@dataclass(frozen=True)
class Geometry:
    """Positions and metric terms of a mesh, as polynomials of the solver's order; made by `geometry`.

    Where all cells are affine, metric terms have one column of length one in place of the nodes.

    >>> from mirabelle import dg
    >>> from mirabelle.dg.geometry import geometry
    >>> g = geometry(dg.box(4, lower=0.0, upper=2.0), dg.element("line", 3))
    >>> g.affine, g.jacobian.round(12).tolist()
    (True, [[0.25, 0.25, 0.25, 0.25]])
    """

    metric: ReferenceElement
    positions: Array  # (d, nodes of `metric`, K)
    contravariant: Array  # (r, d, nodes or 1, K): Ja^r
    jacobian: Array  # (nodes or 1, K)
    affine: bool

    def at(self, values: Array, points: Array) -> Array:
        """Polynomials given at the nodes of `metric` (the axis before the last), at other points."""
        if values.shape[-2] == 1:
            return values
        return self.metric.interpolation(points) @ values

    def jacobian_at(self, points: Array) -> Array:
        """The determinant at points: of the interpolated derivatives, which is exact for polynomials."""
        return self.jacobian if self.affine else determinant(self._derivatives(points))

    def _derivatives(self, points: Array) -> Array:
        return np.einsum("rij,djk->rdik", self.metric.interpolation_gradient(points), self.positions)

    def normals(self, face_points: Array, references: Array) -> tuple[Array, Array]:
        """Unit outward normals (d, Nf, nq or 1, K) and the faces' Jacobians (Nf, nq or 1, K).

        `face_points` (Nf, nq, d) lie on the faces, whose reference normals are `references` (Nf, d).
        """
        faces, n, d = face_points.shape
        at = self.at(self.contravariant, face_points.reshape(-1, d))
        if self.affine:
            at = np.einsum("fr,rdqk->dfqk", references, at)
        else:
            at = np.einsum("fr,rdfqk->dfqk", references, at.reshape(d, d, faces, n, -1))
        size = np.sqrt(np.sum(at * at, 0))
        return at / size, size


def geometry(mesh: Mesh, element: ReferenceElement) -> Geometry:
    """The metric terms of a mesh for the polynomials of an element."""
    metric = reference_element(element.cell, element.order)
    given = reference_element(mesh.cell, mesh.order)
    x = mesh.coordinates if given is metric else given.interpolation(metric.nodes) @ mesh.coordinates
    derivatives = np.einsum("rij,djk->rdik", metric.differentiation, x)
    jacobian = determinant(derivatives)
    if not (jacobian > 0).all():
        bad = np.flatnonzero(~(jacobian > 0).all(0))
        centre = x[:, :, bad[0]].mean(1)
        raise ValueError(
            f"{len(bad)} of {len(mesh)} cells are turned inside out or degenerate (their Jacobian is not "
            f"positive), the first at {np.round(centre, 6).tolist()}: neighbouring points overlap, or a "
            "mapping folds the mesh. Look at `mesh.quality()`; a mapping of lower `order` or a finer mesh "
            "may be enough."
        )
    spread = np.abs(derivatives - derivatives[:, :, :1]).max()
    affine = bool(spread <= STRAIGHT * np.abs(derivatives).max())
    if affine:
        derivatives, jacobian = derivatives[:, :, :1], jacobian[:1]
        return Geometry(metric, x, _cofactors(derivatives), jacobian, True)
    directions = _curl_form(metric, x, derivatives) if metric.dims == 3 else _cofactors(derivatives)
    return Geometry(metric, x, directions, jacobian, False)


def _cofactors(a: Array) -> Array:
    """Ja^r of the derivatives (r, d, ...) of positions: the cross products of the other two directions."""
    if len(a) == 1:
        return np.ones_like(a)
    if len(a) == 2:
        return np.stack([np.stack([a[1, 1], -a[1, 0]]), np.stack([-a[0, 1], a[0, 0]])])
    return np.stack(
        [
            np.stack([a[r - 2, d - 2] * a[r - 1, d - 1] - a[r - 2, d - 1] * a[r - 1, d - 2] for d in range(3)])
            for r in range(3)
        ]
    )


def _curl_form(metric: ReferenceElement, x: Array, derivatives: Array) -> Array:
    """Ja^r_d = -(curl of x_l grad x_m)_r, (d, m, l) cyclic, of the interpolated product: its discrete
    divergence is 0."""
    D = metric.differentiation
    out = np.empty_like(derivatives)
    for d in range(3):
        m, l = (d + 1) % 3, (d + 2) % 3  # noqa: E741
        # The mean of both products keeps the roles of the coordinates equal.
        v = 0.5 * (x[l] * derivatives[:, m] - x[m] * derivatives[:, l])
        for r in range(3):
            s, t = (r + 1) % 3, (r + 2) % 3
            out[r, d] = D[t] @ v[s] - D[s] @ v[t]
    return out
