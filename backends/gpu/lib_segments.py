"""Reductions of segments: of runs of elements that lie one after another.

CuPy adds up repeated places with atomic operations, whose order, and so whose last bits, change from
run to run. Here the order is always the same: short segments are added up by one thread each; in long
ones neighbours are combined over doubling distances, with errors that grow with the logarithm.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.backends.gpu.lib_sorting import argsort
from mirabelle.backends.gpu.library import on_card, routine

# Operations whose order of evaluation is free.
ASSOCIATIVE = {
    "add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "hypot", "logaddexp", "logaddexp2",
}  # fmt: skip


def running_segments(xp: Any, combine: Any, values: Any, starts: Any, longest: int) -> Any:
    """Within segments, each element combined with all before it.

    `starts[i]` is where the segment of element i begins; segments lie along the first axis.
    """
    n = values.shape[0]
    place = xp.arange(n, dtype=np.int64) - starts
    place = place.reshape((n,) + (1,) * (values.ndim - 1))
    step = 1
    while step < min(longest, n):
        combined = values.copy()
        combined[step:] = xp.where(place[step:] >= step, combine(values[:-step], values[step:]), values[step:])
        values = combined
        step *= 2
    return values


def reduce_segments(xp: Any, combine: Any, values: Any, first: Any, lengths: Any) -> Any:
    """One result for each segment: `first` and `lengths` say where it begins, and of how many it is."""
    total = values.shape[0]
    longest = int(lengths.max())
    if longest <= 1:
        return values[first]
    if longest <= _SHORT and _loops(xp, combine):
        return _one_by_one(xp, combine, values, first, first + lengths)
    which = xp.searchsorted(first, xp.arange(total, dtype=np.int64), side="right") - 1
    found = running_segments(xp, combine, values, first[which], longest)
    return found[first + lengths - 1]


# Segments of up to so many elements are one thread's each.
_SHORT = 512

_LOOP = """
    long long row = i / width, column = i % width, stop = last[row];
    T found = values[first[row] * width + column];
    for (long long j = first[row] + 1; j < stop; ++j) {
        found = found OP values[j * width + column];
    }
    out = found;
"""


def _loops(xp: Any, combine: Any) -> bool:
    return on_card(xp) and (combine is xp.add or combine is xp.multiply)


@functools.cache
def _kernel(xp: Any, sign: str, name: str) -> Any:
    return xp.ElementwiseKernel(
        "raw T values, raw int64 first, raw int64 last, int64 width", "T out", _LOOP.replace("OP", sign), name
    )


def _one_by_one(xp: Any, combine: Any, values: Any, first: Any, last: Any) -> Any:
    """The elements of each segment combined from the first to the last."""
    rest = values.shape[1:]
    out = xp.empty((first.size, math.prod(rest)), values.dtype)
    if out.size:
        adds = combine is xp.add
        kernel = _kernel(xp, "+" if adds else "*", "mirabelle_sums" if adds else "mirabelle_products")
        values, first, last = (xp.ascontiguousarray(x) for x in (values, first, last))
        kernel(values, first, last, out.shape[1], out)
    return out.reshape(first.size, *rest)


def runs(xp: Any, keys: Any) -> tuple[Any, Any]:
    """Where runs of equal neighbours begin, and how long they are. (There is at least one key.)"""
    changes = xp.ones(keys.size, bool)
    changes[1:] = keys[1:] != keys[:-1]
    first = xp.nonzero(changes)[0]
    return first, lengths_of(xp, first, keys.size)


def lengths_of(xp: Any, first: Any, total: int) -> Any:
    """The lengths of segments that follow each other, of `total` elements."""
    ends = xp.empty(first.shape, np.int64)
    ends[:-1] = first[1:]
    ends[-1:] = total
    return ends - first


def totals_of_runs(xp: Any, combine: Any, keys: Any, values: Any) -> Any:
    """For each element, its whole run of equal keys combined; the keys are sorted."""
    starts = xp.searchsorted(keys, keys, side="left")
    ends = xp.searchsorted(keys, keys, side="right")
    longest = int((ends - starts).max())
    if longest <= 1:
        return values
    if longest <= _SHORT and _loops(xp, combine):
        # Only the first thread of a run has something to do.
        leads = starts == xp.arange(keys.size, dtype=np.int64)
        return _one_by_one(xp, combine, values, starts, xp.where(leads, ends, 0))[starts]
    return running_segments(xp, combine, values, starts, longest)[ends - 1]


def combined_by_key(xp: Any, combine: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """The distinct keys in ascending order, and the values of each combined, in the order they stand."""
    order = argsort(xp, keys)
    keys, values = keys[order], values[order]
    first, lengths = runs(xp, keys)
    return keys[first], reduce_segments(xp, combine, values, first, lengths)


def _reduceat(name: str) -> Any:
    def reduceat(xp: Any, x: Any, indices: Any, *, axis: int = 0, dtype: Any = None) -> Any:
        """From each index to the next; one element where the next is not behind it."""
        combine = getattr(xp, name)
        indices = indices if isinstance(indices, xp.ndarray) else xp.asarray(indices)
        if indices.dtype.kind not in "iu" or indices.ndim != 1:
            raise TypeError(f"{name}.reduceat takes a vector of integers as indices.")
        moved = xp.moveaxis(x, axis, 0)
        n = moved.shape[0]
        found = result_dtype(name, x.dtype, dtype)
        if not indices.size:
            return xp.moveaxis(xp.empty((0, *moved.shape[1:]), found), 0, axis)
        indices = indices.astype(np.int64)
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= n:
            raise IndexError(f"index {low if low < 0 else high} out-of-bounds in {name}.reduceat [0, {n})")
        lengths = xp.maximum(lengths_of(xp, indices, n), 1)
        first = xp.cumsum(lengths) - lengths
        total = int(lengths.sum())
        which = xp.searchsorted(first, xp.arange(total, dtype=np.int64), side="right") - 1
        source = xp.arange(total, dtype=np.int64) - first[which] + indices[which]
        values = moved[source]
        values = values.astype(found)
        return xp.moveaxis(reduce_segments(xp, combine, values, first, lengths), 0, axis)

    return reduceat


def result_dtype(name: str, dtype: np.dtype, wanted: Any) -> np.dtype:
    """What a ufunc's reductions give for a dtype: small integers are added up in the default one."""
    if wanted is not None:
        return np.dtype(wanted)
    return np.asarray(getattr(np, name).reduceat(np.ones(1, dtype), [0])).dtype


def _reduce(name: str) -> Any:
    def reduce(xp: Any, x: Any, *, axis: Any = 0, keepdims: bool = False) -> Any:
        """All elements along axes; halves are combined until one is left."""
        if name in ("maximum", "minimum"):
            return (x.max if name == "maximum" else x.min)(axis=axis, keepdims=keepdims)
        axes = normal_axes(axis, x.ndim)
        if keepdims:
            return xp.expand_dims(reduce(xp, x, axis=axes), axes)
        kept = [d for d in range(x.ndim) if d not in axes]
        shape = tuple(x.shape[d] for d in kept)
        values = x.transpose((*axes, *kept)).reshape(math.prod(x.shape[d] for d in axes), *shape)
        values = values.astype(result_dtype(name, x.dtype, None))
        if not values.shape[0]:
            identity = getattr(np, name).identity
            if identity is None:
                raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
            return xp.full(shape, identity, values.dtype)
        combine = getattr(xp, name)
        while values.shape[0] > 1:
            half = values.shape[0] // 2
            rest = values[2 * half :]
            values = xp.concatenate([combine(values[: 2 * half : 2], values[1 : 2 * half : 2]), rest])
        return values[0].copy()

    return reduce


for _name in sorted(ASSOCIATIVE):
    routine(f"{_name}.reduceat")(_reduceat(_name))
    routine(f"{_name}.reduce")(_reduce(_name))
