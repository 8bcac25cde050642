"""Who touches whom: the faces of cells as `mirabelle.meshdata` numbers them, for all types of cells alike.

Cells that share a face see it with their own order of its vertices. How the two orders match is one of the
symmetries of the face's reference cell; everything else about two sides of a face follows from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import permutations, product
from math import comb

import numpy as np

from mirabelle import meshdata as md
from mirabelle.dg.elements import element

DIMS = {"point": 0, "line": 1, "triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}
# Where the vertices of cells are in the order of files and of `mirabelle.meshdata`, which walks around squares.
CORNERS: dict[str, list[tuple[int, ...]]] = {
    "point": [()],
    "line": [(-1,), (1,)],
    "triangle": [(-1, -1), (1, -1), (-1, 1)],
    "quadrilateral": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "tetrahedron": [(-1, -1, -1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)],
    "hexahedron": [(x, y, z) for z in (-1, 1) for x, y in [(-1, -1), (1, -1), (1, 1), (-1, 1)]],
}
Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NOT_CONFORMING = (
    "Cells must share whole faces with at most one neighbour: no hanging nodes, no points or cells given "
    "twice. In gmsh, `Coherence Mesh;` joins points at the same place."
)


@cache
def face_vertices(cell: str) -> np.ndarray:
    """The vertices of each face of a cell, (faces, vertices of a face), in the order of the face's cell.

    >>> face_vertices("tetrahedron").shape, face_vertices("hexahedron").shape
    ((4, 3), (6, 4))
    """
    return np.array([tuple(face.vertices) for face in element(cell, 1).faces], dtype=np.int64)


@cache
def symmetries(cell: str) -> np.ndarray:
    """The orders in which another cell may see the vertices of a face, (symmetries, vertices), its own first.

    >>> [len(symmetries(cell)) for cell in ("point", "line", "triangle", "quadrilateral")]
    [1, 2, 6, 8]
    """
    if cell in ("point", "line", "triangle"):
        return np.array(list(permutations(range(DIMS[cell] + 1))), dtype=np.int64)
    square = np.arange(4).reshape(2, 2)
    turned = [s[::a, ::b] for s in (square, square.T) for a, b in product((1, -1), repeat=2)]
    return np.array([s.ravel() for s in turned], dtype=np.int64)


def permutation_table(cell: str, points: np.ndarray) -> np.ndarray:
    """Where the points of a face rule go under each symmetry of the face, (symmetries, points).

    >>> permutation_table("line", np.array([[-1.0], [0.0], [1.0]])).tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    if cell == "point":
        return np.zeros((1, 1), dtype=np.int64)
    first = element(cell, 1)
    moved = first.interpolation(points)[:, symmetries(cell)] @ first.vertices  # (points, symmetries, d)
    distance = np.abs(moved[:, :, None] - points).max(3)
    if distance.min(2).max() > 1e-9:
        raise ValueError(
            f"The {len(points)} points on a {cell} are not symmetric, so those of neighbours do not meet. Take "
            f"the points of an element: `dg.element({cell!r}, order).nodes`."
        )
    return distance.argmin(2).T


def order_of(cell: str, count: int) -> int:
    """The order of cells with so many nodes.

    >>> order_of("triangle", 6), order_of("hexahedron", 27)
    (2, 2)
    """
    d, tensor = DIMS[cell], element(cell, 1).is_tensor
    counts = [(p + 1) ** d if tensor else comb(p + d, d) for p in range(1, 11)]
    if count not in counts:
        raise ValueError(
            f"There are no {cell}s with {count} nodes: those of the orders from 1 to 10 have {counts}. In "
            f"gmsh, `Mesh.SecondOrderIncomplete = 0;` gives all nodes of an order."
        )
    return counts.index(count) + 1


@cache
def corner_order(cell: str) -> np.ndarray:
    """The numbers of a cell's vertices in the order of `CORNERS`.

    >>> corner_order("quadrilateral").tolist()
    [0, 2, 3, 1]
    """
    if cell == "point":
        return np.zeros(1, dtype=np.int64)
    corners = np.array(CORNERS[cell])
    return np.abs(corners[:, None] - element(cell, 1).vertices).max(2).argmin(1)


def topology(cell: str, vertices: np.ndarray) -> md.Topology:
    """Cells with these vertices (nv, K), as `mirabelle.meshdata` sees them.

    >>> topology("triangle", np.array([[0, 1], [1, 3], [2, 2]])).size("edge")
    5
    """
    shape = "interval" if cell == "line" else cell
    table = np.ascontiguousarray(vertices[corner_order(cell)].T)
    return md.Topology({shape: table}, int(vertices.max(initial=-1)) + 1)


def walked(cell: str, faces: np.ndarray) -> np.ndarray:
    """The vertices of faces (vertices of a face, n) as `meshdata` lists them, a row for each face."""
    return np.ascontiguousarray(faces[corner_order(element(cell, 1).face_cell)].T)


@cache
def _facet_columns(cell: str) -> np.ndarray:
    """Which of the facets that `meshdata` lists for a cell each face is."""
    count = len(element(cell, 1).vertices)
    one = topology(cell, np.arange(count)[:, None])
    (facet,) = one.components(one.dim - 1)
    listed = _facets_of_cells(one)[0]
    return (one.find(facet, walked(cell, face_vertices(cell).T))[:, None] == listed).argmax(1)


def _facets_of_cells(topology: md.Topology) -> np.ndarray:
    (facet,) = topology.components(topology.dim - 1)
    found = topology.incidence("cell", facet)
    assert found is not None
    table = found.target().table
    assert table is not None
    return table


def facet_numbers(cell: str, topology: md.Topology) -> np.ndarray:
    """The number of each face of each cell, (Nf, K): one for the two cells that share it.

    >>> facet_numbers("line", topology("line", np.array([[0, 1], [1, 2]]))).tolist()
    [[0, 1], [1, 2]]
    """
    return np.ascontiguousarray(_facets_of_cells(topology)[:, _facet_columns(cell)].T)


def place_labels(points: np.ndarray) -> np.ndarray:
    """One number a point of (d, n): equal where points are at the same place, but for rounding.

    >>> place_labels(np.array([[0.1 + 0.2, 1.0, 0.3]])).tolist()
    [0, 1, 0]
    """
    # A power of two: the middles between numbers of the grid are no likely coordinates.
    grid = np.rint(points / np.abs(points).max(initial=1e-300) * 2.0**30).astype(np.int64)
    return np.unique(grid, axis=1, return_inverse=True)[1].ravel()


def connect(
    cell: str, vertices: np.ndarray, links: Iterable[np.ndarray] = (), known: md.Topology | None = None
) -> Found:
    """Neighbours, their faces, how they see vertices (all (Nf, K)), and the flat numbers of faces without one.

    Cells are given by their vertices (nv, K). Each of the `links` makes a pair of sides periodic: it gives,
    for every vertex of one side, the vertex of the other that it meets, and -1 for all others. Sides are
    matched by their own vertices and not by identified ones, so that a single cell can be its own neighbour.
    `known` is the topology of the cells.

    >>> cells, faces, orientations, alone = connect("line", np.array([[0, 1], [1, 2]]))
    >>> cells.tolist(), faces.tolist(), alone.tolist()
    ([[0, 0], [1, 1]], [[0, 1], [0, 1]], [0, 3])
    """
    local = face_vertices(cell)
    shape = len(local), vertices.shape[1]
    ids = np.ascontiguousarray(vertices[local.T].reshape(local.shape[1], -1))  # (vertices of a face, Nf * K)
    known = topology(cell, vertices) if known is None else known
    (facet,) = known.components(known.dim - 1)
    numbers = facet_numbers(cell, known).ravel()
    own = np.arange(shape[0] * shape[1])
    mates, orientations = own.copy(), np.zeros(own.shape, dtype=np.int8)

    def join(faces: np.ndarray, seen: np.ndarray, numbers: np.ndarray) -> None:
        """Join those of some faces that have the same number; `seen` are their vertices."""
        first, last = np.empty((2, known.size(facet)), dtype=np.int64)
        first[numbers[::-1]] = np.arange(len(faces))[::-1]
        last[numbers] = np.arange(len(faces))
        one = np.flatnonzero(first[numbers] == np.arange(len(faces)))
        other = last[numbers[one]]
        one, other = (at[one != other] for at in (one, other))
        several = np.flatnonzero(np.bincount(numbers, minlength=1)[numbers[one]] > 2)
        ours, theirs = seen[:, one], seen[:, other]
        matched = np.zeros(len(one), dtype=bool)
        table = symmetries(element(cell, 1).face_cell)
        for number, symmetry in enumerate(table):
            fits = (theirs == ours[symmetry]).all(0)
            matched |= fits
            orientations[faces[one[fits]]] = number
            orientations[faces[other[fits]]] = (table == np.argsort(symmetry)).all(1).argmax()
        for bad, what in (
            (one[several], "more than two cells share"),
            (one[~matched], "two cells disagree about the order of the corners of"),
        ):
            if len(bad):
                raise _not_conforming(what, seen[:, bad[0]])
        mates[faces[one]], mates[faces[other]] = faces[other], faces[one]

    join(own, ids, numbers)
    alone = np.flatnonzero(mates == own)
    _check_corners(ids[:, alone])
    for link in links:
        moved = link[ids[:, alone]]
        moves = (moved >= 0).all(0)
        at = numbers[alone]
        at[moves] = known.find(facet, walked(cell, moved[:, moves]), among=np.unique(at))
        met = at >= 0
        join(alone[met], np.where(moves, moved, ids[:, alone])[:, met], at[met])
        left = alone[moves & (mates[alone] == alone)]
        if len(left):
            raise ValueError(
                "Two periodic sides do not match: there is no partner for the face of the vertices "
                f"{ids[:, left[0]].tolist()}, one of {len(left)} such faces. Both sides need the same mesh; in "
                "gmsh, `Periodic Curve {2} = {1} Translate {1, 0, 0};` copies it (in 3-D: `Periodic Surface`)."
            )
        alone = alone[mates[alone] == alone]
    flat = mates.reshape(shape)
    return (
        (flat % shape[1]).astype(np.int32),
        (flat // shape[1]).astype(np.int32),
        orientations.reshape(shape),
        alone,
    )


def names_of(known: md.Topology, numbers: np.ndarray, parts: Mapping[str, np.ndarray]) -> np.ndarray:
    """The names of faces by their numbers, "" for none, where `parts` has the vertices of those of each name.

    >>> cells = topology("triangle", np.array([[0, 1], [1, 3], [2, 2]]))
    >>> names_of(cells, np.array([0, 1]), {"left": np.array([[2], [0]])}).tolist()
    ['', 'left']
    """
    (facet,) = known.components(known.dim - 1)
    names = np.full(known.size(facet), "", dtype=object)
    for part, faces in parts.items():
        found = known.find(facet, np.ascontiguousarray(faces.T), among=numbers)
        names[found[found >= 0]] = part
    return names[numbers]


def _check_corners(alone: np.ndarray) -> None:
    """Raise a ValueError if faces without a neighbour have the same vertices (n of them), in another order."""
    if len(alone) > 3:  # (conforming faces do not share three vertices and differ in the fourth)
        _, at, count = np.unique(np.sort(alone, axis=0)[:3], axis=1, return_index=True, return_counts=True)
        if len(bad := at[count > 1]):
            raise _not_conforming("two cells disagree about the order of the corners of", alone[:, bad[0]])


def _not_conforming(what: str, face: np.ndarray) -> ValueError:
    why = f"{what} a face of the vertices {face.tolist()}"
    return ValueError(f"The mesh is not conforming: {why}. {NOT_CONFORMING}")


def identified(vertices: np.ndarray, links: Iterable[np.ndarray]) -> np.ndarray:
    """The vertices of cells after those that periodic sides share have become one.

    >>> identified(np.array([[0, 1], [1, 2]]), [np.array([-1, -1, 0])]).tolist()
    [[0, 1], [1, 0]]
    """
    roots, before = np.arange(int(vertices.max()) + 1), None
    while before is None or (roots != before).any():
        before = roots.copy()
        for link in links:  # Corners meet each other along several ways: the least number is kept.
            on = np.flatnonzero(link[: len(roots)] >= 0)
            least = np.minimum(roots[on], roots[link[on]])
            np.minimum.at(roots, on, least)
            np.minimum.at(roots, link[on], least)
        roots = roots[roots]
    return roots[vertices].astype(np.int64, copy=False)
