"""Bounds of slices that are arrays are read where the part is made, and are what they are then."""

import numpy as np
import pytest

import mirabelle as mb


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
def test_a_part_keeps_the_bounds_it_was_made_with(array):
    x, n = array(np.arange(6.0)), array(np.array(2))
    with mb.allow_scalar():
        part, other = x[:n], array(np.arange(12.0).reshape(6, 2))[n:, :n]
        n[...] = 5
    assert np.array_equal(mb.to_numpy(part), [0, 1]) and other.shape == (4, 2)
    assert np.array_equal(mb.to_numpy(other * 2), np.arange(4.0, 12).reshape(4, 2) * 2)
