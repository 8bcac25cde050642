"""The reference device: memory by address, and kernels run thread by thread.

A kernel is the thread frame of `codegen.source`, the very text a GPU backend compiles. Here
Python executes it, one thread after the other in a shuffled order, with each load and store
checked: inside one allocation, aligned, of memory that belongs to this launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.reference import SHIFT, RefBuffer, RefView
from mirabelle.backends.host.interpreter import numpy_callable
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.ops import TABLE, Op
from mirabelle.dispatch.promotion import Sig

_CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "f16", "c32")


class Memory:
    """The buffers one launch may touch, by address."""

    def __init__(self) -> None:
        self.buffers: dict[int, RefBuffer] = {}

    def address(self, view: RefView) -> int:
        """The address of the first element of a view, which the launch may now touch."""
        self.buffers[view.buffer.name] = view.buffer
        return view.buffer.address + view.offset

    def adopt(self, buffer: RefBuffer) -> int:
        self.buffers[buffer.name] = buffer
        return buffer.address

    def find(self, address: int, dtype: np.dtype) -> tuple[np.ndarray, int]:
        number, offset = address >> SHIFT, address & ((1 << SHIFT) - 1)
        buffer = self.buffers.get(number)
        if buffer is None:
            raise DeviceError(
                f"illegal memory access: address {address:#x} is not device memory of this launch. "
                "Only arrays passed to a kernel can be read by it."
            )
        if offset + dtype.itemsize > buffer.nbytes:
            raise DeviceError(f"illegal memory access: byte {offset} of {buffer!r} is outside it.")
        if offset % min(dtype.itemsize, 8):
            raise DeviceError(f"misaligned address {address:#x} for {dtype.name}.")
        return buffer._bytes(), offset

    def load(self, dtype: np.dtype, address: int, index: int) -> Any:
        raw, offset = self.find(int(address) + int(index) * dtype.itemsize, dtype)
        return raw[offset : offset + dtype.itemsize].view(dtype)[0]

    def store(self, dtype: np.dtype, address: int, index: int, value: Any) -> None:
        raw, offset = self.find(int(address) + int(index) * dtype.itemsize, dtype)
        if isinstance(value, np.ndarray) and value.ndim:
            raise DeviceError("A kernel stores scalars, and an array came.")
        raw[offset : offset + dtype.itemsize].view(dtype)[0] = value


def namespace(memory: Memory, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """The globals of a kernel: every name generated source may use."""
    scope = _Names(functions)
    for c in _CODES:
        try:
            dtype = np.dtype(c)
        except TypeError:
            continue
        scope[c] = dtype.type
        scope[f"load_{c}"] = lambda a, i, d=dtype: memory.load(d, a, i)
        scope[f"store_{c}"] = lambda a, i, v, d=dtype: memory.store(d, a, i, v)
        scope[f"where_{c}"] = lambda c, x, y: x if c else y
    # Addresses and indices are Python's integers, which do not overflow.
    scope["load_i8"] = lambda a, i: int(memory.load(np.dtype("i8"), a, i))
    scope["load_value_i8"] = lambda a, i: memory.load(np.dtype("i8"), a, i)
    return scope


class _Names(dict[str, Any]):
    """Functions of the device by name and dtype: `exp_f8` is NumPy's exp on a double."""

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        super().__init__(functions)

    def __missing__(self, name: str) -> Any:
        stem, _, c = name.rpartition("_")
        if stem not in TABLE or c not in _CODES:
            raise KeyError(name)
        op = TABLE[stem]
        dtype = np.dtype(c)
        if name.startswith("pow_"):
            # On single numbers NumPy takes a square root for the exponent 0.5, on arrays it does not.
            ufunc: Any = op.ufunc
            made: Any = lambda x, y: ufunc(np.array([x, x]), np.array([y, y]))[0]
        elif op.ufunc is not None:
            made = op.ufunc
        else:
            made = numpy_callable(Sig(op, (dtype,) * op.nin, (dtype,)))[0]
        self[name] = made
        return made


def launch(kernel: Any, args: int, threads: int) -> None:
    """Run every thread, and some beyond the end as real grids do, in a shuffled order."""
    block = 32
    order = np.arange(-(-threads // block) * block)
    if threads > 1:
        step = next(s for s in (7919, 104729, 1) if math.gcd(s, len(order)) == 1)
        order = order * step % len(order)
    with np.errstate(all="ignore"):
        for i in order.tolist():
            kernel(args, i)


def scalar_function(op: Op, out: np.dtype) -> Callable[..., Any]:
    """A scalar function as the device calls it."""
    if TABLE.get(op.name) is op:
        made = numpy_callable(Sig(op, (out,) * op.nin, (out,)))[0]
        return lambda *args: made(*args)[()]
    assert op.scalar is not None
    return op.scalar
