"""Small messages of the same size between all members: memory and requests that are used again and again.

Requests are persistent: what MPI prepares once is not prepared each time (2 µs of 5, two ranks, MPICH).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.mpi.environment import library
from mirabelle.backends.mpi.waiting import MPIExchange


class Slots:
    """One slot for each member: one writes one's own, and `swap` fills those of the others."""

    __slots__ = ("_exchange", "_requests", "_start", "rows", "watch")

    def __init__(self, comm: Any, nbytes: int, dtype: Any) -> None:
        MPI = library()
        self.watch = comm.watch
        self.rows = list(np.zeros((comm.size, nbytes), np.uint8).view(dtype))
        mine = self.rows[comm.rank].view(np.uint8)
        self._requests: list[Any] = []
        others = [r for r in range(comm.size) if r != comm.rank]
        for r in others:
            to = comm.members[r]
            self._requests.append(
                comm.mpi.Recv_init((self.rows[r].view(np.uint8), MPI.BYTE), to, self.watch.tags[to])
            )
        for r in others:
            to = comm.members[r]
            self._requests.append(comm.mpi.Send_init((mine, MPI.BYTE), to, self.watch.tags[to]))
        self._start = MPI.Prequest.Startall
        self._exchange = MPIExchange([], self.watch, comm.members)

    def swap(self) -> None:
        """Give what stands in one's own slot to all others, and wait for theirs."""
        if self.watch.trouble is not None:
            raise self.watch.refusal()
        self._start(self._requests)
        self._exchange.requests = self._requests
        self._exchange.wait()
