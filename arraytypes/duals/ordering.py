"""Order: sorted dual numbers are gathered in the order of their values, and so are the distinct ones."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.duals.base import Dual, partials_of
from mirabelle.arraytypes.duals.moving import _array
from mirabelle.arraytypes.duals.routines import on_values, only_first, rule_of
from mirabelle.arraytypes.functions.picking import take, take_along_axis
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
