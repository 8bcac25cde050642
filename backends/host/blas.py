"""C = alpha A B + beta C through BLAS, straight into the memory of C.

NumPy's BLAS is reached through `np.matmul` alone, which knows neither alpha nor beta. SciPy hands
out the addresses of its BLAS (`scipy.linalg.cython_blas`, made for other packages to call); with
these any operands that BLAS can read are used where they lie. Without SciPy, a product is made
and then added.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.matmul import blasable, product
from mirabelle.backends.host.productkernels import address

_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
_LARGEST = 2**31 - 1  # SciPy's BLAS counts in 32 bits


@functools.cache
def _gemm(prefix: str) -> Any:
    """BLAS's gemm for one element type, or None where SciPy is not installed."""
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    capsule = cython_blas.__pyx_capi__[f"{prefix}gemm"]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = pointer(capsule, name(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(found)


def _operand(x: np.ndarray) -> tuple[bytes, int]:
    """How BLAS, which counts down columns, is told of a matrix: as it is or transposed, and its step."""
    rows, columns = x.shape
    down, across = x.strides
    if (down == x.itemsize or rows == 1) and (columns == 1 or across >= rows * x.itemsize):
        return b"N", max(across // x.itemsize, rows, 1) if columns > 1 else max(rows, 1)
    return b"T", max(down // x.itemsize, columns, 1) if rows > 1 else max(columns, 1)


def _call(gemm: Any, a: np.ndarray, b: np.ndarray, alpha: Any, beta: Any, c: np.ndarray) -> None:
    """One call, for a C whose columns are contiguous."""
    (m, k), n = a.shape, b.shape[1]
    how_a, step_a = _operand(a)
    how_b, step_b = _operand(b)
    _, step_c = _operand(c)
    sizes = [ctypes.c_int(x) for x in (m, n, k, step_a, step_b, step_c)]
    factors = [np.array(x, c.dtype) for x in (alpha, beta)]
    m_, n_, k_, lda, ldb, ldc = map(ctypes.byref, sizes)
    gemm(how_a, how_b, m_, n_, k_, address(factors[0]), address(a), lda, address(b), ldb,
         address(factors[1]), address(c), ldc)  # fmt: skip


def gemm(a: np.ndarray, b: np.ndarray, c: np.ndarray, alpha: Any = 1, beta: Any = 0) -> None:
    """c = alpha * a @ b + beta * c, in place; `c` overlaps neither operand. With beta 0, `c` is not read."""
    if alpha == 1 and beta == 0:
        product(a, b, c)
        return
    prefix = _PREFIX.get(c.dtype.char)
    if (
        prefix is not None
        and a.ndim == b.ndim == c.ndim == 2
        and a.dtype == b.dtype == c.dtype
        and a.shape[1]
        and max(*a.shape, *b.shape) <= _LARGEST
        and c.size
        and blasable(c)
    ):
        run = _gemm(prefix)
        if run is not None:
            a, b = (x if blasable(x) else np.ascontiguousarray(x) for x in (a, b))
            if _operand(c)[0] == b"N":
                _call(run, a, b, alpha, beta, c)
            else:  # a C of contiguous rows is the transpose of one of contiguous columns
                _call(run, b.T, a.T, alpha, beta, c.T)
            return
    made = np.asarray(product(a, b))
    scaled = made if alpha == 1 else made * alpha
    if beta != 0:
        scaled = scaled + (c if beta == 1 else c * beta)
    np.copyto(c, scaled, casting="same_kind")


library.routine(HostArray, "gemm")(gemm)
