"""Matrix products: several with one matrix, or with parts of one, as one product; stacks with one matrix, too.

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
# So many multiplications take as long as moving a byte.
MULTIPLICATIONS = 1


def products(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Products that share a matrix as one product, where that pays.

    >>> import mirabelle as mb
    >>> D, u, v = mb.ones((9, 9)), mb.ones(9), mb.ones(9)
    >>> program = mb.compile(lambda D, u, v: D @ (u + 1) + D @ (v * 2), passes=["products"]).program(D, u, v)
    >>> [step.name for step in program.plan.steps]
    ['add & multiply', 'matmul', 'add']
    """
    return _side_by_side(outputs)


# Stacks


def stacks(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Products of stacks with one matrix as one product of all their lines.

    >>> import mirabelle as mb
    >>> program = mb.compile(lambda x, D: x @ D, passes=["stacks"]).program(mb.ones((9, 3, 4)), mb.ones((4, 4)))
    >>> program.plan.steps[0].operands[0].shape
    (27, 4)
    """
    return rewritten(outputs, unstacked)


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
    # (Those with parts of one matrix after those with one matrix: more is multiplied than is asked for.)
    wider: dict[Any, list[Product]] = {}
    for x in nodes:
        n = max([level[id(a)] for a in x.operands], default=0)
        if type(x) is Product:
            n += 1
            for side in _shared(x):
                a = x.operands[side]
                groups.setdefault((id(a), side, n), []).append(x)
                cut = _Cut(a, side)
                if cut.fits:
                    wider.setdefault((id(cut.source), cut.base, cut.strides, cut.steps, side, n), []).append(x)
        level[id(x)] = n
    users = users_of(nodes)
    place = {id(x): i for i, x in enumerate(nodes)}
    is_output = {id(x) for x in outputs}
    overwritten: dict[int, int] = {}
    for x in nodes:
        if type(x) is Update and not isinstance(x.base, (Input, Data, Empty)):
            overwritten[id(x.base)] = min(overwritten.get(id(x.base), 1 << 60), place[id(x)])
    chosen: dict[int, _Group] = {}
    for key, found in (*groups.items(), *wider.items()):
        found = [x for x in found if id(x) not in chosen and id(x) not in is_output]
        if len(found) < 2:
            continue
        last = max([place[id(x)] for x in found])
        side = key[1] if len(key) == 3 else key[4]
        found = [x for x in found if overwritten.get(id(_memory(x.operands[1 - side])), 1 << 60) > last]
        if len(key) != 3 and overwritten.get(key[0], 1 << 60) <= last:
            continue
        if len(found) > 1:
            group = _Group(found, side)
            if group.pays(users):
                chosen.update({id(x): group for x in found})
    if not chosen:
        return outputs
    made: dict[int, Node] = {}
    # (By levels: what a group multiplies is made before it.)
    for x in sorted(nodes, key=lambda x: (level[id(x)], type(x) is not Product, place[id(x)])):
        if id(x) in made:
            continue
        if id(x) in chosen:
            group = chosen[id(x)]
            for p, part in zip(group.products, group.joined(made), strict=True):
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


def _shared(x: Product) -> list[int]:
    """Which operands of a product may be the matrix that it shares with others."""
    a, b = x.operands
    if not x.size or a.dtype != b.dtype or x.dtype != a.dtype:
        return []
    found = []
    if len(a.shape) == 2 and len(b.shape) == 1:
        found.append(0)
    if len(b.shape) == 2 and len(a.shape) in (1, 2):
        found.append(1)
    return found


def _place(x: Node) -> tuple[Node, int, tuple[int, ...]]:
    """A value as a part of another: which, and with what offset and strides."""
    if type(x) is Part and not x.table and x.dtype == x.operands[0].dtype:
        return x.operands[0], x.offset, x.strides
    return x, 0, c_strides(x.shape, x.dtype)


class _Cut:
    """A matrix as some rows (of the first operand of products) or columns (of the second) of a wider one.

    `base` is the offset at which these rows or columns are counted from, `at` is the first of them.
    """

    __slots__ = ("at", "base", "count", "fits", "source", "steps", "strides")

    def __init__(self, x: Node, side: int) -> None:
        self.source, offset, self.strides = _place(x)
        self.count, self.steps = x.shape[side], x.shape[1 - side]
        step, other = self.strides[side], self.strides[1 - side]
        self.fits = step > 0 and other > 0
        if self.fits:
            self.at = (offset % other if step < other else offset) // step
            self.base = offset - self.at * step


class _Group:
    """Products with one matrix, or with parts of one that have its rows or columns in common: one product."""

    def __init__(self, products: list[Product], side: int) -> None:
        self.products = products
        self.side = side
        # What is multiplied with the matrix, each once, and which lines of the product these are.
        self.others = list({id(x.operands[1 - side]): x.operands[1 - side] for x in products}.values())
        self.first: dict[int, int] = {}
        self.lines = 0
        for a in self.others:
            self.first[id(a)] = self.lines
            self.lines += _lines_of(a)
        self.cuts = [_Cut(x.operands[side], side) for x in products]
        self.one = all(x.operands[side] is products[0].operands[side] for x in products)
        self.low = 0 if self.one else min([c.at for c in self.cuts])
        self.width = self.cuts[0].count if self.one else max([c.at + c.count for c in self.cuts]) - self.low
        self.steps = self.cuts[0].steps

    def pays(self, users: dict[int, list[Node]]) -> bool:
        """Does one product, of operands that have to be brought together, take less than several?

        Each product less saves a call and reading the matrix. An operand that a kernel computes for it alone is
        written to its place at once; what is in memory is copied there.
        """
        item = self.products[0].dtype.itemsize
        apart = 0
        for x, cut in zip(self.products, self.cuts, strict=True):
            n = cut.count * self.steps
            apart += CALL + max(n * item, n * _lines_of(x.operands[1 - self.side]) // MULTIPLICATIONS)
        n = self.width * self.steps
        together = CALL + max(n * item, n * self.lines // MULTIPLICATIONS)
        if self.spaced() is None:
            for a in self.others:
                if type(a) is not Map or len(users[id(a)]) > 1:
                    together += 2 * a.nbytes + KERNEL
        return together < apart

    def spaced(self) -> tuple[Node, int, tuple[int, int]] | None:
        """Where all that is multiplied lies, if that is lines of one matrix: its memory, offset and strides."""
        if any(len(a.shape) != 1 for a in self.others):
            return None
        source, offset, (step,) = _place(self.others[0])
        if len(self.others) == 1:
            return source, offset, (self.steps * step, step)
        distance = _place(self.others[1])[1] - offset
        for i, a in enumerate(self.others):
            if _place(a) != (source, offset + i * distance, (step,)):
                return None
        return (source, offset, (distance, step)) if distance and step else None

    def joined(self, made: dict[int, Node]) -> list[Node]:
        """The products as parts of one."""
        matrix = self.matrix(made)
        if self.side == 0:
            matrix = _turned(matrix)
        lines = self.multiplied(made)
        first = self.products[0]
        product = product_node(lines, matrix, (self.lines, self.width), first.dtype)
        placed_as(first, product)
        product.serial = max(lines.serial, matrix.serial, product.serial)
        item = first.dtype.itemsize
        parts = []
        for x, cut in zip(self.products, self.cuts, strict=True):
            at = self.first[id(x.operands[1 - self.side])] * self.width + (0 if self.one else cut.at - self.low)
            strides = (self.width * item, item)[2 - len(x.shape) :]
            parts.append(placed_as(x, part_node(product, at * item, x.shape, strides, x.dtype)))
        return parts

    def matrix(self, made: dict[int, Node]) -> Node:
        """The matrix that all products share."""
        if self.one:
            return made[id(self.products[0].operands[self.side])]
        cut = self.cuts[0]
        shape = (self.width, self.steps) if self.side == 0 else (self.steps, self.width)
        offset = cut.base + self.low * cut.strides[self.side]
        dtype = self.products[0].dtype
        return flattened(part_node(made[id(cut.source)], offset, shape, cut.strides, dtype))

    def multiplied(self, made: dict[int, Node]) -> Node:
        """What is multiplied with the matrix, as the lines of another one."""
        dtype = self.products[0].dtype
        spaced = self.spaced()
        if spaced is not None:
            source, offset, strides = spaced
            return flattened(part_node(made[id(source)], offset, (self.lines, self.steps), strides, dtype))
        if len(self.others) == 1:
            return made[id(self.others[0])]
        joined = empty_node((self.lines, self.steps), dtype)
        for a in self.others:
            value = made[id(a)]
            at = self.first[id(a)] * self.steps * dtype.itemsize
            joined = update_node(joined, at, value.shape, c_strides(value.shape, dtype), dtype, value)
            # (Written where it was computed so far.)
            joined.serial = min(joined.serial, max(value.serial, joined.operands[0].serial))
            joined.line = value.line
        return joined


def _lines_of(x: Node) -> int:
    return x.shape[0] if len(x.shape) == 2 else 1
