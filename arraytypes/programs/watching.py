"""Which arrays of a program a function writes to while it is captured."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Node
from mirabelle.arraytypes.programs.lateness import written_down
from mirabelle.arraytypes.programs.traced import Traced, _names, view_of_node
from mirabelle.arraytypes.random.bitgenerator import compiling
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


class _Entered(threading.local):
    """How many functions have been captured within programs of this thread."""

    functions = 0


entered = _Entered()


class Within:
    """A function that is captured within a program.

    To random generators it is a program of its own: those made around it would give the same numbers each time.
    """

    __slots__ = ("program",)

    def __init__(self, program: Any) -> None:
        self.program = program


def current_program() -> Any:
    """What stands for the program that is being compiled, whatever is captured within it."""
    program = compiling.get()
    return program.program if isinstance(program, Within) else program


class Watch:
    """The arrays of the surrounding program that a function writes to while it is captured."""

    def __init__(self) -> None:
        # What is made from here on is the function's own.
        self.first = next(_names)
        self.serial = next(graph._serials)
        self.before: dict[int, tuple[weakref.ref[Any], Node]] = {}
        self.touched: set[int] = set()

    def note(self, root: Any) -> None:
        if not isinstance(root, Traced):
            return
        self.touched.add(id(root))
        known = self.before.get(id(root))
        if known is not None and known[0]() is root:
            return
        if verbs.leaf_of(root).view.buffer.name < self.first:
            self.before[id(root)] = weakref.ref(root), root.node

    def refuse_dual(self, x: Any) -> None:
        """An error for dual numbers of the surrounding program, which are being written to."""
        root = root_of(x._value)
        if isinstance(root, Traced) and verbs.leaf_of(root).view.buffer.name < self.first:
            raise TraceError(
                "The body of a loop, or of a branch, writes to an array with derivatives that is not part "
                f"of its state, in {shown_line(user_line(3))}. Make it part of the state: `mb.fori_loop(0, "
                "n, lambda i, state: ..., (u, total))`, with the new `u` among what the body returns."
            )

    def __enter__(self) -> Watch:
        entered.functions += 1
        self.token = compiling.set(Within(current_program()))
        # (Of a body of a loop, messages are made that somebody needs, as all else is.)
        self.messages = written_down.set(None)
        recording.watchers.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        recording.watchers.remove(self)
        written_down.reset(self.messages)
        compiling.reset(self.token)

    def found(self) -> list[tuple[Any, Node]]:
        """The arrays that were written, with their values before."""
        alive = [(ref(), node) for ref, node in self.before.values()]
        return [(root, node) for root, node in alive if root is not None]


def hold(root: Any, node: Node) -> None:
    """Let an array hold a value, in memory of its own."""
    root._node = Leaf(view_of_node(type(root).family, node))
