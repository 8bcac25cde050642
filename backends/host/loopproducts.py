"""Products inside `@mb.jit` functions: those Numba lacks, and inner products, which it has slowly.

Numba multiplies matrices of one floating dtype through SciPy's BLAS. Here is the rest: integers
and truth values, operands of two dtypes, and everything where SciPy is not installed. These are
plain loops in the order of memory, which LLVM turns into vector code. Inner products are always
these: a call of BLAS costs more than a short vector, and strided ones would be copied first.

Imported, with Numba, when the first such function is compiled.
"""

from __future__ import annotations

import importlib.util
import operator
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload, register_jitable
from numba.np.numpy_support import as_dtype


def have_scipy() -> bool:
    return importlib.util.find_spec("scipy") is not None


_MISFIT = "the operands of a product do not fit: the last dimension of the first, the first of the second"
_OUT = "a product does not fit into `out`, which has another shape"

# The loops, by the dimensions of the operands. They are one function each, without slices: that is what
# compiles in a tenth of a second.
_LOOPS = {
    (1, 1): """
def product(a, b):
    if a.shape[0] != b.shape[0]:
        raise ValueError(misfit)
    total = zero
    for k in range(a.shape[0]):
        total = {total}
    return number(total)
""",
    (2, 1): """
def product(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError(misfit)
    out = np.empty(a.shape[0], kind)
    for i in range(a.shape[0]):
        total = zero
        for k in range(a.shape[1]):
            total = {total}
        out[i] = total
    return out
""",
    (1, 2): """
def product(a, b):
    if a.shape[0] != b.shape[0]:
        raise ValueError(misfit)
    out = np.zeros(b.shape[1], kind)
    for k in range(a.shape[0]):
        factor = a[k]
        for j in range(b.shape[1]):
            out[j] = {out}
    return out
""",
    (2, 2): """
def product(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError(misfit)
    out = np.zeros((a.shape[0], b.shape[1]), kind)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            factor = a[i, k]
            for j in range(b.shape[1]):
                out[i, j] = {out}
    return out
""",
}

# Of vectors with steps: four sums at once, since each addition waits for the one before.
_STRIDED = """
def product(a, b):
    n = a.shape[0]
    if n != b.shape[0]:
        raise ValueError(misfit)
    s = t = u = v = zero
    for k in range(0, n - 3, 4):
        s += a[k] * b[k]
        t += a[k + 1] * b[k + 1]
        u += a[k + 2] * b[k + 2]
        v += a[k + 3] * b[k + 3]
    for k in range(n // 4 * 4, n):
        s += a[k] * b[k]
    return number((s + t) + (u + v))
"""


def _strided(kind: np.dtype) -> Any:
    scope = {"__name__": __name__, "misfit": _MISFIT, "number": kind.type, "zero": kind.type(0)}
    exec(_STRIDED, scope)
    return scope["product"]


def _loops(ndims: tuple[int, int], kind: np.dtype) -> Any:
    """The function of these loops; small integers wrap around in their dtype."""
    i, j = "i, " * (ndims[0] == 2), ", j" * (ndims[1] == 2)
    join = "{0} | ({1} & {2})" if kind.kind == "b" else "{0} + {1} * {2}"
    total = join.format("total", f"a[{i}k]", f"b[k{j}]")
    out = join.format(f"out[{i}j]", "factor", f"b[k{j}]")
    # Compiled code is kept on disk only if its module has a name.
    scope = {"__name__": __name__, "np": np, "misfit": _MISFIT, "kind": kind, "number": kind.type}
    scope["zero"] = kind.type(0)
    exec(_LOOPS[ndims].format(total=total, out=out), scope)
    return scope["product"]


# Choosing them


def _common(name: str, a: Any, b: Any) -> Any:
    """The dtype of a product; None where it is Numba's to compute, or no product of arrays."""
    if not isinstance(a, types.Array) or not isinstance(b, types.Array):
        return None
    floating = isinstance(a.dtype, (types.Float, types.Complex))
    if a.dtype == b.dtype and floating and have_scipy() and not a.ndim == b.ndim == 1:
        return None
    if not 1 <= min(a.ndim, b.ndim) <= max(a.ndim, b.ndim) <= 2:
        raise TypingError(
            f"{name} of arrays of {a.ndim} and {b.ndim} dimensions: compiled functions multiply vectors and "
            "matrices; loop over a stack"
        )
    return np.result_type(as_dtype(a.dtype), as_dtype(b.dtype))


def _product(name: str, a: Any, b: Any) -> Any:
    """What computes a @ b."""
    kind = _common(name, a, b)
    if kind is None:
        return None
    loops = _loops((a.ndim, b.ndim), kind)
    if a.ndim == b.ndim == 1:
        return _strided(kind) if kind.kind == "f" and a.dtype == b.dtype else loops
    if kind.kind in "fc" and have_scipy():  # in one dtype it is BLAS's
        return lambda a, b: np.dot(a.astype(kind), b.astype(kind))
    return loops


def _contiguous_inner(a: Any, b: Any) -> Any:
    """What computes a @ b of contiguous vectors of one real dtype: in any order, which makes vector code."""
    if not isinstance(a, types.Array) or not isinstance(b, types.Array) or a.dtype != b.dtype:
        return None
    if a.ndim == b.ndim == 1 and isinstance(a.dtype, types.Float) and "A" not in (a.layout, b.layout):
        return _loops((1, 1), as_dtype(a.dtype))
    return None


def _product_into(a: Any, b: Any, out: Any) -> Any:
    """What computes `np.dot(a, b, out)`."""
    kind = _common("dot", a, b)
    if kind is None or not isinstance(out, types.Array):
        return None
    if out.ndim != a.ndim + b.ndim - 2 or not out.ndim:
        raise TypingError(f"a product of arrays of {a.ndim} and {b.ndim} dimensions does not fit into {out}")
    if as_dtype(out.dtype) != kind:
        raise TypingError(f"the product is of {kind}, and `out` holds {out.dtype}")
    write = _write_matrix if out.ndim == 2 else _write_vector
    return lambda a, b, out: write(np.dot(a, b), out)


@register_jitable
def _write_vector(value: Any, out: Any) -> Any:
    if out.shape[0] != value.shape[0]:
        raise ValueError(_OUT)
    for i in range(out.shape[0]):
        out[i] = value[i]
    return out


@register_jitable
def _write_matrix(value: Any, out: Any) -> Any:
    if out.shape[0] != value.shape[0] or out.shape[1] != value.shape[1]:
        raise ValueError(_OUT)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value[i, j]
    return out


def _conjugated(left: Any, right: Any) -> Any:
    """What computes `np.vdot`."""
    if not isinstance(left, types.Array) or not isinstance(right, types.Array):
        return None
    if left.ndim != 1 or right.ndim != 1 or _common("vdot", left, right) is None:
        return None
    if isinstance(left.dtype, types.Complex):
        return lambda left, right: np.dot(np.conj(left), right)
    return lambda left, right: np.dot(left, right)


def register() -> None:
    """Tell Numba. For processors these are asked before its own, which without SciPy only raise."""
    ours: list[tuple[Any, Any]] = [
        (np.dot, lambda a, b: _product("dot", a, b)),
        (np.dot, _product_into),
        (operator.matmul, lambda a, b: _product("@", a, b)),
        (np.vdot, _conjugated),
    ]
    # BLAS adds in another order than the loop says, too.
    for function in (np.dot, operator.matmul):
        overload(function, target="cpu", strict=False, jit_options={"fastmath": {"reassoc"}})(_contiguous_inner)
    for function, choose in ours:
        # Not strict: what is chosen has annotations, and the lambdas above have none.
        overload(function, target="cpu", strict=False)(choose)
