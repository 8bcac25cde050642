"""cuBLAS by address: products of matrices, of stacks of them, and with vectors, where they lie.

cuBLAS reads matrices whose rows or columns are contiguous, transposed or cut out of larger ones. CuPy
copies what is cut out, and what is transposed in a stack; so these products go to cuBLAS directly.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.library import on_card

PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
# cuBLAS counts in 32 bits.
_LARGEST = 2**31 - 1


def multiply(xp: Any, a: Any, b: Any, c: Any, alpha: Any = 1, beta: Any = 0) -> bool:
    """c = alpha * a @ b + beta * c by one call of cuBLAS; False where it takes more. `c` overlaps neither."""
    if not on_card(xp) or not a.dtype == b.dtype == c.dtype or c.dtype.char not in PREFIX:
        return False
    if not (a.size and b.size) or max(*a.shape, *b.shape, *c.shape) > _LARGEST or 1 == a.ndim == b.ndim:
        return False
    if b.ndim == 1 and a.ndim == 2:
        return _vector(xp, a, b, c, alpha, beta)
    if a.ndim == 1 and b.ndim == 2:
        return _vector(xp, b.T, a, c, alpha, beta)
    if min(a.ndim, b.ndim) < 2 or step_of(c) is None:
        return False
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous and c.flags.c_contiguous:
        # A stack that meets one matrix is one tall matrix.
        tall, flat = a.reshape(-1, a.shape[-1]), c.reshape(-1, c.shape[-1])
        return len(tall) <= _LARGEST and _matrices(xp, tall, b, flat, alpha, beta)
    return _matrices(xp, a, b, c, alpha, beta)


def step_of(x: Any) -> tuple[bool, int] | None:
    """How cuBLAS, which counts down columns, is told of matrices: are they transposed, and their step."""
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2:]
    if (down == size or rows == 1) and (columns == 1 or (across >= rows * size and across % size == 0)):
        return False, across // size if columns > 1 else max(rows, 1)
    if (across == size or columns == 1) and (rows == 1 or (down >= columns * size and down % size == 0)):
        return True, down // size if rows > 1 else max(columns, 1)
    return None


def apart_in_stack(x: Any, stack: tuple[int, ...]) -> int | None:
    """How far the matrices of a stack are from each other; 0 for one that is repeated, None if unevenly."""
    steps = [0] * (len(stack) - x.ndim + 2) + [
        s if n > 1 else 0 for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True)
    ]
    first: int | None = None
    expected = 0
    for n, s in zip(reversed(stack), reversed(steps), strict=True):
        if n == 1:
            continue
        if first is None:
            first, expected = s, s
        if s != expected:
            return None
        expected = s * n
    first = first or 0
    return first // x.itemsize if first >= 0 and first % x.itemsize == 0 else None


def _matrices(xp: Any, a: Any, b: Any, c: Any, alpha: Any, beta: Any) -> bool:
    turned, _ = step_of(c) or (False, 1)
    if turned:  # of contiguous rows: its transpose is what cuBLAS writes
        a, b, c = b.swapaxes(-1, -2), a.swapaxes(-1, -2), c.swapaxes(-1, -2)
    a, b = (x if step_of(x) is not None else xp.ascontiguousarray(x) for x in (a, b))
    steps = [step_of(x) or (False, 1) for x in (a, b, c)]
    stack = c.shape[:-2]
    apart = [apart_in_stack(x, stack) for x in (a, b, c)]
    count = math.prod(stack)
    if None in apart or count > _LARGEST or (count > 1 and not apart[2]):
        return False
    (turned_a, step_a), (turned_b, step_b), (_, step_c) = steps
    how = int(turned_a), int(turned_b), c.shape[-2], c.shape[-1], a.shape[-1], _number(alpha, c.dtype)
    where = a.data.ptr, b.data.ptr, c.data.ptr
    scale = _number(beta, c.dtype)
    if not stack:
        _call("gemm", c.dtype, *how, where[0], step_a, where[1], step_b, scale, where[2], step_c)
    else:
        _call(
            "gemmStridedBatched", c.dtype, *how, where[0], step_a, apart[0], where[1], step_b, apart[1], scale,
            where[2], step_c, apart[2], count,
        )  # fmt: skip
    return True


def _vector(xp: Any, a: Any, x: Any, y: Any, alpha: Any, beta: Any) -> bool:
    """y = alpha * a @ x + beta * y: each element of the matrix is read once."""
    if y.strides[0] <= 0 or y.strides[0] % y.itemsize:
        return False
    a = a if step_of(a) is not None else xp.ascontiguousarray(a)
    x = x if x.strides[0] > 0 and x.strides[0] % x.itemsize == 0 else xp.ascontiguousarray(x)
    turned, step = step_of(a) or (True, a.shape[1])
    rows, columns = a.shape[::-1] if turned else a.shape
    along = [v.strides[0] // v.itemsize if v.size > 1 else 1 for v in (x, y)]
    _call(
        "gemv", y.dtype, int(turned), rows, columns, _number(alpha, y.dtype), a.data.ptr, step, x.data.ptr,
        along[0], _number(beta, y.dtype), y.data.ptr, along[1],
    )  # fmt: skip
    return True


def _number(value: Any, dtype: np.dtype) -> int:
    """The address of a number, which lives as long as the process."""
    return int(_held(complex(value), dtype).ctypes.data)


@functools.lru_cache(maxsize=1024)
def _held(value: complex, dtype: np.dtype) -> np.ndarray:
    return np.array(value if dtype.kind == "c" else value.real, dtype)


def _call(name: str, dtype: np.dtype, *arguments: Any) -> None:
    """A call on the current stream, with its numbers on the host."""
    cuda = importlib.import_module("cupy.cuda")
    cublas = cuda.cublas
    context = cuda.device.get_cublas_handle()
    mode = cublas.getPointerMode(context)
    if mode != cublas.CUBLAS_POINTER_MODE_HOST:
        cublas.setPointerMode(context, cublas.CUBLAS_POINTER_MODE_HOST)
    try:
        getattr(cublas, PREFIX[dtype.char] + name)(context, *arguments)
    finally:
        if mode != cublas.CUBLAS_POINTER_MODE_HOST:
            cublas.setPointerMode(context, mode)
