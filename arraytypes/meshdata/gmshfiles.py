"""Where in a gmsh file nodes and elements are, so that each of several processes reads some of them.

Files are of the formats MSH 2.2 and 4.1. In binary ones the lengths of blocks say where the next begins. In
texts lines are counted: each process counts those of its share of the file, then every line is found by a look
at one stripe. Nothing here holds more than a stripe of the file at a time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STRIPE = 2**20  # bytes that are looked at together
# gmsh's numbers of elements: by shape, the number for each order (from 1 on), and how many nodes these have.
_COMPLETE: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "vertex": ((15,), (1,)),
    "interval": ((1, 8, 26, 27, 28, 62, 63, 64, 65, 66), (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
    "triangle": ((2, 9, 21, 23, 25, 42, 43, 44, 45, 46), (3, 6, 10, 15, 21, 28, 36, 45, 55, 66)),
    "quadrilateral": ((3, 10, 36, 37, 38, 47, 48, 49, 50, 51), (4, 9, 16, 25, 36, 49, 64, 81, 100, 121)),
    "tetrahedron": ((4, 11, 29, 30, 31, 71, 72, 73, 74, 75), (4, 10, 20, 35, 56, 84, 120, 165, 220, 286)),
    "hexahedron": ((5, 12, 92, 93, 94, 95, 96, 97, 98), (8, 27, 64, 125, 216, 343, 512, 729, 1000)),
    "prism": ((6, 13, 90, 91, 106, 107, 108, 109, 110), (6, 18, 40, 75, 126, 196, 288, 405, 550)),
    "pyramid": ((7, 14), (5, 14)),
}
# Without nodes inside faces and cells.
_SERENDIPITY = {16: ("quadrilateral", 8), 17: ("hexahedron", 20), 18: ("prism", 15), 19: ("pyramid", 13)}
_SERENDIPITY |= {20: ("triangle", 9), 22: ("triangle", 12), 24: ("triangle", 15)}
ELEMENTS: dict[int, tuple[str, int]] = _SERENDIPITY | {
    kind: (shape, nodes) for shape, both in _COMPLETE.items() for kind, nodes in zip(*both, strict=True)
}
_DIMS = {"vertex": 0, "interval": 1, "triangle": 2, "quadrilateral": 2}
_INT, _REAL = np.dtype(np.int32), np.dtype(np.float64)


def dim_of(kind: int) -> int:
    """The dimension of gmsh's elements of a kind."""
    return _DIMS.get(ELEMENTS[kind][0], 3)


@dataclass(frozen=True)
class Block:
    """Rows of a file that follow each other: nodes, or elements. `at` is a byte, in texts a line."""

    count: int
    at: int
    width: int = 3  # numbers of a node's place
    kind: int = 0  # of elements, gmsh's number; in texts of MSH 2.2 each line says it
    tags: int = 0  # in MSH 2.2
    group: int = -1  # the entity in `GmshFile.entities`, in MSH 4.1


@dataclass
class GmshFile:
    """What is where in a file."""

    path: Path
    version: str
    binary: bool
    size: np.dtype  # of integers that count
    names: dict[tuple[int, int], str] = field(default_factory=dict)  # of physical groups, by tag and dimension
    entities: list[tuple[int, ...]] = field(default_factory=list)  # the groups of each, in MSH 4.1
    nodes: list[Block] = field(default_factory=list)
    elements: list[Block] = field(default_factory=list)
    periodic: list[tuple[int, np.ndarray]] = field(default_factory=list)  # dimension, pairs of nodes' tags
    lines: Lines | None = None  # of texts

    def groups(self, dim: int, number: int) -> list[str]:
        """The names of the groups of an element, of what stands there as its group."""
        tags = self.entities[number] if self.version == "4.1" else (number,) if number else ()
        return [self.names.get((abs(tag), dim), str(abs(tag))) for tag in tags]

    # Reading

    def read_nodes(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """The tags of some nodes, counted through all blocks, and where they are."""
        tags, places = np.empty(stop - start, np.int64), np.empty((stop - start, 3))
        at = 0
        for block, a, b in _overlapping(self.nodes, start, stop):
            here = slice(at, at + b - a)
            tags[here], places[here] = self._nodes_of(block, a, b)
            at += b - a
        return tags, places

    def _nodes_of(self, block: Block, a: int, b: int) -> tuple[Any, Any]:
        if self.version == "2.2":
            if self.binary:
                rows = self._binary(block.at, a, b, np.dtype([("tag", _INT), ("x", _REAL, (3,))]))
                return rows["tag"], rows["x"]
            found = self._text(block.at + a, block.at + b, _REAL, 4)
            return found[:, 0].astype(np.int64), found[:, 1:]
        if self.binary:
            places = block.at + block.count * self.size.itemsize
            tags = self._binary(block.at, a, b, self.size)
            return tags, self._binary(places, a, b, np.dtype((_REAL, (block.width,))))[:, :3]
        tags = self._text(block.at + a, block.at + b, np.dtype(np.int64), 1)[:, 0]
        first = block.at + block.count
        return tags, self._text(first + a, first + b, _REAL, block.width)[:, :3]

    def read_elements(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Some elements, counted through all blocks: for each run of one kind the kind, groups and nodes."""
        for block, a, b in _overlapping(self.elements, start, stop):
            if self.version == "2.2" and not self.binary:
                yield from self._mixed(block.at + a, block.at + b)
                continue
            nodes = ELEMENTS[block.kind][1]
            step = STRIPE // (8 * (nodes + 3)) + 1
            for first in range(a, b, step):  # (what is read has wider numbers than what is kept)
                last = min(first + step, b)
                if self.version == "2.2":
                    rows = self._binary(block.at, first, last, np.dtype((_INT, (1 + block.tags + nodes,))))
                    groups = rows[:, 1] if block.tags else np.zeros(len(rows), _INT)
                elif self.binary:
                    rows = self._binary(block.at, first, last, np.dtype((self.size, (1 + nodes,))))
                    groups = np.full(len(rows), block.group, _INT)
                else:
                    rows = self._text(block.at + first, block.at + last, np.dtype(np.int64), 1 + nodes)
                    groups = np.full(len(rows), block.group, _INT)
                yield block.kind, groups, rows[:, -nodes:]

    def _mixed(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Lines that say themselves of which kind they are."""
        assert self.lines is not None
        for text, rows in self.lines.between(start, stop):
            numbers, at = _parsed(text, np.dtype(np.int64), self.path), 0
            while rows:
                if at + 3 > len(numbers):
                    raise self.damaged("an element has too few numbers")
                kind, tags = int(numbers[at + 1]), int(numbers[at + 2])
                width = 3 + tags + self.known(kind)[1]
                many = min(rows, (len(numbers) - at) // width if tags >= 0 else 0)
                found = numbers[at : at + many * width].reshape(many, width)
                same = (found[:, 1] == kind) & (found[:, 2] == tags)
                run = many if same.all() else int(same.argmin())
                if not run:
                    raise self.damaged("an element has too few numbers")
                groups = found[:run, 3] if tags else np.zeros(run, np.int64)
                yield kind, groups, found[:run, 3 + tags :]
                at, rows = at + run * width, rows - run
            if at != len(numbers):
                raise self.damaged("an element has too many numbers")

    def known(self, kind: int) -> tuple[str, int]:
        """The shape and the number of nodes of gmsh's elements of a kind."""
        if kind not in ELEMENTS:
            raise ValueError(
                f"{self.path.name!r} has elements of gmsh's type {kind}, which is no cell that is known here. "
                f"Let gmsh save cells of whole orders: `gmsh {self.path.name} -save -format msh41 -o mesh.msh`."
            )
        return ELEMENTS[kind]

    def damaged(self, what: str) -> ValueError:
        """The error of a file that is not what it says."""
        size = os.path.getsize(self.path)
        return ValueError(
            f"{self.path.name!r} is damaged or was not written to its end: {what} (it has {size} bytes). Write "
            f"it again, `gmsh {self.path.stem}.geo -save -format msh41 -o {self.path.name}`."
        )

    def listed_twice(self) -> str:
        """What is wrong with a file that has a cell twice."""
        cure = f"`gmsh {self.path.name} -save -format msh41 -o mesh.msh`"
        if self.version == "2.2":
            return (
                f"{self.path.name!r} has cells twice: MSH 2.2 lists a cell once for each physical group that "
                f"has it. Let gmsh save it as MSH 4.1, {cure}, or leave it in one group."
            )
        return f"{self.path.name!r} has cells twice. Let gmsh make the mesh again, and save it: {cure}."

    def _binary(self, at: int, a: int, b: int, dtype: np.dtype) -> np.ndarray:
        with open(self.path, "rb") as file:
            file.seek(at + a * dtype.itemsize)
            found = np.fromfile(file, dtype, b - a)
        if len(found) != b - a:
            raise self.damaged(f"{b - a} rows are to stand at byte {at}, and there are {len(found)}")
        return found

    def _text(self, start: int, stop: int, dtype: np.dtype, columns: int) -> np.ndarray:
        assert self.lines is not None
        out, at = np.empty((stop - start, columns), dtype), 0
        for text, rows in self.lines.between(start, stop):
            numbers = _parsed(text, dtype, self.path)
            if len(numbers) != rows * columns:
                raise self.damaged(f"{rows} lines of {columns} numbers are to follow each other, and do not")
            out[at : at + rows] = numbers.reshape(rows, columns)
            at += rows
        return out


def _overlapping(blocks: list[Block], start: int, stop: int) -> Iterator[tuple[Block, int, int]]:
    """The blocks with rows from `start` to `stop`, and which of their own rows these are."""
    before = 0
    for block in blocks:
        a, b = max(start - before, 0), min(stop - before, block.count)
        if a < b:
            yield block, a, b
        before += block.count


def _parsed(text: bytes, dtype: np.dtype, path: Path) -> np.ndarray:
    """The numbers of a text, at spaces and ends of lines."""
    try:
        return np.fromstring(text, dtype, sep=" ")  # type: ignore[call-overload,no-any-return]
    except (ValueError, DeprecationWarning):  # (what is no number ends it, where such warnings are no errors)
        bad = next((w for w in text.split() if not _is_number(w)), b"").decode(errors="replace")
        raise ValueError(
            f"{path.name!r} is damaged: {bad!r} stands where a number is to stand. Let gmsh write it again."
        ) from None


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


@dataclass
class Lines:
    """Where the lines of a text begin: how many there are before each stripe."""

    path: Path
    before: np.ndarray
    _at: int = -1
    _ends: np.ndarray | None = None

    def offset(self, line: int) -> int:
        """The byte at which a line begins."""
        if line <= 0:
            return 0
        stripe = int(np.searchsorted(self.before, line, side="left")) - 1
        if stripe != self._at:
            self._ends, self._at = _line_ends(self.path, stripe), stripe
        assert self._ends is not None
        return stripe * STRIPE + int(self._ends[line - 1 - self.before[stripe]]) + 1

    def between(self, start: int, stop: int) -> Iterator[tuple[bytes, int]]:
        """The text of some lines, a stripe's length at a time, and how many lines it has."""
        if start >= stop:
            return
        at, end = self.offset(start), self.offset(stop)
        with open(self.path, "rb") as file:
            file.seek(at)
            while at < end:
                text = file.read(min(STRIPE, end - at))
                text += file.readline() if at + len(text) < end and not text.endswith(b"\n") else b""
                at += len(text)
                yield text, text.count(b"\n")

    def line(self, number: int) -> str:
        """A line."""
        with open(self.path, "rb") as file:
            file.seek(self.offset(number))
            return file.readline().decode(errors="replace").strip()


def _line_ends(path: Path, stripe: int) -> np.ndarray:
    with open(path, "rb") as file:
        file.seek(stripe * STRIPE)
        return np.flatnonzero(np.frombuffer(file.read(STRIPE), np.uint8) == 10)


def stripes(path: Path) -> int:
    """How many stripes a file has."""
    return -(-os.path.getsize(path) // STRIPE)


def quoted(line: str) -> list[str]:
    """The words of a line in which names are quoted."""
    return shlex.split(line)
