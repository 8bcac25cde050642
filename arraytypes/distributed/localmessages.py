"""Messages of local arrays: parts of them for other processes, and terms that all combine.

Compiled functions (`@mb.compile`) take part in both: what comes is a value of the program, and the messages are
on their way from where they are written down to where somebody first needs what came
(`programs/messagecalls.py`). All processes call these functions together, in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import DTypeLike
from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.distributed.combining import combined
from mirabelle.arraytypes.distributed.communicators import UFUNCS, Communicator, communicator
from mirabelle.arraytypes.distributed.marks import Unsaid, marked
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.elementwise import copied, leaf_family
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.generic import _of_its_own, generic
from mirabelle.dispatch.tree import Leaf


@dataclass(frozen=True, eq=False)
class Delivery:
    """Who gets which rows of what, and where what comes lands: known to this process beforehand.

    `sends` says for a rank which array it gets rows of, and from where to where; `receives` in which of the
    `landing` arrays (shape and dtype) what a rank sends is to lie, and where there. Made once, and called again
    and again, in compiled functions, too.

    >>> import mirabelle as mb
    >>> comm = mb.distributed.communicator()
    >>> nothing = mb.distributed.Delivery.of_rows(comm, {}, {}, (0, 2), mb.float64)
    >>> nothing(mb.zeros((3, 2))).shape
    (0, 2)
    """

    __module__ = "mirabelle"

    comm: Communicator
    sends: Mapping[int, tuple[int, int, int]]
    landing: Sequence[tuple[tuple[int, ...], np.dtype]]
    receives: Mapping[int, tuple[int, int, int]]
    mark: int
    # What it is called in programs; what all combine is counted apart.
    word: str = "send"

    @classmethod
    def of_rows(
        cls,
        comm: Communicator,
        sends: Mapping[int, tuple[int, int]],
        receives: Mapping[int, tuple[int, int]],
        shape: tuple[int, ...],
        dtype: DTypeLike,
        words: Sequence[Any] = ("rows",),
    ) -> Delivery:
        """The delivery of rows of one array: {rank: (first, end)} each.

        What comes is of `shape` and `dtype`; `words` say in errors what it is.
        """
        landing = [(tuple(shape), np.dtype(dtype))]
        return cls(
            comm,
            {r: (0, a, b) for r, (a, b) in sends.items()},
            landing,
            {r: (0, a, b) for r, (a, b) in receives.items()},
            marked(*words),
        )

    def __call__(self, x: AbstractArray) -> AbstractArray:
        """What comes, when rows of `x` are sent."""
        check_local(x, "A delivery")
        return delivered(root_of(x), self, [x])[0]

    def begin(self, inner: type[DenseArray], views: Sequence[Any]) -> Flight:
        """Send rows of contiguous views, and let what comes arrive."""
        landed = [inner._empty(shape, dtype) for shape, dtype in self.landing]
        messages = Messages(self.comm, inner, self.mark)
        messages.begin(
            {r: _rows(views[i], a, b) for r, (i, a, b) in self.sends.items() if b > a},
            {r: _rows(landed[i], a, b) for r, (i, a, b) in self.receives.items() if b > a},
        )
        return Flight(messages, landed)


class Flight:
    """A delivery on its way."""

    __slots__ = ("landed", "messages")

    def __init__(self, messages: Messages, landed: list[Any]) -> None:
        self.messages, self.landed = messages, landed

    def end(self) -> list[Any]:
        """The views of what came, once it is here and what was sent may be overwritten."""
        self.messages.finish()
        return self.landed


def _rows(view: Any, a: int, b: int) -> Any:
    return view if (a, b) == (0, view.shape[0] if view.ndim else 1) else view[a:b, ...]


def check_local(x: Any, what: str, whom: str = "") -> None:
    """A TypeError, unless it is an array of one process."""
    family = leaf_family(type(x)) if isinstance(x, AbstractArray) else None
    if family is None or family.home.rank == 3 or getattr(family, "inner", family).home.rank > 2:
        raise TypeError(
            f"{what} takes local arrays (x.local, x.halo(1), or any of one process), not a "
            f"{_of_its_own(type(x)).__name__}{whom}."
        )


@generic
def delivered(lead: Any, delivery: Delivery, arrays: Any, /) -> Any:
    """What came, as arrays like `lead`, after each process was sent its rows of `arrays`."""


@delivered.method
def _(lead: DenseArray, delivery: Delivery, arrays: Any, /) -> list[Any]:
    family = leaf_family(type(lead))
    views = [verbs.leaf_of(verbs.copy(verbs.dense(x))).view for x in arrays]
    return [wrap(family, Leaf(view)) for view in delivery.begin(family, views).end()]


def allreduce(x: AbstractArray, op: str = "sum", comm: Communicator | None = None) -> AbstractArray:
    """The elements of the local arrays of all processes combined, on each of them: the same bits everywhere.

    `op` is "sum", "prod", "min", "max", "any" or "all". Works in compiled functions, too.

    Parameters
    ----------
    x : array
        This process's term.
    op : str, default 'sum'
        "sum", "prod", "min", "max", "any" or "all".
    comm : Communicator or None
        The processes; None is `mb.distributed.communicator()`.

    Returns
    -------
    array
        Of the type, shape and dtype of `x`, also for "any" and "all"; in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.distributed.allreduce(mb.HostArray([1.0, 2.0]), "max"))
    [1. 2.]
    """
    if op not in REDUCTIONS:
        names = "'sum', 'prod', 'min', 'max', 'any' and 'all'"
        raise ValueError(f"mb.distributed.allreduce knows the operations {names}, and not {op!r}.")
    comm = communicator() if comm is None else comm
    check_local(x, "mb.distributed.allreduce")
    return copied(x) if comm.size == 1 else together(root_of(verbs.dense(x)), comm, op)


@generic
def together(x: Any, comm: Any, op: Any, /) -> Any:
    """The elements of all processes' arrays combined."""


@together.method
def _(x: DenseArray, comm: Any, op: Any, /) -> Any:
    family = leaf_family(type(x))
    return wrap(family, Leaf(combined_view(family, comm, op, verbs.leaf_of(verbs.copy(x)).view)))


# Between so few processes, and of so few bytes, terms travel in programs from each to all while steps run.
FEW, SMALL = 16, 1 << 13


def travels(inner: Any, comm: Communicator, x: Any) -> bool:
    """Do terms like this one leave in programs where they are written down, and are waited for later?

    Those of cards are combined by the cards themselves.
    """
    return bool(inner.home.rank < 2 and comm.size < FEW and 0 < x.size * x.dtype.itemsize <= SMALL)


def terms_of_all(comm: Communicator, op: str, x: Any) -> Delivery:
    """The delivery of each process's term to all others; they land by rank."""
    others, rows = [q for q in range(comm.size) if q != comm.rank], x.shape[0] if x.ndim else 1
    return Delivery(
        comm,
        dict.fromkeys(others, (0, 0, rows)),
        [(tuple(x.shape), np.dtype(x.dtype))] * len(others),
        {q: (i, 0, rows) for i, q in enumerate(others)},
        mark_of_terms(op, x),
        f"allreduce {op} of {x.dtype}{list(x.shape)}",
    )


def combined_terms(comm: Communicator, op: str, mine: Any, others: Sequence[Any]) -> Any:
    """The terms of all in the order of ranks, combined element by element."""
    terms = [*others[: comm.rank], mine, *others[comm.rank :]]
    combine = getattr(verbs, UFUNCS[op].__name__)
    return verbs.astype(functools.reduce(combine, terms), mine.dtype)


def combined_view(inner: Any, comm: Communicator, op: str, view: Any) -> Any:
    """The same of a view, whose memory may be written to."""
    if counters.active:
        counters.add(collectives=1)
    comm.prepare(inner)
    return combined(comm, inner, view, REDUCTIONS[op], mark_of_terms(op, view))


def mark_of_terms(op: str, of: Any) -> int:
    """What messages of a combination of local arrays are marked with."""
    return marked("mb.distributed.allreduce", op, "of", of.dtype, "of shape", of.shape, Unsaid("local arrays"))
