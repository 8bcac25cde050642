"""Lattices: nodes of elements by whole numbers, the linear cells between them, and the order of VTK."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np


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


def vtk_simplex(corners: list[np.ndarray], n: int) -> Iterator[np.ndarray]:
    """The points of a triangle or tetrahedron of n steps as VTK counts: vertices, edges, faces, the inside.

    >>> a, b, c = np.array([[0, 0], [2, 0], [0, 2]])
    >>> [p.tolist() for p in vtk_simplex([a, b, c], 2)]
    [[0, 0], [2, 0], [0, 2], [1, 0], [1, 1], [0, 1]]
    """
    if n < 1:
        yield from corners[: n + 1 if n == 0 else 0]
        return
    yield from corners
    solid = len(corners) == 4
    for a, b in ("01", "12", "20", "03", "13", "23") if solid else ("01", "12", "20"):
        start, end = corners[int(a)], corners[int(b)]
        yield from (start + (end - start) * k // n for k in range(1, n))
    faces = [[corners[int(k)] for k in face] for face in ("013", "231", "032", "021")] if solid else []
    for part in [*faces, corners]:
        # What is left inside has its corners a step towards all the others.
        yield from vtk_simplex([a + (np.sum(part, 0) - len(part) * a) // n for a in part], n - len(part))


# Vertices, edges, faces and inside of boxes as VTK counts: on each axis its start (0), end (n) or inside (i).
VTK_BOX = {
    1: "0 n i",
    2: "00 n0 nn 0n i0 ni in 0i ii",
    3: "000 n00 nn0 0n0 00n n0n nnn 0nn i00 ni0 in0 0i0 i0n nin inn 0in 00i n0i nni 0ni "
    "0ii nii i0i ini ii0 iin iii",
}


def vtk_order(dims: int, order: int, is_tensor: bool) -> np.ndarray:
    """The numbers of nodes in the order in which VTK counts the points of a Lagrange cell.

    >>> vtk_order(2, 1, True)
    array([0, 2, 3, 1])
    """
    ranges = {"0": range(1), "n": range(order, order + 1), "i": range(1, order)}
    if is_tensor:
        parts = VTK_BOX[dims].split()
        points = [p[::-1] for part in parts for p in product(*(ranges[at] for at in reversed(part)))]
        return numbers(np.array(points), order, True)
    corners = list(order * lattice(dims, 1, False))
    return numbers(np.array(list(vtk_simplex(corners, order))), order, False)
