"""Samplers run by NumPy: the samplers as they stand, on blocks of elements that stay in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.random.samplers import ATTEMPTS, Draw, Sampler

# Elements of a block; a multiple of every sampler's lanes.
BLOCK = 1 << 13


def fill(dest: np.ndarray, draw: Draw, starts: np.ndarray) -> None:
    """Fill the rows of `dest`; `starts` has the place of each row's first element in the whole array."""
    rows, length = dest.shape
    for row in range(rows):
        for first in range(0, length, BLOCK):
            last = min(first + BLOCK, length)
            at = row * length
            fill_piece(dest[row, first:last], draw, int(starts[row]) + first, at + first)


def fill_piece(out: np.ndarray, draw: Draw, start: int, position: int) -> None:
    """Fill neighbouring elements: from `start` in the whole array, from `position` in the parameters."""
    sampler = draw.sampler
    stream = tuple(np.uint64(w) for w in draw.stream)
    # Numbers become arrays of one element: NumPy's scalars have other rules for overflow.
    parameters = [
        p[position : position + len(out)] if isinstance(p, np.ndarray) else np.array([p], d)
        for p, d in zip(draw.parameters, sampler.parameters, strict=True)
    ]
    if sampler.block is None:
        refused = np.arange(len(out))
    else:
        refused = first_values(out, sampler, stream, start, parameters)
    attempt = 0 if sampler.block is None else 1
    while len(refused):
        assert sampler.again is not None
        index = refused.astype(np.uint64) + np.uint64(start)
        chosen = [p if len(p) == 1 else p[refused] for p in parameters]
        accepted, values = sampler.again(index, np.uint64(attempt), stream, *chosen)
        accepted = np.broadcast_to(accepted, refused.shape)
        out[refused] = values
        attempt += 1
        if attempt >= ATTEMPTS:
            return
        refused = refused[~accepted]


def first_values(
    out: np.ndarray, sampler: Sampler, stream: Any, start: int, parameters: list[Any]
) -> np.ndarray:
    """What blocks of words give; the elements that were refused."""
    assert sampler.block is not None
    lanes = sampler.lanes
    places = np.arange(start // lanes, -(-(start + len(out)) // lanes), dtype=np.uint64)
    made = sampler.block(places, stream, *parameters)
    inside = slice(start % lanes, start % lanes + len(out))
    out[:] = np.stack(made[-lanes:], axis=1).reshape(-1)[inside]
    if sampler.again is None:
        return np.empty(0, np.int64)
    accepted = np.stack(made[:lanes], axis=1).reshape(-1)[inside]
    return np.flatnonzero(~accepted)
