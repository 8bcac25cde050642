"""Matrix products on a graphics card for element types that BLAS does not know.

Integers of all widths wrap around in their dtype, products of truth values are `any` of `and`, and
half precision is added up in single precision: what NumPy's `matmul` means. How a product is cut
into tiles and parts depends on its shape alone, so results are the same on every run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import handle
from mirabelle.backends.codegen.gridproduct import SIDE, ProductLayout, product_source
from mirabelle.backends.host.layout import merge
from mirabelle.backends.host.matmul import result_shape
from mirabelle.dispatch import counters, verbs

# So many blocks keep a large card busy; a sum is cut into parts of at least so many steps to have them.
BLOCKS, LEAST_STEPS = 256, 256
# On a simulated card, whose threads Python runs one by one, larger products are NumPy's.
SIMULATED = 1 << 12


def product(a: Any, b: Any) -> Any:
    """a @ b for views of a card, of any layout and dtypes, as a new view."""
    dtype = np.result_type(a.dtype, b.dtype)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            "A matrix product needs operands of at least one dimension; multiply by numbers with *."
        )
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ValueError(
            f"Shapes {a.shape} and {b.shape} do not fit a matrix product: {a.shape[-1]} columns meet "
            f"{b.shape[max(b.ndim - 2, 0)]} rows."
        )
    shape = result_shape(a, b)
    family = type(a).family
    driver = family.driver()
    if driver.simulated and math.prod(shape) * a.shape[-1] > SIMULATED:
        return _by_numpy(driver, a, b, dtype)
    if a.ndim == 1:
        a = a[None, :]
    if b.ndim == 1:
        b = b[:, None]
    rows, columns = a.shape[-2], b.shape[-1]
    if not math.prod(shape):
        return family._empty(shape, dtype)
    if min(rows, columns) == 1:
        return _by_reduction(family, a, b, dtype).reshape(shape)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.broadcast_to((*stack, *a.shape[-2:])), b.broadcast_to((*stack, *b.shape[-2:]))
    return product_by_kernel(a, b, dtype).reshape(shape)


def _by_numpy(driver: Any, a: Any, b: Any, dtype: np.dtype) -> Any:
    working = np.dtype("f4") if dtype.char == "e" else dtype
    with np.errstate(all="ignore"):
        made = np.matmul(driver.array(a).astype(working), driver.array(b).astype(working))
    if counters.active:
        counters.add(launches=1)
    return driver.view(np.asarray(made, dtype), type(a))


def _by_reduction(family: Any, a: Any, b: Any, dtype: np.dtype) -> Any:
    """The product with a single row or column: a fused reduction, which reads each element once."""
    working = np.dtype("f4") if dtype.char == "e" else dtype
    turn = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
    if b.shape[-1] == 1:
        b, axis = b.transpose(turn), -1
    else:
        turn = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
        a, axis = a.transpose(turn), -2
    x, y = (verbs.astype(handle(family, v), working, copy=False) for v in (a, b))
    if dtype.kind == "b":
        made = verbs.any(x & y, axis=axis, keepdims=True)
    else:
        made = verbs.sum(x * y, axis=axis, dtype=working, keepdims=True)
    return verbs.leaf_of(verbs.astype(made, dtype, copy=False)).view


def product_by_kernel(a: Any, b: Any, dtype: np.dtype) -> Any:
    """The product of two stacks of matrices of one shape, as a new view."""
    family = type(a).family
    lies = (a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype)
    plan = _planned(family.driver(), *lies, dtype)
    shape = (*a.shape[:-1], b.shape[-1])
    if counters.active:
        counters.add(launches=1, bytes_read=a.nbytes + b.nbytes)
    if plan.parts == 1:
        out = family._empty(shape, dtype)
        plan.run(out.ptr, a.ptr, b.ptr)
    else:
        partial = family._empty((plan.parts, *shape), plan.partial)
        plan.run(partial.ptr, a.ptr, b.ptr)
        together = handle(family, partial)
        if dtype.kind == "b":
            made = verbs.any(together, axis=0)
        else:
            made = verbs.astype(verbs.sum(together, axis=0, dtype=plan.partial), dtype, copy=False)
        out = verbs.leaf_of(made).view
    if counters.active:
        counters.add(bytes_written=out.nbytes)
    return out


def launched(a: Any, b: Any, dtype: np.dtype) -> Any:
    """The launch of a product of matrices, of the addresses of the result and of both; None if it takes more.

    The result lies in C's order.
    """
    if min(a.ndim, b.ndim) < 2 or min(a.shape[-2], b.shape[-1]) < 2 or not (a.size and b.size):
        return None
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.broadcast_to((*stack, *a.shape[-2:])), b.broadcast_to((*stack, *b.shape[-2:]))
    plan = _planned(type(a).family.driver(), a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, dtype)
    return plan.run if plan.parts == 1 else None


class _Plan:
    """All of a product that does not depend on addresses."""

    # Into how many parts sums are cut, and the dtype of these.
    parts: int
    partial: np.dtype
    run: Callable[..., None]


@functools.lru_cache(maxsize=512)
def _planned(
    driver: Any,
    shape_a: tuple[int, ...],
    strides_a: tuple[int, ...],
    dtype_a: np.dtype,
    shape_b: tuple[int, ...],
    strides_b: tuple[int, ...],
    dtype_b: np.dtype,
    dtype: np.dtype,
) -> _Plan:
    rows, length = shape_a[-2:]
    columns = shape_b[-1]
    stack = shape_a[:-2]
    count = math.prod(stack)
    most = 2 if dtype.kind == "c" else 4  # (registers)
    down, over = min(_tile(rows), most), min(_tile(columns), most)
    # Rather smaller tiles than too few of them.
    while max(down, over) > 1 and _tiles(rows, down) * _tiles(columns, over) * count < BLOCKS // 2:
        down, over = (down // 2, over) if down >= over else (down, over // 2)
    across = _tiles(columns, over)
    blocks = _tiles(rows, down) * across
    plan = _Plan()
    parts = max(1, min(BLOCKS // (blocks * count), length // LEAST_STEPS))
    chunk = max(1, -(-length // (parts * SIDE)) * SIDE)
    plan.parts = parts = max(1, -(-length // chunk))
    plan.partial = working = working_dtype(dtype)
    if dtype.kind in "biu":  # what wraps around may do so at once
        plan.partial = dtype
    made = plan.partial if parts > 1 else dtype
    size = made.itemsize
    dense = [columns * rows * size]
    for n in reversed(stack[1:]):
        dense.insert(0, dense[0] * n)
    live = [d for d, n in enumerate(stack) if n > 1]
    sizes: list[int] = []
    strides: list[list[int]] = [[], [], []]
    if live:
        each = [[s[d] for d in live] for s in (dense, strides_a, strides_b)]
        sizes, strides = merge([stack[d] for d in live], each)
    (a_m, a_k), (b_k, b_n) = strides_a[-2:], strides_b[-2:]
    how = ProductLayout(
        down, over, len(sizes), abs(a_m) < abs(a_k), abs(b_n) <= abs(b_k), dtype_a, dtype_b, working, made,
        dtype.kind == "b",
    )  # fmt: skip
    text = product_source(how)
    kernel = driver.load(text, {}, contract=working.kind in "fc")
    fixed = (
        rows, columns, length, blocks, chunk, across, columns * size, size, count * rows * columns * size,
        a_m, a_k, b_k, b_n, *sizes, *strides[0], *strides[1], *strides[2],
    )  # fmt: skip
    grid = (blocks * count, parts, 1)
    plan.run = driver.launcher(kernel, text.codes, grid, (SIDE, SIDE, 1), fixed)
    return plan


def working_dtype(dtype: np.dtype) -> np.dtype:
    """What products of a dtype are added up in: for integers, signs make no difference to the lower bits."""
    if dtype.kind in "biu":
        return np.dtype("i8" if dtype.itemsize == 8 else "i4")
    return np.dtype("f4") if dtype.char == "e" else dtype


def _tile(n: int) -> int:
    """How many elements a thread makes along a side of this length."""
    return 1 if n <= SIDE else 2 if n <= 2 * SIDE else 4


def _tiles(n: int, each: int) -> int:
    return -(-n // (SIDE * each))
