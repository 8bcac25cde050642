"""Loops over a mesh that is divided over processes: each point once, by the process that owns it.

Of a distributed array a loop makes a local one with ghosts. What it reads travels before points that need it,
what it adds to ghosts travels to the owners after it: one message for each neighbour there, one back.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> mesh = md.part(md.unit_square(2)).mesh          # of all processes; here there is one
>>> V = md.space(mesh, "P", 1)
>>> def ones(y):
...     y += 1
>>> y = V.zeros(mb.DArray)
>>> md.loop(mesh.points("cell"), ones, md.INC(y, V.dofs))
>>> print(y)
[1. 3. 2. 3. 6. 3. 2. 3. 1.]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mirabelle.arraytypes.creation import full
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.layouts import Partial
from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.divisions import Division, Entries, division_of
from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.ghostloops import run_ghosted
from mirabelle.arraytypes.meshdata.ghosts import Ghosted, begin_access
from mirabelle.arraytypes.meshdata.loops import check_apart
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.programs.errors import TraceError
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.dispatch import verbs

# How arrays of one value for all points are combined over processes.
_PARTIAL = {"add": "sum", "minimum": "min", "maximum": "max"}
_CONTINUED = {Intent.MIN_WRITE: Intent.MIN_RW, Intent.MAX_WRITE: Intent.MAX_RW}


class _Named(NamedTuple):
    """An argument, before its way is known."""

    name: str
    intent: Intent
    array: Any


def run_divided(points: Any, kernel: Any, accesses: Sequence[Any], atomics: bool) -> None:
    """A loop in which some arrays are distributed or have ghosts. All processes run it together."""
    if any(isinstance(a.array if isinstance(a, Access) else a, Traced) for a in accesses):
        raise TraceError(
            f"The loop of {kernel.name}() over arrays that are divided over processes is no step of a program: "
            "it sends messages of its own. `mb.compile` of a function in a file runs it between two programs."
        )
    division = division_of(points)
    if division is not None:
        points = division.owned(points)
    if not any(isinstance(a, Access) and isinstance(a.array, DArray) for a in accesses):
        run_ghosted(points, kernel, accesses, atomics)
        return
    given = [a if isinstance(a, Access) else Access(Intent.READ, a, None, True) for a in accesses]
    check_apart(kernel, [_Named(n, a.intent, a.array) for n, a in zip(kernel.parameters, given, strict=True)])
    ways = [
        _entries(kernel, name, points, division, a) if isinstance(a.array, DArray) and not a.whole else None
        for name, a in zip(kernel.parameters, given, strict=True)
    ]
    ghosted: dict[tuple[int, int], Ghosted] = {}
    inner = []
    for a, entries in zip(given, ways, strict=True):
        if entries is not None:
            key = id(a.array), id(entries)
            if key not in ghosted:
                local = entries.local(a.array, written=a.intent.writes)
                ghosted[key] = Ghosted(local, entries.forest, valid=False)
            a = Access(a.intent, ghosted[key], a.through, False)
        elif isinstance(a.array, DArray):
            a = _whole(a)
        inner.append(a)
    run_ghosted(points, kernel, inner, atomics)
    written = [
        (a.array, entries, i.array)
        for a, i, entries in zip(given, inner, ways, strict=True)
        if a.intent.writes and entries is not None
    ]
    begin_access([(g, "READ", "owned") for _, _, g in written]).end()
    for array, entries, g in written:
        verbs.assign(array, entries.vector(g.array, copied=False))
    for a, i in zip(given, inner, strict=True):
        if a.whole and a.intent.writes and isinstance(a.array, DArray):
            _joined(a, i.array)


def _entries(kernel: Any, name: str, points: Any, division: Division | None, access: Access) -> Entries:
    """What an argument's rows are entries of."""
    through = access.through
    if isinstance(through, Dofs):
        if through.forest is not None:
            return through.known("entries", lambda _: Entries(through.forest))  # type: ignore[no-any-return]
        division = division or division_of(through.source)
        if division is not None and through.tree is not None:
            return division.entries(through.tree)
    elif through is not None:
        targets = list(through.targets)
        division = division or division_of(targets[0])
        if division is not None and len(targets) == 1:
            return division.entries(targets[0].component)
    elif division is not None:
        base: Points = points.points if isinstance(points, Subset) else points
        return division.entries(base.component)
    raise TypeError(
        f"{kernel.name}(): {name} is a {type(access.array).__name__}, and nothing says which of its "
        "entries are on which process: the loop is over a mesh that is not divided, or the map does not say "
        "what it leads to. Divide the mesh, `mesh = md.part(mesh).mesh`, and take its points and "
        '`md.space(mesh, "P", 1).dofs`; '
        "a table made by hand is given its forest, `md.Dofs(..., forest=forest)`."
    )


def _whole(access: Access) -> Access:
    """The same access of a local array: all of what is read, nothing yet of what is combined."""
    x, intent = access.array, access.intent
    if intent is Intent.READ:
        return Access(intent, verbs.copy(x.inner(verbs.to_numpy(x))), None, True)
    neutral = full(x.shape, intent.neutral(x.dtype), dtype=x.dtype, device=x.inner)
    return Access(_CONTINUED.get(intent, intent), neutral, None, True)


def _joined(access: Access, mine: Any) -> None:
    """What all processes' points contributed to a whole array."""
    x, combine = access.array, str(access.intent.combines)
    total = type(x).family.from_local(mine, layout=Partial(_PARTIAL[combine]), comm=x.communicator)
    verbs.assign(x, total if access.intent.fresh else getattr(verbs, combine)(x, total))
