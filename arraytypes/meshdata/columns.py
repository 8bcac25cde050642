"""Columns of layers on the points of a mesh: extruded meshes as products, without tables of their own.

What a cell of a layer reaches follows from its column's cell and the number of the layer: the table of the
mesh below, plus the layer times a constant. Loops compute it, and read the table of one layer only.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> columns = md.columns(md.unit_square(1), 3)                # prisms: three on each of two triangles
>>> tree = md.tree(columns.base.axis_of("vertex"), md.Axis("level", 4))
>>> corners = columns.dofs(tree)
>>> corners
Dofs(2 columns of 3 'cell' -> 6 each of 16)
>>> def ones(y):
...     y += 1
>>> y = md.zeros(tree)
>>> md.loop(columns.points(), ones, md.INC(y, corners))
>>> print(y.block())
[[1. 2. 2. 1.]
 [2. 4. 4. 2.]
 [2. 4. 4. 2.]
 [1. 2. 2. 1.]]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.dofs import Dofs
from mirabelle.arraytypes.meshdata.points import Points

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh
    from mirabelle.arraytypes.meshdata.trees import AxisTree

# Axes that stand on the points of the mesh: one entry for each layer, or one more, below and above.
LAYER, LEVEL = "layer", "level"
# A table of so many layers says of all whether points meet: they meet in the same or in neighbouring ones.
_FEW = 3


class ColumnDofs(Dofs):
    """What points in columns reach: in layer l of column c entry `rows[c, k] + l * strides[k]`."""

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_whole", "layers", "rows", "strides")

    def __init__(
        self,
        source: Points,
        rows: Any,
        strides: Any,
        layers: int,
        size: int,
        *,
        tree: AxisTree | None = None,
        local: tuple[int, ...] | None = None,
    ) -> None:
        given = np.asarray(rows)
        self.strides: tuple[int, ...] = tuple(int(s) for s in strides)
        if given.ndim != 2 or len(given) * layers != len(source) or given.shape[1] != len(self.strides):
            raise ValueError(
                f"The table of {len(source)} points in columns of {layers} has a row for each column and as "
                f"many columns as there are strides, {len(self.strides)}; this one has shape {given.shape}."
            )
        ends = given + (layers - 1) * np.array(self.strides, np.int64) if given.size else given
        if given.size and (min(given.min(), ends.min()) < 0 or max(given.max(), ends.max()) >= size):
            raise IndexError(
                f"The table leads outside: to entries from {min(given.min(), ends.min())} to "
                f"{max(given.max(), ends.max())}, and there are {size}, numbered from 0."
            )
        self.source, self.size, self.block, self.tree, self.forest = source, int(size), (), tree, None
        self.rows: np.ndarray = np.ascontiguousarray(given, np.int32 if size < 2**31 else np.int64)
        self.rows.setflags(write=False)
        self.layers = int(layers)
        self.local = (given.shape[1],) if local is None else tuple(local)
        self.shared: dict[Any, Any] | None = None
        self._placed: dict[Any, Any] = {}
        self._facts: dict[Any, Any] = {}
        self._whole: np.ndarray | None = None

    @property
    def table(self) -> np.ndarray:  # type: ignore[override]
        """The table of all layers, made when something needs it that is no loop over all points."""
        if self._whole is None:
            self._whole = self.of_layers(self.layers)
            self._whole.setflags(write=False)
        return self._whole

    def of_layers(self, layers: int) -> np.ndarray:
        """The table of the first layers: a row for each point."""
        up = np.arange(layers, dtype=self.rows.dtype)[:, None] * np.array(self.strides, self.rows.dtype)
        found: np.ndarray = (self.rows[:, None] + up).reshape(-1, len(self.strides))
        return found

    @property
    def arity(self) -> int:
        return len(self.strides)

    @property
    def partial(self) -> bool:
        return False

    @property
    def injective(self) -> bool:
        found = self._facts.get("injective")
        if found is None:
            few = self.of_layers(min(self.layers, _FEW))
            found = self._facts["injective"] = few.size == 0 or int(np.bincount(few.ravel()).max()) <= 1
        return bool(found)

    def __repr__(self) -> str:
        columns = len(self.rows)
        name = self.source.component.removesuffix(f" x {LAYER}")
        return f"Dofs({columns} columns of {self.layers} {name!r} -> {self.arity} each of {self.size})"


class Columns:
    """Layers on all points of a mesh. `md.columns(mesh, layers)` makes them.

    Data in columns are over trees with an axis "level" on the mesh's (as many as there are layers, and one), or
    an axis "layer": values at vertices of prisms, say, or at vertical faces.

    >>> from mirabelle import meshdata as md
    >>> isinstance(md.columns(md.unit_square(2), 3), md.Columns)
    True
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, base: Mesh, layers: int) -> None:
        if isinstance(layers, bool) or not isinstance(layers, (int, np.integer)) or layers < 1:
            raise ValueError(f"Columns have one or more layers, and not {layers!r}.")
        self.base: Any = base
        self.layers = int(layers)

    def points(self, component: str = "cell") -> Points:
        """The points on those of a component: layer after layer of one column, then the next column."""
        below = self.base.points(component)
        return Points(below.axis, f"{component} x {LAYER}", below.size * self.layers)

    def dofs(self, tree: AxisTree, component: str = "cell") -> ColumnDofs:
        """What points reach of an array over a tree: of the column's cell, edges and vertices, in this order.

        Of an axis "level" that is first what is below the layer, then what is above it. Leaves on neither axis
        are the same for all layers; leaves on "level" alone the same for all columns.
        """
        below = self.base.points(component)
        reached = {
            points.component: target.table for points, target in self.base.closure(component).targets.items()
        }
        rows, strides, inner = [np.zeros((below.size, 0), np.int64)], [], set()
        for kind in [*reached, None]:
            table = np.zeros((below.size, 1), np.int64) if kind is None else reached[kind]
            for path in tree.leaves:
                if (path.get(below.axis) if below.axis in path else None) == kind:
                    found, steps, axes = self._under(tree, path, below.axis, table)
                    rows += found
                    strides += steps
                    inner.add(axes)
        whole = np.concatenate(rows, axis=1)
        block = inner.pop() if len(inner) == 1 else ()
        local = (whole.shape[1] // max(1, math.prod(block)), *block)
        return ColumnDofs(
            self.points(component), whole, strides, self.layers, tree.size, tree=tree, local=local
        )

    def _under(
        self, tree: Any, path: Any, axis: str, table: Any
    ) -> tuple[list[Any], list[int], tuple[int, ...]]:
        """Of a leaf the rows for each height, the strides, and the extents of inner axes."""
        extents = dict(zip([label for label, _ in tree.path(path)], tree.shape(path), strict=True))
        upward = next((label for label in (LEVEL, LAYER) if label in path), None)
        if upward is not None and extents[upward] != self.layers + (upward == LEVEL):
            raise ValueError(
                f"There are {self.layers} layers, and the tree has {extents[upward]} entries along {upward!r}: "
                f"it has {self.layers + (upward == LEVEL)}."
            )
        if axis in path and extents[axis] != self.base.points(path[axis]).size:
            raise ValueError(f"The tree has {extents[axis]} points {path[axis]!r}: it is of another mesh.")
        stride = 0 if upward is None else tree.stride(path, upward)
        if stride is None:
            raise ValueError(
                f"Along {upward!r} the entries of {dict(path)} are not equally far apart: put the axis below "
                "those of varying extent."
            )
        labels = sorted((e for e in extents if e not in (axis, upward)), key=lambda label: label != "dof")
        at: dict[Any, Any] = {}
        if axis in path:
            at[axis] = table[(..., *[None] * len(labels))]
        for d, label in enumerate(labels):
            at[label] = np.arange(extents[label]).reshape(-1, *[1] * (len(labels) - 1 - d))
        shape = (*table.shape, *(extents[label] for label in labels))
        found = []
        for height in (0, 1) if upward == LEVEL else (0,):
            where = tree.offset(path, at if upward is None else {**at, upward: height}, check=False)
            found.append(np.broadcast_to(where, shape).reshape(len(table), math.prod(shape[1:])))
        count = sum(f.shape[1] for f in found)
        return found, [stride] * count, tuple(extents[label] for label in labels if label != "dof")

    def rows(self, target: str, component: str = "cell") -> ColumnDofs:
        """What points reach of a plain array with a row for each point below: the same in all layers.

        >>> from mirabelle import meshdata as md
        >>> md.columns(md.interval(2), 2).rows("vertex").table.tolist()
        [[0, 1], [0, 1], [1, 2], [1, 2]]
        """
        table = self.base.closure(component, target).target().table
        size = self.base.points(target).size
        return ColumnDofs(self.points(component), table, [0] * table.shape[1], self.layers, size)

    def levels(self, component: str = "cell") -> ColumnDofs:
        """What points reach of a plain array with a row for each level: the one below, and the one above.

        >>> from mirabelle import meshdata as md
        >>> md.columns(md.interval(1), 3).levels().table.tolist()
        [[0, 1], [1, 2], [2, 3]]
        """
        below = self.base.points(component)
        table = np.tile([0, 1], (below.size, 1))
        return ColumnDofs(self.points(component), table, (1, 1), self.layers, self.layers + 1)

    def __repr__(self) -> str:
        return f"<columns of {self.layers} layers on {self.base!r}>"


def columns(base: Mesh, layers: int) -> Columns:
    """Columns of so many layers on the points of a mesh: prisms on triangles, hexahedra on quadrilaterals.

    Points of a column follow each other, and so should data: trees with the axis "level" or "layer" below the
    mesh's. Loops over `columns.points()` read no table but that of the mesh below.

    Parameters
    ----------
    base : Mesh
        The mesh that columns stand on.
    layers : int
        How many cells a column has.

    Returns
    -------
    mb.meshdata.Columns
        It has `points()`, for loops, and what leads from them to the entries of arrays; it keeps `base` and
        stores no points of its own.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> columns = md.columns(md.unit_square(2), 10)
    >>> columns.points()
    Points(axis='mesh', component='cell x layer', size=80)
    """
    return Columns(base, layers)
