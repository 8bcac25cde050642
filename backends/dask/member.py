"""A worker's part of a session: its communicator, the programs it knows, the arrays it keeps.

Programs run in a thread of the session's own, one after the other, so that neither the worker's own work nor
its event loop waits for them, nor they for the worker's tasks.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import math
import os
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import distributed
import numpy as np
from distributed.protocol.serialize import to_serialize

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.distributed.communicators import use_communicator
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.files import is_distributed
from mirabelle.backends.dask import shipping
from mirabelle.backends.tcp import TLS, Listener, TCPCommunicator, connect
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import CommunicationError, RemoteError
from mirabelle.dispatch.settings import settings

# Under this name events are logged, and shown: client.get_events("mirabelle").
TOPIC = "mirabelle"
# After so many seconds a program that is to stop is stopped wherever it is.
GRACE = 1.0

_listeners: dict[tuple[str, str], Listener] = {}


class Stopped(BaseException):
    """A program was stopped from the notebook."""


# What the notebook has run on all workers


def prepare(dask_worker: Any, name: str) -> tuple[str, int]:
    """Listen where the worker can be reached: the address."""
    host = (
        dask_worker.ip if "://" in dask_worker.address and dask_worker.address[:6] != "inproc" else "127.0.0.1"
    )
    listener = _listeners[name, dask_worker.address] = Listener(host)
    return listener.address


async def join(
    dask_worker: Any,
    name: str,
    members: Sequence[str],
    addresses: Sequence[tuple[str, int]],
    token: bytes,
    timeout: float,
    notebook: tuple[str, int],
) -> None:
    """Become a member: all workers of a session do so at the same time."""
    rank = members.index(dask_worker.address)
    listener = _listeners.pop((name, dask_worker.address))
    tls = encryption(dask_worker.security)
    # A pool of its own: the others in this process, if there are any, wait for us.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        comm = await asyncio.get_running_loop().run_in_executor(
            pool, connect, rank, len(members), addresses, token, listener, timeout, tls
        )
    alone = notebook != (socket.gethostname(), os.getpid())
    member = Member(name, comm, dask_worker, alone)
    await dask_worker.plugin_add(plugin=member, name=name)


def encryption(security: Any) -> TLS | None:
    """The TLS of the cluster's own connections, where it has any."""
    calls = security.get_connection_args("worker").get("ssl_context")
    listens = security.get_listen_args("worker").get("ssl_context")
    if calls is not None and listens is not None:
        listens.num_tickets = (
            0  # (nobody comes again, and a ticket nobody reads would break a connection's end)
        )
        return TLS(calls, listens)
    if security.require_encryption:
        raise CommunicationError(
            "This cluster requires encryption and gives its workers no certificate to encrypt with. Start it "
            "with distributed.Security(tls_ca_file=..., tls_worker_cert=..., tls_worker_key=..., ...)."
        )
    return None


async def leave(dask_worker: Any, name: str) -> None:
    """Forget the session, and all arrays of it."""
    listener = _listeners.pop((name, dask_worker.address), None)
    if listener is not None:
        listener.close()
    if name in dask_worker.plugins:
        await dask_worker.plugin_remove(name=name)


class Member(distributed.WorkerPlugin):  # type: ignore[misc]
    """One worker of a session."""

    def __init__(self, name: str, comm: TCPCommunicator, worker: Any, alone: bool) -> None:
        self.name = name
        self.comm = comm
        self.worker = worker
        self.programs: dict[int, Any] = {}
        self.kept: dict[Any, Any] = {}
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=name)
        # The number of the program that runs, and the thread it runs in.
        self._running: tuple[int, int] | None = None
        self._lock = threading.Lock()
        # As many threads for kernels as the worker was given, in a process that is only its own.
        self._threads = settings.num_threads
        if alone and "MIRABELLE_NUM_THREADS" not in os.environ:
            settings.num_threads = max(1, worker.state.nthreads)

    def setup(self, worker: Any) -> None:
        worker.handlers[self.name] = self.handle

    async def teardown(self, worker: Any) -> None:
        worker.handlers.pop(self.name, None)
        self.stop()
        await asyncio.get_running_loop().run_in_executor(None, self._end)
        settings.num_threads = self._threads

    def _end(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        self.kept.clear()
        self.programs.clear()
        self.comm.close()

    # What the notebook asks

    async def handle(self, what: str, **message: Any) -> Any:
        """One message from the notebook."""
        if what == "stop":
            self.stop(**message)
            return {"status": "OK"}
        if what == "put":
            self.kept[message["key"]] = aligned(message["data"])
            return {"status": "OK"}
        if what == "forget":
            await asyncio.wrap_future(self._thread.submit(self.forget, message["forget"]))
            return {"status": "OK"}
        if what == "leave":
            await self.worker.plugin_remove(name=self.name)
            return {"status": "OK"}
        assert what == "call"
        future = self._thread.submit(self.call, **message)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # stopped at the very end
            return self._failure(error)

    def call(
        self,
        number: int,
        title: str,
        program: int,
        code: bytes | None,
        arguments: bytes,
        news: bytes,
        forget: list[Any],
        every: bool,
    ) -> dict[str, Any]:
        """Run a program on this worker: all members are called with the same."""
        began = time.time()
        try:
            with self._lock:
                self._running = number, threading.get_ident()
            try:
                return self._run(number, program, code, arguments, news, forget, every)
            finally:
                with self._lock:
                    self._running = None
        except BaseException as error:
            error.__traceback__ = outside(error.__traceback__)
            for key in [k for k in self.kept if k[:1] == (number,)]:
                del self.kept[key]
            self.comm.failed(error)
            return self._failure(error)
        finally:
            self.worker.log_event(
                TOPIC,
                {
                    "session": self.name,
                    "key": f"{title}-{number}",
                    "rank": self.comm.rank,
                    "worker": self.worker.address,
                    "thread": threading.get_ident(),
                    "start": began,
                    "stop": time.time(),
                },
            )

    def _run(
        self,
        number: int,
        program: int,
        code: bytes | None,
        arguments: bytes,
        news: bytes,
        forget: list[Any],
        every: bool,
    ) -> dict[str, Any]:
        self.forget(forget)
        self.comm.begin(number)
        if news:
            self._share(pickle.loads(news))
        if code is not None:
            self.programs[program] = shipping.unpack(code, self._find)
        with use_communicator(self.comm):
            args, kwargs = shipping.unpack(arguments, self._find)
            result = self.programs[program](*args, **kwargs)
            del args, kwargs
            arrays: list[Any] = []
            frames = shipping.pack_frames(result, lambda x: self._keep(x, number, arrays))
        sent = [to_serialize(f) for f in frames] if every or self.comm.rank == 0 else None
        return {"status": "OK", "frames": sent, "arrays": arrays}

    def forget(self, keys: Sequence[Any]) -> None:
        for key in keys:
            # A number is that of a program, all else that of an array.
            (self.programs if isinstance(key, int) else self.kept).pop(key, None)

    def _find(self, name: Any) -> Any:
        try:
            return self.kept[name]
        except KeyError:
            raise LookupError(f"This worker does not have {name!r} any more.") from None

    def _keep(self, x: Any, number: int, arrays: list[Any]) -> Any:
        """What stands for an array in the notebook: itself as a number, or a name and what it looks like."""
        if type(x) is Placed:
            x = x.data
        elif not isinstance(x, AbstractArray):
            return None
        else:
            x = verbs.materialize(x)
            if isinstance(x, DenseArray) and not x.ndim:
                return "value", np.array(verbs.fetch(x))[()]
        key = number, len(arrays)
        arrays.append(key)
        self.kept[key] = x
        return "array", key, described(x)

    def _share(self, news: list[tuple[Any, np.dtype, tuple[int, ...]]]) -> None:
        """Tell all members the data that the first one was sent."""
        for key, dtype, shape in news:
            if self.comm.rank:
                data = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
            else:
                data = self.kept[key]
            self.comm.broadcast(data, 0)
            x = data.view(dtype).reshape(shape)
            # Everybody who is called with these contents gets this array.
            x.flags.writeable = False
            self.kept[key] = x

    def _failure(self, error: BaseException) -> dict[str, Any]:
        told = "".join(traceback.format_exception(error))
        error.__traceback__ = None  # it would be pickled, and is told
        try:
            pickled = shipping.pack(error, lambda x: None)
            pickle.loads(pickled)
        except Exception:
            pickled = b""
        return {
            "status": "failed",
            "summary": "".join(traceback.format_exception_only(error)).strip(),
            "traceback": told,
            "error": pickled,
            "secondary": isinstance(error, (RemoteError, Stopped)),
            "lost": self.comm.lost,
        }

    # Stopping

    def stop(self, number: int | None = None) -> None:
        """Have the program that runs stop where it waits for others, or, after a while, anywhere."""
        with self._lock:
            running = self._running
        if running is None or number not in (None, running[0]):
            return
        self.comm.stop(Stopped("stopped from the notebook"))
        timer = threading.Timer(GRACE, self._interrupt, [running])
        timer.daemon = True
        timer.start()

    def _interrupt(self, running: tuple[int, int]) -> None:
        with self._lock:
            if self._running == running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(running[1]), ctypes.py_object(Stopped)
                )


def described(x: Any) -> dict[str, Any]:
    """What the notebook knows of an array that stays here."""
    layout = None
    if is_distributed(x):
        layout = repr(x.layout) if isinstance(x, DArray) else "divided like its parent"
    return {"kind": type(x).__name__, "shape": x.shape, "dtype": x.dtype, "layout": layout}


def outside(where: Any) -> Any:
    """A traceback without the frames of this module at its beginning: it starts in the user's program."""
    inner = where
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return inner or where


def aligned(data: Any) -> Any:
    """Bytes as they came, at an address where any number may begin."""
    row = np.frombuffer(data, np.uint8)
    return row if row.ctypes.data % 16 == 0 else row.copy()


# Programs of the session's own


def parts_of(x: Any, rank: int) -> list[tuple[Any, Any]]:
    """What this worker gives of an array that is to be fetched: index and contents of each part."""
    from mirabelle.arraytypes.distributed.communicators import communicator

    if is_distributed(x):
        x = verbs.dense(x)
        if not isinstance(x, DenseArray):
            x = verbs.copy(x)
        return [(box, x.box_contents(box)) for box in x.boxes()]
    if communicator().rank != rank:
        return []
    return [((), np.asarray(verbs.fetch(x)))] if isinstance(x, AbstractArray) else [((), x)]


def card_of(x: Any) -> str | None:
    """The HTML an array shows itself as."""
    return x._repr_html_() if isinstance(x, AbstractArray) else None


def loaded(path: str, name: str | None, device: Any) -> Any:
    """Arrays of a file, each worker its part."""
    from mirabelle.arraytypes.distributed.views import family_over
    from mirabelle.arraytypes.host import HostArray
    from mirabelle.arraytypes.io import load

    return load(path, name, device=family_over(HostArray) if device is None else device)


class Placed:
    """A NumPy array that is to stay with the workers."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
