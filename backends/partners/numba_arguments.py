"""Numba: our arrays as arguments and results of its own compiled functions.

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

from contextlib import ExitStack
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.buffers import EXPORT
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray, share
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


def register() -> None:
    """Teach Numba the type; called once, when Numba is there."""
    from numba.core import cgutils, types
    from numba.core.boxing import box_array, unbox_array
    from numba.extending import NativeValue, box, lower_builtin, register_model, typeof_impl, unbox
    from numba.core.imputils import lower_constant
    from numba.np import numpy_support
    from numba.np.arrayobj import constant_array

    HostType = _host_type(types)
    register_model(HostType)(_model())

    @typeof_impl.register(AbstractArray)
    def _(x: Any, c: Any) -> Any:
        exported = verbs.numpy_view(x)  # refuses a device's arrays, with the cure
        dtype = numpy_support.from_dtype(x.dtype)
        if not x.ndim:
            return dtype
        return HostType(dtype, x.ndim, numpy_support.map_layout(exported), not exported.flags.writeable)

    @unbox(HostType)
    def _(typ: Any, x: Any, c: Any) -> Any:
        exported = c.pyapi.object_getattr_string(x, EXPORT)
        failed = cgutils.alloca_once_value(c.builder, cgutils.true_bit)
        native = cgutils.alloca_once(c.builder, c.context.get_value_type(typ))
        with c.builder.if_then(cgutils.is_not_null(c.builder, exported)):
            unboxed = unbox_array(typ, exported, c)
            c.builder.store(unboxed.value, native)
            c.builder.store(unboxed.is_error, failed)
            c.pyapi.decref(exported)
        return NativeValue(c.builder.load(native), is_error=c.builder.load(failed))

    @box(HostType)
    def _(typ: Any, native: Any, c: Any) -> Any:
        array = box_array(typ, native, c)
        with ExitStack() as stack:
            cgutils.early_exit_if_null(c.builder, stack, array)
        convert = c.pyapi.unserialize(c.pyapi.serialize_object(returned))
        made = c.pyapi.call_function_objargs(convert, (array,))
        c.pyapi.decref(convert)
        c.pyapi.decref(array)
        return made

    @lower_constant(HostType)
    def _(context: Any, builder: Any, typ: Any, x: Any) -> Any:
        return constant_array(context, builder, typ, np.asarray(x))
