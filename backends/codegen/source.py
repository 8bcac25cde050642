"""Programs as kernel source.

The *range* frame loops over a range of rows and a range of the innermost
dimension, for the host; operations without an inline form (transcendental functions, integer
division, ...) run there in blocks of `BLOCK` elements through NumPy's own loops, so that results
are NumPy's to the last bit. Cards have frames of their own (`gridframe`).

Memory is read and written by `load_f8(address, index)` and the like; each backend defines what
these names mean.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.dispatch.ops import TABLE, Op
from mirabelle.dispatch.promotion import Sig, code
from mirabelle.dispatch.schedule import SCALAR

# Elements a block: 8 KiB of doubles, so that a few blocks stay in the first-level cache.
BLOCK = 1024
# Columns of a block where several rows are added up at the same time.
WIDE = 4096

# How an operand is found along the innermost dimension.
# (STRIDED: by whole elements; UNEVEN: by a number of bytes that is no multiple of the item size.)
CONTIGUOUS, REVERSED, STRETCHED, STRIDED, UNEVEN = "c", "r", "0", "s", "u"

_ARITHMETIC = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}"}
_COMPARE = {
    "equal": "{0} == {1}", "not_equal": "{0} != {1}", "less": "{0} < {1}",
    "less_equal": "{0} <= {1}", "greater": "{0} > {1}", "greater_equal": "{0} >= {1}",
}  # fmt: skip
_BITS = {"bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}"}
_FLOAT = {
    **_ARITHMETIC, **_COMPARE, "divide": "{0} / {1}", "negative": "-{0}", "positive": "{0}",
    "square": "{0} * {0}", "reciprocal": "{one} / {0}", "isnan": "{0} != {0}", "conj": "{0}",
}  # fmt: skip
# Operations with an inline helper in every backend, by kind of the working dtype.
_HELPERS = {
    "f": {"abs", "sqrt", "maximum", "minimum", "fmax", "fmin", "floor", "ceil", "trunc", "round",
          "isinf", "isfinite", "signbit", "copysign", "fma"},
    "i": {"maximum", "minimum", "abs"},
    "u": {"maximum", "minimum"},
    "b": {"maximum", "minimum"},
    "c": set(),
}  # fmt: skip


def inline(sig: Sig) -> str | None:
    """The expression of an operation on names, or None if it runs through NumPy's loop."""
    op, dtype = sig.op.name, sig.ins[0]
    kind: str = dtype.kind
    c = code(dtype)
    if op in ("copy", "cast", "where", "gather", "place") or op.startswith("pick"):
        return {
            "copy": "{0}",
            "cast": "{0}",
            "gather": "{0}",
            "place": "{0} - {1}",
            "where": f"where_{code(sig.out)}({{0}}, {{1}}, {{2}})",
        }.get(op)
    if sig.op.scalar is not None:
        return f"{function_name(sig.op)}({', '.join(f'{{{i}}}' for i in range(sig.op.nin))})"
    if dtype.char in "eg" or any(d.char in "eg" for d in (*sig.ins, *sig.outs)):
        return None
    if len(set(sig.ins)) > 1:
        return None
    if op == "complex":
        return f"{code(sig.out)}(complex({{0}}, {{1}}))"
    if op in _HELPERS[kind]:
        return f"{op}_{c}({', '.join(f'{{{i}}}' for i in range(sig.op.nin))})"
    if kind == "f":
        form = _FLOAT.get(op)
        return form.replace("{one}", f"{c}(1)") if form else None
    if kind == "c":
        if op in ("real", "imag"):
            return f"{{0}}.{op}"
        if op in ("multiply", "square") and products_fused():
            return f"{op}_{c}({', '.join(f'{{{i}}}' for i in range(sig.op.nin))})"
        if op == "abs" and moduli_scaled():
            return f"abs_{c}({{0}})"
        return {"add": "{0} + {1}", "subtract": "{0} - {1}", "equal": _COMPARE["equal"],
                "not_equal": _COMPARE["not_equal"], "positive": "{0}", "negative": "-{0}",
                "conj": "conj_" + c + "({0})"}.get(op)  # fmt: skip
    if op == "real":
        return "{0}"
    if kind in "iu":
        table = {**_ARITHMETIC, **_BITS, "negative": "-{0}", "positive": "{0}", "conj": "{0}",
                 "square": "{0} * {0}", "bitwise_invert": "~{0}"}  # fmt: skip
        if op in table:
            return f"{c}({table[op]})"  # narrower integers wrap around where NumPy's do
        return _COMPARE.get(op)
    if kind == "b":
        return {
            "logical_and": "{0} & {1}", "logical_or": "{0} | {1}", "logical_not": "not {0}",
            "logical_xor": "{0} ^ {1}", **_BITS, "bitwise_invert": "not {0}",
            "add": "{0} | {1}", "multiply": "{0} & {1}", "equal": "{0} == {1}",
            "not_equal": "{0} != {1}", "conj": "{0}",
        }.get(op)  # fmt: skip
    return None


@functools.cache
def products_fused() -> bool:
    """Does NumPy's vector code round products of complex numbers as `multiply_c16` does: those of the parts
    are added to the second product without rounding them first?

    (It does where the processor has the instruction. Elsewhere products run through NumPy's loop.)
    """
    from fractions import Fraction as Exact

    for real in (np.float64, np.float32):
        z = np.empty((2, 7), np.result_type(real, np.complex64))
        z.real, z.imag = np.sqrt(np.arange(2, 30, dtype=real)).reshape(2, 2, 7)
        for a, b, found in ((*z, z[0] * z[1]), (z[0], z[0], np.square(z[0]))):
            second = a.imag * b.imag, a.imag * b.real
            for i, product in enumerate(found):
                first = [Exact(float(a[i].real)) * Exact(float(x)) for x in (b[i].real, b[i].imag)]
                parts = first[0] - Exact(float(second[0][i])), first[1] + Exact(float(second[1][i]))
                if (product.real, product.imag) != tuple([real(float(x)) for x in parts]):
                    return False
    return True


@functools.cache
def moduli_scaled() -> bool:
    """Does NumPy take moduli of complex numbers as `abs_c16` does: the larger part times the root of one and
    the square of the quotient of the parts, added without rounding it first?

    (Its code for AVX-512 does. Elsewhere moduli run through NumPy's loop, which calls `hypot`.)
    """
    from fractions import Fraction as Exact

    for real in (np.float64, np.float32):
        parts = np.sqrt(np.arange(4, 68, dtype=real)) * real(0.37)
        z = np.empty(64, np.result_type(real, np.complex64))
        z.real, z.imag = parts, parts[::-1]
        for x, found in zip(z, np.abs(z), strict=True):
            small, large = sorted([x.real, x.imag])
            quotient = Exact(float(small / large))
            if found != np.sqrt(real(float(1 + quotient * quotient))) * large:
                return False
        ends = np.array(
            [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, np.finfo(real).max, np.finfo(real).tiny], real
        )
        z = np.empty(len(ends) ** 2, z.dtype)
        z.real, z.imag = np.repeat(ends, len(ends)), np.tile(ends, len(ends))
        with np.errstate(all="ignore"):
            if not np.array_equal(np.abs(z), np.hypot(z.real, z.imag), equal_nan=True):
                return False
    return True


def function_name(op: Op) -> str:
    """What a scalar function is called in generated source."""
    stem = "".join(ch if ch.isalnum() else "_" for ch in op.name)
    return f"fn_{stem}" if TABLE.get(op.name) is op else f"fn_{stem}_{op.id}"


def compilable(program: Program) -> bool:
    """Can this program be compiled for the host? (Half and long double run through NumPy.)"""
    dtypes = {*program.leaf_dtypes, *program.out_dtypes}
    for sig, _ in program.steps:
        dtypes |= {*sig.ins, *sig.outs}
        if inline(sig) is None and not looped(sig) and not sig.op.name.startswith("pick"):
            return False
    return not any(d.char in "egG" for d in dtypes)


def looped(sig: Sig) -> bool:
    """Does the operation run through NumPy's loop on blocks?"""
    if sig.op.ufunc is None:
        return False
    # The loop of powers of integers with a sign raises errors, which needs the interpreter.
    return not (sig.op.name == "pow" and sig.ins[0].kind == "i")


@dataclass(frozen=True)
class Layout:
    """How operands lie: the rank after merging dimensions, and how each steps innermost.

    `outs` come first in the argument block, then leaves. `tiled` frames visit the two innermost
    dimensions in tiles, for operands whose fast dimension is not the innermost.
    """

    rank: int
    outs: str
    leaves: str
    tiled: bool = False
    reduce: tuple[str, ...] = ()  # the ufunc name of each output that is a reduction
    reduce_rank: int = 0  # dimensions that are reduced, apart from the innermost
    shared: bool = False  # may a result be an operand too, beside other results?
    inner_kept: bool = False  # is the innermost dimension kept (accumulated over rows)?


@dataclass
class Source:
    """Generated source, and what its argument block holds after sizes, addresses and strides."""

    text: str
    name: str
    loops: list[Sig]
    functions: list[Op] = field(default_factory=list)


class Writer:
    """Lines of source at a depth of indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def zero_cast(value: str, source: np.dtype, target: np.dtype) -> str:
    """`value` of one dtype as another, in source."""
    if source == target:
        return value
    s, t = code(source), code(target)
    if target.kind == "b":
        return f"({value} != {s}(0))"
    if source.kind == "c" and target.kind != "c":
        return zero_cast(f"{value}.real", np.dtype(f"f{source.itemsize // 2}"), target)
    if source.kind == "f" and target.kind in "iu":
        return _integer_of(value, s, target)
    return f"{t}({value})"


def _integer_of(value: str, s: str, target: np.dtype) -> str:
    """A real number as an integer, as C does on x86-64: compilers leave open what is out of the range.

    Towards zero into int32 (for uint32 and 64 bits into int64), whose least number stands for NaN and for what
    it cannot hold; of shorter integers the low bits. From 2**63 on uint64 is counted from there.
    """
    if s == "f2":  # (which cannot tell the bounds from infinity)
        value, s = f"f4({value})", "f4"
    t = code(target)
    if t == "u8":
        high = f"u8({_held(f'({value} - {s}({2.0**63!r}))', s, 64)}) ^ u8(i8({s}({-(2.0**63)!r})))"
        return f"where_u8({value} >= {s}({2.0**63!r}), {high}, u8({_held(value, s, 64)}))"
    bits = 64 if t in ("i8", "u4") else 32
    held = _held(value, s, bits)
    return held if t == f"i{bits // 8}" else f"{t}({held})"


def _held(value: str, s: str, bits: int) -> str:
    """A real number as a signed integer of so many bits: its least one for what it cannot hold."""
    i, bound = f"i{bits // 8}", 2.0 ** (bits - 1)
    none = f"{i}({s}({-bound!r}))"
    # (What is less than one below the least number becomes that.)
    least = f"{value} > {s}({-bound - 1!r})" if (s, bits) == ("f8", 32) else f"{value} >= {s}({-bound!r})"
    return f"where_{i}({value} < {s}({bound!r}), where_{i}({least}, {i}({value}), {none}), {none})"


class Body:
    """The statements of a program, for a frame that says how leaves and results are named."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions: list[Op] = []

    def scalar_name(self, ref: int, dtype: np.dtype) -> str:
        return f"s{self.program.scalar_slots[ref - SCALAR, dtype]}"

    def expression(self, k: int, value: dict[int, str]) -> str:
        """The expression of step `k`, given the names of the values it reads.

        For a gather, `value` holds a load of its memory with the offset left open: "load(p, {})"; for a place,
        where the element lies.
        """
        sig, refs = self.program.steps[k]
        if sig.op.name == "gather":
            return value[refs[0]].format(self.offset(refs[1], value))
        if sig.op.name == "place":
            return f"{value[refs[0]]} - {self.offset(refs[1], value)}"
        names = []
        for ref, wanted in zip(refs, sig.ins, strict=True):
            if ref >= SCALAR:
                names.append(self.scalar_name(ref, wanted))
            else:
                names.append(zero_cast(value[ref], self.program.dtype_of(ref), wanted))
        if sig.op.name == "cast":
            return zero_cast(names[0], sig.ins[0], sig.out)
        if sig.op.name.startswith("pick"):
            return f"{value[refs[0]]}[{int(sig.op.name[4:])}]"
        form = inline(sig)
        assert form is not None, sig
        if sig.op.scalar is not None and sig.op not in self.functions:
            self.functions.append(sig.op)
        return result_cast(form.format(*names), sig)

    def offset(self, ref: int, value: dict[int, str]) -> str:
        return self.scalar_name(ref, np.dtype(np.int64)) if ref >= SCALAR else value[ref]


def result_cast(expression: str, sig: Sig) -> str:
    if sig.op.scalar is not None and len(sig.outs) == 1:
        return f"{code(sig.out)}({expression})"
    return expression


def gathered_leaves(program: Program) -> set[int]:
    """The references of leaves that only gathers read."""
    return {refs[0] for sig, refs in program.steps if sig.op.name == "gather"}


def tables(program: Program) -> set[int]:
    """The references of leaves of which operations want to know where an element lies."""
    return gathered_leaves(program) | {-1 - j for j in program.places}
