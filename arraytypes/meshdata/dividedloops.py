"""Loops over a mesh that is divided over processes: each point once, by the process that owns it.

A loop runs on what a distributed array has here, with ghosts (dividedghosts.py). What it reads travels before
points that need it; what it adds to ghosts travels to the owners when somebody asks for the sum.

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

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.creation import full
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view
from mirabelle.arraytypes.distributed.layouts import Partial
from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.dividedghosts import ghosts_of, keep, was_read
from mirabelle.arraytypes.meshdata.divisions import Division, Entries, division_of, entries_by
from mirabelle.arraytypes.meshdata.dofs import Dofs, dofs
from mirabelle.arraytypes.meshdata.ghostloops import run_ghosted
from mirabelle.arraytypes.meshdata.ghosts import Ghosted
from mirabelle.arraytypes.meshdata.loops import Bound, check_apart, rows_of
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.meshdata.sharedmeshes import is_shared, owned, reached_entries
from mirabelle.arraytypes.meshdata.treedofs import own_dofs
from mirabelle.arraytypes.programs.errors import PartsAsked, TraceError
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.random.bitgenerator import compiling
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

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
    given = [a.array if isinstance(a, Access) else a for a in accesses]
    if any(isinstance(x.parent if hasattr(x, "tree") else x, Traced) for x in given):
        raise PartsAsked(  # (a program of parts knows what travels)
            f"The loop of {kernel.name}() over arrays that are divided over processes sends messages."
        )
    if compiling.get() is not None and any(isinstance(x, Ghosted) and not _within(x) for x in given):
        raise TraceError(
            f"The loop of {kernel.name}() is over an array with ghosts (of a matrix, say), which knows what is "
            "to travel when: that is no value of a program. `mb.compile` of a function in a file runs it "
            "between two programs; one that the function makes, `pattern.matrix(array=...)`, is in its program."
        )
    accesses = [_of_parent(points, a) for a in accesses]
    division, comm, asked = division_of(points), _shared_by(points, accesses), points
    if division is not None:
        points = division.owned(points)
    elif comm is not None:
        _check_written(kernel, accesses)
        points = owned(points, comm)
    if not any(isinstance(a, Access) and isinstance(a.array, DArray) for a in accesses):
        run_ghosted(points, kernel, accesses, atomics)
        return
    given = [a if isinstance(a, Access) else Access(Intent.READ, a, None, True) for a in accesses]
    check_apart(kernel, [_Named(n, a.intent, a.array) for n, a in zip(kernel.parameters, given, strict=True)])
    ways = [
        None
        if not isinstance(a.array, DArray) or a.whole
        else _entries(kernel, name, points, division, a)
        if comm is None or getattr(a.through, "forest", None) is not None
        else _shared_entries(kernel, name, points, a)
        for name, a in zip(kernel.parameters, given, strict=True)
    ]
    ghosted: dict[tuple[int, int], Ghosted] = {}
    written = {id(a.array) for a in given if a.intent.writes}
    inner = []
    for a, entries in zip(given, ways, strict=True):
        if entries is not None:
            key = id(a.array), id(entries)
            if key not in ghosted:
                ghosted[key] = ghosts_of(entries, a.array, id(a.array) in written)
            a = Access(a.intent, ghosted[key], a.through, False)
        elif isinstance(a.array, DArray):
            a = _whole(a)
        inner.append(a)
    run_ghosted(points, kernel, inner, atomics, lambda table: _order(asked, division, comm, table))
    for a, i, entries in zip(given, inner, ways, strict=True):
        if entries is None:
            continue
        if not a.intent.writes:
            was_read(entries, a.array, i.array)
            continue
        keep(entries, a.array, i.array)
    for a, i in zip(given, inner, strict=True):
        if a.whole and a.intent.writes and isinstance(a.array, DArray):
            _joined(a, i.array)


def _within(x: Ghosted) -> bool:
    """Was an array with ghosts made in the function that is captured, so that nobody else knows its state?"""
    return isinstance(x.array, Traced)


def _of_parent(points: Any, access: Any) -> Any:
    """Of an array over a tree whose entries are distributed: the access to those."""
    tree = getattr(access.array, "tree", None) if isinstance(access, Access) else None
    if tree is None or not isinstance(access.array.parent, DArray):
        return access
    through = access.through
    if not access.whole and not isinstance(through, Dofs):
        base = points.points if isinstance(points, Subset) else points
        through = own_dofs(base, tree) if through is None else dofs(through, tree)
    return Access(access.intent, access.array.parent, through, access.whole)


def _shared_by(points: Any, accesses: Sequence[Any]) -> Any:
    """The processes that all have the whole of the mesh of some points, if so it is; else None."""
    if division_of(points) is not None:
        return None
    given = [a for a in accesses if isinstance(a, Access)]
    forests = [a.through for a in given if getattr(a.through, "forest", None) is not None]
    if any(through.shared is None for through in forests):
        return None  # (tables of this process' own points)
    divided = [a for a in given if isinstance(a.array, DArray)]
    if is_shared(points):
        return next((a.array.communicator for a in divided), None)
    base = points.points if isinstance(points, Subset) else points
    if getattr(base, "topology", None) is not None:
        return None  # (a part of a mesh, made without the others)
    return next((a.array.communicator for a in divided if not a.whole), None)


def _check_written(kernel: Any, accesses: Sequence[Any]) -> None:
    for name, a in zip(kernel.parameters, accesses, strict=True):
        if isinstance(a, Access) and a.intent.writes and not isinstance(a.array, (DArray, Ghosted)):
            raise TypeError(
                f"{kernel.name}(): {name} is a {type(a.array).__name__}, written in a loop that is divided "
                "over processes as other arrays of it are: each would write what its own points do. Make it of "
                f"the same type, `mb.DArray[mb.HostArray]({name})`, and fetch it, `mb.to_numpy({name})`."
            )


def _shared_entries(kernel: Any, name: str, points: Any, access: Access) -> Entries:
    """How what this process' points reach comes, of an array that is divided as it is."""
    base: Points = points.points
    flat = Bound(kernel, points, name, access).flat  # (which says what does not fit)
    return reached_entries(base, rows_of(kernel, name, base, access.through, access.array), access.array, flat)


def _order(points: Any, division: Division | None, comm: Any, table: Dofs | None) -> np.ndarray:
    """Numbers of all points of a kind that rise in the order in which one process would run them."""
    base: Points = points.points if isinstance(points, Subset) else points
    if division is not None:
        return division.numbers(base)
    numbers = np.arange(base.size)
    if comm is None and table is not None and table.forest is not None:
        return numbers + (table.forest.comm.rank << 32)
    if isinstance(points, Subset):  # (all have it)
        numbers[points.indices] = 0
        np.maximum.at(numbers, points.indices.astype(np.intp), np.arange(len(points)))
    return numbers


def _entries(kernel: Any, name: str, points: Any, division: Division | None, access: Access) -> Entries:
    """What an argument's rows are entries of."""
    through = access.through
    if isinstance(through, Dofs):
        if through.forest is not None:
            return entries_by(through.forest)
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
    """What all processes' points contributed to a whole array: it waits, as sums do, until somebody asks."""
    x, combine = access.array, str(access.intent.combines)
    op = _PARTIAL[combine]
    if not access.intent.fresh:
        mine = getattr(verbs, combine)(_term(x, op, access.intent.neutral(x.dtype)), mine)
    verbs.assign(x, type(x).family.from_local(mine, layout=Partial(op), comm=x.communicator))


def _term(x: Any, op: str, neutral: Any) -> Any:
    """Of what stands in an array this process' term: all terms together have it once."""
    view = verbs.leaf_of(x).view
    if view.whole and view.buffer.partition.partial == ((0, op),) and not view.buffer.divided_so:
        return wrap(view.buffer.inner, Leaf(view.buffer.local))
    evaluated_view(x)
    view = verbs.leaf_of(x if view.whole else verbs.copy(x)).view
    part, rank = view.partition, view.buffer.comm.rank
    own, made = (
        wrap(view.buffer.inner, Leaf(view.buffer.local)),
        full(x.shape, neutral, x.dtype, device=x.inner),
    )
    if any(c for m, c in enumerate(part.coordinates(rank)) if m not in part.owners()):
        return made  # (another process has the same, and gives it)
    places = [
        [(slice(a, b), slice(n, n + b - a)) for (a, b), n in zip(held, _starts(held), strict=True)]
        for held in part.held(rank)
    ]
    for box in itertools.product(*places):
        made[tuple(there for there, _ in box)] = own[tuple(here for _, here in box)]
    return made


def _starts(held: Sequence[tuple[int, int]]) -> list[int]:
    """Where pieces begin, one after the other."""
    return [0, *itertools.accumulate(b - a for a, b in held)][: len(held)]
