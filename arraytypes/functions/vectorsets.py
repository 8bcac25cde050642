"""Sets as sorted vectors, by NumPy's names.

Plain arrays of the host ask NumPy; on cards, over processes and for dual numbers they are composed of `unique`,
sorts, and what neighbours say of each other.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.picking import take
from mirabelle.arraytypes.functions.sorting import argsort, sort
from mirabelle.dispatch import verbs


@array_function
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,
) -> AbstractArray | tuple[AbstractArray, ...]:  # fmt: skip
    """The sorted elements (or slices along an axis), each once; where they first stand, where each
    element went, and how often each stood, if asked for.

    Parameters
    ----------
    ar : array
        An array; a list, a number or a NumPy array becomes one.
    return_index : bool, default False
        Whether the indices of first occurrences are returned, too.
    return_inverse : bool, default False
        Whether the indices that make `ar` again are returned, too.
    return_counts : bool, default False
        Whether the numbers of occurrences are returned, too.
    axis : int or None
        Along which axis; None takes all elements in a row.
    equal_nan : bool, default True
        Whether all NaN are one.
    sorted : bool, default True
        Taken for NumPy's sake; the result is sorted.

    Returns
    -------
    array or tuple of array
        In one dimension, or along `axis`. If more is asked for, a tuple in this order: elements, indices,
        inverse (in the shape of `ar`, or along `axis`), counts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> values, counts = mb.unique(mb.HostArray([3, 1, 3]), return_counts=True)
    >>> print(values, counts)
    [1 3] [1 2]
    """
    return library.call(
        "unique", ar, return_index=bool(return_index), return_inverse=bool(return_inverse),
        return_counts=bool(return_counts), axis=axis, equal_nan=equal_nan,
    )  # fmt: skip


@array_function(arity=2)
def union1d(ar1: Any, ar2: Any) -> Any:
    """The sorted elements of either, each once.

    Parameters
    ----------
    ar1 : array
        The first set.
    ar2 : array
        The second set.

    Returns
    -------
    array
        In one dimension, of the dtype that both have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.union1d(mb.HostArray([3, 1]), [1, 2]))
    [1 2 3]
    """
    return library.numpys_or(_united, "union1d", *_arrays(ar1, ar2))


def _arrays(a: Any, b: Any) -> tuple[Any, Any]:
    a = as_array(a, None)
    return a, as_array(b, a)


@array_function(arity=2)
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> AbstractArray | tuple[AbstractArray, AbstractArray, AbstractArray]:
    """The sorted elements of both; with `return_indices`, also where they first stand in each.

    Parameters
    ----------
    ar1 : array
        The first set.
    ar2 : array
        The second set.
    assume_unique : bool, default False
        Taken for NumPy's sake; nothing is gained by it here.
    return_indices : bool, default False
        Whether indices of first occurrences are returned, too.

    Returns
    -------
    array or tuple of array
        In one dimension, of the dtype both have together, each element once. With `return_indices` a tuple:
        elements, indices into `ar1`, indices into `ar2`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.intersect1d(mb.HostArray([3, 1]), [1, 2]))
    [1]
    """
    return library.numpys_or(
        _shared, "intersect1d", *_arrays(ar1, ar2), assume_unique=assume_unique, return_indices=return_indices
    )


@array_function(arity=2)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The sorted elements of the first that are not in the second.

    Parameters
    ----------
    ar1 : array
        The first set.
    ar2 : array
        The second set.
    assume_unique : bool, default False
        Taken for NumPy's sake; nothing is gained by it here.

    Returns
    -------
    array
        In one dimension, of the dtype of `ar1`, each element once.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.setdiff1d(mb.HostArray([3, 1]), [1, 2]))
    [3]
    """
    return library.numpys_or(_left_over, "setdiff1d", *_arrays(ar1, ar2), assume_unique=assume_unique)


@array_function(arity=2)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The sorted elements that are in exactly one of the two.

    Parameters
    ----------
    ar1 : array
        The first set.
    ar2 : array
        The second set.
    assume_unique : bool, default False
        Taken for NumPy's sake; nothing is gained by it here.

    Returns
    -------
    array
        In one dimension, of the dtype that both have together, each element once.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.setxor1d(mb.HostArray([3, 1]), [1, 2]))
    [2 3]
    """
    return library.numpys_or(_in_one, "setxor1d", *_arrays(ar1, ar2), assume_unique=assume_unique)


# Composed


def _vector(x: Any) -> Any:
    return verbs.reshape(x, (-1,)) if x.ndim != 1 else x


def _both(a: Any, b: Any, assume_unique: bool) -> Any:
    """The elements of both in a row, each once in either unless that is promised."""
    return concatenate([_vector(x) if assume_unique else unique(x) for x in (a, b)])


def _united(a: Any, b: Any) -> Any:
    return unique(_both(a, b, True))


def _shared(a: Any, b: Any, *, assume_unique: bool, return_indices: bool) -> Any:
    first: list[Any] = []
    if return_indices and not assume_unique:
        (a, *from_a), (b, *from_b) = unique(a, return_index=True), unique(b, return_index=True)
        first, assume_unique = [*from_a, *from_b], True
    elif not assume_unique:
        a, b, assume_unique = unique(a), unique(b), True
    both = _both(a, b, assume_unique)
    order = argsort(both)
    ordered = take(both, order)
    shared = verbs.equal(ordered[1:], ordered[:-1])
    found = ordered[:-1][shared]
    if not return_indices:
        return found
    in_a, in_b = order[:-1][shared], verbs.subtract(order[1:][shared], a.size)
    return found, *((take(first[0], in_a), take(first[1], in_b)) if first else (in_a, in_b))


def _left_over(a: Any, b: Any, *, assume_unique: bool) -> Any:
    a, b = (_vector(a), b) if assume_unique else (unique(a), unique(b))
    return a[library.call("isin", a, b, invert=True)]


def _in_one(a: Any, b: Any, *, assume_unique: bool) -> Any:
    ordered = sort(_both(a, b, assume_unique))
    if ordered.shape[0] < 2:
        return ordered
    differs = verbs.not_equal(ordered[1:], ordered[:-1])
    ends = verbs.logical_or(differs[:1], True)
    alone = concatenate([ends, differs, ends])
    return ordered[verbs.logical_and(alone[1:], alone[:-1])]
