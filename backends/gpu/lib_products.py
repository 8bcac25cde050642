"""Matrix products of a card by dtype (cuBLAS, CuPy's kernels for integers), and ufuncs' `accumulate`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.gpu import GPUArray, handle
from mirabelle.backends.gpu.lib_blas import PREFIX, multiply
from mirabelle.backends.gpu.lib_segments import ASSOCIATIVE
from mirabelle.backends.gpu.library import absent, on_card, routine
from mirabelle.dispatch import verbs


@routine("matmul")
def matmul(xp: Any, a: Any, b: Any) -> Any:
    """a @ b in the operands' common dtype."""
    dtype = np.result_type(a.dtype, b.dtype)
    if dtype.kind == "b":
        # Is there any pair? Numbers of pairs are exact enough in single precision not to vanish.
        return matmul(xp, a.astype(np.float32), b.astype(np.float32)) != 0
    if dtype == np.float16 and not on_card(xp):  # accumulated in single precision, as cuBLAS does
        return xp.matmul(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if not a.size or not b.size:
        return xp.zeros(_shape(a, b), dtype)
    if on_card(xp) and dtype.char in PREFIX and max(a.ndim, b.ndim) > 1:
        out = xp.empty(_shape(a, b), dtype)
        if multiply(xp, a, b, out):
            return out
    return xp.matmul(a, b)


def _shape(a: Any, b: Any) -> tuple[int, ...]:
    """The shape of a @ b."""
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (*stack, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))


@routine("gemm")
def gemm(xp: Any, a: Any, b: Any, c: Any, *, alpha: Any = 1, beta: Any = 0) -> None:
    """c = alpha * a @ b + beta * c, in place. With beta 0, `c` is not read."""
    if multiply(xp, a, b, c, alpha, beta):
        return
    made = matmul(xp, a, b)
    if alpha != 1:
        made = made * alpha
    if beta != 0:
        made = made + (c if beta == 1 else c * beta)
    c[...] = made.astype(c.dtype, copy=False)


absent("vecdot", "Inner products of lines are a fused reduction on a card: mb.sum(x * y, axis=-1).")


# Scans


def _accumulation(name: str) -> Any:
    def accumulate(view: Any, *, axis: int = 0, dtype: Any = None) -> Any:
        """A ufunc's `accumulate` in a dtype that was asked for."""
        x = handle(view.family, view)
        x = cast_to(x, np.dtype(dtype)) if dtype is not None else x
        return verbs.leaf_of(verbs.accumulate(x, name, axis)).view

    return accumulate


for _name in sorted(ASSOCIATIVE):
    library.routine(GPUArray, f"{_name}.accumulate")(_accumulation(_name))
