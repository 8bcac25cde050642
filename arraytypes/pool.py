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

import numpy as np

from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.settings import settings

# Buffers from this size on are kept, rounded up to multiples of it.
UNIT = 1 << 20
# Deques append and pop atomically: no lock, so a garbage collection may run `_Keeper.__del__`
# anywhere.
_free: dict[int, deque[np.ndarray]] = {}


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
        return np.empty(shape, dtype, order)  # type: ignore[call-overload,no-any-return]
    size = -(-nbytes // UNIT) * UNIT
    try:
        buffer = _free[size].pop()
    except (KeyError, IndexError):
        buffer = np.empty(size, np.uint8)
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


def held() -> int:
    """The bytes waiting in the pool."""
    return sum(size * len(buffers) for size, buffers in list(_free.items()))


def clear() -> None:
    """Give the memory waiting in the pool back to the system."""
    _free.clear()
