"""NumPy's own functions, Python's protocols, and what people see."""

import copy
import json
import warnings

import numpy as np
import pytest
from compare import assert_closed, assert_same
from kinds import LEAVES, PLAIN, SINGLE
from samples import ordinary

import mirabelle as mb

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
single = pytest.mark.parametrize("kind", SINGLE, ids=repr)


# NumPy's functions


@single
def test_numpy_ufuncs_stay_here(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    for f in (
        np.sin, np.negative, np.isfinite, np.square, np.absolute, np.rint, lambda v: np.power(v, 2),
        lambda v: np.add(v, 1), lambda v: np.maximum(1.5, v), lambda v: np.hypot(v, v), np.fabs,
        lambda v: np.logical_and(v > 0, v < 2), np.asin, lambda v: np.multiply(v, 2, dtype="f4"),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            expected = f(values)
        result = f(x)
        assert isinstance(result, mb.AbstractArray)
        assert_same(result, expected)
        assert_closed(mb.materialize(result), kind)


@single
def test_numpy_functions_stay_here(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    for f in (
        lambda v: np.sum(v, axis=0), np.prod, lambda v: np.max(v, axis=1, keepdims=True), np.amin,
        lambda v: np.any(v > 1), lambda v: np.all(v < 100, axis=0), lambda v: np.mean(v, 1),
        lambda v: np.std(v, ddof=1),
        np.var, lambda v: np.where(v > 0, v, 0.0), lambda v: np.clip(v, -1, 1), lambda v: np.transpose(v),
        lambda v: np.transpose(v, (1, 0)), lambda v: np.reshape(v, (4, 3)), np.real, np.imag, np.count_nonzero,
        lambda v: np.broadcast_to(v, (2, 3, 4)), np.zeros_like, np.ones_like, lambda v: np.round(v),
        lambda v: np.add.reduce(v), lambda v: np.add.reduce(v, axis=1),
        lambda v: np.multiply.accumulate(v, axis=1),
    ):  # fmt: skip
        result = f(x)
        assert isinstance(result, mb.AbstractArray)
        assert_same(result, np.asarray(f(values)), rtol=1e-13, atol=1e-13)
    assert np.shape(x) == (3, 4) and np.ndim(x) == 2 and np.size(x) == 12
    assert np.result_type(x, np.float32) == "f8"
    with mb.allow_scalar():
        assert np.array_equal(x, x) and not np.array_equal(x, x + 1)
        assert np.allclose(x, x)


@plain
def test_numpy_functions_write_into_out(kind):
    values = ordinary("f8", (3, 4))
    x, out = kind.family(values), mb.zeros((3, 4), device=kind.family)
    assert np.add(x, 1, out=out) is out
    assert_same(out, values + 1)
    np.multiply(x, x, out)
    assert_same(out, values * values)
    total = mb.zeros(4, device=kind.family)
    assert np.sum(x, axis=0, out=total) is total
    assert_same(total, values.sum(0), rtol=1e-14)
    assert x.max(axis=0, out=total) is total
    assert_same(total, values.max(0))
    np.add(x, 1, out=out, where=x > 0)
    expected = values * values
    np.add(values, 1, out=expected, where=values > 0)
    assert_same(out, expected)
    small = mb.zeros((3, 4), dtype="i4", device=kind.family)
    with pytest.raises(TypeError, match="cast"):
        np.add(x, 0.5, out=small)
    assert_same(small, np.zeros((3, 4), "i4"))
    with pytest.raises(TypeError, match=r"mb\.where"):
        np.add(x, 1, where=x > 0)


def test_numpy_destinations_take_host_results():
    x = mb.HostArray([1.0, 2.0])
    n = np.zeros(2)
    assert np.add(x, 1, out=n) is n
    np.testing.assert_array_equal(n, [2, 3])
    n[...] = x
    np.testing.assert_array_equal(n, [1, 2])
    n[1:] = x[:1] * 9
    np.testing.assert_array_equal(n, [1, 9])
    n += x
    np.testing.assert_array_equal(n, [2, 11])


def test_numpy_arrays_as_operands():
    n = np.arange(3.0)
    x = mb.HostArray([1.0, 2.0, 3.0])
    for result, expected in (
        (n * x, n * [1, 2, 3]), (x * n, n * [1, 2, 3]), (n - x, n - [1, 2, 3]), (n < x, n < [1, 2, 3]),
        (n[:, None] + x, n[:, None] + [1.0, 2, 3]), (np.float64(2) * x, np.array([2.0, 4, 6])),
        (np.array(2.0) * x, np.array([2.0, 4, 6])), (mb.where(n > 0, x, n), np.array([0.0, 2, 3])),
        (np.ones((3, 3)) @ x, np.full(3, 6.0)), (x @ np.ones((3, 3)), np.full(3, 6.0)),
    ):  # fmt: skip
        assert isinstance(result, mb.HostArray)
        assert_same(result, expected)
    assert_same(mb.sqrt(mb.HostArray(n)), np.sqrt(n))


def test_numpy_functions_we_do_not_have_are_refused_clearly():
    with pytest.raises(TypeError, match=r"datetime_as_string\(mb\.to_numpy\(x\)\)"):
        np.datetime_as_string(mb.HostArray([1.0]))


def test_strided_swapped_and_unaligned_numpy_arrays():
    raw = np.zeros(33, np.uint8)
    unaligned = raw[1:].view("f8")
    unaligned[...] = [1, 2, 3, 4]
    swapped = np.array([1.0, 2, 3, 4], ">f8")
    strided = np.array([1.0, 0, 2, 0, 3, 0, 4])[::2]
    expected = np.array([2.0, 3, 4, 5])
    for n in (unaligned, swapped, strided, strided[::-1][::-1]):
        assert_same(mb.HostArray(n) + 1, expected)
        assert_same(mb.asarray(n) + 1, expected)
        assert_same(mb.HostArray([1.0, 1, 1, 1]) + n, expected)
        assert_same(mb.RefArray(n) + 1, expected)
        assert mb.HostArray(n).dtype == np.dtype("f8") and mb.HostArray(n).dtype.isnative


def test_subclasses_of_numpy_arrays():
    class Tagged(np.ndarray): ...

    n = np.arange(3.0).view(Tagged)
    for x in (mb.HostArray(n), mb.asarray(n), mb.HostArray([1.0, 1, 1]) * n):
        assert_same(x, np.arange(3.0))


# Export to NumPy: a snapshot


@pytest.mark.parametrize("kind", [k for k in SINGLE if not k.on_device and k.lazy], ids=repr)
def test_an_exported_array_never_changes(kind):
    """np.asarray(x) shows the contents as they were; a later write to x must not show in it."""
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    exported = np.asarray(x)
    np.testing.assert_array_equal(exported, values)
    assert type(exported) is np.ndarray
    assert not exported.flags.writeable
    part = exported[1:]
    if kind.writable:
        x[...] = -1.0
        x[0] = 7
        x += 5
    np.testing.assert_array_equal(exported, values)
    np.testing.assert_array_equal(part, values[1:])


def test_an_exported_array_survives_partial_and_inplace_writes(way):
    x = mb.HostArray(np.arange(4000.0))
    exported, other = np.asarray(x), np.asarray(x[10:20])
    x[5:] = 0
    x *= 2
    del x
    np.testing.assert_array_equal(exported, np.arange(4000.0))
    np.testing.assert_array_equal(other, np.arange(10.0, 20.0))


def test_writing_to_the_export_of_a_wrapper_or_its_parent():
    x = mb.HostArray(np.ones((2, 3)))
    exported = np.asarray(x.T)
    x[0, 0] = 5
    np.testing.assert_array_equal(exported, np.ones((3, 2)))


def test_exports_with_dtype_and_copy():
    x = mb.HostArray([1.5, 2.5])
    assert np.asarray(x, dtype="f4").dtype == "f4"
    copied = np.array(x)
    copied[0] = 9
    assert x.tolist() == [1.5, 2.5]
    assert np.array(x, copy=True).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype="i4", copy=False)
    assert_same(mb.to_numpy(x), np.array([1.5, 2.5]))
    fetched = mb.to_numpy(x)
    fetched[0] = 7
    assert x.tolist() == [1.5, 2.5]
    assert mb.to_numpy(np.arange(2)).tolist() == [0, 1]


def test_exports_of_large_arrays_outlive_the_pool():
    """The memory of a large array returns to a pool, but not while NumPy looks at it."""
    x = mb.HostArray(np.arange(300_000.0))
    exported = np.asarray(x)
    del x
    for _ in range(3):
        y = mb.zeros(300_000)
        y += 1
        del y
    np.testing.assert_array_equal(exported[:5], np.arange(5.0))
    assert exported[-1] == 299_999


def test_shared_memory_is_exported_as_itself():
    n = np.arange(3.0)
    exported = np.asarray(mb.asarray(n))
    n[0] = 9
    assert exported[0] == 9


# Python's protocols


@single
def test_scalars_of_arrays(kind):
    x = kind.make(np.array(2.5))
    with mb.allow_scalar():
        assert float(x) == 2.5 and int(x) == 2 and complex(x) == 2.5 and bool(x) is True
        assert x.item() == 2.5 and type(x.item()) is float
        assert f"{x:.2f}" == "2.50" and f"{x}" == "2.5"
        one = kind.make(np.array([[3]]))
        assert int(one) == 3 and float(one) == 3.0 and one.item() == 3
        assert not kind.make(np.array(0.0))
    assert x.tolist() == 2.5


@single
def test_sequences_of_arrays(kind):
    values = kind.sample(ordinary("i8", (3, 4)))
    x = kind.make(values)
    assert x.tolist() == values.tolist()
    assert len(x) == 3 and x.size == 12 and x.nbytes == 96 and x.itemsize == 8 and x.ndim == 2
    for row, expected in zip(x, values, strict=True):
        assert_same(row, expected)
    with mb.allow_scalar():
        assert x.item(1, 2) == values[1, 2] and x[0].item(3) == values[0, 3]
        assert values[0, 0] in x and 999 not in x
        assert [int(v) for v in x[0]] == values[0].tolist()
    first, *_ = x
    assert_same(first, values[0])
    assert json.dumps(x.tolist()) == json.dumps(values.tolist())


@single
def test_methods_numpy_users_type(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    for f in (
        lambda a: a.T, lambda a: a.mT, lambda a: a.transpose(), lambda a: a.transpose(1, 0),
        lambda a: a.transpose((1, 0)), lambda a: a.reshape(4, 3), lambda a: a.reshape((2, -1)),
        lambda a: a.ravel(),
        lambda a: a.flatten(), lambda a: a.copy(), lambda a: a.astype("f4"), lambda a: a.real,
        lambda a: a.conj(),
        lambda a: a.clip(0, 1), lambda a: a.sum(), lambda a: a.sum(0), lambda a: a.prod(1),
        lambda a: a.mean(axis=0),
        lambda a: a.min(1), lambda a: a.max(axis=0, keepdims=True), lambda a: a.any(), lambda a: a.all(0),
        lambda a: a.std(), lambda a: a.var(0), lambda a: a[..., None, 1:], lambda a: abs(a), lambda a: +a,
        lambda a: divmod(a, 2)[1],
    ):  # fmt: skip
        assert_same(f(x), np.asarray(f(values)), rtol=1e-13, atol=1e-13)
    own = x.__array_namespace__()
    assert (own is mb) == (kind.family is mb.HostArray) and own.sin is mb.sin
    assert own.zeros(2).device == x.device == kind.place
    if kind.writable:
        x.fill(3)
        assert_same(x, np.full((3, 4), 3.0))


@single
def test_copies_are_independent(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    copies = [copy.copy(x), copy.deepcopy(x), x.copy(), mb.copy(x), kind.family(x), x.flatten()]
    nested = copy.deepcopy({"a": [x]})["a"][0]
    if kind.writable:
        x[...] = 0
    for c in [*copies[:-1], nested]:
        assert_same(c, values)
        assert_closed(mb.materialize(c), kind)
    assert_same(copies[-1], values.ravel())
    copies[0][...] = 5
    assert_same(copies[1], values)


@single
def test_hash_is_refused(kind):
    x = kind.make(np.ones((2, 2)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError):
        {x: 1}


# What people see


@single
def test_repr_shows_type_parameters_and_values(kind):
    values = kind.sample(np.array([[1.0, 2.5], [1.0, 2.5]]))
    x = kind.make(values)
    text = repr(x)
    assert text.startswith(type(x).__name__ + "(") and kind.family.__name__ in text and "float64" in text
    assert "2.5" in text and ("ref:0" in text) == kind.on_device
    assert str(x) == str(values)
    html = x._repr_html_()
    assert "<table" in html and "2 × 2" in html and "2.5" in html


def test_repr_of_special_arrays():
    assert repr(mb.HostArray([1, 2])) == "HostArray[int64, 1]([1, 2])"
    assert repr(mb.HostArray(2.5)) == "HostArray[float64, 0](2.5)" and str(mb.HostArray(2.5)) == "2.5"
    assert repr(mb.HostArray(np.zeros((0, 3)))) == "HostArray[float64, 2]([], shape=(0, 3))"
    assert repr(mb.RefArray([True])) == "RefArray[bool, 1]([ True], place=ref:0)"
    assert "shape=(5000,)" in repr(mb.zeros(5000)) and "..." in repr(mb.zeros(5000))
    assert "\n" in repr(mb.zeros((2, 2)))
    assert len(mb.zeros((300, 300))._repr_html_()) < 5000


def test_seeing_does_not_change_what_is_seen():
    x = mb.HostArray([1.0, 2.0])
    y = x * 2
    repr(y)
    x[...] = 0
    assert y.tolist() == [2.0, 4.0]


def test_flags_are_numpys():
    x = mb.HostArray(np.ones((2, 3)))
    assert x.flags.c_contiguous and not x.T.flags.c_contiguous and x.T.flags.f_contiguous


def test_nothing_warns_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in LEAVES.values():
            x = kind.make(ordinary("f8", (3, 4)))
            repr(mb.sum(mb.sqrt(x) / 0, axis=0))
