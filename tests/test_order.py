"""Everything that goes by the order of elements is NumPy's: NaN of either sign, zeros, the smallest numbers."""

import numpy as np
import pytest
from compare import assert_same, contents
from kinds import PLAIN

import mirabelle as mb

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
DTYPES = ["f2", "f4", "f8", "c8", "c16"]


def data(dtype, shape=(6, 10), seed=0):
    """Few different numbers, NaN of both signs, infinities, zeros of both signs, the smallest numbers."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    part = np.empty(0, dtype).real.dtype
    tiny = float(np.finfo(part).smallest_subnormal)
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.5, -2.0, 3.0], part)
    x = np.empty(shape, dtype)
    x.real = values[rng.integers(0, len(values), shape)]
    if dtype.kind == "c":
        x.imag = values[rng.integers(0, len(values), shape)]
    return x


def one_nan(x):
    """Complex numbers with NaN in a part, as one: which of them stands for all is not settled."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)


@plain
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sorts_put_nan_of_either_sign_last(kind, dtype, axis):
    for seed in range(3):
        n = data(dtype, seed=seed)
        x = kind.make(n)
        order = np.argsort(n, axis=axis, kind="stable")
        assert_same(mb.argsort(x, axis=axis, stable=True), order)
        assert_same(np.sort(x, axis=axis, kind="stable"), np.sort(n, axis=axis, kind="stable"), any_zero=True)
        assert_same(mb.sort(x, axis=axis), np.sort(n, axis=axis), any_zero=True)
        k = 7 if axis is None else 2
        picked = mb.partition(x, k, axis=axis)
        pick = (k,) if axis is None else (slice(None),) * axis + (k,)
        assert_same(mb.copy(picked[(*pick, ...)]), np.partition(n, k, axis=axis)[pick], any_zero=True)


@plain
@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_and_searches_know_nan_of_either_sign(kind, dtype):
    for seed in range(3):
        a, b = data(dtype, 40, seed), data(dtype, 9, seed + 10)
        x, y = kind.make(a), kind.make(b)
        for f, g in ((mb.unique, np.unique), (mb.unique_values, np.unique_values)):  # (NumPy's in no order)
            assert_same(one_nan(contents(f(x))), one_nan(np.sort(g(a))), any_zero=True)
        mine, numpys = (
            mb.unique(x, return_counts=True, return_inverse=True),
            np.unique(a, return_counts=True, return_inverse=True),
        )
        for f, g in zip(mine[1:], numpys[1:], strict=True):
            assert_same(f, g)
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
            found, expected = contents(getattr(mb, name)(x, y)), getattr(np, name)(a, b)
            assert_same(one_nan(found), one_nan(expected), any_zero=True)
        assert_same(mb.isin(x, y), np.isin(a, b))
        assert_same(mb.isin(x, x), ~np.isnan(a))
        ordered = np.sort(a)
        for side in ("left", "right"):
            assert_same(
                mb.searchsorted(kind.make(ordered), y, side=side), np.searchsorted(ordered, b, side=side)
            )
        order = mb.argsort(x, stable=True)
        assert_same(mb.searchsorted(x, y, sorter=order), np.searchsorted(ordered, b))
        if np.dtype(dtype).kind == "f":
            keys = [kind.make(data(dtype, 40, seed + 3)), x]
            assert_same(mb.lexsort(keys), np.lexsort([contents(k) for k in keys]))


@plain
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_medians_and_extremes_know_nan_of_either_sign(kind, dtype):
    for seed in range(3):
        n = data(dtype, (5, 9), seed)
        x = kind.make(n)
        for axis in (None, 0, 1):
            assert_same(
                one_nan(contents(mb.median(x, axis=axis))), one_nan(np.median(n, axis=axis)), any_zero=True
            )
            assert_same(mb.argmax(x, axis=axis), np.argmax(n, axis=axis))
            assert_same(mb.argmin(x, axis=axis), np.argmin(n, axis=axis))
            if n.dtype.kind == "f":
                wanted = np.nanmedian(n, axis=axis)
                assert_same(mb.nanmedian(x, axis=axis), wanted, any_zero=True)
                for q in (30, 55.5):
                    wanted = np.nanpercentile(n, q, axis=axis)
                    assert_same(mb.nanpercentile(x, q, axis=axis), wanted, rtol=2e-3, atol=1e-30, any_zero=True)
                    wanted = np.percentile(n, q, axis=axis)
                    assert_same(mb.percentile(x, q, axis=axis), wanted, rtol=2e-3, atol=1e-30, any_zero=True)
        assert_same(mb.count_nonzero(x), np.count_nonzero(n))
        for f, g in zip(mb.nonzero(x), np.nonzero(n), strict=True):
            assert_same(f, g)
        flat = n.reshape(-1)
        assert_same(mb.flatnonzero(x), np.flatnonzero(flat))


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_square_root_of_a_negative_number_is_sorted_last(kind, dtype, way):
    n = np.array([4.0, -1.0, 9.0, -4.0, 0.0], dtype)
    x = kind.make(n)
    with np.errstate(all="ignore"):
        roots = np.sqrt(n * 3)
    assert_same(mb.sort(mb.sqrt(x * 3)), np.sort(roots))
    assert_same(mb.argsort(mb.sqrt(x * 3), stable=True), np.argsort(roots, kind="stable"))
