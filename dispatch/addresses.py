"""Where memory begins, read out of Python's objects: asking NumPy takes ten times as long.

What every small statement asks of all its operands. Both are checked against what Python says when the library
is imported, and done in its way where objects look otherwise.

>>> import numpy as np
>>> x = np.arange(6.0)[2:]
>>> address_of(x) == x.ctypes.data
True
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

_word = ctypes.c_ssize_t.from_address
# NumPy's arrays begin as all objects do; their next field is the pointer to the first element.
_HEAD = object.__basicsize__
# The bytes of a bytes object are its last field, with a zero behind them.
_BYTES = bytes.__basicsize__ - 1


def _field_of_array(view: Any) -> int:
    return _word(id(view) + _HEAD).value


def _said_of_array(view: Any) -> int:
    return view.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _field_of_bytes(data: bytes) -> int:
    return id(data) + _BYTES


def _said_of_bytes(data: bytes) -> int:
    found: Any = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    return found  # type: ignore[no-any-return]


def _is_field_of_array() -> bool:
    if sys.implementation.name != "cpython":
        return False
    samples = [np.zeros(3), np.zeros((4, 5))[1:, ::-2], np.zeros(()), np.zeros(7, np.uint8)[3:]]
    return all(_field_of_array(x) == _said_of_array(x) for x in samples)


def _is_field_of_bytes() -> bool:
    return sys.implementation.name == "cpython" and _field_of_bytes(b"where") == _said_of_bytes(b"where")


# The address of an array's first element, and of what a bytes object holds.
address_of = _field_of_array if _is_field_of_array() else _said_of_array
address_of_bytes = _field_of_bytes if _is_field_of_bytes() else _said_of_bytes
