"""The sign of a zero that is the larger or smaller of two: NumPy's, whether a kernel is compiled or not."""

import numpy as np
import pytest
from ways import running

import mirabelle as mb

ZEROS = np.array([0.0, -0.0, 1.0, -1.0, np.nan])


@pytest.mark.parametrize("way", ["cold", "hot"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("n", [5, 300, 5001])
def test_they_are_numpys_hot_and_cold(way, name, dtype, n):
    r = np.random.default_rng(n)
    a, b = (r.choice(ZEROS, n).astype(dtype) for _ in range(2))
    with running(way), mb.settings.changed(immediate_size=0):
        for x, y in ((a, b), (b, a), (a[::-1], b), (a, -a)):
            expected = getattr(np, name)(x, y)
            numbers = ~np.isnan(expected)
            for _ in range(3):
                found = mb.to_numpy(mb.materialize(getattr(mb, name)(mb.HostArray(x), mb.HostArray(y))))
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
