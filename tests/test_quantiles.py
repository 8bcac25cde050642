"""Medians and quantiles, composed once: NumPy's results on all places, for dual numbers and in programs."""

import itertools

import numpy as np
import pytest

import mirabelle as mb
from tests.compare import assert_same
from tests.test_composed import PLACES, both
from tests.threadranks import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
]  # fmt: skip
SHARES = 0.3, 1, np.array([0, 0.25, 0.5, 0.71, 1]), np.float32(0.4), np.array([[0.5], [0.1]])


def sample(shape, dtype, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, shape) / 2
    return (x + 1j * rng.integers(-9, 9, shape) if dtype == "c16" else x).astype(dtype)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method, place):
    there = PLACES[place]
    for dtype in ("f8", "f4", "i4", "f2", "?") if method in ("linear", "lower") else ("f8", "f4"):
        x = sample((6, 5, 2), dtype)
        for q, axis in zip((*SHARES, *SHARES[:1]), itertools.cycle((None, 0, (0, 2)))):
            both(lambda xp, to, x=x, q=q, a=axis: xp.quantile(to(x), q, axis=a, method=method), there)
        both(lambda xp, to, x=x: xp.percentile(to(x), 40, axis=1, keepdims=True, method=method), there)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_quantiles_of_what_is_not_missing(method, place):
    x = np.random.default_rng(2).normal(size=(5, 6))
    x[0, 1] = x[2, 3] = x[2, 4] = np.nan
    x[4] = np.nan
    for dtype, axis in (("f8", None), ("f4", 0), ("f8", 1)):
        for name, q in (("nanquantile", 0.4), ("quantile", 0.4), ("nanpercentile", np.array([10.0, 50]))):
            both(
                lambda xp, to, n=name, q=q, a=axis, d=dtype: getattr(xp, n)(
                    to(x.astype(d)), q, axis=a, method=method
                ),
                PLACES[place],
            )


@pytest.mark.parametrize("place", PLACES)
def test_quantiles_by_weights(place):
    x, w = sample((6, 4), "f8"), np.random.default_rng(4).integers(0, 4, (6, 4)).astype(float)
    w[0] += 1
    for weights, axis, method, q in (
        (w, 0, "inverted_cdf", 0.5),
        (w[:, 0], 0, "inverted_cdf", np.array([0, 0.2, 1])),
        (w, None, "inverted_cdf", 0.3),
        (-w, 0, "inverted_cdf", 0.5),
        (w * 0, 0, "inverted_cdf", 0.5),
        (w, 0, "linear", 0.5),
        (w[0, :2], 0, "inverted_cdf", 0.5),
    ):
        both(
            lambda xp, to, w=weights, a=axis, m=method, q=q: xp.quantile(
                to(x), q, axis=a, method=m, weights=to(w)
            ),
            PLACES[place],
        )


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_share_or_method(place):
    x = PLACES[place](sample(7, "f8"))
    for f in (
        lambda: mb.quantile(x, 1.5),
        lambda: mb.percentile(x, [50, -1]),
        lambda: mb.nanquantile(x, np.nan),
        lambda: mb.quantile(x, 0.5, method="cubic"),
    ):
        with pytest.raises(ValueError, match=r"range|method"):
            f()
    with pytest.raises(TypeError):
        mb.quantile(PLACES[place](sample(7, "c16")), 0.5)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "?", "c16"])
def test_medians(dtype, place):
    for shape in ((1, 6), (4, 5, 3), (7,), (0,), (3, 0)):
        x = sample(shape, dtype)
        missing = x.copy()
        if dtype[0] == "f" and x.size:  # (NumPy's complex NaN have other imaginary parts)
            missing[..., -1] = np.nan
            missing.flat[0] = np.inf
        for v, axis, keep in itertools.product((x, missing), (None, 0, -1), (False, True)):
            for name in ("median", "nanmedian"):
                if name == "nanmedian" and (dtype == "c16" or not x.size):
                    continue  # (of nothing NumPy's says other things)
                both(
                    lambda xp, to, n=name, v=v, a=axis, k=keep: getattr(xp, n)(to(v), axis=a, keepdims=k),
                    PLACES[place],
                )


def test_over_processes():
    x = np.random.default_rng(5).normal(size=(9, 4))
    x[2, 1] = np.nan

    def program(comm):
        a = mb.DArray[mb.HostArray](x, comm=comm)
        found = [mb.nanmedian(a, axis=k) for k in (None, 0, 1)]
        found += [mb.median(a), mb.quantile(a, [0.2, 0.9], axis=0), mb.nanpercentile(a, 30, axis=1)]
        return [mb.to_numpy(f) for f in found]

    expected = [np.nanmedian(x, axis=k) for k in (None, 0, 1)]
    expected += [np.median(x), np.quantile(x, [0.2, 0.9], axis=0), np.nanpercentile(x, 30, axis=1)]
    for found in on_ranks(3, program):
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(f, e)


@pytest.mark.parametrize("place", ["host", "cuda"])
def test_in_programs(place):
    x, q = PLACES[place](sample((6, 5), "f8")), PLACES[place](np.array([0.25, 0.8]))
    for f in (
        lambda x, q: mb.quantile(x, 0.3, axis=0),
        lambda x, q: mb.quantile(x, q, axis=1),
        lambda x, q: mb.nanmedian(x * 2, axis=0) + mb.median(x, axis=0),
    ):
        assert_same(mb.compile(f)(x, q), mb.to_numpy(f(x, q)))


@pytest.mark.parametrize("place", ["host", "cuda"])
def test_values_of_dual_numbers_are_the_same(place):
    there, w = PLACES[place], np.random.default_rng(9).random((6, 5))
    x = there(np.random.default_rng(8).normal(size=(6, 5)))
    for f in (
        lambda x: mb.sum(mb.median(x, axis=0)),
        lambda x: mb.quantile(x, 0.3),
        lambda x: mb.sum(mb.nanquantile(x, [0.1, 0.77], axis=1, method="weibull")),
        lambda x: mb.sum(mb.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=there(w))),
    ):
        value, slope = mb.autodiff.value_and_gradient(f, x)
        assert_same(value, mb.to_numpy(f(x)), rtol=1e-14)
        step = mb.to_numpy(f(x + 1e-6 * slope)) - mb.to_numpy(f(x - 1e-6 * slope))
        np.testing.assert_allclose(step / 2e-6, np.sum(mb.to_numpy(slope) ** 2), rtol=1e-5)
