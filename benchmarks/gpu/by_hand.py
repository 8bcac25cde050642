"""Kernels written by hand for Numba-CUDA, one thread an element: what facts.md found fastest."""

from __future__ import annotations

import math
from typing import Any

THREADS_1D, THREADS_2D = (256,), (32, 8)


def kernel(name: str, dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """A kernel that takes the arrays and the result, of a dtype, and its threads in a block."""
    from numba import cuda

    # As constants of the dtype: float32 with a Python number would be float64.
    two, half = dtype.type(2), dtype.type(0.5)

    @cuda.jit
    def facts(a, b, c, d, e, z):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < z.shape[0]:
            x = a[i]
            z[i] = x + b[i] * c[i] - d[i] / (e[i] + two) + half * math.sin(x)

    @cuda.jit
    def where(a, b, z):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < z.shape[0]:
            x, y = a[i], b[i]
            z[i] = x - y if x > y else two * y

    @cuda.jit
    def five_points(a, z):  # type: ignore[no-untyped-def]
        j, i = cuda.grid(2)
        if i < z.shape[0] and j < z.shape[1]:
            z[i, j] = a[i + 2, j + 1] + a[i, j + 1] + a[i + 1, j + 2] + a[i + 1, j] - 4 * a[i + 1, j + 1]

    if name == "five_points":
        return five_points, THREADS_2D
    return {"facts": facts, "where": where}[name], THREADS_1D
