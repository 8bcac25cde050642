"""Operations on few elements call NumPy's loops (dispatch/csrc/loops.c): of all dtypes and layouts."""

import random
import warnings

import numpy as np
import pytest

import mirabelle as mb

# (float_power and floor_divide are formulas of ours, powers of truth values and rounded integers keep their
# dtypes; NumPy rounds hyperbolic tangents of complex numbers in one way or another.)
APART = {"float_power", "floor_divide", "power", "pow", "rint", "tanh"}
FUNCTIONS = [
    name
    for name in dir(np)
    if isinstance(f := getattr(np, name), np.ufunc)
    and f.nin < 3
    and f.nout == 1
    and f.signature is None
    and hasattr(mb, name)
    and name not in APART
]
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [
    ((), ()), ((5,), (5,)), ((5,), ()), ((), (7,)), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)),
    ((4,), (3, 4)), ((1,), (5,)), ((2, 3, 4), (3, 1)), ((64,), (64,)), ((0, 3), (3,)), ((3, 4), (3,)),
    ((33,), (1,)), ((1, 1), (1,)), ((40, 50), (40, 50)), ((1, 5), (5,)),
]  # fmt: skip
NUMBERS = [
    2, -3, 0, 1.5, 0.5, -0.0, 1j, True, np.float64(2.5), np.float32(1.25), np.int8(3), 300, 2**40, float("nan"),
]  # fmt: skip
LAYOUTS = ["whole", "whole", "part", "backwards", "transposed", "every second", "columns", "row"]


def drawn(dtype, shape, rng, k):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) > 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 9, shape)).astype(dtype)
    x = np.asarray(rng.normal(size=shape) * rng.choice([1, 1e-3, 30]))
    if x.size > 3 and k % 3:
        x.flat[:2] = [np.nan, np.inf] if k % 3 == 1 else [0.0, -0.0]
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def laid(x, how):
    """The same elements in NumPy's memory and in ours, laid out alike."""
    if how == "whole" or x.ndim == 0:
        return x.copy(), mb.HostArray(x)
    if how == "part":
        around, index = np.pad(x, 1), (slice(1, -1),) * x.ndim
    elif how == "backwards":
        around, index = np.ascontiguousarray(x[::-1]), slice(None, None, -1)
    elif how == "transposed":
        around = np.ascontiguousarray(x.T)
        return around.T, mb.HostArray(around).T
    elif how == "every second":
        around, index = np.repeat(x, 2, axis=-1), (..., slice(None, None, 2))
    elif how == "columns":
        around, index = np.asfortranarray(x), ...
    else:
        around, index = np.stack([x, x]), 0
    return around[index], mb.HostArray(around)[index]


def outcome(f, operands):
    try:
        return np.asarray(f(*operands))
    except (TypeError, ValueError, OverflowError) as e:
        return e


def bits(x):
    """What tells elements apart, NaNs all alike."""
    if x.dtype.kind not in "fc":
        return x.tobytes()
    x = np.ascontiguousarray(x).reshape(-1).view(x.real.dtype)
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x).tobytes()


@pytest.mark.parametrize("first", range(0, 4000, 1000))
def test_few_elements_are_numpys_to_the_last_bit(first):
    rng, dice = np.random.default_rng(first), random.Random(first)
    for k in range(first, first + 1000):
        name = dice.choice(FUNCTIONS)
        f = getattr(np, name)
        dtypes = [dice.choice(DTYPES)] * 2 if dice.random() < 0.7 else dice.choices(DTYPES, k=2)
        shapes = dice.choice(SHAPES)
        pairs = [
            laid(drawn(d, s, rng, k + i), dice.choice(LAYOUTS)) for i, (d, s) in enumerate(zip(dtypes, shapes))
        ]
        if dice.random() < 0.15:
            pairs[1] = pairs[0]
        if dice.random() < 0.2:
            pairs[1] = (dice.choice(NUMBERS),) * 2
        pairs = pairs[: f.nin]
        if f.nin == 2 and isinstance(pairs[1][0], (int, float, complex)) and dice.random() < 0.4:
            pairs.reverse()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = outcome(f, [a for a, _ in pairs])
            found = outcome(f if k % 2 else getattr(mb, name), [b for _, b in pairs])
        said = name, [(getattr(a, "dtype", a), np.shape(a)) for a, _ in pairs], wanted, found
        if isinstance(wanted, Exception):
            assert isinstance(found, Exception), said
            continue
        assert (
            not isinstance(found, Exception) and found.dtype == wanted.dtype and found.shape == wanted.shape
        ), said
        assert bits(found) == bits(wanted), said
