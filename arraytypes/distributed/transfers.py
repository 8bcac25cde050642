"""Transfers: the messages that bring places of a view to where a partition says they are needed.

All processes know all partitions, so each finds out by itself what it sends and what it receives: a transfer
is a plan, made once for a map and a partition. Between two processes goes one message at most in each round;
of large arrays, rounds are kept to `settings.exchange_bytes`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed import marks
from mirabelle.arraytypes.distributed.communicators import MESSAGES, Communicator
from mirabelle.arraytypes.distributed.histories import told
from mirabelle.arraytypes.distributed.layouts import Pieces, intersected, place_in
from mirabelle.arraytypes.distributed.views import DBuffer, DView, Map
from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings

Box = tuple[tuple[int, int], ...]


class Transfer:
    """What this process sends and receives, so that each has the places of a view that it needs.

    `needs[q]` is what process q needs, for each dimension of the view; None for nothing.
    """

    __slots__ = ("_marks", "_needs", "_words", "map", "own", "rank", "receives", "sends", "shape", "size")

    def __init__(
        self, source: Map, needs: list[tuple[Pieces, ...] | None], rank: int, missing: bool = False
    ) -> None:
        base = source.base
        size = base.size
        self.map, self.rank, self.size = source, rank, size
        # What is moved from where to where, as all processes have to see it alike.
        self._words = (
            f"an array of shape {base.shape}" + (f" as {source.shape}" if source.shape != base.shape else ""),
            marks.Unsaid(repr((base.mesh, base.splits, source.axes, source.starts, source.steps, needs))),
        )
        self._marks: dict[np.dtype, int] = {}
        mine = self._needs = needs[rank]
        # The shape of what this process is given.
        self.shape = tuple(sum(b - a for a, b in held) for held in mine) if mine is not None else None
        used = {*base.owners(), *source.pinned}
        free = [m for m in range(len(base.mesh)) if m not in used]

        def group(r: int) -> tuple[int, ...]:
            at = base.coordinates(r)
            return tuple(at[m] for m in free)

        held = [source.held(r) for r in range(size)]
        here = group(rank)
        self.sends: dict[int, list[Box]] = {}
        self.receives: dict[int, list[Box]] = {}
        self.own: list[Box] = []
        for q in range(size):
            if group(q) != here:
                continue  # (where several hold the same, each serves those that stand like itself)
            if q == rank:
                if not missing:
                    self.own = boxes(held[rank], mine)
                continue
            self.sends[q] = boxes(held[rank], needs[q])
            self.receives[q] = boxes(held[q], mine)
        self.sends = {q: b for q, b in self.sends.items() if b}
        self.receives = {q: b for q, b in self.receives.items() if b}

    def run(self, view: DView, out: Any, under_way: list[Messages] | None = None) -> None:
        """Fill `out`, a local view of `shape`, and wait for it.

        Or not: what is to be finished before `out` is read is then added to `under_way`.
        """
        dtype = out.dtype if out is not None else _shown_dtype(self.map, view.buffer)
        bytes_each = math.prod(self.map.shape) * dtype.itemsize // self.size
        together = max(1, int(settings.exchange_bytes // max(bytes_each // self.size, 1)))
        if together >= self.size:
            messages = self.start(view, out, dtype)
            if under_way is None:
                messages.finish()
            else:
                under_way.append(messages)
            return
        for first in range(1, self.size, together):
            steps = range(first, min(first + together, self.size))
            to = {(self.rank + k) % self.size for k in steps}
            of = {(self.rank - k) % self.size for k in steps}
            self.start(view, out, dtype, to, of, own=first == 1).finish()

    def start(
        self,
        view: DView,
        out: Any,
        dtype: np.dtype,
        to: Iterable[int] | None = None,
        of: Iterable[int] | None = None,
        own: bool = True,
    ) -> Messages:
        """Send what others need and copy what is here; what comes is there after `finish`."""
        buffer = view.buffer
        inner = buffer.inner
        sends = {q: b for q, b in self.sends.items() if to is None or q in to}
        receives = {q: b for q, b in self.receives.items() if of is None or q in of}
        outgoing = {q: self._packed(buffer, inner, b, dtype) for q, b in sends.items()}
        messages = Messages(buffer.comm, inner, told(self.marked(dtype), view.history))
        messages.out = out
        incoming: dict[int, Any] = {}
        for q, found in receives.items():
            part = self.target(out, found[0]) if len(found) == 1 else None
            if part is not None and part.flags.c_contiguous:
                incoming[q] = part
                continue
            landed = inner._empty((sum(map(volume, found)),), dtype)
            incoming[q] = landed
            at = 0
            for box in found:
                n = volume(box)
                part = landed[at : at + n].reshape(tuple(b - a for a, b in box))
                messages.after.append((self.target(out, box), part))
                at += n
        messages.begin(outgoing, incoming)
        if own:
            self.fill(buffer, out)
        return messages

    def fill(self, buffer: DBuffer, out: Any) -> None:
        """Copy what is here to where it belongs."""
        for box in self.own:
            buffer.inner._copy_into(self.target(out, box), self.map.shows(buffer.local, self.rank, box))

    def marked(self, dtype: np.dtype) -> int:
        """The mark of moving elements of a dtype."""
        found = self._marks.get(dtype)
        if found is None:
            found = self._marks[dtype] = marks.marked("moving of elements", dtype, "of", *self._words)
        return found

    def _packed(self, buffer: DBuffer, inner: Any, found: list[Box], dtype: np.dtype) -> Any:
        """What goes to one process, one place after the other."""
        if len(found) == 1:
            shown = self.map.shows(buffer.local, self.rank, found[0])
            if shown.flags.c_contiguous:
                return shown
        packed = inner._empty((sum(map(volume, found)),), dtype)
        self.pack(buffer, inner, found, packed)
        return packed

    def pack(self, buffer: DBuffer, inner: Any, found: list[Box], row: Any) -> None:
        """Copy boxes into a row, one after the other."""
        at = 0
        for box in found:
            n = volume(box)
            part = row[at : at + n].reshape(tuple(b - a for a, b in box))
            inner._copy_into(part, self.map.shows(buffer.local, self.rank, box))
            at += n

    def target(self, out: Any, box: Box) -> Any:
        """Where a box of the view lies in what this process is given."""
        return out[(*[slice(*self._along(d, a, b)) for d, (a, b) in enumerate(box)], Ellipsis)]

    # What this process is given holds the places it needs in rising order.
    def _along(self, d: int, a: int, b: int) -> tuple[int, int]:
        assert self._needs is not None
        low = place_in(self._needs[d], a)
        return low, low + b - a


def _shown_dtype(source: Map, buffer: DBuffer) -> np.dtype:
    if source.kind is None:
        return buffer.dtype
    return buffer.dtype.type(0).real.dtype if type(source.kind) is str else source.kind  # type: ignore[no-any-return]


def boxes(held: tuple[Pieces, ...] | None, needs: tuple[Pieces, ...] | None) -> list[Box]:
    """The boxes of places that one holds and another needs."""
    if held is None or needs is None:
        return []
    return list(itertools.product(*[intersected(h, n) for h, n in zip(held, needs, strict=True)]))


def volume(box: Box) -> int:
    return math.prod(b - a for a, b in box)


def agreed(
    comm: Communicator, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES
) -> None:
    """Compare on all processes what each sends and what the others expect of it."""
    mine = tuple({q: v.nbytes for q, v in s.items()} for s in (sends, receives))
    said = comm.allgather_object((*mine, marks.doing(mark)), mark)
    for p, (sent, _, here) in enumerate(said):
        for q, (_, expected, there) in enumerate(said):
            if sent.get(q, 0) != expected.get(p, 0):
                sizes = f"{sent.get(q, 0)} bytes for rank {q}", f"it expects {expected.get(p, 0)} of rank {p}"
                raise CommunicationError(
                    marks.difference(p, f"{here} ({sizes[0]})", q, f"{there} ({sizes[1]})")
                )


class Messages:
    """Views on their way between processes: through the host where the engine does not take their type."""

    __slots__ = ("_exchange", "_staged", "after", "comm", "compared", "inner", "mark", "out")

    def __init__(self, comm: Communicator, inner: Any, mark: int = MESSAGES, compared: bool = False) -> None:
        self.comm = comm
        self.mark = mark
        # Did all ranks compare it before, as those of a program, in which who has no part in it does nothing?
        self.compared = compared
        self.inner = inner
        # What has landed, and where it belongs.
        self.after: list[tuple[Any, Any]] = []
        self._staged: list[tuple[Any, np.ndarray]] = []
        self._exchange: Any = None
        # The local view that what comes is for.
        self.out: Any = None

    def begin(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        if self.inner.home.kind == "traced":
            from mirabelle.arraytypes.programs.partmessages import Begun

            # (Also where this process has no part in it: all mark what travels together by the same.)
            self._exchange = Begun(self, sends, receives)
            return
        if settings.check_collectives and not self.compared:
            agreed(self.comm, sends, receives, self.mark)
        if counters.active and sends:
            counters.add(messages=len(sends), bytes_sent=sum(v.nbytes for v in sends.values()))
        if not sends and not receives:
            return
        inner, comm = self.inner, self.comm
        carrier = comm.carrier(inner)
        if carrier is None:
            sends = {q: np.ascontiguousarray(inner._download(v)) for q, v in sends.items()}
            landed = {q: np.empty(v.shape, v.dtype) for q, v in receives.items()}
            self._staged = [(receives[q], landed[q]) for q in receives]
            receives = landed
            carrier = comm
        self._exchange = carrier.start(sends, receives, self.mark)

    def finish(self) -> None:
        """Wait for what comes, and put it where it belongs."""
        if self._exchange is not None:
            self._exchange.wait()
            self._exchange = None
        for view, data in self._staged:
            self.inner._copy_into(view, self.inner._upload(data))
        self._staged = []
        for target, part in self.after:
            self.inner._copy_into(target, part)
        self.after = []
