"""PETSc's binary files: matrices, vectors and index sets, written and read; PETSc's own objects by petsc4py.

A file is a row of objects. Each begins with a number that says what it is; all numbers are big-endian. How
many bytes integers and scalars have depends on how PETSc was built. The first is seen from a file's first
bytes, the second is found: a file is read in the way in which it comes out even.

>>> import os, tempfile
>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> A, b = mb.CSR([[2.0, -1.0], [-1.0, 2.0]]), mb.HostArray([1.0, 0.0])
>>> with tempfile.TemporaryDirectory() as folder:
...     path = os.path.join(folder, "system.petsc")
...     md.write_petsc(path, A, b)
...     A, b = md.read_petsc(path)
>>> print(A @ b)
[ 2. -1.]
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.distributed.agreement import on_root
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix
from mirabelle.arraytypes.meshdata.matrices import Matrix
from mirabelle.arraytypes.meshdata.patterns import index_dtype
from mirabelle.arraytypes.meshdata.rootrows import communicator_of, rows_on_root
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import PlaceError

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, Device, DTypeLike

MAT, VEC, IS = 1211216, 1211214, 1211218
_NAMES = {MAT: "a matrix", VEC: "a vector", IS: "an index set", 1211219: "a bag", 1211213: "a number"}
# What scalars may be, the likeliest first.
_SCALARS = tuple(np.dtype(d) for d in (">f8", ">c16", ">f4", ">c8"))
_CHUNK = 1 << 20


def write_petsc(
    path: str | os.PathLike[str],
    *objects: ArrayLike | Matrix,
    indices: DTypeLike = None,
    dtype: DTypeLike = None,
) -> None:
    """Write matrices, vectors and index sets to a file that PETSc reads (`MatLoad`, `VecLoad`, `ISLoad`).

    Sparse matrices (ours, `md.Matrix`, SciPy's) become AIJ, vectors of integers index sets, other vectors Vec.
    All scalars of a file are double precision, complex if any is, as those of a PETSc are; `dtype` is that of
    another one. `indices` is int32, PETSc's default, where that is enough. The file appears when all of it is
    written. What is divided over processes (`md.DividedMatrix`, distributed vectors) they write together, which
    rank 0 does, in the order of the vectors' entries.

    Parameters
    ----------
    path : str or path
        The file.
    *objects : matrices, vectors and index sets
        What is written, in this order.
    indices : dtype or None
        Of PETSc's integers; None is int32 where that is enough.
    dtype : dtype or None
        Of PETSc's scalars; None is double precision, complex if any is.

    Examples
    --------
    >>> import tempfile
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.write_petsc(f"{folder}/b", mb.HostArray([1.0, 2.0]))
    ...     print(*md.read_petsc(f"{folder}/b"))
    [1. 2.]
    """
    if not objects:
        raise ValueError("There is nothing to write: give matrices and vectors, `md.write_petsc(path, A, b)`.")
    comm, path = communicator_of(objects), Path(os.fspath(path))
    parts = [_parts(x) for x in objects]
    if comm is None:
        _write(path, parts, indices, dtype)
    else:
        on_root(comm, lambda: _write(path, parts, indices, dtype))


def _write(path: Path, parts: list[tuple[Any, ...]], indices: Any, dtype: Any) -> None:
    scalars = [p[-1].dtype for p in parts if p[0] != IS]
    scalar = _scalar(scalars, dtype)
    largest = max(max((*p[1], *(int(x.max(initial=0)) for x in p[2:] if x.dtype.kind in "iu"))) for p in parts)
    kind = np.dtype(index_dtype(largest) if indices is None else indices)
    if kind not in (np.int32, np.int64) or (kind == np.int32 and largest >= 2**31):
        raise ValueError(
            f"indices={kind.name} cannot be the integers of this file, of which the largest is {largest}: they "
            "are int32, or int64 for a PETSc built with 64-bit indices."
        )
    with permitted(path), replacing(path) as fresh, open(fresh, "wb") as file:
        for what, head, *arrays in parts:
            file.write(np.array([what, *head], kind.newbyteorder(">")).tobytes())
            for x in arrays[:-1] if what != IS else arrays:
                _put(file, x, kind.newbyteorder(">"))
            if what != IS:
                _put(file, arrays[-1], scalar)
        file.flush()
        os.fsync(file.fileno())


def _scalar(found: list[np.dtype], dtype: Any) -> np.dtype:
    complex_ = any(d.kind == "c" for d in found)
    made = np.dtype(("c16" if complex_ else "f8") if dtype is None else dtype).newbyteorder(">")
    if made not in _SCALARS:
        raise TypeError(f"PETSc's scalars are single or double, real or complex; not {np.dtype(dtype).name}.")
    if complex_ and made.kind != "c":
        raise TypeError(
            f"There are complex numbers among what is written, and dtype={np.dtype(dtype).name} has none. "
            "Leave it out, or write `mb.real(x)`."
        )
    return made


def _put(file: BinaryIO, x: np.ndarray, dtype: np.dtype) -> None:
    """A part at a time, so that no second array of its size is made."""
    for start in range(0, x.size, _CHUNK):
        file.write(x[start : start + _CHUNK].astype(dtype).tobytes())


def _parts(x: Any) -> tuple[Any, ...]:
    """What an object is, the numbers of its head, and what follows them."""
    if isinstance(x, DividedMatrix):
        lengths, columns, values = rows_on_root(x)
        return MAT, (*x.shape, values.size), lengths, columns, _numbers(values)
    data = x.data if isinstance(x, (Matrix, CSR)) else getattr(x, "parent", x) if hasattr(x, "tree") else x
    if isinstance(data, DArray):  # (all processes have it, on the host)
        data = verbs.to_numpy(data)
    if isinstance(data, AbstractArray) and leaf_family(type(data)).home.rank != 1:
        raise PlaceError(
            f"A file is written from the host's memory, and this {type(x).__name__} is in that of {data.place}"
            ". Copy it there first: `mb.adapt(mb.HostArray, x)`."
        )
    if isinstance(x, Matrix):
        x = x.csr
    if hasattr(x, "tocsr"):
        x = CSR(x)
    if isinstance(x, CSR):
        values, columns, starts = (np.asarray(verbs.to_numpy(p)) for p in x.parts)
        return MAT, (*map(int, x.shape), values.size), np.diff(starts), columns, _numbers(values)
    values = np.asarray(verbs.to_numpy(data) if isinstance(data, AbstractArray) else data)
    if values.ndim != 1:
        raise TypeError(
            f"A PETSc file holds sparse matrices and vectors; this is of shape {values.shape}. Make it sparse, "
            "`mb.CSR(x)`, or flat, `x.ravel()`."
        )
    if values.dtype.kind in "iu":
        return IS, (values.size,), values
    return VEC, (values.size,), _numbers(values)


def _numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biufc":
        raise TypeError(f"PETSc's files hold numbers, and this array {values.dtype.name}.")
    return values


def read_petsc(
    path: str | os.PathLike[str], *, dtype: DTypeLike = None, device: Device | None = None
) -> list[AbstractArray]:
    """What stands in a file that PETSc or `write_petsc` wrote: a `mb.CSR` for each matrix, vectors as arrays.

    Its scalars are real and double precision if that fits the length of the file, else complex, then single
    precision, real before complex; `dtype` says it. (Single complex ones are as long as double real ones.)
    `device` is where arrays are to be, an array type, say.

    Parameters
    ----------
    path : str or path
        The file.
    dtype : dtype or None
        Of PETSc's scalars; None finds it by the length of the file.
    device : array type, str or None
        Where arrays are to be; None is the host.

    Returns
    -------
    list
        What the file has, in its order: `mb.CSR`, dense matrices and vectors, and vectors of integers for
        index sets.

    Examples
    --------
    >>> import tempfile
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.write_petsc(f"{folder}/system", mb.CSR(mb.eye(2)), mb.HostArray([1.0, 2.0]))
    ...     A, b = md.read_petsc(f"{folder}/system")
    >>> print(mb.linalg.solve(A, b))
    [1. 2.]
    """
    path = Path(os.fspath(path))
    raw = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    integer = np.dtype(">i8" if raw[:4].tobytes() == b"\0\0\0\0" else ">i4")
    scalars = _SCALARS if dtype is None else (np.dtype(dtype).newbyteorder(">"),)
    if not set(scalars) <= set(_SCALARS):
        raise TypeError(f"PETSc's scalars are single or double, real or complex; not {np.dtype(dtype).name}.")
    refused: _Damaged | None = None
    for scalar in scalars:
        try:
            found = list(_objects(raw, integer, scalar))
        except _Damaged as e:  # the file is for other scalars; of all ways the first is what it most likely was
            refused = refused or e
        else:
            return [_made(*parts, device) for parts in found]
    raise ValueError(f"{path.name!r} is no whole PETSc file: {refused}.")


class _Damaged(Exception):
    """What is wrong with the bytes of a file, as scalars of one type."""


def _objects(raw: np.ndarray, integer: np.dtype, scalar: np.dtype) -> Any:
    at = 0

    def taken(count: int, dtype: np.dtype, what: str) -> np.ndarray:
        nonlocal at
        size = count * dtype.itemsize
        if size > raw.size - at:
            raise _Damaged(f"{what} should have {size} bytes at {at}, and the file ends after {raw.size - at}")
        found = raw[at : at + size].view(dtype)
        at += size
        return found

    if not raw.size:
        raise _Damaged("it is empty")
    while at < raw.size:
        what = int(taken(1, integer, "an object's number")[0])
        name = _NAMES.get(what)
        if name is None or what not in (MAT, VEC, IS):
            said = name or f"{what}, which is no object of PETSc"
            raise _Damaged(f"at byte {at - integer.itemsize} stands {said}")
        head = [int(n) for n in taken(3 if what == MAT else 1, integer, name)]
        dense = what == MAT and head[2] == -1
        if min(head[:2]) < 0 or (head[-1] < 0 and not dense):
            raise _Damaged(f"{name} has the sizes {head}")
        if what != MAT:
            yield what, head, taken(head[0], integer if what == IS else scalar, name)
            continue
        rows, columns, count = head
        if dense:
            yield what, head, taken(rows * columns, scalar, name)
            continue
        lengths = taken(rows, integer, name)
        if rows and (int(lengths.min()) < 0 or int(lengths.sum(dtype=np.int64)) != count):
            raise _Damaged(f"the rows of {name} of {count} entries have {int(lengths.sum(dtype=np.int64))}")
        if not rows and count:
            raise _Damaged(f"{name} without rows has {count} entries")
        found = taken(count, integer, name)
        if count and (int(found.min()) < 0 or int(found.max()) >= columns):
            outside = int(found.max()) if found.min() >= 0 else int(found.min())
            raise _Damaged(f"{name} of {columns} columns has an entry in column {outside}")
        yield what, head, lengths, found, taken(count, scalar, name)


def _made(what: int, head: list[int], *parts: Any) -> Any:
    """An object of a file as an array."""
    *arrays, device = parts
    native = [x.astype(x.dtype.newbyteorder("=")) for x in arrays]
    if what != MAT:
        return asarray(native[0], device=device)
    if head[2] == -1:
        return asarray(native[0].reshape(head[:2]), device=device)
    lengths, columns, values = native
    kind = index_dtype(*head)
    starts = np.zeros(head[0] + 1, kind)
    np.cumsum(lengths, out=starts[1:])
    return CSR((values, columns.astype(kind, copy=False), starts), shape=tuple(head[:2]), device=device)


# PETSc's own objects


def _petsc4py() -> Any:
    try:
        from petsc4py import PETSc
    except ImportError as e:
        raise ImportError(
            "PETSc's objects are made by petsc4py, which is not installed: `pip install mirabelle[petsc]` "
            "builds it (in half an hour). A file needs none: `md.write_petsc(path, A, b)`."
        ) from e
    return PETSc


def to_petsc(x: AbstractArray | Matrix, *, comm: Any = None) -> Any:
    """A sparse matrix as PETSc's AIJ, a vector as its Vec, one of integers as its IS, by petsc4py: copies.

    `comm` is PETSc's communicator, of this process alone if it is left out.

    Parameters
    ----------
    x : CSR, Matrix or array
        What is copied.
    comm : petsc4py communicator or None
        None is this process alone.

    Returns
    -------
    petsc4py.PETSc.Mat, Vec or IS
        In memory of PETSc's, and of its types of numbers.

    Examples
    --------
    ```python
    solver = PETSc.KSP().create()                   # needs petsc4py: pip install mirabelle[petsc]
    solver.setOperators(md.to_petsc(A))
    solver.solve(md.to_petsc(b), x := md.to_petsc(b))
    ```
    """
    if communicator_of([x]) is not None:
        raise TypeError(
            f"A {type(x).__name__} is divided over processes, and PETSc's objects are made of what one process "
            "has. Write a file, `md.write_petsc(path, A, b)`, which PETSc loads on any number of processes."
        )
    PETSc = _petsc4py()
    comm = PETSc.COMM_SELF if comm is None else comm
    what, head, *arrays = _parts(x)
    if what == IS:
        return PETSc.IS().createGeneral(arrays[0].astype(PETSc.IntType), comm=comm)
    scalar = np.dtype(PETSc.ScalarType)
    if arrays[-1].dtype.kind == "c" and scalar.kind != "c":
        raise TypeError("This is complex, and PETSc here was built for real numbers: give `mb.real(x)`.")
    values = arrays[-1].astype(scalar)
    if what == VEC:
        made = PETSc.Vec().createSeq(head[0], comm=comm)
        made.setArray(values)
        return made
    starts = np.concatenate([[0], np.cumsum(arrays[0])]).astype(PETSc.IntType)
    csr = (starts, arrays[1].astype(PETSc.IntType), values)
    return PETSc.Mat().createAIJ(size=head[:2], csr=csr, comm=comm)


def from_petsc(x: Any, *, device: Device | None = None) -> Any:
    """A Mat of petsc4py as a `mb.CSR`, a Vec or IS as an array: a copy of what this process has.

    Parameters
    ----------
    x : petsc4py.PETSc.Mat, Vec or IS
        What is copied.
    device : array type, str or None
        Where the copy is to be; None is the host.

    Returns
    -------
    mb.CSR or array
        In new memory: a `mb.CSR` with the rows that this process has, or a vector of its entries (integers
        of an IS).

    Examples
    --------
    ```python
    A = md.from_petsc(matrix)                       # needs petsc4py: pip install mirabelle[petsc]
    x, info = mb.linalg.cg(A, md.from_petsc(vector))
    ```
    """
    PETSc = _petsc4py()
    if isinstance(x, PETSc.IS):
        return asarray(np.array(x.getIndices()), device=device)
    if isinstance(x, PETSc.Vec):
        return asarray(np.array(x.getArray(readonly=True)), device=device)
    if not isinstance(x, PETSc.Mat):
        raise TypeError(f"A Mat, Vec or IS of petsc4py is expected, not {type(x).__name__}.")
    starts, columns, values = (np.array(p) for p in x.getValuesCSR())
    return CSR((values, columns, starts), shape=(starts.size - 1, int(x.getSize()[1])), device=device)
