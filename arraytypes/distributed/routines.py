"""Library routines on distributed arrays.

A routine that knows how to work in parts is registered for `DArray` (`@library.routine(DArray, name)`). For
any other, what it reads is brought together on all processes, each runs the local type's routine, and keeps
its part of what comes out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, proxies
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.distributed.darray import DArray, copy_mine
from mirabelle.arraytypes.distributed.execution import brought_together
from mirabelle.arraytypes.distributed.gathering import scatter
from mirabelle.arraytypes.distributed.layouts import divided
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.dispatch.errors import GatheringWarning
from mirabelle.dispatch.settings import settings


@library.routine_of.method
def _(family: type[DArray], name: str) -> Callable[..., Any]:
    return library.registered(family, name) or gathering_routine(family, name)


def gathering_routine(family: Any, name: str) -> Callable[..., Any]:
    """The local type's routine, run by each process on all that it reads."""
    run = library.routine_of(family.inner, name)

    def gathered(*views: Any, **options: Any) -> Any:
        comm = _communicator_of((*views, *options.values()))
        _warn(name, (*views, *options.values()))
        return divided_again(family, comm, run(*together(views), **together(options)))

    return gathered


library.routine(DArray, "scatter")(scatter)

_warned: set[str] = set()


def _warn(name: str, nest: Any) -> None:
    nbytes = sum(v.nbytes for v in views_in(nest) if not v.buffer.partition.replicated)
    if nbytes > settings.gather_bytes and name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"{name} has no way to work on distributed parts: {nbytes / 2**20:.0f} MiB are brought together "
            "on each process. Make the array smaller first, raise mb.settings.gather_bytes, or register a "
            f"routine: `@library.routine(mb.DArray, {name!r})`.",
            GatheringWarning,
            stacklevel=4,
        )


def views_in(nest: Any) -> list[DView]:
    """The distributed views in a nest of lists, tuples and dictionaries."""
    if isinstance(nest, DView):
        return [nest]
    if isinstance(nest, dict):
        nest = list(nest.values())
    if isinstance(nest, (list, tuple)):
        return [v for x in nest for v in views_in(x)]
    return []


def _communicator_of(nest: Any) -> Any:
    found = views_in(nest)
    return found[0].buffer.comm if found else communicator()


def together(x: Any) -> Any:
    """The nest with local views of all that its distributed views show, the same on all processes."""
    if isinstance(x, DView):
        local = brought_together(x)
        if local.shape != x.shape:
            local = (
                np.broadcast_to(local, x.shape)
                if isinstance(local, np.ndarray)
                else local.broadcast_to(x.shape)
            )
        return local
    if isinstance(x, (list, tuple)):
        made = [together(item) for item in x]
        return tuple(made) if isinstance(x, tuple) else made
    return {key: together(item) for key, item in x.items()} if isinstance(x, dict) else x


def divided_again(family: Any, comm: Any, result: Any) -> Any:
    """Local results that all processes have, of which each keeps its part."""
    if isinstance(result, (tuple, list)):
        return tuple(divided_again(family, comm, r) for r in result)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        return result
    inner = family.inner
    if isinstance(result, np.ndarray) and inner.home.rank >= 2:
        result = inner._upload(result)
    part = divided(result.shape, comm.size)
    if part.replicated:
        if isinstance(result, np.ndarray):
            result = np.array(result)  # (memory of its own: routines may give parts of what they read)
        return family._of_local(comm, part, result)
    local = inner._empty(part.local_shape(comm.rank), result.dtype)
    copy_mine(inner, part, comm.rank, result, local)
    return family._of_local(comm, part, local)


@library.routine(DArray, "bounds")
def bounds(view: DView) -> tuple[int, int]:
    """The least and the largest entry of an index array."""
    from mirabelle.arraytypes.dense import wrap
    from mirabelle.arraytypes.library import call
    from mirabelle.dispatch.tree import Leaf

    buffer = view.buffer
    shown = view.map
    if shown is None:
        found = buffer.inner._download(brought_together(view))
        return int(found.min()), int(found.max())
    held = shown.held(buffer.comm.rank)
    mine = None
    if held is not None and all(held):
        boxes = tuple(h[0] if len(h) == 1 else None for h in held)
        local = shown.shows(buffer.local, buffer.comm.rank, boxes) if view.size else None
        if local is not None and local.size:
            mine = call("bounds", wrap(buffer.inner, Leaf(local)))
    if shown.base.replicated:
        assert mine is not None
        return mine  # type: ignore[no-any-return]
    said = [m for m in buffer.comm.allgather_object(mine) if m is not None]
    return min(m[0] for m in said), max(m[1] for m in said)


@library.routine(DArray, "nonzero")
def nonzero(view: DView) -> tuple[Any, ...]:
    """Where elements are not zero: what each process finds in its part, in the order of processes."""
    from mirabelle.arraytypes.dense import wrap
    from mirabelle.arraytypes.distributed.layouts import Layout, Ragged
    from mirabelle.arraytypes.distributed.moving import in_partition
    from mirabelle.arraytypes.library import call
    from mirabelle.dispatch import verbs
    from mirabelle.dispatch.tree import Leaf

    buffer = view.buffer
    comm, inner, family = buffer.comm, buffer.inner, view.family
    part = view.partition
    first = part.splits[0] if part is not None and part.splits else None
    # C's order is that of processes where the first dimension alone is divided, in runs.
    ordered = part is not None and first is not None and first.edges is not None and not any(part.splits[1:])
    if not ordered or len(part.mesh) > 1:  # type: ignore[union-attr]
        if not view.shape or view.shape[0] < comm.size or (part is not None and part.replicated):
            return divided_again(family, comm, library.routine_of(inner, "nonzero")(together(view)))  # type: ignore[no-any-return]
        from mirabelle.arraytypes.distributed.layouts import Block

        part = divided(view.shape, comm.size, Layout(Block(0)))
    else:
        part = divided(view.shape, comm.size, Layout(Ragged(0, first.counts)))  # type: ignore[union-attr]
    whole = in_partition(view, part)
    found = call("nonzero", wrap(inner, Leaf(whole.buffer.local)))
    held = part.held(comm.rank)[0]
    start = held[0][0] if held else 0
    counts = tuple(comm.allgather_object(int(found[0].shape[0])))
    made = divided((sum(counts),), comm.size, Layout(Ragged(0, counts)))
    results = []
    for d, p in enumerate(found):
        p = verbs.add(p, start) if d == 0 and start else p
        results.append(family._of_local(comm, made, verbs.leaf_of(verbs.astype(p, np.int64, copy=False)).view))
    return tuple(results)


def _shared(name: str) -> Callable[..., bool]:
    """Whether views show common elements is seen from their layouts: nothing is brought together."""

    def shared(a: DView, b: DView, max_work: int = -1) -> bool:
        arrays, work = proxies.pair(a, b), {"max_work": max_work} if name == "shares_memory" else {}
        return arrays is not None and bool(getattr(np, name)(*arrays, **work))

    return shared


for _name in ("shares_memory", "may_share_memory"):
    library.routine(DArray, _name)(_shared(_name))
