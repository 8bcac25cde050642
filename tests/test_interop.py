"""NumPy's own functions, Python's protocols, and what people see."""

import array
import copy
import hashlib
import io
import json
import pickle
import struct
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


@plain
def test_numpy_broadcasts_arrays_of_other_things_beside_ours(kind):
    x = kind.make(np.arange(3.0))
    a, b, c, d = np.broadcast_arrays(x, None, 2.0, x[:1])
    assert_same(a, np.arange(3.0))
    assert b.dtype == object and b.tolist() == [None] * 3
    assert_same(c, np.full(3, 2.0))
    assert_same(d, np.zeros(3))


@plain
def test_differences_as_numpy_and_the_standard_spell_them(kind):
    values = ordinary("f8", (4, 5))
    x = kind.make(values)
    for result, expected in (
        (mb.diff(x), np.diff(values)), (mb.diff(x, 2), np.diff(values, 2)),
        (np.diff(x, 2, 0), np.diff(values, 2, 0)), (mb.diff(x, axis=0, n=2), np.diff(values, 2, 0)),
        (np.diff(x, prepend=0.0), np.diff(values, prepend=0.0)),
    ):  # fmt: skip
        assert_same(result, expected)


@single
def test_where_alone_says_where(kind):
    values = kind.sample(np.array([[0, 3, 0], [4, 0, 5]]))
    for found in (mb.where(kind.make(values)), np.where(kind.make(values)), mb.where(kind.make(values) > 0)):
        for mine, expected in zip(found, np.where(values), strict=True):
            assert_same(mine, expected)
            assert_closed(mine, kind)
    assert mb.where([0, 1])[0].tolist() == [1]
    with pytest.raises(ValueError, match="both or neither"):
        mb.where(kind.make(values), 1)


def test_windows_by_numpys_name():
    for kind in PLAIN:
        x = kind.make(np.arange(5))
        module = x.__array_namespace__().lib.stride_tricks
        assert_same(module.sliding_window_view(x, 3), np.lib.stride_tricks.sliding_window_view(np.arange(5), 3))
        assert_same(np.lib.stride_tricks.sliding_window_view(x, 3)[1], np.array([1, 2, 3]))


def test_raw_bytes_are_numpys():
    x = mb.HostArray([1.0, 2.0])
    raw = x.view("V8")
    assert type(raw) is np.ndarray and raw.tobytes() == np.array([1.0, 2.0]).tobytes()
    with pytest.raises(mb.PlaceError):
        mb.RefArray([1.0]).view("V8")


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


# DLPack

DTYPES = ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]
host_kinds = pytest.mark.parametrize("kind", [k for k in SINGLE if not k.on_device], ids=repr)


@pytest.mark.parametrize("kind", [k for k in SINGLE if not k.on_device and not k.traced], ids=repr)
def test_dlpack_hands_out_what_an_array_shows(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    assert x.__dlpack_device__() == (1, 0)
    shown = np.from_dlpack(x)
    np.testing.assert_array_equal(shown, values)
    copied = np.from_dlpack(x, copy=True)
    assert copied.flags.writeable
    copied[...] = -1
    np.testing.assert_array_equal(mb.to_numpy(x), values)
    if kind.lazy:  # (memory shared with NumPy is shared on)
        assert not shown.flags.writeable
        if kind.writable:
            x[...] = 7
        np.testing.assert_array_equal(shown, values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3, 4)], ids=str)
def test_dlpack_there_and_back(dtype, shape):
    values = np.ones(shape, dtype)
    back = mb.from_dlpack(np.from_dlpack(mb.HostArray(values)))
    assert isinstance(back, mb.HostArray)
    assert_same(back, values)


def test_dlpack_without_a_copy():
    x = mb.HostArray(np.arange(12.0).reshape(3, 4))
    assert np.shares_memory(np.from_dlpack(x), np.asarray(x))
    assert np.shares_memory(np.from_dlpack(x.T[1:]), np.asarray(x))
    assert np.from_dlpack(x.T).strides == (8, 32)
    n = np.arange(6.0).reshape(2, 3).T[::-1]
    y = mb.from_dlpack(n)
    y[0, 0] = 50
    n[1, 1] = 60
    assert n[0, 0] == 50 and y[1, 1].item() == 60 and y.strides == n.strides
    z = mb.from_dlpack(n, copy=True)
    z[0, 0] = 1
    assert n[0, 0] == 50
    assert mb.from_dlpack(x) is x and mb.from_dlpack(x, copy=True) is not x


def test_dlpack_of_memory_that_numpy_may_not_write():
    n = np.arange(3.0)
    n.flags.writeable = False
    x = mb.from_dlpack(n)
    assert_same(x + 1, np.arange(3.0) + 1)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 5
    assert n[0] == 0


def test_dlpack_consumers_of_the_old_version_get_a_copy_they_may_write():
    class Old:
        """An array library of before 2024."""

        def __init__(self, x):
            self.x = x

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

        def __dlpack__(self, stream=None):
            return self.x.__dlpack__(stream=stream)

    x = mb.HostArray([1.0, 2.0])
    taken = np.from_dlpack(Old(x))
    assert taken.tolist() == [1.0, 2.0] and not np.shares_memory(taken, np.asarray(x))
    assert_same(mb.from_dlpack(Old(np.arange(3.0))), np.arange(3.0))


def test_dlpack_of_a_device():
    r = mb.RefArray([[1.0, 2.0], [3.0, 4.0]])
    for x in (r, r.T, r + 1, r[:, 0]):
        assert x.__dlpack_device__()[0] == 12
        with pytest.raises(BufferError, match=r"lives on ref:0.*device='cpu'"):
            np.from_dlpack(x)
        with pytest.raises(BufferError, match="ref:0"):
            np.from_dlpack(x, device="cpu", copy=False)
        fetched = np.from_dlpack(x, device="cpu")
        np.testing.assert_array_equal(fetched, mb.to_numpy(x))
        assert mb.from_dlpack(x) is x
        assert mb.from_dlpack(x, device=mb.HostArray).place == mb.HostArray.home
        assert mb.from_dlpack(x, device=x.device).place == x.place
        with pytest.raises(BufferError, match="copy"):
            mb.from_dlpack(x, device=mb.HostArray, copy=False)
    moved = mb.from_dlpack(np.arange(3), device=mb.RefArray)
    assert isinstance(moved, mb.RefArray) and moved.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="copy"):
        mb.from_dlpack(np.arange(3), device=mb.RefArray, copy=False)
    assert isinstance(mb.namespace(mb.RefArray).from_dlpack(np.arange(3)), mb.RefArray)


def test_dlpack_bad_input():
    x = mb.HostArray([1.0])
    with pytest.raises(TypeError, match="speaks DLPack"):
        mb.from_dlpack([1.0])
    with pytest.raises(BufferError, match="lives on the host"):
        x.__dlpack__(dl_device=(2, 0))

    class Elsewhere:
        def __dlpack_device__(self):
            return (7, 0)  # Vulkan

        def __dlpack__(self, **options):
            raise AssertionError("nothing is asked of a device that nobody can read")

    with pytest.raises(BufferError, match=r"device=mb\.HostArray"):
        mb.from_dlpack(Elsewhere())
    with pytest.raises(BufferError):
        mb.from_dlpack(np.arange(3.0).astype(">f8"))
    with pytest.raises((BufferError, TypeError)):
        mb.from_dlpack(np.array(["a"]))


def test_dlpack_with_another_library():
    jax = pytest.importorskip("jax")
    x = mb.HostArray([1.0, 2.0]).astype("f4")
    theirs = jax.numpy.from_dlpack(x)
    assert (theirs * 2).tolist() == [2.0, 4.0]
    assert_same(mb.from_dlpack(theirs * 2), np.array([2, 4], "f4"))
    assert_same(mb.asarray(theirs) + x, np.array([2, 4], "f4"))


# Buffers


@host_kinds
def test_a_buffer_is_what_an_array_shows(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    view = memoryview(x)
    assert view.shape == (3, 4) and view.format == "d" and view.itemsize == 8 and view.nbytes == 96
    assert view.tolist() == values.tolist()
    assert bytes(x) == x.tobytes() == values.tobytes()
    assert view.readonly == (kind.lazy or not kind.writable)
    if kind.lazy and kind.writable:
        x[...] = 7
        assert view.tolist() == values.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_of_every_dtype(dtype):
    values = np.ones((2, 3), dtype)
    assert memoryview(mb.HostArray(values)).format == memoryview(values).format
    assert bytes(mb.HostArray(values)) == values.tobytes()
    assert memoryview(mb.HostArray(values[0, 0])).shape == ()


def test_what_python_does_with_buffers(tmp_path):
    x = mb.HostArray([1.0, 2.0])
    raw = np.array([1.0, 2.0]).tobytes()
    assert bytearray(x) == raw and b"".join([x, x]) == raw * 2
    assert hashlib.sha256(x).digest() == hashlib.sha256(raw).digest()
    assert io.BytesIO(x).read() == raw and struct.unpack("dd", x) == (1.0, 2.0)
    assert array.array("d", bytes(x)).tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(np.frombuffer(x), [1.0, 2.0])
    (tmp_path / "raw").write_bytes(x)
    assert (tmp_path / "raw").read_bytes() == raw
    shared = mb.asarray(n := np.zeros(2))
    memoryview(shared)[0] = 5.0
    struct.pack_into("d", shared, 8, 6.0)
    assert n.tolist() == [5.0, 6.0]
    with pytest.raises(TypeError, match="read-only"):
        memoryview(x)[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_a_buffer_keeps_the_memory_alive():
    x = mb.HostArray(np.arange(300_000.0))
    view = memoryview(x)
    del x
    others = [mb.zeros(300_000) + i for i in range(3)]
    assert [float(o[0].item()) for o in others] == [0.0, 1.0, 2.0]
    assert view[299_999] == 299_999.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.RefArray([1.0, 2.0]),
        lambda: mb.RefArray([[1.0, 2.0]]).T,
        lambda: mb.RefArray([1.0]) + 1,
        lambda: mb.Diagonal(mb.RefArray([1.0])),
    ],
)
def test_a_device_has_no_buffer(make):
    x = make()
    for take in (memoryview, bytes, bytearray, io.BytesIO, hashlib.sha256):
        with pytest.raises(BufferError, match=r"ref:0.*mb\.to_numpy"):
            take(x)
    for attribute in ("__array_interface__", "__array_struct__", "__cuda_array_interface__"):
        assert not hasattr(x, attribute)
    with pytest.raises(mb.PlaceError, match=r"ref:0.*mb\.to_numpy"):
        np.asarray(x)
    assert mb.to_numpy(x).tobytes() == x.tobytes()


# Pickles


@single
def test_arrays_pickle(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        x = kind.make(values)
        back = pickle.loads(pickle.dumps(x, protocol=protocol))
        assert type(back) is type(x) and back.place == x.place
        assert_same(back, values)
        # Nothing is shared, and it can be written to where the original can.
        if kind.writable:
            back[...] = 0
            assert_same(back, np.zeros((3, 4)))
            assert_same(x, values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,)], ids=str)
def test_every_dtype_and_shape_pickles(dtype, shape):
    for kind in PLAIN:
        back = pickle.loads(pickle.dumps(kind.make(np.ones(shape, dtype))))
        assert_same(back, np.ones(shape, dtype))
        assert_closed(back, kind)


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
def test_items_by_index_and_by_number(kind):
    values = kind.sample(ordinary("i8", (3, 4)))
    x = kind.make(values)
    with mb.allow_scalar():
        for index in [(5,), (-1,), (1, 2), ((1, 2),), (-1, -1), (np.int64(3),)]:
            assert x.item(*index) == values.item(*index) and type(x.item(*index)) is int
        for index in [(12,), (-13,), (0, 4), (3, 0)]:
            with pytest.raises(IndexError):
                x.item(*index)
        for index in [(1.5,), ("a",)]:
            with pytest.raises(TypeError):
                x.item(*index)
        with pytest.raises(ValueError, match="incorrect number"):
            x.item(0, 0, 0)
    with pytest.raises(ValueError, match="size 1"):
        x.item()


@plain
def test_dtypes_are_numpys(kind):
    x = kind.make(np.ones(3))
    assert isinstance(x.dtype, np.dtype) and x.dtype == np.float64 == mb.float64 and x.dtype.kind == "f"
    for dtype in (np.dtype("f4"), np.float32, "float32", "f4", ">f4", mb.float32):
        assert x.astype(dtype).dtype == np.dtype("f4") and x.astype(dtype).dtype.isnative
        assert mb.zeros(2, dtype=dtype, device=kind.family).dtype == np.dtype("f4")
    assert x.astype(int).dtype == np.dtype(int) and x.astype(bool).dtype == bool
    assert x.astype("f8", copy=False) is x and x.astype("f8") is not x
    for dtype in ("datetime64[s]", object, "U3", "i4,f8"):
        with pytest.raises(TypeError, match="booleans, integers, real and complex"):
            x.astype(dtype)
    with pytest.raises(TypeError):
        x.astype("no such type")


@plain
def test_real_imaginary_and_transposed_parts(kind):
    values = ordinary("c16", (2, 3, 4))
    x = kind.make(values)
    assert_same(x.real, values.real)
    assert_same(x.imag, values.imag)
    assert_same(x.T, values.T)
    assert_same(x.mT, values.mT)
    x.real[...] = 7
    assert_same(x, 7 + 1j * values.imag)
    real = kind.make(ordinary("f8", (2, 3)))
    assert real.real is real
    assert_same(real.imag, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="2 dimensions"):
        kind.make(np.ones(3)).mT
    assert x.size == 24 and x.nbytes == 384 and x.itemsize == 16 and len(x) == 2
    with pytest.raises(TypeError, match="0-d"):
        len(kind.make(np.array(1.0)))
    with pytest.raises(TypeError, match="0-d"):
        iter(kind.make(np.array(1.0)))


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
    assert text.startswith(type(x).__name__ + "(") and kind.family.__name__.rstrip("]") in text
    assert "2.5" in text and "float64" in text
    # (of a distributed one: how it is divided, and not the place)
    assert (repr(kind.place) in text) == (kind.traced or (kind.on_device and not kind.distributed))
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


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
def test_rint_has_the_dtype_of_numpys(array, dtype):
    x = np.array([0, 1, 1], dtype)
    for found in (mb.rint(array(x)), np.rint(array(x))):
        assert found.dtype == np.rint(x).dtype and np.array_equal(mb.to_numpy(found), np.rint(x))
