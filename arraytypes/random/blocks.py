"""Samplers that take one block of words for several elements: no element ever needs another.

Each is a function of a block's place and of the stream; it returns one value for each of its
elements. How many there are, and of what dtype, `samplers` says.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.random.elementary import eighth_turn, eighth_turn_4, log_beside, log_beside_4
from mirabelle.arraytypes.random.lanes import (
    bits,
    bits4,
    choose,
    f4,
    f8,
    i4,
    number,
    number4,
    sqrt,
    u4,
    u8,
)
from mirabelle.arraytypes.random.philox import HALF, LOW, long_words, words

# Kernel source: what follows is also compiled by the backends (see `lanes`).

FIRST = u8(0)


def four_words(block: Any, stream: Any) -> Any:
    return words(block, FIRST, stream)


def two_long_words(block: Any, stream: Any) -> Any:
    return long_words(block, FIRST, stream)


# Uniform: [0, 1) in steps of 2**-53 and 2**-24


def fraction(word: Any) -> Any:
    return f8(word >> u8(11)) * 1.1102230246251565e-16


def fraction_4(word: Any) -> Any:
    return f4(i4(word >> u8(8))) * f4(5.9604644775390625e-08)


def uniform(block: Any, stream: Any) -> Any:
    u, v = long_words(block, FIRST, stream)
    return fraction(u), fraction(v)


def uniform_4(block: Any, stream: Any) -> Any:
    w0, w1, w2, w3 = words(block, FIRST, stream)
    return fraction_4(w0), fraction_4(w1), fraction_4(w2), fraction_4(w3)


# Exponential: the logarithm of a number in (0, 1) whose steps grow finer towards both ends, where the
# distribution's tail is, and its beginning


ALL = u8(0xFFFFFFFFFFFFFFFF)


def open_fraction(word: Any) -> Any:
    return (f8(word) + 0.5) * 5.421010862427522e-20


def log_fraction(word: Any) -> Any:
    """log((word + 1/2) / 2**64): never 0."""
    return log_beside(open_fraction(word), open_fraction(word ^ ALL))


def exponential(block: Any, stream: Any) -> Any:
    u, v = long_words(block, FIRST, stream)
    return 0.0 - log_fraction(u), 0.0 - log_fraction(v)


def open_fraction_4(word: Any) -> Any:
    return (f4(i4(word >> u8(1))) + f4(0.5)) * f4(4.656612873077393e-10)


def log_fraction_4(word: Any) -> Any:
    return log_beside_4(open_fraction_4(word), open_fraction_4(word ^ LOW))


def exponential_4(block: Any, stream: Any) -> Any:
    w0, w1, w2, w3 = words(block, FIRST, stream)
    zero = f4(0.0)
    return (
        zero - log_fraction_4(w0),
        zero - log_fraction_4(w1),
        zero - log_fraction_4(w2),
        zero - log_fraction_4(w3),
    )


# Normal: a point of the plane in polar coordinates (Box and Muller). The angle is one of an eighth
# of a turn; three more bits of the word say which eighth, so that no angle is rounded.


def direction(word: Any) -> Any:
    """A uniformly distributed point of the unit circle."""
    c, s = eighth_turn(f8(word >> u8(11)) * 2.7755575615628914e-17)
    straight = (word & u8(1)) == u8(0)
    x = choose(straight, c, s)
    y = choose(straight, s, c)
    return number(bits(x) ^ ((word & u8(2)) << u8(62))), number(bits(y) ^ ((word & u8(4)) << u8(61)))


def normal_pair(u: Any, v: Any) -> Any:
    """Two normal variates of two 64-bit words. They reach to 9.5."""
    radius = sqrt(-2.0 * log_fraction(u))
    x, y = direction(v)
    return radius * x, radius * y


def normal(block: Any, stream: Any) -> Any:
    u, v = long_words(block, FIRST, stream)
    return normal_pair(u, v)


def normal_pair_4(u: Any, v: Any) -> Any:
    """Two normal variates in single precision of two 32-bit words. They reach to 6.7."""
    radius = sqrt(f4(-2.0) * log_fraction_4(u))
    c, s = eighth_turn_4(f4(i4(v >> u8(8))) * f4(1.4901161193847656e-08))
    straight = (v & u8(1)) == u8(0)
    x = choose(straight, c, s)
    y = choose(straight, s, c)
    turn = u4(v & u8(6))
    x = number4(bits4(x) ^ ((turn & u4(2)) << u4(30)))
    y = number4(bits4(y) ^ ((turn & u4(4)) << u4(29)))
    return radius * x, radius * y


def normal_4(block: Any, stream: Any) -> Any:
    w0, w1, w2, w3 = words(block, FIRST, stream)
    x0, x1 = normal_pair_4(w0, w1)
    x2, x3 = normal_pair_4(w2, w3)
    return x0, x1, x2, x3


# Integers of a range by multiplication (Lemire): the upper half of word * count, unless the lower
# half is under (-count) mod count, where some results would come once too often. These return
# whether each element is accepted, then the values; what is not goes on with `bounded_again`.


def scaled(word: Any, count: Any, least: Any) -> Any:
    product = word * count
    return (product & LOW) >= least, product >> HALF


def bounded_4(block: Any, stream: Any, low: Any, count: Any, least: Any) -> Any:
    """Integers from `low`, `count` of them, count <= 2**32."""
    w0, w1, w2, w3 = words(block, FIRST, stream)
    a0, x0 = scaled(w0, count, least)
    a1, x1 = scaled(w1, count, least)
    a2, x2 = scaled(w2, count, least)
    a3, x3 = scaled(w3, count, least)
    return a0, a1, a2, a3, low + x0, low + x1, low + x2, low + x3


def bounded_4_again(index: Any, attempt: Any, stream: Any, low: Any, count: Any, least: Any) -> Any:
    w0, _, _, _ = words(index, attempt, stream)
    accepted, x = scaled(w0, count, least)
    return accepted, low + x


def long_product(a: Any, b: Any) -> Any:
    """The upper and the lower half of the product of two 64-bit numbers."""
    a0, a1 = a & LOW, a >> HALF
    b0, b1 = b & LOW, b >> HALF
    middle = a1 * b0 + ((a0 * b0) >> HALF)
    other = a0 * b1 + (middle & LOW)
    return a1 * b1 + (middle >> HALF) + (other >> HALF), a * b


def long_scaled(word: Any, count: Any, least: Any) -> Any:
    """As `scaled`; a count of 0 stands for 2**64."""
    high, low = long_product(word, count)
    return low >= least, choose(count == u8(0), word, high)


def bounded_8(block: Any, stream: Any, low: Any, count: Any, least: Any) -> Any:
    u, v = long_words(block, FIRST, stream)
    a0, x0 = long_scaled(u, count, least)
    a1, x1 = long_scaled(v, count, least)
    return a0, a1, low + x0, low + x1


def bounded_8_again(index: Any, attempt: Any, stream: Any, low: Any, count: Any, least: Any) -> Any:
    u, _ = long_words(index, attempt, stream)
    accepted, x = long_scaled(u, count, least)
    return accepted, low + x


def bounded_each(index: Any, attempt: Any, stream: Any, low: Any, count: Any) -> Any:
    """An integer of a range of its own for each element."""
    u, _ = long_words(index, attempt, stream)
    divisor = choose(count == u8(0), u8(1), count)
    accepted, x = long_scaled(u, count, (u8(0) - count) % divisor)
    return accepted, low + x
