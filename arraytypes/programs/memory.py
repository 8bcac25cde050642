"""Where temporaries lie: storages that are not needed at the same time share memory."""

from __future__ import annotations

import bisect

from mirabelle.arraytypes.programs.steps import KernelStep, Plan, Storage

ALIGNMENT = 64


def place_temporaries(plan: Plan) -> None:
    """Give each temporary storage its place in the program's memory."""
    for step in plan.steps:
        for ref in (*step.reads, *step.writes):
            ref.storage.used(step.number)
    temporary = [s for s in plan.storages if s.kind == "temporary" and s.last >= 0]
    plan.unplanned_bytes = sum(_rounded(s.nbytes) for s in temporary)
    _take_over(plan)
    roots = [s for s in temporary if s.taken is None]
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
        if not isinstance(step, KernelStep) or len(step.dests) != 1:
            continue
        dest = step.dests[0]
        new = dest.storage
        if new.kind != "temporary" or new.first != step.number or new.taken is not None or not dest.covers:
            continue
        for ref in step.reads:
            old = ref.storage
            if old.kind != "temporary" or old.last != step.number or old.first >= step.number or old is new:
                continue
            reads = [r for r in step.reads if _root(r.storage) is _root(old)]
            if all(
                r.covers and r.shape == dest.shape and r.dtype.itemsize == dest.dtype.itemsize for r in reads
            ):
                root = _root(old)
                if root.last == step.number:
                    new.taken = root
                    root.last = max(root.last, new.last)
                    break


def _root(s: Storage) -> Storage:
    while s.taken is not None:
        s = s.taken
    return s


def _rounded(n: int) -> int:
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
