"""Bits as bytes, and what memory is shared."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.arraytypes.proxies import pair
from mirabelle.backends.gpu.library import routine

# Bits

_BIG = tuple(range(7, -1, -1))


def _shifts(xp: Any, bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return xp.asarray(_BIG if bitorder == "big" else _BIG[::-1], dtype=np.uint8)


@routine("packbits")
def _(xp: Any, x: Any, *, axis: Any = None, bitorder: str = "big") -> Any:
    if x.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    shifts = _shifts(xp, bitorder)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, operator.index(axis) % x.ndim)
    moved = xp.moveaxis(x, axis, -1)
    n = moved.shape[-1]
    count = -(-n // 8)
    bits = xp.zeros((*moved.shape[:-1], 8 * count), np.uint8)
    bits[..., :n] = moved != 0
    packed = (bits.reshape(*moved.shape[:-1], count, 8) << shifts).sum(axis=-1, dtype=np.uint8)
    return xp.moveaxis(packed, -1, axis)


@routine("unpackbits")
def _(xp: Any, x: Any, *, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    shifts = _shifts(xp, bitorder)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, operator.index(axis) % x.ndim)
    moved = xp.moveaxis(x, axis, -1)
    n = 8 * moved.shape[-1]
    bits = ((moved[..., None] >> shifts) & np.uint8(1)).reshape(*moved.shape[:-1], n)
    if count is not None:
        count = operator.index(count)
        wanted = count if count >= 0 else n + count
        if wanted < 0:
            raise ValueError(f"-count larger than number of elements: {count} of {n}")
        if wanted <= n:
            bits = bits[..., :wanted]
        else:
            longer = xp.zeros((*bits.shape[:-1], wanted), np.uint8)
            longer[..., :n] = bits
            bits = longer
    return xp.moveaxis(bits, -1, axis)


# Memory: known from addresses, shapes and strides, which are on the host


def _shared(name: str) -> None:
    def shares(a: Any, b: Any, *, max_work: Any = None) -> bool:
        if not (isinstance(a, GPUView) and isinstance(b, GPUView)):
            return False
        arrays = pair(a, b)
        return arrays is not None and bool(getattr(np, name)(*arrays, max_work=max_work))

    library.routine(GPUArray, name)(shares)


for _name in ("may_share_memory", "shares_memory"):
    _shared(_name)
