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
import mmap
from typing import Any

import numpy as np

from mirabelle.dispatch.addresses import address_of

# So many bytes of address space, of which arrays begin in the middle.
RESERVED = 1 << 45
# An address that is nobody's.
_NOWHERE = 1 << 46


class _Address:
    """What NumPy is told of an array at an address."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


@functools.cache
def _reserved() -> Any:
    """The address space, or None. (Forked processes have it, too.)"""
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
