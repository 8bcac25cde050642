"""The routines of matrices by name: of one matrix by all processes, of a stack whole matrices by each."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from mirabelle.arraytypes.distributed import systems, tall
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.layouts import partition
from mirabelle.arraytypes.distributed.lines import (
    distributed_routine,
    fall_back,
    local_result,
    part_of,
    regular,
    shaped_like,
    uncut,
)
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.library import routine_of


def _stack(name: str, views: Sequence[DView], options: dict[str, Any]) -> Any:
    """Whole matrices of a stack on each process."""
    first = regular(views[0])
    inner = first.family.inner
    axes = (first.ndim - 2, first.ndim - 1)
    part = uncut(first, axes)
    lead = first.shape[:-2]
    if part is None or any(v.ndim != first.ndim or v.shape[:-2] != lead for v in views[1:]):
        return fall_back(first.family, name)(*views, **options)
    local = [
        part_of(v, part if i == 0 else partition(v.shape, part.mesh, (*part.splits[:-2], None, None)))
        for i, v in enumerate(views)
    ]
    run = routine_of(inner, name)
    made = on_all(first.buffer.comm, lambda: run(*local, **options))
    n = len(lead)

    def kept(result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return tuple(kept(r) for r in result)
        result = local_result(inner, result)
        left = [*range(n), *[None] * (result.ndim - n)]
        return shaped_like(first, part, result, axes, left)

    return kept(made)


# What works on panels with routines that the host has from SciPy alone.
_OF_LAPACK = (
    systems.solve, systems.inv, systems.det, systems.slogdet, systems.lu_factor, systems.lu_solve,
    systems.cholesky, systems.solve_triangular,
)  # fmt: skip


@functools.cache
def _has_scipy() -> bool:
    return importlib.util.find_spec("scipy") is not None


def _register(name: str, matrix: Callable[..., Any] | None, operands: int = 1) -> None:
    routine = f"linalg.{name}"

    @distributed_routine(routine)
    def run(*given: Any, **options: Any) -> Any:
        views, more = given[:operands], given[operands:]
        first = next(v for v in views if isinstance(v, DView))
        if more or not all(isinstance(v, DView) and v.size for v in views):
            return fall_back(first.family, routine)(*given, **options)
        if views[0].ndim > 2:
            return _stack(routine, views, options)
        if matrix in _OF_LAPACK and first.family.inner.home.rank < 2 and not _has_scipy():
            return fall_back(first.family, routine)(*given, **options)
        if matrix is None or any(v.ndim > 2 for v in views):
            return fall_back(first.family, routine)(*given, **options)
        return matrix(*views, **options)


_MATRICES: dict[str, tuple[Any, int]] = {
    "solve": (systems.solve, 2), "inv": (systems.inv, 1), "det": (systems.det, 1),
    "slogdet": (systems.slogdet, 1), "lu_factor": (systems.lu_factor, 1), "lu_solve": (systems.lu_solve, 3),
    "cholesky": (systems.cholesky, 1),
    "solve_triangular": (systems.solve_triangular, 2), "qr": (tall.qr, 1), "svd": (tall.svd, 1),
    "lstsq": (tall.lstsq, 2),
    "pinv": (tall.pinv, 1), "matrix_rank": (tall.matrix_rank, 1), "cond": (tall.cond, 1),
}  # fmt: skip
for _name, (_matrix, _operands) in _MATRICES.items():
    _register(_name, _matrix, _operands)
# One matrix of these is brought together.
for _name in ("eig", "eigh", "eigvals", "eigvalsh", "lu", "schur", "hessenberg", "ldl"):
    _register(_name, None)
