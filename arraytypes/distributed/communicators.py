"""Communicators: a group of processes that run the same program, each with its part of the data.

An engine (MPI, NCCL, sockets between Dask's workers) gives a subclass with a few methods: how messages start,
and how small Python objects are shared. The rest is written here in terms of these, and an engine replaces
what it does better. Everything here is *collective*: all members call it, in the same order.

Messages are views of contiguous memory: NumPy's arrays, or views of another type that the engine `takes`.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.distributed.marks import marked
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.generic import by_type

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray

# How elements combine, by the name of the reduction.
UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "any": np.logical_or,
    "all": np.logical_and,
}


# What operations are called that say no more of themselves.
MESSAGES, GATHERING = marked("exchange of messages"), marked("gathering of parts")
OBJECTS, BARRIER = marked("gathering of objects"), marked("barrier")


def mark_of_reduction(op: str, data: Any) -> int:
    """The mark of a reduction of views."""
    key = op, data.dtype, data.shape
    found = _reductions.get(key)
    if found is None:
        if len(_reductions) > 4096:
            _reductions.clear()
        found = _reductions[key] = marked("reduction", op, "of", data.dtype, "of shape", data.shape)
    return found


_reductions: dict[Any, int] = {}


class Exchange:
    """Messages on their way. Keep what is sent unchanged, and do not read what is received, until `wait`."""

    __slots__ = ()

    def done(self) -> bool:
        """Have all messages arrived? (It does not wait; asking keeps them moving.)"""
        return True

    def wait(self) -> None:
        """Wait until all messages have arrived, or raise what happened to one of the other processes."""


class Repeated:
    """The same messages again and again, of the same memory: some exchanges one after another.

    They are the messages that `start` sends, whatever the other ends call.
    """

    __slots__ = ("_comm", "_exchanges", "_marks", "_under_way")

    def __init__(
        self,
        comm: Communicator,
        exchanges: Sequence[tuple[Mapping[int, Any], Mapping[int, Any]]],
        marks: Sequence[int],
    ) -> None:
        self._comm = comm
        self._exchanges = exchanges
        self._marks = marks
        self._under_way: list[Exchange] = []

    def start(self) -> None:
        """Send what is in the memory now."""
        self._under_way = [
            self._comm.start(*e, mark) for e, mark in zip(self._exchanges, self._marks, strict=True)
        ]

    def wait(self) -> None:
        """Wait until all messages have arrived."""
        for exchange in self._under_way:
            exchange.wait()


class Communicator:
    """A group of processes. `rank` is this one's number, `size` how many there are.

    Messages between two members arrive in the order in which they were sent.

    >>> import mirabelle as mb
    >>> comm = mb.distributed.communicator()
    >>> comm.rank, comm.size
    (0, 1)
    """

    __module__ = "mirabelle.distributed"

    # What the engine is called.
    engine = "none"
    rank: int = 0
    size: int = 1
    # What sends memory of a local type as it is, where it is another: by the type. (See `prepare`.)
    _carriers: dict[Any, Communicator | None] = {}  # noqa: RUF012
    # For one of some members: the communicator of all, and which of them.
    _whole: tuple[Communicator, tuple[int, ...]] | None = None

    # What an engine gives

    def takes(self, kind: type) -> bool:
        """Can views of this type be sent and received as they are? (Others go by way of the host.)"""
        return issubclass(kind, np.ndarray)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        """Send contiguous views to ranks, and have others filled from ranks: {rank: view} each.

        Both ends know the sizes. A rank may appear on both sides; messages to oneself are not allowed. What is
        sent with another mark (see marks.py), or of another size, raises a CommunicationError where it arrives,
        and at the other end as soon as that waits for anything. What was to be filled holds anything then.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement start.")

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        """A small Python object of each member, in the order of ranks, on all of them.

        `mark` says what the objects are of: members that gather others do something else.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement allgather_object.")

    # What follows from it

    def repeated(
        self, exchanges: Sequence[tuple[Mapping[int, Any], Mapping[int, Any]]], marks: Sequence[int] = ()
    ) -> Repeated:
        """Exchanges, each as `start` takes it, that are to be started together again and again."""
        return Repeated(self, exchanges, marks or [MESSAGES] * len(exchanges))

    def exchange(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> None:
        """`start`, and wait."""
        self.start(sends, receives, mark).wait()

    def bcast_object(self, x: Any, root: int = 0) -> Any:
        """A small Python object of one member, on all of them."""
        return self.allgather_object(x if self.rank == root else None)[root]

    def barrier(self) -> None:
        """Wait until all members are here."""
        self.allgather_object(None)

    def allgather(self, mine: Any, parts: Sequence[Any], mark: int = GATHERING) -> None:
        """Fill `parts[r]` with what rank r gives as `mine`; parts[rank] is filled by the caller."""
        others = [r for r in range(self.size) if r != self.rank]
        self.exchange(dict.fromkeys(others, mine), {r: parts[r] for r in others}, mark)

    def broadcast(self, data: Any, root: int) -> None:
        """Fill a view with that of the same shape on `root`."""
        mark = marked("broadcast from rank", root)
        if self.rank == root:
            self.exchange({r: data for r in range(self.size) if r != root}, {}, mark)
        else:
            self.exchange({}, {root: data}, mark)

    def allreduce(self, data: Any, op: str, mark: int = 0) -> bool:
        """Replace the elements of a view by those of all members combined. All members get the same bits.

        False where the engine cannot: nothing has happened then, on any member. `mark` says more of what is
        reduced than the operation and the view do.
        """
        ufunc = UFUNCS.get(op)
        if ufunc is None or not isinstance(data, np.ndarray):
            return False
        parts = [data if r == self.rank else np.empty_like(data) for r in range(self.size)]
        self.allgather(data, parts, mark or mark_of_reduction(op, data))
        total = parts[0].copy() if self.rank == 0 else parts[0]
        for part in parts[1:]:
            ufunc(total, part, out=total, casting="unsafe")
        data[...] = total
        return True

    def part(self, ranks: Sequence[int]) -> Communicator:
        """The communicator of some members, numbered in this order; only they call."""
        return Part(self, tuple(ranks))

    def failed(self, error: BaseException) -> None:
        """Tell the other members that this one goes no further: where they wait, they raise `RemoteError`.

        It is told by itself of exceptions that nothing catches, and by `mb.distributed.together`. Who calls it
        otherwise calls `settle` after it, with all the others.
        """

    def settle(self, x: Any) -> list[Any]:
        """`allgather_object` for the end of something that may have failed on some of the members.

        What was under way then is given up, and messages flow again.
        """
        return self.allgather_object(x)

    # Memory of cards

    def prepare(self, inner: type[AbstractArray]) -> None:
        """Find out together what sends memory of a local type. Called where the first array has such parts."""
        if inner in self._carriers:
            return
        self._carriers = {**self._carriers, inner: None}
        self._carriers[inner] = carrier_for(inner, self)

    def carrier(self, inner: type[AbstractArray]) -> Communicator | None:
        """The communicator of the same members that sends memory of a local type as it is.

        None where there is none: it goes by way of the host.
        """
        found = self._carriers.get(inner)
        if found is None and self._whole is not None and inner not in self._carriers:
            whole, ranks = self._whole
            other = whole._carriers.get(inner)
            if other is not None:
                found = self._carriers_of(inner, other.part(ranks))
        return found if found is not None else self if self.takes(view_type_of(inner)) else None

    def drop_carriers(self) -> None:
        """Give up what memory of cards was sent by: it may have been left half-way. Found anew when needed."""
        for found in self._carriers.values():
            if found is not None:
                found.close()
        self._carriers = {}

    def reach(self) -> None:
        """Wait until what this process was given is done, or raise what happened to others."""

    def close(self) -> None:
        """End it, where it holds something."""

    def look(self) -> None:
        """Raise what happened to the other members, if something did."""

    def _carriers_of(self, inner: Any, found: Communicator) -> Communicator:
        self._carriers = {**self._carriers, inner: found}
        return found

    def hurry(self) -> None:
        """Give messages under way a chance to move on. (Called between pieces of work.)"""

    def __repr__(self) -> str:
        return f"<communicator {self.engine}: rank {self.rank} of {self.size}>"


class Alone(Communicator):
    """The only process: nothing is ever sent."""

    engine = "alone"

    def takes(self, kind: type) -> bool:
        return True

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        assert not sends and not receives
        return Exchange()

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        return [x]

    def allreduce(self, data: Any, op: str, mark: int = 0) -> bool:
        return True


class Part(Communicator):
    """Some members of another communicator, through its messages."""

    def __init__(self, whole: Communicator, ranks: tuple[int, ...]) -> None:
        self.whole = whole
        self.ranks = ranks
        self.engine = whole.engine
        self.rank = ranks.index(whole.rank)
        self.size = len(ranks)

    def takes(self, kind: type) -> bool:
        return self.whole.takes(kind)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        ranks = self.ranks
        return self.whole.start(
            {ranks[r]: view for r, view in sends.items()},
            {ranks[r]: view for r, view in receives.items()},
            mark,
        )

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        return _gathered_objects(self, x, mark)


def _gathered_objects(comm: Communicator, x: Any, mark: int) -> list[Any]:
    """`allgather_object` by messages: first how long each is, then what it says."""
    import pickle

    text = np.frombuffer(pickle.dumps(x), np.uint8)
    sizes = [np.empty(1, np.int64) for _ in range(comm.size)]
    sizes[comm.rank][0] = len(text)
    comm.allgather(sizes[comm.rank], sizes, mark)
    parts = [np.empty(int(n[0]), np.uint8) for n in sizes]
    parts[comm.rank] = text
    comm.allgather(text, parts, mark)
    return [pickle.loads(p.tobytes()) for p in parts]


def view_type_of(inner: Any) -> type:
    """The type of the views of a local type's memory, as engines are asked about it."""
    found = getattr(inner, "view_type", None)
    return found if found is not None else np.ndarray if inner.home.rank < 2 else object  # type: ignore[no-any-return]


@by_type
def carrier_for(inner: Any, comm: Communicator) -> Any:
    """What sends memory of a local type between all members of `comm`, who call this together; or None."""


@carrier_for.method
def _(inner: type[object], comm: Communicator) -> None:
    return None


# Which communicator is used

# Functions that find the communicator this process was started with, or None: engines add theirs.
finders: list[Callable[[], Communicator | None]] = []

_current: contextvars.ContextVar[Communicator | None] = contextvars.ContextVar(
    "mirabelle_communicator", default=None
)
_world: Communicator | None = None


def communicator() -> Communicator:
    """The communicator that new distributed arrays are made over.

    Under `mpiexec` (or `python -m mirabelle run`) all processes; else this process alone.

    Returns
    -------
    mb.distributed.Communicator
        It says which process this is (`rank`), and of how many (`size`).

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.distributed.communicator()
    <communicator alone: rank 0 of 1>
    """
    found = _current.get()
    return world() if found is None else found


def world() -> Communicator:
    """The communicator of all processes this one was started with."""
    global _world
    if _world is None:
        for find in finders:
            _world = find()
            if _world is not None:
                break
        else:
            _world = Alone()
    return _world


@contextlib.contextmanager
def use_communicator(comm: Communicator) -> Iterator[Communicator]:
    """Within the block, new distributed arrays are made over `comm`.

    Parameters
    ----------
    comm : Communicator
        The processes.

    Returns
    -------
    context manager
        It yields `comm`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.distributed.use_communicator(mb.distributed.communicator()) as comm:
    ...     comm.size
    1
    """
    if not isinstance(comm, Communicator):
        raise CommunicationError(
            f"{comm!r} is no communicator. Get one: mb.distributed.communicator(), or, from one of mpi4py's, "
            "`mb.distributed.mpi_communicator(comm)`."
        )
    token = _current.set(comm)
    try:
        yield comm
    finally:
        _current.reset(token)
