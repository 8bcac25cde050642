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
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.entityclasses import EntityClasses, classify
from mirabelle.arraytypes.meshdata.ghosts import Ghosted, begin_access
from mirabelle.arraytypes.meshdata.ghoststates import COMBINES
from mirabelle.arraytypes.meshdata.loops import Bound, run_bound
from mirabelle.arraytypes.meshdata.points import Points, Subset


def run_ghosted(points: Any, kernel: Any, accesses: Sequence[Any], atomics: bool) -> None:
    """A loop in which some arrays have ghosts. All processes run it together."""
    inner = [
        Access(a.intent, a.array.array, a.through, a.whole) if isinstance(a.array, Ghosted) else a
        for a in accesses
    ]
    bound = [Bound(kernel, points, name, a) for name, a in zip(kernel.parameters, inner, strict=True)]
    held = [(b, a.array) for b, a in zip(bound, accesses, strict=True) if isinstance(a.array, Ghosted)]
    classes, pieces = _classes(points, [(b, g) for b, g in held if _waits(b.intent, g)])
    if any(b.intent is Intent.WRITE and b.dofs is not None and not b.dofs.injective for b in bound):
        pieces = [None, None, points]  # (what the last point writes stays: they go in their order)
    some = isinstance(points, Subset)  # (what it does not write stays, with what is pending)
    access = begin_access([(g, b.intent.value, _touched(b.intent, g, classes), some) for b, g in held])
    with access:
        # (What is not to take part in a minimum is gone: now the old value does.)
        later = [_continued(b, a) for b, a in zip(bound, accesses, strict=True)]
        waits: list[Callable[[], None]] = [_at_once, access.roots, access.end]
        for wait, part in zip(waits, pieces, strict=True):
            wait()
            if part is None or not len(part):
                continue
            if part is not points:
                given = [
                    Access(b.intent, i.array, i.through, i.whole) for b, i in zip(later, inner, strict=True)
                ]
                run_bound(
                    part,
                    kernel,
                    [Bound(kernel, part, b.name, g) for b, g in zip(later, given, strict=True)],
                    atomics,
                )
            else:
                run_bound(points, kernel, later, atomics)


def _at_once() -> None:
    pass


def _waits(intent: Intent, g: Ghosted) -> bool:
    """Does an access need something to travel before? (What is only added to ghosts goes later.)"""
    return intent in (Intent.READ, Intent.RW) or g.state.pending not in (None, COMBINES.get(intent.value))


def _touched(intent: Intent, g: Ghosted, classes: EntityClasses) -> str:
    return classes.touched if _waits(intent, g) else "ghosts"


def _continued(b: Bound, access: Any) -> Bound:
    continues = {Intent.MIN_WRITE: Intent.MIN_RW, Intent.MAX_WRITE: Intent.MAX_RW}
    if not isinstance(access.array, Ghosted) or b.intent not in continues:
        return b
    return b.with_array(b.name, continues[b.intent], b.array)


def _classes(points: Any, held: Sequence[tuple[Bound, Ghosted]]) -> tuple[EntityClasses, list[Any]]:
    """Which points reach what, looked up once for the tables and forests of a loop."""
    tables, forests, keep = [], [], None
    for b, g in held:
        if b.whole:
            continue
        table = b.dofs
        if table is None:
            tables.append(np.arange(len(points))[:, None])
        else:
            # (A block belongs to one process: its first entry speaks for it.)
            size = math.prod(table.block) if b.flat else 1
            rows = np.asarray(table.table, np.int64)
            tables.append(np.where(rows < 0, -1, rows * size))
            keep = keep or table
        forests.append(g.forest)
    if not tables:
        every = EntityClasses(np.arange(len(points)), np.arange(0), np.arange(0), "core")
        return every, [points, None, None]
    key = "classes", id(points), tuple(id(b.dofs) for b, _ in held), tuple(map(id, forests))

    def find(_: Any) -> Any:
        found = classify(tables, forests)
        return points, forests, [b.dofs for b, _ in held], found, _pieces(points, found)

    found = find(None) if keep is None else keep.known(key, find)
    return found[3], found[4]


def _pieces(points: Any, classes: EntityClasses) -> list[Any]:
    if not len(classes.root) and not len(classes.leaf):
        return [points, None, None]
    whole: Points = points.points if isinstance(points, Subset) else points
    numbers = points.indices if isinstance(points, Subset) else np.arange(whole.size)
    return [whole.subset(numbers[c]) for c in (classes.core, classes.root, classes.leaf)]
