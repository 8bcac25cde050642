"""What annotations of functions of arrays are spelled with: operands, dtypes, shapes, axes, indices, places.

Names for checkers of types and for readers: nothing here is looked at while a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import IO, TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

import numpy.typing as npt

if TYPE_CHECKING:
    import os

    from numpy.random import SeedSequence

    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.random.bitgenerator import Philox
    from mirabelle.dispatch.styles import Place


class Multiplies(Protocol):
    """What multiplies vectors, as matrices on meshes do."""

    def __matmul__(self, other: Any, /) -> Any: ...


# What an array is made of, or computed with: arrays of ours and of NumPy, numbers, nested lists of them.
ArrayLike: TypeAlias = "AbstractArray | npt.ArrayLike | Sequence[AbstractArray]"
# (None is the dtype that the operation gives.)
DTypeLike: TypeAlias = "npt.DTypeLike | None"
# An array to write the result to.
Out: TypeAlias = "AbstractArray | None"
# Sizes along the axes; one alone is that of a vector.
ShapeLike: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
# An axis, several, or all of them.
Axis: TypeAlias = "int | tuple[int, ...] | None"
# Where a new array goes: a type of arrays, a place (`x.device`), its name, a function that places an array.
Device: TypeAlias = "type[AbstractArray] | Place | str | Callable[[Any], AbstractArray]"
# Where random numbers begin; None asks the system.
Seed: TypeAlias = "int | Sequence[int] | npt.NDArray[Any] | SeedSequence | Philox | None"
# What is read or written: a name, or an open file.
File: TypeAlias = "str | os.PathLike[str] | IO[Any]"
OneIndex: TypeAlias = "SupportsIndex | slice | EllipsisType | ArrayLike | None"
Index: TypeAlias = "OneIndex | tuple[OneIndex, ...]"
