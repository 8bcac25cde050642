"""Functions of stacks of matrices whose names mean something else for NumPy's arrays.

The array API standard's linalg takes matrices from the last two dimensions, NumPy's older
functions of the same names from the first two, or flatten.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.functions import products
from mirabelle.arraytypes.functions.lapack import check_matrices
from mirabelle.arraytypes.functions.products import as_arrays
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.dispatch import verbs


@array_function
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of each matrix of a stack: a view that can be written to.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    offset : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Of shape (..., k), where k is how many entries the diagonal has (0 beyond the corners), and of the
        dtype of `x`, whose memory it shares.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.diagonal(mb.HostArray([[1, 2], [3, 4]])))
    [1 4]
    """
    check_matrices("diagonal", x)
    return diagonal_view(x, offset, -2, -1)


@array_function
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal of each matrix of a stack.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    offset : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.

    Returns
    -------
    array
        One number for each matrix, so an array without axes of one matrix. Of the dtype of `x`, but small
        integers and bools become int64, unsigned ones uint64, as in `mb.sum`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.trace(mb.HostArray([[1, 2], [3, 4]])))
    5
    """
    check_matrices("trace", x)
    return verbs.sum(diagonal_view(x, offset, -2, -1), axis=-1, dtype=dtype)


@array_function(arity=2)
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all elements of one vector with all of another: pending, and fused.

    Parameters
    ----------
    x1 : array
        The vector along rows.
    x2 : array
        The vector along columns.

    Returns
    -------
    array
        Of shape (m, n), of vectors of lengths m and n. Of the dtype that both promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.outer(mb.HostArray([1, 2]), mb.HostArray([3, 4])))
    [[3 4]
     [6 8]]
    """
    x1, x2 = as_arrays(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"outer takes two vectors, and these have shapes {x1.shape} and {x2.shape}. Flatten them with "
            "mb.reshape(x, (-1,)), or use mb.outer, which does."
        )
    return products.outer(x1, x2)


@array_function(arity=2)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of three components, which lie along an axis.

    Parameters
    ----------
    x1 : array
        The first vectors.
    x2 : array
        The second vectors.
    axis : int or None, default -1
        The axis of the components in all three.

    Returns
    -------
    array
        Of the shape that both broadcast to, with three components along `axis`. Of the dtype that both
        promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.cross(mb.HostArray([1.0, 0.0, 0.0]), mb.HostArray([0.0, 1.0, 0.0])))
    [0. 0. 1.]
    """
    return products.cross(x1, x2, axis=axis)
