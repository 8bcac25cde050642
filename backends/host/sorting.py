"""Sorts of the host: NumPy's for values, over threads, and stable orders by bytes (`dispatch/csrc/sorting.c`).

Equal values look alike, so values are sorted by NumPy's quickest algorithm, whatever is asked for. (Zeros of
either sign, and NaNs, are equal, and may come in any order among themselves.) Orders of long lines are stable,
whatever is asked for: by bytes that takes less time than NumPy's of either kind. Those of short lines, and all
without the pieces in C, are NumPy's.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, pool
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host import threads
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.settings import settings

# How elements are read as numbers in order: what sorting.c calls kinds.
_KINDS = {"b": 0, "u": 0, "i": 1, "f": 2}
# Longer lines are left to NumPy: there are four numbers of eight bytes for each element meanwhile.
_LONGEST = 1 << 28
# Of shorter lines NumPy's own sorts begin sooner: the stable one, the other.
_SHORT, _SOME = 16, 1000
# Values of one line are sorted by several threads from so many times `thread_size` on.
_TOGETHER = 4


def _workers(size: int) -> int:
    return 1 if size < settings.thread_size else settings.num_threads


def _edges(n: int, parts: int) -> list[int]:
    return [n * i // parts for i in range(parts + 1)]


@library.routine(HostArray, "sort")
def sort(x: np.ndarray, *, axis: int | None = -1, kind: str | None = None) -> np.ndarray:
    """The elements of each line along an axis in order."""
    out = x.flatten() if axis is None else _copied(x)
    axis = -1 if axis is None else axis
    parts = _workers(out.size)
    if not out.ndim or parts < 2:
        out.sort(axis=axis)
        return out
    lines = np.moveaxis(out, axis, -1)
    along = max(range(lines.ndim - 1), key=lambda d: lines.shape[d], default=None)
    if along is not None and lines.shape[along] >= parts:
        apart = np.moveaxis(lines, along, 0)
        pieces = 4 * parts if lines.shape[along] >= 64 * parts else parts
        _together([apart[a:b].sort for a, b in itertools.pairwise(_edges(len(apart), pieces))])
    elif lines.size < _TOGETHER * settings.thread_size:
        out.sort(axis=axis)
    else:
        # What belongs into each part of a line is brought there first, which is one step of the sort.
        middle = _edges(lines.shape[-1], parts)
        lines.partition(middle[1:-1], axis=-1)
        _together([lines[..., a:b].sort for a, b in itertools.pairwise(middle)])
    return out


def _copied(x: np.ndarray) -> np.ndarray:
    if not x.flags.c_contiguous:
        return x.copy(order="K")
    out = pool.empty(x.shape, x.dtype)
    out[...] = x
    return out


def _together(pieces: list[Callable[[], object]]) -> None:
    threads.run_all(pieces)


@library.routine(HostArray, "argsort")
def argsort(x: np.ndarray, *, axis: int | None = -1, kind: Any = None) -> np.ndarray:
    """Where the elements of each line along an axis are in order, equal ones as they come."""
    if axis is None:
        x, axis = x.reshape(-1), -1
    code = _KINDS.get(x.dtype.kind) if x.dtype.isnative and x.dtype.itemsize <= 8 else None
    shortest = _SHORT if kind == "stable" else _SOME
    if code is None or not x.size or not x.ndim or not shortest <= x.shape[axis] <= _LONGEST:
        return np.argsort(x, axis=axis, kind=kind)
    last = axis in (-1, x.ndim - 1)
    lines = np.ascontiguousarray(x if last else np.moveaxis(x, axis, -1))
    out = pool.empty(lines.shape, np.dtype(np.int64))
    count, parts = lines.size // lines.shape[-1], _workers(lines.size)
    if count >= parts:
        _together([
            functools.partial(in_c.argsort_lines, lines, code, out, a, b)
            for a, b in itertools.pairwise(_edges(count, parts if parts < 2 else min(count, 4 * parts)))
        ])  # fmt: skip
    else:
        for line, into in zip(lines.reshape(count, -1), out.reshape(count, -1), strict=True):
            _argsort_long(line, code, into, parts)
    return out if last else np.ascontiguousarray(np.moveaxis(out, -1, axis))


def _argsort_long(x: np.ndarray, code: int, out: np.ndarray, parts: int) -> None:
    """One line on several threads: parts of it, which are merged two by two."""
    n = x.size
    parts = 1 << (parts - 1).bit_length()
    records, scratch = (pool.empty((n, 2), np.dtype(np.int64)) for _ in range(2))
    edges = _edges(n, parts)
    _together([
        functools.partial(in_c.argsort_part, x, code, records, scratch, a, b)
        for a, b in itertools.pairwise(edges)
    ])  # fmt: skip
    while len(edges) > 2:
        into = out if len(edges) == 3 else scratch
        pieces = 2 * parts // (len(edges) - 1)
        _together([
            functools.partial(in_c.argsort_merged, records, into, *runs, *part)
            for runs in zip(edges[:-2:2], edges[1:-1:2], edges[2::2], strict=True)
            for part in itertools.pairwise(_edges(runs[2] - runs[0], pieces))
        ])  # fmt: skip
        edges = edges[::2]
        records, scratch = scratch, records
