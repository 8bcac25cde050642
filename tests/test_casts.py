"""Real numbers as integers: one formula on every place, hot and cold, and NumPy's numbers within the range."""

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
REALS = ["f2", "f4", "f8", "c8", "c16"]
LARGE = 2.0**31, 2.0**32, 2.0**53, 2.0**62, 2.0**63, 2.0**64, 1e19, 1e30
EDGES = [0.0, 0.9, 1.5, 5.0, 127.9, 128.0, 255.9, 256.0, 300.0, 367.5, 32768.0, 40000.0, 65504.0, 65536.0]
VALUES = np.array(
    [v * s for v in (*EDGES, *LARGE, *(x + 4096 for x in LARGE), *(x - 0.5 for x in LARGE)) for s in (1, -1)]
    + [np.inf, -np.inf, 2.0**31 + 5, -(2.0**31) - 5, 2.0**33 + 9, -(2.0**33) - 9, np.nan, -np.nan]
)  # fmt: skip
MAKERS = {"host": mb.HostArray, "reference": mb.RefArray, "card": mb.CuArray}


def values(dtype):
    with np.errstate(all="ignore"):
        return VALUES.astype(dtype)


def formula(x, dtype):
    """What docs/design.md says, of one number after the other."""
    dtype = np.dtype(dtype)
    bits = 32 if dtype.itemsize < 4 or dtype == np.int32 else 64

    def held(v):
        least = -(2 ** (bits - 1))
        whole = int(v) if np.isfinite(v) else least
        return whole if least <= whole < -least else least

    def one(v):
        if dtype == np.uint64 and v >= 2.0**63:
            return held(v - 2.0**63) + 2**63
        return held(v)

    # (A list of integers of one width, whose low bits are the result's.)
    found = np.array([one(float(v)) % 2**64 for v in x.real], np.uint64)
    return found.astype(dtype)


def within(x, dtype):
    info = np.iinfo(dtype)
    return np.isfinite(x.real) & (x.real > float(info.min) - 1) & (x.real < float(info.max))


def quietly(f):
    with np.errstate(all="ignore"):
        return f()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", REALS)
def test_the_formula_is_numpys_within_the_range(source, target):
    x = values(source)
    here = within(x, target)
    np.testing.assert_array_equal(formula(x, target)[here], quietly(lambda: x[here].real.astype(target)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["f2", "f4", "f8", "c16"])
def test_casts_follow_the_formula(source, target, make, way):
    n = values(source)
    expected = formula(n, target)
    x = make(n)
    assert_same(mb.astype(x, target), expected)
    assert_same(mb.astype(x[::-1], target), expected[::-1])
    # what is written to integers, alone and with an operation before it
    y = mb.zeros(n.size, dtype=target, device=make)
    if source != "c16":
        y[...] = x
        assert_same(y, expected)
        y[...] = mb.where(mb.equal(x, x), x, x) * 1
        assert_same(y, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["f4", "f8"])
@pytest.mark.parametrize("copies", [40, 400])
def test_many_elements_too(source, target, copies, way):
    n = np.tile(values(source), copies)
    expected = np.tile(formula(values(source), target), copies)
    x = mb.HostArray(n)
    assert_same(x.astype(target), expected)
    assert_same((x * 1).astype(target), expected)
    z = mb.zeros(n.size, dtype=target)
    z[...] = x * 1
    assert_same(z, expected)
    assert_same(mb.compile(lambda x: (x * 1).astype(target))(x), expected)


def test_pictures_made_brighter_are_the_same_however_large():
    for n in (10, 300):
        p = np.full((n, n), 147, np.uint8)
        x = mb.HostArray(p)
        x[...] = x * 2.5
        assert_same(x, np.full((n, n), 367 & 255, np.uint8))
