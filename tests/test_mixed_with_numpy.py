"""NumPy's arrays beside ours, indices that are numbers of ours, parts of parts: NumPy's values and aliasing."""

import itertools
import math
import operator
import warnings

import numpy as np
import pytest

import mirabelle as mb
from tests.test_scalars import assert_same, outcome

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt,
    operator.eq, operator.and_, operator.lshift, np.maximum, np.hypot, np.logical_or,
]  # fmt: skip
SHAPES = [(6,), (1,), (), (0,), (3, 6), (3, 1), (1, 6), (5,)]


@pytest.mark.parametrize("first", ["f8", "f4", "i4", "u1", "c16", "?"])
@pytest.mark.parametrize("second", ["f8", "f4", "i8", "c8", "?"])
def test_operations_beside_numpys_arrays(first, second):
    for f, (s, t) in itertools.product(BINARY, itertools.product(SHAPES, SHAPES[:6])):
        a = (np.arange(np.prod(s, dtype=int)) % 5 + 1).reshape(s).astype(first)
        b = (np.arange(np.prod(t, dtype=int)) % 3 + 1).reshape(t).astype(second)
        wanted = outcome(f, a, b)
        x, y = mb.HostArray(a), mb.HostArray(b)
        assert_same(outcome(f, x, b), wanted, (f, s, t))
        assert_same(outcome(f, a, y), wanted, (f, s, t))


LAYOUTS = {
    "plain": lambda u: u,
    "part": lambda u: u[1:-1],
    "backwards": lambda u: u[::-1],
    "turned": lambda u: u.T,
    "pending": lambda u: u * 2.0 + 1.0,
    "part of pending": lambda u: (u * 2.0)[2:],
    "columns": lambda u: u[:, 1:4],
    "row": lambda u: u[2],
}


@pytest.mark.parametrize("n", [8, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_beside_numpys_arrays(layout, n):
    a = np.random.default_rng(n).normal(size=(n, n))
    x, show = mb.HostArray(a), LAYOUTS[layout]
    for other in (
        show(a).copy(),
        np.asfortranarray(show(a)),
        show(a)[..., ::-1],
        np.float64(3.0),
        show(a).astype(">f8"),
    ):
        for f in (operator.add, operator.mul, np.subtract):
            np.testing.assert_array_equal(np.asarray(f(show(x), other)), f(show(a), other))
            np.testing.assert_array_equal(np.asarray(f(other, show(x))), f(other, show(a)))
        assert isinstance(other + show(x), mb.HostArray)


def kinds_of_numpys(n, tmp_path):
    """NumPy's array, and those that are more: of a file, of a class of the user's."""
    mapped = np.memmap(tmp_path / "n", n.dtype, "w+", shape=n.shape)
    mapped[...] = n
    return [n, mapped, n.view(type("Mine", (np.ndarray,), {})), n.view(np.matrix)]


@pytest.mark.parametrize("shapes", [((3, 2), (2, 3)), ((100, 60), (60, 2)), ((2, 2), (2, 2))])
@pytest.mark.parametrize("dtype", "fdDl")
def test_products_beside_what_numpys_arrays_are_subclassed_by(dtype, shapes, tmp_path):
    a, b = (np.arange(math.prod(s)).reshape(s).astype(dtype) for s in shapes)
    for many in (a, b):
        for n in kinds_of_numpys(many, tmp_path):
            other = b if many is a else a
            for x in (mb.HostArray(other), mb.HostArray(other.T.copy()).T, mb.HostArray(other) + 0):
                for product in (operator.matmul, mb.matmul, np.matmul, mb.dot, np.dot):
                    ours = product(*((n, x) if many is a else (x, n)))
                    assert isinstance(ours, mb.HostArray) and ours.dtype == a.dtype
                    assert np.allclose(mb.to_numpy(ours), a @ b), (type(n), product)
    x = mb.HostArray(b)
    x @= np.eye(b.shape[1], dtype=dtype).view(np.matrix)
    assert np.array_equal(mb.to_numpy(x), b)


def test_results_beside_numpys_arrays_are_values():
    memory, x = np.arange(6.0), mb.HostArray(np.ones(6))
    y = x + memory
    memory[:] = -1.0
    x[:] = 7.0
    np.testing.assert_array_equal(np.asarray(y), np.arange(6.0) + 1.0)
    memory[1:3] = x[1:3] * 2.0
    memory[4:] += x[4:]
    memory[0] = x[0]
    np.testing.assert_array_equal(memory, [7, 14, 14, -1, 6, 6])
    memory *= x
    np.testing.assert_array_equal(memory[:2], [49, 98])
    shown = np.asarray(x[2:4])
    x[2:4] = 0.0
    np.testing.assert_array_equal(shown, [7.0, 7.0])
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 1.0
    with pytest.raises(TypeError):
        x + np.array(["a"] * 6)
    with pytest.raises(ValueError, match="broadcast"):
        x + np.ones(4)


def test_operations_beside_numpys_arrays_are_overridden_and_counted():
    x, n = mb.HostArray(np.ones(4)), np.ones(4)
    with mb.count() as c:
        x + n
    assert c.launches == 1
    with mb.override(mb.add, (mb.HostArray, np.ndarray), lambda u, v: "mine"):
        assert x + n == "mine"
    np.testing.assert_array_equal(np.asarray(n + x), 2 * n)


INTEGERS = ["i1", "i4", "i8", "u1", "u8"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_that_are_elements(dtype):
    a = np.arange(60.0).reshape(10, 6)
    j = np.array([0, 2, 5, 3, 1, 9, 7], dtype)
    x, k = mb.HostArray(a), mb.HostArray(j)
    cases = [
        lambda u, i: u[i[1]],
        lambda u, i: u[i[5]],
        lambda u, i: u[i[1], i[2]],
        lambda u, i: u[i[1] : i[2]],
        lambda u, i: u[i[1] : i[5] : i[4], i[0]],
        lambda u, i: u[:, i[4] : i[2]],
        lambda u, i: u[i[3]][i[1]],
        lambda u, i: u[i[1] : i[2]][i[4]],
        lambda u, i: u[i[1] : i[2], i[4] :][i[0], i[1] - i[4]],
        lambda u, i: u[i[5] + i[5]],
        lambda u, i: u[..., i[4]],
        lambda u, i: u[None, i[1]],
        lambda u, i: u[np.int64(2), i[1]],
    ]
    for n, case in enumerate(cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = case(a, j)
            except IndexError:
                with pytest.raises(IndexError):
                    case(x, k)
                continue
        found = case(x, k)
        np.testing.assert_array_equal(np.asarray(found), wanted, str(n))
        assert np.shape(found) == np.shape(wanted)
    for u, i in ((a, j), (x, k)):
        u[i[1], i[2]] = -1.0
        u[i[1] : i[2], i[4]] = -2.0
        u[i[3]] = 5.0
        u[i[4], i[1] : i[2]] += 1.0
        u[i[0]][i[1]] = 9.0
    np.testing.assert_array_equal(np.asarray(x), a)


def test_parts_keep_the_numbers_they_were_made_with():
    x, i = mb.HostArray(np.arange(10.0)), mb.HostArray(3)
    part = x[i:]
    i[...] = 7
    np.testing.assert_array_equal(np.asarray(part), np.arange(3.0, 10.0))
    picked = x[i]
    x[7] = -1.0
    assert float(picked) == 7.0
    with pytest.raises((IndexError, TypeError)):
        x[mb.HostArray([1.5])[0]]


SLICES = [
    slice(None), slice(1, None), slice(None, None, -1), slice(-2, 0, -1), slice(2, 2), slice(None, None, 2),
    slice(-3, 100, 2), slice(5, 1, -2), 0, -1, 2,
]  # fmt: skip


@pytest.mark.parametrize("first", SLICES[:8])
def test_parts_of_parts(first):
    a = np.arange(42.0).reshape(7, 6)
    for second, third in itertools.product(SLICES, SLICES):
        x, n = mb.HostArray(a), a.copy()
        for index in (second, (second, third), (Ellipsis, second), (second, Ellipsis), (None, second), ()):
            found, wanted = outcome_of(x[first], index), outcome_of(n[first], index)
            if wanted is IndexError:
                assert found is IndexError, (first, index)
                continue
            np.testing.assert_array_equal(np.asarray(found), wanted, str((first, index)))
            if np.ndim(wanted):  # (it shows the same elements, and writes to them)
                found[...] = wanted[...] = wanted + 1.0
                np.testing.assert_array_equal(np.asarray(x), n, str((first, index)))


def outcome_of(u, index):
    try:
        return u[index]
    except IndexError:
        return IndexError


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
def test_elements_that_parts_of_index_arrays_name(dtype):
    a, j = np.arange(40.0).reshape(20, 2), np.array([3, 1, 19, 0, 7, 7, 2]).astype(dtype)
    x, k = mb.HostArray(a), mb.HostArray(j)
    for case in (
        lambda u, i: u[i[1:5]],
        lambda u, i: u[:, 0][i[1:5]],
        lambda u, i: u[2:][i[3:4]],
        lambda u, i: u[::-1, 1][i],
        lambda u, i: (u * 2.0)[i[::2]],
        lambda u, i: u[i[2:2]],
        lambda u, i: u[i.reshape(1, -1)[:, 1:3]],
    ):
        found, wanted = case(x, k), case(a, j)
        np.testing.assert_array_equal(np.asarray(found), wanted)
        found[...] = 0.0  # (it is a copy)
        np.testing.assert_array_equal(np.asarray(x), a)
    with pytest.raises(IndexError):
        x[:3][k[1:5]]


def test_functions_of_numpys_take_arguments_as_they_come():
    a = np.arange(12.0).reshape(3, 4)
    x = mb.HostArray(a)
    for case in (
        lambda u: np.flip(u),
        lambda u: np.flip(u, 1),
        lambda u: np.flip(m=u, axis=0),
        lambda u: np.sum(u, 0),
        lambda u: np.sum(u, axis=0, keepdims=True),
        lambda u: np.sum(a=u),
        lambda u: np.mean(u, axis=-1, dtype="f4"),
        lambda u: np.std(u, ddof=1),
        lambda u: np.reshape(u, (4, 3)),
        lambda u: np.reshape(u, shape=-1),
        lambda u: np.transpose(u, axes=(1, 0)),
        lambda u: np.repeat(u, 2, axis=1),
        lambda u: np.zeros_like(u, dtype="i4"),
        lambda u: np.triu(u, 1),
        lambda u: np.outer(u[0], u[1]),
        lambda u: np.linalg.norm(u, axis=1),
        lambda u: np.copy(u),
    ):
        for _ in range(2):  # (the first time it is found out)
            found = case(x)
            assert isinstance(found, mb.AbstractArray)
            np.testing.assert_allclose(np.asarray(found), case(a), rtol=1e-6)
            assert found.dtype == case(a).dtype
    with pytest.raises(TypeError):
        np.flip(x, nonsense=1)
