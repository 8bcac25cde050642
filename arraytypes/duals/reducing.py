"""Reductions of dual numbers.

The sum of `coefficient * base` is where forward differentiation costs what reverse does: a seed gives the
coefficients themselves, an array in memory one product of a matrix and a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.base import (
    Dual,
    DualError,
    Seed,
    Term,
    collected,
    combined,
    directions_in_front,
    guard,
    product,
    shaped,
    snapshot,
)
from mirabelle.arraytypes.duals.elementwise import where
from mirabelle.arraytypes.duals.moving import _array, _full, each_row, moved
from mirabelle.arraytypes.functions.neighbours import cumulative_prod, cumulative_sum
from mirabelle.arraytypes.functions.outputs import pending
from mirabelle.arraytypes.reductions import Reduction, normal_axes
from mirabelle.dispatch import verbs


@verbs.sum.method
def _(x: Dual, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if dtype is not None:
        x = verbs.astype(x, dtype, copy=False)
        if not isinstance(x, Dual):
            return verbs.sum(x, axis=axis, keepdims=keepdims)
    value = verbs.sum(_array(x), axis=axis, keepdims=keepdims)
    return summed(x, value, x._now(), normal_axes(axis, x.ndim), keepdims)


def summed(x: Any, value: Any, terms: tuple[Term, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """`value` with the sums of terms (of the shape of `x`) along axes."""
    if not axes:
        return x._with(value, terms)
    found: list[Term] = []
    rest: Any = None
    for term in terms:
        made = _sum_of(x, term, axes, keepdims)
        if made[0] is None and not isinstance(made[1], Seed):
            rest = made[1] if rest is None else verbs.add(rest, made[1])
        else:
            found.append(made)
    if rest is not None:
        found.append((None, rest))
    return collected(x, value, found)


def _sum_of(x: Any, term: Term, axes: tuple[int, ...], keepdims: bool) -> Term:
    c, base = term
    shape, n, ndim = x.shape, x._n, x.ndim
    kept = tuple(1 if a in axes else d for a, d in enumerate(shape) if keepdims or a not in axes)
    if isinstance(base, Seed):
        if not base.shape:  # one number for all elements
            return _sum_of_coefficient(c, shape, axes, keepdims), base
        if base.shape == shape and len(axes) == ndim:
            flat = (
                _ones(x, base.count)
                if c is None
                else base.part(verbs.reshape(_full(_filled(c, x), shape), (-1,)))
            )
            rows = base.placed(snapshot(flat))
            return None, verbs.reshape(rows, (n, *kept)) if kept else rows
        guard(x)
        base, c = product(term, ndim, x._value), None
    if len(axes) == ndim and not keepdims and isinstance(c, AbstractArray) and _is_matrix(base, c, shape):
        # All elements are added: a matrix of directions times a vector.
        rows = base if base.ndim == 2 else verbs.reshape(base, (n, -1))
        return None, verbs.matmul(rows, c if c.ndim == 1 else shaped(c, (c.size,)))
    base = directions_in_front(base, ndim)
    over = tuple(a + 1 for a in axes)
    if all(base.shape[a] == 1 for a in over):  # the base is one for all that are added
        left = tuple(d for a, d in enumerate(base.shape[1:]) if a not in axes)
        one = base if keepdims else verbs.reshape(base, (n, *left))
        return _sum_of_coefficient(c, shape, axes, keepdims), one
    added = base if not isinstance(c, AbstractArray) else verbs.multiply(base, c)
    size = tuple(d if a in axes else b for a, (d, b) in enumerate(zip(shape, added.shape[1:], strict=True)))
    made = verbs.sum(_full(added, (n, *size)), axis=over, keepdims=keepdims)
    return (c if added is base else None), made


def _is_matrix(base: Any, c: Any, shape: tuple[int, ...]) -> bool:
    """Are the elements of a base, one for each coefficient, in memory that BLAS multiplies?"""
    elements = base.shape[1:]
    return (
        c.shape == shape
        and shape[len(shape) - len(elements) :] == elements
        and all(d == 1 for d in shape[: len(shape) - len(elements)])
        and base.dtype == c.dtype
        and c.dtype.char in "fdFD"
        and not pending(base)
    )


def _sum_of_coefficient(c: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    if not isinstance(c, AbstractArray):
        count = 1
        for a in axes:
            count *= shape[a]
        return float(count) if c is None else c * count
    return verbs.sum(_full(c, shape), axis=axes, keepdims=keepdims)


def _filled(c: Any, x: Any) -> Any:
    if isinstance(c, AbstractArray):
        return c
    from mirabelle.arraytypes.structured.implicit import filled

    return filled(_family(x), (), x.dtype.type(c))


def _ones(x: Any, n: int) -> Any:
    from mirabelle.arraytypes.creation import ones

    return ones(n, dtype=x.dtype, device=x.place)


def _family(x: Any) -> Any:
    from mirabelle.arraytypes.elementwise import leaf_family

    return leaf_family(type(x))


@verbs.prod.method
def _(x: Dual, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, x.ndim)
    value = verbs.prod(_array(x), axis=axis, dtype=dtype, keepdims=keepdims)
    if not axes:
        return x
    # Each element's derivative is the product of the others, from both sides: also where elements are zero.
    v = _array(x)
    order = (*(a for a in range(x.ndim) if a not in axes), *axes)
    turned = verbs.permute_dims(v, order)
    outer = turned.shape[: x.ndim - len(axes)]
    line = verbs.reshape(turned, (*outer, -1))
    before, after = _exclusive(line), _exclusive(line[..., ::-1])[..., ::-1]
    others = verbs.reshape(verbs.multiply(before, after), turned.shape)
    others = verbs.permute_dims(others, tuple(int(i) for i in np.argsort(order)))
    terms = tuple((others if c is None else verbs.multiply(others, c), b) for c, b in x._now())
    return summed(x, value, terms, axes, keepdims)


def _exclusive(line: Any) -> Any:
    """Of each element of the last axis, the product of those before it."""
    from mirabelle.arraytypes.creation import ones_like
    from mirabelle.arraytypes.functions.manipulation import concat

    first = ones_like(line[..., :1])
    return concat([first, cumulative_prod(line[..., :-1], axis=-1)], axis=-1) if line.shape[-1] > 1 else first


def _extreme(name: str) -> Any:
    verb = getattr(verbs, name)

    def method(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        axes = normal_axes(axis, x.ndim)
        v = _array(x)
        held = verb(v, axis=axis, keepdims=True) if x.ndim else v
        value = (
            held
            if keepdims or not x.ndim
            else verbs.reshape(held, tuple(d for a, d in enumerate(held.shape) if a not in axes))
        )
        # Of equals each counts as much.
        found = verbs.equal(v, held)
        share = where(
            found, verbs.divide(1.0, verbs.sum(where(found, v.dtype.type(1), 0), axis=axis, keepdims=True)), 0
        )
        share = verbs.astype(share, x.dtype, copy=False)
        terms = tuple((share if c is None else verbs.multiply(share, c), b) for c, b in x._now())
        return summed(x, value, terms, axes, keepdims)

    return method


for _name in ("min", "max"):
    getattr(verbs, _name).method(_extreme(_name), signature=(Dual,))


def _of_value(verb: Any) -> Any:
    def method(x: Any, **options: Any) -> Any:
        return verb(_array(x), **options)

    return method


for _verb in (verbs.any, verbs.all, verbs.count_nonzero):
    _verb.method(_of_value(_verb), signature=(Dual,))


@verbs.reduce_.method
def _(x: Dual, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    name = reduction.name
    if not isinstance(reduction, Reduction) or reduction.scalar is not None:
        raise DualError(
            f"Reducing dual numbers with the function {name}() has no rule. Reduce with mb.add, mb.multiply, "
            "mb.maximum or mb.minimum, or write the reduction with array functions, mb.sum(f(x)) for "
            "instance."
        )
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if name in ("sum", "prod"):
        options["dtype"] = dtype
    return getattr(verbs, name)(x, **options)


@verbs.mapreduce_.method
def _(
    x: Dual, f: Any = None, op: Any = None, init: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    from mirabelle.arraytypes.reductions import reduction_of
    from mirabelle.arraytypes.userbroadcast import broadcast

    y = x if f is None else f(x) if hasattr(f, "core") else broadcast(f, x)
    if not isinstance(y, Dual):
        return verbs.mapreduce_(y, None, op, init, axis, keepdims)
    reduction = reduction_of(op, init)
    out = verbs.reduce_(y, reduction, axis=axis, keepdims=keepdims)
    if init is not None:
        combine = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum",
                   "any": "logical_or", "all": "logical_and"}[reduction.name]  # fmt: skip
        out = verbs.ELEMENTWISE[combine](out, init)
    return out


# Running ones


@cumulative_sum.method
def _(x: Dual, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    value = cumulative_sum(_array(x), axis=axis, dtype=dtype, include_initial=include_initial)
    at = 0 if axis is None else axis % x.ndim
    p = _full(combined(x, x._now()), (x._n, *x.shape))
    return x._with(
        value, ((None, cumulative_sum(p, axis=at + 1, dtype=dtype, include_initial=include_initial)),)
    )


@cumulative_prod.method
def _(x: Dual, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    v = _array(x)
    at = 0 if axis is None else axis % x.ndim
    value = cumulative_prod(v, axis=axis, dtype=dtype, include_initial=include_initial)
    # d(x₀…xⱼ) = Σᵢ dxᵢ Πₗ≠ᵢ xₗ: a lower triangle of products, which holds also where elements are zero.
    n = x.shape[at]
    last = verbs.permute_dims(x, (*(a for a in range(x.ndim) if a != at), at))
    rows = [verbs.prod(last[..., : j + 1], axis=-1) for j in range(n)]
    from mirabelle.arraytypes.functions.manipulation import moveaxis, stack

    made = moveaxis(stack(rows, axis=-1), -1, at)
    terms = made._now()
    if include_initial:
        from mirabelle.arraytypes.functions.manipulation import concat

        zero = verbs.multiply(value[tuple(slice(0, 1) if a == at else slice(None) for a in range(x.ndim))], 0.0)
        return concat([verbs.add(zero, 1.0), made], axis=at)
    return x._with(value, terms)


@verbs.accumulate.method
def _(x: Dual, op: Any = None, axis: Any = None, init: Any = None) -> Any:
    name = "add" if op is None else getattr(op, "__name__", op)
    run = {"add": cumulative_sum, "multiply": cumulative_prod}.get(str(name))
    if run is None or init is not None:
        raise DualError(
            f"A running {name} of dual numbers has no rule. There are mb.cumulative_sum(x) and "
            "mb.cumulative_prod(x)."
        )
    return run(x, axis=axis if axis is not None or x.ndim != 1 else 0)


__all__ = ["combined", "each_row", "moved"]
