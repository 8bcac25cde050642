"""Arrays that nobody reads: NumPy works out shapes, strides and overlaps on them for memory that is elsewhere.

A proxy lies in a piece of address space that is reserved and never used: pages without memory, which give
zeros to who reads them all the same (a debugger, say). Where the system reserves none (`ulimit -v`), or for an
array that is larger than what is reserved, a proxy is at an address that is nobody's, and must not be read.

>>> import numpy as np
>>> from mirabelle.arraytypes.proxies import offset_of, proxy_of
>>> part = proxy_of((1 << 20, 1 << 10), np.dtype(np.float64))[3, ::-2]
>>> part.shape, part.strides, offset_of(part)
((512,), (-16,), 32760)
>>> part.base is not None, part[0]
(True, np.float64(0.0))
"""

from __future__ import annotations

import functools
import math
import mmap
import operator
from typing import Any

import numpy as np

from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.forks import ForkLock

# So many bytes of address space, of which arrays begin in the middle.
RESERVED = 1 << 45
# An address that is nobody's.
_NOWHERE = 1 << 46


class _Address:
    """What NumPy is told of an array at an address."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


# There is one address space, whichever threads ask for it first: offsets are from its middle.
_space: list[Any] = []
_lock = ForkLock()


def _reserved() -> Any:
    """The address space, or None. (Forked processes have it, too.)"""
    if not _space:
        with _lock:
            if not _space:
                _space.append(_mapped())
    return _space[0]


def _mapped() -> Any:
    flags = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    try:
        space = mmap.mmap(-1, RESERVED, flags=flags | getattr(mmap, "MAP_NORESERVE", 0x4000))
    except (OSError, ValueError, TypeError, OverflowError):
        return None
    if hasattr(mmap, "MADV_DONTDUMP"):  # who writes a core file would go through all of it
        space.madvise(mmap.MADV_DONTDUMP)
    return space


@functools.cache
def _origin() -> int:
    space = _reserved()
    return _NOWHERE if space is None else address_of(np.ndarray((), np.uint8, space, RESERVED // 2))


def proxy_of(
    shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None, offset: int = 0
) -> np.ndarray:
    """An array of this layout (C's order if nothing is said of strides) that is not to be read."""
    space = _reserved()
    if space is not None:
        try:
            return np.ndarray(shape, dtype, space, RESERVED // 2 + offset, strides)
        except (ValueError, TypeError):  # it is larger than what is reserved
            pass
    interface = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": dtype.str,
        "data": (_origin() + offset, False),
    }
    return np.asarray(_Address(interface))


def offset_of(array: np.ndarray) -> int:
    """Where a part of a proxy begins, in bytes behind where proxies without an offset do."""
    return address_of(array) - _origin()


class ProxyView:
    """A strided view of memory that NumPy does not read: that of a card, of other processes, of a graph.

    It has a layout, and no contents. What shows another part of it is worked out on its proxy; a kind of views
    says how the view of such a part is made (`_shown`).
    """

    # (Lists of parts are short: programs show the same ones again and again.)
    __slots__ = ("_parts", "_proxy", "dtype", "shape")

    # The family of arrays over such views: each has its own class of views.
    family: Any = None
    shape: tuple[int, ...]
    dtype: np.dtype
    _parts: Any
    _proxy: Any

    def _shown(self, proxy: np.ndarray) -> Any:
        """The view of the part that lies as `proxy` does."""
        raise NotImplementedError

    def strided(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        """A view of the memory behind this one, which is contiguous, by an offset and strides in bytes."""
        raise NotImplementedError

    def _refusal(self) -> Exception:
        """The error for whoever takes it for NumPy's memory."""
        raise NotImplementedError

    @property
    def proxy(self) -> np.ndarray:
        if self._proxy is None:
            self._proxy = self._laid_out()
        return self._proxy  # type: ignore[no-any-return]

    def _laid_out(self) -> np.ndarray:
        """The proxy of a view that has been asked for nothing yet: one of whole memory, in C's order."""
        return proxy_of(self.shape, self.dtype)

    @property
    def start(self) -> Any:
        """Where the first element lies, comparable."""
        return self.buffer.name, self.offset  # type: ignore[attr-defined]

    @property
    def offset(self) -> int:
        """Where the first element lies, in bytes from where its memory begins."""
        return offset_of(self._proxy) if self._proxy is not None and self._proxy.size else 0

    @property
    def strides(self) -> tuple[int, ...]:
        return self.proxy.strides

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Any:
        return self.proxy.flags

    def __getitem__(self, index: Any) -> Any:
        key = spelled(index)
        known = self._parts
        if known is None:
            known = self._parts = {}
        try:
            part = known.get(key)
        except TypeError:  # a bound of a slice is an array of one number
            return self[of_numbers(index)]
        if part is None:
            parts = index if type(index) is tuple else (index,)
            part = self._keep(key, self._shown(self.proxy[parts if Ellipsis in parts else (*parts, Ellipsis)]))
        return part

    def transpose(self, axes: Any) -> Any:
        key = "transpose", *axes
        known = self._parts
        if known is None:
            known = self._parts = {}
        part = known.get(key)
        return self._keep(key, self._shown(self.proxy.transpose(axes))) if part is None else part

    def _keep(self, key: Any, part: Any) -> Any:
        if len(self._parts) >= MOST_PARTS:
            self._parts.clear()
        self._parts[key] = part
        return part

    def reshape(self, shape: tuple[int, ...], copy: bool = False) -> Any:
        return self._shown(self.proxy.reshape(shape, copy=False))

    def broadcast_to(self, shape: tuple[int, ...]) -> Any:
        return self._shown(np.broadcast_to(self.proxy, shape))

    def diagonal(self, offset: int, axis1: int, axis2: int) -> Any:
        return self._shown(self.proxy.diagonal(offset, axis1, axis2))

    def sliding_windows(self, window: tuple[int, ...], axes: tuple[int, ...]) -> Any:
        return self._shown(np.lib.stride_tricks.sliding_window_view(self.proxy, window, axes))

    def view(self, dtype: np.dtype) -> Any:
        """The same bytes read as another dtype."""
        return self._shown(self.proxy.view(dtype))

    @property
    def real(self) -> Any:
        return self._shown(self.proxy.real)

    @property
    def imag(self) -> Any:
        return self._shown(self.proxy.imag)

    def order_asked(self) -> None:
        """Somebody asks how this memory lies, and does one thing or another by the answer."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._refusal()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.start}, shape={self.shape}, dtype={self.dtype.name})"


def lying(view: Any) -> Any:
    """A view whose strides or flags a user asks for, or a function of NumPy's whose meaning they decide."""
    if isinstance(view, ProxyView):
        view.order_asked()
    return view


# How many parts a view remembers.
MOST_PARTS = 64


def spelled(index: Any) -> Any:
    """A basic index as a key: slices cannot be one before Python 3.12."""
    if type(index) is tuple:
        return tuple([(i.start, i.stop, i.step) if type(i) is slice else i for i in index])
    return ((index.start, index.stop, index.step),) if type(index) is slice else index


# What the bounds of a slice mostly are.
_BOUNDS = frozenset((int, type(None), np.int64))


def is_of_numbers(index: tuple[Any, ...]) -> bool:
    """Is no bound of a slice in a basic index an array? (What else is no number, others refuse.)"""
    for i in index:
        if type(i) is slice:
            bounds = i.start, i.stop, i.step
            if not _BOUNDS.issuperset(map(type, bounds)) and any(hasattr(b, "ndim") for b in bounds):
                return False
    return True


def of_numbers(index: Any) -> Any:
    """A basic index whose numbers are Python's. (What is an array is read, which its place may refuse.)"""
    if type(index) is tuple:
        return tuple([of_numbers(i) for i in index])
    if type(index) is slice:
        return slice(*[of_numbers(i) for i in (index.start, index.stop, index.step)])
    return index if index is None or index is Ellipsis else operator.index(index)


def pair(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Two views as arrays that overlap where those do; None if they are of different memory."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else None
    if hasattr(a, "ptr") and hasattr(b, "ptr"):
        if a.contiguous and b.contiguous and not -a.nbytes < a.ptr - b.ptr < b.nbytes:
            return None
        between = max(-RESERVED // 8, min(b.ptr - a.ptr, RESERVED // 8))
        return proxy_of(a.shape, a.dtype, a.strides), proxy_of(b.shape, b.dtype, b.strides, between)
    if a.buffer is not b.buffer and getattr(a.buffer, "name", a) != getattr(b.buffer, "name", b):
        return None
    return a.proxy, b.proxy


def may_meet(a: Any, b: Any) -> bool:
    """Do the bounds of what two views show meet?"""
    arrays = pair(a, b)
    return arrays is not None and np.may_share_memory(*arrays)
