"""Covariances, rings of an image, sums over selections."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def samples(rng, n, m):
    return (rng.random((n, m)),)


@kernel(samples, size={"n": 1000, "m": 900}, tiny={"n": 6, "m": 4}, writes=("data",))
def covariance(xp, data):
    """The covariances of the columns, one row of the result after the other."""
    n, m = data.shape
    data -= data.mean(axis=0)
    found = xp.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        found[i, i:] = found[i:, i] = data[:, i] @ data[:, i:] / (n - 1.0)
    return found


@kernel(samples, size={"n": 2000, "m": 1500}, tiny={"n": 6, "m": 4})
def covariance2(xp, data):
    """The same by the library's function."""
    return xp.cov(data, rowvar=False)


@kernel(samples, size={"n": 1000, "m": 900}, tiny={"n": 6, "m": 4})
def correlation(xp, data):
    n, m = data.shape
    spread = data.std(axis=0)
    spread = xp.where(spread <= 0.1, 1.0, spread)
    z = (data - data.mean(axis=0)) / (n**0.5 * spread)
    found = xp.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        found[i, i + 1 :] = found[i + 1 :, i] = z[:, i] @ z[:, i + 1 :]
    return found


def image_inputs(rng, pixels, rings):
    return rng.random(pixels), rng.random(pixels), rings


@kernel(image_inputs, size={"pixels": 400_000, "rings": 100}, tiny={"pixels": 60, "rings": 4})
def azimint_naive(xp, values, radius, rings):
    """The mean of the pixels in each ring around the centre."""
    edges = xp.linspace(0.0, 1.0, rings + 1)
    means = []
    for i in range(rings):
        ring = (edges[i] <= radius) & (radius < edges[i + 1])
        means.append(values[ring].mean())
    return xp.stack(means)


@kernel(image_inputs, size={"pixels": 4_000_000, "rings": 1000}, tiny={"pixels": 60, "rings": 4})
def azimint_hist(xp, values, radius, rings):
    count = xp.histogram(radius, rings)[0]
    total = xp.histogram(radius, rings, weights=values)[0]
    return total / count


def go_fast_inputs(rng, n):
    return (rng.random((n, n)),)


@kernel(go_fast_inputs, size={"n": 6000}, tiny={"n": 5})
def go_fast(xp, a):
    """A loop over elements, and what it came to added to all."""
    return a + bent_trace(a)


@jit
def bent_trace(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return trace


def spmv_inputs(rng, rows, columns, nonzeros):
    ends = np.sort(rng.integers(0, nonzeros + 1, rows - 1))
    starts = np.concatenate([[0], ends, [nonzeros]])
    return starts, rng.integers(0, columns, nonzeros), rng.random(nonzeros), rng.random(columns)


@kernel(
    spmv_inputs,
    size={"rows": 40_000, "columns": 40_000, "nonzeros": 800_000},
    tiny={"rows": 6, "columns": 5, "nonzeros": 12},
)
@jit
def spmv(starts, columns, values, x):
    """A matrix of compressed sparse rows times a vector."""
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(y.size):
        row = slice(starts[i], starts[i + 1])
        y[i] = np.sum(values[row] * x[columns[row]])
    return y
