"""Lazy communication: arrays with ghosts that are exchanged when somebody reads them, and not before.

A loop says what it does to which arrays and how far it reaches; what has to travel then travels while it runs
over those entities that need nothing of it:

    access = md.begin_access([(u, "READ", cells.touched), (y, "INC", cells.touched)])
    ...run over cells.core
    access.roots()      # what others contributed to our entries is there
    ...run over cells.root
    access.end()        # ghosts hold
    ...run over cells.leaf
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.annotations import ArrayLike, Index
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.forestchecks import check_array
from mirabelle.arraytypes.meshdata.forests import StarForest, UnderWay
from mirabelle.arraytypes.meshdata.ghoststates import (
    HELD,
    PIECES,
    STALE,
    TOUCHED,
    Action,
    State,
    access_name,
    transition,
)
from mirabelle.arraytypes.meshdata.rootsums import NAMES, put
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike


class Ghosted:
    """A process' array of owned entries and ghosts, which knows what the ghosts are worth.

    `forest` says which entries are ghosts and of what. In a new one they hold, unless `valid=False`, or
    `pending` names the operation by which what stands in them is still to join the owners' entries.

    Parameters
    ----------
    array : array
        The owned entries and the ghosts of this process.
    forest : StarForest
        Which entries are ghosts, and of what.
    valid : bool, default True
        Do the ghosts hold what their owners have?
    pending : str or None
        The operation by which ghosts are still to join their owners' entries: "sum", "min" or "max".

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> u = md.Ghosted(mb.HostArray([1.0, 2.0, 0.0]), md.StarForest(3, owners=[0], roots=[0]), valid=False)
    >>> print(u.data_ro())
    [1. 2. 1.]
    >>> u.state
    State(pending=None, valid=True)
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_access", "array", "forest", "owned_count", "state", "writers")

    # A loop over it is one of all processes.
    communicates = True

    def __init__(
        self, array: AbstractArray, forest: StarForest, *, valid: bool = True, pending: str | None = None
    ) -> None:
        check_array(array, forest.size)
        if not forest.same_space:
            raise ValueError(
                "The ghosts of an array are copies of entries of the same array on other processes."
            )
        self.array = array
        self.forest = forest
        # How many of the entries here are this process' own.
        self.owned_count = forest.size - len(forest.leaves)
        # Which ghosts are still to replace their owners' entries, where not all are.
        self.writers: StarForest | None = None
        self.state = HELD
        self._access: GhostAccess | None = None
        self.reset(valid=valid, pending=pending)

    def begin(self, access: str, touched: str = "ghosts", *, subset: bool = False) -> GhostAccess:
        """Prepare for an access: what has to travel is on its way until `end()` of what is returned."""
        return GhostAccess([(self, access, touched, subset)])

    def data_ro(self) -> AbstractArray:
        """The array, to be read: ghosts hold."""
        self.begin("READ").end()
        return self.array

    def data_rw(self) -> AbstractArray:
        """The array, to be read and written: ghosts hold now. Write owned entries only."""
        self.begin("RW").end()
        return self.array

    def data_wo(self, subset: bool = False) -> AbstractArray:
        """The array, whose owned entries are all going to be written (or some of them)."""
        self.begin("WRITE", subset=subset).end()
        return self.array

    def fill(self, value: ArrayLike) -> None:
        """Give all entries one value, ghosts included: nothing has to travel for it.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> u = md.Ghosted(mb.HostArray([1.0, 2.0]), md.StarForest(2, [0], [0]), pending="sum")
        >>> u.fill(0)
        >>> u.state, u.array.tolist()
        (State(pending=None, valid=True), [0.0, 0.0])
        """
        self.begin("ASSIGN").end()
        self.array[...] = value

    def __setitem__(self, index: Index, value: ArrayLike) -> None:
        """`x[...] = 0` is `x.fill(0)`; parts of it are written by loops, or as parts of the array itself."""
        whole = index is Ellipsis or (isinstance(index, slice) and index == slice(None))
        if not whole or np.ndim(value):
            raise TypeError(
                "An array with ghosts takes one value for all its entries, `x[...] = 0`. Add to parts of it by "
                "a loop, `md.INC(x, map)`; what only this process writes goes to its own entries, "
                "`x.data_wo(subset=True)[indices] = values`."
            )
        self.fill(value)

    def reset(self, *, valid: bool = True, pending: str | None = None) -> None:
        """Say anew, on all processes, what ghosts are worth: after some of them stopped half-way.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> u = md.Ghosted(mb.HostArray([1.0, 2.0]), md.StarForest(2, [0], [0]))
        >>> u.reset(valid=False)
        >>> u.state
        State(pending=None, valid=False)
        """
        if pending is not None and pending not in NAMES:
            raise ValueError(f"{pending!r} is no reduction: there are {', '.join(NAMES)}.")
        self.state = State(pending, valid and pending is None)
        self._access = self.writers = None

    def copy(self) -> Ghosted:
        """The same in new memory: with what ghosts are worth.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> u = md.Ghosted(mb.HostArray([1.0, 2.0]), md.StarForest(2, [0], [0]), pending="sum")
        >>> v = u.copy()
        >>> u.fill(0)
        >>> v.state, v.array.tolist()
        (State(pending='sum', valid=False), [1.0, 2.0])
        """
        array = self.array.copy() if isinstance(self.array, np.ndarray) else verbs.copy(self.array)
        made = Ghosted(array, self.forest)
        made.owned_count, made.state, made.writers = self.owned_count, self.state, self.writers
        return made

    @property
    def owned(self) -> AbstractArray:
        """The owned entries, where ghosts are the last: a view. (Read them after an access that brings "
        "them up.)"""
        if not self.forest.ghosts_last:
            raise ValueError(
                "Ghosts are not the last entries here, so owned ones are no range: take `x[indices]`."
            )
        return self.array[: self.forest.size - len(self.forest.leaves)]

    def __repr__(self) -> str:
        if self.state.pending is not None:
            said = f"what ghosts hold is to be joined by {self.state.pending!r}"
        else:
            said = "ghosts hold" if self.state.valid else "ghosts do not hold"
        name, ghosts = type(self.array).__name__, len(self.forest.leaves)
        return f"<{name} of shape {self.array.shape} with {ghosts} ghosts: {said}>"


class GhostAccess:
    """Arrays prepared for a loop. `roots()`: owned entries are complete; `end()`: ghosts hold, too.

    Entities that reach neither ghosts nor entries of which others have copies may be computed at once; those
    that reach no ghosts after `roots()`. As a context manager it ends with the block. What travels together
    goes in one message for each neighbour: all arrays of one forest.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> forest = md.StarForest(3, owners=[0], roots=[1])
    >>> u = md.Ghosted(mb.HostArray([1.0, 2.0, 2.0]), forest)
    >>> with md.begin_access([(u, md.READ)]) as access:
    ...     isinstance(access, md.GhostAccess)
    True
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_arrived", "_brought", "_flushed", "_later", "_reduces", "_using", "pieces")

    def __init__(self, accesses: Iterable[Sequence[Any]]) -> None:
        wanted = _merged(accesses)
        for x, (access, *_) in wanted.items():
            if x._access is not None:
                raise RuntimeError(
                    f"An array of shape {x.array.shape} is accessed ({access}) while an earlier access is "
                    "under way: call `end()` of that first."
                )
        # With which access each array is reached by pieces of the loop, in the order given.
        self.pieces = [PIECES.get(access, access) for access, *_ in wanted.values()]
        self._using = list(wanted)
        plans = [_planned(x, *how) for x, how in wanted.items()]
        reduces = [(x, a.op) for x, actions, *_ in plans for a in actions if a.what == "reduce"]
        bcasts = [x for x, actions, *_ in plans if any(a.what == "bcast" for a in actions)]
        fills = [
            (x, a.what, neutral(a.op, x.array.dtype))
            for x, actions, *_ in plans
            for a in actions
            if a.what.startswith("fill")
        ]
        self._flushed, self._brought = {x for x, _ in reduces}, set(bcasts)
        self._reduces: list[UnderWay] = []
        for forest, group in _by_forest([(x, op, x.writers or x.forest) for x, op in reduces]):
            self._reduces.append(forest.begin_reduce([x.array for x, _ in group], [op for _, op in group]))
        # Those whose roots are complete go at once, the others when they are.
        self._arrived = _sent([x for x in bcasts if x not in self._flushed])
        self._later: list[Ghosted] | None = [x for x in bcasts if x in self._flushed]
        for x, what, value in fills:  # (contributions of before were gathered, and are on their way)
            if what == "fill":
                x.array[...] = value
            else:
                put(x.forest._down, x.array, "leaves", x.forest.leaves, value)
        for x, _, x.state, x.writers in plans:
            x._access = self

    def travels(self, x: Ghosted) -> tuple[bool, bool]:
        """Of one of the arrays: do contributions go to its owned entries, and are its ghosts brought?"""
        return x in self._flushed, x in self._brought

    def roots(self) -> None:
        """Wait until owned entries are complete. (What ghosts are to hold is on its way from here on.)"""
        later, self._later = self._later, None
        if later is None:
            return
        try:
            for u in self._reduces:
                u.end()
            self._arrived += _sent(later)
        except BaseException:
            self._give_up()
            raise

    def end(self) -> None:
        """Wait until ghosts hold. (A second time it does nothing.)"""
        self.roots()
        arrived, self._arrived = self._arrived, []
        try:
            for u in arrived:
                u.end()
        except BaseException:
            self._give_up()
            raise
        for x in self._using:
            x._access = None
        self._using = []

    def __enter__(self) -> GhostAccess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
        else:
            self._give_up()

    def _give_up(self) -> None:
        """Wait for nothing that others may never send: what it was for does not hold."""
        self._later, self._reduces, self._arrived = None, [], []
        for x in self._using:
            x._access = None
            if any(self.travels(x)):
                x.state, x.writers = STALE, None
        self._using = []


def _planned(
    x: Ghosted, access: str, touched: str, subset: bool, writers: StarForest | None
) -> tuple[Ghosted, tuple[Action, ...], State, StarForest | None]:
    """What is done for an access, and what holds after it."""
    # (What the same ghosts are to replace is written anew.)
    anew = access == "WRITE" and writers is not None and (x.state.pending, x.writers) == ("replace", writers)
    actions, state = transition(x.state, access, touched, subset and not anew)
    if writers is not None:
        return x, actions, State("replace", False), writers
    return x, actions, state, x.writers if state.pending == "replace" else None


def begin_access(accesses: Iterable[Sequence[Any]]) -> GhostAccess:
    """Prepare arrays for one loop: of each `(ghosted, access)`, `(..., touched)` or `(..., touched, subset)`.

    Parameters
    ----------
    accesses : iterable of tuple
        Of each array `(ghosted, access)`, and where it is known how far the loop reaches, `touched` (as
        `md.classify` says it), and whether it is over a `subset`. A loop of all processes that writes
        ghosts says which forest these are to replace their owners' entries by.

    Returns
    -------
    mb.meshdata.GhostAccess
        For `with`: `roots()` waits until owned entries are complete, `end()`, or the end of the block,
        until ghosts hold, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> forest = md.StarForest(3, owners=[0], roots=[1])
    >>> u, y = (md.Ghosted(mb.HostArray([1.0, 2.0, 2.0]), forest) for _ in range(2))
    >>> with md.begin_access([(u, md.READ), (y, md.INC)]) as access:
    ...     access.roots()
    >>> y
    <HostArray[float64, 1] of shape (3,) with 1 ghosts: what ghosts hold is to be joined by 'sum'>
    >>> print(y.array)
    [1. 2. 0.]
    """
    return GhostAccess(accesses)


def neutral(op: str | None, dtype: np.dtype) -> Any:
    """What contributes nothing to an operation."""
    if op == "sum":
        return 0
    low = op == "max"
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    if dtype.kind == "b":
        return not low
    if dtype.kind not in "iu":
        raise TypeError(f"Entries of dtype {dtype} have no least and no greatest.")
    return int(np.iinfo(dtype).min if low else np.iinfo(dtype).max)


def _sent(arrays: list[Ghosted]) -> list[UnderWay]:
    """What roots are, on its way to ghosts."""
    groups = _by_forest([(x, None, x.forest) for x in arrays])
    return [forest.begin_bcast([x.array for x, _ in group]) for forest, group in groups]


def _by_forest(
    found: list[tuple[Ghosted, Any, StarForest]],
) -> list[tuple[StarForest, list[tuple[Ghosted, Any]]]]:
    """Arrays that travel together: by one forest, and in one place."""
    groups: dict[Any, tuple[StarForest, list[tuple[Ghosted, Any]]]] = {}
    for x, how, forest in found:
        family = None if isinstance(x.array, np.ndarray) else leaf_family(type(x.array))
        place = None if family is None or family.home.rank < 2 else family
        groups.setdefault((id(forest), place), (forest, []))[1].append((x, how))
    return list(groups.values())


def _merged(accesses: Iterable[Sequence[Any]]) -> dict[Ghosted, tuple[str, str, bool, StarForest | None]]:
    """Of each array how it is accessed: several arguments of a loop may be of one array, to read it."""
    found: dict[Ghosted, tuple[str, str, bool, StarForest | None]] = {}
    for x, given, *more in accesses:
        access = access_name(given)
        touched = more[0] if more else "ghosts"
        subset = len(more) > 1 and bool(more[1])
        writers = more[2] if len(more) > 2 else None
        before = found.get(x)
        if before is not None:
            if before[0] != access:
                raise ValueError(
                    f"One loop accesses an array of shape {x.array.shape} by {before[0]} and by {access}: "
                    f"what one "
                    "reads, the other changes. Give it a copy, `mb.copy(x)`, or make two loops."
                )
            touched = max(touched, before[1], key=TOUCHED.index)
            subset = subset and before[2]
        found[x] = access, touched, subset, writers
    return found
