"""Values of lowered kernels, and the instructions of LLVM that work on them.

A value has the code of a dtype and the names of its parts in LLVM's text: one, or two of a complex
number. What a constant is, is kept, so that conversions of it cost no instruction. A `Writer` has the
lines of one function.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

# Code → LLVM's type of a part, in registers. (A truth value is a byte in memory; halves are their bits,
# because libNVVM of CUDA 12 has no type for them.)
LLVM = {
    "b1": "i1", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "i8", "u2": "i16", "u4": "i32",
    "u8": "i64", "f2": "i16", "f4": "float", "f8": "double", "c8": "float", "c16": "double",
}  # fmt: skip
_PART = {"c8": "f4", "c16": "f8"}
_RING = {"Add": "add", "Sub": "sub", "Mult": "mul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor"}
_REAL = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
# Conversions of halves, which have no other instruction.
_OF_HALF = 'float asm "cvt.f32.f16 $0, $1;", "=f,h"(i16 {})'
_TO_HALF = {
    "f4": 'i16 asm "cvt.rn.f16.f32 $0, $1;", "=h,f"(float {})',
    "f8": 'i16 asm "cvt.rn.f16.f64 $0, $1;", "=h,d"(double {})',
}
_INTEGER_TEST = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
_REAL_TEST = {"Eq": "oeq", "NotEq": "une", "Lt": "olt", "LtE": "ole", "Gt": "ogt", "GtE": "oge"}


class NotLowered(Exception):
    """The source has something that is not lowered; Numba compiles it instead."""


class Value:
    """A number in a register, or a constant."""

    __slots__ = ("code", "number", "parts")

    def __init__(self, code: str, parts: tuple[str, ...], number: Any = None) -> None:
        self.code = code
        self.parts = parts
        self.number = number


def part_code(code: str) -> str:
    """The code of the parts of a number."""
    return _PART.get(code, code)


def parts_of(code: str) -> int:
    return 2 if code in _PART else 1


def constant(code: str, number: Any) -> Value:
    """A constant: an integer wraps around, a real is rounded."""
    kind = code[0]
    if kind == "b":
        return Value(code, ("true" if number else "false",), bool(number))
    if kind in "iu":
        bits = 8 * int(code[1:])
        number = int(number) & (1 << bits) - 1
        if kind == "i" and number >> bits - 1:
            number -= 1 << bits
        return Value(code, (str(number),), number)
    if kind == "c":
        number = complex(number)
        part = part_code(code)
        return Value(code, constant(part, number.real).parts + constant(part, number.imag).parts)
    with np.errstate(all="ignore"):
        number = float(np.dtype(code).type(number))
    if code == "f2":
        return Value(code, (str(int(np.float16(number).view(np.int16))),), number)
    # LLVM writes singles as the double of the same value.
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    return Value(code, (f"0x{bits:016X}",), number)


def of_numpy(number: Any) -> Value:
    """NumPy's scalar as a constant."""
    dtype = number.dtype
    return constant(f"{dtype.kind}{dtype.itemsize}", number.item())


# Tuples of values are Python's; their shape is that of their codes.


def shape(value: Any) -> Any:
    return tuple([shape(x) for x in value]) if isinstance(value, tuple) else value.code


def flat_codes(form: Any) -> list[str]:
    """The codes of all parts of values of this shape."""
    if isinstance(form, tuple):
        return [c for x in form for c in flat_codes(x)]
    return [part_code(form)] * parts_of(form)


def flat(value: Any) -> list[str]:
    """The parts of a value or a tuple of them."""
    if isinstance(value, tuple):
        return [p for x in value for p in flat(x)]
    if not isinstance(value, Value):
        raise NotLowered("something that is no number")
    return list(value.parts)


def rebuilt(form: Any, parts: list[str]) -> Any:
    """A value of a shape out of its parts, which are used up."""
    if isinstance(form, tuple):
        return tuple([rebuilt(x, parts) for x in form])
    n = parts_of(form)
    taken = tuple(parts[:n])
    del parts[:n]
    return Value(form, taken)


class Writer:
    """The lines of a function of LLVM."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        # What the function begins with.
        self.first: list[str] = []
        self.count = 0
        self.block = "entry"
        self.alive = True

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def emit(self, text: str) -> str:
        """An instruction with a result."""
        self.count += 1
        name = f"%t{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def room(self, t: str) -> str:
        """The place of a variable in memory."""
        name = self.fresh()
        self.first.append(f"  {name} = alloca {t}")
        return name

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label
        self.alive = True

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")
        self.alive = False

    def branch(self, test: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {test}, label %{yes}, label %{no}")
        self.alive = False

    # Conversions

    def cast(self, x: Value, to: str) -> Value:
        """A number as one of another dtype."""
        source = x.code
        if source == to:
            return x
        if x.number is not None and to[0] in "iufc" and _exact(x.number, to):
            return constant(to, x.number)
        if to[0] == "c":
            part = part_code(to)
            pieces = [Value(part_code(source), (p,)) for p in x.parts]
            if source[0] != "c":
                pieces = [x, constant(part, 0)]
            return Value(to, tuple([self.cast(p, part).parts[0] for p in pieces]))
        if source[0] == "c":
            raise NotLowered("a complex number as a real one")
        if to == "b1":
            return self.truth(x)
        if source == "f2":
            return self.cast(Value("f4", (self.emit(f"call {_OF_HALF.format(x.parts[0])}"),)), to)
        if to == "f2":
            # Integers that a single rounds are infinite as halves.
            x = x if source == "f8" else self.cast(x, "f4")
            return Value(to, (self.emit(f"call {_TO_HALF[x.code].format(x.parts[0])}"),))
        a, b = LLVM[source], LLVM[to]
        (name,) = x.parts
        if source[0] in "iub" and to[0] in "iu":
            if a == b:
                return Value(to, (name,))
            wider = 8 * int(to[1:]) > (1 if source == "b1" else 8 * int(source[1:]))
            how = ("sext" if source[0] == "i" else "zext") if wider else "trunc"
        elif source[0] in "iub":
            how = "sitofp" if source[0] == "i" else "uitofp"
        elif to[0] in "iu":
            how = "fptosi" if to[0] == "i" else "fptoui"
        else:
            how = "fpext" if int(to[1:]) > int(source[1:]) else "fptrunc"
        return Value(to, (self.emit(f"{how} {a} {name} to {b}"),))

    def truth(self, x: Value) -> Value:
        """Is a number other than zero?"""
        if x.code == "b1":
            return x
        if x.code[0] == "c":
            raise NotLowered("a complex number as a condition")
        if x.code[0] in "iu":
            return Value("b1", (self.emit(f"icmp ne {LLVM[x.code]} {x.parts[0]}, 0"),))
        x = self.cast(x, "f4") if x.code == "f2" else x
        return Value(
            "b1", (self.emit(f"fcmp une {LLVM[x.code]} {x.parts[0]}, {constant(x.code, 0).parts[0]}"),)
        )

    # Arithmetic

    def operate(self, op: str, x: Value, y: Value, want: str | None) -> Value:
        """A binary operation. `want`: the integer dtype that the result is cast to."""
        kinds = {x.code[0], y.code[0]}
        if kinds <= {"i", "u"}:
            return self.of_integers(op, x, y, want)
        if kinds == {"b"} and op in ("BitAnd", "BitOr", "BitXor"):
            return Value("b1", (self.emit(f"{_RING[op]} i1 {x.parts[0]}, {y.parts[0]}"),))
        if kinds == {"f"} and op in _REAL and "f2" not in (x.code, y.code):
            code = max(x.code, y.code)
            x, y = self.cast(x, code), self.cast(y, code)
            return Value(code, (self.emit(f"{_REAL[op]} {LLVM[code]} {x.parts[0]}, {y.parts[0]}"),))
        if kinds == {"c"} and x.code == y.code and op in ("Add", "Sub"):
            t = LLVM[x.code]
            return Value(
                x.code,
                tuple([self.emit(f"{_REAL[op]} {t} {a}, {b}") for a, b in zip(x.parts, y.parts, strict=True)]),
            )
        raise NotLowered(f"{op} of {x.code} and {y.code}")

    def of_integers(self, op: str, x: Value, y: Value, want: str | None) -> Value:
        """Integers are computed with 64 bits, or with as many as the result keeps, which is the same."""
        if op in _RING:
            code = want or ("i8" if "i" in (x.code[0], y.code[0]) else "u8")
            x, y = self.cast(x, code), self.cast(y, code)
            return Value(code, (self.emit(f"{_RING[op]} {LLVM[code]} {x.parts[0]}, {y.parts[0]}"),))
        if op in ("LShift", "RShift"):
            code = f"{x.code[0]}8"
            if (
                want is not None
                and x.code == want
                and y.number is not None
                and 0 <= y.number < 8 * int(want[1:])
            ):
                code = want
            how = "shl" if op == "LShift" else "ashr" if code[0] == "i" else "lshr"
            x, y = self.cast(x, code), self.cast(y, code)
            return Value(code, (self.emit(f"{how} {LLVM[code]} {x.parts[0]}, {y.parts[0]}"),))
        if op in ("FloorDiv", "Mod") and x.code == y.code:
            code = f"{x.code[0]}8"
            if want is not None and x.code == want:
                code = want if int(want[1:]) >= 4 else f"{x.code[0]}4"
            return self.divided(op, self.cast(x, code), self.cast(y, code))
        raise NotLowered(f"{op} of {x.code} and {y.code}")

    def divided(self, op: str, x: Value, y: Value) -> Value:
        """The quotient rounded down, or the remainder with the divisor's sign; of zero it is zero."""
        t, code = LLVM[x.code], x.code
        a, b = x.parts[0], y.parts[0]
        nothing = self.emit(f"icmp eq {t} {b}, 0")
        if code[0] == "u":
            safe = self.emit(f"select i1 {nothing}, {t} 1, {t} {b}")
            r = self.emit(f"{'udiv' if op == 'FloorDiv' else 'urem'} {t} {a}, {safe}")
            return Value(code, (self.emit(f"select i1 {nothing}, {t} 0, {t} {r}"),))
        # The smallest integer by -1 traps on some machines: it wraps around.
        inverse = self.emit(f"icmp eq {t} {b}, -1")
        special = self.emit(f"or i1 {nothing}, {inverse}")
        safe = self.emit(f"select i1 {special}, {t} 1, {t} {b}")
        r = self.emit(f"srem {t} {a}, {safe}")
        mixed = self.emit(f"xor {t} {r}, {b}")
        apart = self.emit(f"icmp slt {t} {mixed}, 0")
        rest = self.emit(f"icmp ne {t} {r}, 0")
        down = self.emit(f"and i1 {apart}, {rest}")
        if op == "Mod":
            more = self.emit(f"select i1 {down}, {t} {b}, {t} 0")
            return Value(code, (self.emit(f"add {t} {r}, {more}"),))
        q = self.emit(f"sdiv {t} {a}, {safe}")
        less = self.emit(f"sext i1 {down} to {t}")
        q = self.emit(f"add {t} {q}, {less}")
        minus = self.emit(f"sub {t} 0, {a}")
        q = self.emit(f"select i1 {inverse}, {t} {minus}, {t} {q}")
        return Value(code, (self.emit(f"select i1 {nothing}, {t} 0, {t} {q}"),))

    def negative(self, x: Value, want: str | None) -> Value:
        kind = x.code[0]
        if kind in "iu":
            if x.number is not None:
                return constant(f"{kind}8", -x.number)
            return self.of_integers("Sub", constant(x.code, 0), x, want)
        if kind in "fc" and x.code != "f2":
            # (Older LLVM has no instruction for it: -0 - x is the same but for the sign of NaN.)
            t, zero = LLVM[x.code], constant(part_code(x.code), -0.0).parts[0]
            if x.number is not None:
                return constant(x.code, -x.number)
            return Value(x.code, tuple([self.emit(f"fsub {t} {zero}, {p}") for p in x.parts]))
        raise NotLowered(f"- of {x.code}")

    def inverted(self, x: Value) -> Value:
        if x.code == "b1":
            return self.opposite(x)
        if x.code[0] not in "iu":
            raise NotLowered(f"~ of {x.code}")
        x = self.cast(x, f"{x.code[0]}8")
        return Value(x.code, (self.emit(f"xor i64 {x.parts[0]}, -1"),))

    def opposite(self, x: Value) -> Value:
        return Value("b1", (self.emit(f"xor i1 {self.truth(x).parts[0]}, true"),))

    # Comparisons

    def compare(self, op: str, x: Value, y: Value) -> Value:
        kinds = {x.code[0], y.code[0]}
        if op not in _INTEGER_TEST:
            raise NotLowered(op)
        if kinds == {"b"} and op in ("Eq", "NotEq"):
            return Value("b1", (self.emit(f"icmp {_INTEGER_TEST[op]} i1 {x.parts[0]}, {y.parts[0]}"),))
        if kinds == {"f"}:
            code = max(x.code, y.code, "f4")  # halves are compared as singles
            x, y = self.cast(x, code), self.cast(y, code)
            return Value("b1", (self.emit(f"fcmp {_REAL_TEST[op]} {LLVM[code]} {x.parts[0]}, {y.parts[0]}"),))
        if kinds == {"c"} and x.code == y.code and op in ("Eq", "NotEq"):
            t, how = LLVM[x.code], _REAL_TEST[op]
            a, b = (self.emit(f"fcmp {how} {t} {p}, {q}") for p, q in zip(x.parts, y.parts, strict=True))
            return Value("b1", (self.emit(f"{'and' if op == 'Eq' else 'or'} i1 {a}, {b}"),))
        if kinds <= {"i", "u"}:
            return self.compare_integers(op, x, y)
        raise NotLowered(f"{op} of {x.code} and {y.code}")

    def compare_integers(self, op: str, x: Value, y: Value) -> Value:
        if x.code == y.code:
            code = x.code
        elif x.code[0] == y.code[0]:
            code = max(x.code, y.code)
        elif "u8" not in (x.code, y.code):
            code = "i8"
        else:
            signed = x if x.code[0] == "i" else y
            if signed.number is None or signed.number < 0:
                raise NotLowered("a signed integer compared with a uint64")
            code = "u8"
        x, y = self.cast(x, code), self.cast(y, code)
        how = _INTEGER_TEST[op]
        how = how if op in ("Eq", "NotEq") else ("s" if code[0] == "i" else "u") + how
        return Value("b1", (self.emit(f"icmp {how} {LLVM[code]} {x.parts[0]}, {y.parts[0]}"),))

    # Choices

    def choose(self, test: Value, x: Any, y: Any) -> Any:
        """One of two values, both of which are there."""
        form = shape(x)
        if form != shape(y):
            raise NotLowered("a choice between different dtypes")
        made = [
            a if a == b else self.emit(f"select i1 {test.parts[0]}, {LLVM[c]} {a}, {LLVM[c]} {b}")
            for c, a, b in zip(flat_codes(form), flat(x), flat(y), strict=True)
        ]
        return rebuilt(form, made)

    def unified(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Two values as one dtype, where a choice between them is certain."""
        codes = {v.code for v in (x, y) if isinstance(v, Value)}
        if len(codes) == 2 and codes <= {"i1", "i2", "i4", "i8"}:
            return self.cast(x, "i8"), self.cast(y, "i8")
        return x, y


def _exact(number: Any, code: str) -> bool:
    """May a constant be converted here? (What is rounded is rounded once.)"""
    if code[0] in "iu":
        return isinstance(number, int)
    return not isinstance(number, int) or abs(number) <= 1 << 53
