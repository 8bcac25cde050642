"""Distinct elements and membership on a card: by sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_order import common_ordinals, differ
from mirabelle.backends.gpu.lib_segments import lengths_of
from mirabelle.backends.gpu.lib_sorting import argsort, lexicographic, nonzero, searchsorted, sort
from mirabelle.backends.gpu.library import routine


@routine("unique")
def unique(
    xp: Any, x: Any, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, equal_nan: bool = True,
) -> Any:  # fmt: skip
    shape = x.shape
    if axis is None or (x.ndim == 1 and axis in (0, -1)):  # (elements are one NaN; rows with such are not)
        axis = None
        x = x.reshape(-1)
        order = argsort(xp, x) if return_index or return_inverse else None
        ordered: Any = sort(xp, x) if order is None else x[order]
        changes = _changes(xp, ordered, equal_nan)
    else:
        axis = axis % x.ndim if -x.ndim <= axis < x.ndim else _no_axis(axis, x.ndim)
        x = xp.moveaxis(x, axis, 0)
        rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
        order = _order_of_rows(xp, rows)
        ordered = x[order]
        changes = _row_changes(xp, rows[order])
    n = x.shape[0]
    first = nonzero(xp, changes)[0]
    values = ordered[first]
    found: list[Any] = [values if axis is None else xp.moveaxis(values, 0, axis)]
    places: Any = order
    if return_index:
        found.append(places[first])
    if return_inverse:
        inverse = xp.empty(n, np.int64)
        inverse[places] = xp.cumsum(changes.astype(np.int64)) - 1
        found.append(inverse.reshape(shape) if axis is None else inverse)
    if return_counts:
        found.append(lengths_of(xp, first, n) if n else xp.empty(0, np.int64))
    return tuple(found) if len(found) > 1 else found[0]


def _no_axis(axis: int, ndim: int) -> int:
    raise np.exceptions.AxisError(axis, ndim)


def _order_of_rows(xp: Any, rows: Any) -> Any:
    """The order of rows by their first elements, then by the next."""
    if not rows.shape[1]:
        return xp.arange(rows.shape[0], dtype=np.int64)
    return lexicographic(xp, *(rows[:, j] for j in range(rows.shape[1])))


def _changes(xp: Any, ordered: Any, equal_nan: bool) -> Any:
    """Which elements of a sorted vector differ from the one before."""
    changes = xp.ones(ordered.shape, bool)
    changes[1:] = differ(xp, ordered[1:], ordered[:-1])
    if equal_nan and ordered.dtype.kind in "fc":
        missing = xp.isnan(ordered)
        changes[1:] &= ~(missing[1:] & missing[:-1])
    return changes


def _row_changes(xp: Any, rows: Any) -> Any:
    changes = xp.ones(rows.shape[0], bool)
    if rows.shape[0] > 1:
        changes[1:] = differ(xp, rows[1:], rows[:-1]).any(axis=1) if rows.shape[1] else False
    return changes


@routine("isin")
def isin(xp: Any, x: Any, among: Any, *, invert: bool = False) -> Any:
    # (either may be a number, which takes the other's dtype if it fits)
    dtype = np.result_type(*[a.dtype if hasattr(a, "dtype") else a for a in (x, among)])
    x, among = xp.asarray(x, dtype), xp.asarray(among, dtype).reshape(-1)
    if not among.size or not x.size:
        return xp.full(x.shape, bool(invert))
    missing = xp.isnan(x) if dtype.kind in "fc" else None
    x, among = common_ordinals(xp, x, among)
    among = sort(xp, among)
    at = xp.minimum(searchsorted(xp, among, x), among.size - 1)
    found = among[at] == x
    if missing is not None:
        found &= ~missing
    return ~found if invert else found
