"""Functions of whole matrices (exponential, logarithm, root), and matrices made of blocks."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.functions.lapack import call, check_square
from mirabelle.arraytypes.functions.products import new_array
from mirabelle.arraytypes.wrappers import view_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.tree import broadcast_shapes


@array_function
def expm(A: Any, /) -> Any:
    """The exponentials of square matrices: the sum of A^k / k!. Also called `mb.linalg.matrix_exp`.

    Parameters
    ----------
    A : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        Of the shape and dtype of `A`, float64 of integers, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.expm(mb.HostArray([[0.0, 1.0], [0.0, 0.0]])))
    [[1. 1.]
     [0. 1.]]
    """
    check_square("expm", A)
    return call("expm", "linalg.expm", A)


@array_function
def logm(A: Any, /) -> Any:
    """The principal logarithms of square matrices: what `expm` gives them back of.

    Parameters
    ----------
    A : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        Of the shape of `A`, float64; complex128 where `A` is complex, or its logarithm is not real.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.logm(mb.HostArray([[1.0, 1.0], [0.0, 1.0]])))
    [[0. 1.]
     [0. 0.]]
    """
    check_square("logm", A)
    return call("logm", "linalg.logm", A)


@array_function
def sqrtm(A: Any, /) -> Any:
    """The principal square roots of square matrices: what times itself gives A.

    Parameters
    ----------
    A : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        Of the shape and dtype of `A`, float64 of integers; complex where the root of a real matrix is not
        real.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.sqrtm(mb.HostArray([[4.0, 0.0], [0.0, 9.0]])))
    [[2. 0.]
     [0. 3.]]
    """
    check_square("sqrtm", A)
    return call("sqrtm", "linalg.sqrtm", A)


@explained
def block_diag(*arrays: Any) -> AbstractArray:
    """A matrix with the given ones along its diagonal, and zeros elsewhere; vectors are rows.

    Parameters
    ----------
    *arrays : matrices
        The blocks.

    Returns
    -------
    array
        Dense, with as many rows and columns as all have together, in new memory. Of the dtype that all
        promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.block_diag(mb.HostArray([[1, 2], [3, 4]]), [[5]]))
    [[1 2 0]
     [3 4 0]
     [0 0 5]]
    """
    if not arrays:
        raise ValueError("block_diag takes at least one matrix.")
    like = next((x for x in arrays if isinstance(x, AbstractArray)), None)
    blocks = [as_array(x, like=like) for x in arrays]
    blocks = [verbs.reshape(x, (1, -1)) if x.ndim < 2 else x for x in blocks]
    stack = broadcast_shapes([x.shape[:-2] for x in blocks], "block_diag")
    shape = (*stack, sum(x.shape[-2] for x in blocks), sum(x.shape[-1] for x in blocks))
    made = verbs.assign(new_array(tuple(blocks), shape), 0)
    row = column = 0
    for x in blocks:
        rows, columns = x.shape[-2:]
        if rows and columns:
            verbs.assign(view_of(made, (..., slice(row, row + rows), slice(column, column + columns))), x)
        row, column = row + rows, column + columns
    return made
