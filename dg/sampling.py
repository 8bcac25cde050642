"""Values at any points: which cell a point is in, and where in that cell."""

from __future__ import annotations

import numpy as np

import mirabelle as mb
from mirabelle.dg.spelled import Array, Geometry, Semidiscretization

# How far outside of a reference cell a point may be and still belong to it, and when Newton's method ends.
EDGE, CLOSE, STEPS = 1e-8, 1e-12, 30


def sampled(semi: Semidiscretization, u: Array, points: np.ndarray) -> np.ndarray:
    """The fields of a state at points (d, n), as NumPy's (m, n); NaN where no cell is.

    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(3))
    >>> u = semi.state(lambda x, t: (x[0] ** 2,))
    >>> semi.sample(u, [[0.3, 0.5, 7.0]]).round(12).tolist()
    [[0.09, 0.25, nan]]
    """
    if points.ndim != 2 or len(points) != semi.dims:
        raise ValueError(
            f"Points of a {semi.dims}-dimensional domain have the shape ({semi.dims}, n), one row for each "
            f"coordinate, and not {points.shape}: bring them to it by points.T, or by np.stack([x, y])."
        )
    cells, at = located(semi.geometry, points)
    values = mb.to_numpy(mb.materialize(u))
    out = np.full((len(values), points.shape[1]), np.nan)
    inside = np.flatnonzero(cells >= 0)
    out[:, inside] = np.einsum(
        "np,mpn->mn", semi.element.interpolation(at[:, inside].T), values[:, :, cells[inside]]
    )
    return out


def located(g: Geometry, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each point (d, n) a cell (-1: none) and the coordinates in its reference cell (d, n)."""
    d, n = points.shape
    low, high = g.positions.min(1), g.positions.max(1)  # curved sides may bulge beyond the nodes
    slack = 0.1 * (high - low).max(0)
    pairs = _candidates(low - slack, high + slack, points)
    which, cells = pairs
    found, at = np.full(n, -1), np.zeros((d, n))
    if len(which):
        r, inside = _inverted(g, cells, points[:, which])
        # The first cell that has a point takes it: written backwards, so that the first is written last.
        hits = np.flatnonzero(inside)[::-1]
        found[which[hits]], at[:, which[hits]] = cells[hits], r[:, hits]
    return found, at


def _candidates(low: np.ndarray, high: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a point and a cell whose box it is in, by way of a grid of bins."""
    d, K = low.shape
    n = points.shape[1]
    origin, extent = low.min(1), high.max(1) - low.min(1)
    bins = max(1, int(K ** (1 / d)))

    def bin_of(x: np.ndarray) -> np.ndarray:
        return np.clip(((x - origin[:, None]) / extent[:, None] * bins).astype(int), 0, bins - 1)

    first, last = bin_of(low), bin_of(high)
    counts = last - first + 1
    # Every bin that each cell's box touches, as one list sorted by bins.
    total = counts.prod(0)
    cell = np.repeat(np.arange(K), total)
    step = np.arange(total.sum()) - np.repeat(np.cumsum(total) - total, total)
    number = np.zeros(len(cell), int)
    for a in range(d):
        number = number * bins + first[a, cell] + step % counts[a, cell]
        step //= counts[a, cell]
    order = np.argsort(number, kind="stable")
    number, cell = number[order], cell[order]
    mine = np.zeros(n, int)
    for row in bin_of(points):
        mine = mine * bins + row
    begin, end = np.searchsorted(number, mine), np.searchsorted(number, mine, "right")
    which = np.repeat(np.arange(n), end - begin)
    entry = np.arange(len(which)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
    cells = cell[begin[which] + entry]
    near = ((points[:, which] >= low[:, cells]) & (points[:, which] <= high[:, cells])).all(0)
    return which[near], cells[near]


def _inverted(g: Geometry, cells: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reference coordinates of points in cells by Newton's method, and whether they are inside."""
    e, d = g.metric, len(x)
    r = np.repeat(e.vertices.mean(0)[:, None], x.shape[1], 1)
    X = g.positions[:, :, cells]
    size = np.ptp(X, axis=1).max(0)
    for _ in range(STEPS):
        error = x - np.einsum("np,dpn->dn", e.interpolation(r.T), X)
        if (np.abs(error) <= CLOSE * size).all():
            break
        J = np.einsum("rnp,dpn->ndr", e.interpolation_gradient(r.T), X)
        with np.errstate(all="ignore"):
            step = np.linalg.solve(J + 1e-300 * np.eye(d), error.T[..., None])[..., 0].T
        # Points far outside need no exact place.
        r = np.clip(r + np.clip(step, -1, 1), -3, 3)
    inside = (np.abs(error) <= 1e-6 * size).all(0) & (r >= -1 - EDGE).all(0)
    inside &= (r <= 1 + EDGE).all(0) if e.is_tensor else (r.sum(0) <= 2 - d + EDGE)
    return r, inside
