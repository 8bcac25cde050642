"""Running sums and products by NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.functions.reducing import _given
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import _summed
from mirabelle.dispatch import verbs


def running(op: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """The scan of `op` ("add", "multiply") along an axis, with NumPy's dtypes."""
    if axis is None:
        a, axis = verbs.reshape(a, (-1,)), 0
    elif not isinstance(axis, (int, np.integer)):
        raise TypeError(f"A running sum or product has one axis, an integer; not {axis!r}.")
    if not a.ndim:
        a = verbs.reshape(a, (1,))
    wanted = checked_dtype(dtype) if _given(dtype) else _summed(a.dtype)
    # (A scan widens small integers; modulo 2^n it makes no difference when they are cut.)
    return into(out, cast_to(verbs.accumulate(cast_to(a, wanted), op, axis), wanted))


@array_function
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running sum along an axis, or of all elements in a row.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape of `a`, or in one row if `axis` is None. Truth values and integers become int64 or
        uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cumsum(mb.HostArray([[1, 2], [3, 4]]), axis=0))
    [[1 2]
     [4 6]]
    """
    return running("add", a, axis, dtype, out)


@array_function
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running product along an axis, or of all elements in a row.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of the shape of `a`, or in one row if `axis` is None. Truth values and integers become int64 or
        uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cumprod(mb.HostArray([1, 2, 3])))
    [1 2 6]
    """
    return running("multiply", a, axis, dtype, out)
