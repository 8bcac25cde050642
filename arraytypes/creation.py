"""Making arrays: of the default type, or of the one `device=` names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import as_numpy, as_shape, is_small, wrap
from mirabelle.arraytypes.elementwise import Scalar
from mirabelle.arraytypes.gpu_interop import on_card, shared
from mirabelle.arraytypes.host import HostArray, share
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import Leaf


def _filled(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    maker = maker_of(device)
    leaf = Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype)))
    x = wrap(maker.family, leaf)
    if type(leaf.view) is np.ndarray and type(value) is int and value in (0, 1) and is_small(leaf.shape, 1):
        leaf.view.fill(value)
        return maker(x)
    del leaf  # a second holder would be taken for a reader, and the write would go to other memory
    return maker(verbs.assign(x, value))


def _from_numpy(data: np.ndarray, device: Any) -> Any:
    maker = maker_of(device)
    return maker(wrap(maker.family, Leaf(maker.family._upload(as_numpy(data, None)))))


@keyword_only("dtype")
@creates
def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """A new array of undefined contents. `device` is an array type; HostArray if not given.

    >>> import mirabelle as mb
    >>> mb.empty((2, 3)).shape
    (2, 3)
    """
    maker = maker_of(device)
    return maker(
        wrap(maker.family, Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype or np.float64))))
    )


@keyword_only("dtype")
@creates
def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """A new array of zeros.

    >>> import mirabelle as mb
    >>> print(mb.zeros(3))
    [0. 0. 0.]
    """
    return _filled(shape, 0, dtype or np.float64, device)


@keyword_only("dtype")
@creates
def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """A new array of ones.

    >>> import mirabelle as mb
    >>> print(mb.ones(2, dtype=mb.int32))
    [1 1]
    """
    return _filled(shape, 1, dtype or np.float64, device)


@keyword_only("dtype")
@creates
def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """A new array of one value.

    >>> import mirabelle as mb
    >>> print(mb.full(2, 7))
    [7 7]
    """
    if isinstance(fill_value, AbstractArray) and fill_value.carries_derivatives:
        return _from_array(verbs.copy(verbs.broadcast_to(fill_value, as_shape(shape))), dtype, device, None)
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, AbstractArray) else np.asarray(fill_value).dtype
    return _filled(shape, fill_value, dtype, device)


def _like(x: Any, value: Any, dtype: Any, device: Any) -> Any:
    """One value in the shape of `x`, where `x` is unless a device is given."""
    if not isinstance(x, AbstractArray):
        x = asarray(x)
    if isinstance(value, AbstractArray) and value.carries_derivatives:
        return full(x.shape, value, dtype=dtype or x.dtype, device=device)
    if device is not None:
        return _filled(x.shape, value, dtype or x.dtype, device)
    return verbs.assign(verbs.similar(x, dtype=dtype), value)


@keyword_only("dtype")
def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """A new array of the shape, dtype and place of `x`, of undefined contents."""
    if device is not None or not isinstance(x, AbstractArray):
        return empty(np.shape(x), dtype or asarray(x).dtype, device=device)
    return verbs.similar(x, dtype=dtype)


@keyword_only("dtype")
def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape, dtype and place of `x`.

    >>> import mirabelle as mb
    >>> print(mb.zeros_like(mb.HostArray([1, 2])))
    [0 0]
    """
    return _like(x, 0, dtype, device)


@keyword_only("dtype")
def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones of the shape, dtype and place of `x`."""
    return _like(x, 1, dtype, device)


@keyword_only("dtype")
def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """One value in the shape, dtype and place of `x`."""
    return _like(x, fill_value, dtype, device)


@keyword_only("dtype")
@creates
def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Any:
    """Evenly spaced numbers from `start` up to, but without, `stop`. (From 0 to `start`, if it is alone.)

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
    data = np.arange(start, stop, step, dtype=dtype)
    made = _from_numpy(data, device)
    if data.size > 1 and data.dtype.kind in "iu" and type(getattr(made, "_node", None)) is Leaf:
        first, second, last = (int(data[i]) for i in (0, 1, -1))
        if first != second and last == first + (data.size - 1) * (second - first):
            # As an index it needs no look at it.
            made._node.remember("entries", (min(first, last), max(first, last), True))
    return made


@keyword_only("endpoint")
@creates
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop` (without `stop`, if not `endpoint`).

    >>> import mirabelle as mb
    >>> print(mb.linspace(0, 1, 3))
    [0.  0.5 1. ]
    """
    made = np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
    return made if isinstance(made, AbstractArray) and device is None else _from_numpy(made, device)


@keyword_only("dtype")
@creates
def asarray(obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array, number, (nested) list or any other array's data as an array, without a copy where possible.

    A NumPy array is shared, and so is another library's on a card, which becomes one of that card's type:
    writes go both ways, and expressions over it are evaluated at once, because NumPy may write to it at any
    time. `HostArray(data)` copies once and lets them fuse.
    `copy=True` always copies; `copy=False` raises where a copy would be needed.

    >>> import mirabelle as mb, numpy as np
    >>> n = np.zeros(2)
    >>> x = mb.asarray(n)
    >>> x[0] = 5
    >>> n
    array([5., 0.])
    """
    if isinstance(obj, AbstractArray):
        return _from_array(obj, dtype, device, copy)
    if on_card(obj):
        return _from_array(shared(obj), dtype, device, copy)
    maker = maker_of(device)
    wanted = None if dtype is None else checked_dtype(dtype)
    data = obj if isinstance(obj, np.ndarray) else _as_shared(obj, copy)
    if data is not None and maker.family is HostArray and maker.show is None and not copy:
        if wanted is None or wanted == data.dtype:
            return share(data)
        if copy is False:
            raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
    if copy is False:
        raise ValueError(
            f"A {type(obj).__name__} cannot be shared, only copied, into {maker.name}. Leave copy=False away."
        )
    if isinstance(obj, (list, tuple)) and _holds_arrays_to_join(obj):
        made = _joined(obj, None if device is None else maker)
        return made if wanted is None else verbs.astype(made, wanted, copy=False)
    source = obj if data is None else data
    return maker(wrap(maker.family, Leaf(maker.family._upload(as_numpy(source, wanted)))))


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
    return verbs.copy(made) if copy and made is x else made


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


def _holds_arrays_to_join(nest: Any) -> bool:
    """Is one of the arrays in nested lists on a device, where NumPy cannot read it, or of dual numbers?"""
    return any(
        x.carries_derivatives or x.place.rank >= 2
        if isinstance(x, AbstractArray)
        else isinstance(x, (list, tuple)) and _holds_arrays_to_join(x)
        for x in nest
    )


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
