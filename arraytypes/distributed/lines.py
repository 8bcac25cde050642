"""What routines of distributed arrays are written with: parts of views, and work along lines that are not cut.

A routine is a function of `DView`s. Where the axis it works along is not divided, each process runs the
local type's routine on its lines, and the layout stays. Where it is, another dimension is divided first,
if one is long enough; else the lines are taken one by one, each by all processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.execution import Frame, copy_view, operand
from mirabelle.arraytypes.distributed.layouts import (
    Block,
    Layout,
    Partition,
    Ragged,
    divided,
    everywhere,
    partition,
)
from mirabelle.arraytypes.distributed.moving import in_partition, reshaped
from mirabelle.arraytypes.distributed.routines import gathering_routine, together, views_in
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.dispatch import verbs
from mirabelle.dispatch.naming import named, of_types
from mirabelle.dispatch.tree import Leaf


def distributed_routine(name: str) -> Callable[[Any], Any]:
    """Register a routine for distributed arrays: a function of their views.

    It is not asked where each process holds all of the operands: the local type's routine is, then.
    """

    def register(f: Any) -> Any:
        def run(view: Any, *operands: Any, **options: Any) -> Any:
            empty = isinstance(view, DView) and not view.size
            if empty or whole_here((view, *operands, *options.values())):
                return everywhere_alike(name, view, *operands, **options)
            return f(view, *operands, **options)

        run.__name__ = name
        named(f, of_types(name, ["DArray"]))
        library.routine(DArray, name)(run)
        return f

    return register


def whole_here(nest: Iterable[Any]) -> bool:
    """Does each process hold all of the distributed operands?"""
    for x in nest:
        if isinstance(x, DView):
            if x.buffer.comm.size > 1 and not x.buffer.partition.replicated:
                return False
        elif isinstance(x, (list, tuple)) and not whole_here(x):
            return False
    return True


def everywhere_alike(name: str, *operands: Any, **options: Any) -> Any:
    """Run the local type's routine on all of the operands, on each process, and keep the result there."""
    found = views_in((*operands, *options.values()))
    if not found or not whole_here((*operands, *options.values())):
        return fall_back(found[0].family, name)(*operands, **options)
    first = found[0]
    made = library.routine_of(first.family.inner, name)(*together(operands), **together(options))
    return replicated(first, made)


def fall_back(family: Any, name: str) -> Callable[..., Any]:
    """The routine that brings all operands together (and says so, where they are large)."""
    return gathering_routine(family, name)


# Results


def replicated(like: DView, result: Any) -> Any:
    """What each process has worked out for itself, as distributed arrays that all hold."""
    if isinstance(result, (tuple, list)):
        return tuple(replicated(like, r) for r in result)
    local = local_result(like.family.inner, result)
    if local is None:
        return result
    comm = like.buffer.comm
    return like.family._of_local(comm, everywhere(local.shape, (comm.size,)), local)


def local_result(inner: Any, result: Any) -> Any:
    """What a local routine returned, as a view of the local type; None if it is no array."""
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        return None
    if isinstance(result, np.ndarray) and inner.home.rank >= 2:
        return inner._upload(result)
    if isinstance(result, np.ndarray) and result.base is not None:
        return np.array(result)
    return result


def ragged(like: DView, local: Any, d: int = 0, shape: tuple[int, ...] | None = None) -> DView:
    """The distributed array whose parts stand one after the other along a dimension, whatever their lengths."""
    comm = like.buffer.comm
    counts = tuple(comm.allgather_object(int(local.shape[d])))
    shape = tuple(sum(counts) if i == d else n for i, n in enumerate(local.shape))
    return of_parts(like, divided(shape, comm.size, Layout(Ragged(d, counts))), local)


def of_parts(like: DView, part: Partition, local: Any) -> DView:
    return like.family._of_local(like.buffer.comm, part, local)  # type: ignore[no-any-return]


def new(like: DView, shape: tuple[int, ...], dtype: Any, axis: int | None = None) -> Any:
    """A distributed array in new memory over the same processes, divided along `axis` or as new arrays are."""
    comm = like.buffer.comm
    part = divided(shape, comm.size, None if axis is None else Layout(Block(axis)))
    local = like.family.inner._empty(part.local_shape(comm.rank), np.dtype(dtype))
    return wrap(like.family, Leaf(of_parts(like, part, local)))


def in_blocks(view: DView, axis: int = 0) -> DView:
    """Divided in equal runs along an axis."""
    return in_partition(view, divided(view.shape, view.buffer.comm.size, Layout(Block(axis))))


# Parts


def regular(view: DView) -> DView:
    """A view of which each process shows a part: no strides across parts, no terms that wait to be summed."""
    buffer = view.buffer
    if buffer.partition.partial:
        from mirabelle.arraytypes.distributed.combining import resolve

        resolve(buffer)
        view._map = None
        if view.whole:
            view = buffer.whole()
    shown = view.map
    if shown is None or shown.pinned or shown.shape != view.shape:
        return in_partition(view, divided(view.shape, buffer.comm.size))
    return view


def partition_of(view: DView) -> Partition:
    found = view.partition
    assert found is not None
    return found


def part_of(view: DView, part: Partition) -> Any:
    """A local view of this process's part of a view, if it were divided so."""
    local = operand(Frame(view.family, view.buffer.comm, part), view).view
    wanted = part.local_shape(view.buffer.comm.rank)
    if local.shape != wanted:
        local = np.broadcast_to(local, wanted) if isinstance(local, np.ndarray) else local.broadcast_to(wanted)
    return local


def handle(view: DView, local: Any) -> Any:
    """A local view as an array of the local type."""
    return wrap(view.family.inner, Leaf(local))


def view_of(x: Any) -> Any:
    """The view of an array of the local type, or of a distributed one."""
    return verbs.leaf_of(x).view


def packed(x: Any) -> Any:
    """The view of an array in contiguous memory."""
    view = view_of(x)
    return view if view.flags.c_contiguous else view_of(verbs.copy(x))


def turned(view: DView, trans: int) -> DView:
    """A matrix, its transpose (1), or that conjugated (2)."""
    if not trans:
        return view
    turned = view.transpose((1, 0))
    if trans == 2 and view.dtype.kind == "c":
        return view_of(verbs.conj(wrap(view.family, Leaf(turned))))  # type: ignore[no-any-return]
    return turned  # type: ignore[no-any-return]


def uploaded(x: Any, data: np.ndarray) -> Any:
    """A NumPy array where an array of the local type is."""
    family: Any = leaf_family(type(x))
    return wrap(family, Leaf(family._upload(np.ascontiguousarray(data))))


def in_runs(view: DView) -> DView:
    """A whole view of one dimension of which the processes hold neighbouring runs, in their order."""
    (split,) = view.buffer.partition.splits if view.whole and view.ndim == 1 else (None,)
    if split is not None and split.edges is not None and len(view.buffer.partition.mesh) == 1:
        return view
    return in_blocks(view)


def start_of(part: Partition, rank: int, d: int = 0) -> int:
    """The first place along a dimension that a process holds, of a partition in runs."""
    split = part.splits[d]
    if split is None:
        return 0
    assert split.edges is not None
    return split.edges[part.coordinates(rank)[split.mesh_axis]]


def flattened(view: DView) -> DView:
    """All elements in one row."""
    if view.ndim == 1:
        return view
    return reshaped(view, (view.size,))


# Lines


def uncut(view: DView, axes: Sequence[int]) -> Partition | None:
    """A partition in which none of these dimensions is divided: that of the view, or by another one."""
    part = partition_of(view)
    if all(part.splits[d] is None for d in axes):
        return part
    others = [d for d in range(view.ndim) if d not in axes]
    best = max(others, key=lambda d: view.shape[d], default=None)
    size = view.buffer.comm.size
    if best is None or view.shape[best] < size:
        return None
    return divided(view.shape, size, Layout(Block(best)))


def by_lines(view: DView, axes: Sequence[int], run: Callable[[Any], Any], kept: Sequence[int | None]) -> Any:
    """What a local routine makes of the lines along some axes; None where they are cut.

    `kept` says for each dimension of the result which one of the view's it is, or None for another.
    """
    view = regular(view)
    part = uncut(view, axes)
    if part is None:
        return None
    return shaped_like(view, part, run(part_of(view, part)), axes, kept)


def shaped_like(
    view: DView, part: Partition, result: Any, axes: Sequence[int], kept: Sequence[int | None]
) -> Any:
    """Local results as distributed arrays, divided as what they were made from."""
    if isinstance(result, (tuple, list)):
        return tuple(shaped_like(view, part, r, axes, kept) for r in result)
    local = local_result(view.family.inner, result)
    if local is None:
        return result
    shape, splits = [], []
    for n, d in zip(local.shape, kept, strict=True):
        through = d is not None and d not in axes
        shape.append(view.shape[d] if through else n)  # type: ignore[index]
        splits.append(part.splits[d] if through else None)  # type: ignore[index]
    return of_parts(view, partition(tuple(shape), part.mesh, tuple(splits)), local)


def line_by_line(view: DView, axis: int, run: Callable[[DView], DView]) -> DView:
    """What `run` makes of each line along an axis, where there are fewer lines than processes."""
    if view.ndim == 1:
        return run(view)
    out: Any = None
    for at in itertools.product(*(range(1 if d == axis else n) for d, n in enumerate(view.shape))):
        index = tuple(slice(None) if d == axis else i for d, i in enumerate(at))
        found = run(view[index])
        if out is None:
            shape = tuple(found.shape[0] if d == axis else n for d, n in enumerate(view.shape))
            out = view_of(new(view, shape, found.dtype, axis))
        copy_view(out[index], found)
    return out


# Messages


def broadcast(comm: Communicator, inner: Any, local: Any, root: int) -> None:
    """Fill a contiguous local view with that of the same shape on one process."""
    if not local.size or comm.size == 1:
        return
    messages = Messages(comm, inner)
    if comm.rank == root:
        messages.begin({q: local for q in range(comm.size) if q != root}, {})
    else:
        messages.begin({}, {root: local})
    messages.finish()


def all_rows(comm: Communicator, row: np.ndarray) -> np.ndarray:
    """A short array of each process, as the rows of one that all have."""
    rows = [np.empty_like(row) for _ in range(comm.size)]
    rows[comm.rank] = np.ascontiguousarray(row)
    comm.allgather(rows[comm.rank], rows)
    return np.stack(rows)


def gathered_parts(comm: Communicator, inner: Any, local: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The contiguous local views of all processes, on each of them."""
    parts = [local if q == comm.rank else inner._empty(shape, local.dtype) for q, shape in enumerate(shapes)]
    messages = Messages(comm, inner)
    others = [q for q in range(comm.size) if q != comm.rank]
    messages.begin(
        dict.fromkeys(others, local) if local.size else {}, {q: parts[q] for q in others if parts[q].size}
    )
    messages.finish()
    return parts
