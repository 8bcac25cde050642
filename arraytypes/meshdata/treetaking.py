"""What an integer, a slice, a list or a region takes of an axis: what is left, and where its index leads.

>>> from mirabelle import meshdata as md
>>> tree = md.tree(md.Axis("A", 3), md.Axis("B", [3, 1, 4]))
>>> tree.select({"B": slice(1, None)})
A = A, B = B + 1: 5 of 8 entries
>>> tree.select({"B": -1})
A = A, B = [3, 1, 4][A] - 1: 3 of 8 entries
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.axes import Ragged
from mirabelle.arraytypes.meshdata.domains import Domain
from mirabelle.arraytypes.meshdata.expressions import (
    Const,
    Expression,
    Index,
    evaluate,
    labels_in,
    narrow,
    plus,
    substitute,
    times,
)
from mirabelle.arraytypes.meshdata.layouts import Above, LaidComponent, domain_over
from mirabelle.arraytypes.meshdata.points import Subset


@dataclass(frozen=True)
class Region:
    """The entries of a region, as an index along an axis.

    Parameters
    ----------
    name : hashable
        The region's name, as `md.Axis(..., regions=...)` was told it.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("v", regions={"owned": 3, "ghost": 2}))
    >>> tree.select({"v": md.Region("ghost")})
    v = v + 3: 2 of 5 entries
    """

    name: Any


Region.__module__ = "mirabelle.meshdata"


def taken(
    c: LaidComponent, item: Any, extent: Expression, by: dict[Any, Expression], above: Above
) -> tuple[Expression | None, Expression]:
    """What an index leaves of the extent of a component (None: one entry, no axis), and where it leads."""
    label, name = c.label, c.label if c.key is None else c.key
    if isinstance(item, Region):
        ends: Expression = Const(0)
        for region, n in c.regions:
            if region == item.name:
                return substitute(n, by), plus(Index(label), substitute(ends, by))
            ends = plus(ends, n)
        raise KeyError(f"{name!r} has no region {item.name!r}: it has {[region for region, _ in c.regions]}.")
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        least = int(np.min(_over(extent, above))) if not isinstance(extent, Const) else extent.value
        if not -least <= item < least:
            raise IndexError(f"index {item} is out of range along {name!r}, which has {least} entries there.")
        return None, Const(int(item)) if item >= 0 else plus(extent, int(item))
    if isinstance(item, slice):
        return _sliced(label, item, extent, above)
    if not isinstance(extent, Const):
        raise TypeError(
            f"{name!r} varies in extent, so a list of its entries does not mean the same everywhere: take a "
            "slice, or an integer."
        )
    entries = item.indices if isinstance(item, Subset) else _entries(name, item, extent.value)
    return Const(len(entries)), Domain().within(label, Const(len(entries))).table(entries)


def _entries(name: Any, item: Any, n: int) -> np.ndarray:
    given = np.asarray(item)
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise TypeError(
            f"{name!r} is indexed by an integer, a slice, a list of integers, a mask of its {n} entries, a "
            f"subset or a region, not by {item!r}."
        )
    given = given.astype(np.int64)
    if given.size and not (-n <= given.min() and given.max() < n):
        wrong = given[(given < -n) | (given >= n)][0]
        raise IndexError(f"index {wrong} is out of range along {name!r}, which has {n} entries.")
    return narrow(np.where(given < 0, given + n, given))


def _over(e: Expression, above: Above) -> np.ndarray:
    """The values of an expression at all entries of the axes it reads."""
    domain = domain_over(labels_in(e), above)
    values = np.broadcast_to(np.asarray(evaluate(e, domain.indices), np.int64), (domain.size,))
    return values if values.size else np.zeros(1, np.int64)


def _sliced(label: Any, item: slice, extent: Expression, above: Above) -> tuple[Expression, Expression]:
    step = 1 if item.step is None else int(item.step)
    if isinstance(extent, Const):
        places = range(extent.value)[item]
        return Const(len(places)), plus(places.start, times(step, Index(label)))
    if item == slice(None):
        return extent, Index(label)
    # What a slice means for each extent there is.
    domain = domain_over(labels_in(extent), above)
    values = np.broadcast_to(np.asarray(evaluate(extent, domain.indices), np.int64), (domain.size,))
    kinds, which = np.unique(values, return_inverse=True)
    ranges = [range(int(n))[item] for n in kinds]
    counts = domain.table(np.array([len(r) for r in ranges], np.int64)[which.reshape(-1)])
    starts = domain.table(np.array([r.start for r in ranges], np.int64)[which.reshape(-1)])
    return counts, plus(starts, times(step, Index(label)))


def as_extent(extent: Expression, above: Above) -> int | Ragged:
    """An extent that an expression gives, as an axis takes it."""
    if isinstance(extent, Const):
        return extent.value
    domain = domain_over(labels_in(extent), above)
    values = np.broadcast_to(np.asarray(evaluate(extent, domain.indices)), (domain.size,))
    return Ragged([label for label, _ in domain.axes], values)
