"""Blocks: a leaf of an array over a tree as an array shaped by its axes.

Where the layout is affine the block is a view: windows of the flat array, split into rows and columns again and
again, largest stride first. What no such windows show is gathered by a table.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.meshdata.expressions import Const, Expression, Index, plus, step_along, times
from mirabelle.dispatch import verbs


def strides_of(layout: Expression, labels: list[Any]) -> tuple[int, list[int]] | None:
    """Where an affine layout begins, and its step along each axis; None for one that is not affine."""
    steps = [step_along(layout, label) for label in labels]
    rest = plus(layout, *[times(-s, Index(label)) for s, label in zip(steps, labels, strict=True) if s])
    if None in steps or not isinstance(rest, Const):
        return None
    return rest.value, [s for s in steps if s is not None]


def view_of_leaf(flat: Any, layout: Expression, shape: tuple[int, ...], labels: list[Any]) -> Any:
    """The entries of a leaf as a view of the flat array; None where there is no way to show them."""
    found = strides_of(layout, labels)
    if 0 in shape:
        return flat[:0].reshape(shape)
    if found is None:
        return None
    start, strides = found
    # Axes of one entry take no room; those that run backwards are shown forwards and turned.
    used = [d for d, n in enumerate(shape) if n > 1]
    start += sum(strides[d] * (shape[d] - 1) for d in used if strides[d] < 0)
    order = sorted(used, key=lambda d: -abs(strides[d]))
    shown = _windows(flat, flat.shape[0], start, [(shape[d], abs(strides[d])) for d in order])
    if shown is None:
        return None
    if order != sorted(order):
        shown = verbs.permute_dims(shown, tuple(order.index(d) for d in sorted(order)))
    turned = tuple(slice(None, None, -1) if strides[d] < 0 else slice(None) for d in sorted(order))
    if any(t.step for t in turned):
        shown = shown[turned]
    return shown if len(used) == len(shape) else verbs.reshape(shown, shape)


def _windows(x: Any, width: int, start: int, axes: list[tuple[int, int]]) -> Any:
    """Split the last axis of `x`, of a width, into axes of these extents and strides, beginning at a place."""
    if not axes:
        return x[..., start : start + 1].reshape(x.shape[:-1] or (1,)) if x.ndim > 1 else x[start : start + 1]
    (n, step), inner = axes[0], axes[1:]
    reach = sum((m - 1) * s for m, s in inner) + 1
    if step == 0 or reach > step:
        return None  # rows that overlap
    if not inner:
        return x[..., start : start + (n - 1) * step + 1 : step]
    first = min(start, width - n * step)
    if first < 0 or start + reach > first + step:
        return None
    rows = x[..., first : first + n * step].reshape((*x.shape[:-1], n, step))
    return _windows(rows, step, start - first, inner)
