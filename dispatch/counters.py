"""Counting what programs do: launches, temporaries, bytes, scalar reads, compilations.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> with mb.count() as c:
...     y = mb.materialize((x * 2 + 1) * (x * 2))
>>> c.launches, c.temporaries
(1, 0)
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass, fields

# How many blocks are open anywhere: hot paths look at this one integer and go on.
active = 0
_current: contextvars.ContextVar[tuple[Counters, ...]] = contextvars.ContextVar(
    "mirabelle_counters", default=()
)


@dataclass
class Counters:
    """What happened inside a `with mb.count()` block.

    >>> import mirabelle as mb
    >>> with mb.count() as c:
    ...     x = mb.materialize(mb.HostArray([1.0]) * 2)
    >>> isinstance(c, mb.types.Counters), c.launches
    (True, 1)
    """

    launches: int = 0
    temporaries: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    scalar_reads: int = 0
    compilations: int = 0
    transfers: int = 0
    library_calls: int = 0
    messages: int = 0
    bytes_sent: int = 0
    collectives: int = 0

    def __repr__(self) -> str:
        inner = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))
        return f"Counters({inner})"


@contextlib.contextmanager
def count() -> Iterator[Counters]:
    """Count the launches, temporaries, bytes, scalar reads, compilations and transfers of a block.

    `launches` are kernels run; `library_calls` are routines of a place's library (a sort, an FFT, a
    factorisation); `temporaries` are arrays written that nobody asked for by name;
    `bytes_read` and `bytes_written` are those of array operands, each counted once a launch.
    `messages`, `bytes_sent` and `collectives` are those of this process, for distributed arrays.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0])
    >>> with mb.count() as c:
    ...     y = mb.materialize(x * 2 + 1)
    >>> c.launches, c.temporaries
    (1, 0)
    """
    global active
    counters = Counters()
    token = _current.set((*_current.get(), counters))
    active += 1
    try:
        yield counters
    finally:
        active -= 1
        _current.reset(token)


def add(**amounts: int) -> None:
    """Add to every open block of this context."""
    for counters in _current.get():
        for name, amount in amounts.items():
            setattr(counters, name, getattr(counters, name) + amount)
