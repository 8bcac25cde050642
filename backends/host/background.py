"""Compiling in the background: helper processes, and a thread where there can be none.

Nothing of this process waits for a helper: its pipes are looked at whenever somebody asks for a kernel. So no
thread is in the middle of something (an import of Numba, the mapping of a kernel) while the interpreter is
taken down under it. The thread that compiles where no helper can be started is waited for.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mirabelle.backends.codegen.source import Source

# A process or thread that could not be started is tried again after so many seconds.
RETRY = 1.0
# How many kernels one helper has waiting before another starts.
_ENOUGH = 3
# After so many kernels a helper ends, and another takes its place: LLVM gives back nothing of its memory.
MOST = 400
# The name of the source of a function of `mb.jit` (see overloadjobs.py).
OVERLOAD = "overload"
# Pipes that can be asked whether there is something in them are what helpers need.
_PIPES = hasattr(select, "poll")
# What a helper does first, before it imports anything large: have itself killed when its parent dies (by
# PR_SET_PDEATHSIG), unless that happened before.
_HELPER = """
import ctypes, os, sys
if {own} and sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != {parent}:
    os._exit(0)
from mirabelle.backends.host import server
server.main({parent})
"""


class Job(NamedTuple):
    """A kernel to compile: how this process knows it, its source, what that calls, its cache entry, and where
    entries are kept."""

    key: Any
    source: Source
    builtins: dict[str, str]
    entry: str
    folder: str | None


class Answer(NamedTuple):
    """What became of a job: its code, or None if it does not compile; was it compiled for this, or found?
    The symbol of what does not compile is what Numba said of a user's function."""

    job: Job
    code: bytes | None
    symbol: str
    made: bool


def _may_start() -> bool:
    """Does the system start one more thread, and so another process?

    Where it does not, `subprocess` tries a fork after its vfork. Before a fork OpenBLAS ends its threads, and
    when the next product finds that it may not start them anew, it ends the process.
    """
    probe = threading.Thread(target=int)
    try:
        probe.start()
    except (RuntimeError, MemoryError):
        return False
    probe.join()
    return True


class Helper:
    """A helper process: requests go to its standard input, answers come from its output."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.dead = False
        self.waiting: dict[int, Job] = {}
        self.number = 0
        self.requests = self.answers = -1
        self.outgoing, self.incoming = bytearray(), bytearray()

    def start(self) -> bool:
        """Start it; false if the system refuses."""
        if not _may_start():
            return False
        # The system's message that a parent died comes when the thread ends that started its child.
        own = threading.current_thread() is threading.main_thread()
        command = [sys.executable, "-P", "-c", _HELPER.format(parent=os.getpid(), own=own)]
        # The helper must find what this process found, wherever it was started. It multiplies no matrices.
        path = os.pathsep.join(p for p in sys.path if p)
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=environment,
            )
        except (OSError, RuntimeError, MemoryError):
            return False
        assert process.stdin is not None and process.stdout is not None
        self.requests, self.answers = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self.requests, False)
        os.set_blocking(self.answers, False)
        self.process = process
        if hasattr(os, "setpriority"):
            # Compiling can wait; the statement that is being interpreted cannot.
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, 5)
        return True

    def submit(self, job: Job) -> None:
        """Have a kernel compiled."""
        self.number += 1
        self.waiting[self.number] = job
        request = pickle.dumps(
            (self.number, job.source.text, job.source.name, job.builtins, job.entry, job.folder)
        )
        self.outgoing += struct.pack("<Q", len(request)) + request
        self.hand_over()

    def hand_over(self) -> None:
        """Write as much of the requests as the pipe takes."""
        while self.outgoing and not self.dead:
            try:
                del self.outgoing[: os.write(self.requests, self.outgoing)]
            except BlockingIOError:
                return
            except OSError:
                self.dead = True

    def read(self) -> list[Answer]:
        """The answers that have come."""
        self.hand_over()
        while not self.dead:
            try:
                piece = os.read(self.answers, 1 << 16)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self.incoming += piece
            self.dead = not piece
        found = []
        while len(self.incoming) >= 8:
            (size,) = struct.unpack_from("<Q", self.incoming)
            if len(self.incoming) < 8 + size:
                break
            number, code, symbol, made = pickle.loads(self.incoming[8 : 8 + size])
            del self.incoming[: 8 + size]
            found.append(Answer(self.waiting.pop(number), code, symbol, made))
        return found

    def stop(self) -> None:
        """End it."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(Exception):
                process.kill()
                process.wait(1)
            self._close(process)

    def forget(self) -> None:
        """What a forked child does about its parent's helper: its end of the pipes would keep it alive."""
        process, self.process = self.process, None
        if process is not None:
            process.returncode = 0
            self._close(process)

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Helpers:
    """Several helpers, where there are processors for them: another starts when one has enough to do."""

    def __init__(self) -> None:
        processors = os.cpu_count() or 1
        self.helpers = [Helper() for _ in range(min(processors, max(2, processors // 2), 4))]
        self.lock = threading.Lock()
        self.over = False
        self.not_before = 0.0
        self.lost: list[Job] = []

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The first helper."""
        return self.helpers[0].process

    def submit(self, job: Job) -> bool:
        """Have a kernel compiled; false if there is no helper and none can be started now."""
        with self.lock:
            if self.over or not _PIPES:
                return False
            for h in self.helpers:
                if h.number >= MOST and not h.waiting and h.process is not None:
                    h.stop()
                    h.__init__()  # type: ignore[misc]
            alive = [h for h in self.helpers if not h.dead]
            running = sorted([h for h in alive if h.process is not None], key=_load)
            # (A helper takes a second to start: two kernels are sooner compiled by one that is there.)
            if not running or _load(running[0]) >= _ENOUGH:
                idle = [h for h in alive if h.process is None]
                if idle and time.monotonic() >= self.not_before:
                    if idle[0].start():
                        running.insert(0, idle[0])
                    else:
                        self.not_before = time.monotonic() + RETRY
            if running:
                running[0].submit(job)
            return bool(running)

    def poll(self, seconds: float = 0.0) -> tuple[list[Answer], list[Job]]:
        """The answers that have come, waiting for one so long, and the jobs of helpers that died."""
        if not self.lock.acquire(timeout=seconds or -1) if seconds else not self.lock.acquire(False):
            return [], []  # (another thread takes them)
        try:
            running = [h for h in self.helpers if h.process is not None]
            if seconds:
                _wait(running, seconds)
            answers, lost = [], []
            for helper in running:
                answers += helper.read()
                if helper.dead:
                    lost += list(helper.waiting.values())
                    helper.waiting.clear()
                    helper.stop()
            return answers, lost
        finally:
            self.lock.release()

    def stop(self) -> None:
        """End them all; none is started any more."""
        self.over = True
        for helper in self.helpers:
            helper.stop()

    def forget(self) -> None:
        """In a forked child: leave them to the parent."""
        for helper in self.helpers:
            helper.forget()


def _load(helper: Helper) -> int:
    # (A function of `mb.jit` takes seconds: no kernel should wait behind it.)
    return sum(_ENOUGH if job.source.name == OVERLOAD else 1 for job in helper.waiting.values())


def _wait(helpers: list[Helper], seconds: float) -> None:
    """Wait until one of them can be read from, or written to if there is something to write."""
    watched = select.poll()
    for h in helpers:
        watched.register(h.answers, select.POLLIN)
        if h.outgoing:
            watched.register(h.requests, select.POLLOUT)
    watched.poll(max(1, int(seconds * 1000)))


class Worker:
    """A thread that does one thing after the other, and is waited for at the end."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.lock = threading.Lock()
        self.over = False
        self.not_before = 0.0

    def submit(self, task: Callable[[], object]) -> bool:
        """Have it do something; false if it cannot be started now."""
        with self.lock:
            if self.over:
                return False
            if self.thread is None:
                if time.monotonic() < self.not_before:
                    return False
                thread = threading.Thread(target=self._work, name="mirabelle-compiler")
                # (One that is no daemon: the interpreter waits for it before it takes anything down.)
                thread.daemon = False
                try:
                    thread.start()
                except (RuntimeError, MemoryError):
                    self.not_before = time.monotonic() + RETRY
                    return False
                self.thread = thread
            self.tasks.put(task)
            return True

    def _work(self) -> None:
        while (task := self.tasks.get()) is not None:
            if not self.over:
                task()
            del task

    def end(self) -> None:
        """Have it stop after what it is doing."""
        self.over = True
        self.tasks.put(None)

    def wait(self) -> None:
        """Wait until it has, whoever interrupts: nothing may be taken down under it."""
        ended(self.thread)


def ended(thread: threading.Thread | None) -> None:
    """Wait until a thread has ended, whoever interrupts."""
    while thread is not None and thread.is_alive():
        with contextlib.suppress(KeyboardInterrupt):
            thread.join()


def at_end(end: Callable[[], object], wait: Callable[[], object]) -> None:
    """Have `end` called before the interpreter waits for its threads, and `wait` after it, should somebody have
    interrupted it there."""
    first: Any = getattr(threading, "_register_atexit", None)
    if first is None:
        atexit.register(lambda: (end(), wait()))
    else:
        first(end)
        atexit.register(wait)
