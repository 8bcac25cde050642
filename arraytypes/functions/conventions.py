"""NumPy's spelling of functions that the array API standard spells otherwise.

`np.sort(x, kind="stable")`, `np.take(x, i, mode="clip")` and `x.argmax(out=y)` come here, and so do
`mb.sort(x, kind="stable")` and `mb.sum(x, where=mask)`: calls of ours with arguments that only NumPy has.
Functions whose arguments are the same by name go to ours directly (see `arraytypes/interop.py`).
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import check_cast
from mirabelle.arraytypes.define import as_array, as_selection, is_elsewhere
from mirabelle.arraytypes.functions import (
    picking,
    searching,
    sets,
    sorting,
    turning,
)
from mirabelle.arraytypes.functions.choosing import place, write_where
from mirabelle.arraytypes.functions.elementary import around
from mirabelle.arraytypes.functions.joining import lies_in_columns, room_for
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.functions.reducing import (
    _flag,
    _given,
    all,
    amax,
    amin,
    any,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import with_options

round = around


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return into(out, searching.argmax(a, axis=axis, keepdims=_flag(keepdims)))


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return into(out, searching.argmin(a, axis=axis, keepdims=_flag(keepdims)))


def _is_stable(kind: Any, stable: Any) -> bool:
    if kind is not None and stable is not None:
        raise ValueError(
            "`kind` and keyword parameters can't be provided at the same time. Use only one of them."
        )
    if kind is not None and str(kind)[:1].lower() not in "qhms":
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return bool(stable) if stable is not None else str(kind)[:1].lower() in "ms"


def _check_order(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    _check_order(order)
    return sorting.sort(a, axis=axis, descending=descending, stable=_is_stable(kind, stable))


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    _check_order(order)
    return sorting.argsort(a, axis=axis, descending=descending, stable=_is_stable(kind, stable))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    return into(out, picking.take(a, as_selection(indices, as_array(a)), axis=axis, mode=mode))


def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None,
    casting: Any = "same_kind",
) -> Any:  # fmt: skip
    low, high = (
        short if _given(short) else long if _given(long) else None
        for short, long in ((min, a_min), (max, a_max))
    )
    x = as_array(a)
    low, high = (as_array(v, x) if is_elsewhere(v) else v for v in (low, high))
    return into(out, verbs.clip(x, low, high), casting)


def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    x = as_array(a)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)

    if order == "A":
        flags = x.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order == "C":
        return verbs.reshape(x, shape, copy=copy)
    if order != "F":
        raise ValueError(f"order must be one of 'C', 'F', or 'A' (got {order!r}).")
    return turning.transpose(verbs.reshape(turning.transpose(x), shape[::-1], copy=copy))


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    x = as_array(a)
    if order in ("K", "A") and x.ndim > 1 and lies_in_columns(x):
        return verbs.assign(room_for([x], x.dtype, x.shape), x)
    if order == "F":
        return turning.transpose(verbs.copy(turning.transpose(x)))
    return verbs.copy(x)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    if isinstance(dst, np.ndarray):
        given, mask = (verbs.numpy_view(v) if isinstance(v, AbstractArray) else v for v in (src, where))
        np.copyto(dst, given, casting, mask)
        return dst
    src = as_array(src, dst) if is_elsewhere(src) and not isinstance(src, (list, tuple)) else src
    if where is True:
        check_cast(src, dst.dtype, casting)
        verbs.assign(dst, src)
    else:
        write_where(dst, src, where, casting)
    return dst


# What the operation itself takes.
_ALIKE = (AbstractArray, bool, int, float, complex, np.generic)


def _numbers_beside_numpy(given: tuple[Any, ...]) -> bool:
    """Are NumPy's arrays given, and of ours only such as would be numbers with NumPy?

    Other libraries that choose between an array of theirs and a number go on with an array of NumPy's (pandas'
    `clip`): ours have not all of its methods.
    """
    ours = [v for v in given if isinstance(v, AbstractArray)]
    return builtins.all(isinstance(v, HostArray) and not v.ndim for v in ours) and builtins.any(
        isinstance(v, np.ndarray) and v.ndim for v in given
    )


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if (x is None) != (y is None):
        raise ValueError(
            "either both or neither of x and y should be given, and one is None. Write `mb.where(mask, x, y)`, "
            "or `mb.where(mask)` for the places where it holds."
        )
    if x is None:
        return picking.nonzero(condition)
    given = condition, x, y
    if isinstance(condition, _ALIKE) and isinstance(x, _ALIKE) and isinstance(y, _ALIKE):
        return verbs.where(condition, x, y)
    if _numbers_beside_numpy(given):
        return np.where(*[verbs.numpy_view(v)[()] if isinstance(v, AbstractArray) else v for v in given])
    first = next((v for v in given if isinstance(v, AbstractArray)), None)
    return verbs.where(*(as_array(v, first) if is_elsewhere(v) else v for v in given))


def real(val: Any) -> Any:
    return as_array(val).real


def imag(val: Any) -> Any:
    return as_array(val).imag


def dot(a: Any, b: Any, out: Any = None) -> Any:
    first = a if isinstance(a, AbstractArray) else b
    return into(out, verbs.dot(as_array(a, first), as_array(b, first)))


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Arrays of objects, which matplotlib has among numbers, stay NumPy's."""
    first = next((x for x in args if isinstance(x, AbstractArray)), None)
    given = [
        x if isinstance(x, np.ndarray) and x.dtype.kind not in "biufc" else as_array(x, first)
        for x in (x if isinstance(x, AbstractArray) else _as_given(x) for x in args)
    ]
    shape = np.broadcast_shapes(*[x.shape for x in given])
    return tuple((np if isinstance(x, np.ndarray) else verbs).broadcast_to(x, shape) for x in given)


def _as_given(x: Any) -> Any:
    """`x` as NumPy's array if it holds no numbers, else as it is."""
    n = np.asarray(x)
    return x if n.dtype.kind in "biufc" else n


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*[a.dtype if isinstance(a, AbstractArray) else a for a in arrays_and_dtypes])


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_.dtype if isinstance(from_, AbstractArray) else from_, to, casting)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    return sets.isin(element, test_elements, invert=invert)


def _text(f: Any) -> Any:
    """NumPy's formatting: of the values, which a text shows anyway."""

    def formatted(a: Any, *args: Any, **kwargs: Any) -> str:
        return f(verbs.to_numpy(a), *args, **kwargs)  # type: ignore[no-any-return]

    return formatted


array2string, array_repr, array_str = _text(np.array2string), _text(np.array_repr), _text(np.array_str)


CONVENTIONS: dict[str, Any] = {
    f.__name__: f
    for f in (
        all, any, argmax, argmin, argsort, broadcast_arrays, can_cast, clip, copy, copyto, count_nonzero,
        dot, imag, isin, mean, place, prod, real, reshape, result_type,
        sort, std, sum, take, var, where,
    )
} | {
    "amax": amax, "amin": amin, "max": max, "min": min, "round": round, "around": around,
    "array2string": array2string, "array_repr": array_repr, "array_str": array_str,
}  # fmt: skip

# What answers a call of ours with arguments that only NumPy's function has.
for _ours, _numpys in (
    *((getattr(verbs, f.__name__), f)
      for f in (all, any, clip, copy, copyto, dot, max, mean, min, place, prod, reshape, std, sum, var)),
    (picking.take, take), (searching.argmax, argmax), (searching.argmin, argmin),
    (sets.isin, isin), (sorting.argsort, argsort), (sorting.sort, sort),
):  # fmt: skip
    _ours.further(_numpys)
    with_options(_ours, _numpys)


@verbs.where.method
def _(condition: Any, x1: Any, x2: None) -> Any:
    return where(condition, x1, x2)
