"""The formats of files of distributed arrays: how ranks write and read their boxes.

`.npy`, `.zarr` and, where h5py is built with MPI, `.h5` are written by all ranks at the same time. The HDF5
library allows one writer without MPI: there ranks take turns. An archive (`.npz`) has a checksum over
each array, so rank 0 packs what all have written.

A writer is called on all ranks and raises on all of them what one failed at. A reader opens a file on
one rank and reads boxes of it.
"""

from __future__ import annotations

import contextlib
import functools
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes import fileformats as formats
from mirabelle.arraytypes.distributed.agreement import in_turn, on_all, on_root
from mirabelle.arraytypes.distributed.chunks import Box, Plan, chunk_shape, extent, volume, whole
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.dispatch.errors import CommunicationError

# Where a format has room for it, an array remembers how it was divided. It is for people: loading divides anew.
LAYOUT = "mirabelle_layout"


class Parts(NamedTuple):
    """An array as one rank writes it: `contents(box)` has the elements of each of its `boxes`."""

    shape: tuple[int, ...]
    dtype: np.dtype
    layout: str
    boxes: list[Box]
    contents: Callable[[Box], np.ndarray]


class Stored(NamedTuple):
    """An array in a file, of which any box can be read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[Box], Any]


# Writing

# What rank 0 has made may be seen a moment later over a network.
_SEEN_WITHIN = 2.0


def _see(comm: Communicator, fresh: Path) -> None:
    """Check that this rank reaches what rank 0 has made."""
    until = time.monotonic() + _SEEN_WITHIN
    while not fresh.exists():
        if time.monotonic() > until:
            raise CommunicationError(
                f"Rank {comm.rank} does not see what rank 0 has made at {str(fresh)!r}: usually they run on "
                "hosts that share no folder there. Save under a folder that all hosts mount, or save what "
                "`mb.to_numpy(x)` gives on one rank."
            )
        time.sleep(0.05)


def write_npy(comm: Communicator, fresh: Path, arrays: Mapping[str, Parts], compressed: bool) -> None:
    ((_, parts),) = arrays.items()
    formats.refuse_compressed_npy(compressed)

    def begin() -> int:
        with open(fresh, "wb") as file:
            formats.write_npy_header(file, parts.shape, parts.dtype)
            start = file.tell()
            file.truncate(start + volume(whole(parts.shape)) * parts.dtype.itemsize)
        return start

    start = comm.bcast_object(on_root(comm, begin))

    def write() -> None:
        _see(comm, fresh)
        with open(fresh, "r+b", buffering=0) as file:
            for box in parts.boxes:
                if volume(box):
                    _write_box(file, start, parts.shape, box, parts.contents(box))

    on_all(comm, write)


def _write_box(file: Any, start: int, shape: Sequence[int], box: Box, values: np.ndarray) -> None:
    """Write the elements of a box to where they are in an array in C order.

    (Not through a memory map: there a full disk ends the process, and over a network two hosts that write
    to one page lose what the other wrote.)
    """
    length, offsets = _runs(shape, box, values.itemsize)
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    for i, offset in enumerate(offsets):
        file.seek(start + offset)
        rest = data[i * length : (i + 1) * length]
        while rest:
            rest = rest[file.write(rest) :]


def _runs(shape: Sequence[int], box: Box, itemsize: int) -> tuple[int, list[int]]:
    """Where a box's elements are in an array in C order: the bytes of one run, and where each run starts."""
    inner = max(len(shape) - 1, 0)
    while inner and extent(box)[inner] == shape[inner]:
        inner -= 1  # all of a dimension: what is outside goes on where it ends
    offsets = np.zeros((), np.int64)
    step = itemsize
    for d in reversed(range(len(shape))):
        first = box[d].start
        places = np.arange(first, box[d].stop if d < inner else first + 1, dtype=np.int64)
        offsets = np.add.outer(places * step, offsets)
        step *= shape[d]
    return volume(box[inner:]) * itemsize, offsets.ravel().tolist()


def write_npz(comm: Communicator, fresh: Path, arrays: Mapping[str, Parts], compressed: bool) -> None:
    mode = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with contextlib.ExitStack() as opened:
        archive: Any = on_root(comm, lambda: opened.enter_context(zipfile.ZipFile(fresh, "w", mode)))
        # One array after the other stands beside the archive until it is packed.
        beside = fresh.with_name(f"{fresh.name}.part")
        if comm.rank == 0:
            opened.callback(beside.unlink, missing_ok=True)
        for name, parts in arrays.items():
            write_npy(comm, beside, {name: parts}, False)
            on_root(comm, functools.partial(_pack, archive, beside, name))
        on_root(comm, opened.close)


def _pack(archive: zipfile.ZipFile, beside: Path, name: str) -> None:
    archive.write(beside, f"{name}.npy")


def write_hdf5(comm: Communicator, fresh: Path, arrays: Mapping[str, Parts], compressed: bool) -> None:
    import h5py

    def begin() -> None:
        with h5py.File(fresh, "w") as out:
            for name, parts in arrays.items():
                options: Any = {}
                if compressed and parts.shape:
                    options = {"compression": "gzip", "shuffle": True}
                made = out.create_dataset(name, parts.shape, parts.dtype, **options)
                if parts.layout:
                    made.attrs[LAYOUT] = parts.layout

    def write(**how: Any) -> None:
        _see(comm, fresh)
        if how or any(volume(box) for parts in arrays.values() for box in parts.boxes):
            with h5py.File(fresh, "r+", **how) as out:
                # Opening one may make room for it, so with MPI all ranks open all.
                opened: dict[str, Any] = {name: out[name] for name in arrays}
                for name, parts in arrays.items():
                    for box in parts.boxes:
                        if volume(box):
                            opened[name][box] = parts.contents(box)

    on_root(comm, begin)
    mpi = _mpi_of(comm) if h5py.get_config().mpi and not compressed else None
    if mpi is None:
        in_turn(comm, write)
    else:
        on_all(comm, lambda: write(driver="mpio", comm=mpi))


def _mpi_of(comm: Communicator) -> Any:
    """mpi4py's communicator of the same ranks, where ours stands on one."""
    mpi = getattr(comm, "mpi", None)
    return mpi if mpi is not None and mpi.size == comm.size else None


def write_zarr(comm: Communicator, fresh: Path, arrays: Mapping[str, Parts], compressed: bool) -> None:
    import zarr

    boxes = {name: comm.allgather_object(parts.boxes) for name, parts in arrays.items()}
    chunks = {name: chunk_shape(p.shape, p.dtype.itemsize, boxes[name]) for name, p in arrays.items()}

    def begin() -> None:
        root = None if "" in arrays else zarr.open_group(store=str(fresh), mode="w")
        for name, parts in arrays.items():
            options: Any = {"shape": parts.shape, "dtype": parts.dtype, "chunks": chunks[name]}
            if not compressed:
                options["compressors"] = None
            if parts.layout:
                options["attributes"] = {LAYOUT: parts.layout}
            if root is None:
                zarr.create_array(store=str(fresh), **options)
            else:
                root.create_array(name, **options)

    on_root(comm, begin)
    for name, parts in arrays.items():
        plan = Plan(comm, parts.shape, chunks[name], boxes[name])
        contents, sends, receives = on_all(comm, functools.partial(_ready, parts, plan))
        comm.exchange(sends, receives)
        chunks_of = functools.partial(plan.chunks, contents, receives, parts.dtype)
        on_all(comm, functools.partial(_write_chunks, comm, fresh, name, chunks_of))


def _ready(parts: Parts, plan: Plan) -> tuple[list[np.ndarray], dict[int, Any], dict[int, Any]]:
    contents = [parts.contents(box) for box in parts.boxes]
    return contents, *plan.packed(contents, parts.dtype)


def _write_chunks(
    comm: Communicator, fresh: Path, name: str, chunks: Callable[[], Iterator[tuple[Box, np.ndarray]]]
) -> None:
    import zarr

    _see(comm, fresh)
    root: Any = zarr.open(str(fresh), mode="r+")
    array = root[name] if name else root
    for cell, values in chunks():
        array[cell] = values


WRITERS: dict[str, Callable[[Communicator, Path, Mapping[str, Parts], bool], None]] = {
    "npy": write_npy, "npz": write_npz, "hdf5": write_hdf5, "zarr": write_zarr,
}  # fmt: skip


# Reading


@contextlib.contextmanager
def open_npy(path: Path) -> Iterator[dict[str, Stored]]:
    with open(path, "rb") as file:
        yield {"": _mapped(file, 0)}


def _mapped(file: Any, start: int) -> Stored:
    """An array in `.npy` format that begins somewhere in a file."""
    file.seek(start)
    shape, fortran, dtype = formats.read_npy_header(file)
    where: Any = {"dtype": dtype, "shape": shape, "offset": file.tell(), "order": "F" if fortran else "C"}
    return Stored(shape, dtype, lambda box: np.memmap(file, mode="r", **where)[box])


@contextlib.contextmanager
def open_npz(path: Path) -> Iterator[dict[str, Stored]]:
    """The arrays of an archive. (Its checksums are over whole arrays, which nobody reads here.)"""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        yield {m.filename.removesuffix(".npy"): _member(file, archive, m) for m in archive.infolist()}


def _member(file: Any, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Stored:
    with archive.open(member) as opened:
        if not member.filename.endswith(".npy"):
            return Stored((), np.dtype(object), lambda box: None)
        if member.compress_type == zipfile.ZIP_STORED:
            # What precedes it: a header of 30 bytes, which ends with the lengths of a name and of extra fields.
            file.seek(member.header_offset + 26)
            lengths = np.frombuffer(file.read(4), "<u2")
            return _mapped(file, member.header_offset + 30 + int(lengths.sum()))
        shape, fortran, dtype = formats.read_npy_header(opened)
        start = opened.tell()

    def read(box: Box) -> np.ndarray:
        with archive.open(member) as opened:
            opened.seek(start)
            if fortran:  # the transpose, in C order
                return _streamed(opened, shape[::-1], dtype, box[::-1]).T
            return _streamed(opened, shape, dtype, box)

    return Stored(shape, dtype, read)


# How much of a compressed array is unpacked at a time.
_STREAM = 1 << 23


def _streamed(opened: Any, shape: Sequence[int], dtype: np.dtype, box: Box) -> np.ndarray:
    """A box of an array in C order that can only be read from its beginning."""
    if not shape:
        return np.frombuffer(opened.read(dtype.itemsize), dtype).reshape(())
    row = volume(whole(shape[1:])) * dtype.itemsize
    opened.seek(box[0].start * row, 1)
    values = np.empty(extent(box), dtype)
    rows = max(1, _STREAM // row)
    for i in range(0, len(values), rows):
        n = min(rows, len(values) - i)
        values[i : i + n] = np.frombuffer(opened.read(n * row), dtype).reshape(n, *shape[1:])[:, *box[1:]]
    return values


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[dict[str, Stored]]:
    import h5py

    with h5py.File(path, "r") as root:
        found: dict[str, Stored] = {}

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                formats.inside(path, item)
                # Of a dataset with nothing in it h5py says None for the shape.
                dtype = item.dtype if item.shape is not None else np.dtype(object)
                found[name] = Stored(item.shape or (), dtype, item.__getitem__)

        root.visititems(visit)
        yield found


@contextlib.contextmanager
def open_zarr(path: Path) -> Iterator[dict[str, Stored]]:
    import zarr

    opened: Any = zarr.open(str(path), mode="r")
    if isinstance(opened, zarr.Array):
        arrays = {"": opened}
    else:
        arrays = dict(sorted((k, x) for k, x in opened.members(max_depth=None) if isinstance(x, zarr.Array)))
    yield {name: Stored(x.shape, x.dtype, x.__getitem__) for name, x in arrays.items()}


READERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[dict[str, Stored]]]] = {
    "npy": open_npy, "npz": open_npz, "hdf5": open_hdf5, "zarr": open_zarr,
}  # fmt: skip
