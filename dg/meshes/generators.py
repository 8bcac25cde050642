"""Boxes of cells of every type, periodic, mapped, with parts cut out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np

from mirabelle.dg.elements import element
from mirabelle.dg.meshes.connectivity import DIMS
from mirabelle.dg.meshes.mesh import Coordinates, Mesh


def box(
    cells: int | Sequence[int] = (8, 8),
    lower: float | Sequence[float] | None = None,
    upper: float | Sequence[float] | None = None,
    cell: str | None = None,
    periodic: bool | Sequence[bool] = False,
    mapping: Callable[[Coordinates], Iterable[Any]] | None = None,
    order: int = 1,
    without: Callable[[Coordinates], np.ndarray] | None = None,
    names: Mapping[str, str] | None = None,
) -> Mesh:
    """A line, rectangle or box from `lower` (0) to `upper` (1), of so many `cells` along each axis.

    Of triangles there are two in each square, of tetrahedra six in each cube. The sides are the boundaries
    "x_neg", "x_pos", "y_neg", ..., except along `periodic` axes; `names` gives them other names, which may be
    equal. `mapping` takes the coordinates as a tuple and gives new ones, for cells of the given `order`.
    Squares or cubes whose centres (a tuple) are in `without` are left out; the boundary that makes is "step".

    Parameters
    ----------
    cells : int or sequence of int, default (8, 8)
        How many along each axis.
    lower : float, sequence or None
        The lower corner; None is 0.
    upper : float, sequence or None
        The upper corner; None is 1.
    cell : str or None
        "line", "quadrilateral", "triangle", "hexahedron" or "tetrahedron"; None is the box of so many axes.
    periodic : bool or sequence of bool, default False
        Along which axes.
    mapping : callable or None
        New coordinates of old ones, both as tuples.
    order : int, default 1
        Of the cells' geometry.
    without : callable or None
        Is a cell, by its centre, left out?
    names : mapping of str or None
        Other names of boundaries.

    Returns
    -------
    dg.Mesh
        A mesh in as many dimensions as there are axes.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.box(4)
    Mesh(4 lines of order 1 in 1 dimension; boundaries x_neg: 1, x_pos: 1)
    >>> dg.box((2, 2, 2), cell="tetrahedron", periodic=True)
    Mesh(48 tetrahedra of order 1 in 3 dimensions; periodic)
    >>> dg.box((15, 5), upper=(3.0, 1.0), without=lambda x: (x[0] > 0.6) & (x[1] < 0.2),
    ...        names={"x_neg": "inflow", "x_pos": "outflow", "y_neg": "wall", "y_pos": "wall", "step": "wall"})
    Mesh(63 quadrilaterals of order 1 in 2 dimensions; boundaries inflow: 5, outflow: 4, wall: 31)
    """
    counts = tuple(np.atleast_1d(cells).tolist())
    if np.ndim(cells) == 0 and cell is not None:
        counts *= DIMS.get(cell, 1)
    dims = len(counts)
    cell = cell or ("", "line", "quadrilateral", "hexahedron", "")[min(dims, 4)]
    whole = all(isinstance(n, int) and n > 0 for n in counts)
    if DIMS.get(cell) != dims or not whole:
        raise ValueError(
            f"A box of {list(counts)} cells cannot be made of cells {cell!r}. Give one whole number for "
            f'each axis: `dg.box((8, 8), cell="triangle")`; cells are {list(DIMS)[1:]}.'
        )
    low, high = (_along_axes(a, dims, default) for a, default in ((lower, 0.0), (upper, 1.0)))
    if not (low < high).all():
        raise ValueError(
            f"The lower corner of the box, {low.tolist()}, is not below its upper one, {high.tolist()}. Along "
            "each axis, give a smaller number first: `dg.box(8, lower=-1.0, upper=1.0)`."
        )
    open_axes = np.flatnonzero(~_along_axes(periodic, dims, False).astype(bool))

    # Points are numbered with the last axis fastest, as `np.ravel_multi_index` does.
    sizes = tuple(n + 1 for n in counts)
    index = np.stack(np.unravel_index(np.arange(prod(sizes)), sizes))
    cubes = np.stack(np.unravel_index(np.arange(prod(counts)), counts))  # the lowest point of each cube
    if without is not None:
        centres = low[:, None] + (cubes + 0.5) * ((high - low) / counts)[:, None]
        cubes = cubes[:, ~np.asarray(without(tuple(centres)), dtype=bool)]
        if not cubes.size:
            raise ValueError(
                "No cells are left: `without` is true at all centres of cells. It says which to leave out: "
                "`without=lambda x: x[0] > 0.5`."
            )
    strides = np.array([prod(sizes[a + 1 :]) for a in range(dims)])
    corners = _corners(cell)  # (cells of a cube, vertices of a cell, d)
    first = strides @ cubes
    vertices = np.stack([first + o for o in (corners @ strides).ravel()]).reshape(*corners.shape[:2], -1)
    # All cubes' first cells, then all their second ones: neighbours along an axis are equally far in memory.
    vertices = vertices.swapaxes(0, 1).reshape(corners.shape[1], -1)

    points = (low[a] + (high[a] - low[a]) * np.arange(n)[index[a]] / counts[a] for a, n in enumerate(sizes))
    coordinates = np.stack([x[vertices] for x in points])
    first_side, last_side = index == 0, index == np.array(counts)[:, None]
    moved = np.arange(prod(sizes)) - (np.array(counts) * strides)[:, None]
    links = [np.where(last_side[a], moved[a], -1) for a in range(dims) if a not in open_axes]
    sides = {f"{'xyz'[a]}_{s}": on[a] for a in open_axes for s, on in (("neg", first_side), ("pos", last_side))}
    names = dict(names or {})
    if unknown := set(names) - {*sides, "step"}:
        raise ValueError(
            f"The box has no sides {sorted(unknown)} to give names to; it has {[*sides, 'step']}. Name these: "
            f'`names={{"{next(iter(sides), "step")}": "wall"}}`.'
        )

    def name(ids: np.ndarray) -> np.ndarray:
        out = np.full(ids.shape[1], names.get("step", "step"), dtype=object)
        for side, on in sides.items():
            out[on[ids].all(0)] = names.get(side, side)
        return out

    mesh = Mesh.from_cells(cell, vertices, coordinates, name, links)
    return mesh if mapping is None and order == 1 else mesh.map(mapping or (lambda x: x), order)


def _along_axes(value: Any, dims: int, default: Any) -> np.ndarray:
    """One value an axis, from one for all or from a sequence."""
    value = default if value is None else value
    if np.shape(value) not in ((), (1,), (dims,)):
        raise ValueError(
            f"{value!r} does not give one value for each axis. Give one for all axes, or a tuple of as many as "
            f"there are, such as `{(0.0,) * dims}`."
        )
    return np.broadcast_to(value, (dims,))


def _corners(cell: str) -> np.ndarray:
    """The cells that fill a unit cube: the corners of each, (cells of a cube, vertices of a cell, d).

    Simplices go from the lowest to the highest corner along axes in each possible order (H. W. Kuhn, IBM J.
    Res. Dev. 4, 1960, doi:10.1147/rd.45.0518), so that neighbouring cubes cut their common square alike.
    """
    reference, dims = element(cell, 1), DIMS[cell]
    if reference.is_tensor:
        return np.array(list(product((0, 1), repeat=dims)), dtype=np.int64)[None]
    steps = np.tri(dims + 1, dims, -1, dtype=np.int64)  # Corner i has made the first i steps.
    out = np.array([steps[:, np.argsort(axes)] for axes in permutations(range(dims))])
    turn = np.linalg.det(out[:, 1:] - out[:, :1]) * np.linalg.det(
        reference.vertices[1:] - reference.vertices[0]
    )
    out[turn < 0, -2:] = out[turn < 0, :-3:-1]
    return out
