"""DArray: one array over several processes, each with a local array of any type.

All processes run the same program, and every operation on a distributed array is one they do together.
`DArray[HostArray]` is an array type like another: its memory is a communicator, a layout and one local array,
and what is to be done to it is handed to the local type.

>>> import mirabelle as mb
>>> x = mb.DArray[mb.HostArray]([1.0, 2.0, 3.0], layout=mb.distributed.Block(0))
>>> print(mb.to_numpy(x * 2 + 1), x.layout, x.communicator.size)
[3. 5. 7.] Layout(Replicated()) 1
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.dense import VIEWS, DenseArray, _rebuild, wrap
from mirabelle.arraytypes.distributed import histories
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.distributed.layouts import Layout, Partition, divided, partition, place_in
from mirabelle.arraytypes.distributed.views import DBuffer, DView, _families, family_over
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.parametric import A, ArrayMeta, OfInner, checked_dtype, generic_class, making
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import LayoutError, PlaceError
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.styles import distributed
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike
    from mirabelle.arraytypes.distributed.layouts import Placement

_layout: contextvars.ContextVar[Layout | None] = contextvars.ContextVar("mirabelle_layout", default=None)


@contextlib.contextmanager
def use_layout(layout: Layout | Placement) -> Iterator[None]:
    """Within the block, new distributed arrays are divided so, where their shape allows it.

    Parameters
    ----------
    layout : Layout or placement
        The layout.

    Returns
    -------
    context manager
        It yields nothing (None).

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.distributed.use_layout(mb.distributed.Block(1)):
    ...     x = mb.zeros((2, 3), device=mb.DArray[mb.HostArray])
    """
    token = _layout.set(Layout.of(layout))
    try:
        yield
    finally:
        _layout.reset(token)


def layout_in_use() -> Layout | None:
    """How new arrays are divided here, if `use_layout` says so."""
    return _layout.get()


class DArray(DenseArray, OfInner[A]):
    """An array over several processes: `DArray[HostArray](data)`, `DArray[CuArray](data)`.

    `data` is the whole array, the same on all processes: each keeps its part. `layout` says which
    (`Block(0)`, `Layout(Block(0), Block(1), mesh=(2, 2))`, of `mb.distributed`), `comm` over which processes.

    Parameters
    ----------
    data : array, list or number
        What is copied into the array.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.
    layout : Layout, placement or None
        How it is divided; None is rows in equal runs.
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.DArray[mb.HostArray]([[1.0, 2.0], [3.0, 4.0]])
    >>> print(mb.sum(x, axis=0), x.layout)
    [4. 6.] Layout(Replicated())
    """

    __module__ = "mirabelle"
    __slots__ = ()

    _runs_in_place = True
    # (Of all parts together, on the host: a statement that was met before saves more than a longer tree.)
    _brief_trees = 1 << 18
    # A loop over it is one of all processes (see meshdata/dividedloops.py).
    communicates = True
    # The family of the local arrays, and the class of this family's views.
    inner: Any = None
    view_type: Any = None
    family: type[DArray]

    def __new__(cls, data: ArrayLike, dtype: DTypeLike = None, *, layout: Any = None, comm: Any = None) -> Self:
        if cls is DArray:
            inner = leaf_family(type(data)) if isinstance(data, DenseArray) else default_family()
            cls = inner if issubclass(inner, DArray) else family_over(inner)
        if layout is None and comm is None:
            made: Any = DenseArray.__new__(cls, data, dtype)
            return made
        from mirabelle.arraytypes.distributed.communicators import use_communicator

        with contextlib.ExitStack() as stack:
            if comm is not None:
                stack.enter_context(use_communicator(comm))
            if layout is not None:
                stack.enter_context(use_layout(layout))
            x: Any = DenseArray.__new__(cls, data, dtype)
            if layout is not None:
                wanted = divided(x.shape, x.communicator.size, Layout.of(layout))
                if evaluated_view(x).partition is not wanted:
                    from mirabelle.arraytypes.distributed.moving import redistribute

                    x = verbs.materialize(redistribute(x, layout))
            return x

    @classmethod
    def _over(cls, inner: Any) -> Any:
        """The family whose parts are of the family `inner`."""
        return family_over(inner)

    @classmethod
    def _subscripted(cls, parameters: tuple[Any, ...]) -> Any:
        """DArray[HostArray] is a family; DArray[HostArray[float64, 2]] a type of it with its parameters."""
        if cls is not DArray:
            return None
        if len(parameters) != 1 or not (
            isinstance(parameters[0], ArrayMeta) and issubclass(parameters[0], DenseArray)
        ):
            raise TypeError(
                "DArray takes the type of its local arrays, a type that stores its elements: "
                "mb.DArray[mb.HostArray]."
            )
        local = parameters[0]
        inner = generic_class(local)
        if issubclass(inner, DArray) or not hasattr(inner, "home"):
            raise TypeError(f"The parts of a DArray lie in memory of one place, and {local.__name__} does not.")
        family = family_over(inner)
        return family[local.parameters] if local.parameters else family

    @classmethod
    def _spelled(cls, parameters: tuple[Any, ...]) -> str | None:
        return f"DArray[{cls.inner[parameters].__name__}]" if cls.inner is not None else None

    @classmethod
    def _reduce_family(cls) -> Any:
        return cls.__qualname__ if cls.inner is None else (family_over, (cls.inner,))

    # What it is, on this process

    @property
    def communicator(self) -> Communicator:
        """The processes it is divided over."""
        return verbs.leaf_of(self).view.buffer.comm  # type: ignore[no-any-return]

    @property
    def layout(self) -> Layout:
        """How it is divided."""
        return evaluated_view(self).buffer.partition.layout

    @property
    def local(self) -> AbstractArray:
        """This process's part, as an array of the local type: it shows the memory itself.

        Writing to it writes to the distributed array, and is not waited for by anybody: read what others wrote
        only after something all do together (`x.communicator.barrier()`). All processes ask for it, as for any
        other operation: it computes what waits, and statements on `x` are computed at once from then on. What
        is done with the part is each process's own affair: `mine = x.local`, then `if rank == 0: print(mine)`.
        """
        from mirabelle.arraytypes.distributed.moving import shared_local

        return shared_local(self)

    @property
    def owned(self) -> tuple[slice, ...]:
        """Which part of the whole this process holds, as an index: `x[x.owned]` is what `x.local` shows.

        A LayoutError where the part is dealt out in several runs (`mb.distributed.BlockCyclic`).
        """
        buffer = evaluated_view(self).buffer
        found = []
        for held, n in zip(buffer.partition.held(buffer.comm.rank), self.shape, strict=True):
            if len(held) > 1:
                raise LayoutError(
                    f"This process holds several runs ({buffer.partition.layout!r}), which no slice says. "
                    "See x.boxes() for all of them, or take one run: "
                    "`x = mb.distributed.redistribute(x, mb.distributed.Block(0))`."
                )
            found.append(slice(*held[0]) if held else slice(n, n))
        return tuple(found)

    def halo(self, width: int | Sequence[int] = 1, *, wrap: bool = False) -> AbstractArray:
        """This process's part with the neighbouring places of others around it, as a local array (a copy).

        `width` is how many places, or one number for each dimension. At the edges of the whole there are none,
        unless `wrap` takes those of the other end.

        >>> import mirabelle as mb
        >>> x = mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])
        >>> print(x.halo(1, wrap=True))
        [3. 1. 2. 3. 1.]
        """
        from mirabelle.arraytypes.distributed.moving import halo

        return halo(self, width, wrap)

    def boxes(self) -> list[tuple[slice, ...]]:
        """The parts of the whole that this process is to write where each is written once.

        Of what several hold, the first has it.
        """
        view = evaluated_view(self)
        part, rank = view.buffer.partition, view.buffer.comm.rank
        at = part.coordinates(rank)
        if any(at[m] for m in range(len(part.mesh)) if m not in part.owners()):
            return []
        return [tuple(itertools.starmap(slice, box)) for box in itertools.product(*part.held(rank))]

    def box_contents(self, box: tuple[slice, ...]) -> np.ndarray:
        """The contents of one of `boxes`, as a NumPy array."""
        view = evaluated_view(self)
        buffer = view.buffer
        shown = view.map
        assert shown is not None
        ranges = tuple((s.start, s.stop) for s in box)
        part = buffer.inner._download(shown.shows(buffer.local, buffer.comm.rank, ranges))
        return np.ascontiguousarray(part).reshape(tuple(b - a for a, b in ranges))

    @classmethod
    def from_local(
        cls,
        local: AbstractArray,
        layout: Layout | Placement | None = None,
        comm: Communicator | None = None,
        checked: bool = True,
    ) -> DArray:
        """The distributed array whose parts are the `local` arrays of all processes, which it takes over.

        Without a layout, the parts stand one after the other along the first dimension. With
        `mb.distributed.Partial("sum")` the array is the sum of what each process gives, and nothing is sent
        until it is needed. With `checked=False` and a layout that says all sizes (`mb.distributed.Ragged`),
        processes do not compare what they give: then nothing is sent.

        >>> import mirabelle as mb
        >>> print(mb.to_numpy(mb.DArray.from_local(mb.HostArray([1, 2]))))
        [1 2]
        """
        from mirabelle.arraytypes.distributed.moving import from_local

        return from_local(cls, local, layout, comm, checked)

    @classmethod
    def _from_boxes(
        cls, shape: tuple[int, ...], dtype: Any, read: Any, layout: Any = None, comm: Any = None
    ) -> Any:
        """The array whose boxes `read` gives: it is called with the slices of each box this process holds."""
        family = family_over(default_family()) if cls.inner is None else cls.family
        comm = communicator() if comm is None else comm
        part = family._divided(tuple(shape), comm, None if layout is None else Layout.of(layout))
        data = np.empty(part.local_shape(comm.rank), checked_dtype(dtype))
        for box in itertools.product(*part.held(comm.rank)):
            view_index = tuple(
                slice(*place_of(held, a, b)) for held, (a, b) in zip(part.held(comm.rank), box, strict=True)
            )
            data[view_index] = read(tuple(itertools.starmap(slice, box)))
        return wrap(family, Leaf(family._of_local(comm, part, family.inner._upload(data))))

    # What DenseArray asks of a place

    @classmethod
    def _divided(cls, shape: tuple[int, ...], comm: Communicator, layout: Layout | None = None) -> Partition:
        """How new memory of a shape is divided."""
        wanted = _layout.get() if layout is None else layout
        if wanted is not None and layout is None:
            fits = all(p.axis is None or -len(shape) <= p.axis < len(shape) for p in wanted.placements)
            if not fits:
                wanted = None
            else:
                try:
                    return divided(shape, comm.size, wanted)
                except LayoutError:  # (runs of given sizes are for one length)
                    wanted = None
        return divided(shape, comm.size, wanted)

    @classmethod
    def _of_local(cls, comm: Communicator, part: Partition, local: Any) -> DView:
        """The view of a new buffer around a local view."""
        return DView(DBuffer(comm, part, cls.inner, local))

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> DView:
        comm = communicator()
        part = cls._divided(shape, comm)
        return cls._of_local(comm, part, cls.inner._empty(part.local_shape(comm.rank), dtype))

    @classmethod
    def _alike(cls, view: DView, dtype: np.dtype | None = None, order: str = "C") -> DView:
        comm, part = view.buffer.comm, view.partition
        if part is not None and part.partial and view.buffer.divided_so:
            part = partition(part.shape, part.mesh, part.splits)
        if part is None or part.partial:
            part = cls._divided(view.shape, comm)
        d = view.dtype if dtype is None else dtype
        return cls._of_local(comm, part, cls.inner._empty(part.local_shape(comm.rank), d))

    @classmethod
    def _upload(cls, data: np.ndarray) -> DView:
        comm = communicator()
        data = np.asarray(data, checked_dtype(data.dtype))
        part = cls._divided(data.shape, comm)
        view = cls._of_local(comm, part, cls.inner._upload(mine_of(part, comm.rank, data)))
        view.buffer.history = histories.of_data(data)
        return view

    @classmethod
    def _range(cls, numbers: range, dtype: np.dtype) -> Any:
        comm = communicator()
        part = cls._divided((len(numbers),), comm)
        held = part.held(comm.rank)[0]
        if len(held) != 1:
            return None
        mine = numbers[held[0][0] : held[0][1]]
        local = cls.inner._range(mine, dtype)
        if local is None:
            local = cls.inner._upload(np.arange(mine.start, mine.stop, mine.step, dtype=dtype))
        view = cls._of_local(comm, part, local)
        view.buffer.history = histories.of_data(numbers)
        return view

    @classmethod
    def _download(cls, view: DView) -> np.ndarray:
        """The contents, on all processes."""
        from mirabelle.arraytypes.distributed.execution import brought_together

        if not view.size:
            return np.empty(view.shape, view.dtype)
        whole = brought_together(view)
        carrier = view.buffer.comm._carriers.get(cls.inner)
        if carrier is not None:
            carrier.reach()
        found = cls.inner._download(whole)
        if found.shape != view.shape:
            found = np.array(np.broadcast_to(found, view.shape))
        return found

    def _read(self) -> np.ndarray:
        from mirabelle.arraytypes.distributed.combining import read

        found = None if self.ndim else read(type(self).family, verbs.tree(self))
        if found is None:
            return super()._read()
        scalar_access("Reading", self.place, gated=False)
        return found

    @classmethod
    def _fetched(cls, source: Any, view: Any) -> Any:
        if issubclass(source, DArray):
            # From one type of local arrays to another: each process moves its own part.
            found = evaluated_whole(view)
            buffer = found.buffer
            return cls._of_local(buffer.comm, buffer.partition, cls.inner._fetched(source.inner, buffer.local))
        if source is cls.inner:
            comm = communicator()
            part = cls._divided(view.shape, comm)
            local = cls.inner._empty(part.local_shape(comm.rank), view.dtype)
            copy_mine(cls.inner, part, comm.rank, view, local)
            return cls._of_local(comm, part, local)
        return cls._upload(source._download(view))

    @classmethod
    def _copy_into(cls, dest: DView, source: DView) -> None:
        from mirabelle.arraytypes.distributed.execution import copy_view

        copy_view(dest, source)

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        return Leaf(cls._upload(x))

    @classmethod
    def _reshaped(cls, x: Any, shape: tuple[int, ...]) -> Any:
        from mirabelle.arraytypes.distributed.moving import reshaped

        return wrap(cls, Leaf(reshaped(verbs.leaf_of(x).view, shape)))

    @classmethod
    def _standing(cls, view: DView) -> DView:
        """Of memory that parts of another shape would cut, a copy.

        (All of a buffer either way: what is written to other memory on one process, because others read it
        there, is divided as what is written in place elsewhere.)
        """
        if view.whole or not view.shows_all:
            return view
        buffer, part = view.buffer, view.partition
        if part is None:
            from mirabelle.arraytypes.distributed.moving import reshaped

            return reshaped(buffer.whole(), view.shape)
        made = cls._of_local(buffer.comm, part, buffer.local.reshape(part.local_shape(buffer.comm.rank)))
        made.buffer.history = buffer.history
        return made

    @classmethod
    def joins(cls, other: type[AbstractArray]) -> bool:
        """May an array of this family, the same on all processes, be divided unasked? (None: NumPy's.)"""
        return other is cls.inner or (other is None and cls.inner.home.rank < 2)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self).family, verbs.fetch(self))


def make_family(inner: Any) -> Any:
    """The type `DArray[inner]`, and that of its views."""
    with making:
        return _families.get(inner) or _made(inner)


def _made(inner: Any) -> Any:
    name = f"DArray[{inner.__name__}]"
    family: Any = ArrayMeta(
        name,
        (DArray,),
        {
            "__slots__": (),
            "__module__": "mirabelle",
            "__qualname__": name,
            "__doc__": DArray.__doc__,
            "inner": inner,
            "home": distributed(inner.home),
            "_brief_trees": max(DArray._brief_trees, inner._brief_trees),
        },
    )
    family.view_type = type(f"{inner.__name__}DView", (DView,), {"__slots__": (), "family": family})
    VIEWS[family.view_type] = family
    _families[inner] = family
    return family


@verbs.numpy_view.method
def _(x: DArray, dtype: Any = None, copy: Any = None) -> np.ndarray:
    raise PlaceError(
        f"{type(x).__name__} of shape {x.shape} is divided over {x.communicator.size} process(es), and "
        "nothing brings it together unasked. Fetch it on all of them with `mb.to_numpy(x)`, or take this "
        "one's part: `np.asarray(x.local)`."
    )


def evaluated_view(x: Any) -> Any:
    """The view of a distributed array, evaluated, and no longer waiting for terms of others."""
    view = verbs.leaf_of(x).view
    if view.buffer.partition.partial:
        from mirabelle.arraytypes.distributed.combining import resolve

        resolve(view.buffer)
    return view


def evaluated_whole(view: DView) -> DView:
    """A view that is all of its buffer, with the contents of another."""
    if view.whole:
        return view
    from mirabelle.arraytypes.distributed.execution import copied_view

    return copied_view(view)


def place_of(held: tuple[tuple[int, int], ...], a: int, b: int) -> tuple[int, int]:
    """Where places a to b lie in what holds these pieces."""
    low = place_in(held, a)
    return low, low + b - a


def mine_of(part: Partition, rank: int, data: np.ndarray) -> np.ndarray:
    """A process's part of data that all have."""
    index: list[Any] = []
    for held in part.held(rank):
        index.append(slice(*held[0]) if len(held) == 1 else held)
    if all(isinstance(i, slice) for i in index):
        return data[(*index, Ellipsis)]
    for d, held in enumerate(part.held(rank)):
        places = np.concatenate([np.arange(a, b) for a, b in held] or [np.empty(0, np.int64)])
        data = np.take(data, places.astype(np.int64), axis=d)
    return data


def copy_mine(inner: Any, part: Partition, rank: int, whole: Any, local: Any) -> None:
    """Copy a process's part of memory that all have to its own."""
    held = part.held(rank)
    for box in itertools.product(*held):
        to = tuple(slice(*place_of(h, a, b)) for h, (a, b) in zip(held, box, strict=True))
        of = tuple(itertools.starmap(slice, box))
        inner._copy_into(local[(*to, Ellipsis)], whole[(*of, Ellipsis)])
