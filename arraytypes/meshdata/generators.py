"""Meshes of intervals, squares and cubes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.meshes import Mesh


def interval(n: int, lower: float = 0.0, upper: float = 1.0) -> Mesh:
    """The interval from `lower` to `upper` in n cells.

    Parameters
    ----------
    n : int
        How many cells.
    lower : float, default 0.0
        Where it begins.
    upper : float, default 1.0
        Where it ends.

    Returns
    -------
    mb.meshdata.Mesh
        A mesh in 1 dimension, its vertices numbered from `lower` to `upper`.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.interval(3)
    Mesh(3 intervals, 4 vertices in 1 dimension)
    """
    _counts(n)
    first = np.arange(n)
    return _known(np.linspace(lower, upper, n + 1)[:, None], "interval", np.stack([first, first + 1], axis=1))


def unit_square(n: int, m: int | None = None, shape: str = "triangle") -> Mesh:
    """The unit square in n by m (or n) squares, as quadrilaterals or each cut into two triangles.

    Parameters
    ----------
    n : int
        How many squares along the first axis.
    m : int or None
        Along the second; None is as many.
    shape : {"triangle", "quadrilateral"}, default "triangle"
        What squares are cut into.

    Returns
    -------
    mb.meshdata.Mesh
        A mesh in 2 dimensions, of n m quadrilaterals or twice as many triangles.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.unit_square(2, 1)
    Mesh(4 triangles, 9 edges, 6 vertices in 2 dimensions)
    >>> md.unit_square(2, shape="quadrilateral")
    Mesh(4 quadrilaterals, 12 edges, 9 vertices in 2 dimensions)
    """
    return _box((n, n if m is None else m), shape, SQUARES)


def unit_cube(n: int, m: int | None = None, k: int | None = None, shape: str = "tetrahedron") -> Mesh:
    """The unit cube in n by m by k cubes, as hexahedra or each cut into 6 tetrahedra, 2 prisms or 6 pyramids.

    Parameters
    ----------
    n : int
        How many cubes along the first axis.
    m : int or None
        Along the second; None is as many.
    k : int or None
        Along the third; None is as many.
    shape : {"tetrahedron", "hexahedron", "prism", "pyramid"}, default "tetrahedron"
        What cubes are cut into.

    Returns
    -------
    mb.meshdata.Mesh
        A mesh in 3 dimensions, of n m k cubes as often as each is cut; pyramids have a vertex more in each
        cube.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.unit_cube(1)
    Mesh(6 tetrahedra, 18 faces, 19 edges, 8 vertices in 3 dimensions)
    >>> md.unit_cube(1, shape="prism")
    Mesh(2 prisms, 4 triangle faces, 5 quadrilateral faces, 14 edges, 8 vertices in 3 dimensions)
    """
    m = n if m is None else m
    return _box((n, m, m if k is None else k), shape, CUBES)


def _simplices() -> list[list[int]]:
    """Six tetrahedra of a cube: from the lowest to the highest corner along axes in each possible order (H. W.
    Kuhn, doi:10.1147/rd.45.0518), so that neighbouring cubes cut their common square alike."""
    out = []
    for axes in permutations((1, 2, 4)):
        a, b, c = (0, axes[0], axes[0] + axes[1])
        even = axes in ((1, 2, 4), (2, 4, 1), (4, 1, 2))
        out.append([a, b, c, 7] if even else [a, b, 7, c])
    return out


# Corners of a square or cube: 1, 2 and 4 are one step in x, y and z; 8 is the middle.
SQUARES = {"triangle": [[0, 1, 2], [1, 3, 2]], "quadrilateral": [[0, 1, 3, 2]]}
CUBES = {
    "tetrahedron": _simplices(),
    "hexahedron": [[0, 1, 3, 2, 4, 5, 7, 6]],
    "prism": [[0, 1, 2, 4, 5, 6], [1, 3, 2, 5, 7, 6]],
    "pyramid": [
        [0, 1, 3, 2, 8],
        [4, 6, 7, 5, 8],
        [0, 4, 5, 1, 8],
        [2, 3, 7, 6, 8],
        [0, 2, 6, 4, 8],
        [1, 5, 7, 3, 8],
    ],
}


def _box(counts: tuple[int, ...], shape: str, patterns: dict[str, list[list[int]]]) -> Mesh:
    """A box of squares or cubes, the first coordinate running fastest."""
    _counts(*counts)
    if shape not in patterns:
        raise ValueError(f"Cells of {shape!r} are none of those that fill it here: {list(patterns)}.")
    dims = len(counts)
    steps = [np.linspace(0.0, 1.0, n + 1) for n in counts]
    grid = np.meshgrid(*reversed(steps), indexing="ij")
    x = np.stack([g.ravel() for g in reversed(grid)], axis=1)
    total = int(np.prod([n + 1 for n in counts])) + int(np.prod(counts))
    kind: Any = index_type(total)
    strides = np.cumprod([1, *(n + 1 for n in counts[:-1])])
    corner = np.zeros([1] * dims, dtype=kind)
    for axis, n in enumerate(counts):
        index = (np.arange(n) * strides[axis]).astype(kind)
        corner = corner + index.reshape([-1 if a == dims - 1 - axis else 1 for a in range(dims)])
    corner = np.asarray(corner.ravel())
    pattern = np.array(patterns[shape])
    offsets: Any = sum(((pattern >> a) & 1) * int(strides[a]) for a in range(dims))
    cells = corner[:, None, None] + np.asarray(offsets, dtype=kind)
    if (pattern == 8).any():
        middles = len(x) + np.arange(corner.size, dtype=kind)
        cells[:, pattern == 8] = middles[:, None]
        half: Any = 0.5 / np.asarray(counts, dtype=float)
        x = np.concatenate([x, x[np.asarray(corner, np.intp)] + half])
    return _known(x, shape, cells.reshape(-1, pattern.shape[1]))


def _known(x: Table, shape: str, cells: Table) -> Mesh:
    return Mesh(x, {shape: cells}, inverted="keep")


def _counts(*counts: Any) -> None:
    for n in counts:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(
                f"A mesh is divided into one or more cells along each side, and not into {n!r}. Give a whole "
                "number, or one for each side: `md.unit_square(8)`, `md.unit_square((8, 4))`."
            )
