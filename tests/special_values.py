"""The array API standard's special values, function by function, as tables.

A line is `operands -> result`. An operand names a set of numbers (see `SETS`); a result is a number,
an operand, or what the sign of it must be. `~` before a number leaves its sign open.
"""

import math

import numpy as np

FINITE = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.0, 3.0, -7.0, 90.0, 1e-30, -1e30]
INF, NAN = math.inf, math.nan
EVERY = [*FINITE, INF, -INF, NAN]


def _those(condition):
    return [v for v in EVERY if condition(v)]


def _odd(v):
    return math.isfinite(v) and v % 2 == 1


def _integer(v):
    return math.isfinite(v) and v == math.floor(v)


SETS = {
    "any": EVERY,
    "nan": [NAN],
    "-nan": [-NAN],
    "number": _those(lambda v: not math.isnan(v)),
    "+inf": [INF],
    "-inf": [-INF],
    "inf": [INF, -INF],
    "+0": [0.0],
    "-0": [-0.0],
    "0": [0.0, -0.0],
    "1": [1.0],
    "-1": [-1.0],
    "|1|": [1.0, -1.0],
    "finite": FINITE,
    "nonzero": [v for v in FINITE if v],
    "+": [v for v in FINITE if v > 0],
    "-": [v for v in FINITE if v < 0],
    ">0": _those(lambda v: v > 0),
    "<0": _those(lambda v: v < 0),
    ">1": _those(lambda v: v > 1),
    "<1": _those(lambda v: v < 1),
    "<-1": _those(lambda v: v < -1),
    "|>1|": _those(lambda v: abs(v) > 1),
    "|<1|": _those(lambda v: abs(v) < 1),
    "not 0": _those(lambda v: v != 0),
    "not 1": _those(lambda v: v != 1),
    "integer": [v for v in FINITE if _integer(v)],
    "fraction": [v for v in FINITE if not _integer(v)],
    "+odd": [v for v in FINITE if v > 0 and _odd(v)],
    "-odd": [v for v in FINITE if v < 0 and _odd(v)],
    ">0 not odd": _those(lambda v: v > 0 and not _odd(v)),
    "<0 not odd": _those(lambda v: v < 0 and not _odd(v)),
}

_ROUNDING = """
    integer -> x
    +inf -> +inf
    -inf -> -inf
    +0 -> +0
    -0 -> -0
    nan -> nan
"""

UNARY = {
    "abs": """
        nan -> nan
        -0 -> +0
        -inf -> +inf
    """,
    "acos": """
        nan -> nan
        >1 -> nan
        <-1 -> nan
        1 -> +0
    """,
    "acosh": """
        nan -> nan
        <1 -> nan
        1 -> +0
        +inf -> +inf
    """,
    "asin": """
        nan -> nan
        >1 -> nan
        <-1 -> nan
        +0 -> +0
        -0 -> -0
    """,
    "asinh": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        +inf -> +inf
        -inf -> -inf
    """,
    "atan": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        +inf -> π/2
        -inf -> -π/2
    """,
    "atanh": """
        nan -> nan
        <-1 -> nan
        >1 -> nan
        -1 -> -inf
        1 -> +inf
        +0 -> +0
        -0 -> -0
    """,
    "ceil": _ROUNDING,
    "cos": """
        nan -> nan
        0 -> 1
        inf -> nan
    """,
    "cosh": """
        nan -> nan
        0 -> 1
        inf -> +inf
    """,
    "exp": """
        nan -> nan
        0 -> 1
        +inf -> +inf
        -inf -> +0
    """,
    "expm1": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        +inf -> +inf
        -inf -> -1
    """,
    "floor": _ROUNDING,
    "isfinite": """
        inf -> False
        nan -> False
        finite -> True
    """,
    "isinf": """
        inf -> True
        finite -> False
        nan -> False
    """,
    "isnan": """
        nan -> True
        number -> False
    """,
    "log": """
        nan -> nan
        <0 -> nan
        0 -> -inf
        1 -> +0
        +inf -> +inf
    """,
    "log1p": """
        nan -> nan
        <-1 -> nan
        -1 -> -inf
        -0 -> -0
        +0 -> +0
        +inf -> +inf
    """,
    "log2": """
        nan -> nan
        <0 -> nan
        0 -> -inf
        1 -> +0
        +inf -> +inf
    """,
    "log10": """
        nan -> nan
        <0 -> nan
        0 -> -inf
        1 -> +0
        +inf -> +inf
    """,
    "reciprocal": """
        +0 -> +inf
        -0 -> -inf
        +inf -> +0
        -inf -> -0
        nan -> nan
    """,
    "round": _ROUNDING,
    "sign": """
        <0 -> -1
        0 -> +0
        >0 -> 1
        nan -> nan
    """,
    "signbit": """
        +0 -> False
        -0 -> True
        +inf -> False
        -inf -> True
        + -> False
        - -> True
        nan -> False
        -nan -> True
    """,
    "sin": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        inf -> nan
    """,
    "sinh": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        +inf -> +inf
        -inf -> -inf
    """,
    "square": """
        nan -> nan
        inf -> +inf
        0 -> +0
    """,
    "sqrt": """
        nan -> nan
        <0 -> nan
        +0 -> +0
        -0 -> -0
        +inf -> +inf
    """,
    "tan": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        inf -> nan
    """,
    "tanh": """
        nan -> nan
        +0 -> +0
        -0 -> -0
        +inf -> 1
        -inf -> -1
    """,
    "trunc": _ROUNDING,
}

_QUOTIENT = """
    nan, any -> nan
    any, nan -> nan
    inf, inf -> nan
    0, 0 -> nan
    +0, >0 -> +0
    -0, >0 -> -0
    +0, <0 -> -0
    -0, <0 -> +0
    >0, +0 -> +inf
    >0, -0 -> -inf
    <0, +0 -> -inf
    <0, -0 -> +inf
    +inf, + -> +inf
    +inf, - -> -inf
    -inf, + -> -inf
    -inf, - -> +inf
    +, +inf -> +0
    +, -inf -> -0
    -, +inf -> -0
    -, -inf -> +0
    +, + -> positive
    -, - -> positive
    +, - -> negative
    -, + -> negative
"""

_UNORDERED = """
    nan, any -> False
    any, nan -> False
"""

BINARY = {
    "add": """
        nan, any -> nan
        any, nan -> nan
        +inf, -inf -> nan
        -inf, +inf -> nan
        +inf, +inf -> +inf
        -inf, -inf -> -inf
        +inf, finite -> +inf
        -inf, finite -> -inf
        finite, +inf -> +inf
        finite, -inf -> -inf
        -0, -0 -> -0
        -0, +0 -> +0
        +0, -0 -> +0
        +0, +0 -> +0
        0, nonzero -> x2
        nonzero, 0 -> x1
    """,
    "atan2": """
        nan, any -> nan
        any, nan -> nan
        >0, 0 -> π/2
        +0, >0 -> +0
        +0, +0 -> +0
        +0, -0 -> π
        +0, <0 -> π
        -0, >0 -> -0
        -0, +0 -> -0
        -0, -0 -> -π
        -0, <0 -> -π
        <0, 0 -> -π/2
        +, +inf -> +0
        +, -inf -> π
        -, +inf -> -0
        -, -inf -> -π
        +inf, finite -> π/2
        -inf, finite -> -π/2
        +inf, +inf -> π/4
        +inf, -inf -> 3π/4
        -inf, +inf -> -π/4
        -inf, -inf -> -3π/4
    """,
    "copysign": """
        number, <0 -> -|x1|
        number, -0 -> -|x1|
        number, +0 -> |x1|
        number, >0 -> |x1|
        number, -nan -> -|x1|
        number, nan -> |x1|
        nan, <0 -> nan-
        nan, -0 -> nan-
        nan, +0 -> nan+
        nan, >0 -> nan+
    """,
    "divide": _QUOTIENT,
    "equal": """
        nan, any -> False
        any, nan -> False
        +inf, +inf -> True
        -inf, -inf -> True
        0, 0 -> True
        +inf, -inf -> False
    """,
    "floor_divide": _QUOTIENT,
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), _UNORDERED),
    "hypot": """
        inf, any -> +inf
        any, inf -> +inf
        0, any -> |x2|
        any, 0 -> |x1|
        nan, finite -> nan
        finite, nan -> nan
        nan, nan -> nan
    """,
    "logaddexp": """
        nan, any -> nan
        any, nan -> nan
        +inf, number -> +inf
        number, +inf -> +inf
    """,
    "maximum": """
        nan, any -> nan
        any, nan -> nan
    """,
    "minimum": """
        nan, any -> nan
        any, nan -> nan
    """,
    "multiply": """
        nan, any -> nan
        any, nan -> nan
        inf, 0 -> nan
        0, inf -> nan
        >0, >0 -> positive
        <0, <0 -> positive
        >0, <0 -> negative
        <0, >0 -> negative
        +inf, + -> +inf
        +inf, - -> -inf
        +, -inf -> -inf
    """,
    "nextafter": """
        nan, any -> nan
        any, nan -> nan
        -0, +0 -> +0
        +0, -0 -> -0
    """,
    "not_equal": """
        nan, any -> True
        any, nan -> True
        +inf, -inf -> True
        -inf, +inf -> True
        0, 0 -> False
    """,
    "pow": """
        not 1, nan -> nan
        any, 0 -> 1
        nan, not 0 -> nan
        |>1|, +inf -> +inf
        |>1|, -inf -> +0
        |1|, inf -> 1
        1, number -> 1
        |<1|, +inf -> +0
        |<1|, -inf -> +inf
        +inf, >0 -> +inf
        +inf, <0 -> +0
        -inf, +odd -> -inf
        -inf, >0 not odd -> +inf
        -inf, -odd -> -0
        -inf, <0 not odd -> +0
        +0, >0 -> +0
        +0, <0 -> +inf
        -0, +odd -> -0
        -0, >0 not odd -> +0
        -0, -odd -> -inf
        -0, <0 not odd -> +inf
        -, fraction -> nan
    """,
    "remainder": """
        nan, any -> nan
        any, nan -> nan
        inf, inf -> nan
        0, 0 -> nan
        0, >0 -> +0
        0, <0 -> -0
        >0, 0 -> nan
        <0, 0 -> nan
        inf, nonzero -> nan
        +, +inf -> x1
        +, -inf -> x2
        -, +inf -> x2
        -, -inf -> x1
    """,
    "subtract": """
        nan, any -> nan
        any, nan -> nan
        +inf, +inf -> nan
        -inf, -inf -> nan
        +inf, -inf -> +inf
        -inf, +inf -> -inf
        +inf, finite -> +inf
        finite, +inf -> -inf
        -0, +0 -> -0
        -0, -0 -> +0
        +0, -0 -> +0
        +0, +0 -> +0
        nonzero, 0 -> x1
    """,
}

# Complex numbers: the real and the imaginary part of the operand, and of the result.
COMPLEX = {
    "acos": """
        0, +0 -> π/2, -0
        0, nan -> π/2, nan
        finite, +inf -> π/2, -inf
        nonzero, nan -> nan, nan
        -inf, + -> π, -inf
        +inf, + -> +0, -inf
        -inf, +inf -> 3π/4, -inf
        +inf, +inf -> π/4, -inf
        inf, nan -> nan, ~inf
        nan, finite -> nan, nan
        nan, +inf -> nan, -inf
        nan, nan -> nan, nan
    """,
    "acosh": """
        0, +0 -> +0, π/2
        finite, +inf -> +inf, π/2
        nonzero, nan -> nan, nan
        +0, nan -> nan, ~π/2
        -inf, + -> +inf, π
        +inf, + -> +inf, +0
        -inf, +inf -> +inf, 3π/4
        +inf, +inf -> +inf, π/4
        inf, nan -> +inf, nan
        nan, finite -> nan, nan
        nan, +inf -> +inf, nan
        nan, nan -> nan, nan
    """,
    "asinh": """
        +0, +0 -> +0, +0
        +, +inf -> +inf, π/2
        finite, nan -> nan, nan
        +inf, + -> +inf, +0
        +inf, +inf -> +inf, π/4
        nan, +0 -> nan, +0
        nan, nonzero -> nan, nan
        nan, +inf -> ~inf, nan
        nan, nan -> nan, nan
    """,
    "atanh": """
        +0, +0 -> +0, +0
        +0, nan -> +0, nan
        1, +0 -> +inf, +0
        +, +inf -> +0, π/2
        nonzero, nan -> nan, nan
        +inf, + -> +0, π/2
        +inf, +inf -> +0, π/2
        +inf, nan -> +0, nan
        nan, finite -> nan, nan
        nan, +inf -> ~0, π/2
        nan, nan -> nan, nan
    """,
    "cosh": """
        +0, +0 -> 1, +0
        +0, +inf -> nan, ~0
        +0, nan -> nan, ~0
        nonzero, +inf -> nan, nan
        nonzero, nan -> nan, nan
        +inf, +0 -> +inf, +0
        +inf, nonzero -> inf·cos, inf·sin
        +inf, +inf -> ~inf, nan
        +inf, nan -> +inf, nan
        nan, 0 -> nan, ~0
        nan, nonzero -> nan, nan
        nan, nan -> nan, nan
    """,
    "exp": """
        0, +0 -> 1, +0
        finite, +inf -> nan, nan
        finite, nan -> nan, nan
        +inf, +0 -> +inf, +0
        -inf, finite -> 0·cos, 0·sin
        +inf, nonzero -> inf·cos, inf·sin
        -inf, +inf -> ~0, ~0
        +inf, +inf -> ~inf, nan
        -inf, nan -> ~0, ~0
        +inf, nan -> ~inf, nan
        nan, +0 -> nan, +0
        nan, nonzero -> nan, nan
        nan, inf -> nan, nan
        nan, nan -> nan, nan
    """,
    "expm1": """
        0, +0 -> +0, +0
        finite, +inf -> nan, nan
        finite, nan -> nan, nan
        +inf, +0 -> +inf, +0
        -inf, finite -> -1, 0·sin
        +inf, nonzero -> inf·cos, inf·sin
        -inf, +inf -> -1, ~0
        +inf, +inf -> ~inf, nan
        -inf, nan -> -1, ~0
        +inf, nan -> ~inf, nan
        nan, +0 -> nan, +0
        nan, nonzero -> nan, nan
        nan, inf -> nan, nan
        nan, nan -> nan, nan
    """,
    "log": """
        -0, +0 -> -inf, π
        +0, +0 -> -inf, +0
        finite, +inf -> +inf, π/2
        finite, nan -> nan, nan
        -inf, + -> +inf, π
        +inf, + -> +inf, +0
        -inf, +inf -> +inf, 3π/4
        +inf, +inf -> +inf, π/4
        inf, nan -> +inf, nan
        nan, finite -> nan, nan
        nan, +inf -> +inf, nan
        nan, nan -> nan, nan
    """,
    "log1p": """
        -1, +0 -> -inf, +0
        finite, +inf -> +inf, π/2
        finite, nan -> nan, nan
        -inf, + -> +inf, π
        +inf, + -> +inf, +0
        -inf, +inf -> +inf, 3π/4
        +inf, +inf -> +inf, π/4
        inf, nan -> +inf, nan
        nan, finite -> nan, nan
        nan, +inf -> +inf, nan
        nan, nan -> nan, nan
    """,
    "round": """
        +inf, -0 -> +inf, -0
        nan, 1 -> nan, 1
        -inf, nan -> -inf, nan
    """,
    "sign": """
        0, 0 -> +0, +0
        nan, any -> nan, nan
        any, nan -> nan, nan
    """,
    "sinh": """
        +0, +0 -> +0, +0
        +0, +inf -> ~0, nan
        +0, nan -> ~0, nan
        +, +inf -> nan, nan
        +, nan -> nan, nan
        +inf, +0 -> +inf, +0
        +inf, + -> inf·cos, inf·sin
        +inf, +inf -> ~inf, nan
        +inf, nan -> ~inf, nan
        nan, +0 -> nan, +0
        nan, nonzero -> nan, nan
        nan, nan -> nan, nan
    """,
    "sqrt": """
        0, +0 -> +0, +0
        any, +inf -> +inf, +inf
        finite, nan -> nan, nan
        -inf, + -> +0, +inf
        +inf, + -> +inf, +0
        -inf, nan -> nan, ~inf
        +inf, nan -> +inf, nan
        nan, finite -> nan, nan
        nan, nan -> nan, nan
    """,
    "tanh": """
        +0, +0 -> +0, +0
        +0, +inf -> +0, nan
        +0, nan -> +0, nan
        nonzero, +inf -> nan, nan
        nonzero, nan -> nan, nan
        +inf, + -> 1, +0
        +inf, +inf -> 1, ~0
        +inf, nan -> 1, ~0
        nan, +0 -> nan, +0
        nan, nonzero -> nan, nan
        nan, inf -> nan, nan
        nan, nan -> nan, nan
    """,
}
# To real numbers and truth values.
COMPLEX_TO_REAL = {
    "abs": """
        inf, any -> +inf
        any, inf -> +inf
        0, any -> |x2|
        any, 0 -> |x1|
        nan, finite -> nan
        finite, nan -> nan
        nan, nan -> nan
    """,
    "isfinite": """
        nan, any -> False
        any, nan -> False
        inf, any -> False
        any, inf -> False
        finite, finite -> True
    """,
    "isinf": """
        inf, any -> True
        any, inf -> True
        finite, finite -> False
        nan, finite -> False
        finite, nan -> False
    """,
    "isnan": """
        nan, any -> True
        any, nan -> True
        finite, finite -> False
        inf, inf -> False
    """,
}
# f(z) = -i g(iz), or g(iz) for the cosine: what one is at special values follows from the other.
TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh", "cos": "cosh"}
# Functions that commute with conjugation.
CONJUGATE = [*COMPLEX, *TURNED]


def cases(table):
    """(function, line) for every line, to run a test for each."""
    return [(f, line.strip()) for f, text in table.items() for line in text.strip().splitlines()]


def operands(line):
    """Arrays of the operands: every number of one set with every number of the other."""
    names = [s.strip() for s in line.split("->")[0].split(",")]
    grids = np.meshgrid(*[np.array(SETS[n]) for n in names], indexing="ij")
    return [g.reshape(-1) for g in grids]


def check(line, xs, result):
    """Is `result` what the line says for these operands (float64 each; a complex one in parts)?"""
    wanted = [s.strip() for s in line.split("->")[1].split(",")]
    results = [result.real, result.imag] if len(wanted) == 2 else [result]
    for word, values in zip(wanted, results, strict=True):
        for i, value in enumerate(values):
            assert _fits(word, [x[i] for x in xs], value), f"{[x[i] for x in xs]} gave {result[i]}: {line}"


def _fits(word, xs, value):
    if word in ("True", "False"):
        return bool(value) is (word == "True")
    if word == "positive":
        return math.isnan(value) or math.copysign(1, value) == 1
    if word == "negative":
        return math.isnan(value) or math.copysign(1, value) == -1
    if word in ("nan", "nan+", "nan-"):
        return math.isnan(value) and (word == "nan" or math.copysign(1, value) == (1 if word == "nan+" else -1))
    if "·" in word:  # a zero or infinity with the sign of the cosine or sine of the imaginary part
        size, function = word.split("·")
        expected = float(size) * getattr(math, function)(float(xs[1]))
        return _same(value, expected)
    if word.endswith(("x", "x1", "x2", "|")):
        sign = -1 if word.startswith("-") else 1
        x = xs[1] if "x2" in word else xs[0]
        return _same(value, sign * (abs(x) if "|" in word else x))
    if word.startswith("~"):
        return _same(abs(value), abs(_number(word[1:])))
    return _same(value, _number(word))


def _number(word):
    known = {"π": 1.0, "π/2": 0.5, "π/4": 0.25, "3π/4": 0.75}
    if word.lstrip("-") in known:
        return (-1 if word[0] == "-" else 1) * known[word.lstrip("-")] * math.pi
    return float(word)


def _same(value, expected):
    if math.isnan(expected) or math.isnan(value):
        return math.isnan(expected) and math.isnan(value)
    if expected == 0 or math.isinf(expected):
        return value == expected and math.copysign(1, value) == math.copysign(1, expected)
    return math.isclose(value, expected, rel_tol=1e-6)
