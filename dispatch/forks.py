"""Locks that a forked child finds open, whatever its parent's threads were doing."""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


class ForkLock:
    """A reentrant lock that is new, and open, in a forked child."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def _after_fork() -> None:
    for lock in list(_locks):
        lock.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
