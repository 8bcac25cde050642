"""Axis trees: axes within the components of axes, to any depth, and where each entry lies in flat storage.

>>> from mirabelle import meshdata as md
>>> mesh, dof = md.Axis("mesh", {"cell": 2, "edge": 5, "vertex": 4}), md.Axis("dof", 2)
>>> tree = md.tree(mesh, {"edge": dof})
>>> tree.size, tree.layout({"mesh": "edge"})
(16, 2*mesh + dof + 2)
>>> tree.offset({"mesh": "edge"}, {"mesh": np.array([0, 4]), "dof": 1})
array([ 3, 11], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.axes import Axis
from mirabelle.arraytypes.meshdata.domains import Domain
from mirabelle.arraytypes.meshdata.expressions import Const, Expression, evaluate, plus, step_along
from mirabelle.arraytypes.meshdata.layouts import LaidAxis, LaidComponent, laid
from mirabelle.arraytypes.meshdata.points import Points
from mirabelle.arraytypes.meshdata.regions import Path, divided, natural_leaves, region_layouts
from mirabelle.arraytypes.meshdata.treechecks import check_labels, check_range, free_labels

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.treeindex import Selection


class AxisTree:
    """Axes within the components of axes: a shape, and where in flat storage each entry lies.

    `md.tree` makes one. It is a value: it is never written to, and compares and hashes by what it says.

    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("cell", 2), md.Axis("dof", 3))
    >>> isinstance(tree, md.AxisTree), tree.layout()
    (True, 3*cell + dof)
    """

    __module__ = "mirabelle.meshdata"

    def __init__(self, axis: Axis | None, children: Mapping[Any, AxisTree | None] | None = None) -> None:
        self.axis = axis
        self.children: dict[Any, AxisTree] = {
            k: c for k, c in (children or {}).items() if c is not None and c.axis is not None
        }
        if axis is None:
            return
        for key in self.children:
            axis.component(key)
        check_labels(self, ())
        if not self.open:
            _ = self._laid  # what does not fit is found here

    # What it is

    @cached_property
    def open(self) -> tuple[Any, ...]:
        """The axes its extents vary over that are none of its own: it stands under them in another tree."""
        return tuple(dict.fromkeys(free_labels(self, ())))

    @cached_property
    def _laid(self) -> LaidAxis:
        assert self.axis is not None
        if self.open:
            raise ValueError(
                f"The extents of this tree vary over {self.open[0]!r}, which is no axis above: put it under "
                f"one, md.tree(md.Axis({self.open[0]!r}, ...), tree)."
            )
        return laid(self.axis, self.children)

    @cached_property
    def _leaves(self) -> dict[Path, Expression]:
        if self.axis is None:
            return {(): Const(0)}
        return dict(self._divided[0] if divided(self._laid) else natural_leaves(self._laid, (), Const(0)))

    @cached_property
    def _divided(self) -> Any:
        return region_layouts(self._laid)

    @cached_property
    def size(self) -> int:
        """How many entries all leaves have together."""
        return 1 if self.axis is None else int(self._laid.size.value)  # type: ignore[union-attr]

    @cached_property
    def index_dtype(self) -> np.dtype:
        """The integers that say where an entry lies: of 32 bits where they suffice."""
        return np.dtype(np.int32 if self.size < 2**31 else np.int64)

    @property
    def leaves(self) -> list[dict[Any, Any]]:
        """The paths to the leaves, each a mapping of axis labels to components."""
        return [dict(path) for path in self._leaves]

    def sub(self, component: Hashable | None = None) -> AxisTree:
        """What is under each entry of a component of the first axis; a tree without axes under a leaf."""
        if self.axis is None:
            raise KeyError("A tree without axes has nothing under it.")
        return self.children.get(self.component(self.axis, component), UNIT)

    def points(self, component: Hashable | None = None) -> Points:
        """The entries of a component of the first axis, to loop over."""
        if self.axis is None:
            raise KeyError("A tree without axes has no points.")
        return self.axis.points(component)

    @staticmethod
    def component(axis: Axis, key: Hashable) -> Hashable:
        """The key of a component of an axis; None stands for that of the only one."""
        return axis.keys[0] if key is None and len(axis.keys) == 1 else axis.component(key).key

    # Paths

    def path(self, path: Mapping[Any, Any] | None = None, partial: bool = False) -> Path:
        """A path in full: with components that are the only ones of their axes, in the order of the axes."""
        given, found, node = dict(path or {}), [], self
        while node.axis is not None:
            axis = node.axis
            if axis.label not in given and len(axis.keys) > 1:
                if partial:
                    break
                raise KeyError(
                    f"The axis {axis.label!r} has the components {list(axis.keys)}: say which, "
                    f"{{{axis.label!r}: {axis.keys[0]!r}}}."
                )
            key = self.component(axis, given.pop(axis.label, None))
            found.append((axis.label, key))
            node = node.children.get(key, UNIT)
        if given:
            label = next(iter(given))
            raise KeyError(f"There is no axis {label!r} on this path, which has {[name for name, _ in found]}.")
        return tuple(found)

    def on_path(self, path: Path) -> Iterator[LaidComponent]:
        """The components along a path in full, in their places."""
        node: LaidAxis | None = self._laid if path else None
        for _, key in path:
            assert node is not None
            c = next(c for c in node.components if c.key == key)
            yield c
            node = c.sub

    def extent(self, path: Mapping[Any, Any], label: Hashable) -> Expression:
        """How many entries an axis has on a path: a constant, or an expression of the indices above."""
        for c in self.on_path(self.path(path)):
            if c.label == label:
                return c.extent
        raise KeyError(f"There is no axis {label!r} on the path {dict(path)}.")

    def shape(self, path: Mapping[Any, Any] | None = None) -> tuple[int, ...]:
        """The extents along a path to a leaf, where all are constant."""
        found = []
        for c in self.on_path(self.path(path)):
            if not isinstance(c.extent, Const):
                raise ValueError(f"The axis {c.label!r} varies in extent, so this leaf is no rectangle.")
            found.append(c.extent.value)
        return tuple(found)

    # Where entries lie

    def layout(self, path: Mapping[Any, Any] | None = None) -> Expression:
        """Where an entry of a leaf lies, as an expression of its indices."""
        return self._leaves[self.path(path)]

    def offset(self, path: Mapping[Any, Any] | None, indices: Mapping[Any, Any], check: bool = True) -> Any:
        """Where entries of a leaf lie: at indices, integers or arrays of them that broadcast.

        `check=False` leaves away the test that they are in range.
        """
        full = self.path(path)
        at = {label: self._index(label, indices) for label, _ in full}
        if check:
            for label in indices:
                if label not in at:
                    raise KeyError(f"There is no axis {label!r} on this path, which has {list(at)}.")
            for c in self.on_path(full):
                check_range(c, at)
        found = evaluate(self._leaves[full], at, self.index_dtype)
        shape = np.broadcast_shapes(*[np.shape(i) for i in at.values()])
        if not shape:
            return int(found)
        return (
            found if np.shape(found) == shape else np.broadcast_to(np.asarray(found, self.index_dtype), shape)
        )

    def _index(self, label: Any, indices: Mapping[Any, Any]) -> Any:
        if label not in indices:
            raise KeyError(f"An index along the axis {label!r} is missing: {{{label!r}: 0}}.")
        i = indices[label]
        if isinstance(i, (int, np.integer)) and not isinstance(i, bool):
            return int(i)
        given = np.asarray(i)
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError(f"Indices along {label!r} are integers, not {given.dtype.name} numbers.")
        return given.astype(self.index_dtype, copy=False)

    def stride(self, path: Mapping[Any, Any] | None, label: Hashable) -> int | None:
        """How far apart neighbours along an axis lie, where that is the same everywhere; else None."""
        return step_along(self.layout(path), label)

    def domain(self, path: Mapping[Any, Any] | None = None) -> Domain:
        """All entries of a leaf, in row-major order of its axes."""
        domain = Domain()
        for c in self.on_path(self.path(path)):
            domain = domain.within(c.label, c.extent)
        return domain

    def offsets(self, path: Mapping[Any, Any] | None = None) -> np.ndarray:
        """Where the entries of a leaf lie, all of them in row-major order of its axes."""
        domain = self.domain(path)
        found = np.broadcast_to(np.asarray(evaluate(self.layout(path), domain.indices)), (domain.size,))
        return found.astype(self.index_dtype)

    @cached_property
    def _located(self) -> tuple[np.ndarray, np.ndarray]:
        leaf = np.full(self.size, -1, np.int32)
        entry = np.zeros(self.size, self.index_dtype)
        for k, path in enumerate(self._leaves):
            at = self.offsets(dict(path))
            leaf[at] = k
            entry[at] = np.arange(at.size)
        return leaf, entry

    def locate(self, offset: int) -> tuple[dict[Any, Any], dict[Any, int]]:
        """Which entry lies somewhere: its path, and its indices.

        >>> from mirabelle import meshdata as md
        >>> md.tree(md.Axis("a", {"x": 2, "y": 3}), {"x": md.Axis("b", 3)}).locate(4)
        ({'a': 'x', 'b': None}, {'a': 1, 'b': 1})
        """
        if not 0 <= offset < self.size:
            raise IndexError(f"There is nothing at {offset}: the storage of this tree has {self.size} entries.")
        leaf, entry = self._located
        path = dict(list(self._leaves)[leaf[offset]])
        indices = self.domain(path).indices
        return path, {label: int(i[entry[offset]]) for label, i in indices.items()}

    def section(self, component: Hashable | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Where the data of each point of the first axis begin, and how many there are: a section of PETSc's.

        >>> from mirabelle import meshdata as md
        >>> offsets, sizes = md.tree(md.Axis("A", 4), md.Axis("B", [2, 0, 3, 1])).section()
        >>> offsets, sizes
        (array([0, 2, 2, 5], dtype=int32), array([2, 0, 3, 1], dtype=int32))
        """
        points = self.points(component)
        c = next(c for c in self._laid.components if c.key == points.component)
        at = {c.label: np.arange(points.size)}
        if c.sub is not None and divided(c.sub):
            raise ValueError(
                f"The data of one of {points.name!r} do not lie together: regions below divide them, so there "
                "is no section. `tree.offset(path, indices)` says where each entry lies."
            )
        if divided(self._laid):
            leaf = next(path for path in self._leaves if path[0] == (c.label, c.key))
            domain = self.domain(dict(leaf))
            zeros = {label: np.zeros(points.size, np.int64) for label, _ in domain.axes}
            start = evaluate(self._leaves[leaf], zeros | at)
        else:
            start = evaluate(plus(c.start, c.term), at)
        sizes = np.broadcast_to(np.asarray(evaluate(c.step, at), self.index_dtype), (points.size,))
        return np.broadcast_to(np.asarray(start, self.index_dtype), (points.size,)).copy(), sizes.copy()

    # Parts

    def select(self, index: Mapping[Any, Any]) -> Selection:
        """A part: by component, slice, subset, integer and region along labelled axes. See `md.Selection`.

        >>> from mirabelle import meshdata as md
        >>> tree = md.tree(md.Axis("mesh", {"edge": 3, "vertex": 4}), md.Axis("dim", 2))
        >>> tree.select({"mesh": ("vertex", [3, 0, 1]), "dim": 1})
        (mesh: vertex) mesh = [3, 0, 1][mesh], dim = 1: 3 of 14 entries
        """
        from mirabelle.arraytypes.meshdata.treeindex import select

        return select(self, index)

    def arrangement(self, order: AxisTree) -> Selection:
        """All entries in the order of another tree with the same leaves, as a selection."""
        from mirabelle.arraytypes.meshdata.treeindex import arrangement

        return arrangement(self, order)

    # Regions

    @property
    def regions(self) -> dict[tuple[Any, ...], slice]:
        """The part of storage of each region; of combinations, where axes within each other are divided."""
        return {} if self.axis is None or not divided(self._laid) else dict(self._divided[1])

    def region(self, *names: Hashable) -> slice:
        """The part of storage of a region, or of one within another."""
        found = self.regions
        if names not in found:
            raise KeyError(
                f"There is no region {' within '.join(map(repr, names[::-1]))} of this tree"
                + (
                    f": it has {', '.join('/'.join(map(str, k)) for k in found)}."
                    if found
                    else ", which has none."
                )
            )
        return found[names]

    # As a value

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        keys = () if self.axis is None else self.axis.keys
        return self.axis, tuple(self.children.get(k) for k in keys)

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AxisTree) or other._hash != self._hash or other._key != self._key:
            return False
        # From now on they hold the same axes, so that the next comparison looks at no table.
        self.axis, self.children, self._key = other.axis, other.children, other._key
        return True

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return AxisTree, (self.axis, self.children)

    def __repr__(self) -> str:
        from mirabelle.arraytypes.meshdata.treepictures import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.meshdata.treepictures import html_of

        return html_of(self)


UNIT = AxisTree(None)
