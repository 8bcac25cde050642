"""Joining and rearranging dual numbers: what is done to the values is done to the partials."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.base import Dual, outermost, partials_of, value_in, zeros_for
from mirabelle.arraytypes.functions.joining import concatenate, concatenated, with_duals_dense
from mirabelle.arraytypes.functions.manipulation import concat_, stack, stack_
from mirabelle.dispatch import verbs


def _rows(arrays: list[Any], top: Any) -> list[Any]:
    """The partials of each, zeros for constants."""
    return [
        partials_of(x)
        if isinstance(x, Dual) and x._tag is top._tag
        else zeros_for(top._value, (top._n, *x.shape))
        for x in arrays
    ]


@concat_.method
def _(leading: Dual, arrays: list, axis: Any) -> Any:
    return joined(with_duals_dense(arrays), axis)


@concatenated.method
def _(leading: Dual, arrays: list[Any], axis: int) -> Any:
    return joined(arrays, axis)


def joined(arrays: list[Any], axis: Any) -> Any:
    """`concatenate` of arrays, one of them a dual number at least."""
    if axis is None:
        arrays, axis = [verbs.reshape(x, (-1,)) for x in arrays], 0
    top = outermost(arrays)
    value = concatenate([value_in(x, top._tag) for x in arrays], axis)
    return top._with(value, ((None, concatenate(_rows(arrays, top), axis % value.ndim + 1)),))


@stack_.method
def _(leading: Dual, arrays: list, axis: Any) -> Any:
    arrays = with_duals_dense(arrays)
    top = outermost(arrays)
    value = stack([value_in(x, top._tag) for x in arrays], axis=axis)
    rows = stack(
        _rows([x if isinstance(x, AbstractArray) else leading for x in arrays], top), axis=axis % value.ndim + 1
    )
    return top._with(value, ((None, rows),))
