"""What the scheduler does for a session: it shows programs, and ends it when the notebook is gone."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import distributed


class Watch(distributed.SchedulerPlugin):  # type: ignore[misc]
    """Shows each program as a bar for each worker in the task stream, though it never was a task."""

    def __init__(self, name: str, client: str, workers: tuple[str, ...], topic: str) -> None:
        self.name = name
        self.client = client
        self.workers = workers
        self.topic = topic
        self.scheduler: Any = None
        self._ending: set[Any] = set()

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def log_event(self, topic: str, msg: Any) -> None:
        if topic != self.topic or not isinstance(msg, dict) or msg.get("session") != self.name:
            return
        stream = self.scheduler.plugins.get("task-stream")
        if stream is None:  # nobody looks
            return
        bar = {"action": "compute", "start": msg["start"], "stop": msg["stop"]}
        # As `TaskStreamPlugin.transition` notes down a task.
        stream.buffer.append(
            {
                "key": msg["key"],
                "worker": msg["worker"],
                "thread": msg["thread"],
                "type": "mirabelle",
                "typename": "mirabelle program",
                "nbytes": 0,
                "status": "OK",
                "startstops": [bar],
            }
        )
        stream.index += 1

    def remove_client(self, scheduler: Any, client: str) -> None:
        """The notebook has gone without a word: the workers need not keep its arrays."""
        if client != self.client:
            return
        with contextlib.suppress(RuntimeError):  # the scheduler itself is going
            task = asyncio.ensure_future(self._end(scheduler))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _end(self, scheduler: Any) -> None:
        there = [w for w in self.workers if w in scheduler.workers]
        await scheduler.broadcast(msg={"op": self.name, "what": "leave"}, workers=there, on_error="ignore")
        with contextlib.suppress(ValueError):
            scheduler.remove_plugin(self.name)
