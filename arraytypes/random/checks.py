"""What the parameters of a distribution may be, and the error if they are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import as_numpy, wrap
from mirabelle.arraytypes.elementwise import leaf_family, raise_places
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import policy, verbs
from mirabelle.dispatch.tree import Leaf, broadcast_shapes

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def parameter(family: Any, name: str, x: Any, whole: bool = False) -> Any:
    """A parameter as a Python number, or as an array of the place where numbers are made.

    Arrays are of real numbers, unless the parameter is `whole`.
    """
    if isinstance(x, (bool, int, float)):
        return x
    if isinstance(x, (list, tuple)):
        data = as_numpy(x, None)
        x = wrap(family, Leaf(family._upload(data))) if data.ndim else data
    if isinstance(x, (np.ndarray, np.generic)):
        checked_dtype(x.dtype)
        if not x.ndim:
            x = x.item()
        elif family.home.rank < 2:
            x = as_array(x)
        elif policy.transfer_allowed():
            x = verbs.adapt(family, x)
        else:
            raise_places(f"the parameter {name}", (family, x))
    if isinstance(x, AbstractArray):
        if leaf_family(type(x)) is not family:
            if not policy.transfer_allowed() and x.ndim:
                raise_places(f"the parameter {name}", (family, x))
            x = verbs.adapt(family, x)
        if x.dtype.kind == "c":
            raise TypeError(f"{name} is real, and this array is {x.dtype.name}. Give mb.real({name}).")
        return x if whole or x.dtype in _FLOATS else verbs.astype(x, np.float64)
    if isinstance(x, (bool, int, float)):
        return x
    raise TypeError(f"{name} is a number or an array of numbers, not {x!r}.")


def integer(name: str, x: Any) -> Any:
    """A parameter that counts something, as 64-bit integers."""
    if isinstance(x, float):
        if not x.is_integer():
            raise TypeError(f"{name} is a whole number, not {x!r}. Round it first: int({name}).")
        return int(x)
    if isinstance(x, AbstractArray):
        if x.dtype.kind not in "biu":
            raise TypeError(
                f"{name} is a whole number, and this array is {x.dtype.name}. Convert it: "
                f"{name}.astype(mb.int64)."
            )
        return verbs.astype(x, np.int64, copy=False)
    return int(x)


def any_of(condition: Any) -> bool:
    """Is it so for a number, or for some element of an array?"""
    return bool(verbs.any(condition)) if isinstance(condition, AbstractArray) else bool(condition)


def all_of(condition: Any) -> bool:
    return bool(verbs.all(condition)) if isinstance(condition, AbstractArray) else bool(condition)


def _refuse(text: str, x: Any) -> None:
    shown = f"an array of shape {x.shape}" if isinstance(x, AbstractArray) else repr(x)
    raise ValueError(f"{text}: {shown} was given.")


def not_negative(name: str, x: Any) -> None:
    """NumPy's rule for scales: NaN passes, and gives NaN."""
    if any_of(x < 0):
        _refuse(f"{name} < 0", x)


def positive(name: str, x: Any) -> None:
    if not all_of(x > 0):
        _refuse(f"{name} <= 0", x)


def finite(name: str, x: Any, most: float = 1e300) -> None:
    """Not negative, nor infinite, nor NaN: for samplers that reject, and would look for a number for ever."""
    if not all_of((x >= 0) & (x <= most)):
        _refuse(f"{name} < 0" if any_of(x < 0) else f"{name} is too large, or NaN", x)


def probability(name: str, x: Any, zero: bool = True, one: bool = True) -> None:
    inside = ((x >= 0) if zero else (x > 0)) & ((x <= 1) if one else (x < 1))
    if not all_of(inside):
        _refuse(f"{name} {'<' if zero else '<='} 0, {name} {'>' if one else '>='} 1 or {name} is NaN", x)


def float_dtype(dtype: Any, out: Any, method: str) -> np.dtype:
    """The dtype of a continuous distribution: float64 unless told, by `dtype` or by `out`."""
    if dtype is None:
        dtype = np.float64 if out is None else out.dtype
    d = checked_dtype(dtype)
    if d not in _FLOATS:
        raise TypeError(f"Unsupported dtype {d!r} for {method}. Take mb.float64 or mb.float32.")
    if out is not None and out.dtype != d:
        raise TypeError(f"Supplied output array has the wrong type. Expected {d.name}, got {out.dtype.name}.")
    return d


def output_shape(size: tuple[int, ...] | None, out: Any, parameters: Any) -> tuple[int, ...]:
    """The shape of the result: of `out`, of `size`, or of the parameters together."""
    shapes = [p.shape for p in parameters if isinstance(p, AbstractArray)]
    shape = broadcast_shapes(shapes, "the parameters") if shapes else ()
    if out is not None:
        if size is not None and size != out.shape:
            raise ValueError(
                f"size must match out.shape when used together: size is {size}, out.shape {out.shape}."
            )
        size = out.shape
    if size is None:
        return shape
    if not fits(shape, size):
        raise ValueError(f"Output size {size} is not compatible with broadcast dimensions of inputs {shape}.")
    return size


def fits(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    """Can parameters of this shape be stretched to that size?"""
    pairs = zip(reversed(shape), reversed(size), strict=False)
    return len(shape) <= len(size) and all(n in (1, m) for n, m in pairs)
