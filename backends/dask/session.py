"""A session: the workers of a Dask client as one machine for distributed arrays."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mirabelle.backends.dask import calling, member, shipping, versions
from mirabelle.backends.dask.calling import FailedError, StuckError
from mirabelle.backends.dask.control import Control, LostWorkerError
from mirabelle.backends.dask.dashboard import Watch
from mirabelle.backends.dask.large import Large, Sent, is_large
from mirabelle.backends.dask.program import Program
from mirabelle.backends.dask.releases import Releases
from mirabelle.backends.dask.remote import Remote
from mirabelle.dispatch.errors import CommunicationError, RemoteError

# Functions that `run` finds again without shipping them.
PROGRAMS = 128


class Session:
    """Programs over distributed arrays on the workers of a Dask client: `mb.distributed.connect(client)`.

    A context manager; `close()` lets go of all arrays. One program runs at a time.
    """

    __module__ = "mirabelle"

    def __init__(self, client: Any, name: str, workers: Sequence[str], direct: bool | None) -> None:
        self.client = client
        self.name = name
        # The addresses of the workers, in the order of ranks.
        self.workers = tuple(workers)
        self._loop = client.loop.asyncio_loop
        self._control = Control(client, name, workers)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        # Why it cannot be used any more.
        self._broken: str | None = None
        self._releases = Releases(self._control, self._loop, self._lock)
        # The last programs, by their functions, so that `run` does not ship them again.
        self._programs: OrderedDict[int, Program] = OrderedDict()
        self._sent = Sent()
        client.sync(self._control.open, direct)
        self._watched = self._watch()

    def _watch(self) -> bool:
        """Have the scheduler show programs, and clean up after us, where it knows mirabelle."""
        plugin = Watch(self.name, self.client.id, self.workers, member.TOPIC)
        with contextlib.suppress(Exception):
            there = self.client.run_on_scheduler(versions.shipped(versions.installed))
            if there["mirabelle"] == versions.installed()["mirabelle"]:
                self.client.register_plugin(plugin, name=self.name)
                return True
        return False

    @property
    def size(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    # Programs

    def program(self, function: Callable[..., Any]) -> Program:
        """A function as a program: called here, it runs on all workers, over the same distributed arrays.

        As under `mpiexec`, all workers do the same. Arguments are copied to them; a large NumPy array is
        sent once, as long as it lives here and is not changed, and is read-only there. Arrays that the
        program returns stay on the workers, evaluated, and come as `Remote`; a single number comes as it is.
        """
        found = self._programs.get(id(function))
        if found is None:
            found = self._programs[id(function)] = Program(self, function)
            if len(self._programs) > PROGRAMS:
                self._programs.popitem(last=False)
        return found

    def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function on all workers: what it returns on the first."""
        return self._call(self.program(function), args, kwargs)

    def each(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> list[Any]:
        """Run a function on all workers: what it returns on each, in the order of ranks."""
        return self._call(self.program(function), args, kwargs, every=True)

    def load(self, path: str, name: str | None = None, *, device: Any = None) -> Any:
        """The arrays of a file (`mb.load`), of which each worker reads its part: a path that all workers see.

        `device` is the type they get, `mb.DArray[mb.HostArray]` if nothing is said.
        """
        return self.run(member.loaded, path, name, device)

    def put(self, x: Any) -> Remote:
        """A NumPy array on each worker, to hand to programs without sending it again."""
        return self.run(member.Placed, np.asarray(x))

    def _fetch(self, x: Remote, rank: int) -> np.ndarray:
        if not 0 <= rank < self.size:
            raise IndexError(f"There is no rank {rank} among {self.size} workers.")
        found = self.each(member.parts_of, x, rank)
        parts = list(itertools.chain(*found))
        if len(parts) == 1 and (not parts[0][0] or parts[0][1].shape == x.shape):
            return parts[0][1]
        whole = np.empty(x.shape, x.dtype)
        for index, part in parts:
            whole[index] = part
        return whole

    # A call

    def _call(self, program: Program, args: Any, kwargs: Any, every: bool = False) -> Any:
        with self._lock:
            self._check()
            large = Large(self._sent)
            code = None if program.current else shipping.pack(program.function, self._namer(large))
            message = {
                "what": "call",
                "number": next(self._numbers),
                "title": program.title,
                "program": program.number,
                "code": code,
                "arguments": shipping.pack((args, kwargs), self._namer(large)),
                "news": large.news(),
                "forget": self._releases.take(),
                "every": every,
            }
            if code is not None:
                program.shipped()
            try:
                outcomes = calling.call(self._control, self._loop, message, large)
                self._explain(program, outcomes)
            except BaseException as error:
                program.lost()
                self._releases.add(large.new)
                if isinstance(error, KeyboardInterrupt):
                    self._interrupted(error)
                raise
            large.arrived(self)
            return self._result(outcomes, every)

    def _namer(self, large: Large) -> Callable[[Any], Any]:
        """What stands for a value that is not sent with a call."""

        def name(x: Any) -> Any:
            if type(x) is Remote:
                if x.session is not self:
                    raise CommunicationError(
                        f"{x!r} is of another session, which keeps it. Fetch it, and hand that over: x.fetch()."
                    )
                return x.key
            return large.key(x) if is_large(x) else None

        return name

    def _result(self, outcomes: list[Any], every: bool) -> Any:
        """What the program returned, with a handle for each array."""
        known: dict[Any, Remote] = {}

        def find(name: Any) -> Any:
            if name[0] == "value":
                return name[1]
            _, key, described = name
            if key not in known:
                known[key] = Remote(self, key, described)
            return known[key]

        try:
            said = [list(x["frames"]) for x in outcomes if x["frames"] is not None]
            results = [shipping.unpack_frames(frames, find) for frames in said]
        except Exception:
            self._releases.add(key for key in outcomes[0]["arrays"] if key not in known)
            raise
        return results if every else results[0]

    # What can go wrong

    def _check(self) -> None:
        if self._broken is not None:
            raise CommunicationError(
                f"This session cannot be used any more: {self._broken} Its arrays are gone. Connect again: "
                "session = mb.distributed.connect(client)"
            )

    def _explain(self, program: Program, outcomes: list[Any]) -> None:
        """Raise what happened, if a worker has not returned what all return."""
        for rank, outcome in enumerate(outcomes):
            if isinstance(outcome, LostWorkerError):
                self._lose(rank, program.title)
        failed = [x for x in outcomes if isinstance(x, FailedError)]
        for rank, outcome in enumerate(outcomes):
            if isinstance(outcome, StuckError):
                self._break(
                    f"{self._where(rank)} did not stop after {program.title!r} had failed. If it still "
                    "computes, client.restart() ends it."
                )
        if failed:
            self._raise(program, failed)
        for outcome in outcomes:
            if not isinstance(outcome, dict):
                raise outcome
        arrays = outcomes[0]["arrays"]
        for rank, outcome in enumerate(outcomes):
            if outcome["arrays"] != arrays:
                self._releases.add({key for x in outcomes for key in x["arrays"]})
                raise CommunicationError(
                    f"{program.title} returned {len(arrays)} arrays on rank 0 and {len(outcome['arrays'])} on "
                    f"rank {rank}. All workers run the same program, and return the same arrays."
                )

    def _raise(self, program: Program, failed: list[FailedError]) -> None:
        first = next((x for x in failed if not x.secondary), failed[0])
        if any(x.lost for x in failed):
            self._break(f"{program.title!r} failed, and the workers lost each other.")
        cause = RemoteError(
            f"{program.title} failed on {self._where(first.rank)}:\n\n{first.told}", first.rank, first.told
        )
        error = None
        if first.error:
            with contextlib.suppress(Exception):
                error = shipping.unpack(first.error, lambda name: None)
        if isinstance(error, RemoteError) or not isinstance(error, Exception):
            raise cause
        raise error from cause

    def _lose(self, rank: int, title: str) -> None:
        where = self._where(rank)
        self._break(f"{where} was lost.")
        raise RemoteError(
            f"{where[0].upper()}{where[1:]} was lost while {title!r} ran: its process ended, or it cannot be "
            "reached. The arrays of this session are gone. Connect again when the workers are there, and load "
            "what was last saved: session = mb.distributed.connect(client)",
            rank,
        )

    def _interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """After Ctrl-C: has the program stopped on all workers?"""
        outcomes = getattr(interrupt, "outcomes", [StuckError()])
        if all(isinstance(x, dict) or (isinstance(x, FailedError) and not x.lost) for x in outcomes):
            self._releases.add(key for x in outcomes if isinstance(x, dict) for key in x["arrays"])
            interrupt.add_note(
                "The program was stopped on all workers. The session can be used; arrays that the program "
                "writes to may be half written."
            )
        else:
            self._break("A program was interrupted, and did not stop on all workers.")
            interrupt.add_note("The session cannot be used any more: connect again.")

    def _break(self, why: str) -> None:
        """From now on nothing can be called, and the workers that are left let go of everything."""
        if self._broken is None:
            self._broken = why
            asyncio.run_coroutine_threadsafe(_leave(self._control), self._loop)

    def _where(self, rank: int) -> str:
        return f"worker {self.workers[rank]} (rank {rank} of {self.size})"

    # Letting go

    def _forget(self, key: Any) -> None:
        """Nothing here holds an array or a program any more. (Called by finalizers, in any thread.)"""
        if self._broken is None:
            self._releases.add([key])

    def close(self) -> None:
        """Let go of all arrays, and of the workers."""
        with self._lock:
            if self._loop.is_closed() or self.client.status == "closed":
                self._broken = self._broken or "The client was closed."
                return
            if self._broken is None:
                self._broken = "It was closed."
                self.client.sync(_leave, self._control)
            self._programs.clear()
            if self._watched:
                self._watched = False
                with contextlib.suppress(Exception):
                    self.client.unregister_scheduler_plugin(self.name)

    def __del__(self) -> None:
        if getattr(self, "_broken", "not made") is None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(_leave(self._control), self._loop)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "A session stays in the notebook, and a program or an argument of it refers to one. Programs call "
            "each other directly, and arrays are arguments."
        )

    def __repr__(self) -> str:
        state = "" if self._broken is None else f", which cannot be used: {self._broken}"
        return f"<session on {self.size} workers of {self.client.scheduler.address}{state}>"


async def _leave(control: Control) -> None:
    """Have the workers let go of everything."""
    await calling.everyone(control, lambda r: control.aside(r, what="leave"))
    control.close()
