"""Complex functions in kernels: exponentials, logarithms, roots, powers, trigonometry and its inverses.

Patterns like those of `operations_integer`: below is what they are for complex128 in plain Python. What
overflows or cancels in the textbook's formulas is computed otherwise, after Kahan (branch cuts,
tangents) and Hull, Fairgrieve and Tang (inverse functions); infinities, NaN and signs of zeros follow
the C standard's Annex G.

References
----------
W. Kahan, Branch cuts for complex elementary functions, 1987.
T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, Implementing the complex arcsine and arccosine
functions using exception handling, ACM Transactions on Mathematical Software 23, 1997.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.operations_complex import divide, multiply

# The dtype of the operands and of their parts.
T: Any = np.complex128
c8: Any = np.complex64
c16: Any = np.complex128
# Constants of the parts' dtype.
ZERO: Any = np.float64(0)
ONE: Any = np.float64(1)
TWO: Any = np.float64(2)
FOUR: Any = np.float64(4)
HALF: Any = np.float64(0.5)
QUARTER: Any = np.float64(0.25)
PI: Any = np.float64(np.pi)
HALF_PI: Any = np.float64(np.pi / 2)
INFINITY: Any = np.float64(np.inf)
NAN: Any = np.float64(np.nan)
LOG_2: Any = np.float64(np.log(2))
LOG2_E: Any = np.float64(np.log2(np.e))
LOG10_E: Any = np.float64(np.log10(np.e))
# exp and cosh of more may overflow; beyond the smaller one tanh is 1 but for the last digit.
EXP_LIMIT: Any = np.float64(700)
TANH_LIMIT: Any = np.float64(20)
# Sizes whose squares may leave the range, and the powers of two that bring them back.
BIG: Any = np.float64(2.0**1020)
TINY: Any = np.float64(2.0**-960)
SCALE: Any = np.float64(2.0**108)
ROOT_SCALE: Any = np.float64(2.0**-54)
LOG_SCALE: Any = np.float64(108 * np.log(2))
HUNDRED: Any = np.float64(100)
# Splits a number into halves of its digits.
SPLITTER: Any = np.float64(2.0**27 + 1)
# The real functions of the compiler's library, at the parts' precision.
library: Any = np
# The operation at the other precision, for patterns that convert their operands.
of: Any = abs


def wide_unary(z: Any) -> Any:
    return c8(of(c16(z)))


def wide_binary(z: Any, w: Any) -> Any:
    return c8(of(c16(z), c16(w)))


# Exponentials and logarithms


def scaled(size: Any, x: Any, y: Any) -> Any:
    """exp(size)·(x + iy), also where the exponential alone overflows."""
    if size < EXP_LIMIT:
        e = library.exp(size)
        return T(complex(e * x, e * y))
    e = library.exp(size * HALF)
    return T(complex(e * x * e, e * y * e))


def exp(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == ZERO:
        return T(complex(library.exp(x), y))
    if not library.fabs(y) < INFINITY and library.fabs(x) == INFINITY:
        if x < ZERO:
            return T(complex(ZERO, library.copysign(ZERO, y)))
        return T(complex(INFINITY, NAN))
    return scaled(x, library.cos(y), library.sin(y))


def exp2(z: Any) -> Any:
    if library.fabs(z.real) < EXP_LIMIT and library.fabs(z.imag) < INFINITY:
        e, angle = library.exp2(z.real), z.imag * LOG_2
        return T(complex(e * library.cos(angle), e * library.sin(angle) if angle != ZERO else angle))
    return exp(T(complex(z.real * LOG_2, z.imag * LOG_2)))


def expm1(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == ZERO:
        return T(complex(library.expm1(x), y))
    if library.fabs(x) < TANH_LIMIT and library.fabs(y) < INFINITY:
        half = library.sin(y * HALF)
        return T(
            complex(library.expm1(x) * library.cos(y) - TWO * half * half, library.exp(x) * library.sin(y))
        )
    w = exp(z)
    return T(complex(w.real - ONE, w.imag))


def square_sum(x: Any, y: Any, c: Any, d: Any) -> Any:
    """x² + y² + c + d, with the digits that cancel: c and d are the larger terms, or exact."""
    big = SPLITTER * x
    high = big - (big - x)
    low = x - high
    xx = x * x
    rest = ((high * high - xx) + TWO * high * low) + low * low
    big = SPLITTER * y
    high = big - (big - y)
    low = y - high
    yy = y * y
    rest = rest + (((high * high - yy) + TWO * high * low) + low * low)
    # Each sum's rounding error is kept.
    a = c + d
    t = a - c
    rest = rest + ((c - (a - t)) + (d - t))
    b = a + xx
    t = b - a
    rest = rest + ((a - (b - t)) + (xx - t))
    s = b + yy
    t = s - b
    rest = rest + ((b - (s - t)) + (yy - t))
    return s + rest


def log_size(x: Any, y: Any) -> Any:
    """log|x + iy|"""
    x, y = library.fabs(x), library.fabs(y)
    large = x if x > y else y
    small = y if x > y else x
    if large > BIG:
        return library.log(library.hypot(x * QUARTER, y * QUARTER)) + TWO * LOG_2
    if large < TINY:
        return library.log(library.hypot(x * SCALE, y * SCALE)) - LOG_SCALE
    size = library.hypot(x, y)
    if size > HALF and size < TWO:
        # Close to 1 the logarithm is what |z|² is beside 1.
        return HALF * library.log1p(square_sum(large, small, -ONE, ZERO))
    return library.log(size)


def log(z: Any) -> Any:
    return T(complex(log_size(z.real, z.imag), library.atan2(z.imag, z.real)))


def log2(z: Any) -> Any:
    return T(complex(log_size(z.real, z.imag) * LOG2_E, library.atan2(z.imag, z.real) * LOG2_E))


def log10(z: Any) -> Any:
    return T(complex(log_size(z.real, z.imag) * LOG10_E, library.atan2(z.imag, z.real) * LOG10_E))


def log1p(z: Any) -> Any:
    x, y = z.real, z.imag
    angle = library.atan2(y, x + ONE)
    if library.fabs(x) < ONE and library.fabs(y) < ONE and (library.fabs(x) < HALF or library.fabs(y) > HALF):
        # |1 + z|² = 1 + 2x + x² + y²
        return T(complex(HALF * library.log1p(square_sum(x, y, TWO * x, ZERO)), angle))
    return T(complex(log_size(x + ONE, y), angle))


def sqrt(z: Any) -> Any:
    x, y = z.real, z.imag
    if library.fabs(y) == INFINITY:
        return T(complex(INFINITY, y))
    if x == INFINITY:
        return T(complex(x, library.copysign(ZERO, y) if y == y else y))
    if x == -INFINITY:
        if y == y:
            return T(complex(ZERO, library.copysign(INFINITY, y)))
        return T(complex(NAN, INFINITY))
    if x != x or y != y:
        return T(complex(NAN, NAN))
    if x == ZERO and y == ZERO:
        return T(complex(ZERO, y))
    back = ONE
    if library.fabs(x) > BIG or library.fabs(y) > BIG:
        x, y, back = x * QUARTER, y * QUARTER, TWO
    elif library.fabs(x) < TINY and library.fabs(y) < TINY:
        x, y, back = x * SCALE, y * SCALE, ROOT_SCALE
    root = library.sqrt((library.fabs(x) + library.hypot(x, y)) * HALF)
    if x >= ZERO:
        return T(complex(root * back, y / (TWO * root) * back))
    return T(complex(library.fabs(y) / (TWO * root) * back, library.copysign(root * back, y)))


def power(z: Any, w: Any) -> Any:
    c, d = w.real, w.imag
    if c == ZERO and d == ZERO:
        return T(complex(ONE, ZERO))
    if z.real == ZERO and z.imag == ZERO:
        if c > ZERO:
            return T(complex(ZERO, ZERO))
        return T(complex(NAN, NAN))
    if d == ZERO and c > -HUNDRED and c < HUNDRED and c == library.trunc(c):
        return integer_power(z, c)
    angle = library.atan2(z.imag, z.real)
    size = log_size(z.real, z.imag)
    return exp(T(complex(c * size - d * angle, c * angle + d * size)))


def integer_power(z: Any, exponent: Any) -> Any:
    left = library.fabs(exponent)
    result, base, first = z, z, True
    while left > ZERO:
        half = library.trunc(left * HALF)
        if left != half + half:
            result = base if first else multiply(result, base)
            first = False
        left = half
        if left > ZERO:
            base = multiply(base, base)
    return divide(T(complex(ONE, ZERO)), result) if exponent < ZERO else result


# Trigonometric and hyperbolic functions: f(iz) is i·f(z), but for the cosine


def sinh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == ZERO:
        return T(complex(library.sinh(x), y))
    if library.fabs(y) < INFINITY:
        c, s = library.cos(y), library.sin(y)
        size = library.fabs(x)
        if size < EXP_LIMIT:
            return T(complex(library.sinh(x) * c, library.cosh(x) * s))
        return scaled(size, library.copysign(HALF, x) * c, HALF * s)
    if x == ZERO:
        return T(complex(x, NAN))
    return T(complex(INFINITY if library.fabs(x) == INFINITY else NAN, NAN))


def cosh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == ZERO:
        return T(complex(library.cosh(x), y * library.copysign(ONE, x) if x == x else y))
    if library.fabs(y) < INFINITY:
        c, s = library.cos(y), library.sin(y)
        size = library.fabs(x)
        if size < EXP_LIMIT:
            return T(complex(library.cosh(x) * c, library.sinh(x) * s))
        return scaled(size, HALF * c, library.copysign(HALF, x) * s)
    if x == ZERO:
        return T(complex(NAN, ZERO))
    return T(complex(INFINITY if library.fabs(x) == INFINITY else NAN, NAN))


def tanh(z: Any) -> Any:
    x, y = z.real, z.imag
    if library.fabs(x) == INFINITY:
        turn = library.sin(y) * library.cos(y) if library.fabs(y) < INFINITY else y
        return T(complex(library.copysign(ONE, x), library.copysign(ZERO, turn)))
    if not library.fabs(y) < INFINITY:
        return T(complex(x if x == ZERO else NAN, NAN))
    if x != x:
        return T(complex(x, y if y == ZERO else x))
    if library.fabs(x) > TANH_LIMIT:
        e = library.exp(-library.fabs(x))
        return T(complex(library.copysign(ONE, x), FOUR * library.sin(y) * library.cos(y) * e * e))
    t = library.tan(y)
    b = ONE + t * t
    s = library.sinh(x)
    r = library.sqrt(ONE + s * s)
    d = ONE + b * s * s
    if b == INFINITY:
        return T(complex(r / s, ONE / t))
    return T(complex(b * r * s / d, t / d))


def sin(z: Any) -> Any:
    w = sinh(T(complex(z.imag, z.real)))
    return T(complex(w.imag, w.real))


def cos(z: Any) -> Any:
    return cosh(T(complex(-z.imag, z.real)))


def tan(z: Any) -> Any:
    w = tanh(T(complex(z.imag, z.real)))
    return T(complex(w.imag, w.real))


# Their inverses, at double precision


def arcs(x: Any, y: Any) -> Any:
    """For x, y ≥ 0 and finite: the real parts of asin and acos, and the size of their imaginary part."""
    if x > 1e9 or y > 1e9:
        return library.atan2(x, y), library.atan2(y, x), log_size(x, y) + LOG_2
    if x == 1.0 and y < 1e-20:
        root = library.sqrt(y)
        return HALF_PI - root, root, root
    if y <= 1e-9 * library.fabs(x - 1.0):
        if x < 1.0:
            return library.asin(x), library.acos(x), y / library.sqrt((1.0 - x) * (1.0 + x))
        root = library.sqrt((x - 1.0) * (x + 1.0))
        return HALF_PI - y / root, y / root, library.log1p((x - 1.0) + root)
    # The sum of the distances to the branch points is 2a.
    r, s = library.hypot(x + 1.0, y), library.hypot(x - 1.0, y)
    a = 0.5 * (r + s)
    b = x / a
    if b <= 0.64:
        sine, cosine = library.asin(b), library.acos(b)
    else:
        if x <= 1.0:
            side = library.sqrt(0.5 * (a + x) * (y * y / (r + (x + 1.0)) + (s + (1.0 - x))))
        else:
            side = y * library.sqrt(0.5 * ((a + x) / (r + (x + 1.0)) + (a + x) / (s + (x - 1.0))))
        sine, cosine = library.atan2(x, side), library.atan2(side, x)
    if a > 1.5:
        return sine, cosine, library.log(a + library.sqrt((a - 1.0) * (a + 1.0)))
    if x < 1.0:
        excess = 0.5 * (y * y / (r + (x + 1.0)) + y * y / (s + (1.0 - x)))
    else:
        excess = 0.5 * (y * y / (r + (x + 1.0)) + (s + (x - 1.0)))
    return sine, cosine, library.log1p(excess + library.sqrt(excess * (a + 1.0)))


def asin(z: Any) -> Any:
    x, y = z.real, z.imag
    if library.fabs(x) < INFINITY and library.fabs(y) < INFINITY:
        sine, _, size = arcs(library.fabs(x), library.fabs(y))
        return T(complex(library.copysign(sine, x), library.copysign(size, y)))
    if x != x:
        return T(complex(x, y if library.fabs(y) == INFINITY else NAN))
    if y != y:
        if library.fabs(x) == INFINITY:
            return T(complex(NAN, INFINITY))
        return T(complex(x if x == ZERO else NAN, NAN))
    return T(complex(library.atan2(x, library.fabs(y)), library.copysign(INFINITY, y)))


def acos(z: Any) -> Any:
    x, y = z.real, z.imag
    if library.fabs(x) < INFINITY and library.fabs(y) < INFINITY:
        _, cosine, size = arcs(library.fabs(x), library.fabs(y))
        return T(complex(PI - cosine if x < ZERO else cosine, library.copysign(size, -y)))
    if x != x:
        return T(complex(x, -y if library.fabs(y) == INFINITY else NAN))
    if y != y:
        if library.fabs(x) == INFINITY:
            return T(complex(NAN, -INFINITY))
        return T(complex(HALF_PI if x == ZERO else NAN, NAN))
    return T(complex(library.atan2(library.fabs(y), x), library.copysign(INFINITY, -y)))


def asinh(z: Any) -> Any:
    w = asin(T(complex(z.imag, z.real)))
    return T(complex(w.imag, w.real))


def acosh(z: Any) -> Any:
    w = acos(z)
    return T(complex(library.fabs(w.imag), library.copysign(w.real, z.imag)))


def atanh(z: Any) -> Any:
    x, y = z.real, z.imag
    if x != x:
        if library.fabs(y) == INFINITY:
            return T(complex(ZERO, library.copysign(HALF_PI, y)))
        return T(complex(x, NAN))
    if y != y:
        return T(complex(library.copysign(ZERO, x) if library.fabs(x) == INFINITY or x == ZERO else NAN, NAN))
    size, side = library.fabs(x), library.fabs(y)
    if size > 1e150 or side > 1e150:
        # 1/z, of which the imaginary part is nothing beside π/2.
        if size == INFINITY or side == INFINITY:
            part = ZERO
        else:
            part = size * QUARTER / library.hypot(size * QUARTER, side * QUARTER)
            part = part / library.hypot(size * QUARTER, side * QUARTER) * QUARTER
        return T(complex(library.copysign(part, x), library.copysign(HALF_PI, y)))
    if size == 1.0 and side < 1e-100:
        part = HALF * (LOG_2 - library.log(side)) if side > ZERO else INFINITY
        angle = QUARTER * PI if side > ZERO else ZERO
        return T(complex(library.copysign(part, x), library.copysign(angle, y)))
    gap = 1.0 - size
    part = QUARTER * library.log1p(FOUR * size / (gap * gap + side * side))
    angle = HALF * library.atan2(TWO * side, gap * (1.0 + size) - side * side)
    return T(complex(library.copysign(part, x), library.copysign(angle, y)))


def atan(z: Any) -> Any:
    w = atanh(T(complex(z.imag, z.real)))
    return T(complex(w.imag, w.real))
