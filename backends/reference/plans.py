"""What compiled programs need of the reference device: views of its memory by an offset and strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.running import STRIDED
from mirabelle.arraytypes.reference import RefArray, RefView


def strided(view: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
    """A view of the memory of a contiguous one, by an offset and strides in bytes."""
    proxy = np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)
    return RefView(view.buffer, proxy, view.offset + offset)


STRIDED[RefArray] = strided
