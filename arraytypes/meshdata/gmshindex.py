"""The index of a gmsh file, which all processes make together: which blocks of nodes and elements are where.

In a text all count lines and look for sections; rank 0 then goes from header to header. In a binary file it
does so alone, as blocks say how long they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all, on_root
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.meshdata.gmshfiles import STRIPE, Block, GmshFile, Lines, quoted, stripes

VERSIONS = {"2": "2.2", "2.1": "2.2", "2.2": "2.2", "4": "4.1", "4.1": "4.1"}
_INT, _REAL = np.dtype(np.int32), np.dtype(np.float64)


def gmsh_file(path: str | os.PathLike[str], comm: Communicator) -> GmshFile:
    """What is where in a gmsh file. Processes ask for it together."""
    path = Path(path)
    opened = on_all(comm, lambda: _opened(path))
    if not opened.binary:
        share = [stripes(path) * r // comm.size for r in (comm.rank, comm.rank + 1)]
        found = comm.allgather_object(on_all(comm, lambda: _scanned(path, *share)))
        counts = np.concatenate([np.array(c, np.int64) for c, _ in found])
        opened.lines = Lines(path, np.concatenate([[0], np.cumsum(counts)]))
    work: Callable[[], Any]
    if opened.binary:
        work = _BinaryWalk(opened).index
    else:
        sections = [s for _, some in found for s in some]
        work = _TextWalk(opened, sections).index
    made = comm.bcast_object(on_root(comm, work))
    made.path = path
    return made  # type: ignore[no-any-return]


def _opened(path: Path) -> GmshFile:
    """A file of which nothing but the first lines was read."""
    if not path.exists():
        raise FileNotFoundError(
            f"There is no mesh file {str(path)!r}. A path begins in the folder that Python was started in, as "
            f'"meshes/{path.name}", or at the root.'
        )
    with open(path, "rb") as file:
        words = _format(file)
        version = VERSIONS.get(words[0]) if len(words) == 3 else None
        if version is None or words[1] not in ("0", "1") or words[2] not in ("4", "8"):
            raise ValueError(
                f"{path.name!r} is no gmsh file of MSH 2.2 or 4.1, which are those that are read in pieces. "
                f"Let gmsh save it so: `gmsh {path.name} -save -format msh41 -o mesh.msh`."
            )
        made = GmshFile(path, version, words[1] == "1", np.dtype(f"u{int(words[2])}"))
        if made.binary and file.read(4) != np.int32(1).tobytes():
            raise ValueError(f"{path.name!r} was written on a machine that orders bytes differently.")
    return made


def version_of(path: Path) -> str:
    """The version that a gmsh file says to have; of another file none."""
    with open(path, "rb") as file:
        return next(iter(_format(file)), "")


def _format(file: Any) -> list[str]:
    """The words of the line that says which format a file has."""
    first = file.readline(200)
    while first.strip() == b"$Comments":
        while (line := file.readline()) and line.strip() != b"$EndComments":
            pass
        first = file.readline(200)
    return file.readline(200).decode(errors="replace").split() if first.strip() == b"$MeshFormat" else []


def _scanned(path: Path, first: int, last: int) -> tuple[list[int], list[tuple[int, int, str]]]:
    """How many lines end in some stripes, and the sections that begin there: stripe, lines before, name."""
    counts, sections = [], []
    with open(path, "rb") as file:
        for stripe in range(first, last):
            file.seek(max(stripe * STRIPE - 1, 0))
            text = file.read(STRIPE + (stripe > 0) + 64)  # (a name may go on in the next)
            text = text if stripe else b"\n" + text
            inside = memoryview(text)[1 : STRIPE + 1]
            at = text.find(b"\n$", 0, STRIPE + 1)
            while 0 <= at < STRIPE:
                name = text[at + 2 : at + 66].split(b"\n")[0].strip().decode(errors="replace")
                sections.append((stripe, text.count(b"\n", 1, at + 1), name))
                at = text.find(b"\n$", at + 1, STRIPE + 1)
            counts.append(bytes(inside).count(b"\n"))
    return counts, sections


class _Walk:
    """What both kinds of files have."""

    def __init__(self, file: GmshFile) -> None:
        self.file = file
        self.of_entity: dict[tuple[int, int], int] = {}

    def finished(self) -> GmshFile:
        for what, blocks in (("$Nodes", self.file.nodes), ("$Elements", self.file.elements)):
            if not sum(b.count for b in blocks):
                raise self.file.damaged(f"it has no {what}")
        return self.file

    def name(self, line: str) -> None:
        words = quoted(line)
        if len(words) != 3:
            raise self.file.damaged(f"{line!r} names no group")
        self.file.names[int(words[1]), int(words[0])] = words[2]

    def entity(self, dim: int, tag: int, groups: Any) -> None:
        self.of_entity[dim, tag] = len(self.file.entities)
        self.file.entities.append(tuple(int(g) for g in groups))

    def block(self, dim: int, tag: int, kind: int, count: int, at: int) -> Block:
        if (dim, tag) not in self.of_entity:
            self.entity(dim, tag, ())
        return Block(count, at, kind=kind, group=self.of_entity[dim, tag])

    def refuse(self, section: str) -> None:
        if section in ("PartitionedEntities", "GhostElements"):
            raise ValueError(
                f"{self.file.path.name!r} was divided by gmsh (${section}). Give the file of the whole mesh: "
                "each process reads a part of that, and cells are divided anew."
            )

        if section == "ParametricNodes":
            raise ValueError(
                f"{self.file.path.name!r} has nodes with parameters (${section}), which are read of MSH 4.1 "
                "only. Let gmsh leave them out: `gmsh.option.setNumber('Mesh.SaveParametric', 0)`."
            )

    def check_sum(self, what: str, blocks: list[Block], total: int) -> None:
        if sum(b.count for b in blocks) != total:
            raise self.file.damaged(f"it says to have {total} {what}, and its blocks have others")


class _TextWalk(_Walk):
    """From header to header of a text, by the numbers of lines."""

    def __init__(self, file: GmshFile, sections: list[tuple[int, int, str]]) -> None:
        super().__init__(file)
        assert file.lines is not None
        self.lines = file.lines
        self.sections = [(int(self.lines.before[stripe]) + before, name) for stripe, before, name in sections]

    def index(self) -> GmshFile:
        ends = {name: line for line, name in self.sections if name.startswith("End")}
        for line, name in self.sections:
            if name.startswith("End"):
                continue
            self.refuse(name)
            work = getattr(self, f"_{name}", None)
            if work is None:
                continue
            if ends.get("End" + name, -1) < line:
                raise self.file.damaged(f"${name} has no $End{name}")
            end = work(line + 1)
            if end != ends["End" + name]:
                raise self.file.damaged(f"$End{name} is to stand in line {end + 1}")
        return self.finished()

    def _numbers(self, line: int, count: int) -> list[int]:
        words = self.lines.line(line).split()
        try:
            found = [int(w) for w in words]
        except ValueError:
            found = []
        if len(found) != count:
            raise self.file.damaged(
                f"line {line + 1} is to be {count} integers, and is {' '.join(words)[:60]!r}"
            )
        return found

    def _all(self, start: int, stop: int) -> list[list[str]]:
        return [w.split() for t, _ in self.lines.between(start, stop) for w in t.decode().splitlines()]

    def _PhysicalNames(self, line: int) -> int:
        (count,) = self._numbers(line, 1)
        for i in range(count):
            self.name(self.lines.line(line + 1 + i))
        return line + 1 + count

    def _Entities(self, line: int) -> int:
        counts = self._numbers(line, 4)
        rows = self._all(line + 1, line + 1 + sum(counts))
        for dim, words in zip(np.repeat(range(4), counts), rows, strict=False):
            at = 4 if dim == 0 else 7
            self.entity(int(dim), int(words[0]), words[at + 1 : at + 1 + int(words[at])])
        return line + 1 + sum(counts)

    def _Nodes(self, line: int) -> int:
        if self.file.version == "2.2":
            (count,) = self._numbers(line, 1)
            self.file.nodes.append(Block(count, line + 1))
            return line + 1 + count
        blocks, total, _, _ = self._numbers(line, 4)
        line += 1
        for _ in range(blocks):
            dim, _, parametric, count = self._numbers(line, 4)
            self.file.nodes.append(Block(count, line + 1, width=3 + dim * (parametric != 0)))
            line += 1 + 2 * count
        self.check_sum("nodes", self.file.nodes, total)
        return line

    def _Elements(self, line: int) -> int:
        if self.file.version == "2.2":
            (count,) = self._numbers(line, 1)
            self.file.elements.append(Block(count, line + 1))
            return line + 1 + count
        blocks, total, _, _ = self._numbers(line, 4)
        line += 1
        for _ in range(blocks):
            dim, tag, kind, count = self._numbers(line, 4)
            self.file.known(kind)
            self.file.elements.append(self.block(dim, tag, kind, count, line + 1))
            line += 1 + count
        self.check_sum("elements", self.file.elements, total)
        return line

    def _Periodic(self, line: int) -> int:
        (links,) = self._numbers(line, 1)
        line += 1
        for _ in range(links):
            dim, _, _ = self._numbers(line, 3)
            line += 1
            if self.file.version == "4.1" or self.lines.line(line).startswith("Affine"):
                line += 1
            (count,) = self._numbers(line, 1)
            pairs = np.array(self._all(line + 1, line + 1 + count), np.int64).reshape(-1, 2)
            self.file.periodic.append((dim, pairs))
            line += 1 + count
        return line


class _BinaryWalk(_Walk):
    """From block to block of a binary file."""

    def index(self) -> GmshFile:
        with open(self.file.path, "rb") as self.handle:
            self.end = os.path.getsize(self.file.path)
            while line := self.handle.readline():
                name = line.strip().decode(errors="replace")
                if not name:
                    continue
                if not name.startswith("$"):
                    raise self.file.damaged(f"a section is to begin before byte {self.handle.tell()}")
                self.refuse(name[1:])
                work = getattr(self, f"_{name[1:]}", None)
                if work is None:
                    self._skip(name[1:])
                    continue
                work()
                rest = self.handle.readline()
                rest = rest if rest.strip() else self.handle.readline()
                if rest.strip() != b"$End" + name[1:].encode():
                    raise self.file.damaged(f"$End{name[1:]} is to stand before byte {self.handle.tell()}")
        return self.finished()

    def _skip(self, name: str) -> None:
        end, tail = b"$End" + name.encode(), b""
        while more := self.handle.read(STRIPE):
            at = (tail + more).find(end)
            if at >= 0:
                self.handle.seek(at - len(tail) - len(more), 1)
                self.handle.readline()
                return
            tail = (tail + more)[-len(end) :]
        raise self.file.damaged(f"${name} has no $End{name}")

    def _take(self, dtype: np.dtype, count: int) -> list[Any]:
        found = np.fromfile(self.handle, dtype, count)
        if len(found) != count:
            raise self.file.damaged("it ends within a block")
        return found.tolist()  # type: ignore[no-any-return]

    def _jump(self, length: int) -> int:
        """Go over what is not looked at; where that begins."""
        at = self.handle.tell()
        if at + length > self.end:
            raise self.file.damaged(f"{length} bytes are to follow byte {at}")
        self.handle.seek(length, 1)
        return at

    def _count(self) -> int:
        words = self.handle.readline().split()
        if len(words) != 1 or not words[0].isdigit():
            raise self.file.damaged(f"a number is to stand before byte {self.handle.tell()}")
        return int(words[0])

    def _PhysicalNames(self) -> None:
        for _ in range(self._count()):
            self.name(self.handle.readline().decode(errors="replace"))

    def _Entities(self) -> None:
        for dim, count in enumerate(self._take(self.file.size, 4)):
            for _ in range(count):
                (tag,) = self._take(_INT, 1)
                self._jump(8 * (6 if dim else 3))
                self.entity(dim, tag, self._take(_INT, *self._take(self.file.size, 1)))
                if dim:
                    self._jump(4 * self._take(self.file.size, 1)[0])

    def _Nodes(self) -> None:
        if self.file.version == "2.2":
            count = self._count()
            self.file.nodes.append(Block(count, self._jump(28 * count)))
            return
        blocks, total, _, _ = self._take(self.file.size, 4)
        for _ in range(blocks):
            dim, _, parametric = self._take(_INT, 3)
            (count,) = self._take(self.file.size, 1)
            width = 3 + dim * (parametric != 0)
            at = self._jump(count * (self.file.size.itemsize + 8 * width))
            self.file.nodes.append(Block(count, at, width=width))
        self.check_sum("nodes", self.file.nodes, total)

    def _Elements(self) -> None:
        if self.file.version == "2.2":
            left = self._count()
            while left > 0:
                kind, count, tags = self._take(_INT, 3)
                length = 4 * count * (1 + tags + self.file.known(kind)[1])
                self.file.elements.append(Block(count, self._jump(length), kind=kind, tags=tags))
                left -= count if count > 0 else left
            if left:
                raise self.file.damaged("its blocks have other elements than it says")
            return
        blocks, total, _, _ = self._take(self.file.size, 4)
        for _ in range(blocks):
            dim, tag, kind = self._take(_INT, 3)
            (count,) = self._take(self.file.size, 1)
            at = self._jump(self.file.size.itemsize * count * (1 + self.file.known(kind)[1]))
            self.file.elements.append(self.block(dim, tag, kind, count, at))
        self.check_sum("elements", self.file.elements, total)

    def _Periodic(self) -> None:
        if self.file.version == "2.2":
            self._periodic_text()
            return
        for _ in range(self._take(self.file.size, 1)[0]):
            dim, _, _ = self._take(_INT, 3)
            self._jump(8 * self._take(self.file.size, 1)[0])
            pairs = self._take(self.file.size, 2 * self._take(self.file.size, 1)[0])
            self.file.periodic.append((dim, np.array(pairs, np.int64).reshape(-1, 2)))

    def _periodic_text(self) -> None:
        for _ in range(self._count()):
            dim, *_ = map(int, self.handle.readline().split())
            line = self.handle.readline()
            line = self.handle.readline() if line.startswith(b"Affine") else line
            rows = [self.handle.readline().split() for _ in range(int(line))]
            self.file.periodic.append((dim, np.array(rows, np.int64).reshape(-1, 2)))
