"""Sums of few doubles, which are added up in C: NumPy's to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324])


@pytest.mark.parametrize("seed", range(200))
def test_they_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        shape = tuple(int(k) for k in rng.choice([1, 2, 3, 7, 8, 9, 17, 64], size=rng.integers(1, 4)))
        if rng.integers(3) == 0:
            shape = (int(rng.integers(1, 16385)),)
        n = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 8, shape)
        if rng.integers(3) == 0:
            n = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), n)
        if rng.integers(6) == 0:
            n = np.full(shape, -0.0)
        n = [n, np.asfortranarray(n), n[::-1], n[..., ::2]][rng.integers(4)]
        x = mb.HostArray(n)
        keepdims = bool(rng.integers(2))
        axis = [None, tuple(range(n.ndim)), -1][rng.integers(3)]
        if rng.integers(4) == 0 and not n.flags.fnc:
            with np.errstate(all="ignore"):
                x, n = x * 2, n * 2
        # (HostArray keeps C's and Fortran's order, and puts all others in C's.)
        n = n if n.flags.f_contiguous else np.ascontiguousarray(n)
        with np.errstate(all="ignore"):
            found = mb.to_numpy(mb.sum(x, axis=axis, keepdims=keepdims))
            wanted = np.asarray(np.sum(n, axis=axis, keepdims=keepdims))
        assert found.shape == wanted.shape
        # (Which NaN it is, processors may say.)
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert (
            np.where(np.isnan(found), 1.0, found).tobytes() == np.where(np.isnan(wanted), 1.0, wanted).tobytes()
        )
