"""Routines between task lists that are in routines.c, sorts.c and factors.c."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import CallStep, Ref
from mirabelle.backends.codegen.reduceframe import reduction_sig
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
    if find is None or list(step.dests) != [0]:
        return None
    found = find(step, *_filled(args, step), **_filled(options, step))
    if found is None:
        return None
    name, operands, sizes, ufunc = found
    dest = step.dests[0]
    loop = "NULL"
    if ufunc:
        loop = tables.loop(reduction_sig(ufunc, dest.dtype))
    if name in ("rt_solve", "rt_inv", "rt_cholesky"):
        tables.blas = True
        tables.parts.add("factors.c")
    elif name == "rt_sort":
        tables.parts.add("sorts.c")
    else:
        tables.parts.add("routines.c")
    refs, at = tables.refs(plan, operands, at)
    letter = f"'{dest.dtype.char}'"
    made = tables.structure(
        "RtRoutine",
        "routine",
        refs,
        len(operands),
        plan.slots[dest.number],
        letter,
        tables.integers(sizes),
        loop,
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


def _operation(ufunc: str) -> str:
    """The name of our operation that a ufunc computes."""
    return {"bitwise_and": "bitwise_and", "power": "pow"}.get(ufunc, ufunc)


_KINDS: dict[str, Callable[..., Found | None]] = {
    "accumulate": _scan,
    "argsort": _sorted(places=True),
    "linalg.cholesky": _of_one("rt_cholesky"),
    "linalg.inv": _of_one("rt_inv"),
    "scatter": _scatter,
    "linalg.solve": _solve,
    "sort": _sorted(places=False),
    "within": _within,
}
