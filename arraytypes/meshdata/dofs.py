"""Which entries of an array each point of a loop reaches."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.points import Points
from mirabelle.dispatch.forks import ForkLock

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike
    from mirabelle.arraytypes.meshdata.forests import StarForest
    from mirabelle.arraytypes.meshdata.maps import Map
    from mirabelle.arraytypes.meshdata.trees import AxisTree

# So many things that were found out about a table are kept.
KEPT_FACTS = 32


class Dofs:
    """A table of positions: point p reaches the entries `table[p, k]`, each of them a block of `block` numbers.

    In a flat array of `size` blocks entry (t, b) stands at `t * prod(block) + b`; a plain array may have the
    block as its further axes. A kernel sees an array of shape `local`, (K, *block) if not said. A position of
    -1 is nothing: it is read as zero, and nothing is written there. Over processes `forest` says which entries
    are copies of which, where no tree of a divided mesh does.

    Parameters
    ----------
    source : Points
        The points that reach entries.
    table : int array (points, K)
        Which entries each point reaches; -1 is nothing.
    size : int
        How many entries (blocks) the arrays have.
    block : tuple of int, default ()
        The shape of one entry.
    tree : AxisTree or None
        The tree whose arrays are meant; None is plain arrays.
    local : tuple of int or None
        The shape of what a kernel sees; None is (K, *block).
    forest : StarForest or None
        Over processes: which entries are copies of which.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> cells = md.Points("mesh", "cell", 2)
    >>> md.Dofs(cells, [[0, 1, 2], [1, 3, 2]], size=4)
    Dofs(2 'cell' -> 3 each of 4)
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = (
        "__weakref__", "_facts", "_placed", "block", "forest", "local", "shared", "size", "source",
        "table", "tree",
    )  # fmt: skip

    def __init__(
        self,
        source: Points,
        table: ArrayLike,
        size: int,
        *,
        block: tuple[int, ...] = (),
        tree: AxisTree | None = None,
        local: tuple[int, ...] | None = None,
        forest: StarForest | None = None,
    ) -> None:
        given = np.asarray(table)
        if given.ndim != 2 or len(given) != len(source) or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(
                f"The table of {len(source)} points {source.name!r} has a row of integers for each, and this "
                f"one has shape {given.shape} and dtype {given.dtype}."
            )
        if given.size and (int(given.min()) < -1 or int(given.max()) >= size):
            p, k = np.argwhere((given < -1) | (given >= size))[0]
            raise IndexError(
                f"The table leads outside: row {p} has {given[p, k]} in column {k}, and there are {size} "
                "entries, numbered from 0 (-1 stands for nothing)."
            )
        large = size * max(1, math.prod(block)) >= 2**31 or given.size >= 2**31
        made = np.ascontiguousarray(given, np.int64 if large else np.int32)
        if made is given:
            made = given.view()
        made.setflags(write=False)
        self.source = source
        self.table = _shared(source, made)
        self.size = int(size)
        self.block = tuple(int(b) for b in block)
        self.tree = tree
        self.forest: Any = forest
        # Over processes that all have the mesh: what they found out together about the table, by who asked.
        self.shared: dict[Any, Any] | None = None
        self.local = (made.shape[1], *self.block) if local is None else tuple(local)
        self._placed: dict[Any, Any] = {}
        self._facts: dict[Any, Any] = {}

    # Of points in columns (columns.py): how far apart neighbouring layers reach, and how many there are.
    strides: tuple[int, ...] = ()
    layers = 0

    @property
    def rows(self) -> np.ndarray:
        """The table as loops read it."""
        return self.table

    @property
    def arity(self) -> int:
        """How many entries each point reaches."""
        return int(self.table.shape[1])

    def __repr__(self) -> str:
        block = f" blocks of {self.block}" if self.block else ""
        return f"Dofs({self.source.size} {self.source.name!r} -> {self.arity} each of {self.size}{block})"

    def known(self, fact: Hashable, find: Callable[[Any], Any]) -> Any:
        """Something about the table that is looked up once."""
        found = self._facts.get(fact, self)
        if found is self:
            found = find(self.table)
            if len(self._facts) >= KEPT_FACTS:  # (parts of subsets that come once: the oldest go)
                oldest, *_ = self._facts  # (at once: other threads add meanwhile)
                self._facts.pop(oldest, None)
            self._facts[fact] = found
        return found

    @property
    def partial(self) -> bool:
        """Does some point reach nothing somewhere?"""
        return bool(self.known("partial", lambda t: t.size > 0 and int(t.min()) < 0))

    @property
    def injective(self) -> bool:
        """Is every entry reached at most once?"""
        return bool(self.known("injective", _injective))

    def inverse(self) -> tuple[Any, Any, Any]:
        """For each entry that is reached: `reached`, and from where, `sources[starts[i]:starts[i + 1]]`.

        A source is `k * len(points) + p`; they are ordered by points.
        """
        found: tuple[Any, Any, Any] = self.known("inverse", _inverse)
        return found

    def on(self, family: type[AbstractArray], what: str = "table") -> AbstractArray:
        """A table (or a part of the inverse) in the memory of an array type's place."""
        key = family, what
        if key not in self._placed:
            values = self.rows if what == "table" else self._of_inverse(what)
            self._placed[key] = placed(family, values)
        return self._placed[key]

    def _of_inverse(self, what: str) -> Any:
        reached, starts, sources = self.inverse()
        if what == "starts of all":
            counts = np.zeros(self.size + 1, starts.dtype)
            counts[1:][reached] = np.diff(starts)
            return np.cumsum(counts, dtype=starts.dtype)
        return {"reached": reached, "starts": starts, "sources": sources}[what]


# What the inverse of a table consists of: for the entries that are reached, and for all of them.
INVERSE, INVERSE_OF_ALL = ("reached", "starts", "sources"), ("starts of all", "sources")
# The tables there are, by what they lead from and their size.
_tables: dict[Any, list[weakref.ref[np.ndarray]]] = {}
_lock = ForkLock()


def _shared(source: Points, table: np.ndarray) -> np.ndarray:
    """An equal table that there is already, or this one: arguments of a loop with one table read it once.

    (Linear elements have their degrees of freedom where a map to the vertices leads.)
    """
    key = source.axis, source.component, source.size, table.shape, table.dtype
    with _lock:
        living = [(ref, known) for ref in _tables.get(key, ()) if (known := ref()) is not None]
        for _, known in living:
            if np.array_equal(known, table):
                return known
        gone = [k for k, refs in _tables.items() if all(ref() is None for ref in refs)]
        for other in gone:
            del _tables[other]
        _tables[key] = [ref for ref, _ in living[-3:]] + [weakref.ref(table)]
    return table


def placed(family: Any, values: Any) -> Any:
    """A table as an array of a type. (On the host its own memory.)"""
    from mirabelle.arraytypes.creation import asarray
    from mirabelle.arraytypes.host import HostArray

    if family is HostArray:
        return asarray(values)
    return family(values)


def _injective(table: Any) -> bool:
    flat = table[table >= 0]
    return flat.size == 0 or int(np.bincount(flat).max()) <= 1


def _inverse(table: Any) -> tuple[Any, Any, Any]:
    n, k = table.shape
    flat = table.reshape(-1)
    order = np.argsort(flat, kind="stable")
    order = order[np.searchsorted(flat[order], 0) :]  # without those that are nothing
    targets = flat[order]
    first = np.flatnonzero(np.concatenate([[True], targets[1:] != targets[:-1]])) if targets.size else targets
    starts = np.append(first, targets.size).astype(table.dtype)
    points, column = np.divmod(order, max(k, 1))
    return targets[first].astype(table.dtype), starts, (column * n + points).astype(table.dtype)


def dofs(through: Map, tree: AxisTree) -> Dofs:
    """The entries of an array over an axis tree that a map leads to, in the map's order.

    For a point the targets of the map's components come one after the other, and of each the entries of the
    tree under it. Inner axes of one constant extent behind all of them are the block.

    Parameters
    ----------
    through : Map
        From the points of a loop to those that carry data.
    tree : AxisTree
        The tree of the array.

    Returns
    -------
    mb.meshdata.Dofs
        A row of entries for each point of the map's source, -1 where there is none; what `md.READ`,
        `md.INC` and the others take.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1)
    >>> V = md.space(mesh, "P", 1)
    >>> V.dofs
    Dofs(2 'cell' -> 3 each of 4)
    """
    from mirabelle.arraytypes.meshdata.treedofs import tree_dofs

    return tree_dofs(through, tree)
