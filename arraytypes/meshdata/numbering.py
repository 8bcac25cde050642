"""Orders in which neighbours are near each other in memory: reverse Cuthill-McKee, and Hilbert's curve."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.meshdata.composing import inverse_order
from mirabelle.arraytypes.meshdata.maps import Map, Table
from mirabelle.arraytypes.meshdata.points import Subset

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh


def hilbert_order(points: npt.ArrayLike) -> Table:
    """The order in which a Hilbert curve visits points (n, d), by J. Skilling (doi:10.1063/1.1751381).

    Parameters
    ----------
    points : array (n, d)
        Coordinates, in one to three dimensions.

    Returns
    -------
    numpy.ndarray
        The indices of the points, (n,) integers: the first is that of the point that the curve visits
        first.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.hilbert_order([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]).tolist()
    [0, 3, 2, 1]
    """
    points = np.asarray(points, dtype=float).T
    if points.ndim != 2 or not len(points):
        raise ValueError(
            f"The points of a curve are a table (n, d), and these have the shape {points.T.shape}."
        )
    if not points.shape[1]:
        return np.zeros(0, dtype=np.int64)
    return np.argsort(hilbert_keys(points, points.min(1), points.max(1)), kind="stable")


def hilbert_keys(points: Table, low: Table, high: Table) -> Table:
    """How far along a Hilbert curve points (d, n) are, in the box that holds all of them."""
    dims, bits = len(points), min(20, 62 // len(points))
    size = max(float((high - low).max()), 1e-300)
    x = np.minimum((points - low[:, None]) / size * 2**bits, 2**bits - 1).astype(np.int64)
    for bit in reversed(range(1, bits)):
        below = (1 << bit) - 1
        for i in range(dims):
            upper = (x[i] >> bit) & 1 == 1
            swap = np.where(upper, 0, (x[0] ^ x[i]) & below)
            x[0] ^= np.where(upper, below, swap)
            x[i] ^= swap
    for i in range(1, dims):
        x[i] ^= x[i - 1]
    flip = np.zeros_like(x[0])
    for bit in range(1, bits):
        flip ^= ((x[-1] >> bit) & 1) * ((1 << bit) - 1)
    key = np.zeros_like(flip)
    for bit in reversed(range(bits)):
        for row in x ^ flip:
            key = (key << 1) | ((row >> bit) & 1)
    return key


def reverse_cuthill_mckee(neighbours: Map) -> Table:
    """An order of points that brings neighbours together, given the map from each point to its neighbours.

    Parameters
    ----------
    neighbours : Map
        From each point to its neighbours.

    Returns
    -------
    numpy.ndarray
        The numbers of the points in the new order, one integer for each of them.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1)
    >>> md.reverse_cuthill_mckee(mesh.closure("edge", "vertex")(mesh.support("vertex"))).tolist()
    [3, 2, 1, 0]
    """
    target = neighbours.target(neighbours.source)
    sources = np.repeat(np.arange(neighbours.source.size), target.sizes)
    there = target.values >= 0
    return graph_order(sources[there], target.values[there], neighbours.source.size)


def graph_order(starts: Table, ends: Table, size: int) -> Table:
    """Reverse Cuthill-McKee of a graph that is given by its edges, in one or both directions."""
    matrix = graph(starts, ends, size)
    return np.asarray(_scipy("scipy.sparse.csgraph").reverse_cuthill_mckee(matrix, symmetric_mode=True))


def graph(starts: Table, ends: Table, size: int) -> Any:
    """The symmetric matrix of a graph, without a diagonal."""
    sparse = _scipy("scipy.sparse")
    apart = starts != ends
    starts, ends = starts[apart], ends[apart]
    both = np.concatenate([starts, ends]), np.concatenate([ends, starts])
    matrix = sparse.coo_array((np.ones(len(both[0]), dtype=np.int8), both), shape=(size, size)).tocsr()
    matrix.sum_duplicates()
    return matrix


def _scipy(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            "Reverse Cuthill-McKee comes from SciPy, which is missing: `pip install scipy`, or take "
            '`mesh.renumbered(cells="hilbert")`, which needs nothing.'
        ) from None


def neighbouring_cells(mesh: Mesh) -> tuple[Table, Table]:
    """The pairs of cells that share a facet; cells are counted through all shapes."""
    starts, ends = [], []
    first = dict(zip(mesh.cells, np.cumsum([0, *map(len, mesh.cells.values())]), strict=False))
    names = {
        shape: name
        for name, shape in mesh.shapes.items()
        if shape in mesh.cells and name in mesh.components(mesh.dim)
    }
    for facet in mesh.facets:
        facets, cells = [], []
        for shape, start in first.items():
            down = mesh.topology.incidence(names[shape], facet)
            if down is not None:
                target = down.target(facet)
                facets.append(target.values)
                cells.append(np.repeat(np.arange(start, start + len(mesh.cells[shape])), target.sizes))
        facet_of, cell_of = np.concatenate(facets), np.concatenate(cells)
        order = np.argsort(facet_of, kind="stable")
        same = np.flatnonzero(np.diff(facet_of[order]) == 0)
        starts.append(cell_of[order[same]])
        ends.append(cell_of[order[same + 1]])
    return np.concatenate(starts), np.concatenate(ends)


def cell_midpoints(mesh: Mesh) -> Table:
    """The midpoints of the cells of all shapes."""
    return np.concatenate([mesh.midpoints(c) for c in mesh.components(mesh.dim)])


def _cell_orders(mesh: Mesh, given: Any) -> dict[str, Table]:
    """The order of the cells of each shape."""
    counts = {s: len(t) for s, t in mesh.cells.items()}
    if given is None:
        return {s: np.arange(n) for s, n in counts.items()}
    if isinstance(given, str):
        if given == "rcm":
            order = graph_order(*neighbouring_cells(mesh), sum(counts.values()))
        elif given == "hilbert":
            order = hilbert_order(cell_midpoints(mesh))
        else:
            raise ValueError(
                f'Cells are ordered by "rcm" or "hilbert" or by a list of numbers, and not {given!r}.'
            )
        out, at = {}, 0
        for s, n in counts.items():
            out[s] = order[(order >= at) & (order < at + n)] - at
            at += n
        return out
    orders = given if isinstance(given, dict) else dict.fromkeys(list(counts)[:1], given)
    if set(orders) != set(counts):
        raise ValueError(
            f"Cells of several shapes are given orders by a dictionary of the shapes {list(counts)}, and this "
            f"one has {list(orders)}."
        )
    return {s: inverse_order(orders[s], n, s)[0] for s, n in counts.items()}


def _vertex_order(mesh: Mesh, given: Any, cells: dict[str, Table]) -> Table:
    size = len(mesh.coordinates)
    if given is None or (isinstance(given, str) and given == "met"):
        seen = np.concatenate([mesh.cells[s][order].ravel() for s, order in cells.items()])
        met = np.full(size, seen.size, dtype=np.int64)
        met[seen[::-1]] = np.arange(seen.size)[::-1]
        return np.argsort(met, kind="stable")
    if isinstance(given, str):
        if given == "keep":
            return np.arange(size)
        if given == "rcm":
            edges = mesh.topology.entity_vertices(1, "interval")
            return graph_order(edges[:, 0], edges[:, 1], size)
        if given == "hilbert":
            return hilbert_order(mesh.coordinates)
        raise ValueError(
            f'Vertices are ordered by "met", "rcm", "hilbert", "keep" or a list of numbers, and not {given!r}.'
        )
    return inverse_order(given, size, "vertex")[0]


def renumbered(mesh: Mesh, cells: Any, vertices: Any) -> Mesh:
    """`Mesh.renumbered`."""
    from mirabelle.arraytypes.meshdata.meshes import Mesh

    if cells is None and vertices is None:
        raise TypeError('Say in which order: `mesh.renumbered(cells="hilbert")`.')
    if mesh.topology.owned is not None:
        raise ValueError(
            "The part of a mesh that a process has keeps its numbers; renumber the whole mesh first."
        )
    orders = _cell_orders(mesh, cells)
    old, new = inverse_order(_vertex_order(mesh, vertices, orders), len(mesh.coordinates), "vertex")
    tables = {s: new[mesh.cells[s][order]] for s, order in orders.items()}
    made = Mesh(mesh.coordinates[old], tables, inverted="keep")
    made._markers = {name: moved(subset, mesh, made, new) for name, subset in mesh.markers.items()}
    return made


def moved(subset: Subset, old: Mesh, new: Mesh, vertices: Table) -> Subset:
    """Points of one mesh as those of another in which each vertex has the number `vertices[v]`, -1 for none."""
    name = subset.points.component
    table = old.closure(name, "vertex").target().table
    assert table is not None
    renamed = vertices[table[subset.indices]]
    found = new.topology.find(name, renamed[(renamed >= 0).all(axis=1)])
    return new.points(name).subset(found[found >= 0])
