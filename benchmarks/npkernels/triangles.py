"""Products that touch one triangle of a matrix: loops over rows, then over columns."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def syrk_inputs(rng, n, k):
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, k))


@kernel(syrk_inputs, size={"n": 220, "k": 180}, tiny={"n": 5, "k": 4}, writes=("C",))
@jit
def syrk(alpha, beta, C, A):
    """A symmetric rank-k update of the lower triangle."""
    for i in range(C.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def syr2k_inputs(rng, n, k):
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, k)), rng.random((n, k))


@kernel(syr2k_inputs, size={"n": 180, "k": 140}, tiny={"n": 5, "k": 4}, writes=("C",))
@jit
def syr2k(alpha, beta, C, A, B):
    """A symmetric rank-2k update of the lower triangle."""
    for i in range(C.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * (A[: i + 1, k] * B[i, k] + B[: i + 1, k] * A[i, k])


def trmm_inputs(rng, m, n):
    return 1.5, rng.random((m, m)), rng.random((m, n))


@kernel(trmm_inputs, size={"m": 160, "n": 200}, tiny={"m": 5, "n": 4}, writes=("B",))
@jit
def trmm(alpha, A, B):
    """B = alpha Aᵀ B, where A is a unit lower triangle."""
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.sum(A[i + 1 :, i] * B[i + 1 :, j])
    B *= alpha


def symm_inputs(rng, m, n):
    return 1.5, 1.2, rng.random((m, n)), rng.random((m, m)), rng.random((m, n))


@kernel(symm_inputs, size={"m": 120, "n": 140}, tiny={"m": 5, "n": 4}, writes=("C",))
@jit
def symm(alpha, beta, C, A, B):
    """C = alpha A B + beta C, where A is symmetric and only its lower triangle is stored."""
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            above = np.sum(B[:i, j] * A[i, :i])
            C[i, j] = beta * C[i, j] + alpha * (B[i, j] * A[i, i] + above)
