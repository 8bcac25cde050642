"""Routines that look elements up: each process its elements, in tables that are the same for all.

Of two operands the smaller one is brought together, and the larger stays where it is. Routines that take
each element by itself are here, too.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.combining import combined, grouped
from mirabelle.arraytypes.distributed.gathering import sole
from mirabelle.arraytypes.distributed.lines import (
    distributed_routine,
    local_result,
    of_parts,
    part_of,
    partition_of,
    regular,
    replicated,
)
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.distributed.routines import together
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.reductions import REDUCTIONS


def elementwise(view: DView, run: Any) -> Any:
    """What a routine makes of each process' part, divided as the view is. What fails on one fails on all."""
    view = regular(view)
    part = partition_of(view)
    local = part_of(view, part)
    made = on_all(view.buffer.comm, lambda: run(local))
    if isinstance(made, (tuple, list)):
        return tuple(of_parts(view, part, local_result(view.family.inner, m)) for m in made)
    return of_parts(view, part, local_result(view.family.inner, made))


def smaller(a: Any, b: Any) -> bool:
    """Is less brought together if it is the first?"""
    return not isinstance(a, DView) or (isinstance(b, DView) and a.nbytes < b.nbytes)


def counted_parts(view: DView) -> tuple[Any, bool]:
    """This process' part of a view, and whether it is the one that speaks for those that hold the same."""
    view = regular(view)
    part = partition_of(view)
    return part_of(view, part), sole(part, view.buffer.comm.rank)


def summed(view: DView, local: Any, op: str = "sum") -> Any:
    """The local arrays of all processes combined, on each of them."""
    comm = view.buffer.comm
    group = grouped(comm, tuple(range(comm.size)))
    return combined(group, view.family.inner, local, REDUCTIONS[op], marked("search:", op, "of", view.shape))


@distributed_routine("around")
def around(view: DView, decimals: int = 0) -> Any:
    run = routine_of(view.family.inner, "around")
    return elementwise(view, lambda x: run(x, decimals))


@distributed_routine("i0")
def i0(view: DView) -> Any:
    return elementwise(view, routine_of(view.family.inner, "i0"))


@distributed_routine("digitize")
def digitize(view: DView, bins: Any, right: bool = False) -> Any:
    run, edges = routine_of(view.family.inner, "digitize"), together(bins)
    return elementwise(view, lambda x: run(x, edges, right=right))


@distributed_routine("interp")
def interp(view: DView, xp: Any, fp: Any, **options: Any) -> Any:
    run, table = routine_of(view.family.inner, "interp"), together((xp, fp))
    return elementwise(view, lambda x: run(x, *table, **options))


@distributed_routine("searchsorted")
def searchsorted(ordered: Any, values: Any, side: str = "left") -> Any:
    """In a large table, each process counts the elements of its part that come before each value."""
    if smaller(ordered, values):
        run, table = routine_of(values.family.inner, "searchsorted"), together(ordered)
        return elementwise(values, lambda x: run(table, x, side=side))
    run, wanted = routine_of(ordered.family.inner, "searchsorted"), together(values)
    mine, speaks = counted_parts(ordered)
    if not speaks:
        mine = mine[:0]
    places = local_result(ordered.family.inner, run(mine, wanted, side=side))
    return replicated(ordered, summed(ordered, places))


@distributed_routine("isin")
def isin(elements: Any, table: Any, invert: bool = False) -> Any:
    """In a large table, each process looks for all elements in its part."""
    if not smaller(elements, table):
        run, known = routine_of(elements.family.inner, "isin"), together(table)
        return elementwise(elements, lambda x: run(x, known, invert=invert))
    run, wanted = routine_of(table.family.inner, "isin"), together(elements)
    mine, _ = counted_parts(table)
    found = local_result(table.family.inner, run(wanted, mine, invert=invert))
    return replicated(table, summed(table, found, "all" if invert else "any"))
