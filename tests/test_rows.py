"""Reductions of rows, which kernels do themselves: NumPy's results to the last bit."""

import numpy as np
import pytest

import mirabelle as mb

LENGTHS = (*range(1, 35), 63, 64, 65, 100, 127, 128, 129, 136, 200, 256, 1000, 1024)


@pytest.fixture(autouse=True)
def compiled():
    with mb.settings.changed(compiler="inline", small_size=0, compile_after=1):
        yield


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_rows_are_reduced_as_numpy_does(name, dtype):
    rng = np.random.default_rng(5)
    ours, numpys = getattr(mb, name), getattr(np, name)
    for n in LENGTHS:
        a = rng.standard_normal((9, n)).astype(dtype)
        a[1, n // 2] = np.nan
        a[2, 0], a[3, -1] = np.inf, -np.inf
        a[4] = -np.inf
        a[5] = -0.0
        a[6, 0], a[6, -1] = np.nan, np.inf
        a[7] = np.arange(n)
        with np.errstate(invalid="ignore"):
            expected = numpys(a, axis=-1)
            of_a_tree = numpys(a * a - dtype(1), axis=-1)
        x = mb.HostArray(a)
        np.testing.assert_array_equal(mb.to_numpy(ours(x, axis=-1)), expected, f"{n}")
        np.testing.assert_array_equal(mb.to_numpy(ours(x * x - 1.0, axis=-1)), of_a_tree, f"{n}")


def test_rows_of_any_layout():
    a = np.random.default_rng(6).standard_normal((4, 5, 40))
    x = mb.HostArray(a)
    for part in (np.s_[:, :, 3:37], np.s_[:, :, ::3], np.s_[:, :, ::-1], np.s_[::2, 1:, 5:9]):
        # (NumPy's order of additions depends on how elements lie.)
        np.testing.assert_allclose(mb.to_numpy(mb.sum(x[part], axis=-1)), a[part].sum(-1), rtol=1e-13)
        np.testing.assert_array_equal(mb.to_numpy(mb.max(x[part], axis=2)), a[part].max(2))
        np.testing.assert_array_equal(mb.to_numpy(mb.min(-x[part], axis=(1, 2))), (-a[part]).min((1, 2)))


def _masks():
    """Truth values: of all lengths around the vectors and blocks in which a kernel counts, of any layout."""
    rng = np.random.default_rng(7)
    for n in (0, 1, 7, 63, 64, 65, 127, 1023, 1024, 1025, 5000):
        for often in (0.0, 0.5, 1.0):
            yield rng.random((3, n)) < often
    whole = rng.random((20, 30, 150)) < 0.4
    yield from (whole, whole[:, :, 1:], whole[::2, 1:, ::3], whole[:, ::-1, ::-1], whole.transpose(2, 0, 1))
    yield np.broadcast_to(whole[0, 0], (9, 150))
    yield np.broadcast_to(whole[0, :1], (30, 150)).T
    yield rng.integers(0, 256, (4, 3000)).astype(np.uint8).view(bool)[:, 1:]  # (whatever byte is not 0 holds)


def test_truth_values_are_counted_as_numpy_does():
    for a in _masks():
        x = mb.HostArray(a)
        b = a.view(np.uint8) != 0
        for axis in (None, *range(a.ndim), (0, a.ndim - 1)):
            where = f"{a.shape} {a.strides} {axis}"
            expected = np.asarray(np.count_nonzero(b, axis=axis))
            for found in (mb.count_nonzero(x, axis=axis), mb.sum(x, axis=axis)):
                assert found.dtype == np.int64
                np.testing.assert_array_equal(mb.to_numpy(found), expected, where)
            np.testing.assert_array_equal(mb.to_numpy(mb.sum(~x, axis=axis)), np.sum(~b, axis=axis), where)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f4", "f8", "c8", "c16"])
def test_what_is_not_zero_is_counted_in_all_dtypes(dtype):
    a = (np.random.default_rng(8).integers(-1, 2, (5, 2000)) * (2 if dtype[0] != "u" else 1)).astype(dtype)
    if a.dtype.kind in "fc":
        a[0, ::3], a[1, ::5], a[2, 1::7] = np.nan, -0.0, np.inf
    x = mb.HostArray(a)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(
            mb.to_numpy(mb.count_nonzero(x, axis=axis)), np.count_nonzero(a, axis=axis)
        )
    # Beside other results of the same tree, and where the truth values themselves are wanted.
    held = x != 1
    count, which, product = mb.sum(held), mb.any(held), mb.sum(mb.where(held, x, 0))
    assert int(count) == np.sum(a != 1) and bool(which) == np.any(a != 1)
    if a.dtype.kind in "iu":
        assert int(product) == np.sum(np.where(a != 1, a, 0))
    np.testing.assert_array_equal(mb.to_numpy(held), a != 1)
