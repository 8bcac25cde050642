"""Systems of equations with distributed square matrices: LU with LAPACK's pivots, Cholesky, triangles.

The panels of columns are factored one after the other where they lie, and sent to all processes, each of
which exchanges rows of and updates the columns it has. Right-hand sides are divided by columns, too, and
go along.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.distributed.layouts import BlockCyclic, Layout, Partition, divided
from mirabelle.arraytypes.distributed.lines import (
    fall_back,
    handle,
    in_blocks,
    of_parts,
    packed,
    replicated,
    turned,
    uploaded,
)
from mirabelle.arraytypes.distributed.moving import in_partition
from mirabelle.arraytypes.distributed.panels import Columns, diagonal
from mirabelle.arraytypes.distributed.routines import together
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.dispatch import verbs


def _minus_product(target: Any, index: tuple[slice, slice], a: Any, b: Any) -> None:
    """target[index] -= a @ b, where there is anything."""
    part = verbs.getitem(target, index)
    if part.size and a.shape[1]:
        verbs.setitem(target, index, verbs.subtract(part, verbs.matmul(a, b)))


def _solved(a: Any, b: Any, lower: bool, unit: bool = False, trans: int = 0) -> Any:
    return library.call("linalg.solve_triangular", a, b, lower=lower, trans=trans, unit_diagonal=unit)


def _reordered(x: Any, order: np.ndarray, low: int) -> None:
    """Rows `low` and on of local columns in another order."""
    moved = np.flatnonzero(order != np.arange(len(order)))
    if len(moved) and x.shape[1]:
        found = verbs.copy(verbs.getitem(x, uploaded(x, order[moved] + low)))
        verbs.setitem(x, uploaded(x, moved + low), verbs.materialize(found))


def order_of(pivots: np.ndarray, n: int) -> np.ndarray:
    """The order of n rows that a list of swaps comes to."""
    order = np.arange(n)
    for i, p in enumerate(pivots):
        order[i], order[p] = order[p], order[i]
    return order


# General square matrices


def lu(view: DView, right: Any = None) -> tuple[Columns, np.ndarray]:
    """The factors P A = L U in one matrix, and LAPACK's pivots; local columns `right` become L^-1 P right."""
    a = Columns(view)
    n = a.rows
    pivots = np.empty(n, np.int64)

    def factored(block: Any) -> tuple[Any, np.ndarray]:
        factors, swaps = library.call("linalg.lu_factor", block)
        return factors, np.asarray(verbs.fetch(swaps))

    for panel in a.panels:
        low, high = a.edges(panel)
        block, found = a.shared(panel, low, n, factored)
        swaps = found[: high - low]
        pivots[low:high] = swaps + low
        order = order_of(swaps, n - low)
        if a.comm.rank == a.owner(panel):
            kept = a.mine(panel)
            before, after = slice(0, kept.start), slice(kept.stop, None)
            sides = [verbs.getitem(a.local, (slice(None), s)) for s in (before, after)]
        else:
            sides = [a.local]
        start = a.first_after(panel)
        for side in (*sides, *(() if right is None else (right,))):
            _reordered(side, order, low)
        top = verbs.getitem(block, slice(0, high - low))
        below = verbs.getitem(block, slice(high - low, None))
        for x, columns in ((a.local, slice(start, None)), *(() if right is None else ((right, slice(None)),))):
            rows = verbs.getitem(x, (slice(low, high), columns))
            if rows.size:
                solved = _solved(top, rows, lower=True, unit=True)
                verbs.setitem(x, (slice(low, high), columns), solved)
                _minus_product(x, (slice(high, None), columns), below, solved)
    return a, pivots


def swept(a: Columns, right: Any, lower: bool, unit: bool) -> None:
    """Replace local columns by the solutions with a triangular matrix: panel by panel."""
    n = a.rows
    for panel in a.panels if lower else reversed(a.panels):
        low, high = a.edges(panel)
        block, _ = a.shared(panel, low if lower else 0, n if lower else high)
        at = 0 if lower else low
        rows = verbs.getitem(right, slice(low, high))
        if not rows.size:
            continue
        found = verbs.materialize(_solved(verbs.getitem(block, slice(at, at + high - low)), rows, lower, unit))
        verbs.setitem(right, slice(low, high), found)
        rest = (slice(high, None) if lower else slice(0, low), slice(None))
        part = verbs.getitem(block, slice(high - low, None) if lower else slice(0, low))
        _minus_product(right, rest, part, found)


def _right_sides(b: DView) -> tuple[DView, Any]:
    """Right-hand sides in columns, of which each process has some, and an array of its own to write to."""
    columns = b if b.ndim == 2 else b[:, None]
    made = in_blocks(columns, 1)
    return made, verbs.materialize(verbs.copy(handle(made, made.buffer.local)))


def _solution(b: DView, made: DView, right: Any) -> DView:
    """The solutions in columns, as the right-hand sides were: a vector, or divided along rows."""
    made = of_parts(b, made.buffer.partition, packed(right))
    return in_blocks(made if b.ndim == 2 else made[:, 0])


def _check_regular(a: Columns) -> None:
    if not diagonal(a).all():
        raise np.linalg.LinAlgError("Singular matrix")


def solve(a: DView, b: DView) -> Any:
    made, right = _right_sides(b)
    factors, _ = lu(a, right)
    _check_regular(factors)
    swept(factors, right, lower=False, unit=False)
    return _solution(b, made, right)


def inv(a: DView) -> Any:
    n = a.shape[0]
    part = divided((n, n), a.buffer.comm.size, Layout(BlockCyclic(1, max(1, -(-n // a.buffer.comm.size)))))
    held = part.held(a.buffer.comm.rank)[1]
    columns = np.arange(*held[0]) if held else np.empty(0, np.int64)
    identity = (np.arange(n)[:, None] == columns).astype(a.dtype)
    return solve(a, of_parts(a, part, a.family.inner._upload(identity)))


def slogdet(a: DView) -> Any:
    sign, log = _sign_and_log(a)
    inner = a.family.inner
    return replicated(a, inner._upload(np.asarray(sign))), replicated(a, inner._upload(np.asarray(log)))


def _sign_and_log(a: DView) -> tuple[Any, Any]:
    factors, pivots = lu(a)
    d = diagonal(factors)
    swaps = np.count_nonzero(pivots != np.arange(len(pivots)))
    real = d.real.dtype.type
    if not d.all():
        return d.dtype.type(0), real(-np.inf)
    sizes = np.abs(d)
    return np.prod(d / sizes).astype(d.dtype) * real(-1 if swaps % 2 else 1), np.sum(np.log(sizes))


def det(a: DView) -> Any:
    factors, pivots = lu(a)
    swaps = np.count_nonzero(pivots != np.arange(len(pivots)))
    d = diagonal(factors)
    return replicated(a, a.family.inner._upload(np.asarray(np.prod(d) * d.dtype.type(-1 if swaps % 2 else 1))))


def lu_factor(a: DView) -> Any:
    if a.shape[0] != a.shape[1]:
        return fall_back(a.family, "linalg.lu_factor")(a)
    factors, pivots = lu(a)
    return factors.made, replicated(a, a.family.inner._upload(pivots.astype(np.int32)))


def lu_solve(factors: DView, pivots: Any, b: DView, trans: int = 0) -> Any:
    """Two triangular systems, of which the transposed one begins at the other end."""
    made, right = _right_sides(b)
    inner = factors.family.inner
    order = order_of(np.asarray(inner._download(together(pivots))), factors.shape[0])
    a = Columns(turned(factors, trans))
    _check_regular(a)
    if not trans:
        _reordered(right, order, 0)
        swept(a, right, lower=True, unit=True)
        swept(a, right, lower=False, unit=False)
    else:
        swept(a, right, lower=True, unit=False)
        swept(a, right, lower=False, unit=True)
        _reordered(right, np.argsort(order), 0)
    return _solution(b, made, right)


def solve_triangular(
    a: DView, b: DView, lower: bool = False, trans: int = 0, unit_diagonal: bool = False
) -> Any:
    made, right = _right_sides(b)
    columns = Columns(turned(a, trans))
    if not unit_diagonal:
        _check_regular(columns)
    swept(columns, right, lower=lower != bool(trans), unit=unit_diagonal)
    return _solution(b, made, right)


# Positive definite matrices


def cholesky(view: DView, upper: bool = False) -> Any:
    """Panel by panel; each process updates its columns below the diagonal."""
    a = Columns(turned(view, 2) if upper else view)
    n = a.rows

    def factored(block: Any) -> tuple[Any, Any]:
        k = block.shape[1]
        top = library.call("linalg.cholesky", verbs.copy(verbs.getitem(block, slice(0, k))), upper=False)
        verbs.setitem(block, slice(0, k), top)
        below = verbs.getitem(block, slice(k, None))
        if below.size:  # X with X L^H = below, read from the other side
            found = _solved(top, verbs.conj(below.mT), lower=True)
            verbs.setitem(block, slice(k, None), verbs.conj(verbs.materialize(found).mT))
        return block, ()

    for panel in a.panels:
        low = a.edges(panel)[0]
        block, _ = a.shared(panel, low, n, factored)
        for later in range(panel + 1, a.panels.stop):
            if a.owner(later) == a.comm.rank:
                first, last = a.edges(later)
                across = verbs.conj(verbs.getitem(block, slice(first - low, last - low)).mT)
                _minus_product(
                    a.local,
                    (slice(first, None), a.mine(later)),
                    verbs.getitem(block, slice(first - low, None)),
                    across,
                )
    made = library.routine_of(view.family, "tril")(a.made)
    return in_partition(turned(made, 2) if upper else made, _home(view))


def _home(view: DView) -> Partition:
    """How a result like a matrix is divided: as that is."""
    part = view.partition
    return divided(view.shape, view.buffer.comm.size) if part is None or part.replicated else part
