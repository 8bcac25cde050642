"""One call of all workers: their answers, what became of those that failed, and Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from distributed.protocol.serialize import to_serialize

from mirabelle.backends.dask.control import Control, LostWorkerError
from mirabelle.backends.dask.large import Large

# When a worker has failed, the others have so many seconds to notice.
NOTICE = 3.0
# What a program has so many seconds for when it is told to stop.
STOPPING = 10.0


class FailedError(Exception):
    """A program failed on a worker: what it said."""

    def __init__(self, rank: int, answer: dict[str, Any]) -> None:
        super().__init__(answer["summary"])
        self.rank = rank
        self.told: str = answer["traceback"]
        self.error: bytes = answer["error"]
        # Because of what happened elsewhere? And can the workers not talk to each other any more?
        self.secondary: bool = answer["secondary"]
        self.lost: bool = answer["lost"]


class StuckError(Exception):
    """A worker did not stop."""


def call(control: Control, loop: asyncio.AbstractEventLoop, message: dict[str, Any], large: Large) -> list[Any]:
    """What becomes of a message on each worker: an answer, or an exception. Ctrl-C stops the program there."""
    future = asyncio.run_coroutine_threadsafe(_everywhere(control, message, large), loop)
    while True:
        try:
            return future.result(1.0)
        except TimeoutError:
            if future.done():
                raise
        except KeyboardInterrupt as interrupt:
            asyncio.run_coroutine_threadsafe(_stop(control, message), loop)
            try:
                interrupt.outcomes = future.result(NOTICE + STOPPING)  # type: ignore[attr-defined]
            except (TimeoutError, KeyboardInterrupt):
                interrupt.outcomes = [StuckError()]  # type: ignore[attr-defined]
            raise


async def _everywhere(control: Control, message: dict[str, Any], large: Large) -> list[Any]:
    try:
        for key, data in large.new.items():
            await control.ask(0, what="put", key=key, data=to_serialize(data))
    except LostWorkerError as error:
        return [error]
    tasks = [asyncio.ensure_future(_answered(control, r, message)) for r in range(len(control.workers))]
    _, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if waiting:
        # The others notice by themselves, unless they compute without end.
        _, waiting = await asyncio.wait(waiting, timeout=NOTICE)
    if waiting:
        await _stop(control, message)
        _, waiting = await asyncio.wait(waiting, timeout=STOPPING)
    if waiting:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    return [StuckError() if t.cancelled() else t.exception() or t.result() for t in tasks]


async def _answered(control: Control, rank: int, message: dict[str, Any]) -> Any:
    answer = await control.ask(rank, **message)
    if answer["status"] == "OK":
        return answer
    raise FailedError(rank, answer)


async def _stop(control: Control, message: dict[str, Any]) -> None:
    await everyone(control, lambda r: control.aside(r, what="stop", number=message["number"]))


async def everyone(control: Control, ask: Callable[[int], Any]) -> None:
    """Something for each worker, at the same time."""
    await asyncio.gather(*(ask(r) for r in range(len(control.workers))))
