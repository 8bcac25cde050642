"""Memory filled by samplers: new arrays, arrays that exist, and pieces of a larger array.

An element's numbers depend on its place in the whole array alone. So a piece of an array, wherever
it lies, is filled by saying where its rows begin in the whole.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import nobody_else, written
from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.random.samplers import TABLE, Draw, Sampler
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.tree import Leaf

# Places have 48 bits of the counter.
PLACES = 1 << 48


class Piece:
    """Which part of a larger array is to be made: a block of the shape of the result at `offset`."""

    __slots__ = ("offset", "total")

    def __init__(self, offset: tuple[int, ...], total: tuple[int, ...]) -> None:
        if len(offset) != len(total) or any(o > n for o, n in zip(offset, total, strict=True)):
            raise ValueError(f"A piece at {offset} does not lie in an array of shape {total}.")
        self.offset = offset
        self.total = total

    def starts(self, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """The places in the whole of the first elements of the block's rows, and their length."""
        # Dimensions beyond those of the whole are complete (the components of a vector).
        more = shape[len(self.total) :]
        total = (*self.total, *more)
        offset = (*self.offset, *(0 for _ in more))
        if len(shape) < len(total) or any(o + n > t for o, n, t in zip(offset, shape, total, strict=True)):
            raise ValueError(
                f"A piece of shape {shape} at {self.offset} does not lie in an array of shape {self.total}. "
                "Give `size` the shape of the piece."
            )
        check_places(total)
        # The innermost dimensions that are complete make one row with the first that is not.
        inner = len(shape)
        while inner > 1 and shape[inner - 1] == total[inner - 1]:
            inner -= 1
        inner = max(inner - 1, 0)
        steps = [math.prod(total[d + 1 :]) for d in range(len(total))]
        start = np.array(sum(o * s for o, s in zip(offset, steps, strict=True)), np.int64)
        for d in range(inner):
            start = start[..., None] + np.arange(shape[d], dtype=np.int64) * steps[d]
        return np.ascontiguousarray(start.reshape(-1)), math.prod(shape[inner:])


def check_places(shape: tuple[int, ...]) -> None:
    if math.prod(shape) >= PLACES:
        raise ValueError(f"An array of shape {shape} has more elements than can be numbered (2**48).")


def rows_of(shape: tuple[int, ...], piece: Piece | None) -> tuple[np.ndarray, int]:
    """Where the rows of a result begin in the whole array, and their length."""
    if piece is not None:
        return piece.starts(shape)
    check_places(shape)
    return np.zeros(1, np.int64), math.prod(shape)


def new(
    family: Any,
    sampler: str,
    stream: tuple[int, int, int, int],
    shape: tuple[int, ...],
    dtype: np.dtype,
    parameters: tuple[Any, ...] = (),
    piece: Piece | None = None,
) -> Any:
    """A new array from a sampler. Parameters are numbers, or arrays that broadcast to `shape`."""
    view = family._empty(shape, dtype)
    fill(family, view, TABLE[sampler], stream, parameters, piece)
    return wrap(family, Leaf(view))


@by_type
def fill(
    family: Any,
    view: Any,
    sampler: Sampler,
    stream: tuple[int, int, int, int],
    parameters: tuple[Any, ...],
    piece: Piece | None,
) -> None:
    """Fill a contiguous view, which is a piece of a whole, with random numbers."""


@fill.method
def _(
    family: type[DenseArray],
    view: Any,
    sampler: Sampler,
    stream: tuple[int, int, int, int],
    parameters: tuple[Any, ...],
    piece: Piece | None,
) -> None:
    starts, length = rows_of(view.shape, piece)
    if not view.size:
        return
    # (The arrays are kept until the backend has read their memory.)
    arrays = [
        each(p, view.shape, d) if isinstance(p, AbstractArray) else p
        for p, d in zip(parameters, sampler.parameters, strict=True)
    ]
    flat = tuple([
        verbs.leaf_of(a).view.reshape((view.size,)) if isinstance(a, AbstractArray) else a for a in arrays
    ])  # fmt: skip
    draw(family, view.reshape((len(starts), length)), Draw(sampler, stream, flat), starts)


@by_type
def draw(family: Any, dest: Any, drawn: Draw, starts: np.ndarray) -> None:
    """Fill the rows of a view; `starts` has the place of each row's first element in the whole array."""


@draw.method
def _(family: type[DenseArray], dest: Any, drawn: Draw, starts: np.ndarray) -> None:
    name = family.__name__
    raise TypeError(
        f"{name} makes no random numbers. Make them with mb.random.default_rng(seed, device=mb.HostArray) and "
        f"move them, or give it a method of `draw` (mirabelle.arraytypes.random.filling), as "
        "backends/host/random.py does."
    )


def each(x: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A parameter with a value for each element, one after the other in memory."""
    x = verbs.astype(x, dtype, copy=False)
    if x.shape != shape:
        x = verbs.broadcast_to(x, shape)
    return x if verbs.leaf_of(x).view.flags.c_contiguous else verbs.copy(x)


def in_place(x: Any) -> Any:
    """The memory of `x`, if a sampler may write straight to it; else None."""
    if not isinstance(x, DenseArray) or type(x._node) is not Leaf:
        return None
    leaf = x._node
    if not leaf.view.flags.c_contiguous:
        return None
    if not leaf.foreign and not nobody_else(leaf, None, []):
        return None
    written(leaf)
    # A reduction of the old contents must not be found by one of the new.
    leaf.reducers = None
    return leaf.view
