"""Triangular matrices: one half of a matrix that is stored whole, the other half zero.

>>> import mirabelle as mb
>>> U = mb.UpperTriangular(mb.HostArray([[1.0, 2.0], [9.0, 4.0]]))
>>> U
UpperTriangular[HostArray[float64, 2]](
[[1., 2.],
 [ ., 4.]])
>>> print(mb.linalg.solve(U, mb.HostArray([5.0, 4.0])), mb.linalg.det(U))
[3. 1.] 4.0
>>> type(U.T).__name__, type(U @ U).__name__, type(U * U.T).__name__
('LowerTriangular[Transpose[HostArray[float64, 2]]]', 'UpperTriangular[HostArray[float64, 2]]', \
'Diagonal[HostArray[float64, 1]]')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured.banded import Banded, Diagonal, band, from_bands
from mirabelle.arraytypes.structured.base import Structured, open_grid, square
from mirabelle.arraytypes.structured.fallback import block_of, normal_indices
from mirabelle.dispatch import verbs
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.styles import LOWER, UPPER, Structure

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class Triangular(Structured):
    """A square matrix with zeros on one side of the diagonal; its part is a matrix that holds the rest.

    >>> import mirabelle as mb
    >>> issubclass(mb.LowerTriangular, mb.types.Triangular)
    True
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    fuses = True
    entrywise = True
    upper: bool
    # Are the entries of the main diagonal ones, whatever the part holds there?
    unit = False

    def __new__(cls, matrix: ArrayLike) -> AbstractArray:  # type: ignore[misc]
        (x,) = cls._checked((matrix,))
        n = square(x, generic_class(cls).__name__)
        made = _simplified(generic_class(cls), x)
        return cls._of((x,), (n, n)) if made is None else made

    @property
    def structure(self) -> Structure:
        return UPPER if self.upper else LOWER

    def _dense(self) -> Any:
        i, j = open_grid(self)
        return self._masked(i, j, self._parts[0])

    def _entries(self, i: Any, j: Any) -> Any:
        return self._masked(i, j, self._parts[0][i, j])

    def _masked(self, i: Any, j: Any, entries: Any) -> Any:
        inside = verbs.greater_equal(j, i) if self.upper else verbs.greater_equal(i, j)
        found = verbs.where(inside, entries, self.dtype.type(0))
        return verbs.where(verbs.equal(i, j), self.dtype.type(1), found) if self.unit else found

    def _transposed(self) -> Any:
        return _type_of(not self.upper, self.unit)._of((self._parts[0].T,), self._shape)

    def _diagonal(self, offset: int) -> Any:
        from mirabelle.arraytypes.structured.implicit import Ones, Zeros

        n = max(0, self._shape[0] - abs(offset))
        if offset and (offset > 0) != self.upper:
            return Zeros(n, dtype=self.dtype, device=self.family)
        if not offset and self.unit:
            return Ones(n, dtype=self.dtype, device=self.family)
        return band(self._parts[0], offset)

    def _index(self, index: tuple[Any, ...]) -> Any:
        if block_of(self, index) is None:
            return NotImplemented
        part = self._parts[0][index]
        return self._of((part,), part.shape)

    def _stores(self, i: int, j: int) -> bool:
        return (j > i if self.upper else i > j) or (i == j and not self.unit)

    def _write(self, index: Any, value: Any) -> None:
        name = generic_class(type(self)).__name__
        if index is None:
            if isinstance(value, Structured) and value.shape == self._shape and not self.unit:
                joined = value.structure | self.structure
                if joined == self.structure:
                    verbs.assign(self._parts[0], filled_triangle(value, type(self)))
                    return
            raise ValueError(
                f"Only a matrix of its structure can be written to all of this {name}. Make a new array, "
                "`U = U + x`, or write to what it stores: `U.parts[0][...] = v`."
            )
        if len(index) == 2 and all(isinstance(i, (int, np.integer)) for i in index):
            i, j = normal_indices(self, index)
            if self._stores(i, j):
                self._parts[0][i, j] = value
                return
            scalar_access("Writing", self.place)
            known = 1 if i == j else 0
            if value != known:
                raise ValueError(
                    f"Entry ({i}, {j}) of this {name} is {known} by its structure and cannot become {value!r}. "
                    "Write to a dense copy: `x = mb.HostArray(x)`."
                )
            return
        raise TypeError(
            f"This {name} is written to entry by entry, U[i, j] = v, or all of what it stores: "
            "`U.parts[0][...] = v`. For more, make a dense copy: `x = mb.HostArray(x)`."
        )

    def _times(self, other: Any) -> Any:
        return self._product(other, left=True)

    def _rtimes(self, other: Any) -> Any:
        return self._product(other, left=False)

    def _product(self, other: Any, left: bool) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Diagonal):  # of this side too
            scale = other.parts[0] if left else other.parts[0][:, None]
            return _type_of(self.upper, False)(verbs.multiply(filled_triangle(self, type(self)), scale))
        if other.ndim > 2:
            return NotImplemented
        same = isinstance(other, Triangular) and other.upper == self.upper
        operand = verbs.dense(other) if isinstance(other, Structured) else other
        found = library.call(
            "triangular_product", self._parts[0], operand, upper=self.upper, unit=self.unit, left=left
        )
        return _type_of(self.upper, self.unit and other.unit)(found) if same else found


class UpperTriangular(Triangular):
    """What is on and above the main diagonal of a matrix.

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.UpperTriangular([[1, 2], [3, 4]]))
    [[1 2]
     [. 4]]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    upper = True


class LowerTriangular(Triangular):
    """What is on and below the main diagonal of a matrix.

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.

    Examples
    --------
    >>> import mirabelle as mb
    >>> L = mb.LowerTriangular(mb.HostArray([[2.0, 9.0], [1.0, 4.0]]))
    >>> print(mb.linalg.solve(L, mb.HostArray([2.0, 5.0])))
    [1. 1.]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    upper = False


class UnitUpperTriangular(Triangular):
    """Ones on the main diagonal, and what is above it in a matrix.

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dense(mb.UnitUpperTriangular(mb.HostArray([[2.0, 9.0], [3.0, 4.0]]))))
    [[1. 9.]
     [0. 1.]]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    upper, unit = True, True


class UnitLowerTriangular(Triangular):
    """Ones on the main diagonal, and what is below it in a matrix (the L of an LU factorisation).

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dense(mb.UnitLowerTriangular(mb.HostArray([[2.0, 9.0], [3.0, 4.0]]))))
    [[1. 0.]
     [3. 1.]]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    upper, unit = False, True


def _type_of(upper: bool, unit: bool) -> Any:
    if upper:
        return UnitUpperTriangular if unit else UpperTriangular
    return UnitLowerTriangular if unit else LowerTriangular


def _simplified(cls: Any, x: Any) -> Any:
    """What a triangle of `x` is more simply; None where it is not."""
    if not isinstance(x, Structured):
        return None
    if isinstance(x, Triangular) and x.upper == cls.upper:
        return cls._of(x.parts, x.shape) if cls.unit else x
    if cls.unit:
        return None
    if isinstance(x, Triangular):
        return Diagonal(band(x))
    if isinstance(x, Banded):
        bands = dict(zip(x.offsets, x.parts, strict=True))
        kept = {k: p for k, p in bands.items() if (k >= 0 if cls.upper else k <= 0)}
        return x if kept == bands else from_bands(kept)
    return None


def filled_triangle(x: Any, cls: Any) -> Any:
    """A matrix that equals `x` on the triangle of a type (and holds anything elsewhere)."""
    if isinstance(x, Triangular) and x.upper == cls.upper and not x.unit:
        return x.parts[0]
    return x._dense() if isinstance(x, Structured) else x
