"""Messages between parts of divided arrays, while a function of these is captured: they wait for company.

    h, g = u.halo(1), v.halo(2)
    f(h) + g

sends nothing until `h` is read: what both need travels in one message to each neighbour. A cell whose contents
have not come lets the messages go when somebody asks for its value, or writes to it. All processes do the same
to the same arrays, and so send the same together; before a program first runs they compare it.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.localmessages import Delivery
from mirabelle.arraytypes.distributed.marks import mixed
from mirabelle.arraytypes.programs.graph import Node, c_strides, empty_node, part_node, update_node
from mirabelle.arraytypes.programs.lateness import written_down
from mirabelle.arraytypes.programs.traced import Cell, store

BYTE = np.dtype(np.uint8)
# Elements of any dtype may begin here.
ALIGNMENT = 16
# The messages that wait in the function that is being captured.
_waiting: contextvars.ContextVar[list[Begun] | None] = contextvars.ContextVar(
    "mirabelle_part_messages", default=None
)


@contextlib.contextmanager
def in_company() -> Iterator[None]:
    """Messages that begin within the block wait for others, until what one brings is needed."""
    token = _waiting.set([])
    try:
        yield
        leave()
    finally:
        _waiting.reset(token)


def leave() -> None:
    """Let what waits be sent, here in the order of the program."""
    begun = _waiting.get()
    if begun:
        together = list(begun)
        begun.clear()
        _sent(together)


class _Coming(Cell):
    """Memory whose contents have not come yet."""

    __slots__ = ()

    @property
    def value(self) -> Node:  # type: ignore[override]
        leave()
        return _VALUE.__get__(self)  # type: ignore[no-any-return]

    @value.setter
    def value(self, new: Node) -> None:
        leave()
        _VALUE.__set__(self, new)


_VALUE: Any = Cell.__dict__["value"]


class Begun:
    """The messages of one array: the values that go, and the views that those fill that come."""

    def __init__(self, messages: Any, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        self.messages = messages
        self.sends: dict[int, Node] = {q: v.node for q, v in sends.items()}
        self.receives = dict(receives)
        self.cells: dict[int, Cell] = {}

    @property
    def between(self) -> tuple[Any, Any]:
        """The processes, and the type of what goes between them."""
        return self.messages.comm, self.messages.inner

    def wait(self) -> None:
        """What comes is there when somebody needs it."""
        # (Those to which nothing comes know what it is for, and send when the others do.)
        views = [*self.receives.values(), *[v for v in (self.messages.out,) if v is not None]]
        begun = _waiting.get()
        if begun is None or written_down.get() is None:
            _sent([self])  # (in the body of a loop: it stays there)
            return
        begun.append(self)
        for view in views:
            self.cells[id(view.buffer)] = view.buffer
            view.buffer.__class__ = _Coming


def _sent(begun: list[Begun]) -> None:
    for b in begun:
        for cell in b.cells.values():
            cell.__class__ = Cell
    for between in dict.fromkeys([b.between for b in begun]):
        _delivered(*between, [b for b in begun if b.between == between])


def _delivered(comm: Communicator, family: Any, begun: list[Begun]) -> None:
    """One message to each process, and one from each, of several arrays."""
    from mirabelle.arraytypes.programs.messagecalls import recorded

    sends: dict[int, list[Node]] = {}
    receives: dict[int, list[Any]] = {}
    for b in begun:
        for q, node in b.sends.items():
            sends.setdefault(q, []).append(node)
        for q, view in b.receives.items():
            receives.setdefault(q, []).append(view)
    if not sends and not receives:
        return
    given = [_packed(sends[q]) for q in sorted(sends)]
    found = {q: _Message(receives[q]) for q in sorted(receives)}
    first, *others = [b.messages.mark for b in begun]
    delivery = Delivery(
        comm,
        {q: (i, 0, _length(x.shape)) for i, (q, x) in enumerate(zip(sorted(sends), given, strict=True))},
        [(m.shape, m.dtype) for m in found.values()],
        {q: (i, 0, _length(m.shape)) for i, (q, m) in enumerate(found.items())},
        mixed(first, *others),
    )
    comm.prepare(family.inner)
    for (q, m), x in zip(found.items(), recorded(family, delivery, given), strict=True):
        for view, at in zip(receives[q], m.offsets, strict=True):
            store(view, part_node(x.node, at, view.shape, c_strides(view.shape, view.dtype), view.dtype))


def _length(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1


class _Message:
    """How the pieces of a message lie: one as it is, several one after the other, those of several dtypes as
    bytes."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        dtypes = {x.dtype for x in pieces}
        self.dtype = dtypes.pop() if len(dtypes) == 1 else BYTE
        align = 1 if not dtypes else ALIGNMENT
        self.offsets, end = [], 0
        for x in pieces:
            self.offsets.append(end)
            end += -(-x.nbytes // align) * align
        self.shape = pieces[0].shape if len(pieces) == 1 else (end // self.dtype.itemsize,)


def _packed(nodes: list[Node]) -> Node:
    """The values of a message, in memory of their own."""
    message = _Message(nodes)
    made = empty_node(message.shape, message.dtype)
    for x, at in zip(nodes, message.offsets, strict=True):
        made = update_node(made, at, x.shape, c_strides(x.shape, x.dtype), x.dtype, x)
    return made


__all__ = ["Begun", "in_company", "leave"]
