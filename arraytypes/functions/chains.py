"""Several steps in one call: the product that adds to its destination, powers, chains of products."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import apart
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to, join_families
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, identity_like
from mirabelle.arraytypes.functions.outputs import into, pending
from mirabelle.arraytypes.functions.products import new_array
from mirabelle.arraytypes.functions.solving import inv
from mirabelle.arraytypes.lending import own
from mirabelle.arraytypes.library import routine_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.tree import broadcast_shapes


@array_function(arity=2)
def gemm(x1: Any, x2: Any, /, *, alpha: Any = 1, beta: Any = 0, out: Any = None) -> Any:
    """alpha * x1 @ x2 + beta * out, written straight into `out` (a new array if it is None).

    The primitive below products that update: BLAS scales and adds while it multiplies, so no
    temporary is made. With `beta=0` the old contents of `out` are not read.

    Parameters
    ----------
    x1 : array or number
        The first operand.
    x2 : array or number
        The second operand.
    alpha : number, default 1
        The factor of the product.
    beta : number, default 0
        The factor of `out`.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        `out` itself where it is given, else a new array of shape (..., m, n), of the dtype that both
        promote to with the kind of the factors (float64 of integers and a float).

    Examples
    --------
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
    common = promotion.result_type(x1.dtype, x2.dtype)
    x1, x2 = cast_to(x1, common), cast_to(x2, common)
    if not beta and pending(out):
        return verbs.assign(out, gemm(x1, x2, alpha=alpha))
    # Whoever holds these leaves is a reader: if `out` is one of them, it gets memory of its own.
    leaves = [verbs.leaf_of(x) for x in (x1, x2)]
    own(out)
    target = verbs.leaf_of(out).view
    views = [
        leaf.view if apart(leaf.view, target) else verbs.leaf_of(verbs.copy(x)).view
        for leaf, x in zip(leaves, (x1, x2), strict=True)
    ]
    routine_of(family, "gemm")(*views, target, alpha=alpha, beta=beta)
    return out


def _number(name: str, x: Any) -> Any:
    if isinstance(x, (AbstractArray, np.ndarray)) and not x.ndim:
        return x.item()
    if not isinstance(x, (bool, int, float, complex, np.generic)):
        raise TypeError(f"gemm: {name} is a number, not a {type(x).__name__}.")
    return x.item() if isinstance(x, np.generic) else x


@array_function
def matrix_power(x: Any, n: int, /) -> Any:
    """Square matrices multiplied by themselves; a negative `n` inverts them first.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.
    n : int
        How often; negative powers are those of the inverse.

    Returns
    -------
    array
        Of the shape and dtype of `x`; integers become float64 only if `n` is negative.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.matrix_power(mb.HostArray([[1, 1], [1, 0]]), 10))
    [[89 55]
     [55 34]]
    """
    check_square("matrix_power", x)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(
            f"matrix_power: the exponent is an integer, not {n!r}. Other powers come of the logarithm: "
            "`mb.linalg.expm(n * mb.linalg.logm(A))`."
        ) from None
    if n == 0:
        return verbs.copy(verbs.broadcast_to(identity_like(x, x.shape[-1]), x.shape))
    return powered(inv(x), -n) if n < 0 else powered(x, n)


def powered(x: Any, n: int) -> Any:
    """A matrix multiplied by itself, for n of at least 1."""
    if n == 1:
        return verbs.copy(x)
    if n == 3:
        return verbs.matmul(verbs.matmul(x, x), x)
    result = square = None
    while n > 0:
        square = x if square is None else verbs.matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            result = square if result is None else verbs.matmul(result, square)
    return result


@explained
def multi_dot(arrays: Any, *, out: Any = None) -> AbstractArray:
    """The product of a chain of matrices, in the order of fewest multiplications.

    The first and the last may be vectors.

    Parameters
    ----------
    arrays : sequence of matrices
        The chain; its ends may be vectors.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        `out` itself where it is given, else of shape (m, n), without m or n where that end is a vector; of
        the dtype that all promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A, B = mb.ones((100, 2)), mb.ones((2, 100))
    >>> mb.linalg.multi_dot([A, B, A]).shape
    (100, 2)
    """
    given = list(arrays)
    if len(given) < 2:
        raise ValueError(f"multi_dot takes at least two matrices, and got {len(given)}.")
    like = next((x for x in given if isinstance(x, AbstractArray)), None)
    chain = [as_array(x, like=like) for x in given]
    last = len(chain) - 1
    shapes = []
    for i, x in enumerate(chain):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, last)):
            raise LinAlgError(
                f"multi_dot takes matrices, and vectors at the ends; array {i} has {x.ndim} dimensions."
            )
        shapes.append(x.shape if x.ndim == 2 else (1, *x.shape) if i == 0 else (*x.shape, 1))
        if i and shapes[i - 1][1] != shapes[i][0]:
            raise ValueError(
                f"multi_dot: array {i - 1} of shape {chain[i - 1].shape} and array {i} of shape {x.shape} do "
                "not fit: the columns of the first must be as many as the rows of the second."
            )
    split = order_of_chain((*(rows for rows, _ in shapes), shapes[-1][1]))
    return into(out, _multiplied(chain, split, 0, last))


@functools.lru_cache(maxsize=1024)
def order_of_chain(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to split each part of a chain whose matrix i is sizes[i] x sizes[i + 1]."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)
            }
            split[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[split[i, j]]
    return split


def _multiplied(chain: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return chain[i]
    k = split[i, j]
    return verbs.matmul(_multiplied(chain, split, i, k), _multiplied(chain, split, k + 1, j))
