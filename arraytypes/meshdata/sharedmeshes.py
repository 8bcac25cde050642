"""Distributed arrays on a mesh that every process has as a whole.

Nothing is divided beforehand, and all numbers are those of one process. Cells are run in equal runs of their
numbers, one for each process, and what lies between cells belongs to the lowest process that has a cell there.
Arrays are divided in whatever way they are: a loop brings what this process' points reach of others' entries,
and gives back what was added to them.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> mesh = md.unit_square(2)                        # all of it, on all processes; here there is one
>>> V = md.space(mesh, "P", 1)
>>> def ones(y):
...     y += 1
>>> y = V.zeros(mb.DArray)
>>> md.loop(mesh.points("cell"), ones, md.INC(y, V.dofs))
>>> print(y)
[1. 3. 2. 3. 6. 3. 2. 3. 1.]
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view
from mirabelle.arraytypes.distributed.layouts import Block, Layout, Listed, Split
from mirabelle.arraytypes.meshdata.divisions import Entries, division_of
from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.dispatch import verbs


class SharedEntries(Entries):
    """Entries that keep the numbers they have as a whole: each has an owner, and those `reached` come here.

    Local arrays have room for all; what no point of this process reaches is never written nor read.
    """

    __slots__ = ("_everything", "layout", "order")

    def __init__(self, owner: np.ndarray, reached: Any, comm: Any) -> None:
        from mirabelle.arraytypes.meshdata.forests import StarForest

        said = comm.allgather_object((len(owner), zlib.crc32(owner.tobytes())))
        if any(other != said[0] for other in said):
            lengths = [n for n, _ in said]
            raise ValueError(
                f"Processes disagree on what is divided: they have {lengths} entries, or divide these "
                "differently. Each makes the same mesh, and runs the same program."
            )
        here = np.zeros(len(owner), bool)
        if reached is not None:
            here[reached[reached >= 0]] = True
        mine = owner == comm.rank
        leaves = np.flatnonzero(here & ~mine)
        # (Contributions come in the order of ranks: so do leaves.)
        leaves = leaves[np.argsort(owner[leaves], kind="stable")]
        self.layout = Listed.of(0, owner, comm.size)
        self.order = np.argsort(owner, kind="stable")
        super().__init__(StarForest(len(owner), owner[leaves], leaves, leaves, comm=comm), np.flatnonzero(mine))

    def _placement(self) -> Any:
        return self.layout

    def own_part(self, v: Any) -> Any:
        v = v.parent if hasattr(v, "tree") else v
        if isinstance(v, DArray) and v.shape[:1] == (self.forest.size,):
            wanted = self.partition(v.shape[1:])
            if evaluated_view(v).partition is not wanted:
                from mirabelle.arraytypes.distributed.moving import redistribute

                v = verbs.materialize(redistribute(v, Layout(self.layout)))
        return super().own_part(v)

    def local(self, v: Any, ghosts: bool = False, written: bool = True) -> Any:
        if ghosts:  # (all of it: outside of loops nothing says what is reached)
            return verbs.materialize(v).inner(verbs.to_numpy(v))
        return super().local(v, written=written)


def is_shared(points: Any) -> bool:
    """Are they points of a mesh that every process has as a whole?"""
    base = points.points if isinstance(points, Subset) else points
    topology = getattr(base, "topology", None)
    return topology is not None and topology.owned is None


def owners(points: Points, size: int) -> np.ndarray:
    """The process that runs each of some points, of so many processes."""
    topology = points.topology
    if topology is None:
        return _runs(points.size, size)
    known = topology.shared
    key = "owners", size, points.component
    if key not in known:
        cells = topology.components(topology.dim)
        if points.component in cells:
            known[key] = _runs(points.size, size)
        else:
            from mirabelle.arraytypes.meshdata.parting import _lowest

            of_cells = {c: _runs(topology.size(c), size).astype(np.int64) for c in cells}
            known[key] = _lowest(topology, points.component, of_cells).astype(np.int32)
    return known[key]  # type: ignore[no-any-return]


def _runs(n: int, size: int) -> np.ndarray:
    counts = [sum(b - a for a, b in held) for held in Block(0).pieces(n, size)]
    return np.repeat(np.arange(size, dtype=np.int32), counts)


def owned(points: Any, comm: Any) -> Subset:
    """Those of some points that this process runs."""
    base: Points = points.points if isinstance(points, Subset) else points
    known = _memory(base)
    key = "owned", comm.size, comm.rank, id(points) if isinstance(points, Subset) else base.component
    found = known.get(key)
    if found is None or (isinstance(points, Subset) and found[0] is not points):
        mine = owners(base, comm.size) == comm.rank
        kept = points.indices[mine[points.indices]] if isinstance(points, Subset) else np.flatnonzero(mine)
        found = known[key] = points, base.subset(kept)
    return found[1]  # type: ignore[no-any-return]


def _memory(base: Points) -> dict[Any, Any]:
    if base.topology is not None:
        return base.topology.shared  # type: ignore[no-any-return]
    if len(_of_hand) > 256:
        _of_hand.clear()
    return _of_hand.setdefault(base, {})


_of_hand: dict[Points, dict[Any, Any]] = {}


def reached_entries(points: Points, table: Dofs, v: Any, flat: bool) -> SharedEntries:
    """How what the points of this process reach of a distributed array comes, and goes back."""
    view = verbs.leaf_of(v).view
    view = view if view.buffer.divided_so else evaluated_view(v)
    comm, part = view.buffer.comm, view.partition
    split = part.splits[0] if part is not None and len(part.mesh) == 1 and v.ndim else None
    size = math.prod(table.block) if flat else 1
    key = comm, split, size, points.of  # (equal points may be of unlike meshes)

    def find() -> SharedEntries:
        owner = _runs(v.shape[0], comm.size) if split is None else _owner_of(split)
        if size > 1:  # (a block is one process')
            owner = np.repeat(owner[::size], size)
        return SharedEntries(owner, own_rows(points, table, comm, size), comm)

    return _kept(table, key, find)


def _owner_of(split: Split) -> np.ndarray:
    found = np.empty(sum(split.counts), np.int32)
    for rank, held in enumerate(split.pieces):
        for a, b in held:
            found[a:b] = rank
    return found


def _kept(table: Dofs, key: Any, find: Any) -> Any:
    """(What all processes make together is kept as long as the table: none may be without it alone.)"""
    if table.shared is None:
        table.shared = {}
    if key not in table.shared:
        table.shared[key] = find()
    return table.shared[key]


def own_rows(points: Points, table: Any, comm: Any, size: int) -> np.ndarray:
    """The entries that this process' points reach; each row leads to so many."""
    mine = owners(points, comm.size) == comm.rank
    rows = np.unique(np.asarray(table.table)[mine]).astype(np.int64)
    rows = rows[rows >= 0]
    return rows if size == 1 else (rows[:, None] * size + np.arange(size)).reshape(-1)


def entries_of_tree(topology: Any, tree: Any, reached: Any = None, comm: Any = None) -> SharedEntries:
    """The entries of a tree over a mesh that all have: what stands under a point belongs where that does."""
    comm = communicator() if comm is None else comm
    key = "tree", comm, tree
    if reached is None and key in topology.shared:
        return topology.shared[key]  # type: ignore[no-any-return]
    owner = np.zeros(tree.size, np.int32)
    for path in tree.leaves:
        if topology.axis in path:
            at = np.asarray(tree.domain(path).indices[topology.axis])
            of = owners(topology.points(path[topology.axis]), comm.size)
            owner[np.asarray(tree.offsets(path))] = of[at]
    made = SharedEntries(owner, reached, comm)
    if reached is None:
        topology.shared[key] = made
    return made


def pattern_entries(tables: Any) -> SharedEntries | None:
    """The rows or columns of a matrix that cells of a mesh that all have add to; None of other tables."""
    source, tree = tables[0].source, getattr(tables[0], "tree", None)
    to = getattr(tables[0], "component", None)
    if not is_shared(source) or division_of(source) is not None or (tree is None and to is None):
        return None
    comm = communicator()
    reached = np.concatenate([own_rows(t.source, t, comm, math.prod(t.block)) for t in tables])
    if tree is not None:
        return entries_of_tree(source.topology, tree, reached, comm)
    return SharedEntries(owners(source.topology.points(to), comm.size), reached, comm)
