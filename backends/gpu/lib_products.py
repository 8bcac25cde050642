"""Matrix products and scans of a card: cuBLAS reads operands where they lie, transposed or cut out.

CuPy copies matrices that are cut out of larger ones, and its `gemm` knows only whole ones; cuBLAS
itself wants no more than contiguous rows or columns. So two-dimensional products go to it directly.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.gpu import GPUArray, handle
from mirabelle.backends.gpu.lib_segments import ASSOCIATIVE
from mirabelle.backends.gpu.library import absent, on_card, routine, uncounted
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf

_BLAS = {"f": "sgemm", "d": "dgemm", "F": "cgemm", "D": "zgemm"}
# cuBLAS counts in 32 bits.
_LARGEST = 2**31 - 1


@routine("matmul")
def matmul(xp: Any, a: Any, b: Any) -> Any:
    """a @ b in the operands' common dtype."""
    dtype = np.result_type(a.dtype, b.dtype)
    if dtype.kind == "b":
        # Is there any pair? Numbers of pairs are exact enough in single precision not to vanish.
        return xp.matmul(a.astype(np.float32), b.astype(np.float32)) != 0
    if dtype == np.float16 and not on_card(xp):
        return xp.matmul(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if a.ndim == b.ndim == 2 and _direct(xp, a, b):
        out = xp.empty((a.shape[0], b.shape[1]), dtype)
        _call(xp, a, b, out, 1, 0)
        return out
    return xp.matmul(a, b)


@routine("gemm")
def gemm(xp: Any, a: Any, b: Any, c: Any, *, alpha: Any = 1, beta: Any = 0) -> None:
    """c = alpha * a @ b + beta * c, in place. With beta 0, `c` is not read."""
    if a.ndim == b.ndim == c.ndim == 2 and a.dtype == c.dtype and _direct(xp, a, b, c):
        _call(xp, a, b, c, alpha, beta)
        return
    made = matmul(xp, a, b)
    if alpha != 1:
        made = made * alpha
    if beta != 0:
        made = made + (c if beta == 1 else c * beta)
    c[...] = made.astype(c.dtype, copy=False)


def _direct(xp: Any, a: Any, b: Any, *out: Any) -> bool:
    """Does one call of cuBLAS do?"""
    return (
        on_card(xp)
        and a.dtype == b.dtype
        and a.dtype.char in _BLAS
        and a.size > 0
        and b.size > 0
        and max(*a.shape, *b.shape) <= _LARGEST
        and all(_step(x) is not None for x in out)
    )


def _step(x: Any) -> tuple[bool, int] | None:
    """How cuBLAS, which counts down columns, is told of a matrix: is it transposed, and its step."""
    size = x.itemsize
    rows, columns = x.shape
    down, across = x.strides
    if (down == size or rows == 1) and (columns == 1 or (across >= rows * size and across % size == 0)):
        return False, across // size if columns > 1 else max(rows, 1)
    if (across == size or columns == 1) and (rows == 1 or (down >= columns * size and down % size == 0)):
        return True, down // size if rows > 1 else max(columns, 1)
    return None


def _call(xp: Any, a: Any, b: Any, c: Any, alpha: Any, beta: Any) -> None:
    """One call for matrices of a dtype of BLAS; `c` has contiguous rows or columns."""
    cuda = importlib.import_module("cupy.cuda")
    cublas, device = cuda.cublas, cuda.device

    turned, step_c = _step(c) or (False, 1)
    if turned:  # of contiguous rows: its transpose is what cuBLAS writes
        a, b, c = b.T, a.T, c.T
    a, b = (x if _step(x) is not None else xp.ascontiguousarray(x) for x in (a, b))
    (turned_a, step_a), (turned_b, step_b) = _step(a) or (True, 1), _step(b) or (True, 1)
    factors = [np.array(x, c.dtype) for x in (alpha, beta)]
    context = device.get_cublas_handle()
    mode = cublas.getPointerMode(context)
    cublas.setPointerMode(context, cublas.CUBLAS_POINTER_MODE_HOST)
    try:
        getattr(cublas, _BLAS[c.dtype.char])(
            context, int(turned_a), int(turned_b), c.shape[0], c.shape[1], a.shape[1], factors[0].ctypes.data,
            a.data.ptr, step_a, b.data.ptr, step_b, factors[1].ctypes.data, c.data.ptr, step_c,
        )  # fmt: skip
    finally:
        cublas.setPointerMode(context, mode)


def gpu_matmul(x1: Any, x2: Any) -> Any:
    a, b = verbs.leaf_of(x1).view, verbs.leaf_of(x2).view
    family = a.family
    made = uncounted(family, "matmul")(a, b)
    if counters.active:
        counters.add(launches=1, bytes_read=a.nbytes + b.nbytes, bytes_written=made.nbytes)
    return wrap(family, Leaf(made))


GPUArray._matmul = staticmethod(gpu_matmul)  # type: ignore[method-assign, assignment]


absent("vecdot", "Inner products of lines are a fused reduction on a card: mb.sum(x * y, axis=-1).")


# Scans


def gpu_accumulate(x: Any, op: Any, axis: int) -> Any:
    from mirabelle.backends.gpu import scans

    view = verbs.leaf_of(x).view
    return wrap(view.family, Leaf(scans.scan(view, op, axis)))


GPUArray._accumulate = staticmethod(gpu_accumulate)  # type: ignore[method-assign, assignment]


def _accumulation(name: str) -> Any:
    def accumulate(view: Any, *, axis: int = 0, dtype: Any = None) -> Any:
        """A ufunc's `accumulate` in a dtype that was asked for."""
        x = handle(view.family, view)
        x = cast_to(x, np.dtype(dtype)) if dtype is not None else x
        return verbs.leaf_of(verbs.accumulate(x, name, axis)).view

    return accumulate


for _name in sorted(ASSOCIATIVE):
    library.routine(GPUArray, f"{_name}.accumulate")(_accumulation(_name))
