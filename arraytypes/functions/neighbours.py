"""Sums and products along the way, and differences: the standard's functions of neighbours."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to, copied
from mirabelle.arraytypes.functions.manipulation import concat, one_axis
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import _summed
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only

_ALL = slice(None)


@keyword_only("axis")
@array_function
def cumulative_sum(x: Any, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Any:
    """The sum of each element and those before it, along an axis.

    `include_initial` puts the sum of nothing before them. `axis` may be left away for one dimension.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; it may be left out of vectors only.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    include_initial : bool, default False
        Whether the result begins with 0, the sum of nothing.

    Returns
    -------
    array
        Of the shape of `x`, and one longer along the axis with `include_initial`. Truth values and integers
        become int64 or uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cumulative_sum(mb.HostArray([1, 2, 3]), include_initial=True))
    [0 1 3 6]
    """
    return _cumulative("add", 0, x, axis, dtype, include_initial)


@keyword_only("axis")
@array_function
def cumulative_prod(x: Any, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Any:
    """The product of each element and those before it, along an axis.

    `include_initial` puts the product of nothing before them. `axis` may be left away for one dimension.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; it may be left out of vectors only.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    include_initial : bool, default False
        Whether the result begins with 1, the product of nothing.

    Returns
    -------
    array
        Of the shape of `x`, and one longer along the axis with `include_initial`. Truth values and integers
        become int64 or uint64, other dtypes stay.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cumulative_prod(mb.HostArray([1, 2, 3, 4])))
    [ 1  2  6 24]
    """
    return _cumulative("multiply", 1, x, axis, dtype, include_initial)


def _cumulative(op: str, start: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    if not x.ndim:
        x = verbs.reshape(x, (1,))
    if axis is None:
        if x.ndim > 1:
            name = "sum" if op == "add" else "prod"
            raise ValueError(
                f"An array of {x.ndim} dimensions needs an axis: mb.cumulative_{name}(x, axis=0), or "
                f"mb.cumulative_{name}(mb.reshape(x, (-1,)))."
            )
        axis = 0
    axis = one_axis(axis, x.ndim)
    wanted = _summed(x.dtype) if dtype is None else checked_dtype(dtype)
    # (NumPy's loop widens small integers; modulo 2^n it makes no difference when they are cut.)
    running = cast_to(verbs.accumulate(cast_to(x, wanted), op, axis), wanted)
    if not include_initial:
        return running
    before = (_ALL,) * axis
    out = verbs.similar(running, shape=(*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :]))
    verbs.setitem(out, (*before, slice(0, 1), ...), start)
    verbs.setitem(out, (*before, slice(1, None), ...), running)
    return out


@keyword_only("n", "axis", "prepend", "append")
@array_function
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The difference of each element and the one before it along an axis, `n` times over; lazy.

    `prepend` and `append` are put before and after the elements first.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int, default 1
        How often.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    prepend : array, number or None
        What is put before.
    append : array, number or None
        What is put behind.

    Returns
    -------
    array
        Shorter by `n` along the axis, and of the dtype of `x`, or that of all with `prepend` or `append`;
        of truth values it says where neighbours differ.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.diff(mb.HostArray([1, 2, 4, 7])))
    [1 2 3]
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}.")
    if n == 0:
        return copied(x)
    if not x.ndim:
        raise ValueError("diff requires input that is at least one dimensional.")
    axis = one_axis(axis, x.ndim)
    ends = [None if end is None else _end(end, x, axis) for end in (prepend, append)]
    if any(end is not None for end in ends):
        x = concat([part for part in (ends[0], x, ends[1]) if part is not None], axis=axis)
    before = (_ALL,) * axis
    for _ in range(n):
        later = verbs.getitem(x, (*before, slice(1, None)))
        earlier = verbs.getitem(x, (*before, slice(None, -1)))
        x = verbs.not_equal(later, earlier) if x.dtype.kind == "b" else verbs.subtract(later, earlier)
    return x


def _end(end: Any, x: Any, axis: int) -> Any:
    """What is put before or after: a number is stretched to one layer."""
    end = as_array(end, x)
    return end if end.ndim else verbs.broadcast_to(end, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
