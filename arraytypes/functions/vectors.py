"""Products of matrices and vectors in stacks."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.dispatch import verbs


@array_function(arity=2)
def matvec(x1: Any, x2: Any, /) -> Any:
    """The products of the matrices of a stack with the vectors of another.

    Parameters
    ----------
    x1 : array (..., m, n)
        Matrices.
    x2 : array (..., n)
        Vectors.

    Returns
    -------
    array
        Of shape (..., m), where the stacks are stretched to one shape, and of the dtype that both have
        together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.matvec(mb.HostArray([[1, 2], [3, 4]]), mb.HostArray([[1, 0], [0, 1]])))
    [[1 3]
     [2 4]]
    """
    columns = verbs.getitem(as_array(x2, x1), (..., None))
    return verbs.getitem(verbs.matmul(x1, columns), (..., 0))


@array_function(arity=2)
def vecmat(x1: Any, x2: Any, /) -> Any:
    """The products of the vectors of a stack, conjugated, with the matrices of another.

    Parameters
    ----------
    x1 : array (..., m)
        Vectors.
    x2 : array (..., m, n)
        Matrices.

    Returns
    -------
    array
        Of shape (..., n), where the stacks are stretched to one shape, and of the dtype that both have
        together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.vecmat(mb.HostArray([1, 1]), mb.HostArray([[1, 2], [3, 4]])))
    [4 6]
    """
    rows = verbs.getitem(verbs.conj(x1) if x1.dtype.kind == "c" else x1, (..., None, slice(None)))
    return verbs.getitem(verbs.matmul(rows, x2), (..., 0, slice(None)))
