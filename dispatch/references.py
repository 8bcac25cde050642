"""Who else holds a version: what CPython's reference counts say of it, and whether they can be believed.

A writer may change memory in place where nobody else holds it. How many references an unheld version shows
depends on the interpreter, so each place that asks measures it at import, with nobody watching: a tracer, a
debugger or a coverage tool that reads the local variables of a frame holds them, too, and what is measured
then would let a writer take memory that somebody reads. Afterwards a few statements are run in which memory is
shared (`arraytypes/aliasing.py`); if one of them gives a wrong value, all memory counts as shared from then on.

>>> from mirabelle.dispatch import references
>>> references.certain
True
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence

# A count that every version exceeds: nothing is ever held by one alone.
SHARED = -(1 << 30)

# Do the counts say who holds a version? (Else all memory counts as shared.)
certain = True
_sharing: list[Callable[[], None]] = []


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """A block in which this thread's tracers, profilers and monitors are not called."""
    try:
        thread = ctypes.c_void_p(_thread_state())
        enter, leave = ctypes.pythonapi.PyThreadState_EnterTracing, ctypes.pythonapi.PyThreadState_LeaveTracing
    except (AttributeError, ValueError):  # another interpreter
        trace, profile = sys.gettrace(), sys.getprofile()
        sys.settrace(None)
        sys.setprofile(None)
        try:
            yield
        finally:
            sys.settrace(trace)
            sys.setprofile(profile)
        return
    enter(thread)
    try:
        yield
    finally:
        leave(thread)


def _thread_state() -> int:
    ask = ctypes.pythonapi.PyThreadState_Get
    ask.restype = ctypes.c_void_p
    return int(ask())


def least(counts: Sequence[int]) -> int:
    """The fewest references that were counted; where nobody asked, a count that says "shared"."""
    return min(counts, default=SHARED)


def when_uncertain(share: Callable[[], None]) -> None:
    """Say how all memory counts as shared in one of the places that ask."""
    _sharing.append(share)
    if not certain:
        share()


def distrust() -> None:
    """Count all memory as shared from now on: each write makes new memory."""
    global certain
    certain = False
    for share in _sharing:
        share()
