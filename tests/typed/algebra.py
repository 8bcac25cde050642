"""Linear algebra, random numbers, derivatives and flows: what comes in tuples, and what is passed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import mirabelle as mb
from mirabelle import dg


def decompositions(A: mb.AbstractArray, b: mb.AbstractArray) -> mb.AbstractArray:
    q, r = mb.linalg.qr(A)
    u, s, vh = mb.linalg.svd(A, full_matrices=False)
    assert_type(s, mb.AbstractArray)
    w, v = mb.linalg.eigh(A)
    assert_type(v, mb.AbstractArray)
    e = mb.linalg.eig(A)
    assert_type(e.eigenvalues, mb.AbstractArray)
    sign, log = mb.linalg.slogdet(A)
    assert_type(sign, mb.AbstractArray)
    assert_type(log, mb.AbstractArray)
    x, residuals, _, _ = mb.linalg.lstsq(A, b)
    assert_type(x, mb.AbstractArray)
    assert_type(residuals, mb.AbstractArray)
    L = mb.linalg.cholesky(A)
    assert_type(L, mb.AbstractArray)
    assert_type(mb.linalg.solve(A, b), mb.AbstractArray)
    assert_type(mb.linalg.inv(A) @ b, mb.AbstractArray)
    F = mb.linalg.factorize(A)
    assert_type(F.solve(b), mb.AbstractArray)
    y, info = mb.linalg.cg(A, b, rtol=1e-8, maxiter=100)
    assert_type(y, mb.AbstractArray)
    assert_type(info.iterations, int)
    assert_type(mb.linalg.matrix_rank(A), mb.AbstractArray)
    assert_type(mb.linalg.svdvals(A), mb.AbstractArray)
    assert_type(mb.linalg.expm(A), mb.AbstractArray)
    assert_type(mb.linalg.det(A), mb.AbstractArray)
    assert_type(mb.linalg.cond(A), mb.AbstractArray)
    lower = mb.linalg.lu(A)
    assert_type(lower, tuple[mb.AbstractArray, ...])
    return q @ r + u @ mb.diag(s) @ vh + v * w


def structured(d: mb.AbstractArray) -> mb.AbstractArray:
    D = mb.Diagonal(d)
    T = mb.Tridiagonal(d[1:], d, d[1:])
    K = mb.Kronecker(D, D)
    assert_type(D @ d, mb.AbstractArray)
    assert_type(T @ d, mb.AbstractArray)
    assert_type(K.shape, tuple[int, ...])
    assert_type(mb.linalg.solve(T, d), mb.AbstractArray)
    assert_type(mb.dense(K), mb.AbstractArray)
    assert_type(D.T, mb.AbstractArray)
    return D @ T


def sampled(n: int) -> dict[str, mb.AbstractArray]:
    rng = mb.random.default_rng(42)
    found = {
        "normal": rng.normal(0.0, 1.0, size=(n, 3)),
        "integers": rng.integers(0, 10, size=n),
        "choice": rng.choice(n, size=5, replace=False),
        "random": rng.random(n),
        "permutation": rng.permutation(n),
        "exponential": rng.exponential(2.0, size=n),
        "standard": rng.standard_normal((n, n), dtype=mb.float32),
        "poisson": rng.poisson(3.0, n),
        "multi": rng.multivariate_normal(mb.zeros(2), mb.eye(2), size=n),
    }
    assert_type(found["normal"], mb.AbstractArray)
    x = mb.arange(n)
    assert_type(rng.shuffle(x), None)
    children = rng.spawn(3)
    assert_type(children, list[mb.random.Generator])
    return found


def rosenbrock(x: mb.AbstractArray) -> mb.AbstractArray:
    return mb.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def derivatives(x: mb.AbstractArray) -> None:
    assert_type(mb.autodiff.gradient(rosenbrock, x), mb.AbstractArray)
    assert_type(mb.autodiff.hessian(rosenbrock, x), mb.AbstractArray)
    assert_type(mb.autodiff.jacobian(lambda u: u * u, x), mb.AbstractArray)
    value, tangent = mb.autodiff.jvp(rosenbrock, (x,), (x,))
    assert_type(value, mb.AbstractArray)
    assert_type(tangent, mb.AbstractArray)
    f, g = mb.autodiff.value_and_gradient(rosenbrock, x)
    assert_type(f, mb.AbstractArray)
    assert_type(g, mb.AbstractArray)


def euler(degrees: Sequence[int]) -> list[float]:
    errors: list[float] = []
    for p in degrees:
        equations = dg.CompressibleEuler(2)
        semi = dg.Semidiscretization(
            dg.box((4, 4), periodic=True), equations, dg.Solver(p, surface_flux=dg.hllc)
        )

        def start(x: Sequence[mb.AbstractArray], t: float) -> tuple[Any, ...]:
            rho = 1 + 0.1 * mb.sin(x[0])
            return (rho, rho, 0 * rho, 2.5 + 0 * rho)

        solution = dg.solve(semi, 0.1, start, cfl=0.5, method=dg.RK4())
        assert_type(solution, dg.Solution)
        assert_type(solution.u, mb.AbstractArray)
        assert_type(solution.t, float)
        errors.append(float(mb.max(mb.abs(solution.u))))
    return errors


@mb.compile
def energy(u: mb.AbstractArray, v: mb.AbstractArray) -> tuple[mb.AbstractArray, mb.AbstractArray]:
    return mb.sum(u * u), mb.sum(v * v)


e1, e2 = energy(mb.ones(3), mb.ones(3))
assert_type(e1, mb.AbstractArray)
state = mb.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * 2, s[1] + 1), (mb.ones(2), mb.asarray(0)))
assert_type(state, tuple[mb.AbstractArray, mb.AbstractArray])
assert_type(mb.fori_loop(0, 3, lambda i, s: s * 2, mb.ones(2)), mb.AbstractArray)
