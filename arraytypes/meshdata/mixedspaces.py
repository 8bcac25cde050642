"""Mixed spaces: functions of several spaces side by side, in one array over one tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.meshdata.axes import Axis
from mirabelle.arraytypes.meshdata.divisions import part_rows
from mirabelle.arraytypes.meshdata.dofs import Dofs, placed
from mirabelle.arraytypes.meshdata.elements import KINDS
from mirabelle.arraytypes.meshdata.spaces import Space
from mirabelle.arraytypes.meshdata.spacetables import cell_tables
from mirabelle.arraytypes.meshdata.spacevalues import (
    as_given,
    check,
    function_of,
    local_function,
    zero_function,
)
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.arraytypes.meshdata.treebuilding import tree
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike
    from mirabelle.arraytypes.distributed.darray import DArray
    from mirabelle.arraytypes.meshdata.annotations import Where
    from mirabelle.arraytypes.meshdata.spaces import Field
    from mirabelle.arraytypes.meshdata.trees import AxisTree


class MixedSpace:
    """Several spaces as one: `md.mixed` makes it.

    `dofs` has of each cell the degrees of freedom of the first field, then the second, node by node with the
    components of a node together, whether they are stored interleaved or not: kernels see no difference.

    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1, 1)
    >>> W = md.mixed(md.space(mesh, "P", 2, components=2), md.space(mesh, "P", 1), names=("u", "p"))
    >>> W.tree.size, W.dofs.table.shape
    (22, (2, 15))
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, spaces: tuple[Space, ...], names: tuple[str, ...], interleaved: bool) -> None:
        self.spaces, self.names, self.interleaved = spaces, names, interleaved
        self.mesh = spaces[0].mesh

    @cached_property
    def tree(self) -> AxisTree:
        """The axis tree: the fields one after the other, or (interleaved) together at each entity."""
        fields = dict(zip(self.names, self.spaces, strict=True))
        if not self.interleaved:
            return tree(Axis("field", dict.fromkeys(fields, 1)), {name: V.tree for name, V in fields.items()})
        below = {}
        for kind in KINDS:
            here = {name: V for name, V in fields.items() if kind in V.element.entity_dofs}
            if here:
                at = {name: V.below(kind) for name, V in here.items()}
                below[kind] = tree(Axis("field", dict.fromkeys(here, 1)), at)
        return tree(self.spaces[0].mesh_axis(list(below)), below)

    def field(self, name: str | int) -> Space:
        """The space of a field, by its name or number."""
        return self.spaces[self._number(name)]

    def _number(self, name: str | int) -> int:
        if isinstance(name, int) and 0 <= name < len(self.names):
            return name
        if name not in self.names:
            raise ValueError(
                f"There is no field {name!r} here. The fields are {', '.join(map(repr, self.names))}; others "
                'are named where the space is made: `md.mixed(V, Q, names=("u", "p"))`.'
            )
        return self.names.index(name)

    @cached_property
    def _positions(self) -> list[dict[str, np.ndarray]]:
        """Of each field and kind of entity, where the first components are."""
        return [
            V.positions(self.tree, {"field": name}, {"field": 0})
            for name, V in zip(self.names, self.spaces, strict=True)
        ]

    @cached_property
    def _tables(self) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Of each field the positions of all components in each cell, and the signs."""
        found = []
        for V, at in zip(self.spaces, self._positions, strict=True):
            table, signs = cell_tables(self.mesh, V.element, at)
            found.append(
                (V.components_at(table).reshape(len(table), table.shape[1] * math.prod(V.block)), signs)
            )
        return found

    def dofs_of(self, name: str | int) -> Dofs:
        """The degrees of freedom of one field in each cell: node by node, components together.

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(1, 1)
        >>> V, Q = md.space(mesh, "P", 2, components=2), md.space(mesh, "P", 1)
        >>> md.mixed(V, Q, interleaved=True).dofs_of(1).table.tolist()
        [[12, 15, 18], [15, 21, 18]]
        """
        return self._dofs(self._tables[self._number(name)][0])

    @cached_property
    def dofs(self) -> Dofs:
        """The degrees of freedom of all fields in each cell, those of the first field first."""
        return self._dofs(np.concatenate([table for table, _ in self._tables], axis=1))

    def _dofs(self, table: np.ndarray) -> Dofs:
        return Dofs(self.mesh.points("cell"), table, self.tree.size, tree=self.tree)

    @cached_property
    def signs(self) -> np.ndarray | None:
        """The signs of all basis functions of a cell, (cells, K), where a field has any; else None."""
        if all(signs is None for _, signs in self._tables):
            return None
        all_of_them = [np.ones(table.shape) if signs is None else signs for table, signs in self._tables]
        return np.concatenate(all_of_them, axis=1)

    @cached_property
    def _from_fields(self) -> list[np.ndarray]:
        """Where each entry of a field's own array stands in the mixed one."""
        found = []
        for V, at in zip(self.spaces, self._positions, strict=True):
            there = np.empty(V.tree.size, np.int64)
            for kind, own in V.positions(V.tree, {}, {}).items():
                there[V.components_at(own)] = V.components_at(at[kind])
            found.append(there)
        return found

    @overload
    def zeros(self, array: type[DArray], dtype: DTypeLike = ...) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def zeros(self, array: type[AbstractArray] = ..., dtype: DTypeLike = ...) -> TreeArray: ...
    def zeros(self, array: type[AbstractArray] = HostArray, dtype: DTypeLike = np.float64) -> Any:
        """The functions that are zero, in an array of the type given."""
        return zero_function(self, array, dtype)

    @overload
    def function(self, values: ArrayLike, array: type[DArray]) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def function(self, values: ArrayLike, array: type[AbstractArray] = ...) -> TreeArray: ...
    def function(self, values: ArrayLike, array: type[AbstractArray] = HostArray) -> Any:
        """The functions with these degrees of freedom, in the order of `W.tree`: `Space.function` says more."""
        return function_of(self, values, array)

    def local(self, w: AbstractArray) -> TreeArray:
        """The functions on this process' part of a divided mesh, ghosts included."""
        return local_function(self, w)

    @overload
    def interpolate(self, *functions: Field, array: type[DArray], dtype: DTypeLike = ...) -> AbstractArray: ...  # type: ignore[overload-overlap]
    @overload
    def interpolate(
        self, *functions: Field, array: type[AbstractArray] = ..., dtype: DTypeLike = ...
    ) -> TreeArray: ...
    def interpolate(
        self, *functions: Field, array: type[AbstractArray] = HostArray, dtype: DTypeLike = np.float64
    ) -> Any:
        """The interpolants of one function (or constant) for each field.

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(1, 1)
        >>> W = md.mixed(md.space(mesh, "P", 1, components=2), md.space(mesh, "P", 1), names=("u", "p"))
        >>> W.split(W.interpolate((1.0, 2.0), lambda x: x[..., 0]))[1].parent.tolist()
        [0.0, 1.0, 0.0, 1.0]
        """
        self._one_for_each(functions, "W.interpolate(f, g)")
        parts = [V.interpolate(f, dtype=dtype) for V, f in zip(self.spaces, functions, strict=True)]
        return self.function(self._joined([verbs.to_numpy(part.parent) for part in parts], dtype), array)

    def split(self, w: AbstractArray) -> tuple[Any, ...]:
        """The functions of the fields, each in an array over the tree of its own space.

        Of a distributed array they are distributed ones.
        """
        mine = self.local(w)
        check(mine, self)
        family = leaf_family(type(mine.parent))
        parts = [verbs.materialize(mine.parent[placed(family, at)]) for at in self._from_fields]
        return tuple(as_given(V, x, w) for V, x in zip(self.spaces, parts, strict=True))

    def join(self, *parts: AbstractArray) -> AbstractArray:
        """The opposite of `split`: functions of the fields in one array."""
        self._one_for_each(parts, "W.join(u, p)")
        mine = [V.local(part) for V, part in zip(self.spaces, parts, strict=True)]
        for V, part in zip(self.spaces, mine, strict=True):
            check(part, V)
        joined = concatenate([part.parent for part in mine])
        order = np.argsort(np.concatenate(self._from_fields))
        made = verbs.materialize(joined[placed(leaf_family(type(joined)), order)])
        return as_given(self, made, parts[0])

    def _joined(self, parts: list[np.ndarray], dtype: Any) -> np.ndarray:
        flat = np.empty(self.tree.size, dtype)
        for part, at in zip(parts, self._from_fields, strict=True):
            flat[at] = part
        return flat

    def _one_for_each(self, given: tuple[Any, ...], call: str) -> None:
        if len(given) != len(self.spaces):
            raise ValueError(
                f"This space has {len(self.spaces)} fields, {', '.join(map(repr, self.names))}, and "
                f"{len(given)} are given. There is one for each: `{call}`."
            )

    def boundary_dofs(self, name: str | int, where: Where | None = None) -> np.ndarray:
        """Where the flat array has what a field has on the boundary: `Space.boundary_dofs` says more."""
        number = self._number(name)
        rows = np.asarray(self.spaces[number].boundary_dofs(where))
        found = np.sort(self._from_fields[number][rows])
        division = self.mesh.topology.division
        return found if division is None else part_rows(found, division.entries(self.tree))

    def evaluate(
        self, w: AbstractArray, name: str | int, points: ArrayLike, outside: str = "nan"
    ) -> AbstractArray:
        """The values of a field at points: `Space.evaluate` says more."""
        number = self._number(name)
        return self.spaces[number].evaluate(self.split(w)[number], points, outside)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MixedSpace) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.spaces, self.names, self.interleaved

    def __reduce__(self) -> Any:
        return MixedSpace, self._key()

    def __repr__(self) -> str:
        how = "interleaved" if self.interleaved else "one after the other"
        fields = ", ".join(f"{name}: {V!r}" for name, V in zip(self.names, self.spaces, strict=True))
        return f"<mixed space of {fields}, stored {how}>"


def mixed(*spaces: Space, names: Sequence[str] | None = None, interleaved: bool = False) -> MixedSpace:
    """Several spaces of one mesh as one, stored one after the other or interleaved: together at each entity.

    Parameters
    ----------
    *spaces : Space
        Spaces of one mesh.
    names : sequence of str or None
        Names of the fields; None is "0", "1" and so on.
    interleaved : bool, default False
        Store the fields together at each entity, not one after the other.

    Returns
    -------
    mb.meshdata.MixedSpace
        It has one `tree`, one numbering of the degrees of freedom of all fields; `field`, `split` and
        `dofs_of` lead back to one of them.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1, 1)
    >>> V, Q = md.space(mesh, "P", 2, components=2), md.space(mesh, "P", 1)
    >>> md.mixed(V, Q, names=("u", "p")).boundary_dofs("p").tolist()
    [18, 19, 20, 21]
    """
    if len(spaces) < 2 or not all(isinstance(V, Space) for V in spaces):
        raise TypeError("A mixed space is made of two spaces or more: `md.mixed(V, Q)`.")
    if any(V.mesh != spaces[0].mesh for V in spaces):
        raise ValueError(
            "The spaces of a mixed space are on one mesh, and these are on several. Make them of the same: "
            '`md.mixed(md.space(mesh, "P", 2, components=2), md.space(mesh, "P", 1))`.'
        )
    given = tuple(str(i) for i in range(len(spaces))) if names is None else tuple(names)
    if len(given) != len(spaces) or len(set(given)) != len(given) or not all(isinstance(n, str) for n in given):
        raise ValueError(
            f"{len(spaces)} fields have as many different names, and {names!r} are none: "
            '`md.mixed(V, Q, names=("u", "p"))`.'
        )
    return MixedSpace(spaces, given, bool(interleaved))
