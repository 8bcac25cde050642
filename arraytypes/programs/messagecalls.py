"""Messages in programs: what is sent and what comes are values, and they travel while other steps run.

A delivery is two calls: one begins it, where the program writes it down, and one ends it. The second has no
place of its own in the program: it stands just before the first step that needs what came (`lateness.py`). A
plan makes steps of them whose memory is its own (`exchanging.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import MESSAGES, Communicator
from mirabelle.arraytypes.distributed.localmessages import (
    Delivery,
    combined_terms,
    delivered,
    terms_of_all,
    together,
    travels,
)
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import TOKEN, Node, Slot, call_node, result_node
from mirabelle.arraytypes.programs.lateness import written_down
from mirabelle.arraytypes.programs.partmessages import leave
from mirabelle.arraytypes.programs.traced import Traced, family_for, handle
from mirabelle.dispatch import verbs


@delivered.method
def _(lead: Traced, delivery: Delivery, arrays: Any, /) -> list[Any]:
    """Record a delivery."""
    family = type(lead).family
    # (In memory of their own, one element after the other.)
    copies = [verbs.materialize(verbs.copy(verbs.adapt(family, verbs.dense(x)))) for x in arrays]
    return recorded(family, delivery, [verbs.leaf_of(x).view.node for x in copies])


def recorded(family: Any, delivery: Delivery, given: Sequence[Node]) -> list[Any]:
    """What comes by a delivery of values, as arrays."""
    leave()
    slots = tuple([Slot(i) for i in range(len(given) + 1)])
    if written_down.get() is None and not delivery.receives:
        raise TraceError(
            f"In {shown_line(user_line())}, in the body of a loop or of a branch, this process sends arrays, "
            "and gets none: bodies make what their results need. Let each process get something, or write it "
            "outside of the body."
        )
    begun = call_node("send", delivery.word, ((delivery, *slots[:-1]), {}), tuple(given), (TOKEN,))
    # (What is sent is kept, too, until it has left.)
    operands = (result_node(begun, 0), *given)
    ended = call_node("receive", "receive", ((delivery, *slots), {}), operands, (*delivery.landing, TOKEN))
    _note(result_node(ended, len(delivery.landing)))
    return [handle(family, result_node(ended, i)) for i in range(len(delivery.landing))]


def exchanged(sends: Mapping[int, Any], comm: Communicator) -> dict[int, Any]:
    """`mb.distributed.exchange` while a function is captured: who sends what is agreed upon now, by all."""
    ranks = sorted(sends)
    families = {q: leaf_family(type(sends[q])) for q in ranks}
    inner = {q: getattr(family, "inner", family) for q, family in families.items()}
    said = comm.allgather_object({q: (inner[q], sends[q].shape, sends[q].dtype.str) for q in ranks})
    found: dict[int, Any] = {}
    # (One type at a time, in the same order everywhere: an engine takes some as they are, and some not.)
    for place in sorted({f for what in said for f, _, _ in what.values()}, key=lambda f: str(f.__name__)):
        comm.prepare(place)
        given = [q for q in ranks if inner[q] is place]
        coming = [q for q, what in enumerate(said) if comm.rank in what and what[comm.rank][0] is place]
        shapes = [(tuple(said[q][comm.rank][1]), np.dtype(said[q][comm.rank][2])) for q in coming]
        delivery = Delivery(
            comm,
            {q: (i, 0, _length(sends[q].shape)) for i, q in enumerate(given)},
            shapes,
            {q: (i, 0, _length(shape)) for i, (q, (shape, _)) in enumerate(zip(coming, shapes, strict=True))},
            MESSAGES,
        )
        family = family_for(place)
        copies = [verbs.materialize(verbs.copy(verbs.adapt(family, verbs.dense(sends[q])))) for q in given]
        nodes = [verbs.leaf_of(x).view.node for x in copies]
        found |= dict(zip(coming, recorded(family, delivery, nodes), strict=True))
    return {q: found[q] for q in sorted(found)}


def _length(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1


@together.method
def _(x: Traced, comm: Any, op: Any, /) -> Any:
    """Record that terms are combined."""
    family = type(x).family
    if travels(getattr(family, "inner", family), comm, x):
        mine = verbs.materialize(verbs.copy(x))
        came = recorded(family, terms_of_all(comm, op, x), [verbs.leaf_of(mine).view.node])
        return combined_terms(comm, op, mine, came)
    leave()
    node = verbs.leaf_of(verbs.copy(x)).view.node
    outputs = ((node.shape, node.dtype),)
    call = call_node("combine", f"allreduce {op}", ((comm, op, Slot(0)), {}), (node,), outputs)
    _note(result_node(call, 0))
    return handle(family, result_node(call, 0))


def _note(result: Node) -> None:
    noted = written_down.get()
    if noted is not None:
        noted.append(result)
