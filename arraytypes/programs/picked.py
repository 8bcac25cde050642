"""`x[mask]` in a program: elements of which nobody knows how many there are.

How many a mask picks is known when a program runs, and a graph has shapes. So `x[mask]` is the whole of `x`
with the mask beside it: what is computed of it is computed of all elements, and counts where the mask holds.
Written back with the same mask it is a `where`; reduced, it is a reduction of what the mask leaves. What needs
the elements in a row, or their number, is refused.

>>> import mirabelle as mb
>>> @mb.compile
... def rooted(x):
...     x[x > 0] = mb.sqrt(x[x > 0])
...     return x[x > 0].mean()
>>> x = mb.HostArray([4.0, -1.0, 9.0])
>>> print(rooted(x), x)
2.5 [ 2. -1.  3.]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import build, cast_to, elementwise_rule, leaf_family
from mirabelle.arraytypes.indexing import Basic, check_mask, picked_by, put_picked, read
from mirabelle.arraytypes.parametric import ArrayMeta, checked_dtype
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.errors import TraceError, because_of, shown_line, user_line
from mirabelle.arraytypes.programs.showing import refuse_text
from mirabelle.arraytypes.programs.traced import Traced, handle
from mirabelle.arraytypes.random.bitgenerator import compiling
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Leaf

_new = object.__new__
_ALL = slice(None)


class Picked(AbstractArray):
    """What a mask picks, as all there is (`_dense`) and the mask.

    The axes of the mask begin at axis `_at` of what is dense; here they are one.
    """

    __module__ = "mirabelle"
    __slots__ = ("__weakref__", "_at", "_dense", "_line", "_mask")

    _dense: Any
    _mask: Any
    _at: int
    _line: Any
    parent_type: Any = AbstractArray
    # Whatever else is beside what is picked: it meets all there is.
    _elementwise_first = True
    _is_counted = False

    @classmethod
    def _of(cls, dense: Any, mask: Any, at: int) -> Any:
        generic: Any = Picked
        x = _new(generic[type(dense)])
        x._dense, x._mask, x._at = dense, mask, at
        x._line = graph.work.current_line()
        return x

    # Parameters: the type of what is dense.

    @classmethod
    def _normalise(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parameters) != 1 or not (
            isinstance(parameters[0], type) and issubclass(parameters[0], AbstractArray)
        ):
            raise TypeError(f"{cls.__name__} takes the type of the array that a mask picks from.")
        return parameters

    @classmethod
    def _widened(cls, parameters: Any) -> Iterator[tuple[Any, ...]]:
        above = parameters[0].__mro__[1]
        if issubclass(above, AbstractArray) and parameters[0].parameters:
            yield (above,)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        dtype = getattr(parameters[0], "dtype", None)
        return {"parent_type": parameters[0]} | ({"dtype": dtype} if isinstance(dtype, np.dtype) else {})

    # What is known of it, and what is not

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return int(self._dense.ndim - self._mask.ndim + 1)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        raise unknown(self, "The shape of what a mask picks is asked for")

    @property
    def _behind(self) -> int:
        """How many axes come after those of the mask."""
        return int(self._dense.ndim - self._at - self._mask.ndim)

    @property
    def _held(self) -> Any:
        """The mask, aligned with what is dense."""
        return self._mask[(..., *(None,) * self._behind)] if self._behind else self._mask

    def _like(self, dense: Any) -> Any:
        """Other values, with as many axes behind, picked by the same mask."""
        return Picked._of(dense, self._mask, dense.ndim - self._behind - self._mask.ndim)

    def _cast(self, dtype: np.dtype) -> Any:
        return self._like(cast_to(self._dense, dtype))

    @property
    def real(self) -> Any:  # pyright: ignore
        return verbs.real(self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        raise unknown(self, "A part of what a mask picks is written to")

    @property
    def imag(self) -> Any:  # pyright: ignore
        return verbs.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        raise unknown(self, "A part of what a mask picks is written to")

    def _without_values(self) -> str:
        refuse_text()
        return f"<traced {self.dtype.name}, picked by a mask in {shown_line(self._line)}>"

    def __reduce__(self) -> Any:
        raise unknown(self, "What a mask picks is pickled")


def elementwise(op: Any, operands: tuple[Any, ...]) -> Any:
    """An elementwise operation: on all there is, for as much as the mask picks."""
    like = next(x for x in operands if isinstance(x, Picked))
    if not op.pure:  # (which may fail, or never end, for elements that the mask leaves out)
        raise unknown(like, f"A function of your own, {op.name}, is applied to what a mask picks")
    dense = [aligned(like, x) for x in operands]
    if op.name == "pow" and getattr(dense[1], "ndim", 0) and dense[1].dtype.kind == "i":
        # (Of all operations this fails for some numbers: an integer to the power of a negative one.)
        dense[1] = verbs.where(like._held, dense[1], 0)
    made = build(op, tuple(dense))
    return tuple(map(like._like, made)) if isinstance(made, tuple) else like._like(made)


@elementwise_rule.method
def _(kind: type[Picked]) -> Any:
    return elementwise


def unknown(x: Picked, what: str) -> TraceError:
    """The error for what cannot be done with elements of which nobody knows how many there are."""
    if compiling.get() is None:
        return TraceError(because_of(what))
    return TraceError(f"{what} in {shown_line(user_line(2))}, while the function is being compiled: {_why(x)}")


def _why(x: Picked) -> str:
    return (
        f"how many elements the mask in {shown_line(x._line)} picks, is only known when the program runs. "
        "Programs have elementwise operations with numbers and with what the same mask picks, reductions, "
        "`x[mask].mean()`, and `x[mask] = ...` with the same mask. How many there are is "
        "mb.count_nonzero(mask); as an array of the shape of x they are mb.where(mask, x, 0)."
    )


def same_mask(a: Picked, b: Picked) -> bool:
    """Do two pick the same places, in the same axis counted from the end? (Equal nodes are one.)"""
    return a._behind == b._behind and same_node(a, b)


def same_node(a: Picked, b: Picked) -> bool:
    return verbs.leaf_of(a._mask).view.node is verbs.leaf_of(b._mask).view.node


def aligned(like: Picked, x: Any) -> Any:
    """An operand beside what a mask picks, as one beside all there is."""
    if isinstance(x, Picked):
        if not same_mask(like, x):
            raise unknown(x, "What two masks pick is brought together")
        return x._dense
    axis = getattr(x, "ndim", 0) - 1 - like._behind
    if axis < 0:
        return x
    if x.shape[axis] != 1:
        raise unknown(like, f"An array of shape {x.shape} meets what a mask picks")
    more = like._mask.ndim - 1
    return x[(*(_ALL,) * axis, *(None,) * more, ...)] if more else x


# Reading and writing


def mask_among(x: Any, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, int] | None:
    """The mask in an index, if what it picks is not known: the index without it, the mask, and its axis.

    None where there is none, or other arrays are beside it.
    """
    family = leaf_family(type(x))
    masks = [i for i in index if isinstance(i, AbstractArray) and i.dtype.kind == "b" and i.ndim]
    if len(masks) != 1 or isinstance(masks[0], Picked) or leaf_family(type(masks[0])) is not family:
        return None
    (mask,) = masks
    if any(i is not mask and (not isinstance(i, Basic) or isinstance(i, (bool, np.bool_))) for i in index):
        return None
    mask = handle(family, verbs.leaf_of(mask).view.node)
    if not mask.node.bound:
        return None
    entries = [mask if i is masks[0] else i for i in index]
    named = sum(mask.ndim if i is mask else i is not None and i is not Ellipsis for i in entries)
    if named > x.ndim or sum(i is Ellipsis for i in entries) > 1:
        return None  # which is an error
    if not any(i is Ellipsis for i in entries):
        entries.append(Ellipsis)
    dots = next(k for k, i in enumerate(entries) if i is Ellipsis)
    entries[dots : dots + 1] = [_ALL] * (x.ndim - named)
    chosen = [k for k, i in enumerate(entries) if i is mask or isinstance(i, (int, np.integer))]
    if chosen[-1] - chosen[0] + 1 != len(chosen):
        return None  # (the axis that is picked comes first, whatever is in front of it)
    k = next(k for k, i in enumerate(entries) if i is mask)
    axis = sum(i is not None for i in entries[:k])
    check_mask(mask, x.shape[axis : axis + mask.ndim], axis)
    basic = (*entries[:k], *(_ALL,) * mask.ndim, *entries[k + 1 :])
    return basic, mask, sum(not isinstance(i, (int, np.integer)) for i in entries[:k])


@picked_by.method
def _(family: type[Traced], x: Any, index: tuple[Any, ...]) -> Any:
    """x[index], if there is a mask in the index that holds who knows where; else None."""
    found = mask_among(x, index)
    if found is None:
        return None
    basic, mask, at = found
    if not mask.size:
        return read(x, _of_nothing(x, index))
    shown = x if all(i == _ALL for i in basic) else verbs.getitem(x, basic)
    return Picked._of(_as_it_is(shown), mask, at)


def _as_it_is(x: Any) -> Any:
    """An array as it is now: what is picked is a copy."""
    if isinstance(x, Dual):
        return x._with(_as_it_is(x._value), x._now())
    return handle(leaf_family(type(x)), verbs.leaf_of(x).view.node)


@put_picked.method
def _(family: type[Traced], x: Any, index: tuple[Any, ...], value: Any) -> bool:
    """x[index] = value, if there is a mask in the index that holds who knows where: was it so?"""
    found = mask_among(x, index)
    if found is None:
        return False
    basic, mask, at = found
    if not mask.size:
        verbs.setitem(x, _of_nothing(x, index), value)
        return True
    write(x if all(i == _ALL for i in basic) else verbs.getitem(x, basic), mask, at, value)
    return True


def _of_nothing(x: Any, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with a mask that has no elements, and so picks none, as one whose values are known."""
    family = leaf_family(type(x))
    return tuple(
        wrap(family, Leaf(family._upload(np.zeros(i.shape, bool)))) if isinstance(i, AbstractArray) else i
        for i in index
    )


def write(target: Any, mask: Any, at: int, value: Any) -> None:
    """Write a value to what a mask picks of an array."""
    from mirabelle.arraytypes.assign import assigned_value

    place = Picked._of(target, mask, at)
    if isinstance(value, (list, tuple)):
        value = as_array(value, target)
    value = aligned(place, value)
    if not target.carries_derivatives:
        value = assigned_value(target, value)
    verbs.assign(target, verbs.where(place._held, value, target))


@verbs.getitem.method
def _(x: Picked, index: Any) -> Any:
    index = index if type(index) is tuple else (index,)
    if len(index) == 1 and isinstance(index[0], Picked) and index[0].dtype.kind == "b":
        return Picked._of(verbs.copy(x._dense), *_both(x, index[0]))
    basic = _basic(x, index)
    if basic is None:
        raise unknown(x, "What a mask picks is indexed")
    return Picked._of(verbs.getitem(x._dense, basic[0]), x._mask, basic[1])


@verbs.setitem.method
def _(x: Picked, index: Any, value: Any) -> None:
    index = index if type(index) is tuple else (index,)
    if len(index) == 1 and isinstance(index[0], Picked) and index[0].dtype.kind == "b":
        write(x._dense, *_both(x, index[0]), value)
        return
    basic = _basic(x, index)
    if basic is None:
        raise unknown(x, "Some of what a mask picks are written to")
    verbs.assign(Picked._of(verbs.getitem(x._dense, basic[0]), x._mask, basic[1]), value)


def _both(x: Picked, mask: Picked) -> tuple[Any, int]:
    """A mask over what another has picked, as one over all there is."""
    if not same_node(x, mask) or x._at or mask._at or mask._behind > x._behind:
        raise unknown(x, "What a mask picks is indexed")
    return verbs.logical_and(mask._held, mask._dense), 0


def _basic(x: Picked, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], int] | None:
    """An index of the other axes as one of what is dense, and where the picked axis is then; else None."""
    if not all(isinstance(i, Basic) and not isinstance(i, (bool, np.bool_)) for i in index):
        return None
    entries = list(index) if any(i is Ellipsis for i in index) else [*index, Ellipsis]
    dots = next(k for k, i in enumerate(entries) if i is Ellipsis)
    named = sum(i is not None and i is not Ellipsis for i in entries)
    entries[dots : dots + 1] = [_ALL] * (x.ndim - named)
    axes = [k for k, i in enumerate(entries) if i is not None]
    if len(axes) != x.ndim or entries[axes[x._at]] != _ALL:
        return None
    k = axes[x._at]
    at = sum(not isinstance(i, (int, np.integer)) for i in entries[:k])
    return (*entries[:k], *(_ALL,) * x._mask.ndim, *entries[k + 1 :]), at


def _assign(dest: Any, value: Any, casting: Any = "unsafe") -> Any:
    if isinstance(value, (list, tuple)):
        value = as_array(value, dest._dense)
    verbs.assign(dest._dense, aligned(dest, value), casting=casting)
    return dest


def _assign_all(dest: Any, value: Any, casting: Any = "unsafe") -> Any:
    raise unknown(value, "What a mask picks is written to all of an array")


for _other in (object, Structured, Dual, Picked):
    verbs.assign.method(_assign, signature=(Picked, _other))
for _other in (AbstractArray, Structured, Dual):
    verbs.assign.method(_assign_all, signature=(_other, Picked))


@verbs.copy.method
def _(x: Picked) -> Any:
    return x._like(verbs.copy(x._dense))


@verbs.astype.method
def _(x: Picked, dtype: Any, copy: bool = True, device: Any = None) -> Any:
    if device is not None:
        raise unknown(x, "What a mask picks is moved")
    return x._like(verbs.astype(x._dense, checked_dtype(dtype), copy=copy))


@verbs.place.method
def _(x: Picked) -> Place:
    return verbs.place(x._dense)


@verbs.parent.method
def _(x: Picked) -> Any:
    return x


@verbs.materialize.method
def _(x: Picked) -> Any:
    return x


def _refuse(x: Any, *_: Any, **__: Any) -> Any:
    raise unknown(x, "What a mask picks is used as an array of known size")


for _verb in (verbs.capture, verbs.leaf_of, verbs.dense, verbs.tree, verbs.fetch, verbs.to_numpy,
              verbs.numpy_view, verbs.similar):  # fmt: skip
    _verb.method(_refuse, signature=(Picked,))


@verbs.adapt.method
def _(to: ArrayMeta, x: Picked) -> Any:
    # (The function may have returned already, and no line of it is being executed.)
    raise TraceError(
        "What a mask picks is returned from a function that is being compiled, carried from trip to trip of a "
        f"loop, or moved: {_why(x)}"
    )


__all__ = ["Picked"]
