"""Operations on few elements call NumPy's loops (dispatch/csrc/loops.c): of all dtypes and layouts."""

import random
import sys
import warnings

import numpy as np
import pytest

import mirabelle as mb

# (float_power and floor_divide are formulas of ours, powers of truth values and rounded integers keep their
# dtypes; NumPy rounds hyperbolic tangents of complex numbers in one way or another.)
APART = {"float_power", "floor_divide", "power", "pow", "tanh"}
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
LAYOUTS = ["whole", "whole", "part", "backwards", "transposed", "every second", "columns", "row", "reshaped"]


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
    if how == "reshaped":
        return x.copy(), mb.HostArray(np.append(x.reshape(-1), x.reshape(-1)[:1]))[: x.size].reshape(x.shape)
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


@pytest.mark.parametrize("first", range(0, 3000, 1000))
def test_few_elements_beside_numpys_are_numpys_to_the_last_bit(first):
    """An array of ours and one of NumPy's, either first, into new memory and into NumPy's. (Twice: what NumPy
    computes it with is remembered.)"""
    rng, dice = np.random.default_rng(first), random.Random(first)
    functions = [f for f in map(np.__dict__.get, FUNCTIONS) if f.nin == 2]
    for k in range(first, first + 1000):
        f = dice.choice(functions)
        dtypes = [dice.choice(DTYPES)] * 2 if dice.random() < 0.7 else dice.choices(DTYPES, k=2)
        pairs = [
            laid(drawn(d, s, rng, k + i), dice.choice(LAYOUTS))
            for i, (d, s) in enumerate(zip(dtypes, dice.choice(SHAPES)))
        ]
        theirs, ours = [a for a, _ in pairs], [b for _, b in pairs]
        ours[k % 2] = theirs[k % 2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = outcome(f, theirs)
            found = [outcome(f, ours) for _ in range(2)]
            into = [np.zeros(np.shape(wanted), getattr(wanted, "dtype", "f8")) for _ in range(2)]
            if not isinstance(wanted, Exception) and wanted.ndim:
                found += [outcome(lambda *x, z=z: f(*x, out=z), ours) for z in into]
        for got in found:
            said = f.__name__, [(a.dtype, a.shape) for a in theirs], wanted, got
            assert isinstance(got, Exception) == isinstance(wanted, Exception), said
            if not isinstance(wanted, Exception):
                assert got.dtype == wanted.dtype and bits(got) == bits(wanted), said


@pytest.mark.parametrize("first", range(0, 1500, 500))
def test_few_elements_are_chosen_and_reduced_as_numpy_does_it(first):
    rng, dice = np.random.default_rng(first), random.Random(first)
    for k in range(first, first + 500):
        dtypes = [dice.choice(DTYPES)] * 2 if dice.random() < 0.7 else dice.choices(DTYPES, k=2)
        shapes = dice.choice(SHAPES)
        pairs = [
            laid(drawn(d, s, rng, k + i), dice.choice(LAYOUTS))
            for i, (d, s) in enumerate(zip(["?", *dtypes], [dice.choice(shapes), *shapes]))
        ]
        for i in (1, 2):
            if dice.random() < 0.2:
                pairs[i] = (dice.choice(NUMBERS),) * 2
        reduced = dice.choice(["max", "min", "sum", "any", "all"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted, found = (outcome(np.where, [p[i] for p in pairs]) for i in range(2))
            said = [(getattr(a, "dtype", a), np.shape(a)) for a, _ in pairs], wanted, found
            if isinstance(found, OverflowError):
                continue  # (NumPy's choice between integers wraps such as do not fit)
            assert isinstance(found, Exception) == isinstance(wanted, Exception), said
            if isinstance(wanted, Exception):
                continue
            assert found.dtype == wanted.dtype and bits(found) == bits(wanted), said
            for x, y in pairs:
                wanted, found = (outcome(getattr(np, reduced), [z]) for z in (x, y))
                said = reduced, getattr(x, "dtype", x), np.shape(x), wanted, found
                assert isinstance(found, Exception) == isinstance(wanted, Exception), said
                if not isinstance(wanted, Exception):
                    assert bits(found) == bits(wanted), said


def test_parts_are_given_few_elements_of_numpys():
    """What NumPy's memory shows, also that of the array itself, and where somebody holds what was there."""
    x, y = mb.HostArray(np.arange(12.0).reshape(3, 4)), np.arange(12.0).reshape(3, 4)
    held, other = x[1], np.arange(30.0).reshape(5, 6)
    before = mb.to_numpy(x).copy()
    for into, value in [
        ((1, slice(None)), other[2, :4]), ((slice(None), 2), other[1:4, 3]), ((0, 1), other[1, 1]),
        ((slice(None),), other[1:4, ::-1][:, :4]), ((slice(1, None),), other[0, :4]),
        ((Ellipsis, 0), np.array(7.0)),
    ]:  # fmt: skip
        kept = x * 1.0
        waits = mb.sum(x)
        x[into], y[into] = value, value
        assert np.array_equal(x, y) and np.array_equal(kept, before) and waits == before.sum()
        before = y.copy()
    assert np.array_equal(held, y[1])
    shown = np.asarray(x)
    x[:, ::-1] = shown
    y[:, ::-1] = y.copy()
    assert np.array_equal(x, y)
    for value in [np.arange(3.0), np.arange(4), np.arange(4).astype("f4"), np.ones((2, 4)), np.ones(1)]:
        wanted, found = (outcome(lambda z, v=value: z.__setitem__((1, slice(None)), v), [z]) for z in (y, x))
        assert isinstance(found, Exception) == isinstance(wanted, Exception), value
        assert np.array_equal(x, y)


STATEMENTS = {
    "A[:, j] = P[:, j]", "A[:, j] = P[:, j] * 2.0", "v * p", "p * v", "v += p", "p += v",
    "np.where(c, v, w)", "np.where(c, v, 0.0)",
    "np.flip(v)", "s ** 2", "v ** 2", "len(v)", "v.size", "float(mb.max(v))", "(d & 1) ^ (i & 1)", "v * i",
}  # fmt: skip


@pytest.mark.parametrize("statement", sorted(STATEMENTS))
def test_few_elements_take_no_step_through_python(statement):
    v, w = mb.HostArray(np.arange(5.0)), mb.HostArray(np.ones(5))
    names = {
        "mb": mb, "np": np, "v": v, "w": w, "c": v > 2.0, "s": v[2], "p": np.arange(5.0), "j": 1,
        "A": mb.HostArray(np.ones((5, 5))), "P": np.arange(25.0).reshape(5, 5),
        "d": mb.HostArray(np.arange(5, dtype=np.uint8))[3], "i": mb.HostArray(np.arange(5))[3],
    }  # fmt: skip
    code = compile(statement, "<statement>", "exec")
    for _ in range(200):
        exec(code, names)
    made: list[str] = []

    def look(frame, event, _):
        if event == "call" and "numpy" not in frame.f_code.co_filename:
            made.append(f"{frame.f_code.co_filename}: {frame.f_code.co_name}")

    sys.setprofile(look)
    try:
        exec(code, names)
    finally:
        sys.setprofile(None)
    assert len(made) <= 1 + ("mb." in statement), made


@pytest.mark.parametrize("first", range(0, 1200, 400))
def test_products_beside_numpys_are_numpys(first):
    rng, dice = np.random.default_rng(first), random.Random(first)
    shapes = [
        ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((3, 4), (4, 5)), ((1, 4), (4, 1)), ((0, 3), (3,)),
        ((3,), (4,)), ((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (0,)), ((), (4,)),
        ((70, 3), (3, 90)), ((3, 0), (0, 2)), ((1,), (1,)), ((300,), (300, 2)),
    ]  # fmt: skip
    for k in range(first, first + 400):
        dtypes = [dice.choice(["f8", "f8", "f4", "c16", "c8", "i8", "u2"])] * 2
        if dice.random() < 0.25:
            dtypes[1] = dice.choice(DTYPES[1:])  # (products of truth values count)
        pairs = [laid(drawn(d, s, rng, 3), dice.choice(LAYOUTS)) for d, s in zip(dtypes, dice.choice(shapes))]
        theirs, ours = [a for a, _ in pairs], [b for _, b in pairs]
        ours[k % 2] = theirs[k % 2]
        if dice.random() < 0.2:
            ours[1 - k % 2] = ours[1 - k % 2] * 1  # (a tree, if it is of many elements)
        f = dice.choice([np.matmul, np.dot, lambda x, y: x @ y])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = outcome(f, theirs)
            found = [outcome(f, ours) for _ in range(2)]
        for got in found:
            said = f, [(a.dtype, a.shape, a.strides) for a in theirs], wanted, got
            assert isinstance(got, Exception) == isinstance(wanted, Exception), said
            if isinstance(wanted, Exception):
                continue
            assert got.shape == wanted.shape and got.dtype == wanted.dtype, said
            assert np.allclose(got, wanted, rtol=1e-3 if got.dtype.char in "efF" else 1e-9), said
