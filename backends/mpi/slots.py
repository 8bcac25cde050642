"""Messages between the same memory: requests that are used again and again, and small slots for all members.

Requests are persistent: what MPI prepares once is not prepared each time (2 µs of 5, two ranks, MPICH).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Repeated
from mirabelle.backends.mpi.environment import library
from mirabelle.backends.mpi.waiting import MPIExchange
from mirabelle.backends.mpi.watch import MARKS

# Bytes before what a slot holds: its mark. (As many as the largest elements are aligned to.)
HEAD = 16


class Kept(Repeated):
    """Exchanges that come back, with persistent requests. (Made anew where tags of messages have changed.)"""

    __slots__ = ("_came", "_nbytes", "_partners", "_renewals", "_requests", "_start", "_together", "_waiting")

    def __init__(
        self,
        comm: Any,
        exchanges: Sequence[tuple[Mapping[int, Any], Mapping[int, Any]]],
        marks: Sequence[int],
    ) -> None:
        super().__init__(comm, exchanges, marks)
        self._renewals = -1
        self._start = library().Prequest.Startall
        self._requests: list[Any] = []
        self._waiting = MPIExchange([], comm.watch, ())
        # The marks that come, and what they should be.
        self._came: list[Any] = []
        ends = [(side, r) for e in exchanges for side in (0, 1) for r in e[side]]
        self._partners = sorted({comm.members[r] for _, r in ends})
        self._nbytes = sum(view.nbytes for e in exchanges for side in e for view in side.values())
        # (Requests that are started together are started in any order.)
        self._together = len(set(ends)) == len(ends)

    def _prepared(self) -> list[Any]:
        comm: Any = self._comm
        MPI = library()
        made: list[Any] = []
        self._came = []
        for (sends, receives), mark in zip(self._exchanges, self._marks, strict=True):
            for init, side in ((comm.mpi.Recv_init, receives), (comm.mpi.Send_init, sends)):
                for r, view in side.items():
                    to = comm.members[r]
                    tag = comm.watch.tags[to]
                    made.append(init((view.view(np.uint8), MPI.BYTE), to, tag))
                    said = memoryview(bytearray(16)).cast("q")
                    if side is sends:
                        said[0], said[1] = mark, view.nbytes
                    else:
                        self._came.append((to, said, mark, view.nbytes))
                    made.append(init((said, MPI.BYTE), to, tag + MARKS))
        self._renewals = comm.watch.renewals
        return made

    def start(self) -> None:
        watch = self._waiting.watch
        if watch.trouble is not None:
            raise watch.refusal()
        watch.threads.add(get_ident())
        if self._renewals != watch.renewals:
            self._requests = self._prepared()
        # (Before they are started: an interrupt must not leave messages that nobody knows of.)
        waiting = self._waiting
        waiting.requests, waiting.partners, waiting.nbytes = self._requests, self._partners, self._nbytes
        waiting.came = self._came
        if self._together:
            self._start(self._requests)
        else:
            for request in self._requests:
                request.Start()

    def wait(self) -> None:
        self._waiting.wait()


class Slots:
    """One slot for each member: one writes one's own, and `swap` fills those of the others."""

    __slots__ = ("_exchange", "_mine", "_requests", "_start", "_theirs", "rows", "watch")

    def __init__(self, comm: Any, nbytes: int, dtype: Any) -> None:
        MPI = library()
        self.watch = comm.watch
        whole = np.zeros((comm.size, HEAD + -(-nbytes // HEAD) * HEAD), np.uint8)[:, : HEAD + nbytes]
        self.rows = [row[HEAD:].view(dtype) for row in whole]
        mine = whole[comm.rank]
        self._mine = mine[:8].data.cast("q")
        self._theirs = [
            (comm.members[r], row[:8].data.cast("q")) for r, row in enumerate(whole) if r != comm.rank
        ]
        self._requests: list[Any] = []
        others = [r for r in range(comm.size) if r != comm.rank]
        for r in others:
            to = comm.members[r]
            self._requests.append(comm.mpi.Recv_init((whole[r], MPI.BYTE), to, self.watch.tags[to]))
        for r in others:
            to = comm.members[r]
            self._requests.append(comm.mpi.Send_init((mine, MPI.BYTE), to, self.watch.tags[to]))
        self._start = MPI.Prequest.Startall
        self._exchange = MPIExchange([], self.watch, comm.members)
        others = [comm.members[r] for r in others]
        self._exchange.receipts = list(zip(others, self._requests[: len(others)], strict=True))

    def swap(self, mark: int) -> None:
        """Give what stands in one's own slot to all others, and wait for theirs."""
        if self.watch.trouble is not None:
            raise self.watch.refusal()
        self.watch.doing = mark
        self._mine[0] = mark
        for _, said in self._theirs:
            said[0] = 0  # (of a message that is too short, this is what is left)
        self._start(self._requests)
        self._exchange.requests = self._requests
        self._exchange.wait()
        for member, said in self._theirs:
            if said[0] != mark:
                raise self.watch.differing(member, said[0])
