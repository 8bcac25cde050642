"""Sums of products of two arrays: what einsum, tensordot and matmul come to.

A contraction goes the cheapest way there is. Without a sum it is an elementwise tree, which waits
and fuses; where each element of the result reads a line of its own of both operands, it is one
fused reduction; else the operands are shown as (stacks of) matrices, and multiplied by BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import cast_to, copied, leaf_family
from mirabelle.arraytypes.functions.outputs import pending
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.arraytypes.wrappers import Wrapper, view_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.tree import Leaf

Labels = Sequence[Any]


def standing_alone(x: Any) -> Any:
    """A wrapper around a result that nobody else holds, as an array of its own in that memory."""
    if not isinstance(x, Wrapper):
        return x
    family = leaf_family(type(x))
    return wrap(family, Leaf(family._standing(verbs.leaf_of(x).view)))


def total(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum along axes in the dtype of `x` (integers wrap around, truth values become `any`)."""
    if not axes:
        return x
    reduction = REDUCTIONS["any" if x.dtype.kind == "b" else "sum"]
    if x.dtype == np.float16:  # sums of half precision are kept in single
        return cast_to(verbs.reduce_(x, reduction, axis=axes, dtype=np.float32), x.dtype)
    return verbs.reduce_(x, reduction, axis=axes, dtype=x.dtype)


def summed_product(x1: Any, x2: Any, axes: tuple[int, ...]) -> Any:
    """The sum of x1 * x2 along axes: one kernel or call, no temporary."""
    dtype = promotion.result_type(x1.dtype, x2.dtype)
    if _of_lines(x1, x2, axes):
        family = leaf_family(type(x1))
        return library.matrix_product(family, x1, x2) if x1.ndim == 1 else library.call("vecdot", x1, x2)
    if dtype == np.float16 and axes:
        wide = verbs.multiply(cast_to(x1, np.dtype(np.float32)), x2)
        return cast_to(total(wide, axes), dtype)
    return total(verbs.multiply(x1, x2), axes)


def _of_lines(x1: Any, x2: Any, axes: tuple[int, ...]) -> bool:
    """Are these inner products of lines that lie in memory, one after the other? Those are BLAS's."""
    return (
        axes == (x1.ndim - 1,)
        and not (x1.carries_derivatives or x2.carries_derivatives)
        and x1.shape == x2.shape
        and x1.dtype == x2.dtype
        and x1.dtype.char in "fd"
        and not pending(x1)
        and not pending(x2)
        and _steps_last(x1)
        and _steps_last(x2)
        and library.has(leaf_family(type(x1)), "vecdot")
        and (x1.ndim > 1 or leaf_family(type(x1)).home.rank < 2)
    )


def _steps_last(x: Any) -> bool:
    """Is the last dimension the one whose elements are neighbours?"""
    view = verbs.leaf_of(x).view
    steps = [abs(s) for s, n in zip(view.strides, view.shape, strict=True) if n > 1 and s]
    return view.shape[-1] > 1 and abs(view.strides[-1]) == min(steps, default=-1)


def arranged(x: Any, labels: Labels, wanted: Labels) -> Any:
    """`x` with its dimensions in the order of `wanted`; those it lacks have size 1."""
    order = tuple(labels.index(label) for label in wanted if label in labels)
    x = verbs.permute_dims(x, order)
    if len(order) < len(wanted):
        x = view_of(x, (*(slice(None) if label in labels else None for label in wanted), ...))
    return x


def contract(x1: Any, labels1: Labels, x2: Any, labels2: Labels, out: Labels) -> Any:
    """The sum of products of two arrays whose dimensions are labelled, over the labels not in `out`."""
    labels1, labels2, out = list(labels1), list(labels2), list(out)
    x1, labels1 = _without_ones(x1, labels1, x2, labels2)
    x2, labels2 = _without_ones(x2, labels2, x1, labels1)
    x1, labels1 = _summed_alone(x1, labels1, labels2, out)
    x2, labels2 = _summed_alone(x2, labels2, labels1, out)
    summed = [label for label in labels1 if label not in out]
    if not summed:
        return verbs.multiply(arranged(x1, labels1, out), arranged(x2, labels2, out))
    batch = [label for label in out if label in labels1 and label in labels2]
    free1 = [label for label in out if label in labels1 and label not in labels2]
    free2 = [label for label in out if label in labels2 and label not in labels1]
    if _fuses(x1, x2, batch, free1, free2):
        full = [*out, *summed]
        axes = tuple(range(len(out), len(full)))
        return summed_product(arranged(x1, labels1, full), arranged(x2, labels2, full), axes)
    if free2 and (not free1 or out.index(free2[0]) < out.index(free1[0])):
        # The transposed product has its dimensions in the order wanted.
        x1, labels1, free1, x2, labels2, free2 = x2, labels2, free2, x1, labels1, free1
    made = _as_matrices(x1, labels1, x2, labels2, batch, free1, summed, free2)
    order = [*batch, *free1, *free2]
    return made if order == out else copied(arranged(made, order, out))


def _fuses(x1: Any, x2: Any, batch: Labels, free1: Labels, free2: Labels) -> bool:
    """Does a fused reduction read every element once, or as good as?"""
    if not free1 and not free2:
        return True
    if free1 and free2:
        return False
    # A matrix and a vector. One product of what lies in memory is BLAS's; a stack, or a tree, is not.
    return bool(batch) or pending(x1 if free1 else x2)


def _without_ones(x: Any, labels: Labels, other: Any, labels2: Labels) -> tuple[Any, list[Any]]:
    """Without dimensions of size 1 that the other array has longer: they stretch."""
    drop = [
        i
        for i, label in enumerate(labels)
        if x.shape[i] == 1 and label in labels2 and other.shape[labels2.index(label)] != 1
    ]
    if not drop:
        return x, list(labels)
    index = tuple(0 if i in drop else slice(None) for i in range(len(labels)))
    return view_of(x, (*index, ...)), [label for i, label in enumerate(labels) if i not in drop]


def _summed_alone(x: Any, labels: Labels, others: Labels, out: Labels) -> tuple[Any, list[Any]]:
    """Summed over the labels that nothing else has."""
    axes = tuple(i for i, label in enumerate(labels) if label not in others and label not in out)
    return total(x, axes), [label for i, label in enumerate(labels) if i not in axes]


def _as_matrices(
    x1: Any,
    labels1: Labels,
    x2: Any,
    labels2: Labels,
    batch: Labels,
    free1: Labels,
    summed: Labels,
    free2: Labels,
) -> Any:
    """The product as one of (stacks of) matrices: batch, free1 x summed times summed x free2."""
    if not batch and len(summed) == 1 and len(free1) < 2 and len(free2) < 2:  # as they are, or turned
        return verbs.matmul(arranged(x1, labels1, [*free1, *summed]), arranged(x2, labels2, [*summed, *free2]))
    # Dimensions that become one are taken in the order of the larger operand, so that it is not copied.
    large, labels = (x1, labels1) if x1.size >= x2.size else (x2, labels2)
    summed = _in_memory_order(large, labels, summed)
    sizes = {**dict(zip(labels1, x1.shape, strict=True)), **dict(zip(labels2, x2.shape, strict=True))}
    stack, rows, columns = ([sizes[label] for label in group] for group in (batch, free1, free2))
    steps = math.prod(sizes[label] for label in summed)
    a = _matrix(arranged(x1, labels1, [*batch, *free1, *summed]), stack, math.prod(rows), steps)
    b = _matrix(arranged(x2, labels2, [*batch, *summed, *free2]), stack, steps, math.prod(columns))
    if not free1 and not batch:
        made = verbs.matmul(verbs.reshape(a, (steps,)), b)
    elif not free2 and not batch:
        made = verbs.matmul(a, verbs.reshape(b, (steps,)))
    else:
        made = verbs.matmul(a, b)
    shape = (*stack, *rows, *columns)
    return made if made.shape == shape else standing_alone(verbs.reshape(made, shape))


def _matrix(x: Any, stack: list[int], rows: int, columns: int) -> Any:
    shape = (*stack, rows, columns)
    return x if x.shape == shape else verbs.reshape(x, shape)


def _in_memory_order(x: Any, labels: Labels, chosen: Labels) -> list[Any]:
    """Labels in the order in which their dimensions step through memory, longest steps first."""
    if len(chosen) < 2 or x.carries_derivatives:
        return list(chosen)
    strides = dict(zip(labels, verbs.leaf_of(x).view.strides, strict=True))
    return sorted(chosen, key=lambda label: -abs(strides[label]))
