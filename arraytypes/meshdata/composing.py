"""New maps from maps: one after another, turned around, and with new numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Map, Table, Target, index_type
from mirabelle.arraytypes.meshdata.points import Points


def compose(outer: Map, inner: Map) -> Map:
    """`outer(inner)`: from the source of `inner` to the targets of `outer`.

    Only those points of `inner`'s targets go on that `outer` starts from; the others it leads nowhere.
    Entries come in the order of `inner`'s, and for each of those in the order of `outer`'s. A -1 of `inner`
    gives as many -1 as `outer` has entries, or nothing where `outer` is ragged.
    """
    middle = inner.targets.get(outer.source)
    if middle is None:
        raise ValueError(
            f"These maps do not follow each other: one leads to {[_text(p) for p in inner.targets]}, the other "
            f"starts from {_text(outer.source)}. Maps are written as functions are: `g(f)` goes by f first."
        )
    return Map.of(inner.source, {to: _joined(outer.targets[to], middle) for to in outer.targets})


def _text(points: Points) -> str:
    return f"the {points.size} points {points.name!r} of {points.axis!r}"


def _joined(outer: Target, inner: Target) -> Target:
    """What one target becomes by what leads to its source."""
    if outer.table is not None:
        found = _rows(outer.table, inner.values)
        if inner.table is not None:
            arity = inner.table.shape[1] * outer.table.shape[1]
            return Target(found.reshape(len(inner.table), arity), None)
        assert inner.rowptr is not None
        size = inner.values.size * outer.table.shape[1]
        return Target(found.reshape(-1), inner.rowptr.astype(index_type(size)) * outer.table.shape[1])
    assert outer.rowptr is not None
    through = inner.values
    starts = outer.rowptr[:-1]
    sizes = _rows(np.diff(outer.rowptr)[:, None], through, nothing=0)[:, 0]
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
    kind = index_type(int(ends[-1]))
    firsts = _rows(starts[:, None], through, nothing=0)[:, 0]
    values = outer.values[ranges(firsts, sizes)]
    if inner.table is not None:
        rowptr = ends[:: inner.table.shape[1]] if inner.table.shape[1] else np.zeros(len(inner.table) + 1)
    else:
        rowptr = ends[inner.rowptr]
    return Target(values, rowptr.astype(kind))


def _rows(table: Table, at: Table, nothing: int = -1) -> Table:
    """Rows of a table, and rows of `nothing` where -1 stands."""
    missing = at < 0
    if not missing.any():
        return table[at]
    if not len(table):
        return np.full((at.size, table.shape[1]), nothing, dtype=table.dtype)
    out = table[np.where(missing, 0, at)]
    out[missing] = nothing
    return out


def ranges(firsts: Table, sizes: Table) -> Table:
    """The numbers first, first + 1, ... of several ranges, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    kind = index_type(max(total, int(firsts.max(initial=0)) + int(sizes.max(initial=0))))
    return np.arange(total, dtype=kind) + np.repeat((firsts - (ends - sizes)).astype(kind), sizes)


def grouped(values: Table, size: int) -> tuple[Table, Table]:
    """Where the numbers below `size` stand in `values`: (rowptr, positions), positions in rising order.

    Numbers and positions are sorted as one integer, several times faster than positions by numbers.

    >>> [a.tolist() for a in grouped(np.array([1, -1, 0, 1]), 3)]
    [[0, 1, 3, 3], [2, 0, 3]]
    """
    count = values.size
    if size < 2**31 and count < 2**32:
        key = values.astype(np.int64)
        key <<= 32
        key |= np.arange(count, dtype=np.int64)
        key.sort()
        positions = (key & 0xFFFFFFFF).astype(index_type(count))
    else:
        positions = np.argsort(values, kind="stable")
    there = values[values >= 0]
    rowptr = np.zeros(size + 1, dtype=index_type(there.size))
    np.cumsum(np.bincount(there, minlength=size), out=rowptr[1:])
    return rowptr, positions[count - there.size :]


def transposed(given: Map, to: Points) -> Map:
    """The points that lead to each point of one target."""
    target = given.targets[to]
    rowptr, positions = grouped(target.values, to.size)
    kind = index_type(given.source.size)
    if target.table is not None:
        sources = (positions // max(target.table.shape[1], 1)).astype(kind)
    else:
        assert target.rowptr is not None
        sources = np.repeat(np.arange(given.source.size, dtype=kind), np.diff(target.rowptr))[positions]
    return Map.of(to, {given.source: Target(sources, rowptr)})


def union(first: Map, second: Map) -> Map:
    """To what either leads to: of each target what the first leads to, then what the second does."""
    if first.source != second.source:
        raise ValueError(
            f"These maps start from {_text(first.source)} and from {_text(second.source)}: `f | g` is of two "
            "that start from the same. One after the other they are `g(f)`."
        )
    targets = dict(first.targets)
    for to, more in second.targets.items():
        targets[to] = _beside(targets[to], more) if to in targets else more
    return Map.of(first.source, targets)


def _beside(a: Target, b: Target) -> Target:
    """Of each point the entries of both."""
    if a.table is not None and b.table is not None:
        return Target(np.concatenate([a.table, b.table], axis=1), None)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(a.sizes + b.sizes, dtype=np.int64)])
    values = np.empty(int(ends[-1]), a.values.dtype)
    values[ranges(ends[:-1], a.sizes)] = a.values.reshape(-1)
    values[ranges(ends[:-1] + a.sizes, b.sizes)] = b.values.reshape(-1)
    return Target(values, ends.astype(index_type(values.size)))


def padded(given: Map, arity: int | None) -> Map:
    """The map with tables for all targets, of `arity` columns or as many as are needed."""
    targets: dict[Points, Target] = {}
    for to, target in given.targets.items():
        sizes = target.sizes
        most = int(sizes.max(initial=0))
        wanted = most if arity is None else arity
        if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)) or wanted < most:
            raise ValueError(
                f"The map from {given.source.name!r} to {to.name!r} has up to {most} entries for a point, and "
                f"so no table of {wanted!r} columns: `m.padded()` takes as many as are needed."
            )
        table = np.full((len(target), int(wanted)), -1, dtype=target.values.dtype)
        table[np.arange(int(wanted)) < sizes[:, None]] = target.values
        targets[to] = Target(table, None)
    return Map.of(given.source, targets)


def inverse_order(order: Any, size: int, what: str) -> tuple[Table, Table]:
    """An order (the old number of each new one) and its inverse, or an error."""
    array = np.asarray(order)
    if array.shape != (size,) or (size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"A new order of {size} points {what!r} lists the old number of each, and this one has the shape "
            f"{array.shape} and the dtype {array.dtype}."
        )
    inverse = np.full(size, -1, dtype=index_type(size))
    if size and array.min() >= 0 and array.max() < size:
        inverse[array] = np.arange(size, dtype=inverse.dtype)
    if size and inverse.min() < 0:
        raise ValueError(
            f"A new order of {size} points {what!r} names each of the numbers 0 to {size - 1} once, and this "
            "one leaves some out. The inverse of an order is `np.argsort(order)`."
        )
    return array.astype(inverse.dtype), inverse


def renumbered(given: Map, orders: Mapping[Points, Any]) -> Map:
    """The map after its source, its targets or both got new numbers."""
    known = {p: inverse_order(o, p.size, p.name) for p, o in orders.items()}
    targets: dict[Points, Target] = {}
    for to, target in given.targets.items():
        values = target.values if to not in known else _rows(known[to][1][:, None], target.values)[:, 0]
        shaped = values if target.table is None else values.reshape(target.table.shape)
        made = Target(shaped, target.rowptr)
        targets[to] = made if given.source not in known else _joined(made, _column(known[given.source][0]))
    return Map.of(given.source, targets)


def _column(values: Table) -> Target:
    return Target(values[:, None], None)
