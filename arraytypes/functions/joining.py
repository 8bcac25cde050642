"""Arrays put together and taken apart, by NumPy's names.

What is joined is computed straight into its part of the result, so pending expressions need no memory
of their own. Parts of an array are views.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0])
>>> print(mb.hstack([x * 2, [9.0]]))
[2. 4. 9.]
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import fitting
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import DenseArray, memory_order, wrap
from mirabelle.arraytypes.elementwise import join_families, leaf_family
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.outputs import library_is_quicker
from mirabelle.arraytypes.functions.turning import atleast_1d, atleast_2d, atleast_3d
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.wrappers import Wrapper, root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import by_type, generic
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.tree import Leaf


def alike(name: str, arrays: Any) -> list[Any]:
    """A sequence of arrays, lists and numbers as arrays of one place."""
    if isinstance(arrays, AbstractArray) and not arrays.ndim:
        raise TypeError(f"{name} takes a sequence of arrays: mb.{name}([x, y]).")
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"need at least one array to {name}")
    families = {leaf_family(type(x)) if isinstance(x, AbstractArray) else None for x in arrays}
    if len(families) == 1 and None not in families:
        return arrays
    family = join_families(name, tuple(x for x in arrays if isinstance(x, (AbstractArray, np.ndarray))))
    like = next((x for x in arrays if isinstance(x, AbstractArray) and leaf_family(type(x)) is family), None)
    made = [x if isinstance(x, AbstractArray) else as_array(x, like) for x in arrays]
    return [x if leaf_family(type(x)) is family else verbs.adapt(family, x) for x in made]


def with_duals_dense(arrays: list[Any]) -> list[Any]:
    """The arrays, where structured ones whose parts hold dual numbers are dual numbers themselves."""
    return [x._in_memory() if hasattr(x, "_stored") and x.carries_derivatives else x for x in arrays]


def at_once(arrays: Any, axis: Any, stacked: bool = False) -> Any:
    """A small result on a place whose library joins memory sooner than this module; None where it is not."""
    if type(arrays) not in (list, tuple) or not arrays or not isinstance(arrays[0], AbstractArray):
        return None
    return join_small(leaf_family(type(arrays[0])), arrays, axis, stacked)


@by_type
def join_small(family: Any, arrays: Any, axis: Any, stacked: bool) -> Any:
    """Arrays one after another, along an axis they have or (stacked) a new one, where a place's library joins
    memory sooner than this module; else None."""


@join_small.method
def _(family: type[DenseArray], arrays: Any, axis: Any, stacked: bool) -> None:
    return None


def _dimensions(arrays: Any) -> int | None:
    """How many dimensions arrays of ours have, where all have as many."""
    if type(arrays) not in (list, tuple) or not arrays:
        return None
    found = {x.ndim if isinstance(x, AbstractArray) else None for x in arrays}
    return found.pop() if len(found) == 1 else None


@functools.partial(generic, arity=1)
def concatenated(leading: Any, arrays: list[Any], axis: int) -> Any:
    """Arrays of which `leading` carries derivatives, one after another."""


@explained
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> AbstractArray:
    """Arrays one after another along an axis that they have.

    Parameters
    ----------
    arrays : sequence of arrays
        What is joined.
    axis : int or None, default 0
        Along which axis; None takes all elements in a row.
    out : array or None
        Where the result is written; it is returned, too.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    casting : str, default 'same_kind'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.concatenate([mb.HostArray([1, 2]), mb.HostArray([3.5])]))
    [1.  2.  3.5]
    """
    if out is None and dtype is None and casting == "same_kind":
        if axis is None and _dimensions(arrays) == 1:
            axis = 0
        quick = at_once(arrays, axis)
        if quick is not None:
            return quick
    parts = with_duals_dense(alike("concatenate", arrays))
    if axis is None:
        parts, axis = [verbs.reshape(x, (-1,)) for x in parts], 0
    first = parts[0]
    if not first.ndim:
        raise ValueError(
            "zero-dimensional arrays cannot be concatenated. Numbers are joined by mb.stack([x, y]), arrays by "
            "mb.concat([x, y]): a list of them."
        )
    if not -first.ndim <= axis < first.ndim:
        raise np.exceptions.AxisError(axis, first.ndim)
    axis = axis % first.ndim
    for i, x in enumerate(parts):
        if x.ndim != first.ndim:
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly, but the "
                f"array at index 0 has {first.ndim} dimension(s) and the array at index {i} has {x.ndim}. Give "
                "the smaller one an axis: `x[None, :]` is a row, `x[:, None]` a column."
            )
        if x.shape == first.shape:
            continue
        for d, (n, m) in enumerate(zip(first.shape, x.shape, strict=True)):
            if d != axis and n != m:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but "
                    f"along dimension {d}, the array at index 0 has size {n} and the array at index {i} has "
                    f"size {m}. Cut or pad one of them, `mb.pad(x, ...)`, or join along another axis."
                )
    leading = next((x for x in parts if x.carries_derivatives), None)
    if leading is not None:  # a type that has a way of its own
        cast = parts if dtype is None else [verbs.astype(x, dtype, copy=False) for x in parts]
        made = concatenated(leading, cast, axis)
        return made if out is None else verbs.assign(out, made)
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    shape = (*first.shape[:axis], sum(x.shape[axis] for x in parts), *first.shape[axis + 1 :])
    kind = checked_dtype(dtype) if dtype is not None else _common_dtype(parts)
    for x in parts:
        if x.dtype == kind and out is None:
            continue
        target = kind if out is None else out.dtype
        if not np.can_cast(x.dtype, target, casting):
            raise TypeError(
                f"Cannot cast array data from {x.dtype!r} to {target!r} according to the rule {casting!r}"
            )
    if out is None and library_is_quicker(leaf_family(type(first)), math.prod(shape), *parts):
        return library.call("concatenate", parts, axis=axis, dtype=kind, casting=casting)
    made = room_for(parts, kind, shape) if out is None else as_array(out)
    if made.shape != shape:
        raise ValueError(f"Output array is the wrong shape: {made.shape}, and the result's is {shape}.")
    if out is not None:
        parts = [verbs.copy(x) if _may_show(x, made) else x for x in parts]
    start = 0
    for x in parts:
        stop = start + x.shape[axis]
        if stop > start:
            verbs.setitem(made, (*[slice(None)] * axis, slice(start, stop)), x)
        start = stop
    return made if out is None else out


def _may_show(x: Any, other: Any) -> bool:
    """Whether an array may show memory of another, so that it is changed by a write there."""
    if not all(isinstance(a, (DenseArray, Wrapper)) for a in (x, other)):
        return False
    roots = root_of(x), root_of(other)
    return roots[0] is roots[1] or all(
        type(v) is Leaf and v.foreign for v in (getattr(r, "_node", None) for r in roots)
    )


def room_for(parts: list[Any], kind: np.dtype, shape: tuple[int, ...]) -> Any:
    """Memory for arrays one after another: in columns where all of them lie so, as NumPy has it."""
    if len(shape) > 1 and all(lies_in_columns(x) for x in parts):
        family = leaf_family(type(parts[0]))
        return wrap(family, Leaf(family._empty(shape, kind, "F")))
    return verbs.similar(parts[0], dtype=kind, shape=shape)


def lies_in_columns(x: Any) -> bool:
    """Does an array, or what is computed for it, lie in columns?"""
    stored = root_of(x) if isinstance(x, Wrapper) else x
    return isinstance(stored, DenseArray) and memory_order(verbs.capture(x)) == "F"


def _common_dtype(parts: list[Any]) -> np.dtype:
    dtypes = {x.dtype for x in parts}
    return dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)


@explained
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> AbstractArray:
    """Arrays below one another: rows.

    Parameters
    ----------
    tup : sequence of arrays
        What is joined.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    casting : str, default 'same_kind'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.vstack([mb.HostArray([1, 2]), mb.HostArray([3, 4])]))
    [[1 2]
     [3 4]]
    """
    quick = None if dtype is not None else _of_vectors(tup, 0)
    if quick is not None:
        return quick
    return concatenate(list(map(atleast_2d, alike("vstack", tup))), 0, dtype=dtype, casting=casting)


def _of_vectors(tup: Any, axis: int) -> Any:
    """Vectors as the rows or columns of a matrix, at once; None for all else."""
    return at_once(tup, axis, True) if _dimensions(tup) == 1 else None


@explained
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> AbstractArray:
    """Arrays beside one another: along the second axis, or the only one.

    Parameters
    ----------
    tup : sequence of arrays
        What is joined.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    casting : str, default 'same_kind'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.hstack([mb.HostArray([1, 2]), mb.HostArray([3, 4])]))
    [1 2 3 4]
    """
    if dtype is None and type(tup) in (list, tuple) and tup and getattr(tup[0], "ndim", 0):
        quick = at_once(tup, 0 if tup[0].ndim == 1 else 1)
        if quick is not None:
            return quick
    parts: list[Any] = [atleast_1d(x) for x in alike("hstack", tup)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@explained
def dstack(tup: Any) -> AbstractArray:
    """Arrays behind one another: along the third axis.

    Parameters
    ----------
    tup : sequence of arrays
        What is joined.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dstack([mb.HostArray([1, 2]), mb.HostArray([3, 4])]))
    [[[1 3]
      [2 4]]]
    """
    parts = alike("dstack", tup)
    quick = at_once(parts, 2, True) if _dimensions(parts) == 2 else None
    return concatenate(list(map(atleast_3d, parts)), 2) if quick is None else quick


@explained
def column_stack(tup: Any) -> AbstractArray:
    """Vectors as the columns of a matrix.

    Parameters
    ----------
    tup : sequence of arrays
        Vectors and matrices.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.column_stack([mb.HostArray([1, 2]), mb.HostArray([3, 4])]))
    [[1 3]
     [2 4]]
    """
    quick = _of_vectors(tup, 1)
    if quick is not None:
        return quick
    parts = alike("column_stack", tup)
    return concatenate([x if x.ndim > 1 else verbs.reshape(x, (x.size, 1)) for x in parts], 1)


@explained
def block(arrays: Any) -> AbstractArray:
    """An array made of nested lists of blocks: the innermost lists are joined along the last axis.

    Parameters
    ----------
    arrays : nested lists of arrays
        The blocks.

    Returns
    -------
    array
        In new memory, of the dtype that the arrays have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.ones((2, 2))
    >>> print(mb.block([[a, 0 * a], [0 * a, a]]))
    [[1. 1. 0. 0.]
     [1. 1. 0. 0.]
     [0. 0. 1. 1.]
     [0. 0. 1. 1.]]
    """
    depth = _depth(arrays)
    flat = iter(alike("block", list(_leaves(arrays))))
    made = _block(arrays, flat)
    if not depth:
        return verbs.copy(made)
    blocks = list(_leaves(made))
    ndim = max(depth, max(x.ndim for x in blocks))
    if any(x.carries_derivatives or hasattr(x, "_stored") for x in blocks):
        return _joined(made, -depth, ndim)
    if library_is_quicker(leaf_family(type(blocks[0])), sum(x.size for x in blocks), *blocks):
        return library.call("block", made)
    found = _placed(made, ndim - depth, ndim)
    if found is None:  # (which says what does not fit)
        return _joined(made, -depth, ndim)
    shape, places = found
    whole = room_for(blocks, _common_dtype(blocks), shape)
    for start, x in places:
        index = tuple([slice(a, a + n) for a, n in zip(start, _filled_up(x, ndim), strict=True)])
        if x.size:
            verbs.setitem(whole, index, x)
    return whole


def _filled_up(x: Any, ndim: int) -> tuple[int, ...]:
    return (1,) * (ndim - x.ndim) + x.shape


def _placed(nest: Any, axis: int, ndim: int) -> tuple[tuple[int, ...], list[tuple[list[int], Any]]] | None:
    """The shape of what blocks come to, and where each begins in it; None where they do not fit."""
    if not isinstance(nest, list):
        return _filled_up(nest, ndim), [([0] * ndim, nest)]
    shape: list[int] = []
    places: list[tuple[list[int], Any]] = []
    for item in nest:
        found = _placed(item, axis + 1, ndim)
        if found is None:
            return None
        if not shape:
            shape = [0 if d == axis else n for d, n in enumerate(found[0])]
        if any(n != m for d, (n, m) in enumerate(zip(shape, found[0], strict=True)) if d != axis):
            return None
        for start, x in found[1]:
            start[axis] += shape[axis]
            places.append((start, x))
        shape[axis] += found[0][axis]
    return tuple(shape), places


def _depth(nest: Any, path: str = "arrays") -> int:
    if isinstance(nest, tuple):
        raise TypeError(f"{path} is a tuple. Only lists can be used to arrange blocks, as np.block does.")
    if not isinstance(nest, list):
        return 0
    if not nest:
        raise ValueError(f"List at {path} cannot be empty")
    depths = {_depth(item, f"{path}[{i}]") for i, item in enumerate(nest)}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched: below {path} some blocks are deeper than others.")
    return 1 + depths.pop()


def _leaves(nest: Any) -> Any:
    if isinstance(nest, list):
        for item in nest:
            yield from _leaves(item)
    else:
        yield nest


def _block(nest: Any, flat: Any) -> Any:
    return [_block(item, flat) for item in nest] if isinstance(nest, list) else next(flat)


def _joined(nest: Any, axis: int, ndim: int) -> Any:
    if not isinstance(nest, list):
        return verbs.reshape(nest, (1,) * (ndim - nest.ndim) + nest.shape)
    return concatenate([_joined(item, axis + 1, ndim) for item in nest], axis)


@array_function
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`arr` and then `values`, along an axis or in one row: a new array.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    values : array
        What comes behind.
    axis : int or None
        Along which axis; None takes all elements in a row.

    Returns
    -------
    array
        Of the dtype that both have together; of one dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.append(mb.HostArray([1, 2]), [3]))
    [1 2 3]
    """
    return concatenate((arr, as_array(values, arr)), axis)


@array_function
def resize(a: Any, new_shape: Any) -> Any:
    """The elements in another shape, repeated from the start as often as it takes.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    new_shape : int or tuple of int
        The new shape.

    Returns
    -------
    array
        In new memory, of the dtype and place of `a`. Zeros, if `a` has no elements.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.resize(mb.HostArray([1, 2, 3]), (2, 2)))
    [[1 2]
     [3 1]]
    """
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size = int(np.prod(shape, dtype=np.int64))
    if a.size and library_is_quicker(leaf_family(type(a)), size, a):
        return library.call("resize", a, shape)
    flat = verbs.reshape(a, (-1,))
    if not a.size or not size:
        return verbs.assign(verbs.similar(a, shape=shape), 0)
    row = verbs.similar(a, shape=(size,))
    for start in range(0, size, a.size):
        n = min(a.size, size - start)
        verbs.setitem(row, slice(start, start + n), verbs.getitem(flat, slice(0, n)))
    return standing_alone(verbs.reshape(row, shape))


def _along(x: Any, axis: Any) -> tuple[Any, int, int]:
    """An array, an axis of it and the axis' length; all elements in a row where the axis is None."""
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    if not x.ndim or not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    axis = axis % x.ndim
    return x, axis, x.shape[axis]


def _on_host(index: Any) -> Any:
    """Indices whose values decide a shape, where the shape is decided."""
    return verbs.fetch(index) if isinstance(index, AbstractArray) else index


@array_function
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Without the elements at the indices, slice or mask `obj` along an axis: a new array.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    obj : int, slice or array
        What is left out.
    axis : int or None
        Along which axis; None takes all elements in a row.

    Returns
    -------
    array
        Of the dtype of `arr`; of one dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.delete(mb.HostArray([1, 2, 3, 4]), [0, 2]))
    [2 4]
    """
    x, axis, n = _along(arr, axis)
    obj = _on_host(obj)
    if type(obj) is int and -n <= obj < n:
        obj %= n
        return concatenate((_slab(x, axis, 0, obj), _slab(x, axis, obj + 1, n)), axis)
    kept = np.ones(n, bool)
    if not isinstance(obj, slice):
        obj = np.asarray(obj)
        if obj.dtype.kind == "b" and obj.shape != (n,):
            raise ValueError(
                "boolean array argument obj to delete must be one dimensional and match the axis length of "
                f"{n}; its shape is {obj.shape}"
            )
        if not obj.size:
            obj = obj.astype(np.intp)
        if obj.dtype.kind not in "biu":
            raise IndexError(
                f"arrays used as indices must be of integer (or boolean) type, not {obj.dtype.name}"
            )
        _check_within(obj, n, axis)
    kept[obj] = False
    return concatenate(
        [_slab(x, axis, start, stop) for start, stop in _runs(kept)] or [_slab(x, axis, 0, 0)], axis
    )


def _check_within(index: Any, n: int, axis: int) -> None:
    if index.dtype.kind != "b" and index.size and (index.min() < -n or index.max() >= n):
        bad = int(index.min() if index.min() < -n else index.max())
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {n}")


def _slab(x: Any, axis: int, start: int, stop: int) -> Any:
    return verbs.getitem(x, (*[slice(None)] * axis, slice(start, stop)))


def _runs(mask: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Where a mask holds, as ranges."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


@array_function
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """With `values` before the indices `obj` along an axis: a new array.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    obj : int, slice or array
        Before which indices.
    values : array or number
        What is put there.
    axis : int or None
        Along which axis; None takes all elements in a row.

    Returns
    -------
    array
        Of the dtype of `arr`, to which `values` are converted; of one dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.insert(mb.HostArray([1, 2, 3]), 1, 9))
    [1 9 2 3]
    """
    x, axis, n = _along(arr, axis)
    obj = _on_host(obj)
    if isinstance(obj, slice):
        index = np.arange(*obj.indices(n))
    else:
        index = np.asarray(obj)
        index = np.flatnonzero(index) if index.dtype.kind == "b" else index
        if index.ndim > 1:
            raise ValueError("index array argument obj to insert must be one dimensional or scalar")
        index = index.astype(np.intp) if not index.size else index
        if index.dtype.kind not in "iu":
            raise IndexError(
                f"arrays used as indices must be of integer (or boolean) type, not {index.dtype.name}"
            )
    wrong = index[(index < -n) | (index > n)] if index.ndim else np.extract((index < -n) | (index > n), index)
    if wrong.size:
        raise IndexError(f"index {int(wrong.flat[0])} is out of bounds for axis {axis} with size {n}")
    index = np.where(index < 0, index + n, index)
    values = fitting(x, values)
    if values.ndim > x.ndim:
        raise ValueError(f"could not broadcast input array from shape {values.shape} into shape {x.shape}")
    if library_is_quicker(leaf_family(type(x)), x.size + values.size, x, values):
        return library.call("insert", x, index.tolist(), values, axis)
    if index.size == 1:
        # One place: all of the values go there.
        values = verbs.reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
        if not index.ndim:
            values = verbs.permute_dims(values, _moved_first_to(axis, x.ndim))
        target = tuple(values.shape[d] if d == axis else m for d, m in enumerate(x.shape))
        values = verbs.astype(verbs.broadcast_to(values, target), x.dtype)
        at = int(index.flat[0])
        return concatenate((_slab(x, axis, 0, at), values, _slab(x, axis, at, n)), axis)
    order = np.argsort(index, kind="stable")
    index = index.copy()
    index[order] += np.arange(index.size)
    old = np.ones(n + index.size, bool)
    old[index] = False
    made = verbs.similar(x, shape=tuple(old.size if d == axis else m for d, m in enumerate(x.shape)))
    if index.size:
        verbs.setitem(made, (*[slice(None)] * axis, index.tolist()), values)
    start = 0
    for first, last in _runs(old):
        part = _slab(x, axis, start, start + last - first)
        verbs.setitem(made, (*[slice(None)] * axis, slice(first, last)), part)
        start += last - first
    return made


def _moved_first_to(axis: int, ndim: int) -> tuple[int, ...]:
    """The order of axes that brings the first to stand at `axis`."""
    order = list(range(1, ndim))
    order.insert(axis, 0)
    return tuple(order)


# Taken apart


@array_function
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[AbstractArray]:
    """Parts along an axis: so many of nearly equal length, or cut at the given indices. Views.

    Parameters
    ----------
    ary : array
        An array; a list, a number or a NumPy array becomes one.
    indices_or_sections : int or sequence of int
        How many parts, or the indices at which is cut.
    axis : int, default 0
        Along which axis; negative ones count from the last.

    Returns
    -------
    list of array
        In order along the axis; the last are empty if there are more parts than elements. What is written
        to a part is written to `ary`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> [str(part) for part in mb.array_split(mb.HostArray([1, 2, 3]), 2)]
    ['[1 2]', '[3]']
    """
    _, axis, n = _along(ary, axis)
    cuts = itertools.pairwise(_cuts(indices_or_sections, n))
    if not axis:
        return [ary[start:stop] for start, stop in cuts]
    before = (slice(None),) * axis
    return [ary[*before, start:stop] for start, stop in cuts]


# More parts than this fill memory with views of nothing.
_MOST_PARTS = 1 << 30


def _cuts(sections: Any, n: int) -> list[Any]:
    """Where parts start and stop."""
    if np.ndim(sections) if not isinstance(sections, AbstractArray) else sections.ndim:
        sections = verbs.to_numpy(sections).tolist() if isinstance(sections, AbstractArray) else list(sections)
        return [0, *sections, n]
    k = operator.index(sections)
    if k <= 0:
        raise ValueError("number sections must be larger than 0.")
    if k > _MOST_PARTS:
        raise ValueError(f"{k} parts are more than a list may hold here: {_MOST_PARTS}. Give fewer sections.")
    each, more = divmod(n, k)
    return (
        [*range(0, more * (each + 1), each + 1), *range(more * (each + 1), n + 1, each)]
        if each
        else [*range(more), *[n] * (k + 1 - more)]
    )


@array_function
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[AbstractArray]:
    """Parts of equal length along an axis, or cut at the given indices. Views.

    Parameters
    ----------
    ary : array
        An array; a list, a number or a NumPy array becomes one.
    indices_or_sections : int or sequence of int
        How many parts, or the indices at which is cut.
    axis : int, default 0
        Along which axis; negative ones count from the last.

    Returns
    -------
    list of array
        In order along the axis. What is written to a part is written to `ary`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> [str(part) for part in mb.split(mb.HostArray([1, 2, 3, 4]), 2)]
    ['[1 2]', '[3 4]']
    """
    _, d, n = _along(ary, axis)
    if isinstance(indices_or_sections, (int, np.integer)) and indices_or_sections and n % indices_or_sections:
        raise ValueError(
            f"array split does not result in an equal division: axis {d} has {n} elements. Use mb.array_split."
        )
    return array_split(ary, indices_or_sections, axis)  # type: ignore[no-any-return]


def _splitter(name: str, least: int, axis: Callable[[int], int], meaning: str) -> Any:
    def prototype(ary: Any, indices_or_sections: Any) -> list[AbstractArray]:
        if ary.ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return split(ary, indices_or_sections, axis(ary.ndim))  # type: ignore[no-any-return]

    prototype.__name__ = prototype.__qualname__ = name
    prototype.__doc__ = f"""{meaning} Views.{_SPLITTERS_PARAMETERS}
    >>> import mirabelle as mb
    >>> {_EXAMPLES[name]}
    3
    """
    return array_function(prototype)


_SPLITTERS_PARAMETERS = """

    Parameters
    ----------
    ary : array
        An array; a list, a number or a NumPy array becomes one.
    indices_or_sections : int or sequence of int
        How many parts of equal length, or the indices at which is cut.

    Returns
    -------
    list of array
        In order along the axis. What is written to a part is written to `ary`, and the other way round.

    Examples
    --------"""
_EXAMPLES = {
    "hsplit": "len(mb.hsplit(mb.zeros((2, 6)), 3))",
    "vsplit": "len(mb.vsplit(mb.zeros((6, 2)), 3))",
    "dsplit": "len(mb.dsplit(mb.zeros((2, 2, 6)), 3))",
}
hsplit = _splitter("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1, "Parts beside one another.")
vsplit = _splitter("vsplit", 2, lambda ndim: 0, "Parts below one another.")
dsplit = _splitter("dsplit", 3, lambda ndim: 2, "Parts behind one another.")
