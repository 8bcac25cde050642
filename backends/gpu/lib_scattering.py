"""Writing to places that an index gives, on a card.

The outcome is always the same, also where an index repeats: of plain writes the last one stays, as in
NumPy, and what is combined is combined in one order. Integers, whose sums do not depend on an order,
are combined by atomic operations; other values are brought together by sorting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.backends.gpu import masks as masks  # (places that are named once: a kernel of our own)
from mirabelle.backends.gpu.lib_segments import ASSOCIATIVE, totals_of_runs
from mirabelle.backends.gpu.lib_sorting import argsort
from mirabelle.backends.gpu.library import absent, number, routine

# A plain write that names at least this share of the places finds its last writers without sorting.
_DENSE = 8
# Operations that undo another: values are combined by that one, and then applied once.
_INVERSE = {"subtract": "add", "divide": "multiply", "true_divide": "multiply"}
# The dtypes for which CUDA has atomic operations on integers.
_ATOMIC = {
    "add": "il" + "IL" + "qQ",
    "subtract": "il" + "IL" + "qQ",
    "maximum": "iI",
    "minimum": "iI",
}


@routine("bounds")
def _(xp: Any, index: Any) -> tuple[int, int]:
    """The least and the largest entry: read together."""
    low, high = xp.stack([index.min(), index.max()]).tolist()
    return int(low), int(high)


@routine("scatter")
def scatter(xp: Any, into: Any, value: Any, *indices: Any, op: str = "", distinct: bool = False) -> None:
    """into[indices] = value, or combined with what is there; the indices are of one shape, and within.

    `distinct`: no place is named twice.
    """
    if not indices:  # slices and numbers name each place once
        value = value if isinstance(value, xp.ndarray) else number(xp, value, into.dtype)
        into[...] = getattr(xp, op)(into, value).astype(into.dtype, copy=False) if op else value
        return
    shape = into.shape[: len(indices)]
    rest = into.shape[len(indices) :]
    count = indices[0].size
    if not count or not into.size:
        return
    where: tuple[Any, ...] = tuple(i.reshape(-1).astype(np.int64, copy=False) for i in indices)
    values = value if isinstance(value, xp.ndarray) else number(xp, value, into.dtype)
    values = xp.broadcast_to(values, (*indices[0].shape, *rest)).reshape(count, *rest)
    if op and _atomically(xp, into, values, where, op):
        return
    if not op and (distinct or (values.strides and not any(values.strides))):
        into[where] = values  # (one value has no last writer)
        return
    flat = _flat(where, shape)
    if not op:
        into[where] = values[_last_writers(xp, flat, math.prod(shape))]
        return
    name = _INVERSE.get(op, op)
    truncating = name == "multiply" != op and into.dtype.kind not in "fc"
    if name not in ASSOCIATIVE or truncating:
        raise NotImplementedError(
            f"{op} at repeated places depends on their order, which cards do not keep. Move the data to the "
            "host, `mb.adapt(mb.HostArray, x)`, or combine with one of: " + ", ".join(sorted(ASSOCIATIVE)) + "."
        )
    order = argsort(xp, flat)
    places = tuple(i[order] for i in where)
    before = into[places]
    if op.startswith("logical"):  # (CuPy's take truth values, and no complex numbers)
        values, before = values != 0, before != 0
    total = totals_of_runs(xp, getattr(xp, name), flat[order], values[order])
    into[places] = getattr(xp, op)(before, total).astype(into.dtype, copy=False)


def _flat(where: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Several indices as one."""
    flat = where[0]
    for i, n in zip(where[1:], shape[1:], strict=True):
        flat = flat * n + i
    return flat


def _last_writers(xp: Any, flat: Any, size: int) -> Any:
    """For each write, the last one to the same place: where all write that one's value, it stays."""
    count = flat.size
    if size <= _DENSE * count and count < 2**31:
        latest = xp.zeros(size, np.int32)
        xp.maximum.at(latest, flat, xp.arange(count, dtype=np.int32))
        return latest[flat]
    order = argsort(xp, flat)
    return order[xp.searchsorted(flat[order], flat, side="right") - 1]


def _atomically(xp: Any, into: Any, values: Any, where: tuple[Any, ...], op: str) -> bool:
    if into.dtype.char not in _ATOMIC.get(op, ""):
        return False
    if op in ("add", "subtract") and into.dtype.kind == "i":
        # Modulo a power of two sums are the same without a sign; of 64 bits, CUDA adds only such.
        unsigned = np.dtype(f"u{into.itemsize}")
        into, values = into.view(unsigned), values.view(unsigned)
    if op == "subtract":
        op, values = "add", xp.negative(values)
    getattr(xp, op).at(into, where, values)
    return True


for _name in ("power", "floor_divide", "remainder"):
    absent(f"{_name}.reduceat", "Segments are reduced in no order on a card.")
