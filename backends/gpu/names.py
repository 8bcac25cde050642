"""What the names in generated source mean to Numba's compilers for graphics cards.

Memory is read and written by address, as global memory of the card, several neighbours as one
vector; everything else is an operation or a register that says which thread this is. Imported
only where a kernel is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

# Code → Numba's type, bytes.
TYPES: dict[str, Any] = {
    "b1": types.boolean, "i1": types.int8, "i2": types.int16, "i4": types.int32, "i8": types.int64,
    "u1": types.uint8, "u2": types.uint16, "u4": types.uint32, "u8": types.uint64,
    "f2": types.float16, "f4": types.float32, "f8": types.float64, "c8": types.complex64,
    "c16": types.complex128,
}  # fmt: skip
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_MEMORY = re.compile(r"(load|store)(\d*)_([biufc]\d+)$")
_ATOMIC = re.compile(r"atomic_(add|max|min|exchange|cas)_([iuf][48])$")
# Global memory, in the numbers of NVVM and of AMDGPU alike.
_GLOBAL = 1


def memory_function(intrinsic: Any, name: str) -> Any:
    """The function that a name such as `load4_f8` or `store_i1` stands for; None if it is no such name."""
    found = _MEMORY.match(name)
    if found is None:
        return None
    what, lanes, c = found.groups()
    make = _load if what == "load" else _store
    return make(intrinsic, TYPES[c], int(lanes or 1), int(c[1:]))


def _part(context: Any, nt: Any) -> tuple[Any, int]:
    """The LLVM type of what memory holds of an element, and how many of it make one."""
    if nt is types.boolean:
        return ir.IntType(8), 1
    if isinstance(nt, types.Complex):
        return context.get_value_type(nt.underlying_float), 2
    return context.get_value_type(nt), 1


def _address(builder: Any, base: Any, index: Any, itemsize: int) -> Any:
    if index.type.width < 64:
        index = builder.sext(index, _I64)
    return builder.add(base, builder.mul(index, ir.Constant(_I64, itemsize)))


def _pieces(parts: int, itemsize: int) -> tuple[int, int]:
    """How many vectors of how many parts hold so many: no vector is longer than 16 bytes."""
    longest = max(1, 16 // itemsize)
    return (1, parts) if parts <= longest else (parts // longest, longest)


def _load(intrinsic: Any, nt: Any, lanes: int, itemsize: int) -> Any:
    @intrinsic
    def load(typingctx: Any, address: Any, index: Any) -> Any:
        result = types.UniTuple(nt, lanes) if lanes > 1 else nt

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            part, each = _part(context, nt)
            size = itemsize // each
            vectors, length = _pieces(lanes * each, size)
            at = _address(builder, args[0], args[1], itemsize)
            values = []
            for v in range(vectors):
                t = ir.VectorType(part, length) if length > 1 else part
                where = builder.add(at, ir.Constant(_I64, v * length * size)) if v else at
                # One element is aligned as itself; a vector as a whole.
                align = length * size if lanes > 1 else size
                loaded = builder.load(builder.inttoptr(where, ir.PointerType(t, _GLOBAL)), align=align)
                values += (
                    [builder.extract_element(loaded, ir.Constant(_I32, k)) for k in range(length)]
                    if length > 1
                    else [loaded]
                )
            made = [_made(context, builder, nt, values[k * each : (k + 1) * each]) for k in range(lanes)]
            return made[0] if lanes == 1 else context.make_tuple(builder, result, made)

        return result(types.int64, index), generate

    return load


def _made(context: Any, builder: Any, nt: Any, parts: list[Any]) -> Any:
    if nt is types.boolean:
        return builder.icmp_unsigned("!=", parts[0], ir.Constant(parts[0].type, 0))
    if len(parts) == 1:
        return parts[0]
    z = context.make_complex(builder, nt)
    z.real, z.imag = parts
    return z._getvalue()


def _taken(context: Any, builder: Any, nt: Any, value: Any) -> list[Any]:
    if nt is types.boolean:
        return [builder.zext(value, ir.IntType(8))]
    if isinstance(nt, types.Complex):
        z = context.make_complex(builder, nt, value)
        return [z.real, z.imag]
    return [value]


def _store(intrinsic: Any, nt: Any, lanes: int, itemsize: int) -> Any:
    @intrinsic
    def store(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        taken = types.UniTuple(nt, lanes) if lanes > 1 else nt

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = [builder.extract_value(args[2], k) for k in range(lanes)] if lanes > 1 else [args[2]]
            parts = [p for x in given for p in _taken(context, builder, nt, x)]
            size = itemsize * lanes // len(parts)
            vectors, length = _pieces(len(parts), size)
            at = _address(builder, args[0], args[1], itemsize)
            for v in range(vectors):
                chosen = parts[v * length : (v + 1) * length]
                t = ir.VectorType(chosen[0].type, length) if length > 1 else chosen[0].type
                where = builder.add(at, ir.Constant(_I64, v * length * size)) if v else at
                if length > 1:
                    vector = ir.Constant(t, ir.Undefined)
                    for k, p in enumerate(chosen):
                        vector = builder.insert_element(vector, p, ir.Constant(_I32, k))
                else:
                    vector = chosen[0]
                align = length * size if lanes > 1 else size
                builder.store(vector, builder.inttoptr(where, ir.PointerType(t, _GLOBAL)), align=align)
            return context.get_dummy_value()

        return types.void(types.int64, index, taken), generate

    return store


def division(intrinsic: Any, name: str) -> Any:
    """Division and remainder of indices, which are never negative."""
    remainder = name.startswith("rem")
    nt = TYPES[name[-2:]]

    @intrinsic
    def divide(typingctx: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            a, b = (context.cast(builder, v, t, nt) for v, t in zip(args, (x, y), strict=True))
            return builder.urem(a, b) if remainder else builder.udiv(a, b)

        return nt(x, y), generate

    return divide


def register(intrinsic: Any, llvm_name: str) -> Any:
    """A register that says which thread, block or grid this is."""

    @intrinsic
    def read(typingctx: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            f = builder.module.globals.get(llvm_name)
            if f is None:
                f = ir.Function(builder.module, ir.FunctionType(_I32, []), llvm_name)
            return builder.call(f, [])

        return types.int32(), generate

    return read


# What samplers of random numbers are written in (`arraytypes.random.lanes`), as far as it is no plain source:
# the bits of a number and back, and roundings that are exact on every target.
_CASTS = {
    "bits": (types.float64, types.uint64), "number": (types.uint64, types.float64),
    "bits4": (types.float32, types.uint32), "number4": (types.uint32, types.float32),
}  # fmt: skip


def sampler_word(intrinsic: Any, name: str) -> Any:
    """What a word of the samplers means; None if it is none."""
    if name in _CASTS:
        return _cast(intrinsic, *_CASTS[name])
    return _rounded(intrinsic, f"llvm.{name}") if name in ("sqrt", "floor") else None


def _cast(intrinsic: Any, taken: Any, result: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = context.cast(builder, args[0], x, taken)
            return builder.bitcast(value, context.get_value_type(result))

        return result(x), generate

    return cast


def _rounded(intrinsic: Any, llvm_name: str) -> Any:
    @intrinsic
    def rounded(typingctx: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t = context.get_value_type(x)
            f = builder.module.declare_intrinsic(llvm_name, [t], ir.FunctionType(t, [t]))
            return builder.call(f, args)

        return x(x), generate

    return rounded


def atomic_function(intrinsic: Any, name: str) -> Any:
    """What `atomic_add_f8(address, index, value)` means, which returns what was there; else None."""
    found = _ATOMIC.match(name)
    if found is None:
        return None
    from mirabelle.backends.gpu import atomics

    c = found[2]
    return atomics.by_address(intrinsic, found[1], TYPES[c], int(c[1:]), _address)


class Names(dict[str, Any]):
    """The globals of kernels: a name is made when it is first asked for, and kept.

    `intrinsic` is the target's decorator, `registers` its names for what tells threads apart,
    `operation` what finds the scalar function of an operation by name and code.
    """

    def __init__(
        self, intrinsic: Any, registers: dict[str, str], operation: Callable[[str, str], Any], **given: Any
    ) -> None:
        super().__init__(TYPES, **given)
        self._intrinsic = intrinsic
        self._registers = registers
        self._operation = operation

    def __missing__(self, name: str) -> Any:
        made = memory_function(self._intrinsic, name)
        if made is None and name in self._registers:
            made = register(self._intrinsic, self._registers[name])
        if made is None and name in ("div_i4", "rem_i4", "div_i8", "rem_i8"):
            made = division(self._intrinsic, name)
        if made is None:
            made = sampler_word(self._intrinsic, name)
        if made is None:
            made = atomic_function(self._intrinsic, name)
        if made is None and (name.startswith("_k_") or name == "outside"):
            from mirabelle.backends.gpu import elements

            made = elements.meaning(self._intrinsic, self, name)
        if made is None:
            stem, _, c = name.rpartition("_")
            if c not in TYPES:
                raise KeyError(name)
            made = self._operation(stem, c)
        self[name] = made
        return made


_BUILTIN = frozenset(("complex", "abs", "range", "min", "max", "float", "int", "bool", "element"))


def scope_of(code: Any, names: Names) -> dict[str, Any]:
    """The globals that the code of a module of generated functions needs."""
    scope: dict[str, Any] = {}
    waiting = [code]
    while waiting:
        part = waiting.pop()
        waiting += [c for c in part.co_consts if hasattr(c, "co_names")]
        for name in part.co_names:
            if name not in scope and name not in _BUILTIN:
                try:
                    scope[name] = names[name]
                except KeyError:
                    pass  # an attribute, or a function of the source itself
    return scope
