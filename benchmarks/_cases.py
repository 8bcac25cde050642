"""The expressions of the fusion benchmark.

Each is written once, as a function of a namespace (`numpy`, `jax.numpy`, `mirabelle`) and
arrays, the way a user writes it; numexpr gets its text and the operands' views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Case:
    """One expression: its operands, the function of a namespace and arrays, numexpr's form."""

    name: str
    text: str
    make: Callable[[np.random.Generator], Arrays]
    compute: Callable[..., Any]
    # numexpr's texts (several where it needs several passes) and views of the operands by name;
    # None where it cannot express the case.
    numexpr: tuple[str, ...] | None = None
    views: Callable[..., dict[str, np.ndarray]] | None = None
    # The first operand is overwritten by the result.
    in_place: bool = False


N = 1 << 24
SIDE = 1 << 12
EDGE = 1 << 8


def doubles(count: int, *shape: int) -> Callable[[np.random.Generator], Arrays]:
    shape = shape or (N,)
    return lambda rng: [rng.random(shape) for _ in range(count)]


def _letters(*arrays: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip("abcde", arrays, strict=False))


def facts(xp: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return a + b * c - d / (e + 2) + 0.5 * xp.sin(a)


def rows_columns(xp: Any, a: Any, row: Any, column: Any) -> Any:
    return (a - row) * column + row * 0.5


def planes(xp: Any, a: Any, plane: Any, outer: Any, row: Any) -> Any:
    return (a - plane) * outer + row


def transposed(xp: Any, a: Any, b: Any) -> Any:
    return a + 2 * b.T


def all_transposed(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a.T * b.T + c.T


def two_of_three_transposed(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a.T * b.T + c


def permuted(xp: Any, a: Any, b: Any) -> Any:
    return a * 2 + xp.permute_dims(b, (2, 0, 1))


def reversed_(xp: Any, a: Any, b: Any) -> Any:
    return a[::-1] + 2 * b


def reversed_2d(xp: Any, a: Any, b: Any) -> Any:
    return a[::-1, ::-1] * b + a


def strided(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a[::2] * b[1::2] + c


def mixed_floats(xp: Any, a: Any, b: Any) -> Any:
    return a * b + a


def mixed_integers(xp: Any, a: Any, b: Any) -> Any:
    return a * b + 2 * a


def bytes_(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return (a & 15) * 3 + (b ^ c)


def single(xp: Any, a: Any, b: Any) -> Any:
    return xp.sqrt(a * a + b * b)


def mask(xp: Any, a: Any, b: Any) -> Any:
    return (a > 0.5) & (b < 0.5)


def where(xp: Any, a: Any, b: Any) -> Any:
    return xp.where(a > b, a - b, 2 * b)


def powers(xp: Any, a: Any, b: Any) -> Any:
    return a**3 + b**2 + a**0.5


def log_sum_exp(xp: Any, a: Any, b: Any) -> Any:
    return xp.log(xp.exp(a) + xp.exp(b))


def gaussian(xp: Any, a: Any, b: Any) -> Any:
    return xp.exp(-((a - 0.5) ** 2 + (b - 0.5) ** 2) / 0.02)


def sigmoid(xp: Any, a: Any) -> Any:
    return 1 / (1 + xp.exp(-a))


def tanh(xp: Any, a: Any, b: Any) -> Any:
    return xp.tanh(a) * b + 1


def complex_(xp: Any, a: Any, b: Any) -> Any:
    return a * b + 2 * xp.conj(a) - 1j * b


def complex_quotient(xp: Any, a: Any, b: Any) -> Any:
    return (a * b - a) / (b + 2)


COEFFICIENTS = (0.3, -1.2, 0.7, 2.1, -0.4, 1.9, -2.2, 0.8, 1.1)


def polynomial(xp: Any, a: Any) -> Any:
    value = COEFFICIENTS[0] * a + COEFFICIENTS[1]
    for c in COEFFICIENTS[2:]:
        value = value * a + c
    return value


def _horner_text() -> str:
    text = f"{COEFFICIENTS[0]} * a + ({COEFFICIENTS[1]})"
    for c in COEFFICIENTS[2:]:
        text = f"({text}) * a + ({c})"
    return text


def distance(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(xp.abs(a - b))


def sum_and_max(xp: Any, a: Any, b: Any, c: Any) -> Any:
    t = a * b - c
    return xp.sum(t), xp.max(t)


def sum_axis_0(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(a * b + 1, axis=0)


def sum_axis_1(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(a * b + 1, axis=1)


def stencil_1d(xp: Any, a: Any) -> Any:
    return a[2:] - 2 * a[1:-1] + a[:-2]


def stencil_2d(xp: Any, a: Any) -> Any:
    return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]


def step(xp: Any, u: Any, a: Any, b: Any) -> Any:
    # Converges, so that any number of steps stays in range.
    return u + 0.01 * (a * b - u)


CASES: tuple[Case, ...] = (
    Case("facts", "a + b*c - d/(e+2) + 0.5*sin(a)", doubles(5), facts,
         ("a + b*c - d/(e+2) + 0.5*sin(a)",), _letters),
    Case("stretch 2-D", "(a - row)*column + row/2",
         lambda rng: [rng.random((SIDE, SIDE)), rng.random(SIDE), rng.random((SIDE, 1))], rows_columns,
         ("(a - b)*c + b*0.5",), _letters),
    Case("stretch 3-D", "(a - plane)*outer + row",
         lambda rng: [rng.random((EDGE,) * 3), rng.random((EDGE, EDGE)), rng.random((EDGE, 1, 1)),
                      rng.random(EDGE)], planes,
         ("(a - b)*c + d",), _letters),
    Case("transposed", "a + 2*b.T", doubles(2, SIDE, SIDE), transposed,
         ("a + 2*b",), lambda a, b: {"a": a, "b": b.T}),
    Case("two transposed", "a.T*b.T + c", doubles(3, SIDE, SIDE), two_of_three_transposed,
         ("a*b + c",), lambda a, b, c: {"a": a.T, "b": b.T, "c": c}),
    Case("all transposed", "a.T*b.T + c.T", doubles(3, SIDE, SIDE), all_transposed,
         ("a*b + c",), lambda a, b, c: {"a": a.T, "b": b.T, "c": c.T}),
    Case("permuted 3-D", "2*a + b.transpose(2, 0, 1)", doubles(2, EDGE, EDGE, EDGE), permuted,
         ("a*2 + b",), lambda a, b: {"a": a, "b": b.transpose(2, 0, 1)}),
    Case("reversed", "a[::-1] + 2*b", doubles(2), reversed_,
         ("a + 2*b",), lambda a, b: {"a": a[::-1], "b": b}),
    Case("reversed 2-D", "a[::-1, ::-1]*b + a", doubles(2, SIDE, SIDE), reversed_2d,
         ("a*b + c",), lambda a, b: {"a": a[::-1, ::-1], "b": b, "c": a}),
    Case("strided", "a[::2]*b[1::2] + c",
         lambda rng: [rng.random(N), rng.random(N), rng.random(N // 2)], strided,
         ("a*b + c",), lambda a, b, c: {"a": a[::2], "b": b[1::2], "c": c}),
    Case("float32, float64", "a32*b + a32", lambda rng: [rng.random(N, np.float32), rng.random(N)],
         mixed_floats, ("a*b + a",), _letters),
    Case("int32, float64", "a_int*b + 2*a_int",
         lambda rng: [rng.integers(-1000, 1000, N, np.int32), rng.random(N)],
         mixed_integers, ("a*b + 2*a",), _letters),
    # numexpr computes bytes as int32: it cannot wrap around as NumPy does.
    Case("uint8", "(a & 15)*3 + (b ^ c)",
         lambda rng: [rng.integers(0, 256, N, np.uint8) for _ in range(3)], bytes_),
    Case("float32", "sqrt(a*a + b*b)", lambda rng: [rng.random(N, np.float32) for _ in range(2)], single,
         ("sqrt(a*a + b*b)",), _letters),
    Case("mask", "(a > 0.5) & (b < 0.5)", doubles(2), mask, ("(a > 0.5) & (b < 0.5)",), _letters),
    Case("where", "where(a > b, a - b, 2*b)", doubles(2), where, ("where(a > b, a - b, 2*b)",), _letters),
    Case("powers", "a**3 + b**2 + a**0.5", doubles(2), powers, ("a**3 + b**2 + a**0.5",), _letters),
    Case("log-sum-exp", "log(exp(a) + exp(b))", doubles(2), log_sum_exp, ("log(exp(a) + exp(b))",), _letters),
    Case("gaussian", "exp(-((a-0.5)**2 + (b-0.5)**2)/0.02)", doubles(2), gaussian,
         ("exp(-((a-0.5)**2 + (b-0.5)**2)/0.02)",), _letters),
    Case("sigmoid", "1/(1 + exp(-a))", doubles(1), sigmoid, ("1/(1 + exp(-a))",), _letters),
    Case("tanh", "tanh(a)*b + 1", doubles(2), tanh, ("tanh(a)*b + 1",), _letters),
    Case("complex", "a*b + 2*conj(a) - 1j*b",
         lambda rng: [rng.random(N // 4) + 1j * rng.random(N // 4) for _ in range(2)], complex_,
         ("a*b + 2*conj(a) - 1j*b",), _letters),
    Case("complex quotient", "(a*b - a)/(b + 2)",
         lambda rng: [rng.random(N // 4) + 1j * rng.random(N // 4) for _ in range(2)], complex_quotient,
         ("(a*b - a)/(b + 2)",), _letters),
    Case("polynomial", "Horner's rule, degree 8", doubles(1), polynomial, (_horner_text(),), _letters),
    Case("sum", "sum(abs(a - b))", doubles(2), distance, ("sum(abs(a - b))",), _letters),
    Case("sum and max", "t = a*b - c: sum(t), max(t)", doubles(3), sum_and_max,
         ("sum(a*b - c)", "max(a*b - c)"), _letters),
    Case("sum, axis 0", "sum(a*b + 1, axis=0)", doubles(2, SIDE, SIDE), sum_axis_0,
         ("sum(a*b + 1, axis=0)",), _letters),
    Case("sum, axis 1", "sum(a*b + 1, axis=1)", doubles(2, SIDE, SIDE), sum_axis_1,
         ("sum(a*b + 1, axis=1)",), _letters),
    Case("stencil 1-D", "a[2:] - 2*a[1:-1] + a[:-2]", doubles(1), stencil_1d,
         ("a - 2*b + c",), lambda a: {"a": a[2:], "b": a[1:-1], "c": a[:-2]}),
    Case("stencil 2-D", "five points", doubles(1, SIDE, SIDE), stencil_2d,
         ("a + b + c + d - 4*e",),
         lambda a: {"a": a[2:, 1:-1], "b": a[:-2, 1:-1], "c": a[1:-1, 2:], "d": a[1:-1, :-2],
                    "e": a[1:-1, 1:-1]}),
    Case("in place", "u[...] = u + dt*(a*b - u)", doubles(3), step,
         ("u + 0.01*(a*b - u)",), lambda u, a, b: {"u": u, "a": a, "b": b}, in_place=True),
)  # fmt: skip
