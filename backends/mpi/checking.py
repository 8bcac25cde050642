"""`MIRABELLE_CHECK_COLLECTIVES=1`: before each operation its members compare what they are about to do.

An operation that some of the ranks do not take part in is found where it happens, with the line of the program
on each side, and not by a later one that hangs or receives what was meant for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.marks import call_site
from mirabelle.backends.mpi.devices import count_bytes
from mirabelle.backends.mpi.waiting import wait_until
from mirabelle.backends.mpi.watch import TAGS
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings

# Bytes of what is compared: the number, the operation and the place, one a line.
RECORD = 1024


def compare(
    comm: Any,
    operation: str,
    sends: Mapping[int, Any] | None = None,
    receives: Mapping[int, Any] | None = None,
) -> None:
    """Raise if other members are about to do something else, or do not come.

    An exchange is compared by those who talk, with the sizes of what they send each other; the rest by all.
    """
    watch = comm.watch
    if watch.trouble is not None:
        raise watch.refusal()
    if sends is None or receives is None:
        if comm.compared_since != watch.renewals:  # some may have given up earlier than others
            comm.compared_since, comm.compared = watch.renewals, 0
        comm.compared += 1
        sizes = {r: (0, 0) for r in range(comm.size) if r != comm.rank}
        number = comm.compared
    else:
        sizes = {r: (_size(sends, r), _size(receives, r)) for r in {*sends, *receives}}
        number = 0
    site = call_site()
    arrived: dict[int, tuple[Any, np.ndarray]] = {}
    outgoing = []
    for r, (sent, expected) in sizes.items():
        to, tag = comm.members[r], TAGS + watch.tags[comm.members[r]]
        buffer = np.zeros(RECORD, np.uint8)
        arrived[r] = comm.mpi.Irecv(buffer, to, tag), buffer
        record = np.zeros(RECORD, np.uint8)
        text = f"{number}\n{operation}\n{site}\n{sent}\n{expected}".encode()
        if len(text) > RECORD:
            text = f"{number}\n{operation}\n...{site[-RECORD // 2 :]}\n{sent}\n{expected}".encode()[:RECORD]
        record[: len(text)] = np.frombuffer(text, np.uint8)
        outgoing.append((comm.mpi.Isend(record, to, tag), record))
    here = str(number), operation, site
    others: dict[int, tuple[str, ...]] = {}
    differing: list[int] = []

    def done() -> bool:
        for r, (request, buffer) in arrived.items():
            if r not in others and request.Test():
                others[r] = said = tuple(buffer.tobytes().rstrip(b"\0").decode(errors="replace").split("\n"))
                sent, expected = sizes[r]
                if not _agree(here, said[:3]) or said[3:] != (str(expected), str(sent)):
                    differing.append(r)
        return bool(differing) or len(others) == len(arrived)

    def look() -> None:
        watch.look(tuple(comm.members[r] for r in sizes))

    try:
        came = wait_until(done, look, watch.crowded, seconds=settings.check_timeout)
        if came and not differing:
            # What we said was read, or lies where it will be: the buffers may go.
            wait_until(lambda: watch.testall([request for request, _ in outgoing]), look, watch.crowded)
            return
    except BaseException:
        _give_up(watch, arrived, outgoing)
        raise
    _give_up(watch, arrived, outgoing)
    if differing:
        raise CommunicationError(_difference(comm, here, sizes, others, differing[0]))
    missing = [r for r in sizes if r not in others]
    there = f" Ranks {sorted([comm.rank, *others])} are there." if others else ""
    raise CommunicationError(
        f"{_ranks(missing)} did not come within {settings.check_timeout:g} s to {_shown(here)}, where rank "
        f"{comm.rank} waits.{there} Usual causes: the operation stands under `if comm.rank == ...`, or the "
        "loop around it takes fewer steps there. All ranks must take part; for some of them use "
        "`comm.part(ranks)`. For work that takes longer set MIRABELLE_CHECK_TIMEOUT."
    )


def _size(side: Mapping[int, Any], rank: int) -> int:
    return count_bytes(side[rank]) if rank in side else 0


def _agree(here: tuple[str, ...], there: tuple[str, ...]) -> bool:
    return here == there or (
        here[:2] == there[:2] and there[2].startswith("...") and here[2].endswith(there[2][3:])
    )


def _difference(
    comm: Any,
    here: tuple[str, ...],
    sizes: dict[int, tuple[int, int]],
    others: dict[int, tuple[str, ...]],
    rank: int,
) -> str:
    there = others[rank]
    if here[:3] == there[:3]:
        sent, expected = sizes[rank]
        return (
            f"Ranks disagree about their messages. Rank {comm.rank}: {_shown(here)}. Rank {rank}: "
            f"{_shown(there)}. Rank {comm.rank} sends {sent} bytes where {there[4]} are expected, and expects "
            f"{expected} where {there[3]} are sent. Both must be worked out from what all ranks know alike: "
            "layouts, shapes and dtypes."
        )
    return (
        f"Ranks are about to do different things. Rank {comm.rank}: {_shown(here)}. Rank {rank}: "
        f"{_shown(there)}. All ranks must take part in every operation on what they share, in the same order. "
        "Usual causes: it stands under `if comm.rank == ...`, or depends on values that differ between ranks. "
        "Move it out of there, or work on `comm.part(ranks)`."
    )


def _shown(record: tuple[str, ...]) -> str:
    number = f" (collective operation {record[0]})" if record[0] != "0" else ""
    return f"{record[1]} at {record[2]}{number}"


def _ranks(ranks: list[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {ranks}"


def _give_up(
    watch: Any, arrived: dict[int, tuple[Any, np.ndarray]], outgoing: list[tuple[Any, np.ndarray]]
) -> None:
    watch.abandon([request for request, _ in [*arrived.values(), *outgoing]])
