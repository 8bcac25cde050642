"""Scalar operations on truth values and integers, and those alike for every dtype, as NumPy defines them.

Each function is a pattern: `operations` makes of it a function for one dtype and one compiler, by
giving its globals other values. Those below are what they are for int64 in plain Python. Constants are
of the operands' dtype, because a Python number would widen a narrower one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# The dtype of the operands, and the unsigned one of its width.
T: Any = np.int64
U: Any = np.uint64
u1: Any = np.uint8
u8: Any = np.uint64
i8: Any = np.int64
# Constants of the dtype, and the number of its bits.
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
MINUS_ONE: Any = np.int64(-1)
WIDTH: Any = np.int64(64)
# What NumPy makes of 1/0.
INVERSE_OF_ZERO: Any = np.int64(0)
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


def magnitude(x: Any) -> Any:
    """|x| in the unsigned dtype, which also the smallest integer's fits."""
    return U(ZERO_U - U(x)) if x < ZERO else U(x)


# Quotients are taken without signs: cards divide short unsigned numbers fast, and at 64 bits look
# whether both are short.


def signed_floor_divide(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    a, b = magnitude(x), magnitude(y)
    q = U(a // b)
    if (x < ZERO) == (y < ZERO):
        return T(q)
    return T(-q if U(q * b) == a else ~q)


def signed_remainder(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    b = magnitude(y)
    r = U(magnitude(x) % b)
    if (x < ZERO) != (y < ZERO) and r != ZERO_U:
        r = U(b - r)
    return T(-r) if y < ZERO else T(r)


def signed_fmod(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    r = U(magnitude(x) % magnitude(y))
    return T(-r) if x < ZERO else T(r)


# Short numbers in 64 bits. (Compilers make 16 bits of what could be done so, and ptxas then takes
# -32768 // 1 for 32767.)


def short_floor_divide(x: Any, y: Any) -> Any:
    return ZERO if y == ZERO else T(i8(x) // i8(y))


def short_remainder(x: Any, y: Any) -> Any:
    return ZERO if y == ZERO else T(i8(x) % i8(y))


def short_fmod(x: Any, y: Any) -> Any:
    if y == ZERO:
        return ZERO
    r = i8(x) % i8(y)
    return T(r - i8(y)) if r != 0 and (x < ZERO) != (y < ZERO) else T(r)


def short_divmod(x: Any, y: Any) -> Any:
    return short_floor_divide(x, y), short_remainder(x, y)


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


def divisor(x: Any, y: Any) -> Any:
    """The greatest common divisor in the unsigned dtype."""
    a, b = U(x), U(y)
    while a != ZERO_U:
        a, b = U(b % a), a
    return b


def unsigned_gcd(x: Any, y: Any) -> Any:
    return T(divisor(x, y))


def unsigned_lcm(x: Any, y: Any) -> Any:
    g = divisor(x, y)
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
