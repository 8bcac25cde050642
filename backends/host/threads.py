"""Threads that run functions of Python: NumPy on blocks, and kernels that are not compiled yet.

NumPy and kernels release the GIL, so ordinary threads do. The caller works too; the others wait to be woken up,
and what they were asked for and did not come to is taken back. A forked child starts its own. When the
interpreter ends they are waited for, before anything is taken down. Task lists have threads of their own, in C,
which are of no concern to the interpreter (see `runner`).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from mirabelle.backends.host import background
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.settings import settings

# What helpers are asked for, by callers that are in `run_all`. (Callers can be interrupted wherever they are in
# Python: what they share with helpers is only touched by single calls into C.)
_tasks: deque[Callable[[], object]] = deque()
# Who takes something out of here is awake, and does tasks until there are none; one that takes a False ends.
_wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
_threads: list[threading.Thread] = []
_started = 0
# Nobody is started any more; whoever computes does so alone.
_over = False
_lock = threading.Lock()


def standing() -> int:
    """How many threads have just finished a task list and stand by for another."""
    return in_c.helpers_standing()  # type: ignore[no-any-return]


def started() -> int:
    """How many threads there are, beside those of others."""
    return _started + in_c.helpers_started()  # type: ignore[no-any-return]


def dismiss() -> None:
    """Let those who stand by sleep: something else is about to use the processors."""
    in_c.helpers_dismiss()


def _work(number: int) -> None:
    while _wake.get():
        _anywhere(number)
        while not _over and (task := _next()) is not None:
            task()
            del task


def _next() -> Callable[[], object] | None:
    try:
        return _tasks.popleft()
    except IndexError:
        return None


def _ask(task: Callable[[], object], helpers: int) -> None:
    """Have so many helpers do a task, as soon as they can."""
    _tasks.extend([task] * helpers)
    # Those who have not yet woken up find this one as well: nobody needs to be woken up twice.
    for _ in range(min(helpers, _started - _wake.qsize())):
        _wake.put(True)


def _take_back(task: Callable[[], object]) -> None:
    """Nobody needs to come any more."""
    with contextlib.suppress(ValueError):
        while True:
            _tasks.remove(task)


# When a thread that could not be started is tried again: until then, whoever computes does so alone.
_RETRY, _not_before = 1.0, 0.0


def _ensure(n: int) -> None:
    global _started, _not_before
    if _started < n and time.monotonic() >= _not_before:
        with _lock:
            while _started < n and not _over:
                name = f"mirabelle-{_started}"
                thread = threading.Thread(target=_work, args=(_started,), name=name)
                thread.daemon = False  # the interpreter waits for it before it takes anything down
                try:
                    thread.start()
                except (RuntimeError, MemoryError):
                    _not_before = time.monotonic() + _RETRY
                    return
                _threads.append(thread)
                _started += 1


# On so many processors at most threads are told where not to run: where there are more, one is idle near by.
_FEW_PROCESSORS = 4
# The threads that were told to keep off a processor, and which one.
_kept_off: dict[int, int] = {}
# Tells the number of the processor that the calling thread is on; None where threads cannot be moved.
processor: Any = None
if hasattr(os, "sched_setaffinity"):
    with contextlib.suppress(OSError, AttributeError):
        processor = ctypes.PyDLL(None).sched_getcpu


def _make_way() -> None:
    """Keep the threads that are about to be woken up off the caller's processor, until they are awake.

    A virtual machine's idle processors often look taken to its scheduler, which then wakes up a thread where
    the one that calls it runs, to wait there for milliseconds until that one has done all the work alone.
    """
    if processor is None or len(_threads) >= _FEW_PROCESSORS:
        return
    here = processor()
    others: set[int] = set()
    # (A sandbox may forbid it, and a thread may have ended.)
    with contextlib.suppress(OSError):
        for number, thread in enumerate(_threads):
            if _kept_off.get(number) != here:
                others = others or os.sched_getaffinity(os.getpid()) - {here}
                if not 0 < len(others) < _FEW_PROCESSORS:
                    return
                _kept_off[number] = here
                if thread.native_id is not None:
                    os.sched_setaffinity(thread.native_id, others)


def _anywhere(number: int) -> None:
    """A thread that is awake runs where there is room: its processor may be another program's as well."""
    if _kept_off.pop(number, None) is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, os.sched_getaffinity(os.getpid()))


def _end() -> None:
    """Have those go that are there, after what they do."""
    global _over
    with _lock:
        _over = True
    for _ in _threads:
        _wake.put(False)


def _wait() -> None:
    for thread in _threads:
        background.ended(thread)


background.at_end(_end, _wait)


def _after_fork() -> None:
    global _wake, _started, _lock
    _wake, _started, _lock = queue.SimpleQueue(), 0, threading.Lock()
    _tasks.clear()
    _threads.clear()
    _kept_off.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_all(pieces: list[Callable[[], object]]) -> None:
    """Run every piece, on up to `settings.num_threads` threads; the first error is raised."""
    helpers = min(settings.num_threads, len(pieces)) - 1
    if helpers < 1:
        for piece in pieces:
            piece()
        return
    _ensure(helpers)
    helpers = min(helpers, _started)
    _make_way()
    counter = itertools.count()
    errors: list[BaseException] = []
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    gate = threading.Lock()
    came, gone, over = 0, 0, False

    def share() -> None:
        try:
            while not errors:
                i = next(counter)
                if i >= len(pieces):
                    break
                pieces[i]()
        except BaseException as e:  # handed to the caller
            errors.append(e)

    def help_out() -> None:
        nonlocal came, gone
        with gate:
            if over:
                return
            came += 1
        share()
        with gate:
            gone += 1
        done.put(None)

    def finish() -> None:
        nonlocal over
        # Those that have not come, which another thread's task list may keep busy, are not waited for.
        with gate:
            over = True
        _take_back(help_out)
        while gone < came:
            done.get()

    try:
        _ask(help_out, helpers)
        dismiss()
        share()
    except BaseException as e:
        errors.append(e)
    # Whoever interrupts, and however often: pieces may know of memory by its address alone, and its owner may
    # free it when this returns.
    while not _succeeds(finish, errors):
        pass
    pieces = []  # nor do helpers keep anything alive
    if errors:
        raise errors[0]


def _succeeds(step: Callable[[], object], errors: list[BaseException]) -> bool:
    try:
        step()
    except BaseException as e:
        errors.append(e)
        return False
    return True
