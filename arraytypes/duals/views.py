"""Views that are no index: a diagonal, windows, the real and the imaginary part show the partials likewise."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.duals.base import Dual, no_rule, partials_of
from mirabelle.arraytypes.duals.moving import _array, moved
from mirabelle.arraytypes.functions.memory import in_memory_order
from mirabelle.arraytypes.parts import (
    DiagonalView,
    ImagPart,
    RealPart,
    SlidingWindows,
    diagonal_view,
    imag_part,
    real_part,
    sliding_window_view,
)
from mirabelle.arraytypes.wrappers import PermutedDims, View, part_of_several
from mirabelle.dispatch import verbs


@part_of_several.method
def _(x: Dual, kind: Any, how: Any, shape: tuple[int, ...]) -> Any:
    if issubclass(kind, View):
        return verbs.getitem(x, how)
    if issubclass(kind, PermutedDims):
        return verbs.permute_dims(x, how)
    if issubclass(kind, DiagonalView):
        offset, first, second = how
        return moved(
            x,
            diagonal_view(_array(x), offset, first, second),
            lambda a: diagonal_view(a, offset, first, second),
            lambda p: diagonal_view(p, offset, first + 1, second + 1),
        )
    if issubclass(kind, SlidingWindows):
        window, axes = how
        return moved(
            x,
            sliding_window_view(_array(x), window, axes),
            lambda a: sliding_window_view(a, window, axes),
            lambda p: sliding_window_view(p, window, tuple(a + 1 for a in axes)),
        )
    if issubclass(kind, RealPart):
        part = imag_part if issubclass(kind, ImagPart) else real_part
        out = x._with(part(_array(x)), ((None, part(partials_of(x))),))
        out._source = (x, part)
        out._version = x._owner()[0]._version
        return out
    raise no_rule(x)


# Where the values lie in memory, the partials need not follow


@in_memory_order.method
def _(x: Dual, order: Any) -> Any:
    value = in_memory_order(_array(x), order)
    return x if value is x._value else x._with(value, x._now())
