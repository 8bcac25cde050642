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
