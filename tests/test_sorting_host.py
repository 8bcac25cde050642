"""Sorts of the host against NumPy's: dtypes, special values, axes, strides, lengths, threads, C and none."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.host import sorting

DTYPES = "?bhilBHILefdFD"
SHAPES = [
    (0,), (1,), (15,), (16,), (383,), (384,), (5000,), (3, 0), (0, 4), (7, 33), (2, 700), (3, 40, 5), (1, 1),
]  # fmt: skip


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "biu":
        low, high = (0, 2) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        x = rng.integers(
            low, high, shape, dtype=np.int64 if kind.kind != "u" else np.uint64, endpoint=kind != "?"
        )
        return np.where(rng.random(shape) < 0.5, x, x % 7).astype(kind)
    pool = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 6e-8, 65504.0])
    x = np.where(rng.random(shape) < 0.4, rng.choice(pool, shape), rng.normal(size=shape) * 100)
    if kind.kind == "c":
        both = np.empty(shape, complex)
        both.real, both.imag = x, np.where(rng.random(shape) < 0.4, rng.choice(pool, shape), 1.0)
        x = both
    return x.astype(kind)


def same(x: object, y: np.ndarray) -> None:
    found = mb.to_numpy(x)  # type: ignore[arg-type]
    assert found.dtype == y.dtype
    np.testing.assert_array_equal(found, y)


@pytest.fixture(params=[1, 2, 3])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> object:
    parts = request.param
    monkeypatch.setattr(sorting, "_workers", lambda size: parts if size else 1)
    monkeypatch.setattr(sorting, "_TOGETHER", 0)
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_stable_orders_are_numpys(dtype: str, how: object) -> None:
    for seed, shape in enumerate(SHAPES):
        x = numbers(dtype, shape, seed)
        views = [x, x.T, x[..., ::-2]] if x.size else [x]
        for v in views:
            y = mb.asarray(v)
            for axis in (None, *range(v.ndim), -1):
                same(mb.sort(y, axis=axis), np.sort(v, axis=axis, kind="stable" if dtype == "e" else None))
                same(mb.argsort(y, axis=axis), np.argsort(v, axis=axis, kind="stable"))
                order = mb.to_numpy(mb.argsort(y, axis=axis, stable=False))
                taken = np.take_along_axis(
                    v.ravel() if axis is None else v, order, axis=-1 if axis is None else axis
                )
                np.testing.assert_array_equal(taken, np.sort(v, axis=axis))


@pytest.mark.parametrize("shape", [(300_000,), (2, 200_000), (70_000, 4), (500, 600)])
@pytest.mark.parametrize("dtype", "fdiq")
def test_large_ones_on_threads(dtype: str, shape: tuple[int, ...]) -> None:
    x = numbers(dtype, shape)
    for axis in range(x.ndim):
        y = mb.HostArray(x)
        same(mb.sort(y, axis=axis), np.sort(x, axis=axis))
        same(mb.sort(y, axis=axis, descending=True), np.flip(np.sort(x, axis=axis), axis))
        same(mb.argsort(y, axis=axis), np.argsort(x, axis=axis, kind="stable"))
        same(y, x)


@pytest.mark.parametrize("n", [17, 100, 5000, 100_003])
def test_many_equal_elements_stay_as_they_come(n: int, how: object) -> None:
    for few in (1, 2, 300):
        x = np.random.default_rng(n).integers(0, few, n).astype(float)
        same(mb.argsort(mb.HostArray(x)), np.argsort(x, kind="stable"))
        found = mb.argsort(mb.HostArray(x), descending=True)
        same(found, np.argsort(-x, kind="stable"))


def drawn(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Numbers whose bits differ at all places, at few, or nowhere."""
    bits = np.uint64(1) << rng.integers(0, 64, n).astype("u8")
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0])
    makers = [
        lambda: rng.integers(0, 2**63, n, dtype="u8"),
        lambda: rng.integers(0, rng.integers(1, 50), n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
        lambda: np.full(n, rng.normal()),
        lambda: np.where(rng.random(n) < 0.01, rng.normal(size=n), 1.0),
        lambda: np.arange(n) * rng.choice([-1, 1]),
        lambda: 2.0 ** rng.integers(-1000, 1000, n) * rng.choice([-1.0, 1.0], n),
        lambda: rng.choice(special, n),
        lambda: bits,
    ]
    with np.errstate(all="ignore"):
        return makers[rng.integers(len(makers))]().astype(dtype)


@pytest.mark.parametrize("quick", [False, True])
def test_random_orders_are_those_in_which_elements_come(
    quick: bool, how: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "numpys_is_quick", lambda: quick)
    rng = np.random.default_rng(7)
    for _ in range(150):
        n = int(rng.choice([17, 24, 25, 383, 384, 385, 2047, 4096, int(10 ** rng.uniform(0, 4.5))]))
        x = drawn(rng, n, rng.choice(list("bBhHiIlLefd")))
        lines = x.reshape(1 + (n % 2 == 0), -1)
        same(mb.argsort(mb.HostArray(lines), kind="stable"), np.argsort(lines, kind="stable"))
        same(mb.argsort(mb.HostArray(x), kind="stable"), np.argsort(x, kind="stable"))
        same(mb.sort(mb.HostArray(x)), np.sort(x, kind="stable"))


def test_the_pieces_in_c_refuse_what_does_not_fit() -> None:
    x, out = np.zeros((3, 20)), np.zeros((3, 20), np.int64)
    records = np.zeros((60, 2), np.int64)
    for call in (
        lambda: sorting.in_c.argsort_ties(x, 2, out, 0, 4),
        lambda: sorting.in_c.argsort_ties(x.astype("f2"), 2, out, 0, 3),
        lambda: sorting.in_c.argsort_ties(x, 2, out[:2], 0, 3),
        lambda: sorting.in_c.argsort_ties(x, 2, out - 1, 0, 3),
        lambda: sorting.in_c.argsort_ties(x, 2, out + np.arange(20) * 2, 0, 3),
        lambda: sorting.in_c.argsort_part(x.ravel(), 2, records, records.copy(), 0, 60, out[:2]),
        lambda: sorting.in_c.argsort_part(x.ravel(), 2, records, records.copy(), 0, 60, out - 1),
        lambda: sorting.in_c.argsort_part(x.ravel(), 2, records, records.copy(), 0, 60, out + 60),
        lambda: sorting.in_c.argsort_lines(x, 2, out, 0, 4),
        lambda: sorting.in_c.argsort_lines(x, 2, out, 2, 1),
        lambda: sorting.in_c.argsort_lines(x, 3, out, 0, 3),
        lambda: sorting.in_c.argsort_lines(x, 2, out[:2], 0, 3),
        lambda: sorting.in_c.argsort_lines(x[:, ::2], 2, out, 0, 3),
        lambda: sorting.in_c.argsort_lines(x.astype("G"), 2, out, 0, 3),
        lambda: sorting.in_c.argsort_merged(np.zeros((20, 2), np.int64), out, 0, 10, 21, 0, 5),
        lambda: sorting.in_c.argsort_merged(
            np.zeros((20, 2), np.int64), np.zeros(20, np.int64), 0, 10, 20, 0, 21
        ),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("dtype", "?bhilBHILefd")
def test_every_bit_comes_back(dtype: str, quick: bool, how: object, monkeypatch: pytest.MonkeyPatch) -> None:
    # Zeros of both signs, NaNs of all bits: in any order among themselves, but each as often as it was there.
    monkeypatch.setattr(sorting, "numpys_is_quick", lambda: quick)
    kind = np.dtype(dtype)
    for n in (1000, 1001, 4096, 20_003):
        raw = np.random.default_rng(n).integers(0, 256, n * kind.itemsize, dtype=np.uint8)
        x = (raw % 2).view(dtype) if dtype == "?" else raw.view(dtype)
        with np.errstate(all="ignore"):
            found = mb.to_numpy(mb.sort(mb.HostArray(x)))
            same(mb.HostArray(found), np.sort(x))
        if quick:
            continue  # (NumPy's makes one NaN of all where it has vectors)
        unsigned = f"u{kind.itemsize}"
        np.testing.assert_array_equal(np.sort(found.view(unsigned)), np.sort(x.view(unsigned)))


def test_values_in_c_refuse_what_does_not_fit() -> None:
    x, other = np.zeros((3, 20)), np.zeros(60)
    frozen = np.zeros((3, 20))
    frozen.flags.writeable = False
    line, edge, ends = np.zeros(60), np.zeros(1), np.array([[0, 30], [30, 60]])
    for call in (
        lambda: sorting.in_c.sort_lines(x, 2, 0, 4),
        lambda: sorting.in_c.sort_lines(x, 3, 0, 3),
        lambda: sorting.in_c.sort_lines(frozen, 2, 0, 3),
        lambda: sorting.in_c.sort_lines(x[:, ::2], 2, 0, 3),
        lambda: sorting.in_c.sort_lines(x.astype("G"), 2, 0, 3),
        lambda: sorting.in_c.sort_lines([1.0], 2, 0, 1),
        lambda: sorting.in_c.sort_lines(x, 2, 0),
        lambda: sorting.in_c.sort_part(line, 2, other[1:], 0, 60),
        lambda: sorting.in_c.sort_part(line, 2, other.astype("f4"), 0, 60),
        lambda: sorting.in_c.sort_part(line, 2, other, 0, 61),
        lambda: sorting.in_c.sort_part(line, 2, other, 5, 4),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends, other, 0, 61),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends, other[1:], 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends, other.astype("f4"), 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, edge.astype("f4"), ends, other, 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends[:1], other, 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends + 1, other, 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, edge, ends - 1, other, 0, 60),
        lambda: sorting.in_c.spread_part(line, 2, np.zeros(64), np.zeros((2, 65), int), other, 0, 60),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize("kind", ["f8", "i2", "f2"])
def test_elements_that_change_meanwhile_are_not_written_beyond_a_range(kind: str) -> None:
    x, out = np.arange(100).astype(kind), np.full(100, -1).astype(kind)
    places = np.array([[10, 50, 80], [12, 50, 99]])
    sorting.in_c.spread_part(
        x, sorting.ORDERED[np.dtype(kind).kind], np.array([20, 40], kind), places, out, 0, 100
    )
    assert out[10:12].tolist() == [0, 1] and (out[12:80] == -1).all() and (out[:10] == -1).all()
    assert out[80:99].tolist() == list(range(40, 59)) and out[99] == -1
    assert places[0].tolist() == [12, 50, 99]


def test_float16_is_sorted_where_numpys_vectors_are_wrong() -> None:
    for seed in (2434, 2136, 1723, *range(20)):
        r = np.random.default_rng(seed)
        x = r.choice((r.normal(size=40) * 1000).astype("f2"), 1000 + 50 * (seed % 41))
        same(mb.sort(mb.HostArray(x)), np.sort(x, kind="stable"))
