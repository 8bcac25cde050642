"""Axes: labels with components, whose extents are numbers or vary over the axes above.

>>> from mirabelle import meshdata as md
>>> md.Axis("mesh", {"cell": 2, "edge": 5})
Axis('mesh', {'cell': 2, 'edge': 5})
>>> md.Axis("B", md.Ragged(["A"], [2, 0, 3, 1]))
Axis('B', Ragged(['A'], [2, 0, 3, 1]))
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.annotations import ArrayLike
from mirabelle.arraytypes.meshdata.expressions import narrow, shown
from mirabelle.arraytypes.meshdata.points import Points

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.treetaking import Region


class Ragged:
    """An extent that varies: how many entries there are, over axes above, as nested lists or an array.

    `axes` are the labels of axes above, outermost first; None means those right above, as many as the lists are
    nested. With labels the numbers may also come as one flat vector, in row-major order.

    Parameters
    ----------
    axes : sequence of labels, label or None
        The axes above that the extent depends on, outermost first.
    values : nested lists or array
        How many entries there are, for each index of these axes.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.Ragged(["A", "B"], [[1, 2], [3]])
    Ragged(['A', 'B'], [1, 2, 3])
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("axes", "counts", "values")

    def __init__(self, axes: Sequence[Any] | str | None, values: npt.ArrayLike) -> None:
        if isinstance(values, Ragged):
            values = values.values
        levels = [] if isinstance(values, np.ndarray) else _levels(values)
        if not levels:
            given = np.asarray(values)
            levels = [np.full(int(np.prod(given.shape[:d])), given.shape[d]) for d in range(given.ndim)]
            values = given.ravel()
        else:
            values = levels.pop()
        if isinstance(axes, str):
            axes = (axes,)
        self.axes = tuple(axes) if axes is not None else None
        self.values: np.ndarray = _extents(values)
        # How many numbers the lists of each level have.
        self.counts = tuple(levels)
        if self.axes is not None and len(self.counts) not in (1, len(self.axes)):
            raise ValueError(
                f"An extent over the axes {list(self.axes)} is given by lists nested {len(self.axes)} deep or "
                f"by one flat vector, and this one is nested {len(self.counts)} deep."
            )

    def _key(self) -> tuple[Any, ...]:
        # (One flat vector and nested lists of the same numbers may mean the same; they count as different.)
        return self.axes, tuple(c.tobytes() for c in self.counts), self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Ragged({None if self.axes is None else list(self.axes)}, {shown(self.values)})"

    def __reduce__(self) -> Any:
        return _ragged_again, (self.axes, self.counts, self.values)


def _ragged_again(axes: Any, counts: Any, values: Any) -> Ragged:
    r = object.__new__(Ragged)
    r.axes, r.counts, r.values = axes, counts, narrow(values)
    return r


def _levels(values: Any) -> list[Any]:
    """The lengths of nested lists level by level, and the numbers in them."""
    level, found = [values], []
    while level and all(isinstance(v, (list, tuple, np.ndarray)) for v in level):
        found.append(np.array([len(v) for v in level]))
        level = [w for v in level for w in v]
    if any(isinstance(v, (list, tuple, np.ndarray)) for v in level):
        raise ValueError("An extent is given by lists that are nested equally deep everywhere.")
    return [*found, np.array(level)] if found else []


def _extents(values: Any) -> np.ndarray:
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"How many entries an axis has are integers, not {given.dtype.name} numbers.")
    if given.size and int(given.min()) < 0:
        raise ValueError(
            f"An axis has {given.min()} entries somewhere, and a number of entries is not negative."
        )
    return narrow(given.astype(np.int64))


class Component:
    """What is of one kind among the entries of an axis: its key, how many there are, and their regions."""

    __slots__ = ("extent", "key", "regions")

    def __init__(
        self, key: Any, extent: int | Ragged, regions: tuple[tuple[Any, int | Ragged], ...] = ()
    ) -> None:
        self.key, self.extent, self.regions = key, extent, regions

    def _key(self) -> tuple[Any, ...]:
        return self.key, self.extent, self.regions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Component) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return Component, self._key()


class Axis:
    """A labelled axis of one or several components.

    `components` is a number, an extent that varies (nested lists or `Ragged`), or a mapping of keys to such.
    `numbering` says in which order the entries are stored: the entry at each place, where entries are counted
    through all components. `regions` divides the entries, first to last, into parts that are stored one after
    the other across the whole tree, ghosts behind what is owned say: {"owned": 3, "ghost": 1}, or a mapping of
    components to such.

    Parameters
    ----------
    label : hashable
        The name by which trees, maps and indices know the axis.
    components : int, nested lists, Ragged or mapping
        How many entries there are, or of each component by its key.
    numbering : sequence of int or None
        Which entry stands at each place; None is the order of the components.
    regions : mapping or None
        The sizes of regions by their names, or such a mapping for each component.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.Axis("dof", 3)
    Axis('dof', 3)
    >>> md.Axis("mesh", {"cell": 2, "vertex": 3}, numbering=[4, 0, 2, 1, 3])
    Axis('mesh', {'cell': 2, 'vertex': 3}, numbering=[4, 0, 2, 1, 3])
    >>> md.Axis("mesh", {"vertex": 3}, regions={"vertex": {"owned": 2, "ghost": 1}})
    Axis('mesh', {'vertex': 3}, regions={'vertex': {'owned': 2, 'ghost': 1}})
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_hash", "components", "label", "numbering")

    def __init__(
        self,
        label: Hashable,
        components: Any = None,
        *,
        numbering: ArrayLike | Mapping[Any, ArrayLike] | None = None,
        regions: Mapping[Any, Any] | Sequence[Region] | None = None,
    ) -> None:
        self.label: Any = label
        if getattr(label, "__hash__", None) is None:
            raise TypeError(
                f"The label of an axis is a value that can be looked up, a string say, and not {label!r}."
            )
        if components is None:
            components = _sum_of_regions(label, regions)
        given = components if isinstance(components, Mapping) else {None: components}
        if not given:
            raise ValueError(f"The axis {label!r} has no component. Give it an extent: md.Axis({label!r}, 3).")
        named = _regions_by_component(label, tuple(given), regions)
        made = []
        for key, extent in given.items():
            parts = tuple((r, _extent(label, n)) for r, n in named.get(key, {}).items())
            made.append(Component(key, _extent(label, extent), parts))
            _check_regions(label, made[-1])
        self.components: tuple[Component, ...] = tuple(made)
        self.numbering = None if numbering is None else self._checked_numbering(numbering)
        self._hash: int | None = None

    def _checked_numbering(self, numbering: Any) -> np.ndarray:
        if not all(isinstance(c.extent, int) for c in self.components):
            raise ValueError(
                f"The axis {self.label!r} has a numbering and entries whose number varies; a numbering needs "
                "numbers of entries that are the same everywhere."
            )
        n = sum(c.extent for c in self.components if isinstance(c.extent, int))
        given = np.asarray(numbering)
        order = given.astype(np.int64) if given.dtype.kind in "iu" or not given.size else None
        if order is None or order.ndim != 1 or order.size != n or (np.sort(order) != np.arange(n)).any():
            raise ValueError(
                f"The numbering of the axis {self.label!r} is no permutation of its {n} entries: each of 0 to "
                f"{n - 1} stands in it once. `np.argsort(order)` makes one of any order."
            )
        return narrow(order)

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys of the components; None of a nameless one."""
        return tuple(c.key for c in self.components)

    @property
    def extents(self) -> dict[Any, int | Ragged]:
        """How many entries each component has."""
        return {c.key: c.extent for c in self.components}

    @property
    def regions(self) -> dict[Any, dict[Any, int | Ragged]]:
        """How each component is divided, of those that are."""
        return {c.key: dict(c.regions) for c in self.components if c.regions}

    def component(self, key: Hashable) -> Component:
        """The component of a key, or a KeyError that names those there are."""
        for c in self.components:
            if c.key == key:
                return c
        raise KeyError(f"The axis {self.label!r} has no component {key!r}: it has {list(self.keys)}.")

    def numbered(self, numbering: ArrayLike | Mapping[Any, ArrayLike]) -> Axis:
        """The same axis, whose entries are stored in another order.

        >>> from mirabelle import meshdata as md
        >>> md.Axis("v", 3).numbered([2, 0, 1])
        Axis('v', 3, numbering=[2, 0, 1])
        """
        return Axis(self.label, self.extents, numbering=numbering, regions=self.regions)

    def divided(self, regions: Mapping[Any, Any]) -> Axis:
        """The same axis, divided into regions.

        >>> from mirabelle import meshdata as md
        >>> md.Axis("v", 3).divided({"owned": 2, "ghost": 1})
        Axis('v', 3, regions={'owned': 2, 'ghost': 1})
        """
        return Axis(self.label, self.extents, numbering=self.numbering, regions=regions)

    def points(self, key: Hashable | None = None) -> Points:
        """All entries of a component, to loop over."""
        c = self.components[0] if key is None and len(self.components) == 1 else self.component(key)
        if not isinstance(c.extent, int):
            raise ValueError(
                f"The number of {c.key or self.label!r} varies, so they are not points by themselves."
            )
        return Points(self.label, c.key, c.extent)

    def _key(self) -> tuple[Any, ...]:
        return self.label, self.components, None if self.numbering is None else self.numbering.tobytes()

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Axis) and hash(self) == hash(other) and other._key() == self._key()
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.label, self.components, _digest(self.numbering)))
        return self._hash

    def __repr__(self) -> str:
        extents: Any = self.extents
        regions: Any = self.regions
        if self.keys == (None,):
            extents, regions = extents[None], regions.get(None)
        more = f", numbering={shown(self.numbering)}" if self.numbering is not None else ""
        more += f", regions={regions}" if regions else ""
        return f"Axis({self.label!r}, {extents!r}{more})"

    def __reduce__(self) -> Any:
        return _axis_again, (self.label, self.components, self.numbering)


def _axis_again(label: Any, components: tuple[Component, ...], numbering: Any) -> Axis:
    axis = object.__new__(Axis)
    axis.label, axis.components, axis._hash = label, components, None
    axis.numbering = None if numbering is None else narrow(numbering)
    return axis


def _digest(values: np.ndarray | None) -> bytes:
    return b"" if values is None else hashlib.blake2b(values.tobytes(), digest_size=8).digest()


def _extent(label: Any, n: Any) -> int | Ragged:
    if isinstance(n, Ragged):
        return n
    if isinstance(n, (list, tuple)) or (isinstance(n, np.ndarray) and n.ndim):
        return Ragged(None, n)
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ValueError(
            f"The axis {label!r} has {n!r} entries; a number of them is an integer that is not negative, or "
            f'varies: md.Axis({label!r}, md.Ragged(["label above"], [2, 0, 3])).'
        )
    return int(n)


def _regions_by_component(label: Any, keys: tuple[Any, ...], regions: Any) -> dict[Any, dict[Any, Any]]:
    if not regions:
        return {}
    if all(isinstance(v, Mapping) for v in regions.values()):
        unknown = [k for k in regions if k not in keys]
        if unknown:
            raise KeyError(
                f"The axis {label!r} has no component {unknown[0]!r} to divide: it has {list(keys)}."
            )
        return {k: dict(v) for k, v in regions.items()}
    if len(keys) > 1:
        raise ValueError(
            f"The axis {label!r} has several components, so say which of them is divided: "
            f"regions={{{keys[0]!r}: {{'owned': ..., 'ghost': ...}}}}."
        )
    return {k: dict(regions) for k in keys}


def _sum_of_regions(label: Any, regions: Any) -> Any:
    if not regions or any(isinstance(v, Mapping) for v in regions.values()):
        raise TypeError(f"An axis has an extent, a number of entries say: md.Axis({label!r}, 3).")
    parts = list(regions.values())
    if all(isinstance(n, (int, np.integer)) for n in parts):
        return sum(parts)
    total: Any = sum(
        np.asarray(Ragged(None, n).values if not isinstance(n, Ragged) else n.values) for n in parts
    )
    first = next(n if isinstance(n, Ragged) else Ragged(None, n) for n in parts)
    return _ragged_again(first.axes, first.counts, total)


def _check_regions(label: Any, c: Component) -> None:
    if not c.regions:
        return
    sizes = [n for _, n in c.regions]
    said = sum(sizes) if all(isinstance(n, int) for n in sizes) else None  # type: ignore[arg-type]
    if isinstance(c.extent, int) and said is not None and said != c.extent:
        name = label if c.key is None else c.key
        raise ValueError(
            f"The regions of {name!r} have {said} entries together, and {c.extent} entries are to be divided: "
            "each entry is in one region."
        )
