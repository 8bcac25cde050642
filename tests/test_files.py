"""Saving and loading: what comes back is what went in, and what goes wrong loses nothing."""

import io
import os
import pathlib
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from compare import assert_closed, assert_same
from kinds import LEAVES, PLAIN, SINGLE
from samples import ordinary

import mirabelle as mb
from mirabelle.arraytypes import fileformats

# Endings, and the package a format needs.
ENDINGS = {".npy": None, ".npz": None, ".h5": "h5py", ".hdf5": "h5py", ".zarr": "zarr"}
NAMED = [ending for ending in ENDINGS if ending != ".npy"]

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
endings = pytest.mark.parametrize("ending", ENDINGS)
named = pytest.mark.parametrize("ending", NAMED)


def need(ending):
    if ENDINGS.get(ending):
        pytest.importorskip(ENDINGS[ending])


def left_behind(folder):
    return sorted(p.name for p in pathlib.Path(folder).iterdir())


def only(loaded):
    """The single array of a file."""
    return loaded["arr_0"] if isinstance(loaded, dict) else loaded


# What goes in comes out


@endings
@plain
def test_an_array_comes_back(ending, kind, tmp_path):
    need(ending)
    x = kind.make(ordinary("f8", (3, 4)))
    path = tmp_path / f"x{ending}"
    assert mb.save(path, x) is None
    back = only(mb.load(path, device=kind.family))
    assert_same(back, mb.to_numpy(x))
    assert_closed(back, kind)
    assert left_behind(tmp_path) == [path.name]


@endings
@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape(ending, dtype, shape, tmp_path):
    need(ending)
    values = np.ones(shape, dtype)
    path = str(tmp_path / f"x{ending}")
    for compressed in (False, True):
        if compressed and ending == ".npy":
            continue
        mb.save(path, mb.HostArray(values), compressed=compressed)
        assert_same(only(mb.load(path)), values)


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_whatever_an_array_is_its_elements_are_written(kind, tmp_path):
    values = kind.sample(ordinary("f8", (3, 4)))
    mb.save(tmp_path / "x.npy", kind.make(values))
    assert_same(np.load(tmp_path / "x.npy"), values)


@pytest.mark.parametrize(
    "x",
    [
        lambda: mb.Diagonal([1.0, 2.0]),
        lambda: mb.Kronecker(mb.HostArray(np.eye(2)), mb.HostArray([[1.0, 2.0]])),
        lambda: mb.sin(mb.HostArray([1.0, 2.0])) * 2,
        lambda: mb.broadcast_to(mb.RefArray([1, 2]), (3, 2)),
        lambda: [1.0, 2.0],
        lambda: 3.5,
        lambda: np.arange(4)[::2],
        lambda: np.arange(3, dtype=">i4"),
    ],
)
def test_structured_pending_and_foreign_data(x, tmp_path):
    mb.save(tmp_path / "x.npy", x())
    values = mb.to_numpy(x()) if isinstance(x(), mb.AbstractArray) else np.asarray(x())
    assert_same(mb.load(tmp_path / "x.npy"), values.astype(values.dtype.newbyteorder("=")))


@named
@plain
def test_several_arrays_by_name(ending, kind, tmp_path):
    need(ending)
    path = tmp_path / f"state{ending}"
    state = {"u": kind.make(ordinary("f8", (3, 4))), "step": mb.HostArray(7), "mask": np.array([True, False])}
    mb.save(path, state)
    back = mb.load(path, device=kind.family)
    assert sorted(back) == sorted(state)
    for name, x in back.items():
        assert_same(x, mb.to_numpy(state[name]))
        assert_closed(x, kind)
        assert_same(mb.load(path, name), mb.to_numpy(state[name]))


@named
def test_no_arrays_at_all(ending, tmp_path):
    need(ending)
    path = tmp_path / f"state{ending}"
    mb.save(path, {"u": mb.zeros(2)})
    mb.save(path, {})
    assert mb.load(path) == {}


@pytest.mark.parametrize("ending", [".h5", ".zarr"])
def test_names_may_be_paths(ending, tmp_path):
    need(ending)
    path = tmp_path / f"x{ending}"
    mb.save(path, {"fields/u": mb.zeros(2), "fields/v": mb.ones(2), "t": mb.HostArray(0.5)})
    assert sorted(mb.load(path)) == ["fields/u", "fields/v", "t"]
    assert mb.load(path, "fields/v").tolist() == [1.0, 1.0]


def test_a_large_array_in_pieces_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    values = np.arange(60_000.0).reshape(300, 200)
    mb.save(tmp_path / "x.zarr", mb.HostArray(values))
    assert_same(mb.load(tmp_path / "x.zarr"), values)
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "x.zarr"), mode="r")[3:5], values[3:5])


def test_other_programs_read_and_write_the_same_files(tmp_path):
    values = ordinary("f8", (3, 4))
    x = mb.HostArray(values)
    mb.savez(tmp_path / "a", x, b=x.T)
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(file["arr_0"], values)
        np.testing.assert_array_equal(file["b"], values.T)
    np.savez_compressed(tmp_path / "c.npz", values, u=values > 0)
    back = mb.load(tmp_path / "c.npz")
    assert_same(back["arr_0"], values)
    assert_same(back["u"], values > 0)
    np.save(tmp_path / "f.npy", np.asfortranarray(values))
    assert_same(mb.load(tmp_path / "f.npy"), values)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["deep/er/u"] = values
        file["n"] = 3
    assert_same(mb.load(tmp_path / "d.h5", "deep/er/u"), values)
    assert int(mb.load(tmp_path / "d.h5")["n"]) == 3
    mb.save(tmp_path / "e.h5", {"u": x}, compressed=True)
    with h5py.File(tmp_path / "e.h5") as file:
        np.testing.assert_array_equal(file["u"][()], values)


def test_savez_names_and_compresses(tmp_path):
    x = mb.zeros(10_000)
    mb.savez(tmp_path / "plain.npz", x, u=x)
    mb.savez_compressed(tmp_path / "small.npz", x, u=x)
    assert sorted(mb.load(tmp_path / "small.npz")) == ["arr_0", "u"]
    assert os.path.getsize(tmp_path / "small.npz") < os.path.getsize(tmp_path / "plain.npz") / 10
    with pytest.raises(ValueError, match="Two arrays would be called arr_0"):
        mb.savez(tmp_path / "x.npz", x, arr_0=x)
    assert "x.npz" not in left_behind(tmp_path)


def test_open_files(tmp_path):
    file = io.BytesIO()
    mb.save(file, mb.RefArray([1, 2]))
    mb.save(file, mb.HostArray([3.0]))
    file.seek(0)
    assert mb.load(file).tolist() == [1, 2] and mb.load(file).tolist() == [3.0]  # one after another
    with open(tmp_path / "x", "wb") as opened:
        mb.save(opened, mb.HostArray([1.5]))
    with open(tmp_path / "x", "rb") as opened:
        assert mb.load(opened).tolist() == [1.5]
    assert mb.load(tmp_path / "x").tolist() == [1.5]  # the contents say the format


def test_a_name_without_an_ending_is_npys(tmp_path):
    mb.save(tmp_path / "x", mb.HostArray([1.0]))
    assert left_behind(tmp_path) == ["x.npy"]
    assert mb.load(tmp_path / "x").tolist() == [1.0]


def test_links_stay_links(tmp_path):
    mb.save(tmp_path / "x.npy", mb.HostArray([1.0]))
    (tmp_path / "link.npy").symlink_to(tmp_path / "x.npy")
    mb.save(tmp_path / "link.npy", mb.HostArray([2.0]))
    assert (tmp_path / "link.npy").is_symlink() and mb.load(tmp_path / "x.npy").tolist() == [2.0]


# What is loaded


def test_expressions_over_what_was_loaded_wait(tmp_path, many):
    mb.save(tmp_path / "x.npy", mb.arange(5.0))
    x = mb.load(tmp_path / "x.npy")
    with mb.count() as seen:
        y = x * 2 + 1
    assert seen.launches == 0
    assert_same(y, np.arange(5.0) * 2 + 1)
    x[0] = 7
    assert x.tolist()[0] == 7.0


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_loading_goes_where_the_default_says(ending, tmp_path):
    mb.save(tmp_path / f"x{ending}", mb.HostArray([1.0]))
    with mb.default_array(mb.RefArray):
        assert isinstance(only(mb.load(tmp_path / f"x{ending}")), mb.RefArray)
    assert isinstance(only(mb.namespace(mb.RefArray).load(tmp_path / f"x{ending}")), mb.RefArray)


def test_memory_mapped_files(tmp_path):
    values = ordinary("f8", (30, 40))
    mb.save(tmp_path / "x.npy", mb.HostArray(values))
    x = mb.load(tmp_path / "x.npy", mmap=True)
    assert_same(x[3:5] + 1, values[3:5] + 1)
    with pytest.raises(ValueError, match="read-only"):
        x[0, 0] = 1.0
    # A file that is mapped may be replaced: the map shows the old one.
    mb.save(tmp_path / "x.npy", mb.zeros(3))
    assert_same(x, values)
    assert mb.load(tmp_path / "x.npy").shape == (3,)
    mb.savez(tmp_path / "x.npz", mb.zeros(3))
    with pytest.raises(ValueError, match=r"Only a \.npy file"):
        mb.load(tmp_path / "x.npz", mmap=True)
    with pytest.raises(ValueError, match=r"host's memory"):
        mb.load(tmp_path / "x.npy", mmap=True, device=mb.RefArray)


# Bad input: what is read


def test_a_file_that_is_not_there(tmp_path):
    for ending in ENDINGS:
        with pytest.raises(FileNotFoundError, match=f"x{ending}"):
            mb.load(tmp_path / f"x{ending}")


@pytest.mark.parametrize("contents", [b"", b"\x00", b"1.0 2.0\n", b"\x89PNG\r\n\x1a\n0000"])
def test_a_file_of_another_format(contents, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"x\.npy' is no file of arrays"):
        mb.load(path)


def test_a_folder_without_arrays(tmp_path):
    with pytest.raises(ValueError, match="without a zarr array"):
        mb.load(tmp_path)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize("part", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_truncated_file(ending, part, compressed, tmp_path):
    need(ending)
    if compressed and ending == ".npy":
        return
    path = tmp_path / f"x{ending}"
    x = np.random.default_rng(0).random(1000)
    mb.save(path, x if ending == ".npy" else {"u": x}, compressed=compressed)
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(ValueError, match=rf"x\{ending}' cannot be read"):
        mb.load(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_member_of_an_archive(compressed, tmp_path):
    path = tmp_path / "x.npz"
    mb.save(path, {"u": np.random.default_rng(0).random(1000)}, compressed=compressed)
    data = bytearray(path.read_bytes())
    data[2000:2100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.npz' cannot be read"):
        mb.load(path)


def test_a_damaged_zarr(tmp_path):
    pytest.importorskip("zarr")
    mb.save(tmp_path / "x.zarr", np.random.default_rng(0).random((50, 50)))
    (chunk,) = (p for p in (tmp_path / "x.zarr" / "c").rglob("*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"x\.zarr' cannot be read"):
        mb.load(tmp_path / "x.zarr")
    (tmp_path / "x.zarr" / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match=r"x\.zarr' cannot be read"):
        mb.load(tmp_path / "x.zarr")


def test_an_archive_of_other_things(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises((TypeError, ValueError), match="readme"):
        mb.load(tmp_path / "x.npz")


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="can run any program"):
        mb.load(tmp_path / "x.npy")


def test_arrays_of_texts_and_records(tmp_path):
    np.save(tmp_path / "t.npy", np.array(["a", "b"]))
    np.savez(tmp_path / "r.npz", good=np.zeros(2), record=np.zeros(2, "i4,f8"))
    for name in ("t.npy", "r.npz"):
        with pytest.raises(TypeError, match="no array of numbers"):
            mb.load(tmp_path / name)
    assert mb.load(tmp_path / "r.npz", "good").shape == (2,)


@named
def test_a_name_that_a_file_does_not_have(ending, tmp_path):
    need(ending)
    path = tmp_path / f"x{ending}"
    mb.save(path, {"u": mb.zeros(2), "v": mb.zeros(2)})
    with pytest.raises(KeyError, match=r"no array 'w'\. It has 'u', 'v'"):
        mb.load(path, "w")


def test_a_name_where_there_are_none(tmp_path):
    mb.save(tmp_path / "x.npy", mb.zeros(2))
    with pytest.raises(KeyError, match="without a name"):
        mb.load(tmp_path / "x.npy", "u")


# Bad input: what is written. The file that stood there stays.


@pytest.fixture
def kept(tmp_path):
    """A folder with one good file, which must be all there is afterwards."""
    mb.save(tmp_path / "x.npz", {"u": mb.HostArray([1.0, 2.0])})
    yield tmp_path
    assert left_behind(tmp_path) == ["x.npz"]
    assert mb.load(tmp_path / "x.npz", "u").tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["x.csv", "x.npz.gz", "x.txt"])
def test_an_ending_that_is_no_format(name, kept):
    with pytest.raises(ValueError, match=r"no format arrays are saved in.*\.npz"):
        mb.save(kept / name, mb.zeros(2))


def test_a_folder_that_is_not_there(kept):
    with pytest.raises(FileNotFoundError, match="no folder"):
        mb.save(kept / "deep" / "x.npy", mb.zeros(2))


@pytest.mark.parametrize(
    "data",
    [
        {"u": mb.zeros(2), "v": "text"},
        {"u": [[1.0], [1.0, 2.0]]},
        {"u": object()},
        {"u": None},
        {1: mb.zeros(2)},
        {"": mb.zeros(2)},
        {"../x": mb.zeros(2)},
        {"u": {"v": mb.zeros(2)}},
        {"u": np.array(["a"])},
        object(),
        "x",
    ],
)
@named
def test_data_that_is_no_array(data, ending, kept):
    need(ending)
    with pytest.raises((TypeError, ValueError)):
        mb.save(kept / f"x{ending}", data)


def test_a_mapping_in_a_file_of_one_array(kept):
    with pytest.raises(TypeError, match=r"holds one array.*\.npz"):
        mb.save(kept / "x.npy", {"u": mb.zeros(2)})
    with pytest.raises(ValueError, match="not compressed"):
        mb.save(kept / "x.npy", mb.zeros(2), compressed=True)


@pytest.mark.parametrize("ending", NAMED)
def test_a_disk_that_is_full(ending, kept, monkeypatch):
    """Half of the file is written, then the device says no."""
    need(ending)
    kind = fileformats.BY_SUFFIX[ending]
    write = fileformats.WRITERS[kind]

    def half(file, data, compressed):
        write(file, data, compressed)
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(fileformats.WRITERS, kind, half)
    with pytest.raises(OSError, match="No space left"):
        mb.save(kept / f"x{ending}", {"u": mb.zeros(3)})


@pytest.mark.parametrize("ending", NAMED)
def test_no_room_is_said_before_anything_is_written(ending, kept, monkeypatch):
    """(HDF5 ends the process some time after it could not write.)"""
    need(ending)
    monkeypatch.setattr(shutil, "disk_usage", lambda where: SimpleNamespace(free=8000))
    for array in (mb.zeros(1001), mb.DArray[mb.HostArray](np.zeros(1001))):
        with pytest.raises(
            OSError, match=r"no room for 'x.*its arrays take 0.008008 MB, and 0.008 MB are free"
        ):
            mb.save(kept / f"x{ending}", {"u": array})


def test_an_expression_that_fails_while_it_is_saved(kept):
    def fails(v):
        raise ZeroDivisionError("in the user's function")

    with pytest.raises(Exception, match=r"(?s)in the user's function|broadcast|compile"):
        mb.save(kept / "x.npz", {"u": mb.broadcast(fails, mb.HostArray([1.0]))})


def test_a_folder_in_the_way_is_not_deleted(kept):
    folder = kept / "folder.npz"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="would be lost"):
        mb.save(folder, mb.zeros(2))
    assert (folder / "thesis.txt").read_text() == "years of work"
    (folder / "thesis.txt").unlink()
    folder.rmdir()


def test_a_zarr_replaces_a_zarr_and_nothing_else(tmp_path):
    pytest.importorskip("zarr")
    path = tmp_path / "x.zarr"
    mb.save(path, {"u": mb.zeros(3), "v": mb.zeros(3)})
    mb.save(path, {"w": mb.ones(2)})
    assert sorted(mb.load(path)) == ["w"] and left_behind(tmp_path) == ["x.zarr"]
    mb.save(path, mb.ones(2))
    assert mb.load(path).tolist() == [1.0, 1.0]
    (tmp_path / "y.zarr").mkdir()
    mb.save(tmp_path / "y.zarr", mb.ones(2))  # an empty folder holds nothing to lose
    (tmp_path / "z.zarr").mkdir()
    (tmp_path / "z.zarr" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"z\.zarr"):
        mb.save(tmp_path / "z.zarr", mb.ones(2))
    assert (tmp_path / "z.zarr" / "notes.txt").read_text() == "mine"


def test_a_folder_that_may_not_be_written_to(kept, monkeypatch):
    def refused(file, data, compressed):  # (the superuser may write anywhere)
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setitem(fileformats.WRITERS, "npz", refused)
    with pytest.raises(PermissionError, match=r"'x\.npz' cannot be saved.*folder"):
        mb.save(kept / "x.npz", mb.zeros(2))


@pytest.mark.parametrize("module", ["h5py", "zarr"])
def test_a_package_that_is_not_installed(module, kept, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install {module}.*or save as \.npz"):
        mb.save(kept / {"h5py": "x.h5", "zarr": "x.zarr"}[module], mb.zeros(2))


def test_a_pending_array_is_saved_as_it_was_said(tmp_path):
    for kind in LEAVES.values():
        x = kind.make(np.array([1.0, 2.0]))
        y = x * 2
        if kind.writable and kind.lazy:
            x[...] = 0
        mb.save(tmp_path / "y.npy", y)
        assert np.load(tmp_path / "y.npy").tolist() == [2.0, 4.0]


def test_a_zarr_that_cannot_be_put_in_place(tmp_path, monkeypatch):
    """The old one, which had stepped aside, is back."""
    pytest.importorskip("zarr")
    mb.save(tmp_path / "x.zarr", mb.ones(2))
    rename = os.rename

    def refused(old, new):
        if pathlib.Path(new).name == "x.zarr" and not str(old).endswith(".old"):
            raise PermissionError(13, "Permission denied", str(new))
        rename(old, new)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(PermissionError, match="folder may not be written to"):
        mb.save(tmp_path / "x.zarr", mb.zeros(3))
    assert left_behind(tmp_path) == ["x.zarr"]
    assert mb.load(tmp_path / "x.zarr").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("ending", [".npy", ".zarr"])
def test_several_that_save_under_one_name_at_a_time(ending, tmp_path):
    need(ending)
    path = tmp_path / f"x{ending}"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: mb.save(path, np.full(3, i)), range(40)))
    assert left_behind(tmp_path) == [path.name]
    assert len(set(mb.load(path).tolist())) == 1
