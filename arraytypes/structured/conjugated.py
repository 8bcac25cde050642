"""Lazy conjugates and adjoints: `mb.adjoint(A)` is A's conjugate transpose, and nothing is copied.

>>> import mirabelle as mb
>>> A = mb.HostArray([[1j, 2.0], [3.0, 4.0]])
>>> B = mb.adjoint(A)
>>> type(B).__name__, mb.adjoint(B) is A, type(B.T).__name__
('Adjoint[HostArray[complex128, 2]]', True, 'Conj[HostArray[complex128, 2]]')
>>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
>>> type(mb.adjoint(x)).__name__
'Transpose[HostArray[float64, 2]]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class Conj(Structured):
    """The complex conjugate of an array, which is its part; written to, it writes to the part.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.types.Conj(mb.HostArray([1.0 + 2j])))
    [1.-2.j]
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    fuses = True
    entrywise = False

    def __new__(cls, x: ArrayLike) -> AbstractArray:  # type: ignore[misc]
        (x,) = cls._checked((x,))
        return conjugate(x)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        if isinstance(getattr(parameters[0], "ndim", None), int):
            attributes["ndim"] = parameters[0].ndim
        return attributes

    def _shown(self, x: Any) -> Any:
        """What an array in the place of the part shows."""
        return x

    def _dense(self) -> Any:
        return verbs.conj(self._shown(self._parts[0]))

    def _transposed(self) -> Any:
        return adjoint(self._parts[0])

    def _conjugated(self) -> Any:
        return self._shown(self._parts[0])

    def _diagonal(self, offset: int) -> Any:
        return conjugate(diagonal_view(self._shown(self._parts[0]), offset))

    def _index(self, index: tuple[Any, ...]) -> Any:
        found = verbs.getitem(self._shown(self._parts[0]), index)
        return conjugate(found) if found.ndim else verbs.conj(found)

    def _write(self, index: Any, value: Any) -> None:
        if not isinstance(value, (bool, int, float)):
            value = value.conjugate() if isinstance(value, complex) else verbs.conj(value)
        if index is None:
            verbs.assign(self._shown(self._parts[0]), value)
        else:
            verbs.setitem(self._shown(self._parts[0]), index, value)

    def _times(self, other: Any) -> Any:
        if isinstance(other, Structured) and not isinstance(other, Conj):
            return NotImplemented
        return _product(self, other)

    def _rtimes(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Structured) else _product(other, self)


class Adjoint(Conj):
    """The conjugate transpose of a matrix, which is its part.

    Parameters
    ----------
    x : matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[1.0 + 1j, 2.0]])
    >>> print(type(mb.adjoint(A)).__name__, mb.adjoint(A)[0, 0])
    Adjoint[HostArray[complex128, 2]] (1-1j)
    """

    __module__ = "mirabelle.types"
    __slots__ = ()

    def __new__(cls, x: ArrayLike) -> AbstractArray:  # type: ignore[misc]
        (x,) = cls._checked((x,))
        return adjoint(x)

    def _shown(self, x: Any) -> Any:
        return x.T

    def _transposed(self) -> Any:
        return conjugate(self._parts[0])


def conjugate(x: Any) -> Any:
    """The lazy conjugate of an array: itself if it is real, the part of a conjugate."""
    if x.dtype.kind != "c":
        return x
    if isinstance(x, Structured):
        return x._conjugated()
    return Conj._of((x,), x.shape)


@array_function
def adjoint(x: Any, /) -> Any:
    """The conjugate transpose: a view, like x.T. `mb.adjoint(mb.adjoint(A)) is A`.

    Parameters
    ----------
    x : matrix
        The matrix.

    Returns
    -------
    array
        Of shape (..., n, m), and of the dtype of `x`. What is written to it is written to `x`, and the
        other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.adjoint(mb.HostArray([[1 + 1j, 2 + 3j]])) @ mb.HostArray([[1.0]]))
    [[1.-1.j]
     [2.-3.j]]
    """
    if x.ndim < 2:
        raise ValueError(f"adjoint takes a matrix or a stack of them; this array has {x.ndim} dimension(s).")
    if x.dtype.kind != "c" or x.ndim > 2:
        return conjugate(x.mT)
    return Adjoint._of((x,), x.shape[::-1])


@adjoint.method
def _(x: Structured) -> Any:
    return conjugate(x.mT)


@adjoint.method
def _(x: Adjoint) -> Any:
    return x.parts[0]


def _product(x1: Any, x2: Any) -> Any:
    """A product of matrices with the conjugation told to BLAS."""
    if max(x1.ndim, x2.ndim) > 2:
        return NotImplemented
    kinds, parts = zip(*(_told(x) for x in (x1, x2)), strict=True)
    return library.call("adjoint_product", *parts, how=kinds)


def _told(x: AbstractArray) -> tuple[str, Any]:
    """("C", A) for the adjoint of A, ("J", A) for its conjugate, ("N", A) for itself."""
    if isinstance(x, Conj):
        return ("C" if isinstance(x, Adjoint) else "J"), x.parts[0]
    return "N", x
