"""Block diagonal matrices: matrices along the diagonal, zeros elsewhere, which are not stored.

>>> import mirabelle as mb
>>> A = mb.block_diagonal(mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), [[5.0]])
>>> print(A)
[[1. 2.  .]
 [3. 4.  .]
 [ .  . 5.]]
>>> print(A @ mb.HostArray([1.0, 1.0, 1.0]), f"{float(mb.linalg.det(A)):.6g}")
[3. 7. 5.] -10

Many blocks of one shape are given as one stack, which is multiplied, solved and decomposed in one call:

>>> B = mb.BlockDiagonal(mb.ones((1000, 2, 2)))
>>> B.shape, len(B.parts)
((2000, 2000), 1)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.banded import Diagonal
from mirabelle.arraytypes.structured.base import Structured, zeros, zeros_for
from mirabelle.arraytypes.structured.fallback import normal_indices
from mirabelle.arraytypes.structured.kronecker import as_right_side
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.policy import scalar_access

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class BlockDiagonal(Structured):
    """A matrix of blocks along its diagonal. A part is a matrix, or a stack of them: equally large blocks.

    Parameters
    ----------
    *blocks : matrices
        The blocks, or stacks of equally large ones.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.BlockDiagonal(mb.HostArray([[1, 2]]), mb.HostArray([[3], [4]]))
    >>> A.shape, A.blocks
    ((3, 3), ((1, 1, 2), (1, 2, 1)))
    """

    __module__ = "mirabelle"
    __slots__ = ()
    entrywise = True
    has_zeros = True

    def __new__(cls, *blocks: ArrayLike) -> Self:
        if not blocks:
            raise TypeError("BlockDiagonal is made of its blocks: mb.BlockDiagonal(A, B, ...).")
        parts = cls._checked(blocks)
        for p in parts:
            if p.ndim not in (2, 3):
                raise ValueError(
                    f"The blocks of a BlockDiagonal are matrices, or stacks of equally large ones; one has "
                    f"shape {p.shape}. Make a vector one column with x[:, None]."
                )
        flat = [q for p in parts for q in (p.parts if isinstance(p, BlockDiagonal) else (p,))]
        dtype = np.result_type(*[p.dtype for p in flat])
        return cls._made(*[verbs.astype(p, dtype, copy=False) for p in flat])

    @classmethod
    def _shape_of(cls, *parts: Any) -> tuple[int, ...]:
        return tuple(sum(count(p) * p.shape[axis] for p in parts) for axis in (-2, -1))

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """For each part: how many blocks it is, and how many rows and columns they have."""
        return tuple((count(p), *p.shape[-2:]) for p in self._parts)

    @property
    def all_square(self) -> bool:
        """Is every block square?"""
        return all(m == n for _, m, n in self.blocks)

    @property
    def layout(self) -> Hashable:
        return BlockDiagonal, self.blocks, tuple(p.ndim for p in self._parts)

    def spans(self) -> list[tuple[Any, slice, slice]]:
        """Each part, and the rows and columns it takes."""
        found, row, column = [], 0, 0
        for p, (k, m, n) in zip(self._parts, self.blocks, strict=True):
            found.append((p, slice(row, row + k * m), slice(column, column + k * n)))
            row, column = row + k * m, column + k * n
        return found

    def _restrict(self, x: Any) -> Any:
        x = verbs.broadcast_to(x, self._shape)
        return tuple(shown_blocks(x[rows, columns], p) for p, rows, columns in self.spans())

    def _dense(self) -> Any:
        out = zeros_for(self._parts, self._shape, self.dtype)
        for p, rows, columns in self.spans():
            if p.size:
                verbs.assign(shown_blocks(out[rows, columns], p), verbs.dense(p))
        return out

    def _entries(self, i: Any, j: Any) -> Any:
        found: Any = self.dtype.type(0)
        for p, rows, columns in self.spans():
            if not p.size:
                continue
            (m, n), k = p.shape[-2:], count(p)
            row, column = i - rows.start, j - columns.start
            which = row // m
            inside = verbs.logical_and(verbs.greater_equal(row, 0), verbs.less(row, k * m))
            inside = verbs.logical_and(inside, verbs.equal(which, column // n))
            at = (verbs.clip(which, 0, k - 1), row % m, column % n)
            found = verbs.where(inside, p[at[1:] if p.ndim == 2 else at], found)
        return found

    def _pattern(self) -> np.ndarray:
        mask = np.zeros(self._shape, bool)
        for p, rows, columns in self.spans():
            m, n = p.shape[-2:]
            for i, j in zip(
                range(rows.start, rows.stop, max(m, 1)),
                range(columns.start, columns.stop, max(n, 1)),
                strict=False,
            ):
                mask[i : i + m, j : j + n] = True
        return mask

    def _transposed(self) -> Any:
        return self._made(*[p.mT for p in self._parts])

    def _index(self, index: tuple[Any, ...]) -> Any:
        if len(index) != 2 or not all(
            isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)) for i in index
        ):
            return NotImplemented
        place = self._place(*normal_indices(self, index))
        return zeros(self.family, (), self.dtype) if place is None else place[0][place[1]]

    def _place(self, i: int, j: int) -> tuple[Any, tuple[int, ...]] | None:
        """The part that stores an entry, and where; None for a zero."""
        for p, rows, columns in self.spans():
            if rows.start <= i < rows.stop:
                (m, n), i, j = p.shape[-2:], i - rows.start, j - columns.start
                if not 0 <= j < columns.stop - columns.start or i // m != j // n:
                    return None
                return p, (i, j) if p.ndim == 2 else (i // m, i % m, j % n)
        return None

    def _write(self, index: Any, value: Any) -> None:
        if index is not None and len(index) == 2 and all(isinstance(i, (int, np.integer)) for i in index):
            place = self._place(*normal_indices(self, index))
            if place is not None:
                verbs.setitem(place[0], place[1], value)
                return
            scalar_access("Writing", self.place)
            if value != 0:
                raise ValueError(
                    f"Entry {tuple(map(int, index))} of this BlockDiagonal is zero by its structure and cannot "
                    f"become {value!r}. Write to a dense copy: `x = mb.HostArray(x)`."
                )
            return
        if index is None and isinstance(value, (bool, int, float, complex, np.generic)) and value == 0:
            for p in self._parts:
                verbs.assign(p, value)
            return
        raise TypeError(
            "This BlockDiagonal is written to entry by entry, A[i, j] = v, or block by block: "
            "`A.parts[0][...] = v`. For more, make a dense copy: `x = mb.HostArray(x)`."
        )

    def _diagonal(self, offset: int) -> Any:
        if offset or not self.all_square:
            return super()._diagonal(offset)
        return joined([verbs.reshape(diagonal_view(p, 0, -2, -1), (-1,)) for p in self._parts])

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, BlockDiagonal) and self._meets(other):
            pairs = zip(self._parts, other.parts, strict=True)
            return self._made(*[verbs.matmul(p, q) for p, q in pairs])
        if isinstance(other, Diagonal):  # scales the columns
            return self._scaled(other.parts[0], of_rows=False)
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        return self.by_parts(verbs.matmul, other, max(0, other.ndim - 2))

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Diagonal):
            return self._scaled(other.parts[0], of_rows=True)
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        over: Any = self.T  # of blocks, too
        if other.ndim == 1:
            return over.by_parts(verbs.matmul, other, 0)
        turned = over.by_parts(verbs.matmul, verbs.permute_dims(other, (*range(other.ndim - 2), -1, -2)), -2)
        return verbs.copy(turned.mT)

    def _meets(self, other: BlockDiagonal) -> bool:
        """Do the columns of each block meet the rows of one block of the other?"""
        return len(self._parts) == len(other.parts) and all(
            p.ndim == q.ndim and p.shape[:-2] == q.shape[:-2] and p.shape[-1] == q.shape[-2]
            for p, q in zip(self._parts, other.parts, strict=True)
        )

    def _scaled(self, scale: Any, of_rows: bool) -> Any:
        made = []
        for p, rows, columns in self.spans():
            line = scale[rows if of_rows else columns]
            line = verbs.reshape(line, (*p.shape[:-2], *((-1, 1) if of_rows else (1, p.shape[-1]))))
            made.append(verbs.multiply(p, line))
        return self._made(*made)

    def by_parts(self, rule: Callable[[Any, Any], Any], x: AbstractArray, axis: int) -> AbstractArray:
        """`rule` of each block and its rows of `x` (columns, or a vector), one below the other."""
        axis %= x.ndim
        made = []
        for p, _, columns in self.spans():
            lines = x[(*[slice(None)] * axis, columns)]
            if p.ndim == 2:
                made.append(rule(p, lines))
                continue
            k, m, n = p.shape
            vector = x.ndim == 1
            shape = (*x.shape[:axis], k, n, 1 if vector else x.shape[-1])
            found = rule(p, verbs.reshape(lines, shape))
            made.append(verbs.reshape(found, (k * m,) if vector else (*x.shape[:axis], k * m, x.shape[-1])))
        return joined(made, axis)

    def _facts(self) -> list[str]:
        shapes = [f"{k} of {m}x{n}" if k > 1 else f"{m}x{n}" for k, m, n in self.blocks]
        shown = [*shapes[:4], "..."] if len(shapes) > 5 else shapes
        return [f"shape={self._shape}", f"blocks {', '.join(shown)}"]


def count(part: Any) -> int:
    """How many blocks a part is."""
    return part.shape[0] if part.ndim == 3 else 1


def shown_blocks(x: Any, part: Any) -> Any:
    """The blocks along the diagonal of `x`, as a view, as a part like `part` has them."""
    if part.ndim == 2:
        return x
    k, m, n = part.shape
    if isinstance(x, Structured):
        x = verbs.dense(x)
    grid = verbs.reshape(x, (k, m, k, n))
    return verbs.permute_dims(diagonal_view(grid, 0, 0, 2), (2, 0, 1))


def joined(pieces: list[Any], axis: int = 0) -> Any:
    """Arrays one after another; of one, itself."""
    return standing_alone(pieces[0]) if len(pieces) == 1 else concatenate(pieces, axis)


@explained
def block_diagonal(*blocks: Any) -> AbstractArray:
    """The matrix of these blocks along its diagonal as a `BlockDiagonal`; of one matrix, the matrix.

    Block diagonal matrices among them give their blocks, and a stack is equally large blocks. (A
    matrix in memory is mb.linalg.block_diag.)

    Parameters
    ----------
    *blocks : matrices
        The blocks.

    Returns
    -------
    mb.BlockDiagonal
        It refers to the blocks and copies nothing; of one matrix, this itself.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[1.0]])
    >>> mb.block_diagonal(mb.block_diagonal(A, A), A).shape, mb.block_diagonal(A) is A
    ((3, 3), True)
    """
    if not blocks:
        raise ValueError("block_diagonal takes at least one matrix: mb.block_diagonal(A, B).")
    if len(blocks) == 1:
        only = as_array(blocks[0])
        if isinstance(only, AbstractArray) and only.ndim == 2:
            return only
    return BlockDiagonal(*blocks)


# Reductions

_COMBINE = {
    "sum": verbs.add, "prod": verbs.multiply, "min": verbs.minimum, "max": verbs.maximum,
    "any": verbs.logical_or, "all": verbs.logical_and,
}  # fmt: skip


@verbs.reduce_.method
def _(x: BlockDiagonal, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, 2)
    if reduction.name not in _COMBINE or not axes or not all(p.size for p in x.parts):
        return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    if dtype is not None:
        x = verbs.astype(x, dtype, copy=False)
    combine = _COMBINE[reduction.name]
    found = []
    for p in x.parts:
        if len(axes) == 2:
            inside: Any = tuple(range(p.ndim))
            lines = x.size
        else:
            inside = p.ndim - 2 + axes[0]
            lines = x.shape[axes[0]]
        of_part = verbs.reduce_(p, reduction, axis=inside, dtype=p.dtype)
        stored = p.size if len(axes) == 2 else p.shape[-2 + axes[0]]
        if reduction.name not in ("sum", "any") and stored < lines:  # there are zeros beside it
            of_part = combine(of_part, x.dtype.type(0))
        found.append(of_part)
    if len(axes) == 1:
        out = joined([verbs.reshape(f, (-1,)) for f in found])
    else:
        out = found[0]
        for f in found[1:]:
            out = combine(out, f)
    return verbs.reshape(out, tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else out
