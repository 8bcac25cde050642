"""Docstrings of elementwise functions, whose sentences are the same for many."""

from __future__ import annotations

import functools
import textwrap

from mirabelle.dispatch.ops import TABLE

_PARAMETERS = {
    1: ("x : array or number", "The operand; a list or a NumPy array becomes an array."),
    2: ("x1, x2 : array or number", "The operands, stretched to one shape."),
    3: ("x1, x2, x3 : array or number", "The operands, stretched to one shape."),
}
_CHOICE = [
    (
        "condition : array of bool",
        "Where `x1` is taken. Alone, it is asked where it holds, as by `mb.nonzero`.",
    ),
    (
        "x1, x2 : array or number",
        "What is taken where it holds, and where it does not; all are stretched to one shape.",
    ),
]
# NumPy's names of functions that the array API standard calls otherwise.
_ALSO = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "bitwise_not invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "conj": "conjugate",
    "deg2rad": "radians", "divide": "true_divide", "pow": "power", "rad2deg": "degrees", "remainder": "mod",
}  # fmt: skip
_OPTIONS = [
    ("out : array or None", "Where the result is written, and what is returned then; None is a new array."),
    (
        "where : array of bool, default True",
        "Which elements of `out` are computed; the others stay as they are.",
    ),
]
_ALIKE = "Of the shape, dtype and place of `x`, in new memory"
_TOGETHER = (
    "Of the shape and dtype that the operands have together (see `mb.broadcast_shapes`, `mb.result_type`)"
)
_FLOATS = "Of the shape and place of `x`. Floating-point numbers keep their dtype"
_FEWER = "integers of 32 and 64 bits become float64, smaller ones what NumPy makes of them."
# What functions return, by sentence: the shape, the dtype, and where it lies.
_RETURNED = {
    f"{_ALIKE}.": "bitwise_invert negative positive sign",
    f"{_ALIKE}: integers stay integers.": "ceil floor trunc",
    f"{_ALIKE}: integers stay integers. Of truth values it is float16.": "round",
    f"{_ALIKE}; of truth values it is int8.": "conj reciprocal square",
    f"{_ALIKE}; of complex numbers it has the dtype of their parts.": "abs imag real",
    f"{_FLOATS}; {_FEWER}": "cbrt deg2rad rad2deg spacing",
    f"{_FLOATS}; integers of 8 and 16 bits become float32, all others and truth values float64.": (
        "cospi erf erfc gamma lgamma sinpi"
    ),
    f"Of the shape and place of `x`. Floating-point and complex numbers keep their dtype; {_FEWER}": (
        "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 sin sinh sqrt tan tanh"
    ),
    "Of dtype bool, and of the shape and place of `x`.": "isfinite isinf isnan logical_not signbit",
    "Of dtype uint8, and of the shape and place of `x`.": "bitwise_count",
    f"{_TOGETHER}, in new memory.": (
        "add bitwise_and bitwise_or bitwise_xor fmax fmin gcd lcm maximum minimum multiply subtract"
    ),
    f"{_TOGETHER}, in new memory; of truth values it is int8.": (
        "bitwise_left_shift bitwise_right_shift floor_divide fmod remainder pow"
    ),
    "Of dtype bool, and of the shape that the operands have together.": (
        "equal greater greater_equal less less_equal logical_and logical_or logical_xor not_equal"
    ),
    "Of the shape that the operands have together, and of the dtype they have together if it is "
    "floating-point; integers of 32 and 64 bits become float64.": (
        "atan2 copysign heaviside hypot logaddexp logaddexp2 nextafter fma"
    ),
    "Of the shape that the operands have together. Of the dtype they have together if it is floating-point or "
    "complex, else float64.": "divide",
    "Of the shape that the operands have together, and of the dtype of `x1` if it is floating-point; integers "
    "of 32 and 64 bits become float64.": "ldexp",
}
_SEVERAL = {
    "divmod": (
        "The quotients and the remainders, each of the shape and dtype that the operands have together; of "
        "truth values they are int8."
    ),
    "frexp": "The mantissas, floating-point numbers, and the exponents, int32, both of the shape of `x`.",
    "modf": (
        "The fractional parts and the integral parts, both of the shape of `x` and of one floating-point "
        "dtype: that of `x`, if it has one."
    ),
}
_WHERE = (
    "Of the shape that all have together, and of the dtype of `x1` and `x2` together. Of a condition alone a "
    "tuple: an array of int64 for each dimension."
)


def _returned(name: str) -> tuple[str, str]:
    """The type of what a function returns, and what is said of it."""
    if name == "where":
        return "array or tuple of array", _WHERE
    if name in _SEVERAL:
        return "tuple of array", _SEVERAL[name]
    said = next((text for text, names in _RETURNED.items() if name in names.split()), "")
    return "array", said


def _section(title: str, entries: list[tuple[str, str]]) -> str:
    lines = ["", title, "-" * len(title)]
    for head, text in entries:
        lines += [head, _indented(text)]
    return "\n".join([*lines, ""])


@functools.cache  # (made at the import, of many functions)
def _indented(text: str) -> str:
    return textwrap.fill(text, 104, initial_indent="    ", subsequent_indent="    ")


def docstring(name: str, meaning: str, example: str) -> str:
    """What is said of an elementwise function: what it computes, of what, what comes, an example.

    >>> print(docstring("square", "x * x", "").rstrip())
    x * x, element by element; lazy, and fused with what surrounds it.
    <BLANKLINE>
    Takes NumPy's `dtype=` and `casting=`, too.
    <BLANKLINE>
    Parameters
    ----------
    x : array or number
        The operand; a list or a NumPy array becomes an array.
    out : array or None
        Where the result is written, and what is returned then; None is a new array.
    where : array of bool, default True
        Which elements of `out` are computed; the others stay as they are.
    <BLANKLINE>
    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory; of truth values it is int8.
    """
    op = TABLE[name]
    doc = f"{meaning}, element by element; lazy, and fused with what surrounds it.\n"
    if name in _ALSO:
        doc += f"\nAlso called {', '.join(f'`mb.{other}`' for other in _ALSO[name].split())}.\n"
    plain = name in ("where", "real", "imag")  # (which are no ufuncs)
    if not plain:
        doc += "\nTakes NumPy's `dtype=` and `casting=`, too.\n"
    options = [] if plain else _OPTIONS
    doc += _section("Parameters", _CHOICE if name == "where" else [_PARAMETERS[op.nin], *options])
    doc += _section("Returns", [_returned(name)])
    if example:
        call, result = example.split(" -> ")
        several = "*" if op.nout > 1 else ""  # (results of two are printed beside each other)
        doc += "\nExamples\n--------\n>>> import mirabelle as mb"
        doc += f"\n>>> print({several}mb.{name}({call}))\n{result}\n"
    return doc
