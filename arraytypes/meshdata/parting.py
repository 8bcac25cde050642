"""The part of a mesh that one process has: its own cells and points first, then those of others that it
needs."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.meshdata.divisions import Division
from mirabelle.arraytypes.meshdata.maps import Table, index_type
from mirabelle.arraytypes.meshdata.partition import by_component, one_array, partition
from mirabelle.arraytypes.meshdata.points import Subset
from mirabelle.arraytypes.meshdata.topology import Topology

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.distributed.communicators import Communicator
    from mirabelle.arraytypes.meshdata.annotations import Owner
    from mirabelle.arraytypes.meshdata.divisions import Entries
    from mirabelle.arraytypes.meshdata.meshes import Mesh
    from mirabelle.arraytypes.meshdata.trees import AxisTree


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

    # Over processes

    def entries(self, of: str | AxisTree) -> Entries:
        """Which entries of this part are whose: points of a component, or entries of a tree."""
        division = self.mesh.topology.division
        if division is None:
            raise ValueError(
                "This part was made without the other processes. `md.part(mesh)` makes one that knows of them."
            )
        return division.entries(of)  # type: ignore[no-any-return]

    def divided(self, of: str | AxisTree, x: AbstractArray) -> AbstractArray:
        """The distributed array of a local one, which has a row for each point here (or entry of a tree).

        Each process gives the rows of its own points. All do so together.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> part = md.part(md.interval(2))
        >>> part.divided("cell", mb.HostArray(part.mesh.volumes()))
        DArray[HostArray[float64, 1]]([0.5, 0.5])
        """
        entries, x = self.entries(of), as_array(x)
        if x.shape[:1] != (entries.forest.size,):
            raise ValueError(
                f"There are {entries.forest.size} rows here, and the array has the shape {x.shape}: it has one "
                "for each, ghosts included."
            )
        return entries.vector(x)

    def local(self, of: str | AxisTree, v: AbstractArray) -> AbstractArray:
        """The local array with a row for each point here, ghosts included, of a distributed one.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> part = md.part(md.interval(2))
        >>> print(part.local("cell", part.divided("cell", [1.0, 2.0])))
        [1. 2.]
        """
        return self.entries(of).local(v, ghosts=True)


def divided_part(
    mesh: Mesh | None,
    owner: Owner | None = None,
    *,
    overlap: int = 1,
    root: int | None = None,
    comm: Communicator | None = None,
) -> Part:
    """This process' part of a mesh that is divided over all; they make it together.

    `owner` has the rank of each cell; without it `md.partition` finds one. Each process gives the whole mesh,
    or with `root` only that one does: the others give None, and are sent their parts. `overlap` says how many
    layers of others' cells a part has around its own. Finite elements need none, finite volumes one: the cells
    on both sides of a facet.

    Of a mesh divided so loops run at each point once, by the process that owns it, and arrays may be `DArray`s.

    Parameters
    ----------
    mesh : Mesh or None
        The whole mesh; None where another process, the `root`, gives it.
    owner : int array, mapping or None
        The rank of each cell, by shape where there are several; None asks `md.partition`.
    overlap : int, default 1
        How many layers of others' cells a part has.
    root : int or None
        The one process that gives the mesh; None is all.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    mb.meshdata.Part
        It has this process's `mesh` and its `rank`; `numbers(component)` are the numbers of its points in
        the whole mesh.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> mesh = md.part(md.unit_square(2)).mesh
    >>> V = md.space(mesh, "P", 2)
    """
    if mesh is not None and not hasattr(mesh, "topology"):
        raise TypeError(
            f"md.part takes a mesh, and not a {type(mesh).__name__}: `md.part(md.unit_square(16))`. One in a "
            "file is read first: `md.part(md.read_mesh(path))`."
        )
    comm = communicator() if comm is None else comm
    if root is None:
        ranks = comm.size
        found = on_all(
            comm, lambda: partition(_whole(mesh), ranks) if owner is None and not comm.rank else owner
        )
        owner = comm.bcast_object(found) if owner is None else owner
        made = on_all(comm, lambda: part(_whole(mesh), owner, comm.rank, overlap))
    else:
        made = _sent(comm, mesh, owner, overlap, root)
    return known_to_others(made, comm)


def known_to_others(made: Part, comm: Any) -> Part:
    """A part whose mesh knows that it is one of several, and so do its points."""
    made.mesh.topology.division = Division(made, comm)
    for name, subset in made.mesh.markers.items():
        made.mesh._markers[name] = made.mesh.points(subset.points.component).subset(subset.indices)
    return made


def _whole(mesh: Any) -> Mesh:
    if mesh is None:
        raise ValueError(
            "Each process gives the whole mesh, and here it is None. Where one process has it, say which: "
            "`md.part(mesh, root=0)`."
        )
    return mesh  # type: ignore[no-any-return]


def _sent(comm: Any, mesh: Any, owner: Any, overlap: int, root: int) -> Part:
    """Parts that one process makes of its mesh: one after the other, so that it has few at a time."""
    if not 0 <= root < comm.size:
        raise ValueError(f"There are {comm.size} processes, and {root} is none of them.")
    found = on_all(
        comm,
        lambda: partition(_whole(mesh), comm.size) if owner is None and comm.rank == root else owner,
    )
    own: Any = None
    for r in range(comm.size):
        made = on_all(comm, partial(_made_at, comm, root, mesh, found, r, overlap))
        if r == root:
            own = made if comm.rank == root else own
        elif comm.rank == root:
            data = np.frombuffer(pickle.dumps(made, protocol=5), np.uint8)
            comm.exchange({r: np.array([data.size])}, {})
            comm.exchange({r: data}, {})
        elif comm.rank == r:
            size = np.zeros(1, np.int64)
            comm.exchange({}, {root: size})
            data = np.empty(int(size[0]), np.uint8)
            comm.exchange({}, {root: data})
            own = pickle.loads(data.tobytes())
    return own  # type: ignore[no-any-return]


def _made_at(comm: Any, root: int, mesh: Any, owner: Any, rank: int, overlap: int) -> Part | None:
    return part(_whole(mesh), owner, rank, overlap) if comm.rank == root else None


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
    return Part(local_mesh(mesh, numbers, local, owned), int(rank), numbers, ghosts)


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


def local_mesh(mesh: Mesh, numbers: dict[str, Table], local: dict[str, Table], owned: dict[str, int]) -> Mesh:
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
