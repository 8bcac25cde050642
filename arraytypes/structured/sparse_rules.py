"""Rules for sparse matrices: elementwise functions over their entries, reductions, linear algebra.

>>> import mirabelle as mb
>>> S = mb.CSR([[4.0, 1.0], [0.0, 2.0]])
>>> T = mb.CSR([[0.0, 3.0], [0.0, 5.0]])
>>> print(S * T, mb.maximum(S, T))
[[  .  3.]
 [  . 10.]] [[4. 3.]
 [ . 5.]]
>>> print(mb.linalg.solve(S, mb.HostArray([6.0, 4.0])), mb.linalg.det(S), mb.max(S, axis=0))
[1. 2.] 8.0 [4. 2.]
"""

from __future__ import annotations

import operator
from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import argument_type, build, join_families
from mirabelle.arraytypes.functions import chains, solving
from mirabelle.arraytypes.functions.chains import powered
from mirabelle.arraytypes.functions.lapack import check_square, inexact, refusing
from mirabelle.arraytypes.functions.manipulation import concat
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Banded, Identity
from mirabelle.arraytypes.structured.base import Structured, zeros
from mirabelle.arraytypes.structured.broadcasting import is_number, value_of, zero_structure
from mirabelle.arraytypes.structured.fallback import has_entries
from mirabelle.arraytypes.structured.sparse import CSR, csr_of_bands, mapped_entries, same_pattern
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.styles import NUMBER, Structure

# Elementwise: over the entries, on the union of the patterns or what they have in common


def mapped(self: CSR, op: Op, operands: tuple[Any, ...]) -> Any:
    """An elementwise operation that makes zero of the zeros, over the stored entries."""
    operands = tuple(csr_of_bands(x) if isinstance(x, Banded) else x for x in operands)
    if zero_structure(op, operands, _inside) is None:
        return _sum_with_dense(op, operands)
    if op.name in _DIRECT and len(operands) == 2 and all(isinstance(x, CSR) for x in operands):
        made = _combined(op, *operands)
        if made is not NotImplemented:
            return made
    aligned = _aligned([x for x in operands if isinstance(x, CSR)], common=op.name in _BOTH)
    pattern, taken = aligned[0], []
    for x in operands:
        if isinstance(x, CSR):
            taken.append(aligned.pop(0).data)
        else:
            taken.append(value_of(x) if is_number(x) else _entries_at(x, pattern))
    return pattern._with_data(build(op, tuple(taken)))


# What the library does in one pass over both.
_DIRECT = ("add", "subtract", "multiply")


def _combined(op: Op, x: CSR, y: CSR) -> Any:
    dtype = promotion.signature(op, (x.dtype, y.dtype)).out
    differentiated = x.carries_derivatives or y.carries_derivatives
    if differentiated or same_pattern(x, y) or dtype.char not in "bhilqBHILQfdFD":
        return NotImplemented
    a, b = (verbs.astype(z, dtype, copy=False) for z in (x, y))
    return CSR._of(library.call("csr_combined", *a.parts, *b.parts, name=op.name, shape=x.shape), x.shape)


# Zero where one of the two operands is.
_BOTH = ("multiply", "logical_and", "bitwise_and")


def _inside(x: Any) -> Structure | None:
    return NUMBER if isinstance(x, CSR) else None


def _entries_at(x: Any, pattern: CSR) -> Any:
    """The entries of another matrix at the places of a pattern."""
    if x.shape == pattern.shape and isinstance(x, Structured) and has_entries(x):
        return x._entries(pattern._rows(), pattern.indices)
    # A row or column that is stretched is read where it is stored.
    padded = x if x.ndim == 2 else verbs.reshape(x, (1,) * (2 - x.ndim) + x.shape)
    rows, columns = (
        0 if n == 1 and n != m else at
        for n, m, at in zip(padded.shape, pattern.shape, (pattern._rows(), pattern.indices), strict=True)
    )
    if rows is columns:
        return verbs.reshape(padded, ())
    return verbs.getitem(padded, (rows, columns))


def _aligned(xs: list[CSR], common: bool) -> list[CSR]:
    """The matrices with one pattern: the union of theirs, or what they have in common."""
    first = xs[0]
    if all(same_pattern(first, x) for x in xs[1:]):
        return list(xs)
    patterns = [p for x in xs for p in x.parts[1:]]
    columns, indptr, *places = library.call("csr_joined", *patterns, columns=first.shape[1], common=common)
    made = []
    for x, at in zip(xs, places, strict=True):
        # The element behind the last is the zero of places that are not stored.
        data = x.data if common else concat([x.data, zeros(x.family, (1,), x.dtype)])
        made.append(CSR._of((data[at], columns, indptr), x.shape))
    return made


def _sum_with_dense(op: Op, operands: tuple[Any, ...]) -> Any:
    """The sum with a matrix that is not sparse is as large as that."""
    if op.name not in ("add", "subtract"):
        return NotImplemented
    first = isinstance(operands[0], CSR)
    x, other = operands if first else operands[::-1]
    if is_number(other) or other.shape != x.shape or (isinstance(other, Structured) and not other.fuses):
        return NotImplemented
    sig = promotion.signature(op, tuple(argument_type(type(v)) for v in operands))
    minus = op.name == "subtract"
    signs = (1, -1) if minus and first else (-1, 1) if minus else (1, 1)
    return library.call("csr_sum", *x.parts, verbs.dense(other), dtype=sig.out, signs=signs)


mapped_entries.method(mapped, signature=(CSR,))


@verbs.copy.method
def _(x: CSR) -> Any:
    return x._with_data(verbs.copy(x.data))


# Reductions


_KNOWN = ("sum", "prod", "min", "max", "any", "all")


@verbs.reduce_.method
def _(x: CSR, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if reduction.name not in _KNOWN or not axes or 0 in x.shape:
        return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    if len(axes) == 1:
        found = library.call(
            "csr_lines", *x.parts, name=reduction.name, axis=axes[0], shape=x.shape, dtype=dtype
        )
        return verbs.reshape(found, _kept(x.shape, axes)) if keepdims else found
    found = _overall(x, reduction, dtype)
    return verbs.reshape(found, (1, 1)) if keepdims else found


def _overall(x: CSR, reduction: Any, dtype: Any) -> Any:
    if not x.nnz:
        return verbs.reduce_(zeros(x.family, (1,), x.dtype), reduction, dtype=dtype)
    found = verbs.reduce_(x.data, reduction, dtype=dtype)
    if x.nnz == x.size or reduction.name in ("sum", "any"):
        return found
    combine = {"prod": verbs.multiply, "min": verbs.minimum, "max": verbs.maximum, "all": verbs.logical_and}
    return combine[reduction.name](found, found.dtype.type(0))


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


# Linear algebra


@solving.solve.method
def _(x1: CSR, x2: AbstractArray) -> Any:
    check_square("solve", x1)
    check_system("solve", x1, x2)
    join_families("solve", (x1, x2))
    a, b = inexact("solve", x1, verbs.dense(x2) if isinstance(x2, Structured) else x2)
    return refusing("solve", "csr_solve", *a.parts, b)


@solving.slogdet.method
def _(x: CSR) -> Any:
    check_square("slogdet", x)
    (x,) = inexact("slogdet", x)
    return SlogdetResult(*library.call("csr_slogdet", *x.parts))


@solving.det.method
def _(x: CSR) -> Any:
    check_square("det", x)
    (x,) = inexact("det", x)
    return library.call("csr_det", *x.parts)


@solving.inv.method
def _(x: CSR) -> Any:
    return solving.inv(x._dense())  # which is as large as the result


@chains.matrix_power.method
def _(x: CSR, n: Any) -> Any:
    check_square("matrix_power", x)
    n = operator.index(n)
    if not n:
        return csr_of_bands(Identity(x.shape[0], dtype=x.dtype, device=x.family))
    return powered(x, n) if n > 0 else powered(solving.inv(x), -n)
