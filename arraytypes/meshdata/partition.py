"""Which process gets which cells: by METIS, or along Hilbert's curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.meshdata.maps import Table
from mirabelle.arraytypes.meshdata.numbering import cell_midpoints, hilbert_order, neighbouring_cells

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh


def partition(
    mesh: Mesh,
    n: int,
    weights: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    method: str | None = None,
) -> Table | dict[str, Table]:
    """The rank, from 0 to n - 1, of the process that gets each cell.

    `method` is "metis" (few points between parts; `pip install pymetis`) or "hilbert" (pieces of Hilbert's
    curve through the midpoints of cells); the first where it is installed. `weights` say how much work cells
    are.
    Where cells have several shapes, ranks and weights are dictionaries of arrays by component.

    Parameters
    ----------
    mesh : Mesh
        What is divided.
    n : int
        Into how many parts.
    weights : array, mapping or None
        How much work each cell is; None is the same.
    method : {"metis", "hilbert"} or None
        None is the first that is installed.

    Returns
    -------
    numpy.ndarray or dict
        Integers, one for each cell; where cells have several shapes, a dictionary of such arrays by
        component.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.partition(md.interval(6), 2, method="hilbert").tolist()
    [0, 0, 0, 1, 1, 1]
    >>> md.partition(md.interval(6), 2, weights=[5, 1, 1, 1, 1, 1], method="hilbert").tolist()
    [0, 1, 1, 1, 1, 1]
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"A mesh is divided into one or more parts, and not into {n!r}.")
    if method not in (None, "metis", "hilbert"):
        raise ValueError(f'Meshes are divided by the methods "metis" and "hilbert", and not {method!r}.')
    counts = {c: mesh.points(c).size for c in mesh.components(mesh.dim)}
    work = one_array(mesh, np.ones(sum(counts.values())) if weights is None else weights, "weights").astype(
        float
    )
    if not np.isfinite(work).all() or (work < 0).any():
        raise ValueError("The weights of cells are finite numbers that are not negative: the work they are.")
    return by_component(
        mesh, partition_graph(cell_midpoints(mesh), lambda: neighbouring_cells(mesh), n, work, method)
    )


def partition_graph(
    midpoints: npt.ArrayLike,
    neighbours: Callable[[], tuple[Table, Table]],
    n: int,
    weights: npt.ArrayLike | None = None,
    method: str | None = None,
) -> Table:
    """The same of cells that are known by their midpoints (K, d), and by who touches whom.

    `neighbours()` gives the two cells of each inner face, each face once. It is asked by METIS only.

    Parameters
    ----------
    midpoints : array (K, d)
        Where the cells are.
    neighbours : callable
        Gives the two cells of each inner face, as two arrays.
    n : int
        Into how many parts.
    weights : array or None
        How much work each cell is; None is the same.
    method : {"metis", "hilbert"} or None
        None is the first that is installed.

    Returns
    -------
    numpy.ndarray
        The rank, from 0 to n - 1, of each cell: (K,) integers.

    Examples
    --------
    >>> import numpy as np
    >>> from mirabelle import meshdata as md
    >>> middles, pairs = np.arange(4.0)[:, None], (np.arange(3), np.arange(1, 4))
    >>> md.partition_graph(middles, lambda: pairs, 2, method="hilbert").tolist()
    [0, 0, 1, 1]
    """
    points = np.asarray(midpoints)
    work = np.ones(len(points)) if weights is None else np.asarray(weights, float)
    if method is None:
        method = "metis" if find_spec("pymetis") is not None else "hilbert"
    found = _by_metis(neighbours, n, work) if method == "metis" else _along_curve(points, n, work)
    return found.astype(np.int32)


def _along_curve(midpoints: Table, n: int, work: Table) -> Table:
    """Pieces of equal work: a cell belongs to the piece in which the middle of its work lies."""
    order = hilbert_order(midpoints)
    total = max(float(work.sum()), 1e-300)
    middle = np.cumsum(work[order]) - work[order] / 2
    out = np.empty(len(order), dtype=np.int64)
    out[order] = np.minimum((middle / total * n).astype(np.int64), n - 1)
    return out


def _by_metis(neighbours: Callable[[], tuple[Table, Table]], n: int, work: Table) -> Table:
    try:
        pymetis: Any = import_module("pymetis")
    except ImportError:
        raise ImportError(
            "METIS comes with pymetis, which is missing: `pip install pymetis`, or take "
            '`md.partition(mesh, n, method="hilbert")`, which needs nothing.'
        ) from None
    if n == 1 or not len(work):
        return np.zeros(len(work), dtype=np.int64)
    starts, ends = neighbours()
    both = np.concatenate([starts, ends]), np.concatenate([ends, starts])
    order = np.argsort(both[0], kind="stable")
    rowptr = np.concatenate([[0], np.cumsum(np.bincount(both[0], minlength=len(work)))])
    least = work[work > 0].min(initial=np.inf)
    whole = None
    if np.isfinite(least) and np.ptp(work) > 0:  # METIS takes integers: of three digits at least, in 31 bits
        scale = min(100 / least, 2.0**30 / work.sum())
        whole = np.rint(work * scale).astype(np.int32)
    graph = pymetis.CSRAdjacency(rowptr.astype(np.int32), both[1][order].astype(np.int32))
    _, found = pymetis.part_graph(n, graph, vweights=whole)
    return np.asarray(found, dtype=np.int64)


def one_array(mesh: Mesh, given: Any, what: str) -> Table:
    """One array for the cells of all shapes, from one or from a dictionary by component."""
    counts = {c: mesh.points(c).size for c in mesh.components(mesh.dim)}
    if isinstance(given, dict):
        if set(given) != set(counts):
            raise ValueError(f"The {what} of cells are given for {list(given)}, and cells are {list(counts)}.")
        given = np.concatenate([_sized(given[c], n, what) for c, n in counts.items()])
    return _sized(given, sum(counts.values()), what)


def _sized(given: Any, size: int, what: str) -> Table:
    out = np.asarray(given)
    if out.shape != (size,) or out.dtype.kind not in "iufb":
        raise ValueError(
            f"The {what} of {size} cells are one number for each, and these have the shape {out.shape} and the "
            f"dtype {out.dtype}. Where cells have several shapes, they are a dictionary by component."
        )
    return out if size else out.astype(np.int64)


def by_component(mesh: Mesh, given: Table) -> Any:
    """The array of a mesh whose cells have one shape; otherwise a dictionary."""
    names = mesh.components(mesh.dim)
    ends = np.cumsum([mesh.points(c).size for c in names])
    parts = dict(zip(names, np.split(given, ends[:-1]), strict=True))
    return given if len(parts) == 1 else parts
