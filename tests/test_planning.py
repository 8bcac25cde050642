"""Plans of compiled programs: which kernels there are, what lies in memory, what is written in place."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.joining import singly
from mirabelle.arraytypes.programs.running import StepByStep
from mirabelle.arraytypes.programs.steps import CallStep, CopyStep, FoldStep, KernelStep, ProductStep


def arrays(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [mb.HostArray(rng.random(s)) for s in shapes]


def steps_of(f, *args):
    return mb.compile(f).program(*args).plan.steps


def kinds(f, *args):
    return [type(step) for step in steps_of(f, *args)]


def test_a_chain_is_one_kernel():
    assert kinds(lambda x, y: mb.exp(x) * y + 1, *arrays(5, 5)) == [KernelStep]


def test_a_sum_takes_its_tree_in():
    assert kinds(lambda x, y: mb.sum(mb.abs(x - y)), *arrays(5, 5)) == [FoldStep]


def test_sums_of_one_tree_are_one_pass():
    (step,) = steps_of(lambda x: (mb.sum(x * 2), mb.max(x * 2), mb.min(x * 2)), *arrays(9))
    assert len(step.dests) == 3


def test_results_over_one_index_space_are_one_kernel():
    (step,) = steps_of(lambda x, y: (x + y, x - y, mb.sin(x)), *arrays(9, 9))
    assert len(step.dests) == 3


def test_what_is_costly_and_read_twice_is_computed_once():
    def f(x):
        y = mb.exp(x)
        return y, mb.sum(y)

    names = [step.name for step in steps_of(f, *arrays(50))]
    assert names == ["exp", "sum"]


def test_what_is_cheap_is_computed_again():
    def f(x):
        y = x + 1
        return mb.sum(y[1:] * 2), mb.sum(y)

    assert all("add" not in step.name for step in steps_of(f, *arrays(50)) if isinstance(step, KernelStep))


def test_smaller_and_costly_parts_are_computed_at_their_own_shape():
    first, second = steps_of(lambda x, v: x * mb.exp(v), *arrays((50, 40), 40))
    assert first.name == "exp" and first.dests[0].shape == (40,) and second.name == "multiply"


def test_softmax():
    def softmax(x):
        e = mb.exp(x - mb.max(x, axis=-1, keepdims=True))
        return e / mb.sum(e, axis=-1, keepdims=True)

    assert kinds(softmax, *arrays((8, 16))) == [FoldStep, KernelStep, FoldStep, KernelStep]


def test_loops_write_in_place():
    def fdtd(T, ex, ey, hz, fict):
        for t in range(T):
            ey[0, :] = fict[t]
            ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
            ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
            hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])

    program = mb.compile(fdtd).program(4, *arrays((9, 8), (9, 8), (9, 8), 4))
    assert len(singly(program.plan.steps)) == 16
    assert program.plan.arena_bytes == 0 and program.in_place == [0, 1, 2]


def test_a_swap_copies():
    def swap(a, b):
        t = mb.copy(a)
        a[...] = b
        b[...] = t

    a, b = arrays(5, 5)
    x, y = mb.to_numpy(a), mb.to_numpy(b)
    compiled = mb.compile(swap)
    for _ in range(3):
        compiled(a, b)
        x, y = y, x
        assert np.array_equal(mb.to_numpy(a), x) and np.array_equal(mb.to_numpy(b), y)


def test_a_write_over_what_it_reads_goes_by_way_of_other_memory():
    def shift(a):
        a[1:] = a[:-1] + 1

    (a,) = arrays(6)
    expected = mb.to_numpy(a)
    compiled = mb.compile(shift)
    for _ in range(2):
        expected[1:] = expected[:-1] + 1
        compiled(a)
        assert np.array_equal(mb.to_numpy(a), expected)


def test_old_contents_that_are_still_wanted_are_kept():
    def f(a):
        y = a[2:] * 2
        a[...] = 0
        return y, mb.sum(a)

    (a,) = arrays(6)
    old = mb.to_numpy(a)
    y, total = mb.compile(f)(a)
    assert np.array_equal(mb.to_numpy(y), old[2:] * 2) and float(total) == 0 and not mb.to_numpy(a).any()


def test_temporaries_share_memory():
    def f(x, w):
        for _ in range(20):
            x = mb.tanh(w @ x)
        return x

    program = mb.compile(f).program(*arrays(300, (300, 300)))
    plan = program.plan
    assert [type(s) for s in plan.steps] == [ProductStep, KernelStep] * 20
    assert plan.unplanned_bytes >= 19 * 300 * 8 and plan.arena_bytes <= 2 * 2432


def test_memory_does_not_grow_with_the_length_of_a_program():
    def f(steps):
        def g(x):
            for _ in range(steps):
                y = mb.sin(x)
                x = y[::-1] + mb.cumsum(y) / 7
            return x

        return mb.compile(g).program(*arrays(100)).plan.arena_bytes

    assert f(5) == f(50)


def test_results_take_over_the_memory_of_what_they_read_last():
    def f(x):
        y = mb.sin(x)
        s = mb.sum(y)
        z = mb.cos(y) * s
        t = mb.sum(z)
        return z * t

    plan = mb.compile(f).program(*arrays(1000)).plan
    assert plan.arena_bytes < 2 * 8000


def test_calls_are_steps_of_their_own():
    assert kinds(lambda x: mb.sort(x + 1) * 2, *arrays(9)) == [KernelStep, CallStep, KernelStep]


def test_what_a_program_returns_is_the_callers():
    compiled = mb.compile(lambda x: x * 2)
    (x,) = arrays(5)
    first = compiled(x)
    first[...] = 0
    second = compiled(x)
    assert np.array_equal(mb.to_numpy(second), mb.to_numpy(x) * 2) and not mb.to_numpy(first).any()


def test_an_input_that_is_copied_only():
    def f(x):
        return mb.copy(x)

    (x,) = arrays(5)
    y = mb.compile(f)(x)
    y[0] = 7
    assert float(x[0]) != 7
    assert kinds(f, x) == [CopyStep]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_at_all(shape):
    x = mb.zeros(shape)
    y, s = mb.compile(lambda x: (x + 1, mb.sum(x)))(x)
    assert y.shape == shape and float(s) == 0


def test_large_trees_are_several_kernels():
    def f(x):
        for k in range(1000):
            x = x * 0.75 + k
        return x

    (x,) = arrays(10)
    steps = steps_of(f, x)
    assert 5 <= len(steps) <= 20
    expected = mb.to_numpy(x)
    for k in range(1000):
        expected = expected * 0.75 + k
    assert np.allclose(mb.to_numpy(mb.compile(f)(x)), expected)


def test_results_that_replace_what_they_are_computed_from():
    def f(a, b, c):
        a *= b
        c *= a

    (a, b, c) = arrays(6, 6, 6)
    program = mb.compile(f).program(a, b, c)
    assert len(program.plan.steps) == 1 and program.in_place == [0, 2]
    x, y, z = [mb.to_numpy(v) for v in (a, b, c)]
    StepByStep(mb.HostArray, program.plan).run([v._node.view for v in (a, b, c)])
    f(x, y, z)
    assert np.array_equal(mb.to_numpy(a), x) and np.array_equal(mb.to_numpy(c), z)
    compiled = mb.compile(f)
    for _ in range(3):
        compiled(a, b, c)
        f(x, y, z)
        assert np.array_equal(mb.to_numpy(a), x) and np.array_equal(mb.to_numpy(c), z)


def test_a_step_of_a_wave_needs_no_memory():
    def step(u, v):
        v[1:-1] += 0.1 * (u[2:] + u[:-2] - 2 * u[1:-1])
        u += 0.1 * v
        return mb.max(mb.abs(u))

    program = mb.compile(step).program(*arrays(100, 100))
    assert program.in_place == [0, 1] and program.plan.peak_bytes == 8


def test_a_product_into_memory_is_a_write():
    def f(a, c):
        mb.linalg.gemm(a, a, alpha=2.0, beta=10.0, out=c)
        mb.linalg.gemm(a, c, out=c[:, ::-1])

    a, c = arrays((3, 3), (3, 3))
    x, y = mb.HostArray(a), mb.HostArray(c)
    f(x, y)
    mb.compile(f)(a, c)
    assert np.allclose(mb.to_numpy(c), mb.to_numpy(y)) and not np.allclose(
        mb.to_numpy(c), arrays((3, 3), (3, 3))[1]
    )


def test_parts_of_parts_are_told_apart() -> None:
    """Two slices of a product, each a part of a part that nobody keeps."""
    D = mb.HostArray(np.arange(1.0, 9.0).reshape(4, 2))
    u = mb.HostArray(np.arange(1.0, 3.0).reshape(1, 2, 1))

    def slices(u):
        s = D @ u
        return 3.0 * s[:, 0:2] + 2.0 * s[:, 2:4]

    np.testing.assert_array_equal(mb.to_numpy(mb.compile(slices)(u)), mb.to_numpy(slices(u)))
