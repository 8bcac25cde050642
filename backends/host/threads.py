"""The threads kernels run on.

Kernels release the GIL, so ordinary threads do. The caller works too; the others wait on a
queue. A forked child starts its own. When the interpreter ends they are waited for: what a thread
still runs or stands by in would be taken away under it.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from mirabelle.dispatch.settings import settings

# A task that returns true is one of those after which a thread stands by for the next; None ends the thread.
_tasks: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
_threads: list[threading.Thread] = []
_started = 0
# Nobody is started any more; whoever computes does so alone.
_over = False
# So long threads are waited for at the end, in seconds.
_PATIENCE = 1.0
_lock = threading.Lock()

# Where threads that have just finished a task list stand by for another (see `runner`): a cache line each.
POST_WORDS, MOST_POSTS = 8, 62
_room = (ctypes.c_int64 * ((MOST_POSTS + 1) * POST_WORDS))()
# (For good: on a loaded machine a thread may stand by there, and write, while the interpreter is taken down.)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_room))
POSTS = -(-ctypes.addressof(_room) // 64) * 64
_posts = (ctypes.c_int64 * (MOST_POSTS * POST_WORDS)).from_address(POSTS)
_stand: Any = None
_dismiss: Any = None


def standing(wanted: int, posts: int) -> int:
    """How many threads stand by at the first posts, counted up to so many."""
    count = 0
    for i in range(min(_started, posts)):
        if _posts[i * POST_WORDS] == 1:
            count += 1
            if count == wanted:
                break
    return count


def natively(stand: Any, dismiss: Any) -> None:
    """Say how a thread stands by: `stand(post, number)`, true if it shall do so on another processor; and what
    lets those go who do, so that they take what is in the queue: `dismiss(posts, how many)`."""
    global _stand, _dismiss
    _stand, _dismiss = stand, dismiss


def dismiss() -> None:
    """Let those who stand by go: something else is about to use the processors, or the queue."""
    if _dismiss is not None and standing(1, MOST_POSTS):
        _dismiss(POSTS, min(_started, MOST_POSTS))


_here = threading.local()


def number() -> int:
    """Which of the threads of this module the calling one is; 0 for those of others."""
    return getattr(_here, "number", 0)


def native() -> bool:
    """Is the code there that runs pieces of kernels without Python (see `tasks.Pieces`)?"""
    return _stand is not None


def _natively() -> None:
    """Make it. (Here, where nobody waits for it: it takes as long as some kernels.)"""
    if "llvmlite" in sys.modules and not _over:
        from mirabelle.backends.host import runner

        runner.native()


def _work(number: int) -> None:
    _here.number = number
    while True:
        task = _tasks.get()
        if task is None:
            return
        _anywhere(number)
        again = task()
        del task
        if again and _stand is None:
            _natively()
        if again and _stand is not None and number < MOST_POSTS:
            while _stand(POSTS + 8 * POST_WORDS * number, number):
                _elsewhere()


# When a thread that could not be started is tried again: until then, whoever computes does so alone.
_RETRY, _not_before = 1.0, 0.0


def _ensure(n: int) -> None:
    global _started, _not_before
    if _started < n and time.monotonic() >= _not_before:
        with _lock:
            while _started < n and not _over:
                name = f"mirabelle-{_started}"
                thread = threading.Thread(target=_work, args=(_started,), daemon=True, name=name)
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


def _elsewhere() -> None:
    """Have the calling thread, which shares a processor with who needs it, go to another."""
    with contextlib.suppress(OSError):
        processors = os.sched_getaffinity(os.getpid())
        others = processors - {processor()}
        if others:
            os.sched_setaffinity(0, others)
            os.sched_setaffinity(0, processors)


def _at_exit() -> None:
    global _over
    with _lock:
        _over = True
    dismiss()
    for _ in _threads:
        _tasks.put(None)
    until = time.monotonic() + _PATIENCE
    for thread in _threads:
        thread.join(max(0.0, until - time.monotonic()))


atexit.register(_at_exit)


def _after_fork() -> None:
    global _tasks, _started, _lock
    _tasks, _started, _lock = queue.SimpleQueue(), 0, threading.Lock()
    _threads.clear()
    _kept_off.clear()
    ctypes.memset(POSTS, 0, ctypes.sizeof(_posts))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Helpers:
    """Threads asked to help with one thing over and over: no more at once than wanted.

    Nobody waits for them. One that comes late finds out by itself what is left to do.
    """

    __slots__ = ("asked", "tasks")

    def __init__(self) -> None:
        self.tasks = _tasks
        self.asked: collections.deque[None] = collections.deque()

    def ask(self, helper: Callable[[], None], count: int, beside: int = 0) -> None:
        """Have `count` threads call `helper`, together with those that were asked and have not come, and
        beside so many others."""
        if self.tasks is not _tasks:  # a forked child: nobody will come
            self.tasks, self.asked = _tasks, collections.deque()
        asked = self.asked

        def come() -> bool:
            asked.pop()
            helper()
            return True

        _ensure(count + beside)
        _make_way()
        for _ in range(min(count, _started) - len(asked)):
            asked.append(None)
            _tasks.put(come)


def run_all(pieces: list[Callable[[], object]]) -> None:
    """Run every piece, on up to `settings.num_threads` threads; the first error is raised."""
    helpers = min(settings.num_threads, len(pieces)) - 1
    if helpers < 1:
        for piece in pieces:
            piece()
        return
    _ensure(helpers)
    helpers = min(helpers, _started)
    if standing(helpers, MOST_POSTS) < helpers:
        _make_way()
    counter = itertools.count()
    errors: list[BaseException] = []
    done = threading.Semaphore(0)
    gate = threading.Lock()
    came, over = 0, False

    def share() -> None:
        try:
            while not errors:
                i = next(counter)
                if i >= len(pieces):
                    break
                pieces[i]()
        except BaseException as e:  # handed to the caller
            errors.append(e)

    def help_out() -> bool:
        nonlocal came
        with gate:
            if over:
                return True
            came += 1
        share()
        done.release()
        return True

    for _ in range(helpers):
        _tasks.put(help_out)
    dismiss()
    share()
    # Those that have not come, which another thread's task list may keep busy, are not waited for.
    with gate:
        over = True
    for _ in range(came):
        done.acquire()
    pieces = []  # nor do they keep anything alive
    if errors:
        raise errors[0]
