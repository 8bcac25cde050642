"""A part of the mesh in a gmsh file, read by all processes together: none has more of it than its share."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.meshdata.checking import GivenTwiceError, check_halves, check_hanging, inverted_cells
from mirabelle.arraytypes.meshdata.gmshindex import gmsh_file
from mirabelle.arraytypes.meshdata.gmshpieces import Cells, Pieces, read_pieces
from mirabelle.arraytypes.meshdata.maps import Table
from mirabelle.arraytypes.meshdata.parting import Part
from mirabelle.arraytypes.meshdata.piecewise import part_of_cells
from mirabelle.arraytypes.meshdata.points import Subset
from mirabelle.arraytypes.meshdata.rendezvous import asked, located, one_by_one, sent
from mirabelle.arraytypes.meshdata.shapes import SHAPES


def read_part(
    path: str | os.PathLike[str], *, overlap: int = 0, inverted: str = "flip", comm: Communicator | None = None
) -> Part:
    """This process' part of the mesh in a gmsh file, of which each process reads its share.

    None has the mesh as a whole. Files are of MSH 2.2 or 4.1, texts or binary. Cells, vertices and groups are
    those of `md.read_mesh`, with the numbers that they have there; a process gets the cells that
    `md.partition(mesh, n, method="hilbert")` gives it, and `overlap` layers of others' cells around them.

    Parameters
    ----------
    path : str or path
        The file, which all processes see.
    overlap : int, default 0
        How many layers of others' cells a part has. Finite volumes need one.
    inverted : {"error", "flip", "keep"}, default "flip"
        What is done about cells of negative volume.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    mb.meshdata.Part
        It has this process's `mesh`, with `markers` of the groups, and its `rank`; `numbers("cell")` and
        `numbers("vertex")` are the numbers of its points in the whole mesh.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.read_part("wing.msh")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no mesh file 'wing.msh'. A path begins in the folder that Python was started \
in, as "meshes/wing.msh", or at the root.
    """
    comm = communicator() if comm is None else comm
    if inverted not in ("error", "flip", "keep"):
        raise ValueError(f'What is inverted is an "error", or you "flip" or "keep" it, and not {inverted!r}.')
    pieces = own_cells(path, inverted, comm)
    names = np.unique(np.concatenate([np.unique(c.nodes) for c in pieces.cells.values()])).astype(np.int64)
    tables = {shape: c.nodes for shape, c in pieces.cells.items()}
    x = pieces.places(names)
    try:
        part = part_of_cells(x, tables, names, overlap=overlap, inverted="keep", comm=comm)
    except GivenTwiceError as error:  # (on all processes)
        raise ValueError(pieces.file.listed_twice()) from error
    for component, shape in part.mesh.shapes.items():
        if shape in tables:
            cells, (ranks, at) = pieces.cells[shape], part.ghosts(component)
            own = np.stack([cells.numbers, cells.groups], axis=1)
            answer = one_by_one(partial(_rows_of, own))
            both = np.concatenate([own, asked(comm, ranks, at[:, None].astype(np.int64), answer, 2)])
            cells.groups, part._numbers[component] = both[:, 1], both[:, 0].astype(own.dtype)
            part._numbers[component].setflags(write=False)
    on_all(comm, partial(check_halves, part.mesh))
    on_all(comm, partial(check_hanging, part.mesh))
    part.mesh._markers.update(_markers(pieces, part))
    return part


def _rows_of(table: Table, rows: Table) -> Table:
    return table[rows[:, 0]]


def own_cells(path: str | os.PathLike[str], inverted: str, comm: Communicator) -> Pieces:
    """The cells that go to each process. So far none has had more than a part of what is in the file."""
    pieces = read_pieces(gmsh_file(path, comm), comm, whole=False)
    if inverted != "keep":
        _turn(pieces, inverted == "flip")
    pieces.distribute(lambda shape: SHAPES[shape].vertices)
    return pieces


def _turn(pieces: Pieces, flip: bool) -> None:
    """Turn the cells that are inverted, among those that were read."""
    for shape, cells in pieces.cells.items():
        names = np.unique(cells.nodes)
        x, table = pieces.places(names), located(names, cells.nodes)
        known = int(cells.numbers[0]) if len(cells.numbers) else 0, names
        turned = on_all(pieces.comm, partial(inverted_cells, SHAPES[shape], x, table, flip, known))
        if turned is not table:
            cells.nodes = names[turned]


def _markers(pieces: Pieces, part: Part) -> dict[str, Subset]:
    """The groups of the file, of points that this process has."""
    comm, file, mesh = pieces.comm, pieces.file, part.mesh
    components = {s: c for c, s in mesh.shapes.items()}
    found: dict[tuple[str, str], list[Table]] = {}
    for shape, cells in pieces.cells.items():
        for group in np.unique(cells.groups).tolist():
            for name in file.groups(pieces.dim, group):
                found.setdefault((name, components[shape]), []).append(np.flatnonzero(cells.groups == group))
    for shape, some in pieces.lower.items():
        for name, vertices in _here(comm, pieces, part, shape, some).items():
            if shape in components and len(vertices):
                at = mesh.topology.find(components[shape], vertices)
                found.setdefault((name, components[shape]), []).append(at[at >= 0])
            elif shape in components:
                found.setdefault((name, components[shape]), [])
    known = sorted({key for keys in comm.allgather_object(list(found)) for key in keys})
    several = {name for name, _ in known if sum(n == name for n, _ in known) > 1}
    none = np.zeros(0, np.int64)
    return {
        f"{name} {c}" if name in several else name: mesh.points(c).subset(
            np.unique(np.concatenate([none, *found.get((name, c), [])]))
        )
        for name, c in known
    }


def _here(comm: Communicator, pieces: Pieces, part: Part, shape: str, some: Cells) -> dict[str, Table]:
    """The elements of each group all of whose vertices this process has, by the numbers that they have here."""
    dim = SHAPES[shape].dim if shape in SHAPES else 0
    rows: list[Table] = []
    said: dict[str, list[Table]] = {}
    for group in np.unique(some.groups).tolist():
        for name in pieces.file.groups(dim, group):
            nodes = some.nodes[some.groups == group]
            said.setdefault(name, []).append(nodes[(nodes >= 0).all(axis=1)])
    names = sorted({n for given in comm.allgather_object(list(said)) for n in given})
    width = some.nodes.shape[1]
    for number, name in enumerate(names):
        nodes = np.concatenate([np.zeros((0, width), np.int64), *said.get(name, [])])
        rows.append(np.concatenate([np.full((len(nodes), 1), number), nodes], axis=1))
    marked = np.concatenate([np.zeros((0, 1 + width), np.int64), *rows])
    # Of each vertex one process, which its number chooses, knows who has it.
    mine = part.numbers("vertex").astype(np.int64)
    homes = np.stack([mine, np.full(len(mine), comm.rank)], axis=1)
    known = sent(comm, mine % comm.size, homes)
    known = known[np.argsort(known[:, 0], kind="stable")]
    came = sent(comm, marked[:, 1] % comm.size, marked)
    first, last = (np.searchsorted(known[:, 0], came[:, 1], side=s) for s in ("left", "right"))
    again = np.repeat(np.arange(len(came)), last - first)
    within = np.arange(len(again)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    got = sent(comm, known[np.repeat(first, last - first) + within, 1], came[again])
    order = np.argsort(mine)
    at = np.searchsorted(mine[order], got[:, 1:])
    at = np.minimum(at, max(len(mine) - 1, 0))
    whole = (mine[order][at] == got[:, 1:]).all(axis=1) if len(mine) else np.zeros(len(got), bool)
    return {n: order[at[whole & (got[:, 0] == k)]] for k, n in enumerate(names)}
