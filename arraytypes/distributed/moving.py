"""Moving parts between processes: redistribution, halos, cyclic shifts, arrays from local parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import nobody_else
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view, evaluated_whole
from mirabelle.arraytypes.distributed.histories import told
from mirabelle.arraytypes.distributed.layouts import (
    Block,
    Layout,
    Partial,
    Partition,
    Pieces,
    Ragged,
    Split,
    divided,
    everywhere,
    partition,
    runs,
)
from mirabelle.arraytypes.distributed.localmessages import check_local
from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.arraytypes.distributed.transfers import Messages, Transfer
from mirabelle.arraytypes.distributed.views import DView, family_over, flat_edges
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.random.bitgenerator import compiling
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.errors import CommunicationError, LayoutError
from mirabelle.dispatch.generic import _of_its_own
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import FOREIGN, Broadcasted, Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.layouts import Placement


def redistribute(x: AbstractArray, layout: Layout | Placement) -> AbstractArray:
    """The same array in another layout, when it is needed: what is said of it in between costs no messages.

    Parameters
    ----------
    x : array
        A distributed array.
    layout : Layout or placement
        The new layout.

    Returns
    -------
    array
        A distributed array of the shape and dtype of `x`, and of its own memory: what is written to one
        does not show in the other.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.DArray[mb.HostArray]([[1, 2], [3, 4]])
    >>> y = mb.distributed.redistribute(x, mb.distributed.Block(1))
    >>> print(mb.to_numpy(mb.distributed.redistribute(y * 2, mb.distributed.Block(0))))
    [[2 4]
     [6 8]]
    """
    layout = Layout.of(layout)
    if any(isinstance(p, Partial) for p in layout.placements):
        raise LayoutError(
            "An array is not taken apart into terms: mb.distributed.Partial is for `mb.DArray.from_local(term, "
            "mb.distributed.Partial('sum'))`."
        )
    if not isinstance(x, AbstractArray) or not issubclass(leaf_family(type(x)), DArray):
        raise TypeError(
            f"redistribute takes a distributed array, not a {type(x).__name__}. Make one: "
            "`mb.DArray[mb.HostArray](x, layout=mb.distributed.Block(0))`."
        )
    family = leaf_family(type(x))
    version = verbs.capture(x)
    comm = _communicator_of(x)
    divided(version.shape, comm.size, layout)  # (what does not fit is an error here)
    sig = promotion.signature(TABLE["copy"], (x.dtype,))
    node = Broadcasted(sig, (version,), version.shape)
    node.layout = layout
    return wrap(family, node)


def _communicator_of(x: Any) -> Communicator:
    stack = [verbs.tree(root_of(x))]
    while stack:
        v = stack.pop()
        if isinstance(v, Leaf):
            return v.view.buffer.comm  # type: ignore[no-any-return]
        inner = [v.value] if getattr(v, "value", None) is not None else [*(getattr(v, "args", None) or ())]
        stack += [a for a in inner if a is not None]
        if getattr(v, "operand", None) is not None:
            stack.append(v.operand)
    return communicator()


# Windows: what each process wants of an array, which may reach beyond its ends


Range = tuple[int, int]


def window(view: DView, wanted: Callable[[int], list[Range] | None]) -> Any:
    """A local view of the places each process wants; beyond an end come those of the other.

    `wanted(q)` says for process q a range along each dimension.
    """
    view = _regular(view)
    shown = view.map
    assert shown is not None
    comm, inner = view.buffer.comm, view.buffer.inner
    cut = [_cut(wanted(q), view.shape) for q in range(comm.size)]
    mine = wanted(comm.rank)
    shape = tuple(b - a for a, b in mine) if mine is not None else (0,) * len(view.shape)
    out = inner._empty(shape, view.dtype)
    rounds = [max((len(c[d]) for c in cut if c), default=0) for d in range(len(view.shape))]
    started: list[Messages] = []
    for which in itertools.product(*map(range, rounds)):
        needs: list[tuple[Pieces, ...] | None] = []
        for c in cut:
            if c is None or any(w >= len(c[d]) for d, w in enumerate(which)):
                needs.append(None)
            else:
                needs.append(tuple((c[d][w][0],) for d, w in enumerate(which)))
        part = None
        mine_cut = cut[comm.rank]
        if needs[comm.rank] is not None and mine_cut is not None:
            part = out[(*[slice(*mine_cut[d][w][1]) for d, w in enumerate(which)], Ellipsis)]
        started.append(Transfer(shown, needs, comm.rank).start(view, part, view.dtype))
    for messages in started:
        messages.out = out
        messages.finish()
    return out


def _regular(view: DView) -> DView:
    shown = view.map
    return view if shown is not None and shown.shape == view.shape else evaluated_whole(view)


def _cut(ranges: list[Range] | None, shape: tuple[int, ...]) -> Any:
    """Ranges that may reach beyond the ends, cut where they wrap: places of the array, and where they go."""
    if ranges is None or any(a >= b for a, b in ranges):
        return None
    found = []
    for (a, b), n in zip(ranges, shape, strict=True):
        pieces = []
        at = a
        while at < b:
            place = at % n
            length = min(b - at, n - place)
            pieces.append(((place, place + length), (at - a, at - a + length)))
            at += length
        found.append(pieces)
    return found


def halo(x: Any, width: Any, wrapped: bool) -> Any:
    """See DArray.halo."""
    view = evaluated_view(x)
    widths = (width,) * x.ndim if isinstance(width, int) else tuple(int(w) for w in width)
    if len(widths) != x.ndim or any(w < 0 for w in widths):
        raise ValueError(
            f"A halo has a width for each dimension, none negative: {width!r} for shape {x.shape}. "
            "One number is for all of them: `x.halo(1)`."
        )
    part: Partition = view.buffer.partition

    def wanted(q: int) -> list[Range] | None:
        found = []
        for held, n, w in zip(part.held(q), x.shape, widths, strict=True):
            if len(held) > 1:
                raise LayoutError(
                    f"A halo is around one run of places, and parts are dealt out here: {part.layout!r}. "
                    "Write `mb.distributed.redistribute(x, mb.distributed.Block(0))` first."
                )
            if not held:
                return None
            (a, b) = held[0]
            found.append((a - w, b + w) if wrapped else (max(a - w, 0), min(b + w, n)))
        return found

    return wrap(view.buffer.inner, Leaf(window(view, wanted)))


def rolled(view: DView, shifts: list[int]) -> DView:
    """The elements of a view shifted along each dimension; those pushed out at an end come in at the other."""
    view = _regular(view)
    shown = view.map
    if view.partition is None or shown is None or _dealt_out(view.partition):
        view = evaluated_whole(_blocked(view))
    part = view.partition
    assert part is not None

    def wanted(q: int) -> list[Range] | None:
        held = part.held(q)
        if any(not h for h in held):
            return None
        return [(h[0][0] - s, h[0][1] - s) for h, s in zip(held, shifts, strict=True)]

    local = window(view, wanted)
    if local.shape != part.local_shape(view.buffer.comm.rank):
        local = view.buffer.inner._empty(part.local_shape(view.buffer.comm.rank), view.dtype)
    return view.family._of_local(view.buffer.comm, part, local)  # type: ignore[no-any-return]


def _dealt_out(part: Partition) -> bool:
    return any(len(held) > 1 for q in range(part.size) for held in part.held(q))


def _blocked(view: DView) -> DView:
    """The contents of a view in equal blocks."""
    return in_partition(view, divided(view.shape, view.buffer.comm.size))


def in_partition(view: DView, part: Partition) -> DView:
    """A whole view of new memory with the contents of a view, in a partition of its shape."""
    from mirabelle.arraytypes.distributed.execution import Frame, operand

    if view.whole and view.buffer.partition is part:
        return view
    comm = view.buffer.comm
    frame = Frame(view.family, comm, part)
    local = operand(frame, view).view
    if local.shape != frame.local_shape or _shares(local, view):
        fresh = frame.inner._empty(frame.local_shape, view.dtype)
        if fresh.size:
            stretched = local
            if local.shape != fresh.shape:
                stretched = (
                    np.broadcast_to(local, fresh.shape)
                    if isinstance(local, np.ndarray)
                    else local.broadcast_to(fresh.shape)
                )
            frame.inner._copy_into(fresh, stretched)
        local = fresh
    made = view.family._of_local(comm, part, local)
    made.buffer.history = view.history
    return made  # type: ignore[no-any-return]


def reshaped(view: DView, shape: tuple[int, ...]) -> DView:
    """A copy in another shape: the elements in C's order, cut anew."""
    comm, family = view.buffer.comm, view.family
    size = comm.size
    if 0 in shape or 0 in view.shape:
        return family._empty(shape, view.dtype)  # type: ignore[no-any-return]
    if view.size == 1:  # (which all hold where there is no dimension to divide)
        one = in_partition(view, everywhere(view.shape, (size,))).buffer
        made = family._of_local(comm, everywhere(shape, (size,)), one.local.reshape(shape))
        made.buffer.history = one.history
        return in_partition(made, divided(shape, size))
    # In runs of whole rows of the old shape, then in runs of rows of the new one, then as it is to be.
    rows = in_partition(view, _in_rows(view.shape, size))
    edges = flat_edges(rows.buffer.partition) or [0, *(rows.size,) * size]
    flat = (rows.size,)
    line = partition(flat, (size,), (Split(0, runs(edges)),) if size > 1 else (None,))
    rank = comm.rank
    buffer = rows.buffer
    row = family._of_local(comm, line, buffer.local.reshape((line.local_shape(rank)[0],)))
    wanted = _in_rows(shape, size)
    to = flat_edges(wanted) or [0, *(rows.size,) * size]
    cut = partition(flat, (size,), (Split(0, runs(to)),) if size > 1 else (None,))
    row.buffer.history = buffer.history
    moved = in_partition(row, cut)
    made = family._of_local(comm, wanted, moved.buffer.local.reshape(wanted.local_shape(rank)))
    made.buffer.history = moved.buffer.history
    return in_partition(made, divided(shape, size))


def _in_rows(shape: tuple[int, ...], size: int) -> Partition:
    """Runs along the first dimension longer than 1; of a shape without one, the first process has all."""
    if size == 1:
        return divided(shape, 1)
    d = next((i for i, n in enumerate(shape) if n > 1), 0)
    if not shape:
        return divided(shape, size)
    return divided(shape, size, Layout(Block(d)))


def _shares(local: Any, view: DView) -> bool:
    """Does a local view show memory of the buffer it was made from?"""
    mine = view.buffer.local
    if isinstance(local, np.ndarray):
        return bool(np.may_share_memory(local, mine))
    return getattr(local, "owner", getattr(local, "buffer", local)) is getattr(
        mine, "owner", getattr(mine, "buffer", mine)
    )


# From and to local arrays


def from_local(cls: Any, local: Any, layout: Any, comm: Communicator | None, checked: bool = True) -> Any:
    """See DArray.from_local."""
    comm = communicator() if comm is None else comm
    if not isinstance(local, AbstractArray):
        from mirabelle.arraytypes.define import as_array

        local = as_array(local)
    inner = leaf_family(type(local))
    family = family_over(inner)
    if cls.inner is not None and cls.family is not family:
        raise TypeError(
            f"The parts of a {cls.__name__} are of type {cls.inner.__name__}, not {type(local).__name__}."
        )
    view = verbs.leaf_of(verbs.copy(local)).view
    if not checked:
        return wrap(family, Leaf(family._of_local(comm, _said_by(layout, local, comm), view)))
    said = comm.allgather_object((tuple(local.shape), local.dtype.str))
    shapes = [s for s, _ in said]
    if len({d for _, d in said}) > 1 or len({len(s) for s in shapes}) > 1:
        raise LayoutError(f"The parts do not form one array: {', '.join(f'{d}{list(s)}' for s, d in said)}.")
    if layout is None:
        if not local.ndim:
            raise LayoutError(
                "Parts of no dimension stand in no row: give layout=mb.distributed.Replicated() or "
                "mb.distributed.Partial('sum')."
            )
        layout = Layout(Ragged(0, tuple(s[0] for s in shapes)))
    layout = Layout.of(layout)
    mesh = layout.mesh or (comm.size,)
    shape = list(local.shape)
    for m, p in enumerate(layout.placements):
        if p.axis is None:
            continue
        d = p.axis % len(shape)
        step = math.prod(mesh[m + 1 :])
        shape[d] = sum(shapes[c * step][d] for c in range(mesh[m]))
    part = divided(tuple(shape), comm.size, layout)
    wrong = [q for q in range(comm.size) if part.local_shape(q) != shapes[q]]
    if wrong:
        raise LayoutError(
            f"In layout {layout!r} process {wrong[0]} holds a part of shape {part.local_shape(wrong[0])}, "
            f"and it gave {shapes[wrong[0]]}. Without layout= the parts stand in a row, whatever their "
            "lengths."
        )
    return wrap(family, Leaf(family._of_local(comm, part, view)))


def _said_by(layout: Any, local: Any, comm: Communicator) -> Partition:
    """The partition of an array of which one dimension is divided, in runs that the layout says."""
    (placement,) = Layout.of(layout).placements
    if not isinstance(placement, Ragged) or placement.axis is None:
        raise LayoutError(
            f"Without a check the layout has to say the sizes of all parts, and {layout!r} does not: give "
            "layout=mb.distributed.Ragged(axis, sizes), or leave checked=False out."
        )
    shape = list(local.shape)
    shape[placement.axis] = sum(placement.sizes)
    part = divided(tuple(shape), comm.size, Layout.of(layout))
    if part.local_shape(comm.rank) != tuple(local.shape):
        raise LayoutError(
            f"In layout {layout!r} this process holds a part of shape {part.local_shape(comm.rank)}, and it "
            f"gave {tuple(local.shape)}."
        )
    return part


def exchange(sends: Mapping[int, Any], comm: Communicator | None = None) -> dict[int, Any]:
    """Give local arrays to other processes, and get those that are for this one: {rank: array} each.

    All processes call it, also those that give nothing. What comes has the type of what was sent. In a compiled
    function what is given and what comes are values of the program: the messages are on their way until
    somebody needs what came, and which arrays go where is agreed upon when the function is captured.

    Parameters
    ----------
    sends : dict
        Of ranks, and the array for each.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    dict
        The arrays that came, by the ranks that sent them, in new memory and in the type of what was sent;
        empty where nothing came.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.exchange({})
    {}
    """
    comm = communicator() if comm is None else comm
    if not isinstance(sends, Mapping):
        raise TypeError(
            "exchange takes a dictionary of ranks, and the array for each, and not a "
            f"{_of_its_own(type(sends)).__name__}: `mb.distributed.exchange({{rank: x}})`."
        )
    wrong = [q for q in sends if q == comm.rank or not 0 <= q < comm.size]
    if wrong:
        raise CommunicationError(
            f"Process {comm.rank} of {comm.size} gives an array to process {wrong[0]!r}; others are "
            f"{[q for q in range(comm.size) if q != comm.rank]}. `python -m mirabelle run -n 4 program.py` "
            "starts four; a process keeps what is its own."
        )
    for q, x in sends.items():
        check_local(x, "mb.distributed.exchange", f" (for process {q})")
    if compiling.get() is not None:
        from mirabelle.arraytypes.programs.messagecalls import exchanged

        return exchanged(sends, comm)
    packed = {q: verbs.copy(x) for q, x in sends.items()}
    families = {q: leaf_family(type(x)) for q, x in packed.items()}
    said = comm.allgather_object({q: (families[q], x.shape, x.dtype.str) for q, x in packed.items()})
    coming = {q: what[comm.rank] for q, what in enumerate(said) if comm.rank in what}
    landed = {q: family._empty(shape, np.dtype(dtype)) for q, (family, shape, dtype) in coming.items()}
    # (One type at a time, in the same order everywhere: an engine takes some as they are, and some not.)
    for family in sorted({f for what in said for f, _, _ in what.values()}, key=lambda f: str(f.__name__)):
        messages = Messages(comm, family)
        messages.begin(
            {q: verbs.leaf_of(x).view for q, x in packed.items() if families[q] is family},
            {q: landed[q] for q, (f, _, _) in coming.items() if f is family},
        )
        messages.finish()
    return {q: wrap(f, Leaf(landed[q])) for q, (f, _, _) in coming.items()}


def shared_local(x: Any) -> Any:
    """See DArray.local."""
    view = evaluated_view(x)
    if settings.check_collectives and view.buffer.inner.home.kind != "traced":
        # (Statements on it are computed at once from now on: on all ranks, or their messages would differ.)
        mark = told(marked("x.local of an array of shape", x.shape), view.history)
        view.buffer.comm.allgather_object(None, mark)
    leaf = x._node
    if not leaf.foreign:
        if not nobody_else(leaf):
            leaf = x._node = verbs.leaf_of(verbs.copy(x))
        leaf.foreign = True
        leaf.size = FOREIGN
    buffer = leaf.view.buffer
    own = Leaf(buffer.local, foreign=True)
    buffer._leaf = None
    return wrap(buffer.inner, own)
