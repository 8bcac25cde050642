"""Small and narrow matrix products as sums of products.

A call of a library takes microseconds whatever the size, and ends a fused kernel. As a reduction a small
product is part of what runs natively, and what it multiplies is computed inside.
"""

from __future__ import annotations

from mirabelle.arraytypes.programs.expansions import Library, Sums, expand, expanded, noted
from mirabelle.arraytypes.programs.graph import (
    Node,
    Product,
    c_strides,
    fold_node,
    map_node,
    part_node,
    rewritten,
)
from mirabelle.dispatch import promotion
from mirabelle.dispatch.ops import TABLE

# A reduction goes through so many rows in about the time of a call of a library, with so many multiplications.
MOST_ROWS, MOST_MULTIPLICATIONS = 256, 1 << 15
# Products of at most so many terms, with at most so many rows or columns, are elementwise.
NARROW = 4
# From so many columns on rows of the result are summed, not single elements.
COLUMNS = 4


def summed_products(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with small products of two matrices, or of a matrix and a vector, as sums."""
    return rewritten(outputs, _summed)


def _summed(node: Node) -> Node:
    if not isinstance(node, Product) or node.dtype.kind not in "fciu":
        return node
    chosen = expanded(node)
    if chosen is not None:
        return chosen
    made = as_sums(node)
    if made is not node:
        noted("sums", node)
    return made


@expand.method
def _(node: Product, how: Library) -> Node:
    return node


@expand.method
def _(node: Product, how: Sums) -> Node | None:
    made = as_sums(node, always=True)
    return None if made is node else made


def as_sums(node: Product, always: bool = False) -> Node:
    """A product of two matrices, or of a matrix and a vector, as sums, if it is small; the node itself if it is
    not."""
    a, b = node.operands
    if a.ndim > 2 or b.ndim > 2 or a.dtype != node.dtype or b.dtype != node.dtype or not node.size:
        return node
    k = a.shape[-1]
    m = a.shape[0] if a.ndim == 2 else 1
    n = b.shape[1] if b.ndim == 2 else 1
    if 0 < k <= NARROW and min(m, n) <= NARROW:
        return _terms(node, a, b, k)
    rows = m * k if n >= COLUMNS else m * n
    if not k or (not always and (rows > MOST_ROWS or m * n * k > MOST_MULTIPLICATIONS)):
        return node
    from mirabelle.arraytypes.reductions import REDUCTIONS

    size = node.dtype.itemsize
    a_strides = c_strides((m, k), node.dtype)
    b_strides = c_strides((k, n), node.dtype)
    if n >= COLUMNS:
        shape, axis = (m, k, n), 1
        left = (a_strides[0], a_strides[1], 0)
        right = (0, b_strides[0], size)
    else:
        shape, axis = (m, n, k), 2
        left = (a_strides[0], 0, a_strides[1])
        right = (0, b_strides[1] if n > 1 else 0, b_strides[0])
    sig = promotion.signature(TABLE["multiply"], (node.dtype, node.dtype))
    factors = tuple([part_node(x, 0, shape, strides, node.dtype) for x, strides in ((a, left), (b, right))])
    product = map_node(sig, factors, shape)
    total = fold_node(REDUCTIONS["sum"], product, (axis,), False, (m, n), node.dtype)
    return part_node(total, 0, node.shape, c_strides(node.shape, node.dtype), node.dtype)


def _terms(node: Product, a: Node, b: Node, k: int) -> Node:
    """The sum of k products of a column and a row, written out."""
    times = promotion.signature(TABLE["multiply"], (node.dtype, node.dtype))
    plus = promotion.signature(TABLE["add"], (node.dtype, node.dtype))
    a_strides, b_strides = c_strides(a.shape, a.dtype), c_strides(b.shape, b.dtype)
    has_rows, has_columns = a.ndim == 2, b.ndim == 2
    left = (*a_strides[:-1], *[0] * has_columns)
    right = (*[0] * has_rows, *b_strides[1:])
    total: Node | None = None
    for t in range(k):
        column = part_node(a, t * a_strides[-1], node.shape, left, node.dtype)
        row = part_node(b, t * b_strides[0], node.shape, right, node.dtype)
        term = map_node(times, (column, row), node.shape)
        total = term if total is None else map_node(plus, (total, term), node.shape)
    assert total is not None
    return total
