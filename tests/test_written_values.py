"""What may be written into an array: NumPy's casting rules, in all functions that write."""

import gc
import weakref

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

WRITERS = {
    "setitem": lambda xp, x, v: x.__setitem__(0, v),
    "slice": lambda xp, x, v: x.__setitem__(slice(0, 1), v),
    "put": lambda xp, x, v: xp.put(x, [1], v),
    "place": lambda xp, x, v: np.place(x, np.arange(4) > 2, v),
    "putmask": lambda xp, x, v: xp.putmask(x, np.arange(4) > 2, v),
    "insert": lambda xp, x, v: xp.insert(x, 0, v),
    "copyto": lambda xp, x, v: xp.copyto(x, v),
    "copyto where": lambda xp, x, v: np.copyto(x, v, where=np.arange(4) > 2),
    "fill_diagonal": lambda xp, x, v: xp.fill_diagonal(x.reshape(2, 2), v),
    "put_along_axis": lambda xp, x, v: xp.put_along_axis(x, np.array([1]), v, 0),
    "out": lambda xp, x, v: xp.add(x, v, out=x),
    "augmented": lambda xp, x, v: x.__iadd__(v),
}
VALUES = {
    "2": 2, "2.5": 2.5, "nan": np.nan, "1j": 1j, "2**70": 2**70, "[2.5]": [2.5], "[nan]": [np.nan],
    "[1j]": [1j], "array 2.5": np.array([2.5]), "array 2": np.array([2]), "True": True,
}  # fmt: skip


def raised(act):
    try:
        act()
    except Exception as e:
        return type(e)
    return None


@pytest.mark.parametrize("dtype", ["i8", "f8", "f4", "c16"])
@pytest.mark.parametrize("writer", list(WRITERS))
def test_a_value_is_written_or_refused_as_numpy_does(writer, dtype):
    for name, value in VALUES.items():
        if writer == "setitem" and not np.isscalar(value):
            continue
        n, x = np.arange(4).astype(dtype), mb.HostArray(np.arange(4).astype(dtype))
        write = WRITERS[writer]
        wanted = raised(lambda n=n, value=value: write(np, n, value))
        found = raised(lambda x=x, value=value: write(mb, x, value))
        assert (found is None) == (wanted is None), (name, wanted, found)
        if wanted is None:
            np.testing.assert_array_equal(mb.to_numpy(x), n, err_msg=name)
        else:
            assert mb.to_numpy(x).tolist() == [0, 1, 2, 3], name


def test_memory_that_kernels_cannot_read_is_not_shared():
    unaligned = np.zeros(17, "u1")[1:].view("f8")
    for data in (unaligned, np.arange(3.0).astype(">f8")):
        with pytest.raises(ValueError, match="needs a copy"):
            mb.asarray(data, copy=False)
        assert mb.asarray(data).tolist() == data.tolist()


def test_errstate_refuses_what_kernels_cannot_do():
    with mb.errstate(divide="ignore", invalid="warn"):
        pass
    for what in ("raise", "call", "print", "log"):
        with pytest.raises(ValueError, match="isfinite"):
            mb.errstate(divide=what)


def test_trapezoid_stretches_a_vector_over_the_points_of_several_lines():
    y, x = [1.0, 2.0], [[1.0, 2.0], [3.0, 5.0]]
    for axis in (0, -1):
        np.testing.assert_array_equal(mb.trapezoid(y, x, axis=axis), np.trapezoid(y, x, axis=axis))
        np.testing.assert_array_equal(mb.trapezoid(x, y, axis=axis), np.trapezoid(x, y, axis=axis))


@pytest.mark.parametrize("index", [True, False, [True, False, True], np.array([True, False]), np.True_])
def test_truth_values_are_numbers_to_take(index):
    wanted = np.take([3, 1, 2], index)
    for given in (index, mb.asarray(index)):
        found = mb.take(mb.HostArray([3, 1, 2]), given)
        assert found.shape == wanted.shape and found.tolist() == wanted.tolist()


def test_float_power_is_double_precision_also_of_numbers():
    for a, b in (
        (10, 30),
        (mb.asarray(10), mb.asarray(30)),
        (np.int8(10), mb.asarray(30)),
        (mb.asarray(10), 30),
    ):
        found = mb.float_power(a, b)
        assert found.dtype == np.float64 and float(found) == 1e30


def test_unknown_keywords_are_refused_by_all_functions():
    """Also where their value is None."""
    x = mb.ones((2, 2))
    accepting = []
    for name in mb.__all__:
        f = getattr(mb, name)
        if not callable(f) or isinstance(f, type) or name == "printoptions":  # (which is NumPy's)
            continue
        for given in ((x,), (x, x), (x, x, x)):
            try:
                f(*given, dtpye=None)
            except Exception:  # (what else is wrong with the call may be said first)
                continue
            accepting.append(name)
    assert not accepting


def test_columns_of_a_sparse_matrix_are_sparse():
    dense = np.eye(6)
    dense[2, 4] = 5.0
    a = mb.CSR(dense)
    for columns in ([0, 4, 4, -1], np.array([3, 1]), mb.HostArray([5]), dense[2] > 0):
        found = a[:, columns]
        plain = mb.to_numpy(columns) if isinstance(columns, mb.HostArray) else columns
        assert isinstance(found, mb.CSR)
        np.testing.assert_array_equal(mb.to_numpy(found), dense[:, plain])
        np.testing.assert_array_equal(mb.to_numpy(a[1:5:2, columns]), dense[1:5:2, plain])


def test_astype_gives_the_order_that_is_asked_for():
    x = mb.HostArray(np.arange(6.0).reshape(2, 3))
    for given in (x, x.T):
        for order in "CFAK":
            made, wanted = given.astype("f4", order=order), mb.to_numpy(given).astype("f4", order=order)
            np.testing.assert_array_equal(made, wanted)
            if order in "CF":
                assert np.asarray(made).flags[f"{order}_CONTIGUOUS"]


def test_array_split_cuts_where_numpy_does_and_parts_stay_out_of_the_collectors_sight():
    for n in (0, 1, 5, 12):
        for k in range(1, 16):
            assert [p.tolist() for p in mb.array_split(mb.arange(n), k)] == [
                p.tolist() for p in np.array_split(np.arange(n), k)
            ], (n, k)
    # (Of 10**6 parts it looked at each again and again.) They go with their last name, as NumPy's do.
    part = mb.array_split(mb.HostArray(np.arange(6.0)), 3)[1]
    gone = weakref.ref(part)
    assert not gc.is_tracked(part)
    del part
    assert gone() is None


def test_array_split_into_too_many_parts_is_refused():
    with pytest.raises(ValueError, match="parts"):
        mb.array_split(mb.ones(3), 2**70)
    assert len(mb.array_split(mb.ones(3), 1000)) == 1000


def test_an_hdf5_file_whose_numbers_lie_elsewhere_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(b"12345678")
    with h5py.File(tmp_path / "outside.h5", "w") as f:
        f.create_dataset("x", (1,), "i8", external=[(str(tmp_path / "secret"), 0, 8)])
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["x"] = [1.0]
    with h5py.File(tmp_path / "virtual.h5", "w") as f:
        layout = h5py.VirtualLayout((1,), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (1,))
        f.create_virtual_dataset("x", layout)
    for name in ("outside", "virtual"):
        with pytest.raises(ValueError, match="other files"):
            mb.load(tmp_path / f"{name}.h5")


def test_where_of_numpys_arrays_and_a_number_of_ours_is_numpys():
    n, x = np.array([1.0, 5.0, 9.0]), mb.HostArray([2.0, 3.0, 6.0])
    for number in (x[0], x.max(), mb.sum(x) * 2):
        for found in (np.where(n > 2, n, number), np.where(n > 2, number, n), np.where(n > 2, number, 1)):
            assert type(found) is np.ndarray
        assert_same(np.where(n > 2, n, number), np.where(n > 2, n, float(number)))
    assert isinstance(np.where(n > 2, x, x[0]), mb.HostArray)
    assert isinstance(np.where(x > 2, n, x[0]), mb.HostArray)
    slope = mb.autodiff.gradient(lambda v: mb.sum(mb.asarray(np.where(n > 2, n, v[0]))), x)
    assert_same(slope, [1.0, 0.0, 0.0])


def test_columns_of_pandas_are_clipped_by_numbers_of_ours():
    pd = pytest.importorskip("pandas")
    s, x = pd.Series([1.0, 5.0, 9.0]), mb.HostArray([2.0, 3.0, 6.0])
    assert s.clip(x[0], x[2]).tolist() == s.clip(x.min(), x.max()).tolist() == [2.0, 5.0, 6.0]
    assert pd.DataFrame({"a": s}).clip(x[0], x[2])["a"].tolist() == [2.0, 5.0, 6.0]
    assert s.where(s > 2, x[0]).tolist() == [2.0, 5.0, 9.0]


def test_tables_of_pandas_compute_with_our_arrays():
    pd = pytest.importorskip("pandas")
    s, x = pd.Series(np.arange(4.0)), mb.HostArray([3.0, 2.0, 1.0, 0.0])
    for f in (np.maximum, np.hypot, np.add):
        for a, b in ((s, x), (x, s)):
            found = f(a, b)
            assert isinstance(found, pd.Series)
            np.testing.assert_array_equal(found.to_numpy(), f(mb.to_numpy(x), s.to_numpy()))
    assert np.maximum(pd.DataFrame({"a": s}), x[0])["a"].tolist() == [3.0] * 4


def test_links_of_hdf5_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "there.h5", "w") as f:
        f["x"] = np.ones(3)
    with h5py.File(tmp_path / "within.h5", "w") as f:
        f["group/y"] = np.arange(2.0)
        f["x"] = h5py.SoftLink("/group/y")
        f["nowhere"] = h5py.SoftLink("/lost")
        f["group/around"] = f["/"]  # (a ring ends)
    found = mb.load(tmp_path / "within.h5")
    assert sorted(found) == ["group/y", "x"] and found["x"].tolist() == [0.0, 1.0]
    with h5py.File(tmp_path / "outside.h5", "w") as f:
        f["x"] = h5py.ExternalLink(str(tmp_path / "there.h5"), "x")
    with pytest.raises(ValueError, match=r"'x' is a link to another file.*`mb\.load\('.*there\.h5'\)`"):
        mb.load(tmp_path / "outside.h5")
