"""Domains: the entries of axes within each other, one after the other, and tables of integers over them.

>>> from mirabelle.arraytypes.meshdata.expressions import Const
>>> d = Domain().within("a", Const(2)).within("b", Const(3))
>>> d.size, d.position, d.indices["b"]
(6, 3*a + b, array([0, 1, 2, 0, 1, 2]))
>>> d.table(d.indices["a"] * 10 + d.indices["b"] * 2 + 1)  # no table: it is affine
2*b + 10*a + 1
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.expressions import (
    Const,
    Expression,
    Index,
    evaluate,
    lookup,
    plus,
    times,
)


class Domain:
    """All entries of axes in row-major order; the extent of each may depend on those before it."""

    def __init__(
        self, outer: Domain | None = None, label: Any = None, extent: Expression | None = None
    ) -> None:
        self.outer, self.label, self.extent = outer, label, extent

    def within(self, label: Any, extent: Expression) -> Domain:
        """The entries of an axis within each entry of these."""
        return Domain(self, label, extent)

    @cached_property
    def axes(self) -> tuple[tuple[Any, Expression], ...]:
        if self.outer is None or self.extent is None:
            return ()
        return (*self.outer.axes, (self.label, self.extent))

    @cached_property
    def counts(self) -> np.ndarray:
        """How many entries of the last axis there are within each entry of the others."""
        assert self.outer is not None and self.extent is not None
        counts = evaluate(self.extent, self.outer.indices)
        return np.broadcast_to(np.asarray(counts, np.int64), (self.outer.size,))

    @cached_property
    def starts(self) -> np.ndarray:
        """At which entry each of these groups begins, and where the last ends."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def size(self) -> int:
        if self.outer is None:
            return 1
        if isinstance(self.extent, Const):
            return self.outer.size * self.extent.value
        return int(self.starts[-1])

    @cached_property
    def position(self) -> Expression:
        """The number of an entry, of its indices."""
        if self.outer is None:
            return Const(0)
        if isinstance(self.extent, Const):
            return plus(times(self.extent, self.outer.position), Index(self.label))
        return plus(lookup(self.starts[:-1], self.outer.position), Index(self.label))

    @cached_property
    def indices(self) -> dict[Any, np.ndarray]:
        """The indices of all entries."""
        if self.outer is None:
            return {}
        if isinstance(self.extent, Const):
            n = self.extent.value
            inner = np.tile(np.arange(n), self.outer.size)
            return {k: np.repeat(v, n) for k, v in self.outer.indices.items()} | {self.label: inner}
        inner = np.arange(self.size) - np.repeat(self.starts[:-1], self.counts)
        return {k: np.repeat(v, self.counts) for k, v in self.outer.indices.items()} | {self.label: inner}

    def table(self, values: np.ndarray) -> Expression:
        """Integers for each entry as an expression: affine along those axes where that holds, else a table."""
        values = np.broadcast_to(np.asarray(values, np.int64), (self.size,))
        if not self.size:
            return Const(0)
        if any(not isinstance(extent, Const) for _, extent in self.axes):
            return lookup(values, self.position)
        shape = [extent.value for _, extent in self.axes if isinstance(extent, Const)]
        left, terms = values.reshape(shape), []
        domain, kept = Domain(), []
        for d in reversed(range(len(shape))):
            label, extent = self.axes[d]
            moved = np.moveaxis(left, d, -1)
            steps = np.diff(moved, axis=-1)
            if not steps.size or (steps == steps.flat[0]).all():
                terms.append(times(int(steps.flat[0]) if steps.size else 0, Index(label)))
                left = np.take(left, [0], axis=d)
            else:
                kept.append((label, extent))
        for label, extent in reversed(kept):
            domain = domain.within(label, extent)
        rest = lookup(left.ravel(), domain.position) if kept else Const(int(left.flat[0]))
        return plus(*terms, rest)
