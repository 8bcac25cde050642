"""What NumPy's libraries do for HostArray: products and scans. These are barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import leaf_family, raise_places
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf


def _result(data: np.ndarray, *operands: np.ndarray) -> Any:
    if counters.active:
        counters.add(launches=1, bytes_read=sum(x.nbytes for x in operands), bytes_written=data.nbytes)
    return wrap(HostArray, Leaf(np.asarray(data)))


@verbs.matmul.method
def _(x1: AbstractArray, x2: AbstractArray) -> Any:
    f1, f2 = leaf_family(type(x1)), leaf_family(type(x2))
    if f1 is not f2:
        raise_places("matmul", (x1, x2))
    if not x1.ndim or not x2.ndim:
        raise ValueError("matmul takes arrays of at least one dimension; use * with a scalar.")
    if x1.shape[-1] != x2.shape[-2 if x2.ndim > 1 else 0]:
        raise ValueError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not fit: the last dimension of the first "
            f"({x1.shape[-1]}) must equal the last but one of the second. Transpose one with x.T."
        )
    return f1._matmul(x1, x2)


@verbs.matmul.method
def _(x1: AbstractArray, x2: np.ndarray) -> Any:
    return verbs.matmul(x1, _wrapped(x1, x2))


@verbs.matmul.method
def _(x1: np.ndarray, x2: AbstractArray) -> Any:
    return verbs.matmul(_wrapped(x2, x1), x2)


def _wrapped(like: AbstractArray, x: np.ndarray) -> Any:
    family = leaf_family(type(like))
    if family.home.rank >= 2:
        raise_places("matmul", (like, x))
    return wrap(family, family._wrap_numpy(x))


def host_matmul(x1: Any, x2: Any) -> Any:
    a, b = verbs.leaf_of(x1).view, verbs.leaf_of(x2).view
    return _result(np.matmul(a, b), a, b)


HostArray._matmul = staticmethod(host_matmul)  # type: ignore[method-assign, assignment]


@verbs.accumulate.method
def _(x: AbstractArray, op: Any = None, axis: Any = None, init: Any = None) -> Any:
    family = leaf_family(type(x))
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"accumulate needs an axis for an array of {x.ndim} dimensions: axis=0, say.")
        axis = 0
    (axis,) = normal_axes(axis, x.ndim)
    return family._accumulate(x, op, axis)


def host_accumulate(x: Any, op: Any, axis: int) -> Any:
    view = verbs.leaf_of(x).view
    ufunc = scan_ufunc(op)
    if ufunc is not None:
        return _result(ufunc.accumulate(view, axis=axis), view)
    from mirabelle.backends.host.folds import scan

    moved = np.moveaxis(view, axis, -1)
    out = scan(op, moved.reshape(-1, moved.shape[-1]))
    return _result(np.ascontiguousarray(np.moveaxis(out.reshape(moved.shape), -1, axis)), view)


def scan_ufunc(op: Any) -> Any:
    """The NumPy ufunc a scan runs, or None for a user's function."""
    if op is None:
        return np.add
    name = op if isinstance(op, str) else getattr(op, "__name__", "")
    if isinstance(op, (str, np.ufunc)) or hasattr(op, "core"):
        ufunc = getattr(np, name, None)
        if not isinstance(ufunc, np.ufunc) or ufunc.nin != 2:
            raise ValueError(
                f"{op!r} is not an operation to accumulate with. Give 'add', 'multiply', 'maximum', "
                "'minimum' or a function of two scalars."
            )
        return ufunc
    return None


HostArray._accumulate = staticmethod(host_accumulate)  # type: ignore[method-assign, assignment]
