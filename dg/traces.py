"""What lies behind faces, also where another process has it: one message to each neighbouring process.

A `Cut` says which of this process's points (nodes, points of faces, or cells) others see through faces on the
cut, and which of the points that come is behind each of its own. What is behind a face is a choice between two
gathers, so that everything that follows is as it is on one process, and no state is copied.

In a compiled step the messages leave where `sent_ahead` or `behind` is written, and travel until somebody
needs what comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.elements import element
from mirabelle.dg.meshes.connectivity import permutation_table
from mirabelle.dg.spelled import Array, Mesh, Part


@dataclass(frozen=True, eq=False)
class Cut:
    """The points on the cut between processes, as arrays of one place."""

    comm: Any
    points: Any  # int32 (n,): the points that others need, of all (Np or Nf nq) K, by rank
    sends: dict[int, tuple[int, int]]  # which of these each rank needs
    receives: dict[int, tuple[int, int]]  # and which of those that come each rank has
    count: int  # how many come
    behind: Any  # int32 (Nf, nq, K): which of these is behind a face's point; -1 where none is
    first: int  # cells before this one touch no other process's
    deliveries: dict[Any, Any] = field(default_factory=dict)

    def exchanged(self, values: Array) -> Any:
        """What others have behind the cut, (count, n), of values (n, points, K)."""
        n = values.shape[0]
        mine = mb.transpose(mb.reshape(values, (n, -1))[:, self.points])
        key = n, np.dtype(values.dtype)
        delivery = self.deliveries.get(key)
        if delivery is None:
            words = "traces of", n, "fields of", values.dtype
            delivery = self.deliveries[key] = mb.distributed.Delivery.of_rows(
                self.comm, self.sends, self.receives, (self.count, n), values.dtype, words
            )
        return delivery(mine)

    def nbytes(self, fields: int, itemsize: int = 8) -> int:
        """How many bytes leave this process for so many fields."""
        return sum(b - a for a, b in self.sends.values()) * fields * itemsize


def cut_of(
    part: Part | None, comm: Any, places: np.ndarray, points: np.ndarray, put: Callable[[np.ndarray], Any]
) -> Cut | None:
    """The cut for the points of a rule, or None where nothing is cut.

    `places` (Nf, nq) says where a point of a face lies among the points of a cell, `points` (nq, d - 1) where
    it is on the face's own reference cell.
    """
    if part is None or comm.size == 1:
        return None
    K, nq = len(part.mesh), places.shape[1]
    table = permutation_table(element(part.mesh.cell, 1).face_cell, points)
    # Both sides of the cut number its faces as the one that receives does: by cell and face.
    numbers = part.cells[part.local_cells]
    outgoing = np.lexsort((part.behind_faces, part.behind_cells, part.ranks))
    incoming = np.lexsort((part.faces, numbers, part.ranks))
    # The neighbour's point q is the one that our own table has at q the other way round.
    turned = np.argsort(table, axis=1)[part.orientations[outgoing]]
    faces, cells = part.faces[outgoing], part.local_cells[outgoing]
    mine = places[faces[:, None], turned] * K + cells[:, None]
    faces, cells = part.faces[incoming], part.local_cells[incoming]
    behind = np.full((*places.shape, K), -1, np.int32)
    behind[faces, :, cells] = np.arange(len(incoming) * nq).reshape(-1, nq)
    return Cut(
        comm,
        put(mine.reshape(-1).astype(np.int32)),
        _runs(part.ranks[outgoing], nq),
        _runs(part.ranks[incoming], nq),
        max(len(incoming) * nq, 1),  # (of a process without neighbours nobody reads it, and it takes part)
        put(behind),
        int(part.local_cells.min(initial=K)),
    )


def cells_behind(part: Part | None, comm: Any, mesh: Mesh, put: Callable[[np.ndarray], Any]) -> Any:
    """Of what there is one of in a cell, arrays (n, 1, K): the table of neighbours (Nf, 1, K), and the cut."""
    near = mesh.neighbour_cells[:, None].astype(np.int32)
    e = element(mesh.cell, 1)
    centre = element(e.face_cell, 1).vertices.mean(0, keepdims=True) if e.dims > 1 else np.zeros((1, 0))
    cut = cut_of(part, comm, np.zeros((len(e.faces), 1), int), centre, put)
    return put(near), cut


def _runs(ranks: np.ndarray, nq: int) -> dict[int, tuple[int, int]]:
    """Where the points of each rank begin and end, in rising order."""
    found, first = np.unique(ranks, return_index=True)
    ends = [*first, len(ranks)][1:]
    return {int(r): (int(a) * nq, int(b) * nq) for r, a, b in zip(found, first, ends, strict=True)}


def behind(values: Array, neighbour: Any, cut: Cut | None) -> tuple[Any, ...]:
    """What each field of values (n, points, K) is behind faces, in the shape of `neighbour`, (Nf, nq, K).

    `neighbour` says which point a face's neighbour has there, of all points K; on the cut any.
    """
    here = [mb.reshape(values[i], (-1,))[neighbour] for i in range(values.shape[0])]
    if cut is None:
        return tuple(here)
    came = cut.exchanged(values)
    return tuple([mb.where(cut.behind >= 0, came[:, i][cut.behind], x) for i, x in enumerate(here)])


def sent_ahead(values: Array, cut: Cut | None) -> Any:
    """In a compiled step: let what others need leave here, before anything that does not need what comes.

    Equal exchanges of a program are one, as long as somebody holds what this returns: so `behind`, which is
    written later, gets what is sent here.
    """
    if cut is None or mb.place(values).kind != "traced":
        return None
    return cut.exchanged(values)
