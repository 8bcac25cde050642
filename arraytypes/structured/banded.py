"""Matrices of a few diagonals: Diagonal, Bidiagonal, Tridiagonal. The parts are the diagonals.

>>> import mirabelle as mb
>>> D = mb.Diagonal([1.0, 2.0, 3.0])
>>> T = mb.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0])
>>> D + T
Tridiagonal[HostArray[float64, 1], HostArray[float64, 1], HostArray[float64, 1]](
[[5., 1.,  .],
 [1., 6., 1.],
 [ ., 1., 7.]])
>>> print(T @ mb.HostArray([1.0, 1.0, 1.0]), mb.sum(D))
[5. 6. 5.] 6.0
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.elementwise import copied, join_families, leaf_family
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.structured.base import Implicit, Structured, zeros, zeros_for
from mirabelle.arraytypes.structured.fallback import block_of, normal_indices
from mirabelle.dispatch import verbs
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.styles import Structure

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, Device, DTypeLike


class Banded(Structured):
    """A square matrix of a few diagonals: those `offsets` above the main one.

    Parameters
    ----------
    *parts : arrays
        The diagonals, in the order of their offsets.

    Examples
    --------
    >>> import mirabelle as mb
    >>> isinstance(mb.Tridiagonal([1.0], [2.0, 2.0], [1.0]), mb.Banded)
    True
    """

    __module__ = "mirabelle"
    __slots__ = ()
    entrywise = True

    @property
    def offsets(self) -> tuple[int, ...]:
        """Which diagonal each part is: 0 the main one, 1 that above it, -1 that below."""
        return self._how

    @property
    def order(self) -> int:
        return self._shape[0]

    @property
    def structure(self) -> Structure:
        return Structure(-min(self._how), max(self._how), symmetric=self._how == (0,))

    @property
    def layout(self) -> Hashable:
        return Banded, self._how, self._shape

    @classmethod
    def _checked(cls, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        if cls._diagonals and len(parts) != len(cls._diagonals):
            name = generic_class(cls).__name__
            raise TypeError(f"{name} is made of {len(cls._diagonals)} diagonal(s), and {len(parts)} came.")
        parts = super()._checked(parts)
        for p in parts:
            if p.ndim != 1:
                raise ValueError(
                    f"{generic_class(cls).__name__} takes its diagonals, which are vectors; one has shape "
                    f"{p.shape}. Those of a matrix A are mb.band(A, k): {generic_class(cls).__name__}"
                    f"({', '.join(f'mb.band(A, {k})' for k in cls._diagonals or (0, 1))})."
                )
        dtype = np.result_type(*[p.dtype for p in parts])
        return tuple(verbs.astype(p, dtype, copy=False) for p in parts)

    # The offsets of a type that always has the same.
    _diagonals: tuple[int, ...] = ()

    @classmethod
    def _made(cls, *parts: Any) -> Any:
        if not cls._diagonals:
            raise TypeError(
                f"{generic_class(cls).__name__} does not say which diagonals its parts are. Make a "
                "mb.Diagonal(d), mb.Bidiagonal(d, above) or mb.Tridiagonal(below, d, above); of other "
                "diagonals mb.CSR(A)."
            )
        return from_bands(dict(zip(cls._diagonals, parts, strict=True)), cls)

    def _dense(self) -> Any:
        out = zeros_for(self._parts, self._shape, self.dtype)
        for k, part in zip(self._how, self._parts, strict=True):
            if part.size:
                verbs.assign(diagonal_view(out, k), part)
        return out

    def _entries(self, i: Any, j: Any) -> Any:
        found: Any = self.dtype.type(0)
        for k, part in zip(self._how, self._parts, strict=True):
            if part.size:
                at = verbs.clip(i if k >= 0 else j, 0, part.size - 1)
                found = verbs.where(verbs.equal(verbs.subtract(j, i), k), part[at], found)
        return found if isinstance(found, AbstractArray) else zeros(self.family, (), self.dtype)

    def _transposed(self) -> Any:
        bands = {-k: p for k, p in zip(self._how, self._parts, strict=True)}
        return self if self._how == (0,) else from_bands(bands)

    def _index(self, index: tuple[Any, ...]) -> Any:
        if len(index) != 2:
            return NotImplemented
        if all(isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)) for i in index):
            i, j = normal_indices(self, index)
            part = self._band(j - i)
            return zeros(self.family, (), self.dtype) if part is None else part[min(i, j)]
        block = block_of(self, index)
        if block is None:
            return NotImplemented
        start, stop, step = block.indices(self.order)
        if step != 1 or stop - start < 1 or (stop - start < 2 and self._how != (0,)):
            return NotImplemented
        if (start, stop) == (0, self.order):
            return self
        cut = {k: p[start : stop - abs(k)] for k, p in zip(self._how, self._parts, strict=True)}
        return from_bands(cut, generic_class(type(self)))

    def _band(self, k: int) -> Any:
        return self._parts[self._how.index(k)] if k in self._how else None

    def _diagonal(self, offset: int) -> Any:
        part = self._band(offset)
        if part is not None:
            return part
        from mirabelle.arraytypes.structured.implicit import Zeros

        return Zeros(max(0, self.order - abs(offset)), dtype=self.dtype, device=self.family)

    def _write(self, index: Any, value: Any) -> None:
        name = generic_class(type(self)).__name__
        if index is None:
            self._write_all(name, value)
            return
        if len(index) == 2 and all(isinstance(i, (int, np.integer)) for i in index):
            i, j = normal_indices(self, index)
            part = self._band(j - i)
            if part is not None:
                part[min(i, j)] = value
                return
            scalar_access("Writing", self.place)
            if value != 0:
                raise ValueError(
                    f"Entry ({i}, {j}) of this {name} is zero by its structure and cannot become {value!r}. "
                    "Write to a dense copy: `x = mb.HostArray(x)`."
                )
            return
        raise TypeError(
            f"This {name} is written to entry by entry, D[i, j] = v, or diagonal by diagonal: "
            "`D.parts[0][...] = v`. For more, make a dense copy: `x = mb.HostArray(x)`."
        )

    def _write_all(self, name: str, value: Any) -> None:
        inner = value.structure if isinstance(value, Structured) else None
        if inner is not None and value.shape == self._shape and inner | self.structure == self.structure:
            for k, part in zip(self._how, self._parts, strict=True):
                verbs.assign(part, band(value, k))
            return
        if isinstance(value, (bool, int, float, complex, np.generic)) and (value == 0 or self._is_full()):
            for part in self._parts:
                verbs.assign(part, value)
            return
        raise ValueError(
            f"Only a matrix of its structure, or 0, can be written to all of this {name}: its other entries "
            "are zero. Make a new array, `D = D + x`, or write to its diagonals: `D.parts[0][...] = v`."
        )

    def _is_full(self) -> bool:
        return sum(p.size for p in self._parts) == self.size

    def _times(self, other: Any) -> Any:
        if isinstance(other, Identity):
            return other._rtimes(self)
        if isinstance(other, Banded):
            return _product_of_bands(self, other)
        column = (lambda v: v) if other.ndim == 1 else (lambda v: v[:, None])
        return _combined(self, other, 0 if other.ndim == 1 else other.ndim - 2, column)

    def _rtimes(self, other: Any) -> Any:
        return _combined(verbs.permute_dims(self, (1, 0)), other, other.ndim - 1, lambda v: v)


class Diagonal(Banded):
    """A diagonal matrix: its part is the diagonal.

    Parameters
    ----------
    *parts : array
        The diagonal.

    Examples
    --------
    >>> import mirabelle as mb
    >>> D = mb.Diagonal(mb.RefArray([1.0, 2.0]))
    >>> D * 10 @ D
    Diagonal[RefArray[float64, 1]](
    [[10.,  .],
     [ ., 40.]], place=ref:0)
    """

    __module__ = "mirabelle"
    __slots__ = ()
    _diagonals = (0,)


class Identity(Diagonal):
    """The identity matrix, of which nothing is stored.

    Parameters
    ----------
    n : int
        The size.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> I = mb.Identity(3)
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> print(I @ x)
    [1. 2. 3.]
    >>> print(mb.ones((3, 3)) + 2 * I)
    [[3. 1. 1.]
     [1. 3. 1.]
     [1. 1. 3.]]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    def __new__(cls, n: int, *, dtype: DTypeLike = None, device: Device | None = None) -> Self:
        from mirabelle.arraytypes.structured.implicit import Ones

        if cls.parameters:
            device, dtype = leaf_family(cls), getattr(cls, "dtype", dtype)
        return from_bands({0: Ones((n,), dtype=dtype, device=device)}, cls)

    def _with_parts(self, parts: tuple[Any, ...]) -> Any:
        from mirabelle.arraytypes.structured.implicit import Ones

        return from_bands({0: parts[0]}, Identity if isinstance(parts[0], Ones) else Diagonal)

    def _times(self, other: Any) -> Any:
        found = verbs.astype(other, np.result_type(self.dtype, other.dtype), copy=False)
        if found is not other or isinstance(other, Implicit):  # (nobody writes to what is stored nowhere)
            return found
        return verbs.copy(other) if isinstance(other, Structured) else copied(other)

    _rtimes = _times


class Bidiagonal(Banded):
    """The main diagonal and the one above it ("U"), or the one below it ("L").

    Parameters
    ----------
    diagonal : array
        The main diagonal.
    beside : array
        The other diagonal.
    uplo : str, default 'U'
        Where that is: "U" above, "L" below.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.Bidiagonal([1, 2], [7], "L")
    Bidiagonal[HostArray[int64, 1], HostArray[int64, 1]](
    [[1, .],
     [7, 2]])
    """

    __module__ = "mirabelle"
    __slots__ = ()

    def __new__(cls, diagonal: ArrayLike, beside: ArrayLike, uplo: str = "U") -> Self:
        if uplo not in ("U", "L"):
            raise ValueError(
                f'The second diagonal stands above ("U") or below ("L") the main one, not {uplo!r}.'
            )
        first, second = cls._checked((diagonal, beside))
        return from_bands({0: first, 1 if uplo == "U" else -1: second}, cls)


class Tridiagonal(Banded):
    """The diagonal below the main one, the main one, and the one above it.

    Parameters
    ----------
    *parts : three arrays
        The lower, the main and the upper diagonal.

    Examples
    --------
    >>> import mirabelle as mb
    >>> T = mb.Tridiagonal([1.0], [2.0, 2.0], [1.0])
    >>> print(mb.linalg.solve(T, mb.HostArray([3.0, 3.0])))
    [1. 1.]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    _diagonals = (-1, 0, 1)


def banded_type(offsets: Any) -> Any:
    """The type that has these diagonals and no others; None where there is none."""
    return {
        (0,): Diagonal, (0, 1): Bidiagonal, (0, -1): Bidiagonal, (-1, 0): Bidiagonal, (-1, 0, 1): Tridiagonal,
    }.get(tuple(offsets))  # fmt: skip


def from_bands(bands: dict[int, Any], cls: Any = None) -> Any:
    """The matrix of these diagonals; a missing one between the outermost is not allowed."""
    order = tuple(sorted(bands)) if len(bands) != 2 else (0, next(k for k in bands if k))
    cls = generic_class(cls) if cls is not None else banded_type(order)
    n = bands[0].shape[0]
    for k, part in bands.items():
        if part.shape[0] != max(n - abs(k), 0):
            raise ValueError(
                f"The diagonal {abs(k)} {'above' if k > 0 else 'below'} the main one of a {n} × {n} "
                f"{cls.__name__} has {max(n - abs(k), 0)} elements; this one has {part.shape[0]}."
            )
    return cls._of(tuple(bands[k] for k in order), (n, n), order)


# The diagonals of anything


@array_function
def band(x: Any, /, offset: int = 0) -> Any:
    """The diagonal of a matrix that is `offset` above the main one: a view that can be written to.

    Parameters
    ----------
    x : matrix
        A matrix.
    offset : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[1, 2], [3, 4]])
    >>> print(mb.band(A), mb.band(A, -1))
    [1 4] [3]
    """
    return diagonal_view(x, operator.index(offset))


# Products


def _combined(x: Banded, other: Any, axis: int, stood: Any) -> Any:
    """The sum over diagonals of diagonal times shifted `other`: x @ other along an axis."""
    join_families("matmul", (x, other))
    if isinstance(other, Implicit):
        return NotImplemented  # one value everywhere knows a shorter way
    if x._how == (0,):
        return verbs.multiply(stood(x._parts[0]), other)
    if isinstance(other, Structured):
        if not other.fuses:
            return NotImplemented
        other = verbs.dense(other)
    n = x.order

    def part_of(a: Any, start: int, stop: int) -> Any:
        return a[(*[slice(None)] * axis, slice(start, stop), *[slice(None)] * (a.ndim - axis - 1))]

    main = x._band(0)
    out = verbs.multiply(stood(main), other)
    if x.carries_derivatives or other.carries_derivatives:  # in memory that the other diagonals can join
        out = verbs.assign(zeros_for((*x._parts, other), out.shape, out.dtype), out)
    else:
        out = verbs.copy(out)
    for k, part in zip(x._how, x._parts, strict=True):
        if k and part.size:
            rows = (0, n - k) if k > 0 else (-k, n)
            columns = (k, n) if k > 0 else (0, n + k)
            shown = part_of(out, *rows)
            verbs.assign(shown, verbs.add(shown, verbs.multiply(stood(part), part_of(other, *columns))))
    return out


def _product_of_bands(x: Banded, y: Banded) -> Any:
    """The product of two banded matrices, diagonal by diagonal."""
    join_families("matmul", (x, y))
    n = x.order
    bands: dict[int, Any] = {}
    for k, p in zip(x._how, x._parts, strict=True):
        for m, q in zip(y._how, y._parts, strict=True):
            # (x y)[i, i + k + m] takes x[i, i + k] and y[i + k, i + k + m]: i from `low` to `high`.
            low, high = max(0, -k, -k - m), min(n, n - k, n - k - m)
            if high <= low:
                continue
            left = p[low + min(k, 0) : high + min(k, 0)]
            right = q[low + k + min(m, 0) : high + k + min(m, 0)]
            start = low + min(k + m, 0)
            _add_band(bands, k + m, n, start, verbs.multiply(left, right))
    kept = tuple(sorted(k for k in bands))
    if banded_type(kept) is not None or kept == (-1, 0):
        return from_bands(bands)
    out = zeros_for((*x._parts, *y._parts), (n, n), np.result_type(x.dtype, y.dtype))
    for k, part in bands.items():
        verbs.assign(diagonal_view(out, k), part)
    return out


def _add_band(bands: dict[int, Any], k: int, n: int, start: int, value: Any) -> None:
    """Add to the diagonal k, of which `value` covers a stretch from `start` on."""
    length = n - abs(k)
    if k not in bands:
        if value.shape[0] == length:
            bands[k] = value
            return
        bands[k] = zeros_for((value,), (length,), value.dtype)
    if value.shape[0] == length:
        bands[k] = verbs.add(bands[k], value)
        return
    if value.carries_derivatives or bands[k].carries_derivatives:
        bands[k] = verbs.assign(zeros_for((value, bands[k]), (length,), value.dtype), bands[k])
    else:
        bands[k] = verbs.copy(bands[k])
    shown = bands[k][start : start + value.shape[0]]
    verbs.assign(shown, verbs.add(shown, value))
