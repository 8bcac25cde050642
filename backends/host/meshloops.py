"""Loops over mesh points on the host: ranges of points on several threads, a block of points at a time.

A thread writes where only its own range reaches. What several ranges reach (few entries, where the points'
numbers have locality) is left in a list, and added at the end, in the order of the points: so the sums are
the same with any number of threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.meshdata.loops import (
    Arguments,
    Bound,
    Compiled,
    compiled,
    join_whole,
    run_loop,
    tables_of,
)
from mirabelle.backends.host import indexkernels, threads
from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings

# A range of fewer points is not worth a thread.
LEAST_POINTS = 4096
# Ranges for each thread: one that is late is helped out with the next.
RANGES = 4


@run_loop.method
def _(lead: HostArray, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    ranges = max(1, min(settings.num_threads * RANGES, n // LEAST_POINTS)) if settings.num_threads > 1 else 1
    memo = bound.memo if isinstance(bound, Arguments) else {}
    found = memo.get(ranges)
    if found is None:
        found = memo[ranges] = _Ranges(compiled(kernel, bound), n, ranges, bound)
    found.run(bound)


class _Ranges:
    """A loop over so many points in so many ranges: what does not change from one call to the next."""

    def __init__(self, plan: Compiled, n: int, ranges: int, bound: Sequence[Bound]) -> None:
        self.plan, self.n, self.ranges = plan, n, ranges
        pairs = list(zip(bound, plan.arguments, strict=True))
        waiting = {
            a.name: b.dofs.known(("goals", ranges, n), functools.partial(_goals, ranges))
            for b, a in pairs
            if a.scattered and ranges > 1 and b.dofs is not None and not b.dofs.injective
        }
        self.waiting = {name: found for name, found in waiting.items() if len(found[1])}
        self.kernel = plan.kernel("lanes", frozenset(self.waiting))
        self.edges = np.array([n * i // ranges for i in range(ranges + 1)])
        goals = (self.waiting[a.name][0] for _, a in pairs if a.name in self.waiting)
        self.tables = [*(table.table for table in tables_of(bound)), *goals]
        self.later = [
            (i, (len(self.waiting[a.name][1]) * math.prod(a.block),))
            for i, (_, a) in enumerate(pairs)
            if a.name in self.waiting
        ]
        self.parts = [
            (i, (a.entries, n)) for i, (_, a) in enumerate(pairs) if a.intent.writes and a.how == "whole"
        ]
        self.compiled: Any = None

    def run(self, bound: Sequence[Bound]) -> None:
        plan, ranges = self.plan, self.ranges
        later = [_buffer(plan, i, plan.arguments[i], shape) for i, shape in self.later]
        parts = [_buffer(plan, i, plan.arguments[i], shape) for i, shape in self.parts]
        given = (self.edges, *[b.array for b in bound], *self.tables, *later, *parts)
        _, arguments = self.kernel.lent(given)
        if counters.active:
            counters.add(launches=1)
        if self.compiled is None:
            self.compiled = indexkernels.compiled(self.kernel, 1, arguments)
        run = self.compiled
        if ranges == 1:
            run(0, 1, 1, 1, *arguments)
        else:
            run(0, 0, ranges, 1, *arguments)  # compiled once, not by each thread
            threads.run_all([functools.partial(run, i, i + 1, ranges, 1, *arguments) for i in range(ranges)])
        for (i, _), values in zip(self.later, later, strict=True):
            a = plan.arguments[i]
            _settle(a, arguments[1 + i], self.waiting[a.name][1], values)
        for (i, _), part in zip(self.parts, parts, strict=True):
            join_whole(bound[i], asarray(part))


def _buffer(plan: Compiled, i: int, a: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Memory for contributions: of entries that the kernel leaves alone it has what contributes nothing."""
    return (
        np.full(shape, a.intent.neutral(a.dtype), a.dtype) if plan.leaves_some(i) else np.empty(shape, a.dtype)
    )


def _goals(ranges: int, table: Any) -> tuple[Any, Any]:
    """Where the points of each range write, and what is left for later.

    It is the table, with a place in a list (-2 and below) for what other ranges reach, too.
    """
    n = len(table)
    edges = [n * i // ranges for i in range(ranges + 1)]
    size = int(table.max(initial=-1)) + 1
    first, last = np.full(size + 1, -1, np.int16), np.full(size + 1, -1, np.int16)
    for i in range(ranges):
        last[table[edges[i] : edges[i + 1]]] = i
    for i in reversed(range(ranges)):
        first[table[edges[i] : edges[i + 1]]] = i
    shared = first != last
    shared[-1] = False  # (where a table has -1)
    goals = table.copy()
    mask = shared[table]
    targets = table[mask]
    goals[mask] = -2 - np.arange(len(targets), dtype=table.dtype)
    return goals, targets


def _settle(a: Any, memory: Any, targets: Any, later: Any) -> None:
    """Write what was left: in the order of the points."""
    size = math.prod(a.block)
    if a.flat:
        targets = (
            (targets[:, None].astype(np.int64) * size + np.arange(size)).reshape(-1) if size > 1 else targets
        )
    elif a.block:
        later = later.reshape(len(targets), *a.block)
    if a.intent.combines:
        getattr(np, a.intent.combines).at(memory, targets, later)
    else:
        memory[targets] = later
