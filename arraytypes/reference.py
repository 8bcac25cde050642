"""RefArray: arrays on a reference device, a fake GPU with a real one's restrictions.

Its memory is not the host's: no NumPy array, buffer or pointer of it can be had; only kernels
and explicit transfers touch it. It runs in plain CI, so that everything a device needs is
tested without one.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import VIEWS, DenseArray, wrap
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import counters, loading, verbs
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.errors import DeviceError, PlaceError
from mirabelle.dispatch.styles import device
from mirabelle.dispatch.tree import Leaf

_names = itertools.count(1)
# Device addresses: the buffer's number above, the byte within it below.
SHIFT = 40


class RefBuffer:
    """A piece of the device's memory. The bytes are only for the device and for transfers."""

    __slots__ = ("__contents", "name", "nbytes")

    def __init__(self, nbytes: int, unread: bool = False) -> None:
        loading.complete(RefArray)
        # (What no kernel reads is one byte.)
        self.__contents = np.broadcast_to(np.uint8(0), nbytes) if unread else np.zeros(nbytes, np.uint8)
        self.nbytes = nbytes
        self.name = next(_names)

    @property
    def address(self) -> int:
        """Where it begins, for kernels: its number above, the byte within it below."""
        return self.name << SHIFT

    def __repr__(self) -> str:
        return f"RefBuffer({self.name}, {self.nbytes} bytes)"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise DeviceError(
            "Device memory cannot be read as a NumPy array. Fetch it explicitly with mb.to_numpy(x)."
        )

    def _bytes(self) -> np.ndarray:
        """The contents, for `backends.reference` and transfers alone."""
        return self.__contents


class RefView:
    """A strided view of device memory: shape, strides and offset, but no contents.

    Shapes and strides are worked out by NumPy on an array that is never read.
    """

    __slots__ = ("buffer", "offset", "proxy")

    def __init__(self, buffer: RefBuffer, proxy: np.ndarray, offset: int) -> None:
        self.buffer = buffer
        self.proxy = proxy
        self.offset = offset

    @property
    def start(self) -> tuple[int, int]:
        """Where the first element lies, comparable."""
        return self.buffer.name, self.offset

    @property
    def shape(self) -> tuple[int, ...]:
        return self.proxy.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.proxy.strides

    @property
    def dtype(self) -> np.dtype:
        return self.proxy.dtype

    @property
    def size(self) -> int:
        return self.proxy.size

    @property
    def ndim(self) -> int:
        return self.proxy.ndim

    @property
    def nbytes(self) -> int:
        return self.proxy.nbytes

    @property
    def itemsize(self) -> int:
        return self.proxy.itemsize

    @property
    def flags(self) -> Any:
        return self.proxy.flags

    def _shown(self, proxy: np.ndarray) -> RefView:
        before = address_of(self.proxy)
        moved = address_of(proxy) - before if proxy.size else 0
        return RefView(self.buffer, proxy, self.offset + moved)

    def __getitem__(self, index: Any) -> RefView:
        return self._shown(self.proxy[index])

    def transpose(self, axes: Any) -> RefView:
        return self._shown(self.proxy.transpose(axes))

    def reshape(self, shape: tuple[int, ...], copy: bool = False) -> RefView:
        return self._shown(self.proxy.reshape(shape, copy=False))

    def broadcast_to(self, shape: tuple[int, ...]) -> RefView:
        return self._shown(np.broadcast_to(self.proxy, shape))

    def diagonal(self, offset: int, axis1: int, axis2: int) -> RefView:
        return self._shown(self.proxy.diagonal(offset, axis1, axis2))

    def sliding_windows(self, window: tuple[int, ...], axes: tuple[int, ...]) -> RefView:
        return self._shown(np.lib.stride_tricks.sliding_window_view(self.proxy, window, axes))

    def view(self, dtype: np.dtype) -> RefView:
        return self._shown(self.proxy.view(dtype))

    @property
    def real(self) -> RefView:
        return self._shown(self.proxy.real)

    @property
    def imag(self) -> RefView:
        return self._shown(self.proxy.imag)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise DeviceError(
            "Device memory cannot be read as a NumPy array. Fetch it explicitly with mb.to_numpy(x)."
        )

    def _host(self) -> np.ndarray:
        """The contents as a strided NumPy array, for transfers alone."""
        raw = self.buffer._bytes()
        if not self.size:
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, raw.data, self.offset, self.strides)


def _new_view(shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> RefView:
    steps, strides = dtype.itemsize, []
    for n in reversed(shape) if order == "C" else shape:
        strides.append(steps)
        steps *= n
    if order == "C":
        strides.reverse()
    proxy = np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)
    return RefView(RefBuffer(math.prod(shape) * dtype.itemsize), proxy, 0)


class RefArray(DenseArray):
    """An array on the reference device.

    >>> import mirabelle as mb
    >>> x = mb.RefArray([1.0, 2.0, 3.0])
    >>> mb.to_numpy(x * x + 1)
    array([ 2.,  5., 10.])
    """

    __module__ = "mirabelle"
    __slots__ = ()

    home = device("ref")

    @classmethod
    def _upload(cls, data: np.ndarray) -> RefView:
        view = _new_view(data.shape, checked_dtype(data.dtype))
        view._host()[...] = data
        if counters.active:
            counters.add(transfers=1)
        return view

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> RefView:
        return _new_view(shape, dtype, order)

    @classmethod
    def _places(cls, n: int) -> tuple[RefView, int]:
        buffer = RefBuffer(n, unread=True)
        proxy = np.lib.stride_tricks.as_strided(np.empty((), np.uint8), (n,), (1,))
        return RefView(buffer, proxy, 0), buffer.address

    @classmethod
    def _download(cls, view: RefView) -> np.ndarray:
        if counters.active:
            counters.add(transfers=1)
        return np.array(view._host())

    @classmethod
    def _copy_into(cls, dest: RefView, source: RefView) -> None:
        dest._host()[...] = source._host()

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        return Leaf(cls._upload(x))


VIEWS[RefView] = RefArray


@verbs.numpy_view.method
def _(x: RefArray, dtype: Any = None, copy: Any = None) -> np.ndarray:
    raise PlaceError(
        f"{type(x).__name__} of shape {x.shape} lives on {x.place}, and nothing moves it to the host "
        "unasked. Fetch it with `mb.to_numpy(x)`, or move it with `mb.adapt(mb.HostArray, x)`."
    )


def handle(view: RefView) -> Any:
    """A RefArray over a view of device memory."""
    return wrap(RefArray, Leaf(view))
