"""What a function that is captured waits for, and who need not wait: code that a helper process compiles."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from mirabelle.arraytypes.distributed.communicators import communicator

# May who captures go on without a program?
_going_on: contextvars.ContextVar[bool] = contextvars.ContextVar("mirabelle_going_on", default=False)


class StillCompiling(Exception):
    """A loop over elements of the function that is captured has no code yet; `is_coming` says if it is still
    so."""

    def __init__(self, loop: str, is_coming: Callable[[], bool]) -> None:
        super().__init__(f"{loop}() is being compiled.")
        self.is_coming = is_coming


@contextlib.contextmanager
def going_on_without() -> Iterator[None]:
    """Within the block `StillCompiling` is raised rather than waited for."""
    token = _going_on.set(True)
    try:
        yield
    finally:
        _going_on.reset(token)


def may_go_on() -> bool:
    """Is it? (Not where there are several processes: all of them have a program, or none has, since a program
    sends messages in another way.)"""
    return _going_on.get() and communicator().size == 1
