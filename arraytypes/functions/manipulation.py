"""The standard's manipulation functions.

What strides can say is a view: flip, moveaxis, squeeze, expand_dims, unstack. Where new memory is
needed it is made once, and pending expressions are computed straight into their part of it.

>>> import mirabelle as mb
>>> x = mb.HostArray([[1, 2], [3, 4]])
>>> mb.flip(x)[0, 0] = 9
>>> print(x)
[[1 2]
 [3 9]]
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array, as_selection
from mirabelle.arraytypes.dense import DenseArray, as_shape, computed
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.joining import alike, at_once, concatenate, with_duals_dense
from mirabelle.arraytypes.functions.outputs import into, library_is_quicker, pending
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import native, verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import broadcast_shapes as _broadcast

_ALL = slice(None)
# As many as arrays have axes.
BACKWARDS = (slice(None, None, -1),) * 64


def one_axis(axis: Any, ndim: int) -> int:
    """An axis as an integer from 0 on, or NumPy's AxisError."""
    try:
        axis = axis.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"An axis is an integer, not {axis!r}.") from None
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return int(axis % ndim)


def distinct_axes(axis: Any, ndim: int) -> list[int]:
    """One or several axes in the order given, each once."""
    axes = [one_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError(f"repeated axis in {axis!r}: name each axis once.")
    return axes


# Views


@keyword_only("axis")
@array_function
def flip(x: Any, /, axis: Any = None) -> Any:
    """`x` backwards along one or several axes, or along all: a view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.flip(mb.HostArray([1, 2, 3])))
    [3 2 1]
    """
    # (Without `...`: of an array without axes that is a number, as NumPy's is.)
    if axis is None:
        return x[BACKWARDS[: x.ndim]]
    axes = distinct_axes(axis, x.ndim)
    return verbs.getitem(x, tuple([slice(None, None, -1) if d in axes else _ALL for d in range(x.ndim)]))


verbs.FUNCTION_OPERATORS[np.flip] = native.operator(flip.core.table, flip, 1)  # type: ignore[attr-defined]


@array_function
def expand_dims(x: Any, /, axis: Any) -> Any:
    """`x` with new dimensions of size 1 where `axis` says: a view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or tuple of int
        Where the new dimensions are in the result.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.expand_dims(mb.HostArray([1, 2, 3]), 0).shape
    (1, 3)
    """
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = distinct_axes(axis, ndim)
    return verbs.getitem(x, (*(None if d in new else _ALL for d in range(ndim)), ...))


@array_function
def squeeze(x: Any, /, axis: Any = None) -> Any:
    """`x` without dimensions of size 1 (without all of them, if `axis` is None): a view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Which dimensions; None is all of size one.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.squeeze(mb.HostArray([[[1, 2, 3]]]), (0, 1)).shape
    (3,)
    """
    axes = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else distinct_axes(axis, x.ndim)
    for d in axes:
        if x.shape[d] != 1:
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one: axis "
                f"{d} of shape {x.shape} has size {x.shape[d]}."
            )
    return verbs.getitem(x, (*(0 if d in axes else _ALL for d in range(x.ndim)), ...))


@array_function
def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """`x` with some axes moved to other places, the others in their order: a view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    source : int or sequence of int
        Which axes.
    destination : int or sequence of int
        Where they go.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.moveaxis(mb.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    old, new = distinct_axes(source, x.ndim), distinct_axes(destination, x.ndim)
    if len(old) != len(new):
        raise ValueError(
            f"moveaxis takes as many sources as destinations, and these are {len(old)} and {len(new)}."
        )
    order = [d for d in range(x.ndim) if d not in old]
    for to, d in sorted(zip(new, old, strict=True)):
        order.insert(to, d)
    return verbs.permute_dims(x, tuple(order))


@keyword_only("axis")
@array_function
def unstack(x: Any, /, axis: Any = 0) -> tuple[AbstractArray, ...]:
    """The parts of `x` along an axis, without it: a tuple of views (of numbers, if there is one axis).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, default 0
        Which axis.

    Returns
    -------
    tuple of array
        In order along the axis. What is written to a view is written to `x`, and the other way round;
        numbers are arrays of no dimensions, and copies.

    Examples
    --------
    >>> import mirabelle as mb
    >>> first, second = mb.unstack(mb.HostArray([[1, 2], [3, 4]]), axis=1)
    >>> print(first)
    [1 3]
    """
    if not x.ndim:
        raise ValueError("unstack needs an array of at least one dimension: mb.reshape(x, (1,)).")
    before = (_ALL,) * one_axis(axis, x.ndim)
    return tuple([x[*before, i] if before else x[i] for i in range(x.shape[len(before)])])


@explained
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes have together.

    Parameters
    ----------
    *shapes : tuples of int
        The shapes.

    Returns
    -------
    tuple of int
        The empty tuple, if there are no shapes. Shapes that do not fit are an error.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.broadcast_shapes((4, 1), (3,), ())
    (4, 3)
    """
    return _broadcast([as_shape(s) for s in shapes] or [()], "broadcast_shapes")


@explained
def broadcast_arrays(*arrays: Any) -> tuple[AbstractArray, ...]:
    """Arrays stretched to the shape they have together: read-only views, or what has that shape itself.

    Parameters
    ----------
    *arrays : arrays
        What is stretched.

    Returns
    -------
    tuple of array
        In the order of the arguments, of their dtypes. An array that has the shape already is returned
        itself, and can be written to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> column, row = mb.broadcast_arrays(mb.HostArray([[1], [2]]), mb.HostArray([3, 4]))
    >>> print(column)
    [[1 1]
     [2 2]]
    """
    if not arrays:
        return ()
    like = next((x for x in arrays if isinstance(x, AbstractArray)), None)
    given = [as_array(x, like) for x in arrays]
    shape = _broadcast([x.shape for x in given], "broadcast_arrays")
    return tuple(verbs.broadcast_to(x, shape) for x in given)


# Joining


@generic
def concat_(leading: Any, arrays: Any, axis: Any) -> Any:
    """`concat` by the type of its leading operand: a dual, structured or device array, else the first."""


@generic
def stack_(leading: Any, arrays: Any, axis: Any) -> Any:
    """`stack` by the type of its leading operand: a dual, structured or device array, else the first."""


def _leading(arrays: list[Any]) -> Any:
    """The operand whose type has most to say about what the arrays are together."""

    def weight(x: Any) -> int:
        if x.carries_derivatives:
            return 3
        return 2 if not isinstance(x, (DenseArray, Wrapper)) else int(x.place.rank >= 2)

    return max(arrays, key=weight)


@keyword_only("axis", "out")
@explained
def concat(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> AbstractArray:
    """Arrays one after another along an axis (of all their elements in a row, if it is None).

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
    >>> x = mb.HostArray([1.0, 2.0])
    >>> print(mb.concat([x, 10 * x]))
    [ 1.  2. 10. 20.]
    """
    given = alike("concat", arrays)
    if out is not None or dtype is not None:
        return concatenate(given, axis, out, dtype=dtype, casting=casting)
    return concat_(_leading(given), given, axis)


@concat_.method
def _(leading: AbstractArray, arrays: list, axis: Any) -> Any:
    return concatenate(arrays, axis)


@keyword_only("axis", "out")
@explained
def stack(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> AbstractArray:
    """Arrays of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of arrays
        Arrays of one shape.
    axis : int, default 0
        Where the new axis is in the result.
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
    >>> x = mb.HostArray([1, 2])
    >>> print(mb.stack([x, x * 10]))
    [[ 1  2]
     [10 20]]
    """
    plain = out is None and dtype is None and not stack_.core.has_methods_of_users
    quick = at_once(arrays, axis, stacked=True) if plain else None
    if quick is not None:
        return quick
    given = alike("stack", arrays)
    if dtype is not None:
        given = [x.astype(dtype, casting=casting, copy=False) for x in given]
    shapes = {x.shape for x in given}
    if len(shapes) > 1:
        raise ValueError(
            f"all input arrays must have the same shape, and these have {', '.join(map(str, sorted(shapes)))}. "
            "To put them one after another use mb.concat(arrays)."
        )
    return into(out, stack_(_leading(given), given, axis), casting)


@stack_.method
def _(leading: AbstractArray, arrays: list, axis: Any) -> Any:
    if leading.carries_derivatives:  # in the parts of a structured array
        arrays = with_duals_dense(arrays)
        return stack_(_leading(arrays), arrays, axis)
    quick = at_once(arrays, axis, stacked=True)
    if quick is not None:
        return quick
    shape = arrays[0].shape
    axis = one_axis(axis, len(shape) + 1)
    shape = (*shape[:axis], len(arrays), *shape[axis:])
    if library_is_quicker(leaf_family(type(leading)), math.prod(shape), *arrays):
        return library.call("stack", arrays, axis=axis)
    out = verbs.similar(leading, dtype=np.result_type(*[x.dtype for x in arrays]), shape=shape)
    for i, x in enumerate(arrays):
        # A slice where the pieces are numbers: this is one array operation, not a loop over elements.
        verbs.setitem(out, (*(_ALL,) * axis, i if shape[1:] else slice(i, i + 1), ...), x)
    return out


# Repeating and rolling


@keyword_only("axis")
@array_function
def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:
    """`x` shifted along axes, or as a whole; what leaves at one end comes in at the other.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    shift : int or tuple of int
        How far; to the end, if it is positive.
    axis : int, tuple of int or None
        Along which axes; None shifts all elements in a row.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.roll(mb.HostArray([1, 2, 3, 4]), 1))
    [4 1 2 3]
    """
    family = leaf_family(type(x))
    if family.home.kind != "traced" and pending(x):
        # (What is rolled once is mostly rolled again, and each of its parts would be computed anew.)
        x = computed(x)
    if x.ndim and library_is_quicker(family, x.size, x):
        return library.call("roll", x, shift, axis)
    source = x
    if axis is None:
        source, axis = x if x.ndim == 1 else verbs.reshape(x, (-1,)), 0
    out = verbs.similar(source)
    shifts = _shifts(shift, axis, source)
    if not x.size:
        return verbs.similar(x)
    # Along each axis two pieces change places: (where to, where from).
    pieces = [[(slice(s, None), slice(None, -s)), (slice(None, s), slice(-s, None))] for s in shifts.values()]
    for piece in itertools.product(*pieces):
        there, here = [_ALL] * out.ndim, [_ALL] * out.ndim
        for d, (to, of) in zip(shifts, piece, strict=True):
            there[d], here[d] = to, of
        verbs.setitem(out, (*there, ...), verbs.getitem(source, (*here, ...)))
    return out if source is x else standing_alone(verbs.reshape(out, x.shape))


def _shifts(shift: Any, axis: Any, x: Any) -> dict[int, int]:
    """How far each axis is shifted, from 1 to its size - 1; axes that are not are left out."""
    amounts = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    if len(amounts) != len(axes) and 1 not in (len(amounts), len(axes)):
        raise ValueError(
            f"'shift' and 'axis' should be scalars or 1D sequences of one length, and have {len(amounts)} and "
            f"{len(axes)} entries."
        )
    found: dict[int, int] = {}
    for i in range(max(len(amounts), len(axes))):
        d = one_axis(axes[i % len(axes)], x.ndim)
        found[d] = found.get(d, 0) + int(amounts[i % len(amounts)])
    return {d: s % x.shape[d] for d, s in found.items() if x.shape[d] and s % x.shape[d]}


@keyword_only("axis")
@array_function
def repeat(x: Any, repeats: Any, /, axis: Any = None) -> Any:
    """Each element of `x` several times in a row, along an axis or of all elements.

    `repeats` is a number, or an array with a number for each element along the axis.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    repeats : int or array of int
        How often each.
    axis : int or None
        Along which axis; None takes all elements in a row.

    Returns
    -------
    array
        In new memory, of the dtype and place of `x`; of one dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.repeat(mb.HostArray([1, 2]), 3))
    [1 1 1 2 2 2]
    """
    if axis is None or (not x.ndim and axis in (0, -1)):
        x, axis = verbs.reshape(x, (-1,)), 0
    axis = one_axis(axis, x.ndim)
    if not isinstance(repeats, (int, np.integer)):
        counts = as_selection(repeats, x)
        if counts.dtype.kind not in "iu":
            raise TypeError(f"repeat takes whole numbers of repeats, and these are {counts.dtype.name}.")
        return library.call("repeat", x, counts, axis=axis)
    if repeats < 0:
        raise ValueError(f"repeats may not contain negative values: {repeats}.")
    shape = (*x.shape[:axis], x.shape[axis] * int(repeats), *x.shape[axis + 1 :])
    if library_is_quicker(leaf_family(type(x)), math.prod(shape)):
        return library.call("repeat", x, int(repeats), axis=axis)
    apart = verbs.similar(x, shape=(*x.shape[: axis + 1], int(repeats), *x.shape[axis + 1 :]))
    if apart.size:
        verbs.assign(apart, expand_dims(x, axis + 1))
    return standing_alone(verbs.reshape(apart, shape))


@array_function
def tile(x: Any, repetitions: Any, /) -> Any:
    """`x` side by side with itself, as often as `repetitions` says for each dimension.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    repetitions : int or tuple of int
        How often along each dimension.

    Returns
    -------
    array
        In new memory, of the dtype and place of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.tile(mb.HostArray([1, 2]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    times = as_shape(repetitions)
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    sizes = (1,) * (ndim - x.ndim) + x.shape
    shape = tuple(n * r for n, r in zip(sizes, times, strict=True))
    if library_is_quicker(leaf_family(type(x)), math.prod(shape), x):
        return library.call("tile", x, times)
    # What is repeated along a dimension gets one of its own in front of it.
    apart = [(n,) if r == 1 else (r, n) for n, r in zip(sizes, times, strict=True)]
    out = verbs.similar(x, shape=tuple(itertools.chain(*apart)))
    if out.size:
        index = [(_ALL,) if r == 1 else (None, _ALL) for r in times]
        source = verbs.getitem(x, (*(None,) * (ndim - x.ndim), ...))
        spread = verbs.getitem(source, (*itertools.chain(*index), ...))
        verbs.assign(out, spread)
    return standing_alone(verbs.reshape(out, shape))
