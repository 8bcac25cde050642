"""Parts of parts are parts, and parts of cheap operations are operations on parts.

    t = a + b
    y = t[1:] - t[:-1]

is one kernel, as if it had been written `(a[1:] + b[1:]) - (a[:-1] + b[:-1])`, and `t` is never in memory. That
is done where computing `t` again for each of its parts takes less than writing and reading it. What is joined
only to be taken apart (`stack`, `concatenate`, `roll`) is not joined; what is gathered twice is gathered once.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Data,
    Empty,
    Fold,
    Input,
    Map,
    Node,
    Part,
    Update,
    is_barrier,
    map_node,
    ordered,
    part_node,
    placed_as,
    rewritten,
    users_of,
)
from mirabelle.arraytypes.programs.passes import geometry
from mirabelle.arraytypes.programs.passes.gathers import gathers
from mirabelle.arraytypes.programs.passes.geometry import Region, bounds, composed, place_within, place_written
from mirabelle.arraytypes.programs.passes.numbers import everywhere
from mirabelle.arraytypes.programs.passes.splitting import split
from mirabelle.arraytypes.programs.subgraphs import deciding

# What things take, in elements of memory read or written: an addition, an element that is in the cache already,
# one that is there but not in the order of memory, and a value of its own (written, and what its kernel takes).
OPERATION, CACHED, SCATTERED, OWN = 0.2, 0.1, 0.5, 2.0
# Trees of more than so many operations, or arrays, are not computed again.
MOST_OPERATIONS, MOST_SOURCES = 24, 12
NEVER = 1 << 60


def flattened_parts(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with each part as directly a part of what is in memory as strides can say it."""
    return rewritten(outputs, flattened)


def flattened(node: Node) -> Node:
    while isinstance(node, Part):
        source = node.source
        made = composed(node, source) if isinstance(source, Part) else None
        # (A part of an updated value stays one, also where it shows nothing of what was written: a reader of
        # the value before would keep that one alive, and the write could not be in place.)
        if made is None:
            return node
        node = made
    return node


def parts(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Parts of parts, of joined pieces, of gathers and of cheap operations, as parts of what is below.

    >>> import mirabelle as mb
    >>> def f(a, b):
    ...     t = a + b
    ...     return t[1:] - t[:-1]
    >>> x = mb.HostArray([1.0, 2.0, 4.0])
    >>> len(mb.compile(f, passes=["parts"]).program(x, x).plan.steps)
    1
    """
    moving = _Moving(gathers(_unjoined(flattened_parts(outputs))))
    made = split(moving)
    if made is not moving.outputs:
        moving = _Moving(flattened_parts(made))
    return moving.done()


# Pieces


def _unjoined(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Values put together of pieces, of which each reader reads but one, taken apart."""
    nodes = ordered(outputs)
    heads = [x for x in nodes if type(x) is Update and _says_nothing(x.base)]
    if not heads:
        return outputs
    users = users_of(nodes)
    is_output = {id(x) for x in outputs}
    bases = {id(x.operands[0]) for x in nodes if type(x) is Update}
    found: dict[int, Node] = {}
    for head in heads:
        pieces = _pieces(head, users, is_output)
        if pieces:
            found.update(_apart(pieces, users, bases) or {})
    if not found:
        return outputs
    made: dict[int, Node] = {}
    for x in nodes:
        new = found.get(id(x))
        if new is None:
            new = x.rebuilt(tuple([made[id(a)] for a in x.operands])) if _differs(x, made) else x
        elif isinstance(new, Part) and id(new.source) in made:
            new = new.rebuilt((made[id(new.source)],))
        else:
            new = made.get(id(new), new)
        made[id(x)] = placed_as(x, flattened(new))
    return tuple([made[id(x)] for x in outputs])


def _differs(node: Node, made: dict[int, Node]) -> bool:
    return any(made[id(a)] is not a for a in node.operands)


def _says_nothing(x: Node) -> bool:
    """Is it memory without contents, or one number everywhere?"""
    return type(x) is Empty or (not x.bound and everywhere(x) is not None)


def _pieces(update: Any, users: dict[int, list[Node]], is_output: set[int]) -> list[Update]:
    """The writes of which a value consists, in their order; none if it is read in other ways than by parts."""
    pieces: list[Update] = []
    while update is not None:
        if id(update) in is_output or update.part_dtype != update.dtype:
            return []
        pieces.append(update)
        following = None
        for u in users.get(id(update), ()):
            if type(u) is Update and u.operands[0] is update and following is None:
                following = u
            elif type(u) is not Part or u.table:
                return []
        update = following
    return pieces


def _apart(pieces: list[Update], users: dict[int, list[Node]], bases: set[int]) -> dict[int, Node] | None:
    """What each part of joined pieces shows instead, if each shows but one piece; None if one does not."""
    from mirabelle.arraytypes.programs.traced import stretched

    shape, dtype = pieces[0].shape, pieces[0].dtype
    limits = [bounds(Region(u), shape, dtype) for u in pieces]
    if any(b is None for b in limits):
        return None
    # Pieces lie behind one another along some dimension: there each part finds its own.
    for axis in range(len(shape)):
        lines = sorted([(*b[axis], i) for i, b in enumerate(limits)])  # type: ignore[index]
        if all(a[1] < b[0] for a, b in itertools.pairwise(lines)):
            break
    else:
        return None
    if geometry.asked is not None:
        geometry.asked.append(("pieces", [i for *_, i in lines], None))
    found: dict[int, Node] = {}
    for i, update in enumerate(pieces):
        for part in users.get(id(update), ()):
            if not isinstance(part, Part):
                continue
            read = bounds(part, shape, dtype) if part.size and part.dtype == dtype else None
            if read is None:
                return None
            first, last = read[axis]
            k = bisect.bisect_right(lines, (last, math.inf, 0)) - 1
            if k >= 0 and lines[k][1] >= first:
                piece = pieces[lines[k][2]]
                place = place_written(part, piece)
                value = stretched(piece.value, piece.part_shape)
                if place is None or lines[k][2] > i or id(_memory(value)) in bases:
                    return None
                found[id(part)] = flattened(part_node(value, *place, part.dtype))
            elif type(pieces[0].base) is not Empty:
                found[id(part)] = flattened(
                    part_node(pieces[0].base, part.offset, part.shape, part.strides, dtype)
                )
            else:
                return None
    return found


def _memory(x: Node) -> Node:
    while type(x) is Part:
        x = x.operands[0]
    return x


# Operations on parts


class _Tree:
    """What computing a value in the kernel that reads it takes."""

    __slots__ = ("cost", "loads", "operations", "sources", "until")

    def __init__(self, sources: dict[int, Node], until: int) -> None:
        self.cost = 0
        self.loads = 0
        self.operations = 0
        self.sources = sources
        # The place in the program where what it reads is overwritten.
        self.until = until


class _Moving:
    """One walk from operands to readers, in which parts move through the operations that it pays for."""

    def __init__(self, outputs: tuple[Node, ...]) -> None:
        from mirabelle.arraytypes.programs.fusing import fusable

        self.fusable: Any = fusable
        self.outputs = outputs
        self.nodes = ordered(outputs)
        self.users = users_of(self.nodes)
        self.is_output = {id(x) for x in outputs}
        self.place = {id(x): i for i, x in enumerate(self.nodes)}
        # What a user has decided about values: that each reader computes them again, or that none does.
        decided = deciding.get()
        self.again, self.once = (
            (set(), set()) if decided is None else decided.computed_again(self.nodes, counted=False)
        )
        # Operations of whose values parts are read.
        self.parted = [x.operands[0] for x in self.nodes if type(x) is Part and type(x.operands[0]) is Map]
        # The kernel that each value is computed in, by the value it stores; the last place where it is read.
        self.kernel: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.overwritten: dict[int, int] = {}
        self.tree: dict[int, _Tree] = {}
        # Values computed where they are read: by the node as it was, and as it is now.
        self.moved: set[int] = set()
        self.free: set[int] = set()
        self.made: dict[int, Node] = {}
        self.through: dict[int, Node | None] = {}
        self.hold: list[Node] = []

    def readers(self, of: Sequence[Node] | None = None) -> None:
        """Find out, once, which kernel computes each value: all, or those that are computed from some."""
        if self.kernel:
            return
        fusable = self.fusable
        above: set[int] | None = None
        if of is not None:
            above = set()
            stack: list[Node] = list(of)
            while stack:
                x = stack.pop()
                if id(x) not in above:
                    above.add(id(x))
                    stack += [u for u in self.users.get(id(x), ()) if type(u) is Map or type(u) is Part]
        for x in reversed(self.nodes):
            key = id(x)
            if above is not None and key not in above:
                continue
            kernels: set[int] = set()
            last = 0
            for u in self.users.get(key, ()):
                kind = type(u)
                if kind is Map or kind is Part:
                    kernels.add(self.kernel[id(u)])
                    last = max(last, self.last[id(u)])
                else:
                    if kind is Update or (kind is Fold and fusable(u)):
                        kernels.add(id(u))
                    else:
                        kernels.add(key)
                    last = max(last, self.place[id(u)])
            if key in self.is_output:
                kernels.add(key)
            self.kernel[key] = kernels.pop() if len(kernels) == 1 else key
            self.last[key] = max(last, self.place[key])
        for x in self.nodes:
            if type(x) is Update and not isinstance(x.base, (Input, Data, Empty)):
                base = id(x.base)
                self.overwritten[base] = min(self.overwritten.get(base, NEVER), self.place[id(x)])

    def done(self) -> tuple[Node, ...]:
        # Where no value but those in memory already has parts there is nothing to do.
        if not self.parted:
            return self.outputs
        self.readers(self.parted)
        made = self.made
        below = self.below()
        for x in self.nodes:
            new = made.get(id(x))
            if new is None:
                new = x
                if _differs(x, made):
                    new = placed_as(x, flattened(x.rebuilt(tuple([made[id(a)] for a in x.operands]))))
                made[id(x)] = new
            if id(x) in below:
                self.map(x, new)  # type: ignore[arg-type]
            elif type(x) is Part and id(x.operands[0]) in self.moved:
                self.tree[id(x)] = self.tree[id(x.operands[0])]
        return tuple([made[id(x)] for x in self.outputs])

    def below(self) -> set[int]:
        """The operations that values with parts are computed from, and these values."""
        found: set[int] = set()
        stack: list[Node] = list(self.parted)
        while stack:
            x = stack.pop()
            if id(x) not in found:
                found.add(id(x))
                stack += [a for a in x.operands if type(a) is Map or type(a) is Part]
        return {id(x) for x in self.nodes if type(x) is Map and id(x) in found}

    def map(self, x: Map, new: Any) -> None:
        users = self.users.get(id(x), ())
        if id(x) in self.is_output or not users or not all(self.computes(x, u) for u in users):
            return
        if not x.sig.op.pure or x.sig.op.nout != 1 or x.sig.op.name.startswith("pick"):
            return
        tree = self.tree_of(x)
        if tree is None:
            return
        readers = list({id(u): u for u in users if type(u) is Part}.values())
        if readers:
            pays = id(x) in self.again or (id(x) not in self.once and self.pays(x, tree, users))
            if not pays or self.last[id(x)] >= tree.until or type(new) is not Map:
                return
            through = {id(u): self.shown(u, new) for u in readers}
            if any(t is None for t in through.values()):
                return
            for u in readers:
                self.made[id(u)] = placed_as(u, through[id(u)])  # type: ignore[arg-type]
            self.moved.add(id(x))
        self.tree[id(x)] = tree
        self.free.add(id(new))
        self.hold.append(new)

    def computes(self, x: Node, user: Any) -> bool:
        """Can a reader compute what it reads? (What a library takes as a view stays in memory.)"""
        kind = type(user)
        if kind is Part:
            return not user.table and all(self.computes(user, u) for u in self.users.get(id(user), ()))
        if kind is Update:
            return user.operands[0] is not x
        return kind is Map or (kind is Fold and self.fusable(user))

    def tree_of(self, x: Map) -> _Tree | None:
        """What computing it where it is read takes; None if that is too much, or cannot be."""
        found = _Tree({}, NEVER)
        found.cost = max(x.sig.cost, 1)
        found.operations = 1
        for a in x.operands:
            below = self.tree.get(id(a))
            if below is None:
                if type(a) is Map and not self.stays(a):
                    return None
                source = a
                while type(source) is Part:
                    source = source.operands[0]
                found.loads += a.size > 1
                if a.size > 1:
                    found.sources[id(source)] = source
                found.until = min(found.until, self.overwritten.get(id(source), NEVER))
            else:
                found.cost += below.cost
                found.loads += below.loads
                found.operations += below.operations
                found.sources.update(below.sources)
                found.until = min(found.until, below.until)
            if found.operations > MOST_OPERATIONS or len(found.sources) > MOST_SOURCES:
                return None
        return found

    def stays(self, x: Node) -> bool:
        """Is an operation's value in memory in any case?"""
        return (
            id(x) in self.is_output
            or is_barrier(x)
            or any(type(u) is Part and id(x) not in self.moved for u in self.users.get(id(x), ()))
        )

    def pays(self, x: Map, tree: _Tree, users: Any) -> bool:
        """Does computing it again for each reader take less than storing it?"""
        size = max(x.size, 1)
        computed, reads, kernels = 0.0, 0.0, set()
        slowly = False
        for u in users:
            kind = type(u)
            share = u.size / size if kind is Part else 1.0
            load = CACHED
            if kind is Part and u.shape and u.strides[-1] not in (0, x.dtype.itemsize) and u.shape[-1] > 1:
                load, slowly = SCATTERED, True
            computed += share * (tree.cost * OPERATION + tree.loads * load)
            reads += share * load
            kernels.add(self.kernel[id(u)] if kind is Map or kind is Part else id(u))
        sources = sum([min(1.0, s.size / size) for s in tree.sources.values()])
        again = len(kernels) * sources + computed
        once = sources + tree.cost * OPERATION + tree.loads * CACHED + OWN + len(kernels) + reads
        if slowly and len(tree.sources) > 1:
            again += len(tree.sources) - 1
        return again <= once

    def shown(self, part: Any, x: Map) -> Node | None:
        """A part of an operation as the operation on parts; None where strides cannot say it."""
        if part.dtype != x.dtype or part.size == 0:
            return None
        if id(part) in self.through:
            return self.through[id(part)]
        item = x.dtype.itemsize
        args: list[Any] = []
        made: Any = None
        for a in x.args:
            if isinstance(a, Node):
                a = self.operand(a, part, x.shape, item)
                if a is None:
                    break
            args.append(a)
        else:
            made = map_node(x.sig, tuple(args), part.shape)
            if made.line is None:
                made.line = x.line
            self.free.add(id(made))
        self.hold += [part] if made is None else [part, made]
        self.through[id(part)] = made
        return made  # type: ignore[no-any-return]

    def operand(self, a: Node, part: Any, full: tuple[int, ...], item: int) -> Node | None:
        """What a part of an operation reads of an operand that stretches to the operation's shape."""
        from mirabelle.arraytypes.programs.traced import stretched

        k = a.dtype.itemsize
        table = type(a) is Part and a.table
        if a.size == 1 and not table:
            return part_node(a, 0, (), (), a.dtype)
        strides = tuple([s // item * k for s in part.strides])
        offset = part.offset // item * k
        if any(s % item for s in part.strides) or part.offset % item:
            return None
        if table:
            # (Where a gather's places are counted from.)
            asked: Any = part_node(_of_shape(full, a.dtype), offset, part.shape, strides, a.dtype)
            place = place_within(asked, a) if isinstance(asked, Part) else (a.offset, a.shape, a.strides)  # type: ignore[attr-defined]
            if place is None:
                return None
            return part_node(a.operands[0], place[0], place[1], place[2], a.dtype, True)
        made: Any = part_node(stretched(a, full), offset, part.shape, strides, a.dtype)
        if type(made) is Part and type(made.operands[0]) is Part:
            made = composed(made, made.operands[0])
            if made is None or (type(made) is Part and type(made.operands[0]) is Part):
                return None
        if type(made) is Part:
            # What stretches stays small: it may be worth computing by itself.
            narrow = tuple([1 if s == 0 else n for n, s in zip(made.shape, made.strides, strict=True)])
            made = part_node(made.operands[0], made.offset, narrow, made.strides, made.dtype)
        if type(made) is Part and type(made.operands[0]) is Map and id(made.operands[0]) in self.free:
            return self.shown(made, made.operands[0])  # type: ignore[arg-type]
        return made  # type: ignore[no-any-return]


def _of_shape(shape: tuple[int, ...], dtype: Any) -> Node:
    from mirabelle.arraytypes.programs.graph import empty_node

    return empty_node(shape, dtype)
