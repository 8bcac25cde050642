"""Counts with weights that are dual numbers, and edges that go with the smallest and the largest element."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.base import partials_of, value_in
from mirabelle.arraytypes.duals.moving import each_row
from mirabelle.arraytypes.duals.routines import is_mine, on_values, rule_of, values_in, with_value
from mirabelle.arraytypes.functions.neighbours import diff
from mirabelle.dispatch import verbs


@rule_of("bincount")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    value = on_values(routine, top, operands, options)
    x, weights = value_in(operands[0], top._tag), options["weights"]
    if not is_mine(weights, top):
        return value
    n = options["minlength"]
    rows = each_row(partials_of(weights), lambda p: library.call("bincount", x, weights=p, minlength=n))
    return top._with(value, ((None, rows),))


@rule_of("histogram_bin_edges")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    edges = on_values(routine, top, operands, options)
    return _edges(top, operands[0], edges, options["bins"], options["range"])


@rule_of("histogram")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    counts, edges = on_values(routine, top, operands, options)
    edges = _edges(top, operands[0], edges, options["bins"], options["range"])
    return _counts(routine, top, operands, options, counts, [edges]), edges


@rule_of("histogram2d", "histogramdd")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    counts, *edges = on_values(routine, top, operands, options)
    points = routine == "histogramdd"
    edges = edges[0] if points else edges
    bins, limits, n = options["bins"], options["range"], len(edges)
    each = bins if isinstance(bins, (list, tuple)) and len(bins) == n else [bins] * n
    axes = zip(_columns(operands[0]) if points else operands, edges, each, limits or [None] * n, strict=True)
    edges = [_edges(top, *axis) for axis in axes]
    counts = _counts(routine, top, operands, options, counts, edges)
    return (counts, edges) if points else (counts, *edges)


def _columns(sample: Any) -> list[Any]:
    """The coordinates of points, which are an array's rows or are given one by one."""
    if not isinstance(sample, AbstractArray):
        return list(sample)
    sample = sample if sample.ndim > 1 else sample[:, None]
    return [sample[:, d] for d in range(sample.shape[1])]


def _edges(top: Any, x: Any, edges: Any, bins: Any, limits: Any) -> Any:
    """The edges along an axis, which keep their shares of the way from the smallest element to the largest."""
    if is_mine(bins, top) and bins.ndim:
        return bins
    if not is_mine(x, top) or limits is not None or not isinstance(bins, (int, np.integer, str)):
        return edges
    low, high = verbs.min(x), verbs.max(x)
    share = verbs.divide(verbs.subtract(edges, edges[0]), verbs.subtract(edges[-1], edges[0]))
    return with_value(verbs.add(low, verbs.multiply(share, verbs.subtract(high, low))), edges)


def _counts(routine: str, top: Any, operands: Any, options: Any, found: Any, edges: list[Any]) -> Any:
    """Counts are linear in the weights; densities are divided by their sum and by the sizes of the bins."""
    operands, weights = values_in(operands, top._tag), options["weights"]
    plain = values_in(options, top._tag) | {"density": False}
    counts = library.call(routine, *operands, **plain)[0] if options["density"] else found
    if is_mine(weights, top):
        rows = each_row(
            partials_of(weights), lambda p: library.call(routine, *operands, **plain | {"weights": p})[0]
        )
        counts = top._with(counts, ((None, rows),))
    if not options["density"]:
        return counts
    counts = verbs.divide(counts, verbs.sum(counts))
    for d, e in enumerate(edges):
        sizes = verbs.reshape(diff(e), tuple(-1 if k == d else 1 for k in range(len(edges))))
        counts = verbs.divide(counts, sizes)
    return with_value(counts, found)
