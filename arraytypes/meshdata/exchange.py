"""Entries on their way between processes: gathered, sent in one message to each neighbour, and kept in order.

A `Route` says which entries go to which process and how many come from each. What is sent is gathered when an
exchange begins, and what comes lies in memory of its own until it is asked for: the arrays are free meanwhile.
On the host the buffers of an exchange are kept and used again, and with them what the engine prepares for
messages that come back (MPI's persistent requests).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed import marks
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.transfers import Messages, agreed
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf

# What is sent of an array: its dtype, and the shape of one entry.
Kind = tuple[np.dtype, tuple[int, ...]]
# How many sets of buffers are kept for each kind of exchange, and for how many kinds.
KEPT, KINDS = 4, 64


class Route:
    """Which entries this process sends to each of the others, and how many it gets from each.

    A process may stand in its own route: those entries are copied. `index` and what comes are in the order of
    ranks.
    """

    __slots__ = ("_idle", "_placed", "comm", "incoming", "index", "name", "outgoing")

    def __init__(
        self, comm: Communicator, name: str, sends: Mapping[int, np.ndarray], receives: Mapping[int, int]
    ) -> None:
        self.comm, self.name = comm, name
        ranks = sorted(r for r, index in sends.items() if len(index))
        self.index = _frozen(np.concatenate([np.zeros(0, np.intp), *[sends[r] for r in ranks]]))
        self.outgoing = _places({r: len(sends[r]) for r in ranks})
        self.incoming = _places({r: n for r, n in sorted(receives.items()) if n})
        self._idle: dict[Any, list[_Buffers]] = {}
        self._placed: dict[Any, Any] = {}

    @property
    def received(self) -> int:
        """How many entries come, one's own included."""
        return sum(s.stop - s.start for s in self.incoming.values())

    def begin(self, arrays: Sequence[Any], words: Sequence[Any]) -> OnHost | OnPlace:
        """Send entries of some arrays of one place; `words` say for which operation."""
        kinds: tuple[Kind, ...] = tuple((x.dtype, x.shape[1:]) for x in arrays)
        key = kinds, tuple(words)
        if isinstance(arrays[0], np.ndarray) or leaf_family(type(arrays[0])).home.rank < 2:
            buffers = self._idle.get(key, [])
            kept = buffers.pop() if buffers else _Buffers(self, kinds, self._mark(kinds, words))
            return OnHost(self, key, kept, [host_view(x) for x in arrays])
        return OnPlace(self, kinds, self._mark(kinds, words), arrays)

    def _mark(self, kinds: tuple[Kind, ...], words: Sequence[Any]) -> int:
        said = [f"{dtype} of shape {shape}" if shape else str(dtype) for dtype, shape in kinds]
        return marks.marked(*words, "of", ", ".join(said), marks.Unsaid(self.name))

    def release(self, key: Any, buffers: _Buffers) -> None:
        """Keep buffers for the next exchange of this kind."""
        idle = self._idle.setdefault(key, [])
        if len(idle) < KEPT:
            idle.append(buffers)
        if len(self._idle) > KINDS:
            self._idle.clear()

    def on(self, family: Any, what: str, index: np.ndarray) -> Any:
        """Indices in the memory of an array type's place, put there once; a slice, where they follow "
        "each other."""
        found = self._placed.get((family, what))
        if found is None:
            if len(index) and index[-1] - index[0] == len(index) - 1 and bool(np.all(np.diff(index) == 1)):
                found = slice(int(index[0]), int(index[-1]) + 1)
            else:
                found = index if family is None else wrap(family, Leaf(family._upload(index)))
            self._placed[family, what] = found
        return found


def _places(counts: Mapping[int, int]) -> dict[int, slice]:
    """Where the entries of each process lie among all."""
    found, at = {}, 0
    for r, n in counts.items():
        found[r] = slice(at, at + n)
        at += n
    return found


def _frozen(x: np.ndarray) -> np.ndarray:
    x.setflags(write=False)
    return x


def host_view(x: Any) -> np.ndarray:
    """The memory of an array on the host, to be read."""
    return x if isinstance(x, np.ndarray) else verbs.leaf_of(x).view  # type: ignore[no-any-return]


# On the host


class _Rows:
    """The entries of some arrays for each process, in one piece of memory for each process.

    The arrays with the largest elements come first, so that all are aligned and nothing lies between them.
    """

    __slots__ = ("parts", "places", "rows", "whole")

    def __init__(self, places: dict[int, slice], kinds: tuple[Kind, ...]) -> None:
        self.places = places
        self.whole: np.ndarray | None = None
        self.parts: dict[int, list[np.ndarray]] = {}
        if len(kinds) == 1:  # (then what comes from all processes is one array)
            (dtype, shape), total = kinds[0], sum(s.stop - s.start for s in places.values())
            self.whole = np.empty((total, *shape), dtype)
            self.parts = {r: [self.whole[s]] for r, s in places.items()}
            self.rows = {r: self.whole[s].reshape(-1).view(np.uint8) for r, s in places.items()}
            return
        self.rows = {}
        order = _order(kinds)
        for r, s in places.items():
            shapes = [(s.stop - s.start, *shape) for _, shape in kinds]
            sizes = [math.prod(shape) * dtype.itemsize for (dtype, _), shape in zip(kinds, shapes, strict=True)]
            row = self.rows[r] = np.empty(sum(sizes), np.uint8)
            found: dict[int, np.ndarray] = {}
            at = 0
            for k in order:
                found[k] = row[at : at + sizes[k]].view(kinds[k][0]).reshape(shapes[k])
                at += sizes[k]
            self.parts[r] = [found[k] for k in range(len(kinds))]

    def gather(self, views: Sequence[np.ndarray], index: np.ndarray) -> None:
        if self.whole is not None:
            np.take(views[0], index, axis=0, out=self.whole, mode="clip")  # (indices were checked)
            return
        for r, s in self.places.items():
            for view, part in zip(views, self.parts[r], strict=True):
                np.take(view, index[s], axis=0, out=part, mode="clip")

    def values(self, count: int) -> list[np.ndarray]:
        """Of each array what came from all processes, in the order of ranks."""
        if self.whole is not None:
            return [self.whole]
        return [np.concatenate([parts[k] for parts in self.parts.values()]) for k in range(count)]


class _Buffers:
    """What an exchange of some kind uses again: memory, and messages that come back."""

    __slots__ = ("copied", "incoming", "mark", "outgoing", "receives", "repeated", "sends", "sent")

    def __init__(self, route: Route, kinds: tuple[Kind, ...], mark: int) -> None:
        comm = route.comm
        self.mark = mark
        self.outgoing, self.incoming = _Rows(route.outgoing, kinds), _Rows(route.incoming, kinds)
        self.sends = {r: row for r, row in self.outgoing.rows.items() if r != comm.rank and row.size}
        self.receives = {r: row for r, row in self.incoming.rows.items() if r != comm.rank and row.size}
        self.copied = (self.incoming.rows.get(comm.rank), self.outgoing.rows.get(comm.rank))
        self.sent = sum(row.nbytes for row in self.sends.values())
        self.repeated = (
            comm.repeated([(self.sends, self.receives)], [mark]) if self.sends or self.receives else None
        )


class OnHost:
    """An exchange of entries of host arrays that is under way."""

    __slots__ = ("_buffers", "_count", "_key", "_route")

    def __init__(self, route: Route, key: Any, buffers: _Buffers, views: Sequence[np.ndarray]) -> None:
        self._route, self._key, self._buffers = route, key, buffers
        self._count = len(views)
        if route.outgoing:
            buffers.outgoing.gather(views, route.index)
        if settings.check_collectives:
            agreed(route.comm, buffers.sends, buffers.receives, buffers.mark)
        if counters.active and buffers.sends:
            counters.add(messages=len(buffers.sends), bytes_sent=buffers.sent)
        if buffers.repeated is not None:
            buffers.repeated.start()
        into, of = buffers.copied
        if into is not None and of is not None:
            into[...] = of

    def finish(self, use: Callable[[list[Any]], None]) -> None:
        """Wait for what comes and use it: of each array the entries of all processes, in the order of ranks."""
        if self._buffers.repeated is not None:
            self._buffers.repeated.wait()
        if self._route.incoming:
            use(self._buffers.incoming.values(self._count))
        self._route.release(self._key, self._buffers)


# In memory of cards


class OnPlace:
    """An exchange of entries of arrays in another place: gathered there, and sent from there if possible."""

    __slots__ = ("_kinds", "_landed", "_messages", "_own", "_route")

    def __init__(self, route: Route, kinds: tuple[Kind, ...], mark: int, arrays: Sequence[Any]) -> None:
        comm, inner = route.comm, leaf_family(type(arrays[0]))
        comm.prepare(inner)
        self._route, self._kinds = route, kinds
        self._messages = Messages(comm, inner, mark)
        gathered: list[Any] = []
        if route.outgoing:
            index = route.on(inner, "sent", route.index)
            gathered = [verbs.getitem(x, (index,)) for x in arrays]
        rows = {r: [x[s] for x in gathered] for r, s in route.outgoing.items()}
        own = rows.pop(comm.rank, None)
        self._own = None if own is None else [verbs.copy(part) for part in own]
        sends = {r: _one_row(parts) for r, parts in rows.items()}
        self._landed: dict[int, Any] = {}
        for r, s in route.incoming.items():
            if r != comm.rank:
                n = s.stop - s.start
                self._landed[r] = inner._empty(*_row_for(kinds, n))
        self._messages.begin(
            {r: view for r, view in sends.items() if view.nbytes},
            {r: view for r, view in self._landed.items() if view.nbytes},
        )
        if inner.home.kind == "traced":
            # (In a program it is sent here, and comes when somebody needs it. Processes to which nothing comes
            # would not know when that is, and so it travels in no other company.)
            from mirabelle.arraytypes.programs.partmessages import leave

            self._messages.finish()
            leave()

    def finish(self, use: Callable[[list[Any]], None]) -> None:
        self._messages.finish()
        if not self._route.incoming:
            return
        inner, rank = self._messages.inner, self._route.comm.rank
        incoming = self._route.incoming
        parts = {
            r: _divided(wrap(inner, Leaf(view)), self._kinds, incoming[r].stop - incoming[r].start)
            for r, view in self._landed.items()
        }
        if self._own is not None:
            parts[rank] = self._own
        ordered = [parts[r] for r in self._route.incoming]
        use([_joined([row[k] for row in ordered]) for k in range(len(self._kinds))])


def _order(kinds: Sequence[Kind]) -> list[int]:
    """The arrays with the largest elements first: so all are aligned, with nothing between them."""
    return sorted(range(len(kinds)), key=lambda k: -kinds[k][0].itemsize)


def _row_for(kinds: Sequence[Kind], n: int) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype of what comes from one process: bytes, where dtypes differ."""
    if len(kinds) == 1:
        return (n, *kinds[0][1]), kinds[0][0]
    if len({dtype for dtype, _ in kinds}) == 1:
        return (n * sum(math.prod(shape) for _, shape in kinds),), kinds[0][0]
    return (n * sum(math.prod(shape) * dtype.itemsize for dtype, shape in kinds),), np.dtype(np.uint8)


def _one_row(parts: list[Any]) -> Any:
    """What goes to one process, as one contiguous view."""
    if len(parts) > 1:
        flat = [verbs.reshape(parts[k], (-1,)) for k in _order([(p.dtype, ()) for p in parts])]
        if len({p.dtype for p in parts}) > 1:
            flat = [verbs.copy(p).view(np.uint8) for p in flat]
        return verbs.leaf_of(_joined(flat)).view
    return verbs.leaf_of(verbs.copy(parts[0])).view


def _divided(row: Any, kinds: Sequence[Kind], n: int) -> list[Any]:
    """What came from one process, as a part of each array."""
    if len(kinds) == 1:
        return [row]
    same = len({dtype for dtype, _ in kinds}) == 1
    sizes = [math.prod(shape) * (1 if same else dtype.itemsize) for dtype, shape in kinds]
    found: dict[int, Any] = {}
    at = 0
    for k in _order(kinds):
        part = row[at : at + n * sizes[k]]
        at += n * sizes[k]
        dtype, shape = kinds[k]
        found[k] = verbs.reshape(part if same else verbs.copy(part).view(dtype), (n, *shape))
    return [found[k] for k in range(len(kinds))]


def _joined(parts: list[Any]) -> Any:
    from mirabelle.arraytypes.functions.joining import concatenate

    return parts[0] if len(parts) == 1 else concatenate(parts)
