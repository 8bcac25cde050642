"""Lattices: nodes of elements by whole numbers, the linear cells between them, and the order of VTK."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from mirabelle import meshdata as md


def lattice(dims: int, order: int, is_tensor: bool) -> np.ndarray:
    """The points of a lattice in the order of nodes and modes: (Np, d) of whole numbers from 0 to the order.

    Boxes count the first coordinate slowest, simplices (where the sum is at most the order) fastest.

    >>> lattice(2, 1, True).tolist(), lattice(2, 1, False).tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 0], [1, 0], [0, 1]])
    """
    box = np.indices((order + 1,) * dims).reshape(dims, (order + 1) ** dims).T
    return box if is_tensor else box[box.sum(1) <= order][:, ::-1]


def numbers(points: np.ndarray, order: int, is_tensor: bool) -> np.ndarray:
    """Which nodes stand at points (..., d) of the lattice.

    >>> numbers(np.array([[0, 1], [1, 0]]), 1, False)
    array([2, 1])
    """
    dims = points.shape[-1]
    powers = (order + 1) ** np.arange(dims)
    found = np.zeros((order + 1) ** dims, int)
    of_nodes = lattice(dims, order, is_tensor) @ powers
    found[of_nodes] = np.arange(len(of_nodes))
    return found[points @ powers]


def subcells(dims: int, order: int, is_tensor: bool) -> np.ndarray:
    """The linear cells (n, nv) between neighbouring nodes, each with its vertices in the order of such a cell.

    >>> subcells(2, 2, False).tolist()
    [[0, 1, 3], [1, 4, 3], [1, 2, 4], [3, 4, 5]]
    """
    cubes = lattice(dims, order - 1, True)
    if is_tensor:
        return numbers(cubes[:, None] + lattice(dims, 1, True), order, True)
    # In the sums y of the last 1, 2, ... d coordinates, the simplex is the part 0 ≤ y_1 ≤ ... ≤ y_d ≤ order of
    # a grid of cubes, each cut in d! simplices by Kuhn's rule: a path along the axes in any succession.
    found = []
    for cube, axes in product(cubes[:, ::-1], permutations(range(dims))):
        path = cube + np.vstack([np.zeros(dims, int), np.eye(dims, dtype=int)[list(axes)].cumsum(0)])
        corners = np.diff(path, axis=1, prepend=0)[:, ::-1]
        if (corners >= 0).all() and (path[:, -1] <= order).all():
            inverted = np.linalg.det(corners[1:] - corners[0]) < 0
            found.append(corners[[0, 2, 1, *range(3, dims + 1)]] if inverted else corners)
    return numbers(np.array(found), order, False)


def vtk_order(cell: str, order: int) -> np.ndarray:
    """The numbers of nodes in the order in which VTK counts the points of a Lagrange cell.

    >>> vtk_order("quadrilateral", 1)
    array([0, 2, 3, 1])
    """
    points = md.vtk_nodes("interval" if cell == "line" else cell, order)
    return numbers(points, order, cell not in ("triangle", "tetrahedron"))
