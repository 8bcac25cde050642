"""Scalar operations on reals, as NumPy defines them, at single, double and half precision.

Patterns like those of `operations_integer`: below is what they are for doubles in plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# The dtype of the operands, and those that are named.
T: Any = np.float64
i4: Any = np.int32
f2: Any = np.float16
f4: Any = np.float32
f8: Any = np.float64
# Constants of the dtype.
ZERO: Any = np.float64(0)
ONE: Any = np.float64(1)
HALF: Any = np.float64(0.5)
MINUS_ONE: Any = np.float64(-1)
INFINITY: Any = np.float64(np.inf)
NAN: Any = np.float64(np.nan)
LOG_2: Any = np.float64(np.log(2))
LOG2_E: Any = np.float64(np.log2(np.e))
DEGREE: Any = np.float64(np.pi / 180)
RADIAN: Any = np.float64(180 / np.pi)
SMALLEST: Any = np.nextafter(0.0, 1.0)
LARGEST: Any = np.finfo(np.float64).max
# The real functions of the compiler's library, at this precision.
library: Any = np
# The operation at single precision, for patterns of half precision.
of: Any = abs


def real_sign(x: Any) -> Any:
    return ONE if x > ZERO else MINUS_ONE if x < ZERO else ZERO if x == ZERO else x


def divide(x: Any, y: Any) -> Any:
    return x / y


def reciprocal(x: Any) -> Any:
    return ONE / x


def is_nan(x: Any) -> Any:
    return x != x


def is_infinite(x: Any) -> Any:
    return library.fabs(x) == INFINITY


def is_finite(x: Any) -> Any:
    return library.fabs(x) < INFINITY


def signbit(x: Any) -> Any:
    return library.copysign(ONE, x) < ZERO


def maximum(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def minimum(x: Any, y: Any) -> Any:
    return x if x < y or x != x else y


def fmax(x: Any, y: Any) -> Any:
    return x if x >= y or y != y else y


def fmin(x: Any, y: Any) -> Any:
    return x if x <= y or y != y else y


def deg2rad(x: Any) -> Any:
    return x * DEGREE


def rad2deg(x: Any) -> Any:
    return x * RADIAN


def heaviside(x: Any, at_zero: Any) -> Any:
    if x == ZERO:
        return at_zero
    return x if x != x else ZERO if x < ZERO else ONE


def logaddexp(x: Any, y: Any) -> Any:
    if x == y:  # infinities of one sign among them
        return x + LOG_2
    d = x - y
    if d > ZERO:
        return x + library.log1p(library.exp(-d))
    if d <= ZERO:
        return y + library.log1p(library.exp(d))
    return d


def logaddexp2(x: Any, y: Any) -> Any:
    if x == y:
        return x + ONE
    d = x - y
    if d > ZERO:
        return x + LOG2_E * library.log1p(library.exp2(-d))
    if d <= ZERO:
        return y + LOG2_E * library.log1p(library.exp2(d))
    return d


def real_remainder(x: Any, y: Any) -> Any:
    r = library.fmod(x, y)
    if y == ZERO:
        return r
    if r == ZERO:
        return library.copysign(ZERO, y)
    return r + y if (y < ZERO) != (r < ZERO) else r


def real_floor_divide(x: Any, y: Any) -> Any:
    if y == ZERO:
        return x / y
    r = library.fmod(x, y)
    # x - r is all but a multiple of y, so that the quotient is all but an integer.
    q = (x - r) / y
    if r != ZERO and (y < ZERO) != (r < ZERO):
        q = q - ONE
    if q == ZERO:
        return library.copysign(ZERO, x / y)
    low = library.floor(q)
    return low + ONE if q - low > HALF else low


def real_divmod(x: Any, y: Any) -> Any:
    return real_floor_divide(x, y), real_remainder(x, y)


def modf(x: Any) -> Any:
    whole = library.trunc(x)
    part = ZERO if library.fabs(x) == INFINITY else x - whole
    return library.copysign(part, x), whole


def frexp(x: Any) -> Any:
    if library.fabs(x) < INFINITY:
        part, exponent = library.frexp(x)
        return T(part), i4(exponent)
    return x, i4(0)


def ldexp(x: Any, n: Any) -> Any:
    # NumPy takes 64-bit exponents too: all that do not fit are as good as these.
    return T(library.ldexp(x, i4(5000 if n > 5000 else -5000 if n < -5000 else n)))


def nextafter(x: Any, y: Any) -> Any:
    if x != x or y != y:
        return NAN
    return library.nextafter(x, y)


def spacing(x: Any) -> Any:
    if library.fabs(x) < INFINITY:
        # From 0 and -0 upwards, else away from zero.
        away = library.copysign(INFINITY, x) if x != ZERO else INFINITY
        return library.nextafter(x, away) - x
    return NAN


# Functions of the library by themselves


def library_1(x: Any) -> Any:
    return library.function(x)


def library_2(x: Any, y: Any) -> Any:
    return library.function(x, y)


def library_3(x: Any, y: Any, z: Any) -> Any:
    return library.function(x, y, z)


# Half precision: computed at single precision, of which every rounding but the last is harmless


def half_unary(x: Any) -> Any:
    return f2(of(f4(x)))


def half_binary(x: Any, y: Any) -> Any:
    return f2(of(f4(x), f4(y)))


def half_ternary(x: Any, y: Any, z: Any) -> Any:
    # The product is exact, and the sum has more than twice the digits of the result.
    return f2(f8(x) * f8(y) + f8(z))


def half_test(x: Any) -> Any:
    return of(f4(x))


def half_comparison(x: Any, y: Any) -> Any:
    return of(f4(x), f4(y))


def half_pair(x: Any) -> Any:
    a, b = of(f4(x))
    return f2(a), f2(b)


def half_divmod(x: Any, y: Any) -> Any:
    a, b = of(f4(x), f4(y))
    return f2(a), f2(b)


def half_frexp(x: Any) -> Any:
    a, b = of(f4(x))
    return f2(a), b


def half_ldexp(x: Any, n: Any) -> Any:
    return f2(of(f4(x), n))


def half_step(size: Any) -> Any:
    """How far the next half is, away from zero, from one of this size; at single precision."""
    _, exponent = library.frexp(size)
    return library.ldexp(ONE, i4(exponent - 11 if exponent > -13 else -24))


def half_nextafter(x: Any, y: Any) -> Any:
    a, b = f4(x), f4(y)
    if a != a or b != b:
        return f2(NAN)
    if a == b:
        return x
    if a == ZERO:
        return f2(library.copysign(SMALLEST, b))
    size = library.fabs(a)
    if (b > a) == (a > ZERO):
        size = size + half_step(size)
    elif size == INFINITY:
        size = LARGEST
    else:
        # Below a power of two numbers are twice as dense, down to the smallest.
        below = size - half_step(size) * HALF
        size = below if half_step(below) < half_step(size) else size - half_step(size)
    return f2(library.copysign(size, a))


def half_spacing(x: Any) -> Any:
    a = f4(x)
    size = library.fabs(a)
    if not size < INFINITY:
        return f2(NAN)
    if a == LARGEST:
        return f2(INFINITY)
    if a == ZERO:
        return f2(SMALLEST)
    step = half_step(size)
    if a < ZERO:
        # NumPy measures negative numbers upwards, towards zero.
        below = size - step * HALF
        if below > ZERO and half_step(below) < step:
            step = half_step(below)
    return f2(step)
