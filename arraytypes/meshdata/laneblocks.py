"""A block of points in the lanes of a vector: gathered side by side, computed, and written in their order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.lanetables import LEAST_OPERATIONS, LaneTable

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshkernels import Argument, Source

# What a block's points keep between gathering and writing fits into the first cache.
LANE_BYTES = 16384
# Rows from this length on are read and written by a loop: a statement for each entry takes long to compile.
# Kernels that take long anyway have loops for shorter ones.
LOOPED, LOOPED_IN_LONG = 32, 6
_REAL = np.dtype(np.float64)


class LaneBlock:
    """The statements that run a loop's points, a block at a time. What is `deferred` is left for later."""

    def __init__(self, source: Source, deferred: frozenset[str]) -> None:
        self.source = source
        self.deferred = deferred
        self.tables = source.tables
        self.slots = Slots()
        # Where lanes keep an entry that is read, and a node that tables are multiplied with.
        self.inputs: dict[tuple[int, int], str] = {}
        self.places: dict[int, str] = {}
        # Where they keep all entries of an argument, one after the other.
        self.together: dict[int, int] = {}
        self.shortest = LOOPED if source.program.operations < LEAST_OPERATIONS else LOOPED_IN_LONG

    def body(self) -> tuple[list[str], dict[str, Any]]:
        """The statements, and the dtypes that they name."""
        source, slots = self.source, self.slots
        gather = self._gathered()
        loads, statements, store = self._computed()
        scatter = source.writing(self.deferred, self._scattered)
        width = slots.width()
        before = [f"    {line.format('_base')}" for line in source.before]
        body = [
            *(f"{array} = _k.private({n * width}, _{array})" for array, n in slots.counts.items() if n),
            f"for _base in range(_bounds[_chunk], _bounds[_chunk + 1], {width}):",
            f"    _n = min({width}, _bounds[_chunk + 1] - _base)",
            *before,
            "    for _lane in range(_n):",
            "        _p = _base + _lane",
            *(f"        {line}" for line in [*source.next, *gather]),
            f"    for _lane in range({width}):",
            *(f"        {line}" for line in [*loads, *statements, *store] or ["pass"]),
            *(f"    {line}" for t in self.tables for line in self._by_table(t, width)),
            *before,
            "    for _lane in range(_n):",
            "        _p = _base + _lane",
            *(f"        {line}" for line in [*source.next, *scatter]),
        ]
        return [slots.placed(line, width) for line in body], {f"_{x}": d for x, d in slots.dtypes.items()}

    # What points read

    def _gathered(self) -> list[str]:
        source, slots = self.source, self.slots
        lines: list[str] = []
        for i, a in enumerate(source.arguments):
            if self._is_long(a) and len(source.read[i]) == a.entries:
                first = slots.together(a.dtype, a.entries)
                self.inputs |= {(i, j): slots.at(a.dtype, first + j) for j in range(a.entries)}
                lines += self._gathered_in_loop(a, first)
                continue
            for line in source.loads_of(i, "_p", "{i}|{j}|{value}"):
                if "|" not in line:
                    if line not in lines:  # (arguments may share a table)
                        lines.append(line)
                    continue
                _, entry, value = line.split("|", 2)
                self.inputs[i, int(entry)] = element = slots.taken(a.dtype)
                lines.append(f"{element} = {value}")
        graph = source.program.graph
        self.places = {graph.input(i, j): element for (i, j), element in self.inputs.items()}
        return lines

    def _is_long(self, a: Argument) -> bool:
        return a.how == "table" and a.arity >= self.shortest and not a.strides

    def _gathered_in_loop(self, a: Argument, first: int) -> list[str]:
        lines = [f"for _c in range({a.arity}):", f"    _row = {a.rows}[_p, _c]"]
        size = math.prod(a.block)
        for place in range(size):
            element = self.slots.row_at(a.dtype, first + place, size)
            lines.append(f"    {element} = {a.value('_row', a.entry(place)[1])}")
        return lines

    # What is computed

    def _computed(self) -> tuple[list[str], list[str], list[str]]:
        """What is loaded for all lanes, computed, and stored again."""
        source, slots, tables = self.source, self.slots, self.tables
        by_table = {(t.argument, j) for t in tables for j in t.entries}
        with_columns = dict.fromkeys(n for t in tables for n in t.columns)
        written = [(i, j, a, n) for i, j, a, n in source.outputs() if (i, j) not in by_table]
        wanted = [*(n for *_, n in written), *with_columns]
        statements, text = source.computed("_v{i}_{j}", wanted)
        loads = [
            f"_v{i}_{j} = {element}"
            for (i, j), element in self.inputs.items()
            if source.program.graph.input(i, j) in text
        ]
        store = []
        for n in with_columns:
            if n not in self.places:
                self.places[n] = slots.taken(_REAL)
                store.append(f"{self.places[n]} = {text[n]}")
        for i, a in enumerate(source.arguments):
            if a.intent.writes:
                self.together[i] = slots.together(a.dtype, a.entries)
        store += [f"{slots.at(a.dtype, self.together[i] + j)} = {text[n]}" for i, j, a, n in written]
        return loads, statements, store

    def _by_table(self, t: LaneTable, width: int) -> list[str]:
        dtype, first = self.source.arguments[t.argument].dtype, self.together[t.argument]
        return t.loop([self.places[n] for n in t.columns], self.slots.row_at(dtype, first, 1), width)

    # What is written

    def _scattered(self, chosen: Collection[str], waits: bool) -> list[str]:
        lines: list[str] = []
        rows: set[str] = set()
        for i, j, a, _ in self.source.outputs():
            if a.name not in chosen:
                continue
            if a.scattered and self._is_long(a) and None not in (self.source.program.outputs[i] or (None,)):
                lines += self._scattered_in_loop(a, self.together[i], waits) if j == 0 else []
            else:
                element = self.slots.at(a.dtype, self.together[i] + j)
                lines += self.source.scattered(a, i, j, element, rows, waits)
        return lines

    def _scattered_in_loop(self, a: Argument, first: int, deferred: bool) -> list[str]:
        """How all entries of a block's point are written, one after the other."""
        table = f"{a.name}_goal" if deferred else a.rows
        size = math.prod(a.block)
        lines = [f"for _c in range({a.arity}):", f"    _row = {table}[_p, _c]"]
        for place in range(size):
            element = self.slots.row_at(a.dtype, first + place, size)
            lines += [f"    {line}" for line in self.source.written(a, place, "_row", element, deferred)]
        return lines


_PLACE = re.compile(r"\{(\d+)\}")


class Slots:
    """Where the lanes of a block keep each number: one array for each dtype."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.dtypes: dict[str, np.dtype] = {}

    def taken(self, dtype: np.dtype) -> str:
        """A place of a lane's own."""
        return self.at(dtype, self.together(dtype, 1))

    def together(self, dtype: np.dtype, count: int) -> int:
        """So many places that follow each other: the first of them."""
        name = f"_lanes_{dtype.name}"
        self.dtypes[name] = dtype
        slot = self.counts.get(name, 0)
        self.counts[name] = slot + count
        return slot

    def at(self, dtype: np.dtype, slot: int) -> str:
        """The element of a lane, before it is known how many lanes there are."""
        return f"_lanes_{dtype.name}[{{{slot}}} + _lane]"

    def row_at(self, dtype: np.dtype, slot: int, step: int) -> str:
        """The element of a lane for entry `_c` of a row: `slot` for the first, and so on in steps."""
        return f"_lanes_{dtype.name}[_c * {{{step}}} + ({{{slot}}} + _lane)]"

    def placed(self, line: str, width: int) -> str:
        """A line in which places are numbers."""
        return _PLACE.sub(lambda found: str(int(found[1]) * width), line)

    def width(self) -> int:
        """How many lanes there are."""
        size = sum(n * self.dtypes[name].itemsize for name, n in self.counts.items())
        width = 32
        while width > 8 and width * size > LANE_BYTES:
            width //= 2
        return width
