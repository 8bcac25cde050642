"""Toeplitz and circulant matrices: an entry depends on how far it is from the main diagonal.

What is stored is one number a diagonal. Products with them are convolutions: Fourier transforms, from
some hundred rows on, so n log n steps and not n².

>>> import mirabelle as mb
>>> T = mb.Toeplitz([1.0, 2.0, 3.0], [1.0, 7.0, 8.0])      # first column, first row
>>> T
Toeplitz[HostArray[float64, 1]](
[[1., 7., 8.],
 [2., 1., 7.],
 [3., 2., 1.]])
>>> print(T @ mb.HostArray([1.0, 0.0, 1.0]))
[9. 9. 4.]
>>> C = mb.Circulant([1.0, 2.0, 4.0])                      # its first column
>>> type(C @ C + 2 * mb.linalg.inv(C)).__name__, type(C + T).__name__
('Circulant[HostArray[float64, 1]]', 'Toeplitz[HostArray[float64, 1]]')

The errors of Fourier transforms are small beside the largest entries of a result, not beside each:
products of integers, and small ones, are computed directly.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions.manipulation import concat, flip
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.parts import sliding_window_view
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Banded
from mirabelle.arraytypes.structured.base import Implicit, Structured, indices, zeros, zeros_for
from mirabelle.arraytypes.structured.fallback import normal_indices
from mirabelle.arraytypes.structured.implicit import Fill, filled
from mirabelle.dispatch import verbs


class ByDiagonals(Structured):
    """A matrix with equal entries along each diagonal."""

    __module__ = "mirabelle"
    __slots__ = ()
    fuses = True
    compressed = True
    entrywise = True
    linear = 0

    @property
    def layout(self) -> Any:
        return generic_class(type(self)), self._shape

    @property
    def diagonals(self) -> Any:
        """The entry of each diagonal, from the upper right corner of the matrix to the lower left one."""
        raise NotImplementedError

    def _at(self, offset: int) -> Any:
        """The entry of the diagonal `offset` above the main one, as an array of one element."""
        at = self._shape[1] - 1 - offset
        return self.diagonals[at : at + 1]

    def _dense(self) -> Any:
        if not self.size:
            return zeros(self.family, self._shape, self.dtype)
        # Row i is read backwards: its window into the diagonals starts at i.
        return sliding_window_view(self.diagonals, self._shape[1])[:, ::-1]

    def _entries(self, i: Any, j: Any) -> Any:
        return self.diagonals[i - j + (self._shape[1] - 1)]

    def _diagonal(self, offset: int) -> Any:
        rows, columns = self._shape
        n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        if not n:
            return zeros(self.family, (0,), self.dtype)
        return filled(self.family, (n,), verbs.reshape(self._at(offset), ()))

    def _index(self, index: tuple[Any, ...]) -> Any:
        rows, columns = self._shape
        if len(index) == 2 and all(_is_integer(i) for i in index):
            i, j = normal_indices(self, index)
            return self.diagonals[i - j + columns - 1]
        if len(index) in (1, 2) and all(isinstance(i, slice) for i in index):
            first, second = (*index, slice(None))[:2]
            down, along = range(rows)[first], range(columns)[second]
            if down == range(rows) and along == range(columns):
                return self
            if down and along and down.step == along.step:
                return self._block(down, along)
        return verbs.getitem(self._dense(), index)

    def _block(self, down: range, along: range) -> Any:
        """Equally spaced rows and columns are Toeplitz again."""
        step = down.step
        first, last = (i - j + self._shape[1] - 1 for i, j in ((down[0], along[-1]), (down[-1], along[0])))
        stop = last + (1 if step > 0 else -1)
        return _toeplitz(self.diagonals[first : stop if stop >= 0 else None : step], len(down), len(along))

    def _restrict(self, x: Any) -> Any:
        """Its diagonals, if those of `x` are of one value too."""
        if x.shape != self._shape:
            return NotImplemented
        if isinstance(x, ByDiagonals):
            return (x.diagonals,)
        if isinstance(x, Banded) and all(isinstance(p, Fill) for p in x.parts):
            made = zeros_for(x.parts, (2 * x.order - 1 if x.order else 0,), x.dtype)
            for k, part in zip(x.offsets, x.parts, strict=True):
                if part.size:
                    at = x.order - 1 - k
                    verbs.assign(made[at : at + 1], part.value)  # type: ignore[attr-defined]
            return (made,)
        return NotImplemented

    # Products

    def _times(self, other: Any) -> Any:
        return self._product(other, left=True)

    def _rtimes(self, other: Any) -> Any:
        return self._product(other, left=False)

    def _product(self, other: Any, left: bool) -> Any:
        join_families("matmul", (self, other))
        operand = dense_factor(other)
        if operand is NotImplemented:
            return NotImplemented
        return library.call("toeplitz_product", self.diagonals, operand, shape=self._shape, left=left)


def dense_factor(x: Any) -> Any:
    """The other factor of a product as data; NotImplemented for one that knows a shorter way itself."""
    if isinstance(x, (Implicit, Banded)):
        return NotImplemented
    if isinstance(x, Structured):
        return verbs.dense(x) if x.fuses else NotImplemented
    return x


def _is_integer(i: Any) -> bool:
    return isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_))


class Toeplitz(ByDiagonals):
    """A matrix of equal entries along each diagonal, by its first column and first row.

    The first element of the row is not read. Without a row, the matrix is symmetric (Hermitian, for
    complex numbers): the row is the conjugate of the column.

    Parameters
    ----------
    column : array
        The first column.
    row : array or None
        The first row; None is the conjugate of the column.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.Toeplitz([1, 2, 3]))
    [[1 2 3]
     [2 1 2]
     [3 2 1]]
    >>> print(mb.Toeplitz([1, 2], [0, 5, 6]).T[1:])
    [[5 1]
     [6 5]]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    def __new__(cls, column: Any, row: Any = None) -> Self:
        name = generic_class(cls).__name__
        column, *rest = _placed(cls, (column,) if row is None else (column, row))
        row = rest[0] if rest else verbs.conj(column)
        for what, x in (("column", column), ("row", row)):
            if x.ndim != 1:
                raise ValueError(
                    f"{name} takes its first column and its first row, which are vectors; this {what} has "
                    f"shape {x.shape}. Those of a matrix A are A[:, 0] and A[0]."
                )
        if not column.size or not row.size:
            empty = zeros(column.family if isinstance(column, Structured) else generic_class(type(column)),
                          (0,), np.result_type(column.dtype, row.dtype))  # fmt: skip
            return cls._of((empty,), (column.size, row.size))
        return _toeplitz(concat([flip(row[1:]), column]), column.shape[0], row.shape[0])

    @property
    def diagonals(self) -> AbstractArray:
        return self._parts[0]

    def _transposed(self) -> Any:
        return self._of((self._parts[0][::-1],), self._shape[::-1])


def _placed(cls: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts as arrays of one place, of the type that the parameter names."""
    if cls.parameters:
        wanted = cls.parameters[0]
        parts = tuple(p if isinstance(p, wanted) else wanted(p) for p in parts)
    return generic_class(cls)._checked(parts)  # type: ignore[no-any-return]


def _toeplitz(diagonals: Any, rows: int, columns: int) -> Any:
    return Toeplitz._of((diagonals,), (rows, columns))


class Circulant(ByDiagonals):
    """A square matrix whose columns are the first one turned around: its part is the first column.

    Products, sums, powers and inverses of circulant matrices are circulant: everything is a
    Fourier transform, and `mb.linalg.eigvals` is `mb.fft.fft` of the column.

    Parameters
    ----------
    column : array
        The first column.

    Examples
    --------
    >>> import mirabelle as mb
    >>> C = mb.Circulant(mb.HostArray([1, 2, 3]))
    >>> print(C, C @ C)
    [[1 3 2]
     [2 1 3]
     [3 2 1]] [[13 10 13]
     [13 13 10]
     [10 13 13]]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    def __new__(cls, column: Any) -> Self:
        (column,) = cls._checked((column,))
        if column.ndim != 1:
            raise ValueError(
                f"Circulant takes its first column, which is a vector; this array has shape {column.shape}. "
                "That of a matrix A is A[:, 0]."
            )
        return _circulant(column)

    @property
    def diagonals(self) -> AbstractArray:
        column = self._parts[0]
        return concat([column[1:], column]) if column.size else column

    @property
    def order(self) -> int:
        return self._shape[0]

    def _at(self, offset: int) -> Any:
        at = -offset % self.order
        return self._parts[0][at : at + 1]

    def _entries(self, i: Any, j: Any) -> Any:
        return self._parts[0][
            verbs.remainder(i - j, self.order) if not _is_integer(i) else (i - j) % self.order
        ]

    def _transposed(self) -> Any:
        column = self._parts[0]
        return _circulant(_turned(column)) if column.size > 2 else self

    def _restrict(self, x: Any) -> Any:
        if isinstance(x, Circulant) and x.shape == self._shape:
            return x.parts
        if isinstance(x, Banded) and x.offsets == (0,) and isinstance(x.parts[0], Fill) and self.order:
            made = zeros_for(x.parts, (x.order,), x.dtype)
            verbs.assign(made[:1], x.parts[0].value)
            return (made,)
        return NotImplemented

    def _product(self, other: Any, left: bool) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Circulant):
            return _circulant(library.call("circulant_product", self._parts[0], other.parts[0], left=left))
        operand = dense_factor(other)
        if operand is NotImplemented:
            return NotImplemented
        return library.call("circulant_product", self._parts[0], operand, left=left)


def _circulant(column: Any) -> Any:
    return Circulant._of((column,), (column.shape[0],) * 2)


def _turned(column: Any) -> Any:
    """The first row of a circulant matrix from its first column, or the other way round."""
    return concat([column[:1], flip(column[1:])])


@verbs.dense.method
def _(x: ByDiagonals) -> Any:
    return verbs.copy(x._dense())


# Reductions


@verbs.reduce_.method
def _(x: ByDiagonals, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if x.size and len(axes) == 2 and reduction.name in _OVERALL:
        found = _overall(x if dtype is None else verbs.astype(x, dtype, copy=False), reduction)
        return verbs.reshape(found, (1, 1)) if keepdims else found
    return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)


_OVERALL = ("sum", "min", "max", "any", "all")


def _overall(x: Any, reduction: Any) -> Any:
    """One number for all entries: each diagonal counts as often as it is long."""
    if isinstance(x, Circulant):
        found = verbs.reduce_(x.parts[0], reduction)
        return verbs.multiply(found, x.order) if reduction.name == "sum" else found
    if reduction.name != "sum":
        return verbs.reduce_(x.diagonals, reduction)
    rows, columns = x.shape
    k = indices(x.family, rows + columns - 1)
    length = verbs.minimum(verbs.minimum(k + 1, rows + columns - 1 - k), min(rows, columns))
    diagonals = x.diagonals
    total = verbs.reduce_(diagonals[:0], reduction).dtype  # small integers are added up in int64
    lengths = verbs.astype(length, total if total.kind != "b" else np.int64)
    return verbs.sum(verbs.multiply(verbs.astype(diagonals, total), lengths))


def is_hermitian(x: Any) -> bool:
    """Is a circulant matrix its own adjoint?"""
    column = x.parts[0]
    return bool(verbs.all(verbs.equal(column, verbs.conj(_turned(column))))) if column.size else True


def as_circulant(column: AbstractArray) -> Any:
    """The circulant matrix of a first column."""
    return _circulant(column)
