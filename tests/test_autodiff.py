"""mb.autodiff and dual numbers: derivatives of operations, nesting, memory, errors."""

import itertools
import math
import pickle
import threading

import numpy as np
import pytest
from compare import assert_closed, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import DISTRIBUTED, LEAVES

import mirabelle as mb
from mirabelle.arraytypes.duals.elementwise import CONSTANT, DERIVATIVES
from mirabelle.dispatch import verbs

ad = mb.autodiff
KINDS = [*(LEAVES[name] for name in ("host", "ref", "cuda", "host_pending", "host_shared")), *DISTRIBUTED]
FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]


def on(kinds=KINDS):
    return pytest.mark.parametrize("kind", kinds, ids=repr)


def family(families=FAMILIES):
    return pytest.mark.parametrize("A", families, ids=lambda A: A.__name__)


def central(f, x, h=1e-6):
    """The derivative of a function of NumPy arrays, element by element, by differences."""
    return (f(x + h) - f(x - h)) / (2 * h)


# Where each function is smooth.
POINTS = {
    "log": (0.3, 2.5), "log2": (0.3, 2.5), "log10": (0.3, 2.5), "sqrt": (0.3, 2.5), "cbrt": (0.3, 2.5),
    "reciprocal": (0.3, 2.5), "asin": (-0.8, 0.7), "acos": (-0.8, 0.7), "atanh": (-0.8, 0.7),
    "acosh": (1.2, 3.0),
    "log1p": (-0.5, 1.0), "gamma": (0.6, 3.3), "lgamma": (-0.7, 3.3), "abs": (-1.3, 0.9), "tan": (-1.0, 1.2),
    "divide": (0.4, 2.0), "pow": (0.4, 2.0), "remainder": (2.2, 2.7), "fmod": (2.2, 2.7),
    "atan2": (0.4, 2.0), "logaddexp": (-1.0, 1.5), "nextafter": (1.0, 2.0),
}  # fmt: skip
UNARY = [n for n, d in DERIVATIVES.items() if len(d) == 1 and n not in ("copy", "cast")]
BINARY = [n for n, d in DERIVATIVES.items() if len(d) == 2 and n not in ("complex", "ldexp", "nextafter")]


def verb(name):
    return verbs.ELEMENTWISE[name]


def sample(name, shape=(5,), second=False):
    low, high = POINTS.get(name, (-1.3, 1.7))
    n = math.prod(shape)
    x = np.linspace(low, high, n).reshape(shape)
    return x[..., ::-1] * 0.83 + 0.07 if second else x


def of_numpy(name):
    return lambda *xs: mb.to_numpy(verb(name)(*[mb.HostArray(x) for x in xs]))


@on()
@pytest.mark.parametrize("name", UNARY)
def test_the_derivative_of_a_function(name, kind):
    x = sample(name)
    y, dy = ad.jvp(verb(name), (kind.make(x),), (kind.make(np.full(x.shape, 2.0)),))
    assert_closed(dy, kind)
    # (The derivative of gamma has a user's function, so all is compiled, and Numba's gamma is not CPython's.)
    assert_same(y, of_numpy(name)(x), rtol=1e-15 if name == "gamma" else 0)
    np.testing.assert_allclose(mb.to_numpy(dy), 2 * central(of_numpy(name), x), rtol=2e-8, atol=1e-9)


@on(KINDS[:3])
@pytest.mark.parametrize("name", UNARY)
def test_its_second_derivative(name, kind):
    x = sample(name)
    one = kind.make(np.ones_like(x))

    def slope(x):
        return ad.jvp(verb(name), (x,), (one,))[1]

    _, found = ad.jvp(slope, (kind.make(x),), (one,))
    first = lambda x: mb.to_numpy(ad.jvp(verb(name), (mb.HostArray(x),), (mb.HostArray(np.ones_like(x)),))[1])
    np.testing.assert_allclose(mb.to_numpy(found), central(first, x), rtol=3e-7, atol=1e-7)


@on()
@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)], ids=["first", "second", "both"])
@pytest.mark.parametrize("name", BINARY)
def test_the_derivatives_of_a_function_of_two(name, which, kind):
    x, y = sample(name), sample(name, second=True)
    f = of_numpy(name)
    wanted = sum(
        central(g, v)
        for g, v, used in ((lambda x: f(x, y), x, which[0]), (lambda y: f(x, y), y, which[1]))
        if used
    )
    one = kind.make(np.ones_like(x))
    tangents = tuple(one if used else None for used in which)
    value, found = ad.jvp(verb(name), (kind.make(x), kind.make(y)), tangents)
    assert_same(value, f(x, y))
    np.testing.assert_allclose(mb.to_numpy(found), wanted, rtol=3e-8, atol=1e-8)


@family()
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow", "maximum", "atan2", "hypot"])
def test_numbers_and_shapes_that_stretch(name, A):
    x, row = sample(name, (3, 1)), sample(name, (4,), second=True)
    f = of_numpy(name)
    for g, h in ((lambda v: verb(name)(v, A(row)), lambda v: f(v, row)),
                 (lambda v: verb(name)(A(row), v), lambda v: f(row, v)),
                 (lambda v: verb(name)(v, 1.3), lambda v: f(v, np.asarray(1.3))),
                 (lambda v: verb(name)(1.3, v), lambda v: f(np.asarray(1.3), v))):  # fmt: skip
        jacobian = mb.to_numpy(ad.jacobian(g, A(x)))
        assert jacobian.shape == h(x).shape + x.shape
        wanted = np.zeros(jacobian.shape)
        for i in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[i] = 1e-6
            wanted[(..., *i)] = (h(x + step) - h(x - step)) / 2e-6
        np.testing.assert_allclose(jacobian, wanted, rtol=1e-7, atol=1e-8)


def test_every_elementwise_function_has_a_derivative_or_none():
    integer = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
               "bitwise_invert", "bitwise_count", "gcd", "lcm"}  # fmt: skip
    by_rule = {"where", "conj", "real", "imag", "divmod", "modf", "frexp"}
    assert set(verbs.ELEMENTWISE) == (
        set(DERIVATIVES) - {"cast", "copy", "complex"} | CONSTANT | integer | by_rule
    )


@family()
@pytest.mark.parametrize("name", sorted(CONSTANT - {"isnan", "isinf", "isfinite"}))
def test_what_changes_in_steps_is_a_constant(name, A):
    x = A([0.3, 1.6])
    n = verb(name).core.arity
    seen = []
    ad.gradient(lambda x: seen.append(verb(name)(*(x, A([1.0, 1.5]))[:n])) or mb.sum(x), x)
    assert not isinstance(seen[0], mb.types.Dual)
    np.testing.assert_array_equal(mb.to_numpy(seen[0]), mb.to_numpy(verb(name)(*(x, A([1.0, 1.5]))[:n])))


@family()
def test_several_results(A):
    x = np.array([7.25, -3.5, 2.125])
    for name in ("divmod", "modf", "frexp"):
        args = (2.0,) if name == "divmod" else ()
        found = ad.jvp(lambda v, name=name, args=args: tuple(verb(name)(v, *args)), (A(x),), (A(np.ones(3)),))
        f = {"divmod": np.divmod, "modf": np.modf, "frexp": np.frexp}[name]
        for i in range(2):
            np.testing.assert_array_equal(mb.to_numpy(found[0][i]), f(x, *args)[i])
            wanted = np.asarray(central(lambda v, i=i: np.asarray(f(v, *args)[i], float), x))
            np.testing.assert_allclose(mb.to_numpy(found[1][i]), wanted, rtol=1e-6, atol=1e-12)


@family()
def test_selecting_keeps_infinite_derivatives_out(A):
    x = A([-1.0, 0.0, 4.0])
    f = lambda x: mb.sum(mb.where(x > 0, mb.sqrt(x), 0.0))
    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(f, x)), [0, 0, 0.25])
    g = lambda x: mb.sum(mb.where(x < -5, mb.log(mb.cumulative_sum(x) * 0), x * 2))
    assert mb.to_numpy(ad.gradient(g, x)).tolist() == [2, 2, 2]


@family()
def test_equals_share_a_maximum(A):
    x = A([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(mb.max, x)), [0, 0.5, 0.5])
    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(mb.min, x)), [1, 0, 0])
    relu = lambda x: mb.sum(mb.maximum(x, 3.0))
    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(relu, x)), [0, 0.5, 0.5])


# Complex numbers on the way


@family([mb.HostArray, mb.CuArray])
def test_complex_numbers_on_the_way(A):
    x = np.array([0.3, -1.2, 0.7])
    f = lambda x: mb.sum(
        mb.abs(mb.exp(1j * x) + 0.5) * mb.real(1j * x * x * (1 + 2j)) + mb.imag(mb.exp(2j * x))
    )
    n = lambda x: np.abs(np.exp(1j * x) + 0.5) * np.real(1j * x * x * (1 + 2j)) + np.imag(np.exp(2j * x))
    np.testing.assert_allclose(mb.to_numpy(ad.gradient(f, A(x))), central(n, x), rtol=1e-7)


# Functions of numbers and of arrays


def test_the_derivative_of_a_function_of_a_number():
    assert ad.derivative(lambda t: t**3 - 2 * t, 2.0) == 10.0
    assert type(ad.derivative(lambda t: mb.sin(t), 0.0)) is float
    assert ad.derivative(lambda t: 4.0, 1.0) == 0.0
    assert ad.derivative(mb.exp, np.float32(0.0)) == 1.0
    x, y = ad.derivative(lambda t: (t * t, {"a": mb.HostArray([t.value, 1.0]) * t}), 3.0)
    assert x == 6.0 and mb.to_numpy(y["a"]).tolist() == [3.0, 1.0]


@family()
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_number_joins_arrays_of_any_place_and_decides_no_dtype(A, dtype):
    x = A(np.arange(4, dtype=dtype))
    found = ad.derivative(lambda b: mb.sum((x * 2 + b) ** 2), 0.5)
    assert found.dtype == dtype and found.place == A.home
    assert float(found) == np.sum(2 * (np.arange(4) * 2 + 0.5))
    assert ad.derivative(lambda b: x * b, 0.5).dtype == dtype


@family()
def test_one_number_of_the_host_is_a_factor_of_partials_anywhere(A):
    n = np.array([0.5, -1.0, 2.0])
    for s in (mb.HostArray(0.75), mb.arctan(0.75), np.array(0.75), np.float64(0.75)):
        factor = float(s)
        for f, expected in (
            (lambda x, s=s: mb.sum(x * s) * mb.sum(x), 2 * factor * n.sum() * np.ones(3)),
            (lambda x, s=s: mb.sum(mb.mean(x / s) * x), 2 * n.mean() / factor * np.ones(3)),
            (lambda x, s=s: mb.sum(mb.broadcast_to(mb.sum(s * x), (2, 3))), 6 * factor * np.ones(3)),
        ):
            for run in (ad.gradient, mb.compile(lambda f, x: ad.gradient(f, x))):
                found = run(f, A(n))
                assert found.place == A.home
                np.testing.assert_allclose(mb.to_numpy(found), expected, rtol=1e-12)


@family()
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (1, 5), (5, 1), (2, 1, 3)])
def test_gradients_have_the_shape_of_their_argument(A, shape):
    x = np.linspace(0.5, 2.0, math.prod(shape)).reshape(shape)
    found = ad.gradient(lambda x: mb.sum(x**3), A(x))
    assert type(found) is A["f8", len(shape)]
    np.testing.assert_allclose(mb.to_numpy(found), 3 * x**2)
    found = ad.jacobian(lambda x: mb.reshape(x, (-1,)) * 2, A(x))
    np.testing.assert_array_equal(mb.to_numpy(found), 2 * np.eye(x.size).reshape(x.size, *shape))


def rosenbrock(x):
    return mb.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_gradient(x):
    g = np.zeros_like(x)
    g[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    g[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return g


@family()
@pytest.mark.parametrize("chunk", [None, 1, 3, 7, 100])
def test_chunks_of_any_size_give_the_same(A, chunk):
    x = np.linspace(-1, 1, 10)
    np.testing.assert_allclose(
        mb.to_numpy(ad.gradient(rosenbrock, A(x), chunk=chunk)), rosenbrock_gradient(x), rtol=1e-12
    )
    H = mb.to_numpy(ad.hessian(rosenbrock, A(x), chunk=chunk))
    np.testing.assert_array_equal(H, H.T)
    np.testing.assert_allclose(H @ np.ones(10), central(lambda t: rosenbrock_gradient(x + t), 0.0), rtol=1e-6)


def test_the_gradient_of_neighbours_costs_what_the_function_does():
    n = 200_000  # partials of all would be 320 GB
    x = np.linspace(-1, 1, n)
    np.testing.assert_allclose(
        mb.to_numpy(ad.gradient(rosenbrock, mb.HostArray(x))), rosenbrock_gradient(x), rtol=1e-9, atol=1e-12
    )


def test_the_chunk_size_of_a_type_is_a_method():
    x = mb.HostArray(np.linspace(-1, 1, 10))
    calls = []

    def f(x):
        calls.append(x.directions)
        return rosenbrock(x)

    with mb.override(ad.chunk_size, (mb.HostArray,), lambda x: 4):
        ad.gradient(f, x)
    assert calls == [4, 4, 2]
    calls.clear()
    ad.gradient(f, x)
    assert calls == [10]


def test_partials_that_are_too_large_are_computed_in_chunks():
    x = mb.HostArray(np.linspace(0.5, 1, 64))
    M = mb.HostArray(np.random.default_rng(0).random((64, 64)))
    calls = []

    def f(x):
        calls.append(x.directions)
        return mb.sum(mb.sqrt(M @ mb.sin(M @ x)))

    whole = mb.to_numpy(ad.gradient(f, x))
    with mb.override(ad.chunk_bytes, (mb.HostArray,), lambda x: 8 * 64 * 10):
        found = mb.to_numpy(ad.gradient(f, x))
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    assert calls == [64, 64, *[10] * 6, 4]


@family()
def test_nests_of_arguments(A):
    x, y = A([1.0, 2.0]), A([[3.0], [4.0]])
    found = ad.gradient(lambda p: mb.sum(p["x"] * p["more"][0]), {"x": x, "more": (y, x)})
    assert list(found) == ["x", "more"] and type(found["more"]) is tuple
    np.testing.assert_array_equal(mb.to_numpy(found["x"]), [7, 7])
    np.testing.assert_array_equal(mb.to_numpy(found["more"][0]), [[3], [3]])
    np.testing.assert_array_equal(mb.to_numpy(found["more"][1]), [0, 0])
    jacobian = ad.jacobian(lambda p: (p[0] * 2, p[1]), [x, y])
    assert [[j.shape for j in row] for row in jacobian] == [[(2, 2), (2, 2, 1)], [(2, 1, 2), (2, 1, 2, 1)]]


@family()
def test_value_and_gradient(A):
    value, slope = ad.value_and_gradient(lambda x: mb.sum(x * x), A([1.0, 2.0]))
    assert float(value) == 5 and mb.to_numpy(slope).tolist() == [2, 4]
    assert not isinstance(value, mb.types.Dual)


@family()
def test_a_result_that_does_not_depend_has_no_derivative(A):
    x = A([1.0, 2.0])
    assert mb.to_numpy(ad.gradient(lambda x: 3.0, x)).tolist() == [0, 0]
    assert mb.to_numpy(ad.gradient(lambda _: mb.sum(x), x)).tolist() == [0, 0]
    assert mb.to_numpy(ad.jacobian(lambda _: x, x)).tolist() == [[0, 0], [0, 0]]


@family()
def test_empty_arguments(A):
    x = A(np.zeros(0))
    assert ad.gradient(mb.sum, x).shape == (0,)
    assert ad.jacobian(lambda x: mb.ones(3) if A is mb.HostArray else A(np.ones(3)), x).shape == (3, 0)


# Products


@family()
@pytest.mark.parametrize(
    ("a", "b"),
    [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((3, 4), (4, 2)), ((1, 4), (4, 5)), ((5, 4), (4, 1)),
     ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 3)), ((2, 3, 4), (2, 4, 1)), ((5, 1, 3, 4), (2, 4, 3)),
     ((4,), (2, 4, 3)),
     ((2, 3, 4), (4,)), ((1, 1), (1, 1)), ((0, 4), (4, 2)), ((3, 0), (0, 2))],
    ids=str,
)  # fmt: skip
def test_products_of_matrices(A, a, b):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=a), rng.normal(size=b)
    for f, args, v in ((lambda v: (mb.sin(v) * 2) @ A(y), "xy", x), (lambda v: A(x) @ mb.sin(v), "yx", y),
                       (lambda v: v @ A(y), "x", x), (lambda v: A(x) @ v, "y", y)):  # fmt: skip
        g = {
            "xy": lambda v: (np.sin(v) * 2) @ y,
            "yx": lambda v: x @ np.sin(v),
            "x": lambda v: v @ y,
            "y": lambda v: x @ v,
        }[args]
        found = mb.to_numpy(ad.jacobian(f, A(v)))
        assert found.shape == g(v).shape + v.shape
        along = rng.normal(size=v.shape)
        wanted = (g(v + 1e-6 * along) - g(v - 1e-6 * along)) / 2e-6
        np.testing.assert_allclose(
            np.tensordot(found, along, axes=v.ndim) if v.ndim else found * along, wanted, rtol=1e-6, atol=1e-8
        )
    both = ad.jvp(lambda x, y: x @ y, (A(x), A(y)), (A(np.ones(a)), A(np.ones(b))))[1]
    np.testing.assert_allclose(mb.to_numpy(both), np.ones(a) @ y + x @ np.ones(b), rtol=1e-12, atol=1e-12)


def test_a_product_of_duals_is_few_wide_products():
    rng = np.random.default_rng(0)
    A, B = mb.HostArray(rng.normal(size=(20, 30))), mb.HostArray(rng.normal(size=(30, 10)))
    counts = []
    for n in (2, 50):
        x = mb.types.Dual(A, mb.HostArray(rng.normal(size=(n, 20, 30))))
        y = mb.types.Dual(B, mb.HostArray(rng.normal(size=(n, 30, 10))))
        with mb.count() as c:
            z = x @ y
            mb.materialize(z.value), mb.materialize(z.partials)
        counts.append((c.launches, c.library_calls))
        wanted = [
            mb.to_numpy(x.partials[k]) @ mb.to_numpy(B) + mb.to_numpy(A) @ mb.to_numpy(y.partials[k])
            for k in range(n)
        ]
        np.testing.assert_allclose(mb.to_numpy(z.partials), wanted, rtol=1e-12, atol=1e-12)
    assert counts[0] == counts[1]


@family()
def test_the_gradient_of_a_linear_model_is_two_products(A, many):
    """Unit directions times data is the data: nothing of (parameters, outputs) is computed."""
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(50, 400)), rng.normal(size=(1, 400)), rng.normal(size=(1, 50))
    dx, dy, dw = A(X), A(y), A(w)
    f = lambda w: mb.sum(mb.square(w @ dx - dy)) / 400
    np.testing.assert_allclose(mb.to_numpy(ad.gradient(f, dw)), 2 * (w @ X - y) @ X.T / 400, rtol=1e-11)
    with mb.count() as c:
        mb.materialize(ad.gradient(f, dw))
    assert c.bytes_written <= 8 * (400 + 400 + 3 * 50 + 16)
    assert c.scalar_reads == 0
    H = mb.to_numpy(ad.hessian(f, dw)).reshape(50, 50)
    np.testing.assert_allclose(H, 2 * X @ X.T / 400, rtol=1e-11)


# Nesting


def test_perturbations_are_not_confused():
    assert ad.derivative(lambda x: x * ad.derivative(lambda y: x + y, 1.0), 1.0) == 1.0
    assert ad.derivative(lambda x: ad.derivative(lambda y: x * y * y, 2.0), 5.0) == 4.0
    assert (
        ad.derivative(lambda x: ad.derivative(lambda y: ad.derivative(lambda z: x * y * z, 1.0), 1.0), 1.0)
        == 1.0
    )
    nth = lambda f, n: f if n == 0 else lambda t: ad.derivative(nth(f, n - 1), t)
    assert [nth(lambda t: t**2, n)(1.0) for n in range(5)] == [1.0, 2.0, 2.0, 0.0, 0.0]
    assert type(nth(lambda t: t**2, 4)(1.0)) is float
    third = lambda f: lambda t: ad.derivative(lambda t: ad.derivative(lambda t: ad.derivative(f, t), t), t)
    assert third(lambda t: t**5)(2.0) == 60 * 4.0
    assert math.isclose(third(mb.sin)(0.3), -math.cos(0.3), rel_tol=1e-14)


@family()
def test_nested_with_arrays(A):
    x = A([0.5, 1.5])
    f = lambda a: mb.sum(ad.gradient(lambda x: mb.sum(mb.exp(a * x)), x))
    v = np.array([0.5, 1.5])
    wanted = np.sum(np.exp(2 * v) + 2 * v * np.exp(2 * v))
    np.testing.assert_allclose(float(ad.derivative(f, 2.0)), wanted, rtol=1e-13)
    # A gradient that captures the outer variable as a constant.
    g = lambda x: mb.sum(ad.gradient(lambda z: mb.sum(z * x), x))
    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(g, x)), [1, 1])


def test_threads_do_not_mix():
    found = {}

    def work(k):
        x = mb.HostArray(np.full(3, float(k)))
        found[k] = [mb.to_numpy(ad.gradient(lambda x: mb.sum(x**3), x)).tolist() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(found[k] == [[3.0 * k * k] * 3] * 20 for k in range(4))


# Writing


@family()
def test_writing_into_duals(A):
    def f(x):
        y = mb.similar(x)
        y[:1] = x[0] * x[1]
        y[1:] = mb.sin(x[1:])
        y[2:3] = 7.0
        y *= 2
        y[:2] += x[:2]
        return mb.sum(y)

    x = np.array([1.0, 2.0, 3.0, 4.0])
    wanted = [2 * x[1] + 1, 2 * x[0] + 2 * np.cos(x[1]) + 1, 0, 2 * np.cos(x[3])]
    np.testing.assert_allclose(mb.to_numpy(ad.gradient(f, A(x))), wanted, rtol=1e-14)


@family()
def test_views_of_duals_show_and_write(A):
    def f(x):
        y = x * 1.0
        part, turned = y[1:3], y.reshape(2, 2).T
        part[:1] = x[3] ** 2
        turned[0, :1] = x[1] * 10
        return mb.sum(y * y), mb.sum(part), mb.sum(turned[1])

    x = np.array([1.0, 2.0, 3.0, 4.0])

    def g(x):
        y = x * 1.0
        part, turned = y[1:3], y.reshape(2, 2).T
        part[:1] = x[3] ** 2
        turned[0, :1] = x[1] * 10
        return np.array([np.sum(y * y), np.sum(part), np.sum(turned[1])])

    found = np.stack([mb.to_numpy(j) for j in ad.jacobian(f, A(x))])
    wanted = np.stack([(g(x + 1e-6 * e) - g(x - 1e-6 * e)) / 2e-6 for e in np.eye(4)], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-6)


@family()
def test_a_write_does_not_change_what_was_said(A):
    c = A([2.0, 3.0])

    def f(x):
        y = x * c  # the derivative is what c is now
        z = mb.exp(x)
        c[...] = 0
        before = mb.sum(y) + mb.sum(z * 1)
        z *= 100
        return before

    found = mb.to_numpy(ad.gradient(f, A([0.0, 1.0])))
    np.testing.assert_allclose(found, [3, 3 + np.e], rtol=1e-14)
    assert mb.to_numpy(c).tolist() == [0, 0]


@family()
def test_the_argument_is_not_written_to(A):
    x = A([1.0, 2.0])

    def f(x):
        x *= 3
        return mb.sum(x * x)

    np.testing.assert_array_equal(mb.to_numpy(ad.gradient(f, x)), [18, 36])
    assert mb.to_numpy(x).tolist() == [1, 2]


@st.composite
def programs(draw):
    """Statements on two arrays x and y of four elements, as text that NumPy and mirabelle run."""
    parts = ["", "[1:]", "[:-1]", "[::2]", "[::-1]", "[1:3]"]
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        to, source = draw(st.sampled_from("xy")), draw(st.sampled_from("xy"))
        kind = draw(st.integers(0, 5))
        part = draw(st.sampled_from(parts))
        c = draw(st.integers(1, 3))
        lines.append(
            [f"{to} = {source} * {c} + x * y", f"{to}{part or '[:]'} = {source}{part} * {c}",
             f"{to}{part or '[:]'} *= {source}{part}", f"{to}[{c}:{c + 1}] = {source}[0] * {source}[2]",
             f"{to}{part or '[:]'} = {c}.0", f"{to} = xp.where({source} > 1.3, {to} * {source}, x - y)"][kind]
        )  # fmt: skip
    return "\n".join(lines)


@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from([mb.HostArray, mb.RefArray]))
def test_random_programs_with_writes(text, A):
    code = compile(text, "<program>", "exec")

    def run(x, y, xp):
        scope = {"x": x, "y": y, "xp": xp}
        exec(code, scope)
        return scope["x"] * scope["y"]

    x, y = np.array([1.1, 0.7, 1.4, 0.9]), np.array([0.8, 1.2, 1.05, 1.6])
    dx, dy = np.array([1.0, -0.5, 0.25, 2.0]), np.array([0.5, 1.0, -1.0, 0.75])
    value, slope = ad.jvp(lambda x, y: run(x * 1, y * 1, mb), (A(x), A(y)), (A(dx), A(dy)))
    z = run(x * 1, y * 1, np)
    np.testing.assert_allclose(mb.to_numpy(value), z, rtol=1e-12)
    h = 1e-20
    step = run(x + 1j * h * dx, y + 1j * h * dy, _ComplexStep)
    np.testing.assert_allclose(mb.to_numpy(slope), np.imag(step) / h, rtol=1e-9, atol=1e-9)


class _ComplexStep:
    @staticmethod
    def where(condition, a, b):
        return np.where(condition, a, b)


# What people see, and errors


def test_how_dual_numbers_are_shown():
    x = mb.types.Dual(mb.HostArray([1.0, 2.0]), mb.HostArray([[1.0, 0.0]]))
    assert repr(x) == "Dual[HostArray[float64, 1]]([1., 2.]; partials [[1., 0.]])"
    assert str(x) == "[1. 2.] + ε·[[1. 0.]]"
    assert "1" in x._repr_html_() and x.directions == 1 and x.dtype == np.float64 and len(x) == 2
    assert repr(mb.types.Dual(2.0, 1.0)) == "Dual[float](2.0; partials [1.])"
    y = pickle.loads(pickle.dumps(x))
    assert repr(y) == repr(x)
    assert issubclass(type(x), mb.types.Dual[mb.HostArray]) and issubclass(type(x), mb.types.Dual)


@pytest.mark.usefixtures("trees")
def test_explaining_dual_numbers():
    x = mb.types.Dual(mb.HostArray([1.0, 2.0]), mb.HostArray([[1.0, 0.0]]))
    found = mb.explain(mb.exp(x) * 2)
    assert found.facts["values: launches"] == "1" and "exp" in found.tree and "partials" in found.tree
    assert "along 1 direction" in found.facts["result"] and "explain" in found._repr_html_()


def test_a_step_of_descent_is_recorded_once_and_replayed():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(10, 64)), rng.normal(size=(1, 64)), rng.normal(size=(1, 10))
    dx, dy, dw, db = map(mb.CuArray, (X, y, w, 0.5))

    def loss(w, b):
        return mb.sum(mb.square(w @ dx + b - dy)) / 64

    def step():
        by_w = ad.gradient(lambda w: loss(w, db), dw)
        by_b = ad.derivative(lambda b: loss(dw, b), db)
        dw[...] = dw - 0.1 * by_w
        db[...] = db - 0.1 * by_b

    step()
    dw[...], db[...] = mb.CuArray(w), 0.5
    with mb.capture() as graph:
        step()
    dw[...], db[...] = mb.CuArray(w), 0.5
    b = 0.5
    for _ in range(5):
        graph.replay()
        r = w @ X + b - y
        w, b = w - 0.1 * 2 * r @ X.T / 64, b - 0.1 * 2 * np.sum(r) / 64
    np.testing.assert_allclose(mb.to_numpy(dw), w, rtol=1e-12)
    np.testing.assert_allclose(float(db), b, rtol=1e-12)


def test_by_hand():
    x = mb.types.Dual(mb.HostArray([3.0, 4.0]), mb.HostArray([[1.0, 0.0], [0.0, 1.0]]))
    y = mb.norm(x)
    assert float(y.value) == 5
    np.testing.assert_allclose(mb.to_numpy(y.partials), [0.6, 0.8], rtol=1e-15)
    inner = ad.gradient(lambda z: mb.sum(z * z * x), mb.HostArray([1.0, 1.0]))
    assert mb.to_numpy(inner.value).tolist() == [6, 8] and mb.to_numpy(inner.partials).tolist() == [
        [2, 0],
        [0, 2],
    ]


BAD = {
    "an array as result": (lambda x: ad.gradient(lambda x: x, x), ValueError, "jacobian"),
    "a tuple as result": (lambda x: ad.gradient(lambda x: (mb.sum(x),), x), ValueError, "one number"),
    "integers": (lambda x: ad.gradient(mb.sum, mb.HostArray([1, 2])), TypeError, r"astype\(float\)"),
    "an integer": (lambda x: ad.derivative(lambda t: t, 3), TypeError, r"float\(x\)"),
    "booleans": (lambda x: ad.gradient(mb.sum, mb.HostArray([True])), TypeError, "real numbers"),
    "complex numbers": (lambda x: ad.gradient(mb.sum, mb.HostArray([1j])), TypeError, "imaginary part"),
    "NumPy's integers": (lambda x: ad.gradient(mb.sum, np.ones(2, int)), TypeError, r"float"),
    "a number": (lambda x: ad.gradient(mb.sum, 1.0), TypeError, "derivative"),
    "an array for a number": (lambda x: ad.derivative(mb.sum, x), ValueError, "jvp"),
    "float()": (lambda x: ad.gradient(lambda x: float(mb.sum(x)), x), ad.DualError, "lose its derivative"),
    "math.sin": (lambda x: ad.derivative(math.sin, 1.0), ad.DualError, r"mb\.sin"),
    "item()": (lambda x: ad.gradient(lambda x: x[0].item(), x), ad.DualError, "lose its derivative"),
    "np.asarray": (lambda x: ad.gradient(lambda x: np.asarray(x).sum(), x), ad.DualError, "lose its"),
    "to_numpy": (lambda x: ad.gradient(lambda x: mb.to_numpy(x).sum(), x), ad.DualError, "x.value"),
    "a string": (lambda x: ad.gradient(lambda x: "no", x), TypeError, "returned a str"),
    "nothing": (lambda x: ad.gradient(lambda x: None, x), TypeError, "returned a NoneType"),
    "a plain array to write to": (_write_to_plain := lambda x: ad.gradient(
        lambda x: mb.zeros(2).__setitem__(slice(0, 1), x[:1]), x), ad.DualError, "similar"),
    "an index": (lambda x: ad.gradient(lambda x: mb.HostArray([1.0, 2.0])[x], x), IndexError, "integer"),
    "a chunk": (lambda x: ad.gradient(mb.sum, x, chunk=0), ValueError, "chunk must be 1"),
    "tangents": (lambda x: ad.jvp(mb.sin, (x,), (mb.HostArray([1.0]),)), ValueError, "shape of its primal"),
    "no tuple": (lambda x: ad.jvp(mb.sin, x, x), TypeError, "takes tuples"),
    "tangents missing": (lambda x: ad.jvp(mb.sin, (x,), ()), ValueError, "1 primals"),
    "integer logic": (lambda x: ad.gradient(lambda x: mb.sum(mb.gcd(x, 2)), x), TypeError, "gcd"),
    "partials that do not fit": (lambda x: mb.types.Dual(x, x), ValueError, "one axis more"),
    "a dual of integers": (lambda x: mb.types.Dual(mb.HostArray([1]), [[1.0]]), TypeError, "real numbers"),
    "a hessian of several": (lambda x: ad.hessian(lambda p: mb.sum(p[0]), (x, x)), TypeError, "concat"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_an_error_that_says_what_to_do(what):
    call, kind, text = BAD[what]
    x = mb.HostArray([1.0, 2.0])
    with pytest.raises(kind, match=text):
        call(x)
    assert mb.to_numpy(ad.gradient(lambda x: mb.sum(x * x), x)).tolist() == [2, 4]  # nothing is left behind


def test_tags_mixed_up():
    kept = []
    x = mb.HostArray([1.0, 2.0])
    ad.gradient(lambda x: kept.append(x) or mb.sum(x), x)
    with pytest.raises(
        ad.DualError, match=r"gradient in test_autodiff\.py:\d+ is used after that has finished"
    ):
        ad.gradient(lambda x: mb.sum(x * kept[0]), x)
    with pytest.raises(ad.DualError, match="has finished"):
        kept[0] + 1
    with pytest.raises(ad.DualError, match="does not pickle"):
        pickle.dumps(kept[0])
    one, two = (mb.types.Dual(x, mb.HostArray(np.ones((n, 2)))) for n in (1, 2))
    with pytest.raises(ad.DualError, match=r"(1 and of 2|2 and of 1) directions"):
        one * two
    with pytest.raises(ad.DualError, match="cannot hold dual numbers"):
        ad.gradient(lambda y: mb.sum(mb.ext.assign(one, y)), x)
    # A result that was kept from a finished differentiation.
    inner = []
    ad.derivative(lambda t: inner.append(t * t) or t, 1.0)
    with pytest.raises(ad.DualError, match="has finished"):
        ad.derivative(lambda t: inner[0], 1.0)


def test_holding_constant():
    x = mb.HostArray([1.0, 2.0])
    assert mb.to_numpy(ad.gradient(lambda x: mb.sum(x * ad.value(x)), x)).tolist() == [1, 2]
    assert ad.value(3.0) == 3.0 and ad.value(x) is x


def test_branches_and_loops_are_ordinary_code():
    def f(t):
        total = 0.0
        for k in range(1, 6):
            total = total + t**k / math.factorial(k) if t > 0 else total - t
        while abs(total) > 10:
            total = total / 2
        return total

    assert math.isclose(ad.derivative(f, 1.0), sum(1 / math.factorial(k - 1) for k in range(1, 6)))
    assert ad.derivative(f, -1.0) == -5.0


# Rules


def test_a_rule_for_a_function_of_arrays():
    @ad.differentiable
    def area(w, h, *, scale=1.0):
        return w * h * scale

    x = mb.HostArray([2.0, 3.0])
    assert mb.to_numpy(ad.gradient(lambda x: mb.sum(area(x, 2.0)), x)).tolist() == [2, 2]
    seen = []

    @ad.rule(area)
    def _(primals, tangents, *, scale=1.0):
        seen.append(tangents)
        w, h = primals
        dw = 0 if tangents[0] is None else tangents[0] * h
        dh = 0 if tangents[1] is None else tangents[1] * w
        return area(w, h, scale=scale), (dw + dh) * scale * 10

    assert mb.to_numpy(ad.gradient(lambda x: mb.sum(area(x, 2.0, scale=3.0)), x)).tolist() == [60, 60]
    assert len(seen) == 2 and seen[0][1] is None
    assert mb.to_numpy(ad.gradient(lambda x: mb.sum(area(x, x)), x)).tolist() == [40, 60]
    assert mb.to_numpy(area(x, 2.0)).tolist() == [4, 6]


def test_a_rule_for_all_directions_at_once():
    @ad.differentiable
    def cubed(x):
        return x**3

    shapes = []

    @ad.rule(cubed, batched=True)
    def _(primals, tangents):
        shapes.append(tangents[0].shape)
        return cubed(*primals), 3 * primals[0] ** 2 * tangents[0]

    x = mb.HostArray([1.0, 2.0])
    assert mb.to_numpy(ad.jacobian(cubed, x)).tolist() == [[3, 0], [0, 12]]
    assert shapes == [(2, 2)]
    assert mb.to_numpy(ad.hessian(lambda x: mb.sum(cubed(x)), x)).tolist() == [[6, 0], [0, 12]]


def test_a_rule_for_a_function_of_several_results():
    @ad.differentiable
    def both(x):
        return x + 1, x * 2

    @ad.rule(both)
    def _(primals, tangents):
        return both(*primals), (tangents[0], None)

    x = mb.HostArray([1.0, 2.0])
    first, second = ad.jacobian(both, x)
    assert mb.to_numpy(first).tolist() == [[1, 0], [0, 1]] and not mb.to_numpy(second).any()


@pytest.mark.parametrize("name", sorted(set(DERIVATIVES) - {"cast", "copy", "complex"}))
def test_pairs_of_functions_agree_with_the_chain_rule(name):
    """The value computed together with derivatives has the bits of the value alone."""
    args = [mb.HostArray(sample(name, second=bool(i))) for i in range(verb(name).core.arity)]
    if name == "ldexp":
        args[1] = mb.HostArray(np.arange(5))
    plain = mb.to_numpy(verb(name)(*args))
    value, _ = ad.jvp(lambda x: verb(name)(x, *args[1:]), args[:1], (mb.ones_like(args[0]),))
    np.testing.assert_array_equal(mb.to_numpy(value), plain)


def test_orders_of_operands_do_not_matter():
    x = mb.HostArray([1.0, 2.0, 3.0])
    parts = [lambda x: x * 2, lambda x: mb.sin(x), lambda x: x[::-1] * 1.0, lambda x: mb.exp(x)]
    found = []
    for order in itertools.permutations(parts):
        found.append(mb.to_numpy(ad.gradient(lambda x, order=order: mb.sum(sum(p(x) for p in order)), x)))
    np.testing.assert_allclose(found, [found[0]] * len(found), rtol=1e-14)


@pytest.mark.parametrize("f", [
    lambda v, w: v * w, lambda v, w: w * v, lambda v, w: v / w, lambda v, w: w / v, lambda v, w: v - w,
    lambda v, w: mb.maximum(v, w) * v, lambda v, w: v**w, lambda v, w: mb.where(w > 1, v * v, w),
    lambda v, w: mb.sort(v * w) * w, lambda v, w: mb.hypot(v, w), lambda v, w: v * w[0] + np.array(2.0) * v,
])  # fmt: skip
def test_constants_that_are_numpys_have_the_derivatives_of_ours(f):
    """Once: a NumPy array became a partial as it was, and was read as a number."""
    w, v = np.array([1.0, -2.0, 3.0, 0.5]), mb.HostArray([0.5, 2.0, 1.5, 4.0])
    ours = ad.gradient(lambda v: mb.sum(f(v, mb.HostArray(w))), v)
    assert_same(ad.gradient(lambda v: mb.sum(f(v, w)), v), mb.to_numpy(ours))
    compiled = mb.compile(lambda v: ad.gradient(lambda u: mb.sum(f(u, w)), v))
    np.testing.assert_allclose(mb.to_numpy(compiled(v)), mb.to_numpy(ours), rtol=1e-14)
