"""L D Lᴴ with exchanges on a card, after Bunch and Kaufman: for symmetric matrices that are not definite.

One step for each column, or for two, which reads five numbers to decide; what is left of the matrix is
updated on the card.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_factors import solve_with_triangle
from mirabelle.backends.gpu.lib_linalg import diagonal
from mirabelle.backends.gpu.lib_structured import mirrored
from mirabelle.backends.gpu.lib_systems import columns
from mirabelle.backends.gpu.library import routine

# What keeps the elements of the factor from growing.
_BOUND = (1 + math.sqrt(17)) / 8


@routine("linalg.ldl")
def _(xp: Any, a: Any, *, lower: bool = True, hermitian: bool = True) -> Any:
    """The factor with its rows in the order of `a`, the blocks of one or two rows, and that order."""
    n, stack = a.shape[-1], a.shape[:-2]
    hermitian = hermitian and a.dtype.kind == "c"
    if not a.size:
        return a.copy(), a.copy(), xp.zeros(a.shape[:-1], np.int64)
    flat = a.reshape(-1, n, n)
    found = [_of_one(xp, flat[i], lower, hermitian) for i in range(flat.shape[0])]
    parts = (xp.stack(list(p)) for p in zip(*found, strict=True))
    return tuple(p.reshape(*stack, *p.shape[1:]) for p in parts)


def _of_one(xp: Any, a: Any, lower: bool, hermitian: bool) -> tuple[Any, Any, Any]:
    whole = mirrored(xp, a, upper=not lower, hermitian=hermitian)
    if lower:
        triangle, d, order = _factored(xp, whole, hermitian)
    else:  # the same from the other end
        triangle, d, order = _factored(xp, whole[::-1, ::-1].copy(), hermitian)
        triangle, d = triangle[::-1, ::-1], d[::-1, ::-1]
        order = [len(order) - 1 - p for p in reversed(order)]
    places = xp.asarray(order, dtype=np.int64)
    factor = xp.empty(a.shape, a.dtype)
    factor[places] = triangle
    return factor, d.copy(), places


def _factored(xp: Any, rest: Any, hermitian: bool) -> tuple[Any, Any, list[int]]:
    """L and D of the matrix with rows and columns in an order, and that order. Overwrites `rest`."""
    n = rest.shape[0]
    triangle, d, order = xp.eye(n, dtype=rest.dtype), xp.zeros(rest.shape, rest.dtype), list(range(n))
    k = 0
    while k < n:
        at, step = _pivot(xp, rest, k)
        if at != k + step - 1:
            _exchange(xp, rest, triangle, order, k, k + step - 1, at)
        after = slice(k + step, None)
        block = rest[k : k + step, k : k + step]
        if hermitian:
            on = xp.arange(step)
            block[on, on] = diagonal(block).real
        d[k : k + step, k : k + step] = block
        below, beside = rest[after, k : k + step], rest[k : k + step, after]
        part = _divided(xp, below, block)
        triangle[after, k : k + step] = part
        rest[after, after] -= part @ beside
        k += step
    return triangle, d, order


def _pivot(xp: Any, rest: Any, k: int) -> tuple[int, int]:
    """Which row comes next (as the last one of its block), and of how many the block is."""
    n = rest.shape[0]
    if k == n - 1:
        return k, 1
    column = xp.abs(rest[k + 1 :, k])
    low = column.argmax()
    row = xp.abs(xp.take(rest, low + (k + 1), axis=0)[k:])
    inside = xp.where(xp.arange(n - k) == low + 1, -1, row)
    numbers = [xp.abs(rest[k, k]), column.max(), inside.max(), xp.take(row, low + 1), low]
    here, most, across, there, at = xp.stack([x.astype(np.float64) for x in numbers]).tolist()
    at = int(at) + k + 1
    if max(here, most) == 0 or here >= _BOUND * most or here * across >= _BOUND * most * most:
        return k, 1
    return (at, 1) if there >= _BOUND * across else (at, 2)


def _exchange(xp: Any, rest: Any, triangle: Any, order: list[int], k: int, i: int, j: int) -> None:
    """Rows and columns i and j of what is left change places, and the rows of what is done."""
    pair, turned = xp.asarray([i, j]), xp.asarray([j, i])
    rest[pair] = rest[turned]
    rest[:, pair] = rest[:, turned]
    triangle[pair, :k] = triangle[turned, :k]
    order[i], order[j] = order[j], order[i]


def _divided(xp: Any, below: Any, block: Any) -> Any:
    """`below` times the inverse of a block; nothing where there is nothing to divide by."""
    if block.shape[0] == 1:
        return xp.where(block == 0, 0, below / xp.where(block == 0, 1, block)).astype(below.dtype)
    a, b, c, e = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
    determinant = a * e - b * c
    first, second = below[:, 0], below[:, 1]
    return xp.stack([(first * e - second * c) / determinant, (second * a - first * b) / determinant], axis=1)


@routine("linalg.ldl_solve")
def _(xp: Any, factor: Any, d: Any, order: Any, b: Any) -> Any:
    """x with L D Lᴴ x = b: two triangular solves around one with blocks of at most two rows."""
    b, vector = columns(b)
    if not b.size:
        x = b.copy()
        return x[..., 0] if vector else x
    shape = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
    triangle = xp.take_along_axis(factor, order[..., None], axis=-2)
    rows = xp.broadcast_to(order[..., None], (*shape, *order.shape[-1:], 1))
    y = xp.take_along_axis(xp.broadcast_to(b, (*shape, *b.shape[-2:])), rows, axis=-2)
    y = solve_with_triangle(xp, triangle, y, lower=True, unit_diagonal=True)
    y = _by_blocks(xp, d, y)
    y = solve_with_triangle(xp, triangle, y, lower=True, trans=2, unit_diagonal=True)
    x = xp.take_along_axis(y, xp.argsort(rows, axis=-2), axis=-2)
    return x[..., 0].copy() if vector else x


def _by_blocks(xp: Any, d: Any, y: Any) -> Any:
    """Solve with blocks of one or two rows along a diagonal: each row with the other one of its block."""
    n = d.shape[-1]
    main = diagonal(d)
    under, over = xp.zeros(main.shape, d.dtype), xp.zeros(main.shape, d.dtype)
    under[..., 1:], over[..., :-1] = d.diagonal(-1, -2, -1), d.diagonal(1, -2, -1)
    at = xp.arange(n)
    # The second row of a block has its partner before it, the first one after it.
    is_second, is_first = under != 0, over != 0
    partner = xp.where(is_second, at - 1, xp.where(is_first, at + 1, at))
    beside = xp.where(is_second, under, over)
    other = xp.take_along_axis(main, partner, axis=-1)
    back = xp.take_along_axis(beside, partner, axis=-1)
    alone = ~(is_second | is_first)
    determinant = xp.where(alone, main, main * other - beside * back)
    pairs = xp.broadcast_to(partner[..., None], (*y.shape[:-1], 1))
    theirs = xp.take_along_axis(y, pairs, axis=-2)
    whole = xp.where(alone[..., None], y, other[..., None] * y - beside[..., None] * theirs)
    return whole / determinant[..., None]
