"""Is a graph being recorded? What writes must know: memory that the graph was given is written where it is."""

from __future__ import annotations

import threading
from typing import Any

from mirabelle.dispatch import native
from mirabelle.dispatch.tree import Leaf

# The recordings that are open, of all threads: writes look at this list where they would use other memory.
active: list[Any] = []
# Who wants to know which arrays are about to be written: the bodies of loops, while they are captured.
watchers: list[Any] = []
native.tell(recordings=active, watchers=watchers)


def current() -> Any:
    """This thread's recording; None if there is none."""
    me = threading.get_ident()
    return next((r for r in active if r.thread == me), None)


def stays(leaf: Leaf) -> bool:
    """Must this memory be written where it is, because it was there before the recording?"""
    recorder = current()
    return recorder is not None and recorder.concerns(leaf.view) and not recorder.made_here(leaf.view)
