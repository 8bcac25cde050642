"""Numba: our arrays as arguments and results of functions compiled with `numba.njit`.

An argument is the array's memory, without a copy, and read-only: Numba's functions do not say
whether they write, so a write is refused when the function is compiled. (`@mb.jit` finds out, and
may write.) Memory shared with NumPy may be written. What is computed from our arrays comes
back as HostArrays. Elements, arrays of no dimensions, are numbers to Numba.

>>> import mirabelle as mb, numba
>>> @numba.njit
... def smoothed(x):
...     y = x * 0.5
...     for i in range(1, x.size):
...         y[i] += 0.5 * x[i - 1]
...     return y
>>> smoothed(mb.HostArray([2.0, 4.0]))
HostArray[float64, 1]([1., 3.])
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.core.boxing import box_array, unbox_array
from numba.core.datamodel.models import ArrayModel
from numba.core.errors import NumbaTypeError
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, box, overload, overload_classmethod, register_model, typeof_impl, unbox
from numba.np import numpy_support
from numba.np.arrayobj import constant_array, intrin_alloc

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.buffers import EXPORT
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray, share
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


class HostArrayType(types.Array):
    """Numba's type of an array of ours. What it computes from one is one again."""

    def __init__(
        self, dtype: Any, ndim: int, layout: Any, readonly: bool = False, aligned: bool = True
    ) -> None:
        kind = "readonly mirabelle" if readonly else "mirabelle"
        super().__init__(
            dtype, ndim, layout, readonly=readonly, name=f"{kind}({dtype}, {ndim}d, {layout})", aligned=aligned
        )

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> Any:
        return HostArrayType(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            not self.mutable if readonly is None else readonly,
            self.aligned,
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = all(isinstance(x, (types.Array, types.Number, types.Boolean)) for x in inputs)
        return HostArrayType if method == "__call__" and known else NotImplemented


register_model(HostArrayType)(ArrayModel)


_WRITES = (
    "numba.njit cannot say that it writes to an array of mirabelle's, which others may read. Compile "
    "the function with `@mb.jit` in place of `@numba.njit`, or hand it NumPy's array: `np.array(x)`."
)


def _is_read_only(x: Any) -> bool:
    return isinstance(x, HostArrayType) and not x.mutable


@overload(operator.setitem)
def _(x: Any, index: Any, value: Any) -> Any:
    # (Numba looks here, too, where it finds nothing that writes to an array that is read-only.)
    if _is_read_only(x):
        raise NumbaTypeError(_WRITES)
    return None


def _in_place(x: Any, value: Any) -> Any:
    # (Asked before Numba's own rule, which fails on all read-only arrays. A NumbaError would have Numba go on
    # to it.)
    if _is_read_only(x):
        raise TypeError(_WRITES)
    return None


for _operator in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
):
    overload(getattr(operator, f"i{_operator}"), target="cpu")(_in_place)


# What writes without asking Numba whether it may.


@overload(operator.setitem, target="cpu")
def _(x: Any, index: Any, value: Any) -> Any:
    if isinstance(x, types.NumpyFlatType) and _is_read_only(x.array_type):
        raise TypeError(_WRITES)
    return None


@overload(np.fill_diagonal, target="cpu")
def _(a: Any, val: Any, wrap: Any = False) -> Any:
    if _is_read_only(a):
        raise TypeError(_WRITES)
    return None


@overload(np.dot, target="cpu")
def _(a: Any, b: Any, out: Any = None) -> Any:
    if _is_read_only(out):
        raise TypeError(_WRITES)
    return None


@overload_classmethod(HostArrayType, "_allocate")
def _(cls: Any, size: Any, align: Any) -> Any:
    # Numba wants one signature of both, annotations included.
    def allocate(cls: Any, size: Any, align: Any) -> Any:
        return intrin_alloc(size, align)  # pyright: ignore

    return allocate


@typeof_impl.register(AbstractArray)
def _(x: Any, context: Any) -> Any:
    exported = verbs.numpy_view(x)  # refuses a device's arrays, with the cure
    dtype = numpy_support.from_dtype(exported.dtype)
    if not exported.ndim:
        return dtype
    layout = numpy_support.map_layout(exported)
    return HostArrayType(dtype, exported.ndim, layout, readonly=not exported.flags.writeable)


@unbox(HostArrayType)
def _(typ: Any, x: Any, c: Any) -> Any:
    exported = c.pyapi.object_getattr_string(x, EXPORT)
    failed = cgutils.alloca_once_value(c.builder, cgutils.true_bit)
    native = cgutils.alloca_once(c.builder, c.context.get_value_type(typ))
    with c.builder.if_then(cgutils.is_not_null(c.builder, exported)):
        unboxed = unbox_array(typ, exported, c)  # holds the exported array
        c.builder.store(unboxed.value, native)
        c.builder.store(unboxed.is_error, failed)
        c.pyapi.decref(exported)
    return NativeValue(c.builder.load(native), is_error=c.builder.load(failed))


@box(HostArrayType)
def _(typ: Any, native: Any, c: Any) -> Any:
    array = box_array(typ, native, c)
    made = cgutils.alloca_once_value(c.builder, array)
    with c.builder.if_then(cgutils.is_not_null(c.builder, array)):
        convert = c.pyapi.unserialize(c.pyapi.serialize_object(returned))
        c.builder.store(c.pyapi.call_function_objargs(convert, (array,)), made)
        c.pyapi.decref(convert)
        c.pyapi.decref(array)
    return c.builder.load(made)


@lower_constant(HostArrayType)
def _(context: Any, builder: Any, typ: Any, x: Any) -> Any:
    return constant_array(context, builder, typ, np.asarray(x))


def returned(array: np.ndarray) -> Any:
    """A result of Numba's as a HostArray: without a copy where nobody else has its memory."""
    owner: Any = array.base
    if getattr(owner, "size", 0) and hasattr(owner, "refcount"):  # memory that Numba allocated
        return wrap(HostArray, Leaf(array)) if owner.refcount == 1 else HostArray(array)
    # An argument, or a part of one. What is read-only stays as it is while somebody holds it.
    if array.flags.writeable:
        return share(array)
    return wrap(HostArray, Leaf(array.view()))
