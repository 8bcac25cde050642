"""Programs that differ between ranks, as users write them by mistake: each has to end in an error on all.

Each takes the communicator; who does the other thing is rank 0. `ENDS` says of those that end on some ranks
while others wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mirabelle as mb

D = mb.DArray[mb.HostArray]


def other_shape(comm: Any) -> Any:
    u = mb.zeros((6 if comm.rank == 0 else 8,), device=D)
    return mb.to_numpy(u + 1)


def other_shape_of_as_many(comm: Any) -> Any:
    return mb.to_numpy(D(np.ones((3, 4) if comm.rank == 0 else (4, 3))))


def other_dtype(comm: Any) -> Any:
    return mb.to_numpy(D(np.ones((8, 3), "f4" if comm.rank == 0 else "f8")))


def other_dtype_of_one_size(comm: Any) -> Any:
    return mb.to_numpy(D(np.ones(8, "i8" if comm.rank == 0 else "f8")))


def other_reduction(comm: Any) -> Any:
    x = D(np.arange(12.0))
    if comm.rank == 0:
        return float(mb.sum(x))
    return float(mb.max(x))


def other_length_under_a_sum(comm: Any) -> Any:
    return float(mb.sum(D(np.ones(8 + comm.rank))))


def other_axis(comm: Any) -> Any:
    x = D(np.ones((6, 6)))
    return mb.to_numpy(mb.sum(x, axis=0 if comm.rank == 0 else 1))


def reading_and_reducing(comm: Any) -> Any:
    x = D(np.arange(12.0))
    if comm.rank == 0:
        return mb.to_numpy(x)
    return float(mb.sum(x))


def reduction_missing(comm: Any) -> Any:
    x = D(np.arange(12.0))
    if comm.rank != 0:
        mb.materialize(mb.max(x))
    return float(mb.sum(x))


def other_order(comm: Any) -> Any:
    x = D(np.arange(12.0))
    names = ("min", "max") if comm.rank == 0 else ("max", "min")
    return [float(getattr(mb, name)(x)) for name in names]


def other_shift(comm: Any) -> Any:
    x = D(np.arange(12.0))
    return mb.to_numpy(mb.roll(x, 1 if comm.rank == 0 else 2))


def other_scan(comm: Any) -> Any:
    x = D(np.arange(1.0, 13))
    return mb.to_numpy(mb.cumsum(x) if comm.rank == 0 else mb.cumprod(x))


def sort_of_a_part(comm: Any) -> Any:
    x = D(np.arange(12.0)[::-1].copy())
    return mb.to_numpy(mb.sort(x) if comm.rank == 0 else mb.sort(x[:9]))


def other_stencil(comm: Any) -> Any:
    x, y = D(np.arange(24.0)), mb.zeros(24, device=D)
    if comm.rank == 0:
        y[1:] = x[1:] - x[:-1]
    else:
        y[2:] = x[2:] - x[:-2]
    return mb.to_numpy(y)


def other_layout(comm: Any) -> Any:
    x = D(np.arange(36.0).reshape(6, 6), layout=mb.distributed.Block(0 if comm.rank == 0 else 1))
    return float(mb.sum(x))


def other_batch(comm: Any) -> Any:
    x = D(np.arange(12.0))
    with mb.distributed.batch():
        a, b = mb.sum(x), mb.max(x)
        c = mb.min(x) if comm.rank == 0 else b
    return float(a), float(b), float(c)


def other_message(comm: Any) -> Any:
    out = np.full(4, -99.0)
    comm.exchange({(comm.rank + 1) % comm.size: np.ones(2)}, {(comm.rank - 1) % comm.size: out})
    return out


def barrier_and_object(comm: Any) -> Any:
    return comm.barrier() if comm.rank == 0 else comm.allgather_object(1)


def equal_sums_in_other_order(comm: Any) -> Any:
    """(Only lines tell these apart.)"""
    x, y = D(np.arange(12.0)), D(np.ones(12))
    if comm.rank == 0:
        first = float(mb.sum(x))
        return first, float(mb.sum(y))
    second = float(mb.sum(y))
    return float(mb.sum(x)), second


PROGRAMS = [
    other_shape, other_shape_of_as_many, other_dtype, other_dtype_of_one_size, other_reduction,
    other_length_under_a_sum, other_axis, reading_and_reducing, reduction_missing, other_order, other_shift,
    other_stencil, other_scan, sort_of_a_part, other_layout, other_batch, other_message, barrier_and_object,
]  # fmt: skip


def right(comm: Any) -> Any:
    """What every rank does alike, after and between the others."""
    x = D(np.arange(12.0))
    return float(mb.sum(x)), mb.to_numpy(mb.roll(x * 2, 1)).tolist(), comm.allgather_object(comm.rank)
