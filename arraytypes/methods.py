"""What NumPy's users type on an array: x.sum(axis=0, where=mask), x.sort(), x.flat[3], x.real = 0.

The methods are NumPy's, argument for argument. Those of one line are verbs; the others are the
functions of the same names, found when they are first called.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.dispatch import loading, verbs


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
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """The array with another dtype, lazily; `casting` says what conversions are allowed."""
        if isinstance(order, bool):  # astype(dtype, copy), as the array API has it
            order, copy = "K", order
        if casting != "unsafe" and not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to the rule "
                f"{casting!r}. Leave casting= away to convert anyway."
            )
        made = verbs.astype(self, dtype, copy=copy)
        if order in ("K", "A"):
            return made
        from mirabelle.arraytypes.functions.memory import in_memory_order

        return in_memory_order(made, order)

    def view(self, dtype: Any = None) -> Any:
        """The same memory, its bytes read as elements of another dtype."""
        from mirabelle.arraytypes.parts import reinterpreted

        if isinstance(dtype, type) and issubclass(dtype, (np.ndarray, NumpyMethods)):
            raise TypeError(
                f"view({dtype.__name__}) would make another array type of the same memory. Convert: "
                "np.asarray(x), or mb.adapt(mb.HostArray, x)."
            )
        return verbs.getitem(self, ...) if dtype is None else reinterpreted(self, dtype)  # type: ignore[arg-type]

    def copy(self, order: str = "C") -> Any:
        return verbs.copy(self) if order != "F" else _numpys().copy(self, order)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return verbs.copy(self)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        if order == "C" and copy is None:
            return verbs.reshape(self, shape)
        return _numpys().reshape(self, shape, order, copy=copy)

    def ravel(self, order: str = "C") -> Any:
        return _ours().ravel(self, order)

    def flatten(self, order: str = "C") -> Any:
        return verbs.copy(_ours().reshape(self, (-1,)) if order == "C" else self.ravel(order))

    def transpose(self, *axes: Any) -> Any:
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        return verbs.permute_dims(self, axes or tuple(range(self.ndim))[::-1])

    @property
    def T(self) -> Any:
        n = self.ndim
        return self if n < 2 else verbs.permute_dims(self, TURNED if n == 2 else tuple(range(n))[::-1])

    @property
    def mT(self) -> Any:
        if self.ndim < 2:
            raise ValueError(f"x.mT needs at least 2 dimensions; this array has {self.ndim}.")
        n = self.ndim
        return verbs.permute_dims(self, (*range(n - 2), n - 1, n - 2))

    def __matrix_transpose__(self) -> Any:
        return self.mT

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return _ours().swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        return _ours().squeeze(self, axis=axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return _ours().diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        return _ours().repeat(self, repeats, axis=axis)

    # Parts

    @property
    def real(self) -> Any:
        """The real parts: a view that can be written to (an array of real numbers is its own)."""
        from mirabelle.arraytypes.parts import real_part

        return real_part(self) if self.dtype.kind == "c" else self  # type: ignore[arg-type]

    @real.setter
    def real(self, value: Any) -> None:
        from mirabelle.arraytypes.parts import set_part

        set_part(self, "real", value)  # type: ignore[arg-type]

    @property
    def imag(self) -> Any:
        """The imaginary parts: a view that can be written to; of real numbers, zeros that cannot."""
        from mirabelle.arraytypes.parts import imag_part

        return imag_part(self)  # type: ignore[arg-type]

    @imag.setter
    def imag(self, value: Any) -> None:
        from mirabelle.arraytypes.parts import set_part

        set_part(self, "imag", value)  # type: ignore[arg-type]

    @property
    def flat(self) -> Any:
        """All elements in a row, to iterate over, to read by an index and to write to."""
        from mirabelle.arraytypes.flat import Flat

        return Flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[...] = values

    @property
    def base(self) -> Any:
        """The array whose memory this one shows; None if it has its own."""
        parent = verbs.parent(self)
        return None if parent is self else parent

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each dimension."""
        return verbs.leaf_of(self).view.strides  # type: ignore[no-any-return]

    def tobytes(self, order: str = "C") -> bytes:
        """The contents as bytes, row by row (or column by column: "F")."""
        return verbs.to_numpy(self).tobytes(order)  # type: ignore[arg-type, no-any-return]

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the contents to a file, as bytes or as text between `sep`."""
        verbs.to_numpy(self).tofile(fid, sep, format)

    # Reductions

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = True,
    ) -> Any:  # fmt: skip
        if out is None and initial is None and where is True:
            return verbs.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return _numpys().sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = True,
    ) -> Any:  # fmt: skip
        if out is None and initial is None and where is True:
            return verbs.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return _numpys().prod(self, axis, dtype, out, keepdims, initial, where)

    def min(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        if out is None and initial is None and where is True:
            return verbs.min(self, axis=axis, keepdims=keepdims)
        return _numpys().min(self, axis, out, keepdims, initial, where)

    def max(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        if out is None and initial is None and where is True:
            return verbs.max(self, axis=axis, keepdims=keepdims)
        return _numpys().max(self, axis, out, keepdims, initial, where)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
        if out is None and where is True:
            return verbs.all(self, axis=axis, keepdims=keepdims)
        return _numpys().all(self, axis, out, keepdims, where=where)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
        if out is None and where is True:
            return verbs.any(self, axis=axis, keepdims=keepdims)
        return _numpys().any(self, axis, out, keepdims, where=where)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        if dtype is None and out is None and where is True:
            return verbs.mean(self, axis=axis, keepdims=keepdims)
        return _numpys().mean(self, axis, dtype, out, keepdims, where=where)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = True, mean: Any = None, correction: Any = None,
    ) -> Any:  # fmt: skip
        return _numpys().std(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = True, mean: Any = None, correction: Any = None,
    ) -> Any:  # fmt: skip
        return _numpys().var(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
        )

    def ptp(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The largest element minus the smallest."""
        return _ours().ptp(self, axis, out, keepdims)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        return _numpys().argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        return _numpys().argmin(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return _ours().cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return _ours().cumprod(self, axis, dtype, out)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
        return _ours().trace(self, offset, axis1, axis2, dtype, out)

    def dot(self, b: Any, out: Any = None) -> Any:
        return _numpys().dot(self, b, out)

    # Element by element

    def conj(self) -> Any:
        return verbs.conj(self)

    conjugate = conj

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        return verbs.clip(self, min, max) if out is None else _numpys().clip(self, min, max, out)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
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

    def fill(self, value: Any) -> None:
        verbs.assign(self, value)

    def nonzero(self) -> tuple[Any, ...]:
        return _ours().nonzero(self)  # type: ignore[no-any-return]

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        return _numpys().take(self, indices, axis, out, mode)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        _ours().put(self, indices, values, mode)

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Any:
        return _ours().choose(self, choices, out, mode)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return _ours().compress(condition, self, axis, out)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        return _ours().searchsorted(self, v, side=side, sorter=sorter)

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Put the elements in order along an axis, in place."""
        verbs.assign(self, _numpys().sort(self, axis, kind, order, stable=stable))

    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        return _numpys().argsort(self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: Any = -1, kind: str = "introselect") -> None:
        """Put the `kth` smallest element at its place and the others on its sides, in place."""
        verbs.assign(self, _ours().partition(self, kth, axis, kind))

    def argpartition(self, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
        return _ours().argpartition(self, kth, axis, kind)
