"""The part of a mesh that one process has: its own cells and points first, then those of others that it
needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.partition import by_component, one_array
from mirabelle.arraytypes.meshdata.points import Subset
from mirabelle.arraytypes.meshdata.topology import Topology

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh


class Part:
    """What one process has of a mesh. `Mesh.part` makes it.

    `mesh` is the local mesh. Its axis has the regions "owned" and "ghost". Its edges and faces have the
    orientations that they have in the whole mesh, and its `exterior` is that of the whole.

    >>> from mirabelle import meshdata as md
    >>> part = md.unit_square(2).part([0, 0, 0, 0, 1, 1, 1, 1], rank=0, overlap=0)
    >>> part
    Part(rank 0: 4 of 4 cells, 9 of 9 edges, 6 of 6 vertices are its own)
    >>> part.mesh
    Mesh(4 triangles, 9 edges, 6 vertices in 2 dimensions)
    """

    __module__ = "mirabelle.meshdata"

    def __init__(
        self, mesh: Mesh, rank: int, numbers: dict[str, Table], ghosts: dict[str, tuple[Table, Table]]
    ) -> None:
        self.mesh, self.rank, self._numbers, self._ghosts = mesh, rank, numbers, ghosts
        for array in (*numbers.values(), *(a for pair in ghosts.values() for a in pair)):
            array.setflags(write=False)

    def numbers(self, component: str) -> Table:
        """The numbers in the whole mesh of the points that are here."""
        return self._numbers[self.mesh._known(component)]

    def owned(self, component: str) -> int:
        """How many points of a component are this process's own. They are the first ones."""
        return len(self.numbers(component)) - len(self._ghosts[component][0])

    def ghosts(self, component: str) -> tuple[Table, Table]:
        """Of each point that is another process's: its rank, and the point's number there.

        They are the last points of the component, in this order.
        """
        return self._ghosts[self.mesh._known(component)]

    def owned_points(self, component: str = "cell") -> Subset:
        """The process's own points, for loops that no other process repeats.

        >>> from mirabelle import meshdata as md
        >>> md.interval(6).part([0, 0, 0, 1, 1, 1], rank=1).owned_points()
        <3 of the 4 points 'cell'>
        """
        return self.mesh.points(component).subset(np.arange(self.owned(component)))

    def __repr__(self) -> str:
        from mirabelle.arraytypes.meshdata.meshes import _many

        parts = (f"{self.owned(c)} of {_many(len(n), c + 's')}" for c, n in self._numbers.items())
        return f"Part(rank {self.rank}: {', '.join(parts).replace('vertexs', 'vertices')} are its own)"


def part(mesh: Mesh, owner: Any, rank: int, overlap: int) -> Part:
    """`Mesh.part`."""
    topology = mesh.topology
    _check(mesh, rank, overlap)
    of_cells = one_array(mesh, owner, "owners")
    if of_cells.dtype.kind not in "iu" or (of_cells.size and of_cells.min() < 0):
        raise ValueError(
            "The owners of cells are the ranks of processes, numbered from 0: `md.partition(mesh, n)` gives "
            "them."
        )
    cells = by_component(mesh, of_cells)
    cells = cells if isinstance(cells, dict) else {topology.components(topology.dim)[0]: cells}
    owners = {c: cells[c] if c in cells else _lowest(topology, c, cells) for c in topology.shapes}
    layers = _layers(topology, cells, rank, overlap)
    numbers, ghosts, local, owned = {}, {}, {}, {}
    for c, owns in owners.items():
        own = np.flatnonzero((owns == rank) & (layers[c] >= 0))
        others = np.flatnonzero((owns != rank) & (layers[c] >= 0))
        others = others[np.argsort(layers[c][others], kind="stable")]
        numbers[c] = np.concatenate([own, others]).astype(index_type(len(owns)))
        owned[c] = len(own)
        local[c] = np.full(len(owns), -1, dtype=index_type(len(numbers[c])))
        local[c][numbers[c]] = np.arange(len(numbers[c]), dtype=local[c].dtype)
        ghosts[c] = owns[others].astype(np.int32), _positions(owns)[others]
    return Part(_local_mesh(mesh, numbers, local, owned), int(rank), numbers, ghosts)


def _check(mesh: Mesh, rank: Any, overlap: Any) -> None:
    if mesh.topology.owned is not None:
        raise ValueError("This mesh is the part of one process already; the whole mesh is divided.")
    for what, given in (("The rank of a process", rank), ("The number of layers of overlap", overlap)):
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 0:
            raise ValueError(f"{what} is an integer that is not negative, and not {given!r}.")


def _lowest(topology: Topology, component: str, cells: dict[str, Table]) -> Table:
    """The lowest rank of the cells at each point; that of a point without cells is 0."""
    none = np.iinfo(np.int64).max
    out = np.full(topology.size(component), none, dtype=np.int64)
    for cell, owns in cells.items():
        down = topology.incidence(cell, component)
        if down is not None:
            target = down.target()
            np.minimum.at(out, target.values, np.repeat(owns, target.sizes))
    return np.where(out == none, 0, out)


def _layers(topology: Topology, cells: dict[str, Table], rank: int, overlap: int) -> dict[str, Table]:
    """For each point the layer in which it is met: 0 for own cells and their points, -1 for what is not
    here."""
    out = {c: np.where(owns == rank, 0, -1).astype(np.int64) for c, owns in cells.items()}
    tables = {
        c: topology.entity_vertices(topology.dim, s.name)
        for c, s in topology.shapes.items()
        if s and c in cells
    }
    reached = np.full(topology.vertices, -1, dtype=np.int64)
    for layer in range(overlap + 1):
        if layer:
            for c, table in tables.items():
                out[c][(out[c] < 0) & (reached[table] >= 0).any(axis=1)] = layer
        for c, table in tables.items():
            at = table[out[c] == layer].ravel()
            reached[at[reached[at] < 0]] = layer
    for c in topology.shapes:
        if c in cells:
            continue
        out[c] = np.full(topology.size(c), -1, dtype=np.int64)
        for layer in reversed(range(overlap + 1)):
            for cell in cells:
                down = topology.incidence(cell, c)
                if down is not None:
                    below = down.target().values.reshape(-1, down.target().arity or 1)
                    out[c][below[out[cell] == layer].ravel()] = layer
    return out


def _positions(owns: Table) -> Table:
    """The number of each point among those of its owner."""
    order = np.argsort(owns, kind="stable")
    ranks = owns[order]
    first = np.searchsorted(ranks, ranks)
    out = np.empty(len(owns), dtype=index_type(len(owns)))
    out[order] = np.arange(len(owns)) - first
    return out


def _local_mesh(mesh: Mesh, numbers: dict[str, Table], local: dict[str, Table], owned: dict[str, int]) -> Mesh:
    """The mesh of some of a mesh's points, in the order given."""
    from mirabelle.arraytypes.meshdata.meshes import Mesh

    topology = mesh.topology
    name_of = {s.name: c for c, s in topology.shapes.items() if s}
    vertices = local["vertex"]
    cells = {s: vertices[table[numbers[name_of[s]]]] for s, table in topology.cells.items()}
    found: dict[int, Any] = {}
    for dim in range(1, topology.dim):
        found[dim] = {
            shape: (
                vertices[table[numbers[name_of[shape]]]],
                {s: local[name_of[shape]][of[numbers[name_of[s]]]] for s, of in cells_of.items()},
            )
            for shape, (table, cells_of) in topology.entities(dim).items()
        }
    made = Mesh(mesh.coordinates[numbers["vertex"]], cells, inverted="keep")
    outside = {c: topology.exterior(c)[numbers[c]] for c in topology.shapes}
    made.topology = Topology.of_part(made.cells, found, numbers["vertex"], owned, outside)
    for name, subset in mesh.markers.items():
        component = subset.points.component
        here = local[component][subset.indices]
        made._markers[name] = made.points(component).subset(np.sort(here[here >= 0]))
    return made
