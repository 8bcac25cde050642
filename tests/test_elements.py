"""Single elements of arrays in the host's memory: x[i], and float(x), int(x), complex(x), bool(x) of one."""

import gc
import sys

import numpy as np
import pytest

import mirabelle as mb

DTYPES = ["?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16"]
INDICES = [(0, 0), (2, 3), (-1, -4), (1, -1)]


def values(dtype, shape=(3, 4)):
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=shape) * 50 + 1j * rng.normal(size=shape)).astype(dtype)
    return (rng.random(shape) * 100).astype(dtype)


def made(x, order):
    if order == "transposed":
        return mb.HostArray(np.ascontiguousarray(x.T)).T
    if order == "shared":
        return mb.asarray(x)
    if order == "part":
        return mb.HostArray(np.pad(x, 1))[1:-1, 1:-1]
    return mb.HostArray(np.asarray(x, order=order))


@pytest.mark.parametrize("order", ["C", "F", "transposed", "shared", "part"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_is_a_copy(dtype, order):
    n = values(dtype)
    x = made(n, order)
    for index in INDICES:
        e = x[index]
        assert type(e) is mb.HostArray[n.dtype, 0] and e.shape == () and e.dtype == n.dtype
        assert mb.to_numpy(e) == n[index] and mb.to_numpy(e).dtype == n.dtype
        assert mb.to_numpy(x[tuple(np.int64(i) for i in index)]) == n[index]
        row = x[index[0]]
        assert row.shape == (4,) and mb.to_numpy(row[index[1]]) == n[index]
    kept = x[1, 1]
    x[1, 1] = 0
    assert mb.to_numpy(kept) == values(dtype)[1, 1] and mb.to_numpy(x[1, 1]) == 0
    kept += 1  # binds the name anew: an element is a number
    assert mb.to_numpy(x[1, 1]) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_numpys(dtype):
    n = values(dtype, (5,))
    x = mb.HostArray(n)
    for i in range(-5, 5):
        for convert in (float, int, complex, bool):
            if convert in (float, int) and n.dtype.kind == "c":
                with pytest.raises(TypeError):
                    convert(x[i])
            else:
                got, wanted = convert(x[i]), convert(n[i])
                assert got == wanted and type(got) is type(wanted)


@pytest.mark.parametrize("index", [5, -6, (0, 0), 2**70, (1, 2, 3)])
def test_bad_indices_are_refused(index):
    x, n = mb.HostArray(np.arange(5.0)), np.arange(5.0)
    with pytest.raises(IndexError):
        n[index]
    with pytest.raises(IndexError):
        x[index]


def test_other_indices_mean_what_they_mean():
    x, n = mb.HostArray(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3)
    for index in [
        (0, 1, ...),
        (..., 0, 1),
        (0, None, 1),
        True,
        (True, 0),
        [0, 1],
        (0, [1]),
        (slice(1), 0),
        None,
    ]:
        assert mb.to_numpy(x[index]).tolist() == np.asarray(n[index]).tolist()
        assert x[index].shape == np.shape(n[index])
    shown = x[0, 1, ...]  # with an ellipsis NumPy shows a view
    shown[...] = 9
    assert x[0, 1].item() == 9


def test_what_is_no_number_says_so():
    for text, x in [("nan", np.nan), ("inf", np.inf)]:
        e = mb.HostArray(np.array([x]))[0]
        with pytest.raises((ValueError, OverflowError), match=r"NaN|infinity"):
            int(e)
        assert repr(float(e)) == text and bool(e)
    with pytest.raises(TypeError, match="only arrays of one element"):
        float(mb.HostArray([1.0, 2.0]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(mb.HostArray([1.0, 2.0]))
    assert float(mb.HostArray([[2.5]])) == 2.5 and int(mb.HostArray([3])) == 3
    assert float(mb.sum(mb.HostArray([1.0, 2.0]) * 2)) == 6.0  # pending


def test_reads_are_counted():
    x = mb.HostArray(np.arange(5.0))
    with mb.count() as c:
        float(x[3])
        int(x[2])
    assert c.scalar_reads == 2


def test_reads_keep_nothing():
    n = np.arange(5.0)
    x = mb.HostArray(n)
    t = mb.HostArray(np.ones((3, 4))).T
    watched = [x.dtype, x._node, mb.HostArray[np.float64, 0], t._parent._node]

    def counts():
        return [sys.getrefcount(w) for w in watched]

    gc.collect()  # (what earlier tests left behind goes away now, not meanwhile)
    before = counts()
    for _ in range(1000):
        float(x[3])
        bool(t[1, 2])
        with pytest.raises(IndexError):
            t[7, 7]
    # (Other threads use the dtype, too.)
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))
    assert not x._node.parts and not t._parent._node.parts
