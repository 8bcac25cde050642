"""Scalar operations on truth values, integers and reals, as NumPy defines them.

Each function is a pattern: `operations` makes of it a function for one dtype and one compiler, by
giving its globals other values. Those below are what the patterns are for doubles in plain Python.
Constants are of the operands' dtype, because a Python number would widen a narrower one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# The dtype of the operands, the unsigned one of its width, and the others that are named.
T: Any = np.float64
U: Any = np.uint64
i4: Any = np.int32
i8: Any = np.int64
u1: Any = np.uint8
u8: Any = np.uint64
f2: Any = np.float16
f4: Any = np.float32
f8: Any = np.float64
# Constants of the dtype.
ZERO: Any = np.float64(0)
ONE: Any = np.float64(1)
TWO: Any = np.float64(2)
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
# What NumPy makes of 1/0 in integers, and how many bits they have.
INVERSE_OF_ZERO: Any = np.int64(0)
WIDTH: Any = np.int64(64)
ZERO_U: Any = np.uint64(0)
# For counting the bits of a uint64.
BYTES: Any = np.uint64(2**64 // 255)
FOURS: Any = np.uint64(2**64 // 255 * 0x0F)
PAIRS: Any = np.uint64(2**64 // 255 * 0x33)
ALTERNATE: Any = np.uint64(2**64 // 255 * 0x55)
BIT: Any = np.uint64(1)
TWO_BITS: Any = np.uint64(2)
FOUR_BITS: Any = np.uint64(4)
TOP_BYTE: Any = np.uint64(56)
# The real functions of the compiler's library, at this precision.
library: Any = np
# The operation at the working precision, for patterns that convert their operands.
of: Any = abs


# Anything


def same(x: Any) -> Any:
    return x


def where(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def zero(x: Any) -> Any:
    return ZERO


def true(x: Any) -> Any:
    return x == x


def false(x: Any) -> Any:
    return x != x


def negative(x: Any) -> Any:
    return T(-x)


def add(x: Any, y: Any) -> Any:
    return T(x + y)


def subtract(x: Any, y: Any) -> Any:
    return T(x - y)


def multiply(x: Any, y: Any) -> Any:
    return T(x * y)


def square(x: Any) -> Any:
    return T(x * x)


def equal(x: Any, y: Any) -> Any:
    return x == y


def not_equal(x: Any, y: Any) -> Any:
    return x != y


def less(x: Any, y: Any) -> Any:
    return x < y


def less_equal(x: Any, y: Any) -> Any:
    return x <= y


def greater(x: Any, y: Any) -> Any:
    return x > y


def greater_equal(x: Any, y: Any) -> Any:
    return x >= y


def logical_not(x: Any) -> Any:
    return x == ZERO


def logical_and(x: Any, y: Any) -> Any:
    return (x != ZERO) & (y != ZERO)


def logical_or(x: Any, y: Any) -> Any:
    return (x != ZERO) | (y != ZERO)


def logical_xor(x: Any, y: Any) -> Any:
    return (x != ZERO) ^ (y != ZERO)


# Truth values


def bool_not(x: Any) -> Any:
    return not x


def bool_and(x: Any, y: Any) -> Any:
    return x & y


def bool_or(x: Any, y: Any) -> Any:
    return x | y


def bool_xor(x: Any, y: Any) -> Any:
    return x ^ y


def bool_less(x: Any, y: Any) -> Any:
    return (not x) & y


def bool_less_equal(x: Any, y: Any) -> Any:
    return (not x) | y


def bool_greater(x: Any, y: Any) -> Any:
    return x & (not y)


def bool_greater_equal(x: Any, y: Any) -> Any:
    return x | (not y)


# Integers


def larger(x: Any, y: Any) -> Any:
    return x if x >= y else y


def smaller(x: Any, y: Any) -> Any:
    return x if x <= y else y


def signed_abs(x: Any) -> Any:
    return T(-x) if x < ZERO else x


def signed_sign(x: Any) -> Any:
    return ONE if x > ZERO else MINUS_ONE if x < ZERO else ZERO


def unsigned_sign(x: Any) -> Any:
    return ONE if x > ZERO else ZERO


def bitwise_and(x: Any, y: Any) -> Any:
    return T(x & y)


def bitwise_or(x: Any, y: Any) -> Any:
    return T(x | y)


def bitwise_xor(x: Any, y: Any) -> Any:
    return T(x ^ y)


def bitwise_invert(x: Any) -> Any:
    return T(~x)


def signed_reciprocal(x: Any) -> Any:
    if x == ZERO:
        return INVERSE_OF_ZERO
    if x == ONE:
        return ONE
    return MINUS_ONE if x == MINUS_ONE else ZERO


def unsigned_reciprocal(x: Any) -> Any:
    if x == ZERO:
        return INVERSE_OF_ZERO
    return x if x == ONE else ZERO


def signed_floor_divide(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    if y == MINUS_ONE:  # the smallest integer has no negative: it wraps around
        return T(-x)
    return T(x // y)


def signed_remainder(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    return ZERO if y == MINUS_ONE else T(x % y)


def signed_fmod(x: Any, y: Any) -> Any:
    r = signed_remainder(x, y)
    # The remainder has the divisor's sign, or is zero; wanted is the dividend's.
    return T(r - y) if r != ZERO and (x < ZERO) != (y < ZERO) else r


def unsigned_floor_divide(x: Any, y: Any) -> Any:
    return ZERO if y == ZERO else T(x // y)


def unsigned_remainder(x: Any, y: Any) -> Any:
    return ZERO if y == ZERO else T(x % y)


def signed_divmod(x: Any, y: Any) -> Any:
    return signed_floor_divide(x, y), signed_remainder(x, y)


def unsigned_divmod(x: Any, y: Any) -> Any:
    return unsigned_floor_divide(x, y), unsigned_remainder(x, y)


def unsigned_pow(x: Any, y: Any) -> Any:
    result, base, left = ONE, x, y
    while left != ZERO:
        if left & ONE:
            result = T(result * base)
        base = T(base * base)
        left = T(left >> ONE)
    return result


def signed_pow(x: Any, y: Any) -> Any:
    # (NumPy refuses negative exponents; a thread of a card cannot, and gives the integer part.)
    if y < ZERO:
        if x == ONE:
            return ONE
        if x == MINUS_ONE:
            return MINUS_ONE if y & ONE else ONE
        return ZERO
    return unsigned_pow(x, y)


def left_shift(x: Any, y: Any) -> Any:
    return T(x << y) if y >= ZERO and y < WIDTH else ZERO


def signed_right_shift(x: Any, y: Any) -> Any:
    if y >= ZERO and y < WIDTH:
        return T(x >> y)
    return MINUS_ONE if x < ZERO else ZERO


def unsigned_right_shift(x: Any, y: Any) -> Any:
    return T(x >> y) if y < WIDTH else ZERO


def magnitude(x: Any) -> Any:
    """|x| in the unsigned dtype, which also the smallest integer's fits."""
    return U(-x) if x < ZERO else U(x)


def unsigned_gcd(x: Any, y: Any) -> Any:
    a, b = U(x), U(y)
    while a != ZERO_U:
        a, b = U(b % a), a
    return T(b)


def unsigned_lcm(x: Any, y: Any) -> Any:
    g = U(unsigned_gcd(x, y))
    return ZERO if g == ZERO_U else T(U(U(U(x) // g) * U(y)))


def signed_gcd(x: Any, y: Any) -> Any:
    return unsigned_gcd(magnitude(x), magnitude(y))


def signed_lcm(x: Any, y: Any) -> Any:
    return unsigned_lcm(magnitude(x), magnitude(y))


def popcount(x: Any) -> Any:
    """How many bits of a uint64 are set: counted in pairs, in fours, in bytes, and summed."""
    x = x - ((x >> BIT) & ALTERNATE)
    x = (x & PAIRS) + ((x >> TWO_BITS) & PAIRS)
    x = (x + (x >> FOUR_BITS)) & FOURS
    return (x * BYTES) >> TOP_BYTE


def unsigned_bitwise_count(x: Any) -> Any:
    return u1(popcount(u8(x)))


def signed_bitwise_count(x: Any) -> Any:
    """NumPy counts the ones of |x|."""
    return u1(popcount(u8(magnitude(x))))


# int64 against uint64: NumPy compares the numbers, compilers convert one of them. (Two numbers of one
# of the dtypes are compared as well.)


def mixed_equal(x: Any, y: Any) -> Any:
    return (x < 0) == (y < 0) and u8(x) == u8(y)


def mixed_less(x: Any, y: Any) -> Any:
    if (x < 0) != (y < 0):
        return x < 0
    return u8(x) < u8(y)


def mixed_not_equal(x: Any, y: Any) -> Any:
    return not mixed_equal(x, y)


def mixed_less_equal(x: Any, y: Any) -> Any:
    return not mixed_less(y, x)


def mixed_greater(x: Any, y: Any) -> Any:
    return mixed_less(y, x)


def mixed_greater_equal(x: Any, y: Any) -> Any:
    return not mixed_less(x, y)


MIXED: dict[str, Any] = {
    "equal": mixed_equal,
    "not_equal": mixed_not_equal,
    "less": mixed_less,
    "less_equal": mixed_less_equal,
    "greater": mixed_greater,
    "greater_equal": mixed_greater_equal,
}


# Reals


def real_abs(x: Any) -> Any:
    return library.fabs(x)


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
    return x if x >= y or x != x else y


def minimum(x: Any, y: Any) -> Any:
    return x if x <= y or x != x else y


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
