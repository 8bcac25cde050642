"""Elements chosen, or written, by conditions.

`select` and `choose` are nested `where`s, and so one kernel with what surrounds them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import check_cast, fitting
from mirabelle.arraytypes.define import array_function, as_array, as_selection
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.tree import broadcast_shapes


def _first_of(*values: Any) -> Any:
    """The first array of ours among values: lists and numbers join its place."""
    return next((v for v in values if isinstance(v, AbstractArray)), None)


@explained
def select(condlist: Any, choicelist: Any, default: Any = 0) -> AbstractArray:
    """Each element of the choice whose condition is the first to hold there; `default` where none does.

    Parameters
    ----------
    condlist : sequence of arrays of bool
        The conditions.
    choicelist : sequence of arrays
        The choices.
    default : number, default 0
        What stands where no condition holds.

    Returns
    -------
    array
        Of the shape that conditions and choices have together, and of the dtype of choices and default
        together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([0, 1, 2, 3, 4])
    >>> print(mb.select([x < 2, x > 2], [x, x * 10], -1))
    [ 0  1 -1 30 40]
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not conditions:
        raise ValueError("select with an empty condition list is not possible")
    like = _first_of(*conditions, *choices, default)
    conditions = [as_selection(c, like) for c in conditions]
    for i, c in enumerate(conditions):
        if c.dtype != np.bool_:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray, not {c.dtype.name}")
    values = [
        v if isinstance(v, (bool, int, float, complex, np.generic)) else as_array(v, like) for v in choices
    ]
    kinds = [v.dtype if isinstance(v, AbstractArray) else v for v in (*values, default)]
    dtype = np.result_type(*kinds)
    shape = broadcast_shapes(
        [v.shape for v in (*conditions, *values) if isinstance(v, AbstractArray)], "select"
    )
    out = default if isinstance(default, AbstractArray) else dtype.type(default)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        value = cast_to(value, dtype) if isinstance(value, AbstractArray) else dtype.type(value)
        out = verbs.where(condition, value, out)
    return out if out.shape == shape else verbs.copy(verbs.broadcast_to(out, shape))


@array_function
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Functions (or numbers) of the elements of `x` where their conditions hold; later ones win.

    One function more than conditions is for where none holds. As in NumPy, each function gets the
    elements that it is for, in a row, and further arguments of the call.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    condlist : sequence of arrays of bool
        The conditions.
    funclist : sequence of callables and numbers
        What holds under each; one more is for where none holds.
    *args : arguments
        What else the functions are given.
    **kw : keyword arguments
        What else the functions are given.

    Returns
    -------
    array
        Of the shape and dtype of `x`, in new memory: what the functions return is converted to it. Zeros,
        where no condition holds.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([-2.0, -1.0, 3.0])
    >>> print(mb.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * 10]))
    [ 2.  1. 30.]
    """
    if not isinstance(condlist, (list, tuple)) or (
        condlist and not isinstance(condlist[0], (list, np.ndarray, AbstractArray)) and x.ndim
    ):
        condlist = [condlist]
    conditions = [cast_to(as_selection(c, x), np.dtype(bool)) for c in condlist]
    n, functions = len(conditions), list(funclist)
    if n == len(functions) - 1:
        conditions.append(verbs.logical_not(functools.reduce(verbs.logical_or, conditions)))
    elif n != len(functions):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    out = verbs.assign(verbs.similar(x), 0)
    for condition, f in zip(conditions, functions, strict=True):
        condition = verbs.broadcast_to(condition, x.shape)
        if callable(f):
            chosen = verbs.getitem(x, condition)
            if not chosen._is_counted or chosen.size:  # (in a program nobody knows)
                verbs.setitem(out, condition, f(chosen, *args, **kw))
        else:
            verbs.setitem(out, condition, f)
    return out


@explained
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> AbstractArray:
    """Each element of the choice whose number stands at its place in `a`.

    `mode` says what happens to numbers that are no choice's: "raise", "wrap" or "clip".

    Parameters
    ----------
    a : array of int
        Which choice is taken at each place.
    choices : sequence of arrays
        The choices.
    out : array or None
        Where the result is written; it is returned, too.
    mode : str, default 'raise'
        What indices that are outside do: "raise", "wrap" or "clip".

    Returns
    -------
    array
        Of the shape that `a` and the choices have together, and of the dtype of the choices.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.choose(mb.HostArray([0, 1, 0]), [[1, 2, 3], [10, 20, 30]]))
    [ 1 20  3]
    """
    like = _first_of(a, *choices) if isinstance(choices, (list, tuple)) else _first_of(a, choices)
    a = as_selection(a, like)
    options = [as_array(c, a) for c in choices]
    n = len(options)
    if not n:
        raise ValueError("choose needs at least one choice")
    if a.dtype.kind not in "iub":
        raise TypeError(
            f"Cannot cast array data from {a.dtype!r} to {np.dtype(np.int64)!r}: `a` holds integers."
        )
    index = cast_to(a, np.dtype(np.int64))
    if mode == "wrap":
        index = verbs.remainder(index, n)
    elif mode == "clip":
        index = verbs.clip(index, 0, n - 1)
    elif mode != "raise":
        raise ValueError(f'mode is "raise", "wrap" or "clip", not {mode!r}.')
    elif bool(verbs.any(verbs.logical_or(verbs.less(index, 0), verbs.greater_equal(index, n)))):
        raise ValueError(f"invalid entry in choice array: there are {n} choices. Or give mode='clip'.")
    dtype = np.result_type(*[c.dtype for c in options])
    chosen = cast_to(options[-1], dtype)
    for k in reversed(range(n - 1)):
        chosen = verbs.where(verbs.equal(index, k), cast_to(options[k], dtype), chosen)
    shape = broadcast_shapes([index.shape, *[c.shape for c in options]], "choose")
    if n == 1 or chosen.shape != shape:
        chosen = verbs.copy(verbs.broadcast_to(chosen, shape))  # (which may be a choice as it was given)
    return into(out, chosen, "unsafe")


@array_function(arity=2, selects=True)
def extract(condition: Any, arr: Any) -> Any:
    """The elements of `arr` for which `condition` is not zero, in a row.

    Parameters
    ----------
    condition : array
        Which elements are kept.
    arr : array
        An array; a list, a number or a NumPy array becomes one.

    Returns
    -------
    array
        In new memory: of one dimension and of the dtype of `arr`; without elements, where the condition
        holds nowhere.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1, 2, 3, 4])
    >>> print(mb.extract(x % 2 == 0, x))
    [2 4]
    """
    return _held(verbs.reshape(arr, (-1,)), verbs.reshape(condition, (-1,)), 0)


def _held(x: Any, mask: Any, axis: int) -> Any:
    """What a mask holds of an axis, which may be longer than the mask."""
    mask = cast_to(mask, np.dtype(bool))
    n, m = x.shape[axis], mask.shape[0]
    lead = (slice(None),) * axis
    if m > n:
        if bool(verbs.any(verbs.getitem(mask, slice(n, None)))):
            raise IndexError(f"index {m - 1} is out of bounds for axis {axis} with size {n}")
        mask = verbs.getitem(mask, slice(0, n))
    if m < n:
        x = verbs.getitem(x, (*lead, slice(0, m)))
    return verbs.getitem(x, (*lead, mask) if lead else mask)


@array_function(arity=2, selects=True)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices of `a` along an axis for which the one-dimensional `condition` holds.

    Parameters
    ----------
    condition : array of bool
        Which slices are kept.
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int or None
        Along which axis; None takes all elements in a row.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        In new memory, of the dtype of `a`; of one dimension if `axis` is None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.compress([False, True], mb.HostArray([[1, 2], [3, 4]]), axis=0))
    [[3 4]]
    """
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        a, axis = verbs.reshape(a, (-1,)), 0
    (axis,) = normal_axes(axis, a.ndim)
    return into(out, _held(a, condition, axis))


@array_function
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write `vals`, in turn and as often as it takes, where `mask` holds.

    It goes by NumPy's name alone, since `mb.place` tells where an array is.

    >>> import mirabelle as mb
    >>> import numpy as np
    >>> x = mb.HostArray([1, 2, 3, 4])
    >>> np.place(x, x > 1, [7, 8])
    >>> print(x)
    [1 7 8 7]
    """
    mask, values = (
        cast_to(as_selection(mask, arr), np.dtype(bool)),
        verbs.reshape(fitting(arr, vals, "safe"), (-1,)),
    )
    if mask.size != arr.size:
        raise ValueError(
            f"place: mask and data must be the same size, and have {mask.size} and {arr.size} elements"
        )
    mask = verbs.reshape(mask, arr.shape)
    n = int(verbs.count_nonzero(mask))
    if not n:
        return
    if not values.size:
        raise ValueError("Cannot insert from an empty array!")
    verbs.setitem(arr, mask, _in_turn(values, n))


def _in_turn(values: Any, n: int) -> Any:
    """`n` values in turn."""
    if values.size == 1:
        return verbs.reshape(values, ())
    if values.size >= n:
        return verbs.getitem(values, slice(0, n))
    return verbs.getitem(values, (np.arange(n) % values.size).tolist())


@array_function
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the value at the same place in a row, of `values` repeated, where `mask` holds.

    Parameters
    ----------
    a : array
        What is written to.
    mask : array of bool
        Where.
    values : array or number
        The values.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1, 2, 3, 4])
    >>> mb.putmask(x, x > 2, x * 10)
    >>> print(x)
    [ 1  2 30 40]
    """
    mask, values = cast_to(as_selection(mask, a), np.dtype(bool)), fitting(a, values, "safe")
    if mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    if not a.size or not values.size:
        return
    if values.size > 1 and values.shape != a.shape:
        values = verbs.reshape(_in_turn(verbs.reshape(values, (-1,)), a.size), a.shape)
    elif values.size == 1:
        values = verbs.reshape(values, ())
    write_where(a, values, verbs.reshape(mask, a.shape), "unsafe")


def write_where(dest: Any, source: Any, where: Any, casting: Any = "same_kind") -> None:
    """Write `source` into `dest` where a mask holds, as np.copyto does: one kernel."""
    check_cast(source, dest.dtype, casting)
    source, mask = fitting(dest, source), as_selection(where, dest)
    if mask.dtype != np.bool_:
        raise TypeError(
            f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'"
        )
    if mask.ndim > dest.ndim:  # (a write leaves further dimensions of 1 out)
        raise ValueError(
            f"could not broadcast where mask from shape {mask.shape} into shape {dest.shape}. Give it the "
            "array's dimensions: `mask[0]`."
        )
    verbs.assign(dest, verbs.where(mask, source, dest))


@array_function
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write the values `v`, repeated, at the indices `ind` of all elements in a row.

    `mode` says what happens to indices outside: "raise", "wrap" or "clip".

    Parameters
    ----------
    a : array
        What is written to.
    ind : array of int
        The indices.
    v : array or number
        The values, repeated.
    mode : str, default 'raise'
        What indices that are outside do: "raise", "wrap" or "clip".

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1, 2], [3, 4]])
    >>> mb.put(x, [0, -1], [10, 40])
    >>> print(x)
    [[10  2]
     [ 3 40]]
    """
    index, values = verbs.reshape(as_selection(ind, a), (-1,)), verbs.reshape(fitting(a, v), (-1,))
    if not index.size or not values.size:
        return
    if index.dtype.kind not in "iub":
        raise TypeError(
            f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    index = cast_to(index, np.dtype(np.int64))
    if mode == "wrap":
        index = verbs.remainder(index, a.size)
    elif mode == "clip":
        index = verbs.clip(index, 0, a.size - 1)
    elif mode != "raise":
        raise ValueError(f'mode is "raise", "wrap" or "clip", not {mode!r}.')
    values = _in_turn(values, index.shape[0])
    if a.ndim == 1:
        verbs.setitem(a, index, values)
        return
    low, high = int(verbs.min(index)), int(verbs.max(index))
    if low < -a.size or high >= a.size:
        raise IndexError(
            f"index {low if low < -a.size else high} is out of bounds for axis 0 with size {a.size}"
        )
    index = verbs.remainder(index, a.size)
    where = []
    for n in reversed(a.shape):
        where.append(verbs.remainder(index, n))
        index = verbs.floor_divide(index, n)
    verbs.setitem(a, tuple(reversed(where)), values)
