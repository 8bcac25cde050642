"""Square matrices whose columns are dealt out in panels.

A panel lies whole on one process, which works on it and sends it to all, and each updates its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.agreement import agree
from mirabelle.arraytypes.distributed.layouts import BlockCyclic, Layout, divided
from mirabelle.arraytypes.distributed.lines import broadcast, handle, of_parts, packed, uploaded
from mirabelle.arraytypes.distributed.moving import in_partition
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf

# The columns of a panel, at most: where fewer are left for each process, panels are narrower.
PANEL = 64


class Columns:
    """A matrix whose columns are dealt out in panels; what this process has is a local array of its own."""

    def __init__(self, view: DView) -> None:
        comm = view.buffer.comm
        self.comm, self.inner = comm, view.family.inner
        self.rows, self.columns = view.shape
        self.width = max(1, min(PANEL, -(-self.columns // comm.size)))
        self.part = divided(view.shape, comm.size, Layout(BlockCyclic(1, self.width)))
        self.view = in_partition(view, self.part)
        local = handle(self.view, self.view.buffer.local)
        self.local = verbs.materialize(verbs.copy(local) if self.view.buffer is view.buffer else local)

    @property
    def made(self) -> DView:
        """The matrix with what was written to its columns."""
        return of_parts(self.view, self.part, packed(self.local))

    @property
    def panels(self) -> range:
        return range(-(-self.columns // self.width))

    def edges(self, panel: int) -> tuple[int, int]:
        """The columns of a panel."""
        return panel * self.width, min((panel + 1) * self.width, self.columns)

    def owner(self, panel: int) -> int:
        return panel % self.comm.size  # type: ignore[no-any-return]

    def first_after(self, panel: int) -> int:
        """Where this process' columns of later panels begin, in what it has."""
        size, rank = self.comm.size, self.comm.rank
        return min(max(0, -(-(panel + 1 - rank) // size)) * self.width, self.local.shape[1])

    def mine(self, panel: int) -> slice:
        """Where the columns of a panel of this process lie in what it has."""
        low, high = self.edges(panel)
        start = panel // self.comm.size * self.width
        return slice(start, start + high - low)

    def numbers(self, start: int) -> np.ndarray:
        """The numbers of this process' columns, from one of them on."""
        held = self.part.held(self.comm.rank)[1]
        return np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)])[start:]

    def shared(
        self, panel: int, low: int, high: int, work: Callable[[Any], Any] | None = None
    ) -> tuple[Any, Any]:
        """Rows low to high of a panel, on all processes, after `work` of its owner, and what that found.

        What the owner fails at, all fail at.
        """
        comm, owner = self.comm, self.owner(panel)
        width = self.edges(panel)[1] - self.edges(panel)[0]
        extra = np.zeros(width + 1, np.int64)
        error: Exception | None = None
        if comm.rank == owner:
            block = verbs.copy(verbs.getitem(self.local, (slice(low, high), self.mine(panel))))
            try:
                if work is not None:
                    block, found = work(block)
                    extra[: len(found)] = found
                    verbs.setitem(self.local, (slice(low, high), self.mine(panel)), block)
                data = packed(block)
            except np.linalg.LinAlgError as e:
                error = e
                extra[-1] = 1
        else:
            data = self.inner._empty((high - low, width), self.view.dtype)
        if work is not None:
            comm.broadcast(extra, owner)
            if extra[-1]:
                agree(comm, error)
        broadcast(comm, self.inner, data, owner)
        if counters.active:
            counters.add(collectives=1)
        return wrap(self.inner, Leaf(data)), extra[:-1]


def diagonal(a: Columns) -> np.ndarray:
    """The diagonal of a matrix in columns, on the host of each process."""
    numbers = a.numbers(0)
    mine = np.empty(0, a.view.dtype)
    if len(numbers):
        index = (uploaded(a.local, numbers), uploaded(a.local, np.arange(len(numbers))))
        mine = np.asarray(verbs.fetch(verbs.getitem(a.local, index)))
    whole = np.empty(min(a.rows, a.columns), a.view.dtype)
    for q, part in enumerate(a.comm.allgather_object(mine)):
        held = a.part.held(q)[1]
        whole[np.concatenate([np.arange(x, y) for x, y in held] or [np.empty(0, np.int64)])] = part
    return whole
