"""Meshes as values: where the vertices are, which of them make up the cells, and all that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.meshdata.checking import (
    check_facets,
    check_halves,
    check_hanging,
    check_twice,
    checked_cells,
    inverted_cells,
    volumes,
)
from mirabelle.arraytypes.meshdata.maps import Map, Table
from mirabelle.arraytypes.meshdata.markers import check_marker, exterior_where
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.meshdata.shapes import named
from mirabelle.arraytypes.meshdata.topology import Topology

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.meshdata.annotations import Owner
    from mirabelle.arraytypes.meshdata.axes import Axis
    from mirabelle.arraytypes.meshdata.parting import Part


class Mesh:
    """Cells of one shape or of several, their vertices' coordinates, and who touches whom.

    `cells` is a table of the vertices of each cell, or a dictionary of tables by shape; `shapes.py` says in
    which order the vertices of a cell are: as in gmsh, VTK and meshio. Components are "cell", "face", "edge"
    and "vertex"; where cells (or faces) have several shapes, each shape is a component by its own name. Edges
    and faces are numbered in the order of their vertices' numbers, and found when they are first asked for.

    Cells whose volume is negative are an error (`inverted="error"`), are turned (`"flip"`) or stay (`"keep"`).

    Parameters
    ----------
    coordinates : array (vertices, dim)
        Where the vertices are.
    cells : int array, or mapping of str to int arrays
        The vertices of each cell; by shape, where there are several.
    inverted : {"error", "flip", "keep"}, default "error"
        What is done about cells of negative volume.
    markers : mapping of str to Subset, or None
        Named sets of cells, faces, edges or vertices.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> mesh = md.Mesh([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [1, 3, 2]])
    >>> mesh
    Mesh(2 triangles, 5 edges, 4 vertices in 2 dimensions)
    >>> mesh.closure("cell")
    Map(2 cell -> 1 cell, 3 edge, 3 vertex)
    >>> mesh.closure("cell", "edge")(1).tolist(), mesh.closure("cell", "vertex")(1).tolist()
    ([4, 2, 3], [1, 3, 2])
    >>> md.Mesh([[0, 0], [1, 0], [0, 1]], [[0, 2, 1]])
    Traceback (most recent call last):
        ...
    ValueError: 1 of 1 cells of the shape triangle are inverted; the first is number 0, of the vertices [0, 2, \
1]. Turn them, `md.Mesh(coordinates, cells, inverted="flip")`, or keep them as they are, `inverted="keep"`.
    """

    __module__ = "mirabelle.meshdata"

    coordinates: Table
    cells: dict[str, Table]

    def __init__(
        self,
        coordinates: npt.ArrayLike,
        cells: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        *,
        inverted: str = "error",
        markers: Mapping[str, Subset] | None = None,
    ) -> None:
        x = np.array(coordinates)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or x.shape[1] not in (1, 2, 3) or x.dtype.kind not in "iuf":
            raise ValueError(
                "The coordinates of a mesh are a table of real numbers with a row of 1, 2 or 3 for each "
                f"vertex, and these have the shape {np.shape(coordinates)} and the dtype {x.dtype}."
            )
        self.coordinates = x if x.dtype.kind == "f" else x.astype(float)
        if not np.isfinite(self.coordinates).all():
            wrong = int(np.argwhere(~np.isfinite(self.coordinates))[0, 0])
            raise ValueError(f"Vertex {wrong} has the coordinates {x[wrong].tolist()}: all have to be finite.")
        given = cells if isinstance(cells, Mapping) else {None: cells}
        tables = dict(checked_cells(shape, table, self.coordinates) for shape, table in given.items())
        if not tables or len({named(s).dim for s in tables}) > 1:
            raise ValueError(
                f"The cells of a mesh are of one dimension, and these have the shapes {list(tables)}. Edges "
                "and faces are found from the cells; those of a boundary are named by `markers`."
            )
        if inverted not in ("error", "flip", "keep"):
            raise ValueError(
                f'What is inverted is an "error", or you "flip" or "keep" it, and not {inverted!r}.'
            )
        if inverted != "keep":
            flip = inverted == "flip"
            tables = {s: inverted_cells(named(s), self.coordinates, t, flip) for s, t in tables.items()}
        for array in (self.coordinates, *tables.values()):
            array.setflags(write=False)
        self.cells = tables
        self.topology = Topology(tables, len(x))
        self._markers = dict(markers or {})
        for name, subset in self._markers.items():
            check_marker(self, name, subset)

    # Components

    @property
    def markers(self) -> Mapping[str, Subset]:
        """Parts of the mesh that have names: some of the points of a component. `marked` gives more names."""
        return MappingProxyType(self._markers)

    @property
    def dim(self) -> int:
        """The dimension of the cells."""
        return self.topology.dim

    @property
    def shapes(self) -> dict[str, str]:
        """The shape of each component, cells first.

        >>> from mirabelle import meshdata as md
        >>> md.unit_cube(1, shape="prism").shapes
        {'cell': 'prism', 'triangle': 'triangle', 'quadrilateral': 'quadrilateral', 'edge': 'interval', \
'vertex': 'vertex'}
        """
        return {c: s.name if s else "vertex" for c, s in self.topology.shapes.items()}

    def components(self, dim: int) -> tuple[str, ...]:
        """The names of the components of a dimension.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(2).components(2), md.unit_square(2).components(1)
        (('cell',), ('edge',))
        """
        return self.topology.components(dim)

    @property
    def facets(self) -> tuple[str, ...]:
        """The names of the components of one dimension less than cells."""
        return self.topology.components(self.dim - 1)

    def points(self, component: str) -> Points:
        """The points of a component: what loops run over.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(2).points("edge")
        Points(axis='mesh', component='edge', size=16)
        """
        return self.topology.points(self._known(component))

    @cached_property
    def axis(self) -> Axis:
        """The axis of the mesh, whose components have as many entries as there are cells, faces, edges,
        vertices.

        >>> from mirabelle import meshdata as md
        >>> md.tree(md.unit_square(1).axis).size
        11
        """
        return self.axis_of(*self.topology.shapes)

    def axis_of(self, *components: str) -> Axis:
        """The axis of some components, in the order of the mesh; others are not even counted.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).axis_of("vertex", "edge")
        Axis('mesh', {'edge': 5, 'vertex': 4})
        """
        from mirabelle.arraytypes.meshdata.axes import Axis

        wanted, owned = {self._known(c) for c in components}, self.topology.owned
        sizes = {c: self.topology.size(c) for c in self.topology.shapes if c in wanted}
        if owned is None:
            return Axis("mesh", sizes)
        return Axis(
            "mesh", sizes, regions={c: {"owned": owned[c], "ghost": n - owned[c]} for c, n in sizes.items()}
        )

    def _known(self, component: Any) -> str:
        known = self.topology.shapes
        if component not in known:
            dim = {"cell": self.dim, "face": 2, "edge": 1}.get(component)
            names = self.topology.components(dim) if dim is not None and 0 < dim <= self.dim else ()
            more = f" Its {component}s have several shapes: they are {list(names)}." if len(names) > 1 else ""
            raise KeyError(f"The mesh has no component {component!r}; it has {list(known)}.{more}")
        return str(component)

    # Who touches whom

    def closure(self, source: str, *targets: str) -> Map:
        """From each point to itself and the faces, edges and vertices that it consists of, or only to
        `targets`.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).closure("cell", "vertex").target().table.tolist()
        [[0, 1, 2], [1, 3, 2]]
        """
        return self._chosen(self.topology.closure(self._known(source)), targets)

    def support(self, source: str, *targets: str) -> Map:
        """From each point to those of one dimension more that it bounds.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).support("vertex")(0).tolist()
        [0, 1]
        """
        if self.topology.dim_of(self._known(source)) == self.dim:
            raise ValueError(
                f"Cells bound nothing, so that there is no support of {source!r}. The cells next to a cell are "
                f'`mesh.support("{self.facets[0]}")(mesh.closure("{source}", "{self.facets[0]}"))`.'
            )
        return self._chosen(self.topology.support(source), targets)

    def star(self, source: str, *targets: str) -> Map:
        """From each point to itself and all points that it is a part of, by rising dimension.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).star("vertex", "cell").target().sizes.tolist()
        [1, 2, 2, 1]
        """
        return self._chosen(self.topology.star(self._known(source)), targets)

    def _chosen(self, made: Map, targets: tuple[str, ...]) -> Map:
        return made.restrict(*(self._known(t) for t in targets)) if targets else made

    def orientations(self, source: str, target: str) -> Table:
        """How each cell (or face) sees its edges or faces, int8, in the order of its closure.

        Of an edge: 1 where it is reversed, as its first vertex in the cell has the higher number. Of a face:
        2 r + m; r steps around the face, in the order of the cell, lead from its first vertex to that with the
        lowest number; m is 1 where it is mirrored: where the next vertex has a higher number than the one
        before. So 0 is a face that the cell sees as all do: from the lowest vertex to its lower neighbour and
        on.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).orientations("cell", "edge").tolist()
        [[0, 0, 0], [1, 0, 0]]
        """
        return self.topology.orientations(self._known(source), self._known(target))

    def exterior(self, component: str | None = None) -> Subset:
        """The facets that have only one cell, or the points of another component that lie on those.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).exterior().indices.tolist(), md.unit_square(2).exterior("vertex")
        ([0, 1, 3, 4], <8 of the 9 points 'vertex'>)
        """
        if component is None and len(self.facets) > 1:
            raise ValueError(
                f"The facets of the mesh are of several components, {list(self.facets)}: name one, such as "
                f'`mesh.exterior("{self.facets[0]}")`.'
            )
        name = self._known(component or next(iter(self.facets)))
        self._check_hanging()
        return self.points(name).subset(self.topology.exterior(name))

    # Checks

    def check(self) -> Mesh:
        """The mesh itself, or an error if cells are given twice, overlap at a facet, or have hanging vertices.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(3).check()
        Mesh(18 triangles, 33 edges, 16 vertices in 2 dimensions)
        """
        check_twice(self)
        check_facets(self)
        check_halves(self)
        self._check_hanging()
        return self

    def _check_hanging(self) -> None:
        if not self.__dict__.get("_not_hanging"):
            check_hanging(self)
            self.__dict__["_not_hanging"] = True

    # Other meshes

    def marked(self, **names: Subset | Callable[[Table], Any]) -> Mesh:
        """The same mesh with names for parts of it, besides those it has.

        A part is a subset of some points, or a function of positions (n, d) that says which are in it: it names
        the exterior facets all of whose vertices are. Where those have several shapes, each shape has a name,
        as "wall triangle".

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(4).marked(left=lambda x: x[:, 0] == 0, right=lambda x: x[:, 0] == 1)
        >>> mesh.markers["left"]
        <4 of the 56 points 'edge'>
        """
        made = copy(self)
        made._markers = dict(self._markers)
        for name, part in names.items():
            found = {name: part} if not callable(part) else exterior_where(self, name, part)
            for full, subset in found.items():
                check_marker(self, full, subset)
                made._markers[full] = subset
        return made

    def with_coordinates(
        self, coordinates: Sequence[Sequence[float]] | npt.NDArray[Any], *, inverted: str = "error"
    ) -> Mesh:
        """The same cells with vertices elsewhere; what is known of who touches whom is shared.

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(2)
        >>> md.Mesh.with_coordinates(mesh, 2 * mesh.coordinates).volumes().sum().item()
        4.0
        """
        if len(coordinates) != len(self.coordinates):
            raise ValueError(
                f"The mesh has {len(self.coordinates)} vertices, and there are {len(coordinates)} new "
                "coordinates."
            )
        if inverted == "flip":
            return Mesh(coordinates, self.cells, inverted=inverted, markers=self.markers)
        made = Mesh(coordinates, self.cells, inverted=inverted, markers=self.markers)
        made.cells, made.topology = self.cells, self.topology
        return made

    def renumbered(
        self, cells: str | npt.ArrayLike | None = None, vertices: str | npt.ArrayLike | None = None
    ) -> Mesh:
        """The same mesh with its cells and vertices in new orders, for locality; edges and faces follow.

        An order is the old number of each new cell (vertex), or "rcm" or "hilbert": reverse Cuthill-McKee, or
        along Hilbert's curve. Without `vertices` these come as the cells first meet them.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).renumbered(cells=[1, 0]).cells["triangle"].tolist()
        [[0, 1, 2], [3, 0, 2]]
        """
        from mirabelle.arraytypes.meshdata.numbering import renumbered

        return renumbered(self, cells, vertices)

    def part(self, owner: Owner, rank: int, overlap: int = 1) -> Part:
        """What one process has of the mesh: its own cells, `overlap` layers of those around them, and their
        points.

        `owner` has the rank of each cell, as `md.partition` gives it. A point belongs to the lowest rank that
        has a cell at it. Own points come first, by their numbers in the whole mesh, then the others' (the
        ghosts).

        >>> from mirabelle import meshdata as md
        >>> part = md.interval(6).part([0, 0, 0, 1, 1, 1], rank=1)
        >>> part.numbers("vertex").tolist(), part.owned("vertex")
        ([4, 5, 6, 3, 2], 3)
        >>> [a.tolist() for a in part.ghosts("vertex")]  # their ranks, and their numbers there
        [[0, 0], [3, 2]]
        """
        from mirabelle.arraytypes.meshdata.parting import part

        return part(self, owner, rank, overlap)

    # Geometry

    def coordinates_in(self, array: type[AbstractArray]) -> AbstractArray:
        """The coordinates in an array of a type: in one of its local arrays, where it is distributed.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).coordinates_in(mb.RefArray).shape
        (4, 2)
        """
        from mirabelle.arraytypes.meshdata.divisions import inner_of

        return inner_of(array)(self.coordinates)

    def midpoints(self, component: str = "cell") -> Table:
        """The mean of the vertices of each point of a component.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).midpoints("edge")[0].tolist()
        [0.5, 0.0]
        """
        if self._known(component) == "vertex":
            return self.coordinates
        table = self.closure(component, "vertex").target().table
        assert table is not None
        out = self.coordinates[table[:, 0]]
        for column in table.T[1:]:
            out = out + self.coordinates[column]
        return np.asarray(out / table.shape[1])

    def volumes(self, component: str = "cell") -> Table:
        """The volume (length, area) of each cell; where it is no simplex, that of the cell with straight edges
        and bilinear faces.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(2, shape="quadrilateral").volumes().tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        shape = named(self.shapes[self._known(component)])
        return volumes(shape, self.coordinates, self.topology.entity_vertices(shape.dim, shape.name))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return self is other or (
            list(self.cells) == list(other.cells)
            and np.array_equal(self.coordinates, other.coordinates)
            and all(np.array_equal(t, other.cells[s]) for s, t in self.cells.items())
        )

    def __hash__(self) -> int:
        some = ((s, len(t), t[:16].tobytes()) for s, t in self.cells.items())
        return hash((tuple(some), self.coordinates[:16].tobytes()))

    def __repr__(self) -> str:
        known = [(len(t), s) for s, t in self.cells.items()]
        for dim in reversed(range(1, self.dim)):
            for name in self.components(dim):
                what = f"{name} faces" if len(self.components(dim)) > 1 else f"{name}s"
                if self.topology.known(name):
                    known.append((self.topology.size(name), what))
        parts = [_many(n, what) for n, what in known] + [_many(len(self.coordinates), "vertex")]
        where = self.coordinates.shape[1]
        return f"Mesh({', '.join(parts)} in {where} dimension{'s' if where > 1 else ''})"

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.meshdata.meshpictures import html

        return html(self)


def _many(count: int, what: str) -> str:
    """One cell, two cells.

    >>> _many(1, "vertex"), _many(2, "vertex"), _many(0, "prism"), _many(1, "edges"), _many(4, "triangle faces")
    ('1 vertex', '2 vertices', '0 prisms', '1 edge', '4 triangle faces')
    """
    one = what.removesuffix("s")
    plural = {"vertex": "vertices", "hexahedron": "hexahedra", "tetrahedron": "tetrahedra"}.get(one, one + "s")
    return f"{count} {one if count == 1 else plural}"
