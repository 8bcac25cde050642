"""@mb.kernel: one function of an index, the same on the host's threads and on the reference device."""

import math
import pickle
import textwrap
from collections import namedtuple

import numpy as np
import pytest
from children import answer
from compare import assert_same, contents, on_real_card
from kinds import PLAIN, SINGLE
from samples import ordinary

import mirabelle as mb
from mirabelle.arraytypes import kernels

# (over several processes: tests/mpi_programs/indexkernels.py)
PLAIN = [k for k in PLAIN if not k.distributed]
SINGLE = [k for k in SINGLE if not k.distributed]
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
WRITABLE = [k for k in SINGLE if k.writable]
DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


@pytest.fixture(autouse=True)
def several_threads():
    """Threads also for what is small."""
    with mb.settings.changed(thread_size=16):
        yield


def made(kind, values, dtype=None):
    return kind.family(np.asarray(values, dtype))


@mb.kernel
def double(k, y, x):
    i = k.index(0)
    y[i] = x[i] + x[i]


@mb.kernel
def add_one_2d(k, x):
    i, j = k.index()
    x[i, j] += 1


# Index spaces


@plain
@pytest.mark.parametrize("n", [0, 1, 5, 256, 257])
def test_one_dimension(kind, n):
    x = ordinary("f8", (n,))
    y = made(kind, np.zeros(n))
    double[n](y, made(kind, x))
    assert_same(y, 2 * x)


@mb.kernel
def where_1d(k, out):
    i = k.index(0)
    out[i, 0], out[i, 1], out[i, 2] = k.local(0), k.group(0), k.size(0)
    out[i, 3], out[i, 4], out[i, 5] = k.group_size(0), k.groups(0), k.index(-1)


@mb.kernel
def where_2d(k, out):
    i, j = k.index()
    a, b = k.local()
    g, h = k.group()
    out[i, j, 0], out[i, j, 1] = a, b
    out[i, j, 2], out[i, j, 3] = g, h
    out[i, j, 4] = k.size(0) * 1000 + k.size(1)
    out[i, j, 5] = k.groups(0) * 1000 + k.groups(-1)
    out[i, j, 6] = k.group_size(0) * 1000 + k.group_size(1)


@mb.kernel
def where_3d(k, out):
    a, b, c = k.index()
    out[a, b, c] = (k.group(0) * 100 + k.group(1) * 10 + k.group(2)) * 1000 + (
        k.local(0) * 100 + k.local(1) * 10 + k.local(2)
    )


@plain
@pytest.mark.parametrize("group", [1, 4, 7, 64])
def test_coordinates_of_one_dimension(kind, group):
    n = 10
    out = made(kind, np.zeros((n, 6), int))
    where_1d[(n,), (group,)](out)
    i = np.arange(n)
    groups = -(-n // group)
    expected = [i % group, i // group, 0 * i + n, 0 * i + group, 0 * i + groups, i]
    assert_same(out, np.stack(expected, axis=1))


@plain
@pytest.mark.parametrize("group", [(1, 1), (2, 3), (5, 7), (8, 8)], ids=str)
def test_coordinates_of_two_dimensions(kind, group):
    n, m = 5, 7
    out = made(kind, np.zeros((n, m, 7), int))
    where_2d[(n, m), group](out)
    i, j = np.indices((n, m))
    p, q = group
    parts = [i % p, j % q, i // p, j // q, 0 * i + n * 1000 + m]
    parts += [0 * i + -(-n // p) * 1000 + -(-m // q), 0 * i + p * 1000 + q]
    assert_same(out, np.stack(parts, axis=-1))


@plain
@pytest.mark.parametrize("group", [(2, 2, 2), (1, 4, 3)], ids=str)
def test_coordinates_of_three_dimensions(kind, group):
    shape = (3, 5, 4)
    out = made(kind, np.zeros(shape, int))
    where_3d[shape, group](out)
    at = np.indices(shape)
    digits = lambda parts: parts[0] * 100 + parts[1] * 10 + parts[2]
    outer = digits([a // g for a, g in zip(at, group, strict=True)])
    inner = digits([a % g for a, g in zip(at, group, strict=True)])
    assert_same(out, outer * 1000 + inner)


def test_the_index_space_is_written_in_several_ways():
    @mb.kernel
    def f(k, x):
        x[k.index(0)] = k.size(0)

    x = mb.HostArray(np.zeros(6))
    for launch in (f[6], f[(6,)], f[[6]], f[np.int64(6)], f[x.shape], f[(6,), 2], f[x.shape, (4,)]):
        assert launch.shape == (6,)
        launch(x)
        assert_same(x, np.full(6, 6.0))
    assert add_one_2d[3, 4].shape == add_one_2d[(3, 4)].shape == add_one_2d[(3, 4), (2, 2)].shape == (3, 4)
    assert add_one_2d[(3, 4), (2, 2)].group == (2, 2)
    assert "over (3, 4) in groups of (2, 2)" in repr(add_one_2d[(3, 4), (2, 2)])


@plain
def test_an_empty_index_space_runs_nothing_and_checks_arguments(kind):
    x = made(kind, np.zeros((0, 3)))
    add_one_2d[0, 3](x)
    with pytest.raises(TypeError, match="launched as"):
        add_one_2d[0, 3](x, x)


# Arguments


@mb.kernel
def copied_2d(k, y, x):
    i, j = k.index()
    y[i, j] = x[i, j]


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_reading_any_array(kind):
    x = np.arange(12.0).reshape(3, 4)
    y = kind.family(np.zeros((3, 4)))
    copied_2d[3, 4](y, kind.make(x))
    assert_same(y, kind.sample(x))


@pytest.mark.parametrize("kind", WRITABLE, ids=repr)
def test_writing_any_array_keeps_what_was_said(kind):
    data = np.arange(12.0).reshape(3, 4)
    x = kind.make(data)
    before = x + 0
    add_one_2d[3, 4](x)
    assert_same(x, data + 1)
    assert_same(before, data)


@mb.kernel
def reversed_(k, y, x):
    i = k.index(0)
    y[k.size(0) - 1 - i] = x[i]


@plain
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(kind, dtype):
    x = ordinary(dtype, (20,))
    y = made(kind, np.zeros(20, dtype))
    reversed_[20](y, made(kind, x))
    assert_same(y, x[::-1])


@mb.kernel
def scaled(k, y, x, factor, shift=1.0):
    i = k.index(0)
    y[i] = x[i] * factor + shift


@plain
def test_numbers_defaults_and_keywords(kind):
    x = np.arange(4.0)
    for factor in (
        3,
        3.0,
        True,
        np.float32(3),
        np.int16(2),
        np.array(3.0),
        made(kind, 3.0),
        made(kind, 1.5) * 2,
    ):
        y = made(kind, np.zeros(4))
        scaled[4](y, made(kind, x), factor)
        number = float(contents(factor)[()] if isinstance(factor, mb.AbstractArray) else factor)
        assert_same(y, x * number + 1)
    y = made(kind, np.zeros(4))
    scaled[4](y, made(kind, x), 2.0, shift=5.0)
    assert_same(y, x * 2 + 5)
    scaled[4](factor=1.0, x=made(kind, x), y=y)
    assert_same(y, x + 1)
    z = made(kind, np.zeros(4, complex))
    scaled[4](z, made(kind, x), 2j)
    assert_same(z, x * 2j + 1)


@plain
def test_a_sum_that_is_pending_is_a_number(kind):
    x = made(kind, np.arange(4.0))
    y = made(kind, np.zeros(4))
    scaled[4](y, x * 1, mb.sum(x), 0.0)
    assert_same(y, np.arange(4.0) * 6)


@plain
def test_a_0d_array_that_is_written_is_an_array(kind):
    @mb.kernel
    def count(k, n, x):
        if x[k.index(0)] > 0:
            k.atomic_add(n, (), 1)

    n = made(kind, 0)
    count[4](n, made(kind, [1.0, -1.0, 2.0, 3.0]))
    assert_same(n, np.array(3))


Pair = namedtuple("Pair", "a b")


@plain
def test_tuples_of_arrays(kind):
    @mb.kernel
    def into(k, out, pair, numbers):
        i = k.index(0)
        x, y = pair
        out[i] = x[i] * numbers[0] + y[i] * numbers[1]

    @mb.kernel
    def by_name(k, out, pair):
        i = k.index(0)
        out[i] = pair.a[i] - pair.b[i]

    x, y, out = (made(kind, v) for v in ([1.0, 2.0], [3.0, 5.0], [0.0, 0.0]))
    into[2](out, (x, y), (10, 1))
    assert_same(out, np.array([13.0, 25.0]))
    by_name[2](out, Pair(y, x))
    assert_same(out, np.array([2.0, 3.0]))


@plain
def test_shape_size_and_length_of_arguments(kind):
    @mb.kernel
    def f(k, out, x):
        i = k.index(0)
        out[i] = x.shape[0] * 100 + x.shape[1] * 10 + x.ndim + len(x) + x.size

    out = made(kind, np.zeros(2, int))
    f[2](out, made(kind, np.zeros((3, 4))))
    assert_same(out, np.full(2, 340 + 2 + 3 + 12))


def test_numpys_arrays_are_written_in_place_on_the_host():
    n, x = np.zeros(3), np.arange(3.0)
    double[3](n, x)
    np.testing.assert_array_equal(n, 2 * x)
    shared = mb.asarray(n)
    double[3](shared, mb.HostArray(n))
    np.testing.assert_array_equal(n, 4 * x)


# A write never changes what was already said


@plain
def test_in_place_where_nobody_reads_and_elsewhere_where_somebody_does(kind):
    x = made(kind, np.zeros((2, 3)))
    kept = mb.sum(x)
    y = x + 1
    add_one_2d[2, 3](x)
    assert float(kept) == 0 and float(mb.sum(x)) == 6
    assert_same(y, np.ones((2, 3)))
    with mb.count() as c:
        add_one_2d[2, 3](x)
    assert (c.launches, c.temporaries, c.transfers, c.scalar_reads) == (1, 0, 0, 0)
    z = x * 2  # pending, and written to
    add_one_2d[2, 3](z)
    assert_same(z, np.full((2, 3), 5.0))


@plain
def test_writing_through_a_view(kind):
    x = made(kind, np.zeros((4, 6)))
    column, pending = x[:, 1], x * 1
    double[4](column, made(kind, np.ones(4)))
    add_one_2d[2, 3](x[::2, ::2])
    add_one_2d[6, 4](x.T)
    expected = np.zeros((4, 6))
    expected[:, 1] = 2
    expected[::2, ::2] += 1
    assert_same(x, expected + 1)
    assert_same(pending, np.zeros((4, 6)))


# The language


@mb.jit
def cube(v):
    return v * v * v


FACTOR = 3.0
TABLE = np.array([1.0, 10.0, 100.0])


@plain
def test_functions_and_constants_inside(kind):
    shift = 0.5

    @mb.kernel
    def f(k, y, x):
        i = k.index(0)
        v = cube(x[i]) * FACTOR + shift
        y[i] = v + math.sqrt(x[i]) + np.exp(x[i]) + mb.maximum(x[i], 1.0) + abs(-x[i]) + min(x[i], 2.0)

    x = np.array([0.5, 1.0, 2.5])
    y = made(kind, np.zeros(3))
    f[3](y, made(kind, x))
    expected = x**3 * 3 + 0.5 + np.sqrt(x) + np.exp(x) + np.maximum(x, 1) + x + np.minimum(x, 2)
    assert_same(y, expected, rtol=1e-14)


@plain
def test_branches_loops_and_returns(kind):
    @mb.kernel
    def collatz(k, steps, start):
        i = k.index(0)
        if i >= start.shape[0]:
            return
        n = start[i]
        count = 0
        while True:
            if n == 1:
                break
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        steps[i] = count

    @mb.kernel
    def first_even(k, out, x):
        i = k.index(0)
        for j in range(x.shape[1]):
            if x[i, j] % 2 == 0:
                out[i] = j
                return
        out[i] = -1

    @mb.kernel
    def skipping(k, out):
        i = k.index(0)
        total = 0
        for j in range(0, 10, 2):
            if j == i:
                continue
            total += j
        else:
            total += 1000
        out[i] = total

    start = np.array([1, 6, 7, 27])
    steps = made(kind, np.zeros(4, int))
    collatz[7](steps, made(kind, start))
    assert_same(steps, np.array([0, 8, 16, 111]))
    x = np.array([[1, 3, 4], [2, 2, 2], [1, 1, 1]])
    out = made(kind, np.zeros(3, int))
    first_even[3](out, made(kind, x))
    assert_same(out, np.array([2, 0, -1]))
    skipping[3](out)
    assert_same(out, np.array([1020, 1020, 1018]))


@plain
def test_swaps_chains_and_parameters_as_variables(kind):
    @mb.kernel
    def swap(k, x, y):
        i = k.index(0)
        x[i], y[i] = y[i], x[i]

    @mb.kernel
    def chained(k, x, y, n):
        i = k.index(0)
        n += i
        x[i] = y[i] = n
        x[i] **= 2

    a, b = made(kind, [1.0, 2.0]), made(kind, [3.0, 4.0])
    swap[2](a, b)
    assert_same(a, np.array([3.0, 4.0]))
    assert_same(b, np.array([1.0, 2.0]))
    chained[2](a, b, 3)
    assert_same(a, np.array([9.0, 16.0]))
    assert_same(b, np.array([3.0, 4.0]))


@plain
def test_divisions_are_numpys(kind):
    @mb.kernel
    def f(k, out, x, y):
        i = k.index(0)
        out[0, i], out[1, i], out[2, i] = x[i] / y[i], x[i] // y[i], x[i] % y[i]

    x, y = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    out = made(kind, np.zeros((3, 4)))
    f[4](out, made(kind, x), made(kind, y))
    assert_same(out, np.stack([x / y, x // y, x % y]))
    zero = made(kind, np.zeros((3, 1)))
    f[1](zero, made(kind, [1.0]), made(kind, [0.0]))
    assert contents(zero)[0, 0] == math.inf


# Groups: shared memory, barriers


TILE = 4


@mb.kernel
def transposed(k, out, x):
    tile = k.shared((TILE, TILE), mb.float64)
    a, b = k.local()
    i, j = k.index()
    tile[a, b] = x[i, j]
    k.barrier()
    # Written where neighbours in a group are neighbours in memory.
    out[k.group(1) * TILE + a, k.group(0) * TILE + b] = tile[b, a]


@plain
def test_transposition_by_tiles(kind):
    x = np.arange(96.0).reshape(8, 12)
    out = made(kind, np.zeros((12, 8)))
    transposed[(8, 12), (TILE, TILE)](out, made(kind, x))
    assert_same(out, x.T)


@mb.kernel(padded=True)
def matmul_tiled(k, out, a, b):
    left = k.shared((TILE, TILE), mb.float64)
    right = k.shared((TILE, TILE), mb.float64)
    p, q = k.local()
    i, j = k.index()
    total = 0.0
    for t in range((a.shape[1] + TILE - 1) // TILE):
        left[p, q] = a[i, t * TILE + q] if i < a.shape[0] and t * TILE + q < a.shape[1] else 0.0
        right[p, q] = b[t * TILE + p, j] if t * TILE + p < b.shape[0] and j < b.shape[1] else 0.0
        k.barrier()
        for n in range(TILE):
            total += left[p, n] * right[n, q]
        k.barrier()
    if k.valid:
        out[i, j] = total


@plain
@pytest.mark.parametrize("shape", [(8, 4, 8), (5, 7, 6), (1, 1, 1), (4, 9, 3)], ids=str)
def test_matmul_by_tiles(kind, shape):
    n, m, p = shape
    a, b = ordinary("f8", (n, m)), ordinary("f8", (m, p), seed=1)
    out = made(kind, np.zeros((n, p)))
    matmul_tiled[(n, p), (TILE, TILE)](out, made(kind, a), made(kind, b))
    assert_same(out, a @ b, rtol=1e-13, atol=1e-13)


GROUP = 16


@mb.kernel
def sums(k, out, x):
    part = k.shared(GROUP, mb.float64)
    i = k.local(0)
    part[i] = 0.0
    at = k.index(0)
    while at < x.shape[0]:
        part[i] += x[at]
        at += k.size(0)
    half = k.group_size(0) // 2
    while half > 0:
        k.barrier()
        if i < half:
            part[i] += part[i + half]
        half //= 2
    if i == 0:
        out[k.group(0)] = part[0]


@plain
def test_a_reduction_in_two_launches(kind):
    x = ordinary("f8", (200,))
    partial, out = made(kind, np.zeros(4)), made(kind, np.zeros(1))
    sums[(4 * GROUP,), (GROUP,)](partial, made(kind, x))
    sums[(GROUP,), (GROUP,)](out, partial)
    assert_same(out, np.array([x.sum()]), rtol=1e-13)


@mb.kernel
def scan(k, y, x):
    part = k.shared((2, GROUP), mb.int64)
    i = k.local(0)
    now = 0
    part[now, i] = x[k.index(0)]
    step = 1
    while step < k.group_size(0):
        k.barrier()
        before = part[now, i - step] if i >= step else 0
        part[1 - now, i] = part[now, i] + before
        now = 1 - now
        step *= 2
    y[k.index(0)] = part[now, i]


@plain
def test_a_scan_of_each_group(kind):
    x = ordinary("i8", (3 * GROUP,))
    y = made(kind, np.zeros(len(x), int))
    scan[(len(x),), (GROUP,)](y, made(kind, x))
    assert_same(y, np.cumsum(x.reshape(3, GROUP), axis=1).reshape(-1))


@mb.kernel(padded=True)
def smoothed(k, y, x):
    # A tile with a halo of one on either side.
    tile = k.shared(10, mb.float64)
    i, at = k.local(0), k.index(0)
    n = x.shape[0]
    if at < n:
        tile[i + 1] = x[at]
    if i == 0:
        tile[0] = x[max(at - 1, 0)] if at < n else 0.0
        tile[9] = x[min(at + 8, n - 1)]
    k.barrier()
    if k.valid and at > 0 and at < n - 1:
        y[at] = (tile[i] + tile[i + 1] + tile[i + 2]) / 3


@plain
@pytest.mark.parametrize("n", [8, 13, 24])
def test_a_stencil_with_a_halo(kind, n):
    x = ordinary("f8", (n,))
    y = made(kind, x)
    smoothed[(n,), (8,)](y, made(kind, x))
    expected = x.copy()
    expected[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    assert_same(y, expected, rtol=1e-14)


@plain
def test_groups_that_are_cut_off_do_not_wait_for_threads_outside(kind):
    @mb.kernel
    def last_of_group(k, out):
        seen = k.shared(1, mb.int64)
        if k.local(0) == 0:
            seen[0] = 0
        k.barrier()
        k.atomic_add(seen, 0, 1)
        k.barrier()
        out[k.index(0)] = seen[0]

    out = made(kind, np.zeros(10, int))
    last_of_group[(10,), (4,)](out)
    assert_same(out, np.array([4] * 8 + [2] * 2))


@plain
def test_private_arrays_live_across_barriers(kind):
    @mb.kernel
    def f(k, out):
        mine = k.private(3, mb.int64)
        grid = k.private((2, 2), mb.float32)
        all_ = k.shared(4, mb.int64)
        i = k.local(0)
        for j in range(3):
            mine[j] = i * 10 + j
        grid[1, 0] = i
        all_[i] = i
        k.barrier()
        out[k.index(0)] = mine[0] + mine[2] + all_[3 - i] + grid[1, 0]

    out = made(kind, np.zeros(8))
    f[(8,), (4,)](out)
    i = np.arange(8) % 4
    assert_same(out, (20 * i + 2 + 3 - i + i).astype(float))


@plain
def test_variables_live_across_barriers(kind):
    @mb.kernel
    def f(k, out, x):
        s = k.shared(4, mb.float64)
        i = k.local(0)
        v = x[k.index(0)]
        flag = v > 2
        n = 1
        for t in range(3):
            s[i] = v
            k.barrier()
            v = s[(i + 1) % 4]
            if flag:
                n += t
            k.barrier()
        out[k.index(0)] = v * 100 + n

    x = np.arange(8.0)
    out = made(kind, np.zeros(8))
    f[(8,), (4,)](out, made(kind, x))
    moved = np.concatenate([np.roll(x[:4], -3), np.roll(x[4:], -3)])
    assert_same(out, moved * 100 + np.where(x > 2, 4, 1))


@plain
def test_a_loop_that_the_group_leaves_as_one(kind):
    @mb.kernel
    def f(k, out, rounds):
        s = k.shared(4, mb.int64)
        i = k.local(0)
        s[i] = 0
        t = 0
        while True:
            k.barrier()
            if t == rounds[k.group(0)]:
                break
            s[i] += i + 1
            t += 1
        out[k.index(0)] = s[i]

    out = made(kind, np.zeros(8, int))
    f[(8,), (4,)](out, made(kind, [2, 5]))
    assert_same(out, np.concatenate([2 * np.arange(1, 5), 5 * np.arange(1, 5)]))


@plain
@pytest.mark.parametrize("group", [1, 2, 5, 100])
def test_the_group_makes_no_difference_where_it_is_not_asked_for(kind, group):
    x = ordinary("f8", (23,))
    y = made(kind, np.zeros(23))
    double[(23,), (group,)](y, made(kind, x))
    assert_same(y, 2 * x)


# Atomic operations


@mb.kernel
def histogram(k, counts, x):
    k.atomic_add(counts, x[k.index(0)], 1)


@plain
@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8", "f4", "f8"])
def test_a_histogram(kind, dtype):
    x = np.random.default_rng(0).integers(0, 5, 100)
    counts = made(kind, np.zeros(5, dtype))
    histogram[100](counts, made(kind, x))
    assert_same(counts, np.bincount(x, minlength=5).astype(dtype))


@mb.kernel
def extremes(k, out, x):
    i = k.index(0)
    k.atomic_max(out, 0, x[i])
    k.atomic_min(out, 1, x[i])
    k.atomic_add(out, 2, x[i])


@plain
@pytest.mark.parametrize("dtype", ["i4", "u8", "f4", "f8"])
def test_largest_smallest_and_sum(kind, dtype):
    x = ordinary(dtype, (60,))
    out = made(kind, np.array([x[0], x[0], 0], dtype))
    extremes[60](out, made(kind, x))
    assert_same(out, np.array([x.max(), x.min(), x.sum(dtype=dtype)], dtype))


@plain
def test_nan_loses(kind):
    out = made(kind, np.array([1.0, 1.0, 0.0]))
    extremes[3](out, made(kind, [np.nan, 2.0, -3.0]))
    got = contents(out)
    assert got[0] == 2 and got[1] == -3 and np.isnan(got[2])


@plain
def test_what_was_there_before_comes_back(kind):
    @mb.kernel
    def ticket(k, taken, next_):
        n = k.atomic_add(next_, 0, 1)
        k.atomic_exchange(taken, n, k.index(0))

    @mb.kernel
    def first_come(k, won, lock):
        i = k.index(0)
        if k.atomic_cas(lock, 0, -1, i) == -1:
            won[i] = 1

    taken, next_ = made(kind, np.full(40, -1)), made(kind, [0])
    ticket[40](taken, next_)
    assert sorted(contents(taken)) == list(range(40))
    won, lock = made(kind, np.zeros(40, int)), made(kind, [-1])
    first_come[40](won, lock)
    assert contents(won).sum() == 1 and contents(won)[contents(lock)[0]] == 1


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_a_product_by_compare_and_swap(kind, dtype):
    @mb.kernel
    def product(k, out, x):
        while True:
            old = k.atomic_add(out, 0, 0)
            if k.atomic_cas(out, 0, old, old * x[k.index(0)]) == old:
                break

    x = np.array([1, 2, 2, 3] * 3, dtype)
    out = made(kind, np.ones(1, dtype))
    product[len(x)](out, made(kind, x))
    assert_same(out, np.array([x.prod()], dtype))


@plain
def test_atomic_operations_on_shared_memory(kind):
    @mb.kernel
    def grouped(k, out, x):
        part = k.shared(5, mb.int32)
        i = k.local(0)
        if i < 5:
            part[i] = 0
        k.barrier()
        v = x[k.index(0)]
        k.atomic_add(part, 0, v)
        k.atomic_max(part, 1, v)
        k.atomic_min(part, 2, v)
        k.atomic_exchange(part, 3, 7)
        k.atomic_cas(part, 4, 0, 9)
        k.barrier()
        if i < 5:
            out[k.group(0), i] = part[i]

    x = ordinary("i4", (24,))
    out = made(kind, np.zeros((3, 5), "i4"))
    grouped[(24,), (8,)](out, made(kind, x))
    parts = x.reshape(3, 8)
    columns = [parts.sum(1), parts.max(1).clip(0), parts.min(1).clip(None, 0), [7] * 3, [9] * 3]
    assert_same(out, np.stack(columns, axis=1).astype("i4"))


@plain
def test_atomic_operations_through_views_and_wrappers(kind):
    @mb.kernel
    def rows(k, counts, x):
        k.atomic_add(counts, (x[k.index(0)], 1), 1)

    counts = made(kind, np.zeros((6, 4), int))
    x = np.array([0, 2, 2, 1, 0, 2])
    rows[6](counts[::2, 1:], made(kind, x[::-1])[::-1])
    expected = np.zeros((6, 4), int)
    expected[::2, 2] = [2, 1, 3]
    assert_same(counts, expected)


# Threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads):
    x = ordinary("f8", (5000,))
    counts, y = mb.HostArray(np.zeros(5, "i8")), mb.HostArray(np.zeros(5000))
    partial = mb.HostArray(np.zeros(64))
    with mb.settings.changed(num_threads=threads):
        double[5000](y, mb.HostArray(x))
        histogram[5000](counts, mb.HostArray(np.arange(5000) % 5))
        sums[(64 * GROUP,), (GROUP,)](partial, mb.HostArray(x))
    assert_same(y, 2 * x)
    assert_same(counts, np.full(5, 1000))
    # The order within a group is fixed, and groups are apart: bit for bit.
    with mb.settings.changed(num_threads=1):
        again = mb.HostArray(np.zeros(64))
        sums[(64 * GROUP,), (GROUP,)](again, mb.HostArray(x))
    assert_same(partial, contents(again))


def test_an_error_in_a_thread_comes_out():
    x = mb.HostArray(np.zeros(1000))
    with pytest.raises(IndexError, match="out of bounds"):
        double.checked[1001](x, x)


# Mistakes that are found when they happen


@mb.kernel
def neighbours(k, y, x):
    i = k.index(0)
    y[i] = x[i + 1] + x[i]


@mb.kernel
def previous(k, y, x):
    y[k.index(0)] = x[k.index(0) - 1]


@mb.kernel
def writes_outside(k, y, n):
    y[n, k.index(0)] = 1.0


@plain
def test_indices_outside_are_errors_where_they_are_checked(kind):
    x, y = made(kind, np.arange(5.0)), made(kind, np.zeros(5))
    with pytest.raises(
        IndexError, match=r"(?s)neighbours\(\), thread \(4\), line \d+: index 5.*axis 0 of x.*size 5.*if i <"
    ):
        neighbours.checked[5](y, x)
    with pytest.raises(IndexError, match=r"index -1.*Negative indices"):
        previous.checked[5](y, x)
    with pytest.raises(IndexError, match=r"index 7 .*axis 0 of y.*size 2"):
        writes_outside.checked[2](made(kind, np.zeros((2, 2))), 7)
    with pytest.raises(IndexError, match=r"axis 0 of counts"):
        histogram.checked[2](made(kind, np.zeros(3)), made(kind, [0, 3]))
    # What is right runs as ever.
    neighbours.checked[4](y, x)
    assert_same(y[:4], np.arange(4.0) * 2 + 1)
    assert double.checked is double.checked and double.checked.checked is double.checked


@plain
def test_shared_and_private_arrays_are_checked_too(kind):
    @mb.kernel(boundscheck=True)
    def shared(k, n):
        s = k.shared(4, mb.float64)
        s[k.local(0) + n] = 1.0
        k.barrier()

    @mb.kernel(boundscheck=True)
    def private(k, n):
        p = k.private((2, 2), mb.float64)
        p[0, n] = 1.0
        k.barrier()

    shared[(4,), (4,)](0)
    private[4](1)
    with pytest.raises(IndexError, match="axis 0 of s, which has size 4"):
        shared[(4,), (4,)](1)
    with pytest.raises(IndexError, match="axis 1 of p, which has size 2"):
        private[4](2)


def test_the_reference_device_checks_always():
    x = mb.RefArray(np.zeros(3))
    with pytest.raises(IndexError, match="out of bounds"):
        double[4](x, x)


@mb.kernel
def parted(k, x, n):
    i = k.index(0)
    if i < n[0]:
        k.barrier()
    x[i] = 1.0


@mb.kernel
def parted_loop(k, x, n):
    for _ in range(n[k.index(0)]):
        k.barrier()
        x[k.index(0)] += 1.0


@plain
def test_threads_that_part_at_a_barrier(kind):
    x = made(kind, np.zeros(4))
    if on_real_card(x):
        pytest.skip("a card does not see it")
    with pytest.raises(mb.DeviceError, match=r"parted\(\): the threads of a group part at line \d+"):
        parted[(4,), (4,)](x, made(kind, [2]))
    with pytest.raises(mb.DeviceError, match="part at line"):
        parted_loop[(4,), (4,)](x, made(kind, [1, 1, 2, 1]))
    # All the same way, or each group its own.
    parted[(4,), (4,)](x, made(kind, [9]))
    parted[(4,), (2,)](x, made(kind, [2]))
    assert_same(x, np.ones(4))
    y = made(kind, np.zeros(4))
    parted_loop[(4,), (2,)](y, made(kind, [1, 1, 3, 3]))
    assert_same(y, np.array([1.0, 1, 3, 3]))


def ref(values):
    return mb.RefArray(np.asarray(values))


def test_races_are_reported():
    @mb.kernel
    def shifted(k, x):
        i = k.index(0)
        x[i] = x[i + 1]

    @mb.kernel
    def to_one(k, x):
        x[0] = k.index(0)

    @mb.kernel
    def no_barrier(k, y):
        s = k.shared(4, mb.float64)
        i = k.local(0)
        s[i] = 0.0
        k.barrier()
        s[i] = i
        y[i] = s[3 - i]

    @mb.kernel
    def mixed(k, x):
        k.atomic_add(x, 0, 1.0)
        x[0] = 2.0

    for run in (
        lambda: shifted[4](ref(np.zeros(5))),
        lambda: to_one[2](ref([0.0])),
        lambda: no_barrier[(4,), (4,)](ref(np.zeros(4))),
        lambda: mixed[2](ref([0.0])),
    ):
        with pytest.raises(mb.DeviceError, match=r"(?s)a race at .*thread.*barrier\(\)"):
            run()


def test_what_is_no_race():
    @mb.kernel
    def all_say_the_same(k, found, x):
        if x[k.index(0)] > 0:
            found[0] = True

    @mb.kernel
    def phases(k, y):
        s = k.shared(4, mb.float64)
        i = k.local(0)
        s[i] = i
        k.barrier()
        v = s[3 - i]
        k.barrier()
        s[i] = v
        y[i] = s[i]

    found, y = ref([False]), ref(np.zeros(4))
    all_say_the_same[4](found, ref([0.0, 1.0, 1.0, 0.0]))
    assert_same(found, np.array([True]))
    phases[(4,), (4,)](y)
    assert_same(y, np.array([3.0, 2, 1, 0]))


def test_local_elements_that_nobody_wrote():
    @mb.kernel
    def f(k, y):
        p = k.private(2, mb.float64)
        p[0] = 1.0
        y[k.index(0)] = p[1]

    @mb.kernel
    def g(k, y):
        s = k.shared(4, mb.float64)
        s[k.local(0)] = 1.0
        k.barrier()
        y[k.index(0)] = s[3]

    with pytest.raises(mb.DeviceError, match=r"p\[1\] is read, and nobody has written it"):
        f[1](ref([0.0]))
    with pytest.raises(mb.DeviceError, match=r"padded=True"):
        g[(2,), (4,)](ref(np.zeros(2)))


# What is refused before it runs


def refuses(f, text, error=mb.UserFunctionError, args=(), shape=2):
    kernel = mb.kernel(f)
    for family in (mb.HostArray, mb.RefArray, mb.CuArray):
        x = family(np.zeros(2))
        with pytest.raises(error, match=text):
            kernel[shape](x, *args)
        assert_same(x, np.zeros(2))


def bad_unknown(k, x):
    x[k.thread(0)] = 1.0


def bad_return(k, x):
    return x[k.index(0)]


def bad_slice(k, x):
    x[:] = k.index(0)


def bad_ellipsis(k, x):
    x[...] = k.index(0)


def bad_lambda(k, x):
    f = lambda v: v + 1
    x[k.index(0)] = f(1)


def bad_try(k, x):
    try:
        x[k.index(0)] = 1
    except IndexError:
        pass


def bad_with(k, x):
    with open("f"):
        x[k.index(0)] = 1


def bad_import(k, x):
    import math

    x[k.index(0)] = math.pi


def bad_context(k, x):
    x[k.index(0)] = cube(k)


def bad_alone(k, x):
    i = k
    x[i.index(0)] = 1


def bad_overwritten(k, x):
    k = 1
    x[k] = 1


def bad_valid(k, x):
    if k.valid():
        x[k.index(0)] = 1


def bad_barrier(k, x):
    a = k.barrier()
    x[k.index(0)] = a


def bad_early(k, x):
    if k.index(0) > 0:
        return
    k.barrier()
    x[0] = 1


def bad_dimension(k, x):
    x[k.index(1)] = 1


def bad_variable_dimension(k, x):
    for d in range(1):
        x[k.index(d)] = 1


def bad_shared_size(k, x):
    n = x.shape[0]
    s = k.shared(n, mb.float64)
    s[0] = 1


def bad_shared_place(k, x):
    if k.index(0) == 0:
        s = k.shared(4, mb.float64)
        s[0] = 1


def bad_shared_shape(k, x):
    s = k.shared((0, 4), mb.float64)
    s[0, 0] = 1


def bad_shared_twice(k, x):
    s = k.shared(4, mb.float64)
    s = k.shared(8, mb.float64)
    s[0] = 1


def bad_shared_dtype(k, x):
    s = k.shared(4)
    s[0] = 1


def bad_atomic(k, x):
    k.atomic_add(x, 0)


def bad_atomic_array(k, x):
    k.atomic_add(x + 1, 0, 1.0)


def bad_delete(k, x):
    y = 1
    del y
    x[0] = 1


BAD = {
    bad_unknown: r"line \d+, `x\[k\.thread\(0\)\] = 1\.0`: k\.thread does not exist.*index, local",
    bad_return: "returns nothing.*out\\[i\\] = value",
    bad_slice: "names single elements",
    bad_ellipsis: "names single elements",
    bad_lambda: "has a lambda",
    bad_try: "has a try",
    bad_with: "has a with",
    bad_import: "that imports",
    bad_context: "stays in the kernel|ask k in full",
    bad_alone: "ask k in full",
    bad_overwritten: "is the index context",
    bad_valid: "no function",
    bad_barrier: "statement of its own",
    bad_early: "does not come to the barrier",
    bad_dimension: r"asks for k\.index\(1\).*1 dimension.*\[n, m\]",
    bad_variable_dimension: "must be known before",
    bad_shared_size: "must be known before the kernel runs",
    bad_shared_place: "first\\s+level",
    bad_shared_shape: "positive integers",
    bad_shared_twice: "given to something else",
    bad_shared_dtype: "a shape and a dtype",
    bad_atomic: r"called k\.atomic_add\(a, i, value\)",
    bad_atomic_array: "an array by its name",
    bad_delete: "has a del",
}


@pytest.mark.parametrize("f", BAD, ids=lambda f: f.__name__)
def test_a_kernel_that_is_none_says_why_and_where(f):
    refuses(f, BAD[f])


def test_launches_that_cannot_be():
    x = mb.HostArray(np.zeros(4))
    for space, error, text in (
        ((2, 2, 2, 2), ValueError, "one to three dimensions"),
        (-1, ValueError, "cannot have the size"),
        (2.5, TypeError, "made of integers"),
        ("n", TypeError, "made of integers"),
        (((4,), (2, 2)), ValueError, "different numbers of dimensions"),
        (((4,), (0,)), ValueError, "a group cannot have the size"),
        (((4,), (2048,)), ValueError, "at most 1024 threads"),
    ):
        with pytest.raises(error, match=text):
            double[space]
    with pytest.raises(TypeError, match=r"double\[x\.shape\]\(\.\.\.\)"):
        double(x, x)
    with pytest.raises(TypeError, match=r"missing a required argument: 'x'.*double\[n\]\(y, x\)"):
        double[4](x)
    with pytest.raises(TypeError, match=r"multiple values|unexpected"):
        double[4](x, x, z=1)
    with pytest.raises(TypeError, match=r"list for x.*HostArray\(x\)"):
        double[4](x, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match=r"mb\.kernel makes kernels of Python functions"):
        mb.kernel(3)


def test_arrays_of_two_places_are_refused():
    h, r = mb.HostArray(np.zeros(3)), mb.RefArray(np.zeros(3))
    with pytest.raises(mb.PlaceError, match=r"x is .*host.*mb\.adapt\(mb\.RefArray, x\)"):
        double[3](r, h)
    with pytest.raises(mb.PlaceError, match=r"NumPy array.*adapt"):
        double[3](r, np.zeros(3))
    with pytest.raises(mb.PlaceError, match=r"y is .*host"):
        double[3](h, r)
    assert_same(h, np.zeros(3))
    assert_same(r, np.zeros(3))


@plain
def test_what_is_read_only_is_not_written(kind):
    stretched = mb.broadcast_to(made(kind, [1.0]), (3,))
    with pytest.raises(ValueError, match=r"read-only.*mb\.copy"):
        double[3](stretched, made(kind, np.ones(3)))
    y = made(kind, np.zeros(3))
    double[3](y, stretched)
    assert_same(y, np.full(3, 2.0))


def test_numpys_read_only_arrays_are_not_written():
    n = np.zeros(3)
    n.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        double[3](n, np.ones(3))


@plain
def test_values_that_do_not_fit(kind):
    @mb.kernel
    def store(k, y, v):
        y[k.index(0)] = v

    with pytest.raises((TypeError, mb.UserFunctionError), match="fit"):
        store[2](made(kind, np.zeros(2)), 1j)
    with pytest.raises((TypeError, mb.UserFunctionError), match="atomic operations take 32 and 64 bit"):
        histogram[2](made(kind, np.zeros(5, "i2")), made(kind, [0, 1]))
    with pytest.raises((TypeError, mb.UserFunctionError), match="int"):
        histogram[2](made(kind, np.zeros(5)), made(kind, [0.0, 1.0]))
    with pytest.raises((IndexError, mb.UserFunctionError), match=r"1 dimension|2 dimension"):
        double[2](made(kind, np.zeros((2, 2))), made(kind, np.zeros(2)))


GLOBAL = mb.HostArray([1.0])


@plain
def test_arrays_from_around_are_refused(kind):
    @mb.kernel
    def f(k, x):
        x[k.index(0)] = GLOBAL[0]

    with pytest.raises(mb.UserFunctionError, match=r"reads the array GLOBAL.*parameter"):
        f[1](made(kind, [0.0]))


def test_dtypes_that_the_host_does_not_compile():
    with pytest.raises(mb.UserFunctionError, match=r"arrays of float16.*astype\(mb\.float32\)"):
        double[2](mb.HostArray(np.zeros(2, "f2")), mb.HostArray(np.zeros(2, "f2")))
    x = mb.RefArray(np.ones(2, "f2"))
    double[2](x, x)
    assert_same(x, np.full(2, 2, "f2"))


@plain
def test_what_a_kernel_raises_comes_out(kind):
    @mb.kernel
    def f(k, x):
        if x[k.index(0)] < 0:
            raise ValueError("negative")

    f[2](made(kind, [1.0, 2.0]))
    with pytest.raises(ValueError, match=r"^negative$"):
        f[2](made(kind, [1.0, -2.0]))


def test_structured_arrays_are_refused_with_the_cure():
    with pytest.raises(TypeError, match=r"x is a Diagonal.*x = mb\.HostArray\(x\)"):
        add_one_2d[2, 2](mb.Diagonal(mb.HostArray([1.0, 2.0])))


def test_without_source_there_is_no_kernel():
    scope = {}
    exec("def f(k, x):\n    x[k.index(0)] = 1\n", scope)
    with pytest.raises(mb.UserFunctionError, match="no source text"):
        mb.kernel(scope["f"])[1](mb.HostArray([0.0]))


def test_the_context_exists_inside_only():
    with pytest.raises(TypeError, match="only inside a kernel"):
        mb.types.KernelContext().index(0)
    said = mb.types.KernelContext.__dict__
    for name in ("index", "local", "group", "shared", "private", "barrier", "atomic_add", "atomic_cas"):
        assert said[name].__doc__


# The kernel as an object, and the seam to backends


def test_it_is_still_the_function():
    @mb.kernel
    def documented(k, x):
        """What it does."""
        x[k.index(0)] = 1.0

    assert documented.__name__ == "documented" and documented.__doc__ == "What it does."
    assert documented.__wrapped__ is documented.python
    assert repr(documented).startswith("<mb.kernel") and "(k, x)" in repr(documented)
    assert pickle.loads(pickle.dumps(double)) is double
    for n in range(200):  # launches are kept, but not without end
        assert documented[n].shape == documented[(n,)].shape == (n,)
    assert documented[199] is documented[199] and len(documented._launches) < 200


def test_a_backend_gets_views_and_numbers(monkeypatch):
    got = []
    monkeypatch.setitem(kernels._launchers, mb.RefArray, lambda *args: got.append(args))
    x = mb.RefArray(np.zeros((4, 4)))
    scaled[(4,), (2,)](x[:, 1], x.T[0], mb.sum(x), shift=2)
    ((kernel, shape, group, (y, view, factor, shift)),) = got
    assert kernel is scaled and shape == (4,) and group == (2,)
    assert y.shape == view.shape == (4,) and factor.ndim == 0 and shift == 2
    assert kernel.source.parameters == ["y", "x", "factor", "shift"]
    assert [kernel.source.effects[name] for name in kernel.source.parameters] == [2, 0, 0, 0]
    double[0](x[0], x[1])
    assert len(got) == 1  # nothing to do is not launched


def test_a_place_without_kernels_says_so(monkeypatch):
    monkeypatch.setattr(kernels, "_launchers", {})
    with pytest.raises(mb.DeviceError, match=r"Kernels do not run on RefArray yet.*launcher\(RefArray\)"):
        double[2](mb.RefArray([1.0, 2.0]), mb.RefArray([1.0, 2.0]))


def test_what_a_kernel_uses_is_known():
    assert not double.source.grouped and not double.source.has_barrier
    assert transposed.source.grouped and transposed.source.has_barrier
    tile = transposed.source.locals["tile"]
    assert tile.shape == (4, 4) and tile.dtype == np.float64 and tile.shared


def test_counters():
    @mb.kernel
    def fresh(k, x):
        x[k.index(0)] = 17.25

    x = mb.HostArray(np.zeros(4))
    with mb.count() as c:
        fresh[4](x)
    assert (c.launches, c.compilations, c.scalar_reads, c.transfers, c.library_calls) == (1, 1, 0, 0, 0)
    with mb.count() as c:
        fresh[2](x)
    assert (c.launches, c.compilations) == (1, 0)


MODULE = """
    import mirabelle as mb

    @mb.kernel
    def mirrored(k, y, x):
        s = k.shared(4, mb.float64)
        i = k.local(0)
        v = x[k.index(0)] * {factor}
        s[i] = v
        k.barrier()
        y[k.index(0)] = s[3 - i] + v
"""


def test_compiled_kernels_are_found_by_the_next_process(tmp_path):
    def run(factor):
        (tmp_path / "kernelmodule.py").write_text(textwrap.dedent(MODULE.format(factor=factor)))
        return answer(
            f"""
            import json, sys
            sys.path.insert(0, {str(tmp_path)!r})
            sys.dont_write_bytecode = True
            import mirabelle as mb
            from kernelmodule import mirrored
            y = mb.zeros(4)
            with mb.count() as c:
                mirrored[(4,), (4,)](y, mb.arange(4.0))
            print(json.dumps([mb.to_numpy(y).tolist(), c.compilations]))
            """,
            cache_dir=str(tmp_path / "cache"),
        )

    assert run(2.0) == [[6.0] * 4, 1]
    assert run(2.0) == [[6.0] * 4, 0]
    assert run(3.0) == [[9.0] * 4, 1]
