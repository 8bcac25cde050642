"""Symmetric and Hermitian matrices: one half of a matrix that is stored whole, and its mirror image.

>>> import mirabelle as mb
>>> S = mb.Symmetric(mb.HostArray([[2.0, 1.0], [99.0, 3.0]]))
>>> print(S)
[[2. 1.]
 [1. 3.]]
>>> S.T is S, type(mb.exp(S) + S).__name__
(True, 'Symmetric[HostArray[float64, 2]]')
>>> H = mb.Hermitian(mb.HostArray([[2.0, 1j], [0.0, 3.0]]))
>>> print(H @ mb.HostArray([1.0, 1.0]))
[2.+1.j 3.-1.j]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured.banded import band
from mirabelle.arraytypes.structured.base import Structured, open_grid, square
from mirabelle.arraytypes.structured.fallback import block_of, normal_indices
from mirabelle.dispatch import verbs
from mirabelle.dispatch.styles import HERMITIAN, SYMMETRIC, Structure

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class Mirrored(Structured):
    """A square matrix whose half above ("U") or below ("L") the diagonal is that of its part."""

    __module__ = "mirabelle"
    __slots__ = ()
    fuses = True
    entrywise = True
    hermitian = False

    def __new__(cls, matrix: ArrayLike, uplo: str = "U") -> AbstractArray:  # type: ignore[misc]
        if uplo not in ("U", "L"):
            raise ValueError(
                f'The half that is stored is the upper ("U") or the lower one ("L"), not {uplo!r}.'
            )
        (x,) = cls._checked((matrix,))
        family, n = generic_class(cls), square(x, generic_class(cls).__name__)
        if family is Hermitian and x.dtype.kind != "c":
            family = Symmetric
        if isinstance(x, Structured):
            same = x.structure.hermitian if family is Hermitian else x.structure.symmetric
            if same:
                return x
        return family._of((x,), (n, n), uplo)

    @property
    def uplo(self) -> str:
        """Which half the part gives: "U" or "L"."""
        return self._how

    @property
    def structure(self) -> Structure:
        return HERMITIAN if self.hermitian else SYMMETRIC

    def _dense(self) -> Any:
        i, j = open_grid(self)
        upper = upper_part(self)
        return self._mirrored(i, j, upper, upper.T)

    def _entries(self, i: Any, j: Any) -> Any:
        low, high = verbs.minimum(i, j), verbs.maximum(i, j)
        if isinstance(i, int):
            low, high = min(i, j), max(i, j)
        entry = self._parts[0][low, high] if self._how == "U" else self._parts[0][high, low]
        if self.hermitian and self._how == "L":
            entry = verbs.conj(entry)
        return self._mirrored(i, j, entry, entry)

    def _mirrored(self, i: Any, j: Any, above: Any, below: Any) -> Any:
        if not self.hermitian:
            return above if below is above else verbs.where(verbs.less_equal(i, j), above, below)
        found = verbs.where(verbs.less(i, j), above, verbs.conj(below))
        return verbs.where(verbs.equal(i, j), verbs.astype(verbs.real(above), self.dtype), found)

    def _cast(self, dtype: np.dtype) -> Any:
        if not self.hermitian or dtype.kind == "c":
            return super()._cast(dtype)
        # Without imaginary parts it is symmetric; those beside the real diagonal do not count.
        part = verbs.astype(upper_part(self, clean=True), dtype)
        return Symmetric._of((part,), self._shape, "U")

    def _transposed(self) -> Any:
        return self._conjugated() if self.hermitian else self

    def _diagonal(self, offset: int) -> Any:
        found = band(upper_part(self), abs(offset))
        if not self.hermitian:
            return found
        if not offset:
            return verbs.astype(verbs.real(found), self.dtype)
        return found if offset > 0 else verbs.conj(found)

    def _index(self, index: tuple[Any, ...]) -> Any:
        if block_of(self, index) is None:
            return NotImplemented
        part = self._parts[0][index]
        return self._of((part,), part.shape, self._how)

    def _write(self, index: Any, value: Any) -> None:
        name = generic_class(type(self)).__name__
        if index is None:
            if isinstance(value, Mirrored) and value.shape == self._shape and value.hermitian == self.hermitian:
                theirs = upper_part(value)
                if self._how == "L":
                    theirs = verbs.conj(theirs.T) if self.hermitian else theirs.T
                verbs.assign(self._parts[0], theirs)
                return
            if isinstance(value, (bool, int, float, np.integer, np.floating)):
                verbs.assign(self._parts[0], value)
                return
            raise ValueError(
                f"Only another {name} can be written to all of this {name}. Make a new array, `S = S + x`, or "
                "write to what it stores: `S.parts[0][...] = v`."
            )
        if len(index) == 2 and all(isinstance(i, (int, np.integer)) for i in index):
            i, j = normal_indices(self, index)
            if (i > j) == (self._how == "U") and i != j:  # the mirror image is what is stored
                i, j = j, i
                value = np.conj(value) if self.hermitian else value
            self._parts[0][i, j] = value
            return
        raise TypeError(
            f"This {name} is written to entry by entry, S[i, j] = v (which writes S[j, i] too), or all of what "
            "it stores: `S.parts[0][...] = v`. For more, make a dense copy: `x = mb.HostArray(x)`."
        )

    def _times(self, other: Any) -> Any:
        return self._product(other, left=True)

    def _rtimes(self, other: Any) -> Any:
        return self._product(other, left=False)

    def _product(self, other: Any, left: bool) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Structured) or other.ndim > 2:
            return NotImplemented
        return library.call(
            "mirrored_product",
            self._parts[0],
            other,
            upper=self._how == "U",
            hermitian=self.hermitian,
            left=left,
        )


class Symmetric(Mirrored):
    """A symmetric matrix, by the upper half of a matrix (or the lower one, `uplo="L"`).

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.
    uplo : str, default 'U'
        Which half is read: "U" or "L".

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dense(mb.Symmetric(mb.HostArray([[1.0, 2.0], [0.0, 3.0]]))))
    [[1. 2.]
     [2. 3.]]
    """

    __module__ = "mirabelle"
    __slots__ = ()


class Hermitian(Mirrored):
    """A Hermitian matrix, by the upper half of a matrix; of a real matrix it is a Symmetric.

    Parameters
    ----------
    matrix : matrix
        The matrix of which a part is taken.
    uplo : str, default 'U'
        Which half is read: "U" or "L".

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dense(mb.Hermitian(mb.HostArray([[1.0, 2.0 + 1j], [0.0, 3.0]]))))
    [[1.+0.j 2.+1.j]
     [2.-1.j 3.+0.j]]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    hermitian = True


def read_half(x: Mirrored) -> Any:
    """A matrix for a routine that reads the stored half; of dual numbers both halves, which change together."""
    return x._dense() if x.carries_derivatives else x.parts[0]


def upper_part(x: Any, clean: bool = False) -> Any:
    """A matrix that equals `x`, which is symmetric or Hermitian, on and above the main diagonal.

    On the diagonal of a Hermitian one its real part counts; `clean` says that it alone is there.
    """
    if not isinstance(x, Mirrored):
        return x._dense() if isinstance(x, Structured) else x
    part = x.parts[0]
    if x.uplo == "L":
        part = verbs.conj(part.T) if x.hermitian else part.T
    if clean and x.hermitian:
        on_diagonal = verbs.equal(*open_grid(x))
        part = verbs.where(on_diagonal, verbs.astype(verbs.real(part), x.dtype), part)
    return part
