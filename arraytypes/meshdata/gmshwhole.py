"""A gmsh file as one process reads it: points, blocks of cells and groups, named as meshio names them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Alone
from mirabelle.arraytypes.meshdata.gmshfiles import ELEMENTS, GmshFile, dim_of
from mirabelle.arraytypes.meshdata.gmshindex import VERSIONS, gmsh_file, version_of
from mirabelle.arraytypes.meshdata.maps import Table, index_type

NAMES = {"interval": "line", "quadrilateral": "quad", "tetrahedron": "tetra", "prism": "wedge"}


@dataclass
class CellBlock:
    """Cells of one kind that follow each other. Nodes are in gmsh's order."""

    type: str
    data: Table


@dataclass
class WholeFile:
    """What a file has."""

    points: Table
    file: GmshFile
    cells: list[CellBlock] = field(default_factory=list)
    # Of each group, by block, which cells are in it.
    cell_sets: dict[str, list[Any]] = field(default_factory=dict)
    gmsh_periodic: list[tuple[int, None, None, Table]] = field(default_factory=list)
    cell_data: dict[str, Any] = field(default_factory=dict)
    field_data: dict[str, Any] = field(default_factory=dict)
    in_gmsh_order = True  # of nodes of cells of order two meshio changes it


def is_known(path: Path) -> bool:
    """Is it a gmsh file of a format that is read here?"""
    return path.is_file() and version_of(path) in VERSIONS


def whole_file(path: Path) -> WholeFile:
    """Read a gmsh file."""
    file = gmsh_file(path, Alone())
    tags, points = file.read_nodes(0, sum(b.count for b in file.nodes))
    order = np.argsort(tags, kind="stable").astype(index_type(len(tags)))
    tags = tags[order]
    twice = np.flatnonzero(np.diff(tags) == 0)
    if len(twice):
        raise file.damaged(f"the node {tags[twice[0]]} stands there twice")

    def numbers(table: Table) -> Table:
        at = np.minimum(np.searchsorted(tags, table), len(tags) - 1)
        if (bad := table[tags[at] != table]).size:
            raise file.damaged(f"an element has the node {bad[0]}, and there is none of that number")
        return order[at]

    made = WholeFile(points, file)
    runs: list[tuple[int, list[Table], list[Table]]] = []
    for kind, groups, nodes in file.read_elements(0, sum(b.count for b in file.elements)):
        if not runs or runs[-1][0] != kind:
            runs.append((kind, [], []))
        runs[-1][1].append(groups)
        runs[-1][2].append(numbers(nodes))
    for k, (kind, some, tables) in enumerate(runs):
        shape, count = ELEMENTS[kind]
        made.cells.append(CellBlock(f"{NAMES.get(shape, shape)}{count}", np.concatenate(tables)))
        for name, members in _groups(file, kind, np.concatenate(some)).items():
            made.cell_sets.setdefault(name, [None] * len(runs))[k] = np.flatnonzero(members)
    made.gmsh_periodic = [(dim, None, None, numbers(pairs)) for dim, pairs in file.periodic]
    return made


def _groups(file: GmshFile, kind: int, groups: Table) -> dict[str, Table]:
    """Which elements of a run are in each group."""
    found: dict[str, Table] = {}
    dim = dim_of(kind)
    for number in np.unique(groups).tolist():
        for name in file.groups(dim, number):
            found[name] = found.get(name, False) | (groups == number)
    return found
