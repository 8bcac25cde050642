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

    >>> import mirabelle as mb
    >>> try:
    ...     with mb.together():
    ...         raise ValueError("no such file")     # on one rank
    ... except (ValueError, mb.RemoteError) as e:    # on all
    ...     print(e)
    no such file
    """
    comm = communicator() if comm is None else comm
    error: Exception | None = None
    try:
        yield comm
    except Exception as e:  # KeyboardInterrupt and the like end the program
        error = e
    own = error is not None and not isinstance(error, RemoteError)
    if error is not None and own:
        comm.failed(error)
    outcomes = comm.settle("".join(traceback.format_exception(error)) if error is not None and own else None)
    if any(text is not None for text in outcomes):
        comm.drop_carriers()
    if error is not None and own:
        raise error
    for rank, text in enumerate(outcomes):
        if text is not None:
            raise RemoteError(
                f"Rank {rank} failed in a block that all ranks run together. What it said:\n\n{text}",
                rank,
                text,
            ) from error
    if error is not None:
        raise error
