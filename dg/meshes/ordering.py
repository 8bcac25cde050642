"""An order of cells in which neighbours in space are near each other in memory."""

from __future__ import annotations

import numpy as np


def hilbert_order(points: np.ndarray) -> np.ndarray:
    """The order in which a Hilbert curve visits points (d, n), by J. Skilling (doi:10.1063/1.1751381).

    >>> hilbert_order(np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])).tolist()
    [0, 3, 2, 1]
    """
    dims, bits = len(points), min(20, 62 // len(points))
    size = max(float(np.ptp(points, axis=1).max()), 1e-300)
    x = np.minimum((points - points.min(1, keepdims=True)) / size * 2**bits, 2**bits - 1).astype(np.int64)
    for bit in reversed(range(1, bits)):
        below = (1 << bit) - 1
        for i in range(dims):
            upper = (x[i] >> bit) & 1 == 1
            swap = np.where(upper, 0, (x[0] ^ x[i]) & below)
            x[0] ^= np.where(upper, below, swap)
            x[i] ^= swap
    for i in range(1, dims):
        x[i] ^= x[i - 1]
    flip = np.zeros_like(x[0])
    for bit in range(1, bits):
        flip ^= ((x[-1] >> bit) & 1) * ((1 << bit) - 1)
    key = np.zeros_like(flip)
    for bit in reversed(range(bits)):
        for row in x ^ flip:
            key = (key << 1) | ((row >> bit) & 1)
    return np.argsort(key, kind="stable")
