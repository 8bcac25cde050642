"""Making arrays: of the default type, or of the one `device=` names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import as_numpy, as_shape, wrap
from mirabelle.arraytypes.host import HostArray, share
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


def _filled(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    maker = maker_of(device)
    x = wrap(maker.family, Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype))))
    return maker(verbs.assign(x, value))


def _from_numpy(data: np.ndarray, device: Any) -> Any:
    maker = maker_of(device)
    return maker(wrap(maker.family, Leaf(maker.family._upload(as_numpy(data, None)))))


@creates
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A new array of undefined contents. `device` is an array type; HostArray if not given.

    >>> import mirabelle as mb
    >>> mb.empty((2, 3)).shape
    (2, 3)
    """
    maker = maker_of(device)
    return maker(wrap(maker.family, Leaf(maker.family._empty(as_shape(shape), checked_dtype(dtype or np.float64)))))


@creates
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A new array of zeros.

    >>> import mirabelle as mb
    >>> print(mb.zeros(3))
    [0. 0. 0.]
    """
    return _filled(shape, 0, dtype or np.float64, device)


@creates
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A new array of ones.

    >>> import mirabelle as mb
    >>> print(mb.ones(2, dtype=mb.int32))
    [1 1]
    """
    return _filled(shape, 1, dtype or np.float64, device)


@creates
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A new array of one value.

    >>> import mirabelle as mb
    >>> print(mb.full(2, 7))
    [7 7]
    """
    return _filled(shape, fill_value, dtype or np.asarray(fill_value).dtype, device)


def _like(x: Any, dtype: Any, value: Any) -> Any:
    return verbs.assign(verbs.similar(x, dtype=dtype), value)


def empty_like(x: AbstractArray, *, dtype: Any = None) -> Any:
    """`mb.similar(x)`, by its NumPy name."""
    return verbs.similar(x, dtype=dtype)


def zeros_like(x: AbstractArray, *, dtype: Any = None) -> Any:
    """Zeros of the shape, dtype and place of `x`.

    >>> import mirabelle as mb
    >>> print(mb.zeros_like(mb.HostArray([1, 2])))
    [0 0]
    """
    return _like(x, dtype, 0)


def ones_like(x: AbstractArray, *, dtype: Any = None) -> Any:
    """Ones of the shape, dtype and place of `x`."""
    return _like(x, dtype, 1)


def full_like(x: AbstractArray, fill_value: Any, *, dtype: Any = None) -> Any:
    """One value in the shape, dtype and place of `x`."""
    return _like(x, dtype, fill_value)


@creates
def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Evenly spaced numbers from `start` up to, but without, `stop`.

    >>> import mirabelle as mb
    >>> print(mb.arange(4))
    [0 1 2 3]
    """
    data = np.arange(start, dtype=dtype) if stop is None else np.arange(start, stop, step, dtype=dtype)
    return _from_numpy(data, device)


@creates
def linspace(
    start: Any, stop: Any, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`.

    >>> import mirabelle as mb
    >>> print(mb.linspace(0, 1, 3))
    [0.  0.5 1. ]
    """
    return _from_numpy(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint), device)


@creates
def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """`data` as an array, without a copy where that is possible.

    A NumPy array is shared: writes go both ways, and expressions over it are evaluated at once,
    because NumPy may write to it at any time. `HostArray(data)` copies once and lets them fuse.

    >>> import mirabelle as mb, numpy as np
    >>> n = np.zeros(2)
    >>> x = mb.asarray(n)
    >>> x[0] = 5
    >>> n
    array([5., 0.])
    """
    maker = maker_of(device)
    family = maker.family
    if isinstance(data, AbstractArray):
        x = data if device is None or data.place == family.home else verbs.adapt(family, data)
        if dtype is not None and checked_dtype(dtype) != x.dtype:
            if copy is False:
                raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
            return verbs.astype(x, dtype)
        if copy is False and x is not data:
            raise ValueError("A change of place needs a copy. Leave copy=False away.")
        return verbs.copy(x) if copy else x
    if isinstance(data, np.ndarray) and family is HostArray and not copy and maker.show is None:
        if dtype is None or checked_dtype(dtype) == data.dtype:
            return share(data)
        if copy is False:
            raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
    if copy is False:
        raise ValueError(
            f"A {type(data).__name__} cannot be shared, only copied, into {maker.name}. Leave copy=False away."
        )
    wanted = None if dtype is None else checked_dtype(dtype)
    return maker(wrap(family, Leaf(family._upload(as_numpy(data, wanted)))))


def _register_numpy() -> None:
    """Functions of whole arrays take NumPy's arrays too, and read them where they lie."""
    for verb in (
        verbs.sum, verbs.prod, verbs.min, verbs.max, verbs.any, verbs.all, verbs.count_nonzero,
        verbs.mean, verbs.var, verbs.std, verbs.norm, verbs.clip, verbs.astype, verbs.reshape,
        verbs.permute_dims, verbs.broadcast_to, verbs.accumulate,
    ):  # fmt: skip

        def method(x: np.ndarray, *args: Any, _verb: Any = verb, **kwargs: Any) -> Any:
            return _verb(share(x), *args, **kwargs)

        verb.core.register(method, (np.ndarray, *[object] * (verb.core.arity - 1)))


_register_numpy()
