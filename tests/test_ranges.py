"""Ranges in operations: kernels work out their numbers, from where elements lie in memory that is none."""

import tracemalloc

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.structured import base
from mirabelle.arraytypes.structured.fallback import DenseFallbackWarning
from mirabelle.backends.host import shortcuts

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
FAMILY = pytest.mark.parametrize("family", FAMILIES)
NUMBERS = {
    "integers": (lambda at: mb.Range(2, 47, 3, device=at), np.arange(2, 47, 3)),
    "reals": (lambda at: mb.Range(15, device=at) * 0.25, np.arange(15) * 0.25),
    "backwards": (lambda at: mb.Range(2, 47, 3, device=at)[::-1], np.arange(2, 47, 3)[::-1]),
    "short": (lambda at: mb.Range(15, device=at, dtype=np.int8) * 2, np.arange(15, dtype=np.int8) * 2),
}
X = np.random.default_rng(5).normal(size=(15, 15))
# What is done with evenly spaced numbers r, a vector x and a matrix a, in NumPy's words.
USES = {
    "unary": lambda m, r, x, a: m.sin(r),
    "compare": lambda m, r, x, a: r > 20,
    "with a vector": lambda m, r, x, a: x * r + 1,
    "from behind": lambda m, r, x, a: x[::-1] * r,
    "every other": lambda m, r, x, a: x[::2] - r[::2],
    "choose": lambda m, r, x, a: m.where(r % 2 == 0, r, x),
    "along columns": lambda m, r, x, a: a + r,
    "along rows": lambda m, r, x, a: a * r[:, None],
    "transposed": lambda m, r, x, a: a.T * r,
    "both": lambda m, r, x, a: m.sqrt(r[:, None] * 1.0 + r[None, ...]) + a.T,
    "transposed after": lambda m, r, x, a: (a + m.cos(r)).T,
    "sum": lambda m, r, x, a: m.sum(m.sin(r)),
    "sums of rows": lambda m, r, x, a: m.sum(a * r, axis=1),
    "sums of columns": lambda m, r, x, a: m.sum(a * r, axis=0),
    "sum of both": lambda m, r, x, a: m.sum(a.T * r[:, None] + r),
    "largest": lambda m, r, x, a: m.max(m.cos(r) * x),
    "variance": lambda m, r, x, a: m.var(r),
    "product": lambda m, r, x, a: (r + 0.0) @ x,
    "product from the right": lambda m, r, x, a: x @ (r + 0.0),
    "mask": lambda m, r, x, a: x[(r % 3) == 1],
    "masked": lambda m, r, x, a: r[x > 0],
    "named": lambda m, r, x, a: r[m.asarray([3, -1, 3])],
    "named twice": lambda m, r, x, a: r[m.asarray([[0, 1], [2, -2]])],
    "largest at": lambda m, r, x, a: m.argmax(r),
    "smallest at": lambda m, r, x, a: m.argmin(r, keepdims=True),
    "sorted": lambda m, r, x, a: m.sort(r),
    "order": lambda m, r, x, a: m.argsort(r),
}


def namespace(family):
    return mb.namespace(family)


@FAMILY
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("use", USES)
def test_what_is_done_with_ranges(use, numbers, family, monkeypatch):
    monkeypatch.setattr(base, "_MANY", 1)
    make, n = NUMBERS[numbers]
    expected = np.asarray(USES[use](np, n, X[0], X))
    rtol = 64 * np.finfo(expected.dtype).eps if expected.dtype.kind == "f" else 0.0
    for _ in range(2):
        found = USES[use](namespace(family), make(family), family(X[0]), family(X))
        assert mb.place(found) == family.home
        assert_same(found, expected, rtol=rtol, atol=rtol)


@FAMILY
def test_numbers_are_not_read(family, monkeypatch):
    monkeypatch.setattr(base, "_MANY", 1)
    monkeypatch.setattr(mb.settings, "brief_size", 0)  # (trees as long as those of many elements)
    x = family(X[0])
    with mb.count() as c:
        mb.materialize(mb.sin(mb.Range(15, device=family)) * x)
        mb.materialize(mb.sum(mb.Range(15, device=family)[:, None] * mb.Range(5, device=family)[::-1] + 0.5))
    assert (c.launches, c.temporaries, c.bytes_read, c.transfers) == (2, 0, X[0].nbytes, 0)


def test_long_ranges_take_no_memory():
    n = 4_000_000
    x = mb.HostArray(np.zeros(n))
    shortcuts._met.clear()  # (to write down a tree that is met often takes an array that nobody fills)
    tracemalloc.start()
    try:
        r = mb.Range(n)
        total = float(mb.sum(mb.sin(r * 1e-6)))
        assert abs(total * 1e-6 - (1 - np.cos(4.0))) < 1e-5
        x[...] = mb.sqrt(r) + r
        x[r[::-2]] = 1.0
        assert bool(mb.all(r[::-1] >= 0)) and int(mb.argmax(r)) == n - 1
        assert mb.norm(r + 0.0) > 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * n, peak  # (one array of its length is 8 n)
    assert float(mb.sum(x[1::2])) == n // 2


@FAMILY
def test_arrays_are_indexed_by_ranges_as_by_slices(family):
    x = family(X)
    numpys = [
        np.arange(3, 12, 4),
        np.arange(14, -1, -1),
        np.arange(-15, 0, 2),
        np.arange(5, 6),
        np.arange(-1, -5, -3),
    ]
    for n in numpys:
        step = int(n[1] - n[0]) if len(n) > 1 else 1
        r = mb.Range(int(n[0]), int(n[-1]) + (1 if step > 0 else -1), step, device=family)
        for ours, theirs in (
            ((r,), (n,)),
            ((slice(None), r), (slice(None), n)),
            ((..., r), (..., n)),
            ((r, None, slice(1, 3)), (n, None, slice(1, 3))),
            ((None, ..., r, slice(2, None)), (None, ..., n, slice(2, None))),
            ((0, r), (0, n)),
            ((r, r), (n, n)),
        ):
            got = x[ours]
            assert_same(got, X[theirs])
            y, z = family(X), X.copy()
            y[ours] = 7.0
            z[theirs] = 7.0
            assert_same(y, z)
        assert_same(x[r], X[n])
    at = family([2, 0, 1])
    named = mb.Range(3, device=family)[at]
    named[...] = 9
    assert_same(at, np.array([2, 0, 1]))
    # What is read is a copy, as NumPy's.
    got = x[mb.Range(3, device=family)]
    got[...] = 0
    assert_same(x, X)
    for wrong in (mb.Range(16, device=family), mb.Range(-16, 0, device=family)):
        with pytest.raises(IndexError, match="out of bounds"):
            x[wrong]
    assert_same(x[mb.Range(-2, 2, device=family)], X[np.arange(-2, 2)])


def test_numbers_that_rounding_makes_equal():
    for start, stop, step in ((1e16, 1e16 + 40, 0.5), (1e16, 1e16 + 40, 2.0), (5.0, -5.0, -0.5)):
        r = mb.Range(start, stop, step)
        n = mb.to_numpy(r)
        assert int(mb.argmax(r)) == np.argmax(n) and int(mb.argmin(r)) == np.argmin(n)
        assert_same(mb.argsort(r), np.argsort(n, kind="stable"))
        assert_same(mb.argsort(r, descending=True), np.argsort(-n, kind="stable"))
        assert_same(mb.sort(r, descending=True), np.sort(n)[::-1])
    still = mb.Range(4) * 0
    assert int(mb.argmax(still)) == 0 and mb.argsort(still).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="empty"):
        mb.argmax(mb.Range(0))
    for f in (mb.sort, mb.argsort, mb.argmax):
        with pytest.raises(IndexError):
            f(mb.Range(3), axis=1)


def test_what_has_no_rule_says_so():
    with pytest.warns(DenseFallbackWarning, match="Range"):
        mb.median(mb.Range(9))


@pytest.mark.parametrize("rows", [8, 50])
def test_sums_of_gathered_rows_beside_what_is_read_in_vectors(rows):
    """Several neighbours a thread: each reads its own element of the row that an index names."""
    r = np.random.default_rng(0)
    x, w, at = r.normal(size=(rows, 256)), r.normal(size=(64, 256)), r.integers(0, rows, 64)
    for family in (mb.HostArray, mb.CuArray):
        found = mb.sum(family(x)[family(at)] * family(w), axis=1)
        assert_same(found, (x[at] * w).sum(axis=1), rtol=1e-10)
