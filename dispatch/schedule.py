"""From a tree to one kernel's work: what is shared, hoisted, stored beside the result.

The rules (docs/design.md, section 5): equal subexpressions are evaluated once; a costly
subtree smaller than the result is computed first, at its own shape; a value somebody else
still holds is written as a further output of the same kernel if computing it again would
cost clearly more than storing it, or if it is being evaluated for the second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.dispatch import _native
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# From this cost on (in additions per element) a part of a tree is worth hoisting.
HOIST_COST = 4

# What is asked of all pending operations of a tree (dispatch/csrc/walking.c): these, those that several parents
# read once; what evaluating them again would cost; whether what others hold is stored when it is evaluated.
operations = _native.operations
dag_cost = _native.dag_cost
worth_storing = _native.worth_storing

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


class EvaluatedError(Exception):
    """Another thread has just evaluated it."""


class _Builder:
    """The state of one linearisation. (Not closures: those would keep it alive in a cycle.)"""

    __slots__ = ("force", "index", "leaves", "order", "scalars", "seen", "shape", "steps", "uses")

    def __init__(self, shape: tuple[int, ...], force: Callable[[Any], Leaf]) -> None:
        self.shape = shape
        self.force = force
        self.leaves: list[Leaf] = []
        self.scalars: list[Any] = []
        self.index: dict[Any, int] = {}
        self.steps: dict[tuple[Any, ...], int] = {}
        self.seen: dict[int, int] = {}
        self.order: list[Broadcasted] = []
        self.uses: dict[int, int] = {}

    def leaf(self, leaf: Leaf) -> int:
        key = id(leaf) if leaf.root is None else leaf.key()
        j = self.index.get(key)
        if j is None:
            j = self.index[key] = len(self.leaves)
            self.leaves.append(leaf)
        return -1 - j

    def scalar(self, a: Any) -> int:
        # 0.0 equals -0.0 and NaN does not equal itself: those are told apart by their text, as complex numbers
        # are, whose parts may do so.
        plain = a == a and a != 0 and not isinstance(a, (complex, np.complexfloating))
        key = (type(a), a) if plain else (type(a), repr(a))
        j = self.index.get(key)
        if j is None:
            j = self.index[key] = len(self.scalars)
            self.scalars.append(a)
        return SCALAR + j

    def visit(self, node: Broadcasted) -> int:
        args = node.args
        if args is None:  # another thread has just evaluated it
            value = node.value
            assert value is not None
            return self.leaf(value)
        shape = self.shape
        refs: list[Any] = [node.sig]
        for a in args:
            kind = type(a)
            if kind is Leaf:
                refs.append(self.leaf(a))
            elif kind is Broadcasted:
                if a.value is not None:
                    refs.append(self.leaf(a.value))
                elif a.shape == shape or not hoisted(a, shape):
                    ref = self.seen.get(id(a))
                    if ref is None:
                        ref = self.visit(a)
                    else:
                        self.uses[id(a)] = self.uses.get(id(a), 1) + 1
                    refs.append(ref)
                else:
                    refs.append(self.leaf(self.force(a)))
            elif kind is Reduced:
                refs.append(self.leaf(a.value if a.value is not None else self.force(a)))
            else:
                refs.append(self.scalar(a))
        step = tuple(refs)
        ref = self.steps.get(step)
        if ref is None:
            ref = self.steps[step] = len(self.steps)
        self.seen[id(node)] = ref
        self.order.append(node)
        return ref


def schedule(
    root: Leaf | Broadcasted, force: Callable[[Any], Leaf], store: bool = True, evaluates: bool = True
) -> Request:
    """Linearise a tree. `force` evaluates a subtree by itself (a reduction, a hoisted part).

    Who only wants to know what would be done does not evaluate it: then no part counts as evaluated once more.
    """
    if type(root) is Leaf:
        return Request(((), (-1,)), [root], [], root.shape, [])
    assert type(root) is Broadcasted
    shape = root.shape
    b = _Builder(shape, force)
    outs = [b.visit(root)]
    order = b.order
    stored: list[Broadcasted] = []
    if store and len(order) > 1:
        order.pop()
        again = []
        for node in order:
            if node.sig.op.nout > 1 and node.shape == shape:
                # An operation with several results computes all that anybody still waits for.
                _siblings(b, node, outs, stored)
            if node.holders > b.uses.get(id(node), 1):
                # Somebody outside this tree holds it: it may be needed again.
                if node.shape == shape and len(node.sig.outs) == 1 and worth_storing(node, stored):
                    ref = b.seen[id(node)]
                    if ref not in outs:
                        stored.append(node)
                        outs.append(ref)
                else:
                    again.append(node)
        for node in again if evaluates else ():
            node.evaluations += 1
    return Request((tuple(b.steps), tuple(outs)), b.leaves, b.scalars, shape, stored)


def schedule_reduction(operand: Any, reductions: list[Reduced], force: Callable[[Any], Leaf]) -> Request:
    """Linearise the tree of some reductions, whose values come first among the outputs.

    If somebody else holds the tree, and computing it again would cost more than storing it, its
    own value is the next output.
    """
    if operand is None:
        raise EvaluatedError
    if type(operand) is Broadcasted and operand.value is not None:
        operand = operand.value
    keep = False
    if type(operand) is Broadcasted and operand.holders > len(reductions):
        keep = worth_storing(operand)
        operand.evaluations += 1
    request = schedule(operand, force)
    steps, refs = request.key
    if keep:
        request.stored.insert(0, operand)
    top = refs[:1]
    request.key = (steps, top * (len(reductions) + keep) + refs[1:])
    return request


def _siblings(b: _Builder, node: Broadcasted, outs: list[int], stored: list[Broadcasted]) -> None:
    for waiting in node.reducers or ():
        sibling = waiting()
        if sibling is not None and sibling.value is None and id(sibling) not in b.seen:
            outs.append(b.visit(sibling))
            b.order.pop()
            stored.append(sibling)
            b.uses[id(node)] = b.uses.get(id(node), 1) + 1


def survivors(root: Broadcasted, leaves: set[int]) -> bool:
    """Will anything in the tree still read one of some leaves after the tree is evaluated?

    That is: does somebody outside hold an unevaluated node whose operands reach one of them? The
    leaves are given by their ids.
    """
    order: list[Broadcasted] = []
    uses: dict[int, int] = {}
    reaches: set[int] = set()
    _reach(root, leaves, order, uses, reaches)
    order.pop()
    return any(id(node) in reaches and node.holders > uses[id(node)] for node in order)


def _reach(
    node: Broadcasted | Reduced,
    leaves: set[int],
    order: list[Broadcasted],
    uses: dict[int, int],
    reaches: set[int],
) -> bool:
    found = False
    operands: Any = (node.operand,) if type(node) is Reduced else node.args  # type: ignore[union-attr]
    for a in operands or ():
        if type(a) is Leaf:
            found |= id(a) in leaves
        elif type(a) is not Broadcasted and type(a) is not Reduced:
            continue
        elif a.value is not None:
            found |= id(a.value) in leaves
        elif id(a) in uses:
            uses[id(a)] += 1
            found |= id(a) in reaches
        else:
            uses[id(a)] = 1
            found |= _reach(a, leaves, order, uses, reaches)
    if found:
        reaches.add(id(node))
    if type(node) is Broadcasted:  # (a reduction has its value before the tree is evaluated)
        order.append(node)
    return found


def hoisted(node: Broadcasted, shape: tuple[int, ...]) -> bool:
    """Is a subtree of a smaller shape computed first, once per element of its own?"""
    if math.prod(node.shape) * 2 > math.prod(shape):
        return False
    return (node.evaluations > 0 or dag_cost(node) >= HOIST_COST) and pure(node)


def pure(node: Broadcasted) -> bool:
    """Is every operation of a tree known to depend on its operands alone, and never to fail?"""
    return all(n.sig.op.pure for n in operations(node))
