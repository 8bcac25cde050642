"""A mesh of which each process has a part: divided from a whole one, or read from a file of its own.

>>> import tempfile
>>> from mirabelle import dg
>>> with tempfile.TemporaryDirectory() as folder:
...     dg.write_parts(dg.box((4, 4)), f"{folder}/box.parts", 1)
...     dg.read_parts(f"{folder}/box.parts")
DividedMesh(16 quadrilaterals of order 1 in 2 dimensions, on 1 processes; this one has 16)
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.meshes.mesh import ARRAYS, Mesh
from mirabelle.dg.meshes.parts import Part, parts, ranks_of_cells
from mirabelle.dg.output.files import replacing
from mirabelle.dg.returned import ensure
from mirabelle.dg.spelled import ArrayLike, File

FORMAT = "mirabelle.dg parts 2"
OF_PART = [f.name for f in fields(Part) if f.name not in ("mesh", "rank", "total", "cells")]


class DividedMesh:
    """The cells of this process, and what it has to know of the others.

    The cells of a process follow each other: cell i of a part is cell `first + i` of the whole mesh, where the
    mesh that was divided had the cell `numbers[i]`.

    >>> from mirabelle import dg
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.write_parts(dg.box((4, 4)), folder, 1)
    ...     part = dg.read_parts(folder)
    >>> part
    DividedMesh(16 quadrilaterals of order 1 in 2 dimensions, on 1 processes; this one has 16)
    """

    def __init__(
        self,
        part: Part,
        numbers: np.ndarray,
        sizes: Iterable[int],
        boundary_names: Iterable[str],
        fingerprint: str,
        comm: mb.distributed.Communicator | None = None,
    ) -> None:
        self.part, self.numbers, self.sizes = part, numbers, tuple(int(n) for n in sizes)
        self.boundary_names, self.fingerprint = tuple(boundary_names), fingerprint
        self.comm = mb.distributed.communicator() if comm is None else comm
        self.cell, self.order, self.dims = part.mesh.cell, part.mesh.order, part.mesh.dims

    def __len__(self) -> int:
        return self.part.total

    @property
    def first(self) -> int:
        """The number of this process's first cell."""
        return sum(self.sizes[: self.part.rank])

    def __repr__(self) -> str:
        dims = f"{self.dims} dimension{'s' * (self.dims > 1)}"
        return (
            f"DividedMesh({len(self)} {self.cell}s of order {self.order} in {dims}, on {len(self.sizes)} "
            f"processes; this one has {len(self.part.mesh)})"
        )

    def check_boundaries(self, given: Iterable[str]) -> None:
        """Raise a ValueError unless conditions of the `given` names are what the mesh needs."""
        given = list(given)
        if sorted(given) == sorted(self.boundary_names):
            return
        names = [", ".join(n) or "none" for n in (self.boundary_names, given)]
        text = f"The boundaries of the mesh are {names[0]}, but conditions were given for {names[1]}."
        if missing := sorted(set(self.boundary_names) - set(given)):
            text += f' Add them, e.g. boundary_conditions={{"{missing[0]}": dg.SlipWall()}}.'
        raise ValueError(text)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays (..., K) of this process's part, in which cells have their numbers in the whole mesh."""
        part, mesh = self.part, self.part.mesh
        near, sides = mesh.neighbour_cells + np.int32(self.first), mesh.neighbour_faces.astype(np.int32)
        turns = mesh.orientations.copy()
        at = part.faces, part.local_cells
        near[at], sides[at], turns[at] = part.behind_cells, part.behind_faces, part.orientations
        return dict(zip(ARRAYS, (mesh.cells, mesh.coordinates, near, sides, turns), strict=True))

    def boundaries(self) -> dict[str, np.ndarray]:
        """The faces and cells (2, n) of this process's share of each boundary, with those numbers."""
        none = np.zeros((2, 0), np.int64)
        own = {k: np.stack([f, c + self.first]) for k, (f, c) in self.part.mesh.boundaries.items()}
        return {name: own.get(name, none) for name in self.boundary_names}

    @cached_property
    def whole(self) -> Mesh:
        """The whole mesh, brought together on all processes, which ask for it together."""
        found = self.comm.allgather_object((self.arrays(), self.boundaries()))
        arrays: dict[str, Any] = {name: np.concatenate([a[name] for a, _ in found], axis=-1) for name in ARRAYS}
        arrays["cells"] = arrays["cells"].astype(np.int64)  # (parts that were read have them in 32 bits)
        faces = {
            name: tuple(np.concatenate([b[name] for _, b in found], axis=1)) for name in self.boundary_names
        }
        return Mesh(self.cell, self.order, boundaries=faces, **arrays)  # type: ignore[arg-type]


def divided(
    mesh: Mesh, ranks: ArrayLike | None = None, comm: mb.distributed.Communicator | None = None
) -> DividedMesh:
    """This process's part of a mesh that all have: `ranks` says which process gets each cell.

    >>> from mirabelle import dg
    >>> len(divided(dg.box(8)).part.mesh)
    8
    """
    comm = mb.distributed.communicator() if comm is None else comm
    owners = ranks_of_cells(mesh, comm.size) if ranks is None else _checked(ranks, mesh, comm.size)
    return next(_divided(mesh, owners, comm.size, [comm.rank], comm))


def _divided(mesh: Mesh, owners: np.ndarray, n: int, wanted: Iterable[int], comm: Any) -> Iterator[DividedMesh]:
    # (Cells that touch those of others come last: their faces are computed when what these sent is there.)
    numbers = np.lexsort(((owners[mesh.neighbour_cells] != owners).any(0), owners))
    sizes = np.bincount(owners, minlength=n)
    ends = np.cumsum(sizes)
    ordered, owners = mesh.renumbered(numbers), owners[numbers]
    for rank in wanted:
        (part,) = parts(ordered, owners, [rank])
        mine = numbers[ends[rank] - sizes[rank] : ends[rank]]
        yield DividedMesh(part, mine, sizes, mesh.boundary_names, mesh.fingerprint, comm)


def _checked(ranks: Any, mesh: Mesh, n: int) -> np.ndarray:
    """Ranks of cells as given."""
    found = np.asarray(ranks)
    if found.shape != (len(mesh),) or found.dtype.kind not in "iu":
        raise ValueError(
            f"ranks= are one integer for each of the {len(mesh)} cells, and these have the shape {found.shape} "
            f"and the dtype {found.dtype}."
        )
    counts = np.bincount(np.clip(found, 0, n - 1), minlength=n)
    if found.min() < 0 or found.max() >= n or not counts.all():
        raise ValueError(
            f"ranks= go from {found.min()} to {found.max()}, on {n} processes of which each has to have cells: "
            f"leave it out, or start {found.max() + 1} processes."
        )
    return found


def write_parts(mesh: Mesh, folder: File, n: int, ranks: ArrayLike | None = None) -> None:
    """Divide a mesh for `n` processes, and write a file for each of them to a folder (`dg.read_parts`).

    Parameters
    ----------
    mesh : Mesh
        What is divided.
    folder : str or path
        Where files go.
    n : int
        For how many processes.
    ranks : int array or None
        The process of each cell; None lets METIS or Hilbert's curve decide.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.write_parts(dg.box((4, 4)), folder, 1)
    ...     part = dg.read_parts(folder)
    >>> part
    DividedMesh(16 quadrilaterals of order 1 in 2 dimensions, on 1 processes; this one has 16)
    """
    folder = Path(folder)
    owners = ranks_of_cells(mesh, n) if ranks is None else _checked(ranks, mesh, n)
    (folder / "parts.json").unlink(missing_ok=True)  # (what is half written is none)
    made = None
    for made in _divided(mesh, owners, n, range(n), mb.distributed.communicator()):
        part = made.part
        arrays = {f"mesh/{name}": getattr(part.mesh, name) for name in ARRAYS}
        arrays |= {f"boundaries/{name}": np.stack(pair) for name, pair in part.mesh.boundaries.items()}
        arrays |= {name: getattr(part, name) for name in OF_PART}
        arrays |= {"numbers": narrow(made.numbers), "mesh/cells": narrow(part.mesh.cells)}
        arrays["mesh/neighbour_faces"] = part.mesh.neighbour_faces.astype(np.int8)
        arrays["of"] = np.array([made.fingerprint, str(part.rank)])
        with replacing(_file(folder, part.rank)) as fresh:
            np.savez(fresh, **arrays)
    assert made is not None
    header = {"format": FORMAT, "mesh": [made.cell, made.order, made.fingerprint], "sizes": made.sizes}
    header["boundaries"] = made.boundary_names
    with replacing(folder / "parts.json") as fresh:
        fresh.write_text(json.dumps(header))


def read_parts(folder: File, comm: mb.distributed.Communicator | None = None) -> DividedMesh:
    """This process's part of a mesh that was divided beforehand, by `dg.write_parts` or the command

        python -m mirabelle dg partition mesh.msh -n 64

    Each process reads its own file, and nothing of the others.

    Parameters
    ----------
    folder : str or path
        Where `dg.write_parts` wrote.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    dg.DividedMesh
        It is given to `dg.Divided`, as a mesh is to `dg.Semidiscretization`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.write_parts(dg.box((4, 4)), folder, 1)
    ...     part = dg.read_parts(folder)
    >>> part
    DividedMesh(16 quadrilaterals of order 1 in 2 dimensions, on 1 processes; this one has 16)
    """
    folder, comm = Path(folder), mb.distributed.communicator() if comm is None else comm
    sizes, made = list[int](), None
    with mb.distributed.together(comm):
        with contextlib.suppress(Exception):  # (whatever is wrong with a file, it is no part of this mesh)
            header = json.loads((folder / "parts.json").read_text())
            sizes = header["sizes"] if header["format"] == FORMAT else []
            made = _part_in(folder, header, comm) if len(sizes) == comm.size else None
        ensure(
            len(sizes) in (0, comm.size),
            f"{str(folder)!r} is divided for {len(sizes)} processes, and there are {comm.size}. Start as many, "
            f"`python -m mirabelle run -n {len(sizes)} ...`, or divide the mesh anew, "
            f"`python -m mirabelle dg partition mesh.msh -n {comm.size}`.",
        )
        if made is None:
            raise ValueError(
                f"{str(folder)!r} is no folder of a divided mesh, was not written to its end, or its file for "
                f"rank {comm.rank} is missing, damaged or another mesh's. Divide one: "
                f"`python -m mirabelle dg partition mesh.msh -n {comm.size} -o {folder}`."
            )
        return made


def _part_in(folder: Path, header: Any, comm: Any) -> DividedMesh:
    with _file(folder, comm.rank).open("rb") as opened, np.load(opened) as file:
        arrays = dict(file)
    (cell, order, fingerprint), sizes = header["mesh"], header["sizes"]
    ensure(arrays["of"].tolist() == [fingerprint, str(comm.rank)], "It is another mesh's, or another rank's.")
    pairs = {name.partition("/")[2]: tuple(x) for name, x in arrays.items() if name.startswith("boundaries/")}
    own: dict[str, Any] = {name: arrays[f"mesh/{name}"] for name in ARRAYS}
    first, total = sum(sizes[: comm.rank]), sum(sizes)
    cells = np.arange(first, first + sizes[comm.rank], dtype=np.int32 if total < 2**31 else np.int64)
    mesh = Mesh(cell, order, boundaries=pairs, **own)
    ensure(len(mesh) == sizes[comm.rank], "The header says another number of cells.")
    part = Part(mesh, comm.rank, total, cells, **{k: arrays[k] for k in OF_PART})
    return DividedMesh(part, arrays["numbers"], sizes, header["boundaries"], fingerprint, comm)


def narrow(numbers: np.ndarray) -> np.ndarray:
    """Numbers of cells or vertices in 32 bits, where these hold them."""
    return numbers.astype(np.int32) if numbers.max(initial=0) < 2**31 else numbers


def _file(folder: Path, rank: int) -> Path:
    return folder / f"part_{rank:05}.npz"
