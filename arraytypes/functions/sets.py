"""The standard's set functions: distinct elements, and membership.

Values come sorted; NaN equals nothing, so each is a value of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.dispatch import verbs


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: AbstractArray
    indices: AbstractArray
    inverse_indices: AbstractArray
    counts: AbstractArray


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: AbstractArray
    counts: AbstractArray


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: AbstractArray
    inverse_indices: AbstractArray


def _unique(x: Any, *wanted: str) -> Any:
    found = library.call(
        "unique", verbs.reshape(x, (-1,)), equal_nan=False, **{f"return_{what}": True for what in wanted}
    )
    if "inverse" not in wanted:
        return found
    at = 1 + wanted.index("inverse")
    return (*found[:at], verbs.reshape(found[at], x.shape), *found[at + 1 :])


@array_function
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements, where each is first, which of them each element is, and how often they occur.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    named tuple of array
        `values` (sorted), `indices` (into `x` in a row), `inverse_indices` (in the shape of `x`) and
        `counts`; all but the first are int64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.unique_all(mb.HostArray([7, 5, 7])).inverse_indices)
    [1 0 1]
    """
    return UniqueAll(*_unique(x, "index", "inverse", "counts"))


@array_function
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    named tuple of array
        `values` (sorted) and `counts` (int64), both of one dimension. Each NaN is an element of its own.

    Examples
    --------
    >>> import mirabelle as mb
    >>> values, counts = mb.unique_counts(mb.HostArray([7, 5, 7]))
    >>> print(values, counts)
    [5 7] [1 2]
    """
    return UniqueCounts(*_unique(x, "counts"))


@array_function
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is: `values[inverse_indices]` is `x`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    named tuple of array
        `values` (sorted, of one dimension) and `inverse_indices` (int64, in the shape of `x`).

    Examples
    --------
    >>> import mirabelle as mb
    >>> values, inverse = mb.unique_inverse(mb.HostArray([7, 5, 7]))
    >>> print(values[inverse])
    [7 5 7]
    """
    return UniqueInverse(*_unique(x, "inverse"))


@array_function
def unique_values(x: Any, /) -> Any:
    """The distinct elements.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        In one dimension, sorted, and of the dtype of `x`. Each NaN is an element of its own.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.unique_values(mb.HostArray([7, 5, 7])))
    [5 7]
    """
    return _unique(x)


@array_function(arity=2)
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Is each element of `x1` one of the elements of `x2`? (With `invert`: is it none?)

    Parameters
    ----------
    x1 : array
        The elements.
    x2 : array
        The set.
    invert : bool, default False
        Whether it is asked for those that are not in it.
    assume_unique : bool, default False
        Taken for NumPy's sake; nothing is gained by it here.
    kind : str or None
        Taken for NumPy's sake.

    Returns
    -------
    array
        Of dtype bool, and of the shape of `x1`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.isin(mb.HostArray([1, 2, 3]), mb.HostArray([3, 1])))
    [ True False  True]
    """
    return library.call("isin", x1, x2, invert=bool(invert))
