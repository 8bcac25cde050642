"""Counting what falls where: histograms, bincount and digitize."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array, as_selection
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained


def _list(result: Any) -> tuple[Any, list[Any]]:
    """Counts, and edges as the list that NumPy gives."""
    counts, edges = result
    return counts, list(edges)


@array_function
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[AbstractArray, AbstractArray]:
    """How many elements fall into each bin, and the edges of the bins.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    bins : int, str or array, default 10
        How many bins, a rule of NumPy's for their number, or their edges.
    range : pair of numbers or None
        The ends of the bins; None is the smallest and the largest element.
    density : bool
        Whether counts become a density, whose integral is one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    tuple of array
        The counts (int64; with weights of their dtype, with `density` float64), and the edges, which are
        one more than the bins.

    Examples
    --------
    >>> import mirabelle as mb
    >>> counts, edges = mb.histogram(mb.HostArray([1, 2, 1]), bins=[0, 1, 2, 3])
    >>> print(counts, edges)
    [0 2 1] [0 1 2 3]
    """
    _check_real("histogram", a)
    if range is None:
        range = _span(a, bins)
    return library.call("histogram", a, bins=_edges(bins, a), range=range, density=density, weights=weights)  # type: ignore[no-any-return]


def _check_real(name: str, *arrays: Any) -> None:
    """Bins lie between real numbers. (NumPy drops imaginary parts, but not of its edges.)"""
    if any(x.dtype.kind == "c" for x in arrays):
        raise TypeError(
            f"{name} takes real numbers, and these are complex. Take mb.real(x) or mb.abs(x) first."
        )


def _edges(bins: Any, a: Any) -> Any:
    return as_selection(bins, a) if isinstance(bins, np.ndarray) and bins.ndim else bins


def _span(a: Any, bins: Any) -> tuple[Any, Any] | None:
    """What equal bins of data far from the host span: found once for each version of its contents."""
    if (
        isinstance(bins, (bool, np.bool_))
        or not isinstance(bins, (int, np.integer))
        or bins < 1
        or not a.size
        or a.dtype.kind not in "iuf"
        or leaf_family(type(a)).home.rank < 2
        or a.carries_derivatives
        or (recording.active and recording.current() is not None)
    ):
        return None
    leaf = verbs.leaf_of(a)
    known = leaf.recalled("extremes")
    if known is None:
        low, high = verbs.min(a), verbs.max(a)  # (one pass finds both)
        known = np.asarray(verbs.fetch(low))[()], np.asarray(verbs.fetch(high))[()]
        leaf.remember("extremes", known)
    return known if math.isfinite(known[0]) and math.isfinite(known[1]) else None


@array_function
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins that `histogram` would take.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    bins : int, str or array, default 10
        How many bins, a rule of NumPy's for their number, or their edges.
    range : pair of numbers or None
        The ends of the bins; None is the smallest and the largest element.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    array
        Of one dimension, and one more than there are bins.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.histogram_bin_edges(mb.HostArray([0.0, 4.0]), bins=4))
    [0. 1. 2. 3. 4.]
    """
    _check_real("histogram_bin_edges", a)
    return library.call("histogram_bin_edges", a, bins=_edges(bins, a), range=range, weights=weights)


@array_function(arity=2)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[AbstractArray, AbstractArray, AbstractArray]:
    """How many points (x, y) fall into each cell, and the edges of the cells along both axes.

    Parameters
    ----------
    x : array
        The first coordinates.
    y : array
        The second coordinates.
    bins : int, pair or arrays, default 10
        How many bins along each axis, or their edges.
    range : pairs or None
        The ends of the bins along each axis.
    density : bool
        Whether counts become a density, whose integral is one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    tuple of array
        The counts as floating-point numbers, with a row for each bin of `x`; the edges along x; and the
        edges along y.

    Examples
    --------
    >>> import mirabelle as mb
    >>> counts, x_edges, y_edges = mb.histogram2d(mb.HostArray([0.0, 1.0]), mb.HostArray([0.0, 1.0]), bins=2)
    >>> print(counts)
    [[1. 0.]
     [0. 1.]]
    """
    _check_real("histogram2d", x, y)
    return library.call("histogram2d", x, y, bins=bins, range=range, density=density, weights=weights)  # type: ignore[no-any-return]


@explained
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[AbstractArray, list[AbstractArray]]:
    """How many points fall into each cell of a grid, and the edges of the cells along each axis.

    `sample` is an array of points (its rows), or a sequence of the coordinates along each axis.

    Parameters
    ----------
    sample : array (N, D)
        The points, one a row.
    bins : int, sequence or arrays, default 10
        How many bins along each axis, or their edges.
    range : pairs or None
        The ends of the bins along each axis.
    density : bool
        Whether counts become a density, whose integral is one.
    weights : array or None
        How much each element counts; None is one for all.

    Returns
    -------
    tuple
        The counts as floating-point numbers, with a dimension for each coordinate; and a list of the arrays
        of edges.

    Examples
    --------
    >>> import mirabelle as mb
    >>> counts, edges = mb.histogramdd(mb.HostArray([[0.0, 0.0], [1.0, 1.0]]), bins=2)
    >>> print(counts)
    [[1. 0.]
     [0. 1.]]
    """
    if isinstance(sample, np.ndarray):
        sample = as_array(sample)
    return _list(library.call("histogramdd", sample, bins=bins, range=range, density=density, weights=weights))


@array_function
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """How often each of 0, 1, 2, ... stands in `x`; or the sum of the weights where it does.

    Parameters
    ----------
    x : array of int
        Numbers that are not negative.
    weights : array or None
        How much each element counts; None is one for all.
    minlength : int, default 0
        The least length of the result.

    Returns
    -------
    array
        From 0 to the largest number, or of length `minlength` if that is more: int64, with weights float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.bincount(mb.HostArray([0, 2, 2])))
    [1 0 2]
    """
    if isinstance(weights, (list, tuple)):
        weights = as_array(weights, x)
    return library.call("bincount", x, weights=weights, minlength=minlength)


@array_function
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin that each element belongs to; `right` says which edge a bin includes.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    bins : array
        The edges, in ascending or descending order.
    right : bool, default False
        Which edge of a bin belongs to it.

    Returns
    -------
    array
        Of dtype int64, and of the shape of `x`: 0 and the number of edges are for elements outside.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.digitize(mb.HostArray([0.5, 3.0]), [0.0, 1.0, 2.0]))
    [1 3]
    """
    _check_real("digitize", x)
    return library.call("digitize", x, as_selection(bins, x), right=right)
