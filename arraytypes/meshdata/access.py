"""How a loop's kernel uses an array: access descriptors.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> md.READ(mb.ones(3))
READ(HostArray[float64, 1] of shape (3,))
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.meshdata.dofs import Dofs

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.annotations import Data
    from mirabelle.arraytypes.meshdata.maps import Map


class Intent(enum.Enum):
    """What a kernel does with an argument's entries.

    Of the MIN and MAX forms those with RW let the old value take part, those with WRITE do not.
    """

    READ = "READ"
    WRITE = "WRITE"
    RW = "RW"
    INC = "INC"
    MIN_RW = "MIN_RW"
    MAX_RW = "MAX_RW"
    MIN_WRITE = "MIN_WRITE"
    MAX_WRITE = "MAX_WRITE"

    @property
    def writes(self) -> bool:
        return self is not Intent.READ

    @property
    def gathers(self) -> bool:
        """Is the kernel given what stands in the array?"""
        return self in (Intent.READ, Intent.RW)

    @property
    def combines(self) -> str | None:
        """The operation that joins what several points contribute to one entry."""
        return _COMBINES.get(self)

    @property
    def fresh(self) -> bool:
        """Does the old value not take part, although contributions are combined?"""
        return self in (Intent.MIN_WRITE, Intent.MAX_WRITE)

    def neutral(self, dtype: Any) -> Any:
        """What contributes nothing."""
        if self is Intent.INC:
            return 0
        if dtype.kind == "f":
            return np.inf if self.combines == "minimum" else -np.inf
        if dtype.kind == "b":
            return self.combines == "minimum"
        info = np.iinfo(dtype)
        return int(info.max if self.combines == "minimum" else info.min)


_COMBINES = {
    Intent.INC: "add",
    Intent.MIN_RW: "minimum",
    Intent.MIN_WRITE: "minimum",
    Intent.MAX_RW: "maximum",
    Intent.MAX_WRITE: "maximum",
}


def _meant(array: Any, through: Any) -> str:
    """What to write where another thing was given for a map."""
    if hasattr(through, "dofs"):  # (a space)
        return " Of a space it is its table, V.dofs: `md.READ(u, V.dofs)`."
    if isinstance(array, Dofs) or hasattr(array, "targets"):
        return " The array comes first: `md.READ(u, map)`."
    return ""


class Access:
    """An array, how it is reached from the points of a loop, and what is done to it. Made by READ, INC, ..."""

    __module__ = "mirabelle.meshdata"
    __slots__ = ("array", "intent", "through", "whole")

    def __init__(self, intent: Intent, array: Data, through: Map | Dofs | None, whole: bool) -> None:
        if through is not None and whole:
            raise TypeError(
                f"{intent.value}(..., whole=True) gives every point the same whole array, and a map says "
                "which part each reaches: give one of them."
            )
        if through is not None and not isinstance(through, Dofs) and not hasattr(through, "targets"):
            raise TypeError(
                f"{intent.value}(array, map) takes a map from the points of the loop, like "
                "mesh.closure('cell'), or "
                f"what md.dofs(map, tree) made, and not a {type(through).__name__}.{_meant(array, through)}"
            )
        self.intent = intent
        self.array: Any = array
        self.through: Any = through
        self.whole = whole

    def __repr__(self) -> str:
        shape = getattr(self.array, "shape", None)
        shown = repr(self.array) if shape is None else f"{type(self.array).__name__} of shape {tuple(shape)}"
        through = "" if self.through is None else f", {self.through!r}"
        return f"{self.intent.value}({shown}{through}{', whole=True' if self.whole else ''})"


def READ(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """The kernel reads entries of an array, and writes none.

    Without a map each point has the part of its own number: the first axis of a plain array counts the
    points. With a map it has the parts that the map leads to. `whole=True` gives the whole (small) array
    to every point, as numbers are given.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it reads; None is the part of its own number.
    whole : bool, default False
        Give all of a small array to every point.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def difference(x, d):
    ...     d[0] = x[1] - x[0]
    >>> d = mb.zeros(3)
    >>> md.loop(edges, difference, md.READ(mb.HostArray([0.0, 1.0, 4.0, 9.0]), ends), md.WRITE(d))
    >>> print(d)
    [1. 3. 5.]
    """
    return Access(Intent.READ, array, through, whole)


def WRITE(array: Data, through: Map | Dofs | None = None) -> Access:
    """The kernel writes entries without reading them. Of several points that write one entry the last holds.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to its entries; None is the part of its own number.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def twice(x, d):
    ...     d[0] = 2 * x
    >>> d = mb.zeros(3)
    >>> md.loop(edges, twice, md.READ(mb.HostArray([1.0, 3.0, 5.0])), md.WRITE(d))
    >>> print(d)
    [ 2.  6. 10.]
    """
    return Access(Intent.WRITE, array, through, False)


def RW(array: Data, through: Map | Dofs | None = None) -> Access:
    """The kernel reads entries and writes them. No two points may reach one entry.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to its entries; None is the part of its own number.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def halve(d):
    ...     d[0] = d[0] / 2
    >>> d = mb.HostArray([2.0, 4.0, 6.0])
    >>> md.loop(edges, halve, md.RW(d))
    >>> print(d)
    [1. 2. 3.]
    """
    return Access(Intent.RW, array, through, False)


def INC(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """What the kernel puts into its local array is added: for one entry in the order of the points.

    With `whole=True` contributions of all points are added to one small array: a sum over the mesh, in the
    order in which `mb.sum` adds on the array's place. Over processes it is the sum of this process's points.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it contributes to; None is the part of its own number.
    whole : bool, default False
        Let all points contribute to the whole of one small array.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def share(d, y):
    ...     y[0] -= d
    ...     y[1] += d
    >>> y = mb.zeros(4)
    >>> md.loop(edges, share, md.READ(mb.HostArray([1.0, 3.0, 5.0])), md.INC(y, ends))
    >>> print(y)
    [-1. -2. -2.  5.]
    """
    return Access(Intent.INC, array, through, whole)


def MIN_RW(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """The least of what stands in the array and what points contribute.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it contributes to; None is the part of its own number.
    whole : bool, default False
        Let all points contribute to the whole of one small array.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def offer(d, y):
    ...     y[0] = d
    ...     y[1] = d
    >>> y = mb.HostArray([3.0, 3.0, 3.0, 3.0])
    >>> md.loop(edges, offer, md.READ(mb.HostArray([2.0, 5.0, 1.0])), md.MIN_RW(y, ends))
    >>> print(y)
    [2. 2. 1. 1.]
    """
    return Access(Intent.MIN_RW, array, through, whole)


def MAX_RW(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """The largest of what stands in the array and what points contribute.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it contributes to; None is the part of its own number.
    whole : bool, default False
        Let all points contribute to the whole of one small array.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def offer(d, y):
    ...     y[0] = d
    ...     y[1] = d
    >>> y = mb.HostArray([3.0, 3.0, 3.0, 3.0])
    >>> md.loop(edges, offer, md.READ(mb.HostArray([2.0, 5.0, 1.0])), md.MAX_RW(y, ends))
    >>> print(y)
    [3. 5. 5. 3.]
    """
    return Access(Intent.MAX_RW, array, through, whole)


def MIN_WRITE(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """The least of what points contribute, whatever stood there. What no point reaches gets +infinity.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it contributes to; None is the part of its own number.
    whole : bool, default False
        Let all points contribute to the whole of one small array.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def offer(d, y):
    ...     y[0] = d
    ...     y[1] = d
    >>> y = mb.HostArray([3.0, 3.0, 3.0, 3.0])
    >>> md.loop(edges, offer, md.READ(mb.HostArray([2.0, 5.0, 1.0])), md.MIN_WRITE(y, ends))
    >>> print(y)
    [2. 2. 1. 1.]
    """
    return Access(Intent.MIN_WRITE, array, through, whole)


def MAX_WRITE(array: Data, through: Map | Dofs | None = None, *, whole: bool = False) -> Access:
    """The largest of what points contribute, whatever stood there. What no point reaches gets -infinity.

    Parameters
    ----------
    array : array
        A plain array, one over an axis tree, or a `DArray`.
    through : Map, Dofs or None
        What leads from each point to the entries that it contributes to; None is the part of its own number.
    whole : bool, default False
        Let all points contribute to the whole of one small array.

    Returns
    -------
    access
        An argument for `md.loop`, which holds `array` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def offer(d, y):
    ...     y[0] = d
    ...     y[1] = d
    >>> y = mb.HostArray([3.0, 3.0, 3.0, 3.0])
    >>> md.loop(edges, offer, md.READ(mb.HostArray([2.0, 5.0, 1.0])), md.MAX_WRITE(y, ends))
    >>> print(y)
    [2. 5. 5. 1.]
    """
    return Access(Intent.MAX_WRITE, array, through, whole)
