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


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("f", [np.sum, np.max, np.min])
def test_those_along_some_axes_are_numpys(seed: int, f) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        shape = tuple(int(k) for k in rng.choice([1, 2, 3, 4, 5, 7, 16], size=rng.integers(2, 6)))
        dtype = rng.choice(["f4", "f8", "i8", "i4", "u1", "u8"])
        n = rng.standard_normal(tuple(k + 2 for k in shape)) * 10.0 ** rng.integers(-4, 4)
        if dtype[0] == "f":
            n = np.where(rng.random(n.shape) < 0.2, rng.choice(SPECIAL[:5], n.shape), n)
        with np.errstate(all="ignore"):
            n = n.astype(dtype)
        x = mb.HostArray(n)
        if rng.integers(2):
            part = tuple(
                slice(int(b), int(b) + k) for b, k in zip(rng.integers(0, 3, n.ndim), shape, strict=True)
            )
            n, x = n[part], x[part]
        # (All axes but the last: along that one, NumPy sums in an order of its own.)
        axes = tuple(int(d) for d in rng.permutation(n.ndim - 1)[: rng.integers(1, n.ndim)])
        keepdims = bool(rng.integers(2))
        with np.errstate(all="ignore"):
            found, wanted = mb.to_numpy(f(x, axis=axes, keepdims=keepdims)), f(n, axis=axes, keepdims=keepdims)
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        nan = np.isnan(wanted)
        assert np.array_equal(np.isnan(found), nan)
        assert np.where(nan, 1, found).tobytes() == np.where(nan, 1, wanted).tobytes()
