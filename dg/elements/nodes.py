"""Where the nodes of triangles and tetrahedra lie: by warp & blend.

Equispaced points are moved along each edge as far as Gauss-Lobatto points are from equispaced ones, and that is
blended into the inside (T. Warburton, An explicit construction of interpolation nodes on the simplex, J. Eng.
Math. 56, 2006, DOI 10.1007/s10665-006-9086-6). Faces of a tetrahedron carry the nodes of the triangle: on them
the blending parameter is the triangle's, towards the inside it is the tetrahedron's.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from mirabelle.dg.elements.lattice import lattice
from mirabelle.dg.elements.polynomials import modal_basis
from mirabelle.dg.elements.quadrature import gauss_lobatto

# How strongly warps are blended inwards, by order, on triangles and tetrahedra (Warburton's tables).
BLEND = {
    2: (0.0, 0.0, 1.4152, 0.1001, 0.2751, 0.9800, 1.0999, 1.2832, 1.3648, 1.4773),
    3: (0.0, 0.0, 0.0, 0.1002, 1.1332, 1.5608, 1.3413, 1.2577, 1.1603, 1.10153),
}


def warp_and_blend(dims: int, order: int) -> np.ndarray:
    """The nodes of a triangle or tetrahedron, (n, d), in the order of the lattice.

    >>> warp_and_blend(2, 3)[:4].round(6).tolist()
    [[-1.0, -1.0], [-0.447214, -1.0], [0.447214, -1.0], [1.0, -1.0]]
    """
    line = np.linspace(-1, 1, order + 1)
    modes = np.linalg.solve(modal_basis(line[:, None], order, True)[0], gauss_lobatto(order + 1)[0] - line)

    def warp(x: np.ndarray) -> np.ndarray:
        """How far Gauss-Lobatto points are from equispaced ones, interpolated at x, over 1 - x²."""
        there = modal_basis(x[:, None], order, True)[0] @ modes
        return there / np.where(np.abs(x) < 1 - 1e-10, 1 - x**2, np.inf)

    def blend(of: int, towards: int) -> np.ndarray:
        return 1 + (BLEND[of][order - 1] * even[towards]) ** 2

    def share(k: int, top: int) -> np.ndarray:
        """1 on the face opposite of `top`, 0 on that opposite of k, and half where these meet."""
        return np.where(even[k] + even[top] > 0, even[k] / np.maximum(even[k] + even[top] / 2, 1e-10), 0.5)

    points = lattice(dims, order, False).T
    even = np.vstack([order - points.sum(0), points]) / order  # barycentric coordinates
    moved = even.copy()
    for a, b in combinations(range(dims + 1), 2):
        others = [k for k in range(dims + 1) if k not in (a, b)]
        along = 2 * even[a] * even[b] * warp(even[b] - even[a])
        if dims == 2:
            along = along * blend(2, others[0])
        else:
            along = along * sum(
                blend(2, c) * blend(3, top) * share(a, top) * share(b, top) * share(c, top)
                for c, top in permutations(others)
            )
        moved[a], moved[b] = moved[a] - along, moved[b] + along
    return 2 * moved[1:].T - 1
