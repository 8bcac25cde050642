"""Reductions: of what is turned, stretched or reduced already."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import (
    Fold,
    Node,
    Part,
    c_strides,
    fold_node,
    map_node,
    ordered,
    part_node,
    placed_as,
    users_of,
)
from mirabelle.arraytypes.programs.passes.parts import flattened
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import intern

# What repeats changes nothing for these, and the order of steps changes nothing either.
_CHOICES = frozenset(("min", "max", "any", "all"))


def folds(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Reductions of transposes, of stretched values and of reductions as reductions of what is below.

    >>> import mirabelle as mb
    >>> x = mb.ones((3, 4, 5))
    >>> program = mb.compile(lambda x: mb.max(mb.max(x.T, axis=1), axis=0), passes=["folds"]).program(x)
    >>> [(step.name, step.axes) for step in program.plan.steps]
    [('max', (1, 2))]
    """
    nodes = ordered(outputs)
    if not any(type(x) is Fold for x in nodes):
        return outputs
    users = users_of(nodes)
    is_output = {id(x) for x in outputs}
    made: dict[int, Node] = {}
    for x in nodes:
        operands = tuple([made[id(a)] for a in x.operands])
        new = x
        if any(a is not b for a, b in zip(operands, x.operands, strict=True)):
            new = placed_as(x, flattened(x.rebuilt(operands)))
        if type(new) is Fold:
            below = x.operands[0]
            alone = len(users[id(below)]) == 1 and id(below) not in is_output
            new = placed_as(x, _simpler(new, alone))
        made[id(x)] = new
    return tuple([made[id(x)] for x in outputs])


def _simpler(fold: Any, alone: bool) -> Node:
    """A reduction as one of what is below; `alone`: if nobody else reads what it reads."""
    if fold.reduction.scalar is not None or not fold.operands[0].size:
        return fold
    made: Any = fold
    for _ in range(4):  # (what is turned may be reduced, and stretched)
        before = made
        for rule in (_of_fold, _of_stretched, _of_turned):
            if type(made) is Fold and (alone or rule is not _of_fold):
                made = rule(made)
        if made is before:
            break
    if made is not fold and made.line is None:
        made.line = fold.line
    return made


def _shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of what is left of a shape."""
    if keepdims:
        return tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _reshaped(x: Node, shape: tuple[int, ...]) -> Node:
    return part_node(x, 0, shape, c_strides(shape, x.dtype), x.dtype)


def _of_fold(outer: Any) -> Node:
    """A reduction of a reduction, in one: where the order in which elements are combined changes nothing."""
    inner = outer.operands[0]
    if type(inner) is not Fold or inner.reduction is not outer.reduction or inner.dtype != outer.dtype:
        return outer
    if outer.reduction.name not in _CHOICES and outer.dtype.kind not in "iu":
        return outer
    source = inner.operands[0]
    left = list(range(len(source.shape)))
    if not inner.keepdims:
        left = [i for i in left if i not in inner.axes]
    axes = tuple(sorted({*inner.axes, *[left[i] for i in outer.axes]}))
    made = fold_node(outer.reduction, source, axes, False, _shape(source.shape, axes, False), outer.dtype)
    made.line = made.line or outer.line
    return flattened(_reshaped(made, outer.shape))


def _of_stretched(fold: Any) -> Node:
    """A reduction along dimensions in which all elements are one."""
    part = fold.operands[0]
    if type(part) is not Part or part.table:
        return fold
    along = [i for i in fold.axes if part.strides[i] == 0 and part.shape[i] > 1]
    if not along or (fold.reduction.name not in _CHOICES and fold.reduction.name != "sum"):
        return fold
    if fold.reduction.name == "sum" and fold.dtype.kind not in "iu":
        return fold
    shape = tuple([1 if i in along else n for i, n in enumerate(part.shape)])
    narrow = part_node(part.operands[0], part.offset, shape, part.strides, part.dtype)
    made = fold_node(fold.reduction, narrow, fold.axes, fold.keepdims, fold.shape, fold.dtype)
    if fold.reduction.name != "sum":
        return made
    made.line = made.line or fold.line
    repeats = np.array(part.size // narrow.size).astype(fold.dtype)[()]
    sig = intern(TABLE["multiply"], (fold.dtype, fold.dtype), (fold.dtype,))
    return map_node(sig, (made, repeats), fold.shape)


def _of_turned(fold: Any) -> Node:
    """A reduction of a transpose as one of what it shows: the kernel goes through that in its order."""
    part = fold.operands[0]
    if type(part) is not Part or part.table or part.offset or part.dtype != part.operands[0].dtype:
        return fold
    source = part.operands[0]
    steps = c_strides(source.shape, source.dtype)
    if len(part.shape) != len(source.shape) or 1 in source.shape or len(set(steps)) < len(steps):
        return fold
    where = {s: i for i, s in enumerate(steps)}
    order = [where.get(s, -1) for s in part.strides]
    if sorted(order) != list(range(len(steps))) or any(
        n != source.shape[i] for n, i in zip(part.shape, order, strict=True)
    ):
        return fold
    axes = tuple(sorted([order[i] for i in fold.axes]))
    made = fold_node(fold.reduction, source, axes, False, _shape(source.shape, axes, False), fold.dtype)
    made.line = made.line or fold.line
    # What is left, in the order in which the transpose had it.
    left = [i for i in range(len(steps)) if i not in axes]
    strides = dict(zip(left, c_strides(made.shape, made.dtype), strict=True))
    turned = [0 if i in fold.axes else strides[order[i]] for i in range(len(order))]
    if not fold.keepdims:
        turned = [s for i, s in enumerate(turned) if i not in fold.axes]
    return flattened(part_node(made, 0, fold.shape, tuple(turned), made.dtype))
