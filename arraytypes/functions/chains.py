"""Several steps in one call: the product that adds to its destination, powers, chains of products."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import apart, check_fits
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to, join_families
from mirabelle.arraytypes.functions.contraction import pending
from mirabelle.arraytypes.functions.products import new_array
from mirabelle.arraytypes.functions.square import check_square
from mirabelle.arraytypes.lending import own
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.tree import broadcast_shapes


@array_function(arity=2)
def gemm(x1: Any, x2: Any, /, *, alpha: Any = 1, beta: Any = 0, out: Any = None) -> Any:
    """alpha * x1 @ x2 + beta * out, written straight into `out` (a new array if it is None).

    The primitive below products that update: BLAS scales and adds while it multiplies, so no
    temporary is made. With `beta=0` the old contents of `out` are not read.

    >>> import mirabelle as mb
    >>> a, c = mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), mb.ones((2, 2))
    >>> print(mb.linalg.gemm(a, a, alpha=2.0, beta=10.0, out=c))
    [[24. 30.]
     [40. 54.]]
    """
    alpha, beta = _number("alpha", alpha), _number("beta", beta)
    if x1.ndim < 2 or x2.ndim < 2:
        raise ValueError(
            f"gemm takes matrices, and these have shapes {x1.shape} and {x2.shape}. Make a vector one column "
            "with x[:, None], or write alpha * (A @ x) + beta * y."
        )
    if x1.shape[-1] != x2.shape[-2]:
        raise ValueError(
            f"gemm: shapes {x1.shape} and {x2.shape} do not fit: the last dimension of the first must equal "
            "the last but one of the second. Transpose one with x.T."
        )
    shape = (*broadcast_shapes([x1.shape[:-2], x2.shape[:-2]], "gemm"), x1.shape[-2], x2.shape[-1])
    dtype = promotion.result_type(x1.dtype, x2.dtype, type(alpha), type(beta))
    if out is None:
        if beta:
            raise ValueError("gemm: beta scales what is in `out`, and no `out` was given: out=C.")
        out = new_array((x1, x2), shape, dtype)
    elif not isinstance(out, AbstractArray):
        out = as_array(out)
    if out.shape != shape:
        raise ValueError(
            f"gemm: `out` has shape {out.shape} and the product {shape}. Make it with mb.empty({shape})."
        )
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"gemm: a result of dtype {dtype.name} cannot be written into {out.dtype.name}.")
    family = join_families("gemm", (x1, x2, out))
    x1, x2 = cast_to(x1, promotion.result_type(x1.dtype, x2.dtype)), cast_to(
        x2, promotion.result_type(x1.dtype, x2.dtype)
    )
    if not beta and pending(out):
        return verbs.assign(out, gemm(x1, x2, alpha=alpha))
    # Whoever holds these leaves is a reader: if `out` is one of them, it gets memory of its own.
    leaves = [verbs.leaf_of(x) for x in (x1, x2)]
    own(out)
    target = verbs.leaf_of(out).view
    views = [leaf.view if apart(leaf.view, target) else verbs.leaf_of(verbs.copy(x)).view
             for leaf, x in zip(leaves, (x1, x2), strict=True)]  # fmt: skip
    family._routine("gemm")(*views, target, alpha=alpha, beta=beta)
    return out


def _number(name: str, x: Any) -> Any:
    if isinstance(x, (AbstractArray, np.ndarray)) and not x.ndim:
        return x.item()
    if not isinstance(x, (bool, int, float, complex, np.generic)):
        raise TypeError(f"gemm: {name} is a number, not a {type(x).__name__}.")
    return x.item() if isinstance(x, np.generic) else x
