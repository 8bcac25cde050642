"""Masks, writes through them, and histograms on a card: by kernels of our own."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.gpu import masks
from mirabelle.dispatch import verbs

RNG = np.random.default_rng(11)


def host(x):
    return np.asarray(mb.adapt(mb.HostArray, x))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(masks, "SMALL", 1 << 20)
    monkeypatch.setattr(masks, "BLOCKS", 3)


@pytest.mark.parametrize("n", [1, 31, 32, 257, 2049])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_places_of_a_mask(n, share, small_blocks):
    mask = RNG.random(n) < share
    (places,) = masks.nonzero(verbs.leaf_of(mb.CuArray(mask)).view)
    np.testing.assert_array_equal(mb.CuArray._download(places), np.nonzero(mask)[0])


@pytest.mark.parametrize("shape", [(7,), (6, 7), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16"])
def test_a_mask_is_read_and_written(shape, dtype):
    x = (RNG.random(shape) * 10 - 5).astype(dtype)
    mask = RNG.random(shape) < 0.5
    a, m = mb.CuArray(x.copy()), mb.CuArray(mask)
    for _ in range(2):
        a[a != 1] = a[a != 1] + 1
        x[x != 1] = x[x != 1] + 1
        a[m], x[mask] = a[m][::-1], x[mask][::-1]
        a.T[m.T], x.T[mask.T] = a.T[m.T][::-1], x.T[mask.T][::-1]
        np.testing.assert_array_equal(host(a), x)
    a[m] = 3
    x[mask] = 3
    np.testing.assert_array_equal(host(a), x)


def test_a_question_is_asked_once():
    x = mb.CuArray(np.arange(20.0).reshape(4, 5))
    mb.materialize(x)
    with mb.count() as counted:
        x[x > 7] = x[x > 7] * 2
    assert counted.library_calls == 2  # where the mask holds, and the write
    assert counted.launches <= 5
    assert host(x[x > 7]).min() == 16  # (the contents are others)


def test_what_is_picked_from_positions_needs_no_look():
    where = mb.arange(10, device=mb.CuArray)
    picked = where[mb.CuArray(np.arange(10) % 2 == 0)]
    y = mb.CuArray(np.zeros(10))
    with mb.count() as counted:
        y[picked] = 1.5
        y[picked] = mb.CuArray(np.arange(5.0))
    assert counted.scalar_reads == 0
    assert counted.library_calls == 2
    np.testing.assert_array_equal(host(y)[::2], np.arange(5.0))


def test_repeated_places_keep_the_last_value():
    where = mb.arange(10, device=mb.CuArray)
    picked = where[mb.CuArray(np.array([1, 2, 2, 3]))]
    y = mb.CuArray(np.zeros(10))
    y[picked] = mb.CuArray([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(host(y)[1:4], [1.0, 3.0, 4.0])


def test_an_index_that_changed_is_checked_again():
    y = mb.CuArray(np.zeros(10))
    index = mb.arange(10, device=mb.CuArray)
    y[index] = 1.0
    index[3:4] = 99
    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        y[index] = 2.0
    np.testing.assert_array_equal(host(y), 1.0)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("weight", [None, "f8", "f4", "i4"])
@pytest.mark.parametrize("span", [None, (1, 6), (0.3, 0.7)], ids=str)
def test_histograms_of_equal_bins(dtype, weight, span):
    x = (RNG.integers(0, 9, 300) * 0.7).astype(dtype)
    w = None if weight is None else (RNG.random(300) * 50).astype(weight)
    counts, edges = np.histogram(x, 23, range=span, weights=w)
    given = None if w is None else mb.CuArray(w)
    with mb.count() as counted:
        ours, placed = mb.histogram(mb.CuArray(x), 23, range=span, weights=given)
    assert counted.launches <= 4
    np.testing.assert_array_equal(host(placed), edges)
    assert ours.dtype == counts.dtype
    np.testing.assert_allclose(host(ours), counts, rtol=1e-5 if weight == "f4" else 1e-13)


def test_the_extremes_are_found_once():
    x = mb.CuArray(RNG.random(50))
    mb.histogram(x, 5)
    with mb.count() as counted:
        mb.materialize(mb.histogram(x, 5)[0])
    assert (counted.launches, counted.transfers) == (2, 1)
    x[:1] = 9.0
    assert float(host(mb.histogram(x, 5)[1])[-1]) == 9.0
