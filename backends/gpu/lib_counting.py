"""Counting what falls where, on a card: bincount, digitize, histograms.

Edges are worked out by NumPy's own rule from a few numbers (the extremes, the number of elements), so
that counts are NumPy's also for elements that lie on an edge.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.backends.gpu import histograms as histograms  # (equal bins: kernels of our own)
from mirabelle.backends.gpu.lib_segments import combined_by_key
from mirabelle.backends.gpu.lib_sorting import searchsorted, sort
from mirabelle.backends.gpu.library import routine


@routine("bincount")
def bincount(xp: Any, x: Any, *, weights: Any = None, minlength: int = 0) -> Any:
    """CUB counts; weights are added up in a fixed order."""
    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if x.ndim != 1:
        raise ValueError("object too deep for desired array" if x.ndim else "object of too small depth")
    if not np.can_cast(x.dtype, np.int64, "safe") and x.size:
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    if weights is not None and not isinstance(weights, xp.ndarray):
        weights = xp.asarray(weights)
    if weights is not None and weights.shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    if not x.size:
        return xp.zeros(minlength, np.int64)
    x = x.astype(np.int64, copy=False)
    if int(x.min()) < 0:
        raise ValueError("'list' argument must have no negative elements")
    if weights is None:
        return xp.bincount(x, minlength=minlength)
    if weights.dtype.kind == "c":
        raise TypeError("Cannot cast array data from complex weights to dtype('float64') safely.")
    return summed_by_place(xp, x, weights.astype(np.float64), max(minlength, int(x.max()) + 1))


def summed_by_place(xp: Any, places: Any, values: Any, size: int) -> Any:
    """The sums of the values that belong to each place."""
    out = xp.zeros(size, values.dtype)
    if places.size:
        keys, sums = combined_by_key(xp, xp.add, places, values)
        out[keys] += sums  # (a sum begins with zero, which -0.0 alone does not change)
    return out


@routine("digitize")
def _(xp: Any, x: Any, bins: Any, *, right: bool = False) -> Any:
    if bins.ndim != 1:
        raise ValueError("object too deep for desired array" if bins.ndim else "object of too small depth")
    side = "left" if right else "right"
    if bins.size < 2 or bool((bins[1:] >= bins[:-1]).all()):
        return searchsorted(xp, bins, x, side)
    if not bool((bins[1:] <= bins[:-1]).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.size - searchsorted(xp, bins[::-1], x, "right" if right else "left")


# Edges


@routine("histogram_bin_edges")
def _(xp: Any, x: Any, *, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return edges_of(xp, x.reshape(-1), bins, range, weights)


def edges_of(xp: Any, x: Any, bins: Any, span: Any, weights: Any = None) -> Any:
    """The edges of a histogram's bins."""
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
        bins = _estimated(xp, x, bins, span)
    if isinstance(bins, xp.ndarray) and bins.ndim:
        edges = bins
    elif np.ndim(bins) == 0:
        return xp.asarray(np.histogram_bin_edges(_extremes(x, span), bins=bins, range=span))
    else:
        edges = xp.asarray(bins)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    if edges.size > 1 and bool((edges[:-1] > edges[1:]).any()):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def _extremes(x: Any, span: Any) -> np.ndarray:
    """What decides the edges of equal bins: the extremes, as NumPy's array of the same dtype."""
    if not x.size:
        return np.empty(0, x.dtype)
    if span is not None:
        return np.zeros(1, x.dtype)
    return np.array([x.min().item(), x.max().item()], x.dtype)


def _estimated(xp: Any, x: Any, name: str, span: Any) -> int:
    """How many bins an estimator wants, by the statistics of the elements within range."""
    if name not in _WIDTHS:
        raise ValueError(f"{name!r} is not a valid estimator for `bins`. A card has {sorted(_WIDTHS)}.")
    first, last = (span if span is not None else _extremes(x, None)) if x.size or span is not None else (0, 1)
    if span is not None:
        x = x[(x >= first) & (x <= last)]
    if not x.size:
        return 1
    if first == last:
        first, last = first - 0.5, last + 0.5
    width = _WIDTHS[name](xp, x, float(x.max().item()) - float(x.min().item()))
    if not width:
        return 1
    if x.dtype.kind in "iu" and width < 1:
        width = 1
    return math.ceil((float(last) - float(first)) / width)


def _by_sqrt(xp: Any, x: Any, extent: float) -> float:
    return extent / math.sqrt(x.size)


def _by_sturges(xp: Any, x: Any, extent: float) -> float:
    return extent / (math.log2(x.size) + 1.0)


def _by_rice(xp: Any, x: Any, extent: float) -> float:
    return extent / (2.0 * x.size ** (1.0 / 3))


def _by_scott(xp: Any, x: Any, extent: float) -> float:
    return (24.0 * math.sqrt(math.pi) / x.size) ** (1.0 / 3.0) * float(x.std())  # type: ignore[no-any-return]


def _by_doane(xp: Any, x: Any, extent: float) -> float:
    if x.size <= 2:
        return 0.0
    sigma = float(x.std())
    if sigma <= 0.0:
        return 0.0
    spread = math.sqrt(6.0 * (x.size - 2) / ((x.size + 1.0) * (x.size + 3)))
    skew = float((((x - x.mean()) / sigma) ** 3).mean())
    return extent / (1.0 + math.log2(x.size) + math.log2(1.0 + abs(skew) / spread))


def _by_fd(xp: Any, x: Any, extent: float) -> float:
    ordered = sort(xp, x)

    def quantile(q: float) -> float:
        place = (x.size - 1) * q
        around = [math.floor(place), min(math.floor(place) + 1, x.size - 1)]
        return float(np.quantile(np.array([ordered[k].item() for k in around], x.dtype), place - around[0]))

    high, low = quantile(0.75), quantile(0.25)
    return 2.0 * (high - low) * x.size ** (-1.0 / 3.0)


def _by_auto(xp: Any, x: Any, extent: float) -> float:
    robust, sturges = _by_fd(xp, x, extent), _by_sturges(xp, x, extent)
    # Half the rule of the square root keeps the number of bins of a narrow middle bounded.
    return min(max(robust, _by_sqrt(xp, x, extent) / 2), sturges) if robust else sturges


_WIDTHS = {
    "sqrt": _by_sqrt,
    "sturges": _by_sturges,
    "rice": _by_rice,
    "scott": _by_scott,
    "doane": _by_doane,
    "fd": _by_fd,
    "auto": _by_auto,
}


# Histograms


@routine("histogram")
def _(
    xp: Any, x: Any, *, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    if weights is not None:
        weights = weights if isinstance(weights, xp.ndarray) else xp.asarray(weights)
        if weights.shape != x.shape:
            raise ValueError("weights should have the same shape as a.")
        weights = weights.reshape(-1)
    x = x.reshape(-1)
    x = x.astype(np.uint8) if x.dtype.kind == "b" else x
    edges = edges_of(xp, x, bins, range, weights)
    count = edges.size - 1
    place, inside = _places(xp, x, edges)
    if weights is None:
        counts = xp.bincount(xp.where(inside, place, count), minlength=count + 1)[:count]
    else:
        kept = xp.nonzero(inside)[0]
        kind = weights.dtype if np.can_cast(weights.dtype, np.float64) else np.dtype(np.complex128)
        kind = np.dtype(np.float64) if weights.dtype.kind == "f" and weights.dtype.itemsize < 8 else kind
        counts = summed_by_place(xp, place[kept], weights[kept].astype(kind), count).astype(weights.dtype)
    if density:
        steps = (edges[1:] - edges[:-1]).astype(np.float64)
        return counts / steps / counts.sum(), edges
    return counts, edges


def _places(xp: Any, x: Any, edges: Any) -> tuple[Any, Any]:
    """The bin of each element, and whether it falls into any. The last bin has both its edges."""
    last = edges.size - 2
    place = searchsorted(xp, edges, x, "right") - 1
    inside = (place >= 0) & (x <= edges[-1])
    return xp.clip(place, 0, max(last, 0)), inside & (last >= 0)


@routine("histogramdd")
def histogramdd(
    xp: Any, sample: Any, *, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, list[Any]]:
    columns = _columns(xp, sample)
    n = len(columns)
    bins = [bins] * n if _is_one(xp, bins) else list(bins)
    if len(bins) != n:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    spans = [None] * n if range is None else list(range)
    if len(spans) != n:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_axis_edges(xp, x, b, s, i) for i, (x, b, s) in enumerate(zip(columns, bins, spans, strict=True))]
    shape = tuple(e.size - 1 for e in edges)
    flat, inside = xp.zeros(columns[0].shape, np.int64), None
    for x, e in zip(columns, edges, strict=True):
        place, within = _places(xp, x, e)
        flat = flat * (e.size - 1) + place
        inside = within if inside is None else inside & within
    kept = xp.nonzero(inside)[0]
    size = math.prod(shape)
    if weights is None:
        counts = xp.bincount(flat[kept], minlength=size) if kept.size else xp.zeros(size, np.int64)
    else:
        weights = weights if isinstance(weights, xp.ndarray) else xp.asarray(weights)
        counts = summed_by_place(xp, flat[kept], weights[kept].astype(np.float64), size)
    counts = counts.reshape(shape).astype(np.float64)
    if density:
        total = counts.sum()
        for d, e in enumerate(edges):
            steps = e[1:] - e[:-1]
            counts = counts / steps.reshape((-1,) + (1,) * (n - d - 1))
        counts = counts / total
    return counts, edges


def _is_one(xp: Any, bins: Any) -> bool:
    return not isinstance(bins, (xp.ndarray, Sequence, np.ndarray)) or isinstance(bins, str)


def _columns(xp: Any, sample: Any) -> list[Any]:
    """The coordinates of points along each axis."""
    if isinstance(sample, xp.ndarray):
        sample = sample[:, None] if sample.ndim == 1 else sample
        return [sample[:, i] for i in range(sample.shape[1])]
    return [x if isinstance(x, xp.ndarray) else xp.asarray(x) for x in sample]


def _axis_edges(xp: Any, x: Any, bins: Any, span: Any, i: int) -> Any:
    if isinstance(bins, xp.ndarray) or np.ndim(bins):
        edges = bins if isinstance(bins, xp.ndarray) else xp.asarray(bins)
        if edges.ndim != 1:
            raise ValueError(f"`bins[{i}]` must be a scalar or 1d array")
        if bool((edges[:-1] > edges[1:]).any()):
            raise ValueError(f"`bins[{i}]` must be monotonically increasing, when an array")
        return edges
    try:
        count = operator.index(bins)
    except TypeError:
        raise TypeError(f"`bins[{i}]` must be an integer, when a scalar") from None
    if count < 1:
        raise ValueError(f"`bins[{i}]` must be positive, when an integer")
    spans = None if span is None else [span]
    (edges,) = np.histogramdd(_extremes(x, span)[:, None], bins=count, range=spans)[1]
    return xp.asarray(edges)


@routine("histogram2d")
def _(
    xp: Any, x: Any, y: Any, *, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    if x.size != y.size:
        raise ValueError("x and y must have the same length.")
    if not _is_one(xp, bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd(xp, [x, y], bins=bins, range=range, density=density, weights=weights)
    return counts, edges[0], edges[1]
