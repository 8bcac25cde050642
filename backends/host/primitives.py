"""What the names in generated source mean on the host: Numba intrinsics.

Imported only where kernels are compiled (usually a helper process), never on the hot path.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mirabelle.backends.codegen.source import BLOCK, WIDE
from mirabelle.dispatch.numbatables import make_tables

_WORD = ir.IntType(64)
_DTYPES: dict[str, Any] = {
    "b1": types.boolean, "i1": types.int8, "i2": types.int16, "i4": types.int32,
    "i8": types.int64, "u1": types.uint8, "u2": types.uint16, "u4": types.uint32,
    "u8": types.uint64, "f4": types.float32, "f8": types.float64, "c8": types.complex64,
    "c16": types.complex128,
}  # fmt: skip


def _scopes(builder: Any, *names: str) -> Any:
    """Alias scopes, so that loops vectorise without tests of addresses.

    Reads of operands are in one scope, reads of scratch in another. Results are written outside
    both: a result overlaps an operand at most element on element, and there the write depends on
    the read. (Where it does not, because there are several results, they wait in scratch and are
    written outside that scope only.) Scratch is written outside the operands' scope.
    """
    m = builder.module
    domain = m.add_metadata([ir.MetaDataString(m, "mirabelle")])
    return m.add_metadata([m.add_metadata([ir.MetaDataString(m, f"mirabelle {n}"), domain]) for n in names])


def _stack(builder: Any, data: Any) -> Any:
    """Memory on the stack. (Numba's helper clears it, which takes LLVM seconds for a block.)"""
    with builder.goto_entry_block():
        return builder.alloca(data)


def _make_load(tp: Any, scope: str | None) -> Any:
    @intrinsic
    def load(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.get_data_type(tp)
            pointer = builder.inttoptr(args[0], data.as_pointer())
            loaded = builder.load(builder.gep(pointer, [args[1]]))
            loaded.align = context.get_abi_alignment(data)
            if scope is not None:
                loaded.set_metadata("alias.scope", _scopes(builder, scope))
            return context.data_model_manager[tp].from_data(builder, loaded)

        return tp(types.int64, types.int64), generate

    return load


def _make_store(tp: Any, *outside: str) -> Any:
    @intrinsic
    def store(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.get_data_type(tp)
            pointer = builder.inttoptr(args[0], data.as_pointer())
            raw = context.data_model_manager[tp].as_data(builder, args[2])
            stored = builder.store(raw, builder.gep(pointer, [args[1]]))
            stored.align = context.get_abi_alignment(data)
            stored.set_metadata("noalias", _scopes(builder, *outside))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, tp), generate

    return store


def _make_scratch(width: int, elements: int = BLOCK) -> Any:
    @intrinsic
    def scratch(typingctx: Any, _zero: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _stack(builder, ir.ArrayType(ir.IntType(8), elements * width))
            block.align = 64
            return builder.ptrtoint(block, _WORD)

        return types.int64(types.int64), generate

    return scratch


def _make_loop(n: int) -> Any:
    """Call a NumPy loop: (code, data, count, n addresses, n steps)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function, data, count = args[:3]
        array = ir.ArrayType(_WORD, n)
        addresses = _stack(builder, array)
        steps = _stack(builder, array)
        counts = _stack(builder, _WORD)
        zero = ir.Constant(ir.IntType(32), 0)
        for i in range(n):
            at = ir.Constant(ir.IntType(32), i)
            builder.store(args[3 + i], builder.gep(addresses, [zero, at]))
            builder.store(args[3 + n + i], builder.gep(steps, [zero, at]))
        builder.store(count, counts)
        pointer = _WORD.as_pointer()
        loop = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, _WORD])
        builder.call(
            builder.inttoptr(function, loop.as_pointer()),
            [builder.bitcast(addresses, pointer), counts, builder.bitcast(steps, pointer), data],
        )
        return context.get_dummy_value()

    signature = types.void(*[types.int64] * (3 + 2 * n))
    # An intrinsic's typing function must have as many parameters as the call.
    names = ", ".join(f"a{i}" for i in range(3 + 2 * n))
    scope: dict[str, Any] = {"signature": signature, "generate": generate}
    exec(f"def loop_{n}(typingctx, {names}):\n    return signature, generate\n", scope)
    return intrinsic(scope[f"loop_{n}"])


def _make_select(tp: Any) -> Any:
    @intrinsic
    def where(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not isinstance(tp, types.Complex):
                return builder.select(args[0], args[1], args[2])
            # By parts: loops with choices between pairs do not vectorise.
            x, y = [context.make_complex(builder, tp, z) for z in args[1:]]
            x.real = builder.select(args[0], x.real, y.real)
            x.imag = builder.select(args[0], x.imag, y.imag)
            return x._getvalue()

        return tp(types.boolean, tp, tp), generate

    return where


def _llvm(name: str, tp: Any, arity: int) -> Any:
    """An LLVM intrinsic on floats, such as llvm.sqrt."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.get_value_type(tp)
        function = builder.module.declare_intrinsic(name, [data], ir.FunctionType(data, [data] * arity))
        return builder.call(function, args)

    return _intrinsic(tp, arity, tp, generate)


def _intrinsic(result: Any, arity: int, tp: Any, generate: Any) -> Any:
    names = ", ".join(f"a{i}" for i in range(arity))
    scope: dict[str, Any] = {"signature": result(*[tp] * arity), "generate": generate}
    exec(f"def helper(typingctx, {names}):\n    return signature, generate\n", scope)
    return intrinsic(scope["helper"])


def _pick(tp: Any, larger: bool, ignore_nan: bool) -> Any:
    """maximum, minimum (NaN wins) and fmax, fmin (NaN loses); the second of zeros with unlike signs, as NumPy's
    vectors and kernels on cards have it."""
    op = ">" if larger else "<"

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = args
        if isinstance(tp, types.Float):
            keep = builder.fcmp_ordered(op, a, b)
            unordered = b if ignore_nan else a
            nan = builder.fcmp_unordered("uno", unordered, unordered)
            keep = builder.or_(keep, nan)
        elif tp is types.boolean:
            return builder.or_(a, b) if larger else builder.and_(a, b)
        elif tp.signed:
            keep = builder.icmp_signed(op, a, b)
        else:
            keep = builder.icmp_unsigned(op, a, b)
        return builder.select(keep, a, b)

    return _intrinsic(tp, 2, tp, generate)


def _fold(tp: Any, op: str) -> Any:
    """start, combined with `count` elements at an address: sums in NumPy's order (of up to 128 elements; from
    there on it halves them), maxima and minima in any, which NaN wins."""
    size = tp.bitwidth // 8
    # As many side by side: NumPy's eight partial sums; a vector of extrema.
    widths = (8,) if op == "add" else (128 // size, 64 // size, 4)
    over = {"maximum": ">", "minimum": "<"}.get(op, "")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start, address, count = args
        part = context.get_value_type(tp)

        def load(kind: Any, index: Any) -> Any:
            at = builder.add(address, builder.mul(index, ir.Constant(_WORD, size)))
            loaded = builder.load(builder.inttoptr(at, kind.as_pointer()))
            loaded.align = size
            return loaded

        def join(a: Any, b: Any) -> Any:
            if op == "add":
                return builder.fadd(a, b)
            keep = builder.fcmp_ordered(">=" if op == "maximum" else "<=", a, b)
            return builder.select(builder.or_(keep, builder.fcmp_unordered("uno", a, a)), a, b)

        def better(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(over, a, b), a, b)

        def across(x: Any, width: int) -> Any:
            """The elements of a vector as one: neighbours first, as NumPy adds them."""
            while width > 8:  # (extrema)
                width //= 2
                halves = [
                    builder.shuffle_vector(
                        x,
                        ir.Constant(x.type, ir.Undefined),
                        ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width))),
                    )
                    for at in (0, width)
                ]
                x = better(*halves)
            found = [builder.extract_element(x, ir.Constant(ir.IntType(32), i)) for i in range(width)]
            while len(found) > 1:
                pairs = [(found[i], found[i + 1]) for i in range(0, len(found), 2)]
                found = [better(*p) if over else join(*p) for p in pairs]
            return found[0]

        def loop(begin: Any, total: Any, width: int) -> tuple[Any, Any]:
            """All that go in vectors of a width, from `begin` on; where the rest begins, and the total."""
            kind = part if width == 1 else ir.VectorType(part, width)
            left = builder.sub(count, begin)
            end = builder.add(begin, builder.and_(left, ir.Constant(_WORD, -width)))
            before = builder.block
            first, head, body, last, after = [builder.append_basic_block() for _ in range(5)]
            builder.cbranch(builder.icmp_signed("<", begin, end), first, after)
            builder.position_at_end(first)
            value, second = load(kind, begin), builder.add(begin, ir.Constant(_WORD, width))
            if width == 1:
                value = join(total, value)
            apart = width > 1 and op != "add"  # (one instruction, and another for NaN, which nobody waits for)
            nan: Any = builder.fcmp_unordered("uno", value, value) if apart else None
            builder.branch(head)
            builder.position_at_end(head)
            i, so_far = builder.phi(_WORD), builder.phi(kind)
            i.add_incoming(second, first)
            so_far.add_incoming(value, first)
            if apart:
                nans = builder.phi(nan.type)
                nans.add_incoming(nan, first)
            builder.cbranch(builder.icmp_signed("<", i, end), body, last)
            builder.position_at_end(body)
            new = load(kind, i)
            if apart:
                joined = better(so_far, new)
                nans.add_incoming(builder.or_(nans, builder.fcmp_unordered("uno", new, new)), body)
            else:
                joined = join(so_far, new)
            i.add_incoming(builder.add(i, ir.Constant(_WORD, width)), body)
            so_far.add_incoming(joined, body)
            builder.branch(head)
            builder.position_at_end(last)
            made = so_far if width == 1 else across(so_far, width)
            if apart:
                bits = ir.IntType(width)
                some = builder.icmp_unsigned("!=", builder.bitcast(nans, bits), ir.Constant(bits, 0))
                made = join(total, builder.select(some, ir.Constant(part, float("nan")), made))
            builder.branch(after)
            builder.position_at_end(after)
            result = builder.phi(part)
            result.add_incoming(total, before)
            result.add_incoming(made, last)
            return end, result

        begin, total = ir.Constant(_WORD, 0), ir.Constant(part, -0.0) if op == "add" else start
        for width in (*widths, 1):
            begin, total = loop(begin, total, width)
        return builder.fadd(start, total) if op == "add" else total

    @intrinsic
    def fold(typingctx: Any, start: Any, address: Any, count: Any) -> Any:
        return tp(tp, types.int64, types.int64), generate

    return fold


def _count() -> Any:
    """How many of up to 1024 truth values hold, as bytes that lie at an address: 64 at a time, each lane of
    which counts in a byte."""
    byte, n_lanes = ir.IntType(8), 64
    lanes = ir.VectorType(byte, n_lanes)
    words = ir.VectorType(_WORD, n_lanes // 8)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, count = args

        def held(kind: Any, at: Any, counted: Any) -> Any:
            loaded = builder.load(builder.inttoptr(builder.add(address, at), kind.as_pointer()))
            loaded.align = 1
            return builder.zext(builder.icmp_unsigned("!=", loaded, ir.Constant(kind, None)), counted)

        sums, total = _stack(builder, lanes), _stack(builder, _WORD)
        builder.store(ir.Constant(lanes, None), sums)
        whole = builder.and_(count, ir.Constant(_WORD, -n_lanes))
        with cgutils.for_range_slice(builder, _WORD(0), whole, _WORD(n_lanes)) as (at, _):
            builder.store(builder.add(builder.load(sums), held(lanes, at, lanes)), sums)
        # Neighbouring bytes together, in 16 bits; then the words; then the four numbers of the last word.
        w, mask = builder.bitcast(builder.load(sums), words), 0x00FF00FF00FF00FF
        every = ir.Constant(words, [mask] * words.count)
        odd = builder.and_(builder.lshr(w, ir.Constant(words, [8] * words.count)), every)
        w = builder.add(builder.and_(w, every), odd)
        parts = [builder.extract_element(w, ir.Constant(ir.IntType(32), i)) for i in range(words.count)]
        word = functools.reduce(builder.add, parts)
        builder.store(builder.lshr(builder.mul(word, _WORD(0x0001000100010001)), _WORD(48)), total)
        with cgutils.for_range_slice(builder, whole, count, _WORD(1)) as (at, _):
            builder.store(builder.add(builder.load(total), held(byte, at, _WORD)), total)
        return builder.load(total)

    @intrinsic
    def count(typingctx: Any, address: Any, count: Any) -> Any:
        return types.int64(types.int64, types.int64), generate

    return count


def _float_test(tp: Any, what: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.get_value_type(tp)
        if what == "signbit":
            bits = ir.IntType(tp.bitwidth)
            return builder.icmp_signed("<", builder.bitcast(args[0], bits), ir.Constant(bits, 0))
        fabs = builder.module.declare_intrinsic("llvm.fabs", [data], ir.FunctionType(data, [data]))
        size = builder.call(fabs, args)
        infinity = ir.Constant(data, float("inf"))
        return builder.fcmp_ordered("==" if what == "isinf" else "<", size, infinity)

    return _intrinsic(types.boolean, 1, tp, generate)


def _integer_abs(tp: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (a,) = args
        negative = builder.icmp_signed("<", a, ir.Constant(a.type, 0))
        return builder.select(negative, builder.neg(a), a)

    return _intrinsic(tp, 1, tp, generate)


def _conj(tp: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        z = context.make_complex(builder, tp, args[0])
        z.imag = builder.fneg(z.imag)
        return z._getvalue()

    return _intrinsic(tp, 1, tp, generate)


def _product(tp: Any, square: bool) -> Any:
    """A product of complex numbers, rounded as NumPy's vector code does (see `products_fused`)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        z, w = [context.make_complex(builder, tp, args[i]) for i in (0, 0 if square else 1)]
        part = z.real.type
        fma = builder.module.declare_intrinsic("llvm.fma", [part], ir.FunctionType(part, [part] * 3))
        product = context.make_complex(builder, tp)
        product.real = builder.call(fma, [z.real, w.real, builder.fneg(builder.fmul(z.imag, w.imag))])
        product.imag = builder.call(fma, [z.real, w.imag, builder.fmul(z.imag, w.real)])
        return product._getvalue()

    return _intrinsic(tp, 1 if square else 2, tp, generate)


def _modulus(tp: Any) -> Any:
    """The modulus of a complex number, as NumPy's vector code takes it (see `moduli_scaled`)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        z = context.make_complex(builder, tp, args[0])
        part = z.real.type
        infinity, one, zero = [ir.Constant(part, x) for x in (float("inf"), 1.0, 0.0)]

        def call(name: str, *operands: Any) -> Any:
            kind = ir.FunctionType(part, [part] * len(operands))
            return builder.call(builder.module.declare_intrinsic(name, [part], kind), operands)

        x, y = call("llvm.fabs", z.real), call("llvm.fabs", z.imag)
        wider = builder.fcmp_ordered(">", x, y)
        large, small = builder.select(wider, x, y), builder.select(wider, y, x)
        # (0 / 1 where both are 0; NaN stays NaN.)
        divisor = builder.select(builder.fcmp_ordered("==", large, zero), one, large)
        quotient = builder.fdiv(small, divisor)
        modulus = builder.fmul(call("llvm.sqrt", call("llvm.fma", quotient, quotient, one)), large)
        # Infinite is infinite, beside NaN too.
        endless = builder.or_(builder.fcmp_ordered("==", x, infinity), builder.fcmp_ordered("==", y, infinity))
        return builder.select(endless, infinity, modulus)

    return _intrinsic(tp.underlying_float, 1, tp, generate)


def namespace() -> dict[str, Any]:
    """The globals of a generated host kernel."""
    ns: dict[str, Any] = {}
    for c, tp in _DTYPES.items():
        ns[c] = tp
        ns[f"load_{c}"] = _make_load(tp, "operands")
        ns[f"load_{c}_shared"] = _make_load(tp, None)
        ns[f"get_{c}"] = _make_load(tp, "scratch")
        ns[f"store_{c}"] = _make_store(tp, "operands", "scratch")
        ns[f"store_{c}_shared"] = _make_store(tp, "scratch")
        ns[f"put_{c}"] = _make_store(tp, "operands")
        ns[f"where_{c}"] = _make_select(tp)
        if c[0] in "fiub":
            ns[f"maximum_{c}"] = _pick(tp, True, False)
            ns[f"minimum_{c}"] = _pick(tp, False, False)
        if c[0] == "f":
            for name, llvm in {
                "abs": "llvm.fabs", "sqrt": "llvm.sqrt", "floor": "llvm.floor",
                "ceil": "llvm.ceil", "trunc": "llvm.trunc", "round": "llvm.rint",
            }.items():  # fmt: skip
                ns[f"{name}_{c}"] = _llvm(llvm, tp, 1)
            ns[f"copysign_{c}"] = _llvm("llvm.copysign", tp, 2)
            ns[f"fma_{c}"] = _llvm("llvm.fma", tp, 3)
            ns[f"fmax_{c}"] = _pick(tp, True, True)
            ns[f"fmin_{c}"] = _pick(tp, False, True)
            for name in ("add", "maximum", "minimum"):
                ns[f"fold_{name}_{c}"] = _fold(tp, name)
            for name in ("isinf", "isfinite", "signbit"):
                ns[f"{name}_{c}"] = _float_test(tp, name)
        if c[0] == "i":
            ns[f"abs_{c}"] = _integer_abs(tp)
        if c[0] == "c":
            ns[f"conj_{c}"] = _conj(tp)
            ns[f"multiply_{c}"] = _product(tp, False)
            ns[f"square_{c}"] = _product(tp, True)
            ns[f"abs_{c}"] = _modulus(tp)
    ns["count_b1"] = _count()
    ns["scratch_8"] = _make_scratch(8)
    ns["scratch_16"] = _make_scratch(16)
    ns["scratch_8_wide"] = _make_scratch(8, WIDE)
    ns["scratch_16_wide"] = _make_scratch(16, WIDE)
    for n in range(2, 8):
        ns[f"loop_{n}"] = _make_loop(n)
    return ns


_namespace: dict[str, Any] = {}


def builtin_function(name: str) -> Any:
    """A scalar function of `dispatch.ops` as compiled code calls it."""
    from mirabelle.dispatch.ops import TABLE

    scalar: Any = TABLE[name].scalar
    if getattr(math, getattr(scalar, "__name__", ""), None) is scalar:
        return scalar  # Numba knows the functions of math
    make_tables()
    return numba.njit(nogil=True, inline="never")(scalar)


def shared_namespace() -> dict[str, Any]:
    if not _namespace:
        _namespace.update(namespace())
    return _namespace
