"""The standard's sorting functions."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.elementwise import copied
from mirabelle.arraytypes.functions.manipulation import flip, one_axis
from mirabelle.arraytypes.indexing import lying_within
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only


@keyword_only("axis")
@array_function
def sort(x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The elements of `x` in order along an axis (all of them in a row, if it is None).

    NaN counts as the largest. Equal elements look alike, so `stable` changes nothing: zeros of both
    signs, and NaNs of different bits, may come in any order among themselves.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None, default -1
        Along which axis; None sorts all elements in a row.
    descending : bool, default False
        Whether the largest comes first.
    stable : bool, default True
        Whether equal elements keep their order.
    kind : str or None
        NumPy's name of a method of sorting; only whether it is stable matters here.
    order : None
        Taken for NumPy's sake: there are no fields.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, or in one row if `axis` is None; in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sort(mb.HostArray([3, 1, 2]), descending=True))
    [3 2 1]
    """
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    axis = one_axis(axis, x.ndim)
    found = library.call("sort", x, axis=axis)
    return copied(flip(found, axis=axis)) if descending else found


@keyword_only("axis")
@array_function
def argsort(x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Where the elements of `x` are, in the order that `mb.sort` gives them.

    With `stable`, equal elements stay in the order they have.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None, default -1
        Along which axis; None sorts all elements in a row.
    descending : bool, default False
        Whether the largest comes first.
    stable : bool, default True
        Whether equal elements keep their order.
    kind : str or None
        NumPy's name of a method of sorting; only whether it is stable matters here.
    order : None
        Taken for NumPy's sake: there are no fields.

    Returns
    -------
    array
        Of dtype int64, and of the shape of `x`, or in one row if `axis` is None: what `mb.take_along_axis`
        takes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.argsort(mb.HostArray([30, 10, 20])))
    [1 2 0]
    """
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    axis = one_axis(axis, x.ndim)
    kind = "stable" if stable else "quicksort"
    if not descending:
        order = library.call("argsort", x, axis=axis, kind=kind)
        return lying_within(order, x.shape[axis], distinct=x.ndim == 1)
    # Backwards twice: equal elements keep their order.
    found = library.call("argsort", flip(x, axis=axis), axis=axis, kind=kind)
    return verbs.subtract(max(x.shape[axis] - 1, 0), flip(found, axis=axis))
