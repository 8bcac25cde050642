"""Kronecker products that are never multiplied out: A ⊗ B ⊗ ... holds its factors.

Entry ((i, k), (j, l)) of A ⊗ B is A[i, j] * B[k, l]. A product with a vector of N = n m elements
reads it as an n x m matrix X and is A X Bᵀ: two matrix products, nothing of size N x N.

>>> import mirabelle as mb
>>> K = mb.kronecker(mb.HostArray([[1.0, 2.0], [0.0, 1.0]]), mb.Identity(2))
>>> type(K).__name__
'Kronecker[HostArray[float64, 2], Identity[Ones[HostArray[float64, 1]]]]'
>>> print(K @ mb.HostArray([1.0, 2.0, 3.0, 4.0]))
[ 7. 10.  3.  4.]
>>> A = mb.random.default_rng(0).random((1000, 1000))
>>> float(mb.norm(mb.kronecker(A, A))) == float(mb.norm(A)) ** 2       # of a million rows
True
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import build, join_families
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.products import kron
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured.banded import Banded, Diagonal, Identity, band
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.broadcasting import is_number, value_of
from mirabelle.arraytypes.structured.display import stored_mask
from mirabelle.arraytypes.structured.implicit import Fill, Zeros
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.styles import DENSE, DIAGONAL, Structure

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

# Functions with f(a b) = f(a) f(b).
_MULTIPLICATIVE = {"abs", "square", "sign", "positive"}
# Fewer columns than this behind an axis, and they are brought before it: one large product.
_FEW = 32


class Factored(Structured):
    """A matrix made of factors, whose rows and columns are counted factor by factor, the last fastest."""

    __module__ = "mirabelle"
    __slots__ = ()

    def __new__(cls, *factors: ArrayLike) -> Self:
        name = generic_class(cls).__name__
        if len(factors) < 2:
            raise TypeError(
                f"A {name} is made of two or more matrices: mb.{name}(A, B). {len(factors)} came; of one, "
                "the matrix itself is the product."
            )
        parts = cls._checked(factors)
        for p in parts:
            if p.ndim != 2:
                raise ValueError(
                    f"A {name} is made of matrices; a factor has shape {p.shape}. Make a vector one column "
                    "with x[:, None]; products of vectors are mb.kron(x, y)."
                )
        return cls._made(*flattened(generic_class(cls), parts))

    @property
    def rows(self) -> tuple[int, ...]:
        """How many rows each factor has."""
        return tuple(p.shape[0] for p in self._parts)

    @property
    def columns(self) -> tuple[int, ...]:
        """How many columns each factor has."""
        return tuple(p.shape[1] for p in self._parts)

    @property
    def all_square(self) -> bool:
        """Is every factor square?"""
        return self.rows == self.columns

    def _transposed(self) -> Any:
        return self._made(*[p.T for p in self._parts])

    def _facts(self) -> list[str]:
        shapes = " ⊗ ".join(f"{m}x{n}" for m, n in zip(self.rows, self.columns, strict=True))
        return [f"shape={self._shape}", f"factors {shapes}"]


class Kronecker(Factored):
    """The Kronecker product of two or more matrices, of any types and shapes, held by its factors.

    Products, solves, norms, decompositions, sums and scalar multiples work on the factors.

    Parameters
    ----------
    *factors : matrices
        The factors, from left to right.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A, B = mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), mb.HostArray([[2.0, 0.0], [0.0, 5.0]])
    >>> K = mb.Kronecker(A, B)
    >>> print(f"{float(mb.linalg.det(K)):.6g}", mb.sum(K))
    400 70.0
    >>> type(mb.linalg.inv(K)).__name__
    'Kronecker[HostArray[float64, 2], HostArray[float64, 2]]'
    """

    __module__ = "mirabelle"
    __slots__ = ()

    @classmethod
    def _shape_of(cls, *parts: Any) -> tuple[int, ...]:
        return math.prod(p.shape[0] for p in parts), math.prod(p.shape[1] for p in parts)

    @property
    def linear(self) -> int:  # type: ignore[override]
        """A number times all goes to the smallest factor."""
        return min(range(len(self._parts)), key=lambda k: self._parts[k].size)

    @property
    def structure(self) -> Structure:
        known = [p.structure if isinstance(p, Structured) else DENSE for p in self._parts]
        diagonal = self.all_square and all(s.lower == s.upper == 0 for s in known)
        return DIAGONAL if diagonal else DENSE

    def _dense(self) -> Any:
        return functools.reduce(kron, [verbs.dense(p) for p in self._parts])

    def _entries(self, i: Any, j: Any) -> Any:
        found: Any = None
        for p in reversed(self._parts):
            m, n = p.shape
            entry = p[i % m, j % n]
            found = entry if found is None else verbs.multiply(entry, found)
            i, j = i // m, j // n
        return found

    def _pattern(self) -> np.ndarray:
        return functools.reduce(np.kron, [mask_of(p) for p in self._parts])

    def _diagonal(self, offset: int) -> Any:
        if offset or not self.all_square:
            return super()._diagonal(offset)
        return combined(verbs.multiply, [band(p) for p in self._parts])

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Kronecker) and self.columns == other.rows:
            return kronecker(*[verbs.matmul(p, q) for p, q in zip(self._parts, other.parts, strict=True)])
        if is_scaling(other):
            return verbs.multiply(self, other.parts[0].value)
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        return self._along(multiplied, other, max(0, other.ndim - 2), self._parts, self.columns)

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if is_scaling(other):
            return verbs.multiply(self, other.parts[0].value)
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        return self._along(multiplied, other, other.ndim - 1, [p.T for p in self._parts], self.rows)

    def _along(self, rule: Any, x: Any, axis: int, parts: Any, sizes: tuple[int, ...]) -> Any:
        """`rule` of each factor along its part of an axis, in the order that does the least work."""
        dtype = np.result_type(self.dtype, x.dtype)
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        x = verbs.reshape(x, (*before, *sizes, *after))
        for k in sorted(range(len(parts)), key=lambda k: _growth(*parts[k].shape)):
            x = rule(parts[k], x, axis + k)
        size = math.prod(x.shape[axis : axis + len(parts)])
        out = standing_alone(verbs.reshape(x, (*before, size, *after)))
        return verbs.astype(out, np.result_type(dtype, out.dtype), copy=False)

    def _mapped(self, op: Op, operands: tuple[Any, ...]) -> Any:
        name = op.name
        if len(operands) == 1:
            if name in _MULTIPLICATIVE:
                return self._made(*[build(op, (p,)) for p in self._parts])
            if name == "reciprocal" and self._all_stored():
                parts = [verbs.astype(p, self.dtype, copy=False) for p in self._parts]
                return self._made(*[build(op, (p,)) for p in parts])
            return NotImplemented
        if len(operands) != 2:
            return NotImplemented
        first, second = operands
        if is_number(second):
            number = value_of(second)
            if name == "pow" and self._can_be_raised(number):
                return self._made(*[build(op, (p, number)) for p in self._parts])
            if name == "not_equal" and isinstance(number, (int, float)) and number == 0:
                return self._made(*[build(op, (p, number)) for p in self._parts])
            return NotImplemented
        if not (isinstance(first, Kronecker) and isinstance(second, Kronecker)):
            return NotImplemented
        if (first.rows, first.columns) != (second.rows, second.columns):
            return NotImplemented
        pairs = list(zip(first.parts, second.parts, strict=True))
        if name == "multiply" or (name == "divide" and second._all_stored()):
            return self._made(*[build(op, pair) for pair in pairs])
        if name in ("add", "subtract"):
            return _added(op, first, second)
        return NotImplemented

    def _all_stored(self) -> bool:
        """Has no factor zeros by its structure, which one must not divide by?"""
        return not any(isinstance(p, Structured) for p in self._parts)

    def _can_be_raised(self, exponent: Any) -> bool:
        """Is the power of a product that of its factors? Of whole numbers, it is."""
        if not isinstance(exponent, (int, float, np.integer, np.floating)) or isinstance(exponent, bool):
            return False
        if not math.isfinite(exponent) or exponent != int(exponent):
            return False
        return bool(exponent > 0) or (bool(exponent < 0) and self._all_stored() and self.dtype.kind in "fc")


def flattened(cls: Any, parts: tuple[Any, ...]) -> list[Any]:
    """The factors, with those of a factor of the same type in its place."""
    return [q for p in parts for q in (p.parts if isinstance(p, cls) else (p,))]


@explained
def kronecker(*factors: Any) -> AbstractArray:
    """The Kronecker product of matrices as a `Kronecker`, or as what it is more simply.

    Factors that are products give their factors; one of Identities is an Identity, one with Zeros is
    Zeros, and that of one matrix is the matrix.

    Parameters
    ----------
    *factors : matrices
        The factors, from left to right.

    Returns
    -------
    mb.Kronecker
        It refers to the factors and copies nothing. An `mb.Identity`, `mb.Zeros` or the matrix itself,
        where it is one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A, I = mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), mb.Identity(2)
    >>> mb.kronecker(I, I)
    Identity[Ones[HostArray[float64, 1]]](
    [[1.,  .,  .,  .],
     [ ., 1.,  .,  .],
     [ .,  ., 1.,  .],
     [ .,  .,  ., 1.]])
    >>> len(mb.kronecker(mb.kronecker(A, A), A).parts), mb.kronecker(A) is A
    (3, True)
    """
    if not factors:
        raise ValueError("kronecker takes at least one matrix: mb.kronecker(A, B).")
    if len(factors) == 1:
        return as_array(factors[0])
    made = Kronecker(*factors)
    parts, family = made.parts, made.family
    if all(isinstance(p, Identity) for p in parts):
        return Identity(made.shape[0], dtype=made.dtype, device=family)
    if any(isinstance(p, Zeros) for p in parts):
        return Zeros(made.shape, dtype=made.dtype, device=family)
    return made


# mb.kron of a structured matrix stays one


def _lazy_kron(a: Any, b: Any) -> Any:
    if a.ndim == 2 and b.ndim == 2:
        return kronecker(a, b)
    return kron(*[verbs.dense(x) for x in (a, b)])


for _pair in ((Structured, AbstractArray), (AbstractArray, Structured), (Structured, Structured)):
    kron.method(_lazy_kron, signature=_pair)


# What rules are made of


def mask_of(p: Any) -> Any:
    """Which entries of a factor may differ from zero."""
    return stored_mask(p) if isinstance(p, Structured) else np.ones(p.shape, bool)


def combined(op: Callable[[Any, Any], Any], vectors: list[Any]) -> Any:
    """op(u[i], v[j], ...) for all i, j, ... as one vector, in one kernel: the Kronecker product, or sum."""
    n = len(vectors)
    spread = [
        verbs.reshape(v, (*(1,) * k, v.shape[0], *(1,) * (n - k - 1))) if n > 1 else v
        for k, v in enumerate(vectors)
    ]
    return standing_alone(verbs.reshape(functools.reduce(op, spread), (-1,)))


def as_right_side(x: Any) -> Any:
    """An operand as a dense one, where that costs no more than it holds; else NotImplemented."""
    if not isinstance(x, Structured):
        return x
    if isinstance(x, Fill):  # one value everywhere knows a shorter way
        return NotImplemented
    if x.fuses or 2 * x.stored_bytes >= x.nbytes:
        return verbs.dense(x)
    return NotImplemented


def is_scaling(x: Any) -> bool:
    """Is it a multiple of the identity matrix?"""
    return isinstance(x, Diagonal) and isinstance(x.parts[0], Fill)


def _growth(m: int, n: int) -> float:
    """Factors in ascending order of this multiply with the least work, however many there are."""
    return 1 / max(n, 1) - 1 / max(m, 1)


def multiplied(p: Any, x: Any, axis: int) -> Any:
    """The matrix `p` times all lines of `x` along an axis."""
    if isinstance(p, Identity):
        return x
    before, n, after = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if before == 1 and after == 1:
        made = verbs.matmul(p, verbs.reshape(x, (n,)))
    elif before == 1:
        made = verbs.matmul(p, verbs.reshape(x, (n, after)))
    elif after == 1:
        made = verbs.matmul(verbs.reshape(x, (before, n)), p.T)
    elif (isinstance(p, Structured) and not isinstance(p, Banded)) or after < _FEW:
        columns = verbs.permute_dims(verbs.reshape(x, (before, n, after)), (0, 2, 1))
        made = verbs.matmul(verbs.reshape(columns, (before * after, n)), p.T)
        made = verbs.permute_dims(verbs.reshape(made, (before, after, p.shape[0])), (0, 2, 1))
    else:
        made = verbs.matmul(p, verbs.reshape(x, (before, n, after)))
    return verbs.reshape(made, (*x.shape[:axis], p.shape[0], *x.shape[axis + 1 :]))


def _added(op: Op, x: Kronecker, y: Kronecker) -> Any:
    """The sum or difference of products that differ in one factor: A ⊗ B + A ⊗ C = A ⊗ (B + C)."""
    i, j = _acts_on(x), _acts_on(y)
    if i is not None and j is not None and i != j:
        return _sum_of_axes(op, x, y, i, j)
    differ = [k for k, (p, q) in enumerate(zip(x.parts, y.parts, strict=True)) if p is not q]
    if len(differ) > 1:
        return NotImplemented
    k = differ[0] if differ else x.linear
    parts = list(x.parts)
    parts[k] = build(op, (x.parts[k], y.parts[k]))
    return x._made(*parts)


def _acts_on(x: Kronecker) -> int | None:
    """The one axis that a product acts on, all its other factors being identities; None if it is not so."""
    others = [k for k, p in enumerate(x.parts) if not isinstance(p, Identity)]
    return others[0] if len(others) == 1 and x.all_square else None


def _sum_of_axes(op: Op, x: Kronecker, y: Kronecker, i: int, j: int) -> Any:
    """A ⊗ I + I ⊗ B = A ⊕ B."""
    from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum

    nothing = [Zeros((n, n), dtype=x.dtype, device=x.family) for n in x.rows]
    parts = [x.parts[k] if k == i else nothing[k] for k in range(len(nothing))]
    parts[j] = build(op, (nothing[j], y.parts[j]))
    return KroneckerSum._made(*parts)
