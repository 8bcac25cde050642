"""Factorisations and solves, column by column."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def positive_definite(rng, n):
    factor = rng.random((n, n))
    return factor @ factor.T + n * np.eye(n)


def cholesky_inputs(rng, n):
    return (positive_definite(rng, n),)


@kernel(cholesky_inputs, size={"n": 280}, tiny={"n": 5}, writes=("A",))
@jit
def cholesky(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[j, :j]) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - A[i, :i] @ A[i, :i])


@kernel(cholesky_inputs, size={"n": 1500}, tiny={"n": 5}, writes=("A",))
def cholesky2(xp, A):
    """The factor below the diagonal; above it, what was there."""
    A[...] = xp.linalg.cholesky(A) + xp.triu(A, k=1)


@kernel(cholesky_inputs, size={"n": 250}, tiny={"n": 5}, writes=("A",))
@jit
def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp_inputs(rng, n):
    return positive_definite(rng, n), rng.random(n)


@kernel(ludcmp_inputs, size={"n": 250}, tiny={"n": 5}, writes=("A",))
@jit
def ludcmp(A, b):
    """Solve A x = b: factorise in place, then substitute forwards and backwards."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    y = np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    x = np.zeros_like(b)
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def trisolv_inputs(rng, n):
    return np.tril(rng.random((n, n))) + n * np.eye(n), rng.random(n)


@kernel(trisolv_inputs, size={"n": 7000}, tiny={"n": 5})
@jit
def trisolv(L, b):
    x = np.zeros_like(b)
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def durbin_inputs(rng, n):
    return (rng.random(n) / n,)


@kernel(durbin_inputs, size={"n": 8000}, tiny={"n": 5})
@jit
def durbin(r):
    """The Yule-Walker equations, one order after the other."""
    y = np.empty_like(r)
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gramschmidt_inputs(rng, m, n):
    return (rng.random((m, n)),)


@kernel(gramschmidt_inputs, size={"m": 240, "n": 200}, tiny={"m": 6, "n": 4}, writes=("A",))
@jit
def gramschmidt(A):
    """The QR factors; what remains of each column loses its part along those before it."""
    n = A.shape[1]
    Q = np.zeros_like(A)
    R = np.zeros((n, n), A.dtype)
    for k in range(n):
        R[k, k] = np.sqrt(np.sum(A[:, k] * A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.sum(Q[:, k] * A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R
