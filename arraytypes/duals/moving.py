"""What moves elements and changes none: a dual number moves with its partials."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.duals.base import (
    Dual,
    DualError,
    Seed,
    Term,
    cannot_hold,
    combined,
    directions_in_front,
    no_change,
    no_rule,
    partials_of,
    product,
    snapshot,
)
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.indexing import picked_by, put_picked, write_at, write_to_parts
from mirabelle.arraytypes.parametric import ArrayMeta, checked_dtype
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs

Move = Callable[[Any], Any]


def moved(x: Any, value: Any, of_values: Move, of_partials: Move, seeds: Any = None) -> Any:
    """`x` with its elements moved to where those of `value` are: a view of `x`.

    `of_values` moves an array of the shape of `x`, `of_partials` one with directions in front; `seeds` says
    what becomes of a seed where that is a seed again.
    """
    out = x._with(value, tuple(_moved_term(x, t, of_values, of_partials, seeds) for t in x._now()))
    out._source = (x, of_partials)
    out._version = x._owner()[0]._version
    return out


def _moved_term(x: Any, term: Term, of_values: Move, of_partials: Move, seeds: Any) -> Term:
    c, base = term
    if isinstance(base, Seed):
        again = base if not base.shape else seeds(base) if seeds is not None and base.shape == x.shape else None
        if again is None:
            return None, of_partials(_full(product(term, x.ndim, x._value), (x._n, *x.shape)))
        return _moved_coefficient(c, x.shape, of_values), again
    if all(n == 1 for n in base.shape[1:]):  # one for all elements
        return _moved_coefficient(c, x.shape, of_values), verbs.reshape(base, (x._n,))
    whole = (x._n, *x.shape)
    if (isinstance(c, AbstractArray) and base.ndim < len(whole)) or base.ndim < len(whole):
        base = verbs.reshape(base, (base.shape[0], *(1,) * (len(whole) - base.ndim), *base.shape[1:]))
    return _moved_coefficient(c, x.shape, of_values), of_partials(_full(base, whole))


def _moved_coefficient(c: Any, shape: tuple[int, ...], of_values: Move) -> Any:
    return snapshot(of_values(_full(c, shape))) if isinstance(c, AbstractArray) and c.size != 1 else _one(c)


def _one(c: Any) -> Any:
    return verbs.reshape(c, ()) if isinstance(c, AbstractArray) and c.ndim else c


def _full(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else verbs.broadcast_to(x, shape)


@verbs.reshape.method
def _(x: Dual, shape: Any, *, copy: Any = None) -> Any:
    value = verbs.reshape(_array(x), shape) if copy is None else verbs.reshape(_array(x), shape, copy=copy)
    to = value.shape
    return moved(
        x,
        value,
        lambda a: verbs.reshape(a, to),
        lambda p: verbs.reshape(p, (p.shape[0], *to)),
        lambda s: s.shaped(to),
    )


@verbs.permute_dims.method
def _(x: Dual, axes: Any) -> Any:
    order = tuple(axes)
    value = verbs.permute_dims(_array(x), order)
    order = tuple(a % x.ndim for a in order)
    # (Of a row or a column the elements stay in their order.)
    line = (lambda s: s.shaped(value.shape)) if sum(n != 1 for n in x.shape) <= 1 else None
    return moved(
        x,
        value,
        lambda a: verbs.permute_dims(a, order),
        lambda p: verbs.permute_dims(p, (0, *(a + 1 for a in order))),
        line,
    )


@verbs.broadcast_to.method
def _(x: Dual, shape: Any) -> Any:
    value = verbs.broadcast_to(_array(x), shape)
    if value.shape == x.shape:
        return x
    out = x._with(value, x._now())  # terms stretch by themselves
    out._source = (x, lambda p: _stretched(p, value.shape))
    out._version = x._owner()[0]._version
    return out


def _stretched(p: Any, shape: tuple[int, ...]) -> Any:
    aligned = verbs.reshape(p, (p.shape[0], *(1,) * (len(shape) + 1 - p.ndim), *p.shape[1:]))
    return verbs.broadcast_to(aligned, (p.shape[0], *shape))


def _array(x: Any) -> Any:
    """The values as an array, of a number too."""
    value = x._value
    if isinstance(value, AbstractArray):
        return value
    from mirabelle.arraytypes.creation import asarray

    return asarray(value)


# By index


@verbs.getitem.method
def _(x: Dual, index: Any) -> Any:
    entries = index if type(index) is tuple else (index,)
    if any(isinstance(i, Dual) for i in entries):
        raise DualError("An index is no dual number. Take its value: `x[mb.autodiff.value(i)]`.")
    picked = picked_by(leaf_family(type(x)), x, entries)
    if picked is not None:
        return picked
    value = verbs.getitem(_array(x), index)
    if _lists_apart(entries):
        return _each_direction(x, value, lambda p: verbs.getitem(p, index))
    found = moved(
        x,
        value,
        lambda a: verbs.getitem(a, index),
        lambda p: verbs.getitem(p, (slice(None), *entries)),
        lambda s: _part_of_seed(s, entries),
    )
    if not _is_basic(entries):
        found._source = None
    return found


def _part_of_seed(s: Seed, index: tuple[Any, ...]) -> Seed | None:
    """What a slice of a vector leaves of its unit directions."""
    if len(s.shape) == 1 and len(index) == 1 and isinstance(index[0], slice):
        low, high, step = index[0].indices(s.shape[0])
        if step == 1 and low < high:
            return s.sliced(low, high)
    if all((isinstance(i, slice) and i == slice(None)) or i is None or i is Ellipsis for i in index):
        probe = np.broadcast_to(np.empty((), np.bool_), s.shape)[index]
        return s.shaped(probe.shape)
    return None


def _is_basic(index: tuple[Any, ...]) -> bool:
    return all(
        i is None
        or i is Ellipsis
        or isinstance(i, slice)
        or (isinstance(i, (int, np.integer)) and type(i) is not bool)
        for i in index
    )


def _is_list(i: Any) -> bool:
    return not (i is None or i is Ellipsis or isinstance(i, slice))


def _lists_apart(index: tuple[Any, ...]) -> bool:
    """Is NumPy's index one whose picked axes come first, because lists (or numbers) in it stand apart?"""
    if _is_basic(index):
        return False
    at = [k for k, i in enumerate(index) if _is_list(i)]
    return at[-1] - at[0] + 1 != len(at)


def _each_direction(x: Any, value: Any, f: Move) -> Any:
    """`f` on the partials along each direction."""
    return x._with(value, ((None, each_row(partials_of(x), f)),))


def each_row(p: Any, f: Move) -> Any:
    """A function of arrays, on each row of the partials."""
    from mirabelle.arraytypes.functions.manipulation import stack

    return stack([f(p[k]) for k in range(p.shape[0])])


# Writing


def write(dest: Any, value: Any, casting: Any = "unsafe") -> Any:
    """Overwrite values and partials; a constant has no partials."""
    if not isinstance(dest._value, AbstractArray):
        raise TypeError("A single dual number is not written to. Bind the name anew: `x = x + 1`.")
    _refuse_from_without(dest)
    if dest._source is None and _has_terms_for(dest, value):
        mine = isinstance(value, Dual) and value._tag is dest._tag
        terms = value._now() if mine else no_change(dest._n)
        verbs.assign(dest._value, value._value if mine else value, casting=casting)
        dest._rewritten(terms)
        return dest
    plain, partials = _parts_of(dest, value)
    mine = dest._writable()
    if isinstance(partials, AbstractArray):
        partials = directions_in_front(partials, dest.ndim)
        verbs.broadcast_to(partials, mine.shape)  # or an error, before anything is written
    verbs.assign(dest._value, plain, casting=casting)
    verbs.assign(mine, partials)
    return dest


def _refuse_from_without(dest: Any) -> None:
    """An error where the body of a captured loop or branch writes to dual numbers that are not its own.

    (What carries arrays that a body writes to from trip to trip knows of values, and not of derivatives.)
    """
    for watch in recording.watchers:
        refuse = getattr(watch, "refuse_dual", None)
        if refuse is not None:
            refuse(dest)


def _has_terms_for(dest: Any, value: Any) -> bool:
    """Do all elements of `dest` change as the terms of a value say? (Not if they are its real parts.)"""
    if not isinstance(value, Dual) or value._tag.order < dest._tag.order:
        return True
    real_parts = value.dtype.kind == "c" and dest.dtype.kind != "c"
    return value._tag is dest._tag and value.ndim <= dest.ndim and not real_parts


def _write_at(x: Any, index: Any, value: Any, op: str = "") -> None:
    if not op and (index is Ellipsis or (type(index) is slice and index == slice(None))):
        write(x, value)
        return
    if op not in ("", "add", "subtract"):
        raise no_rule(x, f"np.{op}.at")
    put = functools.partial(write_at, op=op) if op else verbs.setitem
    entries = index if type(index) is tuple else (index,)
    if not op and put_picked(leaf_family(type(x)), x, entries, value):
        return
    plain, partials = _parts_of(x, value)
    _refuse_from_without(x)
    mine = x._writable()
    put(x._value, entries, plain)
    if not _lists_apart(entries):
        if isinstance(partials, AbstractArray):
            wanted = verbs.getitem(_array(x), index).ndim
            partials = directions_in_front(partials, wanted)
        put(mine, (slice(None), *entries), partials)
        return
    for k in range(x._n):
        put(mine[k], entries, partials[k] if isinstance(partials, AbstractArray) else 0)


def _parts_of(dest: Any, value: Any) -> tuple[Any, Any]:
    """What is written to the values, and to the partials."""
    if not isinstance(value, Dual):
        return value, 0
    if value._tag.order > dest._tag.order:
        raise cannot_hold(value)
    if value._tag is not dest._tag:
        return value, 0
    return value._value, computed(snapshot(combined(value, value._now())))


verbs.setitem.method(_write_at, signature=(Dual, object, object))
write_to_parts.method(_write_at, signature=(Dual,))
for _value in (object, Structured, Dual):
    verbs.assign.method(write, signature=(Dual, _value))


def _refuse(dest: Any, value: Any, casting: Any = "unsafe") -> Any:
    raise cannot_hold(value)


for _dest in (AbstractArray, Structured):
    verbs.assign.method(_refuse, signature=(_dest, Dual))


# Making others like it


@verbs.similar.method
def _(x: Dual, dtype: Any = None, shape: Any = None) -> Any:
    value = verbs.similar(_array(x), dtype=dtype, shape=shape)
    if value.dtype.kind not in "fc":
        return value
    return x._with(value, no_change(x._n))


@verbs.copy.method
def _(x: Dual) -> Any:
    return x._with(verbs.copy(x._value) if isinstance(x._value, AbstractArray) else x._value, x._now())


@verbs.materialize.method
def _(x: Dual) -> Any:
    if isinstance(x._value, AbstractArray):
        verbs.materialize(x._value)
    for c, base in x._terms:
        for part in (c, base):
            if isinstance(part, AbstractArray):
                verbs.materialize(part)
    return x


@verbs.dense.method
def _(x: Dual) -> Any:
    terms = tuple(
        (verbs.dense(c) if isinstance(c, AbstractArray) else c, b if isinstance(b, Seed) else verbs.dense(b))
        for c, b in x._now()
    )
    return x._with(verbs.dense(x._value) if isinstance(x._value, AbstractArray) else x._value, terms)


@verbs.astype.method
def _(x: Dual, dtype: Any, copy: bool = True, device: Any = None) -> Any:
    d = checked_dtype(dtype)
    value = (
        verbs.astype(_array(x), d, copy=copy)
        if device is None
        else verbs.astype(_array(x), d, copy=copy, device=device)
    )
    if d.kind not in "fc":
        return value
    if device is not None:
        return _moved_to(leaf_family(type(value)), x, value)
    return x if value is x._value else x._with(value, x._now())


@verbs.adapt.method
def _(to: ArrayMeta, x: Dual) -> Any:
    return _moved_to(to, x, verbs.adapt(to, _array(x)))


def _moved_to(to: Any, x: Any, value: Any) -> Any:
    if leaf_family(type(value)) is leaf_family(type(x)):
        return x._with(value, x._now())
    return x._with(value, ((None, verbs.adapt(to, computed(x.partials))),))


@verbs.place.method
def _(x: Dual) -> Any:
    return verbs.place(_array(x))


@verbs.parent.method
def _(x: Dual) -> Any:
    return x
