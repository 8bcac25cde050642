"""Arrays of index-space kernels on cards: made of an address, sizes and strides, in registers.

Imported only where a kernel is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from mirabelle.backends.gpu import atomics

_I64 = ir.IntType(64)


def array(intrinsic: Any, nt: Any, ndim: int) -> Any:
    """An array of global memory: `_k_array_f8_2(address, (n, m), (s, t))`, strides in bytes."""

    @intrinsic
    def made(typingctx: Any, address: Any, shape: Any, strides: Any) -> Any:
        kind = types.Array(nt, ndim, "A")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            parts = types.UniTuple(types.int64, ndim)
            steps = cgutils.unpack_tuple(builder, context.cast(builder, args[2], strides, parts), ndim)
            return _built(context, builder, kind, args, shape, steps)

        return kind(types.int64, shape, strides), generate

    return made


def whole(intrinsic: Any, nt: Any, ndim: int) -> Any:
    """One whose elements lie together, in C order: `_k_whole_f8_2(address, (n, m))`."""

    @intrinsic
    def made(typingctx: Any, address: Any, shape: Any) -> Any:
        kind = types.Array(nt, ndim, "C")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _built(context, builder, kind, args, shape, None)

        return kind(types.int64, shape), generate

    return made


def _built(context: Any, builder: Any, kind: Any, args: Any, shape: Any, steps: Any) -> Any:
    """Numba's array over memory at an address."""
    made = context.make_array(kind)(context, builder)
    sizes = context.cast(builder, args[1], shape, types.UniTuple(types.int64, kind.ndim))
    itemsize = ir.Constant(_I64, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    count: Any = ir.Constant(_I64, 1)
    dense: list[Any] = []
    for n in reversed(cgutils.unpack_tuple(builder, sizes, kind.ndim)):
        dense.insert(0, builder.mul(count, itemsize))
        count = builder.mul(count, n)
    generic = made.data.type
    # Said to be global memory, once for all accesses.
    data = builder.inttoptr(args[0], ir.PointerType(generic.pointee, atomics.GLOBAL))
    made.data = builder.addrspacecast(data, generic)
    made.shape, made.nitems, made.itemsize = sizes, count, itemsize
    made.strides = cgutils.pack_array(builder, dense if steps is None else steps, _I64)
    made.meminfo = cgutils.get_null_value(made.meminfo.type)
    made.parent = cgutils.get_null_value(made.parent.type)
    return made._getvalue()
