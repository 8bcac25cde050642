"""Logarithm, exponential, sine and cosine from exactly rounded operations alone.

Libraries differ in the last bit of these, and a sampler that rejects turns one bit into another
number. These give the same bits on every place, within 3 units of the last place (a test
measures it), and have no branches, so that compilers make vector code of them.

The coefficients are least-maximum (Remez) fits of the relative error, made for these intervals.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.random.lanes import (
    bits,
    bits4,
    choose,
    f4,
    f8,
    floor,
    i4,
    i8,
    number,
    number4,
    u4,
    u8,
)

# Kernel source: what follows is also compiled by the backends (see `lanes`).

FRACTION_BITS = u8(52)
BIAS = u8(1023)
# Added to the bits of x, it carries into the exponent from x = sqrt(1/2) on.
TO_ROOT_HALF = u8(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
# log 2 in two parts; products of the first with exponents are exact.
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
INVERSE_LN2 = 1.4426950408889634
INFINITY = float("inf")


def atanh_tail(z: Any) -> Any:
    """(2 atanh(s) - 2s) / s³ for z = s², |s| <= 0.1716."""
    p = 0.14795298662248138 * z + 0.15314122268869276
    p = p * z + 0.1818356120206092
    p = p * z + 0.22222198641236707
    p = p * z + 0.2857142874161914
    p = p * z + 0.39999999999418834
    return p * z + 0.6666666666666734


def log_parts(x: Any) -> Any:
    """k and f of x = 2**k (1 + f), with sqrt(1/2) <= 1 + f < sqrt(2)."""
    b = bits(x)
    n = (b + TO_ROOT_HALF) >> FRACTION_BITS
    return f8(i8(n)) - 1023.0, number(b - ((n - BIAS) << FRACTION_BITS)) - 1.0


def log_of_parts(k: Any, f: Any) -> Any:
    s = f / (2.0 + f)
    z = s * s
    return k * LN2_HIGH + ((s + s) + (s * z * atanh_tail(z) + k * LN2_LOW))


def log(x: Any) -> Any:
    """The logarithm of a positive normal number (something finite for others)."""
    k, f = log_parts(x)
    return log_of_parts(k, f)


def log_beside(x: Any, rest: Any) -> Any:
    """The logarithm of x, with full precision also near 1: `rest` is 1 - x, before it was rounded."""
    k, f = log_parts(x)
    near = rest < 0.25
    return log_of_parts(choose(near, 0.0, k), choose(near, 0.0 - rest, f))


def log1p_rest(q: Any) -> Any:
    """log(1 + q) - q for q > -1, without cancellation where q is small."""
    s = q / (2.0 + q)
    z = s * s
    return choose(z < 0.029, s * (z * atanh_tail(z) - q), log(1.0 + q) - q)


def log1p(q: Any) -> Any:
    """log(1 + q) for q > -1, exact near 0."""
    s = q / (2.0 + q)
    z = s * s
    return choose(z < 0.029, (s + s) + s * z * atanh_tail(z), log(1.0 + q))


def exp(x: Any) -> Any:
    """The exponential; 0 from about -708 down, infinity from about 709.7 up."""
    x = choose(x > -708.0, x, -708.5)
    x = choose(x < 709.7, x, 710.0)
    n = floor(x * INVERSE_LN2 + 0.5)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 2.5117881635229178e-08 * r + 2.7631236470700704e-07
    p = p * r + 2.755721622863891e-06
    p = p * r + 2.4801490078912197e-05
    p = p * r + 0.00019841269917467695
    p = p * r + 0.0013888888946865996
    p = p * r + 0.00833333333330717
    p = p * r + 0.04166666666651609
    p = p * r + 0.166666666666667
    p = p * r + 0.5000000000000012
    # Two factors: 2**1024, which rounding may ask for, is no double.
    scale = number((u8(i8(n)) + BIAS - u8(1)) << FRACTION_BITS)
    y = (1.0 + (r + r * r * p)) * scale * 2.0
    y = choose(x < -708.0, 0.0, y)
    return choose(x > 709.7, INFINITY, y)


def expm1(x: Any) -> Any:
    """exp(x) - 1, exact near 0 (Kahan's way: the errors of exp and log cancel)."""
    u = exp(x)
    d = u - 1.0
    small = (x > -0.5) & (x < 0.5) & (d != 0.0)
    return choose(small, d * x / log(choose(small, u, 2.0)), choose(d == 0.0, x, d))


def eighth_turn(r: Any) -> Any:
    """cos(πr) and sin(πr) for 0 <= r <= 1/4."""
    z = r * r
    s = 0.00046151443050956994 * z + -0.007370018314506233
    s = s * z + 0.08214586894945
    s = s * z + -0.5992645289321541
    s = s * z + 2.550164039873266
    s = s * z + -5.167712780049954
    s = s * z + 3.141592653589793
    c = -0.00010357918168851373 * z + 0.0019294684679680668
    c = c * z + -0.025806885905834756
    c = c * z + 0.23533063020280168
    c = c * z + -1.3352627688522163
    c = c * z + 4.058712126416751
    c = c * z + -4.934802200544679
    return 1.0 + z * c, r * s


# The same in single precision

FRACTION_BITS_4 = u4(23)
BIAS_4 = u4(127)
TO_ROOT_HALF_4 = u4(0x3F800000 - 0x3F3504F3)
LN2_HIGH_4, LN2_LOW_4 = f4(0.693145751953125), f4(1.4286068203094172e-06)
LOG_4 = (f4(0.6666677618610666), f4(0.39977559245980465), f4(0.29871357517210445))
SIN_4 = (f4(3.1415926434169363), f4(-5.167707681920987), f4(2.549761049526389), f4(-0.5890122104259871))
COS_4 = (f4(-4.934802173662159), f4(4.0587079250214035), f4(-1.3350589773948436), f4(0.23143353392842003))
ONE_4, TWO_4 = f4(1.0), f4(2.0)


def log_beside_4(x: Any, rest: Any) -> Any:
    b = bits4(x)
    n = (b + TO_ROOT_HALF_4) >> FRACTION_BITS_4
    near = rest < f4(0.25)
    k = choose(near, f4(0.0), f4(i4(n) - i4(127)))
    f = choose(near, f4(0.0) - rest, number4(b - ((n - BIAS_4) << FRACTION_BITS_4)) - ONE_4)
    s = f / (TWO_4 + f)
    z = s * s
    p = (LOG_4[2] * z + LOG_4[1]) * z + LOG_4[0]
    return k * LN2_HIGH_4 + ((s + s) + (s * z * p + k * LN2_LOW_4))


def eighth_turn_4(r: Any) -> Any:
    """cos(πr) and sin(πr) for 0 <= r <= 1/4."""
    z = r * r
    s = ((SIN_4[3] * z + SIN_4[2]) * z + SIN_4[1]) * z + SIN_4[0]
    c = ((COS_4[3] * z + COS_4[2]) * z + COS_4[1]) * z + COS_4[0]
    return ONE_4 + z * c, r * s
