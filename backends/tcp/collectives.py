"""Collectives of messages: few rounds for what is small, little traffic for what is large.

Written in terms of three things that a communicator has: `rank`, `size`, `start`, and `swap`, which sends
bytes whose number the other end does not know. So a part of a communicator has them, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import (
    BARRIER,
    GATHERING,
    OBJECTS,
    UFUNCS,
    Communicator,
    Part,
    mark_of_reduction,
)
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.dispatch.errors import CommunicationError

# In a group of up to so many, all write to all at once: one round.
FEW = 8
# Messages of less than this are paid by the round, others by the byte.
SMALL = 1 << 15


class Collectives(Communicator):
    """A communicator whose collectives are the ones below."""

    def swap(self, sends: Mapping[int, bytes], receives: Iterable[int], mark: int) -> dict[int, Any]:
        """Send bytes to ranks, and return what others sent: the ends that receive do not know how much."""
        raise NotImplementedError

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        return [pickle.loads(text) for text in allgather_bytes(self, pickle.dumps(x), mark)]

    def bcast_object(self, x: Any, root: int = 0) -> Any:
        text = pickle.dumps(x) if self.rank == root else b""
        mark = marked("sharing of an object of rank", root)
        parent, children = tree(self.rank, self.size, root)
        if parent is not None:
            text = self.swap({}, [parent], mark)[parent]
        self.swap(dict.fromkeys(children, text), (), mark)
        return x if self.rank == root else pickle.loads(text)

    def barrier(self) -> None:
        distance = 1
        while distance < self.size:
            ahead, behind = (self.rank + distance) % self.size, (self.rank - distance) % self.size
            self.swap({ahead: b""}, [behind], BARRIER)
            distance *= 2

    def allgather(self, mine: Any, parts: Sequence[Any], mark: int = GATHERING) -> None:
        if self.size <= FEW:
            super().allgather(mine, parts, mark)
        elif sum(part.nbytes for part in parts) <= SMALL:
            for part, text in zip(parts, allgather_bytes(self, bytes(as_bytes(mine)), mark), strict=True):
                as_bytes(part, write=True)[:] = text
        else:
            _ring(self, mine, parts, mark)

    def broadcast(self, data: Any, root: int) -> None:
        parent, children = tree(self.rank, self.size, root)
        mark = marked("broadcast of", data.nbytes, "bytes from rank", root)
        if data.nbytes > SMALL and self.size > 2:
            # Each rank hears one piece from the root, and all tell each other.
            pieces = split(np.frombuffer(as_bytes(data, write=self.rank != root), np.uint8), self.size)
            if self.rank == root:
                self.exchange({r: pieces[r] for r in range(self.size) if r != root}, {}, mark)
            else:
                self.exchange({}, {root: pieces[self.rank]}, mark)
            self.allgather(
                pieces[self.rank],
                pieces if self.rank != root else [np.empty_like(p) for p in pieces],
                mark,
            )
            return
        if parent is not None:
            self.exchange({}, {parent: data}, mark)
        if children:
            self.exchange(dict.fromkeys(children, data), {}, mark)

    def allreduce(self, data: Any, op: str, mark: int = 0) -> bool:
        """In the order of ranks, however it is sent: the result does not depend on sizes or timing."""
        ufunc = UFUNCS.get(op)
        if ufunc is None or not isinstance(data, np.ndarray):
            return False
        n = self.size
        if n <= 2 or data.nbytes * (n - 1) <= SMALL * 2:
            return super().allreduce(data, op, mark)
        mark = mark or mark_of_reduction(op, data)
        # Each rank combines one piece of all, and all tell each other what came out.
        whole = flat(data)
        pieces = split(whole, n)
        mine = pieces[self.rank]
        parts = [mine if r == self.rank else np.empty_like(mine) for r in range(n)]
        others = [r for r in range(n) if r != self.rank]
        self.exchange({r: pieces[r] for r in others}, {r: parts[r] for r in others}, mark)
        total = parts[0].copy()
        for part in parts[1:]:
            ufunc(total, part, out=total, casting="unsafe")
        mine[...] = total
        self.allgather(mine, pieces, mark)
        return True

    def part(self, ranks: Sequence[int]) -> Communicator:
        return CollectivePart(self, tuple(ranks))


class CollectivePart(Collectives, Part):
    """Some members of a communicator over sockets."""

    whole: Collectives

    def swap(self, sends: Mapping[int, bytes], receives: Iterable[int], mark: int) -> dict[int, Any]:
        ranks = self.ranks
        of_whole = {ranks[r]: r for r in receives}
        got = self.whole.swap({ranks[r]: text for r, text in sends.items()}, of_whole, mark)
        return {of_whole[r]: text for r, text in got.items()}

    def hurry(self) -> None:
        self.whole.hurry()


def flat(x: np.ndarray) -> Any:
    """All elements of a contiguous array as one row, in the order in which they are in memory."""
    if x.flags.c_contiguous:
        return x.reshape(-1)
    if x.flags.f_contiguous:
        return x.T.reshape(-1)
    raise CommunicationError(
        f"An array of strides {x.strides} is not contiguous, and cannot be sent as it is. "
        "Send np.ascontiguousarray(x)."
    )


def as_bytes(x: Any, write: bool = False) -> memoryview:
    """The memory of a contiguous array."""
    if not isinstance(x, np.ndarray) or x.dtype.hasobject:
        what = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
        raise CommunicationError(
            f"Sockets send the memory of NumPy arrays of numbers, and this is {what}. "
            "Send Python objects with comm.allgather_object(x)."
        )
    if write and not x.flags.writeable:
        raise CommunicationError(
            "What is received would be written to a read-only array. Receive into np.empty_like(x)."
        )
    return memoryview(flat(x).view(np.uint8))


def split(row: Any, n: int) -> list[Any]:
    """A row in n pieces, as even as can be."""
    return [row[len(row) * i // n : len(row) * (i + 1) // n] for i in range(n)]


def tree(rank: int, size: int, root: int) -> tuple[int | None, list[int]]:
    """Whom a rank hears it from, and whom it tells: who knows doubles in each round.

    >>> tree(0, 5, 0), tree(1, 5, 0), tree(4, 5, 0)
    ((None, [4, 2, 1]), (0, []), (0, []))
    """
    place = (rank - root) % size
    span = 1
    while span < size and not place & span:
        span *= 2
    parent = None if place == 0 else (place - span + root) % size
    children = []
    while span > 1:
        span //= 2
        if place + span < size:
            children.append((place + span + root) % size)
    return parent, children


def allgather_bytes(comm: Collectives, mine: bytes, mark: int) -> list[bytes]:
    """What each rank says, by rank: what is known doubles in each round."""
    rank, n = comm.rank, comm.size
    known = [mine]  # of rank, rank + 1, ...
    while len(known) < n:
        distance = len(known)
        to, source = (rank - distance) % n, (rank + distance) % n
        told = pickle.dumps(known[: n - distance])
        known += pickle.loads(comm.swap({to: told}, [source], mark)[source])
    return known[n - rank :] + known[: n - rank]


def _ring(comm: Communicator, mine: Any, parts: Sequence[Any], mark: int) -> None:
    """Each passes on what it heard last: every connection carries every part once."""
    n, rank = comm.size, comm.rank
    ahead, behind = (rank + 1) % n, (rank - 1) % n
    passed = mine
    for i in range(1, n):
        source = (rank - i) % n
        comm.exchange({ahead: passed}, {behind: parts[source]}, mark)
        passed = parts[source]
