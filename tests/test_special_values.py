"""The array API standard's special cases: a test for each line of the tables in special_values.py."""

import operator

import numpy as np
import pytest
from special_values import (
    BINARY,
    COMPLEX,
    COMPLEX_TO_REAL,
    CONJUGATE,
    EVERY,
    TURNED,
    UNARY,
    cases,
    check,
    operands,
)

import mirabelle as mb

PLACES = (mb.HostArray, mb.RefArray, mb.CuArray)
OPERATORS = {
    "abs": (abs,),
    "add": (operator.add, operator.iadd),
    "subtract": (operator.sub, operator.isub),
    "multiply": (operator.mul, operator.imul),
    "divide": (operator.truediv, operator.itruediv),
    "floor_divide": (operator.floordiv, operator.ifloordiv),
    "remainder": (operator.mod, operator.imod),
    "pow": (operator.pow, operator.ipow),
    "equal": (operator.eq,),
    "greater": (operator.gt,),
    "greater_equal": (operator.ge,),
    "less": (operator.lt,),
    "less_equal": (operator.le,),
    "not_equal": (operator.ne,),
}


def lines(table):
    return pytest.mark.parametrize(
        ("name", "line"), cases(table), ids=[f"{f}({line})" for f, line in cases(table)]
    )


def complex_numbers(parts, dtype):
    z = np.empty(parts[0].shape, np.complex128)
    z.real, z.imag = parts
    return z.astype(dtype)


def check_real(name, line, places=PLACES):
    for dtype in (np.float32, np.float64):
        xs = [x.astype(dtype) for x in operands(line)]
        for family in places:
            for f in (getattr(mb, name), *OPERATORS.get(name, ())):
                check(line, xs, mb.to_numpy(f(*map(family, xs))))


def check_complex(name, line, places=PLACES):
    for dtype in (np.complex64, np.complex128):
        z = complex_numbers(operands(line), dtype)
        for family in places:
            check(line, [z.real, z.imag], mb.to_numpy(getattr(mb, name)(family(z))))


@lines(UNARY)
def test_unary(name, line):
    check_real(name, line)


@lines(BINARY)
def test_binary(name, line):
    check_real(name, line)


@lines({**COMPLEX, **{f"{name}": text for name, text in COMPLEX_TO_REAL.items()}})
def test_complex(name, line):
    check_complex(name, line)


def test_compiled(hot):
    for name, line in cases(UNARY) + cases(BINARY):
        check_real(name, line, [mb.HostArray])
    for name, line in cases(COMPLEX) + cases(COMPLEX_TO_REAL):
        check_complex(name, line, [mb.HostArray])


@pytest.mark.parametrize("name", BINARY)
def test_numbers_by_themselves_are_as_in_arrays(name):
    """0-d arrays and Python's numbers, which NumPy computes in other ways than arrays."""
    pairs = [(a, b) for a in (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan) for b in (0.5, -2.0, np.inf, -0.0)]
    a, b = np.array(pairs).T
    f = getattr(mb, name)
    together = mb.to_numpy(f(mb.HostArray(a), mb.HostArray(b)))
    for i, (x, y) in enumerate(pairs):
        forms = [(np.array(x), np.array(y)), (np.array(x), y), (x, np.array(y))]
        if name == "pow":  # x ** 0.5 with a literal is the square root, as NumPy's is
            forms.pop(1)
        for u, v in forms:
            got = mb.to_numpy(f(*(mb.HostArray(w) if isinstance(w, np.ndarray) else w for w in (u, v))))
            np.testing.assert_array_equal(got, together[i], err_msg=f"{name}({u!r}, {v!r})")
            assert np.isnan(got) or np.signbit(got) == np.signbit(together[i])


def every_complex(dtype):
    return complex_numbers([g.reshape(-1) for g in np.meshgrid(EVERY, EVERY)], dtype)


def same_part(a, b):
    """Equal, where signs of zeros that no case settles do not count."""
    return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & np.isinf(b)) | np.isclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugates_have_conjugate_values(name):
    z = every_complex(np.complex128)
    f = getattr(mb, name)
    upper, lower = mb.to_numpy(f(mb.HostArray(z))), mb.to_numpy(f(mb.HostArray(z.conj())))
    # On the branch cuts the two sides differ; beside NaN no sign is settled.
    inside = (z.imag != 0) & ~np.isnan(z.imag)
    assert same_part(upper.real, lower.real)[inside].all() and same_part(upper.imag, -lower.imag)[inside].all()


@pytest.mark.parametrize("name", TURNED)
def test_circular_functions_are_hyperbolic_ones_turned(name):
    z = every_complex(np.complex128)
    z = z[np.abs(np.where(np.isfinite(z), z, 0)) < 50]
    got = mb.to_numpy(getattr(mb, name)(mb.HostArray(z)))
    iz = complex_numbers([-z.imag, z.real], np.complex128)
    turned = mb.to_numpy(getattr(mb, TURNED[name])(mb.HostArray(iz)))
    real, imag = (turned.real, turned.imag) if name == "cos" else (turned.imag, -turned.real)
    cut = (z.imag == 0) | (z.real == 0) if name.startswith("a") else np.zeros(z.shape, bool)
    assert same_part(got.real, real)[~cut].all() and same_part(got.imag, imag)[~cut].all()


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_are_natural_ones_scaled(name):
    z = every_complex(np.complex128)
    base = np.log(2 if name == "log2" else 10)
    got, natural = (mb.to_numpy(f(mb.HostArray(z))) for f in (getattr(mb, name), mb.log))
    assert same_part(got.real, natural.real / base).all() and same_part(got.imag, natural.imag / base).all()


@pytest.mark.parametrize("family", PLACES)
def test_complex_numbers_with_nan_equal_nothing(family):
    z, w = (g.reshape(-1) for g in np.meshgrid(*[every_complex(np.complex128)[::3]] * 2))
    equal = (z.real == w.real) & (z.imag == w.imag)
    x, y = family(z), family(w)
    np.testing.assert_array_equal(mb.to_numpy(mb.equal(x, y)), equal)
    np.testing.assert_array_equal(mb.to_numpy(x != y), ~equal)


@pytest.mark.parametrize("family", PLACES)
def test_what_cancels_is_positive_zero(family):
    x = family(np.array([v for v in EVERY if np.isfinite(v) and v]))
    for zero in (x + -x, x - x):
        assert not mb.to_numpy(zero).any() and not np.signbit(mb.to_numpy(zero)).any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc"])
def test_integers_are_round(name, dtype):
    x = np.array([0, 1, 7, np.iinfo(dtype).max], dtype)
    for family in PLACES:
        y = getattr(mb, name)(family(x))
        assert y.dtype == dtype and (mb.to_numpy(y) == x).all()


@pytest.mark.parametrize(("value", "expected"), [(0.5, 0), (1.5, 2), (-0.5, -0.0), (2.5, 2), (-3.5, -4)])
def test_halves_round_to_even(value, expected):
    for family in PLACES:
        y = mb.to_numpy(mb.round(family([value])))[0]
        assert y == expected and np.signbit(y) == np.signbit(expected)
        z = mb.to_numpy(mb.round(family([complex(value, -value)])))[0]
        assert z == complex(expected, -expected)


def test_mending_is_one_kernel(many):
    x, y = mb.HostArray(np.linspace(-3, 3, 50)), mb.HostArray(np.linspace(1, 2, 50))
    z = mb.HostArray(np.linspace(-3, 3, 50) + 1j)
    for result in (lambda: x // y, lambda: x**y, lambda: mb.expm1(z), lambda: mb.tanh(z), lambda: mb.sign(z)):
        with mb.count() as c:
            mb.materialize(result())
        assert (c.launches, c.temporaries) == (1, 0)


def test_what_is_not_special_is_numpys():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-9, 9, (2, 200))
    z = x + 1j * y
    for name in ("expm1", "tanh", "tan", "sign"):
        np.testing.assert_array_equal(mb.to_numpy(getattr(mb, name)(mb.HostArray(z))), getattr(np, name)(z))
    np.testing.assert_array_equal(mb.to_numpy(mb.HostArray(x) // mb.HostArray(y)), x // y)
    np.testing.assert_array_equal(mb.to_numpy(mb.HostArray(abs(x)) ** mb.HostArray(y)), abs(x) ** y)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_moduli_in_kernels_are_numpys(dtype):
    real = np.empty(0, dtype).real.dtype
    info = np.finfo(real)
    ends = np.array(
        [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 3.0], real
    )
    rng = np.random.default_rng(3)
    z = np.empty((70, 100), dtype)
    z.real = rng.standard_normal(z.shape) * np.exp(6.0 * rng.standard_normal(z.shape))
    z.imag = rng.standard_normal(z.shape)
    z.real[0], z.imag[0] = np.repeat(ends, 10), np.tile(ends, 10)
    with np.errstate(all="ignore"):
        expected = np.abs(z) - real.type(1)
    with mb.settings.changed(compiler="inline", small_size=0, compile_after=1):
        for _ in range(2):
            x = mb.HostArray(z)
            np.testing.assert_array_equal(mb.to_numpy(mb.abs(x) - 1.0), expected)
