"""How the operands of one launch lie in memory, reduced to as few dimensions as possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.codegen.source import CONTIGUOUS, REVERSED, STRETCHED, STRIDED, UNEVEN
from mirabelle.dispatch.native import in_c


class Arrangement:
    """Merged sizes, and for each operand its strides over them (0 where it is stretched).

    `in_order` says that elements are gone through in the order of their indices.
    """

    __slots__ = ("classes", "in_order", "sizes", "strides", "tiled")

    def __init__(
        self, sizes: list[int], strides: list[list[int]], classes: str, tiled: bool, in_order: bool = True
    ) -> None:
        self.sizes = sizes
        self.strides = strides
        self.classes = classes
        self.tiled = tiled
        self.in_order = in_order


def stretched_strides(view: Any, shape: tuple[int, ...]) -> list[int]:
    """The strides of a view over a shape it broadcasts to."""
    pad = len(shape) - len(view.shape)
    out = [0] * pad
    for n, s, full in zip(view.shape, view.strides, shape[pad:], strict=True):
        out.append(0 if n == 1 and full != 1 else s)
    return out


def arrange(shape: tuple[int, ...], views: list[Any]) -> Arrangement:
    """Merge dimensions for an elementwise launch; `views[0]` is the destination. (dispatch/csrc/arranging.c)"""
    operands = [v if type(v) is np.ndarray else (v.shape, v.strides, v.dtype.itemsize) for v in views]
    return Arrangement(*in_c.arrange(shape, operands))


# Rows and columns of at most one in so many elements of what is written are read side by side.
_OFTEN = 16


def arrange_rows(shape: tuple[int, ...], operands: list[Any], results: int) -> tuple[Arrangement, list[int]]:
    """As `arrange`, and which operands behind the results are copied first: short vectors that the innermost
    loop would gather from memory, again and again.
    """
    found = arrange(shape, operands)
    often = operands[0].size // _OFTEN
    rows = [
        i
        for i in range(results, len(operands))
        if found.classes[i] in _GATHERED
        and operands[i].size <= often
        and operands[i].size == max(operands[i].shape)
    ]
    if rows:
        found = arrange(shape, [_side_by_side(v) if i in rows else v for i, v in enumerate(operands)])
    return found, rows


_GATHERED = REVERSED + STRIDED + UNEVEN


def _side_by_side(view: Any) -> Any:
    return np.empty(view.shape, view.dtype)


def merge(sizes: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge neighbouring dimensions that every operand steps through evenly."""
    if not sizes:
        return [1], [[0] for _ in strides]
    out_sizes = [sizes[0]]
    out = [[s[0]] for s in strides]
    for d in range(1, len(sizes)):
        if all(o[-1] == s[d] * sizes[d] for o, s in zip(out, strides, strict=True)):
            out_sizes[-1] *= sizes[d]
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[d]
        else:
            out_sizes.append(sizes[d])
            for o, s in zip(out, strides, strict=True):
                o.append(s[d])
    return out_sizes, out


class ReducedArrangement:
    """For a reduction: kept dimensions, reduced ones, and the innermost, each merged.

    `order` lists the kept dimensions of the operand in the order partial results have. Is the order of all its
    dimensions `natural`?
    """

    __slots__ = ("classes", "inner_kept", "kept", "natural", "order", "reduced", "sizes", "strides")

    def __init__(
        self, kept: list[int], reduced: list[int], sizes: list[int], strides: list[list[int]], classes: str,
        inner_kept: bool, order: list[int], natural: bool,
    ) -> None:  # fmt: skip
        self.kept = kept
        self.reduced = reduced
        self.sizes = sizes
        self.strides = strides
        self.classes = classes
        self.inner_kept = inner_kept
        self.order = order
        self.natural = natural


def in_order(shape: tuple[int, ...], views: list[Any]) -> bool:
    """Do all operands run through memory in the order of their dimensions, forwards?"""
    for v in views:
        steps = [s for s, n in zip(stretched_strides(v, shape), shape, strict=True) if n != 1 and s]
        if any(s < 0 for s in steps) or steps != sorted(steps, reverse=True):
            return False
    return True


def arrange_reduction(shape: tuple[int, ...], axes: tuple[int, ...], views: list[Any]) -> ReducedArrangement:
    """Order and merge dimensions for reducing `axes` of operands broadcast to `shape`."""
    operands = [v if type(v) is np.ndarray else (v.shape, v.strides, v.dtype.itemsize) for v in views]
    return ReducedArrangement(*in_c.arrange(shape, operands, axes))


def inner_class(stride: int, dtype: np.dtype) -> str:
    """How an operand steps through the innermost dimension."""
    if stride == 0:
        return STRETCHED
    known = {dtype.itemsize: CONTIGUOUS, -dtype.itemsize: REVERSED}.get(stride)
    return known or (UNEVEN if stride % dtype.itemsize else STRIDED)
