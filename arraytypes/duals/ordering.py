"""Order: sorted dual numbers are gathered in the order of their values, and so are sets and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.duals.base import Dual, no_rule, partials_of
from mirabelle.arraytypes.duals.moving import _array
from mirabelle.arraytypes.duals.routines import on_values, only_first, rule_of
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.manipulation import moveaxis
from mirabelle.arraytypes.functions.picking import searchsorted, take, take_along_axis
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs

# Gathered along an axis


@take_along_axis.method
def _(x: Dual, indices: Any, /, axis: Any = -1) -> Any:
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    indices = indices if isinstance(indices, AbstractArray) else asarray(indices, device=x.place)
    value = take_along_axis(_array(x), indices, axis=axis)
    return x._with(value, ((None, _gathered(partials_of(x), indices, axis % x.ndim)),))


def _gathered(p: Any, indices: Any, axis: int) -> Any:
    """Along an axis of the values, for each direction."""
    return take_along_axis(p, indices[None], axis=axis + 1)


@rule_of("sort")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x, axis = only_first(top, operands, options), options["axis"]
    order = library.call("argsort", x._value, axis=axis, kind="stable")
    value = on_values(routine, top, operands, options)
    return top._with(value, ((None, _gathered(partials_of(x), order, axis % x.ndim)),))


@rule_of("partition")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x, axis = only_first(top, operands, options), options["axis"]
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    order = library.call("argpartition", x._value, operands[1], **options | {"axis": axis})
    return take_along_axis(x, order, axis=axis)


# Sets


@rule_of("unique")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x, axis = only_first(top, operands, options), options.get("axis")
    found = library.call(routine, x._value, **options | {"return_index": True})
    chosen = take(verbs.reshape(x, (-1,)) if axis is None else x, found[1], axis=axis or 0)
    rest = found[1:] if options.get("return_index") else found[2:]
    return (chosen, *rest) if rest else chosen


@rule_of("union1d", "intersect1d", "setdiff1d", "setxor1d")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    found = on_values(routine, top, operands, options)
    values, rest = (found[0], found[1:]) if isinstance(found, tuple) else (found, ())
    # Where each first stands, in the first array or else in the second.
    flat = concatenate([verbs.reshape(x, (-1,)) for x in operands])
    order = library.call("argsort", flat._value, axis=0, kind="stable")
    chosen = take(flat, take(order, searchsorted(flat._value, values, sorter=order)))
    return (chosen, *rest) if rest else chosen


# Quantiles


@rule_of("quantile", "percentile", "median", "nanquantile", "nanpercentile", "nanmedian")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x = only_first(top, operands, options)
    if options.get("weights") is not None:
        raise no_rule(top)
    value = on_values(routine, top, operands, options)
    # The elements along the axes in a last one, and their partials in order.
    axes = normal_axes(options["axis"], x.ndim)
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    turned = verbs.permute_dims(x, (*kept, *axes))
    rows = verbs.reshape(turned, (*turned.shape[: len(kept)], -1))
    order = library.call("argsort", rows._value, axis=-1, kind="stable")
    ordered = _gathered(partials_of(rows), order, len(kept))
    # What a quantile of 0, 1, 2, ... is, says between which two elements it lies, and how far, by any method.
    length = rows.shape[-1]
    shares = np.ravel(_shares(operands[1:], routine.endswith("percentile")))
    lengths = range(length + 1) if routine.startswith("nan") else (length,)
    method = options.get("method", "linear")
    places = np.array([_places(n, shares, method) for n in lengths])
    low = np.minimum(np.nan_to_num(places).astype(np.int64), max(length - 1, 0))
    table = [low, np.minimum(low + 1, max(length - 1, 0)), places - low]
    first, second, along = (asarray(t, device=x.place) for t in table)
    if len(lengths) > 1:
        count = verbs.count_nonzero(verbs.logical_not(verbs.isnan(rows._value)), axis=-1)
        first, second, along = (take(t, count, axis=0) for t in (first, second, along))
    else:
        first, second, along = (verbs.reshape(t, (*(1,) * len(kept), -1)) for t in (first, second, along))
    lower, upper = (_gathered(ordered, where, len(kept)) for where in (first, second))
    between = verbs.add(
        lower, verbs.multiply(verbs.astype(along, x.dtype, copy=False), verbs.subtract(upper, lower))
    )
    return top._with(value, ((None, verbs.reshape(moveaxis(between, -1, 1), (top._n, *value.shape))),))


def _shares(given: tuple[Any, ...], percent: bool) -> Any:
    if not given:
        return np.array(0.5)
    q = verbs.fetch(given[0]) if isinstance(given[0], AbstractArray) else np.asarray(given[0], float)
    return q / 100 if percent else q


def _places(n: int, shares: Any, method: Any) -> Any:
    return np.quantile(np.arange(float(n)), shares, method=method) if n else np.full(shares.shape, np.nan)
