"""Cells cut into small segments, triangles and tetrahedra, and those cut by planes: how any mesh is drawn.

A plane cuts a triangle in a segment, a tetrahedron in one or two triangles, and where their vertices lie in the
reference cells is known. So cuts need no search for points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.elements import element
from mirabelle.dg.time.solution import Solution

AXES = "xyz"
CHUNK = 2**14  # points at once: each has its own row of a matrix


@dataclass(frozen=True)
class Pieces:
    """Points (d, N), what is known there, which is linear (r, N), and the simplices (n, vertices) between them.

    >>> Pieces(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[5.0, 7.0]]), np.array([[0, 1]])).cut(1, 0.5)
    Pieces(points=array([[0.25]]), known=array([[5.5]]), corners=array([[0]]))
    """

    points: np.ndarray
    known: np.ndarray
    corners: np.ndarray

    def cut(self, axis: int, at: float) -> Pieces:
        """What a plane across one axis leaves, in the other coordinates.

        Where j of a simplex' vertices lie below, the cut is a product of two simplices, of j and of the other
        vertices, and falls into simplices: one for each ascending path of a grid.
        """
        rows = np.vstack([self.points, self.known])
        height = rows[axis] - at
        order = np.argsort(height[self.corners], axis=1, kind="stable")
        ascending = np.take_along_axis(self.corners, order, axis=1)
        below = (height[self.corners] < 0).sum(1)
        n = self.corners.shape[1]
        found = [np.empty((len(rows), 0, n - 1))]
        for j in range(1, n):
            for up in combinations(range(n - 2), j - 1):
                # Steps of the path: to the next vertex below, or to the next one above.
                low = np.cumsum([0, *(step in up for step in range(n - 2))])
                a, b = ascending[below == j][:, low], ascending[below == j][:, j + np.arange(n - 1) - low]
                share = height[a] / (height[a] - height[b])
                found.append(rows[:, a] * (1 - share) + rows[:, b] * share)
        made, d = np.concatenate(found, axis=1).reshape(len(rows), -1), len(self.points)
        return Pieces(np.delete(made[:d], axis, axis=0), made[d:], np.arange(made.shape[1]).reshape(-1, n - 1))


def pieces(solution: Solution, field: Any, planes: dict[str, float], parts: int, edges: bool = False) -> Pieces:
    """A field on small simplices, `parts` along each edge, of the cells (or of their faces), cut by planes.

    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box((2, 2), periodic=True), dg.Advection((1.0, 0.0)), dg.Solver(1))
    >>> solution = dg.Solution(semi, semi.state(lambda x, t: (x[0],)))
    >>> pieces(solution, "u", {"y": 0.3}, 1).corners.shape
    (4, 2)
    """
    mesh, e = solution.semi.mesh, solution.semi.element
    chosen, made_by = np.arange(len(mesh)), []
    for name, at in planes.items():
        x = mesh.coordinates[AXES.index(name)] if name in AXES[: mesh.dims] else mesh.coordinates[0]
        low, high = float(x.min()), float(x.max())
        if name not in AXES[: mesh.dims] or not low <= at <= high:
            lows, highs = mesh.coordinates.min((1, 2)), mesh.coordinates.max((1, 2))
            spans = ", ".join(f"{a} from {b:g} to {c:g}" for a, b, c in zip(AXES, lows, highs, strict=False))
            middle = (lows[0] + highs[0]) / 2
            raise ValueError(
                f"There is nothing at {name} = {at}: the mesh has {spans}. Cut it in between: "
                f'`at={{"x": {middle:g}}}`.'
            )
        # Not just on cells' faces, where round-off would say which of two cells is cut, or both.
        at = min(at + 1e-9 * (high - low), high - 1e-9 * (high - low))
        made_by.append((AXES.index(name), at))
        lows, highs = x[:, chosen].min(0), x[:, chosen].max(0)
        slack = (highs - lows) * (mesh.order > 1)  # curved cells reach beyond their nodes
        chosen = chosen[(lows - slack <= at) & (at <= highs + slack)]
    reference, corners = _small(e.face_cell if edges else e.cell, parts)
    if edges:
        corners = np.concatenate([corners + face * len(reference) for face in range(len(e.faces))])
        reference = np.concatenate([e.face_map(face, reference) for face in range(len(e.faces))])
    x = element(mesh.cell, mesh.order).interpolation(reference) @ mesh.coordinates[:, :, chosen]
    x = x.transpose(0, 2, 1).reshape(mesh.dims, -1)
    # Cuts are of the reference cells, too, so that the polynomials can be taken just there.
    known = np.vstack([x, np.tile(reference.T, len(chosen)), np.repeat(chosen, len(reference))])
    corners = (corners + np.arange(len(chosen))[:, None, None] * len(reference)).reshape(-1, corners.shape[1])
    made = Pieces(x, known, corners)
    for axis, at in sorted(made_by, reverse=True):
        made = made.cut(axis, at)
    return made if edges else Pieces(made.points, _values(solution, field, made.known), made.corners)


def _small(cell: str, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a reference cell and the small simplices between them."""
    if cell == "point":
        return np.zeros((1, 0)), np.zeros((1, 1), dtype=int)
    fine = element(cell, order)
    cells = fine.subcells()
    if fine.is_tensor:  # a box is d! simplices: one for each order in which the axes are walked along
        steps = [2**k for k in range(fine.dims)]  # from vertex to vertex, in lexicographic order
        cells = np.concatenate([cells[:, np.cumsum((0, *walk))] for walk in permutations(steps)])
    return fine.equispaced(), cells


def _values(solution: Solution, field: Any, known: np.ndarray) -> np.ndarray:
    """The field where positions, points of the reference cells and the cells are known, (1, n)."""
    equations, nodal = solution.semi.equations, mb.to_numpy(mb.materialize(solution.u))
    x, points, cells = np.split(known, [equations.dims, 2 * equations.dims])
    u = np.empty((len(nodal), x.shape[1]))
    for first in range(0, x.shape[1], CHUNK):
        part = slice(first, first + CHUNK)
        V, of = solution.semi.element.interpolation(points[:, part].T), np.rint(cells[0, part]).astype(int)
        u[:, part] = np.einsum("np,mpn->mn", V, nodal[:, :, of])
    states, named = fields(equations, u, x)
    if not callable(field) and field not in named:
        raise ValueError(
            f"{type(equations).__name__} has no field {field!r}. Its fields are {', '.join(named)}; anything "
            "else is a function of them, such as `lambda u: u[0] ** 2`."
        )
    found: Any = field(states) if callable(field) else named[field]
    return np.broadcast_to(mb.to_numpy(mb.materialize(found)), (1, x.shape[1]))


def fields(equations: Any, u: Any, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What pointwise functions take, on the host: fields u and those given at x; and all fields by their names.

    >>> from mirabelle import dg
    >>> list(fields(dg.CompressibleEuler(1), np.ones((3, 1)), np.ones((1, 1)))[1])
    ['rho', 'rho_v1', 'rho_e', 'v1', 'p']
    """
    states = (*map(mb.HostArray, u), *equations.auxiliary(tuple(map(mb.HostArray, x))))
    found, primitive = dict(zip(equations.names, states, strict=False)), equations.primitive(states)
    return states, found | dict(zip(equations.primitive_names, primitive, strict=True)) | found
