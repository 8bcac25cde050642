"""Races in users' kernels: two threads at one element, one of them writing, in an order that nothing says."""

from __future__ import annotations

from typing import Any

# A thread: its block, and its place there.
Thread = tuple[tuple[int, ...], tuple[int, ...]]


class Access:
    """One access to an element, between the barriers that its thread has passed."""

    __slots__ = ("atomic", "phase", "position", "thread", "value", "writes")

    def __init__(
        self, thread: Thread, position: Any, phase: int, atomic: bool, writes: bool, value: Any
    ) -> None:
        self.thread, self.position, self.phase = thread, position, phase
        self.atomic, self.writes, self.value = atomic, writes, value

    def is_ordered(self, other: Access) -> bool:
        """Is it clear which of two accesses comes first (or does it not matter)?"""
        if self.thread == other.thread or (self.atomic and other.atomic):
            return True
        return self.thread[0] == other.thread[0] and self.phase != other.phase

    def says_the_same(self, other: Access) -> bool:
        """Do both write the same value?"""
        a, b = self.value, other.value
        return self.writes and not self.atomic and not other.atomic and (bool(a == b) or (a != a and b != b))


class Accesses:
    """The accesses of one launch that a later one could race with, by element."""

    def __init__(self) -> None:
        self._writes: dict[Any, Access] = {}
        self._reads: dict[Any, list[Access]] = {}

    def race(self, element: Any, me: Access) -> Access | None:
        """Note an access; the earlier one that it races with, or None."""
        last = self._writes.get(element)
        reads = self._reads.get(element, [])
        # (Several may write the same: `found[0] = True`.)
        if last is not None and not me.is_ordered(last) and not me.says_the_same(last):
            return last
        if me.writes:
            self._writes[element] = me
            return next((r for r in reads if not me.is_ordered(r)), None)
        # Two readers are enough: a writer that is neither races with one of them.
        if len(reads) < 2 or reads[-1].phase != me.phase or reads[-1].thread[0] != me.thread[0]:
            self._reads[element] = [*reads[-3:], me]
        return None
