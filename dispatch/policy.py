"""What is allowed for a while: scalar access, implicit transfers, laziness.

>>> import mirabelle as mb
>>> x = mb.RefArray([1.0, 2.0])
>>> with mb.allow_scalar():
...     float(x[0])
1.0
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Iterator
from typing import Any

from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import ScalarAccessError
from mirabelle.dispatch.forks import ForkLock
from mirabelle.dispatch.settings import settings

_scalar: contextvars.ContextVar[bool | None] = contextvars.ContextVar("mirabelle_allow_scalar", default=None)
_transfer: contextvars.ContextVar[bool] = contextvars.ContextVar("mirabelle_allow_transfer", default=False)
_eager: contextvars.ContextVar[bool] = contextvars.ContextVar("mirabelle_eager", default=False)
# How many `eager` blocks are open anywhere.
eager_blocks = 0
_lock = ForkLock()


class _Writing(threading.local):
    # The leaf of others' memory that the statement is about to write its own result to.
    leaf: Any = None


writing = _Writing()


@contextlib.contextmanager
def _set(variable: contextvars.ContextVar, value: object) -> Iterator[None]:  # type: ignore[type-arg]
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def allow_scalar(allowed: bool = True) -> contextlib.AbstractContextManager[None]:
    """Within the block, allow (or forbid) reading and writing single elements of device arrays.

    Parameters
    ----------
    allowed : bool, default True
        Whether single elements may be read and written.

    Returns
    -------
    context manager
        For a `with` block, which gets no value; what held before holds again after it. It decorates
        functions, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.RefArray([1.0, 2.0])
    >>> with mb.allow_scalar():
    ...     float(x[1])
    2.0
    """
    return _set(_scalar, allowed)


def allow_transfer(allowed: bool = True) -> contextlib.AbstractContextManager[None]:
    """Within the block, let host arrays that meet device arrays move to the device (counted).

    Parameters
    ----------
    allowed : bool, default True
        Whether host arrays may move by themselves.

    Returns
    -------
    context manager
        For a `with` block, which gets no value; what held before holds again after it. It decorates
        functions, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.allow_transfer():
    ...     print((mb.RefArray([1.0]) + mb.HostArray([2.0])).place)
    ref:0
    """
    return _set(_transfer, allowed)


def transfer_allowed() -> bool:
    return _transfer.get()


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Within the block, evaluate each operation at once, for debugging.

    Returns
    -------
    context manager
        For a `with` block, which gets no value; what held before holds again after it. It decorates
        functions, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.eager(), mb.count() as c:
    ...     y = mb.HostArray([1.0]) * 2 + 1
    >>> c.launches
    2
    """
    global eager_blocks
    with _lock:
        eager_blocks += 1
        settings.hurry(True)
    try:
        with _set(_eager, True):
            yield
    finally:
        with _lock:
            eager_blocks -= 1
            settings.hurry(eager_blocks > 0)


def is_eager() -> bool:
    return eager_blocks > 0 and _eager.get()


def at_prompt() -> bool:
    """Is a person typing (a REPL or a notebook)?"""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive)


def scalar_access(what: str, place: object, gated: bool = True) -> None:
    """The one gate every element access passes: counts it, and refuses it on a device."""
    if getattr(place, "kind", "") == "traced":
        if what == "Writing":
            return  # (It is recorded: a step of a program, where the array is.)
        place = place.inner  # type: ignore[attr-defined]
    if counters.active:
        counters.add(scalar_reads=1)
    if not gated or getattr(place, "rank", 0) < 2:
        return
    allowed = _scalar.get()
    if allowed is None:
        allowed = settings.allow_scalar
    if allowed is None:
        allowed = at_prompt()
    if not allowed:
        raise ScalarAccessError(
            f"{what} one element of an array on {place} by itself is refused: every such access "
            "is a transfer, and a loop of them is thousands of times slower than one array "
            "operation. Write the loop as array operations, fetch everything at once with "
            "`mb.to_numpy(x)`, or, if this is meant, use `with mb.allow_scalar():`."
        )
