"""Launches whose order follows from the memory they touch: which must come before which, and where
temporaries lie so that no more than that is in order.

All is said of launches in an order in which one after the other they compute what they should. `reads` and
`writes` are stretches of memory: what memory it is, and from where to where in bytes.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

# A memory, and the first byte and the one behind the last.
Stretch = tuple[int, int, int]
# With more launches than that, what follows from other orders is told to the card again.
MOST_PRUNED = 4096
# Temporaries from this size on are used again at once: who works on them fills the card.
LARGE = 8 << 20
ALIGNMENT = 256


class Launch:
    """A kernel's launch.

    `run` launches, given `values`: addresses and numbers. `operands` say of the first of them what memory they
    are in, and where in it.
    """

    __slots__ = ("operands", "reads", "run", "values", "writes")

    def __init__(
        self,
        run: Any,
        operands: list[tuple[int, int]],
        numbers: Iterable[Any],
        reads: list[Stretch],
        writes: list[Stretch],
    ) -> None:
        self.run = run
        self.operands = operands
        self.values: list[Any] = [0] * len(operands)
        self.values += numbers
        self.reads = reads
        self.writes = writes


class _Written:
    """Who wrote each stretch of a memory last, and who has read it since."""

    __slots__ = ("readers", "starts", "writers")

    def __init__(self) -> None:
        self.starts = [0]
        self.writers: list[int] = [-1]
        self.readers: list[set[int]] = [set()]

    def _cut(self, at: int) -> int:
        i = bisect.bisect_left(self.starts, at)
        if i == len(self.starts) or self.starts[i] != at:
            self.starts.insert(i, at)
            self.writers.insert(i, self.writers[i - 1])
            self.readers.insert(i, set(self.readers[i - 1]))
        return i

    def read(self, low: int, high: int, me: int, found: set[int]) -> None:
        first = self._cut(low)
        for i in range(first, self._cut(high)):
            found.add(self.writers[i])
            self.readers[i].add(me)

    def write(self, low: int, high: int, me: int, found: set[int]) -> None:
        first = self._cut(low)
        last = self._cut(high)
        for i in range(first, last):
            # (Who has read it came after who wrote it.)
            found.update(self.readers[i] or (self.writers[i],))
        self.starts[first:last] = [low]
        self.writers[first:last] = [me]
        self.readers[first:last] = [set()]


def dependencies(touched: Sequence[tuple[list[Stretch], list[Stretch]]]) -> tuple[list[list[int]], list[int]]:
    """For each launch those it must come after; and all before it, as the bits of a number.

    The latter are empty if there are too many launches.

    >>> a, b, c = (0, 0, 8), (1, 0, 8), (2, 0, 8)
    >>> dependencies([([], [a]), ([a], [b]), ([], [c]), ([b], [a])])
    ([[], [0], [], [1]], [0, 1, 0, 3])
    """
    memories: dict[int, _Written] = {}
    after: list[list[int]] = []
    before: list[int] = []
    prunes = len(touched) <= MOST_PRUNED
    for me, (reads, writes) in enumerate(touched):
        found: set[int] = set()
        for memory, low, high in reads:
            if high > low:
                memories.setdefault(memory, _Written()).read(low, high, me, found)
        for memory, low, high in writes:
            if high > low:
                memories.setdefault(memory, _Written()).write(low, high, me, found)
        found.discard(-1)
        found.discard(me)
        chosen = sorted(found, reverse=True)
        if prunes:
            known = 0
            kept = []
            for i in chosen:
                if not known >> i & 1:
                    kept.append(i)
                    known |= before[i] | 1 << i
            chosen = kept
            before.append(known)
        after.append(chosen[::-1])
    return after, before


def reached(touched: Sequence[tuple[list[Stretch], list[Stretch]] | None]) -> list[int]:
    """For each of some launches all that come before it, as the bits of a number.

    None among them waits for all before it, and is waited for by all after it.
    """
    found: list[int] = []
    begin = 0
    for end in range(len(touched) + 1):
        if end < len(touched) and touched[end] is not None:
            continue
        earlier = (1 << begin) - 1
        part: list[Any] = list(touched[begin:end])
        before = dependencies(part)[1]
        if len(before) == len(part):
            found += [b << begin | earlier for b in before]
        else:
            found += [(1 << i) - 1 for i in range(begin, end)]
        if end < len(touched):
            found.append((1 << end) - 1)
        begin = end + 1
    return found


class Room:
    """A memory that launches need for a while: its size, and the launches that touch it."""

    __slots__ = ("first", "last", "nbytes", "offset", "users")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.first = -1
        self.last = -1
        self.users = 0
        self.offset = 0

    def touched(self, launch: int) -> None:
        if self.first < 0:
            self.first = launch
        self.last = launch
        self.users |= 1 << launch


def place(rooms: Iterable[Room], before: Sequence[int]) -> int:
    """Give each room its place; returns how many bytes they take together.

    What one has left is taken by another where all that touched the one come before the other anyway. Large
    ones are less particular.
    """
    beginning: dict[int, list[Room]] = {}
    ending: dict[int, list[Room]] = {}
    for room in rooms:
        if room.first >= 0 and room.nbytes:
            beginning.setdefault(room.first, []).append(room)
            ending.setdefault(room.last, []).append(room)
    top = 0
    # What is free: from where on, how many bytes, and who has touched it.
    free: list[tuple[int, int, int]] = []
    for i, known in enumerate(before):
        for room in sorted(beginning.get(i, ()), key=lambda r: -r.nbytes):
            n = _rounded(room.nbytes)
            allowed = (1 << i) - 1 if room.nbytes >= LARGE else known
            at = _taken(free, n, allowed)
            if at < 0:
                at = top
                if free and free[-1][0] + free[-1][1] == top and not free[-1][2] & ~allowed:
                    at = free.pop()[0]
                top = at + n
            room.offset = at
        for room in ending.get(i, ()):
            _given(free, room.offset, _rounded(room.nbytes), room.users)
    return top


def _taken(free: list[tuple[int, int, int]], n: int, allowed: int) -> int:
    """The least free stretch that holds `n` bytes, and that only allowed ones have touched; -1 for none."""
    best, best_size, best_end = -1, 0, 0
    i = 0
    while i < len(free):
        if free[i][2] & ~allowed:
            i += 1
            continue
        j, size = i, 0
        while j < len(free) and not free[j][2] & ~allowed and free[j][0] == free[i][0] + size:
            size += free[j][1]
            j += 1
        if size >= n and (best < 0 or size < best_size):
            best, best_size, best_end = i, size, j
        i = j
    if best < 0:
        return -1
    at = free[best][0]
    rest = []
    for start, size, users in free[best:best_end]:
        if start + size > at + n:
            begin = max(start, at + n)
            rest.append((begin, start + size - begin, users))
    free[best:best_end] = rest
    return at


def _given(free: list[tuple[int, int, int]], at: int, n: int, users: int) -> None:
    bisect.insort(free, (at, n, users))
    i = bisect.bisect_left(free, (at, n, users))
    # Neighbours that the same ones have touched are one.
    while i + 1 < len(free) and free[i + 1][2] == users and sum(free[i][:2]) == free[i + 1][0]:
        free[i : i + 2] = [(free[i][0], free[i][1] + free[i + 1][1], users)]
    while i and free[i - 1][2] == users and sum(free[i - 1][:2]) == free[i][0]:
        free[i - 1 : i + 1] = [(free[i - 1][0], free[i - 1][1] + free[i][1], users)]
        i -= 1


def _rounded(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT
