"""Is a graph being recorded? What writes must know: memory that the graph was given is written where it is."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.tree import Leaf

# The recordings that are open, of all threads: writes look at this list where they would use other memory.
active: list[Any] = []


def current() -> Any:
    """This thread's recording; None if there is none."""
    me = threading.get_ident()
    return next((r for r in active if r.thread == me), None)


def stays(leaf: Leaf) -> bool:
    """Must this memory be written where it is, because it was there before the recording?"""
    recorder = current()
    return recorder is not None and recorder.concerns(leaf.view) and not recorder.made_here(leaf.view)


def refuse_to_move(leaf: Leaf) -> NoReturn:
    """The error for a write that would go to other memory, which a replay could not do again."""
    raise DeviceError(
        f"Inside mb.capture() an array of shape {leaf.shape} is written whose old contents somebody still reads: an "
        "expression that waits to be evaluated, another array that was assigned from it, or another library. So the "
        "write would go to other memory, and a replay could not do it again. Evaluate what reads it before, "
        "`mb.materialize(y)`, let go of it, `del y`, or write to a copy, `x = mb.copy(x)`."
    )
