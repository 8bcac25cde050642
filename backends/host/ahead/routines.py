"""Routines between task lists that are in routines.c, sorts.c, factors.c and decompositions.c."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import CallStep, Ref
from mirabelle.backends.codegen.reduceframe import reduction_sig
from mirabelle.backends.host.ahead.linking import WITH_BLAS
from mirabelle.backends.host.library import scan_ufunc
from mirabelle.backends.host.plans import HostPlan
from mirabelle.backends.host.sorting import ORDERED

# What a routine is: its function of C, its operands, what else it is told, and the ufunc of its loop.
Found = tuple[str, list[Ref], list[int], str]


def routine(tables: Any, plan: HostPlan, step: CallStep, at: int) -> tuple[str, str, int] | None:
    """The step for a call, as `Tables.step` says it; None where it is no routine of ours."""
    call = step.call
    find = _KINDS.get(call.kind if call.kind != "routine" else call.routine)
    args, options = call.template
    several = call.kind == "routine" and call.routine in _OF_SEVERAL
    if find is None or not (several or list(step.dests) == [0]):
        return None
    found = find(step, *_filled(args, step), **_filled(options, step))
    if found is None:
        return None
    name, operands, sizes, ufunc = found
    dest = next(iter(step.dests.values()))
    loop = "NULL"
    if ufunc:
        loop = tables.loop(reduction_sig(ufunc, dest.dtype))
    part = _PARTS.get(name, "routines.c")
    tables.blas |= part in WITH_BLAS
    tables.parts.add(part)
    refs, at = tables.refs(plan, operands, at)
    letter = f"'{(operands[0] if several else dest).dtype.char}'"
    slots = [plan.slots[step.dests[i].number] if i in step.dests else -1 for i in range(len(call.outputs))]
    made = tables.structure(
        "RtRoutine",
        "routine",
        refs,
        len(operands),
        plan.slots[dest.number],
        letter,
        tables.integers(sizes),
        loop,
        tables.integers(slots) if several else "NULL",
    )
    return name, made, at


def _filled(nest: Any, step: CallStep) -> Any:
    if isinstance(nest, Slot):
        return step.operands[nest.number]
    if isinstance(nest, (list, tuple)):
        return type(nest)([_filled(x, step) for x in nest])
    return {k: _filled(x, step) for k, x in nest.items()} if isinstance(nest, dict) else nest


def _within(step: CallStep, index: Ref, axis: int, n: int) -> Found | None:
    if index.dtype.kind not in "iu":
        return None
    return "rt_within", [index], [n, int(index.dtype.kind == "i")], ""


def _scan(step: CallStep, x: Ref, op: Any, axis: int) -> Found | None:
    ufunc = scan_ufunc(op)
    if ufunc is None or step.dests[0].dtype != x.dtype:
        return None
    return "rt_scan", [x], [axis], _operation(ufunc.__name__)


def _scatter(
    step: CallStep, into: Ref, values: Any, *indices: Ref, op: str = "", distinct: bool = False
) -> Found | None:
    if (
        not isinstance(values, Ref)
        or values.dtype != into.dtype
        or any(i.dtype.kind not in "iu" for i in indices)
    ):
        return None
    shape = np.broadcast_shapes(*[i.shape for i in indices])
    return "rt_scatter", [into, values, *indices], [len(shape), *shape], _operation(op) if op else ""


def _sorted(places: bool) -> Callable[..., Found | None]:
    def find(step: CallStep, x: Ref, axis: Any = -1, kind: Any = None) -> Found | None:
        code = ORDERED.get(x.dtype.kind)
        if code is None or x.dtype.itemsize > 8 or x.dtype.char == "e" or axis is None or not x.shape:
            return None
        if places and kind != "stable":
            return None  # (which of equal elements comes first is NumPy's own affair)
        return "rt_sort", [x], [axis % len(x.shape), code, int(places)], ""

    return find


def _solve(step: CallStep, a: Ref, b: Ref, **options: Any) -> Found | None:
    if (
        a.dtype != b.dtype
        or a.dtype.char not in "fdFD"
        or options
        or a.shape[:-2] != b.shape[: len(a.shape) - 2]
    ):
        return None
    if len(b.shape) not in (len(a.shape) - 1, len(a.shape)) or (len(b.shape) == 1) != (
        len(b.shape) < len(a.shape)
    ):
        return None
    right = b.shape[-1] if len(b.shape) == len(a.shape) else 1
    return "rt_solve", [a, b], [math.prod(a.shape[:-2]), a.shape[-1], right], ""


def _of_one(name: str) -> Callable[..., Found | None]:
    def find(step: CallStep, a: Ref, **options: Any) -> Found | None:
        if a.dtype.char not in "fdFD" or any(options.values()) or step.dests[0].dtype != a.dtype:
            return None
        return name, [a], [math.prod(a.shape[:-2]), a.shape[-1], a.shape[-1]], ""

    return find


def _matrices(a: Ref) -> list[int]:
    """How many matrices, of how many rows and columns; nothing where LAPACK does not take them."""
    if a.dtype.char not in "fdFD" or len(a.shape) < 2:
        return []
    return [math.prod(a.shape[:-2]), *a.shape[-2:]]


def _qr(step: CallStep, a: Ref, mode: str = "reduced") -> Found | None:
    sizes = _matrices(a)
    if not sizes or mode not in ("reduced", "complete", "r"):
        return None
    m, n = sizes[1:]
    return "rt_qr", [a], [*sizes, m if mode == "complete" else min(m, n), int(mode == "r")], ""


def _svd(
    step: CallStep, a: Ref, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False
) -> Found | None:
    sizes = _matrices(a)
    if not sizes or hermitian:
        return None
    return "rt_svd", [a], [*sizes, ord("A" if full_matrices else "S") if compute_uv else ord("N")], ""


def _eigh(vectors: bool) -> Callable[..., Found | None]:
    def find(step: CallStep, a: Ref, UPLO: Any = "L") -> Found | None:
        sizes = _matrices(a)
        if not sizes or sizes[1] != sizes[2] or UPLO not in ("L", "U"):
            return None
        return "rt_eigh", [a], [*sizes[:2], int(vectors), ord(UPLO)], ""

    return find


def _lstsq(step: CallStep, a: Ref, b: Ref, rcond: Any = None) -> Found | None:
    sizes = _matrices(a)
    if not sizes or len(a.shape) != 2 or a.dtype != b.dtype or len(b.shape) not in (1, 2) or 1 in step.dests:
        return None  # (how many squares of what remains there are depends on values)
    if isinstance(rcond, (Ref, np.ndarray)):
        return None
    limit = np.finfo(np.float64).eps * max(a.shape) if rcond is None else float(rcond)
    bits = int(np.float64(limit).view(np.int64))
    return "rt_lstsq", [a, b], [*a.shape, b.shape[1] if len(b.shape) == 2 else 1, bits], ""


def _det(apart: bool) -> Callable[..., Found | None]:
    def find(step: CallStep, a: Ref) -> Found | None:
        sizes = _matrices(a)
        return ("rt_det", [a], [*sizes[:2], int(apart)], "") if sizes and sizes[1] == sizes[2] else None

    return find


def _operation(ufunc: str) -> str:
    """The name of our operation that a ufunc computes."""
    return {"bitwise_and": "bitwise_and", "power": "pow"}.get(ufunc, ufunc)


_KINDS: dict[str, Callable[..., Found | None]] = {
    "accumulate": _scan,
    "argsort": _sorted(places=True),
    "linalg.cholesky": _of_one("rt_cholesky"),
    "linalg.det": _det(apart=False),
    "linalg.eigh": _eigh(vectors=True),
    "linalg.eigvalsh": _eigh(vectors=False),
    "linalg.inv": _of_one("rt_inv"),
    "linalg.lstsq": _lstsq,
    "linalg.qr": _qr,
    "linalg.slogdet": _det(apart=True),
    "linalg.svd": _svd,
    "scatter": _scatter,
    "linalg.solve": _solve,
    "sort": _sorted(places=False),
    "within": _within,
}
# Those of several results, or whose results are of another type than what they are given.
_OF_SEVERAL = frozenset(
    f"linalg.{name}" for name in ("det", "eigh", "eigvalsh", "lstsq", "qr", "slogdet", "svd", "svdvals")
)
# Where they are, but for routines.c.
_PARTS = {
    **dict.fromkeys(("rt_cholesky", "rt_inv", "rt_solve"), "factors.c"),
    **dict.fromkeys(("rt_det", "rt_eigh", "rt_lstsq", "rt_qr", "rt_svd"), "decompositions.c"),
    "rt_sort": "sorts.c",
}
