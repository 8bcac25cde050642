"""Orthonormal polynomials on intervals, boxes and simplices, with their gradients.

The modal basis of a simplex is that of Proriol, Koornwinder and Dubiner (M. Dubiner, Spectral methods on
triangles and other domains, J. Sci. Comput. 6, 1991, DOI 10.1007/BF01060030). Its factors are Jacobi
polynomials of a ratio x/t, times a power of t that makes them polynomials of x and t: they are computed as
such, by a recurrence that never divides, so nothing is lost at vertices where t vanishes.
"""

from __future__ import annotations

import numpy as np

from mirabelle.dg.elements.lattice import lattice


def recurrence(n: int, alpha: int, beta: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The Jacobi matrix of n rows for the weight (1-x)^alpha (1+x)^beta: its diagonal and the one beside it.

    >>> recurrence(3, 0)
    (array([0., 0., 0.]), array([0.57735027, 0.51639778]))
    """
    k = np.arange(n)
    s = 2.0 * k + alpha + beta
    diagonal = np.zeros(n) if alpha == beta else (beta**2 - alpha**2) / (s * (s + 2))
    k, s = k[1:], s[1:]
    beside = 2 / s * np.sqrt(k * (k + alpha + beta) * (k + alpha) * (k + beta) / ((s - 1) * (s + 1)))
    return diagonal, beside


def product(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The product of two functions, each given by its values f[0] and its partial derivatives f[1:].

    >>> print(product(np.array([3.0, 1.0]), np.array([5.0, 0.0])))
    [15.  5.]
    """
    made = f * g[0]
    made[1:] += f[0] * g[1:]
    return made


def jacobi(x: np.ndarray, t: np.ndarray, alpha: int, order: int) -> np.ndarray:
    """t^k P_k(x/t) for k = 0 ... order, along a new last axis: x and t are functions as in `product`.

    P_k are the Jacobi polynomials that are orthonormal on [-1, 1] for the weight ((1-x)/2)^alpha.

    >>> x, one = np.array([[-1.0, 0.0, 1.0]]), np.ones((1, 3))
    >>> print(jacobi(x, one, 0, 1)[0].T.round(6))
    [[ 0.707107  0.707107  0.707107]
     [-1.224745  0.        1.224745]]
    """
    diagonal, beside = recurrence(order + 1, alpha)
    made = np.zeros((*x.shape, order + 1))
    made[0, ..., 0] = np.sqrt((alpha + 1) / 2)
    for k in range(order):
        made[..., k + 1] = product(made[..., k], x - diagonal[k] * t)
        if k:
            made[..., k + 1] -= product(made[..., k - 1], beside[k - 1] * product(t, t))
        made[..., k + 1] /= beside[k]
    return made


def modal_basis(points: np.ndarray, order: int, is_tensor: bool, gradient: bool = False) -> np.ndarray:
    """The orthonormal polynomials at points (n, d): values (1, n, Np), with partial derivatives (1+d, n, Np).

    >>> modal_basis(np.zeros((1, 2)), 1, is_tensor=True, gradient=True).round(3)[:, 0]
    array([[0.5  , 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.866, 0.   ],
           [0.   , 0.866, 0.   , 0.   ]])
    """
    n, d = points.shape
    modes = lattice(d, order, is_tensor)
    one = np.repeat(np.eye(1 + d, 1), n, 1)
    coordinates = [np.vstack([c, np.repeat(np.eye(d)[:, [k]], n, 1)]) for k, c in enumerate(points.T)]
    if not gradient:
        one, coordinates = one[:1], [c[:1] for c in coordinates]
    made = np.repeat(one[..., None], len(modes), 2)
    # Barycentric coordinates: of the vertices 1 ... d; of the vertex 0 with those that have had their turn.
    shares = [(one + c) / 2 for c in coordinates]
    below = one - sum(shares)
    for k, x in enumerate(coordinates):
        t, alpha = one, np.zeros(len(modes), int)
        if not is_tensor:
            x, t, alpha = shares[k] - below, shares[k] + below, 2 * modes[:, :k].sum(1) + k
            below = t
        factor = np.empty_like(made)
        for a in np.unique(alpha):
            of = alpha == a
            factor[..., of] = jacobi(x, t, int(a), int(modes[of, k].max()))[..., modes[of, k]]
        made = product(made, factor)
    return made
