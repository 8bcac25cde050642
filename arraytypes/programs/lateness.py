"""Messages in the order of a program: which of them are made, and when those that come are waited for."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence

from mirabelle.arraytypes.programs.graph import (
    MESSAGES,
    Call,
    Node,
    Result,
    Slot,
    call_node,
    result_node,
)

# The messages that were written down since the capture of a function began: they are made, also where nobody
# here needs what comes, because another process needs what is sent.
written_down: contextvars.ContextVar[list[Node] | None] = contextvars.ContextVar(
    "mirabelle_messages", default=None
)


@contextlib.contextmanager
def writing_down(new: list[Node]) -> Iterator[None]:
    """Within the block, messages are noted here."""
    token = written_down.set(new)
    try:
        yield
    finally:
        written_down.reset(token)


def after(outputs: tuple[Node, ...], messages: list[Node]) -> tuple[Node, ...]:
    """The outputs of a program that makes these messages, too."""
    if not messages or not outputs:
        return outputs
    first, *rest = outputs
    operands = (first, *dict.fromkeys(messages))
    call = call_node("after", "after", ((Slot(0),), {}), operands, ((first.shape, first.dtype),))
    return (result_node(call, 0), *rest)


def results_after(outputs: Sequence[Node]) -> list[Node]:
    """The values that results are, which are there after messages: in memory of their own, as results are."""
    calls = [x.operands[0] for x in outputs if type(x) is Result]
    return [call.operands[0] for call in calls if type(call) is Call and call.kind == "after"]


def late(nodes: list[Node]) -> list[Node]:
    """Nodes in their order, but what waits for messages comes as late as the messages after them allow.

    All that needs nothing of them is computed while they travel.
    """
    if not any(type(x) is Call and x.kind == "receive" for x in nodes):
        return nodes
    found: list[Node] = []
    waiting: dict[int, Node] = {}  # ends of deliveries, and what needs these
    for x in nodes:
        begins = type(x) is Call and x.kind in MESSAGES
        if type(x) is Call and x.kind == "receive":
            waiting[id(x)] = x
        elif waiting and any(id(a) in waiting for a in x.operands):
            waiting[id(x)] = x
            if begins:
                found += waiting.values()
                waiting.clear()
        else:
            found.append(x)
    return [*found, *waiting.values()]


def messages_of(nodes: Sequence[Node]) -> list[Node]:
    """The calls that begin messages, or combine terms, in order: all processes make them in this order."""
    return [x for x in nodes if type(x) is Call and x.kind in MESSAGES and x.kind not in ("receive", "after")]
