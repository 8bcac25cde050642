"""Function spaces: elements on the cells of a mesh, with their degrees of freedom stored on an axis tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.meshdata.axes import Axis
from mirabelle.arraytypes.meshdata.basixelements import BasixElement
from mirabelle.arraytypes.meshdata.boundary import boundary_numbers, chosen_by, known_to_all
from mirabelle.arraytypes.meshdata.divisions import part_rows
from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.elements import Element, element
from mirabelle.arraytypes.meshdata.evaluation import CellGeometry, PointLocator
from mirabelle.arraytypes.meshdata.quadrature import quadrature
from mirabelle.arraytypes.meshdata.spacegeometry import cellwise, entity_geometry, moments, nodes, values_at
from mirabelle.arraytypes.meshdata.spacetables import Positions, cell_tables
from mirabelle.arraytypes.meshdata.spacevalues import (
    evaluated,
    function_of,
    local_function,
    sampled,
    tabulated,
    zero_function,
)
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.arraytypes.meshdata.treebuilding import tree

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike
    from mirabelle.arraytypes.distributed.darray import DArray
    from mirabelle.arraytypes.meshdata.annotations import Where
    from mirabelle.arraytypes.meshdata.meshes import Mesh
    from mirabelle.arraytypes.meshdata.trees import AxisTree

# What is interpolated: a function of points (n, dim), or a constant.
Field = Callable[[np.ndarray], Any] | complex | tuple[complex, ...] | list[complex]

PLURALS = {"hexahedron": "hexahedra", "tetrahedron": "tetrahedra"}


class Space:
    """Functions that are an element's on every cell of a mesh. `md.space` makes them.

    `tree` says how the degrees of freedom are stored, `dofs` which ones each cell has, and `signs` those of its
    basis functions where they point somewhere (RT and N; None elsewhere).

    >>> from mirabelle import meshdata as md
    >>> V = md.space(md.unit_square(1, 1), "P", 3)
    >>> V
    <space of P3 on 2 triangles: 16 degrees of freedom>
    >>> V.dofs.table[0].tolist()
    [0, 6, 7, 4, 5, 2, 3, 12, 13, 14]
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, mesh: Mesh, of: Element, components: tuple[int, ...] = ()) -> None:
        self.mesh = mesh
        self.element = of
        self.components = components
        self.block = tuple(c for c in components)

    @property
    def dim(self) -> int:
        """The dimension of the mesh's space."""
        return int(self.mesh.coordinates.shape[1])

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of a value: () of a scalar function, (2,) of a field in the plane."""
        return (self.dim,) if self.element.mapping != "identity" else self.components

    @cached_property
    def tree(self) -> AxisTree:
        """The axis tree: under each kind of entity its degrees of freedom, and of each the components.

        >>> from mirabelle import meshdata as md
        >>> md.space(md.unit_square(1, 1), "P", 2, components=2).tree.size
        18
        """
        kinds = list(self.element.entity_dofs)
        return tree(self.mesh_axis(kinds), {kind: self.below(kind) for kind in kinds})

    def mesh_axis(self, kinds: list[str]) -> Axis:
        """The mesh's axis with these components only."""
        return self.mesh.axis_of(*kinds)

    def below(self, kind: str) -> AxisTree:
        """The tree under one entity of a kind."""
        axes = [Axis("dof", self.element.entity_dofs[kind])]
        axes += [Axis(label, n) for label, n in zip(self._labels, self.components, strict=True)]
        return tree(*axes)

    @property
    def _labels(self) -> list[str]:
        return ["dim"] if len(self.components) == 1 else [f"dim{i}" for i in range(len(self.components))]

    def positions(self, of: AxisTree, path: dict[str, Any], at: dict[str, int]) -> Positions:
        """Where a tree has the first component of each degree of freedom, by the kinds of entities.

        `path` and `at` say what leads to this space within a tree of several.
        """
        found = {}
        for kind, n in self.element.entity_dofs.items():
            indices: dict[str, Any] = {
                **at,
                "mesh": np.arange(self.mesh.points(kind).size)[:, None],
                "dof": np.arange(n),
                **dict.fromkeys(self._labels, 0),
            }
            whole = {**path, "mesh": kind, "dof": None, **dict.fromkeys(self._labels)}
            found[kind] = np.asarray(of.offset(whole, indices))
        return found

    @cached_property
    def _numbers(self) -> Positions:
        """The number of the block of each degree of freedom."""
        return {kind: at // math.prod(self.block) for kind, at in self.positions(self.tree, {}, {}).items()}

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray | None]:
        return cell_tables(self.mesh, self.element, self._numbers)

    @cached_property
    def dofs(self) -> Dofs:
        """Of each cell its degrees of freedom, in the element's order, however the cell sees its entities."""
        size = self.tree.size // math.prod(self.block)
        return Dofs(self.mesh.points("cell"), self._tables[0], size, block=self.block, tree=self.tree)

    @property
    def signs(self) -> np.ndarray | None:
        """By what a cell's basis functions are multiplied (cells, K), so that both sides of a facet agree."""
        return self._tables[1]

    def tabulate(self, points: npt.ArrayLike, derivatives: int = 0) -> np.ndarray:
        """The basis functions in each cell at points (q, dim) of the reference cell, with signs: (cells, q, K).

        With `derivatives=1` their gradients in the mesh's coordinates, (cells, q, K, dim). Fields have their
        components before that. This is for assembly in NumPy; kernels of loops take `element.tabulate`.

        >>> from mirabelle import meshdata as md
        >>> V = md.space(md.interval(2), "P", 1)
        >>> V.tabulate([[0.5]], derivatives=1)[:, 0, :, 0]
        array([[-2.,  2.],
               [-2.,  2.]])
        """
        return tabulated(self, points, derivatives)

    def quadrature(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        """Points (q, dim) of the reference cell, and their weights in each cell of the mesh, (cells, q).

        >>> from mirabelle import meshdata as md
        >>> float(md.space(md.unit_square(2, 2), "P", 1).quadrature(2)[1].sum().round(14))
        1.0
        """
        at, weights = quadrature(self.element.shape, degree)
        n = len(self.cells.corners)
        J = self.cells.jacobians(np.repeat(np.arange(n), len(at)), np.tile(at, (n, 1)))
        return at, np.abs(np.linalg.det(J)).reshape(n, len(at)) * weights

    def trace(self) -> tuple[Element, Dofs]:
        """The element that functions are on facets, and the degrees of freedom of each: for loops over facets.

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(1, 1)
        >>> element, dofs = md.space(mesh, "P", 2).trace()
        >>> element, dofs.table.tolist()
        (<P2 on an interval>, [[0, 5, 6], [1, 5, 7], [2, 6, 7], [3, 6, 8], [4, 7, 8]])
        """
        if self.element.family not in ("P", "Q") or isinstance(self.element, BasixElement):
            raise ValueError(
                f"On facets functions of {self.element.family} are not one element's: traces are those of "
                'continuous Lagrange elements, `md.space(mesh, "P", 2).trace()`.'
            )
        (facet,) = self.mesh.facets
        of = element("P", self.mesh.shapes[facet], self.element.degree)
        table, _ = cell_tables(self.mesh, of, self._numbers, facet)
        size = self.tree.size // math.prod(self.block)
        return of, Dofs(self.mesh.points(facet), table, size, block=self.block, tree=self.tree)

    @cached_property
    def points(self) -> np.ndarray:
        """Where the degrees of freedom are, (number of blocks, dim): for RT and N the middle of the entity.

        >>> from mirabelle import meshdata as md
        >>> md.space(md.interval(2), "P", 1).points.ravel().tolist()
        [0.0, 0.5, 1.0]
        """
        found = np.empty((self.tree.size // math.prod(self.block), self.dim))
        for kind, at in self._numbers.items():
            found[at] = nodes(self.mesh, self.element, kind)
        return found

    @overload
    def zeros(self, array: type[DArray], dtype: DTypeLike = ...) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def zeros(self, array: type[AbstractArray] = ..., dtype: DTypeLike = ...) -> TreeArray: ...
    def zeros(self, array: type[AbstractArray] = HostArray, dtype: DTypeLike = np.float64) -> Any:
        """The function zero, with its degrees of freedom in an array of the type given.

        Over processes that may be `mb.DArray[mb.HostArray]`: an array over the tree where all have the mesh,
        on a divided mesh (`md.part`) one of what each process owns.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> md.space(md.interval(2), "P", 1).zeros(mb.RefArray).shape
        (3,)
        """
        return zero_function(self, array, dtype)

    @overload
    def function(self, values: ArrayLike, array: type[DArray]) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def function(self, values: ArrayLike, array: type[AbstractArray] = ...) -> TreeArray: ...
    def function(self, values: ArrayLike, array: type[AbstractArray] = HostArray) -> Any:
        """The function with these degrees of freedom, in the order of `V.tree` (ghosts included).

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> md.space(md.interval(2), "P", 1).function([1.0, 2.0, 3.0])
        TreeArray[HostArray[float64, 1]]([1., 2., 3.])
        """
        return function_of(self, values, array)

    def local(self, u: AbstractArray) -> TreeArray:
        """The function on this process' part of a divided mesh, ghosts included, in an array over `V.tree`."""
        return local_function(self, u)

    @overload
    def interpolate(self, f: Field, array: type[DArray], dtype: DTypeLike = ...) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def interpolate(self, f: Field, array: type[AbstractArray] = ..., dtype: DTypeLike = ...) -> TreeArray: ...
    def interpolate(
        self, f: Field, array: type[AbstractArray] = HostArray, dtype: DTypeLike = np.float64
    ) -> Any:
        """The function of the space that agrees with f: at the nodes; in its fluxes (RT) or circulations (N).

        `f` takes points (n, dim) and gives values (n,), or (n, components) of vectors. A number stands for a
        constant.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> V = md.space(md.interval(2), "P", 2)
        >>> V.evaluate(V.interpolate(lambda x: x[..., 0] ** 2), [[0.25], [0.9]]).round(12).tolist()
        [0.0625, 0.81]
        """
        flat = np.zeros((self.tree.size // math.prod(self.block), *self.components), dtype)
        if isinstance(self.element, BasixElement):
            cellwise(self, f, flat)
        elif self.element.mapping == "identity":
            flat[...] = values_at(f, self.points, self.components, flat.dtype)
        else:
            for kind, at in self._numbers.items():
                x, vectors = moments(self.mesh, self.element, kind)
                values = values_at(f, x.reshape(-1, self.dim), (self.dim,), flat.dtype).reshape(x.shape)
                flat[at] = np.einsum("nqd,nqd->n", values, vectors)[:, None]
        return self.function(flat.reshape(-1), array)

    def boundary_dofs(self, where: Where | None = None) -> np.ndarray:
        """The positions in the flat array of what stands on the boundary, ascending.

        `where` chooses: a function of points (n, dim) that says which count, the name of one of the mesh's
        markers, or a subset of its facets. On a divided mesh all processes ask together: a process may own what
        lies on facets that only others have. There these are positions in its part (for `md.dirichlet`), and
        distributed arrays take them, too: `u[V.boundary_dofs()] = 0`, by all processes.

        >>> from mirabelle import meshdata as md
        >>> V = md.space(md.unit_square(1, 1), "P", 1)
        >>> V.boundary_dofs(lambda x: x[..., 0] < 0.5).tolist()
        [0, 2]
        """
        found = self.components_at(self.boundary_blocks(where) * math.prod(self.block)).reshape(-1)
        division = self.mesh.topology.division
        return found if division is None else part_rows(found, division.entries(self.tree))

    def components_at(self, first: np.ndarray) -> np.ndarray:
        """The positions of all components (..., components) by those of the first ones."""
        return first[..., None] + np.arange(math.prod(self.block))

    def boundary_blocks(self, where: Where | None = None) -> np.ndarray:
        """The same of blocks: each stands for all components at a node."""
        blocks = boundary_numbers(self.mesh, self.element, self._numbers, where)
        found = blocks[chosen_by(where, self.points[blocks])] if callable(where) else blocks
        division = self.mesh.topology.division
        return found if division is None else known_to_all(division.entries(self.tree), found, self.block)

    @cached_property
    def cells(self) -> CellGeometry:
        """Where the cells are."""
        return entity_geometry(self.mesh, self.element, "cell")

    @cached_property
    def locator(self) -> PointLocator:
        """What finds the cells of points."""
        return PointLocator(self.cells)

    def evaluate(self, u: AbstractArray, points: ArrayLike, outside: str = "nan") -> AbstractArray:
        """The values of a function at points (..., dim), in an array of its own type; vectors in a last axis.

        Outside of all cells values are NaN, or with `outside="raise"` an error. On a facet the cell of the
        lower number counts.

        >>> from mirabelle import meshdata as md
        >>> V = md.space(md.unit_square(2, 2), "P", 1)
        >>> V.evaluate(V.interpolate(lambda x: x[..., 0] + 2 * x[..., 1]), [[0.25, 0.5], [3.0, 0.0]]).tolist()
        [1.25, nan]
        """
        return evaluated(self, u, points, outside)

    def sample(self, u: AbstractArray, points: ArrayLike | None = None) -> np.ndarray:
        """The values at points (q, dim) of each reference cell, its vertices if none: (cells, q, ...).

        This is what pictures and files show: where a function jumps, each cell has its own values.

        >>> from mirabelle import meshdata as md
        >>> V = md.space(md.interval(2), "DP", 0)
        >>> V.sample(V.interpolate(lambda x: x[..., 0])).tolist()
        [[0.25, 0.25], [0.75, 0.75]]
        """
        return sampled(self, u, points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same = self.element is other.element and self.components == other.components
        return same and (self.mesh is other.mesh or bool(self.mesh == other.mesh))

    def __hash__(self) -> int:
        return hash((Space, self.element, self.components))

    def __reduce__(self) -> Any:
        return Space, (self.mesh, self.element, self.components)

    def __repr__(self) -> str:
        name = f"{self.element.family}{self.element.degree}"
        of = f" of {' x '.join(map(str, self.components))} components" if self.components else ""
        n = self.mesh.points("cell").size
        shape = self.element.shape if n == 1 else PLURALS.get(self.element.shape, self.element.shape + "s")
        return f"<space of {name}{of} on {n} {shape}: {self.tree.size} degrees of freedom>"
