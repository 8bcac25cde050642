"""Statements on distributed arrays made short: what is asked of the same types again and again.

The general methods do the same, but ask more.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.dense import DenseArray, force, is_small
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.layouts import Partition
from mirabelle.arraytypes.wrappers import View
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Broadcasted, Leaf

_new = object.__new__
_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


@verbs.getitem.generated(signature=(DArray, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    view_type: Any = View
    views: Any = {n: view_type[array, n] for n in range(1, array.ndim + 1)}

    def getitem(x: Any, index: Any) -> Any:
        node = x._node
        if type(node) is not Leaf:
            return general(x, index)
        if type(index) is tuple:
            for i in index:
                if type(i) not in _BASIC:
                    return general(x, index)
            how = index if Ellipsis in index else (*index, Ellipsis)
        else:
            how = (index, Ellipsis)
        shape = node.view[how].shape  # (which the view of the array remembers)
        cls = views.get(len(shape))
        if cls is None:
            return general(x, index)
        view = _new(cls)
        view._parent = x
        view._how = how
        view._shape = shape
        return view

    return getitem


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
            or counters.active
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
