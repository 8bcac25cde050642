"""Quadrature on the reference cells: basix's rules where it is installed, products of Gauss rules elsewhere."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.referencecells import reference_cell


def quadrature(shape: str, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, dim) and weights (n,) of a rule on a reference cell, exact for polynomials of a degree.

    On simplices and prisms that is the total degree, on boxes the degree in each coordinate. The weights add up
    to the volume of the reference cell. Where fenics-basix is installed (`pip install fenics-basix`) the rules
    are its own, and have fewer points; elsewhere they are products of Gauss-Jacobi rules in collapsed
    coordinates.

    Parameters
    ----------
    shape : str
        The cell: "interval", "triangle", "quadrilateral", "tetrahedron", "hexahedron", "prism" or "pyramid".
    degree : int
        Of polynomials that are integrated exactly.

    Returns
    -------
    tuple of numpy.ndarray
        `(points, weights)`, of float64, in the coordinates of the reference cell.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> points, weights = md.quadrature("triangle", 2)
    >>> round(float(weights @ (points[:, 0] * points[:, 1])), 14) == round(1 / 24, 14)
    True
    """
    if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)) or not 0 <= degree <= 60:
        raise ValueError(
            f"A quadrature has a degree from 0 to 60, and {degree!r} is none: for products of two functions of "
            'degree k take `md.quadrature(shape, 2 * k)`, as in `md.quadrature("triangle", 4)`.'
        )
    points, weights = _rule(shape, int(degree))
    return points.copy(), weights.copy()


@cache
def _rule(shape: str, degree: int) -> tuple[np.ndarray, np.ndarray]:
    cell = reference_cell(shape)
    basix = _basix()
    if basix is None or not cell.dim:
        return gauss_product(shape, degree)
    points, weights = basix.make_quadrature(basix.CellType[shape], degree)
    return points.reshape(len(weights), cell.dim), weights


def _basix() -> Any:
    """basix, whose rules of simplices have fewer points than products; None where it is missing."""
    try:
        return import_module("basix")
    except ImportError:
        return None


def gauss_product(shape: str, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """A rule made of Gauss rules on intervals: one for each coordinate, collapsed on simplices.

    >>> len(gauss_product("triangle", 3)[1])
    4
    """
    points, weights = np.zeros((1, 0)), np.ones(1)
    for axes in reference_cell(shape).factors:  # each a simplex
        part, w = np.zeros((1, 0)), np.ones(1)
        for collapsed in range(len(axes)):
            # The share of x that the coordinates before it leave is 1 - their sum: (1 - x)^collapsed is the
            # Jacobian of what is put before them.
            x, weight = gauss_jacobi(degree // 2 + 1, collapsed)
            left = np.column_stack([np.repeat(x, len(part)), *(np.outer(1 - x, p).ravel() for p in part.T)])
            part, w = left, np.outer(weight, w).ravel()
        n = len(part)
        points = np.column_stack([np.repeat(points, n, axis=0), np.tile(part, (len(points), 1))])
        weights = np.outer(weights, w).ravel()
    return points, weights


def gauss_jacobi(n: int, power: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss rule of n points on [0, 1] for the weight (1 - x)^power, exact to the degree 2 n - 1.

    Its points are eigenvalues of the recurrence of Jacobi polynomials (G. Golub and J. Welsch, 1969).

    >>> x, w = gauss_jacobi(2, 1)
    >>> round(float(w @ x**3), 14)  # the integral of (1 - x) x^3
    0.05
    """
    k = np.arange(n, dtype=float)
    total = 2 * k + power
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.where(total == 0, 0.0, -(power**2) / (total * (total + 2)))
    j = k[1:]
    beside = 4 * j**2 * (j + power) ** 2 / ((2 * j + power) ** 2 * ((2 * j + power) ** 2 - 1))
    matrix = np.diag(middle) + np.diag(np.sqrt(beside), 1) + np.diag(np.sqrt(beside), -1)
    x, vectors = np.linalg.eigh(matrix)
    return (x + 1) / 2, vectors[0] ** 2 / (power + 1)
