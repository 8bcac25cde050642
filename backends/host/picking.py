"""Indices with arrays in them on the host, where NumPy's own indexing is quicker than a kernel.

That is where few elements are read or written, and where a mask that is in memory already says
which elements become one number.
"""

from __future__ import annotations

import functools
import itertools
import math
from threading import get_ident
from typing import Any

import numpy as np

from mirabelle.arraytypes import indexing, pool
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import apart, nobody_else
from mirabelle.arraytypes.dense import DenseArray, _handle_class, evaluated, keep_value, wrap
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.indexing import Basic
from mirabelle.arraytypes.wrappers import View, ViewTypes
from mirabelle.backends.host import threads
from mirabelle.backends.host.direct import plain, small_value, value_reader
from mirabelle.backends.host.unchanged import usable
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf, new_leaf

_new = object.__new__


def few(n: int) -> bool:
    """Are so many elements read, or written, sooner than a kernel is set up for it?"""
    return n <= 256 * settings.small_size


def as_numpy_index(index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The index as NumPy takes it; None where it is large, or not sure to mean the same."""
    made: list[Any] = []
    arrays = 0
    for i in index:
        if isinstance(i, DenseArray):
            if (
                leaf_family(type(i)) is not HostArray
                or not i.ndim
                or i.dtype.kind not in "iub"
                or not few(i.size)
            ):
                return None
            made.append(verbs.leaf_of(i).view)
            arrays += 1
        elif isinstance(i, list):
            data = np.asarray(i)
            if not data.ndim or data.dtype.kind not in "iub" or not few(data.size):
                return None
            made.append(data)
            arrays += 1
        elif isinstance(i, Basic) and not isinstance(i, (bool, np.bool_)):
            made.append(i)
        else:
            return None
    return tuple(made) if arrays else None


@indexing.take_small.method
def _(family: type[HostArray], x: Any, index: tuple[Any, ...]) -> Any:
    how = as_numpy_index(index)
    if how is None or not _few_picked(x.shape, how):
        return None
    try:
        picked = verbs.leaf_of(x).view[how]
    except IndexError:
        return None  # the ordinary way says it in its words
    if counters.active:
        counters.launched(picked.nbytes + _bytes_of(how), picked.nbytes)
    return wrap(HostArray, Leaf(picked))


def _bytes_of(index: tuple[Any, ...]) -> int:
    """How many bytes the arrays in an index have."""
    return sum([i.nbytes for i in index if isinstance(i, np.ndarray)])


def _count_put(index: tuple[Any, ...], new: Any, view: np.ndarray) -> None:
    counters.launched(_bytes_of(index) + getattr(new, "nbytes", 0), view[index].nbytes)


def _few_picked(shape: tuple[int, ...], how: tuple[Any, ...]) -> bool:
    """Will x[how] have few elements? Slices count as all of their axis, masks as all of their places.

    Where arrays span a grid, x[i[:, None], j[None, :]], a kernel reads them as they are, and sooner.
    """
    if len(how) == len(shape) == 1:
        return few(how[0].size)
    given = [
        i.ndim if isinstance(i, np.ndarray) and i.dtype.kind == "b" else 1
        for i in how
        if i is not None and i is not Ellipsis
    ]
    left = len(shape) - sum(given)
    kept, axis, spans, largest = 1, 0, [], 0
    for i in how:
        if i is None:
            continue
        if i is Ellipsis:
            kept *= math.prod(shape[axis : axis + left])
            axis += left
        elif isinstance(i, np.ndarray):
            mask = i.dtype.kind == "b"
            spans.append((i.size,) if mask else i.shape)
            largest = max(largest, i.size)
            axis += i.ndim if mask else 1
        else:
            kept *= shape[axis] if isinstance(i, slice) and axis < len(shape) else 1
            axis += 1
    kept *= math.prod(shape[axis:])
    if len(spans) == 1:
        return few(kept * largest)
    try:
        together = math.prod(np.broadcast_shapes(*spans))
    except ValueError:  # of a mask's places nobody knows how many there are
        together = largest
    return few(kept * together) and (together <= 2 * largest or kept * together <= settings.small_size)


def _memory(x: Any) -> Any:
    """The memory of an array that is evaluated, or is few elements to evaluate; else None."""
    node = x._node
    if type(node) is not Leaf:
        if node.value is None:
            if not few(math.prod(node.shape)):
                return None
            in_c.compute_few(x)
        node = evaluated(x)
    return node.view


@verbs.getitem.generated(signature=(HostArray, HostArray))
def _(array: Any, index: Any) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if plain(array) and plain(index) and array.ndim and not index.ndim and index.dtype.kind in "iu":
        return in_c.Getter(ViewTypes(array), general, False, array.family[array.dtype, 0])
    if not _of_one_array(array, index):
        return general
    mask = index.dtype.kind == "b"
    dtype = array.dtype
    cls = array.family[dtype, array.ndim - index.ndim + 1 if mask else array.ndim - 1 + index.ndim]

    def getitem(x: Any, index: Any) -> Any:
        view: Any = _memory(x)
        places: Any = None if view is None else _memory(index)
        if view is None or places is None:
            return general(x, index)
        # (Of a mask's places all may hold.)
        if not few(view.size if mask else places.size * (view.size // (view.shape[0] or 1))):
            return general(x, index)
        try:
            picked = _picked(view, index, places) if mask else view[places]
        except IndexError:
            return general(x, index)  # which says it in its words
        made = _new(cls)
        made._node = leaf = new_leaf(Leaf)
        leaf.view = picked
        leaf.shape = picked.shape
        leaf.dtype = dtype
        if counters.active:
            counters.launched(picked.nbytes + places.nbytes, picked.nbytes)
        return made

    return getitem if mask else in_c.OnMemory(None, functools.partial(_handle_class, array.family), getitem)


@verbs.getitem.generated(signature=(View, HostArray | View))
def _(array: Any, index: Any) -> Any:
    return _of_parts(array, index)


@verbs.getitem.generated(signature=(HostArray, View))
def _(array: Any, index: Any) -> Any:
    return _of_parts(array, index)


def _of_parts(array: Any, index: Any) -> Any:
    """x[index] where one is a part of memory, and the index is of integers."""
    general = verbs.getitem.core.resolve((AbstractArray, object)).implementation
    roots = [t.parent_type if issubclass(t, View) else t for t in (array, index)]
    if not all(map(plain, roots)) or index.dtype.kind not in "iu" or not (array.ndim and index.ndim):
        return general
    return in_c.OnMemory(None, functools.partial(_handle_class, roots[0].family), general)


@verbs.setitem.generated(signature=(HostArray, HostArray, object))
def _(array: Any, index: Any, value: Any) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    read = value_reader(value, array.dtype) if _of_one_array(array, index) else None
    if read is None:
        return general

    def setitem(x: Any, index: Any, value: Any) -> None:
        if hasattr(x, "_copy_of") or not _put(x, index, read, value):
            general(x, index, value)

    return setitem


def _picked(view: np.ndarray, index: Any, mask: np.ndarray) -> np.ndarray:
    """The elements of an array for which a mask holds."""
    at = _places(view, index)
    if at is not None:
        return view.reshape(-1).take(at)
    picked = None
    if view.nbytes >= _LARGE and settings.num_threads > 1:
        picked = _picked_together(view, mask)
    elif view.size > _BRIEF:
        picked = in_c.mask_picked(view, mask)
    return view[mask] if picked is None else picked  # type: ignore[no-any-return]


# Of so few elements NumPy picks as soon; threads together pick sooner of so many bytes.
_BRIEF, _LARGE = 512, 1 << 23


def _picked_together(view: np.ndarray, mask: np.ndarray) -> np.ndarray | None:
    """The same on several threads, for arrays without gaps: how many there are before each part is counted
    first.
    """
    n = mask.size
    if view.shape[: mask.ndim] != mask.shape or not (view.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    pieces = max(1, min(settings.num_threads * 4, n >> 12))
    edges = [n * i // pieces for i in range(pieces + 1)]
    ends = [0, *itertools.accumulate([in_c.mask_count(mask, *e) for e in itertools.pairwise(edges)])]
    out = pool.empty((ends[-1], *view.shape[mask.ndim :]), view.dtype)
    threads.run_all([
        functools.partial(in_c.mask_pick, view, mask, out, *edge, *end)
        for edge, end in zip(itertools.pairwise(edges), itertools.pairwise(ends), strict=True)
    ])  # fmt: skip
    return out


# NumPy looks at each element of a mask each time, and guesses what the next will be. Of a mask of so many
# elements that holds for few, its places are looked up once instead.
_MANY, _FEW = 1 << 14, 8
_ALL: Any = ()


def _places(view: np.ndarray, index: Any) -> Any:
    """What picks elements where an evaluated mask holds soonest: places in `view.reshape(-1)`, kept until the
    mask changes; None where it is the mask itself, of `view`.
    """
    leaf = index._node
    mask = leaf.view
    if (
        mask.size < _MANY
        or view.shape != mask.shape
        or not (view.flags.c_contiguous and mask.flags.c_contiguous)
    ):
        return None
    places = leaf.recalled("picked")
    if places is None:
        places = np.flatnonzero(mask) if np.count_nonzero(mask) * _FEW < mask.size else _ALL
        leaf.remember("picked", places)
    return None if places is _ALL else places


def _of_one_array(array: Any, index: Any) -> bool:
    """Are these the types of a dense array, and of a mask or an array of integers?"""
    return (
        len(array.parameters) > 1
        and array.ndim > 0
        and len(index.parameters) > 1
        and index.ndim > 0
        and (index.dtype.kind in "iu" or (index.dtype.kind == "b" and index.ndim <= array.ndim))
    )


def _put(x: Any, index: Any, read: Any, value: Any) -> bool:
    """x[index] = value in place, as `put_small` writes it, for an index that is one array."""
    node = x._node
    if type(node) is not Leaf:
        if node.value is None:
            return False
        node = keep_value(x, node)
    places = None if node.foreign or not usable() else _memory(index)
    if places is None or not few(places.size):
        return False
    new = read(value)
    if new is None and isinstance(value, HostArray):
        new = evaluated(value).view  # as it is before it is scattered in any case
    me = get_ident()  # (no call comes between asking and saying who writes)
    if new is None or node.writer:
        return False
    node.writer = me
    try:
        if x._node is not node or not nobody_else(node) or index._node is node or index._node.root is not None:
            return False
        view = node.view  # (which is asked for when nobody else has it)
        # (To a mask NumPy writes lines, and no tables.)
        at = _places(view, index) if places.dtype.kind == "b" and getattr(new, "ndim", 0) < 2 else None
        if at is not None:
            view.reshape(-1)[at] = new
        elif places.dtype.kind != "b" or not _written(view, places, new):
            view[places] = new
    except (IndexError, ValueError, OverflowError):
        return False
    finally:
        node.writer = 0
    node.writes += 1
    node.reducers = None
    if counters.active:
        _count_put((places,), new, view)
    return True


def _written(view: np.ndarray, mask: np.ndarray, new: Any) -> bool:
    """Write where a mask holds, if values are as many as needed and no others have to be made of them."""
    if view.size <= _BRIEF:
        return False
    if type(new) is not np.ndarray:
        new = np.asarray(new, view.dtype)
    return bool(in_c.mask_put(view, mask, new))


@indexing.put_small.method
def _(family: type[HostArray], x: Any, index: tuple[Any, ...], value: Any) -> bool:
    if not isinstance(x, DenseArray):
        return False
    node = x._node
    if type(node) is not Leaf:
        if node.value is None:
            return False
        node = keep_value(x, node)
    if node.foreign:
        return False
    how = as_numpy_index(index)
    if how is None:
        return False
    new = small_value(value, node.dtype)
    me = get_ident()
    if new is None or node.writer:
        return False
    node.writer = me
    try:
        if x._node is not node or not nobody_else(node):
            return False
        view = node.view
        if any(isinstance(i, np.ndarray) and not apart(i, view) for i in how):
            return False
        view[how] = new
    except (IndexError, ValueError):
        return False
    finally:
        node.writer = 0
    node.writes += 1
    node.reducers = None
    if counters.active:
        _count_put(how, new, view)
    return True
