"""Where temporaries lie: storages that are not needed at the same time share memory."""

from __future__ import annotations

import bisect
from typing import Any

from mirabelle.arraytypes.programs.steps import KernelStep, Plan, Step, Storage

ALIGNMENT = 64


def place_temporaries(plan: Plan) -> None:
    """Give each temporary storage its place in the program's memory."""
    for step in plan.steps:
        for ref in (*step.reads, *step.writes):
            ref.storage.used(step.number)
    temporary = [s for s in plan.storages if s.kind == "temporary" and s.last >= 0]
    alone = plan.choices.alone
    plan.unplanned_bytes = sum(_rounded(s.nbytes) for s in temporary)
    _take_over(plan)
    roots = [s for s in temporary if s.taken is None and s.number not in alone]
    beginning: dict[int, list[Storage]] = {}
    ending: dict[int, list[Storage]] = {}
    for s in roots:
        beginning.setdefault(s.first, []).append(s)
        ending.setdefault(s.last, []).append(s)
    free = _Free()
    for step in plan.steps:
        # The largest first: small ones fit into what is left.
        for s in sorted(beginning.get(step.number, ()), key=lambda s: -s.nbytes):
            s.offset = free.take(_rounded(s.nbytes))
        for s in ending.get(step.number, ()):
            free.give(s.offset, _rounded(s.nbytes))
    for s in temporary:
        if s.number in alone:
            s.offset = free.top
            free.top += _rounded(s.nbytes)
        root = s
        while root.taken is not None:
            root = root.taken
        s.offset = root.offset
    plan.arena_bytes = free.top
    other = sum(s.nbytes for s in plan.storages if s.kind in ("output", "made"))
    plan.peak_bytes = plan.arena_bytes + other


class _Free:
    """What is free of a memory that grows as needed."""

    def __init__(self) -> None:
        self.top = 0
        self.blocks: list[tuple[int, int]] = []

    def take(self, n: int) -> int:
        """The place of `n` bytes: the smallest block that holds them, or the end."""
        best = -1
        for i, (_, size) in enumerate(self.blocks):
            if size >= n and (best < 0 or size < self.blocks[best][1]):
                best = i
        if best >= 0:
            at, size = self.blocks[best]
            if size > n:
                self.blocks[best] = (at + n, size - n)
            else:
                del self.blocks[best]
            return at
        at = self.top
        if self.blocks and sum(self.blocks[-1]) == self.top:
            at, _ = self.blocks.pop()  # what is free at the end grows
        self.top = at + n
        return at

    def give(self, at: int, n: int) -> None:
        if not n:
            return
        i = bisect.bisect(self.blocks, (at, 0))
        if i < len(self.blocks) and self.blocks[i][0] == at + n:
            n += self.blocks.pop(i)[1]
        if i and sum(self.blocks[i - 1]) == at:
            at, before = self.blocks.pop(i - 1)
            n += before
            i -= 1
        self.blocks.insert(i, (at, n))


def _take_over(plan: Plan) -> None:
    """Where a kernel reads a storage for the last time, element on element, its result can lie there."""
    for step in plan.steps:
        new = _new_result(step, "temporary")
        if new is None or new.taken is not None or new.number in plan.choices.alone:
            continue
        old = _read_last(step)
        if old is not None and old.number not in plan.choices.alone:
            new.taken = old
            old.last = max(old.last, new.last)


def lodgings(plan: Plan) -> dict[int, Storage]:
    """The temporaries, by their numbers, that can lie where an output will: the kernel that writes the output
    reads them for the last time, element on element.

    That is for places where outputs have memory before a program runs.
    """
    found: dict[int, Storage] = {}
    for step in plan.steps:
        new = _new_result(step, "output")
        old = None if new is None else _read_last(step)
        if new is not None and old is not None and old.number not in plan.choices.alone:
            found[old.number] = new
    if not found:
        return found
    temporary = [s for s in plan.storages if s.kind == "temporary"]
    return {s.number: found[_root(s).number] for s in temporary if _root(s).number in found}


def _new_result(step: Step, kind: str) -> Storage | None:
    """The storage that a kernel's one result fills, if nothing was there before."""
    if not isinstance(step, KernelStep) or len(step.dests) != 1:
        return None
    (dest,) = step.dests
    new = dest.storage
    return new if new.kind == kind and new.first == step.number and dest.covers else None


def _read_last(step: Any) -> Storage | None:
    """The temporary whose place a kernel's result can take: it is read as the result is written, and never
    again."""
    (dest,) = step.dests
    for ref in step.reads:
        old = ref.storage
        if old.kind != "temporary" or old.last != step.number or old.first >= step.number:
            continue
        root = _root(old)
        reads = [r for r in step.reads if _root(r.storage) is root]
        if (
            old is not dest.storage
            and root.last == step.number
            and all(
                r.covers and r.shape == dest.shape and r.dtype.itemsize == dest.dtype.itemsize for r in reads
            )
        ):
            return root
    return None


def _root(s: Storage) -> Storage:
    while s.taken is not None:
        s = s.taken
    return s


def _rounded(n: int) -> int:
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
