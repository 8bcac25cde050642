"""What elements of arrays are to index-space kernels on cards, for Numba's compilers.

They are read and written without NumPy's negative indices, or with every index checked. Imported
only where a kernel is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from mirabelle.backends.gpu import atomics, elements_arrays
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import code, signature

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_ARRAY = re.compile(r"_k_(array|whole)_([biufc]\d+)_(\d+)$")
_UPDATE = re.compile(r"_k_(atomic|shared|own)_(\w+?)(_checked)?$")
_SPACES = {"atomic": atomics.GLOBAL, "shared": atomics.SHARED}


def meaning(intrinsic: Any, known: Any, name: str) -> Any:
    """The function that a name of a generated kernel stands for; None if it is none of these.

    `known` are all names, types and scalar functions among them.
    """
    made = _ARRAY.match(name)
    if made is not None:
        make = elements_arrays.whole if made[1] == "whole" else elements_arrays.array
        return make(intrinsic, known[made[2]], int(made[3]))
    if name.startswith("_k_get"):
        return _get(intrinsic, name.endswith("_checked"))
    if name.startswith("_k_put"):
        return _put(intrinsic, name.endswith("_checked"))
    if name.startswith("_k_op_"):
        return _operation(intrinsic, known, name.removeprefix("_k_op_"))
    if name == "_k_fail":
        return _fail(intrinsic)
    if name == "outside":
        return _outside(intrinsic)
    update = _UPDATE.match(name)
    if update is not None and update[2] in atomics.OPERATIONS:
        return _update(intrinsic, update[2], _SPACES.get(update[1]), bool(update[3]))
    return None


# Single elements


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


def _fits(typingctx: Any, array: Any, value: Any) -> None:
    if typingctx.can_convert(value, taken(array.dtype)) is None:
        raise TypingError(f"a {value} does not fit an array of {array.dtype}")


class _Element:
    """An element that generated code is about to touch."""

    def __init__(self, context: Any, builder: Any, array: Any, value: Any, index: Any, given: Any) -> None:
        self.context, self.builder, self.array = context, builder, array
        self.made = context.make_array(array)(context, builder, value)
        values = cgutils.unpack_tuple(builder, given) if isinstance(index, types.BaseTuple) else [given]
        self.index = [
            context.cast(builder, v, t, types.intp) for v, t in zip(values, _indices(array, index), strict=True)
        ]

    def axes(self, tuple_: Any) -> list[Any]:
        return cgutils.unpack_tuple(self.builder, tuple_, self.array.ndim)

    def check(self, record: Callable[[Any, Any], None]) -> None:
        """End the thread, with a record of why, unless the index is inside."""
        builder, context = self.builder, self.context
        for d, (i, n) in enumerate(zip(self.index, self.axes(self.made.shape), strict=True)):
            # (a negative index is a large one of unsigned numbers)
            with builder.if_then(builder.icmp_unsigned(">=", i, n), likely=False):
                record(ir.Constant(_I64, d), i)
                # (older compilers have it of the context)
                convention = getattr(context.fndesc, "call_conv", None) or context.call_conv
                convention.return_user_exc(builder, IndexError, ())

    def pointer(self) -> Any:
        builder, data = self.builder, self.made.data
        if self.array.layout == "C" and self.index:
            sizes = self.axes(self.made.shape)
            number = self.index[0]
            for i, n in zip(self.index[1:], sizes[1:], strict=True):
                number = builder.add(builder.mul(number, n), i)
            return builder.gep(data, [number], inbounds=True)
        offset = None
        for i, s in zip(self.index, self.axes(self.made.strides), strict=True):
            term = builder.mul(i, s)
            offset = term if offset is None else builder.add(offset, term)
        if offset is None:
            return data
        at = builder.gep(builder.bitcast(data, _I8.as_pointer()), [offset], inbounds=True)
        return builder.bitcast(at, data.type)

    def load(self) -> Any:
        builder, context, dtype = self.builder, self.context, self.array.dtype
        return context.cast(builder, context.unpack_value(builder, dtype, self.pointer()), dtype, taken(dtype))

    def store(self, value: Any) -> None:
        builder, context, dtype = self.builder, self.context, self.array.dtype
        context.pack_value(builder, dtype, context.cast(builder, value, taken(dtype), dtype), self.pointer())


def taken(dtype: Any) -> Any:
    """What an element is computed with: half precision is a way to store numbers."""
    return types.float32 if dtype is types.float16 else dtype


# Checked ones are told where they stand (`site`), and of the memory for the record of the first failure.
_WHERE = (types.int64, types.int64)


def _checking(element: _Element, rest: list[Any], thread: Any) -> None:
    address, site, given = rest
    values = cgutils.unpack_tuple(element.builder, given)

    def record(axis: Any, index: Any) -> None:
        _record(element.builder, address, [site, axis, index, *values])

    element.check(record)


def _record(builder: Any, address: Any, values: list[Any]) -> None:
    """Write these numbers to the record, if nothing is there yet."""
    start = builder.inttoptr(address, ir.PointerType(_I64, atomics.GLOBAL))
    zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)
    pair = builder.cmpxchg(start, zero, one, "monotonic", "monotonic")
    with builder.if_then(builder.icmp_unsigned("==", builder.extract_value(pair, 0), zero)):
        for k, v in enumerate(values, 1):
            builder.store(v, builder.gep(start, [ir.Constant(_I64, k)]))


def _get(intrinsic: Any, checked: bool) -> Any:
    if not checked:

        @intrinsic
        def get(typingctx: Any, array: Any, index: Any) -> Any:
            _indices(array, index)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return _Element(context, builder, array, args[0], index, args[1]).load()

            return taken(array.dtype)(array, index), generate

        return get

    @intrinsic
    def get_checked(typingctx: Any, array: Any, index: Any, address: Any, site: Any, thread: Any) -> Any:
        _indices(array, index)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = _Element(context, builder, array, args[0], index, args[1])
            _checking(element, list(args[2:]), thread)
            return element.load()

        return taken(array.dtype)(array, index, *_WHERE, thread), generate

    return get_checked


def _put(intrinsic: Any, checked: bool) -> Any:
    if not checked:

        @intrinsic
        def put(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
            _indices(array, index)
            _fits(typingctx, array, value)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                _Element(context, builder, array, args[0], index, args[1]).store(args[2])
                return context.get_dummy_value()

            return types.void(array, index, taken(array.dtype)), generate

        return put

    @intrinsic
    def put_checked(
        typingctx: Any, array: Any, index: Any, value: Any, address: Any, site: Any, thread: Any
    ) -> Any:
        _indices(array, index)
        _fits(typingctx, array, value)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = _Element(context, builder, array, args[0], index, args[1])
            _checking(element, list(args[3:]), thread)
            element.store(args[2])
            return context.get_dummy_value()

        return types.void(array, index, taken(array.dtype), *_WHERE, thread), generate

    return put_checked


# Read, change, write


def _update(intrinsic: Any, name: str, space: int | None, checked: bool) -> Any:
    """An atomic operation on an element; without a memory space, on a thread's own array."""
    count = atomics.OPERATIONS[name]

    def typed(typingctx: Any, array: Any, index: Any, *rest: Any) -> Any:
        _indices(array, index)
        dtype = array.dtype
        atomics.check(dtype)
        for value in rest[:count]:
            _fits(typingctx, array, value)
        thread = rest[-1]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = _Element(context, builder, array, args[0], index, args[1])
            values = list(args[2 : 2 + count])
            if checked:
                _checking(element, list(args[2 + count :]), thread)
            if space is None:
                return _own(name, element, values)
            return atomics.emit(name, builder, dtype, element.pointer(), values, space)

        where = (*_WHERE, thread) if checked else ()
        return dtype(array, index, *[dtype] * count, *where), generate

    # Intrinsics have as many parameters as their calls have arguments.
    parameters = ["array", "index", *_numbered("v", count)]
    if checked:
        parameters += ["address", "site", "thread"]
    given = ", ".join(parameters)
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def update(typingctx, {given}):\n    return typed(typingctx, {given})\n", scope)
    return intrinsic(scope["update"])


def _numbered(name: str, count: int) -> Iterator[str]:
    return (f"{name}{i}" for i in range(count))


def _own(name: str, element: _Element, values: list[Any]) -> Any:
    """The same on memory that no other thread sees."""
    builder, nt = element.builder, element.array.dtype
    old = element.load()
    real = isinstance(nt, types.Float)
    if name == "add":
        element.store((builder.fadd if real else builder.add)(old, values[0]))
        return old
    if name == "exchange":
        element.store(values[0])
        return old
    if name == "cas":
        same = builder.fcmp_ordered("==", old, values[0]) if real else builder.icmp_signed("==", old, values[0])
        element.store(builder.select(same, values[1], old))
        return old
    better = ">" if name == "max" else "<"
    if real:
        wins = builder.fcmp_ordered(better, values[0], old)
        wins = builder.or_(wins, builder.fcmp_unordered("!=", old, old))
    else:
        wins = (builder.icmp_signed if nt.signed else builder.icmp_unsigned)(better, values[0], old)
    element.store(builder.select(wins, values[0], old))
    return old


# Operations on numbers


def _operation(intrinsic: Any, known: Any, name: str) -> Any:
    """`_k_op_maximum(x, y)`: an operation by its name, of numbers of any types, promoted as NumPy does."""
    op = TABLE[name]

    def typed(typingctx: Any, *given: Any) -> Any:
        given = tuple(types.unliteral(t) for t in given)
        if not all(isinstance(t, (types.Number, types.Boolean)) for t in given):
            raise TypingError(f"{name} is a function of numbers, and was given {', '.join(map(str, given))}")
        ins = signature(op, tuple(as_dtype(t) for t in given)).ins
        kinds = [known[code(d)] for d in ins]
        callee = typingctx.resolve_value_type(known[f"{name}_{code(ins[0])}"])
        call = callee.get_call_type(typingctx, tuple(kinds), {})

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            values = [context.cast(builder, v, t, k) for v, t, k in zip(args, given, kinds, strict=True)]
            values = [context.cast(builder, v, k, w) for v, k, w in zip(values, kinds, call.args, strict=True)]
            return context.get_function(callee, call)(builder, values)

        return call.return_type(*given), generate

    given = ", ".join(_numbered("x", op.nin))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def operation(typingctx, {given}):\n    return typed(typingctx, {given})\n", scope)
    return intrinsic(scope["operation"])


# Threads that end early


def _fail(intrinsic: Any) -> Any:
    """`_k_fail(address, site, thread)`: a thread says that it raises what stands at a site."""

    @intrinsic
    def fail(typingctx: Any, address: Any, site: Any, thread: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            nothing = ir.Constant(_I64, 0)
            _record(builder, args[0], [args[1], nothing, nothing, *cgutils.unpack_tuple(builder, args[2])])
            return context.get_dummy_value()

        return types.void(*_WHERE, thread), generate

    return fail


def _outside(intrinsic: Any) -> Any:
    """Is a thread outside of the index space? Few are."""

    @intrinsic
    def outside(typingctx: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0]

        return types.boolean(types.boolean), generate

    return outside
