"""cuBLAS by address: products of matrices, of stacks of them, and with vectors, where they lie.

cuBLAS reads matrices whose rows or columns are contiguous, transposed or cut out of larger ones. CuPy
copies what is cut out, and what is transposed in a stack; so these products go to cuBLAS directly.
What a call is told but for addresses follows from how its operands lie: a `Call` is made once for it.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.gpu import dense_strides
from mirabelle.backends.gpu.library import on_card

PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
# cuBLAS counts in 32 bits.
_LARGEST = 2**31 - 1


class Lying(NamedTuple):
    """How an array lies in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def turned(self) -> Lying:
        """Matrices, transposed."""
        *shape, rows, columns = self.shape
        *strides, down, across = self.strides
        return Lying((*shape, columns, rows), (*strides, across, down), self.itemsize)

    @property
    def row(self) -> Lying:
        """A vector (or a stack of them) as a matrix of one row."""
        step = self.itemsize
        return Lying(
            (*self.shape[:-1], 1, self.shape[-1]), (*self.strides[:-1], step, self.strides[-1]), self.itemsize
        )

    @property
    def tall(self) -> Lying | None:
        """A stack without gaps as one matrix."""
        dense = dense_strides(self.shape, self.itemsize, "C")[0]
        if any(n > 1 and s != d for n, s, d in zip(self.shape, self.strides, dense, strict=True)):
            return None
        rows, columns = math.prod(self.shape[:-1]), self.shape[-1]
        return Lying((rows, columns), (columns * self.itemsize, self.itemsize), self.itemsize)


def lying(x: Any) -> Lying:
    return Lying(x.shape, x.strides, x.dtype.itemsize)


def packed(shape: tuple[int, ...], itemsize: int) -> Lying:
    """How a new array lies."""
    return Lying(shape, dense_strides(shape, itemsize, "C")[0], itemsize)


class Call:
    """A call of cuBLAS, of which addresses alone are missing."""

    __slots__ = ("_arguments", "_blas", "_function", "_handle", "_mode", "_places", "name", "said")

    def __init__(self, name: str, dtype: np.dtype, arguments: list[Any], operands: tuple[str, ...]) -> None:
        """`arguments` follow the handle; names of operands stand for addresses, arrays for numbers."""
        self.name = PREFIX[dtype.char] + name
        # (CuPy is asked for with the first call.)
        self._blas: Any = None
        self.said = arguments  # (addresses keep nothing alive)
        self._arguments = [0, *[x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]]
        self._places = [self._arguments.index(name) for name in operands]

    def told(self, handle: int, addresses: Iterable[int]) -> list[Any]:
        """What cuBLAS is told, in order."""
        arguments = self._arguments.copy()
        arguments[0] = handle
        for place, address in zip(self._places, addresses, strict=True):
            arguments[place] = address
        return arguments

    def __call__(self, *addresses: int) -> None:
        """Do it on the current stream."""
        blas: Any = self._blas or self._begin()
        arguments = self._arguments.copy()
        arguments[0] = handle = self._handle()
        for place, address in zip(self._places, addresses):  # noqa: B905 (one each, and it costs time)
            arguments[place] = address
        wanted = self._mode
        mode = blas.getPointerMode(handle)
        if mode == wanted:
            self._function(*arguments)
            return
        blas.setPointerMode(handle, wanted)
        try:
            self._function(*arguments)
        finally:
            blas.setPointerMode(handle, mode)

    def _begin(self) -> Any:
        cuda = _cuda()
        blas = cuda.cublas
        self._function = getattr(blas, self.name)
        self._handle = cuda.device.get_cublas_handle
        # Where numbers are read, and results of inner products written: on the host, or on the card.
        on_card = self.name[1:] in ON_CARD
        self._mode = blas.CUBLAS_POINTER_MODE_DEVICE if on_card else blas.CUBLAS_POINTER_MODE_HOST
        self._blas = blas
        return blas


def _cuda() -> Any:
    return importlib.import_module("cupy.cuda")


# The functions that write a number.
ON_CARD = frozenset(("dot", "dotu"))


def multiply(xp: Any, a: Any, b: Any, c: Any, alpha: Any = 1, beta: Any = 0) -> bool:
    """c = alpha * a @ b + beta * c by one call of cuBLAS; False where it takes more. `c` overlaps neither."""
    if not on_card(xp) or not a.dtype == b.dtype == c.dtype or c.dtype.char not in PREFIX:
        return False
    if not (a.size and b.size):
        return False
    a, b = (x if readable(lying(x)) else xp.ascontiguousarray(x) for x in (a, b))
    call = planned(lying(a), lying(b), lying(c), c.dtype, alpha, beta)
    if call is None:
        return False
    call(a.data.ptr, b.data.ptr, c.data.ptr)
    return True


def planned(a: Lying, b: Lying, c: Lying, dtype: np.dtype, alpha: Any = 1, beta: Any = 0) -> Call | None:
    """The call for c = alpha * a @ b + beta * c, of the addresses of a, b and c. Nothing is empty."""
    if max(*a.shape, *b.shape, *c.shape, 1) > _LARGEST or 1 == a.ndim == b.ndim:
        return None
    numbers = _held(complex(alpha), dtype), _held(complex(beta), dtype)
    if b.ndim == 1 and a.ndim == 2:
        return _vector("a", a, "b", b, c, dtype, *numbers)
    if a.ndim == 1 and b.ndim == 2:
        return _vector("b", b.turned, "a", a, c, dtype, *numbers)
    if b.ndim == 1:
        b, c = b.row.turned, c.row.turned
    elif a.ndim == 1:
        a, c = a.row, c.row
    if step_of(c) is None:
        return None
    if a.ndim > 2 and b.ndim == 2:
        # A stack that meets one matrix is one tall matrix.
        tall, flat = a.tall, c.tall
        if tall is not None and flat is not None:
            return _matrices(tall, b, flat, dtype, *numbers) if tall.shape[0] <= _LARGEST else None
    return _matrices(a, b, c, dtype, *numbers)


def inner(a: Lying, b: Lying, dtype: np.dtype) -> Call | None:
    """The call for the inner product of two vectors, of their addresses and of the result's."""
    n = a.shape[0]
    if n > _LARGEST:
        return None
    name = "dotu" if dtype.kind == "c" else "dot"
    return Call(name, dtype, [n, "a", _along(a), "b", _along(b), "c"], ("a", "b", "c"))


def readable(x: Lying) -> bool:
    """Can cuBLAS read a vector or matrices where they lie?"""
    if x.ndim == 1:
        return x.strides[0] > 0 and x.strides[0] % x.itemsize == 0
    return step_of(x) is not None


def step_of(x: Lying) -> tuple[bool, int] | None:
    """How cuBLAS, which counts down columns, is told of matrices: are they transposed, and their step."""
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2:]
    if (down == size or rows == 1) and (columns == 1 or (across >= rows * size and across % size == 0)):
        return False, across // size if columns > 1 else max(rows, 1)
    if (across == size or columns == 1) and (rows == 1 or (down >= columns * size and down % size == 0)):
        return True, down // size if rows > 1 else max(columns, 1)
    return None


def apart_in_stack(x: Lying, stack: tuple[int, ...]) -> int | None:
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


def _matrices(
    a: Lying, b: Lying, c: Lying, dtype: np.dtype, alpha: np.ndarray, beta: np.ndarray
) -> Call | None:
    turned, _ = step_of(c) or (False, 1)
    first, second = "a", "b"
    if turned:  # of contiguous rows: its transpose is what cuBLAS writes
        a, b, c = b.turned, a.turned, c.turned
        first, second = second, first
    steps = [step_of(x) for x in (a, b, c)]
    stack = c.shape[:-2]
    apart = [apart_in_stack(x, stack) for x in (a, b, c)]
    count = math.prod(stack)
    if None in apart or None in steps or count > _LARGEST or (count > 1 and not apart[2]):
        return None
    (turned_a, step_a), (turned_b, step_b), (_, step_c) = (s or (False, 1) for s in steps)
    how = int(turned_a), int(turned_b), c.shape[-2], c.shape[-1], a.shape[-1], alpha
    arguments: list[Any]
    if not stack:
        name = "gemm"
        arguments = [*how, first, step_a, second, step_b, beta, "c", step_c]
    else:
        name = "gemmStridedBatched"
        arguments = [
            *how, first, step_a, apart[0], second, step_b, apart[1], beta, "c", step_c, apart[2], count
        ]  # fmt: skip
    return Call(name, dtype, arguments, ("a", "b", "c"))


def _vector(
    matrix: str, a: Lying, vector: str, x: Lying, y: Lying, dtype: np.dtype, alpha: np.ndarray, beta: np.ndarray
) -> Call | None:
    """y = alpha * a @ x + beta * y: each element of the matrix is read once."""
    how = step_of(a)
    if how is None or not readable(x) or not readable(y):
        return None
    turned, step = how
    rows, columns = a.shape[::-1] if turned else a.shape
    arguments = [
        int(turned), rows, columns, alpha, matrix, step, vector, _along(x), beta, "c", _along(y)
    ]  # fmt: skip
    return Call("gemv", dtype, arguments, ("a", "b", "c"))


def _along(x: Lying) -> int:
    """The step of a vector."""
    return x.strides[0] // x.itemsize if x.shape[0] > 1 else 1


@functools.lru_cache(maxsize=1024)
def _held(value: complex, dtype: np.dtype) -> np.ndarray:
    """A number in memory."""
    return np.array(value if dtype.kind == "c" else value.real, dtype)
