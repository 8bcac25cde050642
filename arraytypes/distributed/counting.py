"""Counts, histograms and quantiles of distributed arrays: of each part by itself, then of all together."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.lines import (
    distributed_routine,
    fall_back,
    local_result,
    packed,
    part_of,
    partition_of,
    regular,
    replicated,
    view_of,
)
from mirabelle.arraytypes.distributed.searching import counted_parts, summed
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


def _handle(view: DView) -> Any:
    return wrap(view.family, Leaf(view))


def _mine(view: DView, weights: Any = None) -> tuple[Any, Any]:
    """This process' elements in a row, with their weights; none where others speak for them."""
    view = regular(view)
    part, inner = partition_of(view), view.family.inner
    local, speaks = counted_parts(view)
    rows = [local] if weights is None else [local, part_of(weights, part)]
    found = []
    for x in rows:
        row = packed(verbs.reshape(wrap(inner, Leaf(x)), (-1,)))
        found.append(row if speaks else row[:0])
    return found[0], found[1] if len(found) > 1 else None


def _extremes(view: DView) -> np.ndarray:
    """The least and the largest element, NaN if there is one, on the host of each process."""
    x = _handle(view)
    low, high = verbs.min(x), verbs.max(x)
    return np.array([verbs.fetch(low), verbs.fetch(high)], view.dtype).reshape(2)


@distributed_routine("bincount")
def bincount(view: DView, weights: Any = None, minlength: int = 0) -> Any:
    options = {"weights": weights, "minlength": minlength}
    if view.ndim != 1 or view.dtype.kind not in "biu" or (weights is not None and weights.shape != view.shape):
        return fall_back(view.family, "bincount")(view, **options)
    low, high = _extremes(view)
    if low < 0:
        raise ValueError("'list' argument must have no negative elements")
    run = library.routine_of(view.family.inner, "bincount")
    mine, own = _mine(view, weights)
    found = local_result(
        view.family.inner, run(mine, weights=own, minlength=max(int(minlength), int(high) + 1))
    )
    if weights is not None and not mine.size:  # (of none, NumPy counts them)
        found = view_of(verbs.astype(wrap(view.family.inner, Leaf(found)), np.float64))
    return replicated(view, summed(view, found))


# Histograms


def _host(x: Any) -> Any:
    """Bins as NumPy takes them: what is an array of the place, on the host."""
    if isinstance(x, DView):
        return np.asarray(x.family._download(x))
    return [_host(item) for item in x] if isinstance(x, (list, tuple)) else x


@distributed_routine("histogram")
def histogram(view: DView, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, str) or not isinstance(weights, (DView, type(None))) or view.dtype.kind not in "biuf":
        options = {"bins": bins, "range": range, "density": density, "weights": weights}
        return fall_back(view.family, "histogram")(view, **options)
    if weights is not None and weights.shape != view.shape:
        raise ValueError("weights should have the same shape as a.")
    bins, inner = _host(bins), view.family.inner
    ends = _extremes(view)
    _, edges = np.histogram(ends.astype(np.uint8) if ends.dtype.kind == "b" else ends, bins, range)
    if isinstance(bins, (int, np.integer)):
        options = {"bins": int(bins), "range": (edges[0], edges[-1])}
    else:
        options = {"bins": inner._upload(edges)}
    mine, own = _mine(view, weights)
    if mine.size:
        counts = local_result(inner, library.routine_of(inner, "histogram")(mine, weights=own, **options)[0])
    else:
        kind = np.dtype(np.intp) if own is None else _counted(own.dtype)
        counts = inner._upload(np.zeros(len(edges) - 1, kind))
    return _finished(view, summed(view, counts), [edges], density)


def _counted(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy adds weights up."""
    return np.histogram(np.zeros(1), 1, weights=np.zeros(1, dtype))[0].dtype


def _finished(view: DView, counts: Any, edges: list[np.ndarray], density: Any) -> tuple[Any, ...]:
    """Counts that all processes have, divided by their sum and by the sizes of bins for a density."""
    inner = view.family.inner
    x = wrap(inner, Leaf(counts))
    if density:
        x = verbs.divide(x, verbs.sum(x))
        for d, e in enumerate(edges):
            width = np.diff(e).astype(np.float64).reshape([-1 if i == d else 1 for i in range(len(edges))])
            x = verbs.divide(x, wrap(inner, Leaf(inner._upload(width))))
    made = replicated(view, view_of(x))
    return made, *[replicated(view, inner._upload(e)) for e in edges]


@distributed_routine("histogram_bin_edges")
def histogram_bin_edges(view: DView, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, str) or view.dtype.kind not in "biuf":
        options = {"bins": bins, "range": range, "weights": weights}
        return fall_back(view.family, "histogram_bin_edges")(view, **options)
    return replicated(
        view, view.family.inner._upload(np.histogram_bin_edges(_extremes(view), _host(bins), range))
    )


@distributed_routine("histogramdd")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if isinstance(sample, DView):
        sample = [sample] if sample.ndim == 1 else [sample[:, i] for i in np.arange(sample.shape[1]).tolist()]
    columns = [x if isinstance(x, DView) else None for x in sample]
    if any(x is None or x.ndim != 1 or x.shape != columns[0].shape for x in columns):  # type: ignore[union-attr]
        first = next(x for x in columns if x is not None)
        options = {"bins": bins, "range": range, "density": density, "weights": weights}
        return fall_back(first.family, "histogramdd")(sample, **options)
    counts, *edges = _grid(columns, bins, range, density, weights)
    return counts, edges


@distributed_routine("histogram2d")
def histogram2d(
    x: DView, y: DView, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if not isinstance(x, DView) or not isinstance(y, DView) or x.shape != y.shape or x.ndim != 1:
        raise ValueError("x and y must have the same length.")
    bins = _host(bins)
    if not isinstance(bins, (int, np.integer)) and len(bins) not in (1, 2):
        bins = [np.asarray(bins), np.asarray(bins)]
    return _grid([x, y], bins, range, density, weights)


def _grid(columns: list[Any], bins: Any, range: Any, density: Any, weights: Any) -> tuple[Any, ...]:
    """The cells of a grid: NumPy says from the extremes where they are, and counts those of each part."""
    columns = [regular(x) for x in columns]
    first = columns[0]
    inner, part = first.family.inner, partition_of(first)
    ends = np.stack([_extremes(x).astype(np.float64) for x in columns], axis=1)
    _, edges = np.histogramdd(ends, _host(bins), range)
    speaks = counted_parts(first)[1]
    rows = [np.asarray(inner._download(part_of(x, part))) for x in columns]
    own = None if weights is None else np.asarray(inner._download(part_of(weights, part)))
    points = np.stack(rows, axis=1)
    if not speaks:
        points, own = points[:0], None if own is None else own[:0]
    counts = np.histogramdd(points, edges, weights=own)[0]
    return _finished(first, summed(first, inner._upload(counts)), list(edges), density)


__all__ = ["bincount", "histogram", "histogram2d", "histogramdd"]
