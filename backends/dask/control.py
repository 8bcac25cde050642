"""How a session's calls reach the workers: straight, or else by way of the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import Any

import distributed
from distributed.comm.core import connect
from distributed.core import send_recv

# Workers that answer within this are reached straight.
REACH = 2.0


class LostWorkerError(Exception):
    """A worker does not answer any more, because it is gone."""


class Control:
    """Messages to the workers of a session, in the event loop of a client."""

    def __init__(self, client: Any, name: str, workers: Sequence[str]) -> None:
        self.client = client
        self.name = name
        self.workers = tuple(workers)
        self.usable = True
        # Connections of our own: they break as soon as the worker is gone, and are not made again.
        self._straight: list[Any] = []

    @property
    def direct(self) -> bool:
        return bool(self._straight)

    async def open(self, direct: bool | None) -> None:
        """Connect to the workers, if they can be reached. `direct` True: they must."""
        if direct is False:
            return
        args = self.client.connection_args
        tried = await asyncio.gather(
            *(connect(w, timeout=REACH, **args) for w in self.workers), return_exceptions=True
        )
        failed = [x for x in tried if isinstance(x, BaseException)]
        if not failed:
            self._straight = list(tried)
            return
        for comm in tried:
            if not isinstance(comm, BaseException):
                comm.abort()
        if direct:
            raise failed[0]

    async def ask(self, rank: int, **message: Any) -> Any:
        """The worker's answer. LostWorkerError where there will be none."""
        try:
            if self._straight:
                answer = await send_recv(self._straight[rank], op=self.name, reply=True, **message)
            else:
                answer = await self._watched(rank, self._by_scheduler(rank, message))
        except (OSError, distributed.comm.CommClosedError) as error:
            raise LostWorkerError(str(error)) from error
        if answer is None:  # it knows nothing of this session: another worker, at the same address
            raise LostWorkerError("the worker was started again")
        return answer

    async def aside(self, rank: int, **message: Any) -> None:
        """A message to a worker that may be answering another one. Nobody waits for its answer."""
        with contextlib.suppress(Exception):
            if self._straight:
                async with asyncio.timeout(REACH):
                    async with self.client.rpc(self.workers[rank]) as worker:
                        await getattr(worker, self.name)(**message)
            else:
                await self._by_scheduler(rank, message)

    async def _by_scheduler(self, rank: int, message: dict[str, Any]) -> Any:
        return await self.client.scheduler.proxy(
            msg={"op": self.name, "reply": True, **message}, worker=self.workers[rank]
        )

    async def _watched(self, rank: int, answer: Awaitable[Any]) -> Any:
        """An answer, unless the scheduler says in the meantime that the worker is gone."""
        task = asyncio.ensure_future(answer)
        try:
            while not (await asyncio.wait([task], timeout=1.0))[0]:
                if self.workers[rank] not in await self.client.scheduler.ncores():
                    raise LostWorkerError("the scheduler says that it has left")
            return task.result()
        finally:
            if not task.done():
                task.cancel()

    def close(self) -> None:
        self.usable = False
        for comm in self._straight:
            comm.abort()
        self._straight = []
