"""How good the cells of a mesh are."""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mirabelle.dg.elements import element
from mirabelle.dg.spelled import Mesh


@dataclass(frozen=True, eq=False, repr=False)
class Quality:
    """Measures of each cell, arrays of length K; made by `mesh.quality()`.

    `aspect` says how much longer than wide a cell is (of the singular values of its map at the centre, 1 for
    regular cells), `skewness` how far angles are from regular ones (from 0 to 1, the equiangle skewness),
    `jacobian_ratio` is the least over the largest determinant of its map (1 for straight simplices).

    >>> from mirabelle import dg
    >>> dg.box((4, 2), upper=(4.0, 1.0)).quality()
    8 quadrilaterals of order 1 in 2 dimensions; boundaries x_neg: 2, x_pos: 2, y_neg: 4, y_pos: 4
                           least      median     largest  worst cell
    volume                   0.5         0.5         0.5           0
    aspect                     2           2           2           0
    skewness                   0           0           0           0
    jacobian_ratio             1           1           1           0
    """

    mesh: Mesh
    volume: np.ndarray
    aspect: np.ndarray
    skewness: np.ndarray
    jacobian_ratio: np.ndarray

    def _rows(self) -> list[list[str]]:
        rows = [["", "least", "median", "largest", "worst cell"]]
        for name, worst in (("volume", 0), ("aspect", -1), ("skewness", -1), ("jacobian_ratio", 0)):
            values = np.round(getattr(self, name), 12) + 0.0
            at = np.sort(values)[[0, len(values) // 2, -1]]
            rows.append([name, *(f"{v:.4g}" for v in at), str(np.flatnonzero(values == at[worst])[0])])
        return rows

    def __repr__(self) -> str:
        lines = (f"{row[0]:16}" + "".join(f"{text:>12}" for text in row[1:]) for row in self._rows())
        return "\n".join([self.mesh.summary, *lines])

    def _repr_html_(self) -> str:
        rows = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) for row in self._rows())
        return f"<p>{html.escape(self.mesh.summary)}</p><table>{rows}</table>"


def determinant(a: np.ndarray) -> np.ndarray:
    """Of matrices whose entries are along the first two axes, up to three by three.

    >>> float(determinant(np.array([[2.0, 1.0], [1.0, 3.0]])))
    5.0
    """
    if len(a) == 1:
        return a[0, 0]
    if len(a) == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return (a[0] * np.cross(a[1], a[2], axis=0)).sum(0)


def quality(mesh: Mesh) -> Quality:
    """The measures of all cells; see `Quality`."""
    d, first = mesh.dims, element(mesh.cell, 1)
    # Edges of regular simplices have length one and angles of 60 degrees, so products of one half.
    regular = np.eye(d) if first.is_tensor else np.linalg.cholesky(0.5 * (np.eye(d) + 1)).T
    points = np.concatenate(
        [first.vertices.mean(0)[None], first.vertices, element(mesh.cell, mesh.order).nodes]
    )
    aspect, ratio = np.empty(len(mesh)), np.empty(len(mesh))
    for part, a in mesh.jacobians(points):
        stretch = np.linalg.svd(a[:, :, 0].transpose(2, 0, 1) @ np.linalg.inv(regular), compute_uv=False)
        aspect[part] = stretch[:, 0] / stretch[:, -1]
        det = determinant(a)
        ratio[part] = det.min(0) / det.max(0)
    return Quality(mesh, mesh.volumes, aspect, _skewness(mesh), ratio)


def _skewness(mesh: Mesh) -> np.ndarray:
    """The largest deviation of an angle between edges from the regular one, relative to what is possible."""
    tensor, x = element(mesh.cell, 1).is_tensor, mesh.vertices
    right = np.pi / 2 if tensor else np.pi / 3
    worst = np.zeros(len(mesh))
    for c in range(x.shape[1]):
        # Where edges from a corner go: of tensor cells, to corners whose number differs in one bit.
        ends = [c ^ 2**r for r in range(mesh.dims)] if tensor else [v for v in range(x.shape[1]) if v != c]
        for a, b in combinations([x[:, v] - x[:, c] for v in ends], 2):
            cosine = (a * b).sum(0) / np.sqrt((a * a).sum(0) * (b * b).sum(0))
            away = np.arccos(np.clip(cosine, -1, 1)) - right
            worst = np.maximum(worst, np.maximum(away / (np.pi - right), -away / right))
    return worst
