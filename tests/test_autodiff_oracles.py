"""Derivatives beside those of others: sympy's, evaluated to many digits, and JAX's forward mode."""

import math

import numpy as np
import pytest

import mirabelle as mb

ad = mb.autodiff
sympy = pytest.importorskip("sympy")
mpmath = pytest.importorskip("mpmath")
x, y, z = sympy.symbols("x y z", real=True)

# name: (mathematics, where, how many units in the last place the first derivative may be away)
FUNCTIONS = {
    "sqrt": (sympy.sqrt(x), (0.3, 2.5), 2), "cbrt": (sympy.cbrt(x), (0.3, 2.5), 4),
    "square": (x**2, (-2, 2), 1),
    "reciprocal": (1 / x, (0.3, 2.5), 2), "exp": (sympy.exp(x), (-2, 2), 2), "exp2": (2**x, (-2, 2), 4),
    "expm1": (sympy.exp(x) - 1, (-2, 2), 4), "log": (sympy.log(x), (0.3, 2.5), 1),
    "log2": (sympy.log(x, 2), (0.3, 2.5), 3), "log10": (sympy.log(x, 10), (0.3, 2.5), 3),
    "log1p": (sympy.log(1 + x), (-0.5, 2), 2), "sin": (sympy.sin(x), (-3, 3), 2),
    "cos": (sympy.cos(x), (-3, 3), 2),
    "tan": (sympy.tan(x), (-1.4, 1.4), 8), "asin": (sympy.asin(x), (-0.9, 0.9), 8),
    "acos": (sympy.acos(x), (-0.9, 0.9), 8), "atan": (sympy.atan(x), (-3, 3), 3),
    "sinh": (sympy.sinh(x), (-2, 2), 3),
    "cosh": (sympy.cosh(x), (-2, 2), 3), "tanh": (sympy.tanh(x), (-1, 1), 8),
    "asinh": (sympy.asinh(x), (-3, 3), 3),
    "acosh": (sympy.acosh(x), (1.1, 3), 4), "atanh": (sympy.atanh(x), (-0.9, 0.9), 4),
    "erf": (sympy.erf(x), (-2, 2), 8), "erfc": (sympy.erfc(x), (-2, 2), 8),
    "gamma": (sympy.gamma(x), (1.7, 4), 40),
    "lgamma": (sympy.loggamma(x), (1.6, 4), 40), "sinpi": (sympy.sin(sympy.pi * x), (-0.4, 0.4), 4),
    "cospi": (sympy.cos(sympy.pi * x), (0.1, 0.9), 4), "negative": (-x, (-2, 2), 1),
}  # fmt: skip


def exactly(expression, variables, points):
    """The values of an expression at doubles, computed with 40 digits and rounded once."""
    f = sympy.lambdify(variables, expression, "mpmath")
    with mpmath.workdps(40):
        return np.array([float(f(*[mpmath.mpf(float(p)) for p in at])) for at in zip(*points, strict=True)])


def units(found, wanted):
    """How far numbers are away, in units of the last place."""
    return np.max(np.abs(found - wanted) / np.spacing(np.abs(wanted)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_exact_to_a_few_units(name):
    expression, (low, high), allowed = FUNCTIONS[name]
    at = np.linspace(low, high, 23)
    f = getattr(mb, name)
    one = mb.HostArray(np.ones_like(at))
    first = ad.jvp(f, (mb.HostArray(at),), (one,))[1]
    second = ad.jvp(lambda v: ad.jvp(f, (v,), (one,))[1], (mb.HostArray(at),), (one,))[1]
    wanted = [exactly(sympy.diff(expression, x, n), [x], [at]) for n in (1, 2)]
    assert units(mb.to_numpy(first), wanted[0]) <= allowed
    np.testing.assert_allclose(mb.to_numpy(second), wanted[1], rtol=3e-14, atol=1e-14)


@pytest.mark.parametrize("name", ["divide", "pow", "atan2", "hypot", "logaddexp"])
def test_partial_derivatives_are_exact_to_a_few_units(name):
    expression = {"divide": x / y, "pow": x**y, "atan2": sympy.atan2(x, y), "hypot": sympy.sqrt(x**2 + y**2),
                  "logaddexp": sympy.log(sympy.exp(x) + sympy.exp(y))}[name]  # fmt: skip
    at = [np.linspace(0.4, 2.0, 17), np.linspace(2.3, 0.7, 17)]
    args = [mb.HostArray(a) for a in at]
    for i, v in enumerate((x, y)):
        tangents = [mb.HostArray(np.ones(17)) if j == i else None for j in range(2)]
        found = mb.to_numpy(ad.jvp(getattr(mb, name), args, tangents)[1])
        assert units(found, exactly(sympy.diff(expression, v), [x, y], at)) <= 12


SCALARS = {
    "a polynomial": lambda m, x, y, z: x**3 * y - 2 * x * z**2 + y**2 * z,
    "of exponentials": lambda m, x, y, z: m.exp(-(x**2) / 2) * m.sin(3 * y) + m.exp(x * y * z / 4),
    "a rational function": lambda m, x, y, z: (x * y - z) / (1 + x**2 + y**2),
    "nested": lambda m, x, y, z: m.log(1 + m.exp(m.sin(x * y) + m.sqrt(z + 2) * m.tanh(y))),
    "powers": lambda m, x, y, z: (x**2 + 1) ** (y / 2) + (z**2 + 1) ** 1.5,
}


@pytest.mark.parametrize("A", [mb.HostArray, mb.RefArray, mb.CuArray], ids=lambda A: A.__name__)
@pytest.mark.parametrize("name", SCALARS)
def test_gradients_and_hessians_are_sympy_s(name, A):
    f = SCALARS[name]
    expression = f(sympy, x, y, z)
    at = [0.7, -1.3, 0.4]
    variables = (x, y, z)
    points = [[p] for p in at]
    gradient = [exactly(sympy.diff(expression, v), variables, points)[0] for v in variables]
    hessian = [
        [exactly(sympy.diff(expression, u, v), variables, points)[0] for v in variables] for u in variables
    ]
    g = lambda p: f(mb, p[0], p[1], p[2])
    rtol = 1e-13
    np.testing.assert_allclose(mb.to_numpy(ad.gradient(g, A(at))), gradient, rtol=rtol, atol=1e-14)
    np.testing.assert_allclose(mb.to_numpy(ad.hessian(g, A(at))), hessian, rtol=10 * rtol, atol=1e-13)


@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_of_any_order(order):
    def nth(f, n):
        return f if n == 0 else lambda t: ad.derivative(nth(f, n - 1), t)

    expression = sympy.sin(x) * sympy.exp(x / 2) / (1 + x**2)
    found = nth(lambda t: mb.sin(t) * mb.exp(t / 2) / (1 + t**2), order)(0.6)
    (wanted,) = exactly(sympy.diff(expression, x, order), [x], [[0.6]])
    assert math.isclose(found, wanted, rel_tol=1e-12)


# JAX is no part of what the tests need: where it is installed, it is asked too.


def programs(m):
    def logistic(w, X, y):
        s = X @ w
        return m.mean(m.logaddexp(s * 0.0, s) - y * s) + 0.1 * m.sum(w**2)

    def attention(w, X, y):
        scores = (X * w) @ X.T / 3
        p = m.exp(scores - m.max(scores, axis=1, keepdims=True))
        return m.sum((p / m.sum(p, axis=1, keepdims=True)) @ X) + m.sum(y) * w[0]

    def network(w, X, y):
        h = m.tanh(X @ w)
        return m.sum(m.where(h > 0, h * y, m.sin(h)) ** 2) + m.sqrt(m.sum(w * w))

    def curve(w, X, y):
        steps = (
            m.cumulative_sum(w * X[:5], axis=1) if hasattr(m, "cumulative_sum") else m.cumsum(w * X[:5], axis=1)
        )
        return m.sum(m.abs(steps[:, 1:] - steps[:, :-1]) ** 3) + m.prod(w + 2)

    return {"logistic": logistic, "attention": attention, "network": network, "curve": curve}


@pytest.mark.parametrize("name", programs(np))
@pytest.mark.parametrize("A", [mb.HostArray, mb.RefArray], ids=lambda A: A.__name__)
def test_programs_have_jax_s_derivatives(name, A):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    w, X, y = rng.normal(size=4), rng.normal(size=(9, 4)), (rng.random(9) > 0.5) * 1.0
    mine, theirs = programs(mb)[name], programs(jax.numpy)[name]
    f = lambda w: mine(w, A(X), A(y))
    g = lambda w: theirs(w, X, y)
    np.testing.assert_allclose(mb.to_numpy(ad.gradient(f, A(w))), jax.jacfwd(g)(w), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        mb.to_numpy(ad.hessian(f, A(w))), jax.jacfwd(jax.jacfwd(g))(w), rtol=1e-10, atol=1e-11
    )
    dw = rng.normal(size=4)
    value, slope = ad.jvp(f, (A(w),), (A(dw),))
    wanted = jax.jvp(g, (w,), (dw,))
    np.testing.assert_allclose([mb.to_numpy(value), mb.to_numpy(slope)], [float(v) for v in wanted], rtol=1e-11)
