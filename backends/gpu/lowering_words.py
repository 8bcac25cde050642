"""What named functions in generated source are in LLVM's instructions: memory, threads, roundings.

The names are those of `names`; real functions are NVIDIA's libdevice, as numba-cuda takes them.
"""

from __future__ import annotations

import re
from typing import Any

from mirabelle.backends.gpu.lowering_values import (
    LLVM,
    NotLowered,
    Value,
    constant,
    flat,
    part_code,
    parts_of,
    shape,
)

_MEMORY = re.compile(r"(load|store)(\d*)_([biufc]\d+)$")
_DIVISION = re.compile(r"(div|rem)_(i[48])$")
_REGISTER = re.compile(r"(threads?|blocks?)_([xyz])$")
_REGISTERS = {"thread": "tid", "block": "ctaid", "threads": "ntid", "blocks": "nctaid"}
# Functions that are instructions: in LLVM's words, as far as libNVVM takes them, with doubles and singles.
_INSTRUCTIONS = {
    **{name: (f"llvm.{name}.f64", f"llvm.{name}.f32") for name in ("sqrt", "fma")},
    **{name: (f"llvm.nvvm.{name}.d", f"llvm.nvvm.{name}.f") for name in ("fabs", "floor", "ceil", "trunc")},
    "rint": ("llvm.nvvm.round.d", "llvm.nvvm.round.f"),
}
_LIBDEVICE = {
    **dict.fromkeys(
        ("cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
         "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "sinpi", "cospi",
         "gamma"),
        1,
    ),
    **dict.fromkeys(("fmod", "pow", "atan2", "hypot", "nextafter"), 2),
}  # fmt: skip
_SAMPLER_CASTS = {"bits": ("f8", "u8"), "number": ("u8", "f8"), "bits4": ("f4", "u4"), "number4": ("u4", "f4")}
# The memory of a card, and that of a block.
GLOBAL, SHARED = 1, 3


def memory_part(code: str) -> str:
    """LLVM's type of a part in memory."""
    return "i8" if code == "b1" else LLVM[code]


def part_size(code: str) -> int:
    return int(code[1:]) // parts_of(code)


def word(w: Any, module: Any, name: str, args: list[Any]) -> Any:
    """The value of a call of a named function; None if it is none of these."""
    found = _MEMORY.match(name)
    if found is not None:
        what, lanes, code = found.groups()
        if part_size(code) < 4:
            module.plain = False
        if what == "load":
            return load(w, code, int(lanes or 1), *args)
        store(w, code, int(lanes or 1), *args)
        return constant("b1", False)
    found = _REGISTER.match(name)
    if found is not None and not args:
        register = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[found[1]]}.{found[2]}"
        return Value("i4", (module.call(w, register, "i32", [], []),))
    found = _DIVISION.match(name)
    if found is not None:
        a, b = (w.cast(x, found[2]).parts[0] for x in args)
        how = "udiv" if found[1] == "div" else "urem"
        return Value(found[2], (w.emit(f"{how} {LLVM[found[2]]} {a}, {b}"),))
    if name in ("min", "max") and len(args) == 2:
        return extreme(w, name, *args)
    if name == "complex" and len(args) == 2:
        return complex_of(*args)
    if name in _SAMPLER_CASTS and len(args) == 1:
        taken, made = _SAMPLER_CASTS[name]
        (x,) = w.cast(args[0], taken).parts
        return Value(made, (w.emit(f"bitcast {LLVM[taken]} {x} to {LLVM[made]}"),))
    if name in ("sqrt", "floor"):
        return real_function(w, module, name, args)
    return None


# Memory


def _address(w: Any, base: Value, index: Value, itemsize: int) -> str:
    if base.code != "i8" or index.code not in ("i4", "i8"):
        raise NotLowered(f"an address of type {base.code} with an index of type {index.code}")
    if index.number is not None:
        return w.emit(f"add i64 {base.parts[0]}, {index.number * itemsize}") if index.number else base.parts[0]
    offset = w.emit(f"mul i64 {w.cast(index, 'i8').parts[0]}, {itemsize}")
    return w.emit(f"add i64 {base.parts[0]}, {offset}")


def _pieces(code: str, lanes: int) -> tuple[int, int]:
    """How many vectors of how many parts hold so many: no vector is longer than 16 bytes."""
    parts, longest = lanes * parts_of(code), max(1, 16 // part_size(code))
    return (1, parts) if parts <= longest else (parts // longest, longest)


def _places(w: Any, code: str, lanes: int, base: Value, index: Value) -> Any:
    """For each vector: its type, its place, its alignment."""
    size, part = part_size(code), memory_part(code)
    vectors, length = _pieces(code, lanes)
    at = _address(w, base, index, int(code[1:]))
    t = f"<{length} x {part}>" if length > 1 else part
    # One element is aligned as itself; a vector as a whole.
    align = length * size if lanes > 1 else size
    for v in range(vectors):
        where = w.emit(f"add i64 {at}, {v * length * size}") if v else at
        pointer = w.emit(f"inttoptr i64 {where} to {t} addrspace({GLOBAL})*")
        yield t, f"{t} addrspace({GLOBAL})* {pointer}, align {align}", length


def load(w: Any, code: str, lanes: int, base: Value, index: Value) -> Any:
    names: list[str] = []
    for t, place, length in _places(w, code, lanes, base, index):
        loaded = w.emit(f"load {t}, {place}")
        if length == 1:
            names.append(loaded)
        else:
            names += [w.emit(f"extractelement {t} {loaded}, i32 {k}") for k in range(length)]
    return _elements(w, code, lanes, names)


def _elements(w: Any, code: str, lanes: int, names: list[str]) -> Any:
    if code == "b1":
        names = [w.emit(f"icmp ne i8 {x}, 0") for x in names]
    n = parts_of(code)
    made = tuple([Value(code, tuple(names[k * n : (k + 1) * n])) for k in range(lanes)])
    return made[0] if lanes == 1 else made


def store(w: Any, code: str, lanes: int, base: Value, index: Value, value: Any) -> None:
    given = value if lanes > 1 else (value,)
    if shape(given) != (code,) * lanes:
        given = tuple([_stored(w, x, code) for x in given])
    names = flat(given)
    if code == "b1":
        names = [w.emit(f"zext i1 {x} to i8") for x in names]
    part = memory_part(code)
    for t, place, length in _places(w, code, lanes, base, index):
        chosen, names = names[:length], names[length:]
        vector = chosen[0] if length == 1 else "undef"
        if length > 1:
            for k, x in enumerate(chosen):
                vector = w.emit(f"insertelement {t} {vector}, {part} {x}, i32 {k}")
        w.lines.append(f"  store {t} {vector}, {place}")


def _stored(w: Any, x: Value, code: str) -> Value:
    """A result whose dtype is another of its kind: integers are computed with 64 bits."""
    if isinstance(x, Value) and x.code[0] == code[0]:
        return w.cast(x, code)  # type: ignore[no-any-return]
    raise NotLowered(f"a store as {code} of something else")


class Shared:
    """An array in the memory of a block."""

    def __init__(self, name: str, code: str, length: int) -> None:
        self.name = name
        self.code = code
        self.part = memory_part(code)
        self.total = length * parts_of(code)
        self.align = max(8, int(code[1:]))

    def declaration(self) -> str:
        t = f"[{self.total} x {self.part}]"
        return f"@{self.name} = internal addrspace({SHARED}) global {t} undef, align {self.align}"

    def _pointers(self, w: Any, index: Value) -> list[str]:
        if index.code[0] not in "iu":
            raise NotLowered("an index that is no integer")
        i, n = w.cast(index, "i8").parts[0], parts_of(self.code)
        if n > 1:
            i = w.emit(f"mul i64 {i}, {n}")
        t, out = f"[{self.total} x {self.part}]", []
        for k in range(n):
            at = w.emit(f"add i64 {i}, {k}") if k else i
            pointer = w.emit(f"getelementptr {t}, {t} addrspace({SHARED})* @{self.name}, i64 0, i64 {at}")
            out.append(f"{self.part} addrspace({SHARED})* {pointer}, align {part_size(self.code)}")
        return out

    def get(self, w: Any, index: Value) -> Any:
        names = [w.emit(f"load {self.part}, {p}") for p in self._pointers(w, index)]
        return _elements(w, self.code, 1, names)

    def put(self, w: Any, index: Value, value: Any) -> None:
        if shape(value) != self.code:
            value = _stored(w, value, self.code)
        for p, x in zip(self._pointers(w, index), value.parts, strict=True):
            if self.code == "b1":
                x = w.emit(f"zext i1 {x} to i8")
            w.lines.append(f"  store {self.part} {x}, {p}")


# Numbers


def extreme(w: Any, name: str, x: Value, y: Value) -> Value:
    """Python's `min` and `max`, of integers of one kind."""
    if x.code[0] != y.code[0] or x.code[0] not in "iu":
        raise NotLowered(f"{name} of {x.code} and {y.code}")
    code = max(x.code, y.code)
    x, y = w.cast(x, code), w.cast(y, code)
    test = w.compare("Lt" if name == "min" else "Gt", y, x)
    return w.choose(test, y, x)  # type: ignore[no-any-return]


def complex_of(x: Value, y: Value) -> Value:
    if x.code != y.code or x.code not in ("f4", "f8"):
        raise NotLowered(f"complex({x.code}, {y.code})")
    return Value("c8" if x.code == "f4" else "c16", x.parts + y.parts)


def real_function(w: Any, module: Any, name: str, args: list[Any]) -> Any:
    """A function of the library of real functions; at the precision of its operands."""
    code = args[0].code
    if code not in ("f4", "f8"):
        raise NotLowered(f"{name} of {code}")
    t = LLVM[code]
    if name == "copysign" and len(args) == 2:
        return signed_as(w, *args)
    if name in _INSTRUCTIONS and len(args) == (3 if name == "fma" else 1):
        function = _INSTRUCTIONS[name][code == "f4"]
    elif _LIBDEVICE.get(name) == len(args):
        function = libdevice(name, code)
    elif name == "ldexp":
        n = args[1]
        if n.code != "i4":
            raise NotLowered(f"ldexp by {n.code}")
        taken = module.call(w, libdevice(name, code), t, [t, "i32"], [*args[0].parts, *n.parts])
        return Value(code, (taken,))
    elif name == "frexp":
        place = w.room("i32")
        part = module.call(w, libdevice(name, code), t, [t, "i32*"], [*args[0].parts, place])
        return Value(code, (part,)), Value("i4", (w.emit(f"load i32, i32* {place}"),))
    else:
        raise NotLowered(f"{name}() of {len(args)} numbers")
    args = [w.cast(x, code) if x.number is not None else x for x in args]
    if any(x.code != code for x in args):
        raise NotLowered(f"{name} of different dtypes")
    return Value(code, (module.call(w, function, t, [t] * len(args), [x.parts[0] for x in args]),))


def signed_as(w: Any, x: Value, y: Value) -> Value:
    """The magnitude of one number with the sign of another."""
    if x.code != y.code:
        raise NotLowered("a sign of another dtype")
    t, bits = LLVM[x.code], 8 * int(x.code[1:])
    sign = 1 << bits - 1
    a, b = (w.emit(f"bitcast {t} {v.parts[0]} to i{bits}") for v in (x, y))
    a, b = w.emit(f"and i{bits} {a}, {sign - 1}"), w.emit(f"and i{bits} {b}, {-sign}")
    both = w.emit(f"or i{bits} {a}, {b}")
    return Value(x.code, (w.emit(f"bitcast i{bits} {both} to {t}"),))


def libdevice(name: str, code: str) -> str:
    module_name = {"gamma": "tgamma"}.get(name, name)
    return f"__nv_{module_name}{'f' if code == 'f4' else ''}"


def part_of(x: Value, name: str) -> Value:
    """The real or imaginary part."""
    if x.code[0] != "c":
        if name == "real":
            return x
        raise NotLowered(f"{name} of {x.code}")
    return Value(part_code(x.code), (x.parts[0 if name == "real" else 1],))
