"""What strides can say: a part of a part, and of what was written to a part, as a part of its own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Node, Part, Update, c_strides, part_node
from mirabelle.arraytypes.proxies import proxy_of

# Offset, shape and strides (in bytes) of what a part shows.
Place = tuple[int, tuple[int, ...], tuple[int, ...]]


def composed(part: Part, inner: Part) -> Node | None:
    """A part of a part as a part of the latter's source; None where strides cannot say it."""
    if part.dtype != inner.dtype:
        # (Contiguous memory has the same strides whatever it is read as.)
        if inner.table or not is_contiguous(inner):
            return None
        return part_node(
            inner.source, inner.offset + part.offset, part.shape, part.strides, part.dtype, part.table
        )
    if inner.table:
        return None
    if is_contiguous(inner):
        return part_node(
            inner.source, inner.offset + part.offset, part.shape, part.strides, part.dtype, part.table
        )
    if part.table or part.size == 0:
        return None
    found = place_within(part, inner)
    return None if found is None else part_node(inner.source, *found, part.dtype)


def place_within(part: Any, inner: Any) -> Place | None:
    """What a part of a part (in C's order) shows of the latter's source."""
    dims: list[tuple[int, int, int]] = []
    for n, virtual, real in zip(inner.shape, c_strides(inner.shape, inner.dtype), inner.strides, strict=True):
        if n == 1:
            continue
        if dims and dims[-1][2] == n * real:
            # Lines that follow one another are one longer line.
            dims[-1] = (dims[-1][0] * n, virtual, real)
        else:
            dims.append((n, virtual, real))
    found = relocated(part.offset, part.shape, part.strides, dims)
    return None if found is None else (inner.offset + found[0], part.shape, found[1])


def place_written(part: Any, update: Update) -> Place | None:
    """What a part of an updated value shows of what was written, if nothing else."""
    if part.dtype != update.part_dtype or part.size == 0 or part.table:
        return None
    written = c_strides(update.part_shape, update.part_dtype)
    dims = [d for d in zip(update.part_shape, update.strides, written, strict=True) if d[0] > 1]
    if any(step <= 0 for _, step, _ in dims):
        return None
    dims.sort(key=lambda d: -d[1])
    found = relocated(part.offset - update.offset, part.shape, part.strides, dims)
    return None if found is None else (found[0], part.shape, found[1])


def relocated(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dims: list[tuple[int, int, int]]
) -> tuple[int, tuple[int, ...]] | None:
    """An offset and strides in other steps: `dims` are (elements, step there, step here), large steps first."""
    found = decomposed(offset, shape, strides, [(n, there) for n, there, _ in dims])
    if found is None:
        return None
    low, moves, _ = found
    at = sum([i * here for i, (_, _, here) in zip(low, dims, strict=True)])
    return at, tuple([sum([k * dims[d][2] for d, k in move]) for move in moves])


class Region:
    """What an update writes to, as a part."""

    def __init__(self, update: Update) -> None:
        self.offset = update.offset
        self.shape = update.part_shape
        self.strides = update.strides
        self.dtype = update.part_dtype
        self.size = update.part_size
        self.table = False


def apart(a: Any, b: Any) -> bool:
    """Do two parts of one memory show no common element? (False where that takes long to find out.)"""
    one, other = _lies(a), _lies(b)
    found = are_apart(one, other)
    if asked is not None:
        asked.append(("apart", relation(one, other) if found else "", (one, other)))
    return found


# What was asked about how things lie, for who wants to know what a plan relies on (see `anysize.py`): a word,
# of what kind the answer is, and what it is about.
asked: list[Any] | None = None


@contextlib.contextmanager
def asking() -> Iterator[list[Any]]:
    """Within the block, what is asked about how things lie is written down."""
    global asked
    before, asked = asked, []
    try:
        yield asked
    finally:
        asked = before


def relation(a: Lies, b: Lies) -> str:
    """How parts lie that are apart: one before the other, or between each other's elements."""
    if 0 in a[1] or 0 in b[1]:
        return "empty"
    ends = [_line(part) for part in (a, b)]
    return "before" if ends[0][1] <= ends[1][0] else "after" if ends[1][1] <= ends[0][0] else "between"


def _line(part: Lies) -> tuple[int, int]:
    """From where to where a part lies, in bytes."""
    offset, shape, strides, item = part
    moves = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return offset + sum([m for m in moves if m < 0]), offset + sum([m for m in moves if m > 0]) + item


# Offset, shape, strides and size of an element of a part.
Lies = tuple[int, tuple[int, ...], tuple[int, ...], int]


def _lies(part: Any) -> Lies:
    return part.offset, part.shape, part.strides, part.dtype.itemsize


@functools.lru_cache(maxsize=1 << 12)
def are_apart(a: Lies, b: Lies) -> bool:
    """(Turns of an unrolled loop ask the same again and again.)"""
    if 0 in a[1] or 0 in b[1]:
        return True
    lines = _line(a), _line(b)
    if lines[0][1] <= lines[1][0] or lines[1][1] <= lines[0][0]:
        return True
    try:
        return not np.shares_memory(_proxy(a), _proxy(b), max_work=1000)  # type: ignore[arg-type] # pyright: ignore
    except np.exceptions.TooHardError:
        return False


def _proxy(lies: Lies) -> np.ndarray:
    offset, shape, strides, item = lies
    return proxy_of(shape, np.dtype((np.void, item)), strides, offset)


def bounds(part: Any, shape: tuple[int, ...], dtype: Any) -> list[tuple[int, int]] | None:
    """The first and the last index that a part shows along each dimension of its source."""
    dims = list(zip(shape, c_strides(shape, dtype), strict=True))
    found = decomposed(part.offset, part.shape, part.strides, dims)
    return None if found is None else found[2]


def decomposed(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dims: list[tuple[int, int]]
) -> tuple[list[int], list[list[tuple[int, int]]], list[tuple[int, int]]] | None:
    """An offset and strides as indices along `dims`, (elements, step), large steps first.

    The indices of the first element; by how many indices along which dimension each stride moves; and the least
    and the largest index along each dimension.
    """
    start, rest = [], offset
    for _, step in dims:
        i, rest = divmod(rest, step)
        start.append(i)
    if rest:
        return None
    low, high = list(start), list(start)
    moves: list[list[tuple[int, int]]] = []
    for n, s in zip(shape, strides, strict=True):
        move = []
        if s and n > 1:
            rest, sign = abs(s), 1 if s > 0 else -1
            for d, (_, step) in enumerate(dims):
                k, rest = divmod(rest, step)
                if k:
                    move.append((d, sign * k))
                    (high if sign > 0 else low)[d] += sign * k * (n - 1)
            if rest:
                return None
        moves.append(move)
    limits = list(zip(low, high, strict=True))
    if any(a < 0 or b >= d[0] for (a, b), d in zip(limits, dims, strict=True)):
        return None
    return start, moves, limits


def is_contiguous(part: Any) -> bool:
    """Does it show elements that follow one another in C's order?"""
    wanted = c_strides(part.shape, part.dtype)
    return all(n == 1 or a == b for n, a, b in zip(part.shape, part.strides, wanted, strict=True))


def harmless(read: Any, dest: Any) -> bool:
    """Does a kernel that writes to `dest` and reads this see what was there before?"""
    if read.storage is not dest.storage:
        return True
    if read.table:
        return False
    same = (read.offset, read.shape, read.strides, read.dtype) == (
        dest.offset,
        dest.shape,
        dest.strides,
        dest.dtype,
    )
    if same:
        return True
    return apart(read, dest)
