"""Waiting for messages: never forever in silence, and never at the cost of those who still compute.

MPI moves large messages only while somebody asks about them, so waiting is asking: at first without a
pause, then letting other processes have the core, at last in short naps. Naps are when there is time to
look whether another process has failed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mirabelle.arraytypes.distributed.communicators import Exchange
from mirabelle.dispatch.errors import CommunicationError

# Seconds of asking without a pause: the time of a small message between two cores.
SPIN = 50e-6
# Seconds after which naps begin, and the seconds that a byte adds: large messages are asked about more often.
PATIENCE = 2e-3
PER_BYTE = 2e-9
NAPS = (20e-6, 5e-4)
# Seconds between two looks at whether others have failed.
LOOK = 5e-3

_clock = time.perf_counter
_yield = getattr(os, "sched_yield", lambda: time.sleep(0))


def wait_until(
    done: Callable[[], bool],
    look: Callable[[], None],
    crowded: bool = False,
    nbytes: int = 0,
    seconds: float | None = None,
) -> bool:
    """Wait until `done()`, or until `look()` raises what happened to those who are waited for.

    `crowded`: others need this core. After `seconds` give up: False.
    """
    if done():
        return True
    began = _clock()
    if not crowded:
        until = began + SPIN
        while _clock() < until:
            if done():
                return True
    until = began + PATIENCE + nbytes * PER_BYTE
    now = began
    while now < until:
        _yield()
        if done():
            return True
        now = _clock()
    looked = began
    while True:
        if now - looked > LOOK:
            looked = now
            look()
        if seconds is not None and now - began > seconds:
            return False
        time.sleep(min(max((now - began) / 16, NAPS[0]), NAPS[1]))
        if done():
            return True
        now = _clock()


class MPIExchange(Exchange):
    """Messages on their way, by their requests. (A request keeps the memory that it reads or fills.)"""

    __slots__ = ("came", "nbytes", "partners", "receipts", "requests", "watch")

    def __init__(self, requests: list[Any], watch: Any, partners: Iterable[int], nbytes: int = 0) -> None:
        self.requests = requests
        self.watch = watch
        # Who is waited for.
        self.partners = partners
        self.nbytes = nbytes
        # Marks that come beside the messages: from whom, where they will be, and what they and sizes should be.
        self.came: Sequence[tuple[int, Any, int, int]] = ()
        # From whom what comes, where that is known: who has sent is waited for no longer.
        self.receipts: Sequence[tuple[int, Any]] = ()

    def done(self) -> bool:
        if self.requests:
            try:
                if not self.watch.testall(self.requests):
                    return False
            except self.watch.MPIError as e:
                raise self._explained(e) from e
            self.requests = []
            self._compare()
        return True

    def wait(self) -> None:
        requests, watch = self.requests, self.watch
        if not requests:
            return
        testall = watch.testall
        try:
            for _ in watch.first:
                if testall(requests):
                    break
            else:
                wait_until(lambda: testall(requests), self._look, watch.crowded, self.nbytes)
        except watch.MPIError as e:
            raise self._explained(e) from e
        except BaseException:
            self.abandon()
            raise
        self.requests = []
        self._compare()

    def _compare(self) -> None:
        """Was what came meant for this?"""
        for member, said, mark, nbytes in self.came:
            if said[0] != mark or said[1] != nbytes:
                raise self.watch.differing(member, said[0], mark, said[1], nbytes)

    def _look(self) -> None:
        try:
            missing = [member for member, request in self.receipts if not request.Get_status()]
        except self.watch.MPIError:  # (what came cannot be taken)
            missing = []
        self.watch.look(tuple(self.partners), missing)

    def abandon(self) -> None:
        """Wait no longer; what MPI may still touch is kept."""
        if self.requests:
            self.watch.abandon(self.requests)
            self.requests = []

    def _explained(self, error: Exception) -> CommunicationError:
        self.abandon()
        # Messages of a rank that failed half-way may have been taken for others: then that is the reason.
        for _ in range(20):
            self._look()
            time.sleep(LOOK)
        # Else they were cut off: the two ends disagree about what is sent.
        others = [m for m in self.partners if m != self.watch.rank]
        if others:
            return self.watch.differing(others[0], sure=False)
        return CommunicationError(f"MPI could not deliver messages of this rank: {error}.")

    def __del__(self) -> None:
        if self.requests and not sys.is_finalizing():
            self.abandon()
