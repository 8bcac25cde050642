"""Sparse matrices that loops add to: the pattern is found once, and for each cell where its entries are in it.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> pattern = md.pattern(md.unit_square(1).closure("cell", "vertex"))
>>> pattern
Pattern(4 x 4, 14 entries)
>>> A = pattern.matrix()
>>> def ones(K):
...     K += 1
>>> md.loop(md.unit_square(1).points("cell"), ones, md.INC(A.data, A.dofs))
>>> print(A @ mb.HostArray([1.0, 1.0, 1.0, 1.0]))
[3. 6. 6. 3.]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from mirabelle.arraytypes.annotations import ArrayLike
from mirabelle.arraytypes.creation import asarray, zeros
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.meshdata.divisions import division_of, is_divided
from mirabelle.arraytypes.meshdata.maps import Map
from mirabelle.arraytypes.meshdata.patterns import found, of_blocks
from mirabelle.arraytypes.meshdata.treearray import TreeArray, over
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import PlaceError

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import DTypeLike
    from mirabelle.arraytypes.distributed.darray import DArray
    from mirabelle.arraytypes.meshdata.annotations import Reach
    from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix


class Pattern:
    """Which entries of a matrix are stored, in compressed rows, and which of them each cell adds to.

    `slots` has for each set of cells an int table [cells, rows of a cell, columns of a cell] of places in the
    matrix's `data`; -1 where row or column is nothing. Where columns come in blocks a slot is the place of one,
    in blocks, and where rows do, cells have a row for each of a block's.

    >>> from mirabelle import meshdata as md
    >>> pattern = md.pattern(md.unit_square(1).closure("cell", "vertex"))
    >>> pattern.shape, pattern.nnz, pattern.slot.tolist()[0]
    ((4, 4), 14, [[0, 1, 2], [3, 4, 5], [7, 8, 9]])
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = (
        "__weakref__", "_divided", "_found", "_placed", "block", "columns", "rows", "shape",
    )  # fmt: skip

    def __init__(self, rows: tuple[Any, ...], columns: tuple[Any, ...]) -> None:
        down, across = math.prod(rows[0].block), math.prod(columns[0].block)
        self.rows, self.columns = rows, columns
        self.shape = (int(rows[0].size) * down, int(columns[0].size) * across)
        self.block = across
        self._placed: dict[Any, tuple[Any, Any]] = {}
        self._divided: dict[Any, Any] = {}
        self._found: Any = None
        if division_of(rows[0].source) is None:  # (of a divided mesh rarely that of one process is asked for)
            self._find()

    def _find(self) -> Any:
        if self._found is None:
            tables = [
                (np.asarray(r.table), np.asarray(c.table)) for r, c in zip(self.rows, self.columns, strict=True)
            ]
            made = found(tables, int(self.rows[0].size), int(self.columns[0].size))
            down = math.prod(self.rows[0].block)
            if down * self.block > 1:
                made = of_blocks(made, [r for r, _ in tables], down, self.block)
            for table in (made[0], made[1], *made[2]):
                table.setflags(write=False)
            self._found = made[0], made[1], tuple(made[2])
        return self._found

    @property
    def indptr(self) -> np.ndarray:
        """Where rows begin."""
        return self._find()[0]  # type: ignore[no-any-return]

    @property
    def indices(self) -> np.ndarray:
        """The columns of all entries."""
        return self._find()[1]  # type: ignore[no-any-return]

    @property
    def slots(self) -> tuple[np.ndarray, ...]:
        """Which entries cells add to."""
        return self._find()[2]  # type: ignore[no-any-return]

    @property
    def nnz(self) -> int:
        """The number of entries that are stored."""
        return int(self.indices.size)

    @property
    def slot(self) -> np.ndarray:
        """The slots of the only set of cells."""
        if len(self.slots) != 1:
            raise ValueError(f"There are {len(self.slots)} sets of cells: say which, `pattern.slots[0]`.")
        return self.slots[0]

    @property
    def nbytes(self) -> int:
        """The memory of all its tables."""
        return int(sum(x.nbytes for x in (self.indptr, self.indices, *self.slots)))

    @overload
    def matrix(self, dtype: DTypeLike = ..., *, array: type[DArray]) -> DividedMatrix: ...  # type: ignore[overload-overlap]
    @overload
    def matrix(self, dtype: DTypeLike = ..., *, array: type[AbstractArray] | None = ...) -> Matrix: ...
    def matrix(
        self, dtype: DTypeLike = np.float64, *, array: type[AbstractArray] | None = None
    ) -> Matrix | DividedMatrix:
        """A matrix of zeros with this pattern, in arrays of a type: over processes, if these are distributed.

        >>> import mirabelle as mb
        >>> from mirabelle import meshdata as md
        >>> md.pattern(md.interval(1).closure("cell", "vertex")).matrix(array=mb.RefArray)
        Matrix(2 x 2, 4 entries, RefArray[float64, 1])
        """
        if not is_divided(array):
            return Matrix(self, zeros(self.nnz, dtype=dtype, device=array))
        comm = communicator()
        if comm not in self._divided:
            from mirabelle.arraytypes.meshdata.dividedpatterns import DividedPattern

            self._divided[comm] = DividedPattern(self.rows, self.columns)
        return self._divided[comm].matrix(dtype, array)

    def on(self, family: type[AbstractArray]) -> tuple[Any, Any]:
        """The columns, and where rows begin, in the memory of an array type's place: sent once."""
        if family not in self._placed:
            self._placed[family] = asarray(self.indices, device=family), asarray(self.indptr, device=family)
        return self._placed[family]

    def diagonal(self, at: np.ndarray) -> np.ndarray:
        """Where in `data` the diagonal entries of some rows are."""
        starts, stops = self.indptr[at].astype(np.int64), self.indptr[at + 1].astype(np.int64)
        entries, owner = ranges(starts, stops)
        hit = self.indices[entries] == at[owner]
        places = np.full(at.size, -1)
        places[owner[hit]] = entries[hit]
        if at.size and int(places.min()) < 0:
            raise ValueError(
                f"Row {at[places < 0][0]} stores no entry on the diagonal: no cell reaches it as row and as "
                "column. Leave it out of the rows that are set."
            )
        return places

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {self.nnz} entries)"


def ranges(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All of several ranges, one after the other, and of which range each is."""
    counts = stops - starts
    owner = np.repeat(np.arange(starts.size), counts)
    return np.arange(owner.size) + (starts - (np.cumsum(counts) - counts))[owner], owner


def pattern(rows: Reach | Sequence[Reach], columns: Reach | Sequence[Reach] | None = None) -> Pattern:
    """The pattern of the matrix that cells add to, of the rows and the columns that each of them reaches.

    `rows` and `columns` (the same, if left out) are `Dofs` of the same points, or maps from them to points that
    have one entry each; lists are several sets of cells, triangles and quadrilaterals, say, that add to one
    matrix.

    Parameters
    ----------
    rows : Dofs, Map, or list of these
        The rows that each point's matrix adds to.
    columns : Dofs, Map, list of these, or None
        The columns; None is the same as the rows.

    Returns
    -------
    mb.meshdata.Pattern
        It has the `shape` and `nnz` of the matrix and its rows (`indptr`, `indices`); `matrix()` makes
        matrices of it.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.pattern(md.unit_square(1).closure("cell", "vertex")).indptr
    array([ 0,  3,  7, 11, 14], dtype=int32)
    """
    down = _reached(rows)
    across = down if columns is None else _reached(columns)
    if not down or len(down) != len(across):
        raise ValueError(
            f"There are {len(down)} tables of rows and {len(across)} of columns; they go in pairs."
        )
    for of in (down, across):
        if any((d.size, tuple(d.block)) != (of[0].size, tuple(of[0].block)) for d in of):
            raise ValueError(
                "Sets of cells that add to one matrix reach entries of the same arrays; these have "
                + " and ".join(f"{d.size} blocks of {tuple(d.block)}" for d in of)
                + "."
            )
    for r, c in zip(down, across, strict=True):
        if len(r.table) != len(c.table):
            raise ValueError(
                f"Rows are given for {len(r.table)} points and columns for {len(c.table)}; they must be the "
                "same points."
            )
    return Pattern(down, across)


class _Reached(NamedTuple):
    """What a map to points of one component says of the entries that cells reach, one for each point."""

    source: Any
    table: np.ndarray
    size: int
    block: tuple[int, ...] = ()
    component: Any = None


def _reached(given: Any) -> tuple[Any, ...]:
    made = []
    for d in given if isinstance(given, (list, tuple)) else (given,):
        if isinstance(d, Map) and len(d.targets) == 1 and not d.ragged:
            [(points, target)] = d.targets.items()
            made.append(_Reached(d.source, np.asarray(target.table), points.size, (), points.component))
        elif all(hasattr(d, name) for name in ("table", "size", "block", "source")):
            made.append(d)
        else:
            meant = " Of a space V these are V.dofs: `md.pattern(V.dofs)`." if hasattr(d, "dofs") else ""
            raise TypeError(
                f"A pattern is made of the Dofs that cells reach, md.pattern(md.dofs(closure, tree)), or of a "
                f"map to as many points of one component for each; not of {d!r}.{meant}"
            )
    return tuple(made)


class Matrix:
    """A sparse matrix of a fixed pattern: `data`, a flat array that loops add to, and what is made of it.

    `A.dofs` are the entries of `data` that each cell reaches: a loop's argument is `INC(A.data, A.dofs)`, and
    its kernel sees the cell's matrix, `K[i, j]` (blocks written out). `A.csr` is a `mb.CSR` of the same memory.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> A = md.pattern(md.interval(1).closure("cell", "vertex")).matrix()
    >>> A.data[...] = [2.0, -1.0, -1.0, 2.0]
    >>> x, info = mb.linalg.cg(A, mb.HostArray([1.0, 1.0]))
    >>> print(x)
    [1. 1.]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("__weakref__", "_dofs", "data", "pattern")

    def __init__(self, pattern: Pattern, data: AbstractArray) -> None:
        if data.shape != (pattern.nnz,):
            raise ValueError(f"The pattern has {pattern.nnz} entries, and these are of shape {data.shape}.")
        self.pattern, self.data = pattern, data
        self._dofs: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> np.dtype:
        found: np.dtype = self.data.dtype
        return found

    @property
    def dofs(self) -> Any:
        """Which entries of `data` each cell reaches; of several sets of cells, a tuple."""
        if self._dofs is None:
            from mirabelle.arraytypes.meshdata.dofs import Dofs

            block = (self.pattern.block,) if self.pattern.block > 1 else ()
            size = self.pattern.nnz // self.pattern.block
            self._dofs = tuple(
                Dofs(
                    r.source,
                    slot.reshape(len(slot), math.prod(slot.shape[1:])),
                    size,
                    block=block,
                    local=(slot.shape[1], slot.shape[2] * self.pattern.block),
                )
                for r, slot in zip(self.pattern.rows, self.pattern.slots, strict=True)
            )
        return self._dofs[0] if len(self._dofs) == 1 else self._dofs

    @property
    def csr(self) -> CSR:
        """The same matrix as an array: what is written to one is seen in the other."""
        made: CSR = CSR._of((self.data, *self.pattern.on(leaf_family(type(self.data)))), self.shape)
        return made

    def zero(self) -> None:
        """Set all entries to zero, to be added to again."""
        verbs.assign(self.data, 0)

    def __matmul__(self, other: ArrayLike) -> AbstractArray:
        rows, columns = (getattr(d[0], "tree", None) for d in (self.pattern.rows, self.pattern.columns))
        if rows is not None and isinstance(other, TreeArray) and other.tree == columns:
            return over(rows, verbs.matmul(self.csr, other.parent))  # (b - A @ u is a function, as b is)
        return verbs.matmul(self.csr, other)

    @property
    def T(self) -> AbstractArray:
        """The transposed matrix, of the same memory."""
        return self.csr.T

    def __rmatmul__(self, other: Any) -> AbstractArray:
        return verbs.matmul(other, self.csr)

    def to_scipy(self) -> Any:
        """SciPy's csr_array over the same memory, for reading: without a copy. (Of a card, see `to_cupy`.)"""
        family = leaf_family(type(self.data))
        if family.home.rank != 1:
            raise PlaceError(
                f"SciPy reads the host's memory, and this matrix is in that of {self.data.place}. Copy it "
                "there: `A.csr.to_scipy()`."
            )
        parts = np.asarray(self.data), self.pattern.indices, self.pattern.indptr
        return routine_of(family, "csr_scipy")(*parts, shape=self.shape)

    def to_cupy(self) -> Any:
        """CuPy's csr_matrix over the same memory, for a matrix on a card: without a copy."""
        family = leaf_family(type(self.data))
        if not issubclass(family, GPUArray):
            raise PlaceError(
                f"CuPy reads a card's memory, and this matrix is in that of {self.data.place}. Make it there: "
                "`pattern.matrix(array=mb.CuArray)`."
            )
        views = [verbs.leaf_of(x).view for x in (self.data, *self.pattern.on(family))]
        return routine_of(family, "csr_of_the_library")(*views, shape=self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"Matrix({rows} x {columns}, {self.pattern.nnz} entries, {type(self.data).__name__})"
