"""Atomic operations on a card's memory, by pointer: each returns what was there before.

Integers have instructions for all; of reals there are addition and exchange, and the rest is made
of compare-and-swap. A NaN in memory loses against a number, and a number that is NaN changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

# What atomic operations are there, with how many values after the place.
OPERATIONS = {"add": 1, "max": 1, "min": 1, "exchange": 1, "cas": 2}
_KINDS = (types.int32, types.int64, types.uint32, types.uint64, types.float32, types.float64)
_INTEGER = {"add": "add", "max": "max", "min": "min", "exchange": "xchg"}
# LLVM's memory spaces of cards: any, global, shared by a block.
ANY, GLOBAL, SHARED = 0, 1, 3


def check(dtype: Any) -> None:
    """An error where no atomic operation is there for numbers of this type."""
    if dtype not in _KINDS:
        raise TypingError(
            f"atomic operations take 32 and 64 bit integers and reals, and the array holds {dtype}"
        )


def in_space(builder: Any, pointer: Any, space: int) -> Any:
    """A pointer as one into a memory space."""
    wanted = ir.PointerType(pointer.type.pointee, space)
    return pointer if pointer.type.addrspace == space else builder.addrspacecast(pointer, wanted)


def emit(name: str, builder: Any, nt: Any, pointer: Any, values: list[Any], space: int) -> Any:
    """The instructions of an operation on a number of type `nt` in memory."""
    pointer = in_space(builder, pointer, space)
    if name == "cas":
        return _swapped_if(builder, nt, pointer, *values)
    (value,) = values
    if not isinstance(nt, types.Float):
        op = _INTEGER[name]
        return builder.atomic_rmw(
            op if nt.signed or name not in ("max", "min") else f"u{op}", pointer, value, "monotonic"
        )
    if name == "add":
        return _real_add(builder, nt, pointer, value, space)
    if name == "exchange":
        word = ir.IntType(nt.bitwidth)
        bits = builder.bitcast(pointer, ir.PointerType(word, space))
        found = builder.atomic_rmw("xchg", bits, builder.bitcast(value, word), "monotonic")
        return builder.bitcast(found, value.type)
    return _real_extreme(builder, ">" if name == "max" else "<", nt, pointer, value, space)


def _real_add(builder: Any, nt: Any, pointer: Any, value: Any, space: int) -> Any:
    if "nvptx" not in str(builder.module.triple):
        return builder.atomic_rmw("fadd", pointer, value, "monotonic")
    # NVVM's LLVM is older than that instruction.
    kind = f"f{nt.bitwidth}"
    name = f"llvm.nvvm.atomic.load.add.{kind}.p{space}{kind}"
    f = builder.module.globals.get(name)
    if f is None:
        f = ir.Function(builder.module, ir.FunctionType(value.type, [pointer.type, value.type]), name)
    return builder.call(f, [pointer, value])


def _swapped_if(builder: Any, nt: Any, pointer: Any, expected: Any, wanted: Any) -> Any:
    """Write `wanted` where `expected` is, compared by its bits."""
    real = isinstance(nt, types.Float)
    word = ir.IntType(nt.bitwidth)
    kind = expected.type
    if real:
        pointer = builder.bitcast(pointer, ir.PointerType(word, pointer.type.addrspace))
        expected, wanted = builder.bitcast(expected, word), builder.bitcast(wanted, word)
    found = builder.extract_value(builder.cmpxchg(pointer, expected, wanted, "monotonic", "monotonic"), 0)
    return builder.bitcast(found, kind) if real else found


class _Looked(ir.LoadInstr):  # type: ignore[misc]
    """A load that is done where it stands: the value changes while one looks."""

    def descr(self, buf: list[str]) -> None:
        plain: list[str] = []
        super().descr(plain)
        buf.append("".join(plain).replace("load ", "load volatile ", 1))


def _real_extreme(builder: Any, better: str, nt: Any, pointer: Any, value: Any, space: int) -> Any:
    """Write the value while it is better than what is there, which is looked at first."""
    word = ir.IntType(nt.bitwidth)
    bits = builder.bitcast(pointer, ir.PointerType(word, space))
    start = _Looked(builder.block, bits)
    builder._insert(start)
    before = builder.block
    look, swap, done = (builder.append_basic_block(f"extreme.{x}") for x in ("look", "swap", "done"))
    builder.branch(look)
    with builder.goto_block(look):
        seen = builder.phi(word)
        seen.add_incoming(start, before)
        old = builder.bitcast(seen, value.type)
        wins = builder.fcmp_ordered(better, value, old)
        wins = builder.or_(wins, builder.fcmp_unordered("!=", old, old))
        builder.cbranch(wins, swap, done)
    with builder.goto_block(swap):
        pair = builder.cmpxchg(bits, seen, builder.bitcast(value, word), "monotonic", "monotonic")
        found = builder.extract_value(pair, 0)
        seen.add_incoming(found, swap)
        builder.cbranch(builder.icmp_unsigned("==", found, seen), done, look)
    builder.position_at_end(done)
    return old


def by_address(intrinsic: Any, name: str, nt: Any, itemsize: int, address: Callable[..., Any]) -> Any:
    """`atomic_add_f8(address, index, value)`: an operation on global memory at an address."""

    def generated(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = address(builder, args[0], args[1], itemsize)
        pointer = builder.inttoptr(at, ir.PointerType(context.get_value_type(nt), GLOBAL))
        return emit(name, builder, nt, pointer, list(args[2:]), GLOBAL)

    if OPERATIONS[name] == 2:

        @intrinsic
        def swap(typingctx: Any, address: Any, index: Any, old: Any, new: Any) -> Any:
            check(nt)
            return nt(types.int64, index, nt, nt), generated

        return swap

    @intrinsic
    def update(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        check(nt)
        return nt(types.int64, index, nt), generated

    return update
