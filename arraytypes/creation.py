"""Making arrays: of the default type, or of the one `device=` names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, pool
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import (
    MOVED,
    VIEWS,
    DenseArray,
    as_numpy,
    as_shape,
    as_size,
    constructed,
    wrap,
)
from mirabelle.arraytypes.elementwise import Scalar
from mirabelle.arraytypes.gpu_interop import on_card, shared
from mirabelle.arraytypes.host import HostArray, readable, share
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import Leaf


def _filled(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    maker = maker_of(device)
    leaf = Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype)))
    x = wrap(maker.family, leaf)
    del leaf  # a second holder would be taken for a reader, and the write would go to other memory
    return constructed(maker(x if _filled_at_once(x, value) else verbs.assign(x, value)))


def _filled_at_once(x: Any, value: Any) -> bool:
    """Fill a new array of the host, of which one thread is sooner done, with a number that its dtype holds; say
    no for all others."""
    leaf = x._node if isinstance(x, DenseArray) else None
    if type(leaf) is not Leaf or type(leaf.view) is not np.ndarray:
        return False
    if leaf.dtype.kind not in _FILLS.get(type(value), ""):
        return False
    if value not in (0, 1) and (leaf.dtype.char not in "lqdD" or not abs(value) < _LARGE):
        return False
    n = math.prod(leaf.shape)
    if n > max(settings.small_size, MOVED * settings.thread_size):
        return False
    leaf.view.fill(value)
    if counters.active:
        counters.launched(0, leaf.view.nbytes)
    return True


# Python's numbers by the kinds of dtypes that hold them. (What others there are is told by an error.)
_FILLS = {bool: "biufc", int: "biufc", float: "fc", complex: "c"}
_LARGE = 1 << 62


def _in_order(x: Any, order: str) -> Any:
    """A new array with its rows ("C") or its columns ("F") one after another in memory."""
    if order in ("K", "A"):
        return x
    from mirabelle.arraytypes.functions.memory import in_memory_order

    return in_memory_order(x, order)


def _from_numpy(data: np.ndarray, device: Any) -> Any:
    maker = maker_of(device)
    return constructed(maker(wrap(maker.family, Leaf(maker.family._upload(as_numpy(data, None))))))


def _from_new(data: np.ndarray, device: Any) -> Any:
    """As `_from_numpy`, for memory that NumPy has just made and nobody else knows: no copy on the host."""
    maker = maker_of(device)
    family, of_numpys = maker.family, VIEWS[np.ndarray]
    if family is not of_numpys:
        return _from_numpy(data, device)
    new = data if type(data) is np.ndarray else as_numpy(data, None)
    return constructed(maker(wrap(family, family._wrap_result(new))))


@keyword_only("dtype", "order")
@creates
@explained
def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> AbstractArray:
    """A new array of undefined contents. `device` is an array type; HostArray if not given.

    `order` says what lies one after another in memory: rows ("C") or columns ("F").

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype or None
        The dtype of the result; None is float64.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of dtype float64 unless `dtype` is given, in new memory at the place that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.empty((2, 3)).shape
    (2, 3)
    """
    maker = maker_of(device)
    made = maker(
        wrap(maker.family, Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype or np.float64))))
    )
    return constructed(made) if order == "C" else _in_order(made, order)


@keyword_only("dtype", "order")
@creates
@explained
def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> AbstractArray:
    """A new array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype or None
        The dtype of the result; None is float64.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of dtype float64 unless `dtype` is given, in new memory at the place that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.zeros(3))
    [0. 0. 0.]
    """
    made = _filled(shape, 0, dtype or np.float64, device)
    return made if order == "C" else _in_order(made, order)


@keyword_only("dtype", "order")
@creates
@explained
def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> AbstractArray:
    """A new array of ones.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype or None
        The dtype of the result; None is float64.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of dtype float64 unless `dtype` is given, in new memory at the place that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ones(2, dtype=mb.int32))
    [1 1]
    """
    made = _filled(shape, 1, dtype or np.float64, device)
    return made if order == "C" else _in_order(made, order)


@keyword_only("dtype", "order")
@creates
@explained
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None
) -> AbstractArray:
    """A new array of one value.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    fill_value : number
        The value.
    dtype : dtype or None
        The dtype of the result; None is that of the value.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of the dtype of `fill_value` unless `dtype` is given, in new memory at the place that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.full(2, 7))
    [7 7]
    """
    if isinstance(fill_value, AbstractArray) and fill_value.carries_derivatives:
        return _from_array(verbs.copy(verbs.broadcast_to(fill_value, as_shape(shape))), dtype, device, None)
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, AbstractArray) else np.asarray(fill_value).dtype
        if dtype.kind == "O":
            as_numpy(fill_value, None)  # which says what is wrong with it
    made = _filled(shape, fill_value, dtype, device)
    return made if order == "C" else _in_order(made, order)


def _like(x: Any, value: Any, dtype: Any, order: str, shape: Any, device: Any) -> Any:
    """One value (None: any) in the shape of `x`, where `x` is, unless a shape or a device is given."""
    if not isinstance(x, AbstractArray):
        x = asarray(x)
    if order not in ("K", "A"):
        return _in_order(_like(x, value, dtype, "K", shape, device), order)
    shape = None if shape is None else as_shape(shape)
    if isinstance(value, AbstractArray) and value.carries_derivatives:
        return full(x.shape if shape is None else shape, value, dtype=dtype or x.dtype, device=device)
    if device is not None:
        shape = x.shape if shape is None else shape
        if value is None:
            return empty(shape, dtype or x.dtype, device=device)
        return _filled(shape, value, dtype or x.dtype, device)
    made = verbs.similar(x, dtype=dtype, shape=shape)
    return made if value is None or _filled_at_once(made, value) else verbs.assign(made, value)


@keyword_only("dtype", "order")
@explained
def empty_like(
    x: Any, /, dtype: Any = None, order: str = "K", *, shape: Any = None, device: Any = None
) -> AbstractArray:
    """A new array of the shape, dtype and place of `x` (unless others are given), of undefined contents.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        Another dtype.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    shape : tuple of int or None
        Another shape.
    device : array type, place or None
        Where the result is made; None is where `x` is.

    Returns
    -------
    array
        In new memory, which can be written to also where `x` is a read-only view.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.empty_like(mb.HostArray([1.0, 2.0]), dtype=mb.int32).dtype
    dtype('int32')
    """
    return _like(x, None, dtype, order, shape, device)


@keyword_only("dtype", "order")
@explained
def zeros_like(
    x: Any, /, dtype: Any = None, order: str = "K", *, shape: Any = None, device: Any = None
) -> AbstractArray:
    """Zeros of the shape, dtype and place of `x`, unless others are given.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        Another dtype.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    shape : tuple of int or None
        Another shape.
    device : array type, place or None
        Where the result is made; None is where `x` is.

    Returns
    -------
    array
        In new memory, which can be written to also where `x` is a read-only view.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.zeros_like(mb.HostArray([1, 2])))
    [0 0]
    """
    return _like(x, 0, dtype, order, shape, device)


@keyword_only("dtype", "order")
@explained
def ones_like(
    x: Any, /, dtype: Any = None, order: str = "K", *, shape: Any = None, device: Any = None
) -> AbstractArray:
    """Ones of the shape, dtype and place of `x`, unless others are given.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        Another dtype.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    shape : tuple of int or None
        Another shape.
    device : array type, place or None
        Where the result is made; None is where `x` is.

    Returns
    -------
    array
        In new memory, which can be written to also where `x` is a read-only view.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ones_like(mb.HostArray([[1, 2], [3, 4]])))
    [[1 1]
     [1 1]]
    """
    return _like(x, 1, dtype, order, shape, device)


@keyword_only("dtype", "order")
@explained
def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, order: str = "K", *, shape: Any = None, device: Any = None
) -> AbstractArray:
    """One value in the shape, dtype and place of `x`, unless others are given.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    fill_value : number
        The value.
    dtype : dtype or None
        Another dtype.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    shape : tuple of int or None
        Another shape.
    device : array type, place or None
        Where the result is made; None is where `x` is.

    Returns
    -------
    array
        In new memory, which can be written to also where `x` is a read-only view.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.full_like(mb.HostArray([1.0, 2.0]), 7))
    [7. 7.]
    """
    return _like(x, fill_value, dtype, order, shape, device)


@keyword_only("dtype")
@creates
@explained
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> AbstractArray:
    """Evenly spaced numbers from `start` up to, but without, `stop`. (From 0 to `start`, if it is alone.)

    Parameters
    ----------
    start : number
        The first value, or the end if it is alone.
    stop : number or None
        Where it ends, without this value.
    step : number, default 1
        The distance of neighbours.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the numbers.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension: int64 if all numbers are integers, else float64, unless `dtype` is given. Without
        elements, where there are none between.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.arange(4), mb.arange(1, 2, 0.25))
    [0 1 2 3] [1.   1.25 1.5  1.75]
    """
    start, stop, step = (x.item() if isinstance(x, AbstractArray) else x for x in (start, stop, step))
    if stop is None:
        start, stop = 0, start
    if step and type(start) is type(stop) is type(step) is int:
        numbers = range(start, stop, step)
        maker = maker_of(device)
        view = maker.family._range(numbers, np.dtype(np.int64 if dtype is None else dtype))
        if view is not None:
            leaf = Leaf(view)
            if leaf.dtype.kind in "iu":
                leaf.remember("entries", (min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1]), True))
            return maker(wrap(maker.family, leaf))
    if type(step) in (int, float) and not step:
        raise ZeroDivisionError(
            "arange: a step of 0 ends nowhere. Give how many there are: `mb.linspace(a, b, n)`."
        )
    try:
        data = np.arange(start, stop, step, dtype=dtype)
    except MemoryError as e:
        raise pool.no_room_after(e) from None
    except ValueError as e:
        raise _no_range(start, stop, step, e) from None
    made = _from_new(data, device)
    if data.size > 1 and data.dtype.kind in "iu" and type(getattr(made, "_node", None)) is Leaf:
        first, second, last = (int(data[i]) for i in (0, 1, -1))
        if first != second and last == first + (data.size - 1) * (second - first):
            # As an index it needs no look at it.
            made._node.remember("entries", (min(first, last), max(first, last), True))
    return made


def _no_range(start: Any, stop: Any, step: Any, error: ValueError) -> ValueError:
    """What to raise for a range that NumPy cannot make."""
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            return ValueError(
                f"arange: {name} is a finite number, not {value!r}. Find where it comes from: `mb.isfinite(x)` "
                "says which elements are numbers."
            )
    if "Maximum allowed size" not in str(error) and "too big" not in str(error):
        return error
    return ValueError(
        f"arange: from {start} to {stop} in steps of {step} are more elements than any memory holds. Take "
        "larger steps, or say how many numbers there are: `mb.linspace(start, stop, 1000)`."
    )


@keyword_only("endpoint", "retstep")
@creates
@explained
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    *,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> AbstractArray | tuple[AbstractArray, AbstractArray]:
    """`num` evenly spaced numbers from `start` to `stop` (without `stop`, if not `endpoint`).

    With `retstep`, also the step between them. Between arrays of numbers they run along a new `axis`.

    Parameters
    ----------
    start : number
        The first value.
    stop : number
        The last value.
    num : int, default 50
        How many.
    endpoint : bool, default True
        Whether `stop` is the last value.
    retstep : bool, default False
        Whether the distance is returned, too.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the numbers.
    axis : int, default 0
        Along which axis; negative ones count from the last.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array or tuple
        Of one dimension, and of dtype float64 (complex128 for complex ends) unless `dtype` is given. With
        `retstep` a tuple: the numbers and the step.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linspace(0, 1, 3))
    [0.  0.5 1. ]
    """
    numpys: Any = np.linspace
    num = as_size(num, "linspace", "num")
    if isinstance(start, AbstractArray) or isinstance(stop, AbstractArray):
        made = library.call("linspace", start, stop, num, endpoint, retstep, dtype, axis)
    else:
        try:
            made = numpys(start, stop, num, endpoint, retstep, dtype, axis)
        except MemoryError as e:
            raise pool.no_room_after(e) from None
    pair: tuple[Any, Any] = made if retstep else (made, None)
    values, step = pair
    ours = isinstance(values, AbstractArray)
    values = _from_array(values, None, device, None) if ours else _from_new(values, device)
    return (values, step) if retstep else values


@keyword_only("dtype", "order")
@creates
@explained
def asarray(
    obj: Any, /, dtype: Any = None, order: str = "K", *, device: Any = None, copy: bool | None = None
) -> AbstractArray:
    """An array, number, (nested) list or any other array's data as an array, without a copy where possible.

    A NumPy array is shared, and so is another library's on a card, which becomes one of that card's type:
    writes go both ways, and expressions over it are evaluated at once, because NumPy may write to it at any
    time. `HostArray(data)` copies once and lets them fuse.
    `copy=True` always copies; `copy=False` raises where a copy would be needed. Also called `mb.asanyarray`.

    Parameters
    ----------
    obj : array, list or number
        The data.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.
    copy : bool or None
        True copies always, False never (an error where it is needed), None where it is needed.

    Returns
    -------
    array
        `obj` itself, if it is an array of ours that has the dtype and the place already.

    Examples
    --------
    >>> import mirabelle as mb, numpy as np
    >>> n = np.zeros(2)
    >>> x = mb.asarray(n)
    >>> x[0] = 5
    >>> n
    array([5., 0.])
    """
    if order not in ("K", "A"):
        made = asarray(obj, dtype, device=device, copy=copy)
        return _in_order(made, order) if copy is not False else _as_it_lies(made, order)
    if isinstance(obj, AbstractArray):
        return _from_array(obj, dtype, device, copy)
    if on_card(obj):
        return _from_array(shared(obj), dtype, device, copy)
    maker = maker_of(device)
    wanted = None if dtype is None else checked_dtype(dtype)
    data = obj if isinstance(obj, np.ndarray) else _as_shared(obj, copy)
    if data is not None and maker.family is HostArray and maker.show is None and not copy:
        if wanted is None or wanted == data.dtype:
            if copy is False and not readable(data):
                raise ValueError(
                    "Memory that is not aligned, or in another byte order than the processor's, needs a copy. "
                    "Leave copy=False away."
                )
            return constructed(share(data))
        if copy is False:
            raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
    if copy is False:
        raise ValueError(
            f"A {type(obj).__name__} cannot be shared, only copied, into {maker.name}. Leave copy=False away."
        )
    if isinstance(obj, (list, tuple)) and holds_arrays_to_join(obj):
        made = _joined(obj, None if device is None else maker)
        return made if wanted is None else verbs.astype(made, wanted, copy=False)
    if data is None and maker.family is HostArray and isinstance(obj, (list, tuple)):
        # (NumPy has just made its memory, which is nobody else's.)
        return _from_new(as_numpy(obj, wanted), device)
    source = obj if data is None else data
    return constructed(maker(wrap(maker.family, Leaf(maker.family._upload(as_numpy(source, wanted))))))


def _as_it_lies(x: Any, order: str) -> Any:
    """`x`, if its memory has the order, for who asked for no copy."""
    if _in_order(x, order) is not x:
        raise ValueError(f"Memory in the order {order!r} needs a copy. Leave copy=False away.")
    return x


def _from_array(x: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    """One of our arrays: itself, cast, moved or copied."""
    made = x
    if device is not None:
        maker = maker_of(device)
        if x.place != maker.family.home:
            made = maker(verbs.adapt(maker.family, x))
    if dtype is not None and checked_dtype(dtype) != made.dtype:
        if copy is False:
            raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
        return verbs.astype(made, dtype)
    if copy is False and made is not x:
        raise ValueError("A change of place needs a copy. Leave copy=False away.")
    return constructed(verbs.copy(made)) if copy and made is x else made


def _as_shared(obj: Any, copy: bool | None) -> np.ndarray | None:
    """The memory of an object that shows it, as a NumPy array.

    By the buffer protocol or DLPack; what `__array__` gives is shared only for who asks for no copy.
    """
    if isinstance(obj, (int, float, complex, np.generic, list, tuple, bytes)) or copy:
        return None
    try:
        return np.asarray(memoryview(obj))
    except (TypeError, ValueError):
        pass
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        return np.from_dlpack(obj)
    if copy is False:
        try:
            return np.asarray(obj, copy=False)
        except (TypeError, ValueError):
            pass
    return None


def holds_arrays_to_join(nest: Any) -> bool:
    """Is one of the arrays in nested lists on a device, where NumPy cannot read it, or of dual numbers?"""
    for x in nest:
        kind = type(x)
        if kind is float or kind is int:
            continue
        if isinstance(x, DenseArray):
            if kind.home.rank >= 2:
                return True
        elif isinstance(x, AbstractArray):
            if x.carries_derivatives or x.place.rank >= 2:
                return True
        elif isinstance(x, (list, tuple)) and holds_arrays_to_join(x):
            return True
    return False


def _joined(nest: Any, maker: Any) -> Any:
    """Nested lists of arrays and numbers as one array, where the arrays are unless a maker is given."""
    from mirabelle.arraytypes.functions.manipulation import stack

    parts = [_joined(x, None) if isinstance(x, (list, tuple)) else x for x in nest]
    made = stack(parts)
    return made if maker is None else maker(verbs.adapt(maker.family, made))


def _register_numpy() -> None:
    """Functions of whole arrays take NumPy's arrays too, which they read where they lie, lists, and numbers."""
    from mirabelle.arraytypes.define import as_array

    for verb in (
        verbs.sum, verbs.prod, verbs.min, verbs.max, verbs.any, verbs.all, verbs.count_nonzero,
        verbs.mean, verbs.var, verbs.std, verbs.norm, verbs.clip, verbs.astype, verbs.reshape,
        verbs.permute_dims, verbs.broadcast_to, verbs.accumulate, verbs.copy,
    ):  # fmt: skip

        def method(x: Any, *args: Any, _verb: Any = verb, **kwargs: Any) -> Any:
            return _verb(as_array(x), *args, **kwargs)

        verb.core.register(method, (np.ndarray | list | tuple | Scalar, *[object] * (verb.core.arity - 1)))


_register_numpy()
