"""Columns or rows of a matrix in another order, not moved: what sorted eigenvectors of a product are.

>>> import mirabelle as mb
>>> A = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
>>> x = mb.ext.Reordered(A, mb.HostArray([1, 0]))
>>> print(x, x @ mb.HostArray([1.0, 0.0]))
[[2. 1.]
 [4. 3.]] [2. 4.]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions.picking import take
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured.base import Structured, zeros_for
from mirabelle.arraytypes.structured.kronecker import as_right_side
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike


class Reordered(Structured):
    """The columns (`axis=1`) or rows (`axis=0`) of a matrix that `order` names, each once at most.

    Parameters
    ----------
    matrix : matrix
        The matrix.
    order : array of int
        Which columns or rows, in their new order.
    axis : int, default 1
        1 for columns, 0 for rows.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.ext.Reordered(mb.Identity(3), mb.HostArray([2, 0, 1]), axis=0))
    [[0. 0. 1.]
     [1. 0. 0.]
     [0. 1. 0.]]
    """

    __module__ = "mirabelle.ext"
    __slots__ = ()

    def __new__(cls, matrix: ArrayLike, order: Any, axis: int = 1) -> Self:
        x, order = cls._checked((matrix, order))
        if x.ndim != 2 or order.ndim != 1 or order.dtype.kind not in "iu":
            raise ValueError(
                f"Reordered takes a matrix and the numbers of its columns (or rows) as integers, not "
                f"arrays of shapes {x.shape} and {order.shape}, {order.dtype.name}."
            )
        if axis not in (0, 1):
            raise ValueError(f"Reordered puts rows (axis=0) or columns (axis=1) in order, not axis={axis!r}.")
        n = x.shape[axis]
        if order.shape[0] and not bool(
            verbs.all(verbs.logical_and(verbs.greater_equal(order, 0), verbs.less(order, n)))
        ):
            raise IndexError(f"Reordered: an index is out of bounds for axis {axis} with size {n}.")
        return reordered(x, order, axis)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        if isinstance(getattr(parameters[0], "dtype", None), np.dtype):
            attributes["dtype"] = parameters[0].dtype
        return attributes

    @property
    def axis(self) -> int:
        """Which axis is in another order: 0 (rows) or 1 (columns)."""
        return int(self._how)

    @property
    def order(self) -> AbstractArray:
        """Which columns (or rows) there are."""
        return self._parts[1]

    def _like(self, matrix: Any) -> Any:
        return self._with_parts((matrix, self._parts[1]))

    def _dense(self) -> Any:
        return take(verbs.dense(self._parts[0]), self._parts[1], axis=self.axis)

    def _entries(self, i: Any, j: Any) -> Any:
        x, order = self._parts
        return x[order[i], j] if self.axis == 0 else x[i, order[j]]

    def _transposed(self) -> Any:
        return reordered(self._parts[0].T, self._parts[1], 1 - self.axis)

    def _conjugated(self) -> Any:
        return self._like(verbs.conj(self._parts[0]))

    def _cast(self, dtype: np.dtype) -> Any:
        return self._like(verbs.astype(self._parts[0], dtype, copy=False))

    def _mapped(self, op: Any, operands: tuple[Any, ...]) -> Any:
        from mirabelle.arraytypes.elementwise import build
        from mirabelle.arraytypes.structured.broadcasting import is_number, value_of

        if any(x is not self and not is_number(x) for x in operands):
            return NotImplemented
        return self._like(build(op, tuple(self._parts[0] if x is self else value_of(x) for x in operands)))

    def _spread(self, x: Any, axis: int) -> Any:
        """The lines of `x` along an axis, each where the order takes it from, and zeros between."""
        order = self._parts[1]
        shape = (*x.shape[:axis], self._parts[0].shape[self.axis], *x.shape[axis + 1 :])
        out = zeros_for((x,), shape, x.dtype)
        verbs.setitem(out, (*[slice(None)] * axis, order), x)
        return out

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        axis = max(0, other.ndim - 2)
        if self.axis == 1:
            return verbs.matmul(self._parts[0], self._spread(other, axis))
        return take(verbs.matmul(self._parts[0], other), self._parts[1], axis=axis)

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        if self.axis == 0:
            return verbs.matmul(self._spread(other, other.ndim - 1), self._parts[0])
        return take(verbs.matmul(other, self._parts[0]), self._parts[1], axis=other.ndim - 1)

    def _facts(self) -> list[str]:
        return [f"{'rows' if self.axis == 0 else 'columns'} in another order", f"shape={self._shape}"]


def reordered(x: Any, order: Any, axis: int) -> Any:
    """A Reordered of an order that is known to fit."""
    shape = list(x.shape)
    shape[axis] = order.shape[0]
    return generic_class(Reordered)._of((x, order), tuple(shape), axis)
