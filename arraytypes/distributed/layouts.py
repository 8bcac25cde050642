"""Layouts: which process holds which part of a distributed array.

A *layout* says it for arrays of any shape: the processes stand in a mesh (in a row, if nothing is said), and
for each dimension of the mesh a *placement* says what is divided along it.

>>> import mirabelle as mb
>>> mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))
Layout(Block(0), Block(1), mesh=(2, 2))

A *partition* is a layout of one shape on one number of processes: for each dimension of the array, the places
that each process holds. Equal ones are one object, so that comparing them costs nothing.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.dispatch.errors import LayoutError

# The places along a dimension that one coordinate of the mesh holds: pieces in rising order.
Pieces = tuple[tuple[int, int], ...]


class Placement:
    """What happens along one dimension of the mesh."""

    __module__ = "mirabelle"

    # The dimension of the array that is divided; None for what divides none.
    axis: int | None = None

    def pieces(self, n: int, parts: int) -> tuple[Pieces, ...]:
        """What each of so many parts holds of a dimension of size n."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Block(Placement):
    """A dimension in equal runs: the first to the first process, and so on.

    Parameters
    ----------
    axis : int, default 0
        Which dimension.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.Block(0))
    Layout(Block(0))
    """

    axis: int | None = 0

    def pieces(self, n: int, parts: int) -> tuple[Pieces, ...]:
        small, more = divmod(n, parts)
        edges = [i * small + min(i, more) for i in range(parts + 1)]
        return runs(edges)

    def __repr__(self) -> str:
        return f"Block({self.axis})"


@dataclass(frozen=True, repr=False)
class BlockCyclic(Placement):
    """A dimension in runs of `block`, dealt out in turn, as ScaLAPACK does.

    Parameters
    ----------
    axis : int, default 0
        Which dimension.
    block : int, default 1
        The length of a run.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.BlockCyclic(0, 2))
    Layout(BlockCyclic(0, 2))
    """

    axis: int | None = 0
    block: int = 1

    def __post_init__(self) -> None:
        if self.block < 1:
            raise LayoutError(f"A block has at least one place, and BlockCyclic was given {self.block}.")

    def pieces(self, n: int, parts: int) -> tuple[Pieces, ...]:
        b = self.block
        return tuple(
            tuple((start, min(start + b, n)) for start in range(c * b, n, parts * b)) for c in range(parts)
        )

    def __repr__(self) -> str:
        return f"BlockCyclic({self.axis}, {self.block})"


@dataclass(frozen=True, repr=False)
class Ragged(Placement):
    """A dimension in runs of given sizes, one for each process along the mesh.

    Parameters
    ----------
    axis : int
        Which dimension.
    sizes : sequence of int
        The length of each process's run.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.Ragged(0, [1, 3]))
    Layout(Ragged(0, (1, 3)))
    """

    axis: int | None = 0
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(n) for n in self.sizes))
        if any(n < 0 for n in self.sizes):
            raise LayoutError(f"Sizes of parts are not negative: {self!r}.")

    def pieces(self, n: int, parts: int) -> tuple[Pieces, ...]:
        if len(self.sizes) != parts or sum(self.sizes) != n:
            raise LayoutError(
                f"{self!r} has {len(self.sizes)} part(s) of {sum(self.sizes)} places in all; needed are "
                f"{parts} part(s) of {n}. For equal parts write mb.distributed.Block({self.axis})."
            )
        return runs([0, *itertools.accumulate(self.sizes)])

    def __repr__(self) -> str:
        return f"Ragged({self.axis}, {self.sizes})"


@dataclass(frozen=True, repr=False)
class Listed(Placement):
    """A dimension in runs that are listed: of each process along the mesh those that it holds.

    This is how data on a mesh are divided, whose numbers follow no process. `Listed.of(0, owners)` takes the
    process of each place.

    Parameters
    ----------
    axis : int
        Which dimension.
    held : sequence of sequences of (int, int)
        For each process its runs (start, stop), in rising order.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Listed.of(0, [1, 0, 0, 1, 1]).held
    (((1, 3),), ((0, 1), (3, 5)))
    """

    axis: int | None = 0
    held: tuple[Pieces, ...] = ()

    @classmethod
    def of(cls, axis: int, owners: Any, parts: int | None = None) -> Listed:
        """The placement where each place belongs to the process that `owners` names.

        >>> import mirabelle as mb
        >>> mb.distributed.Listed.of(0, [0, 0, 1], parts=3)
        Listed(0, 2 runs)
        """
        owners = np.asarray(owners)
        starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]])) if owners.size else owners
        stops = np.append(starts[1:], owners.size)
        held: list[list[tuple[int, int]]] = [
            [] for _ in range(1 + int(owners.max(initial=0)) if parts is None else parts)
        ]
        for a, b, owner in zip(starts.tolist(), stops.tolist(), owners[starts].tolist(), strict=False):
            held[owner].append((a, b))
        return cls(axis, tuple(map(tuple, held)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", tuple(tuple((int(a), int(b)) for a, b in h) for h in self.held))
        # (They may be many, and are part of what partitions are looked up by.)
        object.__setattr__(self, "_hash", hash((self.axis, self.held)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def pieces(self, n: int, parts: int) -> tuple[Pieces, ...]:
        at = 0
        for a, b in sorted(piece for held in self.held for piece in held):
            if a != at or b <= a:
                break
            at = b
        if len(self.held) != parts or at != n or any(list(h) != sorted(h) for h in self.held):
            raise LayoutError(
                f"{self!r} lists what {len(self.held)} part(s) hold, and not each of {n} places once, in "
                f"rising order, for {parts} part(s). `mb.distributed.Listed.of(axis, owners)` does so."
            )
        return self.held

    def __repr__(self) -> str:
        return f"Listed({self.axis}, {sum(map(len, self.held))} runs)"


@dataclass(frozen=True, repr=False)
class Replicated(Placement):
    """All processes along the mesh hold the same.

    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.Replicated())
    Layout(Replicated())
    """

    def __repr__(self) -> str:
        return "Replicated()"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each process holds a term, and the array is what they combine to.

    Parameters
    ----------
    op : str, default 'sum'
        How terms are combined: "sum", "max", "min" or "prod".

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.Partial("sum"))
    Layout(Partial('sum'))
    """

    op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.op!r})"


# (A class of data has to know its module while it is made.)
for _kind in (Block, BlockCyclic, Ragged, Listed, Replicated, Partial):
    _kind.__module__ = "mirabelle.distributed"


class Layout:
    """How arrays are divided: a placement for each dimension of a mesh of processes.

    Parameters
    ----------
    *placements : placements
        One for each dimension of the mesh of processes.
    mesh : tuple of int or None
        The mesh; None is a row of all processes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.Layout(mb.distributed.Block(0)) == mb.distributed.Layout.of(mb.distributed.Block(0))
    True
    """

    __module__ = "mirabelle.distributed"
    __slots__ = ("mesh", "placements")

    def __init__(self, *placements: Placement, mesh: Sequence[int] | None = None) -> None:
        for p in placements:
            if not isinstance(p, Placement):
                raise TypeError(
                    "A layout is made of Block, BlockCyclic, Ragged, Listed, Replicated and Partial, which are "
                    f"in mb.distributed, not {p!r}."
                )
        if mesh is None and len(placements) > 1:
            raise LayoutError(
                f"{len(placements)} placements need a mesh of as many dimensions: "
                f"`mb.distributed.Layout({', '.join(map(repr, placements))}, mesh=(2, 2))`."
            )
        self.mesh = None if mesh is None else tuple(int(n) for n in mesh)
        if self.mesh is not None and len(self.mesh) != len(placements):
            raise LayoutError(
                f"A mesh of {len(self.mesh)} dimension(s) needs as many placements, and {len(placements)} came."
            )
        self.placements = placements or (Replicated(),)

    @classmethod
    def of(cls, layout: Layout | Placement) -> Layout:
        """A layout from one, or from a placement."""
        if isinstance(layout, Layout):
            return layout
        if isinstance(layout, Placement):
            return cls(layout)
        raise TypeError(
            f"{layout!r} is no layout. Write mb.distributed.Block(0), mb.distributed.Replicated(), or "
            "mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.mesh, self.placements) == (other.mesh, other.placements)

    def __hash__(self) -> int:
        return hash((self.mesh, self.placements))

    def __reduce__(self) -> Any:
        return _layout, (self.placements, self.mesh)

    def __repr__(self) -> str:
        mesh = "" if self.mesh is None else f", mesh={self.mesh}"
        return f"Layout({', '.join(map(repr, self.placements))}{mesh})"


def _layout(placements: tuple[Placement, ...], mesh: Any) -> Layout:
    return Layout(*placements, mesh=mesh)


def runs(edges: Sequence[int]) -> tuple[Pieces, ...]:
    """Neighbouring runs between edges, one for each part; an empty part holds no piece."""
    return tuple(((a, b),) if b > a else () for a, b in itertools.pairwise(edges))


def place_in(held: Pieces, place: int) -> int:
    """Where a place along a dimension lies in what holds these pieces.

    >>> place_in(((2, 4), (7, 9)), 8)
    3
    """
    if len(held) < 8:
        before = 0
        for a, b in held:
            if a <= place < b:
                return before + place - a
            before += b - a
        raise AssertionError("a place that is not held here")
    found = _starts.get(id(held))
    if found is None or found[0] is not held:
        if len(_starts) > 256:
            _starts.clear()
        starts = [a for a, _ in held]
        before_each = itertools.accumulate((b - a for a, b in held), initial=0)
        found = _starts[id(held)] = held, starts, list(before_each)
    k = bisect.bisect_right(found[1], place) - 1
    if k < 0 or place >= held[k][1]:
        raise AssertionError("a place that is not held here")
    return found[2][k] + place - found[1][k]


# Of many pieces: where they begin, and how many places come before each.
_starts: dict[int, tuple[Pieces, list[int], list[int]]] = {}


@dataclass(frozen=True)
class Split:
    """How one dimension is divided: along which dimension of the mesh, and what each coordinate holds."""

    mesh_axis: int
    pieces: tuple[Pieces, ...]

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.mesh_axis, self.pieces))

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        return tuple(sum(b - a for a, b in held) for held in self.pieces)

    @functools.cached_property
    def edges(self) -> tuple[int, ...] | None:
        """Where the runs of neighbouring parts meet; None if they are dealt out."""
        edges = [0]
        for held in self.pieces:
            if len(held) > 1 or (held and held[0][0] != edges[-1]):
                return None
            edges.append(held[0][1] if held else edges[-1])
        return tuple(edges)


class Partition:
    """A layout of one shape: made by `partition`, so that equal ones are one object."""

    __slots__ = (
        "__weakref__",
        "cache",
        "elements",
        "mesh",
        "partial",
        "replicated",
        "shape",
        "size",
        "splits",
    )

    def __init__(
        self, shape: tuple[int, ...], mesh: tuple[int, ...], splits: tuple[Split | None, ...], partial: Any
    ) -> None:
        self.shape = shape
        self.mesh = mesh
        self.splits = splits
        # The reduction that the terms of processes wait for, by dimension of the mesh.
        self.partial: tuple[tuple[int, str], ...] = partial
        # How many processes, and how many elements.
        self.size = math.prod(mesh)
        self.elements = math.prod(shape)
        self.replicated = not partial and not any(splits)
        # What was worked out about it: by this module's users.
        self.cache: dict[Any, Any] = {}

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Where a process stands in the mesh."""
        found = []
        for n in reversed(self.mesh):
            rank, c = divmod(rank, n)
            found.append(c)
        return tuple(reversed(found))

    def rank_at(self, coordinates: Sequence[int]) -> int:
        rank = 0
        for c, n in zip(coordinates, self.mesh, strict=True):
            rank = rank * n + c
        return rank

    def held(self, rank: int) -> tuple[Pieces, ...]:
        """The places along each dimension that a process holds."""
        at = self.coordinates(rank)
        return tuple(
            (((0, n),) if n else ()) if s is None else s.pieces[at[s.mesh_axis]]
            for s, n in zip(self.splits, self.shape, strict=True)
        )

    def local_shape(self, rank: int) -> tuple[int, ...]:
        """The shape of what a process holds."""
        key = "local shape", rank
        found = self.cache.get(key)
        if found is None:
            at = self.coordinates(rank)
            found = self.cache[key] = tuple(
                n if s is None else s.counts[at[s.mesh_axis]]
                for s, n in zip(self.splits, self.shape, strict=True)
            )
        return found  # type: ignore[no-any-return]

    def owners(self) -> tuple[int, ...]:
        """The mesh dimensions along which something is divided (along the others all hold the same)."""
        return tuple(sorted(s.mesh_axis for s in self.splits if s is not None))

    @property
    def layout(self) -> Layout:
        """What a user would write for it."""
        placements: list[Placement] = [Replicated()] * len(self.mesh)
        for axis, op in self.partial:
            placements[axis] = Partial(op)
        for d, s in enumerate(self.splits):
            if s is not None:
                placements[s.mesh_axis] = _placement(d, self.shape[d], s)
        return Layout(*placements, mesh=None if len(self.mesh) == 1 else self.mesh)

    def __repr__(self) -> str:
        return f"{self.layout} of {self.shape}"


def _placement(d: int, n: int, s: Split) -> Placement:
    parts = len(s.pieces)
    if Block(d).pieces(n, parts) == s.pieces:
        return Block(d)
    if s.edges is not None:
        return Ragged(d, s.counts)
    b = max((e - a for held in s.pieces for a, e in held), default=1)
    cyclic = BlockCyclic(d, b)
    return cyclic if cyclic.pieces(n, parts) == s.pieces else Listed(d, s.pieces)


_partitions: dict[Any, Partition] = {}


def partition(
    shape: tuple[int, ...], mesh: tuple[int, ...], splits: tuple[Split | None, ...], partial: Any = ()
) -> Partition:
    """The one partition that is divided so."""
    key = (shape, mesh, splits, partial)
    found = _partitions.get(key)
    if found is None:
        if len(_partitions) > 4096:  # (programs with ever new shapes: what lives is found through its arrays)
            _partitions.clear()
        found = _partitions.setdefault(key, Partition(shape, mesh, splits, partial))
    return found


@functools.lru_cache(maxsize=4096)
def divided(shape: tuple[int, ...], size: int, layout: Layout | None = None) -> Partition:
    """The partition of a shape over so many processes; by the first dimension long enough, if nothing is
    said."""
    if layout is None:
        axis = next((d for d, n in enumerate(shape) if n >= size), None)
        layout = Layout(Replicated() if axis is None or size == 1 else Block(axis))
    mesh = layout.mesh or (size,)
    if math.prod(mesh) != size:
        raise LayoutError(
            f"A mesh of {' x '.join(map(str, mesh))} is for {math.prod(mesh)} process(es), and the "
            f"communicator has {size}. Give a mesh of {size}, or leave it away where one placement is enough."
        )
    splits: list[Split | None] = [None] * len(shape)
    partial = []
    for m, p in enumerate(layout.placements):
        if isinstance(p, Partial):
            partial.append((m, p.op))
        axis = p.axis
        if axis is None:
            continue
        d = axis + len(shape) if axis < 0 else axis
        if not 0 <= d < len(shape):
            raise LayoutError(f"{p!r} divides dimension {axis}, and the array has {len(shape)}: shape {shape}.")
        if splits[d] is not None:
            raise LayoutError(f"{layout!r} divides dimension {axis} twice; give each dimension one placement.")
        if mesh[m] > 1:
            splits[d] = Split(m, p.pieces(shape[d], mesh[m]))
        else:
            p.pieces(shape[d], 1)  # (sizes that do not fit are an error on one process, too)
    return partition(shape, mesh, tuple(splits), tuple(partial))


def everywhere(shape: tuple[int, ...], mesh: tuple[int, ...]) -> Partition:
    """The partition of which every process holds all."""
    return partition(shape, mesh, (None,) * len(shape))


def intersected(a: Pieces, b: Pieces) -> list[tuple[int, int]]:
    """The places that are in both."""
    found = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def covers(a: Pieces, b: Pieces) -> bool:
    """Does `a` hold all places of `b`?"""
    return a == b or sum(y - x for x, y in intersected(a, b)) == sum(y - x for x, y in b)
