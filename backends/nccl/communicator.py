"""Messages by NCCL between cards, one of each process.

All of it goes in the order of the program's work on the card, without waiting on the host. Exchanges have a
stream of their own, which begins after what their memory was made by, and what reads what came waits for
them: so kernels run meanwhile. Memory is let go of by the stream that asked for it, which has waited by then.
Collective operations, which are waited for at once, go to the current stream.

NCCL wants the operations of one communicator in one order on all members. That is the order of the program,
in one stream after the other (`Link`).
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import (
    GATHERING,
    MESSAGES,
    OBJECTS,
    Communicator,
    Exchange,
    mark_of_reduction,
)
from mirabelle.arraytypes.distributed.marks import difference, doing, marked
from mirabelle.arraytypes.gpu import GPUView
from mirabelle.backends.gpu.recording import recording
from mirabelle.backends.mpi.waiting import wait_until
from mirabelle.backends.nccl import binding
from mirabelle.backends.nccl.streams import Marks
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings

# Bytes up to which a reduction among some of the members gathers all terms: each group that uses NCCL's own
# has a communicator of NCCL, which takes a quarter of a second and memory of the card.
SMALL = 1 << 16
# Seconds that the end of the program waits for what the card still sends to others.
FAREWELL = 60.0


class Link:
    """NCCL on one card: its stream, and how far work in others has come that used it."""

    def __init__(self, driver: Any, key: Any, rank: int, size: int) -> None:
        self.driver = driver
        self.marks = Marks(driver)
        with driver.using():
            self.nccl = binding.library().NcclCommunicator(size, key, rank)
            self.stream = (
                driver.new_stream()
                if driver.simulated
                # (its kernels are few and small, and others wait for them)
                else driver.library.cuda.Stream(non_blocking=True, priority=-1)
            )
        # The stream that was used last; communicators of NCCL for some of the members.
        self.last = self.stream
        self.others: list[Any] = []
        # Has it been used since somebody last waited on the host?
        self.busy = False
        self.closed = ""
        # Graphs that have calls of it, which end before it does.
        self.graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        _links.add(self)

    def use(self, views: Sequence[GPUView]) -> bool:
        """Before the card is given something for these views; is it recorded for a graph?"""
        if self.closed:
            raise CommunicationError(self.closed)
        self.busy = True
        driver = self.driver
        if driver.recorders:
            recorder = recording(driver)
            if recorder is not None:
                recorder.named(tuple(view.ptr for view in views))
                return True
        return False

    def beside(self, views: Sequence[GPUView], give: Callable[[int], None]) -> Any:
        """Give the card something in the stream of exchanges, after what was queued; a mark at its end."""
        driver, marks, stream = self.driver, self.marks, self.stream
        recorded = self.use(views)
        with driver.using():
            current = driver.current_stream()
            if not recorded and self.last.ptr not in (stream.ptr, current.ptr):
                driver.order(stream, self.last)
            ready = marks.record(current)
            marks.follow(stream, ready)
            marks.give_back(ready)
            give(stream.ptr)
            if not recorded:
                self.last = stream
            return marks.record(stream)

    def here(self, views: Sequence[GPUView], give: Callable[[int], None]) -> None:
        """Give the card something in the current stream."""
        driver = self.driver
        recorded = self.use(views)
        with driver.using():
            current = driver.current_stream()
            if not recorded and self.last.ptr != current.ptr:
                driver.order(current, self.last)
                self.last = current
            give(current.ptr)

    def follow(self, mark: Any) -> None:
        """Have the current stream wait for a mark."""
        with self.driver.using():
            self.marks.follow(self.driver.current_stream(), mark)

    def wait(self, look: Callable[[], None], seconds: float | None = None) -> None:
        """Wait on the host for all that was given, and look at what happens to other processes meanwhile."""
        if not self.busy or self.closed:
            return
        with self.driver.using():
            mark = self.marks.record(self.last)
            if self.driver.simulated:
                self.marks.wait(mark)
            elif wait_until(lambda: self.marks.passed(mark), self._looking(look), seconds=seconds):
                self.marks.give_back(mark)
        self.busy = False

    def _looking(self, look: Callable[[], None]) -> Callable[[], None]:
        def check() -> None:
            try:
                look()
                self.nccl.check_async_error()
            except BaseException as e:
                self.close(f"NCCL's messages were given up, because this was heard of another process: {e}")
                raise

        return check

    def close(self, why: str) -> None:
        """End NCCL's part in this process: what it still does is given up."""
        if self.closed:
            return
        self.closed = why
        for graph in list(self.graphs):
            with contextlib.suppress(Exception):
                graph.close()
        for nccl in (*self.others, self.nccl):
            with contextlib.suppress(Exception):
                nccl.abort()
        self.others = []


_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _leave() -> None:
    """At the end of the program: others may still need what this card sends."""
    until = time.perf_counter() + (0.0 if hasattr(sys, "last_value") else FAREWELL)
    for link in list(_links):
        if not link.driver.simulated:
            with contextlib.suppress(Exception):
                link.wait(lambda: None, max(until - time.perf_counter(), 0.0))
        link.close("The program has come to its end.")


atexit.register(_leave)


class LinkCall:
    """Something that NCCL does, as a launch among others of a compiled program."""

    __slots__ = ("_give", "link", "word")
    # (It is captured, as calls of libraries are.)
    call = True

    def __init__(self, link: Link, give: Callable[[int, Sequence[int]], None], word: str) -> None:
        self.link, self._give, self.word = link, give, word

    def give(self, stream: int, addresses: Sequence[int]) -> None:
        """Give it to a stream."""
        with self.link.driver.using():
            self._give(stream, addresses)

    def __call__(self, *addresses: int) -> None:
        self.give(self.link.driver.current_stream().ptr, addresses)

    def beforehand(self) -> None:
        """Before a graph that has it is run: it comes after what the link was given, in the current stream."""
        self.link.here([], lambda stream: None)


class NCCLExchange(Exchange):
    """Messages between cards. The memory is kept until the current stream waits for them."""

    __slots__ = ("link", "mark", "views")

    def __init__(self, link: Link, mark: Any, views: Sequence[GPUView]) -> None:
        self.link = link
        self.mark = mark
        self.views = views

    def done(self) -> bool:
        return self.mark is None or self.link.marks.passed(self.mark)

    def wait(self) -> None:
        """What the card is given from now on comes after the messages. (The host does not wait.)"""
        mark, self.mark = self.mark, None
        if mark is not None:
            self.link.follow(mark)
            self.link.marks.give_back(mark)
            self.views = ()

    def __del__(self) -> None:
        if getattr(self, "mark", None) is not None:
            with contextlib.suppress(Exception):  # as the interpreter ends, say
                self.wait()


class Both(Exchange):
    """Messages of which some go by the host."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Exchange) -> None:
        self.parts = parts

    def done(self) -> bool:
        return all(part.done() for part in self.parts)

    def wait(self) -> None:
        for part in self.parts:
            part.wait()


class Comparison(Exchange):
    """Marks of messages that go by NCCL, on their way through the host, with the sizes of the messages."""

    __slots__ = ("expected", "mark", "marks", "rank", "said")

    def __init__(
        self, marks: Exchange, expected: dict[int, int], said: dict[int, np.ndarray], rank: int, mark: int
    ) -> None:
        self.marks = marks
        self.expected = expected
        self.said = said
        self.rank = rank
        self.mark = mark

    def done(self) -> bool:
        return self.marks.done()

    def wait(self) -> None:
        self.marks.wait()
        for r, nbytes in self.expected.items():
            if self.said[r] != nbytes:
                here = f"{doing(self.mark)} ({nbytes} bytes expected)"
                there = f"the same, with {int(self.said[r])} bytes"
                raise CommunicationError(difference(self.rank, here, r, there))


class NCCLCommunicator(Communicator):
    """The members of another communicator, `host`, of which each has a card: see `carrier_for[GPUArray]`.

    Views of the array type `inner` go from card to card; all else goes the way of `host`.
    """

    engine = "nccl"

    def __init__(
        self, host: Communicator, inner: Any, key: Any = None, of: NCCLCommunicator | None = None
    ) -> None:
        self.host = host
        self.inner = inner
        self.rank, self.size = host.rank, host.size
        # Our numbers in the link's communicator, by rank; the communicator for collective operations.
        self.members = tuple(range(self.size))
        self._collective: Any = None
        if of is None:
            self.link = Link(inner.driver(), key, host.rank, host.size)
            self._collective = self.link.nccl
        else:
            self.link = of.link
        self._known: dict[tuple[int, ...], NCCLCommunicator] = {}
        # Marks under way: NCCL does not tell whether two ranks mean the same, so the host's engine does.
        self._comparing: Exchange | None = None

    # Messages

    def takes(self, kind: type) -> bool:
        return issubclass(kind, self.inner.view_type) or self.host.takes(kind)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        if all(isinstance(v, GPUView) for side in (sends, receives) for v in side.values()):
            return self._start(sends, receives, mark)
        ours, theirs = zip(_sorted(sends), _sorted(receives), strict=True)
        return Both(self._start(*ours, mark), self.host.start(*theirs, mark))

    def _start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int) -> Exchange:
        outgoing = [(self.members[r], _checked(v), v.nbytes) for r, v in sends.items() if v.size]
        incoming = [(self.members[r], _checked(v), v.nbytes) for r, v in receives.items() if v.size]
        if not outgoing and not incoming:
            return Exchange()
        self._compare(
            {r: np.array(v.nbytes) for r, v in sends.items() if v.size},
            {r: v.nbytes for r, v in receives.items() if v.size},
            mark,
        )
        library, link = binding.library(), self.link
        nccl, byte = link.nccl, library.NCCL_INT8

        def give(stream: int) -> None:
            library.groupStart()
            try:
                for to, view, nbytes in outgoing:
                    nccl.send(view.ptr, nbytes, byte, to, stream)
                for of, view, nbytes in incoming:
                    nccl.recv(view.ptr, nbytes, byte, of, stream)
            finally:
                library.groupEnd()

        views = [view for _, view, _ in (*outgoing, *incoming)]
        return NCCLExchange(link, link.beside(views, give), views)

    def exchange_call(self, sends: list[tuple[int, int]], receives: list[tuple[int, int]]) -> LinkCall:
        """Messages of so many bytes to and from ranks, for a graph: of their addresses, in this order.

        (That all mean the same was found out before: these carry no marks.)
        """
        library, nccl = binding.library(), self.link.nccl
        byte = library.NCCL_INT8
        outgoing = [(self.members[r], n) for r, n in sends]
        incoming = [(self.members[r], n) for r, n in receives]

        def give(stream: int, addresses: Sequence[int]) -> None:
            library.groupStart()
            try:
                for (to, n), at in zip(outgoing, addresses[: len(outgoing)], strict=True):
                    nccl.send(at, n, byte, to, stream)
                for (of, n), at in zip(incoming, addresses[len(outgoing) :], strict=True):
                    nccl.recv(at, n, byte, of, stream)
            finally:
                library.groupEnd()

        return LinkCall(self.link, give, "messages between cards")

    def allgather_call(self, nbytes: int) -> LinkCall:
        """So many bytes of each member, one after the other on all, for a graph."""
        nccl, byte = self._collectives(), binding.library().NCCL_INT8

        def give(stream: int, addresses: Sequence[int]) -> None:
            nccl.allGather(*addresses, nbytes, byte, stream)

        return LinkCall(self.link, give, "a gathering between cards")

    def _compare(self, sends: dict[int, np.ndarray], receives: dict[int, int], mark: int) -> None:
        """Tell partners the mark and the sizes of what goes by NCCL; theirs are looked at before what follows.

        (Waiting for them at once would keep the hosts in step, with the cards idle meanwhile.)
        """
        self._compared()
        sizes = {r: np.empty((), np.int64) for r in receives}
        self._comparing = Comparison(self.host.start(sends, sizes, mark), receives, sizes, self.rank, mark)
        if settings.check_collectives:
            self._compared()

    def _compared(self) -> None:
        comparing, self._comparing = self._comparing, None
        if comparing is not None:
            comparing.wait()

    def _compare_in_ring(self, nbytes: int, mark: int) -> None:
        """The same for an operation of all: what neighbours do alike, all do alike."""
        n = self.size
        if n > 1:
            self._compare({(self.rank + 1) % n: np.array(nbytes)}, {(self.rank - 1) % n: nbytes}, mark)

    # Collective operations

    def allgather(self, mine: Any, parts: Sequence[Any], mark: int = GATHERING) -> None:
        first = parts[0]
        if not all(isinstance(p, GPUView) for p in (mine, *parts)):
            self.host.allgather(mine, parts, mark)
        elif mine.nbytes and all(p.ptr == first.ptr + r * mine.nbytes for r, p in enumerate(parts)):
            self._compare_in_ring(mine.nbytes, mark)
            nccl, byte, target = self._collectives(), binding.library().NCCL_INT8, first.ptr
            self.link.here(
                [mine, *parts],
                lambda stream: nccl.allGather(_checked(mine).ptr, target, mine.nbytes, byte, stream),
            )
        else:
            Communicator.allgather(self, mine, parts, mark)

    def broadcast(self, data: Any, root: int) -> None:
        if not isinstance(data, GPUView):
            self.host.broadcast(data, root)
        elif data.size:
            self._compare_in_ring(data.nbytes, marked("broadcast from rank", root))
            nccl, byte = self._collectives(), binding.library().NCCL_INT8
            self.link.here(
                [data], lambda stream: nccl.bcast(_checked(data).ptr, data.nbytes, byte, root, stream)
            )

    def allreduce(self, data: Any, op: str, mark: int = 0) -> bool:
        if not isinstance(data, GPUView):
            return self.host.allreduce(data, op, mark)
        how = binding.reduction(op, data.dtype)
        if how is None or not data.contiguous or (self._collective is None and data.nbytes < SMALL):
            return False
        if data.size:
            self._compare_in_ring(data.nbytes, mark or mark_of_reduction(op, data))
            operation, elements, each = how
            nccl = self._collectives()
            self.link.here(
                [data],
                lambda stream: nccl.allReduce(
                    data.ptr, data.ptr, data.size * each, elements, operation, stream
                ),
            )
        return True

    def _collectives(self) -> Any:
        """NCCL's communicator of these members alone."""
        if self._collective is None:
            key = self.host.bcast_object(binding.new_key() if self.rank == 0 else None)
            with self.link.driver.using():
                self._collective = binding.library().NcclCommunicator(self.size, key, self.rank)
            self.link.others.append(self._collective)
        return self._collective

    # What the host's communicator does

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        return self.host.allgather_object(x, mark)

    def bcast_object(self, x: Any, root: int = 0) -> Any:
        return self.host.bcast_object(x, root)

    def barrier(self) -> None:
        self.host.barrier()

    def hurry(self) -> None:
        """(Cards need nobody to move messages on.)"""

    def failed(self, error: BaseException) -> None:
        self.host.failed(error)

    def settle(self, x: Any) -> list[Any]:
        return self.host.settle(x)

    def look(self) -> None:
        self.host.look()

    def reach(self) -> None:
        self._compared()
        self.link.wait(self.host.look)

    def close(self) -> None:
        self.link.close("This communicator was closed.")

    def part(self, ranks: Sequence[int]) -> Communicator:
        key = tuple(ranks)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = NCCLCommunicator(self.host.part(ranks), self.inner, of=self)
            found.members = tuple(self.members[r] for r in ranks)
        return found


def _checked(view: GPUView) -> GPUView:
    if not view.contiguous:
        raise CommunicationError(
            f"Messages are contiguous memory, and a view of shape {view.shape} with strides {view.strides} is "
            "not. Send a copy of it."
        )
    return view


def _sorted(side: Mapping[int, Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """The views of cards' memory, and the others."""
    ours = {r: v for r, v in side.items() if isinstance(v, GPUView)}
    return ours, {r: v for r, v in side.items() if r not in ours}
