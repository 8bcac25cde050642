"""What single elements are to index-space kernels on the host: Numba intrinsics.

Reading and writing without NumPy's negative indices, so that loops vectorise, or with every index
checked; and atomic operations, which Numba has none of on processors. Imported only where a
kernel is compiled.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numba.np import arrayobj

from mirabelle.backends.host import signatures
from mirabelle.dispatch.numbatables import make_tables

make_tables()


def _indices(array: Any, index: Any) -> list[Any]:
    """The types of an index, checked: an integer for each dimension."""
    parts: list[Any] = list(index) if isinstance(index, types.BaseTuple) else [index]  # pyright: ignore
    if not isinstance(array, types.Array):
        raise TypingError(f"a {array} has no elements")
    if len(parts) != array.ndim:
        raise TypingError(
            f"an array of {array.ndim} dimension(s) is indexed with {len(parts)}: kernels name single elements"
        )
    for part in parts:
        if not isinstance(part, (types.Integer, types.Boolean)) or part is types.boolean:
            raise TypingError(f"an index is an integer, and one here is {part}: convert it with int()")
    return parts


def _pointer(context: Any, builder: Any, array: Any, value: Any, index: Any, given: Any) -> Any:
    """The address of an element."""
    values = cgutils.unpack_tuple(builder, given) if isinstance(index, types.BaseTuple) else [given]
    values = [
        context.cast(builder, v, t, types.intp) for v, t in zip(values, _indices(array, index), strict=True)
    ]
    # (Numba's `make_array` lays the description of the array down in memory for each access, which makes long
    # kernels slow to compile.)
    model = context.data_model_manager[array]
    data, shape, strides = (
        builder.extract_value(value, model.get_field_position(name)) for name in ("data", "shape", "strides")
    )
    return cgutils.get_item_pointer2(
        context,
        builder,
        data=data,
        shape=cgutils.unpack_tuple(builder, shape, count=array.ndim),
        strides=cgutils.unpack_tuple(builder, strides, count=array.ndim),
        layout=array.layout,
        inds=values,
        wraparound=False,
        boundscheck=False,
    )


@intrinsic
def get(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index]"""
    _indices(array, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, array, args[0], index, args[1])
        return arrayobj.load_item(context, builder, array, pointer)

    return array.dtype(array, index), generate


@intrinsic
def put(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value"""
    _indices(array, index)
    _check_written(typingctx, array, value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, array, args[0], index, args[1])
        arrayobj.store_item(context, builder, array, args[2], pointer)
        return context.get_dummy_value()

    return types.void(array, index, array.dtype), generate


def _check_written(typingctx: Any, array: Any, value: Any) -> None:
    if not array.mutable:
        raise TypingError(f"a readonly {array} cannot be written to")
    if typingctx.can_convert(value, array.dtype) is None:
        raise TypingError(f"a {value} does not fit an array of {array.dtype}")


signatures.OF_ELEMENTS += [get, put]


# With every index checked. What is raised is put into words by whoever launched the kernel.


def check(array: Any, index: Any, site: int, thread: Any) -> None:
    """Raise an IndexError unless the index is inside."""


@overload(check, strict=False)
def _check(array: Any, index: Any, site: Any, thread: Any) -> Any:
    parts = _indices(array, index)
    shown = ", ".join(f"thread[{d}]" for d in range(len(thread)))
    lines = ["def of(array, index, site, thread):"]
    for d in range(len(parts)):
        at = f"index[{d}]" if isinstance(index, types.BaseTuple) else "index"
        lines += [
            f"    if {at} < 0 or {at} >= array.shape[{d}]:",
            f"        raise IndexError(site, {d}, {at}, array.shape[{d}], {shown})",
        ]
    # Compiled code is kept on disk only if its module has a name.
    scope: dict[str, Any] = {"__name__": __name__}
    exec("\n".join(lines), scope)
    return scope["of"]


# Atomic operations: each returns what was there before

_ATOMIC = (types.int32, types.int64, types.uint32, types.uint64, types.float32, types.float64)


def _check_atomic(typingctx: Any, array: Any, index: Any, *values: Any) -> None:
    _indices(array, index)
    if array.dtype not in _ATOMIC:
        raise TypingError(
            f"atomic operations take 32 and 64 bit integers and reals, and the array holds {array.dtype}"
        )
    for value in values:
        _check_written(typingctx, array, value)


def _atomic(integer: str, unsigned: str, real: str) -> Any:
    """An atomic read-modify-write, by LLVM's names of the operation for each kind of number."""

    @intrinsic
    def atomic(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        _check_atomic(typingctx, array, index, value)
        dtype = array.dtype
        op = real if isinstance(dtype, types.Float) else integer if dtype.signed else unsigned

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, array, args[0], index, args[1])
            return builder.atomic_rmw(op, pointer, args[2], "monotonic")

        return dtype(array, index, dtype), generate

    return atomic


atomic_add = _atomic("add", "add", "fadd")
# A NaN loses, as on a GPU.
atomic_max = _atomic("max", "umax", "fmax")
atomic_min = _atomic("min", "umin", "fmin")
atomic_exchange = _atomic("xchg", "xchg", "xchg")


@intrinsic
def atomic_cas(typingctx: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    """Write `new` if `old` is there; return what was there."""
    _check_atomic(typingctx, array, index, old, new)
    dtype = array.dtype
    bits = types.Integer.from_bitwidth(dtype.bitwidth, signed=False)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, array, args[0], index, args[1])
        expected, wanted = args[2], args[3]
        if isinstance(dtype, types.Float):
            word = context.get_value_type(bits)
            pointer = builder.bitcast(pointer, word.as_pointer())
            expected, wanted = builder.bitcast(expected, word), builder.bitcast(wanted, word)
        found = builder.extract_value(builder.cmpxchg(pointer, expected, wanted, "monotonic", "monotonic"), 0)
        if isinstance(dtype, types.Float):
            found = builder.bitcast(found, context.get_value_type(dtype))
        return found

    return dtype(array, index, dtype, dtype), generate


# The same on memory that no other processor sees: a group's threads run one after the other


@numba.njit(nogil=True)
def own_add(array: Any, index: Any, value: Any) -> Any:
    old = get(array, index)  # pyright: ignore
    put(array, index, old + value)
    return old


@numba.njit(nogil=True)
def own_max(array: Any, index: Any, value: Any) -> Any:
    old = get(array, index)  # pyright: ignore
    if value > old or old != old:
        put(array, index, value)
    return old


@numba.njit(nogil=True)
def own_min(array: Any, index: Any, value: Any) -> Any:
    old = get(array, index)  # pyright: ignore
    if value < old or old != old:
        put(array, index, value)
    return old


@numba.njit(nogil=True)
def own_exchange(array: Any, index: Any, value: Any) -> Any:
    old = get(array, index)  # pyright: ignore
    put(array, index, value)
    return old


@numba.njit(nogil=True)
def own_cas(array: Any, index: Any, expected: Any, value: Any) -> Any:
    old = get(array, index)  # pyright: ignore
    if old == expected:
        put(array, index, value)
    return old


def _checking(f: Any, values: int) -> Any:
    """An operation on an element that checks its index first."""
    given = ", ".join(f"v{i}" for i in range(values))
    comma = ", " if given else ""
    scope = {"__name__": __name__, "check": check, "f": f}
    exec(
        f"def checked(array, index, {given}{comma}site, thread):\n"
        "    check(array, index, site, thread)\n"
        f"    return f(array, index{comma}{given})\n",
        scope,
    )
    made: Any = numba.njit
    return made(nogil=True)(scope["checked"])


def names() -> dict[str, Any]:
    """What generated kernels call these."""
    plain: dict[str, tuple[Any, int]] = {
        "get": (get, 0), "put": (put, 1),
        "atomic_add": (atomic_add, 1), "atomic_max": (atomic_max, 1), "atomic_min": (atomic_min, 1),
        "atomic_exchange": (atomic_exchange, 1), "atomic_cas": (atomic_cas, 2),
        "own_add": (own_add, 1), "own_max": (own_max, 1), "own_min": (own_min, 1),
        "own_exchange": (own_exchange, 1), "own_cas": (own_cas, 2),
    }  # fmt: skip
    if not _named:
        for name, (f, values) in plain.items():
            _named[f"_k_{name}"] = f
            _named[f"_k_{name}_checked"] = _checking(f, values)
    return _named


_named: dict[str, Any] = {}
