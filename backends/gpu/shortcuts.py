"""Statements that come back: what knows one again and launches it, in one straight line of Python.

`direct` walks a tree to find its plan, and asks the same of each part every time. For a statement that
comes back with arrays of the same layouts these questions are written out as a function, with the sigs and
layouts in it. If all are answered as they were, it launches, and the destination has its value; if one is
not, nothing has happened, and the tree is walked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirabelle.dispatch import counters, generic
from mirabelle.dispatch.tree import Broadcasted, Leaf, may_write

# What knows statements again: by the sig at the root and the size of the tree, the one that was met last.
known: dict[Any, Callable[[Any, Any], bool]] = {}
# Statements of one sig and size that take turns gain nothing: after so many turns none moves up any more.
_TURNS = 64


class Shortcut:
    """How the statements of a plan are known again. They are worth a function from some uses on."""

    __slots__ = ("function", "turns", "uses", "world")

    def __init__(self) -> None:
        self.uses = self.turns = 0
        self.world = -1
        self.function: Any = None

    def used(self, node: Any, leaf: Leaf, plan: Any, world: int) -> None:
        """The plan was found for `leaf[...] = node`, whose tree nobody else holds, in a
        world where `copyto` does what it does by default."""
        self.uses += 1
        if self.uses < 8 or self.turns >= _TURNS:
            return
        if self.world != world:
            self.world = world
            self.function = written(node, leaf, plan, world)
        if self.function is not None:
            self.turns += 1
            if len(known) > 1 << 12:
                known.clear()
            known[node.sig, node.size] = self.function


def written(root: Any, dest: Leaf, plan: Any, world: int) -> Any:
    """A function of a handle and a tree: was the statement known again, and launched? None for trees with
    parts that it would have to ask more about."""
    text = _Text(dest)
    if not text.node("node", root):
        return None
    space = {
        "Broadcasted": Broadcasted, "Leaf": Leaf, "may_write": may_write, "counters": counters,
        "generic": generic, "world": world, "run": plan.run, "layout": dest.view.layout,
        **text.space,
    }  # fmt: skip
    lines = [
        "def again(dest, node):",
        " if generic._world != world: return False",
        " leaf = dest._node",
        " if type(leaf) is not Leaf or leaf.foreign or leaf.root is not None or leaf.parts: return False",
        " if leaf.view._layout != layout: return False",
        *text.lines,
        f" if not may_write(leaf, {text.reads}): return False",
        " view = leaf.view",
        f" run({', '.join(['view.ptr', *text.addresses, *text.numbers])})",
        f" if counters.active: counters.launched({plan.read}, {plan.written})",
        " leaf.writes += 1",
        " leaf.reducers = leaf.known = None",
        " node.value = leaf",
        " node.args = None",
        " node.size = 0",
        " return True",
    ]
    exec("\n".join(lines), space)
    return space["again"]


class _Text:
    """The questions about a tree, in the order in which `direct` meets its leaves."""

    def __init__(self, dest: Leaf) -> None:
        self.dest = dest
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self.addresses: list[str] = []
        self.numbers: list[str] = []
        self.names: dict[int, str] = {}  # of leaves
        self.reads = 0
        self.count = 0

    def node(self, name: str, node: Any) -> bool:
        args: Any = node.args
        names = [f"x{self.count + i}" for i in range(len(args))]
        self.count += len(args)
        self.lines += [
            f" args = {name}.args",
            " if args is None: return False",
            f" {', '.join(names)}, = args",
        ]
        return all(self.operand(of, a) for of, a in zip(names, args, strict=True))

    def operand(self, name: str, a: Any) -> bool:
        if type(a) is float:
            self.lines.append(f" if type({name}) is not float: return False")
            self.numbers.append(name)
        elif type(a) is Broadcasted and a.value is None and a.shape == self.dest.shape:
            sig = f"s{name}"
            self.space[sig] = a.sig
            self.lines += [
                f" if type({name}) is not Broadcasted or {name}.sig is not {sig}: return False",
                f" if {name}.holders > 1: return False",
            ]
            return self.node(name, a)
        elif a is self.dest:
            self.reads += 1
            self.lines.append(f" if {name} is not leaf: return False")
            if id(a) not in self.names:
                self.names[id(a)] = name
                self.addresses.append("view.ptr")
        elif type(a) is not Leaf or a.root is self.dest:
            return False
        elif id(a) in self.names:
            self.lines.append(f" if {name} is not {self.names[id(a)]}: return False")
        else:
            self.names[id(a)] = name
            layout, view = f"l{name}", f"v{name}"
            self.space[layout] = a.view.layout
            self.lines += [
                f" if type({name}) is not Leaf or {name} is leaf or {name}.root is leaf: return False",
                f" {view} = {name}.view",
                f" if {view}._layout != {layout}: return False",
            ]
            self.addresses.append(f"{view}.ptr")
        return True
