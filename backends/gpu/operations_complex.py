"""Arithmetic, tests and order of complex numbers in kernels, as NumPy defines them.

Patterns like those of `operations_integer`: below is what they are for complex128 in plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# The dtype of the operands, and constants of their parts.
T: Any = np.complex128
ZERO: Any = np.float64(0)
ONE: Any = np.float64(1)
QUARTER: Any = np.float64(0.25)
INFINITY: Any = np.float64(np.inf)
NAN: Any = np.float64(np.nan)
# The real functions of the compiler's library, at the parts' precision.
library: Any = np


def same(z: Any) -> Any:
    return z


def real(z: Any) -> Any:
    return z.real


def imag(z: Any) -> Any:
    return z.imag


def conj(z: Any) -> Any:
    return T(complex(z.real, -z.imag))


def negative(z: Any) -> Any:
    return T(complex(-z.real, -z.imag))


def add(z: Any, w: Any) -> Any:
    return T(complex(z.real + w.real, z.imag + w.imag))


def subtract(z: Any, w: Any) -> Any:
    return T(complex(z.real - w.real, z.imag - w.imag))


def multiply(z: Any, w: Any) -> Any:
    return T(complex(z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real))


def square(z: Any) -> Any:
    return T(complex(z.real * z.real - z.imag * z.imag, z.real * z.imag + z.imag * z.real))


def divide(z: Any, w: Any) -> Any:
    a, b, c, d = z.real, z.imag, w.real, w.imag
    size_c, size_d = library.fabs(c), library.fabs(d)
    if size_c >= size_d:
        if size_c == ZERO and size_d == ZERO:
            return T(complex(a / size_c, b / size_c))
        ratio = d / c
        scale = ONE / (c + d * ratio)
        return T(complex((a + b * ratio) * scale, (b - a * ratio) * scale))
    ratio = c / d
    scale = ONE / (d + c * ratio)
    return T(complex((a * ratio + b) * scale, (b * ratio - a) * scale))


def reciprocal(z: Any) -> Any:
    c, d = z.real, z.imag
    if library.fabs(d) <= library.fabs(c):
        ratio = d / c
        size = c + d * ratio
        return T(complex(ONE / size, -ratio / size))
    ratio = c / d
    size = c * ratio + d
    return T(complex(ratio / size, -ONE / size))


def absolute(z: Any) -> Any:
    return library.hypot(z.real, z.imag)


def sign(z: Any) -> Any:
    size = library.hypot(z.real, z.imag)
    if size == ZERO:
        return T(complex(ZERO, ZERO))
    if size != INFINITY:
        return T(complex(z.real / size, z.imag / size))
    if library.fabs(z.real) == INFINITY:
        if library.fabs(z.imag) == INFINITY:
            return T(complex(NAN, NAN))
        return T(complex(library.copysign(ONE, z.real), ZERO))
    if library.fabs(z.imag) == INFINITY:
        return T(complex(ZERO, library.copysign(ONE, z.imag)))
    # Both parts are finite, and their size is not.
    x, y = z.real * QUARTER, z.imag * QUARTER
    size = library.hypot(x, y)
    return T(complex(x / size, y / size))


def rint(z: Any) -> Any:
    return T(complex(library.rint(z.real), library.rint(z.imag)))


# Tests and order: by real parts, among equals by imaginary parts


def is_nan(z: Any) -> Any:
    return (z.real != z.real) | (z.imag != z.imag)


def is_infinite(z: Any) -> Any:
    return (library.fabs(z.real) == INFINITY) | (library.fabs(z.imag) == INFINITY)


def is_finite(z: Any) -> Any:
    return (library.fabs(z.real) < INFINITY) & (library.fabs(z.imag) < INFINITY)


def nonzero(z: Any) -> Any:
    return (z.real != ZERO) | (z.imag != ZERO)


def logical_not(z: Any) -> Any:
    return not nonzero(z)


def logical_and(z: Any, w: Any) -> Any:
    return nonzero(z) & nonzero(w)


def logical_or(z: Any, w: Any) -> Any:
    return nonzero(z) | nonzero(w)


def logical_xor(z: Any, w: Any) -> Any:
    return nonzero(z) ^ nonzero(w)


def equal(z: Any, w: Any) -> Any:
    return (z.real == w.real) & (z.imag == w.imag)


def not_equal(z: Any, w: Any) -> Any:
    return (z.real != w.real) | (z.imag != w.imag)


def less(z: Any, w: Any) -> Any:
    if z.real == w.real:
        return z.imag < w.imag
    return (z.real < w.real) & (z.imag == z.imag) & (w.imag == w.imag)


def less_equal(z: Any, w: Any) -> Any:
    if z.real == w.real:
        return z.imag <= w.imag
    return (z.real < w.real) & (z.imag == z.imag) & (w.imag == w.imag)


def greater(z: Any, w: Any) -> Any:
    return less(w, z)


def greater_equal(z: Any, w: Any) -> Any:
    return less_equal(w, z)


def maximum(z: Any, w: Any) -> Any:
    return z if is_nan(z) or less_equal(w, z) else w


def minimum(z: Any, w: Any) -> Any:
    return z if is_nan(z) or less_equal(z, w) else w


def fmax(z: Any, w: Any) -> Any:
    return z if is_nan(w) or less_equal(w, z) else w


def fmin(z: Any, w: Any) -> Any:
    return z if is_nan(w) or less_equal(z, w) else w
