"""Counting what programs do: launches, temporaries, bytes, scalar reads, compilations, captures.

>>> import mirabelle as mb
>>> few, many = mb.ones(3), mb.ones(100_000)
>>> with mb.count() as c:
...     y = mb.materialize((many * 2 + 1) * (many * 2))
>>> c.launches, c.temporaries
(1, 0)

Each operation on few elements is computed where it is written:

>>> with mb.count() as c:
...     y = (few * 2 + 1) * (few * 2)
>>> c.launches, c.temporaries
(4, 0)
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from mirabelle.dispatch.native import in_c

# How many blocks are open anywhere: who did something adds it up if there are any, and does nothing else
# (`tests/test_counting.py`). The same stands in C (dispatch/csrc/counting.c).
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
    captures: int = 0

    def __repr__(self) -> str:
        inner = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))
        return f"Counters({inner})"


@contextlib.contextmanager
def count() -> Iterator[Counters]:
    """Count the launches, temporaries, bytes, scalar reads, compilations and transfers of a block.

    `launches` are evaluations: of a tree, a reduction, an operation that is computed where it is written, a
    copy, a product. Each is one kernel, or, of few elements on the host, the calls of NumPy that stand for it.
    `library_calls` are routines of a place's library (a sort, an FFT, a factorisation); `temporaries` are
    operands that have to be written to memory before the launch that reads them; `bytes_read` and
    `bytes_written` are those of array operands and results, each counted once a launch. `messages`,
    `bytes_sent` and `collectives` are those of this process, for distributed arrays. `captures` are functions
    under `mb.compile` that were captured: for a new combination of shapes, or another number of Python's.

    Who counts changes nothing about what is done: the same statement is the same calls.

    Returns
    -------
    context manager
        `with mb.count() as c` gives `c` as an `mb.types.Counters`, whose numbers can be read in the block
        and after it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.ones(100_000)
    >>> with mb.count() as c:
    ...     y = mb.materialize(x * 2 + 1)
    >>> c.launches, c.temporaries
    (1, 0)
    """
    global active
    counters = Counters()
    token = _current.set((*_current.get(), counters))
    active += 1
    in_c.count_blocks(active)
    try:
        yield counters
    finally:
        active -= 1
        in_c.count_blocks(active)
        _current.reset(token)


# add(launches=1, ...): to every open block of this context.
add: Callable[..., None] = in_c.add_counts


# Who asks why functions are captured again: told whether shapes and numbers are others than the last time.
curious: list[Callable[[bool, bool], None]] = []


def captured(shapes: bool, numbers: bool) -> None:
    """A function was captured, for other shapes, for other numbers."""
    add(captures=1)
    for ask in curious:
        ask(shapes, numbers)


def transfers() -> int:
    """The transfers that the block of this context has counted so far; 0 where nobody counts."""
    blocks = _current.get()
    return blocks[-1].transfers if blocks else 0


def launched(read: int, written: int) -> None:
    """Add one launch that reads and writes so many bytes."""
    add(launches=1, bytes_read=read, bytes_written=written)


def carry(context: contextvars.Context) -> None:
    """Have what runs in another context, from here, add to the blocks of this one."""
    with contextlib.suppress(RuntimeError):  # (it is the one that runs already)
        context.run(_current.set, _current.get())


in_c.tell(add=add, blocks=_current, counted_names=tuple(f.name for f in fields(Counters)))
