"""Arrays over axis trees: one flat array of any place, and the tree that says what each of its entries is.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> tree = md.tree(md.Axis("mesh", {"edge": 3, "vertex": 2}), {"edge": md.Axis("dof", 2)})
>>> x = md.ones(tree)
>>> y = x * 2 + x
>>> type(y).__name__, mb.sum(y).item(), y.tree is tree
('TreeArray[HostArray[float64, 1]]', 24.0, True)
>>> y[y.offset({"mesh": "vertex"}, {"mesh": [0, 1]})] = 7.0
>>> print(y.parent)
[3. 3. 3. 3. 3. 3. 7. 7.]

`TreeArray` is a `Structured` type of one part, the flat array, and not a `Wrapper`. A wrapper shows its
parent's memory in another way, and what comes out of an operation on it is a plain array; an array over a tree
shows its part as it is, and what comes out is to be over the tree again, also where the part is a dual number,
divided over processes or in a card's memory. That is what structured types with equal layouts do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes import creation
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import build, elementwise_rule
from mirabelle.arraytypes.meshdata.treeblocks import view_of_leaf
from mirabelle.arraytypes.meshdata.treeindex import Selection
from mirabelle.arraytypes.meshdata.trees import AxisTree
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.broadcasting import elementwise
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import Op

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike, Index


class TreeArray(Structured):
    """A vector whose entries are those of an axis tree, in the order in which the tree stores them.

    Operations with arrays over an equal tree, and with numbers, give arrays over the tree. With a plain vector
    of as many entries they give a plain vector; with an array over another tree they are refused, since its
    entries stand in another order.

    Parameters
    ----------
    tree : AxisTree
        The tree.
    flat : array
        A vector with the tree's entries, in the order in which it stores them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("a", 2), md.Axis("b", 2))
    >>> md.TreeArray(tree, [1.0, 2.0, 3.0, 4.0])
    TreeArray[HostArray[float64, 1]]([1., 2., 3., 4.])
    >>> x = md.TreeArray(tree, mb.arange(4.0))
    >>> type(x + x).__name__, type(x + mb.ones(4)).__name__
    ('TreeArray[HostArray[float64, 1]]', 'HostArray[float64, 1]')
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ()
    ndim = 1
    fuses = True
    entrywise = True
    _how: AxisTree

    def __new__(cls, tree: AxisTree, flat: Any) -> Self:
        if not isinstance(tree, AxisTree):
            raise TypeError(
                f"md.TreeArray(tree, flat) takes a tree, as `md.tree` makes them, and {tree!r} is none."
            )
        (flat,) = cls._checked((as_array(flat),))
        _check_whole(tree, type(flat))
        if flat.shape != (tree.size,):
            raise ValueError(
                f"This tree has {tree.size} entries, and the flat array has shape {flat.shape}; it is a "
                "vector with one number for each: `md.zeros(tree)` makes one."
            )
        return over(tree, flat)  # type: ignore[return-value]

    if TYPE_CHECKING:  # (an index may also name axes)

        def __getitem__(self, index: Index | Mapping[Any, Any] | Selection) -> AbstractArray: ...
        def __setitem__(self, index: Index | Mapping[Any, Any] | Selection, value: Any) -> None: ...

    @property
    def tree(self) -> AxisTree:
        """What its entries are."""
        return self._how

    @property
    def parent(self) -> AbstractArray:
        """The plain vector it stores. What is written to it is written to `self`."""
        return self._parts[0]

    @property
    def layout(self) -> AxisTree:
        return self._how

    def _dense(self) -> Any:
        return self._parts[0]

    def _mapped(self, op: Any, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if isinstance(x, TreeArray) and x._how != self._how:
                raise ValueError(
                    f"{op.name}: the arrays are over different trees, so their entries do not match one by "
                    "one. Put one in the other's order, `y.arranged(x.tree)`, or take vectors: `y.parent`."
                )
        return NotImplemented

    def _index(self, index: tuple[Any, ...]) -> Any:
        chosen = self._selection(index)
        if chosen is None:
            return verbs.getitem(self._parts[0], index)
        part = verbs.getitem(self._parts[0], chosen.index_for(self.family))
        return over(chosen.axes, part) if chosen.axes.axis is not None else verbs.reshape(part, ())

    def _selection(self, index: tuple[Any, ...]) -> Selection | None:
        """The part of the tree that an index by labels means."""
        if len(index) != 1 or not isinstance(index[0], (Mapping, Selection)):
            return None
        chosen = index[0] if isinstance(index[0], Selection) else self._how.select(index[0])
        if chosen.tree is not self._how and chosen.tree != self._how:
            raise ValueError(
                "The selection is a part of another tree than this array's. Make it of this one: "
                "`x.tree.select({label: index})`."
            )
        return chosen

    def _write(self, index: Any, value: Any) -> None:
        if isinstance(value, TreeArray) and value._how != self._how and index is None:
            raise ValueError(
                "The value is over another tree, so its entries do not match one by one. Put it in this order: "
                "`x[...] = y.arranged(x.tree)`."
            )
        if index is None:
            verbs.assign(self._parts[0], value)
            return
        chosen = self._selection(index)
        if chosen is not None:
            if isinstance(value, TreeArray) and value._how != chosen.axes:
                raise ValueError(
                    "The value is over another tree than the part that is written to, so their entries do not "
                    "match one by one. The part is over `x.tree.select(index).axes`."
                )
            value = value._parts[0] if isinstance(value, TreeArray) else value
            verbs.setitem(self._parts[0], chosen.index_for(self.family), value)
        else:
            verbs.setitem(self._parts[0], index, value)

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}", f"{len(self._how.leaves)} leaves"]

    def block(self, path: Mapping[Any, Any] | None = None) -> AbstractArray:
        """The entries of a leaf as an array shaped by its axes: a view where the layout is affine, else a copy.

        `path` may also say more of an axis than its component, as an index does.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> mesh = md.Axis("mesh", {"edge": 3, "vertex": 2})
        >>> x = md.wrap(md.tree(mesh, md.Axis("dim", 2)), mb.arange(10))
        >>> x.block({"mesh": "edge"})[:, 1] = 0
        >>> print(x.block({"mesh": "edge"}), x.block({"mesh": "vertex", "dim": 0}))
        [[0 0]
         [2 0]
         [4 0]] [6 8]
        """
        chosen = self._how.select(path or {})
        if len(chosen.axes.leaves) != 1:
            self._how.path(path)  # says what is left open
            raise KeyError(f"A block is one leaf, and {dict(path or {})} leaves {len(chosen.axes.leaves)}.")
        shape, layout = chosen.axes.shape(), chosen.layout()
        shown = view_of_leaf(self._parts[0], layout, shape, [label for label, _ in chosen.axes.path()])
        if shown is not None:
            return shown
        return verbs.reshape(verbs.getitem(self._parts[0], chosen.index_for(self.family)), shape)

    def arranged(self, tree: AxisTree) -> AbstractArray:
        """The same numbers over a tree with the same leaves, whose entries are stored in another order."""
        return self if tree == self._how else self[self._how.arrangement(tree)]

    def offset(self, path: Mapping[Any, Any] | None, indices: Mapping[Any, Any]) -> Any:
        """Where entries of a leaf lie: `tree.offset`."""
        return self._how.offset(path, indices)


_NUMBERS = frozenset((bool, int, float, complex))


def over(tree: AxisTree, flat: Any) -> TreeArray:
    """An array over a tree, of a flat one that is known to fit."""
    made: TreeArray = TreeArray._of((flat,), (tree.size,), tree)
    return made


@verbs.similar.method
def _(x: TreeArray, dtype: Any = None, shape: Any = None) -> Any:
    if shape is not None and tuple(shape) != x.shape:
        return verbs.similar(x._parts[0], dtype=dtype, shape=shape)
    return over(x._how, verbs.similar(x._parts[0], dtype=dtype))


# Computing with them


def _over_trees(op: Op, operands: tuple[Any, ...]) -> Any:
    # The rule of equal layouts, at once where there is nothing else to consider.
    trees = [x._how for x in operands if isinstance(x, TreeArray)]
    tree = trees[0]
    if trees.count(tree) + sum(type(x) in _NUMBERS for x in operands) == len(operands):
        made = build(op, tuple(x._parts[0] if isinstance(x, TreeArray) else x for x in operands))
        return over(tree, made) if op.nout == 1 else tuple(over(tree, m) for m in made)
    return elementwise(op, operands)


@elementwise_rule.method
def _(kind: type[TreeArray]) -> Any:
    return _over_trees


# Making them


def _check_whole(tree: AxisTree, array: Any) -> None:
    """Refuse arrays over processes on the tree of one process' part of a mesh."""
    if not getattr(array, "communicates", False):
        return
    if any("ghost" in key for key in tree.regions) and any("mesh" in path for path in tree.leaves):
        raise ValueError(
            "This tree is that of one process' part of a divided mesh, ghosts included, and an array over "
            "processes has what each of them owns. A space makes it, `V.zeros(array)`, `V.interpolate(1.0, "
            'array)`, or the part, `part.divided("cell", x)`.'
        )


def zeros(tree: AxisTree, dtype: DTypeLike = None, array: type[AbstractArray] | None = None) -> TreeArray:
    """Zeros over a tree; `array` is the type of the flat array, HostArray if not given.

    Parameters
    ----------
    tree : AxisTree
        What the array is over.
    dtype : dtype or None
        None is float64.
    array : array type or None
        Of the flat array; None is `mb.HostArray`.

    Returns
    -------
    mb.meshdata.TreeArray
        A vector over `tree`, of as many entries as it has, in new memory.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.zeros(md.tree(md.Axis("a", 2), md.Axis("b", [1, 2])))
    TreeArray[HostArray[float64, 1]]([0., 0., 0.])
    """
    _check_whole(tree, array)
    return over(tree, creation.zeros(tree.size, dtype, device=array))


def ones(tree: AxisTree, dtype: DTypeLike = None, array: type[AbstractArray] | None = None) -> TreeArray:
    """Ones over a tree; `array` is the type of the flat array, HostArray if not given.

    Parameters
    ----------
    tree : AxisTree
        What the array is over.
    dtype : dtype or None
        None is float64.
    array : array type or None
        Of the flat array; None is `mb.HostArray`.

    Returns
    -------
    mb.meshdata.TreeArray
        A vector over `tree`, of as many entries as it has, in new memory.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("cell", 2), md.Axis("dof", 3))
    >>> print(md.ones(tree))
    [1. 1. 1. 1. 1. 1.]
    """
    _check_whole(tree, array)
    return over(tree, creation.ones(tree.size, dtype, device=array))


def full(
    tree: AxisTree,
    value: complex | np.generic,
    dtype: DTypeLike = None,
    array: type[AbstractArray] | None = None,
) -> TreeArray:
    """One number over a tree; `array` is the type of the flat array, HostArray if not given.

    Parameters
    ----------
    tree : AxisTree
        What the array is over.
    value : number
        What all entries are.
    dtype : dtype or None
        None is that of the value.
    array : array type or None
        Of the flat array; None is `mb.HostArray`.

    Returns
    -------
    mb.meshdata.TreeArray
        A vector over `tree`, of as many entries as it has, in new memory.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("cell", 2), md.Axis("dof", 3))
    >>> print(md.full(tree, 7))
    [7 7 7 7 7 7]
    """
    _check_whole(tree, array)
    return over(tree, creation.full(tree.size, value, dtype, device=array))


def wrap(tree: AxisTree, flat: ArrayLike) -> TreeArray:
    """A flat array of any kind as one over a tree: its memory is shared.

    Parameters
    ----------
    tree : AxisTree
        The tree.
    flat : array
        A vector with its entries.

    Returns
    -------
    mb.meshdata.TreeArray
        A vector over `tree`: what is written to it is written to `flat`, also where that is NumPy's.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> tree = md.tree(md.Axis("cell", 2), md.Axis("dof", 3))
    >>> x = mb.arange(6.0)
    >>> md.wrap(tree, x)[...] = 9
    >>> print(x)
    [9. 9. 9. 9. 9. 9.]
    """
    return TreeArray(tree, flat)
