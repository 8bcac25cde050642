"""Sums of matrix products as one product: `A @ x + B @ y` is `[A B] @ [x; y]`.

The matrices are joined when the program is compiled, if they depend on no argument, and what they are
multiplied with is computed into its place of one array. One product reads and writes its result once, and long
sums keep a processor busier than short ones. The terms of a sum are taken in another order: results agree to
rounding.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import (
    Empty,
    Map,
    Node,
    Part,
    Product,
    Update,
    c_strides,
    empty_node,
    map_node,
    ordered,
    part_node,
    placed_as,
    product_node,
    update_node,
    users_of,
)
from mirabelle.arraytypes.programs.passes.constants import constants
from mirabelle.arraytypes.programs.passes.geometry import is_contiguous
from mirabelle.arraytypes.programs.passes.products import CALL, KERNEL, _unstretched
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import intern

# A product, and what it is multiplied by: one, or a power of two, which rounds nothing.
Term = tuple[float, Product]


def sums(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Sums of products as one product, where that pays.

    >>> import mirabelle as mb
    >>> A, B = mb.ones((9, 9)), mb.ones((9, 9))
    >>> f = mb.compile(lambda x, y: A @ (x + 1) - B @ (y * 2), passes=["sums"])
    >>> x = mb.ones((9, 50))
    >>> [step.name for step in f.program(x, x).plan.steps]
    ['add_multiply', 'matmul']
    >>> print(f(x, x)[0, 0])
    0.0
    """
    nodes = ordered(outputs)
    if sum(type(x) is Product for x in nodes) < 2:
        return outputs
    users = users_of(nodes)
    is_output = {id(x) for x in outputs}
    terms: dict[int, list[Term]] = {}
    tops: dict[int, list[Term]] = {}
    for x in nodes:
        found = _terms(x, terms)
        if not found:
            continue
        for a in x.operands if type(x) is Map else ():
            tops.pop(id(a), None)
        if len(found) > 1:
            tops[id(x)] = found
        if len(users.get(id(x), ())) == 1 and id(x) not in is_output:
            terms[id(x)] = found
    chosen: dict[int, list[Term]] = {}
    for key, found in tops.items():
        group = _group(found, users)
        if len(group) > 1:
            chosen[key] = group
    if not chosen:
        return outputs
    made: dict[int, Node] = {}
    for x in nodes:
        operands = tuple([made[id(a)] for a in x.operands])
        new: Node = x
        if id(x) in chosen:
            new = _summed(x, tops[id(x)], chosen[id(x)], made)
        elif any(a is not b for a, b in zip(operands, x.operands, strict=True)):
            new = placed_as(x, x.rebuilt(operands))
        made[id(x)] = new
    return constants(tuple([made[id(x)] for x in outputs]))


def _terms(x: Any, terms: dict[int, list[Term]]) -> list[Term] | None:
    """The products that a value is the sum of, if it is of nothing else; `terms` of those that it may take
    apart."""
    if type(x) is Product:
        return [(1.0, x)] if x.size and x.dtype.kind in "fc" else None
    if type(x) is not Map or any(d != x.dtype for d in x.sig.ins):
        return None
    name = x.sig.op.name
    if name in ("add", "subtract") and len(x.operands) == 2 and x.operands[0] is not x.operands[1]:
        a, b = [terms.get(id(a)) if a.shape == x.shape else None for a in x.operands]
        if a is None or b is None:
            return None
        sign = 1.0 if name == "add" else -1.0
        return [*a, *[(sign * f, p) for f, p in b]]
    if len(x.operands) != 1 or x.operands[0].shape != x.shape:
        return None
    factor = None
    number: Any = next((a for a in x.args if not isinstance(a, Node)), None)
    if name == "negative":
        factor = -1.0
    elif name == "add" and number == 0:
        factor = 1.0  # (Python's sum begins with a zero)
    elif name == "multiply" and isinstance(number, (int, float, np.floating)):
        by = float(number)
        factor = by if math.frexp(by)[0] in (0.5, -0.5) and 2.0**-16 <= abs(by) <= 2.0**16 else None
    found = terms.get(id(x.operands[0]))
    return None if found is None or factor is None else [(factor * f, p) for f, p in found]


def _sides(p: Product) -> tuple[int, Node, Node]:
    """Which operand of a product is the matrix that stays small: its number, the matrix, the other one."""
    a, b = [_unstretched(x) for x in p.operands]
    if len(b.shape) == 2 and (len(a.shape) != 2 or (a.bound, a.size) > (b.bound, b.size)):
        return 1, b, a
    return 0, a, b


def _group(terms: list[Term], users: dict[int, list[Node]]) -> list[Term]:
    """The terms of a sum that are to be one product."""
    groups: dict[Any, list[Term]] = {}
    for term in terms:
        p = term[1]
        side, matrix, other = _sides(p)
        if len(matrix.shape) != 2 or any(a.dtype != p.dtype for a in p.operands):
            continue
        if p.shape[:-2] != other.shape[:-2] or any(g is term for g in groups):
            continue
        # A product less is a call less, and a result that is neither written nor read.
        costs = 0 if _lies_well(other, side, terms) else _copied(other, users)
        costs += 2 * matrix.nbytes + KERNEL if matrix.bound else 0
        if costs < CALL + 2 * p.nbytes:
            groups.setdefault((side, len(other.shape)), []).append(term)
    return max(groups.values(), key=len, default=[])


def _lies_well(x: Any, side: int, terms: list[Term]) -> bool:
    """Does an operand lie next to that of another term already?"""
    if type(x) is not Part:
        return False
    axis = -1 if side or len(x.shape) == 1 else -2
    others: list[Any] = [_sides(p)[2] for _, p in terms]
    return any(_follows(x, y, axis) or _follows(y, x, axis) for y in others if len(y.shape) == len(x.shape))


def _copied(x: Any, users: dict[int, list[Node]]) -> int:
    """The bytes that are moved to bring an operand to its place in a larger array."""
    if type(x) is Part and not x.table and is_contiguous(x) and x.size == x.source.size:
        x = x.source if len(users.get(id(x), ())) == 1 else x
    if len(users.get(id(x), ())) == 1:
        if type(x) is Map:
            return 0
        while type(x) is Update and len(users.get(id(x), ())) == 1:
            x = x.base
        if type(x) is Empty:
            return 0
    return 2 * x.nbytes + KERNEL


def _summed(top: Node, terms: list[Term], group: list[Term], made: dict[int, Node]) -> Node:
    side = _sides(group[0][1])[0]
    matrices, others = [], []
    for factor, p in group:
        _, matrix, other = _sides(p)
        matrices.append(_times(_moved(matrix, made), factor))
        others.append(_moved(other, made))
    axis = -1 if side or len(others[0].shape) == 1 else -2
    matrix, other = _joined(matrices, -1 - (side == 1)), _joined(others, axis)
    operands = (other, matrix) if side else (matrix, other)
    result: Node = product_node(*operands, top.shape, top.dtype)
    result.serial = max(top.serial, *[a.serial for a in operands])
    result.line = group[0][1].line
    for factor, p in terms:
        if not any(p is q for _, q in group):
            name = "add" if factor > 0 else "subtract"
            sig = intern(TABLE[name], (top.dtype, top.dtype), (top.dtype,))
            result = placed_as(top, map_node(sig, (result, _times(made[id(p)], abs(factor))), top.shape))
    return result


def _moved(x: Node, made: dict[int, Node]) -> Node:
    """An operand as it is now. (One that is not stretched any more is not among the nodes.)"""
    if id(x) in made or not x.operands:
        return made.get(id(x), x)
    return x.rebuilt(tuple([made.get(id(a), a) for a in x.operands]))


def _times(x: Node, factor: float) -> Node:
    if factor == 1:
        return x
    dtype = x.dtype
    if factor == -1:
        return placed_as(x, map_node(intern(TABLE["negative"], (dtype,), (dtype,)), (x,), x.shape))
    sig = intern(TABLE["multiply"], (dtype, dtype), (dtype,))
    return placed_as(x, map_node(sig, (x, dtype.type(factor)), x.shape))


def _follows(a: Any, b: Any, axis: int) -> bool:
    """Do two parts of one memory lie next to each other along an axis already?"""
    if type(a) is not Part or type(b) is not Part or a.source is not b.source or a.table or b.table:
        return False
    return a.strides == b.strides and b.offset - a.offset == a.shape[axis] * a.strides[axis] != 0


def _joined(pieces: list[Node], axis: int) -> Node:
    """Values next to each other along an axis, as updates of new memory."""
    first: Any = pieces[0]
    axis += len(first.shape)
    shape = list(first.shape)
    shape[axis] = sum([x.shape[axis] for x in pieces])
    if all(_follows(a, b, axis) for a, b in itertools.pairwise(pieces)):
        return part_node(first.source, first.offset, tuple(shape), first.strides, first.dtype)
    strides = c_strides(tuple(shape), first.dtype)
    result = empty_node(tuple(shape), first.dtype)
    at = 0
    for x in pieces:
        result = update_node(result, at * strides[axis], x.shape, strides, x.dtype, x)
        # (Written where it was computed so far.)
        result.serial = min(result.serial, max(x.serial, result.operands[0].serial))
        result.line = x.line
        at += x.shape[axis]
    return result
