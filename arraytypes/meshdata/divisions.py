"""A mesh divided over processes: which of the entries of arrays on it are whose, and how they come and go.

An array on a divided mesh is a `DArray` of what each process owns, with no ghosts: it is added, divided, summed
and stored as any other. The *division* of the mesh knows which further entries this process' part reaches. A
loop asks it for them, and gives back what is other processes'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.creation import asarray, empty, full
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view
from mirabelle.arraytypes.distributed.layouts import Layout, Ragged, divided
from mirabelle.arraytypes.distributed.views import family_over
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.forests import StarForest
    from mirabelle.arraytypes.meshdata.parting import Part


class Entries:
    """Entries of which this process owns some, and has copies (ghosts) of others. All processes make it.

    `numbers` has of each entry here a number: own ones come first, ghosts after them in the order in which
    they travel; `wide` has those by which all processes know them.

    >>> from mirabelle import meshdata as md
    >>> from mirabelle.arraytypes.meshdata.divisions import Entries
    >>> entries = Entries(md.StarForest(3, owners=[0], roots=[2], leaves=[0]))
    >>> entries.numbers.tolist(), entries.wide.tolist(), entries.count
    ([2, 0, 1], [1, 0, 1], 2)
    """

    __slots__ = ("_index", "count", "counts", "forest", "numbers", "own", "start", "wide")

    def __init__(self, forest: StarForest, own: np.ndarray | None = None) -> None:
        comm = forest.comm
        if own is None:
            owned = np.ones(forest.size, bool)
            owned[forest.leaves] = False
            own = np.flatnonzero(owned)
        self.forest = forest
        self.own = own
        self.count = len(self.own)
        self.counts: tuple[int, ...] = tuple(comm.allgather_object(self.count))
        self.start = sum(self.counts[: comm.rank])
        self.numbers = np.full(forest.size, -1)
        self.numbers[self.own] = np.arange(self.count)
        self.numbers[forest.leaves] = self.count + np.arange(len(forest.leaves))
        self.wide = self.numbers + self.start
        forest.bcast(self.wide)
        self._index: dict[Any, Any] = {}

    @property
    def size(self) -> int:
        """How many there are on all processes together."""
        return sum(self.counts)

    @property
    def reach(self) -> int:
        """How many this process has: own ones, and copies of others."""
        return self.count + len(self.forest.leaves)

    @property
    def alone(self) -> bool:
        """Are all entries here this process' own, in their order?"""
        return self.count == self.forest.size

    def index(self, family: Any) -> Any:
        """Where own entries are, in the memory of an array type's place."""
        if family not in self._index:
            first = int(self.own[0]) if self.count else 0
            together = bool((self.own == first + np.arange(self.count)).all())
            self._index[family] = (
                slice(first, first + self.count) if together else asarray(self.own, device=family)
            )
        return self._index[family]

    def partition(self, row: tuple[int, ...] = ()) -> Any:
        """How an array with a row for each is divided."""
        comm = self.forest.comm
        return divided((self.size, *row), comm.size, Layout(self._placement()))

    def _placement(self) -> Any:
        return Ragged(0, self.counts)

    def vector(self, x: Any, copied: bool = True) -> Any:
        """The distributed array of own entries, of a local array with ghosts."""
        family = leaf_family(type(x))
        own = x if self.alone else x[self.index(family)]
        return self.of_own(verbs.copy(own) if copied else own)

    def of_own(self, own: Any) -> Any:
        """The distributed array of what each process has of its own, whose memory it takes over."""
        family = family_over(leaf_family(type(own)))
        part = self.partition(own.shape[1:])
        return wrap(family, Leaf(family._of_local(self.forest.comm, part, verbs.leaf_of(own).view)))

    def made(self, array: Any, value: Any, dtype: Any, row: tuple[int, ...] = ()) -> Any:
        """A distributed array of one value."""
        return self.of_own(full((self.count, *row), value, dtype=dtype, device=inner_of(array)))

    def own_part(self, v: Any) -> Any:
        """What this process owns of a distributed array, as a local one that shows the memory."""
        view = evaluated_view(v) if isinstance(v, DArray) else None
        if view is None or view.partition is not self.partition(v.shape[1:]):
            if v.shape[:1] == (self.forest.size,) != (self.size,):
                raise ValueError(
                    f"A {type(v).__name__} of shape {tuple(v.shape)} is given, with a row for each of the "
                    f"{self.forest.size} points that this process' part of the mesh has, of {self.size}. "
                    "What a process has of its part is a local array: coordinates are "
                    "`mesh.coordinates_in(array)`, others `mb.HostArray(x)`; divided it is "
                    "`part.divided(component, x)`."
                )
            said = f"it is divided as {v.layout!r}" if isinstance(v, DArray) else "it is not divided"
            raise ValueError(
                f"An array of shape {tuple(v.shape)} is given for {self.size} entries of a divided mesh, each "
                f"on the process that owns it, and {said}. Make it by `V.zeros(array)`, or of what each "
                "process has, `part.divided(component, x)`."
            )
        if not view.whole:
            view = verbs.leaf_of(verbs.copy(v)).view
        return wrap(view.buffer.inner, Leaf(view.buffer.local))

    def local(self, v: Any, ghosts: bool = False, written: bool = True) -> Any:
        """A local array with the own entries of a distributed one, and room for ghosts, or these, too.

        It is a copy, unless it is not written and there are no ghosts.
        """
        own = self.own_part(v)
        if self.alone:
            made = verbs.copy(own) if written else own
        else:
            made = empty((self.forest.size, *own.shape[1:]), dtype=own.dtype, device=leaf_family(type(own)))
            made[self.index(leaf_family(type(own)))] = own
        if ghosts:
            self.forest.bcast(made)
        return made


def entries_by(forest: StarForest) -> Entries:
    """The entries of which a forest says whose they are: made once, by all processes together."""
    if forest._entries is None:
        forest._entries = Entries(forest)
    found: Entries = forest._entries
    return found


class PartRows(np.ndarray):
    """Positions in what this process has of a divided mesh, which knows where they are in distributed arrays.

    A distributed array that is indexed with them, by all processes together, is so with those of all.
    """

    entries: Entries | None = None
    _whole: np.ndarray | None = None

    def __array_finalize__(self, given: Any) -> None:
        self.entries = getattr(given, "entries", None)  # (of some of them)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, PartRows) else x for x in inputs]  # other numbers mean nothing
        return getattr(ufunc, method)(*plain, **kwargs)

    def index_of(self, x: Any) -> Any:
        """The same as numbers in a distributed array."""
        if self.entries is None:
            return np.asarray(self)
        if self.entries.size not in x.shape:
            raise IndexError(
                f"Positions of {self.entries.size} entries of a divided mesh index an array of shape "
                f"{tuple(x.shape)}: one of other entries, of another space perhaps."
            )
        if self._whole is None:
            rows = np.asarray(self)
            own = self.entries.wide[rows[self.entries.numbers[rows] < self.entries.count]]
            self._whole = np.unique(np.concatenate(self.entries.forest.comm.allgather_object(own)))
        return self._whole

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


def part_rows(rows: np.ndarray, entries: Entries) -> PartRows:
    """Positions of entries of a divided mesh."""
    made = rows.view(PartRows)
    made.entries = entries
    return made


class Division:
    """How a mesh is divided over processes, as this process' part of it knows."""

    def __init__(self, part: Part, comm: Any) -> None:
        self.part, self.comm = part, comm
        self._entries: dict[Any, Entries] = {}
        self._owned: dict[Any, tuple[Any, Any]] = {}

    def entries(self, of: Any) -> Entries:
        """The points of a component, or the entries of a tree. All processes ask together."""
        found = self._entries.get(of)
        if found is None:
            from mirabelle.arraytypes.meshdata.treeforests import part_forest

            found = self._entries[of] = Entries(part_forest(self.part, of, comm=self.comm))
        return found

    def owned(self, points: Any) -> Any:
        """Those of some points that are this process' own: loops over all processes run at each point once."""
        base: Points = points.points if isinstance(points, Subset) else points
        key = id(points) if isinstance(points, Subset) else ("all", base.component)
        found = self._owned.get(key)
        if found is not None and (found[0] is points or not isinstance(points, Subset)):
            return found[1]
        indices: Any = points.indices if isinstance(points, Subset) else np.arange(base.size)
        kept = self.mine(base)[indices]
        made = points if bool(kept.all()) else base.subset(indices[kept])
        if len(self._owned) > 64:
            self._owned.clear()
        self._owned[key] = points, made  # (tables of a subset are known by the object)
        return made

    def mine(self, base: Points) -> np.ndarray:
        """Which of all points of a kind this process runs."""
        return np.arange(base.size) < self.part.owned(base.component)

    def numbers(self, base: Points) -> np.ndarray:
        """By which numbers all processes know them, in the order in which one process would run them."""
        return np.asarray(self.part.numbers(base.component), np.int64)


class PairsDivision(Division):
    """How the pairs of a point and one that it leads to are divided: a pair is its larger point's process'.

    (Who owns a cell has all its corners; who owns a corner may have only some of its cells.)
    """

    def __init__(
        self,
        division: Division,
        first: tuple[Points, np.ndarray],
        second: tuple[Points, np.ndarray],
        places: np.ndarray,
    ) -> None:
        super().__init__(division.part, division.comm)
        self._whole, self._first, self._second, self._places = division, first, second, places
        dim = division.part.mesh.topology.dim_of
        self._upward = dim(second[0].component) > dim(first[0].component)

    def entries(self, of: Any) -> Entries:
        if of is None:
            raise TypeError(
                "Pairs on a divided mesh have no rows in distributed arrays. What one process makes of its own "
                "pairs is in an array of its own, `mb.zeros(len(pairs))`; sums go to the points, "
                "`md.INC(total, vertex)`."
            )
        return self._whole.entries(of)

    def mine(self, base: Points) -> np.ndarray:
        larger, at = self._second if self._upward else self._first
        return self._whole.mine(larger)[at]

    def numbers(self, base: Points) -> np.ndarray:
        (p, first), (q, second) = self._first, self._second
        # (Cells at a point rise, and some may not be here; corners of a cell have an order of their own.)
        within = self._whole.numbers(q)[second] if self._upward else self._places
        return self._whole.numbers(p)[first] << 31 | within


def division_of(points: Any) -> Any:
    """The division of the mesh that points belong to; None of one that is not divided."""
    return getattr(points.points if isinstance(points, Subset) else points, "division", None)


def is_divided(array: Any) -> bool:
    """Is it a type of distributed arrays?"""
    return isinstance(array, type) and issubclass(array, DArray)


def inner_of(array: Any) -> Any:
    """The type of the local arrays of a type."""
    if not is_divided(array):
        return array
    return default_family() if array.inner is None else array.inner


def seen_by_all(comm: Any, values: Any, found: np.ndarray) -> tuple[Any, np.ndarray]:
    """Values at points of which each process found some, on all: those of the lowest rank; and which are
    found."""
    here = verbs.to_numpy(values)
    flat = here.reshape(len(found), here.size // max(len(found), 1))  # (points may have several axes, or none)
    out, seen = np.full_like(flat, np.nan), np.zeros(len(found), bool)
    for mask, theirs in reversed(comm.allgather_object((found, flat[found]))):
        out[mask] = theirs
        seen |= mask
    return asarray(out.reshape(here.shape), device=leaf_family(type(values))), seen
