"""The part of a mesh that one of several processes has: its cells, and which faces lie on the cut.

A part is a mesh like another, in which a face on the cut has no neighbour (and no name, being no boundary).
What lies behind it is known by rank, cell and face there.

>>> from mirabelle import dg
>>> mesh = dg.box(6, periodic=True)
>>> part = parts(mesh, np.array([0, 0, 0, 1, 1, 1]))[1]
>>> part, part.cells.tolist(), part.ranks.tolist(), part.behind_cells.tolist()
(Part(3 lines, 2 faces on the cut to rank 0), [3, 4, 5], [0, 0], [2, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirabelle.dg.meshes.mesh import ARRAYS, Mesh
from mirabelle.meshdata import partition_graph


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """The cells of one process. Cells have the numbers that they have in the whole mesh."""

    mesh: Mesh
    rank: int
    total: int  # how many cells the whole mesh has
    cells: np.ndarray  # (K,): the numbers of these cells in the whole mesh
    # The faces on the cut: which face of which of these cells, and how its neighbour sees its vertices;
    # then the rank that has the neighbour, its number in the whole mesh, and which of its faces it is.
    faces: np.ndarray
    local_cells: np.ndarray
    orientations: np.ndarray
    ranks: np.ndarray
    behind_cells: np.ndarray
    behind_faces: np.ndarray

    def __repr__(self) -> str:
        others = ", ".join(map(str, np.unique(self.ranks))) or "nobody"
        return f"Part({len(self.mesh)} {self.mesh.cell}s, {len(self.faces)} faces on the cut to rank {others})"


def ranks_of_cells(mesh: Mesh, n: int, weights: np.ndarray | None = None) -> np.ndarray:
    """The rank that gets each cell (K,): by METIS where `pymetis` is installed, else along Hilbert's curve.

    >>> from mirabelle import dg
    >>> np.bincount(ranks_of_cells(dg.box((8, 8)), 4)).tolist()
    [16, 16, 16, 16]
    """
    if n > len(mesh):
        raise ValueError(
            f"{n} processes cannot divide {len(mesh)} cells: some would have none. Start fewer, "
            f"`python -m mirabelle run -n {len(mesh)} ...`, or take a finer mesh."
        )

    def neighbours() -> tuple[np.ndarray, np.ndarray]:
        near, own = mesh.neighbour_cells, np.arange(len(mesh))
        inner = near > own  # (each pair once)
        return np.broadcast_to(own, near.shape)[inner], near[inner]

    found = partition_graph(mesh.vertices.mean(1).T, neighbours, n, weights)
    empty = np.flatnonzero(np.bincount(found, minlength=n) == 0)
    if len(empty):
        raise ValueError(
            f"Rank {empty[0]} of {n} would have no cells: the weights of cells differ by too much, or "
            "there are too few of them. Start fewer processes, or give weights that are more alike."
        )
    return found


def parts(mesh: Mesh, ranks: np.ndarray, wanted: Sequence[int] | None = None) -> list[Part]:
    """The parts of a mesh whose cells go to these `ranks` (K,): of all ranks, or of those that are `wanted`."""
    wanted = range(int(ranks.max()) + 1) if wanted is None else wanted
    return [_part(mesh, ranks, rank) for rank in wanted]


def _part(mesh: Mesh, ranks: np.ndarray, rank: int) -> Part:
    cells = np.flatnonzero(ranks == rank)
    place = np.full(len(mesh), -1, np.int32)
    place[cells] = np.arange(len(cells))
    near, sides, turns = (getattr(mesh, name)[:, cells] for name in ARRAYS[2:])
    away = ranks[near] != rank
    faces, local = np.nonzero(away)
    own = np.broadcast_to(np.arange(len(cells), dtype=np.int32), near.shape)
    arrays: dict[str, Any] = {
        "cells": mesh.cells[:, cells],
        "coordinates": mesh.coordinates[..., cells],
        "neighbour_cells": np.where(away, own, place[near]),
        "neighbour_faces": np.where(away, np.arange(len(near), dtype=np.int32)[:, None], sides),
        "orientations": np.where(away, np.int8(0), turns),
    }
    found = {
        name: (f[here], place[k[here]]) for name, (f, k) in mesh.boundaries.items() for here in [place[k] >= 0]
    }
    return Part(
        replace(mesh, boundaries={name: pair for name, pair in found.items() if len(pair[0])}, **arrays),
        rank,
        len(mesh),
        cells,
        faces,
        local,
        turns[faces, local],
        ranks[near[faces, local]],
        near[faces, local],
        sides[faces, local],
    )
