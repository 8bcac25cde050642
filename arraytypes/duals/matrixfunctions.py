"""Functions of matrices of dual numbers: the exponential, the logarithm, the square root; gemm, the trace.

f([[A, dA], [0, A]]) has df in its upper right corner, whatever function f is: so the routine itself gives the
derivative, of one stack of matrices twice as large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.base import Dual, partials_of
from mirabelle.arraytypes.duals.columns import places
from mirabelle.arraytypes.duals.moving import _array
from mirabelle.arraytypes.duals.reducing import summed
from mirabelle.arraytypes.duals.routines import on_values, rule_of
from mirabelle.arraytypes.duals.solving import read_triangle
from mirabelle.arraytypes.functions import chains, matrices
from mirabelle.arraytypes.functions.lapack import check_matrices
from mirabelle.arraytypes.functions.manipulation import concat, stack
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs


@rule_of("linalg.expm", "linalg.logm", "linalg.sqrtm")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    value = on_values(routine, top, operands, options)
    p, n = partials_of(a), a.shape[-1]
    if not value.size:
        return a._with(value, ((None, p),))
    if routine == "linalg.sqrtm":
        return a._with(value, ((None, _root_change(value, p)),))
    A = verbs.broadcast_to(a._value, p.shape)
    zeros = verbs.multiply(p, 0)
    large = concat([concat([A, p], axis=-1), concat([zeros, A], axis=-1)], axis=-2)
    change = library.call(routine, large, **options)[..., :n, n:]
    return a._with(value, ((None, change),))


def _root_change(root: Any, p: Any) -> Any:
    """X dX + dX X = dA: Sylvester's equation, of which one Schur form of X serves all directions."""
    if root.ndim > 2:
        each = [_root_change(root[i], p[:, i]) for i in range(root.shape[0])]
        return stack(each, axis=1) if each else p
    p = verbs.astype(p, np.result_type(p.dtype, root.dtype), copy=False)
    made = library.call("kronecker_sum_solve", [root, root.T], p[..., None])
    return made[..., 0]


@rule_of("tril", "triu")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    return a._with(
        on_values(routine, top, operands, options), ((None, library.call(routine, partials_of(a), **options)),)
    )


# Products


_OTHERS = (AbstractArray, Structured)


def _gemm(x1: Any, x2: Any, /, *, alpha: Any = 1, beta: Any = 0, out: Any = None) -> Any:
    check_matrices("gemm", x1)
    check_matrices("gemm", x2)
    made = verbs.matmul(x1, x2)
    if type(alpha) not in (int, float) or alpha != 1:
        made = verbs.multiply(made, alpha)
    if out is None:
        if beta:
            raise ValueError("gemm: beta scales what is in `out`, and no `out` was given: out=C.")
        return made
    return verbs.assign(out, verbs.add(made, verbs.multiply(out, beta)) if beta else made, casting="same_kind")


for _signature in ((Dual, Dual), *((Dual, t) for t in _OTHERS), *((t, Dual) for t in _OTHERS)):
    chains.gemm.method(_gemm, signature=_signature)


@rule_of("adjoint_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    return verbs.matmul(*[_shown(x, how) for x, how in zip(operands, options["how"], strict=True)])


def _shown(x: Any, how: str) -> Any:
    return x if how == "N" else verbs.conj(x) if how == "J" else verbs.conj(x.T)


@rule_of("triangular_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, b = operands
    return _multiplied(read_triangle(a, not options["upper"], options["unit"]), b, options["left"])


@rule_of("mirrored_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    from mirabelle.arraytypes.structured.mirrored import Hermitian, Symmetric

    a, b = operands
    kind: Any = Hermitian if options["hermitian"] else Symmetric
    whole = kind._of((a,), a.shape, "U" if options["upper"] else "L")._dense()
    return _multiplied(whole, b, options["left"])


def _multiplied(a: Any, b: Any, left: bool) -> Any:
    return verbs.matmul(a, b) if left else verbs.matmul(b, a)


# The trace


@matrices.trace.method
def _(x: Dual, *, offset: int = 0, dtype: Any = None) -> Any:
    check_matrices("trace", x)
    if dtype is not None:
        x = verbs.astype(x, dtype, copy=False)
        if not isinstance(x, Dual):
            return matrices.trace(x, offset=offset)
    i, j = places(x)
    weight = verbs.astype(verbs.equal(verbs.add(i, offset), j), x.dtype)
    terms = tuple((weight if c is None else verbs.multiply(weight, c), base) for c, base in x._now())
    return summed(x, matrices.trace(_array(x), offset=offset), terms, (x.ndim - 2, x.ndim - 1), False)
