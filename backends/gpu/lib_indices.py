"""Indices as one number, bits as bytes, and what memory is shared."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.arraytypes.proxies import pair
from mirabelle.backends.gpu.library import routine


@routine("ravel_multi_index")
def _(xp: Any, multi_index: Any, dims: Any, *, mode: Any = "raise", order: str = "C") -> Any:
    dims = (dims,) if np.ndim(dims) == 0 else tuple(dims)
    parts = list(multi_index)
    if len(parts) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    modes = [mode] * len(dims) if isinstance(mode, str) else list(mode)
    flat = None
    steps = _steps(dims, order)
    for i, n, how, step in zip(parts, dims, modes, steps, strict=True):
        i = i if isinstance(i, xp.ndarray) else xp.asarray(i)
        if i.dtype.kind not in "iu":
            raise TypeError("only int indices permitted")
        i = i.astype(np.int64, copy=False)
        if how == "raise":
            if i.size and bool(((i < 0) | (i >= n)).any()):
                raise ValueError("invalid entry in coordinates array")
        elif how == "wrap":
            i = i % n
        elif how == "clip":
            i = xp.clip(i, 0, n - 1)
        else:
            raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {how!r})")
        flat = i * step if flat is None else flat + i * step
    return flat


def _steps(dims: tuple[int, ...], order: str) -> list[int]:
    if order not in ("C", "F"):
        raise ValueError(f"only 'C' or 'F' order is permitted (got {order!r})")
    ordered = dims if order == "F" else dims[::-1]
    steps = [math.prod(ordered[:k]) for k in range(len(ordered))]
    return steps if order == "F" else steps[::-1]


@routine("unravel_index")
def _(xp: Any, indices: Any, shape: Any, *, order: str = "C") -> Any:
    dims = (operator.index(shape),) if np.ndim(shape) == 0 else tuple(operator.index(n) for n in shape)
    if indices.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    size = math.prod(dims)
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= size:
            raise ValueError(f"index {low if low < 0 else high} is out of bounds for array with size {size}")
    indices = indices.astype(np.int64, copy=False)
    return tuple(indices // step % n for n, step in zip(dims, _steps(dims, order), strict=True))


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
