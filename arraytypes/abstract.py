"""AbstractArray: what every array is, wherever its data lives and whatever it looks like.

An array is a handle: it holds a *version* of its contents (see `dispatch.tree`) directly, or
wraps a parent that does. The operators are the generic functions themselves; this class adds
what a NumPy user types on an array.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from mirabelle.arraytypes.annotations import ArrayLike, Device
from mirabelle.arraytypes.buffers import Buffered, NoBufferError
from mirabelle.arraytypes.methods import NumpyMethods
from mirabelle.arraytypes.operators import Operators
from mirabelle.arraytypes.parametric import ArrayMeta
from mirabelle.dispatch import loading, native, verbs
from mirabelle.dispatch.errors import PlaceError
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import is_element

if TYPE_CHECKING:
    from mirabelle.arraytypes.flags import Flags


@functools.cache
def _rule_of_ufuncs() -> Any:
    from mirabelle.arraytypes.interop import numpy_ufunc  # which stands on this module

    return numpy_ufunc


def _numpy_ufunc(*args: Any, **options: Any) -> Any:
    """What a ufunc of NumPy's is that no operator answers."""
    return _rule_of_ufuncs()(*args, **options)


def _numpy_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What another function of NumPy's is that no operator answers."""
    from mirabelle.arraytypes.interop import numpy_function

    if not all(issubclass(t, (AbstractArray, np.ndarray)) for t in types):
        return NotImplemented  # somebody else's array may know more
    return numpy_function(func, args, kwargs, self)


class AbstractArray(Operators, NumpyMethods, Buffered, metaclass=ArrayMeta):  # type: ignore[misc]
    """The root of all array types.

    >>> import mirabelle as mb
    >>> isinstance(mb.ones(2), mb.AbstractArray), isinstance(mb.Diagonal([1.0]), mb.AbstractArray)
    (True, True)
    """

    __module__ = "mirabelle"
    __slots__ = ()

    dtype: np.dtype
    ndim: int
    shape: tuple[int, ...]
    # Are there dual numbers in it (`arraytypes/duals`)?
    carries_derivatives = False
    # Is it known how many elements there are? (Not of what a mask picks, in a program.)
    _is_counted = True
    # NumPy hands its operators over to us instead of looping over our elements.
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> type[Self]: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise TypeError(
            f"{cls.__name__} is not made directly. Make an array with mb.HostArray(data), and a wrapper "
            "with the function for it: x.T, x[1:], mb.reshape(x, shape), mb.broadcast_to(x, shape)."
        )

    @classmethod
    def _normalise(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        raise TypeError(f"{cls.__name__} takes no parameters.")

    @classmethod
    def _widened(cls, parameters: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        return iter(())

    @classmethod
    def _subscripted(cls, parameters: tuple[Any, ...]) -> Any:
        """What `cls[parameters]` is, where it is no subclass made of these parameters; else None."""
        return None

    @classmethod
    def _spelled(cls, parameters: tuple[Any, ...]) -> str | None:
        """The name of `cls[parameters]`; None for the usual one."""
        return None

    @classmethod
    def _class_attributes(cls, parameters: tuple[Any, ...]) -> dict[str, Any]:
        return {}

    def _shared(self) -> Any:
        """The leaf of its memory, if others can write there too; else None."""
        return None

    def _is_number(self) -> bool:
        """Of an array without axes: is it the result of an operation, as NumPy's scalars are?

        `t += 1` gives such a name another array. What a constructor made, and views, are written to.
        """
        return False

    # What it is

    @property
    def size(self) -> int:
        """How many elements there are."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def place(self) -> Place:
        """Where the data is."""
        return verbs.place(self)

    device = place

    @property
    def flags(self) -> Flags:
        """How it lies in memory; `x.flags.writeable = False` protects it."""
        from mirabelle.arraytypes.flags import Flags  # (few ask)

        return Flags(self)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """`x.setflags(write=False)` protects an array from being written, as `x.flags.writeable = False`."""
        if align is False or uic:
            raise ValueError("Of the flags of an array only `write` can be set: `x.setflags(write=False)`.")
        if write is not None:
            self.flags.writeable = write

    def __len__(self) -> int:
        shape = self.shape
        return shape[0] if shape else self._refuse_length()

    def _refuse_length(self) -> NoReturn:
        raise TypeError("len() of unsized object: a 0-d array has no length. Read it with float(x).")

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The functions for arrays like this one: those that make arrays make them where it is."""
        from mirabelle.arraytypes.makers import namespace_of

        return namespace_of(self, api_version)

    def to_device(self, device: Device, /, *, stream: Any = None) -> AbstractArray:
        """The same data at another place (an array type, or the device of an array): an explicit transfer."""
        from mirabelle.arraytypes.creation import asarray

        if stream is not None:
            raise ValueError(
                "to_device takes no stream. Enter one, `with mb.stream():`, or leave stream= away."
            )
        return asarray(self, device=device)

    # Values

    def item(self, *index: Any) -> Any:
        """One element as a Python scalar: the only one, or by its index, or by its place in a row of all.

        On a device this is a transfer, and counted.
        """
        if index and index != (None,):
            return self[self._element_index(index[0] if len(index) == 1 else index)].item()
        if self.shape and self.size != 1:
            raise ValueError(
                "can only convert an array of size 1 to a Python scalar: this one has "
                f"{self.size} elements. Fetch them all with mb.to_numpy(x), or one with x[i]."
            )
        return self._read().item()

    def _element_index(self, index: Any) -> tuple[int, ...]:
        """The index of an element, or its number in a row of all, as one integer for each dimension."""
        if not isinstance(index, tuple):
            n = operator.index(index)
            if not -self.size <= n < self.size:
                raise IndexError(f"index {n} is out of bounds for size {self.size}")
            return tuple(int(i) for i in np.unravel_index(n % self.size, self.shape))
        if len(index) != self.ndim:
            raise ValueError(f"incorrect number of indices for array: {len(index)} for {self.ndim} dimensions")
        return tuple(map(operator.index, index))

    def _read(self) -> np.ndarray:
        """The only element, through the gate for scalar access."""
        # One element picked from an array is a step of a loop; one number that an operation on
        # arrays came to (a sum, a norm) is what the program wants to know.
        scalar_access("Reading", self.place, gated=self.ndim > 0 or is_element(verbs.tree(self)))
        return verbs.fetch(self).reshape(())

    def _scalar(self, kind: str) -> Any:
        if self.shape and self.size != 1:
            raise TypeError(
                f"only arrays of one element convert to {kind}; this one has shape {self.shape}. "
                "Reduce it first, for instance with mb.sum(x), or fetch it with mb.to_numpy(x); functions of "
                "Python's math take one number, and mb.sin(x) takes all."
            )
        return self._read().item()

    def __bool__(self) -> bool:
        if self.shape and self.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use mb.any(x) or mb.all(x)."
            )
        return bool(self._read().item())

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise TypeError(
                "only integer scalar arrays can be converted to a scalar index; this one has the shape "
                f"{self.shape} and holds {self.dtype}. Where a whole number is wanted, give int(x)."
            )
        return int(self._read().item())

    def tolist(self) -> Any:
        """The elements as (nested) Python lists."""
        return verbs.to_numpy(self).tolist()

    def __iter__(self) -> Iterator[AbstractArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array: it has one element, `float(x)`, and no rows.")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, x: Any) -> bool:
        return bool(verbs.any(verbs.equal(self, x)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return verbs.numpy_view(self, dtype, copy)

    def __arrow_array__(self, type: Any = None) -> Any:
        """What pyarrow makes a column of."""
        # (Who asks has imported it.)
        return sys.modules["pyarrow"].array(np.asarray(self), type=type)

    def __jax_array__(self) -> Any:
        """What JAX's functions, and operators beside JAX's arrays, take for this array."""
        return sys.modules["jax"].numpy.asarray(np.array(self))

    @property
    def _exported(self) -> np.ndarray:
        """What the buffer protocol shows (see `arraytypes.buffers`)."""
        try:
            return verbs.numpy_view(self)
        except PlaceError as e:  # who asks for a buffer expects this kind of error
            raise NoBufferError(str(e)) from None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What Pillow and others read memory by: a snapshot, held by the buffer in it.

        (NumPy asks for a buffer first.)
        """
        try:
            shown = verbs.numpy_view(self)
        except PlaceError as e:  # who asks for an attribute tries another way then
            raise AttributeError(str(e)) from None
        lies = shown if shown.flags.c_contiguous else np.array(shown, order="C")
        found = {"shape": shown.shape, "typestr": shown.dtype.str, "version": 3, "data": lies.data}
        # (Of what lies otherwise here, which who takes our buffer would see, it is to ask for the bytes.)
        return found if lies is shown else found | {"strides": lies.strides}

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        from mirabelle.arraytypes.dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, verbs.fetch(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        from mirabelle.arraytypes.gpu_interop import interface

        return interface(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        from mirabelle.arraytypes.dlpack import device_of

        return device_of(self)

    # A linear operator, to SciPy's iterative solvers: NumPy's vectors give NumPy's

    def matvec(self, v: ArrayLike, /) -> AbstractArray:
        """self @ v, of a matrix."""
        product = verbs.matmul(self, v)
        return verbs.to_numpy(product) if isinstance(v, np.ndarray) else product

    def rmatvec(self, v: ArrayLike, /) -> AbstractArray:
        """The conjugate transpose of a matrix times a vector."""
        product = verbs.matmul(verbs.conj(self.mT), v)
        return verbs.to_numpy(product) if isinstance(v, np.ndarray) else product

    # Display and pickling

    def __repr__(self) -> str:
        return self._without_values() or verbs.show(self)

    def __str__(self) -> str:
        return self._without_values() or verbs.show(self, brief=True)

    def _without_values(self) -> str | None:
        """What is shown of an array that has no values yet, because a function is being compiled."""
        if self.place.kind != "traced":
            return None
        from mirabelle.arraytypes.programs.showing import shown  # which stands on this module

        return shown(self)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        text = self._without_values()
        if text is not None:
            return text
        if self.ndim:
            raise TypeError(
                f"A format such as {spec!r} is for a number, and this array has shape {self.shape}. For all of "
                "its elements: `np.array2string(x, precision=2)`; for one: `f'{x.item(0):.2f}'`."
            )
        return format(self.item(), spec)

    def _repr_html_(self) -> str:
        return verbs.show_html(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from mirabelle.arraytypes.display import bundle

        return bundle(self)

    __array_ufunc__: Any = native.in_c.Overrides(verbs.UFUNC_OPERATORS, {}, _numpy_ufunc)

    __array_function__: Any = native.in_c.Overrides(verbs.FUNCTION_OPERATORS, verbs.ADAPTED, _numpy_function)


loading.arrays_come_of(NumpyMethods)
