"""Kronecker sums A ⊕ B = A ⊗ I + I ⊗ B: operators that act on each axis of a grid by itself.

>>> import mirabelle as mb
>>> n = 100
>>> D = mb.Tridiagonal(mb.Fill(n - 1, -1.0), mb.Fill(n, 2.0), mb.Fill(n - 1, -1.0))
>>> L = mb.kronecker_sum(D, D)                     # the Laplacian of a square, of 10 000 points
>>> u = mb.linalg.solve(L, mb.ones(n * n))         # through the eigenvectors of D
>>> float(mb.max(mb.abs(L @ u - 1))) < 1e-9
True
>>> A = mb.HostArray([[0.0, 1.0], [0.0, 0.0]])
>>> type(mb.linalg.expm(mb.kronecker_sum(A, A))).__name__
'Kronecker[HostArray[float64, 2], HostArray[float64, 2]]'
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import build, join_families
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Diagonal, Identity, band
from mirabelle.arraytypes.structured.base import square
from mirabelle.arraytypes.structured.broadcasting import is_number, value_of
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import Fill
from mirabelle.arraytypes.structured.kronecker import Factored, as_right_side, combined, mask_of, multiplied
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.ops import Op


class KroneckerSum(Factored):
    """The Kronecker sum of two or more square matrices, held by these.

    On a vector read as an array with one axis for each matrix, it is the sum of what each matrix
    makes of its axis.

    Parameters
    ----------
    *factors : square matrices
        The terms, from left to right.

    Examples
    --------
    >>> import mirabelle as mb
    >>> S = mb.KroneckerSum(mb.Diagonal([1.0, 2.0]), mb.Diagonal([10.0, 20.0]))
    >>> print(mb.band(S))
    [11. 21. 12. 22.]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    @classmethod
    def _shape_of(cls, *parts: Any) -> tuple[int, ...]:
        n = math.prod(square(p, generic_class(cls).__name__) for p in parts)
        return n, n

    def _entries(self, i: Any, j: Any) -> Any:
        digits = []
        for p in reversed(self._parts):
            n = p.shape[0]
            digits.append((p, i % n, j % n))
            i, j = i // n, j // n
        found: Any = None
        for k, (p, a, b) in enumerate(digits):
            others = [verbs.equal(c, d) for m, (_, c, d) in enumerate(digits) if m != k]
            term = verbs.where(functools.reduce(verbs.logical_and, others), p[a, b], self.dtype.type(0))
            found = term if found is None else verbs.add(found, term)
        return found

    def _pattern(self) -> np.ndarray:
        rows = self.rows
        apart = [np.eye(n, dtype=bool) for n in rows]
        terms = [
            functools.reduce(np.kron, [mask_of(p) if m == k else apart[m] for m in range(len(rows))])
            for k, p in enumerate(self._parts)
        ]
        return functools.reduce(np.logical_or, terms)

    def _diagonal(self, offset: int) -> Any:
        return super()._diagonal(offset) if offset else combined(verbs.add, [band(p) for p in self._parts])

    def _times(self, other: Any) -> Any:
        return self._summed(other, turned=False)

    def _rtimes(self, other: Any) -> Any:
        return self._summed(other, turned=True)

    def _summed(self, other: Any, turned: bool) -> Any:
        join_families("matmul", (self, other))
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        axis = other.ndim - 1 if turned else max(0, other.ndim - 2)
        x = verbs.reshape(other, (*other.shape[:axis], *self.rows, *other.shape[axis + 1 :]))
        parts = [p.T for p in self._parts] if turned else self._parts
        total = functools.reduce(verbs.add, [multiplied(p, x, axis + k) for k, p in enumerate(parts)])
        out = standing_alone(verbs.reshape(total, other.shape))
        return verbs.astype(out, np.result_type(self.dtype, other.dtype), copy=False)

    def _mapped(self, op: Op, operands: tuple[Any, ...]) -> Any:
        name, others = op.name, [x for x in operands if x is not self]
        if name == "negative" or (
            len(others) == 1
            and is_number(others[0])
            and (name == "multiply" or (name == "divide" and operands[0] is self))
        ):
            values = [None if x is self else value_of(x) for x in operands]
            return self._made(*[build(op, tuple(p if v is None else v for v in values)) for p in self._parts])
        if name not in ("add", "subtract"):
            return NotImplemented
        first, second = operands
        if isinstance(first, KroneckerSum) and isinstance(second, KroneckerSum) and first.rows == second.rows:
            return self._made(*[build(op, pair) for pair in zip(first.parts, second.parts, strict=True)])
        return self._shifted(op, first, second)

    def _shifted(self, op: Op, first: Any, second: Any) -> Any:
        """The sum with a multiple of the identity, which goes to one matrix."""
        other = second if first is self else first
        if not isinstance(other, Diagonal) or not isinstance(other.parts[0], Fill):
            return NotImplemented
        if op.name == "subtract" and second is self:
            return NotImplemented
        k = min(range(len(self._parts)), key=lambda k: self._parts[k].size)
        values = other.parts[0]
        shift = Diagonal(values[: self._parts[k].shape[0]])
        parts = list(self._parts)
        parts[k] = build(op, (parts[k], shift) if first is self else (shift, parts[k]))
        return self._made(*parts)

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}", "of orders " + " ⊕ ".join(map(str, self.rows))]


@explained
def kronecker_sum(*matrices: Any) -> AbstractArray:
    """The Kronecker sum of square matrices as a `KroneckerSum`, or as what it is more simply.

    Parameters
    ----------
    *matrices : square matrices
        The terms, from left to right.

    Returns
    -------
    mb.KroneckerSum
        It refers to the terms and copies nothing. A diagonal matrix of Identities, and of one matrix the
        matrix itself.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> len(mb.kronecker_sum(A, mb.kronecker_sum(A, A)).parts), mb.kronecker_sum(A) is A
    (3, True)
    >>> type(mb.kronecker_sum(mb.Identity(2), mb.Identity(3))).__name__
    'Diagonal[Fill[HostArray[float64, 1]]]'
    """
    if not matrices:
        raise ValueError("kronecker_sum takes at least one square matrix: mb.kronecker_sum(A, B).")
    if len(matrices) == 1:
        made = as_array(matrices[0])
        square(made, "kronecker_sum")
        return made
    made = KroneckerSum(*matrices)
    if all(isinstance(p, Identity) for p in made.parts):
        return Identity(made.shape[0], dtype=made.dtype, device=made.family) * len(made.parts)
    return made


# Reductions


@verbs.reduce_.method
def _(x: KroneckerSum, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if reduction.name != "sum" or not axes or (dtype is not None and not np.can_cast(x.dtype, dtype)):
        return verbs.reduce_(made_dense(x), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    if dtype is not None:
        x = x._made(*[verbs.astype(p, dtype, copy=False) for p in x.parts])
    found = [verbs.reduce_(p, reduction, axis=axes, dtype=p.dtype) for p in x.parts]
    if len(axes) == 1:
        out = combined(verbs.add, found)
    else:
        times = [x.shape[0] // p.shape[0] if x.shape[0] else 0 for p in x.parts]
        out = functools.reduce(verbs.add, [verbs.multiply(s, n) for s, n in zip(found, times, strict=True)])
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else out
