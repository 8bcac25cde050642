"""Which results of a loop's kernel are computed by a loop over a table, for all lanes of a block.

A function of thousands of statements takes compilers seconds. Where a kernel writes the products of a table
with a few numbers, as the entries of an element's matrix are, that is a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.arraytypes.meshdata.localkernels import LocalProgram
from mirabelle.arraytypes.meshdata.localsums import weighted_sum

# A kernel of fewer operations is written out; a table of fewer rows or products is.
LEAST_OPERATIONS = 200
LEAST_ROWS, LEAST_PRODUCTS = 6, 40


@dataclass(frozen=True)
class LaneTable:
    """Entries of an argument that are sums of the same nodes: a row has the weights of these `columns`."""

    name: str
    argument: int
    entries: tuple[int, ...]
    columns: tuple[int, ...]
    weights: np.ndarray

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """What the kernel is given."""
        found = {self.name: self.weights}
        if not self._all:
            found[f"{self.name}_at"] = np.array(self.entries, np.int32)
        return found

    @property
    def _all(self) -> bool:
        return self.entries == tuple(range(len(self.entries)))

    def loop(self, columns: Sequence[str], target: str, width: int) -> list[str]:
        """The loop that computes all rows for all lanes. `target` is the element of entry `_c`."""
        terms = [f"_w{k} * {column}" for k, column in enumerate(columns)]
        return [
            f"for _row in range({len(self.entries)}):",
            f"    _c = {'_row' if self._all else f'{self.name}_at[_row]'}",
            *(f"    _w{k} = {self.name}[_row, {k}]" for k in range(len(columns))),
            f"    for _lane in range({width}):",
            f"        {target} = {' + '.join(terms)}",
        ]


def lane_tables(program: LocalProgram) -> list[LaneTable]:
    """The tables of a program."""
    if program.operations < LEAST_OPERATIONS or not _real(program):
        return []
    made: list[LaneTable] = []
    for i, entries in enumerate(program.outputs):
        groups: dict[tuple[int, ...], dict[int, tuple[float, ...]]] = {}
        for j, n in enumerate(entries or ()):
            terms = None if n is None else weighted_sum(program.graph, n)
            if terms is not None:
                groups.setdefault(terms[0], {})[j] = terms[1]
        for columns, rows in groups.items():
            if len(rows) >= LEAST_ROWS and len(rows) * len(columns) >= LEAST_PRODUCTS:
                name = f"_table{len(made)}"
                made.append(LaneTable(name, i, tuple(rows), columns, np.array(list(rows.values()))))
    return made


def _real(program: LocalProgram) -> bool:
    """Are its numbers such that what is computed by a table, in float64, is the same as written out?"""
    graph: Graph = program.graph
    values: Iterable[Any] = (graph.value_of(n) for n in graph.reached(program.written))
    kinds = {np.dtype(g[2]).kind for g in program.given}
    return kinds <= set("fiub") and not any(type(v) is complex for v in values)
