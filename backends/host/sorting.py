"""Sorts of the host: long lines by bytes (`valuesorting.c`, `sorting.c` of `dispatch/csrc`), others by NumPy.

Equal values look alike, so values are sorted by the quickest algorithm, whatever is asked for. (Zeros of either
sign, and NaNs, are equal, and may come in any order among themselves.) Orders of long lines are stable,
whatever is asked for. Both by bytes, but on Intel's processors with AVX-512, for which NumPy has vectors (on
AMD's these take three times as long as bytes): their orders are mended where elements are equal.
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
# So many elements for each range are looked at to find where ranges end.
_SAMPLE = 256


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
    if code is not None and x.ndim and x.shape[axis] <= _LONGEST:
        count, parts = x.size // max(x.shape[axis], 1), _workers(x.size)
        # (NumPy's vectors put some lines of float16 in a wrong order: 2.4, where values come often.)
        bytes_first = x.shape[axis] >= _SOME and (x.dtype == np.float16 or not numpys_is_quick())
        together = 0 < count < parts and x.size >= _TOGETHER * settings.thread_size
        if bytes_first or together:
            last = axis in (-1, x.ndim - 1)
            lines = x if last else np.moveaxis(x, axis, -1)
            lines = _sorted_lines(lines, code, count, parts, bytes_first, together)
            return lines if last else np.ascontiguousarray(np.moveaxis(lines, -1, axis))
    return _by_numpy(x, axis)


def _sorted_lines(
    lines: np.ndarray, code: int, count: int, parts: int, bytes_first: bool, together: bool
) -> np.ndarray:
    if not together:
        lines = _copied(lines, "C")
        _each_line(in_c.sort_lines, lines, code, count, parts)
        return lines
    out = pool.empty(lines.shape, lines.dtype)
    lines = np.ascontiguousarray(lines)
    for line, into in zip(lines.reshape(count, -1), out.reshape(count, -1), strict=True):
        _sort_long(line, code, into, parts, bytes_first)
    return out


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
    if x.size < settings.thread_size or not x.ndim:
        out = x.copy(order="K")
        out.sort(axis=axis)
        return out
    parts = _workers(x.size)
    along = max((d for d in range(x.ndim) if d != axis % x.ndim), key=lambda d: x.shape[d], default=None)
    if parts < 2 or along is None or x.shape[along] < parts:
        out = _copied(x, "K")
        out.sort(axis=axis)
        return out
    out = np.empty_like(x) if not x.flags.c_contiguous else pool.empty(x.shape, x.dtype)
    lines, into = (np.moveaxis(a, (along, axis), (0, -1)) for a in (x, out))

    def piece(first: int, last: int) -> None:
        into[first:last] = lines[first:last]
        into[first:last].sort()

    pieces = 4 * parts if x.shape[along] >= 64 * parts else parts
    _together(
        [functools.partial(piece, *edges) for edges in itertools.pairwise(_edges(x.shape[along], pieces))]
    )
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
    quick = lines.dtype.itemsize >= 4 and numpys_is_quick()
    if count >= parts:
        _each_line(_argsort_by_numpy if quick else in_c.argsort_lines, lines, code, count, parts, out)
    else:
        for line, into in zip(lines.reshape(count, -1), out.reshape(count, -1), strict=True):
            _argsort_long(line, code, into, parts, quick)
    return out if last else np.ascontiguousarray(np.moveaxis(out, -1, axis))


def _argsort_by_numpy(x: np.ndarray, code: int, out: np.ndarray, first: int, last: int) -> None:
    """The order of some lines by NumPy's vectors; equal elements then as they come."""
    shape = -1, x.shape[-1]
    out.reshape(shape)[first:last] = np.argsort(x.reshape(shape)[first:last], axis=-1)
    in_c.argsort_ties(x, code, out, first, last)


def _argsort_long(x: np.ndarray, code: int, out: np.ndarray, parts: int, quick: bool) -> None:
    """One line on several threads: parts of it, which are merged two by two."""
    edges = _edges(x.size, 1 << (parts - 1).bit_length())
    records, scratch = (pool.empty((x.size, 2), np.dtype(np.int64)) for _ in range(2))

    def part(first: int, last: int) -> None:
        order = []
        if quick:
            order = [np.argsort(x[first:last])]
            in_c.argsort_ties(x[first:last], code, order[0], 0, 1)
        in_c.argsort_part(x, code, records, scratch, first, last, *order)

    _parts(part, edges)
    while len(edges) > 2:
        into = out if len(edges) == 3 else scratch
        _merged(functools.partial(in_c.argsort_merged, records, into), edges, parts)
        edges = edges[::2]
        records, scratch = scratch, records


def _sort_long(x: np.ndarray, code: int, out: np.ndarray, parts: int, bytes_first: bool) -> None:
    """One line on several threads: its elements go to ranges, which are sorted each by itself."""
    edges = list(itertools.pairwise(_edges(x.size, parts)))
    between = _between_ranges(x, parts)
    # For each part of the line, and each range: where in the result its elements begin and end.
    places = np.empty((parts, 2, parts), np.int64)
    _together(
        [
            functools.partial(_count, x[a:b], between, slots[0])
            for slots, (a, b) in zip(places, edges, strict=True)
        ]
    )
    ends = places[:, 0].T.cumsum().reshape(parts, parts)
    places[:, 1] = ends.T
    places[:, 0] = ends.T - places[:, 0]
    _together([
        functools.partial(in_c.spread_part, x, code, between, slots, out, a, b)
        for slots, (a, b) in zip(places, edges, strict=True)
    ])  # fmt: skip
    ranges = [0, *ends[:, -1].tolist()]
    if bytes_first:
        _parts(in_c.sort_part, ranges, out, code, pool.empty(x.shape, x.dtype))
    else:
        _together([out[a:b].sort for a, b in itertools.pairwise(ranges)])


def _count(x: np.ndarray, between: np.ndarray, counts: np.ndarray) -> None:
    """How many elements are in each range."""
    less = [int(np.count_nonzero(x < edge)) for edge in between]
    counts[:] = np.diff([0, *less, x.size])


def _between_ranges(x: np.ndarray, ranges: int) -> np.ndarray:
    """Values of a line between which about equally many are, by a sample from places that follow no pattern."""
    places = np.arange(_SAMPLE * ranges, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sample = np.sort(x[(places >> np.uint64(11)) % np.uint64(x.size)])[_SAMPLE::_SAMPLE].copy()
    if sample.dtype.kind == "f":
        sample[np.isnan(sample)] = np.inf
        sample[sample == 0] = -0.0  # (zeros of either sign go to one range: of float16 C looks at the bits)
    return sample


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
