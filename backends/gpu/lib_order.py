"""NumPy's order of elements on a card, as one of integers.

CUB sorts floats by their bits, so that a NaN whose sign is set (the square root of a negative number) comes
first. CuPy's argmax finds any of several NaN, its kernels take the smallest numbers of single precision for
zero, and complex numbers with NaN in them compare in other ways than they are sorted. So integers are asked
for the order of elements, and for which are equal.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.backends.gpu.library import on_card


def ordinals(xp: Any, x: Any, falling: bool = False) -> Any:
    """For each real number an integer: equal for equal ones, larger for larger ones, the largest for NaN.

    `falling`: of floats larger for smaller ones, and still the largest for NaN.
    """
    if x.dtype.kind != "f":
        return x
    whole = np.dtype(f"i{x.dtype.itemsize}")
    infinite = np.array(np.inf, x.dtype).view(whole)[()]
    bits = x.view(whole)
    if on_card(xp):  # (the same in one pass)
        return _kernel(xp)(bits, np.iinfo(whole).max, infinite, falling)
    size = xp.minimum(bits & np.iinfo(whole).max, infinite + 1)
    return xp.where(((bits < 0) != falling) & (size <= infinite), -size, size)


_ONE = """
    T size = bits & most;
    if (size > infinite) size = infinite + 1;
    out = (bits < 0) != falling && size <= infinite ? -size : size;
"""


@functools.cache
def _kernel(xp: Any) -> Any:
    return xp.ElementwiseKernel("T bits, T most, T infinite, bool falling", "T out", _ONE, "mirabelle_ordinals")


def common_ordinals(xp: Any, *arrays: Any) -> tuple[Any, ...]:
    """The integers of several arrays of one dtype, to be compared with one another; of complex numbers, too."""
    if arrays[0].dtype.kind != "c":
        return tuple(ordinals(xp, x) for x in arrays)
    keys = [xp.concatenate(part) for part in zip(*[_parts(xp, x.reshape(-1)) for x in arrays], strict=True)]
    order = _ordered(xp, keys, 0)
    changes = xp.zeros(order.shape, bool)
    for key in keys:
        sorted_key = key[order]
        changes[1:] |= sorted_key[1:] != sorted_key[:-1]
    ranks = xp.empty(order.shape, np.int64)
    ranks[order] = xp.cumsum(changes.astype(np.int64))
    found, start = [], 0
    for x in arrays:
        found.append(ranks[start : start + x.size].reshape(x.shape))
        start += x.size
    return tuple(found)


def _parts(xp: Any, x: Any) -> list[Any]:
    """What complex numbers are ordered by, the last first: where NaN is, the real part, the imaginary one."""
    missing = xp.isnan(x.imag).astype(np.uint8) + 2 * xp.isnan(x.real).astype(np.uint8)
    return [ordinals(xp, x.imag), ordinals(xp, x.real), missing]


def _ordered(xp: Any, keys: list[Any], axis: int) -> Any:
    """Places in the order of integer keys, of which the last decides first: one stable sort after the other."""
    order = places(xp, keys[0], axis)
    for key in keys[1:]:
        step = places(xp, xp.take_along_axis(key, order, axis=axis), axis)
        order = xp.take_along_axis(order, step, axis=axis)
    return order


def places(xp: Any, x: Any, axis: int) -> Any:
    """The places of the elements in NumPy's order, equal ones as they stand."""
    if x.dtype.kind == "c":
        return _ordered(xp, _parts(xp, x), axis)
    # CuPy's sorts are stable, and know no names; NumPy's, on the simulated card, are so on request.
    return xp.argsort(_alike(xp, x), axis=axis, **({} if on_card(xp) else {"kind": "stable"}))


def in_order(xp: Any, x: Any, axis: int) -> Any:
    """The elements in NumPy's order."""
    if x.dtype.kind == "c":
        return xp.take_along_axis(x, places(xp, x, axis), axis=axis)
    return xp.sort(_alike(xp, x), axis=axis, **({} if on_card(xp) else {"kind": "stable"}))


def _alike(xp: Any, x: Any) -> Any:
    """The same with one NaN for all."""
    return xp.where(xp.isnan(x), x.dtype.type(np.nan), x) if x.dtype.kind == "f" else x


def differ(xp: Any, a: Any, b: Any) -> Any:
    """Where elements of one dtype are not equal, as NumPy's `!=` says; a NaN differs from all."""
    if a.dtype.kind == "c":
        return differ(xp, a.real, b.real) | differ(xp, a.imag, b.imag)
    found = ordinals(xp, a) != ordinals(xp, b)
    return found | xp.isnan(a) if a.dtype.kind == "f" else found


# What CuPy's kernels take the smallest numbers of for zero.
FLUSHED = "fF"


def nonzero_elements(xp: Any, x: Any) -> Any:
    """What is zero where `x` is, also for CuPy."""
    if x.dtype.char not in FLUSHED:
        return x
    return (
        nonzero_elements(xp, x.real) | nonzero_elements(xp, x.imag) if x.dtype.kind == "c" else ordinals(xp, x)
    )
