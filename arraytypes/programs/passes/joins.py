"""What is joined only to be joined again, or reshaped on the way, is written where it belongs.

    rows = [mb.concat([f(u[i]), g(u[i])]) for i in range(m)]
    A @ mb.stack(rows)

computes `f` and `g` into their places of the one array that the product reads. Pieces of one shape are written
one after the other, so that one kernel may compute them.
"""

from __future__ import annotations

import itertools
from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Empty,
    Map,
    Node,
    Part,
    Update,
    c_strides,
    ordered,
    placed_as,
    update_node,
    users_of,
)
from mirabelle.arraytypes.programs.passes.geometry import Place, Region, apart, is_contiguous, place_within

# Among more pieces it would take long to find out which overlap.
MOST_PIECES = 128
# So many of the values that a piece is computed from are looked at.
MOST_READ = 256


def joins(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Pieces of pieces as pieces, those of one shape together.

    >>> import mirabelle as mb
    >>> def f(a, b):
    ...     return mb.stack([mb.concat([a + 1, b + 1]), mb.concat([a + 2, b + 2])])
    >>> a, b = mb.ones(3), mb.ones(2)
    >>> (step,) = mb.compile(f, passes=["joins"]).program(a, b).plan.steps
    >>> [len(kernel.dests) for kernel in step.members]
    [2, 2]
    """
    nodes = ordered(outputs)
    updates: list[Any] = [x for x in nodes if type(x) is Update]
    if not updates:
        return outputs
    is_output = {id(x) for x in outputs}
    users = users_of(nodes)
    if not any(_concerns(x, users, is_output) for x in updates):
        return outputs
    # Values that nobody reads but one reader: ids of nodes as they were, and as they are now.
    alone = {id(x): x for x in nodes if len(users.get(id(x), ())) == 1 and id(x) not in is_output}
    # (Only nodes that became others.)
    made: dict[Node, Node] = {}
    for x in nodes:
        new: Any = x
        if made and not made.keys().isdisjoint(x.operands):
            new = placed_as(x, x.rebuilt(tuple([made.get(a, a) for a in x.operands])))
        if type(new) is Update:
            new = _directly(_unreshaped(new, alone), alone)
            if (
                id(x) not in alone
                or type(users[id(x)][0]) is not Update
                or users[id(x)][0].operands[0] is not x
            ):
                new = _by_shape(new, alone)
        if new is not x:
            if id(x) in alone:
                alone[id(new)] = new
            made[x] = new
    return tuple([made.get(x, x) for x in outputs]) if made else outputs


def _concerns(update: Any, users: dict[int, list[Node]], is_output: set[int]) -> bool:
    """May a write be of something reshaped, or put together of pieces, or the second of several pieces?"""
    base, value = update.operands
    made = type(value) is Update or (type(value) is Part and type(value.source) in (Map, Update))
    return made or (type(base) is Update and len(users[id(base)]) == 1 and id(base) not in is_output)


def _unreshaped(update: Any, alone: dict[int, Node]) -> Node:
    """A write of a value in another shape as a write of the value, to a region of its own shape."""
    value = update.value
    if type(value) is not Part or value.shape != update.part_shape:
        return update  # type: ignore[no-any-return]
    source = value.source
    if (
        type(source) not in (Map, Update)
        or source.size != value.size
        or not value.size
        or source.dtype != value.dtype
        or update.part_dtype != value.dtype
        or value.table
        or not is_contiguous(value)
    ):
        return update  # type: ignore[no-any-return]
    place = _within(source.shape, 0, c_strides(source.shape, source.dtype), update)
    if place is None:
        return update  # type: ignore[no-any-return]
    if id(value) not in alone:
        alone.pop(id(source), None)
    return placed_as(update, update_node(update.base, *place, update.part_dtype, source))


def _within(shape: tuple[int, ...], offset: int, strides: tuple[int, ...], update: Any) -> Place | None:
    """A region of what an update writes as a region of what it writes to."""
    region: Any = Region(update)
    inner: Any = Region(update)
    inner.offset, inner.shape, inner.strides = offset, shape, strides
    return place_within(inner, region)


def _directly(update: Any, alone: dict[int, Node]) -> Node:
    """A write of a value that is put together as writes of its pieces."""
    value = update.value
    if (
        type(value) is not Update
        or id(value) not in alone
        or value.shape != update.part_shape
        or value.dtype != update.part_dtype
        or not _is_new(update.base)
    ):
        return update  # type: ignore[no-any-return]
    pieces: list[tuple[Update, Place]] = []
    inner: Any = value
    while type(inner) is Update:
        place = _within(inner.part_shape, inner.offset, inner.strides, update)
        if place is None or inner.part_dtype != inner.dtype or id(inner) not in alone:
            return update  # type: ignore[no-any-return]
        pieces.append((inner, place))
        inner = inner.base
    made: Node = update.base
    if type(inner) is not Empty:
        made = placed_as(update, update_node(made, *_whole(update), update.part_dtype, inner))
        alone[id(made)] = made
    for piece, place in reversed(pieces):
        made = placed_as(piece, update_node(made, *place, piece.part_dtype, piece.value))
        alone[id(made)] = made
    return made


def _whole(update: Any) -> Place:
    """The region that an update writes."""
    return update.offset, update.part_shape, update.strides


def _is_new(x: Any) -> bool:
    """Is it memory that nobody has seen?"""
    while type(x) is Update:
        x = x.base
    return type(x) is Empty


def _by_shape(top: Any, alone: dict[int, Node]) -> Node:
    """Pieces of one shape that read much the same, together."""
    pieces: list[Any] = [top]
    while type(pieces[-1].base) is Update and id(pieces[-1].base) in alone:
        pieces.append(pieces[-1].base)
    pieces.reverse()
    if len(pieces) < 3 or len(pieces) > MOST_PIECES:
        return top  # type: ignore[no-any-return]
    groups = _groups(pieces)
    turns = sum(a != b for a, b in itertools.pairwise(groups))
    if turns <= max(groups):
        return top  # type: ignore[no-any-return]
    regions = [Region(x) for x in pieces]
    if not all(apart(a, b) for a, b in itertools.combinations(regions, 2)):
        return top  # type: ignore[no-any-return]
    made: Node = pieces[0].base
    for _, x in sorted(zip(groups, pieces, strict=True), key=lambda p: p[0]):
        made = placed_as(x, update_node(made, *_whole(x), x.part_dtype, x.value))
        alone[id(made)] = made
    return made


def _groups(pieces: list[Any]) -> list[int]:
    """For each piece the number of a group: those of one shape that read some of the same."""
    known: list[tuple[tuple[int, ...], set[int]]] = []
    found = []
    for x in pieces:
        seen: set[int] = set()
        stack = [x.value]
        while stack and len(seen) < MOST_READ:
            node = stack.pop()
            if id(node) not in seen and node.size > 1:
                seen.add(id(node))
                stack += node.operands if type(node) is Map else ()
        for number, (shape, read) in enumerate(known):
            if shape == x.part_shape and not read.isdisjoint(seen):
                read |= seen
                found.append(number)
                break
        else:
            found.append(len(known))
            known.append((x.part_shape, seen))
    return found
