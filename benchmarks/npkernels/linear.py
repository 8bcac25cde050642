"""Products of matrices and vectors."""

from benchmarks.npkernels._kernel import kernel


def atax_inputs(rng, m, n):
    return rng.random((m, n)), rng.random(n)


@kernel(atax_inputs, size={"m": 6000, "n": 7000}, tiny={"m": 5, "n": 4}, jax=True)
def atax(A, x):
    """The gradient of |A x|² / 2."""
    return A.T @ (A @ x)


def bicg_inputs(rng, m, n):
    return rng.random((n, m)), rng.random(m), rng.random(n)


@kernel(bicg_inputs, size={"m": 6000, "n": 7000}, tiny={"m": 5, "n": 4}, jax=True)
def bicg(A, p, r):
    """The two products of one step of the biconjugate gradient method."""
    return r @ A, A @ p


def gemm_inputs(rng, m, n, k):
    return 1.5, 1.2, rng.random((m, n)), rng.random((m, k)), rng.random((k, n))


@kernel(gemm_inputs, size={"m": 1300, "n": 1400, "k": 1500}, tiny={"m": 3, "n": 4, "k": 5}, writes=("C",))
def gemm(alpha, beta, C, A, B):
    C[...] = alpha * (A @ B) + beta * C


def gemver_inputs(rng, n):
    vectors = [rng.random(n) / n for _ in range(8)]
    return 1.5, 1.2, rng.random((n, n)), *vectors


@kernel(gemver_inputs, size={"n": 4000}, tiny={"n": 5}, writes=("A", "w", "x"))
def gemver(xp, alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    """A rank-2 update and the products with the matrix it gives."""
    A += xp.outer(u1, v1) + xp.outer(u2, v2)
    x += beta * (y @ A) + z
    w += alpha * (A @ x)


def gesummv_inputs(rng, n):
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, n)), rng.random(n)


@kernel(gesummv_inputs, size={"n": 6500}, tiny={"n": 5}, jax=True)
def gesummv(alpha, beta, A, B, x):
    return alpha * (A @ x) + beta * (B @ x)


def mvt_inputs(rng, n):
    return rng.random(n), rng.random(n), rng.random(n), rng.random(n), rng.random((n, n))


@kernel(mvt_inputs, size={"n": 7000}, tiny={"n": 5}, writes=("x1", "x2"))
def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


def k2mm_inputs(rng, m, n, k, p):
    return 1.5, 1.2, rng.random((m, k)), rng.random((k, n)), rng.random((n, p)), rng.random((m, p))


@kernel(
    k2mm_inputs,
    size={"m": 1000, "n": 1050, "k": 1100, "p": 1150},
    tiny={"m": 2, "n": 3, "k": 4, "p": 5},
    writes=("D",),
)
def k2mm(alpha, beta, A, B, C, D):
    D[...] = alpha * (A @ B @ C) + beta * D


def k3mm_inputs(rng, m, n, k, p, q):
    return rng.random((m, k)), rng.random((k, n)), rng.random((n, p)), rng.random((p, q))


@kernel(
    k3mm_inputs,
    size={"m": 900, "n": 950, "k": 1000, "p": 1050, "q": 1100},
    tiny={"m": 2, "n": 3, "k": 4, "p": 5, "q": 3},
    jax=True,
)
def k3mm(A, B, C, D):
    return (A @ B) @ (C @ D)


def doitgen_inputs(rng, r, q, p):
    return rng.random((r, q, p)), rng.random((p, p))


@kernel(doitgen_inputs, size={"r": 256, "q": 256, "p": 128}, tiny={"r": 2, "q": 3, "p": 4}, writes=("A",))
def doitgen(A, basis):
    """The last index of a three-index tensor in another basis."""
    A[...] = A @ basis
