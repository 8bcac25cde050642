"""Functions of users are let go: what was made of those used last is kept, of others nothing."""

import functools
import gc
import itertools
import linecache
import os
import weakref

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.usercode import userfunctions
from mirabelle.backends.codegen import program
from mirabelle.dispatch import promotion

KEPT = 2
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def few(monkeypatch):
    userfunctions.forget()
    monkeypatch.setattr(userfunctions, "KEPT", KEPT)
    yield
    userfunctions.forget()


MADE = []


def function(i, text, head="a"):
    """A function that nobody has seen before."""
    source, file = f"def f{i}({head}):\n    return {text}\n", f"<forgotten {i} {text}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {}
    exec(compile(source, file, "exec"), scope)
    MADE.append(weakref.ref(scope[f"f{i}"]))
    return scope[f"f{i}"]


def alone(i, x):
    mb.to_numpy(mb.broadcast(function(i, f"a * {i}.5 + 1"), x))


def fused(i, x):
    f = function(i, f"a * {i}.5 + 1")
    mb.to_numpy(mb.sqrt(mb.broadcast(f, x) * 2) + x)


def reduced(i, x):
    float(mb.mapreduce(function(i, f"a + {i}"), function(i, f"a + b + 0 * {i}", "a, b"), x, init=0.0))


def of_a_part(i, x):
    mb.to_numpy(mb.broadcast(functools.partial(function(i, f"a * b + {i}", "a, b"), 2.0), x))


def calling(i, x):
    outer = function(i, "inner(a) * 2")
    outer.__globals__["inner"] = function(i, f"a + {i}")
    mb.to_numpy(mb.broadcast(outer, x))


def differentiated(i, x):
    f = function(i, f"a * a * {i}.5 if a > 1 else a")
    mb.to_numpy(mb.autodiff.gradient(lambda v: mb.sum(mb.broadcast(f, v)), x))


def compiled(i, x):
    f = function(i, f"a * {i}.5 + 1")
    mb.to_numpy(mb.compile(lambda v: mb.broadcast(f, v) + 1)(x))


def living():
    """How many functions of users live, and how much is kept by operation."""
    for _ in range(3):  # (what one collection finalizes lets go of what the next collects)
        gc.collect()
    known = [k for table in (promotion._cache, promotion._interned) for k in table if k[0].name.startswith("f")]
    users = [op for op, *_ in known if program.is_user_function(op)]
    return sum(f() is not None for f in MADE), len(users)


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("use", [alone, fused, reduced, of_a_part, calling, differentiated, compiled])
def test_what_hangs_on_a_function_goes_with_it(use, family):
    if family is mb.RefArray and use in (compiled, differentiated, calling):
        pytest.skip("as on the host")
    x = family(np.arange(1.0, 7.0))
    MADE.clear()
    for i in range(KEPT + 2):
        use(next(NUMBERS), x)
    functions, signatures = living()
    assert 0 < functions <= 3 * KEPT and signatures <= 6 * KEPT and functions < len(MADE)
    mb.free_memory(mb.HostArray)
    assert living() == (0, 0)


def test_what_waits_and_what_was_compiled_outlives_that_a_function_is_forgotten():
    x = mb.HostArray(np.arange(5000.0))
    f = function(next(NUMBERS), "a * 3 + 1")
    expected = np.arange(5000.0) * 3 + 1
    waiting, program = mb.broadcast(f, x), mb.compile(lambda v: mb.broadcast(f, v) * 2)
    program(x)
    for _ in range(2):
        userfunctions.forget()
        assert_same(program(x), expected * 2)
        assert_same(waiting + 1, expected + 1)
        assert_same(mb.broadcast(f, x), expected)
    assert_same(waiting, expected)


def test_a_function_that_is_used_stays():
    x = mb.HostArray([1.0, 2.0])
    f = function(next(NUMBERS), "a * 3 + 1")
    op, _ = userfunctions.operation(f, 1)
    for _ in range(2 * KEPT):
        userfunctions.operation(function(next(NUMBERS), "a - 1"), 1)
        assert userfunctions.operation(f, 1)[0] is op and not op.forgotten
    assert_same(mb.broadcast(f, x), [4.0, 7.0])


def test_memory_says_what_compiling_took():
    taken = before = mb.memory(mb.HostArray).taken["code"]
    for _ in range(50):  # (one may find room in pages that the process has already)
        mb.to_numpy(mb.broadcast(function(next(NUMBERS), "a * 5 + 1"), mb.HostArray([1.0])))
        taken = mb.memory(mb.HostArray).taken["code"]
        if taken > before:
            break
    assert taken > before or not os.path.exists("/proc/self/statm")
    assert f"code   {shown_bytes(taken)}" in repr(mb.memory(mb.HostArray)) or not taken
