"""The scalar functions of kernels on cards: do they compile, and do they mean what NumPy means?

Values are those of the same functions in plain Python and compiled by Numba for the host, because
machines that test have no card. What is a library's own (sin, exp of reals) is not asked.
"""

import contextlib
import functools
import math
import types
from fractions import Fraction

import numba
import numpy as np
import pytest
from compare import assert_same
from special_values import COMPLEX, COMPLEX_TO_REAL, EVERY, TURNED, cases, check, operands

import mirabelle as mb
from mirabelle.backends.gpu import operations
from mirabelle.backends.host.interpreter import numpy_callable
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import code as code_of
from mirabelle.dispatch.promotion import signature

ALL = list(operations.names())
STEMS = sorted({stem for stem, *_ in ALL})
# Results that depend on how an exponential or a logarithm is rounded: ulps of the working precision.
ROUNDED = {"logaddexp": 200, "logaddexp2": 200, "ldexp": 0}
COMPLEX_FUNCTIONS = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "pow", "abs", "sign",
    "reciprocal", "divide", "multiply", "square",
]  # fmt: skip


def ours(stem, code):
    """Is the operation written here, and not one of the compiler's library?"""
    return not isinstance(operations._PATTERNS[np.dtype(code).kind][stem], str)


# Compilation


@functools.cache
def compiler():
    """numba-cuda, if it can compile here: that needs NVIDIA's compiler, and no card."""
    try:
        from numba import cuda

        from mirabelle.backends.gpu.compiler import targeting

        with targeting((9, 0)):
            cuda.compile(lambda x: x, (operations._types("cuda")["f8"],), device=True, abi="numba", cc=(9, 0))
    except Exception as e:
        return f"numba-cuda with the CUDA compiler's wheels is not installed: {e}".splitlines()[0]
    return cuda


@pytest.fixture
def cuda():
    found = compiler()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize("stem", STEMS)
def test_compiles_for_a_card(stem, cuda):
    from mirabelle.backends.gpu.compiler import device_function, targeting

    nt = operations._types("cuda")
    parameters, calls, scope, expected = [], [], {}, []
    for k, (_, code, ins, outs) in enumerate(n for n in ALL if n[0] == stem):
        names = [f"x{k}_{i}" for i in range(len(ins))]
        parameters += [(name, nt[c]) for name, c in zip(names, ins, strict=True)]
        calls.append(f"f{k}({', '.join(names)})")
        scope[f"f{k}"] = device_function(operations.scalar_function(stem, code))
        expected.append(tuple(nt[c] for c in outs))
    # All dtypes at once: most of the time of a compilation is the same for one and for many.
    exec(f"def every({', '.join(n for n, _ in parameters)}):\n    return ({', '.join(calls)},)", scope)
    with targeting((9, 0)):
        _, result = cuda.compile(
            scope["every"], tuple(t for _, t in parameters), device=True, abi="numba", cc=(9, 0), output="ptx"
        )
    results = list(result)
    assert [tuple(r) if len(e) > 1 else (r,) for r, e in zip(results, expected, strict=True)] == expected


def test_every_operation_of_numpy_has_a_function():
    have = {(stem, code) for stem, code, *_ in ALL}
    missing = []
    for stem, op in TABLE.items():
        for loop in op.ufunc.types if op.ufunc is not None else ():
            if set(loop) & set("gGOmM"):
                continue
            with contextlib.suppress(TypeError):
                sig = signature(op, tuple(np.dtype(c) for c in loop.split("->")[0]))
                if (stem, code_of(sig.ins[0])) not in have:
                    missing.append(f"{stem} {loop}")
    assert not missing
    for stem in ("erf", "erfc", "gamma", "lgamma", "sinpi", "cospi", "fma"):
        assert {(stem, c) for c in ("f2", "f4", "f8")} <= have
    assert {code for stem, code, *_ in ALL if stem == "where"} == set(operations.CODES)


def test_unknown_names_are_refused():
    for f in (operations.scalar_function, operations.simulated_function):
        with pytest.raises(KeyError):
            f("thread", "f8")
    with pytest.raises(KeyError):
        operations.scalar_function("sin", "i4")


def test_functions_are_kept_and_say_what_they_call():
    f = operations.scalar_function("divmod", "i4", "host")
    assert f is operations.scalar_function("divmod", "i4", "host")
    assert set(f.calls) == {"signed_floor_divide", "signed_remainder"}


# Values


def special(code):
    """Numbers of a dtype that are worth trying."""
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info, bits = np.iinfo(dtype), 8 * dtype.itemsize
        tried = {0, 1, 2, 3, 5, 7, 12, 18, bits - 1, bits, -1, -2, -3, -7, -12, info.max // 2 + 1}
        tried |= {info.max, info.max - 1, info.min, info.min + 1}
        return np.array(sorted(v for v in tried if info.min <= v <= info.max), dtype)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        tiny = info.smallest_subnormal
        found = [*EVERY, math.pi, -2.5, 2.5, 0.1, -0.3, 1.7, 4.0, -4.0, 100.0, 2047.0, 65000.0]
        found += [info.max, -info.max, info.tiny, tiny, -tiny, 3 * tiny, 1 + info.eps, 1 - info.eps / 2]
        with np.errstate(over="ignore"):
            return np.array(found).astype(dtype)
    parts = np.array([0.0, -0.0, 1, -1, 0.5, -2, 3, 0.6, 1e-30, -1e30, math.inf, -math.inf, math.nan])
    z = np.empty(len(parts) ** 2, dtype)
    z.real, z.imag = np.repeat(parts, len(parts)), np.tile(parts, len(parts))
    return z


def grid(ins, limit):
    """Operands of every kind with every other, or as many of them as `limit`."""
    values = [special(c) for c in ins]
    xs = [g.reshape(-1) for g in np.meshgrid(*values, indexing="ij")]
    if len(xs[0]) > limit:
        chosen = np.random.default_rng(0).choice(len(xs[0]), limit, replace=False)
        xs = [x[chosen] for x in xs]
    return xs


def applied(f, xs, expected):
    """A scalar function on every element, as arrays of the expected dtypes."""
    with np.errstate(all="ignore"):
        rows = [f(*x) for x in zip(*xs, strict=True)]
    if len(expected) == 1:
        return [np.array(rows, expected[0].dtype)]
    return [np.array([row[j] for row in rows], e.dtype) for j, e in enumerate(expected)]


def numpy_values(stem, ins, xs):
    sig = signature(TABLE[stem], tuple(map(np.dtype, ins)))
    with np.errstate(all="ignore"):
        result = numpy_callable(sig)[0](*xs)
    return result if isinstance(result, tuple) else (result,)


def compared(stem, code, ins, f, limit=2000):
    xs = grid(ins, limit)
    if stem == "pow" and np.dtype(code).kind == "i":
        xs = [x[xs[1] >= 0] for x in xs]
    expected = numpy_values(stem, ins, xs)
    # Which of two equal zeros is the larger depends on the processor's instructions.
    zeros = stem in ("maximum", "minimum", "fmax", "fmin")
    for mine, wanted in zip(applied(f, xs, expected), expected, strict=True):
        tolerance = ROUNDED.get(stem, 0) * (np.finfo(wanted.dtype).eps if wanted.dtype.kind in "fc" else 0)
        assert_same(mine, wanted, rtol=tolerance, atol=tolerance, any_zero=zeros)


SIMPLE = [
    (stem, code, ins)
    for stem, code, ins, _ in ALL
    if ours(stem, code) and not (code[0] == "c" and stem in COMPLEX_FUNCTIONS)
]


@pytest.mark.parametrize("code", operations.CODES)
def test_values_are_numpys(code):
    for stem, c, ins in SIMPLE:
        if c == code:
            compared(stem, code, ins, operations.scalar_function(stem, code, "numpy"))


@pytest.mark.parametrize("stem", sorted(n for n in operations._PATTERNS["f"] if not ours(n, "f2")))
def test_half_precision_is_the_single_precision_rounded(stem):
    f = operations.scalar_function(stem, "f2", "numpy")
    ins = ("f2",) * TABLE[stem].nin
    xs = grid(ins, 1000)
    (expected,) = numpy_values(stem, ins, xs)
    if stem == "pow":  # a square root where NumPy sees a single number and 0.5
        ordinary = xs[1] != 0.5
        xs, expected = [x[ordinary] for x in xs], expected[ordinary]
    (mine,) = applied(f, xs, [expected])
    assert_same(mine, expected, rtol=1e-3, atol=1e-7)


@functools.cache
def compiled(f):
    """A function as Numba compiles it for the host, and so those it calls."""
    made = types.FunctionType(
        f.__code__, f.__globals__ | {n: compiled(g) for n, g in f.calls.items()}, f.__name__, f.__defaults__
    )
    return numba.njit(error_model="numpy")(made)


# Compiled code widens numbers where plain Python does not: each kind of dtype, and the odd 64 bits.
@pytest.mark.parametrize("code", ["b1", "i1", "i8", "u4", "u8", "f4"])
def test_compiled_values_are_numpys(code):
    trivial = ("copy", "positive", "real", "conj", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite")
    for stem, c, ins in SIMPLE:
        if c == code and stem not in trivial:
            f = operations.scalar_function(stem, code, "host")
            compared(stem, code, ins, compiled(f), limit=500)


def test_integer_powers_with_negative_exponents():
    f = operations.scalar_function("pow", "i4", "numpy")
    result = [int(f(np.int32(b), np.int32(e))) for b in (0, 1, -1, 2, -5) for e in (-1, -2)]
    assert result == [0, 0, 1, 1, -1, 1, 0, 0, 0, 0]


def test_half_neighbours_are_numpys_for_every_half():
    every = np.arange(1 << 16, dtype=np.uint16)[::7].view(np.float16)
    with np.errstate(all="ignore"):
        for target in (np.inf, -np.inf):
            f = operations.scalar_function("nextafter", "f2", "numpy")
            to = np.float16(target)
            assert_same(np.array([f(x, to) for x in every]), np.nextafter(every, to))
        f = operations.scalar_function("spacing", "f2", "numpy")
        assert_same(np.array([f(x) for x in every]), np.spacing(every))


# Complex functions


# Here NumPy has other values than the standard. (arraytypes/specialvalues.py mends them, on cards too.)
MENDED = [
    ("sign", "nan, any -> nan, nan"),
    ("sign", "any, nan -> nan, nan"),
    ("expm1", "0, +0 -> +0, +0"),
    ("tanh", "+inf, + -> 1, +0"),
]


@pytest.mark.parametrize(
    ("stem", "line"), [case for case in cases(COMPLEX) + cases(COMPLEX_TO_REAL) if case not in MENDED]
)
def test_special_complex_values(stem, line):
    xs = operands(line)
    z = np.empty(len(xs[0]), np.complex128)
    z.real, z.imag = xs
    f = operations.scalar_function(stem, "c16", "numpy")
    with np.errstate(all="ignore"):
        check(line, xs, np.array([f(v) for v in z]))


@pytest.mark.parametrize("stem", sorted(TURNED))
def test_turned_functions_are_numpys_at_special_values(stem):
    z = special("c16")
    f = operations.scalar_function(stem, "c16", "numpy")
    (expected,) = numpy_values(stem, ("c16",), [z])
    (mine,) = applied(f, [z], [expected])
    assert_same(mine.real, expected.real, rtol=1e-14)
    assert_same(mine.imag, expected.imag, rtol=1e-14)


def plane(code, n=400):
    """Points of the complex plane of all sizes, some near the unit circle and the branch points."""
    rng = np.random.default_rng(3)
    top = 2.5 if code == "c16" else 1.2
    radius = 10 ** rng.uniform(-8, top, n)
    z = radius * np.exp(1j * rng.uniform(0, 2 * np.pi, n))
    z[: n // 4] /= np.abs(z[: n // 4]) * (1 + 10 ** rng.uniform(-15, -2, n // 4))
    near = 10 ** rng.uniform(-12, -1, n // 4) * np.exp(1j * rng.uniform(0, 2 * np.pi, n // 4))
    z[n // 4 : n // 4 * 2] = rng.choice([1, -1, 1j, -1j], n // 4) + near
    return z.astype(code)


@pytest.mark.parametrize("code", ["c8", "c16"])
@pytest.mark.parametrize("stem", COMPLEX_FUNCTIONS)
def test_complex_functions_over_the_plane(stem, code):
    z = plane(code)
    xs = [z] if TABLE[stem].nin == 1 else [z, np.roll(z, 7) / 50]
    f = operations.scalar_function(stem, code, "numpy")
    with np.errstate(all="ignore"):
        mine = np.array([f(*x) for x in zip(*xs, strict=True)])
        # NumPy's, with more digits: its own log1p and powers lose some.
        exact = TABLE[stem].ufunc(*[x.astype(np.clongdouble) for x in xs])
    assert mine.dtype == (np.dtype(code) if stem != "abs" else np.dtype(f"f{z.itemsize // 2}"))
    if stem == "log1p":
        keep = np.abs(np.abs(1 + z) - 1) > 1e-3
        mine, exact = mine[keep], exact[keep]
    info = np.finfo(mine.dtype)
    inside = (np.abs(exact) < info.max) & (np.abs(exact) > info.tiny)
    ulps = np.abs(mine - exact)[inside] / np.abs(exact)[inside] / info.eps
    # Powers and 2**z multiply errors by the size of the exponent.
    assert ulps.max() < {"pow": 400, "exp2": 400}.get(stem, 4)


def test_logarithms_near_zero_keep_their_digits():
    f = operations.scalar_function("log1p", "c16", "numpy")
    for z in (1e-12 + 1e-10j, -1e-13 + 1e-7j, 1e-300 + 1e-20j):
        w = f(np.complex128(z))
        assert math.isclose(w.real, z.real + (z.imag**2 - z.real**2) / 2, rel_tol=1e-6)
    f = operations.scalar_function("log", "c16", "numpy")
    w = f(np.complex128(0.6 + 0.8j))  # |z|² - 1 from the digits of 0.6 and 0.8
    exact = Fraction(0.6) ** 2 + Fraction(0.8) ** 2 - 1
    assert math.isclose(w.real, float(exact) / 2, rel_tol=1e-12)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-160, 1e160, 1e300, 1.2e308])
def test_no_complex_function_leaves_the_range_too_early(size):
    with np.errstate(all="ignore"):
        for z in (complex(size, 0.3 * size), complex(-0.7 * size, size)):
            for stem in ("sqrt", "log", "abs", "sign", "asinh", "atan", "acos"):
                if stem == "sign" and size < 1e-310:
                    continue  # its size has few digits left, as NumPy's
                f = operations.scalar_function(stem, "c16", "numpy")
                wanted = TABLE[stem].ufunc(np.clongdouble(z))
                if stem == "sign":
                    wanted = np.clongdouble(z) / np.abs(np.clongdouble(z))
                assert abs(f(np.complex128(z)) - wanted) <= 1e-14 * abs(wanted) + 5e-324, (stem, z)


# Simulated cards


@pytest.mark.parametrize("code", operations.CODES)
def test_simulated_functions_are_quiet(code):
    with np.errstate(all="ignore"):
        for stem, c, ins, outs in ALL:
            if c != code:
                continue
            f = operations.simulated_function(stem, code)
            for x in zip(*[special(i)[-20:] for i in ins], strict=False):
                result = f(*x)
                results = result if len(outs) > 1 else (result,)
                assert [np.asarray(r).dtype for r in results] == [np.dtype(o) for o in outs], stem
                assert all(np.ndim(r) == 0 for r in results)


def test_simulated_functions_are_numpys_where_it_has_them():
    assert operations.simulated_function("sin", "f4") is np.sin
    # On single numbers NumPy takes a square root.
    f = operations.simulated_function("pow", "f8")
    assert not np.signbit(f(np.float64(-0.0), np.float64(0.5)))


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_numbers_of_a_program_overflow_as_arrays_do(dtype):
    """(Simulated kernels get numbers as well as arrays, and Python's integers have no end.)"""
    a = np.array([[-2], [3], [1], [7]]).astype(dtype)
    large = np.dtype(dtype).type(2**40)

    def f(x):
        made = mb.square(mb.where(x > 1, large, large))
        return made, mb.logical_and(x, made)

    x, expected = mb.RefArray(a), np.square(np.full_like(a, large))
    for made in (f(x), mb.compile(f, whole=True)(x)):
        np.testing.assert_array_equal(mb.to_numpy(made[0]), expected)
        np.testing.assert_array_equal(mb.to_numpy(made[1]), np.logical_and(a, expected))
