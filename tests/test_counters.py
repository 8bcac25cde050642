"""What a program costs: launches, temporaries, bytes. The promises of docs/design.md, section 5."""

import gc
import threading
import time

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.dispatch import verbs

pytestmark = pytest.mark.usefixtures("trees")

SIZED = [
    *((mb.HostArray, n) for n in (5, 1000, 100_000)),
    (mb.RefArray, 5),
    (mb.RefArray, 60),
    (mb.CuArray, 60),
]


@pytest.fixture(params=SIZED, ids=lambda p: f"{p[0].__name__}-{p[1]}")
def vectors(request):
    """(family, n, x, y): the operands of a test, evaluated."""
    family, n = request.param
    rng = np.random.default_rng(n)
    return family, n, family(rng.standard_normal(n)), family(rng.standard_normal(n))


def by_numpy(family, n, operations):
    """Few elements in the host's memory are computed by NumPy's calls, into memory of their own."""
    few = mb.settings.small_size
    return family is mb.HostArray and (n <= few or n * operations <= 32 * few)


def test_a_costly_name_is_evaluated_once(vectors, way):
    """y is stored beside z, by the kernel that computes z."""
    _, n, a, b = vectors
    y = mb.exp(a) * b
    z = y + 1
    w = y * y
    with mb.count() as c:
        mb.materialize(z)
    assert (c.launches, c.temporaries) == (1, 0)
    assert c.bytes_read == 2 * 8 * n and c.bytes_written == 2 * 8 * n
    assert y.evaluated
    with mb.count() as c:
        mb.materialize(w)
    assert (c.launches, c.temporaries) == (1, 0)
    assert c.bytes_read == 8 * n and c.bytes_written == 8 * n, "w reads y, and nothing of a or b"
    expected = np.exp(mb.to_numpy(a)) * mb.to_numpy(b)
    assert_same(y, expected)
    assert_same(z, expected + 1)
    assert_same(w, expected * expected)


def test_a_cheap_name_is_not_stored(vectors, way):
    _, n, a, _ = vectors
    y = a * 2
    z = y + 1
    with mb.count() as c:
        mb.materialize(z)
    assert (c.launches, c.temporaries) == (1, 0)
    assert (c.bytes_read, c.bytes_written) == (8 * n, 8 * n)
    assert not y.evaluated
    assert_same(y, mb.to_numpy(a) * 2)


def test_a_cheap_name_is_stored_at_its_second_evaluation(vectors, way):
    """Nothing is computed more than twice."""
    _, n, a, _ = vectors
    y = a * 2
    mb.materialize(y + 1)
    with mb.count() as c:
        mb.materialize(y + 2)
    assert c.launches == 1 and c.bytes_written == 2 * 8 * n
    assert y.evaluated
    with mb.count() as c:
        mb.materialize(y - 3)
    assert c.bytes_written == 8 * n


def test_a_shared_subexpression_is_evaluated_once(vectors, way):
    _, n, a, _ = vectors
    with mb.count() as c:
        x = mb.materialize((a * 2 + 1) * (a * 2))
    assert (c.launches, c.temporaries, c.scalar_reads) == (1, 0, 0)
    assert (c.bytes_read, c.bytes_written) == (8 * n, 8 * n), "a is read once"
    v = mb.to_numpy(a)
    assert_same(x, (v * 2 + 1) * (v * 2))


def step(u, v, dt):
    """Eight named intermediates, none of which anybody needs afterwards."""
    flux = u * u
    half = flux * 0.5
    slope = u - v
    limited = mb.minimum(mb.abs(slope), 1.0)
    signed = limited * slope
    source = signed - half
    damped = source * 0.9
    total = damped + v
    u[...] = u + dt * total


def test_a_function_with_eight_names_is_one_launch(vectors, way):
    family, n, u, v = vectors
    expected = mb.to_numpy(u)
    w = mb.to_numpy(v)
    slope = expected - w
    total = (np.minimum(np.abs(slope), 1.0) * slope - expected * expected * 0.5) * 0.9 + w
    expected = expected + 0.1 * total
    with mb.count() as c:
        step(u, v, 0.1)
        mb.materialize(u)
    assert (c.launches, c.temporaries, c.scalar_reads) == (1, 0, 0)
    assert c.bytes_written == 8 * n * arrays_of_a_step(family, n), "no intermediate"
    assert c.bytes_read == 2 * 8 * n
    assert_same(u, expected)
    assert type(u) is family[np.float64, 1]


def arrays_of_a_step(family, n):
    """One; `slope`, which is read twice, is stored where NumPy's calls would compute it twice."""
    return 1 + by_numpy(family, n, 9)


def test_a_loop_of_steps_is_one_launch_each(vectors, way):
    family, n, u, v = vectors
    mb.materialize(u)
    with mb.count() as c:
        for _ in range(5):
            step(u, v, 0.01)
        mb.materialize(u)
    assert (c.launches, c.temporaries) == (5, 0)
    assert c.bytes_written == 5 * 8 * n * arrays_of_a_step(family, n)


@pytest.mark.parametrize("name", ["sum", "max", "any", "prod", "count_nonzero"])
def test_a_reduction_of_a_tree_has_no_temporary(vectors, name, way):
    _, n, a, b = vectors
    with mb.count() as c:
        result = mb.materialize(getattr(mb, name)(mb.abs(a - b)))
    assert (c.launches, c.temporaries, c.scalar_reads) == (1, 0, 0)
    assert c.bytes_read == 2 * 8 * n and c.bytes_written <= 8
    expected = getattr(np, name)(np.abs(mb.to_numpy(a) - mb.to_numpy(b)))
    np.testing.assert_allclose(mb.to_numpy(result), expected, rtol=1e-12)


def test_two_reductions_of_one_tree_are_one_launch(vectors, way):
    _, n, a, b = vectors
    difference = a - b
    low, high, total = mb.min(difference), mb.max(difference), mb.sum(difference)
    del difference
    with mb.count() as c:
        for r in (low, high, total):
            mb.materialize(r)
    assert (c.launches, c.temporaries) == (1, 0)
    assert c.bytes_read == 2 * 8 * n and c.bytes_written == 3 * 8
    d = mb.to_numpy(a) - mb.to_numpy(b)
    np.testing.assert_allclose([mb.to_numpy(r) for r in (low, high, total)], [d.min(), d.max(), d.sum()])


def test_two_reductions_of_an_array_are_one_launch(vectors, way):
    _, n, a, _ = vectors
    low, high = mb.min(a), mb.max(a)
    with mb.count() as c:
        mb.materialize(low)
        mb.materialize(high)
    assert (c.launches, c.bytes_read) == (1, 8 * n)


def test_a_forgotten_reduction_is_not_computed(vectors):
    _, _, a, _ = vectors
    low, high = mb.min(a), mb.max(a)
    del high
    gc.collect()
    with mb.count() as c:
        mb.materialize(low)
    assert c.bytes_written == 8


def test_reductions_of_two_contents_are_not_mixed(vectors, way):
    _, _, a, _ = vectors
    before = mb.sum(a)
    expected = mb.to_numpy(a)
    a[...] = a * 2
    after = mb.sum(a)
    np.testing.assert_allclose(mb.to_numpy(before), expected.sum())
    np.testing.assert_allclose(mb.to_numpy(after), (expected * 2).sum())


def test_a_name_kept_through_its_reduction(vectors, way):
    """A costly tree somebody holds is stored by the kernel that reduces it."""
    _, n, a, _ = vectors
    y = mb.exp(a)
    total = mb.sum(y)
    with mb.count() as c:
        mb.materialize(total)
        mb.materialize(y)
    assert c.launches == 1 and c.temporaries == 0
    assert c.bytes_written == 8 * n + 8
    np.testing.assert_allclose(mb.to_numpy(y), np.exp(mb.to_numpy(a)))


def test_building_costs_nothing(vectors):
    _, _, a, b = vectors
    with mb.count() as c:
        y = mb.exp(a) + b
        z = mb.sum(y * a)
        w = mb.where(y > z, a, b)[::-1]
    assert repr(c) == repr(mb.types.Counters())
    del w


def test_forcing_again_costs_nothing(vectors):
    _, _, a, b = vectors
    y = mb.materialize(a + b)
    with mb.count() as c:
        mb.materialize(y)
        mb.to_numpy(y)
    assert c.launches == 0 and c.bytes_written == 0


def test_an_inplace_update_writes_straight_into_its_destination(vectors, way):
    family, n, a, b = vectors
    for _ in range(20):
        a += b  # (from then on it is known, where it is compiled)
    memory = memory_of(verbs.leaf_of(a).view)
    with mb.count() as c:
        a += b
        mb.materialize(a)
    assert (c.launches, c.temporaries) == (1, 0)
    assert (c.bytes_read, c.bytes_written) == (2 * 8 * n, 8 * n)
    if family is not mb.HostArray or (8 * n >= 1 << 16 and not by_numpy(family, n, 1)):
        # (New memory costs nothing where it is in the cache.)
        assert memory_of(verbs.leaf_of(a).view) == memory


def memory_of(view):
    """What tells memory apart: an address, or the reference device's buffer."""
    if isinstance(view, np.ndarray):
        return view.__array_interface__["data"]
    return view.ptr if hasattr(view, "ptr") else view.buffer


def test_a_partial_write_is_one_launch(vectors, way):
    _, n, a, b = vectors
    mb.materialize(a)
    with mb.count() as c:
        a[1:] = b[1:] * 2
    # (What NumPy computes is copied to where it belongs, but now and then Python writes it there at once.)
    times = c.launches if by_numpy(*vectors[:2], 1) else 1
    assert times in (1, 2)
    assert (c.launches, c.temporaries) == (times, 0)
    assert (c.bytes_read, c.bytes_written) == (8 * (n - 1) * times, 8 * (n - 1) * times)


def test_a_whole_write_with_pending_readers_swaps_the_buffer(vectors, way):
    """Readers keep the old contents without any work; the write is one launch."""
    _, n, a, b = vectors
    old = mb.to_numpy(a)
    pending = a * 3
    with mb.count() as c:
        a[...] = b + 1
        mb.materialize(a)
    assert (c.launches, c.temporaries, c.bytes_written) == (1, 0, 8 * n)
    assert not pending.evaluated
    assert_same(pending, old * 3)


def test_several_results_are_one_launch(vectors, way):
    _, n, a, _ = vectors
    quotient, rest = mb.divmod(a, 0.3)
    with mb.count() as c:
        mb.materialize(quotient)
        mb.materialize(rest)
    assert (c.launches, c.bytes_read, c.bytes_written) == (1, 8 * n, 2 * 8 * n)


@pytest.mark.parametrize("family", [mb.HostArray, mb.CuArray])
def test_programs_count_what_they_move(family, hot):
    """Those that run natively, too, from memory of their own: what the plan says, at each call."""

    def step(u, k):
        flux = mb.sqrt(u * u + 1)
        after = u[1:-1] - 0.1 * (flux[2:] - flux[:-2])
        return after, mb.sum(after), mb.roll(k @ u, 1)

    n = 300
    rng = np.random.default_rng(1)
    u, k = family(rng.random(n)), family(rng.random((n, n)))
    program = mb.compile(step)
    program(u, k)
    counted = []
    for _ in range(2):
        with mb.count() as c:
            after, total, turned = program(u, k)
        counted.append((c.launches, c.bytes_read, c.bytes_written))
    steps = program.program(u, k).explain().steps
    read, written = sum(s.read for s in steps), sum(s.written for s in steps)
    added_up = family is mb.CuArray  # by the kernel that computes it
    assert read > k.nbytes + u.nbytes and written > after.nbytes + turned.nbytes
    assert counted == [(5 - added_up, read - after.nbytes * added_up, written)] * 2
    expected = mb.to_numpy(u)
    flux = np.sqrt(expected * expected + 1)
    expected, v = expected[1:-1] - 0.1 * (flux[2:] - flux[:-2]), mb.to_numpy(k) @ expected
    assert_same(after, expected)
    assert_same(total, expected.sum(), rtol=1e-14)
    assert_same(turned, np.roll(v, 1), rtol=1e-14)


def test_a_stretched_costly_subtree_is_computed_at_its_own_shape(way):
    """exp of a row is n evaluations, not n*m: a temporary, and counted as one."""
    for family, n in ((mb.HostArray, 4000), (mb.RefArray, 40)):
        row, column = family(np.linspace(0, 1, n)), family(np.linspace(1, 2, 30)[:, None])
        with mb.count() as c:
            z = mb.materialize(mb.exp(row) * column)
        assert (c.launches, c.temporaries) == (2, 1)
        assert_same(z, np.exp(np.linspace(0, 1, n)) * np.linspace(1, 2, 30)[:, None])


def test_trees_are_bounded():
    x = mb.HostArray(np.ones(10))
    with mb.settings.changed(tree_limit=10), mb.count() as c:
        y = x
        for _ in range(100):
            y = y * 1.01 + 0.5
        mb.materialize(y)
    assert 10 <= c.launches <= 40
    z = x
    for _ in range(30):
        z = z + z
    assert_same(z, np.full(10, 2.0**30))


@pytest.mark.parametrize("turns", [20, 26, 40])
@pytest.mark.parametrize("reads", ["x", "sums"])
def test_nodes_that_are_read_twice_are_looked_at_once(turns, reads):
    x = mb.HostArray(np.ones(10))
    z, began = (x if reads == "x" else x + mb.sum(x)), time.process_time()
    for _ in range(turns):
        z = z + z
    assert_same(z, np.full(10, (1.0 if reads == "x" else 11.0) * 2.0**turns))
    assert time.process_time() - began < 5  # (as many as paths through the tree: minutes)


def test_scalar_reads_are_counted():
    x = mb.HostArray([1.0, 2.0, 3.0])
    with mb.count() as c:
        float(x[0])
        x[1].item()
        bool(mb.any(x > 2))
        int(mb.HostArray(3))
        x[2] = 1.0
    assert c.scalar_reads == 5
    with mb.count() as c:
        x.tolist()
        repr(x)
    assert c.scalar_reads == 0


def test_transfers_are_counted():
    with mb.count() as c:
        x = mb.RefArray([1.0, 2.0])
    assert c.transfers == 1
    with mb.count() as c:
        y = mb.materialize(x * 2 + 1)
    assert c.transfers == 0
    with mb.count() as c:
        mb.to_numpy(y)
        mb.adapt(mb.HostArray, y)
    assert c.transfers == 2
    with mb.count() as c:
        mb.adapt(mb.RefArray, mb.HostArray([1.0]))
    assert c.transfers == 1
    with mb.count() as c, mb.allow_transfer():
        mb.materialize(x + mb.HostArray([1.0, 1.0]))
    assert c.transfers >= 1


def test_compilations_are_counted(hot):
    x = mb.HostArray(np.arange(9.0))
    unheard_of = float(np.random.default_rng().integers(1 << 40))
    with mb.count() as c:
        mb.materialize((x * unheard_of + 1.5) / (x + 2) - mb.sqrt(x) * 0.25 + mb.cbrt(x))
    assert c.compilations in (0, 1), "at most one: another test process may have filled the cache"
    with mb.count() as c:
        mb.materialize((x * 2.0 + 3.5) / (x + 4) - mb.sqrt(x) * 0.75 + mb.cbrt(x))
    assert c.compilations == 0, "scalars are arguments of a kernel"


def test_counters_nest_and_belong_to_their_context():
    x = mb.HostArray([1.0])
    with mb.count() as outer:
        mb.materialize(x + 1)
        with mb.count() as inner:
            mb.materialize(x + 2)
        assert inner.launches == 1
    assert outer.launches == 2
    import threading

    with mb.count() as c:
        t = threading.Thread(target=lambda: mb.materialize(x + 3))
        t.start()
        t.join()
    assert c.launches == 0
    assert "launches=2" in repr(outer)


def test_eager_mode_launches_each_operation():
    x = mb.HostArray([1.0, 2.0])
    with mb.eager(), mb.count() as c:
        y = x * 2 + 1
        assert c.launches == 2
        mb.sum(y)
    assert c.launches == 3
    assert_same(y, [3.0, 5.0])


def test_reductions_of_a_long_lived_array_leave_nothing_behind():
    x = mb.HostArray(np.ones(200_000))
    for _ in range(100):
        float(mb.sum(x))
    assert len(mb.ext.tree(x).reducers) <= 1


@pytest.mark.parametrize("n", [50, 2_000_000], ids=["small", "large"])
def test_few_reductions_wait(n):
    """A reduction holds what it reads: of many that nobody reads, the oldest are computed."""
    made = []
    for k in range(40):
        x = mb.ones(n) * (k + 1.0)
        made.append(mb.sum(x * x) if k % 2 else mb.max(x, axis=0) + 1.0)
        del x
    waiting = [y for y in made if type(mb.ext.tree(y)).__name__ != "Leaf"]
    pending = [y for y in waiting if "max" in str(mb.ext.tree(y)) or "sum" in str(mb.ext.tree(y))]
    assert len(pending) <= (16 if n < 1 << 20 else 4), len(pending)
    expected = [n * (k + 1.0) ** 2 if k % 2 else k + 2.0 for k in range(40)]
    np.testing.assert_allclose([float(y) for y in made], expected)


def test_a_reduction_that_fails_fails_for_who_reads_it():
    def half(v):
        if v > 1:
            raise ValueError("too large")
        return v / 2

    bad = mb.mapreduce(half, mb.add, mb.HostArray([0.5, 2.0]))
    rest = [mb.sum(mb.ones(3) * k) for k in range(40)]
    assert [float(r) for r in rest] == [3.0 * k for k in range(40)]
    with pytest.raises(mb.UserFunctionError):
        float(bad)


def test_reductions_of_several_threads_wait_apart():
    """What one thread made and computes, others do not compute in its place."""
    went_wrong = []

    def work(k):
        x = mb.ones((60, 60)) * (k + 1.0)
        try:
            for _ in range(60):
                rows = [mb.sum(x[j : j + 20] * 2.0, axis=0) for j in range(20)]
                assert all(set(mb.to_numpy(r).tolist()) == {40.0 * (k + 1.0)} for r in rows)
        except Exception as e:
            went_wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not went_wrong
