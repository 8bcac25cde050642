"""The standard's searching functions: where the extremes are.

(`nonzero`, `searchsorted` and `take` are in `picking`; `where` and `count_nonzero` are verbs.)
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only


@keyword_only("axis")
@array_function
def argmax(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Where the largest element is: its index along an axis, or among all elements in a row.

    The first of equal ones; NaN counts as the largest.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of dtype int64, without the axis; of no dimensions if `axis` is None. Where there are no elements,
        it is an error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.argmax(mb.HostArray([[1, 5, 3], [9, 2, 9]]), axis=1))
    [1 0]
    """
    return _position("argmax", x, axis, keepdims)


@keyword_only("axis")
@array_function
def argmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Where the smallest element is: its index along an axis, or among all elements in a row.

    The first of equal ones; NaN counts as the smallest.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of dtype int64, without the axis; of no dimensions if `axis` is None. Where there are no elements,
        it is an error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.argmin(mb.HostArray([4, 2, 7])))
    1
    """
    return _position("argmin", x, axis, keepdims)


def _position(routine: str, x: Any, axis: Any, keepdims: bool) -> Any:
    extent = x.shape if axis is None else (x.shape[axis],) if -x.ndim <= axis < x.ndim else ()
    if 0 in extent:
        raise ValueError(
            f"attempt to get {routine} of an empty sequence: an array of shape {x.shape} has no "
            f"{'largest' if routine == 'argmax' else 'smallest'} element there."
        )
    if axis is not None and not x.ndim:
        x = verbs.reshape(x, (1,))
        return verbs.reshape(library.call(routine, x, axis=axis), ())
    return library.call(routine, x, axis=axis, keepdims=bool(keepdims))
