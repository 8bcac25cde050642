"""Views of distributed memory: what the rest of mirabelle takes for memory of one place.

A *buffer* is a communicator, a partition, and what this process holds of it: a view of the local type. A
`DView` shows a part of a buffer. Its shape and strides are those that NumPy works out as if all elements lay
in one memory in C order (on an array that is never read), so that parts, transposes and questions of aliasing
need no code of their own. What a view shows on each process is its *map*, found from the strides and kept with
the partition.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.layouts import Partition, Pieces, Split, partition, place_in, runs
from mirabelle.arraytypes.proxies import ProxyView, proxy_of
from mirabelle.dispatch.errors import LayoutError, PlaceError
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf, new_leaf

_new = object.__new__
_numbers = itertools.count(1)


class DBuffer:
    """Distributed memory: what each process holds of it lies in `local`, a view of the family `inner`.

    Local memory is in C's order on every process. Were it as a result happened to come, processes would differ
    (one row is in C's order and in Fortran's), and with them the answers to "is this shape a view?" and "can
    the engine add these terms?", on which all must agree.
    """

    __slots__ = ("_leaf", "came", "comm", "dtype", "inner", "local", "name", "partition")

    def __init__(self, comm: Communicator, part: Partition, inner: Any, local: Any) -> None:
        self.comm = comm
        self.partition = part
        self.inner = inner
        self.local = local if local.flags.c_contiguous else in_order(inner, local)
        self.dtype: np.dtype = local.dtype
        self.name = next(_numbers)
        self._leaf: Leaf | None = None
        # What the contents came from (see histories.py): one entry, shared with whoever shows the same memory.
        self.came: list[Any] = [None]
        if inner not in comm._carriers:
            comm.prepare(inner)

    @property
    def leaf(self) -> Leaf:
        """What this process holds, as a leaf of the local type."""
        leaf = self._leaf
        if leaf is None:
            leaf = self._leaf = Leaf(self.local)
            leaf.keep()
        return leaf

    @property
    def history(self) -> Any:
        """What the contents came from, as far as ranks compare it (see histories.py)."""
        return self.came[0]

    @history.setter
    def history(self, came: Any) -> None:
        self.came[0] = came

    @property
    def nbytes(self) -> int:
        return int(self.partition.elements) * self.dtype.itemsize

    # Is it divided, though it waits? (Terms of a sum are of all of its shape, on each process.)
    divided_so = False

    def joined(self) -> bool:
        """Join what it waits for in a way of its own; False where that are terms of all processes."""
        return False

    def forget(self) -> None:
        """Wait for nothing: all of it is about to be written, and nothing that stood there is read."""
        part = self.partition
        self.partition = partition(part.shape, part.mesh, part.splits)
        self.local, self._leaf = self.inner._alike(self.local), None

    def written(self) -> None:
        """Its contents have changed: what was known of them no longer holds."""
        if self._leaf is not None:
            self._leaf.writes += 1
        if type(self.came[0]) is int:
            self.came[0] = None

    def reshaped(self, shape: tuple[int, ...]) -> DBuffer | None:
        """The same memory in another shape, where each process can say it of its part; else None."""
        part = self.partition
        if part.partial:
            return None
        if part.replicated:
            made = partition(shape, part.mesh, (None,) * len(shape))
        else:
            edges = flat_edges(part)
            found = None if edges is None else from_flat_edges(shape, part, edges)
            if found is None:
                return None
            made = found
        twin = _new(DBuffer)
        twin.comm, twin.inner, twin.dtype = self.comm, self.inner, self.dtype
        twin.name, twin._leaf, twin.came = self.name, None, self.came
        twin.partition = made
        twin.local = self.local.reshape(made.local_shape(self.comm.rank))
        return twin  # type: ignore[no-any-return]

    def viewed(self, dtype: np.dtype) -> DBuffer | None:
        """The same memory read as elements of another size, if each process can say it of its part; else
        None."""
        part = self.partition
        if part.partial or not part.shape:
            return None
        old, new = self.dtype.itemsize, dtype.itemsize

        def scaled(n: int) -> int:
            return n * old // new

        last = part.splits[-1]
        edges = None if last is None else last.edges
        if any(n * old % new for n in (part.shape[-1], *(edges or ()))) or (last is not None and edges is None):
            return None
        split = None
        if last is not None and edges is not None:
            split = Split(last.mesh_axis, runs([scaled(e) for e in edges]))
        shape = (*part.shape[:-1], scaled(part.shape[-1]))
        twin = _new(DBuffer)
        twin.comm, twin.inner, twin.dtype = self.comm, self.inner, dtype
        twin.name, twin._leaf, twin.came = self.name, None, self.came
        twin.partition = partition(shape, part.mesh, (*part.splits[:-1], split))
        twin.local = self.local.view(dtype)
        return twin  # type: ignore[no-any-return]

    def whole(self) -> DView:
        """The view of all of it."""
        return DView(self, proxy_of(self.partition.shape, self.dtype))

    def __repr__(self) -> str:
        return f"DBuffer({self.name}, {self.partition}, {self.dtype.name})"


def in_order(inner: Any, local: Any) -> Any:
    """A local view's elements in memory of their own, in C's order."""
    made = inner._empty(local.shape, local.dtype)
    inner._copy_into(made, local)
    return made


class DView(ProxyView):
    """A strided view of distributed memory. `family` is set by each family's own subclass."""

    __slots__ = ("_map", "buffer", "whole")

    _map: Any
    buffer: DBuffer
    # Does it show all of its buffer, as it is?
    whole: bool

    def __new__(cls, buffer: DBuffer, proxy: Any = None, whole: bool = True) -> Any:
        family = family_over(buffer.inner)
        view = _new(family.view_type)
        view.buffer = buffer
        view._proxy = proxy
        view.whole = whole
        view._map = view._parts = None
        if proxy is None:
            view.shape, view.dtype = buffer.partition.shape, buffer.dtype
        else:
            view.shape, view.dtype = proxy.shape, proxy.dtype
        return view

    def _shown(self, proxy: np.ndarray) -> Any:
        whole = self.whole and proxy.shape == self.shape and proxy.strides == self.strides
        return DView(self.buffer, proxy, whole and proxy.dtype == self.dtype)

    def strided(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        if dtype.itemsize > self.buffer.dtype.itemsize:
            raise LayoutError(
                f"Elements of {self.buffer.dtype.name} are read as {dtype.name}, of which processes may hold "
                "parts. Copy the array first: `mb.copy(x).view(dtype)`."
            )
        proxy = proxy_of(shape, dtype, strides, self.offset + offset)
        whole = self.whole and not offset and proxy.nbytes == self.nbytes and dtype == self.dtype
        if whole and shape != self.shape and proxy.flags.c_contiguous:
            # All of it in another shape, of which each process has its part where it is.
            buffer = self.buffer.reshaped(shape)
            if buffer is not None:
                return buffer.whole()
        return DView(self.buffer, proxy, False)

    def reshape(self, shape: tuple[int, ...], copy: bool = False) -> Any:
        """Another shape; a ValueError where strides cannot say it.

        Where parts would be cut, its elements are brought where they are needed at each use (`reshaped`).
        """
        whole = self.dtype == self.buffer.dtype and self.nbytes == self.buffer.nbytes
        if whole and self.proxy.flags.c_contiguous:
            buffer = self.buffer.reshaped(tuple(shape))
            if buffer is not None:
                return buffer.whole()
        return self._shown(self.proxy.reshape(shape, copy=False))

    @property
    def history(self) -> Any:
        """What its contents came from, as far as ranks compare it (histories.py).

        Of a part nothing without checks: where others are written meanwhile, a process that copies first
        goes on reading the old contents, and another those around it.
        """
        return self.buffer.came[0] if self.whole or settings.check_collectives else None

    @property
    def shows_all(self) -> bool:
        """Does it show all of a divided buffer, in the order in which it lies, perhaps in another shape?"""
        if self.buffer.partition.replicated:
            return False
        alike = self.dtype == self.buffer.dtype and self.size == self.buffer.partition.elements
        return alike and bool(self.proxy.flags.c_contiguous)

    def view(self, dtype: np.dtype) -> Any:
        """The same bytes read as another dtype."""
        if dtype.itemsize != self.itemsize:
            buffer = self.buffer.viewed(dtype) if self.whole else None
            if buffer is None:
                raise ValueError(
                    f"Elements of {self.dtype.name} that are read as {dtype.name}, of another size, must lie "
                    "one after another on each process. Copy the array first: `mb.copy(x).view(dtype)`."
                )
            return buffer.whole()
        return super().view(dtype)

    def _refusal(self) -> Exception:
        return PlaceError(
            "The memory of other processes cannot be read as a NumPy array. Fetch it explicitly with "
            "mb.to_numpy(x), on all processes; this one's part is x.local."
        )

    # What each process shows of it

    @property
    def map(self) -> Map | None:
        """What each process shows; None where strides go across what processes hold."""
        found = self._map
        if found is None:
            key = self.offset, self.shape, self.strides, self.dtype, self.buffer.dtype
            cache = self.buffer.partition.cache
            found = cache.get(key)
            if found is None:
                if len(cache) > 4096:
                    cache.clear()
                found = cache[key] = map_of(self) or False
            self._map = found
        return found or None  # type: ignore[no-any-return]

    @property
    def partition(self) -> Partition | None:
        """The partition of an array that is divided as this view is; None if only some hold it."""
        if self.whole:
            return self.buffer.partition
        found = self.map
        return None if found is None else found.partition


def whole_leaf(family: Any, comm: Communicator, part: Partition, local: Any, came: Any = None) -> Leaf:
    """The leaf of new distributed memory: as `Leaf(DView(DBuffer(...)))`, made for every result."""
    buffer = _new(DBuffer)
    buffer.comm = comm
    buffer.partition = part
    buffer.inner = family.inner
    buffer.local = local if local.flags.c_contiguous else in_order(buffer.inner, local)
    dtype = buffer.dtype = local.dtype
    buffer.name = next(_numbers)
    buffer._leaf = None
    buffer.came = [came]
    view = _new(family.view_type)
    view.buffer = buffer
    view._proxy = view._map = view._parts = None
    view.whole = True
    view.shape = part.shape
    view.dtype = dtype
    leaf = new_leaf(Leaf)
    leaf.view = view
    leaf.shape = part.shape
    leaf.dtype = dtype
    return leaf  # type: ignore[no-any-return]


class Map:
    """Which dimension of the buffer each dimension of a view runs along, from where and in what steps.

    `axes[i]` is that dimension (-1 where the view repeats one place: such dimensions have length 1 here),
    `starts` are places along all dimensions of the buffer, `steps` belong to the view's.
    """

    __slots__ = (
        "axes",
        "base",
        "hows",
        "kind",
        "partition",
        "pieces",
        "pinned",
        "shape",
        "starts",
        "steps",
        "writing",
    )

    def __init__(
        self, base: Partition, kind: Any, shape: tuple[int, ...], axes: Any, starts: Any, steps: Any
    ) -> None:
        self.base = base
        # How each process writes through it, once that was worked out. (Ranks may be threads.)
        self.writing: dict[int, Any] = {}
        # How boxes of it are shown.
        self.hows: dict[Any, How] = {}
        # What of an element is shown: None (all), "real", "imag" or a dtype.
        self.kind = kind
        self.shape = shape
        self.axes: tuple[int, ...] = axes
        self.starts: tuple[int, ...] = starts
        self.steps: tuple[int, ...] = steps
        # For each dimension, what each coordinate shows: pieces in places of the view.
        self.pieces: list[tuple[Pieces, ...] | None] = []
        splits: list[Split | None] = []
        for n, axis, step in zip(shape, axes, steps, strict=True):
            split = base.splits[axis] if axis >= 0 else None
            if split is None:
                self.pieces.append(None)
                splits.append(None)
                continue
            shown = tuple(_shown_pieces(held, starts[axis], step, n) for held in split.pieces)
            self.pieces.append(shown)
            splits.append(Split(split.mesh_axis, shown))
        # Dimensions of the mesh along which one coordinate alone holds what is shown.
        self.pinned: dict[int, int] = {}
        for axis, split in enumerate(base.splits):
            if split is not None and axis not in axes:
                at = starts[axis]
                for c, held in enumerate(split.pieces):
                    if any(a <= at < b for a, b in held):
                        self.pinned[split.mesh_axis] = c
        self.partition = None if self.pinned else partition(shape, base.mesh, tuple(splits), base.partial)

    def held(self, rank: int) -> tuple[Pieces, ...] | None:
        """What a process shows, for each dimension; None if nothing."""
        at = self.base.coordinates(rank)
        if any(at[m] != c for m, c in self.pinned.items()):
            return None
        found: list[Pieces] = []
        for n, axis, shown in zip(self.shape, self.axes, self.pieces, strict=True):
            if shown is None:
                found.append(((0, n),) if n else ())
            else:
                split = self.base.splits[axis]
                assert split is not None
                found.append(shown[at[split.mesh_axis]])
        return tuple(found)

    def index(self, rank: int, box: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index into what `rank` holds that shows a box of the view (one piece along each dimension)."""
        at = self.base.coordinates(rank)
        index: list[Any] = []
        for d, start in enumerate(self.starts):
            split = self.base.splits[d]
            held: Pieces | None = None if split is None else split.pieces[at[split.mesh_axis]]
            if d not in self.axes:
                index.append(start if held is None else place_in(held, start))
                continue
            i = self.axes.index(d)
            if box[i] is None:  # all that is held, run by run
                index.append(slice(None))
                continue
            step = self.steps[i]
            low, high = box[i]
            if high <= low:
                index.append(slice(0, 0))
                continue
            first, last = start + step * low, start + step * (high - 1)
            if held is not None:
                first, last = place_in(held, first), place_in(held, last)
            end: int | None = last + (1 if step > 0 else -1)
            if end is not None and end < 0:
                end = None
            index.append(slice(first, end, step))
        return tuple(index)

    @property
    def order(self) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """After `index`: how to permute what is left, and the index that gives it the view's dimensions."""
        left = [d for d in range(len(self.starts)) if d in self.axes]
        axes = tuple(left.index(d) for d in self.axes if d >= 0)
        return axes, tuple(None if d < 0 else slice(None) for d in self.axes)

    def shows(self, local: Any, rank: int, box: tuple[Any, ...]) -> Any:
        """A box of the view, of a view of what `rank` holds."""
        return self.how(rank, box).show(local)

    def how(self, rank: int, box: tuple[Any, ...]) -> How:
        """How a box of the view is shown of what `rank` holds."""
        key = rank, box
        found = self.hows.get(key)
        if found is None:
            if len(self.hows) > 256:
                self.hows.clear()
            axes, opened = self.order
            found = self.hows[key] = How(
                self.kind,
                (*self.index(rank, box), Ellipsis),
                axes if axes != tuple(range(len(axes))) else None,
                (*opened, Ellipsis) if None in opened else None,
            )
        return found


class How:
    """What to do to a local view to show a part of it: take a kind of its elements, a part, turn it, open
    it."""

    __slots__ = ("axes", "index", "kind", "opened")

    def __init__(self, kind: Any, index: Any, axes: Any, opened: Any) -> None:
        self.kind, self.index, self.axes, self.opened = kind, index, axes, opened

    def show(self, local: Any) -> Any:
        if self.kind is not None:
            local = getattr(local, self.kind) if type(self.kind) is str else local.view(self.kind)
        local = local[self.index]
        if self.axes is not None:
            local = local.transpose(self.axes)
        return local if self.opened is None else local[self.opened]


def flat_edges(part: Partition) -> list[int] | None:
    """Where the parts of processes meet in the C order of all elements; None if they are no runs of it."""
    divided = [d for d, s in enumerate(part.splits) if s is not None]
    if len(divided) != 1 or math.prod(part.shape[: divided[0]]) != 1:
        return None
    split = part.splits[divided[0]]
    assert split is not None
    row = math.prod(part.shape[divided[0] + 1 :])
    return None if split.edges is None else [e * row for e in split.edges]


def from_flat_edges(shape: tuple[int, ...], part: Partition, edges: list[int]) -> Partition | None:
    """The partition of a shape whose parts meet there in its C order; None if rows would be cut."""
    (mesh_axis,) = {s.mesh_axis for s in part.splits if s is not None}
    d = next((i for i, n in enumerate(shape) if n > 1), None)
    if d is None:
        return None
    row = math.prod(shape[d + 1 :])
    if not row or any(e % row for e in edges):
        return None
    splits: list[Split | None] = [None] * len(shape)
    splits[d] = Split(mesh_axis, runs([e // row for e in edges]))
    return partition(shape, part.mesh, tuple(splits))


def _shown_pieces(held: Pieces, start: int, step: int, n: int) -> Pieces:
    """Places of a view of `n` places from `start` in steps, that lie in pieces of a dimension."""
    found = []
    for a, b in held:
        if step > 0:
            low, high = -((start - a) // step), -((start - b) // step)
        else:
            low, high = (start - b) // -step + 1, (start - a) // -step + 1
        low, high = max(low, 0), min(high, n)
        if low < high:
            found.append((low, high))
    return tuple(found if step > 0 else found[::-1])


def map_of(view: DView) -> Map | None:
    """The map of a view, found from its strides."""
    buffer = view.buffer
    base = buffer.partition
    if view.whole:  # (also of dimensions of length 1 and of no elements, of which strides say nothing)
        ndim = len(base.shape)
        return Map(base, None, base.shape, tuple(range(ndim)), (0,) * ndim, (1,) * ndim)
    itemsize = buffer.dtype.itemsize
    offset, within = divmod(view.offset, itemsize)
    kind: Any = None
    if view.dtype != buffer.dtype:
        if buffer.dtype.kind == "c" and view.dtype.itemsize * 2 == itemsize:
            kind = "imag" if within else "real"
        elif view.dtype.itemsize == itemsize and not within:
            kind = view.dtype
        else:
            return None
    elif within:
        return None
    sizes: list[int] = [1] * len(base.shape)
    for d in range(len(sizes) - 2, -1, -1):
        sizes[d] = sizes[d + 1] * base.shape[d + 1]
    starts = [0] * len(sizes)
    if view.size:
        for d, step in enumerate(sizes):
            if base.shape[d] > 1:
                starts[d], offset = divmod(offset, step)
    axes: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    for n, stride in zip(view.shape, view.strides, strict=True):
        if n == 0:
            # Nothing is shown: of no dimension of the buffer, and nobody holds any of it.
            axes.append(-1)
            steps.append(1)
            shape.append(0)
            continue
        if n == 1 or stride == 0:
            axes.append(-1)
            steps.append(1)
            shape.append(1)
            continue
        if stride % itemsize:
            return None
        elements = stride // itemsize
        found = None
        for d, step in enumerate(sizes):
            if base.shape[d] > 1 and step and elements % step == 0:
                k = elements // step
                if abs(k) * (n - 1) < base.shape[d]:
                    found = d, k
                    break
        if found is None or found[0] in axes:
            return None
        d, k = found
        if not 0 <= starts[d] + k * (n - 1) < base.shape[d]:
            return None
        axes.append(d)
        steps.append(k)
        shape.append(n)
    return Map(base, kind, tuple(shape), tuple(axes), tuple(starts), tuple(steps))


# Families: one for each type of local arrays


_families: dict[Any, Any] = {}


def family_over(inner: Any) -> Any:
    """The family of distributed arrays whose parts are of the family `inner`."""
    found = _families.get(inner)
    if found is None:
        from mirabelle.arraytypes.distributed.darray import make_family  # which stands on this module

        found = make_family(inner)
    return found
