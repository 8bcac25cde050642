"""Dirichlet rows: unknowns with known values, in a matrix of one process or of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.creation import asarray, zeros
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix, set_rows
from mirabelle.arraytypes.meshdata.matrices import Matrix, ranges
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike


def dirichlet(
    A: Matrix | DividedMatrix,
    b: AbstractArray | None,
    rows: ArrayLike,
    values: ArrayLike = 0.0,
    *,
    symmetric: bool = True,
) -> None:
    """Set rows of A x = b so that x has given values there: rows of the identity, and the values in `b`.

    `rows` are indices or a mask of the unknowns, `values` one number or one for each. Columns are set to zero
    as well, and `b` corrected for what they held, so that a symmetric matrix stays so; `symmetric=False`
    leaves them. `b` may be None.

    Over processes each gives those of its part, by the positions that they have there: what
    `V.boundary_dofs()` gives.

    Parameters
    ----------
    A : Matrix, DividedMatrix or CSR
        The matrix, which is written to.
    b : array or None
        The right-hand side, which is written to.
    rows : int array or mask
        The unknowns whose values are given.
    values : number or array, default 0.0
        Their values.
    symmetric : bool, default True
        Set columns to zero as well.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> A = md.pattern(md.interval(1).closure("cell", "vertex")).matrix()
    >>> A.data[...], b = [2.0, -1.0, -1.0, 2.0], mb.HostArray([1.0, 1.0])
    >>> md.dirichlet(A, b, [0], 3.0)
    >>> print(A.data, b)
    [1. 0. 0. 2.] [3. 4.]
    """
    b = b.parent if isinstance(b, TreeArray) else b
    if isinstance(A, DividedMatrix):
        _over_processes(A, b, rows, values, symmetric)
        return
    if not isinstance(A, Matrix):
        raise TypeError(
            f"dirichlet takes a matrix first, then the right-hand side, and {type(A).__name__} is no matrix of "
            "ours: `md.dirichlet(A, b, V.boundary_dofs(), 0.0)` with `A = md.pattern(V.dofs).matrix()`."
        )
    at, given = _asked(A.shape, A.shape[0], rows, values)
    if b is not None and b.shape != A.shape[:1]:
        raise ValueError(
            f"The matrix has {A.shape[0]} rows and b shape {b.shape}: a right-hand side is `V.zeros()`."
        )
    places = A.pattern.diagonal(at)
    if b is not None:
        if symmetric and given.any():
            b -= A @ _lifted(A, at, given, b.dtype)
        _put(b, at, given)
    _cleared(A, at, symmetric, places)


def _over_processes(A: DividedMatrix, b: Any, rows: Any, values: Any, symmetric: bool) -> None:
    """The same of a matrix over processes."""

    size = A.pattern.row_entries.forest.size
    at, given = on_all(A.pattern.forest.comm, lambda: _asked(A.shape, size, rows, values))
    set_rows(A, b, at, given.astype(np.result_type(given.dtype, A.dtype)), symmetric)


def _asked(shape: tuple[int, int], n: int, rows: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows as indices among n, and a value for each."""
    if shape[0] != shape[1]:
        raise ValueError(f"Dirichlet rows are set in square matrices; this one has shape {shape}.")
    at = _rows(rows, n)
    given = np.asarray(verbs.to_numpy(values) if hasattr(values, "place") else values)
    if given.shape not in ((), at.shape):
        raise ValueError(
            f"There are {at.size} Dirichlet rows and values of shape {given.shape}: one for each, or one."
        )
    return at, np.broadcast_to(given, at.shape)


def _lifted(A: Matrix, at: np.ndarray, given: np.ndarray, dtype: Any) -> Any:
    """The vector that has the values, and zeros elsewhere."""
    made = zeros(A.shape[0], dtype=dtype, device=leaf_family(type(A.data)))
    _put(made, at, given)
    return made


def _put(x: Any, at: np.ndarray, given: np.ndarray) -> None:
    family = leaf_family(type(x))
    x[asarray(at, device=family)] = asarray(given.astype(x.dtype), device=family)


def _cleared(A: Matrix, at: np.ndarray, symmetric: bool, places: np.ndarray) -> None:
    """Rows (and columns) set to zero, and some entries to one."""
    pattern, family = A.pattern, leaf_family(type(A.data))
    own, _ = ranges(pattern.indptr[at].astype(np.int64), pattern.indptr[at + 1].astype(np.int64))
    if symmetric:
        chosen = np.zeros(A.shape[0], bool)
        chosen[at] = True
        own = np.union1d(own, np.flatnonzero(chosen[pattern.indices]))
    A.data[asarray(own, device=family)] = 0
    A.data[asarray(places, device=family)] = 1


def _rows(rows: Any, n: int) -> np.ndarray:
    at = np.asarray(verbs.to_numpy(rows) if hasattr(rows, "place") else rows)
    if at.dtype == bool:
        if at.shape != (n,):
            raise ValueError(f"A mask of {n} rows has one truth value for each; this one has shape {at.shape}.")
        at = np.flatnonzero(at)
    if at.ndim != 1 or (at.size and at.dtype.kind not in "iu"):
        raise TypeError(f"Dirichlet rows are a list of indices or a mask, not {rows!r}.")
    at = at.astype(np.int64)
    if at.size and (int(at.min()) < 0 or int(at.max()) >= n):
        raise IndexError(f"{at[(at < 0) | (at >= n)][0]} is none of the {n} rows, which are numbered from 0.")
    if np.unique(at).size != at.size:
        raise ValueError("A row is given twice among the Dirichlet rows: it can have but one value.")
    return at
