"""Host memory for results: large buffers are kept after use and handed out again.

The system clears every fresh page of a large allocation when it is first touched, which takes
as long as computing a simple result. A buffer used before has its pages. Small buffers come
from NumPy, which keeps its own.

>>> import numpy as np
>>> x = empty((1 << 20,), np.dtype("f8"))
>>> del x
>>> held() >= 8 << 20
True
>>> clear()
>>> held()
0
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.errors import OutOfMemoryError
from mirabelle.dispatch.settings import settings

# Buffers from this size on are kept, rounded up to multiples of it.
UNIT = 1 << 20
# Deques append and pop atomically: no lock, so a garbage collection may run `_Keeper.__del__`
# anywhere.
_free: dict[int, deque[np.ndarray]] = {}


# What else is kept on the host to be used again: what it is, how many bytes, and what gives it back.
kept: dict[str, tuple[Callable[[], int], Callable[[], None]]] = {}
# What is taken until the process ends, and how many bytes.
never_given_back: dict[str, Callable[[], int]] = {}
# Called before all else when memory is given back: what lets go of things that hold some.
letting_go: list[Callable[[], None]] = []


class _Keeper:
    """The base of a pooled array: when the last view of it dies, the memory goes back."""

    __slots__ = ("buffer", "interface")

    def __init__(self, buffer: np.ndarray, interface: dict[str, object]) -> None:
        self.buffer = buffer
        self.interface = interface

    @property
    def __array_interface__(self) -> dict[str, object]:
        return self.interface

    def __del__(self) -> None:
        if held is None:  # the interpreter is ending, and has cleared this module
            return
        size = self.buffer.nbytes
        if held() + size <= settings.pool_bytes:
            _free.setdefault(size, deque()).append(self.buffer)


def empty(shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> np.ndarray:
    """An uninitialised array; the memory of a large one returns to the pool after its last use."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < UNIT or not settings.pool_bytes:
        try:
            return np.empty(shape, dtype, order)  # type: ignore[call-overload,no-any-return]
        except (MemoryError, ValueError, OverflowError) as e:
            raise no_room(shape, dtype, e) from None
    size = -(-nbytes // UNIT) * UNIT
    try:
        buffer = _free[size].pop()
    except (KeyError, IndexError):
        try:
            buffer = np.empty(size, np.uint8)
        except (MemoryError, ValueError, OverflowError) as e:
            raise no_room(shape, dtype, e) from None
    steps = dtype.itemsize
    strides = []
    for n in reversed(shape) if order == "C" else shape:
        strides.append(steps)
        steps *= n
    interface = {
        "version": 3,
        "shape": shape,
        "typestr": dtype.str,
        "strides": tuple(reversed(strides)) if order == "C" else tuple(strides),
        "data": (address_of(buffer), False),
    }
    return np.asarray(_Keeper(buffer, interface))


# What holds a number in half the memory.
_SMALLER = {"c16": "complex64", "f8": "float32", "f4": "float16", "i8": "int32", "u8": "uint32", "i4": "int16"}


def no_room(shape: tuple[int, ...], dtype: np.dtype, error: Exception) -> Exception:
    """What to raise for an array that NumPy found no memory for, by what it said."""
    nbytes = math.prod(shape) * dtype.itemsize
    if not nbytes:  # (NumPy multiplies the other dimensions, and they say how it fails)
        return error
    what = f"an array of shape {shape} and dtype {dtype.name}, which takes {_readable(nbytes)}"
    smaller = _SMALLER.get(dtype.str[1:])
    dtypes = f", or of a smaller dtype (`dtype=mb.{smaller}`)" if smaller else ""
    if not isinstance(error, MemoryError):
        return ValueError(f"No memory has addresses for {what}. Make it of fewer elements{dtypes}.")
    return OutOfMemoryError(
        f"The host has no room for {what}. Make it of fewer elements{dtypes}, or divide it among processes "
        "(`device=mb.DArray`)."
    )


def no_room_after(error: MemoryError) -> Exception:
    """The same, where NumPy makes the array itself: its error knows which."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    return error if shape is None or dtype is None else no_room(shape, dtype, error)


def _readable(nbytes: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB")
    k = 0
    while nbytes >> 10 * k >= 1000 and k < len(units) - 1:
        k += 1
    if nbytes >> 10 * k >= 1000:
        return "more than 1000 ZiB"
    return f"{nbytes / (1 << 10 * k):.3g} {units[k]}"


def held() -> int:
    """The bytes waiting in the pool."""
    return sum(size * len(buffers) for size, buffers in list(_free.items()))


def clear() -> None:
    """Give the memory waiting in the pool back to the system."""
    _free.clear()
