"""Loops over mesh points on the host: ranges of points on several threads, a block of points at a time.

A thread writes where no range before its own reaches. What an earlier one reaches, too (few entries, where the
points' numbers have locality), is left in a list, and added at the end, in the order of the points: so the sums
are the same with any number of threads.
"""

from __future__ import annotations

import functools
import itertools
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
    layers_of,
    run_loop,
    tables_of,
)
from mirabelle.backends.host import indexkernels, threads
from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings

# A range of fewer points is not worth a thread.
LEAST_POINTS = 4096
# Ranges for each thread: one that is late is helped out with the next. Fewer where more than this share of what
# points reach would be left for the end.
RANGES, MOST_LEFT = 4, 1 / 64


@run_loop.method
def _(lead: HostArray, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    memo = bound.memo if isinstance(bound, Arguments) else {}
    found = memo.get(settings.num_threads)
    if found is None:
        found = memo[settings.num_threads] = _Ranges(compiled(kernel, bound), n, settings.num_threads, bound)
    found.run(bound)


class _Ranges:
    """A loop over so many points on so many threads: what does not change from one call to the next."""

    def __init__(self, plan: Compiled, n: int, num_threads: int, bound: Sequence[Bound]) -> None:
        pairs = list(zip(bound, plan.arguments, strict=True))
        columns = layers_of(bound)
        height = columns[0] if columns else 1  # (a range has whole columns)
        tables = {a.name: b.dofs for b, a in pairs if a.scattered and b.dofs is not None}
        shared = {name: d for name, d in tables.items() if not d.injective}

        def edges(ranges: int) -> np.ndarray:
            return np.array([n // height * i // ranges * height for i in range(ranges + 1)])

        ranges = max(1, min(num_threads * RANGES, n // LEAST_POINTS)) if num_threads > 1 else 1
        while ranges > num_threads and any(_left(d.rows, edges(ranges) // height) for d in shared.values()):
            ranges = max(num_threads, ranges // 2)
        self.plan, self.n, self.ranges, self.edges = plan, n, ranges, edges(ranges)
        waiting = {name: found_goals(d, self.edges) for name, d in shared.items() if ranges > 1}
        self.waiting = {name: found for name, found in waiting.items() if len(found[1])}
        self.kernel = plan.kernel("lanes", frozenset(self.waiting))
        goals = (self.waiting[a.name][0] for _, a in pairs if a.name in self.waiting)
        self.tables = [*(table.rows for table in tables_of(bound)), *goals]
        self.columns = columns
        # At which points (or columns of them) something waits.
        waits = [(goals < -1).any(axis=1) for goals, *_ in self.waiting.values()]
        self.waits = [functools.reduce(np.logical_or, waits)] if waits else []
        self.weights = plan.source.weights.values()
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
        arrays = [x for b in bound for x in b.arrays]
        given = (self.edges, *arrays, *self.tables, *later, *parts, *self.columns, *self.weights, *self.waits)
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
            _, targets, order = self.waiting[a.name]
            at = 1 + sum([len(b.arrays) for b in bound[:i]])
            _settle(a, arguments[at], targets, values, order)
        for (i, _), part in zip(self.parts, parts, strict=True):
            join_whole(bound[i], asarray(part))


def _buffer(plan: Compiled, i: int, a: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Memory for contributions: of entries that the kernel leaves alone it has what contributes nothing."""
    return (
        np.full(shape, a.intent.neutral(a.dtype), a.dtype) if plan.leaves_some(i) else np.empty(shape, a.dtype)
    )


def found_goals(dofs: Any, edges: np.ndarray) -> tuple[Any, Any, Any]:
    """Where points of each range write, what is left for later, and in which order (None: as it comes)."""
    key = "goals", tuple(edges.tolist())
    if not dofs.strides:
        found: tuple[Any, Any, Any] = dofs.known(key, functools.partial(_goals, edges))
        return found
    if key not in dofs._facts:
        dofs._facts[key] = _column_goals(dofs, edges)
    return dofs._facts[key]  # type: ignore[no-any-return]


def _left(table: Any, edges: np.ndarray) -> bool:
    """Do ranges of rows reach much that earlier ones reach, too?"""
    parts = [table[a:b] for a, b in itertools.pairwise(edges)]
    first = _first(parts, int(table.max(initial=-1)) + 1)
    return sum([int((first[part] != i).sum()) for i, part in enumerate(parts)]) > MOST_LEFT * table.size


def _goals(edges: np.ndarray, table: Any) -> tuple[Any, Any, Any]:
    """The table, with a place in a list (-2 and below) for what an earlier range reaches, too.

    So the first range that reaches an entry writes to it, and the others' contributions come after its.
    """
    parts = [table[a:b] for a, b in itertools.pairwise(edges)]
    first = _first(parts, int(table.max(initial=-1)) + 1)
    goals = table.copy()
    mask = np.concatenate([first[part] != i for i, part in enumerate(parts)]) & (table >= 0)
    targets = table[mask]
    goals[mask] = -2 - np.arange(len(targets), dtype=table.dtype)
    return goals, targets, None


def _first(parts: Sequence[Any], size: int) -> np.ndarray:
    """The first range that reaches each entry. (The last one is that of -1, which is nothing.)"""
    first = np.full(size + 1, -1, np.int16)
    for i in reversed(range(len(parts))):
        first[parts[i]] = i
    return first


def _column_goals(dofs: Any, edges: np.ndarray) -> tuple[Any, Any, Any]:
    """The same for columns, of the table of the lowest layer: what waits in one layer does in all.

    What is left has a place for each layer; it is added in the order of points, layer by layer.
    """
    layers, rows = dofs.layers, dofs.rows
    up = np.arange(layers)[:, None] * np.array(dofs.strides)
    steps = [(rows[a // layers : b // layers, None] + up) for a, b in itertools.pairwise(edges)]
    first = _first(steps, dofs.size)
    while True:  # (what meets in some layer meets in all where points stand above each other: once is enough)
        waits = [(first[step] != i).any(axis=1) for i, step in enumerate(steps)]
        reached = [step.transpose(0, 2, 1)[wait] for step, wait in zip(steps, waits, strict=True)]
        if all((first[part] != i).all() for i, part in enumerate(reached)):
            break
        for i, part in enumerate(reached):  # (an entry of which some contributions wait has all of them wait)
            first[part[first[part] == i]] = -2
    mask = np.concatenate(waits)
    goals = rows.copy()
    column, k = np.nonzero(mask)
    goals[mask] = -2 - np.arange(len(column), dtype=rows.dtype)
    at = np.arange(layers)
    order = np.lexsort(
        [np.broadcast_to(x, (len(k), layers)).ravel() for x in (k[:, None], at, column[:, None])]
    )
    targets = (rows[column, k][:, None] + at * np.array(dofs.strides)[k][:, None]).ravel()
    return goals, targets[order], order


def _settle(a: Any, memory: Any, targets: Any, later: Any, order: Any) -> None:
    """Write what was left: in the order of the points."""
    size = math.prod(a.block)
    if order is not None:
        later = later.reshape(-1, size)[order].reshape(-1)
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
