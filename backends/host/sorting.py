"""Sorts of the host: long lines by bytes (`valuesorting.c`, `sorting.c` of `dispatch/csrc`), others by NumPy.

Equal values look alike, so values are sorted by the quickest algorithm, whatever is asked for. (Zeros of either
sign, and NaNs, are equal, and may come in any order among themselves.) Orders of long lines are stable,
whatever is asked for: by bytes that takes less time than NumPy's of either kind. So do values, but on Intel's
processors with AVX-512, for which NumPy has vectors; on AMD's these take three times as long as bytes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, pool
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host import threads
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.settings import settings

# How elements are read as numbers in order: what sorting.c calls kinds.
ORDERED = {"b": 0, "u": 0, "i": 1, "f": 2}
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
    if axis is None:
        x, axis = x.reshape(-1), -1
    code = _code(x)
    if code is None or not x.ndim or not _SOME <= x.shape[axis] <= _LONGEST or numpys_is_quick():
        return _by_numpy(x, axis)
    last = axis in (-1, x.ndim - 1)
    lines = _copied(x if last else np.moveaxis(x, axis, -1), "C")
    count, parts = lines.size // lines.shape[-1], _workers(lines.size)
    if count >= parts or lines.size < _TOGETHER * settings.thread_size:
        _each_line(in_c.sort_lines, lines, code, count, parts)
    elif count == 1:
        lines = _sort_long(lines.reshape(-1), code, parts).reshape(lines.shape)
    else:
        for line in lines.reshape(count, -1):
            line[...] = _sort_long(line, code, parts)
    return lines if last else np.ascontiguousarray(np.moveaxis(lines, -1, axis))


def _code(x: np.ndarray) -> int | None:
    """How the pieces in C read elements, or None where they do not."""
    return ORDERED.get(x.dtype.kind) if x.dtype.isnative and x.dtype.itemsize <= 8 else None


@functools.cache
def numpys_is_quick() -> bool:
    """Does NumPy sort values of 16 to 64 bits with AVX-512 on a processor where that is quick?"""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "GenuineIntel" in text and " avx512dq " in text


def _each_line(
    sort: Callable[..., object], lines: np.ndarray, code: int, count: int, parts: int, *out: Any
) -> None:
    """Several lines to a thread, in pieces for whoever has time."""
    _together([
        functools.partial(sort, lines, code, *out, a, b)
        for a, b in itertools.pairwise(_edges(count, parts if parts < 2 else min(count, 4 * parts)))
    ])  # fmt: skip


def _by_numpy(x: np.ndarray, axis: int) -> np.ndarray:
    if x.size < settings.thread_size:
        out = x.copy(order="K")
        out.sort(axis=axis)
        return out
    out, parts = _copied(x, "K"), _workers(x.size)
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


def _copied(x: np.ndarray, order: Any) -> np.ndarray:
    if order == "K" and not x.flags.c_contiguous:
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
    code = _code(x)
    shortest = _SHORT if kind == "stable" else _SOME
    if code is None or not x.size or not x.ndim or not shortest <= x.shape[axis] <= _LONGEST:
        return np.argsort(x, axis=axis, kind=kind)
    last = axis in (-1, x.ndim - 1)
    lines = np.ascontiguousarray(x if last else np.moveaxis(x, axis, -1))
    out = pool.empty(lines.shape, np.dtype(np.int64))
    count, parts = lines.size // lines.shape[-1], _workers(lines.size)
    if count >= parts:
        _each_line(in_c.argsort_lines, lines, code, count, parts, out)
    else:
        for line, into in zip(lines.reshape(count, -1), out.reshape(count, -1), strict=True):
            _argsort_long(line, code, into, parts)
    return out if last else np.ascontiguousarray(np.moveaxis(out, -1, axis))


def _argsort_long(x: np.ndarray, code: int, out: np.ndarray, parts: int) -> None:
    """One line on several threads: parts of it, which are merged two by two."""
    edges = _edges(x.size, 1 << (parts - 1).bit_length())
    records, scratch = (pool.empty((x.size, 2), np.dtype(np.int64)) for _ in range(2))
    _parts(in_c.argsort_part, edges, x, code, records, scratch)
    while len(edges) > 2:
        into = out if len(edges) == 3 else scratch
        _merged(functools.partial(in_c.argsort_merged, records, into), edges, parts)
        edges = edges[::2]
        records, scratch = scratch, records


def _sort_long(x: np.ndarray, code: int, parts: int) -> np.ndarray:
    """One line, which is written to, on several threads, likewise: the line, or other memory."""
    edges = _edges(x.size, 1 << (parts - 1).bit_length())
    other = pool.empty(x.shape, x.dtype)
    _parts(in_c.sort_part, edges, x, code, other)
    while len(edges) > 2:
        _merged(functools.partial(in_c.sort_merged, x, code, other), edges, parts)
        edges = edges[::2]
        x, other = other, x
    return x


def _parts(sort: Callable[..., object], edges: list[int], *given: Any) -> None:
    _together([functools.partial(sort, *given, a, b) for a, b in itertools.pairwise(edges)])


def _merged(merge: Callable[..., object], edges: list[int], parts: int) -> None:
    """Runs between edges, the first of two with the second, in as many pieces as there are threads for."""
    pieces = max(1, 2 * parts // (len(edges) - 1))
    _together([
        functools.partial(merge, *runs, *part)
        for runs in zip(edges[:-2:2], edges[1:-1:2], edges[2::2], strict=True)
        for part in itertools.pairwise(_edges(runs[2] - runs[0], pieces))
    ])  # fmt: skip
