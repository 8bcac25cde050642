"""The scalar functions that generated kernels call on a card: `floor_divide_i4`, `sin_f8`, `log_c16`.

`scalar_function("floor_divide", "i4")` is a plain Python function of NumPy's meaning, for Numba's
compiler for cards. Its globals hold whatever it refers to: types, constants, the compiler's
library of real functions as the module `library`, and further plain functions of this kind, which
the compiler has to make device functions of (`calls` of the function names them). Some are the
library's own: `math.sin`, which a compiler knows already.

Four *targets* are there for one meaning: "cuda"; "hip"; "host", for `numba.njit`; and "numpy", plain Python
on NumPy's numbers. On a simulated card `simulated_function` takes NumPy's ufuncs where there are any.

>>> import numpy as np
>>> with np.errstate(all="ignore"):  # (as integers of cards do, these wrap around)
...     scalar_function("floor_divide", "i4", "numpy")(np.int32(-7), np.int32(2))
np.int32(-4)
>>> simulated_function("floor_divide", "i4")(np.int32(-7), np.int32(2))
np.int32(-4)
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.userfunctions import captures
from mirabelle.backends.gpu import (
    operations_analytic,
    operations_complex,
    operations_integer,
    operations_real,
)
from mirabelle.backends.host.interpreter import numpy_callable
from mirabelle.dispatch import ops
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig, signature
from mirabelle.dispatch.promotion import code as code_of

CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_I: Any = operations_integer
_R: Any = operations_real
_C: Any = operations_complex
_A: Any = operations_analytic

# The patterns, by kind of dtype. (A function of the library that is the operation itself is named.)

_LIBRARY = {
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc",
    "fmod", "pow", "atan2", "hypot", "copysign", "erf", "erfc", "gamma", "lgamma", "sinpi", "cospi",
}  # fmt: skip
_COMMON: dict[str, Any] = {
    "positive": _I.same, "conj": _I.same, "real": _I.same, "copy": _I.same, "imag": _I.zero,
    "where": _I.where, "negative": _I.negative, "add": _I.add, "subtract": _I.subtract,
    "multiply": _I.multiply, "square": _I.square, "equal": _I.equal, "not_equal": _I.not_equal,
    "less": _I.less, "less_equal": _I.less_equal, "greater": _I.greater,
    "greater_equal": _I.greater_equal, "logical_not": _I.logical_not,
    "logical_and": _I.logical_and, "logical_or": _I.logical_or, "logical_xor": _I.logical_xor,
}  # fmt: skip
_WHOLE: dict[str, Any] = {
    **_COMMON, "floor": _I.same, "ceil": _I.same, "trunc": _I.same, "isnan": _I.false,
    "isinf": _I.false, "isfinite": _I.true,
}  # fmt: skip
_INTEGER: dict[str, Any] = {
    **_WHOLE, "maximum": _I.larger, "minimum": _I.smaller, "fmax": _I.larger, "fmin": _I.smaller,
    "bitwise_and": _I.bitwise_and, "bitwise_or": _I.bitwise_or, "bitwise_xor": _I.bitwise_xor,
    "bitwise_invert": _I.bitwise_invert, "bitwise_left_shift": _I.left_shift,
}  # fmt: skip
_PATTERNS: dict[str, dict[str, Any]] = {
    "b": {
        **_WHOLE, "abs": _I.same, "add": _I.bool_or, "multiply": _I.bool_and,
        "maximum": _I.bool_or, "minimum": _I.bool_and, "fmax": _I.bool_or, "fmin": _I.bool_and,
        "less": _I.bool_less, "less_equal": _I.bool_less_equal, "greater": _I.bool_greater,
        "greater_equal": _I.bool_greater_equal, "logical_not": _I.bool_not,
        "logical_and": _I.bool_and, "logical_or": _I.bool_or, "logical_xor": _I.bool_xor,
        "bitwise_and": _I.bool_and, "bitwise_or": _I.bool_or, "bitwise_xor": _I.bool_xor,
        "bitwise_invert": _I.bool_not,
    },
    "i": {
        **_INTEGER, "abs": _I.signed_abs, "sign": _I.signed_sign,
        "reciprocal": _I.signed_reciprocal, "floor_divide": _I.signed_floor_divide,
        "remainder": _I.signed_remainder, "fmod": _I.signed_fmod, "divmod": _I.signed_divmod,
        "pow": _I.signed_pow, "bitwise_right_shift": _I.signed_right_shift, "gcd": _I.signed_gcd,
        "lcm": _I.signed_lcm, "bitwise_count": _I.signed_bitwise_count,
    },
    "u": {
        **_INTEGER, "abs": _I.same, "sign": _I.unsigned_sign,
        "reciprocal": _I.unsigned_reciprocal, "floor_divide": _I.unsigned_floor_divide,
        "remainder": _I.unsigned_remainder, "fmod": _I.unsigned_remainder,
        "divmod": _I.unsigned_divmod, "pow": _I.unsigned_pow,
        "bitwise_right_shift": _I.unsigned_right_shift, "gcd": _I.unsigned_gcd,
        "lcm": _I.unsigned_lcm, "bitwise_count": _I.unsigned_bitwise_count,
    },
    "f": {
        **_COMMON, "abs": "fabs", "round": "rint", "sign": _R.real_sign, "divide": _R.divide,
        "reciprocal": _R.reciprocal, "isnan": _R.is_nan, "isinf": _R.is_infinite,
        "isfinite": _R.is_finite, "signbit": _R.signbit, "maximum": _R.maximum,
        "minimum": _R.minimum, "fmax": _R.fmax, "fmin": _R.fmin, "deg2rad": _R.deg2rad,
        "rad2deg": _R.rad2deg, "heaviside": _R.heaviside, "logaddexp": _R.logaddexp,
        "logaddexp2": _R.logaddexp2, "floor_divide": _R.real_floor_divide,
        "remainder": _R.real_remainder, "divmod": _R.real_divmod, "modf": _R.modf,
        "frexp": _R.frexp, "ldexp": _R.ldexp, "nextafter": _R.nextafter, "spacing": _R.spacing,
        "fma": "fma", **{name: name for name in _LIBRARY},
    },
    "c": {
        "positive": _C.same, "copy": _C.same, "real": _C.real, "imag": _C.imag, "where": _I.where,
        "conj": _C.conj, "negative": _C.negative, "add": _C.add, "subtract": _C.subtract,
        "multiply": _C.multiply, "square": _C.square, "divide": _C.divide,
        "reciprocal": _C.reciprocal, "abs": _C.absolute, "sign": _C.sign, "round": _C.rint,
        "isnan": _C.is_nan, "isinf": _C.is_infinite, "isfinite": _C.is_finite,
        "logical_not": _C.logical_not, "logical_and": _C.logical_and,
        "logical_or": _C.logical_or, "logical_xor": _C.logical_xor, "equal": _C.equal,
        "not_equal": _C.not_equal, "less": _C.less, "less_equal": _C.less_equal,
        "greater": _C.greater, "greater_equal": _C.greater_equal, "maximum": _C.maximum,
        "minimum": _C.minimum, "fmax": _C.fmax, "fmin": _C.fmin, "exp": _A.exp, "exp2": _A.exp2,
        "expm1": _A.expm1, "log": _A.log, "log2": _A.log2, "log10": _A.log10, "log1p": _A.log1p,
        "sqrt": _A.sqrt, "pow": _A.power, "sin": _A.sin, "cos": _A.cos, "tan": _A.tan,
        "sinh": _A.sinh, "cosh": _A.cosh, "tanh": _A.tanh, "asin": _A.asin, "acos": _A.acos,
        "atan": _A.atan, "asinh": _A.asinh, "acosh": _A.acosh, "atanh": _A.atanh,
    },
}  # fmt: skip
# Of complex64, what would lose digits at single precision.
_WIDE = {
    "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "asin", "acos", "atan", "asinh", "acosh", "atanh",
}  # fmt: skip
# Of float16, what is no operation at single precision, rounded.
_HALF: dict[str, Any] = {
    "positive": _I.same, "conj": _I.same, "real": _I.same, "copy": _I.same, "where": _I.where,
    "nextafter": _R.half_nextafter, "spacing": _R.half_spacing, "divmod": _R.half_divmod,
    "modf": _R.half_pair, "frexp": _R.half_frexp, "ldexp": _R.half_ldexp, "fma": _R.half_ternary,
    "isnan": _R.half_test, "isinf": _R.half_test, "isfinite": _R.half_test,
    "signbit": _R.half_test, "logical_not": _R.half_test, "equal": _R.half_comparison,
    "not_equal": _R.half_comparison, "less": _R.half_comparison,
    "less_equal": _R.half_comparison, "greater": _R.half_comparison,
    "greater_equal": _R.half_comparison, "logical_and": _R.half_comparison,
    "logical_or": _R.half_comparison, "logical_xor": _R.half_comparison,
}  # fmt: skip


def scalar_function(stem: str, code: str, target: str = "cuda") -> Callable[..., Any]:
    """The function of an operation's name and its first operand's dtype, for a compiler.

    What no operation is called is a KeyError. Functions are made once and kept.
    """
    return _made(stem, code, target)  # type: ignore[no-any-return]


_SHORT: dict[str, Any] = {
    "floor_divide": _I.short_floor_divide, "remainder": _I.short_remainder, "fmod": _I.short_fmod,
    "divmod": _I.short_divmod,
}  # fmt: skip


def library_function(stem: str, code: str) -> str | None:
    """The name of the real function that an operation is by itself; None if it is more than that."""
    pattern = _PATTERNS[np.dtype(code).kind][stem]
    return pattern if isinstance(pattern, str) and code in ("f4", "f8") else None


@functools.cache
def _made(stem: str, code: str, target: str) -> Any:
    patterns = _PATTERNS[np.dtype(code).kind]
    if stem not in patterns:
        raise KeyError(f"{stem}_{code}")
    pattern: Any = patterns[stem]
    of: Any = None
    if stem in _I.MIXED and code in ("i8", "u8"):
        pattern = _I.MIXED[stem]
    elif code in ("i1", "i2") and stem in _SHORT:
        pattern = _SHORT[stem]
    elif code == "f2":
        pattern = _HALF.get(stem) or (_R.half_binary if TABLE[stem].nin == 2 else _R.half_unary)
        of = _made(stem, "f4", target)
    elif code == "c8" and stem in _WIDE:
        pattern = _A.wide_binary if TABLE[stem].nin == 2 else _A.wide_unary
        of = _made(stem, "c16", target)
    elif isinstance(pattern, str):
        return _of_library(pattern, code, target)
    return _bound(pattern, code, target, of)


@functools.cache
def _bound(pattern: Any, code: str, target: str, of: Any) -> Any:
    """A pattern with the globals it has for one dtype and one compiler."""
    constants = _constants(code, target)
    scope: dict[str, Any] = {"__name__": pattern.__module__}
    calls: dict[str, Any] = {}
    for name, found in captures(pattern).items():
        if name == "of":
            found = of
        elif name in constants:
            found = constants[name]
        elif isinstance(found, types.FunctionType):
            found = _bound(found, code, target, None)
        scope[name] = found
        if isinstance(found, types.FunctionType):
            calls[name] = found
    made: Any = types.FunctionType(pattern.__code__, scope, f"{pattern.__name__}_{code}", pattern.__defaults__)
    made.calls = calls
    return made


def _of_library(name: str, code: str, target: str) -> Any:
    """A function of the compiler's library by itself."""
    found = vars(_library(target, min(8, np.dtype(code).itemsize)))[name]
    if getattr(found, "__module__", "") != "numba.cuda.libdevice":
        return found
    # A stub, which no compiler must take for a function of ours: it is reached through a module.
    library = types.ModuleType("library")
    library.function = found  # type: ignore[attr-defined]
    pattern = (_R.library_1, _R.library_2, _R.library_3)[found.__code__.co_argcount - 1]
    scope = {"__name__": pattern.__module__, "library": library}
    made: Any = types.FunctionType(pattern.__code__, scope, f"{name}_{code}")
    made.calls = {}
    return made


# What patterns find in their globals


@functools.cache
def _constants(code: str, target: str) -> dict[str, Any]:
    dtype = np.dtype(code)
    kind = dtype.kind
    scope: dict[str, Any] = dict(_types(target))
    scope["T"] = scope[code]
    number: Any = np.dtype(f"f{dtype.itemsize // 2}").type if kind == "c" else dtype.type
    if code == "f2":
        number = np.float32
    scope |= {name: number(value) for name, value in (("ZERO", 0), ("ONE", 1))}
    if kind in "iu":
        bits = 8 * dtype.itemsize
        # (Cards compute in 32 bits: at 16, one was seen to take -32768 // 1 for 32767.)
        unsigned = np.dtype(f"u{dtype.itemsize if target == 'numpy' else max(4, dtype.itemsize)}")
        scope |= {"U": scope[code_of(unsigned)], "ZERO_U": unsigned.type(0), "WIDTH": number(bits)}
        with np.errstate(all="ignore"):
            scope["INVERSE_OF_ZERO"] = np.reciprocal(np.zeros(1, dtype))[0]
        if kind == "i":
            scope["MINUS_ONE"] = number(-1)
    if kind in "fc":
        double = np.dtype(number).itemsize == 8
        limits = np.finfo(dtype if kind == "f" else number)
        values = {
            "MINUS_ONE": -1, "TWO": 2, "FOUR": 4, "HALF": 0.5, "QUARTER": 0.25, "HUNDRED": 100, "PI": math.pi,
            "HALF_PI": math.pi / 2, "INFINITY": math.inf, "NAN": math.nan, "LOG_2": math.log(2),
            "LOG2_E": math.log2(math.e), "LOG10_E": math.log10(math.e), "DEGREE": number(math.pi) / number(180),
            "RADIAN": number(180) / number(math.pi), "SMALLEST": limits.smallest_subnormal,
            "LARGEST": limits.max, "LOG_SCALE": (108 if double else 48) * math.log(2),
            "SPLITTER": 2.0**27 + 1 if double else 2.0**12 + 1,
            "EXP_LIMIT": 700 if double else 80, "TANH_LIMIT": 20 if double else 10,
            "BIG": 2.0**1020 if double else 2.0**124, "TINY": 2.0**-960 if double else 2.0**-96,
            "SCALE": 2.0**108 if double else 2.0**48, "ROOT_SCALE": 2.0**-54 if double else 2.0**-24,
        }  # fmt: skip
        scope |= {name: number(value) for name, value in values.items()}
        scope["library"] = _library(target, np.dtype(number).itemsize)
    if kind in "iu" and target in ("cuda", "hip"):
        scope["popcount"] = _of_library("popcount", code, target)
    return scope


@functools.cache
def _types(target: str) -> dict[str, Any]:
    """Codes of dtypes, and what they mean to the compiler."""
    if target == "numpy":
        return {c: np.dtype(c).type for c in CODES}
    from mirabelle.backends.gpu.names import TYPES

    return TYPES


@functools.cache
def _library(target: str, itemsize: int) -> types.ModuleType:
    """The real functions a compiler knows, as a module of `sin`, `rint`, ...; at 4 or 8 bytes."""
    library = types.ModuleType("library")
    known = {name: getattr(math, name) for name in _MATH}
    if target == "numpy":
        known = {name: _guarded(name, itemsize) for name in (*_MATH, "cbrt", "rint", "sinpi", "cospi", "fma")}
    elif target == "host":
        known |= {
            name: getattr(np, name) for name in ("floor", "ceil", "trunc", "rint", "cbrt", "exp2", "fmod")
        }
        known |= {"sinpi": ops.sinpi, "cospi": ops.cospi}
    elif target == "hip":
        from numba import hip

        # HIP's device functions, by their names in C: at single precision `math`'s may be those of doubles.
        suffix = "f" if itemsize == 4 else ""
        for name in (*_MATH, "cbrt", "rint", "sinpi", "cospi", "fma"):
            if name not in ("ldexp", "frexp"):  # (which take pointers or integers: left to numba-hip)
                known[name] = getattr(hip, {"gamma": "tgamma"}.get(name, name) + suffix)
        known["popcount"] = hip.popcll
    else:
        from numba.cuda import libdevice

        suffix = "f" if itemsize == 4 else ""
        names = ("cbrt", "rint", "sinpi", "cospi", "fma")
        known |= {name: getattr(libdevice, name + suffix) for name in names}
        known["popcount"] = libdevice.popcll
    library.__dict__.update(known)
    return library


_MATH = (
    "fabs", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil",
    "trunc", "fmod", "pow", "atan2", "hypot", "copysign", "nextafter", "ldexp", "frexp", "erf",
    "erfc", "gamma", "lgamma",
)  # fmt: skip


# Simulated cards


def _guarded(name: str, itemsize: int) -> Any:
    """A real function of NumPy's numbers of so many bytes, which raises nothing."""
    op = TABLE.get(name)
    ufunc = getattr(np, name, None) if op is None or name == "ldexp" else op.ufunc
    if ufunc is not None:
        return ufunc
    assert op is not None
    dtype = np.dtype(f"f{itemsize}")
    made = numpy_callable(Sig(op, (dtype,) * op.nin, (dtype,)))[0]
    return lambda *args: made(*args)[()]


@functools.cache
def simulated_function(stem: str, code: str) -> Callable[..., Any]:
    """The same operation for a simulated card: a function of NumPy's numbers that raises nothing.

    Where NumPy has a ufunc it is that; call it with floating-point warnings off.
    """
    op = TABLE.get(stem)
    if op is None or code not in CODES:
        raise KeyError(f"{stem}_{code}")
    dtype = np.dtype(code)
    if stem == "pow":
        if dtype.kind in "iu":
            return scalar_function(stem, code, "numpy")  # NumPy refuses negative exponents
        power: Any = op.ufunc
        # On single numbers NumPy takes a square root for the exponent 0.5, on arrays it does not.
        return lambda x, y: power(np.array([x, x]), np.array([y, y]))[0]
    if op.ufunc is not None:
        return op.ufunc
    if stem in ("erf", "erfc", "gamma", "lgamma", "sinpi", "cospi", "fma"):
        return _guarded(stem, dtype.itemsize)  # type: ignore[no-any-return]
    return scalar_function(stem, code, "numpy")


def names() -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Every operation at every dtype it has a function for: name, code, codes of operands and results."""
    for stem, op in TABLE.items():
        seen = set()
        for code in CODES:
            if stem not in _PATTERNS[np.dtype(code).kind]:
                continue
            for ins in _operands(op, code):
                try:
                    sig = signature(op, ins)
                except TypeError:
                    continue
                key = (tuple(map(code_of, sig.ins)), tuple(map(code_of, sig.outs)))
                if sig.ins[-1 if stem == "where" else 0] == np.dtype(code) and key not in seen:
                    seen.add(key)
                    yield stem, code, *key


def _operands(op: ops.Op, code: str) -> Iterator[tuple[np.dtype, ...]]:
    dtype = np.dtype(code)
    if op.name == "where":
        yield np.dtype(bool), dtype, dtype
    elif op.name == "ldexp":
        yield dtype, np.dtype("i4")
        yield dtype, np.dtype("i8")
    else:
        yield (dtype,) * op.nin
        if op.name in _I.MIXED and code in ("i8", "u8"):
            yield dtype, np.dtype("u8" if code == "i8" else "i8")
