"""What is decided of a graph when it is planned: what is stored, what is one kernel, and in which order.

The planner asks `Wanted` while it chooses, and `Wanted` looks at what came of it: a decision that was not
carried out, because it would have changed what a program computes, is refused with the line that forbids it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.fusing import LARGEST_TREE
from mirabelle.arraytypes.programs.graph import (
    Call,
    Fold,
    Input,
    Map,
    Node,
    Part,
    Product,
    Update,
    is_barrier,
)
from mirabelle.arraytypes.programs.lateness import messages_of
from mirabelle.arraytypes.programs.schedules import Decision
from mirabelle.arraytypes.programs.steps import CopyStep, FoldStep, KernelStep, Plan, Step
from mirabelle.arraytypes.programs.subgraphs import deciding

PLANNED = (
    *("once", "recompute", "fuse", "separate", "order", "own_memory", "in_place", "tile", "threads", "axes"),
)


class Wanted:
    """The decisions about the values of a graph, by the ids of these."""

    def __init__(self, decided: Any, nodes: list[Node], users: dict[int, list[Node]]) -> None:
        self.decided = decided
        self.users = users
        self.once: set[int] = set()
        self.recomputed: dict[int, tuple[Decision, Node]] = {}
        # What is a kernel of its own, and what is one kernel together.
        self.separate: dict[int, Decision] = {}
        self.group: dict[int, int] = {}
        self.groups: list[tuple[Decision, list[Node]]] = []
        self.in_place: list[tuple[Decision, list[Node]]] = []
        self.alone: list[tuple[Decision, list[Node]]] = []
        self.tuned: list[tuple[Decision, list[Node]]] = []
        self.before: list[tuple[Decision, list[Node], list[Node]]] = []
        for d, found in decided.of(nodes, PLANNED):
            self._note(d, found, nodes)
        self.again, _ = decided.computed_again(nodes, counted=True)

    def _note(self, d: Decision, found: list[Node], nodes: list[Node]) -> None:
        if d.name == "once":
            self.once |= {id(x) for x in found}
        elif d.name == "recompute":
            maps = [x for x in found if isinstance(x, Map) and x.sig.op.nout == 1]
            if found and not maps:
                self.refuse(d, f"{_said(found[0])} is no elementwise value: it is computed once.")
            self.recomputed.update({id(x): (d, x) for x in maps})
        elif d.name == "separate":
            self.separate.update({id(x): d for x in self._kernels(found)})
        elif d.name == "fuse":
            members = self._kernels(found)
            # (What is in two groups joins them.)
            joined = {self.group[id(x)] for x in members if id(x) in self.group}
            if joined:
                self.group.update({key: len(self.groups) for key, g in self.group.items() if g in joined})
            self.group.update({id(x): len(self.groups) for x in members})
            self.groups.append((d, members))
        elif d.name == "in_place":
            self.in_place.append((d, [x for x in found if isinstance(x, Update)]))
            if found and not self.in_place[-1][1]:
                self.refuse(d, f"{_said(found[0])} is no write.")
        elif d.name == "order":
            self.before.append((d, found, self.decided.found(nodes, d, d.option("before"))))
        elif d.name == "own_memory":
            self.alone.append((d, found))
        elif d.name in ("tile", "threads"):
            self.tuned.append((d, found))

    def _kernels(self, found: list[Node]) -> list[Node]:
        """Values, and the barriers that store them."""
        return [*found, *[u for x in found for u in self.users.get(id(x), ()) if is_barrier(u)]]

    def refuse(self, d: Decision, why: str) -> None:
        """Raise the error for a decision that cannot be carried out. (What a method of `decide` says about all
        values of a kind holds where it can.)"""
        if d in self.decided.decisions:
            raise self.decided.refused(d, why)

    # What the planner asks

    def keeps(self, x: Node, found: bool, could: bool) -> bool:
        """Is a value stored, which planning by itself would (`found`)?"""
        if id(x) in self.again:
            return False
        return found or (could and id(x) in self.once)

    def launched_alone(self) -> set[int]:
        """The ids of values whose kernels are launches of their own, because how they are run is decided."""
        decided = [*self.groups, *self.in_place, *self.tuned]
        found = {id(x) for _, values in decided for x in values} | set(self.separate)
        found.update([id(x) for _, first, then in self.before for x in (*first, *then)])
        return found

    # The order of the program

    def in_order(self, nodes: list[Node]) -> list[Node]:
        """The nodes with some moved before others, as far as what they need allows it."""
        for d, first, then in self.before:
            if not first or not then:
                continue
            late = {id(x) for x in then}
            at = next(i for i, x in enumerate(nodes) if id(x) in late)
            needed = {id(x) for x in first}
            for x in reversed(nodes):
                if id(x) in needed:
                    if id(x) in late:
                        self.refuse(d, f"{_said(first[-1])} needs what {_said(x)} computes.")
                    needed.update([id(a) for a in x.operands])
            rest = nodes[at:]
            moved = [
                *nodes[:at],
                *[x for x in rest if id(x) in needed],
                *[x for x in rest if id(x) not in needed],
            ]
            if messages_of(moved) != messages_of(nodes):
                self.refuse(d, "messages are made in the order of the program, by all processes.")
            nodes = moved
        return nodes

    # What came of it

    def check(self, planner: Any, plan: Plan) -> None:
        """Refuse what was not carried out, and tell the plan how its steps are to be run."""
        for d, x in self.recomputed.values():
            if id(x) in planner.stored or id(x) in planner.home:
                self.refuse(d, f"{_said(x)} is in memory, because {self._why_stored(planner, x)}.")
        inside = Inside(plan)
        for d, found in self.groups:
            self._check_group(inside, d, found)
        self._check_separate(inside)
        self._check_order(inside)
        for d, found in self.in_place:
            for x in found:
                if id(x) in planner.copied:
                    self.refuse(d, self._why_copied(planner, x))
        self._choose(planner, plan, inside)

    def _why_stored(self, planner: Any, x: Node) -> str:
        if id(x) in planner.is_output:
            return "it is a result of the program"
        if is_barrier(x) or any(is_barrier(u) for u in self.users.get(id(x), ())):
            return "the program says so (`mb.materialize`, `mb.hint(x, store=True)`)"
        for u in self.users.get(id(x), ()):
            if isinstance(u, (Call, Product)):
                return f"the routine {u.label} reads it in {shown_line(u.line)}"
            if isinstance(u, (Part, Update)):
                return f"{shown_line(u.line)} reads or writes a part of it"
        if planner.expiry.get(id(x), planner.place[id(x)] + 1) <= max(
            [planner.place[id(u)] for u in self.users.get(id(x), ())], default=0
        ):
            return "what it is computed from is overwritten before it is wanted"
        if id(x) in planner.home:
            return f"{shown_line(planner.home[id(x)].line)} writes it where others read it"
        return f"with it a kernel would have more than {LARGEST_TREE} operations, or a reduction needs it"

    def _check_group(self, inside: Inside, d: Decision, found: list[Node]) -> None:
        sets = [{inside.made[id(x)]} if id(x) in inside.made else inside.of(x) for x in found]
        sets = [numbers for numbers in sets if numbers]
        if not sets and found:
            self.refuse(d, f"no kernel computes {_said(found[0])}.")
        if not sets or set.intersection(*sets):
            return
        steps = set.union(*sets)
        own = [x for x in found if inside.of(x)]
        shapes = {tuple(inside.steps[n].shape) for n in steps}
        kinds = {type(inside.steps[n]) for n in steps}
        if kinds - {KernelStep, FoldStep}:
            why = f"{_said(own[0])} and {_said(own[-1])} are not both computed by kernels"
        elif len(kinds) > 1:
            why = f"{_said(own[0])} and {_said(own[-1])} are not both reductions"
        elif len(shapes) > 1:
            why = f"{_said(own[0])} goes over {list(min(shapes))}, and another over {list(max(shapes))}"
        else:
            why = f"{_said(own[-1])} needs what is computed between them, or overwrites what is read there"
        self.refuse(d, f"{why}.")

    def _check_separate(self, inside: Inside) -> None:
        for step in inside.steps:
            for x in step.nodes if len(step.nodes) > 1 else ():
                if id(x) in self.separate:
                    self.refuse(self.separate[id(x)], f"the kernel of {_said(x)} computes others with it.")

    def _check_order(self, inside: Inside) -> None:
        for d, first, then in self.before:
            one, other = inside.stored(first), inside.stored(then)
            if one and other and max(one) >= min(other):
                self.refuse(
                    d,
                    f"the kernel of {_said(first[-1])} also computes what comes later, or needs it. "
                    "`separate(...)` makes kernels of their own.",
                )

    def _why_copied(self, planner: Any, x: Any) -> str:
        where = shown_line(x.line)
        base = x.base
        if isinstance(base, Input):
            return (
                f"{where} writes to the argument {base.name}, whose memory may only be written to where "
                "nothing can fail afterwards and nobody reads the old value."
            )
        later = [u for u in self.users.get(id(base), ()) if u is not x]
        last = max(later, key=lambda u: planner.place[id(u)], default=None)
        if last is None:
            return f"what {where} writes to is not the program's own memory."
        return f"{shown_line(last.line)} reads the old value after {where} has written the new one."

    def _choose(self, planner: Any, plan: Plan, inside: Inside) -> None:
        choices = plan.choices
        for d, found in self.alone:
            numbers = [planner.where[id(x)].number for x in found if id(x) in planner.where]
            if not d.where:
                numbers = [s.number for s in plan.storages if s.kind == "temporary"]
            elif found and not numbers:
                self.refuse(d, f"{_said(found[0])} is not in memory: `store(...)` puts it there.")
            choices.alone.update(numbers)
        for d, found in self.tuned:
            name, value = d.options[0]
            numbers = sorted({n for x in found for n in inside.of(x)})
            numbers = [n for n in numbers if isinstance(inside.steps[n], (KernelStep, FoldStep))]
            if found and not numbers:
                self.refuse(d, f"no kernel computes {_said(found[0])}.")
            for n in numbers:
                (choices.rows if name == "rows" else choices.threads)[n] = value
            if name == "rows" and numbers:
                why = (
                    f"rows of {_said(found[0])} cannot be told apart. They are few, or it writes where other "
                    "rows read."
                )
                if d in self.decided.decisions:
                    choices.tiled.append((numbers, self.decided.refused(d, why)))


class Inside:
    """Which steps compute which values: those that they store (`made`), and those within their kernels."""

    def __init__(self, plan: Plan) -> None:
        self.steps = plan.steps
        self.made: dict[int, int] = {}
        self.within: dict[int, set[int]] = {}
        stored = {id(x) for step in plan.steps for x in step.nodes}
        for step in plan.steps:
            for x in step.nodes:
                self.made[id(x)] = step.number
            for x in _within(step, stored):
                self.within.setdefault(id(x), set()).add(step.number)

    def of(self, x: Node) -> set[int]:
        """The steps that compute a value."""
        return self.within.get(id(x), set())

    def stored(self, values: list[Node]) -> list[int]:
        """The steps that store some of the values, or that compute these where none is stored."""
        made = [self.made[id(x)] for x in values if id(x) in self.made]
        return made or [n for x in values for n in self.of(x)]


def _within(step: Step, stored: set[int]) -> Iterator[Node]:
    own = {id(x) for x in step.nodes}
    stack, seen = list(step.nodes), set(own)
    while stack:
        x = stack.pop()
        yield x
        if isinstance(step, CopyStep):
            continue
        for a in (x.value,) if isinstance(x, Update) else x.operands if isinstance(x, (Map, Fold)) else ():
            if id(a) not in seen and (isinstance(a, Map) or (isinstance(a, Fold) and isinstance(x, Update))):
                seen.add(id(a))
                if id(a) not in stored:
                    stack.append(a)


def wanted(nodes: list[Node], users: dict[int, list[Node]]) -> Wanted | None:
    """What is decided of a graph that is being planned; None where nothing is."""
    decided = deciding.get()
    if decided is None or not decided.active:
        return None
    return Wanted(decided, nodes, users)


def _said(x: Node) -> str:
    return f"what {shown_line(x.line)} computes" if x.line is not None else f"the argument {x.label}"


__all__ = ["Inside", "Wanted", "wanted"]
