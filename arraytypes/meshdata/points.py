"""Points: one component of an axis, which loops run over and maps lead from and to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.topology import Topology


@dataclass(frozen=True)
class Points:
    """All entries of one component of an axis: the cells of a mesh, say.

    Parameters
    ----------
    axis : str
        The label of the axis.
    component : hashable
        The component's key, "cell" say; None where the axis has one without a key.
    size : int
        How many points there are.
    division : object or None
        How they are divided over processes; `md.part` gives it.
    of : reference or None
        The topology of the mesh that they are of; a weak reference, since it keeps them.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> cells = md.Points("mesh", "cell", 6)
    >>> cells
    Points(axis='mesh', component='cell', size=6)
    >>> len(cells.subset([0, 2]))
    2
    """

    axis: str
    component: Any
    size: int
    # How the mesh is divided over processes, where it is (`md.part`): points are the same without it.
    division: Any = field(default=None, compare=False, repr=False)
    of: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, (int, np.integer)) or self.size < 0:
            raise ValueError(
                f"There are {self.size!r} points of {self.axis!r}, and a number of points is an integer that "
                "is not negative."
            )
        object.__setattr__(self, "size", int(self.size))

    def __len__(self) -> int:
        return self.size

    def __reduce__(self) -> Any:
        return Points, (self.axis, self.component, self.size)

    @property
    def topology(self) -> Topology | None:
        """The topology of the mesh that they are of, while that is there; None of points made by hand."""
        return None if self.of is None else self.of()

    @property
    def name(self) -> str:
        """What errors and pictures call them."""
        return str(self.axis if self.component is None else self.component)

    def subset(self, indices: npt.ArrayLike) -> Subset:
        """Some of these points, in the order given."""
        return Subset(self, indices)


Points.__module__ = "mirabelle.meshdata"


class Subset:
    """Some of the points of a component, in an order of their own. Loops run over it as over all.

    Parameters
    ----------
    points : Points
        All points of the component.
    indices : int array
        Which of them, in the order of loops.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.Points("mesh", "cell", 6).subset([4, 1])
    <2 of the 6 points 'cell'>
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("indices", "points")

    def __init__(self, points: Points, indices: npt.ArrayLike) -> None:
        given = np.asarray(indices)
        if given.dtype == bool:
            if given.shape != (points.size,):
                raise ValueError(
                    f"A mask of the {points.size} points {points.name!r} has one truth value for each, and "
                    f"this one has shape {given.shape}."
                )
            given = np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError(
                f"A subset of {points.name!r} is given by a list of integers or a mask, not by {indices!r}."
            )
        if given.size and (int(given.min()) < 0 or int(given.max()) >= points.size):
            wrong = given[(given < 0) | (given >= points.size)][0]
            raise IndexError(
                f"{wrong} is none of the {points.size} points {points.name!r}: they are numbered from 0."
            )
        self.points = points
        self.indices = given.astype(np.int32 if points.size < 2**31 else np.int64)
        self.indices.setflags(write=False)

    def __len__(self) -> int:
        return int(self.indices.size)

    def __repr__(self) -> str:
        return f"<{len(self)} of the {self.points.size} points {self.points.name!r}>"
