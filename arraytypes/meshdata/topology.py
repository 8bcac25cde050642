"""The entities of a mesh and who touches whom, from the vertices of its cells alone."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.composing import transposed
from mirabelle.arraytypes.meshdata.entities import canonical, distinct, find_entities, seen_as
from mirabelle.arraytypes.meshdata.maps import Map, Table, Target, index_type
from mirabelle.arraytypes.meshdata.points import Points
from mirabelle.arraytypes.meshdata.shapes import Shape, named

NAMES = ("vertex", "edge", "face", "cell")
SMALL = 100_000  # cells: to show a mesh of more, no edges and faces are found


class Topology:
    """Cells by shape, as tables of vertices, and what follows from them. `Mesh` shows it, with names for users.

    >>> from mirabelle import meshdata as md
    >>> import numpy as np
    >>> square = md.Topology({"triangle": np.array([[0, 1, 2], [1, 3, 2]])}, vertices=4)
    >>> square.incidence("cell", "edge").target().table.tolist(), square.find("edge", np.array([[2, 1]]))
    ([[2, 1, 0], [4, 2, 3]], array([2], dtype=int32))

    Edges and faces are found when they are first asked for, and tables are kept. The topology of a part of a
    mesh (`parting.py`) is given them, and knows the numbers that vertices have in the whole.
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, cells: Mapping[str, Table], vertices: int, axis: str = "mesh") -> None:
        self.cells = dict(cells)
        self.vertices = vertices
        self.axis = axis
        self.dim = named(next(iter(cells))).dim
        self._maps: dict[tuple[str, str], Map] = {}
        self._exterior: dict[str, Table] = {}
        self._found: dict[int, dict[str, tuple[Table, dict[str, Table]]]] = {}
        self.whole: Table | None = None  # of a part: the numbers of its vertices in the whole mesh
        self.owned: dict[str, int] | None = None  # of a part: how many points of each component are its own
        self.division: Any = None  # of a part: what `divisions.py` knows of those of other processes
        self.shared: dict[Any, Any] = {}  # of a whole: who runs what of it, where all processes have it

    @classmethod
    def of_part(
        cls,
        cells: Mapping[str, Table],
        found: dict[int, dict[str, tuple[Table, dict[str, Table]]]],
        whole: Table,
        owned: dict[str, int],
        exterior: dict[str, Table],
    ) -> Topology:
        """The topology of a part of a mesh, whose edges and faces are known, and which are on the boundary."""
        made = cls(cells, len(whole))
        made._found, made._exterior, made.whole, made.owned = found, exterior, whole, owned
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "division": None, "shared": {}}  # (other processes are no value)

    # Which components there are

    @cached_property
    def shapes(self) -> dict[str, Shape | None]:
        """The shape of each component (None of vertices), cells first. Of several shapes in one dimension each
        is a component by its own name; where there is one, the component is the cell, the face or the edge."""
        out: dict[str, Shape | None] = {}
        for dim in reversed(range(self.dim + 1)):
            out.update({c: named(s) if dim else None for c, s in self._component_shapes(dim).items()})
        return out

    def _component_shapes(self, dim: int) -> dict[str, str]:
        if dim == 0:
            return {"vertex": "vertex"}
        if dim == self.dim:
            found = list(self.cells)
        else:
            of = {
                s
                for c in self.cells
                for s in ("interval", "triangle", "quadrilateral")
                if named(c).numbers(dim, s)
            }
            found = sorted(of, key=("interval", "triangle", "quadrilateral").index)
        return {(NAMES[3] if dim == self.dim else NAMES[dim]) if len(found) == 1 else s: s for s in found}

    def components(self, dim: int) -> tuple[str, ...]:
        """The components of a dimension."""
        return tuple(self._component_shapes(dim))

    def dim_of(self, component: str) -> int:
        """The dimension of a component."""
        shape = self.shapes[component]
        return 0 if shape is None else shape.dim

    def size(self, component: str) -> int:
        """How many points a component has."""
        shape = self.shapes[component]
        return self.vertices if shape is None else len(self.entity_vertices(shape.dim, shape.name))

    def known(self, component: str) -> bool:
        """Whether the number of points of a component is known, or found at once as the mesh is small."""
        few = sum(map(len, self.cells.values())) <= SMALL
        return few or self.dim_of(component) in (0, self.dim, *self._found)

    def points(self, component: str) -> Points:
        """The points of a component."""
        return Points(self.axis, component, self.size(component), self.division, weakref.ref(self))

    # Tables

    def entities(self, dim: int) -> dict[str, tuple[Table, dict[str, Table]]]:
        """Of each shape of a dimension between vertices and cells: the vertices, and which ones cells have."""
        if dim not in self._found:
            self._found[dim] = find_entities(self.cells, dim, self.vertices)
        return self._found[dim]

    def entity_vertices(self, dim: int, shape: str) -> Table:
        """The vertices of the entities of a shape."""
        return self.cells[shape] if dim == self.dim else self.entities(dim)[shape][0]

    def _down(self, above: Shape, below: Shape | None) -> Table | None:
        """Which entities of a shape lie in the boundary of each of another, None where there are none."""
        if below is None:
            return self.entity_vertices(above.dim, above.name)
        numbers = above.numbers(below.dim, below.name)
        if not numbers:
            return None
        if above.dim == self.dim:
            return self.entities(below.dim)[below.name][1].get(above.name)
        return self._edges_of_faces(above)

    def _edges_of_faces(self, shape: Shape, some: Any = slice(None)) -> Table:
        edges, faces = self.entity_vertices(1, "interval"), self.entity_vertices(2, shape.name)[some]
        low, high = canonical([edges[:, 0], edges[:, 1]])
        known = low * np.int64(self.vertices) + high
        order = None if self.whole is None else np.argsort(known)  # Those of a whole mesh are sorted.
        known = known if order is None else known[order]
        out = np.empty((len(faces), len(shape.edges)), dtype=index_type(len(edges)))
        for j, (a, b) in enumerate(shape.edges):
            low, high = canonical([faces[:, a], faces[:, b]])
            at = np.searchsorted(known, low * np.int64(self.vertices) + high)
            out[:, j] = at if order is None else order[at]
        return out

    # Maps

    def incidence(self, source: str, target: str) -> Map | None:
        """From each point of one component those of another that it contains, is, or is contained in."""
        key = source, target
        if key not in self._maps:
            made = self._incidence(source, target)
            if made is None:
                return None
            self._maps[key] = made
        return self._maps[key]

    def _incidence(self, source: str, target: str) -> Map | None:
        above, below = self.shapes[source], self.shapes[target]
        high, low = self.dim_of(source), self.dim_of(target)
        if source == target:
            same = np.arange(self.size(source), dtype=index_type(self.size(source)))
            return Map.of(self.points(source), {self.points(source): Target(same[:, None], None)})
        if high > low:
            assert above is not None
            table = self._down(above, below)
            if table is None:
                return None
            return Map.of(self.points(source), {self.points(target): Target(table, None)})
        if high == low:
            return None
        down = self.incidence(target, source)
        return None if down is None else transposed(down, self.points(source))

    def closure(self, source: str) -> Map:
        """The points that make up each point: itself, its faces, edges and vertices."""
        return self._several(source, [c for c in self.shapes if self.dim_of(c) <= self.dim_of(source)])

    def support(self, source: str) -> Map:
        """The points of one dimension more that each point bounds."""
        return self._several(source, self.components(self.dim_of(source) + 1))

    def star(self, source: str) -> Map:
        """Each point and all points that contain it, by rising dimension."""
        dims = range(self.dim_of(source), self.dim + 1)
        return self._several(source, [c for d in dims for c in self.components(d)])

    def _several(self, source: str, targets: Any) -> Map:
        found: dict[Points, Target] = {}
        for target in targets:
            one = self.incidence(source, target)
            found.update(one.targets if one is not None else {})
        return Map.of(self.points(source), found)

    def orientations(self, source: str, target: str) -> Table:
        """How each point sees the edges or faces in its boundary: `seen_as` says what the numbers are."""
        above, below = self.shapes[source], self.shapes[target]
        if above is None or below is None or not above.numbers(below.dim, below.name) or above is below:
            raise ValueError(
                f"There are orientations of edges and faces as cells and faces see them, not of {target!r} as "
                f'{source!r} sees it: `mesh.orientations("cell", "edge")`.'
            )
        table = self.entity_vertices(above.dim, above.name)
        table = table if self.whole is None else self.whole[table]
        rows = [above.entities(below.dim)[j] for j in above.numbers(below.dim, below.name)]
        out = np.empty((len(table), len(rows)), dtype=np.int8)
        for j, row in enumerate(rows):
            out[:, j] = seen_as([table[:, v] for v in row])
        return out

    def find(self, component: str, vertices: Table, among: Table | None = None) -> Table:
        """Which points of a component (or `among` some) have these vertices, in any sense around; or -1."""
        shape = self.shapes[component]
        if shape is None:
            point: Table = vertices[:, 0]
            return point if among is None else np.where(np.isin(point, among), point, -1)
        table = self.entity_vertices(shape.dim, shape.name)
        points = np.arange(len(table), dtype=index_type(len(table))) if among is None else among
        both = np.concatenate([table if among is None else table[among], vertices])
        columns = canonical(list(both.T)) if shape.dim < self.dim else list(np.sort(both, axis=1).T)
        _, number = distinct(columns, max(self.vertices, int(vertices.max(initial=-1)) + 1))
        at = np.full(len(both), -1, dtype=index_type(len(table)))
        at[number[: len(points)]] = points
        return at[number[len(points) :]]

    # The boundary

    @cached_property
    def facet_cells(self) -> dict[str, Table]:
        """How many cells each facet has, by component."""
        out = {}
        for facet in self.components(self.dim - 1):
            count = np.zeros(self.size(facet), dtype=np.int64)
            for cell in self.components(self.dim):
                down = self.incidence(cell, facet)
                if down is not None:
                    count += np.bincount(down.target().values, minlength=len(count))
            out[facet] = count
        return out

    def exterior(self, component: str) -> Table:
        """Which points of a component lie on facets that have only one cell, as a mask."""
        if component not in self._exterior:
            self._exterior[component] = self._found_exterior(component)
        return self._exterior[component]

    def _found_exterior(self, component: str) -> Table:
        out, below = np.zeros(self.size(component), dtype=bool), self.shapes[component]
        for facet, count in self.facet_cells.items():
            on, shape = np.flatnonzero(count == 1), self.shapes[facet]
            if component == facet:
                out[on] = True
            elif shape is not None and below is None:
                out[self.entity_vertices(shape.dim, shape.name)[on].ravel()] = True
            elif shape is not None and below is not None and below.dim < shape.dim:
                out[self._edges_of_faces(shape, on).ravel()] = True
        return out

    def duplicates(self, shape: str) -> Table:
        """Cells of a shape whose vertices another cell has as well."""
        _, number = distinct(list(np.sort(self.cells[shape], axis=1).T), self.vertices)
        return np.flatnonzero(np.bincount(number)[number] > 1)
