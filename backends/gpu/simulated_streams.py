"""Streams and graphs of the simulated card.

A stream does its work as late as it may: only when somebody waits for it. Whoever forgets to wait
reads old values, as on a card that is busy. The default stream does its work at once.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from typing import Any

from mirabelle.backends.gpu.recording import Recorder

# What is to be done, and the memory that must live until then.
Task = tuple[Callable[[], None], Any]


class SimulatedStream:
    """Work that waits, in order."""

    # One for all streams: while one does its work, it may wait for others, and those for it.
    _lock = threading.RLock()

    def __init__(self, number: int) -> None:
        self.ptr = number
        self.tasks: list[Task] = []
        self.done = 0

    @property
    def given(self) -> int:
        """How much work it has been given so far."""
        return self.done + len(self.tasks)

    def drain(self, upto: int | None = None) -> None:
        """Do what waits; or only the work up to a number."""
        with self._lock:
            while self.tasks and (upto is None or self.done < upto):
                run, _ = self.tasks.pop(0)
                self.done += 1
                run()

    synchronize = drain


class Time(threading.local):
    """The streams that this thread has entered, the innermost last."""

    def __init__(self) -> None:
        self.entered: list[SimulatedStream] = []


class SimulatedRecorder(Recorder):
    """Keeps what would be done."""

    def begin(self) -> None:
        self.tasks: list[Task] = []
        self.driver.recorders.append(self)

    def end(self) -> Callable[[], None]:
        self.driver.recorders.remove(self)
        self.forget()
        driver, tasks = self.driver, self.tasks

        def replay() -> None:
            for run, blocks in tasks:
                driver.submit(run, blocks)

        return replay


class SimulatedGraph:
    """Launches that wait for some others: of those that may run, it is always the last one's turn.

    So whoever forgets to say what a launch must wait for sees it.
    """

    def __init__(self, launches: list[tuple[Callable[..., None], list[Any]]], after: list[list[int]]) -> None:
        self.launches = [(run, list(values)) for run, values in launches]
        self.order: list[int] = []
        waits = [len(earlier) for earlier in after]
        followers: list[list[int]] = [[] for _ in after]
        for i, earlier in enumerate(after):
            for j in earlier:
                followers[j].append(i)
        ready = [-i for i, n in enumerate(waits) if not n]
        heapq.heapify(ready)
        while ready:
            i = -heapq.heappop(ready)
            self.order.append(i)
            for j in followers[i]:
                waits[j] -= 1
                if not waits[j]:
                    heapq.heappush(ready, -j)

    def tell(self, number: int, values: list[Any]) -> None:
        self.launches[number][1][:] = values

    def run(self) -> None:
        for i in self.order:
            run, values = self.launches[i]
            run(*values)
