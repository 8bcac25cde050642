"""Star forests: which entries of which processes are copies of which others, and how values follow.

Each entry of a process is an *owned* one, or a *leaf*: a copy (a ghost) of a *root*, an owned entry of some
process. A root and its leaves are a star. Values go down by `bcast` (each leaf becomes as its root) and up by
`reduce` (each root is combined with all its leaves), with one message at most between two processes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.meshdata.exchange import OnHost, OnPlace, Route
from mirabelle.arraytypes.meshdata.forestchecks import (
    check_held,
    checked_arrays,
    checked_links,
    checked_numbers,
    checked_roots,
    checked_table,
    mask,
)
from mirabelle.arraytypes.meshdata.forestlinks import by_rank, check_owners, swapped
from mirabelle.arraytypes.meshdata.rootsums import Combination, Operation, operation, picked, put

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.meshdata.annotations import Combining, Sent

T = TypeVar("T")
# So many facts about what loops reach of a forest's entries are kept.
KEPT_FACTS = 128


class UnderWay:
    """Values on their way along a forest. `end()` waits for them and puts them where they belong.

    Until then the arrays are free: what is sent was gathered at the beginning, and what comes is written (or
    combined with what then stands there) at the end.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> under_way = md.StarForest(3, owners=[0], roots=[1]).begin_bcast(x)  # (entry 2 is a copy of entry 1)
    >>> under_way.end()
    >>> print(x, under_way.ended)
    [1. 2. 2.] True
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_exchange", "_use")

    def __init__(self, exchange: OnHost | OnPlace, use: Callable[[list[Any]], None]) -> None:
        self._exchange: OnHost | OnPlace | None = exchange
        self._use = use

    @property
    def ended(self) -> bool:
        """Has `end` been called?"""
        return self._exchange is None

    def end(self) -> None:
        """Wait for the values that come, and put them where they belong. (A second time it does nothing.)"""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.finish(self._use)


class StarForest:
    """Which entries are copies (leaves) of which owned ones (roots). All processes make it together.

    `size` entries are on this process. `owners` and `roots` say of each leaf on which rank its root is, and
    which entry it is there; `leaves` says which entries the leaves are: the last ones, unless given. Made over
    `mb.distributed.communicator()`, or `comm`.

    With `root_size` roots are entries of other arrays, of that many entries on this process: a forest that
    leads from one division of data to another. `bcast(x, out)` then fills `out`.

    Parameters
    ----------
    size : int
        How many entries are on this process.
    owners : int array
        On which rank the root of each leaf is.
    roots : int array
        Which entry it is there.
    leaves : int array or None
        Which entries are the leaves; None is the last ones.
    root_size : int or None
        How many entries the arrays of roots have, where these are other arrays.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> forest = md.StarForest(4, owners=[0], roots=[1])   # entry 3 is a copy of entry 1, both of rank 0
    >>> x = mb.HostArray([1.0, 2.0, 3.0, 4.0])
    >>> forest.reduce(x, "sum")
    >>> print(x)
    [1. 6. 3. 4.]
    >>> forest.bcast(x)
    >>> print(x)
    [1. 6. 3. 6.]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = (
        "_combined", "_down", "_entries", "_facts", "_up", "comm", "leaves", "owners", "root_size", "roots",
        "same_space", "size",
    )  # fmt: skip

    def __init__(
        self,
        size: int,
        owners: npt.ArrayLike,
        roots: npt.ArrayLike,
        leaves: npt.ArrayLike | None = None,
        *,
        root_size: int | None = None,
        comm: Communicator | None = None,
    ) -> None:
        comm = communicator() if comm is None else comm
        found = on_all(comm, lambda: checked_links(comm, size, owners, roots, leaves, root_size))
        self.comm, self.size = comm, found.size
        self.same_space = root_size is None
        self.root_size = found.size if root_size is None else found.root_size
        # Leaves in the order in which they travel: by rank of the root, then by their own number.
        order = np.lexsort((found.leaves, found.owners))
        self.leaves, self.owners, self.roots = (
            _frozen(x[order]) for x in (found.leaves, found.owners, found.roots)
        )
        mine = by_rank(self.owners, self.leaves)
        wanted = swapped(comm, by_rank(self.owners, np.stack([self.roots, self.leaves], axis=1)), 2)
        on_all(comm, lambda: checked_roots(self, wanted))
        asked = {r: links[:, 0].astype(np.intp) for r, links in wanted.items()}
        name = comm.bcast_object(_new_name() if comm.rank == 0 else None)
        self._down = Route(comm, name, asked, {r: len(x) for r, x in mine.items()})
        self._up = Route(comm, name, mine, {r: len(x) for r, x in asked.items()})
        self._combined: Combination | None = None
        self._facts: dict[Hashable, Any] = {}
        self._entries: Any = None

    # Where forests come from

    @classmethod
    def from_owners(
        cls, numbers: npt.ArrayLike, owners: npt.ArrayLike, *, comm: Communicator | None = None
    ) -> StarForest:
        """The forest of entries that are known by global numbers, and of each of which one rank is the owner.

        `numbers` are the global numbers of this process' entries, each once, and `owners` the ranks that own
        them: what a rank does not own itself is a leaf. That all ranks agree is looked at.

        >>> from mirabelle import meshdata as md
        >>> md.StarForest.from_owners([7, 3, 5], [0, 0, 0])
        <star forest: 3 entries on rank 0 of 1, 0 of them leaves>
        """
        comm = communicator() if comm is None else comm
        found, ranks = on_all(comm, lambda: checked_table(comm, numbers, owners))
        order = np.argsort(found, kind="stable")
        away = np.flatnonzero(ranks != comm.rank)
        away = away[np.argsort(ranks[away], kind="stable")]
        asked = swapped(comm, by_rank(ranks[away], found[away][:, None]), 1)
        on_all(comm, lambda: check_held(comm, found, ranks, order, asked))
        check_owners(comm, found[ranks == comm.rank])
        answers = {}
        for r, wanted in asked.items():
            place = order[np.searchsorted(found, wanted[:, 0], sorter=order)]
            answers[r] = place.astype(np.int64)[:, None]
        came = swapped(comm, answers, 1)
        roots = np.concatenate([np.zeros(0, np.int64), *[came[r][:, 0] for r in sorted(came)]])
        return cls(len(found), ranks[away], roots, away, comm=comm)

    @classmethod
    def star(cls, size: int = 1, root: int = 0, *, comm: Communicator | None = None) -> StarForest:
        """`size` numbers that all ranks share: those of one rank are the roots, those of the others leaves.

        >>> from mirabelle import meshdata as md
        >>> md.StarForest.star()
        <star forest: 1 entries on rank 0 of 1, 0 of them leaves>
        """
        comm = communicator() if comm is None else comm
        n = 0 if comm.rank == root else size
        return cls(size, np.full(n, root), np.arange(n), np.arange(n), comm=comm)

    # Values

    def bcast(self, x: Sent, out: Sent | None = None) -> None:
        """Every leaf becomes what its root is: of one array, or of each of a list of arrays, in one message.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> a, b = mb.HostArray([1.0, 0.0]), mb.HostArray([[1, 2], [0, 0]])
        >>> md.StarForest(2, owners=[0], roots=[0]).bcast([a, b])
        >>> print(a, b.tolist())
        [1. 1.] [[1, 2], [1, 2]]
        """
        self.begin_bcast(x, out).end()

    def begin_bcast(self, x: Sent, out: Sent | None = None) -> UnderWay:
        """Send what roots are now; leaves become so at `end()` of what is returned."""
        sources, targets = self._both(x, out, down=True)

        def fill(values: list[Any]) -> None:
            for target, value in zip(targets, values, strict=True):
                put(self._down, target, "leaves", self.leaves, value)

        return UnderWay(self._down.begin(sources, ("bcast of a star forest",)), fill)

    def reduce(self, x: Sent, op: Combining = "sum", out: Sent | None = None) -> None:
        """Every root is combined with all its leaves: in the order of ranks, and of leaves on each.

        `op` is "sum", "prod", "min", "max", "any", "all" or "replace", a ufunc or a function of two arrays; for
        several arrays also a list, one for each.

        >>> import numpy as np
        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> x = mb.HostArray([3.0, 8.0, 5.0])
        >>> md.StarForest(3, owners=[0, 0], roots=[0, 0]).reduce(x, np.maximum)
        >>> print(x)
        [8. 8. 5.]
        """
        self.begin_reduce(x, op, out).end()

    def begin_reduce(self, x: Sent, op: Combining = "sum", out: Sent | None = None) -> UnderWay:
        """Send what leaves are now; roots are combined with it at `end()` of what is returned."""
        sources, targets = self._both(x, out, down=False)
        each = op if isinstance(op, (list, tuple)) else [op] * len(sources)
        ops: list[Operation] = [operation(o) for o in each]
        if len(ops) != len(sources):
            raise ValueError(f"There are {len(sources)} arrays and {len(ops)} operations: give one for each.")
        for o, source, target in zip(ops, sources, targets, strict=True):
            o.check(source.dtype, target.dtype)

        def combine(values: list[Any]) -> None:
            how = self._combination()
            for o, target, value in zip(ops, targets, values, strict=True):
                how.combine(o, target, value)

        words = "reduction of a star forest", ", ".join(o.name for o in ops)
        return UnderWay(self._up.begin(sources, words), combine)

    def gather(self, x: Sent) -> tuple[np.ndarray, Any]:
        """What all leaves are, at their roots: `(offsets, values)`.

        The leaves of root i are `values[offsets[i]:offsets[i + 1]]`, in the order of ranks, and of leaves on
        each.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> forest = md.StarForest(3, owners=[0, 0], roots=[0, 0])
        >>> offsets, values = forest.gather(mb.HostArray([3.0, 8.0, 5.0]))
        >>> offsets.tolist(), values.tolist()
        ([0, 2, 2, 2], [8.0, 5.0])
        """
        (source,), _ = self._both(x, x, down=False, gathers=True)
        links = self._down.index
        order = np.argsort(links, kind="stable")
        counts = np.bincount(links, minlength=self.root_size)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        found: list[Any] = [source[:0]]

        def keep(values: list[Any]) -> None:
            found[0] = picked(self._down, values[0], source, "gathered", order)

        UnderWay(self._up.begin([source], ("gathering of a star forest",)), keep).end()
        return offsets, found[0]

    def _both(self, x: Any, out: Any, down: bool, gathers: bool = False) -> tuple[list[Any], list[Any]]:
        """The arrays that values come from and go to."""
        sources = list(x) if isinstance(x, (list, tuple)) else [x]
        if out is None and not self.same_space:
            raise ValueError(
                "The roots of this forest are entries of other arrays than its leaves: say where the "
                "values go, "
                "`forest.bcast(x, out)`."
            )
        targets = sources if out is None or gathers else list(out) if isinstance(out, (list, tuple)) else [out]
        sizes = (self.root_size, self.size) if down else (self.size, self.root_size)
        checked_arrays(sources, targets, sizes, gathers)
        return sources, targets

    def _combination(self) -> Combination:
        if self._combined is None:
            self._combined = Combination(self._down)
        return self._combined

    # Distributed arrays

    def divided(self, x: AbstractArray) -> AbstractArray:
        """The distributed array of the owned entries of a local one, without ghosts: all processes make it.

        Loops take it with tables that name the forest, and bring its ghosts when they are read.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> forest = md.StarForest(3, owners=[0], roots=[0])      # a ring of two: entry 2 is a copy of entry 0
        >>> u, y = (forest.divided(mb.HostArray(x)) for x in ([1.0, 2.0, 0.0], [0.0, 0.0, 0.0]))
        >>> edges = md.Points("ring", "edge", 2)
        >>> ends = md.Dofs(edges, [[0, 1], [1, 2]], size=3, forest=forest)
        >>> def add(u, y):
        ...     for i in range(2):
        ...         y[i] += u[0] + u[1]
        >>> md.loop(edges, add, md.READ(u, ends), md.INC(y, ends))
        >>> y
        DArray[HostArray[float64, 1]]([6., 6.])
        """
        from mirabelle.arraytypes.define import as_array
        from mirabelle.arraytypes.meshdata.divisions import entries_by

        x = as_array(x)
        checked_arrays([x], [x], (self.size, self.size), False)
        return entries_by(self).vector(x)

    def local(self, v: AbstractArray) -> AbstractArray:
        """The local array with all entries here, ghosts included, of a distributed one.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> forest = md.StarForest(3, owners=[0], roots=[0])
        >>> print(forest.local(forest.divided(mb.HostArray([1.0, 2.0, 0.0]))))
        [1. 2. 1.]
        """
        from mirabelle.arraytypes.meshdata.divisions import entries_by

        return entries_by(self).local(v, ghosts=True)

    def known(self, fact: Hashable, find: Callable[[], T]) -> T:
        """Something about what is reached of its entries, which all processes find out together, once.

        (All ask for the same facts in the same order, so that none is without one that others keep.)

        >>> from mirabelle import meshdata as md
        >>> forest = md.StarForest(2, [0], [0])
        >>> forest.known("leaves", lambda: len(forest.leaves)), forest.known("leaves", lambda: None)
        (1, 1)
        """
        if fact not in self._facts:
            found = find()
            if len(self._facts) >= KEPT_FACTS:  # (of subsets that come once: the oldest go)
                self._facts.pop(next(iter(self._facts)))
            self._facts[fact] = found
        return cast("T", self._facts[fact])

    # Other forests

    def compose(self, other: StarForest) -> StarForest:
        """The forest that leads the leaves of `other` on: to the roots of what their roots are copies of.

        Roots of `other` are entries of this forest: its leaves lead to its roots, and what is no leaf is a root
        itself (with `root_size`, it leads nowhere, and such leaves of `other` are left out).

        >>> from mirabelle import meshdata as md
        >>> a = md.StarForest(4, owners=[0], roots=[2])                  # entry 3 is a copy of entry 2
        >>> b = md.StarForest(2, owners=[0, 0], roots=[3, 1], root_size=4)
        >>> a.compose(b).roots.tolist()
        [2, 1]
        """
        if other.root_size != self.size:
            raise ValueError(
                f"Roots of the second forest are among {other.root_size} entries here, and the first one has "
                f"{self.size}: it does not lead them on."
            )
        links = np.full((self.size, 2), -1, np.int64)
        if self.same_space:
            links[:] = np.stack([np.full(self.size, self.comm.rank), np.arange(self.size)], axis=1)
        links[self.leaves] = np.stack([self.owners, self.roots], axis=1)
        found = np.full((other.size, 2), -1, np.int64)
        other.bcast(links, found)
        leaves = other.leaves[found[other.leaves, 0] >= 0]
        size = None if self.same_space and other.same_space else self.root_size
        owners, roots = found[leaves].T
        return StarForest(other.size, owners, roots, leaves, root_size=size, comm=self.comm)

    def restricted(self, leaves: npt.ArrayLike | None = None, roots: npt.ArrayLike | None = None) -> StarForest:
        """The forest without some of its links: masks, or indices, of the entries of which those stay.

        >>> from mirabelle import meshdata as md
        >>> forest = md.StarForest(4, owners=[0, 0], roots=[0, 1])
        >>> forest.restricted(leaves=[3])
        <star forest: 4 entries on rank 0 of 1, 1 of them leaves>
        """
        kept, known = on_all(self.comm, lambda: (mask(leaves, self.size), mask(roots, self.root_size)))
        numbers = np.arange(self.size)
        return self._moved(np.where(kept, numbers, -1), np.where(known, np.arange(self.root_size), -1))

    def renumbered(self, numbers: npt.ArrayLike, size: int | None = None) -> StarForest:
        """The same links where entries have other numbers; those with -1 are gone, and links to them.

        >>> from mirabelle import meshdata as md
        >>> md.StarForest(3, owners=[0], roots=[1]).renumbered([-1, 1, 0]).leaves.tolist()
        [0]
        """
        found = on_all(self.comm, lambda: checked_numbers(self, numbers))
        size = int(found.max(initial=-1)) + 1 if size is None else size
        return self._moved(found, found, size)

    def expanded(
        self,
        offsets: npt.ArrayLike | None = None,
        sizes: npt.ArrayLike | None = None,
        *,
        block: int = 1,
        size: int | None = None,
    ) -> StarForest:
        """The forest of degrees of freedom, where this one is of points.

        Point p has `sizes[p]` entries (one, unless given) from `offsets[p]` on, each a block of so many
        numbers; `offsets` may have several columns, each with its own sizes. Without offsets the entries of
        points follow each other. The root's offsets are sent once. `size` is how many entries there are here,
        where not all belong to points.

        >>> from mirabelle import meshdata as md
        >>> points = md.StarForest(3, owners=[0], roots=[1])
        >>> points.expanded(block=2).leaves.tolist()
        [4, 5]
        >>> points.expanded([0, 1, 3], [1, 2, 2]).roots.tolist()
        [1, 2]
        """
        from mirabelle.arraytypes.meshdata.expansions import expanded

        return expanded(self, offsets, sizes, block, size)

    def _moved(self, leaf_numbers: np.ndarray, root_numbers: np.ndarray, size: int | None = None) -> StarForest:
        led = np.full(self.size, -1, np.int64)
        self.bcast(root_numbers.astype(np.int64), led)
        kept = (leaf_numbers[self.leaves] >= 0) & (led[self.leaves] >= 0)
        leaves = self.leaves[kept]
        size = self.size if size is None else size
        root_size = None if self.same_space else self.root_size
        return StarForest(
            size, self.owners[kept], led[leaves], leaf_numbers[leaves], root_size=root_size, comm=self.comm
        )

    # What it says of itself

    @property
    def neighbours(self) -> tuple[int, ...]:
        """The ranks with which messages are exchanged."""
        return tuple(sorted({*self._down.outgoing, *self._down.incoming} - {self.comm.rank}))

    @property
    def labels(self) -> np.ndarray:
        """Of each entry: 0 core (nobody else has it), 1 root (others have copies), 2 leaf (a copy)."""
        found = np.zeros(self.size, np.int8)
        if self.same_space:
            found[self._down.index] = 1
        found[self.leaves] = 2
        return found

    @property
    def ghosts_last(self) -> bool:
        """Are the leaves the last entries?"""
        return bool(not len(self.leaves) or self.leaves.min() == self.size - len(self.leaves))

    def __repr__(self) -> str:
        other = "" if self.same_space else f", roots among {self.root_size} others"
        return (
            f"<star forest: {self.size} entries on rank {self.comm.rank} of {self.comm.size}, "
            f"{len(self.leaves)} of them leaves{other}>"
        )


def _frozen(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.intp)
    x.setflags(write=False)
    return x


def _new_name() -> str:
    """What messages of one forest are known by, on all ranks."""
    return secrets.token_hex(8)
