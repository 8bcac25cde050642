"""Scalar Python functions inside broadcasts: compiled, fused, their closures lifted."""

import functools
import math

import numpy as np
import pytest
from children import answer
from compare import assert_closed, assert_same
from kinds import PLAIN, SINGLE
from samples import ordinary

import mirabelle as mb

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
single = pytest.mark.parametrize("kind", SINGLE, ids=repr)

GLOBAL_SCALE = 10.0
GLOBAL_OFFSET = np.float64(0.5)
GLOBAL_TABLE = np.array([100.0, 200.0, 300.0])
GLOBAL_ARRAY = mb.HostArray([1.0, 2.0, 3.0])


def helper(v):
    return v * v + 1


@plain
def test_functions_of_one_and_several_operands(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", 4, seed=1)
    x, y = kind.family(a), kind.family(b)
    with mb.count() as c:
        result = mb.materialize(mb.broadcast(lambda v: v * 2 if v > 0 else -v, x))
    assert (c.launches, c.temporaries) == (1, 0)
    assert_same(result, np.where(a > 0, a * 2, -a))
    assert_closed(result, kind)
    assert_same(mb.broadcast(lambda u, v: u - 2 * v, x, y), a - 2 * b)
    assert_same(mb.broadcast(lambda u, v, s: (u + v) * s, x, y, 3.0), (a + b) * 3.0)
    assert_same(mb.broadcast(lambda u, s: u + s, x, np.float64(1.5)), a + 1.5)
    assert_same(mb.map(lambda u, v: u * v, x, x), a * a)


@plain
def test_they_fuse_with_what_surrounds_them(kind, many):
    a = ordinary("f8", (3, 4))
    x = kind.family(a)
    with mb.count() as c:
        result = mb.materialize(mb.broadcast(lambda v: v + 1, x * 2) - x)
    assert (c.launches, c.temporaries) == (1, 0)
    assert_same(result, (a * 2 + 1) - a)
    total = mb.sum(mb.broadcast(lambda v: v * v, x))
    assert_same(total, np.sum(a * a), rtol=1e-13)


@single
def test_they_run_on_every_kind(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    result = mb.broadcast(lambda v: abs(v) + 0.25, kind.make(values))
    assert_same(result, np.abs(values) + 0.25)
    assert_closed(mb.materialize(result), kind)


@plain
def test_mathematics_and_other_functions_may_be_called(kind):
    a = np.abs(ordinary("f8", 6)) + 0.5
    x = kind.family(a)
    assert_same(mb.broadcast(lambda v: math.sqrt(v) + np.floor(v), x), np.sqrt(a) + np.floor(a))
    assert_same(mb.broadcast(lambda v: helper(v) - 1, x), a * a)

    def newton(v):
        r = v
        for _ in range(30):
            r = 0.5 * (r + v / r)
        return r

    assert_same(mb.broadcast(newton, x), np.sqrt(a), rtol=1e-15)


@plain
def test_dtypes_are_inferred(kind):
    for dtype, f, expected in (
        ("f4", lambda v: v + v, "f4"), ("i4", lambda v: v / 2, "f8"), ("f8", lambda v: v > 1, "?"),
        ("i8", lambda v: v + 1, "i8"), ("f8", lambda v: 1, "i8"), ("f8", lambda v: v * 1j, "c16"),
        ("?", lambda v: not v, "?"), ("f8", lambda v: int(v), "i8"),
    ):  # fmt: skip
        result = mb.broadcast(f, kind.family(ordinary(dtype, 4)))
        assert result.dtype == expected, (dtype, expected)
        assert type(result) is kind.family[expected, 1]


@plain
def test_several_results_are_a_tuple_from_one_kernel(kind):
    a = ordinary("f8", (3, 4))
    x = kind.family(a)
    low, high, positive = mb.broadcast(lambda v: (v - 1, v + 1, v > 0), x)
    with mb.count() as c:
        mb.materialize(low)
        mb.materialize(high)
        mb.materialize(positive)
    assert c.launches == 1
    assert_same(low, a - 1)
    assert_same(high, a + 1)
    assert_same(positive, a > 0)
    first, second = mb.broadcast(lambda v: (v, v * v), x + 1)
    del first
    assert_same(second, (a + 1) * (a + 1))


# Closures


@plain
def test_captured_scalars_are_arguments(kind):
    """Another value needs no new kernel: nothing compiles but once."""
    x = kind.family([1.0, 2.0, 3.0])

    def scaled(scale, shift):
        return mb.broadcast(lambda v: v * scale + shift, x)

    assert scaled(2.0, 0.5).tolist() == [2.5, 4.5, 6.5]
    with mb.count() as c:
        for scale in (3.0, 4.0, -1.5):
            assert scaled(scale, 1.0).tolist() == [1 + scale, 1 + 2 * scale, 1 + 3 * scale]
    assert c.compilations == 0


def test_captured_numpy_scalars_and_booleans():
    x = mb.HostArray([1.0, 2.0])
    single, flag, integer = np.float32(2.5), True, np.int8(3)
    result = mb.broadcast(lambda v: v * single + integer if flag else v, x)
    assert result.tolist() == [5.5, 8.0]
    flag = False
    assert mb.broadcast(lambda v: v * single + integer if flag else v, x).tolist() == [1.0, 2.0]


def test_module_globals_are_read_when_the_line_runs(monkeypatch):
    x = mb.HostArray([1.0, 2.0, 3.0])
    f = lambda v: v * GLOBAL_SCALE + GLOBAL_OFFSET
    assert mb.broadcast(f, x).tolist() == [10.5, 20.5, 30.5]
    pending = mb.broadcast(f, x)
    monkeypatch.setitem(globals(), "GLOBAL_SCALE", 100.0)
    with mb.count() as c:
        assert mb.broadcast(f, x).tolist() == [100.5, 200.5, 300.5]
    assert c.compilations == 0
    assert pending.tolist() == [10.5, 20.5, 30.5], "a later change must not change what was said"


def test_captured_arrays_join_as_leaves():
    x = mb.HostArray([1.0, 2.0, 3.0])
    weights = mb.HostArray([10.0, 20.0, 30.0])
    offsets = np.array([0.5, 0.25, 0.125])
    f = lambda v: v * weights + offsets
    assert mb.broadcast(f, x).tolist() == [10.5, 40.25, 90.125]
    before = mb.broadcast(f, x)
    weights[...] = 0.0
    assert mb.broadcast(f, x).tolist() == [0.5, 0.25, 0.125]
    assert before.tolist() == [10.5, 40.25, 90.125]
    assert mb.broadcast(lambda v: v + GLOBAL_TABLE + GLOBAL_ARRAY, x).tolist() == [102.0, 204.0, 306.0]
    column = mb.HostArray([[1.0], [2.0]])
    assert mb.broadcast(lambda v: v * column, x).tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]


def test_captured_arrays_on_the_device():
    x, weights = mb.RefArray([1.0, 2.0]), mb.RefArray([10.0, 20.0])
    assert mb.broadcast(lambda v: v * weights, x).tolist() == [10.0, 40.0]
    host = mb.HostArray([1.0, 2.0])
    with pytest.raises(mb.PlaceError, match="adapt"):
        mb.broadcast(lambda v: v * host, x)


def test_closures_of_functions_and_loops_over_lambdas():
    x = mb.HostArray([1.0, 2.0])
    twice = lambda v: v * 2
    assert mb.broadcast(lambda v: twice(v) + 1, x).tolist() == [3.0, 5.0]
    results = [mb.broadcast(lambda v: v + i, x) for i in range(3)]
    assert [r.tolist() for r in results] == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]


def test_two_functions_with_one_code_and_other_constants():
    """What a function calls is part of it, though its code is the same."""

    def make(inner):
        return lambda v: inner(v)

    x = mb.HostArray([4.0, 9.0])
    assert mb.broadcast(make(math.sqrt), x).tolist() == [2.0, 3.0]
    assert mb.broadcast(make(math.floor), x + 0.5).tolist() == [4.0, 9.0]


def test_a_function_defined_anew_compiles_once():
    x = mb.HostArray([1.0, 2.0])

    def call():
        return mb.materialize(mb.broadcast(lambda v: v * 5 + 0.125, x))

    call()
    with mb.count() as c:
        for _ in range(5):
            assert call().tolist() == [5.125, 10.125]
    assert c.compilations == 0


def test_default_arguments_and_locals():
    x = mb.HostArray([1.0, 2.0])

    def f(v, power=3):
        total = 1.0
        for _ in range(power):
            total *= v
        return total

    assert mb.broadcast(f, x).tolist() == [1.0, 8.0]
    assert mb.broadcast(f, x, 2).tolist() == [1.0, 4.0]
    factor = 2.0

    def g(v):
        factor_squared = factor * factor
        a, b = v + factor, v - factor
        return a * b + factor_squared

    assert mb.broadcast(g, x).tolist() == [1.0, 4.0]


def test_partials():
    x = mb.HostArray([1.0, 2.0])

    def axpy(a, b, v):
        return a * v + b

    assert mb.broadcast(functools.partial(axpy, 2.0, 3.0), x).tolist() == [5.0, 7.0]
    assert mb.broadcast(functools.partial(axpy, 4.0), 1.0, x).tolist() == [5.0, 9.0]
    with pytest.raises(mb.UserFunctionError, match="lambda"):
        mb.broadcast(functools.partial(axpy, b=1.0), 1.0, x)


def test_functions_numba_compiled_already():
    import numba

    f = numba.njit(lambda v: v + 1)
    assert mb.broadcast(f, mb.HostArray([1.0])).tolist() == [2.0]


def test_our_own_functions_may_be_broadcast():
    x = mb.HostArray([4.0])
    assert mb.broadcast(mb.sqrt, x).tolist() == [2.0]
    assert mb.map(mb.add, x, x).tolist() == [8.0]


def test_a_function_that_evaluates_arrays_while_a_kernel_runs(way):
    """User code may run mirabelle inside (object mode is not meant: it is refused)."""
    x = mb.HostArray([1.0])
    with pytest.raises(mb.UserFunctionError):
        mb.broadcast(lambda v: mb.HostArray([v]), x)


def test_they_work_in_threads():
    import threading

    x = mb.HostArray(ordinary("f8", 50))
    results, errors = {}, []

    def work(i):
        try:
            results[i] = mb.broadcast(lambda v: v * i + 0.5, x).tolist()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for i, r in results.items():
        np.testing.assert_array_equal(r, ordinary("f8", 50) * i + 0.5)


# Reductions and scans


@plain
def test_mapreduce(kind):
    a = ordinary("f8", (3, 4))
    x = kind.family(a)
    assert_same(mb.mapreduce(mb.abs, mb.add, x), np.abs(a).sum(), rtol=1e-14)
    assert_same(mb.mapreduce(lambda v: v * v, mb.maximum, x), (a * a).max())
    assert_same(mb.mapreduce(lambda v: v > 0, mb.add, x), (a > 0).sum())
    assert_same(mb.mapreduce(None, "sum", x, axis=0), a.sum(0), rtol=1e-14)
    assert_same(
        mb.mapreduce(lambda v: v + 1, np.multiply, x, axis=1, keepdims=True),
        (a + 1).prod(1, keepdims=True),
        rtol=1e-13,
    )
    assert_same(mb.mapreduce(mb.abs, mb.add, x, init=100.0), np.abs(a).sum() + 100, rtol=1e-14)
    with mb.count() as c:
        mb.materialize(mb.mapreduce(lambda v: v * v, mb.add, x))
    assert (c.launches, c.temporaries) == (1, 0)


@plain
def test_reducing_with_a_function_of_the_user(kind):
    a = ordinary("f8", (3, 4))
    x = kind.family(a)
    larger = lambda u, v: u if u > v else v
    assert_same(mb.reduce(larger, x, init=-1e9), a.max())
    assert_same(mb.reduce(larger, x, init=-1e9, axis=0), a.max(0))
    assert_same(mb.reduce(larger, x, init=-1e9, axis=1, keepdims=True), a.max(1, keepdims=True))
    assert_closed(mb.materialize(mb.reduce(larger, x, init=-1e9, axis=0)), kind)
    assert_same(mb.mapreduce(lambda v: v * v, lambda u, v: u + v, x, init=0.0), (a * a).sum(), rtol=1e-13)
    i = kind.family(np.array([1, 2, 3, 4]))
    assert_same(mb.reduce(lambda u, v: u ^ v, i, init=0), np.bitwise_xor.reduce([1, 2, 3, 4]))
    assert_same(mb.reduce(lambda u, v: u + v, kind.family(np.ones((0, 3))), init=0.0, axis=0), np.zeros(3))


@plain
def test_accumulating_with_a_function_of_the_user(kind):
    a = ordinary("f8", (3, 4))
    x = kind.family(a)
    larger = lambda u, v: u if u > v else v
    for axis in (0, 1):
        result = mb.accumulate(x, larger, axis=axis)
        assert_same(result, np.maximum.accumulate(a, axis=axis))
        assert_closed(result, kind)
    assert_same(mb.accumulate(x + 1, "add", axis=0), np.add.accumulate(a + 1, axis=0))
    assert mb.accumulate(kind.family(np.zeros(0))).shape == (0,)


def test_reducing_with_closures():
    x = mb.HostArray([1.0, 2.0, 3.0])
    for limit in (1.5, 2.5):
        expected = sum(v for v in (1.0, 2.0, 3.0) if v < limit)
        assert float(mb.reduce(lambda u, v: u + v if v < limit else u, x, init=0.0)) == expected


NAMED = [
    "copy",
    "cast",
    "where",
    "real",
    "maximum",
    "bitwise_or",
    "positive",
    "place",
    "gather",
    "pick0",
    "picky",
    "sum",
]


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("name", NAMED)
def test_a_function_may_have_the_name_of_an_operation_of_ours(name, family):
    scope = {"__name__": __name__}
    exec(f"def {name}(a, b):\n    return a * 0.5 + b + 7.5\n", scope)
    f, x = scope[name], np.linspace(-2.0, 2, 3000)
    given, expected = family(x), f(x, x)
    assert_same(mb.broadcast(f, given, given), expected)
    assert_same(-mb.broadcast(f, given, given) * 2, -expected * 2)
    assert_same(mb.max(mb.broadcast(f, given, given)), expected.max())
    if family is mb.HostArray:
        assert_same(mb.compile(lambda v: -(-mb.broadcast(f, v, v)) * 1)(given), expected)
        assert_same(mb.mapreduce(lambda v: v, f, given, init=0.0), functools.reduce(f, x, 0.0), rtol=1e-12)


TOGETHER = """
    import json, sys, threading
    import numpy as np
    import mirabelle as mb

    sys.setswitchinterval(1e-6)
    x, gate, said = mb.HostArray(np.arange(4.0)), threading.Barrier(4), []

    def call(k):
        gate.wait()
        try:
            for i in range(3):
                y = mb.broadcast(lambda t, c=i + 10 * k: t * t + np.sin(t), x)
                assert np.array_equal(mb.to_numpy(y), np.arange(4.0) ** 2 + np.sin(np.arange(4.0)))
        except Exception as e:
            said.append(repr(e))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps(said))
"""


def test_threads_may_give_their_first_functions_at_the_same_time():
    """Numba's tables are for one thread at a time."""
    assert answer(TOGETHER, compiler="off") == []
