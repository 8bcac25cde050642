"""Algebra: operations that change nothing, or that are others' doing.

The rules of `algebra` are exact: the same bits come out for every operand, -0.0, infinities and NaN among them
(of which only that it is NaN). So `x + 0` of integers is x, and of floats it is not, for -0.0 + 0.0 is 0.0.
Those of `finite` hold for finite numbers, and are applied if a program is compiled with `assume_finite=True`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Map, Node, map_node, rewritten
from mirabelle.arraytypes.programs.passes.numbers import number
from mirabelle.arraytypes.programs.passes.parts import flattened
from mirabelle.dispatch import promotion
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import intern

Rule = Callable[[Any], Any]


def algebra(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph without operations that change nothing.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0])
    >>> mb.compile(lambda x: -(-x) * 1 + (-x) / 2, passes=["algebra"]).program(x).plan.steps[0].name
    'negative_multiply_add'
    """
    return rewritten(outputs, simpler)


def finite(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph as algebra has it where all numbers are finite: x - x is 0, and so is 0 * x.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0])
    >>> mb.compile(lambda x, y: x + y * 0, assume_finite=True).program(x, x).plan.steps[0].name
    'copy'
    """
    return rewritten(outputs, simpler_if_finite)


def simpler(node: Node) -> Node:
    """What a node is by the exact rules."""
    return _applied(node, RULES)


def simpler_if_finite(node: Node) -> Node:
    """What a node is by the rules for finite numbers, and then by the exact ones."""
    made = _applied(node, FINITE_RULES)
    return made if made is node else simpler(made)


def _applied(node: Node, rules: dict[str, Rule]) -> Node:
    # (Each rule leaves fewer operations, or cheaper ones.)
    while type(node) is Map:
        rule = rules.get(node.sig.op.name)
        made = rule(node) if rule is not None else None
        if made is None or made is node:
            return node
        if made.line is None:
            made.line = node.line
        node = made
    return flattened(node)


# What rules are made of


def same(x: Map, a: Any) -> Node:
    """An argument of an operation as its result."""
    from mirabelle.arraytypes.programs.traced import cast, stretched

    if not isinstance(a, Node):
        return constant(a, x.dtype, x.shape)
    return stretched(cast(a, x.dtype), x.shape)


def constant(value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Node:
    """A number everywhere."""
    return map_node(intern(TABLE["copy"], (dtype,), (dtype,)), (dtype.type(value),), shape)


def other(x: Map, name: str, *args: Any) -> Node:
    """Another operation on the same shape, in the result's dtype: operands are converted to it first.

    (A signature says what an operation does to the dtypes that NumPy would find for its operands. A `negative`
    of float64 whose operand is uint8 is none: what asks NumPy computes in uint8.)
    """
    from mirabelle.arraytypes.programs.traced import cast

    dtype = x.dtype
    made = tuple([cast(a, dtype) if isinstance(a, Node) else dtype.type(a) for a in args])
    return map_node(intern(TABLE[name], (dtype,) * len(args), (dtype,)), made, x.shape)


def called(a: Any, name: str, dtype: Any) -> Any:
    """The argument of an operation of one argument, if `a` is it, taken and given in a dtype."""
    if isinstance(a, Map) and a.sig.op.name == name and a.sig.ins[0] == a.sig.out == dtype:
        return a.args[0]
    return None


def positive_zero(a: Any) -> bool:
    return bool(a == 0) and not _signed(a)


def negative_zero(a: Any) -> bool:
    return bool(a == 0) and _signed(a) and not isinstance(a, (complex, np.complexfloating))


def _signed(a: Any) -> bool:
    if isinstance(a, (complex, np.complexfloating)):
        return _signed(float(a.real)) or _signed(float(a.imag))
    return math.copysign(1.0, float(a)) < 0


def _is(a: Any, value: int) -> bool:
    return a is not None and bool(a == value)


# The exact rules


def _add(x: Map) -> Any:
    a, b = x.args
    p, q = number(a), number(b)
    exact = x.dtype.kind in "iub"
    if q is not None and (_is(q, 0) if exact else negative_zero(q)) and x.dtype.kind != "c":
        return same(x, a)
    if p is not None and (_is(p, 0) if exact else negative_zero(p)) and x.dtype.kind != "c":
        return same(x, b)
    if x.dtype.kind != "b":
        inner = called(b, "negative", x.dtype)
        if inner is not None:
            return other(x, "subtract", a, inner)
        inner = called(a, "negative", x.dtype)
        if inner is not None:
            return other(x, "subtract", b, inner)
    if x.dtype.kind in "iu":
        return _gathered(x, "add")
    return None


def _subtract(x: Map) -> Any:
    a, b = x.args
    q = number(b)
    if q is not None and positive_zero(q):
        return same(x, a)
    inner = called(b, "negative", x.dtype)
    if inner is not None:
        return other(x, "add", a, inner)
    if x.dtype.kind in "iu":
        if a is b:
            return constant(0, x.dtype, x.shape)
        if _is(number(a), 0):
            return other(x, "negative", b)
    return None


def _multiply(x: Map) -> Any:
    a, b = x.args
    for one, rest in ((a, b), (b, a)):
        n = number(one)
        if n is None or x.dtype.kind not in "iufb":
            continue
        if n == 1:
            return same(x, rest)
        if n == -1 and x.dtype.kind in "if":
            return other(x, "negative", rest)
        if n == 0 and x.dtype.kind in "iub":
            return constant(0, x.dtype, x.shape)
    if x.dtype.kind in "iu":
        return _gathered(x, "multiply")
    return None


def _gathered(x: Map, name: str) -> Any:
    """(y + 1) + 2 of integers as y + 3: they count modulo a power of two, in whatever order."""
    a, b = x.args
    if number(a) is not None:
        a, b = b, a
    n = number(b)
    if n is None or not isinstance(a, Map) or a.sig is not x.sig:
        return None
    c, d = a.args
    if number(c) is not None:
        c, d = d, c
    m = number(d)
    if m is None or not isinstance(c, Node):
        return None
    with np.errstate(all="ignore"):
        made = x.sig.op.of_numbers(np.array(m).astype(x.dtype)[()], np.array(n).astype(x.dtype)[()])
    return other(x, name, c, made)


def _divide(x: Map) -> Any:
    a, b = x.args
    n = number(b)
    if n is None or x.dtype.kind != "f":
        return None
    if n == 1:
        return same(x, a)
    # A power of two has an exact reciprocal, and multiplication takes less.
    n = x.dtype.type(n)
    if x.dtype.itemsize in (4, 8) and np.isfinite(n) and n != 0:
        mantissa, exponent = math.frexp(n)
        if abs(mantissa) == 0.5 and abs(exponent) < (120 if x.dtype.itemsize == 4 else 1000):
            return other(x, "multiply", a, x.dtype.type(1) / n)
    return None


def _floor_divide(x: Map) -> Any:
    return same(x, x.args[0]) if x.dtype.kind in "iu" and _is(number(x.args[1]), 1) else None


def _pow(x: Map) -> Any:
    a, b = x.args
    n = number(b)
    if n is None or x.dtype.kind not in "iuf":
        return None
    if n == 1:
        return same(x, a)
    if x.dtype.kind in "iu" and 1 < n <= _MOST_POWER:
        return _multiplied(x, a, int(n))
    return constant(1, x.dtype, x.shape) if n == 0 else None


# Powers of integers that are products: numbers wrap around, so that any order of factors gives the same.
_MOST_POWER = 64


def _multiplied(x: Map, a: Any, n: int) -> Node:
    """An integer to a power of at least two."""
    half = a if n < 4 else _multiplied(x, a, n // 2)
    square = other(x, "square", half)
    return other(x, "multiply", square, a) if n % 2 else square


def _negative(x: Map) -> Any:
    inner = called(x.args[0], "negative", x.dtype)
    if inner is not None:
        return same(x, inner)
    a = x.args[0]
    # -(a - b) is b - a but for the sign of zero: of integers, then.
    if x.dtype.kind in "iu" and isinstance(a, Map) and a.sig.op.name == "subtract" and a.dtype == x.dtype:
        return map_node(a.sig, (a.args[1], a.args[0]), x.shape)
    return None


def _positive(x: Map) -> Any:
    return same(x, x.args[0]) if x.sig.ins[0] == x.dtype else None


def _even(x: Map) -> Any:
    """abs and square are the same for x and -x."""
    inner = called(x.args[0], "negative", x.sig.ins[0])
    if inner is not None and x.sig.ins[0].kind in "fc":
        return map_node(x.sig, (inner,), x.shape)
    return _again(x) if x.sig.op.name == "abs" else None


def _again(x: Map) -> Any:
    """What was rounded, or made positive, is so already."""
    a = x.args[0]
    if isinstance(a, Map) and a.sig.op is x.sig.op and a.dtype == x.sig.ins[0] == x.dtype:
        return same(x, a)
    return None


def _conj(x: Map) -> Any:
    if x.dtype.kind != "c":
        return same(x, x.args[0]) if x.sig.ins[0] == x.dtype else None
    inner = called(x.args[0], "conj", x.dtype)
    return None if inner is None else same(x, inner)


def _real(x: Map) -> Any:
    if x.sig.ins[0] == x.dtype:
        return same(x, x.args[0])
    a = x.args[0]
    if isinstance(a, Map) and a.sig.op.name == "complex" and a.dtype == x.sig.ins[0]:
        return same(x, a.args[0])
    return None


def _imag(x: Map) -> Any:
    a = x.args[0]
    if isinstance(a, Map) and a.sig.op.name == "complex" and a.dtype == x.sig.ins[0]:
        return same(x, a.args[1])
    return None


def _copy(x: Map) -> Any:
    return same(x, x.args[0]) if isinstance(x.args[0], Node) and x.sig.ins[0] == x.dtype else None


def lossless(source: np.dtype, target: np.dtype) -> bool:
    """Has every number of a dtype a place in another?"""
    if source == target:
        return True
    if source.kind in "iu" and target.kind in "fc":
        # (NumPy calls int64 to float64 safe, which rounds.)
        part = target.itemsize // (2 if target.kind == "c" else 1)
        return source.itemsize < part
    return bool(np.can_cast(source, target, "safe"))


def _cast(x: Map) -> Any:
    a = x.args[0]
    if not isinstance(a, Node):
        return None
    if a.dtype == x.dtype:
        return same(x, a) if x.sig.ins[0] == x.dtype else None
    if not isinstance(a, Map) or a.sig.op.name != "cast" or not isinstance(a.args[0], Node):
        return None
    inner = a.args[0]
    if inner.dtype != a.sig.ins[0] or a.dtype != x.sig.ins[0] or not lossless(inner.dtype, a.dtype):
        return None
    if inner.dtype == x.dtype:
        return same(x, inner)
    # (What a float that is too large becomes as an integer is another matter than what an integer becomes.)
    if a.dtype.kind in "fc" and x.dtype.kind in "iu" and not lossless(inner.dtype, x.dtype):
        return None
    return map_node(promotion.cast(inner.dtype, x.dtype), (inner,), x.shape)


def _where(x: Map) -> Any:
    condition, a, b = x.args
    if a is b and isinstance(a, Node):
        return same(x, a)
    n = number(condition)
    if n is not None:
        return same(x, a if n else b)
    if isinstance(condition, Map) and condition.sig.op.name == "logical_not":
        return map_node(x.sig, (condition.args[0], b, a), x.shape) if _is_bool(condition.args[0]) else None
    return None


def _is_bool(a: Any) -> bool:
    return isinstance(a, Node) and a.dtype.kind == "b"


def _itself(x: Map) -> Any:
    """max(x, x), x & x: what combines to itself."""
    a, b = x.args
    return same(x, a) if a is b and x.sig.ins[0] == x.dtype else None


def _bits(x: Map) -> Any:
    """Logic of bits, and of truth values."""
    a, b = x.args
    name = x.sig.op.name
    if x.sig.ins[0] != x.dtype:
        return None
    if a is b:
        return constant(0, x.dtype, x.shape) if name.endswith("xor") else same(x, a)
    whole = name.endswith("and")
    for one, rest in ((a, b), (b, a)):
        n = number(one)
        if n is None:
            continue
        if whole:
            if n == 0:
                return constant(0, x.dtype, x.shape)
            if n == (1 if x.dtype.kind == "b" else -1):
                return same(x, rest)
        elif n == 0:
            return same(x, rest)
    return None


def _shift(x: Map) -> Any:
    return same(x, x.args[0]) if x.sig.ins[0] == x.dtype and _is(number(x.args[1]), 0) else None


# Comparisons that are each other's opposite, of whatever numbers; and those that are if none is NaN.
_OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}
_ORDERED = {"less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater"}


def _not(x: Map) -> Any:
    a = x.args[0]
    inner = called(a, "bitwise_invert", x.dtype) if x.sig.op.name == "bitwise_invert" else None
    if inner is not None:
        return same(x, inner)
    if not isinstance(a, Map) or x.sig.ins[0].kind != "b" or a.dtype.kind != "b":
        return None
    name = a.sig.op.name
    if name in ("logical_not", "bitwise_invert") and _is_bool(a.args[0]):
        return same(x, a.args[0])
    opposite = _OPPOSITE.get(name)
    if opposite is None and name in _ORDERED and a.sig.ins[0].kind in "iub" and a.sig.ins[1].kind in "iub":
        opposite = _ORDERED[name]
    if opposite is None:
        return None
    return map_node(intern(TABLE[opposite], a.sig.ins, a.sig.outs), a.args, x.shape)


RULES: dict[str, Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "floor_divide": _floor_divide,
    "pow": _pow,
    "negative": _negative,
    "positive": _positive,
    "abs": _even,
    "square": _even,
    "floor": _again,
    "ceil": _again,
    "trunc": _again,
    "round": _again,
    "conj": _conj,
    "real": _real,
    "imag": _imag,
    "copy": _copy,
    "cast": _cast,
    "where": _where,
    "maximum": _itself,
    "minimum": _itself,
    "fmax": _itself,
    "fmin": _itself,
    "logical_and": _bits,
    "logical_or": _bits,
    "logical_xor": _bits,
    "bitwise_and": _bits,
    "bitwise_or": _bits,
    "bitwise_xor": _bits,
    "bitwise_left_shift": _shift,
    "bitwise_right_shift": _shift,
    "logical_not": _not,
    "bitwise_invert": _not,
}


# The rules for finite numbers


def _finite_add(x: Map) -> Any:
    a, b = x.args
    if _is(number(b), 0):
        return same(x, a)
    return same(x, b) if _is(number(a), 0) else None


def _finite_subtract(x: Map) -> Any:
    a, b = x.args
    if a is b and isinstance(a, Node):
        return constant(0, x.dtype, x.shape)
    if _is(number(b), 0):
        return same(x, a)
    return other(x, "negative", b) if _is(number(a), 0) and x.dtype.kind in "fc" else None


def _finite_multiply(x: Map) -> Any:
    a, b = x.args
    for one, rest in ((a, b), (b, a)):
        n = number(one)
        if _is(n, 0):
            return constant(0, x.dtype, x.shape)
        if _is(n, 1):
            return same(x, rest)
    return None


def _finite_divide(x: Map) -> Any:
    a, b = x.args
    if a is b and isinstance(a, Node):
        return constant(1, x.dtype, x.shape)
    if _is(number(b), 1):
        return same(x, a)
    return None


def _finite_not(x: Map) -> Any:
    a = x.args[0]
    if isinstance(a, Map) and x.sig.ins[0].kind == "b" and a.sig.op.name in _ORDERED:
        return map_node(intern(TABLE[_ORDERED[a.sig.op.name]], a.sig.ins, a.sig.outs), a.args, x.shape)
    return None


FINITE_RULES: dict[str, Rule] = {
    "add": _finite_add,
    "subtract": _finite_subtract,
    "multiply": _finite_multiply,
    "divide": _finite_divide,
    "logical_not": _finite_not,
    "bitwise_invert": _finite_not,
}
