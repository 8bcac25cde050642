"""The shared suite: what every kind of array must do, on every dtype, exactly as NumPy does it."""

import math
import operator
import warnings
from fractions import Fraction

import numpy as np
import pytest
from compare import assert_closed, assert_same, outcome
from kinds import ALL, LEAVES, PLAIN, SINGLE
from samples import COMPLEX, DTYPES, FLOATS, INTEGERS, edges, ids, ordinary, pairs
from ways import counting_as_many

import mirabelle as mb
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import TABLE

kinds = pytest.mark.parametrize("kind", ALL, ids=repr)
single = pytest.mark.parametrize("kind", SINGLE, ids=repr)
leaves = pytest.mark.parametrize("kind", LEAVES.values(), ids=repr)
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))

UNARY = [n for n in verbs.ELEMENTWISE if TABLE[n].nin == 1 and TABLE[n].nout == 1]
BINARY = [n for n in verbs.ELEMENTWISE if TABLE[n].nin == 2 and TABLE[n].nout == 1]
SEVERAL = [n for n in verbs.ELEMENTWISE if TABLE[n].nout > 1]
# NumPy gives no order of operations for these, and libraries of mathematics differ in the last bits.
ROUNDED = {"multiply", "divide", "square", "reciprocal", "pow", "sign"}


def assert_one_launch(c, kind):
    """One kernel, nothing stored on the way, nothing read element by element or moved."""
    if not kind.counted:
        assert c.scalar_reads == 0
        return
    assert (c.temporaries, c.scalar_reads, c.transfers) == (0, 0, 0)
    assert c.launches == 1 or not kind.lazy


# Elementwise functions: each on every dtype, at ordinary values and at the edges


def exact_fma(a, b, c):
    """x1*x2 + x3 with one rounding, by fractions."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    with np.errstate(all="ignore"):
        return np.float64(float(exact)) if exact else a * b + c


SCALAR = {
    "erf": math.erf,
    "erfc": math.erfc,
    "gamma": math.gamma,
    "lgamma": math.lgamma,
    "sinpi": lambda v: math.sin(math.pi * math.remainder(v, 2.0)),
    "cospi": lambda v: math.cos(math.pi * math.remainder(v, 2.0)),
}


def numpy_unary(name):
    """NumPy's function of that meaning, or Python's mathematics applied to each element."""
    if name == "round":
        return np.round
    if TABLE[name].ufunc is not None:
        return TABLE[name].ufunc
    if name in ("real", "imag"):
        return lambda x: np.array(getattr(x, name))
    scalar = SCALAR[name]

    def each(x):
        if x.dtype.kind == "c":
            raise TypeError(name)
        small = x.dtype.kind in "iu" and x.dtype.itemsize < 4
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype("f4" if small and x.dtype.itemsize < 3 else "f8")

        def one(v):
            v = float(v)
            try:
                return scalar(v)
            except OverflowError:
                return math.inf
            except ValueError:  # a pole, or infinity in a function with a period
                if name == "gamma" and v == 0:
                    return math.copysign(math.inf, v)
                return math.inf if name == "lgamma" and v == math.floor(v) else math.nan

        return np.array([one(v) for v in x.ravel()], dtype).reshape(x.shape)

    return each


def numpy_binary(name):
    """NumPy's function of that meaning, with the array API standard's values at infinity."""

    def floor_divide(a, b):
        quotient = np.floor_divide(a, b)
        if quotient.dtype.kind != "f":
            return quotient
        return np.where(np.isinf(a) | np.isinf(b), np.divide(a, b), quotient)

    return floor_divide if name == "floor_divide" else TABLE[name].ufunc


def tolerance(name, dtype):
    """How far a function may be from NumPy's, in relative terms: 0 where its values are defined."""
    if TABLE[name].ufunc is None and name not in ("real", "imag"):
        part = np.dtype("f8") if dtype.kind in "biu" else dtype
        return 64 * float(np.finfo("f4" if part.itemsize < 8 or dtype.itemsize < 4 else "f8").eps)
    if dtype.kind == "c":
        return 32 * float(np.finfo(dtype).eps)
    return 0.0


def check_function(kind, name, arguments, rtol):
    """One function on one set of arguments: values, refusals, type, launches."""
    numpy_function = numpy_unary(name) if len(arguments) == 1 else numpy_binary(name)
    expected, refusal = outcome(numpy_function, *arguments)
    xs = [kind.make(a) for a in arguments]
    f = getattr(mb, name)
    if refusal is not None:
        with pytest.raises((TypeError, ValueError)):
            f(*xs)
        return
    for x in xs:
        mb.materialize(x)
    with counting_as_many() as c:
        result = mb.materialize(f(*xs))
    assert_one_launch(c, kind)
    assert_closed(result, kind)
    zeros = name in ("maximum", "minimum", "fmax", "fmin")
    assert_same(result, expected, rtol=rtol, atol=rtol, any_zero=zeros)
    # By default few elements go a shorter way.
    assert_same(f(*xs), expected, rtol=rtol, atol=rtol, any_zero=zeros)


@plain
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_are_numpys(kind, name):
    for dtype in DTYPES:
        rtol = tolerance(name, dtype)
        check_function(kind, name, [ordinary(dtype, (3, 5))], rtol)
        if rtol == 0.0:
            check_function(kind, name, [edges(dtype)], rtol)


@pytest.mark.parametrize("name", UNARY)
def test_compiled_unary_functions_are_numpys(hot, name):
    for dtype in map(np.dtype, ("?", "i1", "u4", "i8", "f4", "f8", "c16")):
        rtol = tolerance(name, dtype)
        x = ordinary(dtype, 100) if rtol else np.resize(edges(dtype), 100)
        check_function(LEAVES["host"], name, [x], rtol)


@plain
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_are_numpys(kind, name):
    for dtype in DTYPES:
        rtol = tolerance(name, dtype)
        second = np.dtype("i4") if name == "ldexp" else dtype
        x, y = ordinary(dtype, (3, 5)), ordinary(second, (3, 5), seed=1)
        if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") and dtype.kind == "i":
            y = np.abs(y) % 8
        check_function(kind, name, [x, y], rtol)
        if rtol == 0.0:
            check_function(kind, name, edge_pairs(name, dtype, second), rtol)


def edge_pairs(name, dtype, second):
    x, y = pairs(dtype, second)
    if name == "pow" and dtype.kind == "i":
        x, y = x[y >= 0], y[y >= 0]
    if name == "ldexp":
        x, y = x, np.clip(y, -3000, 3000)
    return [x, y]


@pytest.mark.parametrize("name", BINARY)
def test_compiled_binary_functions_are_numpys(hot, name):
    for dtype in map(np.dtype, ("?", "i1", "u4", "i8", "f4", "f8", "c16")):
        rtol = tolerance(name, dtype)
        second = np.dtype("i4") if name == "ldexp" else dtype
        if rtol:
            arguments = [ordinary(dtype, 100), ordinary(second, 100, seed=1)]
        else:
            arguments = edge_pairs(name, dtype, second)
        check_function(LEAVES["host"], name, arguments, rtol)


@plain
@pytest.mark.parametrize("name", SEVERAL)
def test_functions_of_several_results(kind, name, way):
    for dtype in ("f4", "f8", "i4", "u1"):
        arguments = pairs(dtype) if TABLE[name].nin == 2 else (edges(dtype),)
        expected, refusal = outcome(TABLE[name].ufunc, *arguments)
        assert refusal is None
        with counting_as_many() as c:
            results = getattr(mb, name)(*map(kind.family, arguments))
            for r in results:
                mb.materialize(r)
        assert c.launches == 1 or not kind.counted, "one kernel gives all results"
        for result, wanted in zip(results, expected, strict=True):
            assert_same(result, wanted)
            assert_closed(result, kind)


@plain
def test_fma_rounds_once(kind, way):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 40))
    # Products that all but cancel show the second rounding.
    c = -(a * b) * (1 + np.finfo("f8").eps * rng.integers(-2, 3, 40))
    expected = np.array([exact_fma(*t) for t in zip(a, b, c, strict=True)])
    x, y, z = map(kind.family, (a, b, c))
    assert_same(mb.fma(x, y, z), expected)
    assert_same(mb.fma(x, 2.0, 1), np.array([exact_fma(v, 2.0, 1.0) for v in a]))
    with pytest.raises(TypeError):
        mb.fma(kind.family(a + 0j), y, z)


@plain
def test_sinpi_and_cospi_are_exact_at_halves(kind):
    halves = np.arange(-8, 9) / 2
    np.testing.assert_array_equal(mb.to_numpy(mb.sinpi(kind.family(halves))) % 1, 0)
    np.testing.assert_array_equal(mb.to_numpy(mb.cospi(kind.family(halves[1::2]))), 0)


# Mixed dtypes, scalars, ranks


@pytest.mark.parametrize("f", [operator.add, operator.mul, operator.truediv, operator.lt, operator.floordiv])
def test_every_pair_of_dtypes_promotes_as_numpy(f):
    for first in DTYPES:
        for second in DTYPES:
            x, y = ordinary(first, 9), ordinary(second, 9, seed=1)
            expected, refusal = outcome(f, x, y)
            result, ours = outcome(lambda a, b: mb.materialize(f(a, b)), mb.HostArray(x), mb.HostArray(y))
            assert ours is refusal, (first, second)
            if refusal is None:
                rtol = 0 if expected.dtype.kind != "c" else 8 * np.finfo(expected.dtype).eps
                assert_same(result, expected, rtol=rtol)


@pytest.mark.parametrize("first", DTYPES, ids=ids(DTYPES))
def test_where_promotes_as_numpy(first):
    mask = np.arange(9) % 2 == 0
    for second in DTYPES:
        x, y = ordinary(first, 9), ordinary(second, 9, seed=1)
        result = mb.where(mb.HostArray(mask), mb.HostArray(x), mb.HostArray(y))
        assert_same(result, np.where(mask, x, y))


@every_dtype
def test_compiled_pairs_of_dtypes_promote_as_numpy(hot, dtype):
    for second in ("?", "i2", "u8", "f4", "c16"):
        x, y = ordinary(dtype, 80), ordinary(second, 80, seed=1)
        expected, refusal = outcome(operator.add, x, y)
        assert refusal is None
        assert_same(mb.HostArray(x) + mb.HostArray(y), expected)


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
SCALARS = [
    True, 3, -2, 300, 2.5, -0.0, 1 - 2j, np.bool_(True), np.int8(3), np.uint8(200), np.int64(-5),
    np.uint64(7), np.float16(2.5), np.float32(0.1), np.float64(0.1), np.complex64(1j),
]  # fmt: skip


@plain
@pytest.mark.parametrize("f", OPERATORS, ids=lambda f: f.__name__)
def test_scalars_follow_nep_50(kind, f):
    dtypes = DTYPES if not kind.on_device else ["?", "i1", "u4", "f2", "f4", "f8", "c8"]
    for dtype in dtypes:
        values = ordinary(dtype, 6)
        x = kind.family(values)
        for scalar in SCALARS:
            for reflected in (False, True):
                call = (lambda a, s: f(s, a)) if reflected else f
                expected, refusal = outcome(call, values, scalar)
                result, ours = outcome(lambda a, s: mb.materialize(call(a, s)), x, scalar)
                case = f"{dtype} {f.__name__} {scalar!r} ({type(scalar).__name__}) reflected={reflected}"
                if refusal is OverflowError and f is operator.pow:
                    # For a negative exponent NumPy names its dtype, and we its sign.
                    refusal = (OverflowError, ValueError)
                if refusal is ValueError and reflected and (kind.on_device or not kind.one_process):
                    # A negative exponent among many: a card's kernel cannot raise, and gives 0; and of
                    # several ranks those raise that hold one.
                    continue
                if refusal is not None:
                    assert ours is not None and issubclass(ours, refusal), f"{case}: {ours}, NumPy's {refusal}"
                    continue
                assert ours is None, f"{case}: {ours}"
                loose = f is operator.pow or expected.dtype.kind == "c"
                eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
                try:
                    assert_same(result, expected, rtol=32 * eps if loose else 0)
                except AssertionError as e:
                    raise AssertionError(case) from e


def test_compiled_scalars_follow_nep_50(hot):
    for dtype in ("i1", "u8", "f4", "f8"):
        values = ordinary(dtype, 70)
        x = mb.HostArray(values)
        for scalar in (True, 3, 2.5, np.float32(0.1), np.int64(4)):
            assert_same(x * scalar, values * scalar)
            assert_same(scalar - x, np.subtract(scalar, values) if dtype != "?" else values)


@pytest.mark.parametrize("kind", [k for k in SINGLE if k.writable], ids=repr)
@pytest.mark.parametrize("dtype", ["i4", "f8", "c16"])
def test_inplace_operators_are_numpys(kind, dtype):
    values = kind.sample(ordinary(dtype, (3, 4)))
    x = kind.make(values)
    handle, expected = x, values.copy()
    for f, argument in [
        (operator.iadd, 3), (operator.imul, 2), (operator.isub, values[1]), (operator.iadd, values),
    ]:  # fmt: skip
        expected = f(expected, argument)
        if kind.on_device and isinstance(argument, np.ndarray):
            argument = kind.family(argument)
        x = f(x, argument)
        assert x is handle
        assert_same(x, expected)
    if dtype != "i4":
        expected /= 4
        x /= 4
        assert_same(x, expected)
    else:
        expected //= 2
        expected %= 5
        expected <<= 2
        expected ^= 1
        expected |= 6
        expected &= 13
        expected >>= 1
        expected **= 2
        x //= 2
        x %= 5
        x <<= 2
        x ^= 1
        x |= 6
        x &= 13
        x >>= 1
        x **= 2
        assert_same(x, expected)
        with pytest.raises(TypeError, match="astype"):
            x /= 2
        assert_same(x, expected)


def test_an_inplace_write_shows_in_every_wrapper_of_the_same_memory(way):
    for family in (mb.HostArray, mb.RefArray):
        n = ordinary("f8", (4, 6))
        x = family(n)
        for of in (
            lambda a: a.T,
            lambda a: a[1:3, ::-2],
            lambda a: a.T[::2][1:],
            lambda a: a.reshape(2, 2, 6).transpose(2, 0, 1)[1],
        ):
            mine, numpys = of(x), of(n)
            mine += 1.5
            numpys += 1.5
            assert_same(x, n)
            x *= 2
            n *= 2
            assert_same(mine, numpys)


# Each kind: representative expressions


EXPRESSIONS = {
    "plus": lambda xp, x: x + 1,
    "polynomial": lambda xp, x: (x * 2 + 1) * (x * 2) - x,
    "reflected": lambda xp, x: 3 - x,
    "compare": lambda xp, x: x > 0,
    "where": lambda xp, x: xp.where(x > 0, x, -x),
    "sqrt": lambda xp, x: xp.sqrt(xp.abs(x)) + 0.5,
    "maximum": lambda xp, x: xp.maximum(x, -x),
    "row": lambda xp, x: x - x[..., :1],
    "flipped": lambda xp, x: x[::-1] * 2 + x,
    "transposed": lambda xp, x: x.T * 3,
    "new axis": lambda xp, x: x[..., None] * 2,
    "cast": lambda xp, x: x.astype("f4") + 1,
}


@kinds
def test_expressions_on_every_kind(kind):
    for shape in [(3, 4)] if len(kind.wrappers) == 2 else [(2, 3, 4)]:
        values = kind.sample(ordinary("f8", shape))
        for f in EXPRESSIONS.values():
            expected = f(np, values)
            x = mb.materialize(kind.make(values))
            with counting_as_many() as c:
                result = mb.materialize(f(mb, x))
            assert_same(result, expected)
            assert_closed(result, kind)
            assert_one_launch(c, kind)
            assert_same(f(mb, x), expected)


@single
def test_expressions_over_pending_arrays(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    for f in EXPRESSIONS.values():
        x = kind.make(values)
        with counting_as_many() as c:
            result = mb.materialize(f(mb, x))
        assert_same(result, f(np, values))
        assert_closed(result, kind)
        assert (c.temporaries == 0 or not kind.counted) and c.scalar_reads == 0
        assert_same(x, values)


@pytest.mark.parametrize("kind", [k for k in ALL if not k.on_device], ids=repr)
def test_compiled_expressions_on_every_kind(hot, kind):
    values = kind.sample(ordinary("f8", (9, 12)))
    x = kind.make(values)
    for name in ("polynomial", "where", "flipped", "transposed"):
        f = EXPRESSIONS[name]
        assert_same(f(mb, x), f(np, values))


@kinds
def test_reductions_on_every_kind(kind):
    values = kind.sample(ordinary("f8", (2, 3, 4)))
    x = mb.materialize(kind.make(values))
    for axis in (None, 0, (1, 2)):
        # Once uncounted, on every rank alike: what an earlier test left pending may be computed, too.
        mb.materialize(mb.sum(x * 2 + 1, axis=axis))
        with counting_as_many() as c:
            result = mb.materialize(mb.sum(x * 2 + 1, axis=axis))
        assert_same(result, np.sum(values * 2 + 1, axis=axis), rtol=1e-14, atol=1e-13)
        assert_closed(result, kind)
        assert_one_launch(c, kind)
        assert_same(mb.max(x, axis=axis), np.max(values, axis=axis), any_zero=True)


@pytest.mark.parametrize("kind", [k for k in ALL if k.writable], ids=repr)
def test_whole_and_partial_writes_on_every_kind(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x, n = kind.make(values), values.copy()
    before = x + 0
    for write in (
        lambda a: a.__setitem__(slice(1, None), a[:-1] * 2),
        lambda a: a.__setitem__((slice(None), slice(None, None, -1)), a + 1),
        lambda a: a.__setitem__((Ellipsis, 0), 7),
        lambda a: a.__setitem__(Ellipsis, a * a),
        lambda a: a.__iadd__(a[::-1]),
        lambda a: a.__setitem__((slice(None), slice(1, 3)), a[:, 2:0:-1]),
    ):
        write(x)
        write(n)
        assert_same(x, n)
    assert_same(before, values + 0)


@single
def test_kinds_meet_plain_arrays(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    other = ordinary("f8", (3, 4), seed=9)
    x, y = kind.make(values), kind.family(other)
    assert_same(x + y, values + other)
    assert_same(y / (x * 0 + 2), other / (values * 0 + 2))
    assert_closed(mb.materialize(x + y), kind)


# Shapes


SHAPES = [
    ((), ()), ((), (3,)), ((0,), (1,)), ((0,), ()), ((3,), (2, 3)), ((2, 1), (3,)), ((4, 1, 3), (2, 1)),
    ((0, 3), (3,)), ((2, 0), (2, 1)), ((1,), (1, 1, 1)), ((5,), (4, 1)), ((1, 3), (2, 1, 1)), ((0, 1), (1, 0)),
]  # fmt: skip


@leaves
@pytest.mark.parametrize("shapes", SHAPES, ids=repr)
def test_mixed_ranks_zero_dimensions_and_empty_arrays(kind, shapes, way):
    a, b = (ordinary("f8", s, seed=i) for i, s in enumerate(shapes))
    x, y = mb.materialize(kind.make(a)), mb.materialize(kind.make(b))
    with counting_as_many() as c:
        result = mb.materialize(x * 2 - y)
    assert_same(result, np.asarray(a * 2 - b))
    assert_closed(result, kind)
    assert_one_launch(c, kind)
    assert_same(mb.where(x > 0, y, 1.0), np.where(a > 0, b, 1.0))
    assert_same(mb.sum(x + y), np.sum(a + b), rtol=1e-14, atol=1e-13)


@leaves
def test_zero_dimensional_results_are_arrays(kind):
    x = kind.make(np.array(2.5))
    for result in (x + 1, -x, mb.sqrt(x), mb.sum(kind.make(np.ones(3)))):
        assert result.ndim == 0
        assert_closed(mb.materialize(result), kind)


def test_long_dimensions_in_blocks_and_threads(way):
    """Sizes around the interpreter's block and the reductions' block, and several threads."""
    with mb.settings.changed(thread_size=1000):
        for n in (1023, 1024, 1025, (1 << 14) - 1, (1 << 14) + 1, 70_001):
            values = ordinary("f8", n)
            x = mb.HostArray(values)
            assert_same(x * 2 + x[::-1], values * 2 + values[::-1])
            assert_same(mb.sum(x), np.sum(values), rtol=1e-13, atol=1e-9)
            assert_same(mb.max(x - 1), np.max(values - 1))
        values = ordinary("f4", (130, 257))
        x = mb.HostArray(values)
        assert_same(x.T * 2 + x.T, values.T * 2 + values.T)
        assert_same(x[::2, ::-3] - 1, values[::2, ::-3] - 1)
        for axis in (0, 1):
            assert_same(mb.sum(x, axis=axis), np.sum(values, axis=axis), rtol=1e-5, atol=1e-3)


# Casts, where, clip


@plain
@every_dtype
def test_casts_are_numpys(kind, dtype):
    for target in DTYPES:
        # What an out-of-range float becomes as an integer is not defined, in C or in NumPy.
        values = ordinary(dtype, 8) if dtype.kind in "fc" and target.kind in "iu" else edges(dtype)
        if dtype.kind in "fc" and target.kind in "iu":
            values = np.abs(values.real).astype(dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            expected = values.astype(target)
            result = mb.materialize(kind.family(values).astype(target))
        assert_same(result, expected)
        assert_closed(mb.materialize(result), kind)


def test_discarding_imaginary_parts_warns_alike_everywhere():
    from ways import running

    said = []
    for way in ("cold", "hot"):
        for family in (mb.HostArray, mb.RefArray):
            with running(way), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                mb.materialize(family([1 + 2j, 3j]).astype("f8"))
            said.append([w.category for w in caught])
    assert all(s == said[0] for s in said), said


def test_compiled_casts_are_numpys(hot):
    for source in map(np.dtype, ("?", "i1", "u4", "i8", "f4", "f8")):
        for target in map(np.dtype, ("?", "u1", "i4", "u8", "f4", "f8", "c16")):
            values = np.abs(ordinary(source, 70)) if source.kind == "f" else np.resize(edges(source), 70)
            assert_same(mb.HostArray(values).astype(target), values.astype(target))


@plain
def test_writing_casts_to_the_destination(kind, way):
    for dtype in ("?", "i2", "f4", "c8"):
        x, n = mb.zeros(6, dtype=dtype, device=kind.family), np.zeros(6, dtype)
        values = np.array([0.0, 1.0, 2.75, 3.5, 100.25, 7.0])
        x[...] = kind.family(values) * 2
        n[...] = values * 2
        assert_same(x, n)
        x[1:3] = kind.family(values[:2])
        n[1:3] = values[:2]
        assert_same(x, n)


@plain
@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "f8"])
def test_clip_is_numpys(kind, dtype, way):
    values = ordinary(dtype, (3, 5))
    x = kind.family(values)
    low, high = ordinary(dtype, 5, seed=4), 9
    assert_same(mb.clip(x, 2, high), np.clip(values, 2, high))
    assert_same(mb.clip(x, None, high), np.clip(values, None, high))
    assert_same(mb.clip(x, kind.family(low), 3), np.clip(values, low, 3))
    assert_same(x.clip(max=4), values.clip(max=4))
    if dtype in ("f4", "f8"):
        special = np.array([np.nan, np.inf, -np.inf, 0.5], dtype)
        assert_same(mb.clip(kind.family(special), 0, 1), np.clip(special, 0, 1))


@plain
def test_where_takes_scalars_and_chooses_without_computing_errors(kind, way):
    values = np.array([0.0, -1.0, 4.0])
    x = kind.family(values)
    with np.errstate(all="ignore"):
        expected = np.where(values > 0, 1 / values, 0.0)
    assert_same(mb.where(x > 0, 1 / x, 0.0), expected)
    assert_same(mb.where(x, 1, 2), np.where(values, 1, 2))
    assert_same(mb.where(True, x, 7), np.where(True, values, 7))
    assert_same(mb.where(x > 0, np.float32(1), x), np.where(values > 0, np.float32(1), values))


# Literal powers


@plain
@pytest.mark.parametrize("n", [-2, -1, 0, 1, 2, 3, 4, 5, 7, 0.5, 2.0, -0.5])
def test_literal_powers(kind, n, way):
    for dtype in ("?", "i4", "u1", "f4", "f8", "c16"):
        values = ordinary(dtype, 9)
        if isinstance(n, float) and dtype not in ("?", "c16"):
            values = np.abs(values) + np.ones((), values.dtype)
        expected, refusal = outcome(operator.pow, values, n)
        result, ours = outcome(lambda x: mb.materialize(x**n), kind.family(values))
        assert (ours is None) == (refusal is None), dtype
        if refusal is None:
            eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
            assert_same(result, expected, rtol=8 * eps, atol=0)


# Reductions


AXES = [None, (), 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2), (-1, 0)]
EXACT = ["sum", "prod", "min", "max", "any", "all", "count_nonzero"]


def check_reduction(kind, name, values, axis, keepdims, tolerance):
    expected, refusal = outcome(lambda v: getattr(np, name)(v, axis=axis, keepdims=keepdims), values)
    x = mb.materialize(kind.make(values))
    f = getattr(mb, name)
    if refusal is not None:
        with pytest.raises(refusal):
            mb.materialize(f(x, axis=axis, keepdims=keepdims))
        return
    with counting_as_many() as c:
        result = mb.materialize(f(x, axis=axis, keepdims=keepdims))
    assert_same(result, np.asarray(expected), rtol=tolerance, atol=tolerance, any_zero=True)
    assert_closed(result, kind)
    assert c.scalar_reads == 0
    if name in EXACT and not (name in ("min", "max") and values.dtype.kind == "c"):
        assert_one_launch(c, kind)


@plain
@every_dtype
@pytest.mark.parametrize("name", [*EXACT, "mean", "var", "std"])
def test_reductions_of_every_dtype(kind, dtype, name):
    if dtype.kind == "b" and name in ("var", "std", "mean"):
        values = ordinary("?", (2, 3, 4))
    else:
        values = ordinary(dtype, (2, 3, 4))
    if name == "prod" and dtype.kind in "fc":
        values = (values / 4 + values.dtype.type(0.5)).astype(dtype)
    rounded = dtype.kind in "fc" or name in ("mean", "var", "std")
    eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2e-16
    for axis in AXES if not kind.on_device else (None, 0, (1, 2)):
        for keepdims in (False, True):
            check_reduction(kind, name, values, axis, keepdims, 64 * eps if rounded else 0)


@pytest.mark.parametrize("name", [*EXACT, "mean", "var"])
def test_compiled_reductions(hot, name):
    for dtype in map(np.dtype, ("?", "i2", "u8", "f4", "f8", "c16")):
        if name in ("min", "max") and dtype.kind == "c":
            continue
        values = ordinary(dtype, (6, 7, 8))
        if name == "prod" and dtype.kind in "fc":
            values = np.exp(values / 50).astype(dtype)
        rounded = dtype.kind in "fc" or name in ("mean", "var", "std")
        eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2e-16
        # (Each axis is another kernel, which takes a quarter of a second to compile.)
        for axis in (None, 0, 2, (0, 1), (1, 2), (0, 2)) if dtype.char == "d" else (None, (0, 2)):
            check_reduction(LEAVES["host"], name, values, axis, False, 512 * eps if rounded else 0)


@leaves
@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (3, 0), (2, 0, 4)], ids=repr)
def test_reductions_of_empty_and_scalar_arrays(kind, shape, way):
    values = ordinary("f8", shape)
    axes = [None, *range(len(shape))]
    for name in EXACT:
        for axis in axes:
            check_reduction(kind, name, values, axis, False, 0)


@plain
def test_reductions_see_nan_and_infinity(kind, way):
    values = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, -np.inf]])
    for name in ("sum", "min", "max", "any", "all", "count_nonzero"):
        for axis in (None, 0, 1):
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(values, axis=axis)
            assert_same(getattr(mb, name)(kind.family(values), axis=axis), expected)


@plain
def test_integer_sums_wrap_and_widen_as_numpys(kind, way):
    for dtype in INTEGERS:
        values = np.full(40, np.iinfo(dtype).max, dtype)
        assert_same(mb.sum(kind.family(values)), np.sum(values))
        assert_same(mb.prod(kind.family(values)), np.prod(values))
        assert_same(mb.sum(kind.family(values), dtype=dtype), np.sum(values, dtype=dtype))


def test_sums_are_as_accurate_as_pairwise_summation(way):
    values = np.full(100_003, 0.1, "f4")
    exact = math.fsum(values.astype("f8"))
    for x, axis in ((mb.HostArray(values), None), (mb.HostArray(values[:, None] * [[1, 1, 1]]), 0)):
        x = x.astype("f4")
        got = mb.to_numpy(mb.sum(x, axis=axis)).ravel()
        assert np.all(abs(got - exact) <= 8 * np.finfo("f4").eps * exact)


def test_half_precision_means_do_not_overflow(way):
    values = np.full(5000, 100.0, "f2")
    assert_same(mb.mean(mb.HostArray(values)), np.mean(values))


def test_both_ways_of_running_reduce_in_one_order():
    """Results must not change when a kernel becomes ready, nor with the number of threads."""
    from ways import running

    values = np.random.default_rng(5).standard_normal((37, 2111))
    results = []
    for way in ("cold", "hot"):
        for threads in (1, 2):
            with running(way), mb.settings.changed(num_threads=threads):
                x = mb.HostArray(values)
                results.append([mb.to_numpy(mb.sum(x * 1.5, axis=a)).tobytes() for a in (None, 0, 1)])
    assert all(r == results[0] for r in results)


@plain
def test_sum_of_squares_norm_dot_and_matmul(kind):
    a, b = ordinary("f8", (4, 5)), ordinary("f8", (5, 3), seed=2)
    x, y = kind.family(a), kind.family(b)
    assert_same(mb.norm(x), np.linalg.norm(a), rtol=1e-14)
    for p in (0, 1, 3, np.inf, -np.inf):
        assert_same(mb.norm(x.reshape(-1), p), np.linalg.norm(a.ravel(), p), rtol=1e-13)
    assert_same(x @ y, a @ b, rtol=1e-13)
    assert_same(x.T @ x, a.T @ a, rtol=1e-13)
    assert_same(x[0] @ y, a[0] @ b, rtol=1e-13)
    assert_same(mb.dot(x[0], x[1]), np.dot(a[0], a[1]), rtol=1e-13)
    assert_closed(x @ y, kind)


@plain
@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum"])
def test_accumulate_is_numpys(kind, op):
    values = ordinary("i8", (3, 4))
    for axis in (0, 1):
        result = mb.accumulate(kind.family(values), op, axis=axis)
        assert_same(result, getattr(np, op).accumulate(values, axis=axis))
        assert_closed(result, kind)
    assert_same(mb.accumulate(kind.family(values[0]), getattr(mb, op)), getattr(np, op).accumulate(values[0]))


# Complex and half precision in whole expressions


@plain
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=ids([*FLOATS, *COMPLEX]))
def test_a_longer_expression_in_each_floating_dtype(kind, dtype, way):
    a, b = ordinary(dtype, (5, 6)), ordinary(dtype, (5, 6), seed=1)
    x, y = kind.family(a), kind.family(b)
    f = lambda xp, a, b: xp.exp(-xp.abs(a)) * b + xp.sin(a) / (xp.abs(b) + 1)
    assert_same(
        f(mb, x, y), f(np, a, b), rtol=32 * float(np.finfo(dtype).eps), atol=32 * float(np.finfo(dtype).eps)
    )


# Making arrays


@plain
def test_creation_functions(kind):
    device = kind.family
    assert_same(mb.zeros((2, 3), device=device), np.zeros((2, 3)))
    assert_same(mb.ones(4, dtype="i2", device=device), np.ones(4, "i2"))
    assert_same(mb.full((2,), 2.5, device=device), np.full((2,), 2.5))
    assert_same(mb.full((), 3, device=device), np.full((), 3))
    assert_same(mb.arange(5, device=device), np.arange(5))
    assert_same(mb.arange(1, 2, 0.25, device=device), np.arange(1, 2, 0.25))
    assert_same(mb.linspace(0, 1, 7, device=device), np.linspace(0, 1, 7))
    assert_same(mb.linspace(0, 1, 7, endpoint=False, device=device), np.linspace(0, 1, 7, endpoint=False))
    x = mb.ones((2, 2), dtype="f4", device=device)
    assert_same(mb.zeros_like(x), np.zeros((2, 2), "f4"))
    assert_same(mb.ones_like(x, dtype=int), np.ones((2, 2), int))
    assert_same(mb.full_like(x, 7), np.full((2, 2), 7, "f4"))
    assert mb.empty_like(x).shape == (2, 2) and mb.empty(3, device=device).dtype == "f8"
    assert mb.similar(x, dtype="i4", shape=(3,)).shape == (3,)
    for made in (mb.zeros(2, device=device), mb.similar(x), mb.arange(3, device=device)):
        assert_closed(made, kind)


@single
def test_adapting_moves_and_keeps_the_structure(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    target = mb.RefArray if kind.family is mb.HostArray else mb.HostArray
    with mb.count() as c:
        moved = mb.adapt(target, x)
    assert c.transfers >= 1
    assert_same(moved, values)
    assert moved.place == target.home
    assert mb.adapt(kind.family, kind.family(values)).place == kind.place
    assert_same(mb.adapt(target[mb.float32], x), values.astype("f4"))


def test_inplace_operators_on_an_element_cast_back_as_numpys_do():
    for family in (mb.HostArray, mb.RefArray):
        x = family([1, 2])
        with mb.allow_scalar():
            x[0] += 1.5
            x[1] *= 2
        assert_same(x, np.array([2, 4]))
