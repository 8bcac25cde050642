"""How an array is divided over processes, to be looked at: in words, as a picture, in bytes.

All of it follows from the layout, so nothing is sent and nothing is waited for.

>>> import mirabelle as mb
>>> print(mb.distributed.layout_of((6, 4), mb.distributed.Block(0), 3).words)
rows in equal runs over 3 processes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import ShapeLike
from mirabelle.arraytypes.cards import shown_bytes, shown_shape
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.distributed.layouts import Layout, Partition, Pieces, Split, divided
from mirabelle.arraytypes.distributed.views import DView, Map
from mirabelle.dispatch.misuse import explained

if TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.layouts import Placement

# More processes than this are not listed one by one.
LISTED = 16


class Division:
    """What each process holds of an array, or of a view of one.

    `splits` says how each dimension is divided. `pinned` names the dimensions of the mesh along which
    one coordinate alone holds what a view shows (one row of a matrix).
    """

    __slots__ = ("across", "base", "partial", "pinned", "shape", "splits")

    def __init__(
        self, base: Partition, shape: tuple[int, ...], splits: Sequence[Split | None], pinned: dict[int, int]
    ) -> None:
        self.base = base
        self.shape = shape
        self.splits = tuple(splits)
        self.pinned = pinned
        self.partial = base.partial
        # It is that of the whole of which a view shows places that no box says (a diagonal).
        self.across = False

    @classmethod
    def of_partition(cls, part: Partition) -> Division:
        return cls(part, part.shape, part.splits, {})

    @classmethod
    def of_view(cls, view: DView) -> Division | None:
        """None where strides go across what processes hold, so that no box says it."""
        if view.whole:
            return cls.of_partition(view.buffer.partition)
        if not view.size:
            return cls(view.buffer.partition, view.shape, [None] * len(view.shape), {})
        shown = view.map
        return None if shown is None else cls(shown.base, view.shape, _splits_of(shown), shown.pinned)

    @classmethod
    def around(cls, view: DView) -> Division:
        """That of a view, or of the whole that it shows places across."""
        found = cls.of_view(view)
        if found is None:
            found = cls.of_partition(view.buffer.partition)
            found.across = True
        return found

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def replicated(self) -> bool:
        """Does every process hold all of it?"""
        return not (self.partial or self.pinned or any(self.splits))

    def held(self, rank: int) -> tuple[Pieces, ...] | None:
        """The places along each dimension that a process holds; None if it has nothing to do with it."""
        at = self.base.coordinates(rank)
        if any(at[m] != c for m, c in self.pinned.items()):
            return None
        return tuple(
            (((0, n),) if n else ()) if s is None else s.pieces[at[s.mesh_axis]]
            for s, n in zip(self.splits, self.shape, strict=True)
        )

    def local_shape(self, rank: int) -> tuple[int, ...]:
        held = self.held(rank)
        return (0,) * len(self.shape) if held is None else tuple(sum(b - a for a, b in h) for h in held)

    def elements(self, rank: int) -> int:
        return 0 if self.held(rank) is None else math.prod(self.local_shape(rank))

    def owners(self, coordinates: dict[int, int]) -> list[int]:
        """The processes that stand at these coordinates of the mesh."""
        wanted = self.pinned | coordinates
        return [q for q in range(self.size) if all(self.base.coordinates(q)[m] == c for m, c in wanted.items())]


def _splits_of(shown: Map) -> list[Split | None]:
    """How the dimensions of a view are divided. (Those that it stretches are not.)"""
    found: list[Split | None] = []
    for axis, pieces in zip(shown.axes, shown.pieces, strict=True):
        split = shown.base.splits[axis] if axis >= 0 else None
        found.append(None if split is None or pieces is None else Split(split.mesh_axis, pieces))
    return found


# In words


def words(division: Division) -> str:
    """How an array is divided, as a person would say it."""
    n = division.size
    if n == 1:
        return "on one process"
    if division.across:
        whole = Division.of_partition(division.base)
        return f"across the parts of an array of {shown_shape(whole.shape)}: {words(whole)}"
    base = division.base
    if division.partial:
        ops = " and the ".join(op for _, op in division.partial)
        over = math.prod(base.mesh[m] for m, _ in division.partial)
        terms = f"the {ops} of a term on each of {over} processes"
        return f"{terms}; {_divided(division)}" if any(division.splits) else terms
    if division.replicated:
        return f"the same on all {n} processes"
    if not division.pinned:
        return _divided(division)
    alone = f"on {ranks(division.owners({}))} alone, of {n} processes"
    parts = [_split_words(division, d, s) for d, s in enumerate(division.splits) if s is not None]
    return ", ".join([*parts, alone])


def ranks(found: list[int]) -> str:
    """Some ranks by name, or, of many, how many."""
    if len(found) > 8:
        return f"{len(found)} ranks"
    said = " and ".join(filter(None, (", ".join(map(str, found[:-1])), str(found[-1]))))
    return f"rank{'s' if len(found) > 1 else ''} {said}"


def _divided(division: Division) -> str:
    mesh = division.base.mesh
    parts = [(d, s) for d, s in enumerate(division.splits) if s is not None]
    if len(mesh) == 1:
        return f"{_split_words(division, *parts[0])} over {mesh[0]} processes"
    said = ", ".join(f"{_split_words(division, d, s)} over {mesh[s.mesh_axis]}" for d, s in parts)
    used = {s.mesh_axis for _, s in parts} | {m for m, _ in division.partial}
    copies = math.prod(n for m, n in enumerate(mesh) if m not in used)
    each = f", each part on {copies}" if copies > 1 else ""
    return f"{said}{each} ({' × '.join(map(str, mesh))} processes)"


def _split_words(division: Division, d: int, split: Split) -> str:
    what = _dimension(d, len(division.shape))
    if split.edges is None:
        pieces = sorted(piece for held in split.pieces for piece in held)
        block = max((b - a for a, b in pieces), default=1)
        if all(len(held) < 2 for held in split.pieces):
            return f"{what} in runs, the last first"
        if any(b - a != block for a, b in pieces[1:-1]):
            return f"{what} dealt out in {len(pieces)} runs"
        return f"{what} dealt out in runs of {block}"
    counts = split.counts
    if max(counts) - min(counts) <= 1:
        return f"{what} in equal runs"
    sizes = ", ".join(map(str, counts)) if len(counts) <= 8 else f"{min(counts)} to {max(counts)}"
    return f"{what} in runs of {sizes}"


def _dimension(d: int, ndim: int) -> str:
    if ndim == 1:
        return "elements"
    return ("rows", "columns")[d] if ndim == 2 else f"dimension {d}"


def where(division: Division, rank: int) -> str:
    """What a process holds, as an index; several runs of a dimension are separated by spaces."""
    held = division.held(rank)
    if held is None or not all(held):
        return "nothing"
    if not held:
        return "it"
    said = []
    for pieces, n in zip(held, division.shape, strict=True):
        texts = [":" if piece == (0, n) else f"{piece[0]}:{piece[1]}" for piece in pieces[:3]]
        said.append(" ".join(texts) + (f" … ({len(pieces)} runs)" if len(pieces) > 3 else ""))
    return f"[{', '.join(said)}]"


# The report


class LayoutReport:
    """How an array is divided: prints as a picture in text, and shows as one in a notebook.

    >>> import mirabelle as mb
    >>> report = mb.distributed.layout_of((4, 2), mb.distributed.Block(0), 2)
    >>> isinstance(report, mb.distributed.LayoutReport)
    True
    """

    __module__ = "mirabelle.distributed"

    def __init__(self, division: Division, dtype: np.dtype | None, rank: int | None = None) -> None:
        self._division = division
        self.shape: tuple[int, ...] = division.shape
        # None if a shape was asked for.
        self.dtype: np.dtype | None = dtype
        # This process, if it is one of those.
        self.rank: int | None = rank

    @property
    def processes(self) -> int:
        """How many processes there are."""
        return self._division.size

    @property
    def words(self) -> str:
        """The layout in words."""
        return words(self._division)

    @property
    def elements(self) -> tuple[int, ...]:
        """How many elements each process holds."""
        return tuple(self._division.elements(q) for q in range(self.processes))

    @property
    def bytes(self) -> tuple[int, ...] | None:
        """How many bytes each process holds; None if no dtype is known."""
        return None if self.dtype is None else tuple(n * self.dtype.itemsize for n in self.elements)

    @property
    def imbalance(self) -> float:
        """The largest part over the mean of all: 1 is even, and so many times longer the others wait."""
        found = self.elements
        return max(found) * len(found) / sum(found) if sum(found) else 1.0

    def where(self, rank: int) -> str:
        """What a process holds, as an index."""
        return where(self._division, rank)

    def amounts(self) -> list[str]:
        """What each process holds, as a person reads it."""
        held = self.bytes
        return [_counted(n) for n in self.elements] if held is None else [shown_bytes(n) for n in held]

    def __repr__(self) -> str:
        from mirabelle.arraytypes.distributed.layoutpictures import text_picture

        kind = "" if self.dtype is None else f" {self.dtype.name}"
        lines = [f"{shown_shape(self.shape)}{kind}, {self.words}", text_picture(self._division), *self._table()]
        if self.imbalance > 1:
            lines.append(f"the largest part is {self.imbalance:.2f} times the mean")
        return "\n".join(line for line in lines if line)

    def _table(self) -> list[str]:
        """A line for each process: where its part is, how large, and as a bar."""
        ranks = listed(self.processes)
        amounts, elements, longest = self.amounts(), self.elements, max(max(self.elements), 1)
        places = {q: self.where(q) for q in ranks if q is not None}
        wide, wider = max(map(len, places.values())), max(map(len, amounts))
        lines = []
        for q in ranks:
            if q is None:
                lines.append("  ⋮")
                continue
            bar = "█" * max(round(16 * elements[q] / longest), elements[q] > 0)
            here = "  (this one)" if q == self.rank and self.processes > 1 else ""
            lines.append(f"rank {q:<3} {places[q]:<{wide}}  {amounts[q]:>{wider}}  {bar}{here}".rstrip())
        return lines

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.distributed.layoutpictures import report_html

        return report_html(self)


def _counted(n: int) -> str:
    return "1 element" if n == 1 else f"{n:,} elements"


def listed(processes: int) -> list[int | None]:
    """The ranks that a list names, None for those it leaves out."""
    if processes <= LISTED:
        return [*range(processes)]
    return [*range(LISTED - 2), None, processes - 1]


@explained
def layout_of(
    x: AbstractArray | ShapeLike, layout: Layout | Placement | None = None, processes: int | None = None
) -> LayoutReport:
    """How an array is divided over processes: a picture, and what each holds. It sends no messages.

    Of a shape, or with a `layout`, how it would be divided, over as many processes as are there or as
    `processes` says: so that layouts can be compared before anything is computed.

    Parameters
    ----------
    x : array or shape
        What is divided.
    layout : Layout or None
        How; None is the array's own.
    processes : int or None
        Over how many; None is as many as there are.

    Returns
    -------
    mb.distributed.LayoutReport
        It prints as the picture, and knows `shape`, `processes`, `elements` and `bytes` (of each process;
        None of a shape alone).

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.layout_of((9, 20), mb.distributed.Block(0), 3)
    9 × 20, rows in equal runs over 3 processes
      0                                      20
    0 ┌──────────────────────────────────────┐
      │                  0                   │
    3 ├──────────────────────────────────────┤
      │                  1                   │
    6 ├──────────────────────────────────────┤
      │                  2                   │
    9 └──────────────────────────────────────┘
    rank 0   [0:3, :]  60 elements  ████████████████
    rank 1   [3:6, :]  60 elements  ████████████████
    rank 2   [6:9, :]  60 elements  ████████████████
    >>> mb.distributed.layout_of(mb.DArray[mb.HostArray]([1.0, 2.0])).bytes
    (16,)
    """
    dtype: Any = None
    rank: int | None = None
    if isinstance(x, AbstractArray):
        from mirabelle.arraytypes.distributed.showing import division_of

        division, comm = division_of(x)
        dtype, rank = x.dtype, comm.rank
        if layout is None and processes in (None, comm.size):
            return LayoutReport(division, dtype, rank)
        processes = comm.size if processes is None else processes
        rank = rank if processes == comm.size else None
        shape: tuple[int, ...] = x.shape
        if layout is None:
            layout = division.base.layout if division.base.shape == shape else None
    else:
        shape = (int(x),) if isinstance(x, (int, np.integer)) else tuple(int(n) for n in cast(Sequence[Any], x))
        if processes is None:
            processes, rank = communicator().size, communicator().rank
    part = divided(shape, processes, None if layout is None else Layout.of(layout))
    return LayoutReport(Division.of_partition(part), dtype, rank)
