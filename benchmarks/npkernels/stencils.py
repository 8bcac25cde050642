"""Explicit steps on regular grids, and one implicit method."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def jacobi_1d_inputs(rng, steps, n):
    return steps, rng.random(n), rng.random(n)


@kernel(
    jacobi_1d_inputs,
    size={"steps": 3000, "n": 3000},
    tiny={"steps": 2, "n": 12},
    writes=("a", "b"),
    statements=lambda steps, n: 2 * steps,
)
def jacobi_1d(steps, a, b):
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) * 0.33333
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) * 0.33333


def jacobi_2d_inputs(rng, steps, n):
    return steps, rng.random((n, n)), rng.random((n, n))


@kernel(jacobi_2d_inputs, size={"steps": 100, "n": 350}, tiny={"steps": 2, "n": 6}, writes=("a", "b"))
def jacobi_2d(steps, a, b):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])


def heat_3d_inputs(rng, steps, n):
    return steps, rng.random((n, n, n)), rng.random((n, n, n))


@kernel(heat_3d_inputs, size={"steps": 20, "n": 64}, tiny={"steps": 1, "n": 4}, writes=("a", "b"))
def heat_3d(steps, a, b):
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = heated(a)
        a[1:-1, 1:-1, 1:-1] = heated(b)


def heated(t):
    inner = t[1:-1, 1:-1, 1:-1]
    return (
        inner
        + 0.125 * (t[2:, 1:-1, 1:-1] - 2.0 * inner + t[:-2, 1:-1, 1:-1])
        + 0.125 * (t[1:-1, 2:, 1:-1] - 2.0 * inner + t[1:-1, :-2, 1:-1])
        + 0.125 * (t[1:-1, 1:-1, 2:] - 2.0 * inner + t[1:-1, 1:-1, :-2])
    )


def fdtd_2d_inputs(rng, steps, nx, ny):
    return rng.random((nx, ny)), rng.random((nx, ny)), rng.random((nx, ny)), rng.random(steps)


@kernel(
    fdtd_2d_inputs,
    size={"steps": 60, "nx": 400, "ny": 450},
    tiny={"steps": 2, "nx": 4, "ny": 5},
    writes=("ex", "ey", "hz"),
)
def fdtd_2d(ex, ey, hz, pulse):
    """Maxwell's equations in the plane, driven along one edge."""
    for t in range(pulse.shape[0]):
        ey[0] = pulse[t]
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def seidel_2d_inputs(rng, steps, n):
    return steps, rng.random((n, n))


@kernel(seidel_2d_inputs, size={"steps": 8, "n": 160}, tiny={"steps": 2, "n": 6}, writes=("a",))
@jit
def seidel_2d(steps, a):
    """Nine points, updated in place: each reads its neighbours' new values."""
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:]
                + a[i, 2:]
                + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )  # fmt: skip
            for j in range(1, n - 1):
                a[i, j] = (a[i, j] + a[i, j - 1]) / 9.0


def adi_inputs(rng, steps, n):
    return steps, rng.random((n, n))


@kernel(adi_inputs, size={"steps": 10, "n": 250}, tiny={"steps": 1, "n": 5}, writes=("u",))
@jit
def adi(steps, u):
    """Diffusion, one direction implicit at a time: a tridiagonal solve for each line."""
    n = u.shape[0]
    v = np.zeros_like(u)
    p = np.zeros((n - 2, n))
    q = np.zeros((n - 2, n))
    across, along = n**2 / steps, 2 * n**2 / steps
    for _ in range(steps):
        half_step(u.T, v.T, p, q, along / 2, across / 2)
        half_step(v, u, p, q, across / 2, along / 2)


@jit
def half_step(given, found, p, q, implicit, explicit):
    """Solve along the second axis what the step before left along the first."""
    n = given.shape[0]
    found[1:-1, 0] = 1.0
    p[:, 0] = 0.0
    q[:, 0] = 1.0
    for j in range(1, n - 1):
        pivot = 1.0 + 2.0 * implicit - implicit * p[:, j - 1]
        p[:, j] = implicit / pivot
        q[:, j] = (
            explicit * (given[:-2, j] + given[2:, j])
            + (1.0 - 2.0 * explicit) * given[1:-1, j]
            + implicit * q[:, j - 1]
        ) / pivot
    found[1:-1, -1] = 1.0
    for j in range(n - 2, 0, -1):
        found[1:-1, j] = p[:, j] * found[1:-1, j + 1] + q[:, j]
