"""Small statements that need no tree: the values, types and refusals of the general way."""

import warnings

import numpy as np
import pytest
from compare import assert_closed, assert_same, contents
from kinds import LEAVES, wrapped

import mirabelle as mb

KINDS = [
    LEAVES["host"],
    LEAVES["host_pending"],
    LEAVES["host_shared"],
    LEAVES["host_fortran"],
    *[wrapped(LEAVES["host"], layer) for layer in ("transpose", "window", "steps", "reversed")],
]


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4), (8192,), (8193,), (300, 301), (1100, 1000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_norms_are_numpys(kind, dtype, shape):
    x = data(*shape, dtype=dtype)
    found = mb.norm(kind.make(x))
    rtol = 1e-13 if dtype == np.float64 else 1e-5
    assert_same(found, np.asarray(np.linalg.norm(x.astype(np.float64).ravel())).astype(dtype), rtol=rtol)
    assert_closed(found, kind)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_number_of_threads_does_not_change_the_result(count):
    x = mb.HostArray(data(1 << 20))
    with mb.settings.changed(num_threads=count):
        found = contents(mb.norm(x))
    with mb.settings.changed(num_threads=1):
        assert found == contents(mb.norm(x))


def test_nothing_is_said_of_infinities():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = mb.HostArray(np.full(1 << 20, 1e300))
        assert contents(mb.norm(x)) == np.inf and contents(mb.norm(x[:5])) == np.inf
        A = mb.HostArray(np.full((3, 3), 1e300))
        assert np.isinf(contents(A @ A)).all()


def test_a_later_write_does_not_change_what_was_said():
    x = mb.HostArray([3.0, 4.0])
    n = mb.norm(x)
    A, b = mb.HostArray(np.eye(2)), mb.HostArray([1.0, 2.0])
    w = A @ b
    x[...] = 0
    b[...] = 0
    assert_same(n, 5.0)
    assert_same(w, np.array([1.0, 2.0]))
    w += 1
    assert_same(A @ w, np.array([2.0, 3.0]))


@pytest.mark.parametrize("name", ["square", "sum", "sqrt"])
def test_what_a_norm_is_made_of_may_be_overridden(name):
    x = mb.HostArray([3.0, 4.0])
    verb = getattr(mb, name)
    with mb.override(verb, (mb.HostArray,), lambda x, **options: verb.previous(x, **options) * 0):
        assert_same(mb.norm(x), 0.0)
    assert_same(mb.norm(x), 5.0)


def test_a_type_of_ones_own_goes_the_same_way():
    class Mine(mb.HostArray):
        """A leaf of its own."""

        home = mb.HostArray.home

    x = Mine([3.0, 4.0])
    assert type(mb.norm(x)) is Mine[np.float64, 0]
    assert type(Mine(np.eye(2)) @ x) is Mine[np.float64, 1]
    with mb.count() as c:
        mb.materialize(mb.norm(x))
    assert c.launches > 0


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((3, 4), (4, 2)), ((1, 1), (1,)), ((0, 3), (3,)), ((3, 0), (0,))]
)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_products_are_numpys(kind, shapes):
    a, b = data(*shapes[0]), data(*shapes[1], seed=1)
    assert_same(kind.make(a) @ kind.make(b), a @ b, rtol=1e-13, atol=1e-15)
    assert_closed(kind.make(a) @ kind.make(b), kind)


def test_what_does_not_fit_is_refused_as_before():
    with pytest.raises(ValueError, match="do not fit"):
        mb.HostArray(data(2, 3)) @ mb.HostArray(data(2))
    assert contents(mb.norm(mb.HostArray(np.zeros(0)))) == 0


def test_a_buffer_takes_a_result_over():
    A, b, w = mb.HostArray(np.eye(3)), mb.HostArray([1.0, 2.0, 3.0]), mb.zeros(3)
    y = w + 1
    made = A @ b
    w[...] = made
    w += 1
    assert_same(made, np.array([1.0, 2.0, 3.0]))  # they part at the next write
    assert_same(w, np.array([2.0, 3.0, 4.0]))
    assert_same(y, np.ones(3))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u4", "i8", "f2", "f4", "f8", "c8"])
def test_sums_of_few_are_of_the_dtype_that_is_wanted(dtype):
    """NumPy adds small integers up in larger ones, where nobody says otherwise."""
    x = np.asarray(np.random.default_rng(3).integers(0, 4, (4, 5)), dtype)
    with mb.settings.changed(immediate_size=0):
        m = mb.HostArray(x)
        for subscripts in ("ij,ij->i", "ij,ij->", "ij->j"):
            operands = [m] * (subscripts.count(",") + 1)
            found, expected = mb.einsum(subscripts, *operands), np.einsum(subscripts, *[x] * len(operands))
            assert found.dtype == expected.dtype == mb.to_numpy(found).dtype
            np.testing.assert_allclose(mb.to_numpy(found), expected, rtol=1e-2 if dtype == "f2" else 1e-5)
        for name in ("sum", "prod", "max", "any"):
            kept, tree = getattr(mb, name)(m, axis=0), getattr(mb, name)(m * m, axis=1)
            for found, expected in (
                (kept, getattr(np, name)(x, axis=0)),
                (tree, getattr(np, name)(x * x, axis=1)),
            ):
                assert found.dtype == mb.to_numpy(found).dtype == expected.dtype
