"""The edges and faces of cells, found by sorting: each entity is one integer made of its vertices.

An entity that several cells have is one. Entities are numbered in the order of their vertices: edges by (lower,
higher vertex), faces by their vertices around the face, from the lowest to its lower neighbour and on. Nothing
larger than the keys of one kind of entity, and the order that sorts them, is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.shapes import named


def canonical(columns: Sequence[Table]) -> list[Table]:
    """The vertices of an edge or a face, column by column, in the order in which all cells see them alike.

    It goes around a face from the lowest vertex to its lower neighbour and on.

    >>> [c.tolist() for c in canonical([np.array([3, 1]), np.array([2, 5])])]
    [[2, 1], [3, 5]]
    >>> [c.tolist() for c in canonical([np.array([8]), np.array([5]), np.array([3]), np.array([4])])]
    [[3], [4], [8], [5]]
    """
    if len(columns) < 3:
        return [np.minimum(*columns), np.maximum(*columns)] if len(columns) == 2 else list(columns)
    if len(columns) == 3:
        a, b, c = columns
        low, high = np.minimum(a, b), np.maximum(a, b)
        return [np.minimum(low, c), np.maximum(low, np.minimum(high, c)), np.maximum(high, c)]
    walk = rotated = list(columns)
    for step in (1, 2, 3):
        smaller = walk[step] < rotated[0]
        if smaller.any():
            turned = walk[step:] + walk[:step]
            rotated = [np.where(smaller, t, r) for t, r in zip(turned, rotated, strict=True)]
    first, one, opposite, other = rotated
    return [first, np.minimum(one, other), opposite, np.maximum(one, other)]


def seen_as(columns: Sequence[Table]) -> Table:
    """How a cell sees an edge or a face: 0 where its own order of vertices is the canonical one.

    An edge: 1 where it is reversed, that is where its first vertex has the higher number. A face: 2 r + m,
    where r counts the steps around the face from its first vertex to the lowest, and m is 1 where it is
    mirrored:
    where the vertex after the lowest one, in that sense around the face, is higher than the vertex before it.
    (DOLFINx counts rotations and reflections alike.)

    >>> seen_as([np.array([3, 1]), np.array([2, 5])]).tolist()
    [1, 0]
    >>> seen_as([np.array([0, 5, 2]), np.array([2, 0, 5]), np.array([5, 2, 0])]).tolist()
    [0, 2, 4]
    """
    if len(columns) == 2:
        return np.asarray(columns[0] > columns[1]).astype(np.int8)
    walk = list(columns)
    least, steps = walk[0], np.zeros(walk[0].shape, dtype=np.int8)
    before, after = walk[-1], walk[1]
    for step in range(1, len(walk)):
        smaller = walk[step] < least
        least = np.where(smaller, walk[step], least)
        before = np.where(smaller, walk[step - 1], before)
        after = np.where(smaller, walk[(step + 1) % len(walk)], after)
        steps[smaller] = step
    # Around a triangle (0, 1, 2) as it should be, 1 comes after 0 and 2 before it.
    return (2 * steps + (after > before)).astype(np.int8)


def find_entities(
    cells: Mapping[str, Table], dim: int, vertices: int
) -> dict[str, tuple[Table, dict[str, Table]]]:
    """The entities of a dimension by shape: their vertices, and for each shape of cells which of them it has.

    >>> found = find_entities({"triangle": np.array([[0, 1, 2], [1, 3, 2]])}, 1, 4)
    >>> edges, of = found["interval"]
    >>> edges.tolist(), of["triangle"].tolist()
    ([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]], [[2, 1, 0], [4, 2, 3]])
    """
    out = {}
    for name in ("interval",) if dim == 1 else ("triangle", "quadrilateral"):
        local = {s: [named(s).entities(dim)[j] for j in named(s).numbers(dim, name)] for s in cells}
        local = {s: rows for s, rows in local.items() if rows}
        if not local:
            continue
        table, numbers = _distinct(_keys(cells, local, vertices), vertices, named(name).vertices)
        at, of = 0, {}
        for s, rows in local.items():
            count = len(cells[s]) * len(rows)
            of[s] = numbers[at : at + count].reshape(len(cells[s]), len(rows))
            at += count
        out[name] = table, of
    return out


def _keys(cells: Mapping[str, Table], local: Mapping[str, Sequence[Any]], base: int) -> list[Table]:
    """The keys of the entities of cells, one cell after another: as few columns as 63 bits have room for."""
    total = sum(len(cells[s]) * len(rows) for s, rows in local.items())
    out: list[Table] = []
    at = 0
    for s, rows in local.items():
        end = at + len(cells[s]) * len(rows)
        for j, row in enumerate(rows):
            columns = _packed(canonical([cells[s][:, v] for v in row]), base)
            out = out or [np.empty(total, dtype=c.dtype) for c in columns]
            for into, column in zip(out, columns, strict=True):
                into[at:end].reshape(-1, len(rows))[:, j] = column
        at = end
    return out


def _room(length: int, base: int) -> int:
    """How many of the numbers below `base` one integer of 63 bits can hold."""
    return next(k for k in reversed(range(1, length + 1)) if max(base, 2) ** k < 2**63)


def _packed(columns: Sequence[Table], base: int) -> list[Table]:
    """The first columns as one integer that sorts as they do, as many as have room in it, and the others."""
    room = _room(len(columns), base)
    key = columns[0].astype(np.int64)
    for column in columns[1:room]:
        key *= base
        key += column
    return [key, *columns[room:]]


def distinct(columns: Sequence[Table], base: int) -> tuple[Table, Table]:
    """The distinct tuples of numbers below `base`, sorted, and for each of those given its number among them.

    >>> [a.tolist() for a in distinct([np.array([2, 0, 2]), np.array([1, 5, 1])], 6)]
    [[[0, 5], [2, 1]], [1, 0, 1]]
    """
    return _distinct(_packed(columns, base), base, len(columns))


def _distinct(columns: list[Table], base: int, length: int) -> tuple[Table, Table]:
    """As `distinct`, of columns that are packed. They are taken from the list, to go as soon as they can."""
    known: list[Table] = []  # the distinct keys before each of the columns that had no room
    key = columns.pop(0)
    while columns:
        keys, numbers = ranked(key)
        known.append(keys)
        key = numbers.astype(np.int64)
        key *= base
        key += columns.pop(0)
    columns[:] = [key]
    del key
    keys, numbers = ranked(columns.pop())
    out = np.empty((keys.size, length), dtype=index_type(base))
    for j in reversed(range(1, length)):
        keys, out[:, j] = np.divmod(keys, max(base, 1))
        keys = known.pop()[keys] if known else keys
    out[:, 0] = keys
    return out, numbers


def ranked(key: Table) -> tuple[Table, Table]:
    """The distinct numbers, sorted, and where each of the given ones is among them.

    >>> [a.tolist() for a in ranked(np.array([7, 5, 7]))]
    [[5, 7], [1, 0, 1]]
    """
    order = np.argsort(key, kind="stable")  # (much is sorted where cells have numbers with locality)
    key = key[order]
    new = np.empty(key.size, dtype=bool)
    new[:1] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    distinct = key[new]
    del key
    rank = np.cumsum(new, dtype=index_type(order.size))
    rank -= 1
    numbers = np.empty_like(rank)
    numbers[order] = rank
    return distinct, numbers
