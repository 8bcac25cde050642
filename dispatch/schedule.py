"""From a tree to one kernel's work: what is shared, hoisted, stored beside the result.

The rules (docs/design.md, section 5): equal subexpressions are evaluated once; a costly
subtree smaller than the result is computed first, at its own shape; a value somebody else
still holds is written as a further output of the same kernel if computing it again would
cost clearly more than storing it, or if it is being evaluated for the second time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from mirabelle.dispatch.tree import LOOP_REFERENCES, Broadcasted, Leaf, Reduced

# From this cost on (in additions per element) a value is worth storing, or hoisting.
STORE_COST = 16
HOIST_COST = 4

# How an operand of a step is written: a step's number, ~leaf, or SCALAR + scalar.
SCALAR = 1 << 32


class Request:
    """One kernel's work: steps in order, the leaves and scalars they read, what they return.

    `key` describes the structure alone, so that all requests of one structure share a program.
    """

    __slots__ = ("key", "leaves", "scalars", "shape", "stored")

    def __init__(
        self,
        key: tuple[Any, ...],
        leaves: list[Leaf],
        scalars: list[Any],
        shape: tuple[int, ...],
        stored: list[Broadcasted],
    ) -> None:
        self.key = key
        self.leaves = leaves
        self.scalars = scalars
        self.shape = shape
        self.stored = stored


def schedule(root: Leaf | Broadcasted, force: Callable[[Any], Leaf], store: bool = True) -> Request:
    """Linearise a tree. `force` evaluates a subtree by itself (a reduction, a hoisted part)."""
    leaves: list[Leaf] = []
    scalars: list[Any] = []
    if type(root) is Leaf:
        return Request(((), (-1,)), [root], scalars, root.shape, [])
    assert type(root) is Broadcasted
    shape = root.shape
    index: dict[Any, int] = {}
    steps: dict[tuple[int, ...], int] = {}
    seen: dict[int, int] = {}
    order: list[Broadcasted] = []
    uses: dict[int, int] = {}

    def visit(node: Broadcasted) -> int:
        args = node.args
        if args is None:  # another thread has just evaluated it
            value = node.value
            assert value is not None
            return -1 - leaf_index(value)
        refs = [node.sig.id]
        for a in args:
            kind = type(a)
            if kind is Broadcasted or kind is Reduced:
                leaf = a.value
                if leaf is None:
                    if kind is Broadcasted and (
                        a.shape == shape or not _hoisted(a, shape, a.evaluations > 0)
                    ):
                        ref = seen.get(id(a))
                        if ref is None:
                            ref = visit(a)
                        else:
                            uses[id(a)] = uses.get(id(a), 1) + 1
                        refs.append(ref)
                        continue
                    leaf = force(a)
            elif kind is Leaf:
                leaf = a
            else:
                key = (kind, a) if a == a and a != 0 else (kind, repr(a))
                j = index.get(key)
                if j is None:
                    j = index[key] = len(scalars)
                    scalars.append(a)
                refs.append(SCALAR + j)
                continue
            refs.append(-1 - leaf_index(leaf))
        step = tuple(refs)
        ref = steps.get(step)
        if ref is None:
            ref = steps[step] = len(steps)
        seen[id(node)] = ref
        order.append(node)
        return ref

    def leaf_index(leaf: Leaf) -> int:
        key = leaf.token or id(leaf)
        j = index.get(key)
        if j is None:
            j = index[key] = len(leaves)
            leaves.append(leaf)
        return j

    top = visit(root)
    outs = [top]
    stored: list[Broadcasted] = []
    for node in order.copy() if store else ():
        # An operation with several results computes all that anybody still waits for.
        if node.sig.op.nout > 1 and node.reducers and node.shape == shape:
            for waiting in node.reducers:
                sibling = waiting()
                if sibling is not None and sibling.value is None and id(sibling) not in seen:
                    outs.append(visit(sibling))
                    stored.append(sibling)
                    order.pop()
                    uses[id(node)] = uses.get(id(node), 1) + 1
                del sibling
    if store and len(order) > 1:
        order.remove(root)
        for node in order:
            if sys.getrefcount(node) > LOOP_REFERENCES + uses.get(id(node), 1):
                # Somebody outside this tree holds it: it may be needed again.
                if node.shape != shape:
                    node.evaluations += 1
                elif len(node.sig.outs) == 1 and (
                    node.evaluations > 0 or dag_cost(node) >= STORE_COST
                ):
                    ref = seen[id(node)]
                    if ref not in outs:
                        stored.append(node)
                        outs.append(ref)
                else:
                    node.evaluations += 1
    return Request((tuple(steps), tuple(outs)), leaves, scalars, shape, stored)


def dag_cost(root: Broadcasted) -> int:
    """What evaluating a tree again would cost, counting what it shares once.

    Additions and the like are nearly free beside memory traffic: only what is costlier counts.
    """
    total = 0
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            if node.sig.cost > 2:
                total += node.sig.cost
            stack += [a for a in node.args or () if type(a) is Broadcasted and a.value is None]
    return total


def dag_size(root: Broadcasted) -> int:
    """How many operations a tree has, counting what it shares once."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack += [a for a in node.args or () if type(a) is Broadcasted and a.value is None]
    return len(seen)


def survivors(root: Broadcasted, leaf: Leaf) -> bool:
    """Will anything in the tree still read `leaf` after the tree is evaluated?

    That is: does somebody outside hold an unevaluated node whose operands reach the leaf?
    """
    order: list[Broadcasted] = []
    uses: dict[int, int] = {}
    reaches: set[int] = set()

    def visit(node: Broadcasted) -> bool:
        found = False
        for a in node.args or ():
            if type(a) is Broadcasted and a.value is None:
                if id(a) in uses:
                    uses[id(a)] += 1
                    found |= id(a) in reaches
                else:
                    uses[id(a)] = 1
                    found |= visit(a)
            elif a is leaf or (type(a) is Leaf and _same_memory(a, leaf)):
                found = True
            elif type(a) is Reduced and a.value is None:
                found |= _reads(a, leaf)
        if found:
            reaches.add(id(node))
        order.append(node)
        return found

    visit(root)
    order.pop()
    return any(
        sys.getrefcount(node) > LOOP_REFERENCES + uses[id(node)]
        for node in order
        if id(node) in reaches
    )


def _same_memory(a: Leaf, b: Leaf) -> bool:
    return a.token is not None and a.token[0] == id(b)


def _reads(version: Any, leaf: Leaf) -> bool:
    if type(version) is Leaf:
        return version is leaf or _same_memory(version, leaf)
    if type(version) is Reduced:
        return version.value is None and _reads(version.operand, leaf)
    if type(version) is Broadcasted:
        return version.value is None and any(_reads(a, leaf) for a in version.args or ())
    return False


def _hoisted(node: Broadcasted, shape: tuple[int, ...], again: bool) -> bool:
    """Is a subtree of a smaller shape computed first, once per element of its own?"""
    small, large = math.prod(node.shape), math.prod(shape)
    if small * 2 > large:
        return False
    return (node.cost >= HOIST_COST or again) and _pure(node)


def _pure(node: Broadcasted) -> bool:
    return node.sig.op.pure and all(
        _pure(a) for a in node.args or () if type(a) is Broadcasted and a.value is None
    )
