"""Sorting distributed arrays, and what follows from sorted ones.

A line that is divided is sorted by samples: each process sorts its part and shows a few of its elements,
from which all find the same splitters; between two of them lies what one process gets. A splitter is an
element at a place, so that equal elements are divided, too, and their order is kept: the sort is stable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.gathering import put_flat
from mirabelle.arraytypes.distributed.layouts import Layout, Ragged, divided
from mirabelle.arraytypes.distributed.lines import (
    all_rows,
    by_lines,
    distributed_routine,
    fall_back,
    flattened,
    handle,
    in_blocks,
    in_runs,
    line_by_line,
    of_parts,
    packed,
    ragged,
    regular,
    start_of,
    uploaded,
    view_of,
)
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.distributed.moving import reshaped
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf

# How many elements of its part each process shows, for each process there is.
SAMPLES = 16

# Sorting one line


def sorted_line(view: DView, places: bool) -> tuple[DView, DView | None]:
    """A line in order, in parts of about equal length; with `places`, also where each element stood.

    Equal elements keep their order.
    """
    line = in_runs(regular(view))
    buffer = line.buffer
    comm, inner = buffer.comm, line.family.inner
    x = handle(line, buffer.local)
    order = None
    if places:
        order = library.call("argsort", x, axis=0, kind="stable")
        x = verbs.getitem(x, order)
        order = verbs.add(verbs.astype(order, np.int64, copy=False), start_of(buffer.partition, comm.rank))
    else:
        x = library.call("sort", x, axis=0)
    if counters.active:
        counters.add(collectives=1)
    kind = "argsort" if places else "sort"
    cuts = _cuts(comm, inner, x, marked(kind, "of", view.dtype, "of shape", view.shape))
    counts = all_rows(comm, np.diff(cuts))
    totals = counts.sum(axis=0)
    made = [_dealt(comm, inner, packed(x), cuts, counts)]
    if order is not None:
        made.append(_dealt(comm, inner, packed(order), cuts, counts))
    part = divided(line.shape, comm.size, Layout(Ragged(0, tuple(map(int, totals)))))
    # What came stands in the order of processes, so that a stable sort keeps the order of equal elements.
    x = handle(line, made[0])
    if not places:
        return of_parts(line, part, packed(library.call("sort", x, axis=0))), None
    order = library.call("argsort", x, axis=0, kind="stable")
    found = [packed(verbs.getitem(handle(line, m), order)) for m in made]
    return of_parts(line, part, found[0]), of_parts(line, part, found[1])


def _cuts(comm: Any, inner: Any, x: Any, mark: int) -> np.ndarray:
    """Where this process' sorted part is cut: what lies between two cuts goes to one process."""
    n, size = x.shape[0], comm.size
    places = (
        np.unique(np.linspace(0, n - 1, min(n, SAMPLES * size)).astype(np.int64))
        if n
        else np.empty(0, np.int64)
    )
    shown = x if not n else verbs.getitem(x, uploaded(x, places))
    mine = inner._download(view_of(shown))
    said = comm.allgather_object((places, np.ascontiguousarray(mine), n), mark)
    ranks = np.concatenate([np.full(len(p), q) for q, (p, _, _) in enumerate(said)])
    where = np.concatenate([p for p, _, _ in said])
    values = np.concatenate([v for _, v, _ in said])
    # How many elements each sample stands for.
    weights = np.concatenate([np.full(len(p), m / max(len(p), 1)) for p, _, m in said])
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    goals = total[-1] * np.arange(1, size) / size
    chosen = order[np.searchsorted(total, goals)]
    cuts = np.zeros(size + 1, np.int64)
    cuts[-1] = n
    if n and size > 1:
        splitters = uploaded(x, values[chosen])
        low = _found(x, splitters, "left")
        high = _found(x, splitters, "right")
        # Of equal elements, those of earlier processes come before the splitter, those of later ones after it.
        cuts[1:-1] = np.where(
            ranks[chosen] == comm.rank, where[chosen], np.where(ranks[chosen] > comm.rank, high, low)
        )
        np.maximum.accumulate(cuts, out=cuts)
    return cuts


def _found(x: Any, values: Any, side: str) -> np.ndarray:
    return np.asarray(verbs.fetch(library.call("searchsorted", x, values, side=side)))


def _dealt(comm: Any, inner: Any, local: Any, cuts: np.ndarray, counts: np.ndarray) -> Any:
    """What all processes cut off for this one, in their order."""
    rank = comm.rank
    edges = np.concatenate([[0], np.cumsum(counts[:, rank])])
    landed = inner._empty((int(edges[-1]),), local.dtype)
    sends = {
        q: local[int(cuts[q]) : int(cuts[q + 1])]
        for q in range(comm.size)
        if q != rank and cuts[q + 1] > cuts[q]
    }
    receives = {
        q: landed[int(edges[q]) : int(edges[q + 1])] for q in range(comm.size) if q != rank and counts[q, rank]
    }
    messages = Messages(comm, inner)
    messages.begin(sends, receives)
    if counts[rank, rank]:
        own = landed[int(edges[rank]) : int(edges[rank + 1])]
        inner._copy_into(own, local[int(cuts[rank]) : int(cuts[rank + 1])])
    messages.finish()
    return landed


# The routines


def _along(name: str, line: Callable[[DView], DView], kth: bool = False) -> None:
    """Register a routine along one axis: `line` is what it does to a line that is divided.

    `kth`: its operand says around which places a line is parted.
    """

    @distributed_routine(name)
    def run(view: DView, *operands: Any, axis: Any = -1, **options: Any) -> Any:
        if axis is None:
            view, axis = flattened(regular(view)), 0
        axis %= view.ndim
        if kth:
            _check_places(operands[0], view.shape[axis])
        local = library.routine_of(view.family.inner, name)
        found = by_lines(view, (axis,), lambda x: local(x, *operands, axis=axis, **options), range(view.ndim))
        return line_by_line(regular(view), axis, line) if found is None else found


def _check_places(kth: Any, n: int) -> None:
    """NumPy's refusal of places that a line does not have."""
    for k in np.atleast_1d(np.asarray(kth)).reshape(-1).tolist():
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


def _sorted(view: DView) -> DView:
    return in_blocks(sorted_line(view, places=False)[0])


def _order(view: DView) -> DView:
    places = sorted_line(view, places=True)[1]
    assert places is not None
    return in_blocks(places)


_along("sort", _sorted)
_along("argsort", _order)
# (A sorted line is partitioned wherever one wants it to be.)
_along("partition", _sorted, kth=True)
_along("argpartition", _order, kth=True)


@distributed_routine("lexsort")
def lexsort(keys: Any, axis: int = -1) -> Any:
    """By one key after the other: sorts that keep the order of equal elements."""
    rows = [keys[i] for i in range(keys.shape[0])] if isinstance(keys, DView) else list(keys)
    first = rows[0]
    if first.ndim != 1 or any(r.shape != first.shape for r in rows):
        return fall_back(first.family, "lexsort")(keys, axis=axis)
    order: Any = None
    for row in rows:
        key = wrap(first.family, Leaf(row))
        if order is None:
            order = library.call("argsort", key, axis=0, kind="stable")
        else:
            order = verbs.getitem(
                order, library.call("argsort", verbs.getitem(key, order), axis=0, kind="stable")
            )
    return view_of(order)


# Distinct elements


@distributed_routine("unique")
def unique(
    view: DView, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, equal_nan: bool = True,
) -> Any:  # fmt: skip
    """Each process finds where runs of equal elements begin in its part of the sorted line."""
    if axis is not None:
        wanted = {
            "return_index": return_index,
            "return_inverse": return_inverse,
            "return_counts": return_counts,
        }
        return fall_back(view.family, "unique")(view, axis=axis, equal_nan=equal_nan, **wanted)
    shape = view.shape
    ordered, places = sorted_line(flattened(regular(view)), places=return_index or return_inverse)
    comm, inner = ordered.buffer.comm, ordered.family.inner
    x = handle(ordered, ordered.buffer.local)
    n = x.shape[0]
    last = inner._download(ordered.buffer.local[n - 1 : n])[0] if n else None
    before = next(
        (
            v
            for v in reversed(
                comm.allgather_object(last, marked("unique of", x.dtype, "of shape", shape))[: comm.rank]
            )
            if v is not None
        ),
        None,
    )
    begins = verbs.similar(x, dtype=np.dtype(bool), shape=(n,))
    if n:
        first = inner._download(ordered.buffer.local[:1])[0]
        same = before is not None and bool(
            first == before or (equal_nan and first != first and before != before)
        )
        verbs.setitem(begins, slice(0, 1), not same)
        if n > 1:
            left, right = verbs.getitem(x, slice(None, -1)), verbs.getitem(x, slice(1, None))
            differs = verbs.not_equal(left, right)
            if equal_nan and x.dtype.kind in "fcmM":
                differs = verbs.logical_and(
                    differs, verbs.logical_or(verbs.equal(left, left), verbs.equal(right, right))
                )
            verbs.setitem(begins, slice(1, None), differs)
    at = library.call("nonzero", begins)[0]
    results = [ragged(ordered, packed(verbs.getitem(x, at)))]
    made = results[0].buffer.partition
    if return_index:
        assert places is not None
        results.append(of_parts(ordered, made, packed(verbs.getitem(handle(ordered, places.buffer.local), at))))
    if return_inverse:
        assert places is not None
        number = verbs.subtract(
            library.scan(inner, verbs.astype(begins, np.int64), None, 0), 1 - start_of(made, comm.rank)
        )
        results.append(_put_back(ordered, places, view_of(number), shape))
    if return_counts:
        results.append(of_parts(ordered, made, _lengths(ordered, at)))
    return results[0] if len(results) == 1 else tuple(results)


def _lengths(ordered: DView, at: Any) -> Any:
    """How long the runs are that begin at these places of this process' part: the last may go on after it."""
    comm, inner = ordered.buffer.comm, ordered.family.inner
    begins = np.asarray(verbs.fetch(at)).astype(np.int64) + start_of(ordered.buffer.partition, comm.rank)
    mark = marked("runs of", ordered.dtype, "of shape", ordered.shape)
    said = comm.allgather_object(int(begins[0]) if len(begins) else None, mark)
    end = next((p for p in said[comm.rank + 1 :] if p is not None), ordered.shape[0])
    return inner._upload(np.diff(begins, append=end))


def _put_back(ordered: DView, places: DView, values: Any, shape: tuple[int, ...]) -> DView:
    """Values of sorted elements, where each element stood."""
    comm, inner = ordered.buffer.comm, ordered.family.inner
    part = divided(ordered.shape, comm.size)
    out = of_parts(ordered, part, inner._empty(part.local_shape(comm.rank), values.dtype))
    put_flat(out.buffer, np.ascontiguousarray(inner._download(places.buffer.local)), values, "")
    return out if len(shape) == 1 else reshaped(out, shape)


__all__ = ["lexsort", "sorted_line", "unique"]
