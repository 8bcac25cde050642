"""What dispatch/csrc/loops.c does for few doubles: to the last bit what NumPy does."""

import operator
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirabelle as mb
from tests.compare import assert_same
from tests.special_values import EVERY

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
OF_ONE = {
    "negative": (mb.negative, np.negative),
    "absolute": (mb.abs, np.abs),
    "square": (mb.square, np.square),
    "sqrt": (mb.sqrt, np.sqrt),
}
NUMBERS = [
    2.5, -0.0, 0.0, float("inf"), float("nan"), 3, 0, -7, 2**53, 2**53 + 1, 2**63, True,
    np.float64(1.5), np.float32(1.5), np.int64(4), np.float16(2.0), np.bool_(True), 1j,
]  # fmt: skip


def bits(x):
    x = np.asarray(x)
    return x.view(np.uint64) if x.dtype == np.float64 else x


def expected(f, a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(a, b)


def agree(ours, numpys):
    ours = mb.to_numpy(ours)
    assert ours.dtype == numpys.dtype and ours.shape == numpys.shape
    nan = np.isnan(numpys)
    np.testing.assert_array_equal(np.isnan(ours), nan)
    np.testing.assert_array_equal(bits(ours[~nan]), bits(numpys[~nan]))


def with_specials(n):
    values = np.random.default_rng(n).standard_normal(n)
    values[: min(n, len(EVERY))] = EVERY[:n]
    return values


@pytest.mark.parametrize("f", OPERATORS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1001, 2048, 2049])
def test_operations_of_vectors(f, n):
    a = with_specials(n)
    for b in (a[::-1].copy(), np.random.default_rng(1).standard_normal(n)):
        x, y = mb.HostArray(a), mb.HostArray(b)
        agree(f(x, y), expected(f, a, b))
        assert_same(x, a)  # (nothing was computed in its memory)
        assert_same(y, b)


@pytest.mark.parametrize("ours, numpys", OF_ONE.values(), ids=OF_ONE)
@pytest.mark.parametrize("n", [1, 3, 64, 2048, 2049])
def test_operations_of_one_vector(ours, numpys, n):
    a = with_specials(n)
    x = mb.HostArray(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in (lambda u: u, lambda u: u[::-1], lambda u: u[1::2], lambda u: u[:1]):
            agree(ours(part(x)), numpys(part(a)))
            agree(ours(part(x).astype("f4")), numpys(part(a).astype("f4")))
        assert_same(x, a)


@pytest.mark.parametrize("f", OPERATORS)
@pytest.mark.parametrize("s", NUMBERS, ids=repr)
def test_operations_with_numbers(f, s):
    a = with_specials(40)
    x = mb.HostArray(a)
    agree(f(x, s), expected(f, a, s))
    agree(f(s, x), expected(f, s, a))


@pytest.mark.parametrize("f", OPERATORS)
def test_operands_of_other_dtypes_and_layouts(f):
    a = np.random.default_rng(0).uniform(1, 2, (6, 8))
    x = mb.HostArray(a)
    for b in (a.astype("f4"), a.astype("i8"), a[0], a[:, :1], a[:1, :1], a[::-1], a[:, ::-1]):
        agree(f(x, mb.HostArray(b)), expected(f, a, b))
    for part in (lambda u: u.T, lambda u: u[1:, ::2], lambda u: u[2], lambda u: u[:, 3], lambda u: u[0:0]):
        agree(f(part(x), part(x)), expected(f, part(a), part(a)))
        agree(f(part(x), 3.0), expected(f, part(a), 3.0))
    fortran = mb.HostArray(np.asfortranarray(a))
    agree(f(fortran, x), expected(f, a, a))


@settings(max_examples=150)
@given(
    tree=st.recursive(
        st.sampled_from(["x", "y", "x[::-1]", "2.0", "n", "held"]),
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=7,
    ),
    n=st.sampled_from([1, 5, 600]),
)
def test_trees_of_operations(tree, n):
    """Values on the way may be overwritten; what anybody holds may not."""
    plain = {"x": np.arange(1.0, n + 1), "y": np.linspace(-2, 3, n), "n": 3}
    ours = {k: mb.HostArray(v) if k != "n" else v for k, v in plain.items()}
    plain["held"], ours["held"] = plain["x"] * plain["y"], ours["x"] * ours["y"]
    before = {k: np.copy(v) for k, v in plain.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = eval(tree, dict(plain))
        except ZeroDivisionError:
            return
    found = eval(tree, dict(ours))
    if isinstance(wanted, np.ndarray):
        again = mb.copy(found)
        agree(found, wanted)
        agree(again, wanted)
    for k, v in before.items():
        assert_same(mb.asarray(ours[k]), v)


TARGETS = {
    "row": lambda u: u[2],
    "column": lambda u: u[:, 3],
    "end of a row": lambda u: u[1, 2:],
    "steps": lambda u: u[3, ::2],
    "backwards": lambda u: u[4, ::-1],
    "block": lambda u: u[1:4, 2:5],
    "turned block": lambda u: u[::-1, ::3],
    "nothing": lambda u: u[2:2],
    "all": lambda u: u[...],
}


@pytest.mark.parametrize(
    "kind", ["array", "part", "number", "whole number", "other dtype", "stretched", "itself"]
)
@pytest.mark.parametrize("target", TARGETS)
def test_writes_of_parts(target, kind):
    show = TARGETS[target]
    n = np.zeros((6, 7))
    x = mb.HostArray(n)
    rng = np.random.default_rng(3)
    for _ in range(3):
        shape = show(n).shape
        large = rng.standard_normal((20, 30))
        if kind == "array":
            value = large[: shape[0], : shape[-1]] if len(shape) == 2 else large[0, : shape[0]]
            value = value.copy()
        elif kind == "part":
            value = (
                large[3 : 3 + shape[0], 5 : 5 + shape[-1]] if len(shape) == 2 else large[4 : 4 + shape[0], 2]
            )
        elif kind == "stretched":
            value = large[0, : shape[-1]].copy()
        elif kind == "other dtype":
            value = np.ones(shape, "f4")
        elif kind == "itself":
            value = n[: shape[0], : shape[-1]] if len(shape) == 2 else n[5, : shape[0]]
        else:
            value = {"number": float(rng.standard_normal()), "whole number": 2**62 + 1}[kind]
        ours: object = mb.HostArray(value) if isinstance(value, np.ndarray) else value
        if kind == "part":
            whole = mb.HostArray(large)
            ours = whole[3 : 3 + shape[0], 5 : 5 + shape[-1]] if len(shape) == 2 else whole[4 : 4 + shape[0], 2]
        elif kind == "itself":
            ours = x[: shape[0], : shape[-1]] if len(shape) == 2 else x[5, : shape[0]]
        index = {
            "row": 2,
            "column": (slice(None), 3),
            "end of a row": (1, slice(2, None)),
            "steps": (3, slice(None, None, 2)),
            "backwards": (4, slice(None, None, -1)),
            "block": (slice(1, 4), slice(2, 5)),
            "turned block": (slice(None, None, -1), slice(None, None, 3)),
            "nothing": slice(2, 2),
            "all": ...,
        }[target]
        held = x + 0  # (pending: it reads what is about to be written)
        before = n.copy()
        n[index] = value
        x[index] = ours
        assert_same(x, n)
        assert_same(held, before)


def test_errors_are_numpys_and_nothing_is_written():
    x = mb.HostArray(np.zeros((3, 4)))
    for value in (mb.ones(3), mb.ones((2, 4))):
        with pytest.raises(ValueError, match="broadcast"):
            x[1] = value
    with pytest.raises((TypeError, ValueError, OverflowError)):
        x[1, 1:] = 10**400
    assert_same(x, np.zeros((3, 4)))


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 90])
@pytest.mark.parametrize("columns", [1, 2, 5, 16, 200])
def test_products_by_vectors(rows, columns):
    rng = np.random.default_rng(rows + columns)
    whole, v, w = (
        rng.standard_normal((2 * rows, 3 * columns)),
        *map(rng.standard_normal, (3 * columns, 2 * rows)),
    )
    layouts = {
        "whole": lambda u: u[:rows, :columns],
        "every other row": lambda u: u[::2, :columns],
        "every other column": lambda u: u[:rows, ::3],
        "from below": lambda u: u[:rows][::-1, :columns],
    }
    ours = mb.HostArray(whole), mb.HostArray(v), mb.HostArray(w)
    for how in layouts.values():
        for step in (1, 2):
            m, x, y = how(whole), v[: columns * step : step], w[: rows * step : step]
            if x.size != m.shape[1] or y.size != m.shape[0]:
                continue
            a, b, c = how(ours[0]), ours[1][: columns * step : step], ours[2][: rows * step : step]
            for _ in range(3):
                np.testing.assert_allclose(mb.to_numpy(a @ b), m @ x, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(mb.to_numpy(c @ a), y @ m, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(mb.to_numpy(a.T @ c), m.T @ y, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(mb.to_numpy(b @ a.T), x @ m.T, rtol=1e-12, atol=1e-12)


def test_products_of_what_is_not_a_number():
    m = np.array([[1.0, np.nan, 0.0], [np.inf, 2.0, 3.0]])
    x = np.array([1.0, 2.0, 0.0])
    a, b = mb.HostArray(m), mb.HostArray(x)
    for _ in range(20):  # (in memory that had other contents)
        np.testing.assert_array_equal(mb.to_numpy(a[:, :] @ b), m @ x)
        mb.materialize(mb.HostArray(np.full(2, np.nan)) + 1)


def test_large_products_by_vectors_in_threads():
    import concurrent.futures

    m = np.random.default_rng(0).standard_normal((300, 200))
    a, x = mb.HostArray(m), mb.HostArray(np.ones(200))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda i: mb.to_numpy(a[i:] @ x), range(40)):
            np.testing.assert_allclose(found, m[300 - len(found) :].sum(1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shapes", [((0, 3), (0, 5)), ((0, 3), (0, 4)), ((3, 0), (5, 0)), ((2, 0), (2, 0))])
def test_writes_of_nothing_must_fit_too(shapes):
    to, of = (np.zeros(s) for s in shapes)
    x, y = mb.HostArray(to), mb.HostArray(of)
    for read in (lambda v: v, lambda v: v[...], lambda v: v[:, :]):
        try:
            to[...] = read(of)
        except ValueError:
            with pytest.raises(ValueError, match="broadcast"):
                x[...] = read(y)
        else:
            x[...] = read(y)


STATEMENTS = {
    "a column": lambda u, v, c, i: u * v + c,
    "a transpose": lambda u, v, c, i: u * v + u.T,
    "a complex number": lambda u, v, c, i: u * v + 1j,
    "a row": lambda u, v, c, i: mb.sin(u) + c.T,
    "integers": lambda u, v, c, i: u * v + i,
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_gives_back_the_memory_of_its_parts(statement):
    # A part's memory was to become the result's, before the second operand was found not to fit.
    u, v = mb.HostArray(np.ones((40, 40))), mb.HostArray(np.full((40, 40), 2.0))
    c, i = mb.HostArray(np.ones((40, 1))), mb.HostArray(np.arange(1600).reshape(40, 40))

    def repeat(n):
        for _ in range(n):
            mb.materialize(statement(u, v, c, i))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = repeat(50)
        assert repeat(50) - before < u.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["b", "B", "h", "H", "i", "I", "l", "f", "d", "F"])
@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_reductions_of_few_keep_the_dtype_that_is_asked_for(dtype, name, axis):
    n = np.arange(1, 13).reshape(3, 4).astype(dtype)
    x = mb.HostArray(n)
    for out in (dtype, "l", "d", "F"):
        if np.can_cast(dtype, out, "same_kind"):
            found, wanted = (
                getattr(mb, name)(x, axis=axis, dtype=out),
                getattr(np, name)(n, axis=axis, dtype=out),
            )
            got = mb.to_numpy(found)
            assert found.dtype == got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
