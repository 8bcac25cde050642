"""What the tour runs: a program on a grid, the data, and ways to make an array of them.

Nothing in the program names an array type; its arrays may also be NumPy's. The paper's programs, which the tour
runs as well, are in `mirabelle.programs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mirabelle as mb

# The program


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def step(u, v, feed, kill):
    """Two substances diffuse; v eats u and multiplies; u is fed, v is removed."""
    U, V = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = U * V * V
    du = 0.16 * laplacian(u) - reaction + feed * (1 - U)
    dv = 0.08 * laplacian(v) + reaction - (feed + kill) * V
    u[1:-1, 1:-1] = U + du
    v[1:-1, 1:-1] = V + dv


# The data


def start(n: int) -> tuple[Any, ...]:
    """The two substances at the beginning, and a feed rate that rises from left to right."""
    random = np.random.default_rng(4)
    u, v = np.ones((n, n)), np.zeros((n, n))
    for _ in range(n // 6):
        i, j = random.integers(6, n - 6, 2)
        u[i - 3 : i + 3, j - 3 : j + 3] = 0.5
        v[i - 3 : i + 3, j - 3 : j + 3] = 0.25
    return u, v, np.linspace(0.018, 0.056, n - 2)


KILL = 0.061


def transposed(x: Any) -> Any:
    """The same array, stored the other way round and seen through a Transpose."""
    return mb.HostArray(np.ascontiguousarray(x.T)).T


def framed(x: Any) -> Any:
    """The same array as the inner part of a larger one, seen through a View."""
    pad = np.zeros([n + 16 for n in x.shape])
    inner = tuple(slice(8, -8) for _ in x.shape)
    pad[inner] = x
    return mb.HostArray(pad)[inner]


def spectrum(n: int) -> Any:
    """A symmetric matrix whose eigenvalues are 1, 0.8, 0.8², …"""
    q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))
    return (q * 0.8 ** np.arange(n)) @ q.T
