"""What NumPy's libraries do for HostArray: products and scans. These are barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.matmul import product
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf


def _result(data: np.ndarray, *operands: np.ndarray) -> Any:
    if counters.active:
        counters.add(launches=1, bytes_read=sum(x.nbytes for x in operands), bytes_written=data.nbytes)
    return wrap(HostArray, Leaf(np.asarray(data)))


@library.matrix_product.method
def _(family: type[HostArray], x1: Any, x2: Any) -> Any:
    a, b = verbs.leaf_of(x1).view, verbs.leaf_of(x2).view
    with np.errstate(all="ignore"):
        return _result(product(a, b), a, b)


@library.scan.method
def _(family: type[HostArray], x: Any, op: Any, axis: int) -> Any:
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
