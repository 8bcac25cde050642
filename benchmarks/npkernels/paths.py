"""Dynamic programming: shortest paths, and the folding of RNA."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def floyd_warshall_inputs(rng, n):
    distances = rng.integers(1, 1000, (n, n), dtype=np.int32)
    np.fill_diagonal(distances, 0)
    return (distances,)


@kernel(floyd_warshall_inputs, size={"n": 500}, tiny={"n": 5}, writes=("path",))
def floyd_warshall(xp, path):
    for k in range(path.shape[0]):
        path[...] = xp.minimum(path, path[:, k, None] + path[k])


def nussinov_inputs(rng, n):
    return (rng.integers(0, 4, n),)


@kernel(nussinov_inputs, size={"n": 120}, tiny={"n": 6})
@jit
def nussinov(sequence):
    """The most pairs of bases that a strand can form without crossings."""
    n = sequence.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            pair = 1 if sequence[i] + sequence[j] == 3 else 0
            best = max(best, table[i + 1, j - 1] + (pair if i < j - 1 else 0))
            for k in range(i + 1, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table
