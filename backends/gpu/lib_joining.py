"""Repeating elements on a card, each as often as an array says."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_sorting import flattened
from mirabelle.backends.gpu.library import routine


@routine("repeat")
def repeat(xp: Any, x: Any, repeats: Any, *, axis: Any = None) -> Any:
    """CuPy repeats each element equally often; here the counts may be an array."""
    x, axis = flattened(x, axis)
    n = x.shape[axis]
    if not isinstance(repeats, xp.ndarray):
        repeats = np.asarray(repeats)
        if not repeats.ndim:
            if repeats < 0:
                raise ValueError("repeats may not contain negative values.")
            return xp.repeat(x, int(repeats), axis=axis)
        repeats = xp.asarray(repeats)
    counts = repeats.reshape(-1).astype(np.int64, copy=False)
    if counts.size == 1:
        counts = xp.broadcast_to(counts, (n,))
    if counts.size != n:
        raise ValueError(f"operands could not be broadcast together with shape ({n},) ({counts.size},)")
    if not n:
        return x.copy()
    if int(counts.min()) < 0:
        raise ValueError("repeats may not contain negative values.")
    return xp.take(x, spread(xp, counts), axis=axis)


def spread(xp: Any, counts: Any) -> Any:
    """The number of each element, as often as its count says."""
    ends = xp.cumsum(counts)
    total = int(ends[-1]) if counts.size else 0
    return xp.searchsorted(ends, xp.arange(total, dtype=np.int64), side="right")
