"""The formats of files that hold arrays: how each is recognised, written and read.

NumPy arrays go in and come out; `arraytypes.io` makes ours of them.
"""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.dispatch.forks import ForkLock

BY_SUFFIX = {
    ".npy": "npy",
    ".npz": "npz",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
    ".zarr": "zarr",
}
KNOWN = ".npy, .npz, .h5 (or .hdf5) and .zarr"
_BY_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"\x89HDF\r\n\x1a\n": "hdf5",
}
_PACKAGES = {"hdf5": ("h5py", "HDF5"), "zarr": ("zarr", "zarr")}


def format_of(file: Any) -> str:
    """The format of a file by its first bytes, of a folder by what lies in it."""
    if isinstance(file, Path):
        if file.is_dir():
            if is_zarr(file):
                return "zarr"
            raise ValueError(f"{opening(file)} is a folder without a zarr array or group in it.")
        with open(file, "rb") as opened:  # says by itself if there is no such file
            head = opened.read(8)
    else:
        where = file.tell()
        head = file.read(8)
        file.seek(where)
    for magic, kind in _BY_MAGIC.items():
        if head.startswith(magic):
            return kind
    raise ValueError(
        f"{opening(file)} is no file of arrays: it is empty, damaged, or of another format. Read here are "
        f"{KNOWN}; for a text file use `mb.loadtxt(path)`."
    )


def is_zarr(folder: Path) -> bool:
    """Is a folder a zarr array or group?"""
    return any((folder / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def need(kind: str) -> None:
    """Import the package a format is written with, or say how to install it."""
    if kind not in _PACKAGES:
        return
    module, shown = _PACKAGES[kind]
    try:
        importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{shown} files are read and written by the package {module}, which is not installed. Install "
            f"it with `pip install {module}` (or `pip install 'mirabelle[io]'`), or save as .npz."
        ) from None


def title(file: Any) -> str:
    """How messages call a file."""
    name = str(file) if isinstance(file, Path) else getattr(file, "name", None)
    return f"the file {str(name)!r}" if isinstance(name, (str, Path)) else "the open file"


def opening(file: Any) -> str:
    """The same at the start of a sentence."""
    said = title(file)
    return said[0].upper() + said[1:]


# Writing


def write_npy(file: Any, data: Any, compressed: bool) -> None:
    refuse_compressed_npy(compressed)
    np.save(file, data, allow_pickle=False)


def refuse_compressed_npy(compressed: bool) -> None:
    if compressed:
        raise ValueError(
            ".npy files are not compressed. Save as .npz, .h5 or .zarr, or leave compressed=True away."
        )


def write_npy_header(file: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """What precedes the elements, in C order, of a `.npy` file."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def write_npz(file: Any, data: Any, compressed: bool) -> None:
    # np.savez takes names as keywords, and would not take "file" or a path.
    mode = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", mode, allowZip64=True) as archive:
        for name, values in data.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(values), allow_pickle=False)


def write_hdf5(file: Path, data: Any, compressed: bool) -> None:
    import h5py

    with h5py.File(file, "w") as out:
        for name, values in data.items():
            packed = compressed and values.ndim > 0
            out.create_dataset(
                name, data=values, **({"compression": "gzip", "shuffle": True} if packed else {})
            )


def write_zarr(file: Path, data: Any, compressed: bool) -> None:
    import zarr

    options: Any = {} if compressed else {"compressors": None}
    if not isinstance(data, dict):
        zarr.create_array(store=str(file), data=data, **options)
        return
    root = zarr.open_group(store=str(file), mode="w")
    for name, values in data.items():
        root.create_array(name, data=values, **options)


# Reading


# (Python 3.11 counts how deep syntax trees are for all threads at once: two that read headers were an error.)
_reading = ForkLock()


def read_npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The shape of the array in a `.npy` file, whether it is in Fortran's order, its dtype."""
    version = np.lib.format.read_magic(file)
    # Later versions are for longer headers and for names of fields, in the same form.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with _reading:
        shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it needs allow_pickle")
    return shape, fortran, dtype


def read_npy(file: Any, name: Any) -> np.ndarray:
    if isinstance(file, Path):
        with open(file, "rb") as opened:
            return read_npy(opened, name)
    return np.load(file, allow_pickle=False)  # type: ignore[no-any-return]


def read_npz(file: Any, name: str | None) -> Any:
    if isinstance(file, Path):
        with open(file, "rb") as opened:
            return read_npz(opened, name)
    start = file.tell()
    with np.load(file, allow_pickle=False) as archive:
        found = chosen(file, list(archive.files), name, archive.__getitem__)
    file.seek(start)  # where reading left it means nothing: so it can be read again
    return found


def inside(file: Any, dataset: Any) -> Any:
    """A data set of an HDF5 file whose numbers lie in that file: what names other files is refused."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(
            f"{opening(file)} has an array {dataset.name!r} whose numbers lie in other files, and one from "
            "elsewhere could name any file. If you trust it, read it with h5py: "
            f"`mb.HostArray(h5py.File(path)[{dataset.name!r}][()])`."
        )
    return dataset


def read_hdf5(file: Any, name: str | None) -> Any:
    import h5py

    with h5py.File(file, "r") as root:
        opened: Any = root
        return chosen(file, [*_datasets(file, root, ())], name, lambda key: inside(file, opened[key])[()])


def _datasets(file: Any, group: Any, around: tuple[Any, ...]) -> Iterator[str]:
    """The names of the arrays in a group of an HDF5 file, those that links within the file name among them."""
    import h5py

    for key in group:
        link = group.get(key, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise ValueError(
                f"its array {key!r} is a link to another file, and one from elsewhere could name any. If you "
                f"trust it, read that one: `mb.load({link.filename!r})`."
            )
        item = group.get(key)  # (None, where a link leads nowhere)
        if isinstance(item, h5py.Dataset):
            yield key
        elif isinstance(item, h5py.Group) and item not in (*around, group):
            yield from [f"{key}/{name}" for name in _datasets(file, item, (*around, group))]


def read_zarr(file: Path, name: str | None) -> Any:
    import zarr

    opened: Any = zarr.open(str(file), mode="r")
    if isinstance(opened, zarr.Array):
        if name is not None:
            raise nameless(file, name)
        return np.asarray(opened[...])
    names = sorted(key for key, item in opened.members(max_depth=None) if isinstance(item, zarr.Array))
    return chosen(file, names, name, lambda key: np.asarray(opened[key][...]))


def nameless(file: Any, name: str) -> KeyError:
    return KeyError(f"{opening(file)} holds one array without a name. Leave {name!r} away.")


def chosen(file: Any, names: list[str], name: str | None, read: Callable[[str], Any]) -> Any:
    """The array of that name, or all of them."""
    if name is None:
        return {key: read(key) for key in names}
    if name not in names:
        shown = ", ".join(map(repr, names[:8])) or "none"
        raise KeyError(
            f"{opening(file)} has no array {name!r}. It has {shown}{', ...' if len(names) > 8 else ''}."
        )
    return read(name)


WRITERS: dict[str, Callable[[Any, Any, bool], None]] = {
    "npy": write_npy, "npz": write_npz, "hdf5": write_hdf5, "zarr": write_zarr,
}  # fmt: skip
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "npy": read_npy, "npz": read_npz, "hdf5": read_hdf5, "zarr": read_zarr,
}  # fmt: skip
