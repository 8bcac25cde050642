"""Kernels of matrix products for elements that BLAS does not know.

`blocked` is the usual product: blocks of the operands stay in the cache, four rows by four steps
are combined in one loop over columns, which LLVM turns into vector code. `dots` is for a result
of few columns, where each element is an inner product of two rows. `small` multiplies many
matrices of a few rows, whose sizes stand in the source.

Sums of integers wrap around in their own dtype, so any order gives NumPy's result bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.backends.codegen.source import Source, Writer
from mirabelle.backends.host import threads
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.settings import settings

# Columns and steps of a block: a panel of 512 x 64 elements of 8 bytes fills half a second-level cache.
COLUMNS, STEPS = 512, 64
# Rows and steps combined in one loop.
ROWS = UNROLLED = 4
# Products from this many multiplications on are shared among threads.
THREADED = 1 << 18


def _times_plus(c: str, logical: bool) -> str:
    """How an element joins a sum: {0} + {1} * {2} in the arithmetic of the dtype."""
    if logical:  # bytes of 0 and 1
        return "({0} | ({1} & {2}))"
    return f"{c}({{0}} + {c}({{1}} * {{2}}))" if c[0] in "iu" else "({0} + {1} * {2})"


@functools.cache
def blocked(c: str, logical: bool = False) -> Source:
    """C += A B for rows `lo` to `hi` and columns `first` to `last`; rows of B and C are contiguous."""
    name = f"matmul_{c}{'_logical' * logical}"
    join = _times_plus(c, logical)
    w = Writer()
    w(f"def {name}(args, lo, hi, first, last, piece, pieces, spare):")
    w.depth += 1
    for i, word in enumerate(("a", "b", "c", "steps", "a_row", "a_column", "b_row", "c_row")):
        w(f"{word} = load_i8(args, {i})")
    w(f"for j0 in range(first, last, {COLUMNS}):")
    w.depth += 1
    w(f"j1 = min(j0 + {COLUMNS}, last)")
    w(f"for k0 in range(0, steps, {STEPS}):")
    w.depth += 1
    w(f"k1 = min(k0 + {STEPS}, steps)")
    w("i = lo")
    for rows in (ROWS, 1):
        w(f"while i + {rows} <= hi:")
        w.depth += 1
        w("k = k0")
        for unrolled in (UNROLLED, 1):
            w(f"while k + {unrolled} <= k1:")
            w.depth += 1
            _update(w, c, join, rows, unrolled)
            w(f"k += {unrolled}")
            w.depth -= 1
        w(f"i += {rows}")
        w.depth -= 1
    return Source(w.text(), name, [])


def _update(w: Writer, c: str, join: str, rows: int, unrolled: int) -> None:
    """Add the products of some columns of A and rows of B to some rows of C."""
    for r in range(rows):
        for k in range(unrolled):
            w(f"a{r}{k} = load_{c}(a + (i + {r}) * a_row + (k + {k}) * a_column, 0)")
        w(f"c{r} = c + (i + {r}) * c_row")
    for k in range(unrolled):
        w(f"b{k} = b + (k + {k}) * b_row")
    w("for j in range(j0, j1):")
    w.depth += 1
    for k in range(unrolled):
        w(f"x{k} = load_{c}(b{k}, j)")
    for r in range(rows):
        total = f"load_{c}_shared(c{r}, j)"
        for k in range(unrolled):
            total = join.format(total, f"a{r}{k}", f"x{k}")
        w(f"store_{c}(c{r}, j, {total})")
    w.depth -= 1


@functools.cache
def dots(c: str, logical: bool = False) -> Source:
    """C = A Bᵀ, element by element; rows of A and B are contiguous."""
    name = f"dots_{c}{'_logical' * logical}"
    w = Writer()
    w(f"def {name}(args, lo, hi, first, last, piece, pieces, spare):")
    w.depth += 1
    for i, word in enumerate(("a", "b", "c", "steps", "a_row", "b_row", "c_row", "c_column")):
        w(f"{word} = load_i8(args, {i})")
    w("for i in range(lo, hi):")
    w.depth += 1
    w("x = a + i * a_row")
    w("for j in range(first, last):")
    w.depth += 1
    w("y = b + j * b_row")
    w(f"total = {c}(0)")
    w("for k in range(steps):")
    w.depth += 1
    w(f"total = {_times_plus(c, logical).format('total', f'load_{c}(x, k)', f'load_{c}(y, k)')}")
    w.depth -= 1
    w(f"store_{c}(c + i * c_row + j * c_column, 0, total)")
    return Source(w.text(), name, [])


@functools.cache
def small(c: str, rows: int, steps: int, columns: int) -> Source:
    """Many products of matrices of these sizes; rows of B and C are contiguous."""
    name = f"products_{rows}_{steps}_{columns}_{c}"
    join = _times_plus(c, False)
    w = Writer()
    w(f"def {name}(args, lo, hi, first, last, piece, pieces, spare):")
    w.depth += 1
    words = ("a", "b", "c", "a_next", "b_next", "c_next", "a_row", "a_column", "b_row", "c_row")
    for i, word in enumerate(words):
        w(f"{word} = load_i8(args, {i})")
    w("for n in range(lo, hi):")
    w.depth += 1
    for word in "abc":
        w(f"{word}n = {word} + n * {word}_next")
    w(f"for i in range({rows}):")
    w.depth += 1
    for k in range(steps):
        w(f"x{k} = load_{c}(an + i * a_row + {k} * a_column, 0)")
    w(f"for j in range({columns}):")
    w.depth += 1
    total = f"{c}(x0 * load_{c}(bn, j))"
    for k in range(1, steps):
        total = join.format(total, f"x{k}", f"load_{c}(bn + {k} * b_row, j)")
    w(f"store_{c}(cn + i * c_row, j, {total})")
    return Source(w.text(), name, [])


# Running them


def address(x: np.ndarray) -> int:
    return address_of(x)


def run(kernel: Any, words: list[int], rows: int, columns: int, work: int, granule: int = 1) -> None:
    """A kernel over all rows and columns, on several threads if there is enough to do."""
    block = np.array(words, np.int64)
    at = address(block)
    count = settings.num_threads * 2 if work >= max(THREADED, settings.thread_size) else 1
    if settings.num_threads < 2 or count == 1:
        kernel(at, 0, rows, 0, columns, 0, 1, 0)
        return
    across = 1 if rows >= count * granule else max(1, min(count, columns // 256))
    down = max(1, min(rows // granule, count // across))
    pieces: list[Callable[[], object]] = []
    for d in range(down):
        lo = rows * d // down // granule * granule
        hi = rows if d == down - 1 else rows * (d + 1) // down // granule * granule
        for x in range(across):
            first, last = columns * x // across, columns * (x + 1) // across
            pieces.append(functools.partial(kernel, at, lo, hi, first, last, 0, 1, 0))
    threads.run_all(pieces)


def multiply_blocked(kernel: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c += a @ b by a `blocked` kernel."""
    (rows, steps), columns = a.shape, b.shape[1]
    words = [address(a), address(b), address(c), steps, *a.strides, b.strides[0], c.strides[0]]
    run(kernel, words, rows, columns, rows * steps * columns, ROWS)


def multiply_dots(kernel: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c = a @ b by a `dots` kernel; `b` is contiguous down its columns."""
    (rows, steps), columns = a.shape, b.shape[1]
    words = [address(a), address(b), address(c), steps, a.strides[0], b.strides[1], *c.strides]
    run(kernel, words, rows, columns, rows * steps * columns)


def multiply_small(kernel: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c = a @ b for stacks of small matrices by a `small` kernel."""
    words = [address(a), address(b), address(c), a.strides[0], b.strides[0], c.strides[0], *a.strides[1:]]
    words += [b.strides[1], c.strides[1]]
    n, rows, columns = c.shape
    run(kernel, words, n, 1, n * rows * columns * a.shape[2])
