"""Every rule of algebra, for every dtype and every kind of number beside it: the bits are NumPy's."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from samples import DTYPES, edges, ids
from ways import running

import mirabelle as mb

NUMBERS = [
    -1, 0, 1, 2, -2, -1.0, 0.0, -0.0, 1.0, 2.0, -4.0, 0.5, True, False, 1j, -1 + 0j, float("inf"), float("nan"),
    np.int8(-1), np.uint8(1), np.int64(-1), np.int64(0), np.uint64(1), np.float16(-1), np.float32(2),
    np.float64(-1), np.bool_(True), np.complex64(-1), 2**60, 10**30,
]  # fmt: skip
# What each rule is about: an array, another of its dtype, a number.
FORMS = [
    "x + n", "n + x", "x - n", "n - x", "x * n", "n * x", "x / n", "n / x", "x ** n", "x & n", "n | x", "x ^ n",
    "x << n", "x >> n", "-x * n", "x + n + n", "n * (x * n)", "(x + n) - (y + n)", "-(x * n) / n",
    "xp.maximum(x * n, x * n)", "xp.where(x > n, x, n)", "xp.logical_not(x < n)", "xp.logical_not(x == n)",
    "x % n", "-(-x + n)", "xp.sum(x) / n", "xp.where(n, x, y)", "xp.logical_and(x, n)", "xp.square(-x * n)",
]  # fmt: skip
PLAIN = [
    "-(-x)", "-x + y", "x + -y", "x - -y", "-(x - y)", "x - x", "x ^ x", "x & x", "x | x", "~~x", "+x",
    "abs(-x)", "abs(abs(x))", "xp.square(-x)", "xp.floor(xp.floor(x))", "xp.round(xp.round(x))",
    "xp.conj(xp.conj(x))", "xp.real(xp.conj(x))", "xp.imag(x)", "xp.real(xp.real(x))", "xp.maximum(x, x)",
    "xp.fmin(x, x)", "xp.logical_not(xp.logical_not(x))", "xp.logical_not(x < y)", "xp.logical_not(x == y)",
    "xp.logical_xor(x, x)", "xp.where(xp.logical_not(x == y), x, y)", "xp.where(x == y, x, x)",
    "x * y + -x * y", "x.astype('c16').real", "xp.any(xp.any(x, axis=0), axis=0)",
    "xp.max(xp.max(x, axis=0), axis=0)", "xp.sum(xp.sum(x > y, axis=0), axis=0)",
    "xp.count_nonzero(xp.count_nonzero(x, axis=0), axis=0)", "xp.prod(xp.prod(x != y, axis=0), axis=0)",
    "xp.sum(xp.broadcast_to(x > y, (3, *x.shape)), axis=0)",
    "xp.all(xp.broadcast_to(x, (3, *x.shape)), axis=0)",
]  # fmt: skip
CASTS = ["?", "i1", "u1", "i4", "u8", "f2", "f4", "f8", "c8"]


def bits(x):
    """What tells numbers apart: a NaN is one, zeros have their signs."""
    if isinstance(x, mb.AbstractArray):
        x = mb.to_numpy(x)
    x = np.array(x)
    if x.dtype.kind == "c":
        return bits(x.real), bits(x.imag)
    if x.dtype.kind == "f":
        return x.shape, x.dtype, tuple("nan" if v != v else repr(float(v)) for v in x.ravel())
    return x.shape, x.dtype, tuple(x.ravel().tolist())


def outcome(f, *args):
    try:
        with np.errstate(all="ignore"):
            return bits(f(*args))
    except (TypeError, ValueError, OverflowError) as e:
        return type(e).__name__


def differing(texts, x, y, passes, numbers=(None,)):
    """The texts that come to something else with passes than without, and, but for rounding, than eager."""
    found = []
    for text, n in itertools.product(texts, numbers):
        f = eval(f"lambda x, y, xp=mb: {text}", {"n": n, "mb": mb, "np": np})
        given = [mb.HostArray(x), mb.HostArray(y)]
        plain = outcome(mb.compile(f, passes=[]), *given)
        made = outcome(mb.compile(f, passes=passes), *given)
        eager = outcome(f, *given)
        if made != plain or made != eager:
            found.append((text, n, x.dtype.name, made, plain, eager))
    return found


def arrays(dtype, n=None):
    values = edges(dtype)[:n]
    return np.array([values, values]), np.array([values[::-1], values])


@pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))
def test_rules_with_numbers_are_numpys_for_every_dtype(dtype):
    # (A third of the numbers for each dtype: those beside it have the others.)
    numbers = NUMBERS[DTYPES.index(dtype) % 3 :: 3]
    assert not differing(FORMS, *arrays(dtype, 8), ["constants", "algebra", "folds"], numbers)


@pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))
def test_rules_without_numbers_are_numpys_for_every_dtype(dtype):
    assert not differing(PLAIN, *arrays(dtype), ["constants", "algebra", "folds"])


@pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))
def test_casts_of_casts_are_numpys_for_every_dtype(dtype):
    x = np.array([0, 1, 2, 100, 127], dtype)
    texts = [f"x.astype('{a}').astype('{b}')" for a, b in itertools.product(CASTS, CASTS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        assert not differing(texts, x, x, ["algebra"])


def test_compiled_programs_negate_in_the_dtype_of_the_result():
    """Once: a program multiplied uint8 by -1.0 modulo 256."""
    x = np.array([0, 5, 200], np.uint8)
    b, i = np.array([True, False]), np.array([-(2**31), 7], np.int32)
    for f, a in [
        (lambda x: x * -1.0, x), (lambda x: x / -1, x), (lambda x: x * np.int64(-1), x), (lambda x: 0.0 - x, x),
        (lambda x: np.int64(0) - x, x), (lambda x: -1 * x, b), (lambda x: 0 - x, b), (lambda x: x * -1.0, i),
        (lambda x: x * np.int64(-1), i), (lambda x: x / 2, x), (lambda x: x.sum() / -1, x),
        (lambda x: x / 2**70, x),
    ]:  # fmt: skip
        assert outcome(mb.compile(f), mb.HostArray(a)) == outcome(f, a)
        with running("hot"):
            assert outcome(mb.compile(f), mb.HostArray(a)) == outcome(f, a)


@pytest.mark.parametrize("letter", "bhilBHIL")
def test_powers_of_integers_are_products(letter):
    x = np.arange(-9, 9).astype(letter)
    for n in (*range(2, 20), 31, 63, 64, 65, 100):
        program = mb.compile(lambda x, n=n: x**n).program(mb.HostArray(x))
        with np.errstate(all="ignore"):
            wanted = x**n
        found = mb.to_numpy(mb.compile(lambda x, n=n: x**n)(mb.HostArray(x)))
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted), n
        assert ("pow" in program.plan.steps[0].name) == (n > 64)
