"""Matrix products: several with one matrix as one, and stacks of products with one matrix as one.

Sums of products are taken in the order in which BLAS takes them, which depends on shapes: results of this pass
agree to rounding.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Data,
    Empty,
    Input,
    Map,
    Node,
    Part,
    Product,
    Update,
    c_strides,
    empty_node,
    ordered,
    part_node,
    placed_as,
    product_node,
    rewritten,
    update_node,
    users_of,
)
from mirabelle.arraytypes.programs.passes.parts import flattened

# What calling a library, or starting a kernel, takes: so many bytes could be moved meanwhile.
CALL, KERNEL = 1 << 15, 1 << 13


def products(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Products that share a matrix as one product, where that pays.

    >>> import mirabelle as mb
    >>> D, u, v = mb.ones((9, 9)), mb.ones(9), mb.ones(9)
    >>> program = mb.compile(lambda D, u, v: D @ (u + 1) + D @ (v * 2), passes=["products"]).program(D, u, v)
    >>> [step.name for step in program.plan.steps]
    ['add', 'multiply', 'matmul', 'add']
    """
    return _side_by_side(rewritten(outputs, unstacked))


# Stacks


def unstacked(node: Node) -> Node:
    """A stack of products with one matrix as the product of all lines of the stack with it."""
    if type(node) is not Product or len(node.shape) < 3 or not all(a.size for a in node.operands):
        return node
    x1, x2 = [_unstretched(a) for a in node.operands]
    if len(x1.shape) > 2 and len(x2.shape) == 2 and _contiguous(x1):
        return _lines(x1, x2, node)
    if len(x2.shape) > 2 and len(x1.shape) == 2:
        # The transposed product, if that is the one whose lines follow one another.
        turned = _turned(x2)
        if _contiguous(turned):
            other = _lines(turned, _turned(x1), node, turn=True)
            return flattened(_turned(other))
    return node


def _lines(x1: Node, x2: Node, node: Node, turn: bool = False) -> Node:
    lines, n = x1.size // x1.shape[-1], x1.shape[-1]
    flat = flattened(_reshaped(x1, (lines, n)))
    made = product_node(flat, x2, (lines, x2.shape[-1]), node.dtype)
    made.line = made.line or node.line
    return _reshaped(made, (*x1.shape[:-1], x2.shape[-1]))


def _reshaped(x: Node, shape: tuple[int, ...]) -> Node:
    return part_node(x, 0, shape, c_strides(shape, x.dtype), x.dtype)


def _turned(x: Node) -> Node:
    """A matrix, or each of a stack, transposed."""
    strides = c_strides(x.shape, x.dtype)
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    return flattened(part_node(x, 0, shape, (*strides[:-2], strides[-1], strides[-2]), x.dtype))


def _unstretched(x: Node) -> Node:
    """The one matrix of which a stack consists."""
    if type(x) is Part and len(x.shape) > 2 and not any(x.strides[:-2]):
        return part_node(x.operands[0], x.offset, x.shape[-2:], x.strides[-2:], x.dtype)
    return x


def _contiguous(x: Node) -> bool:
    from mirabelle.arraytypes.programs.passes.geometry import is_contiguous

    return type(x) is not Part or is_contiguous(x)


# Side by side


def _side_by_side(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    nodes = ordered(outputs)
    if sum(type(x) is Product for x in nodes) < 2:
        return outputs
    # Products of one level do not depend on one another.
    level: dict[int, int] = {}
    groups: dict[Any, list[Product]] = {}
    for x in nodes:
        n = max([level[id(a)] for a in x.operands], default=0)
        if type(x) is Product:
            n += 1
            for key in _shared(x, n):
                groups.setdefault(key, []).append(x)
        level[id(x)] = n
    users = users_of(nodes)
    place = {id(x): i for i, x in enumerate(nodes)}
    is_output = {id(x) for x in outputs}
    overwritten: dict[int, int] = {}
    for x in nodes:
        if type(x) is Update and not isinstance(x.base, (Input, Data, Empty)):
            overwritten[id(x.base)] = min(overwritten.get(id(x.base), 1 << 60), place[id(x)])
    chosen: dict[int, tuple[Any, list[Product]]] = {}
    for key, found in groups.items():
        last = max([place[id(x)] for x in found])
        side = key[1]
        found = [
            x
            for x in found
            if id(x) not in chosen
            and id(x) not in is_output
            and overwritten.get(id(_memory(x.operands[1 - side])), 1 << 60) > last
        ]
        if len(found) > 1 and _pays(found, side, users):
            chosen.update({id(x): (key, found) for x in found})
    if not chosen:
        return outputs
    made: dict[int, Node] = {}
    # (By levels: what a group multiplies is made before it.)
    for x in sorted(nodes, key=lambda x: (level[id(x)], type(x) is not Product, place[id(x)])):
        if id(x) in made:
            continue
        if id(x) in chosen:
            key, group = chosen[id(x)]
            for p, part in zip(group, _joined(group, key[1], made), strict=True):
                made[id(p)] = part
            continue
        operands = tuple([made[id(a)] for a in x.operands])
        if all(a is b for a, b in zip(operands, x.operands, strict=True)):
            made[id(x)] = x
        else:
            made[id(x)] = placed_as(x, flattened(x.rebuilt(operands)))
    return tuple([made[id(x)] for x in outputs])


def _memory(x: Node) -> Node:
    while type(x) is Part:
        x = x.operands[0]
    return x


def _shared(x: Product, level: int) -> list[Any]:
    """The groups that a product may belong to: by the matrix it shares, and which operand that is."""
    a, b = x.operands
    if not x.size or a.dtype != b.dtype or x.dtype != a.dtype:
        return []
    found = []
    if len(a.shape) == 2 and len(b.shape) == 1:
        found.append((id(a), 0, level, 1))
    if len(b.shape) == 2 and len(a.shape) in (1, 2):
        found.append((id(b), 1, level, 0))
    return found


def _pays(group: list[Product], side: int, users: dict[int, list[Node]]) -> bool:
    """Does one product, of operands that have to be brought together, take less than several?

    Each product less saves a call and reading the matrix. An operand that a kernel computes for it alone is
    written to its place at once; what is in memory is copied there.
    """
    shared = group[0].operands[side]
    saved = (len(group) - 1) * (CALL + shared.nbytes)
    copied = 0
    for x in group:
        a = x.operands[1 - side]
        if type(a) is not Map or len(users[id(a)]) > 1:
            copied += 2 * a.nbytes + KERNEL
    return saved > copied


def _joined(group: list[Product], side: int, made: dict[int, Node]) -> list[Node]:
    """The products of a group as parts of one: what is multiplied are the lines of one matrix."""
    lines = [1 if len(x.operands[1 - side].shape) == 1 else x.operands[1 - side].shape[0] for x in group]
    first = group[0].operands[1 - side]
    dtype, n = first.dtype, first.shape[-1]
    step = n * dtype.itemsize
    joined = empty_node((sum(lines), n), dtype)
    at = 0
    for x, count in zip(group, lines, strict=True):
        value = made[id(x.operands[1 - side])]
        joined = update_node(joined, at * step, value.shape, c_strides(value.shape, dtype), dtype, value)
        # (Written where it was computed so far.)
        joined.serial = min(joined.serial, max(value.serial, joined.operands[0].serial))
        joined.line = value.line
        at += count
    matrix = made[id(group[0].operands[side])]
    if side == 0:
        matrix = _turned(matrix)
    width = matrix.shape[-1]
    product = product_node(joined, matrix, (sum(lines), width), group[0].dtype)
    placed_as(group[0], product)
    product.serial = max(joined.serial, matrix.serial, product.serial)
    parts, at = [], 0
    for x, count in zip(group, lines, strict=True):
        offset = at * width * x.dtype.itemsize
        parts.append(placed_as(x, part_node(product, offset, x.shape, c_strides(x.shape, x.dtype), x.dtype)))
        at += count
    return parts
