"""Elements by their indices: take, put, along an axis, where they are, where they belong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import cast_to, join_families, leaf_family
from mirabelle.arraytypes.indexing import gather_node, within, write_at
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import Leaf, broadcast_shapes

_INT64 = np.dtype(np.int64)


def _axis(axis: Any, ndim: int) -> int:
    if not ndim:
        raise np.exceptions.AxisError(axis, ndim)
    (out,) = normal_axes(axis, ndim)
    return out


@keyword_only("axis")
@array_function
def take(x: Any, indices: Any, /, axis: Any = None, *, mode: str = "raise") -> Any:
    """The elements of `x` at `indices` along an axis (of all elements in a row, if it is None).

    `mode` says what happens to indices outside: "raise", "wrap" or "clip".

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    indices : array of int
        The indices.
    axis : int or None
        Along which axis; None takes all elements in a row.
    mode : str, default 'raise'
        What indices that are outside do: "raise", "wrap" or "clip".
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        In new memory, of the dtype of `x`: of the shape of `indices`, which stands in the place of the
        axis, if there is one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.take(mb.HostArray([10, 20, 30]), [2, 0]))
    [30 10]
    """
    if axis is None:
        if x.ndim != 1:
            x = verbs.reshape(x, (-1,))
        axis = 0
    elif not x.ndim and not normal_axes(axis, 0):
        x = verbs.reshape(x, (1,))  # (NumPy takes a number for an array of one dimension here)
    axis = _axis(axis, x.ndim)
    n = x.shape[axis]
    indices = _numbers(indices)
    if mode == "wrap":
        indices = verbs.remainder(_indices(x, indices), n)
    elif mode == "clip":
        indices = verbs.clip(_indices(x, indices), 0, n - 1)
    elif mode != "raise":
        raise ValueError(f'mode is "raise", "wrap" or "clip", not {mode!r}.')
    found = verbs.getitem(x, (*[slice(None)] * axis, indices))
    # (One index says a view. What is taken is a copy.)
    return verbs.copy(found) if np.ndim(indices) == 0 else found


def _numbers(indices: Any) -> Any:
    """Indices as they are; but truth values are the numbers 0 and 1, and no mask."""
    if isinstance(indices, AbstractArray):
        return verbs.astype(indices, _INT64) if indices.dtype.kind == "b" else indices
    if isinstance(indices, (bool, np.bool_)):
        return int(indices)
    if isinstance(indices, (list, tuple)) and all(isinstance(i, (bool, np.bool_)) for i in indices):
        return [int(i) for i in indices]
    return indices.astype(_INT64) if isinstance(indices, np.ndarray) and indices.dtype.kind == "b" else indices


def _indices(x: Any, indices: Any) -> Any:
    """Indices as an array of the place of `x`."""
    if isinstance(indices, AbstractArray):
        join_families("indices along an axis", (x, indices))
        return indices
    family = leaf_family(type(x))
    data = np.asarray(indices)
    if data.dtype.kind not in "iu":
        raise TypeError(f"Indices are integers, and these are {data.dtype.name}. Convert them: .astype(int).")
    return wrap(family, Leaf(family._upload(data)))


def _whole(indices: Any) -> Any:
    if indices.dtype.kind not in "iu":
        raise IndexError(
            f"indices are integers, and these are {indices.dtype.name}. Convert them: "
            "`indices.astype(mb.int64)`."
        )
    return indices


@keyword_only("axis")
@array_function
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Any:
    """Where `indices` says, along an axis, for each place of the other axes: lazy, and fused.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    indices : array of int
        The indices.
    axis : int or None, default -1
        Along which axis; None takes all elements in a row.

    Returns
    -------
    array
        In new memory: as long as `indices` along the axis, and of the dtype of `x`. Of one dimension if
        `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[3, 1, 2], [6, 5, 4]])
    >>> print(mb.take_along_axis(x, mb.argsort(x, axis=1), axis=1))
    [[1 2 3]
     [4 5 6]]
    """
    indices = _whole(_indices(x, indices))
    if axis is None:
        x, axis = verbs.reshape(x, (-1,)), 0
    if indices.ndim != x.ndim:
        raise ValueError(
            f"`indices` and `x` must have the same number of dimensions, and have {indices.ndim} and {x.ndim}."
        )
    axis = _axis(axis, x.ndim)
    shape = list(broadcast_shapes([_without(x.shape, axis), _without(indices.shape, axis)], "take_along_axis"))
    shape[axis] = indices.shape[axis]
    family = leaf_family(type(x))
    indices = within(indices, axis, x.shape[axis])
    if not math.prod(shape):
        return wrap(family, Leaf(family._empty(tuple(shape), x.dtype)))
    leaf = verbs.leaf_of(x)
    step = leaf.view.strides[axis]
    if step < 0 or step % leaf.dtype.itemsize:
        leaf = verbs.leaf_of(verbs.copy(x))
        step = leaf.view.strides[axis]
    base = leaf.view[(*[slice(None)] * axis, slice(0, 1), ...)]
    full = tuple(shape)
    base = np.broadcast_to(base, full) if isinstance(base, np.ndarray) else base.broadcast_to(full)
    offset = cast_to(indices, _INT64)
    if step != leaf.dtype.itemsize:
        offset = verbs.multiply(offset, step // leaf.dtype.itemsize)
    return gather_node(family, Leaf(base, leaf.foreign, root=leaf, table=True), offset, full)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


@array_function
def put_along_axis(x: Any, indices: Any, values: Any, /, axis: int = -1) -> None:
    """Write `values` where `take_along_axis` would read.

    Parameters
    ----------
    x : array
        What is written to.
    indices : array of int
        Where.
    values : array or number
        The values.
    axis : int or None, default -1
        Along which axis; None takes all elements in a row.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[3, 1, 2], [6, 5, 4]])
    >>> mb.put_along_axis(x, [[0], [2]], 9, axis=1)
    >>> print(x)
    [[9 1 2]
     [6 5 9]]
    """
    indices = _whole(_indices(x, indices))
    if axis is None:
        if x.ndim != 1:
            raise ValueError("put_along_axis with axis=None needs one dimension: give mb.reshape(x, (-1,)).")
        axis = 0
    axis = _axis(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ValueError(
            f"`indices` and `x` must have the same number of dimensions, and have {indices.ndim} and {x.ndim}."
        )
    where: list[Any] = []
    for d, n in enumerate(x.shape):
        if d == axis:
            where.append(indices)
        else:
            along = np.arange(n).reshape((-1,) + (1,) * (x.ndim - d - 1))
            where.append(_indices(x, along))
    write_at(x, tuple(where), values)


@array_function
def add_at(x: Any, index: Any, values: Any, /) -> None:
    """x[index] += values, once for every entry of the index: repeated ones add up.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    index : index
        Where, as in `x[index]`.
    values : array or number
        What is added.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([0.0, 0.0, 0.0])
    >>> mb.add_at(x, [0, 2, 0], [1.0, 2.0, 3.0])
    >>> print(x)
    [4. 0. 2.]
    """
    write_at(x, index if isinstance(index, tuple) else (index,), values, op="add")


@array_function
def nonzero(x: Any, /) -> tuple[AbstractArray, ...]:
    """Where the elements are not zero: an array of indices for each dimension.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    tuple of array
        All of dtype int64 and of one length, rows first: what `x` can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.nonzero(mb.HostArray([0, 7, 0, 8]))[0])
    [1 3]
    """
    if not x.ndim:
        raise ValueError("nonzero needs an array of at least one dimension: mb.reshape(x, (1,)).")
    return library.call("nonzero", x)  # type: ignore[no-any-return]


# `mb.where(mask)` is what it is in NumPy: `mb.nonzero(mask)`.
_where: Any = verbs.where
_where.method(lambda condition, x1, x2: nonzero(condition), signature=(object, type(None), type(None)))


def _half_given(condition: Any, x1: Any, x2: Any) -> Any:
    raise ValueError(
        "where takes what stands where the condition holds and what stands elsewhere: either both or neither "
        "of x1 and x2 should be given, and one is None. Write mb.where(condition, x1, 0), say."
    )


for _given in ((object, object, type(None)), (object, type(None), object)):
    _where.method(_half_given, signature=_given)


@keyword_only("side", "sorter")
@array_function(arity=2)
def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Any:
    """Where the elements of `x2` belong in the sorted `x1`, so that it stays sorted.

    Parameters
    ----------
    x1 : array
        Sorted values.
    x2 : array
        What is looked for.
    side : str, default 'left'
        Whether it comes before ("left") or behind ("right") equal values.
    sorter : array of int or None
        The order that sorts `x1`, if it is not sorted.

    Returns
    -------
    array
        Of dtype int64, and of the shape of `x2`: from 0 to the length of `x1`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.searchsorted(mb.HostArray([1.0, 2.0, 4.0]), mb.HostArray([3.0, 2.0])))
    [2 1]
    """
    if x1.ndim != 1:
        raise ValueError(f"searchsorted searches one dimension, and this array has {x1.ndim}.")
    if side not in ("left", "right"):
        raise ValueError(f'side is "left" or "right", not {side!r}.')
    if sorter is not None:
        x1 = take(x1, sorter)
    return library.call("searchsorted", x1, x2, side=side)
