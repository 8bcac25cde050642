"""x.flat: all elements of an array in a row.

>>> import mirabelle as mb
>>> x = mb.HostArray([[1, 2], [3, 4]])
>>> x.T.flat[1] = 9
>>> print(x, x.flat[-1])
[[1 2]
 [9 4]] 4
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs


class Flat:
    """The elements of `base` in a row: an iterator, which also takes indices."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.index = 0

    @property
    def coords(self) -> tuple[int, ...]:
        """The place in the array of the element that comes next."""
        return tuple(int(i) for i in np.unravel_index(self.index, self.base.shape)) if self.base.shape else ()

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self._row()[self.index - 1]

    def _row(self) -> Any:
        return verbs.reshape(self.base, (-1,))

    def __getitem__(self, index: Any) -> Any:
        found = verbs.getitem(self._row(), index)
        return verbs.copy(found) if found.ndim else found

    def __setitem__(self, index: Any, value: Any) -> None:
        row = self._row()
        value = as_array(value, self.base)
        if value.ndim and not isinstance(index, (int, np.integer)):
            # As in NumPy, values are repeated, or left over.
            n = verbs.getitem(row, index).size
            if not value.size:
                raise ValueError("There are no values to write: the array of values is empty.")
            value = verbs.reshape(value, (-1,))
            value = value[(np.arange(n) % value.size).tolist()] if n > value.size else value[:n]
        verbs.setitem(row, index, value)
        if root_of(row) is not root_of(self.base):  # strides could not say it: the row is a copy
            verbs.assign(self.base, verbs.reshape(row, self.base.shape))

    def copy(self) -> Any:
        """All elements in a new array."""
        return verbs.copy(self._row())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return verbs.numpy_view(self._row(), dtype, copy)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<flat iterator of {self.base!r}>"
