"""Products between task lists of a compiled program: what NumPy computes, on memory of their own."""

import gc
import weakref

import numpy as np
import pytest
from ways import running

import mirabelle as mb


@pytest.fixture(autouse=True)
def _hot():
    with running("hot"):
        yield


def data(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


FUNCTIONS = {
    "two results": lambda a, b, v: (a @ b, (a @ b) * 2 + 1),
    "a product last": lambda a, b, v: (a * 2, a @ b),
    "parts": lambda a, b, v: a[1:, ::2] @ b[::2, 3:] - 1,
    "turned": lambda a, b, v: (b.T * 3) @ a.T,
    "a chain": lambda a, b, v: ((a @ b) @ b.T) @ (a.T + 1),
    "vectors": lambda a, b, v: (a @ v, v @ b, v @ (v + 1)),
    "stacks": lambda a, b, v: (a.reshape(2, -1, 40) @ b) + v[0],
    "of results": lambda a, b, v: (a @ b + a @ b).T @ (a @ v + 1),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_among_kernels(name, dtype):
    f = FUNCTIONS[name]
    compiled = mb.compile(f)
    kept = []
    for seed in range(4):  # results of earlier calls stay what they are
        given = [
            data(60, 40, dtype=dtype, seed=seed),
            data(40, 50, dtype=dtype, seed=seed),
            data(40, dtype=dtype),
        ]
        found = compiled(*map(mb.HostArray, given))
        wanted = f(*given)
        kept.append((found, wanted) if type(found) is tuple else ((found,), (wanted,)))
    tolerance = 1e-4 if dtype == "f4" else 1e-12
    for found, wanted in kept:
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            assert np.allclose(mb.to_numpy(x), y, rtol=tolerance, atol=tolerance * 100)


def test_operands_that_may_not_be_written():
    a, b = data(60, 40), data(40, 50)
    a.flags.writeable = b.flags.writeable = False
    compiled = mb.compile(lambda a, b: (a[2:] @ b[:, 1:]) + 1)
    for _ in range(3):
        assert np.allclose(mb.to_numpy(compiled(mb.asarray(a), mb.asarray(b))), a[2:] @ b[:, 1:] + 1)


def test_arguments_that_are_written_beside_a_product():
    def step(x, a, b):
        y = a @ b
        x[...] = x + y[:, 0] * 2
        return y + 1

    compiled = mb.compile(step)
    a, b, x = data(60, 40), data(40, 50), data(60)
    A, B, X = map(mb.HostArray, (a, b, x))
    before = X * 1.0
    for k in range(1, 4):
        y = compiled(X, A, B)
        assert np.allclose(mb.to_numpy(X), x + 2 * k * (a @ b)[:, 0]) and np.allclose(mb.to_numpy(y), a @ b + 1)
    assert np.allclose(mb.to_numpy(before), x)


def test_a_program_that_is_gone_gives_its_memory_back():
    compiled = mb.compile(lambda a, b: mb.sum((a * 2) @ b, axis=0))
    given = mb.HostArray(data(60, 40)), mb.HostArray(data(40, 50))
    for _ in range(2):
        compiled(*given)
    runner = weakref.ref(compiled.program(*given).runner)
    gc.collect()
    gc.disable()
    try:
        compiled.programs.clear()
        compiled._last = None
        assert runner() is None
    finally:
        gc.enable()


def test_products_are_counted_as_before():
    compiled = mb.compile(lambda a, b: (a * 2) @ b + 1)
    A, B = mb.HostArray(data(60, 40)), mb.HostArray(data(40, 50))
    compiled(A, B)
    with mb.count() as c:
        mb.materialize(compiled(A, B))
    assert c.launches == 3


def test_errors_of_floating_point_are_silent():
    compiled = mb.compile(lambda a, b: (a @ b) / (a @ b - a @ b))
    a = np.full((40, 40), 1e200)
    assert np.isnan(mb.to_numpy(compiled(mb.HostArray(a), mb.HostArray(a)))).all()


def test_what_remains_of_least_squares_is_returned():
    """(How many numbers that are depends on the rank: a matrix of another one is an error that says so.)"""
    rng = np.random.default_rng(3)
    a, b = rng.random((6, 4)), rng.random((6, 2))
    compiled = mb.compile(lambda a, b: mb.linalg.lstsq(a, b)[1] * 2, whole=True)
    for _ in range(2):
        found = compiled(mb.HostArray(a), mb.HostArray(b))
        np.testing.assert_allclose(mb.to_numpy(found), 2 * np.linalg.lstsq(a, b)[1])
    with pytest.raises(mb.compiling.TraceError, match="depends on values"):
        compiled(mb.HostArray(np.ones((6, 4))), mb.HostArray(b))
