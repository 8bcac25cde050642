"""Derivatives of users' scalar functions that are broadcast: traced, by a rule, or written from the source."""

import functools
import gc
import inspect
import linecache
import math
import operator
import weakref

import numpy as np
import pytest
from compare import assert_closed, assert_same
from kinds import PLAIN, SINGLE

import mirabelle as mb
from mirabelle.arraytypes.duals import tangents
from mirabelle.arraytypes.duals.traced import straight
from mirabelle.arraytypes.usercode import userfunctions

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)

POINTS = np.array([0.4, 0.9, 1.7, 2.6])
SCALE = 3.0
TABLE = (1.5, -0.5, 0.25, 2.0)
DUAL = None


def square(v):
    return v * v


def clamped(v, low=0.5, high=2.0):
    return low if v < low else high if v > high else v


def pair(v, w):
    return v * w, v - w


# Functions of straight lines: they are traced.


def polynomial(v):
    """A docstring is no statement."""
    y = 2 * v**3
    y -= v / 4
    a, b = y, v
    a, b = b, a
    return a * b + 1.5


def mathematics(v):
    return math.sin(v) * math.exp(-v) + math.log(v + 1) ** 2 + math.atan2(v, 2.0) + math.sqrt(v)


def numpys(v):
    return np.tanh(v) + np.log1p(v) * np.hypot(v, 1.0) + np.pi * np.floor(v) + np.maximum(v, 1.0)


def with_helpers(v):
    return square(math.cos(v)) - square(v) * SCALE


def with_operators(v):
    return operator.mul(operator.add(v, 1.0), abs(v)) + pow(v, 2.5) + 2.0**v


STRAIGHT = [polynomial, mathematics, numpys, with_helpers, with_operators, lambda v: v, lambda v: -(v**-1)]


# Functions with branches and loops: their tangents are written.


def branches(v):
    if v > 2.0:
        return v**2
    elif v > 1.0:
        y = math.exp(v)
    else:
        y = 1.0 / v
        y *= 3
    return y - v


def ternary(v):
    return (v * v if v < 1 else 2 * v - 1) * (3.0 if 0.5 < v < 2 else v)


def newton(v):
    r = v
    for _ in range(25):
        r = 0.5 * (r + v / r)
    return r


def horner(v):
    total = 0
    for c in TABLE:
        total = total * v + c
    return total


def halving(v):
    n, y = 0, v * v * 90
    while y > 1.0:
        y /= 2
        n += 1
        if n == 100:
            break
    else:
        y = y + n * v
    return y * n


def series(v):
    term, total = v, v
    k = 1
    while abs(term) > 1e-17:
        term *= -v * v / ((2 * k) * (2 * k + 1))
        total += term
        k += 1
    return total


def early(v):
    for i in range(10):
        v = v * 1.5
        if i == 3:
            continue
        if v > 5 and not i % 2:
            return v + i
    return v


def extremes(v):
    return max(v, 1.0) * min(v * v, 2.0, 3 - v) + max(0.0, v - 1)


def calls(v):
    return clamped(v) + clamped(v, 0.7) * clamped(v, high=1.0) + (square(v) if v > 1 else float(v))


def pairs(v):
    a, b = pair(v, 2.0) if v > 1 else pair(v * v, v)
    t = (a, b, 1.0)
    return t[0] * t[1] + v % 0.75


def swaps(v):
    a, b = 0.0, v
    for _ in range(6):
        a, b = b, a + b / 2
    c = d = a
    return c * d if v else 0.0


def steps(v):
    return int(v * 2) * v + round(v) + math.floor(v) + (v > 1) + np.sign(v) * v + math.trunc(v)


def parts(v):
    m, e = math.frexp(v)
    if v > 0:
        q, r = divmod(v, 0.75)
        return r * r + q * v + m * m * e
    return v


def shadowed(v):
    t, t_dot, np_ = v, 2.0, 1
    v_dot = t * t_dot if v > np_ else t + t_dot
    return v_dot * t


def annotated(v: float) -> float:
    y: float = v * v
    k: int
    k = 3 if v > 1 else 2
    return y**k


def special(v):
    return math.lgamma(v + 1) + math.erf(v) if v > 1 else math.gamma(v + 1)


BRANCHED = [
    branches, ternary, newton, horner, halving, series, early, extremes, calls, pairs, swaps, steps, parts,
    shadowed, annotated, special,
]  # fmt: skip


def slope(f, v, h=1e-6):
    return (f(v + h) - f(v - h)) / (2 * h)


def curvature(f, v, h=3e-4):
    return (-f(v + 2 * h) + 16 * f(v + h) - 30 * f(v) + 16 * f(v - h) - f(v - 2 * h)) / (12 * h * h)


def along_ones(f, x):
    """Value and derivative of an elementwise function."""
    return mb.autodiff.jvp(f, (x,), (mb.ones_like(x),))


def second(f, x):
    return along_ones(lambda x: along_ones(f, x)[1], x)[1]


names = [f"{f.__name__}{i}" if f.__name__ == "<lambda>" else f.__name__ for i, f in enumerate(STRAIGHT)]


@pytest.mark.parametrize("f", STRAIGHT, ids=names)
def test_straight_functions_are_traced(f):
    assert straight(f, ()) is not None


@pytest.mark.parametrize("f", BRANCHED, ids=lambda f: f.__name__)
def test_others_are_not(f):
    assert straight(f, ()) is None


@plain
@pytest.mark.parametrize("f", STRAIGHT + BRANCHED, ids=names + [f.__name__ for f in BRANCHED])
def test_values_and_first_derivatives(f, kind):
    x = kind.family(POINTS)
    y, dy = along_ones(lambda x: mb.broadcast(f, x), x)
    assert_same(y, np.array([f(v) for v in POINTS.tolist()]), rtol=1e-14)
    assert_same(dy, np.array([slope(f, v) for v in POINTS.tolist()]), rtol=2e-8, atol=2e-8)
    assert_closed(mb.materialize(y), kind)
    assert_closed(mb.materialize(dy), kind)


TWICE = [
    polynomial,
    mathematics,
    with_operators,
    branches,
    ternary,
    newton,
    series,
    extremes,
    pairs,
    parts,
    special,
]


@pytest.mark.parametrize("f", TWICE, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    x = mb.HostArray(POINTS)
    expected = np.array([curvature(f, v) for v in POINTS.tolist()])
    assert_same(second(lambda x: mb.broadcast(f, x), x), expected, rtol=1e-6, atol=1e-6)


# Operands: several, from around the function, at their defaults


@plain
def test_several_operands(kind):
    def f(a, b, n):
        return a * b if a > b else b**n / a

    a, b, n = POINTS, POINTS[::-1].copy(), np.array([1, 2, 3, 1])
    x, y, m = kind.family(a), kind.family(b), kind.family(n)
    ga, gb = mb.autodiff.gradient(lambda p: mb.sum(mb.map(f, p[0], p[1], m)), (x, y))
    assert_same(ga, np.where(a > b, b, -(b**n) / a**2), rtol=1e-14)
    assert_same(gb, np.where(a > b, a, n * b ** (n - 1) / a), rtol=1e-14)
    assert_closed(ga, kind)
    column = x.reshape(4, 1)
    assert_same(
        mb.autodiff.gradient(lambda c: mb.sum(mb.broadcast(f, c, y, 2)), column),
        np.where(a[:, None] > b, b, -(b**2) / a[:, None] ** 2).sum(axis=1, keepdims=True),
        rtol=1e-13,
    )


@plain
def test_dual_numbers_from_around_the_function(kind):
    x = kind.family(POINTS)

    def straight_one(a):
        return mb.sum(mb.broadcast(lambda v: v * a + a * a, x))

    def branching(a):
        return mb.sum(mb.broadcast(lambda v: v * a if v > 1 else a * a, x))

    assert float(mb.autodiff.derivative(straight_one, 3.0)) == pytest.approx(POINTS.sum() + 24)
    assert float(mb.autodiff.derivative(branching, 3.0)) == pytest.approx(POINTS[POINTS > 1].sum() + 12)
    weights = lambda w: mb.sum(mb.broadcast(lambda v: v * w if w > 1 else w * w, x))
    expected = np.where(POINTS > 1, POINTS, 2 * POINTS)
    assert_same(mb.autodiff.gradient(weights, kind.family(POINTS)), expected, rtol=1e-14)


def test_dual_numbers_in_a_module(monkeypatch):
    x = mb.HostArray(POINTS)

    def f(a):
        monkeypatch.setitem(globals(), "DUAL", a)
        return mb.sum(mb.broadcast(lambda v: DUAL * v if v > 1 else DUAL, x))

    assert mb.autodiff.derivative(f, 2.0) == pytest.approx(2 + POINTS[POINTS > 1].sum())


def test_defaults_and_partials():
    x = mb.HostArray(POINTS)
    by = lambda f, *more: mb.autodiff.gradient(lambda x: mb.sum(mb.broadcast(f, x, *more)), x)
    assert by(clamped).tolist() == [0, 1, 1, 0]
    assert by(clamped, 0.0).tolist() == [1, 1, 1, 0]
    assert by(clamped, 0.0, 5.0).tolist() == [1, 1, 1, 1]
    assert by(functools.partial(clamped, 1.0, 0.5)).tolist() == [1, 1, 0, 0]
    assert by(functools.partial(pair_product, 3.0)).tolist() == [3, 3, 3, 3]
    assert mb.autodiff.gradient(
        lambda t: mb.sum(mb.broadcast(functools.partial(pair_product, 2.0), t)), x
    ).tolist() == [2, 2, 2, 2]


def pair_product(a, b):
    return a * b if a > 1 else b


def test_functions_that_numba_compiled():
    import numba

    inner = numba.njit(lambda v: v * v if v > 1 else v)
    outer = numba.njit(lambda v: inner(v) * 2)
    x = mb.HostArray(POINTS)
    expected = np.where(POINTS > 1, 2 * POINTS, 1.0)
    assert_same(along_ones(lambda x: mb.broadcast(inner, x), x)[1], expected)
    assert_same(along_ones(lambda x: mb.broadcast(outer, x), x)[1], 2 * expected)
    assert_same(along_ones(lambda x: mb.broadcast(lambda v: inner(v) if v > 0 else v, x), x)[1], expected)


def test_lambdas_of_one_line():
    x = mb.HostArray(POINTS)
    f = lambda x: (
        mb.broadcast(lambda v: v * 2 if v > 1 else v, x) + mb.broadcast(lambda v: v if v > 1 else -v, x)
    )
    assert along_ones(f, x)[1].tolist() == [0, 0, 3, 3]
    assert along_ones(
        lambda x: mb.broadcast(
            (lambda k: lambda v: v * k if v > 1 else v)(4.0),
            x,
        ),
        x,
    )[1].tolist() == [1, 1, 4, 4]


@plain
def test_several_results(kind):
    x = kind.family(POINTS)
    for f in (
        lambda v, w: (v * w, v > 1, w - v, 1),
        lambda v, w: (v * w if v else w, v > 1, w - v, 1),
    ):
        y, dy = mb.autodiff.jvp(lambda x: mb.broadcast(f, x, 3.0), (x,), (mb.ones_like(x),))
        assert [p.dtype.kind for p in y] == ["f", "b", "f", "i"]
        assert_same(dy[0], np.full(4, 3.0))
        assert_same(dy[2], np.full(4, -1.0))
        assert not mb.any(dy[1]) and not mb.any(dy[3])
        assert_closed(mb.materialize(y[0]), kind)


@plain
def test_reductions_of_mapped_numbers(kind):
    x = kind.family(POINTS)
    for f in (polynomial, newton):
        expected = np.array([slope(f, v) for v in POINTS.tolist()])
        for total in (
            lambda x, f=f: mb.mapreduce(f, mb.add, x),
            lambda x, f=f: mb.mapreduce(f, mb.add, x, init=2.0),
            lambda x, f=f: mb.sum(mb.map(f, x)),
        ):
            assert_same(mb.autodiff.gradient(total, x), expected, rtol=1e-8, atol=1e-8)
    assert_same(
        mb.autodiff.derivative(lambda a: mb.mapreduce(lambda v: v * a if v > 1 else a, mb.add, x), 2.0),
        np.float64(POINTS[POINTS > 1].sum() + 2),
        rtol=1e-15,
    )


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_they_run_on_every_kind(kind):
    values = kind.sample(np.tile(POINTS, (3, 1)))
    x = kind.make(values)
    for f in (square, branches):
        dy = along_ones(lambda x, f=f: mb.broadcast(f, x), x)[1]
        expected = np.array([slope(f, v) for v in values.ravel().tolist()]).reshape(values.shape)
        assert_same(dy, expected, rtol=1e-8)
        assert_closed(mb.materialize(dy), kind)


def test_structured_arrays():
    values = np.array([[0.5, 2.0], [2.0, 3.0]])
    for f in (clamped, square):
        total = lambda x, f=f: mb.sum(mb.broadcast(f, x))
        slopes = np.array([[slope(f, v) for v in row] for row in values.tolist()])
        gradient = mb.autodiff.gradient(total, mb.Diagonal(mb.HostArray(POINTS)))
        assert isinstance(gradient, mb.Diagonal)
        assert_same(gradient.parts[0], np.array([slope(f, v) for v in POINTS.tolist()]), rtol=1e-8)
        gradient = mb.autodiff.gradient(total, mb.Symmetric(mb.HostArray(values + 0.1)))
        slopes = np.array([[slope(f, v + 0.1) for v in row] for row in values.tolist()])
        assert isinstance(gradient, mb.Symmetric)
        # (What is off the diagonal is there twice.)
        assert_same(mb.dense(gradient), np.where(np.eye(2), slopes, 2 * slopes), rtol=1e-8)
    assert_same(mb.dense(mb.broadcast(square, mb.Symmetric(mb.HostArray(values)))), values * values)


# Dtypes


@plain
def test_singles_stay_single(kind):
    a = POINTS.astype("f4")
    for f in (lambda v: v * v, lambda v: v * v if v > v * v else math.exp(v)):
        y, dy = along_ones(lambda x, f=f: mb.broadcast(f, x), kind.family(a))
        assert (y.dtype, dy.dtype) == ("f4", "f4")
        assert_same(dy, np.array([slope(f, v) for v in a.tolist()], "f4"), rtol=1e-5)
    made = tangents.tangent_function(branches, (0,), unit=True, numbers="single")
    assert "np.float32(1.0)" in inspect.getsource(made)
    f = lambda v: v**3 if v > 1 else math.sqrt(v) / v
    single = mb.broadcast(tangents.tangent_function(f, (0,), unit=True, numbers="single"), kind.family(a))
    assert single.dtype == "f4"
    # Beside a literal, Numba's numbers are double, differentiated or not.
    y, dy = along_ones(lambda x: mb.broadcast(lambda v: v * 2.0, x), kind.family(a))
    assert (y.dtype, dy.dtype) == ("f8", "f8")


def test_complex_numbers():
    z = mb.HostArray(POINTS)
    f = lambda v: abs(v * (1 + 2j)) ** 2 if v > 1 else (v * 1j).imag * (v * v * (1 + 1j)).real
    _, dy = along_ones(lambda x: mb.broadcast(f, x), z)
    assert_same(dy, np.where(POINTS > 1, 10 * POINTS, 3 * POINTS**2), rtol=1e-14)
    w = mb.HostArray(POINTS + 1j)
    g = lambda v: v * v if v.real > 1 else v.conjugate() * v
    _, dy = mb.autodiff.jvp(lambda x: mb.broadcast(g, x), (w,), (mb.ones_like(w),))
    assert_same(dy, np.where(POINTS > 1, 2 * (POINTS + 1j), 2 * POINTS), rtol=1e-14)


def test_constants_and_copies():
    x = mb.HostArray(POINTS)
    for f in (lambda v: 1.5, lambda v: 1.5 if v > 1 else 0.5, lambda v: v > 1, lambda v: math.floor(v)):
        y, dy = along_ones(lambda x, f=f: mb.broadcast(f, x), x)
        assert_same(y, np.array([f(v) for v in POINTS]))
        assert not mb.any(dy)

    def written(v):
        same = mb.broadcast(lambda u: u, v)
        v[...] = 0.0
        return same

    assert_same(along_ones(lambda v: written(mb.copy(v)), x)[0], POINTS)
    first = lambda u, v: u
    assert mb.broadcast(first, mb.types.Dual(x, mb.ones((1, 4))), mb.zeros((2, 1))).shape == (2, 4)


# Nesting


def test_derivatives_nest_without_mixing():
    def inner(a, f):
        return mb.autodiff.derivative(lambda b: mb.sum(mb.broadcast(f, b * mb.HostArray([1.0, 2.0]), a)), 1.5)

    for f, expected in (
        (lambda u, a: u * a * a, 4.0 * 3),  # d/da (a² Σ w) with weights 1 and 2
        (lambda u, a: u * a * a if u > 0 else a, 4.0 * 3),
    ):
        assert mb.autodiff.derivative(lambda a, f=f: inner(a, f), 2.0) == pytest.approx(expected)
    third = lambda f: mb.autodiff.derivative(
        lambda x: mb.autodiff.derivative(lambda y: mb.autodiff.derivative(f, y), x), 1.3
    )
    assert float(third(lambda t: mb.broadcast(ternary_cube, t))) == pytest.approx(math.exp(1.3), rel=1e-12)


def ternary_cube(v):
    return math.exp(v) if v > 1 else v**3


def test_hessians_of_several_operands():
    def f(a, b):
        if a > 1:
            return a * a * b
        return math.sin(a * b)

    a, b = 1.7, 0.6
    h = mb.autodiff.hessian(lambda x: mb.sum(mb.broadcast(f, x[:1], x[1:])), mb.HostArray([a, b]))
    assert_same(h, np.array([[2 * b, 2 * a], [2 * a, 0]]), rtol=1e-14)
    a = 0.7
    h = mb.autodiff.hessian(lambda x: mb.sum(mb.broadcast(f, x[:1], x[1:])), mb.HostArray([a, b]))
    s, c = math.sin(a * b), math.cos(a * b)
    assert_same(h, np.array([[-b * b * s, c - a * b * s], [c - a * b * s, -a * a * s]]), rtol=1e-13)


# Rules


def softplus(v):
    return math.log1p(math.exp(v))


def product(u, v):
    return u * v


@mb.autodiff.rule(softplus)
def _(v):
    return 1 / (1 + mb.exp(-v))


@plain
def test_rules(kind):
    x = kind.family(POINTS)
    expected = 1 / (1 + np.exp(-POINTS))
    y, dy = along_ones(lambda x: mb.broadcast(softplus, x), x)
    assert_same(y, np.log1p(np.exp(POINTS)), rtol=1e-14)
    assert_same(dy, expected, rtol=1e-14)
    assert_same(second(lambda x: mb.broadcast(softplus, x), x), expected * (1 - expected), rtol=1e-13)
    # And where the function is called by another.
    f = lambda v: softplus(v) if v > 1 else softplus(2 * v)
    expected = np.where(POINTS > 1, expected, 2 / (1 + np.exp(-2 * POINTS)))
    assert_same(along_ones(lambda x: mb.broadcast(f, x), x)[1], expected, rtol=1e-14)


def test_rules_of_two_operands_and_new_ones():
    x = mb.HostArray(POINTS)
    around = lambda v: product(v, 3.0) if v > 0 else v
    total = lambda x: mb.sum(mb.broadcast(product, x, 2.0) + mb.broadcast(around, x))
    assert mb.autodiff.gradient(total, x).tolist() == [5, 5, 5, 5]
    mb.autodiff.rule(product)(lambda u, v: (10 * v, None))
    assert mb.autodiff.gradient(total, x).tolist() == [50, 50, 50, 50]
    mb.autodiff.rule(product)(lambda u, v: v)
    with pytest.raises(mb.autodiff.DualError, match=r"1 derivative.*2 operand"):
        mb.autodiff.gradient(lambda x: mb.sum(mb.broadcast(product, x, 2.0)), x)
    with pytest.raises(mb.autodiff.DualError, match="1 derivatives, for 2 operands"):
        mb.autodiff.gradient(lambda x: mb.sum(mb.broadcast(around, x)), x)


def test_a_rule_gives_nothing_for_what_is_around_the_function():
    x = mb.HostArray(POINTS)

    def f(a):
        g = lambda v: v * a
        mb.autodiff.rule(g)(lambda v: v)
        return mb.sum(mb.broadcast(g, x))

    with pytest.raises(mb.autodiff.DualError, match="Make that a parameter"):
        mb.autodiff.derivative(f, 2.0)


# What it costs


@plain
def test_value_and_gradient_are_one_kernel_each(kind, monkeypatch, many):
    monkeypatch.setattr(mb.settings, "brief_size", 0)  # (trees as long as those of many elements)
    x = kind.family(POINTS)
    for f in (mathematics, branches):

        def both(f=f):
            value, slope = mb.autodiff.value_and_gradient(lambda x: mb.sum(mb.broadcast(f, x)), x)
            mb.materialize(slope)
            return mb.materialize(value)

        both()
        with mb.count() as c:
            both()
        assert c.launches == 2
        assert c.compilations == 0
    dual = mb.types.Dual(x, mb.ones_like(x).reshape(1, -1))
    for f in (square, branches):
        with mb.count() as c:
            y = mb.broadcast(f, dual) * 2
            mb.materialize(y.partials)
        assert (c.launches, c.temporaries) == (1, 0)


def test_a_function_defined_anew_is_worked_out_once():
    userfunctions.forget()  # (each 32 functions older ones are dropped, and what was made of all is made again)
    x = mb.HostArray(POINTS)

    def call(k):
        return mb.autodiff.gradient(
            lambda x: mb.sum(mb.broadcast(lambda v: v * k if v > 1 else v, x)), x
        ).tolist()

    assert call(2.0) == [1, 1, 2, 2]
    known = len(linecache.cache)
    with mb.count() as c:
        assert call(5.0) == [1, 1, 5, 5]
    assert c.compilations == 0
    assert len(linecache.cache) == known
    gc.collect()
    assert call(6.0) == [1, 1, 6, 6]


def test_what_a_function_closes_over_is_not_kept():
    def differentiated():
        w = mb.HostArray(POINTS)
        dual = mb.types.Dual(w + 0.0, mb.ones((1, 4)))
        for f in (lambda v: v * w + 1.0, lambda v: v * w if v > 1 else w):
            mb.materialize(mb.broadcast(f, dual).partials)
        return weakref.ref(w)

    found = differentiated()
    gc.collect()
    assert found() is None


def test_the_tangent_can_be_read():
    made = tangents.tangent_function(square, (0,), unit=True)
    text = inspect.getsource(made)
    assert made.__name__ == "square_by_v" and "v_dot = 1.0" in text
    assert made(3.0) == 6.0
    assert tangents.tangent_function(steps, (0,))(1.3, 1.0) == pytest.approx(3.0)
    assert tangents.tangent_function(math_floor, (0,)) is None


def math_floor(v):
    return math.floor(v)


# Errors


def buffered(v):
    y = np.zeros(2)
    y[0] = v
    return y[0]


def looping(v):
    total = 0.0
    for u in (v, 2 * v):
        total += u
    return total


def either(v):
    return v or 1.0


def counted(v):
    kept = [v]
    kept.append(v)
    return len(kept) * 1.0


def nested(v):
    def inner(u):
        return u * v

    return inner(2.0)


def ping(v):
    return v if v < 1 else pong(v - 1)


def pong(v):
    return v if v < 1 else ping(v - 1)


def hooked(v):
    return KNOWN_TO_NUMBA(v) if v > 1 else v


def outside(v):
    return held() + v if v > 1 else v


def held():
    return DUAL


KNOWN_TO_NUMBA = np.sinc


@pytest.mark.parametrize("f", [buffered, looping, either, counted, nested, hooked], ids=lambda f: f.__name__)
def test_what_cannot_be_differentiated(f):
    x = mb.HostArray(POINTS)
    first = f.__code__.co_firstlineno
    last = first + len(inspect.getsource(f).splitlines())
    with pytest.raises(mb.autodiff.DualError, match=rf"@mb.autodiff.rule\({f.__name__}\)") as e:
        along_ones(lambda x: mb.broadcast(f, x), x)
    message = str(e.value)
    line = int(message.split("line ")[1].split(",")[0])
    assert first < line < last
    assert "test_autodiff_userfunctions.py" in message


def test_functions_that_call_each_other():
    with pytest.raises(mb.autodiff.DualError, match="calls itself"):
        tangents.tangent_function(ping, (0,))


def test_what_has_no_source():
    scope = {}
    exec("def f(v):\n    return v * v if v > 1 else v\n", scope)
    with pytest.raises(mb.autodiff.DualError, match="its source is not known"):
        along_ones(lambda x: mb.broadcast(scope["f"], x), mb.HostArray(POINTS))


def test_helpers_that_read_dual_numbers_from_around_them(monkeypatch):
    def f(a):
        monkeypatch.setitem(globals(), "DUAL", a)
        return mb.sum(mb.broadcast(outside, a * mb.HostArray(POINTS)))

    with pytest.raises(mb.MirabelleError):
        mb.autodiff.derivative(f, 2.0)


def test_folding_with_a_function_of_a_user_is_refused():
    x = mb.types.Dual(mb.HostArray(POINTS), mb.ones((1, 4)))
    with pytest.raises(mb.autodiff.DualError, match=r"mb\.add"):
        mb.mapreduce(square, lambda a, b: a + b, x, init=0.0)
    with pytest.raises(mb.autodiff.DualError, match=r"mb\.add"):
        mb.reduce(lambda a, b: a + b, x, init=0.0)


def test_functions_that_do_not_compile_say_so():
    x = mb.HostArray(POINTS)
    with pytest.raises(mb.UserFunctionError, match="cannot be compiled"):
        along_ones(lambda x: mb.broadcast(lambda v: v.nothing if v > 1 else v, x), x)
