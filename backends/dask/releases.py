"""What the notebook no longer holds: the workers hear of it with the next call, or after a while."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from mirabelle.backends.dask.control import Control

# So many seconds without a call.
IDLE = 0.25


class Releases:
    """Keys of arrays, data and programs that the workers can let go of.

    They do so between programs, all at the same point of what they run: `lock` is held while something runs.
    """

    def __init__(self, control: Control, loop: asyncio.AbstractEventLoop, lock: threading.Lock) -> None:
        self._control = control
        self._loop = loop
        self._lock = lock
        self._keys: deque[Any] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, keys: Iterable[Any]) -> None:
        """Called from finalizers: at any time, in any thread."""
        self._keys.extend(keys)
        if self._keys:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._soon)

    def take(self) -> list[Any]:
        """All of them, for a call."""
        return [self._keys.popleft() for _ in range(len(self._keys))]

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE, self._tell)

    def _tell(self) -> None:
        self._timer = None
        if not self._keys or not self._control.usable:
            return
        if not self._lock.acquire(blocking=False):  # a program runs
            self._soon()
            return
        forget = self.take()
        answers = asyncio.gather(
            *(self._control.ask(r, what="forget", forget=forget) for r in range(len(self._control.workers))),
            return_exceptions=True,
        )
        answers.add_done_callback(lambda _: self._lock.release())
