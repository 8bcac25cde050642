"""Statements on distributed arrays made short: what is asked of the same types again and again.

The general methods do the same, but ask more.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.assign import nobody_else
from mirabelle.arraytypes.dense import DenseArray, force, is_small, settle
from mirabelle.arraytypes.distributed import execution, histories, overlapping
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.layouts import Partition
from mirabelle.arraytypes.wrappers import ViewTypes
from mirabelle.dispatch import native, verbs
from mirabelle.dispatch.tree import Broadcasted, Leaf

_new = object.__new__
_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


@verbs.getitem.generated(signature=(DArray, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    views = ViewTypes(array)

    def getitem(x: Any, index: Any) -> Any:
        node = x._node
        if type(node) is not Leaf:
            return general(x, index)
        how = _spelled(index)
        if how is None:
            return general(x, index)
        shape = node.view[how].shape  # (which the view of the array remembers)
        if not shape:
            return general(x, index)
        view = _new(views[len(shape)])
        view._parent = x
        view._how = how
        view._shape = shape
        return view

    # (What shows a part is made in C; single elements and errors are left to this.)
    return native.in_c.Getter(views, getitem)


def _spelled(index: Any) -> Any:
    """An index as views keep it; None where it is not one of numbers and slices."""
    if type(index) is tuple:
        for i in index:
            if type(i) not in _BASIC:
                return None
        return index if Ellipsis in index else (*index, Ellipsis)
    return (index, Ellipsis) if type(index) in _BASIC else None


@verbs.setitem.generated(signature=(DArray, int | slice | tuple, DArray))
def _(array: Any, index: type, value: Any) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    if (
        len(array.parameters) < 2
        or len(value.parameters) < 2
        or index is bool
        or not array.ndim
        or array.family is not value.family
        or array.dtype != value.dtype
        or overlapping.known_halo.core.table[array.family.inner] is overlapping.unknown_halo
    ):
        return general

    def setitem(x: Any, index: Any, value: Any) -> None:
        node, tree = x._node, value._node
        if (
            type(node) is not Leaf
            or type(tree) is not Broadcasted
            or tree.value is not None
            or node.foreign
            or hasattr(x, "_copy_of")
            or recording.watchers
            or recording.active
            or not nobody_else(node)
            or not _written_again(node, index, tree)
        ):
            general(x, index, value)

    return setitem


def _written_again(node: Leaf, index: Any, tree: Broadcasted) -> bool:
    """Write a tree that does not read this memory to a part of it, if that was done before; else do nothing."""
    how = _spelled(index)
    if how is None:
        return False
    try:
        part = node.view[how]
    except (IndexError, ValueError):  # (the general way says it in its words)
        return False
    buffer = part.buffer
    shown = part.map
    if part.shape != tree.shape or shown is None or buffer.partition.partial:
        return False
    plan = shown.writing.get(buffer.comm.rank)
    if plan is None or plan.how is None or plan.leading:
        return False
    frame = execution.Frame(type(node.view).family, buffer.comm, plan.target)
    came = histories.history(tree)
    if overlapping.again(frame, tree, plan.how.show(buffer.local)) is None:
        return False
    node.writes += 1
    node.reducers = None
    buffer.written()
    histories.written_to(part, came)
    settle(tree, Leaf(part, root=node))
    return True


def _is_small(part: Partition) -> bool:
    """Is a process's part small? (All processes must say the same.)"""
    return is_small((part.elements // part.size,), 8)


# A handle takes the new contents whole: nothing is copied, and whoever reads the old ones keeps them


@verbs.assign.generated(signature=(DArray, DArray))
def _(array: Any, values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if array is not values:
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        node, new = dest._node, value._node
        if (
            type(node) is not Leaf
            or type(new) is not Broadcasted
            or new.value is not None
            or new.shape != node.shape
            or new.layout is not None
            or node.foreign
            or hasattr(dest, "_copy_of")
            or not _is_small(node.view.buffer.partition)
        ):
            del node, new
            return general(dest, value, casting=casting)
        leaf = force(type(dest).family, new)
        if leaf.view.buffer.partition is not node.view.buffer.partition:
            del node, new
            return general(dest, value, casting=casting)
        dest._node = value._node = leaf
        return dest

    return assign
