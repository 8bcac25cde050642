"""What has no rule is made dense, and says so once.

Every operation on arrays reads its operands through a few verbs (`capture`, `leaf_of`). For a
structured array these take its dense form, so whatever has a method for `AbstractArray` works, and
this is the one place where that can be noticed.

>>> import warnings
>>> import mirabelle as mb
>>> D = mb.Diagonal([1.0, 2.0])
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     print(mb.cos(D)[0, 1])
1.0
>>> str(caught[0].message).split(";")[0]
'mb.cos(Diagonal[HostArray[float64, 1]]): no rule, so it was made dense, 32 B'
"""

from __future__ import annotations

import math
import sys
import warnings
from types import FrameType
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import check_no_copy
from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.dense import _storing, computed, wrap
from mirabelle.arraytypes.parametric import ArrayMeta, checked_dtype, generic_class
from mirabelle.arraytypes.structured import base
from mirabelle.arraytypes.structured.base import Implicit, Structured, duals_in, read_only_copy, zeros_for
from mirabelle.dispatch import loading, misuse, verbs
from mirabelle.dispatch.errors import DenseFallbackError, DenseFallbackWarning
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# (operation, type) that were told of already.
_told: set[tuple[str, type]] = set()


def forget() -> None:
    """Tell of every fallback again, as in a new process."""
    _told.clear()


def made_dense(x: Structured) -> Any:
    """The dense form of `x`, for an operation that has no rule for it."""
    if not x.fuses and settings.dense_fallback != "silent":
        tell(x)
    return x._dense()


base.made_dense.method(made_dense, signature=(Structured,))


def tell(x: Structured) -> None:
    """Say which operation makes `x` dense: a warning the first time, or an error."""
    name, level = operation(x)
    key = (name, type(x))
    if settings.dense_fallback == "warn" and key in _told:
        return
    kind = generic_class(type(x)).__name__
    size = x.nbytes * (1 + max((d.directions for d in duals_in(x)), default=0))
    message = (
        f"{name}({type(x).__name__}): no rule, so it was made dense, {shown_bytes(size)}; give it one "
        f"with `@{name}.method` for ({kind}), or say that dense is meant: mb.dense(x)."
    )
    if settings.dense_fallback == "error":
        raise DenseFallbackError(
            message.replace("so it was made", "and it may not be made")
            + ' (mb.settings.dense_fallback is "error".)'
        )
    _told.add(key)
    said = DenseFallbackWarning(message)
    said.nbytes = size
    warnings.warn(said, stacklevel=level)


def operation(x: Any) -> tuple[str, int]:
    """The function of mirabelle that was called with `x`, and how many calls above ours its caller is.

    The generic functions on the stack have arguments in their frames: of those that got `x`,
    the outermost before the stack leaves mirabelle is what was asked for. (Of an `x` that is a part of
    another array it is the outermost of all.)
    """
    name, around, level = "", "materialize", 1
    frame: FrameType | None = sys._getframe(1)
    outermost = frame
    while frame is not None and _ours(frame):
        outermost = frame
        if frame.f_code.co_filename.startswith("<mirabelle generic "):
            around = frame.f_code.co_name
            if any(_stands_for(v, x) for v in frame.f_locals.values()):
                name = around
        frame = frame.f_back
        level += 1
    if name in _STEPS:
        owner = outermost.f_locals.get("self") if outermost else None
        name = f"linalg.{type(owner).__name__}" if hasattr(owner, "_factor") else around
    return public_name(name if name not in _STEPS else "materialize"), level


# What every operation does on its way, and nobody asks for.
_STEPS = ("", "leaf_of", "capture")


def called_from_outside() -> str:
    """The name of the function of mirabelle by which the stack entered it."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and _ours(frame):
        if frame.f_globals.get("__name__") != misuse.__name__:  # (which looks at errors of functions)
            name = frame.f_code.co_name.partition("[")[0]  # (of a method the function)
        frame = frame.f_back
    return name


def _stands_for(v: Any, x: Any) -> bool:
    """Is it `x`, or what `x` was made of by a cast on the way?"""
    return v is x or (
        isinstance(v, Structured) and generic_class(type(v)) is generic_class(type(x)) and v.shape == x.shape
    )


def _ours(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith("<mirabelle "):
        return True
    module = str(frame.f_globals.get("__name__", ""))
    return module == "mirabelle" or module.startswith("mirabelle.")


def public_name(name: str) -> str:
    """A generic function as a user writes it: mb.sin, mb.linalg.solve, mb.ext.tree; mb.concat of `concat_`."""
    mirabelle = loading.public()
    name = name.removesuffix("_")
    if name in mirabelle.__all__:
        return f"mb.{name}"
    for space in ("linalg", "ext"):
        if name in getattr(mirabelle, space).__all__:
            return f"mb.{space}.{name}"
    return f"mb.{name}"


# Where the dense form is taken unasked


@verbs.capture.method
def _(x: Structured) -> Any:
    return verbs.capture(made_dense(x))


def in_memory(x: Structured) -> Any:
    """The dense form of `x`, for a library that needs all entries in memory."""
    if x.compressed and (x.ndim > 1 or x.spaced) and settings.dense_fallback != "silent":
        tell(x)
    return made_dense(x)


base.held_in_memory.method(in_memory, signature=(Structured,))


@verbs.leaf_of.method
def _(x: Structured) -> Leaf:
    return verbs.leaf_of(in_memory(x))


@verbs.lower.method
def _(x: Structured, leaf: Any) -> Any:
    return leaf.view


@verbs.reshape.method
def _(x: Structured, shape: Any) -> Any:
    return x if shape == x.shape else read_only_copy(x, verbs.reshape(made_dense(x), shape))


@verbs.broadcast_to.method
def _(x: Structured, shape: Any) -> Any:
    return x if shape == x.shape else verbs.broadcast_to(made_dense(x), shape)


@verbs.permute_dims.method
def _(x: Structured, axes: Any) -> Any:
    order = tuple(a + x.ndim if a < 0 else a for a in axes)
    if order == tuple(range(x.ndim)):
        return x
    if order == (1, 0):
        made = x._transposed()
        if made is not NotImplemented:
            return read_only_copy(x, made)
    return read_only_copy(x, verbs.permute_dims(made_dense(x), axes))


# Where it is asked for


@verbs.dense.method
def _(x: AbstractArray) -> Any:
    return x


@verbs.dense.method
def _(x: Structured) -> Any:
    return computed(x._dense())


@verbs.fetch.method
def _(x: Structured) -> np.ndarray:
    return verbs.fetch(x._dense())


@verbs.numpy_view.method
def _(x: Structured, dtype: Any = None, copy: Any = None) -> np.ndarray:
    return verbs.numpy_view(x._dense(), dtype, copy)


@verbs.tree.method
def _(x: Structured) -> Any:
    return verbs.tree(x._dense())


@verbs.assign.method
def _(dest: AbstractArray, value: Structured, casting: Any = "unsafe") -> Any:
    # (Memory that somebody writes it to is dense because they want it so.)
    if not value.fuses and settings.dense_fallback != "silent" and called_from_outside() in _BY_PARTS:
        tell(value)
    return verbs.assign(dest, value._dense(), casting=casting)


# Functions that make their results of parts of arrays. An index has a rule, which reads the entries it names;
# one of these that reads, or writes, nearly all of a structured array makes it dense, and has none.
_BY_PARTS = frozenset(
    (
        *("append", "atleast_3d", "block", "column_stack", "concat", "concatenate", "delete", "diff", "dstack"),
        *("expand_dims", "flip", "fliplr", "flipud", "hstack", "insert", "pad", "rot90", "row_stack", "stack"),
        *("trapezoid", "vstack"),
    )
)


# What needs no dense form


@verbs.place.method
def _(x: Structured) -> Place:
    return verbs.place(x._parts[0]) if x._parts else x.family.home


@verbs.parent.method
def _(x: Structured) -> Any:
    return x._parts[0] if len(x._parts) == 1 else x


@verbs.materialize.method
def _(x: Structured) -> Any:
    for p in x._parts:
        verbs.materialize(p)
    return x


@verbs.similar.method
def _(x: Structured, dtype: Any = None, shape: Any = None) -> Any:
    family = x.family
    shape = x.shape if shape is None else shape
    if x.carries_derivatives:
        return verbs.similar(zeros_for(x._parts, (0,), x.dtype), dtype=dtype, shape=shape)
    empty = wrap(family, Leaf(family._empty((), x.dtype if dtype is None else checked_dtype(dtype))))
    return verbs.similar(empty, shape=shape)


@verbs.copy.method
def _(x: Structured) -> Any:
    return x._with_parts(tuple(verbs.copy(p) for p in x._parts))


@verbs.astype.method
def _(x: Structured, dtype: Any, copy: bool = True) -> Any:
    d = checked_dtype(dtype)
    if d == x.dtype:
        return verbs.copy(x) if copy else x
    made = x._cast(d)
    return verbs.astype(made_dense(x), d) if made is NotImplemented else made


@verbs.adapt.method
def _(to: ArrayMeta, x: Structured) -> Any:
    family = _storing(to)
    if isinstance(x, Implicit) and (x.family is not family or not x._parts):
        moved = x if x.family is family else x._typed(family, x.dtype)
    else:
        moved = x._with_parts(tuple(verbs.adapt(family, p) for p in x._parts))
    if to.parameters and to.parameters[0] != moved.dtype:
        moved = verbs.astype(moved, to.parameters[0])
    return moved


# Reading and writing by index


@verbs.getitem.method
def _(x: Structured, index: Any) -> Any:
    index = index if type(index) is tuple else (index,)
    made = x._index(index)
    if made is NotImplemented:
        if _shows_all(x, index):
            return x
        made = read(x, index) if has_entries(x) else verbs.getitem(made_dense(x), index)
    return read_only_copy(x, made) if _numpy_shows(index, made) else made


def _numpy_shows(index: tuple[Any, ...], made: Any) -> bool:
    """Is what an index gives of an array in memory a view of it?"""
    if not all(i is None or i is Ellipsis or type(i) is slice or _is_integer(i) for i in index):
        return False
    return made.ndim > 0 or any(i is Ellipsis for i in index)


def _is_integer(i: Any) -> bool:
    if isinstance(i, AbstractArray):
        return not i.ndim and i._is_number() and i.dtype.kind in "iu"
    return isinstance(i, (int, np.integer)) and not isinstance(i, bool)


def _shows_all(x: Structured, index: tuple[Any, ...]) -> bool:
    """Does an index name every entry where it is?"""
    dots = sum(i is Ellipsis for i in index)
    rest = [i for i in index if i is not Ellipsis]
    if not all(type(i) is slice and i.start is None and i.stop is None and i.step in (None, 1) for i in rest):
        return False
    return dots < 2 and len(index) - dots <= x.ndim


def has_entries(x: Structured) -> bool:
    """Does its type give the entries one by one?"""
    return type(x)._entries is not Structured._entries


def read(x: Structured, index: tuple[Any, ...]) -> Any:
    """x[index] from its entries: the index is applied to the coordinates, which take no memory."""
    from mirabelle.arraytypes.structured.base import open_grid

    if all(isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)) for i in index) and len(
        index
    ) == len(x.shape):
        element = verbs.copy(verbs.reshape(x._entries(*normal_indices(x, index)), ()))
        if not element.carries_derivatives:
            element._node.element = True
        return element
    shown = [verbs.getitem(verbs.broadcast_to(c, x.shape), index) for c in open_grid(x)]
    shape = shown[0].shape
    most = 2 * math.prod(shape) > math.prod(x.shape)
    if most and not x.fuses and settings.dense_fallback != "silent" and called_from_outside() in _BY_PARTS:
        tell(x)
    return verbs.broadcast_to(x._entries(*shown), shape)


def normal_indices(x: Any, index: tuple[Any, ...]) -> tuple[int, ...]:
    """Integers from 0 on, or NumPy's IndexError."""
    out = []
    for axis, (i, n) in enumerate(zip(index, x.shape, strict=True)):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
        out.append(int(i) % n)
    return tuple(out)


def block_of(x: Any, index: tuple[Any, ...]) -> slice | None:
    """The slice of both rows and columns that an index is, with a step that goes ahead; None for any other."""
    if len(index) != 2 or not all(isinstance(i, slice) for i in index) or index[0] != index[1]:
        return None
    # (Turned around, the zeros would be on the other side.)
    return index[0] if index[0].indices(x.shape[0])[2] > 0 else None


@verbs.setitem.method
def _(x: Structured, index: Any, value: Any) -> None:
    if index is Ellipsis or (type(index) is slice and index == slice(None)):
        verbs.assign(x, value)
        return
    check_no_copy(x)
    x._write(index if type(index) is tuple else (index,), value)


def assign_structured(dest: Any, value: Any, casting: Any = "unsafe") -> Any:
    """Overwrite the parts: with those of an array of equal layout, or with what else `_write` takes."""
    if value is dest:
        return dest
    check_no_copy(dest)
    if hasattr(value, "dtype") and not np.can_cast(value.dtype, dest.dtype, casting):
        raise TypeError(
            f"Cannot cast the result of dtype {value.dtype.name} into an array of dtype "
            f"{dest.dtype.name} in place. Write `x = x + y` for a new array."
        )
    same = isinstance(value, Structured) and dest.layout is not None and dest.layout == value.layout
    if same and len(dest._parts) == len(value._parts):
        for mine, theirs in zip(dest._parts, value._parts, strict=True):
            verbs.assign(mine, theirs)
        return dest
    dest._write(None, value)
    return dest


verbs.assign.method(assign_structured, signature=(Structured, object))
verbs.assign.method(assign_structured, signature=(Structured, Structured))


@verbs.copyto.method
def _(dest: Structured, src: Broadcasted | Reduced) -> Any:
    return verbs.assign(dest, computed(src))
