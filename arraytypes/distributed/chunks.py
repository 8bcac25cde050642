"""Chunks of a file and boxes of a distributed array: who writes which chunk.

A chunk is written by one rank, whole: two that wrote parts of one at the same time would lose each other's.
Where boxes and chunks have the same edges nobody needs to send anything; else the few elements of a
chunk that lie elsewhere are sent to the rank that has most of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator

Box = tuple[slice, ...]

# Chunks are read whole, so they are not as large as a rank's part, and each is a file, so not tiny.
SMALLEST = 1 << 20
LARGEST = 1 << 26


def extent(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(s.stop - s.start for s in box)


def volume(box: Box) -> int:
    """How many elements a box has."""
    return math.prod(extent(box))


def whole(shape: Sequence[int]) -> Box:
    """The box of all elements."""
    return tuple(slice(0, n) for n in shape)


def overlap(a: Box, b: Box) -> Box:
    """What is in both of two boxes; of no elements if nothing is."""
    both = zip(a, b, strict=True)
    return tuple(slice(start := max(x.start, y.start), max(start, min(x.stop, y.stop))) for x, y in both)


def within(box: Box, outer: Box) -> Box:
    """A box inside another, counted from the beginning of that one."""
    return tuple(slice(b.start - o.start, b.stop - o.start) for b, o in zip(box, outer, strict=True))


# The shape of chunks


def chunk_shape(shape: Sequence[int], itemsize: int, boxes: Sequence[Sequence[Box]]) -> tuple[int, ...]:
    """A shape of chunks whose edges are those of the boxes of each rank, as far as that is possible.

    >>> from mirabelle.arraytypes.distributed.chunks import chunk_shape
    >>> chunk_shape((8, 5), 8, [[(slice(0, 4), slice(0, 5))], [(slice(4, 8), slice(0, 5))]])
    (4, 5)
    """
    filled = [box for mine in boxes for box in mine if volume(box)]
    chunk = []
    for d, n in enumerate(shape):
        longest = max((box[d].stop - box[d].start for box in filled), default=n)
        common = math.gcd(*(box[d].start for box in filled)) or n
        # Where boxes are not all of one length the next best is a length they have in common. A short
        # one is not worth it: then some chunks have elements of two boxes.
        chunk.append(max(1, min(n, common if 2 * common >= longest else longest)))
    return _bounded(chunk, shape, itemsize, 4 * len(boxes))


def _bounded(chunk: list[int], shape: Sequence[int], itemsize: int, few: int) -> tuple[int, ...]:
    """Chunks of that shape, divided or joined until their size and number are reasonable."""
    size = math.prod(chunk) * itemsize
    for d in range(len(chunk)):
        if size <= LARGEST:
            break
        parts = min(chunk[d], -(-size // LARGEST))
        # A divisor, so that edges stay edges.
        exact = next((p for p in range(parts, min(chunk[d], 4 * parts) + 1) if chunk[d] % p == 0), parts)
        size //= chunk[d]
        chunk[d] = -(-chunk[d] // exact)
        size *= chunk[d]
    for d in reversed(range(len(chunk))):
        while 2 * size <= SMALLEST and chunk[d] < shape[d] and _count(shape, chunk) > few:
            size //= chunk[d]
            chunk[d] = min(2 * chunk[d], shape[d])
            size *= chunk[d]
    return tuple(chunk)


def _count(shape: Sequence[int], chunk: Sequence[int]) -> int:
    return math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))


# Who writes which


class Piece(NamedTuple):
    """What one box has of a chunk."""

    rank: int
    box: int
    where: Box


# A chunk by its number along each dimension.
Number = tuple[int, ...]


def cell(number: Number, shape: Sequence[int], chunk: Sequence[int]) -> Box:
    """The elements of a chunk."""
    return tuple(slice(k * c, min(n, (k + 1) * c)) for k, n, c in zip(number, shape, chunk, strict=True))


def pieces(
    shape: Sequence[int], chunk: Sequence[int], boxes: Sequence[Sequence[Box]]
) -> dict[Number, list[Piece]]:
    """The pieces of each chunk, in the order of ranks. `boxes` are those of each rank."""
    found: dict[Number, list[Piece]] = {}
    for rank, mine in enumerate(boxes):
        for i, box in enumerate(mine):
            if volume(box):
                numbers = (range(s.start // c, -(-s.stop // c)) for s, c in zip(box, chunk, strict=True))
                for number in itertools.product(*numbers):
                    piece = Piece(rank, i, overlap(box, cell(number, shape, chunk)))
                    found.setdefault(number, []).append(piece)
    return found


def writer(found: Sequence[Piece]) -> int:
    """The rank that writes a chunk: who has most of it already."""
    has: dict[int, int] = {}
    for piece in found:
        has[piece.rank] = has.get(piece.rank, 0) + volume(piece.where)
    return max(has, key=lambda rank: (has[rank], -rank))


class Plan:
    """Which chunks this rank writes, what it sends to others for theirs, and gets for its own."""

    def __init__(
        self, comm: Communicator, shape: Sequence[int], chunk: Sequence[int], boxes: Sequence[Sequence[Box]]
    ) -> None:
        self.rank = comm.rank
        self.boxes = boxes[comm.rank]
        self.mine: list[tuple[Box, list[Piece]]] = []
        self.sends: dict[int, list[Piece]] = {}
        self.receives: dict[int, list[Piece]] = {}
        # Both ends go through the chunks in this order, which says what is where in a message.
        for number, found in pieces(shape, chunk, boxes).items():
            to = writer(found)
            if to == comm.rank:
                self.mine.append((cell(number, shape, chunk), found))
            for piece in found:
                if to == comm.rank and piece.rank != comm.rank:
                    self.receives.setdefault(piece.rank, []).append(piece)
                elif to != comm.rank and piece.rank == comm.rank:
                    self.sends.setdefault(to, []).append(piece)

    def packed(self, contents: Sequence[np.ndarray], dtype: np.dtype) -> tuple[dict[int, Any], dict[int, Any]]:
        """The messages to send, and room for those that come: bytes, which every engine takes."""
        sends = {
            to: np.concatenate(
                [contents[p.box][within(p.where, self.boxes[p.box])].reshape(-1) for p in found]
            ).view(np.uint8)
            for to, found in self.sends.items()
        }
        receives = {
            rank: np.empty(sum(volume(p.where) for p in found) * dtype.itemsize, np.uint8)
            for rank, found in self.receives.items()
        }
        return sends, receives

    def chunks(
        self, contents: Sequence[np.ndarray], received: dict[int, Any], dtype: np.dtype
    ) -> Iterator[tuple[Box, np.ndarray]]:
        """Each chunk to write, with all its elements."""
        read = dict.fromkeys(received, 0)
        for box, found in self.mine:
            if len(found) == 1:
                yield box, contents[found[0].box][within(box, self.boxes[found[0].box])]
                continue
            joined = np.empty(extent(box), dtype)
            for piece in found:
                if piece.rank == self.rank:
                    values = contents[piece.box][within(piece.where, self.boxes[piece.box])]
                else:
                    start = read[piece.rank]
                    read[piece.rank] = stop = start + volume(piece.where) * dtype.itemsize
                    values = received[piece.rank][start:stop].view(dtype).reshape(extent(piece.where))
                joined[within(piece.where, box)] = values
            yield box, joined
