"""Reductions of banded matrices: over the diagonals, with the zeros taken into account."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Banded
from mirabelle.arraytypes.structured.base import zeros_for
from mirabelle.dispatch import verbs

# How two results of a reduction combine.
_COMBINE = {
    "sum": verbs.add, "prod": verbs.multiply, "min": verbs.minimum, "max": verbs.maximum,
    "any": verbs.logical_or, "all": verbs.logical_and,
}  # fmt: skip


@verbs.reduce_.method
def _(x: Banded, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    n = x.order
    if reduction.name not in _COMBINE or not axes or n <= len(x.parts):
        # Small, or not known to us: lines that hold no zero beside their parts are a case of their own.
        return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    if dtype is not None:
        x = verbs.astype(x, dtype, copy=False)
    combine = _COMBINE[reduction.name]
    if len(axes) == 2:
        out = _overall(x, reduction, combine)
        return verbs.reshape(out, (1, 1)) if keepdims else out
    out = _by_lines(x, combine, axes[0], reduction.name)
    return out if not keepdims else verbs.reshape(out, (1, n) if axes[0] == 0 else (n, 1))


def _overall(x: Banded, reduction: Any, combine: Any) -> Any:
    found = None
    for part in x.parts:
        if part.size:
            of_part = verbs.reduce_(part, reduction)
            found = of_part if found is None else combine(found, of_part)
    # There are zeros beside the parts; to a sum and to "any" they add nothing.
    return found if reduction.name in ("sum", "any") else combine(found, x.dtype.type(0))


def _by_lines(x: Banded, combine: Any, axis: int, name: str) -> Any:
    """One result a column (axis 0) or a row (axis 1)."""
    out = zeros_for(x.parts, (x.order,), x.dtype)
    if name in ("prod", "all"):
        return out
    for k, part in zip(x.offsets, x.parts, strict=True):
        start = max(k if axis == 0 else -k, 0)  # the first column (or row) the diagonal meets
        shown = out[start : start + part.shape[0]]
        verbs.assign(shown, combine(shown, part))
    return out
