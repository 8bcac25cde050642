"""In which cell a point lies, and where: buckets over the cells' bounding boxes, then Newton's method."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.elements import Element

SLACK = 1e-10  # How far outside of its cell a point may seem, in reference coordinates: rounding.
STEPS = 30


class CellGeometry:
    """Where cells are: the map from the reference cell to each, made of the functions of degree 1.

    >>> import numpy as np
    >>> from mirabelle import meshdata as md
    >>> corners = np.array([[[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]])
    >>> CellGeometry(md.element("P", "triangle", 1), corners).jacobians(np.array([0]), np.zeros((1, 2)))
    array([[[2., 0.],
            [0., 1.]]])
    """

    def __init__(self, element: Element, corners: np.ndarray) -> None:
        self.element, self.corners = element, corners  # (cells, vertices, space)
        self.affine = element.size == element.dim + 1

    def positions(self, cells: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Where points (n, dim) of the reference cells of `cells` (n,) are."""
        return np.einsum("nk,nkd->nd", self.element.tabulate(at), self.corners[cells])

    def jacobians(self, cells: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The derivatives of the map at points (n, dim) of the cells (n,): (n, space, dim)."""
        slopes = self.element.tabulate(at[:1] if self.affine else at, derivatives=1)
        slopes = np.broadcast_to(slopes, (len(at), *slopes.shape[1:]))
        return np.einsum("nkr,nkd->ndr", slopes, self.corners[cells])

    @cached_property
    def inverses(self) -> np.ndarray:
        """Of affine cells the inverse matrices (cells, dim, dim). NaN where a cell has no volume."""
        n = len(self.corners)
        J = self.jacobians(np.arange(n), np.zeros((n, self.element.dim)))
        flat = ~(np.abs(np.linalg.det(J)) > 0)
        J[flat] = np.eye(J.shape[-1])
        found = np.linalg.inv(J)
        found[flat] = np.nan
        return found

    def pull_back(self, cells: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The points of the reference cells that lie at x (n, space). NaN where there is none."""
        if self.affine:
            return np.einsum("nrd,nd->nr", self.inverses[cells], x - self.corners[cells, 0])
        if not len(x):
            return np.empty((0, self.element.dim))
        at = np.tile(self.element.points.mean(axis=0), (len(x), 1))  # type: ignore[union-attr]
        with np.errstate(all="ignore"):
            for _ in range(STEPS):
                J = self.jacobians(cells, at)
                singular = ~(np.abs(np.linalg.det(J)) > 0)
                J[singular] = np.eye(J.shape[-1])
                step = np.linalg.solve(J, (x - self.positions(cells, at))[..., None])[..., 0]
                step[singular] = np.nan
                at = at + step
                if not np.nanmax(np.abs(step), initial=0.0) > 1e-14:
                    break
            # Far outside of a cell there may be no point, and the steps have no end.
            at[~(np.abs(step) < 1e-9).all(axis=1)] = np.nan
        return at

    def holds(self, at: np.ndarray) -> np.ndarray:
        """Do points of the reference cell lie in it?"""
        A, b = self.element.cell.barycentric()  # Those of a simplex add up to 1: none is larger.
        return np.asarray((at @ A.T + b).min(axis=-1) >= -SLACK)


class PointLocator:
    """Finds the cell that a point lies in, of several the one of the lowest number.

    >>> import numpy as np
    >>> from mirabelle import meshdata as md
    >>> corners = np.array([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    >>> locator = PointLocator(CellGeometry(md.element("P", "triangle", 1), corners))
    >>> locator.find(np.array([[0.75, 0.75], [2.0, 0.0]]))[0]
    array([ 1, -1])
    """

    def __init__(self, geometry: CellGeometry) -> None:
        self.geometry = geometry
        lows, highs = geometry.corners.min(axis=1), geometry.corners.max(axis=1)
        size = (highs - lows).max(axis=1, keepdims=True, initial=0.0)
        lows, highs = lows - 1e-9 * size, highs + 1e-9 * size
        n, space = lows.shape
        self.low = lows.min(axis=0, initial=np.inf) if n else np.zeros(space)
        self.high = highs.max(axis=0, initial=-np.inf) if n else np.zeros(space)
        extent = np.maximum(self.high - self.low, 1e-300)
        # As many buckets as cells, and as near to cubes as the whole allows.
        side = (extent.prod() / max(n, 1)) ** (1 / space)
        self.shape = np.clip(np.ceil(extent / side), 1, 4096).astype(np.int64)
        self.width = extent / self.shape
        first: np.ndarray = self._bucket(lows)
        last: np.ndarray = self._bucket(highs)
        spans = last - first + 1
        pairs = spans.prod(axis=1)
        owner = np.repeat(np.arange(n), pairs)
        within = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        at = np.empty((len(owner), space), dtype=np.int64)
        for axis in reversed(range(space)):
            at[:, axis] = within % spans[owner, axis]
            within = within // spans[owner, axis]
        buckets = np.asarray(np.ravel_multi_index(tuple((first[owner] + at).T), tuple(self.shape)))
        order = np.argsort(buckets, kind="stable")  # within a bucket, cells ascend
        self.cells = owner[order]
        self.starts = np.searchsorted(buckets[order], np.arange(int(self.shape.prod()) + 1))

    def _bucket(self, x: np.ndarray) -> np.ndarray:
        return np.clip(((x - self.low) / self.width).astype(np.int64), 0, self.shape - 1)

    def find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cells (n,) of points (n, space), -1 outside, and the points of their reference cells (n, dim)."""
        cells = np.full(len(x), -1)
        at = np.full((len(x), self.geometry.element.dim), np.nan)
        left = np.flatnonzero(((x >= self.low) & (x <= self.high)).all(axis=1))
        bucket = np.ravel_multi_index(tuple(self._bucket(x[left]).T), tuple(self.shape))
        candidate, end = self.starts[bucket], self.starts[bucket + 1]
        while len(left):
            more = candidate < end
            left, candidate, end = left[more], candidate[more], end[more]
            tried = self.cells[candidate]
            found = self.geometry.pull_back(tried, x[left])
            inside = self.geometry.holds(found)
            cells[left[inside]], at[left[inside]] = tried[inside], found[inside]
            left, candidate, end = left[~inside], candidate[~inside] + 1, end[~inside]
        return cells, at


def transformed(element: Element, geometry: CellGeometry, cells: Any, at: np.ndarray) -> np.ndarray:
    """The values of an element's functions at points of cells, (n, K) or (n, K, space), without their signs."""
    values = element.tabulate(at)
    if element.mapping == "identity":
        return values
    J = geometry.jacobians(cells, at)
    if element.mapping == "contravariant":
        return np.einsum("nij,nkj->nki", J / np.linalg.det(J)[:, None, None], values)
    return np.einsum("nji,nkj->nki", np.linalg.inv(J), values)
