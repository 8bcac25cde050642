"""Elementwise operations on reshaped values, over the axes that the values have before.

    total = sum(a * b for a, b in terms)              # (m, n, n, K)
    return u + dt * mb.reshape(total, (m, n * n, K))

is one kernel over (m, n, n, K), which reads `u` and writes the result as arrays of that shape. Else `total`
would be in memory, only to be read in another shape. Strides can say any array with its axes split; so all
operations of one shape that are computed from one another move to a shape of more axes, of which theirs are
products. That is done where fewer values are in memory then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.programs import fusing
from mirabelle.arraytypes.programs.graph import (
    Fold,
    Map,
    Node,
    Part,
    Update,
    c_strides,
    empty_node,
    map_node,
    ordered,
    part_node,
    placed_as,
    update_node,
    users_of,
)
from mirabelle.arraytypes.programs.passes.geometry import is_contiguous
from mirabelle.arraytypes.programs.passes.parts import flattened
from mirabelle.dispatch.schedule import HOIST_COST

Shape = tuple[int, ...]

# Lines of fewer elements, which are split off, are slower than long ones.
SHORTEST_LINE = 16
# Kernels go through so many axes at most.
MOST_AXES = 12
# Values that stay are computed once more, over more axes, if that takes so many operations at most.
MOST_AGAIN = 4
# So many finer shapes are looked at for operations of one shape.
MOST_SHAPES = 4
# What moves may be read reshaped itself.
MOST_ROUNDS = 32


def refined(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Operations on reshaped values over the axes these had before, where that keeps values out of memory.

    >>> import mirabelle as mb
    >>> def f(a, b, u):
    ...     return u + 2 * mb.reshape(a * b, (12, 50))
    >>> a, b, u = mb.ones((3, 4, 50)), mb.ones((4, 1)), mb.ones((12, 50))
    >>> [step.name for step in mb.compile(f, passes=["refined"]).program(a, b, u).plan.steps]
    ['multiply_multiply_add']
    """
    for _ in range(MOST_ROUNDS):
        made = _Refining(outputs).done()
        if made is outputs:
            break
        outputs = made
    return outputs


def split_axes(shape: Shape, fine: Shape) -> list[Shape] | None:
    """For each axis those that it is the product of; None if the finer shape has others.

    >>> split_axes((3, 12, 5), (3, 4, 3, 5))
    [(3,), (4, 3), (5,)]
    """
    found: list[Shape] = []
    at = 0
    for n in shape:
        first, product = at, 1
        while product < n and at < len(fine):
            product *= fine[at]
            at += 1
        if product != n:
            return None
        found.append(fine[first:at])
    if any(n != 1 for n in fine[at:]) or (at < len(fine) and not found):
        return None
    if at < len(fine):
        found[-1] += fine[at:]
    return found


def _line(shape: Shape) -> int:
    """How many elements follow one another along the last axis that has several."""
    return next((n for n in reversed(shape) if n != 1), 1)


def _reshapes(x: Any) -> bool:
    """Is it a value of operations in another shape?"""
    return (
        type(x) is Part
        and type(x.operands[0]) is Map
        and not x.table
        and x.offset == 0
        and x.size == x.operands[0].size > 0
        and x.dtype == x.operands[0].dtype
        and x.shape != x.operands[0].shape
        and is_contiguous(x)
    )


class _Move:
    """Operations of one shape, and the finer one that they are to have."""

    __slots__ = ("again", "axes", "fine", "made", "moved", "shape")

    def __init__(self, shape: Shape, fine: Shape, axes: list[Shape]) -> None:
        self.shape = shape
        self.fine = fine
        self.axes = axes
        # Ids of those that move, and of others that are computed over the finer shape, too, or only.
        self.moved: set[int] = set()
        self.again: set[int] = set()
        # What each value is over the finer shape.
        self.made: dict[int, Node] = {}

    def split(self, shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
        """The finer shape and strides of an array that stretches to the operations' shape."""
        to_shape: list[int] = []
        to_strides: list[int] = []
        axes = self.axes[len(self.axes) - len(shape) :]
        for n, stride, group in zip(shape, strides, axes, strict=True):
            for i, k in enumerate(group):
                to_shape.append(1 if n == 1 else k)
                to_strides.append(stride if n == 1 else stride * math.prod(group[i + 1 :]))
        return tuple(to_shape), tuple(to_strides)


class _Refining:
    """One walk over a graph."""

    def __init__(self, outputs: tuple[Node, ...]) -> None:
        self.outputs = outputs
        self.nodes = ordered(outputs)
        self.reshaped: list[Any] = [x for x in self.nodes if _reshapes(x)]
        self.users: dict[int, list[Node]] = {}
        self.is_output = {id(x) for x in outputs}
        # Operations whose values are in memory in any case.
        self.lying: set[int] = set()
        # Operations of one shape that are computed from one another, or from the same, by one of them.
        self.group: dict[Any, Any] = {}
        self.members: dict[Any, list[Any]] = {}

    def done(self) -> tuple[Node, ...]:
        if not self.reshaped:
            return self.outputs
        self.users = users_of(self.nodes)
        self.lying = {id(x) for x in self.nodes if type(x) is Map and self.lies(x)}
        moves = self.moves()
        return self.rebuilt(moves) if moves else self.outputs

    # Which operations move

    def first(self, key: Any) -> Any:
        """What stands for all that are together with a value."""
        group = self.group
        while group[key] != key:
            group[key] = key = group[group[key]]
        return key

    def unite(self, a: Any, b: Any) -> None:
        self.group.setdefault(b, b)
        a, b = self.first(a), self.first(b)
        self.group[b] = a

    def moves(self) -> list[_Move]:
        for x in self.nodes:
            if type(x) is not Map:
                continue
            self.group.setdefault(id(x), id(x))
            for a in x.operands:
                if type(a) is Map and a.shape == x.shape:
                    self.unite(id(x), id(a))
                elif type(a) is not Map and a.size == x.size:
                    # (One kernel may compute all that reads it.)
                    self.unite(id(x), (id(a), x.shape))
        # The finer shapes that each group may have, with the values that would not be in memory then.
        wanted: dict[Any, dict[Shape, dict[int, Any]]] = {}

        def want(x: Node, fine: Shape, source: Node) -> None:
            if len(x.shape) < len(fine) <= MOST_AXES and _line(fine) >= min(_line(x.shape), SHORTEST_LINE):
                wanted.setdefault(self.first(id(x)), {}).setdefault(fine, {})[id(source)] = source

        for p in self.reshaped:
            want(p.source, p.shape, p.source)
            for u in self.users.get(id(p), ()):
                # (What stretches would be computed again and again.)
                if type(u) is Map and u.size == p.size:
                    want(u, u.shape[: len(u.shape) - len(p.shape)] + p.source.shape, p.source)
        for x in self.nodes:
            if type(x) is Map and self.first(id(x)) in wanted:
                self.members.setdefault(self.first(id(x)), []).append(x)
        found: list[_Move] = []
        # (What is next to what moves waits for the next round.)
        busy: set[Any] = set()
        moving: set[Any] = set()
        for group, shapes in wanted.items():
            if group in busy:
                continue
            largest = sorted(shapes.items(), key=lambda s: -sum(x.nbytes for x in s[1].values()))
            for fine, sources in largest[:MOST_SHAPES]:
                move = self.move(group, fine, sources)
                if move is None:
                    continue
                near = {self.first(key) for key in (*sources, *move.again)}
                for x in self.members[group]:
                    near.update(self.beside(x))
                if near.isdisjoint(moving):
                    found.append(move)
                    moving.add(group)
                    busy.update(near, (group,))
                    break
        return found

    def beside(self, x: Node) -> set[Any]:
        """The groups of those who read an operation's value reshaped."""
        return {
            self.first(id(u))
            for p in self.users.get(id(x), ())
            if type(p) is Part
            for u in self.users.get(id(p), ())
            if type(u) is Map
        }

    def move(self, group: Any, fine: Shape, sources: dict[int, Any]) -> _Move | None:
        """The operations of a group that are to have a finer shape; None if that saves nothing."""
        members = self.members[group]
        shape = members[0].shape
        axes = split_axes(shape, fine)
        if axes is None:
            return None
        move = _Move(shape, fine, axes)
        moved = move.moved
        moved.update([id(x) for x in members])
        stored: set[int] = {id(x) for x in members if self.lies_refined(x, move)}
        # Those that need what is to stay out of memory.
        needing: set[int] = set()
        for x in members:
            if any(
                (id(a) in needing and id(a) not in stored) or (type(a) is Part and id(a.source) in sources)
                for a in x.operands
            ):
                needing.add(id(x))
        roots: list[Node] = []
        more, less = 0.0, 0
        for x in reversed(members):
            asked = any(not self.follows(u, x, move) for u in self.users.get(id(x), ()) if type(u) is not Part)
            if asked and id(x) not in stored and id(x) not in needing:
                moved.discard(id(x))
                continue
            before = id(x) in self.lying
            if asked and not before:
                more += x.nbytes
            elif before and not asked and id(x) not in stored:
                less += x.nbytes
            if asked or id(x) in stored:
                stored.add(id(x))
            if id(x) in stored or any(type(u) is Update for u in self.users.get(id(x), ())):
                roots.append(x)
        inside = {key for key, x in sources.items() if key not in moved and not self.lies_beside(x, moved)}
        less += sum([sources[key].nbytes for key in inside])
        if not less:
            return None
        more += self.take_along(move, [x for x in members if id(x) in moved])
        if more >= less or not all(self.is_small(x, moved, stored, inside) for x in roots):
            return None
        return move

    def follows(self, user: Any, x: Node, move: _Move) -> bool:
        """Does a reader of a value that moves take it as it is then?"""
        if type(user) is Update:
            return user.value is x and user.base is not x and user.part_shape == x.shape
        return type(user) is Map and id(user) in move.moved

    def takes(self, user: Any, x: Node) -> bool:
        """Can a reader compute the value that it reads?"""
        if type(user) is Update:
            return user.base is not x
        return type(user) is Map or (type(user) is Fold and fusing.fusable(user))

    def lies(self, x: Node) -> bool:
        """Is a value in memory in any case?"""
        return id(x) in self.is_output or not all(self.takes(u, x) for u in self.users.get(id(x), ()))

    def lies_refined(self, x: Node, move: _Move) -> bool:
        """Is an operation's value in memory in any case, if it moves?"""
        return id(x) in self.is_output or not all(
            self.takes(u, x) or (u.shape == move.fine and self.is_taken(u)) for u in self.users.get(id(x), ())
        )

    def is_taken(self, part: Any) -> bool:
        """Is it a value in another shape, of which each reader can compute it?"""
        return (
            _reshapes(part)
            and id(part) not in self.is_output
            and all(
                self.takes(u, part)
                and (type(u) is Fold or (u.part_size if type(u) is Update else u.size) == part.size)
                for u in self.users.get(id(part), ())
            )
        )

    def lies_beside(self, x: Node, moved: set[int]) -> bool:
        """Is a value that moving ones read reshaped in memory in any case?"""
        return id(x) in self.is_output or not all(
            self.takes(u, x)
            or (
                _reshapes(u)
                and id(u) not in self.is_output
                and all(id(v) in moved and v.size == u.size for v in self.users.get(id(u), ()))
            )
            for u in self.users.get(id(x), ())
        )

    def take_along(self, move: _Move, members: Iterable[Any]) -> float:
        """Find the other operations that are computed over finer axes, too; the bytes of what has to be stored
        instead."""
        users, counts = self.users, dict[int, int]()
        waiting: dict[int, Any] = {}
        stack = list(members)
        while stack:
            x = stack.pop()
            for a in x.operands:
                if type(a) is not Map or id(a) in move.moved:
                    continue
                counts[id(a)] = counts.get(id(a), 0) + 1
                waiting[id(a)] = a
                if counts[id(a)] == len(users[id(a)]) and id(a) not in self.is_output:
                    # (It is read by nobody else.)
                    del waiting[id(a)]
                    move.again.add(id(a))
                    stack.append(a)
        more = 0.0
        for a in waiting.values():
            if id(a) in self.lying:
                continue
            again = self.cheap(a, move)
            if again is None:
                # (An operation of several results has no value that could be in memory.)
                more += a.nbytes if a.sig.op.nout == 1 else math.inf
            else:
                move.again |= again
        return more

    def cheap(self, x: Any, move: _Move) -> set[int] | None:
        """The operations that computing a value once more takes; None if these are many."""
        found: set[int] = set()
        stack = [x]
        while stack:
            node = stack.pop()
            if id(node) in found or id(node) in move.moved or id(node) in move.again:
                continue
            if not node.sig.op.pure or node.sig.cost >= HOIST_COST or len(found) == MOST_AGAIN:
                return None
            found.add(id(node))
            stack += [a for a in node.operands if type(a) is Map and id(a) not in self.lying]
        return found

    def is_small(self, x: Node, moved: set[int], stored: set[int], inside: set[int]) -> bool:
        """Can one kernel compute a value that moves, with all that it is computed from?"""
        operations: set[int] = set()
        leaves: set[int] = set()
        stack = [x]
        while stack:
            node: Any = stack.pop()
            if id(node) in operations or id(node) in leaves:
                continue
            if type(node) is Part and id(node.operands[0]) in inside:
                node = node.operands[0]
            key = id(node)
            lies = key in stored if key in moved else key in self.lying and key not in inside
            if type(node) is not Map or (node is not x and lies):
                if node.size > 1:
                    leaves.add(id(node))
            else:
                operations.add(id(node))
                stack += node.operands
            if len(operations) > fusing.LARGEST_TREE or len(leaves) > fusing.MOST_OPERANDS:
                return False
        return True

    # The graph with these operations moved

    def rebuilt(self, moves: list[_Move]) -> tuple[Node, ...]:
        move_of = {key: move for move in moves for key in move.moved}
        made: dict[int, Node] = {}
        x: Any
        for x in self.nodes:
            move = move_of.get(id(x))
            if move is not None:
                made[id(x)] = self.placed(x, self.finer(x, move, made))
                continue
            operands = tuple([made[id(a)] for a in x.operands])
            new: Any = x
            move = move_of.get(id(x.operands[-1])) if type(x) in (Update, Part) else None
            if type(x) is Update and move is not None and self.follows(x, x.value, move):
                shape, strides = move.split(x.part_shape, x.strides)
                value = move.made[id(x.value)]
                new = update_node(operands[0], x.offset, shape, strides, x.part_dtype, value)
            elif type(x) is Part and move is not None and x.shape == move.fine and self.is_taken(x):
                new = move.made[id(x.source)]
            elif any(a is not b for a, b in zip(operands, x.operands, strict=True)):
                new = flattened(x.rebuilt(operands))
            made[id(x)] = placed_as(x, new)
        return tuple([made[id(x)] for x in self.outputs])

    def placed(self, x: Node, finer: Node) -> Node:
        """What those read of a value that moves who do not."""
        users = self.users.get(id(x), ())
        if id(x) not in self.is_output and not any(type(u) is Update and u.base is x for u in users):
            return placed_as(x, part_node(finer, 0, x.shape, c_strides(x.shape, x.dtype), x.dtype))
        # It is computed where it stays, or is updated.
        memory = placed_as(x, empty_node(x.shape, x.dtype))
        strides = c_strides(finer.shape, x.dtype)
        return placed_as(x, update_node(memory, 0, finer.shape, strides, x.dtype, finer))

    def finer(self, x: Any, move: _Move, made: dict[int, Node]) -> Node:
        """A value that stretches to the shape of operations that move, in the finer shape."""
        found = move.made.get(id(x))
        if found is None:
            if id(x) in move.moved or id(x) in move.again:
                args = tuple([self.finer(a, move, made) if isinstance(a, Node) else a for a in x.args])
                shape, _ = move.split(x.shape, x.shape)
                found = placed_as(x, map_node(x.sig, args, shape))
            else:
                found = self.part(made[id(x)], move)
            move.made[id(x)] = found
        return found

    def part(self, x: Any, move: _Move) -> Node:
        if not x.shape:
            return x  # type: ignore[no-any-return]
        if type(x) is Part:
            shape, strides = move.split(x.shape, x.strides)
            return placed_as(x, flattened(part_node(x.source, x.offset, shape, strides, x.dtype, x.table)))
        shape, strides = move.split(x.shape, c_strides(x.shape, x.dtype))
        return placed_as(x, part_node(x, 0, shape, strides, x.dtype))
