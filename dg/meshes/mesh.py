"""The class Mesh: where cells are, and who touches whom."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mirabelle.dg.elements import element
from mirabelle.dg.meshes import connectivity, drawing
from mirabelle.dg.meshes.connectivity import DIMS, face_vertices
from mirabelle.dg.meshes.quality import Quality, determinant, quality
from mirabelle.dg.spelled import ArrayLike, Axes
from mirabelle.meshdata import hilbert_order

CHUNK = 2**15  # cells at once, where intermediate results are larger than the mesh
ARRAYS = "cells", "coordinates", "neighbour_cells", "neighbour_faces", "orientations"
Coordinates = tuple[np.ndarray, ...]
Faces = tuple[np.ndarray, np.ndarray]  # which face of which cell: (n,) and (n,)


@dataclass(frozen=True, eq=False, repr=False)
class Mesh:
    """Cells of one type, their geometry (polynomials, so cells may be curved) and their connectivity.

    Meshes do not change: what changes one gives another. `dg.box`, `dg.read_mesh`, `Mesh.from_cells` make
    them.

    >>> from mirabelle import dg
    >>> mesh = dg.box((4, 3), cell="triangle", periodic=(True, False))
    >>> mesh
    Mesh(24 triangles of order 1 in 2 dimensions; boundaries y_neg: 4, y_pos: 4; periodic)
    >>> mesh.coordinates.shape, mesh.neighbour_cells.shape, mesh.boundary_names
    ((2, 3, 24), (3, 24), ('y_neg', 'y_pos'))
    """

    cell: str
    order: int
    cells: np.ndarray  # (nv, K): vertices of each cell; those that periodic sides share are one
    coordinates: np.ndarray  # (d, Ng, K): positions of the nodes of `dg.element(cell, order)` in each cell
    neighbour_cells: np.ndarray  # (Nf, K): the cell behind each face, at a boundary the cell itself
    neighbour_faces: np.ndarray  # (Nf, K): which of its faces that is, at a boundary the face itself
    orientations: np.ndarray  # (Nf, K): how the neighbour sees the face's vertices, a row of `symmetries`
    boundaries: dict[str, Faces]  # the parts of the boundary; faces without a name are "unnamed"

    def __post_init__(self) -> None:
        for name in ARRAYS:
            getattr(self, name).flags.writeable = False

    @staticmethod
    def from_cells(
        cell: str,
        vertices: ArrayLike,
        coordinates: ArrayLike,
        name: Callable[[np.ndarray], np.ndarray] | Mapping[str, np.ndarray] | None = None,
        links: Iterable[np.ndarray] = (),
    ) -> Mesh:
        """A mesh of cells with these vertices (nv, K) and positions of their nodes (d, Ng, K).

        `name` gets the vertices (vertices of a face, n) of the faces at the boundary and gives their names, or
        "" for none; or it has, by names, the vertices (vertices of a face, n) of faces, walked around. `links`
        are periodic sides, as `connect` takes them.

        >>> x = np.array([[[0.0, 1.0], [1.0, 3.0]]])
        >>> Mesh.from_cells("line", [[0, 1], [1, 2]], x, lambda ids: np.where(ids[0] == 0, "left", ""))
        Mesh(2 lines of order 1 in 1 dimension; boundaries unnamed: 1, left: 1)
        """
        vertices, links = np.array(vertices), list(links)
        coordinates = np.array(coordinates, dtype=float)
        known = connectivity.topology(cell, vertices)
        near, sides, turns, alone = connectivity.connect(cell, vertices, links, known)
        faces, cells = np.divmod(alone, vertices.shape[1])
        names: np.ndarray = np.full(len(faces), "", dtype=object)
        if isinstance(name, Mapping):
            numbers = connectivity.facet_numbers(cell, known)[faces, cells]
            names = connectivity.names_of(known, numbers, name)
        elif name is not None:
            names = name(vertices[face_vertices(cell)[faces].T, cells])
        order, vertices = (
            connectivity.order_of(cell, coordinates.shape[1]),
            connectivity.identified(vertices, links),
        )
        mesh = Mesh(cell, order, vertices, coordinates, near, sides, turns, _parts(names, faces, cells))
        mesh._check_cells()
        mesh._check_conforming()
        return mesh

    @property
    def dims(self) -> int:
        """The number of dimensions."""
        return DIMS[self.cell]

    def __len__(self) -> int:
        return self.cells.shape[1]

    @property
    def K(self) -> int:
        """The number of cells."""
        return len(self)

    @property
    def boundary_names(self) -> tuple[str, ...]:
        """The names of the parts of the boundary."""
        return tuple(self.boundaries)

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Positions (d, n, K) of points (n, d) of the reference cell, in all cells.

        >>> from mirabelle import dg
        >>> dg.box(2, upper=4.0).positions(np.array([[0.0]])).tolist()
        [[[1.0, 3.0]]]
        """
        return element(self.cell, self.order).interpolation(points) @ self.coordinates

    @cached_property
    def vertices(self) -> np.ndarray:
        """Positions of each cell's vertices, (d, nv, K)."""
        return self.coordinates if self.order == 1 else self.positions(element(self.cell, 1).vertices)

    def face_centres(self, faces: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """The middles of the vertices of some faces, (d, n)."""
        return self.vertices[:, face_vertices(self.cell)[faces].T, cells].mean(1)

    @cached_property
    def open_faces(self) -> np.ndarray:
        """Which faces (Nf, K) have no neighbour."""
        cells, faces = self.neighbour_cells, self.neighbour_faces
        return (cells == np.arange(len(self))) & (faces == np.arange(len(faces))[:, None])

    @cached_property
    def periodic_faces(self) -> np.ndarray:
        """Which faces (Nf, K) have their neighbour elsewhere: at another side of the domain."""
        centres = np.stack([self.vertices[:, v].mean(1) for v in face_vertices(self.cell)], axis=1)
        shift = np.abs(centres - centres[:, self.neighbour_faces, self.neighbour_cells]).max(0)
        return shift > 1e-6 * np.abs(self.vertices - self.vertices[:, :1]).max(initial=0.0)

    def check_boundaries(self, given: Iterable[str]) -> None:
        """Raise a ValueError unless conditions of the `given` names are what the mesh needs.

        >>> from mirabelle import dg
        >>> dg.box(4).check_boundaries(["x_neg"])
        Traceback (most recent call last):
            ...
        ValueError: The boundaries of the mesh are x_neg, x_pos, but conditions were given for x_neg. Add \
them, e.g. boundary_conditions={"x_pos": dg.SlipWall()}.
        """
        if sorted(given := list(given)) == sorted(self.boundaries):
            return
        names = [", ".join(n) or "none" for n in (self.boundaries, given)]
        text = f"The boundaries of the mesh are {names[0]}, but conditions were given for {names[1]}."
        missing = sorted(set(self.boundaries) - set(given))
        if missing:
            text += f' Add them, e.g. boundary_conditions={{"{missing[0]}": dg.SlipWall()}}.'
        if "unnamed" in missing:
            at = _text(self.face_centres(*self.boundaries["unnamed"])[:, 0])
            text += (
                f" Faces without a name, such as that at {at}, get one by `mesh.named(wall=lambda x: x[0] > "
                "0)`, or "
                f'from physical groups of the mesh file, in gmsh: `Physical Surface("wall") = {{1, 2}};`.'
            )
        raise ValueError(text)

    def face_permutation(self, points: np.ndarray) -> np.ndarray:
        """For each face point the flat number q * K + k of the neighbour's that it meets, (Nf * nq, K) int32.

        `points` (nq, d-1) are those of one face, in its reference cell. Points of the boundary meet
        themselves.

        >>> from mirabelle import dg
        >>> dg.box(3).face_permutation(np.zeros((1, 0))).tolist()  # each left face meets a right one
        [[0, 3, 4], [1, 2, 5]]
        """
        table = connectivity.permutation_table(element(self.cell, 1).face_cell, np.asarray(points))
        shape = faces, count, cells = len(self.neighbour_faces), table.shape[1], len(self)
        if faces * count * cells >= 2**31:
            raise ValueError(
                f"There are {faces * count * cells} points of faces, more than 32 bits can number. Take fewer "
                "cells, or a lower order: `dg.Solver(order=2)`."
            )
        start = self.neighbour_faces * np.int32(count * cells) + self.neighbour_cells
        steps = (table * cells).astype(np.int32)
        out = np.empty(shape, dtype=np.int32)
        for q in range(count):
            np.add(start, steps[self.orientations, q], out=out[:, q])
        return out.reshape(faces * count, cells)

    def jacobians(self, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Derivatives (d, r, n, cells) of positions at points of the reference cell, some cells at a time."""
        D = element(self.cell, self.order).interpolation_gradient(points)
        for start in range(0, len(self), CHUNK):
            part = slice(start, min(start + CHUNK, len(self)))
            yield part, D @ self.coordinates[:, None, :, part]

    @cached_property
    def volumes(self) -> np.ndarray:
        """The volume of each cell, (K,).

        >>> from mirabelle import dg
        >>> dg.box((2, 1), upper=(1.0, 3.0)).volumes.round(12).tolist()
        [1.5, 1.5]
        """
        points, weights = element(self.cell, 1).quadrature(self.dims * self.order)
        return np.concatenate([weights @ determinant(a) for _, a in self.jacobians(points)])

    @cached_property
    def fingerprint(self) -> str:
        """A short text that tells this mesh from others, for restarts.

        >>> from mirabelle import dg
        >>> dg.box(4).fingerprint == dg.box(4).fingerprint, dg.box(4).fingerprint == dg.box(5).fingerprint
        (True, False)
        """
        digest = hashlib.sha256(f"{self.summary} {self.cells.shape}".encode())
        for array in [getattr(self, n) for n in ARRAYS] + [
            a for part in self.boundaries.values() for a in part
        ]:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def map(self, f: Callable[[Coordinates], Iterable[Any]], order: int | None = None) -> Mesh:
        """The mesh with its nodes moved: `f` takes the coordinates x, y, ... as a tuple and gives the new
        ones.

        A higher `order` than the mesh has makes curved cells.

        >>> from mirabelle import dg
        >>> ring = dg.box((2, 8), lower=(1.0, 0.0), upper=(2.0, 2 * np.pi), periodic=(False, True)).map(
        ...     lambda x: (x[0] * np.cos(x[1]), x[0] * np.sin(x[1])), order=4)
        >>> bool(abs(ring.volumes.sum() - 3 * np.pi) < 1e-3)
        True
        """
        order = order or self.order
        x = self.coordinates if order == self.order else self.positions(element(self.cell, order).nodes)
        new = [np.broadcast_to(np.asarray(a, dtype=float), x.shape[1:]) for a in f(tuple(x.copy()))]
        if len(new) != self.dims:
            raise ValueError(
                f"The mapping returned a tuple of length {len(new)}, in a space of the dimension {self.dims}. "
                "It takes a tuple of coordinates and returns another, like "
                "`lambda x: (x[0] + 0.1 * np.sin(x[1]), x[1])`."
            )
        mesh = replace(self, order=order, coordinates=np.stack(new))
        mesh._check_cells()
        return mesh

    def named(self, **rules: Callable[[Coordinates], np.ndarray]) -> Mesh:
        """The mesh with faces at its boundary named by where their centres are; the others keep their names.

        >>> from mirabelle import dg
        >>> dg.box((2, 2)).named(inlet=lambda x: (x[0] < 1e-9) & (x[1] < 0.5)).boundary_names
        ('inlet', 'x_neg', 'x_pos', 'y_neg', 'y_pos')
        """
        table = np.full(self.open_faces.shape, "", dtype=object)
        for name, part in self.boundaries.items():
            table[part] = name
        faces, cells = np.nonzero(self.open_faces)
        names, centres = table[faces, cells], tuple(self.face_centres(faces, cells))
        for name, rule in rules.items():
            names[np.asarray(rule(centres), dtype=bool)] = name
        return replace(self, boundaries=_parts(names, faces, cells))

    def renumbered(self, order: np.ndarray) -> Mesh:
        """The same mesh with its cells in another order: the new cell k is the old cell order[k]."""
        places = np.argsort(order).astype(np.int32)
        arrays = {name: getattr(self, name)[..., order] for name in ARRAYS}
        arrays["neighbour_cells"] = places[arrays["neighbour_cells"]]
        parts = {name: (faces, places[cells]) for name, (faces, cells) in self.boundaries.items()}
        return replace(self, boundaries=parts, **arrays)

    def reordered(self) -> Mesh:
        """The same mesh with its cells along a Hilbert curve, so that neighbours are near each other in
        memory.

        >>> from mirabelle import dg
        >>> mesh = dg.box((64, 64)).renumbered(np.random.default_rng(1).permutation(4096))
        >>> near = lambda m: np.median(np.abs(m.neighbour_cells - np.arange(len(m))))
        >>> bool(near(mesh.reordered()) < 10 < 1000 < near(mesh))
        True
        """
        return self.renumbered(hilbert_order(self.vertices.mean(1).T))

    def quality(self) -> Quality:
        """Volumes, aspect ratios, skewness and the Jacobians' ratios of the cells, as a report; see `Quality`.

        >>> from mirabelle import dg
        >>> round(float(dg.box((4, 4), cell="triangle").quality().skewness.max()), 12)
        0.25
        """
        return quality(self)

    def _check_cells(self) -> None:
        """Raise a ValueError if a cell is turned inside out."""
        straight = self.order == 1 and self.cell in ("line", "triangle", "tetrahedron")
        points = element(self.cell, self.order).nodes
        for part, a in self.jacobians(points[:1] if straight else points):
            bad = np.flatnonzero(~(determinant(a) > 0).all(0)) + part.start
            if len(bad):
                raise ValueError(
                    f"Cell {bad[0]} at {_text(self.vertices[:, :, bad[0]].mean(1))} (and perhaps more) is "
                    "inverted or flat: its Jacobian's determinant is not positive everywhere. Mappings must "
                    "keep the orientation and not fold; vertices are in the order of "
                    f"`dg.element({self.cell!r}, 1).vertices`."
                )

    def _check_conforming(self) -> None:
        """Raise a ValueError if corners of faces without neighbour and name lie on other such faces."""
        if "unnamed" not in self.boundaries:
            return
        faces, cells = self.boundaries["unnamed"]
        local = face_vertices(self.cell)[faces].T
        corners = self.vertices[:, local, cells]  # (d, vertices of a face, n)
        middles = [corners[:, i] + corners[:, j] for i in range(len(local)) for j in range(i)]
        places = np.concatenate([2 * corners.reshape(self.dims, -1), *middles], axis=1)
        labels = connectivity.place_labels(places)
        corner, middle = labels[: local.size], labels[local.size :]
        pairs = np.unique(np.stack([corner, self.cells[local, cells].ravel()]), axis=1)[0]
        twice, hanging = pairs[1:][np.diff(pairs) == 0], middle[np.isin(middle, corner)]
        for bad, what in ((twice, "points given twice"), (hanging, "hanging nodes")):
            if len(bad):
                at = _text(places[:, np.flatnonzero(labels == bad[0])[0]] / 2)
                why = f"it has {what}, such as at {at}"
                raise ValueError(f"The mesh is not conforming: {why}. {connectivity.NOT_CONFORMING}")

    @property
    def summary(self) -> str:
        """What there is to say about it in a line."""
        plural = [word + "s" * (n != 1) for n, word in ((len(self), self.cell), (self.dims, "dimension"))]
        what = plural[0].replace("drons", "dra")
        parts = [f"{len(self)} {what} of order {self.order} in {self.dims} {plural[1]}"]
        if self.boundaries:
            parts.append("boundaries " + ", ".join(f"{n}: {len(f)}" for n, (f, _) in self.boundaries.items()))
        if self.periodic_faces.any():
            parts.append("periodic")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"Mesh({self.summary})"

    def _repr_html_(self) -> str:
        return f"<b>Mesh</b><br>{html.escape(self.summary).replace('; ', '<br>')}"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the cells, in 3-D the outside, with boundaries in colours, by matplotlib; gives the axes.

        >>> from matplotlib.figure import Figure
        >>> from mirabelle import dg
        >>> dg.box((4, 4), cell="triangle").plot(Figure().add_subplot()).get_xlabel()
        'x'
        """
        return drawing.plot(self, axes)


def _parts(names: np.ndarray, faces: np.ndarray, cells: np.ndarray) -> dict[str, Faces]:
    """The faces of each name."""
    return {str(n) or "unnamed": (faces[names == n], cells[names == n]) for n in np.unique(names)}


def _text(point: np.ndarray) -> str:
    return str(tuple((np.round(point, 6) + 0.0).tolist()))
