"""What annotations of functions of meshes are spelled with, beside those of arrays (arraytypes/annotations.py).

Names for checkers of types and for readers: nothing here is looked at while a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike
    from mirabelle.arraytypes.meshdata.axes import Axis
    from mirabelle.arraytypes.meshdata.dofs import Dofs
    from mirabelle.arraytypes.meshdata.ghosts import Ghosted
    from mirabelle.arraytypes.meshdata.maps import Map
    from mirabelle.arraytypes.meshdata.matrices import Matrix
    from mirabelle.arraytypes.meshdata.points import Subset
    from mirabelle.arraytypes.meshdata.trees import AxisTree

# What a loop reads or writes.
Data: TypeAlias = "ArrayLike | Matrix | Ghosted"
# What leads from the points of a loop to entries.
Reach: TypeAlias = "Map | Dofs"
# Entries that each entity reaches: a row for each, or where each one's begin, and they.
Tables: TypeAlias = "npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike]"
# A part of the boundary: a function of points, the name of a marker, or facets.
Where: TypeAlias = "Callable[[np.ndarray], Any] | str | Subset"
# The rank of each cell; by shape, where there are several.
Owner: TypeAlias = "npt.ArrayLike | Mapping[str, npt.ArrayLike]"
# What a tree is made of, from the outermost to the innermost.
Branch: TypeAlias = "Axis | AxisTree | Sequence[Branch] | Mapping[Any, Branch]"
# What processes send each other: an array, or several; and how what comes is combined with what is there.
Sent: TypeAlias = "AbstractArray | np.ndarray | Sequence[AbstractArray | np.ndarray]"
Combining: TypeAlias = "str | Callable[..., Any] | Sequence[str | Callable[..., Any]]"
