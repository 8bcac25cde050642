"""What masks pick on the host, and what is written to it, is NumPy's: in C, in parts, and by places."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import as_many

import mirabelle as mb
from mirabelle.backends.host import picking
from mirabelle.dispatch import native

DTYPES = ["?", "i1", "u2", "i4", "f4", "f8", "c8", "c16"]


@st.composite
def masked(draw):
    """An array, and a mask of its first dimensions that holds everywhere, nowhere, here and there in runs."""
    shape = draw(st.sampled_from([(0,), (1,), (7,), (8,), (700,), (3000,), (40, 70), (30, 8, 9)]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = (rng.standard_normal(shape) * 50).astype(draw(st.sampled_from(DTYPES)))
    leading = shape[: draw(st.integers(1, len(shape)))]
    how = draw(st.sampled_from(["all", "none", "half", "few", "runs"]))
    if how == "runs":
        mask = np.resize(np.repeat(rng.random(200) > 0.5, rng.integers(1, 40, 200)), leading)
    else:
        mask = rng.random(leading) < {"all": 1.0, "none": -1.0, "half": 0.5, "few": 0.02}[how]
    return x, mask


def same(ours, numpys):
    found = np.asarray(ours)
    assert found.dtype == numpys.dtype and found.shape == numpys.shape
    assert found.tobytes() == numpys.tobytes()


@given(masked(), st.booleans())
@settings(deadline=None)
def test_picked(case, turned):
    x, mask = case
    if turned:
        x, mask = np.asfortranarray(x), np.asfortranarray(mask)
    same(mb.HostArray(x)[mb.HostArray(mask)], x[mask])


@given(masked(), st.sampled_from(["number", "one", "as many", "too many", "wider"]))
@settings(deadline=None)
def test_written(case, what):
    x, mask = case
    y = mb.HostArray(x.copy())
    n = int(mask.sum())
    rest = x.shape[mask.ndim :]
    rng = np.random.default_rng(5)
    value = {
        "number": 3,
        "one": (rng.random((1, *rest)) * 50).astype(x.dtype),
        "as many": (rng.random((n, *rest)) * 50).astype(x.dtype),
        "too many": (rng.random((n + 2, *rest)) * 50).astype(x.dtype),
        "wider": (rng.random((n, *rest)) * 50).astype(np.promote_types(x.dtype, "f4")),
    }[what]
    before = np.asarray(y).copy()
    try:
        x[mask] = value
    except ValueError:
        with pytest.raises(ValueError, match=r"\w"):
            y[mb.HostArray(mask)] = mb.HostArray(value)
        same(y, before)
        return
    y[mb.HostArray(mask)] = value if what == "number" else mb.HostArray(value)
    same(y, x)


@pytest.mark.parametrize("where", ["all", "half", "few"])
@pytest.mark.parametrize("shape", [(1 << 17,), (1 << 10, 1 << 7, 3)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_large_ones_are_picked_in_parts(where, shape, dtype, monkeypatch):
    monkeypatch.setattr(picking, "_LARGE", 1)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(dtype)
    mask = rng.random(shape[:2]) < {"all": 1.0, "half": 0.5, "few": 0.3}[where]
    with mb.settings.changed(num_threads=3):
        same(mb.HostArray(x)[mb.HostArray(mask)], x[mask])


def test_a_short_mask_of_long_rows_is_one_part():
    x = np.arange(1 << 20, dtype="f8").reshape(1024, 1024)
    mask = np.arange(1024) % 3 == 0
    with mb.settings.changed(num_threads=2):
        same(mb.HostArray(x)[mb.HostArray(mask)], x[mask])


@pytest.mark.parametrize("first", ["read", "written"])
def test_what_is_kept_of_a_mask_is_told_apart(first):
    """The places by which elements are picked, and those that kernels read."""
    a = np.arange(1 << 15, dtype="f8").reshape(-1, 8)
    mask = a % 30 == 0
    values = np.arange(np.count_nonzero(mask), dtype="i4")
    x, held = mb.HostArray(a), mb.HostArray(mask)
    if first == "read":
        same(x[held], a[mask])
    with as_many():  # (by the ordinary way)
        x[held] = values
    expected = a.copy()
    expected[mask] = values
    same(x, expected)
    same(x[held], expected[mask])


def test_values_may_be_of_the_array_itself():
    x = np.arange(3000.0)
    mask = x % 3 > 0
    y, held = mb.HostArray(x.copy()), mb.HostArray(mask)
    y[held] = y[:2000]
    x[mask] = x[:2000].copy()
    same(y, x)
    flags = np.tile([True, False, True], 1000)
    z = mb.HostArray(flags.copy())
    z[z] = mb.HostArray(np.tile([False, True], 1000))
    flags[flags] = np.tile([False, True], 1000)
    same(z, flags)


def test_who_holds_the_old_contents_keeps_them():
    x = mb.HostArray(np.arange(2000.0))
    mask = x > 10.0
    doubled = x * 2.0
    kept = x.copy()
    x[mask] = 0.0
    same(doubled, np.arange(2000.0) * 2.0)
    same(kept, np.arange(2000.0))
    assert float(mb.sum(x)) == 55.0


@pytest.mark.parametrize("n", [512, 1 << 18])
def test_nothing_is_kept(n):
    module = native.in_c
    x, mask, values = np.ones(n), np.ones(n, bool), np.zeros(n)
    gc.collect()
    held = [sys.getrefcount(a) for a in (x, mask, values, x.dtype)]
    for _ in range(50):
        module.mask_picked(x, mask)
        module.mask_put(x, mask, values)
        module.mask_pick(x, mask, values, 0, n, 0, n)
        module.mask_count(mask, 0, n)
    found = [sys.getrefcount(a) for a in (x, mask, values, x.dtype)]
    assert found[:3] == held[:3] and abs(found[3] - held[3]) < 10  # (others have the dtype, too)


def test_bytes_of_whatever_value_are_truth_values():
    """Whoever looks at bytes as truth values gets elements of the array, and none beside it."""
    module = native.in_c
    raw = np.random.default_rng(3).integers(0, 256, 4096).astype(np.uint8) * (np.arange(4096) % 3 > 0)
    mask = raw.astype(np.uint8).view(bool)
    x = np.arange(4096.0)
    assert module.mask_count(mask, 0, 4096) == np.count_nonzero(raw)
    assert (module.mask_picked(x, mask) == x[raw != 0]).all()
    assert module.mask_put(x, mask, np.full(np.count_nonzero(raw), -1.0))
    assert (x == np.where(raw != 0, -1.0, np.arange(4096.0))).all()


def test_what_does_not_fit_is_refused():
    module = native.in_c
    x, mask = np.ones(100), np.ones(100, bool)
    for wrong in (np.ones(99, bool), np.ones((10, 10), bool), np.ones(200, bool)[::2], np.ones(100)):
        assert module.mask_picked(x, wrong) is None
        assert not module.mask_put(x, wrong, np.ones(100))
    assert module.mask_picked(x[::2], mask[:50]) is None
    frozen = np.ones(100)
    frozen.flags.writeable = False
    for dest, values in (
        (x, np.ones(99)),
        (x, np.ones(100, "f4")),
        (x, np.ones((100, 1))),
        (x, x),
        (frozen, np.ones(100)),
        (np.ones((100, 2)), np.array(1.0)),
    ):
        assert not module.mask_put(dest, mask, values)
    for bad in ((mask, -1, 3), (mask, 0, 101), (mask, 3, 2), (mask, "a", 2)):
        with pytest.raises((ValueError, TypeError)):
            module.mask_count(*bad)
    with pytest.raises(ValueError, match="no such part"):
        module.mask_pick(x, mask, np.ones(50), 0, 100, 0, 100)
    with pytest.raises(ValueError, match="elsewhere"):
        module.mask_pick(x, mask, np.ones(100, "i8"), 0, 100, 0, 100)
    with pytest.raises(TypeError):
        module.mask_picked(x)


def test_fewer_than_were_counted_are_no_harm():
    """Somebody may write to a mask while it is gone through: memory beside what was made is never touched."""
    module = native.in_c
    x, mask, out = np.arange(1000.0), np.ones(1000, bool), np.full(100, -1.0)
    module.mask_pick(x, mask, out, 0, 1000, 10, 60)
    assert (out[10:60] == x[:50]).all() and (out[:10] == -1).all() and (out[60:] == -1).all()
    mask[::2] = False
    module.mask_pick(x, mask, out, 0, 1000, 10, 61)
    assert (out[10:61] == x[1:103:2]).all() and (out[61:] == -1).all()
