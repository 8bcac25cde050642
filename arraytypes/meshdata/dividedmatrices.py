"""Matrices over processes: rows belong to the processes that own them.

Loops add to entries in rows of others, too; these travel to the owners once, before the first product after
it. A product brings those entries of the vector that a process' rows reach and others own. Vectors are
`DArray`s, so that inner products and solvers are what they are elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray, empty
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.meshdata.dividedpatterns import DividedPattern
from mirabelle.arraytypes.meshdata.divisions import Entries
from mirabelle.arraytypes.meshdata.matrices import ranges
from mirabelle.arraytypes.programs.errors import PartsAsked
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import PlaceError

if TYPE_CHECKING:
    pass


class DividedMatrix:
    """A matrix over processes. `md.pattern(V.dofs).matrix(array=mb.DArray)` makes it, of a divided mesh.

    `data` are its entries, a distributed vector that loops add to; `A.dofs` says which of them each cell
    reaches. All processes add to it, and multiply, together.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> mesh = md.part(md.unit_square(2)).mesh
    >>> V = md.space(mesh, "P", 1)
    >>> A = md.pattern(V.dofs).matrix(array=mb.DArray)
    >>> def ones(K):
    ...     K += 1
    >>> md.loop(mesh.points("cell"), ones, md.INC(A.data, A.dofs))
    >>> print(A @ V.interpolate(1.0, mb.DArray))
    [ 3.  9.  6.  9. 18.  9.  6.  9.  3.]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("__weakref__", "data", "pattern")

    def __init__(self, pattern: DividedPattern, data: AbstractArray) -> None:
        self.pattern = pattern
        self.data = data

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
        return self.pattern.dofs[0] if len(self.pattern.dofs) == 1 else self.pattern.dofs

    @property
    def csr(self) -> CSR:
        """This process' rows, with its own columns first and then those of others: in the same memory.

        `A.pattern.wide` has the numbers of the latter in the whole matrix.
        """
        pattern = self.pattern
        own = pattern.entries.own_part(self.data)
        shape = pattern.row_entries.count, pattern.columns.size
        made: CSR = CSR._of((own, *pattern.on(leaf_family(type(own)))), shape)
        return made

    def to_scipy(self) -> Any:
        """The whole matrix as SciPy's csr_array, a copy on each process: for what fits into one.

        All ask together. Rows and columns are in the order of distributed vectors (`mb.to_numpy(b)`).
        """
        from mirabelle.arraytypes.meshdata.rootrows import in_order, own_rows

        parts = self.pattern.forest.comm.allgather_object(own_rows(self))
        lengths, columns, values = (np.concatenate(x) for x in zip(*parts, strict=True))
        lengths, columns, values = in_order(self, lengths, columns, values)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return routine_of(HostArray, "csr_scipy")(values, columns, starts, shape=self.shape)

    def zero(self) -> None:
        """Set all entries to zero, to be added to again."""
        verbs.assign(self.data, 0)

    def widened(self, v: AbstractArray) -> AbstractArray:
        """Of a distributed vector what this process' rows reach: own entries, then those of others."""
        if isinstance(getattr(v, "parent", v) if hasattr(v, "tree") else v, Traced):
            raise PartsAsked("A product with a matrix over processes sends messages of its own.")
        own = self.pattern.column_entries.own_part(v)
        if self.pattern.columns.size == len(own):
            x = own
        else:
            x = empty(
                (self.pattern.columns.size, *own.shape[1:]), dtype=own.dtype, device=leaf_family(type(own))
            )
            x[: len(own)] = own
        self.pattern.columns.bcast(x)
        return x

    def __matmul__(self, v: AbstractArray) -> AbstractArray:
        return self.pattern.row_entries.of_own(verbs.materialize(self.csr @ self.widened(v)))

    @property
    def T(self) -> Transposed:
        """The transposed matrix, for products: what own rows add to columns of others travels back."""
        return Transposed(self)

    def __rmatmul__(self, v: Any) -> AbstractArray:
        if len(v.shape) != 1:
            raise ValueError(
                f"From the left a matrix over processes takes a vector, not an array of shape {v.shape}: its "
                "rows would be divided. Write `(A.T @ v.T).T`."
            )
        return self.T @ v

    def to_cupy(self) -> Any:
        """Refused: of a matrix over processes no card has the whole."""
        raise PlaceError(
            "This matrix is divided over processes, and CuPy's matrices are in the memory of one card. The "
            "rows of this process are an array, `A.csr`; the whole is on each process' host, `A.to_scipy()`."
        )

    def __repr__(self) -> str:
        (rows, columns), comm = self.shape, self.pattern.forest.comm
        return (
            f"DividedMatrix({rows} x {columns} over {comm.size} processes, "
            f"{self.pattern.row_entries.count} rows with {self.pattern.nnz} entries on rank {comm.rank})"
        )


class Transposed:
    """The transpose of a matrix over processes, which shares its entries. `A.T` makes it.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1)
    >>> V = md.space(mesh, "P", 1)
    >>> A = md.pattern(V.dofs).matrix(array=mb.DArray)
    >>> def upper(K):
    ...     K[0, 1] += 1
    >>> md.loop(mesh.points("cell"), upper, md.INC(A.data, A.dofs))
    >>> print(A @ mb.DArray([1.0, 2.0, 3.0, 4.0]), A.T @ mb.DArray([1.0, 2.0, 3.0, 4.0]))
    [2. 4. 0. 0.] [0. 1. 0. 2.]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("T",)

    def __init__(self, of: DividedMatrix) -> None:
        self.T = of

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.T.shape
        return columns, rows

    @property
    def dtype(self) -> np.dtype:
        return self.T.dtype

    def __matmul__(self, v: Any) -> AbstractArray:
        pattern = self.T.pattern
        if isinstance(getattr(v, "parent", v) if hasattr(v, "tree") else v, Traced):
            raise PartsAsked("A product with a matrix over processes sends messages of its own.")
        own = pattern.row_entries.own_part(v)
        # (Of many vectors each is a row.)
        found = verbs.materialize(verbs.matmul(own if own.ndim == 1 else own.T, self.T.csr))
        found = found if own.ndim == 1 else verbs.copy(found.T)
        pattern.columns.reduce(found)
        return pattern.column_entries.of_own(verbs.copy(found[: pattern.column_entries.count]))

    def __repr__(self) -> str:
        return f"{self.T!r}.T"


def set_rows(A: DividedMatrix, b: Any, at: np.ndarray, given: np.ndarray, symmetric: bool) -> None:
    """Dirichlet rows: of each process those that it owns, whoever gave them, and columns everywhere."""
    pattern, csr = A.pattern, A.csr
    data = verbs.copy(csr.parts[0])
    family, entries = leaf_family(type(data)), pattern.row_entries
    own, values = _given_to_owners(entries, at, given)
    places = diagonal(pattern, own)
    on_all(pattern.forest.comm, lambda: _check_stored(own, places))
    chosen, known = np.zeros(pattern.columns.size, bool), np.zeros(pattern.columns.size, given.dtype)
    chosen[own], known[own] = True, values
    pattern.columns.bcast([chosen, known])
    if b is not None:
        if symmetric:
            b -= entries.of_own(verbs.materialize(csr @ asarray(known.astype(b.dtype), device=family)))
        local = verbs.copy(entries.own_part(b))
        local[asarray(own, device=family)] = asarray(values.astype(b.dtype), device=family)
        verbs.assign(b, entries.of_own(local))
    cleared, _ = ranges(pattern.indptr[own].astype(np.int64), pattern.indptr[own + 1].astype(np.int64))
    if symmetric:
        cleared = np.union1d(cleared, np.flatnonzero(chosen[pattern.indices]))
    data[asarray(cleared, device=family)] = 0
    data[asarray(places, device=family)] = 1
    verbs.assign(A.data, pattern.entries.of_own(data))


def _given_to_owners(entries: Entries, at: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The own rows that any process gave, by their numbers, and their values: of the highest rank that did."""
    forest = entries.forest
    rows = np.full((forest.size, 2), -1, given.dtype)
    rows[at, 0], rows[at, 1] = 1, given
    starts, came = forest.gather(rows)
    said = came[:, 0].real > 0
    rows[np.repeat(np.arange(forest.size), np.diff(starts))[said]] = came[said]
    own = rows[entries.own]
    chosen = np.flatnonzero(own[:, 0].real > 0)
    return chosen, own[chosen, 1]


def _check_stored(own: np.ndarray, places: np.ndarray) -> None:
    if own.size and int(places.min()) < 0:
        raise ValueError(
            f"Row {own[places < 0][0]} of this process' own stores no entry on the diagonal: no cell reaches "
            "it as row and as column. Leave it out of the rows that are set."
        )


def diagonal(pattern: DividedPattern, own: np.ndarray) -> np.ndarray:
    """Where the diagonal entries of some of this process' rows are."""
    entries, owner = ranges(pattern.indptr[own].astype(np.int64), pattern.indptr[own + 1].astype(np.int64))
    hit = pattern.indices[entries] == own[owner]
    places = np.full(own.size, -1)
    places[owner[hit]] = entries[hit]
    return places
