"""The fused expressions whose bandwidth is measured.

Each is a function of a namespace and its operands, which are views of arrays: those NumPy would
stretch to the result's shape. CUDA's text of it is for kernels written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _cases

# A function of a shape and a dtype that gives numbers in [0, 1).
Random = Callable[..., Any]


def _same(xp: Any, *arrays: Any) -> tuple[Any, ...]:
    return arrays


@dataclass(frozen=True)
class Expression:
    """One expression, `n` elements large; every byte of its arrays has to move once."""

    name: str
    text: str
    make: Callable[[Random, int], list[Any]]
    formula: Callable[..., Any]
    # The same in CUDA C++, of operands a, b, c, d, e and the result z.
    cuda: str
    views: Callable[..., tuple[Any, ...]] = _same
    # The first operand is overwritten by the result.
    in_place: bool = False
    # Operands lie in memory in another order than the result: judged on their own.
    transposed: bool = False
    # Whether torch.compile, which takes long, is tried, and the one of `by_hand` that computes it.
    torch: bool = False
    numba: str = ""
    # On how many elements, beside those of the others.
    share: float = 1.0
    rtol: float = 1e-11


def vectors(count: int, dtype: str = "f8") -> Callable[[Random, int], list[Any]]:
    return lambda random, n: [random((n,), dtype) for _ in range(count)]


def squares(count: int, dtype: str = "f8") -> Callable[[Random, int], list[Any]]:
    def make(random: Random, n: int) -> list[Any]:
        side = int(n**0.5)
        return [random((side, side), dtype) for _ in range(count)]

    return make


def stretched(dtype: str) -> Callable[[Random, int], list[Any]]:
    def make(random: Random, n: int) -> list[Any]:
        side = int(n**0.5)
        return [random((side, side), dtype), random((side,), dtype), random((side, 1), dtype)]

    return make


def boxes(dtype: str) -> Callable[[Random, int], list[Any]]:
    def make(random: Random, n: int) -> list[Any]:
        bits = n.bit_length() - 1
        depth, rows = 1 << bits // 3, 1 << (bits + 1) // 3
        columns = n // (depth * rows)
        shapes = ((depth, rows, columns), (rows, columns), (depth, 1, 1), (columns,))
        return [random(shape, dtype) for shape in shapes]

    return make


def complexes(count: int) -> Callable[[Random, int], list[Any]]:
    return lambda random, n: [random((n,)) + 1j * random((n,)) for _ in range(count)]


def bytes_of(random: Random, n: int) -> list[Any]:
    return [(random((n,), "f4") * 256).astype(np.uint8) for _ in range(3)]


def integers_and_doubles(random: Random, n: int) -> list[Any]:
    return [(random((n,), "f4") * 2000 - 1000).astype(np.int32), random((n,))]


def triad(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def stretch(xp: Any, a: Any, row: Any, column: Any) -> Any:
    return (a - row) * column + row * 0.5


def transposed(xp: Any, a: Any, b: Any) -> Any:
    return a + 2 * b


def second_transposed(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return a, b.T


def two_transposed(xp: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    return a.T, b.T, c


def permuted(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return a, xp.permute_dims(b, (2, 0, 1))


def cubes(random: Random, n: int) -> list[Any]:
    edge = max(4, round(n ** (1 / 3)) // 8 * 8)
    return [random((edge,) * 3) for _ in range(2)]


def halves(xp: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    return a[::2], b[1::2], c


def backwards(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return a[::-1], b


def narrowed(xp: Any, a: Any, b: Any) -> Any:
    return (2 * a + b).astype(np.float32)


def three_points(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    return a[2:], a[1:-1], a[:-2]


def second_difference(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a - 2 * b + c


def five_points(xp: Any, a: Any) -> tuple[Any, ...]:
    return a[2:, 1:-1], a[:-2, 1:-1], a[1:-1, 2:], a[1:-1, :-2], a[1:-1, 1:-1]


def laplacian(xp: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return a + b + c + d - 4 * e


def _horner() -> str:
    first, second, *others = _cases.COEFFICIENTS
    text = f"{first}*a + ({second})"
    for c in others:
        text = f"({text})*a + ({c})"
    return text


FACTS = "a + b*c - d/(e + 2) + 0.5*sin(a)"

EXPRESSIONS: tuple[Expression, ...] = (
    Expression("facts f64", FACTS, vectors(5), _cases.facts, "a + b*c - d/(e + 2.0) + 0.5*sin(a)",
               torch=True, numba="facts"),
    Expression("facts f32", FACTS, vectors(5, "f4"), _cases.facts, "a + b*c - d/(e + 2.0f) + 0.5f*sinf(a)",
               torch=True, numba="facts", rtol=1e-5),
    Expression("triad f64", "a*b + c", vectors(3), triad, "a*b + c"),
    Expression("triad f32", "a*b + c", vectors(3, "f4"), triad, "a*b + c", rtol=1e-5),
    Expression("hypot f32", "sqrt(a*a + b*b)", vectors(2, "f4"), _cases.single, "sqrtf(a*a + b*b)",
               torch=True, rtol=1e-5),
    Expression("stretch 2-D f64", "(a - row)*column + row/2", stretched("f8"), stretch, "(a - b)*c + b*0.5",
               torch=True),
    Expression("stretch 3-D f32", "(a - plane)*outer + row", boxes("f4"), _cases.planes, "(a - b)*c + d",
               rtol=1e-5),
    Expression("strided f64", "a[::2]*b[1::2] + c",
               lambda random, n: [random((2 * n,)), random((2 * n,)), random((n,))], triad,
               "a*b + c", views=halves, share=0.5),
    Expression("reversed f64", "a[::-1] + 2*b", vectors(2), transposed, "a + 2.0*b", views=backwards),
    Expression("f32 with f64", "a32*b + a32", lambda random, n: [random((n,), "f4"), random((n,))],
               _cases.mixed_floats, "a*b + a"),
    Expression("i32 with f64", "a_int*b + 2*a_int", integers_and_doubles, _cases.mixed_integers, "a*b + 2*a"),
    Expression("cast to f32", "(2*a + b).astype(f32)", vectors(2), narrowed, "(float)(2.0*a + b)", rtol=1e-5),
    Expression("uint8", "(a & 15)*3 + (b ^ c)", bytes_of, _cases.bytes_,
               "(unsigned char)((a & 15)*3 + (b ^ c))"),
    Expression("mask f64", "(a > 0.5) & (b < 0.5)", vectors(2), _cases.mask, "(a > 0.5) & (b < 0.5)"),
    Expression("where f64", "where(a > b, a - b, 2*b)", vectors(2), _cases.where, "a > b ? a - b : 2.0*b",
               torch=True, numba="where"),
    Expression("where f32", "where(a > b, a - b, 2*b)", vectors(2, "f4"), _cases.where,
               "a > b ? a - b : 2.0f*b", rtol=1e-5),
    Expression("powers f64", "a**3 + b**2 + a**0.5", vectors(2), _cases.powers, "a*a*a + b*b + sqrt(a)"),
    Expression("log-sum-exp f64", "log(exp(a) + exp(b))", vectors(2), _cases.log_sum_exp,
               "log(exp(a) + exp(b))"),
    Expression("gaussian f32", "exp(-((a-0.5)**2 + (b-0.5)**2)/0.02)", vectors(2, "f4"), _cases.gaussian,
               "expf(-((a - 0.5f)*(a - 0.5f) + (b - 0.5f)*(b - 0.5f))/0.02f)", torch=True, rtol=2e-5),
    Expression("sigmoid f32", "1/(1 + exp(-a))", vectors(1, "f4"), _cases.sigmoid, "1.0f/(1.0f + expf(-a))",
               torch=True, rtol=1e-5),
    Expression("complex128", "a*b + 2*conj(a) - 1j*b", complexes(2), _cases.complex_,
               "a*b + 2.0*conj(a) - complex<double>(0.0, 1.0)*b", share=0.5),
    Expression("polynomial f64", "Horner's rule, degree 8", vectors(1), _cases.polynomial, _horner()),
    Expression("stencil 1-D f64", "a[2:] - 2*a[1:-1] + a[:-2]", vectors(1), second_difference, "a - 2.0*b + c",
               views=three_points),
    Expression("stencil 2-D f64", "five points", squares(1), laplacian, "a + b + c + d - 4.0*e",
               views=five_points, numba="five_points"),
    Expression("in place f64", "u[...] = u + dt*(a*b - u)", vectors(3), _cases.step, "a + 0.01*(b*c - a)",
               in_place=True),
    Expression("transposed f64", "a + 2*b.T", squares(2), transposed, "a + 2.0*b", views=second_transposed,
               transposed=True, torch=True),
    Expression("transposed f32", "a + 2*b.T", squares(2, "f4"), transposed, "a + 2.0f*b",
               views=second_transposed, transposed=True, rtol=1e-5),
    Expression("two transposed f64", "a.T*b.T + c", squares(3), triad, "a*b + c", views=two_transposed,
               transposed=True),
    Expression("permuted 3-D f64", "a + 2*b.transpose(2, 0, 1)", cubes, transposed, "a + 2.0*b",
               views=permuted, transposed=True),
)  # fmt: skip
