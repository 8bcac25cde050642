"""Sums of products of two operands, as matrix products.

`mb.sum(a[:, :, None] * b[None], axis=1)` says a matrix product, and a convolution written by windows says one,
too. A library computes it many times as quickly, also where its operands have to be put in order first.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from mirabelle.arraytypes.programs.expansions import Library, Sums, expand, expanded, noted
from mirabelle.arraytypes.programs.graph import (
    Fold,
    Map,
    Node,
    Part,
    c_strides,
    part_node,
    product_node,
    rewritten,
)

# The least number of rows, columns and terms of a product, and of its multiplications, for which a library is
# called. (Rows of so few elements as a narrow result has take a reduction as long as longer ones.)
NARROWEST, SHORTEST, LEAST_WORK = 4, 8, 1 << 16


def contractions(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with large sums of products of two operands as products of matrices."""
    return rewritten(outputs, _contracted)


def _contracted(node: Node) -> Node:
    if not isinstance(node, Fold) or not _sums_products(node):
        return node
    chosen = expanded(node)
    if chosen is not None:
        return chosen
    made = as_product(node, NARROWEST, SHORTEST, LEAST_WORK)
    if made is None:
        return node
    noted("library", node)
    return made


@expand.method
def _(node: Fold, how: Library) -> Node | None:
    return as_product(node, 1, 1, 1)


@expand.method
def _(node: Fold, how: Sums) -> Node:
    return node


def _sums_products(node: Fold) -> bool:
    """Is it a sum of products of two operands?"""
    product = node.operands[0]
    if node.reduction.name != "sum" or node.dtype.kind not in "fc":
        return False
    if not isinstance(product, Map) or product.sig.op.name != "multiply" or product.dtype != node.dtype:
        return False
    return all(isinstance(a, Node) and a.dtype == node.dtype for a in product.args)


def as_product(node: Fold, narrowest: int, shortest: int, least: int) -> Node | None:
    """A sum of products as a product of matrices of so many rows, terms and multiplications at least; None
    where it is none."""
    product: Any = node.operands[0]
    a, b = [_steps(x, product.shape) for x in product.args]
    shape = product.shape
    rows, columns, inner = [], [], []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if d in node.axes:
            if not a[d] or not b[d]:
                return None
            inner.append(d)
        elif a[d] and not b[d]:
            rows.append(d)
        elif b[d] and not a[d]:
            columns.append(d)
        else:
            return None
    m, n, k = [math.prod([shape[d] for d in dims]) for dims in (rows, columns, inner)]
    if min(m, n) < narrowest or k < shortest or m * n * k < least:
        return None
    left = _matrix(product.args[0], a, shape, rows, inner, m, k)
    right = _matrix(product.args[1], b, shape, inner, columns, k, n)
    total = product_node(left, right, (m, n), node.dtype)
    # The dimensions of the sum, from those of the product of matrices.
    places = [*rows, *columns]
    made = c_strides(tuple([shape[d] for d in places]), node.dtype)
    strides = dict(zip(places, made, strict=True))
    kept = [d for d in range(len(shape)) if node.keepdims or d not in node.axes]
    return part_node(total, 0, node.shape, tuple([strides.get(d, 0) for d in kept]), node.dtype)


def _steps(x: Node, shape: tuple[int, ...]) -> list[int]:
    """The strides of an operand over the dimensions of the product, 0 where it is stretched."""
    strides = x.strides if isinstance(x, Part) and not x.table else c_strides(x.shape, x.dtype)
    pad = len(shape) - len(x.shape)
    found = [0] * pad
    for n, s, full in zip(x.shape, strides, shape[pad:], strict=True):
        found.append(0 if n == 1 and full != 1 else s)
    return found


def _matrix(
    x: Node, strides: list[int], shape: tuple[int, ...], first: list[int], second: list[int], m: int, k: int
) -> Node:
    """An operand as a matrix: in place where strides can say it, else put in order."""
    source, offset = (x.source, x.offset) if isinstance(x, Part) and not x.table else (x, 0)
    dims = [*first, *second]
    sizes = tuple([shape[d] for d in dims])
    spread = part_node(source, offset, sizes, tuple([strides[d] for d in dims]), x.dtype)
    a, b = _merged([(shape[d], strides[d]) for d in first]), _merged([(shape[d], strides[d]) for d in second])
    if a is not None and b is not None:
        return part_node(source, offset, (m, k), (a, b), x.dtype)
    return part_node(spread, 0, (m, k), c_strides((m, k), x.dtype), x.dtype)


def _merged(dims: list[tuple[int, int]]) -> int | None:
    """The stride of dimensions that are evenly spaced together; None where they are not."""
    for (_, outer), (n, inner) in itertools.pairwise(dims):
        if outer != n * inner:
            return None
    return dims[-1][1] if dims else 0
