"""Work that one rank can fail at by itself, such as that on files: what one raised, all raise.

`mb.distributed.together` does so for a block of any kind, and raises `RemoteError` on the others. Here it is
the same exception on all ranks: whoever catches `FileNotFoundError` does so on all of them, and they go on
together.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.dispatch.errors import RemoteError

T = TypeVar("T")


def on_all(comm: Communicator, work: Callable[[], T]) -> T:
    """Do a piece of work on every rank; none of them goes on unless all succeeded.

    The work sends no messages of its own.

    >>> import mirabelle as mb
    >>> from mirabelle.arraytypes.distributed.agreement import on_all
    >>> on_all(mb.distributed.communicator(), lambda: 2 + 2)
    4
    """
    result: Any = None
    error: Exception | None = None
    try:
        result = work()
    except Exception as e:  # (KeyboardInterrupt and the like end the program)
        error = e
    agree(comm, error)
    return result


def on_root(comm: Communicator, work: Callable[[], T]) -> T | None:
    """Do a piece of work on rank 0 while the others wait; they get None, or what it raised."""
    return on_all(comm, lambda: work() if comm.rank == 0 else None)


def in_turn(comm: Communicator, work: Callable[[], Any]) -> None:
    """Do a piece of work on one rank after the other. Once one has failed, those after it do nothing."""
    failed = np.zeros(1, np.uint8)
    error: Exception | None = None
    if comm.rank > 0:
        comm.exchange({}, {comm.rank - 1: failed})
    if not failed[0]:
        try:
            work()
        except Exception as e:
            error = e
            failed[0] = 1
    if comm.rank + 1 < comm.size:
        comm.exchange({comm.rank + 1: failed}, {})
    agree(comm, error)


def agree(comm: Communicator, error: Exception | None) -> None:
    """Raise on all ranks what one of them failed at; if several did, what the first of them did."""
    failures = comm.allgather_object(None if error is None else _packed(error))
    rank = next((r for r, failure in enumerate(failures) if failure is not None), None)
    if rank is None:
        return
    if rank == comm.rank:
        assert error is not None
        raise error
    pickled, said, trace = failures[rank]
    remote = RemoteError(f"Rank {rank} failed: {said}\n\nWhat it was doing:\n{trace}", rank, trace)
    if pickled is None:
        raise remote
    raise pickle.loads(pickled) from remote


def _packed(error: Exception) -> tuple[bytes | None, str, str]:
    """An exception as others can read it: pickled if that is possible, and as text."""
    said = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error)
        if str(pickle.loads(pickled)) != str(error):
            return None, said, trace
    except Exception:
        return None, said, trace
    return pickled, said, trace
