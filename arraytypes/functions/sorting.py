"""The standard's sorting functions."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.elementwise import copied
from mirabelle.arraytypes.functions.manipulation import flip, one_axis
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only


def _kind(x: Any, stable: bool, values_only: bool = False) -> str:
    """NumPy's name of the algorithm. Equal integers look alike: sorting them needs no stable one."""
    return "stable" if stable and not (values_only and x.dtype.kind in "biu") else "quicksort"


@keyword_only("axis")
@array_function
def sort(x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The elements of `x` in order along an axis (all of them in a row, if it is None).

    NaN counts as the largest. With `stable`, equal elements stay in the order they have.

    >>> import mirabelle as mb
    >>> print(mb.sort(mb.HostArray([3, 1, 2]), descending=True))
    [3 2 1]
    """
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    axis = one_axis(axis, x.ndim)
    kind = _kind(x, stable, values_only=True)
    if not descending:
        return library.call("sort", x, axis=axis, kind=kind)
    # Backwards twice: equal elements keep their order.
    return copied(flip(library.call("sort", flip(x, axis=axis), axis=axis, kind=kind), axis=axis))


@keyword_only("axis")
@array_function
def argsort(x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Where the elements of `x` are, in the order that `mb.sort` gives them.

    >>> import mirabelle as mb
    >>> print(mb.argsort(mb.HostArray([30, 10, 20])))
    [1 2 0]
    """
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    axis = one_axis(axis, x.ndim)
    if not descending:
        return library.call("argsort", x, axis=axis, kind=_kind(x, stable))
    found = library.call("argsort", flip(x, axis=axis), axis=axis, kind=_kind(x, stable))
    return verbs.subtract(max(x.shape[axis] - 1, 0), flip(found, axis=axis))
