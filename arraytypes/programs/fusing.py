"""Which values one kernel computes.

A kernel computes all that is stored over one index space from much the same operands: it reads them once, and
what its results share is computed once, in registers. `kernels_of` finds such values; a later one is computed
with an earlier one if all that it reads is there by then, and if what it writes to is nobody's meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from mirabelle.arraytypes.programs.graph import Data, Empty, Fold, Input, Map, Node, Part, Update, is_barrier
from mirabelle.arraytypes.programs.passes.geometry import Region, apart

# Kernels have at most so many operations, results and operands: compilers and registers bear no more.
LARGEST_TREE, MOST_RESULTS, MOST_OPERANDS = 400, 16, 64
# Above these sizes a kernel gets what reads mostly the same as it does, and nothing else.
LARGE_TREE, MANY_RESULTS, MANY_OPERANDS = 64, 6, 24
# A value is computed with one of so many kernels before it: what is computed early is in memory for long.
WINDOW = 8


def fusable(node: Fold) -> bool:
    """Can a kernel do the reduction while it computes the operand?"""
    return node.reduction.scalar is None and node.reduction.neutral(node.dtype) is not None


class Kernel:
    """Values that are computed together, in the order of the program."""

    __slots__ = (
        "axes", "chains", "closed", "first", "group", "inside", "leaves", "members", "number", "operations",
        "shape",
    )  # fmt: skip

    def __init__(self, number: int, first: int, shape: tuple[int, ...], axes: Any = None) -> None:
        self.number = number
        # The axes along which it reduces; None if it does not.
        self.axes = axes
        # Where in the program it is run, and its index space.
        self.first = first
        self.shape = shape
        self.members: list[Any] = []
        # What a user has decided: that it computes nothing else, or what is of one group.
        self.closed = False
        self.group: int | None = None
        # Ids of elementwise values among them, and the memories that updates among them write to.
        self.inside: set[int] = set()
        self.chains: set[int] = set()
        self.operations: set[int] = set()
        # What it reads: parts of memory and values in it.
        self.leaves: dict[int, Node] = {}


def kernels_of(
    nodes: list[Node],
    users: dict[int, list[Node]],
    stored: set[int],
    wanted: Any = None,
    returned: Collection[int] = (),
) -> list[Kernel]:
    """The kernels that compute the stored elementwise values and the updates of a graph.

    `wanted` is what a user has decided about them (see wanted.py); `returned` are the ids of values that are
    needed when the program is over.
    """
    return _Fusing(users, stored, wanted, returned).kernels(nodes)


def arranged(nodes: list[Node], kernels: list[Kernel]) -> list[Node]:
    """The nodes in an order in which what a kernel computes stands together, operands first."""
    kernel = {id(x): k for k in kernels if len(k.members) > 1 for x in k.members}
    if not kernel:
        return nodes
    placed: set[int] = set()
    result: list[Node] = []
    for x in nodes:
        found = kernel.get(id(x))
        for member in (x,) if found is None else found.members:
            if id(member) in placed:
                continue
            placed.add(id(member))
            pending = [(member, iter(member.operands))]
            while pending:
                top, rest = pending[-1]
                for a in rest:
                    if id(a) not in placed:
                        placed.add(id(a))
                        pending.append((a, iter(a.operands)))
                        break
                else:
                    result.append(top)
                    pending.pop()
    return result


def operations_of(x: Node, stored: set[int], limit: int = LARGEST_TREE) -> int:
    """How many operations a kernel that computes a value does, counted up to a limit."""
    # (Nodes are equal only if they are the same.)
    seen = {x}
    stack = [x]
    while stack and len(seen) <= limit:
        for a in stack.pop().operands:
            if type(a) is Map and a not in seen and id(a) not in stored:
                seen.add(a)
                stack.append(a)
    return len(seen)


def memory(x: Node) -> Node:
    """The value that a part shows elements of."""
    while type(x) is Part:
        x = x.operands[0]
    return x


def goes_along(x: Node, shape: tuple[int, ...]) -> bool:
    """Does a kernel over an index space read it element by element? (What gathers read stands in one place.)"""
    return x.size == math.prod(shape) and (type(x) is not Part or any(x.strides))


class _Fusing:
    def __init__(
        self, users: dict[int, list[Node]], stored: set[int], wanted: Any, returned: Collection[int]
    ) -> None:
        self.wanted = wanted
        self.returned = returned
        self.users = users
        self.stored = stored
        # Where in the program a value in memory is there. (What was there before is not noted.)
        self.there: dict[int, int] = {}
        # The memory that an update writes to: by the first update of new memory, else by what was in it.
        self.chain: dict[int, int] = {}

    def kernels(self, nodes: list[Node]) -> list[Kernel]:
        found: list[Kernel] = []
        of_shape: dict[Any, list[Kernel]] = {}
        for i, x in enumerate(nodes):
            kind: Any = type(x)
            top: Any = x
            if kind is Update:
                base = x.operands[0]
                at = id(x) if type(base) is Empty else id(base)
                self.chain[id(x)] = self.chain.get(id(base), at) if type(base) is Update else at
                top = x.operands[1]
            elif kind is Fold:
                top = x.operands[0]
            if (
                kind not in (Map, Update, Fold)
                or (kind is Map and (id(x) not in self.stored or top.sig.op.nout != 1))
                or (kind is Fold and not fusable(x))  # type: ignore[arg-type]
                or type(top) is Fold
            ):
                if kind not in (Input, Data, Empty):
                    self.there[id(x)] = i
                continue
            shape = x.part_shape if kind is Update else top.shape  # type: ignore[attr-defined]
            axes = x.axes if kind is Fold else None  # type: ignore[attr-defined]
            operations, leaves = self.reads(x, top)
            candidates = of_shape.setdefault((shape, axes), [])
            near = [
                k
                for k in candidates[-WINDOW:]
                if k.number >= len(found) - WINDOW
                and not k.closed
                and not (
                    k.leaves.keys().isdisjoint(leaves)
                    and k.operations.isdisjoint(operations)
                    and k.inside.isdisjoint(leaves)
                )
            ]
            # The latest first, of those that do some of its operations already.
            if len(near) > 1:
                near.sort(key=lambda k: (k.operations.isdisjoint(operations), -k.number))
            if self.wanted is not None:
                near = self.decided(x, near, candidates)
            for k in near:
                if self.joins(x, k, operations, leaves):
                    break
            else:
                k = Kernel(len(found), i, shape, axes)
                found.append(k)
                candidates.append(k)
                if self.wanted is not None:
                    k.closed = id(x) in self.wanted.separate
            if self.wanted is not None and id(x) in self.wanted.group:
                k.group = self.wanted.group[id(x)]
            k.members.append(x)
            k.operations |= operations
            k.leaves.update(leaves)
            if kind is Map and not is_barrier(x):
                k.inside.add(id(x))
            elif kind is Update:
                k.chains.add(self.chain[id(x)])
            self.there[id(x)] = k.first
        return found

    def decided(self, x: Node, near: list[Kernel], candidates: list[Kernel]) -> list[Kernel]:
        """The kernels that may compute a value, too: that of its group first, none if it is to be alone."""
        if id(x) in self.wanted.separate:
            return []
        group = self.wanted.group.get(id(x))
        if group is None:
            return near
        mine = [k for k in candidates if k.group == group]
        return [*mine, *[k for k in near if k not in mine and k.group is None]]

    def reads(self, x: Node, top: Node) -> tuple[set[int], dict[int, Node]]:
        """The operations that computing a value takes, and what it reads."""
        operations: set[int] = set()
        leaves: dict[int, Node] = {}
        stack = [top]
        while stack:
            node = stack.pop()
            if type(node) is Map and (node is x or id(node) not in self.stored):
                if id(node) not in operations:
                    operations.add(id(node))
                    stack += node.operands
            else:
                leaves[id(node)] = node
        return operations, leaves

    def joins(self, x: Any, k: Kernel, operations: set[int], leaves: dict[int, Node]) -> bool:
        """Can a kernel before it compute a value, too, and is that less work?"""
        if len(k.members) >= (MOST_RESULTS if k.axes is None else MANY_RESULTS):
            return False
        asked = self.wanted is not None and k.group is not None and k.group == self.wanted.group.get(id(x))
        shared, more, new = 0, 0, 0
        for key, leaf in leaves.items():
            if key in k.inside:
                shared += leaf.size
                continue
            source = memory(leaf)
            if self.there.get(id(source), -1) >= k.first or self.chain.get(id(source), id(source)) in k.chains:
                return False
            if key in k.leaves:
                shared += leaf.size if leaf.size > 1 else 0
            else:
                more += leaf.size if leaf.size > 1 else 0
                new += 1
        both = len(k.operations | operations)
        if both < len(k.operations) + len(operations):
            shared = max(shared, math.prod(k.shape))
        if not shared and not asked:
            return False
        results, operands = len(k.members) + 1, len(k.leaves) + new
        if both > LARGEST_TREE or operands > MOST_OPERANDS:
            return False
        if asked:
            return type(x) is not Update or self.may_write(x, k)
        if (results > MANY_RESULTS or operands > MANY_OPERANDS or both > LARGE_TREE) and more > shared:
            return False
        # A large kernel leaves its room to what does the same operations, or reads the same results.
        if both > LARGE_TREE and both == len(k.operations) + len(operations):
            same = [x for key, x in leaves.items() if key in k.inside or key in k.leaves]
            if not any(goes_along(x, k.shape) and type(memory(x)) is not Data for x in same):
                return False
        if type(x) is Fold:
            return more <= shared
        return type(x) is Map or self.may_write(x, k)

    def may_write(self, update: Any, k: Kernel) -> bool:
        """Can a kernel before it write what an update writes?"""
        base = update.base
        chain = self.chain[id(update)]
        for leaf in k.leaves.values():
            source = memory(leaf)
            if self.chain.get(id(source), id(source)) == chain:
                return False
        if type(base) is Empty:
            return True
        # (Who reads what was there before would find it overwritten.)
        if len(self.users[id(base)]) > 1 or id(base) in self.returned or isinstance(base, (Input, Data)):
            return False
        others = [m for m in k.members if type(m) is Update and self.chain[id(m)] == chain]
        if others:
            return others[-1] is base and all(apart(Region(m), Region(update)) for m in others)
        return self.there.get(id(base), -1) < k.first
