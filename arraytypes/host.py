"""HostArray: arrays in the memory of this process, stored by NumPy."""

from __future__ import annotations

import functools
import mmap
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.arraytypes.dense import VIEWS, DenseArray, _handle_class, evaluated, wrap
from mirabelle.arraytypes.parametric import D, checked_dtype
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.styles import HOST
from mirabelle.dispatch.tree import Leaf, adopted


def as_it_was(source: np.ndarray, dest: np.ndarray) -> np.ndarray:
    """What NumPy may copy to `dest`: a copy where it would read what it has written.

    That is of vectors of one memory, one step longer than the other (NumPy 2.4, `x[::2] = x[:5]`).
    """
    if (
        source.ndim
        and dest.ndim == 1
        and source.strides[-1] != dest.strides[0]
        and np.may_share_memory(source, dest)
    ):
        return source.copy()
    return source


class HostArray(DenseArray[D]):
    """An array in host memory. `HostArray(data)` copies; `mb.asarray(data)` shares.

    Parameters
    ----------
    data : array, list or number
        What is copied into the array.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> type(x)
    mirabelle.HostArray[float64, 1]
    >>> print(mb.sqrt(x * x) + 1)
    [2. 3. 4.]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    home = HOST
    _brief_trees = -1
    _runs_in_place = True

    __float__ = in_c.Converter(DenseArray.__float__, "f")
    __int__ = in_c.Converter(DenseArray.__int__, "i")
    __complex__ = in_c.Converter(DenseArray.__complex__, "c")
    __bool__ = in_c.Converter(DenseArray.__bool__, "b")

    @classmethod
    def _upload(cls, data: np.ndarray) -> np.ndarray:
        view = pool.empty(data.shape, data.dtype, "F" if _fortran(data) else "C")
        np.copyto(view, data)
        return view

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> np.ndarray:
        return pool.empty(shape, dtype, order)

    @classmethod
    def _places(cls, n: int) -> tuple[np.ndarray, int] | None:
        try:
            # Addresses alone: the system gives memory to what is read or written.
            reserved = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        except (AttributeError, OSError):  # another system, or no address space
            return None
        view = np.frombuffer(reserved, np.uint8)
        return view, address_of(view)

    @classmethod
    def _download(cls, view: np.ndarray) -> np.ndarray:
        return view

    def _read(self) -> np.ndarray:
        # (No gate is in the way of host memory: what passes is counted.)
        if counters.active:
            counters.add(scalar_reads=1)
        return evaluated(self).view.reshape(())

    @classmethod
    def _copy_into(cls, dest: np.ndarray, source: np.ndarray) -> None:
        np.copyto(dest, as_it_was(source, dest))

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        """A NumPy operand: read where it lies if that is possible."""
        return Leaf(_native(x), foreign=True)

    @classmethod
    def _wrap_result(cls, x: np.ndarray) -> Leaf:
        return Leaf(_native(itself(x)))

    @classmethod
    def _of_result(cls, x: np.ndarray) -> Any:
        made = in_c.wrapped(x) if cls is HostArray else None
        if made is None:
            return super()._of_result(x)
        if counters.active:
            counters.add(bytes_written=x.nbytes)
        return made


in_c.tell(host_type=functools.partial(_handle_class, HostArray))
VIEWS[np.ndarray] = HostArray


def _fortran(x: np.ndarray) -> bool:
    return x.flags.f_contiguous and not x.flags.c_contiguous


def itself(x: Any) -> Any:
    """What NumPy made and shows in another shape, in memory of its own if it is small.

    (What shows another array's memory is not written where it is, since who reads that is not known: a write
    takes a hundred times as long as this copy.)

    >>> itself(np.ones(6).reshape(2, 3)).base is None
    True
    """
    return x.copy() if type(x) is np.ndarray and type(x.base) is np.ndarray and x.nbytes <= _SMALL else x


_SMALL = 1 << 16


def readable(x: np.ndarray) -> bool:
    """Can kernels read it where it lies? (Native byte order, aligned.)"""
    dtype = x.dtype
    held = dtype.char in _HELD or dtype == checked_dtype(dtype)
    return held and dtype.isnative and x.flags.aligned


# What arrays hold, in whatever byte order: other dtypes are asked for an error.
_HELD = "?bBhHiIlLqQefdFD"


def _native(x: np.ndarray) -> np.ndarray:
    """`x` as kernels can read it: native byte order and aligned (a copy where it is not)."""
    if type(x) is not np.ndarray:
        x = np.asarray(x)
    return x if readable(x) else x.astype(checked_dtype(x.dtype))


def share(x: np.ndarray) -> Any:
    """A HostArray over the memory of a NumPy array: writes go both ways.

    Expressions over it are evaluated at once, because NumPy may write to it at any time, as long as anybody
    holds the NumPy array.
    """
    view = _native(x)
    return wrap(HostArray, Leaf(view, foreign=view is x or view.base is not None))


@verbs.numpy_view.method
def _(x: HostArray, dtype: Any = None, copy: Any = None) -> np.ndarray:
    leaf = verbs.leaf_of(x)
    shared = not adopted(leaf)
    return exported(leaf.view, shared, dtype, copy)


def exported(view: np.ndarray, foreign: bool, dtype: Any, copy: Any) -> np.ndarray:
    """A NumPy array of a view: read-only, so that nothing can change behind a tree's back."""
    if dtype is not None and np.dtype(dtype) != view.dtype:
        if copy is False:
            raise ValueError("A change of dtype needs a copy. Leave copy=False away.")
        return view.astype(dtype)
    if copy:
        return view.copy()
    out = view.view()
    if not foreign:
        out.flags.writeable = False
    return out
