"""Single numbers, inner products and updates of parts are NumPy's to the last bit, whatever way they take."""

import itertools
import operator
import warnings

import numpy as np
import pytest

import mirabelle as mb

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
# (Of powers and of remainders NumPy's scalars have other roundings than its arrays.)
BINARY = ["add", "sub", "mul", "truediv", "and_", "or_", "xor", "lshift", "rshift",
          "lt", "le", "gt", "ge", "eq", "ne"]  # fmt: skip
UNARY = [operator.neg, operator.abs, operator.invert, operator.pos, np.sqrt, np.square, np.exp]
# Values at the edges of dtypes, as far as they hold them.
EDGES = [
    0,
    1,
    2,
    7,
    8,
    63,
    64,
    100,
    127,
    128,
    255,
    -1,
    -2,
    -128,
    2**31 - 1,
    -(2**31),
    2**63 - 1,
    -(2**63),
    2**64 - 1,
]


def values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([v for v in EDGES if info.min <= v <= info.max], dtype)
    return np.array([0.0, -0.0, 1.5, -2.25, 6e4, np.inf, -np.inf, np.nan, 7.0], dtype)


def outcome(f, *operands):
    """What it gives, or the kind of its error (where two things are wrong, either may be said)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(f(*operands))
        except (TypeError, ValueError, OverflowError, ZeroDivisionError) as e:
            return type(e)


def assert_same(found, wanted, what):
    if isinstance(wanted, type) or isinstance(found, type):
        assert isinstance(wanted, type) and isinstance(found, type), what
        return
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, what
    np.testing.assert_array_equal(found, wanted, str(what))
    if wanted.dtype.kind == "f":
        nan = np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[~nan]), np.signbit(wanted[~nan]), str(what))


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_elements(dtype):
    a = values(dtype)
    x = mb.HostArray(a)
    numbers = [0, 1, 3, -1, 200, 255, 256, 2**40, 0.5, -2.0, 1e30, True, np.float64(1.5), np.float32(0.1),
               np.int8(3), np.uint64(9), np.bool_(True)]  # fmt: skip
    for name in BINARY:
        f = getattr(operator, name)
        for i, j in itertools.product(range(a.size), range(a.size)):
            assert_same(outcome(f, x[i], x[j]), outcome(f, a[i], a[j]), (name, a[i], a[j]))
        for i, n in itertools.product(range(0, a.size, 2), numbers):
            assert_same(outcome(f, x[i], n), outcome(f, a[i], n), (name, a[i], n))
            assert_same(outcome(f, n, x[i]), outcome(f, n, a[i]), (name, n, a[i]))
    for f, i in itertools.product(UNARY, range(a.size)):
        assert_same(outcome(f, x[i]), outcome(f, a[i]), (f, a[i]))


@pytest.mark.parametrize("first", DTYPES)
def test_elements_of_two_dtypes_and_elements_beside_arrays(first):
    a = values(first)[:5]
    x = mb.HostArray(a)
    for second in DTYPES:
        b = values(second)[:4]
        y = mb.HostArray(b)
        for name in ("add", "mul", "truediv", "lt", "eq", "and_"):
            f = getattr(operator, name)
            assert_same(outcome(f, x[1], y[1]), outcome(f, a[1], b[1]), (name, first, second))
            assert_same(outcome(f, x[1], y), outcome(f, a[1], b), (name, first, second))
            assert_same(outcome(f, x, y[1]), outcome(f, a, b[1]), (name, first, second))


def test_elements_are_values():
    """They stay what they were, and names that share one part when one is updated."""
    x = mb.HostArray(np.arange(5.0))
    s = t = x[2]
    t += 1.0
    x[2] = 9.0
    assert (float(s), float(t), float(x[2])) == (2.0, 3.0, 9.0)
    total = mb.sum(x)
    kept = total
    total -= x[1]
    assert float(kept) - float(total) == 1.0
    made = mb.HostArray(np.float64(2.0))
    alias = made
    made *= 3.0
    assert float(alias) == 6.0  # (a constructor made it: NumPy's array without axes)


PARTS = [np.s_[:], np.s_[1:9], np.s_[::-1], np.s_[8:0:-2], np.s_[::3], np.s_[4:4], np.s_[5:6]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_inner_products(dtype):
    rng = np.random.default_rng(3)
    a = (
        rng.integers(0, 100, 12).astype(dtype)
        if np.dtype(dtype).kind in "iub"
        else rng.normal(size=12).astype(dtype)
    )
    matrix = np.outer(a, a[::-1]).astype(dtype)
    x, m = mb.HostArray(a), mb.HostArray(matrix)
    exact = np.dtype(dtype).char != "e"  # (half precision is rounded once, and not at each step)
    for p, q in itertools.product(PARTS, PARTS):
        for f in (np.dot, operator.matmul):
            for u, v, s, t in ((x[p], x[q], a[p], a[q]), (m[p, 3], m[2, q], matrix[p, 3], matrix[2, q])):
                found, wanted = outcome(f, u, v), outcome(f, s, t)
                if exact or isinstance(wanted, type):
                    assert_same(found, wanted, (f, p, q))
                else:
                    np.testing.assert_allclose(found, wanted, rtol=1e-2)
    assert type(np.dot(x, x)) is type(mb.dot(x, x)) and np.dot(x, x).ndim == 0


def test_inner_products_of_long_vectors_and_of_what_is_not_in_memory():
    a, b = np.random.default_rng(1).normal(size=(2, 20_000))
    x, y = mb.HostArray(a), mb.HostArray(b)
    assert float(np.dot(x, y)) == np.dot(a, b) == float(x @ y)
    np.testing.assert_allclose(float(np.dot(x * 2.0, y)), np.dot(a * 2.0, b))
    np.testing.assert_allclose(float((x + 1.0)[5:] @ y[5:]), (a + 1.0)[5:] @ b[5:])
    matrix = np.random.default_rng(2).normal(size=(6, 6))
    m = mb.HostArray(matrix)
    np.testing.assert_array_equal(np.asarray(np.dot(m, m)), np.dot(matrix, matrix))
    np.testing.assert_array_equal(np.asarray(np.dot(a[:6], m)), np.dot(a[:6], matrix))
    with pytest.raises(ValueError, match=r"shape|size|match"):
        np.dot(x[:3], y[:4])


def test_inner_products_are_overridden_and_counted():
    x = mb.HostArray(np.arange(4.0))
    with mb.count() as c:
        np.dot(x, x[:])
    assert c.launches == 1
    seen = []

    def mine(u, v):
        seen.append(u)
        return 5.0

    with mb.override(mb.dot, (mb.HostArray, mb.HostArray), mine):
        assert np.dot(x, x) == 5.0
    assert len(seen) == 1 and float(np.dot(x, x)) == 14.0


PAIRS = [
    (np.s_[2:9], np.s_[1:8]), (np.s_[::2], np.s_[1::2]), (np.s_[::-1], np.s_[:]), (np.s_[3:4], np.s_[2:3]),
]  # fmt: skip
UPDATES = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod,
           operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift]  # fmt: skip


@pytest.mark.parametrize("size", [12, 5000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "c16", "?"])
def test_updates_of_parts(dtype, size):
    """`x[part] op= y`, where y is a number, another array, a part of x that overlaps, or of another dtype."""
    start = (np.arange(size) % 7 + 1).astype(dtype)
    other = (np.arange(size) % 5 + 1).astype(dtype)
    for f, (p, q) in itertools.product(UPDATES, PAIRS):
        for what in ("number", "other", "itself", "float", "held", "element", "shape"):
            a, b = start.copy(), other.copy()
            x, y = mb.HostArray(a), mb.HostArray(b)
            results = []
            for u, v in ((a, b), (x, y)):
                kept = [u[q] + u[q]] if what == "held" else []
                value = {
                    "number": 2, "other": v[q], "itself": u[q], "float": 1.5, "held": v[q] * v[q],
                    "element": u[3], "shape": v[: 2 if u[p].size != 2 else 3],
                }[what]  # fmt: skip
                part = u[p]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        same = f(part, value)
                        u[p] = same
                        results.append((np.array(u), *map(np.asarray, kept)))
                        assert same is part or not part.ndim
                    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as e:
                        results.append(type(e).__mro__[-3])
            wanted, found = results
            if isinstance(wanted, tuple) and isinstance(found, tuple):
                for n, o in zip(wanted, found, strict=True):
                    np.testing.assert_array_equal(o, n, f"{f.__name__} {what} {p} {q}")
            else:
                assert found is wanted, (f, what, p, q)


def test_updates_of_memory_that_is_shared_or_not_to_be_written():
    memory = np.arange(10.0)
    x = mb.asarray(memory)
    x[2:5] += x[1:4]
    x[7] *= 2.0
    wanted = np.arange(10.0)
    wanted[2:5] += wanted[1:4].copy()
    wanted[7] *= 2.0
    np.testing.assert_array_equal(memory, wanted)
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        mb.asarray(fixed)[1:] += 1.0
    u = mb.HostArray(np.arange(6.0))
    snapshot, view, pending = np.asarray(u), u[:3], u * 2.0
    u[1:4] -= 1.0
    np.testing.assert_array_equal(snapshot, np.arange(6.0))
    np.testing.assert_array_equal(np.asarray(view), [0, 0, 1])
    np.testing.assert_array_equal(np.asarray(pending), 2 * np.arange(6.0))


@pytest.mark.parametrize("size", [1, 12, 3000, 20_000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "c16", "?"])
def test_updates_of_whole_arrays(dtype, size):
    """Names and views see them, snapshots and what waits do not; what does not fit changes nothing."""
    start = (np.arange(size) % 7 + 1).astype(dtype)
    for f, value in itertools.product(
        UPDATES[:9], (2, 1.5, True, "itself", "backwards", "other", "wide", "matrix")
    ):
        a, b = start.copy(), start[::-1].copy()
        seen = []
        for u, v in ((a, b), (mb.HostArray(a), mb.HostArray(b))):
            alias, view, before = u, u[1:], u * v
            shown = np.array(u) if u is a else np.asarray(u)
            other = {
                "itself": u, "backwards": u[::-1], "other": v, "matrix": v[None, :],
                "wide": v.astype(np.result_type(v.dtype, "f8")),
            }.get(value, value)  # fmt: skip
            error = None
            for _ in range(3):  # (statements come back)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        u = f(u, other)
                    except (TypeError, ValueError, OverflowError) as e:
                        error = "refused" if e else None
                        break
            assert u is alias
            seen.append([error, *(np.array(n) for n in (u, view, before, shown, v))])
        assert seen[0][0] == seen[1][0], (f, value)
        for wanted, found in zip(seen[0][1:], seen[1][1:], strict=True):
            np.testing.assert_array_equal(found, wanted, f"{f.__name__} {value}")
