"""Matrix products of NumPy views: BLAS where it reaches, compiled kernels where it does not.

BLAS reads operands whose rows or columns are contiguous, transposed or cut out of a larger
matrix; these are never copied. What else there is (steps in both directions, reversed or
stretched operands) is packed once, unless the order of a vector says the same.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.backends.host import kernels, productkernels, threads
from mirabelle.dispatch.promotion import code
from mirabelle.dispatch.settings import settings

# Operands of fewer elements than this together are left to NumPy as they are.
SMALL = 1 << 11
# Results of up to so many elements come from NumPy.
PLAIN = 1 << 16
# Stacks from this many matrices on, each of at most so many rows and columns, have a kernel of their size.
SMALL_STACK, SMALL_SIDE = 256, 4
# A stack that meets one matrix is one tall matrix, if its own have so few rows or products so little work.
# (Others are faster one by one: each stays in the cache.)
FEW_ROWS, LITTLE = 2, 256
# Up to this many multiplications BLAS uses one thread, so a stack of such products is shared among ours.
ONE_THREAD = 1 << 18
# A result of fewer columns than this is computed by inner products.
NARROW = 16
# A product that NumPy computes while the kernel is being compiled is cut into pieces of about this work.
COLD_PIECE = 1 << 23


def product(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """a @ b for views of any layout and dtype; `out` has the result's shape and does not overlap."""
    dtype = a.dtype if a.dtype == b.dtype else np.result_type(a.dtype, b.dtype)
    char = dtype.char
    if char in "dfDF":
        if out is None and a.ndim + b.ndim == 3 and a.dtype == b.dtype:
            rows, x = (b, a) if a.ndim == 1 else (a, b)
            if rows.strides[1] == rows.itemsize and x.strides[0] > 0:
                return np.matmul(a, b)  # type: ignore[no-any-return]
        a, b = _as(a, dtype), _as(b, dtype)
        if a.ndim == 1 == b.ndim or (out is None and (a.size + b.size < SMALL or _plain(a, b))):
            result = np.matmul(a, b)
        elif out is not None and out.dtype == dtype:
            return _floating(a, b, out)
        else:
            result = _floating(a, b, pool.empty(result_shape(a, b), dtype))
    elif char == "e":  # accumulated in single precision, and rounded once
        result = np.asarray(product(a.astype(np.float32), b.astype(np.float32))).astype(dtype)
    elif dtype.kind in "iub":
        result = _integer(_as(a, dtype), _as(b, dtype))
    else:
        result = np.matmul(a, b)
    if out is None:
        return result
    np.copyto(out, result, casting="same_kind")
    return out


def _plain(a: np.ndarray, b: np.ndarray) -> bool:
    """Are these matrices that BLAS reads as they lie, whose product needs no memory of the pool?"""
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] * b.shape[1] > PLAIN:
        return False
    return a.flags.forc and b.flags.forc


def result_shape(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    """The shape of a @ b."""
    if b.ndim == 1:
        return a.shape[:-1]
    if a.ndim == 1:
        return (*b.shape[:-2], b.shape[-1])
    stack = a.shape[:-2]
    if stack != b.shape[:-2]:
        stack = np.broadcast_shapes(stack, b.shape[:-2])
    return (*stack, a.shape[-2], b.shape[-1])


def _as(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return x if x.dtype == dtype else x.astype(dtype)


def blasable(x: np.ndarray) -> bool:
    """Can BLAS read the matrices of `x` where they lie: are their rows or their columns contiguous?"""
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2:]
    if across == size or columns == 1:
        return rows == 1 or (down >= columns * size and down % size == 0)
    if down == size or rows == 1:
        return across >= rows * size and across % size == 0
    return False


def _packed(x: np.ndarray) -> np.ndarray:
    """`x` with its matrices laid out for BLAS; a stack that repeats one matrix goes on repeating it."""
    if blasable(x):
        return x
    one = tuple(
        slice(0, 1) if s == 0 and n > 1 else slice(None) for n, s in zip(x.shape[:-2], x.strides, strict=False)
    )
    made = np.ascontiguousarray(x[one])
    return made if made.shape == x.shape else np.broadcast_to(made, x.shape)


def _folded(x: np.ndarray) -> np.ndarray | None:
    """A stack of matrices as one tall matrix of all their rows, without a copy; None if strides forbid."""
    if x.ndim < 3 or x.shape[-1] == 0:
        return None
    rows = x.shape[-2]
    step = x.strides[-2] if rows > 1 else x.itemsize * x.shape[-1]
    total, expected = rows, step * rows
    for n, s in zip(reversed(x.shape[:-2]), reversed(x.strides[:-2]), strict=True):
        if n != 1 and s != expected:
            return None
        total *= n
        expected *= n
    return np.lib.stride_tricks.as_strided(x, (total, x.shape[-1]), (step, x.strides[-1]))


def _floating(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    if a.ndim > 2 and (b.ndim == 1 or (b.ndim == 2 and _little(a, b))):
        tall, flat = _folded(a), _folded(out if b.ndim == 2 else out[..., None])
        if tall is not None and flat is not None:
            _floating(tall, b, flat if b.ndim == 2 else flat[:, 0])
            return out
    if b.ndim == 1 and a.ndim == 2:
        return _matrix_vector(a, b, out)
    if a.ndim == 1 and b.ndim == 2:
        return _matrix_vector(b.T, a, out)
    if max(a.ndim, b.ndim) > 2 and min(a.ndim, b.ndim) > 1 and _stack_of_small(a, b, out):
        return out
    if a.ndim > 1:
        a = _packed(a)
    if b.ndim > 1:
        b = _packed(b)
    return _stack(a, b, out)


def _little(a: np.ndarray, b: np.ndarray) -> bool:
    rows, steps = a.shape[-2:]
    return rows <= FEW_ROWS or rows * steps * b.shape[-1] <= LITTLE


def _stack(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    """a @ b by BLAS; a stack of products too small for BLAS's threads is divided among ours."""
    work = a.shape[-1] * (a.shape[-2] if a.ndim > 1 else 1) * (b.shape[-1] if b.ndim > 1 else 1)
    if out.ndim < 3 or min(a.ndim, b.ndim) < 2 or work > ONE_THREAD or settings.num_threads < 2:
        return np.matmul(a, b, out=out)
    stack = out.shape[:-2]
    longest = stack.index(max(stack))
    pieces = min(stack[longest], settings.num_threads * 4)
    if pieces < 2 or work * math.prod(stack) < max(productkernels.THREADED, settings.thread_size):
        return np.matmul(a, b, out=out)
    axis = longest - out.ndim  # from the end, where dimensions are aligned
    edges = [stack[longest] * i // pieces for i in range(pieces + 1)]

    def part(x: np.ndarray, lo: int, hi: int) -> np.ndarray:
        if x.ndim < -axis or x.shape[axis] == 1:
            return x
        at: tuple[Any, ...] = (..., slice(lo, hi), *[slice(None)] * (-axis - 1))
        return x[at]

    threads.run_all(
        [
            functools.partial(np.matmul, part(a, lo, hi), part(b, lo, hi), out=part(out, lo, hi))
            for lo, hi in itertools.pairwise(edges)
        ]
    )
    return out


def _matrix_vector(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """A matrix times a vector reads each element once, so it is not copied if that can be avoided."""
    if not blasable(a) and a.size:
        if a.strides[0] < 0:
            _matrix_vector(a[::-1], x, out[::-1])
            return out
        if a.strides[1] < 0:
            return _matrix_vector(a[:, ::-1], x[::-1], out)
        a = np.ascontiguousarray(a)
    if x.size and x.strides[0] <= 0:
        x = x.copy()
    return np.matmul(a, x, out=out)


def _stack_of_small(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """Multiply stacks of very small matrices by a kernel for their size, if it is there."""
    (rows, steps), columns = a.shape[-2:], b.shape[-1]
    if not 0 < max(rows, steps, columns) <= SMALL_SIDE or a.dtype.kind == "c" or not a.size or not b.size:
        return False
    if out.size < SMALL_STACK * rows * columns or out.size <= settings.small_size:
        return False
    stack = out.shape[:-2]
    stacks: list[Any] = [
        _joined(x)
        for x in (np.broadcast_to(a, (*stack, rows, steps)), np.broadcast_to(b, (*stack, steps, columns)), out)
    ]
    if (
        any(x is None or (x.shape[2] > 1 and x.strides[2] != x.itemsize) for x in stacks[1:])
        or stacks[0] is None
    ):
        return False
    kernel = kernels.get(productkernels.small(code(a.dtype), rows, steps, columns))
    if kernel is None:
        return False
    productkernels.multiply_small(kernel, *stacks)
    return True


def _joined(x: np.ndarray) -> np.ndarray | None:
    """A stack of several dimensions as one of one, without a copy; None if strides forbid."""
    try:
        return x.reshape(-1, *x.shape[-2:], copy=False)
    except ValueError:
        return None


# Integers and truth values


def _integer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products that wrap around in their dtype, as NumPy's do; of truth values, `any` of `and`."""
    steps = a.shape[-1]
    rows = a.shape[-2] if a.ndim > 1 else 1
    columns = b.shape[-1] if b.ndim > 1 else 1
    small = rows * steps * columns < settings.compile_size
    # NumPy leaves a logical product at the first pair that holds, which for one vector is soon.
    if small or settings.compiler == "off" or (a.dtype.kind == "b" and min(rows, columns) == 1):
        return np.matmul(a, b)
    if a.ndim == 1:
        return _integer(a[None, :], b)[..., 0, :] if b.ndim > 1 else _integer(a[None, :], b)[0]
    if b.ndim == 1:
        return _integer(a, b[:, None])[..., 0]
    out = pool.empty(result_shape(a, b), a.dtype)
    tall, flat = (_folded(a), _folded(out)) if b.ndim == 2 else (None, None)
    if tall is not None and flat is not None:
        _matrices(tall, b, flat)
        return out
    stack = out.shape[:-2]
    a, b = np.broadcast_to(a, (*stack, rows, steps)), np.broadcast_to(b, (*stack, steps, columns))
    for at in np.ndindex(stack):
        _matrices(a[at], b[at], out[at])
    return out


def _matrices(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """One integer product of two matrices, into `out`, whose rows are contiguous."""
    logical = a.dtype.kind == "b"
    # Products and sums modulo a power of two are the same with and without sign.
    word = np.dtype("u1") if logical else np.dtype(f"i{a.itemsize}")
    a, b, out = a.view(word), b.view(word), out.view(word)
    if out.shape[1] < NARROW and out.shape[0] >= NARROW and a.strides[0] == a.itemsize < abs(a.strides[1]):
        # Columns of the first operand are contiguous: rather the transposed product, of long rows.
        turned = np.empty(out.shape[::-1], word)
        _matrices_by(productkernels.blocked(code(word), logical), b.T, a.T, turned, logical)
        out[...] = turned.T
    elif out.shape[1] < NARROW:
        _matrices_by(productkernels.dots(code(word), logical), a, b, out, logical)
    elif out.shape[0] < NARROW and b.strides[0] == b.itemsize < abs(b.strides[1]):
        turned = np.empty(out.shape[::-1], word)
        _matrices_by(productkernels.dots(code(word), logical), b.T, a.T, turned, logical)
        out[...] = turned.T
    else:
        _matrices_by(productkernels.blocked(code(word), logical), a, b, out, logical)


def _matrices_by(source: Any, a: np.ndarray, b: np.ndarray, out: np.ndarray, logical: bool) -> None:
    """By a kernel; by NumPy, some rows at a time, until the kernel is there."""
    narrow = source.name.startswith("dots")
    kernel = kernels.get(source)
    done = 0
    if kernel is None:
        signs = np.dtype(bool) if logical else a.dtype
        first, second = a.view(signs), np.asfortranarray(b).view(signs)
        rows = max(1, COLD_PIECE // max(1, b.size))
        while kernel is None and done < len(a):
            piece = slice(done, done + rows)
            np.matmul(first[piece], second, out=out[piece].view(signs))
            done += rows
            kernel = kernels.get(source)
        if done >= len(a):
            return
    a, out = a[done:], out[done:]
    if narrow:
        a = a if a.strides[1] == a.itemsize else np.ascontiguousarray(a)
        b = b if b.strides[0] == b.itemsize else np.asfortranarray(b)
        productkernels.multiply_dots(kernel, a, b, out)
    else:
        b = b if b.strides[1] == b.itemsize else np.ascontiguousarray(b)
        out[...] = 0
        productkernels.multiply_blocked(kernel, a, b, out)
