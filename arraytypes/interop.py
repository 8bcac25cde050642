"""NumPy's functions on our arrays: np.sin(x), np.add(x, y, out=z), np.sum(x) stay here."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import TABLE

# NumPy's ufunc → our generic function.
UFUNCS: dict[Any, Any] = {
    TABLE[name].ufunc: verb
    for name, verb in verbs.ELEMENTWISE.items()
    if TABLE[name].ufunc is not None  # type: ignore[misc]
}
UFUNCS[np.matmul] = verbs.matmul
UFUNCS[np.fabs] = verbs.abs

_REDUCE = {
    np.add: verbs.sum, np.multiply: verbs.prod, np.minimum: verbs.min, np.maximum: verbs.max,
    np.logical_or: verbs.any, np.logical_and: verbs.all,
}  # fmt: skip

FUNCTIONS: dict[Any, Any] = {
    np.sum: verbs.sum, np.prod: verbs.prod, np.min: verbs.min, np.max: verbs.max, np.amin: verbs.min,
    np.amax: verbs.max, np.any: verbs.any, np.all: verbs.all, np.mean: verbs.mean,
    np.count_nonzero: verbs.count_nonzero, np.where: verbs.where, np.clip: verbs.clip,
    np.reshape: verbs.reshape, np.broadcast_to: verbs.broadcast_to, np.real: verbs.real,
    np.imag: verbs.imag, np.dot: verbs.dot, np.copyto: verbs.copyto, np.round: verbs.round,
}  # fmt: skip


def numpy_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `ufunc(*inputs)` is when one of the inputs is ours."""
    out = kwargs.pop("out", None)
    if out is not None and len(out) != 1:
        return NotImplemented
    where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "same_kind")
    if method == "__call__" and not kwargs and ufunc in UFUNCS:
        if dtype is not None:
            inputs = tuple(verbs.astype(x, dtype) if isinstance(x, AbstractArray) else x for x in inputs)
        result = UFUNCS[ufunc].operator(*inputs)
    elif method == "reduce" and ufunc in _REDUCE and set(kwargs) <= {"axis", "keepdims"}:
        axis = kwargs.get("axis", 0)
        extra = {"dtype": dtype} if dtype is not None else {}
        result = _REDUCE[ufunc](inputs[0], axis=axis, keepdims=kwargs.get("keepdims", False), **extra)
    elif method == "accumulate" and set(kwargs) <= {"axis"}:
        result = verbs.accumulate(inputs[0], ufunc, kwargs.get("axis", 0))
    else:
        return NotImplemented
    if result is NotImplemented:
        return result
    if where is not True:
        if out is None:
            raise TypeError(
                f"np.{ufunc.__name__}(..., where=) leaves elements undefined without out=. Write "
                f"`mb.where(mask, mb.{UFUNCS[ufunc].__name__}(...), other)`."
            )
        result = verbs.where(where, result, out[0])
    if out is None:
        return result
    (dest,) = out
    if isinstance(dest, AbstractArray):
        return verbs.assign(dest, result, casting=casting)
    np.copyto(dest, verbs.numpy_view(result), casting=casting)
    return dest


def numpy_function(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a NumPy function that is no ufunc does with our arrays."""
    verb = FUNCTIONS.get(func)
    if func is np.array_equal:
        a, b = args
        return getattr(a, "shape", np.shape(a)) == getattr(b, "shape", np.shape(b)) and bool(
            verbs.all(verbs.equal(a, b))
        )
    if func is np.allclose:
        return bool(np.allclose(*[_numpy(a) for a in args], **kwargs))
    if func in (np.shape, np.ndim, np.size):
        return {np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}[func](*args)
    if func is np.transpose:
        return args[0].transpose(*args[1:], **kwargs) if not kwargs else args[0].transpose(kwargs["axes"])
    if func is np.result_type:
        return np.result_type(*[a.dtype if isinstance(a, AbstractArray) else a for a in args])
    if func in (np.std, np.var):
        ddof = kwargs.pop("ddof", 0)
        return {np.std: verbs.std, np.var: verbs.var}[func](*args, correction=ddof, **kwargs)
    if func in (np.zeros_like, np.ones_like, np.empty_like):
        from mirabelle.arraytypes import creation

        return getattr(creation, func.__name__)(*args, **kwargs)
    if func in (np.array2string, np.array_repr, np.array_str):
        return func(*[_numpy(a) for a in args], **kwargs)
    if func is np.cumsum:
        axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
        x = args[0] if axis is not None else verbs.reshape(args[0], (-1,))
        return verbs.accumulate(x, "add", 0 if axis is None else axis)
    if verb is None:
        raise TypeError(
            f"np.{func.__name__} does not know mirabelle's arrays, and nothing leaves them unasked. "
            f"Fetch the values first: `np.{func.__name__}(mb.to_numpy(x))`."
        )
    if func in (np.sum, np.prod, np.min, np.max, np.amin, np.amax, np.any, np.all, np.mean):
        names = ("axis",)
        kwargs.update(zip(names, args[1:], strict=False))
        out = kwargs.pop("out", None)
        result = verb(args[0], **{k: v for k, v in kwargs.items() if v is not np._NoValue})
        return result if out is None else verbs.assign(out, result)
    return verb(*args, **kwargs)


def _numpy(x: Any) -> Any:
    return verbs.to_numpy(x) if isinstance(x, AbstractArray) else x
