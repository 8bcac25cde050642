"""Memory of NumPy's that our arrays share: what is computed when, in how many passes, and whose it becomes."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirabelle as mb
from mirabelle.dispatch.tree import Leaf, adopted
from tests.compare import assert_same

LARGE = 20_000


def shared(n):
    return mb.ext.tree(n).foreign


# Memory that nobody else holds any more


def test_what_nobody_else_holds_is_ours():
    n = np.ones(3)
    leaf = Leaf(n, foreign=True)
    assert not adopted(leaf) and leaf.foreign
    del n
    assert adopted(leaf) and not leaf.foreign and leaf.size == 0
    assert adopted(leaf)


def read_only():
    n = np.ones(3)
    n.flags.writeable = False
    return n


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones(6).reshape(2, 3),
        lambda: np.ones(6)[::2],
        lambda: np.frombuffer(bytearray(24)),
        read_only,
    ],
    ids=["reshaped", "a part", "a buffer", "read-only"],
)
def test_what_is_of_others_or_read_only_stays_so(make):
    assert not adopted(Leaf(make(), foreign=True))


@pytest.mark.parametrize("hold", [lambda n: n[1:], lambda n: memoryview(n), lambda n: weakref.ref(n)])
def test_who_holds_a_part_or_a_name_of_it_still_sees_writes(hold):
    n = np.ones(3)
    leaf = Leaf(n, foreign=True)
    held = hold(n)
    del n
    assert not adopted(leaf)
    del held
    gc.collect()
    assert adopted(leaf)


def test_expressions_wait_once_the_numpy_array_is_gone(many):
    n = np.arange(6.0)
    x = mb.asarray(n)
    assert (x * 2).evaluated and mb.sum(x).evaluated
    with mb.count() as c:
        y = x[1:] - x[:-1]
    assert y.evaluated and c.launches == 1
    del n
    with mb.count() as c:
        z, s, d = x * 2 + 1, mb.sum(x), x[1:] - x[:-1]
        assert not z.evaluated and not d.evaluated
        x += 1
    assert_same(z, np.arange(6.0) * 2 + 1)
    assert_same(d, np.ones(5))
    assert float(s) == 15
    assert_same(x, np.arange(6.0) + 1)


def test_nothing_is_copied_where_memory_becomes_ours():
    n = np.zeros(LARGE)
    where = n.ctypes.data
    x = mb.asarray(n)
    del n
    for _ in range(3):
        x[1:-1] += 2
    assert not shared(x) and np.asarray(x).ctypes.data == where
    assert float(x[0]) == 0 and float(x[1]) == 6


def test_what_is_made_of_it_is_read_only_like_what_is_made_of_any_array():
    x = mb.asarray(np.ones(3))
    assert not np.asarray(x).flags.writeable and not np.asarray(x[1:]).flags.writeable
    n = np.ones(3)
    x = mb.asarray(n)
    assert np.asarray(x).flags.writeable and np.asarray(x[1:]).flags.writeable
    np.asarray(x[1:])[0] = 5
    assert n[1] == 5


def test_an_export_of_it_keeps_it_shared():
    x = mb.asarray(n := np.zeros(3))
    exported = np.asarray(x)
    del n
    y = x + 1
    assert y.evaluated
    exported[:] = 7
    assert_same(x, np.full(3, 7.0))
    x += 1
    assert_same(exported, np.full(3, 8.0))


# Writing to it in one pass

UPDATES = {
    "x += y": lambda x, y: x.__iadd__(y),
    "x -= x[::-1]": lambda x, y: x.__isub__(x[::-1]),
    "x[1:] += x[:-1]": lambda x, y: x[1:].__iadd__(x[:-1]),
    "x[1:-1] *= y[1:-1] + 1": lambda x, y: x[1:-1].__imul__(y[1:-1] + 1),
    "x += x": lambda x, y: x.__iadd__(x),
    "x /= 3": lambda x, y: x.__itruediv__(3.0),
    "x[::2] **= 2": lambda x, y: x[::2].__ipow__(2),
    "x[...] = y": lambda x, y: x.__setitem__(..., y),
    "x[2:] = y[2:] * x[:-2]": lambda x, y: x.__setitem__(slice(2, None), y[2:] * x[:-2]),
    "x[5] = y[5]": lambda x, y: x.__setitem__(5, float(y[5])),
}


@pytest.mark.parametrize("both", [False, True], ids=["y is ours", "y is NumPy's"])
@pytest.mark.parametrize("size", [10, 300, LARGE])
@pytest.mark.parametrize("update", UPDATES)
def test_updates_again_and_again(update, size, both, hot):
    rng = np.random.default_rng(1)
    values, other = rng.uniform(0.5, 1.5, size), rng.uniform(0.5, 1.5, size)
    memory, expected = values.copy(), values.copy()
    x, y = mb.asarray(memory), (mb.asarray if both else mb.HostArray)(other)
    for _ in range(20):
        UPDATES[update](x, y)
        UPDATES[update](expected, other)
        np.testing.assert_allclose(memory, expected, rtol=1e-13)
        memory[:] = expected = values.copy()
    assert shared(x) and np.asarray(x).ctypes.data == memory.ctypes.data


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_a_large_update_is_one_launch_without_a_temporary(part):
    memory, other = np.ones((LARGE, 2)), np.ones((LARGE, 2))
    x, y = mb.asarray(memory), mb.asarray(other)
    with mb.count() as c:
        x[part] -= y[part]
    assert (c.launches, c.temporaries) == (1, 0)
    assert not memory[part].any()


def test_a_result_that_is_not_written_is_computed_at_once():
    """Only the statement itself waits: what it reads, and what follows, does not."""
    memory, other = np.ones(LARGE), np.full(LARGE, 2.0)
    x, y = mb.asarray(memory), mb.asarray(other)
    with pytest.raises(ValueError, match="broadcast"):
        x += mb.ones(LARGE - 1)
    z = x - y
    assert z.evaluated
    x -= (w := y * y)
    other[:] = memory[:] = 0
    assert_same(z, np.full(LARGE, -1.0))
    assert_same(w, np.full(LARGE, 4.0))


def test_a_dtype_that_does_not_fit_is_refused_and_nothing_written():
    memory = np.ones(LARGE, np.int32)
    x = mb.asarray(memory)
    with pytest.raises(TypeError, match="Cannot cast"):
        x += 0.5
    assert memory.sum() == LARGE and (x + 1).evaluated
    small = np.ones(3, np.int32)
    with pytest.raises(TypeError, match="Cannot cast"):
        mb.asarray(small).__iadd__(0.5)
    assert small.sum() == 3


def test_read_only_memory_is_not_written(hot):
    n = np.zeros(LARGE)
    n.flags.writeable = False
    for size in (5, LARGE):
        x = mb.asarray(n[:size])
        for _ in range(20):
            for write in (lambda x: x.__iadd__(1), lambda x: x.__setitem__(slice(1, None), 1.0)):
                with pytest.raises(ValueError, match="read-only"):
                    write(x)
    assert not n.any()


STEPS = ["x += y", "x[1:] += x[:-1]", "hold", "let go", "numpy writes", "view", "sum", "drop"]


@settings(max_examples=80)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=12), size=st.sampled_from([6, LARGE]))
def test_whoever_holds_it_sees_what_numpys_arrays_show(steps, size):
    """A program over shared memory, whose NumPy array comes and goes, beside the same over NumPy's alone."""
    expected = np.arange(float(size))
    memory = expected.copy()
    x, y = mb.asarray(memory), mb.asarray(np.full(size, 0.5))
    said: list = []
    for step in steps:
        if step == "x += y":
            x += y
            expected += 0.5
        elif step == "x[1:] += x[:-1]":
            x[1:] += x[:-1]
            expected[1:] += expected[:-1].copy()
        elif step == "hold":
            said.append((x * 2 - y, expected * 2 - 0.5))
        elif step == "view":
            said.append((x[::2] + 1, expected[::2] + 1))
        elif step == "sum":
            said.append((mb.sum(x), np.sum(expected)))
        elif step == "let go":
            memory = None
        elif step == "numpy writes" and memory is not None:
            memory[0] += 1
            expected[0] += 1
        elif step == "drop":
            said.clear()
        if memory is not None:
            np.testing.assert_array_equal(memory, expected)
    assert_same(x, expected)
    for ours, numpys in said:
        np.testing.assert_allclose(np.asarray(ours), numpys, rtol=1e-12)
