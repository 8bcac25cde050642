"""Files: `mb.save` and `mb.load`, from and to any place.

The name says the format: `.npy` holds one array, `.npz`, `.h5` and `.zarr` hold several by name.
NumPy, h5py and zarr read what is written here, and the other way round. Whatever an array is, a
file holds its elements: a device's are fetched, a wrapper's or a structured array's are written
out. A file appears under its name once it is complete.

>>> import mirabelle as mb, tempfile, os
>>> folder = tempfile.TemporaryDirectory()
>>> path = os.path.join(folder.name, "state.npz")
>>> mb.save(path, {"u": mb.RefArray([1.0, 2.0]), "step": mb.HostArray(7)})
>>> state = mb.load(path, device=mb.RefArray)
>>> state["u"].place, int(state["step"])
(ref:0, 7)
>>> folder.cleanup()
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes import fileformats as formats
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import as_numpy, wrap
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import misuse, verbs
from mirabelle.dispatch.tree import Leaf


def save(file: Any, x: Any, /, *, compressed: bool = False, allow_pickle: bool = False) -> None:
    """Write an array, or a mapping of names to arrays, to a file whose name says the format.

    `.npy` takes one array. `.npz`, `.h5` and `.zarr` take a mapping, whose names may be paths
    (`"fields/u"`) in the last two; a single array is a `.zarr` of its own and `"arr_0"` in the
    others. An open file is written as `.npy`. Where a file of that name stands it is replaced, at
    once, when everything is written. Of a distributed array every rank writes its part: all ranks
    save together, under one name. (`allow_pickle` is NumPy's: arrays hold numbers, and none is pickled.)

    Parameters
    ----------
    file : str, path or open file
        The file.
    x : array or mapping
        An array, or names and arrays.
    compressed : bool, default False
        Whether it is compressed.
    allow_pickle : bool, default False
        Taken for NumPy's sake: objects of Python are neither written nor read.

    Examples
    --------
    >>> import mirabelle as mb, io
    >>> file = io.BytesIO()
    >>> mb.save(file, mb.HostArray([1, 2]) + 1)
    >>> _ = file.seek(0)
    >>> print(mb.load(file))
    [2 3]
    """
    if hasattr(file, "write"):
        np.save(file, contents(file, "", _by_name(file, "npy", x)[""]), allow_pickle=False)
        return
    if isinstance(file, AbstractArray):
        raise TypeError("mb.save: the file stands first, `mb.save('x.npy', x)`.")
    path = Path(os.fspath(file))
    if not path.suffix:
        path = path.with_name(path.name + ".npy")  # as NumPy does
    kind = formats.BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            f"{path.suffix} is no format arrays are saved in: the name's ending says the format, and the known "
            f"ones are {formats.KNOWN}. Name one, for instance `mb.save({str(path.with_suffix('.npz'))!r}, x)`."
        )
    _write(path, kind, _by_name(path, kind, x), compressed)


@creates
@misuse.explained
def load(
    file: Any, /, name: str | None = None, *, device: Any = None, mmap: bool = False,
    mmap_mode: str | None = None, allow_pickle: bool = False,
) -> AbstractArray | dict[str, AbstractArray]:  # fmt: skip
    """Read what `mb.save`, NumPy, h5py or zarr wrote; the contents say the format.

    One array, or a dictionary of all arrays by name, where `name` picks one. `device` says what
    they are made as: of a distributed array every rank reads its part only. `mmap=True` leaves the
    elements of a `.npy` file on disk and reads those that are used; NumPy's `mmap_mode="r"` is the same.
    Files with Python's objects are refused, whatever NumPy's `allow_pickle` says.

    Parameters
    ----------
    file : str, path or open file
        The file.
    name : str or None
        Which array of a file of several; None is the only one, or all as a mapping.
    device : array type, place or None
        Where the array is made; None is the default array type.
    mmap : bool, default False
        Whether the file stays open and is read when it is needed.
    mmap_mode : str or None
        NumPy's name for that.
    allow_pickle : bool, default False
        Taken for NumPy's sake: objects of Python are neither written nor read.

    Returns
    -------
    array or dict
        An array of a file of one (`.npy`), or with `name`; of a file of names a dict of its arrays. With
        `mmap` an array cannot be written to.

    Examples
    --------
    >>> import mirabelle as mb, numpy as np, io
    >>> file = io.BytesIO()
    >>> np.savez(file, u=np.ones(2), v=np.zeros(3))
    >>> _ = file.seek(0)
    >>> sorted(mb.load(file)), mb.load(file, "u").tolist()
    (['u', 'v'], [1.0, 1.0])
    """
    maker = maker_of(device)
    if mmap_mode not in (None, "r"):
        raise ValueError(f'A file that is mapped is only read: mmap=True, or mmap_mode="r", not {mmap_mode!r}.')
    mmap = mmap or mmap_mode == "r"
    if not hasattr(file, "read"):
        file = Path(os.fspath(file))
        if not file.exists() and not file.suffix and file.with_name(file.name + ".npy").exists():
            file = file.with_name(file.name + ".npy")
    if isinstance(file, Path) and is_divided(maker.family) and not mmap:
        from mirabelle.arraytypes.distributed import files  # which stands on this module

        loaded = files.load(file, name, maker.family)
        return {key: maker(x) for key, x in loaded.items()} if isinstance(loaded, dict) else maker(loaded)
    kind = formats.format_of(file)
    if mmap:
        if kind != "npy" or not isinstance(file, Path):
            raise ValueError("Only a .npy file with a name can be read by mmap. Leave mmap=True away.")
        return _mapped(file, maker)
    formats.need(kind)
    with explained(file):
        found = formats.READERS[kind](file, name)
    if isinstance(found, dict):
        return {key: _made(file, key, value, maker) for key, value in found.items()}
    if name is not None and kind == "npy":
        raise formats.nameless(file, name)
    return _made(file, name, found, maker)


def savez(file: Any, /, *arrays: Any, allow_pickle: bool = False, **named: Any) -> None:
    """Write several arrays to a `.npz` file; those without a name become "arr_0", "arr_1", ...

    Parameters
    ----------
    file : str, path or open file
        The file.
    *arrays : arrays
        Without names.
    allow_pickle : bool, default False
        Taken for NumPy's sake: objects of Python are neither written nor read.
    **named : arrays
        By name.

    Examples
    --------
    >>> import mirabelle as mb, io
    >>> file = io.BytesIO()
    >>> mb.savez(file, mb.HostArray([1]), b=mb.HostArray([2.5]))
    >>> _ = file.seek(0)
    >>> {name: x.tolist() for name, x in mb.load(file).items()}
    {'b': [2.5], 'arr_0': [1]}
    """
    _savez(file, arrays, named, False)


def savez_compressed(file: Any, /, *arrays: Any, allow_pickle: bool = False, **named: Any) -> None:
    """As `mb.savez`, compressed.

    Parameters
    ----------
    file : str, path or open file
        The file.
    *arrays : arrays
        Without names.
    allow_pickle : bool, default False
        Taken for NumPy's sake: objects of Python are neither written nor read.
    **named : arrays
        By name.

    Examples
    --------
    >>> import mirabelle as mb
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mb.savez_compressed(f"{folder}/both.npz", x=mb.ones(2), y=mb.zeros(3))
    ...     print(sorted(mb.load(f"{folder}/both.npz")))
    ['x', 'y']
    """
    _savez(file, arrays, named, True)


def _savez(file: Any, arrays: tuple[Any, ...], named: dict[str, Any], compressed: bool) -> None:
    together = dict(named)
    for i, x in enumerate(arrays):
        if f"arr_{i}" in together:
            raise ValueError(f"Two arrays would be called arr_{i}: the first by its place. Name it otherwise.")
        together[f"arr_{i}"] = x
    if hasattr(file, "write"):
        data = {name: contents(file, name, x) for name, x in _by_name(file, "npz", together).items()}
        formats.write_npz(file, data, compressed)
        return
    path = Path(os.fspath(file))
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    _write(path, "npz", _by_name(path, "npz", together), compressed)


# What is written


def _write(path: Path, kind: str, arrays: dict[str, Any], compressed: bool) -> None:
    if any(isinstance(x, AbstractArray) and is_divided(type(x)) for x in arrays.values()):
        from mirabelle.arraytypes.distributed import files  # which stands on this module

        files.save(path, arrays, kind, compressed)
        return
    data: Any = {name: contents(path, name, x) for name, x in arrays.items()}
    formats.need(kind)
    nbytes = 0 if compressed else sum(x.nbytes for x in data.values())
    with permitted(path), replacing(path, nbytes) as fresh:
        formats.WRITERS[kind](fresh, data.get("", data), compressed)


def is_divided(t: Any) -> bool:
    """Are arrays of a type divided over processes, each of which writes and reads its part?"""
    return hasattr(leaf_family(t), "_from_boxes")


def contents(file: Any, name: str, x: Any) -> np.ndarray:
    """The elements of one array, checked to be numbers."""
    if isinstance(x, AbstractArray):
        return np.asarray(verbs.fetch(x))
    try:
        return as_numpy(x, None)
    except (TypeError, ValueError) as e:
        what = f"{name!r}" if name else "This"
        raise TypeError(
            f"{what} is a {type(x).__name__}, which {formats.title(file)} cannot hold. {e} Several arrays go "
            'together as a mapping: `mb.save("file.npz", {"a": a, "b": b})`.'
        ) from None


def _by_name(file: Any, kind: str, x: Any) -> dict[str, Any]:
    """What goes into a file, by checked names: "" where the only array has none."""
    if not isinstance(x, Mapping):
        return {"arr_0" if kind in ("npz", "hdf5") else "": x}
    if kind == "npy":
        raise TypeError(
            f"{formats.opening(file)} holds one array, and a mapping of {len(x)} was given. A .npz file holds "
            'several: `mb.save("file.npz", arrays)`.'
        )
    for name in x:
        if not isinstance(name, str) or not name or name.strip("/") != name or ".." in name.split("/"):
            raise ValueError(
                f"{name!r} is no name an array can have in {formats.title(file)}: names are texts such as "
                "'u' or 'fields/u'."
            )
    return dict(x)


@contextlib.contextmanager
def permitted(path: Path) -> Iterator[None]:
    """Say of what is not permitted in the block that it was the saving of a file."""
    try:
        yield
    except PermissionError as e:
        said = f"{path.name!r} cannot be saved, because its folder may not be written to"
        raise PermissionError(e.errno, said, str(path.parent)) from e


@contextlib.contextmanager
def replacing(path: Path, nbytes: int = 0) -> Iterator[Path]:
    """A name to write to beside `path`, which takes the name `path` when all went well.

    Where there is no room for so many bytes that is said at once: libraries end their process over a full disk.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(path.parent)!r} to save {path.name!r} in. Make it first."
        )
    path = Path(os.path.realpath(path))  # a link goes on showing where it did
    if _is_other(path) and _is_other(path):  # twice, as another process may just be replacing it
        raise FileExistsError(
            f"A folder that is no zarr store stands at {str(path)!r}, and what lies in it would be lost. "
            "Save under another name, or move the folder away."
        )
    if (free := shutil.disk_usage(path.parent).free) < nbytes:
        raise OSError(
            errno.ENOSPC,
            f"There is no room for {path.name!r}: its arrays take {nbytes / 1e6:.6g} MB, and "
            f"{free / 1e6:.6g} MB are free. Make room, or save elsewhere. What stood there before is unharmed",
            str(path.parent),
        )
    fresh = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        yield fresh
        if not fresh.is_dir() and not path.is_dir():
            os.replace(fresh, path)
            return
        while not _stepped_in(fresh, path):
            pass
    finally:
        _remove(fresh)


def _stepped_in(fresh: Path, path: Path) -> bool:
    """Put `fresh` where `path` stands; False if another process has just put its own there.

    A folder cannot be put over another: the old one steps aside first.
    """
    old = path.with_name(f".{path.stem}-{secrets.token_hex(6)}.old")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, old)
        os.rename(fresh, path)
    except OSError as e:
        if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
            if old.exists():
                os.rename(old, path)
            raise
        _remove(old)
        return False
    _remove(old)
    return True


def _is_other(path: Path) -> bool:
    """Is it a folder with something in it that is no zarr store?"""
    try:
        return path.is_dir() and any(path.iterdir()) and not formats.is_zarr(path)
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _made(file: Any, name: str | None, values: Any, maker: Any) -> Any:
    """New memory as an array of the maker's type."""
    values = np.asarray(values)
    with numbers_only(file, name):
        native = values.astype(checked_dtype(values.dtype), copy=False)
    leaf = maker.family._wrap_numpy(native)
    # What was read is nobody else's: expressions over it may wait.
    return maker(wrap(maker.family, Leaf(leaf.view)))


@contextlib.contextmanager
def numbers_only(file: Any, name: str | None) -> Iterator[None]:
    """Say of which array of a file it was that the block could not take its dtype."""
    try:
        yield
    except TypeError as e:
        what = f"{name!r} in {formats.title(file)}" if name else formats.opening(file)
        raise TypeError(
            f"{what} is no array of numbers. {e} Pick others by name: `mb.load(file, name)`."
        ) from None


def _mapped(file: Path, maker: Any) -> Any:
    from mirabelle.arraytypes.host import HostArray, share

    if maker.family is not HostArray:
        raise ValueError(
            f"A file is mapped into the host's memory, not into that of {maker.name}. Use mb.HostArray."
        )
    with explained(file):
        return maker(share(np.load(file, mmap_mode="r", allow_pickle=False)))


@contextlib.contextmanager
def explained(file: Any) -> Iterator[None]:
    """Name the file in what goes wrong while it is read."""
    try:
        yield
    except (KeyError, FileNotFoundError):
        raise
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as e:
        cause = str(e).strip().split("\n")[0].rstrip(".")
        if "allow_pickle" in cause:
            cause = "it holds Python objects, which are not read because reading them can run any program"
        raise ValueError(f"{formats.opening(file)} cannot be read: {cause}.") from e
