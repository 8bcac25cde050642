"""What NumPy's users type on an array: x.sum(axis=0, where=mask), x.sort(), x.flat[3], x.real = 0.

The methods are NumPy's, argument for argument. Those of one line are verbs; the others are the
functions of the same names, found when they are first called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.proxies import lying
from mirabelle.dispatch import loading, verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, Axis, DTypeLike, Out, ShapeLike
    from mirabelle.arraytypes.flat import Flat


def _numpys() -> Any:
    """The functions that NumPy spells otherwise than the array API, as it spells them."""
    from mirabelle.arraytypes.functions import conventions

    return conventions


def _ours() -> Any:
    """All functions."""
    return loading.public()


# The axes of a matrix, turned.
TURNED = (1, 0)


class NumpyMethods:
    """The methods and attributes of arrays that are NumPy's."""

    __slots__ = ()

    dtype: np.dtype
    ndim: int
    shape: tuple[int, ...]

    # In another dtype, shape or order

    def astype(
        self, dtype: DTypeLike, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> AbstractArray:
        """The array with another dtype, lazily; `casting` says what conversions are allowed."""
        if isinstance(order, bool):  # astype(dtype, copy), as the array API has it
            order, copy = "K", order
        if casting != "unsafe" and not np.can_cast(self.dtype, np.dtype(dtype), casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to the rule "
                f"{casting!r}. Leave casting= away to convert anyway."
            )
        made = verbs.astype(self, dtype, copy=copy)
        if order in ("K", "A", None):
            return made
        from mirabelle.arraytypes.functions.memory import in_memory_order

        return in_memory_order(made, order)

    def view(self, dtype: DTypeLike = None) -> AbstractArray:
        """The same memory, its bytes read as elements of another dtype."""
        from mirabelle.arraytypes.parts import reinterpreted

        if isinstance(dtype, type) and issubclass(dtype, (np.ndarray, NumpyMethods)):
            raise TypeError(
                f"view({dtype.__name__}) would make another array type of the same memory. Convert: "
                "np.asarray(x), or mb.adapt(mb.HostArray, x)."
            )
        return verbs.getitem(self, ...) if dtype is None else reinterpreted(self, dtype)  # type: ignore[arg-type]

    def copy(self, order: str = "C") -> AbstractArray:
        """A copy in memory of its own; see `mb.copy`."""
        return verbs.copy(self) if order != "F" else _numpys().copy(self, order)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> AbstractArray:
        return verbs.copy(self)

    def reshape(self, *shape: ShapeLike, order: str = "C", copy: bool | None = None) -> AbstractArray:
        """The elements in another shape, a view where it can be; see `mb.reshape`."""
        wanted = shape[0] if len(shape) == 1 else shape
        if order == "C" and copy is None:
            return verbs.reshape(self, wanted)
        return _numpys().reshape(self, wanted, order, copy=copy)

    def ravel(self, order: str = "C") -> AbstractArray:
        """The elements in one row, a view where it can be; see `mb.ravel`."""
        return _ours().ravel(self, order)

    def flatten(self, order: str = "C") -> AbstractArray:
        """The elements in one row, as a copy."""
        return verbs.copy(_ours().reshape(self, (-1,)) if order == "C" else self.ravel(order))

    def transpose(self, *axes: int | Sequence[int] | None) -> AbstractArray:
        """The axes in another order, reversed unless some are given; see `mb.transpose`."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        return verbs.permute_dims(self, axes or tuple(range(self.ndim))[::-1])

    @property
    def T(self) -> AbstractArray:
        """The axes reversed: of a matrix, its transpose. A view."""
        n = self.ndim
        if n < 2:
            return self  # type: ignore[return-value]
        return verbs.permute_dims(self, TURNED if n == 2 else tuple(range(n))[::-1])

    @property
    def mT(self) -> AbstractArray:
        """The last two axes exchanged: each matrix of a stack transposed. A view."""
        if self.ndim < 2:
            raise ValueError(f"x.mT needs at least 2 dimensions; this array has {self.ndim}.")
        n = self.ndim
        return verbs.permute_dims(self, (*range(n - 2), n - 1, n - 2))

    def __matrix_transpose__(self) -> AbstractArray:
        return self.mT

    def swapaxes(self, axis1: int, axis2: int) -> AbstractArray:
        """Two axes exchanged; see `mb.swapaxes`."""
        return _ours().swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Axis = None) -> AbstractArray:
        """Without the axes of one element; see `mb.squeeze`."""
        return _ours().squeeze(self, axis=axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AbstractArray:
        """The elements on a diagonal of two axes; see `mb.diagonal`."""
        return _ours().diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats: ArrayLike, axis: Axis = None) -> AbstractArray:
        """Each element so many times; see `mb.repeat`."""
        return _ours().repeat(self, repeats, axis=axis)

    # Parts

    @property
    def real(self) -> AbstractArray:
        """The real parts: a view that can be written to (an array of real numbers is its own)."""
        from mirabelle.arraytypes.parts import real_part

        return real_part(self) if self.dtype.kind == "c" else self  # type: ignore[arg-type, return-value]

    @real.setter
    def real(self, value: ArrayLike) -> None:
        from mirabelle.arraytypes.parts import set_part

        set_part(self, "real", value)  # type: ignore[arg-type]

    @property
    def imag(self) -> AbstractArray:
        """The imaginary parts: a view that can be written to; of real numbers, zeros that cannot."""
        from mirabelle.arraytypes.parts import imag_part

        return imag_part(self)  # type: ignore[arg-type]

    @imag.setter
    def imag(self, value: ArrayLike) -> None:
        from mirabelle.arraytypes.parts import set_part

        set_part(self, "imag", value)  # type: ignore[arg-type]

    @property
    def flat(self) -> Flat:
        """All elements in a row, to iterate over, to read by an index and to write to."""
        from mirabelle.arraytypes.flat import Flat

        return Flat(self)

    @flat.setter
    def flat(self, values: ArrayLike) -> None:
        self.flat[...] = values

    @property
    def base(self) -> AbstractArray | None:
        """The array whose memory this one shows; None if it has its own."""
        parent = verbs.parent(self)
        return None if parent is self else parent

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each dimension."""
        from mirabelle.arraytypes.wrappers import lie_alone  # (which stands on this module)

        lie_alone(self)
        return lying(verbs.leaf_of(self).view).strides  # type: ignore[no-any-return]

    def tobytes(self, order: str = "C") -> bytes:
        """The contents as bytes, row by row (or column by column: "F")."""
        return verbs.to_numpy(self).tobytes(order)  # type: ignore[arg-type, no-any-return]

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the contents to a file, as bytes or as text between `sep`."""
        verbs.to_numpy(self).tofile(fid, sep, format)

    # Reductions

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Out = None,
        keepdims: bool = False,
        initial: complex | None = None,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """The sum of all elements, or along axes; see `mb.sum`."""
        if out is None and initial is None and where is True:
            return verbs.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return _numpys().sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Out = None,
        keepdims: bool = False,
        initial: complex | None = None,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """The product of all elements, or along axes; see `mb.prod`."""
        if out is None and initial is None and where is True:
            return verbs.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return _numpys().prod(self, axis, dtype, out, keepdims, initial, where)

    def min(
        self,
        axis: Axis = None,
        out: Out = None,
        keepdims: bool = False,
        initial: complex | None = None,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """The smallest element, or those along axes; see `mb.min`."""
        if out is None and initial is None and where is True:
            return verbs.min(self, axis=axis, keepdims=keepdims)
        return _numpys().min(self, axis, out, keepdims, initial, where)

    def max(
        self,
        axis: Axis = None,
        out: Out = None,
        keepdims: bool = False,
        initial: complex | None = None,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """The largest element, or those along axes; see `mb.max`."""
        if out is None and initial is None and where is True:
            return verbs.max(self, axis=axis, keepdims=keepdims)
        return _numpys().max(self, axis, out, keepdims, initial, where)

    def all(
        self,
        axis: Axis = None,
        out: Out = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """Are all elements true, or all along axes? See `mb.all`."""
        if out is None and where is True:
            return verbs.all(self, axis=axis, keepdims=keepdims)
        return _numpys().all(self, axis, out, keepdims, where=where)

    def any(
        self,
        axis: Axis = None,
        out: Out = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """Is any element true, or any along axes? See `mb.any`."""
        if out is None and where is True:
            return verbs.any(self, axis=axis, keepdims=keepdims)
        return _numpys().any(self, axis, out, keepdims, where=where)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Out = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
    ) -> AbstractArray:
        """The mean of all elements, or along axes; see `mb.mean`."""
        if dtype is None and out is None and where is True:
            return verbs.mean(self, axis=axis, keepdims=keepdims)
        return _numpys().mean(self, axis, dtype, out, keepdims, where=where)

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Out = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        mean: ArrayLike | None = None,
        correction: float | None = None,
    ) -> AbstractArray:
        """The standard deviation of all elements, or along axes; see `mb.std`."""
        return _numpys().std(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Out = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        mean: ArrayLike | None = None,
        correction: float | None = None,
    ) -> AbstractArray:
        """The variance of all elements, or along axes; see `mb.var`."""
        return _numpys().var(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def ptp(self, axis: Axis = None, out: Out = None, keepdims: bool = False) -> AbstractArray:
        """The largest element minus the smallest."""
        return _ours().ptp(self, axis, out, keepdims)

    def argmax(self, axis: Axis = None, out: Out = None, *, keepdims: bool = False) -> AbstractArray:
        """Where the largest element is, or those along an axis; see `mb.argmax`."""
        return _numpys().argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Axis = None, out: Out = None, *, keepdims: bool = False) -> AbstractArray:
        """Where the smallest element is, or those along an axis; see `mb.argmin`."""
        return _numpys().argmin(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: Axis = None, dtype: DTypeLike = None, out: Out = None) -> AbstractArray:
        """The sums up to each element; see `mb.cumsum`."""
        return _ours().cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Axis = None, dtype: DTypeLike = None, out: Out = None) -> AbstractArray:
        """The products up to each element; see `mb.cumprod`."""
        return _ours().cumprod(self, axis, dtype, out)

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike = None,
        out: Out = None,
    ) -> AbstractArray:
        """The sum along a diagonal of two axes; see `mb.trace`."""
        return _ours().trace(self, offset, axis1, axis2, dtype, out)

    def dot(self, b: ArrayLike, out: Out = None) -> AbstractArray:
        """The product with another array: of vectors, matrices or numbers; see `mb.dot`."""
        return _numpys().dot(self, b, out)

    # Element by element

    def conj(self) -> AbstractArray:
        """The complex conjugates (real numbers are their own); see `mb.conj`."""
        found: Any = verbs.conj(self) if self.dtype.kind == "c" else self  # (itself, as NumPy's method gives)
        return found

    conjugate = conj

    def clip(
        self, min: ArrayLike | None = None, max: ArrayLike | None = None, out: Out = None
    ) -> AbstractArray:
        """The elements, none below `min` or above `max`; see `mb.clip`."""
        return verbs.clip(self, min, max) if out is None else _numpys().clip(self, min, max, out)

    def round(self, decimals: int = 0, out: Out = None) -> AbstractArray:
        """Rounded to so many decimals, halves to even."""
        return _numpys().round(self, decimals, out)

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.ndim:
            raise TypeError(
                f"round() takes one number; this array has shape {self.shape}. Use x.round(decimals)."
            )
        return round(self.item(), ndigits)  # type: ignore[attr-defined]

    def __floor__(self) -> int:
        return math.floor(float(self))  # type: ignore[arg-type]

    def __ceil__(self) -> int:
        return math.ceil(float(self))  # type: ignore[arg-type]

    def __trunc__(self) -> int:
        return math.trunc(float(self))  # type: ignore[arg-type]

    # Elements by their places and order

    def fill(self, value: ArrayLike) -> None:
        """Write one value to all elements, in place."""
        verbs.assign(self, value)

    def nonzero(self) -> tuple[AbstractArray, ...]:
        """The indices of elements that are not zero, an array for each axis; see `mb.nonzero`."""
        return _ours().nonzero(self)  # type: ignore[no-any-return]

    def take(
        self, indices: ArrayLike, axis: Axis = None, out: Out = None, mode: str = "raise"
    ) -> AbstractArray:
        """The elements at some indices along an axis; see `mb.take`."""
        return _numpys().take(self, indices, axis, out, mode)

    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """Write values to elements counted along all axes, in place; see `mb.put`."""
        _ours().put(self, indices, values, mode)

    def choose(self, choices: Sequence[ArrayLike], out: Out = None, mode: str = "raise") -> AbstractArray:
        """Of several arrays, elements of that whose number stands here; see `mb.choose`."""
        return _ours().choose(self, choices, out, mode)

    def compress(self, condition: ArrayLike, axis: Axis = None, out: Out = None) -> AbstractArray:
        """The parts along an axis where a condition is true; see `mb.compress`."""
        return _ours().compress(condition, self, axis, out)

    def searchsorted(self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> AbstractArray:
        """Where values would go so that this stays in order; see `mb.searchsorted`."""
        return _ours().searchsorted(self, v, side=side, sorter=sorter)

    def sort(
        self, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
    ) -> None:
        """Put the elements in order along an axis, in place."""
        verbs.assign(self, _numpys().sort(self, axis, kind, order, stable=stable))

    def argsort(
        self, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
    ) -> AbstractArray:
        """The indices that put the elements in order along an axis; see `mb.argsort`."""
        return _numpys().argsort(self, axis, kind, order, stable=stable)

    def partition(self, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect") -> None:
        """Put the `kth` smallest element at its place and the others on its sides, in place."""
        verbs.assign(self, _ours().partition(self, kth, axis, kind))

    def argpartition(
        self, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect"
    ) -> AbstractArray:
        """The indices with that of the `kth` smallest element at its place; see `mb.argpartition`."""
        return _ours().argpartition(self, kth, axis, kind)
