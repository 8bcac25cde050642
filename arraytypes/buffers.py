"""The buffer protocol: `memoryview(x)`, `bytes(x)`, `file.write(x)`, `hashlib.sha256(x)`.

A buffer shows the same memory as `np.asarray(x)`: a snapshot that later writes to `x` leave alone.
From Python 3.12 on, a class offers it by a method, `__buffer__` (PEP 688). Before, only types
written in C can: there the base is one (dispatch/csrc/buffer.c).

`__array_interface__` (`AbstractArray`) says the same: its data is such a buffer and no address. Who reads an
address holds the array and not its version, and would see later writes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mirabelle.dispatch import native
from mirabelle.dispatch.errors import PlaceError


class NoBufferError(PlaceError, BufferError):
    """A buffer was asked of memory that the host cannot read."""


# The attribute that a buffer is asked of: what `np.asarray(x)` gets.
EXPORT = "_exported"


class _Method:
    """The base of all arrays where it is not C's."""

    __slots__ = ()

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(getattr(self, EXPORT))


if TYPE_CHECKING or sys.version_info >= (3, 12):
    Buffered = _Method
else:
    Buffered = native.in_c.Buffered
