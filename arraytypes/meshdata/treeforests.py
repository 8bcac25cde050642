"""From the points of a mesh to the entries of a tree: under each point that is a copy stand copies.

Which entries are under which points the tree of each process says, in its own layout. So each asks the owners
where in theirs the entries of the roots lie: once, when the forest is made.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.meshdata.forestlinks import by_rank, swapped

if TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.communicators import Communicator
    from mirabelle.arraytypes.meshdata.forests import StarForest
    from mirabelle.arraytypes.meshdata.parting import Part
    from mirabelle.arraytypes.meshdata.trees import AxisTree


def tree_forest(tree: AxisTree, points: Mapping[Any, StarForest], label: Hashable) -> StarForest:
    """The forest of a tree's entries, from those of the points of an axis: one for each component.

    The axis may stand anywhere in the tree: above fields and degrees of freedom, or below fields. Components
    that `points` does not name have no copies.

    Parameters
    ----------
    tree : AxisTree
        The tree of arrays.
    points : mapping of components to StarForest
        The forests of the points; the key None is for an axis of one component.
    label : hashable
        The axis of these points.

    Returns
    -------
    mb.meshdata.StarForest
        It says which entries of this process are copies (`leaves`), and what of: entries (`roots`) of other
        processes.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> points = md.StarForest(3, owners=[0], roots=[1])             # vertex 2 is a copy of vertex 1
    >>> tree = md.tree(md.Axis("field", {"u": 1, "p": 1}), {"u": md.tree(md.Axis("mesh", 3), md.Axis("dim", 2)),
    ...                                                     "p": md.Axis("mesh", 3)})
    >>> forest = md.tree_forest(tree, {None: points}, "mesh")
    >>> forest.leaves.tolist(), forest.roots.tolist()
    ([4, 5, 8], [2, 3, 7])
    """
    from mirabelle.arraytypes.meshdata.forests import StarForest

    if not points:
        raise ValueError("A tree's forest follows from that of points: give one for a component at least.")
    comm = next(iter(points.values())).comm
    found = on_all(comm, lambda: _asked(tree, points, label))
    said = comm.allgather_object([tuple(path.items()) for path in tree.leaves])
    for r, paths in enumerate(said):
        if paths != said[0]:  # (all find the same)
            raise ValueError(
                f"Ranks disagree: the leaves of rank 0's tree are {said[0]}, and those of rank {r}'s are "
                f"{paths}."
            )
    owners, own, rows = found
    order = np.argsort(owners, kind="stable")
    owners, own, rows = owners[order], own[order], rows[order]
    asked = swapped(comm, by_rank(owners, rows), rows.shape[1])
    answers = on_all(comm, lambda: {r: _answered(tree, label, wanted)[:, None] for r, wanted in asked.items()})
    came = swapped(comm, answers, 1)
    roots = np.concatenate([np.zeros(0, np.int64), *[came[r][:, 0] for r in sorted(came)]])
    return StarForest(tree.size, owners, roots, own, comm=comm)


def part_forest(part: Part, of: str | AxisTree, *, comm: Communicator | None = None) -> StarForest:
    """The forest of one process' part of a mesh: of the points of a component, or of the entries of a tree.

    `part` is what `mesh.part(owner, rank)` gives for the rank of this process; all make theirs together.

    Parameters
    ----------
    part : Part
        This process' part.
    of : str or AxisTree
        A component ("vertex"), or the tree of arrays.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    mb.meshdata.StarForest
        It says which entries of this process are copies (`leaves`), and what of: entries (`roots`) of other
        processes.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> part = md.interval(4).part([0, 0, 0, 0], mb.distributed.communicator().rank)
    >>> md.part_forest(part, "vertex")
    <star forest: 5 entries on rank 0 of 1, 0 of them leaves>
    >>> md.part_forest(part, md.space(part.mesh, "P", 2, components=2).tree)
    <star forest: 18 entries on rank 0 of 1, 0 of them leaves>
    """
    from mirabelle.arraytypes.distributed.communicators import communicator
    from mirabelle.arraytypes.meshdata.forests import StarForest

    comm = communicator() if comm is None else comm
    on_all(comm, lambda: _check_rank(part, comm))
    axis = part.mesh.axis
    kinds = [of] if isinstance(of, str) else list(axis.keys)
    points = {kind: StarForest(part.mesh.points(kind).size, *part.ghosts(kind), comm=comm) for kind in kinds}
    return points[of] if isinstance(of, str) else tree_forest(of, points, axis.label)


def _check_rank(part: Any, comm: Any) -> None:
    if part.rank != comm.rank:
        raise ValueError(
            f"This is the part of rank {part.rank}, and the process is rank {comm.rank}: make it by "
            "`mesh.part(owner, comm.rank)`."
        )


def _asked(
    tree: Any, points: Mapping[Any, StarForest], label: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each entry under a copy: the owner, its place here, and the leaf and indices that it has there."""
    paths = tree.leaves
    width = 1 + max((len(path) for path in paths), default=0)
    owners, places, rows = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros((0, width), np.int64)]
    if not any(label in path for path in paths):
        raise KeyError(f"No leaf of the tree is below an axis {label!r}.")
    for k, path in enumerate(paths):
        forest = points.get(path.get(label)) if label in path else None
        if forest is None:
            continue
        indices = tree.domain(path).indices
        at = np.asarray(indices[label])
        if at.size and int(at.max()) >= forest.size:
            raise ValueError(
                f"The axis {label!r} of the tree has points up to {int(at.max())} of component "
                f"{path[label]!r}, and "
                f"the forest of those is of {forest.size}."
            )
        owner, root = np.full(forest.size, -1), np.full(forest.size, -1)
        owner[forest.leaves], root[forest.leaves] = forest.owners, forest.roots
        copies = np.flatnonzero(owner[at] >= 0)
        row = np.zeros((len(copies), width), np.int64)
        row[:, 0] = k
        for column, name in enumerate(path):
            index = np.broadcast_to(np.asarray(indices[name]), at.shape)[copies]
            row[:, 1 + column] = root[index] if name == label else index
        owners.append(owner[at][copies])
        places.append(np.asarray(tree.offsets(path))[copies])
        rows.append(row)
    return np.concatenate(owners), np.concatenate(places), np.concatenate(rows)


def _answered(tree: Any, label: Any, rows: np.ndarray) -> np.ndarray:
    """Where the entries that another process asks for lie here."""
    found = np.empty(len(rows), np.int64)
    for k, path in enumerate(tree.leaves):
        mine = np.flatnonzero(rows[:, 0] == k)
        if len(mine):
            indices = {name: rows[mine, 1 + column] for column, name in enumerate(path)}
            try:
                found[mine] = tree.offset(path, indices)
            except IndexError as e:
                raise IndexError(
                    f"Ranks disagree about what is under a point of {label!r}: a copy has entries that the "
                    f"owner's "
                    f"tree has not. {e}"
                ) from None
    return found
