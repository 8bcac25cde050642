"""Statements on the host's memory made short: parts, copies and writes of few elements, by NumPy's calls.

For a few hundred elements the time of a statement is Python's. Values, dtypes and what is kept are the same.
(Small trees are evaluated by `dispatch/csrc/computing.c`.)
"""

from __future__ import annotations

import functools
import math
from threading import get_ident
from types import EllipsisType
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool, recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import apart, overlaps, valued
from mirabelle.arraytypes.dense import (
    MOVED,
    DenseArray,
    compute,
    compute_by_copyto,
    force,
    force_temporary,
    in_columns,
    keep_value,
)
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.functions import joining, manipulation
from mirabelle.arraytypes.host import HostArray, as_it_was
from mirabelle.arraytypes.wrappers import (
    PermutedDims,
    Reshaped,
    View,
    ViewTypes,
    Wrapper,
    root_of,
    shown_by_rule,
    through,
)
from mirabelle.backends.host import shortcuts
from mirabelle.backends.host.unchanged import usable
from mirabelle.dispatch import counters, native, verbs
from mirabelle.dispatch import evaluation as evaluation  # (C asks it what an evaluation moves)
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, adopted, may_write, new_leaf

_new = object.__new__


def evaluate(node: Any, times: int = 1) -> Leaf | None:
    """The value of a small node, or of one that was met before; None where the ordinary way must be taken."""
    found = shortcuts.evaluated(node, times=times) if usable() else None
    if found is None:
        found = in_c.computed_reduction(node) if type(node) is Reduced else in_c.computed(node)
    return found  # type: ignore[no-any-return]


def reductions_first(tree: Broadcasted, known: dict[Broadcasted, bool] | None = None) -> bool:
    """Compute the reductions that a tree reads, which are computed before it in any case: without them it is a
    statement that may have been met before. Are there any? (Each node of a tree is looked at once: `z + z`.)"""
    known, found = {} if known is None else known, False
    for a in tree.args or ():
        if type(a) is Reduced:
            force_temporary(HostArray, a)
            found = True
        elif type(a) is Broadcasted and a.value is None:
            if a not in known:
                known[a] = reductions_first(a, known)
                if known[a] and a.shape != tree.shape:
                    force_temporary(HostArray, a)
            found |= known[a]
    if found and (args := tree.args) is not None:  # (another thread may evaluate it)
        tree.args = tuple(map(valued, args))
    return found


@compute.method
def _(family: type[HostArray], version: Any) -> Leaf:
    try:
        value = evaluate(version)
        tree = version.operand if type(version) is Reduced else version
        if value is None and type(tree) is Broadcasted and not recording.active and reductions_first(tree):
            value = evaluate(version, 8)  # (one of its kind was met just now, and is none that comes back)
    except MemoryError as e:
        raise pool.no_room_after(e) from None
    return compute_by_copyto(family, version) if value is None else value


# Statements on small arrays: the general methods do the same, but ask more.

_BASIC = frozenset((int, slice, type(None), EllipsisType, *(np.dtype(c).type for c in "bBhHiIlLqQ")))


@verbs.copy.generated(signature=(HostArray | View | PermutedDims,))
def _(shown: Any) -> Any:
    general = verbs.copy.core.resolve((AbstractArray,)).implementation
    read = memory_reader(shown)
    if read is None or not shown.ndim:
        return general
    made = leaf_family(shown)[shown.dtype, shown.ndim]

    def copy(x: Any) -> Any:
        size = math.prod(x.shape)
        if size > native.moved_at_once(settings) or not _in_memory(x):
            return general(x)
        view = read(x)
        if view is None:
            return general(x)
        leaf = new_leaf(Leaf)
        if size > 4 * settings.small_size:  # (memory that was used before)
            leaf.view = HostArray._empty(view.shape, view.dtype)
            np.copyto(leaf.view, view)
        else:
            leaf.view = view.copy()
        leaf.shape = leaf.view.shape
        leaf.dtype = shown.dtype
        copied = _new(made)
        copied._node = leaf
        if counters.active:
            counters.launched(view.nbytes, leaf.view.nbytes)
        return copied

    return copy


@verbs.getitem.generated(signature=(HostArray, int | np.integer | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    # (What shows a part, and a copy of one element, is made in C.)
    return in_c.Getter(ViewTypes(array), general, False, array.family[array.dtype, 0])


@verbs.getitem.generated(signature=(View, int | np.integer | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((AbstractArray, object)).implementation
    whole = array.parent_type
    if index is bool or not plain(whole) or not isinstance(getattr(array, "ndim", None), int) or not array.ndim:
        return general
    # (A part of a part is one of the whole.)
    return in_c.Getter(ViewTypes(whole), general, False, whole.family[whole.dtype, 0], True)


@verbs.getitem.generated(signature=(PermutedDims | Reshaped, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((AbstractArray, object)).implementation
    if (
        index is bool
        or not isinstance(getattr(array, "ndim", None), int)
        or not shown_by_rule(array)
        or issubclass(array.parent_type, View)  # (a part of a turned part is a part, turned)
        or leaf_family(array) is not HostArray
    ):
        return general
    return in_c.Getter(ViewTypes(array), general, True, leaf_family(array)[array.dtype, 0])


@manipulation.flip.generated(signature=(HostArray | View,))  # type: ignore[attr-defined]
def _(array: Any) -> Any:
    general = manipulation.flip.core.resolve((AbstractArray,)).implementation  # type: ignore[attr-defined]
    whole = array.parent_type if issubclass(array, View) else array
    if not plain(whole) or not isinstance(getattr(array, "ndim", None), int) or not array.ndim:
        return general
    backwards = manipulation.BACKWARDS[: array.ndim]
    return in_c.Getter(ViewTypes(whole), general, False, None, whole is not array, backwards)


@functools.cache
def value_reader(t: Any, dtype: np.dtype) -> Any:
    """What makes of a value of type `t` what NumPy writes to memory of `dtype`; None for the general way.

    A small tree is computed; what is made is None, too, where the general way is to be taken.
    """
    if t is float or t is int:
        return _as_it_is if dtype.kind in "fc" or (t is int and dtype.kind in "iu") else None
    if issubclass(t, np.generic):
        return _as_it_is if np.dtype(t) == dtype else None
    if t is np.ndarray:
        return functools.partial(_numpys, dtype)
    if issubclass(t, HostArray):
        if len(t.parameters) < 2 or not np.can_cast(t.parameters[0], dtype, "safe"):
            return None
        return _computed if t.parameters[0] == dtype else _computed_before
    if not issubclass(t, Wrapper) or getattr(t, "dtype", None) != dtype or leaf_family(t) is not HostArray:
        return None
    if issubclass(t, View) and issubclass(t.parent_type, HostArray):
        return _seen
    return _seen_through if shown_by_rule(t) else None


def _as_it_is(value: Any) -> Any:
    return value


def _numpys(dtype: np.dtype, value: Any) -> Any:
    return value if value.dtype == dtype else None


def _computed(value: Any) -> Any:
    node = value._node
    if type(node) is not Leaf:
        leaf = node.value
        if leaf is None:
            # (A reduction is evaluated before anything is written, in any case.)
            leaf = evaluate(node) or force(HostArray, node) if type(node) is Reduced else in_c.computed(node)
            if leaf is None:
                return None
        if value._node is node:  # (else another thread has written to it meanwhile)
            value._node = leaf
        node = leaf
    return node.view


def _computed_before(value: Any) -> Any:
    node = value._node
    if type(node) is not Leaf:
        node = node.value
    return None if node is None else node.view


def _seen(value: Any) -> Any:
    node = value._parent._node
    if type(node) is not Leaf:
        node = node.value
    return None if node is None else node.view[value._how]


@functools.cache
def memory_reader(t: Any) -> Any:
    """As `value_reader`, for an array of whatever dtype it has."""
    dtype = getattr(t, "dtype", None)
    known = isinstance(dtype, np.dtype) and issubclass(t, AbstractArray)
    return value_reader(t, dtype) if known else None  # pyright: ignore


def _in_memory(x: Any) -> bool:
    """Is it memory already, or a part of some? (What waits is better computed where it goes.)"""
    while isinstance(x, Wrapper):
        x = x._parent
    return type(getattr(x, "_node", None)) is Leaf


def _large_result(views: list[np.ndarray], axis: int, stacked: bool) -> np.ndarray:
    """Memory for what they come to when they are joined, of that which was used before."""
    shape = list(views[0].shape)
    if stacked:
        shape.insert(axis % (len(shape) + 1), len(views))
    else:
        shape[axis] = sum([v.shape[axis] for v in views])
    order = "F" if not stacked and all(map(in_columns, views)) else "C"
    return HostArray._empty(tuple(shape), np.result_type(*{v.dtype for v in views}), order)


@joining.join_small.method
def _(family: type[HostArray], arrays: Any, axis: Any, stacked: bool) -> Any:
    """Small ones, values that a cache holds, and such in memory as one thread moves."""
    if not usable():
        return None
    views = []
    size = 0
    few, brief = settings.small_size, settings.brief_size
    for x in arrays:
        t: Any = type(x)
        read = memory_reader(t)
        if read is None:
            return None
        size += math.prod(x.shape)
        if size > few and (size > MOVED * settings.thread_size or (size > brief and not _in_memory(x))):
            return None
        view = read(x)
        if view is None:
            return None
        views.append(view)
    try:
        out = _large_result(views, axis, stacked) if size > few else None
        joined: Any = np.concatenate(_with_axis(views, axis) if stacked else views, axis, out)
    except (ValueError, TypeError, IndexError):
        return None  # the ordinary way says it in its words
    if counters.active:
        counters.launched(sum([v.nbytes for v in views]), 0)  # (what is written is counted as any result)
    return HostArray._of_result(joined)


def _with_axis(views: list[np.ndarray], axis: int) -> list[np.ndarray]:
    """Views with a new axis. (What np.stack does besides takes as long as joining thousands of elements.)"""
    ndim = views[0].ndim + 1
    if not -ndim <= axis < ndim:
        raise IndexError(axis)
    how = (*(slice(None),) * (axis % ndim), None, ...)
    return [v[how] for v in views]


def _seen_through(value: Any) -> Any:
    node = root_of(value)._node
    if type(node) is not Leaf:
        node = node.value
    return None if node is None else through(value, node.view)


# How dispatch/csrc/assigning.c reads values: a tree, a number, what wrappers show of memory.
_KINDS = {_computed: 0, _as_it_is: 1, _seen: 2, _seen_through: 2}
_NUMPYS = 3
# What `assign` writes to, in dispatch/csrc/assigning.c.
_PART, _WHOLE = 1, 2


def small_value(value: Any, dtype: np.dtype) -> Any:
    """A value to be written, as NumPy takes it: a small tree is computed; None for the general way."""
    t: Any = type(value)
    read = value_reader(t, dtype)
    return None if read is None else read(value)


def _unaffected(parts: list[Leaf], target: np.ndarray) -> bool:
    """Do pending trees that read these parts of some memory go on to find what they read?"""
    return not any(p.table or not apart(p.view, target) for p in parts)


def write_small(x: Any, how: Any, read: Any, value: Any, shown: Any = None) -> bool:
    """Write a small value into a part of evaluated memory, if nobody else reads it, or if it is shared with
    others in any case; else do nothing.

    `read` is the `value_reader` for the type of the value. The part is one of what the wrapper `shown` shows.
    """
    node = x._node
    ours = adopted(node)
    if (not ours and node.root is not None) or hasattr(x, "_copy_of") or not usable():
        return False
    target = (node.view if shown is None else through(shown, node.view))[how]
    if target.size > 4 * settings.small_size and (
        target.size > native.moved_at_once(settings)
        or (isinstance(value, AbstractArray) and not _in_memory(value))
    ):
        return False
    new = read(value)
    if new is None:
        return False
    me = get_ident()
    if node.writer:  # (the ordinary way waits; no call comes between asking and saying)
        return False
    node.writer = me
    try:
        # (The value let go of what it was computed from: who still holds the memory reads it.)
        if x._node is not node or (
            ours and not (may_write(node, 0, target, new) and _unaffected(node.held_parts(), target))
        ):
            return False
        target[...] = as_it_was(new, target) if type(new) is np.ndarray else new
    except (ValueError, OverflowError):  # what does not fit: the ordinary way says so
        return False
    finally:
        node.writer = 0
    node.writes += 1
    node.reducers = None
    if counters.active:
        counters.launched(getattr(new, "nbytes", 0), target.nbytes)
    if not target.ndim:
        scalar_access("Writing", x.place)
    return True


def plain(t: Any) -> bool:
    """Is it a type of plain host arrays, with its parameters?"""
    return issubclass(t, HostArray) and t.family is HostArray and len(t.parameters) == 2


def _basic(index: Any) -> tuple[Any, ...] | None:
    """An index of integers, slices and new axes, as views keep it; None for another."""
    if type(index) is not tuple:
        return (index, Ellipsis) if index is not Ellipsis else (Ellipsis,)
    whole = False
    for i in index:
        kind = type(i)
        if kind not in _BASIC:
            return None
        if kind is EllipsisType:
            whole = True
    return index if whole else (*index, Ellipsis)


@verbs.setitem.generated(
    signature=(View | PermutedDims | Reshaped, int | np.integer | slice | tuple | EllipsisType, object)
)
def _(array: Any, index: type, value: type) -> Any:
    general = verbs.setitem.core.resolve((AbstractArray, object, object)).implementation
    read = value_reader(value, array.dtype) if memory_reader(array) is not None else None
    if read is None or index is bool or not array.ndim:
        return general

    def setitem(x: Any, index: Any, value: Any) -> None:
        root = root_of(x)
        node = root._node
        if type(node) is not Leaf:
            if node.value is None:
                return general(x, index, value)
            keep_value(root, node)
        how = _basic(index)
        if how is None or not write_small(root, how, read, value, x):
            general(x, index, value)
        return None

    return setitem


@verbs.setitem.generated(signature=(HostArray, int | np.integer | slice | tuple | EllipsisType, object))
def _(array: Any, index: type, value: type) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    read = value_reader(value, array.dtype)
    if read is None or (index is EllipsisType and issubclass(value, AbstractArray)):
        return general
    of_itself = issubclass(value, View) and value.parent_type is array
    may_come_back = (
        plain(array) and plain(value) and value.dtype == array.dtype  # type: ignore[attr-defined]
    )

    def setitem(x: Any, index: Any, value: Any) -> None:
        node = x._node
        if type(node) is not Leaf:
            if node.value is None:
                # (A small one is computed, and written where it then is.)
                if math.prod(node.shape) > settings.small_size or recording.active or _basic(index) is None:
                    return general(x, index, value)
                force(HostArray, node)
                if node.value is None:
                    return general(x, index, value)
            node = keep_value(x, node)
        how = _basic(index)
        if how is None:
            return general(x, index, value)
        if of_itself and value._parent is x and value._how == how:
            x._node.view[how]  # (what is equal need not be an index)
            return None  # x[i] += v ends in x[i] = x[i]
        if may_come_back and shortcuts.write(x, how, value, times):
            return None
        if not write_small(x, how, read, value):
            general(x, index, value)
        return None

    kind = _KINDS.get(read) if value is not np.ndarray else _NUMPYS
    times = 8 if kind == 0 else 1  # (as dispatch/csrc/assigning.c passes them on)
    if kind is None or (kind == 0 and not may_come_back) or (kind == 2 and not plain(array)):
        return setitem
    return in_c.Setter(shortcuts.known, setitem, kind)


# From so many bytes on, finding out that a result may be written where it belongs takes less time than to have
# it in other memory, which the caches must hold too.
_IN_PLACE = 1 << 14


def in_place(leaf: Leaf, tree: Broadcasted) -> bool:
    """Write a tree that was met before to the memory of a leaf, which its last operation reads, if nobody else
    does; else do nothing."""
    if recording.active:
        return False
    reductions_first(tree)  # (those of what is written read it)
    done = in_c.written_over(shortcuts.known, leaf, tree)
    if done is None:
        shortcuts.meant_for(tree, leaf.view)
    return done is True


def into_shared(leaf: Leaf, new: Any) -> bool:
    """Write a value, or a tree that was met before, where others can write, too; else do nothing."""
    if (
        leaf.root is not None
        or new.shape != leaf.shape
        or new.dtype != leaf.dtype
        or recording.active
        or not (usable() and leaf.view.flags.writeable)
    ):
        return False
    if type(new) is Broadcasted and new.value is not None:
        new = new.value
    if type(new) is Leaf:
        if new.view.size > 4 * settings.small_size:
            return False
        HostArray._copy_into(leaf.view, new.view)
        if counters.active:
            counters.launched(new.view.nbytes, leaf.view.nbytes)
    elif type(new) is not Broadcasted or overlaps(new, leaf) or not shortcuts.stored(new, leaf.view):
        return False
    leaf.writes += 1
    leaf.reducers = None
    return True


@verbs.assign.generated(signature=(HostArray, HostArray))
def _(array: Any, values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if array is not values:
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        if hasattr(dest, "_copy_of"):
            return general(dest, value, casting=casting)
        node, new = dest._node, value._node
        if type(node) is Leaf and not adopted(node):
            return dest if into_shared(node, new) else general(dest, value, casting=casting)
        if type(node) is Leaf and new.shape == node.shape and type(new) is not Reduced and usable():
            if type(new) is not Leaf:
                kept = new.value
                size = math.prod(node.shape) * node.dtype.itemsize
                if kept is None and size >= _IN_PLACE and in_place(node, new):
                    return dest
                kept = kept or evaluate(new)
                new = kept
                if new is not None:
                    value._node = new
            if (
                new is not None
                and new.root is None
                and not new.foreign
                and new.view.strides == node.view.strides
            ):
                # Both handles on one version, and the next write parts them; who reads the old one keeps it.
                dest._node = new
                return dest
        del node, new  # the general way counts who refers to the old contents
        return general(dest, value, casting=casting)

    return in_c.Setter(shortcuts.known, assign, 0, _WHOLE)


@verbs.assign.generated(signature=(View, HostArray))
def _(array: Any, values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if not issubclass(array.parent_type, HostArray) or getattr(values, "dtype", None) != array.dtype:
        return general
    read = value_reader(values, array.dtype)
    if read is None:
        return general
    may_come_back = plain(array.parent_type) and plain(values)
    times = 8 if may_come_back else 1  # (as dispatch/csrc/assigning.c passes them on)

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        parent = dest._parent
        if type(parent._node) is Leaf:
            if may_come_back and shortcuts.write(parent, dest._how, value, times):
                return dest
            if write_small(parent, dest._how, read, value):
                return dest
        return general(dest, value, casting=casting)

    if read is not _computed or not may_come_back:
        return assign
    return in_c.Setter(shortcuts.known, assign, _KINDS[read], _PART)
