"""Which process runs an index-space kernel for which indices, and which elements of others it needs.

A process runs the kernel for those indices for which it writes elements that it holds: the owner computes.
Which these are, and what is read for them, follows from the kernel's source (`usercode/kernelaccesses.py`).
All processes work it out for all, and come to the same. What is not so is refused, in words.
"""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mirabelle.arraytypes.distributed.views import Map
from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.usercode.indexvalues import Box
from mirabelle.arraytypes.usercode.kernelaccesses import Access, Launched, accesses
from mirabelle.dispatch.errors import LayoutError

Range = tuple[int, int]
# What is needed of an array along each dimension; a range that goes on behind the end goes around it.
Region = tuple[Range, ...]


class KernelRanges:
    """For a launch and the maps of its arrays: the box of the index space of each process, and its reads."""

    def __init__(self, kernel: Kernel, launched: Launched, maps: Mapping[str, Map], size: int) -> None:
        self.kernel, self.launched, self.maps, self.size = kernel, launched, maps, size
        self.space: Box = tuple((0, n) for n in launched.sizes)
        everything = self.accesses(self.space)
        self.written = {a.name for a in everything if a.written}
        # What each process holds of each array: a range along each dimension; None for nothing.
        self.held = {n: [self._held(n, q) for q in range(size)] for n in maps}
        self.boxes: list[Box | None] = self._boxes([a for a in everything if a.written])
        self._check_groups()
        # What each process reads and writes of each array, all that it runs for taken together.
        self.regions: list[dict[str, Region]] = []
        for q, box in enumerate(self.boxes):
            self.regions.append({} if box is None else self.reads(box, self.owned_writes(q, box)))
        self.check_copies()

    def accesses(self, box: Box) -> list[Access]:
        """What the threads of a box read and write of arrays that are divided."""
        found = accesses(self.kernel.source, self.launched, box)
        for name, line in found.whole.items():
            if name in self.maps and not self.maps[name].base.replicated:
                self.refuse(
                    line,
                    f"{name} is handed to a function or called by another name, and which of its elements "
                    f"are needed cannot be seen then. Name its elements in the kernel, or give it the whole on "
                    f"each process: `{_everywhere(name)}`.",
                )
        return [a for a in found.found if a.name in self.maps]

    # Who runs what

    def _held(self, name: str, q: int) -> Region | None:
        held = self.maps[name].held(q)
        if held is None or any(not pieces for pieces in held):
            return None
        if any(len(pieces) > 1 for pieces in held):
            if name not in self.written:
                return None  # (then nothing of it counts as here)
            self.refuse(
                0,
                f"it writes to {name}, whose elements are dealt out to the processes in turn. Divide it in "
                f"runs: `{name} = mb.distributed.redistribute({name}, mb.distributed.Block(0))`.",
            )
        return tuple(pieces[0] for pieces in held)

    def _boxes(self, writes: list[Access]) -> list[Box | None]:
        """The box of each process; None where it has nothing to do."""
        ranges: dict[int, list[Range]] = {}
        for a in writes:
            for t in self.divided_axes(a.name):
                value = a.at[t]
                if value is None or value.period is not None:
                    continue
                # (The first of the index space that it depends on most: `y[i * m + j]` is divided along i.)
                most = max(map(abs, value.coefs))
                d = [abs(c) for c in value.coefs].index(most)
                if most and d not in ranges:
                    found = []
                    for q in range(self.size):
                        held = self.held[a.name][q]
                        mine = (0, 0) if held is None else value.inside(d, held[t], self.space)
                        found.append((0, 0) if mine is None or mine[0] >= mine[1] else mine)
                    ranges[d] = self._tiled(found, d, a, t)
        boxes: list[Box | None] = []
        for q in range(self.size):
            box = tuple(ranges[d][q] if d in ranges else self.space[d] for d in range(len(self.space)))
            # (A row of a matrix may belong to one process alone: that one runs it.)
            here = all(self.held[name][q] is not None for name in self.written)
            boxes.append(box if here and all(a < b for a, b in box) else None)
        if not any(boxes) and all(math.prod(self.maps[n].shape) for n in self.written):
            self.not_owned(writes[0], 0)
        return boxes

    def divided_axes(self, name: str) -> list[int]:
        """The dimensions of an array of which processes hold different ranges."""
        return [t for t, pieces in enumerate(self.maps[name].pieces) if pieces is not None]

    def _tiled(self, found: list[Range], d: int, a: Access, t: int) -> list[Range]:
        """Ranges that are all of the index space: those at its ends have what no index of the array has."""
        n = self.space[d][1]
        distinct = sorted({r for r in found if r[0] < r[1]})
        if not distinct:
            return found
        stretched = {r: list(r) for r in distinct}
        stretched[distinct[0]][0] = 0
        stretched[distinct[-1]][1] = n
        for one, next_one in itertools.pairwise(distinct):
            if one[1] != next_one[0]:
                self.not_owned(a, t)
        return [(stretched[r][0], stretched[r][1]) if r in stretched else (0, 0) for r in found]

    def _check_groups(self) -> None:
        """Threads that work together are on one process."""
        if not (self.kernel.source.grouped or self.kernel.padded):
            return
        for box in self.boxes:
            for (a, b), n, g in zip(box or (), self.launched.sizes, self.launched.group, strict=False):
                if a % g or (b % g and b != n):
                    self.refuse(
                        0,
                        f"its threads work together in groups of {self.launched.group}, and processes hold "
                        "parts that cut through them. Give it the parts, on each process its own: "
                        f"`{self.kernel.__name__}[x.local.shape](x.local, ...)` (`x.halo(1)` is the part with "
                        "the elements around it), or divide the arrays where groups end: "
                        "`mb.distributed.redistribute(x, mb.distributed.Ragged(0, sizes))`.",
                    )

    def owned_writes(self, q: int, box: Box) -> list[Access]:
        """What a process reads and writes; an error if it does not hold all that it writes."""
        found = self.accesses(box)
        for a in found:
            if not a.written:
                continue
            held, shape = self.held[a.name][q], self.maps[a.name].shape
            for t, value in enumerate(a.at):
                whole = held is not None and held[t] == (0, shape[t])
                if whole:
                    continue
                if value is None or held is None:
                    self.not_owned(a, t)
                low, high = value.over(a.box)
                low, high = max(low, 0), min(high, shape[t] - 1)
                if low <= high and not (held[t][0] <= low and high < held[t][1]):
                    self.not_owned(a, t)
        return found

    def check_copies(self) -> None:
        """Where several processes hold the same elements of what is written, they have to run the same."""
        for name in self.written:
            boxes: dict[Any, Box | None] = {}
            for q in range(self.size):
                held = self.held[name][q]
                if held is None or not math.prod(self.maps[name].shape):
                    continue
                if boxes.setdefault(held, self.boxes[q]) != self.boxes[q]:
                    self.refuse(
                        0,
                        f"it writes to {name}, of which several processes hold the same elements, and runs on "
                        "each of them for other indices (those of what else it writes). Sums over processes "
                        f"are statements, like `mb.sum(x)`; or divide {name} as the others are: `{name} = "
                        f"mb.distributed.redistribute({name}, mb.distributed.Block(0))`.",
                    )

    # What is read

    def reads(self, box: Box, found: Sequence[Access] | None = None) -> dict[str, Region]:
        """What the threads of a box touch of each array: the least range along each dimension."""
        arcs: dict[str, list[list[Range]]] = {}
        for a in self.accesses(box) if found is None else found:
            shape = self.maps[a.name].shape
            along = arcs.setdefault(a.name, [[] for _ in shape])
            for t, (value, n) in enumerate(zip(a.at, shape, strict=True)):
                along[t].append(self.arc(a, t, value, n))
        return {name: self._region(name, along) for name, along in arcs.items()}

    def _region(self, name: str, along: list[list[Range]]) -> Region:
        found = [_least_arc(a, n) for a, n in zip(along, self.maps[name].shape, strict=True)]
        if any(a >= b for a, b in found):
            return tuple((0, 0) for _ in found)
        divided = self.divided_axes(name)
        return tuple(
            (0, n) if r[1] > n and t not in divided else r
            for t, (r, n) in enumerate(zip(found, self.maps[name].shape, strict=True))
        )

    def arc(self, a: Access, t: int, value: Any, n: int) -> Range:
        if value is None:
            if t in self.divided_axes(a.name):
                self.refuse(
                    a.line,
                    f"which elements of {a.name} it needs depends on values of arrays (or changes in a loop in "
                    f"a way that cannot be followed), along a dimension that is divided. Give the whole to "
                    f"each process: `{_everywhere(a.name)}`, or take a gather, `{a.name}[i]`, as a statement.",
                )
            return 0, n
        if value.period == n:
            low, high = value.raw(a.box)
            return (0, n) if high - low + 1 >= n else (low % n, low % n + high - low + 1)
        low, high = value.over(a.box)
        low, high = max(low, 0), min(high + 1, n)
        return (low, high) if low < high else (0, 0)

    # Words

    def not_owned(self, a: Access, t: int) -> NoReturn:
        others = ", ".join(f"`{n}[...]`" for n in sorted(self.written - {a.name}))
        beside = f" (it also writes {others})" if others else ""
        ndim = len(self.maps[a.name].shape)
        axis = next((d for d in range(ndim) if d != t), None)
        elsewhere = (
            ""
            if axis is None
            else f"divide another dimension, `{a.name} = mb.distributed.redistribute({a.name}, "
            f"mb.distributed.Block({axis}))`; or "
        )
        what = (
            "at places that depend on values of arrays"
            if a.at[t] is None
            else f"that are another process's{beside}"
        )
        self.refuse(
            a.line,
            f"it writes elements of {a.name} {what}. Each process runs it for the "
            f"indices whose elements it holds, so all that an index writes has to be on one process: write "
            f"`{a.name}[i]` and read what is around it, `x[i - 1]`; or {elsewhere}give the kernel the parts, "
            f"`{self.kernel.__name__}[x.local.shape](x.local, ...)`.",
        )

    def refuse(self, line: int, why: str) -> NoReturn:
        name = self.kernel.__name__
        text = linecache.getline(self.kernel.python.__code__.co_filename, line).strip() if line else ""
        where = f", line {line}, `{text}`" if text else ""
        raise LayoutError(f"{name}() cannot be run over {self.size} processes{where}: {why}")


def _everywhere(name: str) -> str:
    return f"{name} = mb.distributed.redistribute({name}, mb.distributed.Replicated())"


def _least_arc(arcs: list[Range], n: int) -> Range:
    """The shortest run of places around a circle of `n` that has all of some runs; from 0 on if it can be."""
    wanted = sorted({(a, b) for a, b in arcs if a < b})
    if not wanted:
        return 0, 0
    if any(b - a >= n for a, b in wanted):
        return 0, n
    # The gaps between runs, each with where the next run begins.
    points = sorted({(a % n, a % n + b - a) for a, b in wanted})
    end, gaps = points[0][1], []
    for a, b in points[1:]:
        if a > end:
            gaps.append((a - end, 0, end, a))
        end = max(end, b)
    around = points[0][0] + n - end
    if around >= 0:
        gaps.append(
            (around, 1, end, points[0][0])
        )  # (across the end of the array; it is taken if none is longer)
    elif gaps:
        # The last run goes on at the beginning, and may fill gaps there.
        over = end - n
        gaps = [(g - max(0, min(over - e, g)), k, max(e, over), a) for g, k, e, a in gaps if a > over]
    if not gaps:
        return 0, n
    _, _, stop, start = max(gaps)
    return (start, stop) if start < stop else (start, stop + n)
