"""When a value is computed: few elements at once, and of more no tree reaches over many names."""

import sys

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

N = 10_000


def relaxation(a, b):
    return a + 0.01 * (b - a)


def two_names(a, b):
    c = a * b + 1.5
    return c / (c + 1.0)


def through_functions(a, b):
    return mb.sin(mb.sqrt(mb.exp(-mb.abs(a)) + 1.0)) * b


STEPS = [relaxation, two_names, through_functions]


@pytest.mark.parametrize("n", [1, 10, 2048])
def test_few_elements_are_computed_where_they_are_written(n):
    a, b = mb.HostArray(np.linspace(0, 1, n)), mb.HostArray(np.linspace(1, 2, n))
    for x in (
        a + b,
        -a,
        mb.sin(a),
        a < b,
        mb.where(a < b, a, 1.0),
        a * mb.float32(2),
        mb.sum(a),
        a - mb.max(b),
    ):
        assert x.evaluated
    assert not (mb.HostArray(np.ones(2049)) + 1.0).evaluated


@pytest.mark.parametrize("kind", [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]])
@pytest.mark.parametrize("step", STEPS)
def test_each_turn_of_a_loop_is_one_of_few_trees(step, kind):
    """A tree that went on growing would be another structure, a kernel of its own, at each turn."""
    n = 10 if kind is mb.RefArray else N
    a, b = kind(np.linspace(0, 1, n)), kind(np.linspace(1, 2, n))
    x, y = mb.to_numpy(a), mb.to_numpy(b)
    sizes = set()
    for _ in range(40):
        a = step(a, b)
        x = step_of_numpy(step, x, y)
        if not a.evaluated:
            sizes.add(a._node.size)
    assert len(sizes) <= 4 and max(sizes) <= 16
    np.testing.assert_allclose(mb.to_numpy(a), x, rtol=1e-12)


def step_of_numpy(step, x, y):
    if step is through_functions:
        return np.sin(np.sqrt(np.exp(-np.abs(x)) + 1.0)) * y
    return step(x, y)


def test_counting_does_not_change_when_values_of_many_elements_are_computed():
    def run():
        a, b = mb.HostArray(np.linspace(0, 1, N)), mb.HostArray(np.linspace(1, 2, N))
        evaluated = []
        for _ in range(12):
            a = relaxation(a, b)
            evaluated.append(a.evaluated)
        return evaluated

    plain = run()
    with mb.count():
        assert run() == plain


def test_operations_within_one_statement_are_one_kernel_whatever_calls_it_is_written_with():
    a = mb.HostArray(np.linspace(0, 1, N))
    with mb.count() as c:
        mb.materialize(through_functions(a, a))
    # (From 3.14 on nobody can tell whether a function was given a name: see `is_named` in owners.c.)
    assert c.launches <= (1 if sys.version_info < (3, 14) else 2)


@pytest.mark.parametrize("n", [0, 1, 5, 2048, 2049, N, 70_000])
def test_names_keep_their_values_whatever_is_written_afterwards(n):
    rng = np.random.default_rng(0)
    a, b = rng.random(n), rng.random(n)
    x, y = mb.HostArray(a), mb.HostArray(b)
    kept, wanted = [], []
    for k in range(9):
        c, z = a * b + k, x * y + k
        kept += [z, z[1:], z + x]
        wanted += [c.copy(), c[1:].copy(), c + a]
        a[:] = c - a
        x[:] = z - x
        b = b * 0.5 + a
        y = y * 0.5 + x
        z += 1.0
        c += 1.0
        wanted[-3] += 1.0
        wanted[-2] += 1.0
    for found, value in zip(kept, wanted, strict=True):
        assert_same(found, value)


def calls_of(f):
    """How many Python functions a call of `f` calls."""
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f()
    finally:
        sys.setprofile(None)
    return len(seen)


def shortest_paths(xp, d, steps):
    for k in range(steps):
        d = xp.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return d


def orthogonal(xp, a, b):
    q = a / xp.sqrt(xp.sum(a * a))
    return b - xp.sum(q * b) * q


def test_trees_that_read_reductions_are_met_again():
    """The reductions are computed first: without them each turn is a statement that is known."""
    x, y = np.random.default_rng(6).random((2, 20_000)) + 0.5

    def turns(xp, a, b, n):
        for _ in range(n):
            a = orthogonal(xp, a, b)
        return a

    a, b = mb.HostArray(x), mb.HostArray(y)
    with mb.settings.changed(compiler="inline", compile_after=8):
        for n in (1, 2, 3, 200):
            np.testing.assert_allclose(mb.to_numpy(turns(mb, a, b, n)), turns(np, x, y, n), rtol=1e-9)
        assert calls_of(lambda: mb.materialize(turns(mb, a, b, 20))) < 20 * 120


@pytest.mark.parametrize("brief", [0, 1 << 16])
def test_values_made_of_parts_of_the_value_before_do_not_grow(brief):
    """Floyd and Warshall's loop: a part of a value that waits would hold a part of the value before, and so
    on."""
    n = np.random.default_rng(3).random((60, 60))
    with mb.settings.changed(immediate_size=0, brief_size=brief):
        x = mb.HostArray(n)
        assert np.array_equal(shortest_paths(mb, x, 40), shortest_paths(np, n, 40))
        few, many = (calls_of(lambda: mb.materialize(shortest_paths(mb, x, k))) for k in (15, 45))
    assert many < 4 * few + 300, (few, many)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3000, 8, 3), 2), ((3000, 8, 3), 1), ((40, 50, 3, 8), (1, 3)), ((4000, 2), 1)]
)
def test_cold_reductions_of_many_short_rows_take_few_calls(shape, axis):
    """Until there is a kernel NumPy adds up blocks, and not row by row."""
    n = np.random.default_rng(4).random(shape)
    with mb.settings.changed(compiler="off", immediate_size=0, brief_size=0):
        for turned in (False, True):
            x = mb.HostArray(n.T if turned else n)
            axes = tuple(n.ndim - 1 - a for a in np.atleast_1d(axis)) if turned else axis
            assert np.allclose(mb.sum(x * 2 + x, axis=axes), np.sum((n.T if turned else n) * 3, axis=axes))
            assert calls_of(lambda: mb.materialize(mb.sum(x * 2 + x, axis=axes))) < 1500


@pytest.mark.parametrize("kind", [mb.RefArray, mb.CuArray])
def test_numbers_are_computed_in_the_kernel_that_reads_them(kind):
    """Names of values without axes do not end a tree: `r`, `s` and `t` are no launches of their own."""
    a = kind(np.linspace(0, 1, 50))
    with mb.count() as c:
        r = mb.sqrt(mb.sum(a * a))
        s = r / 2
        t = s + 1
        y = mb.materialize(a * t)
    assert c.launches == 2
    x = np.linspace(0, 1, 50)
    np.testing.assert_allclose(mb.to_numpy(y), x * (np.sqrt((x * x).sum()) / 2 + 1))


@pytest.mark.parametrize("operations", [1, 2])
def test_a_part_of_many_elements_that_wait_is_computed_by_itself(operations):
    n = 2 * mb.settings.brief_size
    x = np.linspace(0, 1, n)
    a = mb.HostArray(x)

    def waits(a):
        return a * 2 if operations == 1 else a * 2 + 1.5

    for few in (slice(3, 103), slice(None, None, n // 100), 7):
        y = waits(a)
        with mb.count() as c:
            z = mb.materialize(y[few] * 3)
        assert_same(z, waits(x)[few] * 3)
        assert c.bytes_read + c.bytes_written < 8 * 400
        assert_same(y, waits(x))
    # Of few elements, and where most are wanted, all are computed once.
    y, k = waits(a), waits(mb.HostArray(x[: n // 4]))
    with mb.count() as c:
        mb.materialize(k[1:100] + k[2:101])
    assert c.bytes_written == 8 * (n // 4 + 99)
    with mb.count() as c:
        mb.materialize(y[1:] - y[:-1])
    assert operations == 1 or c.bytes_written == 8 * (2 * n - 1)
