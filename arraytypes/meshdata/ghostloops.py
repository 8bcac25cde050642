"""Loops over arrays with ghosts: what a loop reads travels while it runs over what needs nothing of it.

Of the points some reach only entries that no other process has copies of: these run at once. Those that reach
such entries run when what others contributed is there, and the rest when ghosts hold. Nothing travels that is
there already; contributions to ghosts stay where they are until somebody reads.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> forest = md.StarForest(3, owners=[0], roots=[0])       # entry 2 is a copy of entry 0: a ring
>>> u = md.Ghosted(mb.HostArray([1.0, 2.0, 0.0]), forest, valid=False)
>>> y = md.Ghosted(mb.zeros(3), forest)
>>> edges = md.Points("ring", "edge", 2)
>>> ends = md.Dofs(edges, [[0, 1], [1, 2]], size=3)
>>> def add(u, y):
...     for i in range(2):
...         y[i] += u[0] + u[1]
>>> md.loop(edges, add, md.READ(u, ends), md.INC(y, ends))
>>> print(y.data_ro())
[6. 6. 6.]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.entityclasses import classify
from mirabelle.arraytypes.meshdata.forests import StarForest
from mirabelle.arraytypes.meshdata.ghosts import Ghosted, begin_access
from mirabelle.arraytypes.meshdata.loops import Bound, rows_of, run_bound
from mirabelle.arraytypes.meshdata.points import Points, Subset

# Of all points of a kind numbers that say which come later, on whatever process.
Order = Callable[[Any], np.ndarray]


class _Reach(NamedTuple):
    """What a loop's points reach of one array with ghosts."""

    # Of each point, as of entries: 0 what nobody has copies of, 1 roots, too, 2 ghosts, too.
    labels: np.ndarray
    # The same of all points on all processes: "core", "owned" or "ghosts".
    touched: str


class _Written(NamedTuple):
    """What a loop's points write of one array with ghosts."""

    # Every owned entry, on all processes.
    everything: bool
    # The table that leads to an entry from the last point only that writes it: then they go in any order.
    last: Dofs | None
    # The ghosts whose owners are to have what was written to them.
    writers: StarForest | None


def run_ghosted(
    points: Any, kernel: Any, accesses: Sequence[Any], atomics: bool, order: Order | None = None
) -> None:
    """A loop in which some arrays have ghosts. All processes run it together.

    With an `order` it is one loop of all processes, in which each point runs once: what is written to ghosts is
    to be their owners'. Without, each process writes its own entries.
    """
    inner = [
        Access(a.intent, a.array.array, a.through, a.whole) if isinstance(a.array, Ghosted) else a
        for a in accesses
    ]
    bound = [Bound(kernel, points, name, a) for name, a in zip(kernel.parameters, inner, strict=True)]
    held = [
        _Held(kernel, points, b, a)
        for b, a in zip(bound, accesses, strict=True)
        if isinstance(a.array, Ghosted)
    ]
    found = [h.written(order) if h.bound.intent in (Intent.WRITE, Intent.RW) else None for h in held]
    wanted = [
        (h.ghosted, h.bound.intent.value, h.touched(), w is not None and not w.everything, w and w.writers)
        for h, w in zip(held, found, strict=True)
    ]
    last = {id(h.bound): w.last for h, w in zip(held, found, strict=True) if w is not None}
    given = [
        a if last.get(id(b)) is None else Access(a.intent, a.array, last[id(b)], False)
        for b, a in zip(bound, inner, strict=True)
    ]
    access = begin_access(wanted)
    with access:
        waits: list[Callable[[], None]] = [_at_once, access.roots, access.end]
        for wait, part in zip(waits, _pieces(points, held, access), strict=True):
            wait()
            if part is None or not len(part):
                continue
            ready = [
                b if part is points and i is g else Bound(kernel, part, b.name, g)
                for b, i, g in zip(bound, inner, given, strict=True)
            ]
            # (What is not to take part in a minimum is gone: now the old value does.)
            run_bound(part, kernel, [_continued(b, a) for b, a in zip(ready, accesses, strict=True)], atomics)


def _at_once() -> None:
    pass


def _continued(b: Bound, access: Any) -> Bound:
    continues = {Intent.MIN_WRITE: Intent.MIN_RW, Intent.MAX_WRITE: Intent.MAX_RW}
    if not isinstance(access.array, Ghosted) or b.intent not in continues:
        return b
    return b.with_array(b.name, continues[b.intent], b.array)


class _Held:
    """An argument that has ghosts. What is found out about it, by all processes together, the forest keeps."""

    def __init__(self, kernel: Any, points: Any, bound: Bound, access: Any) -> None:
        self.kernel, self.points, self.bound = kernel, points, bound
        self.ghosted: Ghosted = access.array
        self.base: Points = points.points if isinstance(points, Subset) else points
        # (Tables of subsets may be made anew; the one of all points stays.)
        named = access.through is not None and not bound.whole
        self.table = rows_of(kernel, bound.name, self.base, access.through, bound.array) if named else None
        # (A block belongs to one process: its first entry speaks for it.)
        self.size = math.prod(bound.dofs.block) if bound.dofs is not None and bound.flat else 1

    def known(self, what: Any, find: Callable[[], Any]) -> Any:
        points, table = self.points, self.table
        key = what, id(points) if isinstance(points, Subset) else points, None if table is None else id(table)
        return self.ghosted.forest.known(key, lambda: (find(), points, table))[0]

    @property
    def at(self) -> np.ndarray:
        """The points of the loop, among all of their kind."""
        return self.points.indices if isinstance(self.points, Subset) else np.arange(self.base.size)

    def rows(self) -> np.ndarray:
        """For each point of the loop the rows that it reaches, -1 for nothing."""
        if self.table is None:
            return self.at[:, None].astype(np.int64)
        return np.asarray(self.table.table)[self.at].astype(np.int64)

    def reach(self) -> _Reach:
        """How far the loop reaches."""
        return self.known(("reach", self.size, self.bound.whole), self._reach)  # type: ignore[no-any-return]

    def touched(self) -> str:
        """How far the loop reaches. (One process alone shows the states that there are among several.)"""
        alone = self.ghosted.forest.comm.size == 1 and self.bound.intent.combines is not None
        return "ghosts" if alone else self.reach().touched

    def _reach(self) -> _Reach:
        if self.bound.whole:
            return _Reach(np.full(len(self.points), 2, np.int8), "ghosts")
        rows = self.rows()
        classes = classify([np.where(rows < 0, -1, rows * self.size)], [self.ghosted.forest])
        labels = np.zeros(len(rows), np.int8)
        labels[classes.root], labels[classes.leaf] = 1, 2
        return _Reach(labels, classes.touched)

    def written(self, order: Order | None) -> _Written:
        """What the loop writes."""
        g = self.ghosted
        what = "written", self.size, g.owned_count, order is not None, self.bound.intent
        return self.known(what, lambda: self._written(order))  # type: ignore[no-any-return]

    def _written(self, order: Order | None) -> _Written:
        forest, rows = self.ghosted.forest, self.rows()
        numbers = np.arange(self.base.size) if order is None else order(self.table)
        numbers = np.broadcast_to(numbers[self.at][:, None], rows.shape)
        there = rows >= 0
        steps = np.arange(self.size)
        last, times = np.full(forest.size, -1), np.zeros(forest.size, np.int64)
        entries = (rows[there][:, None] * self.size + steps).reshape(-1)
        np.maximum.at(last, entries, np.repeat(numbers[there], self.size))
        np.add.at(times, entries, 1)
        mine, writers = last.copy(), None
        if order is not None:
            forest.reduce([last, times], ["max", "sum"])
            forest.bcast(last)
            if self.bound.intent is Intent.RW:
                on_all(forest.comm, lambda: self._check_once(times))
            leaves = forest.leaves
            from_here = leaves[(mine[leaves] >= 0) & (mine[leaves] == last[leaves])]
            if any(forest.comm.allgather_object(len(from_here))):
                writers = forest.restricted(leaves=from_here)
        owned = np.ones(forest.size, bool)
        owned[forest.leaves] = False
        complete = int(((last >= 0) & owned).sum()) == self.ghosted.owned_count
        everything = all(forest.comm.allgather_object(complete))
        table = rows_of(self.kernel, self.bound.name, self.base, self.table, self.bound.array)
        return _Written(everything, _last(table, rows, self.at, numbers, last, self.size), writers)

    def _check_once(self, times: np.ndarray) -> None:
        owned = np.ones(len(times), bool)
        owned[self.ghosted.forest.leaves] = False
        if int(times[owned].max(initial=0)) > 1:
            raise ValueError(
                f"{self.kernel.name}(): several points, on several processes, reach one entry of "
                f"{self.bound.name} with RW: what they read would depend on which came before. Use INC, or "
                "MIN_RW and MAX_RW, or WRITE to another array."
            )


def _last(
    table: Dofs, rows: np.ndarray, at: np.ndarray, numbers: np.ndarray, last: np.ndarray, size: int
) -> Dofs | None:
    """The table without what a later point writes; None where no point does."""
    stays = (rows >= 0) & (last[np.maximum(rows, 0) * size] == numbers)
    for k in range(rows.shape[1]):  # (of one point the last column)
        stays[:, k] &= ~(rows[:, k + 1 :] == rows[:, k : k + 1]).any(axis=1)
    if (stays == (rows >= 0)).all():
        return None
    kept = np.full_like(table.table, -1)
    kept[at] = np.where(stays, rows, -1)
    return Dofs(table.source, kept, table.size, block=table.block, tree=table.tree, local=table.local)


def _pieces(points: Any, held: Sequence[_Held], access: Any) -> list[Any]:
    """The points that run at once, when roots are complete, and when ghosts hold."""
    waiting = [(h.reach(), *access.travels(h.ghosted)) for h in held]
    waiting = [(r, reduced, brought) for r, reduced, brought in waiting if reduced or brought]
    if not waiting:
        return [points, None, None]

    def find() -> Any:
        classes = np.zeros(len(points), np.int8)
        for reach, reduced, brought in waiting:
            # (Roots that nobody adds to are what they are; ghosts that nothing is sent to may be added to.)
            steps = np.array([0, int(reduced), 2 if brought else int(reduced)], np.int8)
            np.maximum(classes, steps[reach.labels], out=classes)
        if not classes.any():
            return [points, None, None]
        whole: Points = points.points if isinstance(points, Subset) else points
        numbers = points.indices if isinstance(points, Subset) else np.arange(whole.size)
        return [whole.subset(numbers[classes == c]) for c in range(3)]

    key = "pieces", tuple((id(r), reduced, brought) for r, reduced, brought in waiting)
    kept = held[0].known(key, lambda: (find(), waiting))
    return kept[0]  # type: ignore[no-any-return]
