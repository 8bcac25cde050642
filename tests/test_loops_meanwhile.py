"""Loops over elements whose code a helper process compiles: until it is there, they run as NumPy runs them."""

import math
import types

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs import loopfunctions, stillcompiling
from mirabelle.backends.host import kernels, overloadjobs
from mirabelle.dispatch.errors import UserFunctionError

WEIGHT = 0.25
TABLE = np.array([1.0, 2.0, 4.0])


def inner(a):
    return a * WEIGHT


def helper(a, b):
    if a > b:
        return inner(a)
    return b - a


def carried(x, y, n):
    s = 0.0
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + y[i]
        s += x[i] * n
    return s


def nested(x, y, n):
    count = 0
    for i in range(len(x)):
        for j in range(n):
            y[i] += x[(i + j) % len(x)] * TABLE[j % 3]
            if y[i] > 2:
                count += 1
    return count, y


def with_helpers(x, y, n):
    for i in range(len(x)):
        x[i] = helper(x[i], y[i]) + math.sin(i)
    return x


def of_two(x, y, n):
    for i in range(1, len(x)):
        x[i] += x[i - 1] * 0.5
    z = np.sin(x) + y
    for i in range(len(z)):
        z[i] = z[i] + n
    return z


def counted(x, y, n):
    k = 0
    while k < len(x) - 1 and x[k] < 0.9:
        y[k] = x[k]
        k += 1
    return k


FUNCTIONS = [carried, nested, with_helpers, of_two, counted]


def given(seed=0, size=40):
    rng = np.random.default_rng(seed)
    return rng.random(size), rng.random(size)


@pytest.fixture
def empty(tmp_path):
    """No code is there yet."""
    with mb.settings.changed(compiler="process", cache=True, cache_dir=str(tmp_path)):
        yield


def equal(found, wanted):
    if type(wanted) is tuple:
        return all(map(equal, found, wanted))
    return np.allclose(np.asarray(mb.to_numpy(found) if isinstance(found, mb.AbstractArray) else found), wanted)


def test_calls_do_not_wait_for_code(empty):
    compiled = [mb.compile(f) for f in FUNCTIONS]
    for turn in range(3):
        for f, c in zip(FUNCTIONS, compiled, strict=True):
            x, y = given(turn)
            mine = mb.HostArray(x), mb.HostArray(y)
            before = mine[0] * 1
            wanted = f(x.copy(), y.copy(), 3)
            assert equal(c(*mine, 3), wanted)
            assert equal(before, given(turn)[0])
            f(x, y, 3)
            assert equal(mine, (x, y))
        if not turn:
            assert not any(c.programs for c in compiled)
            assert kernels.compiling(functions=True)
            kernels.settle()
    assert all(len(c.programs) == 1 for c in compiled)


def test_processes_wait_for_code_together(empty, monkeypatch):
    monkeypatch.setattr(stillcompiling, "communicator", lambda: types.SimpleNamespace(size=2))
    compiled = mb.compile(carried)
    x, y = given()
    found = compiled(mb.HostArray(x), mb.HostArray(y), 3)
    assert equal(found, carried(x, y, 3)) and len(compiled.programs) == 1


def test_explain_waits_for_code(empty):
    compiled = mb.compile(lambda x: carried(x, x, 2))
    x = mb.HostArray(given()[0])
    compiled(x)
    assert "loop" in str(compiled.explain(x))


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("asked", [1, 3, 30])
def test_a_loop_is_begun_again_when_its_code_comes(f, asked, monkeypatch):
    """Whatever it has written by then."""
    left = [asked]

    def is_coming(loop, args):
        left[0] -= 1
        return left[0] >= 0

    monkeypatch.setattr(loopfunctions, "is_coming", is_coming)
    monkeypatch.setattr(loopfunctions, "_EVERY", 0.0)
    x, y = given()
    mine = mb.HostArray(x), mb.HostArray(y)
    found = [mb.compile(f)(*mine, 3) for _ in range(2)]
    wanted = [f(x, y, 3) for _ in range(2)]
    assert equal(tuple(found[1:]), tuple(wanted[1:]))
    assert equal(mine, (x, y))


def test_what_a_loop_raises_is_numpys(empty):
    def beyond(x):
        for i in range(len(x)):
            x[i] = x[i + 1]

    x = mb.HostArray(given()[0])
    with pytest.raises(IndexError):
        mb.compile(beyond)(x)


def test_a_loop_that_does_not_compile_runs_as_it_is(empty):
    def strange(x):
        for i in range(len(x)):
            x[i] = x[i] + len({float(v) for v in x[:2]}) + int(f"{i}")
        return x

    compiled = mb.compile(strange)
    for turn in range(2):
        x = given(turn)[0]
        assert equal(compiled(mb.HostArray(x)), strange(x))
        kernels.settle()


@mb.jit
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def closing(k, table):
    def f(x, n=2):
        return x * k + table[n] + np.pi

    return f


@mb.jit
def compiled_helper(x):
    return x * WEIGHT


def calling(x):
    return compiled_helper(x) + TABLE[1] + np.sin(x) + math.sqrt(4.0)


@pytest.mark.parametrize("f, args", [(closing(2.5, (1, 2, 3)), (1.5,)), (calling, (0.5,)), (inner, (3,))])
def test_functions_are_sent_with_all_they_refer_to(f, args):
    made = overloadjobs._rebuilt(overloadjobs._described(f, []), [])
    assert made is not f and made(*args) == f(*args)


def test_a_function_that_calls_itself_is_sent_once():
    made = overloadjobs._rebuilt(overloadjobs._described(fib.python, []), [])
    assert made(10) == 55 == mb.jit(made)(10)


@pytest.mark.parametrize("thing", [pytest, [1.0], {"a": 1}, object(), given])
def test_what_a_helper_would_not_find_is_compiled_here(thing):
    f = closing(2.0, (thing,))
    with pytest.raises(overloadjobs._Unknown):
        overloadjobs._described(f, [])


def test_what_numba_says_of_a_function_is_told(empty):
    loop = loopfunctions.LoopFunction(lambda x: x.nothing_of_the_kind, {}, lambda turn: None)
    assert loopfunctions.is_coming(loop, (1.0,))
    kernels.settle()
    with pytest.raises(UserFunctionError, match="cannot be compiled"):
        loopfunctions.is_coming(loop, (1.0,))
