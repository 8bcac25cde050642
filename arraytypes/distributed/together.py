"""A block that all ranks leave by the same way."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.dispatch.errors import RemoteError


@contextlib.contextmanager
def together(comm: Communicator | None = None) -> Iterator[Communicator]:
    """A block that either succeeds on all ranks, or raises on all of them.

    Where it raised, the exception goes on; the other ranks raise `mb.RemoteError` with its traceback, also
    if they were waiting for the failed rank in the middle of the block. After it, they can work on. (Without
    the block, an exception that is caught on one rank alone leaves the others waiting.)

    Parameters
    ----------
    comm : Communicator or None
        The processes; None is all.

    Returns
    -------
    context manager
        It yields the communicator: `comm`, or that of all processes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> try:
    ...     with mb.distributed.together():
    ...         raise ValueError("no such file")     # on one rank
    ... except (ValueError, mb.RemoteError) as e:    # on all
    ...     print(e)
    no such file
    """
    comm = communicator() if comm is None else comm
    error: Exception | None = None
    try:
        try:
            yield comm
        except Exception as e:  # KeyboardInterrupt and the like end the program
            error = e
        _leave(comm, error)
    finally:
        # The error refers to this frame: what it holds must go with it, and not when rubbish is collected,
        # which is at another time on each rank.
        del error


def _leave(comm: Communicator, error: Exception | None) -> None:
    """Raise what happened on any of the ranks."""
    own = None if isinstance(error, RemoteError) else error
    if own is not None:
        comm.failed(own)
    outcomes: list[str | None] = [""]
    try:
        outcomes = comm.settle(None if own is None else "".join(traceback.format_exception(own)))
    finally:
        if any(text is not None for text in outcomes):
            comm.drop_carriers()  # what cards were sending may be left half-way
    try:
        if own is not None:
            raise own
        for rank, text in enumerate(outcomes):
            if text is not None:
                raise RemoteError(
                    f"Rank {rank} failed in a block that all ranks run together. What it said:\n\n{text}",
                    rank,
                    text,
                ) from error
        if error is not None:
            raise error
    finally:
        del error, own
