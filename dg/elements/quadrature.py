"""Quadrature: Gauss and Gauss-Lobatto rules on the interval, products of them on boxes and simplices.

A rule of a simplex is a product in collapsed coordinates, of Gauss-Jacobi rules that take the Jacobian of the
collapse as their weight: all weights are positive, and the rule exists for every degree (G. Karniadakis and
S. Sherwin, Spectral/hp Element Methods for CFD, 2005, DOI 10.1093/acprof:oso/9780198528692.001.0001).
"""

from __future__ import annotations

import numpy as np

from mirabelle.dg.elements.polynomials import jacobi, recurrence


def zeros(n: int, alpha: int = 0, beta: int = 0) -> np.ndarray:
    """The zeros of the Jacobi polynomial of degree n, ascending.

    >>> zeros(2)
    array([-0.57735027,  0.57735027])
    """
    diagonal, beside = recurrence(n, alpha, beta)
    x = np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside, -1)) if n else np.empty(0)
    return (x - x[::-1]) / 2 if alpha == beta else x


def gauss(n: int, alpha: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the Gauss rule for ((1-x)/2)^alpha on [-1, 1]: exact to the degree 2n-1.

    >>> x, w = gauss(3)
    >>> float(w @ x**4).__round__(14)
    0.4
    """
    x = zeros(n, alpha)
    return x, 1 / (jacobi(x[None], np.ones((1, n)), alpha, n - 1)[0] ** 2).sum(-1)


def gauss_lobatto(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, with both ends, and weights of the Gauss-Lobatto rule on [-1, 1]: exact to the degree 2n-3.

    >>> x, w = gauss_lobatto(4)
    >>> print(x.round(6), w.round(6))
    [-1.       -0.447214  0.447214  1.      ] [0.166667 0.833333 0.833333 0.166667]
    """
    x = np.concatenate([[-1.0], zeros(n - 2, 1, 1), [1.0]])
    last = jacobi(x[None], np.ones((1, n)), 0, n - 1)[0, :, -1]
    return x, (2 * n - 1) / (n * (n - 1) * last**2)


def combine(rules: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The product of rules on intervals: points (n, d), the first coordinate slowest, and weights (n,).

    >>> points, weights = combine([gauss(1), gauss(2)])
    >>> print(points.round(3).tolist(), weights)
    [[0.0, -0.577], [0.0, 0.577]] [2. 2.]
    """
    points, weights = np.empty((1, 0)), np.ones(1)
    for x, w in rules:
        points = np.column_stack([np.repeat(points, len(x), 0), np.tile(x, len(points))])
        weights = np.outer(weights, w).ravel()
    return points, weights


def rule(dims: int, is_tensor: bool, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """A rule that is exact for polynomials of a total degree (on boxes: of that degree in each direction).

    >>> points, weights = rule(2, False, 3)
    >>> points.shape, float(weights.sum()).__round__(14)
    ((4, 2), 2.0)
    """
    if degree < 0:
        raise ValueError(f"Quadratures have degrees from 0 on, and not {degree}: take quadrature(2 * order).")
    points, weights = combine([gauss(degree // 2 + 1, 0 if is_tensor else k) for k in range(dims)])
    if not is_tensor:
        remaining = np.ones(len(points))
        for k in reversed(range(dims)):
            a = points[:, k].copy()
            points[:, k] = remaining * (1 + a) - 1
            remaining *= (1 - a) / 2
    return points, weights
