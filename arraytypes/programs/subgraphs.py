"""Graphs within a graph: what a loop does in each trip, what a branch does.

A function is captured while another one is: what it did is cut off at the values of the surrounding graph,
which are operands. The rest is planned by itself when it is first run.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.graph import (
    Call,
    Data,
    Empty,
    Input,
    Map,
    Node,
    Part,
    Result,
    input_node,
    rewritten,
)

# What is decided about the program that is being compiled (see deciding.py).
deciding: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_deciding", default=None)


class Subgraph:
    """Values computed from inputs alone.

    `runs` are what runs it on each type of arrays, made when it is first run there; `decided` is what is
    decided about the program that it is part of.
    """

    __slots__ = ("decided", "inputs", "lock", "outputs", "runs")

    def __init__(self, inputs: list[Input], outputs: tuple[Node, ...]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.decided = deciding.get()
        self.runs: dict[Any, Any] = {}
        self.lock = threading.Lock()

    def runner(self, inner: Any, owned: dict[int, int] | None = None) -> Any:
        """What computes the outputs on arrays of a type.

        `owned` says for outputs which input they are the new contents of: they may be written to its memory.
        (It is the same in all calls.)
        """
        found = self.runs.get(inner)
        if found is None:
            with self.lock:
                found = self.runs.get(inner)
                if found is None:
                    found = self.runs[inner] = self._made(inner, owned)
        return found

    def _made(self, inner: Any, owned: dict[int, int] | None) -> Any:
        from mirabelle.arraytypes.programs.running import plan_runner

        token = deciding.set(self.decided)
        try:
            outputs, plan = self.planned(owned)
            if self.decided is not None:
                self.decided.inside(graph.ordered(outputs), inner)
            return plan_runner(inner, plan)
        finally:
            deciding.reset(token)

    def planned(self, owned: dict[int, int] | None) -> tuple[tuple[Node, ...], Any]:
        """The values after all passes, and the plan that computes them."""
        from mirabelle.arraytypes.programs.passes import chosen_passes
        from mirabelle.arraytypes.programs.planning import planned

        with graph.undisturbed():
            outputs = self.outputs if self.decided is None else self.decided.rewritten(self.outputs)
            outputs = chosen_passes().applied(outputs)
            return outputs, planned(outputs, self.inputs, owned)

    @property
    def nodes(self) -> list[Node]:
        """All nodes, operands first."""
        return graph.ordered(self.outputs)


def substituted(outputs: tuple[Node, ...], values: dict[int, Node]) -> tuple[Node, ...]:
    """Values with others in place of some inputs, given by their ids."""
    return rewritten(outputs, lambda node: values.get(id(node), node))


def cut(
    outputs: Iterable[Node], inputs: Sequence[Input], start: int, hoisted: Callable[[bool], bool]
) -> tuple[list[Input], tuple[Node, ...], list[Node]]:
    """Values as a graph of its own: its inputs, the values, and what the further inputs are in the outer graph.

    Nodes whose serial is at least `start` were made within. Those that do not depend on the inputs are computed
    outside, once, if `hoisted` says so, which is told whether that includes calls of a library.
    """
    outputs = tuple(outputs)
    own = {id(x) for x in inputs}
    # Of each node made within: whether it depends on the inputs, and whether a library is called for it.
    depends: dict[int, bool] = {}
    calls: dict[int, bool] = {}
    for node in in_order(outputs, lambda x: x.operands if x.serial >= start else ()):
        if node.serial >= start:
            below = node.operands
            depends[id(node)] = id(node) in own or any(depends.get(id(x), False) for x in below)
            calls[id(node)] = type(node) is Call or any(calls.get(id(x), False) for x in below)

    def is_operand(node: Node) -> bool:
        if depends.get(id(node), False):
            return False
        if isinstance(node, (Data, Empty, Part, Call)) or (isinstance(node, Map) and not node.operands):
            # (Views cost nothing, and what a library is called for are its results.)
            return False
        if isinstance(node, Result):
            return node.operands[0].serial < start or hoisted(True)
        return node.serial < start or hoisted(calls[id(node)])

    wanted = in_order(outputs, lambda x: () if is_operand(x) else x.operands)
    # In the order of the program, which says what a write may overwrite.
    wanted.sort(key=lambda x: x.serial)
    made_inputs = [input_node(i, x.shape, x.dtype, x.name) for i, x in enumerate(inputs)]
    for old, new in zip(inputs, made_inputs, strict=True):
        new.line = old.line
    made: dict[int, Node] = {id(x): y for x, y in zip(inputs, made_inputs, strict=True)}
    operands: list[Node] = []
    for node in wanted:
        if id(node) not in made and is_operand(node):
            operands.append(node)
            new = input_node(len(made_inputs), node.shape, node.dtype, f"operand{len(operands) - 1}")
            new.line = node.line
            made_inputs.append(new)
            made[id(node)] = new
    _rebuild(wanted, made)
    return made_inputs, tuple([made[id(x)] for x in outputs]), operands


def copied(outputs: tuple[Node, ...], values: dict[int, Node]) -> tuple[Node, ...]:
    """Values computed once more, in the same order, with others in place of some, given by their ids."""
    made = dict(values)
    _rebuild(
        sorted(in_order(outputs, lambda x: () if id(x) in made else x.operands), key=lambda x: x.serial), made
    )
    return tuple([made[id(x)] for x in outputs])


def _rebuild(nodes: list[Node], made: dict[int, Node]) -> None:
    """Make nodes again that are not made yet, in their order."""
    for top in nodes:
        for node in in_order((top,), lambda x: () if id(x) in made else x.operands):
            if id(node) in made:
                continue
            before = next(graph._serials)
            new = node.rebuilt(tuple([made[id(x)] for x in node.operands]))
            if new is not node and new.serial > before:
                new.line = node.line
            made[id(node)] = new


def in_order(tops: Iterable[Node], below: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Nodes that some depend on, as far as `below` goes, operands first."""
    found: list[Node] = []
    seen: set[int] = set()
    for top in tops:
        if id(top) in seen:
            continue
        seen.add(id(top))
        stack = [(top, iter(below(top)))]
        while stack:
            node, rest = stack[-1]
            for x in rest:
                if id(x) not in seen:
                    seen.add(id(x))
                    stack.append((x, iter(below(x))))
                    break
            else:
                found.append(node)
                stack.pop()
    return found
