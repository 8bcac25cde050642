"""Statements on parts of arrays: what is written in place, what is kept, what is NumPy's own."""

import itertools

import numpy as np
import pytest

import mirabelle as mb

ARRAYS = pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])


def held(x):
    """The memory of an array, without holding it."""
    mb.materialize(x)
    return id(x._node)


@ARRAYS
def test_a_part_copied_to_another_stays_in_place(array):
    n = np.arange(30.0).reshape(5, 6)
    x = array(n)
    before = held(x)
    x[:, -1] = x[:, -2]
    x[0] = x[1]
    n[:, -1] = n[:, -2]
    n[0] = n[1]
    assert held(x) == before
    np.testing.assert_array_equal(mb.to_numpy(x), n)


@ARRAYS
def test_a_pending_value_of_another_part_copies_nothing(array):
    n = np.random.default_rng(0).random((6, 9))
    x, u = array(n), array(n[:, 0])
    before = held(x)
    names = []
    for k in range(1, 9):
        s = 1.0 / (2.0 - x[:, k - 1])  # pending, and held by a name over the write
        x[:, k] = u * s
        names.append(s)
        n[:, k] = n[:, 0] * (1.0 / (2.0 - n[:, k - 1]))
    assert held(x) == before
    np.testing.assert_allclose(mb.to_numpy(x), n, rtol=1e-14)
    for k, s in enumerate(names):
        np.testing.assert_allclose(mb.to_numpy(s), 1.0 / (2.0 - n[:, k]), rtol=1e-14)


@ARRAYS
def test_a_pending_value_of_the_part_written_keeps_what_it_read(array):
    n = np.arange(12.0).reshape(3, 4)
    x = array(n)
    whole, row, overlapping, apart = x + 1, x[1] * 2, x[:2, 1:3] * 3, x[2] * 4
    x[1] = 0
    np.testing.assert_array_equal(mb.to_numpy(whole), n + 1)
    np.testing.assert_array_equal(mb.to_numpy(row), n[1] * 2)
    np.testing.assert_array_equal(mb.to_numpy(overlapping), n[:2, 1:3] * 3)
    np.testing.assert_array_equal(mb.to_numpy(apart), n[2] * 4)
    np.testing.assert_array_equal(mb.to_numpy(x), [n[0], np.zeros(4), n[2]])


@ARRAYS
def test_a_gather_is_no_part_whose_place_is_known(array):
    n = np.arange(6.0)
    x = array(n)
    picked = x[:3][[0, 2]] * 1
    x[2:4] = -1
    np.testing.assert_array_equal(mb.to_numpy(picked), [0.0, 2.0])


@ARRAYS
def test_many_parts_are_let_go(array):
    x = array(np.zeros(8))
    mb.materialize(x)
    for _ in range(500):
        mb.materialize(x[1:5] + x[2:6])
    assert len(x._node.parts or ()) <= 40
    assert x._node.held_parts() == []


@ARRAYS
def test_a_recurrence_does_not_grow(array):
    """`y = a - b * y` reads two arrays and the last value, however many steps came before."""
    rng = np.random.default_rng(1)
    a, b, out = rng.random((40, 7)), rng.random((40, 7)), np.zeros((40, 7))
    A, B, R = array(a), array(b), mb.adapt(array, mb.HostArray(out))
    with mb.settings.changed(tree_limit=10_000), mb.count() as c:
        y, n = A[0] * 1, a[0]
        for k in range(1, 40):
            y, n = A[k] - B[k] * y, a[k] - b[k] * n
            R[k] = y
            out[k] = n
        mb.materialize(R)
    np.testing.assert_allclose(mb.to_numpy(R), out, rtol=1e-12)
    # (On cards a step may be computed once more, by the next one, before it is stored.)
    assert c.bytes_read <= 40 * 7 * 7 * 8


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i2"])
@pytest.mark.parametrize("shape", [(7,), (300,), (30, 40), (8, 3, 3, 2, 16), (1, 5, 1)])
def test_reductions_of_few_elements_are_numpys_own(shape, dtype):
    n = (np.random.default_rng(2).standard_normal(shape) * 9).astype(dtype)
    x = mb.HostArray(n)
    for k in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), k):
            for tree, expected in ((x, n), (x * 2 + x, n * 2 + n)):
                total = mb.sum(tree, axis=axes)
                np.testing.assert_array_equal(mb.to_numpy(total), np.sum(expected, axis=axes))
            with mb.count():
                counted = mb.materialize(mb.sum(x, axis=axes))
            np.testing.assert_array_equal(mb.to_numpy(counted), np.sum(n, axis=axes))


@pytest.mark.parametrize("shape", [(70, 5), (4161, 3), (9, 100, 40, 3), (64, 7), (65, 7), (30, 40, 50)])
def test_columns_add_up_the_same_interpreted_and_compiled(shape):
    n = np.random.default_rng(3).standard_normal(shape)
    x = mb.HostArray(n)
    for axes in itertools.combinations(range(len(shape)), len(shape) - 1):
        with mb.settings.changed(small_size=0, compiler="off"):
            cold = mb.to_numpy(mb.sum(x * 2 + 1, axis=axes))
        with mb.settings.changed(small_size=0, compiler="inline", compile_size=1, compile_after=1):
            hot = mb.to_numpy(mb.sum(x * 2 + 1, axis=axes))
        np.testing.assert_array_equal(cold, hot)
        np.testing.assert_allclose(cold, (n * 2 + 1).sum(axis=axes), rtol=1e-9, atol=1e-9)


def test_numpys_numbers_are_operands_like_pythons():
    x = mb.HostArray(np.arange(3, dtype="f4"))
    for number in (np.float32(0.5), np.float64(0.5), np.int16(3), np.complex64(1j), np.bool_(True)):
        for f in (
            lambda a, b: a * b,
            lambda a, b: b - a if b.dtype != bool else b + a,
            lambda a, b: a < b.real,
        ):
            result, expected = f(x, number), f(mb.to_numpy(x), number)
            assert isinstance(result, mb.HostArray)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(mb.to_numpy(result), expected)


@pytest.mark.parametrize("n", [5, 5000])
def test_masks_written_and_read_on_small_parts(n):
    data = np.random.default_rng(4).standard_normal(n)
    x, old = mb.HostArray(data), data.copy()
    pending = x * 1 + 1
    x[x > 0] = x[x > 0] ** 0.5
    data[data > 0] = data[data > 0] ** 0.5
    index = np.arange(0, n, 2)
    x[mb.HostArray(index)] = x[index][::-1]
    data[index] = data[index][::-1]
    np.testing.assert_array_equal(mb.to_numpy(x), data)
    np.testing.assert_array_equal(mb.to_numpy(pending), old + 1)
    with pytest.raises(ValueError):
        x[x > 0] = np.zeros(n + 1)
    with pytest.raises(IndexError, match="out of bounds"):
        x[[n]] = 1.0
    np.testing.assert_array_equal(mb.to_numpy(x), data)


def test_values_of_other_shapes_and_dtypes_in_small_parts():
    n = np.arange(12.0).reshape(3, 4)
    x = mb.HostArray(n)
    row, column, whole = np.arange(4), np.ones((3, 1)), np.full((3, 3), 7, "i4")
    for target, make in ((x, mb.HostArray), (n, np.asarray)):
        target[1] = make(row)  # (integers, to floats)
        target[:, 1:3] = make(column)
        target[:, 1:] = make(whole).T
        target[..., 0] = 3
        target[np.int64(2)] = 0.5
        target[...] = target[:, ::-1] * 2
    np.testing.assert_array_equal(mb.to_numpy(x), n)
    with pytest.raises(ValueError, match="broadcast"):
        x[1:] = mb.HostArray([1.0, 2.0])
    with pytest.raises(OverflowError):
        x[0] = 10**400
    y = mb.HostArray([1.0, 2.0]) + 1
    y.real[...] = 5.0
    assert y.tolist() == [5.0, 5.0]


@pytest.mark.usefixtures("trees")
def test_parts_of_pending_arrays():
    n = np.arange(12.0).reshape(3, 4)
    y = mb.HostArray(n) * 2
    part = y[1:, None, 2]
    assert not y.evaluated and part.shape == (2, 1)
    np.testing.assert_array_equal(mb.to_numpy(part), n[1:, None, 2] * 2)
    with pytest.raises(IndexError):
        (mb.HostArray(n) * 2)[:, 9]


@pytest.mark.parametrize("n", [5000, 16_385, 70_000, 140_000])
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max"])
def test_all_elements_in_memory_are_reduced_as_those_of_a_tree(name, n):
    x = mb.HostArray(np.random.default_rng(5).standard_normal(n))
    f = getattr(mb, name)
    with mb.count():
        counted = mb.materialize(f(x))
    assert f(x).item() == counted.item() == f(x + 0).item()


def test_masks_and_places_on_what_others_read():
    n = np.arange(6.0)
    x = mb.HostArray(n)
    pending, i = x[1:] * 2, mb.HostArray([4, 0])
    x[x > 2] = 0.0
    x[i] = mb.HostArray([8.0, 9.0])
    np.testing.assert_array_equal(mb.to_numpy(pending), n[1:] * 2)
    assert x.tolist() == [9.0, 1.0, 2.0, 0.0, 8.0, 0.0] and x[i].tolist() == [8.0, 9.0]
    j = mb.HostArray([2, 0, 1])
    j[j] = j
    assert j.tolist() == [0, 1, 2]


def test_small_parts_joined_and_multiplied():
    n = np.arange(12.0).reshape(3, 4)
    x = mb.HostArray(n)
    for f in (
        lambda xp, a: xp.concatenate([a[:, -1:], a * 2, a[:, :1]], axis=1),
        lambda xp, a: xp.concatenate((a, a[:1] > 3), axis=None),
        lambda xp, a: xp.hstack((a[0], a[:, 1])),
        lambda xp, a: xp.stack([a[0], a[1] + 1], axis=-1),
        lambda xp, a: a.T @ a[:, 0],
        lambda xp, a: a[:, 1:] @ a[:, :3].T,
        lambda xp, a: a[0] @ a[1],
    ):
        made, expected = f(mb, x), f(np, n)
        assert type(made).__name__.startswith("HostArray") and made.dtype == expected.dtype
        np.testing.assert_array_equal(mb.to_numpy(made), expected)
    with pytest.raises(ValueError, match="must match exactly"):
        mb.concatenate([x, x[:, :2]], axis=0)
